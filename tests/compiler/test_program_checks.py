"""Programs are checked completely when an executor is made of them: whatever a file holds, no crash and no hang."""

from __future__ import annotations

import dataclasses
import gc
import itertools
import math
import pickle
import re
import sys
from array import array
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from running_programs import make, slot_array

from gradwalk import _native
from gradwalk.compiler.program import Guard, Instruction, Program, View

HOSTILE: tuple[Any, ...] = (
    -1, 0, 1, 3, 11, 12, 13, 14, 2**28 + 1, 2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1, 2**63, 2**70, -(2**31), -(2**63),
    -(2**70), 0.5, math.nan, math.inf, -math.inf, 1e300, None, "x", True, (), b"1234",
)  # fmt: skip


class Doubled:
    """A function as `call` takes it."""

    @staticmethod
    def evaluated(xs: list[float]) -> tuple[float, list[float]]:
        return 2.0 * sum(xs), [2.0] * len(xs)


def program() -> Program:
    """Every kind of instruction, strided views, in loops and gathered, a guard, a function."""
    gathered = View(1, 2, index=slot_array([[1, 0]]))
    instructions = (
        Instruction("clamp", 4, 1, 2, (View(1, 2, 0, 0, 1),), (-5.0, 5.0)),
        Instruction("matmul", 6, 1, 1, (View(1, 2, 4, 0, 1), gathered), lengths=slot_array([1])),
        Instruction("dot", 7, 1, 1, (View(1, 2, 0, loops=((2, 1),)), View(1, 2, 4, 0, 1))),
        Instruction("rmsnorm", 8, 1, 2, (View(1, 2, 6, 0, 1),), (1e-5,)),
        Instruction("cross_entropy", 10, 1, 1, (View(1, 2, 8, 0, 1), View(1, 1, 2))),
        Instruction("take", 11, 1, 1, (View(2, 1, 9, 1, 1), View(1, 1, 2))),
        Instruction("call", 12, 1, 1, (View(1, 3, 9, 0, 1),), (0.0, 1.0)),
    )
    return Program(
        13, np.zeros(13), slot_array([0, 1, 2]), slot_array([12, 10]), instructions, (Guard(0, "<=", 12, True),),
        functions=(Doubled(),),  # type: ignore[arg-type]
    )  # fmt: skip


def changed(item: Any, **fields: Any) -> Any:
    made = dataclasses.replace(item)
    for name, given in fields.items():
        object.__setattr__(made, name, given)
    return made


def with_instruction(whole: Program, i: int, instruction: Any) -> Program:
    instructions = (*whole.instructions[:i], instruction, *whole.instructions[i + 1 :])
    return changed(whole, instructions=instructions)


def hostile_programs() -> Iterator[Program]:
    """The program with one field of one part changed, each in turn."""
    whole = program()
    for field, given in itertools.product(("size", "initial", "inputs", "outputs", "instructions", "guards"), HOSTILE):
        yield changed(whole, **{field: given})
    for field, given in itertools.product(("inputs", "outputs"), HOSTILE):
        if isinstance(given, int) and -(2**31) <= given < 2**31:
            yield changed(whole, **{field: slot_array([0, given])})
    for given in HOSTILE:
        yield changed(whole, functions=(given,))
        yield changed(whole, initial=np.full(13, given) if isinstance(given, float) else np.zeros((1, 13), np.float32))
    for field, given in itertools.product(("left", "sign", "right", "outcome"), HOSTILE):
        yield changed(whole, guards=(changed(whole.guards[0], **{field: given}),))
    for i, instruction in enumerate(whole.instructions):
        for field, given in itertools.product(("op", "out", "rows", "columns", "operands", "parameters"), HOSTILE):
            yield with_instruction(whole, i, changed(instruction, **{field: given}))
        for j, given in itertools.product(range(len(instruction.parameters)), HOSTILE):
            parameters = (*instruction.parameters[:j], given, *instruction.parameters[j + 1 :])
            yield with_instruction(whole, i, changed(instruction, parameters=parameters))
        yield with_instruction(whole, i, changed(instruction, parameters=(*instruction.parameters, 1.0)))
        for (j, view), field, given in itertools.product(
            enumerate(instruction.operands),
            ("rows", "columns", "start", "row_stride", "column_stride", "index"),
            HOSTILE,
        ):
            views = list(instruction.operands)
            views[j] = changed(view, **{field: given})
            yield with_instruction(whole, i, changed(instruction, operands=tuple(views)))
            if field == "index" and isinstance(given, int) and -(2**31) <= given < 2**31:
                table = np.full((view.rows, view.columns), given, np.int32)
                views[j] = changed(view, index=table)
                yield with_instruction(whole, i, changed(instruction, operands=tuple(views)))


