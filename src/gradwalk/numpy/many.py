"""The composites on whichever engine the Values among their numbers are of; sums begin with 0, as NumPy's do."""

from __future__ import annotations

from collections.abc import Callable
from math import copysign
from typing import Any

from gradwalk import composites, engine
from gradwalk.control import is_traced
from gradwalk.structure import is_value

_ON = {engine.load(name).Value: composites.for_engine(name) for name in {engine.NAME, "reference"}}


def _on_theirs(name: str) -> Callable[..., Any]:
    def apply(*given: Any) -> Any:
        for each in given:
            numbers = each if isinstance(each, list | tuple) else (each,)
            value = next(filter(is_value, numbers), None)
            if value is not None and type(value) in _ON:
                return getattr(_ON[type(value)], name)(*given)
        return getattr(composites, name)(*given)

    return apply


def begun_with_0(total: Any) -> Any:
    """0.0 + total, which differs where the total is -0.0: only there, or where nobody knows yet, it is a node."""
    if not is_value(total):
        return 0.0 + total
    return total if not is_traced() and (total.data or copysign(1.0, total.data) > 0.0) else 0.0 + total


def dot(xs: list[Any], ys: list[Any]) -> Any:
    """The sum of products."""
    return begun_with_0(from_first_dot(xs, ys))


def sum(xs: list[Any]) -> Any:
    """The sum; of nothing it is 0."""
    return begun_with_0(from_first_sum(xs)) if xs else 0.0


from_first_dot, from_first_sum = _on_theirs("dot"), _on_theirs("sum")
logsumexp, softmax, log_softmax = (_on_theirs(name) for name in ("logsumexp", "softmax", "log_softmax"))
norm, maximum, minimum = (_on_theirs(name) for name in ("norm", "maximum", "minimum"))
