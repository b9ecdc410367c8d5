"""The native executor against the eager engine: every kind of instruction and View."""

import gc
import math
import random
import sys
import threading
import weakref

import numpy as np
import pytest
from running_programs import (
    KERNELS,
    check,
    close,
    eager,
    functions,
    make,
    moved,
    native,
    numbers_for,
    program_of,
    run,
    slot_array,
    views_of,
)

from gradwalk import engine, ops
from gradwalk.compiler.program import Guard, Instruction, Program, View

pytestmark = pytest.mark.parametrize("kernels", KERNELS)

SHAPES = [(1, 1), (1, 3), (4, 1), (3, 5), (2, 8), (7, 9)]


@pytest.mark.parametrize("name", sorted(ops.OPS))
def test_table_rows(kernels, name):
    """Each op of the table, over each kind of View."""
    generator, op = random.Random(name), ops.OPS[name]
    sample = op.samples[0]
    sample = sample if isinstance(sample, tuple) else (sample,)
    for rows, columns in SHAPES:
        slots = 64
        for view in views_of(generator, slots, rows, columns):
            others = [generator.choice(views_of(generator, slots, rows, columns)) for _ in op.inputs[1:]]
            parameters = tuple(sample[len(op.inputs) :])

            def build(add, rows=rows, columns=columns, operands=(view, *others), parameters=parameters):
                add(name, rows, columns, *operands, parameters=parameters)

            low, high = (1.1, 3.0) if name == "acosh" else (0.1, 0.9)
            check(program_of(slots, build), kernels, numbers_for(generator, slots, low, high), generator)


@pytest.mark.parametrize("n", [2.0, 3.0, 0.5, 1.5, -1.0, -2.0, -0.5, -1.5, 4.0, -3.0, 0.3, 1.0, 0.0])
def test_powers_by_a_number(kernels, n):
    """Those with a kernel of their own and those without."""
    generator = random.Random(1)
    program = program_of(13, lambda add: add("pow_number", 1, 13, View(1, 13, 0, 13, 1), parameters=(n,)))
    check(program, kernels, numbers_for(generator, 13), generator)


@pytest.mark.parametrize(
    "op", ["sum", "mean", "norm", "logsumexp", "largest", "smallest", "softmax", "log_softmax", "rmsnorm", "layernorm"]
)
def test_row_ops(kernels, op):
    """One output a row, or one an entry, over each kind of View."""
    generator = random.Random(op)
    parameters = (1e-5,) if op.endswith("norm") and op != "norm" else ()
    for rows, k in [(1, 1), (3, 2), (5, 8), (4, 11), (2, 30), (8, 3), (19, 5)]:
        columns = k if op in ("softmax", "log_softmax", "rmsnorm", "layernorm") else 1
        for view in views_of(generator, 64, rows, k):
            if op == "layernorm" and view.index is None and (view.column_stride == 0 or k == 1):
                continue  # centred to rounding errors: no digits to compare

            def build(add, rows=rows, columns=columns, view=view):
                add(op, rows, columns, view, parameters=parameters)

            check(program_of(64, build), kernels, numbers_for(generator, 64, -2.0, 2.0), generator)


@pytest.mark.parametrize("op", ["logsumexp", "softmax", "log_softmax"])
def test_what_is_beside_a_row_of_one_entry_is_no_part_of_it(kernels, op):
    """Not even for its scale: a large number comes next."""
    program = program_of(2, lambda add: add(op, 1, 1, View(1, 1, 0)))
    check(program, kernels, [0.5, 2000.0], random.Random(op))


@pytest.mark.parametrize("scale", [5e-324, 1e-200, 1e200])
def test_the_length_of_what_has_no_squares_among_floats(kernels, scale):
    """Too small, or too large: it is that of the eager engine all the same."""
    program, row = program_of(2, lambda add: add("norm", 1, 1, View(1, 2, 0, 0, 1))), [3.0 * scale, -4.0 * scale]
    outputs, _ = run(make(program, kernels=kernels), program, row, [1.0])
    assert outputs.tolist() == pytest.approx([functions.norm(row)], rel=1e-15, abs=0.0)


