"""What arguments are to a compiled function: one object in two places, fields and attributes that somebody sets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

import gradwalk
from gradwalk import Value
from gradwalk.compiler.compile import compile


def changes_the_first(xs: Any, ys: Any) -> Any:
    xs[0] = xs[0] * 10.0
    return ys[0] + ys[1]


def test_a_list_that_is_passed_twice_is_one_list() -> None:
    compiled = compile(changes_the_first)
    xs = [1.0, 2.0]
    assert compiled(xs, [1.0, 2.0]).data == 3.0
    assert compiled(xs, xs).data == 12.0
    assert compiled([1.0, 2.0], [1.0, 2.0]).data == 3.0
    array = np.array([1.0, 2.0])
    assert [compiled(array, array).data, compiled(array, array.copy()).data] == [12.0, 3.0]


def test_a_value_that_is_passed_twice_is_one_value() -> None:
    compiled = compile(lambda a, b: a * 2.0 if a is b else a + b * 5.0)
    v, w = Value(3.0), Value(3.0)
    assert [compiled(v, v).data, compiled(v, w).data, compiled(v, v).data] == [6.0, 18.0, 6.0]
    compiled(v, v).backward()
    assert v.grad == 2.0


def test_values_that_are_keys_of_a_dict_are_the_values_among_the_arguments() -> None:
    compiled = compile(lambda d, v: v * d.get(v, 100.0))
    v, w = Value(3.0), Value(3.0)
    assert [compiled({v: 2.0}, v).data, compiled({v: 2.0}, w).data, compiled({w: 4.0}, w).data] == [6.0, 300.0, 12.0]


# ---------------------------------------------------------------- what else belongs to an argument


@dataclass
class Disc:
    radius: float
    area: float = field(init=False)

    def __post_init__(self) -> None:
        self.area = self.radius * self.radius * 3.0


@dataclass
class Settings:
    layers: int
    heads: int = 2


class Row(list[Any]):
    scale = 1.0


def test_a_field_that_follows_from_others_does_so_until_it_is_set() -> None:
    compiled = compile(lambda disc: disc.area * 2.0)
    assert [compiled(Disc(1.0)).data, compiled(Disc(2.0)).data] == [6.0, 24.0]
    cut = Disc(2.0)
    cut.area = 5.0
    assert [compiled(cut).data, compiled(Disc(2.0)).data] == [10.0, 24.0]
    assert gradwalk.grad(compiled)(Disc(2.0)).radius == 24.0
    assert gradwalk.grad(lambda disc: disc.area * 2.0)(cut).area == 2.0


def test_settings_may_change() -> None:
    compiled = compile(lambda settings, x: x * settings.layers)
    settings = Settings(3)
    assert compiled(settings, 2.0).data == 6.0
    settings.layers = 4
    assert compiled(settings, 2.0).data == 8.0
    assert compiled(Settings(3), 2.0).data == 6.0
    assert len(compiled.programs) == 2


def test_attributes_of_a_list_are_parts_of_it() -> None:
    compiled = compile(lambda xs: xs[0] * xs.scale)
    xs = Row([3.0])
    assert compiled(xs).data == 3.0
    for scale in (2.0, 5.0):
        xs.scale = scale
        assert compiled(xs).data == 3.0 * scale
        assert gradwalk.value_and_grad(lambda xs: xs[0] * xs.scale)(xs)[0] == 3.0 * scale
