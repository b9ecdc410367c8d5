"""What a compiled function cannot see: the list in docs/compiled-functions.md, each line shown."""

from __future__ import annotations

import itertools
import math
import numbers
import random
import time
from array import array
from collections import UserList, deque
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gradwalk
from gradwalk import Value
from gradwalk.compiler.compile import compile
from gradwalk.compiler.index import Index

SCALE = [2.0]


def test_side_effects_happen_once(capsys: Any) -> None:
    seen: list[Any] = []
    compiled = compile(lambda x: (seen.append("called"), print("once"), x * random.random() + time.perf_counter())[2])
    assert compiled(1.0).data == compiled(1.0).data
    assert seen == ["called"]
    assert capsys.readouterr().out == "once\n"


def test_what_they_leave_outside_is_the_traces() -> None:
    calls: list[Any] = []
    seen: dict[Any, Any] = {}
    cached = lru_cache(lambda n: (calls.append(n), n * 2)[1])
    compiled = compile(lambda x, n: (seen.setdefault(n, x), x * cached(n))[1])
    assert (cached(3), compiled(1.0, 3).data, calls, cached(3)) == (6, 6.0, [3, 3], 6)
    assert (*map(type, seen), *map(type, seen.values())) == (Index, Value)
    assert (seen[3].data, list(seen)) == (1.0, [3])


def matched(x: Any) -> bool:
    match x:
        case float():
            return True
    return False


@pytest.mark.parametrize(
    "known",
    [
        matched,
        np.isscalar,
        lambda x: type(x) is float,
        lambda x: isinstance(x, float),
        lambda x: isinstance(x, int | float),
        lambda x: isinstance(x, numbers.Real),
        lambda x: isinstance(x, numbers.Number),
        lambda x: np.array([x]).dtype == np.float64,
        lambda x: x in {1.0: "one"},
        lambda x: {1.0: "one"}.get(x) == "one",
        lambda x: len({x, 1.0}) == 1,
    ],
)
def test_a_number_is_a_value(known: Any) -> None:
    """As if one were given: then the plain function does not see it either."""
    choose = lambda x: x * 2.0 if known(x) else x * 3.0  # noqa: E731
    assert [choose(1.0), choose(Value(1.0)).data, compile(choose)(1.0).data] == [2.0, 3.0, 3.0]


def test_the_numbers_of_a_list_and_of_an_array_are_values_too() -> None:
    for count in (lambda xs: xs[0] * len(set(xs)), lambda xs: xs[0] * len(dict.fromkeys(xs))):
        assert (count([1.0, 1.0]), compile(count)([1.0, 1.0]).data) == (1.0, 2.0)
    typed, ones = compile(lambda a: a[0] * (2.0 if a.dtype == object else 3.0)), np.ones(2)
    assert typed(ones).data == 2.0


def test_arguments_are_copies() -> None:
    def function(xs: Any) -> Any:
        xs[0] = xs[0] * 2.0
        return xs[0] + xs[1]

    def overlapping(xs: Any, ys: Any) -> Any:
        xs[1] = xs[1] * 10.0
        return ys[0] * 1.0

    def closing_over(ys: Any) -> Any:
        ys[0] = ys[0] * 10.0
        return xs[0] * ys[1]

    def counting(x: Any, counter: Any) -> Any:
        counter.calls += 1
        return x * 1.0

    xs, array, counter = [1.0, 2.0], np.array([1.0, 2.0, 3.0]), SimpleNamespace(calls=0)
    assert (compile(function)(xs).data, xs) == (4.0, [1.0, 2.0])
    assert compile(overlapping)(array[:2], array[1:]).data == 2.0
    assert compile(closing_over)(xs).data == 2.0
    compile(counting)(1.0, counter)
    assert counter.calls == 1


@pytest.mark.parametrize(
    "made",
    [
        lambda *items: deque(items),
        lambda *items: array("d", items),
        lambda *items: UserList(items),
        lambda *items: SimpleNamespace(items=list(items)),
    ],
)
def test_so_is_what_is_inside_an_argument_of_another_class(made: Any) -> None:
    compiled = compile(lambda x, held: x * (held.items if isinstance(held, SimpleNamespace) else held)[0])
    held = made(2.0, 3.0)
    assert compiled(1.0, held).data == 2.0
    (held.items if isinstance(held, SimpleNamespace) else held)[0] = 5.0
    assert (compiled(1.0, held).data, compiled(1.0, made(5.0, 3.0)).data) == (2.0, 5.0)


def test_which_one_it_was() -> None:
    choosing, twice = compile(lambda a: a[0] * (2.0 if max(a) is a[0] else 3.0)), compile(lambda x: [[x * 2.0]] * 2)
    assert [choosing([1.0, 2.0]).data, choosing([3.0, 2.0]).data] == [3.0, 9.0]
    assert (lambda made: made[0] is made[1])(twice(1.0)) is False


