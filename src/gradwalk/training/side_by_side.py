"""Runs that are stepped side by side: what `Trainer` does for one, by one program for many of one shape.

A run's state is plain (a configuration, a checkpoint), so that it can be saved, and advanced in any process.
"""

from __future__ import annotations

import math
import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gradwalk.errors import NumberError
from gradwalk.training.checkpoint import Checkpoint, CheckpointError, short
from gradwalk.training.loop import Configuration, NotFiniteError, Trainer

SIDE_BY_SIDE = 64  # runs at most: more are no quicker for each, and each keeps some memory
APART = ("seed", "lr", "schedule", "warmup")  # what the runs of one program may have otherwise than each other


@dataclass(frozen=True)
class RunState:
    """A run between two steps. An error says why it is over before its end."""

    number: int
    configuration: Configuration
    checkpoint: Checkpoint | None = None  # None: it has not begun
    error: str | None = None

    @property
    def step(self) -> int:
        return self.checkpoint.step if self.checkpoint else 0

    @property
    def is_over(self) -> bool:
        return self.error is not None or (self.checkpoint is not None and self.step >= self.configuration.steps)


def pieces(runs: Sequence[RunState], largest: int = SIDE_BY_SIDE) -> list[list[RunState]]:
    """The runs, by twos and more where one program serves them: those that are at one step, of one shape."""
    by_program: dict[Hashable, list[RunState]] = {}
    for run in runs:
        settings = run.configuration
        shares = settings.compiled and settings.batch_size == 1 and settings.clip is None
        alike = replace(settings, **{name: getattr(Configuration, name) for name in APART}) if shares else run.number
        by_program.setdefault((alike, run.step), []).append(run)
    return [alike[i : i + largest] for alike in by_program.values() for i in range(0, len(alike), largest)]


class SideBySide:
    """The trainers of one piece. Where there are several, they share the first one's model, optimiser and program."""

    def __init__(self, trainers: Sequence[Trainer]) -> None:
        self.trainers, self.errors = list(trainers), [""] * len(trainers)
        if len(trainers) == 1:
            return
        first = trainers[0]
        assert first.compiled is not None
        self._parameters = tuple(first.optimiser.parameters)
        self._models = first.compiled.models([trainer.model for trainer in trainers], self._parameters)
        self._models.steps[:] = [trainer.step for trainer in trainers]
        for name, rows in self._models.moments(first.optimiser).items():
            for row, trainer in zip(rows, trainers, strict=True):
                row[:] = trainer.optimiser.state_dict()[name]
        for trainer in trainers:
            trainer.model, trainer.optimiser, trainer.compiled = first.model, first.optimiser, first.compiled

    def advance(self, steps: int, evaluate_every: int) -> None:
        """So many steps of each run, or as many as are left; an error of one is no other's."""
        if len(self.trainers) == 1:
            self._alone(steps, evaluate_every)
            return
        trainers = self.trainers
        for _ in range(min(steps, trainers[0].configuration.steps - trainers[0].step)):
            going = [row for row, error in enumerate(self.errors) if not error]
            documents = {row: trainers[row].next_documents()[0] for row in going}
            inputs = [trainer.tokens(documents[row]) if row in documents else None for row, trainer in
                      enumerate(trainers)]  # fmt: skip
            rates = [trainer.rate() for trainer in trainers]
            mask = None if len(going) == len(trainers) else [row in documents for row in range(len(trainers))]
            losses, raised = self._models.try_step(trainers[0].optimiser, inputs, rates, mask)
            for row, loss in zip(going, losses[going].tolist(), strict=True):
                if row in raised or not math.isfinite(loss):
                    self._fail(row, documents[row], loss, raised.get(row))
                else:
                    trainers[row].stepped(loss)
                    if trainers[row].evaluates(evaluate_every):
                        self._evaluate(row, evaluate_every)

    def _alone(self, steps: int, evaluate_every: int) -> None:
        trainer = self.trainers[0]
        try:
            for _ in trainer.run(trainer.step + steps, evaluate_every):
                pass
        except (NotFiniteError, NumberError) as error:
            self.errors[0] = str(error)

    def _fail(self, row: int, document: str, loss: float, error: Exception | None) -> None:
        """In the words in which the run by itself would end."""
        trainer = self.trainers[row]
        if error is not None and not isinstance(error, NumberError):
            raise error
        try:
            if error is not None:
                raise trainer.no_loss([document], error)
            self._put_in_place(row)
            trainer.check(document, loss)
        except (NotFiniteError, NumberError) as told:
            self.errors[row] = str(told)

    def _evaluate(self, row: int, every: int) -> None:
        self._put_in_place(row)
        try:
            self.trainers[row].evaluated(every)
        except NotFiniteError as error:
            self.errors[row] = str(error)

    def _put_in_place(self, row: int) -> None:
        """The run's numbers, into the model and the optimiser that all share."""
        trainer = self.trainers[row]
        for value, number in zip(self._parameters, self._models.weights[row].tolist(), strict=True):
            value.data = number
        moments = {name: rows[row] for name, rows in self._models.moments(trainer.optimiser).items()}
        trainer.optimiser.load_state_dict({"step": trainer.step, **moments})

    def states(self, runs: Sequence[RunState], data_name: str | None, evaluation: dict[str, int]) -> list[RunState]:
        """The runs as they stand now."""
        made = []
        for row, (run, trainer) in enumerate(zip(runs, self.trainers, strict=True)):
            checkpoint, error = run.checkpoint, self.errors[row]
            if not error:
                if len(self.trainers) > 1:
                    self._put_in_place(row)
                try:
                    checkpoint = replace(trainer.checkpoint(data_name), evaluation=evaluation)
                except NotFiniteError as told:
                    error = str(told)
            made.append(replace(run, checkpoint=checkpoint, error=error or None))
        return made


# ---------------------------------------------------------------- in whichever process

LIVE = 2
_live: dict[Any, SideBySide] = {}  # the pieces that were advanced here last


def advanced(
    documents: Sequence[str], piece: Any, runs: Sequence[RunState], steps: int, data_name: str | None,
    evaluation: dict[str, int],
) -> tuple[list[RunState], float]:  # fmt: skip
    """The runs of a piece after so many steps more, and the seconds that the steps took."""
    group = _live.pop(piece, None)
    if group is None or [trainer.step for trainer in group.trainers] != [run.step for run in runs]:
        group = SideBySide([_trainer(run, documents, evaluation["documents"]) for run in runs])
    began = time.perf_counter()
    group.advance(steps, evaluation["every"])
    took = time.perf_counter() - began
    states = group.states(runs, data_name, evaluation)
    if not all(state.is_over for state in states):
        _live[piece] = group
        if len(_live) > LIVE:
            del _live[next(iter(_live))]
    return states, took


def _trainer(run: RunState, documents: Sequence[str], evaluated_documents: int) -> Trainer:
    if run.checkpoint is None:
        return Trainer(run.configuration, documents, evaluated_documents=evaluated_documents)
    try:
        return Trainer.resumed(run.checkpoint, documents, run.configuration, evaluated_documents)
    except CheckpointError as error:
        raise CheckpointError(f"run {run.number}: {error}") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise CheckpointError(f"run {run.number}: a damaged checkpoint ({short(error)})") from None
