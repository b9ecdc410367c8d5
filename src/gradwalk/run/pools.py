"""Pools of a notebook whose workers are spawned: they have not run its cells, so nothing of those can go to them.

Left alone, such a pool waits for ever: workers end as they look for a cell's function, and others take their place.
"""

from __future__ import annotations

import os
import pickle
from types import FunctionType
from typing import Any


def say_what_is_of_cells(module: Any) -> None:
    """In multiprocessing.pool: it is an error in whoever asked for the work."""
    from multiprocessing import get_context
    from multiprocessing.reduction import ForkingPickler

    class Sent(ForkingPickler):
        def reducer_override(self, whole: Any) -> Any:
            of_cell = isinstance(whole, type | FunctionType) and whole.__module__ == "__main__"
            if of_cell and "<" not in whole.__qualname__:  # those go nowhere, and Python says so
                raise pickle.PicklingError(told(whole.__qualname__))
            return NotImplemented

    plain, plain_queues = module.Pool.__init__, module.Pool._setup_queues

    def begin(
        self: Any, processes: Any = None, initializer: Any = None, initargs: Any = (), maxtasksperchild: Any = None,
        context: Any = None,
    ) -> None:  # fmt: skip
        if not isinstance(self, module.ThreadPool) and is_spawned(context or get_context()):
            self._state = module.INIT  # Python looks at it when the pool goes
            Sent.dumps((initializer, initargs))  # an initializer that is not found ends worker after worker, too
        plain(self, processes, initializer, initargs, maxtasksperchild, context)

    def set_up_queues(self: Any) -> None:
        plain_queues(self)
        if is_spawned(self._ctx):
            send = self._inqueue._writer.send_bytes
            self._quick_put = lambda task: send(Sent.dumps(task))

    module.Pool.__init__, module.Pool._setup_queues = begin, set_up_queues


def is_spawned(context: Any) -> bool:
    """Whether its workers begin with nothing: not with what this process has."""
    return bool(context.get_start_method() != "fork")


def told(name: str) -> str:
    fork = ", or use multiprocessing.get_context('fork')" if hasattr(os, "fork") else ""
    return (
        f"{name} is defined in a cell of the notebook, and workers that are spawned do not run the cells: "
        f"put it into a module beside the notebook, and import it{fork}"
    )
