"""Checking derivatives by central differences: `gradcheck` says what it found, `assert_gradients` is for tests.

The step is chosen for each input by trying several and extrapolating. Where the derivative and the differences
disagree, how the differences behave as the step shrinks tells a wrong derivative from a kink, a jump and noise; where
the differences contradict each other, nothing can be told.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from gradwalk import engine
from gradwalk.functional import Argnums, Function, Recording, checked
from gradwalk.structure import flatten, is_number, is_value, values_among

OK, WRONG, KINK, NOISE, JUMP = "ok", "wrong derivative", "kink", "noise", "discontinuity"
UNCLEAR = "can't tell at this step"
_GRAVITY = (OK, UNCLEAR, NOISE, KINK, JUMP, WRONG)

EPS = sys.float_info.epsilon
LEVELS = 7  # halvings of the step in one extrapolation
GOOD = 1e-5  # relative error below which an extrapolation is trusted at once
USABLE = 1e-2  # and above which it is not used at all
SPACINGS = (1e-7, 1e-8, 1e-9)  # relative distances at which noise is looked for

Samples = Callable[[float], Sequence[float] | None]  # the outputs with one input moved by that much; None: undefined


@dataclass(frozen=True)
class Estimate:
    """A derivative by central differences, and how far off it may be."""

    derivative: float
    error: float
    size: float  # of the function itself


@dataclass(frozen=True)
class Entry:
    """One output by one input: its derivative, what the differences say, and the verdict."""

    name: str
    derivative: float
    estimate: Estimate | None
    verdict: str

    @property
    def relative_error(self) -> float:
        """How far apart the two are, relative to the larger; nan where there is nothing to compare with."""
        if self.estimate is None:
            return math.nan
        largest = max(abs(self.derivative), abs(self.estimate.derivative))
        return abs(self.derivative - self.estimate.derivative) / largest if largest else 0.0


@dataclass(frozen=True)
class Report:
    """What gradcheck found; it prints as a verdict and a table of the worst entries."""

    entries: list[Entry]

    @property
    def verdict(self) -> str:
        """The gravest verdict of all entries."""
        return max((entry.verdict for entry in self.entries), key=_GRAVITY.index, default=OK)

    def worst(self, count: int = 10) -> list[Entry]:
        """The entries most in need of a look, the gravest and furthest off first."""

        def order(entry: Entry) -> tuple[int, float]:
            error = entry.relative_error
            return -_GRAVITY.index(entry.verdict), -error if error == error else -math.inf

        return sorted(self.entries, key=order)[:count]

    def __bool__(self) -> bool:
        return self.verdict == OK

    def __str__(self) -> str:
        lines = [("entry", "derivative", "differences", "relative error", "verdict")]
        for entry in self.worst():
            estimate = entry.estimate
            differences = "undefined" if estimate is None else f"{estimate.derivative:.10g} ± {estimate.error:.0e}"
            derivative, error = f"{entry.derivative:.10g}", f"{entry.relative_error:.1e}"
            lines.append((entry.name, derivative, differences, error, entry.verdict))
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        table = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
        ]
        wrong = sum(entry.verdict != OK for entry in self.entries)
        head = (
            f"{self.verdict}: {wrong} of {len(self.entries)} entries" if wrong else f"ok: {len(self.entries)} entries"
        )
        return "\n".join([head, *table])


def gradcheck(f: Function, *args: Any, argnums: Argnums = 0, tolerance: float = 1e-6, **kwargs: Any) -> Report:
    """Compare the derivative of f at these arguments with central differences, entry by entry.

    >>> print(gradcheck(lambda x: abs(x[0]) * x[1], [0.0, 3.0]).verdict)
    kink
    """
    checked("gradcheck", f, argnums)
    if not is_number(tolerance) or not tolerance > 0.0:
        raise ValueError(f"gradcheck: expected a tolerance above 0, got {tolerance!r}")
    given = tuple(_without_values(arg) for arg in args), {name: _without_values(arg) for name, arg in kwargs.items()}
    run = Recording("gradcheck", f, *given, argnums)
    outputs_part = run.all_outputs()
    rows = run.rows("reverse")
    outputs = _names(outputs_part.names("f"), len(run.outputs))
    names = list(run.structure.names("x"))
    point = [leaf.data for leaf in run.inputs]
    entries = []
    for j, name in enumerate(names):
        entries += check_input(
            _moved(f, *given, argnums, point, j), point[j], [row[j] for row in rows], tolerance,
            [name if output == "f" else f"{output} by {name}" for output in outputs],
        )  # fmt: skip
    return Report(entries)


def assert_gradients(f: Function, *args: Any, allow: str | Sequence[str] = (), **options: Any) -> None:
    """Fail, with gradcheck's table, unless the derivative of f is right; `allow` names verdicts to accept.

    >>> assert_gradients(lambda x: x**3, 2.0)
    """
    __tracebackhide__ = True
    allowed = {OK, *([allow] if isinstance(allow, str) else allow)}
    if not allowed <= set(_GRAVITY):
        raise ValueError(f"assert_gradients: expected allow to name some of {', '.join(_GRAVITY)}, got {allow!r}")
    report = gradcheck(f, *args, **options)
    if any(entry.verdict not in allowed for entry in report.entries):
        raise AssertionError(f"gradients: {report}")


def _without_values(arg: Any) -> Any:
    """The argument with plain numbers in place of Values."""
    numbers: list[Any] = []
    try:
        part = flatten(arg, numbers)
    except TypeError:  # what cannot be differentiated may be an argument all the same
        return arg
    if not values_among(numbers):
        return arg
    return part.fill([number.data if is_value(number) else number for number in numbers], as_argument=True)


def _names(names: Any, count: int) -> list[str]:
    listed = list(names)
    assert len(listed) == count
    return listed


def _moved(f: Function, args: Any, kwargs: Any, argnums: Argnums, point: list[float], j: int) -> Samples:
    """f's outputs as plain numbers, as a function of how far input j is moved."""

    def samples(step: float) -> list[float] | None:
        run = _Rerun(f, args, kwargs, argnums, [x + step if i == j else x for i, x in enumerate(point)])
        return run.numbers

    return samples


