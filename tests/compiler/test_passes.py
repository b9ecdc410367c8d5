"""Each pass alone, on graphs of a few nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from comparing import close, ops_of, program_numbers
from flats import flat_of

from gradwalk.compiler.constants import with_folded_constants, with_shared_constants, without_identities
from gradwalk.compiler.dead_code import without_dead_code, without_dead_users
from gradwalk.compiler.flat import Flat
from gradwalk.compiler.grouping import alike, grouped, with_zero
from gradwalk.compiler.holes import keeping_holes
from gradwalk.compiler.layout import best_width
from gradwalk.compiler.levels import latest_levels, levels
from gradwalk.compiler.matrices import NOBODY, matrix_products
from gradwalk.compiler.rolling import rolled_up, step_by_step
from gradwalk.compiler.softmaxes import with_softmaxes
from gradwalk.compiler.sources import split_by_source
from gradwalk.compiler.strided import strided_view, view_of
from gradwalk.compiler.subexpressions import with_shared_subexpressions
from gradwalk.compiler.sums import with_fused_sums, without_lonely


@pytest.mark.parametrize(("dead", "left"), [(("exp", 0), 3), (("constant", 2.0), 4)])
def test_constants_that_nobody_needs_may_stay_but_no_user(dead: tuple[object, ...], left: int) -> None:
    """A user would be counted among those of what it uses."""
    flat = without_dead_users(flat_of([dead, ("mul", 0, 1)], inputs=2, outputs=[3]))
    assert flat.size == left


def test_dead_code_goes_with_what_only_it_used() -> None:
    flat = flat_of([("exp", 0), ("sin", 2), ("mul", 0, 1)], inputs=2, outputs=[4])
    assert ops_of(without_dead_code(flat)) == ["mul"]


def test_what_a_guard_compares_is_not_dead() -> None:
    flat = flat_of([("exp", 0), ("mul", 0, 0)], inputs=1, outputs=[2], guards=[(1, "<", 0, True)])
    assert ops_of(without_dead_code(flat)) == ["exp", "mul"]


def test_a_long_and_wide_dead_part_goes() -> None:
    wide = [("exp", 0) for _ in range(200)]
    deep = [("sin", 200 + i) for i in range(300)]
    assert ops_of(without_dead_code(flat_of([*wide, *deep, ("cos", 0)], inputs=1, outputs=[501]))) == ["cos"]


def test_inputs_stay_though_unused() -> None:
    flat = without_dead_code(flat_of([("exp", 1)], inputs=3, outputs=[3]))
    assert flat.inputs.tolist() == [0, 1, 2]


def test_equal_constants_become_one() -> None:
    nodes = [("constant", 2.0), ("constant", 2.0), ("mul", 0, 1), ("mul", 0, 2), ("add", 3, 4)]
    flat = without_dead_code(with_shared_constants(flat_of(nodes, inputs=1, outputs=[5])))
    assert flat.size == 5


def test_zero_and_minus_zero_stay_apart() -> None:
    nodes = [("constant", 0.0), ("constant", -0.0), ("copysign", 0, 1), ("copysign", 0, 2), ("add", 3, 4)]
    flat = without_dead_code(with_shared_constants(flat_of(nodes, inputs=1, outputs=[5])))
    assert flat.size == 6


def test_constants_fold() -> None:
    nodes = [("constant", 3.0), ("constant", 4.0), ("mul", 1, 2), ("exp", 3), ("add", 0, 4)]
    flat = without_dead_code(with_folded_constants(flat_of(nodes, inputs=1, outputs=[5])))
    assert ops_of(flat) == ["add"]
    assert np.exp(12.0) == flat.given(np.array([1]))[0, 0]


@pytest.mark.parametrize(
    "node", [("mul", 0, 1), ("mul", 1, 0), ("div", 0, 1), ("pow_number", 0, (1.0,)), ("mean", 0), ("take", 0, (5.0,))]
)
def test_identities_go(node: tuple[object, ...]) -> None:
    flat = without_identities(flat_of([("constant", 1.0), node, ("exp", 2)], inputs=1, outputs=[3]))
    assert ops_of(without_dead_code(flat)) == ["exp"]


def test_one_divided_by_x_is_no_identity() -> None:
    flat = without_identities(flat_of([("constant", 1.0), ("div", 1, 0)], inputs=1, outputs=[2]))
    assert ops_of(without_dead_code(flat)) == ["div"]


def test_equal_chains_become_one() -> None:
    chains = [("exp", 0), ("exp", 0), ("sin", 1), ("sin", 2), ("mul", 3, 4)]
    flat = without_dead_code(with_shared_subexpressions(flat_of(chains, inputs=1, outputs=[5])))
    assert ops_of(flat) == ["exp", "sin", "mul"]


def test_nodes_with_other_parameters_are_not_equal() -> None:
    nodes = [("pow_number", 0, (2.0,)), ("pow_number", 0, (3.0,)), ("add", 1, 2)]
    flat = without_dead_code(with_shared_subexpressions(flat_of(nodes, inputs=1, outputs=[3])))
    assert flat.size == 4


def test_operands_in_another_order_are_not_equal() -> None:
    nodes = [("sub", 0, 1), ("sub", 1, 0), ("mul", 2, 3)]
    assert without_dead_code(with_shared_subexpressions(flat_of(nodes, inputs=2, outputs=[4]))).size == 5


def summed(*, bias: bool) -> Flat:
    """0 + w0 x0 + w1 x1 (+ b), as Python's sum writes it; the inputs are w0, w1, x0, x1, b."""
    nodes = [("constant", 0.0), ("mul", 0, 2), ("add", 5, 6), ("mul", 1, 3), ("add", 7, 8)]
    return flat_of([*nodes, ("add", 9, 4)] if bias else nodes, inputs=5, outputs=[10 if bias else 9])


