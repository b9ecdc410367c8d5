"""custom_op inside compiled functions: its two Python functions are called anew at every call."""

from __future__ import annotations

import contextvars
import gc
import itertools
import math
import pickle
import random
import threading
import traceback
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from comparing import close, with_gradients

import gradwalk
from gradwalk.compiler import executors, interpret
from gradwalk.compiler.compile import KEPT, compile
from gradwalk.custom import custom_op

cube = custom_op(lambda x: x**3, lambda x, out: 3.0 * x**2, name="cube")


@custom_op(local_grads=lambda x, y, out: (x / out, y / out))
def distance(x: float, y: float) -> float:
    return math.hypot(x, y)


def root(x: float) -> float:
    return math.sqrt(x)


def half_over_root(x: float, out: float) -> float:
    return 0.5 / out


def path(xs: list[Any]) -> Any:
    total = 0.0
    for x, y in itertools.pairwise(xs):
        total = total + cube(x) * distance(x, y) + distance(y, 2.0)
    return total


POINTS = [[0.5, 1.5, 2.5, 3.5], [1.0, -1.0, 2.0, 0.25], [3.0, 0.1, 0.2, -0.3]]


def test_values_and_gradients_are_the_plain_functions() -> None:
    compiled = compile(path)
    for xs in POINTS:
        assert close(with_gradients(path, (xs,)), with_gradients(compiled, (xs,)))
    assert len(compiled.programs) == 1


@pytest.mark.parametrize(
    ("function", "is_exact"),
    [
        (lambda xs: cube(xs[0] * xs[1] + xs[2]), False),
        (lambda xs: cube(xs[0] + xs[1] + xs[2]), True),
        (lambda xs: cube(xs[0]) + xs[1] + xs[2], False),
    ],
)
def test_a_program_is_exact_where_what_is_called_would_see_another_order(function: Any, is_exact: bool) -> None:
    """A sum of two has one order only, and after the call nobody looks."""
    compiled = compile(function)
    compiled([0.5, 1.5, 2.5])
    assert compiled.program.exact is is_exact


def test_an_exact_program_is_equal_to_the_bit() -> None:
    compiled = compile(path, exact=True)
    for xs in POINTS:
        assert with_gradients(path, (xs,)) == with_gradients(compiled, (xs,))


def test_calls_of_one_operation_on_one_level_are_one_instruction_that_prints_its_name() -> None:
    compiled = compile(path)
    compiled(POINTS[0])
    assert [i.op for i in compiled.program.instructions].count("call") == 2
    assert "= cube(xs[3,1])" in str(compiled.program)
    assert "= distance(" in str(compiled.program)


def test_a_batch_is_what_the_calls_are_one_by_one() -> None:
    compiled = compile(path)
    assert [compiled(xs).data for xs in POINTS] == [out.data for out in compiled.map(POINTS)]


def test_both_functions_are_called_again_at_every_call() -> None:
    called: list[str] = []

    def forward(x: float) -> float:
        called.append("forward")
        return 2.0 * x

    def local_grads(x: float, out: float) -> float:
        called.append("local_grads")
        return 2.0

    double = custom_op(forward, local_grads, check=False)
    compiled = compile(lambda x: double(x) + 1.0)
    compiled(1.0)
    called.clear()
    assert compiled.value_and_grad(3.0) == (7.0, 2.0)
    assert (called[:2], called.count("forward")) == (["forward", "local_grads"], 1)


def test_two_calls_with_the_same_input_stay_two_because_a_function_may_draw_numbers() -> None:
    numbers = random.Random(1)
    noisy = custom_op(lambda x: x + numbers.random(), lambda x, out: 1.0, check=False)
    compiled = compile(lambda x: noisy(x) - noisy(x))
    assert compiled(1.0).data != 0.0
    assert compiled(1.0).data != 0.0


def test_the_function_is_not_called_where_the_plain_one_would_not_call_it() -> None:
    """The guard comes first, also where it takes longer to compute than what is given to the function."""
    seen: list[float] = []

    def forward(x: float) -> float:
        seen.append(x)
        return math.sqrt(x)

    safe_root = custom_op(forward, lambda x, out: 0.5 / out, check=False)

    def function(x: Any) -> Any:
        return safe_root(x) if gradwalk.tanh(gradwalk.sin(x * 0.01)) > 0.0 else x * 2.0

    compiled = compile(function)
    assert [compiled(x).data for x in (4.0, -4.0, 9.0)] == [2.0, -8.0, 3.0]
    assert min(seen) > 0.0


