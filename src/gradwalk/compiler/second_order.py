"""Second derivatives: the function whose gradient is a Hessian-vector product, to be compiled like any other.

It records the gradient as a graph of its own (`higher_order.py`) and multiplies it by the vector; one reverse pass over
that program gives the product exactly, for the price of a few gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradwalk import control, engine
from gradwalk.compiler.arguments import flatten
from gradwalk.compiler.trace import described
from gradwalk.higher_order import gradient_values
from gradwalk.structure import is_value

_CHOOSING = frozenset({"largest", "smallest"})  # their rows look at numbers, and no guard would know


def directional(function: Callable[..., Any]) -> Callable[..., Any]:
    """The derivative of the function along a vector, as a function of the arguments and of the vector."""

    def along(args: tuple[Any, ...], vector: tuple[Any, ...]) -> Any:
        out = function(*args)
        if not is_value(out):
            raise TypeError(f"compile: hessian_vector expected {described(function)} to return one Value")
        chosen = next((node._name for node in engine.topological_order(out) if node._name in _CHOOSING), None)
        if chosen:
            raise TypeError(
                f"compile: hessian_vector cannot keep a {chosen} of many open, which {described(function)} uses; "
                "compare two at a time"
            )
        with control.modes(on_read=_allowed):  # the rows' shifts cancel out, whatever their numbers
            gradients = gradient_values(out)
        xs: list[Any] = []
        vs: list[Any] = []
        flatten(args, xs)
        flatten(vector, vs)
        if len(xs) != len(vs):
            raise ValueError(f"compile: hessian_vector expected a vector of {len(xs)} numbers, got {len(vs)}")
        return sum((gradients[x] * v for x, v in zip(xs, vs, strict=True) if x in gradients), engine.Value(0.0))

    along.__name__ = getattr(function, "__name__", "function")
    return along


def _allowed(_: Any) -> None:
    pass
