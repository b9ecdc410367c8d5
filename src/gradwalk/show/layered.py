"""Where the boxes of a small graph go: columns from the leaves to the result, few crossings, no overlap.

The usual four steps: a column for each box, places to pass through for edges that skip columns, an order within each
column by the places of the neighbours, and heights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

_SWEEPS = 8


@dataclass
class Placed:
    """A box and where its left upper corner is."""

    x: float
    y: float
    width: float
    height: float


@dataclass
class Layout:
    """Boxes in the order given, a route of points for each link, and the size of it all."""

    boxes: list[Placed]
    routes: list[list[tuple[float, float]]]
    width: float
    height: float

    def turned(self) -> Layout:
        """The same from top to bottom."""
        boxes = [Placed(box.y, box.x, box.height, box.width) for box in self.boxes]
        return Layout(boxes, [[(y, x) for x, y in route] for route in self.routes], self.height, self.width)


def layered(
    sizes: Sequence[tuple[float, float]], links: Sequence[tuple[int, int]], gap_x: float, gap_y: float
) -> Layout:
    """Where boxes of these sizes stand; links go from a box to one in a later column.

    >>> layout = layered([(10, 10), (10, 10), (10, 10)], [(0, 2), (1, 2)], gap_x=20, gap_y=5)
    >>> [(box.x, box.y) for box in layout.boxes], layout.width, layout.height
    ([(0.0, 0.0), (0.0, 15.0), (30.0, 7.5)], 40, 25.0)
    """
    count = len(sizes)
    # an edge that runs backwards, as between folded scopes, takes no part in the order
    column = _columns(count, [(child, parent) for child, parent in links if child < parent])
    heights = [height for _, height in sizes]
    columns: list[list[int]] = [[] for _ in range(max(column) + 1)]
    for box in range(count):
        columns[column[box]].append(box)
    chains: list[list[int]] = []
    for child, parent in links:
        chain = [child]
        for place in range(column[child] + 1, column[parent]):
            chain.append(len(heights))
            columns[place].append(len(heights))
            heights.append(4.0)
        chains.append([*chain, parent])
    near: list[list[list[int]]] = [[[] for _ in heights], [[] for _ in heights]]
    for chain in chains:
        for one, other in pairwise(chain):
            near[0][other].append(one)
            near[1][one].append(other)
    middle = _middles(columns, heights, near, gap_y)
    widths = [max(sizes[box][0] for box in boxes if box < count) for boxes in columns]
    lefts = [sum(widths[:k]) + gap_x * k for k in range(len(widths))]
    top = min(middle[item] - heights[item] / 2 for item in range(len(heights)))
    boxes = [
        Placed(lefts[column[box]] + (widths[column[box]] - width) / 2, middle[box] - height / 2 - top, width, height)
        for box, (width, height) in enumerate(sizes)
    ]
    where = {item: place for place, items in enumerate(columns) for item in items}
    routes = []
    for chain in chains:
        first, last = boxes[chain[0]], boxes[chain[-1]]
        points = [(first.x + first.width, first.y + first.height / 2)]
        for item in chain[1:-1]:
            left = lefts[where[item]]
            points += [(left, middle[item] - top), (left + widths[where[item]], middle[item] - top)]
        routes.append([*points, (last.x, last.y + last.height / 2)])
    bottom = max(middle[item] + heights[item] / 2 for item in range(len(heights)))
    return Layout(boxes, routes, lefts[-1] + widths[-1], bottom - top)


def _columns(count: int, links: Sequence[tuple[int, int]]) -> list[int]:
    """The result on the right, and each box as far right as what it is used in allows."""
    from_right = [0] * count
    for child, parent in sorted(links, key=lambda link: -link[1]):
        from_right[child] = max(from_right[child], from_right[parent] + 1)
    last = max(from_right)
    return [last - distance for distance in from_right]


def _middles(columns: list[list[int]], heights: list[float], near: list[list[list[int]]], gap: float) -> list[float]:
    """The height of every item's middle: each column again and again close to its neighbours, in their order."""
    middle = [0.0] * len(heights)
    for items in columns:
        _stacked(items, [float(place) for place in range(len(items))], heights, gap, middle)
    for sweep in range(2 * _SWEEPS):
        side = sweep % 2
        for items in columns if side == 0 else columns[::-1]:
            wanted = [_mean([middle[other] for other in near[side][item]], middle[item]) for item in items]
            order = sorted(range(len(items)), key=lambda place, wanted=wanted: wanted[place])  # type: ignore[misc]
            items[:] = [items[place] for place in order]
            _stacked(items, [wanted[place] for place in order], heights, gap, middle)
    return middle


def _mean(numbers: list[float], otherwise: float) -> float:
    return sum(numbers) / len(numbers) if numbers else otherwise


def _stacked(items: list[int], wanted: list[float], heights: list[float], gap: float, middle: list[float]) -> None:
    """Place a column's items in order, as close to where each wants to be as the others allow."""
    bottom = float("-inf")
    for item, place in zip(items, wanted, strict=True):
        middle[item] = max(place, bottom + heights[item] / 2)
        bottom = middle[item] + heights[item] / 2 + gap
    off = _mean([middle[item] - place for item, place in zip(items, wanted, strict=True)], 0.0)
    for item in items:
        middle[item] -= off
