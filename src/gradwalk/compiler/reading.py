"""How compiled functions read structures: arguments, with the integers in them marked, and results, where Values count.

The walk itself is that of `structure.py`.
"""

from __future__ import annotations

import functools
import inspect
import math
import sys
import types
from collections.abc import Callable, Sequence
from itertools import chain
from numbers import Integral
from typing import Any, NoReturn

import numpy as np

from gradwalk import engine
from gradwalk.compiler.index import is_index
from gradwalk.errors import ENDLESS
from gradwalk.passed_twice import Watching
from gradwalk.stored import attributes_of, exactly, keys_of, values_of
from gradwalk.structure import (
    ANYTHING,
    ARRAY,
    DATACLASS,
    KEPT,
    MAPPING,
    ONE,
    ROW,
    SEQUENCE,
    VALUE_TYPES,
    Container,
    Key,
    Kind,
    Reading,
    Source,
    all_plain,
    array_of,
    is_value,
    key_of,
    only_type,
    plain_array,
    read,
    repetitions,
    source_of,
    with_values,
    write,
)

# whether numbers are what the native executor takes as they are: floats, and ints that are not beyond them all
all_doubles = engine.load("native").all_doubles if engine.NAME == "native" else lambda numbers: False
FLOAT, INT, VALUE = ((ONE, mark) for mark in ("float", "int", "value"))


class _Objects(Kind):
    """An array of objects, by its list of entries."""

    def filled(self, key: Key, like: Any, source: Source) -> Any:
        array = array_of(source.filled(key[2], like.ravel().tolist()), key[1])
        return with_values(array) if source.as_argument else array


class _Whole(Kind):
    """Integers that are part of the key: in a gradient they are 0."""

    def filled(self, key: Key, like: Any, source: Source) -> Any:
        return like if source.as_argument else like * 0.0


class _Copied(Kind):
    """An array that nobody else may change."""

    def filled(self, key: Key, like: Any, source: Source) -> Any:
        return like.copy()


class _Wrapping(type(ONE)):  # type: ignore[misc]
    """NumPy's own integer, which is read and left open as an int, and wraps around where that goes on."""

    def filled(self, key: Key, like: Any, source: Source) -> Any:
        number = source.number()
        if is_index(number):
            number.number = np.int64(number.number)
        return np.int64(number) if type(number) is int else number


class _Counted(Kind):
    """An integer that a trace knows by another object."""

    def filled(self, key: Key, like: Any, source: Source) -> Any:
        return like.fixed() if is_index(like) else like if isinstance(like, Integral) else int(like)


class _KeyedByValues(type(MAPPING)):  # type: ignore[misc]
    """A dict with Values among its keys, which may be among the arguments once more: keys are parts like the rest."""

    def about(self, whole: Any) -> tuple[Any, ...]:
        return (), attributes_of(whole)

    def held(self, about: tuple[Any, ...], whole: Any) -> Sequence[Any]:
        return [*keys_of(whole), *values_of(whole)]

    def together(self, about: tuple[Any, ...], like: Any, parts: list[Any], as_argument: bool) -> Any:
        keys = list(keys_of(like))
        new = parts[: len(keys)] if as_argument else keys
        return MAPPING.together((new, about[1]), like, parts[len(keys) :], as_argument)

    filled = Container.filled


_INT64 = (_Wrapping(),)
_OBJECTS, _WHOLE, _COPIED, _COUNTED, _KEYED_BY_VALUES = _Objects(), _Whole(), _Copied(), _Counted(), _KeyedByValues()


class Arguments(Reading):
    """Integers are marked, because a trace leaves them open; whatever else is no number belongs to the key.

    So do arrays of integers, by their entries, and dataclasses of nothing but integers, which are settings. An array
    of floats is one entry, in one piece. What might be there twice is noted among the `holders`.
    """

    holders: list[Any]
    settings = False  # whether integers belong to the key

    def number(self, whole: Any, numbers: list[Any]) -> Key:
        kind = type(whole)
        if kind is float:
            numbers.append(whole)
            return FLOAT
        if is_value(whole):
            numbers.append(whole)
            self.holders.append(whole)
            return VALUE
        if not isinstance(whole, Integral):
            numbers.append(float(whole))
            return FLOAT
        if kind is int or kind is np.int64:  # NumPy's others, which are rare, are fixed
            numbers.append(int(whole))
            return INT if kind is int else _INT64
        self.settings = self.settings or kind is not bool
        return _WHOLE, kind, whole

    def row(self, whole: Any, numbers: list[Any]) -> Key | None:
        kind = only_type(whole)
        if kind is not float:
            if kind in VALUE_TYPES:
                self.holders += whole
            elif kind is not int:
                return None
        numbers += whole
        self.holders.append(whole)
        return ROW, type(whole), len(whole), kind

    def array(self, array: Any, numbers: list[Any]) -> Key:
        self.holders.append(array)
        array = plain_array(array)
        kind = array.dtype.kind
        if kind == "f":
            numbers.append((array if array.itemsize <= 8 else array.astype(np.float64)).ravel())  # of long doubles
            return ARRAY, array.shape
        if kind == "O":
            return _OBJECTS, array.shape, key_of(array.ravel().tolist(), numbers, self)
        if kind not in "iub":
            raise TypeError(f"expected an array of real numbers or Values, got one of dtype {array.dtype}")
        self.settings = self.settings or kind != "b"
        return _WHOLE, array.dtype.str, array.shape, array.tobytes()

    def container(self, kind: Container, whole: Any, numbers: list[Any]) -> Key:
        if kind is MAPPING and only_type(tuple(whole)) is not str and any(map(is_value, whole)):
            kind = _KEYED_BY_VALUES
        before = len(numbers)
        self.holders.append(whole)
        key = super().container(kind, whole, numbers)
        if kind is DATACLASS and all(type(number) is int for number in numbers[before:]):
            settings = tuple(numbers[before:])
            del numbers[before:]
            self.settings = True
            return ANYTHING, key, settings
        return key

    def kept(self, whole: Any) -> Key:
        super().kept(whole)
        return ANYTHING, type(whole), exactly(whole)


