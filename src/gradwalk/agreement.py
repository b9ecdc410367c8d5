"""Whether a gradient agrees with a finite difference: one rule, for Python, the terminal and the page.

It is written in the language of the table (`formula.py`), and `tools/generate.py` prints it for the page. How a
difference is measured is in `finite_differences.py` and the page's `engine.js`.
"""

from __future__ import annotations

from gradwalk.formula import Number, absolute, div, equal, where

AGREES = 1e-6  # a relative error up to this is the difference's own inaccuracy
STEPS = (2.0**-17, 2.0**-13)  # of x's own size: the small one for what bends, the large one for what is noisy


def rounding(noise: Number, step: Number) -> Number:
    """How far rounding may move a slope; `noise` is how far it may move the root."""
    return div(noise, step)


def is_at_kink(left: Number, right: Number, wide_left: Number, wide_right: Number, rounded: Number) -> Number:
    """Across a smooth bend the gap between the two sides grows with the step; across a kink it stays."""
    gap, wide_gap = absolute(right - left), absolute(wide_right - wide_left)
    return (gap > 1e-3 * _larger(left, right)) & (wide_gap < 1.5 * gap) & (gap > 8.0 * rounded)


def inaccuracy(slope: Number, wide_slope: Number, rounded: Number) -> Number:
    """How far a slope may be from the derivative: what doubling the step changes, and what rounding does."""
    return 2.0 * absolute(slope - wide_slope) + 2.0 * rounded


def verdict(
    gradient: Number, slope: Number, left: Number, right: Number, at_kink: Number, inaccurate: Number, size: Number
) -> Number:
    """1 where a gradient fits, -1 where it does not, 0 where the difference cannot tell.

    It fits if it is the slope, or at a kink anything between those on both sides. `size` is that of the root, which
    sets how small a slope can be.
    """
    tolerance = AGREES * _largest(absolute(gradient), absolute(slope), 1e-6 * _largest(1.0, absolute(size), 0.0))
    low, high = where(left < right, left, right), where(left < right, right, left)
    slack = AGREES * _largest(1.0, absolute(low), absolute(high)) + inaccurate
    between = (low - slack <= gradient) & (gradient <= high + slack)
    distance = absolute(gradient - slope)
    smooth = where((distance <= tolerance) | equal(gradient, slope), 1.0, where(distance <= inaccurate, 0.0, -1.0))
    known = (slope <= 0.0) | (slope >= 0.0)
    return where(known, where(at_kink, where(between, 1.0, -1.0), smooth), 0.0)


RULE = {function.__name__: function for function in (rounding, is_at_kink, inaccuracy, verdict)}


def _larger(a: Number, b: Number) -> Number:
    return where(absolute(a) > absolute(b), absolute(a), absolute(b))


def _largest(a: Number, b: Number, c: Number) -> Number:
    larger = where(a > b, a, b)
    return where(larger > c, larger, c)
