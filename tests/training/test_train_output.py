"""What `gradwalk train` leaves behind and shows: to people, to programs, on a terminal and off it."""

from __future__ import annotations

import io
import json
import math
import os
import pty
import random
import select
import struct
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
import zlib

import pytest
from rich.console import Console
from small_runs import COMMAND, NAMES, TINY_MODEL, run_apart

from gradwalk import engine
from gradwalk.nn import MLP
from gradwalk.show import plot, terminal_plot
from gradwalk.training import moons_report, report, sweep_report
from gradwalk.training.checkpoint import load
from gradwalk.training.loop import Configuration, Record, Trainer
from gradwalk.training.moons import Moons, Progress, two_moons

takes_minutes_on_reference = pytest.mark.skipif(engine.NAME == "reference", reason="takes minutes there")


def on_a_terminal(*arguments, **environment):
    """What a terminal of 100 columns gets to see."""
    ours, theirs = pty.openpty()
    variables = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    variables |= {"TERM": "xterm-256color", "COLUMNS": "100", **environment}
    command = [*COMMAND, *map(str, arguments)]
    process = subprocess.Popen(command, stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL, env=variables)
    os.close(theirs)
    seen = b""
    while select.select([ours], [], [], 30)[0]:
        try:
            part = os.read(ours, 65536)
        except OSError:  # Linux: the other side is closed
            break
        if not part:
            break
        seen += part
    os.close(ours)
    assert process.wait() == 0
    return seen.decode()


@takes_minutes_on_reference
def test_default_run_without_a_terminal(gradwalk, tmp_path):
    """500 steps on the bundled names: losses, a curve, 20 samples, the checkpoint and the command that samples."""
    outcome = gradwalk("train")
    assert outcome.status == 0
    assert "\x1b" not in outcome.out
    assert "4,064 parameters" in outcome.out
    assert "step 500/500" in outcome.out
    assert "checkpoint: gradwalk-names.safetensors\n" in outcome.out
    assert "more samples: gradwalk sample gradwalk-names.safetensors\n" in outcome.out
    made_up = next(line for line in outcome.out.splitlines() if line.startswith("made up: "))
    assert made_up.count(",") == 19
    assert load(tmp_path / "gradwalk-names.safetensors").validation_losses[-1][1] < 2.6


class Spoken:
    """A plain reporter, and what it printed; its clock says what it is told."""

    def __init__(self, capsys, monkeypatch, **settings):
        self.trainer = Trainer(Configuration(n_embd=4, n_head=2, block_size=4, **settings), NAMES)
        self.reporter, self._capsys, self.now = report.PlainReporter(), capsys, 10.0
        monkeypatch.setattr(report.time, "perf_counter", lambda: self.now)

    def lines(self):
        return self._capsys.readouterr().out.splitlines()

    def start(self, data_name=None, long_documents=0):
        self.reporter.start(self.trainer, data_name, None, long_documents)
        return self.lines()

    def step(self, number, loss, validation_loss=None, seconds=0.0):
        self.reporter.step(Record(number, loss, 0.1, validation_loss, seconds))
        return self.lines()

    def finish(self, **summary):
        usual = {"loss": 2.0, "validation_loss": None, "samples": [], "finished": True}
        self.reporter.finish({**usual, "checkpoint": "c", "sample_command": "s c", **summary}, self.trainer)
        return self.lines()


@pytest.fixture
def spoken(capsys, monkeypatch):
    return lambda **settings: Spoken(capsys, monkeypatch, **settings)


def test_first_line_says_what_is_trained_on_what(spoken):
    """And on which engine; whether the run goes on, and what of the documents is not seen, is said only where so."""
    new = spoken(steps=20)
    ran = f"18 documents to train on; 376 parameters, Adam; {engine.NAME} engine"
    assert [f"names.txt (bundled): {ran}"] == new.start()
    new.trainer.step = 7
    cut = "1,200 documents are longer than the block: only their first 4 characters count"
    assert [f"few.txt: {ran}", "resumed at step 7 of 20", cut] == new.start("few.txt", 1200)


