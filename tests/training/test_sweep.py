"""`gradwalk sweep`: each run is what `gradwalk train` makes of its options, however they are run and stopped."""

from __future__ import annotations

import errno
import json
import os
import signal
import time
import xml.etree.ElementTree as ElementTree
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import click
import numpy
import pytest
from small_runs import NAMES, TINY_MODEL, run_apart, start
from test_resume import assert_same_run
from test_train_output import on_a_terminal

from gradwalk import engine
from gradwalk.show import plot
from gradwalk.show.sweep_plot import sweep_picture
from gradwalk.training import sweep as sweeps
from gradwalk.training import sweep_report
from gradwalk.training.checkpoint import load
from gradwalk.training.loop import Configuration, Trainer
from gradwalk.training.side_by_side import RunState
from gradwalk.training.sweep import Span, combinations
from gradwalk.training.sweep_command import Several

TINY = (*TINY_MODEL[:6], "--steps", "12", "--eval-every", "5")


@pytest.fixture
def sweep(gradwalk, names_file):
    """`gradwalk sweep` of the tiny model on a few names, in this process."""
    return lambda *arguments: gradwalk("sweep", "--data", names_file, *TINY, "--workers", 1, *arguments)


def lines_of(folder):
    return {line["run"]: line for line in map(json.loads, (folder / "runs.jsonl").read_text().splitlines())}


def assert_as_alone(train, folder, tmp_path, *options):
    """The losses of every run are those of `gradwalk train`, and the best checkpoint is its checkpoint, to the bit."""
    lines = lines_of(folder)
    best = min(lines.values(), key=lambda line: line["validation_loss"])
    for number, line in lines.items():
        own = [word for name, value in line["options"].items() for word in (f"--{name.replace('_', '-')}", value)]
        alone = tmp_path / f"alone-{number}"
        assert train(*TINY, *options, *own, "--checkpoint", alone).status == 0
        checkpoint = load(alone)
        assert line["validation_losses"] == [list(point) for point in checkpoint.validation_losses]
        assert line["loss"] == pytest.approx(sum(checkpoint.losses) / 12, rel=1e-15)
        if line is best:
            assert_same_run(alone, folder / "best.safetensors")


@pytest.mark.parametrize(
    "options",
    [(), ("--optimizer", "adamw", "--weight-decay", "0.1", "--warmup", "3"),
     ("--optimizer", "sgd", "--momentum", "0.9", "--nesterov", "--tied"), ("--batch-size", "3", "--clip", "0.5")],
    ids=["adam", "adamw", "sgd", "a program each"],
)  # fmt: skip
def test_every_run_is_that_of_train(sweep, train, tmp_path, options):
    """Rates and seeds of their own, as many as fill a vector, stepped by one program, or each by itself."""
    outcome = sweep("--lr", "0.003,0.03", "--seed", "6..9", *options)
    assert outcome.status == 0, outcome.err
    assert "8/8 runs over" in outcome.out
    assert "checkpoint: gradwalk-sweep/best.safetensors\n" in outcome.out
    assert_as_alone(train, tmp_path / "gradwalk-sweep", tmp_path, *options)


def test_in_processes(sweep, train, tmp_path):
    """Two processes, and what they come to is the same."""
    assert sweep("--lr", "0.003,0.03", "--seed", "1..2", "--clip", "1", "--workers", 2, "-q").status == 0
    assert_as_alone(train, tmp_path / "gradwalk-sweep", tmp_path, "--clip", "1")


def test_the_best_checkpoint_is_one_like_any_other(sweep, gradwalk, names_file):
    """It samples, and goes on."""
    assert sweep("--seed", "1..3", "-q").out == "gradwalk-sweep/best.safetensors\n"
    assert len(gradwalk("sample", "gradwalk-sweep/best.safetensors", "-n", 3).out.splitlines()) == 3
    resumed = gradwalk("train", "--resume", "gradwalk-sweep/best.safetensors", "--data", names_file, "--steps", 14)
    assert resumed.status == 0, resumed.err


