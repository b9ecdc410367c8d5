"""What `gradwalk train moons` shows: the loss as it falls, the accuracy, and the decision boundary as a picture."""

from __future__ import annotations

import json
import random
import sys
import time
from pathlib import Path

from gradwalk import engine
from gradwalk.show import terminal_plot
from gradwalk.training.checkpoint import replace_file
from gradwalk.training.loop import NotFiniteError
from gradwalk.training.moons import Moons, two_moons
from gradwalk.training.report import printable

MAP_SIZE = (64, 22)  # characters
PICTURE_CELLS = (210, 138)
STYLES = {" ": "", "○": "bold yellow", "●": "bold blue", "░": "blue", "o": "bold yellow", "#": "bold blue", ".": "blue"}


def train_and_show(
    steps: int, points: int, noise: float, seed: int, plot: Path | None, quiet: bool, as_json: bool
) -> None:
    began = time.perf_counter()
    moons = Moons(two_moons(points, noise, random.Random(seed)), seed)
    losses = []
    for progress in moons.run(steps):
        losses.append(progress.loss)
        if progress.loss - progress.loss != 0.0:
            raise NotFiniteError(f"step {progress.step}: the loss is {progress.loss}")
        if not (quiet or as_json) and (progress.step % max(steps // 10, 1) == 0 or progress.step == 1):
            print(
                f"step {progress.step:>4}/{steps}  loss {progress.loss:.4f}  accuracy {progress.accuracy:.0%}",
                flush=True,
            )
    accuracy = moons.accuracy()
    seconds = time.perf_counter() - began
    if plot:
        write_plot(moons, accuracy, steps, plot)
    if as_json:
        summary = {
            "steps": steps, "points": points, "parameters": len(moons.parameters), "losses": losses,
            "accuracy": accuracy, "seconds": round(seconds, 3), "engine": engine.NAME,
            "plot": str(plot) if plot else None,
        }  # fmt: skip
        print(json.dumps(summary))
    elif quiet:
        print(f"{accuracy:g}")
    else:
        show_map(moons)
        print(f"accuracy {accuracy:.1%} after {steps} steps, {len(moons.parameters)} parameters, {seconds:.1f} s")
        if plot:
            print(f"picture: {plot}")


def labelled(moons: Moons) -> list[tuple[float, float, bool]]:
    return [(x, y, label > 0) for x, y, label in moons.examples]


def show_map(moons: Moons) -> None:
    marks = terminal_plot.UNICODE_MARKS if printable("░○●") else terminal_plot.ASCII_MARKS
    lines = terminal_plot.region_map(moons.regions(*MAP_SIZE), labelled(moons), moons.limits(), marks)
    if not sys.stdout.isatty():
        print("\n".join(line.rstrip() for line in lines))
        return
    from rich.console import Console
    from rich.text import Text

    console = Console()
    for line in lines:
        console.print(Text.assemble(*((mark, STYLES[mark]) for mark in line)), no_wrap=True, crop=True)


def write_plot(moons: Moons, accuracy: float, steps: int, plot: Path) -> None:
    from gradwalk.show.plot import decision_map

    title = f"two moons: accuracy {accuracy:.0%} after {steps} steps"
    replace_file(
        plot, decision_map(moons.regions(*PICTURE_CELLS), labelled(moons), moons.limits(), title).encoded(plot)
    )
