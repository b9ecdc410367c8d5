"""What a traced function returned: where its Values are in the structure, and how to put others in their places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, is_dataclass
from typing import Any

import numpy as np

from gradwalk.compiler.arguments import described
from gradwalk.compiler.index import Index
from gradwalk.structure import dataclass_like, field_names, is_value, sequence_like


class NoValueError(TypeError):
    """The function returned nothing that a program could compute."""


@dataclass(frozen=True, eq=False)
class _Place:
    """In a structure, where the value of that number goes."""

    number: int


@dataclass(frozen=True, eq=False)
class Result:
    """The Values in the result, and the structure around them."""

    values: list[Any]
    structure: Any

    @property
    def single(self) -> bool:
        return isinstance(self.structure, _Place)

    def filled(self, parts: Sequence[Any]) -> Any:
        """The structure with these in the places of the Values."""
        return _filled(self.structure, parts)


def result_of(returned: Any, function: Callable[..., Any]) -> Result:
    """The Values in what was returned; refused if there are none, or if something is no number."""
    values: list[Any] = []

    def structure(part: Any) -> Any:
        if is_value(part):
            values.append(part)
            return _Place(len(values) - 1)
        if isinstance(part, Index):
            return int(part)
        if isinstance(part, np.ndarray):
            return _Shaped(structure(part.ravel().tolist()), part.shape)
        if isinstance(part, dict):
            return {key: structure(entry) for key, entry in part.items()}
        if isinstance(part, list | tuple):
            made = [structure(entry) for entry in part]
            return sequence_like(part, made)
        if isinstance(part, int | float | np.integer | np.floating | np.bool_) or part is None:
            return part
        if is_dataclass(part) and not isinstance(part, type):
            names = field_names(part)
            hollow = dataclass_like(part, names, [None] * len(names), as_argument=False)  # holds no Value
            fields = [getattr(part, name) for name in names]  # text has its place in these
            return _Fields(hollow, names, [each if isinstance(each, str) else structure(each) for each in fields])
        _refuse(function, part)

    whole = structure(returned)
    if not values:
        _refuse(function, returned)
    return Result(values, whole)


@dataclass(frozen=True, eq=False)
class _Shaped:
    """An array: its entries as a list, and its shape."""

    entries: list[Any]
    shape: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class _Fields:
    """A dataclass: what its fields are."""

    like: Any
    names: list[str]
    parts: list[Any]


def _filled(part: Any, parts: Sequence[Any]) -> Any:
    if isinstance(part, _Place):
        return parts[part.number]
    if isinstance(part, _Shaped):
        entries = [_filled(entry, parts) for entry in part.entries]
        array = np.empty(len(entries), object if any(map(is_value, entries)) else np.float64)
        array[:] = entries
        return array.reshape(part.shape)
    if isinstance(part, _Fields):
        return dataclass_like(part.like, part.names, [_filled(each, parts) for each in part.parts], as_argument=True)
    if isinstance(part, dict):
        return {key: _filled(entry, parts) for key, entry in part.items()}
    if isinstance(part, list | tuple):
        made = [_filled(entry, parts) for entry in part]
        return sequence_like(part, made)
    return part


def _refuse(function: Callable[..., Any], returned: Any) -> Any:
    shown = f"{returned!r} ({type(returned).__name__})" if isinstance(returned, str | int | float) else (
        "None" if returned is None else f"a {type(returned).__name__}"
    )  # fmt: skip
    advice = (
        "is a return missing?" if returned is None
        else "return the text from a function around it" if isinstance(returned, str)
        else "nothing in it depends on a float or a Value (integers are taken as they are)"
    )  # fmt: skip
    raise NoValueError(
        f"compile: expected {described(function)} to return a Value, or lists, tuples and dicts with Values in them, "
        f"got {shown}; {advice}"
    )
