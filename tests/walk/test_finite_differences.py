"""Finite differences of a recorded graph: they agree with gradients, and know a kink and an edge when they meet one."""

from __future__ import annotations

import math

import pytest

from gradwalk.finite_differences import finite_differences
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
            assert difference.verdict(difference.leaf.grad, root.data) == 1, (point, difference)


def test_a_wrong_gradient_is_noticed(engine):
    """A gradient off by one part in a thousand does not agree."""
    x = engine.Value(3.0)
    [difference] = finite_differences(x.tanh() * x)
    (x.tanh() * x).backward()
    assert difference.verdict(x.grad, 1.0) == 1
    assert difference.verdict(x.grad * 1.001, 1.0) == -1


@pytest.mark.parametrize("x", [1e-9, 1e-3, 1.0, 1e6, 1e12, -1e-5])
def test_small_and_large_leaves(engine, x):
    """The step fits the leaf: x² and sin x have their slopes at any size of x."""
    leaf = engine.Value(x)
    [square], [wave] = finite_differences(leaf * leaf), finite_differences((leaf * (1.0 / x)).sin())
    assert square.slope == pytest.approx(2 * x, rel=1e-6)
    assert wave.slope == pytest.approx(math.cos(1.0) / x, rel=1e-6)


def test_a_kink_accepts_what_lies_between_its_sides(engine):
    """At the kink of relu any slope from 0 to 1 agrees, and it is called a kink."""
    x = engine.Value(0.0)
    [difference] = finite_differences(x.relu())
    assert difference.is_kink
    assert [difference.verdict(slope, 0.0) for slope in (0.0, 1.0, 1.5)] == [1, 1, -1]


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
    assert all(found.verdict(found.leaf.grad, root.data) == 1 for found in finite_differences(root))


def test_a_node_made_by_hand_cannot_be_run_again(engine):
    """What a hand-made node computes is not known, so there is no check."""
    leaf = engine.Value(2.0)
    assert finite_differences(engine.Value(4.0, (leaf,), local_grads=(2.0,))) is None