class StrayError(TypeError):
    """Something that has no place in a result."""


class _Results(Reading):
    """Only Values count: they are what a program computes. All else is as the trace found it."""

    def number(self, whole: Any, numbers: list[Any]) -> Key:
        if not is_value(whole):
            return (_COUNTED,) if is_index(whole) else KEPT
        numbers.append(whole)
        return VALUE

    def row(self, whole: Any, numbers: list[Any]) -> Key | None:
        if only_type(whole) not in VALUE_TYPES:
            return None
        numbers += whole
        return ROW, type(whole), len(whole)

    def array(self, array: Any, numbers: list[Any]) -> Key:
        if array.dtype.kind != "O":
            return (_COPIED,)
        return _OBJECTS, array.shape, key_of(array.ravel().tolist(), numbers, self)

    def container(self, kind: Container, whole: Any, numbers: list[Any]) -> Key:
        about = kind.about(whole)
        parts = kind.parts(about, whole)
        hung = len(parts) - len(kind.attributes(about))
        keys = [
            KEPT if place >= hung and (isinstance(part, str) or callable(part)) else key_of(part, numbers, self)
            for place, part in enumerate(parts)
        ]
        return kind, type(whole), about, tuple(keys)

    def kept(self, whole: Any) -> Key:
        if hasattr(type(whole), "__index__") and not isinstance(whole, bool):
            return (_COUNTED,)
        if whole is not None and not isinstance(whole, bool):
            raise StrayError(whole)
        return KEPT


RESULTS = _Results()


class Result:
    """What a traced function returned: the Values in it, and the structure around them."""

    def __init__(self, returned: Any, function: Callable[..., Any]) -> None:
        self.values: list[Any] = []
        try:
            self.key = key_of(returned, self.values, RESULTS)
        except StrayError as stray:
            refuse_result(function, stray.args[0])
        except RecursionError:
            raise TypeError(f"compile: the result: {ENDLESS}") from None
        if not self.values:
            refuse_result(function, returned)
        self.is_bare = self.key == VALUE
        self.single = self.is_bare or (self.key[0] is _OBJECTS and self.key[2] == (ROW, list, 1))  # in an array
        # holds no Value: the graph that was traced must not stay alive
        self.hollow = Source([None] * len(self.values)).filled(self.key, returned)

    def fill(self, parts: list[Any]) -> Any:
        """The structure with these in the places of the Values."""
        return parts[0] if self.is_bare else Source(parts, as_argument=True).filled(self.key, self.hollow)


class NoValueError(TypeError):
    """The function returned nothing that a program could compute."""


def refuse_result(function: Callable[..., Any], returned: Any) -> NoReturn:
    shown = f"{returned!r} ({type(returned).__name__})" if isinstance(returned, str | int | float) else (
        "None" if returned is None else f"a {type(returned).__name__}"
    )  # fmt: skip
    advice = (
        "is a return missing?" if returned is None
        else "return the text from a function around it" if isinstance(returned, str)
        else "nothing in it depends on a float or a Value (integers are taken as they are)"
    )  # fmt: skip
    raise NoValueError(
        f"compile: expected {with_line(function)} to return a Value, or lists, tuples and dicts with Values in them, "
        f"got {shown}; {advice}"
    )


# ---------------------------------------------------------------- a call


class Fixed:
    """Integers that a program has fixed: the arguments in which floats would do as well, once that was tried."""

    moving: list[list[int]] | None = None


