"""One run of `gradwalk train`: from options to a trained model, with checkpoints, metrics and a way to stop.

What a person sees of it is in `report.py`, how options are spelled in `commands.py`.
"""

from __future__ import annotations

import itertools
import os
import random
import shlex
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

from gradwalk import engine
from gradwalk.files import Held, refuse_same, remove_leftovers, replace_file
from gradwalk.training import data
from gradwalk.training.checkpoint import (
    DAMAGES,
    Checkpoint,
    CheckpointError,
    load,
    save,
)
from gradwalk.training.loop import Configuration, NotFiniteError, Trainer, configuration_of
from gradwalk.training.metrics import MetricsFile
from gradwalk.training.report import Reporter
from gradwalk.training.sampling import sample

CHANGEABLE = ("steps",)  # what a resumed run may have otherwise than the run before
EVALUATION = {"every": 100, "documents": 200}  # where neither the command line nor the checkpoint says otherwise


@dataclass(frozen=True)
class Plan:
    """What the command line asked for, besides the configuration."""

    data: Path | None = None  # None: the bundled names
    resume: Path | None = None
    checkpoint: Path | None = None  # None: the resumed one, or a new name in the current folder
    checkpoint_every: int = 100
    evaluate_every: int | None = None  # None, both: as the resumed run did, or as usual
    evaluated_documents: int | None = None
    stop_after: int | None = None
    overwrite: bool = False
    metrics: Path | None = None
    plot: Path | None = None
    samples: int = 20
    workers: int | None = None  # processes that share the work of a step
    dask: str | None = None  # or the address of a cluster


class PlanError(ValueError):
    """Options that do not go together, or a file that is in the way."""


def run(
    plan: Plan, options: dict[str, Any], given: set[str], reporter: Reporter, may_open: Callable[[str], bool]
) -> int:
    """Train as asked; the exit status. `options` are fields of Configuration, `given` those that were typed.

    `may_open` is asked about a data file that only the checkpoint names.
    """
    with closing(Held()) as held:
        return _run(plan, options, given, reporter, may_open, held)


def _run(
    plan: Plan, options: dict[str, Any], given: set[str], reporter: Reporter, may_open: Callable[[str], bool],
    held: Held,
) -> int:  # fmt: skip
    goes_on_in = plan.resume if plan.checkpoint in (None, plan.resume) else None
    if goes_on_in is not None:
        _hold(held, goes_on_in)  # before it is read: another run may be about to save
    checkpoint = load(plan.resume) if plan.resume else None
    evaluation = {**EVALUATION, **(checkpoint.evaluation if checkpoint else {})}
    evaluation["every"] = plan.evaluate_every or evaluation["every"]
    evaluation["documents"] = plan.evaluated_documents or evaluation["documents"]
    trainer, data_name = _trainer(plan, checkpoint, options, given, evaluation["documents"], may_open)
    check_workers(plan, trainer.configuration)
    for own in ("resume", "checkpoint"):  # these two may be one
        refuse_same(data=data_name, **{own: getattr(plan, own)}, metrics=plan.metrics, plot=plan.plot)

    def save_to(path: Path, new: bool = False) -> None:
        _save(replace(trainer.checkpoint(data_name), evaluation=evaluation), path, new, held)

    if plan.metrics and plan.resume is None and not plan.overwrite and plan.metrics.is_file():
        raise PlanError(f"{plan.metrics}: there is a file already; --overwrite replaces it")
    if plan.metrics:
        with closing(Held()) as metrics_held:  # what another run has is better known before the first save
            _hold(metrics_held, plan.metrics)
    if goes_on_in is not None:
        target = goes_on_in
        remove_leftovers(target)
    else:
        target = _first_save(plan, data_name, save_to, held)
    resumed_at = None if checkpoint is None else trainer.step
    metrics = MetricsFile(plan.metrics, resumed_at, plan.overwrite) if plan.metrics else None
    first = trainer.step
    reporter.start(trainer, data_name, target, long_documents(trainer))
    with (
        workers_for(plan) as trainer.executor,
        stop_signals() as stop,
        closing(metrics) if metrics else nullcontext(),
        reporter,
    ):
        try:
            for record in trainer.run(plan.stop_after, evaluation["every"]):
                if metrics:
                    metrics.add(record)
                reporter.step(record)
                if trainer.step % plan.checkpoint_every == 0:
                    save_to(target)
                if stop.received:
                    break
        except NotFiniteError:  # what was saved last is better than the step before this one
            raise
        except Exception:  # the disk is full, nobody reads on, workers died, memory ended: what was learnt is kept
            if trainer.is_between_steps and trainer.step > first:
                with suppress(Exception):
                    save_to(target)
            raise
        if trainer.step > first:
            save_to(target)
    finished = trainer.step >= trainer.configuration.steps
    summary = summary_of(trainer, plan, data_name, target, first)
    if stop.received and not finished:
        reporter.interrupted(summary)
        return 128 + stop.received
    if plan.plot:
        write_plot(trainer, plan.plot)
    reporter.finish(summary, trainer)
    return 0


