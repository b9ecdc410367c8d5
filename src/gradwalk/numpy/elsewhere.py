"""`everywhere`: arrays and a `math` that accept Values, in code that is not to be touched.

NumPy itself is left alone, because compiled code writes doubles into what `np.empty` gives it. What is exchanged, for
as long as somebody is inside, are the names that your own modules have for NumPy and its makers, `math` and its
functions; what stands there then asks in which thread and task it is, and is NumPy for all that are not inside. An
`import numpy` in a function of such a module gets the same.
"""

from __future__ import annotations

import builtins
import functools
import math
import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, TypeVar

import numpy as np

from gradwalk.control import WithBlock, changed
from gradwalk.modes import current
from gradwalk.numpy.makers import ACCEPTING
from gradwalk.own_files import is_own
from gradwalk.passes import Shared

_F = TypeVar("_F", bound=Callable[..., Any])
_replaced: list[tuple[dict[str, Any], str, Any]] = []


class everywhere(WithBlock):  # noqa: N801  (it is written as a function)
    """Inside, in this thread and task, NumPy makes arrays that accept Values, and so does `math`; also a decorator.

    It holds for the modules that are not installed as packages; of those that are, for the ones named.

    >>> import numpy, gradwalk
    >>> def squares(x):
    ...     out = numpy.zeros(len(x))
    ...     for i in range(len(x)):
    ...         out[i] = x[i] ** 2
    ...     return out.sum()
    >>> gradwalk.grad(everywhere()(squares))([1.0, 2.0])
    [2.0, 4.0]
    """

    def __init__(self, *packages: str) -> None:
        super().__init__()
        self._packages = packages
        self._namespaces: list[dict[str, Any]] = []  # of the function, which may be no module's

    def __call__(self, function: _F) -> _F:
        self._namespaces.append(getattr(function, "__globals__", {}))
        return super().__call__(function)

    def _inside(self) -> AbstractContextManager[None]:
        return _replacing(self._packages, self._namespaces)

    def _recreate_cm(self) -> everywhere:
        again = everywhere(*self._packages)
        again._namespaces = self._namespaces
        return again


@contextmanager
def _replacing(packages: tuple[str, ...], namespaces: list[dict[str, Any]]) -> Iterator[None]:
    with _exchanged((packages, namespaces)), changed(everywhere=True):
        yield


def _exchange_all(wish: tuple[tuple[str, ...], list[dict[str, Any]]]) -> None:
    instead = _stand_ins()
    if not _replaced:
        _exchange(vars(builtins), "__import__", _importer(builtins.__import__))
    for namespace in (*_namespaces(), *wish[1]):
        for name, theirs in list(namespace.items()):
            if id(theirs) in instead and instead[id(theirs)][0] is theirs:
                _exchange(namespace, name, instead[id(theirs)][1])


def _exchange(namespace: dict[str, Any], name: str, instead: Any) -> None:
    _replaced.append((namespace, name, namespace[name]))
    namespace[name] = instead


def _put_back() -> None:
    while _replaced:
        namespace, name, theirs = _replaced[-1]
        namespace[name] = theirs
        _replaced.pop()


_exchanged = Shared(_exchange_all, _put_back)


def _importer(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """What an import statement asks, which may stand in a function too."""

    @functools.wraps(theirs)
    def imported(name: str, variables: Any = None, *rest: Any, **named: Any) -> Any:
        module = theirs(name, variables, *rest, **named)
        if (
            current().everywhere
            and name.split(".")[0] in ("numpy", "scipy", "math", "statistics")
            and _is_meant((variables or {}).get("__name__", ""), _named())
        ):
            return _stand_ins().get(id(module), (module, module))[1]
        return module

    return imported


def _namespaces() -> Iterator[dict[str, Any]]:
    named = _named()
    for name, module in list(sys.modules.items()):
        if _is_meant(name, named) and hasattr(module, "__dict__"):
            yield module.__dict__


def _named() -> set[str]:
    """Packages that somebody who is inside has named."""
    return {name for packages, _ in _exchanged.wishes() for name in packages}


def _is_meant(name: str, named: set[str]) -> bool:
    return _is_own(name) or name.split(".")[0] in named


@functools.cache
def _is_own(name: str) -> bool:
    """Whether the module is the user's own code, in Python."""
    file = getattr(sys.modules.get(name), "__file__", None)
    if name.split(".")[0] in ("gradwalk", "numpy", "scipy") or name in sys.builtin_module_names:
        return False
    return file is None or file == "<stdin>" or (file.endswith((".py", ".pyc")) and is_own(file))


# ---------------------------------------------------------------- what stands there


class _StandIn(ModuleType):
    """A module, with other functions in it for whoever is inside."""

    def __init__(self, theirs: ModuleType, ours: dict[str, Any]) -> None:
        super().__init__(theirs.__name__, theirs.__doc__)
        self.__dict__.update(_theirs=theirs, _ours=ours)

    def __getattr__(self, name: str) -> Any:
        return self._ours[name] if current().everywhere and name in self._ours else getattr(self._theirs, name)

    def __dir__(self) -> list[str]:
        return dir(self._theirs)


def _chooser(theirs: Any, ours: Any) -> Any:
    @functools.wraps(theirs)
    def chosen(*args: Any, **kwargs: Any) -> Any:
        return (ours if current().everywhere else theirs)(*args, **kwargs)

    return chosen


def _stand_ins() -> dict[int, tuple[Any, Any]]:
    """What is exchanged, by its id: itself, and what stands there instead."""
    if not _made:
        _made["numpy"] = _pairs(np, ACCEPTING)
        for module in (math, statistics):
            ours = import_module(f"gradwalk.{module.__name__}")
            _made[module.__name__] = _pairs(module, {name: getattr(ours, name) for name in ours.__all__})
    for room in ("special", "stats", "integrate"):
        if (name := f"scipy.{room}") in sys.modules and name not in _made:
            _made[name] = _pairs(sys.modules[name], import_module(f"gradwalk.{name}").OURS)
            rooms = {each.rpartition(".")[2]: pairs[0][1] for each, pairs in _made.items() if "." in each}
            _made["scipy"] = [(sys.modules["scipy"], _StandIn(sys.modules["scipy"], rooms))]
    return {id(theirs): (theirs, ours) for pairs in _made.values() for theirs, ours in pairs}


_made: dict[str, list[tuple[Any, Any]]] = {}


def _pairs(module: ModuleType, ours: dict[str, Any]) -> list[tuple[Any, Any]]:
    functions = FunctionType, BuiltinFunctionType
    named = [(getattr(module, name), own) for name, own in ours.items() if hasattr(module, name)]
    exchanged = [(theirs, own) for theirs, own in named if theirs is not own]
    choosers = [(theirs, _chooser(theirs, own) if isinstance(own, functions) else own) for theirs, own in exchanged]
    return [(module, _StandIn(module, ours)), *choosers]
