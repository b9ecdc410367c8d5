"""How far a number may be from the plain function's is known to the executor, through every kind of step.

Each program begins with a sum of twenty parts of nothing, whose rounding depends on the order. What is made of it is
compared with a bound: closer to it than `reach`, the executor cannot tell, and says so; further away it can.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from running_programs import make, native, slot_array

from gradwalk.compiler.program import Guard, Instruction, Program, View
from gradwalk.operation import nowhere
from gradwalk.ops import OPS
from gradwalk.row_ops import COMPOSITES

TERMS, SCALED, BOUND, NUMBERS = 20, 21, 22, 23  # the sum, it times a number, a bound; then inputs: 16 of them
SIZE, WIDE = NUMBERS + 16, 2.0**10  # times that: beside it, what a step rounds by itself is nothing
PARTS = [0.1, -0.1, 0.3, -0.3] * 5


class Weighted:
    """A function of one's own, steeper with every input."""

    @staticmethod
    def evaluated(xs: list[float]) -> tuple[float, list[float]]:
        slopes = [2.0**k for k in range(len(xs))]
        return sum(map(float.__mul__, slopes, xs)), slopes


def begun(*instructions: Instruction, guards: tuple[Guard, ...] = (), size: int = SIZE) -> Program:
    """The sum, and the sum times WIDE, before these instructions; all else before SIZE are inputs."""
    first = (
        Instruction("sum", TERMS, 1, 1, (View(1, 20, 0, 0, 1),)),
        Instruction("mul", SCALED, 1, 1, (View(1, 1, TERMS), View(1, 1, size))),
    )
    initial = np.zeros(size + 1)
    initial[size] = WIDE
    inputs = slot_array([*range(TERMS), *range(BOUND, SIZE)])
    return Program(size + 1, initial, inputs, slot_array([size - 1]), (*first, *instructions), guards)


def given(numbers: dict[int, float]) -> list[float]:
    """Inputs: the parts, and 0 but for these slots."""
    return [*PARTS, *(numbers.get(slot, 0.0) for slot in range(BOUND, SIZE))]


def largest_offset(is_undecided: Callable[[float], bool]) -> float:
    """Where that ends, to a hundredth; 0 where it is nowhere so."""
    low, high = 2.0**-60, 2.0**-20
    if not is_undecided(low):
        return 0.0
    assert not is_undecided(high)
    while high / low > 1.01:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if is_undecided(middle) else (low, middle)
    return low


def reach_of(slot: int, instructions: tuple[Instruction, ...], numbers: dict[int, float], size: int) -> float:
    """How far a bound may be from the number in that slot without being told from it."""
    program = begun(*instructions, guards=(Guard(slot, "<=", BOUND, True),), size=size)
    watched = Program(
        program.size, program.initial, program.inputs, slot_array([slot]), program.instructions, program.guards
    )
    executor, out = make(watched, functions=(Weighted(),)), np.empty(1)
    executor.run(np.array(given(numbers | {BOUND: math.inf})))
    executor.outputs(out)

    def is_undecided(offset: float) -> bool:
        applies = executor.run(np.array(given(numbers | {BOUND: out[0] + offset})))
        assert applies is not executor.undecided
        return executor.undecided

    return largest_offset(is_undecided)


def test_a_sum_is_known_as_well_as_floats_allow() -> None:
    """Not better than any order of its terms would have it, and hardly worse."""
    rounding = 20 * 2.0**-53 * sum(map(abs, PARTS))
    assert rounding < reach_of(TERMS, (), {}, SIZE) < 50 * rounding


def test_numbers_that_nobody_rounds_are_known() -> None:
    assert reach_of(NUMBERS, (), {NUMBERS: 1.0}, SIZE) == 0.0


def row_with(place: int, columns: int, slot: int = SCALED) -> list[int]:
    """Inputs, and among them the doubtful number."""
    slots = [NUMBERS + k for k in range(columns)]
    slots[place] = slot
    return slots


def gathered(*rows: list[int]) -> View:
    return View(len(rows), len(rows[0]), index=slot_array(rows))


EXACT = [NUMBERS + 8 + k for k in range(4)]  # inputs that are in no row that begins with NUMBERS


