"""Comparisons of numbers that are nearly equal: the compiled function decides them as the plain one does."""

from __future__ import annotations

import functools
import math
import operator
import random
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from comparing import with_gradients
from hypothesis import given, settings
from hypothesis import strategies as st

import gradwalk
from gradwalk.compiler import executors, interpret
from gradwalk.compiler.compile import Compiled, compile
from gradwalk.compiler.flat import SIGNED
from gradwalk.compiler.program import Guard, Instruction, Program, View
from gradwalk.operation import Op, nowhere
from gradwalk.ops import OPS
from gradwalk.row_ops import COMPOSITES, Composite


@pytest.fixture(autouse=True, scope="module", params=[executors.executor_for, executors.Interpreted])
def _each_executor(request: pytest.FixtureRequest) -> Iterator[None]:
    """The one of the engine under test, and the reference engine's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(executors, "executor_for", request.param)
        yield


KINDS = ("sum", "scaled", "tanh", "two ways", "loop", "product")


def total(weights: list[float], xs: list[Any]) -> Any:
    return sum(w * x for w, x in zip(weights, xs, strict=True))


def near_tie(kind: str, weights: list[float], threshold: Any) -> Any:
    """A function with a jump where the weighted sum of its arguments crosses the threshold."""

    def function(xs: list[Any]) -> Any:
        one_way = total(weights, xs)
        if kind == "sum":
            above = one_way > threshold
        elif kind == "scaled":
            above = (one_way - threshold) * 1e9 > 0.0
        elif kind == "tanh":
            above = gradwalk.tanh(one_way * 0.1) >= gradwalk.tanh(threshold * 0.1)
        elif kind == "two ways":
            above = one_way <= total(weights[::-1], xs[::-1])
        elif kind == "loop":
            rest = one_way - threshold
            for _ in range(3):
                rest = rest * 2.0 + (one_way - threshold)
            above = rest < 0.0
        else:
            above = one_way * one_way > threshold * threshold
        return one_way * 2.0 if above else one_way * 3.0 + 1.0

    return function


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6))
def test_the_outcome_is_the_plain_functions_however_close_the_numbers_are(kind: str, seed: int) -> None:
    """A few units in the last place on either side of the jump: sums in another order land on the wrong one."""
    rng = random.Random(seed)
    count = rng.randint(3, 12)
    weights = [rng.uniform(-1, 1) * 10.0 ** rng.randint(-3, 3) for _ in range(count)]
    middle = [rng.uniform(-1, 1) * (1e6 if rng.random() < 0.1 else 1.0) for _ in range(count)]
    threshold = gradwalk.Value(0.0)
    function = near_tie(kind, weights, threshold)
    compiled = compile(function)
    for _ in range(6):
        threshold.data = total(weights, middle)
        for _ in range(rng.randint(0, 2)):
            threshold.data = math.nextafter(threshold.data, rng.choice([-math.inf, math.inf]))
        xs = list(middle)
        place = rng.randrange(count)
        for _ in range(rng.randint(0, 3)):
            xs[place] = math.nextafter(xs[place], rng.choice([-math.inf, math.inf]))
        expected, actual = with_gradients(function, (xs,)), with_gradients(compiled, (xs,))
        assert all(abs(x - y) <= 1e-9 * scale for x, y, scale in zip(expected, actual, expected.terms, strict=True))


def executor_of(compiled: Compiled) -> Any:
    [versions] = compiled._versions.values()
    return versions[0]._idle[0].executor


@pytest.mark.parametrize(
    "function",
    [
        lambda xs: xs[0] * 2.0 if xs[0] > 0.0 else xs[0] * 0.0,
        lambda xs: max(xs[0], xs[1]) * xs[1],
        lambda xs: xs[0] if xs[0] * 3.0 - xs[1] >= xs[1] * 2.0 else xs[1],
        lambda xs: xs[0] if gradwalk.sqrt(xs[0] * xs[0]) / 2.0 <= abs(xs[1]) * 0.5 else xs[1] * 4.0,
    ],
)
def test_ties_of_numbers_that_are_rounded_alike_are_decided_by_the_program(function: Any) -> None:
    """Arguments, and what one operation after the other makes of them, are the plain function's to the bit."""
    compiled = compile(function)
    for tie in ([0.0, 0.0], [1.0, 1.0], [0.1, 0.1]):
        assert with_gradients(function, (tie,)) == with_gradients(compiled, (tie,))
        assert not executor_of(compiled).undecided


