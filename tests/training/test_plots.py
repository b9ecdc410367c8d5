"""Curves and maps, in characters and as shapes: where everything stands, and that a PNG has it there, too."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import pytest

from gradwalk.show import plot, terminal_plot
from gradwalk.show.plot import BLUE, GRID, INK, ORANGE, PALE_BLUE, PAPER, REGIONS, Box, Dot, Line, Words
from gradwalk.show.sweep_plot import sweep_picture

# ---------------------------------------------------------------- in characters

POINTS = [(0.0, 4.0), (10.0, 0.0), (20.0, 2.0), (40.0, 1.0)]


@pytest.mark.parametrize(
    ("points", "marks", "ascii_only", "drawn"),
    [
        (
            POINTS,
            [(20.0, 3.0)],
            False,
            """
4.000 ┤⢣
      ┤ ⢇    ◆
      ┤ ⠈⡆ ⢀⠔⠉⠒⠒⠤⠤⣀
0.000 ┤  ⠘⡤⠊
      └────────────
       0         40""",
        ),
        (
            POINTS,
            [(20.0, 3.0)],
            True,
            """
4.000 |*
      | *    o
      |  *  *******
0.000 |   **
      +------------
       0         40""",
        ),
        (
            [(1000.0, -0.009), (20000.0, 1e7)],
            [(20000.0, float("nan"))],
            True,
            """
 1e+07 |          **
       |      ****
       |  ****
-0.009 |**
       +------------
        1000   20000""",
        ),
        (
            [(1.0, 0.01), (2.0, 9999999.0)],
            [(3.0, 9999999.0)],
            True,
            """
