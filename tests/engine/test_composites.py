"""Composites: against plain scalar code, where plain code would overflow, in the stated order, and bad input."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from measures import bits, outcome

NUMBERS = [0.3, -1.2, 2.0, 0.7]
INF, NAN = math.inf, math.nan


def scalar_softmax(xs: Sequence[Any]) -> list[Any]:
    exponentials = [x.exp() for x in xs]
    total = sum(exponentials)
    return [e / total for e in exponentials]


def scalar_rmsnorm(xs: Sequence[Any], eps: float = 1e-5) -> list[Any]:
    scale = (sum(x * x for x in xs) / len(xs) + eps) ** -0.5
    return [x * scale for x in xs]


def scalar_layernorm(xs: Sequence[Any], eps: float = 1e-5) -> list[Any]:
    mean = sum(xs) / len(xs)
    return scalar_rmsnorm([x - mean for x in xs], eps)


def largest(xs: Sequence[Any]) -> Any:
    out = xs[0]
    for x in xs[1:]:
        out = out.maximum(x)
    return out


def smallest(xs: Sequence[Any]) -> Any:
    out = xs[0]
    for x in xs[1:]:
        out = out.minimum(x)
    return out


# the composite, and the same in plain scalar operations
PAIRS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any], Any]]] = {
    "sum": (lambda c, xs: c.sum(xs), lambda xs: sum(xs)),
    "mean": (lambda c, xs: c.mean(xs), lambda xs: sum(xs) / len(xs)),
    "dot": (lambda c, xs: c.dot(xs[:2], xs[2:]), lambda xs: xs[0] * xs[2] + xs[1] * xs[3]),
    "dot with itself": (lambda c, xs: c.dot(xs, xs), lambda xs: sum(x * x for x in xs)),
    "matvec": (
        lambda c, xs: c.matvec([xs[:2], [2.0, xs[0]]], xs[2:]),
        lambda xs: [xs[0] * xs[2] + xs[1] * xs[3], 2.0 * xs[2] + xs[0] * xs[3]],
    ),
    "norm": (lambda c, xs: c.norm(xs), lambda xs: sum(x * x for x in xs).sqrt()),
    "logsumexp": (lambda c, xs: c.logsumexp(xs), lambda xs: sum(x.exp() for x in xs).log()),
    "softmax": (lambda c, xs: c.softmax(xs), scalar_softmax),
    "log_softmax": (lambda c, xs: c.log_softmax(xs), lambda xs: [p.log() for p in scalar_softmax(xs)]),
    "cross_entropy": (lambda c, xs: c.cross_entropy(xs, 1), lambda xs: -scalar_softmax(xs)[1].log()),
    "rmsnorm": (lambda c, xs: c.rmsnorm(xs), scalar_rmsnorm),
    "rmsnorm with eps": (lambda c, xs: c.rmsnorm(xs, eps=0.5), lambda xs: scalar_rmsnorm(xs, 0.5)),
    "layernorm": (lambda c, xs: c.layernorm(xs), scalar_layernorm),
    "layernorm with eps": (lambda c, xs: c.layernorm(xs, eps=0.5), lambda xs: scalar_layernorm(xs, 0.5)),
    "maximum": (lambda c, xs: c.maximum(xs), largest),
    "minimum": (lambda c, xs: c.minimum(xs), smallest),
    "maximum of two": (lambda c, xs: c.maximum(xs[0], xs[1]), lambda xs: xs[0].maximum(xs[1])),
    "minimum of three": (lambda c, xs: c.minimum(*xs[:3]), lambda xs: smallest(xs[:3])),
    "take": (lambda c, xs: c.take(xs, 2), lambda xs: xs[2] * 1.0),
    "take a row": (lambda c, xs: c.take([xs[:2], xs[2:]], 1), lambda xs: [x * 1.0 for x in xs[2:]]),
}


def weighed(out: Any) -> Any:
    """One number of one output or several, in which each counts differently."""
    return sum((i + 1.5) * v for i, v in enumerate(out)) if isinstance(out, list) else out * 1.5


@pytest.mark.parametrize("name", PAIRS)
def test_equals_the_scalar_composition(engine: Any, name: str) -> None:
    """data and gradients, to a relative 1e-12."""
    composite, scalar = PAIRS[name]
    xs, ys = [engine.Value(x) for x in NUMBERS], [engine.Value(x) for x in NUMBERS]
    out, expected = weighed(composite(engine.composites, xs)), weighed(scalar(ys))
    out.backward()
    expected.backward()
    assert out.data == pytest.approx(expected.data, rel=1e-12)
    assert [x.grad for x in xs] == pytest.approx([y.grad for y in ys], rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("name", PAIRS)
def test_gradients_against_differences(engine: Any, name: str) -> None:
    """Central differences of the data alone."""
    composite, _ = PAIRS[name]

    def value(numbers: Sequence[float]) -> float:
        return weighed(composite(engine.composites, [engine.Value(x) for x in numbers])).data  # type: ignore[no-any-return]

    xs = [engine.Value(x) for x in NUMBERS]
    weighed(composite(engine.composites, xs)).backward()
    step = 1e-5
    for i, x in enumerate(xs):
        above, below = ([*NUMBERS[:i], NUMBERS[i] + sign * step, *NUMBERS[i + 1 :]] for sign in (1, -1))
        assert x.grad == pytest.approx((value(above) - value(below)) / (2 * step), rel=1e-7, abs=1e-8)


@pytest.mark.parametrize("name", PAIRS)
def test_plain_numbers_in_floats_out(engine: Any, name: str) -> None:
    """Without a Value among the inputs nothing is recorded, and the numbers are the same to the bit."""
    composite, _ = PAIRS[name]
    plain = composite(engine.composites, NUMBERS)
    recorded = composite(engine.composites, [engine.Value(x) for x in NUMBERS])
    plain, recorded = (v if isinstance(v, list) else [v] for v in (plain, recorded))
    assert {type(number) for number in plain} == {float}
    assert bits(plain) == bits(v.data for v in recorded)


def test_one_node_each(engine: Any) -> None:
    """A composite is one node over all of its inputs, also a plain number among them."""
    xs = [engine.Value(x) for x in NUMBERS]
    out = engine.composites.sum([*xs, 3])
    assert out._children[:4] == tuple(xs)
    assert (out._children[4].data, out._children[4]._constant) == (3.0, True)
    assert (out._op, out._local_grads) == ("sum", (1.0,) * 5)


def test_one_node_per_output(engine: Any) -> None:
    """softmax of n numbers is n nodes, each over all inputs."""
    xs = [engine.Value(x) for x in NUMBERS]
    out = engine.composites.softmax(xs)
    assert [v._children for v in out] == [tuple(xs)] * 4
    assert [v._op for v in out] == ["softmax"] * 4


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "rmsnorm", "layernorm"])
def test_outputs_share_their_constants(engine: Any, name: str) -> None:
    """A plain number is one constant for all outputs, so its gradient is of all of them."""
    x = engine.Value(1.0)
    first, second = getattr(engine.composites, name)([x, 2.0])
    assert first._children[1] is second._children[1]


def test_rows_share_the_constants_of_the_vector(engine: Any) -> None:
    """So do the rows of a matrix times a vector with a plain number in it."""
    x = engine.Value(1.0)
    first, second = engine.composites.matvec([[x, x], [x, x]], [x, 2.0])
    assert first._children[3] is second._children[3]


def test_generators_are_accepted(engine: Any) -> None:
    """Anything that can be iterated over once is a list of numbers."""
    c, x = engine.composites, engine.Value(2.0)
    assert c.sum(x * float(i) for i in range(4)).data == 12.0
    assert c.dot((x for _ in range(3)), iter([1, 2, 3])).data == 12.0
    assert [v.data for v in c.matvec(([x, x] for _ in range(2)), (i for i in (1, 2)))] == [6.0, 6.0]
    assert [v.data for v in c.softmax(x for _ in range(2))] == [0.5, 0.5]
    assert c.cross_entropy((x for _ in range(2)), 0).data == math.log(2.0)
    assert c.maximum(x * float(i) for i in range(4)).data == 6.0
    assert c.take((x * float(i) for i in range(4)), 3).data == 6.0
    assert c.norm({3.0: 1, 4.0: 2}) == 5.0
    assert len(c.rmsnorm(x for _ in range(3))) == len(c.layernorm(x for _ in range(3))) == 3


def test_lists_of_any_length(engine: Any) -> None:
    """One number, and thousands."""
    c = engine.composites
    x = engine.Value(0.5)
    for count in (1, 2, 63, 64, 65, 5000):
        x.grad = 0.0
        c.mean([x] * count).backward()
        assert x.grad == pytest.approx(1.0, rel=1e-12)
    assert [v.data for v in (*c.softmax([x]), *c.log_softmax([x]), *c.layernorm([x]))] == [1.0, 0.0, 0.0]


# ---------------------------------------------------------------- stability


def test_softmax_of_large_numbers(engine: Any) -> None:
    """softmax([1000, 0]) is [1, 0], with finite gradients."""
    xs = [engine.Value(1000.0), engine.Value(0.0)]
    out = engine.composites.softmax(xs)
    (out[0] * 3.0 + out[1]).backward()
    assert [v.data for v in out] == [1.0, 0.0]
    assert [x.grad for x in xs] == [0.0, 0.0]


def test_cross_entropy_of_a_confident_wrong_answer(engine: Any) -> None:
    """1000, not inf, and the gradient pushes with full strength."""
    xs = [engine.Value(1000.0), engine.Value(0.0)]
    loss = engine.composites.cross_entropy(xs, 1)
    loss.backward()
    assert (loss.data, [x.grad for x in xs]) == (1000.0, [1.0, -1.0])


def test_log_softmax_where_softmax_vanishes(engine: Any) -> None:
    """-1000, not log(0)."""
    assert [v.data for v in engine.composites.log_softmax([engine.Value(1000.0), engine.Value(0.0)])] == [0.0, -1000.0]


@pytest.mark.parametrize("shift", [-1e6, -1000.0, 1000.0, 1e6])
def test_logsumexp_far_from_zero(engine: Any, shift: float) -> None:
    """The shift is added after the logarithm; the gradients are those of unshifted numbers."""
    xs = [engine.Value(shift), engine.Value(shift)]
    out = engine.composites.logsumexp(xs)
    out.backward()
    assert (out.data, [x.grad for x in xs]) == (math.log(2.0) + shift, [0.5, 0.5])


@pytest.mark.parametrize("size", [1e-320, 1e-300, 1e-160, 1.0, 1e160, 1e300])
def test_norm_of_huge_and_tiny_numbers(engine: Any, size: float) -> None:
    """Squares neither overflow nor vanish."""
    xs = [engine.Value(3.0 * size), engine.Value(-4.0 * size)]
    out = engine.composites.norm(xs)
    out.backward()
    assert out.data == pytest.approx(5.0 * size, rel=1e-3 if size < 1e-308 else 1e-15)
    assert [x.grad for x in xs] == pytest.approx([0.6, -0.8], rel=1e-3 if size < 1e-308 else 1e-15)


def test_norm_at_the_origin(engine: Any) -> None:
    """The gradient chosen at the kink is 0."""
    xs = [engine.Value(0.0), engine.Value(-0.0)]
    out = engine.composites.norm(xs)
    out.backward()
    assert (out.data, [x.grad for x in xs]) == (0.0, [0.0, 0.0])


def test_probabilities_that_are_impossible(engine: Any) -> None:
    """-inf is a masked logit: probability 0, gradient 0, and the others as if it were not there."""
    xs = [engine.Value(1.0), engine.Value(-INF), engine.Value(1.0)]
    out = engine.composites.softmax(xs)
    (out[0] * 2.0 + out[1] * 5.0).backward()
    assert [v.data for v in out] == [0.5, 0.0, 0.5]
    assert [x.grad for x in xs] == [0.5, 0.0, -0.5]
    assert engine.composites.cross_entropy(xs, 0).data == math.log(2.0)


# ---------------------------------------------------------------- order, ties, nan


def test_sums_run_from_left_to_right(engine: Any) -> None:
    """1e16 + 1 + 1 - 1e16 loses both ones; the same numbers the other way round keep them."""
    c = engine.composites
    numbers = [1e16, 1.0, 1.0, -1e16]
    assert c.sum([engine.Value(x) for x in numbers]).data == c.sum(numbers) == ((1e16 + 1.0) + 1.0) - 1e16 == 0.0
    assert c.sum([engine.Value(x) for x in numbers[1:] + numbers[:1]]).data == 2.0
    assert c.mean(numbers) == 0.0
    assert c.dot(numbers, [1.0] * 4) == 0.0


def test_sums_start_with_the_first_term(engine: Any) -> None:
    """Not with 0: the sum of -0.0 is -0.0."""
    assert math.copysign(1.0, engine.composites.sum([engine.Value(-0.0)]).data) == -1.0


def test_ties_go_to_the_first(engine: Any) -> None:
    """Of equal largest (or smallest) numbers the first gets the whole gradient; 0.0 and -0.0 are equal."""
    for name, numbers in (("maximum", [1.0, 5.0, 5.0]), ("minimum", [7.0, 5.0, 5.0]), ("maximum", [-1.0, -0.0, 0.0])):
        xs = [engine.Value(x) for x in numbers]
        out = getattr(engine.composites, name)(xs)
        out.backward()
        assert [x.grad for x in xs] == [0.0, 1.0, 0.0]
        assert bits([out.data]) == bits([numbers[1]])
        pair = [engine.Value(x) for x in numbers[1:]]
        getattr(engine.composites, name)(*pair).backward()
        assert [x.grad for x in pair] == [1.0, 0.0]


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("name", ["sum", "mean", "norm", "logsumexp", "maximum", "minimum"])
def test_a_nan_comes_through(engine: Any, name: str, place: int) -> None:
    """Wherever it stands, the result is nan: it is never skipped."""
    numbers = [1.0, 2.0, 3.0]
    numbers[place] = NAN
    assert math.isnan(getattr(engine.composites, name)([engine.Value(x) for x in numbers]).data)


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "rmsnorm", "layernorm"])
def test_a_nan_comes_through_to_every_output(engine: Any, name: str) -> None:
    """One nan spoils them all."""
    out = getattr(engine.composites, name)([engine.Value(x) for x in (1.0, NAN, 3.0)])
    assert all(math.isnan(v.data) for v in out)


def test_a_nan_takes_the_gradient_of_the_maximum(engine: Any) -> None:
    """The gradient shows where the nan came from."""
    xs = [engine.Value(x) for x in (9.0, NAN, 3.0)]
    engine.composites.maximum(xs).backward()
    assert [x.grad for x in xs] == [0.0, 1.0, 0.0]


# ---------------------------------------------------------------- bad input

BAD: dict[str, Callable[[Any, Any], Any]] = {
    "sum of nothing": lambda c, v: c.sum([]),
    "mean of nothing": lambda c, v: c.mean(()),
    "norm of nothing": lambda c, v: c.norm(iter([])),
    "logsumexp of nothing": lambda c, v: c.logsumexp([]),
    "softmax of nothing": lambda c, v: c.softmax([]),
    "log_softmax of nothing": lambda c, v: c.log_softmax([]),
    "cross_entropy of nothing": lambda c, v: c.cross_entropy([], 0),
    "rmsnorm of nothing": lambda c, v: c.rmsnorm([]),
    "layernorm of nothing": lambda c, v: c.layernorm([]),
    "maximum of nothing": lambda c, v: c.maximum([]),
    "maximum without arguments": lambda c, v: c.maximum(),
    "minimum of nothing": lambda c, v: c.minimum([]),
    "take of nothing": lambda c, v: c.take([], 0),
    "dot of nothing": lambda c, v: c.dot([], []),
    "dot of nothing with something": lambda c, v: c.dot([], [v]),
    "dot of two lengths": lambda c, v: c.dot([v, v], [v]),
    "matvec of two lengths": lambda c, v: c.matvec([[v, v], [v]], [v, v]),
    "matvec with nothing": lambda c, v: c.matvec([[v]], []),
    "matvec of nothing with nothing": lambda c, v: c.matvec([], []),
    "an index below": lambda c, v: c.cross_entropy([v, v], -1),
    "an index beyond": lambda c, v: c.cross_entropy([v, v], 2),
    "an index far beyond": lambda c, v: c.cross_entropy([v, v], 10**30),
    "no whole index": lambda c, v: c.cross_entropy([v, v], 1.0),
    "no index at all": lambda c, v: c.cross_entropy([v, v], "1"),
    "a Value as index": lambda c, v: c.cross_entropy([v, v], v),
    "take below": lambda c, v: c.take([v, v], -1),
    "take beyond": lambda c, v: c.take([v, v], 2),
    "take far beyond": lambda c, v: c.take([v, v], -(10**30)),
    "take no whole index": lambda c, v: c.take([v, v], 0.0),
    "a string in a sum": lambda c, v: c.sum([v, "2"]),
    "strings for numbers": lambda c, v: c.sum("22"),
    "None in a softmax": lambda c, v: c.softmax([v, None]),
    "complex in a dot": lambda c, v: c.dot([v, 1j], [v, v]),
    "a string in the other list": lambda c, v: c.dot([v], ["2"]),
    "strings in matrix and vector": lambda c, v: c.matvec([["a"]], ["b"]),
    "a string in a row": lambda c, v: c.take([["a"]], 0),
    "a list in a list": lambda c, v: c.mean([[v]]),
    "a huge integer": lambda c, v: c.mean([v, 10**400]),
    "a number for a list": lambda c, v: c.sum(5),
    "a Value for a list": lambda c, v: c.softmax(v),
    "a Value for many": lambda c, v: c.maximum(v),
    "a number for two lists": lambda c, v: c.dot(5, [v]),
    "a number for a matrix": lambda c, v: c.matvec(5, [v]),
    "a number for a row": lambda c, v: c.matvec([5], [v]),
    "a number for rows": lambda c, v: c.take(5, 0),
    "None for a list": lambda c, v: c.logsumexp(None),
    "a string as eps": lambda c, v: c.rmsnorm([v], "1.0"),
    "None as eps": lambda c, v: c.layernorm([v], None),
    "a Value as eps": lambda c, v: c.rmsnorm([v], v),
    "a list for the second of two": lambda c, v: c.maximum(v, [v]),
    "an argument too many": lambda c, v: c.rmsnorm([v], 1e-5, 1.0),
    "an unknown name": lambda c, v: c.rmsnorm([v], epsilon=1e-5),
    "a list given twice": lambda c, v: c.rmsnorm([v], xs=[v]),
    "no target": lambda c, v: c.cross_entropy([v]),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_in_the_same_words(reference: Any, native: Any, case: str) -> None:
    """An error, of the same type and text from both engines."""
    said = [outcome(partial(BAD[case], e.composites, e.Value(2.0))) for e in (reference, native)]
    assert said[0].startswith(("TypeError: ", "ValueError: ", "IndexError: ", "RangeError: "))
    assert said[0] == said[1]


def test_an_empty_matrix(engine: Any) -> None:
    """No rows, no outputs."""
    assert engine.composites.matvec([], [engine.Value(1.0)]) == []


@pytest.mark.parametrize(
    ("case", "text"),
    [
        ("sum of nothing", "ValueError: sum: expected at least one number, got an empty list"),
        ("maximum of nothing", "ValueError: maximum: expected at least one number, got an empty list"),
        ("dot of two lengths", "ValueError: dot: expected two lists of the same length, got 2 and 1"),
        ("an index beyond", "IndexError: cross_entropy: expected an index from 0 to 1, got 2"),
        ("take below", "IndexError: take: expected an index from 0 to 1, got -1"),
        ("an argument too many", "TypeError: rmsnorm: expected at most 2 arguments, got 3"),
        ("an unknown name", "TypeError: rmsnorm: expected each argument once, by a name it has, got 'epsilon'"),
        ("no target", "TypeError: cross_entropy: expected the argument 'target', got none"),
    ],
)
def test_what_is_said(engine: Any, case: str, text: str) -> None:
    """The composite by the name the user called it, what it expected, what it got."""
    assert outcome(partial(BAD[case], engine.composites, engine.Value(2.0))) == text


def test_bad_input_changes_nothing(engine: Any) -> None:
    """The Values beside the bad one keep their data and gradients."""
    x = engine.Value(2.0)
    x.grad = 3.0
    for case in BAD.values():
        outcome(partial(case, engine.composites, x))
    assert (x.data, x.grad, x._children) == (2.0, 3.0, ())