def test_what_is_far_apart_is_decided_by_the_program() -> None:
    weights = [0.3, -1.2, 0.7, 2.0]
    compiled = compile(near_tie("tanh", weights, 0.25))
    undecided = 0
    for row in np.random.default_rng(0).uniform(-1, 1, (300, 4)).tolist():
        compiled(row)
        undecided += executor_of(compiled).undecided
    assert (undecided, len(compiled.programs)) == (0, 2)


def test_a_tie_that_comes_again_and_again_is_neither_traced_again_nor_warned_about() -> None:
    weights = [0.1, 0.2, 0.3, 0.4]
    traced = 0

    def function(xs: list[Any]) -> Any:
        nonlocal traced
        traced += type(xs[0]) is not float
        return total(weights, xs) if total(weights, xs) > total(weights, [1.0] * 4) else xs[0]

    compiled = compile(function)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(50):
            compiled([1.0, 1.0, 1.0, 1.0])
    assert executor_of(compiled).undecided
    assert len(compiled.programs) == 1


def test_a_batch_decides_as_each_call_does() -> None:
    weights = [0.1, 0.7, 0.3, 0.9]
    threshold = total(weights, [1.0] * 4)
    function = near_tie("sum", weights, threshold)
    compiled = compile(function)
    rows = [[1.0, 1.0, 1.0, math.nextafter(1.0, side)] for side in (0.0, 1.0, 2.0)] + [[2.0] * 4, [0.5] * 4] * 8
    expected = [float(function(row)) for row in rows]
    assert [pytest.approx(x, rel=1e-12) for x in expected] == [out.data for out in compiled.map(rows)]


def test_a_sum_whose_terms_cancel_is_not_trusted_beyond_their_rounding() -> None:
    """1e8 · 1e8 - 1e8 · 1e8 + 1 compared with 1: the order of the terms decides all there is."""
    big = [1e8, -1e8, 1.0]
    compiled = compile(lambda xs: xs[0] * 2.0 if total(big, xs) > 0.5 else xs[0] * 3.0)
    for row in ([1e8, 1e8, 1.0], [1e8, math.nextafter(1e8, 0.0), 0.25], [3.0, 3.0, 0.5]):
        assert compiled(row).data == compiled.function(row)


MADE_LARGER = {
    "sums of sums": lambda xs: gradwalk.sum([gradwalk.dot(xs, [w] * 30) for w in (1.0, 2.0, 3.0)]),
    "sums of curves": lambda xs: gradwalk.sum([gradwalk.tanh(gradwalk.sum(xs[i:] + xs[:i])) for i in (0, 5, 9)]),
    "divided": lambda xs: gradwalk.sum(xs) / 1e-9 - 1e-7,
    "divided by two numbers": lambda xs: gradwalk.sum(xs) / 1e-9 + gradwalk.sum(xs[::-1]) / 2e-9,
    "two divided by one number": lambda xs: gradwalk.sum(xs) / 1e-9 + gradwalk.sum(xs[::-1]) / 1e-9 - 1e-7,
    "divided by one that is given": lambda xs: gradwalk.sum(xs) / (xs[0] * xs[0] * 1e-9) - 1e-7,
    "divided twice": lambda xs: gradwalk.sum(xs) / (xs[0] * xs[0] * 1e-5) / (xs[1] * xs[1] * 1e-5) - 1e-7,
    "times a reciprocal": lambda xs: (1e9 / (xs[0] * xs[0])) * gradwalk.sum(xs) - 1e-7,
    "times a power": lambda xs: gradwalk.sum(xs) * (xs[0] * xs[0] * 1e-9) ** -1.0 - 1e-7,
    "divided by a small difference": lambda xs: gradwalk.sum(xs) / (xs[0] - xs[0] * (1.0 - 1e-9)) - 1e-7,
    "a square root of little": lambda xs: gradwalk.sqrt(gradwalk.sum(xs) + 1e-13) - math.sqrt(1e-13) - 1e-9,
    "a tangent near its pole": lambda xs: gradwalk.sum(xs) * gradwalk.tan(xs[0] * 0.0 + math.pi / 2.0 - 1e-9) - 1e-7,
    "an angle": lambda xs: gradwalk.atan2(gradwalk.sum(xs), xs[0] * 1e-9) - 1e-7,
    "a logarithm near its end": lambda xs: gradwalk.log(gradwalk.sum(xs) + 1e-12) - math.log(1e-12) - 1e-4,
}
UNNAMED = {"div": operator.truediv, "pow": operator.pow, "pow_number": operator.pow}  # functions have a name


