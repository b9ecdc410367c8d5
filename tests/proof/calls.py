"""The arguments of eight calls, each a little different from the one before: what held in one may not in the next."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

CALLS = 8


@dataclass
class Point:
    """A dataclass of the user's, which programs know as P."""

    u: Any
    v: Any
    k: int

    def energy(self, speed: Any) -> Any:
        return self.u * speed * speed + self.v * self.k


@dataclass
class Call:
    """One call's arguments, and the number the second weight has at that time."""

    arguments: dict[str, Any]
    weight: float


def _number(rng: random.Random) -> float:
    return rng.choice((0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.0)) if rng.random() < 0.3 else round(rng.uniform(-2.0, 2.0), 3)


def calls_of(rng: random.Random) -> list[Call]:
    """Eight calls: ties, zeros, other integers, other lengths, integers for numbers, one list passed twice."""
    now: dict[str, Any] = {
        "a": _number(rng), "b": _number(rng), "n": rng.randrange(4), "k": rng.randint(-1, 2),
        "xs": [_number(rng) for _ in range(3)], "ys": [_number(rng) for _ in range(3)],
        "d": {"u": _number(rng), "v": _number(rng)}, "p": (_number(rng), _number(rng), rng.randrange(3)),
        "arr": [_number(rng) for _ in range(3)],
    }  # fmt: skip
    weight = _number(rng)
    calls = [Call(dict(now), weight)]
    while len(calls) < CALLS:
        now = dict(now)
        for _ in range(rng.choice((0, 1, 1, 2, 3))):
            weight = _changed(rng, now, weight)
        calls.append(Call(now, weight))
    return calls


def _changed(rng: random.Random, now: dict[str, Any], weight: float) -> float:
    kind = rng.randrange(16)
    if kind < 4:
        now["a"], now["b"] = _number(rng), _number(rng)
    elif kind == 4:
        now["b"] = now["a"]
    elif kind == 5:
        now["n"], now["k"] = rng.randrange(4), rng.randint(-1, 2)
    elif kind == 6:
        now["n"] += 1
    elif kind == 7:
        now["xs"] = [_number(rng) for _ in range(rng.choice((1, 2, 3, 3, 4, 20)))]
    elif kind == 8:
        now["xs"] = [now["a"]] * len(now["xs"])
    elif kind == 9:
        now["ys"] = "xs" if rng.random() < 0.5 else list(now["xs"]) if now["xs"] != "xs" else now["ys"]
    elif kind == 10:
        now["ys"] = [_number(rng) for _ in range(rng.choice((2, 3, 3)))]
    elif kind == 11:
        now["d"] = {"v": _number(rng), "u": _number(rng)} if rng.random() < 0.3 else {"u": now["a"], "v": _number(rng)}
    elif kind == 12:
        now["p"] = (_number(rng), now["b"], rng.randrange(3))
    elif kind == 13:
        now["arr"] = [_number(rng), now["a"], _number(rng)]
    elif kind == 14:
        now[rng.choice("ab")] = rng.randint(-1, 3)  # an integer where a number was
    else:
        weight = _number(rng)
    return weight