9999999.000 |     **    o
            |    *
            | ***
      0.010 |*
            +------------
             1          3""",
        ),
    ],
)
def test_a_curve_in_characters(
    points: list[tuple[float, float]], marks: list[tuple[float, float]], ascii_only: bool, drawn: str
) -> None:
    """A line from each point to the next, marks on top, and the limits beside it; what has no place is left out."""
    assert drawn.splitlines()[1:] == terminal_plot.curve(points, marks, 12, 4, ascii_only)


def test_a_single_point_in_characters() -> None:
    """At the beginning, with the same limits twice, beside each other even where there is no room for both."""
    assert terminal_plot.curve([(1000.0, 0.0)], width=4, height=2, ascii_only=True) == [
        "0.000 |*", "0.000 |", "      +----", "       1000 1000",
    ]  # fmt: skip


def test_a_map_in_characters() -> None:
    """Regions from the top, points over them; what is on a border, or beyond it, is in the last cell."""
    cells = [[False, True, False], [True, True, False]]
    points = [(0.0, 0.0, True), (1.0, 1.0, False), (0.5, 0.5, True), (-9.0, 9.0, True), (9.0, -9.0, False)]
    assert terminal_plot.region_map(cells, points, (0.0, 1.0, 0.0, 1.0)) == ["●░○", "●●○"]
    assert terminal_plot.region_map(cells, points[:2], (0.0, 1.0, 0.0, 1.0), terminal_plot.ASCII_MARKS) == [
        " .o",
        "#. ",
    ]


def test_a_running_mean() -> None:
    """Of each number and of those before it, as many as asked for."""
    source = [float(i * i % 17) for i in range(20)]
    for window in (1, 2, 3, 7, 50):
        expected = [sum(source[max(0, i - window + 1) : i + 1]) / min(i + 1, window) for i in range(20)]
        assert terminal_plot.smoothed(source, window) == pytest.approx(expected)


# ---------------------------------------------------------------- as shapes


def of(kind: type, shapes: list[Any]) -> list[Any]:
    return [shape for shape in shapes if isinstance(shape, kind)]


@pytest.mark.parametrize(
    ("low", "high", "marks"),
    [
        (0.13, 0.98, [0.2, 0.4, 0.6, 0.8]), (5.0, 5.0, [5.0]), (-3.0, 4e3, [0.0, 1e3, 2e3, 3e3, 4e3]),
        (0.0, 6.0, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), (0.0, 30.0, [0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0]),
        (0.0, 7.0, [0.0, 2.0, 4.0, 6.0]), (1.0, 0.0, [1.0]), (-0.3, 0.3, [-0.3, -0.2, -0.1, 0.0, 0.1, 0.2, 0.3]),
    ],
)  # fmt: skip
def test_round_numbers(low: float, high: float, marks: list[float]) -> None:
    """About six of them, both limits included where they are round."""
    assert marks == plot.round_numbers(low, high)


def test_the_shapes_of_a_loss_curve() -> None:
    """Losses, their mean, and validation losses over the steps; a single one is a dot; a legend, and marks."""
    shapes = plot.loss_curve([3.0, 2.0, 1.0], [(2, 1.5)], "losses", (300, 200)).shapes
    way = [(112.0, 68.0), (194.0, 108.0), (276.0, 148.0)]
    drawn = [line for line in of(Line, shapes) if line.colour != GRID]
    assert drawn == [
        Line(way, PALE_BLUE), Line(way, BLUE, 2.0), Line([(32.0, 48), (48.0, 48)], PALE_BLUE, 3.0),
        Line([(100.0, 48), (116.0, 48)], BLUE, 3.0), Line([(203.0, 48), (219.0, 48)], ORANGE, 3.0),
    ]  # fmt: skip
    assert of(Dot, shapes) == [Dot((194.0, 128.0), 3.5, ORANGE)]
    words = of(Words, shapes)
    assert [(each.at, each.text, each.anchor) for each in words[:5] + words[5:13:6]] == [
        ((22.0, 152.0), "1", "end"), ((22.0, 132.0), "1.5", "end"), ((22.0, 112.0), "2", "end"),
        ((22.0, 92.0), "2.5", "end"), ((22.0, 72.0), "3", "end"), ((30.0, 170.0), "0", "middle"),
        ((276.0, 170.0), "3", "middle"),
    ]  # fmt: skip
    assert words[12:] == [
        Words((30.0, 30), "losses", 15, INK), Words((153.0, 188.0), "step", 12, anchor="middle"),
        Words((54.0, 52), "loss", 12), Words((122.0, 52), "mean of 1", 12), Words((225.0, 52), "validation", 12),
    ]  # fmt: skip
    grid = [line for line in of(Line, shapes) if line.colour == GRID]
    assert (grid[0].points, grid[-1].points) == ([(30.0, 148.0), (276.0, 148.0)], [(276.0, 152.0), (276.0, 64.0)])


def test_the_mean_of_many_losses() -> None:
    """Over a tenth of them, and no more than fifty; of two validation losses there is a line with dots."""
    legend = [
        [words.text for words in of(Words, plot.loss_curve([1.0] * count).shapes) if "mean" in words.text]
        for count in (9, 25, 499, 900)
    ]
    assert legend == [["mean of 1"], ["mean of 2"], ["mean of 49"], ["mean of 50"]]
    shapes = plot.loss_curve([1.0, 2.0], [(1, 1.0), (2, 1.5), (2, float("nan"))]).shapes
    assert [dot.colour for dot in of(Dot, shapes)] == [ORANGE, ORANGE]
    assert [len(line.points) for line in of(Line, shapes) if line.colour == ORANGE] == [2, 2]  # one is the legend's


def test_losses_that_are_the_same_lie_in_the_middle() -> None:
    """With half of one above and below; without any there is a frame from 0 to 1."""
    (line, *_) = (line for line in of(Line, plot.loss_curve([2.0, 2.0]).shapes) if line.colour == PALE_BLUE)
    assert [y for _, y in line.points] == [218.0, 218.0]
    marks = [words.text for words in of(Words, plot.loss_curve([]).shapes) if words.anchor == "end"]
    assert (marks[0], marks[-1]) == ("0", "1")


@pytest.mark.parametrize(("count", "drawn"), [(0, 0), (1, 1), (1000, 1000), (1001, 501), (2001, 667)])
def test_no_more_points_than_are_worth_it(count: int, drawn: int) -> None:
    """Of many, the means of equal runs."""
    thinned = plot.thinned([(float(i), 2.0 * i) for i in range(count)])
    assert len(thinned) == drawn
    run = -(-count // 1000) or 1
    assert thinned[:1] == [((run - 1) / 2, run - 1.0)][:drawn]


def test_the_shapes_of_a_map() -> None:
    """A box for each run of cells in a row, the grid over them, and points with a border."""
    cells = [[True, True, False], [False, False, False]]
    shapes = plot.decision_map(cells, [(0.5, 0.5, True), (0.1, 0.75, False)], (0.0, 1.0, 0.0, 1.0), "regions").shapes
    assert [(box.corner, box.size, box.colour) for box in of(Box, shapes)] == [
        ((64.0, 56.0), (pytest.approx(1264 / 3), 208.0), REGIONS[1]),
        ((pytest.approx(64 + 1264 / 3), 56.0), (pytest.approx(632 / 3), 208.0), REGIONS[0]),
        ((64.0, 264.0), (632.0, 208.0), REGIONS[0]),
    ]
    dots = [((380.0, 264.0), BLUE), ((127.2, 160.0), ORANGE)]
    assert of(Dot, shapes) == [Dot(at, *how) for at, colour in dots for how in ((5.5, PAPER), (4.5, colour))]
    assert of(Words, shapes)[-1] == Words((64, 32), "regions", 15, INK)
    assert [type(shape) for shape in shapes[:3]] == [Box] * 3


def runs(*found: tuple[Any, int, float]) -> list[dict[str, Any]]:
    return [{"options": {"lr": lr, "seed": seed}, "loss": loss} for lr, seed, loss in found]


def test_the_shapes_of_a_sweep() -> None:
    """A dot for each run, the best one last, a line through the means, marks, and what is measured."""
    given = runs((0.1, 0, 3.0), (0.1, 1, 1.0), (0.2, 0, 2.0), (0.2, 1, 4.0), (0.2, 2, float("nan")))
    picture = sweep_picture(given, ["lr", "seed"], lambda run: run["loss"], "a sweep")
    shapes = picture.shapes
    assert (picture.width, picture.height) == (720, 420)
    left, right = 64 + 632 / 22, 696 - 632 / 22
    heights = {loss: 372 - 298 * (loss - 0.85) / 3.3 for loss in (1, 2, 3, 4)}
    assert [(dot.centre, dot.colour) for dot in of(Dot, shapes)] == [
        (pytest.approx((left, heights[3])), BLUE), (pytest.approx((right, heights[2])), BLUE),
        (pytest.approx((right, heights[4])), BLUE), (pytest.approx((left, heights[1])), ORANGE),
    ]  # fmt: skip
    (means,) = (line for line in of(Line, shapes) if line.colour == PALE_BLUE)
    assert means.width == 2.0
    assert means.points == [pytest.approx((left, heights[2])), pytest.approx((right, heights[3]))]
    grid = [line.points for line in of(Line, shapes) if line.colour == GRID]
    assert grid == [
        *([pytest.approx((64.0, heights[loss])), pytest.approx((696.0, heights[loss]))] for loss in (1, 2, 3, 4)),
        *([pytest.approx((x, 372.0)), pytest.approx((x, 74.0))] for x in (left, right)),
    ]
    words = [(each.at, each.text, each.size, each.anchor) for each in of(Words, shapes)]
    assert words == [
        ((64, 30), "a sweep", 15, "start"), ((64, 52), "loss, orange: the best run", 12, "start"),
        *((pytest.approx((56.0, heights[loss] + 4)), str(loss), 12, "end") for loss in (1, 2, 3, 4)),
        (pytest.approx((left, 390.0)), "0.1", 12, "middle"), (pytest.approx((right, 390.0)), "0.2", 12, "middle"),
        ((380, 408.0), "lr", 12, "middle"),
    ]  # fmt: skip


def test_each_option_has_a_panel() -> None:
    """One below the other, four at most; words and truth are marked in their order, however many there are."""
    given = [{"options": dict.fromkeys("abcde", name) | {"seed": 1}, "loss": 1.0} for name in ("x", "y")]
    picture = sweep_picture(given, [*"abcde", "seed"], lambda run: run["loss"], "")
    assert picture.height == 64 + 356 * 4
    named = [(words.at[1], words.text) for words in of(Words, picture.shapes) if words.at[0] == 380]
    assert named == [(64 + 356 * k + 344, name) for k, name in enumerate("abcd")]
    many = sweep_picture(runs(*((f"v{i}", 0, 1.0) for i in range(9))), ["lr"], lambda run: run["loss"], "")
    assert [words.text for words in of(Words, many.shapes) if words.at[1] == 390] == [f"v{i}" for i in range(9)]
    truth = sweep_picture(runs((True, 0, 1.0), (False, 0, 2.0)), ["lr"], lambda run: run["loss"], "")
    assert [words.text for words in of(Words, truth.shapes) if words.at[1] == 390] == ["False", "True"]


def test_a_sweep_of_one() -> None:
    """Its dot is in the middle, with half of one around it, and no line of means."""
    shapes = sweep_picture(runs((0.1, 0, 1.0)), ["lr"], lambda run: run["loss"], "").shapes
    assert [(dot.centre, dot.colour) for dot in of(Dot, shapes)] == [(pytest.approx((380.0, 223.0)), ORANGE)]
    marks = [words.text for words in of(Words, shapes) if words.anchor == "end"]
    assert (marks[0], marks[-1]) == ("0.6", "1.4")
    assert [line for line in of(Line, shapes) if line.colour == PALE_BLUE] == []


def test_the_curves_of_several_seeds() -> None:
    """From step 0 on, between the lowest and the highest; the best is thick; a curve of one point is a dot."""
    given = [
        {"options": {"seed": 1}, "loss": 2.0, "validation_loss": 2.0, "validation_losses": [(1, 4.0), (2, 2.0)]},
        {"options": {"seed": 2}, "loss": 3.0, "validation_loss": 3.0, "validation_losses": [(1, 3.0)]},
    ]
    shapes = sweep_picture(given, ["seed"], lambda run: run["loss"], "").shapes
    (best,) = (line for line in of(Line, shapes) if line.colour == ORANGE)
    heights = {loss: 372 - 298 * (loss - 1.9) / 2.2 for loss in (2, 3, 4)}
    assert (best.width, best.points) == (2.5, [pytest.approx((380.0, heights[4])), pytest.approx((696.0, heights[2]))])
    (dot,) = of(Dot, shapes)
    assert (dot.centre, dot.radius, dot.colour) == (pytest.approx((380.0, heights[3])), 3.5, PALE_BLUE)
    texts = [words.text for words in of(Words, shapes)]
    assert "validation loss, orange: the best run" in texts
    assert texts[-1] == "step"


# ---------------------------------------------------------------- as a PNG


def pixels(content: bytes) -> list[list[tuple[int, ...]]]:
    """The rows of a PNG as colours."""
    parts: dict[bytes, bytes] = {}
    position = 8
    while position < len(content):
        length, kind = struct.unpack(">I4s", content[position : position + 8])
        parts[kind] = parts.get(kind, b"") + content[position + 8 : position + 8 + length]
        position += 12 + length
    width, height, _, colours = struct.unpack(">IIBB", parts[b"IHDR"][:10])
    step = {2: 3, 6: 4}[colours]
    data = zlib.decompress(parts[b"IDAT"])
    above, rows = bytearray(width * step), []
    for j in range(height):
        kind, *line = data[j * (width * step + 1) : (j + 1) * (width * step + 1)]
        for i in range(width * step):
            a, b, c = (line[i - step], above[i], above[i - step]) if i >= step else (0, above[i], 0)
            nearest = min((a, b, c), key=lambda each, p=a + b - c: abs(p - each))  # type: ignore[misc]
            line[i] = (line[i] + (0, a, b, (a + b) // 2, nearest)[kind]) % 256
        above = bytearray(line)
        rows.append([tuple(line[i : i + 3]) for i in range(0, width * step, step)])
    return rows


def inked(shape: Any) -> tuple[float, float, float, float]:
    """From where to where there is anything but paper, in the picture's units: left, right, top, bottom."""
    rows = pixels(plot.Picture(60, 40, "", [shape]).png())
    found = [(i, j) for j, row in enumerate(rows) for i, colour in enumerate(row) if sum(colour) < 3 * 200]
    xs, ys = zip(*found, strict=True)
    return min(xs) / 2, (max(xs) + 1) / 2, min(ys) / 2, (max(ys) + 1) / 2


