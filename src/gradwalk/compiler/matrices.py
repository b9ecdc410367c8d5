"""Pass 7: dots that pair every one of some rows with every one of some columns are a matrix product."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradwalk.compiler.flat import Flat, Ints, ragged
from gradwalk.compiler.loops import same_rows

_SMALLEST = 16  # dots in a product worth an instruction of its own
_MANY = 8  # so many small products are better off as one group of dots
_SMALL = 64
_ROUNDS = 32


@dataclass(eq=False, slots=True)
class Group:
    """One instruction before it has slots: operands are matrices of node numbers, `nodes` the matrix of results."""

    op: str
    nodes: Ints
    operands: tuple[Ints, ...]
    parameters: tuple[float, ...] = ()


def matrix_products(flat: Flat, nodes: Ints) -> tuple[list[Group], Ints]:
    """The matrix products among these dots of one level, and the dots that are left over."""
    groups: list[Group] = []
    rest = [nodes[:0]]
    counts = flat.counts[nodes]
    order = np.argsort(counts, kind="stable")
    for same in np.split(nodes[order], np.flatnonzero(np.diff(counts[order])) + 1):
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
    part = _parts(left, right, len(lefts), len(rights))
    order = np.argsort(part, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(part[order])) + 1)
    complete = [p for p in parts if len(p) >= _SMALLEST and _is_complete(left[p], right[p])]
    if len(complete) > _MANY and sum(map(len, complete)) < _SMALL * len(complete):
        return [], nodes
    groups, left_over = [], np.ones(len(nodes), np.bool_)
    for p in complete:
        left_over[p] = False
        # the side that changes slowly, in the order the function was written in, becomes the rows
        slow, fast, slows, fasts = left[p], right[p], lefts, rights
        if slow[0] != slow[1]:
            slow, fast, slows, fasts = fast, slow, rights, lefts
        rows, row = np.unique(slow, return_inverse=True)
        columns, column = np.unique(fast, return_inverse=True)
        out = np.empty((len(rows), len(columns)), np.int64)
        out[row, column] = nodes[p]
        groups.append(Group("matmul", out, (slows[rows], fasts[columns])))
    return groups, nodes[left_over]


def _is_complete(left: Ints, right: Ints) -> bool:
    """Every left with every right, once."""
    pairs = len(np.unique(left * (int(right.max()) + 1) + right))
    return pairs == len(left) == len(np.unique(left)) * len(np.unique(right))


def _parts(left: Ints, right: Ints, lefts: int, rights: int) -> Ints:
    """Which connected part each pair belongs to: the smallest left number in it spreads from pair to pair."""
    of_left, of_right = np.arange(lefts), np.full(rights, lefts)
    for _ in range(_ROUNDS):
        np.minimum.at(of_right, right, of_left[left])
        before = of_left.copy()
        np.minimum.at(of_left, left, of_right[right])
        if np.array_equal(before, of_left):
            break
    return of_left[left]
