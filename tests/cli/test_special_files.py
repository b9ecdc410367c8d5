"""Pipes, devices and folders where a command expects a file of the user's: one line at once, and they stay so."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import stat
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from running import outcome, with_gradwalk, write

import gradwalk
from gradwalk import cli
from gradwalk.show.play import page

CHAIN = "relu(a*b + d)"
KINDS = ("pipe", "/dev/full", "/dev/null", "/dev/zero", "socket", "folder", "in no folder", "below a file")
# a place in a command for a file, and how its name ends; * is a folder for what the command writes besides
READ = [
    "train --steps 1 --checkpoint */c --data FILE.txt", "train --resume FILE", "sample FILE", "sweep --resume FILE",
    "trace FILE.py:loss", "run FILE.ipynb",
]  # fmt: skip
WRITTEN = [
    "play a*b --html FILE.html", "train --steps 1 --checkpoint FILE", "train --steps 1 --checkpoint FILE --overwrite",
    "train -q --steps 1 --n-embd 4 --eval-documents 1 --samples 1 --checkpoint */c --metrics FILE",
    "train --steps 1 --checkpoint */c --plot FILE.svg",
    "train --steps 1 --checkpoint */c --plot FILE.png", "train moons --steps 1 --plot FILE.svg",
    "sweep --steps 1 --seed 1,2 --folder FILE", "sweep --steps 1 --seed 1,2 --folder */s --plot FILE.svg",
    "lessons FILE",
]  # fmt: skip
# devices take what is no file's alone; a folder is what the lessons are for, and above them others are made
TAKEN = {("play", "/dev/null"), ("metrics", "/dev/null"), ("play", "/dev/zero"), ("metrics", "/dev/zero"),
         ("lessons", "folder"), ("lessons", "in no folder")}  # fmt: skip


class TooLong(BaseException):
    """What no command catches."""


@contextlib.contextmanager
def soon() -> Iterator[None]:
    """Inside, nothing takes longer than some seconds."""

    def stop(*_: Any) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(20)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def made(kind: str, ending: str) -> Path:
    """Something of this kind, under a name with this ending."""
    path = Path(f"file{ending}")
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        import socket

        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(path))
    elif kind == "folder":
        path.mkdir()
    elif kind == "in no folder":
        return "nowhere" / path
    elif kind == "below a file":
        Path("plain").touch()
        return "plain" / path
    else:
        path.symlink_to(kind)
    return path


def invoked(words: list[str]) -> tuple[int, str]:
    if words[0] == "run":
        process = with_gradwalk(*words[1:])
        return process.returncode, process.stderr
    result = CliRunner().invoke(cli.main, words)
    if not isinstance(result.exception, SystemExit | None):
        raise result.exception
    return result.exit_code, result.output if result.exit_code else ""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", READ + WRITTEN)
def test_what_is_no_file(folder: Path, command: str, kind: str) -> None:
    """It is told in a line, before any work, and stays; where it makes sense a device takes what is written."""
    (folder / "out").mkdir()
    template = next(word for word in command.split() if "FILE" in word)
    path = made(kind, Path(template.partition(":")[0]).suffix)
    kept = stat.S_IFMT(path.stat().st_mode) if path.exists() else None
    target = template.replace("FILE" + path.suffix, str(path))
    words = [target if word == template else word.replace("*/", "out/") for word in command.split()]
    with soon():
        status, said = invoked(words)
    if "lessons" not in command:
        assert kept == (stat.S_IFMT(path.stat().st_mode) if path.exists() else None)
    if (command.split()[0], kind) == ("run", "folder"):  # of any name: the folder of a program
        assert status == 1
        assert "can't find '__main__' module" in said
        return
    if any(name in command and kind == each for name, each in TAKEN):
        assert (status, said) == (0, "")
        return
    assert (status, said.count("\n")) == (2, 1), said
    assert "Traceback" not in said
    written = [file for file in (folder / "out").rglob("*") if file.is_file() and "metrics" not in command]
    assert written == []


def test_a_page_for_a_pipe(folder: Path) -> None:
    """That somebody reads, as a shell makes one for `>(...)`; a reader who leaves is told of."""
    os.mkfifo("pipe")
    reader = subprocess.Popen(["sh", "-c", "cat pipe > read.html"])
    with soon():
        while True:  # until it has opened the pipe
            result = CliRunner().invoke(cli.main, ["play", "a*b", "a=1", "b=2", "--html", "pipe"])
            if "a pipe that nobody reads" not in result.output:
                break
    assert (result.exit_code, result.output) == (0, "pipe\n")
    assert reader.wait() == 0
    assert Path("read.html").read_text("utf-8") == page("a*b", {"a": 1.0, "b": 2.0})
    left = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
    closing = threading.Timer(0.2, os.close, [left])
    closing.start()
    with soon():
        result = CliRunner().invoke(cli.main, ["play", "--html", "pipe"])
    closing.join()
    assert (result.exit_code, result.output) == (2, "gradwalk: play: cannot write 'pipe': Broken pipe\n")


def test_a_page_is_replaced_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it cannot be written, the one before stays; who may read it stays as it was."""
    path = folder / "page.html"
    path.write_text("before")
    path.chmod(0o600)
    before = os.write

    def full(descriptor: int, content: bytes) -> int:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "write", full)
    result = CliRunner().invoke(cli.main, ["play", CHAIN, "--html", str(path)])
    monkeypatch.setattr(os, "write", before)
    assert (result.exit_code, result.output.count("\n")) == (2, 1)
    assert path.read_text() == "before"
    assert CliRunner().invoke(cli.main, ["play", CHAIN, "--html", str(path)]).exit_code == 0
    assert (stat.S_IMODE(path.stat().st_mode), list(folder.iterdir())) == (0o600, [path])


