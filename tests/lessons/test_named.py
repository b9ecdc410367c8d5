"""What the text of the pages names is there: files, names of the package, options of the command, targets of make."""

from __future__ import annotations

import pkgutil
import re
from pathlib import Path

import pytest

from gradwalk.cli import main

ROOT = Path(__file__).resolve().parents[2]
LESSONS = ROOT / "src" / "gradwalk" / "lessons"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "benchmarks" / "README.md"]
PAGES += [*sorted((ROOT / "docs").glob("*.md")), *sorted(LESSONS.glob("*.md"))]
# the reader's own, what a recipe makes, and options of other programs
NOT_OURS = {
    "walk.html", "train.py", "src/gradwalk/lessons/NN-name.md", "gradwalk.logcosh_mean", "--help", "--quick",
    "--record", "--tool",
}  # fmt: skip
FILES = [
    str(path.relative_to(ROOT))
    for folder in ("src", "tests", "tools", "docs", "benchmarks", "examples", ".")
    for path in (ROOT / folder).glob("*" if folder == "." else "**/*")
    if path.is_file()
]
OPTIONS = {option for command in main.commands.values() for given in command.params for option in given.opts}
TARGETS = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)


def is_file(name: str) -> bool:
    return any(f"/{path}".endswith(f"/{name}") for path in FILES)


def is_known(name: str) -> bool:
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_is_named_is_there(page: Path) -> None:
    """Blocks of code are run by other tests; this is about the words between them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    words = " ".join(re.findall(r"`([^`\n]+)`", text))
    files = re.findall(r"(?<![\w./-])[\w./-]+\.(?:py|c|h|js|md|json|txt|css|html|toml)(?![\w./])", words)
    names = re.findall(r"\bgradwalk(?:\.[A-Za-z_]\w*)+", words)
    missing = {name for name in files if not is_file(name)} | {name for name in names if not is_known(name)}
    missing |= set(re.findall(r"(?<![\w-])--[a-z][\w-]+", words)) - OPTIONS
    missing |= set(re.findall(r"\bmake (\w+)", words)) - set(TARGETS)
    assert missing - NOT_OURS == set()
