"""Arguments and results of classes of somebody's own: what is stored counts, and no constructor runs a second time."""

from __future__ import annotations

import functools
from collections import Counter, OrderedDict, UserDict, defaultdict, namedtuple
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import pytest

import gradwalk
from gradwalk import math as gm

# ---------------------------------------------------------------- classes that do something to what they are given


@dataclass
class Doubling:
    a: Any
    b: Any = 1.0

    def __post_init__(self) -> None:
        self.a = self.a * 2


@dataclass
class Radians:
    angle: Any

    def __post_init__(self) -> None:
        self.angle = gm.radians(self.angle)


@dataclass(init=False)
class Constructed:
    a: Any

    def __init__(self, a: Any, scale: float) -> None:
        self.a = a * scale


@dataclass(frozen=True, slots=True)
class Frozen:
    a: Any
    b: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "b", self.b * 3)


@dataclass
class Following:
    a: Any
    square: Any = field(init=False)

    def __post_init__(self) -> None:
        self.square = self.a * self.a
        self.cube = self.square * self.a

    @functools.cached_property
    def fourth(self) -> Any:
        return self.square * self.square


class Shown:
    """A dataclass's field behind a property that shows something else."""

    @property
    def a(self) -> Any:
        return self._a * 2

    @a.setter
    def a(self, a: Any) -> None:
        self._a = a + 1


@dataclass
class Behind(Shown):
    a: Any  # type: ignore[misc]


Pair = namedtuple("Pair", "a b")


class DoublingPair(Pair):
    def __new__(cls, a: Any, b: Any) -> Any:
        return super().__new__(cls, a * 2, b)


class DoublingList(list):  # type: ignore[type-arg]
    def __init__(self, items: Any) -> None:
        super().__init__(2 * x for x in items)


class Variadic(list):  # type: ignore[type-arg]
    def __init__(self, *items: Any) -> None:
        super().__init__(items)


class DoublingTuple(tuple):  # type: ignore[type-arg]
    def __new__(cls, items: Any) -> Any:
        return super().__new__(cls, [2 * x for x in items])


class Slotted(list):  # type: ignore[type-arg]
    __slots__ = ("scale",)


class Setting(dict):  # type: ignore[type-arg]
    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value * 10)


class Showing(dict):  # type: ignore[type-arg]
    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(key) * 10

    def values(self) -> Any:
        return [10 * x for x in super().values()]


class Scaled(UserDict):  # type: ignore[type-arg]
    def __init__(self, scale: float, **items: Any) -> None:
        self.scale = scale
        super().__init__(**items)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[key] = value * self.scale


class Own(Mapping[str, Any]):
    def __init__(self, **items: Any) -> None:
        self._items = {key: 2 * value for key, value in items.items()}

    def __getitem__(self, key: str) -> Any:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)


def slotted(*items: Any, scale: Any) -> Any:
    made = Slotted(items)
    made.scale = scale
    return made


def hung(made: Any, **attributes: Any) -> Any:
    for name, it in attributes.items():
        setattr(made, name, it)
    return made


def written(made: Any, **items: Any) -> Any:
    for key, it in items.items():
        made[key] = it
    return made


def ordered(*keys: str, **items: Any) -> Any:
    made = OrderedDict(items)
    for key in keys:
        made.move_to_end(key)
    return made


class Hung(Pair):
    scale = 1.0


def touched(made: Any) -> Any:
    assert made.fourth == made.square * made.square
    return made


