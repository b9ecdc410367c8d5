"""The rows of both tables on NumPy arrays: each is written down as symbols once, then evaluated.

What an operation computes is said in `ops.py` and `row_ops.py` alone; here is only what `+`, `where`, `erf` or `total`
mean for arrays.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gradwalk.formula import DEFINITIONS, Number, Symbol, variable
from gradwalk.ops import OPS
from gradwalk.row_ops import COMPOSITES

Array = npt.NDArray[np.float64]


def _one_by_one(function: Callable[[float], float]) -> Callable[[Any], Any]:
    return lambda x: np.array([function(entry) for entry in np.ravel(x).tolist()]).reshape(np.shape(x))


_HEADS: dict[str, Callable[..., Any]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "div": np.divide, "neg": np.negative,
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
    "and": np.logical_and, "or": np.logical_or, "where": np.where,
    "abs": np.abs, "pow": np.power, "fmod": np.fmod, "copysign": np.copysign, "floor": np.floor, "ceil": np.ceil,
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "log2": np.log2, "log10": np.log10,
    "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "atan2": np.arctan2, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "erf": _one_by_one(math.erf), "erfc": _one_by_one(math.erfc),
}  # fmt: skip


def _shift(xs: Any) -> Any:
    largest = xs.max(axis=-1, keepdims=True)
    return np.where(np.isfinite(largest), largest, 0.0)


def _at(xs: Any, place: Any) -> Any:
    """`xs` has an axis for rows, one for outputs and one for entries; `place` has one entry."""
    shape = np.broadcast_shapes(np.shape(xs)[:-1], np.shape(place)[:-1])
    places = np.broadcast_to(np.asarray(place, np.intp), (*shape, 1))
    return np.take_along_axis(np.broadcast_to(xs, (*shape, np.shape(xs)[-1])), places, axis=-1)


# the language of rows: the entries of a row are the last axis
_HEADS |= {
    "total": lambda xs: xs.sum(axis=-1, keepdims=True),
    "count": lambda xs: float(np.shape(xs)[-1]),
    "shift": _shift,
    "first_largest": lambda xs: np.argmax(xs, axis=-1, keepdims=True),
    "first_smallest": lambda xs: np.argmin(xs, axis=-1, keepdims=True),
    "at": _at,
    "hot": lambda xs, place, height: np.where(np.arange(np.shape(xs)[-1]) == place, height, 0.0),
}


def evaluated(formula: Number, arrays: dict[str, Any], known: dict[int, Any] | None = None) -> Any:
    """The formula's value where its variables stand for these arrays (or numbers); `known`: of parts, by their ids."""
    known = {} if known is None else known

    def value(part: Number) -> Any:
        if not isinstance(part, Symbol):
            return part
        if id(part) not in known:
            if not part.arguments:
                known[id(part)] = arrays[part.head]
            else:
                known[id(part)] = _applied(part.head, [value(argument) for argument in part.arguments])
        return known[id(part)]

    return value(formula)


def _applied(head: str, arguments: Sequence[Any]) -> Any:
    if head in _HEADS:
        return _HEADS[head](*arguments)
    body, names = _definition(head, len(arguments))
    return evaluated(body, dict(zip(names, arguments, strict=True)))


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


def edge_distance(name: str, inputs: Sequence[Any], parameters: Sequence[float]) -> Array:
    """How far each entry is from where the operation jumps or has a kink."""
    arrays = dict(zip(OPS[name].names, (*inputs, *parameters), strict=True))
    return np.asarray(evaluated(_edge(name), arrays), np.float64)


def forward(name: str, inputs: Sequence[Any], parameters: Sequence[float]) -> Array:
    """The operation, entry by entry."""
    arrays = dict(zip(OPS[name].names, (*inputs, *parameters), strict=True))
    return np.asarray(evaluated(_row(name)[0], arrays), np.float64)


def local_grads(name: str, inputs: Sequence[Any], parameters: Sequence[float], out: Array) -> list[Array]:
    """The operation's local gradients, entry by entry."""
    arrays = dict(zip(OPS[name].names, (*inputs, *parameters), strict=True)) | {"out": out}
    return [np.asarray(evaluated(part, arrays), np.float64) for part in _row(name)[1]]


# ---------------------------------------------------------------- over rows


class OverRows:
    """A composite over the rows of an array: `out` has a column for each output, `local_grads` a matrix per row.

    `target` has the place that each row's caller meant; a composite with an output per entry has all of them.
    """

    def __init__(self, name: str, xs: Array, target: Any, parameters: Sequence[float]) -> None:
        self.row = row = COMPOSITES[name]
        length = xs.shape[1] // len(row.inputs)
        places: Any = np.arange(length)[:, None] if target is None else target.reshape(-1, 1, 1)
        self._arrays: dict[str, Any] = dict(zip(row.parameters, parameters, strict=False)) | {"i": places}
        for i, each in enumerate(row.inputs):
            self._arrays[each] = xs[:, None, i * length : (i + 1) * length]
        self._shape = len(xs), length if row.per_entry else 1, length
        self._known: dict[int, Any] = {}
        self.out = np.array(np.broadcast_to(self._evaluated(row.output), (*self._shape[:2], 1))[:, :, 0], np.float64)

    def _evaluated(self, formula: Number) -> Any:
        return evaluated(formula, self._arrays, self._known)

    def local_grads(self) -> Array:
        """Of each row's outputs by each row's entries."""
        self._arrays["out"] = self.out[:, :, None]
        slopes = [np.broadcast_to(self._evaluated(slope), self._shape) for slope in self.row.slopes]
        return np.concatenate(slopes, axis=2)
