"""Operations of a script's class that C computes by the script's own formula: to the bit, and Python where it raises.

What is left to the script stays as it was."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest
from running import LECTURE_CLASS, MICROGPT_CLASS, outcome, with_gradwalk, with_python, write

from gradwalk import _native
from gradwalk.run.formulas import formula_of
from gradwalk.run.shape import shape_of

pytestmark = pytest.mark.usefixtures("folder")


def closure(slope: str, *lines: str, made: str = "out", data: str = "t") -> str:
    """The end of a method of micrograd's family."""
    return f"{made} = Value({data}, (self,), 'op')\ndef _backward():\n" + textwrap.indent(
        "\n".join([*lines, f"self.grad += {slope}"]), "    "
    ) + f"\n{made}._backward = _backward\nreturn {made}"  # fmt: skip


LECTURE = "x = self.data\nt = (math.exp(2*x) - 1)/(math.exp(2*x) + 1)\n"
MICROGRADS = {
    "the lecture's tanh": LECTURE + closure("(1 - t**2) * out.grad"),
    "gradient first": LECTURE + closure("out.grad * (1 - t**2)"),
    "by its result": "t = math.tanh(self.data)\n" + closure("(1 - out.data**2) * out.grad"),
    "by its operand": "t = math.sin(self.data)\n" + closure("math.cos(self.data) * out.grad"),
    "by both, then and now": "t = self.data**3\n" + closure("(t + self.data + out.data) * out.grad"),
    "assigned": "t = self.data * 2\n" + closure("2.0 * out.grad").replace("+= ", "= self.grad + "),
    "a local number": "t = math.sin(self.data)\n" + closure("slope * out.grad", "slope = math.cos(self.data)"),
    "a power of e": "e = math.e ** (2 * self.data)\n" + closure("(1 - out.data**2) * out.grad", data="(e - 1)/(e + 1)"),
    "two branches": "if self.data >= 0:\n    e = math.exp(-self.data)\n    t = 1 / (1 + e)\nelse:\n"
    "    e = math.exp(self.data)\n    t = e / (1 + e)\n" + closure("t * (1 - t) * out.grad"),
    "three branches": "if self.data > 20:\n    t = 1.0\nelif self.data < -20:\n    t = -1.0\nelse:\n"
    "    e = math.exp(2 * self.data)\n    t = (e - 1) / (e + 1)\n" + closure("(1 - t**2) * out.grad"),
    "a clipped exp": "c = max(min(self.data, 700), -700)\nt = math.exp(c)\n" + closure("out.grad * out.data"),
    "an assertion": "assert self.data > 0, 'positive'\nt = math.log(self.data)\n" + closure("(1/self.data) * out.grad"),
    "a refusal": "if self.data <= 0:\n    raise ValueError('positive')\nt = math.log(self.data)\n"
    + closure("(1/self.data) * out.grad"),
    "leaky": "t = self.data if self.data > 0 else 0.01*self.data\n"
    + closure("(1.0 if self.data > 0 else 0.01) * out.grad"),
    "many functions": "x = self.data\nt = math.fabs(x) + math.expm1(x/9) + math.log1p(abs(x)) + math.sqrt(x*x)"
    " + math.cos(x) + math.tan(x/9) + math.asin(math.sin(x)) + math.acos(math.cos(x)) + math.atan(x) + math.sinh(x/9)"
    " + math.cosh(x/9) - math.pow(abs(x), 0.5) + min(x, 0.5) + float(x != 1)\n" + closure("float(x < 1) * out.grad"),
    "type(self)": LECTURE + closure("(1 - t**2) * out.grad").replace("Value(", "type(self)("),
    "by name": LECTURE
    + closure("(1 - t**2) * out.grad").replace("(t, (self,), 'op')", "(data=t, _op='op', _children={self})"),
}  # fmt: skip
MICROGPTS = {
    "the lecture's tanh": LECTURE + "return Value(t, (self,), (1 - t**2,))",
    "softplus": "return Value(math.log(1 + math.exp(self.data)), (self,), [1 / (1 + math.exp(-self.data))])",
    "a slope of 0 or 1": "return Value(max(0.0, self.data), (self,), (float(self.data > 0),))",
}
CASES = {
    **{f"micrograd, {name}": (LECTURE_CLASS, body) for name, body in MICROGRADS.items()},
    **{f"microgpt, {name}": ("import math\n" + MICROGPT_CLASS, body) for name, body in MICROGPTS.items()},
}

