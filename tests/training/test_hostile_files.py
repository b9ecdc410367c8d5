"""Files that are damaged, hostile, special or contended: one line, nothing lost, nothing replaced, no waiting."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import inspect
import json
import os
import pty
import random
import re
import shlex
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from small_runs import COMMAND, TINY_MODEL, run_apart, start

from gradwalk import cli, files
from gradwalk.files import Held
from gradwalk.training import data, session
from gradwalk.training.checkpoint import CheckpointError, load
from gradwalk.training.loop import Record
from gradwalk.training.metrics import MetricsFile

FLIPS = 2000 if os.environ.get("GRADWALK_SOAK") else 150


def one_line(outcome, *parts):
    """Whether the outcome is one line with these parts in it, and status 2."""
    assert (outcome.status, outcome.err.count("\n")) == (2, 1), outcome
    assert outcome.err.startswith("gradwalk")
    assert all(part in outcome.err for part in parts), outcome.err
    return True


@pytest.fixture
def saved(train, tmp_path):
    path = tmp_path / "saved.safetensors"
    assert train("--steps", 7, "--checkpoint", path).status == 0
    return path


def rewritten(path, change, keep_checksum=False):
    """The file again with another description, and without a checksum, as files of the first version were."""
    with safe_open(path, framework="numpy") as file:
        metadata = file.metadata()
    run = json.loads(metadata["run"])
    run = change(run) or run
    metadata["run"] = run if isinstance(run, str) else json.dumps(run)
    if not keep_checksum:
        del metadata["checksum"]
    save_file(load_file(path), path, metadata)
    return path


# ---------------------------------------------------------------- damage


def test_every_flipped_bit_is_noticed(saved):
    """A bit of a checkpoint flipped anywhere is refused as damage; only the padding of the header may differ."""
    content, source = saved.read_bytes(), random.Random(7)
    header = 8 + int.from_bytes(content[:8], "little")
    spaces = header - len(content[:header].rstrip(b" "))
    places = [*range(64), *(source.randrange(header - spaces) for _ in range(FLIPS)),
              *(source.randrange(header, len(content)) for _ in range(FLIPS))]  # fmt: skip
    for place in places:
        damaged = bytearray(content)
        damaged[place] ^= 1 << source.randrange(8)
        saved.write_bytes(damaged)
        with pytest.raises(CheckpointError):
            load(saved)
    saved.write_bytes(content)
    load(saved)


def test_every_length_is_noticed(saved):
    """A checkpoint cut anywhere, or with something behind its end, is refused."""
    content = saved.read_bytes()
    for length in [*range(0, 64), *range(64, len(content), 997), len(content) - 1]:
        saved.write_bytes(content[:length])
        with pytest.raises(CheckpointError):
            load(saved)
    saved.write_bytes(content + b"more")
    with pytest.raises(CheckpointError):
        load(saved)


def test_files_from_before_checksums_load(saved, resume):
    """A checkpoint without a checksum, and without how often it is evaluated, goes on."""
    rewritten(saved, lambda run: run.pop("evaluation") and None)
    assert resume(saved, "--steps", 9).status == 0
    assert load(saved).step == 9


HOSTILE = {
    "nested": lambda run: '{"step": ' + "[" * 5000 + "]" * 5000 + "}",
    "n_embd 1e308": lambda run: run["configuration"].update(n_embd=1e308),
    "n_embd 10**400": lambda run: run["configuration"].update(n_embd=10**400),
    **{f"batch_size {bad!r}": lambda run, bad=bad: run["configuration"].update(batch_size=bad)
       for bad in (0, -1, "2", [], None, True, 1.5, 10**9)},
    **{f"lr {bad!r}": lambda run, bad=bad: run["configuration"].update(lr=bad)
       for bad in ("0.1", float("nan"), float("inf"), -1, None, {})},
    **{f"step {bad!r:.9}": lambda run, bad=bad: run.update(step=bad) for bad in (10**400, 7.0, True, -7, "7")},
    "steps 10**400": lambda run: run["configuration"].update(steps=10**400),
    "seed None": lambda run: run["configuration"].update(seed=None),
    "n_head 0": lambda run: run["configuration"].update(n_head=0),
    "clip": lambda run: run["configuration"].update(clip="1"),
    "schedule": lambda run: run["configuration"].update(schedule=[]),
    "data number": lambda run: run["data"].update(name=7),
    "data null": lambda run: run["data"].update(name="a\0b"),
    "digest": lambda run: run["data"].update(digest=[]),
    "optimizer list": lambda run: run.update(optimizer=[[1, 2, 3]]),
    "optimizer nested": lambda run: run["optimizer"].update(steps=[[]]),
    "position": lambda run: run.update(order_position=10**400),
    "position float": lambda run: run.update(order_position=1.0),
    "evaluation": lambda run: run.update(evaluation={"every": 0}),
    "evaluation text": lambda run: run.update(evaluation="often"),
    "characters": lambda run: run.update(characters="\x1b[2J\x07"),
    "surrogate": lambda run: run.update(characters="\ud800ab"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_descriptions(saved, resume, gradwalk, name):
    """Whatever somebody writes into the description, both commands say one line, and leave the file as it is."""
    rewritten(saved, HOSTILE[name])
    before = saved.read_bytes()
    assert one_line(resume(saved, "--steps", 9), str(saved))
    outcome = gradwalk("sample", saved)
    assert (outcome.status, outcome.err.count("\n")) in ((2, 1), (0, 0)), outcome
    assert "\x1b" not in outcome.err + outcome.out
    assert saved.read_bytes() == before


@pytest.mark.parametrize("name", ["history.losses", "history.validation_losses", "order.words"])
def test_hostile_tensors(saved, resume, name):
    """Tensors of another type or shape are one line; huge losses are no overflow in the mean."""
    good = load_file(saved)
    with safe_open(saved, framework="numpy") as file:
        metadata = {key: text for key, text in file.metadata().items() if key != "checksum"}
    for changed in (good[name].reshape(1, -1), good[name].astype("int8"), good[name][:0]):
        save_file({**good, name: changed}, saved, metadata)
        assert one_line(resume(saved, "--steps", 9), str(saved))
    save_file({**good, "history.losses": good["history.losses"] * 0 + 1.7e308}, saved, metadata)
    outcome = resume(saved, "--steps", 9)
    assert outcome.status == 0 or one_line(outcome)


def test_huge_options(gradwalk):
    """Numbers beyond all measure on the command line are one line too."""
    for option in ("--steps", "--batch-size", "--n-embd", "--seed", "--warmup"):
        assert one_line(gradwalk("train", option, "1" + "0" * 400))
    assert one_line(gradwalk("train", "--batch-size", 10**9), "batch_size")


def test_damaged_metrics(train, resume, tmp_path):
    """A metrics file that is damaged anywhere but at its end is left alone."""
    train("--steps", 10, "--stop-after", 5, "--checkpoint", "run", "--metrics", "m")
    content = (tmp_path / "m").read_bytes()
    for damaged in (
        b"\0" + content,
        b"[" * 100_000 + b"\n" + content,
        content + b"\xff\n",
        b"[1]\n",
        b'{"step": []}\n',
    ):
        (tmp_path / "m").write_bytes(damaged)
        assert one_line(resume("run", "--metrics", "m"), "m: line")
        assert (tmp_path / "m").read_bytes() == damaged


# ---------------------------------------------------------------- several at once, and what fails on the way


def test_four_runs_at_once_leave_four_checkpoints(names_file, tmp_path):
    """Runs started together in one folder each have a file of their own, and say which."""
    command = ("train", "--data", names_file, *TINY_MODEL, "--steps", 3, "--quiet")
    processes = [start(*command, cwd=tmp_path) for _ in range(4)]
    told = sorted(process.communicate(timeout=120)[0].strip() for process in processes)
    assert told == ["gradwalk-few-2.safetensors", "gradwalk-few-3.safetensors", "gradwalk-few-4.safetensors",
                    "gradwalk-few.safetensors"]  # fmt: skip
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*told, "few.txt"])
    assert all(load(tmp_path / name).step == 3 for name in told)


def test_one_name_for_four_runs(names_file, tmp_path):
    """Of runs that ask for the same name, one gets it; the others say so and write nothing."""
    command = ("train", "--data", names_file, *TINY_MODEL, "--steps", 3, "--quiet", "--checkpoint", "one")
    processes = [start(*command, cwd=tmp_path) for _ in range(4)]
    outcomes = [(process.communicate(timeout=120), process.returncode) for process in processes]
    assert sorted(status for _, status in outcomes) == [0, 2, 2, 2]
    assert all("there is a file already" in err for (_, err), status in outcomes if status)
    assert load(tmp_path / "one").step == 3


@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
def test_writers_of_one_name(tmp_path, monkeypatch, links):
    """Threads that take one name at once: exactly one does, with its whole content, also on systems without links."""
    if not links:
        monkeypatch.setattr(files.os, "link", lambda *_: (_ for _ in ()).throw(OSError(errno.EPERM, "no links")))
    path, taken = tmp_path / "name", []

    def write(number):
        try:
            files.replace_file(path, bytes([number]) * 100_000, new=True)
            taken.append(number)
        except FileExistsError:
            pass

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 1
    assert path.read_bytes() == bytes(taken) * 100_000
    assert list(tmp_path.iterdir()) == [path]


class Failing:
    """The module os, and with it fcntl and open(), whose nth call of those that may fail does."""

    OF_OS = ("open", "fsync", "replace", "link", "unlink", "close", "stat", "fstat", "fchmod", "write", "urandom")
    OF_PATH = ("realpath", "exists", "samestat")
    NAMES = (*OF_OS, *OF_PATH, "flock", "readall")

    def __init__(self, nth=0, error=errno.EIO):
        self.left, self.error, self.failed, self.called = nth, error, "", set()
        self.path = SimpleNamespace(**{**vars(os.path), **{name: self.once(os.path, name) for name in self.OF_PATH}})
        self.locks = SimpleNamespace(**{**vars(fcntl), "flock": self.once(fcntl, "flock")})
        vars(self).update({name: self.once(os, name) for name in self.OF_OS})

    def __getattr__(self, name):
        return getattr(os, name)

    def once(self, module, name):
        real = getattr(module, name)

        def call(*arguments, **named):
            self.called.add(name)
            self.left -= 1
            if self.left == 0:
                self.failed = name
                if name == "close":  # it is closed all the same
                    real(*arguments)
                raise OSError(self.error, os.strerror(self.error))
            return real(*arguments, **named)

        return call

    def opened(self, *arguments, **named):
        file = open(*arguments, **named)  # noqa: SIM115  # as its caller does

        class Reading:
            fileno, readall = file.fileno, staticmethod(self.once(file, "readall"))
            __enter__, __exit__ = (lambda reading: reading), (lambda reading, *given: file.close())

        return Reading()

    def put_into(self, monkeypatch):
        monkeypatch.setattr(files, "os", self)
        monkeypatch.setattr(files, "fcntl", self.locks)
        monkeypatch.setattr(files, "open", self.opened, raising=False)


ERRORS = [errno.ENOSPC, errno.EIO, errno.EINTR, errno.EPERM, errno.EAGAIN, errno.ENOENT]


def test_what_may_fail_is_made_to(tmp_path, monkeypatch):
    """Every function of the system that files.py calls is one of those, but for what looks at names only."""
    source = inspect.getsource(files)
    found = {*re.findall(r"\bos\.(?:path\.)?([a-z]+)\(", source), *re.findall(r"\bfcntl\.([a-z]+)\(", source)}
    assert found - {*Failing.NAMES} == {"fspath", "getpid", "strerror", "dirname"} | {"blocking"} & found


@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
@pytest.mark.parametrize("new", [False, True], ids=["replaced", "new"])
@pytest.mark.parametrize("error", ERRORS, ids=errno.errorcode.get)
def test_every_system_call_fails_once(tmp_path, monkeypatch, new, error, links):
    """Whichever call fails, the file is whole: the old one if that is told of, else the new one; the error names it,
    and nothing is left beside it."""
    if not links:
        monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(OSError(errno.EPERM, "no links")))
    called = set()
    for nth in range(1, 100):
        path = tmp_path / f"file{nth}"
        if not new:
            path.write_bytes(b"old")
        held, failing, told = Held(), Failing(nth, error), None
        with monkeypatch.context() as patched:
            failing.put_into(patched)
            try:
                files.replace_file(path, b"new" * 1000, new, held)
            except OSError as caught:
                told = caught
        found = path.read_bytes() if path.exists() else None
        assert found == (b"new" * 1000 if told is None else None if new else b"old"), failing.failed
        assert told is None or (told.filename, told.filename2) == (str(path), None)
        held.close()
        leftovers = [file.name for file in tmp_path.iterdir() if file.name.endswith(".partial")]
        assert leftovers == [] or failing.failed in ("unlink", "exists"), failing.failed
        files.remove_leftovers(path)
        assert [file.name for file in tmp_path.iterdir() if file.name.endswith(".partial")] == []
        called |= failing.called
        if not failing.failed:
            break
    assert called >= {"open", "write", "fsync", "flock", "realpath", "stat", "close", "link" if new else "replace"}


def test_what_is_written_in_parts(tmp_path, monkeypatch):
    """The system may take less than it is given."""
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, content: real(descriptor, content[:7]))
    files.replace_file(tmp_path / "file", bytes(range(256)))
    assert (tmp_path / "file").read_bytes() == bytes(range(256))


@pytest.mark.parametrize("error", [errno.EIO, errno.EAGAIN, errno.ENOENT], ids=errno.errorcode.get)
def test_every_system_call_of_a_run_fails_once(train, resume, tmp_path, monkeypatch, error):
    """Whichever call fails as a run is read, held and saved: it ends well or in one line, and what was saved stays."""
    path, called = tmp_path / "run", set()
    assert train("--steps", 10, "--stop-after", 5, "--checkpoint", path, "--quiet").status == 0
    whole = path.read_bytes()
    for nth in range(1, 200):
        path.write_bytes(whole)
        failing = Failing(nth, error)
        with monkeypatch.context() as patched:
            failing.put_into(patched)
            outcome = resume(path, "--quiet", "--samples", 0, "--checkpoint-every", 2)
        assert outcome.status == 0 or (failing.failed and one_line(outcome, str(path))), failing.failed
        assert load(path).step == 10 if outcome.status == 0 else load(path).step >= 5
        called |= failing.called
        if not failing.failed:
            break
    assert called >= {"open", "write", "fsync", "flock", "realpath", "stat", "fstat", "close", "replace", "readall"}


# ---------------------------------------------------------------- devices, pipes, closed descriptors


@pytest.fixture
def pipe(tmp_path):
    path = tmp_path / "pipe.svg"
    os.mkfifo(path)
    return path


def test_pipes_are_never_waited_for(names_file, saved, pipe, tmp_path):
    """A pipe that nobody is at the other end of: as data, checkpoint, metrics or picture it is one line."""
    common = ("train", "--data", names_file, *TINY_MODEL, "--steps", 2)
    for command in (("train", "--data", pipe), ("train", "--resume", pipe), ("sample", pipe),
                    (*common, "--checkpoint", pipe), (*common, "--checkpoint", pipe, "--overwrite"),
                    (*common, "--metrics", pipe, "--checkpoint", tmp_path / "a"),
                    (*common, "--plot", pipe, "--checkpoint", tmp_path / "b"),
                    ("train", "moons", "--steps", 1, "--plot", pipe)):  # fmt: skip
        process = start(*command)
        try:
            _, err = process.communicate(timeout=60)
        finally:
            process.kill()
        assert (process.returncode, err.count("\n")) == (2, 1), (command, err)
        assert pipe.is_fifo()


def test_pipes_that_somebody_is_at_work(names_file, pipe, tmp_path):
    """Data from a pipe is read, metrics go into one, and a device may take them."""
    writer = subprocess.Popen(["sh", "-c", f"sleep 0.3; cat {names_file} > {pipe}"])
    outcome = run_apart("train", "--data", pipe, *TINY_MODEL, "--steps", 2, "--checkpoint", tmp_path / "a")
    assert (outcome.status, writer.wait()) == (0, 0)
    reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True)
    common = ("train", "--data", names_file, *TINY_MODEL, "--steps", 2)
    assert run_apart(*common, "--metrics", pipe, "--checkpoint", tmp_path / "b").status == 0
    assert reader.communicate()[0].count('"step"') == 2
    assert run_apart(*common, "--metrics", "/dev/null", "--checkpoint", tmp_path / "c").status == 0


def test_pipes_whose_other_end_takes_its_time(pipe):
    """Data that comes in two parts is read to its end; metrics wait for a reader who does not read yet."""

    other = os.open(pipe, os.O_RDWR)
    os.write(other, b"ada\nbe")

    def write():
        time.sleep(0.2)
        os.write(other, b"n\ncleo\n")
        os.close(other)

    writer = threading.Thread(target=write)
    writer.start()
    assert data.read_documents(pipe) == ["ada", "ben", "cleo"]
    writer.join()

    held = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    received = []

    def read():
        time.sleep(0.2)
        os.set_blocking(held, True)
        while part := os.read(held, 1 << 20):
            received.append(part)

    reader = threading.Thread(target=read)
    reader.start()
    metrics = MetricsFile(pipe)
    for step in range(3000):  # more than a pipe holds
        metrics.add(Record(step, 1.0, 0.1, None, 0.5))
    metrics.close()
    reader.join()
    os.close(held)
    assert b"".join(received).count(b"\n") == 3000


def test_a_reader_of_metrics_that_goes_away_is_told_of(names_file, pipe, tmp_path):
    """It is not taken for the reader of our own output, whose going ends a command in silence; all steps are saved."""
    reader = subprocess.Popen(["head", "-n", "1", pipe], stdout=subprocess.PIPE, text=True)
    common = ("train", "--data", names_file, *TINY_MODEL, "--steps", 2000, "--metrics", pipe)
    outcome = run_apart(*common, "--checkpoint", tmp_path / "a", "--checkpoint-every", 1000000)
    assert reader.communicate()[0].count('"step"') == 1
    assert (outcome.status, f"gradwalk: {pipe}: Broken pipe\n") == (2, outcome.err)
    assert load(tmp_path / "a").step > 0


def test_devices_are_never_replaced(train, gradwalk, tmp_path, monkeypatch):
    """--overwrite replaces files; a device stays a device, also for root."""
    device = tmp_path / "device"
    try:
        os.mknod(device, 0o600 | 0o020000, os.makedev(1, 3))  # as /dev/null
    except PermissionError:
        device = tmp_path / "null"
        device.symlink_to("/dev/null")
    for option in ("--checkpoint", "--plot"):
        named = device if option == "--checkpoint" else device.rename(tmp_path / "device.svg")
        assert one_line(train("--steps", 1, "--overwrite", option, named), "a device, expected a file")
        assert named.is_char_device()


@pytest.mark.parametrize(
    "command",
    [("train", "--steps", "2"), ("train", "--steps", "2", "--json"), ("train", "--steps", "2", "-q"),
     ("train", "moons", "--steps", "2"), ("sample", "saved.safetensors"), ("doctor",), ("doctor", "--json"),
     ("trace", "a*b", "a=2", "b=3"), ("trace", "a*b", "a=2", "b=3", "--json"), ("--help",), ("--version",), (),
     ("play", "a*b", "a=2", "b=3", "--html", "page.html"), ("play", "--serve", "a*b", "a=2", "b=3"),
     ("sweep", "--steps", "2", "--seed", "1,2"), ("lessons", "notebooks")],
    ids=" ".join,
)  # fmt: skip
@pytest.mark.parametrize("redirection", ["> /dev/full", ">&-", "2>&-", "<&- >&- 2>&-", "| true", "2> /dev/full"])
def test_output_that_cannot_be_written(saved, tmp_path, command, redirection):
    """A full device, a closed descriptor, a reader that has gone: at most one line, never a traceback."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    if "--serve" in command and redirection.startswith("2>"):
        return  # its page is served all the same, until somebody stops it
    words = " ".join(f"'{word}'" for word in (*COMMAND, *command))
    done = subprocess.run(
        ["bash", "-c", f"{words} {redirection}"], cwd=tmp_path, capture_output=True, text=True, timeout=100
    )
    assert done.stderr.count("\n") <= 1, done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    if redirection == "> /dev/full":
        assert (done.returncode, done.stderr) == (2, "gradwalk: standard output: No space left on device\n")
    for file in tmp_path.glob("gradwalk-*.safetensors"):
        load(file)


