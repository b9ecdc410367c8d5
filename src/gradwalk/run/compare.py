"""Do a script's class and its stand-in do the same? Tried out: numbers to the bit, ints, the graph, its words."""

from __future__ import annotations

import io
import math
import operator
import random
import sys
from collections.abc import Callable, Iterator
from functools import partial
from types import FunctionType
from typing import Any

from gradwalk.run.shape import Shape

ARITHMETIC = {f"__{side}{name}__" for side in ("", "r") for name in ("add", "sub", "mul", "truediv", "pow")}
OPERATORS = ARITHMETIC | {"__neg__", "__pos__", "__abs__", "__lt__", "__le__", "__gt__", "__ge__"}
SIGNS = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "pow": "**"}

_random = random.Random(0)
# where either side may raise or go to infinity: edges of domains, an overflow, and what is no number
EDGES = (0.0, -1.0, 1.0, 0, 2, -3, 800.0, math.inf, -math.inf, math.nan)
UNARY = (*EDGES, *(_random.uniform(-4.0, 4.0) for _ in range(16)), *(_random.uniform(0.01, 30.0) for _ in range(8)))
BINARY = (
    *((_random.uniform(-3.0, 3.0), _random.uniform(-3.0, 3.0)) for _ in range(6)),
    *((_random.uniform(0.1, 3.0), exponent) for exponent in (-2.5, -2, -1, -0.5, 0, 0.5, 1, 2, 3, 2.5, 10)),
    (2, 3), (3, -1), (-2, 2), (2.5, 3), (3, 2.5), (-1.5, 3), (-2.0, 0.5), (1.0, 0.0), (0.0, -1), (0, 0),
    *((0.0, exponent) for exponent in (0.5, 1, 1.0, 2.0, 3)),
    (0.0, 0), (math.inf, 0.0), (math.inf, 2), (-math.inf, math.inf), (math.nan, 1.0), (1.0, math.nan), (1e200, 1e200),
)  # fmt: skip

Outcome = Any  # nested tuples and lists, equal for two classes that do the same
Sample = tuple[tuple[Any, ...], str]
Samples = list[Sample]
Bind = Callable[[type], None]  # says which of the two classes the script's methods find under its name


class Raised(tuple[str]):
    """The outcome of what raises: the kind of exception counts, its words do not."""

    words = ""


class hushed:  # noqa: N801  (it is written as a function)
    """What is printed meanwhile; contextlib's way takes longer than what it is around."""

    def __enter__(self) -> io.StringIO:
        self.streams = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = printed, _ = io.StringIO(), io.StringIO()
        return printed

    def __exit__(self, *_: object) -> None:
        sys.stdout, sys.stderr = self.streams


def attempt(function: Callable[[], Any]) -> Any:
    """What a function returns; an exception is returned as Raised."""
    try:
        return function()
    except Exception as error:
        raised = Raised((kind_of(error),))
        raised.words = f"raises {type(error).__name__}: {error}{line_of(error)}"
        return raised


def quietly(function: Callable[[], Any]) -> tuple[Any, str]:
    """What a function returns, or Raised, and what it prints."""
    with hushed() as printed:
        result = attempt(function)
    return result, printed.getvalue()


def kind_of(error: Exception) -> str:
    """gradwalk raises kinds of its own, each a kind of Python's."""
    for kind in (NameError, ZeroDivisionError, OverflowError, ValueError, TypeError):
        if isinstance(error, kind):
            return kind.__name__
    return type(error).__name__


def line_of(error: Exception) -> str:
    """Where in the script an exception was raised."""
    traceback = error.__traceback__
    while traceback and traceback.tb_next:
        traceback = traceback.tb_next
    inside = traceback and traceback.tb_frame.f_code.co_filename == __file__
    return f" (line {traceback.tb_lineno})" if traceback and not inside else ""


def number(x: Any) -> Any:
    """A number to the bit, and whether it is an int; all nans are one."""
    if isinstance(x, float):  # NumPy's as well, which becomes a plain one
        return ("float", "nan" if math.isnan(x) else x.hex())
    return (type(x).__name__, str(x))


# ---------------------------------------------------------------- one operation


