"""backward(create_graph=True): second and third derivatives against 40 digits, and what it refuses."""

from __future__ import annotations

import copy
import functools
import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import pytest
from measures import bits, snapshot

from gradwalk.control import changed, ieee
from gradwalk.operation import Op
from gradwalk.ops import OPS
from gradwalk.optim import SGD


def half_erfc(x: Any) -> Any:
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


# what rows are, for numbers of 40 digits; of a row that is not here, tests/contributing sees the second derivatives
EXACT: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "pow": lambda x, y: x**y,
    "pow_number": lambda x, n: x ** int(n) if n == int(n) else x**n,
    "neg": lambda x: -x,
    "abs": abs,
    "exp": mpmath.exp,
    "expm1": mpmath.expm1,
    "log": mpmath.log,
    "log1p": mpmath.log1p,
    "log2": lambda x: mpmath.log(x) / mpmath.log(2),
    "log10": mpmath.log10,
    "sqrt": mpmath.sqrt,
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "tan": mpmath.tan,
    "asin": mpmath.asin,
    "acos": mpmath.acos,
    "atan": mpmath.atan,
    "atan2": mpmath.atan2,
    "sinh": mpmath.sinh,
    "cosh": mpmath.cosh,
    "tanh": mpmath.tanh,
    "asinh": mpmath.asinh,
    "acosh": mpmath.acosh,
    "atanh": mpmath.atanh,
    "relu": lambda x: max(x, mpmath.mpf(0)),
    "leaky_relu": lambda x, slope: x if x > 0 else slope * x,
    "elu": lambda x, alpha: x if x > 0 else alpha * mpmath.expm1(x),
    "gelu": lambda x: x * half_erfc(x),
    "silu": lambda x: x / (1 + mpmath.exp(-x)),
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "softplus": lambda x: mpmath.log1p(mpmath.exp(x)),
    "erf": mpmath.erf,
    "erfc": mpmath.erfc,
    "lgamma": lambda x: mpmath.log(abs(mpmath.gamma(x))),
    "minimum": min,
    "maximum": max,
    "hypot": lambda x, y: mpmath.sqrt(x * x + y * y),
    "fmod": lambda x, y: mpmath.sign(x) * mpmath.fmod(abs(x), abs(y)),
    "copysign": lambda x, y: abs(x) * mpmath.sign(y),
    "floor": mpmath.floor,
    "ceil": mpmath.ceil,
    "sign": mpmath.sign,
    "where": lambda condition, x, y: x if condition != 0 else y,
    "clamp": lambda x, low, high: min(max(x, low), high),
    "stop_gradient": lambda x: mpmath.mpf(0),  # a number that nothing flows back through
}

Function = Callable[..., Any]


def derivative(function: Function, point: Sequence[Any], directions: Sequence[int]) -> float:
    """Differentiate by each input named in `directions` in turn, with create_graph throughout."""
    out: Any = function(*point)
    for i in directions:
        for x in point:
            x.grad = 0.0
        out.backward(create_graph=True)
        out = point[i].grad
        if isinstance(out, float):  # the last derivative does not depend on this input any more
            return out
    for x in point:
        x.grad = 0.0
    return out.data  # type: ignore[no-any-return]


def exact_derivative(function: Function, point: Sequence[float], directions: Sequence[int]) -> float:
    with mpmath.workdps(40):
        orders = tuple(directions.count(i) for i in range(len(point)))
        arguments = tuple(map(mpmath.mpf, point))
        return float(mpmath.re(mpmath.diff(function, arguments, orders)))


def assert_derivatives(engine: Any, function: Function, exact: Function, point: Sequence[float], inputs: Any) -> None:
    leaves = [engine.Value(x) for x in point]
    for order in (2, 3):
        for directions in itertools.combinations_with_replacement(inputs, order):
            actual = derivative(function, leaves, directions)
            expected = exact_derivative(exact, point, directions)
            assert actual == pytest.approx(expected, rel=1e-9, abs=1e-10), (point, directions)


