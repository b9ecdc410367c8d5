"""Functions to compile, in plain scalar style; each model gives its function and arguments, always the same ones."""

from __future__ import annotations

import importlib.util
import itertools
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gradwalk
from gradwalk.composites import maximum
from gradwalk.optim import SGD, Adam, AdamW

Model = tuple[Callable[..., Any], tuple[Any, ...], list[Any]]  # function, arguments, leaves closed over

OPTIMISERS: dict[str, Callable[[Any], Any]] = {
    "adam": lambda values: Adam(values, lr=0.02),
    "adamw": lambda values: AdamW(values, lr=0.02, weight_decay=0.1),
    "sgd": lambda values: SGD(values, lr=0.05),
    "momentum": lambda values: SGD(values, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01),
}


def _weights(rng: random.Random, rows: int, columns: int, deviation: float = 0.4) -> list[list[Any]]:
    return [[gradwalk.Value(rng.gauss(0, deviation)) for _ in range(columns)] for _ in range(rows)]


def _listed(*matrices: list[list[Any]]) -> list[Any]:
    return [value for matrix in matrices for row in matrix for value in row]


def _linear(rows: list[list[Any]], x: list[Any]) -> list[Any]:
    return [sum(w * xi for w, xi in zip(row, x, strict=True)) for row in rows]


def softmax(logits: list[Any]) -> list[Any]:
    largest = gradwalk.stop_gradient(maximum(logits))
    exponentials = [(logit - largest).exp() for logit in logits]
    total = sum(exponentials)
    return [exponential / total for exponential in exponentials]


def multilayer_perceptron() -> Model:
    """2-16-16-1 with tanh, biases, and a squared error over a few samples."""
    rng = random.Random(1)
    sizes = (2, 16, 16, 1)
    layers = [(_weights(rng, m, n), _weights(rng, 1, m)[0]) for n, m in itertools.pairwise(sizes)]

    def loss(samples: list[list[float]], targets: list[float]) -> Any:
        total = 0
        for x, target in zip(samples, targets, strict=True):
            for number, (weight, bias) in enumerate(layers):
                x = [h + b for h, b in zip(_linear(weight, x), bias, strict=True)]
                if number < 2:
                    x = [h.tanh() for h in x]
            total = total + (x[0] - target) ** 2
        return total / len(targets)

    samples = [[rng.uniform(-1, 1) for _ in range(2)] for _ in range(6)]
    leaves = [v for weight, bias in layers for v in (*_listed(weight), *bias)]
    return loss, (samples, [rng.uniform(-1, 1) for _ in range(6)]), leaves


def convolution() -> Model:
    """Four 3 × 3 kernels over a 9 × 9 picture, written as loops, and relu."""
    rng = random.Random(2)
    kernels = _weights(rng, 4, 9)

    def response(picture: list[list[float]]) -> Any:
        total = 0.0
        for kernel in kernels:
            for r in range(7):
                for c in range(7):
                    seen = 0.0
                    for i in range(3):
                        for j in range(3):
                            seen = seen + kernel[3 * i + j] * picture[r + i][c + j]
                    total = total + seen.relu() ** 2
        return total

    return response, ([[rng.uniform(-1, 1) for _ in range(9)] for _ in range(9)],), _listed(kernels)


def long_short_term_memory() -> Model:
    """One LSTM cell with 6 units over 7 steps."""
    rng = random.Random(3)
    units, inputs = 6, 3
    gates = [_weights(rng, units, inputs + units) for _ in range(4)]

    def last_state(sequence: list[list[float]]) -> Any:
        h: list[Any] = [0.0] * units
        c: list[Any] = [0.0] * units
        for x in sequence:
            forget, update, out, candidate = (_linear(gate, [*x, *h]) for gate in gates)
            c = [
                f.sigmoid() * ci + u.sigmoid() * g.tanh()
                for f, u, g, ci in zip(forget, update, candidate, c, strict=True)
            ]
            h = [o.sigmoid() * ci.tanh() for o, ci in zip(out, c, strict=True)]
        return sum(hi * hi for hi in h)

    return last_state, ([[rng.uniform(-1, 1) for _ in range(inputs)] for _ in range(7)],), _listed(*gates)


