"""Sorting, and finding by order: nan comes last, as for floats. NumPy's own loops over objects leave it anywhere.

Of equals, the first comes first, whichever way of sorting is asked for.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from gradwalk.math import isnan
from gradwalk.numpy.arrays import as_numpy_does, handles
from gradwalk.numpy.functions import objects


def _places(entries: list[Any]) -> list[int]:
    """Where the smallest stands, the next one, and so on."""
    known: list[int] = []
    unknown: list[int] = []
    for place, entry in enumerate(entries):
        (unknown if isnan(entry) else known).append(place)
    return builtins.sorted(known, key=entries.__getitem__) + unknown


def _along(find: Callable[[list[Any]], Any], array: Any, axis: int) -> Any:
    """What is found in each row along an axis, which must be there: a row of places, or one."""
    return np.apply_along_axis(lambda row: np.asarray(find(row.tolist()), int), axis, array.view(np.ndarray))


def _flat(a: Any, axis: Any) -> tuple[Any, int]:
    """The array, and the axis to go along: without one, all entries in one row."""
    array = objects(a)
    return (array.ravel(), 0) if axis is None else (array, axis)


@handles(np.argsort)
def argsort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    """As np.argsort."""
    array, axis = _flat(a, axis)
    return _along(_places, array, axis) if array.size else np.argsort(np.zeros(array.shape), axis)


@handles(np.sort)
def sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    """As np.sort."""
    array, axis = _flat(a, axis)
    return np.take_along_axis(array, argsort(array, axis), axis)


@handles(np.argpartition)
def argpartition(a: Any, kth: Any, axis: Any = -1, kind: Any = None, order: Any = None) -> Any:
    """As np.argpartition, by sorting."""
    array, axis = _flat(a, axis)
    np.argpartition(np.zeros(array.shape), kth, axis)  # says which places there are not
    return argsort(array, axis)


@handles(np.partition)
def partition(a: Any, kth: Any, axis: Any = -1, kind: Any = None, order: Any = None) -> Any:
    """As np.partition, by sorting."""
    array, axis = _flat(a, axis)
    return np.take_along_axis(array, argpartition(array, kth, axis), axis)


@handles(np.lexsort)
def lexsort(keys: Any, axis: int = -1) -> Any:
    """As np.lexsort: by the last key, where it is equal by the one before."""
    columns = [objects(key) for key in keys]
    if not columns or not columns[0].ndim:
        return np.lexsort(np.zeros(len(columns)))
    order = np.argsort(np.zeros(columns[0].shape), axis, kind="stable")
    for column in columns:
        order = np.take_along_axis(order, argsort(np.take_along_axis(column, order, axis), axis), axis)
    return order


def _farthest(is_farther: Callable[[Any, Any], bool]) -> Callable[[list[Any]], int]:
    def place_of(entries: list[Any]) -> int:
        found = 0
        for place, entry in enumerate(entries):
            if isnan(entry):
                return place
            if is_farther(entry, entries[found]):
                found = place
        return found

    return place_of


def _finder(function: Any, is_farther: Callable[[Any, Any], bool]) -> Callable[..., Any]:
    place_of = _farthest(is_farther)

    @handles(function)
    def find(a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
        array, along = _flat(a, axis)
        made = _along(place_of, array, along) if array.size else function(np.zeros(array.shape), along)
        if not keepdims:
            return made if made.ndim else np.intp(made)
        return made.reshape((1,) * np.ndim(a)) if axis is None else np.expand_dims(made, axis)

    return find


argmax = _finder(np.argmax, lambda entry, best: entry > best)
argmin = _finder(np.argmin, lambda entry, best: entry < best)


def _is_before(x: Any, y: Any) -> bool:
    return bool(x < y) or (isnan(y) and not isnan(x))


@handles(np.searchsorted)
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """As np.searchsorted."""
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: expected side 'left' or 'right', got {side!r}")
    ordered = (objects(a) if sorter is None else objects(a)[sorter]).tolist()

    def place_of(number: Any) -> int:
        low, high = 0, len(ordered)
        while low < high:
            middle = (low + high) // 2
            entry = ordered[middle]
            if _is_before(entry, number) if side == "left" else not _is_before(number, entry):
                low = middle + 1
            else:
                high = middle
        return low

    wanted = objects(v)
    made = np.array([place_of(number) for number in wanted.ravel().tolist()], np.intp).reshape(wanted.shape)
    return made if made.ndim else made[()]


@handles(np.digitize)
def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    """As np.digitize."""
    edges, side = objects(bins), "left" if right else "right"
    if np.all(edges[:-1] <= edges[1:]):
        return searchsorted(edges, x, side)
    if np.all(edges[:-1] >= edges[1:]):
        return len(edges) - searchsorted(edges[::-1], x, side)
    raise ValueError("digitize: expected bins that rise, or fall")


@handles(np.unique)
def unique(ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
           axis: Any = None, *, equal_nan: bool = True, sorted: bool = True) -> Any:  # fmt: skip
    """As np.unique; of equals it is the first."""
    array = objects(ar)
    if axis is not None and array.ndim > 1:
        raise TypeError("unique: an axis is not supported with Values; take the numbers, as in [v.data for v in row]")
    entries = array.ravel().tolist()
    places = _places(entries)
    first: list[int] = []
    inverse = np.zeros(len(entries), np.intp)
    for place in places:
        entry = entries[place]
        if not first or not (entry == entries[first[-1]] or (equal_nan and isnan(entry) and isnan(entries[first[-1]]))):
            first.append(place)
        inverse[place] = len(first) - 1
    made = [array.ravel()[first]]
    made += [np.array(first, np.intp)] if return_index else []
    made += [inverse.reshape(array.shape)] if return_inverse else []
    made += [np.bincount(inverse, minlength=len(first))] if return_counts else []
    return tuple(made) if len(made) > 1 else made[0]


@handles(np.histogram)
def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """As np.histogram, which counts no nan."""
    edges = histogram_bin_edges(a, bins, range)
    array = objects(a).ravel()
    known = ~np.isnan(array)
    return as_numpy_does(
        np.histogram, array[known], edges, None, density, None if weights is None else np.ravel(weights)[known]
    )


@handles(np.histogram_bin_edges)
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    """As np.histogram_bin_edges."""
    if isinstance(bins, str):
        raise TypeError(f"histogram: expected how many bins, or their edges, with Values, got {bins!r}")
    if range is None and np.ndim(bins) == 0 and np.isnan(objects(a)).any():
        raise ValueError("histogram: expected numbers to find a range, got nan; give range=(low, high)")
    return as_numpy_does(np.histogram_bin_edges, a, bins, range, weights)
