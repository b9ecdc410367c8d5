"""What a row says about its operation, besides its formulas: probed, so that a fact nobody declared is found."""

from __future__ import annotations

import doctest
import functools
import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest

import gradwalk
from gradwalk.formula import Number, absolute, div, sqrt, where
from gradwalk.operation import Op, from_whole, nowhere, sign
from gradwalk.ops import OPS
from gradwalk.row_formula import Lists, at, count, evaluated, first_largest, hot, total
from gradwalk.row_ops import COMPOSITES, Composite

EACH_OP = pytest.mark.parametrize("op", OPS.values(), ids=OPS)
EACH_COMPOSITE = pytest.mark.parametrize("row", COMPOSITES.values(), ids=COMPOSITES)
# a little off whole numbers, so that no probe starts on a jump; coarser further out, and beyond all samples
GRID = [x + 0.0031 for x in (*range(-25, -4), *(i / 8.0 for i in range(-34, 35)), *range(5, 26))]
EXTREME = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.0, 5e-324, -1e-310, 1e-310, 1e-200, -1e-200, 1e200, -1e200, 1e308, -1e308)


def samples(op: Op) -> list[tuple[float, ...]]:
    return [sample if isinstance(sample, tuple) else (sample,) for sample in op.samples]


@pytest.mark.parametrize(
    ("row", "more", "message"),
    [
        (OPS["add"], {"inputs": ("a", "b", "c", "d")}, "add: expected at most three names, two of them parameters"),
        (OPS["add"], {"parameters": ("m", "n")}, "add: expected at most three names"),
        (COMPOSITES["dot"], {"inputs": ("xs", "ys", "zs")}, "dot: expected at most two rows, and two of i and param"),
        (COMPOSITES["cross_entropy"], {"parameters": ("eps",)}, "cross_entropy: expected at most two rows, and two of"),
        (COMPOSITES["cross_entropy"], {"inputs": ("xs", "ys")}, "cross_entropy: expected one row where there is an i"),
        (COMPOSITES["softmax"], {"padding": "zero"}, "softmax: expected padding that is absent, got 'zero'"),
        (COMPOSITES["logsumexp"], {"padding": "absent"}, "logsumexp: expected padding that is zero or first, got 'abs"),
        (COMPOSITES["cross_entropy"], {"padding": "absent"}, "cross_entropy: expected padding that is none, got 'abse"),
    ],
)  # fmt: skip
def test_a_row_with_more_than_the_engines_take_is_refused(row: object, more: dict[str, object], message: str) -> None:
    """Where it is written down, not where C reads beyond its end."""
    with pytest.raises(TypeError, match=message):
        replace(row, **more)


@EACH_COMPOSITE
def test_padding_changes_nothing(row: Composite) -> None:
    """A row that is made longer as its declaration says gives the same result and the same gradients."""
    if not row.padding:
        return
    xs = [[0.5, -1.0, 2.0, 2.0], [3.0, 0.25, -1.5, 1.0]][: len(row.inputs)]
    padded = [[*x, {"zero": 0.0, "first": x[0], "absent": -math.inf}[row.padding]] for x in xs]
    parameters = ((1,) if row.indexed else ()) + tuple(0.3 for _ in row.parameters)
    out = row.on([*itertools.chain(*xs)], *parameters)
    assert out == row.on([*itertools.chain(*padded)], *parameters)
    grads = row.local_grads_on([*itertools.chain(*padded)], *parameters, out)
    kept = [grad for i, grad in enumerate(grads) if (i + 1) % 5]
    assert kept == row.local_grads_on([*itertools.chain(*xs)], *parameters, out)


def lines(op: Op) -> Iterator[tuple[Callable[[float], tuple[float, ...]], int]]:
    """Ways to move one input while the others stay, some of them at 0; and which input moves."""
    width = len(op.inputs)
    for parameters in {point[width:] for point in samples(op)}:
        stays = [point[:width] for point in samples(op)] + list(itertools.product((0.0, -1.3), repeat=width))
        for i in range(width):
            for others in sorted({(*stay[:i], 0.0, *stay[i + 1 :]) for stay in stays}):
                yield lambda x, o=others, i=i, p=parameters: (*o[:i], x, *o[i + 1 :], *p), i


