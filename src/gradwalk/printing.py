"""Formulas of the small language (`formula.py`) as C, JavaScript and LaTeX, for tools/generate.py and the docs."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gradwalk.formula import DEFINITIONS, Number, Raw, Symbol

_COMPARISONS = {"<", "<=", ">", ">=", "and", "or"}
_PRECEDENCE = {"or": 1, "and": 2, "<": 3, "<=": 3, ">": 3, ">=": 3, "+": 4, "-": 4, "*": 5, "div": 5, "neg": 6}
_ATOM = 9


@dataclass(frozen=True)
class Target:
    """How one output language spells numbers, operators and functions."""

    infix: Mapping[str, str]
    functions: Mapping[str, str]
    equals: str
    number: Callable[[float], str]
    declare: Callable[[str, bool], str]


def _literal(infinity: str) -> Callable[[float], str]:
    return lambda x: repr(x) if math.isfinite(x) else infinity if x > 0.0 else f"-{infinity}"


_C_LIKE = {"and": " && ", "or": " || ", "div": " / "} | {o: f" {o} " for o in ("+", "-", "*", "<", "<=", ">", ">=")}

C = Target(
    infix=_C_LIKE,
    functions={"abs": "fabs"} | {name: f"formula_{name}" for name in DEFINITIONS},
    equals="==",
    number=_literal("INFINITY"),
    declare=lambda name, is_condition: f"const {'int' if is_condition else 'double'} {name}",
)

# the others are the page's own: browsers round exp and the like otherwise than C does
_MATH = ("abs", "atanh", "ceil", "expm1", "floor", "log1p", "sinh", "sqrt", "tanh")

JAVASCRIPT = Target(
    infix=_C_LIKE | {"fmod": " % "},
    functions={name: f"Math.{name}" for name in _MATH},
    equals="===",
    number=_literal("Infinity"),
    declare=lambda name, is_condition: f"const {name}",
)


def expression(formula: Number, target: Target, names: Mapping[int, str] | None = None) -> str:
    """The formula as one expression; `names` spells the symbols (by id) that have a name already."""

    def write(part: Number) -> tuple[str, int]:
        if isinstance(part, bool):
            return ("1" if part else "0"), _ATOM
        if not isinstance(part, Symbol):
            return target.number(float(part)), (_ATOM if part >= 0.0 else _PRECEDENCE["neg"])
        if names and id(part) in names:
            return names[id(part)], _ATOM
        head, arguments = part.head, part.arguments
        if not arguments:
            return head, _ATOM
        if head == "where":
            condition, a, b = (enclosed(argument, 1) for argument in arguments)
            return f"({condition} ? {a} : {b})", _ATOM
        if head == "neg":
            return "-" + enclosed(arguments[0], _PRECEDENCE["neg"] + 1), _PRECEDENCE["neg"]
        if head == "and" and _is_equality(part):
            left, right = arguments[0].arguments  # type: ignore[union-attr]
            return f"{enclosed(left, 4)} {target.equals} {enclosed(right, 4)}", 3
        if head in target.infix:
            level = _PRECEDENCE.get(head, 5)
            # the right side of every operator is enclosed at its own level: a - (b - c), a / (b * c);
            # "and" inside "or" is enclosed too, which compilers ask for
            sides = (3, 3) if head == "or" else (level, level + 1)
            return enclosed(arguments[0], sides[0]) + target.infix[head] + enclosed(arguments[1], sides[1]), level
        inside = ", ".join(enclosed(argument, 0) for argument in arguments)
        return f"{target.functions.get(head, head)}({inside})", _ATOM

    def enclosed(part: Number, level: int) -> str:
        text, own = write(part)
        return text if own >= level else f"({text})"

    return enclosed(formula, 0)


def statements(formulas: Sequence[Number], target: Target) -> tuple[list[str], list[str]]:
    """The formulas as declarations of what they share, and one expression each."""
    uses: Counter[int] = Counter()
    order: list[Symbol] = []

    def count(part: Number) -> None:
        if isinstance(part, Symbol) and part.arguments:
            uses[id(part)] += 1
            if uses[id(part)] == 1:
                for argument in part.arguments:
                    count(argument)
                order.append(part)

    for formula in formulas:
        count(formula)
    names: dict[int, str] = {}
    lines = []
    for part in order:
        if uses[id(part)] > 1:
            text = expression(part, target, names)
            names[id(part)] = f"t{len(names)}"
            lines.append(f"{target.declare(names[id(part)], part.head in _COMPARISONS)} = {text};")
    return lines, [expression(formula, target, names) for formula in formulas]


# numbers that have a name: in a line of text, and as LaTeX
NAMED_NUMBERS = {
    math.inf: ("inf", r"\infty"),
    math.pi: ("pi", r"\pi"),
    math.log(2.0): ("log(2)", r"\log\left(2\right)"),
    math.log(10.0): ("log(10)", r"\log\left(10\right)"),
    math.sqrt(2.0): ("sqrt(2)", r"\sqrt{2}"),
    math.sqrt(math.pi): ("sqrt(pi)", r"\sqrt{\pi}"),
    math.sqrt(2.0 * math.pi): ("sqrt(2·pi)", r"\sqrt{2\pi}"),
}
_LATEX_OPERATORS = {"+": " + ", "-": " - ", "*": r" \cdot ", "<": " < ", "<=": r" \le ", ">": " > ", ">=": r" \ge ",
                    "and": r" \wedge ", "or": r" \vee "}  # fmt: skip
_LATEX_FUNCTIONS = {"log2": r"\log_2", "log10": r"\log_{10}"}
_LATEX_KNOWN = {"exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "max", "min"}
_LATEX_AROUND = {
    "div": r"\frac{%s}{%s}",
    "pow": "{%s}^{%s}",
    "power": "{%s}^{%s}",
    "sqrt": r"\sqrt{%s}",
    "cbrt": r"\sqrt[3]{%s}",
    "abs": r"\left|%s\right|",
    "floor": r"\lfloor %s \rfloor",
    "ceil": r"\lceil %s \rceil",
    "hypot": r"\sqrt{{%s}^2 + {%s}^2}",
}


def latex(formula: Number) -> str:
    """The formula as LaTeX mathematics."""

    def write(part: Number) -> tuple[str, int]:
        if not isinstance(part, Symbol):
            value = float(part)
            _, name = NAMED_NUMBERS.get(abs(value), ("", ""))
            text = name or re.sub(r"^1e-0*(\d+)$", r"10^{-\1}", format(abs(value), "g"))
            return (text, _ATOM) if value >= 0.0 else ("-" + text, _PRECEDENCE["neg"])
        head, arguments = part.head, part.arguments
        if not arguments:
            return (head if len(head) == 1 or isinstance(part, Raw) else rf"\mathit{{{head}}}"), _ATOM
        if head == "over":
            # max_j x_j + 1 would be the largest of x_j + 1 to some
            level = _PRECEDENCE["*" if arguments[0].head == r"\sum" else "<"]  # type: ignore[union-attr]
            sign, letter, inside = (enclosed(argument, _PRECEDENCE["*"]) for argument in arguments)
            return rf"{sign}_{{{letter}}} {inside}", level
        if head == "where":
            branches = []
            rest: Number = part
            while isinstance(rest, Symbol) and rest.head == "where":
                condition, chosen, rest = rest.arguments
                branches.append(rf"{enclosed(chosen, 0)} & {enclosed(condition, 0)}")
            branches.append(rf"{enclosed(rest, 0)} & \text{{otherwise}}")
            return r"\begin{cases}" + r" \\ ".join(branches) + r"\end{cases}", _ATOM
        if head == "and" and _is_equality(part):
            left, right = arguments[0].arguments  # type: ignore[union-attr]
            return enclosed(left, 4) + " = " + enclosed(right, 4), 3
        if head == "neg":
            return "-" + enclosed(arguments[0], 5), _PRECEDENCE["neg"]
        if head in _LATEX_OPERATORS:
            level = _PRECEDENCE[head]
            return enclosed(arguments[0], level) + _LATEX_OPERATORS[head] + enclosed(arguments[1], level + 1), level
        if head in _LATEX_AROUND:
            level = _ATOM if head in ("pow", "power", "hypot") else 0
            first = enclosed(arguments[0], level)
            return _LATEX_AROUND[head] % (first, *(enclosed(a, 0) for a in arguments[1:])), _PRECEDENCE["neg"]
        name = _LATEX_FUNCTIONS.get(head) or (f"\\{head}" if head in _LATEX_KNOWN else rf"\operatorname{{{head}}}")
        return rf"{name}\left({', '.join(enclosed(a, 0) for a in arguments)}\right)", _PRECEDENCE["div"] + 1

    def enclosed(part: Number, level: int) -> str:
        text, own = write(part)
        return text if own >= level else rf"\left({text}\right)"

    return enclosed(formula, 0)


def _is_equality(part: Symbol) -> bool:
    sides = [a for a in part.arguments if isinstance(a, Symbol)]
    return [s.head for s in sides] == ["<=", ">="] and all(
        x is y for x, y in zip(sides[0].arguments, sides[1].arguments, strict=True)
    )
