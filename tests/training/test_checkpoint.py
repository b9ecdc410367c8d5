"""Checkpoint files: what is in them, that they are replaced whole, and that others are refused."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import pickle

import numpy
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from gradwalk.training import checkpoint


@pytest.fixture
def saved(train, tmp_path):
    path = tmp_path / "saved.safetensors"
    assert train("--steps", 5, "--checkpoint", path).status == 0
    return path


def rewritten(path, change):
    """The file again, with its metadata changed."""
    with safe_open(path, framework="numpy") as file:
        metadata = file.metadata()
    change(metadata)
    save_file(load_file(path), path, metadata)
    return path


def test_plain_safetensors_tools_read_it(saved):
    """Parameters and moments are float64 tensors with names; the rest is JSON in the metadata."""
    tensors = load_file(saved)
    assert tensors["model.token_embedding.weight"].dtype == numpy.float64
    assert "optimizer.means" in tensors
    with safe_open(saved, framework="numpy") as file:
        run = json.loads(file.metadata()["run"])
    assert (run["step"], run["configuration"]["n_embd"]) == (5, 4)
    assert set(run["characters"]) == set("".join(sorted(run["characters"])))


def test_nothing_is_unpickled(gradwalk, tmp_path, monkeypatch):
    """A pickle that would run code is refused as foreign, and the code does not run."""

    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "sprung"),)

    path = tmp_path / "trap.safetensors"
    path.write_bytes(pickle.dumps(Trap()))
    assert gradwalk("sample", path).status == 2
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("kept", [0, 1, 8, 100, -1], ids=lambda kept: f"{kept} bytes")
def test_truncated(gradwalk, saved, kept):
    """A file that was cut short is refused in one line, by both commands, and left as it is."""
    saved.write_bytes(saved.read_bytes()[:kept])
    before = saved.read_bytes()
    for command in (("sample", saved), ("train", "--resume", saved)):
        outcome = gradwalk(*command)
        assert (outcome.status, outcome.out) == (2, "")
        assert f"{saved}: not a safetensors file, or cut short" in outcome.err
        assert outcome.err.count("\n") == 1
    assert saved.read_bytes() == before


def test_foreign(gradwalk, tmp_path):
    """A safetensors file from elsewhere is named as such."""
    path = tmp_path / "other.safetensors"
    save_file({"weight": numpy.zeros(3)}, path)
    outcome = gradwalk("sample", path)
    assert (outcome.status, outcome.err.count("\n")) == (2, 1)
    assert "a safetensors file, but not one of gradwalk's checkpoints" in outcome.err


def test_newer(gradwalk, saved):
    """A checkpoint of a later format says what to do."""
    rewritten(saved, lambda metadata: metadata.update(gradwalk_checkpoint="2"))
    outcome = gradwalk("train", "--resume", saved)
    assert (outcome.status, outcome.err.count("\n")) == (2, 1)
    assert "written by a newer gradwalk (format 2; this one reads 1)" in outcome.err


@pytest.mark.parametrize(
    "change",
    [
        lambda run: run.pop("step"),
        lambda run: run.update(step=-1),
        lambda run: run.update(step=3),
        lambda run: run.update(characters=""),
        lambda run: run.update(characters=7),
        lambda run: run["configuration"].update(n_embd=100_000),
        lambda run: run["configuration"].update(n_embd="4"),
        lambda run: run["configuration"].update(unheard_of=1),
        lambda run: run["configuration"].update(n_head=3),
        lambda run: run["configuration"].update(activation="none"),
        lambda run: run["configuration"].update(schedule="none"),
        lambda run: run.update(order_position=10**6),
        lambda run: run.update(order_position="here"),
        lambda run: run.update(configuration=[]),
        lambda run: run.update(data="x"),
        lambda run: run.update(optimizer={}),
    ],
)
def test_damaged_description(gradwalk, saved, change):
    """Wrong entries in the description are one line each, never a traceback."""

    def edit(metadata):
        run = json.loads(metadata["run"])
        change(run)
        metadata["run"] = json.dumps(run)

    outcome = gradwalk("train", "--resume", rewritten(saved, edit))
    assert (outcome.status, outcome.err.count("\n")) == (2, 1), outcome


def test_full_disk_keeps_the_last_good_one(train, resume, tmp_path, monkeypatch):
    """No space left in the middle of a save: one line, status 2; the checkpoint before stays, nothing is left over."""
    path = tmp_path / "saved"
    assert train("--steps", 20, "--stop-after", 5, "--checkpoint", path).status == 0
    before = path.read_bytes()

    def full(_file):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(checkpoint.os, "fsync", full)
    outcome = resume(path, "--checkpoint-every", 5, "--quiet")
    assert (outcome.status, outcome.out) == (2, "")
    assert "No space left on device (step 10 was not saved; the checkpoint written last is still there)" in outcome.err
    assert outcome.err.count("\n") == 1
    assert path.read_bytes() == before
    assert list(tmp_path.glob("*.partial")) == []


def test_link_is_followed(tmp_path):
    """What a symbolic link points to is replaced, the link stays."""
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    checkpoint.replace_file(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_leftovers_of_running_processes_stay(tmp_path):
    """Partial files of killed runs are removed; those that somebody is writing, in another container say, are not."""
    path = tmp_path / "saved[1]"
    names = ("saved[1].999999999", "saved[1].1", "saved[1].1-0123abcd", "saved1.1", "saved[1].notes")
    dead, also_dead, alive, other, notes = (tmp_path / f"{name}.partial" for name in names)
    for file in (dead, also_dead, alive, other, notes):
        file.touch()
    with alive.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        checkpoint.remove_leftovers(path)
    assert sorted(tmp_path.iterdir()) == sorted([alive, other, notes])
