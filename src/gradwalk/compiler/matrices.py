"""Pass 8: dots that pair most of some rows with most of some columns are a matrix product.

Where a mask leaves out some of them, or cuts rows short, the whole product is computed: nobody reads the rest of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradwalk.compiler.flat import Flat, Ints, Truths, ragged
from gradwalk.compiler.loops import same_rows

_SMALLEST = 16  # dots in a product worth an instruction of its own
_MANY = 8  # so many small products are better off as one group of dots
_SMALL = 64
_ROUNDS = 32
_USED = 0.5  # of a product: so much of it at least

NOBODY = -1  # an entry of a group that no node stands for


@dataclass(eq=False, slots=True)
class Group:
    """One instruction before it has slots: operands are matrices of node numbers, `nodes` the matrix of results."""

    op: str
    nodes: Ints
    operands: tuple[Ints, ...]
    parameters: tuple[float, ...] = ()
    lengths: Ints | None = None  # of the rows of the first operand, where they differ


def matrix_products(flat: Flat, nodes: Ints, zero: int) -> tuple[list[Group], Ints]:
    """The matrix products among these dots of one level, and the dots that are left over."""
    groups, nodes = _products_of_beginnings(flat, nodes, zero)
    rest = [nodes[:0]]
    counts = flat.counts[nodes]
    order = np.argsort(counts, kind="stable")
    for same in np.split(nodes[order], np.flatnonzero(np.diff(counts[order])) + 1) if len(nodes) else ():
        found, left_over = _products_of_length(flat, same, int(flat.counts[same[0]]))
        groups += found
        rest.append(left_over)
    return groups, np.sort(np.concatenate(rest))


def _products_of_length(flat: Flat, nodes: Ints, count: int) -> tuple[list[Group], Ints]:
    if len(nodes) < _SMALLEST:
        return [], nodes
    children = flat.children[ragged(flat.starts[nodes], np.full(len(nodes), count))].reshape(len(nodes), count)
    lefts, left = same_rows(children[:, : count // 2])
    rights, right = same_rows(children[:, count // 2 :])
    groups, left_over = [], np.ones(len(nodes), np.bool_)
    for p in _parts(left, right, len(lefts), len(rights)):
        if product := _product(nodes[p], left[p], right[p], lefts, rights):
            left_over[p] = False
            groups.append(product)
    if len(groups) > _MANY and np.count_nonzero(~left_over) < _SMALL * len(groups):
        return [], nodes
    return groups, nodes[left_over]


def _products_of_beginnings(flat: Flat, nodes: Ints, zero: int) -> tuple[list[Group], Ints]:
    """Dots with the beginnings of one row, of different lengths, as a causal mask leaves them.

    What they are multiplied by is filled up with zeros: the function has no such products, so that 0 · inf must not
    count: the lengths say so.
    """
    groups: list[Group] = []
    for side in (0, 1):
        found, nodes = _products_of_cut_rows(flat, nodes, side, zero)
        groups += found
    return groups, nodes


def _products_of_cut_rows(flat: Flat, nodes: Ints, side: int, zero: int) -> tuple[list[Group], Ints]:
    """The same, with the beginnings on that side of the dots."""
    lengths = flat.counts[nodes] // 2
    if len(nodes) < _SMALLEST or (lengths == lengths[0]).all():
        return [], nodes
    cut, other = flat.starts[nodes] + side * lengths, flat.starts[nodes] + (1 - side) * lengths
    heads, head = np.unique(flat.children[cut], return_inverse=True)
    order = np.lexsort((lengths, head))
    longest = order[np.flatnonzero(np.diff(head[order], append=-1))][head]  # of those that begin in the same way
    several = np.bincount(head, lengths != lengths[longest]) > 0
    if not several.any():
        return [], nodes
    keys, row = same_rows(np.column_stack([flat.children[other], lengths]))
    same = np.unique(row, return_index=True)[1][row]
    alike = _are_equal(flat, cut, cut[longest], lengths) & _are_equal(flat, other, other[same], lengths)
    places = np.flatnonzero(several[head] & alike)
    groups, left_over = [], np.ones(len(nodes), np.bool_)
    for part in _parts(row[places], head[places], len(keys), len(heads)):
        p = places[part]
        width = int(lengths[p].max())
        _, of_rows, of_row = np.unique(row[p], return_index=True, return_inverse=True)
        _, of_heads, of_head = np.unique(head[p], return_index=True, return_inverse=True)
        used = int(lengths[p].sum()) / (width * len(of_rows) * len(of_heads))
        if used < _USED or (lengths[longest[p]] != width).any():
            continue
        out = np.full((len(of_rows), len(of_heads)), NOBODY)
        out[of_row, of_head] = nodes[p]
        if _is_there_twice(out, p):
            continue
        left_over[p] = False
        counts = lengths[p[of_rows]]
        filled = rows_of(flat, other[p[of_rows]], counts, zero)
        whole = flat.children[cut[longest[p[of_heads]]][:, None] + np.arange(width)]
        groups.append(Group("matmul", out, (filled, whole), lengths=counts))
    return groups, nodes[left_over]


def rows_of(flat: Flat, starts: Ints, lengths: Ints, beyond: int) -> Ints:
    """Stretches of children as the rows of a matrix, with `beyond` behind those that are shorter."""
    rows = np.full((len(starts), int(lengths.max())), beyond)
    rows[np.repeat(np.arange(len(starts)), lengths), ragged(np.zeros_like(lengths), lengths)] = flat.children[
        ragged(starts, lengths)
    ]
    return rows


def _are_equal(flat: Flat, starts: Ints, others: Ints, lengths: Ints) -> Truths:
    """Of each two stretches of children, whether they are the same."""
    differs = flat.children[ragged(starts, lengths)] != flat.children[ragged(others, lengths)]
    which = np.repeat(np.arange(len(lengths)), lengths)
    return np.asarray(np.bincount(which, differs, minlength=len(lengths)) == 0)


def _product(nodes: Ints, left: Ints, right: Ints, lefts: Ints, rights: Ints) -> Group | None:
    """The product of these dots, each of row `left` of `lefts` with row `right` of `rights`.

    None where a pair is there twice, or fewer than about half of all pairs are there.
    """
    if np.count_nonzero(np.diff(left)) > np.count_nonzero(np.diff(right)):
        # the side that changes slowly, in the order the function was written in, becomes the rows
        left, right, lefts, rights = right, left, rights, lefts
    rows, row = np.unique(left, return_inverse=True)
    columns, column = np.unique(right, return_inverse=True)
    if len(nodes) < _USED * len(rows) * len(columns):
        return None
    out = np.full((len(rows), len(columns)), NOBODY)
    out[row, column] = nodes
    return None if _is_there_twice(out, nodes) else Group("matmul", out, (lefts[rows], rights[columns]))


def _is_there_twice(out: Ints, pairs: Ints) -> bool:
    """Whether two of the pairs that were written there are one."""
    return bool(np.count_nonzero(out != NOBODY) < len(pairs))


def _parts(left: Ints, right: Ints, lefts: int, rights: int) -> list[Ints]:
    """The connected parts that are large enough: the smallest left number in each spreads from pair to pair."""
    of_left, of_right = np.arange(lefts), np.full(rights, lefts)
    for _ in range(_ROUNDS):
        np.minimum.at(of_right, right, of_left[left])
        before = of_left.copy()
        np.minimum.at(of_left, left, of_right[right])
        if np.array_equal(before, of_left):
            break
    part = of_left[left]
    order = np.argsort(part, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(part[order])) + 1)
    return [each for each in parts if len(each) >= _SMALLEST]
