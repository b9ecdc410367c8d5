"""What a step's record says of it."""

from __future__ import annotations

import pytest
from small_runs import NAMES

from gradwalk.training import loop
from gradwalk.training.loop import Configuration, Trainer

TINY = Configuration(steps=5, n_embd=4, n_head=2, block_size=4)


def test_seconds_are_counted_from_the_beginning_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not since the last step, nor since the trainer was made; a run that goes on counts anew."""
    clock = iter([100.0, 103.0, 107.5, 200.0, 202.0])
    trainer = Trainer(TINY, NAMES)
    monkeypatch.setattr(loop.time, "perf_counter", lambda: next(clock))
    assert [record.seconds for record in trainer.run(until=2)] == [3.0, 7.5]
    assert [record.seconds for record in trainer.run(until=3)] == [2.0]


def test_steps_are_counted_from_one_and_have_their_own_loss() -> None:
    trainer = Trainer(TINY, NAMES)
    records = list(trainer.run(evaluate_every=2))
    assert [record.step for record in records] == [1, 2, 3, 4, 5]
    assert [record.loss for record in records] == list(trainer.losses)
    measured = [(record.step, record.validation_loss) for record in records if record.validation_loss is not None]
    assert ([2, 4, 5], measured) == ([step for step, _ in measured], trainer.validation_losses)
