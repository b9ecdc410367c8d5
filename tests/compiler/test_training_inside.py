"""What trains inside a compiled function would do so once: it is refused, and nothing was moved."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import gradwalk
from gradwalk import Value, compile, engine, nn
from gradwalk.custom import checkpoint, custom_op
from gradwalk.optim import SGD, Adam, clip_gradients

Function = Callable[..., Any]


class Model(nn.Module):
    def __init__(self) -> None:
        self.weight = Value(1.0)

    def parameters(self) -> list[Any]:
        return [self.weight]


def set_grad(model: Model, loss: Any) -> None:
    model.weight.grad = 0.0


def set_grad_by_name(model: Model, loss: Any) -> None:
    setattr(model.weight, "".join(["gr", "ad"]), 5.0)


MEDDLING: dict[str, Callable[[Model, Any], Any]] = {
    "w.grad = 0.0": set_grad,
    "setattr": set_grad_by_name,
    "x.grad = 0.0": lambda model, loss: setattr(loss, "grad", 0.0),
    "backward()": lambda model, loss: loss.backward(),
    "backward(create_graph=True)": lambda model, loss: loss.backward(create_graph=True),
    "backward() of a constant": lambda model, loss: (model.weight * 2.0).backward(),
    "_backward()": lambda model, loss: loss._backward(),
    "SGD.step": lambda model, loss: SGD([model.weight], lr=0.1).step(),
    "SGD.step with momentum": lambda model, loss: SGD([model.weight], lr=0.1, momentum=0.5).step(),
    "Adam.step": lambda model, loss: Adam([model.weight], lr=0.1).step(),
    "optimiser.zero_grad": lambda model, loss: SGD([model.weight], lr=0.1).zero_grad(),
    "Module.zero_grad": lambda model, loss: model.zero_grad(),
    "clip_gradients": lambda model, loss: clip_gradients([model.weight], 0.5),
    "gradients_of": lambda model, loss: engine.gradients_of(loss, [model.weight]),
    "walk": lambda model, loss: gradwalk.walk(loss, fresh=True),
}


@pytest.mark.parametrize("exact", [False, True], ids=["", "exact"])
@pytest.mark.parametrize("name", MEDDLING)
def test_gradients_are_neither_read_nor_set_inside(name: str, exact: bool) -> None:
    model = Model()
    model.weight.grad = 3.0

    def loss(x: Any) -> Any:
        out = model.weight * x
        MEDDLING[name](model, out)
        return out

    compiled = compile(loss, exact=exact)
    uses: list[Function] = [compiled, compiled.backward, compiled.value_and_grad, lambda x: compiled.map([x])]
    for use in uses:
        with pytest.raises(TypeError, match=r"loss .*(backward\(\) and optimisers do).*fixed in every later call"):
            use(2.0)
    assert (model.weight.data, model.weight.grad) == (1.0, 3.0)


def test_a_training_step_inside_is_refused_where_it_is_made() -> None:
    weight = Value(1.0)
    optimiser = SGD([weight], lr=0.1)

    def step(x: Any) -> Any:
        loss = (weight * x) ** 2
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
        return loss

    line = step.__code__.co_firstlineno + 2
    with pytest.raises(TypeError, match=rf"at .*test_training_inside.py:{line}"):
        compile(step)(2.0)
    assert [step(x).data for x in (2.0, 3.0)] == [4.0, pytest.approx(0.36)]


def test_a_function_that_goes_on_after_the_refusal_is_the_plain_one() -> None:
    weight = Value(2.0)

    def function(x: Any) -> Any:
        try:
            weight.grad = 0.0
        except TypeError:
            return x * 7.0
        return weight * x

    compiled = compile(function)
    found = []
    for x in (3.0, 4.0):
        out = compiled(x)
        out.backward()
        found.append((out.data, weight.grad))
    assert found == [(6.0, 3.0), (8.0, 4.0)]


def test_a_number_in_the_text_of_an_error_is_no_training() -> None:
    """The plain function is asked for its error, as before."""

    def function(x: Any) -> Any:
        raise ValueError(f"bad number {x}")

    with pytest.raises(ValueError, match=r"bad number Value\(data=2.0"):
        compile(function)(2.0)


def test_around_the_call_nothing_is_refused() -> None:
    """Also after a function was compiled: it is the trace that listens, and it has ended."""
    weight = Value(1.0)
    optimiser = SGD([weight], lr=0.1)
    compiled = compile(lambda x: (weight * x) ** 2)
    found = []
    for x in (2.0, 3.0):
        loss = compiled(x)
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
        found.append(loss.data)
    assert found == [4.0, pytest.approx(0.36)]


def _searched(x: float) -> float:
    """The square root, by training a model of its own."""
    y = Value(1.0)
    optimiser = SGD([y], lr=0.02)
    for _ in range(300):
        loss = (y * y - x) ** 2
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return float(y.data)


def test_a_custom_operation_may_train_what_is_its_own() -> None:
    root = custom_op(_searched, lambda x, out: 0.5 / out, check=False)
    compiled = compile(lambda x: root(x) * x)
    for x in (2.0, 3.0):
        value, gradient = compiled.value_and_grad(x)
        assert (value, gradient) == pytest.approx((x**1.5, 1.5 * x**0.5), rel=1e-6)


def test_a_custom_operation_that_is_not_given_a_node_hands_no_gradient_to_it() -> None:
    def function(x: Any) -> Any:
        own = x * 2.0
        operation = custom_op(lambda y: (own.backward(), y)[1], lambda y, out: 1.0, check=False)
        return operation(x) * own

    with pytest.raises(TypeError, match="in a custom operation that is not given it"):
        compile(function)(2.0)


weight = Value(2.0)
INSIDE: dict[str, Function] = {
    "grad of a closure": lambda x: gradwalk.grad(lambda y: x * y**3 * weight)(x),
    "grad of grad": lambda x: gradwalk.grad(gradwalk.grad(lambda y: x * y**4))(x),
    "vjp": lambda x: gradwalk.vjp(lambda y: [x * y**3, y])(x, [1.0, x]),
    "hvp": lambda x: gradwalk.hvp(lambda y: weight * y**4)(x, 1.0),
    "checkpoint": lambda x: checkpoint(lambda y: gradwalk.sin(y * weight))(x),
    "implicit_root": lambda x: gradwalk.implicit_root(lambda y, a: y * y - a, x.data, x * x),
}


@pytest.mark.parametrize("name", INSIDE)
def test_what_derivatives_inside_do_is_no_training(name: str) -> None:
    compiled = compile(INSIDE[name])
    for x in (1.5, 0.7):
        expected = gradwalk.value_and_grad(INSIDE[name])(x)
        assert compiled.value_and_grad(x) == pytest.approx(expected, rel=1e-12)


def test_on_the_reference_engine() -> None:
    """The same there."""
    if engine.NAME == "reference":
        pytest.skip("this process runs on it")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", __file__]
    done = subprocess.run(command, env=os.environ | {"GRADWALK_ENGINE": "reference"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
