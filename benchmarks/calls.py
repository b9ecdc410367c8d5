"""One call at a time on a CPU, by a program's own executor and in jitted jax: `python benchmarks/calls.py`.

Value and gradient of the six models of gpu.py. Both take turns, and the best round of each counts. jax is handed arrays
that lie where it wants them, gradwalk the arguments as they are.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import gpu
import jax
import jax.numpy as jnp
from results import Table, duration, figure, parsed_arguments, record, show

import gradwalk

ROUNDS = 30


def ways(model: Any) -> dict[str, Callable[[], Any]]:
    """The two ways to compute a model's value and gradient, after each was compiled and both agreed."""
    function, arguments, leaves = model
    compiled = gradwalk.compile(function)
    exported = compiled.to_jax(*arguments)
    jitted = jax.jit(jax.value_and_grad(exported, 0 if leaves else 1, has_aux=True))
    given = jnp.asarray(exported.numbers()), jnp.asarray(exported.arguments(*arguments))

    def native() -> float:
        return float(compiled.backward(*arguments) if leaves else compiled.value_and_grad(*arguments)[0])

    def through_jax() -> float:
        (value, _), gradient = jitted(*given)
        gradient.block_until_ready()
        return float(value)

    apart = abs(native() - through_jax())
    assert apart < 1e-9, f"the two differ by {apart}"
    return {"native": native, "jax": through_jax}


def compared(name: str) -> list[str]:
    best = dict.fromkeys(("native", "jax"), float("inf"))
    both = ways(gpu.SIX[name]())
    for _ in range(ROUNDS):
        for way, call in both.items():
            for _ in range(20):
                began = time.perf_counter()
                call()
                best[way] = min(best[way], time.perf_counter() - began)
    return [name, duration(best["native"]), duration(best["jax"]), figure(best["jax"] / best["native"])]


def main() -> None:
    arguments = parsed_arguments(argparse.ArgumentParser(description=__doc__.splitlines()[0]))
    table: Table = [["a call", "native", "in jax", "jax / native"], *map(compared, gpu.SIX)]
    show(table)
    if arguments.record:
        record("calls", {"calls": table}, f"jax {jax.__version__}")


if __name__ == "__main__":
    main()
