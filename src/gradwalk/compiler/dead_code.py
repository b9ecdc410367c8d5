"""Pass 1: drop the nodes that neither a result nor a guard depends on. Inputs stay: calls fill them in order."""

from __future__ import annotations

from gradwalk.compiler.flat import Flat


def without_dead_code(flat: Flat) -> Flat:
    """The nodes that are needed, in their order."""
    return flat if flat.live.all() else flat.only(flat.live)


def without_dead_users(flat: Flat) -> Flat:
    """The same, but constants that nobody needs may stay: they keep nothing else alive, and seldom are many."""
    return without_dead_code(flat) if flat.counts[~flat.live].any() else flat
