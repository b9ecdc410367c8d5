"""The layers and the GPT: equal to the plain scalar program, to finite differences, and on both engines."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import random
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gradwalk import Value
from gradwalk.nn import GPT, Block, CausalSelfAttention, Embedding, FeedForward, LayerNorm, Linear, RMSNorm
from gradwalk.optim import Adam, linear

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TOKENS = [26, 12, 0, 19, 19, 7, 4, 22, 26]  # eight positions


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def numbers(values: Any) -> list[float]:
    return [value.data for value in values]


# ---------------------------------------------------------------- against the scalar program


def test_same_generator_same_weights_as_the_scalar_program() -> None:
    """4,064 parameters, in the order of examples/scalar_gpt.py, and drawn alike from the same generator."""
    scalar = example("scalar_gpt")
    weights = scalar.flattened(scalar.initial_parameters(random.Random(42)))
    assert len(weights) == 4064
    assert numbers(GPT(rng=random.Random(42)).parameters()) == numbers(weights)


def test_same_losses_as_the_scalar_program() -> None:
    """Trained alike, the losses are those of the plain scalar program, within 1e-12, and so are the weights."""
    scalar = example("scalar_gpt")
    names = ["ada", "albert", "a", "thomas", "josephine", "viktor"]
    rng = random.Random(7)
    parameters, expected = scalar.train(list(names), steps=12, rng=rng)

    rng = random.Random(7)
    rng.shuffle(names)
    model = GPT(rng=rng)
    optimiser, rate, losses = Adam(model.parameters()), linear(12), []
    for step in range(12):
        loss = model.loss(scalar.tokens_of(names[step % len(names)]))
        loss.backward()
        optimiser.step(optimiser.lr * rate(step))
        optimiser.zero_grad()
        losses.append(loss.data)
    assert losses == pytest.approx(expected, abs=1e-12, rel=0)
    assert numbers(model.parameters()) == pytest.approx(numbers(scalar.flattened(parameters)), abs=1e-9, rel=0)


ON_AN_ENGINE = """
import json, random
from gradwalk.engine import NAME
from gradwalk.nn import GPT, MLP
from gradwalk.optim import Adam
random.seed(3)
facts = [NAME]
for model in (GPT(vocab_size=5, n_embd=4, n_head=2, n_layer=2, block_size=4),
              GPT(vocab_size=5, n_embd=4, n_head=1, block_size=4, activation="gelu", tied=True)):
    optimiser = Adam(model.parameters(), lr=0.1)
    for step in range(3):
        model.zero_grad()
        loss = model.loss([4, 0, 3, 1, 4])
        loss.backward()
        optimiser.step()
        facts.append(loss.data.hex())
    facts += [parameter.data.hex() for parameter in model.parameters()]
    facts += [x.hex() for x in model.frozen().step(4, 0, model.cache())]
    facts.append(repr(model))
    facts.append({name: array.tolist() for name, array in model.state_dict().items()})