@pytest.mark.parametrize(
    ("shape", "place"),
    [
        (Dot((20, 10), 4, INK), (16, 24, 6, 14)),
        (Box((10, 20), (30, 5), INK), (10, 40, 20, 25)),
        (Line([(10, 10), (50, 10), (50, 30)], INK, 2.0), (10, 51, 9, 30)),
    ],
)
def test_shapes_are_where_they_should_be(shape: Any, place: tuple[float, ...]) -> None:
    """As in the SVG, from the upper left corner on."""
    assert inked(shape) == pytest.approx(place, abs=1.1)


def test_words_stand_at_their_place() -> None:
    """They begin there, end there, or have their middle there; their feet are on the line; large ones are larger."""
    starts, ends, middle = (inked(Words((30, 25), "HHH", 10.0, INK, anchor)) for anchor in ("start", "end", "middle"))
    assert starts[0] == pytest.approx(30, abs=2)
    assert ends[1] == pytest.approx(30, abs=2)
    assert (middle[0] + middle[1]) / 2 == pytest.approx(30, abs=1.5)
    for place in (starts, ends, middle):
        assert place[3] == pytest.approx(25, abs=1.5)
        assert place[2] == pytest.approx(25 - 7.3, abs=1.5)
    large = inked(Words((10, 25), "H", 20.0, INK))
    assert large[3] - large[2] == pytest.approx(14.6, abs=1.5)