def along(op: str, operands: Callable[[int], tuple[View, ...]], slope: Callable[[int], float], **more: Any) -> Any:
    return pytest.param(op, operands, slope, more.get("numbers", {}), more.get("parameters", ()), id=more.get("id", op))


ROWS = [
    along("sum", lambda place: (gathered(row_with(place, 4)),), lambda place: 1.0),
    along("mean", lambda place: (gathered(row_with(place, 4)),), lambda place: 0.25),
    along("logsumexp", lambda place: (gathered(row_with(place, 4)),), lambda place: 0.25),
    along("largest", lambda place: (gathered(row_with(place, 4)),), lambda place: 1.0,
          numbers={NUMBERS + k: -8.0 for k in range(4)}),
    along("cross_entropy", lambda place: (gathered(row_with(place, 4)), View(1, 1, EXACT[0])),
          lambda place: 0.75 if place == 2 else 0.25, numbers={EXACT[0]: 2.0}),
    along("dot", lambda place: (gathered(row_with(place, 4)), gathered(EXACT)), lambda place: 2.0**place,
          numbers={slot: 2.0**k for k, slot in enumerate(EXACT)}, id="dot, left"),
    along("dot", lambda place: (gathered(EXACT), gathered(row_with(place, 4))), lambda place: 2.0**place,
          numbers={slot: -(2.0**k) for k, slot in enumerate(EXACT)}, id="dot, right"),
    along("call", lambda place: (gathered(row_with(place, 4)),), lambda place: 2.0**place, parameters=(0.0, 0.0)),
]  # fmt: skip


@pytest.mark.parametrize("place", [0, 1, 2, 3])
@pytest.mark.parametrize(("op", "operands", "slope", "numbers", "parameters"), ROWS)
def test_a_row_hands_on_the_doubt_about_each_entry(
    op: str, operands: Any, slope: Any, numbers: dict[int, float], parameters: tuple[float, ...], place: int
) -> None:
    """As much of it as the result depends on that entry."""
    instruction = Instruction(op, SIZE, 1, 1, operands(place), parameters)
    whole = reach_of(SCALED, (), {}, SIZE)
    assert reach_of(SIZE, (instruction,), numbers, SIZE + 1) == pytest.approx(slope(place) * whole, rel=0.03)


def test_two_doubtful_entries_are_doubted_twice() -> None:
    both = gathered([SCALED, SCALED, NUMBERS, NUMBERS])
    whole = reach_of(SCALED, (), {}, SIZE)
    for op, parameters, slope in (("sum", (), 2.0), ("mean", (), 0.5), ("call", (0.0, 0.0), 3.0)):
        instruction = Instruction(op, SIZE, 1, 1, (both,), parameters)
        assert reach_of(SIZE, (instruction,), {}, SIZE + 1) == pytest.approx(slope * whole, rel=0.03)


def test_rows_are_doubted_by_their_own_targets() -> None:
    rows = gathered([NUMBERS] * 4, row_with(1, 4), row_with(2, 4))
    numbers = {EXACT[0]: 0.0, EXACT[1]: 1.0, EXACT[2]: 0.0}
    instruction = Instruction("cross_entropy", SIZE, 3, 1, (rows, View(3, 1, EXACT[0], 1, 1)))
    whole = reach_of(SCALED, (), {}, SIZE)
    reaches = [reach_of(SIZE + row, (instruction,), numbers, SIZE + 3) for row in range(3)]
    assert reaches == pytest.approx([0.0, 0.75 * whole, 0.25 * whole], rel=0.03, abs=1e-13)


def test_two_doubtful_numbers_are_told_from_each_other_with_both_doubts() -> None:
    moved = Instruction("add", SIZE, 1, 1, (View(1, 1, SCALED), View(1, 1, NUMBERS)))
    executor = make(begun(moved, guards=(Guard(SCALED, "<=", SIZE, True),), size=SIZE + 1))

    def is_undecided(offset: float) -> bool:
        executor.run(np.array(given({NUMBERS: offset})))
        return executor.undecided

    assert largest_offset(is_undecided) == pytest.approx(2.0 * reach_of(SCALED, (), {}, SIZE), rel=0.03)


