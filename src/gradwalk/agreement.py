"""Whether a gradient agrees with a finite difference: one rule, for Python, the terminal and the page.

It is written in the language of the table (`formula.py`), and `tools/generate.py` prints it for the page. How a
difference is measured is in `finite_differences.py` and the page's `engine.js`.
"""

from __future__ import annotations

from gradwalk.formula import Number, absolute, div, equal, where

AGREES = 1e-6  # a gradient this near, relatively, is as near as a difference can be
DECIDES = 1e-3  # a difference that may be further off decides nothing
STEPS = (2.0**-17, 2.0**-13)  # of x's own size: the small one for what bends, the large one for what is noisy
TINY_STEP = 2.0**-40  # for what is steep: too noisy to measure with, but it can contradict the others


def rounding(noise: Number, step: Number) -> Number:
    """How far rounding may move a slope; `noise` is how far it may move the root."""
    return div(noise, step)


def is_at_kink(left: Number, right: Number, wide_left: Number, wide_right: Number, rounded: Number) -> Number:
    """Across a smooth bend the gap between the two sides grows with the step; across a kink at x itself it stays.

    Across a kink beside x it grows by less, and across a jump it shrinks: there one cannot tell.
    """
    gap, wide_gap = absolute(right - left), absolute(wide_right - wide_left)
    stays = absolute(wide_gap - gap) <= 1e-3 * gap + 2.0 * rounded
    return (gap > 1e-3 * _larger(left, right)) & stays & (gap > 8.0 * rounded)


def inaccuracy(
    slope: Number, wide_slope: Number, gap: Number, wide_gap: Number, at_kink: Number, rounded: Number
) -> Number:
    """How far a slope may be from the derivative: what doubling the step changes, and what rounding does.

    Doubling it doubles the gap between the two sides; by as much as it does not, a kink or a jump is within reach.
    """
    expected = where(at_kink, gap, 2.0 * gap)
    return 2.0 * absolute(slope - wide_slope) + absolute(wide_gap - expected) + 2.0 * rounded


def contradicted(inaccurate: Number, slope: Number, other_slope: Number, other_inaccurate: Number) -> Number:
    """How far a slope may be off where another step measured another one: what is steep is flat to steps too large."""
    apart = absolute(slope - other_slope)
    return where(apart > inaccurate + 4.0 * other_inaccurate, 2.0 * apart, inaccurate)


def verdict(
    gradient: Number, slope: Number, left: Number, right: Number, at_kink: Number, inaccurate: Number
) -> Number:
    """1 where a gradient fits, -1 where it does not, 0 where the difference cannot tell.

    It fits if it is the slope, as nearly as that is known, or at a kink anything between those on both sides. How small
    it is does not matter: what is too small to be measured cannot be told.
    """
    low, high = where(left < right, left, right), where(left < right, right, left)
    outside = where(gradient < low, low - gradient, where(gradient > high, gradient - high, 0.0))
    distance = where(at_kink, outside, absolute(gradient - slope))
    size = _larger(gradient, slope)
    is_near = (distance <= inaccurate) & (inaccurate <= DECIDES * size)
    fits = (distance <= AGREES * size) | is_near | equal(gradient, slope)
    known = (slope <= 0.0) | (slope >= 0.0)
    return where(known, where(fits, 1.0, where(distance <= inaccurate, 0.0, -1.0)), 0.0)


RULE = {function.__name__: function for function in (rounding, is_at_kink, inaccuracy, contradicted, verdict)}


def _larger(a: Number, b: Number) -> Number:
    return where(absolute(a) > absolute(b), absolute(a), absolute(b))
