"""`vmap`: a function of one example as a function of many, along the first axis; a compiled one in one pass."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradwalk.control import no_grad
from gradwalk.functional import Function, Replayed, checked
from gradwalk.structure import Shape, array_of, flatten, is_value


def vmap(f: Function, in_axes: int | Sequence[int | None] | None = 0) -> Function:
    """f of each row of its arguments, its results in arrays; an argument whose axis is None is the same for all.

    >>> vmap(lambda x, a: a * x[0] + x[1], in_axes=(0, None))([[1.0, 2.0], [3.0, 4.0]], 10.0).tolist()
    [12.0, 34.0]
    """
    checked("vmap", f, 0)

    @functools.wraps(f)
    def mapped(*args: Any) -> Any:
        axes = list(in_axes) if isinstance(in_axes, Sequence) else [in_axes] * len(args)
        if len(axes) != len(args):
            raise ValueError(f"vmap: expected an axis for each of {len(args)} arguments, got {len(axes)}")
        along = [arg if axis is None else _rows(arg, axis) for arg, axis in zip(args, axes, strict=True)]
        counts = {len(arg) for arg, axis in zip(along, axes, strict=True) if axis is not None}
        if len(counts) != 1:
            raise ValueError(f"vmap: expected as many rows in each argument, got {sorted(counts) or 'no rows'}")
        calls = [
            tuple(arg if axis is None else arg[i] for arg, axis in zip(along, axes, strict=True))
            for i in range(counts.pop())
        ]
        return _together(_results(f, calls))

    return mapped


def _rows(arg: Any, axis: int) -> Any:
    if isinstance(arg, np.ndarray):
        moved = np.moveaxis(arg, axis, 0)
        return moved.tolist() if moved.ndim == 1 else list(moved)
    if axis != 0:
        raise TypeError(f"vmap: expected an array for axis {axis}, got a {type(arg).__name__}")
    return arg


def _results(f: Function, calls: list[tuple[Any, ...]]) -> list[Any]:
    numbers: list[Any] = []
    flatten([list(call) for call in calls], numbers)
    if not isinstance(f, Replayed) or any(map(is_value, numbers)):
        return [f(*call) for call in calls]
    with no_grad():
        return f.map(calls)


def _together(results: list[Any]) -> Any:
    """One structure of arrays out of as many structures of numbers."""
    if not results:
        return np.zeros(0)
    columns: list[list[Any]] = []
    parts = []
    for result in results:
        numbers: list[Any] = []
        parts.append(flatten(result, numbers))
        columns.append(numbers)
    names = {tuple(part.names("")) for part in parts}
    if len(names) > 1:
        raise ValueError("vmap: expected results of one structure, got different ones")

    def stacked(start: int, shape: Shape) -> Any:
        size = int(np.prod(shape or ()))
        return array_of([x for row in columns for x in row[start : start + size]], (len(results), *(shape or ())))

    return parts[0].build(stacked)
