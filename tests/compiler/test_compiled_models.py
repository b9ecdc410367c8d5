"""Whole models in plain scalar style: right answers by executor and interpreter, and exact programs to the bit."""

from __future__ import annotations

import pytest
from comparing import close, with_gradients
from models import MODELS, attention_gpt, multilayer_perceptron, scalar_gpt

import gradwalk.compiler.executors
from gradwalk.compiler.compile import compile
from gradwalk.compiler.executors import Interpreted


@pytest.mark.parametrize("name", MODELS)
def test_value_and_gradients_are_the_plain_functions(name: str) -> None:
    function, args, leaves = MODELS[name]()
    assert close(with_gradients(function, args, leaves), with_gradients(compile(function), args, leaves))


@pytest.mark.parametrize("name", MODELS)
def test_the_interpreter_agrees(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradwalk.compiler.executors, "executor_for", Interpreted)
    function, args, leaves = MODELS[name]()
    assert close(with_gradients(function, args, leaves), with_gradients(compile(function), args, leaves))


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