class Side:
    """One of the two classes, and how its objects are read."""

    def __init__(self, cls: Any, shape: Shape) -> None:
        self.cls, self.shape = cls, shape

    def picture(self, node: Any, operands: list[Any]) -> Outcome:
        """What a node shows and what it was computed from, down to the operands."""
        for i, operand in enumerate(operands):
            if node is operand:
                return i
        if not isinstance(node, self.cls):
            return ("not a node", type(node).__name__, str(node))
        shape = self.shape
        below = [self.picture(child, operands) for child in shape.children_of(node)]
        if shape.has_sets():
            below.sort(key=repr)
        words = [getattr(node, name) for name in (shape.op, shape.label, *shape.extra, *shape.given) if name]
        return (number(getattr(node, shape.data)), number(getattr(node, shape.grad)), str(words), *below)

    def operands(self, numbers: tuple[Any, ...], kind: str, **given: Any) -> tuple[list[Any], list[Any]]:
        """The objects that take part, with labels where the class has labels; and what a method is given."""
        labels = [name for name, role in self.shape.parameters.items() if role == "label"]
        objects = [
            self.cls(x, **dict.fromkeys(labels, f"x{i}"), **given)
            for i, x in enumerate(numbers[: len(numbers) if kind == "values" else 1])
        ]
        rest = {"values": objects[1:], "number": list(numbers[1:]), "itself": objects * (len(numbers) - 1)}[kind]
        return objects, rest

    def outcome(self, name: str, numbers: tuple[Any, ...], kind: str) -> Outcome:
        """A picture of what an operation gives, what it prints, and the operands' gradients after each of passes."""
        operands, rest = self.operands(numbers, kind)
        with hushed() as printed:
            out = attempt(lambda: getattr(operands[0], name)(*rest))
            said = printed.getvalue()  # what backward() prints is compared once, in `passes`
            if isinstance(out, Raised):
                return out
            if out is NotImplemented:
                return Raised(("TypeError",))
            if not isinstance(out, self.cls):
                return "plain", said, (type(out).__name__, str(out))
            if isinstance(getattr(out, self.shape.data), complex | self.cls):
                return Raised(("no number",))  # a negative number's root; a power of which nobody took the data
            found = [self.picture(out, operands), said]
            for _ in range(2):  # what is assigned, where it should be added, shows in the second pass
                passed = attempt(out.backward)
                if isinstance(passed, Raised):
                    return passed
                found.append([number(getattr(operand, self.shape.grad)) for operand in operands])
            by = -2 if name.endswith(("elu", "abs__")) else 2  # of the others, not all take what is below 0
            for operand in operands:  # and whether gradients follow from numbers as they are by now
                setattr(operand, self.shape.data, by * getattr(operand, self.shape.data))
            if not isinstance(attempt(out.backward), Raised):
                found.append([number(getattr(operand, self.shape.grad)) for operand in operands])
        return found

    def outcomes(self, name: str, samples: Samples, bind: Bind) -> Iterator[Outcome]:
        bind(self.cls)
        return (self.outcome(name, numbers, kind) for numbers, kind in samples)


def samples_for(method: Any, name: str) -> Samples:
    arity = method.__code__.co_argcount - len(method.__defaults__ or ()) if isinstance(method, FunctionType) else 0
    if arity == 1:
        return [((x,), "values") for x in UNARY]
    # Python asks a reflected operator only where the left operand is no object of the class
    kinds = ("number",) if name in ARITHMETIC and name.startswith("__r") else ("values", "number", "itself")
    pairs = {"values": BINARY, "number": BINARY, "itself": BINARY[::3]}
    return [(pair, kind) for kind in kinds for pair in pairs[kind]] if arity == 2 else []


class Theirs(Side):
    """The script's class, which does not change: what was tried once is known."""

    def __init__(self, cls: Any, shape: Shape) -> None:
        super().__init__(cls, shape)
        self.known: dict[str, list[Outcome]] = {}

    def outcomes(self, name: str, samples: Samples, bind: Bind) -> Iterator[Outcome]:
        if name not in self.known:
            self.known[name] = list(super().outcomes(name, samples, bind))
        return iter(self.known[name])


def difference(theirs: Theirs, ours: Side, name: str, bind: Bind, passes: int = 3) -> Sample | None:
    """The first operands on which two classes do something else, None if there are none.

    Operands that the script's method refuses do not count: a stand-in may take more.
    """
    method = vars(theirs.cls)[name]
    if not isinstance(method, FunctionType) or (
        name not in OPERATORS and (method.__defaults__ or method.__kwdefaults__)
    ):
        return ((), "")  # what may be left out may be given by its name, which ours does not know
    samples = samples_for(method, name)
    compared = False
    found_here, found_there = theirs.outcomes(name, samples, bind), ours.outcomes(name, samples, bind)
    for sample, found, other in zip(samples, found_here, found_there, strict=True):
        if isinstance(found, Raised) and found != ("NameError",):
            continue
        compared = True
        # a NameError: it needs something that is not there yet
        count = min(2 + passes, len(found))  # what the script refuses in the third pass does not count
        if found[:count] != other[:count] or isinstance(found, Raised):
            return sample
    return None if compared else ((), "")


