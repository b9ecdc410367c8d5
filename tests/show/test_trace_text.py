"""All that `gradwalk trace` prints, letter by letter: where columns stand, what goes first where there is no room.

After a change that is meant, what is expected here is what was seen and found good.
"""

from __future__ import annotations

import math
import random
import re
from typing import Any

import pytest

from gradwalk import functions
from gradwalk.expression import parsed
from gradwalk.formula import Symbol, digamma, variable
from gradwalk.graph import Graph
from gradwalk.ops import OPS
from gradwalk.show import text, trace
from gradwalk.walk import Walk

PAGES = [
    (
        "right",
        80,
        ("relu(a*b + d)", "a=2", "b=-3", "d=10"),
        """
relu(a*b + d)

forward ────────────────────────────────────────────────────────────────────────
step   node   formula      data
───────────────────────────────
       a      leaf            2
       b      leaf           -3
   1   v1     a·b            -6
       d      leaf           10
   2   v2     v1 + d          4
   3   v3     max(0, v2)      4

backward ───────────────────────────────────────────────────────────────────────
   4   v3.grad = 1  the seed
       v3  hands on 1
   5     v2.grad += 1 · 1  → 1                ∂/∂v2 = 1 if v2 > 0 else 0
       v2  hands on 1
   6     v1.grad += 1 · 1  → 1                ∂/∂v1 = 1
   7     d.grad += 1 · 1  → 1                 ∂/∂d = 1
       v1  hands on 1
   8     a.grad += -3 · 1  → -3               ∂/∂a = b
   9     b.grad += 2 · 1  → 2                 ∂/∂b = a

result ─────────────────────────────────────────────────────────────────────────
node   data   grad   finite difference   error
──────────────────────────────────────────────────
a         2     -3                  -3       0   ✓
b        -3      2                   2       0   ✓
d        10      1                   1       0   ✓
v1       -6      1
v2        4      1
v3        4      1
""",
    ),
    (
        "no_order",
        80,
        ("u = x*x; u*u + where(x, 0.1, 3)", "x=3"),
        """
u = x*x; u*u + where(x, 0.1, 3)

forward ────────────────────────────────────────────────────────────────────────
step   node   formula                        data
─────────────────────────────────────────────────
       x      leaf                              3
   1   u      x·x                               9
   2   v1     u·u                              81
   3   v2     0.1 if x < 0 or x > 0 else 3    0.1
   4   v3     v1 + v2                        81.1

backward ───────────────────────────────────────────────────────────────────────
wrong on purpose (no_order): the nodes hand on in the order they were recorded,
children before parents; nothing is reversed
the first step that goes wrong is step 6, at u

   5   v3.grad = 1  the seed
       u  hands on 0  ✗ its gradient is 18
   6     x.grad += 3 · 0  → 0                 ∂/∂x = x
   7     x.grad += 3 · 0  → 0                 ∂/∂x = x
       v1  hands on 0  ✗ its gradient is 1
   8     u.grad += 9 · 0  → 0                 ∂/∂u = u
   9     u.grad += 9 · 0  → 0                 ∂/∂u = u
       v2  hands on 0  ✗ its gradient is 1
  10     x.grad += 0 · 0  → 0                 ∂/∂x = 0
       v3  hands on 1
  11     v1.grad += 1 · 1  → 1                ∂/∂v1 = 1
  12     v2.grad += 1 · 1  → 1                ∂/∂v2 = 1

result ─────────────────────────────────────────────────────────────────────────
node   data   grad   finite difference   error
──────────────────────────────────────────────────
x         3      0                 108   1e+00   ✗
u         9      0
v1       81      1
v2      0.1      1
v3     81.1      1
""",
    ),
    (
        "assign",
        80,
        ("x*x*x", "x=3"),
        """
x*x*x

forward ────────────────────────────────────────────────────────────────────────
step   node   formula   data
────────────────────────────
       x      leaf         3
   1   v1     x·x          9
   2   v2     v1·x        27

backward ───────────────────────────────────────────────────────────────────────
wrong on purpose (assign): a child's gradient is set (=) to the contribution,
not increased (+=) by it
the first step that goes wrong is step 6, at v1

   3   v2.grad = 1  the seed
       v2  hands on 1
   4     v1.grad = 3 · 1  → 3                 ∂/∂v1 = x
   5     x.grad = 9 · 1  → 9                  ∂/∂x = v1
       v1  hands on 3
   6     x.grad = 3 · 3  → 9  ✗ right: 18
   7     x.grad = 3 · 3  → 9  ✗ right: 27

result ─────────────────────────────────────────────────────────────────────────
node   data   grad   finite difference   error
──────────────────────────────────────────────────
x         3      9                  27   7e-01   ✗
v1        9      3
v2       27      1
""",
    ),
    (
        "right",
        38,
        ("tanh(a_long_name*x)*y", "a_long_name=1234567.12345", "x=12345678.12345", "y=2"),
        """
tanh(a_long_name*x)*y

forward ──────────────────────────────
step   node                     data
────────────────────────────────────
       a_long_name     1234567.12345
       x                 12345678.12
   1   v1            1.524156833e+13
   2   v2                          1
       y                           2
   3   v3                          2

backward ─────────────────────────────
   4   v3.grad = 1  the seed
       v3  hands on 1
   5     v2.grad += 2 · 1  → 2
   6     y.grad += 1 · 1  → 1
       v2  hands on 2
   7     v1.grad += 0 · 2  → 0
       v1  hands on 0
   8     a_long_name.grad +=
1.23457e+07 · 0  → 0
   9     x.grad += 1.23457e+06 · 0  →
0

result ───────────────────────────────
node          grad
──────────────────────
a_long_name      0   ✓
x                0   ✓
y                1   ✓
v1               0
v2               2
v3               1
""",
    ),
    (
        "right",
        24,
        ("tanh(a_long_name*x)*y", "a_long_name=1234567.12345", "x=12345678.12345", "y=2"),
        """
tanh(a_long_name*x)*y

forward ────────────────
node                data
────────────────────────
a_lon…     1234567.12345
x            12345678.12
v1       1.524156833e+13
v2                     1
y                      2
v3                     2

backward ───────────────
   4   v3.grad = 1  the
seed
       v3  hands on 1
   5     v2.grad += 2 ·
1  → 2
   6     y.grad += 1 · 1
→ 1
       v2  hands on 2
   7     v1.grad += 0 ·
2  → 0
       v1  hands on 0
   8
a_long_name.grad +=
1.23457e+07 · 0  → 0
   9     x.grad +=
1.23457e+06 · 0  → 0

result ─────────────────
node          grad
──────────────────────
a_long_name      0   ✓
x                0   ✓
y                1   ✓
v1               0
v2               2
v3               1
""",
    ),
]


