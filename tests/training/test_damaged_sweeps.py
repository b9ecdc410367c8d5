"""Folders of sweeps that are damaged, hostile, or no sweeps at all: one line, at once, and nothing is lost."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import socket
from pathlib import Path

import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from small_runs import TINY_MODEL

from gradwalk.training import sweep as sweeps
from gradwalk.training.loop import Configuration

TINY = (*TINY_MODEL[:6], "--steps", "12", "--eval-every", "5")
FLIPS = 4000 if os.environ.get("GRADWALK_SOAK") else 250


@pytest.fixture
def sweep(gradwalk, names_file):
    """`gradwalk sweep` of the tiny model on a few names, in this process."""
    return lambda *arguments: gradwalk("sweep", "--data", names_file, *TINY, "--workers", 1, *arguments)


@pytest.fixture
def folder(sweep, tmp_path):
    """A sweep of two rates and two seeds that is over."""
    assert sweep("--lr", "0.01,0.02", "--seed", "1,2", "-q").status == 0
    return tmp_path / "gradwalk-sweep"


class TooLong(BaseException):
    """What no command catches."""


@pytest.fixture
def resume(gradwalk, names_file, folder):
    """`gradwalk sweep --resume`, which has some seconds and a gigabyte or two."""

    def too_long(*_):
        raise TooLong

    def run(*options):
        signal.alarm(20)
        try:
            return gradwalk("sweep", "--resume", "gradwalk-sweep", "--data", names_file, "--workers", 1, *options)
        finally:
            signal.alarm(0)

    before = signal.signal(signal.SIGALRM, too_long)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**31, limits[1]))
    yield run
    resource.setrlimit(resource.RLIMIT_AS, limits)
    signal.signal(signal.SIGALRM, before)


def told(outcome, *words):
    """Whether the outcome is one line with these words in it, and status 2."""
    assert (outcome.status, outcome.err.count("\n")) == (2, 1), outcome
    assert outcome.err.startswith("gradwalk: ")
    assert all(word in outcome.err for word in words), outcome.err
    return True


def ends_well(outcome):
    """Whether it is finished, or one line."""
    assert not set(outcome.out + outcome.err) & set("\x1b\x07\x9b\0")
    assert "MemoryError" not in outcome.err
    return (outcome.status == 0 and outcome.err == "") or told(outcome)


def test_folders_that_are_no_sweeps(gradwalk, sweep, names_file, tmp_path):
    """Whatever is in them, it is one line."""

    def refused(words):
        outcome = gradwalk("sweep", "--resume", "gradwalk-sweep", "--data", names_file)
        assert (outcome.status, outcome.err.count("\n")) == (2, 1)
        assert words in outcome.err

    assert "sweep.json" in gradwalk("sweep", "--resume", "nowhere").err
    assert sweep("--seed", "1..2", "-q").status == 0
    assert "it is there already; --resume gradwalk-sweep" in sweep("--folder", "gradwalk-sweep").err
    lines, described = tmp_path / "gradwalk-sweep" / "runs.jsonl", tmp_path / "gradwalk-sweep" / "sweep.json"
    whole = lines.read_bytes()
    lines.write_bytes(whole[:-5])  # killed as it wrote the last line: that run is made again
    assert gradwalk("sweep", "--resume", "gradwalk-sweep", "--data", names_file, "-q").status == 0
    assert lines.read_bytes() == whole
    lines.write_bytes(whole[:-1])  # it is whole: nothing is made again
    assert gradwalk("sweep", "--resume", "gradwalk-sweep", "--data", names_file, "-q").status == 0
    assert lines.read_bytes() == whole
    lines.write_bytes(whole + b"[1]")
    refused("line 3 is not a line of this sweep")
    lines.write_bytes(b"{}\n" + whole)
    refused("line 1 is not a line of this sweep")
    lines.write_bytes(b'{"run": 77}\n')
    refused("line 1 is not a line of this sweep")
    lines.write_bytes(b'{"run": 1, "loss": "low"}\n')
    refused("line 1 is not a line of this sweep")
    lines.write_bytes(b"")
    names_file.write_text("ann\nbob\n")
    refused("the data is not what the sweep began with")
    good = json.loads(described.read_text())
    for damage in (
        {"runs": []},
        {"common": {"lr": "high"}},
        {"evaluation": {"every": 0}},
        {"runs": 3},
        {"data": {"name": 3}},
    ):
        described.write_text(json.dumps({**good, **damage}))
        refused("a damaged sweep.json")
    assert good["gradwalk_sweep"] == 1
    described.write_text(json.dumps({**good, "gradwalk_sweep": 2}))
    refused("written by a newer gradwalk")
    described.write_text("{")
    refused("a damaged sweep.json")


@pytest.mark.parametrize("name", ["sweep.json", "runs.jsonl"])
@pytest.mark.parametrize("kind", ["a pipe", "a device", "a socket", "Is a directory", "No such file"])
def test_what_is_no_file(resume, folder, kind, name):
    """A pipe is not waited for, a device that has no end is not read."""
    (folder / name).unlink()
    if kind == "a pipe":
        os.mkfifo(folder / name)
    elif kind == "a device":
        (folder / name).symlink_to("/dev/zero")
    elif kind == "a socket":
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(os.path.relpath(folder / name))
    elif kind == "Is a directory":
        (folder / name).mkdir()
    assert told(resume(), kind, name)


@pytest.mark.parametrize(("name", "size"), [("sweep.json", sweeps.LARGEST_DESCRIPTION), ("runs.jsonl", 2**30)])
def test_what_is_too_large(resume, folder, name, size):
    """It is not read."""
    with open(folder / name, "ab") as file:
        file.truncate(size + 1)
    assert told(resume(), "larger than ", f"({size:,} bytes)")


def test_every_flipped_bit_and_every_length(resume, folder):
    """What is damaged is refused in one line, or says something else that can be."""
    source = random.Random(11)
    for name in ("sweep.json", "runs.jsonl"):
        path = folder / name
        whole, checked = path.read_bytes(), (folder / "runs.jsonl").read_bytes()
        changes = [bytearray(whole) for _ in range(FLIPS)]
        for change in changes:
            change[source.randrange(len(whole) - 1)] ^= 1 << source.randrange(8)
        for _ in range(FLIPS // 5):
            place, length = source.randrange(len(whole) - 1), source.randrange(40)
            changes.append(bytearray(whole[:place] + whole[place + length : -1] + b"\n"))
            changes.append(bytearray(whole[:place] + source.randbytes(length) + whole[place:]))
        if name == "sweep.json":
            changes += [bytearray(whole[:length]) for length in range(0, len(whole), 17)]
        for change in changes:
            path.write_bytes(change)
            (folder / "runs.jsonl").write_bytes(change if name == "runs.jsonl" else checked)
            assert ends_well(resume("--plot", "p.svg"))
        path.write_bytes(whole)
    assert resume().status == 0


HOSTILE = (None, True, 0, -1, 2, 10**9, 10**12, 2**63, 10**400, 0.5, 1e308, float("nan"), float("inf"), "", "x",
           "\x1b[2J\x07", "a\0b", "\ud800", [], [1], {}, [[]], {"a": 1})  # fmt: skip


def places(whole, before=()):
    """Where something stands in nested lists and dicts."""
    for key, part in whole.items() if isinstance(whole, dict) else enumerate(whole) if isinstance(whole, list) else ():
        yield from places(part, (*before, key))
    yield before


def changed(whole, place, part):
    if not place:
        return part
    copy = whole.copy()
    copy[place[0]] = changed(copy[place[0]], place[1:], part)
    return copy


def test_hostile_values(resume, folder):
    """Whatever stands in the place of anything, also where more runs are to be made."""
    described, lines = folder / "sweep.json", folder / "runs.jsonl"
    good, whole = json.loads(described.read_text()), lines.read_text().splitlines(keepends=True)
    for place in places(good):
        for value in HOSTILE:
            described.write_text(json.dumps(changed(good, place, value)))
            assert ends_well(resume("--plot", "p.svg")), (place, value)
    described.write_text(json.dumps(good))
    first = json.loads(whole[0])
    for place in places(first):
        for value in HOSTILE:
            lines.write_text("".join([json.dumps(changed(first, place, value)) + "\n", *whole[1:]]))
            assert ends_well(resume("--plot", "p.svg")), (place, value)
            if set(place) & {"options", "run", "step"} and value not in (first["run"], 12):
                assert told(resume(), "line 1 is not a line of this sweep"), (place, value)
    for name in first:
        lines.write_text("".join([json.dumps({k: v for k, v in first.items() if k != name}) + "\n", *whole[1:]]))
        assert told(resume(), "line 1 is not a line of this sweep")
    for text in ('{"run":1}', '{"run":3,"loss":1e400,"options":5}', "[" * 100_000, '{"run":' + "9" * 5000 + "}", "7"):
        lines.write_text(text + "\n" + "".join(whole))
        assert told(resume(), "line 1 is not a line of this sweep")


@pytest.mark.parametrize(
    "setting",
    [{"n_embd": 10**9}, {"block_size": 10**12}, {"n_layer": 10**6}, {"n_embd": 1, "n_head": 1, "n_layer": 10**6},
     {"schedule": "x"}, {"optimizer": "x"}, {"activation": "x"}, {"n_head": 3}, {"warmup": 10**9}, {"beta1": 7.0},
     {"clip": 0}, {"seed": -(2**62)}, {"momentum": 0.5}, {"weight_decay": 1}, {"batch_size": 10**9}],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("engines", [{"compiled": False}, {}], ids=["each by itself", "side by side"])
def test_hostile_settings_of_runs_that_are_to_be_made(resume, folder, setting, engines):
    """One that nobody can train is one line, at once, and no model of it is made."""
    described = json.loads((folder / "sweep.json").read_text())
    described["common"] |= {name: value for name, value in {**setting, **engines}.items() if name != "seed"}
    described["runs"] = [{**run, "seed": setting.get("seed", run["seed"])} for run in described["runs"]]
    (folder / "sweep.json").write_text(json.dumps(described))
    (folder / "runs.jsonl").write_text("")
    assert ends_well(resume("-q"))


def test_a_model_of_as_many_parameters_as_there_may_be():
    """One more is refused."""
    least = Configuration(n_embd=1, n_head=1, n_layer=1, block_size=10**7 - 12)
    assert least.smallest() == 10**7
    with pytest.raises(ValueError, match="expected a model of at most 10,000,000 parameters, got 10,000,001 or more"):
        Configuration(n_embd=1, n_head=1, n_layer=1, block_size=10**7 - 11)


@pytest.mark.parametrize(
    ("name", "damage"),
    [("order.words", lambda words: words[:5]), ("model.token_embedding.weight", lambda numbers: numbers[:1, :1]),
     ("optimizer.means", lambda numbers: numbers[:3])],
    ids=lambda given: given if isinstance(given, str) else "",
)  # fmt: skip
def test_hostile_checkpoints_of_runs_that_were_stopped(resume, folder, name, damage):
    """Tensors that do not fit are one line that names the run."""
    lines = (folder / "runs.jsonl").read_text().splitlines(keepends=True)
    best = min(map(json.loads, lines), key=lambda line: line["validation_loss"])["run"]
    (folder / "runs.jsonl").write_text("".join(line for line in lines if json.loads(line)["run"] != best))
    path = folder / f"run-{best}.safetensors"
    with safe_open(folder / "best.safetensors", framework="numpy") as file:
        metadata = file.metadata()
    run = json.loads(metadata["run"])
    del metadata["checksum"]
    tensors = load_file(folder / "best.safetensors")
    tensors["history.losses"] = tensors["history.losses"][:6]  # it has some steps left
    tensors = {kept: part[:1] if "validation" in kept else part for kept, part in tensors.items()}
    metadata["run"] = json.dumps({**run, "step": 6})
    save_file({**tensors, name: damage(tensors[name])}, path, metadata)
    assert told(resume(), f"run{'-' if 'safetensors' in resume().err else ' '}{best}", "a damaged checkpoint")