def test_a_number_is_told_from_itself() -> None:
    executor = make(begun(guards=(Guard(SCALED, "<=", SCALED, True),)))
    assert executor.run(np.array(given({})))


def test_a_product_alone_in_its_sum_is_rounded_as_by_anybody() -> None:
    instruction = Instruction("dot", SIZE, 1, 1, (gathered(row_with(0, 4, EXACT[0])), gathered(EXACT)))
    for others, is_rounded in ((0.0, False), (0.1, True)):
        numbers = {EXACT[0]: 0.1} | {NUMBERS + k: others for k in range(4)} | dict.fromkeys(EXACT[1:], 0.3)
        assert (reach_of(SIZE, (instruction,), numbers, SIZE + 1) > 0.0) is is_rounded


def test_what_is_added_to_a_doubtful_number_rounds_it_once_more() -> None:
    """An addition that would be the same to the bit, were it of the same numbers."""
    instruction = Instruction("add", SIZE, 1, 1, (View(1, 1, SCALED), View(1, 1, NUMBERS)))
    reach = reach_of(SIZE, (instruction,), {NUMBERS: 2.0**20}, SIZE + 1)
    assert reach > reach_of(SCALED, (), {}, SIZE) + 2.0**20 * 2.0**-53


def test_a_logarithm_near_zero_is_the_logarithm_of_a_number_near_one() -> None:
    """Which has no more digits than floats have there."""
    instruction = Instruction("logsumexp", SIZE, 1, 1, (View(1, 4, NUMBERS, 0, 1),))
    reach = reach_of(SIZE, (instruction,), {NUMBERS + k: -40.0 for k in (1, 2, 3)}, SIZE + 1)
    assert reach > 2.0**-53


ENTRIES = {
    "mul, left": ("mul", (SCALED, NUMBERS), 8.0),
    "mul, right": ("mul", (NUMBERS, SCALED), 8.0),
    "sub, left": ("sub", (SCALED, NUMBERS), 1.0),
    "sub, right": ("sub", (NUMBERS, SCALED), 1.0),
    "sub, of itself made otherwise": ("sub", (SCALED, TERMS), 1.0 + 1.0 / WIDE),
    "div": ("div", (SCALED, NUMBERS), 1.0 / 8.0),
    "tanh": ("tanh", (SCALED,), 1.0),
    "where": ("where", (EXACT[0], SCALED, NUMBERS), 0.0),
}


@pytest.mark.parametrize(("op", "slots", "slope"), ENTRIES.values(), ids=ENTRIES)
@pytest.mark.parametrize("place", [0, 1, 2, 3, 4, 5])
def test_each_entry_is_doubted_by_itself(op: str, slots: tuple[int, ...], slope: float, place: int) -> None:
    """Two rows of three entries, of which one is made of the doubtful number."""
    views = []
    for slot in slots:
        entries = [EXACT[1]] * 6
        entries[place] = slot
        views.append(gathered(entries[:3], entries[3:]))
    instruction = Instruction(op, SIZE, 2, 3, tuple(views))
    numbers, whole = {NUMBERS: 8.0, EXACT[0]: 0.0, EXACT[1]: 1.0}, reach_of(SCALED, (), {}, SIZE)
    for entry in range(6):
        expected = slope * whole if entry == place else 0.0
        reach = reach_of(SIZE + entry, (instruction,), numbers, SIZE + 6)
        assert reach == pytest.approx(expected, rel=0.03, abs=1e-14)  # what tanh rounds by itself, of 1


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("row", [0, 1, 2])
def test_only_products_with_a_doubtful_row_are_doubted(row: int, side: int) -> None:
    """A matrix of three rows by three rows, of which one is doubtful on one side."""
    rows = [[EXACT[1], EXACT[1]] for _ in range(3)]
    rows[row] = [EXACT[1], SCALED]
    views = [gathered([EXACT[0], EXACT[2]], [EXACT[0], EXACT[2]], [EXACT[0], EXACT[3]]), gathered(*rows)]
    instruction = Instruction("matmul", SIZE, 3, 3, tuple(views if side else views[::-1]))
    numbers, whole = {EXACT[2]: 4.0, EXACT[3]: 8.0}, reach_of(SCALED, (), {}, SIZE)
    for i in range(3):
        for j in range(3):
            out, beside = (SIZE + 3 * j + i, j) if side else (SIZE + 3 * i + j, j)
            expected = (8.0 if beside == 2 else 4.0) * whole if i == row else 0.0
            reach = reach_of(out, (instruction,), numbers, SIZE + 9)
            assert reach == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("taken", [0, 1, 2])
