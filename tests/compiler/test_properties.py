"""Random graphs and random programs with branches: what is compiled equals what is not."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from comparing import close, executed_numbers, program_numbers, with_gradients
from flats import flat_of
from hypothesis import given, settings
from hypothesis import strategies as st

import gradwalk
from gradwalk.compiler.compile import compile
from gradwalk.compiler.constants import with_folded_constants, with_shared_constants, without_identities
from gradwalk.compiler.dead_code import without_dead_code
from gradwalk.compiler.flat import Flat
from gradwalk.compiler.levels import levels
from gradwalk.compiler.rolling import rolled_up, step_by_step
from gradwalk.compiler.subexpressions import with_shared_subexpressions
from gradwalk.compiler.sums import with_fused_sums, without_lonely

INPUTS = 5
UNARY = ("tanh", "sin", "cos", "sigmoid", "neg", "abs", "relu", "stop_gradient", "atan")
BINARY = ("add", "add", "add", "mul", "mul", "sub", "minimum", "maximum")
PASSES = {
    "dead code": without_dead_code,
    "shared constants": with_shared_constants,
    "folded constants": with_folded_constants,
    "identities": without_identities,
    "subexpressions": with_shared_subexpressions,
    "sums": with_fused_sums,
    "lonely": lambda flat: without_lonely(flat, levels(flat)),
}


LARGEST = 3.0  # no number in a random graph is larger: beyond, rounding alone moves what sin and tanh make of it


def random_flat(seed: int, nodes: int = 60) -> Flat:
    """Shared nodes, aliases (a + a), constants, dead ends and long sums."""
    rng = random.Random(seed)
    made: list[tuple[Any, ...]] = []
    bounds = [1.0] * INPUTS
    for _ in range(nodes):
        count = INPUTS + len(made)
        recent = [rng.randrange(max(0, count - 12), count) for _ in range(4)]
        node = _random_node(rng, recent)
        if node[0] == "constant":
            bound = 1.5
        else:
            children = [bounds[child] for child in node[1:] if isinstance(child, int)]
            bound = _bound(node[0], children)
            if bound > LARGEST:
                node, bound = ("sin", recent[0]), 1.0
        made.append(node)
        bounds.append(bound)
    last = INPUTS + nodes - 1
    made.append(("tanh", last))
    return flat_of(made, inputs=INPUTS, outputs=[last + 1, last - 3])


def _random_node(rng: random.Random, recent: list[int]) -> tuple[Any, ...]:
    kind = rng.random()
    if kind < 0.1:
        return "constant", rng.choice([0.0, 1.0, -1.5, 0.5])
    if kind < 0.35:
        return rng.choice(UNARY), recent[0]
    if kind < 0.85:
        return rng.choice(BINARY), recent[0], rng.choice(recent)
    if kind < 0.9:
        return "sum", *recent[: rng.randint(1, 4)]
    if kind < 0.95:
        return "softmax", *recent, (float(rng.randrange(4)), 0.0)
    return rng.choice(("mean", "logsumexp", "largest", "dot")), *recent


def _bound(name: str, children: list[float]) -> float:
    """What the node's number cannot exceed."""
    if name in ("tanh", "sin", "cos", "sigmoid", "softmax", "atan"):
        return 1.6
    if name in ("add", "sub", "sum"):
        return sum(children)
    if name == "mul":
        return children[0] * children[1]
    if name == "dot":
        return children[0] * children[2] + children[1] * children[3]
    return max(children) + (math.log(4.0) if name == "logsumexp" else 0.0)


@pytest.mark.parametrize("name", PASSES)
@settings(max_examples=40, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6))
def test_a_pass_preserves_values_and_gradients(name: str, seed: int) -> None:
    flat = random_flat(seed)
    numbers = np.random.default_rng(seed).uniform(-1, 1, INPUTS).tolist()
    expected = program_numbers(step_by_step(flat), numbers)
    assert close(expected, program_numbers(step_by_step(PASSES[name](flat)), numbers))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6))
