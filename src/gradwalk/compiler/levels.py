"""Pass 6: a level for every node, above those of its children. Nodes of one level do not need each other.

Either as low as can be (all inputs of a sequence are prepared at once), or as high (branches of different length end
together): the passes after this one try both.
"""

from __future__ import annotations

import numpy as np

from gradwalk.compiler.flat import CALL, Flat, Ints
from gradwalk.compiler.loops import LOOPS


def levels(flat: Flat) -> Ints:
    """0 for inputs and constants, and for the others one more than the highest of their children."""
    if has_guarded_calls(flat):
        return _levels_after_guards(flat)
    level = np.empty(flat.size, np.int64)
    LOOPS.levels(flat.starts, flat.children, level)
    return level


def has_guarded_calls(flat: Flat) -> bool:
    """Whether the function compared something before it called a function that the program has to call."""
    return bool((flat.given(np.flatnonzero(flat.op == CALL))[:, 1] > 0).any())


def _levels_after_guards(flat: Flat) -> Ints:
    """The same, with every call above what was compared before it: where a guard fails, it must not be made."""
    level = [0] * flat.size
    highest, seen, guards = 0, 0, flat.guards.tolist()
    for node in range(flat.size):
        children = flat.children[flat.starts[node] : flat.starts[node + 1]].tolist()
        if children:
            level[node] = 1 + max(level[child] for child in children)
        if flat.op[node] == CALL:
            for left, right in guards[seen : int(flat.numbers[flat.row[node], 1])]:
                highest, seen = max(highest, level[left], level[right]), seen + 1
            level[node] = max(level[node], 1 + highest)
    return np.array(level, np.int64)


def latest_levels(flat: Flat, level: Ints) -> Ints:
    """Every node as high as the nodes that use it allow."""
    latest = np.full(flat.size, level.max(initial=0) + 1)
    LOOPS.latest_levels(flat.starts, flat.children, latest)
    return latest