def beside_its_border(op: Op, numbers: Sequence[float], place: int) -> Any:
    """What nothing makes of a result, added to an input that is beside where the domain ends."""

    def made(xs: list[Any]) -> Any:
        given = list(numbers)
        given[place] = gradwalk.sum(xs) + numbers[place]
        return UNNAMED.get(op.name, getattr(gradwalk, op.name, None))(*given) - op.forward(*numbers)

    return made


def beside_nothing(row: Composite, parameters: tuple[float, ...]) -> Any:
    """What nothing makes of a result, added to entries that are all small."""
    small = [1e-12, -2e-12, 4e-12]

    def of(entries: list[Any]) -> Any:
        out = getattr(gradwalk, row.called_by)(*[entries] * len(row.inputs), *[0] * bool(row.target), *parameters)
        return out[0] if row.per_entry else out

    return lambda xs: of([gradwalk.sum(xs[i:] + xs[:i]) + x for i, x in enumerate(small)]) - of(small)


BESIDE_NOTHING = {
    f"{row.name}{parameters}": beside_nothing(row, parameters)
    for row in COMPOSITES.values()
    for given in (row.defaults, [0.0] * 2, [1e-30] * 2)
    for parameters in [tuple(given[: len(row.parameters)])]
}
BESIDE_BORDERS = {
    f"{op.name}{numbers}": beside_its_border(op, numbers, place)
    for op in OPS.values()
    for point in op.samples
    for parameters in [np.atleast_1d(point).tolist()[len(op.inputs) :]]
    for place in range(len(op.inputs))
    for border in (-1.0, 0.0, 1.0)
    for away in (-1e-12, 1e-12)
    for numbers in [(*[0.7] * place, border + away, *[0.7] * (len(op.inputs) - place - 1), *parameters)]
    if op.borders(*numbers) < 1e-9 and op.domain(*numbers)
}
MADE_LARGER |= BESIDE_BORDERS | BESIDE_NOTHING


