"""Arguments and results of any shape as one flat list of numbers, and back: lists, tuples, dicts, dataclasses, arrays.

`flatten` finds the numbers; the `Part` it returns can put other numbers in their places. Text, None, True and
False are kept as they are. NumPy is used where an array is given, and never imported for it.
"""

from __future__ import annotations

import copy
import dataclasses
import importlib
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from numbers import Real
from typing import Any

from gradwalk import engine

Shape = tuple[int, ...] | None  # None: a number on its own, not in an array
Make = Callable[[int, Shape], Any]  # given the place of the first number and the shape, makes what stands there

VALUE_TYPES: tuple[type, ...] = ()
for _name in engine.ENGINES:
    with suppress(ImportError):
        VALUE_TYPES += (engine.load(_name).Value,)


_PLAIN = {float, int}


def all_plain(numbers: list[Any] | tuple[Any, ...]) -> bool:
    """Whether these are nothing but floats and ints."""
    return set(map(type, numbers)) <= _PLAIN


def only_type(items: list[Any] | tuple[Any, ...]) -> type | None:
    """The type that all of them have; None if they differ, or there are none."""
    types = set(map(type, items))
    return types.pop() if len(types) == 1 else None


def write(numbers: list[Any], array: Any) -> None:
    """Floats and ints into an array of as many float64."""
    array[:] = numbers


with suppress(ImportError):
    _native: Any = engine.load("native")
    all_plain, only_type, write = _native.all_plain, _native.only_type, _native.write


def is_value(given: Any) -> bool:
    """Whether this is a Value of either engine."""
    return isinstance(given, VALUE_TYPES)


def is_number(given: Any) -> bool:
    """Whether this is a Value or a real number; True and False are not."""
    return type(given) is float or is_value(given) or (isinstance(given, Real) and not _is_truth_value(given))


def values_among(numbers: list[Any]) -> list[Any]:
    """The Values in a list of numbers."""
    return [] if all_plain(numbers) else [number for number in numbers if is_value(number)]


def _is_truth_value(given: Any) -> bool:
    return type(given).__name__ in ("bool", "bool_")  # NumPy's own is called either, by its version


class Part:
    """One part of a structure, with the place of its first number. This one holds no number: a text, None."""

    def __init__(self, start: int, kept: Any = None) -> None:
        self.start, self.kept = start, kept

    def fill(self, numbers: list[Any], as_argument: bool = False) -> Any:
        """The same structure with these numbers in it."""
        return self.kept

    def build(self, make: Make) -> Any:
        """The same structure with what `make` makes for each number, or for each array."""
        return self.kept

    def names(self, name: str) -> Iterator[str]:
        """What each number is called, if the whole is called `name`."""
        yield from ()


class _Number(Part):
    def fill(self, numbers: list[Any], as_argument: bool = False) -> Any:
        return numbers[self.start]

    def build(self, make: Make) -> Any:
        return make(self.start, None)

    def names(self, name: str) -> Iterator[str]:
        yield name


class _Row(Part):
    """A list or tuple of nothing but numbers: the common case, without a Part for each."""

    def __init__(self, start: int, count: int, kind: Any) -> None:
        super().__init__(start)
        self.count, self.kind = count, kind

    def fill(self, numbers: list[Any], as_argument: bool = False) -> Any:
        row = numbers[self.start : self.start + self.count]
        return row if type(row) is self.kind else self.kind(row)

    def build(self, make: Make) -> Any:
        return self.kind(make(self.start + i, None) for i in range(self.count))

    def names(self, name: str) -> Iterator[str]:
        return (f"{name}[{i}]" for i in range(self.count))


class _Array(Part):
    def __init__(self, start: int, shape: tuple[int, ...]) -> None:
        super().__init__(start)
        self.shape, self.count = shape, math.prod(shape)

    def fill(self, numbers: list[Any], as_argument: bool = False) -> Any:
        array = array_of(numbers[self.start : self.start + self.count], self.shape)
        return with_values(array) if as_argument else array

    def build(self, make: Make) -> Any:
        return make(self.start, self.shape)

    def names(self, name: str) -> Iterator[str]:
        for i in range(self.count):
            place, rest = [], i
            for size in reversed(self.shape):
                rest, position = divmod(rest, size)
                place.append(str(position))
            yield f"{name}[{', '.join(reversed(place))}]"


class _Branch(Part):
    """Parts under keys; `rebuilt` makes the whole out of what the parts became."""

    def __init__(self, parts: Mapping[str, Part], rebuilt: Callable[[list[Any], bool], Any]) -> None:
        super().__init__(0)
        self.parts, self.rebuilt = parts, rebuilt

    def fill(self, numbers: list[Any], as_argument: bool = False) -> Any:
        return self.rebuilt([part.fill(numbers, as_argument) for part in self.parts.values()], as_argument)

    def build(self, make: Make) -> Any:
        return self.rebuilt([part.build(make) for part in self.parts.values()], False)

    def names(self, name: str) -> Iterator[str]:
        for key, part in self.parts.items():
            yield from part.names(name + key)


def array_of(numbers: list[Any], shape: tuple[int, ...]) -> Any:
    """A float64 array of plain numbers; an array of objects if there are Values among them."""
    numpy: Any = sys.modules["numpy"]
    if all_plain(numbers):
        array = numpy.empty(shape)
        write(numbers, array.reshape(-1))
        return array
    return numpy.fromiter(numbers, dtype=object, count=len(numbers)).reshape(shape)


def with_values(array: Any) -> Any:
    """An array of objects as one that computes with numbers and Values side by side."""
    if array.dtype.kind != "O":
        return array
    return array.view(importlib.import_module("gradwalk.numpy.arrays").Array)


