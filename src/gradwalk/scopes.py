"""Named scopes: which part of a program a node was made in.

`graph.py` folds a large graph up by them; the modules of `nn` open theirs.
"""

from __future__ import annotations

from typing import Any

from gradwalk.control import changed
from gradwalk.modes import current

# a scope is a number in the engines; its path is looked up here
_paths: list[tuple[str, ...]] = [()]
_numbers: dict[tuple[int, str], int] = {}  # by the scope around it and its name


class scope(changed):  # noqa: N801  # used like a function: with scope("attention"):
    """Everything made inside belongs to the scope of that name; scopes nest.

    >>> from gradwalk import Value
    >>> from gradwalk.scopes import path_of
    >>> with scope("layer"), scope("neuron"):
    ...     v = Value(1.0) * 2.0
    >>> path_of(v)
    ('layer', 'neuron')
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def _recreate_cm(self) -> scope:
        return scope(self.name)

    def _shown(self) -> str:
        return f"scope({self.name!r})"

    def __enter__(self) -> None:
        around, name = current().scope, self.name
        if isinstance(name, str):
            name = str.__str__(name)  # it is kept for ever: without what a class of somebody's own hangs on it
        number = _numbers.get((around, name))
        if number is None:
            number = len(_paths)
            _paths.append((*_paths[around], name))
            _numbers[around, name] = number
        self.changes["scope"] = number
        try:
            changed.__enter__(self)
        except BaseException:  # raised by a signal handler, when it was entered already
            self.__exit__()
            raise


def path_of(value: Any) -> tuple[str, ...]:
    """The names of the scopes a node was made in, outermost first."""
    number: int = value._scope
    return _paths[number]
