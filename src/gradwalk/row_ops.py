"""The second table: operations over many numbers, recorded as one node each, or one for each entry of a row.

A declaration is written once, in the language of `row_formula.py`, and serves everywhere, as a row of `ops.py` does.
To add an operation, add a declaration and run `make generate`; a vector kernel of its own is a matter of speed only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import Any, TypeVar

from gradwalk.cached_property import cached_property
from gradwalk.formula import Number, absolute, div, equal, exp, heads, is_exact, log, pow, power, sqrt, variable, where
from gradwalk.operation import nowhere, refuse_taken
from gradwalk.row_formula import (
    Lists,
    Row,
    RowVariable,
    at,
    count,
    evaluated,
    first_largest,
    first_smallest,
    hot,
    named,
    shift,
    total,
)

T = TypeVar("T")

_ON_FLOATS = Lists()


def nothing(*_: Number) -> tuple[Number, ...]:
    return ()


@dataclass(frozen=True)
class Composite:
    """One operation over rows. Its formulas take the `inputs`, the place `i` if it has one, the parameters, what it
    `keeps`; `local_grads` takes `out` as well, and gives a row (or a number for all entries), or one for each input.

    With `per_entry` there is an output for every entry, and `i` says for which; with a `target`, the caller says `i`.
    `keeps` is what the outputs over one row share, and what a compiled function keeps for the way back: numbers first,
    then rows. `called` is the name that people know it by, if it is not its own. `shown` and `shown_local_grads` are
    the same numbers, written as in a textbook; they know nothing of what is kept. `glyph` is what stands for it on a
    card. `padding` is what makes a row longer without changing anything: a "zero", its "first" entry once more, or with
    `per_entry` an entry that is "absent", which counts as -inf.

    `edges`, asked of the inputs and the parameters, says how far they are from where an output or a local gradient
    changes at once; it is 0 there, and moves no faster than all entries together. What `chooses` and `checked` mean is
    said in `operation.py`; that there is an edge where two entries equal its output, nobody has to say. Where it
    chooses another and they do not (half of the largest), `edges` has to say it.
    """

    name: str
    forward: Callable[..., Number]
    local_grads: Callable[..., Row]
    doc: str
    inputs: tuple[str, ...] = ("xs",)
    per_entry: bool = False
    target: str = ""
    parameters: tuple[str, ...] = ()
    defaults: tuple[float, ...] = ()
    keeps: Callable[..., tuple[Number, ...]] = nothing
    called: str = ""
    glyph: str = ""
    padding: str = ""
    edges: Callable[..., Number] = nowhere
    chooses: bool = False
    checked: bool = False
    shown: Callable[..., Number] | None = None
    shown_local_grads: Callable[..., Row] | None = None

    def __post_init__(self) -> None:
        if len(self.inputs) > 2 or self.indexed + len(self.parameters) > 2 or (self.target and self.parameters):
            raise TypeError(f"{self.name}: expected at most two rows, and two of i and parameters, got more")
        if self.indexed and len(self.inputs) > 1:
            raise TypeError(f"{self.name}: expected one row where there is an i, got {self.inputs}")
        refuse_taken(self.name, self.arguments, "all", "i", "j", "n", "x")
        # a target stands behind its row, and entries of a row are told apart by their place
        possible = ("absent",) if self.per_entry else () if self.target else ("zero", "first")
        if self.padding and self.padding not in possible:
            raise TypeError(
                f"{self.name}: expected padding that is {' or '.join(possible) or 'none'}, got {self.padding!r}"
            )

    @property
    def indexed(self) -> bool:
        """Whether a node's first parameter is `i`."""
        return self.per_entry or bool(self.target)

    @property
    def names(self) -> tuple[str, ...]:
        """What the formulas take before what is kept."""
        return (*self.inputs, *(("i",) if self.indexed else ()), *self.parameters)

    @property
    def arguments(self) -> tuple[str, ...]:
        """What a caller gives, by name."""
        return (*self.inputs, *((self.target,) if self.target else ()), *self.parameters)

    @property
    def signature(self) -> Signature:
        """How the function of its name is called."""
        defaults = (Parameter.empty,) * (len(self.arguments) - len(self.defaults)) + self.defaults
        named = zip(self.arguments, defaults, strict=True)
        return Signature([Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=default) for name, default in named])

    @property
    def called_by(self) -> str:
        """The name that people know it by."""
        return self.called or self.name

    @cached_property
    def variables(self) -> list[Number]:
        return [RowVariable(name) if name in self.inputs else variable(name) for name in self.names]

    @cached_property
    def kept(self) -> tuple[Number, ...]:
        """What is kept, as formulas; it does not depend on `i`."""
        return self.keeps(*self.but_for_the_place(self.variables))

    def but_for_the_place(self, given: Sequence[T]) -> list[T]:
        """What `keeps` and `edges` take."""
        return [each for each, name in zip(given, self.names, strict=True) if name != "i"]

    @cached_property
    def output(self) -> Number:
        """The forward formula, with what is kept written out."""
        return self.forward(*self.variables, *self.kept)

    @cached_property
    def slopes(self) -> tuple[Number, ...]:
        """The local gradients as formulas: one for each input."""
        return in_rows(self.local_grads(*self.variables, *self.kept, variable("out")))

    @cached_property
    def edge(self) -> Number:
        """The distance from the next of its `edges`, as a formula."""
        return self.edges(*self.but_for_the_place(self.variables))

    @property
    def shown_output(self) -> Number:
        """The forward formula as people know it."""
        return self.shown(*self.variables) if self.shown else self.output

    @property
    def shown_slopes(self) -> tuple[Number, ...]:
        """The local gradients as people know them."""
        shown = self.shown_local_grads
        return in_rows(shown(*self.variables, variable("out"))) if shown else self.slopes

    @property
    def is_logarithm(self) -> bool:
        """Whether rounding has to be measured against 1, however small the result is."""
        return any(head.startswith("log") for head in heads(self.output))

    def is_exact(self, length: int) -> bool:
        """Whether arrays of that many entries give the same bits as lists: a longer total may be in another order."""
        own = {"total"} if length <= 2 else set()
        return is_exact(self.output, (*self.names, "at", "count", "shift", "first_largest", "first_smallest", *own))

    def on(self, xs: list[Number], *parameters: Any, lists: Lists = _ON_FLOATS) -> Number:
        """The operation on numbers; xs holds all inputs, one after the other."""
        return evaluated([self.output], self.known(xs, parameters), lists)[0]

    def local_grads_on(self, xs: list[Number], *parameters: Any, lists: Lists = _ON_FLOATS) -> list[Number]:
        """Its local gradients; the last of the parameters is `out`."""
        rows = evaluated(self.slopes, self.known(xs, parameters), lists)
        length = len(xs) // len(self.inputs)
        return [each for row in rows for each in (row if isinstance(row, list) else [row] * length)]

    def edge_distance(self, xs: list[float], *parameters: float) -> float:
        """How far these inputs are from the next of its `edges`."""
        known = self.known(xs, (0,) * self.indexed + parameters)
        return float(evaluated([self.edge], known, _ON_FLOATS)[0])

    def known(self, xs: list[Number], parameters: tuple[Any, ...]) -> dict[str, Any]:
        """What the variables of its formulas stand for, `out` last."""
        length = len(xs) // len(self.inputs)
        rows = {name: list(xs[i * length : (i + 1) * length]) for i, name in enumerate(self.inputs)}
        return rows | dict(zip((*self.names[len(self.inputs) :], "out"), parameters, strict=False))


