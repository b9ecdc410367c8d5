"""Calling a compiled function: arguments, results, guards, and what is refused."""

from __future__ import annotations

import builtins
import enum
import functools
import importlib.util
import math
import os
import random
import re
import subprocess
import sys
import threading
import traceback
import warnings
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from comparing import close, with_gradients

import gradwalk
from gradwalk import Value
from gradwalk.compiler.compile import KEPT, compile
from gradwalk.control import no_grad
from gradwalk.engine import topological_order
from gradwalk.optim import SGD

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def energy(xs: Any) -> Any:
    return sum(x * x for x in xs)


# ---------------------------------------------------------------- arguments and results


def test_a_call_is_one_node_over_values_and_leaves() -> None:
    weight, x = gradwalk.Value(3.0), gradwalk.Value(2.0)
    out = compile(lambda x, y: weight * x * y)(x, 5.0)
    assert (30.0, (x, weight), 3) == (out.data, out._children, len(topological_order(out)))
    out.backward()
    assert (x.grad, weight.grad) == (15.0, 10.0)


def test_eager_code_before_and_after() -> None:
    x = gradwalk.Value(0.5)
    square = compile(lambda v: v * v)
    (square(x.exp()).log() * 3.0).backward()
    assert close([6.0], [x.grad])


def test_a_computed_value_closed_over_is_a_child() -> None:
    x = gradwalk.Value(2.0)
    y = x * x
    out = compile(lambda k: y * k)(3.0)
    x.data = 100.0  # y was computed before
    out.backward()
    assert (out.data, x.grad) == (12.0, 12.0)


def test_lists_tuples_dicts_and_arrays() -> None:
    def function(a: list[Any], b: tuple[Any, Any], c: dict[str, Any], d: Any, *, e: Any) -> Any:
        return a[0] * b[1] + c["k"][0] * d[1, 0] + e

    compiled = compile(function)
    args = [1.0, 2.0], (3.0, 4.0), {"k": [5.0]}, np.array([[1.0, 2.0], [3.0, 4.0]])
    value, (a, b, c, d, e) = compiled.value_and_grad(*args, e=0.5)
    assert (value, a, b, c, e) == (19.5, [4.0, 0.0], (0.0, 1.0), {"k": [3.0]}, {"e": 1.0})
    assert d.tolist() == [[0.0, 0.0], [5.0, 0.0]]


def test_arrays_in_and_out() -> None:
    compiled = compile(energy)
    for xs in (np.array([3.0, 4.0]), np.array([1.0, 2.0]), np.arange(4.0)[::2]):
        value, gradient = compiled.value_and_grad(xs)
        assert (float((xs * xs).sum()), (2.0 * xs).tolist()) == (value, gradient.tolist())


def test_a_matrix_keeps_its_shape() -> None:
    compiled = compile(lambda m: (m * m).sum())
    for _ in range(2):
        assert compiled.value_and_grad(np.array([[1.0, 2.0], [3.0, 4.0]]))[1].tolist() == [[2.0, 4.0], [6.0, 8.0]]


def test_a_structure_of_results() -> None:
    x, y = gradwalk.Value(2.0), gradwalk.Value(3.0)
    out = compile(lambda a, b: {"sum": a + b, "rest": [a * b, (a, 7)]})(x, y)
    assert (out["sum"].data, out["rest"][0].data, out["rest"][1][0].data, out["rest"][1][1]) == (5.0, 6.0, 2.0, 7)
    (out["sum"] * 10.0 + out["rest"][0] * out["rest"][1][0]).backward()
    assert (x.grad, y.grad) == (10.0 + 2 * 2.0 * 3.0, 10.0 + 2.0 * 2.0)


def test_several_results_remember_the_numbers_of_their_call() -> None:
    weight, x = gradwalk.Value(2.0), gradwalk.Value(3.0)
    compiled = compile(lambda v: [v * v * weight, v + weight])
    first = compiled(x)
    weight.data = 50.0
    compiled(gradwalk.Value(7.0))
    first[0].backward()
    assert (x.grad, weight.grad) == (12.0, 9.0)


