"""grad, value_and_grad, jacobian, hessian, hvp, jvp and vjp of compiled functions: what they give for plain ones."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import integrate, optimize

import gradwalk
from gradwalk import Value, compile, grad, hessian, hvp, jacobian, jvp, value_and_grad, vjp
from gradwalk.optim import SGD

Function = Callable[..., Any]
Pair = namedtuple("Pair", "left right")


@dataclass
class Orbit:
    """With a text, and a field that follows from the others."""

    radius: float
    angles: list[float]
    name: str = "orbit"
    area: float = field(init=False)

    def __post_init__(self) -> None:
        self.area = self.radius * self.radius


def rosenbrock(x: Any) -> Any:
    total = 0.0
    for a, b in pairwise(x):
        total = total + 100.0 * (b - a * a) ** 2 + (1.0 - a) ** 2
    return total


STRUCTURES: dict[str, tuple[Function, Any]] = {
    "float": (lambda x: x**3, 2.0),
    "whole number": (lambda x: x**3, 2),
    "list": (lambda x: x[0] * x[1] ** 2, [3.0, 4.0]),
    "list of numbers of both kinds": (lambda x: x[0] * x[1] ** 2, [3, 4.0]),
    "tuple": (lambda x: x[0] * x[1][0] ** 2, (3.0, [4.0])),
    "dict": (lambda x: x["a"] * x["b"][0] ** 2, {"a": 3.0, "b": (4.0,), "name": "text"}),
    "named tuple": (lambda x: x.left * x.right**2, Pair(3.0, 4.0)),
    "dataclass": (lambda x: x.area * x.angles[0] + x.angles[1] ** 3, Orbit(2.0, [3.0, 0.5])),
    "array": (rosenbrock, np.linspace(-1.0, 1.0, 7)),
    "matrix": (lambda x: (x * x).sum() * x[0, 1], np.arange(6.0).reshape(2, 3)),
    "array of whole numbers": (lambda x: (x * x).sum() * x[1], np.arange(3)),
    "array without a dimension": (lambda x: x.item() ** 3, np.array(2.0)),
}


def same(expected: Any, actual: Any) -> bool:
    """The same structure and types, with the same numbers up to rounding."""
    if isinstance(expected, np.ndarray):
        alike = type(actual) is np.ndarray and (expected.dtype, expected.shape) == (actual.dtype, actual.shape)
        return alike and np.allclose(expected, actual, rtol=1e-12, atol=1e-14)
    if type(expected) is not type(actual):
        return False
    if isinstance(expected, float):
        return actual == pytest.approx(expected, rel=1e-12, abs=1e-14)
    if isinstance(expected, dict):
        return list(expected) == list(actual) and all(same(expected[key], actual[key]) for key in expected)
    if isinstance(expected, list | tuple):
        return len(expected) == len(actual) and all(map(same, expected, actual))
    if isinstance(expected, Orbit):
        return same(vars(expected), vars(actual))
    return expected == actual


# ---------------------------------------------------------------- every structure


@pytest.mark.parametrize("derivative", [grad, value_and_grad, jacobian, hessian])
@pytest.mark.parametrize("name", STRUCTURES)
def test_structures_are_kept(name: str, derivative: Function) -> None:
    """The first call traces, the next ones replay; all give what the plain function gives, in the same structure."""
    f, x = STRUCTURES[name]
    expected, compiled = derivative(f)(x), derivative(compile(f))
    assert [same(expected, compiled(x)) for _ in range(3)] == [True, True, True]


@pytest.mark.parametrize("name", STRUCTURES)
def test_products_keep_structures(name: str) -> None:
    f, x = STRUCTURES[name]
    direction = grad(f)(x)  # of the right structure
    compiled = compile(f)
    assert same(hvp(f)(x, direction), hvp(compiled)(x, direction))
    assert same(jvp(f)(x, direction), jvp(compiled)(x, direction))
    assert same(vjp(f)(x, 2.0), vjp(compiled)(x, 2.0))


RESULTS: dict[str, Function] = {
    "list": lambda x: [x[0] * x[1], x[1] ** 2, x[2]],
    "numbers that depend on nothing": lambda x: (3, x[0] * x[2], {"a": 0.5, "b": [x[1], x[1]]}),
    "array": lambda x: np.array([[x[0] * x[1], x[1]], [x[2], x[0]]]),
    "the argument itself": lambda x: list(x),
    "many": lambda x: [x[i % 3] * x[(i * i) % 3] for i in range(40)],
}


@pytest.mark.parametrize("mode", [None, "forward", "reverse"])
@pytest.mark.parametrize("x", [[2.0, 3.0, -1.0], np.array([2.0, 3.0, -1.0])], ids=["list", "array"])
@pytest.mark.parametrize("name", RESULTS)
def test_jacobians_of_several_outputs(name: str, x: Any, mode: str | None) -> None:
    f = RESULTS[name]
    compiled = jacobian(compile(f), mode=mode)
    assert [same(jacobian(f, mode=mode)(x), compiled(x)) for _ in range(2)] == [True, True]


def test_a_dataclass_in_a_dataclass_out() -> None:
    def turned(orbit: Any) -> Any:
        return Orbit(orbit.radius * 2.0, [orbit.angles[0] * orbit.area, orbit.angles[1]])

    x = Orbit(2.0, [3.0, 0.5])
    assert same(jacobian(turned)(x), jacobian(compile(turned))(x))
    assert compile(turned)(x).area.data == 16.0


@pytest.mark.parametrize("name", RESULTS)
def test_products_of_several_outputs(name: str) -> None:
    f, x, v = RESULTS[name], [2.0, 3.0, -1.0], [0.5, -1.0, 2.0]
    expected = jvp(f)(x, v)
    compiled = compile(f)
    assert same(expected, jvp(compiled)(x, v))
    assert same(vjp(f)(x, expected), vjp(compiled)(x, expected))
    assert same(vjp(f).at(x)(expected), vjp(compiled).at(x)(expected))


def test_few_outputs_of_many_inputs() -> None:
    f: Function = lambda x: [rosenbrock(x), x[0] * x[-1]]  # noqa: E731
    x = np.linspace(-1.0, 1.0, 30)
    assert same(jacobian(f)(x), jacobian(compile(f))(x))


@pytest.mark.parametrize("kind", [list, np.array])
def test_products_are_those_of_the_point_they_were_made_at(kind: Function) -> None:
    """Whatever becomes of the list or array that was given."""
    x = kind([1.0, 2.0, 3.0])
    compiled = compile(rosenbrock)
    second, first = hvp(compiled).at(x), jvp(compiled).at(x)
    expected = second(kind([1.0, 0.0, 2.0])), first(kind([1.0, 0.0, 2.0]))
    x[1] = 100.0
    assert same(expected, (second(kind([1.0, 0.0, 2.0])), first(kind([1.0, 0.0, 2.0]))))


# ---------------------------------------------------------------- which arguments


@pytest.mark.parametrize("derivative", [grad, value_and_grad, jacobian, hessian])
@pytest.mark.parametrize("argnums", [0, 1, -1, "y", "scale", (1, 0), ("scale", 0), (0, 1, "scale")])
def test_arguments_by_position_and_name(argnums: Any, derivative: Function) -> None:
    def f(x: Any, y: Any, scale: Any = 2.0) -> Any:
        return x[0] * y**2 * scale + x[1] * scale**2

    expected = derivative(f, argnums)([2.0, 5.0], 3.0, scale=0.5)
    assert same(expected, derivative(compile(f), argnums)([2.0, 5.0], 3.0, scale=0.5))


def test_what_is_not_differentiated_by_stays_what_it_is() -> None:
    """An integer counts rounds, a text chooses, an array is read."""

    def f(x: Any, rounds: int, how: str, data: Any) -> Any:
        for _ in range(rounds):
            x = x * x if how == "square" else x + x
        return x * data[1]

    compiled, data = compile(f), np.array([1.0, 3.0])
    for call in ((2.0, 2, "square", data), (2.0, 3, "square", data), (2.0, 2, "double", data * 2.0)):
        assert grad(f)(*call) == grad(compiled)(*call)
        assert hessian(f)(*call) == hessian(compiled)(*call)


def test_a_missing_argument_is_named() -> None:
    with pytest.raises(TypeError, match=r"grad: expected a call with argument 2, got 1 positional"):
        grad(compile(lambda x, y: x * y), argnums=2)(1.0)


# ---------------------------------------------------------------- nesting and mixing


def test_higher_orders_by_nesting() -> None:
    cube = compile(lambda x: x**4)
    assert [grad(grad(cube))(2.0), grad(grad(grad(cube)))(2.0)] == [48.0, 48.0]
    assert jacobian(grad(compile(lambda x: x[0] ** 2 * x[1])))([3.0, 5.0]) == [[10.0, 6.0], [6.0, 0.0]]


def test_a_compiled_function_inside_a_plain_one() -> None:
    """Once it is one node; twice it is traced through, and right."""
    square = compile(lambda x: x * x)

    def f(x: Any) -> Any:
        return square(x) * x

    assert (grad(f)(3.0), hessian(f)(3.0), hvp(f)(3.0, 2.0), grad(grad(grad(f)))(3.0)) == (27.0, 18.0, 36.0, 6.0)


def test_several_results_inside_a_plain_one() -> None:
    both = compile(lambda x: (x * x, x.exp()))

    def f(x: Any) -> Any:
        square, exponential = both(x)
        return square * exponential

    def plain(x: Any) -> Any:
        return x * x * x.exp()

    assert same(hessian(plain)(0.5), hessian(f)(0.5))
    assert same(jvp(plain)(0.5, 2.0), jvp(f)(0.5, 2.0))
    many: Function = lambda x: [f(x) * i for i in range(300)]  # noqa: E731
    expected = [grad(plain)(0.5) * i for i in range(300)]
    assert [same(expected, jacobian(many, mode=mode)(0.5)) for mode in (None, "forward", "reverse")] == [True] * 3


def test_values_give_values() -> None:
    """Given a Value, a derivative is a Value with a graph of its own."""
    x = Value(3.0)
    slope = grad(compile(lambda x: x**3))(x)
    slope.backward()
    assert (slope.data, x.grad) == (27.0, 18.0)


def test_a_direction_of_values_gives_values() -> None:
    direction = Value(2.0)
    product = hvp(compile(lambda x: x**3))(3.0, direction)
    product.backward()
    assert (product.data, direction.grad) == (36.0, 18.0)


def test_a_derivative_of_a_compiled_function_inside_another() -> None:
    """Compiled in the function that is differentiated: it closes over a Value of that one."""
    f: Function = lambda y: grad(compile(lambda x: x * x * y))(2.0)  # noqa: E731
    assert grad(f)(5.0) == 4.0


def test_a_derivative_inside_a_compiled_function() -> None:
    square = compile(lambda x: x * x)
    slope = compile(lambda x: grad(square)(x) * x)
    assert [slope.value_and_grad(x) for x in (3.0, 4.0)] == [(18.0, 12.0), (32.0, 16.0)]


def test_closed_over_values_keep_their_grad() -> None:
    weight = Value(3.0)
    f = compile(lambda x: weight * x**2)
    assert (grad(f)(2.0), hessian(f)(2.0), hvp(f)(2.0, 1.0), jvp(f)(2.0, 1.0)) == (12.0, 6.0, 6.0, 12.0)
    weight.data = 5.0
    assert (grad(f)(2.0), hessian(f)(2.0), weight.grad) == (20.0, 10.0, 0.0)


def test_under_no_grad() -> None:
    """A derivative that was asked for is computed."""
    cube = compile(lambda x: x**3)
    with gradwalk.no_grad():
        assert (grad(cube)(2.0), hessian(cube)(2.0), jvp(cube)(2.0, 1.0)) == (12.0, 12.0, 12.0)


def test_where_no_program_applies() -> None:
    """An infinite result, which only ieee() allows, is the plain function's: under no_grad, too."""
    f: Function = lambda x: gradwalk.log(x) + x * x  # noqa: E731
    compiled = compile(f)
    assert hessian(compiled)(1.0) == 1.0
    with gradwalk.ieee(), gradwalk.no_grad():
        for derivative in (value_and_grad, hessian, jacobian):
            assert derivative(f)(0.0) == derivative(compiled)(0.0)
        assert (hvp(f)(0.0, 1.0), jvp(f)(0.0, 1.0)) == (hvp(compiled)(0.0, 1.0), jvp(compiled)(0.0, 1.0))


