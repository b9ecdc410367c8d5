"""What a compiled function cannot see: the list in docs/compiled-functions.md, each line shown."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import numpy as np

from gradwalk import Value
from gradwalk.compiler.compile import compile


def test_side_effects_happen_once() -> None:
    seen: list[Any] = []
    compiled = compile(lambda x: (seen.append("called"), x * random.random())[1])
    assert compiled(1.0).data == compiled(1.0).data
    assert seen == ["called"]


def test_arguments_are_copies() -> None:
    def function(xs: Any) -> Any:
        xs[0] = xs[0] * 2.0
        return xs[0] + xs[1]

    def overlapping(xs: Any, ys: Any) -> Any:
        xs[1] = xs[1] * 10.0
        return ys[0] * 1.0

    xs, array = [1.0, 2.0], np.array([1.0, 2.0, 3.0])
    assert (compile(function)(xs).data, xs) == (4.0, [1.0, 2.0])
    assert compile(overlapping)(array[:2], array[1:]).data == 2.0


def test_plain_numbers_from_outside_are_fixed() -> None:
    outside, held = [2.0], SimpleNamespace(scale=2.0)
    compiled = compile(lambda x, held: x * outside[0] * held.scale)
    assert compiled(1.0, held).data == 4.0
    outside[0] = held.scale = 3.0
    assert compiled(1.0, held).data == 4.0


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
    compiled = compile(lambda x: x * 2.0 if x.label == "rate" else x * 3.0)
    assert compiled(Value(1.0, label="rate")).data == 3.0
    assert compile(lambda x, n: x if type(n) is int else x * 2.0)(1.0, 3).data == 2.0