@pytest.mark.skipif(engine.NAME == "reference", reason="takes minutes there")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=lambda each: each.name)
def test_stopped_and_resumed(sweep, gradwalk, names_file, tmp_path, number):
    """Ctrl-C saves and says how to go on; even after a kill, the sweep ends as if it had not been stopped."""
    long = ("--steps", "8000", "--seed", "1..3", "--lr", "0.01")
    command = ("sweep", "--data", names_file, *TINY, "--workers", "1", *long, "--folder", "stopped")
    process = start(*command, cwd=tmp_path)
    while not (tmp_path / "stopped" / "runs.jsonl").exists() and process.poll() is None:
        time.sleep(0.01)
    time.sleep(0.3)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode in ((-9,) if number == signal.SIGKILL else (0, 128 + number))
    if process.returncode > 0:
        assert f"to go on: gradwalk sweep --resume stopped --data {names_file} --workers 1\n" in err
        assert err.count("\n") == 1
    resumed = gradwalk("sweep", "--resume", "stopped", "--data", names_file, "--workers", 1, "--json")
    assert resumed.status == 0, resumed.err
    assert sweep(*long, "--folder", "whole").status == 0
    assert lines_of(tmp_path / "stopped") == lines_of(tmp_path / "whole")
    assert_same_run(tmp_path / "stopped" / "best.safetensors", tmp_path / "whole" / "best.safetensors")
    assert sorted(os.listdir(tmp_path / "stopped")) == ["best.safetensors", "runs.jsonl", "sweep.json"]
    assert json.loads(resumed.out)["finished"]


def test_rounds_do_not_show(sweep, tmp_path, monkeypatch):
    """However many steps are made between two looks at a run."""
    assert sweep("--seed", "1..3", "-q").status == 0
    monkeypatch.setattr(sweeps, "ROUND", 1e-9)
    monkeypatch.setattr(sweeps, "SAVED_EVERY", 0.0)
    assert sweep("--seed", "1..3", "-q").status == 0
    assert lines_of(tmp_path / "gradwalk-sweep") == lines_of(tmp_path / "gradwalk-sweep-2")


SGD = ("--optimizer", "sgd", "--schedule", "constant")
DECAY = ("--optimizer", "adamw", "--weight-decay", "1e300", "--validation-share", "0", "--steps", "1")


@pytest.mark.parametrize(
    ("rate", "diverging", "words"),
    [("1e12", SGD, "loss"), ("1e12", (*SGD, "--activation", "exp"), "exp: the result overflows"),
     ("1e12", (*SGD, "--batch-size", "2"), "loss"), ("1e300", DECAY, "parameters in ")],
    ids=["loss", "refused", "a program each", "parameters"],
)  # fmt: skip
def test_a_run_that_fails_is_no_other_ones_failure(sweep, train, tmp_path, rate, diverging, words):
    """Its line has the words that train has; the others, the best one among them, come to their end."""
    outcome = sweep("--lr", f"{rate},0.01", "--seed", "1,2", *diverging)
    assert outcome.status == 0, outcome.err
    assert "2 runs ended with an error; the first, run 1: step " in outcome.out
    lines = lines_of(tmp_path / "gradwalk-sweep")
    alone = train(*TINY, *diverging, "--lr", rate, "--seed", "1")
    assert alone.err == f"gradwalk: {lines[1]['error']}\n"
    assert words in alone.err
    assert [number for number, line in sorted(lines.items()) if "error" not in line] == [3, 4]
    failed = sweep("--lr", rate, "--seed", "1,2", *diverging)
    assert failed.status == 2
    assert failed.err.startswith("gradwalk: gradwalk-sweep-2: no run came to its end; the first: step ")