@pytest.mark.parametrize(("mode", "columns", "given", "page"), PAGES)
def test_a_page(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    mode: str,
    columns: int,
    given: tuple[str, ...],
    page: str,
) -> None:
    """The right pass, wrong ones, and narrow terminals: formula, step, error, data and difference go in their turn."""
    monkeypatch.setenv("COLUMNS", str(columns))
    trace.trace(given[0], given[1:], mode, False, False, False)
    assert page == "\n" + capsys.readouterr().out


SCREENS = [
    (
        0,
        16,
        """
nine of them

step 0 of 43: the beginning ────────────
Nothing is computed yet: the leaves have
their values.

gradients now ──────────────────────────
    node   data   grad
──────────────────────
    v17              0
    v16              0
    v15              0
    v14              0
    v13              0

→ or space: next   ← or b: back   hom… ─
""",
    ),
    (
        1,
        16,
        """
nine of them

step 1 of 43: forward ──────────────────
   1   v1 = tanh(a) = 0.9640275801

gradients now ──────────────────────────
    node       data   grad
──────────────────────────
    v4                   0
    v3                   0
    v2                   0
▶   v1     0.964028      0
    a             2      0

→ or space: next   ← or b: back   hom… ─
""",
    ),
    (
        17,
        20,
        """
nine of them

step 17 of 43: forward ─────────────────
  17   v17 = v15 + v16 = 8.676248221

gradients now ──────────────────────────
    node       data   grad
──────────────────────────
▶   v17     8.67625      0
    v16    0.964028      0
    v15     7.71222      0
    v14    0.964028      0
    v13     6.74819      0
    v12    0.964028      0
    v11     5.78417      0
    v10    0.964028      0
    v9      4.82014      0

→ or space: next   ← or b: back   hom… ─
""",
    ),
    (
        18,
        16,
        """
nine of them

step 18 of 43: backward ────────────────
  18   v17.grad = 1  the seed

gradients now ──────────────────────────
    node       data   grad
──────────────────────────
●   v17     8.67625      1
    v16    0.964028      0
    v15     7.71222      0
    v14    0.964028      0
    v13     6.74819      0

→ or space: next   ← or b: back   hom… ─
""",
    ),
    (
        19,
        16,
        """
nine of them

step 19 of 43: backward ────────────────
       v17  hands on 1
  19     v15.grad += 1 · 1  → 1

gradients now ──────────────────────────
    node       data   grad
──────────────────────────
▶   v17     8.67625      1
    v16    0.964028      0
●   v15     7.71222      1
    v14    0.964028      0

→ or space: next   ← or b: back   hom… ─
""",
    ),
    (
        40,
        9,
        """
nine of them

step 40 of 43: backward ────────────────
       v3  hands on 1
  40     v1.grad += 1 · 1  → 1

gradients now ──────────────────────────
    node       data   grad
──────────────────────────
    v4     0.964028      1
▶   v3      1.92806      1
    v2     0.964028      0

→ or space: next   ← or b: back   hom… ─
""",
    ),
]


