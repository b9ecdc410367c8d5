"""A GPT with 4,064 parameters in plain scalar Python: `Value`, lists and loops, and nothing else.

Run it with `python examples/scalar_gpt.py [NAMES_FILE]`: it learns to make up first names, one name a step.
The Value class is an argument, so that the same code can be run, and timed, on other engines.
"""

from __future__ import annotations

import argparse
import random
import time
from itertools import pairwise
from pathlib import Path

from gradwalk import Value as GradwalkValue

LETTERS = "abcdefghijklmnopqrstuvwxyz"
BOUNDARY = len(LETTERS)  # the token before the first letter and after the last
VOCABULARY = len(LETTERS) + 1
EMBEDDING = 16
HEADS = 4
HEAD = EMBEDDING // HEADS
BLOCK = 8  # the longest context, in positions
DEVIATION = 0.02

LEARNING_RATE = 1e-2
BETAS = (0.9, 0.95)
EPSILON = 1e-8

NAMES = [
    "ada", "alan", "albert", "alice", "amara", "anna", "anton", "ariel", "astrid", "beatrix", "ben", "bruno",
    "camille", "carla", "charlie", "chloe", "clara", "daniel", "diego", "dora", "edith", "elena", "elias", "emil",
    "emma", "esther", "felix", "fiona", "frida", "gabriel", "george", "greta", "hannah", "helena", "henry", "hugo",
    "ida", "ines", "iris", "isabel", "jakob", "jonas", "julia", "karin", "klara", "laura", "leon", "linus", "lucia",
    "maja", "marta", "matteo", "mira", "nadia", "nina", "noah", "olga", "oscar", "paul", "petra", "rosa", "samuel",
    "sofia", "theo", "thomas", "vera", "viktor",
]  # fmt: skip


# ---------------------------------------------------------------- tokens


def tokens_of(name):
    """A name as numbers, with a boundary on either side."""
    if not name or set(name) - set(LETTERS):
        raise ValueError(f"expected a name in the letters a to z, got {name!r}")
    return [BOUNDARY, *(LETTERS.index(letter) for letter in name), BOUNDARY]


# ---------------------------------------------------------------- model


def initial_parameters(rng, Value=GradwalkValue):  # noqa: N803
    """Every weight matrix by name, as a list of rows."""

    def matrix(rows, columns, deviation=DEVIATION):
        return [[Value(rng.gauss(0, deviation)) for _ in range(columns)] for _ in range(rows)]

    return {
        "token_embedding": matrix(VOCABULARY, EMBEDDING),
        "position_embedding": matrix(BLOCK, EMBEDDING),
        "query": matrix(EMBEDDING, EMBEDDING),
        "key": matrix(EMBEDDING, EMBEDDING),
        "value": matrix(EMBEDDING, EMBEDDING),
        # zero where a branch joins the residual stream: at first each branch passes its input on unchanged
        "attention_out": matrix(EMBEDDING, EMBEDDING, deviation=0),
        "mlp_in": matrix(4 * EMBEDDING, EMBEDDING),
        "mlp_out": matrix(EMBEDDING, 4 * EMBEDDING, deviation=0),
        "lm_head": matrix(VOCABULARY, EMBEDDING),
    }


def flattened(parameters):
    """Every parameter in one list, in the order of `initial_parameters`."""
    return [weight for matrix in parameters.values() for row in matrix for weight in row]


def linear(rows, x):
    return [sum(weight * xi for weight, xi in zip(row, x, strict=True)) for row in rows]


def added(x, y):
    return [xi + yi for xi, yi in zip(x, y, strict=True)]


def rmsnorm(x):
    mean_square = sum(xi * xi for xi in x) / len(x)
    scale = (mean_square + 1e-5) ** -0.5
    return [xi * scale for xi in x]


def softmax(logits):
    largest = max(logit.data for logit in logits)  # subtracting it changes no probability and keeps exp in range
    exponentials = [(logit - largest).exp() for logit in logits]
    total = sum(exponentials)
    return [exponential / total for exponential in exponentials]


def attention(parameters, x, keys, values):
    """What this position gathers from itself and from those before it, whose keys and values are at hand."""
    query = linear(parameters["query"], x)
    keys.append(linear(parameters["key"], x))
    values.append(linear(parameters["value"], x))
    gathered = []
    for start in range(0, EMBEDDING, HEAD):
        head = range(start, start + HEAD)
        scores = [sum(query[i] * key[i] for i in head) / HEAD**0.5 for key in keys]
        weights = softmax(scores)
        gathered += [sum(weight * value[i] for weight, value in zip(weights, values, strict=True)) for i in head]
    return linear(parameters["attention_out"], gathered)