def test_a_sum_of_products_is_a_dot() -> None:
    flat = without_dead_code(with_fused_sums(summed(bias=False)))
    assert ops_of(flat) == ["dot"]
    assert flat.children.tolist() == [0, 1, 2, 3]


def test_a_bias_is_added_to_the_dot() -> None:
    fused = with_fused_sums(summed(bias=True))
    flat = without_dead_code(without_lonely(fused, levels(fused)))
    assert ops_of(flat) == ["dot", "add"]


def test_a_product_used_twice_is_not_absorbed() -> None:
    nodes = [("mul", 0, 1), ("mul", 1, 2), ("add", 3, 4), ("exp", 3), ("mul", 5, 6)]
    flat = with_fused_sums(flat_of(nodes, inputs=3, outputs=[7]))
    assert ops_of(flat) == ["mul", "mul", "add", "exp", "mul"]


def test_an_add_that_is_a_result_is_not_absorbed() -> None:
    nodes = [("add", 0, 1), ("add", 3, 2)]
    assert ops_of(with_fused_sums(flat_of(nodes, inputs=3, outputs=[4, 3]))) == ["add", "add"]


def test_x_plus_x_keeps_both() -> None:
    flat = flat_of([("mul", 0, 0), ("add", 1, 1)], inputs=1, outputs=[2])
    assert close([18.0, 12.0], program_numbers(rolled_up(flat), [3.0]))


def test_many_plain_terms_get_a_sum_of_their_own() -> None:
    nodes = [("mul", 0, 1), ("mul", 1, 2), ("add", 3, 4)]
    terms = [("exp", 0), ("sin", 0), ("cos", 0), ("tanh", 0), ("atan", 0), ("sinh", 0), ("cosh", 0), ("erf", 0)]
    chain = [("add", 5 if i == 0 else 13 + i, 6 + i) for i in range(8)]
    flat = with_fused_sums(flat_of([*nodes, *terms, *chain], inputs=3, outputs=[21]))
    assert ops_of(flat)[-3:] == ["dot", "sum", "add"]


