"""What `gradwalk train moons` shows: the loss as it falls, the accuracy, and the decision boundary as a picture."""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from gradwalk import engine
from gradwalk.files import replace_file
from gradwalk.show import terminal_plot
from gradwalk.training.loop import NotFiniteError
from gradwalk.training.moons import Moons, Progress, two_moons
from gradwalk.training.report import encodable

MAP_SIZE = (64, 22)  # characters
FRAMES = 15  # a second, at most
PICTURE_CELLS = (210, 138)
STYLES = {"○": "bold yellow", "●": "bold blue", "░": "blue", "o": "bold yellow", "#": "bold blue", ".": "blue"}


def train_and_show(
    steps: int, points: int, noise: float, seed: int, plot: Path | None, quiet: bool, as_json: bool
) -> None:
    began = time.perf_counter()
    moons = Moons(two_moons(points, noise, random.Random(seed)), seed)
    losses = []
    is_watched = sys.stdout.isatty() and not (quiet or as_json)
    with watched(moons) if is_watched else nullcontext(printed) as show:
        for progress in moons.run(steps):
            losses.append(progress.loss)
            if progress.loss - progress.loss != 0.0:
                raise NotFiniteError(f"step {progress.step}: the loss is {progress.loss}")
            if not (quiet or as_json):
                show(progress, steps)
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
        if not is_watched:
            print("\n".join(line.rstrip() for line in map_lines(moons)))
        print(f"accuracy {accuracy:.1%} after {steps} steps, {len(moons.parameters)} parameters, {seconds:.1f} s")
        if plot:
            print(f"picture: {plot}")


def labelled(moons: Moons) -> list[tuple[float, float, bool]]:
    return [(x, y, label > 0) for x, y, label in moons.examples]


def map_lines(moons: Moons) -> list[str]:
    marks = terminal_plot.UNICODE_MARKS if encodable("░○●") else terminal_plot.ASCII_MARKS
    return terminal_plot.region_map(moons.regions(*MAP_SIZE), labelled(moons), moons.limits(), marks)


def line_of(progress: Progress, steps: int) -> str:
    return f"step {progress.step:>4}/{steps}  loss {progress.loss:.4f}  accuracy {progress.accuracy:.0%}"


def printed(progress: Progress, steps: int) -> None:
    """Ten lines of a run, and its first."""
    if progress.step % max(steps // 10, 1) == 0 or progress.step == 1:
        print(line_of(progress, steps), flush=True)


@contextmanager
def watched(moons: Moons) -> Iterator[Callable[[Progress, int], None]]:
    """A terminal in which the boundary moves while the network learns; at the end it stays."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    said, seen = "", 0.0

    def picture() -> Text:
        marks = [(mark, STYLES.get(mark, "")) for line in map_lines(moons) for mark in f"{line}\n"]
        return Text.assemble(*marks, said, no_wrap=True)

    with Live(picture(), console=Console(), auto_refresh=False, redirect_stdout=False) as live:

        def show(progress: Progress, steps: int) -> None:
            nonlocal said, seen
            said = line_of(progress, steps)
            if time.perf_counter() - seen > 1.0 / FRAMES:
                live.update(picture(), refresh=True)
                seen = time.perf_counter()

        yield show
        live.update(picture())  # drawn when it ends


def write_plot(moons: Moons, accuracy: float, steps: int, plot: Path) -> None:
    from gradwalk.show.plot import decision_map

    title = f"two moons: accuracy {accuracy:.0%} after {steps} steps"
    replace_file(
        plot, decision_map(moons.regions(*PICTURE_CELLS), labelled(moons), moons.limits(), title).encoded(plot)
    )
