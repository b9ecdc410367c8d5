"""Every operation and every composite, in every mode of both engines: tests/contributing/every_mode.py, run on each."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.unsanitized
@pytest.mark.parametrize("engine", ["native", "reference"])
def test_right_in_every_mode(engine: str) -> None:
    """Plain, compiled, exact, in a batch, in many rows, at jumps, and to second order."""
    script = Path(__file__).with_name("every_mode.py")
    done = subprocess.run(
        [sys.executable, str(script)],
        env=os.environ | {"GRADWALK_ENGINE": engine},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == ""
