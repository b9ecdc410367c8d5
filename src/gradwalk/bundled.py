"""Texts that belong to the package: a folder of files in the repository, one file where setup.py installed them."""

from __future__ import annotations

from pathlib import Path


def texts(folder: Path, *patterns: str) -> dict[str, str]:
    """What is in these files of a folder, by their names in order."""
    together = folder.with_suffix(".txt")
    if together.exists():  # a form feed and a name before each
        parts = sorted(together.read_text(encoding="utf-8").split("\f")[1:])
        return {name: text for name, _, text in (part.partition("\n") for part in parts)}
    files = sorted(file for pattern in patterns for file in folder.glob(pattern))
    return {file.name: file.read_text(encoding="utf-8") for file in files}
