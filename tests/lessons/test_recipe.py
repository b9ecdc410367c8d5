"""A lesson written by the recipe of docs/contributing.md, by nothing else, becomes a lesson like the others."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from gradwalk.lessons import cells, notebooks, source

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "site"))

import record  # noqa: E402

WRITTEN = """# Twice

There are {gpt_parameters} parameters.

```python
x = 21
2 * x
```

```walk
a * b
a=2 b=-3 t=4
```

```python exercise
def twice(x):
    return x
```
```python check
assert twice(2) == 4, "2 and 2 are 4"
```
```python answer
def twice(x):
    return 2 * x
```
```python wrong
def twice(x):
    return x + 1
```
"""


@pytest.mark.untraced
def test_a_new_lesson(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Recorded by the command that the recipe names, its answers are told apart, and it opens as a notebook."""
    recipe = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8").partition("## A lesson")[2]
    for said in ("tools/site/record.py", "```walk", "python exercise", "python check", "python answer", "python wrong"):
        assert said in recipe
    (tmp_path / "figures.json").write_text((source.FOLDER / "figures.json").read_text(encoding="utf-8"))
    (tmp_path / "15-twice.md").write_text(WRITTEN, encoding="utf-8")
    monkeypatch.setattr(source, "FOLDER", tmp_path)
    monkeypatch.setattr(sys, "argv", ["record.py", "15"])
    record.main()
    [lesson] = source.lessons()
    text, cell, walk, exercise = lesson.parts
    assert isinstance(text, source.Text)
    assert re.search(r"There are 4,064 parameters", text.markdown)
    assert isinstance(cell, source.Cell)
    assert cell.output == "42\n"
    assert isinstance(walk, source.Embedded)
    assert (walk.expression, walk.values, walk.settings) == ("a * b", {"a": 2.0, "b": -3.0}, {"t": "4"})
    assert isinstance(exercise, source.Exercise)
    assert cells.check(exercise.answers[0], exercise.checks, {}).error == ""
    assert "2 and 2 are 4" in cells.check(exercise.wrong[0], exercise.checks, {}).error
    assert "42" in str(notebooks.notebook(lesson))
