"""NumPy: forward, backward and Adam derived by hand, with arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from serving import serve
from workloads import (
    BETAS,
    EMBEDDING,
    EPSILON,
    HEADS,
    LEARNING_RATE,
    NAMES,
    POSITIONS,
    TOKENS,
    WEIGHTS,
    OfOneArray,
    Training,
    by_name,
    initial_weights,
    mlp_layers,
    mlp_point,
    rosenbrock_point,
)

Array = Any
PLACES = np.arange(POSITIONS)
FUTURE = np.triu(np.full((POSITIONS, POSITIONS), -np.inf), 1)
SCALE = (EMBEDDING // HEADS) ** -0.5


# ---------------------------------------------------------------- the GPT


def rmsnorm(x: Array) -> tuple[Array, Array]:
    """Normed, and the scale that did it."""
    scale = (np.einsum("ij,ij->i", x, x)[:, None] / EMBEDDING + 1e-5) ** -0.5
    return x * scale, scale


def rmsnorm_backward(gradient: Array, normed: Array, scale: Array) -> Array:
    along = np.einsum("ij,ij->i", gradient, normed)[:, None] / EMBEDDING
    return scale * (gradient - normed * along)


def split(x: Array) -> Array:
    """A matrix for each head."""
    return x.reshape(POSITIONS, HEADS, -1).transpose(1, 0, 2)


def joined(x: Array) -> Array:
    return x.transpose(1, 0, 2).reshape(POSITIONS, EMBEDDING)


def loss_and_gradients(weights: dict[str, Array], gradients: dict[str, Array], tokens: Array) -> float:
    """The loss; its gradients by the weights are written into `gradients`."""
    here, after = tokens[:-1], tokens[1:]
    x, x_scale = rmsnorm(weights["token_embedding"][here] + weights["position_embedding"])
    normed, normed_scale = rmsnorm(x)
    query, key, value = (split(normed @ weights[name].T) for name in ("query", "key", "value"))
    scores = query @ key.transpose(0, 2, 1) * SCALE + FUTURE
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    gathered = joined(shares @ value)
    attended = x + gathered @ weights["attention_out"].T
    mlp_normed, mlp_scale = rmsnorm(attended)
    hidden = np.maximum(mlp_normed @ weights["mlp_in"].T, 0.0)
    squared = hidden * hidden
    final = attended + squared @ weights["mlp_out"].T
    logits = final @ weights["lm_head"].T
    exponentials = np.exp(logits - logits.max(1, keepdims=True))
    probabilities = exponentials / exponentials.sum(1, keepdims=True)
    loss = -np.log(probabilities[PLACES, after]).sum() / POSITIONS

    probabilities[PLACES, after] -= 1.0
    by_logits = probabilities / POSITIONS
    np.matmul(by_logits.T, final, out=gradients["lm_head"])
    by_final = by_logits @ weights["lm_head"]
    np.matmul(by_final.T, squared, out=gradients["mlp_out"])
    by_hidden = by_final @ weights["mlp_out"] * (2.0 * hidden)
    np.matmul(by_hidden.T, mlp_normed, out=gradients["mlp_in"])
    by_attended = by_final + rmsnorm_backward(by_hidden @ weights["mlp_in"], mlp_normed, mlp_scale)
    np.matmul(by_attended.T, gathered, out=gradients["attention_out"])
    by_gathered = split(by_attended @ weights["attention_out"])
    by_shares = by_gathered @ value.transpose(0, 2, 1)
    by_scores = shares * (by_shares - np.einsum("hij,hij->hi", by_shares, shares)[:, :, None]) * SCALE
    by_normed = np.zeros_like(x)
    for name, by_heads in (
        ("query", by_scores @ key),
        ("key", by_scores.transpose(0, 2, 1) @ query),
        ("value", shares.transpose(0, 2, 1) @ by_gathered),
    ):
        by_projected = joined(by_heads)
        np.matmul(by_projected.T, normed, out=gradients[name])
        by_normed += by_projected @ weights[name]
    by_x = by_attended + rmsnorm_backward(by_normed, normed, normed_scale)
    by_embedded = rmsnorm_backward(by_x, x, x_scale)
    gradients["position_embedding"][:] = by_embedded
    gradients["token_embedding"][:] = 0.0
    np.add.at(gradients["token_embedding"], here, by_embedded)
    return float(loss)


class ByHand(Training):
    def __init__(self) -> None:
        self.tokens = [np.array(tokens) for tokens in TOKENS]
        self.gradient = np.zeros(WEIGHTS)
        self.gradients = by_name(self.gradient)
        self.reset()

    def reset(self) -> None:
        self.flat = np.array(initial_weights())
        self.matrices = by_name(self.flat)
        self.mean, self.square = np.zeros(WEIGHTS), np.zeros(WEIGHTS)

    def loss_and_gradient(self, i: int) -> tuple[float, Array]:
        return loss_and_gradients(self.matrices, self.gradients, self.tokens[i]), self.gradient.copy()

    def __call__(self, i: int) -> float:
        loss = loss_and_gradients(self.matrices, self.gradients, self.tokens[i % len(NAMES)])
        beta, beta_square = BETAS
        gradient = self.gradient
        self.mean *= beta
        self.mean += (1 - beta) * gradient
        self.square *= beta_square
        self.square += (1 - beta_square) * gradient * gradient
        root = np.sqrt(self.square / (1 - beta_square ** (i + 1)))
        self.flat -= LEARNING_RATE / (1 - beta ** (i + 1)) * self.mean / (root + EPSILON)
        return loss

    def weights(self) -> Array:
        return self.flat


# ---------------------------------------------------------------- functions of one array


def rosenbrock(x: Array) -> tuple[float, Array]:
    before = x[:-1]
    away, short = x[1:] - before * before, 1.0 - before
    gradient = np.empty_like(x)
    gradient[:-1] = -400.0 * before * away - 2.0 * short
    gradient[-1] = 0.0
    gradient[1:] += 200.0 * away
    return float(100.0 * (away @ away) + short @ short), gradient


def mlp(flat: Array) -> tuple[float, Array]:
    gradient = np.empty_like(flat)
    layers, by_layers = list(mlp_layers(flat)), list(mlp_layers(gradient))
    reached = [flat[-3:-1]]
    for weight, bias in layers[:-1]:
        reached.append(np.tanh(weight @ reached[-1] + bias))
    weight, bias = layers[-1]
    off = weight @ reached[-1] + bias - flat[-1]
    by_out = 2.0 * off
    gradient[-1] = -by_out[0]
    for (weight, _), (by_weight, by_bias), x in zip(reversed(layers), reversed(by_layers), reversed(reached)):  # noqa: B905
        np.multiply(by_out[:, None], x, out=by_weight)
        by_bias[:] = by_out
        by_x = by_out @ weight
        by_out = by_x * (1.0 - x * x)
    gradient[-3:-1] = by_x
    return float(off[0] * off[0]), gradient


class ByHandFunction(OfOneArray):
    def __init__(self, function: Callable[[Array], tuple[float, Array]], point: list[float]) -> None:
        super().__init__(point)
        self.function = function

    def __call__(self, i: int) -> tuple[float, Array]:
        return self.function(self.point)


if __name__ == "__main__":
    serve(
        np.__version__,
        {
            "gpt": {"by hand": ByHand},
            "rosenbrock": {"by hand": lambda: ByHandFunction(rosenbrock, rosenbrock_point())},
            "mlp": {"by hand": lambda: ByHandFunction(mlp, mlp_point())},
        },
    )
