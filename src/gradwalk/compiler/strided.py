"""Tables of slot numbers as nested loops: a matrix of slots that is regular in more than two directions."""

from __future__ import annotations

import numpy as np

from gradwalk.compiler.flat import Ints

Loop = tuple[int, int]  # how often, and how many slots further each time


def nested_loops(slots: Ints) -> list[Loop] | None:
    """The loops, the outermost first, that go through these slots in their order from the first; None if none do.

    >>> nested_loops(np.array([[0, 1, 10, 11], [5, 6, 15, 16]]))
    [(2, 5), (2, 10), (2, 1)]
    """
    heads = slots.ravel()
    loops: list[Loop] = []
    while len(heads) > 1:
        steps = np.diff(heads)
        breaks = np.flatnonzero(steps != steps[0])
        count = int(breaks[0]) + 1 if len(breaks) else len(heads)
        if count == 1 or len(heads) % count or steps[0] < 0:
            return None
        turns = heads.reshape(-1, count)
        if not (turns - turns[:, :1] == turns[0] - turns[0, 0]).all():
            return None
        loops.append((count, int(steps[0])))
        heads = turns[:, 0]
    return loops[::-1]