def use(executor: Any) -> None:
    inputs, outputs = np.array([0.5, 0.25, 1.0]), np.empty(2)
    executor.run(inputs)
    executor.outputs(outputs)
    executor.gradients(np.ones(2), np.empty(3))


def test_the_program_itself_runs() -> None:
    use(make(program(), functions=program().functions))


@pytest.mark.parametrize("exact", [False, True])
def test_one_field_changed_is_refused_or_harmless(exact: bool) -> None:
    refused = 0
    for hostile in hostile_programs():
        try:
            use(make(hostile, functions=hostile.functions, exact=exact))
        except (ValueError, TypeError, IndexError, OverflowError, AttributeError, BufferError):
            refused += 1
    assert refused > 1000


@pytest.mark.parametrize(
    ("field", "given"),
    [("out", 2**63 - 1), ("out", 12), ("out", -1), ("rows", 2**62), ("columns", 2**62), ("columns", 0), ("out", 4)],
)
def test_outputs_outside_the_program_are_refused(field: str, given: int) -> None:
    whole = program()
    with pytest.raises(ValueError, match="expected"):
        make(with_instruction(whole, 3, changed(whole.instructions[3], **{field: given})), functions=whole.functions)


@pytest.mark.parametrize("columns", [2**28 + 1, 2**31, 2**62, 2**63 - 1])
def test_a_view_that_repeats_a_slot_for_ever_is_refused(columns: int) -> None:
    instructions = (Instruction("sum", 1, 1, 1, (View(1, columns, 0, 0, 0),)),)
    with pytest.raises(ValueError, match="expected columns from 1 to"):
        make(Program(2, np.zeros(2), slot_array([0]), slot_array([1]), instructions))


def test_a_slot_is_written_once_and_before_it_is_read() -> None:
    def refused(*instructions: Instruction) -> None:
        with pytest.raises(ValueError, match="expected slots that are written once, and then read"):
            make(Program(3, np.zeros(3), slot_array([0]), slot_array([2]), instructions))

    refused(Instruction("neg", 1, 1, 1, (View(1, 1, 0),)), Instruction("exp", 1, 1, 1, (View(1, 1, 0),)))
    refused(Instruction("neg", 0, 1, 1, (View(1, 1, 0),)))
    refused(Instruction("neg", 1, 1, 1, (View(1, 1, 1),)))
    refused(Instruction("neg", 1, 1, 1, (View(1, 1, 2),)), Instruction("exp", 2, 1, 1, (View(1, 1, 0),)))


def test_an_unpickled_program_is_checked_like_any_other() -> None:
    whole = program()
    broken = pickle.loads(pickle.dumps(changed(whole, guards=(Guard(0, "<", 2**40, True),), functions=())))
    with pytest.raises(ValueError, match="expected"):
        make(broken)


def _made(**changes: Any) -> Any:
    one = Program(3, np.zeros(3), slot_array([0]), slot_array([2]), (Instruction("neg", 2, 1, 1, (View(1, 1, 0),)),))
    return make(changed(one, **changes))


def _looped(*loops: Any) -> Any:
    return _made(instructions=(Instruction("sum", 2, 1, 1, (View(1, 2, 0, loops=loops),)),))


