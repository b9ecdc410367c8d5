"""What a person, or a program, sees of a run: a progress bar, plain lines, one JSON object, or next to nothing.

Which one is chosen by `reporter_for`: a bar needs a terminal, and everything else is plain text.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from gradwalk.expression import printable
from gradwalk.show import terminal_plot

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from gradwalk.training.loop import Record, Trainer

CURVE_MARKS = "⣿◆┤└─"


def encodable(characters: str) -> bool:
    """Whether the output's encoding has these characters."""
    try:
        characters.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


class Telling:
    """What all reporters share: they are entered while the work goes on, and say lines of text."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pass

    def say(self, text: str = "", style: str | None = None) -> None:
        print(printable(text), flush=True)


class OnTerminal:
    """They are said in colour, above a progress bar that is there while the work goes on."""

    _progress: Progress

    def __init__(self, console: Console) -> None:
        self.console = console

    def say(self, text: str = "", style: str | None = None) -> None:
        self.console.print(printable(text), style=style, markup=False, highlight=False, soft_wrap=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._progress.stop()


class Reporter(Telling):
    """Says nothing, but for the checkpoint's path at the end: `--quiet`. The others build on it."""

    def start(self, trainer: Trainer, data_name: str | None, target: Path, long_documents: int) -> None:
        pass

    def step(self, record: Record) -> None:
        pass

    def interrupted(self, summary: dict[str, Any]) -> None:
        saved = f"stopped at step {summary['step']} of {summary['steps']}, saved to {summary['checkpoint']}"
        print(printable(f"{saved}; to go on: {summary['resume_command']}"), file=sys.stderr)

    def finish(self, summary: dict[str, Any], trainer: Trainer) -> None:
        print(summary["checkpoint"])


class JsonReporter(Reporter):
    """One JSON object on stdout, whether the run was finished or stopped."""

    def start(self, trainer: Trainer, data_name: str | None, target: Path, long_documents: int) -> None:
        self._began = time.perf_counter()

    def interrupted(self, summary: dict[str, Any]) -> None:
        print(json.dumps({**summary, "seconds": round(time.perf_counter() - self._began, 3)}, indent=2))

    def finish(self, summary: dict[str, Any], trainer: Trainer) -> None:
        self.interrupted(summary)


