"""casadi: graphs of scalars (SX) and of matrices (MX), replayed by its virtual machine; without Adam.

Each is called in the ordinary way, and through buffers that are bound to it once.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import casadi
import numpy as np
from serving import serve
from workloads import (
    EMBEDDING,
    HEADS,
    MLP_SIZES,
    NAMES,
    POSITIONS,
    SHAPES,
    TOKENS,
    WEIGHTS,
    Gradients,
    OfOneArray,
    initial_weights,
    mlp_point,
    rosenbrock_point,
)

FUTURE = np.triu(np.full((POSITIONS, POSITIONS), -1e30), 1)


def value_and_gradient(kind: Any, expression: Callable[[Any], Any], count: int) -> Any:
    """The casadi function from `count` numbers to the value of the expression and its gradient."""
    numbers = kind.sym("numbers", count)
    value = expression(numbers)
    gradient = casadi.densify(casadi.gradient(value, numbers))
    return casadi.Function("value_and_gradient", [numbers], [value, gradient])


class ByCall:
    """The ordinary call: casadi makes its own matrices of what it is given, and NumPy arrays are made of those."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, point: Any) -> tuple[float, Any]:
        value, gradient = self.function(point)
        return float(value), gradient.toarray()[:, 0]


class ByBuffers:
    """Memory that was bound before: the numbers are copied in, and the gradient is where it always is."""

    def __init__(self, function: Any) -> None:
        self.point, self.value = np.zeros(function.size1_in(0)), np.zeros(1)
        self.gradient = np.zeros(function.size1_in(0))
        self.buffer, self.run = function.buffer()
        self.buffer.set_arg(0, memoryview(self.point))
        self.buffer.set_res(0, memoryview(self.value))
        self.buffer.set_res(1, memoryview(self.gradient))

    def __call__(self, point: Any) -> tuple[float, Any]:
        self.point[:] = point
        self.run()
        return self.value.item(), self.gradient


# ---------------------------------------------------------------- the GPT


def matrices_of(flat: Any) -> dict[str, Any]:
    """casadi counts down the columns first, the weights are listed row by row."""
    matrices, start = {}, 0
    for name, (rows, columns) in SHAPES.items():
        matrices[name] = casadi.reshape(flat[start : start + rows * columns], columns, rows).T
        start += rows * columns
    return matrices


def rmsnorm(x: Any) -> Any:
    return x * casadi.repmat((casadi.sum2(x * x) / EMBEDDING + 1e-5) ** -0.5, 1, EMBEDDING)


def scalar_attention(query: Any, key: Any, value: Any) -> Any:
    """Each position over itself and those before it."""
    rows = []
    for i in range(POSITIONS):
        scores = query[i, :] @ key[: i + 1, :].T / (EMBEDDING // HEADS) ** 0.5
        exponentials = casadi.exp(scores - casadi.mmax(scores))
        rows.append(exponentials / casadi.sum2(exponentials) @ value[: i + 1, :])
    return casadi.vertcat(*rows)


def matrix_attention(query: Any, key: Any, value: Any) -> Any:
    """All positions at once; there is no maximum of each row, and at this size none is needed."""
    exponentials = casadi.exp(query @ key.T / (EMBEDDING // HEADS) ** 0.5 + FUTURE)
    return exponentials / casadi.repmat(casadi.sum2(exponentials), 1, POSITIONS) @ value


def loss_of(flat: Any, tokens: list[int], attention: Callable[[Any, Any, Any], Any]) -> Any:
    weights = matrices_of(flat)
    x = rmsnorm(weights["token_embedding"][tokens[:-1], :] + weights["position_embedding"])
    normed = rmsnorm(x)
    query, key, value = (normed @ weights[name].T for name in ("query", "key", "value"))
    heads = [slice(start, start + EMBEDDING // HEADS) for start in range(0, EMBEDDING, EMBEDDING // HEADS)]
    gathered = casadi.horzcat(*(attention(query[:, head], key[:, head], value[:, head]) for head in heads))
    x = x + gathered @ weights["attention_out"].T
    x = x + casadi.fmax(rmsnorm(x) @ weights["mlp_in"].T, 0) ** 2 @ weights["mlp_out"].T
    logits = x @ weights["lm_head"].T
    losses = [casadi.logsumexp(logits[i, :].T) - logits[i, token] for i, token in enumerate(tokens[1:])]
    return sum(losses) / len(losses)


class Replayed(Gradients):
    """A function for each name: its tokens are part of the graph."""

    compiles = True

    def __init__(self, kind: Any, called: Callable[[Any], Any]) -> None:
        self.kind, self.called = kind, called
        self.start = np.array(initial_weights())

    def compile(self) -> None:
        self.functions = [self.made(TOKENS[0])]
        self(0)

    def made(self, tokens: list[int]) -> Any:
        attention = scalar_attention if self.kind is casadi.SX else matrix_attention
        return self.called(value_and_gradient(self.kind, lambda flat: loss_of(flat, tokens, attention), WEIGHTS))

    def answer(self) -> dict[str, list[float]]:
        self.functions = list(map(self.made, TOKENS))
        return super().answer()

    def loss_and_gradient(self, i: int) -> tuple[float, list[float]]:
        loss, gradient = self(i)
        return loss, gradient.tolist()

    def __call__(self, i: int) -> tuple[float, Any]:
        return self.functions[i % len(NAMES)](self.start)


# ---------------------------------------------------------------- functions of one array


def rosenbrock(x: Any) -> Any:
    before, after = x[:-1], x[1:]
    return casadi.sum1(100.0 * (after - before * before) ** 2 + (1.0 - before) ** 2)


def mlp(flat: Any) -> Any:
    x, target, start = flat[-3:-1], flat[-1], 0
    for inputs, outputs in itertools.pairwise(MLP_SIZES):
        weights_end, end = start + inputs * outputs, start + (inputs + 1) * outputs
        x = casadi.reshape(flat[start:weights_end], inputs, outputs).T @ x + flat[weights_end:end]
        x = casadi.tanh(x) if outputs > 1 else x
        start = end
    return (x - target) ** 2


def first_product(x: Any) -> Any:
    return x[0] * x[1]


class ReplayedFunction(OfOneArray):
    compiles = True

    def __init__(
        self, function: Callable[[Any], Any], point: list[float], kind: Any, called: Callable[[Any], Any]
    ) -> None:
        super().__init__(point)
        self.function, self.kind, self.called = function, kind, called

    def compile(self) -> None:
        self.both = self.called(value_and_gradient(self.kind, self.function, len(self.point)))
        self(0)

    def __call__(self, i: int) -> tuple[float, Any]:
        return self.both(self.point)


def in_every_way(workload: Callable[..., Any]) -> dict[str, Callable[[], Any]]:
    return {
        f"{kind.__name__}, {called}": functools.partial(workload, kind=kind, called=by)
        for kind in (casadi.SX, casadi.MX)
        for called, by in (("buffers", ByBuffers), ("call", ByCall))
    }


if __name__ == "__main__":
    serve(
        casadi.__version__,
        {
            "gpt": in_every_way(Replayed),
            "rosenbrock": in_every_way(functools.partial(ReplayedFunction, rosenbrock, rosenbrock_point())),
            "mlp": in_every_way(functools.partial(ReplayedFunction, mlp, mlp_point())),
            "call": in_every_way(functools.partial(ReplayedFunction, first_product, rosenbrock_point())),
        },
    )
