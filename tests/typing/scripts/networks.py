"""micrograd's names, a training loop, and a model of one's own."""

import random

import gradwalk
from gradwalk.engine import Value
from gradwalk.nn import MLP, Layer, Module, Neuron
from gradwalk.optim import SGD

random.seed(1)
model = MLP(2, [4, 1])
xs, ys = [[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0]
optimiser = SGD(model.parameters(), lr=0.05)
for _ in range(2):
    guesses = [model(x) for x in xs]
    loss = gradwalk.sum([(guess - y) ** 2 for guess, y in zip(guesses, ys)])
    model.zero_grad()
    loss.backward()
    optimiser.step()
    print(f"{loss:.4f} {loss.data:.4f}")

neuron, layer = Neuron(2), Layer(2, 3)
activation: Value = neuron([1.0, 2.0])
activations: list[Value] = layer([1.0, 2.0])
alone: Value = Layer(2, 1)([1.0, 2.0])
classifier: MLP[list[Value]] = MLP(2, [4, 3])
probabilities: list[Value] = gradwalk.softmax(classifier([1.0, 2.0]))


class Scaled(Module):
    def __init__(self) -> None:
        self.weight = Value(1.0)

    def parameters(self) -> list[Value]:
        return [self.weight]

    def __call__(self, x: Value | float) -> Value:
        return self.weight * x


out: Value = Scaled()(2.0)
