"""Every example runs as it stands, on both engines where that takes no minutes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gradwalk

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.py"))
QUICK = ("01_one_neuron", "hand_written_step", "black_scholes")  # on the reference engine as well


def output_of(example: Path, engine: str, folder: Path) -> str:
    package = Path(gradwalk.__file__).resolve().parents[1]  # the one under test, installed or not
    environment = os.environ | {"GRADWALK_ENGINE": engine, "PYTHONPATH": str(package)}
    done = subprocess.run(
        [sys.executable, str(example)], capture_output=True, text=True, env=environment, cwd=folder, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_runs(example: Path, tmp_path: Path) -> None:
    """It ends well, says something, and leaves nothing on stderr."""
    assert output_of(example, "native", tmp_path).strip() != ""


@pytest.mark.parametrize("name", QUICK)
def test_both_engines_print_the_same(name: str, tmp_path: Path) -> None:
    """What an example prints does not depend on the engine."""
    (example,) = [path for path in EXAMPLES if path.stem == name]
    assert output_of(example, "reference", tmp_path) == output_of(example, "native", tmp_path)


def test_the_hand_written_step_learns(tmp_path: Path) -> None:
    """The loss that examples/hand_written_step.py prints falls from the first step to the last."""
    (example,) = [path for path in EXAMPLES if path.stem == "hand_written_step"]
    losses = [float(loss) for loss in re.findall(r"loss\s+([\d.]+)", output_of(example, "native", tmp_path))]
    assert len(losses) > 5
    assert losses[-1] < 0.5 * losses[0]
