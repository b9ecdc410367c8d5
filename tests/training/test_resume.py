"""Runs that stop and go on: exactly, on either engine, whatever stopped them."""

from __future__ import annotations

import errno
import fcntl
import itertools
import json
import os
import random
import shlex
import signal
import subprocess
import time
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import numpy
import pytest
from small_runs import NAMES, TINY_MODEL, run_apart, start

from gradwalk import engine, files
from gradwalk.errors import WorkerError
from gradwalk.files import Held
from gradwalk.optim import Adam
from gradwalk.training.checkpoint import load
from gradwalk.training.loop import Configuration, Trainer
from gradwalk.training.metrics import MetricsFile
from gradwalk.training.report import Reporter
from gradwalk.training.session import (
    Plan,
    PlanError,
    check_workers,
    long_documents,
    resume_command,
    stop_signals,
    workers_for,
)

KILLS = 100 if os.environ.get("GRADWALK_SOAK") else 8


def assert_same_run(left, right):
    """Every weight, moment and loss is the same, to the bit."""
    one, other = load(left), load(right)
    assert one.validation_losses == other.validation_losses
    assert (one.step, one.losses, one.order) == (other.step, other.losses, other.order)
    assert one.model.keys() == other.model.keys()
    assert all(numpy.array_equal(one.model[name], other.model[name]) for name in one.model)
    assert one.optimizer.keys() == other.optimizer.keys()
    assert all(numpy.array_equal(one.optimizer[name], other.optimizer[name]) for name in one.optimizer)


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--optimizer", "adamw", "--weight-decay", "0.1", "--schedule", "cosine", "--warmup", "3", "--clip", "0.5"),
        ("--optimizer", "sgd", "--momentum", "0.9", "--nesterov", "--batch-size", "3", "--tied"),
    ],
    ids=["adam", "adamw", "sgd"],
)
def test_two_halves_are_the_whole(train, resume, tmp_path, options):
    """10 + 15 steps equal 25, bit for bit: weights, moments, losses and what would come next."""
    whole, halves = tmp_path / "whole", tmp_path / "halves"
    assert train("--steps", 25, "--checkpoint", whole, *options).status == 0
    assert train("--steps", 25, "--stop-after", 10, "--checkpoint", halves, *options).status == 0
    assert load(halves).step == 10
    assert resume(halves).status == 0
    assert_same_run(whole, halves)


@pytest.mark.parametrize("name", engine.ENGINES)
def test_two_halves_are_the_whole_on_each_engine(names_file, tmp_path, name):
    """--engine switches engines, and 250 + 250 steps of a tiny model equal 500 on each of them."""
    whole, halves = tmp_path / "whole", tmp_path / "halves"
    common = ("--data", names_file, *TINY_MODEL, "--checkpoint-every", "100", "--eval-every", "250", "--engine", name)
    steps = ("--steps", "500") if name == "native" else ("--steps", "50")
    half = "250" if name == "native" else "25"
    assert run_apart("train", *common, *steps, "--checkpoint", whole).status == 0
    assert run_apart("train", *common, *steps, "--checkpoint", halves, "--stop-after", half).status == 0
    resumed = run_apart("train", "--resume", halves, "--data", names_file, "--engine", name, "--json")
    assert json.loads(resumed.out)["engine"] == name
    assert_same_run(whole, halves)


def test_engines_agree(names_file, tmp_path):
    """A run on the reference engine ends with the weights of the same run on the native one."""
    for name in engine.ENGINES:
        command = ("train", "--data", names_file, *TINY_MODEL, "--steps", 10, "--engine", name)
        assert run_apart(*command, "--checkpoint", tmp_path / name).status == 0
    assert_same_run(tmp_path / "native", tmp_path / "reference")


def test_finished_run_can_be_made_longer(train, resume, tmp_path):
    """With a constant rate, a run of 11 steps resumed up to 20 equals one of 20, validation points included."""
    constant = ("--schedule", "constant")
    train("--steps", 20, "--checkpoint", tmp_path / "long", *constant)
    train("--steps", 11, "--checkpoint", tmp_path / "short", *constant)
    assert resume(tmp_path / "short", "--steps", 20).status == 0
    one, other = load(tmp_path / "long"), load(tmp_path / "short")
    assert (one.losses, one.validation_losses) == (other.losses, other.validation_losses)


