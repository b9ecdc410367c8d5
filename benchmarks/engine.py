"""The engines against plain floats, against micrograd and against each other: ratios, taken in one run.

`python benchmarks/engine.py [--quick] [--only NAME]`; `make bench` makes the environment first. The answers are
compared before anything is timed. How to read the numbers: benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import itertools
import math
import os
import platform
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

from results import HERE, Row, duration, left_out, parsed_arguments, record, show, table_of

from gradwalk import engine, nn, optim


class BenchmarkError(Exception):
    """There is nothing to time: something is missing, or the sides do not compute the same thing."""


def check_equal(what: str, left: list[float], right: list[float], relative: float = 0.0) -> None:
    close = all(math.isclose(x, y, rel_tol=relative, abs_tol=relative) for x, y in zip(left, right, strict=True))
    if not close:
        worst = max(zip(left, right, strict=True), key=lambda pair: abs(pair[0] - pair[1]))
        raise BenchmarkError(f"{what}: the answers differ by more than {relative:g}, at worst {worst}")


def seconds(run: Callable[[], object], times: int) -> float:
    """Mean time of one call."""
    calls = itertools.repeat(None, times)
    began = time.perf_counter()
    for _ in calls:
        run()
    return (time.perf_counter() - began) / times


def best_interleaved(rounds: int, sides: dict[str, tuple[Callable[[], object], int]]) -> dict[str, float]:
    """The best time of each side over `rounds` in which the sides take turns; a side is (run, calls in a turn).

    The best, because whatever else the machine does only ever adds time; in turns, so that it meets both sides.
    """
    best = dict.fromkeys(sides, math.inf)
    for _ in range(rounds):
        for name, (run, times) in sides.items():
            gc.collect()  # what the side before left behind is not this side's to clear up
            best[name] = min(best[name], seconds(run, times))
    return best


def module_from(path: Path) -> ModuleType:
    """A Python file outside any package, as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None, path
    assert spec.loader is not None, path
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ---------------------------------------------------------------- chain: adds and multiplies in a loop

CHAIN_START, CHAIN_FACTOR, CHAIN_TERM = 0.5, 0.9999999, 1e-7  # neither grows nor dies out in ten million nodes