USE = """
import random
numbers = [random.Random(1).gauss(0, 2) for _ in range(40)] + [random.Random(2).gauss(0, 9) for _ in range(20)]
numbers += [0.0, -0.0, 1.0, -1.0, 2, -3, 800.0, -800.0, 1e-300, 1e300, 5e-324, float('inf'), float('nan')]
for number in numbers:
    x = Value(number)
    try:
        y = x.op()
        z = y * 3.0 + y
        print(number, y.data, type(y.data), getattr(y, '_op', ''), len(getattr(y, '_prev', (1,))))
        z.backward()
        print(x.grad)
        x.data = x.data / 2 + 0.125
        z.backward()
        print(x.grad, y.grad)
        y.data = 0.5
        z.backward()
        print(x.grad)
        y._backward()
        print(x.grad)
    except Exception as error:
        print(type(error), error)
"""


def script(source: str, body: str) -> str:
    method = "    def op(self):\n        '''What it does.'''\n" + textwrap.indent(body, "        ") + "\n\n"
    return source.replace("    def backward", method + "    def backward")


@pytest.mark.parametrize("case", CASES)
def test_a_formula_prints_what_the_script_prints(case: str) -> None:
    """Every digit, ints, what raises, what follows numbers that were changed before backward()."""
    source = script(*CASES[case]) + USE
    write("s.py", source if "micrograd" in case else source.replace("y._backward()", "z.backward()"))
    process = with_gradwalk("s.py")
    assert with_python("s.py").stdout == process.stdout
    assert "its formula for" in process.stderr
    assert "op" in process.stderr.partition("its formula for ")[2].partition(" (")[0].split(", ")


NO_FORMULAS = {
    "divides the gradient": "t = math.log(self.data)\n" + closure("out.grad / self.data"),
    "between two factors": LECTURE + closure("(1 - t) * out.grad * (1 + t)"),
    "prints": "print('called')\n" + LECTURE + closure("(1 - t**2) * out.grad"),
    "assigns the gradient": LECTURE + closure("(1 - t**2) * out.grad").replace("+=", "="),
    "counts": "global calls\ncalls = self.data\n" + LECTURE + closure("(1 - t**2) * out.grad"),
    "a name from outside": "t = self.data * factor\n" + closure("factor * out.grad"),
    "an int": "t = 0 if self.data < 0 else self.data\n" + closure("(t > 0) * out.grad"),
    "a name twice": "t = self.data\nt = t * 2\n" + closure("(t * 2) * out.grad"),
    "looks at its result": LECTURE
    + closure("(1 - t**2) * out.grad").replace("def _b", "assert out.data < 0.9\ndef _b"),
    "checks on the way back": LECTURE + closure("(1 - t**2) * out.grad", "assert out.grad < 1e9"),
    "its math is another": "math = other\n" + LECTURE + closure("(1 - t**2) * out.grad"),
    "a keyword": "t = math.exp(self.data)\n" + closure("t * out.grad").replace("'op')", "'op', label='exp')"),
    "the gradient alone": "t = self.data + 1\n" + closure("out.grad"),
    "a slope that is an int": "t = self.data * 2\n" + closure("2 * out.grad"),
    "a number that nobody uses": "unused = 1 / self.data\nt = math.tanh(self.data) * 1.5\n" + closure("1.5 * out.grad"),
    "one on the way back": LECTURE + closure("(1 - t**2) * out.grad", "unused = 1 / out.data"),
    "an int with two zeros": "t = -(self.data < 1e5) * self.data\n" + closure("1.0 * out.grad"),
    "two steps": "t = math.exp(self.data)\n" + closure("t * out.grad", "self.grad += 0.5 * out.grad"),
}  # fmt: skip


@pytest.mark.parametrize("case", NO_FORMULAS)
def test_anything_else_is_left_to_the_script(case: str) -> None:
    before = "factor, calls = 2.0, 0\nclass other:\n    exp = staticmethod(lambda x: 0.5 * x)\n"
    write("s.py", before + script(LECTURE_CLASS, NO_FORMULAS[case]) + USE)
    process = with_gradwalk("s.py")
    assert with_python("s.py").stdout == process.stdout
    assert "class Value is replaced by gradwalk's" in process.stderr
    assert "op" not in process.stderr.partition("its formula for ")[2].partition(" (")[0].split(", ")


