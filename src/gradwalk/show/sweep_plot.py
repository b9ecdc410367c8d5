"""The picture of a sweep: the results against each option that was varied, or the curves where only the seed was."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gradwalk.show.plot import BLUE, GRID, INK, ORANGE, PALE_BLUE, Axes, Dot, Line, Picture, Shape, Words, round_numbers
from gradwalk.show.terminal_plot import is_shown

Result = dict[str, Any]  # a run: its options, and what it came to
Frame = tuple[float, float, float, float]
PANELS = 4  # options at most
TICKS = 8  # values of an option that are marked one by one; of more, round numbers


def sweep_picture(
    runs: Sequence[Result], varied: Sequence[str], loss_of: Callable[[Result], float], title: str
) -> Picture:
    """One panel for each of the first options; the best run is orange."""
    shown = [run for run in runs if is_shown(loss_of(run))]
    best = min(shown, key=loss_of, default=None)
    names = [name for name in varied if name != "seed"][:PANELS]
    curves = not names and any(run.get("validation_losses") for run in shown)
    panels = names or ["step" if curves else "seed"]
    picture = Picture(720, 64 + 356 * len(panels), title)
    measured = "validation loss" if any(run.get("validation_loss") is not None for run in shown) else "loss"
    picture.shapes += [Words((64, 30), title, 15, INK), Words((64, 52), f"{measured}, orange: the best run", 12)]
    for place, name in enumerate(panels):
        frame = (64.0, 696.0, 64.0 + 356.0 * place + 308.0, 64.0 + 356.0 * place + 10.0)
        picture.shapes += _curves(shown, best, frame) if curves else _dots(shown, best, name, loss_of, frame)
        picture.shapes.append(Words((380, frame[2] + 36), name.replace("_", "-"), 12, anchor="middle"))
    return picture


def _limits(xs: Sequence[float], ys: Sequence[float], beside: float) -> tuple[float, float, float, float]:
    low, high = min(ys, default=0.0), max(ys, default=1.0)
    margin = (high - low) * 0.05 or 0.5
    return min(xs, default=0.0) - beside, max(xs, default=1.0) + beside, low - margin, high + margin


def _curves(runs: Sequence[Result], best: Result | None, frame: Frame) -> Iterator[Shape]:
    curves = [[(float(x), float(y)) for x, y in run["validation_losses"] if is_shown(y)] for run in runs]
    points = [point for curve in curves for point in curve]
    axes = Axes(_limits([0.0, *(x for x, _ in points)], [y for _, y in points], 0.0), frame)
    yield from axes.shapes()
    for run, curve in sorted(zip(runs, curves, strict=True), key=lambda each: each[0] is best):  # the best one on top
        placed = [axes.at(*point) for point in curve]
        colour, width = (ORANGE, 2.5) if run is best else (PALE_BLUE, 1.0)
        yield from [Line(placed, colour, width)] if len(placed) > 1 else [Dot(at, 3.5, colour) for at in placed]


def _dots(
    runs: Sequence[Result], best: Result | None, name: str, loss_of: Callable[[Result], float], frame: Frame
) -> Iterator[Shape]:
    """A dot for each run, and a line through the means of those with one value of the option."""
    values = [run["options"].get(name) for run in runs]
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    distinct = sorted(set(values), key=None if numbers else str)
    if len(distinct) <= TICKS or not numbers:
        place = {value: float(i) for i, value in enumerate(distinct)}
        marks = [(place[value], f"{value:.3g}" if type(value) is float else str(value)) for value in distinct]
    elif distinct[0] > 0 and distinct[-1] / distinct[0] >= 10.0:  # by factors
        place = {value: math.log10(value) for value in distinct}
        marks = [(x, f"{10.0**x:.2g}") for x in round_numbers(place[distinct[0]], place[distinct[-1]])]
    else:
        place = {value: float(value) for value in distinct}
        marks = [(x, f"{x:g}") for x in round_numbers(distinct[0], distinct[-1])]
    xs = list(place.values())
    limits = _limits(xs, [loss_of(run) for run in runs], 0.05 * (max(xs) - min(xs)) or 0.5)
    axes = Axes(limits, frame)
    for y in round_numbers(limits[2], limits[3]):
        yield Line([axes.at(limits[0], y), axes.at(limits[1], y)], GRID)
        yield Words((frame[0] - 8, axes.at(0.0, y)[1] + 4), f"{y:g}", 12, anchor="end")
    for x, text in marks:
        yield Line([axes.at(x, limits[2]), axes.at(x, limits[3])], GRID)
        yield Words((axes.at(x, 0.0)[0], frame[2] + 18), text, 12, anchor="middle")
    if len(distinct) < len(runs):
        results = {
            value: [loss_of(run) for run, its in zip(runs, values, strict=True) if its == value] for value in distinct
        }
        means = [axes.at(place[value], sum(found) / len(found)) for value, found in results.items()]
        yield from [Line(means, PALE_BLUE, 2.0)] if len(means) > 1 else []
    for run, value in sorted(zip(runs, values, strict=True), key=lambda each: each[0] is best):
        yield Dot(axes.at(place[value], loss_of(run)), 3.5, ORANGE if run is best else BLUE)
