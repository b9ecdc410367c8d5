"""gradcheck: planted bugs are found, right functions pass, and kinks, jumps and noise are told apart."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import pytest
from planted_programs import BUGS, Program, is_effective

import gradwalk.math
from gradwalk import Value
from gradwalk.gradient_check import Entry, Estimate, Report, assert_gradients, extrapolated, gradcheck


def twice(x: Any, local_grad: float) -> Any:
    return Value(2.0 * x.data, (x,), "hand", local_grads=(local_grad,))


def plus_1e16(x: Any, local_grad: float) -> Any:
    return Value(x.data + 1e16, (x,), "hand", local_grads=(local_grad,))


VERDICTS: list[tuple[str, Any, float, str]] = [
    ("relu at 0", lambda x: x.relu(), 0.0, "kink"),
    ("abs at 0, where the middle is right", lambda x: abs(x), 0.0, "kink"),
    ("a kink at 3", lambda x: abs(x - 3.0) * x, 3.0, "kink"),
    ("maximum at a tie", lambda x: x.maximum(2.0 * x - 1.0), 1.0, "kink"),
    ("the edge of the domain", lambda x: x.sqrt(), 0.0, "kink"),
    ("a vertical tangent", lambda x: x.cbrt(), 0.0, "kink"),
    ("a step", lambda x: x.floor() * x, 2.0, "discontinuity"),
    ("a sign", lambda x: x.sign(), 0.0, "discontinuity"),
    ("a branch that does not meet", lambda x: x * 2.0 if x < 1.0 else x + 5.0, 1.0, "discontinuity"),
    ("right beside a kink", lambda x: (x - 1e-3).relu() + x, 0.0, "ok"),
    ("right beside a step", lambda x: (x + 0.01).floor() + x, 1.0, "ok"),
    ("a small number", lambda x: x.log(), 1e-8, "ok"),
    ("a large number", lambda x: x.log() * x, 1e12, "ok"),
    ("a steep function", lambda x: (50.0 * x).exp(), 1.0, "ok"),
    ("a wavy function", lambda x: (1000.0 * x).sin(), 1.0, "ok"),
    ("rounding at a size of 1e8", lambda x: (x + 1e8) - 1e8, 1.0, "ok"),
    ("four digits beside a size of 1e10", lambda x: (x + 1e10) - 1e10, 0.3, "ok"),
    ("waves of length 6e-5", lambda x: (1e5 * x).sin(), 1.0, "ok"),
    ("waves too short for any step", lambda x: (1e7 * x).sin(), 1.0, "can't tell at this step"),
    ("waves much too short", lambda x: (3e8 * x).sin() + x, 1.0, "can't tell at this step"),
    ("waves that get shorter and shorter", lambda x: x * x * (1.0 / x).sin(), 1e-4, "can't tell at this step"),
    ("close to where the domain ends", lambda x: x.acos(), 1.0 - 1e-9, "ok"),
    ("closer to where the domain ends", lambda x: x.atanh(), 1.0 - 1e-12, "ok"),
    ("no dependence", lambda x: 3.0, 1.0, "ok"),
    ("a large constant", lambda x: 0.0 * x + 1e9, 1.0, "ok"),
    ("an inflection", lambda x: x**3, 0.0, "ok"),
    ("off by one in a thousand", lambda x: twice(x, 2.002), 1.0, "wrong derivative"),
    ("off beside rounding at a size of 1e8", lambda x: (twice(x, 2.2) + 1e8) - 1e8, 1.0, "wrong derivative"),
    ("off in waves", lambda x: (1e3 * twice(x, 2.002)).sin(), 1.0, "wrong derivative"),
    ("off close to where the domain ends", lambda x: (0.5 * twice(x, 2.2)).acos(), 1.0 - 1e-6, "wrong derivative"),
    ("far off where rounding makes a step", lambda x: plus_1e16(x, 1e9), 1.0, "wrong derivative"),
    ("an infinite result", lambda x: Value(math.inf, (x,), local_grads=(1.0,)), 1.0, "can't tell at this step"),
    ("differences that overflow", lambda x: x.exp(), 709.78, "can't tell at this step"),
    ("off where differences overflow", lambda x: (0.5 * twice(x, 4.0)).exp(), 709.78, "can't tell at this step"),
    ("nan as a derivative", lambda x: twice(x, math.nan), 1.0, "wrong derivative"),
    ("large numbers", lambda x: (x * 1e-6).sin(), 1e6, "ok"),
    ("waves at a large number", lambda x: (x * 1e-3).sin(), 1e6, "ok"),
    ("a kink at a large number", lambda x: abs(x - 1e6), 1e6, "kink"),
    ("a step at a large number", lambda x: (x * 1e-6).floor() * x, 1e6, "discontinuity"),
    ("a step to the right", lambda x: x.ceil() * x, 2.0, "discontinuity"),
    ("a step down", lambda x: -x.floor() * x, 2.0, "discontinuity"),
    ("a step on a slope", lambda x: 10.0 * x + x.ceil(), 2.0, "discontinuity"),
    ("a small step", lambda x: 1e-3 * (x.floor() + x), 2.0, "discontinuity"),
    ("a kink at a small number", lambda x: abs(x - 1e-3), 1e-3, "kink"),
    ("a kink that points up", lambda x: -abs(x), 0.0, "kink"),
    ("a kink on a slope", lambda x: 10.0 * x + abs(x), 0.0, "kink"),
    ("a kink on a falling slope", lambda x: -10.0 * x - abs(x), 0.0, "kink"),
    ("a kink of small numbers", lambda x: 1e-9 * abs(x), 0.0, "kink"),
    ("a kink of large numbers", lambda x: 1e9 * abs(x), 0.0, "kink"),
    ("a kink beside a curve", lambda x: abs(x) * (1.0 + 100.0 * x), 0.0, "kink"),
    ("a kink that is flat to the right", lambda x: (-x).relu(), 0.0, "kink"),
    ("a tangent that falls vertically", lambda x: -x.cbrt(), 0.0, "kink"),
    ("a vertical tangent of small numbers", lambda x: 1e-6 * x.cbrt(), 0.0, "kink"),
    ("an edge to the left", lambda x: (-x).sqrt(), 0.0, "kink"),
    ("an edge at a large number", lambda x: (x - 1e6).sqrt(), 1e6, "kink"),
    ("an edge at a small number", lambda x: (x - 1e-3).sqrt(), 1e-3, "kink"),
    ("a curve that is almost a kink", lambda x: (x * x + 1e-6).sqrt(), 0.0, "ok"),
    ("an extremum", lambda x: x.cos(), 0.0, "ok"),
    ("an extremum of large numbers", lambda x: 1e6 * x.cos(), 0.0, "ok"),
    ("an extremum of small numbers", lambda x: 1e-12 * x * x, 0.0, "ok"),
    ("a pole near a small number", lambda x: 1.0 / x, 0.01, "ok"),
    ("a pole at a smaller number", lambda x: 1.0 / x, 1e-6, "ok"),
    ("waves at a small number", lambda x: (1e3 * x).sin(), 1e-3, "ok"),
    ("a power of a small number", lambda x: x ** 1.5, 1e-6, "ok"),
    ("small slopes", lambda x: 1e-9 * x.exp(), 1.0, "ok"),
    ("large slopes", lambda x: 1e9 * x.exp(), 1.0, "ok"),
    ("off a little", lambda x: twice(x, 2.00001), 1.0, "wrong derivative"),
    ("off less than can be asked", lambda x: twice(x, 2.0 + 1e-7), 1.0, "ok"),
    ("off a little among small slopes", lambda x: 1e-9 * twice(x, 2.00001), 1.0, "wrong derivative"),
    ("off a little among large slopes", lambda x: 1e9 * twice(x, 2.00001), 1.0, "wrong derivative"),
    ("off less than can be asked among small slopes", lambda x: 1e-9 * twice(x, 2.0 + 1e-7), 1.0, "ok"),
    ("off less than can be asked among large slopes", lambda x: 1e9 * twice(x, 2.0 + 1e-7), 1.0, "ok"),
    ("off at a small number", lambda x: (0.5 * twice(x, 2.01)).log(), 1e-8, "wrong derivative"),
    ("off at a pole", lambda x: 2.0 / twice(x, 2.01), 1e-3, "wrong derivative"),
    ("off at a large number", lambda x: (1e-6 * twice(x, 2.01)).sin(), 1e6, "wrong derivative"),
    ("0 where it is not", lambda x: twice(x, 0.0), 1.0, "wrong derivative"),
    ("not 0 where it is", lambda x: twice(x, 2.0) - 2.0 * x, 1.0, "ok"),
    ("not 0 where it is 0", lambda x: twice(x, 2.1) - 2.0 * x, 1.0, "wrong derivative"),
    ("a curve at another small number", lambda x: (x * x + 1e-8).sqrt(), 1e-4, "ok"),
    ("off where the domain ends at once", lambda x: (0.5 * twice(x, 2.2)).atanh(), 1.0 - 1e-12, "wrong derivative"),
    ("off at the edge", lambda x: (0.5 * twice(x, 2.2)).acos(), 1.0 - 1e-10, "wrong derivative"),
    ("a kink beside a vertical tangent", lambda x: x.cbrt() + 5.0 * x.relu(), 0.0, "kink"),
    ("a large curve", lambda x: 1e8 * (x - 1.0) ** 2, 1.0, "ok"),
    ("waves shorter than that", lambda x: (1e11 * x).sin(), 0.09, "can't tell at this step"),
    ("off in waves much too short", lambda x: (0.5e11 * twice(x, 3.0)).sin(), 0.09, "wrong derivative"),
]  # fmt: skip


@pytest.mark.parametrize(("f", "x", "verdict"), [pytest.param(*row[1:], id=row[0]) for row in VERDICTS])
def test_verdict(f: Any, x: float, verdict: str) -> None:
    """Each kind of trouble is called by its name, and none is seen where there is none."""
    report = gradcheck(f, x)
    assert report.verdict == verdict, str(report)


@pytest.mark.parametrize("seed", range(5))
def test_noise(seed: int) -> None:
    """A function that jitters more than its derivative can be seen through is noise, not a wrong derivative."""
    rng = random.Random(seed)
    report = gradcheck(lambda x: x + 0.05 * rng.random(), 1.0)
    assert report.verdict == "noise", str(report)


@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_are_found(bug: str) -> None:
    """Each of 50 of this kind, 200 in all."""
    planted = (Program(seed, bug) for seed in itertools.count(BUGS.index(bug) * 100_000))
    found = [
        gradcheck(program, program.point).verdict for program in itertools.islice(filter(is_effective, planted), 50)
    ]
    assert found == ["wrong derivative"] * 50


def test_right_functions_pass() -> None:
    """None of 1,000 is reported."""
    programs = [Program(seed) for seed in range(1000)]
    reported = [(p.steps, str(report)) for p in programs if not (report := gradcheck(p, p.point))]
    assert reported == []


def test_every_entry_is_named_and_the_worst_comes_first() -> None:
    """The table has the path of each input in the argument's structure, and of each output."""

    def f(p: Any) -> Any:
        return {"a": p["w"][0] * p["b"], "s": Value(p["w"][1].data, (p["w"][1],), "hand", local_grads=(3.0,))}

    report = gradcheck(f, {"w": [2.0, 5.0], "b": 4.0})
    worst = report.worst(1)[0]
    assert (worst.name, worst.derivative, worst.verdict) == ("f['s'] by x['w'][1]", 3.0, "wrong derivative")
    assert len(report.entries) == 6
    assert str(report).splitlines()[0] == "wrong derivative: 1 of 6 entries"
    assert str(report).splitlines()[2].startswith("f['s'] by x['w'][1]  3           1 ±")