def test_what_is_drawn_and_played_from_python(folder: Path) -> None:
    """A pipe that nobody reads is an error there, too."""
    os.mkfifo("pipe.svg")
    with soon(), pytest.raises(OSError, match="a pipe that nobody reads"):
        gradwalk.Value(2.0).draw("pipe.svg")
    with soon(), pytest.raises(OSError, match="a pipe that nobody reads"):
        gradwalk.play(gradwalk.Value(2.0), html="pipe.svg")


def test_lessons_that_are_there_stay(folder: Path) -> None:
    """Also what is no file; a link that leads nowhere is one that is to be made."""
    names = sorted(path.name for path in _written(folder / "first"))
    (folder / "second").mkdir()
    os.mkfifo(folder / "second" / names[0])
    (folder / "second" / names[1]).symlink_to(folder / "elsewhere")
    with soon():
        result = CliRunner().invoke(cli.main, ["lessons", "second"])
    assert f"{len(names) - 1} of {len(names)} lessons written to second; 1 were there already" in result.output
    assert (folder / "second" / names[0]).is_fifo()
    assert json.loads((folder / "elsewhere").read_text("utf-8"))["nbformat"] == 4


def _written(into: Path) -> list[Path]:
    assert CliRunner().invoke(cli.main, ["lessons", str(into)]).exit_code == 0
    return list(into.iterdir())


def test_a_notebook_beside_modules_of_pythons_names(folder: Path) -> None:
    """They are found by its cells, and by nothing that reads it."""
    for name in ("json", "linecache", "errno", "fcntl", "re", "random", "secrets"):
        write(f"beside/{name}.py", "print('own')")
    write("beside/n.ipynb", '{"cells": [{"cell_type": "code", "source": "import json"}]}')
    assert outcome(with_gradwalk("beside/n.ipynb")) == ("own\n", "", 0)


def test_a_picture_of_a_notebook_that_cannot_be_saved(folder: Path) -> None:
    """A pipe has its name: the cells go on."""
    os.mkfifo("n-1.svg")
    os.mkdir("n-2.svg")
    picture = "class Picture:\n    def _repr_svg_(self): return '<svg/>'\n"
    sources = [picture, "Picture()", "Picture()", "Picture()", "print('end')"]
    cells = [{"cell_type": "code", "source": source} for source in sources]
    Path("n.ipynb").write_text(json.dumps({"cells": cells}))
    process = with_gradwalk("n.ipynb")
    assert (process.stdout, process.returncode) == ("end\n", 0)
    assert process.stderr == (
        "gradwalk: n-1.svg: a pipe that nobody reads; the picture is not saved\n"
        "gradwalk: n-2.svg: Is a directory; the picture is not saved\n"
        "gradwalk: saved n-3.svg\n"
    )
