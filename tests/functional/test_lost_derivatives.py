"""Results that have lost their derivative: whoever asks for it is told."""

from __future__ import annotations

import math
import re
import warnings
from typing import Any

import numpy as np
import pytest

import gradwalk
import gradwalk.math
import gradwalk.optim
from gradwalk import Value, compile, grad, hessian, hvp, jacobian, jvp, value_and_grad, vjp
from gradwalk.lost_derivatives import SEARCH
from gradwalk.numpy import everywhere

MAKERS = [pytest.param(lambda f: f, id="plain"), pytest.param(compile, id="compiled")]

# ---------------------------------------------------------------- searches by comparing


def root_by_bisection(a: Any) -> Any:
    low, high = 0.0, 10.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if middle * middle - a < 0.0 else (low, middle)
    return 0.5 * (low + high)


def test_a_search_that_loses_the_derivative_is_told() -> None:
    """The result of a bisection does not depend on what it was compared with, though the root does."""
    with pytest.warns(
        RuntimeWarning, match="grad: the result does not depend on the argument, .* compared with 60 times"
    ):
        assert grad(root_by_bisection)(2.0) == 0.0
    with pytest.warns(RuntimeWarning, match=r"does not depend on the argument\[1\], .* gradwalk.implicit_root"):
        assert grad(lambda p: p[0] * root_by_bisection(p[1]))([3.0, 4.0]) == [2.0, 0.0]
    with pytest.warns(RuntimeWarning, match="jacobian"):
        jacobian(lambda a: [root_by_bisection(a), 2.0])(2.0)


@pytest.mark.parametrize("derivative", [grad, value_and_grad, hessian, jacobian, *(
    lambda f, taken=taken: lambda a: taken(f)(a, 1.0) for taken in (jvp, vjp, hvp)
)])  # fmt: skip
@pytest.mark.parametrize("made", MAKERS)
def test_every_derivative_tells_of_a_search(derivative: Any, made: Any) -> None:
    """Compiled, too, and whether or not it was called before."""
    function = made(lambda a: root_by_bisection(a) * weight)
    weight = Value(3.0)
    function(2.0)
    with pytest.warns(RuntimeWarning, match="the result does not depend on .* compared with 60 times") as told:
        derivative(function)(2.0)
    assert {warning.filename for warning in told} == {__file__}  # not a line of gradwalk's


def test_a_compiled_function_tells_of_a_search_when_it_is_asked_for_the_derivative() -> None:
    function = compile(lambda scale, a: root_by_bisection(a) * scale)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        function(3.0, 4.0)
        assert grad(function)(3.0, 4.0) == 2.0
    with pytest.warns(RuntimeWarning, match="does not depend on a, which was compared with 60 times"):
        assert function.value_and_grad(3.0, 4.0)[1] == (2.0, 0.0)
    with pytest.warns(RuntimeWarning, match="does not depend on a, which was compared with 60 times"):
        assert grad(function, argnums=(0, 1))(3.0, 4.0) == (2.0, 0.0)


BACKWARD = {
    "a call": lambda f, v: f(v).backward(),
    "backward": lambda f, v: f.backward(v),
    "train_step": lambda f, v: f.train_step(gradwalk.optim.SGD([v], lr=0.1), v),
    "map": lambda f, v: f.map([(v,)])[0].backward(),
    "map_backward": lambda f, v: f.map_backward([(v,)]),
    "map_gradients": lambda f, v: f.map_gradients([(v,)], [v]),
    "a part": lambda f, v: grad(lambda x: f(x) * x)(v.data),
    "value_and_grad": lambda f, v: f.value_and_grad(v.data),
    "array": lambda f, v: value_and_grad(compile(lambda row: f.function(row[0])))(np.array([v.data])),
}


@pytest.mark.parametrize("derivative", BACKWARD.values(), ids=BACKWARD)
@pytest.mark.parametrize("leaf", [1.0, Value(3.0)], ids=["alone", "with a leaf"])
def test_whatever_goes_backward_through_a_compiled_search_is_told_once(derivative: Any, leaf: Any) -> None:
    """Also by Values that are given to it, and by each call one time: programs that do not apply tell nothing."""
    function = compile(lambda a: root_by_bisection(a) * leaf)
    for a in (2.0, 3.0, 5.0):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            function(Value(a))
            assert not told
            derivative(function, Value(a))
        assert ["compared with 60 times" in str(each.message) for each in told] == [True]
        assert told[0].filename == __file__


