"""The code of docs/more-machines.md that needs jax: it runs, and jax agrees with the compiled function."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "more-machines.md"


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    known: dict[str, Any] = {}
    text = PAGE.read_text(encoding="utf-8")
    for block in re.findall(r"^```py(?:thon)?(?: static)?\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        exec(block, known)
    known["slope"].data, known["offset"].data = 2.0, 1.0
    leaves, rows = known["step"].numbers(), known["rows"]
    for losses, holds in (known["exported"].call(leaves, rows), known["step"](leaves, rows[0])):
        assert holds.all()
        assert float(losses.ravel()[0]) == pytest.approx(known["loss"](0.5).data, rel=1e-14)
