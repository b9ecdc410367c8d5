"""Pictures as files: a loss curve, and a map of a classifier's regions, as SVG or PNG, without a drawing library.

A `Picture` is a list of shapes; `svg()` writes them as text and `png()` draws them itself, letters included.
"""

from __future__ import annotations

import math
import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from gradwalk.show.terminal_plot import smoothed

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, numpy.dtype[numpy.float64]]

Point = tuple[float, float]

INK, FAINT_INK, GRID, PAPER = "#1f2933", "#616e7c", "#e4e7eb", "#ffffff"
PALE_BLUE, BLUE, ORANGE = "#bcd4ee", "#1f5fa8", "#d9730d"
REGIONS = ("#fbe3cc", "#d3e3f5")  # of the negative and of the positive class

PNG_SCALE = 2  # pixels per unit of the picture
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
        """The picture as PNG, at two pixels per unit."""
        import numpy

        canvas = numpy.full((self.height * PNG_SCALE, self.width * PNG_SCALE, 3), 255.0)
        for shape in self.shapes:
            _paint(canvas, shape)
        return _png_file(numpy.rint(canvas).astype(numpy.uint8))

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


# ---------------------------------------------------------------- PNG

# Letters as strokes. Each point is two digits, x from 0 to 4 and y from 0 (below the line) over 2 (on the line) and
# 6 (a small letter's height) to 8; "~" marks a stroke whose corners are rounded; one point alone is a dot.
LETTERS = {
    "a": "~040646420204 4642", "b": "~040646420204 0802", "c": "~454606024243", "d": "~040646420204 4842",
    "e": "0444 ~444606024243", "f": "~381812 0636", "g": "~040646420204 ~464000", "h": "0802 ~04064642",
    "i": "0602 08", "j": "~161000 18", "k": "0802 360432", "l": "0802", "m": "0602 ~04062622 ~24264642",
    "n": "0602 ~04064642", "o": "~040646420204", "p": "~040646420204 0600", "q": "~040646420204 4640",
    "r": "0602 ~040636", "s": "~4546060444420203", "t": "~181232 0636", "u": "~06024244 4642", "v": "062246",
    "w": "0612263246", "x": "0642 4602", "y": "0622 4600", "z": "06460242", "0": "~050848420205", "1": "071812",
    "2": "~07084845 450242", "3": "~0708484525 ~2545420203", "4": "32380444", "5": "480805 ~0546420203",
    "6": "~47480802424505", "7": "084812", "8": "~250508484525 ~250502424525", "9": "~03024248080545", ".": "02",
    ",": "1201", "-": "0535", "+": "0545 2723", ":": "02 05", "%": "0248 07 43", "(": "~18070312", ")": "~08171302",
    "=": "0646 0444", "/": "0248", " ": "",
}  # fmt: skip
UNKNOWN_LETTER = "0208383202"


def _strokes(letter: str) -> list[list[Point]]:
    strokes = []
    for code in LETTERS.get(letter.lower(), UNKNOWN_LETTER).split():
        digits = code.lstrip("~")
        points = [(float(digits[i]), float(digits[i + 1])) for i in range(0, len(digits), 2)]
        strokes.append(_rounded(_rounded(points)) if code.startswith("~") else points)
    return strokes


def _rounded(points: Sequence[Point]) -> list[Point]:
    """The line with every corner cut: each piece keeps its middle half, the ends stay where they are."""
    cut = [points[0]]
    for (x0, y0), (x1, y1) in pairwise(points):
        cut += [(0.75 * x0 + 0.25 * x1, 0.75 * y0 + 0.25 * y1), (0.25 * x0 + 0.75 * x1, 0.25 * y0 + 0.75 * y1)]
    return [*cut, points[-1]]


def _letter_lines(words: Words) -> Iterator[Line]:
    unit = words.size * 0.12
    placed, width = [], 0.0
    for letter in words.text:
        strokes = _strokes(letter)
        placed.append((width, strokes))
        width += max((x for stroke in strokes for x, _ in stroke), default=1.0) + 2.0
    start = words.at[0] - {"start": 0.0, "middle": 0.5, "end": 1.0}[words.anchor] * max(width - 2.0, 0.0) * unit
    for offset, strokes in placed:
        for stroke in strokes:
            points = [(start + (offset + x) * unit, words.at[1] - (y - 2.0) * unit) for x, y in stroke]
            yield Line(points, words.colour, width=words.size * 0.1)