def chain(x, y, z, nodes):
    for _ in range(nodes // 2):
        x = x * y + z
    return x


def chain_phases(Value, nodes: int, times: int) -> tuple[float, float, float]:  # noqa: N803
    """Mean seconds of building the chain, of its backward pass and of freeing it."""
    clock = time.perf_counter
    building = differentiating = freeing = 0.0
    for _ in range(times):
        x, y, z = Value(CHAIN_START), Value(CHAIN_FACTOR), Value(CHAIN_TERM)
        began = clock()
        out = chain(x, y, z, nodes)
        built = clock()
        out.backward()
        differentiated = clock()
        del out
        freed = clock()
        building += built - began
        differentiating += differentiated - built
        freeing += freed - differentiated
    return building / times, differentiating / times, freeing / times


def chain_answers(Value, nodes: int) -> list[float]:  # noqa: N803
    leaves = Value(CHAIN_START), Value(CHAIN_FACTOR), Value(CHAIN_TERM)
    out = chain(*leaves, nodes)
    out.backward()
    return [out.data, *(leaf.grad for leaf in leaves)]


def chain_rows(quick: bool) -> Iterator[Row]:
    native, reference = engine.load("native").Value, engine.load("reference").Value
    check_equal("chain, native and reference", chain_answers(native, 10_000), chain_answers(reference, 10_000))
    for nodes, bar in ((1_000, 2.0), (10_000, 2.0), (100_000, None), (1_000_000, 3.5)):
        if quick and nodes > 100_000:
            continue
        on_floats = chain(CHAIN_START, CHAIN_FACTOR, CHAIN_TERM, nodes)
        check_equal("chain, native and floats", chain_answers(native, nodes)[:1], [on_floats])
        times = max(1, 200_000 // nodes)
        rounds = (5 if nodes > 100_000 else 15) if quick else (9 if nodes > 100_000 else 40)
        plain, phases = math.inf, (math.inf,) * 3
        for _ in range(rounds):
            gc.collect()
            plain = min(plain, seconds(lambda: chain(CHAIN_START, CHAIN_FACTOR, CHAIN_TERM, nodes), times))  # noqa: B023
            phases = min(phases, chain_phases(native, nodes, times), key=sum)
        split = ", ".join(
            f"{taken / nodes * 1e9:.1f} {phase}"
            for phase, taken in zip(("forward", "backward", "freeing"), phases, strict=True)
        )
        yield Row(
            f"chain of {nodes:,} nodes / floats", sum(phases) / plain, "×", bar, True,
            f"{duration(sum(phases))} / {duration(plain)}; ns a node: {split}",
        )  # fmt: skip


# ---------------------------------------------------------------- Rosenbrock's function in 1,000 variables

VARIABLES = 1_000


def rosenbrock(x):
    total = 0.0
    for a, b in itertools.pairwise(x):
        total = total + 100.0 * (b - a * a) ** 2 + (1.0 - a) ** 2
    return total


def rosenbrock_point() -> list[float]:
    rng = random.Random(1)
    return [rng.uniform(-2.0, 2.0) for _ in range(VARIABLES)]


def rosenbrock_gradient(Value, point: list[float]) -> tuple[float, list[float]]:  # noqa: N803
    """The function and its gradient: making the leaves and reading the gradients are part of the work."""
    leaves = [Value(coordinate) for coordinate in point]
    out = rosenbrock(leaves)
    out.backward()
    return out.data, [leaf.grad for leaf in leaves]


def rosenbrock_rows(quick: bool) -> Iterator[Row]:
    native, point = engine.load("native").Value, rosenbrock_point()
    data, gradient = rosenbrock_gradient(native, point)
    check_equal("Rosenbrock, native and floats", [data], [rosenbrock(point)], relative=1e-14)
    by_hand = [0.0] * VARIABLES
    for i, (a, b) in enumerate(itertools.pairwise(point)):
        by_hand[i] += -400.0 * a * (b - a * a) - 2.0 * (1.0 - a)
        by_hand[i + 1] += 200.0 * (b - a * a)
    check_equal("Rosenbrock's gradient, native and by hand", gradient, by_hand, relative=1e-12)
    best = best_interleaved(
        15 if quick else 60,
        {"native": (lambda: rosenbrock_gradient(native, point), 20), "floats": (lambda: rosenbrock(point), 20)},
    )
    yield Row(
        f"Rosenbrock, {VARIABLES:,} variables / floats", best["native"] / best["floats"], "×", 3.0, True,
        f"{duration(best['native'])} / {duration(best['floats'])}",
    )  # fmt: skip


# ---------------------------------------------------------------- micrograd, from PyPI


def with_deep_stack(run: Callable[[], list[Row]]) -> list[Row]:
    """`run` in a thread in which a recursion as deep as the graph fits: micrograd's backward() needs one."""
    results: list[list[Row]] = []
    errors: list[BaseException] = []

    def body() -> None:
        try:
            results.append(run())
        except BaseException as error:
            errors.append(error)

    limit, size = sys.getrecursionlimit(), threading.stack_size(512 * 1024 * 1024)
    sys.setrecursionlimit(100_000)
    try:
        thread = threading.Thread(target=body)
        thread.start()
        thread.join()
    finally:
        sys.setrecursionlimit(limit)
        threading.stack_size(size)
    if errors:
        raise errors[0]
    return results[0]


def micrograd_rows(quick: bool) -> Iterator[Row]:
    try:
        from micrograd.engine import Value as Micrograd
    except ImportError:
        left_out("micrograd")
        return

    native, point = engine.load("native").Value, rosenbrock_point()

    def measured() -> list[Row]:
        ours, theirs = rosenbrock_gradient(native, point), rosenbrock_gradient(Micrograd, point)
        check_equal("Rosenbrock, native and micrograd", [ours[0], *ours[1]], [theirs[0], *theirs[1]], relative=1e-12)
        rows = []
        for collector, bar in (("on", 80.0), ("off", 50.0)):
            if collector == "off":
                gc.disable()
            try:
                best = best_interleaved(
                    3 if quick else 10,
                    {
                        "native": (lambda: rosenbrock_gradient(native, point), 20),
                        "micrograd": (lambda: rosenbrock_gradient(Micrograd, point), 1),
                    },
                )
            finally:
                gc.enable()
            row = Row(
                f"micrograd / native, Rosenbrock, collector {collector}", best["micrograd"] / best["native"],
                "×", bar, False, f"{duration(best['micrograd'])} / {duration(best['native'])}",
            )  # fmt: skip
            rows.append(row)
        return rows

    yield from with_deep_stack(measured)


# ---------------------------------------------------------------- one training step of a 4,064-parameter GPT

NAME = "charlie"  # seven letters: eight positions, the whole block


class ScalarTraining:
    """examples/scalar_gpt.py in training on one name; each call is a step: forward, backward and Adam."""

    def __init__(self, gpt: ModuleType, Value) -> None:  # noqa: N803
        self.gpt = gpt
        self.parameters = gpt.initial_parameters(random.Random(42), Value)
        self.weights = gpt.flattened(self.parameters)
        self.moments = [0.0] * len(self.weights), [0.0] * len(self.weights)
        self.tokens = gpt.tokens_of(NAME)
        self.steps = 0

    def loss(self):
        return self.gpt.loss_of(self.parameters, self.tokens)

    def __call__(self) -> float:
        loss = self.loss()
        loss.backward()
        self.gpt.adam_step(self.weights, self.moments, self.steps, self.gpt.LEARNING_RATE * 0.1)
        self.steps += 1
        return loss.data


class LibraryTraining:
    """The same model from gradwalk.nn, which is made of composites, with the library's Adam."""

    def __init__(self, gpt: ModuleType) -> None:
        self.model = nn.GPT(rng=random.Random(42))
        self.weights = self.model.parameters()
        self.adam = optim.Adam(self.weights, lr=gpt.LEARNING_RATE * 0.1)
        self.tokens = gpt.tokens_of(NAME)

    def loss(self):
        return self.model.loss(self.tokens)

    def __call__(self) -> float:
        loss = self.loss()
        loss.backward()
        self.adam.step()
        self.adam.zero_grad()
        return loss.data


def gpt_rows(quick: bool) -> Iterator[Row]:
    gpt = module_from(HERE.parent / "examples" / "scalar_gpt.py")
    reference = ScalarTraining(gpt, engine.load("reference").Value)
    plain = ScalarTraining(gpt, module_from(HERE / "plain_value.py").Value)
    native, library = ScalarTraining(gpt, engine.load("native").Value), LibraryTraining(gpt)
    nodes = {"native": gpt.count_nodes(native.loss()), "composites": gpt.count_nodes(library.loss())}

    steps = range(2 if quick else 4)  # more than one: at first the zero matrices hide most of the model
    losses = [[side() for _ in steps] for side in (reference, native, library, plain)]
    check_equal("GPT losses, reference and native", losses[0], losses[1])
    check_equal("GPT losses, plain and composites", losses[0], losses[2], relative=1e-12)
    check_equal("GPT losses, reference and a plain class", losses[0], losses[3], relative=1e-12)
    weights = [[weight.data for weight in side.weights] for side in (reference, native)]
    check_equal("GPT weights after training, reference and native", *weights)

    best = best_interleaved(
        2 if quick else 6,
        {"reference": (reference, 1), "plain class": (plain, 1), "native": (native, 20), "composites": (library, 20)},
    )
    rows = (("reference", "native", 15.0), ("reference", "composites", 100.0), ("plain class", "native", None),
            ("plain class", "composites", None))  # fmt: skip
    for slow, side, bar in rows:
        yield Row(
            f"GPT training step, {slow} / {side}", best[slow] / best[side], "×", bar, False,
            f"{duration(best[slow])} / {duration(best[side])}; {nodes[side]:,} nodes",
        )  # fmt: skip


# ---------------------------------------------------------------- memory and depth


def resident_bytes() -> int:
    """What this process holds in memory now."""
    if sys.platform == "linux":
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    answer = subprocess.run(["ps", "-o", "rss=", "-p", str(os.getpid())], capture_output=True, check=True)
    return int(answer.stdout) * 1024


def measure_memory(nodes: int) -> None:
    """Run in a process of its own: prints resident bytes a node once built, after backward and once freed."""
    Value = engine.load("native").Value  # noqa: N806
    x, y, z = Value(CHAIN_START), Value(CHAIN_FACTOR), Value(CHAIN_TERM)
    before = resident_bytes()
    out = chain(x, y, z, nodes)
    built = resident_bytes()
    out.backward()
    differentiated = resident_bytes()
    check_equal("gradient through the deep chain", [x.grad], [CHAIN_FACTOR ** (nodes // 2)], relative=1e-8)
    del out
    freed = resident_bytes()
    print(*((held - before) / nodes for held in (built, differentiated, freed)))


def memory_rows(quick: bool) -> Iterator[Row]:
    nodes = 1_000_000 if quick else 10_000_000
    child = subprocess.run(
        [sys.executable, __file__, "--measure-memory", str(nodes)], capture_output=True, text=True, check=False
    )
    if child.returncode:
        raise BenchmarkError(f"the chain of {nodes:,} nodes ended with {child.returncode}: {child.stderr.strip()}")
    built, differentiated, freed = map(float, child.stdout.split())
    yield Row(
        f"memory a node, chain of {nodes:,}", built, "bytes", 80.0, True,
        f"built, differentiated and freed; {differentiated:.1f} after backward, {freed:.1f} once freed",
    )  # fmt: skip


# ---------------------------------------------------------------- report

SECTIONS: dict[str, Callable[[bool], Iterator[Row]]] = {
    "chain": chain_rows,
    "rosenbrock": rosenbrock_rows,
    "micrograd": micrograd_rows,
    "gpt": gpt_rows,
    "memory": memory_rows,
}


def main() -> int:
    parser = argparse.ArgumentParser(description="Time gradwalk's engines against plain floats and against micrograd.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and smaller graphs")
    parser.add_argument("--only", choices=SECTIONS, metavar="NAME", help=f"one of {', '.join(SECTIONS)}")
    parser.add_argument("--measure-memory", type=int, metavar="NODES", help=argparse.SUPPRESS)
    arguments = parsed_arguments(parser)
    try:
        engine.load("native")
    except ImportError as error:
        print(f"the native engine is needed and could not be imported: {error}", file=sys.stderr)
        return 2
    if arguments.measure_memory:
        measure_memory(arguments.measure_memory)
        return 0
    print(f"Python {platform.python_version()}, {platform.machine()}, {platform.system()}")
    rows: list[Row] = []
    failed = False
    for name in [arguments.only] if arguments.only else SECTIONS:
        print(f"measuring {name} …", file=sys.stderr)
        try:
            rows += SECTIONS[name](arguments.quick)
        except BenchmarkError as error:
            print(f"{name}: {error}", file=sys.stderr)
            failed = True
    show(table_of(rows))
    if arguments.record and not failed:
        record("engine", {"engine": table_of(rows)})
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
