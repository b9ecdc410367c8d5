"""The language of `formula.py` over rows of numbers: what is done to a row is done to each entry.

A formula over rows is written down once, as symbols. It is then evaluated on lists of floats or of Values (here) and
on arrays (`compiler/formulas.py`), printed as loops in C and JavaScript (here), and as LaTeX.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradwalk.formula import FUNCTIONS, Number, Raw, Symbol
from gradwalk.printing import Target, expression, latex

Row = Any  # a symbol of a row, a list, or an array


class RowVariable(Symbol):
    """A symbol that stands for a row of numbers."""

    __slots__ = ()


def total(xs: Row) -> Symbol:
    """The sum, from left to right, starting with the first."""
    return Symbol("total", xs)


def shift(xs: Row) -> Symbol:
    """The largest, but 0 where it is not finite; subtracted before exp, it cannot overflow. No gradient goes there."""
    return Symbol("shift", xs)


def first_largest(xs: Row) -> Symbol:
    """The place of the largest: the first of equals, but a nan before all else."""
    return Symbol("first_largest", xs)


def first_smallest(xs: Row) -> Symbol:
    """The place of the smallest: the first of equals, but a nan before all else."""
    return Symbol("first_smallest", xs)


def at(xs: Row, place: Number) -> Symbol:
    """The entry at that place."""
    return Symbol("at", xs, place)


def hot(xs: Row, place: Number, height: Number = 1.0) -> Symbol:
    """A row as long as xs: 1 (or another height) at that place, 0 elsewhere."""
    return Symbol("hot", xs, place, height)


def count(xs: Row) -> Symbol:
    """How many entries there are."""
    return Symbol("count", xs)


def named(name: str, part: Number) -> Symbol:
    """A part that textbooks have a letter for: it is printed as that LaTeX."""
    return Symbol("named", Raw(name), part)


_ONE_NUMBER = {"total", "shift", "first_largest", "first_smallest", "at", "count"}


def is_row(part: Number) -> bool:
    """Whether a formula stands for a row, not for one number."""
    if not isinstance(part, Symbol) or isinstance(part, RowVariable):
        return isinstance(part, RowVariable)
    return part.head not in _ONE_NUMBER and any(is_row(argument) for argument in part.arguments)


# ---------------------------------------------------------------- on lists


def plain(x: Number) -> float:
    """The number itself, of which no gradient is asked."""
    return x if isinstance(x, float) else float(x.data)


class Lists:
    """What the functions of this file mean for lists of floats or of Values."""

    def total(self, xs: list[Number]) -> Number:
        first, *rest = xs
        for x in rest:
            first = first + x
        return first

    def shift(self, xs: list[Number]) -> Number:
        return finite_or_0(xs[self.first_largest(xs)])

    def first_largest(self, xs: list[Number]) -> int:
        return _first(xs, lambda x, y: (x, y))

    def first_smallest(self, xs: list[Number]) -> int:
        return _first(xs, lambda x, y: (y, x))

    def at(self, xs: list[Number], place: float) -> Number:
        return xs[int(place)]

    def hot(self, xs: list[Number], place: Number, height: Number) -> list[Number]:
        return [height if j == place else 0.0 for j in range(len(xs))]

    def count(self, xs: list[Number]) -> float:
        return float(len(xs))


def finite_or_0(x: Number) -> Number:
    return x if math.isfinite(plain(x)) else 0.0


def _first(xs: list[Number], ordered: Callable[[Number, Number], tuple[Number, Number]]) -> int:
    """Values are compared as Values: a compiled function guards the choice."""
    best = 0
    for i in range(1, len(xs)):
        high, low = ordered(xs[i], xs[best])
        if high <= low:
            continue
        champion = plain(xs[best])
        if high > low or champion == champion:
            best = i
    return best


def evaluated(formulas: Sequence[Number], known: Mapping[str, Any], lists: Lists) -> list[Any]:
    """The formulas where their variables stand for these numbers and lists; what they share is computed once."""
    values: dict[int, Any] = {}

    def value(part: Number) -> Any:
        if not isinstance(part, Symbol):
            return part
        if part.head == "named":
            return value(part.arguments[1])
        if id(part) not in values:
            arguments = [value(argument) for argument in part.arguments]
            values[id(part)] = _applied(part.head, arguments, lists) if arguments else known[part.head]
        return values[id(part)]

    return [value(formula) for formula in formulas]


def _applied(head: str, arguments: list[Any], lists: Lists) -> Any:
    if hasattr(lists, head):
        return getattr(lists, head)(*arguments)
    lengths = [len(argument) for argument in arguments if isinstance(argument, list)]
    if not lengths:
        return FUNCTIONS[head](*arguments)
    rows = [argument if isinstance(argument, list) else [argument] * lengths[0] for argument in arguments]
    return list(map(FUNCTIONS[head], *rows))


# ---------------------------------------------------------------- as loops


@dataclass(frozen=True)
class Spelling:
    """How a language like C spells what loops need, beside its expressions."""

    target: Target
    number: str  # how a number is declared, and one that never changes
    constant: str
    index: str
    count: str
    as_index: str


class Loops:
    """Formulas over rows of n numbers as statements; `names` spells what has a name already, by its id."""

    def __init__(self, spelling: Spelling, names: Mapping[int, str] | None = None) -> None:
        self.spelling = spelling
        self.names = dict(names or {})
        self.lines: list[str] = []
        self._temporaries = 0

    def number(self, part: Number) -> str:
        """The text of one number, after the statements that it needs."""
        return expression(self._number(part), self.spelling.target)

    def entry(self, part: Number, place: str = "j") -> str:
        """The text of the entry at that place of a row; one number stands for each entry."""
        return expression(self._entry(part, place), self.spelling.target)

    def store(self, part: Number, into: str) -> None:
        """A loop that stores the entries of a row, or one number in each."""
        text = self.entry(part)
        self.lines.append(f"for ({self.spelling.index} j = 0; j < n; j++) {into} = {text};")

    def _number(self, part: Number) -> Number:
        if not isinstance(part, Symbol):
            return part
        if id(part) not in self.names:
            if not part.arguments:
                return part
            if part.head == "at":
                return self._entry(part.arguments[0], self._place(part.arguments[1]))
            if part.head == "count":
                return Symbol(self.spelling.count)
            if part.head not in _ONE_NUMBER:
                return Symbol(part.head, *map(self._number, part.arguments))
            self.names[id(part)] = self._reduced(part)
        return Symbol(self.names[id(part)])

    def _entry(self, part: Number, place: str) -> Number:
        if not isinstance(part, Symbol):
            return part
        if not is_row(part):
            number = self._number(part)
            if isinstance(number, Symbol) and number.arguments and id(part) not in self.names:
                text = expression(number, self.spelling.target)
                self.names[id(part)] = self._declared(self.spelling.constant, text)
            return self._number(part)
        if id(part) in self.names:
            return Symbol(f"{self.names[id(part)]}[{place}]")
        if isinstance(part, RowVariable):
            return Symbol(f"{part.head}[{place}]")
        if part.head == "hot":
            here, there, height = Symbol(place), self._number(part.arguments[1]), self._entry(part.arguments[2], place)
            return Symbol("where", Symbol("and", Symbol("<=", here, there), Symbol(">=", here, there)), height, 0.0)
        return Symbol(part.head, *(self._entry(argument, place) for argument in part.arguments))

    def _place(self, part: Number) -> str:
        if not isinstance(part, Symbol):
            return str(int(part))
        number = self._number(part)
        text = expression(number, self.spelling.target)
        if (text.isidentifier() and len(text) == 1) or text.isdigit():
            return text
        is_computed = isinstance(number, Symbol) and number.arguments
        return self.spelling.as_index + (f"({text})" if is_computed else text)

    def _declared(self, kind: str, text: str) -> str:
        name = f"t{self._temporaries}"
        self._temporaries += 1
        self.lines.append(f"{kind} {name} = {text};")
        return name

    def _reduced(self, part: Symbol) -> str:
        number, zero = self.spelling.number, self.spelling.target.number(0.0)
        first, each = self.entry(part.arguments[0], "0"), self._entry(part.arguments[0], "j")
        result = self._declared(number, first)
        loop = f"for ({self.spelling.index} j = 1; j < n; j++)"
        if part.head == "total":
            added = expression(Symbol("+", Symbol(result), each), self.spelling.target)
            self.lines.append(f"{loop} {result} = {added};")
            return result
        places = [] if part.head == "shift" else [self._declared(number, zero)]
        better = "<" if part.head == "first_smallest" else ">"
        taken = "".join(f" {place} = j;" for place in places)
        self.lines += [
            f"{loop} {{",
            f"    {self.spelling.constant} x = {expression(each, self.spelling.target)};",
            f"    if (x {better} {result} || (x != x && {result} == {result})) {{ {result} = x;{taken} }}",
            "}",
        ]
        for place in places:
            return place
        return self._declared(self.spelling.constant, f"{result} - {result} == {zero} ? {result} : {zero}")


# ---------------------------------------------------------------- as LaTeX


def row_latex(formula: Number, spelled: Mapping[str, str], inside_row: bool = False, is_hot: bool | None = None) -> str:
    """The formula as LaTeX mathematics; `inside_row`: its entry j, and `is_hot` says whether that is the chosen one.

    `spelled` says how its variables look. An entry is the chosen one where it is the one of the place `i`; where there
    is no `i`, where the formula gives anything but 0.
    """

    def mapped(part: Number, index: str, free: str) -> Number:
        if not isinstance(part, Symbol):
            return part
        if not part.arguments:
            return Raw(spelled[part.head] + (f"_{{{index}}}" if isinstance(part, RowVariable) else ""))
        if part.head == "count":
            return Raw("n")
        if part.head == "named":
            return part.arguments[0]
        if part.head in _OVER:
            return Symbol("over", Raw(_OVER[part.head]), Raw(free[0]), mapped(part.arguments[0], free[0], free[1:]))
        if part.head not in ("at", "hot"):
            return _simplified(part.head, *(mapped(argument, index, free) for argument in part.arguments))
        row, place, *height = part.arguments
        where_to = mapped(place, index, free)
        if part.head == "at":
            extreme = _EXTREMES.get(place.head) if isinstance(place, Symbol) else None
            if extreme and latex(mapped(row, free[0], free[1:])) == latex(where_to.arguments[2]):
                return Symbol("over", Raw(extreme), *where_to.arguments[1:])
            return mapped(row, latex(where_to), free)
        is_chosen = place.head == "i" if "i" in spelled and isinstance(place, Symbol) else part is formula
        if is_hot is not None and is_chosen:
            return mapped(height[0], index, free) if is_hot else 0.0
        here = Raw(f"[{index} = {latex(where_to)}]")
        return here if height == [1.0] else mapped(height[0], index, free) * here

    return latex(mapped(formula, "j", "klpqr" if inside_row else "jklpqr"))


def _simplified(head: str, *arguments: Number) -> Number:
    """The operation, or what is left of it beside a 0; a minus sign comes first, and a fraction has one line."""
    zeros = [not isinstance(each, Symbol) and each == 0.0 for each in arguments]
    if head == "-" and any(zeros):
        return -arguments[1] if zeros[0] else arguments[0]
    if head == "div" and zeros[0]:
        return 0.0
    if head == "div" and isinstance(arguments[0], Symbol) and arguments[0].head == "div":
        over, under = arguments[0].arguments
        return Symbol("div", over, under * arguments[1])
    for k, each in enumerate(arguments):
        if head in ("*", "div") and isinstance(each, Symbol) and each.head == "neg":
            return -_simplified(head, *arguments[:k], each.arguments[0], *arguments[k + 1 :])
    return Symbol(head, *arguments)


_ARGMAX, _ARGMIN = r"\operatorname{argmax}", r"\operatorname{argmin}"
_OVER = {"total": r"\sum", "shift": r"\max", "first_largest": _ARGMAX, "first_smallest": _ARGMIN}
_EXTREMES = {"first_largest": r"\max", "first_smallest": r"\min"}
