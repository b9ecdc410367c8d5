"""The standard statistics module on Values: `import gradwalk.statistics as statistics`.

On plain numbers it is the standard one; on Values means, spreads and relations are computed with operations of the
table, and the middle of a sample and its most frequent by comparing.
"""

from __future__ import annotations

import functools
import statistics as _standard
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gradwalk import composites, functions
from gradwalk.errors import DivisionByZeroError, DomainError, refusals, refused_like_floats
from gradwalk.math import begun_with_0, like_standard
from gradwalk.structure import is_value


def __getattr__(name: str) -> Any:
    return getattr(_standard, name)


def _on_values(ours: Callable[..., Any]) -> Callable[..., Any]:
    """The standard function; ours where a Value is among the numbers."""
    theirs = getattr(_standard, ours.__name__)

    @functools.wraps(ours)
    def chosen(*samples: Any, **options: Any) -> Any:
        listed = [list(sample) if isinstance(sample, Iterable) else sample for sample in samples]
        given = [*listed, *options.values()]
        numbers = [number for each in given for number in (each if isinstance(each, list | tuple) else [each])]
        if not any(map(is_value, numbers)):
            return theirs(*listed, **options)
        if not listed[0]:
            raise _standard.StatisticsError(f"{ours.__name__}: expected at least one number, got none")
        before = refusals()
        try:
            return ours(*listed, **options)
        except (DivisionByZeroError, DomainError) as error:
            refused_like_floats(before)
            raise _standard.StatisticsError(*error.args) from None

    return chosen


def _mean(data: Sequence[Any]) -> Any:
    return like_standard(composites.mean(data), "mean", *data)


@_on_values
def mean(data: Sequence[Any]) -> Any:
    """The arithmetic mean.

    >>> mean([1.0, 2.0, 6.0])
    3.0
    """
    return begun_with_0(_mean(data))


@_on_values
def fmean(data: Sequence[Any], weights: Sequence[Any] | None = None) -> Any:
    """The arithmetic mean, weighted or not.

    >>> fmean([1.0, 2.0], weights=[1.0, 3.0])
    1.75
    """
    if weights is None:
        return begun_with_0(_mean(data))
    return begun_with_0(composites.dot(data, weights)) / composites.sum(weights)


@_on_values
def geometric_mean(data: Sequence[Any]) -> Any:
    """The n-th root of the product."""
    return functions.exp(composites.mean([functions.log(x) for x in data]))


@_on_values
def harmonic_mean(data: Sequence[Any], weights: Sequence[Any] | None = None) -> Any:
    """The inverse of the mean of the inverses."""
    if any(x < 0.0 for x in data):
        raise _standard.StatisticsError("harmonic_mean: expected numbers of at least 0, got a negative one")
    shares = [1.0] * len(data) if weights is None else weights
    pairs = [(share, x) for share, x in zip(shares, data, strict=True) if share or x]
    zero = next((x for _, x in pairs if not x), None)
    if zero is None:
        return composites.sum(shares) / composites.sum([share / x for share, x in pairs])
    # both times the zero: what it is divided by is 1 where it is another number's zero, too
    return composites.sum(shares) * zero / composites.sum([share * (zero / x) if x else share for share, x in pairs])


def _squares(data: Sequence[Any], centre: Any) -> Any:
    middle = _mean(data) if centre is None else centre
    apart = [x - middle for x in data]
    return like_standard(composites.dot(apart, apart), "variance", *data)


def _at_least_two(name: str, data: Sequence[Any]) -> None:
    if len(data) < 2:
        raise _standard.StatisticsError(f"{name}: expected at least two numbers, got {len(data)}")


@_on_values
def variance(data: Sequence[Any], xbar: Any = None) -> Any:
    """The variance, estimated from a sample."""
    _at_least_two("variance", data)
    return _squares(data, xbar) / (len(data) - 1.0)


@_on_values
def pvariance(data: Sequence[Any], mu: Any = None) -> Any:
    """The variance of all there is."""
    return _squares(data, mu) / float(len(data))


@_on_values
def stdev(data: Sequence[Any], xbar: Any = None) -> Any:
    """The standard deviation, estimated from a sample.

    >>> stdev([1.0, 3.0])
    1.4142135623730951
    """
    _at_least_two("stdev", data)
    return functions.sqrt(_squares(data, xbar) / (len(data) - 1.0))


@_on_values
def pstdev(data: Sequence[Any], mu: Any = None) -> Any:
    """The standard deviation of all there is."""
    return functions.sqrt(_squares(data, mu) / float(len(data)))


@_on_values
def median(data: Sequence[Any]) -> Any:
    """The one in the middle, or the mean of the two."""
    ordered, half = sorted(data), len(data) // 2
    return ordered[half] if len(data) % 2 else 0.5 * (ordered[half - 1] + ordered[half])


@_on_values
def median_low(data: Sequence[Any]) -> Any:
    """The one in the middle, or the lower of the two."""
    return sorted(data)[(len(data) - 1) // 2]


@_on_values
def median_high(data: Sequence[Any]) -> Any:
    """The one in the middle, or the higher of the two."""
    return sorted(data)[len(data) // 2]


@_on_values
def mode(data: Sequence[Any]) -> Any:
    """The most frequent number, the first of several: to a dict, as the standard one uses, each Value is another."""
    return max(data, key=data.count)


@_on_values
def multimode(data: Sequence[Any]) -> Any:
    """The most frequent numbers, each as it came first."""
    most = max(map(data.count, data))
    return [x for place, x in enumerate(data) if data.count(x) == most and x not in data[:place]]


@_on_values
def covariance(x: Sequence[Any], y: Sequence[Any], /) -> Any:
    """The covariance, estimated from a sample of pairs."""
    _at_least_two("covariance", x)
    return _products(x, y) / (len(x) - 1.0)


def _products(x: Sequence[Any], y: Sequence[Any]) -> Any:
    of_x, of_y = _mean(x), _mean(y)
    return composites.dot([one - of_x for one in x], [one - of_y for one in y])


@_on_values
def correlation(x: Sequence[Any], y: Sequence[Any], /) -> Any:
    """Pearson's correlation of pairs."""
    _at_least_two("correlation", x)
    return _products(x, y) / functions.sqrt(_squares(x, None) * _squares(y, None))


@_on_values
def linear_regression(x: Sequence[Any], y: Sequence[Any], /) -> Any:
    """Slope and intercept of the line closest to the pairs."""
    _at_least_two("linear_regression", x)
    slope = _products(x, y) / _squares(x, None)
    return _standard.LinearRegression(slope, begun_with_0(_mean(y)) - slope * _mean(x))
