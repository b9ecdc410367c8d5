"""What the tests of the engines measure with: bits, what a call came to, resident size, a fresh interpreter."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

import gradwalk

SOURCE = Path(gradwalk.__file__).parents[1]  # subprocesses import the package under test
INF, NAN = float("inf"), float("nan")


def bits(numbers: Iterable[float]) -> list[int]:
    """The numbers' bit patterns; all nans count as one."""
    array = np.array(list(numbers), dtype=np.float64)
    array[np.isnan(array)] = NAN
    return array.view(np.uint64).tolist()


def outcome(call: Callable[[], Any]) -> str:
    """What a call came to: the repr of its result, or the exception's type and text."""
    try:
        return repr(call())
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def snapshot(root: Any) -> list[tuple[int, int]]:
    """data and grad of every node below the root, to the bit."""
    return [(*bits([node.data]), *bits([getattr(node.grad, "data", node.grad)])) for node in root._topological_order()]


def resident_bytes() -> int:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def growth(round_: Callable[[], Any], rounds: int = 1000) -> tuple[int, int]:
    """By how many bytes the process, and by how many blocks Python's allocator, grew over many rounds."""
    for _ in range(rounds // 4):
        round_()
    gc.collect()
    before = resident_bytes(), sys.getallocatedblocks()
    for _ in range(rounds):
        round_()
    gc.collect()
    return resident_bytes() - before[0], sys.getallocatedblocks() - before[1]


def python(code: str, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in an interpreter of its own."""
    variables = {name: text for name, text in os.environ.items() if name != "GRADWALK_ENGINE"}
    variables |= {"PYTHONPATH": str(SOURCE), **environment}
    command = [sys.executable, *options, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, env=variables, timeout=120, check=False)
