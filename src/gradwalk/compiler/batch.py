"""A batch: many inputs in one pass for each program that they need, the leaves shared.

The results are ordinary nodes over one hub, which runs one reverse pass over the whole batch when every result has its
gradient. Who wants only the gradients asks for both passes at once.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gradwalk import engine
from gradwalk.cached_property import cached_property
from gradwalk.compiler import interpret
from gradwalk.compiler.reading import Call
from gradwalk.compiler.trace import is_tracing
from gradwalk.compiler.version import PLAIN, Run, Version
from gradwalk.control import current_modes, is_watched
from gradwalk.hub import nodes_over_one
from gradwalk.structure import only_type, values_among, write

if TYPE_CHECKING:
    from gradwalk.compiler.compile import AnyCompiled

Array = npt.NDArray[np.float64]
_ONE = np.ones(1)
_THREADS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Rows:
    """Inputs of one structure: the place of each, and the entries of its arguments."""

    def __init__(self, places: list[int], entries: list[list[Any]]) -> None:
        self.places, self.entries = places, entries  # two lists, not pairs: the collector looks at every pair

    def __len__(self) -> int:
        return len(self.places)

    @cached_property
    def numbers(self) -> Array:
        made = np.empty((len(self), len(self.entries[0]) if self.entries else 0))
        if not write(self.entries, made):
            raise TypeError(f"compile: expected numbers in a batch, got {self.entries[0]!r}")
        return made

    def are_for_a_program(self) -> bool:
        """Whether there are nothing but numbers that floats can hold."""
        if values_among(self.entries[0]):  # then there are in all of them
            return False
        try:
            return self.numbers is not None
        except OverflowError:
            return False

    def fitting(self, version: Version) -> Rows:
        return self.only(map(version.fits, self.entries)) if version.whole else self

    def only(self, chosen: Iterable[bool]) -> Rows:
        pairs = [pair for pair, kept in zip(zip(self.places, self.entries, strict=True), chosen, strict=True) if kept]
        return Rows([place for place, _ in pairs], [entries for _, entries in pairs])


class Here:
    """Batches are run in this process, by so many threads. `Elsewhere` has others do it."""

    def __init__(self, threads: int | None = None) -> None:
        self._threads = _THREADS if threads is None else threads
        self._gradients: list[tuple[Run, Array]] = []

    def begin(self, version: Version, inputs: Array, asked: str) -> None:
        """The batch will be run; others may be run before."""

    def run(
        self, run: Run, inputs: Array, leaves: tuple[Any, ...], outputs: Array, seeds: Array | None = None,
        by_leaf: Array | None = None,
    ) -> list[int]:  # fmt: skip
        """Write results, and with seeds the leaves' gradients; the rows to which the program does not apply."""
        failed: list[int] = run.executor.run_batch(inputs, leaves, outputs, seeds, None, by_leaf, threads=self._threads)
        return failed

    def add(self, run: Run, by_leaf: Array) -> None:
        """To the leaves' gradients, when all batches were run."""
        self._gradients.append((run, by_leaf))

    def end(self) -> None:
        for run, by_leaf in self._gradients:
            run.executor.add_gradients(run.leaves, by_leaf)


# ---------------------------------------------------------------- one batch, in each of the ways it is asked for


def nodes(run: Run, inputs: Array, way: Here) -> tuple[list[Any], list[int]]:
    """A result for each row of inputs, and the rows the program does not apply to, whose result is None."""
    outputs = np.empty((len(inputs), 1))
    failed = way.run(run, inputs, run.leaves, outputs)
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


def accumulated(run: Run, inputs: Array, way: Here) -> tuple[list[Any], list[int]]:
    """The numbers of `nodes`; the gradient of their sum is added to the leaves' own."""
    outputs, by_leaf = np.empty((len(inputs), 1)), np.empty(len(run.leaves))
    failed = _run_both_ways(run, inputs, outputs, by_leaf, way)
    way.add(run, by_leaf)
    return _without(failed, outputs), failed


def gradients_by(asked: list[Any], run: Run, inputs: Array, way: Here) -> tuple[list[Any], list[int]]:
    """The numbers of `nodes`, each with its own gradient by those asked for."""
    outputs, by_leaf = np.empty((len(inputs), 1)), np.empty((len(inputs), len(run.leaves)))
    failed = _run_both_ways(run, inputs, outputs, by_leaf, way)
    place = {id(leaf): place for place, leaf in enumerate(run.leaves)}
    gradients = np.zeros((len(inputs), len(asked)))
    for column, parameter in enumerate(asked):
        if id(parameter) in place:
            gradients[:, column] = by_leaf[:, place[id(parameter)]]
    return list(zip(_without(failed, outputs), gradients, strict=True)), failed


def _without(failed: list[int], outputs: Array) -> list[Any]:
    numbers: list[Any] = outputs[:, 0].tolist()
    for row in failed:
        numbers[row] = None
    return numbers


