"""Directions match what they move along by key and shape; an argument may be asked for twice."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import gradwalk
import gradwalk.math
from gradwalk import Value, compile, grad, hessian, hvp, jacobian, jvp, value_and_grad, vjp

MAKERS = [pytest.param(lambda f: f, id="plain"), pytest.param(compile, id="compiled")]


def weighted(p: Any) -> Any:
    return 10.0 * p["a"] + p["b"] * p["b"]


@pytest.mark.parametrize("made", MAKERS)
def test_a_dict_matches_by_key(made: Any) -> None:
    """In whatever order the direction has its keys."""
    f, point = made(weighted), {"a": 1.0, "b": 2.0}
    assert jvp(f)(point, {"b": 1.0, "a": 0.0}) == 4.0
    assert hvp(f)(point, {"b": 1.0, "a": 0.0}) == {"a": 0.0, "b": 2.0}
    assert vjp(made(lambda x: {"a": x, "b": 3.0 * x}))(1.0, {"b": 1.0, "a": 0.0}) == 3.0


def test_the_products_of_a_compiled_function_match_by_key() -> None:
    """`hessian_vector` too."""
    compiled = compile(weighted)
    product = compiled.hessian_vector({"a": 1.0, "b": 2.0}, vector={"b": 1.0, "a": 0.0})
    assert product == {"a": 0.0, "b": 2.0}


@pytest.mark.parametrize(
    "direction", [[[1.0, 0.0], [0.0, 2.0]], ((1.0, 0.0), (0.0, 2.0)), np.array([[1.0, 0.0], [0.0, 2.0]])]
)
def test_lists_tuples_and_arrays_of_one_shape_are_alike(direction: Any) -> None:
    """What counts is where a number stands."""
    point = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert jvp(lambda x: x[0, 0] * x[1, 1])(point, direction) == 6.0
    assert jvp(lambda x: x[0][0] * x[1][1])(point.tolist(), direction) == 6.0


@pytest.mark.parametrize(
    ("point", "direction", "message"),
    [
        ({"a": 1.0, "b": 2.0}, {"a": 1.0, "c": 2.0}, r"expected 2 .* \['b'\], got 2 .* \['c'\]"),
        ({"a": 1.0, "b": 2.0}, [1.0, 2.0], r"expected 2 numbers at \['a'\], \['b'\], got 2 numbers at \[0\], \[1\]"),
        (np.ones((2, 3)), np.ones((3, 2)), r"expected 6 .* got 6 numbers at .*\[0\]\[1\], \[1\]"),
        (np.ones((2, 3)), np.ones(6), r"expected 6 numbers at .*, got 6 numbers at \[0\], \[1\]"),
    ],
)  # fmt: skip
def test_another_structure_is_refused(point: Any, direction: Any, message: str) -> None:
    """As many numbers are not enough; the error says both structures."""
    for product in (jvp, hvp):
        with pytest.raises(ValueError, match=f"{product.__name__}: the direction, like the argument: {message}"):
            product(lambda p: 1.0 * (p["a"] if isinstance(p, dict) else p[0, 0]))(point, direction)


@pytest.mark.parametrize("made", MAKERS)
@pytest.mark.parametrize("argnums", [(0, 0), (0, "x"), (0, -2)])
def test_an_argument_may_be_asked_for_twice(made: Any, argnums: Any) -> None:
    """Both get its derivative."""
    f = made(lambda x, y: x * x * y)
    assert grad(f, argnums=argnums)(3.0, 2.0) == (12.0, 12.0)
    assert value_and_grad(f, argnums=argnums)(3.0, 2.0) == (18.0, (12.0, 12.0))
    assert jacobian(f, argnums=argnums)(3.0, 2.0) == (12.0, 12.0)
    assert hessian(f, argnums=argnums)(3.0, 2.0) == ((4.0, 4.0), (4.0, 4.0))
    assert grad(f, argnums=(0, 1, 0))(3.0, 2.0) == (12.0, 9.0, 12.0)
    with pytest.raises(ValueError, match="jvp: expected each argument once in argnums"):
        jvp(f, argnums=argnums)(3.0, (1.0, 1.0), 2.0)


# ---------------------------------------------------------------- searches by comparing


def root_by_bisection(a: Any) -> Any:
    low, high = 0.0, 10.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if middle * middle - a < 0.0 else (low, middle)
    return 0.5 * (low + high)


def test_a_search_that_loses_the_derivative_is_told() -> None:
    """The result of a bisection does not depend on what it was compared with, though the root does."""
    with pytest.warns(
        RuntimeWarning, match="grad: the result does not depend on the argument, .* compared with 60 times"
    ):
        assert grad(root_by_bisection)(2.0) == 0.0
    with pytest.warns(RuntimeWarning, match=r"does not depend on the argument\[1\], .* gradwalk.implicit_root"):
        assert grad(lambda p: p[0] * root_by_bisection(p[1]))([3.0, 4.0]) == [2.0, 0.0]
    with pytest.warns(RuntimeWarning, match="jacobian"):
        jacobian(lambda a: [root_by_bisection(a), 2.0])(2.0)


@pytest.mark.parametrize("derivative", [grad, value_and_grad, hessian, jacobian, *(
    lambda f, taken=taken: lambda a: taken(f)(a, 1.0) for taken in (jvp, vjp, hvp)
)])  # fmt: skip
@pytest.mark.parametrize("made", MAKERS)
def test_every_derivative_tells_of_a_search(derivative: Any, made: Any) -> None:
    """Compiled, too, and whether or not it was called before."""
    function = made(lambda a: root_by_bisection(a) * weight)
    weight = Value(3.0)
    function(2.0)
    with pytest.warns(RuntimeWarning, match="the result does not depend on .* compared with 60 times") as told:
        derivative(function)(2.0)
    assert {warning.filename for warning in told} == {__file__}  # not a line of gradwalk's


def test_a_compiled_function_tells_of_a_search_when_it_is_asked_for_the_derivative() -> None:
    function = compile(lambda scale, a: root_by_bisection(a) * scale)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        function(3.0, 4.0)
        assert grad(function)(3.0, 4.0) == 2.0
    with pytest.warns(RuntimeWarning, match="does not depend on a, which was compared with 60 times"):
        assert function.value_and_grad(3.0, 4.0)[1] == (2.0, 0.0)
    with pytest.warns(RuntimeWarning, match="does not depend on a, which was compared with 60 times"):
        assert grad(function, argnums=(0, 1))(3.0, 4.0) == (2.0, 0.0)


ROUNDED = {
    "digits": lambda x: round(3.0 * x, 2),
    "scaled": lambda x: 0.1 + round(3.0 * x, 2) * 2.0,
    "whole": lambda x: round(3.0 * x) + 1.0,
    "floor": lambda x: gradwalk.math.floor(x * 100.0) / 100.0,
    "ceil and trunc": lambda x: gradwalk.math.ceil(x) * gradwalk.math.trunc(x),
}


@pytest.mark.parametrize("function", ROUNDED.values(), ids=ROUNDED)
@pytest.mark.parametrize("derivative", [grad, jacobian, *(
    lambda f, taken=taken: lambda a: taken(f)(a, 1.0) for taken in (jvp, vjp)
)])  # fmt: skip
def test_a_result_that_is_rounded_is_told(derivative: Any, function: Any) -> None:
    """0 is its derivative; whoever asks for it wants that of the number before."""
    with pytest.warns(RuntimeWarning, match="the derivative is 0, because the result is rounded") as told:
        assert derivative(function)(1.234) in (0.0, (0.0,))
    assert {warning.filename for warning in told} == {__file__}


@pytest.mark.parametrize("function", [ROUNDED["floor"], lambda x: 1.0 + (3.0 * x) // 1.0], ids=["floor", "//"])
def test_a_compiled_result_that_is_rounded_is_told(function: Any) -> None:
    compiled = compile(function)
    for derivative in (grad(compiled), lambda x: compiled.value_and_grad(x)[1], lambda x: jvp(compiled)(x, 1.0)):
        with pytest.warns(RuntimeWarning, match="the derivative is 0, because the result is rounded") as told:
            assert derivative(1.234) == 0.0
        assert {warning.filename for warning in told} == {__file__}
    both = compile(lambda x, y: gradwalk.math.floor(3.0 * x) * y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compiled(1.234) == function(1.234)
        assert grad(both, argnums=(0, 1))(1.5, 2.0) == (0.0, 4.0)


@pytest.mark.parametrize("function", [
    lambda x: (x - gradwalk.math.floor(x)) ** 2,  # flat at 2, and a wave elsewhere
    lambda x: x - round(x, 1) - x,
    lambda x: 5.0,
    lambda x: gradwalk.relu(-x),
])  # fmt: skip
def test_a_derivative_that_is_0_otherwise_is_not_told_of(function: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert grad(function)(2.0) == 0.0


def straight(x: Any) -> Any:
    return sum(max(x - 0.1 * i, 0.0) for i in range(40))


def test_a_branch_is_not_a_search() -> None:
    """What is compared now and then, or computed with too, is not told of."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert grad(lambda x: max(x, 0.0) * 1.0)(-1.0) == 0.0
        assert grad(lambda a: root_by_bisection(a) + 0.0 * a)(2.0) == 0.0
        assert grad(lambda p: sum(max(x, 0.0) for x in p))([-1.0] * 50) == [0.0] * 50
        for f in (straight, compile(straight)):  # its slope does not depend on x, as that of a line does not
            assert (hvp(f)(2.0, 1.0), hessian(f)(2.0), grad(grad(f))(2.0)) == (0.0, 0.0, 0.0)
