"""Lists, tuples, dicts and objects of classes of somebody's own, as Python itself stores them: read, and made like one.

No method of the class has a hand in it. A constructor, or a `__setitem__`, may do something to what it is given, and
would do it twice; what iterates may show something else than there is. `structure.py` walks over what is found here.
"""

from __future__ import annotations

import dataclasses
import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from numbers import Number
from types import MemberDescriptorType
from typing import Any, NoReturn

_WITHOUT_ATTRIBUTES = frozenset((list, tuple, dict))


def attributes_of(whole: Any) -> tuple[str, ...]:
    """What was hung on it, or stands in slots of its class."""
    kind: Any = type(whole)
    if kind in _WITHOUT_ATTRIBUTES:
        return ()
    named = tuple(getattr(whole, "__dict__", ()))
    slots = _slots(kind)
    return (*named, *(name for name in slots if _is_there(whole, name))) if slots else named


@functools.lru_cache(maxsize=1024)
def _slots(kind: Any) -> tuple[str, ...]:
    return tuple(name for each in kind.__mro__ for name, it in vars(each).items() if type(it) is MemberDescriptorType)


def _is_there(whole: Any, name: str) -> bool:
    try:
        object.__getattribute__(whole, name)
    except AttributeError:
        return False
    return True


def attribute(whole: Any, name: str) -> Any:
    """One of those, whatever its class shows."""
    named: Any = getattr(whole, "__dict__", ())
    return named[name] if name in named else object.__getattribute__(whole, name)


def hang(made: Any, names: Iterable[str], parts: Iterable[Any]) -> Any:
    """The same object with these attributes, frozen or not."""
    named = getattr(made, "__dict__", None)
    kind: Any = type(made)
    slots = _slots(kind)
    for name, part in zip(names, parts, strict=True):
        if named is None or name in slots:
            object.__setattr__(made, name, part)
        else:
            named[name] = part
    return made


def items_of(whole: Any) -> Sequence[Any]:
    """Those of a list or tuple."""
    if type(whole) is list or type(whole) is tuple:
        return whole
    base: Any = list if isinstance(whole, list) else tuple
    return tuple(base.__iter__(whole))


def like_sequence(like: Any, items: list[Any]) -> Any:
    """A list or tuple of that class, with these items and no attributes yet."""
    kind = type(like)
    if kind is list:
        return items
    if issubclass(kind, tuple):
        return tuple.__new__(kind, items)
    made = list.__new__(kind)
    list.extend(made, items)
    return made


def keys_of(whole: Any) -> Iterable[Any]:
    """Those of a dict."""
    kind: Any = type(whole)
    return _base(kind).__iter__(whole)  # type: ignore[no-any-return]


def values_of(whole: Any) -> list[Any]:
    """Those of a dict, in the order of its keys."""
    kind: Any = type(whole)
    return list(_base(kind).values(whole))


def like_dict(like: Any, keys: Iterable[Any], values: Iterable[Any]) -> Any:
    """A dict of that class with these items and no attributes yet."""
    kind: Any = type(like)
    base = _base(kind)
    made = base.__new__(kind)
    for key, value in zip(keys, values, strict=True):
        base.__setitem__(made, key, value)
    return made


@functools.lru_cache(maxsize=1024)
def _base(kind: Any) -> Any:
    """What stores its items: an OrderedDict has an order of its own."""
    return next(base for base in (OrderedDict, defaultdict, dict) if issubclass(kind, base))


def like_object(like: Any) -> Any:
    """An object of that class without attributes."""
    try:
        return object.__new__(type(like))
    except TypeError:
        refuse_to_read(like)


def refuse_to_read(whole: Any) -> NoReturn:
    raise TypeError(
        f"expected a dict, got a {type(whole).__name__}, which keeps what it holds to itself; give dict() of it"
    )


# ---------------------------------------------------------------- what a dataclass makes of its fields


def given_names(whole: Any) -> list[str]:
    """The fields that a dataclass is given."""
    return [field.name for field in dataclasses.fields(whole) if field.init]


def derived_from(
    given: list[str], whole: Any, stored: Collection[str], are_equal: Callable[[Any, Any], bool]
) -> tuple[str, ...]:
    """What is stored in a dataclass and is what the class itself makes of the fields that it is given."""
    others = [name for name in stored if name not in given]
    if not others or not set(given) <= set(stored):
        return ()
    try:
        anew = dataclasses.replace(whole)
    except Exception:  # it was made of something that it has not kept
        return ()

    def is_made_again(name: str) -> bool:
        return _alike(attribute(whole, name), getattr(anew, name, None), are_equal)

    return tuple(filter(is_made_again, others)) if all(map(is_made_again, given)) else ()


def _alike(now: Any, then: Any, are_equal: Callable[[Any, Any], bool]) -> bool:
    """Whether these are equal, apart from which objects they are."""
    if now is then or are_equal(now, then):
        return True
    if type(now) is not type(then):
        return False
    if isinstance(now, str | bytes):
        return bool(now == then)
    if isinstance(now, dict) and Keys(keys_of(now)) != Keys(keys_of(then)):
        return False
    names = attributes_of(now)
    if names != attributes_of(then):
        return False
    mine, its = ([*_held(whole), *(attribute(whole, name) for name in names)] for whole in (now, then))
    return 0 < len(mine) == len(its) and all(_alike(x, y, are_equal) for x, y in zip(mine, its, strict=True))


def _held(whole: Any) -> Sequence[Any]:
    if isinstance(whole, dict):
        return values_of(whole)
    if isinstance(whole, list | tuple):
        return items_of(whole)
    return whole.ravel().tolist() if hasattr(whole, "ravel") else ()


# ---------------------------------------------------------------- what is one, and what is only equal


class Same:
    """An object as part of a key: equal to itself only, and kept alive, so that its id is not given away."""

    __slots__ = ("it",)

    def __init__(self, it: Any) -> None:
        self.it = it

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.it is self.it

    def __hash__(self) -> int:
        return id(self.it)


def exactly(whole: Any) -> Any:
    """What is no number as part of a key, beside its type: a text is equal to such a text, and an object to itself."""
    if whole is None or type(whole) is bool or type(whole) is bytes:
        return whole
    return str.__str__(whole) if isinstance(whole, str) and not attributes_of(whole) else Same(whole)


class Keys(tuple[Any, ...]):
    """Those of a dict. 1, 1.0 and True are one key to it, as are 0.0 and -0.0; to who reads them they differ."""

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other) and list(map(_spelled, self)) == list(map(_spelled, other))  # type: ignore[call-overload]

    __hash__ = tuple.__hash__


def _spelled(key: Any) -> Any:
    if type(key) is str:
        return key
    if isinstance(key, tuple):
        return type(key), *map(_spelled, key)
    if isinstance(key, frozenset):
        return type(key), frozenset(map(_spelled, key))
    return type(key), repr(key) if isinstance(key, Number) else None