def gaps(function: Callable[[float], float], grid: Sequence[float] = GRID) -> Iterator[float]:
    """Places where a function on the grid changes at once, as bisection finds them; a pole on both sides is none."""
    for low, high in itertools.pairwise(grid):
        below, above, middle = function(low), function(high), (low + high) / 2.0
        while low < middle < high and 1e-9 <= abs(above - below) < math.inf:
            between = function(middle)
            if abs(between - below) >= abs(above - between):
                high, above = middle, between
            else:
                low, below = middle, between
            middle = (low + high) / 2.0
        size = min(abs(below), abs(above))
        if 1e-6 * (1.0 + size) < abs(above - below) < math.inf and size < 1e6:
            yield low


def ends(holds: Callable[[float], bool]) -> Iterator[float]:
    """Places on the grid where it begins or ceases to hold, and whole numbers at which alone it does not."""
    for low, high in itertools.pairwise(GRID):
        if holds(low) != holds(high):
            for _ in range(90):
                middle = (low + high) / 2.0
                low, high = (middle, high) if holds(middle) == holds(low) else (low, middle)
            yield low
    for whole in map(float, range(-25, 26)):
        if not holds(whole) and holds(whole - 1e-3) and holds(whole + 1e-3):
            yield whole


def in_domain(op: Op, point: tuple[float, ...], of: Callable[..., float]) -> float:
    return of(*point) if op.domain(*point) else math.nan


@EACH_OP
def test_no_jump_is_left_out(op: Op) -> None:
    """Where the forward changes at once, the distance from the next jump is 0."""
    for line, _ in lines(op):
        for place in gaps(lambda x, line=line: in_domain(op, line(x), op.forward)):
            assert op.jumps(*line(place)) < 1e-9, line(place)


@EACH_OP
def test_whose_zeros_sign_it_sees(op: Op) -> None:
    """Where 0.0 and -0.0 are not the same to it, or to a local gradient, its formula says so."""

    def seen(point: tuple[float, ...]) -> tuple[float, ...]:
        out = op.forward(*point)
        return out, *op.local_grads(*point, out)

    told = set()
    for line, i in lines(op):
        both = [seen(line(zero)) for zero in (0.0, -0.0) if op.domain(*line(zero))]
        if len(both) == 2 and any(x != y and x == x and y == y for x, y in zip(*both, strict=True)):
            told.add(op.inputs[i])
    assert told <= {*op.signed_inputs}


@EACH_OP
def test_no_kink_is_left_out(op: Op) -> None:
    """Where a local gradient changes at once, or becomes infinite on one side, there is a kink, a jump or a border."""
    for line, _ in lines(op):
        for j in range(len(op.inputs)):

            def slope(*point: float, j: int = j) -> float:
                return float(op.local_grads(*point, op.forward(*point))[j])

            for place in gaps(lambda x, line=line, slope=slope: in_domain(op, line(x), slope)):
                edges = op.jumps(*line(place)), op.kinks(*line(place)), op.borders(*line(place))
                assert min(edges) < 1e-9, line(place)


@EACH_COMPOSITE
def test_no_edge_of_a_row_is_left_out(row: Composite) -> None:
    """Where an output or a local gradient changes at once, there is an edge, or two entries equal what it chose."""
    parameters = ((1,) if row.indexed else ()) + tuple(0.3 for _ in row.parameters)
    rest = (0.7, -0.4, 0.3) if len(row.inputs) > 1 else ()
    for others, moves in itertools.product(((0.5, -1.3), (0.0, 0.0), (2.0, 2.0)), range(3 + len(rest))):
        numbers = [0.9, *others, *rest]

        def entries(x: float, numbers: list[float] = numbers, moves: int = moves) -> list[float]:
            return [*numbers[:moves], x, *numbers[moves + 1 :]]

        @functools.cache
        def seen(x: float, entries: Callable[[float], list[float]] = entries) -> list[float]:
            out = 0.0 if row.name == "take" else row.on(entries(x), *parameters)
            return [out, *map(float, row.local_grads_on(entries(x), *parameters, out))]

        for k in (0, 1 + moves, 1 + (moves + 1) % 3):  # the output, and the slopes by what moves and by another
            for gap in gaps(lambda x, k=k, seen=seen: seen(x)[k], GRID[::2]):
                xs, out = entries(gap), seen(gap)[0]
                tied = row.chooses and sum(abs(each - out) < 1e-9 for each in xs) > 1
                assert tied or row.edge_distance(xs, *parameters[row.indexed :]) < 1e-9, xs


def per_entry(formula: Callable[[Number], Number], slope: Callable[[Number], Number]) -> Composite:
    return Composite(
        "wrong",
        per_entry=True,
        forward=lambda xs, i: formula(at(xs, i)),
        local_grads=lambda xs, i, out: hot(xs, i, slope(at(xs, i))),
        doc="",
    )