def test_the_function_is_not_called_where_the_plain_one_has_raised_before() -> None:
    called: list[float] = []
    double = custom_op(lambda x: called.append(x) or x * 2.0, lambda x, out: 2.0, name="double", check=False)
    compiled = compile(lambda x: double(gradwalk.exp(x)))
    compiled(1.0)
    called.clear()
    with pytest.raises(gradwalk.RangeError):
        compiled(1000.0)
    assert called == []


def test_an_error_reaches_the_caller_as_without_compiling_and_says_where_it_was_called() -> None:
    logarithm = custom_op(math.log, lambda x, out: 1.0 / x, name="logarithm")
    compiled = compile(lambda x: logarithm(x) * 2.0)
    assert compiled(math.e).data == 2.0
    with pytest.raises(ValueError) as plain:  # noqa: PT011  (the text is that of the standard library)
        math.log(-1.0)
    with pytest.raises(ValueError) as raised:  # noqa: PT011
        compiled(-1.0)
    assert str(raised.value).startswith(str(plain.value))
    shown = "".join(traceback.format_exception(raised.value))
    assert f"compile: logarithm was called at {__file__}" in shown
    assert compiled(math.e).data == 2.0


def raising_above_1(error: type[BaseException]) -> Any:
    """A compiled function of one's own that has been called below."""

    def forward(x: float) -> float:
        if x > 1.0:
            raise error
        return x

    compiled = compile(custom_op(forward, lambda x, out: 1.0))
    compiled(0.5)
    return compiled


def test_endless_recursion_is_not_tried_again_by_the_interpreter() -> None:
    """As by the executor: each of its callers would."""
    compiled = raising_above_1(RecursionError)
    with pytest.raises(RecursionError):
        executors.Interpreted(compiled.program).run_values(np.array([2.0]), ())


def test_an_interrupt_is_not_taken_for_an_error() -> None:
    compiled = raising_above_1(KeyboardInterrupt)
    for call in (lambda: compiled(2.0), lambda: compiled.value_and_grad(2.0), lambda: compiled.map([0.5, 2.0, 3.0])):
        with pytest.raises(KeyboardInterrupt):
            call()
    assert compiled(0.25).data == 0.25


def test_infinite_results_pass_as_they_do_without_compiling() -> None:
    wild = custom_op(lambda x: math.inf if x > 1.0 else x, lambda x, out: math.inf, check=False)
    compiled = compile(lambda x: wild(x) + 1.0)
    assert (1.5, math.inf) == (compiled(0.5).data, compiled(2.0).data)
    assert compiled.value_and_grad(2.0) == (math.inf, math.inf)


def test_a_wrong_local_gradient_is_found_on_first_use() -> None:
    wrong = custom_op(lambda x: x * x, lambda x, out: x, name="wrong")
    with pytest.raises(ValueError, match=r"wrong: local gradient 0 at \(3\.0\) is 3\.0, but central differences"):
        compile(lambda x: wrong(x))(3.0)


def test_second_derivatives_are_those_without_compiling() -> None:
    assert compile(lambda x: cube(x)).hessian_vector(2.0, vector=1.0) == 12.0


def test_an_integer_argument_is_fixed() -> None:
    power = custom_op(lambda x, n: x**n, lambda x, n, out: (n * x ** (n - 1), 0.0), check=False)
    compiled = compile(lambda x, n: power(x, n))
    assert [compiled(x, n).data for x, n in ((2.0, 3), (2.0, 4), (3.0, 3))] == [8.0, 16.0, 27.0]
    assert len(compiled.programs) == 2


def test_a_leaf_may_be_read_inside_but_no_number_of_the_call() -> None:
    scale = gradwalk.Value(2.0)
    scaled = custom_op(lambda x: x * scale.data, lambda x, out: scale.data, check=False)
    compiled = compile(lambda x: scaled(x))
    assert compiled(3.0).data == 6.0
    scale.data = 5.0
    assert compiled(3.0).data == 15.0

    def function(x: Any) -> Any:
        y = x * 2.0
        return custom_op(lambda a: a * y.data, lambda a, out: y.data, check=False)(x)

    with pytest.raises(TypeError, match=r"reads \.data"):
        compile(function)(1.0)


def test_under_no_grad_inside_it_is_refused() -> None:
    def function(x: Any) -> Any:
        with gradwalk.no_grad():
            return cube(x)

    with pytest.raises(TypeError, match="no_grad"):
        compile(function)(1.0)


