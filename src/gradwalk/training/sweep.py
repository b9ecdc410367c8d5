"""`gradwalk sweep`: many runs side by side, over a grid or at random; a folder keeps what they came to.

In the folder: `sweep.json` says what the runs are, `runs.jsonl` has a line for each that is over, `best.safetensors` is
the best one's checkpoint, and `run-N.safetensors` are runs that were stopped, to go on.
"""

from __future__ import annotations

import io
import itertools
import json
import math
import os
import random
import shlex
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from gradwalk.files import locked, read_file, refuse_same, remove_leftovers, replace_file
from gradwalk.training import data
from gradwalk.training.checkpoint import (
    DAMAGES,
    LARGEST_FILE,
    Checkpoint,
    CheckpointError,
    load,
    save,
    short,
)
from gradwalk.training.loop import Configuration, configuration_of, mean
from gradwalk.training.metrics import cut_short
from gradwalk.training.session import EVALUATION, PlanError, stop_signals
from gradwalk.training.side_by_side import SIDE_BY_SIDE, RunState, advanced, pieces
from gradwalk.workers import Sendable, Task, Workers, dask, processes

LARGEST_SWEEP = 10_000  # runs
LARGEST_DESCRIPTION = 2**24  # bytes; so many runs that differ in every option need half of it
SAVED_EVERY = 30.0  # seconds, what is not over yet
ROUND = 1.0  # seconds of work between two looks at it; by other processes a few times as many
FORMAT = 1


@dataclass(frozen=True)
class Span:
    """Any number between two, to draw from."""

    low: float
    high: float

    def drawn(self, rng: random.Random) -> float:
        """Each factor is as likely as the other; from 0 on, each difference."""
        if self.low > 0.0:
            return float(math.exp(rng.uniform(math.log(self.low), math.log(self.high))))
        return rng.uniform(self.low, self.high)


@dataclass(frozen=True)
class SweepPlan:
    """What the command line asked for, besides the options of the runs."""

    data: Path | None = None  # None: the bundled names
    resume: Path | None = None
    folder: Path | None = None  # None: a new name in the current folder
    evaluate_every: int | None = None
    evaluated_documents: int | None = None
    drawn: int | None = None  # combinations at random; None: all of them
    workers: int | None = None  # processes; None: as many as there are cores, where one program does not serve all
    dask: str | None = None
    plot: Path | None = None


def combinations(options: Mapping[str, Sequence[Any]], drawn: int | None) -> list[dict[str, Any]]:
    """The options of each run: every combination, or so many at random of all but the seed, each with every seed.

    >>> combinations({"lr": (0.1, 0.2), "seed": (1, 2)}, drawn=None)[:3]
    [{'lr': 0.1, 'seed': 1}, {'lr': 0.1, 'seed': 2}, {'lr': 0.2, 'seed': 1}]
    """
    if drawn is None:
        for name, values in options.items():
            if any(isinstance(value, Span) for value in values):
                raise PlanError(f"{spelled(name)}: there is no end of numbers between two; --random N draws some")
        if math.prod(map(len, options.values())) > LARGEST_SWEEP:
            count = math.prod(map(len, options.values()))
            raise PlanError(f"expected at most {LARGEST_SWEEP:,} runs, got {count:,}; --random N draws some of them")
        return [dict(zip(options, values, strict=True)) for values in itertools.product(*options.values())]
    if drawn * len(options["seed"]) > LARGEST_SWEEP:
        raise PlanError(f"expected at most {LARGEST_SWEEP:,} runs, got {drawn * len(options['seed']):,}")
    rng, made = random.Random("sweep"), []  # more of them begin with the same ones
    for _ in range(drawn):
        chosen = {name: rng.choice(values) for name, values in options.items() if name != "seed"}
        settled = {name: one.drawn(rng) if isinstance(one, Span) else one for name, one in chosen.items()}
        made += [{name: settled.get(name, seed) for name in options} for seed in options["seed"]]
    return made


def spelled(name: str) -> str:
    return f"--{name.replace('_', '-')}"


# ---------------------------------------------------------------- the folder