def test_an_array_of_results() -> None:
    out = compile(lambda m: m * 2.0)(np.array([[1.0, 2.0]]))
    assert out.shape == (1, 2)
    assert out[0, 1].data == 4.0


def test_plain_numbers_under_no_grad() -> None:
    weight = gradwalk.Value(3.0)
    with no_grad():
        assert compile(lambda x: weight * x)(2.0) == 6.0


def test_gradients_accumulate() -> None:
    x = gradwalk.Value(3.0)
    square = compile(lambda v: v * v)
    square(x).backward()
    square(x).backward()
    assert x.grad == 12.0


def test_the_same_value_twice() -> None:
    x = gradwalk.Value(3.0)
    product = compile(lambda a, b: a * b)
    product(x, x).backward()
    y, z = gradwalk.Value(2.0), gradwalk.Value(5.0)
    product(y, z).backward()
    assert (x.grad, y.grad, z.grad) == (6.0, 5.0, 2.0)


def test_inside_another_compiled_function_it_is_part_of_it() -> None:
    inner = compile(lambda x: x * x)
    outer = compile(lambda x: inner(x) + inner(x + 1.0))
    assert outer.value_and_grad(2.0) == (13.0, 10.0)


def test_backward_without_a_node() -> None:
    weight, x = gradwalk.Value(3.0), gradwalk.Value(5.0)
    compiled = compile(lambda a: weight * weight * a)
    assert (compiled.backward(2.0), compiled.backward(2.0), weight.grad) == (18.0, 18.0, 24.0)
    assert (compiled.backward(x), x.grad, weight.grad) == (45.0, 9.0, 54.0)
    with pytest.raises(TypeError, match="backward expected"):
        compile(lambda a: [a, a * weight]).backward(1.0)


def test_as_a_method() -> None:
    class Model:
        def __init__(self) -> None:
            self.weight = gradwalk.Value(3.0)

        @compile
        def loss(self, x: Any) -> Any:
            return self.weight * x

    model = Model()
    model.loss(2.0).backward()
    assert model.weight.grad == 2.0


def test_methods_of_many_objects_are_bounded() -> None:
    """The programs of so many objects are kept; one whose programs were dropped is compiled again."""

    class Model:
        def __init__(self, weight: float) -> None:
            self.weight = weight

        @compile
        def loss(self, x: Any) -> Any:
            return self.weight * x

    models = [Model(float(i)) for i in range(KEPT + 8)]
    last = models[-1].loss
    assert [model.loss(2.0).data for model in models] == [2.0 * i for i in range(KEPT + 8)]
    assert models[-1].loss is models[-1].loss
    assert models[0].loss(3.0).data == 0.0
    assert (models[-1].loss is last, len(Model.loss._bound)) == (False, KEPT)