def _run_both_ways(run: Run, inputs: Array, outputs: Array, by_leaf: Array, way: Here) -> list[int]:
    """Both passes; the rows to which the program does not apply, which are not among the sums of gradients."""
    failed = _reverse(run, inputs, run.leaves, outputs, _ONE, by_leaf, way)
    if failed:
        kept = np.delete(np.arange(len(inputs)), failed)
        again = by_leaf if by_leaf.ndim == 1 else np.empty((len(kept), len(run.leaves)))
        _reverse(run, inputs[kept], run.leaves, np.empty((len(kept), 1)), _ONE, again, way)
        if by_leaf.ndim == 2:
            by_leaf[kept] = again
    return failed


def _reverse(
    run: Run, inputs: Array, leaves: tuple[Any, ...], outputs: Array, seed: Array, by_leaf: Array, way: Here
) -> list[int]:
    """Both passes over all rows; where a gradient is nan, row by row, as 0 may have met infinity."""
    failed = way.run(run, inputs, leaves, outputs, seed, by_leaf)
    if not failed and math.isnan(np.vdot(by_leaf, by_leaf)):  # squares: it is if any of them is, and only then
        rows = np.empty((len(inputs), inputs.shape[1] + len(leaves)))
        for row, gradient in zip(inputs, rows, strict=True):
            run.executor.run_values(row, leaves)
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
        _reverse(run, self.inputs, leaves, outputs, of_one, gradients, Here())
        handed_on = gradients if alike else interpret.handed_on(gradients, seeds[None])[0]
        run.executor.add_gradients(run.leaves, handed_on)


# ---------------------------------------------------------------- all inputs of a call


def mapped(
    compiled: AnyCompiled,
    inputs: Iterable[Any],
    together: Callable[[Run, Array, Here], tuple[list[Any], list[int]]],
    asked: str,
    alone: Callable[[tuple[Any, ...]], Any],
    way: Here,
) -> list[Any]:
    """What `together` makes of the inputs to which one program applies, and `alone` of those no program fits."""
    given = list(inputs)
    results: list[Any] = [None] * len(given)
    groups, ready = by_structure(given), {}
    for key, rows in groups.items():
        version = compiled._versions.get(key, (None,))[0] if not (is_tracing() or is_watched()) else None
        if version is not None and version.result.is_bare and version.ends and rows.are_for_a_program():
            fitting = rows.fitting(version)
            ready[key] = version, fitting, fitting.numbers
            way.begin(version, ready[key][2], asked)
    for key, rows in groups.items():
        if not rows.are_for_a_program():
            for place in rows.places:
                results[place] = alone(arguments_of(given[place]))
            continue
        version, fitting, numbers = ready.get(key, (None, Rows([], []), np.empty(0)))
        is_firsts = False  # whether the program is the one that applies to the first of the rows by itself
        while rows:  # one pass for each program that is needed; what the first of the rest needs is traced
            first = rows.places[0]
            if version is None:
                found = compiled._run(Run.applicable, arguments_of(given[first]), {})
                if found is PLAIN or not found.result.is_bare or not found.ends:
                    results[first] = alone(arguments_of(given[first]))
                    rows = Rows(rows.places[1:], rows.entries[1:])
                    continue
                version, is_firsts = found, True
                fitting = rows.fitting(version)
                numbers = fitting.numbers
            made, failed = version.used(lambda run, rows, _: together(run, rows, way), numbers)
            if failed and (error := version.raised()) is not None:
                again = [arguments_of(given[fitting.places[row]]) for row in failed]
                compiled._raise_if_plain(error, version, again)
            for place, result in zip(fitting.places, made, strict=True):
                results[place] = result
            if not failed and len(fitting) == len(rows):
                break
            done = set(fitting.places) - {fitting.places[row] for row in failed}
            if 0 in failed and is_firsts:  # rounded otherwise beside others than by itself
                results[first] = alone(arguments_of(given[first]))
                done.add(first)
            rows = rows.only(place not in done for place in rows.places)
            version, is_firsts = None, False
    way.end()
    return results


def arguments_of(given: Any) -> tuple[Any, ...]:
    """An input that is a tuple is several arguments."""
    return given if isinstance(given, tuple) else (given,)


def by_structure(inputs: Sequence[Any]) -> dict[Hashable, Rows]:
    """The inputs, sorted by the structure of their arguments."""
    sorted_by: dict[Hashable, Rows] = {}
    alike: dict[tuple[Any, int], Rows] = {}  # of one list of plain numbers, by type and length; of a number: -1
    for place, given in enumerate(inputs):
        of_list = type(given) is list
        kind = (only_type(given), len(given)) if of_list else (type(given), -1)
        rows = alike.get(kind)
        if rows is not None:
            rows.places.append(place)
            rows.entries.append(given if of_list else [given])
            continue
        call = Call(arguments_of(given), {})
        rows = sorted_by.setdefault(call.key, Rows([], []))
        rows.places.append(place)
        rows.entries.append(call.taken_apart())
        if kind[0] in (float, int):
            alike[kind] = rows
    return sorted_by
