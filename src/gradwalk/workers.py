"""Work for an executor: anything with the interface of `concurrent.futures.Executor`, on this machine or on others.

What many pieces of work need (a program, documents) travels to each worker once. A piece whose worker died is done
again: some executors do that themselves, and a pool that broke is made anew, once for each piece of work.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from gradwalk.errors import WorkerError

KEPT = 64  # things that a worker keeps; what it no longer has is sent again
PATIENCE = 1.0  # seconds without a result, until a look at the workers
WITHOUT_WORKERS = 300  # such looks at a cluster, until it is given up: one that grows by itself takes some minutes


class Sendable:
    """Something that several pieces of work need: it travels to each worker once, and is known there by its digest."""

    def __init__(self, content: Any) -> None:
        self.pickled = pickle.dumps(content, pickle.HIGHEST_PROTOCOL)
        self.key = hashlib.sha256(self.pickled).hexdigest()


@dataclass(eq=False)
class Task:
    """`function(*shared, *arguments)`, for a worker."""

    function: Callable[..., Any]
    shared: Sequence[Sendable]
    arguments: tuple[Any, ...]
    deaths: int = 0  # of workers that had it


@dataclass
class Missing:
    """What a worker answers where things have not travelled to it yet."""

    keys: set[str]


_here: dict[str, Any] = {}  # in a worker: what has travelled to it, the last used last


def _done_here(
    function: Callable[..., Any], keys: list[str], sent: dict[str, bytes], arguments: tuple[Any, ...]
) -> Any:
    for key, pickled in sent.items():
        if key not in _here:
            _here[key] = pickle.loads(pickled)
    missing = {key for key in keys if key not in _here}
    if missing:
        return Missing(missing)
    for key in dict.fromkeys(keys):
        _here[key] = _here.pop(key)
    shared = [_here[key] for key in keys]
    while len(_here) > max(KEPT, len(keys)):
        del _here[next(iter(_here))]
    return function(*shared, *arguments)


_anew: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()  # the pool that took the place of one that broke


class Workers:
    """An executor's workers, of whom some may die. `count` is how many there are, as far as that is known."""

    def __init__(self, executor: Executor) -> None:
        if not callable(getattr(executor, "submit", None)):
            raise TypeError(f"executor: expected one like concurrent.futures.Executor, got a {type(executor).__name__}")
        while executor in _anew:
            executor = _anew[executor]
        self.executor = executor
        self._empty = 0  # looks at a cluster that had no workers, one after the other

    @property
    def count(self) -> int:
        client = getattr(self.executor, "_client", None)  # Dask's
        if client is not None:
            return max(1, len(client.ncores()))
        known = getattr(self.executor, "num_workers", None) or getattr(self.executor, "_max_workers", None)
        return known if isinstance(known, int) else os.cpu_count() or 1

    def results(self, tasks: Sequence[Task]) -> list[Any]:
        """What each task comes to, in their order."""
        made = {id(task): result for task, result in self.done(deque(tasks), len(tasks))}
        return [made[id(task)] for task in tasks]

    def done(self, tasks: deque[Task], at_once: int) -> Iterator[tuple[Task, Any]]:
        """Each task with its result as they come; more may be put into the queue meanwhile."""
        pending: dict[Future[Any], tuple[Task, Executor]] = {}
        try:
            while tasks or pending:
                while tasks and len(pending) < max(at_once, 1):
                    task = tasks.popleft()
                    pending[self._submitted(task, {})] = task, self.executor
                ended = wait(pending, timeout=PATIENCE, return_when=FIRST_COMPLETED).done
                if ended:
                    self._empty = 0
                else:
                    self._look_after({executor for _, executor in pending.values()})
                for future in ended:
                    task, executor = pending.pop(future)
                    try:
                        result = future.result()
                    except (BrokenExecutor, CancelledError) as error:
                        self._make_anew(executor, task, error)
                        tasks.appendleft(task)
                        continue
                    except Exception as error:
                        if type(error).__module__.startswith("distributed"):
                            raise WorkerError(f"executor: the cluster gave work up: {error}") from error
                        raise
                    if isinstance(result, Missing):
                        sent = {each.key: each.pickled for each in task.shared if each.key in result.keys}
                        pending[self._submitted(task, sent)] = task, self.executor
                        continue
                    yield task, result
        finally:
            for future in pending:
                future.cancel()

    def _look_after(self, executors: set[Executor]) -> None:
        """For a while there was no result: a pool may be stuck, and Dask waits for workers for ever."""
        for executor in executors:
            _free_stuck(executor)
        client = getattr(self.executor, "_client", None)
        self._empty = self._empty + 1 if client is not None and not client.ncores() else 0
        if self._empty >= WITHOUT_WORKERS:
            raise WorkerError("executor: the cluster has had no workers for some minutes; their work is not done")

    def _submitted(self, task: Task, sent: dict[str, bytes]) -> Future[Any]:
        keys = [each.key for each in task.shared]
        while True:
            try:
                made: Future[Any] = self.executor.submit(_done_here, task.function, keys, sent, task.arguments)
                return made
            except BrokenExecutor as error:  # it broke before, or just now
                self._make_anew(self.executor, task, error)

    def _make_anew(self, broken: Executor, task: Task, error: BaseException) -> None:
        """Put another pool in the place of one that broke; what of it is left is not waited for."""
        if broken is not self.executor:
            return  # it was done already, for another piece of work
        task.deaths += 1
        anew = _like(broken) if task.deaths == 1 else None
        if anew is None:
            told = "twice" if task.deaths > 1 else f"and a {type(broken).__name__} is not made anew"
            raise WorkerError(f"executor: workers died, {told}; their work is not done ({error})") from error
        _anew[broken] = self.executor = anew