@pytest.mark.parametrize(("number", "height", "screen"), SCREENS)
def test_a_screen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: int, height: int, screen: str
) -> None:
    """Of `--step`: the step, and as many nodes around it as there is room for, with what is known of them by then."""
    monkeypatch.setenv("COLUMNS", "40")
    root = parsed("+".join(["tanh(a)"] * 9)).evaluate({"a": 2.0})
    text.show(text.screen(Graph(root), Walk(root), "nine of them", number, height))
    assert screen == "\n" + capsys.readouterr().out


def test_what_is_cut_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """Nodes that are computed and leaves alike, in both tables; one that is left over counts, too."""
    for more, expected in ((0, []), (1, ["1 more nodes", "2 more steps", "1 more nodes"])):
        trace.trace("+".join(["a"] * (60 + more)), ["a=1"], "right", False, False, False)
        assert expected == re.findall(r"… ([\w ]+);", capsys.readouterr().out)


@pytest.mark.parametrize(("columns", "beside"), [(80, f"  ∂/∂{'n' * 21} = yy\n"), (79, "\n")])
def test_a_slope_stands_beside_its_number_if_it_fits(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: int, beside: str
) -> None:
    """After two blanks at least, up to the last column."""
    monkeypatch.setenv("COLUMNS", str(columns))
    trace.trace(f"{'n' * 21}*yy", [f"{'n' * 21}=2", "yy=3"], "right", False, False, False)
    assert f"{'n' * 21}.grad += 3 · 1  → 3{beside}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("columns", "line"),
    [(41, "v1     sqrt(a² + b²)   12345678.12"), (38, "v1     sqrt(a² +…   12345678.12"), (37, "v1     12345678.12")],
)
def test_a_formula_is_cut_before_it_goes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: int, line: str
) -> None:
    """It stays in its line, and as long as there is room for ten letters of it."""
    monkeypatch.setenv("COLUMNS", str(columns))
    trace.trace("where(a, b, hypot(a, b)*a)", ["a=0.5", "b=12345678.12345"], "right", False, False, False)
    assert f"   1   {line}\n" in capsys.readouterr().out


