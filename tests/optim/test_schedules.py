"""Schedules: from the number of a step to a factor of the learning rate."""

from __future__ import annotations

import pytest

from gradwalk.optim import SCHEDULES, constant, cosine, linear

EACH_SCHEDULE = pytest.mark.parametrize("make", SCHEDULES.values(), ids=SCHEDULES)


def test_linear_is_the_scalar_programs() -> None:
    """Without options, linear is 1 - step / steps, to the bit."""
    assert [1 - step / 7 for step in range(7)] == [linear(7)(step) for step in range(7)]


def test_cosine_is_half_way_in_the_middle() -> None:
    """cosine starts at 1, is at the mean of 1 and the floor in the middle, and ends on the floor."""
    factor = cosine(100, floor=0.2)
    assert [factor(0), factor(50), factor(100)] == pytest.approx([1.0, 0.6, 0.2])


def test_constant_is_one() -> None:
    """constant is exactly 1.0 at every step, also past the end."""
    assert {constant(5)(step) for step in range(9)} == {1.0}


@EACH_SCHEDULE
def test_warm_up_rises_in_equal_parts(make) -> None:  # type: ignore[no-untyped-def]
    """The warm-up rises to 1 in equal parts, never from 0; the schedule starts where it ends."""
    assert pytest.approx([make(50, warmup=4)(step) for step in range(5)]) == [0.2, 0.4, 0.6, 0.8, 1.0]


@EACH_SCHEDULE
def test_never_rises_after_the_warm_up(make) -> None:  # type: ignore[no-untyped-def]
    """After the warm-up no factor is larger than the one before, and none is below the floor."""
    factors = [make(30, warmup=5, floor=0.1)(step) for step in range(5, 40)]
    assert factors == sorted(factors, reverse=True)
    assert min(factors) >= 0.1


@EACH_SCHEDULE
@pytest.mark.parametrize(("steps", "warmup"), [(10, 10), (10, -1), (-5, 0)])
def test_impossible_lengths(make, steps: int, warmup: int) -> None:  # type: ignore[no-untyped-def]
    """A warm-up as long as the run, or a negative length, is refused in one sentence."""
    with pytest.raises(ValueError, match=f"expected 0 <= warmup < steps, got warmup {warmup} of {steps} steps"):
        make(steps, warmup=warmup)


@EACH_SCHEDULE
def test_a_run_of_no_steps(make) -> None:  # type: ignore[no-untyped-def]
    """It has no warm-up; a single step is one, and begins at 1."""
    make(0)
    with pytest.raises(ValueError, match="expected 0 <= warmup < steps, got warmup 1 of 0 steps"):
        make(0, warmup=1)
    assert make(1)(0) == 1.0


@EACH_SCHEDULE
@pytest.mark.parametrize("floor", [-0.1, float("nan"), float("inf")])
def test_impossible_floors(make, floor: float) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=f"schedule: expected a finite floor >= 0, got {floor}"):
        make(5, floor=floor)
