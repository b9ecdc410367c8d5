"""Programs are checked completely when an executor is made of them: whatever a file holds, no crash and no hang."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import itertools
import math
import pickle
import re
import sys
from array import array
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from running_programs import make, slot_array

from gradwalk import _native
from gradwalk.compiler.executors import Interpreted, executor_for
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

    @staticmethod
    def local_grads(xs: list[float], out: float) -> list[float]:
        return [2.0] * len(xs)


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


def products() -> Program:
    """Two products in one instruction."""
    instruction = Instruction("matmul", 4, 2, 1, (View(2, 2, 0, 2, 1), View(2, 2, 0, 2, 1)))
    return Program(6, np.zeros(6), slot_array([0, 1, 2, 3]), slot_array([4, 5]), (instruction,))


def test_products_that_are_taken_apart_are_checked_before() -> None:
    """As where a program is run that is from a file."""
    whole = products()
    executor_for(whole)
    instruction = whole.instructions[0]
    left, right = instruction.operands
    assert instruction.batch == 2
    for fields in (
        {"operands": ()}, {"operands": (left,)}, {"operands": 3 * (left,)}, {"columns": 0}, {"columns": -1},
        {"rows": 3}, {"operands": (left, changed(right, rows=3, row_stride=0))},
        {"operands": (left, changed(right, rows=2**40))}, {"operands": (changed(left, start=5), right)},
    ):  # fmt: skip
        with pytest.raises(ValueError, match="Program: expected"):
            executor_for(with_instruction(whole, 0, changed(instruction, **fields)))


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


def test_views_that_repeat_a_slot_are_counted_together() -> None:
    """Each would be looked at entry by entry, which takes seconds; a thousand are a few bytes each."""
    few, many = View(1, 2**10, 0, 0, 0), View(1, 2**28 - 2**10 + 1, 0, 0, 0)
    instructions = tuple(Instruction("sum", i, 1, 1, (view,)) for i, view in enumerate((few, many, many), 1))
    with pytest.raises(ValueError, match=r"at most 268435456 entries of Views in all, got more .* of slot 2"):
        make(Program(4, np.zeros(4), slot_array([0]), slot_array([1]), instructions))
    dot = Instruction("dot", 1, 1, 1, 2 * (View(1, 2**28, 0, 0, 0),))
    with pytest.raises(ValueError, match=r"at most 268435456 entries of Views in all, got more .* of slot 1"):
        make(Program(2, np.zeros(2), slot_array([0]), slot_array([1]), (dot,)))


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
    "node": lambda: (run_once().node, ((LEAF, LEAF), array("i", [0, 1]))),
    "run_directions": lambda: (run_once().run_directions, (doubles(0.5), (), doubles(2.0, 3.0), doubles(0.0, 0.0))),
    "run_batch": lambda: (
        run_once().run_batch,
        (doubles(0.5, 0.6, 0.7), doubles(2.0), doubles(*[0.0] * 3), doubles(1.0), doubles(*[0.0] * 3), doubles(0.0)),
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
    "first_equals": lambda: (_native.LOOPS["first_equals"], (*starts_and_children(), longs(0, 0, 0), longs(0, 0, 1))),
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


WRITTEN = {
    "outputs": [0], "gradients": [1], "value_and_gradients": [2], "run_directions": [3], "run_batch": [2, 4, 5],
    "train": [8, 9], "step_models": [3, 4, 6, 7], "adam": [7, 8], "sgd": [5], "write": [1], "levels": [2],
    "latest_levels": [2], "mark_needed": [2], "mark_users": [2], "follow": [0], "first_equals": [2],
    "row_numbers": [1, 2],
}  # fmt: skip
ARRAYS = [(name, place) for name in HOLDERS for place, each in enumerate(HOLDERS[name]()[1]) if isinstance(each, array)]


def with_argument(name: str, place: int, given: Any) -> tuple[Any, list[Any]]:
    """A call, with one of its arguments replaced."""
    call, arguments = HOLDERS[name]()
    return call, [*arguments[:place], given, *arguments[place + 1 :]]


@pytest.mark.parametrize(("name", "place"), ARRAYS)
def test_what_is_written_has_to_be_writable_and_nothing_else_has(name: str, place: int) -> None:
    call, given = HOLDERS[name]()
    call, given = with_argument(name, place, memoryview(given[place]).toreadonly())
    refused = False
    try:
        call(*given)
    except BufferError:
        refused = True
    assert refused is (place in WRITTEN.get(name, []))


@pytest.mark.parametrize(("name", "place"), [pair for pair in ARRAYS if pair[0] != "follow"])
@pytest.mark.parametrize("longer", [True, False])
def test_an_array_of_another_length_is_refused_and_none_is_held(name: str, place: int, longer: bool) -> None:
    """By one entry, more or fewer."""
    right = HOLDERS[name]()[1][place]
    call, given = with_argument(name, place, right + right[:1] if longer else right[1:])
    with pytest.raises((ValueError, TypeError)):
        call(*given)
    for each in given:
        if isinstance(each, array | bytearray):
            each.extend(each)


GRAPHS = ("levels", "latest_levels", "mark_needed", "mark_users", "first_equals")


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("starts", [(), (0, 0, 0, 2**61), (0, 0, 0, 2**62), (0, 0, 0, -1), (0, 2**61, 2**61, 0)])
def test_a_graph_is_as_large_as_its_arrays(name: str, starts: tuple[int, ...]) -> None:
    """Also one without a beginning, and one whose size in bytes is no number of 64 bits."""
    call, (_, _, *others) = HOLDERS[name]()
    with pytest.raises(ValueError, match="flat: expected"):
        call(longs(*starts), longs(), *others)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("first", [1, 4])
def test_what_is_filled_is_apart_from_what_is_read(name: str, first: int) -> None:
    """Where children begin, and which they are, was looked at before."""
    call, (_, _, filled, *others) = HOLDERS[name]()
    shared = memoryview(longs(*GRAPH[0], *GRAPH[1], 0))
    within = shared[first : first + 3] if isinstance(filled, array) else shared.cast("B")[8 * first : 8 * first + 3]
    with pytest.raises(ValueError, match="flat: expected"):
        call(shared[:4], shared[4:6], within, *others)


@pytest.mark.parametrize(
    ("name", "place"), [("add_gradients", 0), ("value", 1), ("node", 0), ("train", 0), ("adam", 0), ("sgd", 0)]
)
def test_parameters_and_leaves_are_values(name: str, place: int) -> None:
    """Another object of the same number is refused, and not read."""
    values = HOLDERS[name]()[1][place]
    call, given = with_argument(name, place, (*values[:-1], 2.0))
    with pytest.raises(TypeError, match="expected a Value of the native engine"):
        call(*given)


@pytest.mark.parametrize("name", ["train", "step_models"])
@pytest.mark.parametrize("slot", [-1, 4])
def test_parameters_are_in_slots_of_the_program_or_in_the_one_after(name: str, slot: int) -> None:
    call, given = with_argument(name, 1, array("i", [slot]))
    with pytest.raises(ValueError, match=f"expected slots from 0 to 3 for the parameters, got {slot}"):
        call(*given)


def step_models(executor: Any, *arguments: Any, models: int = 1) -> Any:
    """Of so many models of one weight each, in slot 1."""
    given = doubles(*[0.5] * models), doubles(*[2.0] * models), doubles(*[0.0] * models)
    return executor.step_models(array("i", range(models)), array("i", [1]), *given, *arguments)


def of_two(*instructions: Instruction, outputs: tuple[int, ...] = (2,), **options: Any) -> Any:
    """A program of three slots and two inputs."""
    return make(Program(3, np.zeros(3), slot_array([0, 1]), slot_array(outputs), instructions), **options)


def of_a_function(**options: Any) -> Any:
    return of_two(Instruction("call", 2, 1, 1, (View(1, 2, 0, 0, 1),), (0.0, 0.0)), functions=(Doubled(),), **options)


NO_MOMENTS = doubles(0.1, 0.0, 0.0, 0.0), None, None
MOMENTUM = 0.1, 0.9, 0.0, 0.0
MISFITS: dict[str, Callable[[], Any]] = {
    "no weights": lambda: run_once().step_models(array("i"), array("i"), *[doubles()] * 3, None, None, None),
    "two results": lambda: step_models(of_two(outputs=(0, 1)), *NO_MOMENTS),
    "a function": lambda: step_models(of_a_function(), *NO_MOMENTS),
    "second moments alone": lambda: step_models(run_once(), doubles(*SETTINGS), None, doubles(0.0)),
    "another input": lambda: step_models(
        make(changed(product_of_two(), size=4, initial=np.zeros(4), inputs=slot_array([0, 1, 3]))), *NO_MOMENTS
    ),
    "an argument left over": lambda: run_once().step_models(
        array("i", [0, 1]), array("i", [1]), doubles(*[0.5] * 3), doubles(1.0, 2.0), doubles(0.0, 0.0), *[None] * 3
    ),
    "part of a model": lambda: run_once().step_models(
        array("i", [0]), array("i", [1, 3]), doubles(0.5), doubles(1.0, 2.0, 3.0), doubles(0.0), *NO_MOMENTS
    ),
}


@pytest.mark.parametrize("name", MISFITS)
def test_models_that_do_not_fit_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="rows of arguments, weights, settings and moments that fit it"):
        MISFITS[name]()


@pytest.mark.parametrize("which", [0, 1])
def test_momentum_of_any_model_needs_moments(which: int) -> None:
    settings = [*NO_MOMENTS[0], *NO_MOMENTS[0]]
    settings[4 * which : 4 * which + 4] = MOMENTUM
    with pytest.raises(ValueError, match="expected moments where there is momentum"):
        step_models(run_once(), doubles(*settings), None, None, models=2)


@pytest.mark.parametrize("between", ["step_models", "run"])
def test_leaves_are_read_again_after_other_numbers_were_in_their_slots(between: str) -> None:
    executor, leaves = run_once(), (_native.Value(4.0),)
    before = executor.value(doubles(0.5), leaves)
    if between == "run":
        executor.run(doubles(0.5, 7.0))
    else:
        step_models(executor, *NO_MOMENTS)
    assert before == executor.value(doubles(0.5), leaves) == 2.0


def asking(again: Callable[..., Any]) -> Any:
    """sqrt(x * y), which asks for its gradient where it is 0 times an infinite slope."""
    root = (
        Instruction("matmul", 2, 1, 1, (View(1, 1, 0), View(1, 1, 1))),
        Instruction("sqrt", 3, 1, 1, (View(1, 1, 2),)),
    )
    return make(Program(4, np.zeros(4), slot_array([0, 1]), slot_array([3]), root), gradients_again=again)


def test_no_model_moves_after_one_that_raised() -> None:
    def raising(*given: bytes) -> None:
        raise LookupError

    weights = doubles(0.0, 4.0)
    models = array("i", [0, 1]), array("i", [1]), doubles(0.0, 0.5), weights, doubles(0.0, 0.0)
    with pytest.raises(LookupError):
        asking(raising).step_models(*models, doubles(*2 * [0.1, 0.0, 0.0, 0.0]), None, None)
    assert weights.tolist() == [0.0, 4.0]


def test_gradients_that_were_asked_for_are_let_go_of() -> None:
    """As what was handed in to ask for them is."""
    found, asked, into = doubles(3.0, 4.0), [], doubles(0.0, 0.0)
    executor = asking(lambda *given: asked.extend(given) or found)
    executor.run(doubles(0.0, 0.0))
    executor.gradients(doubles(1.0), into)
    assert into == found
    assert [sys.getrefcount(each) for each in asked] == [sys.getrefcount(each) for each in (bytes(32), bytes(33))]
    before = sys.getrefcount(found)
    executor.gradients(doubles(1.0), into)
    assert before == sys.getrefcount(found)
    found.append(0.0)  # which nobody looks into


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((doubles(), doubles(1.0, 2.0, 3.0), doubles()), "expected arguments, outputs and at most 2 leaves"),
        ((None, (), doubles()), "expected arguments, outputs and at most 2 leaves"),
        ((doubles(1.0, 2.0), (), None), "expected arguments, outputs and at most 2 leaves"),
        ((doubles(1.0, 2.0, 3.0), (), doubles(0.0)), "expected rows of 2 arguments, got 3 numbers"),
    ],
)
def test_a_batch_that_does_not_fit_is_refused(given: tuple[Any, ...], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        run_once().run_batch(*given)


# ---------------------------------------------------------------- directions, nodes, functions


@pytest.mark.parametrize(
    ("executor", "point", "directions"),
    [
        pytest.param(lambda: make(product_of_two(), exact=True), doubles(0.5), doubles(2.0), id="exact"),
        pytest.param(of_a_function, doubles(0.5), doubles(2.0), id="a function"),
        pytest.param(run_once, doubles(), doubles(2.0, 2.0), id="no point"),
        pytest.param(run_once, doubles(0.5), doubles(), id="no direction"),
        pytest.param(lambda: of_three(), doubles(0.5), doubles(1.0, 2.0, 3.0), id="a direction and a half"),
    ],
)
def test_what_has_no_directions_is_refused(executor: Callable[[], Any], point: Any, directions: Any) -> None:
    with pytest.raises(ValueError, match="expected directions of a program that is not exact"):
        executor().run_directions(point, (), directions, doubles(0.0) if directions else doubles())


def test_leaves_beside_directions_are_values() -> None:
    with pytest.raises(TypeError, match="expected a Value of the native engine as leaf 0"):
        of_three().run_directions(doubles(3.0), (2.0,), doubles(2.0), doubles(0.0))


def of_three() -> Any:
    """x + y * z * z."""
    cell = [View(1, 1, slot) for slot in range(5)]
    steps = ("mul", 3, cell[2], cell[2]), ("mul", 4, cell[1], cell[3]), ("add", 5, cell[0], cell[4])
    instructions = tuple(Instruction(op, out, 1, 1, operands) for op, out, *operands in steps)  # type: ignore[arg-type]
    return make(Program(6, np.zeros(6), slot_array([0, 1, 2]), slot_array([5]), instructions))


def test_a_leaf_may_become_part_of_the_direction() -> None:
    """What stands still is found anew."""
    executor, out = of_three(), doubles(0.0, 0.0)
    executor.run_directions(doubles(1.0), (LEAF,), doubles(2.0, 3.0), out)
    executor.run_directions(doubles(1.0), (), doubles(2.0, 3.0, 2.0, 5.0), out)
    assert out.tolist() == [19.0, 51.0]


@pytest.mark.parametrize("method", ["node", "train"])
def test_a_program_of_two_results_is_no_node_and_has_no_step(method: str) -> None:
    with pytest.raises(ValueError, match="expected a program with one result, got 2"):
        getattr(of_two(outputs=(0, 1)), method)(*HOLDERS[method]()[1])


@pytest.mark.parametrize("slopes", [[], [1.0], [1.0, 2.0, 3.0], (1.0, 2.0)])
def test_a_function_gives_a_slope_for_each_input(slopes: Any) -> None:
    """Or else the program does not apply."""
    function = SimpleNamespace(evaluated=lambda xs: (1.0, slopes))
    call = Instruction("call", 2, 1, 1, (View(1, 2, 0, 0, 1),), (0.0, 0.0))
    assert of_two(call, functions=(function,)).run(doubles(0.5, 2.0)) is False


def test_a_guard_whose_outcome_cannot_be_told_is_refused() -> None:
    class Undecided:
        def __bool__(self) -> bool:
            raise LookupError

    with pytest.raises(LookupError):
        make(changed(product_of_two(), guards=(Guard(0, "<", 1, Undecided()),)))  # type: ignore[arg-type]


# ---------------------------------------------------------------- training steps


def train(executor: Any, parameters: tuple[Any, ...], slots: array[int], means: array[float] | None = None) -> None:
    moments = means if means is not None else doubles(*[0.0] * len(parameters))
    executor.train(parameters, slots, *SETTINGS, moments, doubles(*[0.0] * len(parameters)))


def test_the_slots_of_the_same_parameters_may_be_others() -> None:
    executor, parameters, means = run_once(), (_native.Value(2.0),), doubles(0.0)
    for slot in (0, 1):
        train(executor, parameters, array("i", [slot]), means)
    assert means.tolist() == [pytest.approx(0.9 * 0.1 * 2.0 + 0.1 * 0.5)]


def test_each_of_other_parameters_has_a_slot() -> None:
    """Slots that were right for the last ones may be too few."""
    executor, slots = run_once(), array("i", [1])
    train(executor, (LEAF,), slots)
    with pytest.raises(TypeError, match="expected slots as an array of int32 for the parameters"):
        train(executor, (LEAF, LEAF), slots)


def test_a_step_begins_where_the_parameter_is_now() -> None:
    """Not where it was when the program ran."""
    executor, leaf, slots = run_once(), _native.Value(2.0), array("i", [1])
    parameters = (leaf,)
    for _ in range(2):
        executor.value(doubles(0.5), parameters)
        train(executor, parameters, slots)
    executor.value(doubles(0.5), parameters)
    leaf.data = 50.0
    train(executor, parameters, slots)
    assert leaf.data == pytest.approx(50.0, abs=1.0)


@pytest.mark.parametrize("then", [lambda executor: train(executor, (LEAF,), array("i", [1])), lambda executor: None])
def test_slots_are_let_go_of_with_the_next_ones_and_with_the_executor(then: Callable[[Any], None]) -> None:
    slots = array("i", [1])
    before = sys.getrefcount(slots)
    executor = run_once()
    train(executor, (LEAF,), slots)
    then(executor)
    del executor
    assert before == sys.getrefcount(slots)


def blocks_left(round_: Callable[[], None], first: int, then: int) -> int:
    """By how many blocks of memory more is in use after so many rounds, and others first, for what is made once."""
    for rounds in (first, then):
        before = sys.getallocatedblocks()
        for _ in range(rounds):
            round_()
        gc.collect()
    return sys.getallocatedblocks() - before


@pytest.mark.unsanitized
def test_what_is_refused_leaves_nothing_behind() -> None:
    """Programs, and calls with an argument that does not fit."""

    def round_() -> None:
        for refused in hostile_programs():
            with contextlib.suppress(Exception):
                make(refused, functions=(Doubled(),))
        for name in HOLDERS:
            for place in range(len(HOLDERS[name]()[1])):
                call, given = with_argument(name, place, "x")
                with contextlib.suppress(Exception):
                    call(*given)
        for loops in ((1, 1), 3), ((2, 3),), ((1, 1),):
            with contextlib.suppress(Exception):
                _looped(*loops)

    assert blocks_left(round_, 2, 8) < 8


@pytest.mark.unsanitized
def test_making_and_running_executors_leaves_nothing_behind() -> None:
    """A thousand of them, each with a batch, take no more room than one."""

    kept = pickle.dumps(program())

    def round_() -> None:
        made = pickle.loads(kept)  # with numbers and texts of its own
        use(make(made, functions=made.functions))
        batch = doubles(*range(20)), doubles(2.0), doubles(*range(20)), doubles(1.0), doubles(*range(20)), doubles(0.0)
        make(product_of_two()).run_batch(*batch)
        for call, given in (HOLDERS[name]() for name in ("node", "step_models", "train")):
            call(*given)

    assert blocks_left(round_, 250, 1000) < 500


def test_the_reference_engine_refuses_as_much() -> None:
    """And what it runs gives the same numbers."""
    refused = 0
    for whole in hostile_programs():
        try:
            interpreted = Interpreted(whole)
        except (ValueError, TypeError, IndexError, AttributeError):
            refused += 1
            continue
        executor = make(whole, functions=whole.functions)  # or it would have been refused
        inputs = np.array([0.5, 0.25, 1.0])[: len(whole.inputs)]
        if executor.run(inputs) and interpreted.run(inputs):
            outputs = np.empty((2, len(whole.outputs)))
            executor.outputs(outputs[0])
            interpreted.outputs(outputs[1])
            assert outputs[0] == pytest.approx(outputs[1], rel=1e-15, nan_ok=True)
    assert refused > 1000