def test_the_doubt_about_a_row_is_taken_with_it(taken: int) -> None:
    table = gathered([NUMBERS, SCALED], [NUMBERS, NUMBERS], [SCALED, NUMBERS])
    numbers, whole = {EXACT[0]: 1.0, EXACT[1]: float(taken)}, reach_of(SCALED, (), {}, SIZE)
    instruction = Instruction("take", SIZE, 2, 2, (table, View(2, 1, EXACT[0], 1, 1)))
    reaches = [reach_of(SIZE + entry, (instruction,), numbers, SIZE + 4) for entry in range(4)]
    expected = [0.0, 0.0, *{0: (0.0, whole), 1: (0.0, 0.0), 2: (whole, 0.0)}[taken]]
    assert reaches == pytest.approx(expected, rel=0.03)


def test_a_masked_row_doubts_what_it_looks_at() -> None:
    """A softmax whose rows are shorter than the table: behind their ends there is nothing, without a doubt."""
    table = gathered([NUMBERS, SCALED, NUMBERS], [NUMBERS, NUMBERS, SCALED])
    instruction = Instruction("softmax", SIZE, 2, 3, (table,), (), slot_array([2, 2]))
    whole = reach_of(SCALED, (), {}, SIZE)
    reaches = [reach_of(SIZE + entry, (instruction,), {}, SIZE + 6) for entry in range(6)]
    assert reaches == pytest.approx([whole / 4, whole / 4, 0.0, 0.0, 0.0, 0.0], rel=0.03, abs=1e-13)


def test_calls_row_by_row() -> None:
    table = gathered([NUMBERS, NUMBERS], [SCALED, NUMBERS], [NUMBERS, SCALED])
    instruction = Instruction("call", SIZE, 3, 1, (table,), (0.0, 0.0))
    whole = reach_of(SCALED, (), {}, SIZE)
    reaches = [reach_of(SIZE + row, (instruction,), {}, SIZE + 3) for row in range(3)]
    assert reaches == pytest.approx([0.0, whole, 2.0 * whole], rel=0.03)


# ---------------------------------------------------------------- edges


def reach_at_edge(instructions: tuple[Instruction, ...], numbers: dict[int, float], size: int) -> float:
    """How far from an edge a number may be that is moved by BOUND without being told on which side it is."""
    executor = make(begun(*instructions, size=size))

    def is_undecided(offset: float) -> bool:
        applies = executor.run(np.array(given(numbers | {BOUND: offset})))
        assert applies is not executor.undecided
        return executor.undecided

    return largest_offset(is_undecided)


@pytest.mark.parametrize("op", ["relu", "abs", "maximum", "clamp"])
@pytest.mark.parametrize("place", [0, 1, 2, 3, 4, 5])
def test_an_edge_is_near_for_one_entry_of_many(op: str, place: int) -> None:
    """Where the number that it looks at is not known well enough, and the others are far from it."""
    moved = Instruction("sub", SIZE, 1, 1, (View(1, 1, SCALED), View(1, 1, BOUND)))
    entries = [EXACT[1]] * 6
    entries[place] = SIZE
    operands = [gathered(entries[:3], entries[3:])]
    if op == "maximum":
        operands.append(View(2, 3, EXACT[0], 0, 0))
    kinked = Instruction(op, SIZE + 1, 2, 3, tuple(operands), (0.0, 2.0) if op == "clamp" else ())
    reach = reach_at_edge((moved, kinked), {EXACT[1]: 1.0}, SIZE + 7)
    assert reach == pytest.approx(reach_of(SCALED, (), {}, SIZE), rel=0.03)


