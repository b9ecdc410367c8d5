"""The rows of both tables on arrays, NumPy's or another's: each is written down as symbols once, then evaluated.

What an operation computes is said in `ops.py` and `row_ops.py` alone; here is only what `+`, `where`, `erf` or `total`
mean for arrays.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gradwalk.formula import DEFINITIONS, FUNCTIONS, Number, Symbol, variable
from gradwalk.ops import OPS
from gradwalk.row_ops import COMPOSITES, Composite

Array = npt.NDArray[np.float64]

_SAME_NAME = ("abs", "fmod", "copysign", "floor", "ceil", "exp", "expm1", "log", "log1p", "log2", "log10", "sqrt",
              "sin", "cos", "tan", "sinh", "cosh", "tanh", "where")  # fmt: skip
_OTHER_NAMES = {
    "+": "add", "-": "subtract", "*": "multiply", "div": "divide", "neg": "negative", "pow": "power",
    "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal", "and": "logical_and", "or": "logical_or",
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "asinh": "arcsinh", "acosh": "arccosh",
    "atanh": "arctanh",
}  # fmt: skip


class Arrays:
    """What the heads of formulas mean for the arrays of `xp`, a module with NumPy's functions."""

    def __init__(self, xp: Any) -> None:
        self.xp = xp
        names = _OTHER_NAMES | dict(zip(_SAME_NAME, _SAME_NAME, strict=True))
        self.heads: dict[str, Callable[..., Any]] = {head: getattr(xp, name) for head, name in names.items()}
        # the language of rows: the entries of a row are the last axis
        self.heads |= {
            "total": lambda xs: xs.sum(axis=-1, keepdims=True),
            "count": lambda xs: float(np.shape(xs)[-1]),
            "shift": self.shift,
            "first_largest": lambda xs: xp.argmax(xs, axis=-1, keepdims=True),
            "first_smallest": lambda xs: xp.argmin(xs, axis=-1, keepdims=True),
            "at": self.at,
            "hot": lambda xs, place, height: xp.where(np.arange(np.shape(xs)[-1]) == place, height, 0.0),
        }

    def shift(self, xs: Any) -> Any:
        largest = xs.max(axis=-1, keepdims=True)
        return self.xp.where(self.xp.isfinite(largest), largest, 0.0)

    def at(self, xs: Any, place: Any) -> Any:
        """`xs` has an axis for rows, one for outputs and one for entries; `place` has one entry."""
        shape = np.broadcast_shapes(np.shape(xs)[:-1], np.shape(place)[:-1])
        places = self.xp.broadcast_to(self.xp.asarray(place).astype(np.int32), (*shape, 1))
        return self.xp.take_along_axis(self.xp.broadcast_to(xs, (*shape, np.shape(xs)[-1])), places, axis=-1)

    def evaluated(self, formula: Number, arrays: dict[str, Any], known: dict[int, Any] | None = None) -> Any:
        """The formula where its variables stand for these arrays (or numbers); `known`: of parts, by their ids."""
        known = {} if known is None else known

        def value(part: Number) -> Any:
            if not isinstance(part, Symbol):
                return part
            if id(part) not in known:
                if not part.arguments:
                    known[id(part)] = arrays[part.head]
                else:
                    known[id(part)] = self._applied(part.head, [value(argument) for argument in part.arguments])
            return known[id(part)]

        return value(formula)

    def _applied(self, head: str, arguments: Sequence[Any]) -> Any:
        if all(isinstance(argument, float | bool) for argument in arguments):
            return FUNCTIONS[head](*arguments)
        if head in self.heads:
            return self.heads[head](*arguments)
        body, names = _definition(head, len(arguments))
        return self.evaluated(body, dict(zip(names, arguments, strict=True)))

    # ---------------------------------------------------------------- entry by entry

    def forward(self, name: str, inputs: Sequence[Any], parameters: Sequence[float]) -> Any:
        """The operation, entry by entry."""
        return self._floats(self.evaluated(_row(name)[0], _named(name, inputs, parameters)))

    def local_grads(self, name: str, inputs: Sequence[Any], parameters: Sequence[float], out: Any) -> list[Any]:
        """The operation's local gradients, entry by entry."""
        arrays = _named(name, inputs, parameters) | {"out": out}
        return [self._floats(self.evaluated(part, arrays)) for part in _row(name)[1]]

    def edge_distance(self, name: str, inputs: Sequence[Any], parameters: Sequence[float]) -> Any:
        """How far each entry is from where the operation jumps or has a kink."""
        return self._floats(self.evaluated(_edge(name), _named(name, inputs, parameters)))

    def _floats(self, numbers: Any) -> Any:
        return np.asarray(numbers, np.float64)

    # ---------------------------------------------------------------- over rows

    def over_rows(self, name: str, xs: Any, target: Any, parameters: Sequence[float]) -> Any:
        """A composite over the rows of an array: a column for each output."""
        return OverRows(self, COMPOSITES[name], xs, target, parameters).out


class OverRows:
    """A composite over the rows of an array: `out` has a column for each output, `local_grads` a matrix per row.

    `target` has the place that each row's caller meant; a composite with an output per entry has all of them.
    """

    def __init__(self, on: Arrays, row: Composite, xs: Any, target: Any, parameters: Sequence[float]) -> None:
        self._on, self.row = on, row
        length = xs.shape[1] // len(row.inputs)
        places: Any = np.arange(length)[:, None] if target is None else target.reshape(-1, 1, 1)
        self._arrays = arrays_of(row, xs, places, parameters)
        self._shape = len(xs), length if row.per_entry else 1, length
        self._known: dict[int, Any] = {}
        self.out = on.xp.broadcast_to(self._evaluated(row.output), (*self._shape[:2], 1))[:, :, 0]

    def _evaluated(self, formula: Number) -> Any:
        return self._on.evaluated(formula, self._arrays, self._known)

    def local_grads(self) -> Any:
        """Of each row's outputs by each row's entries."""
        self._arrays["out"] = self.out[:, :, None]
        xp = self._on.xp
        slopes = [xp.broadcast_to(self._evaluated(slope), self._shape) for slope in self.row.slopes]
        return xp.concatenate(slopes, axis=2)


def arrays_of(row: Composite, xs: Any, places: Any, parameters: Sequence[float]) -> dict[str, Any]:
    """What the variables of a composite stand for, with an axis for rows, one for outputs and one for entries."""
    length = xs.shape[1] // len(row.inputs)
    rows = {each: xs[:, None, i * length : (i + 1) * length] for i, each in enumerate(row.inputs)}
    return dict(zip(row.parameters, parameters, strict=False)) | {"i": places} | rows


def _named(name: str, inputs: Sequence[Any], parameters: Sequence[float]) -> dict[str, Any]:
    return dict(zip(OPS[name].names, (*inputs, *parameters), strict=True))


@functools.cache
def _definition(name: str, count: int) -> tuple[Number, list[str]]:
    names = [f"x{i}" for i in range(count)]
    return DEFINITIONS[name](*map(variable, names)), names


@functools.cache
def _row(name: str) -> tuple[Number, tuple[Number, ...]]:
    op = OPS[name]
    variables = [variable(each) for each in op.names]
    return op.forward(*variables), op.local_grads(*variables, variable("out"))


@functools.cache
def _edge(name: str) -> Number:
    op = OPS[name]
    return op.edge(*map(variable, op.names))


NUMPY = Arrays(np)