class _Rerun(Recording):
    """Another run of the same function, at another point."""

    def __init__(self, f: Function, args: Any, kwargs: Any, argnums: Argnums, point: list[float]) -> None:
        self._point = point
        self.numbers: list[float] | None = None
        try:
            super().__init__("gradcheck", f, args, kwargs, argnums)
            self.all_outputs()
        except (ArithmeticError, ValueError):  # outside the domain
            return
        self.numbers = [float(output.data) if is_value(output) else float(output) for output in self.outputs]
        if not all(map(math.isfinite, self.numbers)):
            self.numbers = None

    def _leaves(self, numbers: Any) -> list[Any]:
        return [engine.Value(number) for number in self._point]


# ---------------------------------------------------------------- one input


def check_input(
    samples: Samples, x: float, derivatives: Sequence[float], tolerance: float, names: Sequence[str]
) -> list[Entry]:
    """Every output by one input, which is x."""
    remembered: dict[float, Sequence[float] | None] = {}

    def sampled(step: float) -> Sequence[float] | None:
        if step not in remembered:
            remembered[step] = samples(step)
        return remembered[step]

    return [
        _check_entry(_picked(sampled, i), x, derivative, tolerance, name)
        for i, (derivative, name) in enumerate(zip(derivatives, names, strict=True))
    ]


def _picked(samples: Samples, i: int) -> Callable[[float], float | None]:
    def sample(step: float) -> float | None:
        outputs = samples(step)
        return None if outputs is None else outputs[i]

    return sample


