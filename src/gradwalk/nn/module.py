"""What every model has: parameters, names for them, a state that can be saved, and a repr that shows its parts."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator, Mapping
from functools import partial, wraps
from numbers import Real
from typing import Any, TypeVar

from gradwalk.engine import Value
from gradwalk.optim import ACTIVE as LOOPS
from gradwalk.scopes import scope
from gradwalk.structure import float64s, only_type

_Self = TypeVar("_Self", bound="Module")


class Module:
    """The base of everything that has parameters: the leaf Values in its attributes, and those of its parts.

    A part is a Module in an attribute, or in a list or dict in one. A rectangular list of Values is one tensor.

    >>> from gradwalk import Value
    >>> class Line(Module):
    ...     def __init__(self):
    ...         self.slope, self.offset = [Value(2.0), Value(0.5)], Value(1.0)
    >>> [value.label for value in Line().parameters()]
    ['slope.0', 'slope.1', 'offset']
    >>> Line()
    Line: 3 parameters
      slope: 2
      offset: 1
    """

    def __init_subclass__(cls) -> None:
        """What a module of the user's own computes belongs to a scope of its name; the library's open theirs by hand,
        where it pays."""
        super().__init_subclass__()
        if "__init__" in cls.__dict__:
            cls.__init__ = _labelling(cls.__dict__["__init__"])  # type: ignore[method-assign]
        call = cls.__dict__.get("__call__")
        if call is not None and not cls.__module__.startswith("gradwalk."):

            @wraps(call)
            def in_scope(self: Any, *args: Any, **kwargs: Any) -> Any:
                with scope(cls.__name__):
                    return call(self, *args, **kwargs)

            cls.__call__ = in_scope  # type: ignore[method-assign]

    def parameters(self) -> list[Value]:
        """Every parameter once, in the order in which the attributes were assigned, parts in their place."""
        found: list[Value] = []
        _gather_parameters(self, found, set(), self)
        return list(dict.fromkeys(found))

    def zero_grad(self) -> None:
        """Reset every parameter's gradient; without it, gradients of successive steps add up."""
        LOOPS.zero_grad(self.parameters())

    # ---------------------------------------------------------------- names

    def named_parameters(self) -> Iterator[tuple[str, Value]]:
        """Every parameter with its path, `layers.0.neurons.1.w.0`."""
        for name, tensor in self.tensors().items():
            yield from _named_values(name, tensor)

    def tensors(self) -> dict[str, Any]:
        """The parameters by path, as nested lists of Values or as single Values; what is shared appears once.

        >>> from gradwalk.nn import Linear
        >>> tensors = Linear(3, 2, bias=True).tensors()
        >>> list(tensors), len(tensors["weight"]), len(tensors["weight"][0])
        (['weight', 'bias'], 2, 3)
        """
        tensors: dict[str, Any] = {}
        known: set[Value] = set()
        for name, tensor in _tensors_in("", self, set()):
            values = set(flat(tensor))
            if not values <= known:
                tensors[name] = tensor
                known |= values
        return tensors

    def state_dict(self) -> dict[str, Any]:
        """The numbers of all parameters by path, as float64 arrays; without NumPy, as memoryviews of them."""
        return {
            name: float64s((value.data for value in flat(tensor)), _shape(tensor))
            for name, tensor in self.tensors().items()
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set all parameters from arrays or nested lists by path; nothing changes unless all of them fit."""
        tensors, found, wrong = self.tensors(), {}, []
        missing = [name for name in tensors if name not in state]
        unexpected = [str(name) for name in state if name not in tensors]
        for name in (name for name in tensors if name in state):
            given, shape = state[name], _shape(tensors[name])
            nested = given.tolist() if hasattr(given, "tolist") else given
            try:
                found[name], its_shape = _real_numbers(nested), _lengths(nested)
            except (OverflowError, TypeError):
                wrong.append(f"{name!r} holds no real numbers")
                continue
            if its_shape != shape:
                wrong.append(f"{name!r} has shape {its_shape} instead of {shape}")
        complaints = [f"{kind} {_some(names)}" for kind, names in
                      (("missing", missing), ("unexpected", unexpected)) if names] + wrong[:3]  # fmt: skip
        if complaints:
            raise ValueError(
                f"load_state_dict: expected a state of this {type(self).__name__}; {'; '.join(complaints)}"
            )
        for name, tensor in tensors.items():
            for value, number in zip(flat(tensor), found[name], strict=True):
                value.data = number

    def frozen(self: _Self) -> _Self:
        """A copy with plain floats for parameters: it computes without recording, and knows nothing of later steps.

        >>> from gradwalk.nn import Linear
        >>> frozen = Linear(2, 1, deviation=0.0).frozen()
        >>> frozen([1.0, 2.0])
        [0.0]
        """
        return _frozen(self, {})  # type: ignore[no-any-return]

    # ---------------------------------------------------------------- repr

    def __repr__(self) -> str:
        return "\n".join([f"{type(self).__name__}: {len(self.parameters()):,} parameters", *_lines(self, "  ", set())])


# ---------------------------------------------------------------- nested lists


def shape_of(nested: Any) -> tuple[int, ...] | None:
    """The shape of a leaf Value or of a rectangular list of them; None for anything else."""
    if isinstance(nested, Value):
        return None if nested._children else ()
    if not isinstance(nested, list | tuple) or not nested:
        return None
    if only_type(nested) is Value:
        return None if any(value._children for value in nested) else (len(nested),)
    first, *others = map(shape_of, nested)
    return None if first is None or any(other != first for other in others) else (len(nested), *first)


def _shape(tensor: Any) -> tuple[int, ...]:
    return shape_of(tensor) or ()


def flat(nested: Any) -> list[Any]:
    """What nested lists hold, from left to right."""
    if not isinstance(nested, list | tuple):
        return [nested]
    return list(nested) if only_type(nested) is Value else [one for item in nested for one in flat(item)]


def _real_numbers(nested: Any) -> list[float]:
    """What nested lists hold, as floats; TypeError if there is anything else in them."""
    if isinstance(nested, list | tuple):
        return [number for item in nested for number in _real_numbers(item)]
    if not isinstance(nested, Real) or isinstance(nested, bool):
        raise TypeError
    return [float(nested)]


def _lengths(nested: Any) -> tuple[int, ...]:
    """The shape of a rectangle of nested lists; TypeError for what is none."""
    if not isinstance(nested, list | tuple):
        return ()
    shapes = {_lengths(item) for item in nested}
    if len(shapes) > 1:
        raise TypeError
    return (len(nested), *(shapes.pop() if shapes else ()))


def _items(nested: Any) -> list[tuple[str, Any]]:
    """Attributes, entries or elements, with what they are called."""
    if isinstance(nested, Module):
        nested = vars(nested)
    return [(str(k), v) for k, v in (nested.items() if isinstance(nested, dict) else enumerate(nested))]


def _tensors_in(name: str, thing: Any, seen: set[int]) -> Iterator[tuple[str, Any]]:
    if shape_of(thing) is not None:
        yield name, thing
    elif isinstance(thing, Module | list | tuple | dict) and id(thing) not in seen:
        seen.add(id(thing))
        for key, item in _items(thing):
            yield from _tensors_in(f"{name}.{key}" if name else key, item, seen)


def _gather_parameters(root: Module, found: list[Value], seen: set[int], module: Module) -> None:
    if id(module) in seen:
        return
    seen.add(id(module))
    if module is not root and type(module).parameters is not Module.parameters:
        found.extend(module.parameters())
    else:
        LOOPS.gather_leaves(vars(module), found, Module, partial(_gather_parameters, root, found, seen))


class _Building(threading.local):
    """How many constructors of modules run inside each other here: the outermost one labels."""

    depth = 0


_BUILDING = _Building()


def _labelling(init: Any) -> Any:
    """A constructor after which each parameter is labelled with its path; a label of the user's own stays."""

    @wraps(init)
    def labelled(self: Any, *args: Any, **kwargs: Any) -> None:
        _BUILDING.depth += 1
        try:
            init(self, *args, **kwargs)
        finally:
            _BUILDING.depth -= 1
        if not _BUILDING.depth:
            for name, value in self.named_parameters():
                if name.endswith(value.label):  # none yet, or what it was called within a part
                    value.label = name

    return labelled


def _named_values(name: str, tensor: Any) -> Iterator[tuple[str, Value]]:
    if isinstance(tensor, Value):
        yield name, tensor
    else:
        for i, item in enumerate(tensor):
            yield from _named_values(f"{name}.{i}", item)


def _some(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:3]))
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"


