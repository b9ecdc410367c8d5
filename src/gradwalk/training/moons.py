"""micrograd's demo: two moons, an MLP 2-16-16-1, a max-margin loss with an L2 penalty, SGD with a falling rate."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import mul
from typing import Any

from gradwalk.functions import dot
from gradwalk.functions import sum as total
from gradwalk.nn import MLP
from gradwalk.optim import SGD

PENALTY = 1e-4
Example = tuple[float, float, int]  # x, y, and the class: -1 for the upper moon, 1 for the lower


def two_moons(count: int, noise: float, rng: random.Random) -> list[Example]:
    """Points on two half circles that reach into each other, moved by normal noise.

    >>> [(round(x, 2), round(y, 2), label) for x, y, label in two_moons(4, 0.0, random.Random(1))]
    [(1.0, 0.0, -1), (0.0, 0.5, 1), (-1.0, 0.0, -1), (2.0, 0.5, 1)]
    """
    upper = (count + 1) // 2
    examples = []
    for i in range(count):
        size = upper if i % 2 == 0 else count - upper
        angle = math.pi * (i // 2) / max(size - 1, 1)
        x, y = (math.cos(angle), math.sin(angle)) if i % 2 == 0 else (1.0 - math.cos(angle), 0.5 - math.sin(angle))
        examples.append((x + rng.gauss(0.0, noise), y + rng.gauss(0.0, noise), 1 if i % 2 else -1))
    return examples


@dataclass(frozen=True)
class Progress:
    step: int  # from 1
    loss: float
    accuracy: float  # of the model before the step


class Moons:
    """The examples and the network, trained by `run`."""

    def __init__(self, examples: Sequence[Example], seed: int) -> None:
        self.examples = list(examples)
        before = random.getstate()
        random.seed(seed)  # micrograd's MLP draws its weights from Python's own generator
        self.model = MLP(2, [16, 16, 1])
        random.setstate(before)
        self.parameters = self.model.parameters()

    def loss(self) -> tuple[Any, float]:
        """The loss over all examples, and the share of them on the right side."""
        scores = [self.model([x, y]) for x, y, _ in self.examples]
        margins = [(1.0 - score * label).relu() for score, (_, _, label) in zip(scores, self.examples, strict=True)]
        right = sum(
            (score.data > 0.0) == (label > 0) for score, (_, _, label) in zip(scores, self.examples, strict=True)
        )
        penalty = dot(self.parameters, self.parameters) * PENALTY
        return total(margins) / len(margins) + penalty, right / len(self.examples)

    def run(self, steps: int) -> Iterator[Progress]:
        """Full-batch gradient descent; the rate falls from 1 to 0.1."""
        optimiser = SGD(self.parameters, lr=1.0)
        for k in range(steps):
            loss, accuracy = self.loss()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step(1.0 - 0.9 * k / steps)
            yield Progress(k + 1, loss.data, accuracy)

    def accuracy(self) -> float:
        scores = self.scores([(x, y) for x, y, _ in self.examples])
        right = sum((score > 0.0) == (label > 0) for score, (_, _, label) in zip(scores, self.examples, strict=True))
        return right / len(self.examples)

    def scores(self, points: Sequence[tuple[float, float]]) -> list[float]:
        """What the network says of these points, in plain floats: a picture needs thousands."""
        layers = [
            [([w.data for w in neuron.w], neuron.b.data) for neuron in layer.neurons] for layer in self.model.layers
        ]
        scores = []
        for point in points:
            out: Sequence[float] = point
            for layer in layers:
                inner = [max(x, 0.0) for x in out] if layer is not layers[0] else out
                out = [sum(map(mul, weights, inner), bias) for weights, bias in layer]
            scores.append(out[0])
        return scores

    def limits(self) -> tuple[float, float, float, float]:
        """Left, right, bottom and top of a picture with room around the examples."""
        xs, ys = [x for x, _, _ in self.examples], [y for _, y, _ in self.examples]
        return min(xs) - 0.4, max(xs) + 0.4, min(ys) - 0.4, max(ys) + 0.4

    def regions(self, columns: int, rows: int) -> list[list[bool]]:
        """Where the network says 1, as rows of cells from the top."""
        left, right, bottom, top = self.limits()
        points = [
            (left + (right - left) * (i + 0.5) / columns, top - (top - bottom) * (j + 0.5) / rows)
            for j in range(rows)
            for i in range(columns)
        ]
        positive = [score > 0.0 for score in self.scores(points)]
        return [positive[j * columns : (j + 1) * columns] for j in range(rows)]
