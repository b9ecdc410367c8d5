"""The examples: exact derivatives, and SciPy's routines in as many iterations as with derivatives by hand."""

from __future__ import annotations

import importlib.util
import math
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import optimize

from gradwalk import grad, hessian, hvp, jacobian, value_and_grad

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# what the examples use of gradwalk.math, in mpmath, for their own code to run on 50 digits
PRECISE = SimpleNamespace(
    exp=mpmath.exp, log=mpmath.log, sqrt=mpmath.sqrt, sin=mpmath.sin, cos=mpmath.cos, erfc=mpmath.erfc,
    hypot=lambda *xs: mpmath.sqrt(sum(x * x for x in xs)),
)  # fmt: skip


@pytest.fixture
def precise(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs an example's function on 50 digits, as it stands."""

    def prepared(module: ModuleType) -> ModuleType:
        monkeypatch.setattr(module, "math", PRECISE)
        return module

    with mpmath.workdps(50):
        yield prepared


def partial_derivatives(f: Any, xs: list[float]) -> list[Any]:
    exact = [mpmath.mpf(x) for x in xs]
    return [mpmath.diff(lambda t, i=i: f([*exact[:i], t, *exact[i + 1 :]]), exact[i]) for i in range(len(xs))]


def close(found: float, expected: Any, tolerance: float) -> bool:
    return bool(abs(found - expected) <= tolerance * abs(expected))


def assert_close(found: Any, expected: Any, tolerance: float = 1e-12) -> None:
    wrong = [(f, e) for f, e in zip(found, expected, strict=True) if not close(f, e, tolerance)]
    assert wrong == []


# ---------------------------------------------------------------- accuracy


def test_black_scholes_greeks() -> None:
    """Against the closed forms: 1e-12, and gamma, a second derivative, 1e-10."""
    module = example("black_scholes")
    found, exact = module.greeks(module.OPTION), module.closed_forms(**module.OPTION)
    for name, expected in exact.items():
        assert found[name] == pytest.approx(expected, rel=1e-10 if name == "gamma" else 1e-12), name


def test_black_scholes_against_mpmath(precise: Any) -> None:
    """All five first derivatives and gamma."""
    module = example("black_scholes")
    names, point = list(module.OPTION), list(module.OPTION.values())
    found = grad(module.call_price, argnums=range(5))(*point)
    gamma = grad(grad(module.call_price))(*point)
    exact = precise(module)
    assert_close(found, partial_derivatives(lambda xs: exact.call_price(*xs), point))
    spot = [mpmath.mpf(x) for x in point]
    assert close(gamma, mpmath.diff(lambda s: exact.call_price(s, *spot[1:]), spot[0], 2), 1e-10), names


def test_curve_fitting_jacobian(precise: Any) -> None:
    """Every residual by every parameter."""
    module = example("curve_fitting")
    times, heights = module.measured(count=10)
    point = [1.3, 0.2, 1.6, 0.3]
    found = jacobian(module.residuals)(np.array(point), times, heights)
    exact = precise(module)
    for row, t in zip(found, times, strict=True):
        expected = partial_derivatives(lambda xs, t=t: exact.oscillation(mpmath.mpf(t), *xs), point)
        assert [abs(a - b) <= 1e-12 * abs(b) + 1e-40 for a, b in zip(row, expected, strict=True)] == [True] * 4


def test_pendulum_through_time(precise: Any) -> None:
    """Gradient and Hessian of the misfit after 100 steps, against 50 digits; and the fit finds the truth."""
    module = example("pendulum")
    observed, point = module.angles(**module.TRUE), {"length": 1.2, "damping": 0.2}
    slope, curvature = grad(module.misfit)(point, observed), hessian(module.misfit)(point, observed)
    found, value = module.fit(point, observed)
    assert found == pytest.approx(module.TRUE, rel=1e-9)
    assert value < 1e-20
    exact, names = precise(module), list(point)
    misfit = lambda xs: exact.misfit(dict(zip(names, xs, strict=True)), observed)  # noqa: E731
    assert_close(slope.values(), partial_derivatives(misfit, list(point.values())))
    at = tuple(map(mpmath.mpf, point.values()))
    for i, j, orders in (("length", "length", (2, 0)), ("length", "damping", (1, 1)), ("damping", "damping", (0, 2))):
        assert close(curvature[i][j], mpmath.diff(lambda a, b: misfit([a, b]), at, orders), 1e-10), (i, j)


def test_gaussian_mixture() -> None:
    """The gradient of the log-likelihood against 50 digits; climbing it finds the two groups."""
    module = example("gaussian_mixture")
    points = module.sample_points(20)
    start = module.Mixture([0.2, -0.1], [-1.0, 1.2], [0.1, -0.2])
    slope = grad(module.log_likelihood)(start, points)

    def density(x: Any, logit: Any, mean: Any, log_spread: Any) -> Any:
        return mpmath.exp(logit) * mpmath.npdf(mpmath.mpf(x), mean, mpmath.exp(log_spread))

    def exact(xs: list[Any]) -> Any:
        total = mpmath.exp(xs[0]) + mpmath.exp(xs[1])
        likelihoods = [(density(x, *xs[0::2]) + density(x, *xs[1::2])) / total for x in points]
        return sum(map(mpmath.log, likelihoods)) / len(points)

    with mpmath.workdps(50):
        expected = partial_derivatives(exact, [*start.logits, *start.means, *start.log_spreads])
        assert_close([*slope.logits, *slope.means, *slope.log_spreads], expected)
    found, _ = module.climb(module.START, module.sample_points(), steps=100)
    assert found.means == pytest.approx([-2.0, 1.5], abs=0.2)


def test_bundle_adjustment_jacobian(precise: Any) -> None:
    """All residuals of one camera and one point by their 11 parameters; and the adjustment ends at the views."""
    module = example("bundle_adjustment")
    fitted, _, _ = module.adjust()
    assert math.sqrt(np.mean(fitted.fun**2)) < 1e-7
    point = [*module.scene()[1][:8], *module.scene()[1][-3:]]
    found = jacobian(lambda p: module.projected(p[:8], p[8:]))(point)
    exact = precise(module)
    for i in range(2):
        assert_close(found[i], partial_derivatives(lambda p, i=i: exact.projected(p[:8], p[8:])[i], point))


def test_rosenbrock_derivatives() -> None:
    """Gradient and Hessian products against SciPy's, written by hand."""
    module = example("rosenbrock")
    x, p = module.start(50), np.linspace(-1.0, 1.0, 50)
    value, slope = value_and_grad(module.rosenbrock)(x)
    assert value == pytest.approx(optimize.rosen(x), rel=1e-12)
    assert slope == pytest.approx(optimize.rosen_der(x), rel=1e-12)
    assert hvp(module.rosenbrock)(x, p) == pytest.approx(optimize.rosen_hess_prod(x, p), rel=1e-10)
    assert hessian(module.rosenbrock)(x) == pytest.approx(optimize.rosen_hess(x), rel=1e-10)


# ---------------------------------------------------------------- SciPy, unchanged


@pytest.mark.parametrize("method", ["BFGS", "L-BFGS-B", "TNC", "SLSQP"])
def test_minimize_with_gradients(method: str) -> None:
    """As many iterations and evaluations as with the gradient by hand."""
    module = example("rosenbrock")
    x = module.start(10)
    ours = optimize.minimize(value_and_grad(module.rosenbrock), x, jac=True, method=method)
    by_hand = optimize.minimize(module.rosenbrock, x, jac=optimize.rosen_der, method=method)
    assert (ours.nit, ours.nfev) == (by_hand.nit, by_hand.nfev)
    assert ours.x == pytest.approx(np.ones(10), abs=1e-2)


def test_minimize_with_conjugate_gradients() -> None:
    """On a convex function: in Rosenbrock's valley a last bit in the gradient changes CG's number of iterations."""

    def f(x: Any) -> Any:
        return sum((a - k) ** 2 * (k + 1.0) + (a - k) ** 4 for k, a in enumerate(x))

    def by_hand(x: Any) -> Any:
        k = np.arange(5)
        return 2.0 * (x - k) * (k + 1.0) + 4.0 * (x - k) ** 3

    ours = optimize.minimize(value_and_grad(f), np.zeros(5), jac=True, method="CG")
    theirs = optimize.minimize(f, np.zeros(5), jac=by_hand, method="CG")
    assert (ours.nit, ours.nfev) == (theirs.nit, theirs.nfev)


def test_what_changes_the_number_of_iterations_of_conjugate_gradients_is_rounding() -> None:
    """At the points that CG visits in Rosenbrock's valley, our gradient is as close to the exact one as SciPy's own.

    It takes 126 iterations with ours, 127 with SciPy's and 138 with the exact gradient rounded to floats; 96 on arm64,
    where NumPy's own sums round otherwise.
    """
    module = example("rosenbrock")
    visited: list[Any] = []
    f = value_and_grad(module.rosenbrock)
    optimize.minimize(f, module.start(10), jac=True, method="CG", callback=lambda x: visited.append(x.copy()))

    def exact(x: Any) -> list[Fraction]:
        numbers = list(map(Fraction, x))
        slopes = [Fraction(0)] * len(numbers)
        for i, (a, b) in enumerate(pairwise(numbers)):
            slopes[i] += -400 * a * (b - a * a) - 2 * (1 - a)
            slopes[i + 1] += 200 * (b - a * a)
        return slopes

    ours, theirs = (
        sum(abs(Fraction(a) - b) for x in visited for a, b in zip(gradient(x).tolist(), exact(x), strict=True))
        for gradient in (lambda x: f(x)[1], optimize.rosen_der)
    )
    assert len(visited) > 50
    assert ours <= 1.1 * theirs


@pytest.mark.parametrize("method", ["Newton-CG", "trust-ncg", "trust-krylov", "trust-constr"])
def test_minimize_with_hessian_products(method: str) -> None:
    """hvp as hessp, as it is."""
    module = example("rosenbrock")
    x = module.start(6)
    ours = optimize.minimize(
        value_and_grad(module.rosenbrock), x, jac=True, hessp=hvp(module.rosenbrock), method=method
    )
    by_hand = optimize.minimize(
        module.rosenbrock, x, jac=optimize.rosen_der, hessp=optimize.rosen_hess_prod, method=method
    )
    assert (ours.nit, ours.nfev) == (by_hand.nit, by_hand.nfev)


def test_minimize_with_a_hessian() -> None:
    """hessian as hess."""
    module = example("rosenbrock")
    x = module.start(6)
    f = module.rosenbrock
    ours = optimize.minimize(f, x, jac=grad(f), hess=hessian(f), method="trust-exact")
    by_hand = optimize.minimize(f, x, jac=optimize.rosen_der, hess=optimize.rosen_hess, method="trust-exact")
    assert (ours.nit, ours.nfev) == (by_hand.nit, by_hand.nfev)


@pytest.mark.parametrize("run", ["with_lbfgs", "with_newton_cg"])
def test_a_thousand_dimensions(run: str) -> None:
    """The example's two runs take as many iterations as with SciPy's hand-written derivatives."""
    module = example("rosenbrock")
    ours = getattr(module, run)()
    assert ours.fun < 1e-10
    module.value_and_grad = lambda f: lambda x: (f(x.tolist()), optimize.rosen_der(x))
    module.HessianProducts = lambda f: optimize.rosen_hess_prod
    by_hand = getattr(module, run)()
    assert (ours.nit, ours.nfev) == (by_hand.nit, by_hand.nfev)


@pytest.mark.parametrize("method", ["trf", "dogbox", "lm"])
def test_least_squares(method: str) -> None:
    """The fit of the example, with its Jacobian by hand and with ours."""
    module = example("curve_fitting")
    times, heights = module.measured()

    def by_hand(p: Any, times: Any, heights: Any) -> Any:
        t = np.array(times)
        decay, wave, slope = np.exp(-p[1] * t), np.cos(p[2] * t + p[3]), np.sin(p[2] * t + p[3])
        return np.stack([decay * wave, -t * p[0] * decay * wave, -t * p[0] * decay * slope, -p[0] * decay * slope], 1)

    ours, theirs = (
        optimize.least_squares(module.residuals, module.START, jac=jac, args=(times, heights), method=method)
        for jac in (jacobian(module.residuals), by_hand)
    )
    assert (ours.nfev, ours.njev) == (theirs.nfev, theirs.njev)
    assert ours.x == pytest.approx(theirs.x, rel=1e-8)


@pytest.mark.parametrize("method", ["hybr", "lm"])
@pytest.mark.parametrize("kind", [np.array, list])
def test_root(method: str, kind: Any) -> None:
    """A system of two equations, returned as an array or as a list."""

    def f(x: Any) -> Any:
        return kind([x[0] + 0.5 * (x[0] - x[1]) ** 3 - 1.0, 0.5 * (x[1] - x[0]) ** 3 + x[1]])

    def by_hand(x: Any) -> Any:
        a, b = 1.5 * (x[0] - x[1]) ** 2, 1.5 * (x[1] - x[0]) ** 2
        return np.array([[1.0 + a, -a], [-b, 1.0 + b]])

    ours, theirs = (optimize.root(f, [0.0, 0.0], jac=jac, method=method) for jac in (jacobian(f), by_hand))
    assert ours.success
    assert (ours.nfev, ours.njev) == (theirs.nfev, theirs.njev)


@pytest.mark.parametrize("method", ["SLSQP", "trust-constr"])
def test_constraints(method: str) -> None:
    """Constraints with jac= (and hess= for trust-constr) by ours and by hand."""
    f = example("rosenbrock").rosenbrock

    def inside(x: Any) -> Any:
        return 1.5 - x[0] ** 2 - x[1] ** 2

    def by_hand(x: Any) -> Any:
        return np.array([-2.0 * x[0], -2.0 * x[1]])

    results = []
    for jac, gradient in ((grad(inside), grad(f)), (by_hand, optimize.rosen_der)):
        constraint: Any = {"type": "ineq", "fun": inside, "jac": jac}
        if method == "trust-constr":
            constraint = optimize.NonlinearConstraint(inside, 0.0, np.inf, jac=jac, hess=optimize.BFGS())
        results.append(optimize.minimize(f, [0.5, 0.0], jac=gradient, constraints=constraint, method=method))
    assert (results[0].nit, results[0].nfev) == (results[1].nit, results[1].nfev)
    assert results[0].x == pytest.approx(results[1].x, rel=1e-6)
