"""jax: the GPT written with arrays; loss, gradient and Adam in one jitted function, float64."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
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
    SHAPES,
    TOKENS,
    Batch,
    OfOneArray,
    Training,
    batch_tokens,
    by_name,
    initial_weights,
    mlp_layers,
    mlp_point,
    rosenbrock_point,
)

jax.config.update("jax_enable_x64", True)

SEEN = np.tril(np.ones((POSITIONS, POSITIONS), bool))


def rmsnorm(x: Any) -> Any:
    return x * (jnp.mean(x * x, -1, keepdims=True) + 1e-5) ** -0.5


def loss_of(weights: dict[str, Any], tokens: Any) -> Any:
    """The mean over the positions of −log(the probability of the token that comes next)."""
    x = rmsnorm(weights["token_embedding"][tokens[:-1]] + weights["position_embedding"])
    normed = rmsnorm(x)
    query, key, value = ((normed @ weights[name].T).reshape(POSITIONS, HEADS, -1) for name in ("query", "key", "value"))
    scores = jnp.einsum("ihd,jhd->hij", query, key) / (EMBEDDING // HEADS) ** 0.5
    shares = jax.nn.softmax(jnp.where(SEEN, scores, -jnp.inf))
    x = x + jnp.einsum("hij,jhd->ihd", shares, value).reshape(POSITIONS, EMBEDDING) @ weights["attention_out"].T
    x = x + jax.nn.relu(rmsnorm(x) @ weights["mlp_in"].T) ** 2 @ weights["mlp_out"].T
    logs = jax.nn.log_softmax(x @ weights["lm_head"].T)
    return -jnp.mean(jnp.take_along_axis(logs, tokens[1:, None], 1))


def training_step(state: tuple[Any, ...], tokens: Any) -> tuple[tuple[Any, ...], Any]:
    """The state is the weights, Adam's two moments of them, and the number of steps; weights in any structure."""
    weights, means, squares, steps = state
    loss, gradient = jax.value_and_grad(lambda w: loss_of(w if isinstance(w, dict) else by_name(w), tokens))(weights)
    steps = steps + 1
    beta, beta_square = BETAS
    means = jax.tree.map(lambda m, g: beta * m + (1 - beta) * g, means, gradient)
    squares = jax.tree.map(lambda s, g: beta_square * s + (1 - beta_square) * g * g, squares, gradient)

    def moved(weight: Any, mean: Any, square: Any) -> Any:
        root = jnp.sqrt(square / (1 - beta_square**steps))
        return weight - LEARNING_RATE * (mean / (1 - beta**steps)) / (root + EPSILON)

    return (jax.tree.map(moved, weights, means, squares), means, squares, steps), loss


class JittedTraining(Training):
    compiles = True

    def __init__(self, flat: bool, donated: bool) -> None:
        self.flat, self.donated = flat, donated
        self.tokens = [jnp.array(tokens) for tokens in TOKENS]
        self.gradient = jax.jit(jax.value_and_grad(lambda flat, tokens: loss_of(by_name(flat), tokens)))
        self.reset()

    def reset(self) -> None:
        weights = jnp.array(initial_weights())
        start = weights if self.flat else by_name(weights)
        self.state = (start, *(jax.tree.map(jnp.zeros_like, start) for _ in range(2)), jnp.array(0.0))

    def compile(self) -> None:
        self.reset()
        # a function of its own: jax keeps what it has compiled for one it has seen
        self.step = jax.jit(
            lambda state, tokens: training_step(state, tokens), donate_argnums=(0,) if self.donated else ()
        )
        self(0)

    def loss_and_gradient(self, i: int) -> tuple[float, Any]:
        loss, gradient = self.gradient(jnp.array(initial_weights()), self.tokens[i])
        return float(loss), np.asarray(gradient)

    def __call__(self, i: int) -> Any:
        self.state, loss = self.step(self.state, self.tokens[i % len(NAMES)])
        jax.block_until_ready(self.state)
        return loss

    def weights(self) -> Any:
        weights = self.state[0]
        matrices = [weights] if self.flat else [weights[name] for name in SHAPES]  # jax sorts the names of a dict
        return np.concatenate([np.ravel(matrix) for matrix in matrices])


class JittedBatch(Batch):
    compiles = True

    def __init__(self) -> None:
        self.start, self.tokens = jnp.array(initial_weights()), jnp.array(batch_tokens())

    def compile(self) -> None:
        def total(flat: Any, tokens: Any) -> tuple[Any, Any]:
            losses = jax.vmap(lambda row: loss_of(by_name(flat), row))(tokens)
            return losses.sum(), losses

        self.function = jax.jit(jax.value_and_grad(total, has_aux=True))
        self(0)

    def __call__(self, i: int) -> Any:
        (_, losses), self.last = jax.block_until_ready(self.function(self.start, self.tokens))
        return losses

    def gradient(self) -> Any:
        return np.asarray(self.last)


# ---------------------------------------------------------------- functions of one array


def rosenbrock(x: Any) -> Any:
    before, after = x[:-1], x[1:]
    return (100.0 * (after - before * before) ** 2 + (1.0 - before) ** 2).sum()


def mlp(flat: Any) -> Any:
    x, target = flat[-3:-1], flat[-1]
    *hidden, (weight, bias) = mlp_layers(flat)
    for rows, biases in hidden:
        x = jnp.tanh(rows @ x + biases)
    return ((weight @ x + bias)[0] - target) ** 2


class JittedFunction(OfOneArray):
    compiles = True

    def __init__(self, function: Callable[[Any], Any], point: list[float]) -> None:
        super().__init__(point)
        self.function = function

    def compile(self) -> None:
        self.both = jax.jit(jax.value_and_grad(lambda x: self.function(x)))
        self(0)

    def __call__(self, i: int) -> tuple[float, Any]:
        value, gradient = self.both(self.point)
        return value.item(), np.asarray(gradient)


if __name__ == "__main__":
    serve(
        jax.__version__,
        {
            "gpt": {
                "one flat array": functools.partial(JittedTraining, flat=True, donated=False),
                "one flat array, donated": functools.partial(JittedTraining, flat=True, donated=True),
                "a matrix each, donated": functools.partial(JittedTraining, flat=False, donated=True),
            },
            "batch": {"vmap": JittedBatch},
            "rosenbrock": {"jit": lambda: JittedFunction(rosenbrock, rosenbrock_point())},
            "mlp": {"jit": lambda: JittedFunction(mlp, mlp_point())},
        },
    )
