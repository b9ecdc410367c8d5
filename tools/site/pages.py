"""Which pages the site has, in the order of its navigation, and which file each comes from."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import reference

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "src"))

from gradwalk.lessons import source  # noqa: E402

# the pages of each section; every lesson is a page of its section, too
SECTIONS = {
    "Start": ("index", "lessons"),
    "Lessons": (),
    "How-to": ("derivatives", "physics", "compiled-functions", "more-machines", "nan", "training"),
    "Coming from": ("from-micrograd", "coming-from"),
    "Reference": ("reference", "ops", "platforms"),
    "Design": ("design", "benchmarks"),
    "More": ("teachers", "contributing"),
}
# pages besides the lessons whose Python runs in the page, but for the blocks that are marked static
LIVE = (
    "index", "derivatives", "physics", "compiled-functions", "more-machines", "nan", "training", "from-micrograd",
    "coming-from", "design", "teachers",
)  # fmt: skip
ELSEWHERE = {"benchmarks": ROOT / "benchmarks" / "README.md"}  # pages that are not in docs/


@dataclass
class Page:
    """A page: its address below the site's root, its title, its file, and the parts it is made of."""

    address: str
    title: str
    path: Path
    parts: list[source.Part]

    @property
    def up(self) -> str:
        """The way from this page to the site's root."""
        return "../" * self.address.count("/")


def sections() -> dict[str, list[Page]]:
    """Every section of the navigation with its pages."""
    found = {title: [document(name) for name in names] for title, names in SECTIONS.items()}
    found["Lessons"] += [
        Page(f"lessons/{lesson.name}/", lesson.title, lesson.path, list(lesson.parts)) for lesson in source.lessons()
    ]
    return found


def document(name: str) -> Page:
    """A page that is no lesson."""
    path = ELSEWHERE.get(name, ROOT / "docs" / f"{name}.md")
    text = reference.markdown() if name == "reference" else path.read_text(encoding="utf-8")
    title = next(line[2:] for line in text.splitlines() if line.startswith("# "))
    parts = source.parts_of(text) if name in LIVE else [source.Text(text)]
    return Page("" if name == "index" else f"{name}/", title, path, parts)
