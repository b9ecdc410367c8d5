"""Metrics files: one run at a time has one, and what is in it already is kept, also where it was cut short."""

from __future__ import annotations

import json
from contextlib import closing

import pytest

from gradwalk.training.loop import Record
from gradwalk.training.metrics import MetricsError, MetricsFile

TAKEN = "another gradwalk train is at work on it"


def write(path, *steps, **how):
    with closing(MetricsFile(path, **how)) as file:
        for step in steps:
            file.add(Record(step, 2.5, 0.01, None, 0.1))


def steps_in(path):
    return [json.loads(line)["step"] for line in path.read_bytes().splitlines()]


@pytest.mark.parametrize("first", [{}, {"overwrite": True}, {"resumed_at": 3}], ids=str)
@pytest.mark.parametrize("second", [{"overwrite": True}, {"resumed_at": 1}], ids=str)
def test_one_run_at_a_time(tmp_path, first, second):
    """A second one is refused before it changes anything, however either began; when the first has ended, it is not."""
    path = tmp_path / "m"
    if first:
        write(path, 1, 2, 3)
    with closing(MetricsFile(path, **first)) as file:
        file.add(Record(4, 2.5, 0.01, None, 0.1))
        before = path.read_bytes()
        with pytest.raises(MetricsError, match=TAKEN):
            MetricsFile(path, **second)
        file.add(Record(5, 2.5, 0.01, None, 0.1))
        assert path.read_bytes().startswith(before)
        assert steps_in(path)[-2:] == [4, 5]
    write(path, 9, **second)
    assert steps_in(path)[-1] == 9


def test_the_command_says_so_before_it_saves(train, resume, tmp_path):
    """Nothing is left of a run whose metrics are another's."""
    assert train("--steps", 9, "--stop-after", 5, "--checkpoint", "run", "--metrics", "m", "--quiet").status == 0
    for command in (
        lambda: train("--steps", 2, "--checkpoint", "new", "--metrics", "m", "--overwrite"),
        lambda: resume("run", "--metrics", "m"),
    ):
        with closing(MetricsFile(tmp_path / "m", resumed_at=5)):
            outcome = command()
        assert (outcome.status, outcome.err) == (2, f"gradwalk: m: {TAKEN}\n")
    assert not (tmp_path / "new").exists()
    assert steps_in(tmp_path / "m") == [1, 2, 3, 4, 5]
    assert resume("run", "--metrics", "m").status == 0
    assert steps_in(tmp_path / "m") == list(range(1, 10))


@pytest.mark.parametrize(
    "content",
    ['{"my": "own settings"}', "[1, 2]", '"text"', "3", "words", "{}", '{"my": ', '{"step": NaN}', '{"step": true}',
     '{"step": "1"}', '{"loss": 1, "step"', "\0\0", "step,loss\n1,2"],
)  # fmt: skip
@pytest.mark.parametrize("before", ["", '{"step": 1, "loss": 2.5}\n'], ids=["alone", "at the end"])
@pytest.mark.parametrize("end", ["", "\n"], ids=["no newline", "newline"])
def test_what_is_no_metrics_is_left_alone(tmp_path, content, before, end):
    """A file of the user's, or a line that is no record and not the beginning of one."""
    path = tmp_path / "m"
    path.write_text(before + content + end)
    with pytest.raises(MetricsError, match="is not a line of metrics; nothing was written"):
        MetricsFile(path, resumed_at=5)
    assert path.read_text() == before + content + end


@pytest.mark.parametrize("resumed_at", [1, 3])
def test_cut_anywhere(tmp_path, resumed_at):
    """What was written whole is kept, also without its newline; what follows stands in lines of its own."""
    path = tmp_path / "m"
    write(path, 1, 2, 3)
    content = path.read_bytes()
    ends = [place for place, byte in enumerate(content) if byte == ord("\n")]
    for length in range(len(content) + 1):
        path.write_bytes(content[:length])
        write(path, 4, 5, resumed_at=resumed_at)
        whole = sum(end <= length for end in ends)
        assert steps_in(path) == [*range(1, min(whole, resumed_at) + 1), 4, 5]


def test_lines_in_another_order(tmp_path):
    """Of lines that somebody has put together, too, all up to the step are kept."""
    path = tmp_path / "m"
    path.write_text('{"step": 3}\n{"step": 1}\n')
    write(path, 2, resumed_at=1)
    assert steps_in(path) == [1, 2]
