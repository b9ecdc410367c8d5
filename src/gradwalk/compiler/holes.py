"""Pass 10: what is made of a rectangle with holes, number by number and with constants, keeps the holes.

So the rectangle is read as it lies, and not gathered; what comes out in the holes, nobody reads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gradwalk.compiler.flat import CONSTANT, Flat, Ints
from gradwalk.compiler.matrices import NOBODY, Group
from gradwalk.ops import OPS

_LINEAR = frozenset({"add", "sub", "mul", "div", "neg"})  # which make nothing infinite of what is in a hole


def keeping_holes(flat: Flat, groups: Sequence[Group]) -> list[Group]:
    """The groups, those that read all entries of rectangles with holes in the same shape."""
    if not any(group.op not in OPS and (group.nodes == NOBODY).any() for group in groups):
        return list(groups)  # as mostly: only products and rows are made with holes
    made: list[Group] = []
    source = np.full(flat.size, NOBODY)
    for number, group in enumerate(groups):
        made.append(_with_holes(flat, group, made, source) if group.op in _LINEAR else group)
        source[made[-1].nodes[made[-1].nodes != NOBODY]] = number
    return made


def _with_holes(flat: Flat, group: Group, before: Sequence[Group], source: Ints) -> Group:
    fixed = [_constant(flat, operand) for operand in group.operands]
    if fixed.count(None) != 1 or 0.0 in fixed[1:] or (group.op == "div" and fixed[0] is not None):
        return group
    moving = group.operands[fixed.index(None)].ravel()
    rectangle = _rectangle(source[moving], before)
    if rectangle is None or np.count_nonzero(rectangle != NOBODY) != len(moving):
        return group
    is_hole = rectangle == NOBODY
    lengths = rectangle.shape[1] - np.count_nonzero(is_hole, axis=1)
    if lengths.min() < 1 or lengths.max() < 2 or (is_hole != (np.arange(rectangle.shape[1]) >= lengths[:, None])).any():
        return group
    order = np.argsort(moving, kind="stable")
    place = order[np.searchsorted(moving[order], rectangle[~is_hole])]
    if not np.array_equal(moving[place], rectangle[~is_hole]):
        return group  # an entry is read twice
    nodes = rectangle.copy()
    nodes[~is_hole] = group.nodes.ravel()[place]
    operands = tuple(
        rectangle if constant is None else np.full(rectangle.shape, operand.flat[0])
        for operand, constant in zip(group.operands, fixed, strict=True)
    )
    return Group(group.op, nodes, operands, group.parameters, lengths)


def _constant(flat: Flat, operand: Ints) -> float | None:
    """The one finite number that it is, or None."""
    node = operand[0, 0]
    if flat.op[node] != CONSTANT or (operand != node).any():
        return None
    number = float(flat.numbers[flat.row[node], 0])
    return number if math.isfinite(number) else None


def _rectangle(numbers: Ints, groups: Sequence[Group]) -> Ints | None:
    """These groups one under the other, if they follow each other, are equally wide and have holes."""
    first, last = int(numbers.min()), int(numbers.max())
    if first == NOBODY:
        return None
    parts = [group.nodes for group in groups[first : last + 1]]
    if len({part.shape[1] for part in parts}) > 1 or not any((part == NOBODY).any() for part in parts):
        return None
    return np.vstack(parts) if len(np.unique(numbers)) == len(parts) else None
