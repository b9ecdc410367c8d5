"""A batch: many inputs of one program in one pass, the leaves shared.

The results are ordinary nodes over one hub, which runs one reverse pass over the whole batch when every result has its
gradient. Who wants only the gradients asks for both passes at once.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from gradwalk import engine
from gradwalk.compiler import interpret
from gradwalk.compiler.version import Run
from gradwalk.control import current_modes
from gradwalk.hub import nodes_over_one

Array = npt.NDArray[np.float64]
_ONE = np.ones(1)
_THREADS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def nodes(run: Run, inputs: Array, _: Any = None) -> tuple[list[Any], list[int]]:
    """A result for each row of inputs, and the rows the program does not apply to, whose result is None."""
    outputs = np.empty((len(inputs), 1))
    failed = run.executor.run_batch(inputs, run.leaves, outputs, threads=_THREADS)
    numbers = _without(failed, outputs)
    if current_modes().no_grad:
        return numbers, failed
    if not run.leaves:
        return [None if number is None else engine.Value(number) for number in numbers], failed
    kept = [row for row, number in enumerate(numbers) if number is not None]
    values = [numbers[row] for row in kept]
    results = nodes_over_one(engine.Value, values, run.leaves, "compiled", _Batch(run, inputs[kept]).backward)
    made: list[Any] = [None] * len(numbers)
    for row, result in zip(kept, results, strict=True):
        made[row] = result
    return made, failed


def accumulated(run: Run, inputs: Array, _: Any = None) -> tuple[list[Any], list[int]]:
    """The numbers of `nodes`; the gradient of their sum is added to the leaves' own."""
    outputs, by_leaf = np.empty((len(inputs), 1)), np.empty(len(run.leaves))
    failed = _run_both_ways(run, inputs, outputs, by_leaf)
    run.executor.add_gradients(run.leaves, by_leaf)
    return _without(failed, outputs), failed


def gradients(run: Run, inputs: Array, _: Any = None) -> tuple[list[Any], Array, list[int]]:
    """The numbers of `nodes`, and for each row its own gradient by every leaf."""
    outputs, by_leaf = np.empty((len(inputs), 1)), np.empty((len(inputs), len(run.leaves)))
    failed = _run_both_ways(run, inputs, outputs, by_leaf)
    return _without(failed, outputs), by_leaf, failed


def _without(failed: list[int], outputs: Array) -> list[Any]:
    numbers: list[Any] = outputs[:, 0].tolist()
    for row in failed:
        numbers[row] = None
    return numbers


def _run_both_ways(run: Run, inputs: Array, outputs: Array, by_leaf: Array) -> list[int]:
    """Both passes; the rows to which the program does not apply, which are not among the sums of gradients."""
    failed = _reverse(run, inputs, run.leaves, outputs, _ONE, by_leaf)
    if failed:
        kept = np.delete(np.arange(len(inputs)), failed)
        again = by_leaf if by_leaf.ndim == 1 else np.empty((len(kept), len(run.leaves)))
        _reverse(run, inputs[kept], run.leaves, np.empty((len(kept), 1)), _ONE, again)
        if by_leaf.ndim == 2:
            by_leaf[kept] = again
    return failed


def _reverse(
    run: Run, inputs: Array, leaves: tuple[Any, ...], outputs: Array, seed: Array, by_leaf: Array
) -> list[int]:
    """Both passes over all rows; where a gradient is nan, row by row, as 0 may have met infinity."""
    failed: list[int] = run.executor.run_batch(inputs, leaves, outputs, seed, None, by_leaf, threads=_THREADS)
    if not failed and np.isnan(by_leaf).any():
        rows = np.empty((len(inputs), inputs.shape[1] + len(leaves)))
        for row, output, gradient in zip(inputs, outputs, rows, strict=True):
            run.executor.run_values(row, leaves)
            run.executor.outputs(output)
            run.executor.gradients(seed, gradient)
        of_leaves = rows[:, inputs.shape[1] :]
        by_leaf[:] = of_leaves if by_leaf.ndim == 2 else of_leaves.sum(axis=0)
    return failed


class _Batch:
    """What the hub needs: the inputs, and the leaves' numbers at the time of the call."""

    def __init__(self, run: Run, inputs: Array) -> None:
        self.version, self.inputs = run.version, inputs
        self.numbers = run.executor.leaf_numbers(run.leaves)

    def backward(self, gradients: list[float]) -> None:
        self.version.used(self._backward, np.array(gradients))

    def _backward(self, run: Run, seeds: Array, _: Any) -> None:
        leaves = run.leaves
        if self.numbers != run.executor.leaf_numbers(leaves):  # they have moved on since
            leaves = tuple(map(engine.Value, memoryview(self.numbers).cast("d")))
        alike = bool((seeds == seeds[0]).all())
        gradients = np.empty(len(leaves) if alike else (len(seeds), len(leaves)))
        outputs = np.empty((len(seeds), 1))
        of_one = seeds[:1] if alike else _ONE
        _reverse(run, self.inputs, leaves, outputs, of_one, gradients)
        handed_on = gradients if alike else interpret.handed_on(gradients, seeds[None])[0]
        run.executor.add_gradients(run.leaves, handed_on)
