"""One backward pass at a time in the whole process: a pass uses the gradients of the nodes it walks.

And locks that a forked child finds open: whoever held one in the parent is not there to give it back. What is changed
for the whole process while somebody is inside a block is changed back there, too.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Locked:
    """Has a lock, re-entrant because what runs under it may be the user's code; a fork leaves it open."""

    lock: Any

    def __init__(self) -> None:
        self.lock = threading.RLock()
        _with_locks.add(self)

    def forked(self) -> None:
        """In a child, which has the one thread that forked."""
        self.lock = threading.RLock()


class Shared(Locked):
    """What is so for the whole process while anybody is inside, in whichever thread.

    `begin(wish)` makes it so for one more, `end()` as it was when nobody is left. A signal handler's exception may come
    anywhere in them: both can be called again.
    """

    def __init__(self, begin: Callable[[Any], None], end: Callable[[], None]) -> None:
        super().__init__()
        self._begin, self._end = begin, end
        self._inside: dict[object, tuple[int, Any]] = {}  # the thread, and what was wished

    @contextmanager
    def __call__(self, wish: Any = None) -> Iterator[None]:
        me = object()
        try:
            with self.lock:
                self._inside[me] = threading.get_ident(), wish
                self._begin(wish)
            yield
        finally:
            try:
                self._leave(me)
            finally:  # once more, for where a signal came in the middle
                self._leave(me)

    def _leave(self, me: object) -> None:
        with self.lock:
            self._inside.pop(me, None)
            if not self._inside:
                self._end()

    def wishes(self) -> list[Any]:
        """Of all that are inside."""
        return [wish for _, wish in list(self._inside.values())]

    def forked(self) -> None:
        super().forked()
        if self._inside:
            self._inside = {me: each for me, each in self._inside.items() if each[0] == threading.get_ident()}
            if not self._inside:
                self._end()


_with_locks: weakref.WeakSet[Locked] = weakref.WeakSet()


def _open_all() -> None:
    for each in list(_with_locks):
        each.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_open_all)

THE_PASS = Locked()
