"""Formulas as text, `c = a*b; relu(c + d)`: parsed by the grammar below, never evaluated as Python.

`parsed(text)` gives an `Expression`; its `evaluate(values)` records the graph on Values. Every mistake is an
`ExpressionError` that points at the character. The page's parser accepts exactly the same language.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, NoReturn

from gradwalk import engine
from gradwalk.errors import NumberError, likeliest
from gradwalk.ops import OPERATORS, OPS

# ---------------------------------------------------------------- the grammar
#
#   program    = { separator } statement { separator { separator } statement } { separator }
#   statement  = [ name "=" ] sum
#   sum        = product { ( "+" | "-" ) product }                     from left to right
#   product    = unary { ( "*" | "/" ) unary }                         from left to right
#   unary      = "-" unary | power
#   power      = atom [ "**" unary ]                                   -a**2 is -(a**2); a**b**c is a**(b**c)
#   atom       = number | name | function "(" sum { "," sum } ")" | "(" sum ")"
#
#   number     = ( digits [ "." [ digits ] ] | "." digits ) [ ( "e" | "E" ) [ "+" | "-" ] digits ]
#   digits     = digit { digit }                                       0 to 9
#   name       = ( letter | "_" ) { letter | "_" | digit }             letter: Latin or Greek, see _LETTER
#   function   = a name in FUNCTIONS below: the table's operations, their aliases, max and min
#   separator  = ";" | newline (U+000A)                                a newline inside ( ) is a space instead
#   space      = U+0020 | U+0009 | U+000D | U+00A0                     between tokens, ignored
#
#   "·" (U+00B7) and "×" (U+00D7) are read as "*", "−" (U+2212) as "-". The longest token wins: "**" before "*", and
#   a number that stops before an "e" without digits ("2e" is the number 2, then the name e, then an error).
#
# Besides that, a program is valid only if
#   - it has at most MOST_CHARACTERS characters, MOST_NODES nodes (each number, each name, each operator, each unary
#     minus and each call counts one; the name before "=" does not) and MOST_NESTING levels (open at one place: each
#     "(", each unary "-" whose operand is being read, each "**" whose right side is being read);
#   - its numbers are finite as floats;
#   - a function's name is not used without "(", and any other name is not followed by "(";
#   - a call has as many arguments as the row has inputs and parameters, of which those with a default may be left
#     out at the end; an argument that is a parameter (slope, alpha, low, high) is constant;
#   - a name is assigned at most once, and not after it was used;
#   - every statement but the last assigns, and the last is not a constant, unless it assigns.
# Constant is a number, and an operation whose arguments are all constant; a name never is.
#
# Whether a number is inside an operation's domain is asked when the program is evaluated, not here.
#
# What it means: a constant is computed as a float (as Python would) and enters the graph as a constant leaf of the
# operation it is used in; -3 is a constant, not a node. `x ** n` and `pow(x, n)` are the row pow_number where n is
# constant, else the row pow. A name is a leaf, unless it was assigned. `name = constant` makes a leaf that has this
# value unless another is given; any other assignment labels the node. The last statement is the root.

MOST_CHARACTERS = 10_000
MOST_NODES = 2_000
MOST_NESTING = 200

FUNCTIONS: dict[str, str] = {
    **{spelling: op.name for op in OPS.values() if op.name not in OPERATORS for spelling in (op.name, *op.aliases)},
    "max": "maximum",
    "min": "minimum",
}

_LETTER = "A-Za-z_\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff\u0391-\u03a9\u03b1-\u03c9"  # Latin and Greek
_TOKEN = re.compile(
    r"(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    rf"|(?P<name>[{_LETTER}][{_LETTER}0-9]*)"
    r"|(?P<sign>\*\*|[-+*/(),=;·×−]|\n[\n \t\r\u00a0]*)"  # blank lines are one separator
    r"|(?P<space>[ \t\r\u00a0]+)"
)
_SAME = {"·": "*", "×": "*", "−": "-"}
_ROWS = {"+": "add", "-": "sub", "*": "mul", "/": "div", "**": "pow"}
_LEVELS = {"add": 1, "sub": 1, "mul": 2, "div": 2, "neg": 3, "pow": 4}
_HINTS = {
    "^": "a power is written **",
    "%": "a remainder is written fmod(x, y)",
    "[": "lists are not part of the language",
    ".": "a name has no attributes here; write relu(x), not x.relu()",
    "<": "comparisons are not part of the language; see where(condition, x, y)",
    ">": "comparisons are not part of the language; see where(condition, x, y)",
    "'": "text is not part of the language",
    '"': "text is not part of the language",
    "|": "an absolute value is written abs(x)",
}


class ExpressionError(ValueError):
    """What is wrong with an expression, and at which character; its text is one line, the excerpt and a caret."""

    def __init__(self, problem: str, text: str, position: int) -> None:
        self.problem, self.text, self.position = problem, text, position
        super().__init__(f"{problem}\n{excerpt(text, position)}")


def excerpt(text: str, position: int) -> str:
    """The line around a position, and below it a caret under the character.

    >>> print(excerpt("a + * b", 4))
      a + * b
          ^
    """
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    end = len(text) if end < 0 else end
    first, last = max(start, position - 50), min(end, position + 20)
    before = ("…" if first > start else "") + printable(text[first:position])
    after = printable(text[position:last]) + ("…" if last < end else "")
    return f"  {before}{after}\n  {' ' * _columns(before)}^"


def printable(text: str) -> str:
    """`text` with a mark in the place of every character that could steer a terminal or does not show.

    >>> printable("a\\x1b[2Jb")
    'a�[2Jb'
    """
    return "".join(c if c.isprintable() else " " if c == "\t" else "�" for c in text)


def _columns(text: str) -> int:
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _short(name: str) -> str:
    return name if len(name) <= 30 else name[:29] + "…"


# ---------------------------------------------------------------- tokens


class Token(NamedTuple):
    kind: Literal["number", "name", "sign", "end"]
    text: str
    position: int


def _tokens(text: str) -> Iterator[Token]:
    position, open_brackets = 0, 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            character = text[position]
            shown = repr(character) if character.isprintable() else f"character U+{ord(character):04X}"
            hint = f"; {_HINTS[character]}" if character in _HINTS else ""
            raise ExpressionError(f"unexpected {shown} at character {position + 1}{hint}", text, position)
        found = _SAME.get(match[0], match[0])
        if match.lastgroup == "number" or match.lastgroup == "name":
            yield Token("number" if match.lastgroup == "number" else "name", found, position)
        elif match.lastgroup == "sign":
            open_brackets = max(0, open_brackets + (found == "(") - (found == ")"))
            is_newline = found.startswith("\n")
            if not is_newline or not open_brackets:
                yield Token("sign", ";" if is_newline else found, position)
        position = match.end()
    yield Token("end", "", len(text))


# ---------------------------------------------------------------- what parsing gives


class Action(NamedTuple):
    """One step of evaluation over a stack: push a number, push a name, apply a row, or give the top a name."""

    kind: Literal["number", "name", "apply", "assign"]
    position: int
    name: str = ""
    number: float = 0.0
    arguments: int = 0


@dataclass(frozen=True)
class Expression:
    """A valid program. `inputs` are its leaves in order of appearance; `given` are those whose value is in the text."""

    text: str
    actions: tuple[Action, ...]
    inputs: tuple[str, ...]
    given: frozenset[str]

    def evaluate(self, values: Mapping[str, float] | None = None, engine_name: str = engine.NAME) -> Any:
        """Record the program's graph on Values and return its root; `values` has the leaves' numbers.

        >>> parsed("relu(a*b + d)").evaluate({"a": 2.0, "b": -3.0, "d": 10.0})
        Value(data=4.0, grad=0.0)
        """
        numbers = values or {}
        module: Any = engine.load(engine_name)
        self._require(numbers)
        known: dict[str, Any] = {}
        stack: list[Any] = []
        for action in self.actions:
            kind, name = action.kind, action.name
            if kind == "number":
                stack.append(action.number)
            elif kind == "name":
                if name not in known:
                    known[name] = module.Value(numbers[name], label=name)
                stack.append(known[name])
            elif kind == "assign":
                result = stack.pop()
                if name in self.given:
                    result = module.Value(numbers.get(name, result), label=name)
                elif not result.label:
                    result.label = name
                known[name] = result
            else:
                arguments = [stack.pop() for _ in range(action.arguments)][::-1]
                try:
                    result = module.FUNCTIONS[name](*arguments)
                except NumberError as error:
                    raise ExpressionError(str(error), self.text, action.position) from None
                if isinstance(result, float):
                    result = _Written(result, _spelled(name, arguments))
                else:
                    for child, argument in zip(result._children, arguments, strict=False):
                        if isinstance(argument, _Written):
                            child.label = argument.text
                stack.append(result)
        return stack[-1] if stack else known[self.actions[-1].name]

    def _require(self, numbers: Mapping[str, float]) -> None:
        missing = [name for name in self.inputs if name not in numbers and name not in self.given]
        if missing:
            names = ", ".join(map(_short, missing[:5])) + (" …" if len(missing) > 5 else "")
            example = " ".join(f"{_short(name)}=1.0" for name in missing[:5])
            position = next(i.position for i in self.actions if i.name == missing[0])
            raise ExpressionError(f"no value for {names}; add {example}", self.text, position)


class _Written(float):
    """A number that was computed from numbers of the text, and how it stands there: sqrt(2) stays sqrt(2)."""

    text: str

    def __new__(cls, number: float, text: str) -> _Written:
        made = super().__new__(cls, number)
        made.text = text
        return made


def _spelled(row: str, numbers: Sequence[float]) -> str:
    """An operation on numbers as it is written, with brackets around whatever is not one word."""
    texts = [number.text if isinstance(number, _Written) else f"{number!r}".removesuffix(".0") for number in numbers]
    enclosed = [text if re.fullmatch(r"[\w.]+(\([^()]*\))?", text) else f"({text})" for text in texts]
    sign = {"add": " + ", "sub": " - ", "mul": "·", "div": "/", "pow": "**"}.get(row)
    if row == "neg":
        return f"-{enclosed[0]}"
    return sign.join(enclosed) if sign else f"{row}({', '.join(texts)})"


# ---------------------------------------------------------------- the parser: operators wait on a stack of their own


class _Pending(NamedTuple):
    """An operator that waits for its right side, or an open bracket; a call's is open as long as it has arguments."""

    row: str  # "" for a bracket that only groups
    position: int
    level: int  # 0 for brackets
    function: str = ""


