"""An operation of a script's class as a formula, read off its source: native/value/formula.c computes it, to the bit.

What is read: one operand, plain arithmetic and functions of math, a node made of the result, and a gradient that is
some number times the node's. Anything else is no formula, and stays the script's own Python.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import linecache
import math
import operator
import struct
import textwrap
from collections.abc import Iterator
from types import FunctionType
from typing import Any, NamedTuple, NoReturn

from gradwalk.run.shape import Shape

# as native/value/formula.c numbers them; a number is followed by which
_END, _NUMBER, _X_BEFORE, _OUT_BEFORE, _X_NOW, _OUT_NOW = range(6)
_ARITHMETIC: dict[type, Any] = {ast.Add: (6, operator.add), ast.Sub: (7, operator.sub), ast.Mult: (8, operator.mul),
               ast.Div: (9, operator.truediv), ast.Pow: (10, operator.pow)}  # fmt: skip
_COMPARISONS: dict[type, int] = {ast.Lt: 11, ast.LtE: 12, ast.Eq: 13, ast.NotEq: 14, ast.Gt: 15, ast.GtE: 16}
_SELECT, _NEGATIVE = 17, 18
_FUNCTIONS: dict[Any, int] = {
    function: code
    for code, function in enumerate(
        (math.fabs, math.exp, math.expm1, math.log, math.log1p, math.sqrt, math.sin, math.cos, math.tan,
         math.asin, math.acos, math.atan, math.sinh, math.cosh, math.tanh), start=19)
} | {abs: 19}  # fmt: skip
_BUILTINS = (float, abs, max, min)
_EXACT = 2**53  # a float holds every int below
_MOST = 30  # numbers that wait on the stack at once, and more than anybody writes


class NotOneError(Exception):
    """This is no formula."""


def _refuse() -> NoReturn:
    raise NotOneError


class Term(NamedTuple):
    """Part of a formula: what is done, with what, and whether Python is sure to have a float there."""

    code: int
    parts: tuple[Any, ...]
    is_float: bool


class Node(NamedTuple):
    """What the method returns."""

    word: str
    data: Term
    local_grad: Term | None  # in microgpt's family


_ITSELF, _MADE = object(), object()  # what self and the node made are, among the names


def formula_of(method: Any, cls: str, shape: Shape) -> tuple[Any, ...] | None:
    """The formula of a method, as native/value/formula.c takes it; None if it is none."""
    try:
        (function,) = ast.parse(textwrap.dedent(inspect.getsource(method.__code__))).body
        if not isinstance(function, ast.FunctionDef) or function.decorator_list or len(function.args.args) != 1:
            return None
        node, gradient = _Reader(method, cls, shape).read(function)
        return (method, node.word, *_code(node.data, gradient))
    except (NotOneError, OSError, SyntaxError, ValueError):  # no source is no formula, either
        return None


# ---------------------------------------------------------------- reading


class _Reader:
    """One method: what its names stand for, forward and then, inside the function that goes backward, later."""

    def __init__(self, method: FunctionType, cls: str, shape: Shape) -> None:
        self.cls, self.shape = cls, shape
        self.names: dict[str, Any] = {}
        cells = zip(method.__code__.co_freevars, method.__closure__ or (), strict=True)
        self.outside = {**vars(builtins), **method.__globals__, **{name: cell.cell_contents for name, cell in cells}}
        self.later = False
        self.conditions: list[Term] = []  # otherwise the method raises
        self.used: set[str] = set()
        self.changing = _bound_twice(
            method.__code__.co_filename, "".join(linecache.getlines(method.__code__.co_filename))
        )

    def read(self, function: ast.FunctionDef) -> tuple[Node, Term]:
        self.names[function.args.args[0].arg] = _ITSELF
        node: Node | None = None
        backward: ast.FunctionDef | None = None
        for statement in function.body:
            match statement:
                case ast.Expr(ast.Constant(str())) | ast.Pass():
                    pass
                case ast.Assign([ast.Name(name)], ast.Call() as call) if self.is_class(call.func) and not node:
                    node = self.node(call)
                    self.define(name, _MADE)
                case ast.FunctionDef(name) if not ast.unparse(statement.args) and not statement.decorator_list:
                    self.define(name, statement)
                case ast.Assign([ast.Attribute(made, attribute)], ast.Name(name)) if self.is_made(made):
                    backward = self.names.get(name)
                    if attribute != self.shape.backward or not isinstance(backward, ast.FunctionDef):
                        _refuse()
                case ast.Return(ast.Call() as call) if not node:
                    return self.result(self.node(call), None)
                case ast.Return(value) if node and value is not None and self.is_made(value):
                    return self.result(node, backward)
                case _ if not node:
                    self.compute(statement)
                case _:
                    _refuse()
        _refuse()

    def compute(self, statement: ast.stmt) -> None:
        """Names for numbers; a branch is both its sides, of which one is chosen, or a condition that has to hold."""
        match statement:
            case ast.Assign([ast.Name(name)], value):
                self.define(name, self.term(value))
            case ast.Assert(condition):
                self.require(ast.NotEq, condition)
            case ast.If(condition, [ast.Raise()], []):
                self.require(ast.Eq, condition)
            case ast.If(condition, chosen, [_, *_] as other):
                holds, sides, before = self.term(condition), [], self.names
                for side in (chosen, other):
                    self.names = dict(before)
                    for inside in side:
                        self.compute(inside)
                    sides.append(self.names)
                self.names = dict(before)
                for name in sides[0].keys() & sides[1].keys() - before.keys():
                    self.define(name, _chosen(holds, sides[0][name], sides[1][name]))
            case _:
                _refuse()

    def require(self, sign: type, condition: ast.expr) -> None:
        self.conditions.append(Term(_COMPARISONS[sign], (self.term(condition), _number(0)), False))

    def result(self, node: Node, backward: ast.FunctionDef | None) -> tuple[Node, Term]:
        if (node.local_grad is None) == (backward is None):
            _refuse()
        gradient = node.local_grad or self.gradient(backward)
        computed = {name for name, value in self.names.items() if isinstance(value, Term) and value.parts}
        # of what nobody uses an error would be lost, and an int times an int is an int
        return (node, gradient) if computed <= self.used and gradient.is_float else _refuse()

    def define(self, name: str, value: Any) -> None:
        if name in self.names:  # a closure would see the last one
            _refuse()
        self.names[name] = value

    def is_class(self, function: ast.expr) -> bool:
        match function:
            case ast.Name(name):
                return name == self.cls and name not in self.names
            case ast.Call(ast.Name("type"), [of], []) | ast.Attribute(of, "__class__"):
                return self.is_itself(of)
        return False

    def is_itself(self, value: ast.expr) -> bool:
        return isinstance(value, ast.Name) and self.names.get(value.id) is _ITSELF

    def is_made(self, value: ast.expr) -> bool:
        return isinstance(value, ast.Name) and self.names.get(value.id) is _MADE

    def node(self, call: ast.Call) -> Node:
        if not self.is_class(call.func):
            _refuse()
        roles = self.shape.parameters
        named = [*zip(roles, call.args, strict=False), *((keyword.arg, keyword.value) for keyword in call.keywords)]
        given = {roles.get(name or "", ""): value for name, value in named}
        if len(given) != len(call.args) + len(call.keywords) or not given.keys() <= {
            "data", "children", "op", "local_grads"
        }:  # fmt: skip
            _refuse()
        match given.get("children"), given.get("op", ast.Constant("")):
            case ((ast.Tuple([of]) | ast.List([of]) | ast.Set([of])), ast.Constant(str(word))) if self.is_itself(of):
                data = self.term(given["data"])
            case _:
                _refuse()
        match given.get("local_grads"):
            case None:
                local_grad = None
            case ast.Tuple([value]) | ast.List([value]):
                local_grad = self.term(value)
            case _:
                _refuse()
        for condition in self.conditions:
            data = _combined(ast.Div, data, condition)  # by 1, or by 0: that is not finite, and left to the script
        return Node(word, data, local_grad) if data.is_float else _refuse()

    def gradient(self, backward: ast.FunctionDef | None) -> Term:
        """What the node's gradient is multiplied by, and added to that of the operand."""
        assert backward is not None
        self.later = True
        self.conditions, (*first, last) = [], backward.body
        for statement in first:
            self.compute(statement)
        if self.conditions:
            _refuse()
        match last:
            case ast.AugAssign(ast.Attribute(of, attribute), ast.Add(), value):
                pass
            case ast.Assign([ast.Attribute(of, attribute) as target], ast.BinOp(before, ast.Add(), value)) if (
                ast.unparse(target) == ast.unparse(before)
            ):
                pass
            case _:
                _refuse()
        if not self.is_itself(of) or attribute != self.shape.grad:
            _refuse()
        match value:
            case ast.BinOp(left, ast.Mult(), right) if self.is_grad(right):
                return self.term(left)
            case ast.BinOp(left, ast.Mult(), right) if self.is_grad(left):
                return self.term(right)
        _refuse()

    def is_grad(self, value: ast.expr) -> bool:
        return isinstance(value, ast.Attribute) and value.attr == self.shape.grad and self.is_made(value.value)

    # ------------------------------------------------------------ terms

    def term(self, value: ast.expr) -> Term:
        match value:
            case ast.Constant(int() | float() as number):
                return _number(number)
            case ast.Name(name) if isinstance(self.names.get(name), Term):
                self.used.add(name)
                known: Term = self.names[name]
                return known
            case ast.Attribute(ast.Name(name), attribute) if attribute == self.shape.data and name in self.names:
                return self.term_of_data(self.names[name])
            case ast.Attribute(ast.Name()):
                return _number(self.found(value))  # pi, say
            case ast.UnaryOp(ast.USub(), of):
                term = self.term(of)
                if term.code == _NUMBER:
                    return _number(-term.parts[0])
                return Term(_NEGATIVE, (term,), True) if term.is_float else _refuse()
            case ast.BinOp(left, sign, right) if type(sign) in _ARITHMETIC:
                return _combined(type(sign), self.term(left), self.term(right))
            case ast.Compare(left, [sign], [right]) if type(sign) in _COMPARISONS:
                return Term(_COMPARISONS[type(sign)], (self.term(left), self.term(right)), False)
            case ast.IfExp(condition, chosen, other):
                return _chosen(self.term(condition), self.term(chosen), self.term(other))
            case ast.Call(function, [of], []):
                called, term = self.found(function), self.term(of)
                if called is float:
                    return term._replace(is_float=True)
                if called in _FUNCTIONS:
                    return Term(_FUNCTIONS[called], (term,), called is not abs or term.is_float)
            case ast.Call(function, [left, right], []):
                called, one, two = self.found(function), self.term(left), self.term(right)
                if called is math.pow:
                    return _combined(ast.Pow, one._replace(is_float=True), two)
                if called in (max, min):  # of equals the first
                    better = _COMPARISONS[ast.Gt if called is max else ast.Lt]
                    return _chosen(Term(better, (two, one), False), two, one)
        _refuse()

    def term_of_data(self, name: Any) -> Term:
        if name is _ITSELF:
            return Term(_X_NOW if self.later else _X_BEFORE, (), True)
        return Term(_OUT_NOW, (), True) if name is _MADE and self.later else _refuse()

    def found(self, value: ast.expr) -> Any:
        """What a name outside the method stands for: a builtin, something of math, or nothing that can be told."""
        match value:
            case ast.Name(name) if self.is_outside(name):
                found = self.outside.get(name)
                return found if found in _BUILTINS or _is_of_math(found) else None
            case ast.Attribute(ast.Name(name), attribute) if self.is_outside(name) and self.outside.get(name) is math:
                return getattr(math, attribute, None)
        return None

    def is_outside(self, name: str) -> bool:
        """Whether it stands for the same thing whenever the method is called."""
        return name not in self.names and name not in self.changing