def _like(executor: Executor) -> Executor | None:
    """Another pool of the same kind, with as many workers."""
    kind, made_like = type(executor), vars(executor)
    if f"{kind.__module__}.{kind.__name__}" == "concurrent.futures.process.ProcessPoolExecutor":
        if made_like["_initializer"] is _start_process:
            return processes(made_like["_max_workers"])
        settings = {name: made_like[f"_{name}"] for name in ("max_workers", "mp_context", "initializer", "initargs")}
        return kind(**settings)
    if kind.__module__.startswith("loky."):
        import loky

        anew: Executor = loky.get_reusable_executor(max_workers=made_like["_max_workers"])
        return anew
    return None


def _free_stuck(executor: Executor) -> None:
    """A pool whose worker was killed while it wrote reads for ever, as others could write the rest: now none can.

    It then finds out by itself that it is broken. (Python's pool and loky's name these parts alike.)
    """
    of_pool = getattr(executor, "_processes", None)
    writer = getattr(getattr(executor, "_result_queue", None), "_writer", None)
    processes = list(of_pool.values()) if isinstance(of_pool, dict) else []
    if writer is not None and any(process.exitcode not in (None, 0) for process in processes):
        for process in processes:
            process.kill()
        writer.close()


# ---------------------------------------------------------------- processes of our own


def processes(count: int) -> Executor:
    """So many new interpreters on this machine; they leave it to their parent what a signal means, and end with it."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context, resource_tracker

    with _blocked("SIGHUP"):
        resource_tracker.ensure_running()  # which ignores the others by itself
    with _blocked("SIGHUP", "SIGINT"):
        executor = ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_start_process)
        for _ in range(count):
            executor.submit(os.getpid)  # each starts one
    return executor


@contextmanager
def _blocked(*names: str) -> Iterator[None]:
    """What is started inside never hears what a terminal sends to all that run in it; we hear it afterwards."""
    if not hasattr(signal, "pthread_sigmask"):  # on Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {getattr(signal, name) for name in names})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_process() -> None:
    for name in ("SIGINT", "SIGHUP"):  # a terminal sends them to all that run in it
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    """Without this, workers of a parent that was killed would wait for work for ever."""
    from multiprocessing import parent_process

    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def dask(address: str) -> Executor:
    """The workers of a Dask cluster."""
    try:
        from distributed import Client
    except ImportError:
        raise ValueError("dask: expected the package distributed; pip install 'gradwalk[cluster]'") from None
    try:
        client = Client(address, timeout="10s", set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise ValueError(f"dask: expected a scheduler at {address}: {error}") from None
    executor: Executor = client.get_executor(pure=False)
    return executor
