"""A softmax that was written out is one instruction, and says what its parts said."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from comparing import close, executed_numbers, program_numbers, with_gradients

import gradwalk
from gradwalk import Value, exp, stop_gradient
from gradwalk.composites import maximum

SHIFTS: dict[str, Callable[[Any], Any]] = {
    "stopped": lambda xs: stop_gradient(maximum(xs)),
    "of stopped": lambda xs: maximum([stop_gradient(x) for x in xs]),
    "with a gradient": maximum,
    "another": lambda xs: stop_gradient(xs[0]),
    "of others": lambda xs: stop_gradient(maximum([*xs, 2.0 * xs[0]])),
}
KNOWN = ("stopped", "of stopped")


def softmax(xs: Any, shift: Callable[[Any], Any] = SHIFTS["stopped"]) -> list[Any]:
    top = shift(xs)
    exponentials = [exp(x - top) for x in xs]
    total = sum(exponentials)
    return [each / total for each in exponentials]


def ops(compiled: Any, *args: Any) -> list[str]:
    return [instruction.op for instruction in compiled.version_for(args, "test").program.instructions]


def same_as_plain(function: Callable[..., Any], values: list[Value], *args: Any) -> Any:
    """The compiled function, once it and its gradient have been found to be those of the plain one."""
    compiled = gradwalk.compile(function)
    compiled(*args)
    assert close(with_gradients(function, args, values), with_gradients(compiled, args, values))
    return compiled


def row(*numbers: float) -> list[Value]:
    return [Value(number) for number in numbers]


@pytest.mark.parametrize("shift", SHIFTS)
def test_it_is_one_instruction_where_it_is_shifted_by_its_largest(shift: str) -> None:
    xs = row(0.5, -1.0, 2.0, 0.25, 1.0)
    compiled = same_as_plain(lambda: gradwalk.dot(softmax(xs, SHIFTS[shift]), [1.0, 2.0, 3.0, 4.0, 5.0]), xs)
    assert ("softmax" in ops(compiled)) == (shift in KNOWN)
    assert ("exp" in ops(compiled)) == (shift not in KNOWN)


def test_masked_attention_in_scalars_is_five_instructions() -> None:
    queries, keys, values = ([row(*(math.sin(i + 3 * j + k) for j in range(4))) for i in range(8)] for k in range(3))

    def attention() -> Any:
        out = []
        for place, query in enumerate(queries):
            scores = [sum(q * k for q, k in zip(query, key, strict=True)) / 2.0 for key in keys[: place + 1]]
            weights = softmax(scores)
            out += [sum(w * v[j] for w, v in zip(weights, values, strict=False)) for j in range(4)]
        return sum(x * x for x in out)

    leaves = [each for matrix in (queries, keys, values) for vector in matrix for each in vector]
    assert ops(same_as_plain(attention, leaves)) == ["matmul", "div", "softmax", "matmul", "dot"]


@pytest.mark.parametrize("also", ["exponential", "total", "in another sum"])
def test_parts_that_somebody_else_needs_stay_parts(also: str) -> None:
    xs = row(0.5, -1.0, 2.0)

    def function() -> Any:
        top = stop_gradient(maximum(xs))
        exponentials = [exp(x - top) for x in xs]
        total = sum(exponentials)
        more = {"exponential": exponentials[0], "total": total, "in another sum": sum(exponentials[:2])}[also]
        return exponentials[0] / total + 2.0 * (exponentials[2] / total) + more

    assert "softmax" not in ops(same_as_plain(function, xs))


def test_an_exponential_over_another_ones_total_is_no_entry() -> None:
    xs, ys = row(0.5, -1.0, 2.0), row(1.0, 1.5, -2.0)

    def function() -> Any:
        both = [[exp(x - stop_gradient(maximum(each))) for x in each] for each in (xs, ys)]
        return sum(x / sum(both[1]) for x in both[0]) + sum(2.0 * (y / sum(both[0])) for y in both[1])

    assert "softmax" not in ops(same_as_plain(function, xs + ys))


def test_an_entry_that_is_there_twice_counts_twice() -> None:
    xs = row(0.5, -1.0)
    same_as_plain(lambda: gradwalk.dot(softmax([*xs, xs[0]]), [1.0, 2.0, 5.0]), xs)


@pytest.mark.parametrize("numbers", [(math.inf, 1.0), (1.0, -math.inf), (math.nan, 1.0), (-math.inf, -math.inf)])
def test_infinite_entries_make_what_the_parts_make(numbers: tuple[float, ...]) -> None:
    compiled = gradwalk.compile(lambda xs: softmax(xs)[1] * 1.0)
    assert "softmax" in ops(compiled, [0.5, 1.0])
    plain, replayed = softmax(row(*numbers))[1].data, compiled(row(*numbers)).data
    assert plain == replayed or (math.isnan(plain) and math.isnan(replayed))


def test_a_row_of_which_guards_need_the_rest_is_made_once() -> None:
    def surprise(xs: Any) -> Any:
        probabilities = softmax(xs)
        return -gradwalk.log(probabilities[0]) if probabilities[0] < 0.5 or probabilities[1] > 0.1 else xs[0]

    compiled = gradwalk.compile(surprise)
    assert ops(compiled, [0.5, 1.0, 2.0]).count("softmax") == 1
    assert close([compiled(row(0.25, 1.0, 2.0)).data], [surprise(row(0.25, 1.0, 2.0)).data])


def test_entries_that_nobody_uses_cost_nothing() -> None:
    """The plain function divides there, too, but by 1 or more: no guard has to look whether it still would."""
    compiled = gradwalk.compile(lambda xs: -gradwalk.log(softmax(xs)[1]))
    program = compiled.version_for(([0.5, 1.0, 2.0],), "test").program
    assert [instruction.op for instruction in program.instructions] == ["softmax", "log", "neg"]
    assert all(guard.left == guard.right for guard in program.guards)
    xs = row(0.25, 1.0, 2.0)
    assert close([compiled(xs).data], [-math.log(softmax(xs)[1].data)])


def test_a_very_wide_one_stays_parts() -> None:
    """Each of its entries has the whole row, so that it would be a thousand times as large."""
    compiled = gradwalk.compile(lambda xs: gradwalk.norm(softmax(xs)))
    assert "softmax" not in ops(compiled, [math.sin(i) for i in range(1000)])


LARGE = {
    "logarithm": gradwalk.logsumexp,
    "row": lambda xs: gradwalk.dot(gradwalk.softmax(xs), [1.0, 2.0, 4.0]),
    "target": lambda xs: gradwalk.cross_entropy(xs, 2),
}


@pytest.mark.parametrize("function", LARGE.values(), ids=LARGE)
@pytest.mark.parametrize("xs", [[0.0, 1000.0, -1000.0], [-1000.0, -1001.0, -3000.0]], ids=["large", "small"])
def test_exponentials_that_no_float_is_large_or_small_enough_for(function: Any, xs: list[float]) -> None:
    """By both executors: only their quotients are needed."""
    value, gradient = gradwalk.value_and_grad(function)(xs)
    compiled = gradwalk.compile(function)
    compiled(xs)
    for numbers in (program_numbers, executed_numbers):
        assert close([value, *gradient], numbers(compiled.program, xs))