sine = gradwalk.custom_op(np.sin, lambda x, out: float(np.cos(x)), name="sine")


@pytest.mark.parametrize("mode", [None, "forward", "reverse"])
@pytest.mark.parametrize(
    ("function", "x"),
    [
        (lambda x: [x[0].sqrt() * x[1], x[0] * x[1], 2.0 * x[1]], [0.0, 1.0]),
        (lambda x: [(x[0] * x[1]).sqrt(), x[1]], [0.0, 0.0]),
        (lambda x: [x[0] * x[1], x[1].exp()], [np.nan, 1.0]),
        (lambda x: [sine(x[0]) * x[1], x[1].exp()], [0.5, 1.0]),
    ],
    ids=["an infinite slope", "two of them", "a nan", "an operation without a graph"],
)
def test_where_no_program_goes_forward(function: Function, x: list[float], mode: str | None) -> None:
    """The derivatives are those of the plain function, product by product."""
    compiled = compile(function)
    for direction in ([1.0, 0.5], [0.0, 1.0]):
        np.testing.assert_allclose(jvp(compiled)(x, direction), jvp(function)(x, direction), rtol=1e-12)
    np.testing.assert_allclose(jacobian(compiled, mode=mode)(x), jacobian(function, mode=mode)(x), rtol=1e-12)


