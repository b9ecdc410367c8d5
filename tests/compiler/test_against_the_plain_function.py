"""A compiled function never returns what the plain one would not have: places where one could think it does."""

from __future__ import annotations

import math
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest
from comparing import agree

import gradwalk
from gradwalk import Value
from gradwalk.blame import detect_nonfinite
from gradwalk.compiler import executors
from gradwalk.compiler.compile import compile
from gradwalk.custom import checkpoint, custom_op
from gradwalk.optim import SGD, Adam

Function = Callable[..., Any]
SIGN = custom_op(lambda x: math.copysign(1.0, x), lambda x, out: 0.0, name="sign", check=False)


# ---------------------------------------------------------------- leaves


def test_gradients_go_on_below_a_computed_value_that_is_closed_over() -> None:
    w = Value(3.0)
    h = w * 2.0
    compiled = compile(lambda x: h * x)
    assert compiled.backward(5.0) == 30.0
    assert w.grad == 10.0
    w.grad = 0.0
    assert compiled.map_backward([1.0, 2.0]) == [6.0, 12.0]
    assert w.grad == 6.0
    assert compiled.map_gradients([1.0, 2.0], [w, h])[1].tolist() == [[2.0, 1.0], [4.0, 2.0]]
    w.grad = 0.0
    compiled.train_step(SGD([w], lr=0.5), 1.0)
    assert w.data == 2.0
    w.data = 3.0
    compiled.train_step(Adam([w], lr=0.5), 1.0)
    assert w.data == pytest.approx(2.5)


@pytest.mark.parametrize("executor", [executors.executor_for, executors.Interpreted])
def test_a_gradient_that_is_a_value_is_added_to_as_a_number(executor: Any, monkeypatch: Any) -> None:
    """As backward() of the plain function does."""
    monkeypatch.setattr(executors, "executor_for", executor)
    p = Value(2.0)
    compiled = compile(lambda x: p * p * x)
    for run in (compiled.backward, lambda x: compiled(x).backward(), lambda x: compiled.map_backward([x])):
        p.grad = 0.0
        (p * p * p).backward(create_graph=True)
        run(5.0)
        assert (type(p.grad), p.grad) == (float, 32.0)


def test_a_parameter_asked_for_twice_has_its_gradient_twice() -> None:
    w = Value(2.0)
    assert compile(lambda x: w * x).map_gradients([3.0], [w, w])[1].tolist() == [[3.0, 3.0]]


class Halving(Adam):
    def step(self, lr: float | None = None) -> None:
        for parameter in self.parameters:
            parameter.data *= 0.5


class Forgetful(Adam):
    def zero_grad(self) -> None:
        pass


class Standing(Adam):
    def _move(self, rate: float) -> None:
        pass


