"""Arguments as one flat list of entries, and the structure they were in.

An entry is a number or a Value. Integers are marked, because in a trace they become an `Index`; text, None, True and
False are part of the structure; so is any other object, by identity. A dataclass of numbers is a structure of its own.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
from collections.abc import Callable, Hashable
from numbers import Integral, Real
from typing import Any

import numpy as np

from gradwalk.structure import VALUE_TYPES, dataclass_like, field_names, only_type, sequence_like, with_values
from gradwalk.structure import flatten as flatten_parts

_FLOAT, _INT, _VALUE = "float", "int", "value"
_ROWS: dict[type | None, str] = {float: "floats", int: "ints", **dict.fromkeys(VALUE_TYPES, "values")}
_KEPT = (bool, str, bytes, type(None))


def flatten_call(args: tuple[Any, ...], kwargs: dict[str, Any], entries: list[Any]) -> Hashable:
    """`flatten` of what a function is called with."""
    one = len(args) == 1
    positional = (flatten(args[0], entries),) if one else tuple([flatten(argument, entries) for argument in args])
    return (positional, flatten(kwargs, entries)) if kwargs else positional


def flatten(whole: Any, entries: list[Any]) -> Hashable:
    """The structure of `whole`, as a key; its numbers and Values go to the end of `entries`."""
    kind = type(whole)
    if kind is list or kind is tuple:
        if row := _ROWS.get(only_type(whole)):
            entries.extend(whole)
            return kind, row, len(whole)
        return kind, tuple([flatten(entry, entries) for entry in whole])
    if kind is float or kind in VALUE_TYPES:
        entries.append(whole)
        return _FLOAT if kind is float else _VALUE
    if kind is int:
        entries.append(whole)
        return _INT
    if isinstance(whole, np.ndarray):
        return _flatten_array(whole, entries)
    if isinstance(whole, dict):
        return kind, tuple(whole), tuple([flatten(entry, entries) for entry in whole.values()])
    if isinstance(whole, (*_KEPT, np.bool_)):
        return "kept", kind, whole
    if isinstance(whole, (Real, *VALUE_TYPES)):
        is_value = isinstance(whole, VALUE_TYPES)
        number: Any = whole
        entries.append(whole if is_value else float(number))
        return _VALUE if is_value else _INT if isinstance(whole, Integral) else _FLOAT
    if isinstance(whole, list | tuple):
        return kind, tuple([flatten(entry, entries) for entry in whole])
    if isinstance(whole, set | frozenset | complex):
        advice = "take its .real and .imag" if isinstance(whole, complex) else "a set has no order: give a list"
        raise TypeError(f"compile: expected numbers, lists, tuples, dicts or arrays, got a {kind.__name__}; {advice}")
    if _is_dataclass_of_numbers(whole):
        return kind, tuple([flatten(getattr(whole, name), entries) for name in field_names(whole)])
    return "object", _Same(whole)


def _is_dataclass_of_numbers(whole: Any) -> bool:
    """Settings, whose numbers are all integers, are not: they stay the object they are."""
    if not dataclasses.is_dataclass(whole) or isinstance(whole, type):
        return False
    numbers: list[Any] = []
    flatten_parts(whole, numbers)
    return not all(isinstance(number, int | np.integer) for number in numbers)


def flatten_arrays(whole: Any, pieces: list[Any]) -> Hashable | None:
    """`flatten` of arrays, floats and dicts of them, whose numbers stay in one piece each; None for anything else."""
    kind = type(whole)
    if kind is np.ndarray and whole.dtype.kind in "fiu":
        pieces.append(whole.ravel())
        return _array_key(whole)
    if kind is float:
        pieces.append((whole,))
        return _FLOAT
    if kind is not dict:
        return None
    keys = [flatten_arrays(entry, pieces) for entry in whole.values()]
    return None if None in keys else (kind, tuple(whole), tuple(keys))


class _Same:
    """An object as part of a key: equal to itself only, and kept alive, so that its id is not given away."""

    __slots__ = ("it",)

    def __init__(self, it: Any) -> None:
        self.it = it

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.it is self.it

    def __hash__(self) -> int:
        return id(self.it)


def _flatten_array(array: Any, entries: list[Any]) -> Hashable:
    kind = array.dtype.kind
    if kind == "O":
        listed: Hashable = flatten(array.ravel().tolist(), entries)
        return "array", array.shape, listed
    if kind not in "fiu":
        raise TypeError(f"compile: expected an array of real numbers or Values, got one of dtype {array.dtype}")
    entries.extend(array.ravel().astype(np.float64).tolist())
    return _array_key(array)


def _array_key(array: Any) -> Hashable:
    return "array", array.shape, "f" if array.dtype.kind == "f" else "i"


def replaced(whole: Any, number: Callable[[float], Any], integer: Callable[[int], Any]) -> Any:
    """`whole` with what `number` and `integer` make of each entry, in the order of `flatten`."""
    if isinstance(whole, bool | np.bool_):
        return whole
    if isinstance(whole, int | np.integer):
        return integer(int(whole))
    if isinstance(whole, Real):
        return number(float(whole))
    if isinstance(whole, VALUE_TYPES):
        return number(whole)  # type: ignore[arg-type]
    if isinstance(whole, np.ndarray):
        filled = np.empty(whole.shape, object)
        flat = filled.ravel()  # a view: it was just made, in one piece
        for i, entry in enumerate(whole.ravel().tolist()):
            flat[i] = replaced(entry, number, integer)
        return with_values(filled)
    if isinstance(whole, dict):
        like = whole.copy()
        for key, entry in whole.items():
            like[key] = replaced(entry, number, integer)
        return like
    if isinstance(whole, list | tuple):
        made = [replaced(entry, number, integer) for entry in whole]
        return sequence_like(whole, made)
    if _is_dataclass_of_numbers(whole):
        names = field_names(whole)
        made = [replaced(getattr(whole, name), number, integer) for name in names]
        return dataclass_like(whole, names, made, as_argument=True)
    return whole


def like_arguments(whole: Any, numbers: Any) -> Any:
    """`whole` with the numbers of this array in place of its entries; an array stays one, of floats."""
    used = 0

    def taken(count: int) -> Any:
        nonlocal used
        used += count
        return numbers[used - count : used]

    def filled(part: Any) -> Any:
        if isinstance(part, np.ndarray):
            return taken(part.size).copy().reshape(part.shape)
        if type(part) is list and set(map(type, part)) == {float}:
            return taken(len(part)).tolist()
        if isinstance(part, dict):
            like = part.copy()
            for key, entry in part.items():
                like[key] = filled(entry)
            return like
        if isinstance(part, list | tuple):
            made = [filled(entry) for entry in part]
            return sequence_like(part, made)
        if isinstance(part, _KEPT):
            return part
        if isinstance(part, (Real, *VALUE_TYPES)):
            return taken(1).item()
        if _is_dataclass_of_numbers(part):
            names = field_names(part)
            return dataclass_like(part, names, [filled(getattr(part, name)) for name in names], as_argument=False)
        return part

    return filled(whole)


def user_line() -> str:
    """Where in the user's own files we are: `model.py:12`."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "gradwalk":
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def described(function: Callable[..., Any]) -> str:
    """The user's function with the line it starts on: `loss (model.py:12)`."""
    inner: Any = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    name = getattr(inner, "__name__", type(inner).__name__)
    called = inspect.unwrap(inner) if hasattr(inner, "__name__") else type(inner).__call__  # an object's own
    code = getattr(called, "__code__", None)
    return f"{name} ({code.co_filename}:{code.co_firstlineno})" if code else name
