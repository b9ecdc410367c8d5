"""Lists, dicts, arrays and dataclasses that are in several places of the arguments.

A derivative by each argument takes them as several. That holds as long as the function changes none of them: what it
writes to one would be in the others too. A call of a function that does is refused.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from typing import Any

from gradwalk.structure import ARRAY, VALUE_TYPES, Container, Source, all_plain, kind_of, only_type

_NUMBERS = (float, int, *VALUE_TYPES)
_NONE: frozenset[int] = frozenset()
_stands_for: ContextVar[Mapping[int, int]] = ContextVar("stands_for", default={})  # noqa: B039  # never changed


def repeated(arguments: tuple[Any, ...]) -> frozenset[int]:
    """The ids of what is in several of these, or in several places of one, and could be changed."""
    if all_plain(arguments):
        return _NONE
    holders: list[int] = []
    looked_into = Counter[int]()  # twice, and what is inside is in several places, too
    waiting = list(arguments)
    while waiting:
        part = waiting.pop()
        cls: Any = type(part)
        if cls is float or cls is int:
            continue
        if cls is list or cls is dict:  # the common case, quickly
            holders.append(id(part))
            if looked_into[id(part)] < 2 and (cls is dict or only_type(part) not in _NUMBERS):
                looked_into[id(part)] += 1
                waiting += part.values() if cls is dict else part
        else:
            kind = kind_of(cls)
            if kind is ARRAY or (isinstance(kind, Container) and not isinstance(part, tuple)):
                holders.append(id(part))
            if isinstance(kind, Container) and looked_into[id(part)] < 2:
                looked_into[id(part)] += 1
                waiting += _parts(part)
    stands_for = _stands_for.get()
    if not stands_for and len(set(holders)) == len(holders):
        return _NONE
    originals = [stands_for.get(each, each) for each in holders]
    counts = Counter(originals)
    return frozenset(each for each, original in zip(holders, originals, strict=True) if counts[original] > 1)


class Watching(Source):
    """Hands out numbers, and remembers what was in the holders of these ids and in what was made in their places.

    While the function runs, derivatives that it takes of others know what stands for what.
    """

    def __init__(self, numbers: Any, ids: frozenset[int]) -> None:
        super().__init__(numbers, as_argument=True)
        self._ids, self._before, self.looks_at_parts = ids, list[tuple[Any, Any]](), True
        self._stands_for = dict(_stands_for.get())

    def filled(self, key: Any, like: Any) -> Any:
        made = super().filled(key, like)
        if id(like) in self._ids:
            self._before += [(holder, _contents(holder)) for holder in (like, made)]
            self._stands_for[id(made)] = self._stands_for.get(id(like), id(like))
        return made

    def applied(self, what: str, function: Callable[..., Any], args: Iterable[Any], kwargs: dict[str, Any]) -> Any:
        """What the function returns, unless it has changed one of them."""
        token = _stands_for.set(self._stands_for)
        try:
            result = function(*args, **kwargs)
        except Exception as error:
            self._refuse_changes(what, error)  # it may have come of them
            raise
        finally:
            _stands_for.reset(token)
        self._refuse_changes(what)
        return result

    def _refuse_changes(self, what: str, error: Exception | None = None) -> None:
        for holder, before in self._before:
            now = _contents(holder)
            if len(now) != len(before) or any(x is not y for x, y in zip(now, before, strict=True)):
                raise TypeError(
                    f"{what}: expected no changes to the {type(holder).__name__} that is in several places of the "
                    "arguments, which a derivative takes as several, got a function that makes some; give it a copy in "
                    "all but one of them"
                ) from error


def _parts(holder: Any) -> list[Any]:
    if type(holder) is dict:
        return [*holder, *holder.values()]
    if isinstance(holder, Mapping):
        return [*holder, *holder.values(), *getattr(holder, "__dict__", {}).values()]
    if isinstance(holder, list | tuple):
        return [*holder, *getattr(holder, "__dict__", {}).values()]
    names = dict.fromkeys([*(field.name for field in dataclasses.fields(holder)), *getattr(holder, "__dict__", ())])
    return [getattr(holder, name, None) for name in names]


def _contents(holder: Any) -> Any:
    """What it holds, to be compared by identity: of numbers in an array the bytes, of which there is one of each."""
    cls: Any = type(holder)
    if kind_of(cls) is not ARRAY:
        return _parts(holder)
    return holder.ravel().tolist() if holder.dtype.kind == "O" else holder.tobytes()
