"""What is different inside a `with` block: no recording, IEEE numbers, a scope, functions that are told what happens.

All of it is one named tuple in a variable of the running context, so that every thread and every asyncio task has its
own, and nothing can be half set. `control.py` and `scopes.py` have the blocks for users.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, NamedTuple


class Modes(NamedTuple):
    """What is in force. The first six and the last two are read by native/value/modes.c too, by position."""

    no_grad: bool = False
    on_record: Callable[[Any], Any] | None = None  # told of every recorded node
    on_compare: Callable[[Any, Any, str, bool], Any] | None = None  # of every comparison: left, right, sign, outcome
    # of every Value whose numbers are read or set, and "data" or "text" where they become that; for .data, its stand-in
    on_read: Callable[[Any, str], Any] | None = None
    on_construct: Callable[[Any], Any] | None = None  # of every node made by hand, with `Value(data, children)`
    scope: int = 0
    ieee: bool = False
    watched: bool = False  # each operation has to be seen by itself, which a program does not show
    derivatives: int = 0  # how many derivatives of one another are being taken
    trace: Any = None  # the run of a function that is being compiled, which is told of all that it does
    detector: Any = None  # of detect_nonfinite()
    everywhere: bool = False  # NumPy makes arrays that accept Values
    changes: dict[str, Any] | None = None  # what the innermost block has changed
    around: Modes | None = None  # what was in force around it


VARIABLE: ContextVar[Modes] = ContextVar("gradwalk.modes", default=Modes())  # noqa: B039  # immutable
current = VARIABLE.get


class Change:
    """Inside, these modes are as given, and the others as they were. The native engine has one like it, in C, which no
    signal's exception can come in between of."""

    _token: Any = None

    def __init__(self, **changes: Any) -> None:
        self.changes = changes

    def __enter__(self) -> None:
        if self._token is not None:
            raise RuntimeError("expected a new `with` block, got one that is being used already")
        before = current()
        self._after = _with(before, self.changes)
        try:
            self._token = VARIABLE.set(self._after)
        except BaseException:  # raised by a signal handler, when it was set already
            VARIABLE.set(before)
            raise

    def __exit__(self, *_: object) -> None:
        if self._token is None:
            return
        now = current()
        if now is not self._after:  # blocks that began in it are still there, or it is another context
            VARIABLE.set(_without(now, self._after))
        else:
            try:
                VARIABLE.reset(self._token)
            except ValueError:  # a copy of the context
                VARIABLE.set(self._after.around or Modes())
        self._token = None  # at last: what a signal handler interrupts is done when the block is dropped

    def __del__(self) -> None:
        self.__exit__()


def _with(before: Modes, changes: dict[str, Any]) -> Modes:
    return before._replace(**{**changes, "changes": changes, "around": before})


def _without(now: Modes, block: Modes) -> Modes:
    """What would be in force without that block: those that began in it begin again around it."""
    kept = []
    at: Modes | None = now
    while at is not None and at.changes is not block.changes:
        kept.append(at)
        at = at.around
    if at is None or at.around is None:  # it is not in force here
        return now
    made = at.around
    for each in reversed(kept):
        made = _with(made, each.changes or {})
    return made