@pytest.mark.parametrize(
    "wrong",
    [
        replace(OPS["clamp"], kinks=lambda x, low, high: absolute(x - low)),
        Op(
            "a kink far out",
            forward=lambda x: where(x < 21.5, x, 21.5),
            local_grads=lambda x, out: (where(x < 21.5, 1.0, 0.0),),
            doc="",
        ),
        replace(OPS["floor"], jumps=lambda x: where(absolute(x) < 20.5, from_whole(x), math.inf)),
        Op(
            "a pole on one side",
            forward=lambda x: where(x > 0.5, sqrt(x - 0.5), 0.5 - x),
            local_grads=lambda x, out: (where(x > 0.5, div(0.5, out), -1.0),),
            doc="",
        ),
    ],
    ids=lambda op: op.name,
)
def test_the_probes_of_operations_find_what_is_left_out(wrong: Op) -> None:
    """A kink beside another, a kink and a jump far out, a local gradient that is infinite on one side."""
    with pytest.raises(AssertionError, match=r"\("):
        (test_no_jump_is_left_out if wrong.name == "floor" else test_no_kink_is_left_out)(wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        replace(
            COMPOSITES["largest"],
            forward=lambda xs, place: 0.5 * at(xs, place),
            local_grads=lambda xs, place, out: hot(xs, place, 0.5),
        ),
        replace(
            COMPOSITES["dot"],
            chooses=True,
            forward=lambda xs, ys: at(ys, first_largest(xs)),
            local_grads=lambda xs, ys, out: (0.0, hot(ys, first_largest(xs))),
        ),
        per_entry(lambda x: where(absolute(x) <= 0.5, 0.0, x), lambda x: where(absolute(x) <= 0.5, 0.0, 1.0)),
        per_entry(absolute, sign),
        per_entry(lambda x: where(x < 21.5, x, 21.5), lambda x: where(x < 21.5, 1.0, 0.0)),
        replace(
            COMPOSITES["dot"],
            forward=lambda xs, ys: total(where(ys > 0.0, xs, 0.0)),
            local_grads=lambda xs, ys, out: (where(ys > 0.0, 1.0, 0.0), 0.0),
        ),
        replace(
            COMPOSITES["dot"],
            forward=lambda xs, ys: total(xs * absolute(ys)),
            local_grads=lambda xs, ys, out: (absolute(ys), xs * sign(ys)),
        ),
        replace(
            COMPOSITES["sum"],
            forward=lambda xs: absolute(at(xs, count(xs) - 1.0)),
            local_grads=lambda xs, out: hot(xs, count(xs) - 1.0, sign(at(xs, count(xs) - 1.0))),
        ),
    ],
    ids=[
        "half of the largest", "the one beside the largest", "a jump of its own entry", "a kink of its own entry",
        "a kink far out", "a jump by the second list", "a kink by the second list", "a kink by the last",
    ],
)  # fmt: skip
def test_the_probe_of_composites_finds_what_is_left_out(wrong: Composite) -> None:
    """Which of the entries, of either list, it is by; and where no two entries equal the output, which is chosen."""
    with pytest.raises(AssertionError, match=r"\["):
        test_no_edge_of_a_row_is_left_out(wrong)


def picks(point: Sequence[float], out: float, slopes: Sequence[float]) -> bool:
    return sorted(slopes) == [*([0.0] * (len(point) - 1)), 1.0] and point[slopes.index(1.0)] == out


@EACH_OP
def test_an_operation_that_always_picks_an_input_chooses(op: Op) -> None:
    """Its result is one of several inputs, whose local gradient alone is 1."""
    points = [*samples(op), *itertools.product((-1.5, 0.0, 2.5), repeat=len(op.names))]
    known = [(point, op.forward(*point)) for point in points if len(op.inputs) > 1 and op.domain(*point)]
    found = [picks(point[: len(op.inputs)], out, [*op.local_grads(*point, out)]) for point, out in known]
    assert op.chooses or not found or not all(found)


@EACH_COMPOSITE
def test_a_composite_that_always_picks_an_entry_chooses(row: Composite) -> None:
    parameters = ((1,) if row.indexed else ()) + tuple(0.3 for _ in row.parameters)
    rows = [list(xs) for xs in itertools.product((-1.5, 0.0, 2.5), repeat=4)]
    known = [(xs, row.on(xs, *parameters)) for xs in rows if row.name != "take"]  # of which no other entry is a child
    found = [picks(xs, out, row.local_grads_on(xs, *parameters, out)) for xs, out in known]
    assert row.chooses or not found or not all(found)