@pytest.mark.parametrize(
    ("function", "x"), [(lambda x: x, {1.0}), (lambda x: None, 1.0), (lambda x: [3.0], 1.0)], ids=["a set", "None", "3"]
)
def test_what_has_no_derivative_is_told_as_of_the_plain_function(function: Function, x: Any) -> None:
    told = []
    for each in (function, compile(function)):
        try:
            told.append(jacobian(each)(x))
        except TypeError as error:
            told.append(str(error))
    assert told[0] == told[1]


def test_a_branch_that_flips() -> None:
    """Every derivative has guards of its own."""
    f: Function = lambda x: x**3 if x > 0.0 else x**2  # noqa: E731
    compiled = compile(f)
    for x in (2.0, -3.0, 4.0, -5.0):
        for derivative in (grad, hessian, jacobian):
            assert derivative(f)(x) == derivative(compiled)(x)
        assert (hvp(f)(x, 2.0), jvp(f)(x, 2.0)) == (hvp(compiled)(x, 2.0), jvp(compiled)(x, 2.0))


def test_an_operation_of_ones_own() -> None:
    """It has a first derivative, whichever way it is asked for, and a second one."""
    cube = gradwalk.custom_op(lambda x: x**3, lambda x, out: 3.0 * x**2, name="cube")
    f: Function = lambda x: [cube(x[0]) * x[1], x[0]]  # noqa: E731
    compiled, x, v = compile(f), [2.0, 3.0], [1.0, 0.5]
    assert [same(jvp(f)(x, v), jvp(compiled)(x, v)) for _ in range(2)] == [True, True]
    assert [same(jacobian(f)(x), jacobian(compile(f), mode=mode)(x)) for mode in (None, "forward")] == [True, True]
    assert hessian(compile(lambda x: cube(x)))(2.0) == 12.0


