"""A decaying oscillation fitted to noisy points by SciPy's least_squares, with the exact Jacobian.

Run it with `python examples/curve_fitting.py`; it needs SciPy (`pip install gradwalk[science]`).
"""

import random

import numpy as np
from scipy.optimize import least_squares

import gradwalk.math as math
from gradwalk import jacobian

TRUE = {"height": 2.0, "decay": 0.3, "frequency": 1.7, "phase": 0.4}
START = [1.0, 0.1, 1.5, 0.0]


def oscillation(t, height, decay, frequency, phase):
    return height * math.exp(-decay * t) * math.cos(frequency * t + phase)


def measured(count=60, noise=0.05, seed=7):
    """Times and noisy heights."""
    rng = random.Random(seed)
    times = [10.0 * i / count for i in range(count)]
    return times, [oscillation(t, **TRUE) + rng.gauss(0.0, noise) for t in times]


def residuals(parameters, times, heights):
    """How far the curve is from each point: works on floats and on Values."""
    return np.array([oscillation(t, *parameters) - height for t, height in zip(times, heights, strict=True)])


def fit():
    return least_squares(residuals, START, jac=jacobian(residuals), args=measured())


if __name__ == "__main__":
    found = fit()
    print("            true    fitted")
    for (name, true), fitted in zip(TRUE.items(), found.x, strict=True):
        print(f"{name:<10} {true:>5.2f}  {fitted:>8.4f}")
    print(f"{found.nfev} evaluations, {found.njev} Jacobians, root mean square {np.sqrt(np.mean(found.fun**2)):.4f}")
