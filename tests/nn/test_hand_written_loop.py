"""The training step by hand, as micrograd's users write it."""

from __future__ import annotations

import random
from typing import Any

import pytest

from gradwalk.nn import MLP

SAMPLES = (((0.5, -1.0), 1.0), ((-1.5, 0.25), -1.0), ((2.0, 1.0), 0.5))


@pytest.mark.parametrize("sizes", [[4, 1], [4, 4, 1]])
def test_the_loss_falls(sizes: list[int]) -> None:
    """Squared loss over three samples, zero_grad, backward, p.data -= lr * p.grad: every step makes it smaller."""
    random.seed(3)
    model = MLP(2, sizes)

    def loss() -> Any:
        return sum((model(x) - y) ** 2 for x, y in SAMPLES)

    losses = []
    for _ in range(20):
        current = loss()
        model.zero_grad()
        current.backward()
        for p in model.parameters():
            p.data -= 0.01 * p.grad
        losses.append(current.data)
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.8 * losses[0]
