"""Pictures out of characters: a curve in braille dots, and a map of regions with points on it.

Each function returns lines of plain text; colour and printing are the caller's. Files are drawn by `plot.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

# which bit of a braille character is which dot: two columns of four, from the top
_DOT_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_BRAILLE = 0x2800


@dataclass(frozen=True)
class MapMarks:
    """The characters of a map: for the two kinds of region and of point."""

    regions: str
    points: str


UNICODE_MARKS = MapMarks(regions=" ░", points="○●")
ASCII_MARKS = MapMarks(regions=" .", points="o#")


def smoothed(numbers: Sequence[float], window: int) -> list[float]:
    """The mean of each number and of those before it, `window` of them at most: what is noise shrinks.

    >>> smoothed([4.0, 2.0, 0.0], window=2)
    [4.0, 3.0, 1.0]
    >>> smoothed([1e300, 2.0, 4.0, 6.0], window=2)[2:]
    [3.0, 5.0]
    """
    means: list[float] = []
    ends: list[float] = []  # of the block before: the totals from each place on; so nothing huge is taken off again
    for start in range(0, len(numbers), window):
        block = numbers[start : start + window]
        for i, total in enumerate(accumulate(block), 1):
            means.append((total + sum(ends[i : i + 1])) / min(start + i, window))
        ends = list(accumulate(reversed(block)))[::-1]
    return means


def is_shown(number: float) -> bool:
    """Whether there is a place for it in a picture: neither for nan nor where the limits of an axis would overflow."""
    return abs(number) < 1e300


def curve(
    points: Sequence[tuple[float, float]],
    marks: Sequence[tuple[float, float]] = (),
    width: int = 64,
    height: int = 12,
    ascii_only: bool = False,
) -> list[str]:
    """A line through `points` in a frame with its limits beside it; `marks` are drawn as ◆ on top of it.

    >>> print("\\n".join(curve([(0, 4.0), (1, 2.0), (2, 1.0), (3, 1.0)], width=4, height=2, ascii_only=True)))
    4.000 |*
    1.000 | ***
          +----
           0  3
    """
    points = [point for point in points if all(map(is_shown, point))]
    marks = [mark for mark in marks if all(map(is_shown, mark))]
    if not points:
        return ["(no points to draw)"]
    across, up = (1, 1) if ascii_only else (2, 4)  # dots per character
    columns, rows = width * across, height * up
    xs, ys = zip(*points, *marks, strict=True)
    left, right, bottom, top = min(xs), max(xs), min(ys), max(ys)

    def column(x: float) -> int:
        return int((x - left) / ((right - left) or 1.0) * (columns - 1) + 0.5)

    def row(y: float) -> int:
        return int((top - y) / ((top - bottom) or 1.0) * (rows - 1) + 0.5)

    filled = _line_cells([(column(x), row(y)) for x, y in points])
    cells = [[" " if ascii_only else chr(_BRAILLE)] * width for _ in range(height)]
    for i, j in filled:
        if ascii_only:
            cells[j][i] = "*"
        else:
            before = ord(cells[j // 4][i // 2])
            cells[j // 4][i // 2] = chr(before | _DOT_BITS[j % 4][i % 2])
    for x, y in marks:
        cells[row(y) // up][column(x) // across] = "o" if ascii_only else "◆"
    return _framed(
        ["".join(line).replace(chr(_BRAILLE), " ") for line in cells], (left, right), (bottom, top), ascii_only
    )


def _line_cells(corners: Sequence[tuple[int, int]]) -> set[tuple[int, int]]:
    """The dots of straight lines from each corner to the next."""
    filled = set(corners[:1])
    for (x0, y0), (x1, y1) in pairwise(corners):
        dots = max(abs(x1 - x0), abs(y1 - y0), 1)
        filled.update((round(x0 + (x1 - x0) * i / dots), round(y0 + (y1 - y0) * i / dots)) for i in range(dots + 1))
    return filled


def _framed(
    lines: Sequence[str], x_limits: tuple[float, float], y_limits: tuple[float, float], ascii_only: bool
) -> list[str]:
    side, corner, floor = ("|", "+", "-") if ascii_only else ("┤", "└", "─")
    bottom, top = (f"{y:.3f}" if y == 0.0 or 1e-2 <= abs(y) < 1e7 else f"{y:.3g}" for y in y_limits)
    margin = max(len(top), len(bottom))
    names = {0: top, len(lines) - 1: bottom}
    framed = [f"{names.get(i, ''):>{margin}} {side}{line}".rstrip() for i, line in enumerate(lines)]
    width = len(lines[0])
    left, right = f"{x_limits[0]:g}", f"{x_limits[1]:g}"
    framed.append(f"{'':>{margin}} {corner}{floor * width}")
    framed.append(f"{'':>{margin}}  {left}{right:>{max(width - len(left), len(right) + 1)}}")
    return framed


def region_map(
    positive: Sequence[Sequence[bool]],
    points: Sequence[tuple[float, float, bool]],
    limits: tuple[float, float, float, float],
    marks: MapMarks = UNICODE_MARKS,
) -> list[str]:
    """Rows of cells from the top, in or out of a region, and points (x, y, kind) on them.

    `limits` says which numbers the picture's edges stand for: left, right, bottom, top.

    >>> region_map([[False, False, True, True]], [(-0.9, 0.0, False)], (-1, 1, -1, 1), ASCII_MARKS)
    ['o ..']
    """
    left, right, bottom, top = limits
    cells = [[marks.regions[inside] for inside in row] for row in positive]
    height, width = len(cells), len(cells[0])
    for x, y, kind in points:
        i = min(max(int((x - left) / (right - left) * width), 0), width - 1)
        j = min(max(int((top - y) / (top - bottom) * height), 0), height - 1)
        cells[j][i] = marks.points[kind]
    return ["".join(line) for line in cells]
