"""The backward pass as a sequence of steps that can be taken forward and back: `walk(root)`.

The numbers are those of `backward()`, to the bit, but the nodes' own gradients stay as they are unless
`write_gradients()` is called. The wrong modes make the well-known mistakes on purpose, to show where they go wrong.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from gradwalk import engine
from gradwalk.errors import refuse_backward
from gradwalk.interface import number_of
from gradwalk.passes import THE_PASS
from gradwalk.reference import contribution

# What each mode does differently. "right" is what backward() does.
MODES: dict[str, str] = {
    "right": "each node hands its gradient on once it has it all: after every node that was computed from it",
    "breadth_first": "each node hands on what it has when a breadth-first search from the root reaches it",
    "no_order": "the nodes hand on in the order they were recorded, children before parents; nothing is reversed",
    "assign": "a child's gradient is set (=) to the contribution, not increased (+=) by it",
    "not_reset": "a second pass: interior gradients still hold what the pass before left, leaves are as they were",
}


class Contribution(NamedTuple):
    """What one child got in one step: local_grad × upstream = product, and its gradient before and after."""

    child: Any
    local_grad: float | None  # None: the node's _backward was written by hand, and only its effect is known
    upstream: float
    product: float
    before: float
    after: float


@dataclass(frozen=True)
class Step:
    """One node handing its gradient on; the first step is the seed, in which the root gets its gradient of 1."""

    index: int
    node: Any
    upstream: float
    contributions: tuple[Contribution, ...]
    is_seed: bool = False

    @property
    def shown(self) -> tuple[Contribution, ...]:
        """Its contributions to anything but constants: those that are steps of their own where they are shown."""
        return tuple(given for given in self.contributions if self.is_seed or not given.child._constant)


class Walk:
    """The steps of a backward pass from `root`, computed when they are asked for.

    `next()`, `back()` and `seek(position)` move; `grad(node)` is a node's gradient where the walk stands. Indexing
    and iterating give the steps without moving.

    >>> from gradwalk import Value
    >>> x = Value(3.0, label="x")
    >>> walking = Walk(x * x)
    >>> walking.next().node is walking.root, walking.next().contributions[1].after, walking.next()
    (True, 6.0, None)
    >>> walking.back().contributions[1].before, walking.grad(x)
    (3.0, 0.0)
    """

    def __init__(self, root: Any, mode: str = "right", fresh: bool = False) -> None:
        if mode not in MODES:
            raise ValueError(f"walk: expected a mode of {', '.join(MODES)}; got {mode!r}")
        self.root, self.mode, self.fresh = root, mode, fresh
        self.order: list[Any] = engine.topological_order(root)
        self._place = {node: place for place, node in enumerate(self.order)}
        self._visits = self._visiting_order()
        self._steps: list[Step] = []
        self.forward_steps = sum(1 for node in self.order if node._children)
        self._numbers = [self.forward_steps + 1]  # of each step, then of the first that is not computed yet
        self._furthest = self._starting_gradients()  # after every step computed so far
        self._here = list(self._furthest)  # where the walk stands
        self.position = 0  # how many steps have been taken
        self._right: Walk | None = None
        self._right_index: dict[Any, int] = {}

    # ---------------------------------------------------------------- moving

    def next(self) -> Step | None:
        """Take the next step and return it; None at the end."""
        if self.position == len(self):
            return None
        step = self[self.position]
        for given in step.contributions:
            self._here[self._place[given.child]] = given.after
        self.position += 1
        return step

    def back(self) -> Step | None:
        """Take the last step back and return it; None at the start."""
        if self.position == 0:
            return None
        self.position -= 1
        step = self._steps[self.position]
        for given in reversed(step.contributions):
            self._here[self._place[given.child]] = given.before
        return step

    def seek(self, position: int) -> None:
        """Stand where `position` steps have been taken; negative counts from the end, as in a list."""
        wanted = position + len(self) + 1 if position < 0 else position
        if not 0 <= wanted <= len(self):
            raise IndexError(f"seek: expected a position from 0 to {len(self)}, got {position}")
        while self.position < wanted:
            self.next()
        while self.position > wanted:
            self.back()

    def grad(self, node: Any) -> float:
        """The gradient of a node where the walk stands."""
        if node not in self._place:
            raise ValueError(f"grad: expected a node of this walk, got {node!r}")
        return self._here[self._place[node]]

    def gradients(self) -> dict[Any, float]:
        """The gradient of every node where the walk stands."""
        return dict(zip(self.order, self._here, strict=True))

    def write_gradients(self) -> None:
        """Give the nodes the gradients they have where the walk stands: at the end, those of backward()."""
        for node, grad in zip(self.order, self._here, strict=True):
            node.grad = grad

    # ---------------------------------------------------------------- the steps

    def __len__(self) -> int:
        return len(self._visits) + 1

    def __getitem__(self, index: int) -> Step:
        wanted = index + len(self) if index < 0 else index
        if not 0 <= wanted < len(self):
            raise IndexError(f"walk: expected a step from 0 to {len(self) - 1}, got {index}")
        while len(self._steps) <= wanted:
            self._steps.append(self._computed(len(self._steps)))
            self._numbers.append(self._numbers[-1] + len(self._steps[-1].shown))
        return self._steps[wanted]

    def __iter__(self) -> Iterator[Step]:
        return (self[index] for index in range(len(self)))

    def __repr__(self) -> str:
        mode = "" if self.mode == "right" else f", mode={self.mode!r}"
        return f"<walk of {len(self.order):,} nodes, {self.position} of {len(self):,} steps taken{mode}>"

    # ---------------------------------------------------------------- numbers, as they are shown

    # The terminal and the page count alike: each node that is computed is a step, then the seed, then each contribution
    # to anything but a constant. The page does so in engine.js.

    def number(self, step: Step) -> int:
        """The number of a step's first contribution; the next ones have the next numbers."""
        return self._numbers[step.index]

    @property
    def last_number(self) -> int:
        """How many steps there are, as they are shown."""
        return self._numbers[self[-1].index + 1] - 1  # all are computed then

    def numbered(self, number: int) -> tuple[Step, int]:
        """The step of the backward pass that has this number, and which of the contributions shown it is."""
        if not self.forward_steps < number <= self.last_number:
            raise IndexError(
                f"walk: expected a number from {self.forward_steps + 1} to {self.last_number}, got {number}"
            )
        index = bisect_right(self._numbers, number) - 1
        return self[index], number - self._numbers[index]

    def _computed(self, index: int) -> Step:
        if index == 0:
            return Step(0, self.root, 1.0, (self._seed(),), is_seed=True)
        node = self._visits[index - 1]
        if is_hand_written(node):
            contributions = self._observed(node)
        else:
            if len(node._local_grads) < len(node._children):
                refuse_backward(node)
            contributions = self._contributions(node)
        return Step(index, node, contributions[0].upstream if contributions else self._at(node), contributions)

    def _at(self, node: Any) -> float:
        return self._furthest[self._place[node]]

    def _seed(self) -> Contribution:
        before = self._at(self.root)
        # with leftovers in it, the root has to be set, as micrograd does
        is_set = self.mode == "assign" or (self.mode == "not_reset" and self.root._children)
        after = 1.0 if is_set else before + 1.0
        self._furthest[self._place[self.root]] = after
        return Contribution(self.root, 1.0, 1.0, 1.0, before, after)

    def _contributions(self, node: Any) -> tuple[Contribution, ...]:
        """The rule: child.grad += local_grad * node.grad."""
        grads, place, found = self._furthest, self._place, []
        upstream = grads[place[node]]
        for child, local_grad in zip(node._children, node._local_grads, strict=True):
            before, product = grads[place[child]], contribution(local_grad, upstream, node._name)
            after = product if self.mode == "assign" else before + product
            grads[place[child]] = after
            found.append(Contribution(child, local_grad, upstream, product, before, after))
        return tuple(found)

    def _observed(self, node: Any) -> tuple[Contribution, ...]:
        """What a `_backward` written by hand does to the children: it is run on lent gradients, then undone."""
        children = list(dict.fromkeys(node._children))
        lent = [node, *children]
        upstream, before = self._at(node), [self._at(child) for child in children]
        with engine.taking_turns(), THE_PASS.lock:
            own = [each.grad for each in lent]
            try:
                for each in lent:
                    each.grad = self._at(each)
                node._backward()
                after = [float(child.grad) for child in children]
            finally:
                for each, grad in zip(lent, own, strict=True):
                    each.grad = grad
        for child, grad in zip(children, after, strict=True):
            self._furthest[self._place[child]] = grad
        return tuple(
            Contribution(child, None, upstream, new - old, old, new)
            for child, old, new in zip(children, before, after, strict=True)
        )

    # ---------------------------------------------------------------- the modes

    def _visiting_order(self) -> list[Any]:
        """The nodes that have something to hand on, in the order in which they do."""
        if self.mode == "breadth_first":
            found = {self.root: None}
            queue = [self.root]
            for node in queue:  # it grows on the way
                new = [child for child in dict.fromkeys(node._children) if child not in found]
                found.update(dict.fromkeys(new))
                queue += new
        else:
            queue = self.order if self.mode == "no_order" else self.order[::-1]
        return [node for node in queue if node._children or is_hand_written(node)]

    def _starting_gradients(self) -> list[float]:
        """Leaves accumulate over passes; what was computed on the way starts afresh, if nobody forgets it."""
        grads = [number_of(node.grad) for node in self.order]  # all of them: being compiled, nobody may read any
        starts_afresh = [self.fresh or node._children or node._constant for node in self.order]
        start = [0.0 if afresh else grad for afresh, grad in zip(starts_afresh, grads, strict=True)]
        if self.mode == "not_reset":
            first = Walk(self.root, fresh=self.fresh)
            first.seek(-1)
            start = [first.grad(node) if node._children else start[i] for i, node in enumerate(self.order)]
        return start

    # ---------------------------------------------------------------- where a wrong mode goes wrong

    @property
    def right(self) -> Walk:
        """The right walk of the same graph."""
        if self.mode == "right":
            return self
        if self._right is None:
            self._right = Walk(self.root, fresh=self.fresh)
            self._right_index = {node: index for index, node in enumerate(self._right._visits, start=1)}
        return self._right

    def right_step(self, step: Step) -> Step:
        """The step in which the same node hands its gradient on in the right walk."""
        right = self.right
        return right[step.index if step.is_seed or right is self else self._right_index[step.node]]

    def differs(self, step: Step) -> bool:
        """Whether a step goes wrong: its node hands on another gradient than it should, or leaves a child a wrong one.

        The order of a sum is no mistake, so in the modes with another order a last bit does not count, nor does what
        a child has got so far.
        """
        right = self.right_step(step)
        if self.mode in ("assign", "not_reset"):
            pairs = zip(step.contributions, right.contributions, strict=True)
            afters = [(ours.after, theirs.after) for ours, theirs in pairs]
            return any(not _same(*pair, tolerance=0.0) for pair in [(step.upstream, right.upstream), *afters])
        return not _same(step.upstream, right.upstream, tolerance=1e-9)

    @property
    def first_difference(self) -> int | None:
        """The index of the first step that goes wrong; None if there is none, as always in the right mode.

        >>> from gradwalk import Value
        >>> x = Value(3.0)
        >>> Walk(x * x * x, mode="not_reset").first_difference
        1
        """
        return None if self.mode == "right" else next((step.index for step in self if self.differs(step)), None)

    @property
    def first_wrong_number(self) -> int | None:
        """The number of the first contribution that goes wrong; None if there is none."""
        if self.first_difference is None:
            return None
        step = self[self.first_difference]
        right = self.right_step(step)
        if not _same(step.upstream, right.upstream, tolerance=0.0):
            return self.number(step)
        pairs = zip(step.shown, right.shown, strict=True)
        wrong = (i for i, (ours, theirs) in enumerate(pairs) if not _same(ours.after, theirs.after, tolerance=0.0))
        return self.number(step) + next(wrong, 0)


def walk(root: Any, mode: str = "right", *, fresh: bool = False) -> Walk:
    """The backward pass from `root` as a sequence of steps: the seed, then each node with its contributions.

    Leaves go on from the gradient they have, as with backward(); with `fresh`, from 0, as after zero_grad().

    >>> from gradwalk import Value
    >>> a, b = Value(2.0, label="a"), Value(-3.0, label="b")
    >>> for step in walk(a * b):
    ...     for child, local_grad, upstream, product, before, after in step.contributions:
    ...         print(child.label or "root", local_grad, "*", upstream, "=", product)
    root 1.0 * 1.0 = 1.0
    a -3.0 * 1.0 = -3.0
    b 2.0 * 1.0 = 2.0
    """
    return Walk(root, mode, fresh)


def is_hand_written(node: Any) -> bool:
    """Whether a `_backward` was assigned to the node, as in micrograd's own operations."""
    return bool(node._backward != node._push)


def _same(ours: float, theirs: float, tolerance: float) -> bool:
    if math.isnan(ours) or math.isnan(theirs):
        return math.isnan(ours) and math.isnan(theirs)
    return ours == theirs or abs(ours - theirs) <= tolerance * max(abs(ours), abs(theirs))