def test_a_short_sum_beside_a_long_one_stays_a_sum() -> None:
    nodes = [("sum", 0), ("sum", 0, 1, 2), ("mul", 3, 4)]
    flat = flat_of(nodes, inputs=3, outputs=[5])
    assert ops_of(without_lonely(flat, levels(flat))) == ["sum", "sum", "mul"]
    alone = flat_of([("sum", 0), ("exp", 3)], inputs=3, outputs=[4])
    assert ops_of(without_dead_code(without_lonely(alone, levels(alone)))) == ["exp"]


def test_levels_from_below_and_from_above() -> None:
    flat = flat_of([("exp", 0), ("sin", 1), ("cos", 0), ("mul", 2, 3)], inputs=1, outputs=[4])
    level = levels(flat)
    assert level.tolist() == [0, 1, 2, 1, 3]
    latest = latest_levels(flat, level)
    assert latest[3] == latest[2] == latest[4] - 1


def test_nodes_of_one_level_and_operation_are_a_group() -> None:
    flat, zero = with_zero(flat_of([("exp", i) for i in range(4)] + [("sin", 0)], inputs=4, outputs=[4, 5, 6, 7, 8]))
    groups = grouped(flat, alike(flat, levels(flat)), zero)
    assert {group.op: group.nodes.size for group in groups} == {"exp": 4, "sin": 1}


def test_sums_of_different_length_are_padded_with_zeros() -> None:
    flat, zero = with_zero(flat_of([("sum", 0, 1, 2), ("sum", 1, 2)], inputs=3, outputs=[3, 4]))
    [group] = grouped(flat, alike(flat, levels(flat)), zero)
    assert [[0, 1, 2], [1, 2, zero]] == group.operands[0].tolist()


def test_the_padding_of_largest_gets_no_gradient() -> None:
    flat = flat_of([("largest", 0, 1, 2), ("largest", 1, 2)], inputs=3, outputs=[3, 4])
    program = rolled_up(flat)
    assert len(program.instructions) == 1
    assert program_numbers(program, [1.0, 5.0, 5.0]) == [5.0, 5.0, 0.0, 2.0, 0.0]


def products(rows: int, columns: int, length: int, *, without: int = 0, every: int = 1) -> Flat:
    """Dots of every row of one matrix with every row of another, the last `without` left out, or most of them."""
    left = [[r * length + k for k in range(length)] for r in range(rows)]
    right = [[(rows + c) * length + k for k in range(length)] for c in range(columns)]
    nodes = [("dot", *a, *b) for a in left for b in right][: rows * columns - without : every]
    inputs = (rows + columns) * length
    return flat_of(nodes, inputs=inputs, outputs=[inputs + i for i in range(len(nodes))])


def test_every_row_with_every_column_is_a_matrix_product() -> None:
    flat = products(4, 5, 3)
    groups, rest = matrix_products(flat, np.arange(27, 47), zero=0)
    assert ([(group.op, group.nodes.shape) for group in groups], len(rest)) == ([("matmul", (4, 5))], 0)


@pytest.mark.parametrize(("products", "left_over"), [(8, 0), (9, 9 * 16)])
def test_many_small_products_are_better_off_as_dots(products: int, left_over: int) -> None:
    """Of 16 each: up to 8 are products."""
    nodes = [
        ("dot", *(24 * k + 3 * i + j for j in range(3)), *(24 * k + 12 + 3 * c + j for j in range(3)))
        for k in range(products)
        for i in range(4)
        for c in range(4)
    ]
    inputs = 24 * products
    flat = flat_of(nodes, inputs=inputs, outputs=range(inputs, inputs + len(nodes)))
    flat, zero = with_zero(flat)
    groups, rest = matrix_products(flat, np.flatnonzero(flat.counts > 0), zero)
    assert (len(groups), len(rest)) == (0 if left_over else products, left_over)


