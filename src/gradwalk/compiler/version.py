"""One traced version of a compiled function: its program, the leaves it reads, and the runs that use it.

Every call has an executor to itself, so calls neither wait for nor disturb one another: not in other threads, and not
where a custom operation or somebody's `__del__` calls the function again in the middle of a call.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from gradwalk import custom, engine
from gradwalk.compiler import executors, interpret
from gradwalk.compiler.names import argument_names, name_inputs
from gradwalk.compiler.reading import Call, Fixed, Result
from gradwalk.compiler.rolling import calls_are_exact, rolled_up, step_by_step
from gradwalk.compiler.trace import Trace, traced
from gradwalk.control import current_modes
from gradwalk.hub import nodes_over_one
from gradwalk.lost_derivatives import warn_of_equal, warn_of_rounded, warn_of_search
from gradwalk.structure import is_value

Array = npt.NDArray[np.float64]


class Refused(enum.Enum):
    """Why a program was not used."""

    INAPPLICABLE = enum.auto()  # another program may apply
    PLAIN = enum.auto()  # only the plain function knows
    SEVERAL = enum.auto()  # one number was asked for, and there are several


INAPPLICABLE, PLAIN, SEVERAL = Refused


class Version:
    """What one trace made. `used` hands out a `Run` of it."""

    def __init__(self, function: Callable[..., Any], call: Call, exact: bool, opening: bool = False) -> None:
        trace = traced(function, call, exact, opening)
        self.opened = trace.subscripted > 0
        exact = exact or not calls_are_exact(trace.flat)
        self.program = (step_by_step if exact else rolled_up)(trace.flat, len(trace.entries))
        self.program.scalar_nodes, self.program.functions = trace.scalar_nodes, tuple(trace.functions)
        name_inputs(self.program, function, call, trace.leaves)
        self.leaves, self.result = trace.leaves, trace.result
        self.result.values.clear()  # and with them the traced graph
        self.whole = trace.whole
        self.fixed = Fixed() if self.whole or call.settings else None
        self._fixed = itemgetter(*self.whole) if self.whole else None
        self._fixed_at = self._fixed(self.whole) if self._fixed else None
        self.key = call.key
        self.lines = trace.lines
        self.caught = trace.caught
        self.digest = _digest(trace)
        self.values = [i for i, given in enumerate(trace.given) if is_value(given)]
        # below a Value that is given, or one closed over that was computed, gradients go on
        self.ends = not self.values and not trace.computed
        self.of_children = np.array([*self.values, *range(len(trace.entries), len(self.program.inputs))], np.int32)
        self._calls = bool(trace.functions)
        self._idle = [Run(self)]
        self.searched, self._rounded = trace.searched(), trace.rounded()
        self.loses = bool(self.searched) or any(self._rounded.values())
        if self.loses:
            self._names = list(argument_names(function, call))
            self.used = self._used_and_told  # type: ignore[method-assign]

    def _used_and_told(self, use: Callable[..., Any], numbers: Any, call: Call | None = None) -> Any:
        made = Version.used(self, use, numbers, call)
        if use is Run.value_and_gradient and not isinstance(made, Refused):
            self.tell("compile: value_and_grad", range(len(self._names)))
        elif use is Run.backward and not isinstance(made, Refused):
            self.tell("compile: backward", self.values)
        return made

    def tell(self, what: str, entries: Sequence[int], is_part: bool = False) -> None:
        """Warn of the first of these that is only compared with; or if all that count are rounded away.

        What is rounded may be a part of something that loses nothing, as `x - floor(x)`.
        """
        for entry in entries:
            if entry in self.searched:
                name, times = self._names[entry], self.searched[entry]
                return warn_of_search(what, name, times) if times else warn_of_equal(what, name)
        if not is_part and {self._rounded[entry] for entry in entries if entry in self._rounded} == {True}:
            warn_of_rounded(what)

    def used(self, use: Callable[..., Any], numbers: Any, call: Call | None = None) -> Any:
        """What `use` makes of a run that nobody else uses meanwhile."""
        if self._calls:
            custom.raised()  # before this, it is no concern of ours
        idle = self._idle
        try:
            run = idle.pop()
        except IndexError:
            run = Run(self)
        try:
            return use(run, numbers, call)
        finally:
            idle.append(run)

    def raised(self) -> Exception | None:
        """What a custom operation raised in a run that was made just now."""
        return custom.raised() if self._calls else None

    def fits(self, entries: Any) -> bool:
        """Whether the integers the trace fixed are what they were."""
        return self._fixed is None or self._fixed(entries) == self._fixed_at

    def what_changed(self, numbers: Array) -> str:
        """Why this version does not apply to these numbers."""
        for entry, number in self.whole.items():
            if numbers[entry] != number:
                return f"the integer {number} among the arguments"
        try:
            slots = interpret.run(self.program, self.used(Run.inputs, numbers))
            failed = interpret.first_failed(self.program, slots)
        except interpret.InapplicableError as stopped:
            failed = stopped.guard
        if failed is None:
            return "a result that is infinite or nan"
        return f"the comparison at {self.lines[self.program.guards.index(failed)]}"

    def slots_of(self, parameters: tuple[Any, ...]) -> Any:
        """The slot of each parameter, one past the last if it has none; None where there are more leaves than that."""
        of_leaves, asked = (np.fromiter(map(id, each), np.int64, len(each)) for each in (self.leaves, parameters))
        order = np.argsort(of_leaves)
        place = order[np.searchsorted(of_leaves, asked, sorter=order).clip(max=len(order) - 1)]
        found = of_leaves[place] == asked
        if found.sum() < len(self.leaves):
            return None
        return np.where(found, self.program.inputs[self.program.arguments :][place], self.program.size).astype(np.int32)


class Run:
    """An executor, with the memory that a call needs around it. Uses say `Refused` where the numbers do not fit."""

    def __init__(self, version: Version) -> None:
        program = version.program
        self.version, self.leaves = version, version.leaves
        self.executor = executors.executor_for(program)
        self._inputs, self._single = len(program.inputs), version.result.single
        self._out = np.empty(len(program.outputs))
        self._trained: tuple[Any, Any] | None = None  # the parameters of the optimiser used last, and their slots

    def forward(self, numbers: Array) -> Refused | None:
        """On the numbers of the arguments and the leaves' own."""
        if self.executor.run_values(numbers, self.leaves):
            return None
        return self._refused()

    def _refused(self) -> Refused:
        return PLAIN if self.executor.undecided else INAPPLICABLE

    def applicable(self, numbers: Array, _: Any) -> Refused | Version:
        """The version, if it applies."""
        return self.forward(numbers) or self.version

    def outputs_and_result(self, numbers: Array, _: Any) -> Refused | tuple[Array, Result]:
        """The results, and their structure."""
        return self.forward(numbers) or (self.outputs(), self.version.result)

    def inputs(self, numbers: Array, _: Any = None) -> Array:
        """Everything the program reads, as it is now."""
        leaves = np.frombuffer(self.executor.leaf_numbers(self.leaves))
        return np.concatenate([np.asarray(numbers, np.float64), leaves])

    def outputs(self) -> Array:
        """The results of the last run, to keep."""
        numbers = np.empty(len(self._out))
        self.executor.outputs(numbers)
        return numbers

    def gradients(self, seeds: Array) -> Array:
        """Of each row of seeds, by every input: reverse over the last run."""
        gradients = np.empty((len(seeds), len(self.version.program.inputs)))
        for seed, gradient in zip(seeds, gradients, strict=True):
            self.executor.gradients(seed, gradient)
        return gradients

    # ---------------------------------------------------------------- uses: a call each

    def value_and_gradient(self, numbers: Array, call: Call | None) -> Any:
        """The single result, its gradient by each number of the arguments, and the call."""
        if not self._single:
            return SEVERAL
        gradient = np.empty(self._inputs)
        value = self.executor.value_and_gradients(numbers, self.leaves, gradient)
        if value is None:
            return self._refused()
        if call is not None and (version := self.version).fixed is not None:
            call.fixed = version.fixed
            gradient[[*version.whole]] = 0.0  # not by some of its uses only
        return value, gradient[: len(numbers)] if self.leaves else gradient, call

    def backward(self, numbers: Array, call: Call | None) -> Any:
        """The single result; its gradients are added to the leaves' own."""
        if not self._single:
            return SEVERAL
        if self.version.ends:
            value = self.executor.backward(numbers, self.leaves)
            return self._refused() if value is None else value
        refused = self.forward(numbers)
        if refused is not None:
            return refused
        node = self._one_node(call)
        node.backward()
        return float(node.data)

    def train(self, numbers: Array, optimiser: Any, lr: float | None) -> Any:
        """The single result; the parameters are moved along its gradients. None where it takes the long way."""
        if self._trained is None or self._trained[0] is not optimiser.parameters:
            slots = self.version.slots_of(optimiser.parameters) if self._trains else None
            self._trained = optimiser.parameters, slots
        slots = self._trained[1]
        if slots is None:
            return None
        value = self.executor.value(numbers, self.leaves)
        if value is None:
            return self._refused()
        if math.isfinite(value):
            optimiser.step_by(self.executor.train, slots, lr)
        else:
            optimiser.zero_grad()
        return value

    @property
    def _trains(self) -> bool:
        version = self.version
        return executors.trains(self.executor) and bool(self.leaves) and version.result.single and version.ends

    def node(self, numbers: Array, call: Call | None) -> Any:
        """The result as recorded nodes (plain numbers under no_grad), in the structure the function returned."""
        refused = self.forward(numbers)
        if refused is not None:
            return refused
        version, no_grad = self.version, current_modes().no_grad
        result = version.result
        tells = version.searched and version.values  # when it comes to a derivative, which a node of C's would not
        if result.single and not no_grad and (self.leaves or version.values) and not tells:
            node = self._one_node(call)
            return node if result.is_bare else result.fill([node])
        self.executor.outputs(self._out)
        data = self._out.tolist()
        if no_grad:
            return result.fill(data)
        children = self._children(call)
        return result.fill(self._nodes(data, numbers, children) if children else list(map(engine.Value, data)))

    def _children(self, call: Call | None) -> tuple[Any, ...]:
        values = self.version.values
        return (*(call.entries[i] for i in values), *self.leaves) if call and values else self.leaves

    def _one_node(self, call: Call | None) -> Any:
        return self.executor.node(self._children(call), self.version.of_children)

    def _nodes(self, data: list[float], numbers: Array, children: tuple[Any, ...]) -> list[Any]:
        """A node for each result, over one that runs a single reverse pass when all of them have their gradient."""
        version, inputs = self.version, self.inputs(numbers)  # leaves may have moved on when it does

        def backward(seeds: list[float]) -> None:
            if version.searched:
                version.tell("compile: backward", version.values, is_part=True)
            gradient = version.used(lambda run, inputs, _: run.gradients_at(inputs, np.array([seeds])), inputs)[0]
            for child, contribution in zip(children, gradient[version.of_children].tolist(), strict=True):
                child.grad += contribution

        return nodes_over_one(engine.Value, data, children, "compiled", backward)

    def gradients_at(self, inputs: Array, seeds: Array) -> Array:
        """`gradients` over a run on these inputs, the leaves' numbers among them."""
        self.executor.run(inputs)
        return self.gradients(seeds)


def _digest(trace: Trace) -> tuple[object, ...]:
    """Two traces with one digest did the same things."""
    flat = trace.flat
    arrays = (flat.op, flat.starts, flat.children, flat.numbers, flat.row, flat.outputs, flat.guards,
              flat.signs, flat.outcomes)  # fmt: skip
    # half of each integer says as much; Python's hash, of 64 bits each, takes a quarter of the time of blake2b
    halves = (array.astype(np.int32) if array.dtype == np.int64 else array for array in arrays)
    return trace.whole, *(hash(half.tobytes()) for half in halves)