@EACH_COMPOSITE
def test_edges_of_rows_move_no_faster_than_all_entries(row: Composite) -> None:
    """So that a row which is known up to a doubt knows the distance up to the same doubt."""
    source = random.Random(5)
    for _ in range(500 if row.edges is not nowhere else 0):
        xs = [source.uniform(-2.0, 2.0) for _ in range(4 * len(row.inputs))]
        moved = [x + source.uniform(-1e-3, 1e-3) for x in xs]
        here, there = (row.edge_distance(each, *(0.3 for _ in row.parameters)) for each in (xs, moved))
        assert abs(here - there) <= 1.0001 * sum(abs(x - y) for x, y in zip(xs, moved, strict=True)), xs


@EACH_OP
def test_no_border_is_left_out(op: Op) -> None:
    """Where the domain ends, or has a hole, the distance from the next border is 0."""
    for line, _ in lines(op):
        for place in ends(lambda x, line=line: bool(op.domain(*line(x)))):
            assert op.borders(*line(place)) < 1e-9, line(place)


@pytest.mark.parametrize("column", ["jumps", "kinks", "borders"])
@EACH_OP
def test_distances_move_no_faster_than_their_inputs(op: Op, column: str) -> None:
    """So that numbers which are known up to a doubt know the distance up to the same doubt."""
    distance = getattr(op, column)
    if distance is nowhere:
        return
    source = random.Random(3)
    parameters = [point[len(op.inputs) :] for point in samples(op)]
    for _ in range(2000):
        point = [source.uniform(-6.0, 6.0) for _ in op.inputs]
        moved = [x + source.uniform(-1e-3, 1e-3) for x in point]
        given = source.choice(parameters)
        here, there = distance(*point, *given), distance(*moved, *given)
        assert here == there or abs(here - there) <= 1.0001 * sum(
            abs(x - y) for x, y in zip(point, moved, strict=True)
        ), point
        assert here >= 0.0


@EACH_OP
def test_steepness_is_declared(op: Op) -> None:
    """A local gradient that is infinite where inputs and result are finite."""
    for parameters in {point[len(op.inputs) :] for point in samples(op)}:
        for point in itertools.product(EXTREME, repeat=len(op.inputs)):
            numbers = (*point, *parameters)
            if op.domain(*numbers) and math.isfinite(out := op.forward(*numbers)):
                is_steep = not all(map(math.isfinite, op.local_grads(*numbers, out)))
                assert op.steep(*parameters) or not is_steep, numbers


@EACH_OP
def test_what_is_shown_is_what_is_computed(op: Op) -> None:
    """The forms of a textbook give the same numbers, up to what they cancel."""
    for point in samples(op):
        out = op.forward(*point)
        if op.shown is not None:
            assert op.shown(*point) == pytest.approx(out, rel=1e-9, abs=1e-12)
        if op.shown_local_grads is not None and 0.0 not in point:
            computed = op.local_grads(*point, out)
            shown = op.shown_local_grads(*point, out)
            same = [x != x or x == pytest.approx(y, rel=1e-6, abs=1e-12) for x, y in zip(shown, computed, strict=True)]
            assert all(same), (point, shown, computed)


# ---------------------------------------------------------------- composites


@EACH_COMPOSITE
def test_what_is_shown_of_a_composite_is_what_is_computed(row: Composite) -> None:
    """The forms of a textbook give the same numbers."""
    xs = [0.3, -1.2, 2.0, 0.7] if row.name != "take" else [0.3]  # its list holds what was taken
    given = (*((0,) if row.indexed else ()), *(0.1 for _ in row.parameters))
    out = row.on(xs, *given)
    found, *slopes = evaluated([row.shown_output, *row.shown_slopes], row.known(xs, (*given, out)), Lists())
    length = len(xs) // len(row.inputs)
    shown = [each for slope in slopes for each in (slope if isinstance(slope, list) else [slope] * length)]
    assert found == pytest.approx(out, rel=1e-12)
    assert shown == pytest.approx(row.local_grads_on(xs, *given, out), rel=1e-9, abs=1e-12)


@EACH_COMPOSITE
def test_the_example_in_its_documentation(row: Composite) -> None:
    """What it says it prints."""
    globs = {"Value": gradwalk.Value, row.called_by: getattr(gradwalk, row.called_by)}
    test = doctest.DocTestParser().get_doctest(row.doc, globs, row.name, None, None)
    assert doctest.DocTestRunner().run(test).failed == 0
