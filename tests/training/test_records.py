"""What a step's record says of it."""

from __future__ import annotations

import pytest
from small_runs import NAMES

from gradwalk import engine
from gradwalk.training import loop, session
from gradwalk.training.loop import Configuration, Trainer

TINY = Configuration(steps=5, n_embd=4, n_head=2, block_size=4)


def test_what_nobody_says_is_what_the_command_does(gradwalk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A configuration and a plan without anything are those of `gradwalk train` without options."""
    asked: list[object] = []
    monkeypatch.setattr(session, "run", lambda plan, options, *_: asked.append((plan, options)) or 0)
    assert gradwalk("train").status == 0
    [(plan, options)] = asked
    assert session.Plan() == plan
    assert Configuration(compiled=engine.NAME == "native") == Configuration(**options)


@pytest.mark.parametrize(
    ("least", "names"),
    [(0, ("steps", "lr", "warmup", "beta1", "beta2", "momentum", "weight_decay", "clip", "validation_share")),
     (1, ("batch_size", "n_embd", "n_head", "n_layer", "block_size"))],
)  # fmt: skip
def test_the_least_that_a_setting_may_be(least: int, names: tuple[str, ...]) -> None:
    for name in names:
        assert getattr(Configuration(**{name: least}), name) == least
        with pytest.raises(ValueError, match=f"{name}: {least - 1} is out of range"):
            Configuration(**{name: least - 1})


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