@pytest.mark.skipif(engine.NAME == "reference", reason="there is nothing compiled")
def test_an_error_that_is_not_about_numbers_ends_the_sweep(sweep, monkeypatch):
    """It is no run's own: all would have it."""
    raised = numpy.full(2, numpy.nan), {1: MemoryError("no room for it")}
    monkeypatch.setattr("gradwalk.compiler.models.Models.try_step", lambda *_: raised)
    assert sweep("--seed", "1,2").err == "gradwalk: MemoryError no room for it\n"


@pytest.mark.parametrize(
    ("error", "told"),
    [(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "standard output: No space left on device"),
     (MemoryError("no room"), "MemoryError no room"), (ValueError("no such number"), "no such number")],
    ids=["disk", "memory", "value"],
)  # fmt: skip
def test_what_was_learnt_is_kept(sweep, gradwalk, names_file, tmp_path, monkeypatch, error, told):
    """The disk is full, say: one line, and the sweep goes on from there."""
    assert sweep("--seed", "1..3", "-q", "--folder", "whole").status == 0
    monkeypatch.setattr(sweeps, "ROUND", 1e-9)

    def full(reporter, sweep):
        if sweep.steps_made > 30:
            raise error

    with monkeypatch.context() as patched:
        patched.setattr(sweep_report.SweepReporter, "round", full)
        failed = sweep("--seed", "1..3", "-q", "--folder", "stopped")
    assert (failed.status, failed.err) == (2, f"gradwalk: {told}\n")
    assert all(0 < load(path).step < 12 for path in (tmp_path / "stopped").glob("run-*"))
    assert list((tmp_path / "stopped").glob("run-*"))
    assert gradwalk("sweep", "--resume", "stopped", "--data", names_file, "-q").status == 0
    assert lines_of(tmp_path / "stopped") == lines_of(tmp_path / "whole")


def test_long_tables_are_cut(sweep, monkeypatch):
    """The rest is counted; all of it is in runs.jsonl."""
    monkeypatch.setattr(sweep_report, "ROWS", 2)
    assert "\nand 3 more\n" in sweep("--seed", "1..5").out


def made_up(**settings):
    """A sweep over two rates and two seeds, of which a run failed and one is under way."""
    runs = [Configuration(steps=10, lr=lr, seed=seed) for lr in (0.1, 0.25) for seed in (1, 2)]
    told = {"folder": Path("f"), "configurations": runs, "varied": ["lr", "seed"], "data_name": None}
    sweep = sweeps.Sweep(**{**told, "digest": "", "evaluation": {}, **settings})
    sweep.lines = {
        number: {"run": number, "loss": 9.0 - number, "validation_loss": loss}
        for number, loss in ((1, 4.0), (2, 2.0), (3, 2.5))
    }
    return sweep


@pytest.mark.parametrize(
    ("varied", "error", "told"),
    [(["lr", "seed"], None,
      ["  lr  runs    mean  deviation    best", "0.25     1  2.5000     0.0000  2.5000",
       " 0.1     2  3.0000     1.4142  2.0000"]),
     (["lr", "seed"], "too far",
      ["  lr  runs    mean  deviation    best", "0.25     1  2.5000     0.0000  2.5000",
       " 0.1     2  3.0000     1.4142  2.0000", "1 run ended with an error; the first, run 4: too far"]),
     (["seed"], None,
      ["seed  run    loss  validation", "   2    2  7.0000      2.0000", "   1    1  8.0000      4.0000"]),
     (["lr"], None,
      ["  lr  run    loss  validation", "0.25    3  6.0000      2.5000", " 0.1    1  8.0000      4.0000"])],
    ids=["seeds of rates", "an error", "seeds", "rates"],
)  # fmt: skip
def test_table_has_the_best_settings_first(varied, error, told):
    """With mean, deviation and best over the seeds of each; or the runs themselves, where there is one for each."""
    sweep = made_up(varied=varied)
    if varied == ["seed"]:
        del sweep.lines[3]
    if varied == ["lr"]:
        del sweep.lines[2]
    if error:
        sweep.lines[4] = {"run": 4, "error": error}
    assert told == sweep_report.table(sweep)