@pytest.mark.parametrize("without", [1, 7])
def test_a_matrix_product_may_have_holes(without: int) -> None:
    groups, rest = matrix_products(products(5, 8, 3, without=without), np.arange(39, 79 - without), zero=0)
    assert ([np.count_nonzero(group.nodes == NOBODY) for group in groups], len(rest)) == ([without], 0)


def test_a_matrix_product_of_which_little_is_used_stays_dots() -> None:
    groups, rest = matrix_products(products(12, 12, 2, every=5), np.arange(48, 77), zero=0)
    assert (groups, len(rest)) == ([], 29)


@pytest.mark.parametrize("without", [0, 1])
def test_matrix_products_compute_the_dots(without: int) -> None:
    flat = products(4, 5, 3, without=without)
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=27).tolist()
    assert close(program_numbers(step_by_step(flat), numbers), program_numbers(rolled_up(flat), numbers))


def masked(positions: int, size: int, *, side: int, softmax: bool) -> Flat:
    """For each position, dots of its own weights, or their softmax, with the beginnings of rows that all share."""
    nodes: list[tuple[object, ...]] = []
    inputs = positions * (positions + 1) // 2 + size * positions
    outputs = []
    for position in range(positions):
        length, first = position + 1, position * (position + 1) // 2
        weights = list(range(first, first + length))
        if softmax:
            nodes += [("softmax", *weights, (float(entry),)) for entry in range(length)]
            weights = list(range(inputs + len(nodes) - length, inputs + len(nodes)))
        for row in range(size):
            start = inputs - (size - row) * positions
            shared = list(range(start, start + length))
            nodes.append(("dot", *weights, *shared) if side else ("dot", *shared, *weights))
            outputs.append(inputs + len(nodes) - 1)
    return flat_of(nodes, inputs=inputs, outputs=outputs)


@pytest.mark.parametrize("softmax", [False, True])
@pytest.mark.parametrize("side", [0, 1])
def test_rows_that_a_mask_cuts_short_are_one_product(side: int, softmax: bool) -> None:
    flat = masked(6, 4, side=side, softmax=softmax)
    program = rolled_up(flat)
    assert [each.op for each in program.instructions] == ["softmax"] * softmax + ["matmul"]
    for each in program.instructions:
        assert np.array_equal(each.lengths, [1, 2, 3, 4, 5, 6])
    assert (program.instructions[-1].operands[0].index is None) == softmax  # what is behind a row is 0 already
    numbers = np.random.default_rng(1).normal(size=len(flat.inputs)).tolist()
    assert close(program_numbers(step_by_step(flat), numbers), program_numbers(program, numbers))


def test_cut_rows_of_which_little_is_used_stay_dots() -> None:
    """Each row of weights meets two of thirteen that it could meet."""
    starts = np.cumsum([0, *range(2, 14)]).tolist()  # of weights of length 2 to 13; then thirteen rows of 14
    nodes: list[tuple[object, ...]] = []
    for position, start in enumerate(starts[:-1]):
        for row in (position, position + 1):
            shared = range(starts[-1] + 14 * row, starts[-1] + 14 * row + position + 2)
            nodes.append(("dot", *range(start, start + position + 2), *shared))
    inputs = starts[-1] + 13 * 14
    flat = flat_of(nodes, inputs=inputs, outputs=list(range(inputs, inputs + len(nodes))))
    program = rolled_up(flat)
    assert "matmul" not in [each.op for each in program.instructions]
    numbers = np.random.default_rng(1).normal(size=inputs).tolist()
    assert close(program_numbers(step_by_step(flat), numbers), program_numbers(program, numbers))