def test_the_relative_error_is_the_distance_by_the_larger_of_the_two() -> None:
    """2 in place of 4 is half off, whichever of them the differences say; 0 and 0 are not apart."""

    def f(x: Any) -> list[Any]:
        return [Value(slope * x.data, (x,), "hand", local_grads=(said,)) for slope, said in ((4.0, 2.0), (2.0, 4.0))]

    assert [entry.relative_error for entry in gradcheck(f, 1.0).entries] == pytest.approx([0.5, 0.5])
    assert gradcheck(lambda x: 0.0 * x, 1.0).entries[0].relative_error == 0.0


def test_of_two_wrong_derivatives_the_one_further_off_comes_first() -> None:
    """And one that nothing can be compared with comes before both."""
    found = [Estimate(1.0, 0.0, 1.0), Estimate(-1.0, 0.0, 1.0), None]
    report = Report([Entry(name, 2.0, each, "wrong derivative") for name, each in zip("abc", found, strict=True)])
    assert [entry.name for entry in report.worst()] == ["c", "b", "a"]


def test_an_argument_asked_for_twice_is_named_once() -> None:
    """By its first place."""
    report = gradcheck(lambda x, y: x[0] * x[1] * y, [1.0, 2.0], 3.0, argnums=(1, 0, 1))
    assert [entry.name for entry in report.entries] == ["x[0]", "x[1][0]", "x[1][1]"]


