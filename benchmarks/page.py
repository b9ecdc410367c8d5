"""How quick the page is, in Chromium: first paint, an edit of 200 nodes, a scrub of 1,000 nodes and of a GPT.

`python benchmarks/page.py`. A frame is timed in the page's own CPU time (its main thread: script, style, layout and
paint), beside what the clock says: on a machine with other work, only the first tells of the page.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "show"), str(ROOT / "examples")]

import chromium  # noqa: E402
import scalar_gpt  # noqa: E402
from results import Row, parsed_arguments, record, show, table_of  # noqa: E402

import gradwalk  # noqa: E402
from gradwalk.show.play import page  # noqa: E402

FRAMES = 60


def graph_of(count: int) -> Any:
    """A random graph of about this many nodes."""
    source = random.Random(1)
    values = [gradwalk.Value(source.uniform(-1.0, 1.0), label=f"x{i}") for i in range(count // 30)]
    while len(values) < count:
        a, b = source.choice(values[-20:]), source.choice(values)
        values.append(source.choice([a + b, a * b, gradwalk.tanh(a)]))
    return gradwalk.sum(values)


def expression_of(count: int) -> str:
    """An expression of about this many nodes."""
    return " + ".join(f"tanh(w{i % 9}*x{i % 7})*u{i % 5}" for i in range(count // 4))


def gpt_loss() -> Any:
    return scalar_gpt.loss_of(scalar_gpt.initial_parameters(random.Random(1)), scalar_gpt.tokens_of("isabella"))


class Timed:
    """A tab whose frames are timed."""

    def __init__(self, browser: chromium.Browser, shown: Any, folder: Path) -> None:
        self.tab = browser.open(width=1280, height=720)
        self.tab.call("Performance.enable", timeDomain="threadTicks")
        self.tab.show(page(shown), folder)
        self.tab.wait("Boolean(globalThis.gradwalk?.line)", 120.0)
        self.rest()

    def busy(self) -> float:
        metrics = {each["name"]: each["value"] for each in self.tab.call("Performance.getMetrics")["metrics"]}
        return float(metrics["TaskDuration"])

    def rest(self) -> None:
        """Wait until the page has nothing left to do: nobody has a hand on it before."""
        before = -1.0
        while self.busy() > before + 0.002:
            before = self.busy()
            time.sleep(0.3)

    def frame(self, script: str) -> tuple[float, float]:
        """Milliseconds of CPU and of the clock until what a script changed is on the screen."""
        busy, began = self.busy(), time.perf_counter()
        self.tab.run(f"{script}; 0")
        self.tab.settle()
        return 1000.0 * (self.busy() - busy), 1000.0 * (time.perf_counter() - began)

    def scrubbed(self) -> list[tuple[float, float]]:
        """The slider dragged to random places, far apart and close together."""
        source = random.Random(2)
        steps = self.tab.run("gradwalk.line.steps")
        at = [source.randrange(steps) for _ in range(FRAMES // 2)]
        at += [at[-1] // 2 + 3 * k for k in range(FRAMES // 2)]
        # the hand does not rest between two frames, though on a machine with other work the clock may say so
        moving = "requestAnimationFrame(() => clearTimeout(gradwalk.following))"
        return [self.frame(f"gradwalk.player.go({t}, 'scrub'); {moving}") for t in at]

    def typed(self, text: str) -> list[tuple[float, float]]:
        return [self.frame(f"gradwalk.header.on.text({text!r} + ' + {letter}')") for letter in "abcdefgh"]


def told(what: str, frames: list[tuple[float, float]], bar: float) -> Row:
    cpu, clock = ([frame[k] for frame in frames] for k in (0, 1))
    detail = (
        f"median {statistics.median(cpu):.0f}, first {cpu[0]:.0f}; by the clock, median {statistics.median(clock):.0f}"
    )
    return Row(f"{what}, worst frame", max(cpu), "ms", bar, True, detail)


def measured(browser: chromium.Browser, folder: Path) -> Iterator[Row]:
    for what, shown in (("the first example", None), ("200 nodes", graph_of(200))):
        timed = Timed(browser, shown, folder)
        timed.tab.wait("performance.getEntriesByName('first-contentful-paint').length > 0", 60.0)
        painted = timed.tab.run("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        yield Row(f"first paint, {what}", painted, "ms", 500.0, True, f"processor time {1000.0 * timed.busy():.0f}")
        timed.tab.close()
    text = expression_of(200)
    timed = Timed(browser, text, folder)
    yield told(f"an edit, {timed.tab.run('gradwalk.graph.nodes.length')} nodes", timed.typed(text), 50.0)
    timed.tab.close()
    for what, shown in (("scrub, a random graph", graph_of(1000)), ("scrub, a GPT folded up", gpt_loss())):
        timed = Timed(browser, shown, folder)
        yield told(f"{what}, {timed.tab.run('gradwalk.graph.nodes.length'):,} nodes", timed.scrubbed(), 33.0)
        timed.tab.close()


def main() -> None:
    arguments = parsed_arguments(argparse.ArgumentParser(description="Time the page in Chromium."))
    chromium.TIMEOUT = 180.0
    with tempfile.TemporaryDirectory() as name, chromium.started() as browser:
        table = table_of(list(measured(browser, Path(name))))
    show(table)
    if arguments.record:
        record("page", {"page": table}, "Chromium")


if __name__ == "__main__":
    main()