@dataclass
class Sweep:
    """What the runs are, what those that are over came to, and how far the others are."""

    folder: Path
    configurations: list[Configuration]
    varied: list[str]  # the options that differ among them
    data_name: str | None
    digest: str  # of the documents
    evaluation: dict[str, int]
    lines: dict[int, dict[str, Any]] = field(default_factory=dict)
    states: dict[int, RunState] = field(default_factory=dict)  # of those that are not over, by number

    @property
    def best(self) -> dict[str, Any] | None:
        """The line of the run with the smallest validation loss, or loss where nothing is set aside."""
        return min((line for line in self.lines.values() if "error" not in line), key=loss_of, default=None)

    @property
    def checkpoint(self) -> Path:
        return self.folder / "best.safetensors"

    @property
    def steps_made(self) -> int:
        over = sum(self.configurations[number - 1].steps for number in self.lines)
        return over + sum(state.step for state in self.states.values())

    def options(self, number: int) -> dict[str, Any]:
        """What is the run's own, of the options."""
        return {name: getattr(self.configurations[number - 1], name) for name in self.varied}

    # ---- writing

    def claim(self, name: Path | None) -> None:
        """Make the folder, which must not be there; of several sweeps that begin at once each gets another."""
        numbered = (Path(f"gradwalk-sweep-{number}") for number in itertools.count(2))
        for folder in [name] if name else itertools.chain([Path("gradwalk-sweep")], numbered):
            try:
                folder.mkdir()
            except FileExistsError:
                continue
            self.folder = folder
            described = {
                "gradwalk_sweep": FORMAT,
                "data": {"name": self.data_name, "digest": self.digest},
                "evaluation": self.evaluation,
                "common": {k: v for k, v in asdict(self.configurations[0]).items() if k not in self.varied},
                "runs": [self.options(number) for number in range(1, len(self.configurations) + 1)],
            }
            replace_file(folder / "sweep.json", json.dumps(described).encode(), new=True)
            (folder / "runs.jsonl").touch(exist_ok=False)
            return
        raise PlanError(f"{name}: it is there already; --resume {name} goes on with it")

    def take(self, run: RunState) -> None:
        """A run as it is now. If it is over, its line is written, and if it is the best, its checkpoint before that."""
        if not run.is_over:
            self.states[run.number] = run
            return
        line: dict[str, Any] = {"run": run.number, "options": self.options(run.number), "step": run.step}
        if run.error is not None:
            line["error"] = run.error
        else:
            assert run.checkpoint is not None
            losses, validated = run.checkpoint.losses, run.checkpoint.validation_losses
            line["loss"] = mean(losses[-50:]) if losses else None
            line["validation_loss"] = validated[-1][1] if validated else None
            line["validation_losses"] = [list(point) for point in validated]
            if self.best is None or loss_of(line) < loss_of(self.best):
                save(run.checkpoint, self.checkpoint)
        with open(self.folder / "runs.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        self.lines[run.number] = line
        self.states.pop(run.number, None)
        self.saved(run.number).unlink(missing_ok=True)

    def saved(self, number: int) -> Path:
        return self.folder / f"run-{number}.safetensors"

    def save(self) -> None:
        """What is not over, to go on from there."""
        for run in self.states.values():
            if run.checkpoint is not None and run.step:
                save(run.checkpoint, self.saved(run.number))


def loss_of(line: dict[str, Any]) -> float:
    """What runs are compared by."""
    found = line["loss"] if line.get("validation_loss") is None else line["validation_loss"]
    return math.inf if found is None else float(found)


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Two sweeps in one folder would write the same lines."""
    with open(folder / "sweep.json", "rb") as file:
        if not locked(file.fileno()):
            raise PlanError(f"{folder}: another gradwalk sweep is at work on it")
        yield


# ---- reading


def opened(folder: Path) -> Sweep:
    """The sweep in a folder, with its lines and with the runs that were stopped."""
    try:
        described = json.loads(read_file(folder / "sweep.json", LARGEST_DESCRIPTION, "what a sweep is"))
        if described["gradwalk_sweep"] > FORMAT:
            raise PlanError(f"{folder}: written by a newer gradwalk; pip install --upgrade gradwalk")
        runs, common = described["runs"], described["common"]
        if not isinstance(runs, list) or not 1 <= len(runs) <= LARGEST_SWEEP:
            raise ValueError("not a list of runs")
        configurations = [Configuration(**common, **run) for run in runs]
        name, evaluation = described["data"]["name"], dict(described["evaluation"])
        if not isinstance(name, str | None):
            raise TypeError("the name of its data is not a text")
        if any(type(evaluation[key]) is not int or not 0 < evaluation[key] < 2**63 for key in EVALUATION):
            raise ValueError("how often it is evaluated is not a number")
        sweep = Sweep(folder, configurations, list(runs[0]), name, str(described["data"]["digest"]), evaluation)
    except OSError as error:
        raise PlanError(f"{folder}: expected the folder of a sweep: {error.strerror}: sweep.json") from None
    except PlanError:
        raise
    except DAMAGES as error:
        raise PlanError(f"{folder}: a damaged sweep.json ({short(error)})") from None
    _read_lines(sweep)
    for number, configuration in enumerate(configurations, 1):
        if number not in sweep.lines:
            path = sweep.saved(number)
            checkpoint = load(path) if path.exists() else None
            if checkpoint is not None:
                _check_state(checkpoint, configuration, path)
            sweep.states[number] = RunState(number, configuration, checkpoint)
    return sweep


def _read_lines(sweep: Sweep) -> None:
    """What is over; a last line that is cut short, where a sweep was killed as it wrote it, is taken away."""
    path = sweep.folder / "runs.jsonl"
    content = read_file(path, LARGEST_FILE, "the lines of a sweep")
    for place, text in enumerate(io.BytesIO(content), 1):
        if cut_short(text, b'{"run": '):
            replace_file(path, content[: -len(text)])
            break
        try:
            line = _line(sweep, json.loads(text))
        except DAMAGES:
            raise PlanError(f"{path}: line {place} is not a line of this sweep") from None
        sweep.lines[line["run"]] = line
        if not text.endswith(b"\n"):
            replace_file(path, content + b"\n")


def _line(sweep: Sweep, line: dict[str, Any]) -> dict[str, Any]:
    """A line as `take` writes it: tables and pictures are made of what is in it."""
    number, step = line["run"], line["step"]
    if type(number) is not int or not 1 <= number <= len(sweep.configurations):
        raise ValueError("no such run")
    steps = sweep.configurations[number - 1].steps
    if line["options"] != sweep.options(number) or type(step) is not int or not 0 <= step <= steps:
        raise ValueError("another run's options, or more steps than it has")
    if "error" in line:
        if not isinstance(line["error"], str):
            raise TypeError("an error that is not a text")
        return line
    losses = [loss for loss in (line["loss"], line["validation_loss"]) if loss is not None]
    points = line["validation_losses"]
    if step != steps or any(type(at) is not int or not 0 < at <= steps for at, _ in points):
        raise ValueError("it is not over, or was measured at a step that it has not")
    # of huge losses the mean is infinite
    if not all(type(loss) in (int, float) and float(loss) > -math.inf for loss in [*losses, *(y for _, y in points)]):
        raise ValueError("what was measured is not a number")
    return line


def _check_state(checkpoint: Checkpoint, configuration: Configuration, path: Path) -> None:
    """Whether the run can go on from there."""
    if checkpoint.configuration != asdict(configuration):
        raise CheckpointError(f"{path}: the checkpoint of another run")
    try:
        configuration_of(checkpoint)
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from None


# ---------------------------------------------------------------- the runs


def run_sweep(
    plan: SweepPlan, options: Mapping[str, Sequence[Any]], reporter: Any, may_open: Callable[[str], bool]
) -> int:
    """Run all that is not over; the exit status. `options` has for each field of Configuration its values."""
    began = time.perf_counter()
    with ExitStack() as stack:
        sweep, documents = _resumed(plan, may_open, stack) if plan.resume else _begun(plan, options, stack)
        for each in [each for each in sweep.states.values() if each.is_over]:
            sweep.take(each)
        reporter.start(sweep)
        workers = _workers(plan, sweep, stack)
        stop = stack.enter_context(stop_signals())
        stack.enter_context(reporter)
        last_saved = began
        try:
            for runs in _rounds(sweep, documents, workers):
                for each in runs:
                    sweep.take(each)
                reporter.round(sweep)
                if stop.received:
                    break
                if time.perf_counter() - last_saved > SAVED_EVERY:
                    sweep.save()
                    last_saved = time.perf_counter()
        except Exception:  # the disk is full, nobody reads on, workers died, memory ended: what was learnt is kept
            with suppress(Exception):
                sweep.save()
            raise
        sweep.save()
    if sweep.states:
        reporter.interrupted(sweep, resume_command(plan, sweep))
        return 128 + stop.received
    if sweep.best is None:
        raise ValueError(f"{sweep.folder}: no run came to its end; the first: {sweep.lines[min(sweep.lines)]['error']}")
    if plan.plot:
        from gradwalk.show.sweep_plot import sweep_picture

        lines = [line for line in sweep.lines.values() if "error" not in line]
        title = f"gradwalk sweep: {len(lines):,} runs"
        replace_file(plan.plot, sweep_picture(lines, sweep.varied, loss_of, title).encoded(plan.plot))
    reporter.finish(sweep, time.perf_counter() - began)
    return 0


def _begun(plan: SweepPlan, options: Mapping[str, Sequence[Any]], stack: ExitStack) -> tuple[Sweep, list[str]]:
    refuse_same(data=plan.data, plot=plan.plot)
    documents = data.read_documents(plan.data or data.BUNDLED_NAMES)
    runs = combinations(options, plan.drawn)
    configurations = [Configuration(**run) for run in runs]
    for configuration in dict.fromkeys(configurations):
        if configuration.n_embd % configuration.n_head:
            raise PlanError(f"--n-embd {configuration.n_embd} is not divisible by --n-head {configuration.n_head}")
    varied = [name for name, values in options.items() if len(values) > 1 or isinstance(values[0], Span)]
    evaluation = {
        "every": plan.evaluate_every or EVALUATION["every"],
        "documents": plan.evaluated_documents or EVALUATION["documents"],
    }
    name = os.fspath(plan.data) if plan.data else None
    sweep = Sweep(Path(), configurations, varied or ["seed"], name, data.digest(documents), evaluation)
    _try_out(sweep, documents)
    sweep.claim(plan.folder)
    stack.enter_context(held(sweep.folder))
    sweep.states = {number: RunState(number, each) for number, each in enumerate(configurations, 1)}
    return sweep, documents


def _try_out(sweep: Sweep, documents: list[str]) -> None:
    """What cannot be trained at all is said before anything is written: one run of each shape is begun."""
    from gradwalk.training.loop import Trainer

    shapes: dict[tuple[Any, ...], Configuration] = {}
    for configuration in sweep.configurations:
        kept = tuple(
            getattr(configuration, each.name) for each in fields(configuration) if each.name not in ("seed", "lr")
        )
        shapes.setdefault(kept, configuration)
    for configuration in itertools.islice(shapes.values(), SIDE_BY_SIDE):
        try:
            Trainer(configuration, documents)
        except data.DataError as error:
            raise data.DataError(f"{sweep.data_name or 'names.txt'}: {error}") from None


def _resumed(plan: SweepPlan, may_open: Callable[[str], bool], stack: ExitStack) -> tuple[Sweep, list[str]]:
    assert plan.resume is not None
    if (plan.resume / "sweep.json").is_file():
        stack.enter_context(held(plan.resume))
    sweep = opened(plan.resume)
    if plan.data is not None:
        sweep.data_name = os.fspath(plan.data)
    elif sweep.data_name is not None and not may_open(sweep.data_name):
        raise PlanError(
            f"{plan.resume}: its data is another file: --data {shlex.quote(sweep.data_name)} says that it may be opened"
        )
    refuse_same(data=sweep.data_name, plot=plan.plot)
    documents = data.read_documents(sweep.data_name or data.BUNDLED_NAMES)
    if data.digest(documents) != sweep.digest:
        raise PlanError(f"{plan.resume}: the data is not what the sweep began with: other lines, or another order")
    remove_leftovers(sweep.checkpoint)
    return sweep, documents


def _workers(plan: SweepPlan, sweep: Sweep, stack: ExitStack) -> Workers | None:
    """Other processes, where they are asked for or where one program does not serve all runs; else None."""
    if plan.dask is not None:
        return Workers(stack.enter_context(dask(plan.dask)))
    count = plan.workers
    if count is None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        count = min(cores, len(pieces(list(sweep.states.values()))))
    count = min(count, len(sweep.states))
    return Workers(stack.enter_context(processes(count))) if count > 1 else None


def _rounds(sweep: Sweep, documents: list[str], workers: Workers | None) -> Iterator[list[RunState]]:
    """The runs of a piece after each round that it made."""
    waiting = list(sweep.states.values())
    count = workers.count if workers else 1
    largest = min(SIDE_BY_SIDE, -(-len(waiting) // count))
    seconds = ROUND if workers is None else 4.0 * ROUND
    token = time.time_ns(), os.getpid()
    shared = [Sendable(documents)] if workers else []

    def task(piece: Any, runs: Sequence[RunState], steps: int) -> Task:
        return Task(advanced, shared, (piece, runs, steps, sweep.data_name, sweep.evaluation))

    tasks = deque(task((token, place), runs, 10) for place, runs in enumerate(pieces(waiting, largest)))
    for done, (runs, took) in workers.done(tasks, count) if workers else _here(tasks, documents):
        piece, _, steps, *_ = done.arguments
        yield runs
        going = [run for run in runs if not run.is_over]
        if going:
            steps = max(1, min(10 * steps, int(steps * seconds / max(took, 1e-3))))
            tasks.appendleft(task(piece, going, steps))


def _here(tasks: deque[Task], documents: list[str]) -> Iterator[tuple[Task, Any]]:
    while tasks:
        task = tasks.popleft()
        yield task, task.function(documents, *task.arguments)


def resume_command(plan: SweepPlan, sweep: Sweep) -> str:
    """The command that goes on, as this one did."""
    kept = {"--data": sweep.data_name, "--workers": plan.workers, "--dask": plan.dask, "--plot": plan.plot}
    words = ["gradwalk", "sweep", "--resume", os.fspath(sweep.folder)]
    for name, value in kept.items():
        words += [] if value is None else [name, str(value)]
    return shlex.join(words)