def test_a_line_for_each_evaluation(spoken):
    """The loss is the mean of the last 50, the speed that since the run went on; numbers stand below each other."""
    run = spoken(steps=1000)
    run.trainer.step = 30
    run.start()
    silent = [run.step(number, 100.0 if number < 43 else 2.0) for number in range(31, 91)]
    assert silent == [[]] * 60
    shown = "step   91/1000  loss 3.9600  validation loss 3.0000  30 steps/s"
    assert [shown] == run.step(91, 2.0, validation_loss=3.0, seconds=2.0)
    assert run.step(100, 2.0) == []  # something is set aside: it is measured when it is time
    shown = "step  101/1000  loss 2.0000  validation loss 2.5000  1,000,000 steps/s"
    assert [shown] == run.step(101, 2.0, validation_loss=2.5, seconds=71e-6)


def test_a_line_for_each_hundred_steps_where_nothing_is_set_aside(spoken):
    run = spoken(steps=200, validation_share=0.0)
    run.start()
    told = [line for number in range(1, 201) for line in run.step(number, 1.5, seconds=number / 10)]
    assert told == ["step 100/200  loss 1.5000  10 steps/s", "step 200/200  loss 1.5000  10 steps/s"]


def test_a_run_that_goes_on_has_been_evaluated_before(spoken):
    """So it is no run in which nothing is set aside."""
    run = spoken(steps=200)
    run.trainer.validation_losses.append((50, 3.0))
    run.start()
    assert run.step(100, 2.0) == []


@pytest.mark.skipif(engine.NAME == "reference", reason="there is nothing compiled")
def test_programs_are_counted_in_the_line(spoken, monkeypatch):
    """Of a compiled step, which is no engine's own."""
    run = spoken(steps=200, validation_share=0.0, compiled=True)
    assert run.start()[0].endswith("Adam; compiled")
    for count, words in ((1, "1 program"), (2, "2 programs")):
        monkeypatch.setattr(Trainer, "programs", count)
        assert [f"step 100/200  loss 1.5000  50 steps/s  {words}"] == run.step(100, 1.5, seconds=2.0)


def test_last_lines_without_a_curve(spoken):
    """No step, or one, is no curve."""
    run = spoken(steps=20)
    run.start()
    run.now = 12.25
    ends = ["checkpoint: c", "more samples: s c"]
    assert ["", "no steps made, 2.2 s", *ends] == run.finish(loss=None)
    run.trainer.losses.append(2.0)
    said = "loss 2.0000 (mean of the last 50 steps), validation loss 2.5000, 2.2 s"
    found = run.finish(validation_loss=2.5, samples=["ada", "bo"], finished=False, resume_command="r c")
    assert ["", said, "made up: ada, bo", *ends, "to go on: r c"] == found


@pytest.mark.parametrize(
    ("steps", "window", "validated"), [(2, 1, False), (2, 1, True), (29, 2, True), (200, 20, False), (900, 50, True)]
)
def test_curve_stands_between_empty_lines(spoken, steps, window, validated):
    """Below a heading that says over how many steps it is smoothed: a tenth of them, at most 50."""
    run = spoken(steps=1000)
    run.start()
    run.trainer.losses.extend([3.0] * steps)
    run.trainer.validation_losses += [(1, 2.0)] * validated
    lines = run.finish()
    marks = "; ◆ validation loss" if validated else ""
    assert ["", f"loss (mean of {window}) by step{marks}"] == lines[:2]
    points = [(float(step), 3.0) for step in range(1, steps + 1)]
    curve = terminal_plot.curve(points, [(1.0, 2.0)] * validated, ascii_only=False)
    assert [*curve, ""] == lines[2:-3]


@pytest.mark.parametrize(("width", "speed"), [(100, "45 steps/s"), (99, "45/s")])
def test_bar_has_the_last_losses_and_the_speed(spoken, monkeypatch, width, speed):
    """Drawn again only after a while, and at the last step; a run that goes on begins where it had come to."""
    run, written = spoken(steps=200), io.StringIO()
    run.trainer.step = 10
    run.reporter = report.TerminalReporter(Console(file=written, force_terminal=True, width=width, color_system=None))

    def drawn():
        """The bar, in words; what was written before it is gone."""
        words = written.getvalue().rpartition("step ")[2].split()
        written.seek(0)
        written.truncate()
        return " ".join(word for word in words if "━" not in word and "\x1b" not in word)

    run.start()
    with run.reporter:
        assert drawn().startswith("10/200 loss - validation - -")
        run.step(11, 100.0, seconds=0.1)
        assert drawn().startswith("11/200 loss 100.0000 validation - ")
        run.now += 0.04
        for number in range(12, 101):
            run.step(number, 100.0 if number < 53 else 2.0, validation_loss=3.5 if number == 60 else None)
        assert drawn() == ""
        run.now += 0.02
        run.step(100, 2.0, seconds=2.0)
        assert drawn().startswith(f"100/200 loss 3.9600 validation 3.5000 {speed} ")
        run.step(200, 2.0, seconds=2.0)
        assert drawn().startswith("200/200 ")
    assert "\x1b[?25h" in written.getvalue()  # the cursor is there again


