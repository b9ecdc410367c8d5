"""A traced graph as flat NumPy arrays: what the passes take and return.

A node is a number; its children have smaller numbers. Inputs and constants are nodes without children.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gradwalk.cached_property import cached_property
from gradwalk.compiler.loops import LOOPS, same_rows
from gradwalk.ops import OPS
from gradwalk.row_ops import COMPOSITES

Ints = npt.NDArray[np.signedinteger[Any]]
Codes = npt.NDArray[np.int16]
Floats = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]

NAMES = ("input", "constant", *OPS, *COMPOSITES, "call")
CODES = {name: code for code, name in enumerate(NAMES)}
INPUT, CONSTANT, CALL = CODES["input"], CODES["constant"], CODES["call"]
SIGNS = ("<", "<=", ">", ">=", "==", "!=")

# One instruction makes a whole row of these: the nodes that share their children are its entries.
ROW_OPS = frozenset(row.name for row in COMPOSITES.values() if row.per_entry)
# The last child of these says which entry is meant; of `take`, it is the first.
TARGETED = frozenset(row.name for row in COMPOSITES.values() if row.target and row.name != "take")
# What comes out of these has to be finite.
CHECKED = {op.name for op in OPS.values() if op.checked} | {row.name for row in COMPOSITES.values() if row.checked}
# Rounded as the eager engines round, whoever computes it and however many at a time.
EXACT = frozenset(op.name for op in OPS.values() if op.exact)
SIGNED = {op.name: [op.inputs.index(each) for each in op.signed_inputs] for op in OPS.values() if op.signed_inputs}


@dataclass(frozen=True, eq=False)
class Flat:
    """The graph. The children of node i are `children[starts[i]:starts[i + 1]]`.

    Composites as the instructions have them: `dot` has its left list, then its right one; `cross_entropy` and the
    others of TARGETED the row, then the target; `take` the index, then one entry per row (its parameters: the number of
    the table, the column). `softmax` and the others of ROW_OPS have the entry's place as their first parameter. The
    parameters of `call` are those of the instruction: the function's place, and how many guards come before it.
    """

    op: Codes
    starts: Ints
    children: Ints
    numbers: Floats  # what nodes were given besides children, in different rows of two; the first row is 0, 0
    row: Ints  # which of them each node was given
    inputs: Ints  # first the numbers of the arguments, then the leaves closed over
    outputs: Ints
    guards: Ints  # left and right of each comparison
    signs: Ints  # places in SIGNS
    outcomes: Truths

    @property
    def size(self) -> int:
        return len(self.op)

    @cached_property
    def counts(self) -> Ints:
        """How many children each node has; as NumPy counts, which on a 32-bit machine repeats nothing int64 times."""
        return np.diff(self.starts).astype(np.intp, copy=False)

    def roots(self) -> Ints:
        """The nodes that are needed whether or not another node uses them."""
        return np.concatenate([self.inputs, self.outputs, self.guards.ravel()])

    @cached_property
    def live(self) -> Truths:
        """Which nodes the roots depend on; they themselves are among them."""
        return self.needed_for(self.roots())

    def needed_for(self, nodes: Ints) -> Truths:
        """Which nodes these depend on; they themselves are among them."""
        needed = np.zeros(self.size, np.bool_)
        needed[nodes] = True
        LOOPS.mark_needed(self.starts, self.children, needed)
        return needed

    def child(self, nodes: Ints, place: int) -> Ints:
        """The child at that place of each of these nodes, which have to have one."""
        return self.children[self.starts[nodes] + place]

    def given(self, nodes: Ints) -> Floats:
        """The two parameters of each of these nodes; of a constant the first is its number."""
        return np.asarray(self.numbers[self.row[nodes]])

    def is_op(self, *names: str) -> Truths:
        return is_among(self.op, names)

    def with_uses_of(self, instead: Ints) -> Flat:
        """The same nodes, but wherever node i was used, `instead[i]` is."""
        instead = followed(instead)
        return replace(
            self, children=instead[self.children], outputs=instead[self.outputs], guards=instead[self.guards]
        )

    def only(self, kept: Truths) -> Flat:
        """Without the other nodes, which nobody uses."""
        place = np.cumsum(kept) - 1
        counts = self.counts[kept]
        return replace(
            self,
            op=self.op[kept],
            starts=starts_of(counts),
            children=place[self.children[np.repeat(kept, self.counts)]],
            row=self.row[kept],
            inputs=place[self.inputs],
            outputs=place[self.outputs],
            guards=place[self.guards],
        )


def is_among(op: Ints, names: Collection[str]) -> Truths:
    """Which of these codes stand for an operation of one of these names."""
    named = np.zeros(len(NAMES) + 1, np.bool_)  # and none of them for a node made by hand, whose code is -1
    named[[CODES[name] for name in names]] = True
    return named.take(op, mode="wrap")  # by half faster than named[op]


def starts_of(counts: Ints) -> Ints:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])


def followed(instead: Ints) -> Ints:
    """Where each chain of replacements ends."""
    ends = np.array(instead, np.int64)
    LOOPS.follow(ends)
    return ends


def ragged(starts: Ints, counts: Ints) -> Ints:
    """The places start, start + 1, … of each of several stretches, one stretch after the other."""
    places = np.repeat(starts - np.cumsum(counts) + counts, counts)
    places += np.arange(len(places))
    return places


def table_of(given: Floats) -> tuple[Floats, Ints]:
    """The different rows of two numbers, after a row of zeros, and which of them each row is; bits count."""
    bits = np.vstack([np.zeros((1, 2), np.int64), np.ascontiguousarray(given).view(np.int64)])
    different, row = same_rows(bits)
    return different.view(np.float64), row[1:].astype(np.int32)
