"""0 · inf hands on nothing: tests/contributing/zero_times_infinity.py, run on each engine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.unsanitized
@pytest.mark.parametrize("engine", ["native", "reference"])
def test_nothing_in_every_mode(engine: str) -> None:
    """Of every operation and composite: a zero gradient at an infinite slope, and an infinite one at a slope of 0."""
    script = Path(__file__).with_name("zero_times_infinity.py")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        env=os.environ | {"GRADWALK_ENGINE": engine},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == ""
