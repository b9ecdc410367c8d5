"""The language of expressions: what it accepts and means, what it refuses and where, and that nothing else happens."""

from __future__ import annotations

import math
import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradwalk
from gradwalk.expression import (
    FUNCTIONS,
    MOST_CHARACTERS,
    MOST_NESTING,
    MOST_NODES,
    ExpressionError,
    excerpt,
    parsed,
)
from gradwalk.ops import OPS

NUMBERS = {"a": 2.0, "b": -3.0, "c": 0.5, "d": 10.0, "x": 0.25}


def evaluated(text, engine_name="native", **values):
    expression = parsed(text)
    return expression.evaluate({k: v for k, v in {**NUMBERS, **values}.items() if k in expression.inputs}, engine_name)


@pytest.mark.parametrize(
    "text",
    [
        "a + b*c", "(a + b)*c", "a - b - c", "a/d/c", "-a**2", "a**-c", "2**a**c", "-a*-b", "a**2*b", "-(-a)", "2*3*a",
        "a*b + d", "1.5e1*a", ".5*a + 2.*b + 1E-2*c", "a - -b", "a**(1/2)", "a*2**3", "--a", "a**2**c", "a**-2**2 + a",
        "a - b*c", "a + b/c", "a/b*c", "a*b/c", "a + b - c", "a - b + c",
    ],
)  # fmt: skip
def test_means_what_python_means(text):
    """Precedence and association are Python's: same result, same number of nodes, same gradients."""
    names = {name: gradwalk.Value(number) for name, number in NUMBERS.items()}
    expected = eval(text, {}, names)
    expression = parsed(text)
    found = expression.evaluate({k: v for k, v in NUMBERS.items() if k in expression.inputs}, gradwalk.engine.NAME)
    expected.backward()
    found.backward()
    assert expected.data == found.data
    assert len(expected._topological_order()) == len(found._topological_order())
    leaves = {node.label: node.grad for node in found._topological_order() if node.label and not node._constant}
    assert {name: names[name].grad for name in leaves} == leaves


@pytest.mark.parametrize("spelling", FUNCTIONS)
def test_every_operation_of_the_table(spelling, engine):
    """Each operation can be called by its name and its aliases, with what the row's samples say."""
    op = OPS[FUNCTIONS[spelling]]
    sample = op.samples[0] if isinstance(op.samples[0], tuple) else (op.samples[0],)
    inputs = dict(zip("abcde", sample[: len(op.inputs)], strict=False))
    arguments = [*inputs, *map(repr, sample[len(op.inputs) :])]
    root = evaluated(f"{spelling}({', '.join(arguments)})", engine.name, **inputs)
    assert op.forward(*sample) == root.data
    assert root._name in (op.name, "pow_number")


def test_defaults_may_be_left_out():
    """A parameter with a default need not be given."""
    assert evaluated("leaky_relu(b)").data == -0.03


def test_a_constant_exponent_is_a_power_by_a_number():
    """x ** 2 is the row pow_number, x ** a the row pow; pow(x, 2) as well."""
    assert [evaluated(t)._name for t in ("x**(1+1)", "pow(x, 2)", "x**a")] == ["pow_number", "pow_number", "pow"]


def test_assignments_label_nodes(engine):
    """A named part keeps its name in the graph; the last statement is the root."""
    root = evaluated("c2 = a*b; e = c2 + d\n f = relu(e)", engine.name)
    assert [node.label for node in root._topological_order()] == ["a", "b", "c2", "d", "e", "f"]


def test_an_assigned_number_is_a_leaf(engine):
    """`a = 2` makes a leaf with this value, unless another one is given."""
    expression = parsed("p = -2*2; p*q")
    assert (("p", "q"), {"p"}) == (expression.inputs, expression.given)
    assert expression.evaluate({"q": 3.0}, engine.name).data == -12.0
    assert expression.evaluate({"q": 3.0, "p": 5.0}, engine.name).data == 15.0


def test_typographic_signs():
    """· × − are read as * * -, and Greek letters make names."""
    assert evaluated("α·a × 2 − β", α=1.5, β=1.0).data == 5.0


def test_newlines_inside_brackets_are_spaces():
    """A statement may go over several lines inside brackets."""
    assert evaluated("(a\n + b\n)").data == -1.0


