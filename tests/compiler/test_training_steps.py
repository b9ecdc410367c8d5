"""`train_step`: backward, a step of the optimiser and zero_grad in one go, to the bit."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from running_programs import make, slot_array

import gradwalk
from gradwalk.compiler.compile import compile
from gradwalk.compiler.program import Instruction, Program, View
from gradwalk.optim import SGD, Adam, AdamW


@pytest.mark.parametrize("make", [Adam, AdamW, lambda ps: SGD(ps, 0.1)], ids=["Adam", "AdamW", "SGD"])
def test_a_training_step_is_backward_step_and_zero_grad(make: Any) -> None:
    """To the bit; also for a parameter that the function does not use, and for gradients that were there before."""

    def trained(one_by_one: bool) -> list[float]:
        parameters = [gradwalk.Value(0.3 * i - 0.8) for i in range(70)]
        error = compile(lambda x: sum((p * x - 0.5).tanh() ** 2 for p in parameters[1:]))
        optimiser = make(parameters)
        parameters[3].grad = 0.25
        losses = []
        for i in range(5):
            if one_by_one:
                losses.append(error.backward(0.1 * i))
                optimiser.step(0.01 * i)
                optimiser.zero_grad()
            else:
                losses.append(error.train_step(optimiser, 0.1 * i, lr=0.01 * i))
            assert not any(p.grad for p in parameters)
        return [*losses, *(p.data for p in parameters)]

    assert trained(one_by_one=True) == trained(one_by_one=False)


def write_data(weights: list[Any]) -> None:
    weights[1].data = 0.5


class Weight(gradwalk.Value):
    pass


def make_again(weights: list[Any]) -> None:
    weights[1].__init__(0.5)


def write_a_gradient(weights: list[Any]) -> None:
    weights[1].grad = 0.5


def walk_back(weights: list[Any]) -> None:
    (weights[0] * weights[1]).backward()


def walk_back_with_a_graph(weights: list[Any]) -> None:
    (weights[0] * weights[1]).backward(create_graph=True)


def walk_back_compiled(weights: list[Any]) -> None:
    compile(lambda x: weights[0] * weights[2] * x).backward(3.0)


def walk_back_over_a_batch(weights: list[Any]) -> None:
    compile(lambda x: weights[0] * weights[2] * x).map_backward([0.1 * i for i in range(20)])


def move_with_sgd(weights: list[Any]) -> None:
    walk_back(weights)
    SGD(weights, lr=0.1).step()


def move_with_adam(weights: list[Any]) -> None:
    walk_back(weights)
    Adam(weights[:2], lr=0.1).step()


def train_something_else(weights: list[Any]) -> None:
    compile(lambda x: weights[0] * weights[2] * x).train_step(Adam(weights, lr=0.1), 3.0)


def train_some_of_them(weights: list[Any]) -> None:
    compile(lambda x: weights[0] * x).train_step(Adam(weights[:1], lr=0.1), 3.0)


@pytest.mark.parametrize(
    "disturb",
    [
        write_data, make_again, write_a_gradient, walk_back, walk_back_with_a_graph, walk_back_compiled,
        walk_back_over_a_batch, move_with_sgd, move_with_adam, train_something_else, train_some_of_them,
    ],
)  # fmt: skip
@pytest.mark.parametrize("others", [0, 2])
def test_what_happens_between_training_steps_is_seen(disturb: Callable[[list[Any]], None], others: int) -> None:
    """A step trusts what the one before has left in its slots, unless somebody wrote to a Value meanwhile."""

    def trained(one_by_one: bool) -> list[float]:
        kind = Weight if disturb is make_again else gradwalk.Value  # which ignores it
        weights = [kind(0.1 * i - 0.2) for i in range(40)]
        unread = [gradwalk.Value(1.0) for _ in range(others)]
        optimiser = AdamW([*weights[:20], *unread, *weights[20:]], lr=0.05, weight_decay=0.1)
        error = compile(lambda xs: sum((w * x - 0.3) ** 2 for w in weights for x in xs))
        pushed = weights[0] * weights[1]
        pushed.grad = 2.0
        seen = []
        for i in range(15):
            if i in (4, 5, 8):
                disturb(weights)
            if i == 11:
                pushed._backward()
            xs = [0.1 * i, 0.2][: i % 2 + 1]  # two programs
            if one_by_one:
                seen.append(error.backward(xs))
                optimiser.step()
                optimiser.zero_grad()
            else:
                seen.append(error.train_step(optimiser, xs))
            if i in (6, 10):
                seen.append(error([0.7]).data)
        return [*seen, *(p.data for p in optimiser.parameters), *(float(p.grad) for p in optimiser.parameters)]

    assert trained(one_by_one=True) == trained(one_by_one=False)


def test_a_training_step_with_other_values_than_the_parameters() -> None:
    """Those among the arguments and those the optimiser does not know get their gradients."""
    weight, other, x = gradwalk.Value(2.0), gradwalk.Value(3.0), gradwalk.Value(5.0)
    optimiser = SGD([weight], lr=0.1)
    product = compile(lambda x: weight * other * x)
    assert product.train_step(Adam([weight], lr=0.0), 5.0) == 30.0
    assert (weight.grad, other.grad) == (0.0, 10.0)
    assert product.train_step(optimiser, x) == 30.0
    assert (weight.data, x.grad, other.grad) == (0.5, 6.0, 20.0)


def test_a_training_step_without_a_finite_value_moves_nothing() -> None:
    weight = gradwalk.Value(1e200)
    weight.grad = 0.25
    product = compile(lambda x: weight * weight * x)
    assert product.train_step(Adam([weight]), 1.0) == math.inf
    assert (weight.data, weight.grad) == (1e200, 0.0)


def test_a_training_step_that_takes_another_branch() -> None:
    """The program of the last step does not apply; that of the other branch is made, and both are kept."""

    def trained(one_by_one: bool) -> list[float]:
        weight = gradwalk.Value(1.0)
        product, optimiser = compile(lambda x: weight * x if x > 0.0 else weight * weight * x), Adam([weight], lr=0.1)
        values = []
        for x in (1.0, -1.0, 2.0, -2.0):
            values.append(product.backward(x) if one_by_one else product.train_step(optimiser, x))
            if one_by_one:
                optimiser.step()
                optimiser.zero_grad()
        return [*values, weight.data, float(len(product.programs))]

    assert trained(one_by_one=True) == trained(one_by_one=False)


class Halving(Adam):
    def step(self) -> None:  # type: ignore[override]
        for parameter in self.parameters:
            parameter.data /= 2.0


def test_a_step_of_ones_own_need_not_take_a_learning_rate() -> None:
    weight = gradwalk.Value(8.0)
    compile(lambda x: weight * x).train_step(Halving([weight]), 1.0)
    assert weight.data == 4.0


def test_a_step_put_in_the_place_of_every_adams(monkeypatch: pytest.MonkeyPatch) -> None:
    weight = gradwalk.Value(8.0)
    product, optimiser = compile(lambda x: weight * x), Adam([weight])
    product.train_step(optimiser, 1.0)
    weight.data = 8.0
    monkeypatch.setattr(Adam, "step", Halving.step)
    product.train_step(optimiser, 1.0)
    assert weight.data == 4.0


OTHER_NUMBERS = {
    "run": lambda executor: executor.run(np.array([0.5, 9.0])),
    "a batch": lambda executor: executor.run_batch(np.full((9, 1), 0.5), np.array([9.0]), np.empty((9, 1))),
    "models": lambda executor: executor.step_models(
        slot_array([0]), slot_array([1]), np.array([0.5]), np.array([9.0]), np.empty(1), None, None, None
    ),
    "a direction": lambda executor: executor.run_directions(np.array([0.5]), (), np.array([9.0]), np.empty(1)),
}


@pytest.mark.parametrize("name", OTHER_NUMBERS)
def test_leaves_are_read_again_where_others_were_in_their_slots(name: str) -> None:
    """Although nobody has written to a Value since they were last read."""
    product = Instruction("mul", 2, 1, 1, (View(1, 1, 0), View(1, 1, 1)))
    executor = make(Program(3, np.zeros(3), slot_array([0, 1]), slot_array([2]), (product,)))
    leaves = (gradwalk.Value(3.0),)
    assert executor.value([2.0], leaves) == 6.0
    OTHER_NUMBERS[name](executor)
    assert executor.value([2.0], leaves) == 6.0
