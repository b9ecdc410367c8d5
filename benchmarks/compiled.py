"""Compiled functions against torch, jax, casadi, NumPy by hand and plain Python: ratios, taken in one run.

`python benchmarks/compiled.py [--quick] [--only SECTION]`; `make bench` makes the environment first. Each peer is a
process of its own (benchmarks/peers/), and they take turns. How to read the numbers: benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from engine import BenchmarkError, check_equal
from results import HERE, Row, duration, left_out, parsed_arguments, record, show, table_of

ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_PLATFORMS": "cpu",
}
AGREEMENT = 1e-12  # between any peer and gradwalk: relative for what is larger than 1, absolute below
TURN = 0.06  # seconds, about
OURS = "gradwalk"
PACKAGES = ("torch", "jax", "casadi", "numpy")
PEERS = (OURS, "numpy", "casadi", "jax", "torch", "plain_python")


# ---------------------------------------------------------------- processes


class Peer:
    """A process that answers one request at a time, and waits without working between them."""

    def __init__(self, name: str) -> None:
        self.name = name
        script = HERE / "peers" / f"with_{name}.py"
        self.process = subprocess.Popen(
            [sys.executable, str(script)],
            env=os.environ | ONE_THREAD,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        about = self.ask("about")
        self.version: str = about["version"]
        self.ways: dict[str, list[str]] = about["ways"]

    def ask(self, request: str, *arguments: object) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            print(json.dumps([request, *arguments]), file=self.process.stdin, flush=True)
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise BenchmarkError(f"{self.name}: its process ended with {self.process.wait()} when asked for {request}")
        answered = json.loads(line)
        if "error" in answered:
            raise BenchmarkError(f"{self.name}, {request} {arguments}: {answered['error']}")
        return answered["reply"]

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def pinned_to_one_core() -> str:
    """From now on this process, and those it starts, run on one core; what there is to say about it."""
    if not hasattr(os, "sched_setaffinity"):
        return "not pinned to a core: this system cannot"
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return f"all on core {core}"


def started_peers(failures: list[str]) -> list[Peer]:
    """Those that are installed. One that does not start is a failure."""
    peers = []
    for name in PEERS:
        if name in PACKAGES and importlib.util.find_spec(name) is None:
            left_out(name)
            continue
        try:
            peers.append(Peer(name))
        except BenchmarkError as error:
            failures.append(str(error))
    return peers


# ---------------------------------------------------------------- turns


@dataclass
class Way:
    """How one peer does one work, and what was measured of it."""

    peer: Peer
    work: str
    name: str
    compiling: list[float] = field(default_factory=list)  # seconds, each time from nothing
    best: float = math.inf  # seconds a call

    def ask(self, request: str, *arguments: object) -> Any:
        return self.peer.ask(request, self.work, self.name, *arguments)

    def compile(self) -> None:
        taken = self.ask("compile")
        if taken is not None:
            self.compiling.append(taken)

    def __str__(self) -> str:
        return f"{duration(self.best)} ({self.name})"


class Measured:
    """One work, done by every peer that can: compiled, compared, and then timed in turns."""

    def __init__(self, work: str, peers: list[Peer], quick: bool) -> None:
        self.failures: list[str] = []
        ways = [Way(peer, work, name) for peer in peers for name in peer.ways.get(work, ())]
        say(f"{work}: compiling and comparing {len(ways)} ways of doing it …")
        self.ways = list(self._agreeing(ways, compilations=1 if quick else 3))
        if not self.of(OURS):
            return
        calls = {id(way): self._calls(way) for way in self.ways}
        rounds = 6 if quick else 30
        say(f"{work}: {rounds} rounds of {len(self.ways)} turns …")
        for _ in range(rounds):
            for way in self.ways:
                way.best = min(way.best, way.ask("seconds", calls[id(way)]))

    def _agreeing(self, ways: list[Way], compilations: int) -> Iterator[Way]:
        """Those that compute what gradwalk's first way does; the others are failures, and are not timed."""
        expected: dict[str, list[float]] | None = None
        for way in ways:
            try:
                for _ in range(compilations):
                    way.compile()
                answer = way.ask("answer")
                expected = expected or answer
                shared = [part for part in answer if part in expected]
                for part in shared:
                    what = f"{way.work}, {way.peer.name} ({way.name}), {part}"
                    check_equal(what, expected[part], answer[part], relative=AGREEMENT)
            except BenchmarkError as error:
                self.failures.append(str(error))
            else:
                yield way

    def _calls(self, way: Way) -> int:
        """As many as a turn has time for."""
        way.ask("seconds", 1)  # the first calls are slower than those after them
        return max(1, round(TURN / way.ask("seconds", 3)))

    def of(self, peer: str) -> list[Way]:
        """The ways of a peer, the fastest first."""
        return sorted((way for way in self.ways if way.peer.name == peer), key=lambda way: way.best)

    def ours(self) -> Way:
        """gradwalk's fastest way."""
        found = self.of(OURS)
        if not found:
            raise BenchmarkError("gradwalk itself could not be measured")
        return found[0]

    def ratio_rows(self, what: str, bars: dict[str, float], notes: dict[str, str]) -> Iterator[Row]:
        """For each peer, how much longer its fastest way takes than ours."""
        ours = self.ours()
        for peer in PEERS:
            if peer == OURS or not self.of(peer):
                continue
            fastest, *others = self.of(peer)
            also = "".join(f"; {way.name}: {duration(way.best)}" for way in others)
            yield Row(
                f"{what}, {peer.replace('_', ' ')}{notes.get(peer, '')} / gradwalk", fastest.best / ours.best, "×",
                bars.get(peer), False, f"{fastest} / {ours}{also}",
            )  # fmt: skip

    def compile_row(self, what: str, bar: float) -> Row:
        """Ours, and what the fastest way of each peer took."""
        ours = self.ours()
        first = next(way for way in self.ways if way.peer.name == OURS)
        others = (self.of(peer)[0] for peer in PEERS if peer != OURS and self.of(peer))
        theirs = "".join(f"; {way.peer.name} {duration(min(way.compiling))}" for way in others if way.compiling)
        return Row(
            f"{what}, trace + compile", min(ours.compiling) * 1e3, "ms", bar * 1e3, True,
            f"the first time {duration(first.compiling[0])}{theirs}",
        )  # fmt: skip