def samples(op: Op) -> list[tuple[float, ...]]:
    return [sample if isinstance(sample, tuple) else (sample,) for sample in op.samples]


@pytest.mark.parametrize("op", [op for op in OPS.values() if op.name in EXACT], ids=lambda op: op.name)
def test_second_and_third_derivatives_of_every_row(engine: Any, op: Op) -> None:
    """All of them, mixed ones too, at the row's samples."""
    for sample in samples(op):
        point, parameters = sample[: len(op.inputs)], sample[len(op.inputs) :]
        inputs = range(1 if op.name == "where" else 0, len(point))  # a condition is a jump, not a number

        def function(*xs: Any, parameters: Any = parameters) -> Any:
            return getattr(engine.functions, op.name)(*xs, *parameters)

        def exact(*xs: Any, parameters: Any = parameters) -> Any:
            return EXACT[op.name](*xs, *map(mpmath.mpf, parameters))

        assert_derivatives(engine, function, exact, point, inputs)


def exact_softmax(xs: Sequence[Any], i: int) -> Any:
    return mpmath.exp(xs[i]) / sum(mpmath.exp(x) for x in xs)


def exact_rmsnorm(xs: Sequence[Any], i: int) -> Any:
    return xs[i] / mpmath.sqrt(sum(x * x for x in xs) / len(xs) + mpmath.mpf(1e-5))


def exact_layernorm(xs: Sequence[Any], i: int) -> Any:
    mean = sum(xs) / len(xs)
    return exact_rmsnorm([x - mean for x in xs], i)


COMPOSITES: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any], Any]]] = {
    "sum": (lambda c, xs: c.sum(xs) ** 3, lambda xs: sum(xs) ** 3),
    "mean": (lambda c, xs: c.mean(xs) ** 3, lambda xs: (sum(xs) / len(xs)) ** 3),
    "dot": (
        lambda c, xs: c.dot([xs[0], xs[1]], [xs[2], xs[0]]) ** 2,
        lambda xs: (xs[0] * xs[2] + xs[1] * xs[0]) ** 2,
    ),
    "matvec": (lambda c, xs: c.matvec([xs], xs)[0] ** 2, lambda xs: sum(x * x for x in xs) ** 2),
    "norm": (lambda c, xs: c.norm(xs), lambda xs: mpmath.sqrt(sum(x * x for x in xs))),
    "logsumexp": (lambda c, xs: c.logsumexp(xs), lambda xs: mpmath.log(sum(mpmath.exp(x) for x in xs))),
    "softmax": (lambda c, xs: c.softmax(xs)[1], lambda xs: exact_softmax(xs, 1)),
    "log_softmax": (lambda c, xs: c.log_softmax(xs)[2], lambda xs: mpmath.log(exact_softmax(xs, 2))),
    "cross_entropy": (lambda c, xs: c.cross_entropy(xs, 0), lambda xs: -mpmath.log(exact_softmax(xs, 0))),
    "rmsnorm": (lambda c, xs: c.rmsnorm(xs)[1], lambda xs: exact_rmsnorm(xs, 1)),
    "layernorm": (lambda c, xs: c.layernorm(xs)[0], lambda xs: exact_layernorm(xs, 0)),
    "maximum": (lambda c, xs: c.maximum(xs) ** 3, lambda xs: max(xs) ** 3),
    "minimum": (lambda c, xs: c.minimum(xs) ** 3, lambda xs: min(xs) ** 3),
    "take": (lambda c, xs: c.take(xs, 1) ** 3, lambda xs: xs[1] ** 3),
}


@pytest.mark.parametrize("name", COMPOSITES)
def test_second_and_third_derivatives_of_every_composite(engine: Any, name: str) -> None:
    """All of them, mixed ones too."""
    composite, exact = COMPOSITES[name]
    assert_derivatives(
        engine, lambda *xs: composite(engine.composites, xs), lambda *xs: exact(xs), (0.3, -1.2, 2.0), range(3)
    )


