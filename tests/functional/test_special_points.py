"""Zeros, infinities, nan, the largest and the smallest: Values do there what floats do, and raise what they raise."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

import pytest

import gradwalk
import gradwalk.math as gm
from gradwalk import Value

SPECIAL: list[Any] = [
    0, -0.0, 1, -1, 0.5, -2.5, 3, 4503599627370497.0, math.inf, -math.inf, math.nan, 1.7e308, -1e308, 5e-324, -1e-310,
    -1e-17, 170.7, 10**30,
]  # fmt: skip
KINDS = (ZeroDivisionError, OverflowError, ValueError, TypeError)
# not of numbers, or of more than two, or of whole numbers alone
OTHERS = {"comb", "dist", "factorial", "fma", "fsum", "gcd", "isqrt", "lcm", "ldexp", "perm", "prod", "sumprod"}
OF_TWO = {"atan2", "copysign", "fmod", "hypot", "isclose", "log", "nextafter", "pow", "remainder"}
NAMES = [name for name in sorted(set(gm.__all__) & set(dir(math)) - OTHERS) if callable(getattr(math, name))]


def outcome(function: Callable[..., Any], *numbers: Any) -> Any:
    """What comes out as plain numbers, the sign of a zero included, or the kind of exception."""
    try:
        result = function(*numbers)
    except KINDS as error:
        return [kind for kind in KINDS if isinstance(error, kind)]
    results = [getattr(x, "data", x) for x in (result if isinstance(result, tuple) else (result,))]
    return [x if isinstance(x, bool) else spelled(x) for x in results]


def spelled(number: Any) -> Any:
    if isinstance(number, complex) or number != number:
        return "nan"
    return (float(number), math.copysign(1.0, number)) if number == 0 else float(f"{number:.13g}")


def agrees(expected: Any, found: Any) -> bool:
    """Where floats go on to complex numbers, Values do not."""
    return bool(expected == found or (expected == ["nan"] and found == [ValueError]))


def as_values(numbers: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """All of them Values, or some."""
    ways = itertools.product((True, False), repeat=len(numbers))
    return [tuple(Value(x) if wanted else x for x, wanted in zip(numbers, way, strict=True)) for way in ways]


@pytest.mark.parametrize("name", NAMES)
def test_math_at_special_points(name: str) -> None:
    """Every function of the standard module, of floats, ints and Values."""
    standard, ours = getattr(math, name), getattr(gm, name)
    takes_values = name not in ("nextafter", "ulp")
    for numbers in [(x,) for x in SPECIAL if name not in OF_TWO - {"log"}] + [
        pair for pair in itertools.product(SPECIAL, repeat=2) if name in OF_TWO
    ]:
        if name == "lgamma" and numbers == (-2.5,):
            continue  # near a zero, of which the standard one knows more digits
        expected = outcome(standard, *numbers)
        for given in as_values(numbers) if takes_values else [numbers]:
            assert agrees(expected, outcome(ours, *given)), (name, given)


UNARY: dict[str, Callable[..., Any]] = {
    "neg": operator.neg, "abs": abs, "round": round, "to two digits": lambda x: round(x, 2), "floor": math.floor,
    "ceil": math.ceil, "trunc": math.trunc, "is_integer": lambda x: x.is_integer(),
}  # fmt: skip
BINARY: dict[str, Callable[..., Any]] = {
    name: getattr(operator, name) for name in ("add", "sub", "mul", "truediv", "pow", "mod", "floordiv", "lt", "eq")
} | {"max": max, "min": min}
FLOATS = [float(x) for x in SPECIAL]


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_operators_at_special_points(name: str) -> None:
    """What Python does with floats, in every mixture with Values."""
    function = {**UNARY, **BINARY}[name]
    for numbers in itertools.product(FLOATS, repeat=1 if name in UNARY else 2):
        if name == "pow" and numbers[0] < 0 and not numbers[1].is_integer() and math.isfinite(numbers[1]):
            continue  # a complex number, as far as that goes
        expected = outcome(function, *numbers)
        for given in as_values(numbers)[:-1]:
            assert agrees(expected, outcome(function, *given)), (name, given)


COMPILED = [
    "exp", "log", "sqrt", "gamma", "lgamma", "floor", "ceil", "trunc", "sin", "atanh", "cosh", "round", "reciprocal",
    "mod", "mod by 0", "floordiv", "pow", "hypot",
]  # fmt: skip


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_functions_at_special_points(name: str) -> None:
    """Traced at an ordinary number, called with others: what the plain function gives or raises."""
    others: dict[str, Callable[[Any], Any]] = {
        "round": round, "reciprocal": lambda x: x / x, "mod": lambda x: x % 3.0, "floordiv": lambda x: x // 3.0,
        "mod by 0": lambda x: x % (0.0 if x != 0.75 else 1.0),
        "pow": lambda x: gm.pow(x, -1.0), "hypot": lambda x: gm.hypot(x, x, 1.0),
    }  # fmt: skip
    function: Callable[[Any], Any] = others.get(name) or (lambda x: getattr(gm, name)(x))
    if name in ("floor", "ceil", "trunc", "round"):  # ints, whose zero has no sign, where a sign shows
        rounded = function

        def function(x: Any) -> Any:
            return rounded(x), gm.copysign(1.0, rounded(x))

    compiled = gradwalk.compile(function)
    compiled(0.75)
    for x in FLOATS:
        expected = outcome(function, x)
        assert agrees(expected, outcome(compiled, x)), (name, x, outcome(compiled, x))


def test_a_branch_may_return_a_number_as_it_stands() -> None:
    """An int that comes out first among numbers, and a float behind an `if`: as any other branch."""

    def second(x: Any) -> Any:
        return sorted([2, x, 1])[1]

    def at_least_one(x: Any) -> Any:
        return 1.0 if x < 1.0 else x

    for function in (second, at_least_one):
        compiled = gradwalk.compile(function)
        for x in (1.5, -3.0, 7.0):
            assert compiled(x).data == function(x)
            assert gradwalk.value_and_grad(compiled)(x) == gradwalk.value_and_grad(function)(x)


def test_lgamma_close_below_zero() -> None:
    """Where x + 1 is 1, x is still told from 0."""
    for x in (-1e-10, -1e-16, -1e-100, 5e-324, -1e-310):
        assert gm.lgamma(x) == pytest.approx(math.lgamma(x), rel=1e-15)
        assert gradwalk.grad(gm.lgamma)(x) == pytest.approx(-1.0 / x, rel=1e-9) or abs(x) < 1e-308
