"""`gradwalk sweep` from its command line: what it takes, alone and when it goes on."""

from __future__ import annotations

import json

import pytest
from small_runs import TINY_MODEL

from gradwalk import engine
from gradwalk.training import sweep as sweeps
from gradwalk.training.checkpoint import load


@pytest.fixture
def sweep(gradwalk, names_file):
    """`gradwalk sweep` of a tiny model, two steps a run, in this process."""
    options = (*TINY_MODEL[:6], "--steps", "2", "--workers", 1)
    return lambda *arguments: gradwalk("sweep", "--data", names_file, *options, *arguments)


def test_help_has_sections_of_train(gradwalk):
    """In its order; what only a sweep has comes after what a run is made of."""
    out = gradwalk("sweep", "--help").out
    headings = [line[:-1] for line in out.splitlines() if line.endswith(":") and line[0] != " "]
    assert headings == ["Data", "Model", "Learning", "Run and checkpoints", "Output", "Other"]


def test_a_sweep_of_one_run(sweep, tmp_path):
    """It is told apart from no other, so it goes by its seed."""
    outcome = sweep("--seed", 7)
    assert outcome.status == 0, outcome.err
    assert ": 1 runs, by seed; in gradwalk-sweep\n" in outcome.out
    assert [run["options"] for run in lines_of(tmp_path)] == [{"seed": 7}]


def lines_of(folder):
    return [json.loads(line) for line in (folder / "gradwalk-sweep" / "runs.jsonl").read_text().splitlines()]


def test_json_has_lines(sweep):
    outcome = sweep("--seed", "1,2", "--json")
    assert outcome.out == json.dumps(json.loads(outcome.out), indent=2) + "\n"


@pytest.mark.skipif(engine.NAME == "reference", reason="there is nothing compiled")
@pytest.mark.parametrize(
    ("asked", "compiled"), [((), True), (("--engine", "compiled"), True), (("--engine", "native"), False)]
)
def test_runs_are_compiled_unless_an_engine_is_asked_for(sweep, tmp_path, asked, compiled):
    assert sweep("--seed", 1, *asked).status == 0
    assert load(tmp_path / "gradwalk-sweep" / "best.safetensors").configuration["compiled"] == compiled


def test_engine_that_is_not_built(sweep, tmp_path, monkeypatch):
    """One line, and no folder."""

    def missing(name):
        raise ImportError(f"no {name} here")

    other = next(name for name in engine.ENGINES if name != engine.NAME)
    monkeypatch.setattr(engine, "load", missing)
    outcome = sweep("--engine", other)
    assert (outcome.status, outcome.err) == (
        2, f"gradwalk: --engine {other}: not built here (no {other} here); see gradwalk doctor\n"
    )  # fmt: skip
    assert not (tmp_path / "gradwalk-sweep").exists()


@pytest.mark.parametrize(
    "option", [("--random", 3), ("--engine", "native"), ("--lr", 1), ("--folder", "f"), ("--eval-every", 2)], ids=str
)
def test_what_cannot_change_when_a_sweep_goes_on(gradwalk, option):
    """It is named as it was written."""
    outcome = gradwalk("sweep", "--resume", "f", *option)
    words = f"gradwalk: f: {option[0]} cannot change when a sweep is resumed\n"
    assert (outcome.status, outcome.err) == (2, words)


def test_data_that_was_moved(sweep, gradwalk, names_file, tmp_path):
    """--data says where it is now."""
    assert sweep("--seed", "1,2", "-q").status == 0
    (tmp_path / "gradwalk-sweep" / "runs.jsonl").write_bytes(b"")
    moved = names_file.rename(tmp_path / "moved.txt")
    resumed = gradwalk("sweep", "--resume", "gradwalk-sweep", "--data", moved)
    assert resumed.status == 0, resumed.err
    assert resumed.out.startswith(f"{moved}: 2 runs, by seed; ")


@pytest.mark.parametrize(("most", "status"), [(2, 0), (1, 2)])
def test_a_folder_with_as_many_runs_as_there_may_be(sweep, gradwalk, names_file, monkeypatch, most, status):
    """More are a damaged file, and not begun."""
    assert sweep("--seed", "1,2", "-q").status == 0
    monkeypatch.setattr(sweeps, "LARGEST_SWEEP", most)
    resumed = gradwalk("sweep", "--resume", "gradwalk-sweep", "--data", names_file, "-q")
    assert resumed.status == status
    assert ("a damaged sweep.json (ValueError: not a list of runs)" in resumed.err) == (status == 2)