@functools.lru_cache(maxsize=8)
def _bound_twice(path: str, source: str) -> set[str]:
    """The names of a file that may come to stand for something else: assigned to, also their attributes, or defined."""
    bound: dict[str, set[str]] = {}
    for node in ast.walk(ast.parse(source, path)):
        match node:
            case ast.Name(name, ast.Store() | ast.Del()) | ast.arg(name) | ast.FunctionDef(name) | ast.ClassDef(name):
                bound.setdefault(name, set()).update(("here", "and there"))
            case ast.Attribute(ast.Name(name), _, ast.Store() | ast.Del()):
                bound.setdefault(name, set()).update(("here", "and there"))
            case ast.Import(names) | ast.ImportFrom(_, names):
                for alias in names:
                    bound.setdefault(alias.asname or alias.name, set()).add(ast.dump(node))
    return {name for name, origins in bound.items() if len(origins) > 1}


def _is_of_math(found: Any) -> bool:
    return isinstance(found, type(math.exp)) and getattr(math, found.__name__, None) is found


def _number(number: Any) -> Term:
    if type(number) not in (int, float) or not abs(number) < _EXACT:
        _refuse()
    return Term(_NUMBER, (number,), type(number) is float)


def _combined(sign: type, left: Term, right: Term) -> Term:
    code, function = _ARITHMETIC[sign]
    if left.code == right.code == _NUMBER:
        try:
            return _number(function(left.parts[0], right.parts[0]))
        except ArithmeticError:
            _refuse()
    # Python's ints are exact, and have one zero
    return Term(code, (left, right), True) if left.is_float or right.is_float else _refuse()