def say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def microseconds(what: str, way: Way, bar: float | None, detail: str) -> Row:
    return Row(what, way.best * 1e6, "µs", bar, True, detail)


# ---------------------------------------------------------------- sections in which peers take turns

Section = Callable[[Measured], Iterator[Row]]


def gpt_rows(measured: Measured) -> Iterator[Row]:
    ways = measured.of(OURS)
    facts = {way.name: way.ask("facts") for way in ways}
    for way in ways:
        yield microseconds(
            f"GPT training step, {way.name}", way, 60.0, f"programs for 4 names: {facts[way.name]['programs']}"
        )
    notes = {"casadi": " without Adam"}
    yield from measured.ratio_rows("GPT training step", {"jax": 5.0, "torch": 35.0}, notes)
    yield measured.compile_row("GPT", 0.5)
    for way in ways:
        yield Row(
            f"GPT, forward instructions, {way.name}", facts[way.name]["instructions"], "", 60.0, True,
            f"made of {facts[way.name]['scalar nodes']:,} scalar nodes",
        )  # fmt: skip


def rosenbrock_rows(measured: Measured) -> Iterator[Row]:
    what = "Rosenbrock, 1,000 variables"
    yield microseconds(what, measured.ours(), 10.0, "value and gradient, NumPy array in and out")
    yield measured.compile_row(what, 0.2)
    yield from measured.ratio_rows(what, {}, {})


def mlp_rows(measured: Measured) -> Iterator[Row]:
    what = "MLP 2-16-16-1, one sample"
    yield microseconds(what, measured.ours(), 5.0, "value and gradient, NumPy array in and out")
    yield from measured.ratio_rows(what, {}, {})


def call_rows(measured: Measured) -> Iterator[Row]:
    what = "a call with 1,000 numbers"
    yield microseconds(
        what, measured.ours(), 3.0, "value and gradient of x[0] * x[1]; 1,000 numbers go in and come out"
    )
    yield from measured.ratio_rows(what, {}, {})


def batch_rows(measured: Measured) -> Iterator[Row]:
    ways = {way.name: way.best for way in measured.of(OURS)}
    if len(ways) < 4:
        raise BenchmarkError("a batch is compared with one name at a time, and one of the two could not be measured")
    names = 64
    for what, alone, together, bar in (
        (f"{names} training steps / one with {names} names", "a step for each", "a step for all", 3.0),
        (f"{names} names without Adam, one at a time / map_backward", "one at a time", "map_backward", None),
    ):
        yield Row(
            what, ways[alone] / ways[together], "×", bar, False,
            f"a name: {duration(ways[alone] / names)} / {duration(ways[together] / names)}",
        )  # fmt: skip
    yield from measured.ratio_rows(f"{names} names, loss and gradient", {}, {})


