"""This tree beside another commit: has anything become slower? Ratios of one run, under 1 where this tree is faster.

`python benchmarks/turns.py REVISION [--only PART] [--processes 3]`. The revision is built in a folder of its own, and
its benchmarks' work is done by both, in processes that take turns on one core.
"""

from __future__ import annotations

import argparse
import gc
import os
import runpy
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TURN = 0.05  # seconds, about
Work = Callable[[int], float]  # the seconds of one of so many calls

# ---------------------------------------------------------------- one side: all work by name, made when first asked for


def calls_of(run: Callable[[], object], times: int) -> float:
    gc.collect()
    began = time.perf_counter()
    for _ in range(times):
        run()
    return (time.perf_counter() - began) / times


def called(run: Callable[[], object]) -> Work:
    return partial(calls_of, run)


def of_peer(made: Callable[[], Any], compiling: bool) -> Work:
    """A way of doing it in peers/with_gradwalk.py."""
    workload = made()
    workload.compile()
    return (lambda times: workload.compile_seconds()) if compiling else workload.seconds


def peers_work() -> Iterator[tuple[str, Callable[[], Work]]]:
    import serving

    kept: dict[str, dict[str, Callable[[], Any]]] = {}
    serving.serve = lambda version, workloads: kept.update(workloads)
    runpy.run_path(str(Path(serving.__file__).with_name("with_gradwalk.py")), run_name="__main__")
    for work, ways in kept.items():
        for way, made in ways.items():
            yield f"{work}, {way}", partial(of_peer, made, False)
            if work in ("gpt", "rosenbrock"):
                yield f"trace and compile {work}, {way}", partial(of_peer, made, True)


def eager_work() -> Iterator[tuple[str, Callable[[], Work]]]:
    import engine
    import functional
    import serving

    from gradwalk import Value

    for nodes in (1_000, 10_000, 100_000):

        def chain(times: int, nodes: int = nodes) -> float:
            gc.collect()
            return sum(engine.chain_phases(Value, nodes, times))

        yield f"eager, chain of {nodes:,}", lambda chain=chain: chain
    point = engine.rosenbrock_point()
    yield "eager, Rosenbrock of Values", lambda: called(partial(engine.rosenbrock_gradient, Value, point))

    def gpt() -> Any:
        return engine.module_from(Path(serving.__file__).parents[2] / "examples" / "scalar_gpt.py")

    yield "eager, GPT step", lambda: called(engine.ScalarTraining(gpt(), Value))
    yield "eager, GPT step of composites", lambda: called(engine.LibraryTraining(gpt()))

    import numpy

    x, long = functional.point(100), functional.point(1000)
    eager = functional.rosenbrock
    first, second, product = functional.value_and_grad(eager), functional.hessian(eager), functional.hvp(eager)
    yield "functional, value_and_grad of a list", lambda: called(lambda: first(long))
    yield "functional, value_and_grad of an array", lambda: called(partial(first, numpy.array(long)))
    yield "functional, hessian", lambda: called(lambda: second(x))
    yield "functional, hvp", lambda: called(lambda: product(x, x))
    yield "functional, hvp.at", lambda: called(partial(product.at(x), x))
    for mode in ("forward", "reverse"):
        jacobian = functional.jacobian(functional.trajectory, mode=mode)
        yield f"functional, jacobian {mode}", lambda jacobian=jacobian: called(lambda: jacobian(0.5))
    functions = {
        "Rosenbrock": eager,
        "logistic": functional.logistic(200, 100),
        "MLP": functional.perceptron((2, 5, 12, 1)),
    }
    array = numpy.array(x)
    for name, function in functions.items():
        compiled = functional.compile(function)
        made = {
            "gradient": partial(functional.value_and_grad(compiled), array),
            "hessian": partial(functional.hessian(compiled), array),
            "hvp": partial(functional.hvp(compiled), array, array),
        }
        for what, run in made.items():
            yield f"compiled {name}, {what}", lambda run=run: called(run)


