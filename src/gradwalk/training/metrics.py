"""Metrics as JSON lines, one per step: what a run measured, for other programs to read while it goes on."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from gradwalk.training.checkpoint import replace_file
from gradwalk.training.loop import Record


class MetricsError(ValueError):
    """A file that metrics cannot be added to."""


class MetricsFile:
    """Appends a line for each record; with `resumed_at`, lines of later steps are dropped first, and made again."""

    def __init__(self, path: str | os.PathLike[str], resumed_at: int | None = None) -> None:
        if resumed_at is not None and Path(path).exists():
            kept = kept_lines(Path(path).read_bytes(), resumed_at, os.fspath(path))
            replace_file(path, b"".join(kept))
            self._file = open(path, "a", encoding="utf-8", buffering=1)  # noqa: SIM115  # closed by close()
        else:
            self._file = open(path, "w", encoding="utf-8", buffering=1)  # noqa: SIM115

    def add(self, record: Record) -> None:
        line: dict[str, Any] = {"step": record.step, "loss": record.loss, "lr": record.lr}
        if record.validation_loss is not None:
            line["validation_loss"] = record.validation_loss
        self._file.write(json.dumps({**line, "seconds": round(record.seconds, 6)}) + "\n")

    def close(self) -> None:
        self._file.close()


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
        except (ValueError, KeyError, TypeError):
            if number == len(lines) and not line.endswith(b"\n"):
                break
            raise MetricsError(f"{name}: line {number} is not a line of metrics; nothing was written") from None
    return kept
