"""`==`, `!=` and truth compare the numbers, as plain floats do; in a trace they are guards."""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import gradwalk
import gradwalk.engine
from gradwalk.compiler import flat

NUMBERS = (0.0, -0.0, 1.0, -2.5, 2.0**53, math.inf, math.nan)
OTHERS = (*NUMBERS, 0, 1, True, 2**53, 2**53 + 1, 2**53 - 1, -(2**53) - 1, 10**400, -(10**400), Fraction(1),
          Fraction(1, 3), Decimal("-2.5"), Decimal("0.1"), 1 + 0j, 1 + 1j, np.float64(1.0), np.int64(1),
          np.float32(-2.5))  # fmt: skip
ORDERED = [other for other in OTHERS if not isinstance(other, complex | Decimal)]


@pytest.mark.parametrize("other", OTHERS, ids=repr)
def test_equal_to_what_its_number_is_equal_to(engine: Any, other: Any) -> None:
    """With numbers of every type, on both sides, exactly: an int that no float has is equal to none."""
    for number in NUMBERS:
        x = engine.Value(number)
        assert [x == other, other == x, x != other, other != x] == [number == other] * 2 + [number != other] * 2


@pytest.mark.parametrize("other", ORDERED, ids=repr)
def test_ordered_as_its_number_is(engine: Any, other: Any) -> None:
    """<, <=, >, >= too, with ints beyond 2**53 and beyond every float."""
    for number in NUMBERS:
        x = engine.Value(number)
        expected = [number < other, number <= other, number > other, number >= other]
        assert [x < other, x <= other, x > other, x >= other] == expected
        assert [other > x, other >= x, other < x, other <= x] == expected


def test_values_are_compared_by_their_numbers(engine: Any) -> None:
    """Also with themselves: nan is not equal to nan."""
    for a, b in itertools.product(NUMBERS, NUMBERS):
        assert [engine.Value(a) == engine.Value(b), engine.Value(a) != engine.Value(b)] == [a == b, a != b]
    nan = engine.Value(math.nan)
    assert [nan == nan, nan != nan] == [False, True]
    assert type(nan == nan) is bool


@pytest.mark.parametrize("other", [None, "1.0", b"1", [1.0], (1.0,), {1.0: 1.0}, object], ids=str)
def test_nothing_else_is_equal(engine: Any, other: Any) -> None:
    """What is no number is different, and no error."""
    x = engine.Value(1.0)
    assert [x == other, other == x, x != other, other != x] == [False, False, True, True]


def test_arrays_are_compared_entry_by_entry(engine: Any) -> None:
    """On either side, of floats and of Values."""
    x, row = engine.Value(1.0), np.array([1.0, 2.0])
    values = np.array([engine.Value(1.0), engine.Value(2.0)])
    for found in (x == row, row == x, values == 1.0, x == values, values == row[:1]):
        assert found.tolist() == [True, False]
    assert (x != row).tolist() == [False, True]
    assert np.where(values == 2.0, 10.0, values)[1] == 10.0
    assert np.array_equal(x == np.array(1.0), True)


@pytest.mark.parametrize("number", NUMBERS)
def test_truth_is_that_of_the_number(engine: Any, number: float) -> None:
    """0 is false, nan is true."""
    assert bool(engine.Value(number)) is bool(number)


def test_lists_find_by_number(engine: Any) -> None:
    """`in`, count, index and remove, as with floats."""
    xs = [engine.Value(number) for number in (1.0, 2.0, 2.0)]
    assert [engine.Value(2.0) in xs, 3.0 in xs, xs.count(2.0), xs.index(engine.Value(2.0))] == [True, False, 2, 1]
    xs.remove(2.0)
    assert len(xs) == 2


def test_hash_stays_identity(engine: Any) -> None:
    """No two Values alive have one hash, however they were made: equal numbers are different keys."""

    class Sub(engine.Value):  # type: ignore[misc, name-defined]
        pass

    x = engine.Value(1.0)
    kinds = [lambda: engine.Value(1.0), lambda: engine.Value(1.0, (x,), "by hand"), lambda: x * 1.0, lambda: Sub(1.0)]
    values = [kind() for kind in kinds * 500]
    assert len({hash(value) for value in values}) == len(values) == len(set(values)) == len(dict.fromkeys(values))


def test_equality_of_a_replaced_class(engine: Any) -> None:
    """What `gradwalk run` replaces keeps ==, != and truth of a class that defines neither."""
    gradwalk.engine.set_equality_is_identity(True)
    try:
        zero, other = engine.Value(0.0), engine.Value(0.0)
        found = [zero == zero, zero == other, zero != other, zero == 0.0, bool(zero), [other, zero].index(zero)]
        ordered = [zero < 1.0, zero <= other]
    finally:
        gradwalk.engine.set_equality_is_identity(False)
    assert (found, ordered) == ([True, False, True, False, True, 1], [True, True])
    assert zero == other


