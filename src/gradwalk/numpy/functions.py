"""Functions of NumPy that cannot do it by themselves on objects, in terms of those that can."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from gradwalk.math import isnan
from gradwalk.numpy import many as composites
from gradwalk.numpy.arrays import Array, accepting, as_numpy_does, each_begun_with_0, handles
from gradwalk.numpy.ufuncs import boxed
from gradwalk.structure import is_value


def objects(given: Any) -> Any:
    """An array of objects, without asking its Values for anything."""
    if isinstance(given, np.ndarray):
        return accepting(given if given.dtype.kind in "fO" else given.astype(object))
    if is_value(given):
        return boxed(given).view(Array)
    return accepting(np.array(given, object))


def _make_like(function: Any) -> Any:
    def like(prototype: Any, *args: Any, **kwargs: Any) -> Any:
        return accepting(function(np.zeros(objects(prototype).shape), *args, **kwargs))

    return like


for _function in (np.zeros_like, np.ones_like, np.empty_like):
    handles(_function)(_make_like(_function))


@handles(np.full_like)
def full_like(a: Any, fill_value: Any, *args: Any, **kwargs: Any) -> Any:
    """As np.full_like; what it is filled with may be a Value."""
    made = accepting(np.zeros_like(np.zeros(objects(a).shape), *args, **kwargs))
    made[...] = objects(fill_value)
    return made


@handles(np.interp)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Straight lines between points; at a point, the slope to its right."""
    if period is not None:
        raise TypeError("interp: a period is not supported with Values; bring x into one period with x % period")
    places, heights = objects(xp).tolist(), objects(fp).tolist()
    if len(places) != len(heights) or not places:
        raise ValueError(f"interp: expected as many places as heights, got {len(places)} and {len(heights)}")

    def at(point: Any) -> Any:
        if point < places[0]:
            return heights[0] if left is None else left
        if point > places[-1]:
            return heights[-1] if right is None else right
        last = next((i for i in range(len(places) - 1) if point < places[i + 1]), len(places) - 2)
        if last < 0:
            return heights[0]
        rise, width = heights[last + 1] - heights[last], places[last + 1] - places[last]
        made = heights[last] + (point - places[last]) / width * rise
        if not isnan(made):
            return made
        for place, height in ((places[last], heights[last]), (places[last + 1], heights[last + 1])):
            if point == place:  # where an end of the line is infinite, or nan
                return height
        made = heights[last + 1] + (point - places[last + 1]) * (rise / width)
        return heights[last] if isnan(made) and heights[last] == heights[last + 1] else made

    return np.frompyfunc(at, 1, 1)(objects(x).view(np.ndarray))


@handles(np.linspace)
def linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None,
             axis: int = 0) -> Any:  # fmt: skip
    """Evenly spaced from one number to another; the last one is the other itself."""
    if dtype is not None and np.dtype(dtype).kind not in "fO":
        raise TypeError(f"linspace: expected a dtype of floats with Values, got {np.dtype(dtype)}")
    shares = np.linspace(0.0, 1.0, num, endpoint)
    parts = num - 1 if endpoint else num
    first, last = objects(start), objects(stop)
    made = objects(np.zeros((0, *np.broadcast_shapes(first.shape, last.shape))))
    if num:
        first, last = np.broadcast_arrays(first, last)
        made = np.stack([first + share * (last - first) if share < 1.0 else last for share in shares])
    made = np.moveaxis(made, 0, axis)
    return (made, (last - first) / (parts if parts > 0 else np.nan)) if retstep else made


@handles(np.dot)
def dot(a: Any, b: Any) -> Any:
    """As np.dot: a sum of products, a matrix product, or a product with a number."""
    left, right = objects(a), objects(b)
    if left.ndim == 0 or right.ndim == 0:
        return _scaled(left, right)
    if right.ndim <= 2 and left.ndim <= 2:
        if left.size == right.size == 1:  # of one number by one, NumPy makes the product alone
            return (left.ravel() * right.ravel()).reshape(left.shape[:-1] + right.shape[1:])
        return np.matmul(left, right)
    return _contracted(left, right, (left.ndim - 1, max(right.ndim - 2, 0)))


@handles(np.inner)
def inner(a: Any, b: Any) -> Any:
    """As np.inner: over the last axis of both."""
    left, right = objects(a), objects(b)
    return _scaled(left, right) if 0 in (left.ndim, right.ndim) else _contracted(left, right, (-1, -1))


def _scaled(left: Any, right: Any) -> Any:
    """A number times an array: to one that is no more than a matrix, NumPy adds 0."""
    made = objects(left * right)
    return each_begun_with_0(made) if 0 < made.ndim <= 2 and made.size > 1 else made