def test_table_without_anything_set_aside():
    """Goes by the loss, and has a dash for what was not measured."""
    sweep = made_up(varied=["lr"])
    sweep.lines = {1: {"run": 1, "loss": 3.0, "validation_loss": None}, 3: {"run": 3, "loss": 2.0}}
    sweep.lines[3]["validation_loss"] = None
    assert (sweep_report.table(sweep)) == [
        "  lr  run    loss  validation",
        "0.25    3  2.0000           -",
        " 0.1    1  3.0000           -",
    ]


def test_lines_while_a_sweep_goes_on(capsys):
    """One at the beginning, and one for each tenth of all steps: runs that are over, and the best of them so far."""
    sweep, reporter = made_up(data_name="few.txt"), sweep_report.PlainSweepReporter()
    lines, sweep.lines = sweep.lines, {}

    def told(say, *given):
        say(sweep, *given)
        return capsys.readouterr().out.splitlines()

    assert told(reporter.start) == ["few.txt: 4 runs, by lr, seed; in f"]
    made = {number: SimpleNamespace(step=0) for number in (1, 2, 3, 4)}
    sweep.states = made
    assert told(reporter.round) == []
    made[4].step = 3
    assert told(reporter.round) == []
    made[4].step = 4
    assert told(reporter.round) == [" 10%  0/4 runs over"]
    assert told(reporter.round) == []
    for number, line in lines.items():
        sweep.lines[number] = line
        del made[number]
    assert told(reporter.round) == [" 80%  3/4 runs over  best 2.0000"]
    assert told(reporter.start) == ["few.txt: 4 runs, by lr, seed; in f; 3 are over already"]
    assert told(reporter.round) == []
    found = told(reporter.finish, 12.25)
    assert ["", "best: run 2 (lr 0.1, seed 2), validation loss 2.0000; 12.2 s"] == found[4:6] == ["", found[5]]
    assert found[6:] == [
        "checkpoint: f/best.safetensors",
        "samples: gradwalk sample f/best.safetensors",
        "every run: f/runs.jsonl",
    ]


def test_steps_of_a_run_that_is_over_are_its_own():
    sweep = made_up(configurations=[Configuration(steps=steps) for steps in (1, 20, 300, 4000)])
    assert sweep.steps_made == 321


def test_json_of_a_sweep(capsys):
    """Results in the order of the runs; a sweep that was stopped says how to go on."""
    sweep = made_up()
    sweep.lines = dict(reversed(sweep.lines.items()))
    sweep_report.JsonSweepReporter().finish(sweep, 1.0)
    found = json.loads(capsys.readouterr().out)
    assert (found["finished"], found["runs"], found["best"]["run"]) == (True, 4, 2)
    assert found["checkpoint"] == "f/best.safetensors"
    assert [line["run"] for line in found["results"]] == [1, 2, 3]
    sweep.lines = {}
    sweep_report.JsonSweepReporter().interrupted(sweep, "go on")
    found = json.loads(capsys.readouterr().out)
    assert tuple(found[name] for name in ("finished", "best", "checkpoint", "resume_command")) == (
        False,
        None,
        None,
        "go on",
    )


def test_the_loss_of_a_run_is_the_mean_of_its_last_fifty_steps(tmp_path):
    """As train says it."""
    sweep = made_up(folder=tmp_path)
    trainer = Trainer(replace(sweep.configurations[3], steps=0, n_embd=4, n_head=2), NAMES)
    checkpoint = replace(trainer.checkpoint(), losses=[100.0] * 10 + [2.0] * 49 + [4.0], step=60)
    sweep.take(RunState(4, replace(trainer.configuration, steps=60), checkpoint))
    assert tuple(sweep.lines[4][name] for name in ("loss", "step", "options")) == (2.04, 60, {"lr": 0.25, "seed": 2})


