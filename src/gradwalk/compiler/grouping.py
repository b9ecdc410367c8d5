"""Pass 7: nodes of one level that do the same thing become one group, which will be one vector instruction.

Sums of different lengths are padded to one length where that costs little: a dot with products 0 · 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from gradwalk.compiler.flat import (
    CODES,
    CONSTANT,
    INPUT,
    NAMES,
    ROW_OPS,
    TARGETED,
    Flat,
    Ints,
    Truths,
    is_among,
    ragged,
)
from gradwalk.compiler.loops import same_rows
from gradwalk.compiler.matrices import NOBODY, Group, matrix_products, rows_of
from gradwalk.ops import OPS
from gradwalk.row_ops import COMPOSITES

_PADDED = frozenset(name for name, row in COMPOSITES.items() if row.padding in ("zero", "first"))
_RAGGED = frozenset(name for name, row in COMPOSITES.items() if row.padding == "absent")
_MOST_PADDING = 2.0  # times the entries that are really there


def with_zero(flat: Flat) -> tuple[Flat, int]:
    """The graph and its constant 0, which is added behind all nodes if it has none."""
    constants = np.flatnonzero(flat.op == CONSTANT)
    number = flat.given(constants)[:, 0]
    zeros = constants[(number == 0.0) & ~np.signbit(number)]
    if len(zeros):
        return flat, int(zeros[0])
    return replace(
        flat,
        op=np.append(flat.op, np.int16(CONSTANT)),
        starts=np.append(flat.starts, flat.starts[-1]),
        row=np.append(flat.row, np.int32(0)),
    ), flat.size


@dataclass(frozen=True, eq=False)
class Alike:
    """The computed nodes, those of one level and one signature together: stretch i is nodes[begins[i]:begins[i + 1]].

    From the lowest level to the highest.
    """

    nodes: Ints
    begins: Ints

    def __len__(self) -> int:
        return len(self.begins) - 1


def grouped(flat: Flat, same: Alike, zero: int) -> list[Group]:
    """The groups, in an order in which they can run."""
    nodes = same.nodes[:, None]
    operands = _operands(flat, same.nodes)
    first = same.nodes[same.begins[:-1]]
    known: dict[int, tuple[float, ...]] = {}
    groups: list[Group] = []
    for (begin, end), code, row in zip(
        pairwise(same.begins.tolist()), flat.op[first].tolist(), flat.row[first].tolist(), strict=True
    ):
        name = NAMES[code]
        if name not in OPS:
            groups += _groups_of(flat, name, same.nodes[begin:end], zero)
            continue
        if row not in known:
            known[row] = tuple(flat.numbers[row].tolist())
        columns = tuple([operand[begin:end] for operand in operands[: len(OPS[name].inputs)]])
        groups.append(Group(name, nodes[begin:end], columns, known[row][: len(OPS[name].parameters)]))
    return groups


def _operands(flat: Flat, nodes: Ints) -> list[Ints]:
    """Of nodes of the table's operations the first child, the second and the third, each as a column."""
    most = max(len(op.inputs) for op in OPS.values())
    last = len(flat.children) - 1  # where a node has no such child, whatever there is
    return [flat.children[np.minimum(flat.starts[nodes] + place, last), None] for place in range(most)]


def alike(flat: Flat, level: Ints) -> Alike:
    """Which nodes can be computed together when each has this level."""
    computed = np.flatnonzero((flat.op != INPUT) & (flat.op != CONSTANT))
    signatures, which = _signatures(flat, computed)
    key = (level[computed] * len(signatures) + which) * 2 + differentiated(flat)[computed]
    order = _ordered(key)
    changes = np.flatnonzero(np.diff(key[order], prepend=-1))
    return Alike(computed[order], np.append(changes, len(order)))


def _signatures(flat: Flat, nodes: Ints) -> tuple[Ints, Ints]:
    """What the nodes do, each thing once and in a fixed order, and for every node which of them it does."""
    length = np.where(is_among(flat.op[nodes], _PADDED | _RAGGED), 0, flat.counts[nodes])
    doing, of = same_rows(np.column_stack([flat.op[nodes], flat.row[nodes], length]))
    op, row, length = doing.T
    bits = flat.numbers[row].view(np.int64)
    # which entry of a row, or of a table, is not part of what to do
    first = np.where(is_among(op, ROW_OPS), 0, bits[:, 0])
    second = np.where(op == CODES["take"], 0, bits[:, 1])
    signatures, which = same_rows(np.column_stack([op, first, second, length]))
    order = np.lexsort(signatures.T[::-1])
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return signatures[order], rank[which][of]


