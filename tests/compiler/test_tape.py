"""Short steps one after the other, which the executor runs as a tape: as the interpreter does, and to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from comparing import close, executed_numbers, program_numbers, with_gradients
from flats import flat_of
from running_programs import make, slot_array

import gradwalk
from gradwalk.compiler.compile import compile
from gradwalk.compiler.executors import executor_for
from gradwalk.compiler.program import Instruction, Program, View
from gradwalk.compiler.rolling import rolled_up, step_by_step
from gradwalk.ops import OPS


def in_a_row(name: str) -> Any:
    """The operation, what it gives times its first input, and the sum of both: three steps of one entry."""
    row = OPS[name]
    parameters = ((-0.5, 0.75)[: len(row.parameters)],) if row.parameters else ()
    inputs = len(row.inputs)
    nodes = [(name, *range(inputs), *parameters), ("mul", inputs, 0), ("add", inputs + 1, inputs)]
    return flat_of(nodes, inputs=inputs, outputs=[inputs + 2])


@pytest.mark.parametrize("name", OPS)
def test_every_operation_is_that_of_the_eager_engine_to_the_bit(name: str) -> None:
    program = step_by_step(in_a_row(name))
    inputs = [1.25 if name == "acosh" else 0.625, 0.75, -0.375][: len(program.inputs)]
    assert program_numbers(program, inputs) == executed_numbers(program, inputs)


@pytest.mark.parametrize("name", OPS)
def test_rolled_up_every_operation_is_what_the_interpreter_says(name: str) -> None:
    program = rolled_up(in_a_row(name))
    inputs = [1.25 if name == "acosh" else 0.625, 0.75, -0.375][: len(program.inputs)]
    assert close(program_numbers(program, inputs), executed_numbers(program, inputs))


@pytest.mark.parametrize("name", ["tanh", "sigmoid"])
@pytest.mark.parametrize("x", [-30.0, -9.0, -1.0, 0.0, 0.9, 1.1, 9.0, 30.0])
def test_slopes_are_right_out_to_the_tails(name: str, x: float) -> None:
    flat = flat_of([(name, 0), ("add", 1, 1), ("neg", 2)], inputs=1, outputs=[3])
    expected = program_numbers(step_by_step(flat), [x])
    assert executed_numbers(rolled_up(flat), [x]) == pytest.approx(expected, rel=4e-15, abs=0.0)


def test_short_sums_and_products_are_what_the_interpreter_says() -> None:
    chained: list[tuple[Any, ...]] = []
    for i in range(6):  # a dot of two products, a sum of three, and both multiplied, over the last three numbers
        a, b, c = (3 + 4 * i - back for back in (1, 2, 3)) if i else (0, 1, 2)
        here = 3 + 4 * i
        chained += [("dot", a, b, b, c), ("sum", a, b, here), ("sub", here, here + 1), ("sin", here + 2)]
    program = rolled_up(flat_of(chained, inputs=3, outputs=[3 + len(chained) - 1]))
    assert {"dot", "sum"} <= {instruction.op for instruction in program.instructions}
    inputs = [0.3, -0.2, 0.7]
    assert close(program_numbers(program, inputs), executed_numbers(program, inputs))


def test_a_number_that_may_not_be_infinite_stops_the_program() -> None:
    program = rolled_up(flat_of([("div", 0, 1), ("add", 2, 0), ("mul", 3, 1)], inputs=2, outputs=[4]))
    executor = executor_for(program)
    assert executor.run(np.array([1.0, 2.0]))
    assert not executor.run(np.array([1.0, 0.0]))


@pytest.mark.parametrize("place", [None, 0, 1, 7, 8, 20])
def test_nor_may_it_along_any_direction(place: int | None) -> None:
    """Of 21, along which a logarithm is asked for."""
    product = Instruction("mul", 2, 1, 1, (View(1, 1, 0), View(1, 1, 1)))
    logarithm = Instruction("log", 3, 1, 1, (View(1, 1, 2),))
    root = Instruction("tanh", 4, 1, 1, (View(1, 1, 3),))
    executor = make(Program(5, np.zeros(5), slot_array([0, 1]), slot_array([4]), (product, logarithm, root)))
    directions = np.array([[-1.0 if i == place else 2.0] for i in range(21)])
    assert (place is None) is executor.run_directions(np.array([0.5]), (), directions, np.empty(21))


@pytest.mark.parametrize("turned", [False, True])
def test_of_the_entries_of_a_step_only_some_may_depend_on_a_direction(turned: bool) -> None:
    slots = slot_array([[0, 1] if turned else [1, 0]])
    product = Instruction("mul", 2, 1, 2, (View(1, 2, index=slots), View(1, 2, 0, 0, 0)))
    executor = make(Program(4, np.zeros(4), slot_array([0, 1]), slot_array([2, 3]), (product,)))
    directions, outputs = np.array([[float(i)] for i in range(11)]), np.empty((11, 2))
    assert executor.run_directions(np.array([0.5]), (), directions, outputs)
    assert [[0.25, 0.5 * i] if turned else [0.5 * i, 0.25] for i in range(11)] == outputs.tolist()


def test_an_infinite_sum_does_not() -> None:
    program = rolled_up(flat_of([("add", 0, 1), ("mul", 2, 0), ("tanh", 3)], inputs=2, outputs=[4]))
    assert executor_for(program).run(np.array([1e308, 1e308]))


def test_results_without_a_seed_hand_nothing_on() -> None:
    nodes = [("sqrt", 0), ("mul", 1, 2), ("add", 1, 3)]  # the slope of the root is infinite at 0
    program = rolled_up(flat_of(nodes, inputs=2, outputs=[2, 4]))
    executor = executor_for(program)
    gradient = np.empty(2)
    executor.run(np.array([0.0, 3.0]))
    executor.gradients(np.array([1.0, 0.0]), gradient)
    assert gradient.tolist() == [np.inf, 0.0]


@pytest.mark.parametrize("gathered", [False, True])
@pytest.mark.parametrize("count", [3, 40, 3000])
def test_entries_without_a_seed_hand_nothing_on_however_many_there_are(count: int, gathered: bool) -> None:
    """A root of 0 in every third place, alone and in a batch: 0 times its infinite slope is nothing."""
    view = View(1, count, index=slot_array([*range(count)][::-1])[None]) if gathered else View(1, count, 0, 0, 1)
    roots = Instruction("sqrt", count, 1, count, (view,))
    inputs, outputs = slot_array(range(count)), slot_array(range(count, 2 * count))
    executor = make(Program(2 * count, np.zeros(2 * count), inputs, outputs, (roots,)))
    given = np.array([float(i % 3) for i in range(count)])
    seeds = (given[::-1] if gathered else given) * 3.0
    expected = given * 3.0 * 0.5 / np.sqrt(np.maximum(given, 1.0))
    alone, together = np.empty(count), np.empty((9, count))
    executor.run(given)
    executor.gradients(seeds, alone)
    executor.run_batch(np.array([given] * 9), (), np.empty((9, count)), seeds, together)
    assert [expected.tolist()] * 10 == [alone.tolist(), *together.tolist()]


def test_a_long_chain_is_its_plain_function() -> None:
    def logistic(x: Any, r: Any) -> Any:
        for _ in range(400):
            x = r * x * (1.0 - x)
        return x

    compiled = gradwalk.compile(logistic)
    x, r = gradwalk.Value(0.3), gradwalk.Value(2.5)
    out = logistic(x, r)
    out.backward()
    assert close([out.data, x.grad, r.grad], [*_flattened(compiled.value_and_grad(0.3, 2.5))])


def _flattened(both: tuple[float, Any]) -> list[float]:
    return [both[0], *both[1]]


def test_a_long_chain_of_which_no_two_links_are_alike() -> None:
    """More levels times things to do than 16 bits can count."""

    def chain(x: Any) -> Any:
        for k in range(300):
            x = (x * x + 1.0) ** (1.0 / (k + 3))
        return x

    assert close(with_gradients(chain, (0.5,)), with_gradients(compile(chain), (0.5,)))


def test_a_batch_of_chains_is_what_one_by_one_gives() -> None:
    def chain(x: Any) -> Any:
        for _ in range(20):
            x = gradwalk.sin(x * 1.5) - 0.25 * x
        return x

    compiled = gradwalk.compile(chain)
    starts = [0.1 * i for i in range(11)]
    assert close([compiled(x).data for x in starts], [out.data for out in compiled.map(starts)])


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_infinity_times_zero_hands_on_nothing_as_in_the_eager_engine(engine: str) -> None:
    flat = flat_of([("abs", 0), ("mul", 1, 0), ("cbrt", 2), ("add", 3, 2)], inputs=1, outputs=[4])
    numbers = {"native": executed_numbers, "reference": program_numbers}[engine]
    assert numbers(step_by_step(flat), [0.0]) == [0.0, 0.0]
