"""Pass 5: a level for every node, above those of its children. Nodes of one level do not need each other.

Either as low as can be (all inputs of a sequence are prepared at once), or as high (branches of different length end
together): the passes after this one try both.
"""

from __future__ import annotations

import numpy as np

from gradwalk.compiler.flat import Flat, Ints


def levels(flat: Flat) -> Ints:
    """0 for inputs and constants; plain Python, because a level is known only after those below it."""
    level = [0] * flat.size
    children, starts = flat.children.tolist(), flat.starts.tolist()
    begin = 0
    for node in range(flat.size):
        end = starts[node + 1]
        if end - begin == 2:
            left, right = level[children[begin]], level[children[begin + 1]]
            level[node] = 1 + (left if left > right else right)
        elif end > begin:
            level[node] = 1 + max([level[child] for child in children[begin:end]])
        begin = end
    return np.array(level, np.int64)


def latest_levels(flat: Flat, level: Ints) -> Ints:
    """Every node as high as the nodes that use it allow."""
    top = int(level.max()) + 1 if flat.size else 1
    latest = [top] * flat.size
    children, starts = flat.children.tolist(), flat.starts.tolist()
    end = len(children)
    for node in range(flat.size - 1, -1, -1):
        begin = starts[node]
        if end > begin:
            below = latest[node] - 1
            for child in children[begin:end]:
                if latest[child] > below:
                    latest[child] = below
        end = begin
    return np.array(latest, np.int64)
