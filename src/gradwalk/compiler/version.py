"""One traced version of a compiled function: its program, the leaves it reads, and the nodes it makes."""

from __future__ import annotations

import hashlib
import math
import threading
from collections.abc import Callable
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from gradwalk import engine
from gradwalk.compiler import interpret
from gradwalk.compiler.names import named
from gradwalk.compiler.program import Program
from gradwalk.compiler.rolling import rolled_up, step_by_step
from gradwalk.compiler.trace import Trace
from gradwalk.control import current_modes
from gradwalk.custom import emptied, nodes_over_one
from gradwalk.structure import is_value

Array = npt.NDArray[np.float64]


class Interpreted:
    """The executor's interface over `interpret.py`, for machines the native one does not serve."""

    undecided = False  # the last run compared numbers too close for it to tell how the plain function compares them

    def __init__(self, program: Program) -> None:
        self.program = program
        self.slots = program.initial

    def run(self, inputs: Array) -> bool:
        self.slots, verdict = interpret.run_guarded(self.program, inputs)
        self.undecided = verdict is None
        return bool(verdict)

    def run_values(self, arguments: Array, leaves: tuple[Any, ...]) -> bool:
        return self.run(np.concatenate([arguments, [leaf.data for leaf in leaves]]))

    def gradients_into(self, seeds: Array, leaves: tuple[Any, ...], arguments: Array) -> None:
        gradients = interpret.gradients(self.program, self.slots, seeds)
        arguments[:] = gradients[: len(arguments)]
        self.add_gradients(leaves, gradients[len(arguments) :])

    def value_and_gradients(
        self, arguments: Array, leaves: tuple[Any, ...], outputs: Array, seeds: Array, gradients: Array
    ) -> bool:
        applies = self.run_values(arguments, leaves)
        self.outputs(outputs)
        self.gradients(seeds, gradients)
        return applies

    def run_batch(
        self, arguments: Array, leaves: tuple[Any, ...], outputs: Array, seeds: Array | None = None,
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
        for leaf, gradient in zip(leaves, gradients.tolist(), strict=True):
            leaf.grad += gradient

    def node(self, children: tuple[Any, ...], places: Array) -> Any:
        local_grads = interpret.gradients(self.program, self.slots, np.ones(1))[places]
        number = float(self.slots[self.program.outputs[0]])
        made = engine.Value(number, children, "compiled", local_grads=tuple(local_grads.tolist()))
        on_record = current_modes()[1]
        if on_record:
            on_record(made)
        return made

    def outputs(self, into: Array) -> None:
        into[:] = self.slots[self.program.outputs]

    def gradients(self, seeds: Array, into: Array) -> None:
        into[:] = interpret.gradients(self.program, self.slots, seeds)


def executor_for(program: Program) -> Any:
    """The native executor, or the interpreter where the engine is the reference one."""
    if engine.NAME != "native":
        return Interpreted(program)
    native: Any = engine.load("native").Executor
    parts = (program.size, program.initial, program.inputs, program.outputs, program.instructions, program.guards)
    return native(*parts, exact=program.exact, functions=program.functions)


class Version:
    """Made by one trace; `run` fills its executor's slots, everything else reads them."""

    def __init__(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], exact: bool
    ) -> None:
        trace = Trace(function, args, kwargs).run()
        self.program = (step_by_step if exact else rolled_up)(trace.flat, len(trace.entries))
        self.program.scalar_nodes, self.program.functions = trace.scalar_nodes, tuple(trace.functions)
        named(self.program, function, args, kwargs, trace.leaves)
        self.leaves, self.result = trace.leaves, trace.result
        self.result.values.clear()  # and with them the traced graph
        self.whole = trace.whole
        self._fixed = itemgetter(*self.whole) if self.whole else None
        self._fixed_at = self._fixed(self.whole) if self._fixed else None
        self.lines = trace.lines
        self.caught = trace.caught
        self.digest = _digest(trace)
        self.lock = threading.RLock()  # a hook may call the function again
        self.values = [i for i, given in enumerate(trace.given) if is_value(given)]
        self._of_children = np.array([*self.values, *range(len(trace.entries), len(self.program.inputs))], np.int32)
        self.executor = executor_for(self.program)
        self._out = np.empty(len(self.program.outputs))
        self._one = np.ones(1)
        self._inputs = len(self.program.inputs)
        self._gradients_of_arguments = np.empty(self.program.arguments)
        self.numbers = self._out  # of the last run's arguments
        self._trained: tuple[Any, Any] | None = None  # the parameters of the optimiser used last, and their slots

    # ---------------------------------------------------------------- running

    def fits(self, entries: list[Any]) -> bool:
        """Whether the integers the trace fixed are what they were."""
        return self._fixed is None or self._fixed(entries) == self._fixed_at

    def run(self, numbers: Array) -> bool:
        """Forward, on the numbers of the arguments and the leaves' own; False where the program does not apply."""
        self.numbers = numbers
        return bool(self.executor.run_values(numbers, self.leaves))

    def locked_run(self, numbers: Array) -> bool:
        """`run`, and the lock is kept if the program applies."""
        self.lock.acquire()
        applies = False
        try:
            applies = self.run(numbers)
        finally:
            if not applies:
                self.lock.release()
        return applies

    def inputs(self, numbers: Array) -> Array:
        """Everything the program reads, as it is now."""
        return np.concatenate([numbers, np.frombuffer(self.executor.leaf_numbers(self.leaves))])

    def what_changed(self, numbers: Array) -> str:
        """Why this version does not apply to these numbers."""
        for entry, number in self.whole.items():
            if numbers[entry] != number:
                return f"the integer {number} among the arguments"
        try:
            slots = interpret.run(self.program, self.inputs(numbers))
            failed = interpret.first_failed(self.program, slots)
        except interpret.InapplicableError as stopped:
            failed = stopped.guard
        if failed is None:
            return "a result that is infinite or nan"
        return f"the comparison at {self.lines[self.program.guards.index(failed)]}"

    def run_with_gradient(self, array: Array) -> tuple[float, Array] | None:
        """Both passes of a single result in one go, for one array; None where the program does not apply."""
        gradient = np.empty(self._inputs)
        with self.lock:
            flat = array if array.ndim == 1 else array.reshape(-1)
            if not self.executor.value_and_gradients(flat, self.leaves, self._out, self._one, gradient):
                return None
            value: float = self._out.item()
        if self.leaves:
            gradient = gradient[: self.program.arguments]
        return value, gradient if array.ndim == 1 else gradient.reshape(array.shape)

    # ---------------------------------------------------------------- after a run

    def value_and_gradient(self) -> tuple[float, Array]:
        """The single result, and its gradient by each number of the arguments."""
        self.executor.outputs(self._out)
        gradient = np.empty(len(self.program.inputs))
        self.executor.gradients(self._one, gradient)
        return self._out.item(0), gradient[: self.program.arguments]

    def accumulate(self) -> float:
        """The single result; its gradients are added to the leaves' own."""
        self.executor.outputs(self._out)
        self.executor.gradients_into(self._one, self.leaves, self._gradients_of_arguments)
        return self._out.item(0)

    def train(self, optimiser: Any, lr: float | None) -> float | None:
        """The single result; the parameters are moved along its gradients. None where it takes the long way."""
        if self._trained is None or self._trained[0] is not optimiser.parameters:
            self._trained = optimiser.parameters, self._slots_of(optimiser.parameters)
        slots = self._trained[1]
        if slots is None:
            return None
        self.executor.outputs(self._out)
        value: float = self._out.item(0)
        if math.isfinite(value):
            optimiser.step_by(self.executor.train, slots, lr)
        else:
            optimiser.zero_grad()
        return value

    def _slots_of(self, parameters: tuple[Any, ...]) -> Any:
        """The slot of each parameter, one past the last if it has none; None where there are more leaves than that."""
        if not hasattr(self.executor, "train") or not self.leaves:
            return None
        of_leaves, asked = (np.fromiter(map(id, each), np.int64, len(each)) for each in (self.leaves, parameters))
        order = np.argsort(of_leaves)
        place = order[np.searchsorted(of_leaves, asked, sorter=order).clip(max=len(order) - 1)]
        found = of_leaves[place] == asked
        if found.sum() < len(self.leaves):
            return None
        return np.where(found, self.program.inputs[self.program.arguments :][place], self.program.size).astype(np.int32)

    def node(self, entries: list[Any]) -> Any:
        """The result as recorded nodes (plain numbers under no_grad), in the structure the function returned."""
        no_grad, on_record, _, _ = current_modes()
        children = (*(entries[i] for i in self.values), *self.leaves) if self.values else self.leaves
        if self.result.single and children and not no_grad:
            return self.executor.node(children, self._of_children)
        self.executor.outputs(self._out)
        data = self._out.tolist()
        if no_grad:
            return self.result.filled(data)
        if not children:
            return self.result.filled([engine.Value(number) for number in data])
        made = self._many(data, children)
        if on_record:
            for node in made:
                on_record(node)
        return self.result.filled(made)

    def _many(self, data: list[float], children: tuple[Any, ...]) -> list[Any]:
        """A node for each result, over one that runs a single reverse pass when all of them have their gradient."""
        call = _Call(self, children)
        made, call.mailboxes = nodes_over_one(engine.Value, data, children, "compiled", call.backward)
        return made


class _Call:
    """What a call with several results needs to find its gradients later, when leaves may have moved on."""

    def __init__(self, version: Version, children: tuple[Any, ...]) -> None:
        self.version, self.children = version, children
        self.inputs = version.inputs(version.numbers)
        self.mailboxes: list[Any] = []

    def backward(self) -> None:
        seeds = np.array(emptied(self.mailboxes), np.float64)
        if not seeds.any():
            return
        gradient = np.empty(len(self.inputs))
        with self.version.lock:
            self.version.executor.run(self.inputs)
            self.version.executor.gradients(seeds, gradient)
        for child, contribution in zip(self.children, gradient[self.version._of_children].tolist(), strict=True):
            child.grad += contribution


def _digest(trace: Trace) -> bytes:
    """Two traces with one digest did the same things."""
    flat = trace.flat
    arrays = (flat.op, flat.starts, flat.children, flat.numbers, flat.row, flat.outputs, flat.guards,
              flat.signs, flat.outcomes)  # fmt: skip
    digest = hashlib.sha256(repr(sorted(trace.whole.items())).encode())
    for array in arrays:
        digest.update(np.ascontiguousarray(array).data)
    return digest.digest()
