"""gradwalk: plain scalar code, compiled. Only what `import gradwalk` offers is used."""

from __future__ import annotations

import functools
import itertools
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from serving import serve
from workloads import (
    BETAS,
    EPSILON,
    LEARNING_RATE,
    MLP_SIZES,
    NAMES,
    TOKENS,
    Batch,
    OfOneArray,
    Training,
    batch_tokens,
    initial_weights,
    mlp_point,
    rosenbrock_point,
)

import gradwalk
from gradwalk import optim

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))

import scalar_gpt

# ---------------------------------------------------------------- the GPT


class Taken:
    """Rows that are asked for by a token which stays open, so that one program serves every name."""

    def __init__(self, rows: list[list[Any]]) -> None:
        self.rows = rows

    def __getitem__(self, token: int) -> list[Any]:
        return gradwalk.take(self.rows, token)


class Model:
    """The parameters of examples/scalar_gpt.py, and its loss in two ways."""

    def __init__(self) -> None:
        self.parameters = scalar_gpt.initial_parameters(random.Random(0))
        self.leaves = scalar_gpt.flattened(self.parameters)

    def reset(self) -> None:
        for leaf, weight in zip(self.leaves, initial_weights(), strict=True):
            leaf.data, leaf.grad = weight, 0.0

    def loss(self, tokens: list[int]) -> Any:
        """As it is there: a token is the place of a row, which fixes it, and a name has a program of its own."""
        return scalar_gpt.loss_of(self.parameters, tokens)

    def loss_of_any_name(self, tokens: list[int]) -> Any:
        """The tokens left open."""
        parameters = {**self.parameters, "token_embedding": Taken(self.parameters["token_embedding"])}
        keys: list[Any] = []
        values: list[Any] = []
        losses = []
        for position, (token, target) in enumerate(itertools.pairwise(tokens)):
            logits = scalar_gpt.next_token_logits(parameters, token, position, keys, values)
            losses.append(gradwalk.cross_entropy(logits, target))
        return sum(losses) / len(losses)


class CompiledTraining(Training):
    compiles = True

    def __init__(self, open_tokens: bool = False) -> None:
        self.model = Model()
        self.loss = self.model.loss_of_any_name if open_tokens else self.model.loss
        self.optimiser = optim.Adam(self.model.leaves, lr=LEARNING_RATE, betas=BETAS, eps=EPSILON)
        self.start = self.optimiser.state_dict()
        self.reset()

    def reset(self) -> None:
        self.model.reset()
        self.optimiser.load_state_dict(self.start)

    def compile(self) -> None:
        self.compiled = gradwalk.compile(self.loss)
        self.compiled(TOKENS[0])

    def facts(self) -> dict[str, int]:
        counts = self.compiled.program.counts
        return {
            "instructions": counts.instructions,
            "scalar nodes": counts.scalar_nodes,
            "programs": len(self.compiled.programs),
        }

    def loss_and_gradient(self, i: int) -> tuple[float, list[float]]:
        self.model.reset()
        loss = self.compiled(TOKENS[i])
        loss.backward()
        return loss.data, [leaf.grad for leaf in self.model.leaves]

    def weights(self) -> list[float]:
        return [leaf.data for leaf in self.model.leaves]


class WithANode(CompiledTraining):
    """The loss as a Value, as in a training loop without compile."""

    def __call__(self, i: int) -> float:
        loss = self.compiled(TOKENS[i % len(NAMES)])
        loss.backward()
        self.optimiser.step()
        self.optimiser.zero_grad()
        return loss.data


class WithoutANode(CompiledTraining):
    """`compiled.backward`, which adds to the leaves' gradients without making the node."""

    def __call__(self, i: int) -> float:
        loss = self.compiled.backward(TOKENS[i % len(NAMES)])
        self.optimiser.step()
        self.optimiser.zero_grad()
        return loss


class AllAtOnce(CompiledTraining):
    """`compiled.train_step`, which walks over the parameters once for the gradients, Adam and zeroing."""

    def __call__(self, i: int) -> float:
        return self.compiled.train_step(self.optimiser, TOKENS[i % len(NAMES)])


