"""Texts that belong to the package: a folder of files in the repository, one archive where setup.py installed them."""

from __future__ import annotations

from pathlib import Path


def texts(folder: Path, *patterns: str) -> dict[str, str]:
    """What is in these files of a folder, by their names in order."""
    archive = folder.with_suffix(".zip")
    if not archive.exists():
        files = sorted(file for pattern in patterns for file in folder.glob(pattern))
        return {file.name: file.read_text(encoding="utf-8") for file in files}
    import zipfile

    with zipfile.ZipFile(archive) as opened:
        return {name: opened.read(name).decode() for name in opened.namelist()}
