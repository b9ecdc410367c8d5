"""The figures in the lessons' text: what can be counted is counted again."""

from __future__ import annotations

import json
import random
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import counts  # noqa: E402
import lesson_figures  # noqa: E402
import pytest  # noqa: E402
import results  # noqa: E402

from gradwalk.lessons import source  # noqa: E402
from gradwalk.training.data import BUNDLED_NAMES  # noqa: E402


def test_counts_are_what_the_lessons_say() -> None:
    """Parameters, nodes, instructions; after a change that is meant: python benchmarks/lesson_figures.py --counts."""
    recorded, counted = source.figures(), lesson_figures.counts()
    assert {name: recorded[name] for name in counted} == counted


def test_products_of_matrices_do_most_of_the_arithmetic() -> None:
    """As lesson 13 says of the compiled GPT."""
    program = lesson_figures.compiled(lesson_figures.scalar_gpt.initial_parameters(random.Random(42))).program
    products = re.findall(r"\[(\d+),(\d+)\] = \S+\[(?:gather |loop )?\d+,(\d+)\] @", str(program))
    assert len(products) == int(source.figures()["compiled_products"])
    assert (
        sum(2 * int(rows) * int(columns) * int(inner) for rows, columns, inner in products) > program.counts.flops / 2
    )


@pytest.mark.untraced
def test_every_figure_is_used() -> None:
    """A figure that no lesson names is not written down."""
    texts = "".join(lesson.path.read_text(encoding="utf-8") for lesson in source.lessons())
    assert [name for name in source.figures() if f"{{{name}}}" not in texts] == []


# ---------------------------------------------------------------- what benchmarks recorded


def test_the_tables_are_the_recorded_ones() -> None:
    """Nobody types a figure into benchmarks/README.md; after a change of results/: python benchmarks/results.py."""
    text = results.README.read_text(encoding="utf-8")
    assert results.filled(text) == text


def test_every_record_is_shown_and_says_where_it_is_from() -> None:
    """Command, day and machine; each table of each file is in benchmarks/README.md."""
    text = results.README.read_text(encoding="utf-8")
    for path in (results.HERE / "results").iterdir():
        record = json.loads(path.read_text(encoding="utf-8"))
        assert record["command"].startswith(("make", "python")), path
        assert record["machine"], path
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", record["date"]), path
        assert [table for table in record["tables"] if f"<!-- {path.stem}: {table} -->" not in text] == []


