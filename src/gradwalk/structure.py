"""What people nest numbers in, each kind described once: how it is taken apart and put together, what parts are called.

`flatten` finds the numbers in lists, tuples, dicts, dataclasses and arrays; the `Structure` it returns can put others
in their places. `key_of` is the walk itself: two wholes with one key differ in their numbers only. What counts as a
number is up to the `Reading`. NumPy is used where an array is given, and never imported for it.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import math
import sys
from array import array
from collections import UserDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from numbers import Real
from typing import Any, TypeVar

from gradwalk import engine
from gradwalk.control import changed
from gradwalk.errors import ENDLESS
from gradwalk.stored import (
    Keys,
    attribute,
    attributes_of,
    derived_from,
    given_names,
    hang,
    items_of,
    keys_of,
    like_dict,
    like_object,
    like_sequence,
    refuse_to_read,
    values_of,
)

T = TypeVar("T")
Shape = tuple[int, ...] | None  # None: a number on its own, not in an array
Make = Callable[[int, Shape], Any]  # given the place of the first number and the shape, makes what stands there
Key = tuple[Any, ...]  # its first entry is the Kind

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


def write(numbers: list[Any], array: Any) -> bool:
    """Floats, ints and what Values hold into as many float64, lists of them into rows; False where anything else is."""
    if array.ndim == 2:
        return all(map(write, numbers, array))
    if not all(type(number) in _PLAIN or is_value(number) for number in numbers):
        return False
    array[:] = [number.data if is_value(number) else number for number in numbers]
    return True


def read(arguments: tuple[Any, ...], numbers: list[Any], holders: list[Any], kinds: Any, other: Any) -> tuple[Any, ...]:
    """What `other` says of each argument. Native, the common kinds are read without it."""
    return tuple(map(other, arguments))


def repetitions(items: list[Any]) -> tuple[tuple[int, int], ...]:
    """Which items are one object: the place of each that was there before, and where. Tuples do not count."""
    first: dict[int, int] = {}
    places = [first.setdefault(id(item), place) for place, item in enumerate(items)]
    return tuple((place, at) for place, at in enumerate(places) if place != at and type(items[at]) is not tuple)


with suppress(ImportError):
    _native: Any = engine.load("native")
    all_plain, only_type, write = _native.all_plain, _native.only_type, _native.write
    read, repetitions = _native.read, _native.repetitions


def is_value(given: Any) -> bool:
    """Whether this is a Value of either engine."""
    return isinstance(given, VALUE_TYPES)


def is_number(given: Any) -> bool:
    """Whether this is a Value or a real number; True and False are not."""
    return type(given) is float or is_value(given) or (isinstance(given, Real) and not _is_truth_value(type(given)))


def values_among(numbers: list[Any]) -> list[Any]:
    """The Values in a list of numbers."""
    return [] if all_plain(numbers) else [number for number in numbers if is_value(number)]


def _is_truth_value(kind: type) -> bool:
    return kind.__name__ in ("bool", "bool_")  # NumPy's own is called either, by its version


def array_of(numbers: list[Any], shape: tuple[int, ...]) -> Any:
    """A float64 array of plain numbers; an array of objects if there are Values among them."""
    numpy: Any = sys.modules["numpy"]
    if all_plain(numbers):
        array = numpy.empty(shape)
        write(numbers, array.reshape(-1))
        return array
    return numpy.fromiter(numbers, dtype=object, count=len(numbers)).reshape(shape)


def float64s(numbers: Iterable[float], shape: tuple[int, ...]) -> Any:
    """An array of as many as the shape says; where there is no NumPy, a memoryview of that shape."""
    view = memoryview(array("d", numbers))
    shaped: Any = view if view.shape == shape else view.cast("B").cast("d", shape)
    with suppress(ImportError):
        return importlib.import_module("numpy").asarray(shaped)
    return shaped


def plain_array(given: Any) -> Any:
    """The array without a class of its own, which computes as any other does; a matrix or a masked array is refused."""
    numpy: Any = sys.modules["numpy"]
    if isinstance(given, numpy.memmap) or getattr(type(given), "__module__", "").startswith("gradwalk."):
        return numpy.asarray(given)
    if type(given) is not numpy.ndarray:
        name = type(given).__name__
        raise TypeError(f"expected an array, got a {name}, which computes in its own way; give numpy.asarray() of it")
    return given


def with_values(array: Any) -> Any:
    """An array of objects as one that computes with numbers and Values side by side."""
    name = "gradwalk.numpy.arrays"
    arrays: Any = (sys.modules.get(name) or importlib.import_module(name)) if array.dtype.kind == "O" else None
    return array if arrays is None else array.view(arrays.Array)


# ---------------------------------------------------------------- what counts as a number


class Reading:
    """How a structure is read. This way every real number and every Value counts; anything else stays what it is."""

    def number(self, whole: Any, numbers: list[Any]) -> Key:
        numbers.append(whole)
        return (ONE,)

    def row(self, whole: Any, numbers: list[Any]) -> Key | None:
        """The key of a list or tuple of nothing but numbers: the common case, without a key for each."""
        if all_plain(whole) or all(map(is_number, whole)):
            numbers += whole
            return ROW, type(whole), len(whole)
        return None

    def array(self, array: Any, numbers: list[Any]) -> Key:
        array = plain_array(array)
        if array.dtype.kind == "b":
            return KEPT
        entries = array.ravel().tolist()
        wrong = None if array.dtype.kind in "fiu" else next((each for each in entries if not is_number(each)), None)
        if wrong is not None:
            raise TypeError(f"expected an array of real numbers or Values, got {wrong!r} in one of dtype {array.dtype}")
        numbers += entries
        return ARRAY, array.shape

    def container(self, kind: Container, whole: Any, numbers: list[Any]) -> Key:
        about = kind.about(whole)
        return kind, type(whole), about, tuple([key_of(part, numbers, self) for part in kind.parts(about, whole)])

    def kept(self, whole: Any) -> Key:
        if isinstance(whole, set | frozenset | complex):
            advice = "take its .real and .imag" if isinstance(whole, complex) else "a set has no order: give a list"
            raise TypeError(
                f"expected numbers, lists, tuples, dicts, dataclasses or arrays, got a {type(whole).__name__}; {advice}"
            )
        return KEPT


def key_of(whole: Any, numbers: list[Any], reading: Reading) -> Key:
    """What the whole is, apart from its numbers and Values, which are put at the end of `numbers`."""
    kind: Any = type(whole)
    if kind is float:
        return reading.number(whole, numbers)
    if kind is list or kind is tuple:
        return reading.row(whole, numbers) or reading.container(SEQUENCE, whole, numbers)
    return kind_of(kind).key(whole, numbers, reading)


# ---------------------------------------------------------------- where numbers come from


class Source:
    """A list of numbers, handed out in order. Parts whose id is in `again`, which notes what was made, stay one."""

    def __init__(self, numbers: Any, as_argument: bool = False, again: dict[int, Any] | None = None) -> None:
        self.numbers, self.as_argument, self.again = numbers, as_argument, again
        self.at = 0
        self.looks_at_parts = again is not None  # else they need not pass by `filled`

    def number(self) -> Any:
        self.at += 1
        return self.numbers[self.at - 1]

    def row(self, count: int) -> list[Any]:
        self.at += count
        return self.numbers[self.at - count : self.at]  # type: ignore[no-any-return]

    def array(self, shape: tuple[int, ...]) -> Any:
        array = array_of(self.row(math.prod(shape)), shape)
        return with_values(array) if self.as_argument else array

    def filled(self, key: Key, like: Any) -> Any:
        """What has that key, with these numbers in it; all else is as it is in `like`."""
        made = key[0].filled(key, like, self)
        if self.again is None or id(like) not in self.again:
            return made  # numbers, too, may be one object by chance, and another in the next call
        if self.again[id(like)] is None:
            self.again[id(like)] = made
        return self.again[id(like)]


class _FromArray(Source):
    """The numbers of an array of float64."""

    def number(self) -> float:
        self.at += 1
        return self.numbers.item(self.at - 1)  # type: ignore[no-any-return]

    def row(self, count: int) -> list[float]:
        self.at += count
        return self.numbers[self.at - count : self.at].tolist()  # type: ignore[no-any-return]

    def array(self, shape: tuple[int, ...]) -> Any:
        part = self.numbers[self.at : self.at + math.prod(shape)].copy()
        self.at += part.size
        return part if len(shape) == 1 else part.reshape(shape)


def source_of(numbers: Any, as_argument: bool = False, again: dict[int, Any] | None = None) -> Source:
    """The numbers of a list, or of an array."""
    return (Source if isinstance(numbers, list) else _FromArray)(numbers, as_argument, again)


class Made(Source):
    """What a function makes for each number, or for each array."""

    def number(self) -> Any:
        return self.row(1)[0]

    def row(self, count: int) -> list[Any]:
        self.at += count
        return [self.numbers(place, None) for place in range(self.at - count, self.at)]

    def array(self, shape: tuple[int, ...]) -> Any:
        self.at += math.prod(shape)
        return self.numbers(self.at - math.prod(shape), shape)


# ---------------------------------------------------------------- the kinds of things in a structure


class Kind:
    """One kind of thing. This one is kept as it is: a text, None, an object."""

    def key(self, whole: Any, numbers: list[Any], reading: Reading) -> Key:
        return reading.kept(whole)

    def filled(self, key: Key, like: Any, source: Source) -> Any:
        return like

    def names(self, key: Key, like: Any, name: str) -> Iterator[str]:
        """What each number is called, if the whole is called `name`."""
        yield from ()


class _Number(Kind):
    def key(self, whole: Any, numbers: list[Any], reading: Reading) -> Key:
        return reading.number(whole, numbers)

    def filled(self, key: Key, like: Any, source: Source) -> Any:
        return source.number()

    def names(self, key: Key, like: Any, name: str) -> Iterator[str]:
        yield name


class _Row(Kind):
    def filled(self, key: Key, like: Any, source: Source) -> Any:
        row = source.row(key[2])
        return row if key[1] is list else key[1](row)

    def names(self, key: Key, like: Any, name: str) -> Iterator[str]:
        return (f"{name}[{i}]" for i in range(key[2]))


class _Array(Kind):
    def key(self, whole: Any, numbers: list[Any], reading: Reading) -> Key:
        return reading.array(whole, numbers)

    def filled(self, key: Key, like: Any, source: Source) -> Any:
        return source.array(key[1])

    def names(self, key: Key, like: Any, name: str) -> Iterator[str]:
        for i in range(math.prod(key[1])):
            place, rest = [], i
            for size in reversed(key[1]):
                rest, position = divmod(rest, size)
                place.append(str(position))
            yield f"{name}[{', '.join(reversed(place))}]"


class Container(Kind):
    """Something with parts: what it holds, then its attributes, where its class lets it have some."""

    def about(self, whole: Any) -> tuple[Any, ...]:
        """What belongs to its key besides its type and its parts."""
        return attributes_of(whole)

    def attributes(self, about: tuple[Any, ...]) -> Sequence[str]:
        """The names of its last parts."""
        return about

    def held(self, about: tuple[Any, ...], whole: Any) -> Sequence[Any]:
        """Its first parts."""
        return items_of(whole)

    def held_names(self, about: tuple[Any, ...], whole: Any) -> Iterable[str]:
        return (f"[{i}]" for i in range(len(self.held(about, whole))))

    def parts(self, about: tuple[Any, ...], whole: Any) -> Sequence[Any]:
        names, held = self.attributes(about), self.held(about, whole)
        return [*held, *(attribute(whole, name) for name in names)] if names else held

    def everything(self, whole: Any) -> Sequence[Any]:
        """All that could be changed in it."""
        return self.parts(self.about(whole), whole)

    def together(self, about: tuple[Any, ...], like: Any, parts: list[Any], as_argument: bool) -> Any:
        """The same kind of container with these parts."""
        names = self.attributes(about)
        count = len(parts) - len(names)
        made = self.anew(about, like, parts[:count])
        return hang(made, names, parts[count:]) if names else made

    def anew(self, about: tuple[Any, ...], like: Any, held: list[Any]) -> Any:
        """The same kind of container that holds this, and has no attributes yet."""
        return like_sequence(like, held)

    def key(self, whole: Any, numbers: list[Any], reading: Reading) -> Key:
        return reading.container(self, whole, numbers)

    def filled(self, key: Key, like: Any, source: Source) -> Any:
        _, _, about, keys = key
        parts = [source.filled(k, part) for k, part in zip(keys, self.parts(about, like), strict=True)]
        return self.together(about, like, parts, source.as_argument)

    def names(self, key: Key, like: Any, name: str) -> Iterator[str]:
        _, _, about, keys = key
        part_names = [*self.held_names(about, like), *(f".{each}" for each in self.attributes(about))]
        for part_name, k, part in zip(part_names, keys, self.parts(about, like), strict=True):
            yield from k[0].names(k, part, name + part_name)


class _NamedTuple(Container):
    def held_names(self, about: tuple[Any, ...], whole: Any) -> Iterable[str]:
        return (f".{name}" for name in whole._fields)


class _Mapping(Container):
    def about(self, whole: Any) -> tuple[Any, ...]:
        return Keys(keys_of(whole)), attributes_of(whole)

    def attributes(self, about: tuple[Any, ...]) -> Sequence[str]:
        return about[1]  # type: ignore[no-any-return]

    def held(self, about: tuple[Any, ...], whole: Any) -> Sequence[Any]:
        return values_of(whole)

    def held_names(self, about: tuple[Any, ...], whole: Any) -> Iterable[str]:
        return (f"[{key!r}]" for key in about[0])

    def everything(self, whole: Any) -> Sequence[Any]:
        return [*keys_of(whole), *super().everything(whole)]

    def filled(self, key: Key, like: Any, source: Source) -> Any:
        if type(like) is dict and not source.looks_at_parts:  # the common case, quickly
            parts = zip(key[2][0], key[3], like.values(), strict=True)
            return {name: k[0].filled(k, part, source) for name, k, part in parts}
        return super().filled(key, like, source)

    def anew(self, about: tuple[Any, ...], like: Any, held: list[Any]) -> Any:
        return like_dict(like, about[0], held)


class _Object(Container):
    """What has attributes, and nothing else that is stored: a mapping of somebody's own."""

    def about(self, whole: Any) -> tuple[Any, ...]:
        return attributes_of(whole) or refuse_to_read(whole)

    def held(self, about: tuple[Any, ...], whole: Any) -> Sequence[Any]:
        return ()

    def anew(self, about: tuple[Any, ...], like: Any, held: list[Any]) -> Any:
        return like_object(like)

    def names(self, key: Key, like: Any, name: str) -> Iterator[str]:
        kept_in = f"{name}.data"  # of a UserDict, which is one with what it keeps its items in
        for each in super().names(key, like, name):
            yield name + each.removeprefix(kept_in) if isinstance(like, UserDict) else each


