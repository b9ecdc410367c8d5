"""Lists, dicts, arrays (views of one memory, too) and dataclasses that are in several places of the arguments.

A derivative by each argument takes them as several. That holds as long as the function changes none of them: what it
writes to one would be in the others too. A call of a function that does is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from gradwalk.structure import (
    ARRAY,
    SEQUENCE,
    VALUE_TYPES,
    Container,
    Made,
    Make,
    Source,
    Structure,
    all_plain,
    kind_of,
    only_type,
    source_of,
)

_NUMBERS = (float, int, *VALUE_TYPES)
_EXACT = 10_000  # steps to find out whether views that lie between one another have a number in common
_NONE: frozenset[int] = frozenset()
_stands_for: ContextVar[Mapping[int, int]] = ContextVar("stands_for", default={})  # noqa: B039  # never changed


def repeated(arguments: tuple[Any, ...]) -> frozenset[int]:
    """The ids of what is in several of these, or in several places of one, and could be changed."""
    if all_plain(arguments):
        return _NONE
    holders: list[int] = []
    arrays: list[Any] = []
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
            if kind is ARRAY:
                arrays.append(part)
            if isinstance(kind, Container) and looked_into[id(part)] < 2:
                looked_into[id(part)] += 1
                waiting += _parts(part)
    stands_for, shared = _stands_for.get(), overlapping(arrays)
    if not stands_for and len(set(holders)) == len(holders):
        return shared
    originals = [stands_for.get(each, each) for each in holders]
    counts = Counter(originals)
    return shared.union(each for each, original in zip(holders, originals, strict=True) if counts[original] > 1)


def overlapping(arrays: list[Any]) -> frozenset[int]:
    """The ids of those of which a number is in another of them, too: of rows of a matrix there are none."""
    if len(arrays) < 2 or all(array.base is None for array in arrays):
        return _NONE
    views: dict[int, list[Any]] = {}
    for array in arrays:
        root = array
        while (base := getattr(root, "base", None)) is not None:
            root = base
        views.setdefault(id(root), []).append(array)
    return frozenset(each for among in views.values() if len(among) > 1 for each in _overlapping_views(among))


def _overlapping_views(views: list[Any]) -> Iterator[int]:
    import numpy as np

    before: list[tuple[int, Any]] = []  # where they end, and begin before this one
    for low, high, place in sorted((*_bounds(view), place) for place, view in enumerate(views)):
        before = [(end, other) for end, other in before if end > low]
        for _, other in before:
            if np.may_share_memory(views[place], other, max_work=_EXACT):  # type: ignore[arg-type]
                yield from (id(views[place]), id(other))
        before.append((high, views[place]))


def _bounds(array: Any) -> tuple[int, int]:
    """Where its numbers begin in memory, and where they end."""
    first = array.__array_interface__["data"][0]
    if array.flags.c_contiguous:
        return first, first + array.nbytes
    reach = [(count - 1) * stride for count, stride in zip(array.shape, array.strides, strict=True)]
    return first + sum(min(0, each) for each in reach), first + sum(max(0, each) for each in reach) + array.itemsize


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
                    "arguments, where it is taken as several, got a function that makes some; give it a copy in "
                    "all but one of them"
                ) from error


def _parts(holder: Any) -> list[Any]:
    if type(holder) is dict:
        return [*holder, *holder.values()]
    cls: Any = type(holder)
    kind = kind_of(cls)
    return [*kind.everything(holder)] if isinstance(kind, Container) else []


def _contents(holder: Any) -> Any:
    """What it holds, to be compared by identity: of numbers in an array the bytes, of which there is one of each."""
    cls: Any = type(holder)
    if kind_of(cls) is not ARRAY:
        return _parts(holder)
    return holder.ravel().tolist() if holder.dtype.kind == "O" else holder.tobytes()


# ---------------------------------------------------------------- one argument in several places of the list


def together(structures: Mapping[Any, Structure], places: Sequence[Any]) -> Structure:
    """Several structures over one list of numbers as one: a tuple with those of the places, one after the other."""
    if len(places) > len(structures):
        return _Repeated(structures, places)
    keys, likes = zip(*((structures[place].key, structures[place].like) for place in places), strict=True)
    return Structure((SEQUENCE, tuple, (), keys), likes)


class _Repeated(Structure):
    """A tuple in which the same structure stands in several places, over the same numbers."""

    def __init__(self, structures: Mapping[Any, Structure], places: Sequence[Any]) -> None:
        self.once, self.which = list(structures.values()), [list(structures).index(place) for place in places]

    def fill(self, numbers: Any, as_argument: bool = False) -> Any:
        return self._tuple(source_of(numbers, as_argument))

    def build(self, make: Make) -> Any:
        return self._tuple(Made(make))

    def names(self, name: str) -> Iterator[str]:
        for i, each in enumerate(self.once):
            yield from each.names(f"{name}[{self.which.index(i)}]")

    def _tuple(self, source: Source) -> tuple[Any, ...]:
        starts = []
        for each in self.once:
            starts.append(source.at)
            source.filled(each.key, each.like)
        made = []
        for i in self.which:
            source.at = starts[i]
            made.append(source.filled(self.once[i].key, self.once[i].like))
        return tuple(made)
