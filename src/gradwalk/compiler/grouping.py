"""Pass 6: nodes of one level that do the same thing become one group, which will be one vector instruction.

Sums of different lengths are padded to one length where that costs little: a dot with products 0 · 0.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from gradwalk.compiler.flat import CODES, CONSTANT, INPUT, NAMES, ROW_OPS, Flat, Ints, Truths, ragged
from gradwalk.compiler.matrices import Group, matrix_products, same_rows
from gradwalk.ops import OPS

NOBODY = -1  # an entry of a row that no node stands for
_ONE_ROW_OF_CHILDREN = frozenset({"sum", "mean", "norm", "logsumexp", "largest", "smallest"})
_PADDED = frozenset({"dot", "sum", "largest", "smallest"})
_MOST_PADDING = 2.0  # times the entries that are really there


def with_zero(flat: Flat) -> tuple[Flat, int]:
    """The graph and its constant 0, which is added behind all nodes if it has none."""
    zeros = np.flatnonzero((flat.op == CONSTANT) & (flat.number == 0.0) & ~np.signbit(flat.number))
    if len(zeros):
        return flat, int(zeros[0])
    return replace(
        flat,
        op=np.append(flat.op, CONSTANT),
        starts=np.append(flat.starts, flat.starts[-1]),
        parameters=np.vstack([flat.parameters, np.zeros((1, 2))]),
        number=np.append(flat.number, 0.0),
    ), flat.size


def grouped(flat: Flat, level: Ints, zero: int) -> list[Group]:
    """The groups, in an order in which they can run."""
    return [group for nodes in alike(flat, level) for group in _groups_of(flat, nodes, zero)]


def alike(flat: Flat, level: Ints) -> list[Ints]:
    """The computed nodes, those of one level and one signature together, from the lowest level to the highest."""
    computed = np.flatnonzero((flat.op != INPUT) & (flat.op != CONSTANT))
    if not len(computed):
        return []
    op = flat.op[computed]
    bits = np.ascontiguousarray(flat.parameters[computed]).view(np.int64).reshape(-1, 2)
    # which entry of a row, or of a table, is not part of what to do
    first = np.where(_is_among(op, ROW_OPS), 0, bits[:, 0])
    second = np.where(op == CODES["take"], 0, bits[:, 1])
    length = np.where(_is_among(op, _PADDED), 0, flat.counts[computed])
    keys = (length, second, first, differentiated(flat)[computed], op, level[computed])
    order = np.lexsort(keys)
    changes = np.zeros(len(order), np.bool_)
    for key in keys:
        ordered = key[order]
        changes[1:] |= ordered[1:] != ordered[:-1]
    begins = [0, *np.flatnonzero(changes).tolist(), len(order)]
    nodes = computed[order]
    return [nodes[begin:end] for begin, end in pairwise(begins)]


def _is_among(op: Ints, names: frozenset[str]) -> Truths:
    return np.isin(op, [CODES[name] for name in names])


def differentiated(flat: Flat) -> Truths:
    """Which nodes a result depends on; the others are there for guards, and get no gradient."""
    needed = np.zeros(flat.size, np.bool_)
    needed[flat.outputs] = True
    if not len(flat.guards):
        return np.ones(flat.size, np.bool_)
    marks, children, starts = needed.tolist(), flat.children.tolist(), flat.starts.tolist()
    for node in range(flat.size - 1, -1, -1):
        if marks[node]:
            for child in children[starts[node] : starts[node + 1]]:
                marks[child] = True
    return np.array(marks, np.bool_)


def _groups_of(flat: Flat, nodes: Ints, zero: int) -> list[Group]:
    name = NAMES[flat.op[nodes[0]]]
    if name == "dot":
        products, nodes = matrix_products(flat, nodes)
        rest = _of_similar_length(flat.counts[nodes], nodes)
        return products + [_padded(flat, name, part, zero) for part in rest]
    if name in _PADDED:
        return [_padded(flat, name, part, zero) for part in _of_similar_length(flat.counts[nodes], nodes)]
    if len(nodes) == 1:
        children = flat.children[flat.starts[nodes[0]] : flat.starts[nodes[0] + 1]].reshape(1, -1)
    else:
        children = flat.children[ragged(flat.starts[nodes], flat.counts[nodes])].reshape(len(nodes), -1)
    if name in ROW_OPS:
        return [_rows(flat, name, nodes, children)]
    if name == "take":
        return [_taken(flat, nodes, children)]
    if name == "cross_entropy":
        return [Group(name, nodes[:, None], (children[:, :-1], children[:, -1:]))]
    if name in _ONE_ROW_OF_CHILDREN:
        return [Group(name, nodes[:, None], (children,))]
    parameters = tuple(flat.parameters[nodes[0], : len(OPS[name].parameters)].tolist())
    return [Group(name, nodes[:, None], tuple(children.T[:, :, None]), parameters)]


def _of_similar_length(lengths: Ints, nodes: Ints) -> list[Ints]:
    """Longest first, as many to a part as padding to the longest may cost."""
    order = np.argsort(-lengths, kind="stable")
    ordered = lengths[order]
    parts, begin = [], 0
    while begin < len(order):
        longest = ordered[begin]
        entries = np.cumsum(ordered[begin:])
        affordable = longest * np.arange(1, len(entries) + 1) <= _MOST_PADDING * entries
        end = begin + (int(np.argmin(affordable)) if not affordable.all() else len(entries))
        if ordered[end - 1] < longest and end < len(order):  # do not cut through the nodes of one length
            end = begin + int(np.searchsorted(-ordered[begin:], -ordered[end], side="left"))
        parts.append(np.sort(nodes[order[begin:end]]))
        begin = end
    return parts


def _padded(flat: Flat, name: str, nodes: Ints, zero: int) -> Group:
    counts = flat.counts[nodes]
    halves = 2 if name == "dot" else 1
    width = int(counts.max()) // halves
    operands = []
    for half in range(halves):
        table = np.full((len(nodes), width), zero)
        if name in ("largest", "smallest"):
            table[:] = flat.child(nodes, 0)[:, None]  # of equals the first counts: its copies get no gradient
        lengths = counts // halves
        rows = np.repeat(np.arange(len(nodes)), lengths)
        table[rows, ragged(np.zeros_like(lengths), lengths)] = flat.children[
            ragged(flat.starts[nodes] + half * lengths, lengths)
        ]
        operands.append(table)
    return Group(name, nodes[:, None], tuple(operands))


def _rows(flat: Flat, name: str, nodes: Ints, children: Ints) -> Group:
    entry = flat.parameters[nodes, 0].astype(np.int64)
    rows, place = same_rows(np.column_stack([children, _repeats(same_rows(children)[1], entry)]))
    rows = rows[:, :-1]
    out = np.full(rows.shape, NOBODY)
    out[place, entry] = nodes
    parameters = (float(flat.parameters[nodes[0], 1]),) if name in ("rmsnorm", "layernorm") else ()
    return Group(name, out, (rows,), parameters)


def _taken(flat: Flat, nodes: Ints, children: Ints) -> Group:
    """All that is taken out of one table: a row for each index, a column for each column of the table."""
    column = flat.parameters[nodes, 1].astype(np.int64)
    columns, among = np.unique(column, return_inverse=True)
    indexes, place = same_rows(np.column_stack([children[:, 0], _repeats(children[:, 0], column)]))
    indexes = indexes[:, :1]
    out = np.full((len(indexes), len(columns)), NOBODY)
    out[place, among] = nodes
    table = np.zeros((children.shape[1] - 1, len(columns)), np.int64)
    table[:, among] = children[:, 1:].T
    return Group("take", out, (table, indexes))


def _repeats(row: Ints, entry: Ints) -> Ints:
    """How often each pair was there before: two nodes for one entry of a row need two rows."""
    order = np.lexsort((entry, row))
    new = np.ones(len(order), np.bool_)
    new[1:] = (row[order][1:] != row[order][:-1]) | (entry[order][1:] != entry[order][:-1])
    began = np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))
    repeats = np.empty(len(order), np.int64)
    repeats[order] = np.arange(len(order)) - began
    return repeats
