"""Metrics as JSON lines, one per step: what a run measured, for other programs to read while it goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gradwalk.files import replace_file, special_file, without_waiting
from gradwalk.training.loop import Record


class MetricsError(ValueError):
    """A file that metrics cannot be added to."""


class MetricsFile:
    """Appends a line for each record; with `resumed_at`, lines of later steps are dropped first, and made again.

    A file that is there is replaced only with `overwrite`; a device or a pipe that somebody reads is written to.
    """

    def __init__(self, path: str | os.PathLike[str], resumed_at: int | None = None, overwrite: bool = False) -> None:
        special = special_file(path) is not None
        mode = "w" if overwrite or special or Path(path).is_dir() else "x"  # a folder has words of its own
        if resumed_at is not None and not special and Path(path).exists():
            kept = kept_lines(Path(path).read_bytes(), resumed_at, os.fspath(path))
            replace_file(path, b"".join(kept))
            mode = "a"
        self._file = open(path, mode, encoding="utf-8", buffering=1, opener=without_waiting)  # noqa: SIM115

    def add(self, record: Record) -> None:
        line: dict[str, Any] = {"step": record.step, "loss": record.loss, "lr": record.lr}
        if record.validation_loss is not None:
            line["validation_loss"] = record.validation_loss
        self._tried(self._file.write, json.dumps({**line, "seconds": round(record.seconds, 6)}) + "\n")

    def close(self) -> None:
        self._tried(self._file.close)

    def _tried(self, what: Callable[..., object], *given: str) -> None:
        try:
            what(*given)
        except OSError as error:  # with its name: or it would be taken for our own output's, whose reader may go
            raise MetricsError(f"{self._file.name}: {error.strerror}") from None


def kept_lines(content: bytes, last_step: int, name: str) -> list[bytes]:
    """The lines up to a step; the last line may be cut short, where a run was killed as it wrote it.

    >>> kept_lines(b'{"step": 1}\\n{"step": 2}\\n{"st', 1, "metrics.jsonl")
    [b'{"step": 1}\\n']
    """
    kept = []
    lines = content.splitlines(keepends=True)
    for number, line in enumerate(lines, 1):
        try:
            step = json.loads(line)["step"]
            if step <= last_step:
                kept.append(line)
        except (ValueError, KeyError, TypeError, RecursionError):
            if number == len(lines) and not line.endswith(b"\n"):
                break
            raise MetricsError(f"{name}: line {number} is not a line of metrics; nothing was written") from None
    return kept