@pytest.mark.parametrize(
    "say",
    [lambda: report.PlainReporter().say("step 1"), lambda: sweep_report.PlainSweepReporter().say("step 1"),
     lambda: moons_report.printed(Progress(1, 0.25, 0.5), 4)],
    ids=["train", "sweep", "moons"],
)  # fmt: skip
def test_what_is_said_is_there_at_once(monkeypatch, say):
    """Also for who reads it through a pipe."""
    received = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(received, "utf-8"))
    say()
    assert received.getvalue().startswith(b"step")


def test_second_run_gets_another_name(train, tmp_path):
    """A run without --checkpoint never replaces an earlier one."""
    for _ in range(3):
        train("--steps", 1)
    assert sorted(path.name for path in tmp_path.glob("*.safetensors")) == [
        "gradwalk-few-2.safetensors", "gradwalk-few-3.safetensors", "gradwalk-few.safetensors",
    ]  # fmt: skip


def test_progress_bar_on_a_terminal(names_file, tmp_path):
    """On a terminal: a bar with steps, losses, speed and time left, in colour."""
    path = tmp_path / "run"
    seen = on_a_terminal("train", "--data", names_file, *TINY_MODEL, "--steps", 40, "--checkpoint", path)
    assert "\x1b[3" in seen
    assert "40/40" in seen
    assert all(word in seen for word in ("loss", "validation", "steps/s", "left"))
    assert f"gradwalk sample {path}" in seen


def test_no_color(names_file, tmp_path):
    """With NO_COLOR the terminal gets no colours."""
    command = ("train", "--data", names_file, *TINY_MODEL, "--steps", 10, "--checkpoint", tmp_path / "run")
    seen = on_a_terminal(*command, NO_COLOR="1")
    assert not any(f"\x1b[{colour}" in seen for colour in ("31m", "32m", "33m", "34m", "35m", "36m", "38;"))


def test_output_that_has_no_braille(names_file, tmp_path):
    """Where the encoding is ASCII the curve is drawn in ASCII, and nothing fails."""
    command = ("train", "--data", names_file, *TINY_MODEL, "--steps", 10, "--checkpoint", tmp_path / "run")
    outcome = run_apart(*command, env={"PYTHONIOENCODING": "ascii"})
    assert outcome.status == 0
    assert outcome.out.isascii()
    assert "+----" in outcome.out


def test_quiet(train):
    """--quiet prints the checkpoint's path and nothing else."""
    outcome = train("--steps", 5, "--quiet")
    assert (outcome.out, outcome.err) == ("gradwalk-few.safetensors\n", "")


def test_json(train, tmp_path):
    """--json prints one object: the result, the samples, and the commands to go on with."""
    outcome = train("--steps", 10, "--stop-after", 5, "--json", "--samples", 3, "--checkpoint", "a b")
    found = json.loads(outcome.out)
    assert (found["step"], found["steps"], found["finished"]) == (5, 10, False)
    assert found["sample_command"] == "gradwalk sample 'a b'"
    assert found["resume_command"].startswith("gradwalk train --resume 'a b'")
    assert len(found["samples"]) == 3
    assert found["configuration"]["n_embd"] == 4
    assert (outcome.out, outcome.err) == (json.dumps(found, indent=2) + "\n", "")


