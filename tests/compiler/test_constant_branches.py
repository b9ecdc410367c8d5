"""A branch may return plain numbers as they stand there: in a program, and where the plain function is called."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import gradwalk
from gradwalk import Value, compile, engine, grad, hessian, value_and_grad
from gradwalk.custom import custom_op
from gradwalk.optim import SGD, Adam
from gradwalk.structure import flatten

Function = Callable[..., Any]

weight = Value(2.0)
root = custom_op(math.sqrt, lambda x, out: 0.5 / out, check=False)


def logarithm_or_five(x: Any) -> Any:
    try:
        return weight * gradwalk.log(x)
    except ValueError:
        return 5.0


def root_or_five(x: Any) -> Any:
    try:
        return weight * root(x)
    except ValueError:
        return 5.0


ROWS = ([1.0, 0.5, 0.1], [0.5, 0.25, 0.25], [0.2, 0.3, 0.5], [0.7, 0.2, 0.1], [0.1, 0.2, 0.1])
NUMBERS: dict[str, tuple[Function, tuple[Any, ...]]] = {
    "max": (lambda x: max(0.0, 1.0 - sum(x)), ROWS),
    "max with a leaf": (lambda x: max(0.0, weight * (1.0 - sum(x))), ROWS),
    "if": (lambda x: weight * (1.0 - sum(x)) if sum(x) < 1.0 else 0.0, ROWS),
    "an integer": (lambda x: 1.0 - sum(x) if sum(x) < 1.0 else 0, ROWS),
    "the sign of a zero": (lambda x: gradwalk.atan2(min(x, 0.0), -1.0), (-1.0, 1.0, 0.0)),
    "nan": (lambda x: max(1.0, x), (2.0, math.nan, 0.5, 1.0)),
    "caught": (logarithm_or_five, (1.0, -1.0, 2.0)),
    "caught at first": (logarithm_or_five, (-1.0, 1.0, 2.0)),
    "caught of a custom operation": (root_or_five, (1.0, -1.0, 4.0)),
    "caught of it at first": (root_or_five, (-1.0, 1.0, 4.0)),
    "NumPy's": (lambda x: x * weight if x > 0.0 else np.float64(3.0), (1.0, -1.0, 2.0)),
    "in an array of no dimension": (lambda x: np.array(x * weight if x > 0.0 else 0.0), (1.0, -1.0, 2.0)),
}


def plainly(function: Function, x: Any) -> tuple[float, float]:
    """The function's number, and its derivative by the leaf."""
    weight.grad = 0.0
    out = function([Value(number) for number in x] if isinstance(x, list) else Value(x))
    out = out.item() if isinstance(out, np.ndarray) else out
    if isinstance(out, Value):
        out.backward()
    return (out.data if isinstance(out, Value) else float(out)), weight.grad


def called(compiled: Any, x: Any) -> float:
    out = compiled(x)
    out = out.item() if isinstance(out, np.ndarray) else out
    out.backward()
    return float(out.data)


USES: dict[str, Callable[[Any, Any], float]] = {
    "call": called,
    "map": lambda compiled, x: called(lambda x: compiled.map([x])[0], x),
    "backward": lambda compiled, x: compiled.backward(x),
    "backward under no_grad": lambda compiled, x: gradwalk.no_grad()(compiled.backward)(x),
    "map_backward": lambda compiled, x: compiled.map_backward([x])[0],
    "train_step": lambda compiled, x: compiled.train_step(Kept([weight], lr=0.0), x),
    "train_step with Adam": lambda compiled, x: compiled.train_step(KeptByAdam([weight], lr=0.0), x),
    "map_train_step": lambda compiled, x: compiled.map_train_step(Kept([weight], lr=0.0), [x])[0],
}


class Kept(SGD):
    """The gradients of a step are left for the test to see."""

    def zero_grad(self) -> None:
        pass


class KeptByAdam(Adam):
    def zero_grad(self) -> None:
        pass


@pytest.mark.parametrize("exact", [False, True], ids=["", "exact"])
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", NUMBERS)
def test_a_constant_in_every_use(name: str, use: str, exact: bool) -> None:
    function, xs = NUMBERS[name]
    compiled = compile(function, exact=exact)
    for x in (*xs, *xs):
        expected = plainly(function, x)
        weight.grad = 0.0
        assert (USES[use](compiled, x), weight.grad) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("exact", [False, True], ids=["", "exact"])
@pytest.mark.parametrize("name", NUMBERS)
def test_its_derivatives_are_those_of_the_plain_function(name: str, exact: bool) -> None:
    function, xs = NUMBERS[name]
    compiled = compile(function, exact=exact)
    for x in (*xs, *xs):
        expected = value_and_grad(function)(x)
        for found in (compiled.value_and_grad(x), value_and_grad(compiled)(x)):
            assert found[0] == pytest.approx(expected[0], abs=1e-15)
            assert found[1] == pytest.approx(expected[1])
        assert hessian(compiled)(x) == hessian(function)(x)
        values, gradients = compiled.map_gradients([x], [weight])
        assert (values[0], gradients[0, 0]) == pytest.approx(plainly(function, x), abs=1e-15)