@pytest.mark.parametrize(("twice", "holes"), [(False, 1), (True, 0)])
def test_holes_are_kept_where_every_entry_is_read_once(twice: bool, holes: int) -> None:
    """Where one is read twice, as in a graph with equal nodes in it, and another not at all, all are gathered."""
    dots = products(5, 8, 3, without=1)
    read = [int(node) for node in dots.outputs]
    nodes = [("dot", *dots.children[dots.starts[node] : dots.starts[node + 1]].tolist()) for node in read]
    nodes += [("neg", read[max(i, int(twice))]) for i in range(len(read))]
    flat, zero = with_zero(flat_of(nodes, inputs=39, outputs=list(range(dots.size, dots.size + len(read)))))
    made = keeping_holes(flat, split_by_source(flat, grouped(flat, alike(flat, levels(flat)), zero)))
    assert [np.count_nonzero(group.nodes == NOBODY) for group in made] == [1, holes]


def test_rows_that_begin_alike_and_go_on_otherwise_are_no_cut_rows() -> None:
    flat = masked(6, 4, side=1, softmax=False)
    children = flat.children.copy()
    node = int(flat.outputs[8])  # of position 2: its last factor is another number
    children[flat.starts[node + 1] - 1] = 0
    flat = replace(flat, children=children)
    numbers = np.random.default_rng(1).normal(size=len(flat.inputs)).tolist()
    assert close(program_numbers(step_by_step(flat), numbers), program_numbers(rolled_up(flat), numbers))


@pytest.mark.parametrize(("count", "groups"), [(64, 3), (10, 2)])
def test_a_long_group_is_split_by_where_it_reads(count: int, groups: int) -> None:
    """x - y and exp(x) - y are two loops; alternating in one group, both would be gathered."""
    nodes: list[tuple[object, ...]] = [("exp", i) for i in range(count)]
    for i in range(count):
        nodes += [("sub", i, count + i), ("sub", 2 * count + i, count + i)]
    outputs = list(range(3 * count, 5 * count))
    flat, zero = with_zero(flat_of(nodes, inputs=2 * count, outputs=outputs))
    level = np.where(flat.op == flat.op[outputs[0]], 2, levels(flat))  # as high as they may be
    made = split_by_source(flat, grouped(flat, alike(flat, level), zero))
    assert groups == len(made)
    assert [group.nodes.ravel().tolist() for group in made[1:]] == (
        [outputs[::2], outputs[1::2]] if groups == 3 else [outputs]
    )


def test_what_reads_a_split_group_is_split_too() -> None:
    """Each part is a source of its own: what alternates between two of them would be gathered."""
    count = 64
    nodes: list[tuple[object, ...]] = [("exp", i) for i in range(count)]
    for i in range(count):
        nodes += [("sub", i, count + i), ("sub", 2 * count + i, count + i)]
    nodes += [("neg", 3 * count + i) for i in range(2 * count)]
    for i in range(0, 2 * count, 2):
        nodes += [("sin", 3 * count + i), ("sin", 5 * count + i)]
    flat, zero = with_zero(flat_of(nodes, inputs=2 * count, outputs=list(range(7 * count, 9 * count))))
    level = np.select([flat.is_op(name) for name in ("exp", "sub", "neg", "sin")], [1, 2, 3, 4])
    made = split_by_source(flat, grouped(flat, alike(flat, level), zero))
    assert [group.op for group in made] == ["exp", "sub", "sub", "neg", "neg", "sin", "sin"]


@pytest.mark.parametrize("rows", [4, 40])
def test_slots_that_go_back_are_not_strided(rows: int) -> None:
    """However many there are, and in whichever direction."""
    slots = np.arange(3 * rows).reshape(rows, 3)
    assert strided_view(slots) is not None
    assert strided_view(slots[::-1]) is None
    assert strided_view(slots[:, ::-1]) is None


def test_a_grid_of_slots_is_strided() -> None:
    view = strided_view(np.array([[4, 6, 8], [14, 16, 18]]))
    assert view is not None
    assert (view.start, view.row_stride, view.column_stride) == (4, 10, 2)
    assert strided_view(np.array([[4, 6, 9]])) is None


