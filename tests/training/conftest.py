"""Fixtures: a file with a few names, and the command line in this process."""

from __future__ import annotations

import pytest
from small_runs import NAMES, TINY_MODEL, Outcome

from gradwalk import cli


@pytest.fixture
def names_file(tmp_path):
    path = tmp_path / "few.txt"
    path.write_text("\n".join(NAMES) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def gradwalk(capsys, tmp_path, monkeypatch):
    """The command line in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> Outcome:
        with pytest.raises(SystemExit) as exit_:
            cli.main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Outcome(int(exit_.value.code or 0), captured.out, captured.err)

    return run


@pytest.fixture
def train(gradwalk, names_file):
    """`gradwalk train` of the tiny model on a few names."""
    return lambda *arguments: gradwalk("train", "--data", names_file, *TINY_MODEL, *arguments)


@pytest.fixture
def resume(gradwalk, names_file):
    """`gradwalk train --resume` on the same names."""
    return lambda path, *arguments: gradwalk("train", "--resume", path, "--data", names_file, *arguments)
