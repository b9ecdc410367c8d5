"""Bad input: which operation, which value, which label, what to do; the same words in both engines; ieee()."""

from __future__ import annotations

import math
import operator
import threading
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import pytest
from measures import outcome, snapshot

import gradwalk
from gradwalk.ops import OPERATORS, OPS

BAD: dict[str, tuple[type[Exception], str, Callable[[Any], Any]]] = {
    "log of a negative": (
        ValueError,
        "log: expected x > 0, got -1.5 (node 'x'); clamp the input or use gradwalk.ieee()",
        lambda x: x.log(),
    ),
    "log of zero": (
        ValueError,
        "log: expected x > 0, got 0.0; clamp the input or use gradwalk.ieee()",
        lambda x: (x - x).log(),
    ),
    "division by zero": (
        ZeroDivisionError,
        "div: expected a divisor other than 0, got x = -1.5 (node 'x'), y = 0.0; "
        "clamp the input or use gradwalk.ieee()",
        lambda x: x / 0,
    ),
    "one by zero": (
        ZeroDivisionError,
        "div: expected a divisor other than 0, got x = 1.0, y = 0.0; clamp the input or use gradwalk.ieee()",
        lambda x: 1 / (x - x),
    ),
    "overflow": (
        OverflowError,
        "exp: the result overflows, got 1000.0; scale the input down or use gradwalk.ieee()",
        lambda x: (x * 0.0 + 1000.0).exp(),
    ),
    "overflow of a power": (
        OverflowError,
        "pow: the result overflows, got x = -1.5 (node 'x'), n = 100001.0; scale the input down or use gradwalk.ieee()",
        lambda x: x**100001,
    ),
    "a fractional power of a negative base": (
        ValueError,
        "pow: expected a positive base, 0 with an exponent of at least 0, or a negative base with a whole "
        "exponent, got x = -1.5 (node 'x'), n = 0.3333333333333333; clamp the input or use gradwalk.ieee()",
        lambda x: x ** (1 / 3),
    ),
    "zero to a negative power": (
        ZeroDivisionError,
        "pow: expected a positive base, 0 with an exponent of at least 0, or a negative base with a whole "
        "exponent, got x = 0.0, n = -1.0; clamp the input or use gradwalk.ieee()",
        lambda x: (x - x) ** -1,
    ),
    "a string": (
        TypeError,
        "add: expected a number or a Value, got '2' (str) beside node 'x'; convert it to a float first",
        lambda x: x + "2",
    ),
    "a string on the left": (
        TypeError,
        "mul: expected a number or a Value, got '2' (str) beside node 'x'; convert it to a float first",
        lambda x: "2" * x,
    ),
    "None": (
        TypeError,
        "sub: expected a number or a Value, got None beside node 'x'; convert it to a float first",
        lambda x: x - None,
    ),
    "a complex number": (
        TypeError,
        "mul: expected a number or a Value, got 2j (complex) beside node 'x'; take its .real and .imag",
        lambda x: x * 2j,
    ),
    "a list": (
        TypeError,
        "div: expected a number or a Value, got a list beside node 'x'; convert it to a float first",
        lambda x: x / [1.0],
    ),
    "an integer beyond floats": (
        OverflowError,
        "mul: expected a number that fits a float, got a larger int; scale it down",
        lambda x: x * 10**400,
    ),
    "clamp to nothing": (
        ValueError,
        "clamp: expected low <= high, got x = -1.5 (node 'x'), low = 1.0, high = -1.0; swap them",
        lambda x: x.clamp(1, -1),
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_says_what_where_and_what_to_do(engine: Any, case: str) -> None:
    """The operation, what it expected, the value, the node's label, and the way out, in one sentence."""
    kind, text, make = BAD[case]
    with pytest.raises(kind) as caught:
        make(engine.Value(-1.5, label="x"))
    assert str(caught.value) == text


@pytest.mark.parametrize("case", BAD)
def test_bad_input_leaves_the_graph_as_it_was(engine: Any, case: str) -> None:
    """No data, gradient or child has changed, and the graph still works."""
    _, _, make = BAD[case]
    x = engine.Value(-1.5, label="x")
    root = x * x + x * 3.0
    root.backward()
    before = snapshot(root), [node._children for node in root._topological_order()]
    with pytest.raises((TypeError, ValueError, ArithmeticError)):
        make(x)
    assert (snapshot(root), [node._children for node in root._topological_order()]) == before
    x.grad = 0.0
    root.backward()
    assert x.grad == 0.0


NO_NUMBERS = ["2", None, 2j, [1], (1,), {}, {1}, b"x", object, Decimal(2), bytearray(b"x"), range(3), ..., print]
OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "v + b": operator.add,
    "v - b": operator.sub,
    "v * b": operator.mul,
    "v / b": operator.truediv,
    "v ** b": operator.pow,
    "b + v": lambda v, b: b + v,
    "b - v": lambda v, b: b - v,
    "b * v": lambda v, b: b * v,
    "b / v": lambda v, b: b / v,
    "b ** v": lambda v, b: b**v,
    "v < b": operator.lt,
    "v <= b": operator.le,
    "b < v": lambda v, b: b < v,
    "v // b": operator.floordiv,
    "v % b": operator.mod,
    "v @ b": operator.matmul,
    "pow(v, b)": lambda v, b: v.pow(b),
    "v.data = b": lambda v, b: setattr(v, "data", b),
    "v.grad = b": lambda v, b: setattr(v, "grad", b),
    "v.atan2(b)": lambda v, b: v.atan2(b),
    "v.leaky_relu(b)": lambda v, b: v.leaky_relu(b),
    "v.clamp(b, 1)": lambda v, b: v.clamp(b, 1),
    "v.where(b, 1)": lambda v, b: v.where(b, 1),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_is_no_number_is_refused_in_the_same_words(reference: Any, native: Any, operation: str) -> None:
    """A TypeError with the same text from both engines, with and without a label."""
    apply = OPERATIONS[operation]
    for label in ("", "w"):
        for bad in NO_NUMBERS:
            said = [outcome(partial(apply, engine.Value(2.0, label=label), bad)) for engine in (reference, native)]
            assert said[0].startswith("TypeError: ")
            assert said[0] == said[1]


OUTSIDE = [-math.inf, -1e308, -2.5, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.0, 800.0, 1e308, math.inf, math.nan]


@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
def test_every_operation_refuses_in_the_same_words(reference: Any, native: Any, op: Any) -> None:
    """At the edges of its domain and beyond, each row gives the same number or the same error in both engines."""
    names = op.names
    for i, first in enumerate(OUTSIDE):
        for j, second in enumerate(OUTSIDE if len(names) > 1 else [0.0]):
            numbers = [first, second, OUTSIDE[(i + j) % len(OUTSIDE)]][: len(names)]
            results = []
            for engine in (reference, native):
                call = getattr(engine.functions, op.name)
                nodes = [engine.Value(number, label=f"n{k}") for k, number in enumerate(numbers[: len(op.inputs)])]
                arguments = [*nodes, *numbers[len(op.inputs) :]]
                results.append((outcome(lambda c=call, a=arguments: c(*a)), outcome(lambda c=call, n=numbers: c(*n))))
            assert results[0] == results[1], numbers


@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
def test_the_number_of_arguments_is_checked_in_the_same_words(reference: Any, native: Any, op: Any) -> None:
    """Too few or too many arguments: a TypeError that names the operation and its arguments."""
    for count in range(7):
        given = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0][:count]
        outcomes = [outcome(partial(getattr(e.functions, op.name), *given)) for e in (reference, native)]
        assert outcomes[0] == outcomes[1]
        if op.name not in OPERATORS:
            methods = [outcome(partial(getattr(e.Value(1.0), op.name), *given)) for e in (reference, native)]
            assert methods[0] == methods[1]


NOT_FOR_VALUES: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "int": int,
    "complex": complex,
    "math.exp": math.exp,
    "math.sqrt": math.sqrt,
    "math.pow": lambda v: math.pow(v, 2),
    "percent": lambda v: "%.2f" % v,  # noqa: UP031
    "index": operator.index,
    "range": lambda v: range(v),
    "len": len,
    "iter": iter,
    "call": lambda v: v(),
    "item": lambda v: v[0],
    "attribute": lambda v: v.nothing,
}


