"""Metrics as JSON lines, one per step: what a run measured, for other programs to read while it goes on."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gradwalk.files import locked, special_file, without_waiting
from gradwalk.training.loop import Record


class MetricsError(ValueError):
    """A file that metrics cannot be added to."""


class MetricsFile:
    """Appends a line for each record; with `resumed_at`, lines of later steps are dropped first, and made again.

    A file that is there is replaced only with `overwrite`, and one run at a time has it; a device, or a pipe that is
    read, is written to.
    """

    def __init__(self, path: str | os.PathLike[str], resumed_at: int | None = None, overwrite: bool = False) -> None:
        special = special_file(path) is not None
        replaces = overwrite or resumed_at is not None or Path(path).is_dir()  # a folder has words of its own
        mode = "w" if special else "a" if replaces else "x"  # never emptied before it is ours
        self._file = open(path, mode, encoding="utf-8", buffering=1, opener=without_waiting)  # noqa: SIM115
        try:
            if not special and not locked(self._file.fileno()):
                raise MetricsError(f"{os.fspath(path)}: another gradwalk train is at work on it")
            if mode == "a":
                content = b"" if resumed_at is None else Path(path).read_bytes()
                kept = b"".join(kept_lines(content, resumed_at or 0, os.fspath(path)))
                same = next(part for part in (kept, content, b"") if content.startswith(part) and kept.startswith(part))
                rest = kept[len(same) :].decode()
                os.ftruncate(self._file.fileno(), len(same))
                self._tried(self._file.write, rest)
        except BaseException as error:
            self._file.close()
            if isinstance(error, OSError):
                raise MetricsError(f"{os.fspath(path)}: {error.strerror}") from None
            raise

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
    for number, line in enumerate(io.BytesIO(content), 1):
        try:
            step = json.loads(line)["step"]
            if type(step) is not int:
                raise TypeError("a step that is not a number")
        except (ValueError, KeyError, TypeError, RecursionError):
            if cut_short(line, b'{"step": '):
                break
            raise MetricsError(f"{name}: line {number} is not a line of metrics; nothing was written") from None
        if step <= last_step:
            kept.append(line if line.endswith(b"\n") else line + b"\n")
    return kept


def cut_short(line: bytes, beginning: bytes) -> bool:
    """Whether it is JSON with such a beginning, but without its end."""
    if line.endswith(b"\n") or line[: len(beginning)] != beginning[: len(line)]:
        return False
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return True
    return False
