"""A GPT over scalar Values, made of composites: one node for a dot product or a softmax.

With its default settings it is the model of `examples/scalar_gpt.py`: the same parameters in the same order, the
same initial weights from the same generator, the same losses. It works position by position, with a cache.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from gradwalk.functions import cross_entropy, matvec, mean, softmax
from gradwalk.nn.activation import activated, checked_activation
from gradwalk.nn.layers import Embedding, Linear, RMSNorm, Vector, added, checked_size, normal_matrix
from gradwalk.nn.module import Module
from gradwalk.scopes import scope


class AttentionCache:
    """The keys and values of the positions so far: keys by head and position, values by component and position."""

    def __init__(self, n_embd: int, n_head: int) -> None:
        self.keys: list[list[Vector]] = [[] for _ in range(n_head)]
        self.values: list[list[Any]] = [[] for _ in range(n_embd)]

    def __len__(self) -> int:
        return len(self.values[0])


class CausalSelfAttention(Module):
    """Each position gathers from itself and from those before it; over a list of vectors, or one by one with `step`.

    >>> attention = CausalSelfAttention(4, n_head=2)
    >>> len(attention([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]))
    2
    """

    def __init__(self, n_embd: int, n_head: int, deviation: float = 0.02, rng: random.Random | None = None) -> None:
        checked_size("CausalSelfAttention", n_embd=n_embd, n_head=n_head)
        if n_embd % n_head:
            raise ValueError(f"CausalSelfAttention: expected n_embd divisible by n_head, got {n_embd} and {n_head}")
        self.n_head = n_head
        self.wq = normal_matrix(n_embd, n_embd, deviation, rng)
        self.wk = normal_matrix(n_embd, n_embd, deviation, rng)
        self.wv = normal_matrix(n_embd, n_embd, deviation, rng)
        # zero where a branch joins the residual stream: at first each branch passes its input on unchanged
        self.wo = normal_matrix(n_embd, n_embd, 0.0, rng)

    def cache(self) -> AttentionCache:
        """An empty cache, for `step`."""
        return AttentionCache(len(self.wq), self.n_head)

    def step(self, x: Vector, cache: AttentionCache) -> list[Any]:
        """The output at the next position, whose key and value are added to the cache."""
        query, key = matvec(self.wq, x), matvec(self.wk, x)
        for column, value in zip(cache.values, matvec(self.wv, x), strict=True):
            column.append(value)
        size = len(query) // self.n_head
        root = size**0.5
        gathered: list[Any] = []
        for head, keys in enumerate(cache.keys):
            start, stop = head * size, (head + 1) * size
            keys.append(key[start:stop])
            weights = softmax([score / root for score in matvec(keys, query[start:stop])])
            gathered += matvec(cache.values[start:stop], weights)
        return matvec(self.wo, gathered)

    def __call__(self, xs: Sequence[Vector]) -> list[list[Any]]:
        cache = self.cache()
        return [self.step(x, cache) for x in xs]


class FeedForward(Module):
    """Up to four times the size, through the activation, and down again; the second matrix starts at zero."""

    def __init__(
        self, n_embd: int, activation: str = "relu_squared", deviation: float = 0.02, rng: random.Random | None = None
    ) -> None:
        checked_size("FeedForward", n_embd=n_embd)
        self.activation = checked_activation(activation)
        self.up = normal_matrix(4 * n_embd, n_embd, deviation, rng)
        self.down = normal_matrix(n_embd, 4 * n_embd, 0.0, rng)

    def __call__(self, x: Vector) -> list[Any]:
        return matvec(self.down, activated(self.activation, matvec(self.up, x)))


class Block(Module):
    """Attention, then the feed-forward part, each on the normalised input and added to it.

    >>> Block(4, n_head=2)
    Block: 192 parameters
      norm: RMSNorm
      attention: CausalSelfAttention
        wq: 4 × 4
        wk: 4 × 4
        wv: 4 × 4
        wo: 4 × 4
      mlp: FeedForward
        up: 16 × 4
        down: 4 × 16
    """

    def __init__(
        self, n_embd: int, n_head: int, activation: str = "relu_squared", deviation: float = 0.02,
        rng: random.Random | None = None,
    ) -> None:  # fmt: skip
        self.norm = RMSNorm(n_embd)
        self.attention = CausalSelfAttention(n_embd, n_head, deviation, rng)
        self.mlp = FeedForward(n_embd, activation, deviation, rng)

    def cache(self) -> AttentionCache:
        """An empty cache, for `step`."""
        return self.attention.cache()

    def step(self, x: Vector, cache: AttentionCache) -> list[Any]:
        """The output at the next position, whose key and value are added to the cache."""
        with scope("attention"):
            between = added(x, self.attention.step(self.norm(x), cache))
        with scope("feed forward"):
            return added(between, self.mlp(self.norm(between)))

    def __call__(self, xs: Sequence[Vector]) -> list[list[Any]]:
        cache = self.cache()
        return [self.step(x, cache) for x in xs]


class GPT(Module):
    """A small language model. Weights are normal with deviation 0.02; `tied` uses the token embedding as the head.

    `seed` or `rng` says where the weights come from; without either, they come from Python's own generator.

    >>> model = GPT(seed=1)
    >>> len(model.parameters())
    4064
    >>> round(model.loss([26, 0, 3, 0, 26]).data, 1)  # about log(27): it knows nothing yet
    3.3
    >>> model.frozen().step(26, position=0, cache=model.cache())[:1] == [model([26])[0][0].data]
    True
    """

    def __init__(
        self, vocab_size: int = 27, n_embd: int = 16, n_head: int = 4, n_layer: int = 1, block_size: int = 8,
        activation: str = "relu_squared", tied: bool = False, seed: int | None = None, rng: random.Random | None = None,
    ) -> None:  # fmt: skip
        checked_size("GPT", vocab_size=vocab_size, n_embd=n_embd, n_head=n_head, n_layer=n_layer, block_size=block_size)
        if n_embd % n_head:
            raise ValueError(f"GPT: expected n_embd divisible by n_head, got {n_embd} and {n_head}")
        if seed is not None:
            if rng is not None:
                raise ValueError("GPT: expected seed or rng, got both")
            rng = random.Random(seed)
        deviation = 0.02
        self.vocab_size = vocab_size
        self.block_size = block_size
        self.token_embedding = Embedding(vocab_size, n_embd, deviation, rng)
        self.position_embedding = Embedding(block_size, n_embd, deviation, rng)
        self.norm = RMSNorm(n_embd)
        self.blocks = [Block(n_embd, n_head, activation, deviation, rng) for _ in range(n_layer)]
        self.head = None if tied else Linear(n_embd, vocab_size, deviation=deviation, rng=rng)

    def cache(self) -> list[AttentionCache]:
        """An empty cache, one part for each block, for `step`."""
        return [block.cache() for block in self.blocks]

    def step(self, token: int, position: int, cache: list[AttentionCache]) -> list[Any]:
        """The logits of the token after `token`, which is at `position`; its keys and values go into the cache.

        Positions come in order: a cache that holds three of them, 0 to 2, goes on with 3.
        """
        if not 0 <= position < self.block_size:
            raise IndexError(f"GPT: expected a position from 0 to {self.block_size - 1}, got {position}")
        if len(cache) != len(self.blocks):
            raise ValueError(f"GPT: expected a cache of {len(self.blocks)} blocks, got one of {len(cache)}")
        if position != len(cache[0]):
            raise ValueError(f"GPT: expected position {len(cache[0])} after those in the cache, got {position}")
        if not 0 <= token < self.vocab_size:
            raise IndexError(f"GPT: expected a token from 0 to {self.vocab_size - 1}, got {token}")
        with scope("embedding"):
            x = self.norm(added(self.token_embedding(token), self.position_embedding(position)))
        for i, (block, part) in enumerate(zip(self.blocks, cache, strict=True)):
            with scope(f"block {i}"):
                x = block.step(x, part)
        with scope("head"):
            return matvec(self.token_embedding.weight, x) if self.head is None else self.head(x)

    def __call__(self, tokens: Sequence[int]) -> list[list[Any]]:
        """The logits after each token."""
        cache = self.cache()
        return [self.step(token, position, cache) for position, token in enumerate(tokens)]

    def loss(self, tokens: Sequence[int]) -> Any:
        """The mean cross entropy over the positions, `block_size` of them at most: how badly each next token was told.

        A Value; from a frozen model, a float.
        """
        positions = min(len(tokens) - 1, self.block_size)
        if positions < 1:
            raise ValueError(f"GPT: expected at least two tokens, got {len(tokens)}")
        logits = self(tokens[:positions])
        with scope("loss"):
            return mean(map(cross_entropy, logits, tokens[1 : positions + 1]))
