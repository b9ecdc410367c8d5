"""gradwalk.statistics: the standard numbers, on Values and on floats."""

from __future__ import annotations

import math
import statistics as standard
from typing import Any

import pytest

import gradwalk.math as gm
import gradwalk.statistics as statistics
from gradwalk import Value, compile, gradcheck

SAMPLE, OTHER = [2.5, 3.25, 5.5, 1.75], [1.0, 4.0, 2.0, 8.0]
OF_ONE = ["mean", "fmean", "geometric_mean", "harmonic_mean", "variance", "pvariance", "stdev", "pstdev", "median",
          "median_low", "median_high", "mode"]  # fmt: skip
OF_TWO = ["covariance", "correlation", "linear_regression"]


@pytest.mark.parametrize("name", [*OF_ONE, *OF_TWO])
def test_statistics(name: str) -> None:
    """The number of the standard module, a right derivative, and the same compiled."""
    samples = [SAMPLE] if name in OF_ONE else [SAMPLE, OTHER]
    expected = getattr(standard, name)(*samples)
    assert getattr(statistics, name)(*samples) == expected

    def f(x: Any) -> Any:
        made = getattr(statistics, name)(x, *samples[1:])
        return made[0] * made[1] if isinstance(made, tuple) else made

    plain = expected[0] * expected[1] if isinstance(expected, tuple) else expected
    assert f([Value(x) for x in SAMPLE]).data == pytest.approx(plain, rel=1e-12)
    assert compile(f)(SAMPLE).data == pytest.approx(plain, rel=1e-12)
    report = gradcheck(f, SAMPLE)
    assert report, str(report)


def test_the_rest_is_standard() -> None:
    """And too few numbers are too few."""
    assert statistics.quantiles is standard.quantiles
    assert statistics.mode([1, 1, 2]) == 1
    with pytest.raises(standard.StatisticsError, match="stdev: expected at least two numbers, got 1"):
        statistics.stdev([Value(1.0)])
    with pytest.raises(standard.StatisticsError):
        statistics.mean([])
    with pytest.raises(standard.StatisticsError, match="fmean: expected at least one number, got none"):
        statistics.fmean([], weights=[Value(1.0)])


FREQUENT = [[2.0, 1.0, 1.0], [2.0, 1.0, 2.0], [1.0, 2.0, 2.0], [1.0, 0.0, -0.0], [3.0, 2.0, 1.0]]


def test_the_most_frequent_number_is_found_by_the_numbers() -> None:
    """The standard module asks a dict, to which two Values of one number are two."""
    compiled = compile(statistics.mode)
    for sample in FREQUENT:
        expected, values = standard.mode(sample), [Value(x) for x in sample]
        assert expected == statistics.mode(values).data == compiled(sample).data
        assert standard.multimode(sample) == [x.data for x in statistics.multimode(values)]


def test_a_harmonic_mean_of_a_negative_number_is_refused_as_by_the_standard_module() -> None:
    for sample in ([1.0, -2.0], [Value(1.0), -2.0]):
        with pytest.raises(standard.StatisticsError, match="negative"):
            statistics.harmonic_mean(sample)


@pytest.mark.parametrize(
    "function",
    [
        lambda s, xs: s.mean(xs), lambda s, xs: s.fmean(xs), lambda s, xs: s.fmean(xs, [1.0, 2.0]),
        lambda s, xs: s.median(xs), lambda s, xs: s.variance(xs), lambda s, xs: s.covariance(xs, xs),
        lambda s, xs: s.linear_regression([1.0, 2.0], xs).intercept, lambda s, xs: s.quantiles(xs, n=2)[0],
    ],
)  # fmt: skip
def test_what_is_made_of_negative_zeros_has_the_sign_that_it_has_in_the_standard_module(function: Any) -> None:
    expected = math.copysign(1.0, function(standard, [-0.0, -0.0]))
    assert math.copysign(1.0, function(statistics, [Value(-0.0), Value(-0.0)]).data) == expected
    compiled = compile(lambda xs: gm.copysign(1.0, function(statistics, xs)))
    assert [compiled(xs).data for xs in ([1.0, 2.0], [-0.0, -0.0])][1] == expected
