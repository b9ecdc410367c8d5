"""What the documentation shows is what happens: doctests of every module, code blocks of the README."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest
from measures import python

import gradwalk

MODULES = ["gradwalk"] + [
    module.name
    for module in pkgutil.walk_packages(gradwalk.__path__, "gradwalk.")
    if not module.name.endswith(("._native", ".__main__", ".to_jax", ".jax_models"))  # the last two: make scale
]
ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted(path for path in (ROOT / "docs").glob("*.md") if path.name != "ops.md")]


@pytest.mark.parametrize("name", MODULES)
def test_doctests(name: str) -> None:
    """Every example in the module's docstrings gives what it says."""
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


def test_doctests_of_the_other_engine() -> None:
    """Functions that are C in one engine and Python in the other have the same examples; doctest finds the second."""
    program = "import doctest, gradwalk.composites as composites; print(*doctest.testmod(composites))"
    done = python(program, GRADWALK_ENGINE="reference")
    failed, attempted = map(int, done.stdout.splitlines()[-1].split())
    assert failed == 0, done.stdout
    assert attempted > 10


def test_there_are_doctests() -> None:
    """The test above is about something."""
    assert sum(doctest.testmod(importlib.import_module(name)).attempted for name in MODULES) > 20


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_on_the_page(page: Path) -> None:
    """Its Python blocks run one after the other, and print what the text blocks below them say."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```python(?: static| seconds=\d+)?\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    promised = re.findall(r"^```text\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    done = python("\n".join(blocks))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "".join(promised)


README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```\n```text\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(("block", "promised"), BLOCKS, ids=lambda text: text.splitlines()[-1])
def test_block_of_the_readme_runs_when_pasted_alone(block: str, promised: str) -> None:
    """Each imports what it uses."""
    done = python(block)
    assert (done.returncode, done.stdout, done.stderr) == (0, promised, "")


def test_every_block_of_the_readme_is_tried() -> None:
    """Each has what it prints right below it."""
    assert len(BLOCKS) == README.count("```python\n") > 2