@pytest.mark.parametrize("infinite", [-math.inf, math.inf])
def test_an_infinite_logarithm_is_the_end_of_no_program(kernels, infinite):
    """Its exponential is 0, on the side where it is; alone and in a batch."""

    def build(add):
        logarithm = add("logsumexp", 1, 1, View(1, 3, 0, 0, 1))
        side = add("mul", 1, 1, View(1, 1, logarithm), View(1, 1, 3))
        add("exp", 1, 1, View(1, 1, side))

    row = [infinite, -math.inf, -math.inf, 1.0 if infinite < 0.0 else -1.0]
    executor, alone, together = make(program_of(4, build), kernels=kernels), np.empty(1), np.empty((11, 1))
    assert executor.run(np.array(row))
    executor.outputs(alone)
    assert executor.run_batch(np.array([[0.0, 1.0, 2.0, -1.0], *[row] * 10]), (), together) == []
    assert [*alone, *together[1:].ravel()] == [0.0] * 11


@pytest.mark.parametrize("op", ["cross_entropy", "take"])
def test_whole_numbers_choose(kernels, op):
    """The target of a cross entropy and the row to take are inputs, without a gradient."""
    generator = random.Random(op)
    for rows, view in [(n, view) for n in (6, 11) for view in views_of(generator, 60, n, 5)]:
        columns = 1 if op == "cross_entropy" else 5

        def build(add, rows=rows, view=view, columns=columns):
            add(op, rows, columns, view, View(rows, 1, 60, 1, 0))

        inputs = [*numbers_for(generator, 60, -2.0, 2.0), *(float(generator.randrange(5)) for _ in range(rows))]
        check(program_of(60 + rows, build), kernels, inputs, generator)


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 5, 3), (8, 1, 16), (3, 4, 2), (5, 17, 9), (8, 27, 16), (9, 8, 12)])
def test_matrix_products(kernels, shape):
    """Rows × columns × depth, each kind of View on either side."""
    rows, columns, depth = shape
    generator = random.Random(str(shape))
    for a in views_of(generator, 480, rows, depth):
        b = generator.choice(views_of(generator, 480, columns, depth))
        check_product(kernels, generator, shape, a, b)
    for b in views_of(generator, 480, columns, depth):
        a = generator.choice(views_of(generator, 480, rows, depth))
        check_product(kernels, generator, shape, a, b)


@pytest.mark.parametrize("shape", [(1, 5, 3), (3, 4, 2), (8, 11, 16)])
def test_products_with_numbers_that_a_batch_shares(kernels, shape):
    """The second half of the inputs are leaves in check(): on the right, on the left, on both sides."""
    rows, columns, depth = shape
    generator = random.Random(str(shape))
    for a_by, b_by in [(0, 240), (240, 0), (240, 240)]:
        for a in views_of(generator, 240, rows, depth):
            b = generator.choice(views_of(generator, 240, columns, depth))
            check_product(kernels, generator, shape, moved(a, a_by), moved(b, b_by))
        for b in views_of(generator, 240, columns, depth):
            a = generator.choice(views_of(generator, 240, rows, depth))
            check_product(kernels, generator, shape, moved(a, a_by), moved(b, b_by))


def test_rows_of_a_table_that_a_batch_shares(kernels):
    """Other rows in each example; the table are the last of its inputs."""
    generator = random.Random(6)
    for table in views_of(generator, 70, 9, 7):

        def build(add, table=table):
            add("take", 11, 7, moved(table, 70), View(11, 1, 0, 1, 0))

        program = program_of(140, build)
        for examples in (8, 13, 16):
            given = np.array([[generator.randrange(9) for _ in range(70)] for _ in range(examples)], np.float64)
            numbers = numbers_for(generator, 70)
            leaves, seeds = tuple(map(native.Value, numbers)), np.array(numbers_for(generator, 77))
            outputs, summed = np.empty((examples, 77)), np.empty(70)
            assert make(program, kernels=kernels).run_batch(given, leaves, outputs, seeds, None, summed) == []
            each = [eager(program, [*example, *numbers], seeds) for example in given.tolist()]
            close([out for out, _ in each], outputs)
            close(np.sum([gradient[70:] for _, gradient in each], axis=0), summed)