# ---------------------------------------------------------------- inside functions: plain, eager, compiled


def at_zero(theta: Any) -> Any:
    if theta == 0:
        return 1.0 - theta * theta / 6.0
    return gradwalk.sin(theta) / theta


def not_zero(x: Any) -> Any:
    return 3 * x if x != 0 else 5 * x


def until_it_stays(x: Any) -> Any:
    before, now, steps = x * 0.0, x, 0
    while now != before and steps < 60:
        before, now, steps = now, (now + x / now) / 2.0, steps + 1
    return now


def among(x: Any) -> Any:
    return 2 * x if x in (1.0, 3.0) else 7 * x


def matched(x: Any) -> Any:
    match x:
        case 0.0:
            return 2 * x
        case 1.0 | 3.0:
            return 5 * x
        case _:
            return 7 * x


def counted(x: Any) -> Any:
    return [x, x * 0 + 1.0, 3.0 * x].count(3.0) * x


def found_by_numpy(x: Any) -> Any:
    row = np.array([x, 2.0 * x, x * x], dtype=object)
    return np.where(row == 1.0, 10.0 * row, row).sum()


def true_or_not(x: Any) -> Any:
    return 2 * x if x - 1.0 else 9 * x


def or_else(x: Any) -> Any:
    return (x or 4.0) * x


def between_two(x: Any) -> Any:
    return 2 * x if x * x == 3 * x else 7 * x


def sign_of(x: Any) -> Any:
    return np.sign(np.array([x], dtype=object))[0] + x


def beyond_whole_floats(x: Any) -> Any:
    return 2 * x if x * 2.0**53 < 2**53 + 1 else 7 * x


FUNCTIONS = [at_zero, not_zero, until_it_stays, among, matched, counted, found_by_numpy, true_or_not, or_else,
             between_two, sign_of, beyond_whole_floats]  # fmt: skip
POINTS = (3.0, 1.0, 0.0, 2.0, 3.0, 0.5, math.nan, -0.0, 1.0)


def plain(function: Callable[[Any], Any], x: float) -> float:
    """The function on floats, for which math has what gradwalk has for Values."""
    return float(function(x))


def tried(call: Callable[[], float]) -> Any:
    try:
        return repr(call() + 0.0)  # the sign of a zero is not what is tried here
    except (ArithmeticError, TypeError) as error:  # NumPy has no sign for an object that is nan
        return ZeroDivisionError if isinstance(error, ZeroDivisionError) else type(error)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_functions_that_compare(function: Any) -> None:
    """Eager and compiled give what the plain function gives, at every point, in whatever order they come."""
    compiled, exact = gradwalk.compile(function), gradwalk.compile(function, exact=True)
    for x in POINTS:
        expected = tried(lambda x=x: plain(function, x))
        got = [tried(lambda x=x, f=f: f(gradwalk.Value(x)).data) for f in (function, compiled, exact)]
        assert got == [expected] * 3, x
        slopes = [tried(lambda x=x, f=f: gradwalk.grad(f)(x)) for f in (function, compiled, exact)]
        assert slopes == [slopes[0]] * 3, x


def test_the_first_example() -> None:
    """The case that was wrong in silence."""
    assert gradwalk.value_and_grad(lambda x: 2 * x if x == 3.0 else 7 * x)(3.0) == (6.0, 2.0)


def test_an_equality_is_one_guard() -> None:
    """A second program is made when it comes out otherwise, and both are kept."""
    compiled = gradwalk.compile(among)
    for x in (2.0, 5.0, 1.0, 3.0, 1.0, 9.0):
        assert compiled(gradwalk.Value(x)).data == among(x)
    assert set(flat.SIGNS) == {"<", "<=", ">", ">=", "==", "!="}


def test_on_the_reference_engine() -> None:
    """The same functions, compiled there: the guards of the interpreter."""
    if gradwalk.engine.NAME == "reference":
        pytest.skip("this process runs on it")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "functions_that_compare", __file__]
    run = subprocess.run(command, env=os.environ | {"GRADWALK_ENGINE": "reference"}, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout


def test_sets_and_dicts_look_for_the_object() -> None:
    """As docs/derivatives.md says: a hash that were the number's would make one node of two."""
    x = gradwalk.Value(3.0)
    assert (x in (1.0, 3.0), x in {1.0, 3.0}, x in {x}, {3.0: 1.0}.get(x, 0.0)) == (True, False, True, 0.0)  # type: ignore[call-overload]
    xs = [3.0]
    assert gradwalk.value_and_grad(lambda a, b: a[0] if a is b else a[0] * 2.0)(xs, xs) == (6.0, [2.0])
