"""Pass 2: one node for each constant, and no node for what is known: constant results, x * 1, x - 0, a mean of one.

x + 0 is left to the next pass but one, which knows it as the beginning of a sum.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gradwalk.compiler.flat import CODES, CONSTANT, NAMES, Flat, Ints, Truths, starts_of
from gradwalk.compiler.loops import LOOPS
from gradwalk.ops import OPS


def with_shared_constants(flat: Flat) -> Flat:
    """Constants with the same bits become one node: the first of them."""
    constants = np.flatnonzero(flat.op == CONSTANT)
    bits = np.ascontiguousarray(flat.given(constants)[:, 0]).view(np.int64)
    _, first, place = np.unique(bits, return_index=True, return_inverse=True)
    if len(first) == len(constants):
        return flat
    instead = np.arange(flat.size)
    instead[constants] = constants[first[place]]
    return flat.with_uses_of(instead)


def with_folded_constants(flat: Flat) -> Flat:
    """What is computed from constants alone, by operations of the table, becomes a constant itself."""
    unknown = ~flat.is_op("constant", *OPS)
    LOOPS.mark_users(flat.starts, flat.children, unknown)
    foldable = np.flatnonzero(~unknown & (flat.op != CONSTANT))
    if not len(foldable):
        return flat
    op, row, kept = flat.op.copy(), flat.row.copy(), np.ones(len(flat.children), np.bool_)
    numbers, counts = flat.numbers.tolist(), flat.counts.copy()
    for node in foldable.tolist():  # in order, so that what folds on the way is known to the next
        folded = OPS[NAMES[flat.op[node]]]
        stretch = slice(flat.starts[node], flat.starts[node + 1])
        inputs = [numbers[row[child]][0] for child in flat.children[stretch].tolist()]
        numbers.append([folded.forward(*inputs, *numbers[row[node]][: len(folded.parameters)]), 0.0])
        op[node], row[node], counts[node] = CONSTANT, len(numbers) - 1, 0
        kept[stretch] = False
    return replace(
        flat, op=op, numbers=np.array(numbers), row=row, starts=starts_of(counts), children=flat.children[kept]
    )


def without_identities(flat: Flat) -> Flat:
    """x - 0, x * 1, 1 * x, x / 1, x ** 1, a mean of one: x itself."""
    instead, changed = np.arange(flat.size), False

    def by(nodes: Ints, place: int) -> None:
        nonlocal changed
        instead[nodes] = flat.child(nodes, place)
        changed = changed or len(nodes) > 0

    def is_number(nodes: Ints, place: int, number: float) -> Truths:
        child = flat.child(nodes, place)
        found: Truths = flat.op[child] == CONSTANT
        given = flat.given(child[found])[:, 0]
        found[found] = (given == number) & ~np.signbit(given)  # x - -0.0 is x + 0
        return found

    for name, number, neutral_on_the_left in (("sub", 0.0, False), ("mul", 1.0, True), ("div", 1.0, False)):
        nodes = np.flatnonzero(flat.op == CODES[name])
        right = is_number(nodes, 1, number)
        by(nodes[right], 0)
        if neutral_on_the_left:
            by(nodes[~right & is_number(nodes, 0, number)], 1)
    powers = np.flatnonzero(flat.op == CODES["pow_number"])
    by(powers[flat.given(powers)[:, 0] == 1.0], 0)
    single = np.flatnonzero(flat.is_op("mean", "take"))
    by(single[flat.counts[single] == 1], 0)
    return flat.with_uses_of(instead) if changed else flat