@pytest.mark.parametrize("count", [1, 2, 3])
def test_what_is_added_up_several_times_counts_as_often(engine: Any, count: int) -> None:
    """Both derivatives of so many times x³ are as many times those of x³."""
    x = engine.Value(3.0)
    cube = x**3
    functools.reduce(operator.add, [cube] * count).backward(create_graph=True)
    first = x.grad
    x.grad = 0.0
    first.backward()
    assert (first.data, x.grad) == (count * 27.0, count * 18.0)


def test_the_engines_agree_to_the_bit(reference: Any, native: Any) -> None:
    """First, second and third derivatives of one function of everything."""

    def derivatives(engine: Any) -> list[int]:
        def function(x: Any, y: Any) -> Any:
            c = engine.composites
            inner = (x * y).tanh() + c.logsumexp([x, y, 0.5]) * x**3 + 2**y
            return c.dot([inner, y], [x.sigmoid(), inner.gelu()]) + inner**1.5 / (y * y)

        leaves = [engine.Value(0.7), engine.Value(1.3)]
        paths = [p for order in (1, 2, 3) for p in itertools.product(range(2), repeat=order)]
        return bits(derivative(function, leaves, path) for path in paths)

    assert derivatives(reference) == derivatives(native)


def test_first_gradients_are_those_of_a_plain_pass(engine: Any) -> None:
    """The numbers of the leaves' gradients, and every interior gradient."""
    a, b = engine.Value(0.3), engine.Value(-0.7)
    root = (a * b + a).tanh() * b.exp() + a**3
    root.backward()
    plain = snapshot(root)
    a.grad = b.grad = 0.0
    root.backward(create_graph=True)
    assert snapshot(root) == plain
    assert isinstance(a.grad, engine.Value)


def test_create_graph_by_position_or_keyword(engine: Any) -> None:
    """backward(True) and backward(create_graph=True) are the same; create_graph=False is a plain pass."""
    x = engine.Value(3.0)
    for arguments, named, kind in (((True,), {}, engine.Value), ((), {"create_graph": True}, engine.Value),
                                   ((False,), {}, float), ((), {"create_graph": False}, float)):  # fmt: skip
        x.grad = 0.0
        (x**3).backward(*arguments, **named)
        assert type(x.grad) is kind
    x.grad = 0.0


def test_leaves_accumulate(engine: Any) -> None:
    """Over passes with create_graph, and over passes of both kinds."""
    x = engine.Value(3.0)
    (x**3).backward(create_graph=True)
    (x**2).backward(create_graph=True)
    assert x.grad.data == 33.0
    total = x.grad
    x.grad = 0.0
    total.backward()
    assert x.grad == 6 * 3.0 + 2.0


def test_a_number_accumulates_into_a_value(engine: Any) -> None:
    """A gradient of a plain pass is a number added to the Value of the next."""
    x = engine.Value(3.0)
    (x**2).backward()
    (x**3).backward(create_graph=True)
    assert x.grad.data == 33.0
    x.grad = 0.0


def test_a_plain_pass_after_create_graph(engine: Any) -> None:
    """The gradient becomes a number again, with both contributions."""
    x = engine.Value(3.0)
    (x**3).backward(create_graph=True)
    (x**2).backward()
    assert (x.grad, type(x.grad)) == (33.0, float)


def test_a_leaf_as_root(engine: Any) -> None:
    """The derivative of x by itself is 1, as a Value."""
    x = engine.Value(3.0)
    x.backward(create_graph=True)
    assert x.grad.data == 1.0
    x.grad = 0.0


def test_kinks_and_branches_outside_their_domain(engine: Any) -> None:
    """A branch that is not taken may be outside its domain: no error, no nan."""
    x = engine.Value(0.0)
    assert [derivative(lambda x, n=n: x**n, [x], [0, 0]) for n in (0, 1, 2, 3)] == [0.0, 0.0, 2.0, 0.0]
    assert derivative(lambda x: x**3, [x], [0, 0, 0]) == 6.0
    assert derivative(lambda x: x.relu(), [x], [0, 0]) == 0.0


