"""The work that every peer is given: the same numbers to start from, and what it has to offer to be compared and timed.

Nothing here needs a peer to be installed, nor gradwalk.
"""

from __future__ import annotations

import gc
import itertools
import random
import time
from collections.abc import Iterable, Iterator
from typing import Any

Answer = dict[str, list[float]]  # parts by name; two peers are compared on the parts that both have


def numbers(found: Iterable[Any]) -> list[float]:
    """As plain floats, whatever a peer's numbers are."""
    return list(map(float, found))


class Workload:
    """One kind of work as one peer does it. A turn is many calls; `reset` comes before it and is not timed."""

    compiles = False

    def compile(self) -> None:
        """Make ready for the first call, from nothing, and do that call: some compile only then."""

    def __call__(self, i: int) -> Any:
        """Once; `i` counts the calls of a turn."""
        raise NotImplementedError

    def answer(self) -> Answer:
        """What the calls compute."""
        raise NotImplementedError

    def reset(self) -> None:
        """Back to where the first call began."""

    def facts(self) -> dict[str, int]:
        """What there is to count in what was compiled."""
        return {}

    def compile_seconds(self) -> float | None:
        """The time that `compile` takes; None where nothing is compiled."""
        began = time.perf_counter()
        self.compile()
        return time.perf_counter() - began if self.compiles else None

    def seconds(self, calls: int) -> float:
        """Mean time of a call, the garbage collector on."""
        self.reset()
        gc.collect()
        began = time.perf_counter()
        for i in range(calls):
            self(i)
        return (time.perf_counter() - began) / calls


# ---------------------------------------------------------------- the GPT of examples/scalar_gpt.py

LETTERS = "abcdefghijklmnopqrstuvwxyz"
EMBEDDING, HEADS, POSITIONS = 16, 4, 8
SHAPES = {
    "token_embedding": (len(LETTERS) + 1, EMBEDDING),
    "position_embedding": (POSITIONS, EMBEDDING),
    "query": (EMBEDDING, EMBEDDING),
    "key": (EMBEDDING, EMBEDDING),
    "value": (EMBEDDING, EMBEDDING),
    "attention_out": (EMBEDDING, EMBEDDING),
    "mlp_in": (4 * EMBEDDING, EMBEDDING),
    "mlp_out": (EMBEDDING, 4 * EMBEDDING),
    "lm_head": (len(LETTERS) + 1, EMBEDDING),
}
WEIGHTS = sum(rows * columns for rows, columns in SHAPES.values())
LEARNING_RATE, BETAS, EPSILON = 1e-2, (0.9, 0.95), 1e-8
NAMES = ("charlie", "gabriel", "camille", "beatrix")  # seven letters each: eight positions
STEPS = 20  # of training, before the weights are compared
BATCH = 64


def tokens_of(name: str) -> list[int]:
    """A name with a boundary on either side, as far as the model's positions reach."""
    boundary = len(LETTERS)
    return [boundary, *map(LETTERS.index, name), boundary][: POSITIONS + 1]


TOKENS = [tokens_of(name) for name in NAMES]


def batch_tokens() -> list[list[int]]:
    """64 names that are made up, each of seven letters."""
    rng = random.Random(3)
    return [tokens_of("".join(rng.choices(LETTERS, k=POSITIONS - 1))) for _ in range(BATCH)]


def initial_weights() -> list[float]:
    """Every weight in the order of SHAPES; none starts at zero, so that every gradient is there from the start."""
    rng = random.Random(42)
    return [rng.gauss(0.0, 0.05) for _ in range(WEIGHTS)]


def by_name(flat: Any) -> dict[str, Any]:
    """A flat array of all weights as one matrix for each name; works with the arrays of every peer."""
    matrices, start = {}, 0
    for name, (rows, columns) in SHAPES.items():
        matrices[name] = flat[start : start + rows * columns].reshape((rows, columns))
        start += rows * columns
    return matrices


class Gradients(Workload):
    """Losses and gradients of the GPT at its first weights; the name changes with every call."""

    def loss_and_gradient(self, i: int) -> tuple[float, Iterable[float]]:
        """Of name `i`, by every weight."""
        raise NotImplementedError

    def answer(self) -> Answer:
        self.reset()
        losses, gradients = zip(*map(self.loss_and_gradient, range(len(NAMES))), strict=True)
        return {"loss and gradient": numbers([*losses, *itertools.chain(*gradients)])}


class Training(Gradients):
    """Its training step: forward, backward and Adam. A call returns the loss."""

    def weights(self) -> Iterable[float]:
        """As they are now."""
        raise NotImplementedError

    def answer(self) -> Answer:
        first = super().answer()
        self.reset()
        losses = [self(i) for i in range(STEPS)]
        return {**first, "losses in training": numbers(losses), "trained weights": numbers(self.weights())}


class Batch(Workload):
    """The GPT's losses for 64 names at its first weights, and the gradient of their sum. A call returns the losses."""

    def gradient(self) -> Iterable[float]:
        """Of the last call, by every weight."""
        raise NotImplementedError

    def answer(self) -> Answer:
        self.reset()
        losses = self(0)
        return {"losses": numbers(losses), "gradient": numbers(self.gradient())}


# ---------------------------------------------------------------- functions of one array

VARIABLES = 1_000
MLP_SIZES = (2, 16, 16, 1)
MLP_NUMBERS = sum((inputs + 1) * outputs for inputs, outputs in itertools.pairwise(MLP_SIZES)) + 3


def rosenbrock_point() -> list[float]:
    rng = random.Random(1)
    return [rng.uniform(-2.0, 2.0) for _ in range(VARIABLES)]


def mlp_point() -> list[float]:
    """Weights and biases layer by layer, then the sample's two inputs and its target."""
    rng = random.Random(2)
    return [rng.gauss(0.0, 0.4) for _ in range(MLP_NUMBERS)]


def mlp_layers(flat: Any) -> Iterator[tuple[Any, Any]]:
    """The weights and biases in such an array, in the arrays of whichever peer."""
    start = 0
    for inputs, outputs in itertools.pairwise(MLP_SIZES):
        ends = start + inputs * outputs
        yield flat[start:ends].reshape((outputs, inputs)), flat[ends : ends + outputs]
        start = ends + outputs


class OfOneArray(Workload):
    """A function of one NumPy array: a call gives its value, and its gradient as a NumPy array."""

    def __init__(self, point: list[float]) -> None:
        import numpy as np

        self.point = np.array(point)

    def answer(self) -> Answer:
        value, gradient = self(0)
        return {"value and gradient": numbers([value, *gradient])}