def test_finished_run_resumed_is_left_alone(train, resume, tmp_path):
    """Nothing is left to do: samples are shown, the checkpoint's bytes stay."""
    path = tmp_path / "done"
    train("--steps", 5, "--checkpoint", path)
    before = path.read_bytes()
    assert resume(path).status == 0
    assert path.read_bytes() == before


# ---------------------------------------------------------------- errors on the way


def raising(function, nth, error):
    """The function, whose nth call raises."""
    calls = itertools.count(1)

    def call(*arguments, **named):
        if next(calls) == nth:
            raise error
        return function(*arguments, **named)

    return call


@pytest.mark.parametrize(
    "error", [MemoryError("no room"), ValueError("no such number"), OSError(errno.EIO, "gone")], ids=repr
)
@pytest.mark.parametrize("place", [(MetricsFile, "add", 7), (Reporter, "step", 8), (Trainer, "tokens", 14)], ids=str)
@pytest.mark.parametrize("options", [(), ("--batch-size", 3), ("--clip", 1), ("--engine", "reference")], ids=str)
def test_whatever_ends_a_run_it_is_saved(train, resume, tmp_path, monkeypatch, error, place, options):
    """Wherever an error comes from, every step that was made is kept; the run goes on as if it had not been there."""
    common = ("--steps", 20, "--checkpoint-every", 100, "--eval-every", 100, "--quiet", *options)
    monkeypatch.setattr("gradwalk.training.commands.switch_engine", lambda _: None)  # it would start over
    assert train(*common, "--checkpoint", "whole").status == 0
    kind, name, nth = place
    with monkeypatch.context() as patched:
        patched.setattr(kind, name, raising(getattr(kind, name), nth, error))
        ended = train(*common, "--checkpoint", "ended", "--metrics", "m")
    assert (ended.status, ended.err.count("\n")) == (2, 1)
    assert load(tmp_path / "ended").step == (nth if kind is not Trainer else len(read_lines(tmp_path / "m")))
    assert load(tmp_path / "ended").step > 0
    assert resume("ended", "--quiet").status == 0
    assert_same_run(tmp_path / "whole", tmp_path / "ended")


def read_lines(path):
    return path.read_text().splitlines()


def test_a_step_that_was_cut_in_two_is_not_saved(train, resume, tmp_path, monkeypatch):
    """An error in the middle of an update: what is on the disk is whole, and the run goes on from there."""
    common = ("--steps", 20, "--checkpoint-every", 5, "--eval-every", 100, "--quiet", "--batch-size", 3)
    assert train(*common, "--checkpoint", "whole").status == 0
    with monkeypatch.context() as patched:
        patched.setattr(Adam, "settings", raising(Adam.settings, 8, MemoryError("no room")))
        ended = train(*common, "--checkpoint", "ended")
    assert (ended.status, ended.err) == (2, "gradwalk: MemoryError no room\n")
    assert load(tmp_path / "ended").step == 5
    assert resume("ended", "--quiet").status == 0
    assert_same_run(tmp_path / "whole", tmp_path / "ended")


# ---------------------------------------------------------------- two at once


def begun(*command, **settings):
    """A run that is under way: it has written metrics."""
    path = settings.pop("metrics")
    process = start("train", *command, "--metrics", path, "--quiet", **settings)
    while not path.exists() or path.stat().st_size < 200:
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    return process


