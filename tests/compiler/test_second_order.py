"""Second derivatives of compiled functions: forward over reverse, guarded where a row chooses, open where it can be."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from comparing import close
from hypothesis import given, settings
from hypothesis import strategies as st
from models import MODELS
from test_properties import branching

import gradwalk
from gradwalk import hessian, hvp
from gradwalk.compiler import derivatives
from gradwalk.compiler.compile import compile

Function = Callable[..., Any]


def programs_of(compiled: Any) -> list[int]:
    """How many programs each of its derivatives needed."""
    return [len(made.programs) for made in compiled.derivatives._programs.values()]


# ---------------------------------------------------------------- numbers


def test_a_hessian_times_a_vector() -> None:
    """Against the second derivatives written out; the same program serves other numbers."""

    def function(x: Any, y: Any) -> Any:
        return x * x * y + gradwalk.exp(x * y)

    compiled = compile(function)
    for x, y, v, w in ((0.3, 0.7, 1.0, 0.0), (-0.4, 1.5, 0.25, -2.0)):
        e = np.exp(x * y)
        xx, xy, yy = 2 * y + y * y * e, 2 * x + (1 + x * y) * e, x * x * e
        assert close([xx * v + xy * w, xy * v + yy * w], compiled.hessian_vector(x, y, vector=(v, w)))
    assert programs_of(compiled) == [1]


@pytest.mark.parametrize("whole", [True, False], ids=["at once", "by directions"])
def test_a_hessian_against_fifty_digits(whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every entry to 1e-10, whether one program makes them all or one product after the other."""
    if not whole:
        monkeypatch.setattr(derivatives, "MOST_PRODUCTS", 0)

    def function(x: Any, numbers: Any = gradwalk) -> Any:
        total = 0.0
        for i in range(len(x)):
            total = total + numbers.exp(x[i] * 0.3) * numbers.tanh(x[i - 1]) + x[i] ** 3 / (1.0 + x[i - 2] ** 2)
        return numbers.log(2.0 + numbers.sin(total))

    x = np.linspace(-1.0, 1.2, 11)
    found = hessian(compile(lambda x: function(x)))(x)
    with mpmath.workdps(50):
        for i, j in ((0, 0), (0, 1), (3, 5), (10, 0), (7, 7)):
            orders = [0] * len(x)
            orders[i] += 1
            orders[j] += 1
            exact = mpmath.diff(lambda *xs: function(xs, mpmath), tuple(map(mpmath.mpf, x)), tuple(orders))
            assert found[i, j] == pytest.approx(float(exact), rel=1e-10)
    assert np.abs(found - found.T).max() <= 1e-14 * np.abs(found).max()


OF_NUMBERS = [name for name in MODELS if "tokens" not in name]


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_products_with_models(name: str) -> None:
    """The Hessian by the leading argument of every model, times a vector: as the plain function has it."""
    function, args, _ = MODELS[name]()
    numbers: list[Any] = []
    part = gradwalk.structure.flatten(args[0], numbers)
    direction = part.fill(np.random.default_rng(3).normal(size=len(numbers)).tolist())
    plain, compiled = (hvp(f)(args[0], direction, *args[1:]) for f in (function, compile(function)))
    expected: list[Any] = []
    actual: list[Any] = []
    gradwalk.structure.flatten(plain, expected)
    gradwalk.structure.flatten(compiled, actual)
    assert close(expected, actual, relative=1e-10)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6))
def test_random_programs_with_branches(seed: int) -> None:
    """Products equal those of the plain function on every input, whichever branches it takes."""
    function = branching(seed)
    compiled = compile(function)
    rng = np.random.default_rng(seed)
    for count in (1, 2, 1):
        x, direction = rng.uniform(-1, 1, (2, 4))
        expected = hvp(function)(x, direction, count)
        assert close(expected.tolist(), hvp(compiled)(x, direction, count).tolist(), relative=1e-10)


# ---------------------------------------------------------------- rows that choose


def test_a_kink_is_guarded() -> None:
    compiled = compile(lambda x: gradwalk.relu(x) ** 3)
    assert [compiled.hessian_vector(x, vector=1.0) for x in (-1.0, 2.0, -3.0)] == [0.0, 12.0, 0.0]


@pytest.mark.parametrize("choose", [gradwalk.maximum, gradwalk.minimum], ids=["largest", "smallest"])
def test_another_winner_is_traced_again(choose: Function) -> None:
    """Of many, whichever wins, and of equals the first: never the derivative of an earlier winner."""

    def function(xs: Any) -> Any:
        return choose(list(xs)) ** 3 * xs[0]

    compiled = compile(function)
    for x in ([1.0, 2.0, 3.0], [5.0, 2.0, 3.0], [1.0, 6.0, 3.0], [4.0, 4.0, 4.0], [9.0, 8.0, 1.0], [1.5, 2.5, 3.5]):
        assert compiled.hessian_vector(x, vector=[1.0, -2.0, 0.5]) == hvp(function)(x, [1.0, -2.0, 0.5])
    assert programs_of(compiled) == [3]


