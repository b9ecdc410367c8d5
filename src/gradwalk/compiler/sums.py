"""Pass 4: a tree of adds becomes one node: the products in it a `dot`, what is left over a `sum` or one `add`.

`0 + w0 * x0 + w1 * x1 + b`, as Python's sum writes it, is add(dot([w0, w1], [x0, x1]), b). What Python's sum made of
one term or two stays a `dot` or `sum` too, if longer ones stand beside it: one loop made them, and one instruction
can do them all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gradwalk.cached_property import cached_property
from gradwalk.compiler.flat import CALL, CODES, CONSTANT, SIGNED, Flat, Ints, Truths, followed, ragged, starts_of

_LONG = 8
_ADD, _SUM, _DOT, _MUL = (CODES[name] for name in ("add", "sum", "dot", "mul"))


@dataclass(frozen=True, eq=False)
class _Trees:
    """The trees by their roots, and what each adds up: its products, one tree after the other, and its other terms."""

    roots: Ints
    products: Ints
    others: Ints
    product_counts: Ints  # of each tree
    other_counts: Ints
    begun: Truths  # with a 0, as Python's sum begins
    inner: Ints  # the adds that are no roots

    @cached_property
    def with_dot(self) -> Truths:
        return self.product_counts >= 1

    @cached_property
    def with_both(self) -> Truths:
        """Products and other terms: the dot is a node of its own."""
        return self.with_dot & (self.other_counts >= 1)

    @cached_property
    def apart(self) -> Truths:
        """The other terms are a sum of their own: read in a row, not gathered beside the dot."""
        return self.with_both & (self.other_counts >= _LONG)


def with_fused_sums(flat: Flat) -> Flat:
    """Every tree of adds that are used once, with the products that are used once, as at most two nodes."""
    adds = (flat.op == _ADD) | (flat.op == _SUM)
    if flat.is_op(*SIGNED).any():  # 0 + -0.0 is 0.0: there the 0 that Python's sum begins with is not nothing
        zeros = (flat.op == CONSTANT) & (flat.numbers[flat.row, 0] == 0.0)
        adds[np.repeat(np.arange(flat.size), flat.counts)[zeros[flat.children]]] = False
    calls = np.flatnonzero(flat.op == CALL)
    if len(calls):  # and so is what a function of one's own is given: a sum of two, at most
        adds[flat.needed_for(flat.children[ragged(flat.starts[calls], flat.counts[calls])])] = False
    if not adds.any():
        return flat
    trees = _trees(flat, adds)
    roots, with_both, apart = trees.roots, trees.with_both, trees.apart
    places = np.ones(flat.size, np.int64)  # of each node: itself, and before it its new dot and sum
    places[trees.inner] = places[trees.products] = 0
    places[roots] += with_both
    places[roots] += apart
    own = np.cumsum(places) - 1
    kept = np.flatnonzero(places)
    dots, sums = own[roots] - with_both - apart, own[roots] - apart

    size = int(own[-1]) + 1
    op, row, counts = np.zeros(size, flat.op.dtype), np.zeros(size, flat.row.dtype), np.zeros(size, np.int64)
    op[own[kept]], row[own[kept]], counts[own[kept]] = flat.op[kept], flat.row[kept], flat.counts[kept]
    addends = np.where(apart, 2, trees.other_counts + with_both)
    kind = np.where((addends == 2) & (~trees.begun | apart), _ADD, _SUM)
    only_dot = trees.with_dot & ~with_both
    op[own[roots]], row[own[roots]] = np.where(only_dot, _DOT, kind), 0
    counts[own[roots]] = np.where(only_dot, 2 * trees.product_counts, addends)
    op[dots[with_both]], counts[dots[with_both]] = _DOT, 2 * trees.product_counts[with_both]
    op[sums[apart]], counts[sums[apart]] = _SUM, trees.other_counts[apart]
    starts = starts_of(counts)

    children = np.empty(starts[-1], np.int64)
    same = places.astype(np.bool_)
    same[roots] = False
    at = ragged(starts[own[same]], flat.counts[same])
    children[at] = own[flat.children[np.repeat(same, flat.counts)]]
    left = ragged(starts[dots], trees.product_counts)  # of a tree without other terms, the dot is the root itself
    children[left] = own[flat.child(trees.products, 0)]
    children[left + np.repeat(trees.product_counts, trees.product_counts)] = own[flat.child(trees.products, 1)]
    children[ragged(starts[sums] + (with_both & ~apart), trees.other_counts)] = own[trees.others]
    children[starts[own[roots[with_both]]]] = dots[with_both]
    children[starts[own[roots[apart]]] + 1] = sums[apart]
    return replace(
        flat,
        op=op,
        starts=starts,
        children=children,
        row=row,
        inputs=own[flat.inputs],
        outputs=own[flat.outputs],
        guards=own[flat.guards],
    )


def _trees(flat: Flat, adds: Truths) -> _Trees:
    used_once = _used_once(flat)
    added, by = flat.children[np.repeat(adds, flat.counts)], np.repeat(np.flatnonzero(adds), flat.counts[adds])
    goes_on = adds[added] & used_once[added]
    inner = added[goes_on]
    parent = np.arange(flat.size)
    parent[inner] = by[goes_on]
    node, root = added[~goes_on], followed(parent)[by[~goes_on]]
    order = np.argsort(root, kind="stable")  # the adds of a chain have rising numbers: left to right
    node, root = node[order], root[order]
    first = np.flatnonzero(np.diff(root, prepend=-1))
    roots, tree = root[first], np.repeat(np.arange(len(first)), np.diff(np.append(first, len(root))))

    zero = flat.op[node] == CONSTANT
    zero[zero] = flat.given(node[zero])[:, 0] == 0.0
    begun = np.bincount(tree[zero], minlength=len(roots)) > 0
    only_zeros = np.bincount(tree[~zero], minlength=len(roots)) == 0
    kept = ~zero | only_zeros[tree]  # of nothing but zeros, keep the zeros
    node, tree = node[kept], tree[kept]
    is_product = (flat.op[node] == _MUL) & used_once[node]
    several = np.bincount(tree[is_product], minlength=len(roots)) >= 2
    is_product &= (several | begun)[tree]  # a single product stays the node it is
    return _Trees(
        roots=roots,
        products=node[is_product],
        others=node[~is_product],
        product_counts=np.bincount(tree[is_product], minlength=len(roots)),
        other_counts=np.bincount(tree[~is_product], minlength=len(roots)),
        begun=begun,
        inner=inner,
    )


def _used_once(flat: Flat) -> Truths:
    """Which nodes are used once, and by another node."""
    once: Truths = np.bincount(flat.children.astype(np.intp, copy=False), minlength=flat.size) == 1
    once[flat.outputs] = once[flat.guards.ravel()] = False
    return once


def without_lonely(flat: Flat, level: Ints) -> Flat:
    """Short ones with no longer one on their level: a dot of one is a product, a sum of two an add, of one its term."""
    op, instead = flat.op.copy(), np.arange(flat.size)
    for name, short, code in (("dot", 2, _MUL), ("sum", 2, _ADD), ("sum", 1, 0), ("largest", 1, 0), ("smallest", 1, 0)):
        same = flat.op == CODES[name]
        accompanied = np.unique(level[same & (flat.counts > short)])
        lonely = np.flatnonzero(same & (flat.counts == short) & ~np.isin(level, accompanied))
        if code:
            op[lonely] = code
        else:
            instead[lonely] = flat.child(lonely, 0)
    return replace(flat, op=op).with_uses_of(instead)