def test_one_run_at_a_time(train, resume, gradwalk, names_file, tmp_path):
    """Two that save at one place would lose what one of them learnt; a kill frees it, and nothing lies beside it."""
    assert train("--steps", 2, "--checkpoint", "one", "--quiet").status == 0
    long = ("--steps", 1000000, "--checkpoint-every", 1)
    for command in (
        ("--resume", "one"),
        ("--checkpoint", "new", *TINY_MODEL[:6]),
        ("--checkpoint", "new", "--overwrite"),
    ):
        name = command[1]
        process = begun("--data", names_file, *command, *long, metrics=tmp_path / f"m{len(command)}", cwd=tmp_path)
        try:
            (tmp_path / "link").symlink_to(name)
            for other in (("--resume", name), ("--resume", "link"), ("--checkpoint", name, "--overwrite")):
                for _ in range(5):
                    refused = gradwalk("train", "--data", names_file, *other, "--stop-after", 3, "--quiet")
                    told = f"gradwalk: {other[1]}: another gradwalk train is at work on it\n"
                    assert (refused.status, refused.err) == (2, told)
            assert gradwalk("sample", name, "-n", 1).status == 0
        finally:
            process.kill()
            process.communicate()
        (tmp_path / "link").unlink()
        step = load(tmp_path / name).step
        assert resume(name, "--stop-after", step + 3, "--quiet").status == 0
        assert load(tmp_path / name).step == step + 3
        assert not list(tmp_path.glob(f"{name}.*"))


def test_runs_without_locks(train, resume, tmp_path, monkeypatch):
    """A file system that has none keeps nobody out, and nobody waiting."""
    monkeypatch.setattr(fcntl, "flock", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOLCK, "no locks")))
    assert train("--steps", 10, "--stop-after", 5, "--checkpoint", "one").status == 0
    assert resume("one").status == 0
    assert train("--steps", 10, "--checkpoint", "one", "--overwrite").status == 0
    monkeypatch.setattr(files, "fcntl", None)
    assert resume("one", "--steps", 12).status == 0
    assert load(tmp_path / "one").step == 12


def test_nothing_of_a_run_stays_open(train, resume, tmp_path):
    """Neither when it ends nor when it is refused."""
    before = sorted(os.listdir("/proc/self/fd"))
    assert train("--steps", 2, "--checkpoint", "one").status == 0
    assert resume("one", "--steps", 4).status == 0
    assert train("--steps", 2, "--checkpoint", "one", "--overwrite").status == 0
    with open(tmp_path / "one", "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert resume("one", "--steps", 4).status == 2
    assert resume("one", "--steps", 4).status == 0
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_a_file_that_is_replaced_as_it_is_taken(tmp_path, monkeypatch):
    """What is locked is what has the name: another one than was opened, if its holder has saved meanwhile."""
    path, first, other = tmp_path / "file", Held(), Held()
    files.replace_file(path, b"1", held=first)
    real, opened = files._to_lock, []

    def to_lock(path):
        opened.append(real(path))
        if len(opened) == 1:
            files.replace_file(path, b"2", held=first)
        return opened[-1]

    monkeypatch.setattr(files, "_to_lock", to_lock)
    assert not other.take(path)
    assert len(opened) == 2
    first.close()
    assert other.take(path)
    other.close()


# ---------------------------------------------------------------- what is killed


def killed_once(command, path, seconds):
    """Start a run, kill it, and go on with what it left until the end."""
    process = start("train", *command, "--checkpoint", path)
    try:
        process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
    again = ("--resume", path, *command[:2]) if path.exists() else ("--checkpoint", path, *command)
    return run_apart("train", *again, "--quiet")


def test_killed_runs_end_as_the_unkilled_one(names_file, tmp_path):
    """kill -9 at random moments, while every step is saved; each resumed run ends with the same weights."""
    command = ("--data", names_file, *TINY_MODEL, "--checkpoint-every", 1, "--steps", 250)
    began = time.perf_counter()
    assert run_apart("train", *command, "--checkpoint", tmp_path / "whole").status == 0
    duration = time.perf_counter() - began
    rng = random.Random(5)
    for number in range(KILLS):
        path = tmp_path / f"run{number}"
        outcome = killed_once(command, path, rng.uniform(0.25, 1.0) * duration)
        assert (outcome.status, outcome.err) == (0, "")
        assert_same_run(tmp_path / "whole", path)
        assert list(tmp_path.glob(f"run{number}.*.partial")) == []


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_stopping_saves_and_says_how_to_go_on(names_file, tmp_path, number, status):
    """Ctrl-C: the step is finished and saved, the command that resumes is printed, and it works."""
    path, metrics = tmp_path / "stopped", tmp_path / "metrics"
    options = ("--checkpoint-every", 100000, "--eval-every", 100000, "--steps", 100000, "--quiet", "--metrics", metrics)
    process = start("train", "--data", names_file, *TINY_MODEL, *options, "--checkpoint", path)
    while not metrics.exists() or metrics.stat().st_size < 1000:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == status
    assert f"to go on: gradwalk train --resume {path}" in err
    step = load(path).step
    assert 0 < step < 100000
    assert run_apart(*shlex.split(err.partition("to go on: gradwalk ")[2]), "--stop-after", step + 5).status == 0
    assert load(path).step == step + 5


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({}, ""),
        ({"checkpoint_every": 100, "samples": 3, "stop_after": 5}, ""),
        (
            {"checkpoint_every": 7, "metrics": Path("m"), "plot": Path("p q.svg")},
            " --checkpoint-every 7 --metrics m --plot 'p q.svg'",
        ),
        ({"workers": 2}, " --workers 2"),
        ({"dask": "tcp://host:1"}, " --dask tcp://host:1"),
    ],
    ids=["as usual", "what was for this run", "files", "workers", "dask"],
)
def test_the_command_that_goes_on(settings, options):
    """It saves, measures and shares the work as the run did."""
    assert f"gradwalk train --resume r{options}" == resume_command(Plan(**settings), None, Path("r"))
    assert resume_command(Plan(**settings), "d", Path("r")).startswith("gradwalk train --resume r --data d")


