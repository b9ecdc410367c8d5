"""Pictures as files: a loss curve, and a map of a classifier's regions, as SVG or PNG.

A `Picture` is a list of shapes; `svg()` writes them as text, without a library, and `png()` has Graphviz draw them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape

from gradwalk.graph import dot_string
from gradwalk.show.dot import rendered
from gradwalk.show.terminal_plot import is_shown, smoothed

Point = tuple[float, float]

INK, FAINT_INK, GRID, PAPER = "#1f2933", "#616e7c", "#e4e7eb", "#ffffff"
PALE_BLUE, BLUE, ORANGE = "#bcd4ee", "#1f5fa8", "#d9730d"
REGIONS = ("#fbe3cc", "#d3e3f5")  # of the negative and of the positive class

PNG_DPI = 144  # two pixels per unit of the picture
WIDEST = 400  # half the width of a node of words, in units
LARGEST_CURVE = 1000  # points of a curve that are worth drawing


# ---------------------------------------------------------------- shapes


@dataclass(frozen=True)
class Line:
    points: Sequence[Point]
    colour: str
    width: float = 1.0


@dataclass(frozen=True)
class Dot:
    centre: Point
    radius: float
    colour: str


@dataclass(frozen=True)
class Box:
    corner: Point  # top left
    size: Point
    colour: str


@dataclass(frozen=True)
class Words:
    at: Point  # on the line that the letters stand on
    text: str
    size: float = 13.0
    colour: str = FAINT_INK
    anchor: str = "start"  # or "middle", "end"


Shape = Line | Dot | Box | Words


@dataclass
class Picture:
    """Shapes on white paper, drawn in their order; x grows to the right and y downwards."""

    width: int
    height: int
    title: str
    shapes: list[Shape] = field(default_factory=list)

    def svg(self) -> str:
        """The picture as SVG.

        >>> Picture(10, 10, "one dot", [Dot((5, 5), 2, "red")]).svg().splitlines()[3]
        '<circle cx="5" cy="5" r="2" fill="red"/>'
        """
        size = f'width="{self.width}" height="{self.height}" viewBox="0 0 {self.width} {self.height}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="system-ui, sans-serif" role="img">'
        paper = f'<rect width="100%" height="100%" fill="{PAPER}"/>'
        shapes = [_svg_shape(shape) for shape in self.shapes]
        return "\n".join([head, f"<title>{escape(self.title)}</title>", paper, *shapes, "</svg>", ""])

    def png(self) -> bytes:
        """The picture as PNG, at two pixels per unit, drawn by Graphviz as `draw` is."""
        return rendered(_dot(self), "png", placed=True)

    def encoded(self, path: str | os.PathLike[str]) -> bytes:
        """The content for a file of that name: its ending says which form."""
        return self.svg().encode() if file_form(path) == "svg" else self.png()


def file_form(path: str | os.PathLike[str]) -> str:
    """`svg` or `png`, by the ending of the name; anything else is an error.

    >>> file_form("Loss.PNG")
    'png'
    """
    ending = os.path.splitext(os.fspath(path))[1].lower()
    if ending not in (".svg", ".png"):
        raise ValueError(f"{os.fspath(path)}: expected a file name that ends in .svg or .png")
    return ending[1:]


# ---------------------------------------------------------------- SVG


def _svg_shape(shape: Shape) -> str:
    if isinstance(shape, Line):
        points = " ".join(f"{x:.4g},{y:.4g}" for x, y in shape.points)
        stroke = f'stroke="{shape.colour}" stroke-width="{shape.width:g}"'
        return f'<polyline points="{points}" fill="none" {stroke} stroke-linejoin="round" stroke-linecap="round"/>'
    if isinstance(shape, Dot):
        x, y = shape.centre
        return f'<circle cx="{x:.4g}" cy="{y:.4g}" r="{shape.radius:g}" fill="{shape.colour}"/>'
    if isinstance(shape, Box):
        (x, y), (width, height) = shape.corner, shape.size
        place = f'x="{x:.5g}" y="{y:.5g}" width="{width:.5g}" height="{height:.5g}"'
        return f'<rect {place} fill="{shape.colour}" shape-rendering="crispEdges"/>'
    x, y = shape.at
    style = f'font-size="{shape.size:g}" fill="{shape.colour}" text-anchor="{shape.anchor}"'
    return f'<text x="{x:.4g}" y="{y:.4g}" {style}>{escape(shape.text)}</text>'


# ---------------------------------------------------------------- PNG, by Graphviz


def _dot(picture: Picture) -> str:
    """The picture as Graphviz source: words are nodes, and all else is drawn behind them in its xdot language."""
    width, height = picture.width, picture.height
    # with nothing behind them, Graphviz would move the words
    drawn = [Box((0, 0), (width, height), PAPER), *(it for it in picture.shapes if not isinstance(it, Words))]
    behind = " ".join(_xdot_shape(shape, height) for shape in drawn)
    words = [_dot_words(shape, height) for shape in picture.shapes if isinstance(shape, Words)]
    return "\n".join([
        "digraph picture {",
        f'  graph [pad=0, dpi={PNG_DPI}, bgcolor="{PAPER}", viewport="{width},{height},1,{width / 2},{height / 2}",',
        f"  _background={_in_pieces(behind)}];",
        f"  node [shape=plaintext, fixedsize=true, margin=0, width={2 * WIDEST / 72}, height=1, fontname=sans];",
        *words,
        "}",
    ])  # fmt: skip


def _in_pieces(text: str) -> str:
    """A quoted string; Graphviz reads none that is longer than some 16,000 bytes, and adds them up."""
    return " + ".join(f'"{text[i : i + 8000]}"' for i in range(0, len(text) or 1, 8000))


def _xdot_shape(shape: Line | Dot | Box, height: float) -> str:
    """In Graphviz's language, where y grows upwards and a text comes after its length."""

    def along(points: Sequence[Point]) -> str:
        return f"{len(points)} " + " ".join(f"{x:.6g} {height - y:.6g}" for x, y in points)

    pen = f"c {len(shape.colour)} -{shape.colour} C {len(shape.colour)} -{shape.colour}"
    if isinstance(shape, Line):
        stroke = f"setlinewidth({shape.width:g})"
        return f"{pen} S {len(stroke)} -{stroke} L {along(shape.points)}"
    if isinstance(shape, Dot):
        x, y = shape.centre
        return f"{pen} S 15 -setlinewidth(0) E {x:.6g} {height - y:.6g} {shape.radius:g} {shape.radius:g}"
    (x, y), (wide, high) = shape.corner, shape.size
    # a thin line around it: without one, the paper shows between two of them
    return f"{pen} S 15 -setlinewidth(1) P {along([(x, y), (x + wide, y), (x + wide, y + high), (x, y + high)])}"