@pytest.mark.parametrize("op", ["largest", "smallest", "norm"])
@pytest.mark.parametrize(("row", "place"), [(0, 0), (0, 3), (1, 0), (1, 1), (1, 3)])
def test_an_edge_is_near_in_one_row_of_many(op: str, row: int, place: int) -> None:
    far = {"largest": -8.0, "smallest": 8.0, "norm": 0.0}[op]
    rows = [[EXACT[0], EXACT[1], EXACT[1], EXACT[1]] for _ in range(2)]
    rows[row] = [EXACT[1]] * 4
    rows[row][place], rows[row][place - 1] = SCALED, BOUND
    kinked = Instruction(op, SIZE, 2, 1, (gathered(*rows),))
    reach = reach_at_edge((kinked,), {EXACT[0]: 1.0 if op == "norm" else 0.0, EXACT[1]: far}, SIZE + 2)
    assert reach == pytest.approx(reach_of(SCALED, (), {}, SIZE), rel=0.03)


@pytest.mark.parametrize("op", ["largest", "maximum"])
def test_the_larger_of_a_number_and_itself_is_known(op: str) -> None:
    """And not that of two that happen to be equal."""
    again = Instruction("sub", SIZE, 1, 1, (View(1, 1, SCALED), View(1, 1, NUMBERS)))
    for other, is_known in ((SCALED, True), (SIZE, False)):
        views = (gathered([SCALED, other]),) if op == "largest" else (View(1, 1, SCALED), View(1, 1, other))
        executor = make(begun(again, Instruction(op, SIZE + 1, 1, 1, views), size=SIZE + 2))
        assert executor.run(np.array([*PARTS[:-1], 0.25, *given({})[20:]])) is is_known


@pytest.mark.parametrize(
    "op", ["relu", *(row.name for row in COMPOSITES.values() if row.chooses or row.edges is not nowhere)]
)
@pytest.mark.parametrize("lane", range(11))
def test_in_a_batch_only_the_example_that_is_too_close_is_undecided(lane: int, op: str) -> None:
    """To a bound, or to an edge; further away none is."""
    whole, outputs = reach_of(SCALED, (), {}, SIZE), 2 if op in OPS or COMPOSITES[op].per_entry else 1
    far = {BOUND: 1.0, NUMBERS: 1.0, EXACT[1]: 1.0 if op in OPS else 0.0}
    instructions = (
        Instruction("sub", SIZE, 1, 1, (View(1, 1, SCALED), View(1, 1, NUMBERS))),
        Instruction(op, SIZE + 1, 1, outputs, (gathered([EXACT[1], SIZE]),)),
    )
    executor = make(begun(*instructions, guards=(Guard(SCALED, "<=", BOUND, True),), size=SIZE + 1 + outputs))
    for slot in (BOUND, NUMBERS):
        for offset, expected in ((whole / 2, [lane]), (whole * 2, [])):
            examples = [given(far) for _ in range(11)]
            examples[lane] = given(far | {slot: offset})
            assert expected == executor.run_batch(np.array(examples), (), np.empty((11, 1)))


# ---------------------------------------------------------------- what is worth asking


@pytest.mark.parametrize("seed", range(40))
def test_large_numbers_that_cancel_are_seen_wherever_they_are(seed: int) -> None:
    """Among arguments or leaves, before or after them, behind a small sum; a leaf may become large later on."""
    rng = random.Random(seed)
    count, slots = 300, rng.sample(range(300), 3)
    inputs = list(range(count)) if seed % 2 else rng.sample(range(count), count)
    arguments = rng.choice([0, 1, 100, 297, 300])
    instructions = (
        Instruction("sum", count, 1, 1, (gathered(rng.sample(range(count), 3)),)),
        Instruction("sum", count + 1, 1, 1, (gathered(slots),)),
    )
    initial = np.zeros(count + 4)
    initial[count + 2 :] = 0.5, math.inf
    guards = Guard(count, "<", count + 3, True), Guard(count + 1, ">", count + 2, True)
    program = Program(count + 4, initial, slot_array(inputs), slot_array([count + 1]), instructions, guards)
    executor, leaves = make(program), tuple(native.Value(0.25) for _ in range(count - arguments))
    for numbers in ([0.25] * 3, [1e16, 1.0, -1e16], [0.25] * 3):
        numbers = rng.sample(numbers, 3)
        for place, slot in enumerate(inputs):
            if slot in slots and place >= arguments:
                leaves[place - arguments].data = numbers[slots.index(slot)]
        first = [numbers[slots.index(slot)] if slot in slots else 0.25 for slot in inputs[:arguments]]
        executor.run_values(np.array(first), leaves)
        assert (1.0 in numbers) is executor.undecided


