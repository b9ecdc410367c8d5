"""Pass 5: exp(x - m) / sum(exp(x - m)), m the largest x and without a gradient, is a softmax however it was written.

One instruction then does what would be six, each with its own way back; and a row cut short by a mask has a length,
where its parts would be gathered. What a softmax makes has to be finite, or the plain function is called: of infinite
entries it makes something else than its parts did.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gradwalk.compiler.flat import CODES, Flat, Ints, Truths, ragged, starts_of, table_of

_DIV, _EXP, _SUB, _SUM, _STOP, _LARGEST, _SOFTMAX = (
    CODES[name] for name in ("div", "exp", "sub", "sum", "stop_gradient", "largest", "softmax")
)
_MOST_CHILDREN = 2  # times those there are: every entry of a softmax has all of its row


@dataclass(frozen=True, eq=False)
class _Rows:
    """Sums of exponentials, by the places of these among the children: stretch i is starts[i] … + counts[i]."""

    sums: Ints
    starts: Ints
    counts: Ints

    def only(self, kept: Truths) -> _Rows:
        return _Rows(self.sums[kept], self.starts[kept], self.counts[kept])

    @property
    def places(self) -> Ints:
        return ragged(self.starts, self.counts)

    @property
    def row(self) -> Ints:
        """Of each entry."""
        return np.repeat(np.arange(len(self.sums)), self.counts)

    def all_of(self, entries: Truths) -> Truths:
        """In which rows that is so of all entries."""
        return np.asarray(np.bincount(self.row, ~entries, minlength=len(self.sums)) == 0)


def with_softmaxes(flat: Flat) -> Flat:
    """Quotients that are entries of a softmax as such; what they were made of is left for nobody."""
    quotients = np.flatnonzero(flat.op == _DIV)
    exponentials, sums = flat.child(quotients, 0), flat.child(quotients, 1)
    alone = exponentials == sums  # the sum of one
    is_entry = (flat.op[exponentials] == _EXP) & (alone | (flat.op[sums] == _SUM))
    if not is_entry.any():
        return flat
    quotients, exponentials, sums, alone = (each[is_entry] for each in (quotients, exponentials, sums, alone))
    found, first = np.unique(sums, return_index=True)
    starts = np.where(alone[first], flat.starts[quotients[first]], flat.starts[found])
    rows = _Rows(found, starts, np.where(alone[first], 1, flat.counts[found]))
    rows = _used_by_nobody_else(flat, _shifted_by_largest(flat, rows), quotients, exponentials, sums)
    row_of = np.full(flat.size, -1)
    row_of[rows.sums] = np.arange(len(rows.sums))
    kept = row_of[sums] >= 0
    quotients, exponentials, row = quotients[kept], exponentials[kept], row_of[sums[kept]]
    if not len(quotients) or int(rows.counts[row].sum()) > _MOST_CHILDREN * len(flat.children):
        return flat
    return _written(flat, rows, quotients, exponentials, row)


def _shifted_by_largest(flat: Flat, rows: _Rows) -> _Rows:
    """Those in which every entry is exp(x - m), m the largest x, and no gradient goes through m."""
    rows = rows.only(rows.all_of(flat.op[flat.children[rows.places]] == _EXP))
    rows = rows.only(rows.all_of(flat.op[flat.child(flat.children[rows.places], 0)] == _SUB))
    shifted = flat.child(flat.children[rows.places], 0)
    x, shift = flat.child(shifted, 0), flat.child(shifted, 1)
    begins = starts_of(rows.counts)[:-1]
    of_row = shift[begins]
    rows_alike = rows.all_of(shift == of_row[rows.row])
    largest = _behind_stop(flat, of_row)
    several = (flat.op[largest] == _LARGEST) & (flat.counts[largest] == rows.counts)
    # of a row of one, the largest may be the entry itself
    compared = np.where(several[rows.row], 0, largest[rows.row])
    within = several[rows.row]
    inside = flat.starts[largest[rows.row[within]]] + (np.arange(len(rows.row)) - begins[rows.row])[within]
    compared[within] = flat.children[inside]
    stopped = (flat.op[of_row] == _STOP)[rows.row] | (within & (flat.op[compared] == _STOP))
    same = (within | (rows.counts == 1)[rows.row]) & (_behind_stop(flat, compared) == _behind_stop(flat, x))
    return rows.only(rows_alike & rows.all_of(stopped & same))


def _behind_stop(flat: Flat, nodes: Ints) -> Ints:
    """The nodes, or what they pass on without a gradient."""
    behind = nodes.copy()
    stops = flat.op[nodes] == _STOP
    behind[stops] = flat.child(nodes[stops], 0)
    return behind


def _used_by_nobody_else(flat: Flat, rows: _Rows, quotients: Ints, exponentials: Ints, sums: Ints) -> _Rows:
    """Those whose parts are needed for these quotients alone: else there would be more to do, not less."""
    uses = np.bincount(flat.children.astype(np.intp, copy=False), minlength=flat.size)
    uses[flat.roots()] += len(flat.children) + 1
    own = np.bincount(sums, minlength=flat.size)
    entries = flat.children[rows.places]
    row_of = np.full(flat.size, -1)
    row_of[entries] = rows.row
    place = np.full(flat.size, -1)
    place[rows.sums] = np.arange(len(rows.sums))
    strange = place[sums] != row_of[exponentials]
    foreign = np.bincount(place[sums][strange & (place[sums] >= 0)], minlength=len(rows.sums)) > 0
    used = np.bincount(rows.row, uses[entries], minlength=len(rows.sums))
    alone = rows.sums == entries[starts_of(rows.counts)[:-1]]
    expected = np.where(alone, 2 * own[rows.sums], rows.counts + own[rows.sums])
    whole = rows.all_of(row_of[entries] == rows.row) & (used == expected)
    return rows.only(whole & ~foreign & (alone | (uses[rows.sums] == own[rows.sums])))


def _written(flat: Flat, rows: _Rows, quotients: Ints, exponentials: Ints, row: Ints) -> Flat:
    """The quotients, each of its row, as softmaxes."""
    entries = flat.children[rows.places]
    place = np.zeros(flat.size, np.int64)
    place[entries] = np.arange(len(entries)) - starts_of(rows.counts)[:-1][rows.row]
    x = flat.child(flat.child(entries, 0), 0)
    given = np.zeros((int(rows.counts.max()), 2))
    given[:, 0] = np.arange(len(given))
    numbers, which = table_of(np.vstack([flat.numbers, given]))
    op, given_row, counts = flat.op.copy(), which[flat.row], flat.counts.copy()
    op[quotients], counts[quotients] = _SOFTMAX, rows.counts[row]
    given_row[quotients] = which[len(flat.numbers) + place[exponentials]]
    starts = starts_of(counts)
    children = np.empty(starts[-1], np.int64)
    others = np.ones(flat.size, np.bool_)
    others[quotients] = False
    of_others = np.repeat(others, counts)
    children[of_others] = flat.children[np.repeat(others, flat.counts)]
    children[~of_others] = x[ragged(starts_of(rows.counts)[row], rows.counts[row])]
    return replace(flat, op=op, starts=starts, children=children, numbers=numbers, row=given_row)