def test_threads_do_not_mix_their_numbers() -> None:
    compiled = compile(energy)
    compiled(np.zeros(50))
    wrong: list[float] = []

    def work(number: float) -> None:
        for _ in range(200):
            value, gradient = compiled.value_and_grad(np.full(50, number))
            if value != 50 * number * number or gradient[7] != 2 * number:
                wrong.append(value)

    threads = [threading.Thread(target=work, args=(float(i),)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_no_gradient_comes_from_results_that_have_none() -> None:
    """Not even 0 times the infinite slope of a root at 0."""
    x = [gradwalk.Value(4.0), gradwalk.Value(0.0)]
    compile(lambda xs: [gradwalk.sqrt(x) for x in xs])(x)[0].backward()
    assert [value.grad for value in x] == [0.25, 0.0]
    taken = compile(lambda xs, i: gradwalk.take([gradwalk.sqrt(x) for x in xs], i) * 1.0)
    assert taken.value_and_grad([4.0, 0.0, 1.0], 0)[1][0] == [0.25, 0.0, 0.0]


# ---------------------------------------------------------------- guards


def test_a_branch_that_flips_is_traced_again_and_both_are_kept() -> None:
    compiled = compile(lambda x: x * x if x > 0.0 else -x)
    for x in (2.0, -3.0, 4.0, -5.0, 0.0):
        assert (x * x if x > 0 else -x, 2 * x if x > 0 else -1.0) == compiled.value_and_grad(x)
    assert len(compiled.programs) == 2


def test_the_program_that_was_used_last_comes_first() -> None:
    """Also if it was made before the others."""
    compiled = compile(lambda x: x * x if x > 0.0 else -x)
    compiled(2.0)
    first = compiled.program
    compiled(-3.0)
    assert [first] == compiled.programs[1:]
    compiled(4.0)
    assert [first, first] == [compiled.program, compiled.programs[0]]


def test_another_structure_is_traced_again() -> None:
    compiled = compile(energy)
    assert (compiled([1.0, 2.0]).data, compiled([1.0, 2.0, 3.0]).data) == (5.0, 14.0)
    assert len(compiled.programs) == 2


def test_an_integer_used_as_a_plain_one_specialises() -> None:
    compiled = compile(lambda xs, i: sum(xs[: i + 1]) * 2.0)
    assert tuple(compiled([1.0, 2.0], i).data for i in (0, 1, 0)) == (2.0, 6.0, 2.0)
    assert len(compiled.programs) == 2


def test_an_integer_beside_a_value_stays_open() -> None:
    compiled = compile(lambda x, n: x * n + n)
    assert (compiled(3.0, 2).data, compiled(3.0, 3).data) == (8.0, 12.0)
    assert len(compiled.programs) == 1


@pytest.mark.parametrize("function", [lambda x, n: x * n, lambda x, n: (x * n) ** 2 if n > 2 else x / n])
def test_the_gradient_by_an_integer_is_the_same_where_the_plain_function_is_called(function: Any) -> None:
    compiled = compile(function)
    expected = gradwalk.value_and_grad(function, argnums=(0, 1))
    for n in (3, 2):
        with gradwalk.detect_nonfinite():
            plain = compiled.value_and_grad(2.0, n)
        assert expected(2.0, n) == compiled.value_and_grad(2.0, n) == plain


def test_the_gradient_by_an_integer_that_is_needed_as_one_is_0_where_the_plain_function_is_called() -> None:
    compiled = compile(lambda x, n: sum(x * x for _ in range(n)))
    with gradwalk.detect_nonfinite():
        assert compiled.value_and_grad(2.0, 3) == (12.0, (12.0, 0.0))
    assert compiled.value_and_grad(2.0, 3) == (12.0, (12.0, 0.0))


@dataclass
class Sizes:
    width: int = 3
    height: int = 4


@pytest.mark.parametrize(
    ("function", "given"),
    [
        (lambda x, n: n * n * x, 3),
        (lambda x, n: x * n + x**n, 3),
        (lambda x, n: x * n * n, np.int8(3)),
        (lambda x, ns: x * ns[0] * ns[1], (3, 4.0)),
        (lambda x, d: x * d["a"] * d["a"] * d["a"], {"a": 3}),
        (lambda x, ns: (x * ns * ns).sum(), np.array([3, 4])),
        (lambda x, ns: (x * ns * ns).sum(), np.array([3, 4], np.uint8)),
        (lambda x, sizes: x * sizes.width * sizes.height, Sizes()),
        (lambda x, n: n * n * x if n < 5 else x, 3),
    ],
)
def test_by_an_integer_that_is_fixed_the_gradient_is_what_it_is_by_a_float(function: Any, given: Any) -> None:
    compiled = compile(function)
    expected = gradwalk.value_and_grad(function, argnums=(0, 1))(2.0, given)
    for _ in range(2):
        assert repr(compiled.value_and_grad(2.0, given)) == repr(expected)
    assert len(compiled.programs) == 1
    with gradwalk.detect_nonfinite():
        assert repr(compiled.value_and_grad(2.0, given)) == repr(expected)


def test_integers_in_a_list_of_floats_are_numbers_whatever_another_argument_is_needed_for() -> None:
    compiled = compile(lambda xs, n: sum(x * x for x in xs for _ in range(n)))
    for n in (2, 3, 2):
        assert compiled.value_and_grad([3.0, 4], n) == (25.0 * n, ([6.0 * n, 8.0 * n], 0.0))


def test_by_an_integer_that_is_needed_as_one_it_is_0_not_what_it_is_by_some_uses() -> None:
    compiled = compile(lambda x, n: sum(x * n for _ in range(n)))
    for n in (3, 4, 3):
        assert compiled.value_and_grad(2.0, n) == (2.0 * n * n, (float(n * n), 0.0))


def test_an_integer_for_which_the_function_has_another_branch_does_not_move() -> None:
    compiled = compile(lambda x, n: x * 10.0 * (n % 2) if isinstance(n, int) and n % 3 == 0 else x * n)
    assert compiled.value_and_grad(2.0, 9) == (20.0, (10.0, 0.0))


def test_an_integer_compared_is_a_guard() -> None:
    compiled = compile(lambda x, n: x * 2.0 if n == 0 else x * 3.0 if n > 5 else x)
    assert [compiled(1.0, n).data for n in (0, 1, 3, 6, 9, 0)] == [2.0, 1.0, 1.0, 3.0, 3.0, 2.0]
    assert len(compiled.programs) <= 3


def test_take_out_of_range_raises_as_the_plain_function_does() -> None:
    rows = [[gradwalk.Value(1.0)], [gradwalk.Value(2.0)]]
    compiled = compile(lambda i: gradwalk.take(rows, i)[0] * 2.0)
    assert (compiled(0).data, compiled(1).data) == (2.0, 4.0)
    for index in (2, -1):
        with pytest.raises(IndexError, match="from 0 to 1"):
            compiled(index)


def test_take_hands_gradients_to_the_row_taken() -> None:
    rows = [[gradwalk.Value(float(i)), gradwalk.Value(10.0 * i)] for i in range(3)]
    compiled = compile(
        lambda i, j: sum(a * b for a, b in zip(gradwalk.take(rows, i), gradwalk.take(rows, j), strict=True))
    )
    leaves = [value for row in rows for value in row]
    for args in ((0, 1), (2, 2), (1, 0)):
        assert close(with_gradients(compiled.function, args, leaves), with_gradients(compiled, args, leaves))


def test_programs_are_bounded_and_what_changes_is_said() -> None:
    compiled = compile(lambda x, n: x * sum(1.0 for _ in range(n)))
    with pytest.warns(RuntimeWarning, match=r"test_compiled_calls.py:\d+.*the integer \d+ among the arguments"):
        results = [compiled(1.0, n).data for n in range(1, KEPT + 10)]
    assert [float(n) for n in range(1, KEPT + 10)] == results
    assert len(compiled.programs) == KEPT


def test_the_comparison_that_keeps_changing_is_named() -> None:
    def steps(x: Any) -> Any:
        count = 0
        while x > 1.0:
            x = x * 0.5
            count += 1
        return x * float(count)

    compiled = compile(steps)
    with pytest.warns(RuntimeWarning, match=r"the comparison at .*test_compiled_calls.py:\d+ keeps changing"):
        results = [compiled(2.0**power).data for power in range(12)]
    assert [float(power) for power in range(12)] == results


def test_numbers_an_operation_refuses_raise_as_in_the_plain_function() -> None:
    compiled = compile(lambda x: gradwalk.log(x) * 0.0 + 1.0 / gradwalk.exp(-x))
    compiled(1.0)
    with pytest.raises(gradwalk.DomainError, match=r"expected x > 0, got -1\.0"):
        compiled(-1.0)
    with pytest.raises(gradwalk.RangeError):
        compile(lambda x: 1.0 / (x.exp() + 1.0))(1000.0)
    assert np.isfinite(compiled(2.0).data)


def test_under_ieee_the_plain_functions_infinity_is_returned() -> None:
    compiled = compile(lambda x: gradwalk.log(x))
    compiled(1.0)
    with gradwalk.ieee():
        assert -np.inf == compiled(0.0).data
    assert len(compiled.programs) == 1


# ---------------------------------------------------------------- what is refused


def test_reading_a_gradient_names_the_line() -> None:
    def peeking(x: Any) -> Any:
        return x * x.grad

    line = peeking.__code__.co_firstlineno + 1
    with pytest.raises(TypeError, match=rf"peeking .*reads or sets .grad.*at .*test_compiled_calls.py:{line}"):
        compile(peeking)(1.0)


def test_data_is_a_value_that_hands_no_gradient_on() -> None:
    """It is computed again in every call; whatever would make a plain number of it is refused."""
    weight = Value(2.0)
    compiled = compile(lambda x: x * x.data + weight.data * x)
    assert [compiled.value_and_grad(x) for x in (3.0, 5.0)] == [(15.0, 5.0), (35.0, 7.0)]
    weight.data = 4.0
    assert compiled.value_and_grad(3.0) == (21.0, 7.0)
    freezing: list[Any] = [lambda x: x * float(x.data), lambda x: x * math.exp(x.data), lambda x: [x, x][x.data]]
    for function in freezing:
        with pytest.raises(TypeError):
            compile(function)(1.0)


def test_the_largest_is_recorded_and_not_which_it_was() -> None:
    def softmax(xs: Any) -> Any:
        largest = max(x.data for x in xs)
        exponentials = [gradwalk.exp(x - largest) for x in xs]
        return exponentials[0] / sum(exponentials)

    def clipped(xs: Any) -> Any:
        return max(xs[0], 0.0) * 3.0 + min(xs) * xs[1]

    for function in (softmax, clipped):
        compiled = compile(function)
        for xs in ([1.0, 2.0, 3.0], [3.0, 1.0, 2.0], [-1.0, 5.0, -1.0], [2.0, 2.0, 2.0], [0.0, 0.0, 1.0]):
            assert close(with_gradients(function, (xs,)), with_gradients(compiled, (xs,)))
        assert len(compiled.programs) == 1
    assert (max, min) == (builtins.max, builtins.min)


def test_a_gpt_of_scalars_compiles_as_it_stands() -> None:
    spec = importlib.util.spec_from_file_location("scalar_gpt", EXAMPLES / "scalar_gpt.py")
    assert spec is not None
    assert spec.loader is not None
    gpt = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(gpt)
    parameters = gpt.initial_parameters(random.Random(0))
    leaves = gpt.flattened(parameters)
    tokens = gpt.tokens_of("ada")
    compiled = compile(lambda tokens: gpt.loss_of(parameters, tokens))
    for _ in range(3):
        for leaf in leaves:
            leaf.data += 0.1 * math.sin(1e3 * leaf.data + 1.0)
        assert close(
            with_gradients(lambda tokens: gpt.loss_of(parameters, tokens), (tokens,), leaves),
            with_gradients(compiled, (tokens,), leaves),
        )
    assert len(compiled.programs) == 1


@pytest.mark.parametrize(
    "returned", ["text", None, 3.0, [1.0, 2], {"a": object()}], ids=["text", "None", "number", "numbers", "object"]
)
def test_results_without_a_value_are_refused(returned: Any) -> None:
    def function(x: Any) -> Any:
        return returned

    line = function.__code__.co_firstlineno
    with pytest.raises(TypeError, match=rf"expected function \(.*test_compiled_calls.py:{line}\) to return a Value"):
        compile(function)(1.0)


def test_no_grad_inside_is_refused() -> None:
    def function(x: Any) -> Any:
        with no_grad():
            y = x * 2.0
        return y * x

    with pytest.raises(TypeError, match=r"function \(.*uses no_grad\(\) inside"):
        compile(function)(1.0)


def test_nodes_made_by_hand_are_refused() -> None:
    with pytest.raises(TypeError, match="makes a node by hand"):
        compile(lambda x: gradwalk.Value(1.0, (x,), "mine", local_grads=(1.0,)) * x)(1.0)


def test_nodes_made_by_hand_of_nodes_made_by_hand_are_refused() -> None:
    def function(x: Any) -> Any:
        inner = gradwalk.Value(1.0, (x,), "inner", local_grads=(1.0,))
        return gradwalk.Value(1.0, (inner,), "outer", local_grads=(1.0,)) * x

    with pytest.raises(TypeError, match=r"makes a node by hand \('inner'\)"):
        compile(function)(1.0)


def test_a_leaf_made_inside_is_a_leaf() -> None:
    compiled = compile(lambda x: gradwalk.Value(2.0) * x)
    assert compiled.value_and_grad(3.0) == (6.0, 2.0)


def test_value_and_grad_of_several_results_is_refused() -> None:
    with pytest.raises(TypeError, match=r"to return one Value, got a structure.*"):
        compile(lambda x: [x, x * 2.0]).value_and_grad(1.0)


@pytest.mark.parametrize("argument", [{1.0, 2.0}, 1j, np.array(["a"])], ids=["set", "complex", "text"])
def test_arguments_that_are_no_numbers_are_refused(argument: Any) -> None:
    with pytest.raises(TypeError, match="compile: expected"):
        compile(lambda x: x)(argument)


def test_an_error_with_another_structure_says_so() -> None:
    def pairs(xs: Any, ys: Any) -> Any:
        return sum(x * y for x, y in zip(xs, ys, strict=True))

    compiled = compile(pairs)
    compiled([1.0, 2.0], [3.0, 4.0])
    with pytest.raises(ValueError, match="shorter") as caught:
        compiled([1.0, 2.0], [3.0])
    shown = "".join(traceback.format_exception(caught.value))
    assert f"test_compiled_calls.py:{pairs.__code__.co_firstlineno}) was called with" in shown


def test_the_program_before_a_call_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a call of energy"):
        _ = compile(energy).program


def test_what_is_not_a_function_is_refused() -> None:
    with pytest.raises(TypeError, match="expected a function, got a float"):
        compile(3.0)  # type: ignore[arg-type]


def test_on_the_reference_engine() -> None:
    """Without the native engine the interpreter runs the programs."""
    source = (
        "import gradwalk\n"
        "from gradwalk.compiler.compile import compile\n"
        "w = gradwalk.Value(3.0)\n"
        "f = compile(lambda xs, i: sum(w * x.tanh() for x in xs) * gradwalk.take([w, 2.0], i))\n"
        "out = f([0.5, -0.25], 1); out.backward()\n"
        "p = gradwalk.Value(3.0)\n"
        "e = sum(p * gradwalk.tanh(x) for x in [0.5, -0.25]) * 2.0\n"
        "e.backward()\n"
        "assert abs(out.data - e.data) < 1e-12 and abs(w.grad - p.grad) < 1e-12, (out, e, w, p)\n"
    )
    environment = os.environ | {"GRADWALK_ENGINE": "reference", "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", source], env=environment, capture_output=True, text=True)
    assert done.stderr == ""


def test_no_warning_in_ordinary_use() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compile(energy)([1.0, 2.0]).backward()


# ---------------------------------------------------------------- what no guard can see


def test_an_error_that_the_function_catches_is_a_branch() -> None:
    def safe(x: Any) -> Any:
        try:
            return gradwalk.log(x)
        except gradwalk.DomainError:
            return x * 0.0 - 100.0

    compiled = compile(safe)
    assert close([math.log(2.0), -100.0, math.log(3.0)], [compiled(x).data for x in (2.0, -1.0, 3.0)])


@pytest.mark.parametrize("meddle", [lambda x: x.grad, lambda x: setattr(x, "data", 3.0)], ids=["grad", "data"])
def test_gradients_and_numbers_of_a_trace_are_left_alone(meddle: Any) -> None:
    def meddling(x: Any) -> Any:
        meddle(x)
        return x * 2.0

    with pytest.raises(TypeError, match=r"meddling .*would be fixed in every later call"):
        compile(meddling)(2.0)


def test_inside_detect_nonfinite_the_backward_pass_is_watched_too() -> None:
    root = compile(lambda x: gradwalk.sqrt(x))
    for run in (root.value_and_grad, gradwalk.value_and_grad(root)):
        with pytest.raises(gradwalk.NonFiniteError, match="sqrt"), gradwalk.detect_nonfinite():
            run(0.0)


def test_a_structure_that_keeps_changing_is_warned_of() -> None:
    compiled = compile(energy)
    for length in range(1, KEPT + 1):
        compiled([1.0] * length)
    with pytest.warns(RuntimeWarning, match="33 structures"):
        compiled([1.0] * (KEPT + 1))


# ---------------------------------------------------------------- unusual arguments


def test_several_arrays() -> None:
    """Of any dtype and layout, beside floats and in dicts."""
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(3, 4)), rng.normal(size=(4, 3)).astype(np.float32).T
    dot = compile(lambda a, b, scale: sum(x * y for x, y in zip(a["a"].ravel(), b.ravel(), strict=True)) * scale)
    for _ in range(2):
        value, (by_left, by_right, by_scale) = dot.value_and_grad({"a": left}, right, 2.0)
        assert close([2.0 * float((left * right).sum())], [value])
        assert close((2.0 * right).ravel().tolist(), by_left["a"].ravel().tolist())
        assert close((2.0 * left).ravel().tolist(), by_right.ravel().tolist())
        assert close([value / 2.0], [by_scale])


