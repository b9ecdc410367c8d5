"""gradwalk.math: complete, the standard functions on floats, and exact derivatives on Values."""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
from typing import Any

import mpmath
import pytest

import gradwalk
import gradwalk.math as gm
from gradwalk import Value
from gradwalk.functional import grad

# name, function on gradwalk.math or mpmath alike, points
ONE: list[tuple[str, Any, Any, list[float]]] = [
    (name, getattr(gm, name), getattr(mpmath, other or name), points)
    for name, other, points in [
        ("exp", "", [-20.0, 0.3, 5.0]), ("expm1", "", [-3.0, 1e-9, 2.0]), ("log", "", [1e-5, 0.7, 30.0]),
        ("log1p", "", [-0.9, 1e-9, 5.0]), ("log10", "", [1e-5, 0.7, 30.0]), ("sqrt", "", [1e-3, 2.0, 1e6]),
        ("cbrt", "", [1e-3, 2.0, 1e6]), ("sin", "", [-20.0, 0.3, 5.0]), ("cos", "", [-20.0, 0.3, 5.0]),
        ("tan", "", [-1.2, 0.3, 1.5]), ("asin", "", [-0.99, 0.3]), ("acos", "", [-0.99, 0.3]),
        ("atan", "", [-20.0, 0.3]),
        ("sinh", "", [-5.0, 0.3]), ("cosh", "", [-5.0, 0.3]), ("tanh", "", [-5.0, 0.3]), ("asinh", "", [-5.0, 0.3]),
        ("acosh", "", [1.01, 5.0]), ("atanh", "", [-0.99, 0.3]),
        ("erf", "", [-2.0, 0.3]), ("erfc", "", [-2.0, 0.3, 6.0]),
        ("gamma", "", [-2.5, 0.3, 5.0, 100.3]), ("lgamma", "loggamma", [0.3, 5.0, 100.3]),
        ("degrees", "", [0.3]), ("radians", "", [30.0]),
    ]
]  # fmt: skip
ONE += [
    ("log2", gm.log2, lambda x: mpmath.log(x, 2), [1e-5, 0.7, 30.0]),
    ("exp2", gm.exp2, lambda x: mpmath.power(2, x), [-3.0, 0.3, 10.0]),
    ("pow", lambda x: gm.pow(x, 2.7), lambda x: mpmath.power(x, mpmath.mpf(2.7)), [0.3, 5.0]),
    ("log to a base", lambda x: gm.log(7.0, x), lambda x: mpmath.log(7, x), [0.3, 5.0]),
    ("hypot", lambda x: gm.hypot(x, 2.0, 3.0), lambda x: mpmath.sqrt(x * x + 13), [0.3, -5.0]),
    ("hypot of two", lambda x: gm.hypot(x, 2.0), lambda x: mpmath.sqrt(x * x + 4), [0.3, -5.0]),
    ("dist", lambda x: gm.dist([x, 2.0], [1.0, x]), lambda x: mpmath.sqrt((x - 1) ** 2 + (2 - x) ** 2), [0.3, -5.0]),
    ("prod", lambda x: gm.prod([x, 3.0, x]), lambda x: 3 * x * x, [0.3, -5.0]),
    ("fsum", lambda x: gm.fsum([x, 3.0, x]), lambda x: 2 * x + 3, [0.3, -5.0]),
    ("sumprod", lambda x: gm.sumprod([x, 3.0], [x, x]), lambda x: x * x + 3 * x, [0.3, -5.0]),
    ("fma", lambda x: gm.fma(x, x, 3.0), lambda x: x * x + 3, [0.3, -5.0]),
    ("atan2", lambda x: gm.atan2(x, 2.0), lambda x: mpmath.atan2(x, 2), [0.3, -5.0]),
    ("atan2 in x", lambda x: gm.atan2(2.0, x), lambda x: mpmath.atan2(2, x), [0.3, -5.0]),
    ("fmod", lambda x: gm.fmod(x, 2.0) * x, lambda x: (x - 2) * x, [2.3, 3.5]),
    ("remainder", lambda x: gm.remainder(x, 2.0) * x, lambda x: (x - 4) * x, [3.3, 4.5]),
    ("modf", lambda x: gm.modf(x)[0] * x, lambda x: (x - 3) * x, [3.3, 3.9]),
    ("ldexp", lambda x: gm.ldexp(x * x, 3), lambda x: 8 * x * x, [3.3]),
    ("frexp", lambda x: gm.frexp(x)[0] * x, lambda x: x * x / 4, [3.3]),
    ("fabs", lambda x: gm.fabs(x) * x, lambda x: abs(x) * x, [3.3, -2.0]),
    ("copysign", lambda x: gm.copysign(x, -1.0) * x, lambda x: -abs(x) * x, [3.3]),
]