@pytest.mark.parametrize("case", NOT_FOR_VALUES)
def test_what_a_value_does_not_do_is_refused_in_the_same_words(reference: Any, native: Any, case: str) -> None:
    """Also where the interpreter words the message, it is the same one."""
    outcomes = [outcome(lambda e=e: NOT_FOR_VALUES[case](e.Value(2.0, label="w"))) for e in (reference, native)]
    assert outcomes[0].startswith(("TypeError: ", "AttributeError: "))
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("convert", [float, int, math.exp, math.log], ids=lambda f: f.__name__)
def test_conversion_names_what_to_use_instead(engine: Any, convert: Callable[[Any], Any]) -> None:
    """float(v) and math.exp(v) raise: a gradient is never dropped silently."""
    with pytest.raises(TypeError) as caught:
        convert(engine.Value(2.0, label="w"))
    assert all(part in str(caught.value) for part in ("node 'w'", ".data", "gradwalk.exp(v)", "v.exp()"))


@pytest.mark.parametrize(
    "call",
    [
        lambda v: v.backward(True, False),
        lambda v: v.backward(retain_graph=True),
        lambda v: pow(v, 2, 3),
        lambda v: pow(2, 3, v),
        lambda v: v.exp(out=None),
        lambda v: gradwalk.rmsnorm([v], epsilon=1e-5),
        lambda v: gradwalk.softmax([v], [v]),
    ],
)
def test_arguments_nobody_takes(engine: Any, call: Callable[[Any], Any]) -> None:
    """backward() takes create_graph alone, a power has no modulus: a TypeError."""
    with pytest.raises(TypeError):
        call(engine.Value(2.0))