def check_product(kernels, generator, shape, a, b):
    rows, columns, _ = shape
    program = program_of(480, lambda add: add("matmul", rows, columns, a, b))
    check(program, kernels, numbers_for(generator, 480, -1.0, 1.0), generator)


@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (20, 2), (3, 8), (2, 30)])
def test_dots(kernels, shape):
    """One sum of products a row."""
    rows, depth = shape
    generator = random.Random(str(shape))
    for a in views_of(generator, 64, rows, depth):
        for b in views_of(generator, 64, rows, depth):
            program = program_of(64, lambda add, a=a, b=b: add("dot", rows, 1, a, b))
            check(program, kernels, numbers_for(generator, 64, -1.0, 1.0), generator)


@pytest.mark.parametrize("fours", ["along", "across", "across the right"])
def test_dots_of_neighbours(kernels, fours):
    """Gathered pairs of which four lie side by side: along a row, or over four rows; in two rows one does not."""
    generator = random.Random(fours)
    for depth in (4, 12):
        rows = []
        for _ in range(6):
            starts = [(generator.randrange(60), generator.randrange(60)) for _ in range(depth)]
            if fours == "along":
                rows += [[(a + k, b + k) for a, b in starts[r : r + depth // 4] for k in range(4)] for r in range(4)]
            else:
                rows += [[(a, b + r) for a, b in starts] for r in range(4)]
        rows[5][1] = rows[17][3] = (7, 9)
        index = np.array(rows[:-1], np.int32)[:, :, :: -1 if fours == "across the right" else 1]
        views = [View(23, depth, index=index[:, :, side].copy()) for side in (0, 1)]
        program = program_of(64, lambda add, views=views: add("dot", 23, 1, *views))
        check(program, kernels, numbers_for(generator, 64, -1.0, 1.0), generator)


def test_long_operands(kernels):
    """Gathered operands longer than what is packed at a time."""
    generator = random.Random(3)
    index = slot_array([generator.randrange(700) for _ in range(1500)]).reshape(1500, 1)
    program = program_of(
        700, lambda add: add("mul", 1500, 1, View(1500, 1, index=index), View(1500, 1, index=index[::-1].copy()))
    )
    check(program, kernels, numbers_for(generator, 700), generator)


@pytest.mark.parametrize("op", ["mul", "dot", "softmax", "matmul"])
def test_gathered_constants(kernels, op):
    """Views that mix inputs and constants: only the inputs have gradients."""
    generator = random.Random(op)
    rows, columns = 30, 40
    views = [
        View(
            rows, columns, index=slot_array([generator.randrange(20) for _ in range(rows * columns)]).reshape(rows, -1)
        )
        for _ in range(1 if op == "softmax" else 2)
    ]
    out_columns = {"dot": 1, "matmul": rows}.get(op, columns)
    size = 20 + rows * out_columns
    initial = np.array([generator.uniform(-1.0, 1.0) for _ in range(size)])
    instruction = Instruction(op, 20, rows, out_columns, tuple(views))
    program = Program(size, initial, slot_array(range(10)), slot_array(range(20, size)), (instruction,))
    check(program, kernels, numbers_for(generator, 10, -1.0, 1.0), generator)


def test_constants(kernels):
    """A slot that nothing writes keeps its initial number, and gets no gradient."""
    program = Program(
        4, np.array([0.0, 0.0, 3.0, 0.0]), slot_array([0, 1]), slot_array([3]),
        (Instruction("dot", 3, 1, 1, (View(1, 2, 0, 0, 1), View(1, 2, 2, 0, 0))),),
    )  # fmt: skip
    outputs, gradients = run(make(program, kernels=kernels), program, [1.0, 2.0], [1.0])
    assert outputs.tolist() == [9.0]
    assert gradients.tolist() == [3.0, 3.0]


def test_an_executor_that_its_own_function_runs_again_does_not_wait_for_itself(kernels):
    class Again:
        @staticmethod
        def evaluated(xs):
            executor.run(np.ones(1))
            return xs[0], [1.0]

    program = Program(
        2, np.zeros(2), slot_array([0]), slot_array([1]), (Instruction("call", 1, 1, 1, (View(1, 1, 0),), (0.0, 0.0)),)
    )
    executor = make(program, kernels=kernels, functions=(Again(),))
    with pytest.raises(RecursionError, match="expected a custom_op that leaves the compiled function alone"):
        executor.run(np.ones(1))


class Product:
    """A function of one's own."""

    @staticmethod
    def evaluated(xs):
        return xs[0] * xs[-1], [xs[-1], *xs[:-1]]


def test_an_executor_that_its_leaves_refer_to_is_let_go_of(kernels):
    """It is older than the others in the circle, so that the collector begins with it."""

    class Own(native.Value):
        holder = None

    call = Instruction("call", 2, 1, 1, (View(1, 2, 0, 0, 1),), (0.0, 0.0))
    program = Program(3, np.zeros(3), slot_array([0, 1]), slot_array([2]), (call,))
    executor, leaf = make(program, kernels=kernels, functions=(Product(),)), Own(3.0)
    leaf.holder = executor
    assert executor.value([2.0], (leaf,)) == 6.0
    gone = weakref.ref(leaf)
    del executor, leaf
    gc.collect()
    assert gone() is None


def test_a_call_waits_for_no_number_that_comes_after_it(kernels):
    """The first sum is too close to 0 to tell, the second is not there yet."""
    terms = View(1, 20, 0, 0, 1)
    call = Instruction("call", 21, 1, 1, (View(1, 1, 0),), (0.0, 2.0))
    program = Program(
        24, np.zeros(24), slot_array(range(20)), slot_array([21]),
        (Instruction("sum", 20, 1, 1, (terms,)), call, Instruction("sum", 22, 1, 1, (terms,))),
        (Guard(20, ">=", 23, True), Guard(22, ">=", 23, True)),
    )  # fmt: skip
    executor = make(program, kernels=kernels, functions=(Product(),))
    assert executor.run(np.ones(20))
    assert not executor.undecided
    assert not executor.run(np.array([0.1, -0.1] * 10))
    assert executor.undecided


def test_arguments_in_a_list_are_numbers(kernels):
    program = program_of(2, lambda add: add("mul", 1, 1, View(1, 1, 0), View(1, 1, 1)))
    executor = make(program, kernels=kernels)
    with pytest.raises(TypeError, match="expected a list of floats and ints, got <class 'str'>"):
        executor.run_values([2.0, "3"], ())
    assert executor.value([2.0, 3], ()) == 6.0


def test_values(kernels):
    """Closed-over leaves are read from their Values, and gradients are added to theirs."""
    program = program_of(4, lambda add: add("dot", 1, 1, View(1, 2, 0, 0, 1), View(1, 2, 2, 0, 1)))
    leaves = (native.Value(5.0), native.Value(7.0))
    leaves[0].grad = 1.0
    executor, output = make(program, kernels=kernels), np.empty(1)
    assert executor.run_values(np.array([2.0, 3.0]), leaves)
    executor.outputs(output)
    assert output.tolist() == [31.0]
    assert executor.backward(np.array([2.0, 3.0]), leaves) == executor.value(np.array([2.0, 3.0]), leaves) == 31.0
    assert [leaf.grad for leaf in leaves] == [3.0, 3.0]
    all_gradients = np.empty(4)
    assert executor.value_and_gradients(np.array([1.0, 1.0]), leaves, all_gradients) == 12.0
    assert all_gradients.tolist() == [5.0, 7.0, 1.0, 1.0]


def test_a_second_thread_takes_half_of_a_batch(kernels):
    """The same numbers, whoever computes them."""
    generator = np.random.default_rng(1)
    rows, depth = 60, 200
    program = program_of(
        1 + rows * depth,
        lambda add: add("tanh", rows, 1, View(rows, 1, add("matmul", rows, 1, View(rows, depth, 1, depth, 1),
                                                          View(1, depth, 0, 0, 0)), 1, 1)),
    )  # fmt: skip
    leaves = tuple(native.Value(x) for x in generator.normal(size=rows * depth))
    arguments, seeds = generator.normal(size=(83, 1)), generator.normal(size=rows)
    found = []
    for threads in (1, 2):
        outputs, argument_gradients, sums = np.empty((83, rows)), np.empty((83, 1)), np.empty(len(leaves))
        executor = make(program, kernels=kernels)
        assert executor.run_batch(arguments, leaves, outputs, seeds, argument_gradients, sums, threads=threads) == []
        found.append((outputs, argument_gradients, sums))
    for one, two in zip(*found, strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("sign", ["<", "<=", "==", "!=", ">", ">="])
def test_guards(kernels, sign):
    """A comparison with another outcome than when it was traced."""
    program = Program(2, np.zeros(2), slot_array([0, 1]), slot_array([0]), (), (Guard(0, sign, 1, True),))
    executor = make(program, kernels=kernels)
    for pair in [(1.0, 2.0), (2.0, 2.0), (2.0, 1.0), (1.0, math.nan)]:
        assert eval(f"x {sign} y", {"x": pair[0], "y": pair[1]}) == executor.run(np.array(pair))
    rows = np.array([[1.0, 2.0], [2.0, 2.0], [2.0, 1.0]] * 5)
    expected = [i for i, (x, y) in enumerate(rows) if not eval(f"x {sign} y", {"x": x, "y": y})]
    assert expected == executor.run_batch(rows, (), np.empty((15, 1)))


@pytest.mark.parametrize(
    ("op", "x"), [("log", 0.0), ("log", -1.0), ("sqrt", -1.0), ("exp", 1000.0), ("sin", math.inf), ("asin", 2.0)]
)
def test_not_finite(kernels, op, x):
    """What the eager engine may refuse is not run: the plain function shall say so."""
    program = program_of(1, lambda add: add(op, 1, 1, View(1, 1, 0, 1, 1)))
    assert not make(program, kernels=kernels).run(np.array([x]))


@pytest.mark.parametrize(("op", "is_finite"), [("tanh", True), ("sigmoid", True), ("relu", False), ("add", False)])
def test_infinities_pass_where_the_table_says_so_but_not_as_results(kernels, op, is_finite):
    """An op that is defined everywhere is not checked; an infinite result is for the plain function to make."""
    inputs = ops.OPS[op].inputs
    program = program_of(1, lambda add: add(op, 1, 1, *(View(1, 1, 0, 1, 1) for _ in inputs)))
    executor = make(program, kernels=kernels)
    assert (is_finite, not is_finite) == (executor.run(np.array([math.inf])), executor.undecided)
    rows = np.array([[1.0], [math.inf], [2.0]] * 7)
    failed = [] if is_finite else list(range(1, 21, 3))
    assert failed == executor.run_batch(rows, (), np.empty((21, 1)))


def test_an_unreached_instruction_passes_nothing_on(kernels):
    """0 from an instruction that no output depends on, times an infinite local gradient, is not a gradient."""
    instructions = (
        Instruction("sqrt", 1, 1, 1, (View(1, 1, 0, 1, 1),)),
        Instruction("add", 2, 1, 1, (View(1, 1, 0, 1, 1), View(1, 1, 0, 1, 1))),
    )
    program = Program(3, np.zeros(3), slot_array([0]), slot_array([2]), instructions)
    assert run(make(program, kernels=kernels), program, [0.0], [1.0])[1].tolist() == [2.0]


def test_nothing_of_the_last_pass_is_left(kernels):
    """Products set the gradients that they are the first to come to, whatever else comes to them, or nothing does."""
    generator = random.Random(4)
    left, right, overlapping = View(2, 3, 0, 3, 1), View(4, 3, 6, 3, 1), View(4, 3, 9, 3, 1)

    def build(add):
        add("matmul", 2, 4, left, right)
        add("matmul", 2, 2, left, left)
        add("matmul", 4, 4, overlapping, right)
        add("mul", 1, 3, View(1, 3, 18, 3, 1), View(1, 3, 0, 3, 1))
        add("matmul", 2, 4, View(2, 2, 30, 2, 1), View(4, 2, 34, 2, 1))
        add("matmul", 1, 1, View(1, 1, 42, 1, 1), View(1, 1, 43, 1, 1))

    program = program_of(44, build, generator)
    inputs = numbers_for(generator, 44)
    executor = make(program, kernels=kernels)
    for first, end in [(0, 47), (0, 8), (8, 12), (12, 28), (28, 31), (31, 39), (39, 40), (40, 40), (20, 35)]:
        seeds = [float(first <= i < end) for i in range(40)]
        close(eager(program, inputs, seeds)[1], run(executor, program, inputs, seeds)[1])


@pytest.mark.parametrize(
    "wrong",
    [
        Instruction("nonsense", 2, 1, 1, (View(1, 1, 0, 1, 1),)),
        Instruction("exp", 2, 1, 1, (View(1, 1, 3, 1, 1),)),
        Instruction("exp", 2, 1, 1, (View(1, 1, index=slot_array([[-1]])),)),
        Instruction("exp", 3, 1, 1, (View(1, 1, 0, 1, 1),)),
        Instruction("exp", 2, 1, 1, (View(1, 2, 0, 1, 1),)),
        Instruction("exp", 2, 1, 1, ()),
        Instruction("add", 2, 1, 1, (View(1, 1, 0, 1, 1),)),
        Instruction("matmul", 2, 1, 1, (View(1, 2, 0, 1, 1), View(1, 1, 0, 1, 1))),
    ],
)
def test_a_wrong_instruction_is_refused(kernels, wrong):
    """Slots outside the program, shapes that do not fit, unknown ops."""
    with pytest.raises(ValueError, match="expected"):
        make(Program(3, np.zeros(3), slot_array([0, 1]), slot_array([2]), (wrong,)), kernels=kernels)


def test_wrong_buffers_are_refused(kernels):
    """Another length, another type, a buffer that cannot be written to."""
    executor = make(program_of(2, lambda add: add("exp", 1, 2, View(1, 2, 0, 2, 1))), kernels=kernels)
    with pytest.raises(ValueError, match="expected 2 doubles as inputs"):
        executor.run(np.zeros(3))
    with pytest.raises(ValueError, match="expected 2 doubles"):
        executor.run(np.zeros(4, dtype=np.float32))
    frozen = np.zeros(2)
    frozen.flags.writeable = False
    with pytest.raises((ValueError, BufferError)):
        executor.outputs(frozen)
    with pytest.raises(ValueError, match="expected a tuple of 1 leaves"):
        executor.run_values(np.zeros(1), ())
    with pytest.raises(TypeError, match="expected a Value"):
        executor.run_values(np.zeros(1), (1.0,))


def test_engine_is_native(kernels):
    """These tests compare with the engine that is in use."""
    assert engine.load("native") is native


def test_threads_take_turns(kernels):
    """Two threads that call one executor get the numbers of their own call."""
    count = 30_000  # long enough for the GIL to be released
    row = View(1, count, 0, count, 1)
    program = program_of(
        count,
        lambda add: add("sum", 1, 1, View(1, count, add("pow_number", 1, count, row, parameters=(3.0,)), count, 1)),
    )
    executor, wrong = make(program, kernels=kernels), []

    def work(x):
        gradients, given = np.empty(count), np.full(count, x)
        for _ in range(50):
            value = executor.value_and_gradients(given, (), gradients)
            if value != count * x**3 or (gradients != 3.0 * x**2).any():
                wrong.append(x)

    workers = [threading.Thread(target=work, args=(x,)) for x in (1.0, 2.0, 4.0)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []


def test_nothing_is_kept(kernels):
    """An executor that goes away gives its leaves back, and a call keeps no buffer."""
    program = program_of(2, lambda add: add("mul", 1, 1, View(1, 1, 0, 1, 1), View(1, 1, 1, 1, 1)))
    leaves, given = (native.Value(2.0),), np.ones(1)
    before = sys.getrefcount(leaves), sys.getrefcount(given)
    executor = make(program, kernels=kernels)
    for _ in range(10):
        executor.run_values(given, leaves)
        executor.backward(given, leaves)
        executor.run_batch(np.ones((3, 1)), leaves, np.empty((3, 1)), np.ones(1), None, np.empty(1))
        with pytest.raises(ValueError, match="expected"):
            executor.run_batch(np.ones((3, 1)), leaves, given)
    del executor
    assert before == (sys.getrefcount(leaves), sys.getrefcount(given))


@pytest.mark.parametrize("op", ["softmax", "log_softmax", "rmsnorm", "layernorm"])
def test_exact_entries_of_a_row(kernels, op):
    """In an exact program each entry is an instruction of its own, whose last parameter says which one it is."""
    xs, row, eps = [0.3, -1.2, 0.7], View(1, 3, 0, 0, 1), (1e-5,) if op.endswith("norm") else ()
    instructions = tuple(Instruction(op, 3 + i, 1, 1, (row,), (*eps, float(i))) for i in range(3))
    program = Program(6, np.zeros(6), slot_array(range(3)), slot_array([3, 4, 5]), instructions)
    leaves = [native.Value(x) for x in xs]
    expected = getattr(functions, op)(leaves, *eps)
    executor, into = make(program, kernels=kernels, exact=True), np.empty(3)
    assert executor.run(np.array(xs))
    executor.outputs(into)
    assert [y.data for y in expected] == into.tolist()
    for seeds, y in zip(np.eye(3), expected, strict=True):
        for leaf in leaves:
            leaf.grad = 0.0
        y.backward()
        executor.gradients(seeds, into)
        assert [leaf.grad for leaf in leaves] == into.tolist()


@pytest.mark.parametrize("op", ["rmsnorm", "layernorm"])
def test_exact_entries_of_one_row_with_another_eps(kernels, op):
    """What the entries of a row share depends on eps too."""
    xs, row, epses = [0.3, -1.2, 0.7], View(1, 3, 0, 0, 1), (1e-5, 0.5, 1e-5)
    instructions = tuple(Instruction(op, 3 + i, 1, 1, (row,), (eps, 1.0)) for i, eps in enumerate(epses))
    program = Program(6, np.zeros(6), slot_array(range(3)), slot_array([3, 4, 5]), instructions)
    expected = [getattr(functions, op)([native.Value(x) for x in xs], eps)[1].data for eps in epses]
    outputs, _ = run(make(program, kernels=kernels, exact=True), program, xs, [1.0] * 3)
    assert expected == outputs.tolist()


LENGTHS = range(1, 41)  # around each set's vectors, and four of them at a time


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.inf, math.nan])
def test_one_number_that_is_not_finite_is_seen_wherever_it_is(kernels, wrong):
    """Alone and in a batch, of which it is one example's."""
    for n in LENGTHS:
        executor = make(program_of(n, lambda add, n=n: add("log", 1, n, View(1, n, 0, n, 1))), kernels=kernels)
        rows = np.where(np.eye(n), wrong, 1.0)
        assert executor.run(np.ones(n))
        assert [False] * n == [executor.run(row) for row in rows]
    together = np.vstack([np.ones((3, n)), rows, np.ones((3, n))])
    assert list(range(3, n + 3)) == executor.run_batch(together, (), np.empty((n + 6, n)))


@pytest.mark.parametrize("op", ["sum", "mean", "norm", "dot"])
def test_every_number_of_a_row_of_any_length_counts(kernels, op):
    """With whole numbers, so that nothing is rounded on the way; and with its own gradient."""
    for n in LENGTHS:
        xs = np.arange(1.0, n + 1.0)
        views = [View(1, n, 0, 0, 1)] * (2 if op == "dot" else 1)
        program = program_of(n, lambda add, n=n, views=views: add(op, 1, 1, *views))
        (out,), gradients = run(make(program, kernels=kernels), program, xs, [2.0])
        value, slope = {
            "sum": (xs.sum(), np.ones(n)),
            "mean": (xs.mean(), np.ones(n) / n),
            "norm": (math.sqrt(xs @ xs), xs / math.sqrt(xs @ xs)),
            "dot": (xs @ xs, 2.0 * xs),
        }[op]
        assert value == pytest.approx(out, rel=1e-15)
        np.testing.assert_allclose(gradients, 2.0 * slope, rtol=4e-16)


@pytest.mark.parametrize(("op", "special"), [("largest", 9.0), ("smallest", -9.0), ("logsumexp", 900.0)])
def test_an_extreme_counts_wherever_it_is(kernels, op, special):
    """The gradient goes to it; alone and in a batch."""
    for n in LENGTHS:
        program = program_of(n, lambda add, n=n: add(op, 1, 1, View(1, n, 0, 0, 1)))
        executor, rows = make(program, kernels=kernels), np.eye(n) * special
        values, gradients = np.empty((n, 1)), np.empty((n, n))
        assert executor.run_batch(rows, (), values, np.ones(1), gradients, None) == []
        assert [special] * n == values.ravel().tolist()
        assert np.eye(n).tolist() == gradients.tolist()
        alone = [run(executor, program, row, [1.0]) for row in rows]
        assert [special] * n == [out.item() for out, _ in alone]
        assert np.eye(n).tolist() == [gradient.tolist() for _, gradient in alone]


@pytest.mark.parametrize("op", ["largest", "smallest"])
def test_of_equal_extremes_the_first_and_of_nans_the_first(kernels, op):
    """A nan that is the result is told of, too: the plain function may choose otherwise."""
    for row, place in [([1.0, 1.0, 1.0], 0), ([0.0, math.nan, math.nan], 1), ([math.nan, 5.0, -5.0], 0)]:
        program = program_of(3, lambda add: add(op, 1, 1, View(1, 3, 0, 0, 1)))
        executor, together, gradients = make(program, kernels=kernels), np.empty((9, 1)), np.zeros((9, 3))
        failed = executor.run_batch(np.array([row] * 9), (), together, np.ones(1), gradients, None)
        out, gradient = np.empty(1), np.empty(3)
        is_finite = math.isfinite(row[place])
        assert (is_finite, [] if is_finite else list(range(9))) == (executor.run(np.array(row)), failed)
        executor.outputs(out)
        executor.gradients(np.ones(1), gradient)
        np.testing.assert_array_equal([row[place]] * 10, [*out, *together.ravel()])
        assert np.eye(3)[place].tolist() == gradient.tolist()
        assert not is_finite or [np.eye(3)[place].tolist()] * 9 == gradients.tolist()


def test_two_numbers_that_cancel_leave_a_sum_in_doubt_wherever_they_are(kernels):
    """What is left of it is below what rounding may have done."""
    for n in (2, 3, 5, 9, 17, 33, 40):
        program = Program(
            n + 2, np.zeros(n + 2), slot_array(range(n)), slot_array([n]),
            (Instruction("sum", n, 1, 1, (View(1, n, 0, 0, 1),)),), (Guard(n, ">=", n + 1, True),),
        )  # fmt: skip
        executor = make(program, kernels=kernels)
        for first in range(n - 1):
            row = np.full(n, 1e-12)
            row[first : first + 2] = 1e8, -1e8 + 1.5e-8
            executor.run(row)
            assert executor.undecided == (n > 2)


@pytest.mark.parametrize("n", [1, 4, 9])
def test_the_length_of_nothing_has_no_gradient(kernels, n):
    program = program_of(n, lambda add: add("norm", 1, 1, View(1, n, 0, 0, 1)))
    outputs, gradients = run(make(program, kernels=kernels), program, [0.0] * n, [1.0])
    assert [0.0] * (n + 1) == [*outputs, *gradients]
