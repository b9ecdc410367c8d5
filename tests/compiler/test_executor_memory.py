"""What an executor took for its steps, for a batch, for a step of training: all of it is given back."""

from __future__ import annotations

import gc
import os
import random
import subprocess
import sys
import tracemalloc
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running_programs import make, native, slot_array

from gradwalk.compiler.program import Guard, Instruction, Program, View


class Total:
    """A function as `call` takes it."""

    @staticmethod
    def evaluated(xs: list[float]) -> tuple[float, list[float]]:
        return sum(xs), [1.0] * len(xs)


def of_every_kind(calls: bool = False) -> Program:
    """Inputs and constants, gathered together and apart, short rows, edges, and a sum that is compared."""
    rng = random.Random(0)
    inputs, out, instructions = 40, 80, []

    def add(op: str, rows: int, columns: int, *operands: View, **more: Any) -> int:
        nonlocal out
        instructions.append(Instruction(op, out, rows, columns, operands, **more))
        out += rows * columns
        return out - rows * columns

    def gathered(rows: int, columns: int, first: int, end: int) -> View:
        slots = [rng.randrange(first, end) for _ in range(rows * columns)]
        return View(rows, columns, index=slot_array(slots).reshape(rows, columns))

    add("mul", 8, 5, gathered(8, 5, 0, 80), gathered(8, 5, 40, 80))
    add("dot", 200, 1, gathered(200, 4, 0, 80), gathered(200, 4, 0, 40))
    add("matmul", 8, 8, gathered(8, 9, 0, 80), gathered(8, 9, 40, 80))
    add("relu", 8, 5, View(8, 5, 120, 5, 1))
    add("softmax", 20, 5, gathered(20, 5, 0, 80), lengths=slot_array([1, 2, 3, 4, 5] * 4))
    if calls:
        add("call", 20, 1, gathered(20, 2, 0, 40), parameters=(0.0, 0.0))
    total = add("sum", 1, 1, View(1, inputs, 0, 0, 1))
    last = add("sum", 1, 1, View(1, out - 80, 80, 0, 1))
    initial = np.zeros(out + 1)
    initial[40:80] = [rng.uniform(0.5, 1.0) for _ in range(40)]
    guards = tuple(Guard(total, sign, out, True) for sign in ("<=", ">=") * 8)
    return Program(
        out + 1, initial, slot_array(range(inputs)), slot_array([last]), tuple(instructions), guards,
        functions=(Total(),) if calls else (),  # type: ignore[arg-type]
    )  # fmt: skip


FAR, TIED = np.full(40, 0.5), np.array([0.1, -0.1, 0.3, -0.3] * 10)
ALONE, CALLING = of_every_kind(), of_every_kind(calls=True)
WHOLE = Program(ALONE.size, ALONE.initial, ALONE.inputs, ALONE.outputs, ALONE.instructions)  # it always applies


def alone(exact: bool) -> None:
    for program in (WHOLE, CALLING):
        executor = make(program, functions=program.functions, exact=exact)
        executor.run(FAR)
        executor.gradients(np.ones(1), np.empty(40))


def too_close_to_tell() -> None:
    executor = make(ALONE)
    assert not executor.run(TIED)
    assert executor.undecided
    assert executor.run_batch(np.array([TIED] * 9), (), np.empty((9, 1))) == list(range(9))


def a_batch() -> None:
    executor, leaves = make(WHOLE), tuple(native.Value(0.5) for _ in range(20))
    given, outputs, seeds = np.full((900, 20), 0.5), np.empty((900, 1)), np.ones(1)
    executor.run_batch(given, leaves, outputs, seeds, np.empty((900, 20)), np.empty(20), threads=2)
    executor.run_directions(FAR[:20], (), np.full((9, 20), 0.5), np.empty((9, 1)))


def training() -> None:
    executor, parameters = make(WHOLE), tuple(native.Value(0.5) for _ in range(40))
    for slots in (array("i", range(40)), array("i", range(40))):
        executor.run_values([], parameters)
        executor.train(parameters, slots, 0.9, 0.95, 0.1, 1.0, 1e-8, 1.0, np.zeros(40), np.zeros(40))
    settings, rows = np.array([[0.1, 0.0, 0.0, 0.0]] * 60), array("i", range(60))
    executor.step_models(
        rows, array("i", range(40)), np.empty((60, 0)), np.full((60, 40), 0.5), np.empty(60), settings, None, None
    )


def a_node() -> None:
    executor, children = make(WHOLE), tuple(native.Value(0.5) for _ in range(40))
    executor.run_values([], children)
    executor.node(children, array("i", range(40)))


def loops() -> None:
    def longs() -> array[int]:
        return array("q", [0] * 41)

    starts, children = array("q", [*range(41), 40]), array("q", [0] * 40)
    starts[1] = 0
    for i in range(2, 42):
        starts[i] = i - 1
    native.LOOPS["first_equals"](starts, children, longs(), longs())
    native.LOOPS["row_numbers"](longs(), longs(), longs())


@pytest.mark.unsanitized
@pytest.mark.parametrize(
    "work",
    [lambda: alone(exact=False), lambda: alone(exact=True), too_close_to_tell, a_batch, training, a_node, loops],
    ids=["alone", "exact", "too close to tell", "a batch", "training", "a node", "loops"],
)
def test_all_that_was_taken_is_given_back(work: Callable[[], None]) -> None:
    """In one of three tries of 40 rounds: what leaks does so every time, and each list here has more than 30 bytes."""
    assert kept_by(work) < 40 * 30


def kept_by(work: Callable[[], None]) -> int:
    kept = []
    tracemalloc.start()
    try:
        for _ in range(3):
            before, _ = tracemalloc.get_traced_memory()
            for _ in range(40):
                work()
            gc.collect()
            after, _ = tracemalloc.get_traced_memory()
            kept.append(after - before)
    finally:
        tracemalloc.stop()
    return min(kept)


@pytest.mark.unsanitized
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_in_a_forks_child_it_is_given_back_too() -> None:
    """A lock that its parent may hold is not: it was made before the fork, as none of these was."""
    script = (
        "import os; from test_executor_memory import alone, kept_by; child = os.fork();\n"
        "if child == 0: os._exit(kept_by(lambda: alone(exact=False)) >= 40 * 30)\n"
        "raise SystemExit(os.waitpid(child, 0)[1])"
    )
    assert subprocess.run([sys.executable, "-c", script], cwd=Path(__file__).parent).returncode == 0


def test_the_type_is_held_by_its_executors_only() -> None:
    """As any object holds its type, and lets go of it at its end."""
    before = sys.getrefcount(native.Executor)
    executors = [make(WHOLE) for _ in range(30)]
    during = sys.getrefcount(native.Executor)
    del executors
    assert (during - before, sys.getrefcount(native.Executor) - before) == (30, 0)
