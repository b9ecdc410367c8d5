"""Every operation and every composite where 0 meets infinity, in every mode of the engine that runs this.

    GRADWALK_ENGINE=reference python zero_times_infinity.py [name …]

prints a line for each mode that hands something on where the rule of lesson 14 says nothing.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import gradwalk
from gradwalk.operation import Op
from gradwalk.ops import OPS
from gradwalk.optim import Adam
from gradwalk.row_ops import COMPOSITES, Composite

Function = Callable[[Sequence[Any]], Any]
Numbers = list[float]

NUMBERS = (0.0, 1.0, -1.0, 0.5, 2.0, -2.0, 30.0, -30.0, 1e-310, 1e200)
WEIGHTS = [1.0, 0.0, 0.5, 0.0, 0.25, 0.0, 0.125, 0.125, 0.0, 0.0, 0.0]  # of a batch; all but the first make 1
COPIES = 9  # of a point, side by side: that fills vectors, and leaves a rest


# ---------------------------------------------------------------- the modes: a function's gradient at xs


def eager(function: Function, xs: Numbers) -> Sequence[float]:
    leaves = [gradwalk.Value(x) for x in xs]
    function(leaves).backward()
    return [leaf.grad for leaf in leaves]


def with_graph(function: Function, xs: Numbers) -> Sequence[float]:
    leaves = [gradwalk.Value(x) for x in xs]
    function(leaves).backward(create_graph=True)
    return [leaf.grad if isinstance(leaf.grad, float) else leaf.grad.data for leaf in leaves]


def walked(function: Function, xs: Numbers) -> Sequence[float]:
    leaves = [gradwalk.Value(x) for x in xs]
    walking = gradwalk.walk(function(leaves))
    walking.seek(-1)
    return [walking.grad(leaf) for leaf in leaves]


def jacobian(mode: str) -> Callable[[Function, Numbers], Sequence[float]]:
    return lambda function, xs: gradwalk.jacobian(lambda xs: [function(xs), xs[0]], mode=mode)(xs)[0]


def of_compiled_jacobian(mode: str) -> Callable[[Function, Numbers], Sequence[float]]:
    def run(function: Function, xs: Numbers) -> Sequence[float]:
        return gradwalk.jacobian(gradwalk.compile(lambda xs: [function(xs), xs[0]]), mode=mode)(xs)[0]

    return run


def by_arguments(exact: bool) -> Callable[[Function, Numbers], Sequence[float]]:
    return lambda function, xs: gradwalk.compile(function, exact=exact).value_and_grad(xs)[1]


def by_array(function: Function, xs: Numbers) -> Sequence[float]:
    return gradwalk.grad(gradwalk.compile(function))(np.array(xs)).tolist()


def by_leaves(use: str, exact: bool = False) -> Callable[[Function, Numbers], Sequence[float]]:
    """The Values are closed over, and shared by all inputs of a batch."""

    def run(function: Function, xs: Numbers) -> Sequence[float]:
        leaves = [gradwalk.Value(x) for x in xs]
        compiled = gradwalk.compile(lambda one: function(leaves) * one, exact=exact)
        if use == "node":
            compiled(1.0).backward()
        elif use == "backward":
            compiled.backward(1.0)
        elif use == "map":
            gradwalk.sum(compiled.map(WEIGHTS)[1:]).backward()
        elif use == "one of a map":
            compiled.map(WEIGHTS)[0].backward()
        elif use == "map_backward":
            compiled.map_backward(WEIGHTS[1:])
        elif use == "map_gradients":
            return compiled.map_gradients(WEIGHTS, leaves)[1][0].tolist()
        else:
            compiled.train_step(Adam(leaves, lr=1.0), 1.0)
            return [float(math.isclose(x - 1.0, leaf.data, abs_tol=1e-6)) for x, leaf in zip(xs, leaves, strict=True)]
        return [leaf.grad for leaf in leaves]

    return run


def of_several(function: Function, xs: Numbers) -> Sequence[float]:
    """Results of one call, of which one has no part in what is differentiated."""
    leaves = [gradwalk.Value(x) for x in xs]
    compiled = gradwalk.compile(lambda one: (function(leaves) * one, gradwalk.sum(leaves)))
    compiled(1.0)[0].backward()
    return [leaf.grad for leaf in leaves]


MODES = {
    "eager": eager, "create_graph": with_graph, "walk": walked,
    "jacobian": jacobian("reverse"), "compiled jacobian": of_compiled_jacobian("reverse"),
    "compiled": by_arguments(False), "exact": by_arguments(True), "array": by_array, "several": of_several,
    **{use: by_leaves(use) for use in ("node", "backward", "map", "one of a map", "map_backward", "map_gradients",
                                       "train_step")},
    "exact node": by_leaves("node", exact=True), "exact map": by_leaves("map_backward", exact=True),
}  # fmt: skip
SECOND = {"hvp": lambda function: gradwalk.hvp(function), "compiled hvp": lambda f: gradwalk.hvp(gradwalk.compile(f))}
FORWARD = {"jacobian forward": jacobian("forward"), "compiled jacobian forward": of_compiled_jacobian("forward")}


# ---------------------------------------------------------------- where 0 meets infinity

Point = tuple[Function, Numbers, Numbers]  # an operation of a list of numbers, the numbers, its local gradients there


def points_of_op(op: Op) -> Iterator[Point]:
    samples = [sample if isinstance(sample, tuple) else (sample,) for sample in op.samples]
    for parameters in sorted({sample[len(op.inputs) :] for sample in samples}):
        for xs in itertools.product(NUMBERS, repeat=len(op.inputs)):
            numbers = (*xs, *parameters)
            if op.domain(*numbers) and math.isfinite(out := op.forward(*numbers)):
                apply = lambda xs, given=parameters: xs[0]._apply(op.name, *xs, *given)  # noqa: E731
                yield apply, list(xs), [float(slope) for slope in op.local_grads(*numbers, out)]


def points_of_composite(row: Composite) -> Iterator[Point]:
    if row.name == "take":
        return  # it hands on what it gets
    called = getattr(gradwalk, row.called_by)
    given = [*([1] if row.target else []), *(0.5 for _ in row.parameters)]
    width = 3
    for xs in itertools.product((0.0, 1.0, -2.0, 800.0), repeat=width * len(row.inputs)):
        try:
            out = row.on(list(xs), *([1] if row.indexed else []), *given[bool(row.target) :])
            local = row.local_grads_on(list(xs), *([1] if row.indexed else []), *given[bool(row.target) :], out)
        except (ValueError, ArithmeticError):
            continue

        def apply(xs: Sequence[Any]) -> Any:
            made = called(*(xs[i : i + width] for i in range(0, len(xs), width)), *given)
            return made[1] if row.per_entry else made

        if math.isfinite(float(out)):
            yield apply, list(xs), [float(slope) for slope in local]


def as_often_as_the_first(apply: Function, width: int) -> Function:
    """Each copy of it counts as many times as the first number says: 0 times, or nan times."""

    def function(xs: Sequence[Any]) -> Any:
        times, *rest = xs
        made = [apply(rest[i : i + width]) for i in range(0, len(rest), width)]
        return gradwalk.sum([times * each for each in made]) + gradwalk.sum(rest)

    return function


def infinite_upstream(apply: Function, width: int) -> Function:
    """Each copy of it goes into a root where that is 0."""

    def function(xs: Sequence[Any]) -> Any:
        value, *rest = xs
        made = [apply(rest[i : i + width]) for i in range(0, len(rest), width)]
        return gradwalk.sum([(each - value).cbrt() for each in made]) + gradwalk.sum(rest)

    return function


def cases(row: Op | Composite, copies: int) -> Iterator[tuple[str, Function, Numbers, list[int]]]:
    """What it is, the function, the numbers, and the places of those that get nothing but the 1 of their sum."""
    points = list(points_of_op(row) if isinstance(row, Op) else points_of_composite(row))
    steep = [point for point in points if not all(map(math.isfinite, point[2]))]
    flat = [point for point in points if 0.0 in point[2]]
    for apply, xs, _ in steep[:1]:
        places = list(range(1, copies * len(xs) + 1))
        yield "zero upstream", as_often_as_the_first(apply, len(xs)), [0.0, *(xs * copies)], places
    for apply, xs, slopes in flat[-1:]:
        value = apply(list(map(gradwalk.Value, xs))).data
        places = [1 + i for i, slope in enumerate(slopes * copies) if slope == 0.0]
        yield "infinite upstream", infinite_upstream(apply, len(xs)), [value, *(xs * copies)], places
        if row.chooses:
            yield "nan upstream", as_often_as_the_first(apply, len(xs)), [math.nan, *(xs * copies)], places


def wrong(names: Sequence[str] = ()) -> Iterator[str]:
    """What hands something on, of these operations and composites, or of all."""
    rows = [row for row in (*OPS.values(), *COMPOSITES.values()) if not names or row.name in names]
    for row, (modes, copies) in itertools.product(rows, ((MODES, COPIES), (FORWARD, 1))):
        for (what, function, xs, places), (mode, run) in itertools.product(cases(row, copies), modes.items()):
            if what == "nan upstream" and mode == "train_step":
                continue  # where the value is nan, nothing is moved
            found = run(function, xs)
            if any(found[i] != 1.0 for i in places) or (what != "nan upstream" and any(map(math.isnan, found))):
                got = [found[i] for i in places[:2]]
                yield f"{row.name}, {what}, {mode}: expected {[1.0] * len(got)} at {xs[:4]}, got {got}"


def wrong_twice(names: Sequence[str] = ()) -> Iterator[str]:
    """The same of second derivatives: where the gradient hands on nothing, nothing changes as the inputs move."""
    rows = [row for row in (*OPS.values(), *COMPOSITES.values()) if not names or row.name in names]
    for row, (mode, product) in itertools.product(rows, SECOND.items()):
        for what, function, xs, places in cases(row, 1):
            found = product(function)(xs, [0.0] + [1.0] * (len(xs) - 1)) if what == "zero upstream" else [0.0] * len(xs)
            if any(found[i] != 0.0 for i in places):
                yield f"{row.name}, {what}, {mode}: expected nothing at {xs}, got {[found[i] for i in places]}"


if __name__ == "__main__":
    print("\n".join([*wrong(sys.argv[1:]), *wrong_twice(sys.argv[1:])]))
