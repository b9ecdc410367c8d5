"""Pass 1: drop the nodes that neither a result nor a guard depends on. Inputs stay: calls fill them in order."""

from __future__ import annotations

import numpy as np

from gradwalk.compiler.flat import Flat, ragged

_NARROW = 64  # below so many nodes at a time, plain Python is faster than NumPy


def without_dead_code(flat: Flat) -> Flat:
    """Nodes nobody uses go, then those that only they used, and so on: each node is looked at once."""
    uses = flat.uses()
    uses[flat.inputs] += 1
    live = np.ones(flat.size, np.bool_)
    unused = np.flatnonzero(uses == 0)
    while len(unused) > _NARROW:
        live[unused] = False
        freed = flat.children[ragged(flat.starts[unused], flat.counts[unused])]
        np.subtract.at(uses, freed, 1)
        candidates = np.unique(freed)
        unused = candidates[uses[candidates] == 0]
    waiting = unused.tolist()
    while waiting:
        node = waiting.pop()
        live[node] = False
        for child in flat.children[flat.starts[node] : flat.starts[node + 1]].tolist():
            uses[child] -= 1
            if uses[child] == 0:
                waiting.append(child)
    return flat if live.all() else flat.only(live)
