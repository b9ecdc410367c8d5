"""A batch by an executor's workers: pieces of it travel, and what they come to is put together in their order.

A program travels to each worker once, the leaves' numbers as one array for each call, and gradients come back as one.
Pieces are those of the native executor, so the sums are the same to the bit with any number of workers, or with none.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from gradwalk.cached_property import cached_property
from gradwalk.compiler.batch import Here
from gradwalk.compiler.executors import executor_for
from gradwalk.compiler.program import Program
from gradwalk.compiler.version import Run, Version
from gradwalk.workers import Sendable, Task, Workers

Array = npt.NDArray[np.float64]
NUMBERS, SUMS, ROWS = "numbers", "sums", "rows"  # what is asked for: no gradients, their sum, or one for each example


class Sent:
    """A program as it travels, with the places of its leaves among all that the function closes over."""

    def __init__(self, program: Program, places: npt.NDArray[np.int32]) -> None:
        self.program, self.places = program, places

    @cached_property
    def executor(self) -> Any:
        return executor_for(self.program)


class Known:
    """What of a compiled function has been made ready to travel."""

    def __init__(self) -> None:
        self.leaves: tuple[Any, ...] = ()
        self._places: dict[int, int] = {}  # of leaves, by id
        self._sent: WeakKeyDictionary[Version, Sendable] = WeakKeyDictionary()

    def sent(self, version: Version) -> Sendable:
        if version not in self._sent:
            new = [leaf for leaf in version.leaves if id(leaf) not in self._places]
            self._places.update((id(leaf), len(self.leaves) + i) for i, leaf in enumerate(new))
            self.leaves = (*self.leaves, *new)
            places = np.array([self._places[id(leaf)] for leaf in version.leaves], np.int32)
            self._sent[version] = Sendable(Sent(version.program, places))
        return self._sent[version]


class Batch:
    """Examples of one program; its pieces, when it is known who runs them."""

    def __init__(self, version: Version, sent: Sendable, arguments: Array, asked: str) -> None:
        self.sent, self.arguments, self.asked = sent, arguments, asked
        self.leaves, self.nodes = len(version.leaves), version.program.scalar_nodes
        self.pieces: list[Piece] = []


class Piece:
    """Some examples of a batch, and what they come to."""

    def __init__(self, batch: Batch, start: int, end: int) -> None:
        self.batch, self.start, self.end = batch, start, end
        self.failed: list[int] = []
        self.made = np.empty(0)  # outputs, then gradients

    @property
    def rows(self) -> Array:
        return self.batch.arguments[self.start : self.end]

    @property
    def size(self) -> int:
        """How many numbers it comes to."""
        count, leaves = len(self.rows), self.batch.leaves
        return count + {NUMBERS: 0, SUMS: leaves, ROWS: leaves * count}[self.batch.asked]

    @property
    def work(self) -> int:
        return (self.end - self.start) * self.batch.nodes

    def goes_on_with(self, other: Piece) -> bool:
        """Whether they may be one. Sums begin with the first piece: what follows it is added to it, there as here."""
        beside = other.batch is self.batch and other.start == self.end
        return beside and (self.start == 0 or self.batch.asked != SUMS)


class Elsewhere(Here):
    """The batches of one call. Those that are known beforehand travel together."""

    def __init__(self, executor: Executor, known: Known) -> None:
        super().__init__()
        self.workers, self._known = Workers(executor), known
        self._begun: dict[int, Batch] = {}  # by the id of their arguments
        self._waiting: list[Piece] = []

    def begin(self, version: Version, arguments: Array, asked: str) -> None:
        """The batch is to be run, together with others, when the first result is needed."""
        if version.program.functions:  # Python's, which may not travel
            return
        size = version.used(lambda run, *_: run.executor.piece, None)
        cuts = [len(arguments)] if version.program.exact else range(size, len(arguments) + size, size)
        ends = [min(cut, len(arguments)) for cut in cuts]
        if len(ends) > 1 and ends[-1] - ends[-2] == 1:  # as the native executor cuts
            del ends[-2]
        batch = self._begun[id(arguments)] = Batch(version, self._known.sent(version), arguments, asked)
        self._waiting += [Piece(batch, start, end) for start, end in zip([0, *ends], ends, strict=False)]

    def run(
        self, run: Run, arguments: Array, leaves: Any, outputs: Array, seeds: Array | None = None,
        by_leaf: Array | None = None,
    ) -> list[int]:  # fmt: skip
        asked = NUMBERS if by_leaf is None else SUMS if by_leaf.ndim == 1 else ROWS
        if id(arguments) not in self._begun:
            self.begin(run.version, arguments, asked)
        if id(arguments) not in self._begun:
            return super().run(run, arguments, leaves, outputs, seeds, by_leaf)
        if self._waiting:
            self._work_off(run)
        failed = []
        if by_leaf is not None:
            by_leaf[:] = 0.0
        for piece in sorted(self._begun.pop(id(arguments)).pieces, key=lambda piece: piece.start):
            start, end = piece.start, piece.end
            outputs[start:end] = piece.made[: end - start].reshape(-1, 1)
            failed += [start + place for place in piece.failed]
            gradients = piece.made[end - start :]
            if by_leaf is not None and asked == SUMS:
                by_leaf += gradients
            elif by_leaf is not None:
                by_leaf[start:end] = gradients.reshape(end - start, -1)
        return failed

    def _work_off(self, run: Run) -> None:
        pieces, self._waiting = self._waiting, []
        numbers = np.frombuffer(run.executor.leaf_numbers(self._known.leaves))
        bundles = _bundles(pieces, self.workers.count)
        tasks = []
        for bundle in bundles:
            sent = list(dict.fromkeys(piece.batch.sent for piece in bundle))
            given = [(sent.index(piece.batch.sent), piece.rows, piece.batch.asked) for piece in bundle]
            tasks.append(Task(run_pieces, sent, (len(sent), numbers, given)))
        for bundle, (failed, made) in zip(bundles, self.workers.results(tasks), strict=True):
            start = 0
            for piece, its in zip(bundle, failed, strict=True):
                end = start + piece.size
                piece.failed, piece.made = its, made[start:end]
                piece.batch.pieces.append(piece)
                start = end


def _bundles(pieces: Sequence[Piece], count: int) -> list[list[Piece]]:
    """Pieces that travel together: about as much work to each bundle, and as few of them as may be.

    Every bundle takes, in their order, what still fits into its share of all that is left; the last, which mostly has
    the most to do, is the first to be begun.
    """
    made: list[list[Piece]] = []
    left = list(pieces)
    while left:
        share = sum(piece.work for piece in left) / max(count - len(made), 1)
        bundle, given = [left[0]], left
        share, left = share - bundle[0].work, []
        for piece in given[1:]:
            if piece.work > share:
                left.append(piece)
                continue
            share -= piece.work
            if bundle[-1].goes_on_with(piece):
                bundle[-1].end = piece.end
            else:
                bundle.append(piece)
        made.append(bundle)
    return made[::-1]


def run_pieces(*given: Any) -> tuple[list[list[int]], Array]:
    """In a worker: which examples of each piece failed, and all numbers in one array."""
    *sent, count, numbers, pieces = given
    assert len(sent) == count
    failed, made = [], []
    leaves = [np.ascontiguousarray(numbers[program.places]) for program in sent]
    for place, rows, asked in pieces:
        outputs, shape = np.empty((len(rows), 1)), (len(leaves[place]),)
        by_leaf = None if asked == NUMBERS else np.empty(shape if asked == SUMS else (len(rows), *shape))
        seeds = None if by_leaf is None else np.ones(1)
        failed.append(sent[place].executor.run_batch(rows, leaves[place], outputs, seeds, None, by_leaf))
        made += [outputs.reshape(-1)] if by_leaf is None else [outputs.reshape(-1), by_leaf.reshape(-1)]
    return failed, np.concatenate(made)
