"""Activations by name: every operation of the table that takes one number, and the square of the relu."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from gradwalk.engine import FUNCTIONS
from gradwalk.ops import OPERATORS, OPS

_relu = FUNCTIONS["relu"]


def _relu_squared(x: Any) -> Any:
    rectified = _relu(x)
    return rectified * rectified


ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "relu_squared": _relu_squared,
    **{
        op.name: FUNCTIONS[op.name]
        for op in OPS.values()
        if len(op.inputs) == 1 and len(op.parameters) == len(op.defaults) and op.name not in OPERATORS
    },
}


def checked_activation(name: str) -> str:
    """The name itself, if it is one of an activation.

    >>> checked_activation("tanh")
    'tanh'
    """
    if name not in ACTIVATIONS:
        raise ValueError(f"activation: expected one of {', '.join(sorted(ACTIVATIONS))}, got {name!r}")
    return name


def activated(name: str, xs: Iterable[Any]) -> list[Any]:
    """The activation of that name on each of the numbers.

    >>> activated("relu_squared", [-1.0, 3.0])
    [0.0, 9.0]
    """
    if name == "relu_squared":  # what ACTIVATIONS would do, less a call of a Python function for each number
        return [rectified * rectified for rectified in map(_relu, xs)]
    return list(map(ACTIVATIONS[name], xs))
