"""Checkpoint files: what is in them, that they are replaced whole, and that others are refused."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import pickle
import stat
import struct
import sys
from types import SimpleNamespace

import numpy
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from gradwalk import files
from gradwalk.training import checkpoint, tensors


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


@pytest.mark.parametrize("dtype", ["float64", "float16", "bool"])
def test_foreign(gradwalk, tmp_path, dtype):
    """A safetensors file from elsewhere is named as such, whatever its numbers are."""
    path = tmp_path / "other.safetensors"
    save_file({"weight": numpy.zeros(3, dtype)}, path)
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
        lambda run: run["configuration"].update(optimizer="none"),
        lambda run: run["configuration"].update(validation_share=1.0),
        lambda run: run.update(order_position=10**6),
        lambda run: run.update(order_position="here"),
        lambda run: run.update(configuration=[]),
        lambda run: run.update(data="x"),
        lambda run: run.update(optimizer={}),
    ],
)
def test_damaged_description(gradwalk, saved, names_file, change):
    """Wrong entries in the description are one line each, never a traceback."""

    def edit(metadata):
        run = json.loads(metadata["run"])
        change(run)
        metadata["run"] = json.dumps(run)
        del metadata["checksum"]  # the first checkpoints had none

    outcome = gradwalk("train", "--resume", rewritten(saved, edit), "--data", names_file)
    assert (outcome.status, outcome.err.count("\n")) == (2, 1), outcome
    assert f"{saved}: a damaged checkpoint (" in outcome.err


def test_description_that_is_no_object(gradwalk, saved):
    """A list, say."""
    rewritten(saved, lambda metadata: metadata.update(run="[1]"))
    assert "a damaged checkpoint (its description is not an object)" in gradwalk("sample", saved).err


def test_numbers_of_a_type_that_no_checkpoint_has(gradwalk, saved):
    """Are damage, too."""
    with safe_open(saved, framework="numpy") as file:
        metadata = file.metadata()
    save_file({name: part.astype(bool) for name, part in load_file(saved).items()}, saved, metadata)
    assert f"{saved}: a damaged checkpoint (KeyError: 'BOOL')" in gradwalk("sample", saved).err


@pytest.mark.parametrize("version", ["x", "", "-1", "1.0", "1" * 10])
def test_format_that_is_none(gradwalk, saved, version):
    rewritten(saved, lambda metadata: metadata.update(gradwalk_checkpoint=version))
    assert f"{saved}: a damaged checkpoint (format {version!r})\n" in gradwalk("sample", saved).err


def test_as_large_as_it_may_be(saved, monkeypatch):
    monkeypatch.setattr(checkpoint, "LARGEST_FILE", saved.stat().st_size)
    assert checkpoint.load(saved).step == 5


def test_too_large(gradwalk, saved, monkeypatch):
    """It is not read to its end."""
    monkeypatch.setattr(checkpoint, "LARGEST_FILE", 1000)
    assert f"{saved}: larger than a checkpoint can be (1,000 bytes)" in gradwalk("sample", saved).err


@pytest.mark.parametrize("words", range(9))
def test_numbers_begin_where_they_can_be_read_in_place(words):
    """At a multiple of 8 bytes, however long the text before them is, and those of 8 bytes before shorter ones."""
    numbers = {"a": tensors.tensor("U8", [7]), "b": tensors.tensor("F64", [1.0, -2.5])}
    content = tensors.serialised(numbers, {"said": "w" * words})
    begin = 8 + int.from_bytes(content[:8], "little")
    assert begin % 8 == 0
    assert struct.unpack_from("<2dB", content, begin) == (1.0, -2.5, 7)


@pytest.mark.skipif(sys.byteorder == "big", reason="its numbers are the other way round there already")
def test_files_are_the_same_on_a_big_endian_machine(monkeypatch):
    """What is written there has the bytes the other way round than in memory, and so has what is read."""
    numbers = {"a": tensors.tensor("F64", [1.0, -2.5]), "b": tensors.tensor("I64", [3, -4])}
    here = tensors.serialised(numbers, {})
    monkeypatch.setattr(tensors, "sys", SimpleNamespace(byteorder="big"))
    there = tensors.serialised(numbers, {})
    assert there[-16:] == numpy.array([3, -4], ">i8").tobytes()
    assert there[-16:] != here[-16:]
    read = tensors.shaped(tensors.deserialised(there)[1])
    assert {name: part.tolist() for name, part in read.items()} == {"a": [1.0, -2.5], "b": [3, -4]}


def test_full_disk_keeps_the_last_good_one(train, resume, tmp_path, monkeypatch):
    """No space left in the middle of a save: one line, status 2; the checkpoint before stays, nothing is left over."""
    path = tmp_path / "saved"
    assert train("--steps", 20, "--stop-after", 5, "--checkpoint", path).status == 0
    before = path.read_bytes()

    def full(_file):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files.os, "fsync", full)
    outcome = resume(path, "--checkpoint-every", 5, "--quiet")
    assert (outcome.status, outcome.out) == (2, "")
    assert "No space left on device (step 10 was not saved; the checkpoint written last is still there)" in outcome.err
    assert outcome.err.count("\n") == 1
    assert path.read_bytes() == before
    assert list(tmp_path.glob("*.partial")) == []


def next_descriptor(folder):
    """The number that the next file gets: another one than before, where something stayed open."""
    free = os.open(folder, os.O_RDONLY)
    os.close(free)
    return free


def test_a_file_and_its_name_are_on_the_disk(tmp_path, monkeypatch):
    """All of it is written before it is synced, and after it has its name, so is the folder; nothing stays open."""
    synced = []

    def fsync(descriptor):
        about = os.fstat(descriptor)
        there = sorted(path.name for path in tmp_path.iterdir())
        synced.append("folder" if stat.S_ISDIR(about.st_mode) else about.st_size)
        assert (there == ["saved"]) == stat.S_ISDIR(about.st_mode)

    monkeypatch.setattr(files.os, "fsync", fsync)
    before = next_descriptor(tmp_path)
    files.replace_file(tmp_path / "saved", b"new" * 1000)
    assert synced == [3000, "folder"]
    assert next_descriptor(tmp_path) == before


def test_link_is_followed(tmp_path):
    """What a symbolic link points to is replaced, the link stays."""
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    files.replace_file(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o444])
def test_who_may_read_it_stays_as_it_was(train, resume, tmp_path, monkeypatch, mode):
    """Also while it is written: what one keeps to oneself is nobody else's for a moment."""
    path, real, seen = tmp_path / "saved", files._write, []

    def write(descriptor, content):
        seen.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        real(descriptor, content)

    assert train("--steps", 2, "--stop-after", 1, "--checkpoint", path).status == 0
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask
    path.chmod(mode)
    monkeypatch.setattr(files, "_write", write)
    assert resume(path).status == 0
    assert {mode} == {*seen, stat.S_IMODE(path.stat().st_mode)}


