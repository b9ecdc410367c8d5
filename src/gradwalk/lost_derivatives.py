"""Results that have lost their derivative, and are told of.

They were found by comparing (bisection), hold at one point only (`if x == 0`), are rounded, or an error was caught.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gradwalk import engine
from gradwalk.errors import GradwalkWarning, Refusals, refusals
from gradwalk.own_files import is_own
from gradwalk.structure import ARRAY, Key

# A search compares an argument again and again; a single comparison is a branch, and loses nothing.
SEARCH = 10
MOST_COMPARISONS = 1000  # that are looked at: each keeps a part of the graph alive
ROUNDED = "round"  # the op of a number rounded to so many digits, which has no history
ROUNDING = ("floor", "ceil")  # the operations that a rounded number is made by, where it has one
MOST_NODES = 1000  # that are looked at for a rounding: it is among the last things a function does


class Comparisons:
    """The Values of that class that are compared, the first so many of them."""

    __slots__ = "cls", "equal", "sides", "told_too"

    def __init__(self, cls: Any, told_before: Callable[..., Any] | None) -> None:
        around = told_before and getattr(told_before, "__self__", None)
        # of what a derivative inside compares, that one tells: if it is constant, it has lost nothing
        self.told_too: Callable[..., Any] | None = around.told_too if isinstance(around, Comparisons) else told_before
        self.cls = cls
        self.sides: list[Any] = []
        self.equal: list[Any] = []  # those of them that were asked whether they are, and were

    def remember(self, left: Any, right: Any, sign: str, outcome: bool) -> None:
        """The hook: whoever was told before is told, too."""
        if self.told_too is not None:
            self.told_too(left, right, sign, outcome)
        if len(self.sides) < 2 * MOST_COMPARISONS:
            self.sides += (left, right)
            if are_equal(sign, outcome) and left is not right:
                self.equal += (left, right)

    def warn(self, what: str, root: Any, inputs: Sequence[Any], names: Sequence[str]) -> None:
        """Once, of an input that the root should depend on, if it is found by comparing, and does not."""
        reached = set(engine.topological_order(root))
        below: dict[Any, int] = {leaf: 1 << i for i, leaf in enumerate(inputs) if leaf not in reached}
        compared, self.sides = [side for side in self.sides if type(side) is self.cls], []
        equal, self.equal = [side for side in self.equal if type(side) is self.cls], []
        if not below or not compared:
            return
        for node in engine.topological_order(self.cls(0.0, compared, "compared", local_grads=[0.0] * len(compared))):
            mask = functools.reduce(lambda mask, child: mask | below.get(child, 0), node._children, 0)
            if mask:
                below[node] = mask
        for i, name in enumerate(names):
            times = sum(below.get(node, 0) >> i & 1 for node in compared)
            if times >= SEARCH:
                warn_of_search(what, name, times)
                return
            if any(below.get(node, 0) >> i & 1 for node in equal):
                warn_of_equal(what, name)
                return


def are_equal(sign: str, outcome: bool) -> bool:
    """Whether a comparison tells that its sides are equal: if they are computed, that is so at this point only."""
    return outcome if sign == "==" else sign == "!=" and not outcome


def warn_of_equal(what: str, name: str) -> None:
    _warn(
        f"{what}: the result does not depend on {name}, because it was compared by ==, and was equal: a branch that "
        "is taken at a single point has no derivative; ask beside that point, or return something that depends on it"
    )


def warn_of_search(what: str, name: str, times: int) -> None:
    _warn(
        f"{what}: the result does not depend on {name}, which was compared with {times} times, but not computed "
        "with: a search by comparing, as bisection, has no derivative; give its result to gradwalk.implicit_root, "
        "which has one"
    )


def warn_of_rounding(what: str, root: Any, inputs: Sequence[Any]) -> None:
    """Where every derivative is 0: if the root depends on the inputs through what was rounded alone."""
    ends, seen, ahead, rounded = set(inputs), {root}, [root], False
    while ahead:
        node = ahead.pop()
        if node in ends or len(seen) > MOST_NODES:
            return
        if node._op == ROUNDED or node._name in ROUNDING:
            rounded = True
            continue
        ahead += (child for child in node._children if child not in seen)
        seen.update(node._children)
    if rounded:
        warn_of_rounded(what)


def warn_of_rounded(what: str) -> None:
    _warn(
        f"{what}: the derivative is 0, because the result is rounded; differentiate the function without its "
        "round(), floor() or ceil(), and round what comes out"
    )


def warn_of_caught(what: str, before: Refusals, keys: Iterable[Key]) -> None:
    """Where a function of arguments with these keys has come to an end, and caught what floats do not meet."""
    now = refusals()
    unlike_numpys = now.unlike_numpys != before.unlike_numpys and _has_arrays(tuple(keys))
    if not unlike_numpys and now.unlike_floats == before.unlike_floats:
        return
    _warn(
        f"{what}: a number was refused where floats are not, as in math.exp(v), float(v) or np.log(-v), and the "
        "function caught the error: what it does then is not what it does with floats; use gradwalk.math, "
        "gradwalk.numpy.everywhere() around code that is not to be touched, or gradwalk.ieee() for infinities and nan"
    )


def _has_arrays(key: Any) -> bool:
    return key is ARRAY or (isinstance(key, tuple) and any(map(_has_arrays, key)))


def _warn(message: str) -> None:
    """At the line of the user's that asked for the derivative, however deep below it this is."""
    frame, level = sys._getframe(2), 3
    while frame.f_back is not None and not is_own(frame.f_code.co_filename):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, GradwalkWarning, stacklevel=level)