class _Dataclass(_Object):
    """Its fields. What it is not given follows from them, unless somebody has set it to something else."""

    def about(self, whole: Any) -> tuple[Any, ...]:
        stored = self.stored(whole)
        derived = derived_from(given_names(whole), whole, stored, _are_equal)
        return (derived, *(name for name in stored if name not in derived))

    def stored(self, whole: Any) -> list[str]:
        """Its fields in their order, and then what else was hung on it."""
        names = dict.fromkeys(attributes_of(whole))
        fields = [field.name for field in dataclasses.fields(whole) if field.name in names]
        return [*fields, *(name for name in names if name not in fields)]

    def attributes(self, about: tuple[Any, ...]) -> Sequence[str]:
        return about[1:]

    def everything(self, whole: Any) -> Sequence[Any]:
        return [attribute(whole, name) for name in self.stored(whole)]

    def together(self, about: tuple[Any, ...], like: Any, parts: list[Any], as_argument: bool) -> Any:
        derived, *names = about
        if not derived:
            return super().together(about, like, parts, as_argument)
        new = dict(zip(names, parts, strict=True))
        if as_argument:
            made = dataclasses.replace(like, **{name: new.pop(name) for name in given_names(like)})
        else:
            made = like_object(like)  # not made anew: a gradient need not pass the checks of an argument
            new = {name: new.get(name) for name in self.stored(like)}
        return hang(made, new, new.values())


