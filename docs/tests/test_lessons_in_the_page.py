"""Every cell of the lessons and of other pages in the built site, by its own Python; `LESSONS="01 05"` takes some."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from conftest import ROOT
from pages import LIVE

from gradwalk.lessons import source

WANTED = tuple(os.environ.get("LESSONS", "").split()) or ("",)


def live_parts(lesson: source.Lesson) -> list[source.Cell | source.Exercise]:
    """What can be run in the page."""
    return [
        part
        for part in lesson.parts
        if isinstance(part, source.Exercise) or (isinstance(part, source.Cell) and part.is_live)
    ]


OTHERS = [ROOT / "docs" / f"{name}.md" for name in LIVE]
LESSONS = [*source.lessons(), *(source.read(path, path.read_text(encoding="utf-8")) for path in OTHERS)]
LIVELY = [lesson for lesson in LESSONS if live_parts(lesson) and lesson.name.startswith(WANTED)]
MINUTES = 5 * 60.0


def run(tab: Any, number: int, code: str | None = None) -> dict[str, Any]:
    """Run a cell of the page, with other code if there is some, and wait for its outcome."""
    cell = f"gradwalkCells[{number}]"
    if code is not None:
        tab.run(f"void ({cell}.editor.code = {json.dumps(code)})")
    tab.run(f"void ({cell}.outcome = null, {cell}.run())")
    tab.wait(f"{cell}.outcome && !{cell}.isRunning", MINUTES)
    return dict(tab.run(f"{cell}.outcome"))


@pytest.mark.parametrize("lesson", LIVELY, ids=lambda lesson: lesson.name)
def test_every_cell_and_every_exercise(lesson: source.Lesson, host: Any, browser: Any) -> None:
    """Cells print what is recorded; right answers pass, wrong ones and the start do not; nobody else is asked."""
    address = f"{lesson.name}/" if lesson.name in LIVE else f"lessons/{lesson.name}/"
    address = address.removeprefix("index/")
    tab = browser.open(host.address + address, offline=False)
    tab.wait("Boolean(globalThis.gradwalkCells)")
    live = live_parts(lesson)
    assert tab.run("gradwalkCells.length") == len(live)
    assert [address for address in tab.requests if "/python/" in address] == []  # nothing before it is asked for
    for number, part in enumerate(live):
        if isinstance(part, source.Cell):
            outcome = run(tab, number)
            assert (outcome["error"], outcome["text"]) == ("", part.output), part.code
            continue
        for wrong in (part.start, *part.wrong):
            assert run(tab, number, wrong)["error"] != "", wrong
        for right in part.answers:
            assert run(tab, number, right)["error"] == "", right
    assert tab.errors == []
    elsewhere = [address for address in tab.requests if not address.startswith((host.address, "blob:", "data:"))]
    assert elsewhere == []
    tab.close()