def test_a_resumed_run_is_evaluated_as_it_was(train, resume, tmp_path):
    """As often, and on as many documents, unless it is told otherwise, which is kept, too."""
    train("--steps", 4, "--checkpoint", "run", "--eval-every", 2, "--eval-documents", 1)
    kept = {"every": 2, "documents": 1}
    assert kept == load(tmp_path / "run").evaluation
    found = json.loads(resume("run", "--steps", 9, "--json").out)
    assert found["documents"] == {"training": 18, "evaluated": 1}
    assert (kept, [2, 4, 6, 8, 9]) == (load(tmp_path / "run").evaluation, steps_of(tmp_path / "run"))
    resume("run", "--steps", 12, "--eval-every", 3, "--eval-documents", 2)
    assert load(tmp_path / "run").evaluation == {"every": 3, "documents": 2}


def steps_of(path):
    return [step for step, _ in load(path).validation_losses]


@pytest.mark.parametrize(
    ("plan", "settings", "words"),
    [
        (Plan(workers=1), {"compiled": False}, None),
        (Plan(workers=2), {"batch_size": 2}, None),
        (Plan(dask="a"), {"compiled": False}, "--dask: expected the compiled engine"),
        (Plan(dask="a"), {}, "--dask: a step has one document"),
        (Plan(workers=2), {}, "--workers: a step has one document"),
        (Plan(workers=1, dask="a"), {"batch_size": 2}, "--workers and --dask: expected one of them, got both"),
    ],
)
def test_whether_there_is_work_for_several(plan, settings, words):
    """One process needs nothing; several need a compiled step over several documents."""
    configuration = Configuration(**{"compiled": True, **settings})
    with nullcontext() if words is None else pytest.raises(PlanError, match=words):
        check_workers(plan, configuration)


def test_one_process_is_this_one():
    """Nobody is started to share the work with."""
    with workers_for(Plan(workers=1)) as executor:
        assert executor is None


def test_data_that_was_moved(train, gradwalk, names_file, tmp_path):
    """--data says where it is now."""
    train("--steps", 2, "--stop-after", 1, "--checkpoint", "run")
    moved = names_file.rename(tmp_path / "moved.txt")
    assert gradwalk("train", "--resume", "run", "--data", moved).status == 0
    assert load(tmp_path / "run").data["name"] == str(moved)


