"""How exact the kernels are: vector functions to 2 ulp, from tiny numbers to where functions saturate."""

import math

import numpy as np
import pytest
from running_programs import KERNELS, eager, make, program_of, run

from gradwalk import ops
from gradwalk.compiler.program import View

pytestmark = pytest.mark.parametrize("kernels", KERNELS)


def ulps(function, oracle, xs):
    """The largest error of a kernel in units in the last place of the true result."""
    import mpmath

    worst = 0.0
    with mpmath.workprec(200):
        for x, y in zip(xs, function, strict=True):
            true = oracle(mpmath.mpf(float(x)))
            if true == 0 or abs(true) < 1e-300:
                continue
            worst = max(worst, float(abs(mpmath.mpf(float(y)) - true)) / math.ulp(abs(float(true))))
    return worst


@pytest.mark.parametrize("n", [2.0, 3.0, 0.5, 1.5, -1.0, -2.0, -0.5, -1.5])
def test_vector_powers_are_accurate(kernels, n):
    """To 2 ulp."""
    pytest.importorskip("mpmath")
    generator = np.random.default_rng(0)
    xs = np.concatenate([generator.uniform(0.1, 10.0, 3000), np.exp(generator.uniform(-100.0, 100.0, 1000))])
    count = len(xs)
    program = program_of(count, lambda add: add("pow_number", 1, count, View(1, count, 0, count, 1), parameters=(n,)))
    executor, out = make(program, kernels=kernels), np.empty(count)
    assert executor.run(xs)
    executor.outputs(out)
    assert ulps(out, lambda x: x**n, xs) <= 2.0


def wide_numbers(name, place):
    """From tiny to where functions saturate, moved into the domain of the op's input at that place."""
    generator = np.random.default_rng(place)
    xs = np.exp(generator.uniform(-30.0, 6.0, 300)) * generator.choice([-1.0, 1.0], 300)
    xs = np.concatenate([xs, generator.uniform(-40.0, 40.0, 300), [20.0, -20.0, 37.0, -37.0, 300.0, -300.0]])
    if name in ("log", "log2", "log10", "sqrt", "lgamma") or (name in ("pow", "pow_number") and place == 0):
        return np.abs(xs)
    if name == "log1p":
        return np.maximum(xs, np.expm1(-np.abs(xs)) * 0.999)
    if name in ("asin", "acos", "atanh"):
        return np.tanh(xs) * 0.999999
    if name == "acosh":
        return 1.0 + np.abs(xs)
    return np.clip(xs, -9.0, 9.0) if name == "pow" else xs


@pytest.mark.parametrize("name", sorted(ops.OPS))
def test_rows_keep_their_digits_on_wide_and_saturated_inputs(kernels, name):
    """Values and gradients are the eager engine's to a few ulp each, also where tanh is 1 and sigmoid 0."""
    op = ops.OPS[name]
    inputs = [wide_numbers(name, place) for place in range(len(op.inputs))]
    sample = op.samples[0] if isinstance(op.samples[0], tuple) else (op.samples[0],)
    parameters, count = tuple(sample[len(op.inputs) :]), len(inputs[0])
    views = [View(1, count, place * count, count, 1) for place in range(len(inputs))]
    program = program_of(len(inputs) * count, lambda add: add(name, 1, count, *views, parameters=parameters))
    given = np.concatenate(inputs).tolist()
    outputs, gradients = eager(program, given, [1.0] * count)
    actual = run(make(program, kernels=kernels), program, given, [1.0] * count)
    np.testing.assert_allclose(actual[0], outputs, rtol=2e-15, atol=1e-300)
    np.testing.assert_allclose(actual[1], gradients, rtol=2e-15, atol=1e-300)


@pytest.mark.parametrize("op", ["exp", "log", "tanh", "sigmoid", "sin", "cos"])
def test_vector_functions_are_accurate(kernels, op):
    """To 2 ulp over the whole range, and everything at the edges."""
    mpmath = pytest.importorskip("mpmath")
    generator = np.random.default_rng(0)
    wide = generator.uniform(-700.0, 700.0, 2000)
    near = generator.uniform(-3.0, 3.0, 4000)
    small = np.exp(generator.uniform(-40.0, 1.0, 2000)) * generator.choice([-1.0, 1.0], 2000)
    xs = np.concatenate([wide, near, small])
    if op in ("sin", "cos"):
        turns = np.arange(-200, 200) * (math.pi / 2)  # as near to a zero as a double comes
        xs = np.concatenate([xs, wide * 700.0, wide * 1e6, turns])
    if op == "log":
        xs = np.concatenate([np.exp(wide), 1.0 + small[np.abs(small) < 0.9], np.abs(near), [5e-324, 1e-310]])
    count = len(xs)
    program = program_of(count, lambda add: add(op, 1, count, View(1, count, 0, count, 1)))
    executor, out = make(program, kernels=kernels), np.empty(count)
    executor.run(xs)
    executor.outputs(out)
    oracle = {"sigmoid": lambda x: 1 / (1 + mpmath.exp(-x))}.get(op) or getattr(mpmath, op)
    assert ulps(out, oracle, xs) <= 2.0


@pytest.mark.parametrize(
    ("op", "given"),
    [
        ("exp", [-math.inf, math.inf, math.nan, -746.0, -745.0, 709.7, 0.0, -0.0]),
        ("log", [0.0, math.inf, math.nan, -1.0, 1.0, 5e-324, 2.2250738585072014e-308]),
        ("tanh", [-math.inf, math.inf, math.nan, 0.0, -0.0, 5e-324, 30.0, -30.0]),
        ("sin", [0.0, -0.0, 5e-324, math.pi, 1e300, 524287.0, -1.0]),
        ("cos", [0.0, -0.0, 5e-324, math.pi, 1e300, 524287.0, -1.0]),
    ],
)
def test_vector_functions_at_the_edges(kernels, op, given):
    """As NumPy has them."""
    count = len(given)
    program = program_of(count, lambda add: add(op, 1, count, View(1, count, 0, count, 1)))
    executor, out = make(program, kernels=kernels), np.empty(count)
    executor.run(np.array(given))
    executor.outputs(out)
    with np.errstate(all="ignore"):
        expected = getattr(np, op)(np.array(given))
    np.testing.assert_allclose(out, expected, rtol=4e-16, atol=0.0)
    assert np.signbit(expected[~np.isnan(expected)]).tolist() == np.signbit(out[~np.isnan(expected)]).tolist()