class Call(Arguments):
    """The arguments of one call, read; `apart`: each by itself, as derivatives take what is there twice."""

    fixed: Fixed | None = None  # the integers among the arguments that what was run for it has fixed
    repeated: tuple[Any, ...] = ()  # where among the holders one is that was there before
    apart: frozenset[int] = frozenset()  # the ids of what is there twice, and taken as two

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any], apart: bool = False) -> None:
        self.args, self.kwargs = args, kwargs
        holders: list[Any] = []
        entries: list[Any] = []
        self.holders, self.entries = holders, entries
        try:
            keys = read((*args, kwargs) if kwargs else args, entries, holders, _KINDS, self._key)
        except (TypeError, RecursionError) as error:
            raise TypeError(f"compile: {ENDLESS if isinstance(error, RecursionError) else error}") from None
        self.keys = keys
        self.key = len(args), *keys
        if len(holders) > 1 and (repeated := repetitions(holders)):
            self.key = *self.key, *repeated
            if apart:
                self.apart = frozenset(id(holders[at]) for _, at in repeated if not is_value(holders[at]))
                self.key = *self.key, bool(self.apart)
            else:
                self.repeated = repeated

    def _key(self, whole: Any) -> Key:
        return self.array(whole, self.entries) if type(whole) is np.ndarray else key_of(whole, self.entries, self)

    def numbers(self) -> tuple[Any, Any]:
        """The data of the entries as they are, and as the executor takes them: as they are, or as an array."""
        entries = self.entries
        if all_doubles(entries):
            return entries, entries
        numbers = np.empty(len(entries))
        try:
            if write(entries, numbers):
                return entries, numbers
            kinds = set(map(type, entries))
            if kinds <= _PIECES:  # no need to take arrays apart
                pieces = entries
                if float in kinds:
                    pieces = [each if type(each) is np.ndarray else (each,) for each in entries]
                numbers = np.concatenate(pieces, dtype=np.float64)
                return numbers, numbers
            entries = [entry if type(entry) in _PLAIN else entry.data for entry in self.taken_apart()]
            numbers = np.empty(len(entries))
            write(entries, numbers)
        except OverflowError:  # of an integer; no program for numbers is one for it
            self.key = (*self.key, OverflowError)
            numbers = np.array([float_of(entry.data if is_value(entry) else entry) for entry in entries])
        return entries, numbers

    def taken_apart(self) -> list[Any]:
        """The entries, those of arrays one by one."""
        if not all_plain(self.entries) and np.ndarray in set(map(type, self.entries)):
            lists = [each.tolist() if type(each) is np.ndarray else [each] for each in self.entries]
            self.entries = list(chain.from_iterable(lists))
        return self.entries

    def places(self) -> dict[int | str, range]:
        """Where among the entries those of each argument are."""
        places: dict[int | str, range] = {}
        end = 0
        arguments: list[tuple[int | str, Any]] = [*enumerate(self.args), *self.kwargs.items()]
        for place, argument in arguments:
            begin, end = end, end + len(Call((argument,), {}).taken_apart())
            places[place] = range(begin, end)
        return places

    def filled(self, stand_ins: Any, as_argument: bool = True) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with these in place of their numbers."""
        again = {id(self.holders[at]): None for _, at in self.repeated} if self.repeated else None
        return self._filled_by(source_of(stand_ins, as_argument, again))

    def applied(self, function: Callable[..., Any], stand_ins: list[Any]) -> Any:
        """The function of the arguments with these in place of their numbers."""
        if not self.apart:
            args, kwargs = self.filled(stand_ins)
            return function(*args, **kwargs)
        watching = Watching(stand_ins, self.apart)
        return watching.applied(f"compile: derivatives of {with_line(function)}", function, *self._filled_by(watching))

    def _filled_by(self, source: Source) -> tuple[tuple[Any, ...], dict[str, Any]]:
        args = tuple([source.filled(key, given) for key, given in zip(self.keys, self.args, strict=False)])
        return args, source.filled(self.keys[-1], self.kwargs) if self.kwargs else {}


def float_of(number: Any) -> float:
    """The number as a float; an integer too large for one, which only integers can be made of, as an infinity."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


_PIECES, _PLAIN = {np.ndarray, float}, {float, int}
_KINDS = ROW, SEQUENCE, MAPPING, FLOAT, INT, VALUE  # in the order of native/value/structure.c


# ---------------------------------------------------------------- for messages


def user_line() -> str:
    """Where in the user's own files we are: `model.py:12`."""
    frame = _user_frame()
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def user_instruction() -> tuple[int, int]:
    """Which of the instructions of which call of the user's functions is being run."""
    frame = _user_frame()
    return id(frame), frame.f_lasti


def _user_frame() -> types.FrameType:
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "gradwalk":
        frame = frame.f_back
    return frame


def with_line(function: Callable[..., Any]) -> str:
    """The user's function with the line it starts on: `loss (model.py:12)`."""
    inner: Any = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    name = getattr(inner, "__name__", type(inner).__name__)
    called = inspect.unwrap(inner) if hasattr(inner, "__name__") else type(inner).__call__  # an object's own
    code = getattr(called, "__code__", None)
    return f"{name} ({code.co_filename}:{code.co_firstlineno})" if code else name
