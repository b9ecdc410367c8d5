"""Rosenbrock's valley in 1,000 dimensions: L-BFGS on the exact gradient, Newton-CG on Hessian-vector products.

Run it with `python examples/rosenbrock.py`; it needs SciPy (`pip install gradwalk[science]`).
"""

from itertools import pairwise

import numpy as np
from scipy.optimize import minimize

from gradwalk import hvp, value_and_grad

DIMENSIONS = 1000


def rosenbrock(x):
    """Ordinary Python: a loop over neighbours."""
    total = 0.0
    for a, b in pairwise(x):
        total = total + 100.0 * (b - a * a) ** 2 + (1.0 - a) ** 2
    return total


def start(dimensions=DIMENSIONS):
    """The point that SciPy's tutorial starts at, again and again: on both sides of the valley."""
    return np.resize([1.3, 0.7, 0.8, 1.9, 1.2], dimensions)


class HessianProducts:
    """`hvp` for SciPy, which asks for many products at one point: what was recorded there is kept for the next."""

    def __init__(self, f):
        self.products, self.x, self.product = hvp(f), None, None

    def __call__(self, x, p):
        if self.x is None or not np.array_equal(x, self.x):
            self.x, self.product = np.copy(x), self.products.at(x)
        return self.product(p)


def with_lbfgs(dimensions=DIMENSIONS):
    return minimize(
        value_and_grad(rosenbrock), start(dimensions), jac=True, method="L-BFGS-B",
        options={"maxiter": 10_000, "maxfun": 100_000, "ftol": 1e-12},
    )  # fmt: skip


def with_newton_cg(dimensions=DIMENSIONS):
    return minimize(
        value_and_grad(rosenbrock), start(dimensions), jac=True, hessp=HessianProducts(rosenbrock), method="Newton-CG",
        options={"maxiter": 10_000, "xtol": 1e-9},
    )  # fmt: skip


if __name__ == "__main__":
    for name, run in (("L-BFGS-B", with_lbfgs), ("Newton-CG", with_newton_cg)):
        found = run()
        print(f"{name:<9}  {found.nit:>4} iterations, {found.nfev:>4} gradients, f = {found.fun:.2e}")