def growth_work() -> Iterator[tuple[str, Callable[[], Work]]]:
    import growth

    import gradwalk

    def compiling(made: Callable[[], Any]) -> Work:
        function, given = made()
        return called(lambda: gradwalk.compile(function).value_and_grad(given))

    def replay(made: Callable[[], Any]) -> Work:
        function, given = made()
        compiled = gradwalk.compile(function)
        compiled.value_and_grad(given)
        return called(lambda: compiled.value_and_grad(given))

    families = {f"{name} of 50,000": partial(made, 50_000) for name, made in growth.FAMILIES.items()}
    for window in (None, 1000, 30, 3):
        for functions in (True, False):
            name = f"tangle of 100,000, window {window}" + ", no functions" * (not functions)
            families[name] = partial(growth.tangle, 100_000, window, functions)
    for name, made in families.items():
        yield f"{name}, replay", partial(replay, made)
        if "of 50,000" in name:
            yield f"{name}, trace and compile", partial(compiling, made)


PARTS = {"peers": peers_work, "eager": eager_work, "growth": growth_work}


def serve(part: str) -> None:
    """A request a line: the name of a piece of work and how often; the seconds of a call come back."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.path.remove(str(HERE))
    found = dict(PARTS[part]())
    print("\t".join(found), file=replies, flush=True)
    made: dict[str, Work] = {}
    for line in sys.stdin:
        name, times = line.rstrip("\n").split("\t")
        if name not in made:
            made = {name: found[name]()}  # one at a time, so that memory and caches are for it alone
        print(made[name](int(times)), file=replies, flush=True)


# ---------------------------------------------------------------- both sides


# Whether the heap gives its top back to the system after each of a thousand calls, and has to ask for every page of it
# again, is luck: 15 % of a compilation, more or less, by what was made before. Here both sides keep what they have.
KEEPING_MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(1 << 30), "MALLOC_MMAP_THRESHOLD_": str(1 << 30)}


class Side:
    def __init__(self, tree: Path, other: Path, part: str) -> None:
        path = [tree / "src", tree / "benchmarks", other / "benchmarks" / "peers"]
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve", part],
            env=os.environ
            | KEEPING_MEMORY
            | {"PYTHONPATH": os.pathsep.join(map(str, path)), "GRADWALK_ENGINE": "native"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.names = self.reply().split("\t")

    def reply(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"turns: a side ended with {self.process.wait()}")
        return line.rstrip("\n")

    def seconds(self, name: str, times: int) -> float:
        assert self.process.stdin is not None
        print(name, times, sep="\t", file=self.process.stdin, flush=True)
        return float(self.reply())

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def built(revision: str, where: Path) -> Path:
    """The revision's tree with its engine, built as this one is."""
    archive = subprocess.run(["git", "archive", revision], cwd=HERE.parent, capture_output=True)
    if archive.returncode:
        raise SystemExit(f"turns: {archive.stderr.decode().strip()}")
    subprocess.run(["tar", "-x", "-C", str(where)], input=archive.stdout, check=True)
    print(f"building {revision} …", file=sys.stderr, flush=True)
    subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=where, check=True, stdout=sys.stderr
    )
    return where


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revision", nargs="?", default="HEAD", help="what this tree is compared with")
    parser.add_argument("--only", default="", help="part of the names of what is to be timed")
    parser.add_argument("--rounds", type=int, default=15, help="turns of each process")
    parser.add_argument("--processes", type=int, default=3, help="of each side, one after the other")
    parser.add_argument("--serve", choices=PARTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory(prefix="turns-") as folder:
        other = built(options.revision, Path(folder))
        print("ratio  each process        this / that, best of all")
        for part in PARTS:
            best: dict[str, list[float]] = {}
            ratios: dict[str, list[float]] = {}
            for process in range(options.processes):
                sides = [Side(tree, other, part) for tree in (HERE.parent, other)]
                for name in [name for name in sides[0].names if options.only in name]:
                    for side in sides:
                        side.seconds(name, 1)
                    times = max(1, round(TURN / sides[1].seconds(name, 1)))
                    turns = [[side.seconds(name, times) for side in sides] for _ in range(options.rounds)]
                    least = [min(each) for each in zip(*turns, strict=True)]
                    best[name] = [min(each) for each in zip(best.get(name, least), least, strict=True)]
                    ratios.setdefault(name, []).append(least[0] / least[1])
                    if process == options.processes - 1:
                        ours, theirs = best[name]
                        each = " ".join(f"{ratio:.3f}" for ratio in ratios[name])
                        print(
                            f"{ours / theirs:.3f}  {each}  {ours * 1e6:.1f} / {theirs * 1e6:.1f} µs  {name}", flush=True
                        )
                for side in sides:
                    side.close()


if __name__ == "__main__":
    main()
