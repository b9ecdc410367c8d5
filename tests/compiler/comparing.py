"""The plain function's numbers and the compiled function's, side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gradwalk
from gradwalk.compiler import interpret
from gradwalk.compiler.arguments import replaced
from gradwalk.compiler.flat import Flat
from gradwalk.compiler.program import Program


def with_gradients(function: Callable[..., Any], args: tuple[Any, ...], leaves: Sequence[Any] = ()) -> list[float]:
    """The function's value, and the gradient by every number of the arguments and every leaf."""
    given: list[Any] = []

    def leaf(number: float) -> Any:
        given.append(gradwalk.Value(number))
        return given[-1]

    for value in leaves:
        value.grad = 0.0
    out = function(*replaced(args, leaf, lambda integer: integer))
    out.backward()
    return [out.data, *(value.grad for value in (*given, *leaves))]


def close(expected: Sequence[float], actual: Sequence[float], relative: float = 1e-12) -> bool:
    """Equal up to rounding; what is tiny beside the largest number counts as rounding too."""
    assert len(expected) == len(actual)
    scale = max((abs(x) for x in expected if math.isfinite(x)), default=0.0) * 1e-3
    return all(
        x == y or (x != x and y != y) or abs(x - y) <= relative * max(abs(x), abs(y), scale)
        for x, y in zip(expected, actual, strict=True)
    )


def program_numbers(program: Program, inputs: Sequence[float]) -> list[float]:
    """The program's results and gradients by the interpreter."""
    slots = interpret.run(program, np.array(inputs))
    gradients = interpret.gradients(program, slots, np.ones(len(program.outputs)))
    return [*slots[program.outputs].tolist(), *gradients.tolist()]


def ops_of(flat: Flat) -> list[str]:
    from gradwalk.compiler.flat import NAMES

    return [NAMES[code] for code in flat.op.tolist() if NAMES[code] not in ("input", "constant")]