@pytest.mark.parametrize(("every", "saves"), [(30.0, False), (0.0, True)])
def test_what_is_not_over_is_saved_after_a_while(sweep, monkeypatch, every, saves):
    """And at the end, in any case."""
    saved = []
    monkeypatch.setattr(sweeps, "ROUND", 1e-9)
    monkeypatch.setattr(sweeps, "SAVED_EVERY", every)
    monkeypatch.setattr(sweeps.Sweep, "save", lambda sweep: saved.append(sweep.steps_made))
    assert sweep("--seed", "1..2", "-q").status == 0
    assert (saved[-1], len(saved) > 1) == (24, saves)


def test_runs_of_one_program_are_shared_out_among_the_workers():
    """Each gets as many, though one could take them all."""
    sweep, given = made_up(), []
    sweep.states = {number: RunState(number, replace(sweep.configurations[0], compiled=True)) for number in range(1, 6)}
    two = SimpleNamespace(count=2, done=lambda tasks, at_once: given.extend(tasks) or [])
    list(sweeps._rounds(sweep, NAMES, two))
    assert [[run.number for run in task.arguments[1]] for task in given] == [[1, 2, 3], [4, 5]]


@pytest.mark.parametrize(
    ("asked", "settings", "count"),
    [(None, {"compiled": True}, None), (None, {}, 2), (1, {}, None), (2, {"compiled": True}, 2), (9, {}, 4)],
    ids=["one program", "a program each", "one", "two", "more than runs"],
)
def test_how_many_processes_a_sweep_takes(monkeypatch, asked, settings, count):
    """As many as are asked for and have something to do; else as there are cores, where one program is not enough."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    monkeypatch.setattr(sweeps, "processes", nullcontext)
    monkeypatch.setattr(sweeps, "Workers", lambda count: count)
    sweep = made_up()
    sweep.states = {n: RunState(n, replace(each, **settings)) for n, each in enumerate(sweep.configurations, 1)}
    with ExitStack() as stack:
        assert sweeps._workers(sweeps.SweepPlan(workers=asked), sweep, stack) == count


def test_as_many_runs_as_there_may_be():
    """10,000, also at random, and as many numbers of a range."""
    assert len(combinations({"lr": (0.1,), "seed": tuple(range(100))}, 100)) == 10_000
    assert len(combinations({"lr": (0.1, 0.2), "seed": tuple(range(5000))}, None)) == 10_000
    assert len(Several(click.INT).convert("1..10000", None, None)) == 10_000


def test_how_a_sweep_is_evaluated_is_kept(sweep, tmp_path):
    """As often, and on as many documents, as it was told; each run's checkpoint says so, too."""
    assert sweep("--seed", "1,2", "--eval-every", 3, "--eval-documents", 1, "-q").status == 0
    kept = {"every": 3, "documents": 1}
    assert json.loads((tmp_path / "gradwalk-sweep" / "sweep.json").read_text())["evaluation"] == kept
    assert load(tmp_path / "gradwalk-sweep" / "best.safetensors").evaluation == kept


def test_on_a_terminal(names_file, tmp_path):
    """A bar counts the steps of all runs and the runs that are over; the table stands below it."""
    command = ("sweep", "--data", names_file, *TINY, "--workers", 1, "--seed", "1..2", "--folder", tmp_path / "two")
    seen = on_a_terminal(*command)
    bar, _, below = seen.rpartition("24/24")
    assert "0/24" in bar
    assert "2/2 runs over" in below
    assert "\x1b[?25h" in below  # the cursor is there again
    assert "validation" in below


def test_drawn_at_random():
    """More draws begin with the same ones; each is made with every seed; whole numbers, lists and spans mix."""
    options = {"lr": (Span(0.001, 0.1),), "n_layer": (1, 2), "clip": (Span(0.0, 2.0),), "seed": (4, 5)}
    few, many = combinations(options, 3), combinations(options, 40)
    assert many[:6] == few
    assert [run["seed"] for run in few] == [4, 5] * 3
    assert few[0]["lr"] == few[1]["lr"] != few[2]["lr"]
    assert all(0.001 <= run["lr"] <= 0.1 and 0.0 <= run["clip"] <= 2.0 for run in many)
    assert {run["n_layer"] for run in many} == {1, 2}
    below = sum(run["lr"] < 0.01 for run in many)
    assert 20 < below < 60  # as many below the middle factor as above it


