"""Makes the pictures of the README and the start page by what they show: `python tools/pictures.py [FOLDER]`.

Both follow their reader's choice of light or dark. A test makes the walk again and compares.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from gradwalk import Value
from gradwalk.show.plot import BLUE, FAINT_INK, GRID, INK, PALE_BLUE, PAPER
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
    """The same for phones: the site shows walk-tall.svg there in the place of walk.svg."""
    return walk(is_tall=True)


def training() -> str:
    """The loss of `gradwalk train`, as the command draws it."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "gradwalk", "train", "--plot", "loss.svg"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        picture = (Path(folder) / "loss.svg").read_text(encoding="utf-8")
    return with_dark_colours(picture)


def with_dark_colours(picture: str) -> str:
    """The same picture with other colours where its reader prefers dark ones."""
    rules = [f'[{kind}="{light}"] {{ {kind}: {dark} }}' for light, dark in DARK.items() for kind in ("fill", "stroke")]
    style = f"<style>@media (prefers-color-scheme: dark) {{ {' '.join(rules)} }}</style>"
    start = picture.index(">", picture.index("<svg")) + 1
    return picture[:start] + style + picture[start:]


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ASSETS
    for name, make in (("walk", walk), ("walk-tall", tall_walk), ("training", training)):
        (folder / f"{name}.svg").write_text(make(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