def _are_equal(x: Any, y: Any) -> bool:
    if is_value(x) and is_value(y):
        with changed(on_read=None):
            x, y = x.data, y.data
    return is_number(x) and bool(x == y)


ANYTHING, ONE, ROW, ARRAY = Kind(), _Number(), _Row(), _Array()
SEQUENCE, NAMED_TUPLE, MAPPING, OBJECT, DATACLASS = Container(), _NamedTuple(), _Mapping(), _Object(), _Dataclass()
KEPT: Key = (ANYTHING,)
NUMBERS = Reading()


def _array_type() -> Any:
    """NumPy's; None where it is not there, or is being imported by another thread: then there is no array yet."""
    return getattr(sys.modules.get("numpy"), "ndarray", None)


@functools.lru_cache(maxsize=1024)
def kind_of(kind: Any) -> Kind:
    """The one ladder: what an object of that type is."""
    array_type = _array_type()
    if issubclass(kind, VALUE_TYPES) or (issubclass(kind, Real) and not _is_truth_value(kind)):
        return ONE
    if array_type is not None and issubclass(kind, array_type):
        return ARRAY
    if issubclass(kind, dict):
        return MAPPING
    if issubclass(kind, list | tuple):
        return NAMED_TUPLE if hasattr(kind, "_fields") else SEQUENCE
    if dataclasses.is_dataclass(kind):
        return DATACLASS
    return OBJECT if issubclass(kind, Mapping) else ANYTHING