def test_what_is_regular_in_more_than_two_directions_is_in_loops() -> None:
    """As the heads of attention are: a part of each row of a product, for one head after the other."""
    slots = 7 + np.arange(2 * 3 * 4).reshape(3, 2, 4).transpose(1, 0, 2).reshape(6, 4)
    view = view_of(slots)
    assert (view.start, view.loops, view.index) == (7, ((2, 4), (3, 8), (4, 1)), None)
    assert view.slots.tolist() == slots.tolist()
    slots[5, 3] += 1
    assert view_of(slots).index is not None


def test_the_width_follows_a_repeated_operand() -> None:
    assert best_width([np.arange(6), np.array([9, 9, 9, 10, 10, 10])]) == 3


def test_matrices_of_a_product_are_strided() -> None:
    program = rolled_up(products(4, 5, 3))
    assert [view.index for view in program.instructions[0].operands] == [None, None]


def test_what_is_wide_begins_on_a_cache_line() -> None:
    """That is, on every eighth slot; three arguments and one sine are not wide."""
    nodes = [("sin", 0), *(("exp", i) for i in range(11))]
    program = rolled_up(flat_of(nodes, inputs=11, outputs=list(range(11, 23))), arguments=3)
    wide = [instruction for instruction in program.instructions if instruction.op == "exp"]
    assert [(instruction.out % 8, instruction.rows * instruction.columns) for instruction in wide] == [(0, 11)]
    assert program.inputs.tolist() == [0, 1, 2, *range(8, 16)]


@pytest.mark.parametrize(("rows", "columns", "found"), [(4, 4, 1), (3, 5, 0), (16, 1, 1), (15, 1, 0)])
def test_a_matrix_product_has_sixteen_dots_or_more(rows: int, columns: int, found: int) -> None:
    flat = products(rows, columns, 3)
    groups, rest = matrix_products(flat, flat.outputs, zero=0)
    assert (len(groups), len(rest)) == (found, 0 if found else rows * columns)


@pytest.mark.parametrize(("without", "found"), [(0, 1), (1, 0)])
def test_a_matrix_product_is_used_by_half(without: int, found: int) -> None:
    """Each of eight rows meets four of eight columns; or one of them one less."""
    pairs = [(row, (row + step) % 8) for row in range(8) for step in range(4)][without:]
    nodes = [("dot", 2 * row, 2 * row + 1, 16 + 2 * column, 17 + 2 * column) for row, column in pairs]
    flat = flat_of(nodes, inputs=32, outputs=range(32, 32 + len(nodes)))
    groups, rest = matrix_products(flat, flat.outputs, zero=0)
    assert (len(groups), len(rest)) == (found, 0 if found else len(nodes))


@pytest.mark.parametrize("op", ["dot", "cut"])
def test_a_dot_that_is_there_twice_is_in_no_product(op: str) -> None:
    """A product has one place for the two."""
    flat = products(4, 5, 3) if op == "dot" else masked(6, 4, side=1, softmax=False)
    first = int(flat.outputs[0])
    again = tuple(flat.children[flat.starts[first] : flat.starts[first + 1]].tolist())
    nodes = [("dot", *flat.children[flat.starts[node] : flat.starts[node + 1]].tolist()) for node in flat.outputs]
    inputs = len(flat.inputs)
    twice = flat_of([*nodes, ("dot", *again)], inputs=inputs, outputs=range(inputs, inputs + len(nodes) + 1))
    groups, rest = matrix_products(twice, twice.outputs, zero=0)
    assert sorted(twice.outputs.tolist()) == sorted([*rest.tolist(), *(n for g in groups for n in g.nodes.ravel())])


