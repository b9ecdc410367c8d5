"""Many inputs of one compiled function in one pass."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from comparing import close

import gradwalk
from gradwalk.compiler.compile import compile
from gradwalk.control import changed, no_grad
from gradwalk.engine import gradients_of

weight, other = gradwalk.Value(0.7), gradwalk.Value(-0.2)
WEIGHTS = [gradwalk.Value(0.3 * (i % 5) - 0.5) for i in range(20)]
BATCH: list[tuple[list[float], int]] = [([0.1 * i, 0.5 - i], i % 3) for i in range(-4, 9)] + [([1.0, 2.0, 3.0], 1)]


def branching(xs: Any, n: int) -> Any:
    return sum(gradwalk.tanh(weight * x) for x in xs) * n if xs[0] > 0.0 else weight * xs[1] + other


def one_at_a_time() -> tuple[list[float], list[list[float]]]:
    """The values and the gradients by both parameters, from the plain function."""
    alone = [branching([gradwalk.Value(x) for x in xs], n) for xs, n in BATCH]
    return [out.data for out in alone], [gradients_of(out, [weight, other]) for out in alone]


def test_a_batch_equals_one_at_a_time() -> None:
    values, gradients = one_at_a_time()
    weight.grad = other.grad = 0.0
    together = compile(branching).map(BATCH)
    sum(out * (i + 1.0) for i, out in enumerate(together)).backward()
    expected = [sum((i + 1.0) * row[column] for i, row in enumerate(gradients)) for column in (0, 1)]
    assert close(values, [out.data for out in together])
    assert close(expected, [weight.grad, other.grad])


def test_gradients_of_a_batch_are_summed_into_the_leaves() -> None:
    values, gradients = one_at_a_time()
    weight.grad, other.grad = 10.0, 0.0
    assert close(values, compile(branching).map_backward(BATCH))
    assert close([10.0 + sum(row[0] for row in gradients), sum(row[1] for row in gradients)], [weight.grad, other.grad])


def test_gradients_of_a_batch_for_each_example() -> None:
    """In the order that was asked for, without touching anybody's gradient."""
    values, gradients = one_at_a_time()
    weight.grad, stranger = 5.0, gradwalk.Value(1.0)
    found, rows = compile(branching).map_gradients(BATCH, [other, stranger, weight])
    assert close(values, found)
    assert close([x for by_weight, by_other in gradients for x in (by_other, 0.0, by_weight)], rows.ravel().tolist())
    assert (weight.grad, stranger.grad) == (5.0, 0.0)


def by_products(xs: list[float]) -> Any:
    """Rows of weights in a matrix product; among the leaves, some that other operations read, too."""
    rows = [[WEIGHTS[4 * i + k] for k in range(4)] for i in range(4)]
    made = [sum(w * x for w, x in zip(row, xs, strict=True)) for row in rows]
    return sum(gradwalk.tanh(m) for m in made) + WEIGHTS[5] * WEIGHTS[17] + WEIGHTS[18] ** 2


def with_a_leaf(xs: list[float]) -> Any:
    return by_products(xs), WEIGHTS[3], WEIGHTS[19]


@pytest.mark.parametrize("count", [1, 8, 12, 64, 71])
@pytest.mark.parametrize("function", [by_products, with_a_leaf], ids=["products", "and a leaf"])
def test_leaves_of_products_and_of_others(function: Any, count: int) -> None:
    """Totals of products, what is added for each example, and what is a result itself: each comes once."""
    batch = [([0.1 * i, 0.5 - 0.01 * i, -0.3, 0.02 * i],) for i in range(count)]
    results = [result if isinstance(result, tuple) else (result,) for (xs,) in batch for result in [function(xs)]]
    every = [value for result in results for value in result]
    expected = gradients_of(sum(every), WEIGHTS)
    for leaf in WEIGHTS:
        leaf.grad = 0.0
    compiled = compile(function)
    made = compiled.map(batch)
    flat = [value for result in made for value in (result if isinstance(result, tuple) else (result,))]
    sum(flat).backward()
    assert close([value.data for value in every], [value.data for value in flat])
    assert close(expected, [leaf.grad for leaf in WEIGHTS])
    if function is by_products:
        for leaf in WEIGHTS:
            leaf.grad = 0.0
        for _ in range(2):
            compiled.map_backward(batch)
        assert close([2.0 * gradient for gradient in expected], [leaf.grad for leaf in WEIGHTS])


def test_a_product_with_constants_is_the_same_for_all_examples() -> None:
    rows = [[0.1 * i - 0.3 * j for i in range(6)] for j in range(8)]

    def function(xs: list[Any]) -> Any:
        return sum(gradwalk.tanh(gradwalk.dot(row, [weight * x for x in xs])) for row in rows)

    batch = [([0.1 * k - 0.05 * i for i in range(6)],) for k in range(20)]
    every = [function(*given) for given in batch]
    expected = gradients_of(sum(every), [weight])
    weight.grad = 0.0
    assert close([value.data for value in every], compile(function).map_backward(batch))
    assert close(expected, [weight.grad])


def test_a_batch_of_a_function_without_arguments() -> None:
    square = compile(lambda: weight * weight)
    weight.grad = 0.0
    assert square.map_backward([(), (), ()]) == [weight.data**2] * 3
    assert close([6.0 * weight.data], [weight.grad])


def test_a_batch_that_begins_with_another_program_than_the_last() -> None:
    """An integer that picks from a list is fixed: each has a program of its own."""
    picked = compile(lambda x, n: x * [weight, weight * other][n])
    expected = {0: weight.data, 1: weight.data * other.data}
    for first in (0, 1, 1, 0):
        numbers = [(1.0, first), (2.0, 1 - first), (3.0, first)]
        assert close([x * expected[n] for x, n in numbers], [out.data for out in picked.map(numbers)])
        assert close([x * expected[n] for x, n in numbers], picked.map_backward(numbers))
        assert close([x * expected[n] for x, n in numbers], picked.map_gradients(numbers, [weight])[0])


