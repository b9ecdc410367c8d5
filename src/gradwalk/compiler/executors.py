"""What runs a program: the executor of the native engine, or the same interface over `interpret.py`."""

from __future__ import annotations

import functools
import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from gradwalk import custom, engine
from gradwalk.compiler import interpret
from gradwalk.compiler.checked import check_shapes, checked_program
from gradwalk.compiler.program import Program
from gradwalk.interface import number_of
from gradwalk.passes import THE_PASS

Array = npt.NDArray[np.float64]


class Interpreted:
    """The executor's interface over `interpret.py`, for machines the native one does not serve."""

    piece = sys.maxsize  # examples are summed one after the other
    undecided = False  # the last run compared numbers too close for it to tell how the plain function compares them

    def __init__(self, program: Program) -> None:
        self.program = checked_program(program)
        self.slots = program.initial

    def run(self, inputs: Array) -> bool:
        self.slots, verdict = interpret.run_guarded(self.program, inputs)
        finite = self.program.exact or bool(np.isfinite(self.slots[self.program.outputs]).all())
        self.undecided = verdict is None or (verdict and not finite)
        return verdict is True and finite

    def run_values(self, arguments: Array, leaves: tuple[Any, ...] | Array) -> bool:
        numbers = leaves if isinstance(leaves, np.ndarray) else [leaf.data for leaf in leaves]
        return self.run(np.concatenate([np.asarray(arguments, np.float64), numbers]))

    def value(self, arguments: Array, leaves: tuple[Any, ...]) -> float | None:
        return float(self.slots[self.program.outputs[0]]) if self.run_values(arguments, leaves) else None

    def backward(self, arguments: Array, leaves: tuple[Any, ...]) -> float | None:
        gradients = np.empty(len(self.program.inputs))
        value = self.value_and_gradients(arguments, leaves, gradients)
        if value is not None:
            self.add_gradients(leaves, gradients[len(arguments) :])
        return value

    def value_and_gradients(self, arguments: Array, leaves: tuple[Any, ...], gradients: Array) -> float | None:
        value = self.value(arguments, leaves)
        if value is not None:
            self.gradients(np.ones(1), gradients)
        return value

    def run_batch(
        self, arguments: Array, leaves: tuple[Any, ...] | Array, outputs: Array, seeds: Array | None = None,
        argument_gradients: Array | None = None, leaf_gradients: Array | None = None, threads: int = 1,
    ) -> list[int]:  # fmt: skip
        failed, split = [], arguments.shape[1]
        if leaf_gradients is not None and leaf_gradients.ndim == 1:
            leaf_gradients[:] = 0.0
        for row, numbers in enumerate(arguments):
            if not self.run_values(numbers, leaves):
                failed.append(row)
            self.outputs(outputs[row])
            if seeds is None:
                continue
            gradient = interpret.gradients(self.program, self.slots, seeds)
            if argument_gradients is not None:
                argument_gradients[row] = gradient[:split]
            if leaf_gradients is not None and leaf_gradients.ndim == 1:
                leaf_gradients += gradient[split:]
            elif leaf_gradients is not None:
                leaf_gradients[row] = gradient[split:]
        return failed

    def leaf_numbers(self, leaves: tuple[Any, ...]) -> bytes:
        return np.array([leaf.data for leaf in leaves], np.float64).tobytes()

    def add_gradients(self, leaves: tuple[Any, ...], gradients: Array) -> None:
        with THE_PASS.lock:
            for leaf, gradient in zip(leaves, gradients.tolist(), strict=True):
                leaf.grad = number_of(leaf.grad) + gradient

    def node(self, children: tuple[Any, ...], places: Array) -> Any:
        local_grads = interpret.gradients(self.program, self.slots, np.ones(1))[places]
        number = float(self.slots[self.program.outputs[0]])
        return custom.recorded(engine.Value(number, children, "compiled", local_grads=tuple(local_grads.tolist())))

    def outputs(self, into: Array) -> None:
        into[:] = self.slots[self.program.outputs]

    def gradients(self, seeds: Array, into: Array) -> None:
        into[:] = interpret.gradients(self.program, self.slots, seeds)


def trains(executor: Any) -> bool:
    """Whether the loops of optimisers are in it: it has `train` and `step_models`."""
    return not isinstance(executor, Interpreted)


def executor_for(program: Program) -> Any:
    """The native executor, or the interpreter where the engine is the reference one."""
    if engine.NAME != "native":
        return Interpreted(program)
    native: Any = engine.load("native").Executor
    instructions: Any = program.instructions
    products = [each for each in instructions if each.op == "matmul"]
    for each in products:
        check_shapes(each, program)  # before it is taken apart
    if any(each.batch > 1 for each in products):
        instructions = tuple(part for each in instructions for part in each.unbatched())
    parts = (program.size, program.initial, program.inputs, program.outputs, instructions, program.guards)
    again = functools.partial(interpret.gradients_again, program)
    return native(*parts, exact=program.exact, functions=program.functions, gradients_again=again)
