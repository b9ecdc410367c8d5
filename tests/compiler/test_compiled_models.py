"""Whole models in plain scalar style: right answers by executor and interpreter, and exact programs to the bit."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from comparing import close, with_gradients
from models import MODELS, attention_gpt, multilayer_perceptron, scalar_gpt

import gradwalk
import gradwalk.compiler.executors
from gradwalk.compiler.compile import compile
from gradwalk.compiler.executors import Interpreted, executor_for


@pytest.mark.parametrize("name", MODELS)
def test_value_and_gradients_are_the_plain_functions(name: str) -> None:
    function, args, leaves = MODELS[name]()
    assert close(with_gradients(function, args, leaves), with_gradients(compile(function), args, leaves))


@pytest.mark.parametrize("name", MODELS)
def test_the_interpreter_agrees(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradwalk.compiler.executors, "executor_for", Interpreted)
    function, args, leaves = MODELS[name]()
    assert close(with_gradients(function, args, leaves), with_gradients(compile(function), args, leaves))


def test_the_interpreter_runs_products_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several heads, in one instruction."""
    monkeypatch.setattr(gradwalk.compiler.executors, "executor_for", Interpreted)
    rng = random.Random(1)
    queries, keys = ([[[rng.gauss(0, 1) for _ in range(5)] for _ in range(n)] for _ in range(3)] for n in (4, 6))

    def heads(queries: Any, keys: Any) -> Any:
        pairs = ((q, k) for head in range(3) for q in queries[head] for k in keys[head])
        return sum(sum(a * b for a, b in zip(q, k, strict=True)).tanh() for q, k in pairs)

    compiled = compile(heads)
    assert close(with_gradients(heads, (queries, keys)), with_gradients(compiled, (queries, keys)))
    assert compiled.program.instructions[0].batch == 3


def test_the_interpreter_takes_from_a_table_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradwalk.compiler.executors, "executor_for", Interpreted)
    rows = [gradwalk.Value(float(i + 1)) for i in range(3)]

    def taken(x: Any, i: int) -> Any:
        return gradwalk.take([row * x for row in rows], i) * gradwalk.take(rows, i)

    compiled = compile(taken, exact=True)
    for i in (1, 2, 0, 1):
        assert with_gradients(taken, (3.0, i), rows) == with_gradients(compiled, (3.0, i), rows)


@pytest.mark.parametrize("executor", [executor_for, Interpreted])
def test_a_batch_has_gradients_by_its_arguments(executor: Any) -> None:
    """Of each row by itself, by both executors."""
    compiled = compile(lambda x, y: x * x * y)
    compiled(1.0, 2.0)
    arguments = np.array([[1.0, 2.0], [3.0, 5.0]])
    outputs, by_argument = np.empty((2, 1)), np.empty((2, 2))
    failed = executor(compiled.program).run_batch(arguments, (), outputs, np.ones(1), by_argument)
    assert (failed, outputs.tolist(), by_argument.tolist()) == ([], [[2.0], [45.0]], [[4.0, 1.0], [30.0, 9.0]])


@pytest.mark.parametrize("executor", [executor_for, Interpreted])
def test_a_batch_without_gradients(executor: Any) -> None:
    """The numbers of every row, and which rows the program does not apply to, by both executors."""
    compiled = compile(lambda x: 2.0 * x if x > 0.0 else x)
    compiled(1.0)
    outputs = np.zeros((4, 1))
    failed = executor(compiled.program).run_batch(np.array([[1.0], [3.0], [-1.0], [5.0]]), (), outputs)
    assert (failed, outputs[[0, 1, 3], 0].tolist()) == ([2], [2.0, 6.0, 10.0])


@pytest.mark.parametrize("executor", [executor_for, Interpreted])
def test_a_batch_adds_up_the_gradients_of_its_leaves(executor: Any) -> None:
    """Whatever was in the array before, by both executors."""
    weight = gradwalk.Value(2.0)
    compiled = compile(lambda x: weight * weight * x)
    compiled(1.0)
    by_leaf = np.full(1, 7.0)
    executor(compiled.program).run_batch(
        np.array([[1.0], [3.0]]), (weight,), np.empty((2, 1)), np.ones(1), None, by_leaf
    )
    assert by_leaf.tolist() == [16.0]


@pytest.mark.parametrize("name", MODELS)
def test_exact_programs_equal_the_plain_function_to_the_bit(name: str) -> None:
    function, args, leaves = MODELS[name]()
    compiled = compile(function, exact=True)
    assert with_gradients(function, args, leaves) == with_gradients(compiled, args, leaves)


@pytest.mark.parametrize(
    ("name", "most"), [("MLP 2-16-16-1, 6 samples", 12), ("convolution as loops", 4), ("GPT with open tokens", 22)]
)
def test_loops_are_rolled_up(name: str, most: int) -> None:
    function, args, _ = MODELS[name]()
    compiled = compile(function)
    compiled(*args)
    assert len(compiled.program.instructions) <= most


def test_one_program_serves_every_token() -> None:
    """take and cross_entropy leave integers open."""
    function, (tokens,), leaves = attention_gpt()
    compiled = compile(function)
    for shift in range(5):
        args = ([(token + shift) % 11 for token in tokens],)
        assert close(with_gradients(function, args, leaves), with_gradients(compiled, args, leaves))
    assert len(compiled.programs) == 1


def test_leaves_are_read_at_each_call() -> None:
    function, args, leaves = multilayer_perceptron()
    compiled = compile(function)
    compiled(*args)
    for i, leaf in enumerate(leaves):
        leaf.data += 0.01 * (i % 7)
    assert close(with_gradients(function, args, leaves), with_gradients(compiled, args, leaves))


def test_the_scalar_gpt_is_at_most_sixty_instructions() -> None:
    """One training step at 8 positions, 4,064 parameters, in plain scalar style: 68,000 nodes."""
    function, args, leaves = scalar_gpt()
    compiled = compile(function)
    assert close(with_gradients(function, args, leaves), with_gradients(compiled, args, leaves))
    assert compiled.program.scalar_nodes > 60_000
    assert len(compiled.program.instructions) <= 60