def _check_entry(f: Callable[[float], float | None], x: float, derivative: float, tolerance: float, name: str) -> Entry:
    estimates: list[Estimate] = []  # from large steps to small ones
    noise = _noise(f, x)
    for first_step in _first_steps(f, x):
        estimate = extrapolated(f, x, first_step, noise)
        if estimate is None:
            continue
        estimates.append(estimate)
        if _agree(derivative, estimate, tolerance, GOOD):
            verdict = KINK if _looks_bent(f, x) and _singularity(f, x, derivative) == KINK else OK
            return Entry(name, derivative, estimate, verdict)
    best = min(estimates, key=lambda estimate: estimate.error, default=None)
    singularity = _singularity(f, x, derivative)
    if singularity is not None:
        return Entry(name, derivative, best, singularity)
    if best is None:
        return Entry(name, derivative, None, UNCLEAR)
    if _agree(derivative, best, tolerance, USABLE):
        return Entry(name, derivative, best, OK)
    if not math.isfinite(derivative):
        return Entry(name, derivative, best, WRONG)
    # large steps jump over waves that small ones see, and agree by accident: what smaller ones contradict is dropped
    seen = [*estimates, *_closest(f, x, derivative, best.size)]
    left = [each for i, each in enumerate(estimates) if not any(_contradict(each, finer) for finer in seen[i + 1 :])]
    best = min(left, key=lambda estimate: estimate.error, default=best)
    if left and best.error <= USABLE * max(abs(derivative), abs(best.derivative)):
        return Entry(name, derivative, best, OK if _agree(derivative, best, tolerance, USABLE) else WRONG)
    return Entry(name, derivative, best, NOISE if left and noise > 1e3 * EPS * best.size else UNCLEAR)


def _contradict(one: Estimate, other: Estimate) -> bool:
    apart = abs(one.derivative - other.derivative)
    return apart > 4.0 * (one.error + other.error) + 0.1 * max(abs(one.derivative), abs(other.derivative))


def _closest(f: Callable[[float], float | None], x: float, derivative: float, size: float) -> list[Estimate]:
    """Differences over the smallest distances that leave a digit, where they speak for the derivative."""
    steep = 1e-4 * size / abs(derivative) if derivative else 0.0  # where f would change by that share of itself
    steps = [(x + step) - x for step in (1e-9 * _size(x), 1e-10 * _size(x), steep)]
    pairs = [(f(step), f(-step), step) for step in steps]
    slopes = [
        Estimate((above - below) / (2.0 * step), EPS * max(abs(above), abs(below)) / step, abs(above))
        for above, below, step in pairs
        if above is not None and below is not None and step
    ]
    return [each for each in slopes if abs(each.derivative - derivative) + each.error < 0.1 * abs(derivative)]


def _size(x: float) -> float:
    """What steps are measured by."""
    return max(abs(x), 1.0)


def _first_steps(f: Callable[[float], float | None], x: float) -> list[float]:
    """Large steps lose least to rounding; small ones see past a kink nearby, or a scale that is small itself."""
    size = _size(x)
    steps = [share * size for share in (0.1, 0.01, 1e-3, 1e-5, 1e-7)]
    if 0.0 < abs(x) < 0.1:
        steps += [0.1 * abs(x), 1e-3 * abs(x)]
    rooms = (10.0**-k * size for k in range(4, 14))  # close to where the domain ends, there is less
    room = next((step for step in rooms if f(step) is not None and f(-step) is not None), steps[-1])
    return [*steps, 0.3 * room] if room < steps[2] else steps


def _agree(derivative: float, estimate: Estimate, tolerance: float, trusted: float) -> bool:
    if not math.isfinite(derivative):
        return False
    largest = max(abs(derivative), abs(estimate.derivative))
    apart = abs(derivative - estimate.derivative)
    if estimate.error <= trusted * largest:
        return apart <= tolerance * largest + 4.0 * estimate.error
    # a derivative of 0 has no digits to compare: both are 0 as far as the differences can tell
    return largest <= 4.0 * estimate.error and estimate.error <= 1e-9 * max(estimate.size, 1.0)


def _noise(f: Callable[[float], float | None], x: float) -> float:
    """How much f jitters over a distance at which a smooth function is a straight line: its third differences there.

    Noise is as high however close one looks, waves are not: the lowest of three distances counts.
    """
    third = [_third_difference(f, spacing * _size(x)) for spacing in SPACINGS]
    if third[0] is None and abs(x) > 0.0:
        third = [_third_difference(f, spacing * abs(x)) for spacing in SPACINGS]
    return min(filter(None, third), default=0.0)  # where it is 0, nothing was seen: a step of rounding is wider


def _third_difference(f: Callable[[float], float | None], spacing: float) -> float | None:
    numbers = [number for k in range(-3, 4) if (number := f(k * spacing)) is not None]
    if len(numbers) < 7:
        return None
    for _ in range(3):
        numbers = [after - before for before, after in pairwise(numbers)]
    return max(map(abs, numbers)) / math.sqrt(20.0)  # those of pure noise are that much larger