def test_metrics(train, resume, tmp_path):
    """One JSON line per step; a resumed run goes on after the step it was resumed at, without doubles or halves."""
    train("--steps", 10, "--stop-after", 5, "--checkpoint", "run", "--metrics", "run.jsonl")
    with (tmp_path / "run.jsonl").open("a") as file:
        file.write('{"step": 6, "loss": 1.0}\n{"step": 7, "lo')  # as a killed run may leave it
    resume("run", "--metrics", "run.jsonl", "--eval-every", 5)
    lines = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(1, 11))
    assert [line["step"] for line in lines if "validation_loss" in line] == [5, 10]
    assert [line["loss"] for line in lines] == load(tmp_path / "run").losses


def test_metrics_file_of_another_kind_is_left_alone(train, resume, tmp_path):
    """A resumed run does not write to a file that holds no metrics."""
    train("--steps", 10, "--stop-after", 5, "--checkpoint", "run")
    (tmp_path / "notes.txt").write_text("buy milk\n")
    outcome = resume("run", "--metrics", "notes.txt")
    assert (outcome.status, outcome.err.count("\n")) == (2, 1)
    assert (tmp_path / "notes.txt").read_text() == "buy milk\n"


def png_size(content):
    """The size of a PNG; its checksums are checked, and that there is a number for each pixel."""
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    position, parts = 8, {}
    while position < len(content):
        (length,) = struct.unpack(">I", content[position : position + 4])
        kind, body = content[position + 4 : position + 8], content[position + 8 : position + 8 + length]
        (checksum,) = struct.unpack(">I", content[position + 8 + length : position + 12 + length])
        assert checksum == zlib.crc32(kind + body)
        parts[kind] = parts.get(kind, b"") + body
        position += 12 + length
    width, height = struct.unpack(">II", parts[b"IHDR"][:8])
    assert len(zlib.decompress(parts[b"IDAT"])) in (height * (1 + 3 * width), height * (1 + 4 * width))
    return width, height


@pytest.mark.parametrize(
    "shape",
    [plot.Words((10, 30), "a", anchor="middle"), plot.Words((10, 30), "a"), plot.Words((30, 30), 'a" \\', anchor="end"),
     plot.Dot((10, 30), 3, plot.INK), plot.Box((10, 30), (5, 5), plot.INK), plot.Line([(10, 30), (20, 10)], plot.INK),
     plot.Line([(x % 40, x % 37) for x in range(5000)], plot.INK)],
    ids=lambda shape: type(shape).__name__,
)  # fmt: skip
def test_every_shape_is_in_the_png(shape):
    """It is not the empty paper, and no larger than that."""
    paper, drawn = plot.Picture(40, 40, "").png(), plot.Picture(40, 40, "", [shape]).png()
    assert png_size(paper) == png_size(drawn) == (80, 80)
    assert paper != drawn


@pytest.mark.parametrize("command", [("--steps", "20"), ("moons", "--steps", "3")], ids=["loss curve", "moons"])
def test_pictures(gradwalk, tmp_path, command):
    """--plot writes an SVG that parses and a PNG that is whole."""
    for name in ("picture.svg", "picture.PNG"):
        assert gradwalk("train", *command, "--plot", name).status == 0
    svg = ElementTree.parse(tmp_path / "picture.svg").getroot()
    assert svg.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(svg.findall("{http://www.w3.org/2000/svg}text")) > 5
    assert png_size((tmp_path / "picture.PNG").read_bytes()) == (2 * int(svg.get("width")), 2 * int(svg.get("height")))


def test_png_needs_graphviz(gradwalk, tmp_path, monkeypatch):
    """Without it that is said in one line, before anything is trained."""
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    outcome = gradwalk("train", "--plot", "loss.png")
    assert outcome.status == 2
    assert outcome.err == "gradwalk: draw: expected pygraphviz to be installed; pip install 'gradwalk[draw]'\n"
    assert list(tmp_path.glob("*.safetensors")) == []


def test_numbers_lie_in_proportion_on_the_frame():
    """From its left to its right and from its bottom to its top; where all are the same, at its beginning."""
    axes = plot.Axes((10.0, 30.0, -1.0, 3.0), frame=(64.0, 696.0, 372.0, 64.0))
    found = [axes.at(x, y) for x, y in ((10.0, -1.0), (30.0, 3.0), (20.0, 1.0), (15.0, 2.0))]
    assert found == [(64.0, 372.0), (696.0, 64.0), (380.0, 218.0), (222.0, 141.0)]
    assert plot.Axes((5.0, 5.0, 2.0, 2.0), axes.frame).at(5.0, 2.0) == (64.0, 372.0)


