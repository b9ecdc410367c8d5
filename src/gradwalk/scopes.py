"""Named scopes: which part of a program a node was made in.

`graph.py` folds a large graph up by them; the modules of `nn` open theirs.
"""

from __future__ import annotations

from typing import Any

from gradwalk import engine

# a scope is a number in the engines; its path is looked up here
_paths: list[tuple[str, ...]] = [()]
_numbers: dict[tuple[int, str], int] = {}  # by the scope around it and its name
_engines = engine.available()


class scope:  # noqa: N801  # used like a function: with scope("attention"):
    """Everything made inside belongs to the scope of that name; scopes nest.

    >>> with scope("layer"), scope("neuron"):
    ...     v = engine.Value(1.0) * 2.0
    >>> path_of(v)
    ('layer', 'neuron')
    """

    __slots__ = ("_before", "name")

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        self._before = _engines[-1].set_scope(0)
        number = _numbers.get((self._before, self.name))
        if number is None:
            number = _numbers[self._before, self.name] = len(_paths)
            _paths.append((*_paths[self._before], self.name))
        for module in _engines:
            module.set_scope(number)

    def __exit__(self, *_: object) -> None:
        for module in _engines:
            module.set_scope(self._before)


def path_of(value: Any) -> tuple[str, ...]:
    """The names of the scopes a node was made in, outermost first."""
    number: int = value._scope
    return _paths[number]