@pytest.mark.parametrize(
    ("text", "position", "problem"),
    [
        ("a + * b", 4, "expected a name, a number or ("),
        ("a b", 2, "expected an operator"),
        ("2a", 1, "a product is written *"),
        ("(a + b", 0, "never closed"),
        ("relu(a*(b + 1)", 4, "never closed"),
        ("a)", 1, "no ( is open"),
        ("relu()", 5, "got none"),
        ("relu(a, b)", 8, "expected x (1 argument), got 2"),
        ("max(a)", 0, "max: expected x, y (2 arguments), got 1"),
        ("leaky_relu(a, 0, 1)", 17, "leaky_relu: expected x, [slope] (2 arguments), got 3"),
        ("clamp(a, b, 2)", 9, "expected a number for low"),
        ("clamp(a, 1, b)", 12, "expected a number for high"),
        ("(a) (b)", 4, "a product is written *"),
        ("fou(a)", 0, "no operation fou"),
        ("tanj(a)", 0, "did you mean tan"),
        ("tahn(a)", 0, "did you mean tanh"),
        ("a.data", 1, "no attributes"),
        ("a^2", 1, "a power is written **"),
        ("3 + 4", 0, "nothing to differentiate"),
        ("a; b", 0, "not used"),
        ("a = a", 4, "its own assignment"),
        ("p = a; p = b", 7, "assigned before"),
        ("q = p*2; p = 1; q", 9, "used before"),
        ("relu = a", 0, "is an operation"),
        ("relu + a", 0, "write relu(…)"),
        ("a, b", 1, "no ( is open"),
        ("(a, b)", 2, "only the arguments"),
        ("1e999*a", 0, "fits a float"),
        ("a == b", 3, "expected a name"),
        ("a + b = c", 6, "= only follows"),
        ("", 0, "got nothing"),
        (" ; \n", 4, "got nothing"),
        ("a +", 3, "got the end"),
        ("a = ; b", 4, "the end of the statement"),
        ("__import__('os')", 11, "text is not part"),
        ("a if b else c", 2, "expected an operator"),
        ("lambda: 1", 6, "unexpected ':'"),
        ("a\x00b", 1, "character U+0000"),
        ("[a]", 0, "lists are not part"),
        ("0x10*a", 1, "expected an operator"),
        ("max(a, b, c)", 10, "got 3"),
    ],
)
def test_errors_point_at_the_character(text, position, problem):
    """A mistake is one line, then the text and a caret under the character."""
    with pytest.raises(ExpressionError) as caught:
        parsed(text)
    assert problem in caught.value.problem
    assert "\n" not in caught.value.problem
    assert position == caught.value.position
    assert str(caught.value) == f"{caught.value.problem}\n{excerpt(text, position)}"


def test_the_caret_is_under_the_character():
    """Also on a later line, after wide characters, and far into a long line."""
    assert excerpt("a\nb + * c", 6) == "  b + * c\n      ^"
    assert excerpt("中 *", 2) == "  中 *\n     ^"
    assert excerpt("a\u0301 *", 3) == "  a\u0301 *\n    ^"  # an accent stands on the letter before it
    shown, caret = excerpt("a + " * 50 + "?" + " b" * 50, 200).splitlines()
    assert shown[caret.index("^")] == "?"
    assert len(shown) < 80


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        (50, 20, "x" * 50 + "?" + "y" * 19 + "…"),
        (51, 19, "…" + "x" * 50 + "?" + "y" * 19),
        (0, 0, "?"),
    ],
    ids=["cut behind", "cut before", "whole"],
)
def test_of_a_long_line_what_is_near_is_shown(before, after, shown):
    """50 characters before the place and 20 from it on; a mark stands for more."""
    caret = " " * shown.index("?") + "^"
    assert excerpt("x" * before + "?" + "y" * after, before) == f"  {shown}\n  {caret}"


@pytest.mark.parametrize(("length", "shown"), [(30, "n" * 30), (31, "n" * 29 + "…")])
def test_a_long_name_is_cut(length, shown):
    """To 30 characters, with a mark for the rest."""
    with pytest.raises(ExpressionError, match=f"^{shown} is used in its own assignment\n"):
        parsed(f"{'n' * length} = {'n' * length}")


def test_a_domain_error_points_at_the_operation():
    """A number outside a domain is reported when it is evaluated, at the operation."""
    with pytest.raises(ExpressionError, match=r"log: expected x > 0, got -3\.0") as caught:
        evaluated("a + log(b)")
    assert caught.value.position == 4