@pytest.mark.parametrize(("f", "exact", "points"), [pytest.param(*row[1:], id=row[0]) for row in ONE])
def test_derivatives_have_all_their_digits(f: Any, exact: Any, points: list[float]) -> None:
    """Against 50-digit mpmath: the first derivative to 1e-12, the second to 1e-10."""
    with mpmath.workdps(50):
        for x in points:
            for order, found, tolerance in ((1, grad(f)(x), 1e-12), (2, grad(grad(f))(x), 1e-10)):
                expected = mpmath.diff(lambda t: mpmath.re(exact(t)), mpmath.mpf(x), order)
                assert abs(found - expected) <= tolerance * abs(expected) + 1e-25, (x, order, found, expected)


def test_every_function_of_the_standard_module_is_there() -> None:
    """Whatever this Python's math module has."""
    assert {name for name in dir(math) if not name.startswith("_")} - set(gm.__all__) == set()
    assert [name for name in gm.__all__ if not hasattr(gm, name)] == []


ONE_NUMBER = (
    "acos", "asin", "asinh", "atan", "atanh", "cos", "cosh", "degrees", "erf", "erfc", "exp", "expm1", "fabs", "gamma",
    "lgamma", "log", "log10", "log1p", "log2", "radians", "sin", "sinh", "sqrt", "tan", "tanh", "trunc", "floor",
    "ceil", "frexp", "modf", "ulp",
)  # fmt: skip
CALLS: list[tuple[str, tuple[Any, ...]]] = [
    *((name, (0.7,)) for name in ONE_NUMBER),
    ("acosh", (2.0,)), ("atan2", (1.0, -2.0)), ("comb", (5, 2)), ("copysign", (1.0, -0.0)), ("dist", ([1, 2], [4, 6])),
    ("factorial", (5,)), ("fmod", (-5.5, 2.0)), ("fsum", ([0.1] * 10,)), ("gcd", (12, 18)), ("hypot", (3, 4)),
    ("hypot", ()), ("hypot", (-2,)), ("isclose", (1.0, 1.0 + 1e-10)), ("isfinite", (math.inf,)), ("isfinite", (2,)),
    ("isinf", (-math.inf,)), ("isnan", (math.nan,)), ("isqrt", (17,)), ("lcm", (4, 6)), ("ldexp", (0.5, 1024)),
    ("log", (8, 2)),
    ("nextafter", (1.0, 2.0)), ("perm", (5, 2)), ("pow", (2, 0.5)), ("prod", ([2, 3],)), ("remainder", (5, 3)),
    ("floor", (-2.5,)), ("ceil", (7,)), ("trunc", (-2.5,)), ("prod", ([],)), ("factorial", (20,)), ("modf", (-2.5,)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments"), CALLS)
def test_plain_numbers_give_what_the_standard_module_gives(name: str, arguments: tuple[Any, ...]) -> None:
    """The same kind of result, equal to the last bits."""
    found, expected = getattr(gm, name)(*arguments), getattr(math, name)(*arguments)
    assert type(found) is type(expected)
    assert found == pytest.approx(expected, rel=4e-15, abs=0.0, nan_ok=True)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("log", (0.0,)), ("log", (-1.0,)), ("sqrt", (-1.0,)), ("acos", (2.0,)), ("exp", (1000.0,)), ("gamma", (0.0,)),
     ("gamma", (200.0,)), ("pow", (-8.0, 1.0 / 3.0)), ("fmod", (1.0, 0.0)), ("factorial", (-1,)), ("exp", ("a",)),
     ("dist", ([1.0], [1.0, 2.0])), ("sin", (math.inf,)), ("cosh", (1000.0,)), ("lgamma", (0.0,)),
     ("floor", (math.nan,))],
)  # fmt: skip
def test_errors_are_of_the_standard_kinds(name: str, arguments: tuple[Any, ...]) -> None:
    """What was caught around the standard function is caught around this one."""
    with pytest.raises((ValueError, OverflowError, TypeError)) as standard:
        getattr(math, name)(*arguments)
    with pytest.raises(standard.type):
        getattr(gm, name)(*arguments)


