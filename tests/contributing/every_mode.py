"""Operations and composites in every mode of the engine that runs this, against their rows on floats.

    GRADWALK_ENGINE=reference python every_mode.py [name …]

prints a line for each mode that gives other numbers.
"""

from __future__ import annotations

import itertools
import math
import random
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import gradwalk
from gradwalk.operation import Op, nowhere
from gradwalk.ops import OPS
from gradwalk.row_ops import COMPOSITES, Composite

Function = Callable[[Sequence[Any]], Any]
Numbers = list[float]


def close(expected: Numbers, actual: Sequence[float], relative: float = 1e-12) -> bool:
    scale = max(map(abs, expected))
    return all(
        abs(x - y) <= relative * max(abs(x), scale) or (x != x and y != y)
        for x, y in zip(expected, actual, strict=True)
    )


# ---------------------------------------------------------------- the modes


def plain(function: Function, xs: Numbers) -> Numbers:
    leaves = [gradwalk.Value(x) for x in xs]
    out = function(leaves)
    out.backward()
    return [out.data, *(leaf.grad for leaf in leaves)]


def compiled(function: Function, xs: Numbers) -> Numbers:
    out, grads = gradwalk.compile(function).value_and_grad(xs)
    return [out, *grads]


def exact(function: Function, xs: Numbers) -> Numbers:
    out, grads = gradwalk.compile(function, exact=True).value_and_grad(xs)
    return [out, *grads]


def batched(function: Function, xs: Numbers) -> Numbers:
    """As one example of many: the others are shifted a little, and the leaf that all share has the gradient."""
    shared = [gradwalk.Value(x) for x in xs]
    step = gradwalk.compile(lambda offset: function([x + offset for x in shared]))
    outs = step.map([(0.0,)] * 11)
    gradwalk.sum(outs).backward()
    return [outs[-1].data, *(x.grad / 11.0 for x in shared)]


def curvature(function: Function, xs: Numbers) -> Numbers:
    """The Hessian times a direction, by second derivatives of the graph."""
    direction = [0.3 + 0.1 * i for i in range(len(xs))]
    return [float(x) for x in gradwalk.hvp(function)(xs, direction)]


def expected_curvature(gradient: Callable[[Numbers], Numbers], xs: Numbers) -> Numbers:
    """The same by differences of the row's own gradient, and how inexact they are."""

    def along(step: float) -> Numbers:
        moved = [[x + sign * step * (0.3 + 0.1 * i) for i, x in enumerate(xs)] for sign in (1.0, -1.0)]
        return [(up - down) / (2.0 * step) for up, down in zip(*map(gradient, moved), strict=True)]

    return [(4.0 * near - far) / 3.0 for near, far in zip(along(1e-5), along(2e-5), strict=True)]


MODES = {"plain": plain, "compiled": compiled, "exact": exact, "batch": batched}


def wrong_modes(
    name: str, function: Function, gradient: Callable[[Numbers], Numbers], value: float, xs: Numbers
) -> Iterator[str]:
    expected = [value, *gradient(xs)]
    for mode, run in MODES.items():
        found = run(function, xs)
        if not close(expected, found):
            yield f"{name} {mode}: expected {expected}, got {found}"
    by_differences, found = expected_curvature(gradient, xs), curvature(function, xs)
    if all(map(math.isfinite, by_differences)) and not close([1.0, *by_differences], [1.0, *found], 1e-5):
        yield f"{name} higher order: expected {by_differences}, got {found}"


# ---------------------------------------------------------------- operations


def samples(op: Op) -> list[tuple[float, ...]]:
    return [sample if isinstance(sample, tuple) else (sample,) for sample in op.samples]


