"""Derivatives of what is found by searching: roots and fixed points, by the equation that they fulfil.

However the search was made (bisection, SciPy, a table), its result is a plain number; the equation says how it moves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradwalk import functional
from gradwalk.control import changed
from gradwalk.errors import described, refusal
from gradwalk.higher_order import data_of
from gradwalk.structure import flatten, is_value

Function = Callable[..., Any]
STEPS = 2  # of Newton's method: after one, first derivatives are right; after two, those up to the third


def implicit_root(f: Function, found: Any, *args: Any) -> Any:
    """The root of `f(x, *args)` in x, which `found` is as a plain number: differentiable by the arguments.

    A root of several equations is a list or an array of as many numbers.

    >>> from gradwalk import grad
    >>> root = grad(lambda a: implicit_root(lambda x, a: x * x - a, 3.0, a))
    >>> round(root(9.0), 12)
    0.166666666667
    """
    numbers: list[Any] = []
    structure = flatten(found, numbers)
    root = [number.data if is_value(number) else float(number) for number in numbers]
    if not root:
        raise TypeError(f"implicit_root: expected the root as numbers, got {described(found)}")

    def equations(x: list[Any]) -> list[Any]:
        out: list[Any] = []
        flatten(f(structure.fill(x, as_argument=True), *args), out)
        if len(out) != len(x):
            raise ValueError(f"implicit_root: expected {len(x)} equations for as many numbers, got {len(out)}")
        return out

    for _ in range(STEPS):
        root = _stepped(equations, root)
    return structure.fill(root, as_argument=True)


def _stepped(equations: Function, x: list[Any]) -> list[Any]:
    """A step of Newton's method, whose own derivatives are recorded."""
    missed = equations(x)
    slopes = functional.jacobian(equations)(x)
    if len(x) == 1:
        return [x[0] - missed[0] / slopes[0][0]]
    from gradwalk.numpy.linalg import solve

    moved = solve(slopes, missed).tolist()
    return [before - by for before, by in zip(x, moved, strict=True)]


def fixed_point(f: Function, start: Any, *args: Any, tolerance: float = 1e-12, most: int = 10_000) -> Any:
    """The x that `f(x, *args)` leaves as it is, found by applying f again and again: differentiable by the arguments.

    >>> from gradwalk import grad
    >>> point = grad(lambda a: fixed_point(lambda x, a: 0.5 * (x + a / x), 1.0, a))
    >>> round(point(9.0), 12)
    0.166666666667
    """
    numbers: list[Any] = []
    structure = flatten(start, numbers)
    x = [_number(number) for number in numbers]
    plain_args = [_plain(arg) for arg in args]
    for _ in range(most):
        with changed(no_grad=True):
            after = _numbers(f(structure.fill(x, as_argument=True), *plain_args))
        is_there = all(abs(a - b) <= tolerance * max(1.0, abs(b)) for a, b in zip(x, after, strict=True))
        x = after
        if is_there:
            break
    else:
        raise ValueError(f"fixed_point: expected f to settle within {most} applications, got {x}")

    def left(x: Any, *args: Any) -> Any:
        out: list[Any] = []
        flatten(f(x, *args), out)
        before: list[Any] = []
        flatten(x, before)
        return [a - b for a, b in zip(out, before, strict=True)]

    return implicit_root(left, structure.fill(x, as_argument=True), *args)


def _numbers(result: Any) -> list[float]:
    out: list[Any] = []
    flatten(result, out)
    return [_number(number) for number in out]


def _number(given: Any) -> float:
    number = data_of(given)
    if is_value(number):  # being compiled, what stands for a number stays open
        raise refusal(
            "fixed_point: expected plain numbers to search with, got Values that are being compiled, and how often f "
            "is applied would be fixed; search before, and give what was found to gradwalk.implicit_root inside"
        )
    return float(number)


def _plain(arg: Any) -> Any:
    """The argument with plain numbers in place of Values."""
    numbers: list[Any] = []
    structure = flatten(arg, numbers)
    return structure.fill([_number(number) for number in numbers], as_argument=True)
