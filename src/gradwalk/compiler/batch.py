"""A batch: many inputs of one program in one pass, the leaves shared.

The results are ordinary nodes. All of them stand over one hub, which runs one reverse pass over the whole batch when
every result has its gradient; what the leaves get is summed over the batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gradwalk import engine
from gradwalk.compiler.version import Version, current_modes

Array = npt.NDArray[np.float64]


def batch_of(version: Version, inputs: Array) -> tuple[list[Any], list[int]]:
    """A result for each row of inputs, and the rows the program does not apply to, whose result is None."""
    outputs = np.empty((len(inputs), 1))
    with version.lock:
        failed = _run_batch(version, inputs, outputs)
    numbers: list[Any] = outputs[:, 0].tolist()
    for row in failed:
        numbers[row] = None
    if current_modes()[0]:
        return numbers, failed
    if not version.leaves:
        return [None if number is None else engine.Value(number) for number in numbers], failed
    kept = [row for row, number in enumerate(numbers) if number is not None]
    call = _Batch(version, inputs[kept])
    hub = engine.Value(0.0, version.leaves, "compiled batch")
    hub._backward = call.backward
    made: list[Any] = [None] * len(numbers)
    for row in kept:
        made[row] = engine.Value(numbers[row], (0.0, hub), "compiled", local_grads=(1.0, 0.0))
    call.mailboxes = [made[row]._children[0] for row in kept]
    return made, failed


def _run_batch(version: Version, inputs: Array, outputs: Array) -> list[int]:
    """Forward, by the executor's own batch where it has one; the rows to which the program does not apply."""
    executor, leaves = version.executor, version.leaves
    if hasattr(executor, "run_batch"):
        failed: list[int] = executor.run_batch(inputs, leaves, outputs)
        return failed
    failed = []
    for row, numbers in enumerate(inputs):
        if not executor.run_values(numbers, leaves):
            failed.append(row)
        executor.outputs(outputs[row])
    return failed


def _leaf_gradients(version: Version, inputs: Array, leaves: tuple[Any, ...], seeds: Array) -> Array:
    """The gradients of the leaves: of every row's result, times its seed, and summed."""
    executor, outputs = version.executor, np.empty((len(inputs), 1))
    if hasattr(executor, "run_batch"):
        alike = bool((seeds == seeds[0]).all())
        gradients = np.zeros(len(leaves)) if alike else np.zeros((len(inputs), len(leaves)))
        executor.run_batch(inputs, leaves, outputs, seeds[:1] if alike else np.ones(1), None, gradients)
        return gradients if alike else np.asarray(seeds @ gradients)
    total, gradient = np.zeros(len(leaves)), np.empty(len(version.program.inputs))
    for numbers, seed in zip(inputs, seeds, strict=True):
        executor.run_values(numbers, leaves)
        executor.gradients(np.array([seed]), gradient)
        total += gradient[version.program.arguments :]
    return total


class _Batch:
    """What the hub needs: the inputs, and the leaves' numbers at the time of the call."""

    def __init__(self, version: Version, inputs: Array) -> None:
        self.version, self.inputs = version, inputs
        self.numbers = [leaf.data for leaf in version.leaves]
        self.mailboxes: list[Any] = []

    def backward(self) -> None:
        seeds = np.array([mailbox.grad for mailbox in self.mailboxes], np.float64)
        for mailbox in self.mailboxes:
            mailbox.grad = 0.0
        if not seeds.any():
            return
        leaves = self.version.leaves
        if self.numbers != [leaf.data for leaf in leaves]:  # they have moved on since
            leaves = tuple(engine.Value(number) for number in self.numbers)
        with self.version.lock:
            gradient = _leaf_gradients(self.version, self.inputs, leaves, seeds)
        for leaf, contribution in zip(self.version.leaves, gradient.tolist(), strict=True):
            leaf.grad += contribution
