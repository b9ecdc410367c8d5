"""Pass 1: drop the nodes that neither a result nor a guard depends on. Inputs stay: calls fill them in order."""

from __future__ import annotations

import numpy as np

from gradwalk.compiler.flat import Flat, Ints, Truths
from gradwalk.compiler.loops import LOOPS


def without_dead_code(flat: Flat) -> Flat:
    """The nodes that are needed, in their order."""
    live = needed_for(flat, flat.roots())
    return flat if live.all() else flat.only(live)


def needed_for(flat: Flat, nodes: Ints) -> Truths:
    """Which nodes these depend on; they themselves are among them."""
    needed = np.zeros(flat.size, np.bool_)
    needed[nodes] = True
    LOOPS.mark_needed(flat.starts, flat.children, needed)
    return needed