@pytest.mark.parametrize(("times", "told"), [(SEARCH, 1), (SEARCH - 1, 0)])
def test_a_search_compares_again_and_again(times: int, told: int) -> None:
    """Less often is a branch."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        assert grad(lambda a: float(sum(a > i for i in range(times))))(0.5) == 0.0
    assert len(warned) == told


def straight(x: Any) -> Any:
    return sum(max(x - 0.1 * i, 0.0) for i in range(40))


def test_a_branch_is_not_a_search() -> None:
    """What is compared now and then, or computed with too, is not told of."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert grad(lambda x: max(x, 0.0) * 1.0)(-1.0) == 0.0
        assert grad(lambda a: root_by_bisection(a) + 0.0 * a)(2.0) == 0.0
        assert grad(lambda p: sum(max(x, 0.0) for x in p))([-1.0] * 50) == [0.0] * 50
        for f in (straight, compile(straight)):  # its slope does not depend on x, as that of a line does not
            assert (hvp(f)(2.0, 1.0), hessian(f)(2.0), grad(grad(f))(2.0)) == (0.0, 0.0, 0.0)


# ---------------------------------------------------------------- branches that are taken at a single point


def log_mean(hot_in: Any, hot_out: Any, cold_in: Any, cold_out: Any) -> Any:
    one, other = hot_in - cold_out, hot_out - cold_in
    return one if one == other else (one - other) / gradwalk.log(one / other)


def in_a_table(x: Any) -> Any:
    for known, result in ((1.0, 3.0), (2.0, 5.0)):
        if x != known:
            continue
        return result
    return 2.0 * x + 1.0


def root_until_it_stays(a: Any) -> Any:
    x = 1.0
    while (nearer := (x + a / x) / 2.0) != x:
        x = nearer
    return x


