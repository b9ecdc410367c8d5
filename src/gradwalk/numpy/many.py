"""The composites on whichever engine the Values among their numbers are of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradwalk import composites, engine
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


dot, sum, mean, norm = (_on_theirs(name) for name in ("dot", "sum", "mean", "norm"))
logsumexp, softmax, log_softmax = (_on_theirs(name) for name in ("logsumexp", "softmax", "log_softmax"))
maximum, minimum = _on_theirs("maximum"), _on_theirs("minimum")
