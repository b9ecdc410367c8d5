"""What a script gets for micrograd's nn: the same layers, drawn and computed in the same order."""

from __future__ import annotations

import random
from typing import Any

from gradwalk.run.micrograd_engine import Value


class Module:
    """What has parameters."""

    def zero_grad(self) -> None:
        for parameter in self.parameters():
            parameter.grad = 0

    def parameters(self) -> list[Any]:
        return []


class Neuron(Module):
    """A weighted sum, rectified unless it is to be linear."""

    def __init__(self, nin: int, nonlin: bool = True) -> None:
        self.w = [Value(random.uniform(-1, 1)) for _ in range(nin)]
        self.b = Value(0)
        self.nonlin = nonlin

    def __call__(self, x: Any) -> Any:
        total = sum((weight * number for weight, number in zip(self.w, x)), self.b)  # noqa: B905  # as in micrograd
        return total.relu() if self.nonlin else total

    def parameters(self) -> list[Any]:
        return [*self.w, self.b]

    def __repr__(self) -> str:
        return f"{'ReLU' if self.nonlin else 'Linear'}Neuron({len(self.w)})"


class Layer(Module):
    """Neurons side by side."""

    def __init__(self, nin: int, nout: int, **named: Any) -> None:
        self.neurons = [Neuron(nin, **named) for _ in range(nout)]

    def __call__(self, x: Any) -> Any:
        out = [neuron(x) for neuron in self.neurons]
        return out[0] if len(out) == 1 else out

    def parameters(self) -> list[Any]:
        return [parameter for neuron in self.neurons for parameter in neuron.parameters()]

    def __repr__(self) -> str:
        return f"Layer of [{', '.join(map(str, self.neurons))}]"


class MLP(Module):
    """Layers one after the other, the last of them linear."""

    def __init__(self, nin: int, nouts: list[int]) -> None:
        sizes = [nin, *nouts]
        self.layers = [Layer(sizes[i], sizes[i + 1], nonlin=i != len(nouts) - 1) for i in range(len(nouts))]

    def __call__(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x

    def parameters(self) -> list[Any]:
        return [parameter for layer in self.layers for parameter in layer.parameters()]

    def __repr__(self) -> str:
        return f"MLP of [{', '.join(map(str, self.layers))}]"