def test_error_classes(engine: Any) -> None:
    """Each is what plain floats raise in the same place, and no other of the kinds people catch."""
    x = engine.Value(0.0)
    with pytest.raises(gradwalk.DomainError):
        x.log()
    quotients = (lambda: 1 / x, lambda: 2.0 % x, lambda: (x + 2.0) // 0.0, lambda: divmod(x, x))
    powers = (lambda: x**-1, lambda: x**-0.5, lambda: x ** (x - 1.0), lambda: 0.0 ** (x - 1.0))
    for divided in (*quotients, *powers):
        with pytest.raises(gradwalk.DivisionByZeroError):
            divided()
    with pytest.raises(gradwalk.RangeError):
        (x + 1000.0).exp()
    plain = {
        gradwalk.DivisionByZeroError: ZeroDivisionError,
        gradwalk.RangeError: OverflowError,
        gradwalk.DomainError: ValueError,
    }
    for ours, kind in plain.items():
        assert issubclass(ours, gradwalk.NumberError)
        assert [each for each in plain.values() if issubclass(ours, each)] == [kind]


def test_a_nan_passes_through(engine: Any) -> None:
    """Nan in, nan out, without an error: it came from somewhere else. By 0 it is not divided, either."""
    x = engine.Value(math.nan)
    assert all(math.isnan(out.data) for out in (x.log(), x.sqrt(), x / x, 1 / x, x**0.5, x.asin(), x.sin()))
    with pytest.raises(ZeroDivisionError):
        x / 0.0  # as with floats


# ---------------------------------------------------------------- ieee()


def test_ieee_lets_it_pass(engine: Any) -> None:
    """Inside, the results are IEEE's inf and nan, also in gradients."""
    zero, minus = engine.Value(0.0), engine.Value(-1.0)
    with gradwalk.ieee():
        out = [zero.log(), 1 / zero, -1 / zero, minus.log(), (zero + 1000.0).exp(), minus**0.5, zero**-1]
        root = zero.sqrt()
    root.backward()
    assert [repr(v.data) for v in out] == ["-inf", "inf", "-inf", "nan", "inf", "nan", "inf"]
    assert zero.grad == math.inf


def test_ieee_ends(engine: Any) -> None:
    """After the block, also after one that raised or was nested, errors are back."""
    x = engine.Value(0.0)
    with gradwalk.ieee():
        with pytest.raises(KeyError), gradwalk.ieee():
            raise KeyError
        assert x.log().data == -math.inf
    with pytest.raises(ValueError, match="log: expected x > 0"):
        x.log()


def test_ieee_does_not_let_strings_pass(engine: Any) -> None:
    """It is about numbers."""
    with gradwalk.ieee(), pytest.raises(TypeError):
        engine.Value(1.0) + "2"


def test_ieee_is_of_one_thread(engine: Any) -> None:
    """Another thread keeps its errors."""
    said = []

    def elsewhere() -> None:
        said.append(outcome(engine.Value(0.0).log))

    with gradwalk.ieee():
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert said[0].startswith("DomainError: log: expected x > 0")


def test_a_fraction_beyond_floats(engine: Any) -> None:
    """A fraction beyond floats is refused as an integer is: with an error of gradwalk's, not an accident."""
    with pytest.raises(gradwalk.RangeError):
        engine.Value(1.0) * Fraction(10**400)
