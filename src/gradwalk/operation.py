"""What a row of the table says of its operation: the columns of `ops.py`, where the rows are, and parts rows share."""

from __future__ import annotations

import functools
import keyword
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from inspect import Parameter, Signature

from gradwalk.formula import (
    FUNCTIONS,
    Number,
    absolute,
    div,
    equal,
    floor,
    fmod,
    heads,
    is_exact,
    signed_heads,
    variable,
    where,
)

Sample = float | tuple[float, ...]


def everywhere(*_: Number) -> bool:
    return True


def nowhere(*_: Number) -> float:
    """No jump, kink or border, however far one looks."""
    return math.inf


def never(*_: Number) -> bool:
    return False


def always(*_: Number) -> bool:
    return True


# what generated code has for itself where the names of a row stand
_KEYWORDS = """arguments auto case catch char const debugger default delete do double enum eval export extends extern
    float function goto implements inline instanceof int interface let long new null package private protected public
    register restrict short signed sizeof static struct super switch this throw typedef typeof union unsigned var void
    volatile"""
_TAKEN = {"out", "local_grads", "self", "fabs", *FUNCTIONS, *keyword.kwlist, *_KEYWORDS.split()}


def refuse_taken(row: str, names: Iterable[str], *taken: str) -> None:
    """A row's names are those of variables in C, JavaScript and Python, beside what these have for themselves."""
    for name in names:
        if name in _TAKEN or name in taken or not re.fullmatch(r"(?!t\d+$)[a-z][a-z0-9_]*", name):
            raise TypeError(f"{row}: expected a name that generated code has no use for, got {name!r}")


