"""Operations over many numbers, recorded as one node each (or one per output): sum, dot, softmax, …

The rows below define them for the reference engine and, run on Values, for higher derivatives; the native engine
has kernels of its own that agree to the bit. Sums run from left to right, starting with the first term.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import index as whole_number
from types import SimpleNamespace
from typing import Any

from gradwalk import engine, reference
from gradwalk.errors import number_from
from gradwalk.formula import Number, absolute, div, equal, exp, log, pow, sqrt, where

Numbers = Sequence[Number]


@dataclass(frozen=True)
class Composite:
    """One output of an operation over many inputs: like a row of `ops.py`, but with `xs` instead of `x, y`."""

    name: str
    forward: Callable[..., Number]
    local_grads: Callable[..., Sequence[Number]]


# ---------------------------------------------------------------- parts the rows share


def _total(terms: Iterable[Number]) -> Number:
    first, *rest = terms
    for term in rest:
        first = first + term
    return first


def _plain(x: Number) -> float:
    """The number itself, of which no gradient is asked."""
    return x if isinstance(x, float) else float(x.data)


def _shift(xs: Numbers) -> Number:
    """The largest x: subtracted before exp, it cannot overflow, and the result does not change."""
    value = next((x for x in xs if not isinstance(x, float)), None)
    if value is None:
        largest = xs[_position(xs, 1.0)]
    else:  # a node of its own, which no gradient flows through: a compiled function finds it anew in every call
        of_values = _REFERENCE if isinstance(value, reference.Value) else engine.load("native").COMPOSITES
        largest = of_values["largest"]([x if isinstance(x, float) else x._apply("stop_gradient", x) for x in xs])
    return largest if math.isfinite(_plain(largest)) else 0.0


def _position(xs: Numbers, sign: float) -> int:
    """Where the largest (sign 1) or smallest (sign -1) is: the first of equals, but a nan before all else.

    Values are compared as Values: a compiled function guards the choice.
    """
    best = 0
    for i in range(1, len(xs)):
        high, low = (xs[i], xs[best]) if sign > 0.0 else (xs[best], xs[i])
        if high <= low:
            continue
        champion = _plain(xs[best])
        if high > low or champion == champion:
            best = i
    return best


def _one_hot(count: int, position: int) -> list[float]:
    return [1.0 if i == position else 0.0 for i in range(count)]


def _exponentials(xs: Numbers) -> tuple[list[Number], Number]:
    shift = _shift(xs)
    exponentials = [exp(x - shift) for x in xs]
    return exponentials, _total(exponentials)


def _probabilities(xs: Numbers) -> list[Number]:
    exponentials, total = _exponentials(xs)
    return [div(e, total) for e in exponentials]


def _halves(xs: Numbers) -> tuple[Numbers, Numbers]:
    return xs[: len(xs) // 2], xs[len(xs) // 2 :]


def _rms_scale(xs: Numbers, eps: float) -> Number:
    return pow(div(_total(x * x for x in xs), float(len(xs))) + eps, -0.5)


def _centred(xs: Numbers) -> list[Number]:
    mean = div(_total(xs), float(len(xs)))
    return [x - mean for x in xs]


# ---------------------------------------------------------------- the rows


def _norm(xs: Numbers) -> Number:
    # scaled by the largest entry, so that squares neither overflow nor vanish
    scale = max((abs(_plain(x)) for x in xs), default=0.0)
    if scale == 0.0 or not math.isfinite(scale):
        return _total(absolute(x) for x in xs)
    ratios = [div(x, scale) for x in xs]
    return sqrt(_total(r * r for r in ratios)) * scale


def _rmsnorm_local_grads(xs: Numbers, i: int, eps: float, out: Number) -> list[Number]:
    scale = _rms_scale(xs, eps)
    slope = div(out * scale * scale, float(len(xs)))
    return [(scale if j == i else 0.0) - slope * x for j, x in enumerate(xs)]


def _layernorm_local_grads(xs: Numbers, i: int, eps: float, out: Number) -> list[Number]:
    centred = _centred(xs)
    scale = _rms_scale(centred, eps)
    share = 1.0 / float(len(xs))
    return [scale * (((1.0 if j == i else 0.0) - share) - out * (x * scale) * share) for j, x in enumerate(centred)]


_ROWS = (
    Composite("sum", forward=_total, local_grads=lambda xs, out: [1.0] * len(xs)),
    Composite(
        "mean",
        forward=lambda xs: div(_total(xs), float(len(xs))),
        local_grads=lambda xs, out: [1.0 / len(xs)] * len(xs),
    ),
    Composite(  # xs holds both lists, one after the other
        "dot",
        forward=lambda xs: _total(x * y for x, y in zip(*_halves(xs), strict=True)),
        local_grads=lambda xs, out: [*_halves(xs)[1], *_halves(xs)[0]],
    ),
    Composite(
        "norm",
        forward=_norm,
        local_grads=lambda xs, out: [where(equal(out, 0.0), 0.0, div(x, out)) for x in xs],  # at the origin: 0
    ),
    Composite(
        "logsumexp",
        forward=lambda xs: log(_exponentials(xs)[1]) + _shift(xs),
        local_grads=lambda xs, out: _probabilities(xs),
    ),
    Composite(
        "softmax",
        forward=lambda xs, i: _probabilities(xs)[i],
        local_grads=lambda xs, i, out: [out * ((1.0 if j == i else 0.0) - p) for j, p in enumerate(_probabilities(xs))],
    ),
    Composite(
        "log_softmax",
        forward=lambda xs, i: (xs[i] - _shift(xs)) - log(_exponentials(xs)[1]),
        local_grads=lambda xs, i, out: [(1.0 if j == i else 0.0) - p for j, p in enumerate(_probabilities(xs))],
    ),
    Composite(  # -log of the probability softmax gives to the target
        "cross_entropy",
        forward=lambda xs, i: log(_exponentials(xs)[1]) - (xs[i] - _shift(xs)),
        local_grads=lambda xs, i, out: [p - (1.0 if j == i else 0.0) for j, p in enumerate(_probabilities(xs))],
    ),
    Composite(
        "rmsnorm",
        forward=lambda xs, i, eps: xs[i] * _rms_scale(xs, eps),
        local_grads=_rmsnorm_local_grads,
    ),
    Composite(
        "layernorm",
        forward=lambda xs, i, eps: _centred(xs)[i] * _rms_scale(_centred(xs), eps),
        local_grads=_layernorm_local_grads,
    ),
    Composite(
        "largest",
        forward=lambda xs: xs[_position(xs, 1.0)],
        local_grads=lambda xs, out: _one_hot(len(xs), _position(xs, 1.0)),  # a tie: the first
    ),
    Composite(
        "smallest",
        forward=lambda xs: xs[_position(xs, -1.0)],
        local_grads=lambda xs, out: _one_hot(len(xs), _position(xs, -1.0)),  # a tie: the first
    ),
    Composite("take", forward=lambda xs, i: xs[0], local_grads=lambda xs, i, out: [1.0]),
)

COMPOSITES: dict[str, Composite] = {row.name: row for row in _ROWS}


# ---------------------------------------------------------------- the functions, on the reference engine


class _Inputs(list[reference.Value]):
    """The numbers of a list as nodes; a plain number becomes one constant, however many outputs it has a part in."""

    def __init__(self, name: str, xs: Iterable[Any]) -> None:
        given = list(xs)
        if not given:
            raise ValueError(f"{name}: expected at least one number, got an empty list")
        super().__init__(reference.lift(x, name) for x in given)
        self.has_value = any(isinstance(x, reference.Value) for x in given)


def _record(name: str, inputs: _Inputs, *parameters: Any) -> Any:
    """One node on the reference engine; a float if there is no Value among the inputs."""
    row = COMPOSITES[name]
    xs = [child._data for child in inputs]
    out = row.forward(xs, *parameters)
    if not inputs.has_value:
        return out
    return reference.node(out, inputs, row.local_grads(xs, *parameters, out), name, name, parameters)


def _one_node(name: str, called: str = "") -> Callable[[Iterable[Any]], Any]:
    return lambda xs: _record(name, _Inputs(called or name, xs))


def _one_per_output(name: str) -> Callable[[Iterable[Any]], list[Any]]:
    def function(xs: Iterable[Any]) -> list[Any]:
        inputs = _Inputs(name, xs)
        return [_record(name, inputs, i) for i in range(len(inputs))]

    return function


def _normalised(name: str) -> Callable[..., list[Any]]:
    def function(xs: Iterable[Any], eps: float = 1e-5) -> list[Any]:
        number = number_from(eps, name)
        inputs = _Inputs(name, xs)
        return [_record(name, inputs, i, number) for i in range(len(inputs))]

    return function


def _dot(xs: Iterable[Any], ys: Iterable[Any]) -> Any:
    return _dot_of(_Inputs("dot", xs), _Inputs("dot", ys))


def _dot_of(left: _Inputs, right: _Inputs) -> Any:
    if len(left) != len(right):
        raise ValueError(f"dot: expected two lists of the same length, got {len(left)} and {len(right)}")
    both = _Inputs("dot", left + right)
    both.has_value = left.has_value or right.has_value
    return _record("dot", both)


def _matvec(rows: Iterable[Iterable[Any]], x: Iterable[Any]) -> list[Any]:
    column = _Inputs("dot", x)
    return [_dot_of(_Inputs("dot", row), column) for row in rows]


def _cross_entropy(logits: Iterable[Any], target: int) -> Any:
    inputs = _Inputs("cross_entropy", logits)
    return _record("cross_entropy", inputs, _checked_index("cross_entropy", target, len(inputs)))


def _checked_index(name: str, given: int, count: int) -> int:
    position = whole_number(given)
    if not 0 <= position < count:
        raise IndexError(f"{name}: expected an index from 0 to {count - 1}, got {position}")
    return position


def _take(rows: Iterable[Any], index: int) -> Any:
    listed = list(rows)
    if not listed:
        raise ValueError("take: expected at least one number, got an empty list")
    position = _checked_index("take", index, len(listed))
    row = listed[position]
    if isinstance(row, list | tuple):
        return [_record("take", _Inputs("take", [x]), position) for x in row]
    return _record("take", _Inputs("take", [row]), position)


_REFERENCE: dict[str, Callable[..., Any]] = {
    "sum": _one_node("sum"),
    "mean": _one_node("mean"),
    "dot": _dot,
    "matvec": _matvec,
    "norm": _one_node("norm"),
    "logsumexp": _one_node("logsumexp"),
    "softmax": _one_per_output("softmax"),
    "log_softmax": _one_per_output("log_softmax"),
    "cross_entropy": _cross_entropy,
    "rmsnorm": _normalised("rmsnorm"),
    "layernorm": _normalised("layernorm"),
    "largest": _one_node("largest", called="maximum"),
    "smallest": _one_node("smallest", called="minimum"),
    "take": _take,
}


def _of_two_or_many(pair: Callable[[Any, Any], Any], many: Callable[[Iterable[Any]], Any]) -> Callable[..., Any]:
    def function(*xs: Any) -> Any:
        return pair(*xs) if len(xs) == 2 else many(*xs) if len(xs) == 1 else many(xs)

    return function


def for_engine(name: str) -> SimpleNamespace:
    """The functions of this module on the engine of that name."""
    module: Any = engine.load(name)
    functions = dict(module.COMPOSITES if name == "native" else _REFERENCE)
    largest, smallest = functions.pop("largest"), functions.pop("smallest")
    functions["maximum"] = _of_two_or_many(module.FUNCTIONS["maximum"], largest)
    functions["minimum"] = _of_two_or_many(module.FUNCTIONS["minimum"], smallest)
    return SimpleNamespace(**functions)


_active = for_engine(engine.NAME)


def sum(xs: Iterable[Number]) -> Any:
    """The sum as one node.

    >>> x = engine.Value(2.0)
    >>> sum([x, x, 3.0])
    Value(data=7.0, grad=0.0)
    """
    return _active.sum(xs)


def mean(xs: Iterable[Number]) -> Any:
    """The mean as one node.

    >>> mean([1.0, 2.0, 6.0])
    3.0
    """
    return _active.mean(xs)


def dot(xs: Iterable[Number], ys: Iterable[Number]) -> Any:
    """The sum of products as one node.

    >>> dot([1.0, 2.0], [3.0, 4.0])
    11.0
    """
    return _active.dot(xs, ys)


def matvec(rows: Iterable[Iterable[Number]], x: Iterable[Number]) -> list[Any]:
    """The matrix, given as rows, times the vector: one dot node per row.

    >>> matvec([[1.0, 2.0], [0.0, 1.0]], [3.0, 4.0])
    [11.0, 4.0]
    """
    return _active.matvec(rows, x)  # type: ignore[no-any-return]


def norm(xs: Iterable[Number]) -> Any:
    """The Euclidean length as one node, without overflow on the way.

    >>> norm([3.0, 4.0])
    5.0
    """
    return _active.norm(xs)


def logsumexp(xs: Iterable[Number]) -> Any:
    """log of the sum of exponentials as one node, without overflow on the way.

    >>> round(logsumexp([1000.0, 1000.0]), 9)
    1000.693147181
    """
    return _active.logsumexp(xs)


def softmax(xs: Iterable[Number]) -> list[Any]:
    """Exponentials divided by their sum: one node per output.

    >>> softmax([1000.0, 0.0])
    [1.0, 0.0]
    """
    return _active.softmax(xs)  # type: ignore[no-any-return]


def log_softmax(xs: Iterable[Number]) -> list[Any]:
    """Logarithms of the softmax, exact where it underflows: one node per output.

    >>> log_softmax([1000.0, 0.0])
    [0.0, -1000.0]
    """
    return _active.log_softmax(xs)  # type: ignore[no-any-return]


def cross_entropy(logits: Iterable[Number], target: int) -> Any:
    """-log of the probability that softmax gives to entry `target`, as one node.

    >>> cross_entropy([1000.0, 0.0], 1)
    1000.0
    """
    made = target._cross_entropy(logits) if hasattr(target, "_cross_entropy") else None  # an Index of a trace
    return _active.cross_entropy(logits, target) if made is None else made


def rmsnorm(xs: Iterable[Number], eps: float = 1e-5) -> list[Any]:
    """xs divided by the root of their mean square: one node per output.

    >>> rmsnorm([3.0, -3.0], eps=0.0)
    [1.0, -1.0]
    """
    return _active.rmsnorm(xs, eps)  # type: ignore[no-any-return]


def layernorm(xs: Iterable[Number], eps: float = 1e-5) -> list[Any]:
    """xs shifted to mean 0 and scaled to variance 1: one node per output.

    >>> layernorm([1.0, 3.0], eps=0.0)
    [-1.0, 1.0]
    """
    return _active.layernorm(xs, eps)  # type: ignore[no-any-return]


def maximum(*xs: Any) -> Any:
    """The largest of two or more numbers, or of one list of them; of equals, the first gets the gradient.

    >>> maximum([1.0, 5.0, 2.0])
    5.0
    """
    return _active.maximum(*xs)


def minimum(*xs: Any) -> Any:
    """The smallest of two or more numbers, or of one list of them; of equals, the first gets the gradient.

    >>> minimum(4.0, 2.0)
    2.0
    """
    return _active.minimum(*xs)


def take(rows: Sequence[Any], index: int) -> Any:
    """`rows[index]` as recorded nodes: one node for a Value, a list of nodes for a row of them.

    >>> take([[1.0, 2.0], [3.0, 4.0]], 1)
    [3.0, 4.0]
    """
    made = index._take(rows) if hasattr(index, "_take") else None  # an Index of a trace
    return _active.take(rows, index) if made is None else made