def _dot_words(words: Words, height: float) -> str:
    """A node much wider than its words, which lie at its left, in its middle or at its right."""
    aside, end = {"start": (WIDEST, "\\l"), "middle": (0.0, ""), "end": (-WIDEST, "\\r")}[words.anchor]
    x, y = words.at
    place = f"{x + aside:.6g},{height - y + words.size / 3:.6g}"
    label = dot_string(words.text)[:-1] + end + '"'
    return f'  "{x} {y}" [pos="{place}", label={label}, fontsize={words.size:g}, fontcolor="{words.colour}"];'


# ---------------------------------------------------------------- the pictures


@dataclass(frozen=True)
class Axes:
    """Where numbers lie in a picture: limits (left, right, bottom, top) on a frame (the same, in the picture)."""

    limits: tuple[float, float, float, float]
    frame: tuple[float, float, float, float]

    def at(self, x: float, y: float) -> Point:
        left, right, bottom, top = self.limits
        frame_left, frame_right, frame_bottom, frame_top = self.frame
        return (
            frame_left + (x - left) / ((right - left) or 1.0) * (frame_right - frame_left),
            frame_bottom + (y - bottom) / ((top - bottom) or 1.0) * (frame_top - frame_bottom),
        )

    def shapes(self) -> Iterator[Shape]:
        """The grid and its numbers."""
        left, right, bottom, top = self.limits
        for y in round_numbers(bottom, top):
            yield Line([self.at(left, y), self.at(right, y)], GRID)
            yield Words((self.frame[0] - 8, self.at(left, y)[1] + 4), f"{y:g}", 12, anchor="end")
        for x in round_numbers(left, right):
            yield Line([self.at(x, bottom), self.at(x, top)], GRID)
            yield Words((self.at(x, bottom)[0], self.frame[2] + 18), f"{x:g}", 12, anchor="middle")


