"""Zeros, infinities, nan, the largest and the smallest: Values do there what floats do, and raise what they raise."""

from __future__ import annotations

import itertools
import math
import operator
import statistics as standard_statistics
from collections.abc import Callable
from typing import Any

import pytest

import gradwalk
import gradwalk.math as gm
import gradwalk.statistics as statistics
from gradwalk import Value

SPECIAL: list[Any] = [
    0, -0.0, 1, -1, 0.5, -2.5, 3, 4503599627370497.0, math.inf, -math.inf, math.nan, 1.7e308, -1e308, 5e-324, -1e-310,
    -1e-17, 170.7, 10**30,
]  # fmt: skip
FLOATS = [float(x) for x in SPECIAL]
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


def called_before(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiled, and called before with numbers that are no edges."""
    made = gradwalk.compile(function)
    made(0.5)
    return made


EXPONENTS = (0, 1, -1, 1023, 1024, -1022, -1060, -1074, 2000, 2098, -2098, 10**30, -(10**30))


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_ldexp_is_the_standard_one_to_the_bit(exponent: int) -> None:
    """What is denormal is rounded once, and what is too large is no infinity."""

    def shifted(x: Any) -> Any:
        return gm.ldexp(x, exponent)

    for x in [*FLOATS, 1.1e-3, 3.3e-310, 0.1, 2.0**-1000 / 3.0]:
        assert outcome(math.ldexp, x, exponent) == outcome(shifted, Value(x)), x
        if exponent < 1024:
            assert outcome(math.ldexp, x, exponent) == outcome(called_before(shifted), x), x


FUSED = [
    (2.0, 1e308, 1e308, OverflowError), (1e200, -1e200, 1.0, OverflowError), (math.inf, 0.0, 1.0, ValueError),
    (math.inf, 1.0, -math.inf, ValueError), (math.inf, 0.0, math.nan, math.nan), (math.inf, 2.0, 1.0, math.inf),
    (-0.0, 1.0, -0.0, -0.0), (1.0, -2.0, 2.0, 0.0),
]  # fmt: skip


@pytest.mark.parametrize(("x", "y", "z", "expected"), FUSED)
def test_fma_at_special_points(x: float, y: float, z: float, expected: Any) -> None:
    """Python has it since 3.13; before, it is this one."""
    wanted = [expected] if isinstance(expected, type) else [spelled(expected)]
    assert wanted == outcome(gm.fma, x, y, z) == outcome(called_before(lambda x: gm.fma(x, y, z)), x)
    assert all(wanted == outcome(gm.fma, *given) for given in as_values((x, y, z)))


@pytest.mark.parametrize(("name", "samples"), [
    ("mean", [[1e308, 1e308, 1e308]]), ("fmean", [[1e308, 1e308]]), ("variance", [[1e200, -1e200]]),
    ("pvariance", [[1e308, -1e308, 1.0]]), ("pstdev", [[1e200, -1e200]]),
])  # fmt: skip
def test_statistics_that_overflow_are_no_infinity(name: str, samples: Any) -> None:
    for function in (getattr(statistics, name), gradwalk.compile(getattr(statistics, name))):
        function([1.0, 2.0, 4.0])
        with pytest.raises(OverflowError, match="the result overflows; scale the input down"):
            function(*([Value(x) for x in each] for each in samples))


@pytest.mark.parametrize(("name", "samples"), [
    ("correlation", [[1.0, 1.0], [1.0, 2.0]]), ("correlation", [[1.0, 2.0], [1.0, 1.0]]),
    ("linear_regression", [[1.0, 1.0], [1.0, 2.0]]), ("fmean", [[1.0, 2.0], [1.0, -1.0]]),
    ("harmonic_mean", [[0.0, 2.0]]), ("harmonic_mean", [[2.0, 0.0, 0.0]]), ("harmonic_mean", [[1.0, 0.0], [1.0, 0.0]]),
    ("harmonic_mean", [[1.0, 2.0], [0.0, 0.0]]), ("harmonic_mean", [[-1.0, 2.0]]), ("geometric_mean", [[-1.0, 2.0]]),
    ("geometric_mean", [[math.inf, 2.0]]), ("median", [[1e308, 1.7e308]]), ("mean", [[math.inf, 1e308]]),
])  # fmt: skip
def test_statistics_at_special_points(name: str, samples: Any) -> None:
    """The standard number, or its kind of error."""
    standard, ours = getattr(standard_statistics, name), getattr(statistics, name)
    try:
        expected = standard(*samples)
    except standard_statistics.StatisticsError:
        with pytest.raises(standard_statistics.StatisticsError):
            ours(*([Value(x) for x in each] for each in samples))
    else:
        assert ours(*([Value(x) for x in each] for each in samples)).data == expected
        assert gradwalk.compile(ours)(*samples).data == expected


def test_the_harmonic_mean_has_a_derivative_where_one_number_is_0() -> None:
    assert gradwalk.value_and_grad(statistics.harmonic_mean)([3.0, 0.0, 4.0]) == (0.0, [0.0, 3.0, 0.0])


UNARY: dict[str, Callable[..., Any]] = {
    "neg": operator.neg, "abs": abs, "round": round, "to two digits": lambda x: round(x, 2), "floor": math.floor,
    "ceil": math.ceil, "trunc": math.trunc, "is_integer": lambda x: x.is_integer(),
}  # fmt: skip
BINARY: dict[str, Callable[..., Any]] = {
    name: getattr(operator, name) for name in ("add", "sub", "mul", "truediv", "pow", "mod", "floordiv", "lt", "eq")
} | {"max": max, "min": min}


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
