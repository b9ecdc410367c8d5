"""What a person would call the inputs of a program: the names of parameters, and of the variables closed over."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import groupby, repeat
from types import CodeType
from typing import Any

import numpy as np

from gradwalk.compiler.program import Program
from gradwalk.compiler.reading import Call
from gradwalk.structure import is_value

_DEEP = 6  # lists in dicts in objects
_MANY = 2_000_000  # entries looked at: names are a help, not worth more time than the compiling itself


def name_inputs(program: Program, function: Callable[..., Any], call: Call, leaves: tuple[Any, ...]) -> None:
    """Give the program's inputs their names: each name at the first slot of the block it belongs to."""
    names = [*argument_names(function, call), *_leaf_names(function, leaves)]
    if len(names) != len(program.inputs):
        return
    for name, places in groupby(np.argsort(program.inputs).tolist(), key=names.__getitem__):
        program.names[int(program.inputs[next(places)])] = name


def argument_names(function: Callable[..., Any], call: Call) -> Iterator[str]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    for place, entries in call.places().items():
        if isinstance(place, int):
            positional = place < len(parameters) and parameters[place].kind is not inspect.Parameter.VAR_POSITIONAL
            place = parameters[place].name if positional else f"arg{place}"
        yield from [place] * len(entries)


def _leaf_names(function: Callable[..., Any], leaves: tuple[Any, ...]) -> list[str]:
    if not leaves:
        return []
    found: dict[int, str] = {}
    places = list(map(id, leaves))
    wanted = set(places)
    left = [_MANY]
    of_object = getattr(inspect.unwrap(function), "__self__", None) is not None
    for name, held in _variables(function):
        _search(held, name, wanted, found, left, 1 if of_object else 0, set())
        if len(found) == len(wanted):
            break
    return [name or leaf.label or "leaf" for name, leaf in zip(map(found.get, places), leaves, strict=True)]


def _variables(function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """What the function can reach by name: its own closure, its object, its globals."""
    inner = inspect.unwrap(function)
    yield from ((name, held) for name, held in getattr(getattr(inner, "__self__", None), "__dict__", {}).items())
    code = getattr(inner, "__code__", None)
    if code is None:
        yield from getattr(inner, "__dict__", {}).items()
        return
    for name, cell in zip(code.co_freevars, getattr(inner, "__closure__", None) or (), strict=False):
        try:
            yield name, cell.cell_contents
        except ValueError:
            continue
    reach = inner.__globals__
    for name in _global_names(code):
        if name in reach and not inspect.ismodule(reach[name]):
            yield name, reach[name]


def _global_names(code: CodeType) -> Iterator[str]:
    """Names used in the function and in the functions and generators written inside it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _global_names(constant)


def _search(held: Any, name: str, wanted: set[int], found: dict[int, str], left: list[int], depth: int, seen: set[int]) -> None:  # fmt: skip  # noqa: E501
    if id(held) in wanted:
        found.setdefault(id(held), name)
        return
    if is_value(held) or depth > _DEEP or left[0] <= 0 or id(held) in seen:
        return
    entries: Collection[Any]
    keys: Iterable[str] = repeat(name)
    if isinstance(held, dict):
        keys, entries = map(str, list(held)), list(held.values())  # another thread may change it meanwhile
    elif isinstance(held, list | tuple):
        entries = held
    elif isinstance(held, np.ndarray) and held.dtype == object:
        entries = held.ravel().tolist()
    elif (
        type(held).__module__ != "builtins"
        and hasattr(held, "__dict__")
        and not callable(getattr(held, "__get__", None))
    ):
        keys = [key if depth == 0 else f"{name}.{key}" for key in list(vars(held))]
        entries = list(vars(held).values())
    else:
        return
    seen.add(id(held))
    left[0] -= len(entries)
    places = list(map(id, entries))
    if isinstance(held, list | tuple) and wanted.issuperset(places) and found.keys().isdisjoint(places):
        found.update(dict.fromkeys(places, name))  # a row of leaves, as most of what is looked at, at once
        return
    for key, entry in zip(keys, entries, strict=False):
        _search(entry, key, wanted, found, left, depth + 1, seen)