def mlp(parameters, x):
    hidden = [h.relu() ** 2 for h in linear(parameters["mlp_in"], x)]
    return linear(parameters["mlp_out"], hidden)


def next_token_logits(parameters, token, position, keys, values):
    """One position of the model; it leaves its own key and value behind for the positions after it."""
    x = rmsnorm(added(parameters["token_embedding"][token], parameters["position_embedding"][position]))
    x = added(x, attention(parameters, rmsnorm(x), keys, values))
    x = added(x, mlp(parameters, rmsnorm(x)))
    return linear(parameters["lm_head"], x)


def loss_of(parameters, tokens):
    """The mean over the positions of −log(the probability given to the token that came next)."""
    keys, values, losses = [], [], []
    for position, (token, target) in enumerate(pairwise(tokens[: BLOCK + 1])):
        probabilities = softmax(next_token_logits(parameters, token, position, keys, values))
        losses.append(-probabilities[target].log())
    return sum(losses) / len(losses)


def count_nodes(root):
    """How many nodes `root` was computed from, itself, the parameters and the constants included."""
    seen, unvisited = {root}, [root]
    while unvisited:
        found = set(unvisited.pop()._children) - seen
        seen |= found
        unvisited += found
    return len(seen)


# ---------------------------------------------------------------- training


def adam_step(weights, moments, step, learning_rate):
    """Move each weight against its gradient, by Adam's rule, and clear the gradient; `step` counts from 0.

    `moments` holds the running means of the gradients and of their squares, a number for each weight in both.
    """
    means, squares = moments
    beta, beta_square = BETAS
    # the running means start at zero; dividing by these takes that bias out
    correction, correction_square = 1 - beta ** (step + 1), 1 - beta_square ** (step + 1)
    for i, weight in enumerate(weights):
        grad = weight.grad
        means[i] = mean = beta * means[i] + (1 - beta) * grad
        squares[i] = square = beta_square * squares[i] + (1 - beta_square) * grad * grad
        weight.data -= learning_rate * (mean / correction) / ((square / correction_square) ** 0.5 + EPSILON)
        weight.grad = 0.0


def train(names, steps, rng, Value=GradwalkValue, report=None):  # noqa: N803
    """The trained parameters and the loss of each step, one name a step; `report(step, loss)` is called after each."""
    names = list(names)
    rng.shuffle(names)
    parameters = initial_parameters(rng, Value)
    weights = flattened(parameters)
    moments = [0.0] * len(weights), [0.0] * len(weights)
    losses = []
    for step in range(steps):
        loss = loss_of(parameters, tokens_of(names[step % len(names)]))
        loss.backward()
        adam_step(weights, moments, step, LEARNING_RATE * (1 - step / steps))
        losses.append(loss.data)
        if report:
            report(step, loss)
    return parameters, losses


def sampled_name(parameters, rng, temperature=0.5):
    """A name made up by the model, letter by letter; a lower temperature keeps closer to what is most likely."""
    keys, values, letters, token = [], [], [], BOUNDARY
    for position in range(BLOCK):
        logits = next_token_logits(parameters, token, position, keys, values)
        probabilities = softmax([logit / temperature for logit in logits])
        [token] = rng.choices(range(VOCABULARY), [probability.data for probability in probabilities])
        if token == BOUNDARY:
            break
        letters.append(LETTERS[token])
    return "".join(letters)


def main():
    parser = argparse.ArgumentParser(description="Train a 4,064-parameter GPT on first names, number by number.")
    parser.add_argument("names", nargs="?", type=Path, help="a file with one name a line (default: a built-in list)")
    parser.add_argument("--steps", type=int, default=200, help="how many names to train on (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=42, help="of the weights and of the shuffle (default: %(default)s)")
    arguments = parser.parse_args()

    names = arguments.names.read_text().lower().split() if arguments.names else NAMES
    rng = random.Random(arguments.seed)
    began = time.perf_counter()

    def report(step, loss):
        if step % 20 == 0 or step == arguments.steps - 1:
            elapsed = time.perf_counter() - began
            print(f"step {step + 1:>4}  loss {loss.data:.4f}  {count_nodes(loss):>6,} nodes  {elapsed:6.1f} s")

    parameters, _ = train(names, arguments.steps, rng, report=report)
    print("made up:", ", ".join(sampled_name(parameters, rng) for _ in range(10)))


if __name__ == "__main__":
    main()