def test_each_operation_of_a_watched_batch_is_seen() -> None:
    grown = compile(lambda x: gradwalk.exp(x) * weight)
    assert len(grown.map([1.0, 2.0])) == 2
    seen: list[str] = []
    with gradwalk.detect_nonfinite(), changed(on_record=lambda node: seen.append(node._op)):
        grown.map([1.0, 2.0])
    assert seen.count("exp") == 2


def test_a_batch_with_values_among_the_inputs() -> None:
    x = gradwalk.Value(2.0)
    weight.grad = 0.0
    scaled = compile(lambda x: weight * x)
    assert scaled.map_backward([x, 3.0]) == [1.4, 2.0999999999999996]
    assert (x.grad, weight.grad) == (0.7, 5.0)
    assert scaled.map_gradients([x, 3.0], [weight])[1].tolist() == [[2.0], [3.0]]


def test_a_batch_remembers_the_leaves_of_its_call() -> None:
    weight = gradwalk.Value(3.0)
    first, second = compile(lambda x: weight * weight * x).map([1.0, 2.0])
    weight.data = 100.0
    (first + second).backward()
    assert weight.grad == 18.0


@pytest.mark.parametrize(("row", "expected"), [(0, 1.0), (1, 1.5)])
def test_an_infinite_gradient_in_one_row_is_not_the_others(row: int, expected: float) -> None:
    """Going back from one result leaves the other rows out of it, and does not multiply them by 0."""
    scale = gradwalk.Value(1.0)
    results = compile(lambda x: gradwalk.sqrt(x * scale)).map([4.0, 9.0, 0.0])
    results[row].backward()
    assert expected == scale.grad


def test_a_batch_under_no_grad_is_numbers() -> None:
    with no_grad():
        assert compile(lambda xs: sum(x * x for x in xs)).map([[1.0, 2.0], [3.0, 4.0]]) == [5.0, 25.0]


def test_a_refused_number_in_a_batch_raises() -> None:
    with pytest.raises(gradwalk.DomainError):
        compile(lambda x: gradwalk.log(x)).map([1.0, 2.0, -1.0])


AFTER_SOMEBODY_ELSE = """
import struct
import numpy as np
import gradwalk

rng = np.random.default_rng(1)
data, point = rng.normal(size=(40, 100)), rng.normal(size=100)
rows = data.tolist()

def loss(x):
    return sum(gradwalk.softplus(sum(a * b for a, b in zip(row, x))) for row in rows)

hessian, share = gradwalk.hessian(gradwalk.compile(loss)), 1 / (1 + np.exp(-data @ point))
# as large as what a batch keeps of its memory, and with what would be the address of shared numbers in it
left = [struct.pack("<5q", 0, 0, 1 << 40, 8, i) for i in range(50_000)]
del left
print(np.allclose(hessian(point), data.T @ (data * (share * (1 - share))[:, None])))
"""


GIVEN = [np.array([3, 4]).astype(kind) for kind in ("f2", "f4", ">f8", "g", "i1", "u8", "?", object)]
GIVEN += [np.array(3.0, "g"), np.array(3), np.array([np.longdouble(3), Fraction(1, 3)])]
ALONE = [kind(3) for kind in (np.float16, np.longdouble, np.int8, np.uint64, np.int64, Fraction, bool)] + [10**400]


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(
    "given", [*GIVEN, *ALONE, [np.longdouble(3), 2]], ids=lambda given: f"{type(given).__name__} {given}"[:30]
)
def test_whatever_counts_as_a_number_is_that_number_in_a_batch(given: Any, exact: bool) -> None:
    """Numbers of long doubles were whatever lay in memory."""
    first = (lambda a: a) if np.shape(given) == () else (lambda a: a[0])
    compiled = compile(lambda x, a: weight * x * (first(a) % 7), exact=exact)
    alone = compiled(2.0, given).data
    assert [float(value.data) for value in compiled.map([(2.0, given)] * 3)] == [alone] * 3
    assert compiled.map_backward([(2.0, given)] * 3) == [alone] * 3
    assert compiled.map_gradients([(2.0, given)], [weight])[0] == [alone]


def test_an_integer_beyond_all_floats_among_others() -> None:
    compiled = compile(lambda x, n: x * (n % 7))
    batch = [(2.0, 3), (2.0, 10**400), (3.0, 10), (2.0, 5)]
    for _ in range(2):
        assert [value.data for value in compiled.map(batch)] == [2.0 * 3, 2.0 * (10**400 % 7), 3.0 * 3, 2.0 * 5]


def test_memory_that_was_somebody_elses() -> None:
    """What a batch keeps of its memory starts empty, whatever lay there before."""
    command = [sys.executable, "-c", AFTER_SOMEBODY_ELSE]
    environment = os.environ | {"PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


def test_which_program_was_used_before_changes_no_digit() -> None:
    """What the last one does not apply to was computed by itself, in another order of its sums."""
    w = gradwalk.Value(0.7)

    @compile
    def f(xs: Any) -> Any:
        total = sum(x * w for x in xs)
        return (total * total).tanh() if xs[0] > 0.5 else total.exp()

    rng = random.Random(1)
    for _ in range(20):
        below, above = ([start + rng.random() / 2 for _ in range(7)] for start in (0.0, 0.5))
        found = []
        for before in (below, above):
            f(before)
            found.append([value.data for value in f.map([below, above] * 3)])
        assert found[0] == found[1]
