"""The figures in the lessons' text: what can be counted is counted again."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import lesson_figures

from gradwalk.lessons import source


def test_counts_are_what_the_lessons_say() -> None:
    """Parameters, nodes and instructions; after a change that is meant, run benchmarks/lesson_figures.py again."""
    recorded, counted = source.figures(), lesson_figures.counts()
    assert {name: recorded[name] for name in counted} == counted


def test_every_figure_is_used() -> None:
    """A figure that no lesson names is not written down."""
    texts = "".join(lesson.path.read_text(encoding="utf-8") for lesson in source.lessons())
    assert [name for name in source.figures() if f"{{{name}}}" not in texts] == []