@pytest.mark.parametrize("losses", [[1e17], [1e17] * 3])
def test_losses_that_no_margin_fits_around(losses):
    """A number so large that half of one is nothing beside it: it is marked, and drawn."""
    shapes = plot.loss_curve(losses).shapes
    assert [shape.text for shape in shapes if isinstance(shape, plot.Words) and "e+" in shape.text] == ["1e+17"]


@pytest.mark.parametrize("losses", [[1e-15, 7e-15], [1e-300, 1.5e-300], [1.7e308, -1.7e308, 2.0, 3.0], [1e200, 3e200]])
def test_losses_of_any_size_have_marks_that_differ(losses):
    """Tiny ones are not all 0.0, and what is as large as a number can be makes no axis overflow."""
    shapes = plot.loss_curve(losses).shapes
    marks = [float(shape.text) for shape in shapes if isinstance(shape, plot.Words) and shape.text[:1].isdigit()]
    shown = [loss for loss in losses if terminal_plot.is_shown(loss)]
    heights = [mark for mark in marks if min(shown) <= mark <= max(shown)]
    assert len(set(heights)) >= 3
    lines = terminal_plot.curve(list(enumerate(losses)))
    assert max(map(len, lines)) < 80


def test_curve_of_nothing():
    """Says so."""
    assert terminal_plot.curve([]) == terminal_plot.curve([(1.0, float("inf"))]) == ["(no points to draw)"]


def test_help_has_sections(gradwalk):
    """--help groups the options under headings."""
    out = gradwalk("train", "--help").out
    headings = [line[:-1] for line in out.splitlines() if line.endswith(":") and line[0] != " "]
    assert headings == ["Data", "Model", "Learning", "Run and checkpoints", "Output", "Other", "Commands"]
    assert "x>=" not in out


@takes_minutes_on_reference
def test_moons(gradwalk):
    """Two moons are told apart; the map has both regions and both kinds of points."""
    outcome = gradwalk("train", "moons")
    assert outcome.status == 0
    assert "step  100/100" in outcome.out
    assert all(mark in outcome.out for mark in "░○●")
    assert json.loads(gradwalk("train", "moons", "--json").out)["accuracy"] >= 0.98
    assert float(gradwalk("train", "moons", "--quiet").out) >= 0.98


def test_moons_are_those_of_micrograds_demo():
    """The loss, its penalty, the accuracy and the falling rate, written by hand as they are there."""
    moons = Moons(two_moons(7, 0.1, random.Random(1)), seed=3)
    random.seed(3)
    model, records = MLP(2, [16, 16, 1]), list(moons.run(2))
    for k, record in enumerate(records):
        scores = [model([x, y]) for x, y, _ in moons.examples]
        margins = [(1 + -label * score).relu() for (_, _, label), score in zip(moons.examples, scores, strict=True)]
        loss = sum(margins) / len(margins) + 1e-4 * sum(p * p for p in model.parameters())
        right = [(score.data > 0) == (label > 0) for (_, _, label), score in zip(moons.examples, scores, strict=True)]
        assert (k + 1, sum(right) / 7) == (record.step, record.accuracy)
        assert loss.data == pytest.approx(record.loss, rel=1e-12)
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data -= (1.0 - 0.9 * k / 2) * p.grad
    assert [p.data for p in model.parameters()] == pytest.approx([p.data for p in moons.parameters], rel=1e-9)
    points = [(x, y) for x, y, _ in moons.examples]
    assert [model(point).data for point in points] == pytest.approx(moons.scores(points), rel=1e-9)
    right = [(model([x, y]).data > 0) == (label > 0) for x, y, label in moons.examples]
    assert sum(right) / 7 == moons.accuracy()


def test_moons_of_an_odd_number_of_points():
    """The upper one has one more, and both reach from end to end."""
    found = [(round(x, 2), round(y, 2), label) for x, y, label in two_moons(5, 0.0, random.Random(1))]
    assert found == [(1.0, 0.0, -1), (0.0, 0.5, 1), (0.0, 1.0, -1), (2.0, 0.5, 1), (-1.0, 0.0, -1)]