def test_the_shift_of_a_softmax_is_found_anew_in_every_call() -> None:
    """Logits a thousand away from those that were traced neither overflow nor lose their digits."""

    def function(xs: Any) -> Any:
        return gradwalk.logsumexp(list(xs)) ** 2 + gradwalk.softmax(list(xs))[1]

    compiled = compile(function)
    for shift in (0.0, 1000.0, -1000.0, -744.0):
        x = np.array([0.5, 1.0, -0.25]) + shift
        expected = hessian(function)(x)
        assert close(expected.ravel().tolist(), hessian(compiled)(x).ravel().tolist(), relative=1e-10)
    assert programs_of(compiled) == [1]


def test_an_open_target_of_a_cross_entropy() -> None:
    """One program for all targets; an integer does not move."""

    def function(logits: Any, target: int) -> Any:
        return gradwalk.cross_entropy([logit * logit for logit in logits], target)

    compiled = compile(function)
    x = [0.5, -1.0, 0.75]
    for target in (1, 0, 2):
        expected = hvp(function)(x, [1.0, 2.0, -1.0], target)
        product, nothing = compiled.hessian_vector(x, target, vector=([1.0, 2.0, -1.0], 1))
        assert nothing == 0.0
        assert close(expected, product, relative=1e-10)
    assert programs_of(compiled) == [1]


def test_an_open_take() -> None:
    """One program for all rows, of lists and of numbers."""

    def function(x: Any, row: int) -> Any:
        first, second = gradwalk.take([list(x[:2]), list(x[2:])], row)
        third = gradwalk.take(list(x), row)
        return first * first * second + third * third * third

    compiled = compile(function)
    x = np.array([0.5, -1.0, 0.75, 2.0])
    for row in (1, 0, 1):
        assert close(hessian(function)(x, row).ravel().tolist(), hessian(compiled)(x, row).ravel().tolist())
    assert programs_of(compiled) == [1]


# ---------------------------------------------------------------- what else may happen


def test_leaves_closed_over_are_read_in_every_call() -> None:
    weight = gradwalk.Value(3.0)
    compiled = compile(lambda x: weight * x**3)
    assert compiled.hessian_vector(2.0, vector=1.0) == 36.0
    weight.data = 5.0
    assert (compiled.hessian_vector(2.0, vector=1.0), weight.grad) == (60.0, 0.0)