def test_random_on_the_command_line(sweep, tmp_path):
    outcome = sweep("--lr", "0.001..0.1", "--tied", "yes,no", "--random", 3, "--seed", "1..2", "--plot", "p.png")
    assert outcome.status == 0, outcome.err
    assert [list(line["options"]) for line in lines_of(tmp_path / "gradwalk-sweep").values()] == [
        ["lr", "tied", "seed"]
    ] * 6
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    assert " runs    mean  deviation    best\n" in outcome.out


@pytest.mark.parametrize("varied", [("--seed", "1..3"), ("--lr", "0.001,0.1", "--optimizer", "adam,sgd"),
                                    ("--seed", "1,2", "--validation-share", "0")], ids=str)  # fmt: skip
def test_pictures(sweep, tmp_path, varied):
    assert sweep(*varied, "--plot", "p.svg", "-q").status == 0
    assert "svg" in ElementTree.parse(tmp_path / "p.svg").getroot().tag


@pytest.mark.parametrize(
    ("values", "marks"),
    [([0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1], ["0.001", "0.0032", "0.01", "0.032", "0.1"]),
     ([1, 2, 3, 4, 5, 6, 7, 8, 9], ["2", "4", "6", "8"]),
     ([0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8], ["0", "0.2", "0.4", "0.6", "0.8"])],
    ids=["factors", "whole numbers", "from 0 on"],
)  # fmt: skip
def test_many_values_are_marked_by_round_numbers(values, marks):
    """At equal factors where they are some apart, else at equal differences; a dot lies where its value does."""
    runs = [{"options": {"lr": value}, "loss": 1.0} for value in values]
    shapes = sweep_picture(runs, ["lr"], lambda run: run["loss"], "").shapes
    below = [shape for shape in shapes if isinstance(shape, plot.Words) and shape.at[1] == 64 + 308 + 18]
    assert [words.text for words in below] == marks
    dots = dict(zip(values, sorted(shape.centre[0] for shape in shapes if isinstance(shape, plot.Dot)), strict=True))
    marked = {float(words.text): words.at[0] for words in below if float(words.text) in dots}
    assert len(marked) >= 3
    assert {value: dots[value] for value in marked} == pytest.approx(marked)


def test_the_best_run_lies_on_top_of_the_others():
    """Its dot has a colour of its own, and is drawn after theirs, wherever it stands among the runs."""
    runs = [{"options": {"lr": lr}, "loss": loss} for lr, loss in ((0.1, 1.0), (0.2, 3.0), (0.3, 2.0))]
    shapes = sweep_picture(runs, ["lr"], lambda run: run["loss"], "").shapes
    dots = [shape for shape in shapes if isinstance(shape, plot.Dot)]
    assert [dot.colour for dot in dots] == [plot.BLUE, plot.BLUE, plot.ORANGE]
    assert dots[-1].centre == min((dot.centre for dot in dots), key=lambda centre: centre[0])


