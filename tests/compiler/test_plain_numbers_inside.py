"""Uses of a compiled function that give plain numbers, inside others: refused where a number would be wrong there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import gradwalk
from gradwalk import Value, compile, engine, grad, hessian, jvp
from gradwalk.custom import checkpoint
from gradwalk.optim import SGD, Adam

Function = Callable[..., Any]

weight = Value(2.0)
inner = compile(lambda x: weight * x * x * x)

PLAIN: dict[str, Callable[[Any, Any], Any]] = {
    "backward": lambda compiled, x: compiled.backward(x),
    "train_step": lambda compiled, x: compiled.train_step(SGD([weight], lr=0.1), x),
    "train_step with Adam": lambda compiled, x: compiled.train_step(Adam([weight], lr=0.1), x),
    "map_backward": lambda compiled, x: compiled.map_backward(each for each in (x, 1.0))[0],
    "map_gradients": lambda compiled, x: compiled.map_gradients([1.0, x], [weight])[1][1][0],
    "map_train_step": lambda compiled, x: compiled.map_train_step(SGD([weight], lr=0.1), iter([x]))[0],
}
DERIVATIVES: dict[str, Callable[[Function], Any]] = {
    "grad": lambda f: grad(f)(2.0),
    "grad of grad": lambda f: grad(grad(f))(2.0),
    "jvp": lambda f: jvp(f)(2.0, 1.0),
    "hessian": lambda f: hessian(f)(2.0),
    "checkpoint": lambda f: checkpoint(f)(Value(2.0)),
}


@pytest.fixture(autouse=True)
def untouched() -> Any:
    """What is refused has moved nothing, and added to no gradient."""
    weight.data, weight.grad = 2.0, 0.0
    yield
    assert (weight.data, weight.grad) == (2.0, 0.0)


@pytest.mark.parametrize("derivative", DERIVATIVES)
@pytest.mark.parametrize("name", PLAIN)
def test_a_number_without_a_derivative_is_refused_where_one_is_taken(name: str, derivative: str) -> None:
    expected = rf"compile: {name.split()[0]} of .* depends, at .*no derivative; call the function itself"
    with pytest.raises(TypeError, match=expected):
        DERIVATIVES[derivative](lambda x: PLAIN[name](inner, x) * x)


@pytest.mark.parametrize("name", PLAIN)
def test_so_it_is_where_it_depends_through_what_is_closed_over(name: str) -> None:
    with pytest.raises(TypeError, match="which have no derivative"):
        grad(lambda x: PLAIN[name](compile(lambda y: weight * y * x), 3.0) * x)(2.0)


@pytest.mark.parametrize("name", PLAIN)
def test_in_another_compiled_function_it_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match="is called inside another compiled function"):
        compile(lambda x: PLAIN[name](inner, x) * x)(2.0)


@pytest.mark.parametrize("name", PLAIN)
def test_where_another_compiled_function_is_watched_too(name: str) -> None:
    """There it is the plain function that runs."""
    with gradwalk.detect_nonfinite(), pytest.raises(TypeError, match="which have no derivative"):
        compile(lambda x: PLAIN[name](inner, x) * x)(2.0)


def test_many_models_inside_are_refused_alike() -> None:
    models = inner.models([[2.0]], [weight])
    with pytest.raises(TypeError, match="which have no derivative"):
        grad(lambda x: models.value([x])[0] * x)(2.0)


INDEPENDENT: dict[str, tuple[Function, float]] = {
    "a number": (lambda x: inner.backward(2.0) * x, 16.0),
    "another Value": (lambda x: inner.backward(Value(2.0)) * x, 16.0),
    "stopped": (lambda x: inner.backward(gradwalk.stop_gradient(x * 1.0) * 1.0) * x, 16.0),
    ".data": (lambda x: inner.backward(x.data) * x, 16.0),
    "of many": (lambda x: inner.map_gradients([2.0], [weight])[1][0][0] * x, 8.0),
}


@pytest.mark.parametrize("name", INDEPENDENT)
def test_what_does_not_depend_on_it_is_a_number_there(name: str) -> None:
    function, expected = INDEPENDENT[name]
    assert grad(function)(2.0) == expected
    weight.grad = 0.0


def test_under_no_grad_it_is_a_number_there() -> None:
    def function(x: Any) -> Any:
        with gradwalk.no_grad():
            factor = inner.backward(x)
        return factor * x

    assert grad(function)(2.0) == 16.0
    weight.grad = 0.0


def test_the_call_itself_has_a_derivative() -> None:
    assert grad(lambda x: inner(x) * x)(2.0) == 64.0
    assert grad(lambda x: inner.map([x, 1.0])[0] * x)(2.0) == 64.0
    assert grad(lambda x: inner.value_and_grad(x)[0] * x)(2.0) == 64.0


# ---------------------------------------------------------------- products with a Hessian


@pytest.mark.parametrize("exact", [False, True], ids=["", "exact"])
def test_a_product_with_a_hessian_inside_has_its_derivatives(exact: bool) -> None:
    outer = compile(lambda x: inner.hessian_vector(x, vector=1.0) * x, exact=exact)
    assert outer.value_and_grad(2.0) == (48.0, 48.0)
    assert (grad(outer)(2.0), hessian(outer)(2.0)) == (48.0, 24.0)
    x = Value(3.0)
    outer(x).backward()
    assert (x.grad, weight.grad) == (72.0, 54.0)
    weight.grad = 0.0


@pytest.mark.parametrize("exact", [False, True], ids=["", "exact"])
def test_so_it_has_by_the_vector_and_through_what_is_closed_over(exact: bool) -> None:
    """The function is a * b**2 + scale * a**3."""
    scale = Value(1.0)
    several = compile(lambda x: x[0] * x[1] ** 2 + scale * x[0] ** 3)

    def function(a: Any, b: Any) -> Any:
        product = several.hessian_vector([a, b], vector=[1.0, a])
        return product[0] * b + product[1]

    outer = compile(function, exact=exact)
    for a, b in ((1.0, 2.0), (3.0, -1.0)):
        # 6 * scale * a * b + 2 * b * a * b + 2 * b + 2 * a * a
        expected = 6.0 * a * b + 2.0 * a * b * b + 2.0 * b + 2.0 * a * a
        by_a, by_b = 6.0 * b + 2.0 * b * b + 4.0 * a, 6.0 * a + 4.0 * a * b + 2.0
        assert outer.value_and_grad(a, b) == (expected, (by_a, by_b))
        assert gradwalk.value_and_grad(function, argnums=(0, 1))(a, b) == (expected, (by_a, by_b))
    scale.data = 2.0
    assert outer(1.0, 2.0).data == 38.0


def test_on_the_reference_engine() -> None:
    """The same there."""
    if engine.NAME == "reference":
        pytest.skip("this process runs on it")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", __file__]
    done = subprocess.run(command, env=os.environ | {"GRADWALK_ENGINE": "reference"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
