"""Compiled functions: the decorator in its three forms, a method, training."""

from collections.abc import Sequence

import gradwalk
from gradwalk import Value
from gradwalk.optim import SGD, Adam


@gradwalk.compile
def rosenbrock(xs: Sequence[float]) -> float:
    return sum(100.0 * (b - a * a) ** 2 + (1.0 - a) ** 2 for a, b in zip(xs, xs[1:]))


@gradwalk.compile(exact=True)
def scaled(x: float, by: float = 2.0) -> float:
    return gradwalk.exp(x) * by


@gradwalk.compile()
def pair(x: float) -> list[float]:
    return [x, x * x]


node: Value = rosenbrock([1.0, 2.0, 3.0])
node.backward()
value, gradient = rosenbrock.value_and_grad([1.0, 2.0, 3.0])
entry: float = value + gradient[0]
with_name: Value = scaled(1.0, by=3.0)
several: list[Value] = pair(2.0)
slope: float = gradwalk.grad(scaled)(1.0, by=3.0)
print(rosenbrock.program)


class Line:
    def __init__(self) -> None:
        self.slope, self.offset = Value(1.0), Value(0.0)

    def parameters(self) -> list[Value]:
        return [self.slope, self.offset]

    @gradwalk.compile
    def error(self, x: float, y: float) -> Value:
        return (self.slope * x + self.offset - y) ** 2


line = Line()
adam = Adam(line.parameters(), lr=0.1)
for _ in range(3):
    wrong: float = line.error.train_step(adam, 1.0, 2.0)
    again: Value = line.error(1.0, 2.0)
sgd = SGD(line.parameters(), lr=0.1)
each: list[Value] = gradwalk.compile(lambda x: line.slope * x).map([1.0, 2.0])
