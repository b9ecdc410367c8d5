"""Operations over many numbers as functions, on both engines: sum, dot, softmax, …

What they compute is said in `row_ops.py`; here it is recorded on the reference engine and run on Values, for higher
derivatives. The native engine does the same with what `tools/generate.py` makes of the declarations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import update_wrapper
from operator import index as whole_number
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from gradwalk import engine, reference
from gradwalk.errors import number_from
from gradwalk.formula import Number
from gradwalk.row_formula import Lists, finite_or_0
from gradwalk.row_ops import COMPOSITES, Composite

# ---------------------------------------------------------------- on Values


class Values(Lists):
    """What the language of rows means for Values: higher derivatives are made of it."""

    def shift(self, xs: list[Number]) -> Number:
        # a node of its own, which no gradient flows through: a compiled function finds it anew in every call
        value = next(x for x in xs if not isinstance(x, float))
        of_values = _REFERENCE if isinstance(value, reference.Value) else engine.load("native").COMPOSITES
        largest = of_values["largest"]([x if isinstance(x, float) else x._apply("stop_gradient", x) for x in xs])
        return finite_or_0(largest)

    def hot(self, xs: list[Number], place: Number, height: Number = 1.0) -> list[Number]:
        """Of a Value as the place: 1 there, whatever it will be."""
        if isinstance(place, int | float):
            return super().hot(xs, place, height)
        return [height * (1.0 - abs(place - float(j))).relu() for j in range(len(xs))]


ON_VALUES = Values()


class OpenPlace:
    """A place in a row that is left open while a function is traced: it knows what is recorded then."""

    __slots__ = ()

    def _composite(self, name: str, xs: list[Any]) -> Any:
        """The nodes of the composite of that name, or None if they have to be made the ordinary way."""
        raise NotImplementedError


# ---------------------------------------------------------------- on the reference engine


class _Inputs(list[reference.Value]):
    """The numbers of a list as nodes; a plain number becomes one constant, however many outputs it has a part in."""

    def __init__(self, name: str, xs: Iterable[Any]) -> None:
        given = list(xs)
        if not given:
            raise ValueError(f"{name}: expected at least one number, got an empty list")
        super().__init__(reference.lift(x, name) for x in given)
        self.has_value = any(isinstance(x, reference.Value) for x in given)


def _record(row: Composite, lists: list[_Inputs], *parameters: Any) -> Any:
    """One node on the reference engine; a float if there is no Value among the inputs."""
    children = [child for inputs in lists for child in inputs]
    xs = [child._data for child in children]
    out = row.on(xs, *parameters)
    if not any(inputs.has_value for inputs in lists):
        return out
    return reference.node(out, children, row.local_grads_on(xs, *parameters, out), row.name, row.name, parameters)


def _outputs(row: Composite, lists: list[_Inputs], *parameters: Any) -> Any:
    """One output, or a list of one per entry."""
    if len({len(inputs) for inputs in lists}) > 1:
        lengths = " and ".join(str(len(inputs)) for inputs in lists)
        raise ValueError(f"{row.called_by}: expected two lists of the same length, got {lengths}")
    if row.per_entry:
        return [_record(row, lists, i, *parameters) for i in range(len(lists[0]))]
    return _record(row, lists, *parameters)


def _bound(name: str, names: tuple[str, ...], required: int, given: Any, named: dict[str, Any]) -> list[Any]:
    """The arguments in the order of their names, as far as they are given."""
    if len(given) + len(named) > len(names):
        raise TypeError(f"{name}: expected at most {len(names)} arguments, got {len(given) + len(named)}")
    found = dict(zip(names, given, strict=False))
    for keyword in named:
        if keyword not in names or keyword in found:
            raise TypeError(f"{name}: expected each argument once, by a name it has, got {keyword!r}")
    found |= named
    for missing in names[:required]:
        if missing not in found:
            raise TypeError(f"{name}: expected the argument {missing!r}, got none")
    return [found[each] for each in names if each in found]


def _on_reference(row: Composite) -> Callable[..., Any]:
    names, lists, first = row.arguments, len(row.inputs), len(row.arguments) - len(row.parameters)

    def function(*given: Any, **named: Any) -> Any:
        found = _bound(row.called_by, names, len(names) - len(row.defaults), given, named)
        numbers = [number_from(each, row.called_by) for each in found[first:]]
        numbers += row.defaults[len(row.defaults) - len(row.parameters) + len(numbers) :]
        inputs = [_Inputs(row.called_by, each) for each in found[:lists]]
        targets = [_checked_index(row.called_by, each, len(inputs[0])) for each in found[lists:first]]
        return _outputs(row, inputs, *targets, *numbers)

    function.__name__ = function.__qualname__ = row.name
    function.__doc__ = row.doc
    function.__signature__ = row.signature  # type: ignore[attr-defined]
    return function


def _checked_index(name: str, given: int, count: int) -> int:
    position = whole_number(given)
    if not 0 <= position < count:
        raise IndexError(f"{name}: expected an index from 0 to {count - 1}, got {position}")
    return position


def _matvec(*given: Any, **named: Any) -> list[Any]:
    rows, x = _bound("matvec", ("rows", "x"), 2, given, named)
    column = _Inputs("dot", x)
    return [_outputs(COMPOSITES["dot"], [_Inputs("dot", row), column]) for row in rows]


def _take(*given: Any, **named: Any) -> Any:
    rows, index = _bound("take", COMPOSITES["take"].arguments, 2, given, named)
    listed = list(rows)
    if not listed:
        raise ValueError("take: expected at least one number, got an empty list")
    position = _checked_index("take", index, len(listed))
    row = listed[position]
    taken = [_record(COMPOSITES["take"], [_Inputs("take", [x])], position) for x in _as_row(row)]
    return taken if isinstance(row, list | tuple) else taken[0]


def _as_row(row: Any) -> Any:
    return row if isinstance(row, list | tuple) else [row]


_REFERENCE: dict[str, Callable[..., Any]] = {name: _on_reference(row) for name, row in COMPOSITES.items()}
_REFERENCE |= {"take": _take, "matvec": _matvec}

# ---------------------------------------------------------------- for people


def _of_two_or_many(name: str, pair: Callable[..., Any], many: Callable[..., Any]) -> Callable[..., Any]:
    def function(*xs: Any) -> Any:
        return pair(*xs) if len(xs) == 2 else many(*xs) if len(xs) == 1 else many(xs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The {many.__name__} of two or more numbers, or of one list; of equals, the first counts."
    return function


def _with_open_target(row: Composite, function: Callable[..., Any]) -> Callable[..., Any]:
    def composite(*given: Any, **named: Any) -> Any:
        if given and not named and type(given[-1]) is int:
            return function(*given)
        found = _bound(row.called_by, row.arguments, 2, given, named)
        made = None
        if isinstance(found[1], OpenPlace):
            found[0] = list(found[0])  # a generator gives its entries once
            made = found[1]._composite(row.name, found[0])
        return function(*found) if made is None else made

    update_wrapper(composite, function)
    composite.__name__ = composite.__qualname__ = row.name  # by which pickle finds it
    return composite


def for_engine(name: str) -> SimpleNamespace:
    """The functions of this module on the engine of that name."""
    module: Any = engine.load(name)
    functions = dict(module.COMPOSITES if name == "native" else _REFERENCE)
    for row in COMPOSITES.values():
        if row.called:
            pair, many = module.FUNCTIONS[row.called], functions.pop(row.name)
            functions[row.called] = _of_two_or_many(row.called, pair, many)
        elif row.target:
            functions[row.name] = _with_open_target(row, functions[row.name])
    return SimpleNamespace(**functions)


PUBLIC = vars(for_engine(engine.NAME))
globals().update(PUBLIC)

if TYPE_CHECKING:  # functions.pyi says more

    def __getattr__(name: str) -> Any: ...