def in_rows(slopes: Any) -> tuple[Number, ...]:
    """What `local_grads` gives, as one row for each input."""
    return slopes if isinstance(slopes, tuple) else (slopes,)


# ---------------------------------------------------------------- parts the rows share


def _exponentials(xs: Row) -> tuple[Number, ...]:
    shifted = shift(xs)
    exponentials = exp(xs - shifted)
    return shifted, total(exponentials), exponentials


def _softmax(xs: Row) -> Number:
    return div(exp(xs), total(exp(xs)))


def _mean_of(xs: Row) -> Number:
    return div(total(xs), count(xs))


def _mean_square(xs: Row) -> Number:
    return _mean_of(power(xs, 2.0))


def _scale(xs: Row, eps: Number) -> Number:
    return pow(_mean_of(xs * xs) + eps, -0.5)


def _centred(xs: Row) -> Row:
    return xs - _mean_of(xs)


def _mean_and_variance(xs: Row) -> tuple[Number, Number]:
    return named(r"\mu", _mean_of(xs)), named(r"{\sigma}^{2}", _mean_square(_centred(xs)))


def _shown_layernorm(xs: Row, i: Number, eps: Number) -> Number:
    mean, variance = _mean_and_variance(xs)
    return div(at(xs, i) - mean, sqrt(variance + eps))