def parsed(text: str) -> Expression:
    """Parse a program, or raise an ExpressionError that points at the character.

    >>> parsed("c = a*b; relu(c + d)").inputs
    ('a', 'b', 'd')
    """
    if len(text) > MOST_CHARACTERS:
        raise ExpressionError(
            f"expected at most {MOST_CHARACTERS:,} characters, got {len(text):,}", text, MOST_CHARACTERS
        )
    return _Parser(text).program()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(_tokens(text))
        self.at = 0
        self.actions: list[Action] = []
        self.pending: list[_Pending] = []
        self.constant: list[bool] = []  # for each operand so far: whether it is constant
        self.argument_starts: list[list[int]] = []  # for each open call: where its arguments start
        self.nodes = 0
        self.nesting = 0
        self.inputs: dict[str, None] = {}
        self.assigned: set[str] = set()
        self.given: set[str] = set()

    def fail(self, problem: str, position: int) -> NoReturn:
        raise ExpressionError(problem, self.text, position)

    def is_sign(self, text: str, ahead: int = 0) -> bool:
        token = self.tokens[self.at + ahead]
        return token.kind == "sign" and token.text == text

    # ---------------------------------------------------------------- statements

    def program(self) -> Expression:
        loose: int | None = None  # where the last statement that gave its result no name starts
        while True:
            while self.is_sign(";"):
                self.at += 1
            token = self.tokens[self.at]
            if token.kind == "end":
                break
            if loose is not None:
                self.fail("the result of this statement is not used; give it a name: c = …", loose)
            if token.kind == "name" and self.is_sign("=", ahead=1):
                self.assignment(token)
            else:
                loose = token.position
                self.expression()
                if self.constant.pop():
                    self.fail("expected at least one name, got only numbers; there is nothing to differentiate", loose)
        if not self.actions:
            self.fail("expected an expression, got nothing", len(self.text))
        return Expression(self.text, tuple(self.actions), tuple(self.inputs), frozenset(self.given))

    def assignment(self, target: Token) -> None:
        name, position = target.text, target.position
        if name in FUNCTIONS:
            self.fail(f"{name} is an operation; choose another name", position)
        if name in self.assigned or name in self.inputs:
            before = "assigned" if name in self.assigned else "used"
            self.fail(f"{_short(name)} was {before} before; a name is assigned once, before it is used", position)
        self.at += 2
        self.expression(target)
        if self.constant.pop():
            self.inputs[name] = None
            self.given.add(name)
        else:
            self.assigned.add(name)
        self.actions.append(Action("assign", position, name))

    # ---------------------------------------------------------------- expressions

    def expression(self, target: Token | None = None) -> None:
        """One sum, up to a separator or the end."""
        while True:
            self.operand(target)
            while self.is_sign(")") or self.is_sign(","):
                if self.close():
                    break  # a comma: the next argument follows
            else:
                token = self.tokens[self.at]
                if token.kind == "end" or self.is_sign(";"):
                    self.finish(token)
                    return
                self.operator(token)

    def operand(self, target: Token | None) -> None:
        """Unary minuses and opening brackets, then a number or a name."""
        while True:
            token = self.tokens[self.at]
            if token.kind == "number":
                number = float(token.text)
                if not math.isfinite(number):
                    self.fail("expected a number that fits a float, got a larger one", token.position)
                self.add(Action("number", token.position, number=number), True)
            elif token.kind == "name" and not self.is_sign("(", ahead=1):
                self.name(token, target)
            else:
                self.opening(token)
                continue
            self.at += 1
            return

    def name(self, token: Token, target: Token | None) -> None:
        if token.text in FUNCTIONS:
            self.fail(f"{token.text} is an operation; write {token.text}(…)", token.position)
        if target and token.text == target.text:
            self.fail(f"{_short(token.text)} is used in its own assignment", token.position)
        if token.text not in self.assigned:
            self.inputs[token.text] = None
        self.add(Action("name", token.position, token.text), False)

    def opening(self, token: Token) -> None:
        if token.kind == "name":
            if token.text not in FUNCTIONS:
                self.unknown(token)
            self.push(_Pending(FUNCTIONS[token.text], token.position, 0, token.text))
            self.at += 2
            if self.is_sign(")"):
                self.fail(f"{token.text}: {self.wanted(token.text)}, got none", self.tokens[self.at].position)
            self.argument_starts.append([self.tokens[self.at].position])
        elif self.is_sign("-") or self.is_sign("("):
            level = _LEVELS["neg"] if token.text == "-" else 0
            self.push(_Pending("neg" if level else "", token.position, level))
            self.at += 1
        else:
            got = "the end" if token.kind == "end" else "the end of the statement" if token.text == ";" else ""
            self.fail(f"expected a name, a number or ( here, got {got or repr(token.text)}", token.position)

    def operator(self, token: Token) -> None:
        row = _ROWS.get(token.text) if token.kind == "sign" else None
        if row is None:
            is_late = token.text == "="
            hint = "= only follows the name at the start of a statement" if is_late else "a product is written *"
            self.fail(f"expected an operator here, got {_short(token.text)!r}; {hint}", token.position)
        level = _LEVELS[row]
        while self.pending and (self.pending[-1].level > level or (self.pending[-1].level == level and row != "pow")):
            self.apply_pending()
        self.push(_Pending(row, token.position, level))
        self.at += 1

    def push(self, pending: _Pending) -> None:
        self.pending.append(pending)
        if pending.row in ("pow", "neg") or not pending.level:
            self.nesting += 1
            if self.nesting > MOST_NESTING:
                self.fail(f"expected at most {MOST_NESTING} levels of nesting, got more", pending.position)

    def add(self, action: Action, is_constant: bool) -> None:
        self.nodes += 1
        if self.nodes > MOST_NODES:
            self.fail(f"expected at most {MOST_NODES:,} numbers, names and operations, got more", action.position)
        self.actions.append(action)
        self.constant.append(is_constant)

    def apply_pending(self) -> None:
        waiting = self.pending.pop()
        self.nesting -= waiting.row in ("pow", "neg")
        self.apply(waiting.row, waiting.position, 1 if waiting.row == "neg" else 2)

    def apply(self, row: str, position: int, count: int) -> None:
        is_constant = all(self.constant[-count:])
        del self.constant[-count:]
        self.add(Action("apply", position, row, arguments=count), is_constant)

    def close(self) -> bool:
        """Handle a ) or a comma; True for a comma, after which an operand follows."""
        token = self.tokens[self.at]
        while self.pending and self.pending[-1].level:
            self.apply_pending()
        if not self.pending:
            self.fail(f"unexpected {token.text!r}: no ( is open here", token.position)
        bracket = self.pending[-1]
        self.at += 1
        if token.text == ",":
            if not bracket.function:
                self.fail("unexpected ',': only the arguments of an operation are listed with commas", token.position)
            self.argument_starts[-1].append(self.tokens[self.at].position)
            return True
        self.pending.pop()
        self.nesting -= 1
        if bracket.function:
            self.call(bracket, self.argument_starts.pop())
        return False

    def call(self, bracket: _Pending, starts: list[int]) -> None:
        op, count = OPS[bracket.row], len(starts)
        least = len(op.names) - len(op.defaults)
        if not least <= count <= len(op.names):
            position = starts[len(op.names)] if count > len(op.names) else bracket.position
            self.fail(f"{bracket.function}: {self.wanted(bracket.function)}, got {count}", position)
        for i in range(len(op.inputs), count):
            if not self.constant[i - count]:
                self.fail(f"{bracket.function}: expected a number for {op.names[i]}, got a name", starts[i])
        self.apply(op.name, bracket.position, count)

    def finish(self, token: Token) -> None:
        while self.pending:
            if not self.pending[-1].level:
                self.fail(f"this ( is never closed{' before the ;' if token.text else ''}", self.bracket_position())
            self.apply_pending()

    def bracket_position(self) -> int:
        bracket = self.pending[-1]
        return self.text.index("(", bracket.position)

    def wanted(self, function: str) -> str:
        op = OPS[FUNCTIONS[function]]
        optional = len(op.defaults)
        names = [*op.names[: len(op.names) - optional], *(f"[{name}]" for name in op.names[len(op.names) - optional :])]
        return f"expected {', '.join(names)} ({len(op.names)} argument{'s' * (len(op.names) > 1)})"

    def unknown(self, token: Token) -> NoReturn:
        meant = likeliest(token.text[:30], FUNCTIONS)
        more = f"; did you mean {meant}?" if meant else f"; the operations are {', '.join(sorted(FUNCTIONS)[:4])}, …"
        self.fail(f"there is no operation {_short(token.text)}{more}", token.position)