def test_a_node_made_by_hand_is_refused_and_custom_op_named() -> None:
    def function(x: Any) -> Any:
        return gradwalk.Value(1.0, (x,), "mine", local_grads=(1.0,)) * 2.0

    with pytest.raises(TypeError, match=r"makes a node by hand \('mine'\).*custom_op"):
        compile(function)(1.0)


@pytest.mark.parametrize("operation", [distance, custom_op(root, half_over_root)])
def test_a_program_pickles_with_functions_that_a_module_knows(operation: Callable[..., Any]) -> None:
    count = 2 if operation is distance else 1
    compiled = compile(lambda xs: operation(*xs[:count]) * xs[0])
    compiled([3.0, 4.0])
    again = pickle.loads(pickle.dumps(compiled.program))
    inputs = np.array([6.0, 8.0])
    assert interpret.run(again, inputs)[again.outputs] == [compiled([6.0, 8.0]).data]


def test_a_program_with_a_lambda_says_why_it_does_not_pickle() -> None:
    unknown = custom_op(lambda x: 2.0 * x, lambda x, out: 2.0, name="unknown")
    compiled = compile(lambda x: unknown(x))
    compiled(1.0)
    with pytest.raises(pickle.PicklingError, match=r"unknown: expected functions that a module knows .*<lambda>"):
        pickle.dumps(compiled.program)


def test_in_a_thread_that_takes_the_modes_along_it_is_called_too() -> None:
    """As with asyncio.to_thread, of which the trace sees all."""
    with ThreadPoolExecutor(1) as pool:
        compiled = compile(lambda x: pool.submit(contextvars.copy_context().run, cube, x).result() * x)
        assert [compiled(x).data for x in (3.0, 2.0)] == [81.0, 16.0]
        assert compiled.value_and_grad(2.0) == (16.0, 32.0)


def test_so_is_a_compiled_function_and_a_number_of_it_is_refused() -> None:
    inner = compile(lambda x: x * x)
    with ThreadPoolExecutor(1) as pool:

        def there(function: Any, x: Any) -> Any:
            return pool.submit(contextvars.copy_context().run, function, x).result()

        outer = compile(lambda x: there(inner, x) * x)
        assert [outer(x).data for x in (3.0, 2.0)] == [27.0, 8.0]
        with pytest.raises(TypeError, match="is called inside another compiled function"):
            compile(lambda x: there(inner.value_and_grad, x)[0] * x)(3.0)


def test_a_function_may_call_the_compiled_function_it_is_part_of() -> None:
    def forward(x: float) -> float:
        return float(factorial(x - 1.0).data) if x > 1.0 else 1.0

    before = custom_op(forward, lambda x, out: 0.0, check=False)
    factorial = compile(lambda x: before(x) * x)
    assert [factorial(x).data for x in (1.0, 4.0, 3.0)] == [1.0, 24.0, 6.0]


@pytest.mark.filterwarnings("ignore:compile:RuntimeWarning")
def test_a_function_may_use_up_all_programs_of_the_one_it_is_part_of() -> None:
    """The program that is running is dropped meanwhile; it ends as it began."""
    compiled: list[Any] = []

    def forward(x: float) -> float:
        if compiled:
            others = compiled.pop()
            for count in range(KEPT + 3):
                others([1.0] * (count + 2), 0.0)
        return x

    using = custom_op(forward, lambda x, out: 1.0, check=False)
    function = compile(lambda xs, s: using(sum(xs)) + s if s < 1.0 else sum(xs))
    function([1.0], 0.0)
    function([1.0], 2.0)
    compiled.append(function)
    assert function([3.0], 0.5).data == 3.5
    assert len(function.programs) == KEPT


