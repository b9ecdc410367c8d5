"""scipy.stats on Values: the normal distribution."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special, stats

from gradwalk.numpy.arrays import has_values, wrapped
from gradwalk.numpy.functions import objects


def __getattr__(name: str) -> Any:
    return getattr(stats, name)


def _logpdf(z: Any, scale: Any) -> Any:
    return -0.5 * z * z - 0.5 * math.log(math.tau) - np.log(scale)


# of z = (x - loc) / scale, and of the scale
_METHODS: dict[str, Callable[[Any, Any], Any]] = {
    "logpdf": _logpdf,
    "pdf": lambda z, scale: np.exp(_logpdf(z, scale)),
    "cdf": lambda z, scale: special.ndtr(z),
    "logcdf": lambda z, scale: special.log_ndtr(z),
    "sf": lambda z, scale: special.ndtr(-z),
    "logsf": lambda z, scale: special.log_ndtr(-z),
}


class _Normal:
    """scipy.stats.norm: its logpdf, pdf, cdf, logcdf, sf and logsf take Values for x, loc and scale.

    >>> float(norm.cdf(0.0))
    0.5
    """

    def __getattr__(self, name: str) -> Any:
        theirs = getattr(stats.norm, name)
        if name not in _METHODS:
            return theirs

        def method(x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
            if not any(map(has_values, (x, loc, scale))):
                return theirs(x, loc, scale)
            return wrapped(_METHODS[name]((objects(x) - loc) / scale, scale))

        return method


norm = _Normal()

OURS = {"norm": norm}  # for everywhere()
