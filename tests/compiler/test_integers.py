"""An integer argument inside a compiled function does what an int does, whoever asks and however it is used."""

from __future__ import annotations

import copy
import dataclasses
import datetime
import json
import math
import operator
import pickle
import random
import statistics
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import gradwalk
import gradwalk.math
from gradwalk import Value
from gradwalk.compiler.compile import compile

multiplied = gradwalk.custom_op(lambda x, y: x * y, lambda x, y, out: (y, x), name="multiplied", check=False)


def matched(x: Any, n: int) -> Any:
    match n:
        case 0:
            return x
        case int():
            return x * 2.0
        case _:
            return x * 3.0


USES: dict[str, Callable[[Any, int], Any]] = {
    "isinstance": lambda x, n: x * (1 if isinstance(n, int) and not isinstance(n, bool | float) else 7),
    "match": matched,
    "~": lambda x, n: x * ~n,
    "&": lambda x, n: x * (n & 3) + (3 & n),
    "|": lambda x, n: x * (n | 4) + (4 | n),
    "^": lambda x, n: x * (n ^ 1) + (1 ^ n),
    "<<": lambda x, n: x * (n << 1) + (1 << n),
    ">>": lambda x, n: x * (n >> 1) + (9 >> n),
    "**": lambda x, n: x**n + (2 + n) ** x + n**2 + 2**n,
    "pow": lambda x, n: x * pow(n, 2, 5) + pow(3, n) + pow(3, n, 5),
    "divmod": lambda x, n: x * divmod(n, 2)[1] + divmod(7, n + 1)[0],
    "round": lambda x, n: x * round(n) + round(n, 1),
    "floor": lambda x, n: x * math.floor(n) + math.ceil(n),
    "trunc": lambda x, n: x * math.trunc(n),
    "bit_length": lambda x, n: x * n.bit_length() + n.real + n.numerator,
    "math.sqrt": lambda x, n: x * math.sqrt(n) + gradwalk.sqrt(n) + gradwalk.math.sqrt(n),
    "sign": lambda x, n: x * gradwalk.sign(n),
    "maximum": lambda x, n: gradwalk.maximum(n, x) + gradwalk.maximum(x, n) + gradwalk.minimum([n, x, 1]),
    "clamp": lambda x, n: gradwalk.clamp(x, -1, n),
    "where": lambda x, n: gradwalk.where(n, x, 2.0 * x),
    "sum": lambda x, n: gradwalk.sum([x, n, 2]) + gradwalk.mean([n, x]) + gradwalk.math.fsum([n, x]),
    "cross_entropy": lambda x, n: x * gradwalk.cross_entropy([1.0, 2.0, 0.5, 3.0], n),
    "dot": lambda x, n: gradwalk.dot([x, n], [n, 3]),
    "softmax": lambda x, n: gradwalk.softmax([x, n])[0],
    "Value": lambda x, n: x * Value(n),
    "custom operation": lambda x, n: multiplied(x, n),
    "copy": lambda x, n: x * copy.copy(n) + copy.deepcopy([n])[0],
    "pickle": lambda x, n: x * pickle.loads(pickle.dumps(n)),
    "text": lambda x, n: x * len(f"{n:5d}{n!r}{str(n) * n}"),
    "text of an argument": lambda x, n: x * len(f"{n} {n!s} {n!a}" + " ".join(map(str, [n]))),
    "key": lambda x, n: x * {0: 1.0, 1: 2.0, 2: 3.0, 3: 4.0}[n],
    "compared": lambda x, n: x * (2 if x < n else 3) * (5 if n == x else 7) * (n != 2),
    "truth": lambda x, n: x * 2.0 if n else x,
    "compared with a text": lambda x, n: x * 2.0 if n == "2" or n is None else x * (n != "2"),
    "compared with other kinds": lambda x, n: (
        x
        * sum(
            2**k * (n < other) + 3**k * (other <= n)
            for k, other in enumerate(
                (Fraction(5, 2), Decimal("2.5"), np.float32(1.5), np.int32(2), True, 2.0, math.inf), 1
            )
        )
    ),
    "equal to other kinds": lambda x, n: (
        x
        * sum(
            2**k * (n == other) + 3**k * (other != n)
            for k, other in enumerate((2 + 0j, 2j, Fraction(2), np.float32(2.0), np.int32(2), True, math.nan), 1)
        )
    ),
    "equal to a Decimal": lambda x, n: x * (2.0 if n == Decimal(2) else 3.0),
    "compared with what is barely more": lambda x, n: x * (2.0 if n < 2 + Fraction(1, 2**60) else 3.0),
    "compared with an array": lambda x, n: x * ((n < np.array([1, 2, 3])).sum() + 4 * (np.array([1, 2]) == n).sum()),
    "seed": lambda x, n: x * random.Random(n).random(),
    "kind": lambda x, n: x * len(repr([math.floor(n), math.ceil(n), round(n), +n, -n, abs(n), n // 1, n + 0, hash(n)])),
    "list": lambda x, n: sum([x] * n) + x * [3, 4, 5, 6][n],
    "array": lambda x, n: x * np.ones(n + 1).sum(),
    "clip": lambda x, n: np.clip(np.array([x, n, 2.5], dtype=object), 0.5, 1.5).sum() * x,
}


@pytest.mark.parametrize("kind", [int, np.int64])
@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.filterwarnings("ignore:compile:RuntimeWarning")
def test_an_integer_is_used_as_one(use: Callable[[Any, Any], Any], kind: Any) -> None:
    compiled = compile(use)
    for n in map(kind, (0, 1, 2, 3, 2, 0)):
        given = Value(2.0), Value(2.0)
        try:
            expected = use(given[0], n)
        except (TypeError, AttributeError) as error:  # an np.int64 is no int
            with pytest.raises(type(error)):
                compiled(2.0, n)
            continue
        actual = compiled(given[1], n)
        expected.backward()
        actual.backward()
        assert (expected.data, given[0].grad) == pytest.approx((actual.data, given[1].grad), rel=1e-12)


def test_it_stays_open_beside_a_value_and_in_a_copy() -> None:
    """One program for every integer, where none of it asks for the number."""
    compiled = compile(lambda x, n: copy.deepcopy({"n": n})["n"] * x + x - n)
    assert [compiled(2.0, n).data for n in range(4)] == [2.0 * n + 2.0 - n for n in range(4)]
    assert len(compiled.programs) == 1


def test_what_insists_on_the_type_of_an_integer_says_so() -> None:
    """The mean of 1 and 4 is no integer; whoever decides that by the type of the first would make it one."""
    for asked in (lambda x, n: x * type(n)(2.5), lambda x, n: x * statistics.mean([n, 4])):
        with pytest.raises(TypeError, match=r"use int\(n\)"):
            compile(asked)(1.0, 1)
    assert compile(lambda x, n: x * statistics.mean([int(n), 4]))(1.0, 1).data == 2.5


@pytest.mark.parametrize(
    "asked",
    [
        lambda n: len(json.dumps(n)),
        lambda n: len(json.dumps({"a": [n]})),
        lambda n: len(json.dumps({n: "a"})),
        lambda n: float(Decimal(n)),
        lambda n: datetime.timedelta(days=n).days,
        lambda n: math.ldexp(1.0, n),
        lambda n: int.bit_length(n),
        lambda n: random.Random(n).random(),
    ],
)
@pytest.mark.parametrize("n", [-1, -7, 2**61 - 1])
def test_what_asks_for_a_plain_int_is_the_same_or_says_so(asked: Callable[[Any], Any], n: int) -> None:
    with pytest.raises(TypeError) as caught:
        compile(lambda x, n: x * asked(n))(1.0, n)
    assert "int(n)" in str(caught.value) + "".join(caught.value.__notes__ if hasattr(caught.value, "__notes__") else ())
    if n < 0:
        assert compile(lambda x, n: x * asked(int(n)))(1.0, n).data == asked(n)


def test_what_an_int_has_not_it_has_not() -> None:
    with pytest.raises(AttributeError, match="'int' object has no attribute 'append'"):
        compile(lambda x, n: n.append(x))(1.0, 2)
    with pytest.raises(AttributeError, match="'int' object has no attribute '_hidden'"):
        compile(lambda x, n: n._hidden)(1.0, 2)


@pytest.mark.parametrize(
    "returned", [lambda x, n: [x, n], lambda x, n: (x, {"n": n}), lambda x, n: [x, [n, n]], lambda x, n: (n, x)]
)
def test_it_is_returned_as_the_integer_of_this_call(returned: Callable[[Any, int], Any]) -> None:
    """And as an int, to the one who called."""
    compiled = compile(returned)
    for n in (2, -1, 2, 7):
        assert repr(returned(Value(0.5), n)) == repr(compiled(0.5, n))


def test_numbers_that_are_one_object_by_chance_are_two_in_the_next_call() -> None:
    """Where one list is passed twice it stays one; a small integer or a number beside it does not become another."""
    for one, other in ((-1, 3), (0.5, 2.5)):
        compiled = compile(lambda x, number, listed, xs, ys: x * listed["number"] + xs[0] + ys[0] + number)
        for number in (one, other):
            shared = [1.0]
            expected = 2.0 * one + 2.0 + number
            assert expected == compiled(2.0, number, {"number": one}, shared, shared).data


@pytest.mark.parametrize("k", [0, 1, 2, 3])
def test_an_exact_program_takes_from_computed_numbers_in_the_functions_order(k: int) -> None:
    """Were all of them below the node, what the third gets would be added up in another order."""

    def function(ys: list[Any], k: int) -> Any:
        ys = [*ys, ys[-1] - 1.0]
        return gradwalk.take(ys, k) + gradwalk.softmax(ys)[0]

    compiled = gradwalk.compile(function, exact=True)
    for numbers in ([-0.966, -1.186, 0.646], [0.3, 0.1, 0.2], [1.7, -0.4, 0.9]):
        found = []
        for each in (function, compiled):
            leaves = [gradwalk.Value(number) for number in numbers]
            each(leaves, k).backward()
            found.append([leaf.grad for leaf in leaves])
        assert found[0] == found[1]


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("chosen", [gradwalk.take, gradwalk.cross_entropy])
def test_what_it_chooses_from_may_be_a_generator(chosen: Callable[..., Any], exact: bool) -> None:
    """Also where the integer is fixed in the end, or not the place of an entry."""
    compiled = compile(lambda x, n: chosen((x * k for k in range(1, 4)), n), exact=exact)
    for n in (0, 2, 1):
        assert compiled(2.0, n).data == pytest.approx(chosen([2.0, 4.0, 6.0], n), rel=1e-12)
    with pytest.raises(IndexError, match="expected an index from 0 to 2, got 3"):
        compiled(2.0, 3)


@dataclasses.dataclass
class Held:
    n: Any
    scale: float = 1.0


HELD: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "argument": (lambda n: n, lambda held: held),
    "list": (lambda n: [n, n], lambda held: held[0]),
    "mixed list": (lambda n: [0.5, n], lambda held: held[1]),
    "dict": (lambda n: {"n": n}, lambda held: held["n"]),
    "dataclass": (Held, lambda held: held.n),
    "object array": (lambda n: np.array([n], dtype=object), lambda held: held[0]),
    "array": (lambda n: np.array([n]), lambda held: held[0]),
}
WRAPPING: dict[str, Callable[[Any, Any], Any]] = {
    "*": lambda x, n: x * (n * n),
    "+": lambda x, n: x * (n + n + n),
    "**": lambda x, n: x * n**2,
    "abs": lambda x, n: x * abs(-n - n - 2),
    "/": lambda x, n: x * (n / 0),
    "//": lambda x, n: x * (n // 0),
    "sum": lambda x, n: x * sum([n, n, n]),
    "beside the other kind": lambda x, n: x * (np.uint8(200) + (n - n + 100)),
    "isinstance": lambda x, n: x * (2.0 if isinstance(n, int) else 3.0),
    "truth": lambda x, n: x * ~(n != 3) + ~(n < 3),
    "beside a Value": lambda x, n: n * x - n / x + x**2 * n,
    "compared": lambda x, n: x * 2.0 if n > x and n == n and not n < 2**53 else x,
    "returned": lambda x, n: [x, n],
}


@pytest.mark.parametrize(
    "number", [np.int64(2**62), 2**62, np.int32(2**30), np.uint64(2**63)], ids=lambda n: type(n).__name__
)
@pytest.mark.parametrize(("put", "taken"), HELD.values(), ids=HELD)
@pytest.mark.parametrize("use", WRAPPING.values(), ids=WRAPPING)
@pytest.mark.filterwarnings("ignore:.*encountered in scalar:RuntimeWarning")
def test_an_integer_of_numpys_wraps_around_as_it_does_outside(use: Any, put: Any, taken: Any, number: Any) -> None:
    """Wherever it is held; and a plain one goes on, or is too large."""

    def function(x: Any, held: Any) -> Any:
        return use(x, taken(held))

    compiled = compile(function)
    for _ in range(2):
        try:
            expected = repr(function(Value(2.0), put(number)))
        except ArithmeticError as error:
            with pytest.raises(type(error)):
                compiled(2.0, put(number))
        else:
            assert expected == repr(compiled(2.0, put(number)))


def test_a_plain_integer_leaves_numpys_short_ones_beside_it_short() -> None:
    for use in (
        lambda x, n: x * (np.uint8(200) + n),
        lambda x, n: x * (np.array([200], np.uint8) + n)[0],
        lambda x, n: x * np.add(np.uint8(200), n),
    ):
        with np.errstate(over="ignore"):
            assert use(1.0, 100) == compile(use)(1.0, 100).data == 44.0


def test_numpys_own_integer_stays_open_too() -> None:
    rows = [[Value(float(i))] for i in range(5)]
    compiled = compile(lambda i, x: gradwalk.take(rows, i)[0] * x + i * x)
    assert [compiled(np.int64(i), 2.0).data for i in range(5)] == [4.0 * i for i in range(5)]
    assert len(compiled.programs) == 1


def test_an_integer_that_a_float_is_too_coarse_for_is_compared_as_it_is() -> None:
    for bound in (2.0**53, np.int64(2**53), 2**53):
        compiled = compile(lambda x, n, bound=bound: x * 2.0 if n > bound else x)
        assert [compiled(1.0, n).data for n in (2**53, 2**53 + 1, 2**53)] == [1.0, 2.0, 1.0]


@pytest.mark.parametrize("sign", ["<", "<=", ">", ">=", "==", "!="])
def test_two_integers_are_compared_as_they_are(sign: str) -> None:
    """A program for each outcome serves them all, unless both are beyond what a float can tell apart."""
    function = lambda x, n, m: x * 2.0 if eval(f"n {sign} m") else x  # noqa: E731
    large = (2**53 - 1, 2**53, 2**53 + 1, 2**60 + 1)
    for n, m in [(n, m) for n in large for m in large]:
        compiled = compile(function)
        pairs = (n, m), (m, n), (-n, m), (-n, -m)
        assert [function(1.0, *pair) for pair in pairs] == [compiled(1.0, *pair).data for pair in pairs]
    for smaller, most in ((range(7), 2), ((*large, *(-each for each in large)), 4)):
        compiled = compile(function)
        pairs = *((n, 3) for n in smaller), *((3, n) for n in smaller)
        assert [function(1.0, *pair) for pair in pairs] == [compiled(1.0, *pair).data for pair in pairs]
        assert len(compiled.programs) <= most


@pytest.mark.parametrize("compare", [operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge])
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.filterwarnings("ignore:.*traced:gradwalk.GradwalkWarning")
def test_an_integer_beyond_a_floats_digits_is_compared_with_a_float_argument_as_it_is(
    compare: Callable[[Any, Any], bool], exact: bool
) -> None:
    """By programs, too, that were made for small ones: 2**53 and 2**53 + 1 are one float."""

    def function(x: Any, n: Any) -> Any:
        return (x * 2.0 if compare(x, n) else x * 3.0) + (x * 5.0 if compare(n, x) else x * 7.0)

    compiled = compile(function, exact=exact)
    points = [(x, n) for x in (1.0, 2.0**53, -(2.0**53), math.inf) for n in (1, 2, 2**53, 2**53 + 1, -(2**53) - 1)]
    assert [function(*point) for point in points * 2] == [compiled(*point).data for point in points * 2]


def test_an_integer_that_a_float_is_compared_with_stays_open() -> None:
    compiled = compile(lambda x, n: x * 2.0 if x < n else x * 3.0)
    assert [compiled(x, n).data for x, n in ((0.5, 1), (4.5, 5), (-2.5, -2))] == [1.0, 9.0, -5.0]
    assert len(compiled.programs) == 1


def test_a_branch_without_the_integer_leaves_the_others_their_programs() -> None:
    compiled = compile(lambda x, n: x * sum(range(n)) if x > 0.0 else -x)
    calls = (1.0, 3), (1.0, 4), (-1.0, 3), (1.0, 4)
    assert [(compiled(*args).data, len(compiled.programs)) for args in calls] == [
        (3.0, 1),
        (6.0, 2),
        (1.0, 3),
        (6.0, 3),
    ]