def _shown_layernorm_slopes(xs: Row, i: Number, eps: Number, out: Number) -> Row:
    mean, variance = _mean_and_variance(xs)
    hot_less_mean = hot(xs, i) - div(1.0, count(xs))
    return div(hot_less_mean, sqrt(variance + eps)) - div(out * (xs - mean), count(xs) * (variance + eps))


def _norm(xs: Row) -> Number:
    # scaled by the largest entry, so that squares neither overflow nor vanish
    scale = shift(absolute(xs))
    ratios = div(xs, where(scale > 0.0, scale, 1.0))
    return where(scale > 0.0, sqrt(total(ratios * ratios)) * scale, total(absolute(xs)))


# ---------------------------------------------------------------- the rows

_ROWS = (
    Composite(
        "sum",
        glyph="Σ",
        padding="zero",
        forward=total,
        local_grads=lambda xs, out: 1.0,
        doc="""The sum as one node.

>>> from gradwalk import Value
>>> x = Value(2.0)
>>> sum([x, x, 3.0])
Value(data=7.0, grad=0.0)""",
    ),
    Composite(
        "mean",
        forward=_mean_of,
        local_grads=lambda xs, out: div(1.0, count(xs)),
        doc="""The mean as one node.

>>> mean([1.0, 2.0, 6.0])
3.0""",
    ),
    Composite(
        "dot",
        padding="zero",
        inputs=("xs", "ys"),
        forward=lambda xs, ys: total(xs * ys),
        local_grads=lambda xs, ys, out: (ys, xs),
        doc="""The sum of products as one node.

>>> dot([1.0, 2.0], [3.0, 4.0])
11.0""",
    ),
    Composite(
        "norm",
        forward=_norm,
        local_grads=lambda xs, out: where(equal(out, 0.0), 0.0, div(xs, out)),  # at the origin: 0
        edges=lambda xs: total(absolute(xs)),
        shown=lambda xs: sqrt(total(power(xs, 2.0))),
        shown_local_grads=lambda xs, out: div(xs, out),
        doc="""The Euclidean length as one node, without overflow on the way.

>>> norm([3.0, 4.0])
5.0""",
    ),
    Composite(
        "logsumexp",
        keeps=_exponentials,
        forward=lambda xs, shifted, sum, exponentials: log(sum) + shifted,
        local_grads=lambda xs, shifted, sum, exponentials, out: div(exponentials, sum),
        shown=lambda xs: log(total(exp(xs))),
        shown_local_grads=lambda xs, out: _softmax(xs),
        doc="""The logarithm of the sum of exponentials as one node, without overflow on the way.

>>> round(logsumexp([1000.0, 1000.0]), 9)
1000.693147181""",
    ),
    Composite(
        "softmax",
        padding="absent",
        checked=True,  # the function may have written it out, of operations that are
        per_entry=True,
        keeps=_exponentials,
        forward=lambda xs, i, shifted, sum, exponentials: div(at(exponentials, i), sum),
        local_grads=lambda xs, i, shifted, sum, exponentials, out: out * (hot(xs, i) - div(exponentials, sum)),
        shown=lambda xs, i: div(exp(at(xs, i)), total(exp(xs))),
        shown_local_grads=lambda xs, i, out: out * (hot(xs, i) - _softmax(xs)),
        doc="""Exponentials divided by their sum: one node per output.

>>> softmax([1000.0, 0.0])
[1.0, 0.0]""",
    ),
    Composite(
        "log_softmax",
        padding="absent",
        per_entry=True,
        keeps=_exponentials,
        forward=lambda xs, i, shifted, sum, exponentials: (at(xs, i) - shifted) - log(sum),
        local_grads=lambda xs, i, shifted, sum, exponentials, out: hot(xs, i) - div(exponentials, sum),
        shown=lambda xs, i: at(xs, i) - log(total(exp(xs))),
        shown_local_grads=lambda xs, i, out: hot(xs, i) - _softmax(xs),
        doc="""Logarithms of the softmax, exact where it underflows: one node per output.

>>> log_softmax([1000.0, 0.0])
[0.0, -1000.0]""",
    ),
    Composite(
        "cross_entropy",
        inputs=("logits",),
        target="target",
        keeps=_exponentials,
        forward=lambda xs, i, shifted, sum, exponentials: log(sum) - (at(xs, i) - shifted),
        local_grads=lambda xs, i, shifted, sum, exponentials, out: div(exponentials, sum) - hot(xs, i),
        shown=lambda xs, i: log(total(exp(xs))) - at(xs, i),
        shown_local_grads=lambda xs, i, out: _softmax(xs) - hot(xs, i),
        doc="""Minus the logarithm of the probability that softmax gives to entry `target`, as one node.

>>> cross_entropy([1000.0, 0.0], 1)
1000.0""",
    ),
    Composite(
        "rmsnorm",
        per_entry=True,
        parameters=("eps",),
        defaults=(1e-5,),
        keeps=lambda xs, eps: (_scale(xs, eps),),
        forward=lambda xs, i, eps, scale: at(xs, i) * scale,
        local_grads=lambda xs, i, eps, scale, out: hot(xs, i, scale) - div(out * scale * scale, count(xs)) * xs,
        shown=lambda xs, i, eps: div(at(xs, i), sqrt(_mean_square(xs) + eps)),
        shown_local_grads=lambda xs, i, eps, out: (
            div(hot(xs, i), sqrt(_mean_square(xs) + eps)) - div(out * xs, count(xs) * (_mean_square(xs) + eps))
        ),
        doc="""xs divided by the root of their mean square: one node per output.

>>> rmsnorm([3.0, -3.0], eps=0.0)
[1.0, -1.0]""",
    ),
    Composite(
        "layernorm",
        per_entry=True,
        parameters=("eps",),
        defaults=(1e-5,),
        keeps=lambda xs, eps: (_scale(centred := _centred(xs), eps), centred),
        forward=lambda xs, i, eps, scale, centred: at(centred, i) * scale,
        local_grads=lambda xs, i, eps, scale, centred, out: (
            scale * ((hot(xs, i) - div(1.0, count(xs))) - out * (centred * scale) * div(1.0, count(xs)))
        ),
        shown=_shown_layernorm,
        shown_local_grads=_shown_layernorm_slopes,
        doc="""xs less their mean, divided by the root of their variance: one node per output.

>>> layernorm([1.0, 3.0], eps=0.0)
[-1.0, 1.0]""",
    ),
    Composite(
        "largest",
        glyph="max",
        padding="first",
        chooses=True,
        called="maximum",
        keeps=lambda xs: (first_largest(xs),),
        forward=lambda xs, place: at(xs, place),
        local_grads=lambda xs, place, out: hot(xs, place),  # a tie: the first
        doc="The largest; of equals, the first gets the gradient.",
    ),
    Composite(
        "smallest",
        glyph="min",
        padding="first",
        chooses=True,
        called="minimum",
        keeps=lambda xs: (first_smallest(xs),),
        forward=lambda xs, place: at(xs, place),
        local_grads=lambda xs, place, out: hot(xs, place),  # a tie: the first
        doc="The smallest; of equals, the first gets the gradient.",
    ),
    Composite(  # xs holds the one entry that was taken
        "take",
        inputs=("rows",),
        target="index",
        forward=lambda xs, i: at(xs, 0.0),
        local_grads=lambda xs, i, out: 1.0,
        doc="""`rows[index]` as recorded nodes: one node for a Value, a list of nodes for a row of them.

>>> take([[1.0, 2.0], [3.0, 4.0]], 1)
[3.0, 4.0]""",
        shown=lambda xs, i: at(xs, i),
    ),
)

COMPOSITES: dict[str, Composite] = {row.name: row for row in _ROWS}
