"""What a class's methods change besides its own objects: counters, lists of all nodes, random numbers that are drawn.

Trying a class out must leave no trace of that; and a class that counts would count no more, were it replaced.
"""

from __future__ import annotations

import copy
import itertools
import random
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

KNOWN = int, float, str, bool, type(None), list, dict, set, itertools.count


class State:
    """The attributes of a class, and the variables that its methods name, as they are now."""

    def __init__(self, cls: type) -> None:
        self.cls = cls
        functions = [member for member in vars(cls).values() if isinstance(member, FunctionType)]
        self.variables = functions[0].__globals__ if functions else {}
        named = {name for function in functions for name in names_in(function.__code__)}
        self.attributes = dict(kept(vars(cls)))
        self.globals = {name: pair for name, pair in kept(self.variables) if name in named}
        self.random = random.getstate()
        numpy: Any = sys.modules.get("numpy")
        self.numpys = numpy.random if numpy and "numpy.random" in sys.modules else None
        self.of_numpy = self.numpys.get_state() if self.numpys else None

    def changed(self) -> str:
        """What is not as it was; empty if all is."""
        for name, (value, before) in self.attributes.items():
            if not same(vars(self.cls).get(name), value, before):
                return f"{self.cls.__name__}.{name}"
        for name, value in vars(self.cls).items():
            if name not in self.attributes and type(value) in KNOWN and not name.startswith("__"):
                return f"{self.cls.__name__}.{name}"
        for name, (value, before) in self.globals.items():
            if not same(self.variables.get(name), value, before):
                return name
        drawn = self.random != random.getstate() or str(self.of_numpy) != str(self.numpys and self.numpys.get_state())
        return "the random numbers that follow" if drawn else ""

    def restore(self) -> None:
        for name in [name for name, value in vars(self.cls).items() if type(value) in KNOWN]:
            if name not in self.attributes and not name.startswith("__"):
                delattr(self.cls, name)
        for name, (value, before) in self.attributes.items():
            if not same(vars(self.cls).get(name), value, before):
                setattr(self.cls, name, as_before(value, before))
        for name, (value, before) in self.globals.items():
            if not same(self.variables.get(name), value, before):
                self.variables[name] = as_before(value, before)
        random.setstate(self.random)
        if self.numpys:
            self.numpys.set_state(self.of_numpy)


def kept(namespace: Any) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Numbers, texts and containers, each with a copy of what it holds."""
    for name, value in list(namespace.items()):
        if type(value) in KNOWN and not name.startswith("__"):
            yield name, (value, copy.copy(value))


def names_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_in(constant)


def same(now: Any, value: Any, before: Any) -> bool:
    if now is not value or not isinstance(value, list | dict | set | itertools.count):
        return now is value
    if isinstance(value, itertools.count):
        return repr(value) == repr(before)
    entries = [[*each.items()] if isinstance(each, dict) else [*each] for each in (value, before)]
    return len(entries[0]) == len(entries[1]) and all(map(is_same_entry, *entries))


def is_same_entry(one: Any, other: Any) -> bool:
    if type(one) is tuple and len(one) == 2 == len(other):  # of a dict
        return one[0] is other[0] and one[1] is other[1]
    return one is other


def as_before(value: Any, before: Any) -> Any:
    """The same object with what it held, where others may know it too."""
    if isinstance(value, list):
        value[:] = before
    elif isinstance(value, dict | set):
        value.clear()
        value.update(before)
    return before if isinstance(value, itertools.count) else value