def test_what_an_array_is_made_of() -> None:
    transposed = np.arange(4.0).reshape(2, 2).T
    compiled = compile(lambda a: a.ravel("K")[1] * 1.0)
    assert (transposed.ravel("K")[1], compiled(transposed).data) == (1.0, 2.0)
    assert compile(lambda a: (a.__setitem__(0, a[0] * 2.0), a.sum())[1])(np.broadcast_to(2.0, (2,))).data == 6.0
    assert compile(lambda x: x * x)(np.float32(0.3)).data == float(np.float32(0.3)) ** 2


def test_what_is_outside_is_fixed() -> None:
    outside, held, scaled = [2.0], SimpleNamespace(scale=2.0), {"by": lambda x: x * 2.0}
    compiled = compile(lambda x, held, *, by=outside: x * by[0] * held.scale * SCALE[0])
    calling = compile(lambda x: scaled["by"](x))
    assert [compiled(1.0, held).data, calling(1.0).data] == [8.0, 2.0]
    outside[0] = held.scale = SCALE[0] = 3.0
    scaled["by"] = abs
    assert [compiled(1.0, held).data, calling(1.0).data] == [8.0, 2.0]


def test_which_values_it_reads_was_decided_by_the_trace() -> None:
    weights = [Value(2.0)]
    compiled = compile(lambda x: x * weights[0])
    assert compiled(1.0).data == 2.0
    weights[0].data = 3.0
    assert compiled(1.0).data == 3.0
    weights[0] = Value(7.0)
    assert compiled(1.0).data == 3.0
    own = compile(lambda x: x * 2.0 if x is weights[0] else x * 3.0)
    assert own(weights[0]).data == 21.0


def test_what_else_a_value_carries_is_as_the_trace_found_it() -> None:
    labelled = compile(lambda x: x * 2.0 if x.label == "rate" else x * 3.0)
    assert labelled(Value(1.0, label="rate")).data == 3.0
    computed = compile(lambda x: x * 2.0 if x._children else x * 3.0)
    assert computed(Value(1.0) * 1.0).data == 3.0
    hung = compile(lambda x: x * getattr(x, "scale", 3.0))
    x = Value(1.0)
    x.scale = 2.0  # type: ignore[attr-defined]
    assert hung(x).data == 3.0
    assert compile(lambda x, n: x if type(n) is int else x * 2.0)(1.0, 3).data == 2.0
    assert hung(type("Scaled", (float,), {"scale": 2.0})(1.0)).data == 3.0


def test_the_text_of_an_error_that_is_caught_is_that_of_the_trace() -> None:
    def function(x: Any, ys: Any) -> Any:
        try:
            return x * ys.index(x)
        except ValueError as error:
            return x * float(len(str(error)))

    compiled = compile(function)
    assert compiled(1.0, [2.0]).data == compiled(1.0625, [2.0]).data / 1.0625


def test_a_function_that_counts_its_calls_where_its_result_is_infinite() -> None:
    """No program applies, and none is like the one before: it is traced every time, and that is said."""
    calls = itertools.count()
    compiled = compile(lambda x: gradwalk.log(x) * float(next(calls)))
    with gradwalk.ieee(), pytest.warns(RuntimeWarning, match="because a result that is infinite or nan keeps changing"):
        assert [compiled(x).data for x in (1.0, *[0.0] * 12)] == [0.0, *[-math.inf] * 12]


def test_what_is_computed_twice_is_computed_once() -> None:
    def function(x: Any) -> Any:
        return gradwalk.cbrt(x) - gradwalk.cbrt(x)

    slopes = [gradwalk.grad(f)(0.0) for f in (function, compile(function, exact=True), compile(function))]
    assert [str(slope) for slope in slopes] == ["nan", "nan", "0.0"]


def test_infinite_slopes_meet_in_what_is_computed_once() -> None:
    """Each of two equal nodes would hand on nothing, as its local gradient is 0."""

    def function(y: Any) -> Any:
        return gradwalk.sqrt(gradwalk.layernorm([0.0 * y, 0.0 * y])[0])

    slopes = [gradwalk.grad(f)(3.0) for f in (function, compile(function, exact=True), compile(function))]
    assert [str(slope) for slope in slopes] == ["0.0", "0.0", "nan"]


def test_what_other_threads_compare_and_read_is_not_seen() -> None:
    def in_a_thread(function: Any) -> Any:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(function).result()

    comparing = compile(lambda x: x * 2.0 if in_a_thread(lambda: x > 2.0) else x * 5.0)
    assert [comparing(x).data for x in (3.0, 1.0)] == [6.0, 2.0]
    reading = compile(lambda x: x * in_a_thread(lambda: x.data))
    assert [reading(x).data for x in (3.0, 1.0)] == [9.0, 3.0]
    with pytest.raises(TypeError, match="compile: "):
        compile(lambda x: in_a_thread(lambda: x * x))(3.0)