def test_each_kind_of_thing_has_its_colour(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Leaves, computed nodes, gradients, what is right and what is wrong; the rest is quiet."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    trace.trace("x*x*x + relu(y)", ["x=3", "y=0"], "assign", False, False, False)
    pieces = re.findall(r"\x1b\[([0-9;]*)m([^\x1b]*)\x1b\[0m", capsys.readouterr().out)
    seen = {(colour, said.strip()) for colour, said in pieces}
    cyan, yellow, green, red, quiet, bold = "36", "33", "32", "1;31", "90", "1"
    assert {
        (cyan, "x"), (bold, "v1"), (quiet, "leaf"), (quiet, "1"), (yellow, "v4.grad = 1"), (quiet, "the seed"),
        (quiet, "hands on 1"), (yellow, "9"), (red, "✗ right: 18"), (quiet, "∂/∂x = v1"), (red, "✗"), (green, "✓ kink"),
        (quiet, "7e-01"), (bold, "forward"),
    } <= seen  # fmt: skip
    assert (bold, "x") not in seen


# ---------------------------------------------------------------- formulas


def computed(formula: str, **known: float) -> Any:
    """A formula as it is printed, as Python computes it."""
    plain = formula.replace("·", "*")
    for signs, name in (("||", "abs"), ("⌊⌋", "floor"), ("⌈⌉", "ceil")):
        plain = re.sub(re.escape(signs[0]) + r"([^|⌋⌉]*)" + re.escape(signs[1]), rf"{name}(\1)", plain)
    raised = "⁰¹²³⁴⁵⁶⁷⁸⁹⁻"
    digits = dict(zip(raised, "0123456789-", strict=True))
    plain = re.sub(f"[{raised}]+", lambda found: "**" + "".join(digits[each] for each in found[0]), plain)
    return eval(plain, {**vars(functions), **vars(math), "digamma": digamma, **known})


@pytest.mark.parametrize("op", OPS.values(), ids=lambda op: op.name)
def test_a_formula_says_what_is_computed(op: Any) -> None:
    """Of each operation and of each of its slopes, with names that need brackets, too."""
    source = random.Random(op.name)
    symbols = [*map(variable, op.inputs)]
    for _ in range(4):
        parameters = [source.choice((2.0, 3.0, -0.5)) for _ in op.parameters]
        given = [1.1 if op.name == "acosh" else source.uniform(0.2, 0.8) for _ in op.inputs]
        out = op.forward(*given, *parameters)
        formulas = [(op.shown or op.forward)(*symbols, *parameters)]
        formulas += (op.shown_local_grads or op.local_grads)(*symbols, *parameters, variable("out"))
        expected = [out, *op.local_grads(*given, *parameters, out)]
        names = {name: f"{name} - 1.5" for name in op.inputs}
        for formula, number in zip(formulas, expected, strict=True):
            known = dict(zip(op.inputs, given, strict=True), out=out)
            assert computed(text.written(formula), **known) == pytest.approx(number)
            known |= {name: known[name] + 1.5 for name in op.inputs}
            assert computed(text.written(formula, names), **known) == pytest.approx(number)


def random_number(source: random.Random, depth: int) -> tuple[Any, float]:
    """A formula of a, b and c, and what it is where they are these; `where` and conditions are in it, too."""
    if not depth or source.random() < 0.1:
        return source.choice([(variable(name), known) for name, known in KNOWN.items()] + [(2.0, 2.0), (-0.5, -0.5)])
    head = source.choice(["+", "-", "*", "neg", "power", "where"])
    (left, x), (right, y) = (random_number(source, depth - 1) for _ in range(2))
    if head == "power":
        left, x = source.choice([(variable("a"), KNOWN["a"]), (Symbol("+", 3.0, variable("b")), 3.0 + KNOWN["b"])])
        return Symbol("power", left, 2.0), x**2
    if head == "where":
        condition, holds = random_condition(source, depth - 1)
        return Symbol("where", condition, left, right), x if holds else y
    if head == "neg":
        return Symbol("neg", left), -x
    return Symbol(head, left, right), {"+": x + y, "-": x - y, "*": x * y}[head]


def random_condition(source: random.Random, depth: int) -> tuple[Any, bool]:
    if depth < 1:
        (left, x), (right, y) = (random_number(source, 1) for _ in range(2))
        return (Symbol("<", left, right), x < y) if source.random() < 0.5 else (Symbol(">=", left, right), x >= y)
    (left, p), (right, q) = (random_condition(source, depth - 1) for _ in range(2))
    return (Symbol("and", left, right), p and q) if source.random() < 0.5 else (Symbol("or", left, right), p or q)


KNOWN = {"a": 1.25, "b": -0.75, "c": 0.5}


def test_brackets_are_where_a_reader_needs_them() -> None:
    """Random formulas, nested as rows of the table are, read as Python reads them."""
    source = random.Random(1)
    for _ in range(600):
        formula, number = random_number(source, 4)
        assert computed(text.written(formula), **KNOWN) == pytest.approx(number), text.written(formula)


def test_no_bracket_says_nothing() -> None:
    """What binds closer than what is around it stands without any."""
    a, b, c = map(variable, "abc")
    for formula, written in (
        (a * b + c, "a·b + c"), (a + b + c, "a + b + c"), (a - (b + c), "a - (b + c)"), (a * b * c, "a·b·c"),
        (-(a * b), "-a·b"), (a + 0.0, "a + 0"), (Symbol("power", a, 2.0) * b, "a²·b"), (0.0 * a, "0·a"),
        (Symbol("power", 0.0, a), "0**a"), (Symbol("power", 0.5, a), "0.5**a"), (Symbol("abs", a + b), "|a + b|"),
        (Symbol("where", ((a < b) & (b < c)) | (c < a), a, b), "a if a < b and b < c or c < a else b"),
        (Symbol("where", ((a < b) | (b < c)) & (c < a), a, b), "a if (a < b or b < c) and c < a else b"),
    ):  # fmt: skip
        assert written == text.written(formula)