# ---------------------------------------------------------------- before the first step


def _trainer(
    plan: Plan, checkpoint: Checkpoint | None, options: dict[str, Any], given: set[str], evaluated_documents: int,
    may_open: Callable[[str], bool],
) -> tuple[Trainer, str | None]:  # fmt: skip
    if checkpoint is None:
        documents = data.read_documents(plan.data or data.BUNDLED_NAMES)
        try:
            trainer = Trainer(Configuration(**options), documents, evaluated_documents=evaluated_documents)
        except data.DataError as error:
            raise data.DataError(f"{plan.data or 'names.txt'}: {error}") from None
        return trainer, os.fspath(plan.data) if plan.data else None
    try:
        stored = configuration_of(checkpoint)
        for name in sorted(given - set(CHANGEABLE)):
            if options[name] != getattr(stored, name):
                was: object = getattr(stored, name)
                if name == "compiled":
                    name, was = "engine", "compiled" if was else "not compiled"
                raise PlanError(f"--{name.replace('_', '-')} cannot change when a run is resumed: it is {was}")
        configuration = replace(stored, **{name: options[name] for name in CHANGEABLE if name in given})
        if configuration.steps < checkpoint.step:
            raise PlanError(f"--steps {configuration.steps}: the checkpoint is at step {checkpoint.step} already")
        data_name: str | None = os.fspath(plan.data) if plan.data else checkpoint.data.get("name")
        if plan.data is None and data_name is not None and not may_open(data_name):
            raise PlanError(f"its data is another file: --data {shlex.quote(data_name)} says that it may be opened")
        documents = data.read_documents(data_name or data.BUNDLED_NAMES)
        return Trainer.resumed(checkpoint, documents, configuration, evaluated_documents), data_name
    except (PlanError, CheckpointError) as error:
        raise type(error)(f"{plan.resume}: {error}") from None
    except data.DataError as error:
        raise data.DataError(f"{error} (the data of {plan.resume}; --data says where it is now)") from None
    except DAMAGES as error:
        raise CheckpointError(f"{plan.resume}: a damaged checkpoint ({error})") from None


def _first_save(plan: Plan, data_name: str | None, save_to: Callable[[Path, bool], None], held: Held) -> Path:
    """Save the run under its name, before its first step: whether that is possible is better known before than after.

    Of several runs that are started at once, each takes a name of its own.
    """
    for path in [plan.checkpoint] if plan.checkpoint else _new_names(Path(data_name or data.BUNDLED_NAMES).stem):
        replaces = plan.overwrite and path == plan.checkpoint
        if replaces or not (path.exists() or path == plan.metrics):
            remove_leftovers(path)
            with suppress(FileExistsError):
                save_to(path, True)
                return path
        if replaces:
            _hold(held, path)
            save_to(path, False)
            return path
    raise PlanError(f"{path}: there is a file already; --resume {path} goes on with it, --overwrite replaces it")


def _new_names(stem: str) -> Iterable[Path]:
    """Where to save if nobody says: an earlier run is never overwritten by accident."""
    yield Path(f"gradwalk-{stem}.safetensors")
    for number in itertools.count(2):
        yield Path(f"gradwalk-{stem}-{number}.safetensors")


def _hold(held: Held, path: Path) -> None:
    """Two runs that save at one place would lose what one of them learnt."""
    if not held.take(path):
        raise PlanError(f"{path}: another gradwalk train is at work on it")


def _save(checkpoint: Checkpoint, target: Path, new: bool, held: Held) -> None:
    try:
        save(checkpoint, target, new, held)
    except FileExistsError:
        raise
    except OSError as error:
        kept = "; the checkpoint written last is still there" if target.is_file() else ""
        raise OSError(
            error.errno, f"{error.strerror or error} (step {checkpoint.step} was not saved{kept})", str(target)
        ) from None