def array_part(given: Any) -> Part | None:
    """The structure of an array of doubles that lies in memory in order, which has no need to be flattened."""
    numpy = sys.modules.get("numpy")
    if numpy is None or type(given) is not numpy.ndarray or given.dtype != numpy.float64:
        return None
    return _Array(0, given.shape) if given.flags.c_contiguous else None


def flatten(whole: Any, numbers: list[Any]) -> Part:
    """The structure of `whole`; its numbers and Values are put at the end of `numbers`.

    >>> numbers = []
    >>> part = flatten({"rate": 0.5, "sizes": [2, 3.0], "name": "tanh"}, numbers)
    >>> numbers
    [0.5, 2, 3.0]
    >>> part.fill([10.0, 20.0, 30.0])
    {'rate': 10.0, 'sizes': [20.0, 30.0], 'name': 'tanh'}
    """
    start = len(numbers)
    kind: Any = type(whole)
    if kind in (list, tuple) and (all_plain(whole) or all(map(is_number, whole))):
        numbers += whole
        return _Row(start, len(whole), kind)
    if is_number(whole):
        numbers.append(whole)
        return _Number(start)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(whole, numpy.ndarray):
        return _flatten_array(whole, numbers)
    if dataclasses.is_dataclass(whole) and not isinstance(whole, type):
        names = field_names(whole)
        parts = {f".{name}": flatten(getattr(whole, name), numbers) for name in names}
        return _Branch(parts, lambda made, as_argument: dataclass_like(whole, names, made, as_argument))
    if isinstance(whole, Mapping):
        parts = {f"[{key!r}]": flatten(entry, numbers) for key, entry in whole.items()}
        return _Branch(parts, lambda made, _: _mapping_like(whole, made))
    if isinstance(whole, tuple) and hasattr(whole, "_fields"):
        parts = {f".{name}": flatten(entry, numbers) for name, entry in zip(whole._fields, whole, strict=True)}
        return _Branch(parts, lambda made, _: kind(*made))
    if isinstance(whole, list | tuple):
        parts = {f"[{i}]": flatten(entry, numbers) for i, entry in enumerate(whole)}
        return _Branch(parts, lambda made, _: kind(made))
    if isinstance(whole, set | frozenset | complex):
        advice = "take its .real and .imag" if isinstance(whole, complex) else "a set has no order: give a list"
        raise TypeError(
            f"expected numbers, lists, tuples, dicts, dataclasses or arrays, got a {kind.__name__}; {advice}"
        )
    return Part(start, whole)


def flatten_like(part: Part, whole: Any) -> list[Any]:
    """The numbers of `whole` in the order of `part`, which has the same keys and shapes (a list is like an array).

    >>> flatten_like(flatten({"a": 1.0, "b": [2.0, 3.0]}, []), {"b": (20.0, 30.0), "a": 10.0})
    [10.0, 20.0, 30.0]
    """
    numbers: list[Any] = []
    given = flatten(whole, numbers)
    if type(given) is type(part) is _Row and given.count == part.count:
        return numbers
    if type(given) is type(part) is _Array and given.shape == part.shape:
        return numbers
    wanted, names = _paths(part), _paths(given)
    if wanted == names:
        return numbers
    if len(wanted) != len(names) or set(wanted) != set(names):
        raise ValueError(f"expected {_listed(wanted)}, got {_listed(names)}")
    number_of = dict(zip(names, numbers, strict=True))
    return [number_of[name] for name in wanted]


def _paths(part: Part) -> list[str]:
    return [name.replace(", ", "][").replace("[]", "") for name in part.names("")]


def _listed(paths: list[str]) -> str:
    if paths in ([""], []):
        return "one number" if paths else "no numbers"
    shown = ", ".join(paths if len(paths) <= 6 else [*paths[:4], "…", paths[-1]])
    return f"{len(paths)} number{'s' * (len(paths) != 1)} at {shown}"


def field_names(whole: Any) -> list[str]:
    """The fields a dataclass is made of; the others follow from them."""
    return [field.name for field in dataclasses.fields(whole) if field.init]


def together(parts: Sequence[Part]) -> Part:
    """Several structures over one list of numbers as one: a tuple of them."""
    return _Branch({f"[{i}]": part for i, part in enumerate(parts)}, lambda made, _: tuple(made))


def _flatten_array(array: Any, numbers: list[Any]) -> Part:
    if array.dtype.kind == "b":
        return Part(len(numbers), array)
    entries = array.ravel().tolist()
    wrong = next((entry for entry in entries if not is_number(entry)), None) if array.dtype.kind not in "fiu" else None
    if wrong is not None:
        raise TypeError(f"expected an array of real numbers or Values, got {wrong!r} in one of dtype {array.dtype}")
    part = _Array(len(numbers), array.shape)
    numbers += entries
    return part


def sequence_like(whole: Any, made: list[Any]) -> Any:
    """The same kind of list, tuple or named tuple with these in it."""
    return type(whole)(*made) if hasattr(whole, "_fields") else type(whole)(made)


def dataclass_like(whole: Any, names: list[str], made: list[Any], as_argument: bool) -> Any:
    """The same dataclass with these in place of the fields of those names."""
    if as_argument:
        return dataclasses.replace(whole, **dict(zip(names, made, strict=True)))  # derived fields follow
    like = copy.copy(whole)  # not made anew: a gradient need not pass the checks of an argument
    for field in dataclasses.fields(whole):
        object.__setattr__(like, field.name, made[names.index(field.name)] if field.init else None)
    return like


def _mapping_like(whole: Mapping[Any, Any], made: list[Any]) -> Any:
    filled = dict(zip(whole, made, strict=True))
    if type(whole) is dict:
        return filled
    like: Any = copy.copy(whole)  # an OrderedDict, a defaultdict with its default
    like.update(filled)
    return like
