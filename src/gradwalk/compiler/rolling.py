"""All passes in their order: from the flat graph of a trace to the program that replays it."""

from __future__ import annotations

import gc
from dataclasses import replace
from typing import Any

import numpy as np

from gradwalk.compiler.constants import with_folded_constants, with_shared_constants, without_identities
from gradwalk.compiler.dead_code import without_dead_code, without_dead_users
from gradwalk.compiler.flat import CALL, CODES, CONSTANT, EXACT, INPUT, NAMES, ROW_OPS, TARGETED, Flat, Ints, ragged
from gradwalk.compiler.grouping import alike, grouped, with_zero
from gradwalk.compiler.holes import keeping_holes
from gradwalk.compiler.layout import laid_out
from gradwalk.compiler.levels import has_guarded_calls, latest_levels, levels
from gradwalk.compiler.matrices import Group
from gradwalk.compiler.program import Program
from gradwalk.compiler.signs import with_guarded_signs
from gradwalk.compiler.softmaxes import with_softmaxes
from gradwalk.compiler.sources import split_by_source
from gradwalk.compiler.subexpressions import with_shared_subexpressions
from gradwalk.compiler.sums import with_fused_sums, without_lonely
from gradwalk.ops import OPS
from gradwalk.passes import Shared
from gradwalk.row_ops import COMPOSITES

# Groups and instructions are many, and none of them is garbage: looking for some takes longer than making them.
_was_on = False


def _stop_collecting(_: Any) -> None:
    global _was_on
    if gc.isenabled():
        _was_on = True
        gc.disable()


def _go_on_collecting() -> None:
    global _was_on
    if _was_on:
        gc.enable()
        _was_on = False


_uncollected = Shared(_stop_collecting, _go_on_collecting)


@_uncollected()
def rolled_up(flat: Flat, arguments: int = 0) -> Program:
    """The program with as few, as wide instructions as the passes find."""
    flat = with_folded_constants(with_shared_constants(without_dead_code(flat)))
    flat = without_dead_users(with_shared_subexpressions(without_identities(with_shared_constants(flat))))
    flat = with_softmaxes(with_fused_sums(flat))
    flat = without_dead_code(without_lonely(flat, levels(flat)))
    flat, zero = with_zero(flat)
    flat = with_guarded_signs(flat, zero)
    level = levels(flat)
    same = alike(flat, level)
    if not has_guarded_calls(flat):
        same = min(same, alike(flat, latest_levels(flat, level)), key=len)
    groups = keeping_holes(flat, split_by_source(flat, grouped(flat, same, zero)))
    return laid_out(flat, groups, arguments)


def calls_are_exact(flat: Flat) -> bool:
    """Whether what the program calls is given the numbers of the plain function, to the bit.

    A function of one's own may jump anywhere: where sums are added up in another order, it could land on the other
    side, and nobody can tell.
    """
    calls = np.flatnonzero(flat.op == CALL)
    if not len(calls):
        return True
    below = flat.needed_for(flat.children[ragged(flat.starts[calls], flat.counts[calls])])
    is_exact = flat.is_op("input", "constant", "call", *EXACT)
    return bool(is_exact[below].all() and (flat.op[below] == CODES["add"]).sum() <= 1)


@_uncollected()
def step_by_step(flat: Flat, arguments: int = 0) -> Program:
    """The program without reassociation: an instruction for each node, in the order the eager engine walks."""
    flat = with_shared_constants(without_dead_code(flat))
    flat = _with_fixed_takes_as_means(flat)
    groups = [_alone(flat, node) for node in _eager_order(flat) if flat.op[node] not in (INPUT, CONSTANT)]
    program = laid_out(flat, groups, arguments)
    program.exact = True
    return program


def _with_fixed_takes_as_means(flat: Flat) -> Flat:
    """A `take` of a fixed row hands its number on, as the mean of one number does to the bit."""
    fixed = np.flatnonzero((flat.op == CODES["take"]) & (flat.counts == 1))
    if not len(fixed):
        return flat
    op = flat.op.copy()
    op[fixed] = CODES["mean"]
    return replace(flat, op=op)


def _eager_order(flat: Flat) -> list[int]:
    """Left-first, depth-first from each result, then from each guard: as Value._topological_order."""
    children, starts = flat.children.tolist(), flat.starts.tolist()
    order: list[int] = []
    cursor: list[int] = starts[:-1]
    seen = bytearray(flat.size)
    for root in (*flat.outputs.tolist(), *flat.guards.ravel().tolist()):
        if seen[root]:
            continue
        seen[root] = 1
        path = [root]
        while path:
            node = path[-1]
            if cursor[node] == starts[node + 1]:
                order.append(node)
                path.pop()
                continue
            child = children[cursor[node]]
            cursor[node] += 1
            if not seen[child]:
                seen[child] = 1
                path.append(child)
    return order


def _alone(flat: Flat, node: int) -> Group:
    name = NAMES[flat.op[node]]
    nodes: Ints = np.array([[node]])
    row = flat.children[flat.starts[node] : flat.starts[node + 1]].reshape(1, -1)
    parameters = flat.numbers[flat.row[node]].tolist()
    if name in OPS:
        return Group(name, nodes, tuple(row.T[:, :, None]), tuple(parameters[: len(OPS[name].parameters)]))
    if name == "dot":
        return Group(name, nodes, (row[:, : row.size // 2], row[:, row.size // 2 :]))
    if name == "take":
        return Group(name, nodes, (row[:, 1:].T, row[:, :1]))
    if name in TARGETED:
        return Group(name, nodes, (row[:, :-1], row[:, -1:]))
    if name in ROW_OPS:  # one entry of the row: which one is its last parameter
        own = parameters[1 : 1 + len(COMPOSITES[name].parameters)]
        return Group(name, nodes, (row,), (*own, parameters[0]))
    given = 2 if name == "call" else len(COMPOSITES[name].parameters)
    return Group(name, nodes, (row,), tuple(parameters[:given]))