BINDINGS = {
    "assigned": ("from math import *", "exp", "exp = lambda x: 1.0 + x"),
    "a builtin": ("", "abs", "abs = lambda x: 2.0"),
    "a class": ("", "math.exp", "class math:\n    exp = float"),
    "an attribute": ("", "math.exp", "math.exp = float"),
    "another import": ("from math import exp", "exp", "from math import sin as exp"),
}


@pytest.mark.parametrize("case", BINDINGS)
def test_a_name_that_comes_to_mean_something_else(case: str) -> None:
    """It is looked up at every call."""
    before, called, after = BINDINGS[case]
    body = f"t = {called}(self.data) * 0.5\n" + closure("0.5 * out.grad")
    use = "\nx = Value(-1.5)\nprint(x.op().data)\n"
    write("s.py", before + "\n" + script(LECTURE_CLASS, body) + use + after + use)
    assert with_python("s.py").stdout == with_gradwalk("s.py").stdout


@pytest.mark.parametrize("case", ["by its result", "by both, then and now"])
@pytest.mark.parametrize("number", ["inf", "-inf", "nan"])
def test_infinities_that_came_later(case: str, number: str) -> None:
    """A gradient follows numbers that were changed since, whatever they are."""
    use = f"""
x = Value(0.5)
y = x.op()
x.data, y.data = float('{number}'), float('{number}')
y.backward()
print(x.grad)
"""
    write("s.py", script(LECTURE_CLASS, MICROGRADS[case]) + use)
    assert with_python("s.py").stdout == with_gradwalk("s.py").stdout


def test_a_condition_counts_as_true_or_false() -> None:
    """Any number that is not 0 holds."""
    body = "assert (self.data < 9)*1.0 + (self.data >= 1e4)*2.0\nt = math.tanh(self.data) * 3.0\n"
    write("s.py", script(LECTURE_CLASS, body + closure("(t + 3.0) * out.grad")) + "print(Value(2e4).op().data)\n")
    assert with_python("s.py").stdout == with_gradwalk("s.py").stdout


def test_a_wrapper_stays() -> None:
    """Also one that was put on by assignment, and leads to what it wraps."""
    wrapper = """
import functools
verbose = False
def logged(function):
    @functools.wraps(function)
    def inner(self):
        if verbose:
            print('called')
        return function(self)
    return inner
"""
    source = script(LECTURE_CLASS, MICROGRADS["the lecture's tanh"])
    source = source.replace("    def backward", "    op = logged(op)\n\n    def backward")
    write("s.py", wrapper + source + "verbose = True\nprint(Value(0.5).op().data)\n")
    assert with_python("s.py").stdout == with_gradwalk("s.py").stdout


def test_the_method_is_a_function_like_others() -> None:
    """It is read from the class, put back, given another name, bound, copied, and asked for its signature."""
    use = """
import copy, inspect, pickle
x = Value(0.5)
kept = Value.op
Value.op = lambda self: self * 2.0
print(x.op().data)
Value.op = kept
Value.act = Value.op
print(x.op().data, x.act().data, Value.op(x).data, Value.op.__get__(x)().data, list(map(Value.op, [x]))[0].data)

class Named(Value):
    act = Value.op

print(Named(0.5).act().data, inspect.signature(Value.op), Value.op.__name__, Value.op.__qualname__, Value.op.__doc__)
print(copy.deepcopy(Value.op) is Value.op, pickle.loads(pickle.dumps(Value.op)) is Value.op, callable(Value.op))
print(repr(Value.op).partition(' at ')[0], Value.op == kept, hash(Value.op) == hash(kept))
for wrong in (lambda: x.op(1), lambda: Value.op(), lambda: x.op(y=2)):
    try:
        wrong()
    except TypeError as error:
        print(error)
"""
    write("s.py", script(LECTURE_CLASS, MICROGRADS["the lecture's tanh"]) + use)
    plain, run = with_python("s.py"), with_gradwalk("s.py")
    assert plain.stdout == run.stdout
    assert run.returncode == 0
    assert "its formula for tanh, op" in run.stderr or "its formula for op" in run.stderr