@dataclass(frozen=True)
class Op:
    """One operation. `forward` takes the inputs, then the parameters; `local_grads` takes `out` as well.

    `inputs` become children; `parameters` are plain numbers fixed when the node is made. Outside its `domain` an
    operation raises, saying what it `expected`; so does a finite input with an infinite result if `overflows`.
    `aliases` are the names of the method that NumPy looks for on the objects in an array; for an `operator` there is
    no function or method of its name, because Python has a sign for it.

    `jumps` says how far the inputs are from where the result changes at once, `kinks` from where a local gradient does,
    `borders` from where the domain ends or a local gradient is infinite; each is 0 there, and moves no faster than the
    inputs that it mentions. `steep`, asked of the parameters, says whether a local gradient may be infinite where the
    result is finite. One that `chooses` hands nothing, not even nan, to an input whose local gradient is 0: that has no
    part in the result. What is computed is not always what to show people: `shown` and `shown_local_grads` are the same
    numbers, written as in a textbook; `glyph` is what stands for it on a card, if not its name; `called` is the name
    that people know it by, if it is not its own.
    """

    name: str
    forward: Callable[..., Number]
    local_grads: Callable[..., tuple[Number, ...]]
    doc: str
    samples: tuple[Sample, ...] = (-20.0, -0.5, -0.0, 0.5, 20.0)
    inputs: tuple[str, ...] = ("x",)
    parameters: tuple[str, ...] = ()
    defaults: tuple[float, ...] = ()
    symbol: str = ""
    glyph: str = ""
    called: str = ""
    aliases: tuple[str, ...] = ()
    domain: Callable[..., Number] = everywhere
    expected: str = ""
    overflows: bool = False
    operator: bool = False
    jumps: Callable[..., Number] = nowhere
    kinks: Callable[..., Number] = nowhere
    borders: Callable[..., Number] = nowhere
    steep: Callable[..., Number] = never
    chooses: bool = False
    shown: Callable[..., Number] | None = None
    shown_local_grads: Callable[..., tuple[Number, ...]] | None = None

    def __post_init__(self) -> None:
        if len(self.inputs) > 3 or len(self.parameters) > 2 or len(self.names) > 3:
            raise TypeError(f"{self.name}: expected at most three names, two of them parameters, got {self.names}")
        refuse_taken(self.name, self.names)

    @property
    def names(self) -> tuple[str, ...]:
        return self.inputs + self.parameters

    @property
    def signature(self) -> Signature:
        """How the function of its name is called."""
        defaults = (Parameter.empty,) * (len(self.names) - len(self.defaults)) + self.defaults
        named = zip(self.names, defaults, strict=True)
        return Signature([Parameter(name, Parameter.POSITIONAL_ONLY, default=default) for name, default in named])

    @property
    def checked(self) -> bool:
        """Whether it can be refused an input, or overflow: what comes out has to be finite."""
        return self.overflows or self.domain is not everywhere

    @property
    def stops(self) -> bool:
        """Whether it hands nothing to any input, whatever comes to it."""
        rows = self.local_grads(*map(variable, self.names), variable("out"))
        return self.chooses and all(isinstance(row, float) and row == 0.0 for row in rows)

    @property
    def exact(self) -> bool:
        """Whether the forward rounds as the eager engines do, whoever computes it and however many at a time."""
        return is_exact(self.forward(*map(variable, self.names)), self.names)

    @property
    def reads(self) -> list[list[str]]:
        """Of each local gradient, the inputs that it looks at."""
        rows = self.local_grads(*map(variable, self.names), variable("out"))
        return [self._inputs_among(heads(row)) for row in rows]

    def edge(self, *names: Number) -> Number:
        """How far the inputs are from the next jump, kink or border."""
        declared = [each for each in (self.jumps, self.kinks, self.borders) if each is not nowhere] or [nowhere]
        return functools.reduce(lambda x, y: where(x < y, x, y), [each(*names) for each in declared])

    @property
    def edge_inputs(self) -> list[str]:
        """The inputs that decide on which side of an edge it is; none where there is no edge."""
        return self._inputs_among(heads(self.edge(*map(variable, self.names))))

    @property
    def signed_inputs(self) -> list[str]:
        """The inputs of which it sees the sign, even of a zero."""
        return self._inputs_among(signed_heads(self.forward(*map(variable, self.names))))

    def _inputs_among(self, found: set[str]) -> list[str]:  # in their order, which is not that of a set in each process
        return [name for name in self.inputs if name in found]

    @property
    def called_by(self) -> str:
        """The name that people know it by."""
        return self.called or self.name

    def spelled(self, parameters: tuple[float, ...]) -> str:
        """What a node shows as its `_op`: `*`, `ReLU`, and `**3` for a power by a number."""
        return f"**{parameters[0]:.17g}" if self.name == "pow_number" else self.symbol or self.name


# ---------------------------------------------------------------- parts that rows share


def finite(x: Number) -> Number:
    return absolute(x) < math.inf


def sign(x: Number) -> Number:
    return where(x > 0.0, 1.0, where(x < 0.0, -1.0, 0.0))


def nearer(x: Number, y: Number) -> Number:
    return where(x < y, x, y)


def from_whole(x: Number) -> Number:
    return absolute(x - floor(x + 0.5))


def from_one(x: Number) -> Number:
    return absolute(absolute(x) - 1.0)


def from_multiple(x: Number, y: Number) -> Number:
    """From the next multiple of y other than 0; the further out it is, the faster it moves with y."""
    rest = absolute(fmod(x, y))
    beyond = div(nearer(rest, absolute(y) - rest), 1.0 + absolute(div(x, y)))
    return where(absolute(x) < absolute(y), absolute(y) - absolute(x), beyond)


def has_power(x: Number, y: Number) -> Number:
    """Whether floats have x to the power y: where one of them is infinite, more than where none is."""
    of_zero = (y >= 0.0) | equal(y, -math.inf)
    of_negative = equal(y, floor(y)) | equal(x, -math.inf)
    return (x > 0.0) | (equal(x, 0.0) & of_zero) | ((x < 0.0) & of_negative)


def signed(y: Number) -> Number:
    """y, but 1 for a nan, whose sign bit is anybody's guess."""
    return where(equal(y, y), y, 1.0)
