"""A loss that is infinite or not a number stops the run, and the operation that it began with is named."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy
import pytest
from small_runs import NAMES

from gradwalk import Value, engine, ieee
from gradwalk.training.checkpoint import load
from gradwalk.training.loop import Configuration, NotFiniteError, Trainer, first_not_finite, told_of

TINY = Configuration(steps=5, n_embd=4, n_head=2, block_size=4)
compiles = pytest.mark.skipif(engine.NAME == "reference", reason="there is nothing compiled")


def test_first_node_that_is_not_finite():
    """Of many, the one whose inputs are all finite, with its inputs' labels."""
    x, y = Value(1e200, label="x"), Value(-1e200, label="y")
    product = x * y
    root = (product + 1.0) * 0.0 + (x - y)
    assert first_not_finite(root) is product
    assert told_of(product, {}).startswith("it began with *, which gave -inf from 1e+200 (x), -1e+200 (y)")


def test_of_more_than_two_inputs_the_largest_is_told():
    """With how many there are; two are told both."""
    xs = [Value(x, label=label) for x, label in ((1e308, "a"), (-1.5e308, "b"), (2.0, "c"))]
    three, two = (Value(-math.inf, xs[:count], "sum", local_grads=(1.0,) * count) for count in (3, 2))
    assert "which gave -inf from 3 numbers, the largest -1.5e+308 (b);" in told_of(three, {})
    assert "which gave -inf from 1e+308 (a), -1.5e+308 (b);" in told_of(two, {})


@pytest.mark.parametrize(("label", "name", "told"), [("x", "", "x"), ("", "", "a number"), ("x", "w.1", "w.1")])
def test_a_number_that_was_not_finite_to_begin_with(label, name, told):
    """By its name as a parameter, or by its label, if it has one."""
    leaf = Value(math.inf, label=label)
    words = f"{told} is inf already; the step before went too far: try a smaller --lr, or --clip 1"
    assert words == told_of(leaf, {leaf: name} if name else {})


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


@pytest.mark.parametrize("batch_size", [1, 4])
@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=compiles)])
def test_operation_that_refuses_a_number_is_named(compiled, batch_size):
    """In its own words, with the documents: in a step, and in the validation loss."""
    settings = replace(TINY, activation="exp", compiled=compiled, batch_size=batch_size)
    trainer = Trainer(settings, NAMES)
    for row in trainer.model.blocks[0].mlp.up:
        for number, weight in enumerate(row):
            weight.data = 1e100 * (-1) ** number
    documents = r"'\w+'" if batch_size == 1 else r"'\w+', '\w+', '\w+', …"
    with pytest.raises(NotFiniteError, match=f"step 1: no finite loss for {documents}: exp: the result overflows"):
        next(trainer.run())
    with pytest.raises(NotFiniteError, match="step 0: no finite validation loss: exp: the result overflows"):
        trainer.validation_loss()


def test_loss_that_only_a_compiled_step_overflows_in():
    """Its sums are made in another order: where the plain model's numbers are all finite, that is said."""
    with pytest.raises(NotFiniteError, match="the loss for 'ada' is inf: every number that it was computed from is"):
        Trainer(TINY, NAMES).check("ada", math.inf)


def test_moons_too_far_apart(gradwalk):
    """Numbers that overflow end that run in one line, too."""
    outcome = gradwalk("train", "moons", "--noise", "1e308", "--steps", 1)
    assert (outcome.status, outcome.out, outcome.err) == (2, "", "gradwalk: step 1: the loss is nan\n")


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


def test_a_run_that_diverges_leaves_what_was_saved_last(train, tmp_path):
    """The step before the last was finite, and on its way there."""
    path = tmp_path / "run.safetensors"
    options = (
        "--optimizer",
        "sgd",
        "--schedule",
        "constant",
        "--lr",
        "1e60",
        "--steps",
        "100",
        "--checkpoint-every",
        "50",
    )
    outcome = train(*options, "--checkpoint", path)
    assert outcome.status == 2
    assert "step " in outcome.err
    assert load(path).step == 0