def test_directions_with_leaves_and_what_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Side by side, more directions than fit at once; what depends on the point alone is computed once for all."""
    monkeypatch.setattr(derivatives, "MOST_PRODUCTS", 0)
    weights = [[gradwalk.Value(math.sin(3.0 * i + j)) for j in range(19)] for i in range(7)]

    def function(x: Any) -> Any:
        hidden = [gradwalk.tanh(sum(w * a for w, a in zip(row, x, strict=True))) for row in weights]
        return gradwalk.logsumexp(hidden) * gradwalk.norm(hidden) + gradwalk.maximum(hidden)

    compiled, rng = compile(function), np.random.default_rng(5)
    for _ in range(3):
        x = rng.normal(size=19)
        expected = hessian(function)(x).ravel().tolist()
        assert close(expected, hessian(compiled)(x).ravel().tolist(), relative=1e-10)
        weights[0][0].data += 0.5


def test_directions_that_do_not_fit_are_refused() -> None:
    """The executor says what it expected."""
    compiled = compile(lambda x: x[0] * x[1])
    compiled.hessian_vector(np.ones(2), vector=np.ones(2))
    executor = next(iter(compiled.derivatives._programs.values()))._arrays[(4,)]._idle[0].executor
    run = getattr(executor, "run_directions", None)
    if run is None:  # the interpreter takes them one by one
        return
    for point, directions, out in ((np.ones(2), np.ones((3, 2)), np.ones((2, 3))), (np.ones(4), np.eye(2), np.eye(2))):
        with pytest.raises(ValueError, match="expected directions of a program"):
            run(point, (), directions, out)


def test_a_function_without_curvature() -> None:
    """Zeros, and constants where the gradient is linear."""
    compiled = compile(lambda x: 3.0 * x[0] + x[1])
    assert compiled.hessian_vector([1.0, 2.0], vector=[1.0, 1.0]) == [0.0, 0.0]
    assert hessian(compiled)([1.0, 2.0]) == [[0.0, 0.0], [0.0, 0.0]]
    assert hessian(compile(lambda x: x[0] * x[0] + x[0] * x[1]))([1.0, 2.0]) == [[2.0, 1.0], [1.0, 0.0]]


def test_an_exact_program_has_exact_second_derivatives() -> None:
    compiled = compile(lambda x: (x * x).exp(), exact=True)
    assert compiled.hessian_vector(0.5, vector=1.0) == pytest.approx(3.0 * math.exp(0.25), rel=1e-14)
    assert compiled.derivatives._programs.popitem()[1].program.exact


def test_a_number_outside_the_domain_is_refused_as_ever() -> None:
    compiled = compile(lambda x: gradwalk.log(x))
    assert hessian(compiled)(2.0) == -0.25
    with pytest.raises(gradwalk.DomainError, match=r"log: expected x > 0, got -1\.0"):
        hessian(compiled)(-1.0)


def test_bad_use_is_one_sentence() -> None:
    with pytest.raises(
        ValueError, match=r"hessian_vector: the vector, like the arguments: expected 2 numbers at .*, got 3 numbers"
    ):
        compile(lambda x: x[0] * x[1]).hessian_vector([1.0, 2.0], vector=[1.0, 2.0, 3.0])
    with pytest.raises(TypeError, match=r"second derivatives expected .* to return one Value"):
        compile(lambda x: [x, x]).hessian_vector(1.0, vector=1.0)


@pytest.mark.parametrize("exact", [False, True])
def test_at_an_infinite_slope_second_derivatives_are_those_of_the_plain_function(exact: bool) -> None:
    """There 0 · inf counts as 0, and which products come first decides what is left."""

    def root(x: Any, n: int = 1) -> Any:
        return gradwalk.sqrt(x[0] * x[1] * x[2]) * n

    point = np.array([0.5, 0.0, -1.5])
    plain, compiled = gradwalk.hessian(root)(point), gradwalk.compile(root, exact=exact)
    gradwalk.hessian(compiled)(np.array([0.5, 0.7, 1.5]))  # where the program applies
    assert np.isinf(plain).any()
    np.testing.assert_array_equal(gradwalk.hessian(compiled)(point), plain)
    assert gradwalk.hessian(compiled)(point.tolist()) == plain.tolist()
    for direction in np.eye(3):
        expected = gradwalk.hvp(root)(point, direction)
        np.testing.assert_array_equal(gradwalk.hvp(compiled)(point, direction), expected)
        np.testing.assert_array_equal(gradwalk.hvp(compiled).at(point)(direction), expected)
        assert gradwalk.hvp(compiled).at(point.tolist())(direction.tolist()) == expected.tolist()
        moved = compiled.hessian_vector(point.tolist(), 1, vector=(direction.tolist(), 0))
        assert moved == (expected.tolist(), 0.0)


@pytest.mark.parametrize("exact", [False, True])
def test_a_second_derivative_that_vanishes_beside_an_overflow(exact: bool) -> None:
    """The square of 1e198 is infinite, and 0 times that is nothing, as without compile."""

    def function(xs: Any) -> Any:
        return gradwalk.atan(gradwalk.exp(abs(xs[0]) ** xs[0] * 1000.0))

    compiled, at = gradwalk.compile(function, exact=exact), [-1.619, 1.0]
    assert gradwalk.hessian(function)(at) == gradwalk.hessian(compiled)(at) == [[0.0, 0.0], [0.0, 0.0]]
    assert gradwalk.hvp(function)(at, [1.0, 0.0]) == gradwalk.hvp(compiled)(at, [1.0, 0.0]) == [0.0, 0.0]


@pytest.mark.parametrize("made", [list, np.array], ids=["list", "array"])
def test_directions_side_by_side(monkeypatch: pytest.MonkeyPatch, made: Callable[[Any], Any]) -> None:
    """Where one program for all entries would be too large, of lists as of arrays."""
    monkeypatch.setattr(derivatives, "MOST_PRODUCTS", 10)

    def function(xs: Any) -> Any:
        return sum((b - a * a) ** 2 for a, b in itertools.pairwise(xs))

    at = [0.1 * i - 0.5 for i in range(12)]
    assert np.allclose(gradwalk.hessian(compile(function))(made(at)), gradwalk.hessian(function)(at), rtol=1e-12)


@pytest.mark.parametrize(
    ("x", "direction", "numbers"),
    [(np.ones(3), np.ones(2), 3), (np.ones((2, 2)), np.ones(4), 4), (np.ones(2), [1.0], 2)],
)
def test_a_direction_of_another_shape_is_refused(x: Any, direction: Any, numbers: int) -> None:
    with pytest.raises(ValueError, match=f"hvp: the direction, like the argument: expected {numbers} numbers"):
        gradwalk.hvp(compile(lambda x: (x * x).sum()))(x, direction)


def test_there_is_nothing_to_move_along_in_an_empty_array() -> None:
    assert gradwalk.hvp(compile(lambda x: (x * x).sum()))(np.ones(0), np.ones(0)).shape == (0,)


def test_second_derivatives_whose_squares_overflow_are_no_warning() -> None:
    """They were squared to see whether one is nan."""
    compiled = compile(lambda xs: 1e200 * xs[0] * xs[0] - 1e250 * xs[1] ** 3)
    assert gradwalk.hessian(compiled)([1.0, 1.0]) == [[2e200, 0.0], [0.0, -6e250]]
    assert gradwalk.hvp(compiled)([1.0, 1.0], [1.0, 1.0]) == [2e200, -6e250]
