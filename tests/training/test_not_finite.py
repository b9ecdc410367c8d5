"""A loss that is infinite or not a number stops the run, and the operation that it began with is named."""

from __future__ import annotations

import math

import numpy
import pytest
from small_runs import NAMES

from gradwalk import Value, ieee
from gradwalk.training.checkpoint import load
from gradwalk.training.loop import Configuration, NotFiniteError, Trainer, first_not_finite, told_of

TINY = Configuration(steps=5, n_embd=4, n_head=2, block_size=4)


def test_first_node_that_is_not_finite():
    """Of many, the one whose inputs are all finite, with its inputs' labels."""
    x, y = Value(1e200, label="x"), Value(-1e200, label="y")
    product = x * y
    root = (product + 1.0) * 0.0 + (x - y)
    assert first_not_finite(root) is product
    assert told_of(product, {}).startswith("it began with *, which gave -inf from 1e+200 (x), -1e+200 (y)")


def test_nan_out_of_two_infinities():
    """An infinity comes before the nan that was made from it."""
    with ieee():
        x = Value(0.0)
        root = x.log() - x.log()
    assert math.isnan(root.data)
    assert first_not_finite(root)._op == "log"


def test_finite_graph():
    """Nothing is found where everything is finite."""
    assert first_not_finite(Value(1.0) + 2.0) is None


def test_parameter_that_is_not_finite_is_named():
    """A weight that is nan before the step is named by its path."""
    trainer = Trainer(TINY, NAMES)
    trainer.model.blocks[0].attention.wq[1][2].data = math.nan
    with pytest.raises(NotFiniteError, match=r"step 1: the loss for '\w+' is nan: blocks.0.attention.wq.1.2 is nan"):
        next(trainer.run())


def test_operation_in_the_model_is_named():
    """Weights so large that their squares overflow: the operation that overflowed is named, with its largest input."""
    trainer = Trainer(TINY, NAMES)
    for row in trainer.model.blocks[0].mlp.up:
        row[0].data = 1e200
    for row in trainer.model.blocks[0].mlp.down:
        row[0].data = 1e200
    with pytest.raises(NotFiniteError, match=r"it began with \S+, which gave \S+ from "):
        next(trainer.run())


@pytest.mark.parametrize("clip", [(), ("--clip", "1")])
def test_command_stops_with_one_line(train, tmp_path, clip):
    """A learning rate that is far too high: one line, status 2; the checkpoint that is left holds finite numbers."""
    outcome = train("--lr", "1e300", "--checkpoint-every", 1, "--checkpoint", "run", "--quiet", *clip)
    assert (outcome.status, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert outcome.err.startswith("gradwalk: step ")
    assert all(
        math.isfinite(number) for tensor in load(tmp_path / "run").model.values() for number in numpy.ravel(tensor)
    )


def test_parameters_that_are_not_finite_are_not_saved():
    """A checkpoint is not made of broken weights."""
    trainer = Trainer(TINY, NAMES)
    trainer.model.parameters()[0].data = math.inf
    with pytest.raises(NotFiniteError, match=r"parameters in token_embedding\.weight are not finite"):
        trainer.checkpoint()
