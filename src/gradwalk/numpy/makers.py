"""What makes arrays, made so that its arrays accept Values."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gradwalk.numpy.arrays import accepting, has_values

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
ACCEPTING = {name: accepts_values(getattr(np, name)) for name in _MAKERS}