def test_assert_gradients() -> None:
    """It fails with the table, accepts the verdicts it is told to, and passes on a right function."""
    assert_gradients(lambda x, y: (x * y).sin(), 2.0, 3.0, argnums=(0, 1))
    with pytest.raises(AssertionError, match=r"(?s)wrong derivative: 1 of 1.*x +5 +1 ±"):
        assert_gradients(lambda x: Value(x.data, (x,), "hand", local_grads=(5.0,)), 1.0)
    with pytest.raises(AssertionError, match="kink"):
        assert_gradients(lambda x: x.relu(), 0.0)
    assert_gradients(lambda x: x.relu(), 0.0, allow=["kink"])
    assert_gradients(lambda x: x.relu(), 0.0, allow="kink")
    with pytest.raises(
        ValueError, match=r"allow to name some of ok, can.t tell at this step, noise, kink, .* got 'corner'"
    ):
        assert_gradients(lambda x: x.relu(), 0.0, allow="corner")


def test_values_may_be_given() -> None:
    """A Value as the argument, or in it, stands for its number, and is left alone."""
    x = Value(2.0)
    assert gradcheck(lambda v: v * v, x)
    assert gradcheck(lambda v: v["a"] * v["b"][0], {"a": x, "b": [3]})
    assert x.grad == 0.0