def check_op(op: Op) -> Iterator[str]:
    """All samples with the same parameters at once: that fills vectors, and leaves a rest."""
    width = len(op.inputs)
    by_parameters: dict[tuple[float, ...], list[tuple[float, ...]]] = {}
    for point in samples(op):
        by_parameters.setdefault(point[width:], []).append(point[:width])
    for parameters, points in by_parameters.items():
        repeated = (points * 11)[:11]

        def function(xs: Sequence[Any], parameters: Any = parameters, count: int = len(repeated)) -> Any:
            rows = [xs[i * width : (i + 1) * width] for i in range(count)]
            return gradwalk.sum([row[0]._apply(op.name, *row, *parameters) * (i + 1.0) for i, row in enumerate(rows)])

        def gradient(xs: Numbers, parameters: Any = parameters, count: int = len(repeated)) -> Numbers:
            found: Numbers = []
            for i in range(count):
                row = xs[i * width : (i + 1) * width]
                local = op.local_grads(*row, *parameters, op.forward(*row, *parameters))
                found += [float(each) * (i + 1.0) for each in local]
            return found

        value = math.fsum(op.forward(*point, *parameters) * (i + 1.0) for i, point in enumerate(repeated))
        xs = [x for point in repeated for x in point]
        yield from wrong_modes(f"{op.name}{parameters}", function, gradient, value, xs)
        if op.jumps is not nowhere or op.kinks is not nowhere:
            yield from check_edges_of_op(op, points[0], parameters)


def zeros(distance: Callable[[float], float]) -> list[float]:
    """Places from -4 to 4 where a distance is 0; of a stretch, what is next to its ends."""
    found = []
    grid = [i / 64.0 + 0.003 for i in range(-256, 257)]
    distances = [distance(x) for x in grid]
    for i in range(1, len(grid) - 1):
        around = distances[i - 1], distances[i + 1]
        if math.inf > distances[i] <= min(around) and distances[i] < max(around):
            low, high = grid[i - 1], grid[i + 1]
            for _ in range(90):  # a third of it is left out each time: then nothing is left
                a, b = low + (high - low) / 3.0, high - (high - low) / 3.0
                low, high = (low, b) if distance(a) <= distance(b) else (a, high)
            place = round(low, 12)
            if distance(place) < 1e-9:
                found.append(place)
    return found


TERMS = 29  # more than a compiled function adds in plain order: FEW of native/executor/tape.c


def check_edges(name: str, apply: Callable[[Any], Any], distance: Callable[[float], float]) -> Iterator[str]:
    """A sum next to an edge, added in another order than the plain function does: never on the other side of it."""
    source = random.Random(7)

    def function(xs: Sequence[Any]) -> Any:
        return apply(gradwalk.sum([x * x for x in xs[:TERMS]]) - xs[TERMS])

    replayed = gradwalk.compile(function)
    for place in zeros(distance):
        for _ in range(40):
            xs = [source.uniform(-1.0, 1.0) for _ in range(TERMS)]
            total = 0.0
            for x in xs:
                total += x * x
            xs.append(total - place)
            found, grads = replayed.value_and_grad(xs)
            expected = plain(function, xs)
            if not close([1.0, *expected], [1.0, found, *grads], 1e-9):
                yield f"{name} at its edge {place}: expected {expected}, got {[found, *grads]}"
                return


def check_edges_of_op(op: Op, point: tuple[float, ...], parameters: tuple[float, ...]) -> Iterator[str]:
    for i, name in enumerate(op.inputs):
        if name in op.edge_inputs:

            def at(x: Any, i: int = i) -> tuple[Any, ...]:
                return (*point[:i], x, *point[i + 1 :], *parameters)

            def distance(x: float) -> float:
                return float(min(op.jumps(*at(x)), op.kinks(*at(x))))

            yield from check_edges(f"{op.name}{parameters} by {name}", lambda x: x._apply(op.name, *at(x)), distance)


# ---------------------------------------------------------------- composites

ROW = [0.3, -1.2, 2.0, 0.7, -0.1, 1.5, -2.5, 0.9, 0.2, 1.1]