def failing(theirs: Theirs, ours: Side, name: str, bind: Bind) -> Sample | None:
    """The first operands on which a method of the script does something else on the stand-in than on its class."""
    samples = samples_for(vars(theirs.cls)[name], name)
    pairs = zip(theirs.outcomes(name, samples, bind), ours.outcomes(name, samples, bind), strict=True)
    same = alike if theirs.shape.has_sets() else operator.eq
    for sample, (found, other) in zip(samples, pairs, strict=True):
        if not isinstance(found, Raised) and not same(found, other):
            return sample
    return None


def alike(found: Outcome, other: Outcome) -> bool:
    """Whether two outcomes of one method are equal but for the order of sums, which in a set is another every time."""
    if not isinstance(found, tuple | list) or not isinstance(other, tuple | list):
        return bool(found == other)
    if found[:1] == other[:1] == ("float",):
        return found == other or (
            "nan" not in (found[1], other[1]) and close(*map(float.fromhex, (found[1], other[1])))
        )
    return len(found) == len(other) and all(map(alike, found, other))


def explained(theirs: Side, ours: Side, name: str, bind: Bind, numbers: tuple[Any, ...], kind: str) -> str:
    """Where two classes differ, in words: the operands, both results, and what finite differences say."""
    operands = list(numbers)
    if not operands:
        return "it takes other operands"
    if kind == "itself":
        operands = operands[:1] * 2
    shown = expression(name, operands)
    bind(ours.cls)
    our_value = measured(ours, name, numbers, kind)
    bind(theirs.cls)
    values = [measured(theirs, name, numbers, kind), our_value]
    if isinstance(values[0], str) or isinstance(values[1], str):
        told = [value if isinstance(value, str) else f"is {value[0]}" for value in values]
        return f"{shown} {told[0]}, gradwalk's {told[1]}"
    (data, grads), (our_data, our_grads) = values
    if not close(data, our_data):
        return f"{shown} is {data}, gradwalk's {our_data}"
    for i, (grad, our_grad) in enumerate(zip(grads, our_grads, strict=True)):
        if not close(grad, our_grad):
            finite = finite_difference(theirs, name, numbers, kind, i)
            which = f" by operand {i + 1}" if len(grads) > 1 else ""
            for flag in flags_of(theirs.shape):
                told = measured(theirs, name, numbers, kind, **{flag: True})
                if not isinstance(told, str) and close(told[1][i], our_grad):
                    return f"{shown} has the gradient {grad}{which} unless {flag} is True, gradwalk's always {our_grad}"
            return f"{shown} has the gradient {grad}{which}, gradwalk's {our_grad}, finite differences say {finite:.6g}"
    words, our_words = seen(theirs, name, numbers, kind, bind), seen(ours, name, numbers, kind, bind)
    bind(theirs.cls)
    for attribute, word in words.items():
        if word != our_words.get(attribute):
            return f"{shown} shows {word!r} as its {attribute}, gradwalk's {our_words.get(attribute)!r}"
    return ""


def flags_of(shape: Shape) -> list[str]:
    return [name for name in shape.parameters if shape.signature.parameters[name].default is False]


def seen(side: Side, name: str, numbers: tuple[Any, ...], kind: str, bind: Bind) -> dict[str, Any]:
    """What an operation's result says of itself besides its number."""
    bind(side.cls)
    operands, rest = side.operands(numbers, kind)
    out, _ = quietly(lambda: getattr(operands[0], name)(*rest))
    shape = side.shape
    words = {name: getattr(out, name, None) for name in (shape.op, shape.label, *shape.extra, *shape.given) if name}
    return words | {name: sorted(type(each).__name__ for each in getattr(out, name, ())) for name in shape.children}


def expression(name: str, operands: list[Any]) -> str:
    plain = name.strip("_")
    if name in ARITHMETIC:
        sign = SIGNS.get(plain) or SIGNS[plain[1:]]
        first, second = operands if plain in SIGNS else reversed(operands)
        return f"{first:.4g} {sign} {second:.4g}"
    return f"{plain}({', '.join(f'{x:.4g}' for x in operands)})"


def measured(side: Side, name: str, numbers: tuple[Any, ...], kind: str, **given: Any) -> Any:
    """Data and gradients as floats, or a text on what was raised."""
    operands, rest = side.operands(numbers, kind, **given)

    def operation() -> Any:
        out = getattr(operands[0], name)(*rest)
        if not isinstance(out, side.cls):
            return out, []
        out.backward()
        return getattr(out, side.shape.data), [getattr(operand, side.shape.grad) for operand in operands]

    result, _ = quietly(operation)
    return result.words if isinstance(result, Raised) else result