@pytest.mark.parametrize("redirection", ["> /dev/full", ">&-", "2> /dev/full", "<&- >&- 2>&-"])
def test_a_script_whose_output_cannot_be_written(tmp_path, redirection):
    """Ends as under python: what it prints, and says when it cannot, is its own."""
    script = tmp_path / "script.py"
    script.write_text("print('text')\n", "utf-8")
    plain, ours = (
        subprocess.run(
            ["bash", "-c", f"{' '.join(map(shlex.quote, (*words, str(script))))} {redirection}"],
            capture_output=True, text=True, timeout=100,
        )
        for words in ((sys.executable,), (*COMMAND, "run"))
    )  # fmt: skip
    assert (plain.returncode, plain.stderr) == (ours.returncode, ours.stderr)


# ---------------------------------------------------------------- what a checkpoint may make us do


def test_resume_opens_only_what_it_is_told(saved, gradwalk, names_file, monkeypatch):
    """A checkpoint may name any file: it is opened where --data says so, or somebody at a terminal does."""
    assert one_line(gradwalk("train", "--resume", saved, "--steps", 9), f"--data {names_file} says that it may be")
    asked = []
    monkeypatch.setattr("gradwalk.training.commands.may_open", lambda name: asked.append(name) or True)
    assert gradwalk("train", "--resume", saved, "--steps", 9).status == 0
    assert asked == [str(names_file)]


