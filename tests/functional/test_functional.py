"""grad, value_and_grad, jacobian, hessian, hvp, jvp, vjp: structures, nesting, purity and bad input."""

from __future__ import annotations

import collections
import dataclasses
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest

import gradwalk
import gradwalk.engine
from gradwalk import Value, grad, hessian, hvp, jacobian, jvp, value_and_grad, vjp
from gradwalk.control import no_grad


class Point(NamedTuple):
    x: float
    y: float


@dataclasses.dataclass(frozen=True)
class Model:
    weights: list[float]
    bias: float
    name: str = "m"
    total: float = dataclasses.field(init=False, default=0.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", sum(self.weights) + self.bias)


@pytest.fixture(params=("reference", "native"))
def on_engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The engine whose Values stand in for plain numbers."""
    monkeypatch.setattr(gradwalk.engine, "Value", gradwalk.engine.load(request.param).Value)
    return str(request.param)


# ---------------------------------------------------------------- structures


@pytest.mark.parametrize(
    ("f", "x", "expected"),
    [
        (lambda x: x * x, 3.0, 6.0),
        (lambda x: x * x, 3, 6.0),
        (lambda x: x * x, np.float32(3.0), 6.0),
        (lambda x: x[0] * x[1], [3.0, 4.0], [4.0, 3.0]),
        (lambda x: x[0] * x[1], (3.0, 4), (4.0, 3.0)),
        (lambda x: x["a"] * x["b"][1], {"a": 3.0, "b": [1.0, 4.0]}, {"a": 4.0, "b": [0.0, 3.0]}),
        (lambda p: p.x * p.y, Point(3.0, 4.0), Point(4.0, 3.0)),
        (lambda x: x["a"] ** 2, collections.OrderedDict(a=3.0), collections.OrderedDict(a=6.0)),
        (lambda x: x[0] * len(x[1]), [3.0, "abc", None, True], [3.0, "abc", None, True]),
        (lambda x: x[0][0][0] * 5.0, [[[2.0]], []], [[[5.0]], []]),
    ],
)
def test_the_gradient_has_the_argument_structure(on_engine: str, f: Any, x: Any, expected: Any) -> None:
    """Numbers are replaced by derivatives; what is no number stays; on both engines."""
    found = grad(f)(x)
    assert (type(found), found) == (type(expected), expected)


def test_dataclass() -> None:
    """Derived fields follow the Values; the gradient is of the same class, without them."""
    slope = grad(lambda m: m.total * m.weights[0])(Model([2.0, 3.0], 1.0))
    assert isinstance(slope, Model)
    assert (slope.weights, slope.bias, slope.name, slope.total) == ([8.0, 2.0], 2.0, "m", None)


@dataclasses.dataclass
class Scaled:
    """Made of a factor that it does not keep."""

    x: float
    factor: dataclasses.InitVar[float]
    y: float = dataclasses.field(init=False)

    def __post_init__(self, factor: float) -> None:
        self.y = self.x * factor


def test_a_dataclass_that_cannot_be_made_anew() -> None:
    """Its fields are numbers like the others: none follows."""
    slope = grad(lambda s: s.x * s.y)(Scaled(2.0, 3.0))
    assert (type(slope), slope.x, slope.y) == (Scaled, 6.0, 2.0)


@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3), (2, 1, 2), (0,)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_arrays(shape: tuple[int, ...], dtype: Any) -> None:
    """An array of any shape and number type in, a float and a float64 array of that shape out."""
    x = np.arange(1, 1 + math.prod(shape)).astype(dtype).reshape(shape)
    value, slope = value_and_grad(lambda x: np.sum(x * x))(x)
    assert type(value) is float
    assert (type(slope), slope.dtype, slope.shape) == (np.ndarray, np.float64, shape)
    assert np.array_equal(slope, 2.0 * x)


@pytest.mark.parametrize(
    "x",
    [
        np.arange(6.0), np.arange(6.0)[::2], np.arange(6.0).reshape(2, 3).T, np.arange(3.0).astype(">f8"),
        np.arange(3.0, dtype=np.float32), np.array(3.0), np.array([]), np.arange(6.0).reshape(1, 2, 3)[:, :, 1:],
        np.arange(4).astype(object), np.broadcast_to(2.0, (2, 2)),
    ],
)  # fmt: skip
def test_arrays_of_any_layout(on_engine: str, x: Any) -> None:
    """The gradient is a new array of doubles in the same shape, and the argument is left alone."""
    before = x.copy()
    slope = grad(lambda x: np.sum(x * x))(x)
    assert (type(slope), slope.dtype, slope.shape) == (np.ndarray, np.float64, x.shape)
    assert slope.tolist() == (2.0 * before).tolist()
    assert x.tolist() == before.tolist()


def test_arguments_by_position_and_name() -> None:
    """One gives a gradient, several give a tuple; keywords and positions both reach an argument."""

    def f(a: Any, b: Any, *, c: Any = 2.0) -> Any:
        return a * b * c

    assert grad(f)(3.0, 5.0) == 10.0
    assert grad(f, argnums=1)(3.0, 5.0) == 6.0
    assert [grad(f, argnums=place)(3.0, 5.0) for place in (-1, -2)] == [6.0, 10.0]
    assert grad(f)(a=3.0, b=5.0) == 10.0
    assert grad(f, argnums="b")(3.0, 5.0) == grad(f, argnums="b")(3.0, b=5.0) == grad(f, argnums=1)(3.0, b=5.0) == 6.0
    assert grad(f, argnums=("c", 0))(3.0, 5.0, c=7.0) == (15.0, 35.0)
    assert grad(f, argnums=[0])(3.0, 5.0) == (10.0,)
    assert value_and_grad(f, argnums="a")(3.0, 5.0) == (30.0, 10.0)


def test_jacobian_structures() -> None:
    """The result's structure outside, the argument's inside; arrays against arrays are one array."""

    def f(x: Any) -> Any:
        return {"s": x["a"][0] * x["b"], "v": np.array([x["b"], x["a"][1]])}

    found = jacobian(f)({"a": np.array([2.0, 3.0]), "b": 5.0})
    assert np.array_equal(found["s"]["a"], [5.0, 0.0])
    assert found["s"]["b"] == 2.0
    assert np.array_equal(found["v"]["a"], [[0.0, 0.0], [0.0, 1.0]])
    assert np.array_equal(found["v"]["b"], [1.0, 0.0])
    square = jacobian(lambda x: np.outer(x, x))(np.array([2.0, 3.0]))
    assert square.shape == (2, 2, 2)
    assert jacobian(lambda x: [x, 2.0, x * x])(3.0) == [1.0, 0.0, 6.0]


@pytest.mark.parametrize("inputs", [1, 2, 5])
@pytest.mark.parametrize("outputs", [1, 3, 300])
def test_forward_and_reverse_agree(on_engine: str, inputs: int, outputs: int) -> None:
    """Whichever way is taken, the numbers are the same up to rounding."""

    def f(x: Any) -> list[Any]:
        return [(x[i % inputs] * (i + 1.0)).sin() * x[-1] for i in range(outputs)]

    x = [0.3 * (i + 1.0) for i in range(inputs)]
    forward, reverse, either = (jacobian(f, mode=mode)(x) for mode in ("forward", "reverse", None))
    assert np.allclose(forward, reverse, rtol=1e-14, atol=1e-15)
    assert np.allclose(either, reverse, rtol=1e-14, atol=1e-15)


# ---------------------------------------------------------------- orders


def test_nested_grad_gives_higher_orders(on_engine: str) -> None:
    """Up to the fifth derivative of exp(2x)."""
    f = derivative = lambda x: (2.0 * x).exp()
    for order in range(1, 6):
        derivative = grad(derivative)
        assert derivative(0.5) == pytest.approx(2.0**order * math.e, rel=1e-14)
    assert f is not derivative


def test_an_inner_variable_is_not_confused_with_an_outer_one() -> None:
    """d/dx of x · d/dy (x + y) at y = x is 1, not 2; a closed-over outer variable stays a variable."""
    assert grad(lambda x: x * grad(lambda y: x + y)(x))(2.0) == 1.0
    assert grad(lambda x: grad(lambda y: x * y * y)(3.0))(2.0) == 6.0
    assert grad(lambda x: grad(lambda y: y * y)(3.0) * x)(2.0) == 6.0
    assert grad(lambda x: grad(lambda y: grad(lambda z: x * y * z * z)(y))(x))(2.0) == 16.0


def test_an_inner_derivative_that_depends_on_nothing_outside_is_a_number() -> None:
    """So that it can be used as one."""
    seen = []
    grad(lambda x: x * (seen.append(grad(lambda y: y * y)(3.0)) or seen[-1]))(2.0)
    assert seen == [6.0]
    assert type(seen[0]) is float


def test_values_in_values_out(engine: Any) -> None:
    """Given a Value, the derivative is a Value that can be differentiated by it."""
    x = engine.Value(3.0)
    value, slope = value_and_grad(lambda x: x**3)(x)
    slope.backward()
    assert (value.data, slope.data, x.grad) == (27.0, 27.0, 18.0)
    y = engine.Value(2.0)
    jvp(lambda x: x**3)(y, 1.0).backward()
    assert y.grad == 12.0
    labels = []
    x = engine.Value(3.0, label="x")
    slopes = grad(lambda pair: labels.append(pair[0].label) or pair[0] * pair[1])([x, 2.0])
    assert (labels, [slope.data for slope in slopes]) == (["x"], [2.0, 3.0])


def test_a_direction_may_have_values_in_it() -> None:
    """The product is a Value that can be differentiated by them."""
    for product in (lambda v: jvp(lambda x: x[0] * x[1])([3.0, 5.0], v), lambda v: vjp(lambda x: [5.0 * x, x])(2.0, v)):
        direction = Value(2.0)
        product([direction, 1.0]).backward()
        assert direction.grad == 5.0


def test_hessian_and_products() -> None:
    """hessian, hvp, jvp and vjp are the same matrix, whole or multiplied."""

    def f(x: Any) -> Any:
        return (x[0] * x[1]).sin() + x[1] ** 3 * x[2].exp()

    x, p = np.array([0.4, 1.3, -0.7]), np.array([1.0, -2.0, 0.5])
    matrix = hessian(f)(x)
    assert np.array_equal(matrix.shape, (3, 3))
    assert np.allclose(matrix, matrix.T, rtol=1e-14)
    assert np.allclose(hvp(f)(x, p), matrix @ p, rtol=1e-13)
    assert np.allclose(hvp(f).at(x)(p), matrix @ p, rtol=1e-13)
    assert np.allclose(jvp(grad(f))(x, p), matrix @ p, rtol=1e-13)
    assert np.allclose(vjp(grad(f))(x, p), p @ matrix, rtol=1e-13)
    assert jvp(f)(x, p) == pytest.approx(grad(f)(x) @ p, rel=1e-14)
    both = hessian(lambda a, b: a * b * b, argnums=(0, 1))(2.0, 3.0)
    assert both == ((0.0, 6.0), (6.0, 4.0))


def test_products_pass_more_arguments_on() -> None:
    """As SciPy calls hessp(x, p, *args)."""
    assert hvp(lambda x, a: a * x**2)(3.0, 1.0, 5.0) == 10.0


# ---------------------------------------------------------------- leaving no trace


def test_closed_over_values_keep_their_grad(on_engine: str) -> None:
    """A derivative by an argument does not touch the parameters that the function closes over."""
    w = gradwalk.engine.Value(3.0)
    w.grad = 7.0
    assert grad(lambda x: w * x * x)(2.0) == 12.0
    assert jacobian(lambda x: [w * x, w])(2.0) == [3.0, 0.0]
    assert w.grad == 7.0


def test_no_grad_is_changed_anywhere(on_engine: str) -> None:
    """Not that of a leaf or a computed Value from outside, nor that of a node that the function keeps."""
    cls = gradwalk.engine.Value
    leaf, kept = cls(2.0), []
    computed = leaf * 3.0
    leaf.grad, computed.grad = 5.0, 7.0

    def f(x: Any) -> Any:
        kept.append(x * computed)
        kept[-1].grad = 11.0
        return kept[-1] * leaf

    assert value_and_grad(f)(4.0) == (48.0, 12.0)
    assert vjp(f)(4.0, 2.0) == 24.0
    assert (leaf.grad, computed.grad, [node.grad for node in kept]) == (5.0, 7.0, [11.0, 11.0])


def test_leaves_are_made_of_whatever_is_a_number(engine: Any) -> None:
    """Many at once as one at a time, and with the same complaint."""
    numbers = [1.5, 2, np.float32(0.5), Fraction(1, 4), np.int64(3), True]
    assert [leaf.data for leaf in engine.Value._leaves(numbers)] == [1.5, 2.0, 0.5, 0.25, 3.0, 1.0]
    assert [leaf.data for leaf in engine.Value._leaves(np.array([1.5, 2.0]))] == [1.5, 2.0]
    assert engine.Value._leaves([]) == []
    for wrong in ("text", None, 10**400):
        with pytest.raises((TypeError, OverflowError)) as alone:
            engine.Value(wrong)
        with pytest.raises(alone.type) as many:
            engine.Value._leaves([1.0, wrong])
        assert str(many.value) == str(alone.value)


def test_gradients_by_nodes_on_the_way() -> None:
    """By leaves, by computed nodes, by the root itself, and 0 by what it does not depend on: total derivatives."""
    x, apart = Value(3.0), Value(1.0)
    y = x * x
    z = y * x
    inputs = [x, y, z, apart, x]
    for _ in range(2):
        assert gradwalk.engine.gradients_of(z, inputs) == [27.0, 3.0, 1.0, 0.0, 27.0]
    z.backward()
    assert (x.grad, y.grad) == (27.0, 3.0)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_an_array_of_one_number_is_that_number(on_engine: str, shape: tuple[int, ...]) -> None:
    """As a result, whatever its shape."""
    assert value_and_grad(lambda x: np.array(x * x).reshape(shape))(3.0) == (9.0, 6.0)


def test_inside_no_grad(on_engine: str) -> None:
    """A derivative that is asked for is computed."""
    with no_grad():
        assert grad(lambda x: x * x)(3.0) == 6.0
        assert hessian(lambda x: x**3)(2.0) == 12.0


def test_an_error_in_the_function_passes_through() -> None:
    """And the next call is as if nothing had happened."""
    with pytest.raises(ZeroDivisionError):
        grad(lambda x: x / 0.0)(1.0)
    assert type(grad(lambda x: x * x)(1.0)) is float


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda x: None, "grad: expected the function to return one number, got None; is a return missing?"),
        (lambda x: (x, x), "got a tuple of 2; use gradwalk.jacobian for several outputs"),
        (lambda x: np.array([x, x]), "got an array of shape (2,) and dtype object; use gradwalk.jacobian"),
        (lambda x: {"loss": x}, "got a dict of 1; use gradwalk.jacobian"),
        (lambda x: x > 0.0, "one number, got True; a comparison has no gradient"),
        (lambda x: x.data * 1j, "got a complex; take its .real or .imag"),
        (lambda x: (x for _ in range(3)), "got a generator; return a list"),
    ],
)
def test_a_result_that_is_no_number(f: Any, message: str) -> None:
    """One sentence says what came back, and what to do."""
    with pytest.raises(TypeError) as caught:
        grad(f)(1.0)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: grad(3.0), r"grad: expected a function, got a float; write grad\(f\)\(x\)"),
        (lambda: hvp(3), r"hvp: expected a function, got an int; write hvp\(f\)\(x, p\)"),
        (lambda: grad(lambda x: x, 1.0), "grad: expected argnums to be positions or names of arguments, got 1.0"),
        (lambda: hessian(lambda x: x, None), "hessian: expected argnums to be positions or names .* got None"),
        (lambda: jacobian(lambda x: x, []), r"jacobian: expected argnums to be positions or names .* got \[\]"),
        (lambda: vjp(lambda x: x, True), "vjp: expected argnums to be positions or names of arguments, got True"),
        (lambda: grad(lambda x: x)("a"), r"grad: expected numbers in argument 0, got 'a'; convert it with float\(\)"),
        (lambda: grad(lambda x: x)(True), r"expected numbers in argument 0, got True; convert it with float\(\)"),
        (lambda: grad(lambda x: x)(Decimal(1)), r"got a Decimal; convert it with float\(\) first"),
        (lambda: grad(lambda x: x)(a for a in [1.0]), "got a generator; give a list"),
        (lambda: grad(lambda x: x)(np.array([True])), r"shape \(1,\) and dtype bool; convert it with .astype\(float\)"),
        (lambda: grad(lambda x: x)(None), "grad: expected numbers in argument 0, got None"),
        (lambda: grad(lambda x: x)(1j), r"grad: argument 0: .* got a complex; take its .real and .imag"),
        (lambda: grad(lambda x: x)({1.0, 2.0}), "a set has no order: give a list"),
        (lambda: grad(lambda x: x)(np.array(["a"])), "expected an array of real numbers or Values, got 'a'"),
        (lambda: grad(lambda x: x)(np.array([1j])), "expected an array of real numbers or Values, got 1j"),
        (lambda: grad(lambda x: x, argnums=1)(1.0), "a call with argument 1, got 1 positional; the function's are x"),
        (lambda: grad(lambda x: x, argnums="y")(1.0), "expected a call with argument 'y'"),
        (lambda: grad(lambda x, y=2.0: x, argnums="y")(1.0), "argument 'y', got 1 positional; the function's are x, y"),
        (lambda: grad(lambda x: "loss")(1.0), "to return one number, got 'loss'$"),
        (lambda: grad(lambda x: object())(1.0), "to return one number, got an object$"),
        (lambda: jacobian(lambda x: {"a": "b"})(1.0), "to return numbers, got a dict of 1$"),
        (lambda: jacobian(lambda x: None)(1.0), "expected .* to return numbers, got None; is a return missing"),
        (lambda: jacobian(lambda x: map(abs, x))([1.0]), "jacobian: expected .* got a map; return a list"),
        (lambda: hessian(lambda x: None)(1.0), "hessian: expected the function to return one number, got None"),
        (lambda: hvp(lambda x: None)(1.0, 1.0), "hvp: expected the function to return one number, got None"),
        (lambda: hvp(lambda x: x)(1.0), r"expected a point and a direction, hvp\(f\)\(x, p\), got only one of them"),
        (lambda: jvp(lambda x: x)(1.0, {1.0}), "jvp: the direction, .* a set has no order: give a list"),
        (lambda: jacobian(lambda x: {x, 2.0 * x})(1.0), "jacobian: the function's result: .* a set has no order: give"),
        (lambda: grad(max, argnums="y")(3.0, 4.0), "grad: expected a call with argument 'y', got 2 positional$"),
    ],
)  # fmt: skip
def test_a_bad_argument(call: Any, message: str) -> None:
    """A TypeError in one sentence."""
    with pytest.raises(TypeError, match=message):
        call()


@pytest.mark.parametrize("given", [10**400, [1.0, 10**400], [Value(1.0), 10**400]], ids=["one", "a list", "a Value"])
def test_a_number_too_large_for_a_float(given: Any) -> None:
    """Whoever was called says so, not the Value that could not be made."""
    with pytest.raises(gradwalk.RangeError, match=r"^grad: expected a number that fits a float, got a larger int"):
        grad(lambda x: x if isinstance(x, Value) else x[0] * x[1])(given)


def test_a_bad_direction_or_mode() -> None:
    """A ValueError says both structures."""
    with pytest.raises(
        ValueError, match=r"hvp: the direction, like the argument: expected 2 .* \[1\], got 3 numbers at"
    ):
        hvp(lambda x: x[0] * x[1])([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="vjp: the direction, like the result: expected one number, got 2 numbers"):
        vjp(lambda x: x[0] * x[1])([1.0, 2.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="jvp: the direction, like the argument: expected one number, got no numbers"):
        jvp(lambda x: x * x)(1.0, None)
    with pytest.raises(ValueError, match="jacobian: expected mode 'forward' or 'reverse', got 'up'"):
        jacobian(lambda x: x, mode="up")


def test_an_argument_that_does_not_reach_the_result() -> None:
    """Its gradient is 0, in its structure, also for a constant function and a whole number as the result."""
    assert grad(lambda a, b: a * 2.0, argnums="b")(1.0, [2.0, 3.0]) == [0.0, 0.0]
    assert value_and_grad(lambda x: 7)(1.0) == (7.0, 0.0)
    assert (grad(lambda xs: 7.0)([]), jacobian(lambda x: [])(1.0)) == ([], [])
    assert hessian(lambda x: 2.0 * x[0])([1.0, 2.0]) == [[0.0, 0.0], [0.0, 0.0]]


def test_the_result_may_be_the_argument() -> None:
    """d x / d x = 1, also twice over."""
    assert grad(lambda x: x)(3.0) == 1.0
    assert jacobian(lambda x: x)([3.0, 4.0]) == [[1.0, 0.0], [0.0, 1.0]]


def test_nodes_with_a_hand_written_backward_go_backward_only() -> None:
    """reverse works; forward, and a second derivative, say why they do not."""

    def f(x: Any) -> Any:
        out = Value(x.data**2, (x,), "square")

        def backward() -> None:
            x.grad += 2.0 * x.data * out.grad

        out._backward = backward
        return out

    assert grad(f)(3.0) == 6.0
    with pytest.raises(TypeError, match="jvp: expected local gradients on every node, got one with a hand-written"):
        jvp(f)(3.0, 1.0)
    with pytest.raises(TypeError, match="got a node made by hand as 'square'"):
        hessian(f)(3.0)


# ---------------------------------------------------------------- NumPy on Values


def test_numpy_functions_on_arrays_of_values() -> None:
    """dot, @, sum, linalg.norm, mean, the ufuncs: differentiated as they stand."""
    x, a = np.array([0.5, 1.5, 2.5]), np.array([[1.0, 2.0, 3.0], [0.0, 1.0, 0.5]])
    for f, expected in [
        (lambda x: np.dot(x, x), 2.0 * x),
        (lambda x: x @ x, 2.0 * x),
        (lambda x: np.sum(a @ x), a.sum(axis=0)),
        (lambda x: np.linalg.norm(x), x / np.linalg.norm(x)),
        (lambda x: np.linalg.norm(x.reshape(1, -1), axis=1)[0], x / np.linalg.norm(x)),
        (lambda x: np.var(x), 2.0 * (x - x.mean()) / len(x)),
        (lambda x: np.mean(np.exp(x)), np.exp(x) / 3.0),
        (lambda x: np.sum(np.sqrt(x) * np.log(x)), 0.5 / np.sqrt(x) * np.log(x) + np.sqrt(x) / x),
        (lambda x: np.sum(np.sin(x) ** 2), 2.0 * np.sin(x) * np.cos(x)),
        (lambda x: np.exp(x[0]) * x[1], [1.5 * np.exp(0.5), np.exp(0.5), 0.0]),
        (lambda x: np.prod(x), [3.75, 1.25, 0.75]),
        (lambda x: np.max(x), [0.0, 0.0, 1.0]),
    ]:
        assert np.allclose(grad(f)(x), expected, rtol=1e-14, atol=0.0)


@pytest.mark.parametrize(
    "f", [lambda x: np.linalg.eigvals(np.outer(x, x))[0], lambda x: np.fft.fft(x)[0], lambda x: x.astype(int)[0]]
)
def test_what_numpy_cannot_do_is_an_error(f: Any) -> None:
    """Never a number with its gradient lost."""
    with pytest.raises(TypeError):
        grad(f)(np.array([1.0, 2.0]))