# ---------------------------------------------------------------- structures


class Structure:
    """What stands where in an argument or a result, apart from its numbers."""

    def __init__(self, key: Key, like: Any) -> None:
        self.key, self.like = key, like

    def fill(self, numbers: Any, as_argument: bool = False) -> Any:
        """The same with these numbers in it, a list or an array of them."""
        if type(numbers) is list and self.key[0] is ONE:
            return numbers[0]
        return source_of(numbers, as_argument).filled(self.key, self.like)

    def build(self, make: Make) -> Any:
        """The same with what `make` makes for each number, or for each array."""
        return Made(make).filled(self.key, self.like)

    def names(self, name: str) -> Iterator[str]:
        """What each number is called, if the whole is called `name`."""
        return self.key[0].names(self.key, self.like, name)  # type: ignore[no-any-return]


def flatten(whole: Any, numbers: list[Any], reading: Reading = NUMBERS) -> Structure:
    """The structure of `whole`; its numbers and Values are put at the end of `numbers`.

    >>> structure = flatten({"rate": 0.5, "sizes": [2, 3.0], "name": "tanh"}, numbers := [])
    >>> numbers
    [0.5, 2, 3.0]
    >>> structure.fill([10.0, 20.0, 30.0])
    {'rate': 10.0, 'sizes': [20.0, 30.0], 'name': 'tanh'}
    """
    if type(whole) is float and reading is NUMBERS:
        numbers.append(whole)
        return Structure((ONE,), whole)
    try:
        return Structure(key_of(whole, numbers, reading), whole)
    except RecursionError:
        raise TypeError(ENDLESS) from None