PEER_SECTIONS: dict[str, tuple[str, Section]] = {
    "gpt": ("a training step of the 4,064-parameter GPT of examples/scalar_gpt.py at 8 positions", gpt_rows),
    "rosenbrock": ("Rosenbrock's function in 1,000 variables, value and gradient", rosenbrock_rows),
    "mlp": ("an MLP 2-16-16-1 on one sample, value and gradient", mlp_rows),
    "call": ("what a call costs by itself", call_rows),
    "batch": ("64 names in one pass against one name at a time", batch_rows),
}


# ---------------------------------------------------------------- the section without peers


def train_rows(quick: bool) -> Iterator[Row]:
    """The command as people type it, from an empty folder, the interpreter's start included."""
    times = []
    for _ in range(2 if quick else 5):
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            done = subprocess.run(
                [sys.executable, "-m", "gradwalk", "train"], cwd=folder, capture_output=True, text=True, check=False
            )
            times.append(time.perf_counter() - began)
        if done.returncode:
            raise BenchmarkError(f"gradwalk train ended with {done.returncode}: {done.stderr.strip()}")
    yield Row(
        "gradwalk train, whole command", min(times), "s", 2.0, True, f"best of {len(times)}, worst {max(times):.2f} s"
    )


TRAIN = "the whole command `gradwalk train`, on as many cores as it likes"


# ---------------------------------------------------------------- report

HELP = """Time compiled functions against torch, jax, casadi, NumPy by hand and plain Python.

Every peer runs in a process of its own, with one thread, all of them on the same core, and they take turns; the best
turn of each counts. Before that their answers are compared: a peer that differs from gradwalk by more than 1e-12 is
not timed, and the exit status is 1. A missed bar is printed as MISSED and does not change the exit status.
"""


def parsed_options() -> argparse.Namespace:
    sections = {name: what for name, (what, _) in PEER_SECTIONS.items()} | {"train": TRAIN}
    examples = """examples:
  python benchmarks/compiled.py                      everything, in a few minutes
  python benchmarks/compiled.py --only gpt --quick   a first impression
  pip install -r benchmarks/requirements.txt         the peers; those that are not there are left out"""
    listed = "\n".join(f"  {name:<12}{what}" for name, what in sections.items())
    parser = argparse.ArgumentParser(
        description=HELP,
        epilog=f"sections:\n{listed}\n\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds: for trying things out")
    parser.add_argument("--only", choices=sections, metavar="SECTION", help="one of the sections below")
    return parsed_arguments(parser)


def peer_rows(sections: list[str], quick: bool, failures: list[str], versions: list[str]) -> Iterator[Row]:
    """The rows of the sections for which peers are started; what failed, and what they are, is added to the lists."""
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    where = pinned_to_one_core()
    peers = started_peers(failures)
    try:
        versions += [f"{peer.name} {peer.version}" for peer in peers if peer.name in PACKAGES]
        print(f"{', '.join(versions)}; one thread each, {where}")
        for name in sections:
            try:
                measured = Measured(name, peers, quick)
                failures += measured.failures
                yield from PEER_SECTIONS[name][1](measured)
            except BenchmarkError as error:
                failures.append(f"{name}: {error}")
    finally:
        for peer in peers:
            peer.close()
        if cores:
            os.sched_setaffinity(0, cores)


def main() -> int:
    arguments = parsed_options()
    chosen = [arguments.only] if arguments.only else [*PEER_SECTIONS, "train"]
    print(f"Python {platform.python_version()}, {platform.machine()}, {platform.system()}")
    rows: list[Row] = []
    failures: list[str] = []
    versions: list[str] = []
    with_peers = [name for name in chosen if name in PEER_SECTIONS]
    if with_peers:
        rows += peer_rows(with_peers, arguments.quick, failures, versions)
    if "train" in chosen:
        try:
            rows += train_rows(arguments.quick)
        except BenchmarkError as error:
            failures.append(str(error))
    show(table_of(rows))
    for failure in failures:
        say(failure)
    if arguments.record and not failures:
        record("compiled", {"compiled": table_of(rows)}, ", ".join(versions))
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