def test_no_figure_stands_beside_the_tables() -> None:
    """What the text around the recorded tables says of times and sizes holds for every run."""
    text = re.sub(r"<!-- (\w+): .*?<!-- end -->", "", results.README.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert MEASURED.findall(text) == []


def test_recorded_counts_are_what_is_counted() -> None:
    """After a change that is meant: python benchmarks/counts.py --record."""
    recorded = json.loads((results.HERE / "results" / "counts.json").read_text(encoding="utf-8"))["tables"]["counts"]
    assert [line[:3] for line in recorded] == [line[:3] for line in counts.counted()]


# ---------------------------------------------------------------- what README, docs and lessons say

UNITS = {"ms": 1e-3, "µs": 1e-6, "ns": 1e-9}
NUMBER = re.compile(r"([\d,.]*\d)(?: (ms|µs|ns)\b)?")
MEASURED = re.compile(r"[\d.,]*\d (?:ns|µs|ms|s|\w*seconds?|minutes?|[kMG]B|million)\b|\d (?:times|×)")
# the same in words; what a lesson computes by itself (three times as fast) is no measurement
IN_WORDS = re.compile(r"(?:half|third|quarter|tenth) of (?:the|its) time|doubles? the time|\w+ minutes|\d ?%|per ?cent")
CODE = re.compile(r"^```.*?^```$|^    .*?$|`[^`\n]+`", re.DOTALL | re.MULTILINE)
STEP = "GPT training step, "
COUNTED = "scalar GPT, 8 positions"
CALLS = r"native executor is \[(\d+) to (\d+) times faster\]"
# the sentence, the row of benchmarks/README.md, and the place of the number in that row
SAID = [
    ("README.md", r"A step of the GPT takes about (.*?);", STEP + "compiled.train_step(…), any name", 0),
    ("README.md", r"takes (\S+ ms) on a plain", STEP + "plain python / gradwalk", 1),
    ("README.md", r"(\S+ µs) in torch", STEP + "torch / gradwalk", 2),
    ("README.md", r"(\S+ µs) in jitted jax", STEP + "jax / gradwalk", 2),
    ("README.md", r"takes (\S+) times as long", "chain of 10,000 nodes / floats", 0),
    ("README.md", r"about (\S+) times faster than on micrograd", "micrograd / native, Rosenbrock, collector on", 0),
    ("README.md", r"(\S+) times faster than NumPy", "NumPy by hand / compiled value_and_grad, Rosenbrock, 1,000", 0),
    ("docs/compiled-functions.md", r"the (\S+) nodes of one training", COUNTED, 0),
    ("docs/compiled-functions.md", r"become (\d+) instructions", COUNTED, 1),
    ("docs/lessons.md", r"about (\d+ MB)", "what the first run of a cell loads", 0),
]
# numbers that are no result: what is quoted, and what is asked for
NO_RESULTS = {"24,000", "1,000", "10,000"}
PAGES = ["README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))]
TEXTS = [*PAGES, *(str(lesson.path.relative_to(ROOT)) for lesson in source.lessons())]


def text_of(file: str) -> str:
    return " ".join((ROOT / file).read_text(encoding="utf-8").split())


def numbers_in(text: str) -> list[float]:
    return [float(digits.replace(",", "")) * UNITS.get(unit, 1.0) for digits, unit in NUMBER.findall(text)]


def measured(row: str) -> list[float]:
    """All numbers of a row that a benchmark wrote, from left to right, the bar included."""
    lines = results.README.read_text(encoding="utf-8").splitlines()
    [line] = [line for line in lines if line.startswith(f"| {row} |")]
    return numbers_in(line[len(row) + 3 :])


@pytest.mark.parametrize(("file", "sentence", "row", "place"), SAID)
def test_what_is_said_is_what_was_measured(file: str, sentence: str, row: str, place: int) -> None:
    """To the digits that are given, and to the last one where it was counted."""
    found = re.search(sentence, text_of(file))
    assert found, sentence
    near = 0.0 if row == COUNTED else 0.05
    assert numbers_in(found[1])[0] == pytest.approx(measured(row)[place], rel=near)


@pytest.mark.parametrize("name", ["compiled", "functional"])
def test_compiled_is_faster_than_numpy_by_hand(name: str) -> None:
    """As the first sentence says: in every comparison that was recorded."""
    record = json.loads((results.HERE / "results" / f"{name}.json").read_text(encoding="utf-8"))
    ratios = [row[1] for row in record["tables"][name] if re.search("numpy (/|by hand /)", row[0], re.IGNORECASE)]
    assert ratios
    assert min(float(ratio.split()[0]) for ratio in ratios) > 1.0


def test_how_much_faster_a_call_is_than_in_jax() -> None:
    """The least and the most of benchmarks/calls.py."""
    said = re.search(CALLS, text_of("docs/more-machines.md"))
    assert said
    table = json.loads((results.HERE / "results" / "calls.json").read_text(encoding="utf-8"))["tables"]["calls"]
    ratios = [float(row[-1]) for row in table[1:]]
    assert [int(each) for each in said.groups()] == [round(min(ratios)), round(max(ratios))]


@pytest.mark.untraced
@pytest.mark.parametrize("file", TEXTS)
def test_nothing_else_is_said_to_be_measured(file: str) -> None:
    """A time, a size or a large number in the text comes from a file of a benchmark, or is in the list above."""
    text = " ".join(CODE.sub("", (ROOT / file).read_text(encoding="utf-8")).split())
    text = re.sub(CALLS, "", text)
    for other, sentence, _, _ in SAID:
        text = re.sub(sentence, "", text) if other == file else text
    large = set(re.findall(r"\b\d{1,3}(?:,\d{3})+\b", text)) - NO_RESULTS
    assert (MEASURED.findall(text), IN_WORDS.findall(text), large) == ([], [], set())


def test_what_the_examples_of_the_readme_say() -> None:
    """Parameters and names in the comments beside commands."""
    text = text_of("README.md")
    names = len(BUNDLED_NAMES.read_text(encoding="utf-8").split())
    assert f"a {source.figures()['gpt_parameters']}-parameter GPT" in text
    assert f"500 steps on {names:,} bundled census names" in text
