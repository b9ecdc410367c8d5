"""Pass 2: one node for each constant, and no node for what is known: constant results, x * 1, x - 0, a mean of one.

x + 0 is left to the next pass but one, which knows it as the beginning of a sum.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gradwalk.compiler.flat import CODES, CONSTANT, NAMES, Flat, Ints, Truths, starts_of
from gradwalk.ops import OPS

_PLAIN = frozenset(OPS)


def with_shared_constants(flat: Flat) -> Flat:
    """Constants with the same bits become one node: the first of them."""
    constants = np.flatnonzero(flat.op == CONSTANT)
    if not len(constants):
        return flat
    _, first, place = np.unique(flat.number[constants].view(np.int64), return_index=True, return_inverse=True)
    instead = np.arange(flat.size)
    instead[constants] = constants[first[place]]
    return flat.with_uses_of(instead)


def with_folded_constants(flat: Flat) -> Flat:
    """What is computed from constants alone becomes a constant itself."""
    while True:
        known = flat.op == CONSTANT
        owners = flat.owners()
        unknown_children = np.bincount(owners[~known[flat.children]], minlength=flat.size)
        table = np.isin(flat.op, [CODES[name] for name in _PLAIN])
        foldable = np.flatnonzero(table & (unknown_children == 0) & (flat.counts > 0))
        if not len(foldable):
            return flat
        op, number, kept = flat.op.copy(), flat.number.copy(), np.ones(len(flat.children), np.bool_)
        counts = flat.counts.copy()
        for node in foldable.tolist():  # in order, so that what folds on the way is known to the next
            row = OPS[NAMES[flat.op[node]]]
            stretch = slice(flat.starts[node], flat.starts[node + 1])
            numbers = [*number[flat.children[stretch]].tolist(), *flat.parameters[node, : len(row.parameters)].tolist()]
            op[node], number[node], counts[node] = CONSTANT, row.forward(*numbers), 0
            kept[stretch] = False
        flat = replace(flat, op=op, number=number, starts=starts_of(counts), children=flat.children[kept])


def without_identities(flat: Flat) -> Flat:
    """x - 0, x * 1, 1 * x, x / 1, x ** 1, a mean of one: x itself."""
    instead = np.arange(flat.size)

    def by(nodes: Ints, place: int) -> None:
        instead[nodes] = flat.child(nodes, place)

    def is_number(nodes: Ints, place: int, number: float) -> Truths:
        child = flat.child(nodes, place)
        return np.asarray((flat.op[child] == CONSTANT) & (flat.number[child] == number))

    for name, number, neutral_on_the_left in (("sub", 0.0, False), ("mul", 1.0, True), ("div", 1.0, False)):
        nodes = np.flatnonzero(flat.op == CODES[name])
        right = is_number(nodes, 1, number)
        by(nodes[right], 0)
        if neutral_on_the_left:
            by(nodes[~right & is_number(nodes, 0, number)], 1)
    powers = np.flatnonzero(flat.op == CODES["pow_number"])
    by(powers[flat.parameters[powers, 0] == 1.0], 0)
    single = (flat.counts == 1) & flat.is_op("mean", "take")
    by(np.flatnonzero(single), 0)
    return flat if np.array_equal(instead, np.arange(flat.size)) else flat.with_uses_of(instead)
