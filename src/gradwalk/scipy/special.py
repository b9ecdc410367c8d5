"""scipy.special on Values: logsumexp, softmax and log_softmax; the ufuncs of SciPy take Values by themselves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special

from gradwalk.numpy import many as composites
from gradwalk.numpy.arrays import has_values, plain, wrapped
from gradwalk.numpy.functions import objects


def __getattr__(name: str) -> Any:
    return getattr(special, name)


def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    """log of the sum of exponentials, without overflow on the way.

    >>> float(logsumexp([0.0, 0.0]))
    0.6931471805599453
    """
    if not has_values(a) and not has_values(b):
        return special.logsumexp(plain(a), axis=axis, b=plain(b), keepdims=keepdims, return_sign=return_sign)
    array = objects(a)
    if b is not None or return_sign:
        return _weighted(array, axis, 1.0 if b is None else objects(b), keepdims, return_sign)
    if axis is None and not keepdims:
        return composites.logsumexp(array.ravel().tolist())
    return wrapped(_along(array, axis, keepdims, lambda row: composites.logsumexp(row)))


def _along(array: Any, axis: Any, keepdims: bool, of_row: Any) -> Any:
    axes = tuple(range(array.ndim)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    axes = tuple(each % array.ndim for each in axes)
    rest = [each for each in range(array.ndim) if each not in axes]
    moved = array.transpose(*rest, *axes)
    shape = moved.shape[: len(rest)]
    made = np.empty(shape, object)
    flat = moved.reshape(*shape, -1)
    for place in np.ndindex(*shape):
        made[place] = of_row(flat[place].tolist())
    return np.expand_dims(made, axes) if keepdims else made


def _weighted(array: Any, axis: Any, weights: Any, keepdims: bool, return_sign: bool) -> Any:
    shift = np.max(array, axis=axis, keepdims=True)
    total = np.sum(weights * np.exp(array - shift), axis=axis, keepdims=True)
    sign = np.sign(total)
    made = np.log(abs(total) if return_sign else total) + shift
    if not keepdims:
        made, sign = (np.squeeze(objects(each), axis) for each in (made, sign))
    return (wrapped(made), wrapped(sign)) if return_sign else wrapped(made)


def softmax(x: Any, axis: Any = None) -> Any:
    """Exponentials divided by their sum.

    >>> softmax([0.0, 0.0]).tolist()
    [0.5, 0.5]
    """
    return _rows(x, axis, composites.softmax, special.softmax)


def log_softmax(x: Any, axis: Any = None) -> Any:
    """Logarithms of the softmax, exact where it underflows.

    >>> log_softmax([1000.0, 0.0]).tolist()
    [0.0, -1000.0]
    """
    return _rows(x, axis, composites.log_softmax, special.log_softmax)


def polygamma(n: Any, x: Any) -> Any:
    """The n-th derivative of digamma, by x."""
    if not has_values(x):
        return special.polygamma(n, plain(x))
    if n == 0:
        return special.psi(objects(x))
    return wrapped((-1.0) ** (n + 1) * math.factorial(int(n)) * special.zeta(n + 1.0, objects(x)))


def multigammaln(a: Any, d: int) -> Any:
    """The logarithm of the gamma function of several dimensions."""
    if not has_values(a):
        return special.multigammaln(plain(a), d)
    array = objects(a)
    return wrapped(0.25 * d * (d - 1.0) * math.log(math.pi) + sum(special.gammaln(array - 0.5 * j) for j in range(d)))


def _rows(x: Any, axis: Any, ours: Any, theirs: Any) -> Any:
    if not has_values(x):
        return theirs(plain(x), axis=axis)
    array = objects(x)
    if axis is None:
        return objects(ours(array.ravel().tolist())).reshape(array.shape)
    if not isinstance(axis, int):
        raise TypeError(f"softmax: expected one axis or None with Values, got {axis!r}")
    moved = np.moveaxis(array, axis, -1)
    made = np.empty(moved.shape, object)
    for place in np.ndindex(*moved.shape[:-1]):
        made[place] = ours(moved[place].tolist())
    return wrapped(np.moveaxis(made, -1, axis))


OURS = {
    "logsumexp": logsumexp,
    "softmax": softmax,
    "log_softmax": log_softmax,
    "multigammaln": multigammaln,
    "polygamma": polygamma,
}  # for everywhere()
