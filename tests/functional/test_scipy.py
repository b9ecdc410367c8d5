"""SciPy's functions on Values: special functions, the normal distribution, differential equations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import gradwalk.numpy as gnp
from gradwalk import Value, compile, grad, gradcheck, ieee, value_and_grad
from gradwalk.numpy import everywhere
from gradwalk.scipy import integrate as our_integrate

special = pytest.importorskip("scipy.special")
stats = pytest.importorskip("scipy.stats")
integrate = pytest.importorskip("scipy.integrate")

POINT = np.array([0.4, 0.7, 0.3])
CASES: dict[str, Any] = {
    **{name: (lambda x, name=name: getattr(special, name)(x).sum()) for name in
       ("erf", "erfc", "gammaln", "expit", "log_expit", "logit", "ndtr", "log_ndtr", "entr", "gamma", "exp10",
        "rgamma", "loggamma", "sindg", "cosdg")},
    "betaln, beta": lambda x: special.betaln(x[0], x[1]) + special.beta(x[1], x[2]),
    "xlogy": lambda x: special.xlogy(x, x).sum() + special.xlog1py(x, x).sum(),
    "rel_entr, kl_div": lambda x: special.rel_entr(x, x[::-1]).sum() + special.kl_div(x, x[::-1]).sum(),
    **{name: (lambda x, name=name: getattr(special, name)(x).sum()) for name in
       ("psi", "erfinv", "erfcinv", "ndtri", "erfi", "erfcx", "dawsn", "exp1", "expi", "j0", "j1", "y0", "y1", "i0",
        "i1", "i0e", "i1e", "k0", "k1", "gammasgn")},
    **{name: (lambda x, name=name: getattr(special, name)(2.0, x).sum()) for name in
       ("jv", "yn", "yv", "iv", "ive", "kv", "gammainc", "gammaincc", "pdtr", "stdtr", "zeta")},
    "betainc": lambda x: special.betainc(2.0, 3.0, x).sum(),
    "below 0": lambda x: (special.i0e(-x) + special.i1e(-x) * special.ive(2.0, -x)).sum(),
}  # fmt: skip
# with code of their own, as SciPy takes them: many points at once, covariances in short, the last share left out
OTHERS: dict[str, Any] = {
    "logsumexp": lambda x: special.logsumexp(x) + special.logsumexp(np.outer(x, x), axis=1)[0],
    "logsumexp that keeps its axes": lambda x: (
        special.logsumexp(np.outer(x, x), axis=-1, keepdims=True)[2, 0]
        + special.logsumexp(x, keepdims=True)[0]
        + special.logsumexp(np.stack([np.outer(x, x)] * 2), axis=(0, -1), keepdims=True)[0, 1, 0]
    ),
    "weighted logsumexp": lambda x: special.logsumexp(x, b=np.array([1.0, 2.0, 3.0])),
    "weights by rows": lambda x: (
        special.logsumexp(np.outer(x, x), axis=1, b=x, keepdims=True)[1, 0]
        * special.logsumexp(x, b=x, keepdims=True)[0]
        + special.logsumexp(np.outer(x, x), axis=0, b=[[1.0], [2.0], [3.0]])[2]
    ),
    "logsumexp with its sign": lambda x: (
        np.prod(special.logsumexp(x, b=np.array([1.0, -2.0, -3.0]), return_sign=True))
        + np.prod(special.logsumexp(x, return_sign=True))
    ),
    **{
        name: (lambda x, name=name: getattr(stats.norm, name)(x, x[0] - 0.3, 2.0 * x[1]).sum())
        for name in ("logpdf", "pdf", "cdf", "logcdf", "sf", "logsf")
    },
    "gamma": lambda x: (stats.gamma.logpdf(x, x[1] + 1.0, 0.1, 2.0) + stats.gamma.cdf(x, 2.0)).sum(),
    "chi2": lambda x: (stats.chi2.logpdf(x, x[1] + 1.0) + stats.chi2.cdf(x, 2.0, scale=x[0])).sum(),
    "chi2 in units": lambda x: (stats.chi2.logpdf(x, 3.0, -x[0], 2.0) + stats.chi2.cdf(x, 2.0, -0.1)).sum(),
    "beta": lambda x: (stats.beta.logpdf(x, x[1] + 1.0, 2.0) + stats.beta.cdf(x, 2.0, 3.0)).sum(),
    "beta in units": lambda x: (stats.beta.logpdf(x, 2.0, 3.0, -x[0], 2.0) + stats.beta.cdf(x, 2.0, 3.0, -0.1)).sum(),
    "t": lambda x: (stats.t.logpdf(x, x[1] + 1.0, 0.1) + stats.t.logcdf(x, 2.0)).sum(),
    "poisson": lambda x: (stats.poisson.logpmf(2, x) + stats.poisson.pmf(1, x) + stats.poisson.cdf(1, x)).sum(),
    "poisson from another number on": lambda x: (
        stats.poisson.logpmf(3, x, 1) + stats.poisson.pmf(2, x, loc=1) + stats.poisson.cdf(2.5, x, 1)
    ).sum(),
    "a point": lambda x: stats.multivariate_normal.logpdf(x, x**2, np.eye(3) + np.outer(x, x)),
    "points": lambda x: stats.multivariate_normal.pdf(np.outer(x, x).reshape(3, 1, 3), None, np.diag(x)).sum(),
    "a variance": lambda x: stats.multivariate_normal.logpdf(x, np.zeros(3), x[0]),
    "variances": lambda x: stats.multivariate_normal.logpdf(x, np.zeros(3), x) * stats.multivariate_normal.logpdf(x)[0],
    "one dimension": lambda x: stats.multivariate_normal.logpdf(x, 0.5, x[1]).sum(),
    "entropy": lambda x: sum(stats.multivariate_normal.entropy(np.zeros(3), cov) for cov in (x[0], x, np.diag(x))),
    "dirichlet": lambda x: stats.dirichlet.logpdf(np.array([0.2, 0.3, 0.5]), x + 1.0),
    "dirichlet of columns": lambda x: stats.dirichlet.logpdf(
        np.stack([x, x[::-1], np.roll(x, 1)], axis=1) / np.sum(x), [1.5, 2.0, 3.0]
    ).sum(),
    "dirichlet without the last": lambda x: (
        stats.dirichlet.pdf(x[:2] / 2.0, x + 1.0) + stats.dirichlet.pdf(np.stack([x, x**2])[:, ::2], [1.5, 2.0, 3.0])[1]
    ),
    "softmax of rows": lambda x: special.softmax(np.outer(x, x), axis=-1)[0, 1],
    "softmax": lambda x: special.softmax(x)[1] + special.log_softmax(np.outer(x, x), axis=0)[0, 1],
    "polygamma": lambda x: special.polygamma(0, x).sum() + special.polygamma(2.0, x).sum(),
    "multigammaln": lambda x: special.multigammaln(x + 2.0, 3).sum(),
    "huber": lambda x: special.huber(0.35, x).sum() + special.pseudo_huber(0.5, x).sum(),
}


def check(plain: Any) -> None:
    """SciPy's numbers, eager and compiled, and derivatives that the differences confirm."""
    f = everywhere()(plain)
    for made in (f, compile(f)):
        assert value_and_grad(made)(POINT)[0] == pytest.approx(float(plain(POINT)), rel=1e-12)
    assert grad(compile(f))(POINT) == pytest.approx(grad(f)(POINT), rel=1e-12)
    assert f(POINT) == pytest.approx(float(plain(POINT)), rel=1e-12)
    report = gradcheck(f, POINT)
    assert report, str(report)