def round_numbers(low: float, high: float, about: int = 6) -> list[float]:
    """Numbers to mark on an axis: multiples of 1, 2 or 5 times a power of ten.

    >>> round_numbers(0, 500)
    [0.0, 100.0, 200.0, 300.0, 400.0, 500.0]
    """
    if not high > low:
        return [low]
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    spacing = next(step * power for step in (1, 2, 5, 10) if step * power >= rough)
    first, last = math.ceil(low / spacing - 1e-9), math.floor(high / spacing + 1e-9)
    return [float(f"{i * spacing:.12g}") for i in range(first, last + 1)]


def loss_curve(
    losses: Sequence[float],
    validation_losses: Sequence[tuple[int, float]] = (),
    title: str = "loss by step",
    size: tuple[int, int] = (720, 420),
) -> Picture:
    """The loss of each step, its running mean, and the validation losses; `losses[0]` is that of step 1."""
    picture = Picture(*size, title)
    left, right, bottom = min(64.0, size[0] / 10), size[0] - 24.0, size[1] - 48.0
    trained = [(float(step), loss) for step, loss in enumerate(losses, 1) if is_shown(loss)]
    validated = [(float(step), loss) for step, loss in validation_losses if is_shown(loss)]
    heights = [loss for _, loss in trained + validated] or [0.0, 1.0]
    margin = (max(heights) - min(heights)) * 0.05 or 0.5
    limits = (0.0, float(max(len(losses), 1)), min(heights) - margin, max(heights) + margin)
    axes = Axes(limits, frame=(left, right, bottom, 64.0))
    below = Words(((left + right) / 2, bottom + 36), "step", 12, anchor="middle")
    picture.shapes += [*axes.shapes(), Words((left, 30), title, 15, INK), below]
    window = max(1, min(50, len(trained) // 10))
    means = list(zip((step for step, _ in trained), smoothed([loss for _, loss in trained], window), strict=True))
    legend = [("loss", PALE_BLUE), (f"mean of {window}", BLUE), ("validation", ORANGE)]
    for points, (_, colour), width in zip((trained, means, validated), legend, (1.0, 2.0, 2.0), strict=True):
        placed = [axes.at(*point) for point in thinned(points)]
        picture.shapes += [Line(placed, colour, width)] if len(placed) > 1 else []
        if points is validated or len(placed) == 1:
            picture.shapes += [Dot(place, 3.5, colour) for place in placed]
    x = left + 2.0
    for name, colour in legend:
        picture.shapes += [Line([(x, 48), (x + 16, 48)], colour, 3.0), Words((x + 22, 52), name, 12)]
        x += 40.0 + 7.0 * len(name)
    return picture


def thinned(points: Sequence[Point]) -> list[Point]:
    """The points, or where they are many, the means of equal runs of them."""
    run = -(-len(points) // LARGEST_CURVE) or 1
    runs = [points[i : i + run] for i in range(0, len(points), run)]
    return [(sum(x for x, _ in part) / len(part), sum(y for _, y in part) / len(part)) for part in runs]


def decision_map(
    positive: Sequence[Sequence[bool]],
    points: Sequence[tuple[float, float, bool]],
    limits: tuple[float, float, float, float],
    title: str,
) -> Picture:
    """The regions of a classifier, as rows of cells from the top, and the points (x, y, class) that it learnt from."""
    picture = Picture(720, 520, title)
    frame = (64.0, 696.0, 472.0, 56.0)
    axes = Axes(limits, frame)
    cell_width = (frame[1] - frame[0]) / len(positive[0])
    cell_height = (frame[2] - frame[3]) / len(positive)
    for j, row in enumerate(positive):
        start = 0
        for i in range(1, len(row) + 1):
            if i == len(row) or row[i] != row[start]:
                corner = (frame[0] + start * cell_width, frame[3] + j * cell_height)
                picture.shapes.append(Box(corner, ((i - start) * cell_width, cell_height), REGIONS[row[start]]))
                start = i
    picture.shapes += [*axes.shapes(), Words((64, 32), title, 15, INK)]
    for x, y, kind in points:
        picture.shapes += [Dot(axes.at(x, y), 5.5, PAPER), Dot(axes.at(x, y), 4.5, BLUE if kind else ORANGE)]
    return picture