# made of two numbers; a function of what is made
CASES: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any], Any]]] = {
    "a field that is changed": (Doubling, lambda q: q.a * 3 + q.b * q.b),
    "a field that is set later": (lambda x, y: hung(Doubling(x), a=y), lambda q: q.a * 3),
    "an angle": (lambda x, y: Radians(90.0 * x), lambda q: gm.sin(q.angle)),
    "a constructor of its own": (Constructed, lambda q: q.a * q.a),
    "frozen, with slots": (Frozen, lambda q: q.a * q.b),
    "what follows": (lambda x, y: Following(x), lambda q: q.a + q.square + q.cube + q.fourth),
    "what follows and was read": (lambda x, y: touched(Following(x)), lambda q: q.fourth),
    "what followed, and was set": (lambda x, y: hung(Following(x), square=y), lambda q: q.a * q.square + q.cube),
    "behind a property": (lambda x, y: Behind(x), lambda q: q.a * q.a),
    "a named tuple": (DoublingPair, lambda q: q.a * q.b),
    "a named tuple's attribute": (lambda x, y: hung(Hung(x, 1.0), scale=y), lambda q: q.a * q.scale),
    "a list": (lambda x, y: DoublingList([x, y]), lambda q: q[0] * q[1] * len(q)),
    "a list of its arguments": (Variadic, lambda q: q[0] * q[1] * len(q)),
    "a list with slots": (lambda x, y: slotted(x, scale=y), lambda q: q[0] * q.scale),
    "a tuple": (lambda x, y: DoublingTuple([x, y]), lambda q: q[0] * q[1] * len(q)),
    "a dict that changes what is set": (lambda x, y: written(Setting(), a=x, b=y), lambda q: q["a"] * q["b"]),
    "a dict that shows something else": (
        lambda x, y: Showing(a=x, b=y),
        lambda q: q["a"] + sum(q.values()) * q.get("b"),
    ),
    "an order of its own": (lambda x, y: ordered("a", a=x, b=y, c=1.0), lambda q: next(iter(q.values())) * q["a"]),
    "a default": (lambda x, y: defaultdict(lambda: y, a=x), lambda q: q["a"] * q["missing"]),
    "a UserDict": (lambda x, y: Scaled(3.0, a=x, b=y), lambda q: q["a"] * q["b"] * q.scale),
    "a UserDict's attribute": (lambda x, y: Scaled(y, a=x), lambda q: q["a"] * q.scale),
    "a mapping": (lambda x, y: Own(a=x, b=y), lambda q: q["a"] * q["b"]),
    "counts": (lambda x, y: Counter(a=x, b=y), lambda q: sum(v * v for v in q.values()) + q["c"] * q["a"] + q.total()),
}
CASES = {name: case for name, case in CASES.items() if name != "counts" or hasattr(Counter, "total")}  # Python 3.10
POINTS = [(2.0, 5.0), (3.0, 0.5), (1.0, -2.0), (2.0, 5.0)]
each = pytest.mark.parametrize("name", CASES)


@each
@pytest.mark.parametrize("exact", [False, True])
def test_a_compiled_function_is_the_plain_one(name: str, exact: bool) -> None:
    made, function = CASES[name]
    expected = [function(made(x, y)) for x, y in POINTS]
    compiled = gradwalk.compile(function, exact=exact)
    assert [compiled(made(x, y)).data for x, y in POINTS] == pytest.approx(expected, rel=1e-15)
    compiled = gradwalk.compile(function, exact=exact)
    assert [value.data for value in compiled.map([(made(x, y),) for x, y in POINTS])] == pytest.approx(expected)


@each
def test_derivatives_are_those_by_what_is_stored(name: str) -> None:
    made, function = CASES[name]
    for x, y in POINTS:
        value, slope = gradwalk.value_and_grad(function)(made(x, y))
        assert value == function(made(x, y))
        assert type(slope) is type(made(x, y))
        report = gradwalk.gradcheck(function, made(x, y))
        assert report.entries
        assert all(entry.verdict == "ok" for entry in report.entries), report


def test_what_follows_from_the_fields_follows_them() -> None:
    slope = gradwalk.grad(lambda q: q.fourth + q.cube)(touched(Following(2.0)))
    assert (slope.a, slope.square) == (4 * 8.0 + 3 * 4.0, None)


def test_what_was_set_since_is_a_number_of_its_own() -> None:
    """Nor does a text follow that was set since."""
    slope = gradwalk.grad(lambda q: q.a * q.square)(hung(Following(2.0), square=5.0))
    assert (slope.a, slope.square) == (5.0, 2.0)

    @dataclass
    class Named:
        a: Any
        kind: str = field(init=False)

        def __post_init__(self) -> None:
            self.kind = "large" if self.a > 1.0 else "small"

    def function(q: Any) -> Any:
        return q.a * (10.0 if q.kind == "small" else 1.0)

    given = hung(Named(2.0), kind="small")
    compiled = gradwalk.compile(function)
    assert [f(q).data for f in (compiled,) for q in (given, Named(2.0), given)] == [20.0, 2.0, 20.0]
    assert gradwalk.value_and_grad(function)(given)[0] == 20.0