@pytest.mark.parametrize("name", CASES)
def test_special_functions(name: str) -> None:
    check(CASES[name])


@pytest.mark.parametrize("name", OTHERS)
def test_other_functions(name: str) -> None:
    check(OTHERS[name])


REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "order": (lambda x: special.jv(x[0], 2.0), TypeError, "jv: expected a plain number as argument 0, got a Value"),
    "axes": (lambda x: special.softmax(np.outer(x, x), axis=(0, 1)), TypeError, r"expected one axis .*, got \(0, 1\)"),
    "dense output": (
        lambda x: integrate.solve_ivp(lambda t, y: -x[0] * y, (0.0, 1.0), [1.0], dense_output=True), TypeError, "t_eval"
    ),
    "a pole": (
        lambda x: integrate.solve_ivp(lambda t, y: y * y, (0.0, 9.0), [x[0]]).y[0, -1], RuntimeError, "integrate: Requ"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_why(name: str) -> None:
    function, kind, words = REFUSED[name]
    with pytest.raises(kind, match=words):
        grad(everywhere()(function))(POINT)


OUTSIDE: dict[str, Any] = {
    "gamma": lambda x, a: stats.gamma.pdf(x, 2.0 * a) + stats.gamma.cdf(x, 2.0, scale=a),
    "chi2": lambda x, a: stats.chi2.pdf(x, 3.0 * a, 0.5) + stats.chi2.logcdf(x, 2.0, scale=a),
    "beta": lambda x, a: stats.beta.pdf(x, 2.0, 3.0 * a) + stats.beta.cdf(x, 2.0, 3.0, scale=a),
    "poisson": lambda x, a: stats.poisson.pmf(x, 2.0 * a),
    "poisson up to": lambda x, a: stats.poisson.cdf(x, 2.0 * a),
}


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("x", [-1.5, -1.0, 0.25, 0.75, 1.0, 1.5, 2.0])
@pytest.mark.parametrize("name", OUTSIDE)
def test_where_a_distribution_has_nothing(name: str, x: float) -> None:
    """Before its beginning, behind its end, between whole numbers: what SciPy gives, and nothing moves it there."""
    f = everywhere()(OUTSIDE[name])
    expected = float(OUTSIDE[name](x, 1.0))
    with ieee():
        value, slope = value_and_grad(lambda a: f(x, a))(1.0)
        assert value == pytest.approx(expected, rel=1e-12)
        above, below = (float(OUTSIDE[name](x, a)) for a in (1.0 + 1e-6, 1.0 - 1e-6))
        assert slope == pytest.approx((above - below) / 2e-6 if math.isfinite(expected) else 0.0, abs=1e-8)


def test_the_ends_belong_to_a_distribution() -> None:
    """The density there is what it comes to from inside."""
    with everywhere():
        uniform = stats.beta.pdf(np.array([0.0, 1.0]), 1, 1, scale=Value(1.0))
        found = [stats.gamma.pdf(0.0, 1.0, scale=Value(1.0)), stats.chi2.pdf(0.0, 2.0, scale=Value(1.0)), *uniform]
    assert [each.data for each in found] == [1.0, 0.5, 1.0, 1.0]


def test_the_tail_of_the_normal_distribution() -> None:
    """Where the probability is below the smallest float."""
    for x in (-29.9, -30.1, -40.0, -300.0):
        value, slope = value_and_grad(lambda x: special.log_ndtr(x))(x)
        assert value == pytest.approx(float(special.log_ndtr(x)), rel=1e-12)
        assert slope == pytest.approx(math.exp(stats.norm.logpdf(x) - special.log_ndtr(x)), rel=1e-9)


def test_the_logarithm_of_a_normal_probability_that_rounds_to_0() -> None:
    """The distribution has a formula of its own for it, and not the logarithm of 0."""
    value = everywhere()(lambda x: stats.norm.logcdf(x, 1.0, 2.0) + stats.norm.logsf(-x, -1.0, 2.0))
    expected = 2.0 * float(stats.norm.logcdf(-79.0, 1.0, 2.0))
    assert value_and_grad(value)(-79.0)[0] == pytest.approx(expected, rel=1e-12)


def test_a_module_of_its_own() -> None:
    """Without `everywhere`."""
    from gradwalk.scipy import integrate as ours
    from gradwalk.scipy import special as ours_special
    from gradwalk.scipy import stats as ours_stats

    assert grad(ours_special.logsumexp)(POINT) == pytest.approx(special.softmax(POINT))
    assert grad(lambda x: ours_stats.norm.cdf(x))(0.0) == pytest.approx(1.0 / math.sqrt(math.tau))
    assert grad(lambda k: ours.odeint(lambda y, t: -k * y, 1.0, [0.0, 1.0])[-1, 0])(2.0) == pytest.approx(-math.exp(-2))
    assert (ours_special.erf, ours_stats.expon, ours_stats.norm.ppf) == (special.erf, stats.expon, stats.norm.ppf)


def test_differential_equations() -> None:
    """By parameters, the state at the start and the time at the end."""

    def oscillation(p: Any) -> Any:
        rate, start, end = p
        times = np.array([0.0, 0.5, end])
        return integrate.odeint(lambda y, t: [y[1], -rate * y[0]], [start, 0.0], times)[-1, 0]

    rate, start, end = 2.0, 1.5, 1.2
    root = math.sqrt(rate)
    value, gradient = value_and_grad(everywhere()(oscillation))([rate, start, end])
    assert value == pytest.approx(start * math.cos(root * end), rel=1e-7)
    exact = [
        -start * math.sin(root * end) * end / (2 * root),
        math.cos(root * end),
        -start * root * math.sin(root * end),
    ]
    assert gradient == pytest.approx(exact, rel=1e-6)

    def decay(p: Any) -> Any:
        found = integrate.solve_ivp(
            lambda t, y, k: -k * y, (0.0, 1.0), [p[1]], t_eval=[0.5, 1.0], args=(p[0],), rtol=1e-9
        )
        return found.y[0, -1]

    def decay_in_steps(p: Any) -> Any:
        return integrate.solve_ivp(lambda t, y: -p[0] * y, (0.0, 1.0), [p[1]], rtol=1e-9).y[0, -1]

    for f in (decay, decay_in_steps):
        assert grad(everywhere()(f))([2.0, 3.0]) == pytest.approx([-3.0 * math.exp(-2.0), math.exp(-2.0)], rel=1e-5)
    with pytest.raises(TypeError, match="integrate: in a compiled function the steps of the first call"):
        compile(everywhere()(decay))([2.0, 3.0])
    with everywhere():
        assert integrate.odeint(lambda y, t: -y, 1.0, [0.0, 1.0])[-1, 0] == pytest.approx(math.exp(-1.0))


def test_plain_systems_in_arrays_of_gradwalks_numpy() -> None:
    """SciPy takes slopes in arrays of floats only; nothing is differentiated here."""
    times = gnp.linspace(0.0, 1.0, 3)

    def slopes(y: Any, t: Any) -> Any:
        return gnp.array([y[1], -y[0]])

    assert our_integrate.odeint(slopes, [1.0, 0.0], times)[-1, 0] == pytest.approx(math.cos(1.0), rel=1e-6)
    found = our_integrate.solve_ivp(lambda t, y: slopes(y, t), (0.0, 1.0), [1.0, 0.0], rtol=1e-8, atol=1e-8)
    assert found.y[0, -1] == pytest.approx(math.cos(1.0), rel=1e-6)


def test_steps_are_those_of_scipy() -> None:
    """From any time on, with slopes that change in time; and that it went well is said, too."""

    def solution(k: Any, **how: Any) -> Any:
        return integrate.solve_ivp(lambda t, y: [-k * t * y[0], y[0] + t], (-3.0, -0.9), [1.5, -0.5], **how)

    for how in ({}, {"rtol": 1e-8, "atol": 1e-9}, {"t_eval": [-3.0, -2.0, -0.9], "rtol": 1e-10, "atol": 1e-10}):
        expected, found = solution(1.25, **how), our_solution(solution, how)
        assert found.t.tolist() == pytest.approx(expected.t.tolist(), rel=1e-12)
        assert found.t[-1] == -0.9
        assert [[each.data for each in row] for row in found.y[:, 1:]] == pytest.approx(expected.y[:, 1:], rel=1e-7)
        assert (found.success, found.status) == (expected.success, expected.status)


def our_solution(solution: Any, how: dict[str, Any]) -> Any:
    with everywhere():
        return solution(Value(1.25), **how)


def test_what_is_solved_without_values_is_scipys_own() -> None:
    """With all that it takes, and gives."""
    with everywhere():
        found = our_integrate.solve_ivp(
            lambda t, y, k: -k * y, (0.0, 1.0), [1.0], method="BDF", t_eval=[0.5], dense_output=True,
            events=lambda t, y, k: y[0] - 0.5, args=(1.5,), rtol=1e-8, atol=1e-8, max_step=0.125,
        )  # fmt: skip
        row = our_integrate.odeint(
            lambda t, y, k: -k * y, [1.0], [0.0, 1.0], args=(1.5,), tfirst=True, full_output=True
        )
    expected = [math.exp(-0.75), math.exp(-0.375), math.log(2.0) / 1.5, math.exp(-1.5)]
    assert [found.y[0, 0], found.sol(0.25)[0], found.t_events[0][0], row[0][1, 0]] == pytest.approx(expected, rel=1e-6)


def test_slopes_of_time_first_and_of_what_is_handed_on() -> None:
    """As odeint is told; a time that comes twice is no step."""

    def falling(k: Any, tfirst: bool) -> Any:
        slopes = (lambda t, y, k: -k * t * y) if tfirst else (lambda y, t, k: -k * t * y)
        return our_integrate.odeint(slopes, 2.0, [0.5, 0.5, 1.5], args=(k,), tfirst=tfirst)[:, 0]

    for tfirst in (True, False):
        assert falling(1.5, tfirst).tolist() == pytest.approx([2.0, 2.0, 2.0 * math.exp(-1.5)], rel=1e-6)
        assert falling(Value(1.5), tfirst)[2].data == pytest.approx(2.0 * math.exp(-1.5), rel=1e-6)
        slope = grad(lambda k, tfirst=tfirst: falling(k, tfirst)[2])(1.5)
        assert slope == pytest.approx(-2.0 * math.exp(-1.5), rel=1e-6)
