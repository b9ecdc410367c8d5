"""Pass 3: nodes with the same operation, parameters and children become one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gradwalk.compiler.flat import CONSTANT, INPUT, Flat, Ints, followed, ragged

_ROUNDS = 16  # a chain of duplicates is merged by one node a round; what is left is right, only slower

Hashes = npt.NDArray[np.uint64]


def with_shared_subexpressions(flat: Flat) -> Flat:
    """The first of equal nodes is used in place of the others."""
    candidates = np.flatnonzero((flat.op != INPUT) & (flat.op != CONSTANT))
    if not len(candidates):
        return flat
    counts = flat.counts[candidates]
    edges = ragged(flat.starts[candidates], counts)
    place = ragged(np.zeros_like(counts), counts)
    fixed = _hash_of(flat, candidates, counts)
    instead = np.arange(flat.size)
    for _ in range(_ROUNDS):
        children = instead[flat.children]
        mixed = _mixed(children[edges].astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + place.astype(np.uint64))
        # the stretches of one node after the other: differences of a running total (it wraps around, as hashes may)
        total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)])
        ends = np.cumsum(counts)
        merged = _first_of_equals(flat, candidates, children, fixed + total[ends] - total[ends - counts])
        if np.array_equal(instead[candidates], merged):
            break
        instead[candidates] = merged
        instead = followed(instead)
    return flat.with_uses_of(instead)


def _mixed(x: Hashes) -> Hashes:
    x = (x ^ (x >> np.uint64(31))) * np.uint64(0x7FB5D329728EA185)
    return np.asarray(x ^ (x >> np.uint64(27)))


def _hash_of(flat: Flat, nodes: Ints, counts: Ints) -> Hashes:
    """What does not change from round to round: the operation, the parameters, the number of children."""
    bits = np.ascontiguousarray(flat.parameters[nodes]).view(np.uint64).reshape(-1, 2)
    mixed = np.zeros(len(nodes), np.uint64)
    for fact in (flat.op[nodes].astype(np.uint64), bits[:, 0], bits[:, 1], counts.astype(np.uint64)):
        mixed = _mixed((mixed ^ fact) * np.uint64(0x9E3779B97F4A7C15))
    return mixed


def _first_of_equals(flat: Flat, nodes: Ints, children: Ints, hashes: Hashes) -> Ints:
    """For each node the first one equal to it; the hashes say which may be."""
    _, first, place = np.unique(hashes, return_index=True, return_inverse=True)
    merged = nodes[first[place.ravel()]]
    doubles = np.flatnonzero(merged != nodes)
    # compared child by child, because different nodes may have one hash by chance
    ours, theirs = nodes[doubles], merged[doubles]
    bits = np.ascontiguousarray(flat.parameters).view(np.int64)
    counts = flat.counts
    same = (flat.op[ours] == flat.op[theirs]) & (counts[ours] == counts[theirs])
    same &= (bits[ours] == bits[theirs]).all(axis=1)
    merged[doubles[~same]] = nodes[doubles[~same]]
    doubles, ours, theirs = doubles[same], ours[same], theirs[same]
    count = counts[ours]
    differs = children[ragged(flat.starts[ours], count)] != children[ragged(flat.starts[theirs], count)]
    wrong = np.unique(np.repeat(doubles, count)[differs])
    merged[wrong] = nodes[wrong]
    return merged