class Around:
    """An optimiser around another, whose attributes it has but for its step."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.inner = Adam(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def step(self, lr: float | None = None) -> None:
        self.inner.step(0.5)


@pytest.mark.parametrize("kind", [Halving, Forgetful, Standing, Around])
def test_an_optimiser_with_steps_of_its_own_takes_them(kind: Any) -> None:
    w, other = Value(2.0), Value(2.0)
    compile(lambda x: w * x).train_step(kind([w], lr=0.1), 3.0)
    optimiser = kind([other], lr=0.1)
    (other * 3.0).backward()
    optimiser.step()
    optimiser.zero_grad()
    assert (other.data, other.grad) == (w.data, w.grad)


@pytest.mark.parametrize("name", ["step", "zero_grad", "_move"])
def test_what_was_put_in_place_of_an_optimisers_own_is_called(name: str) -> None:
    w, called = Value(2.0), []
    optimiser: Any = Adam([w], lr=0.1)
    setattr(optimiser, name, lambda *_: called.append(name))
    compile(lambda x: w * x).train_step(optimiser, 3.0)
    assert called == [name]


# ---------------------------------------------------------------- integers and other arguments


INTEGERS: dict[str, Function] = {
    "isinstance": lambda x, n: x * 2.0 if isinstance(n, int) else x * 3.0,
    "text": lambda x, n: x * float(f"{n}"),
    "sqrt": lambda x, n: x * gradwalk.sqrt(n),
    "math.sqrt": lambda x, n: x * math.sqrt(n),
    "maximum": lambda x, n: gradwalk.maximum(n, x),
    "sum": lambda x, n: gradwalk.sum([n, x]),
    "dot": lambda x, n: gradwalk.dot([n, x], [x, n]),
    "where": lambda x, n: gradwalk.where(x > 1.0, n, x),
    "row": lambda x, n: gradwalk.dot([x, x], [n, 2]),
    "shift": lambda x, n: x * (1 << (n % 9)),
    "and": lambda x, n: x * (5 & n),
    "or": lambda x, n: x * (8 | n),
    "xor": lambda x, n: x * (5 ^ n),
    "invert": lambda x, n: x * (~n),
    "divmod": lambda x, n: x * divmod(7, n)[1],
    "round": lambda x, n: x * round(n),
    "pow": lambda x, n: x * pow(n, 2, 7),
    "exponent": lambda x, n: x * pow(2, n, 7),
    "modulus": lambda x, n: x * pow(2, 5, mod=n),
    "bit_length": lambda x, n: x * n.bit_length(),
    "beside": lambda x, n: x * n - n,
    "compared": lambda x, n: x * 2.0 if x < n else x * 3.0,
    "equal": lambda x, n: x * 2.0 if n == 2**53 else x * 3.0,
    "below": lambda x, n: x * 2.0 if n < 2**53 + 1 else x * 3.0,
    "Value": lambda x, n: x * Value(n),
}


@pytest.mark.parametrize("name", INTEGERS)
def test_an_integer_does_what_integers_do(name: str) -> None:
    agree(INTEGERS[name], (1.5, 3), (2.5, 4), (3.0, 3), (1.0, 2**53), (1.0, 2**53 + 1), (1.0, 2**53 - 1))


def test_two_integers_that_floats_cannot_tell_apart() -> None:
    agree(lambda x, m, n: x if m == n else x * 2.0, (1.0, 3, 3), (1.0, 2**53, 2**53 + 1), (1.0, 2**53, 2**53))


def test_an_integer_too_large_for_a_float_is_still_an_integer() -> None:
    agree(lambda x, n: x * (n % 7), (1.0, 5), (1.0, 10**400 + 1), (2.0, 10**400 + 3))


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.int8, bool])
def test_arrays_of_integers_are_what_they_are(dtype: Any) -> None:
    """They wrap around, they choose entries, and they mask."""
    first, second = np.array([1, 0, 1], dtype), np.array([0, 0, 1], dtype)
    x = np.array([2.0, 3.0, 5.0])
    chosen = compile(lambda x, mask: sum(x[mask]))
    wrapped = compile(lambda x, n: x[0] * float(sum(n * n.dtype.type(100) * n.dtype.type(3))))
    for mask in (first, second, first):
        assert chosen(x, mask).data == x[mask].sum()
        assert wrapped(x, mask).data == 2.0 * float(sum(mask * mask.dtype.type(100) * mask.dtype.type(3)))
    _, gradient = compile(lambda x, n: sum(x * 2.0)).value_and_grad(x, first)
    assert [part.tolist() for part in gradient] == [[2.0, 2.0, 2.0], [0.0, 0.0, 0.0]]


def test_numpy_integers_that_wrap_around_do() -> None:
    compiled = compile(lambda x, n: x * float(n * n))
    for n in (np.uint8(3), np.uint8(15)):
        assert compiled(1.0, n).data == float(n * n)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(4.0).astype(">f8"),
        np.frombuffer(b"\0" + np.arange(4.0).tobytes(), np.uint8)[1:].view(np.float64),
        np.arange(8.0)[::2] / 2.0,
    ],
    ids=["byte order", "unaligned", "strided"],
)
def test_arrays_that_lie_otherwise_in_memory(array: Any) -> None:
    compiled = compile(lambda x: sum(x * x))
    for given in (np.arange(4.0), array, array):
        assert compiled(given).data == 14.0
        value, gradient = compiled.value_and_grad(given)
        assert (value, gradient.tolist()) == (14.0, [0.0, 2.0, 4.0, 6.0])
        assert gradwalk.grad(compiled)(given).tolist() == [0.0, 2.0, 4.0, 6.0]


def test_arrays_in_results_stay_what_they_are() -> None:
    compiled = compile(lambda x: {"y": x * 2.0, "n": np.array([1, 2]), "m": np.array([True]), "f": np.array([0.5])})
    compiled(1.0)["n"][0] = 7  # belongs to whoever was given it
    made = compiled(2.0)
    assert [made[name].dtype.kind for name in "nmf"] == ["i", "b", "f"]
    assert made["n"].tolist() == [1, 2]


def test_a_result_in_an_array_of_no_dimension_is_one_number() -> None:
    compiled = compile(lambda x: np.array(x[0] ** 3, dtype=object))
    x = np.array([2.0])
    assert compiled.value_and_grad(x)[1].tolist() == [12.0]
    assert gradwalk.grad(compiled)(x).tolist() == [12.0]
    assert gradwalk.hvp(compiled)(x, np.array([1.0])).tolist() == [12.0]
    assert compiled.backward(x) == 8.0
    assert compiled(x).shape == ()
    with detect_nonfinite():
        assert (compiled.backward(x), compiled.value_and_grad(x)[1].tolist()) == (8.0, [12.0])


def test_what_has_no_program_is_not_taken_elsewhere() -> None:
    """As to jax: there only programs of plain numbers go."""

    def caught(x: Any) -> Any:
        try:
            return gradwalk.log(x)
        except gradwalk.DomainError:
            return x

    with pytest.raises(ValueError, match=r"export: expected arguments for which caught \(.*\) is a program; for these"):
        compile(caught).version_for((-1.0,), "export")
    with pytest.raises(TypeError, match="to_jax: expected plain numbers as arguments, got a Value among them"):
        compile(caught).version_for((Value(1.0),), "to_jax")


def test_several_results_in_a_checkpoint() -> None:
    compiled, x = compile(lambda x: [x * x, x.exp()]), Value(2.0)
    checkpoint(lambda x: sum(compiled(x)))(x).backward()
    assert x.grad == pytest.approx(4.0 + math.exp(2.0), rel=1e-12)


def test_an_empty_array_with_a_length() -> None:
    compiled = compile(lambda x, y: sum(x.ravel(), y))
    assert compiled(np.empty((3, 0)), 2.0).data == 2.0
    assert compiled.value_and_grad(np.empty((3, 0)), 2.0)[1][0].shape == (3, 0)


# ---------------------------------------------------------------- zeros that have a sign


@pytest.mark.parametrize(
    "function",
    [
        lambda x: gradwalk.atan2(0 + x, -1.0),
        lambda x: gradwalk.copysign(2.0, sum([x])),
        lambda x: gradwalk.atan2(sum([x, x]), -1.0),
        lambda x: gradwalk.atan2(gradwalk.sum([x, 0.0]), -1.0),
        lambda x: gradwalk.copysign(1.0, x - -0.0),
        lambda x: SIGN(0 + x) + SIGN(x * 2.0 + x * 3.0),
        lambda x: gradwalk.atan2(x + 0.0, -1.0) + gradwalk.copysign(1.0, x),
    ],
)
def test_zero_plus_minus_zero_is_zero(function: Function) -> None:
    agree(function, (1.0,), (-0.0,), (0.0,), (-1.0,))


# ---------------------------------------------------------------- derivatives inside


DERIVATIVES: dict[str, Function] = {
    "grad": lambda x: gradwalk.grad(lambda y: x * y**3)(2.0),
    "grad at x": lambda x: gradwalk.grad(lambda y: x * y**3)(x),
    "vjp": lambda x: gradwalk.vjp(lambda y: [x * y**3, y])(x, [1.0, x]),
    "jvp": lambda x: gradwalk.jvp(lambda y: x * y**3)(2.0, 1.0) * x,
    "hvp": lambda x: gradwalk.hvp(lambda y: x * y**4)(2.0, 1.0),
    "hessian": lambda x: gradwalk.hessian(lambda y: x * y**3)(2.0) * x,
    "value_and_grad": lambda x: gradwalk.value_and_grad(lambda y: x * y**3)(2.0)[0] * x,
    "penalty": lambda x: x**2 + gradwalk.grad(lambda y: gradwalk.sin(x * y))(x) ** 2,
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_of_closures_inside_a_compiled_function(name: str) -> None:
    function = DERIVATIVES[name]
    compiled = agree(function, (1.5,), (2.5,), (0.3,))
    assert compiled.value_and_grad(0.7)[1] == pytest.approx(gradwalk.grad(function)(0.7), rel=1e-12)
    assert len(compiled.programs) == 1


def test_a_step_down_inside_a_compiled_function() -> None:
    """The outer loss after a step of the inner problem, as in bilevel optimisation."""
    inner = lambda w, rate: (w * rate - 1.0) ** 2  # noqa: E731

    def outer(rate: Any) -> Any:
        w = 0.5
        for _ in range(3):
            w = w - 0.1 * gradwalk.grad(inner)(w, rate)
        return (w - 2.0) ** 2

    compiled = agree(outer, (1.0,), (2.0,))
    assert compiled.value_and_grad(1.5)[1] == pytest.approx(gradwalk.grad(outer)(1.5), rel=1e-12)


@pytest.mark.parametrize("called", ["backward", "value_and_grad", "train_step", "map_train_step", "export"])
def test_numbers_of_one_compiled_function_are_not_fixed_in_another(called: str) -> None:
    inner = compile(lambda x: x * x)
    optimiser = Adam([Value(1.0)])
    given = {"train_step": (optimiser, 2.0), "map_train_step": (optimiser, [2.0]), "export": ((2.0,), "export")}
    with pytest.raises(TypeError, match=f"{called} of .* is called inside another compiled function"):
        compile(
            lambda x: x * getattr(inner, "version_for" if called == "export" else called)(*given.get(called, (2.0,)))
        )(3.0)


def test_the_hessian_times_a_vector_with_an_integer_among_the_arguments() -> None:
    compiled = compile(lambda x, n: x[0] ** 2 * x[1] * n)
    expected = ([20.0, 12.0], 0.0)
    assert compiled.hessian_vector([3.0, 5.0], 2, vector=([1.0, 0.0], 0.0)) == expected
    with gradwalk.detect_nonfinite():
        assert compiled.hessian_vector([3.0, 5.0], 2, vector=([1.0, 0.0], 0.0)) == expected


@pytest.mark.parametrize("executor", [executors.executor_for, executors.Interpreted])
def test_nothing_times_infinity_beside_others(executor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An infinite slope hands nothing on to what is multiplied by 0; its neighbours get what is theirs."""
    monkeypatch.setattr(executors, "executor_for", executor)
    function = lambda xs: sum(gradwalk.sqrt(x * w) for x, w in zip(xs, [0.0, 2.0, 0.5], strict=True))  # noqa: E731
    expected = gradwalk.value_and_grad(function)([1.0, 2.0, 2.0])
    assert compile(function).value_and_grad([1.0, 2.0, 2.0]) == expected == (3.0, [0.0, 0.5, 0.25])