@pytest.mark.parametrize(("lengths", "found"), [((1, 1, 2, 4), 1), ((1, 1, 1, 4), 0)])
def test_rows_cut_short_are_used_by_half(lengths: tuple[int, ...], found: int) -> None:
    """By the entries that are there, of all there would be."""
    starts = np.cumsum([0, *lengths]).tolist()
    nodes = [
        ("dot", *range(start, start + length), *range(starts[-1] + 4 * row, starts[-1] + 4 * row + length))
        for start, length in zip(starts, lengths, strict=False)
        for row in range(4)
    ]
    inputs = starts[-1] + 16
    flat = flat_of(nodes, inputs=inputs, outputs=range(inputs, inputs + 16))
    groups, _ = matrix_products(flat, flat.outputs, zero=0)
    assert found == len([group for group in groups if group.lengths is not None])


def test_a_row_that_no_longest_meets_is_in_no_product_of_cut_rows() -> None:
    """There is no more of it than what meets the others."""
    lengths, heads = (2, 3, 3, 4, 4), 4
    starts = np.cumsum([0, *lengths]).tolist()
    nodes = [
        ("dot", *range(start, start + length), *range(starts[-1] + 4 * head, starts[-1] + 4 * head + length))
        for start, length in zip(starts, lengths, strict=False)
        for head in range(heads if length < 4 else heads - 1)
    ]
    inputs = starts[-1] + 4 * heads
    flat = flat_of(nodes, inputs=inputs, outputs=range(inputs, inputs + len(nodes)))
    groups, rest = matrix_products(flat, flat.outputs, zero=0)
    assert ([], len(nodes)) == (groups, len(rest))


@pytest.mark.parametrize(("side", "found"), [(8, 9), (7, 0)])
def test_nine_products_of_sixty_four_dots_are_worth_an_instruction_each(side: int, found: int) -> None:
    inputs, nodes = 9 * 4 * side, []
    for start in range(0, inputs, 4 * side):
        right = start + 2 * side
        nodes += [
            ("dot", start + 2 * i, start + 2 * i + 1, right + 2 * j, right + 2 * j + 1)
            for i in range(side)
            for j in range(side)
        ]
    flat = flat_of(nodes, inputs=inputs, outputs=range(inputs, inputs + len(nodes)))
    assert found == len(matrix_products(flat, flat.outputs, zero=0)[0])


@pytest.mark.parametrize(
    ("lengths", "groups"),
    [((4, 1, 1), [[3, 4, 5]]), ((5, 1, 1), [[3], [4, 5]]), ((9, 5, 1, 1), [[3, 4], [5, 6]]), ((3, 3), [[3, 4]])],
)
def test_sums_are_padded_to_twice_their_entries_at_most(lengths: tuple[int, ...], groups: list[list[int]]) -> None:
    """The longest first; those of one length stay together."""
    nodes = [("sum", *(i % 3 for i in range(length))) for length in lengths]
    flat, zero = with_zero(flat_of(nodes, inputs=3, outputs=range(3, 3 + len(nodes))))
    made = grouped(flat, alike(flat, levels(flat)), zero)
    assert groups == [group.nodes.ravel().tolist() for group in made]


@pytest.mark.parametrize(("wide", "out"), [(8, 16), (7, 11)])
def test_eight_numbers_are_wide(wide: int, out: int) -> None:
    nodes = [("exp", i) for i in range(wide)]
    program = rolled_up(flat_of(nodes, inputs=11, outputs=range(11, 11 + wide)), arguments=11)
    assert [out] == [instruction.out for instruction in program.instructions]


@pytest.mark.parametrize(("sources", "length", "groups"), [(8, 64, 8), (9, 64, 1), (2, 64, 2), (2, 63, 1), (3, 63, 1)])
def test_a_group_is_split_into_eight_parts_of_sixty_four_at_most(sources: int, length: int, groups: int) -> None:
    """Fewer entries, or more parts, are better off together."""
    makers = ["exp", "sin", "cos", "tanh", "atan", "sinh", "cosh", "erf", "expm1"][:sources]
    nodes: list[tuple[object, ...]] = [(op, i) for op in makers for i in range(length)]
    nodes += [("neg", length + source * length + i) for i in range(length) for source in range(sources)]
    count = sources * length
    flat, zero = with_zero(flat_of(nodes, inputs=length, outputs=range(length + count, length + 2 * count)))
    made = split_by_source(flat, grouped(flat, alike(flat, levels(flat)), zero))
    assert groups == len([group for group in made if group.op == "neg"])


