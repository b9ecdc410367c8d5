"""Blocks in which something is different: `no_grad()`, `ieee()`, and the hooks that tracing and blame are built on.

`stop_gradient` is an operation of the table: a node that hands nothing on.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, ContextDecorator, contextmanager
from typing import Any, TypeVar

from gradwalk import engine
from gradwalk.modes import Modes, current
from gradwalk.ops import STOPS

_F = TypeVar("_F", bound=Callable[..., Any])
_Change: Any = engine.available()[0].Change


class changed(_Change, ContextDecorator):  # type: ignore[misc]  # noqa: N801  # used like a function
    """Inside, in this thread and task, these modes are as given and the others as they were. Also a decorator."""

    def __call__(self, function: _F) -> _F:
        refuse_suspended(self._shown(), function)
        return ContextDecorator.__call__(self, function)

    def _recreate_cm(self) -> changed:
        return changed(**self.changes)

    def _shown(self) -> str:
        return f"{next(iter(self.changes), 'changed')}()"


class WithBlock(ContextDecorator):
    """A block of which `_inside` gives what a `with` needs, anew whenever it is entered. Also a decorator.

    What it gives does not refer to the block, and so ends with it where an exception of a signal handler comes between
    the two.
    """

    def __init__(self) -> None:
        self._entered: list[AbstractContextManager[None]] = []

    def __call__(self, function: _F) -> _F:
        refuse_suspended(f"{type(self).__name__}()", function)
        return super().__call__(function)

    def __enter__(self) -> None:
        block = self._inside()
        block.__enter__()
        self._entered.append(block)

    def __exit__(self, *error: Any) -> None:
        self._entered.pop().__exit__(*error)

    def _inside(self) -> AbstractContextManager[None]:
        raise NotImplementedError


def refuse_suspended(block: str, function: Any) -> None:
    """What a decorator makes has left its block again when the body of such a function begins to run."""
    for asked in (function, getattr(function, "__call__", None)):  # noqa: B004  # an object may have one like that
        generates = inspect.isgeneratorfunction(asked) or inspect.isasyncgenfunction(asked)
        if generates or inspect.iscoroutinefunction(asked):
            name = getattr(function, "__qualname__", type(function).__name__)
            raise TypeError(
                f"@{block}: expected a function that has done its work when it returns, got {name}, "
                f"{'a generator' if generates else 'an async function'}; write `with {block}:` inside of it"
            )


current_modes: Callable[[], Modes] = current  # what is in force here


def is_traced() -> bool:
    """Whether a compiled function is being traced: no number may be read out of a Value then."""
    return current().on_read is not None


def is_inside(value: Any = None) -> bool:
    """Whether a function that is differentiated or traced is running; or, in another thread, one of this Value."""
    modes = current()
    return modes.derivatives > 0 or modes.on_read is not None or (value is not None and is_differentiated(value))


# The inputs of the functions that are being differentiated, by what differentiates them: in threads that such a
# function starts, no mode tells.
differentiated: dict[int, Collection[Any]] = {}


def is_differentiated(value: Any) -> bool:
    """Whether a derivative by this leaf is being taken, in whatever thread."""
    for key, inputs in tuple(differentiated.items()):
        if not isinstance(inputs, frozenset):
            inputs = frozenset(inputs)  # to be asked many times
            if key in differentiated:
                differentiated[key] = inputs
        if value in inputs:
            return True
    return False


def is_moving(value: Any) -> bool:
    """Whether a derivative is being taken by something that this Value depends on."""
    ahead, seen = [value], {value}
    while ahead:
        node = ahead.pop()
        if is_differentiated(node):
            return True
        if node._name not in STOPS:
            new = {child for child in node._children if child not in seen}
            seen |= new
            ahead += new
    return False


@contextmanager
def inside(inputs: Collection[Any]) -> Iterator[None]:
    """Inside, it is as in a function that is differentiated by these: copies keep their history, derivatives theirs."""
    key = id(inputs)
    with changed(derivatives=current().derivatives or 1):
        try:
            differentiated[key] = inputs
            yield
        finally:
            try:
                differentiated.pop(key, None)
            finally:  # once more, for where a signal came in the middle, or memory ended
                differentiated.pop(key, None)


def is_watched() -> bool:
    """Whether each operation has to be seen by itself, which a program does not show."""
    return current().watched


def on_construct(hook: Callable[[Any], Any]) -> changed:
    """Inside, `hook` too is told of every node made by hand, with `Value(data, children)`."""
    before = current().on_construct

    def tell_both(node: Any) -> None:
        hook(node)
        if before is not None:
            before(node)

    return changed(on_construct=tell_both)


def watched() -> changed:
    """Inside, compiled functions run as the plain ones."""
    return changed(watched=True)


def no_grad() -> changed:
    """Inside, operations give plain leaves: nothing is recorded, and memory is not held. Also a decorator.

    >>> from gradwalk import Value
    >>> x = Value(3.0)
    >>> with no_grad():
    ...     y = x * x
    >>> y._children
    ()
    """
    return changed(no_grad=True)


def ieee() -> changed:
    """Inside, bad input gives IEEE inf and nan instead of an error. Also a decorator.

    >>> from gradwalk import Value
    >>> with ieee():
    ...     print(Value(0.0).log().data)
    -inf
    """
    return changed(ieee=True)