def _ordered(keys: Ints) -> Ints:
    """A stable argsort of numbers ≥ 0 in linear time: by 16 bits after the other, as NumPy can."""
    order = np.argsort(keys.astype(np.uint16), kind="stable")
    largest, shift = int(keys.max(initial=0)), 16
    while largest >> shift:
        order = order[np.argsort((keys[order] >> shift).astype(np.uint16), kind="stable")]
        shift += 16
    return order


def differentiated(flat: Flat) -> Truths:
    """Which nodes a result depends on; the others are there for guards, and get no gradient."""
    if not len(flat.guards):
        return np.ones(flat.size, np.bool_)
    needed = flat.needed_for(flat.outputs)
    of_rows = np.flatnonzero(is_among(flat.op, ROW_OPS))
    if not needed[of_rows].all():  # one instruction makes the row: where an entry of it is needed, take all of it
        ends = [flat.child(of_rows, 0), flat.children[flat.starts[of_rows + 1] - 1]]
        rows = same_rows(np.column_stack([flat.op[of_rows], flat.counts[of_rows], *ends]))[1]
        needed[of_rows] = (np.bincount(rows, needed[of_rows]) > 0)[rows]
    return needed


def _groups_of(flat: Flat, name: str, nodes: Ints, zero: int) -> list[Group]:
    """Of composites and calls."""
    if name == "dot":
        products, nodes = matrix_products(flat, nodes, zero)
        rest = _of_similar_length(flat.counts[nodes], nodes)
        return products + [_padded(flat, name, part, zero) for part in rest]
    if name in _PADDED:
        return [_padded(flat, name, part, zero) for part in _of_similar_length(flat.counts[nodes], nodes)]
    if name in _RAGGED:
        return [_rows(flat, name, part, zero) for part in _of_similar_length(flat.counts[nodes], nodes)]
    if name in ROW_OPS:
        return [_rows(flat, name, nodes, zero)]
    children = flat.children[ragged(flat.starts[nodes], flat.counts[nodes])].reshape(len(nodes), -1)
    if name == "take":
        return [_taken(flat, nodes, children)]
    if name in TARGETED:
        return [Group(name, nodes[:, None], (children[:, :-1], children[:, -1:]))]
    given = 2 if name == "call" else len(COMPOSITES[name].parameters)
    return [Group(name, nodes[:, None], (children,), tuple(flat.given(nodes)[0, :given].tolist()))]


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
    halves = len(COMPOSITES[name].inputs)
    operands = []
    for half in range(halves):
        lengths = counts // halves
        table = rows_of(flat, flat.starts[nodes] + half * lengths, lengths, NOBODY)
        # of equals the first counts: its copies get no gradient
        instead = table[:, :1] if COMPOSITES[name].padding == "first" else zero
        operands.append(np.where(table == NOBODY, instead, table))
    if halves > 1 and name != "dot":  # which alone takes two operands
        operands = [np.column_stack(operands)]
    parameters = flat.given(nodes[:1])[0, : len(COMPOSITES[name].parameters)]
    return Group(name, nodes[:, None], tuple(operands), tuple(parameters.tolist()))


def _rows(flat: Flat, name: str, nodes: Ints, zero: int) -> Group:
    counts = flat.counts[nodes]
    children = np.column_stack([counts, rows_of(flat, flat.starts[nodes], counts, zero)])
    entry = flat.given(nodes)[:, 0].astype(np.int64)
    rows, place = same_rows(np.column_stack([children, _repeats(same_rows(children)[1], entry)]))
    lengths, rows = rows[:, 0], rows[:, 1:-1]
    out = np.full(rows.shape, NOBODY)
    out[place, entry] = nodes
    parameters = flat.given(nodes)[0, 1 : 1 + len(COMPOSITES[name].parameters)]
    ragged_lengths = None if (lengths == lengths[0]).all() else lengths
    return Group(name, out, (rows,), tuple(parameters.tolist()), ragged_lengths)


def _taken(flat: Flat, nodes: Ints, children: Ints) -> Group:
    """All that is taken out of one table: a row for each index, a column for each column of the table."""
    column = flat.given(nodes)[:, 1].astype(np.int64)
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
