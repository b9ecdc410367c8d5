"""What a person, or a program, sees of a sweep: a bar or lines while it goes on, then a table and the best run."""

from __future__ import annotations

import json
import math
import os
import shlex
import statistics
import sys
import time
from typing import Any

from gradwalk.expression import printable
from gradwalk.training.loop import mean
from gradwalk.training.report import OnTerminal, Telling
from gradwalk.training.sweep import Sweep, loss_of

ROWS = 20  # of a table


class SweepReporter(Telling):
    """Says nothing, but for the best checkpoint's path at the end: `--quiet`. The others build on it."""

    def start(self, sweep: Sweep) -> None:
        pass

    def round(self, sweep: Sweep) -> None:
        pass

    def interrupted(self, sweep: Sweep, resume_command: str) -> None:
        over = f"stopped with {len(sweep.lines)} of {len(sweep.configurations)} runs over, saved in {sweep.folder}"
        print(printable(f"{over}; to go on: {resume_command}"), file=sys.stderr)

    def finish(self, sweep: Sweep, seconds: float) -> None:
        print(sweep.checkpoint)


class JsonSweepReporter(SweepReporter):
    """One JSON object on stdout, whether the sweep was finished or stopped."""

    def interrupted(self, sweep: Sweep, resume_command: str | None) -> None:
        print(json.dumps({
            "folder": os.fspath(sweep.folder),
            "finished": resume_command is None,
            "runs": len(sweep.configurations),
            "best": sweep.best,
            "checkpoint": os.fspath(sweep.checkpoint) if sweep.best else None,
            "results": [sweep.lines[number] for number in sorted(sweep.lines)],
            "resume_command": resume_command,
        }, indent=2))  # fmt: skip

    def finish(self, sweep: Sweep, seconds: float) -> None:
        self.interrupted(sweep, None)


class PlainSweepReporter(SweepReporter):
    """Lines of text: one for each tenth of the way, then the table."""

    def start(self, sweep: Sweep) -> None:
        self._steps = sum(configuration.steps for configuration in sweep.configurations)
        self._told = 10 * sweep.steps_made // max(self._steps, 1)
        count, over = len(sweep.configurations), len(sweep.lines)
        varied = ", ".join(name.replace("_", "-") for name in sweep.varied)
        resumed = f"; {over} are over already" if over else ""
        self.say(f"{sweep.data_name or 'names.txt (bundled)'}: {count:,} runs, by {varied}; in {sweep.folder}{resumed}")

    def round(self, sweep: Sweep) -> None:
        tenths = 10 * sweep.steps_made // max(self._steps, 1)
        if tenths > self._told:
            self._told = tenths
            self.say(f"{tenths * 10:3}%  {self._so_far(sweep)}")

    def _so_far(self, sweep: Sweep) -> str:
        best = "" if sweep.best is None else f"  best {loss_of(sweep.best):.4f}"
        return f"{len(sweep.lines):,}/{len(sweep.configurations):,} runs over{best}"

    def finish(self, sweep: Sweep, seconds: float) -> None:
        self.say()
        for line in table(sweep):
            self.say(line)
        self.say()
        best = sweep.best
        assert best is not None
        options = ", ".join(
            f"{name.replace('_', '-')} {shown(value)}" for name, value in sweep.options(best["run"]).items()
        )
        self.say(f"best: run {best['run']} ({options}), {measured(best)} {loss_of(best):.4f}; {seconds:.1f} s", "bold")
        self.say(f"checkpoint: {sweep.checkpoint}")
        self.say(f"samples: gradwalk sample {shlex.quote(os.fspath(sweep.checkpoint))}")
        self.say(f"every run: {sweep.folder / 'runs.jsonl'}")


class TerminalSweepReporter(OnTerminal, PlainSweepReporter):
    """The same with a progress bar, on a terminal."""

    def start(self, sweep: Sweep) -> None:
        super().start(sweep)
        self._made, self._runs = sweep.steps_made, self._so_far(sweep)

    def __enter__(self) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._progress = Progress(
            TextColumn("steps"), MofNCompleteColumn(), BarColumn(bar_width=None), TextColumn("{task.fields[runs]}"),
            TextColumn("{task.fields[rate]} steps/s"), TimeRemainingColumn(compact=True), console=self.console,
            auto_refresh=False,
        )  # fmt: skip
        self._task = self._progress.add_task(
            "sweep", total=self._steps, completed=self._made, runs=self._runs, rate="-"
        )
        self._began, self._first = time.perf_counter(), self._made
        self._progress.start()

    def round(self, sweep: Sweep) -> None:
        rate = (sweep.steps_made - self._first) / max(time.perf_counter() - self._began, 1e-9)
        self._progress.update(
            self._task, completed=sweep.steps_made, runs=self._so_far(sweep), rate=f"{rate:,.0f}", refresh=True
        )


# ---------------------------------------------------------------- the table


def shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def measured(line: dict[str, Any]) -> str:
    return "loss" if line.get("validation_loss") is None else "validation loss"


def deviation(results: list[float]) -> float:
    """How far they are apart; of what is infinite, or nearly so, that is infinite too.

    >>> deviation([1.0, 3.0]), deviation([1.0]), deviation([1.0, float("inf")])
    (1.4142135623730951, 0.0, inf)
    """
    if len(results) == 1:
        return 0.0
    try:
        return statistics.stdev(results)
    except (ArithmeticError, AttributeError):  # the latter is what statistics makes of an infinity
        return math.inf


def table(sweep: Sweep) -> list[str]:
    """The best settings with the mean over their seeds, or the best runs where each setting has one; then errors."""
    over = [line for line in sweep.lines.values() if "error" not in line]
    settings: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    names = [name for name in sweep.varied if name != "seed"]
    by_seed = "seed" in sweep.varied and bool(names)
    columns = names if by_seed else sweep.varied
    for line in over:
        options = sweep.options(line["run"])
        settings.setdefault(tuple(shown(options[name]) for name in columns), []).append(line)
    numbers = ["runs", "mean", "deviation", "best"] if by_seed else ["run", "loss", "validation"]
    heading = [*(name.replace("_", "-") for name in columns), *numbers]
    rows = []
    for key, lines in sorted(settings.items(), key=lambda each: mean([*map(loss_of, each[1])])):
        results = [loss_of(line) for line in lines]
        if by_seed:
            numbers = [str(len(lines)), *(f"{x:.4f}" for x in (mean(results), deviation(results), min(results)))]
        else:
            found = [lines[0]["loss"], lines[0]["validation_loss"]]
            numbers = [str(lines[0]["run"]), *("-" if loss is None else f"{loss:.4f}" for loss in found)]
        rows.append([*key, *numbers])
    widths = [max(map(len, column)) for column in zip(heading, *rows[:ROWS], strict=True)]
    rows = [heading, *rows]
    told = ["  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows[: ROWS + 1]]
    if len(rows) > ROWS + 1:
        told.append(f"and {len(rows) - ROWS - 1:,} more")
    failed = [line for _, line in sorted(sweep.lines.items()) if "error" in line]
    if failed:
        first = f"the first, run {failed[0]['run']}: {failed[0]['error']}"
        told.append(f"{len(failed):,} run{'s' * (len(failed) > 1)} ended with an error; {first}")
    return told


KINDS = SweepReporter, JsonSweepReporter, PlainSweepReporter, TerminalSweepReporter
