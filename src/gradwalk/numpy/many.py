"""The composites on whichever engine the Values among their numbers are of; sums begin with 0, as NumPy's do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradwalk import composites, engine
from gradwalk.math import begun_with_0
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


def dot(xs: list[Any], ys: list[Any]) -> Any:
    """The sum of products."""
    return begun_with_0(from_first_dot(xs, ys))


def sum(xs: list[Any]) -> Any:
    """The sum; of nothing it is 0."""
    return begun_with_0(from_first_sum(xs)) if xs else 0.0


from_first_dot, from_first_sum = _on_theirs("dot"), _on_theirs("sum")
logsumexp, softmax, log_softmax = (_on_theirs(name) for name in ("logsumexp", "softmax", "log_softmax"))
norm, maximum, minimum = (_on_theirs(name) for name in ("norm", "maximum", "minimum"))