def workers_for(plan: Plan) -> AbstractContextManager[Executor | None]:
    """What shares the work of a step, if anything does."""
    from gradwalk.workers import dask, processes

    if plan.dask is not None:
        return dask(plan.dask)
    return nullcontext() if plan.workers in (None, 1) else processes(plan.workers)


def check_workers(plan: Plan, configuration: Configuration) -> None:
    """Whether there is work for several, and who they are."""
    if plan.workers is not None and plan.dask is not None:
        raise PlanError("--workers and --dask: expected one of them, got both")
    if plan.workers in (None, 1) and plan.dask is None:
        return
    asked = "--dask" if plan.workers is None else "--workers"
    if not configuration.compiled:
        raise PlanError(f"{asked}: expected the compiled engine, others make a step in one process")
    if configuration.batch_size == 1:
        raise PlanError(f"{asked}: a step has one document; --batch-size says how many, some hundreds pay")


def long_documents(trainer: Trainer) -> int:
    """How many documents are longer than what the model can see of them."""
    return sum(len(document) > trainer.configuration.block_size for document in trainer.documents)


# ---------------------------------------------------------------- while it runs


class Stop:
    """Whether a signal asked the run to stop, and which."""

    received = 0


@contextmanager
def stop_signals() -> Iterator[Stop]:
    """Inside, Ctrl-C, SIGTERM and SIGHUP are noted, so that a step is never cut in two; a second one stops at once.

    A terminal that is closed may send SIGHUP more than once; and what is ignored, under nohup for instance, stays so.
    """
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def note(number: int, frame: FrameType | None) -> None:
        if stop.received and number != hangup:
            raise KeyboardInterrupt
        stop.received = stop.received or number

    hangup = getattr(signal, "SIGHUP", None)  # there is none on Windows
    asked = [number for number in (signal.SIGINT, signal.SIGTERM, hangup) if number is not None]
    before = {n: signal.signal(n, note) for n in asked if signal.getsignal(n) is not signal.SIG_IGN}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# ---------------------------------------------------------------- after the last step


def summary_of(trainer: Trainer, plan: Plan, data_name: str | None, target: Path, first: int) -> dict[str, Any]:
    """The run in plain numbers and texts: what --json prints."""
    finished = trainer.step >= trainer.configuration.steps
    validated = trainer.validation_losses[-1][1] if trainer.validation_losses else None
    quoted = shlex.quote(os.fspath(target))
    return {
        "step": trainer.step,
        "steps": trainer.configuration.steps,
        "finished": finished,
        "resumed_at": first if plan.resume else None,
        "loss": trainer.recent_loss() if trainer.losses else None,
        "validation_loss": validated,
        "parameters": len(trainer.optimiser.parameters),
        "data": data_name or "names.txt (bundled)",
        "documents": {"training": len(trainer.documents), "evaluated": len(trainer.validation)},
        "engine": engine_of(trainer),
        "programs": trainer.programs,
        "checkpoint": os.fspath(target),
        "sample_command": f"gradwalk sample {quoted}",
        "resume_command": None if finished else resume_command(plan, data_name, target),
        "samples": samples_of(trainer, plan.samples),
        "configuration": asdict(trainer.configuration),
    }


def engine_of(trainer: Trainer) -> str:
    return "compiled" if trainer.configuration.compiled else engine.NAME


def resume_command(plan: Plan, data_name: str | None, target: Path) -> str:
    """The command that goes on with the run, and saves and draws as this one did; the rest is in the checkpoint."""
    kept = {
        "--data": data_name,
        "--checkpoint-every": None if plan.checkpoint_every == Plan.checkpoint_every else plan.checkpoint_every,
        "--metrics": plan.metrics,
        "--plot": plan.plot,
        "--workers": plan.workers,
        "--dask": plan.dask,
    }
    words = ["gradwalk", "train", "--resume", os.fspath(target)]
    for name, value in kept.items():
        words += [] if value is None else [name, str(value)]
    return shlex.join(words)


def samples_of(trainer: Trainer, count: int) -> list[str]:
    """What the model makes up now: the same as `gradwalk sample` prints for its checkpoint."""
    frozen, rng = trainer.model.frozen(), random.Random(0)
    return [sample(frozen, trainer.tokenizer, rng) for _ in range(count)]


def write_plot(trainer: Trainer, path: Path) -> None:
    from gradwalk.show.plot import loss_curve

    title = f"gradwalk: loss by step, {len(trainer.optimiser.parameters):,} parameters"
    replace_file(path, loss_curve(trainer.losses, trainer.validation_losses, title).encoded(path))
