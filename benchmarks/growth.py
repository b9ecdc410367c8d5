"""How compiled functions grow with their graphs, and how they do where a graph has no structure at all.

`python benchmarks/growth.py [--quick] [--only FAMILY]`. Every size is compiled in a process of its own, which also
tells how much memory that took. The random graphs are compared with flat_replay.c, built here by the C compiler.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import itertools
import json
import math
import os
import platform
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from engine import BenchmarkError, best_interleaved, check_equal
from results import HERE, Row, Table, duration, parsed_arguments, record, show, table_of

import gradwalk
from gradwalk.compiler.constants import with_shared_constants
from gradwalk.compiler.dead_code import without_dead_code
from gradwalk.compiler.flat import CONSTANT, NAMES, Flat
from gradwalk.compiler.reading import Call
from gradwalk.compiler.trace import Trace

AGREEMENT = 1e-12
SIZES = (50_000, 500_000, 5_000_000)  # scalar nodes, about
Graph = tuple[Callable[[Any], Any], np.ndarray]  # a function of one array, and the array

# ---------------------------------------------------------------- families that grow


def rosenbrock(nodes: int) -> Graph:
    """11 nodes a variable: wide, and no deeper than a sum."""

    def banana(xs: Any) -> Any:
        return sum(100.0 * (b - a**2) ** 2 + (1.0 - a) ** 2 for a, b in itertools.pairwise(xs))

    return banana, np.random.default_rng(1).uniform(-1, 1, nodes // 11)


def perceptron(nodes: int) -> Graph:
    """An MLP 2-16-16-1 over many samples, 712 nodes each: matrix products."""
    rng = random.Random(2)
    layers = [
        ([[gradwalk.Value(rng.gauss(0, 0.4)) for _ in range(n)] for _ in range(m)], [gradwalk.Value(0.1)] * m)
        for n, m in itertools.pairwise((2, 16, 16, 1))
    ]

    def loss(samples: Any) -> Any:
        total = 0.0
        for *x, target in samples:
            for weights, biases in layers[:-1]:
                x = [(sum(map(_product, row, x)) + bias).tanh() for row, bias in zip(weights, biases, strict=True)]
            total = total + (sum(map(_product, layers[-1][0][0], x)) - target) ** 2
        return total / len(samples)

    return loss, np.random.default_rng(2).uniform(-1, 1, (nodes // 712, 3))


def _product(weight: Any, x: Any) -> Any:
    return weight * x


def spring_chain(nodes: int) -> Graph:
    """Thirty masses on springs over many steps, about 300 nodes each: deep."""
    stiffness = gradwalk.Value(2.0)

    def energy(positions: Any) -> Any:
        xs, vs = list(positions), [0.0] * len(positions)
        for _ in range(max(1, nodes // 300)):
            stretched = [xs[0], *(b - a for a, b in itertools.pairwise(xs)), 0.0]
            forces = [stiffness * b - stiffness * a for a, b in itertools.pairwise(stretched)]
            vs = [v + 0.01 * f for v, f in zip(vs, forces, strict=True)]
            xs = [x + 0.01 * v for x, v in zip(xs, vs, strict=True)]
        return sum(x * x for x in xs) + 0.5 * sum(v * v for v in vs)

    return energy, np.random.default_rng(3).uniform(-0.2, 0.2, 30)


def pendulum(nodes: int) -> Graph:
    """One pendulum over many steps, 9 nodes each: nothing can be done at once."""

    def energy(given: Any) -> Any:
        angle, speed, length = given
        for _ in range(nodes // 9):
            speed = speed - 0.01 * 9.81 / length * angle.sin()
            angle = angle + 0.01 * speed
        return angle * angle + speed * speed

    return energy, np.array([0.3, 0.1, 1.0])


def tangle(nodes: int, window: int | None = None, functions: bool = True, seed: int = 4) -> Graph:
    """Random operations on two of the last `window` results (all there are if None): no structure to find."""
    rng = random.Random(seed)
    kinds = ("mean", "mul", "sub", "tanh", "sin", "sigmoid") if functions else ("mean", "mul", "sub")
    plan = [(rng.choice(kinds), rng.random(), rng.random()) for _ in range(int(nodes / 1.4))]

    def tangled(xs: Any) -> Any:
        pool, used = list(xs), set()
        for kind, a, b in plan:
            reach = min(window or len(pool), len(pool))
            i, j = (len(pool) - reach + int(at * reach) for at in (a, b))
            left, right = pool[i], pool[j]
            if kind == "mean":
                made = (left + right) * 0.5
            elif kind == "mul":
                made = left * right
            elif kind == "sub":
                made = (left - right) * 0.5
            else:
                made, j = getattr(left, kind)(), i
            used |= {i, j}
            pool.append(made)
        return sum(made for i, made in enumerate(pool) if i not in used)

    return tangled, np.random.default_rng(seed).uniform(-1, 1, 100)


FAMILIES: dict[str, Callable[[int], Graph]] = {
    "rosenbrock": rosenbrock,
    "perceptron": perceptron,
    "spring_chain": spring_chain,
    "pendulum": pendulum,
    "random": tangle,
}
HEADINGS = [
    "family",
    "scalar nodes",
    "instructions",
    "trace + compile",
    "a node",
    "value + gradient",
    "a node",
    "memory",
]


def peak_bytes() -> float:
    """The most memory this process has held so far; nan where the system does not tell."""
    try:
        import resource
    except ImportError:
        return math.nan
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def measure(family: str, size: int) -> dict[str, float]:
    """Compiles and runs one size, here and now. Memory is touched for the first time, as it is by the largest."""
    small, given = FAMILIES[family](1_000)
    gradwalk.compile(small).value_and_grad(given)  # so that whatever is imported late is there
    function, given = FAMILIES[family](size)
    before = peak_bytes()
    compiled = gradwalk.compile(function)
    gc.collect()
    began = time.perf_counter()
    compiled.value_and_grad(given)
    compiling, running = time.perf_counter() - began, math.inf
    peak = peak_bytes()
    for _ in range(max(5, min(200, 20_000_000 // size))):
        began = time.perf_counter()
        compiled.value_and_grad(given)
        running = min(running, time.perf_counter() - began)
    program = compiled.program
    return {
        "nodes": program.scalar_nodes, "instructions": len(program.instructions), "compiling": compiling,
        "running": running, "memory": (peak - before) / program.scalar_nodes,
    }  # fmt: skip


def measured_apart(family: str, size: int) -> dict[str, float]:
    """The best of several processes, each with nothing but this to do."""
    made: list[dict[str, float]] = []
    for _ in range(5 if size < 1_000_000 else 2):
        command = [sys.executable, __file__, "--measure", family, str(size)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise BenchmarkError(f"{family}, {size:,} nodes: {(done.stderr.strip() or 'killed').splitlines()[-1]}")
        made.append(json.loads(done.stdout))
    return {fact: min(each[fact] for each in made) for fact in made[0]}


def check_family(family: str) -> None:
    """On a small graph, the compiled function gives what the plain one gives."""
    function, given = FAMILIES[family](5_000)
    value, gradient = gradwalk.compile(function).value_and_grad(given)
    leaves = np.array([gradwalk.Value(number) for number in given.ravel()], object).reshape(given.shape)
    out = function(leaves.tolist())
    out.backward()
    plain = [out.data, *(leaf.grad for leaf in leaves.ravel())]
    check_equal(family, [value, *gradient.ravel().tolist()], plain, AGREEMENT)


def growth_of(family: str, sizes: tuple[int, ...], table: Table) -> Iterator[Row]:
    """Adds the sizes to the table; the rows say what a node costs in the largest graph beside the smallest."""
    check_family(family)
    made = []
    for size in sizes:
        print(f"measuring {family}, {size:,} nodes …", file=sys.stderr)
        made.append(measured_apart(family, size))
        nodes, compiling, running = made[-1]["nodes"], made[-1]["compiling"], made[-1]["running"]
        table.append([
            family, f"{nodes:,}", f"{made[-1]['instructions']:,}", duration(compiling), duration(compiling / nodes),
            duration(running), duration(running / nodes), f"{made[-1]['memory']:.0f} bytes a node",
        ])  # fmt: skip
    first, last = made[0], made[-1]
    larger = last["nodes"] / first["nodes"]
    for what, name in (("trace + compile", "compiling"), ("value + gradient", "running")):
        slower = last[name] / first[name]
        detail = (
            f"{larger:.0f} × the nodes take {slower:.0f} × the time: {duration(first[name])}, {duration(last[name])}"
        )
        yield Row(f"{family}, {what}: growth of a node's cost", slower / larger, "×", 1.0, True, detail)


# ---------------------------------------------------------------- no structure: beside a flat replay in C

REPLAYED = ("", "add", "sub", "mul", "div", "neg", "exp", "log", "sin", "cos", "tanh", "sigmoid")  # as flat_replay.c


class FlatReplay:
    """One traced graph, replayed node by node by flat_replay.c."""

    def __init__(self, library: ctypes.CDLL, flat: Flat, numbers: np.ndarray) -> None:
        unknown = {NAMES[code] for code in np.unique(flat.op).tolist()} - {"input", "constant", *REPLAYED}
        if unknown or flat.outputs.tolist() != [flat.size - 1]:
            raise BenchmarkError(f"the flat replay has no {unknown or 'graph whose result is not the last node'}")
        code = np.array([REPLAYED.index(name) if name in REPLAYED else 0 for name in NAMES], np.uint8)
        self.inputs = flat.inputs
        self.values, self.grads = np.zeros(flat.size), np.zeros(flat.size)
        constants = np.flatnonzero(flat.op == CONSTANT)
        self.values[constants] = flat.given(constants)[:, 0]
        self.values[flat.inputs] = numbers
        left, right = np.zeros(flat.size, np.int32), np.zeros(flat.size, np.int32)
        for place, side in enumerate((left, right)):
            there = np.flatnonzero(flat.counts > place)
            side[there] = flat.child(there, place)
        self.graph = code[flat.op], left, right
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*self.graph, self.values, self.grads)]
        self.library, self.size, self.pointers = library, ctypes.c_int64(flat.size), pointers

    def run(self) -> None:
        self.library.forward(self.size, *self.pointers[:4])
        self.library.backward(self.size, *self.pointers)

    def answers(self) -> list[float]:
        self.run()
        return [float(self.values[-1]), *self.grads[self.inputs].tolist()]


def built_replay(folder: Path) -> ctypes.CDLL:
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise BenchmarkError("a C compiler is needed to build flat_replay.c; install one, or set CC")
    library = folder / "flat_replay.so"
    flags = ["-std=c11", "-O2", "-shared", "-fPIC", str(HERE / "flat_replay.c"), "-o", str(library), "-lm"]
    subprocess.run([*compiler.split(), *flags], check=True)
    return ctypes.CDLL(str(library))


def replay_rows(quick: bool) -> Iterator[Row]:
    """100,000 nodes: reaching back to anything, to the last 30 and to the last 3; with functions and without."""
    with tempfile.TemporaryDirectory() as folder:
        library = built_replay(Path(folder))
        for functions, window in itertools.product((True, False), (None, 1000, 30, 3)):
            what = "with tanh, sin, sigmoid" if functions else "add, sub, mul only"
            reach = f"the last {window}" if window else "any before"
            print(f"measuring a random graph, {what}, of {reach} …", file=sys.stderr)
            function, given = tangle(100_000, window, functions)
            flat = without_dead_code(with_shared_constants(Trace(function, Call((given,), {})).run().flat))
            replay = FlatReplay(library, flat, given)
            compiled = gradwalk.compile(function)
            value, gradient = compiled.value_and_grad(given)
            check_equal("random graph", [value, *gradient.tolist()], replay.answers(), AGREEMENT)
            sides = {
                "replay": (replay.run, 10),
                "ours": (lambda compiled=compiled, given=given: compiled.value_and_grad(given), 10),
            }
            best = best_interleaved(5 if quick else 25, sides)
            a_node = {side: duration(taken / flat.size) for side, taken in best.items()}
            yield Row(
                f"random graph of {reach}, {what}: ours / flat replay", best["ours"] / best["replay"], "×", 1.0, True,
                f"a node: {a_node['ours']} / {a_node['replay']}; {flat.size:,} nodes, "
                f"{len(compiled.program.instructions):,} instructions",
            )  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description="Time how compiled functions grow, and random graphs.")
    parser.add_argument("--quick", action="store_true", help="a tenth of the sizes and fewer rounds")
    parser.add_argument("--only", choices=(*FAMILIES, "replay"), metavar="NAME", help="one family, or replay")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    arguments = parsed_arguments(parser)
    if gradwalk.engine.NAME != "native":
        print("the native engine is needed; unset GRADWALK_ENGINE, or build it", file=sys.stderr)
        return 2
    if arguments.measure:
        print(json.dumps(measure(arguments.measure[0], int(arguments.measure[1]))))
        return 0
    print(f"Python {platform.python_version()}, {platform.machine()}, {platform.system()}")
    sizes = tuple(size // 10 for size in SIZES) if arguments.quick else SIZES
    table: Table = [HEADINGS]
    rows: list[Row] = []
    failed = False
    sections: dict[str, Callable[[], Iterator[Row]]] = {
        family: lambda family=family: growth_of(family, sizes, table) for family in FAMILIES
    } | {"replay": lambda: replay_rows(arguments.quick)}
    for name in [arguments.only] if arguments.only else sections:
        try:
            rows += sections[name]()
        except BenchmarkError as error:
            print(f"{name}: {error}", file=sys.stderr)
            failed = True
    tables = {"sizes": table, "growth": table_of(rows)}
    for shown in tables.values():
        show(shown)
    if arguments.record and not failed:
        record("growth", tables)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
