"""Where the boxes of a drawn graph go: facts that hold for all of them, on many random graphs."""

from __future__ import annotations

import random
from itertools import combinations, pairwise

import pytest

from gradwalk.show.layered import Layout, layered

GAP_X, GAP_Y = 20.0, 6.0


def random_layout(seed: int) -> tuple[list[tuple[float, float]], list[tuple[int, int]], Layout]:
    source = random.Random(seed)
    count = source.randrange(2, 24)
    sizes = [(float(source.randrange(20, 80)), float(source.choice((14, 30)))) for _ in range(count)]
    links = [(source.randrange(max(0, i - 6), i), i) for i in range(1, count) for _ in range(source.randrange(1, 3))]
    return sizes, links, layered(sizes, links, GAP_X, GAP_Y)


LAYOUTS = [random_layout(seed) for seed in range(40)]


def column(layout: Layout, box: int) -> float:
    """The middle of a box, which is that of its column."""
    return round(layout.boxes[box].x + layout.boxes[box].width / 2, 6)


def test_no_box_is_nearer_to_another_than_the_gap() -> None:
    """In a column, above and below; and what is drawn is as large as what is in it."""
    for sizes, _, layout in LAYOUTS:
        assert sizes == [(box.width, box.height) for box in layout.boxes]
        for one, other in combinations(range(len(sizes)), 2):
            a, b = sorted((layout.boxes[one], layout.boxes[other]), key=lambda box: box.y)
            assert column(layout, one) != column(layout, other) or b.y - (a.y + a.height) >= GAP_Y - 1e-6
        assert min(box.x for box in layout.boxes) == 0.0
        assert max(box.x + box.width for box in layout.boxes) == pytest.approx(layout.width)
        ys = [y for box in layout.boxes for y in (box.y, box.y + box.height)]
        ys += [y + by for route in layout.routes for _, y in route[1:-1] for by in (-2.0, 2.0)]
        assert (min(ys), max(ys)) == pytest.approx((0.0, layout.height), abs=1e-6)


def test_each_box_stands_just_before_its_first_use() -> None:
    """The result is in the last column; between two columns is the gap that was asked for."""
    for sizes, links, layout in LAYOUTS:
        places = sorted({column(layout, box) for box in range(len(sizes))})
        at = [places.index(column(layout, box)) for box in range(len(sizes))]
        for box in range(len(sizes)):
            uses = [at[parent] for child, parent in links if child == box]
            assert at[box] == (min(uses) - 1 if uses else len(places) - 1)
        for before, after in pairwise(range(len(places))):
            right = max(layout.boxes[box].x + sizes[box][0] for box in range(len(sizes)) if at[box] == before)
            left = min(layout.boxes[box].x for box in range(len(sizes)) if at[box] == after)
            assert left - right == pytest.approx(GAP_X)


def test_a_link_goes_from_border_to_border_and_through_no_box() -> None:
    """From the middle of a right side to the middle of a left one, level through each column that it passes."""
    for sizes, links, layout in LAYOUTS:
        assert len(layout.routes) == len(links)
        places = sorted({column(layout, box) for box in range(len(sizes))})
        for (child, parent), route in zip(links, layout.routes, strict=True):
            first, last = layout.boxes[child], layout.boxes[parent]
            assert route[0] == pytest.approx((first.x + first.width, first.y + first.height / 2))
            assert route[-1] == pytest.approx((last.x, last.y + last.height / 2))
            passed = places.index(column(layout, parent)) - places.index(column(layout, child)) - 1
            assert len(route) == 2 + 2 * passed
            for (left, y), (right, same) in zip(route[1:-1:2], route[2:-1:2], strict=True):
                inside = [layout.boxes[box] for box in range(len(sizes)) if left < column(layout, box) < right]
                assert inside
                assert y == same
                room = GAP_Y + 2.0 - 1e-6  # half of what passes is 2 high
                assert not any(box.y - room < y < box.y + box.height + room for box in inside)


def test_few_links_cross_and_most_are_level() -> None:
    """No more than when this was written."""
    crossed = steep = 0.0
    for _, _, layout in LAYOUTS:
        pieces = [piece for route in layout.routes for piece in pairwise(route)]
        crossed += sum(
            abs(a[0] - c[0]) < 60 and abs(b[0] - d[0]) < 60 and (a[1] - c[1]) * (b[1] - d[1]) < -1e-6
            for (a, b), (c, d) in combinations(pieces, 2)
        )
        steep += sum(abs(b[1] - a[1]) for a, b in pieces)
    assert crossed <= 457
    assert steep <= 18_226


def test_turned_is_from_top_to_bottom() -> None:
    """Everything the other way around; turned twice it is as before."""
    for _, _, layout in LAYOUTS[:6]:
        turned = layout.turned()
        assert [(box.y, box.x, box.height, box.width) for box in layout.boxes] == [
            (box.x, box.y, box.width, box.height) for box in turned.boxes
        ]
        assert (layout.height, layout.width) == (turned.width, turned.height)
        assert [[(y, x) for x, y in route] for route in layout.routes] == turned.routes
        assert layout == turned.turned()


def test_a_link_that_runs_backwards_moves_nothing() -> None:
    """As between scopes that are folded up: where things stand is decided by the others."""
    sizes = [(10.0, 10.0)] * 3
    layout = layered(sizes, [(0, 1), (1, 2), (2, 0)], GAP_X, GAP_Y)
    assert [box.x for box in layout.boxes] == [0.0, 30.0, 60.0]