# ---------------------------------------------------------------- methods


class Parabola:
    def __init__(self, steepness: float) -> None:
        self.steepness = Value(steepness)

    @compile
    def height(self, x: Any) -> Any:
        return self.steepness * x * x


def test_a_compiled_method_has_the_whole_interface() -> None:
    narrow, wide = Parabola(3.0), Parabola(0.5)
    assert [narrow.height(2.0).data, wide.height(2.0).data, Parabola.height(narrow, 2.0).data] == [12.0, 2.0, 12.0]
    assert narrow.height.value_and_grad(2.0) == (12.0, 12.0)
    assert narrow.height.hessian_vector(2.0, vector=1.0) == 6.0
    assert (grad(wide.height)(2.0), hessian(wide.height)(2.0)) == (2.0, 1.0)
    assert [value.data for value in narrow.height.map([1.0, 2.0])] == [3.0, 12.0]
    assert narrow.height is narrow.height
    assert len(narrow.height.programs) == len(wide.height.programs) == 1
    narrow.height.backward(2.0)
    assert (narrow.steepness.grad, wide.steepness.grad) == (4.0, 0.0)


# ---------------------------------------------------------------- bad input, and SciPy


def test_a_result_of_several_numbers_is_refused() -> None:
    with pytest.raises(TypeError, match=r"grad: expected the function to return one number, got a list of 2"):
        grad(compile(lambda x: [x, x]))(1.0)