def finite_difference(side: Side, name: str, numbers: tuple[Any, ...], kind: str, which: int) -> float:
    step = 1e-6
    ends = []
    for sign in (1, -1):
        moved = [x + sign * step * (i == which) for i, x in enumerate(numbers)]
        result = measured(side, name, tuple(moved), kind)
        ends.append(math.nan if isinstance(result, str) else result[0])
    return float(ends[0] - ends[1]) / (2 * step)


def close(x: Any, y: Any) -> bool:
    try:
        return bool(x == y or (x != x and y != y) or math.isclose(x, y, rel_tol=1e-9, abs_tol=1e-12))
    except TypeError:
        return False


# ---------------------------------------------------------------- backward()


START = (2.5, -0.75, 3)
ALIKE = (1.5, 1.5, 1.5)  # to a class whose objects are equal where their numbers are, they are one


def passes(side: Side) -> Outcome:
    """Gradients and what is printed: passes over a graph with shared nodes, one over a node made by hand."""
    in_order = not side.shape.has_sets()
    # sums of these are exact, so that the order of a set does not show; where there is an order, it is compared too
    starts = [START, ALIKE, *[(0.1, -0.7, 1.3)] * in_order]
    found = [*(quietly(partial(shared, side, *start)) for start in starts), quietly(partial(by_hand, side))]
    # nor have nodes that are printed an order then
    return [(result, printed if in_order else sorted(map(sorted, printed.split("\n")))) for result, printed in found]


GRAPH = "d = a*b; e = d + a; f = e*d + (c + 2)*e; g = f + f*2"


def graph(a: Any, b: Any, c: Any, two: Any) -> list[Any]:
    """The nodes of GRAPH: no plain numbers, which not every class takes."""
    d = a * b
    e = d + a
    f = e * d + (c + two) * e
    return [a, b, c, two, d, e, f, f + f * two]


def shared(side: Side, *start: Any) -> Outcome:
    nodes = graph(*(side.cls(x) for x in (*start, 2)))
    *_, d, e, _, g = nodes
    g.backward()
    once = [number(getattr(node, side.shape.grad)) for node in nodes]
    g.backward()
    (d + e).backward()
    return once, [number(getattr(node, name)) for node in nodes for name in (side.shape.grad, side.shape.data)]


def by_hand(side: Side) -> Outcome:
    shape, a = side.shape, side.cls(1.5)
    given = {"children": (a,), "local_grads": (0.5,), "op": "by hand", "label": "its name"}
    node = side.cls(2.0, **{name: given[role] for name, role in shape.parameters.items() if role in given})
    if shape.backward:

        def hand_on() -> None:
            setattr(a, shape.grad, getattr(a, shape.grad) + 0.5 * getattr(node, shape.grad))

        setattr(node, shape.backward, hand_on)
    out = node * side.cls(3.0)
    out.backward()
    words = [getattr(node, name) for name in (shape.op, shape.label) if name]
    return [number(getattr(v, shape.grad)) for v in (a, node, out)], words


def unlike(expected: Outcome, native: Outcome, found: Outcome) -> str:
    """In words, what backward() does: to gradients, as against the native pass, or on gradwalk's nodes."""
    for (result, printed), (our_result, our_printed) in zip(expected[:-1], found[:-1], strict=True):
        if printed != our_printed:
            return "prints something else on gradwalk's nodes"
        if isinstance(our_result, Raised):
            return f"{our_result.words} on gradwalk's nodes"
        if result != our_result:
            return other_gradient(expected[0][0], native[0][0]) or "gives other gradients on gradwalk's nodes"
    return "treats a node made by hand in another way"


def other_gradient(theirs: Outcome, ours: Outcome) -> str:
    for i, (their, our) in enumerate(zip(theirs[0][:3], ours[0][:3], strict=True)):
        if their != our:
            moved = [[x + step * (j == i) for j, x in enumerate(START)] for step in (1e-6, -1e-6)]
            above, below = (graph(a, b, c, 2)[-1] for a, b, c in moved)
            at = ", ".join(f"{name} = {x}" for name, x in zip("abc", START, strict=True))
            return (
                f"gives {'abc'[i]} the gradient {shown(their)} in {GRAPH} at {at}, gradwalk's {shown(our)}, "
                f"finite differences say {(above - below) / 2e-6:.6g}"
            )
    return ""


def shown(counted: tuple[str, str]) -> str:
    """A number as `number` took it down."""
    kind, text = counted
    return str(float.fromhex(text)) if kind == "float" and text != "nan" else text
