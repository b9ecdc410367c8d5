"""Finite differences: each leaf of a recorded graph is moved a little, and the rows of the table are run again.

What they find is independent of the local gradients, so it checks them. A kink, where no slope exists, is recognised
as one; and where rounding or bending hides the slope, the difference says that it cannot tell.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from gradwalk import engine
from gradwalk.agreement import STEPS, TINY_STEP, contradicted, inaccuracy, is_at_kink, rounding, verdict
from gradwalk.cached_property import cached_property
from gradwalk.ops import OPS, STOPS
from gradwalk.row_ops import COMPOSITES


class Difference(NamedTuple):
    """The slope of the root along one leaf, between x - step and x + step; `left` and `right` are the two halves."""

    leaf: Any
    slope: float
    left: float
    right: float
    step: float
    is_kink: bool = False
    inaccuracy: float = 0.0

    @property
    def gap(self) -> float:
        """Between the slopes on both sides."""
        return self.right - self.left

    @property
    def is_known(self) -> bool:
        """Whether there is a slope to compare with: there is none where the function ends on one side."""
        return not math.isnan(self.slope)

    def relative_error(self, gradient: float, size: float) -> float:
        """How far a gradient is from the slope; `size` is that of the root, which sets how small a slope can be."""
        if gradient == self.slope:
            return 0.0
        return abs(gradient - self.slope) / max(abs(gradient), abs(self.slope), 1e-6 * max(1.0, abs(size)))

    def verdict(self, gradient: float) -> int:
        """1 where the gradient fits, -1 where it does not, 0 where this difference cannot tell."""
        return int(verdict(gradient, self.slope, self.left, self.right, self.is_kink, self.inaccuracy))


class Replay:
    """A recorded graph as a function of its leaves, run by the table's rows on floats, with IEEE results."""

    def __init__(self, root: Any) -> None:
        self.order: list[Any] = engine.topological_order(root)
        place = {node: i for i, node in enumerate(self.order)}
        self.children = [[place[child] for child in node._children] for node in self.order]
        self.place = place
        self.data: list[float] = [node.data for node in self.order]

    @cached_property
    def noise(self) -> float:
        """About how far the root is off because every number on the way was rounded."""
        grads = [0.0] * len(self.order)
        grads[-1] = 1.0
        for i in reversed(range(len(self.order))):
            for child, local_grad in zip(self.children[i], self.order[i]._local_grads, strict=True):
                if grads[i]:
                    grads[child] += local_grad * grads[i]
        parts = (x * grad for x, grad in zip(self.data, grads, strict=True))
        return 4.0 * sys.float_info.epsilon * math.sqrt(sum(part * part for part in parts if abs(part) < 1e150))

    @property
    def is_possible(self) -> bool:
        """Whether every node on the way came from the table; one made by hand cannot be run again."""
        return all(not node._children or node._name in OPS or node._name in COMPOSITES for node in self.order)

    def root_with(self, leaf: Any, number: float) -> float:
        """What the root would be if `leaf` were `number`: only what depends on it is computed again."""
        changed: dict[int, float] = {self.place[leaf]: number}
        for i, node in enumerate(self.order):
            # what passes a stop_gradient counts as a constant, so a change of the leaf must not pass it either
            if any(child in changed for child in self.children[i]) and node._name not in STOPS:
                inputs = [changed.get(child, self.data[child]) for child in self.children[i]]
                changed[i] = _forward(node, inputs)
        return changed.get(len(self.order) - 1, self.data[-1])


def _forward(node: Any, inputs: list[float]) -> float:
    name = node._name
    if name in OPS:
        return float(OPS[name].forward(*inputs, *node._parameters))
    return float(COMPOSITES[name].on(inputs, *node._parameters))


def leaves_of(root: Any) -> list[Any]:
    """The leaves a root was computed from, constants left out, in the order in which they were reached."""
    return [node for node in engine.topological_order(root) if not node._children and not node._constant]


def finite_differences(root: Any, leaves: Sequence[Any] | None = None) -> list[Difference] | None:
    """The slope of `root` along each leaf; None if a node on the way was made by hand.

    >>> x = engine.Value(3.0)
    >>> [difference] = finite_differences(x * x)
    >>> round(difference.slope, 6), difference.verdict(6.0)
    (6.0, 1)
    """
    replay = Replay(root)
    if not replay.is_possible:
        return None
    return [_difference(replay, leaf) for leaf in (leaves_of(root) if leaves is None else leaves)]


def _difference(replay: Replay, leaf: Any) -> Difference:
    # a step fit for x may be far too large or too small for the function, and so may one fit for 1: the one with the
    # smallest error that can be seen is taken
    x = leaf.data
    scales = {1.0, 2.0 ** math.floor(math.log2(abs(x)))} if 0.0 < abs(x) < math.inf else {1.0}

    def measured(*shares: float) -> list[Difference]:
        steps = [scale * share for share in shares for scale in sorted(scales)]
        return [_measured(replay, leaf, step) for step in steps if x - step < x < x + step]

    candidates = measured(*STEPS)
    if not candidates:  # x is infinite or nan
        return Difference(leaf, math.nan, math.nan, math.nan, math.nan)
    best = min(candidates, key=lambda found: found.inaccuracy if found.inaccuracy == found.inaccuracy else math.inf)
    inaccurate = best.inaccuracy
    for other in candidates + measured(TINY_STEP):
        inaccurate = float(contradicted(inaccurate, best.slope, other.slope, other.inaccuracy))
    return best._replace(inaccuracy=inaccurate)


def _measured(replay: Replay, leaf: Any, step: float) -> Difference:
    near, wide = _between(replay, leaf, step), _between(replay, leaf, 2.0 * step)
    rounded = rounding(replay.noise, step)
    is_kink = bool(is_at_kink(near.left, near.right, wide.left, wide.right, rounded))
    inaccurate = inaccuracy(near.slope, wide.slope, near.gap, wide.gap, is_kink, rounded)
    return near._replace(is_kink=is_kink, inaccuracy=float(inaccurate))


def _between(replay: Replay, leaf: Any, step: float) -> Difference:
    x, middle = leaf.data, replay.data[-1]
    below, above = x - step, x + step
    low, high = replay.root_with(leaf, below), replay.root_with(leaf, above)
    return Difference(
        leaf, (high - low) / (above - below), (middle - low) / (x - below), (high - middle) / (above - x), step
    )