def test_missing_values_are_named():
    """Every leaf without a value is named, with what to add."""
    with pytest.raises(ExpressionError, match=r"no value for p, q; add p=1\.0 q=1\.0"):
        parsed("a*p + q").evaluate({"a": 1.0})
    for names, told in (("p*q*r*s*t", "p, q, r, s, t; add"), ("p*q*r*s*t*u", "p, q, r, s, t …; add")):
        with pytest.raises(ExpressionError, match=f"no value for {told} p=1.0 q=1.0 r=1.0 s=1.0 t=1.0\n"):
            parsed(names).evaluate()
    with pytest.raises(ExpressionError) as caught:
        parsed("a*p + q").evaluate({"a": 1.0, "p": 1.0})
    assert caught.value.position == 6


def test_limits():
    """Length, nesting and number of nodes are bounded, each up to and including its limit."""
    fits = ["(" * MOST_NESTING + "a" + ")" * MOST_NESTING, "-" * MOST_NESTING + "a", "a" + "+a" * (MOST_NODES // 2 - 1)]
    fits += ["a" + " " * (MOST_CHARACTERS - 1), "a**" * MOST_NESTING + "1"]
    parsed("a**2 - -a + (a) + " * 150 + "a")  # what stands side by side is not nested
    beyond = ["(" + fits[0] + ")", "-" + fits[1], fits[2] + "+a", fits[3] + " ", "a**" + fits[4]]
    for text in fits:
        parsed(text)
    for text in beyond:
        with pytest.raises(ExpressionError, match="expected at most"):
            parsed(text)


# ---------------------------------------------------------------- hostile strings

PIECES = [
    *FUNCTIONS, *"abxyz", "__class__", "__import__", "eval", "exec", "lambda", "constructor", "__proto__", "toString",
    "+", "-", "*", "/", "**", "(", ")", ",", "=", ";", "\n", " ", "1", "0", ".5", "1e5", "1e", "1e999", "9" * 40, "·",
    "−", "α", "'", '"', "`", "\\", "<script>", "${", "}", "[", "]", "{", "\x00", "\x1b[2J", "\u202e", "\ud800", "🙂",
    "((((((((((", "----------", "a**a**a**", "relu(relu(relu(", ")" * 10, "a+" * 30, "#", "@", "!", "%", "&", "|", "~",
]  # fmt: skip


def hostile(rng):
    if rng.random() < 0.1:
        return "".join(chr(rng.choice([rng.randrange(128), rng.randrange(0x110000)])) for _ in range(rng.randrange(60)))
    if rng.random() < 0.02:
        return rng.choice(PIECES) * rng.randrange(12_000)
    return "".join(rng.choice(PIECES) for _ in range(rng.randrange(1, 40)))


def attempt(text):
    """Parse, and evaluate what is valid; True if it was. Nothing but an ExpressionError may come out."""
    try:
        expression = parsed(text)
        expression.evaluate(dict.fromkeys(expression.inputs, 0.5))
        return True
    except ExpressionError as error:
        message = str(error)
    assert message.count("\n") == 2
    assert all(c.isprintable() or c == "\n" for c in message)
    return False


def test_hostile_strings():
    """Thousands of strings made to confuse: each is valid or a clear error, none takes 100 ms of computing."""
    rng = random.Random(4)
    valid = 0
    for _ in range(5_000):
        text = hostile(rng)
        began = time.process_time()
        valid += attempt(text)
        took = time.process_time() - began
        if took >= 0.1:  # a collection of garbage may have come in between: once more
            began = time.process_time()
            attempt(text)
            took = time.process_time() - began
        assert took < 0.1, text[:200]
    assert valid > 10


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=80))
def test_any_text(text):
    """Any text at all is valid or a clear error."""
    attempt(text)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_random_expressions_agree_with_python(seed):
    """A random valid expression gives the number that Python gives, to the bit."""
    rng = random.Random(seed)

    def make(depth):
        if depth == 0 or rng.random() < 0.2:
            return rng.choice(["a", "b", "c", repr(round(rng.uniform(-3, 3), 2))])
        kind = rng.randrange(4)
        if kind == 0:
            return f"({make(depth - 1)})"
        if kind == 1:
            return f"{rng.choice(['tanh', 'sin', 'relu', '-'])}({make(depth - 1)})"
        return f"{make(depth - 1)} {rng.choice('+-*')} {make(depth - 1)}"

    text = "a + " + make(5)
    names = {name: gradwalk.Value(NUMBERS[name]) for name in "abc"}
    expected = eval(text, {"tanh": gradwalk.tanh, "sin": gradwalk.sin, "relu": gradwalk.relu}, names)
    found = evaluated(text, gradwalk.engine.NAME)
    assert expected.data == found.data or math.isnan(expected.data)