def check_composite(row: Composite) -> Iterator[str]:
    if row.name == "take":
        return  # of a row, not of its numbers: tests/compiler has it
    parameters = [0.35 for _ in row.parameters]
    target = [2] if row.target else []
    called = getattr(gradwalk, row.called_by)
    for count in (10, 3):
        xs = entries_of(row, count)

        def function(values: Sequence[Any]) -> Any:
            count = len(values) // len(row.inputs)
            lists = [values[i * count : (i + 1) * count] for i in range(len(row.inputs))]
            out = called(*lists, *target, *parameters)
            return gradwalk.sum([each * (i + 1.0) for i, each in enumerate(out)]) if row.per_entry else out * 1.5

        def outputs(numbers: Numbers) -> list[tuple[float, float, tuple[Any, ...]]]:
            count = len(numbers) // len(row.inputs)
            places: list[tuple[Any, ...]] = [(i, *parameters) for i in range(count)]
            given = places if row.per_entry else [(*target, *parameters)]
            weights = [i + 1.0 for i in range(count)] if row.per_entry else [1.5]
            return [(weight, float(row.on(numbers, *each)), each) for weight, each in zip(weights, given, strict=True)]

        def gradient(numbers: Numbers) -> Numbers:
            found = [0.0] * len(numbers)
            for weight, out, given in outputs(numbers):
                local = row.local_grads_on(numbers, *given, out)
                found = [grad + weight * float(each) for grad, each in zip(found, local, strict=True)]
            return found

        value = math.fsum(weight * out for weight, out, _ in outputs(xs))
        yield from wrong_modes(f"{row.name} of {count}", function, gradient, value, xs)
        yield from check_many_rows(row, function, gradient, [xs] * 12)
        if row.padding:  # then rows of other lengths are rows of the same instruction
            yield from check_many_rows(row, function, gradient, [entries_of(row, count - k % 3) for k in range(12)])
        for others in (xs[:-1], [0.0] * (len(xs) - 1)):
            distance = distance_of(row, others, parameters)
            yield from check_edges(f"{row.name} of {count}", lambda x, others=others: function([*others, x]), distance)


def entries_of(row: Composite, count: int) -> Numbers:
    return ROW[:count] + ([x * 0.5 - 0.2 for x in ROW[:count]] if len(row.inputs) > 1 else [])


def distance_of(row: Composite, others: Numbers, parameters: Numbers) -> Callable[[float], float]:
    """How far the last entry is from where something changes at once; two that are equal may be the one to choose."""
    rivals = others if row.chooses else []
    return lambda x: min([row.edge_distance([*others, x], *parameters), *(abs(x - each) for each in rivals)])


def check_many_rows(
    row: Composite, function: Function, gradient: Callable[[Numbers], Numbers], of: Sequence[Numbers]
) -> Iterator[str]:
    """Twelve of them in one program, which is one instruction."""
    rows = [[x + 0.01 * k for x in xs] for k, xs in enumerate(of)]
    ends = [*itertools.accumulate(map(len, rows), initial=0)]

    def all_rows(values: Sequence[Any]) -> Any:
        return gradwalk.sum([function(values[begin:end]) for begin, end in itertools.pairwise(ends)])

    expected = [x for each in rows for x in gradient(each)]
    found = compiled(all_rows, [x for each in rows for x in each])[1:]
    if not close(expected, found):
        yield f"{row.name} in many rows: expected {expected}, got {found}"


def wrong(names: Sequence[str] = ()) -> list[str]:
    """What gives other numbers, of these operations and composites, or of all."""
    rows = [row for row in (*OPS.values(), *COMPOSITES.values()) if not names or row.name in names]
    return [line for row in rows for line in (check_op(row) if isinstance(row, Op) else check_composite(row))]


if __name__ == "__main__":
    warnings.filterwarnings("ignore", ".*the derivative is 0, because the result is rounded")
    print("\n".join(wrong(sys.argv[1:])))
