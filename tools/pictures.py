"""Makes the pictures of the README and the start page by what they show: `python tools/pictures.py [FOLDER]`.

All follow their reader's choice of light or dark; the tall ones the site shows on phones in the place of the others. A
test makes the walk again and compares.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from gradwalk import Value
from gradwalk.show.plot import BLUE, FAINT_INK, GRID, INK, PALE_BLUE, PAPER, loss_curve
from gradwalk.show.svg import moving_picture

ASSETS = Path(__file__).resolve().parents[1] / "docs" / "assets"
DARK = {INK: "#e8ecf4", FAINT_INK: "#98a2b5", GRID: "#2d323b", PAPER: "#10141d", PALE_BLUE: "#2c4a6b", BLUE: "#82bbf6"}


def walk(is_tall: bool = False) -> str:
    """relu(a·b + d), forward and back."""
    a, b, d = Value(2.0, label="a"), Value(-3.0, label="b"), Value(10.0, label="d")
    c = a * b
    e = c + d
    f = e.relu()
    c.label, e.label, f.label = "c", "e", "f"
    return moving_picture(f, is_tall) + "\n"


def tall_walk() -> str:
    """The same for phones."""
    return walk(is_tall=True)


def training() -> str:
    """The loss of `gradwalk train`, as the command draws it."""
    return with_dark_colours(trained("--plot", "loss.svg"))


def tall_training() -> str:
    """The same for phones: narrower, with letters of the same size."""
    steps = [json.loads(line) for line in trained("--metrics", "run.jsonl").splitlines()]
    validated = [(step["step"], step["validation_loss"]) for step in steps if "validation_loss" in step]
    return with_dark_colours(loss_curve([step["loss"] for step in steps], validated, size=(336, 336)).svg())


def trained(option: str, name: str) -> str:
    """What `gradwalk train` writes into the file that an option names."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "gradwalk", "train", option, name]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        return (Path(folder) / name).read_text(encoding="utf-8")


def with_dark_colours(picture: str) -> str:
    """The same picture with other colours where its reader prefers dark ones."""
    rules = [f'[{kind}="{light}"] {{ {kind}: {dark} }}' for light, dark in DARK.items() for kind in ("fill", "stroke")]
    style = f"<style>@media (prefers-color-scheme: dark) {{ {' '.join(rules)} }}</style>"
    start = picture.index(">", picture.index("<svg")) + 1
    return picture[:start] + style + picture[start:]


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ASSETS
    makers = {"walk": walk, "walk-tall": tall_walk, "training": training, "training-tall": tall_training}
    for name, make in makers.items():
        (folder / f"{name}.svg").write_text(make(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
