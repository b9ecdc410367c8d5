"""What a plain float can do besides the operations of the table, a Value can too, with the same numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from gradwalk import compile, grad

NUMBERS = (5.5, -5.5, 0.3, 7.0, -7.0, 2.5, 3.5, -0.5)
DIVISORS = (2.0, -2.0, 0.7, -1.25)
OF_TWO: dict[str, Callable[[Any, Any], Any]] = {
    "%": lambda a, b: a % b,
    "//": lambda a, b: a // b,
    "divmod": lambda a, b: sum(divmod(a, b)),
}
OF_ONE: dict[str, Callable[[Any], Any]] = {
    "round": round,
    "round to one digit": lambda a: round(a, 1),
    "trunc": math.trunc,
    "floor": math.floor,
    "ceil": math.ceil,
    "real": lambda a: a.real,
    "conjugate": lambda a: a.conjugate(),
}


@pytest.mark.parametrize("symbol", OF_TWO)
@pytest.mark.parametrize("other", DIVISORS)
@pytest.mark.parametrize("number", NUMBERS)
def test_operators_of_two(engine: Any, symbol: str, number: float, other: float) -> None:
    """The number that floats give, whichever of them is a Value, and a whole number beside it."""
    apply = OF_TWO[symbol]
    x, y = engine.Value(number), engine.Value(other)
    for out in (apply(x, y), apply(x, other), apply(number, y)):
        assert out.data == pytest.approx(apply(number, other), rel=1e-15, abs=1e-15)
    assert apply(x, 2).data == apply(number, 2)


@pytest.mark.parametrize("name", OF_ONE)
@pytest.mark.parametrize("number", NUMBERS)
def test_operators_of_one(engine: Any, name: str, number: float) -> None:
    """The number that a float gives."""
    assert OF_ONE[name](engine.Value(number)).data == OF_ONE[name](number)


def test_their_derivatives() -> None:
    """A remainder moves with x, and with y by the whole multiple; what is rounded does not move."""
    assert grad(lambda x, y: x % y, argnums=(0, 1))(7.5, 2.0) == (1.0, -3.0)
    assert grad(lambda x, y: x % y, argnums=(0, 1))(-7.5, 2.0) == (1.0, 4.0)
    with pytest.warns(RuntimeWarning, match="the result is rounded"):
        assert grad(lambda x, y: x // y, argnums=(0, 1))(7.5, 2.0) == (0.0, 0.0)
    assert grad(lambda x: round(x) * x)(2.6) == 3.0
    assert grad(lambda x: math.trunc(x) * x)(-2.6) == -2.0


def test_in_a_compiled_function() -> None:
    """Computed anew in every call; digits would be those of one call, and are refused."""
    f = compile(lambda x: x % 2.0 + round(x) * 10.0 + (x // 3.0) * 100.0)
    for x in (7.5, 8.5, -1.25, 3.0):
        assert f(x).data == x % 2.0 + round(x) * 10.0 + (x // 3.0) * 100.0
    with pytest.raises(TypeError, match="round: digits of a traced number would be fixed"):
        compile(lambda x: round(x, 2))(1.234)
    with pytest.raises(TypeError, match="print after the call"):
        compile(lambda x: x * len(f"{x:.3f}"))(1.0)


def test_what_a_float_shows(engine: Any) -> None:
    """Formats, parts and questions."""
    x = engine.Value(2.5)
    assert f"{x:.3f}|{x:8.2e}" == "2.500|2.50e+00"
    assert f"{x}" == str(x)
    assert x.item() is x.real is x  # a NumPy number has these, and the gradient is not to get lost
    assert (x.imag, x.is_integer(), engine.Value(2.0).is_integer()) == (0.0, False, True)
    assert (Fraction(1, 2) * x).data == (x * Fraction(1, 2)).data == 1.25
    assert sum([x, x], start=engine.Value(1.0)).data == 6.0


def test_bad_operands(engine: Any) -> None:
    """Text is no number; `%` with 0 is what it is for floats."""
    x = engine.Value(2.5)
    for apply in OF_TWO.values():
        with pytest.raises(TypeError):
            apply(x, "2")
        with pytest.raises(ZeroDivisionError, match="fmod: expected a finite x and a divisor other than 0"):
            apply(x, 0.0)