def extrapolated(
    f: Callable[[float], float | None], x: float, first_step: float, noise: float = 0.0
) -> Estimate | None:
    """Central differences with the step halved again and again, extrapolated to step 0 (Ridders' way).

    >>> estimate = extrapolated(lambda step: math.sin(1.0 + step), 1.0, 0.1)
    >>> abs(estimate.derivative - math.cos(1.0)) < 1e-11
    True
    """
    previous: list[float] = []
    best: Estimate | None = None
    for level in range(LEVELS):
        step = first_step / 2.0**level
        step = (x + step) - x  # a step that floats can take exactly
        above, below = f(step), f(-step)
        if above is None or below is None or step == 0.0:
            previous = []
            continue
        size = max(abs(above), abs(below))
        rounding = (4.0 * noise + 2.0 * EPS * size) / step
        row = [(above - below) / (2.0 * step)]
        for k, coarser in enumerate(previous):
            factor = 4.0 ** (k + 1)
            row.append((factor * row[k] - coarser) / (factor - 1.0))
            error = max(abs(row[k + 1] - row[k]), abs(row[k + 1] - coarser)) + rounding
            if error < math.inf and (best is None or error <= best.error):  # what overflows tells nothing
                best = Estimate(row[k + 1], error, size)
        previous = row
    return best


# ---------------------------------------------------------------- what the differences look like close by


def _looks_bent(f: Callable[[float], float | None], x: float) -> bool:
    """Whether the slopes to both sides of x differ at a small step: a reason to look closer."""
    slopes = _one_sided(f, x, 1e-5 * _size(x))
    if slopes is None:
        return False
    right, left, rounding = slopes
    return abs(right - left) > 1e-2 * max(abs(right), abs(left)) + 100.0 * rounding


def _one_sided(f: Callable[[float], float | None], x: float, step: float) -> tuple[float, float, float] | None:
    """The slope to the right, the slope to the left, and how much of them rounding may be."""
    step = (x + step) - x
    here, above, below = f(0.0), f(step), f(-step)
    if here is None or above is None or below is None:
        return None
    rounding = 4.0 * EPS * max(abs(here), abs(above), abs(below)) / step
    return (above - here) / step, (here - below) / step, rounding


def _singularity(f: Callable[[float], float | None], x: float, derivative: float) -> str | None:
    """`discontinuity` or `kink` if there is one at x, as far as steps down to 1e-7 can tell."""
    steps = [_size(x) * 10.0**-k for k in (4, 5, 6, 7)]
    here, tiny = f(0.0), math.ulp(x)
    if here is None:
        return None
    if (f(tiny) is None) != (f(-tiny) is None):
        inward = tiny if f(-tiny) is None else -tiny
        slope = ((f(inward) or 0.0) - here) / inward
        # the edge of the domain: there is only one side; or the last float before it, where there is a derivative
        return None if abs(slope - derivative) < 0.75 * abs(derivative) else KINK
    slopes = [_one_sided(f, x, step) for step in steps]
    seen = [(slope, step) for slope, step in zip(slopes, steps, strict=True) if slope is not None]
    if len(seen) < len(steps):
        return None
    for side in (0, 1):
        jumps = [slope[side] * step for slope, step in seen]
        noise = max(slope[2] * step for slope, step in seen)
        # a jump is as high however close one looks; what is smooth would be 10 times lower at each step
        if min(map(abs, jumps)) > 1e3 * noise and max(jumps) - min(jumps) < 0.05 * max(map(abs, jumps)):
            return JUMP
    sides = [side for slope, _ in seen for side in slope[:2]]
    steepness = [min(abs(right), abs(left)) for (right, left, _), _ in seen]
    if (min(sides) > 0.0 or max(sides) < 0.0) and all(2.0 < b / a < 8.0 for a, b in pairwise(steepness)):
        return KINK  # a vertical tangent: steeper the closer one looks, but less so than a jump, or than noise
    clear = [right - left for (right, left, rounding), _ in seen if abs(right - left) > 50.0 * rounding]
    # a kink is as sharp however close one looks; a smooth curve straightens
    sharp = len(clear) >= 3 and max(clear) - min(clear) < 0.2 * max(map(abs, clear))
    return KINK if sharp and min(map(abs, clear)) > 1e-6 * max(map(abs, sides)) else None
