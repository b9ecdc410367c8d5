"""Pass 9: a long group that reads from several places at once is split by where it reads.

Two loops may do the same operation on one level; together they would gather entry by entry what each alone reads in a
row. Short groups stay together: an instruction more costs as much as gathering some dozens of entries.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradwalk.compiler.flat import CONSTANT, Flat, Ints
from gradwalk.compiler.loops import same_rows
from gradwalk.compiler.matrices import NOBODY, Group
from gradwalk.ops import OPS

_LONG = 64  # entries worth an instruction of their own
_MANY = 8  # sources: more than that is no pattern, but a tangle
_LEAF, _FIXED = -1, -2


def split_by_source(flat: Flat, groups: Sequence[Group]) -> list[Group]:
    """The groups, long ones of the table's operations split where every part is long."""
    if not any(map(_is_long, groups)):
        return list(groups)
    source = np.where(flat.op == CONSTANT, _FIXED, _LEAF)
    nodes = np.concatenate([group.nodes.ravel() for group in groups])
    of = np.repeat(np.arange(len(groups)), [group.nodes.size for group in groups])
    source[nodes[nodes != NOBODY]] = of[nodes != NOBODY]
    made: list[Group] = []
    sources = len(groups)
    for group in groups:
        parts = _parts(source, group) if _is_long(group) else [group]
        if len(parts) > 1:
            for number, part in enumerate(parts, sources):
                source[part.nodes] = number
            sources += len(parts)
        made += parts
    return made


def _is_long(group: Group) -> bool:
    return group.nodes.size >= 2 * _LONG and group.op in OPS


def _parts(source: Ints, group: Group) -> list[Group]:
    sources, which = same_rows(np.hstack([source[operand] for operand in group.operands]))
    if not 1 < len(sources) <= _MANY or np.bincount(which).min() < _LONG:
        return [group]
    parts = (which == number for number in range(len(sources)))
    return [
        Group(group.op, group.nodes[part], tuple(operand[part] for operand in group.operands), group.parameters)
        for part in parts
    ]