RESULTS: dict[str, Callable[[Any], Any]] = {
    "a dataclass": lambda x: Doubling(x),
    "a frozen one": lambda x: Frozen(x, x),
    "one with a constructor": lambda x: Constructed(x, 3.0),
    "what follows": lambda x: Following(x),
    "what followed, and was set": lambda x: hung(Following(x), square=x * 7.0),
    "a named tuple": lambda x: DoublingPair(x, x),
    "a list": lambda x: DoublingList([x, x]),
    "a list of its arguments": lambda x: Variadic(x, x * x),
    "a list with slots": lambda x: slotted(x, scale=x * 2.0),
    "a dict that changes what is set": lambda x: written(Setting(), a=x),
    "counts": lambda x: Counter(a=x),
    "a default": lambda x: defaultdict(float, a=x),
}


def numbers_in(whole: Any) -> list[float]:
    """All of them, in the order in which they are stored."""
    if isinstance(whole, int | float | gradwalk.Value):
        return [whole.data if isinstance(whole, gradwalk.Value) else whole]
    held = dict.values(whole) if isinstance(whole, dict) else whole if isinstance(whole, list | tuple) else ()
    slots = [name for cls in type(whole).__mro__ for name in cls.__dict__.get("__slots__", ())]
    hung = [*getattr(whole, "__dict__", {}).values(), *(getattr(whole, name) for name in slots)]
    return [number for part in [*held, *hung] for number in numbers_in(part)]


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_what_the_function_made(name: str) -> None:
    function = RESULTS[name]
    compiled = gradwalk.compile(function)
    for x in (3.0, 2.0, 0.5):
        assert type(compiled(x)) is type(function(x))
        assert numbers_in(compiled(x)) == pytest.approx(numbers_in(function(x)))


def test_a_jacobian_is_put_into_a_result_as_it_is() -> None:
    assert gradwalk.jacobian(lambda x: DoublingPair(x, x * x))(3.0) == (2.0, 6.0)
    assert gradwalk.jacobian(lambda x: Counter(a=x * x))(3.0) == {"a": 6.0}
    assert gradwalk.jacobian(lambda x: Variadic(x, x * x))(3.0) == [1.0, 6.0]


def test_what_keeps_its_items_to_itself_is_refused() -> None:
    given = MappingProxyType({"a": 2.0})
    for call in (gradwalk.grad(lambda q: q["a"] ** 2), gradwalk.compile(lambda q: q["a"] ** 2)):
        with pytest.raises(
            TypeError, match=r"got a mappingproxy, which keeps what it holds to itself; give dict\(\) of it"
        ):
            call(given)


# ---------------------------------------------------------------- equal, and not the same


class Text(str):
    k = 1.0


class Folded(str):
    def __eq__(self, other: object) -> bool:
        return str(self).lower() == str(other).lower()

    __hash__ = str.__hash__


@pytest.mark.parametrize(
    ("function", "given"),
    [
        (lambda x, d: x * gm.copysign(1.0, next(iter(d))), [{0.0: 1.0}, {-0.0: 1.0}]),
        (
            lambda x, d: x * (2.0 if type(next(iter(d))[0]) is int else 3.0),
            [{(1, 2): 1.0}, {(1.0, 2): 1.0}, {(True, 2): 1.0}],
        ),
        (lambda x, d: x * len(repr(sorted(*d))), [{frozenset((1,)): 1.0}, {frozenset((1.0,)): 1.0}]),
        (lambda x, s: x * s.k, [hung(Text("a"), k=2.0), hung(Text("a"), k=3.0), Text("a")]),
        (lambda x, s: x * (2.0 if s[0] == "a" else 3.0), [Folded("a"), Folded("A")]),
        (lambda x, d: x * d["missing"], [defaultdict(lambda: 2.0), defaultdict(lambda: 3.0)]),
    ],
)
def test_what_is_equal_need_not_be_the_same(function: Any, given: list[Any]) -> None:
    """In the key of a program: types inside keys, the sign of a zero, what a text carries."""
    compiled = gradwalk.compile(function)
    for it in [*given, *given]:
        assert compiled(2.0, it).data == function(2.0, it)


def test_equal_texts_are_one_program() -> None:
    compiled = gradwalk.compile(lambda x, s: x * len(s))
    for text in (Folded("ab"), Folded("ab"), "ab", "".join(["a", "b"])):
        compiled(2.0, text)
    assert len(compiled.programs) == 2