def test_the_networks_regions_are_drawn_from_the_top(monkeypatch):
    """Each cell by its middle; the picture has room around the points."""
    moons, asked = Moons([(0.0, 0.0, 1), (2.0, 1.0, -1)], seed=1), []
    monkeypatch.setattr(moons, "scores", lambda points: asked.extend(points) or [y - x / 2.0 for x, y in points])
    assert moons.limits() == (-0.4, 2.4, -0.4, 1.4)
    assert moons.regions(2, 2) == [[True, True], [False, False]]
    assert asked == [pytest.approx(point) for point in ((0.3, 0.95), (1.7, 0.95), (0.3, 0.05), (1.7, 0.05))]


def test_moons_leave_pythons_generator_as_it_was():
    """Its own weights come from a seed."""
    random.seed(5)
    before = random.getstate()
    Moons([(0.0, 0.0, 1)], seed=1)
    assert before == random.getstate()


@pytest.mark.parametrize(
    ("steps", "told"), [(4, [1, 2, 3, 4]), (20, [1, *range(2, 21, 2)]), (105, [1, *range(10, 101, 10)])]
)
def test_ten_lines_of_moons_and_the_first(capsys, steps, told):
    for step in range(1, steps + 1):
        moons_report.printed(Progress(step, 0.25, 0.5), steps)
    expected = [f"step {step:>4}/{steps}  loss 0.2500  accuracy 50%" for step in told]
    assert expected == capsys.readouterr().out.splitlines()


def test_moons_in_numbers(gradwalk, monkeypatch):
    """--json has every loss; --plot is named in it, and at the end of what is printed."""
    monkeypatch.setattr(moons_report, "PICTURE_CELLS", (4, 4))
    small = ("train", "moons", "--steps", 2, "--points", 6)
    found = json.loads(gradwalk(*small, "--json", "--plot", "a.svg").out)
    assert tuple(found[name] for name in ("steps", "points", "parameters", "engine", "plot")) == (
        2,
        6,
        337,
        engine.NAME,
        "a.svg",
    )
    assert len(found["losses"]) == 2
    assert json.loads(gradwalk(*small, "--json").out)["plot"] is None
    lines = gradwalk(*small, "--plot", "a.svg").out.splitlines()
    assert lines[-2].startswith(f"accuracy {found['accuracy']:.1%} after 2 steps, 337 parameters, ")
    assert lines[-1] == "picture: a.svg"


def test_moons_that_diverge_are_an_error(gradwalk, monkeypatch):
    """With the step at which they did."""
    monkeypatch.setattr(Moons, "run", lambda moons, steps: iter([Progress(1, 0.5, 0.5), Progress(2, math.inf, 0.5)]))
    assert gradwalk("train", "moons", "-q").err == "gradwalk: step 2: the loss is inf\n"


def test_moons_are_drawn_again_after_a_while(monkeypatch):
    """Fifteen times a second at most; and as they are in the end."""
    now, drawn = [100.0], []
    monkeypatch.setattr(moons_report.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(moons_report, "map_lines", lambda moons: drawn.append(now[0]) or ["map"])
    with moons_report.watched(Moons([(0.0, 0.0, 1)], seed=1)) as show:
        for step in range(1, 11):
            now[0] = 100.0 + step / 40.0
            show(Progress(step, 0.25, 0.5), 10)
    assert drawn == [100.0, 100.025, 100.1, 100.175, 100.25, 100.25]


@takes_minutes_on_reference
def test_moons_move_on_a_terminal():
    """The map is drawn again while the network learns, over the one before; the last one stays."""
    seen = on_a_terminal("train", "moons", "--steps", "40")
    assert seen.count("\x1b[1A") > 2 * 22
    assert seen.count("●") > 2 * 40
    assert "accuracy" in seen.splitlines()[-1]


def test_reader_that_goes_away_loses_nothing(names_file, tmp_path):
    """`gradwalk train | head -3`: the run ends, and what it had learnt is in the checkpoint."""
    path = tmp_path / "run"
    options = ("--steps", "100000", "--eval-every", "20", "--checkpoint-every", "100000", "--checkpoint", str(path))
    command = [*COMMAND, "train", "--data", str(names_file), *TINY_MODEL, *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not process.stdout.readline().startswith("step"):
        assert process.poll() is None
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert (process.wait(timeout=30), err) == (1, "")
    assert load(path).step > 0
