"""Programs for derivatives: functions whose results are derivatives of another, to be compiled like any other.

The gradient is recorded as a graph of its own, and tangents are pushed forward through it (forward over reverse), one
direction at a time or all of them at once. What comes out are plain forward programs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from gradwalk import engine, higher_order
from gradwalk.compiler.reading import with_line
from gradwalk.compiler.trace import constant, current_trace, result_of
from gradwalk.structure import flatten, is_value

Function = Callable[..., Any]
Places = tuple[int | str, ...]  # of the arguments to differentiate by: positions and names

# A program for all directions at once has a product for each way a direction goes through the graph. It is fast to
# run, but above so many it is slow to make, and the directions are better taken one after the other.
MOST_PRODUCTS = 1_000_000


class LargeProgramError(Exception):
    """All directions at once would be too large a program."""


# ---------------------------------------------------------------- the functions to compile


def along(function: Function, places: Places, of_gradient: bool) -> Function:
    """How fast the numbers of the result (or the gradient) change as the arguments move in a direction.

    After these come the result's numbers themselves: what computes them may refuse numbers of a later call.
    """

    @functools.wraps(function)
    def tangents_along(args: tuple[Any, ...], kwargs: dict[str, Any], direction: Sequence[Any]) -> list[Any]:
        inputs, outputs, results = _traced(function, args, kwargs, places, of_gradient)
        tangents = _pushed_forward(outputs, dict(zip(inputs, direction, strict=True)))
        return [*(_as_value(tangents.get(output, 0.0)) for output in outputs), *results]

    return tangents_along


def jacobian_everywhere(function: Function, places: Places, of_gradient: bool) -> Function:
    """The whole Jacobian of the result (or the Hessian): entries that are not always 0, and where in it they belong.

    Before the entries come the result's numbers, for the same reason.
    """

    @functools.wraps(function)
    def tangents_everywhere(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        inputs, outputs, entries = _traced(function, args, kwargs, places, of_gradient)
        if _products(outputs, inputs) > MOST_PRODUCTS:
            raise LargeProgramError
        tangents = _pushed_forward(outputs, {x: _Sparse({column: 1.0}) for column, x in enumerate(inputs)})
        places_of: list[int] = []
        sources: list[int] = []
        for row, output in enumerate(outputs):
            for column, tangent in tangents.get(output, _Sparse({})).parts.items():
                if of_gradient and column < row:  # a Hessian is symmetric: the other half is copied
                    continue
                mirrored = of_gradient and column > row
                places_of += [row * len(inputs) + column] + [column * len(inputs) + row] * mirrored
                sources += [len(entries)] * (1 + mirrored)
                entries.append(_as_value(tangent))
        return {"entries": entries, "places": places_of, "sources": sources}

    return tangents_everywhere


def _traced(
    function: Function, args: tuple[Any, ...], kwargs: dict[str, Any], places: Places, of_gradient: bool
) -> tuple[list[Any], list[Any], list[Any]]:
    """The Values among the arguments that move (an integer does not), what moves with them, and the results."""
    inputs: list[Any] = []
    for place in places:
        flatten(args[place] if isinstance(place, int) else kwargs[place], inputs)
    inputs = list(filter(is_value, inputs))
    out = function(*args, **kwargs)
    if (trace := current_trace()) is not None:
        trace.own = len(trace.recorded)
    if not of_gradient:
        results = result_of(out, function, trace is None or trace.branches).values
        return inputs, results, list(results)
    if getattr(out, "size", None) == 1 and not is_value(out):
        out = out.item()  # of an array of one number
    if type(out) in (int, float):  # of a branch that depends on nothing
        return inputs, [0.0] * len(inputs), [_as_value(float(out))]
    if not is_value(out):
        raise TypeError(f"compile: second derivatives expected {with_line(function)} to return one Value")
    gradients = higher_order.pulled_back(engine.topological_order(out), {out: 1.0}, set(inputs), _rule())
    return inputs, [gradients.get(x, 0.0) for x in inputs], [out]


def _pushed_forward(outputs: list[Any], tangents: dict[Any, Any]) -> dict[Any, Any]:
    return higher_order.pushed_forward(_order(outputs), tangents, _rule())


def _order(outputs: list[Any]) -> list[Any]:
    """Every node below these, each after its children."""
    values = [output for output in outputs if is_value(output)]
    return engine.topological_order(engine.Value(0.0, values, "outputs", local_grads=[0.0] * len(values)))[:-1]


def _rule() -> higher_order.Rule:
    return trace.local_grads_of if (trace := current_trace()) else higher_order.local_grads_of


def _as_value(tangent: Any) -> Any:
    return tangent if is_value(tangent) else constant(tangent)


def _products(outputs: list[Any], inputs: list[Any]) -> int:
    """How many products it takes to push all directions at once forward: along each edge, those that come along it."""
    coming = {x: 1 << place for place, x in enumerate(inputs)}  # a bit for each direction
    count = 0
    for node in _order(outputs):
        if node not in coming:
            directions = 0
            for child in node._children:
                below = coming.get(child, 0)
                directions |= below
                count += below.bit_count()
            coming[node] = directions
    return count


class _Sparse:
    """Tangents along many directions at once: those that are not 0."""

    __slots__ = ("parts",)

    def __init__(self, parts: dict[int, Any]) -> None:
        self.parts = parts

    def __rmul__(self, local_grad: Any) -> _Sparse:
        return _Sparse({place: higher_order.chained(part, local_grad) for place, part in self.parts.items()})

    def __add__(self, other: _Sparse) -> _Sparse:
        parts = dict(self.parts)
        for place, part in other.parts.items():
            parts[place] = parts[place] + part if place in parts else part
        return _Sparse(parts)