def test_the_gradient_by_a_place_is_nothing_where_the_plain_function_is_called() -> None:
    with gradwalk.detect_nonfinite():
        assert compile(gradwalk.take).value_and_grad([2.0, 3.0], 1) == (3.0, ([0.0, 1.0], 0.0))


# ---------------------------------------------------------------- threads, and calls in the middle of calls


def test_two_functions_whose_operations_call_each_other_do_not_wait_for_each_other() -> None:
    together = threading.Barrier(2, timeout=20)
    functions: dict[str, Any] = {}

    def through(other: str) -> Function:
        def forward(x: float) -> float:
            if x > 0.0:
                together.wait()  # now both are inside
                return float(functions[other](-x).data)
            return x * 2.0

        return forward

    for name, other in (("f", "g"), ("g", "f")):
        operation = custom_op(through(other), lambda x, out: 2.0, check=False)
        functions[name] = compile(lambda x, operation=operation: operation(x) * 1.0)
        functions[name](-1.0)
    found: list[float] = []
    threads = [threading.Thread(target=lambda n=n: found.append(functions[n](3.0).data), daemon=True) for n in "fg"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found == [-6.0, -6.0]


def test_a_gradient_that_calls_the_function_when_it_is_dropped() -> None:
    w, seen = Value(3.0), []
    compiled = compile(lambda x: w * x)
    compiled(1.0)

    class Calls(Value):
        def __del__(self) -> None:
            seen.append(compiled(2.0).data)

    w.grad = Calls(1.0)
    done = threading.Thread(target=lambda: compiled.backward(5.0), daemon=True)
    done.start()
    done.join(20)
    assert not done.is_alive()
    assert seen == [6.0]


def test_threads_that_trace_and_call_lose_nothing() -> None:
    def function(xs: list[Any], n: int) -> Any:
        total = sum(x * x for x in xs) * n
        return total if total < 5.0 else total * 2.0

    calls = [([0.1 * i + j for j in range(1 + i % 3)], i % 4) for i in range(12)]
    alone = compile(function)
    expected = [alone(*args).data for args in calls]
    assert expected == [alone(*args).data for args in calls]
    compiled, wrong = compile(function), []

    def work(start: int) -> None:
        try:
            for i in range(60):
                place = (start * 5 + i * 7) % len(calls)
                got = compiled(*calls[place]).data
                if got != expected[place]:
                    wrong.append((place, got))
        except Exception as error:
            wrong.append((-1, repr(error)))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []
    assert len(compiled.programs) == len(alone.programs)


# ---------------------------------------------------------------- pickled


@compile
def energy(x: Any) -> Any:
    return x[0] ** 2 * x[1]


def plain_energy(x: Any) -> Any:
    return x[0] ** 2 * x[1]


class Spring:
    def __init__(self, stiffness: float) -> None:
        self.stiffness = stiffness

    @compile
    def energy(self, x: Any) -> Any:
        return x * x * self.stiffness


def test_compiled_functions_and_derivatives_pickle() -> None:
    assert pickle.loads(pickle.dumps(energy)) is energy
    exact = pickle.loads(pickle.dumps(compile(plain_energy, exact=True)))
    assert (exact.exact, exact([3.0, 5.0]).data) == (True, 45.0)
    for derivative in (gradwalk.grad, gradwalk.value_and_grad, gradwalk.hessian, gradwalk.jacobian):
        for function in (plain_energy, energy):
            again = pickle.loads(pickle.dumps(derivative(function)))
            assert again([3.0, 5.0]) == derivative(function)([3.0, 5.0])
    assert pickle.loads(pickle.dumps(Spring(3.0).energy))(2.0).data == 12.0


def test_compiled_functions_go_to_processes_that_are_started_anew() -> None:
    with get_context("spawn").Pool(1) as pool:
        assert pool.map(gradwalk.grad(energy), [[3.0, 5.0], [1.0, 2.0]]) == [[30.0, 9.0], [4.0, 1.0]]


def test_a_derivative_can_be_a_method() -> None:
    class Curve:
        def __init__(self, power: int) -> None:
            self.power = power

        def height(self, x: Any) -> Any:
            return x**self.power

        slope = gradwalk.grad(height, argnums=1)

    assert Curve(3).slope(2.0) == 12.0


@pytest.mark.parametrize("divisor", [16.0, 1e-300, 1e-310, 5e-324])
def test_a_constant_divisor_is_steep_only_near_zero(divisor: float) -> None:
    """Where no gradient comes to, none is handed on, also where the local gradient is infinite."""
    weights = [0.0, 1.0, 0.0, 2.0, 0.0, 0.0, 1.0, 0.0]

    def function(xs: Any) -> Any:
        return sum((x / divisor) * weight for x, weight in zip(xs, weights, strict=True))

    point = [1e-320 * i for i in range(8)]
    assert gradwalk.grad(gradwalk.compile(function))(point) == gradwalk.grad(function)(point)


def test_a_nan_comes_only_to_what_a_min_chose() -> None:
    """Which number is the smallest stays open in a program, and the others get nothing all the same."""
    weight = Value(0.7)

    def function(x: Any) -> Any:
        difference = weight - min(-2.5, x)
        return gradwalk.sqrt(difference - difference * 1.0) + x

    slopes = [gradwalk.grad(f)(1.0) for f in (function, compile(function, exact=True), compile(function))]
    assert slopes == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("outside", [2, 7, -1])
@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize("exact", [False, True])
def test_a_place_that_is_outside_where_it_is_not_taken(exact: bool, engine: str, outside: int) -> None:
    """The program of the other branch comes to it before a guard fails."""
    code = f"""
import gradwalk
halved = gradwalk.custom_op(lambda x: 0.5 * x, lambda x, out: 0.5, check=False)

def function(x, xs, k):
    if x >= 1.0:
        halved(gradwalk.cross_entropy(xs, k))
    return x * 10.0

compiled = gradwalk.compile(function, exact={exact})
for x, k in ((1.5, 1), (0.5, {outside}), (2.5, 0)):
    assert compiled(x, [1.0, x], k).data == x * 10.0
"""
    environment = os.environ | {"GRADWALK_ENGINE": engine}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("called", ["one", "several", "map"])
def test_in_a_checkpoint_the_leaves_of_a_compiled_function_keep_their_gradients(called: str) -> None:
    """What it closes over is what the checkpoint closes over."""
    weight, x = Value(3.0), Value(2.0)
    one, several = compile(lambda x: weight * x * x), compile(lambda x: [weight * x, weight * x * x])

    def function(x: Any) -> Any:
        a, b = {"one": lambda: [one(x), one(2.0 * x)], "several": lambda: several(x), "map": lambda: one.map([x, 2.0])}[
            called
        ]()
        return a * b

    def found(function: Callable[[Any], Any]) -> tuple[float, ...]:
        weight.grad = x.grad = 0.0
        out = function(x)
        out.backward()
        return out.data, weight.grad, x.grad

    assert found(function) == found(checkpoint(function))


@pytest.mark.parametrize(
    ("function", "first", "then"),
    [
        (lambda xs: sum(xs), [1.0] * 40, [1e308, -1e308] * 20),
        (lambda xs: gradwalk.sum(xs), [1.0] * 40, [1e308, -1e308] * 20),
        (lambda xs: sum(x * 2.0**600 for x in xs), [1.0] * 40, [2.0**423, -(2.0**423)] * 20),
        (lambda xs: min(2.0, xs[0]) + xs[1], [1.0, 1.0], [math.nan, 3.0]),
        (lambda xs: max(-1.0, min(1.0, xs[0])) + xs[1], [1.0, 1.0], [math.nan, 3.0]),
        (lambda xs: max(xs) * 2.0, [1.0, 1.0], [5.0, math.nan]),
        (lambda xs: gradwalk.math.fsum([xs[0], 1e100, -1e100]) * xs[1], [1.0, 1.0], [3.0, 2.0]),
    ],
)
def test_results_that_depend_on_the_order_or_on_a_nan_are_the_plain_functions(
    function: Any, first: list[float], then: list[float]
) -> None:
    """Added up in another order a sum is infinite or nan on the way, and where a nan is looked at first matters."""
    compiled = compile(function)
    for xs in (first, then, first):
        found = [compiled(xs).data, compiled.value_and_grad(xs)[0], compiled.backward(xs)]
        found += [out.data for out in compiled.map([(xs,)] * 9)]
        assert [pytest.approx(function(xs), rel=1e-12)] * 12 == found


@pytest.mark.parametrize("kind", [list, tuple])
def test_a_subclass_that_shows_other_items_than_it_holds(kind: Any) -> None:
    """What it holds is what is handed to the function, which then sees what it shows."""
    shown = type("Shown", (kind,), {"__iter__": lambda self: (x * 100.0 for x in kind.__iter__(self))})
    for function in (sum, compile(lambda xs: sum(xs))):
        value, gradient = gradwalk.value_and_grad(function)(shown([1.0, 2.0]))
        assert (value, list(kind.__iter__(gradient))) == (300.0, [100.0, 100.0])