def test_of_several_seeds_the_best_curve_lies_on_top():
    """It is the orange one, wherever its run stands among the others."""
    runs = [{"options": {"seed": n}, "loss": n, "validation_losses": [(1, 4.0), (2, n)]} for n in (2.0, 1.0, 3.0)]
    shapes = sweep_picture(runs, ["seed"], lambda run: run["loss"], "").shapes
    lines = [shape for shape in shapes if isinstance(shape, plot.Line) and shape.colour != plot.GRID]
    assert [line.colour for line in lines] == [plot.PALE_BLUE, plot.PALE_BLUE, plot.ORANGE]
    assert lines[-1].points[-1][1] == max(y for line in lines for _, y in line.points)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--lr", "0.001..0.1"), "--lr: there is no end of numbers between two; --random N draws some"),
        (("--lr", "0.5,0.001..0.1"), "--lr: there is no end of numbers between two; --random N draws some"),
        (("--lr", "0.1,x"), "Invalid value for '--lr': 'x' is not a valid float"),
        (("--lr", "0.1,nan"), "'nan' is not a finite number"),
        (("--seed", "5..2"), "'5..2' does not go from a number to a larger one"),
        (("--seed", "3..3"), "'3..3' does not go from a number to a larger one"),
        (("--seed", "1..99999999999"), "'1..99999999999' are more than 10,000 numbers"),
        (("--seed", "0..10000"), "'0..10000' are more than 10,000 numbers"),
        (("--seed", "1..5000", "--lr", "1,2,3"), "expected at most 10,000 runs, got 15,000"),
        (("--seed", "1..5000", "--lr", "1..2", "--random", 3), "expected at most 10,000 runs, got 15,000"),
        (("--optimizer", "adam,sg"), "'sg' is not one of 'adam', 'adamw', 'sgd'"),
        (("--n-head", "2,3"), "--n-embd 4 is not divisible by --n-head 3"),
        (("--warmup", "20"), "expected 0 <= warmup < steps"),
        (("--plot", "p.gif"), "expected a file name that ends in .svg or .png"),
        (("--resume", "nowhere"), "--"),
        (("--workers", 2, "--dask", "tcp://127.0.0.1:1"), "expected one of them, got both"),
    ],
    ids=str,
)
def test_bad_input(sweep, tmp_path, arguments, words):
    """One line, status 2, and no folder."""
    outcome = sweep(*arguments)
    assert outcome.status == 2
    assert words in outcome.err
    assert outcome.err.count("\n") == 1
    assert not list(tmp_path.glob("gradwalk-sweep*"))


def test_data_that_cannot_be_trained_on(sweep, names_file, tmp_path):
    """The file is named with what is wrong with it, and there is no folder."""
    names_file.write_text("aaa\naa\n")
    words = f"gradwalk: {names_file}: every document is made of the one character 'a': there is nothing to learn\n"
    assert sweep("--seed", "1,2").err == words
    assert list(tmp_path.iterdir()) == [names_file]


def test_resume_removes_what_a_killed_sweep_has_left(sweep, gradwalk, names_file, tmp_path):
    """Half of a checkpoint beside the best one, that nobody writes any more."""
    assert sweep("--seed", "1..2", "-q").status == 0
    leftover = tmp_path / "gradwalk-sweep" / "best.safetensors.1-0123abcd.partial"
    leftover.touch()
    assert gradwalk("sweep", "--resume", "gradwalk-sweep", "--data", names_file, "-q").status == 0
    assert not leftover.exists()


def test_resume_opens_only_what_it_is_told(sweep, gradwalk, names_file):
    """A folder that came from elsewhere may name any file."""
    assert sweep("--seed", "1,2", "-q").status == 0
    outcome = gradwalk("sweep", "--resume", "gradwalk-sweep")
    assert (outcome.status, outcome.err.count("\n")) == (2, 1)
    assert f"its data is another file: --data {names_file} says that it may be opened" in outcome.err


def test_values_that_are_known_already():
    """A parameter's own values stay as they are, and a single one is one of several."""
    several = Several(click.INT)
    assert [several.convert(given, None, None) for given in ("1..3,7,2", (1, 2), 5)] == [(1, 2, 3, 7), (1, 2), (5,)]


def test_a_checkpoint_of_another_run_is_refused(sweep, gradwalk, names_file, tmp_path):
    """It would go on from there with options that are not its own."""
    folder = tmp_path / "gradwalk-sweep"
    assert sweep("--seed", "1..2", "-q").status == 0
    best = min(lines_of(folder).values(), key=lambda line: line["validation_loss"])["run"]
    (folder / "runs.jsonl").write_bytes(b"")
    (folder / "best.safetensors").rename(folder / f"run-{3 - best}.safetensors")
    resumed = gradwalk("sweep", "--resume", folder, "--data", names_file)
    assert resumed.status == 2
    assert f"run-{3 - best}.safetensors: the checkpoint of another run\n" in resumed.err