def test_errors_are_the_scripts_own() -> None:
    """An overflow is raised in the script's line, and shown with it."""
    write("s.py", script(LECTURE_CLASS, MICROGRADS["the lecture's tanh"]) + "Value(1000.0).op()\n")
    plain, run = with_python("s.py"), with_gradwalk("s.py")
    assert plain.stderr == run.stderr.partition("\n")[2]
    assert "OverflowError" in run.stderr
    assert plain.returncode == run.returncode == 1


def test_a_subclass_and_a_method_put_in_its_place() -> None:
    """An object of a subclass is computed by the script; so is everything once the script has another method."""
    use = """
class Named(Value):
    pass

print(type(Named(0.5).op()).__name__, Named(0.5).op().data, Value.op.__name__)
x = Value(0.5)
y = x.op()
Value.op = lambda self: self * 2.0
print(x.op().data)
y.backward()
print(x.grad)
"""
    write("s.py", script(LECTURE_CLASS, MICROGRADS["by its result"]) + use)
    plain, run = with_python("s.py"), with_gradwalk("s.py")
    assert outcome(plain)[0::2] == outcome(run)[0::2]


BODIES = {
    "another attribute": LECTURE + closure("(1 - t**2) * out.grad").replace("out._backward =", "out.other ="),
    "no result": LECTURE + "out = Value(t, (self,), 'op')",
    "another result": LECTURE + "return math.tanh(t)",
    "of nothing": LECTURE + closure("(1 - t**2) * out.grad").replace("(self,)", "()"),
    "its own gradient": LECTURE + closure("(1 - t**2) * out.grad").replace("self.grad +=", "out.grad +="),
    "a condition on the way back": LECTURE + closure("(1 - t**2) * out.grad", "assert out.data < 1e9"),
    "numbers that have no quotient": "t = self.data * (1 / 0)\n" + closure("t * out.grad"),
    "two ints": "t = ((self.data < 1) + (self.data < 2)) * self.data\n" + closure("t * out.grad"),
    "the largest of three": "t = 1.0 + max(self.data, 0.0, 0.5)\n" + closure("t * out.grad"),
    "too deep": f"t = {'(self.data + ' * 40}1.0{')' * 40}\n" + closure("t * out.grad"),
}


@pytest.mark.parametrize(("case", "is_one"), [*((case, False) for case in BODIES), ("the lecture's tanh", True)])
def test_what_is_read_as_a_formula(case: str, is_one: bool) -> None:
    """Also a function by its own name, and numbers that follow from numbers."""
    body = {**BODIES, **MICROGRADS}[case].replace("math.exp", "exp").replace("2*x", "(4 / 2)*x")
    write("read.py", "from math import exp\n" + script(LECTURE_CLASS, body))
    space: dict[str, Any] = {}
    exec(compile(Path("read.py").read_text(), str(Path("read.py").resolve()), "exec"), space)
    cls = space["Value"]
    assert (formula_of(vars(cls)["op"], "Value", shape_of(cls)) is not None) == is_one


def test_a_method_without_its_source_is_none() -> None:
    space: dict[str, object] = {}
    exec(script(LECTURE_CLASS, MICROGRADS["the lecture's tanh"]), space)
    cls = space["Value"]
    assert formula_of(vars(cls)["op"], "Value", shape_of(cls)) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "code",
    [b"", b"\2", b"\0", b"\2\2\0", b"\6\0", b"\2\6\0", b"\2\2\21\0", b"\1", b"\1\1\0", b"\2\x40\0",
     b"\2" * 40 + b"\6" * 39 + b"\0"],
)  # fmt: skip
def test_what_is_no_program_is_refused(code: bytes) -> None:
    """Its end, its stack and its numbers are looked at when it is made, in both halves."""
    fine = b"\2\0"  # the operand, and the end
    for whole, gradient in ((code + fine, len(code)), (fine + code, len(fine))):
        with pytest.raises(ValueError, match="is no program"):
            _native.formula_method((fine_method, "", whole, bytes(8), gradient, False))
    with pytest.raises(ValueError, match="is no program"):
        _native.formula_method((fine_method, "", fine + fine, bytes(8), -1, False))


def fine_method(self: object) -> object:
    return self
