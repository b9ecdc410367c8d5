"""Pass 3: nodes with the same operation, parameters and children become one; not calls, which may draw numbers."""

from __future__ import annotations

import numpy as np

from gradwalk.compiler.flat import CALL, NAMES, Flat
from gradwalk.compiler.loops import LOOPS


def with_shared_subexpressions(flat: Flat) -> Flat:
    """The first of equal nodes is used in place of the others."""
    doing = flat.op + len(NAMES) * flat.row.astype(np.int64)
    calls = np.flatnonzero(flat.op == CALL)
    doing[calls] = -1 - calls  # each something else
    first = np.empty(flat.size, np.int64)
    repeated = LOOPS.first_equals(flat.starts, flat.children, first, doing)
    return flat.with_uses_of(first) if repeated else flat
