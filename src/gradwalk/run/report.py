"""`gradwalk run --report`: at the end, on stderr, what was replaced, where the time went, what to change."""

from __future__ import annotations

import atexit
import sys
import time
from contextlib import suppress
from types import FunctionType
from typing import Any

_lines: list[str] = []  # what was said about classes
_began = 0.0
_backward_seconds = 0.0
_backward_passes = 0
_nodes_compared = 0  # made to find out what a class does


def begin() -> None:
    global _began
    _began = time.perf_counter()
    atexit.register(show)


def note(line: str) -> None:
    _lines.append(line)


def wanted() -> bool:
    return _began > 0.0


def leave_out(count: int) -> None:
    global _nodes_compared
    _nodes_compared += count


def timed(cls: Any) -> None:
    """Have a stand-in's backward() counted and timed."""
    backward = cls.backward

    def timed_backward(self: Any, *arguments: Any, **named: Any) -> Any:
        global _backward_seconds, _backward_passes
        start = time.perf_counter()
        try:
            return backward(self, *arguments, **named)
        finally:
            _backward_seconds += time.perf_counter() - start
            _backward_passes += 1

    cls.backward = timed_backward


def seconds_a_node(cls: Any) -> float:
    """What an operation takes here, measured: between two clock readings at each node it would take much longer."""
    x, count = cls(0.5), 20000
    start = time.perf_counter()
    for _ in range(count):
        x * x
    return (time.perf_counter() - start) / count


def show() -> None:
    total = time.perf_counter() - _began
    from gradwalk import engine

    out = [*_lines] or ["no class was offered: none has __init__, backward and __add__ or __mul__"]
    if engine.NAME == "native":
        from gradwalk import _native
        from gradwalk.run.stand_in import REPLACED

        nodes = _native.stand_in_nodes() - _nodes_compared
        if REPLACED:
            forward = nodes * seconds_a_node(REPLACED[0])
            rest = max(0.0, total - forward - _backward_seconds)
            out += [
                f"{nodes:,} nodes, {_backward_passes:,} backward passes, {total:.3g} s:",
                f"  forward   about {forward:.3g} s",
                f"  backward        {_backward_seconds:.3g} s",
                f"  the script's own Python  {rest:.3g} s",
            ]
            out += advice(REPLACED, forward, rest)
    if sys.stderr:
        with suppress(OSError):
            print("\n".join(f"gradwalk: {line}" for line in out), file=sys.stderr)


def advice(replaced: list[Any], forward: float, rest: float) -> list[str]:
    names = ("exp", "log", "relu", "sigmoid", "tanh")
    slow = [name for name in names if any(isinstance(vars(cls).get(name), FunctionType) for cls in replaced)]
    found = [f"{name}() is the script's own, in Python: written as the math module computes it, it would run native"
             for name in slow]  # fmt: skip
    if rest > 2 * forward:
        found.append("most of the time is the script's own loops: gradwalk.compile(loss) replays a step without them")
    return [f"for more speed: {line}" for line in found]
