"""Bad input to `gradwalk train` and `gradwalk sample`: one clear line on stderr, status 2, nothing overwritten."""

from __future__ import annotations

import itertools
import os
import tempfile
import time
from pathlib import Path

import click
import pytest
from small_runs import TINY_MODEL

from gradwalk import engine
from gradwalk.training import data
from gradwalk.training.checkpoint import load
from gradwalk.training.commands import sample
from gradwalk.training.commands import train as train_command
from gradwalk.training.sweep_command import sweep


def refused(outcome, *parts):
    """Whether the outcome is one line with these parts in it, and status 2."""
    assert outcome.status == 2, outcome
    assert outcome.out == ""
    assert outcome.err.count("\n") == 1
    assert outcome.err.startswith("gradwalk")
    assert all(part in outcome.err for part in parts), outcome.err
    return True


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no documents in it"),
        (b"\n \r\n\n", "no documents in it"),
        (b"emma\n", "only one document"),
        (b"aaa\naa\naaaa\n", "every document is made of the one character 'a'"),
        (b"emma\nzo\xe9\n", "not UTF-8 text at byte 7 (line 2)"),
        ("emma\nzoé\n".encode("utf-16"), "not UTF-8 text at byte 0 (line 1)"),
    ],
    ids=["empty", "blank lines only", "one line", "one character", "latin-1", "utf-16"],
)
def test_file_that_cannot_be_trained_on(gradwalk, tmp_path, content, words):
    """The file is named with what is wrong with it, and no checkpoint appears."""
    path = tmp_path / "bad.txt"
    path.write_bytes(content)
    assert refused(gradwalk("train", "--data", path), str(path), words)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "content",
    [b"emma\r\nolivia\r\n", b"\n\nemma\n\n\nolivia\n", b"\xef\xbb\xbfemma\nolivia", b"e" * 100 + b"\n" + b"mma" * 50],
    ids=["CRLF", "blank lines", "byte order mark", "longer than the block"],
)
def test_file_that_only_looks_odd(gradwalk, tmp_path, content):
    """These are trained on; of a document longer than the block the first characters count, and this is said."""
    path = tmp_path / "odd.txt"
    path.write_bytes(content)
    outcome = gradwalk("train", "--data", path, *TINY_MODEL, "--steps", 2)
    assert outcome.status == 0
    assert ("only their first 4 characters count" in outcome.out) == (b"emma" in content or b"mma" in content)


def test_one_line_with_nothing_set_aside(gradwalk, tmp_path):
    """One document is enough when none is to be set aside."""
    path = tmp_path / "one.txt"
    path.write_text("emma")
    assert gradwalk("train", "--data", path, "--validation-share", 0, *TINY_MODEL, "--steps", 2).status == 0


def test_gigabyte(gradwalk, tmp_path):
    """A file of 1 GB is refused by its size, at once, and the line says how to take a part of it."""
    path = tmp_path / "large.txt"
    with path.open("wb") as file:
        file.truncate(1 << 30)
    began = time.perf_counter()
    assert refused(gradwalk("train", "--data", path), "1,073,741,824 bytes", f"head -c {data.LARGEST_FILE} {path}")
    assert time.perf_counter() - began < 5.0


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no such device here")
def test_endless_file(gradwalk):
    """What has no end is read up to the limit and no further."""
    assert refused(gradwalk("train", "--data", "/dev/zero"), "expected at most")


def test_directory(gradwalk, tmp_path):
    """A folder is no file: as data, as checkpoint to resume or to write, as picture, as metrics."""
    folder = tmp_path / "folder.svg"
    folder.mkdir()
    assert refused(gradwalk("train", "--data", folder), "Is a directory")
    assert refused(gradwalk("train", "--resume", folder), "Is a directory")
    assert refused(gradwalk("sample", folder), "Is a directory")
    assert refused(gradwalk("train", "--checkpoint", folder), "there is a file already")
    assert refused(gradwalk("train", "--checkpoint", folder, "--overwrite"), "Is a directory")
    assert refused(gradwalk("train", "--plot", folder), "a folder, expected a file")
    assert refused(gradwalk("train", "--steps", 1, "--metrics", folder), "Is a directory")


def test_missing(gradwalk, tmp_path):
    """Files and folders that are not there are named."""
    assert refused(gradwalk("train", "--data", "no.txt"), "no.txt: No such file")
    assert refused(gradwalk("train", "--resume", "no.safetensors"), "no.safetensors: No such file")
    assert refused(gradwalk("sample", "no.safetensors"), "no.safetensors: No such file")
    assert refused(gradwalk("train", "--checkpoint", "no/run"), "no/run: No such file")
    assert refused(gradwalk("train", "--plot", "no/loss.svg"), "there is no folder no")


@pytest.fixture
def without_privileges():
    """As root nothing is forbidden: there, the test goes on as nobody."""
    import safetensors.numpy  # noqa: F401  # imported before: nobody may not be allowed to

    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    yield
    os.seteuid(0)