def bodies() -> Model:
    """Five bodies that attract each other, ten steps."""
    rng = random.Random(4)

    def spread(positions: list[list[float]], velocities: list[list[float]]) -> Any:
        xs, vs = [list(p) for p in positions], [list(v) for v in velocities]
        for _ in range(10):
            for i in range(len(xs)):
                for j in range(len(xs)):
                    if i != j:
                        away = [a - b for a, b in zip(xs[j], xs[i], strict=True)]
                        distance = sum(d * d for d in away) + 0.1
                        pull = distance**-1.5
                        vs[i] = [v + 0.01 * d * pull for v, d in zip(vs[i], away, strict=True)]
            xs = [[x + 0.01 * v for x, v in zip(p, q, strict=True)] for p, q in zip(xs, vs, strict=True)]
        return sum(x * x for p in xs for x in p)

    def random_points() -> list[list[float]]:
        return [[rng.uniform(-1, 1) for _ in range(3)] for _ in range(5)]

    return spread, (random_points(), random_points()), []


def spring_chain() -> Model:
    """Thirty masses on springs, fixed at one end, twenty steps."""
    rng = random.Random(5)
    stiffness = gradwalk.Value(2.0)

    def energy(positions: list[float]) -> Any:
        xs: list[Any] = list(positions)
        vs: list[Any] = [0.0] * len(xs)
        for _ in range(20):
            stretched = [xs[0], *(b - a for a, b in itertools.pairwise(xs))]
            forces = [
                (stretched[i + 1] if i + 1 < len(xs) else 0.0) * stiffness - stretched[i] * stiffness
                for i in range(len(xs))
            ]
            vs = [v + 0.05 * f for v, f in zip(vs, forces, strict=True)]
            xs = [x + 0.05 * v for x, v in zip(xs, vs, strict=True)]
        return sum(x * x for x in xs) + 0.5 * sum(v * v for v in vs)

    return energy, ([rng.uniform(-0.2, 0.2) for _ in range(30)],), [stiffness]


def gaussian_mixture() -> Model:
    """The log-likelihood of 40 points in the plane under three Gaussians."""
    rng = random.Random(6)
    centres, deviations, logits = _weights(rng, 3, 2, 1.0), _weights(rng, 3, 2, 0.2), _weights(rng, 1, 3)

    def log_likelihood(points: list[list[float]]) -> Any:
        shares = softmax(logits[0])
        total = 0.0
        for point in points:
            density = 0.0
            for share, centre, deviation in zip(shares, centres, deviations, strict=True):
                exponent = sum(((x - c) / s.exp()) ** 2 for x, c, s in zip(point, centre, deviation, strict=True))
                scale = (deviation[0] + deviation[1]).exp() * (2 * math.pi)
                density = density + share * (-0.5 * exponent).exp() / scale
            total = total + gradwalk.log(density)
        return total

    points = [[rng.gauss(0, 1.2) for _ in range(2)] for _ in range(40)]
    return log_likelihood, (points,), _listed(centres, deviations, logits)


def black_scholes() -> Model:
    """A call option by Monte Carlo: 200 paths, the payoff kinked by maximum."""
    rng = random.Random(7)

    def price(spot: float, strike: float, rate: float, volatility: float, normals: list[float]) -> Any:
        drift = rate - 0.5 * volatility * volatility
        total = 0.0
        for normal in normals:
            end = spot * gradwalk.exp(drift + volatility * normal)
            total = total + maximum(end - strike, 0.0)
        return gradwalk.exp(-rate) * total / len(normals)

    return price, (100.0, 105.0, 0.03, 0.2, [rng.gauss(0, 1) for _ in range(200)]), []