def test_a_length_is_infinite_whatever_else_is_in_it() -> None:
    """Even nan, as the standard one."""
    assert math.hypot(math.inf, math.nan, 1.0) == gm.hypot(1.0, math.nan, -math.inf) == math.inf
    assert gradwalk.value_and_grad(lambda x: gm.hypot(x, math.nan, 1.0))(-math.inf) == (math.inf, -1.0)


def test_values_give_the_same_numbers_as_floats() -> None:
    """To the bit, for every function of one number with a derivative."""
    for name, f, _, points in ONE:
        for x in points:
            assert (name, f(Value(x)).data) == (name, f(x))


@pytest.mark.parametrize(("f", "points"), [pytest.param(f, points, id=name) for name, f, _, points in ONE])
def test_every_function_can_be_compiled(f: Any, points: list[float]) -> None:
    """None reads a number out of a Value, and the numbers and derivatives are the same to 1e-12."""
    compiled = gradwalk.compile(f)
    for x in points:
        given = Value(x)
        out = compiled(given)
        out.backward()
        assert out.data == pytest.approx(f(x), rel=1e-12)
        assert given.grad == pytest.approx(grad(f)(x), rel=1e-12)


def numbers(rng: random.Random) -> float:
    return rng.choice([rng.uniform(-10.0, 10.0), rng.lognormvariate(0.0, 30.0), rng.randrange(-9, 9) * 0.5])


def test_remainder_is_the_standard_one_to_the_bit() -> None:
    """Large, small, exactly in the middle, and the sign of a 0; its derivative by the divisor is minus the multiple."""
    rng = random.Random(0)
    for _ in range(2000):
        x, y = numbers(rng), numbers(rng) or 1.0
        assert gm.remainder(Value(x), Value(y)).data.hex() == math.remainder(x, y).hex(), (x, y)
    assert grad(gm.remainder, argnums=(0, 1))(7.3, 2.0) == (1.0, -4.0)
    assert grad(gm.remainder, argnums=(0, 1))(-7.3, -2.0) == (1.0, -4.0)


def test_frexp_is_the_standard_one_to_the_bit(engine: Any) -> None:
    """Down to the smallest number, and for 0 and inf."""
    rng = random.Random(0)
    edges = [0.0, 5e-324, 1e-310, sys.float_info.min, 0.5, 1.0, 2.0, sys.float_info.max, math.inf, -math.inf]
    for x in [*edges, *(numbers(rng) for _ in range(500))]:
        mantissa, exponent = gm.frexp(engine.Value(x))
        assert (mantissa.data, exponent) == math.frexp(x)


@pytest.mark.parametrize("number", [math.inf, -math.inf])
def test_nothing_is_behind_the_point_of_an_infinite_number(number: float) -> None:
    """As Python says it: a 0 with the sign of the number."""
    behind, before = gm.modf(Value(number))
    assert repr((behind.data, before.data)) == repr(math.modf(number))


def test_isclose_is_the_standard_one() -> None:
    """For Values on either side, inf and nan included."""
    rng = random.Random(0)
    pairs = [(a, b) for a in (0.0, 1.0, math.inf, -math.inf, math.nan) for b in (0.0, 1.0, math.inf, math.nan)]
    pairs += [(x, x * (1.0 + step)) for x in (numbers(rng) for _ in range(200)) for step in (0.0, 9e-10, 2e-9, -1e-9)]
    for a, b in pairs:
        for tolerances in ({}, {"abs_tol": 1e-3}, {"rel_tol": 0.1}):
            expected = math.isclose(a, b, **tolerances)
            assert (gm.isclose(Value(a), b, **tolerances), gm.isclose(a, Value(b), **tolerances)) == (expected,) * 2
    with pytest.raises(ValueError, match=r"isclose: expected tolerances of 0 or more, got -1\.0 and 0\.0"):
        gm.isclose(Value(1.0), 1.0, rel_tol=-1.0)


@pytest.mark.parametrize("name", ["factorial", "comb", "perm", "gcd", "lcm", "isqrt", "nextafter", "ulp"])
def test_what_has_no_derivative_goes_by_the_standard_name(name: str) -> None:
    """In help() and in tracebacks."""
    ours, theirs = getattr(gm, name), getattr(math, name)
    assert (ours.__name__, ours.__qualname__, ours.__doc__) == (name, name, theirs.__doc__)