def test_other_arguments_may_be_anything() -> None:
    """What cannot be differentiated is passed on as it is."""
    assert gradcheck(lambda v, names: v * len(names), 2.0, {"a", "b"})


def test_nothing_to_compare_with() -> None:
    """The table says that the differences are undefined."""
    report = gradcheck(lambda x: x * 2.0, math.inf)
    assert math.isnan(report.entries[0].relative_error)
    assert str(report).splitlines()[-1].split()[:4] == ["x", "2", "undefined", "nan"]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: gradcheck(3.0, 1.0), TypeError, r"expected a function, got a float; write gradcheck\(f, x\)"),
        (lambda: gradcheck(lambda x: None, 1.0), TypeError, "gradcheck: .* got None; is a return missing"),
        (lambda: gradcheck(lambda x: x, 1.0, argnums=None), TypeError, "gradcheck: expected argnums to be positions"),
        (lambda: gradcheck(lambda x: x, 1.0, tolerance="a"), ValueError, "expected a tolerance above 0, got 'a'"),
        (lambda: gradcheck(lambda x: x, 1.0, tolerance=0.0), ValueError, "expected a tolerance above 0, got 0.0"),
    ],
)  # fmt: skip
def test_bad_input(call: Any, error: type, message: str) -> None:
    """One sentence."""
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(("x", "step"), [(1.0, 0.1), (1e-3, 1e-4), (50.0, 5.0)])
def test_extrapolation_tells_its_error(x: float, step: float) -> None:
    """The derivative of exp and sin is within four times the stated error, which is small."""
    for f, derivative in ((math.sin, math.cos(x)), (lambda y: math.exp(y / 50.0), math.exp(x / 50.0) / 50.0)):
        estimate = extrapolated(lambda h, f=f: f(x + h), x, step)
        assert estimate is not None
        assert abs(estimate.derivative - derivative) <= 4.0 * estimate.error <= 1e-9


ENDS = [("acos", -1.0, 1.0), ("asin", -1.0, 1.0), ("acosh", 1.0, 2.0), ("atanh", -1.0, 1.0), ("log1p", -1.0, 0.0)]


@pytest.mark.parametrize(("name", "low", "high"), ENDS)
def test_the_last_float_of_a_domain_is_no_kink(name: str, low: float, high: float) -> None:
    """The derivative there is right, and there is no room for differences; at the end itself there is one side only."""
    function = getattr(gradwalk.math, name)
    for end, inside in ((low, high), (high, low))[: 2 if high == 1.0 else 1]:
        assert gradcheck(function, math.nextafter(end, inside)).verdict == "can't tell at this step"
        if name not in ("atanh", "log1p"):  # which are infinite there
            assert gradcheck(function, end).verdict == "kink"
