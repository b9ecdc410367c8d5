"""Layers over vectors, which are lists of Values or, in a frozen model, of floats. Matrices are lists of rows."""

from __future__ import annotations

import random
from collections.abc import Sequence
from operator import add
from typing import Any

from gradwalk.engine import Value
from gradwalk.functions import layernorm, matvec, rmsnorm, take
from gradwalk.nn.module import Module

Vector = Sequence[Any]
Matrix = list[list[Any]]


def normal_matrix(rows: int, columns: int, deviation: float, rng: random.Random | None = None) -> Matrix:
    """Values drawn from a normal distribution, row by row; without `rng`, from Python's own generator.

    A deviation of 0 draws too, so that what is drawn afterwards does not depend on it.

    >>> normal_matrix(1, 2, deviation=0.0)
    [[Value(data=0.0, grad=0.0), Value(data=0.0, grad=0.0)]]
    """
    gauss = random.gauss if rng is None else rng.gauss
    return [[Value(gauss(0, deviation)) for _ in range(columns)] for _ in range(rows)]


def checked_size(who: str, **sizes: int) -> None:
    """Raise unless every size is a whole number of at least 1."""
    for name, size in sizes.items():
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise ValueError(f"{who}: expected a whole {name} of at least 1, got {size!r}")


def added(x: Vector, y: Vector) -> list[Any]:
    return list(map(add, x, y))


class Linear(Module):
    """A matrix times a vector, plus a bias on request; weights are normal with deviation 1/√nin unless told.

    >>> Linear(2, 3, bias=True)
    Linear: 9 parameters
      weight: 3 × 2
      bias: 3
    """

    def __init__(
        self, nin: int, nout: int, bias: bool = False, deviation: float | None = None, rng: random.Random | None = None
    ) -> None:
        checked_size("Linear", nin=nin, nout=nout)
        self.weight = normal_matrix(nout, nin, nin**-0.5 if deviation is None else deviation, rng)
        self.bias = [Value(0.0) for _ in range(nout)] if bias else None

    def __call__(self, x: Vector) -> list[Any]:
        out = matvec(self.weight, x)
        return out if self.bias is None else added(out, self.bias)


class Embedding(Module):
    """A vector for each of `count` tokens.

    >>> Embedding(27, 4)(26)[0]._children
    ()
    """

    def __init__(self, count: int, size: int, deviation: float = 0.02, rng: random.Random | None = None) -> None:
        checked_size("Embedding", count=count, size=size)
        self.weight = normal_matrix(count, size, deviation, rng)

    def __call__(self, index: int) -> list[Any]:
        if not 0 <= index < len(self.weight):
            raise IndexError(f"Embedding: expected an index from 0 to {len(self.weight) - 1}, got {index}")
        # in a compiled function the index is left open, so that one program serves every token
        return self.weight[index] if type(index) is int else list(take(self.weight, index))


class RMSNorm(Module):
    """The vector divided by the root of its mean square; times a learned gain on request.

    >>> RMSNorm(2, eps=0.0)([3.0, -3.0])
    [1.0, -1.0]
    """

    def __init__(self, size: int, gain: bool = False, eps: float = 1e-5) -> None:
        checked_size("RMSNorm", size=size)
        self.eps = eps
        self.gain = [Value(1.0) for _ in range(size)] if gain else None

    def __call__(self, x: Vector) -> list[Any]:
        out = rmsnorm(x, self.eps)
        return out if self.gain is None else [xi * gain for xi, gain in zip(out, self.gain, strict=True)]


class LayerNorm(Module):
    """The vector shifted to mean 0 and scaled to variance 1, then times a learned gain plus a learned bias.

    >>> [out.data for out in LayerNorm(2, eps=0.0)([1.0, 3.0])]
    [-1.0, 1.0]
    """

    def __init__(self, size: int, eps: float = 1e-5) -> None:
        checked_size("LayerNorm", size=size)
        self.eps = eps
        self.gain = [Value(1.0) for _ in range(size)]
        self.bias = [Value(0.0) for _ in range(size)]

    def __call__(self, x: Vector) -> list[Any]:
        out = layernorm(x, self.eps)
        return [xi * gain + bias for xi, gain, bias in zip(out, self.gain, self.bias, strict=True)]