def unstructured(nodes: int = 2000) -> Model:
    """A random graph of adds, products and bounded functions."""
    rng = random.Random(8)
    plan = [(rng.randrange(6), rng.random(), rng.random()) for _ in range(nodes)]

    def tangle(xs: list[float]) -> Any:
        pool: list[Any] = list(xs)
        used = set()
        for kind, a, b in plan:
            left, right = pool[int(a * len(pool))], pool[int(b * len(pool))]
            used |= {int(a * len(pool)), int(b * len(pool))} if kind < 3 else {int(a * len(pool))}
            if kind == 0:
                made = (left + right) * 0.5
            elif kind == 1:
                made = left * right
            elif kind == 2:
                made = left - right
            else:
                made = (left.tanh, left.sin, left.sigmoid)[kind - 3]()
            pool.append(gradwalk.tanh(made) if kind < 3 else made)
        return sum(made for i, made in enumerate(pool) if i not in used)

    return tangle, ([rng.uniform(-1, 1) for _ in range(20)],), []


def rosenbrock(count: int = 100) -> Model:
    rng = random.Random(9)

    def banana(xs: Any) -> Any:
        return sum(100.0 * (b - a**2) ** 2 + (1.0 - a) ** 2 for a, b in itertools.pairwise(xs))

    return banana, ([rng.uniform(-1, 1) for _ in range(count)],), []


def attention_gpt(positions: int = 4) -> Model:
    """A small GPT with the token left open by take and cross_entropy."""
    rng = random.Random(10)
    size, letters = 8, 11
    tokens_in, places = _weights(rng, letters, size), _weights(rng, positions, size)
    query, key, value, out = (_weights(rng, size, size) for _ in range(4))
    up, down, head = _weights(rng, 16, size), _weights(rng, size, 16), _weights(rng, letters, size)

    def loss(tokens: list[int]) -> Any:
        keys: list[Any] = []
        values: list[Any] = []
        losses = []
        for position in range(len(tokens) - 1):
            row = gradwalk.take(tokens_in, tokens[position])
            x = gradwalk.rmsnorm([a + b for a, b in zip(row, places[position], strict=True)])
            asked = _linear(query, x)
            keys.append(_linear(key, x))
            values.append(_linear(value, x))
            shares = softmax([sum(q * k for q, k in zip(asked, each, strict=True)) / 3.0 for each in keys])
            gathered = [sum(s * v[i] for s, v in zip(shares, values, strict=True)) for i in range(size)]
            x = [a + b for a, b in zip(x, _linear(out, gathered), strict=True)]
            x = [a + b for a, b in zip(x, _linear(down, [h.relu() for h in _linear(up, x)]), strict=True)]
            losses.append(gradwalk.cross_entropy(_linear(head, x), tokens[position + 1]))
        return gradwalk.mean(losses)

    leaves = _listed(tokens_in, places, query, key, value, out, up, down, head)
    return loss, ([rng.randrange(letters) for _ in range(positions + 1)],), leaves


def scalar_gpt(name: str = "abcdefgh") -> Model:
    """The loss of examples/scalar_gpt.py, 4,064 parameters."""
    path = Path(__file__).resolve().parents[2] / "examples" / "scalar_gpt.py"
    spec = importlib.util.spec_from_file_location("scalar_gpt_to_compile", path)
    assert spec is not None
    assert spec.loader is not None
    example: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    rng = random.Random(11)
    parameters = example.initial_parameters(rng)
    leaves = example.flattened(parameters)
    for leaf in leaves:
        leaf.data = rng.gauss(0, 0.05)  # also where the model starts from 0, so that every gradient is there

    def loss(tokens: list[int]) -> Any:
        return example.loss_of(parameters, tokens)

    return loss, (example.tokens_of(name),), leaves


MODELS: dict[str, Callable[[], Model]] = {
    "MLP 2-16-16-1, 6 samples": multilayer_perceptron,
    "convolution as loops": convolution,
    "LSTM": long_short_term_memory,
    "n-body": bodies,
    "spring chain": spring_chain,
    "Gaussian mixture": gaussian_mixture,
    "Black–Scholes Monte Carlo": black_scholes,
    "random graph": unstructured,
    "Rosenbrock": rosenbrock,
    "GPT with open tokens": attention_gpt,
}
