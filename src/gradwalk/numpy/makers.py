"""What makes arrays, made so that its arrays accept Values; and functions of lists, which NumPy makes arrays of."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gradwalk.numpy.arrays import HANDLED, accepting, has_values

_MAKERS = ("array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "zeros", "ones", "empty", "full",
           "eye", "identity", "linspace", "logspace", "geomspace", "arange", "diag", "atleast_1d", "atleast_2d",
           "atleast_3d", "concatenate", "stack", "vstack", "hstack", "column_stack", "zeros_like", "ones_like",
           "empty_like", "full_like", "fromiter", "meshgrid", "copy")  # fmt: skip


def accepts_values(maker: Callable[..., Any]) -> Callable[..., Any]:
    """The same maker; its floats stand in an array that accepts Values."""

    @functools.wraps(maker)
    def made(*args: Any, **kwargs: Any) -> Any:
        if any(map(has_values, (*args, *kwargs.values()))):
            kwargs, wanted = {**kwargs}, kwargs.get("dtype")
            if wanted is None and len(args) > 1 and maker in _WITH_DTYPE:
                args, wanted = (args[0], *args[2:]), args[1]
            if wanted is not None and maker in _WITH_DTYPE and np.dtype(wanted).kind not in "fO":
                raise TypeError(
                    f"{maker.__name__}: expected numbers for dtype {np.dtype(wanted)}, got Values, whose gradient "
                    "would be lost; leave dtype away"
                )
            if maker in _WITH_DTYPE or (wanted is not None and np.dtype(wanted).kind == "f"):
                kwargs["dtype"] = object
        result = maker(*args, **kwargs)
        return [accepting(each) for each in result] if type(result) is list else (
            tuple(map(accepting, result)) if type(result) is tuple else accepting(result))  # fmt: skip

    return made


_WITH_DTYPE = {np.array, np.asarray, np.asanyarray, np.ascontiguousarray, np.asfortranarray}


def _with_lists(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function; a list of Values is an array that accepts them: of any other, NumPy asks nobody."""

    @functools.wraps(function)
    def applied(*args: Any, **kwargs: Any) -> Any:
        return function(*map(_listed, args), **{name: _listed(given) for name, given in kwargs.items()})

    return applied


def _listed(given: Any) -> Any:
    return accepting(np.array(given, object)) if isinstance(given, list | tuple) and has_values(given) else given


def _of_this_module(functions: dict[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    for name, function in functions.items():
        function.__module__, function.__qualname__ = __name__, name
    return functions


# what NumPy does by itself on arrays that accept Values, and otherwise than on floats on those that do not
_REDUCING = (np.clip, np.max, np.min, np.amax, np.amin, np.ptp, np.any, np.all, np.prod, np.mean, np.cumsum, np.cumprod)
_OF_LISTS = (*_REDUCING, *HANDLED)
ACCEPTING = _of_this_module(
    {
        **{name: _with_lists(each) for name, each in vars(np).items() if any(each is one for one in _OF_LISTS)},
        **{name: accepts_values(getattr(np, name)) for name in _MAKERS},
    }
)


def __getattr__(name: str) -> Any:
    """By this pickle finds them: as names of the module, `any` and others would stand before those used above."""
    if name not in ACCEPTING:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return ACCEPTING[name]