def test_a_bad_direction_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"hvp: the direction, like the argument: expected 2 numbers at .*, got 3 numbers"
    ):
        hvp(compile(lambda x: x[0] * x[1]))([1.0, 2.0], [1.0, 2.0, 3.0])


def test_scipy_takes_compiled_functions() -> None:
    """The same iterations as with SciPy's own derivatives of the same function."""
    compiled, x = compile(rosenbrock), np.linspace(-1.0, 1.0, 20)
    options: Any = {"method": "trust-exact", "tol": 1e-10}
    ours = optimize.minimize(value_and_grad(compiled), x, jac=True, hess=hessian(compiled), **options)
    theirs = optimize.minimize(optimize.rosen, x, jac=optimize.rosen_der, hess=optimize.rosen_hess, **options)
    assert (ours.success, ours.nit) == (True, theirs.nit)
    newton: Any = {"jac": True, "hessp": hvp(compiled), "method": "Newton-CG"}
    assert optimize.minimize(value_and_grad(compiled), x, **newton).x == pytest.approx(1.0, rel=1e-4)


@pytest.mark.parametrize("derivative", [grad, value_and_grad, hessian])
def test_a_branch_that_returns_a_constant_has_no_gradient(derivative: Any) -> None:
    ramp = compile(lambda x: x if x > 0.0 else 0.0)
    for x in (-1.0, 2.0, -3.0):
        assert derivative(ramp)(x) == derivative(ramp.function)(x)


def test_scipy_gets_plain_numbers_from_a_compiled_function() -> None:
    """As `fun`, with the derivatives of the same function or without; everybody else gets Values."""
    weight = Value(100.0)

    def rosenbrock(x: Any) -> Any:
        return weight * (x[1] - x[0] ** 2) ** 2 + (1.0 - x[0]) ** 2

    compiled = compile(rosenbrock)
    residuals = compile(lambda x: np.array([10.0 * (x[1] - x[0] ** 2), 1.0 - x[0]]))
    start = np.zeros(2)
    second = {"jac": grad(compiled), "hess": hessian(compiled), "method": "Newton-CG"}
    for options in ({}, {"jac": grad(compiled)}, second):
        found: Any = optimize.minimize(compiled, start, **options)
        assert found.x == pytest.approx([1.0, 1.0], abs=1e-3)
        assert isinstance(found.fun, float)
    assert optimize.least_squares(residuals, start, jac=jacobian(residuals)).x == pytest.approx([1.0, 1.0])
    assert optimize.root(residuals, start).x == pytest.approx([1.0, 1.0])
    cube = compile(lambda x: x * x * x - 2.0)
    assert optimize.brentq(cube, 0.0, 3.0) == pytest.approx(2.0 ** (1 / 3))
    assert integrate.quad(cube, 0.0, 1.0)[0] == pytest.approx(-1.75)
    assert isinstance(compiled(start), Value)


