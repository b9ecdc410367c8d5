"""How exact the kernels are: vector functions to 2 ulp, from tiny numbers to where they saturate; at any length."""

import math

import numpy as np
import pytest
from running_programs import KERNELS, eager, make, native, program_of, run

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


VECTOR_OPS = ["neg", "relu", "exp", "log", "tanh", "sqrt", "sigmoid", "sin", "cos", "add", "sub", "mul", "div"]


@pytest.mark.parametrize("op", [*VECTOR_OPS, 2.0, 3.0, 0.5, 1.5, -1.0, -2.0, -0.5, -1.5])
def test_a_number_comes_out_the_same_among_any_others(kernels, op):
    """At any place, in a vector or behind the last whole one; and so does its gradient."""
    name, parameters = (op, ()) if isinstance(op, str) else ("pow_number", (op,))
    inputs = len(ops.OPS[name].inputs)

    def found(xs):
        n = len(xs) // inputs
        views = [View(1, n, place * n, n, 1) for place in range(inputs)]
        program = program_of(len(xs), lambda add: add(name, 1, n, *views, parameters=parameters))
        outputs, gradients = run(make(program, kernels=kernels), program, xs, np.arange(1.0, n + 1.0))
        return [outputs.tolist(), *(gradients.reshape(inputs, n) / np.arange(1.0, n + 1.0)).tolist()]

    xs = np.random.default_rng(0).uniform(0.1, 3.0, (inputs, 37))
    alone = np.column_stack([found(column) for column in xs.T])
    for n in (*range(1, 20), *range(30, 37)):
        np.testing.assert_allclose(np.array(found(xs[:, :n].ravel())), alone[:, :n], rtol=1e-15)


@pytest.mark.parametrize("op", ["relu", "neg", "sigmoid", "sqrt", "tanh", 2.0, 3.0, 0.5, 1.5])
def test_slopes_at_the_edges(kernels, op):
    """As the eager engine has them, signs of zeros too."""
    name, parameters = (op, ()) if isinstance(op, str) else ("pow_number", (op,))
    given = [5e-324, 1e-310, 1e300, math.inf] + ([] if op in ("sqrt", 0.5, 1.5) else [0.0, -0.0, -5e-324, -math.inf])
    given = [x for x in given if abs(x) < 1e50 or isinstance(op, str)]
    for x in given:
        program = program_of(1, lambda add: add(name, 1, 1, View(1, 1, 0), parameters=parameters))
        expected, executor = eager(program, [x], [1.0]), make(program, kernels=kernels)
        if executor.run(np.array([x])):
            actual = run(executor, program, [x], [1.0])
            np.testing.assert_allclose([each[0] for each in actual], [each[0] for each in expected], rtol=4e-16, atol=0)
            assert math.copysign(1.0, expected[0][0]) == math.copysign(1.0, actual[0][0])


@pytest.mark.parametrize("rows", range(1, 10))
def test_products_of_every_small_shape(kernels, rows):
    """With whole numbers, so that nothing is rounded; alone, and in a batch that shares the right side."""
    generator = np.random.default_rng(rows)
    for columns in (*range(1, 10), 15, 16, 17, 18, 25):
        for depth in (1, 2, 3, 4, 5, 8, 9):
            a, b = rows * depth, columns * depth
            views = View(rows, depth, 0, depth, 1), View(columns, depth, a, depth, 1)
            program = program_of(a + b, lambda add, views=views, columns=columns: add("matmul", rows, columns, *views))
            executor, xs = make(program, kernels=kernels), generator.integers(-9, 9, a + b).astype(float)
            seeds = generator.integers(-9, 9, rows * columns).astype(float)
            left, right, seed = xs[:a].reshape(rows, -1), xs[a:].reshape(columns, -1), seeds.reshape(rows, -1)
            outputs, gradients = run(executor, program, xs, seeds)
            assert (left @ right.T).ravel().tolist() == outputs.tolist()
            assert [*(seed @ right).ravel(), *(seed.T @ left).ravel()] == gradients.tolist()
            given, leaves = np.outer(np.arange(9.0), xs[:a]), tuple(map(native.Value, xs[a:]))
            together, by_given, by_leaf = np.empty((9, len(seeds))), np.empty((9, a)), np.empty(b)
            assert executor.run_batch(given, leaves, together, seeds, by_given, by_leaf) == []
            assert np.outer(np.arange(9.0), outputs).tolist() == together.tolist()
            assert [gradients[:a].tolist()] * 9 == by_given.tolist()
            assert (36.0 * gradients[a:]).tolist() == by_leaf.tolist()
