"""The engines agree to the bit: more than a million evaluations of the table's rows, and graphs at random."""

from __future__ import annotations

import itertools
import math
import operator
import random
import struct
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from measures import INF, NAN, bits

import gradwalk
from gradwalk.operation import Op
from gradwalk.ops import OPS
from gradwalk.row_ops import COMPOSITES, Composite

EVALUATIONS_PER_OP = 22_000

_POSITIVE = [
    0.0, 5e-324, 1e-320, 2.2250738585072014e-308, 1e-300, 1e-160, 1e-16, 2.0**-53, 1e-5, 0.25, 0.5, 1.0, 1.5, 2.0,
    2.5, 3.0, math.pi / 2, math.pi, 8.0, 20.0, 88.0, 300.0, 709.782712893384, 710.0, 745.2, 1e5, 2.0**52 + 0.5,
    2.0**53, 1e16, 1e100, 1e154, 1.4e154, 1e300, 1.7976931348623157e308, INF,
]  # fmt: skip
SPECIAL = [
    *itertools.chain.from_iterable((x, -x) for x in _POSITIVE),
    *(math.nextafter(x, towards) for x in (0.5, 1.0, -1.0, 2.0, 2.5, 8.0, -0.5) for towards in (-INF, INF)),
    NAN,
]
FEWER = [0.0, -0.0, 5e-324, -5e-324, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 3.0, 1e-308, 1e308, -1e308, INF, -INF, NAN]


def any_number(source: random.Random) -> float:
    """Of every kind: small, of any size, special, and any pattern of 64 bits at all."""
    kind = source.randrange(5)
    if kind == 0:
        return source.uniform(-3.0, 3.0)
    if kind == 1:
        return source.uniform(-800.0, 800.0)
    if kind == 2:
        return math.copysign(10.0 ** source.uniform(-320.0, 308.0), source.random() - 0.5)
    if kind == 3:
        return float(source.randint(-40, 40)) / source.choice((1, 2, 4))
    return struct.unpack("<d", source.randbytes(8))[0]  # type: ignore[no-any-return]


def points(op: Op) -> list[tuple[float, ...]]:
    """The special numbers in all combinations, then random ones."""
    source = random.Random(op.name)
    arity = len(op.names)
    chosen = list(itertools.product(SPECIAL if arity < 3 else FEWER, repeat=arity))
    while len(chosen) < EVALUATIONS_PER_OP:
        chosen.append(tuple(any_number(source) for _ in range(arity)))
    return chosen


def test_more_than_a_million_evaluations() -> None:
    """The tests below make this many."""
    assert sum(len(points(op)) for op in OPS.values()) >= 1_000_000


@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
def test_every_row_agrees_to_the_bit(reference: Any, native: Any, op: Op) -> None:
    """data and every local gradient, on Values, at special numbers and random ones."""
    count = len(op.inputs)
    forward, local_grads = op.forward, op.local_grads
    make, call = native.Value, getattr(native.functions, op.name)
    expected: list[float] = []
    actual: list[float] = []
    chosen = points(op)
    with gradwalk.ieee():
        for point in chosen:
            out = forward(*point)
            expected.append(out)
            expected.extend(local_grads(*point, out))
            node = call(*map(make, point[:count]), *point[count:])
            actual.append(node.data)
            actual.extend(node._local_grads)
    if bits(expected) != bits(actual):
        width = 1 + count
        rows = [
            i for i in range(len(chosen)) if bits(expected[i * width :][:width]) != bits(actual[i * width :][:width])
        ]
        shown = [(chosen[i], expected[i * width :][:width], actual[i * width :][:width]) for i in rows[:5]]
        raise AssertionError(f"{len(rows)} of {len(chosen)} differ, such as {shown}")


@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
def test_functions_agree_on_values_and_on_numbers(reference: Any, native: Any, op: Op) -> None:
    """The engines' own functions: on Values, and on plain numbers, where they give plain floats."""
    source = random.Random(1)
    count = len(op.inputs)
    chosen = source.sample(points(op), 400)
    results = []
    with gradwalk.ieee():
        for engine in (reference, native):
            call = getattr(engine.functions, op.name)
            numbers: list[float] = []
            for point in chosen:
                node = call(*map(engine.Value, point[:count]), *point[count:])
                plain = call(*point)
                assert type(plain) is float
                numbers += [node.data, *node._local_grads, plain]
            results.append(bits(numbers))
    assert results[0] == results[1]