@pytest.mark.parametrize("name", NUMBERS)
def test_in_a_batch_with_the_others(name: str) -> None:
    function, xs = NUMBERS[name]
    compiled = compile(function)
    values = compiled.map_backward([*xs, *xs])
    assert values == pytest.approx([plainly(function, x)[0] for x in (*xs, *xs)], abs=1e-15)


@pytest.mark.parametrize("name", ["max", "if", "an integer", "in an array of no dimension"])
def test_where_each_operation_is_watched(name: str) -> None:
    """There it is the plain function that runs, from the first call on."""
    function, xs = NUMBERS[name]
    for x in xs:
        with gradwalk.detect_nonfinite():
            assert called(compile(function), x) == pytest.approx(plainly(function, x)[0], abs=1e-15)


# ---------------------------------------------------------------- structures of them


@dataclass
class Fitted:
    error: Any
    steps: int = 3
    name: None = None


class Pair(NamedTuple):
    a: Any
    b: Any


STRUCTURES: dict[str, tuple[Function, Any]] = {
    "list": (lambda x: [x * weight] if x > 0.0 else [0.0], [0.0]),
    "tuple": (lambda x: (x * weight, x) if x > 0.0 else (0.0, 2.0), (0.0, 2.0)),
    "integers": (lambda x: (x * weight, x) if x > 0.0 else (0, 2), (0.0, 2.0)),
    "integers beside numbers": (lambda x: (x * weight, 3, None) if x > 0.0 else (0.0, 2, None), (0.0, 2, None)),
    "dict": (lambda x: {"a": x * weight} if x > 0.0 else {"a": 0.5}, {"a": 0.5}),
    "dataclass": (lambda x: Fitted(x * weight) if x > 0.0 else Fitted(0.5), Fitted(0.5)),
    "named tuple": (lambda x: Pair(x * weight, [x]) if x > 0.0 else Pair(0.5, [1.0]), Pair(0.5, [1.0])),
    "array": (lambda x: np.array([x * weight, x]) if x > 0.0 else np.zeros(2), np.zeros(2)),
    "caught": (lambda x: [logarithm_or_five(x)], [5.0]),
    "tied": (lambda x: [max(0.0, 0.1 - (x + 1.5) - 0.2)] if x < 0.0 else [x], [0.0]),
}


def numbers_in(whole: Any) -> Any:
    """The same with plain numbers in place of Values."""
    flat: list[Any] = []
    structure = flatten(whole, flat)
    return structure.fill([number.data if isinstance(number, Value) else number for number in flat])


@pytest.mark.parametrize("exact", [False, True], ids=["", "exact"])
@pytest.mark.parametrize("name", STRUCTURES)
def test_a_structure_of_constants_keeps_its_form(name: str, exact: bool) -> None:
    function, expected = STRUCTURES[name]
    compiled = compile(function, exact=exact)
    for x in (1.0, -1.0, 2.0, -1.0):
        found = numbers_in(compiled(x))
        of_map = numbers_in(compiled.map([x])[0])
        with gradwalk.no_grad():
            plain = compiled(x)
        for each in (found, of_map, plain):
            wanted = expected if x < 0.0 else numbers_in(function(Value(x)))
            assert type(each) is type(wanted)
            assert repr(numbers_in(each)) == repr(wanted)


@pytest.mark.parametrize("derivative", [gradwalk.jacfwd, gradwalk.jacrev, gradwalk.jacobian])
@pytest.mark.parametrize("name", ["list", "tuple", "dict", "array", "caught", "tied"])
def test_the_jacobian_of_constants(name: str, derivative: Any) -> None:
    function, _ = STRUCTURES[name]
    compiled = compile(function)
    for x in (1.0, -1.0, 2.0, -1.0):
        assert repr(derivative(compiled)(x)) == repr(derivative(function)(x))


def test_a_constant_has_no_part_in_a_gradient_around_it() -> None:
    ramp = compile(lambda x: [x if x > 0.0 else 0.0])
    assert [grad(lambda x: ramp(x)[0] * x)(x) for x in (3.0, -3.0)] == [6.0, 0.0]


# ---------------------------------------------------------------- what is refused as before


@pytest.mark.parametrize("returned", [5.0, 5, [1.0, 2], np.zeros(2), None, "text"])
def test_what_depends_on_nothing_in_any_branch_is_refused(returned: Any) -> None:
    compiled = compile(lambda x: returned)
    uses: list[Function] = [
        compiled,
        compiled.backward,
        compiled.value_and_grad,
        lambda x: compiled.map([x]),
        lambda x: compiled.train_step(SGD([weight], lr=0.1), x),
    ]
    for use in uses:
        with pytest.raises(TypeError, match="to return a Value"):
            use(1.0)


@pytest.mark.parametrize("returned", [None, "text", [], True])
def test_a_branch_without_a_number_is_refused(returned: Any) -> None:
    compiled = compile(lambda x: x if x > 0.0 else returned)
    assert compiled(1.0).data == 1.0
    with pytest.raises(TypeError, match="to return a Value"):
        compiled(-1.0)


def test_on_the_reference_engine() -> None:
    """The same there."""
    if engine.NAME == "reference":
        pytest.skip("this process runs on it")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", __file__]
    done = subprocess.run(command, env=os.environ | {"GRADWALK_ENGINE": "reference"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
