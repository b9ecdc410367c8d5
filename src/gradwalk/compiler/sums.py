"""Pass 4: a tree of adds becomes one node: the products in it a `dot`, what is left over a `sum` or one `add`.

`0 + w0 * x0 + w1 * x1 + b`, as Python's sum writes it, is add(dot([w0, w1], [x0, x1]), b). What Python's sum made of
one term or two stays a `dot` or `sum` too, if longer ones stand beside it: one loop made them, and one instruction
can do them all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gradwalk.compiler.flat import CODES, CONSTANT, Flat, Ints, Truths, followed, starts_of

_LONG = 8
_ADD, _SUM, _DOT, _MUL = (CODES[name] for name in ("add", "sum", "dot", "mul"))


@dataclass(frozen=True, eq=False)
class _Terms:
    """What the trees add up: the term's node, its tree's root, whether it is a product, its place among its kind."""

    node: Ints
    root: Ints
    is_product: Truths
    place: Ints
    products: Ints  # of each node that is a root: how many products, how many others
    others: Ints
    begun: Truths  # with a 0, as Python's sum begins


@dataclass(frozen=True, eq=False)
class _Places:
    """Which roots get a dot of their own, and a sum of their own; where roots, dots and sums go in the new graph."""

    two_nodes: Truths
    apart: Truths
    own: Ints
    dot: Ints
    total: Ints


def with_fused_sums(flat: Flat) -> Flat:
    """Every tree of adds that are used once, with the products that are used once, as at most two nodes."""
    adds = (flat.op == _ADD) | (flat.op == _SUM)
    if not adds.any():
        return flat
    used_once, user = _users(flat)
    inner = adds & used_once & adds[user]
    parent = np.where(inner, user, np.arange(flat.size))
    terms = _terms(flat, adds, inner, used_once, followed(parent))
    roots = adds & ~inner
    with_dot = roots & (terms.products >= 1)
    two_nodes = with_dot & (terms.others >= 1)

    apart = two_nodes & (terms.others >= _LONG)  # a sum of their own: read in a row, not gathered beside the dot

    absorbed = inner.copy()
    absorbed[terms.node[terms.is_product]] = True
    new = two_nodes.astype(np.int64) + apart
    own = np.cumsum(~absorbed + new) - 1  # where each node goes; its new dot and sum go just before it
    dot, total = own - new, own - apart

    op = flat.op.copy()
    addends = np.where(apart, 2, terms.others + two_nodes)
    op[roots] = np.where((addends[roots] == 2) & (~terms.begun | apart)[roots], _ADD, _SUM)
    op[with_dot & ~two_nodes] = _DOT
    owner, place, child = _edges(flat, terms, roots, absorbed, _Places(two_nodes, apart, own, dot, total))
    order = np.lexsort((place, owner))

    size = int(own[-1]) + 1
    source = np.zeros(size, np.int64)
    source[own[~absorbed]] = np.flatnonzero(~absorbed)
    new_op, parameters, number = op[source], flat.parameters[source], flat.number[source]
    new_op[dot[two_nodes]], new_op[total[apart]] = _DOT, _SUM
    parameters[own[roots]] = parameters[dot[two_nodes]] = parameters[total[apart]] = 0.0
    return replace(
        flat,
        op=new_op,
        starts=starts_of(np.bincount(owner, minlength=size)),
        children=child[order],
        parameters=parameters,
        number=number,
        inputs=own[flat.inputs],
        outputs=own[flat.outputs],
        guards=own[flat.guards],
    )


def _users(flat: Flat) -> tuple[Truths, Ints]:
    """Which nodes are used once, by another node, and by which."""
    user = np.zeros(flat.size, np.int64)
    user[flat.children] = flat.owners()
    as_child = np.bincount(flat.children, minlength=flat.size)
    return (as_child == 1) & (flat.uses() == 1), user


def _terms(flat: Flat, adds: Truths, inner: Truths, used_once: Truths, root: Ints) -> _Terms:
    owners = flat.owners()
    is_term = adds[owners] & ~inner[flat.children]
    node, of = flat.children[is_term], root[owners[is_term]]
    zero = (flat.op[node] == CONSTANT) & (flat.number[node] == 0.0)
    some_left = np.bincount(of[~zero], minlength=flat.size)
    starting_with_zero = of[zero]
    kept = ~zero | (some_left[of] == 0)  # of nothing but zeros, keep the zeros
    node, of = node[kept], of[kept]
    order = np.argsort(of, kind="stable")  # the adds of a chain have rising numbers: left to right
    node, of = node[order], of[order]
    is_product = (flat.op[node] == _MUL) & used_once[node]
    products = np.bincount(of[is_product], minlength=flat.size)
    begun = np.zeros(flat.size, np.bool_)
    begun[starting_with_zero] = True
    is_product &= (products[of] >= 2) | begun[of]  # a single product stays the node it is
    products = np.bincount(of[is_product], minlength=flat.size)
    others = np.bincount(of[~is_product], minlength=flat.size)
    place = np.zeros(len(node), np.int64)
    for kind, counts in ((is_product, products), (~is_product, others)):
        first = np.cumsum(counts) - counts
        place[kind] = np.arange(np.count_nonzero(kind)) - first[of[kind]]
    return _Terms(node, of, is_product, place, products, others, begun)


def _edges(flat: Flat, terms: _Terms, roots: Truths, absorbed: Truths, places: _Places) -> tuple[Ints, Ints, Ints]:
    """Every child of the new graph: whose it is, in which place, and which node."""
    own, dot, total, two_nodes, apart = places.own, places.dot, places.total, places.two_nodes, places.apart
    owners = flat.owners()
    same = ~absorbed[owners] & ~roots[owners]
    unchanged = own[owners[same]], np.flatnonzero(same), own[flat.children[same]]
    product, of = terms.node[terms.is_product], terms.root[terms.is_product]
    place = terms.place[terms.is_product]
    target = np.where(two_nodes[of], dot[of], own[of])
    left = target, place, own[flat.child(product, 0)]
    right = target, place + terms.products[of], own[flat.child(product, 1)]
    other, of = terms.node[~terms.is_product], terms.root[~terms.is_product]
    place = terms.place[~terms.is_product]
    others = np.where(apart[of], total[of], own[of]), place + (two_nodes & ~apart)[of], own[other]
    both, three = np.flatnonzero(two_nodes), np.flatnonzero(apart)
    dots = own[both], np.zeros(len(both), np.int64), dot[both]
    totals = own[three], np.ones(len(three), np.int64), total[three]
    parts = (unchanged, left, right, others, dots, totals)
    owner, placed, child = (np.concatenate(part) for part in zip(*parts, strict=True))
    return owner, placed, child


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
