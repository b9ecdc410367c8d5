"""Errors in a compiled function: raised, caught or not come to, as in the plain one."""

from __future__ import annotations

import contextlib
import copy
import math
import random
import traceback
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from comparing import agree

import gradwalk
from gradwalk import Value
from gradwalk.compiler.compile import compile
from gradwalk.custom import custom_op

Function = Callable[..., Any]


def ten_times_where_refused(x: Any) -> Any:
    try:
        gradwalk.log(x)
    except gradwalk.DomainError:
        return x * 10.0
    return x * 2.0


def only_positive(x: Any) -> Any:
    gradwalk.exp(x * 100.0)
    gradwalk.sqrt(x)
    return x * 2.0


@pytest.mark.parametrize("function", [ten_times_where_refused, only_positive])
def test_what_is_not_used_is_refused_all_the_same(function: Function) -> None:
    agree(function, (1.0,), (-1.0,), (2.0,), (100.0,), (-3.0,))


small = custom_op(
    lambda x: x * x if x < 10.0 else math.sqrt(10.0 - x), lambda x, out: 2.0 * x, name="small", check=False
)


def test_a_custom_operation_that_is_not_used_raises_all_the_same() -> None:
    def function(x: Any) -> Any:
        small(x)
        return x * 2.0

    def caught(x: Any) -> Any:
        try:
            return small(x) * 2.0
        except ValueError:
            return x * 7.0

    agree(function, (1.0,), (11.0,), (2.0,))
    agree(caught, (1.0,), (11.0,), (2.0,), (12.0,))
    agree(caught, (11.0,), (2.0,), (12.0,), (1.0,))


@pytest.mark.parametrize("given", [3.0, np.array([3.0])], ids=["number", "array"])
def test_an_error_of_a_custom_operation_is_not_lost_because_it_does_not_come_again(given: Any) -> None:
    fails = [False]

    def square(x: float) -> float:
        if fails[0]:
            fails[0] = False
            raise OSError("the line was busy")
        return x * x

    operation = custom_op(square, lambda x, out: 2.0 * x, check=False)
    compiled = compile(lambda x: operation(x if isinstance(x, Value) else x[0]) * 2.0)
    for call in (compiled, compiled.backward, compiled.value_and_grad):
        call(given)
        fails[0] = True
        with pytest.raises(OSError, match="busy"):
            call(given)


stair = custom_op(lambda x: float(x > 0.0), lambda x, out: 0.0, name="stair", check=False)


def test_a_step_of_ones_own_steps_where_the_plain_function_does() -> None:
    """Sums of 24 terms that cancel: added up in another order, they land on the other side of 0."""
    rng = random.Random(5)
    weights = [Value(rng.uniform(-1.0, 1.0)) for _ in range(24)]

    def function(xs: Any) -> Any:
        return stair(sum(w * x for w, x in zip(weights, xs, strict=True))) * 2.0 + xs[0]

    compiled = compile(function)
    for _ in range(100):
        xs = [rng.uniform(-1.0, 1.0) for _ in range(24)]
        xs[-1] = -sum(w.data * x for w, x in zip(weights[:-1], xs, strict=False)) / weights[-1].data
        assert compiled(xs).data == function(list(map(Value, xs))).data


@pytest.mark.parametrize("exact", [False, True])
def test_an_error_of_a_custom_operation_that_the_plain_function_does_not_come_to_is_none(exact: bool) -> None:
    """In an exact program the call may be made before what was compared is known."""

    def function(x: Any, y: Any) -> Any:
        limit, twice = y * y * 3.0, x * 2.0
        return small(twice + 20.0) if x < limit * 0.0 - 10.0 else twice * 7.0

    compiled = compile(function, exact=exact)
    calls = [(-20.0, 1.0), (1.0, 1.0), (-20.0, 2.0), (3.0, 1.0), (-11.0, 1.0)]
    assert [compiled(*args).data for args in calls] == [function(*map(Value, args)).data for args in calls]


def _place(x: Any, xs: Any) -> Any:
    try:
        return x * xs.index(x)
    except ValueError:
        return x * 10.0


def _removed(x: Any, xs: Any) -> Any:
    try:
        xs.remove(x)
    except ValueError:
        return x * 10.0
    return x * sum(xs)


