"""NumPy's functions that leave nan out. Its own put integers beside Values for what is missing, and divide those."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradwalk.numpy.arrays import handles
from gradwalk.numpy.functions import last_axis, median, objects, quantile, var


def _without(function: Any, neutral: float) -> Any:
    """The function of an array in which a number that changes nothing stands for nan."""

    def applied(a: Any, *args: Any, **kwargs: Any) -> Any:
        array = objects(a)
        return function(np.where(np.isnan(array), neutral, array), *args, **kwargs)

    return applied


handles(np.nansum)(_without(np.sum, 0.0))
handles(np.nanprod)(_without(np.prod, 1.0))
handles(np.nancumsum)(_without(np.cumsum, 0.0))
handles(np.nancumprod)(_without(np.cumprod, 1.0))
_ARGMAX, _ARGMIN = _without(np.argmax, -np.inf), _without(np.argmin, np.inf)


@handles(np.nanmax)
def nanmax(a: Any, axis: Any = None, **options: Any) -> Any:
    """As np.nanmax."""
    return np.fmax.reduce(objects(a), axis, **options)


@handles(np.nanmin)
def nanmin(a: Any, axis: Any = None, **options: Any) -> Any:
    """As np.nanmin."""
    return np.fmin.reduce(objects(a), axis, **options)


def _place(find: Any, a: Any, axis: Any, options: dict[str, Any]) -> Any:
    if np.isnan(objects(a)).all(axis=axis).any():
        raise ValueError("All-NaN slice encountered")
    return find(a, axis, **options)


@handles(np.nanargmax)
def nanargmax(a: Any, axis: Any = None, **options: Any) -> Any:
    """As np.nanargmax."""
    return _place(_ARGMAX, a, axis, options)


@handles(np.nanargmin)
def nanargmin(a: Any, axis: Any = None, **options: Any) -> Any:
    """As np.nanargmin."""
    return _place(_ARGMIN, a, axis, options)


def _ratio(total: Any, count: Any) -> Any:
    with np.errstate(all="ignore"):  # of none it is nan
        return objects(total) / count


@handles(np.nanmean)
def nanmean(a: Any, axis: Any = None, dtype: Any = None, *, keepdims: Any = False, where: Any = True) -> Any:
    """As np.nanmean."""
    array = objects(a)
    known = ~np.isnan(array) & where
    total = np.sum(np.where(known, array, 0.0), axis=axis, keepdims=keepdims)
    return _ratio(total, np.sum(known, axis=axis, keepdims=keepdims))


@handles(np.nanvar)
def nanvar(a: Any, axis: Any = None, dtype: Any = None, *, ddof: Any = 0, keepdims: Any = False, where: Any = True,
           mean: Any = None, correction: Any = None) -> Any:  # fmt: skip
    """As np.nanvar; of too few it is nan."""
    known = ~np.isnan(objects(a)) & where
    count = np.sum(known, axis=axis, keepdims=keepdims)
    free = count - (ddof if correction is None else correction)
    with np.errstate(all="ignore"):
        among_all = objects(var(a, axis, keepdims=keepdims, where=known, mean=mean))
        return np.where(free > 0, among_all * (count / np.where(free > 0, free, 1)), np.nan)


@handles(np.nanstd)
def nanstd(*args: Any, **kwargs: Any) -> Any:
    """As np.nanstd."""
    return np.sqrt(nanvar(*args, **kwargs))


def _of_known(function: Any, a: Any, axis: Any, keepdims: Any, shape: tuple[int, ...] = ()) -> Any:
    """The function of the known numbers in each row, of which it makes so many; of none, nan."""
    array, axes = last_axis(a, axis)
    made = np.full((*shape, *array.shape[:-1]), np.nan, object)
    for place in np.ndindex(array.shape[:-1]):
        row = array[place]
        known = row[~np.isnan(row)]
        if known.size:
            made[(..., *place)] = objects(function(known))
    kept = tuple(len(shape) + each % objects(a).ndim for each in axes)
    return np.expand_dims(made, kept) if keepdims else made


@handles(np.nanmedian)
def nanmedian(a: Any, axis: Any = None, *, overwrite_input: bool = False, keepdims: Any = False) -> Any:
    """As np.nanmedian."""
    return _of_known(median, a, axis, keepdims)


@handles(np.nanquantile)
def nanquantile(a: Any, q: Any, axis: Any = None, *, keepdims: Any = False, **options: Any) -> Any:
    """As np.nanquantile."""
    return _of_known(lambda row: quantile(row, q, **options), a, axis, keepdims, np.shape(q))


@handles(np.nanpercentile)
def nanpercentile(a: Any, q: Any, axis: Any = None, **options: Any) -> Any:
    """As np.nanpercentile."""
    return nanquantile(a, np.true_divide(q, 100.0), axis, **options)