model = MLP(2, [4, 1], activation="tanh")
loss = (model([0.5, -1.0]) - 1.0) ** 2
loss.backward()
facts += [parameter.grad.hex() for parameter in model.parameters()]
print(json.dumps(facts))
"""


def test_engines_agree_to_the_bit() -> None:
    """Losses, weights after training, frozen logits, states and reprs are the same on both engines."""
    facts = {}
    for name in ("native", "reference"):
        environment = {**os.environ, "GRADWALK_ENGINE": name, "PYTHONPATH": os.pathsep.join(sys.path)}
        run = subprocess.run(
            [sys.executable, "-c", ON_AN_ENGINE], capture_output=True, text=True, check=True, env=environment
        )
        engine_name, *facts[name] = json.loads(run.stdout)
        assert engine_name == name
    assert facts["native"] == facts["reference"]


# ---------------------------------------------------------------- the model


@pytest.mark.parametrize(
    "settings",
    [{}, {"n_layer": 2}, {"tied": True}, {"activation": "gelu"}, {"activation": "silu", "n_head": 1}],
    ids=str,
)
def test_gradients_are_slopes(settings: dict[str, Any]) -> None:
    """The gradient of the loss is the slope of the loss along a random direction through all parameters."""
    model = GPT(**{"vocab_size": 6, "n_embd": 4, "n_head": 2, "block_size": 4, **settings}, seed=5)
    rng, tokens = random.Random(6), [5, 1, 0, 3, 5]
    parameters = model.parameters()
    for parameter in parameters:  # the matrices that start at zero would hide the branches behind them
        parameter.data = rng.gauss(0, 0.5)
    model.loss(tokens).backward()
    direction = [rng.gauss(0, 1) for _ in parameters]
    expected = sum(d * parameter.grad for d, parameter in zip(direction, parameters, strict=True))
    around = []
    for step in (1e-5, -1e-5):
        for d, parameter in zip(direction, parameters, strict=True):
            parameter.data += step * d
        around.append(model.frozen().loss(tokens))
        for d, parameter in zip(direction, parameters, strict=True):
            parameter.data -= step * d
    assert (around[0] - around[1]) / 2e-5 == pytest.approx(expected, rel=1e-6)


def test_loss_is_the_mean_of_cross_entropies() -> None:
    """The loss is the mean over the positions of the cross entropy of the next token, frozen or not."""
    model = GPT(seed=1)
    logits = [numbers(row) for row in model(TOKENS[:-1])]
    terms = [math.log(sum(map(math.exp, row))) - row[target] for row, target in zip(logits, TOKENS[1:], strict=True)]
    assert model.loss(TOKENS).data == pytest.approx(sum(terms) / 8, rel=1e-13)
    assert model.frozen().loss(TOKENS) == model.loss(TOKENS).data


def test_loss_stops_at_the_block() -> None:
    """What does not fit the block is left out: nine tokens make eight positions."""
    model = GPT(seed=1)
    assert model.loss([*TOKENS, 3, 5]).data == model.loss(TOKENS).data


def test_no_position_sees_a_later_one() -> None:
    """Changing a token changes the logits at its position and after it, and none before it."""
    model, rng = GPT(n_layer=2, seed=1), random.Random(2)
    for parameter in model.parameters():
        parameter.data += rng.gauss(0, 0.1)
    before, after = ([numbers(row) for row in model(tokens)] for tokens in ([1, 2, 3, 4], [1, 2, 9, 4]))
    assert [old == new for old, new in zip(before, after, strict=True)] == [True, True, False, False]


def test_the_cache_gives_what_the_whole_gives() -> None:
    """Step by step with a cache, frozen, the logits are those of the whole sequence at once, and plain floats."""
    model = GPT(n_layer=2, seed=1)
    whole = [numbers(row) for row in model(TOKENS[:-1])]
    frozen = model.frozen()
    cache = frozen.cache()
    steps = [frozen.step(token, position, cache) for position, token in enumerate(TOKENS[:-1])]
    assert steps == whole
    assert all(isinstance(logit, float) for row in steps for logit in row)


def test_sampling_keeps_no_graph() -> None:
    """A frozen model leaves no Value behind, in its logits or in its cache."""
    frozen = GPT(seed=1).frozen()
    cache = frozen.cache()
    for position in range(8):
        frozen.step(TOKENS[position], position, cache)
    held = [x for part in cache for column in part.values for x in column]
    held += [x for part in cache for head in part.keys for key in head for x in key]
    assert len(held) == 2 * 8 * 16
    assert not any(isinstance(x, Value) for x in held)


def test_tied_head() -> None:
    """A tied model has no matrix of its own for the head, and its token embedding learns from both uses."""
    model = GPT(tied=True, seed=1)
    assert len(model.parameters()) == 4064 - 27 * 16
    assert "head.weight" not in model.state_dict()
    model.loss([26, 0]).backward()
    assert all(any(weight.grad != 0.0 for weight in row) for row in model.token_embedding.weight)


def test_learns_a_name() -> None:
    """Thirty steps on one name bring its loss from log(27) to below 0.1."""
    model = GPT(seed=1)
    optimiser = Adam(model.parameters())
    losses = []
    for _ in range(30):
        loss = model.loss([26, 0, 3, 0, 26])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.data)
    assert losses[0] == pytest.approx(math.log(27), abs=0.1)
    assert losses[-1] < 0.1


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"n_head": 3}, "GPT: expected n_embd divisible by n_head, got 16 and 3"),
        ({"n_layer": 0}, "GPT: expected a whole n_layer of at least 1, got 0"),
        ({"block_size": -1}, "GPT: expected a whole block_size of at least 1, got -1"),
        ({"n_embd": 8.0}, "GPT: expected a whole n_embd of at least 1, got 8.0"),
        ({"vocab_size": True}, "GPT: expected a whole vocab_size of at least 1, got True"),
        ({"activation": "swish"}, "activation: expected one of .*, got 'swish'"),
        ({"seed": 1, "rng": random.Random(1)}, "GPT: expected seed or rng, got both"),
    ],
)
def test_impossible_settings(settings: dict[str, Any], complaint: str) -> None:
    """Each impossible setting is refused in one sentence that says what was expected."""
    with pytest.raises(ValueError, match=complaint):
        GPT(**settings)


@pytest.mark.parametrize(
    ("call", "error", "complaint"),
    [
        (lambda m: m.loss([26]), ValueError, "GPT: expected at least two tokens, got 1"),
        (lambda m: m.loss([27, 0]), IndexError, "GPT: expected a token from 0 to 26, got 27"),
        (lambda m: m.loss([-1, 0]), IndexError, "GPT: expected a token from 0 to 26, got -1"),
        (lambda m: m.loss([0, 27]), IndexError, "expected an index from 0 to 26, got 27"),
        (lambda m: m([0] * 9), IndexError, "GPT: expected a position from 0 to 7, got 8"),
        (lambda m: m.step(0, 3, m.cache()), ValueError, "GPT: expected position 0 after those in the cache, got 3"),
        (lambda m: m.step(0, -1, m.cache()), IndexError, "GPT: expected a position from 0 to 7, got -1"),
        (lambda m: m.step(0, 0, []), ValueError, "GPT: expected a cache of 1 blocks, got one of 0"),
    ],
)
def test_impossible_tokens(call: Any, error: type[Exception], complaint: str) -> None:
    """A token, a position or a cache that cannot be is refused in one sentence."""
    with pytest.raises(error, match=complaint):
        call(GPT())


# ---------------------------------------------------------------- the layers


def test_linear() -> None:
    """A matrix times a vector plus a bias; without a word, the deviation of the weights is 1/√nin."""
    layer = Linear(2, 3, bias=True)
    layer.load_state_dict({"weight": [[1.0, 2.0], [0.0, 1.0], [-1.0, 0.5]], "bias": [0.5, 0.0, -1.0]})
    assert numbers(layer([3.0, 4.0])) == [11.5, 4.0, -2.0]
    wide = [weight.data for row in Linear(100, 50, rng=random.Random(1)).weight for weight in row]
    assert math.sqrt(sum(w * w for w in wide) / 5000) == pytest.approx(0.1, rel=0.05)


def test_embedding() -> None:
    """An index gives its row; one that is not there is refused."""
    layer = Embedding(3, 2)
    assert layer(2) == layer.weight[2]
    with pytest.raises(IndexError, match="Embedding: expected an index from 0 to 2, got 3"):
        layer(3)


def test_rmsnorm() -> None:
    """The mean square of the outputs is 1, times the gain if there is one."""
    assert RMSNorm(4).parameters() == []
    plain, gained = RMSNorm(4, eps=0.0), RMSNorm(4, gain=True, eps=0.0)
    gained.load_state_dict({"gain": [2.0, 1.0, 1.0, 0.0]})
    out = plain([1.0, -2.0, 3.0, 4.0])
    assert sum(x * x for x in out) / 4 == pytest.approx(1.0)
    assert numbers(gained([1.0, -2.0, 3.0, 4.0])) == [2.0 * out[0], out[1], out[2], 0.0]


def test_layernorm() -> None:
    """Mean 0 and variance 1, then the gain and the bias, both learned."""
    layer = LayerNorm(4, eps=0.0)
    out = numbers(layer([1.0, -2.0, 3.0, 4.0]))
    assert (sum(out), sum(x * x for x in out) / 4) == (pytest.approx(0.0, abs=1e-15), pytest.approx(1.0))
    layer.load_state_dict({"gain": [2.0, 1.0, 1.0, 0.0], "bias": [0.0, 0.0, 1.0, 7.0]})
    assert numbers(layer([1.0, -2.0, 3.0, 4.0])) == [2.0 * out[0], out[1], out[2] + 1.0, 7.0]


def test_attention_by_hand() -> None:
    """Two positions, two heads of size one: the second position mixes both values by the softmax of its scores."""
    attention = CausalSelfAttention(2, n_head=2)
    identity = [[1.0, 0.0], [0.0, 1.0]]
    attention.load_state_dict({"wq": identity, "wk": identity, "wv": identity, "wo": identity})
    first, second = attention([[1.0, 2.0], [0.5, -1.0]])
    assert numbers(first) == [1.0, 2.0]

    def mixed(query: float, a: float, b: float) -> float:
        ea, eb = math.exp(query * a), math.exp(query * b)
        return (ea * a + eb * b) / (ea + eb)

    assert numbers(second) == pytest.approx([mixed(0.5, 1.0, 0.5), mixed(-1.0, 2.0, -1.0)], rel=1e-14)


def test_a_fresh_block_passes_its_input_on() -> None:
    """Both branches of a fresh block end in zeros, so its output is its input."""
    xs = [[1.0, -2.0, 0.5, 3.0], [0.0, 1.0, 0.0, 2.0]]
    assert [numbers(out) for out in Block(4, n_head=2)(xs)] == xs


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda size: CausalSelfAttention(size, n_head=1), "CausalSelfAttention: expected a whole n_embd"),
        (lambda size: CausalSelfAttention(4, n_head=size), "CausalSelfAttention: expected a whole n_head"),
        (FeedForward, "FeedForward: expected a whole n_embd"),
        (lambda size: Linear(size, 1), "Linear: expected a whole nin"),
        (lambda size: Linear(1, size), "Linear: expected a whole nout"),
        (lambda size: Embedding(size, 1), "Embedding: expected a whole count"),
        (lambda size: Embedding(1, size), "Embedding: expected a whole size"),
        (RMSNorm, "RMSNorm: expected a whole size"),
        (LayerNorm, "LayerNorm: expected a whole size"),
    ],
)
def test_sizes_of_layers(make: Any, named: str) -> None:
    """Each layer refuses a size that is none, and says which; 1 is one."""
    for size in (0, -1, True, 1.0):
        with pytest.raises(ValueError, match=f"{named} of at least 1, got {size}$"):
            make(size)
    assert make(1)


def test_heads_must_divide() -> None:
    """Attention refuses heads that do not divide the size."""
    with pytest.raises(ValueError, match="CausalSelfAttention: expected n_embd divisible by n_head, got 6 and 4"):
        CausalSelfAttention(6, n_head=4)


# ---------------------------------------------------------------- the examples


def test_names_example() -> None:
    """examples/names.py learns: the last ten losses are well below the first; what it makes up is made of letters."""
    names, losses = example("names"), []
    model, letters = names.train(names.NAMES.split(), report=lambda step, loss: losses.append(loss))
    assert sum(losses[-10:]) / 10 < losses[0] - 0.5
    made_up = names.sampled(model.frozen(), letters, random.Random(1))
    assert set(made_up) <= set(letters)


def test_moons_example() -> None:
    """examples/moons.py separates the moons, and its picture shows both sides and both kinds of points."""
    moons, accuracies = example("moons"), []
    model, points, labels = moons.train(report=lambda step, loss, accuracy: accuracies.append(accuracy))
    assert max(accuracies[-10:]) == 1.0
    picture = moons.picture(model, points, labels)
    assert len(picture.splitlines()) == 22
    assert set(picture) == set("#·+o\n")