def _frozen(thing: Any, known: dict[int, Any]) -> Any:
    if isinstance(thing, Value):
        return thing.data
    if id(thing) in known:
        return known[id(thing)]
    if isinstance(thing, Module):
        known[id(thing)] = twin = copy.copy(thing)
        for name, item in vars(thing).items():
            setattr(twin, name, _frozen(item, known))
        return twin
    if isinstance(thing, list):
        return [_frozen(item, known) for item in thing]
    if isinstance(thing, tuple):
        return tuple(_frozen(item, known) for item in thing)
    return {key: _frozen(item, known) for key, item in thing.items()} if isinstance(thing, dict) else thing


def _lines(thing: Any, indent: str, seen: set[int], name: str = "") -> Iterator[str]:
    """The tree below a module, a line for each tensor and each part."""
    seen.add(id(thing))
    for key, item in _items(thing):
        path = f"{name}.{key}" if name else key
        shape = shape_of(item)
        if shape is not None:
            yield f"{indent}{path}: {' × '.join(map(str, shape)) or '1'}"
        elif isinstance(item, Module):
            own = type(item).__repr__ is not Module.__repr__
            yield f"{indent}{path}: {item if own else type(item).__name__}"
            if not own and id(item) not in seen:
                yield from _lines(item, indent + "  ", seen)
        elif isinstance(item, list | tuple | dict) and id(item) not in seen:
            yield from _lines(item, indent, seen, path)