@pytest.mark.parametrize("made", MAKERS)
def test_a_branch_that_is_taken_at_a_single_point_is_told(made: Any) -> None:
    told = "does not depend on {}, because it was compared by ==, and was equal"
    name = "the argument" if made is not compile else "{}"
    with pytest.warns(RuntimeWarning, match=told.format(re.escape(name.format("x")))):
        assert grad(made(in_a_table))(2.0) == 0.0
    with pytest.warns(RuntimeWarning, match=told.format(r"the argument\[1\]" if made is not compile else "hot_out")):
        assert grad(made(log_mean), argnums=(0, 1, 2, 3))(100.0, 60.0, 20.0, 60.0) == (1.0, 0.0, 0.0, -1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert grad(made(in_a_table))(1.5) == 2.0
        assert grad(made(root_until_it_stays))(2.0) == pytest.approx(0.125**0.5)
        assert grad(made(lambda x: 2.0 * x if x == 3.0 else 7.0 * x))(3.0) == 2.0


# ---------------------------------------------------------------- refusals that are caught


def by_math(x: Any) -> Any:
    try:
        return x + math.erf(x)
    except TypeError:
        return x


def by_asking(x: Any) -> Any:
    try:
        float(x)
    except TypeError:
        return 2.0 * x
    return x


def trying(function: Any) -> Any:
    def tried(x: Any) -> Any:
        try:
            return function(x)
        except (ValueError, ArithmeticError):
            return 3.0 * x

    return tried


UNLIKE_FLOATS = {
    "math": (by_math, 0.5),
    "float": (by_asking, 0.5),
    "complex": (trying(lambda x: abs(x**0.5) * x), -0.5),
    "log": (trying(np.log), -0.5),
    "overflow": (trying(np.exp), 1000.0),
}


@pytest.mark.parametrize(("function", "x"), UNLIKE_FLOATS.values(), ids=UNLIKE_FLOATS)
@pytest.mark.parametrize("made", MAKERS)
def test_a_refusal_that_is_caught_is_told(made: Any, function: Any, x: float) -> None:
    """Otherwise the function would do something else than with floats, without a word."""
    with pytest.warns(
        RuntimeWarning, match="refused where floats are not, .* and the function caught the error"
    ) as told:
        value_and_grad(made(function))(x)
    assert {warning.filename for warning in told} == {__file__}


LIKE_FLOATS = {
    "log": (lambda x: gradwalk.math.log(x), -0.5),
    "math.pow": (lambda x: gradwalk.math.pow(x, 0.5), -0.5),
    "division": (lambda x: 1.0 / x, 0.0),
    "power": (lambda x: x**-1.0, 0.0),
    "large power": (lambda x: x**9.0, 1e100),
    "remainder": (lambda x: 1.0 % x, 0.0),
    "whole": (lambda x: 1.0 // x, 0.0),
}


@pytest.mark.parametrize(("function", "x"), LIKE_FLOATS.values(), ids=LIKE_FLOATS)
@pytest.mark.parametrize("made", MAKERS)
def test_what_floats_meet_too_is_not_told(made: Any, function: Any, x: float) -> None:
    """But of arrays, where NumPy's floats do not: they are asked by operators, and refused by the functions of math."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert grad(made(trying(function)))(x) == 3.0
    unlike_numpys = not function.__code__.co_names
    told = pytest.warns(RuntimeWarning, match="caught the error") if unlike_numpys else warnings.catch_warnings()
    with told:
        warnings.simplefilter("always" if unlike_numpys else "error")
        by_entry = made(lambda given: trying(function)(given["x"][0]))
        assert grad(by_entry)({"x": np.array([x])})["x"] == 3.0


@pytest.mark.parametrize("made", MAKERS)
def test_everywhere_is_not_told_of(made: Any) -> None:
    """Functions of the standard library are then as with floats."""
    with everywhere(), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert value_and_grad(made(by_math))(0.5)[0] == by_math(0.5)


def test_a_text_that_a_trace_refuses_and_somebody_catches_is_told() -> None:
    def function(x: Any) -> Any:
        try:
            return x * len(str(x))
        except TypeError:
            return x

    with pytest.warns(RuntimeWarning, match="the function caught the error"):
        compile(function)(2.0)


# ---------------------------------------------------------------- rounding


ROUNDED = {
    "digits": lambda x: round(3.0 * x, 2),
    "scaled": lambda x: 0.1 + round(3.0 * x, 2) * 2.0,
    "whole": lambda x: round(3.0 * x) + 1.0,
    "floor": lambda x: gradwalk.math.floor(x * 100.0) / 100.0,
    "ceil and trunc": lambda x: gradwalk.math.ceil(x) * gradwalk.math.trunc(x),
}


@pytest.mark.parametrize("function", ROUNDED.values(), ids=ROUNDED)
@pytest.mark.parametrize("derivative", [grad, jacobian, *(
    lambda f, taken=taken: lambda a: taken(f)(a, 1.0) for taken in (jvp, vjp)
)])  # fmt: skip
def test_a_result_that_is_rounded_is_told(derivative: Any, function: Any) -> None:
    """0 is its derivative; whoever asks for it wants that of the number before."""
    with pytest.warns(RuntimeWarning, match="the derivative is 0, because the result is rounded") as told:
        assert derivative(function)(1.234) in (0.0, (0.0,))
    assert {warning.filename for warning in told} == {__file__}


@pytest.mark.parametrize("function", [ROUNDED["floor"], lambda x: 1.0 + (3.0 * x) // 1.0], ids=["floor", "//"])
def test_a_compiled_result_that_is_rounded_is_told(function: Any) -> None:
    compiled = compile(function)
    for derivative in (grad(compiled), lambda x: compiled.value_and_grad(x)[1], lambda x: jvp(compiled)(x, 1.0)):
        with pytest.warns(RuntimeWarning, match="the derivative is 0, because the result is rounded") as told:
            assert derivative(1.234) == 0.0
        assert {warning.filename for warning in told} == {__file__}
    with pytest.warns(RuntimeWarning, match="the derivative is 0, because the result is rounded"):
        compiled.backward(Value(1.234))
    both = compile(lambda x, y: gradwalk.math.floor(3.0 * x) * y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compiled(1.234) == function(1.234)
        assert grad(lambda x: x - compiled(x))(1.234) == 1.0
        assert grad(both, argnums=(0, 1))(1.5, 2.0) == (0.0, 4.0)
    with pytest.warns(RuntimeWarning, match="the derivative is 0, because the result is rounded"):
        assert grad(both)(1.5, 2.0) == 0.0


@pytest.mark.parametrize("function", [
    lambda x: (x - gradwalk.math.floor(x)) ** 2,  # flat at 2, and a wave elsewhere
    lambda x: x - round(x, 1) - x,
    lambda x: 5.0,
    lambda x: gradwalk.relu(-x),
    lambda x: 5.0 if x == x else x,  # not nan
])  # fmt: skip
def test_a_derivative_that_is_0_otherwise_is_not_told_of(function: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert grad(function)(2.0) == 0.0