def test_by_the_interpreter_errors_and_results_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the function raises is raised; it is not called where an operation before it was refused."""
    monkeypatch.setattr(executors, "executor_for", executors.Interpreted)
    called: list[float] = []
    logarithm = custom_op(math.log, lambda x, out: 1.0 / x, name="logarithm")
    double = custom_op(lambda x: called.append(x) or x * 2.0, lambda x, out: 2.0, name="double", check=False)
    raising, refused = compile(lambda x: logarithm(x) * 2.0), compile(lambda x: double(gradwalk.log(x)))
    assert (raising(math.e).data, refused(1.0).data) == (2.0, 0.0)
    called.clear()
    with pytest.raises(ValueError, match=r"math domain error|expected a positive input"):
        raising(-1.0)
    with pytest.raises(gradwalk.DomainError, match=r"log: expected x > 0, got 0\.0"):
        refused(0.0)
    assert called == []
    with gradwalk.ieee():
        assert refused(0.0).data == -math.inf


def test_the_comparison_that_keeps_changing_is_named() -> None:
    """Also where it comes before a call, and the program was left there."""

    def steps(x: Any) -> Any:
        count = 0
        while x > 1.0:
            x = x * 0.5
            count += 1
        return cube(x) * float(count)

    compiled = compile(steps)
    with pytest.warns(RuntimeWarning, match=r"the comparison at .*test_custom_ops.py:\d+ keeps changing"):
        results = [compiled(2.0**power).data for power in range(12)]
    assert results == [float(power) for power in range(12)]


def test_threads_take_turns() -> None:
    compiled = compile(path)
    expected = [compiled.value_and_grad(xs) for xs in POINTS]
    wrong: list[Any] = []

    def work(i: int) -> None:
        for _ in range(200):
            if compiled.value_and_grad(POINTS[i]) != expected[i]:
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_compiled_function_that_its_own_operation_knows_is_freed() -> None:
    def made() -> weakref.ref[Any]:
        known: list[Any] = []
        operation = custom_op(lambda x: x * len(known), lambda x, out: float(len(known)), check=False)
        known.append(compile(lambda x: operation(x)))
        assert known[0](2.0).data == 2.0
        return weakref.ref(known[0])

    reference = made()
    gc.collect()
    assert reference() is None


def test_a_compiled_function_that_a_leaf_of_it_knows_is_freed() -> None:
    def made() -> weakref.ref[Any]:
        leaf = gradwalk.Value(2.0)
        compiled = compile(lambda x: cube(x) * leaf)
        compiled.train_step(gradwalk.optim.Adam([leaf]), 1.0)
        leaf.owner = compiled
        return weakref.ref(compiled)

    reference = made()
    gc.collect()
    assert reference() is None


@pytest.mark.parametrize("use", ["map", "map_backward", "map_gradients"])
def test_an_error_in_a_batch_is_not_tried_away(use: str) -> None:
    """An operation that fails once: the batch raises what a call would have raised."""
    failing: list[float] = []

    def square(x: float) -> float:
        if failing:
            raise KeyError(failing.pop())
        return x * x

    operation = custom_op(square, lambda x, out: 2.0 * x, check=False)
    compiled = compile(lambda x: operation(x) * weight)
    weight = gradwalk.Value(1.0)
    calls: dict[str, Any] = {"map_gradients": lambda: compiled.map_gradients([2.0, 3.0], [weight])}
    call = calls.get(use, lambda: getattr(compiled, use)([2.0, 3.0]))
    call()
    failing.append(1.0)
    with pytest.raises(KeyError):
        call()
    call()


@pytest.mark.parametrize("error", [RecursionError, MemoryError])
def test_what_ends_all_callers_is_not_tried_again_by_each_of_them(error: type[Exception]) -> None:
    """Or the tries would double with every function in between."""
    calls = 0

    def inner(x: float) -> float:
        nonlocal calls
        calls += 1
        if depth[0] and calls > depth[0]:
            raise error
        return compiled(x).data if depth[0] else x

    depth = [0]
    op = custom_op(inner, lambda x, out: 1.0)
    compiled = gradwalk.compile(lambda x: 2.0 * op(x))
    assert compiled(3.0).data == 6.0
    depth[0], calls = 20, 0
    with pytest.raises(error):
        compiled(3.0)
    assert calls == 21
    depth[0] = 0
    assert compiled.value_and_grad(3.0) == (6.0, 2.0)


@pytest.mark.parametrize("way", ["__call__", "backward", "value_and_grad", "map"])
def test_an_error_of_the_first_run_is_raised(way: str) -> None:
    """The trace went through, so the plain function would have been called, and would have answered."""
    evaluations = 0

    def forward(x: float) -> float:
        nonlocal evaluations
        evaluations += 1
        if evaluations == 2:
            raise KeyError("lost")
        return x * 2

    double = custom_op(forward, lambda x, out: 2.0, check=False)
    with pytest.raises(KeyError, match="lost"):
        getattr(compile(lambda x: double(x) * 3.0), way)([1.0] if way == "map" else 1.0)
