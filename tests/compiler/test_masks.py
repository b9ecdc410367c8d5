"""Causal masks: what a program computes besides, because the whole matrix product is faster, reaches no result."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from running_programs import make, slot_array

import gradwalk
from gradwalk import Value, softmax
from gradwalk.compiler.program import Instruction, Program, View

POSITIONS, SIZE = 11, 4  # more than eight rows: some of them go side by side
Matrix = list[list[Value]]


def exponentials(scores: list[Value]) -> list[Value]:
    made = [score.exp() for score in scores]
    total = sum(made)
    return [each / total for each in made]


def attended(queries: Any, keys: Any, values: Any, weighed: Callable[[Any], Any]) -> list[list[Any]]:
    rows = []
    for place, query in enumerate(queries):
        scores = [sum(a * b for a, b in zip(query, key, strict=True)) / 2.0 for key in keys[: place + 1]]
        shares = weighed(scores)
        rows.append([sum(shares[t] * values[t][j] for t in range(place + 1)) for j in range(SIZE)])
    return rows


def matrices(seed: int = 0) -> tuple[Matrix, Matrix, Matrix]:
    rng = random.Random(seed)
    return tuple([[Value(rng.gauss(0.0, 1.0)) for _ in range(SIZE)] for _ in range(POSITIONS)] for _ in range(3))  # type: ignore[return-value]


def results_and_gradients(function: Callable[[], list[Value]], leaves: list[Value]) -> list[float]:
    outputs = function()
    for leaf in leaves:
        leaf.grad = 0.0
    for output in outputs[::3]:
        output.backward()
    return [output.data for output in outputs] + [leaf.grad for leaf in leaves]


def assert_same(made: list[float], expected: list[float]) -> None:
    np.testing.assert_allclose(made, expected, rtol=1e-11, atol=1e-13)


WEIGHED = pytest.mark.parametrize("weighed", [softmax, exponentials], ids=["softmax", "scalars"])


@WEIGHED
def test_masked_attention_is_two_products(weighed: Any) -> None:
    """And its results and gradients are those of the plain function."""
    q, k, v = matrices()
    leaves = [leaf for matrix in (q, k, v) for row in matrix for leaf in row]

    def function() -> list[Value]:
        return [entry for row in attended(q, k, v, weighed) for entry in row]

    compiled = gradwalk.compile(function)
    assert_same(results_and_gradients(compiled, leaves), results_and_gradients(function, leaves))
    ops = [each.op for each in compiled.program.instructions]
    assert (ops.count("matmul"), ops.count("dot"), ops.count("softmax")) == (2, 0, int(weighed is softmax))


def test_what_is_masked_is_read_by_strides() -> None:
    """Entry by entry, in whatever rows: over several heads, one division, whose sides need no table."""
    model = gradwalk.nn.GPT(vocab_size=27, n_embd=8, n_head=2, block_size=8, seed=1)
    compiled = gradwalk.compile(model.loss)
    compiled.backward([26, 0, 1, 2, 3, 4, 26])
    (division,) = (each for each in compiled.program.instructions if each.op == "div")
    assert (division.rows, division.columns) == (2, 36)
    assert all(view.index is None for view in division.operands)


@WEIGHED
@pytest.mark.parametrize(
    "large", [{"v": math.inf}, {"v": math.nan}, {"v": 1e308}, {"q": 1e200, "k": 1e200}, {"k": math.inf}], ids=str
)
def test_what_the_mask_hides_reaches_nothing(weighed: Any, large: dict[str, float]) -> None:
    """The last position is seen by itself alone: whatever it has, the others' results and gradients stay theirs."""
    q, k, v = matrices(1)
    leaves = [leaf for matrix in (q, k, v) for row in matrix for leaf in row]

    def function() -> list[Value]:
        return [entry for row in attended(q, k, v, weighed) for entry in row]

    compiled = gradwalk.compile(function)
    compiled()
    v[-1][1].data = large.get("v", v[-1][1].data)
    k[-1][0].data = large.get("k", k[-1][0].data)
    if "q" in large:
        q[0][0].data, q[-1][0].data = large["q"], 1e-200
        k[0][0].data = 1e-200
    with gradwalk.ieee():
        expected = results_and_gradients(function, leaves)
        assert math.isfinite(sum(expected[: SIZE * (POSITIONS - 1)]))
        assert_same(results_and_gradients(compiled, leaves), expected)
    try:
        expected = results_and_gradients(function, leaves)
    except ArithmeticError as error:
        with pytest.raises(type(error)):
            compiled()
    else:
        assert_same(results_and_gradients(compiled, leaves), expected)


@WEIGHED
def test_masked_attention_over_a_batch(weighed: Any) -> None:
    _, k, v = matrices(2)
    rng = random.Random(3)

    def function(queries: Any) -> Any:
        rows = attended(queries, k, v, weighed)
        return sum((entry.relu() for row in rows for entry in row), Value(0.0))

    inputs = [[[rng.gauss(0.0, 1.0) for _ in range(SIZE)] for _ in range(POSITIONS)] for _ in range(11)]
    compiled = gradwalk.compile(function)
    made = [value.data for value in compiled.map([(each,) for each in inputs])]
    assert_same(made, [function([[Value(x) for x in row] for row in each]).data for each in inputs])


@WEIGHED
def test_a_branch_on_what_is_masked(weighed: Any) -> None:
    """Guards behind rows of different lengths hold, or do not, as in the plain function."""
    q, k, v = matrices(4)

    def function(x: Value) -> Value:
        rows = attended([[x * entry for entry in row] for row in q], k, v, weighed)
        return rows[-1][0] * 2.0 if rows[-2][1] > rows[3][2] else rows[-1][1]

    compiled = gradwalk.compile(function)
    for x in np.linspace(-3.0, 3.0, 25).tolist():
        assert_same([compiled(Value(x)).data], [function(Value(x)).data])


@pytest.mark.parametrize("used", range(1, 64))
def test_parts_of_rows_that_are_used_and_scaled(used: int) -> None:
    """Two rows of three, of which any entries are used: what nobody uses is no hole to read beyond."""

    def function(xs: list[Any]) -> Any:
        rows = [*gradwalk.log_softmax(xs[:3]), *gradwalk.log_softmax(xs[3:])]
        return sum((row * 2.0 for place, row in enumerate(rows) if used >> place & 1), Value(0.0)) + xs[0]

    compiled, xs = gradwalk.compile(function), [0.5, -1.0, 2.0, 0.25, 0.75, -0.5]
    value, gradient = gradwalk.value_and_grad(function)(xs)
    assert_same([value, *gradient], [compiled.value_and_grad(xs)[0], *compiled.value_and_grad(xs)[1]])


@pytest.mark.parametrize(("op", "columns"), [("sum", 1), ("logsumexp", 1), ("neg", 2), ("dot", 1)])
def test_only_rows_that_stay_rows_have_lengths(op: str, columns: int) -> None:
    views = (View(1, 2, 0, 0, 1),) * (2 if op == "dot" else 1)
    instruction = Instruction(op, 2, 1, columns, views, (), slot_array([1]))
    with pytest.raises(ValueError, match="expected other operands for op"):
        make(Program(4, np.zeros(4), slot_array([0, 1]), slot_array([2]), (instruction,)))
