"""scipy.stats on Values: densities and probabilities of some distributions, written with operations of the table."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special, stats

from gradwalk.numpy.arrays import has_values, plain, wrapped
from gradwalk.numpy.functions import objects

Method = Callable[..., Any]


def __getattr__(name: str) -> Any:
    return getattr(stats, name)


class _Distribution:
    """A distribution of SciPy, of which some methods take Values; the others are SciPy's own."""

    def __init__(self, theirs: Any, methods: dict[str, Method]) -> None:
        self._theirs, self._methods = theirs, methods

    def __getattr__(self, name: str) -> Any:
        theirs = getattr(self._theirs, name)
        if name not in self._methods:
            return theirs

        def method(*args: Any, **kwargs: Any) -> Any:
            if not any(map(has_values, (*args, *kwargs.values()))):
                return theirs(*map(plain, args), **{key: plain(given) for key, given in kwargs.items()})
            return wrapped(self._methods[name](*args, **kwargs))

        return method


_BEFORE = {"logpdf": -math.inf, "cdf": 0.0}  # what there is where x cannot be
_BEYOND = {"logpdf": -math.inf, "cdf": 1.0}


def _standard(shapes: int, ends: tuple[float, float] | None = None, **of_z: Method) -> dict[str, Method]:
    """Methods of x, the shape parameters, loc and scale, out of those of z = (x - loc) / scale and the parameters.

    z lies between the `ends`; what is computed beside them is of no number in particular.
    """

    def method(name: str, of: Method) -> Method:
        def apply(x: Any, *given: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
            parameters, rest = given[:shapes], given[shapes:]
            loc, scale = [*rest, *(loc, scale)[len(rest) :]]
            z = (objects(x) - loc) / scale
            if ends is None:
                made = of(z, *parameters)
            else:
                before, beyond = z < ends[0], z > ends[1]
                made = of(np.where(before | beyond, 0.5, z), *parameters)
                made = np.where(before, _BEFORE[name], np.where(beyond, _BEYOND[name], made))
            return made - np.log(scale) if name == "logpdf" else made

        return apply

    methods = {name: method(name, of) for name, of in of_z.items()}
    if "logpdf" in methods:
        methods["pdf"] = lambda *args, **kwargs: np.exp(methods["logpdf"](*args, **kwargs))
    if "cdf" in methods and "logcdf" not in methods:
        methods["logcdf"] = lambda *args, **kwargs: np.log(methods["cdf"](*args, **kwargs))
    return methods


norm = _Distribution(
    stats.norm,
    _standard(
        0,
        logpdf=lambda z: -0.5 * z * z - 0.5 * math.log(math.tau),
        cdf=special.ndtr,
        logcdf=special.log_ndtr,
        sf=lambda z: special.ndtr(-z),
        logsf=lambda z: special.log_ndtr(-z),
    ),
)
gamma = _Distribution(
    stats.gamma,
    _standard(
        1,
        (0.0, math.inf),
        logpdf=lambda z, a: special.xlogy(a - 1.0, z) - z - special.gammaln(a),
        cdf=lambda z, a: special.gammainc(a, z),
    ),
)
chi2 = _Distribution(
    stats.chi2,
    _standard(
        1,
        (0.0, math.inf),
        logpdf=lambda z, df: (
            special.xlogy(0.5 * df - 1.0, z) - 0.5 * z - special.gammaln(0.5 * df) - 0.5 * math.log(2.0) * df
        ),
        cdf=lambda z, df: special.gammainc(0.5 * df, 0.5 * z),
    ),
)
beta = _Distribution(
    stats.beta,
    _standard(
        2,
        (0.0, 1.0),
        logpdf=lambda z, a, b: special.xlogy(a - 1.0, z) + special.xlog1py(b - 1.0, -z) - special.betaln(a, b),
        cdf=lambda z, a, b: special.betainc(a, b, z),
    ),
)
t = _Distribution(
    stats.t,
    _standard(
        1,
        logpdf=lambda z, df: (
            special.gammaln(0.5 * (df + 1.0)) - special.gammaln(0.5 * df) - 0.5 * np.log(np.pi * df)
            - 0.5 * (df + 1.0) * np.log1p(z * z / df)
        ),
        cdf=lambda z, df: special.stdtr(df, z),
    ),
)  # fmt: skip


def _poisson_logpmf(k: Any, mu: Any, loc: Any = 0.0) -> Any:
    count = objects(k) - loc
    none = (count < 0.0) | (count != np.floor(count))
    count = np.where(none, 0.0, count)
    return np.where(none, -math.inf, special.xlogy(count, mu) - special.gammaln(count + 1.0) - mu)


def _poisson_cdf(k: Any, mu: Any, loc: Any = 0.0) -> Any:
    count = np.floor(objects(k) - loc)
    return np.where(count < 0.0, 0.0, special.pdtr(np.maximum(count, 0.0), mu))


poisson = _Distribution(
    stats.poisson,
    {
        "logpmf": _poisson_logpmf,
        "pmf": lambda *args, **kwargs: np.exp(_poisson_logpmf(*args, **kwargs)),
        "cdf": _poisson_cdf,
    },
)


def _normal_matrix(mean: Any, cov: Any) -> Any:
    """The covariances; a number stands for the same variance in each dimension, a vector for each its own."""
    given = objects(1.0 if cov is None else cov)
    dimensions = objects(mean).size if mean is not None else len(given) if given.ndim == 2 else 1
    return given.reshape(1, 1) if dimensions == 1 else np.eye(dimensions) * given if given.ndim < 2 else given


def _normal_logpdf(x: Any, mean: Any = None, cov: Any = 1.0, allow_singular: bool = False) -> Any:
    matrix = _normal_matrix(mean, cov)
    points = objects(x)
    if len(matrix) == 1 and points.ndim < 2:
        points = points[..., None]
    apart = points if mean is None else points - objects(mean)
    lower = np.linalg.cholesky(matrix)
    solved = np.linalg.solve(lower, apart.reshape(-1, len(matrix)).T)
    squares = np.sum(solved * solved, axis=0).reshape(apart.shape[:-1])
    made = -0.5 * (len(matrix) * math.log(math.tau) + squares) - np.sum(np.log(np.diagonal(lower)))
    return np.squeeze(objects(made))


multivariate_normal = _Distribution(
    stats.multivariate_normal,
    {
        "logpdf": _normal_logpdf,
        "pdf": lambda *args, **kwargs: np.exp(_normal_logpdf(*args, **kwargs)),
        "entropy": lambda mean=None, cov=1.0: 0.5 * np.linalg.slogdet(math.tau * math.e * _normal_matrix(mean, cov))[1],
    },
)


def _dirichlet_logpdf(x: Any, alpha: Any) -> Any:
    shares, weights = objects(x), objects(alpha)
    if len(shares) + 1 == len(weights):  # the last one is what is left
        shares = np.concatenate([shares, objects(1.0 - np.sum(shares, axis=0))[None]])
    total = special.gammaln(np.sum(weights)) - np.sum(special.gammaln(weights))
    return total + np.sum(special.xlogy(weights - 1.0, shares.T), axis=-1)


dirichlet = _Distribution(
    stats.dirichlet,
    {"logpdf": _dirichlet_logpdf, "pdf": lambda x, alpha: np.exp(_dirichlet_logpdf(x, alpha))},
)

OURS = {
    name: globals()[name]  # for everywhere()
    for name in ("norm", "gamma", "chi2", "beta", "t", "poisson", "multivariate_normal", "dirichlet")
}