OPERATORS: dict[str, Callable[..., Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "**": operator.pow,
}  # fmt: skip


@pytest.mark.parametrize("symbol", OPERATORS)
def test_operators_agree_with_a_number_on_either_side(reference: Any, native: Any, symbol: str) -> None:
    """Value and Value, Value and number, number and Value: data, local gradients and gradients."""
    apply = OPERATORS[symbol]
    source = random.Random(2)
    pairs = [*itertools.product(FEWER, FEWER), *((any_number(source), any_number(source)) for _ in range(1000))]
    results = []
    with gradwalk.ieee():
        for engine in (reference, native):
            numbers: list[float] = []
            for a, b in pairs:
                x, y = engine.Value(a), engine.Value(b)
                for node in (apply(x, y), apply(x, b), apply(a, y), apply(x, x)):
                    node.backward()
                    numbers += [node.data, *node._local_grads, x.grad, y.grad]
                    numbers += [child.data for child in node._children]
            results.append(bits(numbers))
    assert results[0] == results[1]


# ---------------------------------------------------------------- composites


def called(row: Composite) -> Callable[[Any, Sequence[Any]], Any]:
    """A call of the composite with one list: where it takes two lists, with two parts of it, which overlap."""

    def call(composites: Any, xs: Sequence[Any]) -> Any:
        half = len(xs) // 2 + 1
        lists = [xs] if len(row.inputs) == 1 else [xs[:half], xs[-half:]]
        target = [len(xs) // 2] if row.target else []
        given = [0.35] * (len(row.parameters) - len(row.defaults))
        return getattr(composites, row.called_by)(*lists, *target, *given)

    return call


WITH_LISTS: dict[str, Callable[[Any, Sequence[Any]], Any]] = {
    **{row.called_by: called(row) for row in COMPOSITES.values()},
    "matvec": lambda c, xs: c.matvec([xs, xs[::-1]], xs),
    "rmsnorm without eps": lambda c, xs: c.rmsnorm(xs, 0.0),
    "layernorm without eps": lambda c, xs: c.layernorm(xs, 0.0),
    "take": lambda c, xs: c.take([xs, xs], 1),  # of rows
}


@pytest.mark.parametrize("name", WITH_LISTS)
def test_composites_agree_to_the_bit(reference: Any, native: Any, name: str) -> None:
    """data, local gradients and gradients, on Values, numbers and both mixed, short lists and long."""
    source = random.Random(name)
    lists = [[x] for x in SPECIAL]
    lists += [[any_number(source) for _ in range(source.choice((2, 3, 5)))] for _ in range(300)]
    lists += [[source.choice(FEWER) for _ in range(source.choice((2, 3, 4)))] for _ in range(300)]
    lists += [[source.uniform(-3.0, 3.0) for _ in range(count)] for count in (63, 64, 65, 130)]
    for share in (1.0, 0.5, 0.0):
        results = []
        for engine in (reference, native):
            source.seed(share)
            numbers: list[float] = []
            for given_ in lists:
                xs = [engine.Value(x) if source.random() < share else x for x in given_]
                out = WITH_LISTS[name](engine.composites, xs)
                for node in out if isinstance(out, list) else [out]:
                    if type(node) is float:
                        numbers.append(node)
                    else:
                        node.backward()
                        numbers += [node.data, *node._local_grads]
                        numbers += [child.grad for child in node._children]
            results.append(bits(numbers))
        assert results[0] == results[1]


# ---------------------------------------------------------------- graphs at random

numbers = st.one_of(
    st.floats(-4.0, 4.0), st.sampled_from(FEWER), st.floats(allow_nan=True, allow_infinity=True, allow_subnormal=True)
)
picks = st.integers(0, 10**6)
steps = st.one_of(
    st.tuples(st.just("leaf"), numbers),
    st.tuples(st.sampled_from(sorted(OPS)), st.lists(picks, min_size=3, max_size=3), st.lists(numbers, min_size=3, max_size=3), st.integers(0, 7)),  # noqa: E501
    st.tuples(st.sampled_from(sorted(OPERATORS)), picks, picks),
    st.tuples(st.sampled_from(["twice", "chain", "label", "peek", "pass", "hand"]), picks),
    st.tuples(
        st.just("list"),
        st.sampled_from(sorted(WITH_LISTS)),
        st.lists(st.one_of(picks, numbers), min_size=1, max_size=6),
    ),
)  # fmt: skip


def hand_made(engine: Any, x: Any) -> Any:
    out = engine.Value(x.data * 0.5, (x,), "half")

    def push() -> None:
        x.grad += 0.5 * out.grad

    out._backward = push
    return out


def played(engine: Any, script: Sequence[Any], start: Sequence[float]) -> list[int]:
    """Build the graph of the script, differentiate from its last nodes; every number in it, as bits."""
    nodes = [engine.Value(x) for x in start]

    def pick(index: int) -> Any:
        return nodes[index % len(nodes)]

    with gradwalk.ieee():
        for head, *rest in script:
            if head == "leaf":
                nodes.append(engine.Value(rest[0]))
            elif head in OPS:
                op, (indices, constants, mask) = OPS[head], rest
                arguments: list[Any] = [
                    constants[k] if mask >> k & 1 and k > 0 else pick(indices[k]) for k in range(len(op.inputs))
                ]
                arguments += constants[: len(op.parameters)]
                nodes.append(getattr(engine.functions, head)(*arguments))
            elif head in OPERATORS:
                nodes.append(OPERATORS[head](pick(rest[0]), pick(rest[1])))
            elif head == "list":
                xs = [pick(x) if isinstance(x, int) else x for x in rest[1]]
                out = WITH_LISTS[rest[0]](engine.composites, xs)
                nodes += [v for v in (out if isinstance(out, list) else [out]) if isinstance(v, engine.Value)]
            else:
                x = pick(rest[0])
                if head == "twice":
                    nodes.append(x + x)
                elif head == "chain":
                    for _ in range(50):
                        x = x * 0.99 + 0.01
                    nodes.append(x)
                elif head == "label":
                    x.label = "named"
                elif head == "peek":
                    assert isinstance(x._children, tuple)
                elif head == "hand":
                    nodes.append(hand_made(engine, x))
                else:
                    x.backward()
        for root in nodes[-2:]:
            root.backward()
    seen: list[float] = []
    for root in nodes:
        for node in root._topological_order() if root in nodes[-2:] else [root]:
            seen += [node.data, node.grad, *node._local_grads]
    return bits(seen)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.lists(steps, min_size=1, max_size=25), st.lists(numbers, min_size=2, max_size=4))
def test_graphs_at_random_agree_to_the_bit(reference: Any, native: Any, script: list[Any], start: list[float]) -> None:
    """Shared nodes, aliases, constants, dead branches, deep chains, composites, labels, hand-written nodes, several
    passes: data, every local gradient and every gradient."""
    assert played(reference, script, start) == played(native, script, start)


@pytest.mark.parametrize("seed", range(30))
def test_large_graphs_at_random_agree_to_the_bit(reference: Any, native: Any, seed: int) -> None:
    """The same with hundreds of steps."""
    source = random.Random(seed)
    script: list[Any] = []
    for _ in range(300):
        kind = source.randrange(5)
        if kind == 0:
            script.append((source.choice(["twice", "label", "peek", "hand", "chain"]), source.randrange(10**6)))
        elif kind == 1:
            script.append((source.choice(sorted(OPERATORS)), source.randrange(10**6), source.randrange(10**6)))
        elif kind == 2:
            xs = [source.choice([source.randrange(10**6), any_number(source)]) for _ in range(source.randint(1, 6))]
            script.append(("list", source.choice(sorted(WITH_LISTS)), xs))
        else:
            indices = [source.randrange(10**6) for _ in range(3)]
            constants = [any_number(source) for _ in range(3)]
            script.append((source.choice(sorted(OPS)), indices, constants, source.randrange(8)))
    start = [source.uniform(-2.0, 2.0) for _ in range(5)]
    assert played(reference, script, start) == played(native, script, start)


@pytest.mark.parametrize("seed", range(30))
def test_finite_graphs_at_random_agree_to_the_bit(reference: Any, native: Any, seed: int) -> None:
    """Graphs whose numbers stay finite, where a difference cannot hide behind a nan."""
    source = random.Random(seed)
    tame = ["sin", "cos", "tanh", "atan", "sigmoid", "softplus", "gelu", "silu", "erf", "asinh", "relu", "minimum",
            "maximum", "hypot", "elu", "leaky_relu", "cbrt", "abs", "atan2", "copysign"]  # fmt: skip
    composite = ["mean", "softmax", "log_softmax", "rmsnorm", "layernorm", "logsumexp", "cross_entropy", "norm", "dot"]
    script: list[Any] = []
    for i in range(300):
        if i % 3 == 0:
            xs = [source.choice([source.randrange(10**6), source.uniform(-1, 1)]) for _ in range(source.randint(2, 6))]
            script.append(("list", source.choice(composite), xs))
        else:
            indices = [source.randrange(10**6) for _ in range(3)]
            constants = [source.uniform(0.1, 1.0) for _ in range(3)]
            script.append((source.choice(tame), indices, constants, source.randrange(8)))
    start = [source.uniform(-2.0, 2.0) for _ in range(5)]
    outcome = played(reference, script, start)
    assert outcome == played(native, script, start)
    assert sum(number != bits([NAN])[0] for number in outcome) > len(outcome) / 2
