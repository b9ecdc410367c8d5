"""The arguments of a call as the native engine reads them, and as structure.py does: one key, one order of numbers."""

from __future__ import annotations

import collections
import dataclasses
import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gradwalk import engine, structure
from gradwalk.compiler import reading

native: Any = engine.load("native")
Value = native.Value
Pair = collections.namedtuple("Pair", "left right")


@dataclasses.dataclass
class Point:
    x: Any
    steps: int = 2


class Labelled(list):  # type: ignore[type-arg]
    pass


VALUE = Value(2.0)
ROW = [1.0, 2.0]
WHOLES: list[Callable[[], Any]] = [
    lambda: 1.0, lambda: 3, lambda: True, lambda: None, lambda: "text", lambda: VALUE, lambda: np.float64(2.0),
    lambda: np.int64(2), lambda: [], lambda: (), lambda: {}, lambda: [1.0, 2.0], lambda: (1, 2), lambda: [1.0, 2],
    lambda: [True, False], lambda: [VALUE, Value(3.0)], lambda: [VALUE, VALUE], lambda: [[1.0], [2.0, 3.0], ()],
    lambda: [ROW, ROW], lambda: ((1.0, 2.0),) * 2, lambda: {"a": 1.0, "b": [2, 3]}, lambda: {1: 2.0, "b": VALUE},
    lambda: {VALUE: 1.0}, lambda: collections.OrderedDict(a=1.0), lambda: Pair(1.0, [2.0]), lambda: Point(1.0),
    lambda: Point([VALUE]), lambda: Point(2), lambda: np.arange(6.0).reshape(2, 3), lambda: np.arange(3),
    lambda: np.array([VALUE, 1.0], object), lambda: Labelled([1.0, 2.0]), lambda: {"deep": [{"er": (ROW, [VALUE])}]},
]  # fmt: skip


def _read_slowly(args: tuple[Any, ...], kwargs: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> reading.Call:
    with monkeypatch.context() as patch:
        patch.setattr(reading, "read", lambda whole, numbers, holders, kinds, other: tuple(map(other, whole)))
        patch.setattr(reading, "repetitions", _repeated)
        return reading.Call(args, kwargs)


def _repeated(items: list[Any]) -> tuple[tuple[int, int], ...]:
    first: dict[int, int] = {}
    places = [first.setdefault(id(item), place) for place, item in enumerate(items)]
    return tuple((place, at) for place, at in enumerate(places) if place != at and type(items[at]) is not tuple)


@pytest.mark.parametrize("make", WHOLES)
def test_both_ways_to_read_say_the_same(make: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Key, numbers, and what is there twice."""
    whole = make()
    for args, kwargs in (((whole,), {}), ((whole, 1.0, whole), {"named": whole})):
        quick, slow = reading.Call(args, kwargs), _read_slowly(args, kwargs, monkeypatch)
        assert (slow.key, slow.repeated) == (quick.key, quick.repeated)
        assert list(map(type, slow.holders)) == list(map(type, quick.holders))
        assert list(map(type, slow.entries)) == list(map(type, quick.entries))
        assert list(slow.numbers()[1]) == list(quick.numbers()[1])


def test_many_objects_of_which_two_are_one() -> None:
    """The table of places grows with them."""
    items = [Value(float(i)) for i in range(1000)]
    assert native.repetitions(items) == ()
    assert native.repetitions([*items, items[7], items[999]]) == ((1000, 7), (1001, 999))


def test_what_cannot_be_written_is_said() -> None:
    """Floats, ints and Values are numbers; where there is anything else the caller takes another way."""
    into = np.zeros(3)
    assert structure.write([1.0, 2, VALUE], into)
    assert into.tolist() == [1.0, 2.0, 2.0]
    assert not structure.write([1.0, np.arange(2.0), 2.0], into)
    with pytest.raises(OverflowError):
        structure.write([1.0, 10**400, 2.0], into)
    with pytest.raises(ValueError, match="write: expected a list of 3 numbers"):
        native.write([1.0, 2.0], into)


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> Any:
    """structure.py as it is on a machine without the native engine."""
    load = engine.load

    def without_native(name: str) -> Any:
        if name == "native":
            raise ImportError(name)
        return load(name)

    monkeypatch.setattr(engine, "load", without_native)
    spec = importlib.util.spec_from_file_location("structure_without_native", structure.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "items", [[], [1.0, 2.0], [1, 2.0], (1, 2), [1.0, True], ["text", "text"], [1.0, "text"], [None, []]]
)
def test_types_are_told_without_the_native_engine(plain: Any, items: Any) -> None:
    """As with it: whether there are plain numbers only, and the type that all of them have."""
    assert (native.all_plain(items), native.only_type(items)) == (plain.all_plain(items), plain.only_type(items))


def test_what_is_one_object_is_told_without_the_native_engine(plain: Any) -> None:
    """As with it: tuples do not count."""
    row, pair = [1.0], (2.0,)
    items = [row, pair, [1.0], row, pair, row]
    assert plain.repetitions(items) == native.repetitions(items) == ((3, 0), (5, 0))


def test_numbers_are_written_without_the_native_engine(plain: Any) -> None:
    """Of a list, and of lists into rows; where there is anything else the caller takes another way."""
    value = plain.VALUE_TYPES[0](3.0)
    into = np.zeros((2, 3))
    assert plain.write([1.0, 2, value], into[0])
    assert into.tolist() == [[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]
    assert plain.write([[4.0, 5, value], [value, 7.0, 8]], into)
    assert into.tolist() == [[4.0, 5.0, 3.0], [3.0, 7.0, 8.0]]
    assert not plain.write([1.0, "2", 3.0], into[0])


def test_lists_are_written_into_rows() -> None:
    into = np.zeros((2, 3))
    assert structure.write([[1.0, 2, VALUE], [4, 5.0, 6]], into)
    assert into.tolist() == [[1.0, 2.0, 2.0], [4.0, 5.0, 6.0]]
    assert not structure.write([[1.0, 2.0, 3.0], [1.0, "2", 3.0]], into)
    assert structure.write([], np.zeros((0, 3)))
    for rows in ([[1.0, 2.0, 3.0]], [[1.0, 2.0, 3.0], [1.0, 2.0]], [[1.0, 2.0, 3.0], (1.0, 2.0, 3.0)]):
        with pytest.raises(ValueError, match="write: expected a list of 3 numbers"):
            native.write(rows, into)