@pytest.mark.parametrize(
    "look", [_place, _removed, lambda x, xs: _place(x, deque(xs)), lambda x, xs: _place(x, tuple(xs))]
)
def test_what_a_list_does_not_find_is_not_found(look: Function) -> None:
    """Its error says which number it was; that makes no text out of the number that the function could see."""
    agree(look, (1.0, [2.0, 3.0]), (3.0, [2.0, 3.0]), (1.0, [2.0, 3.0]), (2.0, [2.0, 3.0]), (3.0, [4.0]))


@pytest.mark.parametrize("text", [lambda x, y: x == y or repr(x), lambda x, y: (x == y, f"{x}"), lambda x, y: str(x)])
def test_a_text_made_of_a_number_is_refused(text: Function) -> None:
    with pytest.raises(TypeError, match="makes a text of a number"):
        compile(lambda x, y: (text(x, y), x)[1])(1.0, 2.0)


@pytest.mark.parametrize(
    "function", [lambda x: copy.copy(x) * x, lambda x: gradwalk.grad(lambda t: x * t)(1.0) * x, lambda x: x * x]
)
def test_gradients_of_the_plain_function_are_those_of_the_program(function: Function) -> None:
    """Where an error was caught only the plain function knows; in it, copies and derivatives keep their history too."""

    def catches(x: Any) -> Any:
        try:
            return gradwalk.log(x)
        except ValueError:
            return function(x)

    compiled = compile(catches)
    assert compiled.value_and_grad(-3.0) == (9.0, -6.0)
    assert gradwalk.value_and_grad(compiled)(-3.0) == gradwalk.value_and_grad(catches)(-3.0) == (9.0, -6.0)
    x = Value(-3.0)
    compiled(x).backward()
    assert x.grad == -6.0


@pytest.mark.parametrize(
    "text", [str, repr, "{}".format, lambda x: f"{x:.3f}"], ids=["str", "repr", "format", "digits"]
)
def test_an_error_whose_text_has_a_number_in_it_is_raised(text: Any) -> None:
    @compile
    def function(x: Any) -> Any:
        if x < 0.0:
            raise ArithmeticError(f"expected a number of at least 0, got {text(x)}")
        return x * x

    for call in (function, gradwalk.grad(function), function.value_and_grad, lambda x: function.map([x])):
        call(2.0)
        with pytest.raises(ArithmeticError, match=r"at least 0, got .*-1\.0") as raised:
            call(-1.0)
        assert raised.value.__cause__ is None
        assert raised.value.__suppress_context__


def test_an_error_that_one_example_catches_is_not_that_of_another() -> None:
    """One whose comparison is too close to tell has failed, too, and comes to the same operations."""

    def refusing(x: float) -> float:
        if x < 0.0:
            raise ValueError("below 0")
        return x

    strict = custom_op(refusing, lambda x, out: 1.0, name="strict", check=False)
    weights = [0.1 * i for i in range(24)]
    bound = sum(w * 1.0 for w in weights)

    def function(xs: Any, x: Any) -> Any:
        with contextlib.suppress(ValueError):
            strict(x)
        return xs[0] * 2.0 if sum(w * y for w, y in zip(weights, xs, strict=True)) > bound else xs[1] * 3.0 + x

    compiled = compile(function)
    examples = [([0.5] * 24, 1.0), ([0.4] * 24, -1.0), ([1.0] * 24, 1.0)]
    for given in (examples, examples[::-1]):
        assert [value.data for value in compiled.map(given)] == [
            function(list(map(Value, xs)), Value(x)).data for xs, x in given
        ]


def test_that_arguments_have_another_structure_is_said_where_there_was_one_before() -> None:
    """A first call is not compared with anything."""

    def second(xs: Any) -> Any:
        return 2.0 * xs[1]

    fresh, used = compile(second), compile(second)
    used([1.0, 2.0])
    for compiled, notes in ((fresh, 0), (used, 1)):
        with pytest.raises(IndexError) as caught:
            compiled([1.0])
        said = "".join(traceback.format_exception(caught.value))
        assert notes == said.count("was called with arguments of another structure than before")