@pytest.mark.parametrize(("rows", "first"), [(4, "right"), (6, "left")])
def test_the_larger_matrix_of_a_product_lies_first(rows: int, first: str) -> None:
    flat = products(rows, 5, 3)
    left, right = np.split(rolled_up(flat).inputs, [3 * rows])
    assert (left < right.min() if first == "left" else right < left.min()).all()


@pytest.mark.parametrize(("others", "op"), [(15, "softmax"), (14, "div")])
def test_a_softmax_may_double_what_there_is_to_read(others: int, op: str) -> None:
    """Sixteen entries have sixteen children each; its parts have 113, what stands beside it the others."""
    nodes: list[tuple[object, ...]] = [("largest", *range(16)), ("stop_gradient", 16)]
    nodes += [("sub", i, 17) for i in range(16)]
    nodes += [("exp", 18 + i) for i in range(16)]
    nodes += [("sum", *range(34, 50))]
    nodes += [("div", 34 + i, 50) for i in range(16)]
    nodes += [("sum", *range(others))]
    flat = with_softmaxes(flat_of(nodes, inputs=16, outputs=range(51, 68)))
    assert [op] * 16 == ops_of(flat)[-17:-1]


def test_cut_rows_of_which_little_is_used_leave_the_others_alone() -> None:
    """Of two families the first has weights of length 1 but for one, the second those of a mask."""
    nodes: list[tuple[object, ...]] = []
    for family, lengths in enumerate([(1, 1, 1, 4), (1, 2, 3, 4)]):
        weights, rows = 16 * family, 32 + 16 * family
        for place, length in enumerate(lengths):
            own = range(weights + 4 * place, weights + 4 * place + length)
            nodes += [("dot", *own, *range(rows + 4 * head, rows + 4 * head + length)) for head in range(4)]
    flat = flat_of(nodes, inputs=64, outputs=range(64, 96))
    groups, _ = matrix_products(flat, flat.outputs, zero=0)
    assert [group.lengths.tolist() for group in groups if group.lengths is not None] == [[1, 2, 3, 4]]


def test_the_parts_of_two_split_groups_are_sources_of_their_own() -> None:
    """Neither those of one another nor a group that was there before."""
    count = 64
    nodes: list[tuple[object, ...]] = [("exp", i) for i in range(count)]
    for i in range(count):
        nodes += [("sub", i, count + i), ("sub", 2 * count + i, count + i)]
    nodes += [("cos", 2 * count + i) for i in range(count)]  # from 5 count on
    nodes += [("neg", 3 * count + i) for i in range(2 * count)]  # from 6 count on
    for i in range(count):
        nodes += [("sin", 5 * count + i), ("sin", 6 * count + 2 * i)]
    flat, zero = with_zero(flat_of(nodes, inputs=2 * count, outputs=list(range(8 * count, 10 * count))))
    level = np.select([flat.is_op(name) for name in ("exp", "sub", "cos", "neg", "sin")], [1, 2, 3, 4, 5])
    made = split_by_source(flat, grouped(flat, alike(flat, level), zero))
    assert [group.op for group in made] == ["exp", "sub", "sub", "cos", "neg", "neg", "sin", "sin"]


@pytest.mark.parametrize("rows", [4, 40])
def test_one_row_over_and_over_is_strided(rows: int) -> None:
    """However many there are; and so is one column."""
    row, column = np.tile([5, 6, 7], (rows, 1)), np.tile(np.arange(rows)[:, None], (1, 3))
    strides = [view and (view.row_stride, view.column_stride) for view in map(strided_view, (row, column))]
    assert strides == [(0, 1), (1, 0)]