def test_integers_that_floats_cannot_tell_apart() -> None:
    digit = compile(lambda x, n: x * (n % 10))
    assert [digit(1.0, n).data for n in (2**53, 2**53 + 1)] == [2.0, 3.0]


def test_numbers_of_other_types() -> None:
    class Kelvin(float):
        pass

    class Level(enum.IntEnum):
        HIGH = 3

    product = compile(lambda t, n: t * n)
    assert product(Kelvin(2.0), Level.HIGH).data == 6.0
    assert product.value_and_grad(Fraction(1, 2), np.float32(4.0)) == (2.0, (4.0, 0.5))


def test_checkpoints_are_traced_through() -> None:
    assert compile(lambda x: gradwalk.checkpoint(lambda y: y * y)(x) * 3.0).value_and_grad(2.0) == (12.0, 12.0)


def test_errors_name_the_function_inside_a_partial() -> None:
    def nothing(x: Any, y: Any) -> None:
        return None

    with pytest.raises(TypeError, match=r"nothing \(.*test_compiled_calls.py:\d+\)"):
        compile(functools.partial(nothing, 1.0))(2.0)


def test_a_training_step_asks_for_an_optimiser() -> None:
    with pytest.raises(TypeError, match="train_step expected an optimiser first, got a float"):
        compile(energy).train_step(3.0, [1.0])
    with pytest.raises(TypeError, match="map_train_step expected an optimiser first, got a float"):
        compile(energy).map_train_step(3.0, [[1.0]])


def test_a_step_over_rows_that_is_not_finite_moves_nothing() -> None:
    """The parameter is as it was, and the gradient, which says nothing, is gone."""
    weight = gradwalk.Value(2.0)
    with gradwalk.ieee():
        losses = compile(lambda x: weight * x).map_train_step(SGD([weight], lr=0.5), [1.0, math.inf])
    assert (losses, weight.data, weight.grad) == ([2.0, math.inf], 2.0, 0.0)


def test_an_array_of_no_dimension_is_one_result() -> None:
    """As NumPy's functions return it."""
    assert compile(lambda x: np.array(x * x)).value_and_grad(3.0) == (9.0, 6.0)


def test_shown_with_its_line_and_programs() -> None:
    compiled = compile(energy)
    compiled([1.0])
    assert re.fullmatch(r"<compiled energy \(.*test_compiled_calls.py:\d+\), 1 programs>", repr(compiled))