def _contracted(left: Any, right: Any, axes: tuple[int, int]) -> Any:
    made = np.tensordot(left, right, axes=axes)
    return each_begun_with_0(made) if max(left.ndim, right.ndim) > 2 else made


@handles(np.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """As np.tensordot."""
    left, right = objects(a), objects(b)
    made = as_numpy_does(np.tensordot, left, right, axes)
    return made if left.size == right.size == 1 else each_begun_with_0(made)


@handles(np.einsum)
def einsum(*operands: Any, optimize: Any = False, **options: Any) -> Any:
    """As np.einsum; where it is to choose the order, NumPy makes matrix products."""
    made = as_numpy_does(np.einsum, *operands, optimize=optimize, **options)
    given = operands[0]
    return each_begun_with_0(made) if optimize is not False and isinstance(given, str) and _sums(given) else made


def _sums(subscripts: str) -> bool:
    """Whether there is a subscript that the result does not have."""
    given, arrow, kept = subscripts.partition("->")
    letters = [letter for letter in given if letter.isalpha()]
    return bool({*letters} - {*kept}) if arrow else len({*letters}) < len(letters)


def _of_loops(function: Any) -> Any:
    """The function, which loops over objects as over floats, but for the 0 that its sums begin with."""
    return functools.wraps(function)(
        lambda *args, **kwargs: each_begun_with_0(as_numpy_does(function, *args, **kwargs))
    )


for _looping in (np.convolve, np.correlate):
    handles(_looping)(_of_loops(_looping))


@handles(np.vdot)
def vdot(a: Any, b: Any) -> Any:
    """The sum of products of all entries."""
    return composites.dot(objects(a).ravel().tolist(), objects(b).ravel().tolist())


@handles(np.sum)
def sum(a: Any, axis: Any = None, dtype: Any = None, *, keepdims: Any = False, **options: Any) -> Any:
    """As np.sum; of everything at once it is one node."""
    array = objects(a)
    if axis is None and not keepdims and not options and array.size:
        return composites.sum(array.ravel().tolist())
    return np.add.reduce(array, axis, keepdims=bool(keepdims), **options)


@handles(np.var)
def var(a: Any, axis: Any = None, dtype: Any = None, *, ddof: Any = 0, keepdims: Any = False, where: Any = True,
        mean: Any = None, correction: Any = None) -> Any:  # fmt: skip
    """As np.var."""
    array = objects(a)
    counted = np.broadcast_to(where, array.shape)
    count = np.sum(counted, axis=axis, keepdims=True)
    among = {} if where is True else {"where": counted}
    middle = objects(sum(array, axis, keepdims=True, **among) / count) if mean is None else mean
    apart = np.where(counted, array, middle) - middle
    squares = objects(sum(apart * apart, axis, keepdims=keepdims))
    free = np.maximum(count - (ddof if correction is None else correction), 0)
    return squares / free.reshape(squares.shape)


@handles(np.std)
def std(*args: Any, **kwargs: Any) -> Any:
    """As np.std."""
    return np.sqrt(var(*args, **kwargs))


@handles(np.sinc)
def sinc(x: Any) -> Any:
    """As np.sinc; close to 0 by its series, which has every derivative."""

    def at(number: Any) -> Any:
        y = np.pi * number
        if -1e-2 < y < 1e-2:
            square = y * y
            return 1.0 - square / 6.0 * (1.0 - square / 20.0 * (1.0 - square / 42.0))
        return np.sin(y) / y

    return np.frompyfunc(at, 1, 1)(objects(x).view(np.ndarray))


@handles(np.isclose)
def isclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Any:
    """As np.isclose."""
    left, right = objects(a), objects(b)
    near = (abs(left - right) <= atol + rtol * abs(right)) & np.isfinite(right)
    return near | _equal(left, right, equal_nan)


def _equal(left: Any, right: Any, equal_nan: bool) -> Any:
    return (left == right) | (np.isnan(left) & np.isnan(right) if equal_nan else False)


@handles(np.allclose)
def allclose(a: Any, b: Any, *args: Any, **tolerances: Any) -> bool:
    """As np.allclose."""
    return bool(np.all(isclose(a, b, *args, **tolerances)))


@handles(np.array_equal)
def array_equal(a: Any, b: Any, equal_nan: bool = False) -> bool:
    """As np.array_equal."""
    left, right = objects(a), objects(b)
    return left.shape == right.shape and bool(np.all(_equal(left, right, equal_nan)))


@handles(np.nan_to_num)
def nan_to_num(x: Any, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """As np.nan_to_num; what is replaced is a constant."""
    largest = float(np.finfo(float).max)
    high, low = largest if posinf is None else posinf, -largest if neginf is None else neginf

    def replaced(number: Any) -> Any:
        return nan if number != number else high if number > largest else low if number < -largest else number

    with np.errstate(invalid="ignore"):
        return np.frompyfunc(replaced, 1, 1)(objects(x).view(np.ndarray))


@handles(np.round, np.around)
def around(a: Any, decimals: int = 0) -> Any:
    """As np.round; no gradient flows through it."""
    return objects(a).round(decimals)


@handles(np.real, np.real_if_close, np.conjugate)
def real(a: Any, *_: Any) -> Any:
    """A Value is real."""
    return a


@handles(np.imag)
def imag(a: Any) -> Any:
    """0: a Value is real."""
    return np.zeros(objects(a).shape)


@handles(np.iscomplexobj)
def iscomplexobj(_: Any) -> bool:
    """A Value is real."""
    return False


@handles(np.isrealobj)
def isrealobj(_: Any) -> bool:
    """A Value is real."""
    return True


@handles(np.angle)
def angle(z: Any, deg: bool = False) -> Any:
    """0 or π: a Value is real."""
    array = objects(z)
    return np.where(np.isnan(array), np.nan, np.where(np.signbit(array), 180.0 if deg else np.pi, 0.0))


@handles(np.median)
def median(a: Any, axis: Any = None, *, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    """As np.median: the middle one, or the mean of two."""
    array, axes = last_axis(a, axis)
    ordered = np.sort(array)
    count = array.shape[-1]
    made = np.mean(ordered[..., (count - 1) // 2 : count // 2 + 1], axis=-1)
    return _unknown_where(np.isnan(array).any(axis=-1), made, axes if keepdims else ())


def last_axis(a: Any, axis: Any) -> tuple[Any, tuple[int, ...]]:
    """The array with what is reduced along its last axis, and which axes these were."""
    array = objects(a)
    array = array.reshape(1) if array.ndim == 0 else array
    axes = tuple(range(array.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    moved = np.moveaxis(array, axes, range(-len(axes), 0))
    return moved.reshape((*moved.shape[: array.ndim - len(axes)], -1 if array.size else 0)), axes


def _unknown_where(unknown: Any, made: Any, kept: tuple[int, ...]) -> Any:
    """nan where a nan is among the numbers, which has no place in an order; with the axes that are kept."""
    made = np.where(unknown, np.nan, made) if np.any(unknown) else objects(made)
    return np.expand_dims(made, kept) if kept else made


@handles(np.percentile)
def percentile(a: Any, q: Any, axis: Any = None, **options: Any) -> Any:
    """As np.percentile."""
    return quantile(a, np.true_divide(q, 100.0), axis, **options)


@handles(np.quantile)
def quantile(
    a: Any, q: Any, axis: Any = None, *, overwrite_input: bool = False, method: str = "linear", keepdims: bool = False
) -> Any:
    """As np.quantile, by sorting; between two of the sample on a straight line."""
    if method != "linear":
        raise TypeError(f"quantile: expected method 'linear' with Values, got {method!r}")
    array = objects(a)
    sample = array.ravel() if axis is None else np.moveaxis(array, axis, 0)
    ordered = np.sort(sample, axis=0)
    places = np.asarray(q) * (len(ordered) - 1)
    below = np.floor(places).astype(int)
    share = (places - below).reshape(places.shape + (1,) * (ordered.ndim - 1))
    low, high = ordered[below], ordered[np.minimum(below + 1, len(ordered) - 1)]
    apart = high - low
    made = np.where(share < 0.5, low + share * apart, high - (1.0 - share) * apart)  # as NumPy, of infinities, too
    unknown = np.isnan(sample).any(axis=0)  # which has no place in an order
    if np.any(unknown):
        made = np.where(unknown, np.nan, made)
    if keepdims:
        axes = range(array.ndim) if axis is None else (axis % array.ndim,)
        made = np.expand_dims(objects(made), tuple(places.ndim + each for each in axes))
    return made


@handles(np.cov)
def cov(m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None) -> Any:
    """As np.cov, without weights."""
    samples = [np.atleast_2d(objects(each)) for each in (m, y) if each is not None]
    rows = np.concatenate([each if rowvar or len(each) == 1 else each.T for each in samples])
    apart = rows - np.mean(rows, axis=1, keepdims=True)
    return np.squeeze(apart @ apart.T / (rows.shape[1] - (int(not bias) if ddof is None else ddof)))


@handles(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True) -> Any:
    """As np.corrcoef."""
    spread = objects(cov(x, y, rowvar))
    if not spread.ndim:
        return spread / spread
    sizes = np.sqrt(np.diag(spread))
    return np.clip(spread / np.outer(sizes, sizes), -1.0, 1.0)


@handles(np.bincount)
def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Any:
    """As np.bincount of weights: their sum at each place."""
    made = accepting(np.zeros(np.bincount(x, None, minlength).size))
    np.add.at(made, x, objects(weights))
    return made
