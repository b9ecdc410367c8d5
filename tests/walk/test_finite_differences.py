"""Finite differences of a recorded graph: they agree with gradients, and know a kink and an edge when they meet one."""

from __future__ import annotations

import math
import sys

import pytest

from gradwalk.finite_differences import Replay, finite_differences
from gradwalk.ops import OPS

SMOOTH = {name: op for name, op in OPS.items() if name not in ("floor", "ceil", "sign", "where", "minimum", "maximum")}


@pytest.mark.parametrize("name", SMOOTH)
def test_agree_with_every_row(name, engine):
    """At a row's samples the difference along each input agrees with the gradient."""
    op = OPS[name]
    for sample in op.samples:
        point = sample if isinstance(sample, tuple) else (sample,)
        inputs = [engine.Value(x) for x in point[: len(op.inputs)]]
        root = inputs[0]._apply(name, *inputs, *point[len(op.inputs) :])
        root.backward()
        for difference in finite_differences(root, inputs):
            assert difference.verdict(difference.leaf.grad) == 1, (point, difference)


def test_a_wrong_gradient_is_noticed(engine):
    """A gradient off by one part in a thousand does not agree."""
    x = engine.Value(3.0)
    [difference] = finite_differences(x.tanh() * x)
    (x.tanh() * x).backward()
    assert difference.verdict(x.grad) == 1
    assert difference.verdict(x.grad * 1.001) == -1


@pytest.mark.parametrize("x", [1e-9, 1e-3, 1.0, 1e6, 1e12, -1e-5])
def test_small_and_large_leaves(engine, x):
    """The step fits the leaf: x² and sin x have their slopes at any size of x."""
    leaf = engine.Value(x)
    [square], [wave] = finite_differences(leaf * leaf), finite_differences((leaf * (1.0 / x)).sin())
    assert square.slope == pytest.approx(2 * x, rel=1e-6)
    assert wave.slope == pytest.approx(math.cos(1.0) / x, rel=1e-6)


@pytest.mark.parametrize(
    ("slope", "gradient", "size", "error"),
    [
        (2.0, 2.0, 1.0, 0.0),
        (2.0, 1.0, 1.0, 0.5),
        (-2.0, -4.0, 1.0, 0.5),
        (2.0, -2.0, 1.0, 2.0),
        (0.0, 1e-9, 0.5, 1e-3),
        (0.0, 1e-9, -100.0, 1e-5),
        (math.inf, math.inf, 1.0, 0.0),
    ],
)
def test_the_distance_is_relative_to_the_larger(engine, slope, gradient, size, error):
    """Of gradient and slope; below a millionth of the root, or of 1, there is nothing to be relative to."""
    [difference] = finite_differences(engine.Value(1.0) * 2.0)
    assert difference._replace(slope=slope).relative_error(gradient, size) == pytest.approx(error)


def test_a_kink_accepts_what_lies_between_its_sides(engine):
    """At the kink of relu any slope from 0 to 1 agrees, and it is called a kink."""
    x = engine.Value(0.0)
    [difference] = finite_differences(x.relu())
    assert difference.is_kink
    assert [difference.verdict(slope) for slope in (0.0, 1.0, 1.5)] == [1, 1, -1]


@pytest.mark.parametrize("of", ["relu", "floor"])
@pytest.mark.parametrize("beside", [2e-6, 5e-6, 2e-5, 7e-5, 2e-4])
def test_beside_a_kink_or_a_jump_nothing_is_ticked_but_the_slope(engine, of, beside):
    """What lies between the slopes on both sides is right only at a kink itself."""
    x = engine.Value(1.0)
    shifted = x - (1.0 - beside)
    [difference] = finite_differences(shifted.relu() if of == "relu" else shifted.floor())
    right = 1.0 if of == "relu" else 0.0
    assert difference.verdict(right) >= 0
    assert difference.verdict(0.5) <= 0


def test_rounding_on_the_way_adds_up(engine):
    """Each number by its own part in the root: two leaves and their product by 6, the constant by 1, the root by 7."""
    root = engine.Value(2.0) * engine.Value(3.0) + 1.0
    parts = (6.0, 6.0, 6.0, 1.0, 7.0)
    expected = 4.0 * sys.float_info.epsilon * math.hypot(*parts)
    assert Replay(root).noise == pytest.approx(expected, rel=1e-12, abs=0.0)


def test_what_is_too_small_to_be_measured_cannot_be_told(engine):
    """A slope that the last digit of the result hides is neither ticked nor crossed."""
    x = engine.Value(1.0)
    [difference] = finite_differences(5.0 + 1e-13 * x)
    assert [difference.verdict(grad) for grad in (1e-13, 2e-13, 1e-27)] == [0, 0, 0]


@pytest.mark.parametrize("x", [math.inf, -math.inf, math.nan])
def test_a_leaf_that_is_not_finite_cannot_be_moved(engine, x):
    """No step leads anywhere: nothing is ticked, nothing crossed."""
    [difference] = finite_differences(engine.Value(x) * 2.0)
    assert math.isnan(difference.slope)
    assert [difference.verdict(grad) for grad in (2.0, 3.0)] == [0, 0]


def test_a_bend_is_no_kink(engine):
    """A sharp but smooth bend is not taken for a kink."""
    x = engine.Value(0.0)
    [difference] = finite_differences((x * 100.0).softplus())
    assert not difference.is_kink


def test_the_edge_of_a_domain_is_not_known(engine):
    """sqrt ends at 0: there is no slope to compare with."""
    [difference] = finite_differences(engine.Value(0.0).sqrt())
    assert not difference.is_known


def test_composites_are_run_again(engine):
    """softmax and cross_entropy are differentiated through their rows."""
    xs = [engine.Value(x) for x in (0.5, -1.0, 2.0)]
    root = engine.composites.cross_entropy(engine.composites.softmax(xs), 1)
    root.backward()
    assert all(found.verdict(found.leaf.grad) == 1 for found in finite_differences(root))


def test_a_node_made_by_hand_cannot_be_run_again(engine):
    """What a hand-made node computes is not known, so there is no check."""
    leaf = engine.Value(2.0)
    assert finite_differences(engine.Value(4.0, (leaf,), local_grads=(2.0,))) is None