def _paint(canvas: Array, shape: Shape) -> None:
    if isinstance(shape, Words):
        for line in _letter_lines(shape):
            _paint(canvas, line)
    elif isinstance(shape, Box):
        (x, y), (width, height) = shape.corner, shape.size
        left, right, top, bottom = (round(edge * PNG_SCALE) for edge in (x, x + width, y, y + height))
        canvas[max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)] = _rgb(shape.colour)
    elif isinstance(shape, Dot):
        _paint_stroke(canvas, [shape.centre], shape.radius, shape.colour)
    else:
        _paint_stroke(canvas, shape.points, shape.width / 2.0, shape.colour)


def _paint_stroke(canvas: Array, points: Sequence[Point], radius: float, colour: str) -> None:
    """All pixels within `radius` of the line, the outermost ones in part."""
    import numpy

    radius *= PNG_SCALE
    corners = [(x * PNG_SCALE, y * PNG_SCALE) for x, y in points]
    area, left, top = _around(corners, radius, canvas.shape)
    cover = numpy.zeros(canvas[area].shape[:2])
    for (x0, y0), (x1, y1) in zip(corners, corners[1:] or corners, strict=False):
        part, part_left, part_top = _around([(x0 - left, y0 - top), (x1 - left, y1 - top)], radius, cover.shape)
        ys, xs = numpy.ogrid[0 : cover[part].shape[0], 0 : cover[part].shape[1]]
        px, py = xs + (left + part_left + 0.5 - x0), ys + (top + part_top + 0.5 - y0)
        dx, dy = x1 - x0, y1 - y0
        along = numpy.clip((px * dx + py * dy) / ((dx * dx + dy * dy) or 1.0), 0.0, 1.0)
        distance = numpy.hypot(px - along * dx, py - along * dy)
        numpy.maximum(cover[part], numpy.clip(radius + 0.5 - distance, 0.0, 1.0), out=cover[part])
    canvas[area] += (numpy.array(_rgb(colour)) - canvas[area]) * cover[:, :, None]


def _around(corners: Sequence[Point], radius: float, shape: Sequence[int]) -> tuple[tuple[slice, slice], int, int]:
    """The part of an array of that shape that lies within `radius` of the corners, and its left and top."""
    xs, ys = zip(*corners, strict=True)
    left, right = max(math.floor(min(xs) - radius - 1), 0), min(math.ceil(max(xs) + radius + 1), shape[1])
    top, bottom = max(math.floor(min(ys) - radius - 1), 0), min(math.ceil(max(ys) + radius + 1), shape[0])
    return (slice(top, max(top, bottom)), slice(left, max(left, right))), left, top


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _png_file(pixels: numpy.ndarray[Any, numpy.dtype[numpy.uint8]]) -> bytes:
    height, width, _ = pixels.shape

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    rows = b"".join(b"\0" + row.tobytes() for row in pixels)  # 0: this row is stored as it is
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)  # 8 bits each of red, green and blue
    parts = [chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows, 9)), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


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
    return [round(i * spacing, 12) for i in range(first, last + 1)]


def loss_curve(
    losses: Sequence[float], validation_losses: Sequence[tuple[int, float]] = (), title: str = "loss by step"
) -> Picture:
    """The loss of each step, its running mean, and the validation losses; `losses[0]` is that of step 1."""
    picture = Picture(720, 420, title)
    trained = [(float(step), loss) for step, loss in enumerate(losses, 1) if math.isfinite(loss)]
    validated = [(float(step), loss) for step, loss in validation_losses if math.isfinite(loss)]
    heights = [loss for _, loss in trained + validated] or [0.0, 1.0]
    margin = (max(heights) - min(heights)) * 0.05 or 0.5
    limits = (0.0, float(max(len(losses), 1)), min(heights) - margin, max(heights) + margin)
    axes = Axes(limits, frame=(64.0, 696.0, 372.0, 64.0))
    picture.shapes += [*axes.shapes(), Words((64, 30), title, 15, INK), Words((380, 408), "step", 12, anchor="middle")]
    window = max(1, min(50, len(trained) // 10))
    means = list(zip((step for step, _ in trained), smoothed([loss for _, loss in trained], window), strict=True))
    legend = [("loss", PALE_BLUE), (f"mean of {window}", BLUE), ("validation", ORANGE)]
    for points, (_, colour), width in zip((trained, means, validated), legend, (1.0, 2.0, 2.0), strict=True):
        placed = [axes.at(*point) for point in thinned(points)]
        picture.shapes += [Line(placed, colour, width)] if len(placed) > 1 else []
        if points is validated or len(placed) == 1:
            picture.shapes += [Dot(place, 3.5, colour) for place in placed]
    for i, (name, colour) in enumerate(legend):
        x = 66.0 + 120.0 * i
        picture.shapes += [Line([(x, 48), (x + 16, 48)], colour, 3.0), Words((x + 22, 52), name, 12)]
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