def test_a_run_that_was_over_is_not_made_again(sweep, gradwalk, names_file, tmp_path):
    """Its checkpoint is at its last step: only its line was missing."""
    folder = tmp_path / "gradwalk-sweep"
    assert sweep("--seed", "1..2", "-q").status == 0
    lines = lines_of(folder)
    best = min(lines.values(), key=lambda line: line["validation_loss"])["run"]
    (folder / "runs.jsonl").write_text(json.dumps(lines[3 - best]) + "\n")
    (folder / "best.safetensors").rename(folder / f"run-{best}.safetensors")
    resumed = gradwalk("sweep", "--resume", folder, "--data", names_file)
    assert "; 2 are over already\n" in resumed.out
    assert lines_of(folder) == lines
    assert sorted(os.listdir(folder)) == ["best.safetensors", "runs.jsonl", "sweep.json"]


def test_one_at_a_time(sweep, names_file, tmp_path):
    """Two in one folder would write the same lines."""
    assert sweep("--seed", "1..2", "-q").status == 0
    fcntl = pytest.importorskip("fcntl")
    with open(tmp_path / "gradwalk-sweep" / "sweep.json", "rb") as held:
        fcntl.flock(held.fileno(), fcntl.LOCK_EX)
        resumed = run_apart("sweep", "--resume", "gradwalk-sweep", "--data", names_file, cwd=tmp_path)
    assert resumed.status == 2
    assert "another gradwalk sweep is at work on it" in resumed.err


@pytest.mark.skipif(engine.NAME == "reference", reason="there is nothing compiled")
def test_side_by_side_is_one_piece():
    """Seeds, rates and schedules share a program; shapes, optimisers and what has no compiled step do not."""
    from gradwalk.training.loop import Configuration
    from gradwalk.training.side_by_side import RunState, pieces

    ways = [{"seed": 1}, {"seed": 2}, {"lr": 0.5}, {"schedule": "cosine"}, {"n_layer": 2}, {"beta2": 0.9},
            {"clip": 1.0}, {"clip": 1.0, "seed": 3}]  # fmt: skip
    runs = [RunState(number, Configuration(compiled=True, **way)) for number, way in enumerate(ways, 1)]
    assert [[run.number for run in piece] for piece in pieces(runs)] == [[1, 2, 3, 4], [5], [6], [7], [8]]
    assert [len(piece) for piece in pieces(runs, largest=3)] == [3, 1, 1, 1, 1, 1]
    begun = replace(runs[1], checkpoint=SimpleNamespace(step=1))
    assert [[run.number for run in piece] for piece in pieces([runs[0], begun])] == [[1], [2]]


def test_pieces_in_turns_are_pieces_in_one_go():
    """A process keeps the last few as they are; the others go on from their checkpoints, and that does not show."""
    from gradwalk.training import side_by_side
    from gradwalk.training.loop import Configuration
    from gradwalk.training.side_by_side import RunState, advanced

    settings = Configuration(steps=4, n_embd=4, n_head=2, block_size=4)
    whole = {seed: [RunState(seed, replace(settings, seed=seed))] for seed in range(1, side_by_side.LIVE + 2)}
    turns, evaluation = dict(whole), {"every": 2, "documents": 2}
    for seed, runs in whole.items():
        whole[seed], _ = advanced(NAMES, ("whole", seed), runs, 4, None, evaluation)
    for seed in [*turns, *turns]:
        turns[seed], _ = advanced(NAMES, ("turns", seed), turns[seed], 2, None, evaluation)
        assert len(side_by_side._live) <= side_by_side.LIVE
    assert [run.is_over for [run] in turns.values()] == [True] * len(turns)
    assert [run.checkpoint for [run] in turns.values()] == [run.checkpoint for [run] in whole.values()]
