"""New documents from a trained model, one character after the other."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from gradwalk.nn import GPT
from gradwalk.training.tokenizer import Tokenizer


def sample(
    model: GPT, tokenizer: Tokenizer, rng: random.Random, temperature: float = 0.5, top_k: int | None = None,
    prompt: str = "",
) -> str:  # fmt: skip
    """A document that begins with `prompt`; it ends with a boundary, or where the model's block does.

    `model` is best a frozen one. The same generator state gives the same document, on either engine.

    >>> model = GPT(vocab_size=3, n_embd=2, n_head=1, block_size=4, seed=1).frozen()
    >>> len(sample(model, Tokenizer("ab"), random.Random(1), prompt="ab")) <= 4
    True
    """
    given = tokenizer.tokens_of(prompt)
    if len(given) >= model.block_size:
        raise ValueError(
            f"prompt: expected at most {model.block_size - 1} characters (the model's block is {model.block_size}), "
            f"got {len(given)}"
        )
    cache, made = model.cache(), list(given)
    waiting = [tokenizer.boundary, *given]
    for position in range(model.block_size):
        token = waiting[position] if position < len(waiting) else made[-1]
        logits = model.step(token, position, cache)
        if position + 1 < len(waiting):
            continue
        token = chosen(logits, rng, temperature, top_k)
        if token == tokenizer.boundary:
            break
        made.append(token)
    return tokenizer.decode(made)


def chosen(logits: Sequence[float], rng: random.Random, temperature: float, top_k: int | None = None) -> int:
    """A token, drawn by its probability among the `top_k` likeliest; at temperature 0 the likeliest.

    >>> chosen([0.0, 2.0, 1.0], random.Random(1), temperature=0.0)
    1
    """
    ranked = sorted(range(len(logits)), key=lambda token: -logits[token])  # of equals, the first stays first
    if temperature == 0.0:
        return ranked[0]
    kept = sorted(ranked[:top_k])
    largest = logits[ranked[0]]
    weights = [math.exp((logits[token] - largest) / temperature) for token in kept]
    return rng.choices(kept, weights)[0]