@pytest.mark.parametrize(
    ("attempt", "kind", "said"),
    [
        (lambda: _made(initial=np.zeros(2)), ValueError, "expected 3 doubles as initial, got 16 bytes"),
        (lambda: _made(initial=np.zeros(3, np.float32)), ValueError, "expected 3 doubles as initial, got 12 bytes"),
        (lambda: _made(inputs=np.array([0])), TypeError, "expected slots as an array of int32 for inputs"),
        (lambda: _made(outputs=np.zeros(1, np.float32)), TypeError, "expected slots as an array of int32 for outputs"),
        (lambda: _made(inputs=slot_array([3])), ValueError, "expected slots from 0 to 2 for inputs, got 3"),
        (lambda: _made(outputs=slot_array([-1])), ValueError, "expected slots from 0 to 2 for outputs, got -1"),
        (lambda: _made(instructions=(Instruction("neg", 2, 1, 1, (View(1, 1, -1),)),)), ValueError,
         "expected start from 0 to 3, got -1"),
        (lambda: _made(instructions=(Instruction("neg", 1, 1, 2, (View(1, 2, 0, 1, 3),)),)), ValueError,
         "expected a View inside 3 slots, got one from 0 to 3"),
        (lambda: _made(instructions=(Instruction("neg", 2, 1, 1, (View(1, 1, index=slot_array([[7]])),)),)), ValueError,
         "expected slots from 0 to 2 for a View, got 7"),
        (lambda: _looped((1, 1), 3), TypeError, "expected loops of a View as pairs, got 3"),
        (lambda: _looped((2, 2.0)), TypeError, "'float' object cannot be interpreted as an integer"),
        (lambda: _looped((2, 4)), ValueError, "expected a loop of a View inside 3 slots, got (2, 4)"),
        (lambda: _looped((0, 1)), ValueError, "expected a loop of a View inside 3 slots, got (0, 1)"),
        (lambda: _looped((2**63, 1)), ValueError, "expected a loop of a View inside 3 slots"),
        (lambda: _looped((2, 3)), ValueError, "expected loops over 2 of 3 slots, got ((2, 3),)"),
        (lambda: _looped((2, -1)), ValueError, "expected loops over 2 of 3 slots, got ((2, -1),)"),
        (lambda: _looped((2, 1), (2, 1)), ValueError, "expected loops over 2 of 3 slots, got ((2, 1), (2, 1))"),
        (lambda: _looped((2**28, 0), (2**28, 0)), ValueError, "expected loops over 2 of 3 slots"),
        (lambda: _looped((1, 1)), ValueError, "expected loops over 2 slots, got ((1, 1),)"),
        (lambda: _made(instructions=(Instruction("matmul", 2, 1, 1, 2 * (View(1, 2, 0, 0, 1),), (), slot_array([0])),)),
         ValueError, "expected rows of at least one entry"),
        (lambda: _made(instructions=(Instruction("neg", 2, 1, 1, (View(1, 1, 0),), (), slot_array([1])),)),
         ValueError, "expected other operands for op"),
        (lambda: _made().run_values(np.zeros(1, np.float32), ()), TypeError,
         "expected doubles as arguments, got format 'f'"),
    ],
)  # fmt: skip
def test_what_is_refused_is_said(attempt: Callable[[], Any], kind: type[Exception], said: str) -> None:
    """Every sentence of read.c."""
    with pytest.raises(kind, match=re.escape(said)):
        attempt()


# ---------------------------------------------------------------- nothing is held on to


def product_of_two() -> Program:
    instruction = Instruction("mul", 2, 1, 1, (View(1, 1, 0), View(1, 1, 1)))
    return Program(3, np.zeros(3), slot_array([0, 1]), slot_array([2]), (instruction,))


def doubles(*numbers: float) -> array[float]:
    return array("d", numbers)


def longs(*numbers: int) -> array[int]:
    return array("q", numbers)


