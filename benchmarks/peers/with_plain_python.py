"""Plain Python: examples/scalar_gpt.py and its own training step, on the class of benchmarks/plain_value.py."""

from __future__ import annotations

import platform
import random
import sys
from pathlib import Path

from serving import serve
from workloads import LEARNING_RATE, NAMES, TOKENS, Training, initial_weights

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))

import scalar_gpt
from plain_value import Value


class PlainTraining(Training):
    def __init__(self) -> None:
        self.parameters = scalar_gpt.initial_parameters(random.Random(0), Value)
        self.leaves = scalar_gpt.flattened(self.parameters)
        self.reset()

    def reset(self) -> None:
        for leaf, weight in zip(self.leaves, initial_weights(), strict=True):
            leaf.data, leaf.grad = weight, 0.0
        self.moments = [0.0] * len(self.leaves), [0.0] * len(self.leaves)

    def loss_and_gradient(self, i: int) -> tuple[float, list[float]]:
        self.reset()
        loss = scalar_gpt.loss_of(self.parameters, TOKENS[i])
        loss.backward()
        return loss.data, [leaf.grad for leaf in self.leaves]

    def __call__(self, i: int) -> float:
        loss = scalar_gpt.loss_of(self.parameters, TOKENS[i % len(NAMES)])
        loss.backward()
        scalar_gpt.adam_step(self.leaves, self.moments, i, LEARNING_RATE)
        return loss.data

    def weights(self) -> list[float]:
        return [leaf.data for leaf in self.leaves]


if __name__ == "__main__":
    serve(platform.python_version(), {"gpt": {"scalars": PlainTraining}})
