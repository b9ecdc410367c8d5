"""One run of `gradwalk train`: from options to a trained model, with checkpoints, metrics and a way to stop.

What a person sees of it is in `report.py`, how options are spelled in `commands.py`.
"""

from __future__ import annotations

import os
import random
import shlex
import signal
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

from gradwalk import engine
from gradwalk.training import data
from gradwalk.training.checkpoint import Checkpoint, CheckpointError, load, remove_leftovers, replace_file, save
from gradwalk.training.loop import Configuration, Trainer, configuration_of
from gradwalk.training.metrics import MetricsFile
from gradwalk.training.report import Reporter
from gradwalk.training.sampling import sample

CHANGEABLE = ("steps",)  # what a resumed run may have otherwise than the run before


@dataclass(frozen=True)
class Plan:
    """What the command line asked for, besides the configuration."""

    data: Path | None = None  # None: the bundled names
    resume: Path | None = None
    checkpoint: Path | None = None  # None: the resumed one, or a new name in the current folder
    checkpoint_every: int = 100
    evaluate_every: int = 100
    evaluated_documents: int = 200
    stop_after: int | None = None
    overwrite: bool = False
    metrics: Path | None = None
    plot: Path | None = None
    samples: int = 20


class PlanError(ValueError):
    """Options that do not go together, or a file that is in the way."""


def run(plan: Plan, options: dict[str, Any], given: set[str], reporter: Reporter) -> int:
    """Train as asked; the exit status. `options` are fields of Configuration, `given` those that were typed."""
    checkpoint = load(plan.resume) if plan.resume else None
    trainer, data_name = _trainer(plan, checkpoint, options, given)
    target = _checkpoint_path(plan, data_name)
    _refuse_existing(plan, target)
    remove_leftovers(target)
    if plan.resume is None or target != plan.resume:
        _save(trainer, data_name, target)  # whether it can be written at all is better known before than after
    metrics = MetricsFile(plan.metrics, None if checkpoint is None else trainer.step) if plan.metrics else None
    first = trainer.step
    reporter.start(trainer, data_name, target, long_documents(trainer))
    with stop_signals() as stop, closing(metrics) if metrics else nullcontext(), reporter:
        try:
            for record in trainer.run(plan.stop_after, plan.evaluate_every):
                if metrics:
                    metrics.add(record)
                reporter.step(record)
                if trainer.step % plan.checkpoint_every == 0:
                    _save(trainer, data_name, target)
                if stop.received:
                    break
        except OSError:  # the disk is full, or nobody reads our output any more: what was learnt is kept, if it can be
            with suppress(OSError, ValueError):
                _save(trainer, data_name, target)
            raise
        if trainer.step > first:
            _save(trainer, data_name, target)
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
    plan: Plan, checkpoint: Checkpoint | None, options: dict[str, Any], given: set[str]
) -> tuple[Trainer, str | None]:
    if checkpoint is None:
        documents = data.read_documents(plan.data or data.BUNDLED_NAMES)
        try:
            trainer = Trainer(Configuration(**options), documents, evaluated_documents=plan.evaluated_documents)
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
        documents = data.read_documents(data_name or data.BUNDLED_NAMES)
        return Trainer.resumed(checkpoint, documents, configuration, plan.evaluated_documents), data_name
    except (PlanError, CheckpointError) as error:
        raise type(error)(f"{plan.resume}: {error}") from None
    except data.DataError as error:
        raise data.DataError(f"{error} (the data of {plan.resume}; --data says where it is now)") from None
    except (TypeError, ValueError, KeyError) as error:
        raise CheckpointError(f"{plan.resume}: a damaged checkpoint ({error})") from None


def _checkpoint_path(plan: Plan, data_name: str | None) -> Path:
    if plan.checkpoint or plan.resume:
        return plan.checkpoint or plan.resume or Path()
    stem = Path(data_name or data.BUNDLED_NAMES).stem
    path, number = Path(f"gradwalk-{stem}.safetensors"), 1
    while path.exists():  # an earlier run is never overwritten by accident
        number += 1
        path = Path(f"gradwalk-{stem}-{number}.safetensors")
    return path


def _refuse_existing(plan: Plan, target: Path) -> None:
    if plan.overwrite:
        return
    if target != plan.resume and target.exists():
        raise PlanError(
            f"{target}: there is a file already; --resume {target} goes on with it, --overwrite replaces it"
        )
    if plan.metrics and plan.resume is None and plan.metrics.exists() and plan.metrics.is_file():
        raise PlanError(f"{plan.metrics}: there is a file already; --overwrite replaces it")


def _save(trainer: Trainer, data_name: str | None, target: Path) -> None:
    checkpoint = trainer.checkpoint(data_name)
    try:
        save(checkpoint, target)
    except OSError as error:
        kept = "; the checkpoint written last is still there" if target.is_file() else ""
        raise OSError(
            error.errno, f"{error.strerror or error} (step {trainer.step} was not saved{kept})", str(target)
        ) from None


def long_documents(trainer: Trainer) -> int:
    """How many documents are longer than what the model can see of them."""
    return sum(len(document) > trainer.configuration.block_size for document in trainer.documents)


# ---------------------------------------------------------------- while it runs


class Stop:
    """Whether a signal asked the run to stop, and which."""

    received = 0


@contextmanager
def stop_signals() -> Iterator[Stop]:
    """Inside, Ctrl-C and SIGTERM are noted, so that a step is never cut in two; a second one stops at once."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def note(number: int, frame: FrameType | None) -> None:
        if stop.received:
            raise KeyboardInterrupt
        stop.received = number

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
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
        "resume_command": None if finished else resume_command(plan, target),
        "samples": samples_of(trainer, plan.samples),
        "configuration": asdict(trainer.configuration),
    }


def engine_of(trainer: Trainer) -> str:
    return "compiled" if trainer.configuration.compiled else engine.NAME


def resume_command(plan: Plan, target: Path) -> str:
    """The command that goes on with the run, and saves, measures and draws as this one did."""
    kept = {
        "--checkpoint-every": plan.checkpoint_every,
        "--eval-every": plan.evaluate_every,
        "--eval-documents": plan.evaluated_documents,
        "--metrics": plan.metrics,
        "--plot": plan.plot,
    }
    usual: dict[str, object] = {"--checkpoint-every": Plan.checkpoint_every, "--eval-every": Plan.evaluate_every,
             "--eval-documents": Plan.evaluated_documents}  # fmt: skip
    words = ["gradwalk", "train", "--resume", os.fspath(target)]
    for name, value in kept.items():
        words += [name, str(value)] if value != usual.get(name) else []
    return shlex.join(words)


def samples_of(trainer: Trainer, count: int) -> list[str]:
    """What the model makes up now: the same as `gradwalk sample` prints for its checkpoint."""
    frozen, rng = trainer.model.frozen(), random.Random(0)
    return [sample(frozen, trainer.tokenizer, rng) for _ in range(count)]


def write_plot(trainer: Trainer, path: Path) -> None:
    from gradwalk.show.plot import loss_curve

    title = f"gradwalk: loss by step, {len(trainer.optimiser.parameters):,} parameters"
    replace_file(path, loss_curve(trainer.losses, trainer.validation_losses, title).encoded(path))
