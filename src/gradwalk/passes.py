"""One backward pass at a time in the whole process: a pass uses the gradients of the nodes it walks.

And locks that a forked child finds open: whoever held one in the parent is not there to give it back.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any


class Locked:
    """Has a lock, re-entrant because what runs under it may be the user's code; a fork leaves it open."""

    lock: Any

    def __init__(self) -> None:
        self.lock = threading.RLock()
        _with_locks.add(self)


_with_locks: weakref.WeakSet[Locked] = weakref.WeakSet()


def _open_all() -> None:
    for each in list(_with_locks):
        each.lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_open_all)

THE_PASS = Locked()
