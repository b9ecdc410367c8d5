"""torch: the GPT written with tensors, its own Adam, and backward()."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from serving import serve
from torch.nn.functional import cross_entropy, linear
from workloads import (
    BETAS,
    EMBEDDING,
    EPSILON,
    HEADS,
    LEARNING_RATE,
    NAMES,
    POSITIONS,
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

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)

FUTURE = torch.full((POSITIONS, POSITIONS), -torch.inf).triu(1)


def rmsnorm(x: Any) -> Any:
    return x * ((x * x).mean(-1, keepdim=True) + 1e-5).rsqrt()


def heads(x: Any) -> Any:
    return x.unflatten(-1, (HEADS, EMBEDDING // HEADS)).transpose(-3, -2)


def loss_of(weights: dict[str, Any], tokens: Any, reduction: str = "mean") -> Any:
    """−log(the probability of the token that comes next), over all positions; `tokens` may have a batch in front."""
    x = rmsnorm(weights["token_embedding"][tokens[..., :-1]] + weights["position_embedding"])
    normed = rmsnorm(x)
    query, key, value = (heads(linear(normed, weights[name])) for name in ("query", "key", "value"))
    shares = torch.softmax(query @ key.transpose(-1, -2) / (EMBEDDING // HEADS) ** 0.5 + FUTURE, -1)
    x = x + linear((shares @ value).transpose(-3, -2).flatten(-2), weights["attention_out"])
    x = x + linear(linear(rmsnorm(x), weights["mlp_in"]).relu() ** 2, weights["mlp_out"])
    logits = linear(x, weights["lm_head"])
    return cross_entropy(logits.flatten(0, -2), tokens[..., 1:].flatten(), reduction=reduction)


def fresh_weights() -> dict[str, Any]:
    return {name: matrix.clone().requires_grad_() for name, matrix in by_name(torch.tensor(initial_weights())).items()}


def listed(tensors: Any) -> list[float]:
    return [number for tensor in tensors for number in tensor.flatten().tolist()]


class TensorTraining(Training):
    def __init__(self, **adam: bool) -> None:
        self.adam, self.tokens = adam, [torch.tensor(tokens) for tokens in TOKENS]
        self.reset()

    def reset(self) -> None:
        self.matrices = fresh_weights()
        self.optimiser = torch.optim.Adam(
            self.matrices.values(), lr=LEARNING_RATE, betas=BETAS, eps=EPSILON, **self.adam
        )

    def loss_and_gradient(self, i: int) -> tuple[float, list[float]]:
        loss = loss_of(self.matrices, self.tokens[i])
        return loss.item(), listed(torch.autograd.grad(loss, self.matrices.values()))

    def __call__(self, i: int) -> float:
        self.optimiser.zero_grad()
        loss = loss_of(self.matrices, self.tokens[i % len(NAMES)])
        loss.backward()
        self.optimiser.step()
        return loss.item()

    def weights(self) -> list[float]:
        return listed(self.matrices.values())


class TensorBatch(Batch):
    def __init__(self) -> None:
        self.tokens, self.matrices = torch.tensor(batch_tokens()), fresh_weights()

    def __call__(self, i: int) -> list[float]:
        for matrix in self.matrices.values():
            matrix.grad = None
        losses = loss_of(self.matrices, self.tokens, reduction="none").view(-1, POSITIONS).mean(1)
        losses.sum().backward()
        return losses.tolist()

    def gradient(self) -> list[float]:
        return listed(matrix.grad for matrix in self.matrices.values())


# ---------------------------------------------------------------- functions of one array


def rosenbrock(x: Any) -> Any:
    before, after = x[:-1], x[1:]
    return (100.0 * (after - before * before) ** 2 + (1.0 - before) ** 2).sum()


def mlp(flat: Any) -> Any:
    x, target = flat[-3:-1], flat[-1]
    *hidden, last = mlp_layers(flat)
    for weight, bias in hidden:
        x = torch.tanh(linear(x, weight, bias))
    return (linear(x, *last)[0] - target) ** 2


class TensorFunction(OfOneArray):
    def __init__(self, function: Callable[[Any], Any], point: list[float]) -> None:
        super().__init__(point)
        self.function = function

    def __call__(self, i: int) -> tuple[float, Any]:
        x = torch.from_numpy(self.point).requires_grad_()
        value = self.function(x)
        value.backward()
        return value.item(), x.grad.numpy()


if __name__ == "__main__":
    serve(
        torch.__version__,
        {
            "gpt": {
                "fused Adam": functools.partial(TensorTraining, fused=True),
                "foreach Adam": functools.partial(TensorTraining, foreach=True),
            },
            "batch": {"one pass": TensorBatch},
            "rosenbrock": {"tensors": lambda: TensorFunction(rosenbrock, rosenbrock_point())},
            "mlp": {"tensors": lambda: TensorFunction(mlp, mlp_point())},
        },
    )
