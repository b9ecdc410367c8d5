"""Reads a lesson: a Markdown file in which some fenced blocks mean more.

    ```python             a cell; a ```text block right below it is what it prints
    ```python static      the same for what needs NumPy, which the page's Python does not have: shown there, not live
    ```python exercise    where the learner starts; followed by python check, python answer, which is shown, and for the
                          tests python right, another form of it, and python wrong; setup.py installs neither of them
    ```walk               an expression, and values and settings (`a=2 mode=assign`): the walk is embedded there

`{name}` in the text, for a name in figures.json, is a figure that benchmarks/lesson_figures.py wrote.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from gradwalk.bundled import texts

FOLDER = Path(__file__).resolve().parent
_FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$\n?", re.DOTALL | re.MULTILINE)
_FIGURE = re.compile(r"\{([a-z]\w*)\}")


@dataclass(frozen=True)
class Text:
    """Markdown between the blocks, and blocks that mean nothing here."""

    markdown: str


@dataclass(frozen=True)
class Cell:
    """Python and what it prints; `seconds` is how long it may take in the page, 0 where it cannot run there."""

    code: str
    output: str
    seconds: int

    @property
    def is_live(self) -> bool:
        return self.seconds > 0


@dataclass(frozen=True)
class Exercise:
    """What the learner starts from, the checks, answers that pass, the shown one first, and wrong ones that do not."""

    start: str
    checks: str
    answers: tuple[str, ...]
    wrong: tuple[str, ...]


@dataclass(frozen=True)
class Embedded:
    """An expression to walk through, with values for its leaves and settings of the page."""

    expression: str
    values: dict[str, float]
    settings: dict[str, str]


Part = Text | Cell | Exercise | Embedded


@dataclass(frozen=True)
class Lesson:
    """A lesson: its file, its title, and its parts in order."""

    path: Path
    title: str
    parts: tuple[Part, ...]

    @property
    def name(self) -> str:
        return self.path.stem


class LessonError(ValueError):
    """A lesson that is not written as the others are."""


def lessons() -> list[Lesson]:
    """All lessons in order.

    >>> lessons()[0].title
    'What a derivative tells'
    """
    return [read(FOLDER / name, text) for name, text in files(FOLDER).items() if name.endswith(".md")]


@lru_cache(maxsize=1)
def files(folder: Path) -> dict[str, str]:
    """The lessons and their figures, by name; whoever writes one clears the cache."""
    return texts(folder, "*.md", "figures.json")


def read(path: Path, text: str) -> Lesson:
    """One lesson from the text of its file."""
    parts = parts_of(text)
    first = parts[0] if parts else None
    if not isinstance(first, Text) or not first.markdown.startswith("# "):
        raise LessonError(f"{path.name}: expected a title in the first line")
    return Lesson(path, first.markdown.splitlines()[0][2:], tuple(parts))


def parts_of(text: str) -> list[Part]:
    """The parts of a page, figures filled in."""
    parts: list[Part] = []
    blocks: list[tuple[str, str]] = []  # kind and content; text has no kind
    place = 0
    for found in _FENCE.finditer(text):
        blocks += [("", text[place : found.start()]), (found[1].strip(), found[2])]
        place = found.end()
    blocks.append(("", text[place:]))
    blocks = [(kind, body) for kind, body in blocks if kind or body.strip()]
    while blocks:
        kind, body = blocks.pop(0)
        word, *options = kind.split() or [""]
        if word == "python" and "exercise" in options:
            parts.append(_exercise(body, blocks))
        elif word == "python":
            seconds = next((int(option[8:]) for option in options if option.startswith("seconds=")), 10)
            seconds = 0 if "static" in options else seconds
            output = blocks.pop(0)[1] if blocks and blocks[0][0] == "text" else ""
            parts.append(Cell(body, output, seconds))
        elif word == "walk":
            parts.append(_walk(body))
        else:
            parts.append(Text(f"```{kind}\n{body}```\n" if kind else with_figures(body)))
    return parts


def _exercise(start: str, blocks: list[tuple[str, str]]) -> Exercise:
    found: dict[str, list[str]] = {"check": [], "answer": [], "right": [], "wrong": []}
    while blocks and blocks[0][0].removeprefix("python ") in found:
        kind, body = blocks.pop(0)
        found[kind.removeprefix("python ")].append(body)
    if len(found["check"]) != 1 or len(found["answer"]) != 1:
        raise LessonError(f"exercise: expected one check and one answer below {start[:40]!r}")
    return Exercise(start, found["check"][0], (*found["answer"], *found["right"]), tuple(found["wrong"]))


def _walk(body: str) -> Embedded:
    lines = body.strip().splitlines()
    of_pairs = [line for line in lines if all(re.fullmatch(r"\w+=[^=\s]+", word) for word in line.split())]
    pairs = dict(word.split("=") for line in of_pairs for word in line.split())
    values = {name: float(value) for name, value in pairs.items() if _is_number(value) and name != "t"}
    settings = {name: value for name, value in pairs.items() if name not in values}
    return Embedded("\n".join(line for line in lines if line not in of_pairs), values, settings)


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?\d+(\.\d+)?(e-?\d+)?", text) is not None


# ---------------------------------------------------------------- figures


def figures() -> dict[str, str]:
    """Every figure by its name, as it is written in the text."""
    found: dict[str, str] = json.loads(files(FOLDER)["figures.json"])
    return found


def with_figures(text: str) -> str:
    """The text with every `{name}` replaced by its figure; a name that is none is an error."""
    known = figures()

    def figure(found: re.Match[str]) -> str:
        if found[1] not in known:
            raise LessonError(f"figures: {found[1]} is not in figures.json; add it to benchmarks/lesson_figures.py")
        return known[found[1]]

    return _FIGURE.sub(figure, text)