class PlainReporter(Reporter):
    """Lines of text: one for each evaluation, then the curve, the samples, and where the checkpoint is."""

    def start(self, trainer: Trainer, data_name: str | None, target: Path, long_documents: int) -> None:
        self._began, self._steps = time.perf_counter(), trainer.configuration.steps
        self._first = trainer.step
        self._recent: list[float] = []
        self._validation = trainer.validation_losses[-1][1] if trainer.validation_losses else None
        name = data_name or "names.txt (bundled)"
        parts = f"{len(trainer.optimiser.parameters):,} parameters, {type(trainer.optimiser).__name__}"
        from gradwalk import engine

        self._trainer = trainer
        running = "compiled" if trainer.configuration.compiled else f"{engine.NAME} engine"
        self.say(f"{name}: {len(trainer.documents):,} documents to train on; {parts}; {running}")
        if trainer.step:
            self.say(f"resumed at step {trainer.step} of {self._steps}")
        if long_documents:
            block = trainer.configuration.block_size
            self.say(
                f"{long_documents:,} documents are longer than the block: only their first {block} characters count"
            )

    def step(self, record: Record) -> None:
        self._recent = [*self._recent[-49:], record.loss]
        self._validation = self._validation if record.validation_loss is None else record.validation_loss
        nothing_set_aside = self._validation is None and record.step % 100 == 0
        if record.validation_loss is not None or nothing_set_aside:
            rate = (record.step - self._first) / max(record.seconds, 1e-9)
            validated = "" if record.validation_loss is None else f"  validation loss {record.validation_loss:.4f}"
            numbers = f"loss {self.recent():.4f}{validated}  {rate:,.0f} steps/s{self._programs_shown()}"
            self.say(f"step {record.step:>{len(str(self._steps))}}/{self._steps}  {numbers}")

    def _programs_shown(self) -> str:
        made = self._trainer.programs
        return "" if made is None else f"  {made} program{'s' * (made != 1)}"

    def recent(self) -> float:
        return sum(self._recent) / len(self._recent)

    def finish(self, summary: dict[str, Any], trainer: Trainer) -> None:
        if len(trainer.losses) > 1:
            self.say()
            self.draw_curve(trainer)
        self.say()
        losses = f"loss {summary['loss']:.4f} (mean of the last 50 steps)" if trainer.losses else "no steps made"
        if summary["validation_loss"] is not None:
            losses += f", validation loss {summary['validation_loss']:.4f}"
        self.say(f"{losses}, {time.perf_counter() - self._began:.1f} s")
        if summary["samples"]:
            self.say("made up: " + ", ".join(summary["samples"]), "bold")
        self.say(f"checkpoint: {summary['checkpoint']}")
        self.say(f"more samples: {summary['sample_command']}")
        if not summary["finished"]:
            self.say(f"to go on: {summary['resume_command']}")

    def draw_curve(self, trainer: Trainer) -> None:
        ascii_only = not encodable(CURVE_MARKS)
        window = max(1, min(50, len(trainer.losses) // 10))
        means = terminal_plot.smoothed(trainer.losses, window)
        points = [(float(step), mean) for step, mean in enumerate(means, 1)]
        marks = [(float(step), loss) for step, loss in trainer.validation_losses]
        mark = "o" if ascii_only else "◆"
        self.say(
            f"loss (mean of {window}) by step; {mark} validation loss" if marks else f"loss (mean of {window}) by step"
        )
        for line in terminal_plot.curve(points, marks, ascii_only=ascii_only):
            self.say(line, "cyan")


class TerminalReporter(OnTerminal, PlainReporter):
    """The same with a progress bar and colour, on a terminal."""

    REFRESH = 0.05  # seconds; drawing more often would only cost time

    def __enter__(self) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        losses = "loss {task.fields[loss]}  validation {task.fields[validation]}"
        narrow = self.console.width < 100
        speed = "{task.fields[rate]}" + ("/s" if narrow else " steps/s") + "{task.fields[programs]}"
        left = () if narrow else (TextColumn("left"),)
        self._progress = Progress(
            TextColumn("step"), MofNCompleteColumn(), BarColumn(bar_width=None), TextColumn(losses), TextColumn(speed),
            TimeRemainingColumn(compact=True), *left, console=self.console, auto_refresh=False,
        )  # fmt: skip
        self._task = self._progress.add_task(
            "train",
            total=self._steps,
            completed=self._first,
            loss="-",
            rate="-",
            validation=self._validation_shown(),
            programs="",
        )
        self._drawn = 0.0
        self._progress.start()

    def _validation_shown(self) -> str:
        return "-" if self._validation is None else f"{self._validation:.4f}"

    def step(self, record: Record) -> None:
        self._recent = [*self._recent[-49:], record.loss]
        if record.validation_loss is not None:
            self._validation = record.validation_loss
        now = time.perf_counter()
        if now - self._drawn < self.REFRESH and record.step < self._steps:
            return
        self._drawn = now
        rate = (record.step - self._first) / max(record.seconds, 1e-9)
        self._progress.update(
            self._task, completed=record.step, refresh=True, loss=f"{self.recent():.4f}", rate=f"{rate:,.0f}",
            validation=self._validation_shown(), programs=self._programs_shown(),
        )  # fmt: skip


KINDS = Reporter, JsonReporter, PlainReporter, TerminalReporter


def reporter_for(quiet: bool, as_json: bool, kinds: Sequence[Any] = KINDS) -> Any:
    """One of these four kinds: `quiet` comes after `as_json`, and a bar is for a terminal."""
    silent, json, plain, on_terminal = kinds
    if as_json or quiet:
        return json() if as_json else silent()
    if not sys.stdout.isatty():
        return plain()
    from rich.console import Console

    return on_terminal(Console())
