"""What is recorded: `no_grad()`, and the hooks that blame, checkpoints and compiled functions are built on.

`stop_gradient` is an operation of the table: a node that hands nothing on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from gradwalk import engine

_engines = engine.available()


def current_modes() -> tuple[bool, Any, Any, Any]:
    """What is in force in this thread: no_grad, and the functions to tell of nodes, comparisons and reads."""
    modes: tuple[bool, Any, Any, Any] = _engines[0].current_modes()
    return modes


def is_traced() -> bool:
    """Whether a compiled function is being traced in this thread: no number may be read out of a Value then."""
    return current_modes()[3] is not None


@contextmanager
def modes(
    no_grad: bool | None = None,
    on_record: Callable[[Any], None] | None = None,
    on_compare: Callable[[Any, Any, str, bool], None] | None = None,
    on_read: Callable[[Any], None] | None = None,
) -> Iterator[None]:
    """Inside, in this thread: what is given replaces what was in force; what is not given stays."""
    wanted = (no_grad, on_record, on_compare, on_read)
    befores = []
    for module in _engines:
        before = module.set_modes(False, None, None, None)
        befores.append((module, before))
        module.set_modes(*(old if new is None else new for new, old in zip(wanted, before, strict=True)))
    try:
        yield
    finally:
        for module, before in befores:
            module.set_modes(*before)


@contextmanager
def on_construct(hook: Callable[[Any], None]) -> Iterator[None]:
    """Inside, in this thread, `hook` too is told of every node made by hand, with `Value(data, children)`."""
    befores = [(module, module.set_on_construct(None)) for module in _engines]

    def tell_all(node: Any) -> None:
        hook(node)
        for module, before in befores:
            if before is not None and isinstance(node, module.Value):
                before(node)

    for module, _ in befores:
        module.set_on_construct(tell_all)
    try:
        yield
    finally:
        for module, before in befores:
            module.set_on_construct(before)


class _Watch(threading.local):
    on = False


_watch = _Watch()


def is_watched() -> bool:
    """Whether each operation has to be seen by itself in this thread, which a program does not show."""
    return _watch.on


@contextmanager
def watched() -> Iterator[None]:
    """Inside, in this thread, compiled functions run as the plain ones."""
    before, _watch.on = _watch.on, True
    try:
        yield
    finally:
        _watch.on = before


@contextmanager
def without_on_construct() -> Iterator[None]:
    """Inside, in this thread, nobody is told of nodes made by hand."""
    befores = [(module, module.set_on_construct(None)) for module in _engines]
    try:
        yield
    finally:
        for module, before in befores:
            module.set_on_construct(before)


@contextmanager
def no_grad() -> Iterator[None]:
    """Inside, operations give plain leaves: nothing is recorded, and memory is not held. Also a decorator.

    >>> x = engine.Value(3.0)
    >>> with no_grad():
    ...     y = x * x
    >>> y._children
    ()
    """
    with modes(no_grad=True):
        yield