@pytest.mark.parametrize("kinked", [False, True])
@pytest.mark.parametrize("made", MADE_LARGER.values(), ids=MADE_LARGER)
def test_rounding_that_is_made_larger_on_the_way_is_not_trusted(made: Any, kinked: bool) -> None:
    """Thirty parts of nothing, whose sum is compared only after something else was made of it."""

    def function(xs: list[Any]) -> Any:
        rest = made(xs)
        if kinked:
            return gradwalk.relu(rest) + xs[0]
        return xs[0] if rest > 0.0 else xs[0] * 5.0 + 1.0

    compiled = compile(function)
    rng, rows, outs = random.Random(0), [], []
    for _ in range(60):
        parts = [rng.choice([0.1, 0.2, 0.3, -0.1, -0.7]) for _ in range(29)]
        xs = [*parts, -sum(parts)]
        rng.shuffle(xs)
        expected, actual = with_gradients(function, (xs,)), with_gradients(compiled, (xs,))
        assert expected == pytest.approx(list(actual), rel=1e-9, abs=1e-12)
        rows.append(xs)
        outs.append(expected[0])
    assert outs == pytest.approx([out.data for out in compiled.map(rows)], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("scale", [1.0, 1e5])
@pytest.mark.parametrize("tied", [None, 0, 1, 2, 3])
def test_each_edge_and_each_comparison_is_judged_by_what_it_is_made_of(tied: int | None, scale: float) -> None:
    """Three kinks, each made of those before it, and a comparison at the end; one of them is at a tie."""
    weights = [0.1, 0.2, 0.3, 0.7, 0.9]
    thresholds = [gradwalk.Value(-1.0) for _ in range(4)]
    sums: list[Any] = []

    def function(xs: list[Any]) -> Any:
        out: Any = 0.0
        for threshold in thresholds[:3]:
            sums.append(total(weights, xs))
            over = gradwalk.relu(sums[-1] - threshold)
            out = out + over * scale
            xs = [x * 0.7 + over for x in xs]
        sums.append(total(weights, xs))
        return out if sums[-1] > thresholds[3] else out * 2.0

    compiled = compile(function)
    for xs in ([0.3, -0.8, 0.6, 1.1, 0.4], [0.9, 0.1, -0.2, 0.7, 0.3]):
        for threshold in thresholds:
            threshold.data = -1.0
        sums.clear()
        function(xs)
        if tied is not None:
            thresholds[tied].data = sums[tied].data if tied else sums[0]
        expected, actual = with_gradients(function, (xs,)), with_gradients(compiled, (xs,))
        assert expected == pytest.approx(actual, rel=1e-9)
        assert executor_of(compiled).undecided == (tied is not None)


JUMPS = {
    "floor": gradwalk.floor,
    "ceil": gradwalk.ceil,
    "sign": lambda x: gradwalk.sign(x - 2.0),
    "where": lambda x: gradwalk.where(x - 2.0, x, x * 100.0),
    "copysign": lambda x: gradwalk.copysign(x * x, x - 2.0),
    "fmod": lambda x: gradwalk.fmod(x, 0.25),
    "atan2": lambda x: gradwalk.atan2(x - 2.0, -1.0),
}


def parts_of_one(count: int) -> list[list[float]]:
    """Rows of thirty numbers each: whether they add up to 1 depends on the order."""
    rng = random.Random(0)
    rows = []
    for _ in range(count):
        parts = [rng.choice([0.1, 0.2, 0.3]) for _ in range(29)]
        rows.append([*parts, 1.0 - sum(parts)])
        rng.shuffle(rows[-1])
    return rows


@pytest.mark.parametrize("jump", JUMPS.values(), ids=JUMPS)
def test_a_jump_is_taken_as_the_plain_function_takes_it(jump: Any) -> None:
    compiled = compile(lambda xs: jump(sum(xs) * 2.0))
    for xs in parts_of_one(40):
        assert compiled(xs).data == pytest.approx(compiled.function([gradwalk.Value(x) for x in xs]).data, rel=1e-9)
    assert len(compiled.programs) == 1


@pytest.mark.parametrize("jump", JUMPS.values(), ids=JUMPS)
def test_a_jump_in_any_lane_of_a_batch_is_taken_as_the_plain_function_takes_it(jump: Any) -> None:
    """Rows at a jump beside rows far from it, in every lane of a vector, whose exp rounds in its own way."""
    compiled = compile(lambda x, scale: jump(gradwalk.exp(x) * scale))
    rows = [(math.log(i), 2.0 / i) if i % 9 == 0 else (0.001 * i, 1.0) for i in range(9, 2000)]
    expected = [compiled.function(*map(gradwalk.Value, row)).data for row in rows]
    assert [pytest.approx(number, rel=1e-9) for number in expected] == [out.data for out in compiled.map(rows)]


BORDERS = {
    "div": lambda x: 1e-9 / x,
    "power": lambda x: x**-1,
    "root": lambda x: x**0.5,
    "pow": lambda x: x ** (x * 0.0 + 0.5),
    "log": gradwalk.log,
    "log1p": lambda x: gradwalk.log1p(x - 1.0),
    "sqrt": lambda x: gradwalk.sqrt(x * x) + gradwalk.sqrt(x),
    "cbrt": gradwalk.cbrt,
    "asin": lambda x: gradwalk.asin(1.0 + x),
    "acosh": lambda x: gradwalk.acosh(1.0 + x),
    "atanh": lambda x: gradwalk.atanh(1.0 - x),
    "lgamma": lambda x: gradwalk.lgamma(x - 2.0),
    "fmod": lambda x: gradwalk.fmod(1.0, x),
}


@pytest.mark.parametrize("border", BORDERS.values(), ids=BORDERS)
def test_what_is_raised_at_the_end_of_a_domain_is_what_the_plain_function_raises(border: Any) -> None:
    """Thirty parts of nothing: whether they add up to 0, or to a number beside it, depends on the order."""
    compiled = compile(lambda xs: border(sum(xs) * 2.0) + xs[0])

    def outcome(function: Any, xs: list[float]) -> Any:
        try:
            return with_gradients(function, (xs,))
        except (ArithmeticError, ValueError) as error:
            return [type(error).__name__]

    raised = set()
    for xs in parts_of_one(40):
        xs = [*xs, -1.0]
        expected = outcome(compiled.function, xs)
        raised.add(isinstance(expected[0], str))
        assert outcome(compiled, xs) == (
            expected if isinstance(expected[0], str) else pytest.approx(expected, rel=1e-9)
        )
    assert raised == {True, False} or border is gradwalk.cbrt


EDGES = [name for name, row in OPS.items() if row.edge_inputs and row.kinks is not nowhere]


@pytest.mark.parametrize("name", [*EDGES, "norm", "largest", "smallest", "max"])
def test_slopes_at_a_kink_are_those_of_the_plain_function(name: str) -> None:
    """Thirty parts of nothing: on which side of 0 they end, and with it the slope, depends on the order."""

    def kinked(xs: list[Any]) -> Any:
        first, second = sum(xs) * 2.0, gradwalk.dot(xs[::-1], [2.0] * len(xs))
        if name == "norm":
            return gradwalk.norm([first, first])
        if name == "max":
            return max(first, first * 0.0)
        if name in ("largest", "smallest"):
            return (gradwalk.maximum if name == "largest" else gradwalk.minimum)([first, second, -9.0 * first * first])
        row = OPS[name]
        parameters = {"clamp": (0.0, 1.0)}.get(name, row.defaults)
        return getattr(gradwalk, name, abs)(*(first, second)[: len(row.inputs)], *parameters)

    compiled = compile(kinked)
    rng = random.Random(0)
    for _ in range(60):
        parts = [rng.choice([0.1, 0.2, 0.3, -0.1, -0.7]) for _ in range(29)]
        xs = [*parts, -sum(parts)]
        rng.shuffle(xs)
        expected, actual = with_gradients(kinked, (xs,)), with_gradients(compiled, (xs,))
        assert expected == pytest.approx(list(actual), rel=1e-9, abs=1e-14)


def test_kinks_in_the_second_of_three_rows_are_those_of_the_plain_function() -> None:
    """One instruction finds the largest of each row; it is in the second that two are too close to tell."""

    def largest(xs: list[Any], ys: list[Any], shift: list[Any]) -> Any:
        return gradwalk.maximum([sum(xs) * 2.0 + shift[0], gradwalk.dot(ys, [2.0] * len(ys)) + shift[1], -99.0])

    def function(xs: list[Any], ys: list[Any], zs: list[Any], shift: list[Any]) -> Any:
        return largest(xs, ys, shift) + largest(zs, zs[::-1], shift) + largest(ys, xs, shift)

    compiled = compile(function)
    rng = random.Random(0)
    for _ in range(60):
        xs, ys, parts = ([rng.choice([0.1, 0.2, 0.3, -0.1, -0.7]) for _ in range(29)] for _ in range(3))
        zs = [*parts, -sum(parts)]
        rng.shuffle(zs)
        given = [*xs, 1.0], [*ys, 9.0], zs, [0.5, 0.5]
        expected, actual = with_gradients(function, given), with_gradients(compiled, given)
        assert expected == pytest.approx(list(actual), rel=1e-9, abs=1e-14)
    assert [(each.op, each.rows) for each in compiled.program.instructions if each.op == "largest"] == [("largest", 3)]


def test_kinks_in_a_batch_are_those_of_each_call() -> None:
    rng = random.Random(1)
    weights = [gradwalk.Value(1.0) for _ in range(30)]
    compiled = compile(lambda xs: gradwalk.relu(gradwalk.dot(weights, xs)) + abs(gradwalk.dot(weights[::-1], xs)))
    rows = []
    for _ in range(40):
        parts = [rng.choice([0.1, 0.2, 0.3, -0.1, -0.7]) for _ in range(29)]
        rows.append([*parts, -sum(parts)])
    compiled.map_backward(rows)
    actual = [weight.grad for weight in weights]
    for weight in weights:
        weight.grad = 0.0
    for row in rows:
        compiled.function(row).backward()
    assert [weight.grad for weight in weights] == pytest.approx(actual, rel=1e-9)


def test_zeros_that_nothing_was_added_up_to_are_decided_by_the_program() -> None:
    """A row of zeros through a layer: relu is asked about 0 itself, which no order of the sum would change."""
    weights = [[random.Random(i).uniform(-1, 1) for _ in range(20)] for i in range(20)]
    compiled = compile(lambda xs: sum(gradwalk.relu(gradwalk.dot(row, xs)) for row in weights))
    for _ in range(3):
        assert compiled([0.0] * 20).data == 0.0
        assert not executor_of(compiled).undecided


def test_an_exact_program_has_no_doubts() -> None:
    weights = [0.1, 0.2, 0.3, 0.4]
    function = near_tie("sum", weights, total(weights, [1.0] * 4))
    compiled = compile(function, exact=True)
    for last in (1.0, math.nextafter(1.0, 2.0), math.nextafter(1.0, 0.0)):
        assert with_gradients(function, ([1.0, 1.0, 1.0, last],)) == with_gradients(compiled, ([1.0, 1.0, 1.0, last],))
        assert not executor_of(compiled).undecided


TOTALS = {
    "chain": lambda xs: functools.reduce(lambda x, y: x + y, xs),
    "sum": lambda xs: sum(xs),
    "composite": gradwalk.sum,
    "mean": gradwalk.mean,
    "dot": lambda xs: gradwalk.dot(xs, [2.0] * len(xs)),
    "products": lambda xs: functools.reduce(lambda x, y: x + y, [x * 2.0 for x in xs]),
    "scaled": lambda xs: -3.0 * functools.reduce(lambda x, y: x - y, xs),
    "rows": lambda xs: min(functools.reduce(lambda x, y: x + y, xs[i : i + 2]) for i in range(len(xs) - 1)),
}


@pytest.mark.parametrize("how", TOTALS)
@pytest.mark.parametrize(("name", "place"), [(name, place) for name in SIGNED for place in SIGNED[name]])
def test_the_sign_of_a_zero_is_the_plain_functions(name: str, place: int, how: str) -> None:
    """Zeros that are added up in another order, or to one more, may have another sign: atan2(-0.0, -1) is -π."""

    def function(xs: list[Any]) -> Any:
        given: list[Any] = [-1.0, -1.0]
        given[place] = TOTALS[how](xs)
        return getattr(gradwalk, name)(*given)

    for count in (2, 3, 17):
        compiled = compile(function)
        compiled([0.5] * count)
        for zeros in ([-0.0] * count, [0.0] * count, [0.0, *[-0.0] * (count - 1)]):
            expected = function([gradwalk.Value(zero) for zero in zeros]).data
            assert compiled(zeros).data == expected
            assert compiled.map([zeros, [0.5] * count])[0].data == expected


FOUR, ROWS = View(1, 4, 13, 0, 1), View(2, 2, 13, 2, 1)  # sums of three numbers each, which may have been rounded
LATER: dict[str, tuple[str, int, int, tuple[View, ...], Any]] = {
    "product": ("mul", 1, 2, (View(1, 2, 13, 0, 1), View(1, 2, 15, 0, 1)), None),
    "sign": ("neg", 1, 4, (FOUR,), None),
    "function": ("tanh", 1, 4, (FOUR,), None),
    "dot of what is given": ("dot", 1, 1, (View(1, 4, 0, 0, 1), View(1, 4, 4, 0, 1)), None),
    "products of what is given": ("matmul", 2, 2, (View(2, 3, 0, 3, 1), View(2, 3, 6, 3, 1)), None),
    "logarithm of what is given": ("logsumexp", 1, 1, (View(1, 3, 0, 0, 1),), None),
    "row of what is given": ("softmax", 1, 3, (View(1, 3, 0, 0, 1),), None),
    "dot with what is given": ("dot", 1, 1, (FOUR, View(1, 4, 1, 0, 2)), None),
    "dot": ("dot", 1, 1, (View(1, 2, 13, 0, 1), View(1, 2, 15, 0, 1)), None),
    "dot of one": ("dot", 1, 1, (View(1, 1, 13), View(1, 1, 15)), None),
    "products": ("matmul", 2, 2, (ROWS, View(2, 2, 14, 1, 1)), None),
    "two products": ("matmul", 4, 2, (View(4, 2, 13, 0, 1), View(4, 2, 13, 0, 2)), None),
    "taken": ("take", 1, 1, (View(4, 1, 13, 1, 0), View(1, 1, 11)), None),
    "sum": ("sum", 1, 1, (FOUR,), None),
    "length": ("norm", 1, 1, (FOUR,), None),
    "largest": ("largest", 1, 1, (FOUR,), None),
    "logarithm": ("logsumexp", 1, 1, (FOUR,), None),
    "target": ("cross_entropy", 1, 1, (FOUR, View(1, 1, 11)), None),
    "row": ("softmax", 1, 4, (FOUR,), None),
    "rows of different lengths": ("softmax", 2, 3, (View(2, 3, 13, 1, 1),), np.array([3, 2], np.int32)),
}


@pytest.mark.parametrize("later", LATER)
def test_both_executors_are_in_doubt_alike(later: str) -> None:
    """A little closer to what is computed they cannot tell, a little further away they can."""
    op, rows, columns, operands, lengths = LATER[later]
    numbers = np.array([0.1, 0.2, 0.35, -0.4, 0.5, 0.7, 0.7, 0.8, -0.9, 1.3, -0.2, 2.0, 0.0])
    instructions = (
        Instruction("sum", 13, 4, 1, (View(4, 3, 0, 3, 1),)),
        Instruction(op, 17, rows, columns, operands, (), lengths),
    )
    size = 17 + rows * columns
    for out in range(17, size):
        inputs, guards = np.arange(13, dtype=np.int32), (Guard(out, "<", 12, True),)
        program = Program(size, np.zeros(size), inputs, np.array([out], np.int32), instructions, guards)
        slots = interpret.run(program, numbers)
        doubtful = interpret.SAFETY * interpret.doubts(program, slots, size)[out]
        assert (doubtful > 0.0) == (slots[out] != 0.0)  # behind the end of a row there is nothing to doubt
        for away, undecided in ((0.8, doubtful > 0.0), (1.25, False)):
            given = np.append(numbers[:-1], slots[out] + away * doubtful)
            for executor in (executors.executor_for(program), executors.Interpreted(program)):
                executor.run(given)
                assert executor.undecided == undecided
