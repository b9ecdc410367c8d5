"""A small model and a few names, so that a run takes milliseconds; and runs in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

TINY_MODEL = ("--n-embd", "4", "--n-head", "2", "--block-size", "4", "--checkpoint-every", "5", "--eval-every", "5")
NAMES = [
    "ada",
    "alan",
    "bea",
    "ben",
    "cleo",
    "dora",
    "elsa",
    "emil",
    "finn",
    "greta",
    "hugo",
    "ida",
    "jan",
    "karl",
    "lea",
    "mia",
    "nora",
    "olga",
    "paul",
    "rosa",
]
COMMAND = [sys.executable, "-c", "from gradwalk.cli import main; main()"]


class Outcome(NamedTuple):
    status: int
    out: str
    err: str


def start(*arguments: object, **settings: object) -> subprocess.Popen[str]:
    """The command line in a process of its own."""
    command = [*COMMAND, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **settings)  # type: ignore[call-overload, no-any-return]


def run_apart(*arguments: object, env: dict[str, str] | None = None, cwd: Path | None = None) -> Outcome:
    process = start(*arguments, env={**os.environ, **(env or {})}, cwd=cwd)
    out, err = process.communicate(timeout=120)
    return Outcome(process.returncode, out, err)