@pytest.mark.parametrize(("answer", "status"), [(b"n\n", 2), (b"y\n", 0)])
def test_somebody_at_a_terminal_is_asked(saved, names_file, answer, status):
    """Whether the file that the checkpoint names may be opened."""
    ours, theirs = pty.openpty()
    command = [*COMMAND, "train", "--resume", str(saved), "--steps", "9", "--quiet"]
    process = subprocess.Popen(command, stdin=theirs, stderr=theirs, stdout=subprocess.DEVNULL)
    os.close(theirs)
    os.write(ours, answer)
    seen = b""
    with contextlib.suppress(OSError):  # Linux: the other side is closed
        while part := os.read(ours, 65536):
            seen += part
    os.close(ours)
    assert process.wait(timeout=60) == status
    assert f"The run's data is {names_file}. Open that file? [Y/n]: " in seen.decode()


def test_a_name_that_is_taken_meanwhile(train, tmp_path, monkeypatch):
    """Between the look at it and the first save: the next one is free."""
    first = tmp_path / "gradwalk-few.safetensors"
    monkeypatch.setattr(session, "remove_leftovers", lambda path: first.write_text("precious"))
    assert train("--steps", 1, "--quiet").out == "gradwalk-few-2.safetensors\n"
    assert first.read_text() == "precious"


