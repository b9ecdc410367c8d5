"""The rows of the table on NumPy arrays: each row is written down as symbols once, then evaluated.

What an operation computes is said in `ops.py` alone; here is only what `+`, `where` or `erf` mean for arrays.
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


def evaluated(formula: Number, arrays: dict[str, Any]) -> Any:
    """The formula's value where its variables stand for these arrays (or numbers)."""
    known: dict[int, Any] = {}

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


def forward(name: str, inputs: Sequence[Any], parameters: Sequence[float]) -> Array:
    """The operation, entry by entry."""
    arrays = dict(zip(OPS[name].names, (*inputs, *parameters), strict=True))
    return np.asarray(evaluated(_row(name)[0], arrays), np.float64)


def local_grads(name: str, inputs: Sequence[Any], parameters: Sequence[float], out: Array) -> list[Array]:
    """The operation's local gradients, entry by entry."""
    arrays = dict(zip(OPS[name].names, (*inputs, *parameters), strict=True)) | {"out": out}
    return [np.asarray(evaluated(part, arrays), np.float64) for part in _row(name)[1]]
