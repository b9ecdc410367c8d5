"""The figures in the lessons' text: what can be counted is counted again."""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import lesson_figures
import pytest

from gradwalk.lessons import source


def test_counts_are_what_the_lessons_say() -> None:
    """Parameters, nodes and instructions; after a change that is meant, run benchmarks/lesson_figures.py again."""
    recorded, counted = source.figures(), lesson_figures.counts()
    assert {name: recorded[name] for name in counted} == counted


def test_every_figure_is_used() -> None:
    """A figure that no lesson names is not written down."""
    texts = "".join(lesson.path.read_text(encoding="utf-8") for lesson in source.lessons())
    assert [name for name in source.figures() if f"{{{name}}}" not in texts] == []


# ---------------------------------------------------------------- what README and docs say of speed

ROOT = Path(__file__).resolve().parents[2]
UNITS = {"ms": 1e-3, "µs": 1e-6, "ns": 1e-9}
NUMBER = re.compile(r"([\d,.]*\d)(?: (ms|µs|ns)\b)?")
STEP, ROSENBROCK = "GPT training step, ", "Rosenbrock, 1,000 variables"
# the sentence, the row of benchmarks/README.md, and the place of the number in that row
SAID = [
    ("README.md", r"A step of the GPT takes about (.*?);", STEP + "`compiled.train_step(…)`, any name", 0),
    ("README.md", r"takes (\S+ ms) on a plain", STEP + "plain Python / gradwalk", 1),
    ("README.md", r"(\S+ µs) in torch", STEP + "torch / gradwalk", 2),
    ("README.md", r"(\S+ µs) in jitted jax", STEP + "jax / gradwalk", 2),
    ("README.md", r"takes (\S+) times as long", "chain of 10,000 nodes / floats", 0),
    ("README.md", r"about (\S+) times faster than on micrograd", "micrograd / native, Rosenbrock, collector on", 0),
    ("docs/compiled-functions.md", r"become (\d+) instructions", "GPT, forward instructions", 0),
    ("docs/compiled-functions.md", r"the (\S+) nodes of one training", "GPT, forward instructions", 2),
]


def numbers_in(text: str) -> list[float]:
    return [float(digits.replace(",", "")) * UNITS.get(unit, 1.0) for digits, unit in NUMBER.findall(text)]


def measured(row: str) -> list[float]:
    """All numbers of a row that a benchmark printed, from left to right, the bar included."""
    [line] = [
        line
        for line in (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8").splitlines()
        if line.startswith(f"| {row} |")
    ]
    return numbers_in(line[len(row) + 3 :])


@pytest.mark.parametrize(("file", "sentence", "row", "place"), SAID)
def test_what_is_said_is_what_was_measured(file: str, sentence: str, row: str, place: int) -> None:
    """To the digits that are given; new figures go into benchmarks/README.md, and from there everywhere else."""
    text = " ".join((ROOT / file).read_text(encoding="utf-8").split())
    found = re.search(sentence, text)
    assert found, sentence
    assert numbers_in(found[1])[0] == pytest.approx(measured(row)[place], rel=0.05)


def test_no_other_time_is_said_in_the_readme() -> None:
    """A new one needs its row above."""
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    known = [re.search(sentence, text)[0] for file, sentence, _, _ in SAID if file == "README.md"]  # type: ignore[index]
    compared = measured("micrograd / native, Rosenbrock, collector on")[-1] / measured(ROSENBROCK)[0]
    said = re.search(r"compiled some (\d+) times faster than that", text)
    assert said
    assert float(said[1]) == pytest.approx(compared, rel=0.1)
    for known_sentence in (*known, said[0]):
        text = text.replace(known_sentence, "")
    assert re.findall(r"\d (?:ms|µs|ns)\b|\d times\b", text) == []