@pytest.mark.parametrize("name", ["factorial", "comb", "perm", "gcd", "lcm", "isqrt", "nextafter", "ulp"])
def test_what_has_no_derivative_says_so(name: str) -> None:
    """One sentence with the function's name and what to use instead."""
    with pytest.raises(TypeError, match=f"{name}: expected plain numbers, got a Value, and it has no derivative; use"):
        getattr(gm, name)(Value(3.0), 2)


def test_questions_about_values() -> None:
    """isnan and the like answer about the number; floor and ceil are Values without a gradient."""
    assert gm.isnan(Value(math.nan))
    assert not gm.isnan(Value(1.0))
    assert gm.isinf(Value(-math.inf))
    assert gm.isfinite(Value(1.0))
    assert gm.isclose(Value(1.0), 1.0)
    assert grad(lambda x: gm.floor(x) * x + gm.ceil(x) + gm.trunc(x))(2.5) == 2.0


def test_gamma_overflows_as_other_operations_do() -> None:
    """A RangeError, which is an OverflowError."""
    with pytest.raises(OverflowError, match=r"gamma: the result overflows, got 180\.0"):
        gm.gamma(Value(180.0))


def test_both_engines_agree_to_the_bit() -> None:
    """The composed functions, run in a process on each engine."""
    program = (
        "import gradwalk.math as m; from gradwalk.functional import grad\n"
        "fs = [lambda x: m.gamma(x), lambda x: m.hypot(x, x, 2.0), lambda x: m.dist([x, 1.0, x], [2.0, x, 0.5]),"
        " lambda x: m.fsum([x, 0.1, x]), lambda x: m.log(x, 3.0), lambda x: m.remainder(x, 0.3), lambda x: m.exp2(x),"
        " lambda x: m.sumprod([x, x], [x, 3.0]), lambda x: m.ldexp(x, 5), lambda x: m.modf(x)[0] * x]\n"
        "print([(f(1.7).hex(), grad(f)(1.7).hex(), grad(grad(f))(1.7).hex()) for f in fs])"
    )
    printed = [
        subprocess.run([sys.executable, "-c", program], env=os.environ | {"GRADWALK_ENGINE": name},
                       capture_output=True, text=True, check=True).stdout
        for name in ("reference", "native")
    ]  # fmt: skip
    assert printed[0] == printed[1]


@pytest.mark.parametrize("exact", [False, True])
def test_gamma_is_the_standard_one_in_compiled_functions_too(exact: bool) -> None:
    """The exponential of its logarithm was up to 800 last bits off: gamma(5) was no 24, and took the other branch."""
    compiled = gradwalk.compile(lambda x: gm.gamma(x) * (2.0 if gm.gamma(x) == 24.0 else 1.0), exact=exact)
    for x in (1.5, 5.0, 154.6, -1.5, -2.5, math.inf, 24.0):
        assert math.gamma(x) * (2.0 if x == 5.0 else 1.0) == compiled(x).data
    for x in (1.5, 154.6, -2.5):
        assert grad(gm.gamma)(x) == grad(gradwalk.compile(gm.gamma, exact=exact))(x)
        expected = mpmath.diff(mpmath.gamma, x, 2)
        assert gradwalk.hessian(gradwalk.compile(gm.gamma, exact=exact))(x) == pytest.approx(float(expected), rel=1e-12)
    with pytest.raises(OverflowError, match=r"gamma: the result overflows, got 180\.0"):
        compiled(180.0)


@pytest.mark.parametrize(
    "terms", [[1e16, 3.3, 1e-20, -1e16, -3.3], [0.1] * 10, [-0.0, -0.0], [1e16, 1.0, -1e16, 1e-17, -1.0], [1e300, 1.0]]
)
def test_fsum_is_exact_where_the_sum_is_far_off(terms: list[float]) -> None:
    """0.7 - 0.7 was 0: the correction is rounded, too."""
    expected = repr(math.fsum(terms))
    assert expected == repr(gm.fsum([Value(term) for term in terms]).data)
    assert expected == repr(gradwalk.compile(gm.fsum)(terms).data)
    assert [1.0] * len(terms) == gradwalk.grad(gm.fsum)(terms)
