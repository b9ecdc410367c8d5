"""micrograd's demo: two moons, an MLP with layers of 16, 16 and 1, a max-margin loss with L2, and SGD with decay.

Run it with `python examples/moons.py`: it prints the accuracy, and draws where the network puts the boundary.
"""

import math
import random

from gradwalk.nn import MLP
from gradwalk.optim import SGD, linear


def two_moons(count, noise, rng):
    """Points on two half circles that reach into each other, and +1 or -1 for the half circle of each."""
    points, labels = [], []
    for i in range(count):
        angle, label = math.pi * rng.random(), 1.0 if i % 2 else -1.0
        x, y = math.cos(angle), math.sin(angle)
        x, y = (x, y) if label < 0 else (1.0 - x, 0.5 - y)
        points.append([x + rng.gauss(0, noise), y + rng.gauss(0, noise)])
        labels.append(label)
    return points, labels


def loss_and_accuracy(model, points, labels):
    """The mean distance to a margin of 1 on the right side, plus a penalty on large weights; the share on that side."""
    scores = [model(point) for point in points]
    margins = [(1.0 - label * score).relu() for label, score in zip(labels, scores, strict=True)]
    penalty = 1e-4 * sum(p * p for p in model.parameters())
    right = sum((score > 0.0) == (label > 0.0) for label, score in zip(labels, scores, strict=True))
    return sum(margins) / len(margins) + penalty, right / len(labels)


def train(steps=100, count=100, seed=1337, report=None):
    """The trained model and the points it was trained on."""
    random.seed(seed)  # the network draws its weights from Python's own generator
    points, labels = two_moons(count, noise=0.1, rng=random.Random(seed))
    model = MLP(2, [16, 16, 1])
    optimiser, rate = SGD(model.parameters(), lr=1.0), linear(steps, floor=0.1)
    for step in range(steps):
        loss, accuracy = loss_and_accuracy(model, points, labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step(optimiser.lr * rate(step))
        if report:
            report(step, loss.data, accuracy)
    return model, points, labels


def picture(model, points, labels, columns=64, rows=22):
    """The plane from above: # where the network says +1, · where it says -1, and the points as + and o."""
    left, right, top, bottom = -1.6, 2.6, 1.6, -1.1
    frozen = model.frozen()  # plain floats: nothing is recorded
    xs = [left + (right - left) * (column + 0.5) / columns for column in range(columns)]
    ys = [top + (bottom - top) * (row + 0.5) / rows for row in range(rows)]
    cells = [["#" if frozen([x, y]) > 0.0 else "·" for x in xs] for y in ys]
    for (x, y), label in zip(points, labels, strict=True):
        column, row = int((x - left) / (right - left) * columns), int((y - top) / (bottom - top) * rows)
        if 0 <= column < columns and 0 <= row < rows:
            cells[row][column] = "+" if label > 0 else "o"
    return "\n".join(map("".join, cells))


def main():
    def report(step, loss, accuracy):
        if step % 10 == 9:
            print(f"step {step + 1:>3}  loss {loss:.4f}  accuracy {accuracy:.0%}")

    print(picture(*train(report=report)))


if __name__ == "__main__":
    main()
