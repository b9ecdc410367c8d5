"""The sign of a zero: a guard where an operation would see it, and a program may have another than the function."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gradwalk.compiler.flat import CODES, EXACT, SIGNED, SIGNS, Flat


def with_guarded_signs(flat: Flat, zero: int) -> Flat:
    """Where a program adds up in another order, its 0 may have another sign: what sees that needs more than a 0."""
    if not flat.is_op(*SIGNED).any():
        return flat
    seen = [flat.child(np.flatnonzero(flat.op == CODES[name]), place) for name in SIGNED for place in SIGNED[name]]
    is_given, is_exact = flat.is_op("input", "constant"), flat.is_op("input", "constant", *EXACT)

    def is_the_plain_one(node: int) -> bool:
        """Made of what is given, in one operation that rounds alike."""
        return bool(is_exact[node] and is_given[flat.children[flat.starts[node] : flat.starts[node + 1]]].all())

    asked = [node for node in np.unique(np.concatenate(seen)).tolist() if not is_the_plain_one(node)]
    return replace(
        flat,
        guards=np.concatenate([flat.guards, np.array([(node, zero) for node in asked], np.int64).reshape(-1, 2)]),
        signs=np.concatenate([flat.signs, np.full(len(asked), SIGNS.index("=="), np.int64)]),
        outcomes=np.concatenate([flat.outcomes, np.zeros(len(asked), np.bool_)]),
    )