class CompiledBatch(Batch):
    compiles = True

    def __init__(self) -> None:
        self.model, self.tokens = Model(), batch_tokens()

    def reset(self) -> None:
        self.model.reset()

    def compile(self) -> None:
        self.compiled = gradwalk.compile(self.model.loss_of_any_name)
        self(0)

    def gradient(self) -> list[float]:
        return [leaf.grad for leaf in self.model.leaves]


class OneAtATime(CompiledBatch):
    def __call__(self, i: int) -> list[float]:
        return [self.compiled.backward(tokens) for tokens in self.tokens]


class OnePass(CompiledBatch):
    def __call__(self, i: int) -> list[float]:
        return self.compiled.map_backward(self.tokens)


class TrainedBatch(CompiledBatch):
    """With Adam, whose steps have length 0 here: the losses stay those of the first weights."""

    def __init__(self) -> None:
        super().__init__()
        self.optimiser = optim.Adam(self.model.leaves, lr=0.0, betas=BETAS, eps=EPSILON)

    def answer(self) -> dict[str, list[float]]:
        self.reset()
        return {"losses": self(0)}


class StepForEach(TrainedBatch):
    def __call__(self, i: int) -> list[float]:
        return [self.compiled.train_step(self.optimiser, tokens) for tokens in self.tokens]


class StepForAll(TrainedBatch):
    def __call__(self, i: int) -> list[float]:
        losses = self.compiled.map_backward(self.tokens)
        self.optimiser.step()
        self.optimiser.zero_grad()
        return losses


# ---------------------------------------------------------------- functions of one array


def rosenbrock(x: list[Any]) -> Any:
    total = 0.0
    for a, b in itertools.pairwise(x):
        total = total + 100.0 * (b - a * a) ** 2 + (1.0 - a) ** 2
    return total


def mlp(numbers: list[Any]) -> Any:
    *weights, first, second, target = numbers
    rest, x = iter(weights), [first, second]
    for inputs, outputs in itertools.pairwise(MLP_SIZES):
        rows = [[next(rest) for _ in range(inputs)] for _ in range(outputs)]
        x = [sum(w * xi for w, xi in zip(row, x, strict=True)) + next(rest) for row in rows]
        if outputs > 1:
            x = [h.tanh() for h in x]
    return (x[0] - target) ** 2


def first_product(x: list[Any]) -> Any:
    """Hardly any arithmetic: what is left of its time is the call."""
    return x[0] * x[1]


class CompiledFunction(OfOneArray):
    compiles = True

    def __init__(self, function: Callable[[Any], Any], point: list[float]) -> None:
        super().__init__(point)
        self.function = function

    def compile(self) -> None:
        self.compiled = gradwalk.compile(self.function)
        self(0)

    def facts(self) -> dict[str, int]:
        counts = self.compiled.program.counts
        return {"instructions": counts.instructions, "scalar nodes": counts.scalar_nodes}

    def __call__(self, i: int) -> tuple[float, Any]:
        return self.compiled.value_and_grad(self.point)


if __name__ == "__main__":
    serve(
        gradwalk.__version__,
        {
            "gpt": {
                "compiled(…).backward()": WithANode,
                "compiled.backward(…)": WithoutANode,
                "compiled.train_step(…)": AllAtOnce,
                "compiled.train_step(…), any name": functools.partial(AllAtOnce, open_tokens=True),
            },
            "batch": {
                "one at a time": OneAtATime,
                "map_backward": OnePass,
                "a step for each": StepForEach,
                "a step for all": StepForAll,
            },
            "rosenbrock": {"value_and_grad": lambda: CompiledFunction(rosenbrock, rosenbrock_point())},
            "mlp": {"value_and_grad": lambda: CompiledFunction(mlp, mlp_point())},
            "call": {"value_and_grad": lambda: CompiledFunction(first_product, rosenbrock_point())},
        },
    )
