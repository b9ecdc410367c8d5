"""The plain function's numbers and the compiled function's, side by side."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

import gradwalk
from gradwalk import engine
from gradwalk.compiler import interpret
from gradwalk.compiler.executors import executor_for
from gradwalk.compiler.flat import Flat
from gradwalk.compiler.program import Program
from gradwalk.compiler.reading import Call


class Numbers(list[float]):
    """Numbers, and what each is the sum of, added up without the signs: how exact a number can be is up to that."""

    def __init__(self, numbers: Iterable[float], terms: Iterable[float] = ()) -> None:
        super().__init__(numbers)
        self.terms = list(terms)


def with_gradients(function: Callable[..., Any], args: tuple[Any, ...], leaves: Sequence[Any] = ()) -> Numbers:
    """The function's value, and the gradient by every number of the arguments and every leaf."""
    call = Call(args, {})
    entries = [number if type(number) is int else gradwalk.Value(number) for number in call.taken_apart()]
    given = [entry for entry in entries if type(entry) is not int]
    for value in leaves:
        value.grad = 0.0
    out = function(*call.filled(entries)[0])
    terms = dict.fromkeys(engine.topological_order(out), 0.0) | {out: 1.0}
    for node in reversed(list(terms)):
        for child, local_grad in zip(node._children, node._local_grads, strict=False):  # none below a hub
            terms[child] += abs(local_grad) * terms[node]
    inputs = (*given, *leaves)
    of_value = abs(out.data) + sum(abs(value.data) * terms.get(value, 0.0) for value in inputs)
    out.backward()
    return Numbers(
        [out.data, *(value.grad for value in inputs)], [of_value, *(terms.get(value, 0.0) for value in inputs)]
    )


def close(expected: Sequence[float], actual: Sequence[float], relative: float = 1e-12) -> bool:
    """Equal up to rounding: relative to the number, or to the terms it is the sum of, where it is known as a sum.

    A sum of terms that cancel depends on the order they are added in; what it cannot differ by is much more than a
    rounding of the terms themselves.
    """
    terms = expected.terms if isinstance(expected, Numbers) and expected.terms else [0.0] * len(expected)
    return all(
        x == y or (x != x and y != y) or abs(x - y) <= relative * max(abs(x), abs(y), scale)
        for x, y, scale in zip(expected, actual, terms, strict=True)
    )


def program_numbers(program: Program, inputs: Sequence[float]) -> Numbers:
    """The program's results and gradients by the interpreter."""
    slots = interpret.run(program, np.array(inputs))
    gradients = interpret.gradients(program, slots, np.ones(len(program.outputs)))
    numbers = [*slots[program.outputs].tolist(), *gradients.tolist()]
    return Numbers(numbers, _terms(program, slots) if program.exact else ())


def executed_numbers(program: Program, inputs: Sequence[float]) -> Numbers:
    """The same by the executor that calls use."""
    executor = executor_for(program)
    assert executor.run(np.array(inputs)) or executor.undecided  # as where it takes the larger of x and abs(x)
    outputs, gradients = np.empty(len(program.outputs)), np.empty(len(program.inputs))
    executor.outputs(outputs)
    executor.gradients(np.ones(len(program.outputs)), gradients)
    return Numbers([*outputs.tolist(), *gradients.tolist()])


def _terms(program: Program, slots: Any) -> list[float]:
    """For an exact program: results as they are, and gradients with every contribution taken as positive."""
    terms = np.zeros(program.size)
    np.add.at(terms, program.outputs, 1.0)
    for instruction in reversed(program.instructions):
        shape, end = (instruction.rows, instruction.columns), instruction.out + instruction.rows * instruction.columns
        operands = [slots[view.slots] for view in instruction.operands]
        out, above = slots[instruction.out : end].reshape(shape), terms[instruction.out : end].reshape(shape)
        contributions = interpret._exact_backward(instruction, operands, out, above)
        for view, contribution in zip(instruction.operands, contributions, strict=True):
            if contribution is not None:
                np.add.at(terms, view.slots, np.abs(contribution))
    of_values = np.abs(slots[program.outputs]) + np.abs(slots[program.inputs]) @ terms[program.inputs]
    return [*of_values.tolist(), *terms[program.inputs].tolist()]


def ops_of(flat: Flat) -> list[str]:
    from gradwalk.compiler.flat import NAMES

    return [NAMES[code] for code in flat.op.tolist() if NAMES[code] not in ("input", "constant")]


def outcome(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """The number, or the type of what was raised."""
    try:
        out = function(*args)
    except Exception as error:
        return type(error)
    return out.data if isinstance(out, gradwalk.Value) else out


def as_values(whole: Any) -> Any:
    if isinstance(whole, float):
        return gradwalk.Value(whole)
    if isinstance(whole, list | tuple):
        return type(whole)(map(as_values, whole))
    return whole


def agree(function: Callable[..., Any], *calls: tuple[Any, ...]) -> Any:
    """Assert that one compiled function says of each call what the plain one says; returns it."""
    compiled = gradwalk.compile(function)
    for args in calls:
        expected = outcome(function, tuple(as_values(arg) for arg in copy.deepcopy(args)))
        assert expected == outcome(compiled, args)
    return compiled