def test_a_gradient_penalty(engine: Any) -> None:
    """The gradient of (f'(x))², as it is used in practice."""
    x = engine.Value(0.5)
    x.sin().backward(create_graph=True)
    slope, x.grad = x.grad, 0.0
    (slope**2).backward()
    assert x.grad == pytest.approx(-2 * math.cos(0.5) * math.sin(0.5), rel=1e-15)


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize("flat", ["relu", "abs", "sign", "stop_gradient"])
@pytest.mark.parametrize("beyond", [math.nan, math.inf])
def test_a_slope_of_0_hands_on_what_it_does_in_an_ordinary_pass(engine: Any, flat: str, beyond: float) -> None:
    with ieee():
        gradients = []
        for create_graph in (False, True):
            x = engine.Value(0.0)
            (x._apply(flat, x) * beyond + x).backward(create_graph=create_graph)
            gradients.append(getattr(x.grad, "data", x.grad))
    assert gradients[0] == gradients[1] or all(map(math.isnan, gradients))


def test_a_pass_that_fails_changes_nothing(engine: Any) -> None:
    """As where memory ends, or a signal's exception comes, when some leaves have their gradient and others do not."""
    a, b = engine.Value(2.0), engine.Value(1.0)
    inner = a * 3.0
    root = inner + b * 4.0
    a.grad, b.grad, inner.grad = 7.0, 8.0, 9.0
    before, told = snapshot(root), []

    def fail_at_the_second(_: Any) -> None:
        told.append(a.grad)
        if len(told) == 2:
            raise MemoryError

    with changed(on_record=fail_at_the_second), pytest.raises(MemoryError):
        root.backward(create_graph=True)
    assert told[1].data == 10.0
    assert snapshot(root) == before
    assert type(a.grad) is float


def test_changed_data_is_refused(engine: Any) -> None:
    """The rows would run on other numbers than the forward pass did; nothing is changed."""
    x = engine.Value(2.0)
    y = x**3
    x.grad = 5.0
    x.data = 7.0
    with pytest.raises(ValueError, match="expected the numbers of the forward pass under create_graph, got changed"):
        y.backward(create_graph=True)
    assert (x.grad, y.grad) == (5.0, 0.0)


def test_a_node_made_by_hand_is_refused(engine: Any) -> None:
    """Its local gradients are plain numbers; nothing is changed."""
    x = engine.Value(2.0)
    y = engine.Value(4.0, (x,), "square", local_grads=(4.0,)) * 2.0
    with pytest.raises(TypeError, match="got a node made by hand as 'square'"):
        y.backward(create_graph=True)
    assert (x.grad, y.grad) == (0.0, 0.0)


def test_an_operation_with_a_backward_of_its_own_is_refused(engine: Any) -> None:
    """The row of the table is not what the pass would compute; it must not be used silently."""
    x = engine.Value(2.0)
    y = x * x

    def push() -> None:
        x.grad += 1000.0 * y.grad

    y._backward = push
    with pytest.raises(TypeError, match=r"made by hand|_backward"):
        y.backward(create_graph=True)


def test_a_copy_has_second_derivatives(engine: Any) -> None:
    """It is the same number with the same history."""
    x = engine.Value(2.0)
    copy.copy(x**3).backward(create_graph=True)
    first, x.grad = x.grad, 0.0
    first.backward()
    assert (first.data, x.grad) == (12.0, 12.0)


def test_a_gradient_that_is_a_value_counts_as_what_it_is_now(engine: Any) -> None:
    """Its number may have been changed since it was assigned: for the pass, for a push, and for an optimiser."""

    def leaf_with_gradient() -> Any:
        leaf, gradient = engine.Value(1.0), engine.Value(-1.5)
        leaf.grad = gradient
        gradient.data = 0.25
        return leaf

    x = leaf_with_gradient()
    (x * 2.0).backward()
    y = leaf_with_gradient()
    (y * 2.0)._push()
    z = leaf_with_gradient()
    SGD([z], lr=1.0).step()
    assert (x.grad, y.grad.data, z.data) == (2.25, 0.25, 0.75)