def test_all_passes_preserve_values_and_gradients(seed: int) -> None:
    flat = random_flat(seed)
    numbers = np.random.default_rng(seed).uniform(-1, 1, INPUTS).tolist()
    expected, program = program_numbers(step_by_step(flat), numbers), rolled_up(flat)
    assert close(expected, program_numbers(program, numbers))
    assert close(expected, executed_numbers(program, numbers))
    assert expected == executed_numbers(step_by_step(flat), numbers)


def branching(seed: int) -> Any:
    """A random function that compares what it computed, and goes on differently."""
    rng = random.Random(seed)
    plan = [(rng.randrange(5), rng.random(), rng.random(), rng.uniform(-0.5, 0.5)) for _ in range(25)]

    def function(xs: list[Any], count: int) -> Any:
        pool = list(xs)
        for kind, a, b, threshold in plan:
            left, right = pool[int(a * len(pool))], pool[int(b * len(pool))]
            if kind == 0:
                pool.append(left * right * 3.0 if left > threshold else (left - right) * 2.5)
            elif kind == 1:
                pool.append(gradwalk.tanh(left) if left <= right else gradwalk.sin(right))
            elif kind == 2:
                pool.append(sum(x * y for x, y in zip(pool[-3:], pool[:3], strict=True)) * 2.0)
            elif kind == 3:
                for _ in range(count):
                    left = left * 0.5 + right * 0.5
                pool.append(left)
            else:
                pool.append(max(left, right) * count * 1.5)
        return gradwalk.tanh(sum(pool[-5:]) * 0.7)

    return function


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6))
@pytest.mark.filterwarnings("ignore:compile")
def test_a_compiled_function_with_branches_equals_the_plain_one_on_every_input(seed: int) -> None:
    function = branching(seed)
    compiled = compile(function)
    rng = random.Random(seed + 1)
    for _ in range(12):
        args = [rng.uniform(-1, 1) for _ in range(4)], rng.randrange(3)
        assert close(with_gradients(function, args), with_gradients(compiled, args))


@settings(max_examples=30, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6))
@pytest.mark.filterwarnings("ignore:compile")
def test_exact_programs_are_equal_to_the_bit(seed: int) -> None:
    function = branching(seed)
    compiled = compile(function, exact=True)
    rng = random.Random(seed + 1)
    for _ in range(4):
        args = [rng.uniform(-1, 1) for _ in range(4)], rng.randrange(3)
        assert with_gradients(function, args) == with_gradients(compiled, args)


def path(x: Any, v: Any) -> list[Any]:
    """Each number is made of those before."""
    states = [x]
    for _ in range(6):
        pull = -x * x * x * 0.3 - 0.1 * v
        v = v + 0.1 * pull
        x = x + 0.1 * v + 0.005 * pull * x
        states.append(x)
    return states


SUMMED = {  # whether to the bit: what is made of the results is added before what goes on inside
    "backwards": (lambda xs: sum(x * x for x in xs[::-1]), True),
    "at once": (gradwalk.mean, True),
    "in order": (lambda xs: sum(x * x for x in xs), False),
}


@pytest.mark.parametrize(("summed", "to_the_bit"), SUMMED.values(), ids=SUMMED)
def test_exact_programs_of_several_results_that_are_made_of_each_other(summed: Any, to_the_bit: bool) -> None:
    compiled, rng, differ = compile(path, exact=True), random.Random(1), 0
    for _ in range(50):
        point = rng.gauss(0.0, 1.0), rng.gauss(0.0, 1.0)
        expected, actual = (gradwalk.value_and_grad(lambda x, v, f=f: summed(f(x, v)), (0, 1))(*point)
                            for f in (path, compiled))  # fmt: skip
        assert expected[0] == actual[0]
        assert actual[1] == pytest.approx(expected[1], rel=1e-13)
        differ += expected != actual
    assert (differ == 0) is to_the_bit