GRAPH = (0, 0, 0, 2), (0, 1)  # one node over two leaves: where the children of each begin, and all of them
SETTINGS = 0.9, 0.95, 0.1, 1.0, 1e-8, 1.0
LEAF = _native.Value(2.0)
HOLDERS: dict[str, Callable[[], tuple[Any, tuple[Any, ...]]]] = {
    "run": lambda: (run_once().run, (doubles(0.5, 2.0),)),
    "outputs": lambda: (run_once().outputs, (doubles(0.0),)),
    "gradients": lambda: (run_once().gradients, (doubles(1.0), doubles(0.0, 0.0))),
    "value": lambda: (run_once().value, (doubles(0.5), (LEAF,))),
    "value_and_gradients": lambda: (run_once().value_and_gradients, (doubles(0.5), (LEAF,), doubles(0.0, 0.0))),
    "add_gradients": lambda: (run_once().add_gradients, ((LEAF,), doubles(0.0))),
    "run_directions": lambda: (run_once().run_directions, (doubles(0.5), (), doubles(2.0, 3.0), doubles(0.0, 0.0))),
    "run_batch": lambda: (
        run_once().run_batch,
        (doubles(0.5, 0.6), doubles(2.0), doubles(0.0, 0.0), doubles(1.0), doubles(0.0, 0.0), doubles(0.0)),
    ),
    "train": lambda: (run_once().train, ((LEAF,), array("i", [1]), *SETTINGS, doubles(0.0), doubles(0.0))),
    "step_models": lambda: (
        run_once().step_models,
        (array("i", [0]), array("i", [1]), doubles(0.5), doubles(2.0), doubles(0.0), doubles(*SETTINGS), doubles(0.0),
         doubles(0.0)),
    ),
    "adam": lambda: (_native.OPTIMISERS["adam"], ((LEAF,), *SETTINGS, doubles(0.0), doubles(0.0))),
    "sgd": lambda: (_native.OPTIMISERS["sgd"], ((LEAF,), 0.1, 0.9, 0.0, False, doubles(0.0))),
    "write": lambda: (_native.write, ([0.5, 2.0], doubles(0.0, 0.0))),
    "levels": lambda: (_native.LOOPS["levels"], (*starts_and_children(), longs(0, 0, 0))),
    "latest_levels": lambda: (_native.LOOPS["latest_levels"], (*starts_and_children(), longs(0, 0, 1))),
    "mark_needed": lambda: (_native.LOOPS["mark_needed"], (*starts_and_children(), bytearray(3))),
    "mark_users": lambda: (_native.LOOPS["mark_users"], (*starts_and_children(), bytearray(3))),
    "follow": lambda: (_native.LOOPS["follow"], (longs(0, 0, 1),)),
    "row_numbers": lambda: (_native.LOOPS["row_numbers"], (longs(1, 2, 1), longs(0, 0, 0), longs(0, 0, 0))),
}  # fmt: skip


def starts_and_children() -> tuple[array[int], array[int]]:
    return longs(*GRAPH[0]), longs(*GRAPH[1])


def run_once() -> Any:
    executor = make(product_of_two())
    executor.run(doubles(0.5, 2.0))
    return executor


@pytest.mark.parametrize("name", HOLDERS)
def test_an_array_can_grow_again_after_the_call(name: str) -> None:
    """It could not while somebody looks into it."""
    call, given = HOLDERS[name]()
    call(*given)
    for each in given:
        if isinstance(each, array | bytearray):
            each.extend(each[:1])


def test_models_without_weights_do_not_fit_a_program_that_has_some() -> None:
    """They are refused, however many there would be."""
    nothing, no_slots = doubles(), array("i")
    with pytest.raises(ValueError, match="rows of arguments, weights, settings and moments that fit it"):
        run_once().step_models(no_slots, no_slots, nothing, nothing, nothing, None, None, None)


@pytest.mark.unsanitized
def test_making_and_running_executors_leaves_nothing_behind() -> None:
    """A thousand of them, each with a batch, take no more room than one."""

    kept = pickle.dumps(program())

    def round_() -> None:
        made = pickle.loads(kept)  # with numbers and texts of its own
        use(make(made, functions=made.functions))
        batch = doubles(*range(20)), doubles(2.0), doubles(*range(20)), doubles(1.0), doubles(*range(20)), doubles(0.0)
        make(product_of_two()).run_batch(*batch)

    for rounds in (250, 1000):  # first for what is made once
        before = sys.getallocatedblocks()
        for _ in range(rounds):
            round_()
        gc.collect()
    assert sys.getallocatedblocks() - before < 500