@pytest.mark.parametrize("large", [(4, 5, 6), (126, 127, 128), (129, 130, 131), (197, 198, 199), (5, 100, 199)])
def test_large_numbers_that_cancel_are_seen_however_far_from_their_sum(large: tuple[int, ...]) -> None:
    """Another sum was compared before, when the numbers up to there were looked at."""
    instructions = (
        Instruction("sum", 3, 1, 1, (View(1, 3, 0, 0, 1),)),
        Instruction("sum", 200, 1, 1, (gathered([*large, 150]),)),
    )
    guards = Guard(3, ">", 7, True), Guard(200, ">", 7, True)
    inputs = [slot for slot in range(200) if slot != 3]
    program = Program(201, np.zeros(201), slot_array(inputs), slot_array([200]), instructions, guards)
    executor = make(program)
    numbers = dict.fromkeys(inputs, 0.25) | {7: -5.0}  # the bound
    assert executor.run(np.array([*numbers.values()]))
    numbers |= dict(zip(large, (1e16, 1.0, -1e16), strict=True))
    executor.run(np.array([*numbers.values()]))
    assert executor.undecided


def test_large_numbers_that_cancel_are_seen_in_whatever_a_batch_is_given() -> None:
    """Leaves as Values, then others as numbers."""
    instruction = Instruction("sum", 4, 1, 1, (View(1, 4, 0, 0, 1),))
    initial, guards = np.array([0.0] * 5 + [-5.0]), (Guard(4, ">", 5, True),)
    program = Program(6, initial, slot_array(range(4)), slot_array([4]), (instruction,), guards)
    executor, leaves = make(program), tuple(native.Value(0.25) for _ in range(3))
    for _ in range(2):
        assert executor.run_values([0.25], leaves)
        assert executor.run_batch(np.full((9, 1), 0.25), np.array([1e16, 1.0, -1e16]), np.empty((9, 1))) == [*range(9)]


def test_what_fails_without_a_doubt_is_for_another_program() -> None:
    """Whatever else is too close to tell, before it or after it."""
    close, wrong = Guard(SCALED, "<=", BOUND, True), Guard(NUMBERS, ">", NUMBERS + 1, True)
    for guards in ((close, wrong), (wrong, close)):
        executor = make(begun(guards=guards))
        assert not executor.run(np.array(given({NUMBERS: 1.0})))
        assert executor.undecided
        assert not executor.run(np.array(given({NUMBERS + 1: 1.0})))
        assert not executor.undecided


def test_a_call_asks_of_no_number_that_comes_after_it() -> None:
    """Not even beside one that came before, where another one is too close to tell."""
    call = Instruction("call", SIZE, 1, 1, (View(1, 1, NUMBERS),), (0.0, 2.0))
    later = Instruction("neg", SIZE + 1, 1, 1, (View(1, 1, NUMBERS),))
    guards = Guard(SCALED, "<=", BOUND, True), Guard(SIZE + 1, "<", NUMBERS, True)
    executor = make(begun(call, later, guards=guards, size=SIZE + 2), functions=(Weighted(),))
    assert not executor.run(np.array(given({})))
    assert executor.undecided


def test_no_call_is_made_where_a_comparison_before_it_fails() -> None:
    """Also where another one, before it too, waits for a number that comes later."""
    seen = []

    class Seen:
        @staticmethod
        def evaluated(xs: list[float]) -> tuple[float, list[float]]:
            seen.append(xs)
            return xs[0], [1.0]

    call = Instruction("call", SIZE, 1, 1, (View(1, 1, NUMBERS),), (0.0, 2.0))
    later = Instruction("neg", SIZE + 1, 1, 1, (View(1, 1, NUMBERS),))
    guards = Guard(SIZE + 1, "<", BOUND, True), Guard(NUMBERS, ">", BOUND, True)
    executor = make(begun(call, later, guards=guards, size=SIZE + 2), functions=(Seen(),))
    assert [executor.run(np.array(given({NUMBERS: number}))) for number in (1.0, -1.0)] == [True, False]
    assert seen == [[1.0]]