def test_control_characters_never_reach_the_terminal(gradwalk, tmp_path):
    """From data, from checkpoints, in names of files: what could steer a terminal is not printed as it is."""
    evil = "\x1b]0;owned\x07\x1b[2J\x9b31m"
    (tmp_path / "evil.txt").write_text(f"a{evil}b\nb{evil}a\n" * 5, encoding="utf-8")
    shown = [gradwalk("train", "--data", "evil.txt", *TINY_MODEL, "--steps", 30, "--checkpoint", "run"),
             gradwalk("sample", "run", "--temperature", 3), gradwalk("sample", "run", "--prompt", evil),
             gradwalk("sample", "run", "--prompt", "x"), gradwalk("train", "--data", f"{evil}.txt"),
             gradwalk("train", "--resume", f"{evil}\n"), gradwalk("train", "--resume", "run"),
             gradwalk("train", f"--{evil}"), gradwalk(evil), gradwalk("trace", evil, "a=1")]  # fmt: skip
    for outcome in shown:
        assert not set(outcome.out + outcome.err) & set("\x1b\x07\x9b\r")
    assert [outcome.status for outcome in shown[:2]] == [0, 0]


def test_stop_lines_survive_a_broken_terminal(monkeypatch, capsys):
    """Where stderr cannot be written to either, the status is what is left."""

    class Broken:
        def flush(self):
            raise OSError(errno.EIO, "gone")

        def fileno(self):
            return os.open(os.devnull, os.O_WRONLY)

    monkeypatch.setattr(cli.sys, "stdout", Broken())
    with pytest.raises(SystemExit) as stopped:
        cli.stop(2, "line")
    assert stopped.value.code == 2