def _chosen(condition: Term, one: Any, other: Any) -> Term:
    if not isinstance(one, Term) or not isinstance(other, Term):
        _refuse()
    return Term(_SELECT, (condition, one, other), one.is_float and other.is_float)


# ---------------------------------------------------------------- code


def _code(data: Term, gradient: Term) -> tuple[bytes, bytes, int, bool]:
    numbers: list[float] = []
    forward = bytes([*_emitted(data, None, numbers), _END])
    backward = bytes([*_emitted(gradient, data, numbers), _END])
    late = any(term.code in (_X_NOW, _OUT_NOW) for term in _terms(gradient))
    return forward + backward, struct.pack(f"{len(numbers)}d", *numbers), len(forward), late


def _terms(term: Term) -> Iterator[Term]:
    yield term
    for part in term.parts:
        if isinstance(part, Term):
            yield from _terms(part)


def _emitted(term: Term, known: Term | None, numbers: list[float], waiting: int = 0) -> Iterator[int]:
    """Operands first; the result, where it is `known`, is not computed again."""
    if waiting > _MOST or len(numbers) > _MOST:
        _refuse()
    if repr(term) == repr(known):  # 0.0 and -0.0 are equal
        yield _OUT_BEFORE
        return
    if term.code == _NUMBER:
        numbers.append(float(term.parts[0]))
        yield from (_NUMBER, len(numbers) - 1)
        return
    for i, part in enumerate(term.parts):
        yield from _emitted(part, known, numbers, waiting + i)
    yield term.code