@pytest.mark.parametrize("call", ["fsync", "open", "close"])
def test_a_folder_that_cannot_be_synced(train, tmp_path, monkeypatch, call):
    """The file has its name by then: a run that is saved has not failed."""
    real = getattr(os, call)

    def failing(given, *arguments):
        if stat.S_ISDIR((os.stat if call == "open" else os.fstat)(given).st_mode if os.path.exists(given) else 0):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(given, *arguments)

    monkeypatch.setattr(files, "os", SimpleNamespace(**{**vars(os), call: failing}))
    outcome = train("--steps", 2, "--checkpoint", tmp_path / "saved")
    assert (outcome.status, outcome.err) == (0, "")
    assert checkpoint.load(tmp_path / "saved").step == 2


def test_leftovers_of_running_processes_stay(tmp_path):
    """Partial files of killed runs are removed; those that somebody is writing, in another container say, are not."""
    path = tmp_path / "saved[1]"
    names = ("saved[1].999999999", "saved[1].1", "saved[1].1-0123abcd", "saved1.1", "saved[1].notes")
    dead, also_dead, alive, other, notes = (tmp_path / f"{name}.partial" for name in names)
    for file in (dead, also_dead, alive, other, notes):
        file.touch()
    with alive.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        files.remove_leftovers(path)
    assert sorted(tmp_path.iterdir()) == sorted([alive, other, notes])


def test_no_leftover_stays_open(tmp_path):
    """Neither one that was removed nor one that somebody else holds: the next file gets the same number as before."""
    held = tmp_path / "saved.1.partial"
    (tmp_path / "saved.2.partial").touch()
    with held.open("w") as file, held.open() as probe:
        fcntl.flock(file, fcntl.LOCK_EX)
        free = os.dup(probe.fileno())
        os.close(free)
        files.remove_leftovers(tmp_path / "saved")
        after = os.dup(probe.fileno())
        os.close(after)
    assert list(tmp_path.iterdir()) == [held]
    assert free == after


def test_a_run_removes_what_killed_ones_have_left(train, resume, tmp_path):
    """Beside its own checkpoint, when it starts and when it goes on."""
    path, leftover = tmp_path / "saved", tmp_path / "saved.1-0123abcd.partial"
    leftover.touch()
    assert train("--steps", 2, "--stop-after", 1, "--checkpoint", path).status == 0
    assert sorted(tmp_path.glob("saved*")) == [path]
    leftover.touch()
    assert resume(path).status == 0
    assert sorted(tmp_path.glob("saved*")) == [path]


@pytest.mark.parametrize("system", ["Windows", "a file system"])
def test_without_locks(tmp_path, monkeypatch, system):
    """Files are written all the same; leftovers stay, because somebody may be writing them."""
    if system == "Windows":
        monkeypatch.setattr(files, "fcntl", None)
    else:
        monkeypatch.setattr(fcntl, "flock", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOLCK, "no locks")))
    path, leftover = tmp_path / "saved", tmp_path / "saved.1-0123abcd.partial"
    leftover.touch()
    files.replace_file(path, b"new")
    files.remove_leftovers(path)
    assert path.read_bytes() == b"new"
    assert sorted(tmp_path.iterdir()) == [path, leftover]


def test_partial_file_that_was_taken_for_a_leftover(tmp_path, monkeypatch):
    """Between its making and its lock somebody removed it: another one is made."""
    real, given = files.locked, []

    def locked(descriptor):
        if not given:
            [taken] = tmp_path.iterdir()
            taken.unlink()
        given.append(descriptor)
        return real(descriptor)

    monkeypatch.setattr(files, "locked", locked)
    before = next_descriptor(tmp_path)
    files.replace_file(tmp_path / "saved", b"new")
    assert next_descriptor(tmp_path) == before
    assert (len(given), [path.name for path in tmp_path.iterdir()]) == (2, ["saved"])
    assert (tmp_path / "saved").read_bytes() == b"new"


def test_interrupted_before_its_lock(tmp_path, monkeypatch):
    """Ctrl-C leaves nothing behind."""
    monkeypatch.setattr(files, "locked", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
    before = next_descriptor(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        files.replace_file(tmp_path / "saved", b"new")
    assert next_descriptor(tmp_path) == before
    assert list(tmp_path.iterdir()) == []