@pytest.fixture
def names_for_everybody():
    """Wherever the package and its own names lie."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        names = Path(folder, "names.txt")
        names.write_text("emma\nolivia\n")
        yield names


def test_no_permission(gradwalk, tmp_path, names_for_everybody, request):
    """A file that may not be read, and a folder that may not be written to, are named."""
    (tmp_path / "secret.txt").write_text("emma\nolivia\n")
    (tmp_path / "secret.txt").chmod(0)
    tmp_path.chmod(0o500)
    request.getfixturevalue("without_privileges")
    assert refused(gradwalk("train", "--data", tmp_path / "secret.txt"), f"{tmp_path}/secret.txt: Permission denied")
    assert refused(
        gradwalk("train", "--data", names_for_everybody, "--checkpoint", tmp_path / "run"),
        f"{tmp_path}/run: Permission denied",
    )
    assert refused(gradwalk("sample", tmp_path / "secret.txt"), f"{tmp_path}/secret.txt: Permission denied")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no such device here")
def test_metrics_on_a_full_disk_keep_the_checkpoint(train, tmp_path):
    """Where metrics cannot be written any more, the run stops in one line, and what it learnt is saved."""
    path = tmp_path / "run"
    full = train("--steps", 20, "--metrics", "/dev/full", "--quiet", "--checkpoint", path)
    assert refused(full, "/dev/full: No space left on device")
    assert load(path).step == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--n-embd", "10", "--n-head", "4"], "--n-embd 10 is not divisible by --n-head 4"),
        (["--n-embd", "0"], "--n-embd"),
        (["--steps", "-1"], "--steps"),
        (["--batch-size", "0"], "--batch-size"),
        (["--lr", "nan"], "not a finite number"),
        (["--lr", "-1"], "--lr"),
        (["--clip", "0"], "--clip"),
        (["--validation-share", "1"], "--validation-share"),
        (["--warmup", "500"], "expected 0 <= warmup < steps"),
        (["--optimizer", "adagrad"], "adagrad"),
        (["--weight-decay", "0.1"], "it belongs to adamw and sgd"),
        (["--momentum", "0.9"], "expected no momentum, it belongs to sgd"),
        (["--optimizer", "sgd", "--nesterov"], "expected momentum > 0"),
        (["--activation", "swish"], "activation: expected one of"),
        (["--schedule", "step"], "step"),
        (["--engine", "quantum"], "quantum"),
        (["--plot", "loss.gif"], "loss.gif: expected a file name that ends in .svg or .png"),
        (["moons", "--steps", "1", "--plot", "p.gif"], "p.gif: expected a file name that ends in .svg or .png"),
        (["--steps", "5", "moons"], "options of moons belong after that word"),
        (["--no-such-option"], "--no-such-option"),
    ],
)
def test_impossible_options(gradwalk, tmp_path, arguments, words):
    """An option that cannot be is named, before anything is written."""
    assert refused(gradwalk("train", *arguments), words)
    assert list(tmp_path.iterdir()) == []


def test_existing_files_are_not_overwritten(train, tmp_path):
    """A checkpoint or metrics file that is there stays, unless --overwrite is given."""
    for name, option in (("run", "--checkpoint"), ("metrics", "--metrics")):
        (tmp_path / name).write_text("precious")
        assert refused(train("--steps", 1, option, name), f"{name}: there is a file already", "--overwrite replaces it")
        assert (tmp_path / name).read_text() == "precious"
    assert train("--steps", 1, "--checkpoint", "run", "--metrics", "metrics", "--overwrite").status == 0


def test_checkpoint_for_another_vocabulary(train, gradwalk, tmp_path):
    """Data with other characters is refused, with the characters that are too many."""
    path, other = tmp_path / "run", tmp_path / "other.txt"
    train("--steps", 5, "--checkpoint", path)
    before = path.read_bytes()
    other.write_text("ÅSA\nemma\n", encoding="utf-8")
    assert refused(gradwalk("train", "--resume", path, "--data", other), "another vocabulary", "'ASÅ'")
    assert path.read_bytes() == before


def test_checkpoint_for_other_documents(train, resume, names_file):
    """Data that was changed since is refused: the run would not go on exactly."""
    train("--steps", 10, "--stop-after", 5, "--checkpoint", "run")
    names_file.write_text("ada\nalan\n")
    assert refused(resume("run"), "the data is not what the checkpoint was trained on")
    names_file.unlink()
    assert refused(resume("run"), "No such file", "--data says where it is now")


def test_resumed_run_keeps_its_configuration(train, resume):
    """What decides the numbers cannot change on the way; the same value again is no change."""
    train("--steps", 10, "--stop-after", 5, "--checkpoint", "run")
    assert refused(resume("run", "--lr", 0.5), "--lr cannot change", "it is 0.01")
    assert refused(resume("run", "--steps", 3), "the checkpoint is at step 5 already")
    assert resume("run", "--lr", 0.01).status == 0


@pytest.mark.skipif(engine.NAME == "reference", reason="there is nothing compiled")
def test_resumed_run_keeps_its_engine(train, resume):
    """In a compiled step the last bits differ."""
    for options, was, other in (((), "compiled", "native"), (("--engine", "native"), "not compiled", "compiled")):
        train("--steps", 10, "--stop-after", 5, "--checkpoint", "run", "--overwrite", *options)
        assert refused(resume("run", "--engine", other), f"--engine cannot change when a run is resumed: it is {was}")


def test_engine_that_is_not_built(train, monkeypatch):
    """The line has why, and who knows more."""

    def missing(name):
        raise ImportError(f"no {name} here")

    other = next(name for name in engine.ENGINES if name != engine.NAME)
    monkeypatch.setattr(engine, "load", missing)
    assert refused(train("--engine", other), f"--engine {other}: not built here (no {other} here); see gradwalk doctor")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--prompt", "x1"], "'x' is not among the characters that the model knows"),
        (["--prompt", "adaa"], "expected at most 3 characters (the model's block is 4), got 4"),
        (["--temperature", "-1"], "--temperature"),
        (["--temperature", "nan"], "not a finite number"),
        (["--top-k", "0"], "--top-k"),
        (["-n", "0"], "-n"),
    ],
)
def test_impossible_samples(train, gradwalk, arguments, words):
    """A prompt or setting that the model cannot work with is one line."""
    train("--steps", 1, "--checkpoint", "run")
    assert refused(gradwalk("sample", "run", *arguments), words)


COMMANDS = {"train": train_command, "train moons": train_command.commands["moons"], "sample": sample, "sweep": sweep}
WHOLE = [
    (name, option.opts[0])
    for name, command in COMMANDS.items()
    for option in command.params
    if isinstance(getattr(option.type, "each", option.type), click.IntRange)
]


@pytest.mark.parametrize(("command", "option"), WHOLE, ids=str)
@pytest.mark.parametrize("number", [2**63, 10**30], ids=str)
def test_numbers_have_an_end(gradwalk, tmp_path, command, option, number):
    """More than can be worked with, or saved and read again, is refused before there is a file."""
    file = ("nowhere",) if command == "sample" else ()
    assert refused(gradwalk(*command.split(), *file, option, number), option, "is not in the range")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("option", ["--eval-every", "--eval-documents", "--checkpoint-every", "--stop-after", "--seed"])
def test_the_largest_number(train, resume, option):
    """A run that was begun with it goes on."""
    assert train("--steps", 2, "--checkpoint", "run", "--samples", 0, option, 2**63 - 1).status == 0
    assert resume("run", "--steps", 3).status == 0


def test_most_points_and_processes(gradwalk):
    """No more than there is memory for."""
    assert refused(gradwalk("train", "moons", "--points", 10_001), "--points")
    assert refused(gradwalk("train", "--workers", 1025), "--workers")
    assert refused(gradwalk("sweep", "--workers", 1025), "--workers")


FILES = ["data", "resume", "checkpoint", "metrics", "plot"]


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(FILES, 2)))
@pytest.mark.parametrize("link", [None, "symlink_to", "hardlink_to"])
def test_two_options_with_one_file(train, gradwalk, names_file, tmp_path, one, other, link):
    """They are refused by whatever names they have, and the file stays as it is; but a run is saved where it was."""
    assert train("--steps", 4, "--stop-after", 2, "--checkpoint", "run.svg").status == 0
    named = {"data": names_file, one: tmp_path / "same.svg", other: tmp_path / "same.svg"}
    named[one].write_bytes((tmp_path / "run.svg" if "resume" in named else names_file).read_bytes())
    if link:
        named[other] = tmp_path / "link.svg"
        getattr(named[other], link)(named[one])
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    options = [word for name, path in named.items() for word in (f"--{name}", path)]
    shape = () if "resume" in named else TINY_MODEL
    outcome = gradwalk("train", *options, *shape, "--overwrite", "--steps", 4)
    if (one, other) == ("resume", "checkpoint"):
        assert outcome.status == 0, outcome
    else:
        words = "" if (one, other) == ("data", "resume") else f"--{one} and --{other}: expected two files"
        assert refused(outcome, words)  # a checkpoint is no text
        assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_sweep_does_not_draw_over_its_data(gradwalk, names_file, tmp_path):
    """Neither a new one nor one that goes on."""
    data = names_file.rename(tmp_path / "few.svg")
    words = "--data and --plot: expected two files"
    assert refused(gradwalk("sweep", "--data", data, "--plot", data), words)
    assert list(tmp_path.iterdir()) == [data]
    options = (*TINY_MODEL[:6], "--seed", "1,2", "--workers", 1, "--steps", 2, "-q")
    assert gradwalk("sweep", "--data", data, *options).status == 0
    assert refused(gradwalk("sweep", "--resume", "gradwalk-sweep", "--data", data, "--plot", "few.svg"), words)


def test_a_new_checkpoint_is_not_where_the_metrics_go(gradwalk, names_file, tmp_path):
    """Where nobody says where to save, it is beside them."""
    metrics = ("--metrics", "gradwalk-few.safetensors", "--overwrite")
    assert gradwalk("train", "--data", names_file, *TINY_MODEL, "--steps", 2, *metrics).status == 0
    assert load(tmp_path / "gradwalk-few-2.safetensors").step == 2