@pytest.mark.skipif(engine.NAME == "reference", reason="the compiled step's")
def test_a_step_that_workers_lost_can_be_made_again(monkeypatch):
    """On the same documents; what they had added to gradients by then is forgotten."""
    settings = Configuration(steps=5, n_embd=4, n_head=2, block_size=4, batch_size=2, compiled=True)
    one, other = Trainer(settings, NAMES), Trainer(settings, NAMES)

    def lost(documents):
        Trainer._shares(other, documents)
        raise WorkerError("they are gone")

    with monkeypatch.context() as patched:
        patched.setattr(other, "_shares", lost)
        with pytest.raises(WorkerError):
            other.make_step(0.1)
    assert one.make_step(0.1) == other.make_step(0.1)
    assert one.checkpoint() == other.checkpoint()


def test_documents_that_are_longer_than_the_block_are_counted():
    """One that just fits is seen whole."""
    settings = Configuration(n_embd=4, n_head=2, block_size=3, validation_share=0.0)
    assert long_documents(Trainer(settings, ["ab", "abc", "abcd", "abcde"])) == 2


def test_second_interrupt_stops_at_once():
    """The first is noted; a terminal that is closed may send SIGHUP after it."""
    before = signal.getsignal(signal.SIGINT)
    with stop_signals() as stop:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGHUP)
        assert stop.received == signal.SIGTERM
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_signals_are_the_main_threads():
    """A run in another thread, of a program that trains, leaves them alone."""

    def handlers():
        with stop_signals() as stop:
            return signal.getsignal(signal.SIGINT), stop.received

    with ThreadPoolExecutor() as thread:
        assert thread.submit(handlers).result() == (signal.getsignal(signal.SIGINT), 0)


@pytest.mark.skipif(engine.NAME == "reference", reason="the compiled step's")
def test_workers_do_not_show(train, tmp_path):
    """Two processes that share each batch come to the bits of one."""
    batch = ("--steps", 6, "--batch-size", 40)
    assert train(*batch, "--checkpoint", tmp_path / "alone").status == 0
    shared = train(*batch, "--checkpoint", tmp_path / "shared", "--workers", 2)
    assert shared.status == 0, shared.err
    assert_same_run(tmp_path / "alone", tmp_path / "shared")


@pytest.mark.skipif(engine.NAME == "reference", reason="the compiled step's")
def test_workers_that_die_lose_nothing(train, resume, tmp_path, monkeypatch):
    """One line, and what was learnt up to the step that could not be made is saved: the run goes on from there."""
    from gradwalk import workers

    class Dying(ThreadPoolExecutor):
        left = 12

        def submit(self, *given):
            self.left -= 1
            if self.left < 0:
                raise BrokenExecutor("they are gone")
            return super().submit(*given)

    batch = ("--steps", 25, "--batch-size", 15, "--checkpoint-every", 100)
    assert train(*batch, "--checkpoint", tmp_path / "whole").status == 0
    monkeypatch.setattr(workers, "processes", Dying)
    failed = train(*batch, "--checkpoint", tmp_path / "stopped", "--workers", 2)
    assert failed.status == 2
    assert failed.err.startswith("gradwalk: executor: workers died, and a Dying is not made anew")
    assert failed.err.count("\n") == 1
    assert 1 <= load(tmp_path / "stopped").step < 25
    assert resume(tmp_path / "stopped").status == 0
    assert_same_run(tmp_path / "whole", tmp_path / "stopped")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "--workers: a step has one document; --batch-size says how many"),
        (("--batch-size", 4, "--engine", engine.NAME), "--workers: expected the compiled engine"),
        (("--batch-size", 4, "--dask", "tcp://host:1"), "--workers and --dask: expected one of them, got both"),
    ],
    ids=["one document", "not compiled", "both"],
)
@pytest.mark.skipif(engine.NAME == "reference", reason="the compiled step's")
def test_workers_without_work(train, options, words):
    outcome = train("--workers", 2, *options)
    assert outcome.status == 2
    assert words in outcome.err
    assert outcome.err.count("\n") == 1