CUBE = compile(lambda x: x * x * x)
POWER = compile(lambda x, n: x**n)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: CUBE.value_and_grad(x)[0], 27.0),
        (lambda x: CUBE.value_and_grad(x)[1], 18.0),
        (lambda x: CUBE.value_and_grad([x][0])[1] * x, 81.0),
        (lambda x: POWER.value_and_grad(x, 3)[1][0], 18.0),
        (lambda x: compile(lambda y: x * y * y).value_and_grad(2.0)[1], 4.0),
        (lambda x: CUBE.hessian_vector(x, vector=1.0), 6.0),
        (lambda x: CUBE.hessian_vector(2.0, vector=x), 12.0),
        (lambda x: POWER.hessian_vector(x, 3, vector=(1.0, 0))[0], 6.0),
        (lambda x: compile(lambda ys: x * ys[0] ** 3).hessian_vector([2.0], vector=[1.0])[0], 12.0),
    ],
)
def test_a_compiled_functions_derivatives_can_be_differentiated(function: Any, expected: float) -> None:
    """They came back as numbers, cut off from what they depend on."""
    assert gradwalk.grad(function)(3.0) == expected
    assert gradwalk.jvp(function)(3.0, 1.0) == expected


ALONE = {
    "grad": lambda f, x: grad(f)(x),
    "value_and_grad": lambda f, x: value_and_grad(f)(x),
    "hvp": lambda f, x: hvp(f)(x, x),
    "hessian": lambda f, x: hessian(f)(x),
    "gradient of a gradient": lambda f, x: grad(lambda q: grad(f)(q)[0])(x),
    "its value_and_grad": lambda f, x: f.value_and_grad(x),
    "of Values": lambda f, x: f.value_and_grad(np.array([Value(2.0)])),
    "hessian_vector": lambda f, x: f.hessian_vector(x, vector=x),
    "backward": lambda f, x: f.backward(x),
    "train_step": lambda f, x: f.train_step(SGD([SCALE], lr=0.0), x),
    "map_backward": lambda f, x: f.map_backward([x, x]),
    "map_train_step": lambda f, x: f.map_train_step(SGD([SCALE], lr=0.0), [x, x]),
    "map_gradients": lambda f, x: f.map_gradients([x, x], [SCALE]),
    "models": lambda f, x: f.models([[3.0], [1.0]], [SCALE]).step(SGD([SCALE], lr=0.0), [x, x], lr=[0.0, 0.0]),
}
SCALE = Value(3.0)


@pytest.mark.parametrize("asked", ALONE.values(), ids=ALONE)
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)], ids=str)
def test_an_array_of_one_entry_is_one_value(asked: Any, shape: tuple[int, ...]) -> None:
    """Whoever takes one result; a list of one is several."""
    x = np.array([2.0])

    def numbers(function: Any) -> list[float]:
        found = asked(compile(function), x)
        parts = found if isinstance(found, tuple) else (found,)
        return [number for part in parts for number in np.ravel(part).tolist()]

    assert numbers(lambda x: x[0] * x[0] * SCALE) == numbers(lambda x: (x * x * SCALE).reshape(shape))
    with pytest.raises(TypeError, match=r"one number, got a list of 1|return one Value"):
        numbers(lambda x: [x[0] * SCALE])
