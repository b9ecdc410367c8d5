"""A Gaussian mixture fitted by its log-likelihood: weights, means and spreads in a dataclass, and so its gradient.

Run it with `python examples/gaussian_mixture.py`; the gradient keeps the shape of what it is taken by.
"""

import random
from dataclasses import dataclass

import gradwalk
import gradwalk.math as math
from gradwalk import value_and_grad


@dataclass(frozen=True)
class Mixture:
    """Components in numbers that may take any value: logits of the weights, means, logarithms of the spreads."""

    logits: list
    means: list
    log_spreads: list


def log_likelihood(mixture, points):
    """The mean over the points of log sum_k weight_k N(point; mean_k, spread_k)."""
    log_weights = gradwalk.log_softmax(mixture.logits)
    total = 0.0
    for x in points:
        terms = []
        for log_weight, mean, log_spread in zip(log_weights, mixture.means, mixture.log_spreads, strict=True):
            z = (x - mean) * math.exp(-log_spread)
            terms.append(log_weight - log_spread - 0.5 * z * z - 0.5 * math.log(2.0 * math.pi))
        total = total + gradwalk.logsumexp(terms)
    return total / len(points)


def sample_points(count=200, seed=3):
    rng = random.Random(seed)
    return [rng.gauss(-2.0, 0.5) if rng.random() < 0.3 else rng.gauss(1.5, 1.0) for _ in range(count)]


def climb(mixture, points, steps=200, rate=0.5):
    """Gradient ascent."""
    rise = value_and_grad(log_likelihood)
    for _ in range(steps):
        value, slope = rise(mixture, points)
        mixture = Mixture(
            *(
                [x + rate * dx for x, dx in zip(getattr(mixture, name), getattr(slope, name), strict=True)]
                for name in ("logits", "means", "log_spreads")
            )
        )
    return mixture, value


START = Mixture(logits=[0.0, 0.0], means=[-1.0, 1.0], log_spreads=[0.0, 0.0])

if __name__ == "__main__":
    found, value = climb(START, sample_points())
    print("weight    mean  spread")
    for weight, mean, log_spread in zip(gradwalk.softmax(found.logits), found.means, found.log_spreads, strict=True):
        print(f"{weight:>6.2f}  {mean:>6.2f}  {math.exp(log_spread):>6.2f}")
    print(f"log-likelihood a point: {value:.4f}")