def array_structure(given: Any) -> Structure | None:
    """The structure of an array of doubles that lies in memory in order, which has no need to be flattened."""
    if type(given) is not _array_type() or given.dtype != "float64":
        return None
    return Structure((ARRAY, given.shape), given) if given.flags.c_contiguous and given.flags.aligned else None


def flatten_like(structure: Structure, whole: Any) -> list[Any]:
    """The numbers of `whole` in the order of the structure, with the same keys and shapes (a list is like an array).

    >>> flatten_like(flatten({"a": 1.0, "b": [2.0, 3.0]}, []), {"b": (20.0, 30.0), "a": 10.0})
    [10.0, 20.0, 30.0]
    """
    numbers: list[Any] = []
    given = flatten(whole, numbers)
    if given.key[0] in (ROW, ARRAY) and given.key == structure.key:
        return numbers
    wanted, names = _paths(structure), _paths(given)
    if wanted == names:
        return numbers
    if len(wanted) != len(names) or set(wanted) != set(names):
        raise ValueError(f"expected {_listed(wanted)}, got {_listed(names)}")
    place = {name: place for place, name in enumerate(names)}
    return [numbers[place[name]] for name in wanted]


def _paths(structure: Structure) -> list[str]:
    return [name.replace(", ", "][").replace("[]", "") for name in structure.names("")]


def _listed(paths: list[str]) -> str:
    if paths in ([""], []):
        return "one number" if paths else "no numbers"
    shown = ", ".join(paths if len(paths) <= 6 else [*paths[:4], "…", paths[-1]])
    return f"{len(paths)} number{'s' * (len(paths) != 1)} at {shown}"


def stop_gradient(whole: T) -> T:
    """The same number, list, dict or array, but no gradient flows back through it.

    >>> stop_gradient({"a": [1.0, 2.0]})
    {'a': [1.0, 2.0]}
    """
    given: Any = whole
    if is_value(given):
        return given._apply("stop_gradient", given)  # type: ignore[no-any-return]
    numbers: list[Any] = []
    structure = flatten(given, numbers)
    if not values_among(numbers):
        return whole
    stopped = [number._apply("stop_gradient", number) if is_value(number) else number for number in numbers]
    return structure.fill(stopped, as_argument=True)  # type: ignore[no-any-return]
