"""Formulas as they are read: what the page typesets is evaluated as a reader would, and gives the engine's numbers."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest
from chromium import Browser, Tab

from gradwalk.formula import Symbol, variable
from gradwalk.operation import Op
from gradwalk.ops import OPS
from gradwalk.show.play import page

# nothing is put in brackets here that has none on the screen: a fraction with an exponent beside it is one to its
# denominator, for who reads it
READ = """const read = (node) => {
  const inside = () => [...node.childNodes].map(read).join("");
  const [first, second] = node.children ?? [];
  const kinds = {
    "#text": () => node.data, mfrac: () => `(${read(first)})/(${read(second)})`, msqrt: () => `sqrt(${inside()})`,
    msup: () => `${read(first)}**(${read(second)})`, msub: () => read(first) + read(second),
  };
  return (kinds[node.nodeName] ?? inside)();
};
const formulas = (selector) => [...document.querySelectorAll(selector)].map(read);"""

TRICKY = [
    "((x - m)/s)**2", "(2 + 3*4)*b", "a - (b - c)", "a/(b/c)", "(a/b)/c", "(-a)**2", "-a**2", "(a*b)**c", "a**b**c",
    "(a**b)**c", "exp(a)**2", "exp(-a/b)", "-(a + b)*c", "a*(-b)", "(1/3)**a", "a**(1/3)", "(-2)**2*a", "a*(1/3)*b",
    "a - (2 + 3)", "a*sqrt(2)**b", "(2 - 5)*a", "tanh(a)**2", "sqrt(a)**3", "(a + b)/(c - 4)*a", "1e-3**a", "a - -b",
    "-(-a)", "(a/b)**-2", "2**a**-b",
]  # fmt: skip
NAMES: dict[str, Any] = {"sqrt": math.sqrt, "tanh": math.tanh, "exp": math.exp, "e": math.e, "nan": math.nan}
NAMES["log"] = lambda x: math.log(x) if x > 0.0 else math.nan


@pytest.fixture(scope="module")
def tab(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    opened = browser.open(reduced=True)
    opened.show(page(), tmp_path_factory.mktemp("page"))
    yield opened
    assert opened.errors == []
    opened.close()


def evaluated(text: str, known: dict[str, float]) -> Any:
    """A formula that was read off the page, as Python computes it."""
    plain = text.translate(str.maketrans({"\u2212": "-", "\u22c5": "*", "\u00b7": "*", "\u00a0": " "}))
    return eval(plain, {"__builtins__": {}}, {**NAMES, **known})


def random_text(source: random.Random, depth: int) -> str:
    if not depth or source.random() < 0.15:
        return source.choice(["a", "b", "c", "d", "2", "0.5", "(1/3)", "(2 + 3)", "(-2)", "sqrt(2)"])
    left, right = random_text(source, depth - 1), random_text(source, depth - 1)
    shapes = ["({0} + {1})", "({0} - {1})", "{0}*{1}", "{0}/({1})", "(-{0})", "exp(-{0})", "tanh({0})", "({0})**2"]
    return source.choice(shapes).format(left, right)


def shown(tab: Tab, text: str, **values: float) -> dict[str, float]:
    """Type an expression, give its names these values, and read every node's number."""
    fixed = "".join(f"{name} = {value}; " for name, value in values.items() if re.search(rf"\b{name}\b", text))
    tab.run(f"gradwalk.type({fixed + text!r}); gradwalk.player.go(0, 'jump')")
    assert tab.run("gradwalk.header.problem.hidden"), text
    return {
        str(name): number for name, number in tab.run("gradwalk.graph.names.map((n, i) => [n, gradwalk.line.data[i]])")
    }


def applied(op: Op) -> Any:
    """What is shown of an operation, as a formula."""
    return (op.shown or op.forward)(*map(variable, op.names))


def is_plain(op: Op) -> bool:
    """Whether it is shown as itself, and not taken apart into others."""
    arguments = applied(op).arguments
    return bool(arguments) and all(isinstance(each, Symbol) and not each.arguments for each in arguments)


def typed(op: Op) -> str:
    """An operation of one or more leaves, as one types it."""
    names = list("abc"[: len(op.inputs)])
    signs = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**"}
    if op.name in signs:
        return signs[op.name].join(names)
    return {"neg": "-a", "pow_number": "a**3"}.get(op.name) or f"{op.name}({', '.join(names)})"


def expressions() -> list[str]:
    source = random.Random(5)
    return TRICKY + [f"a + {random_text(source, 4)}" for _ in range(12)]


def test_a_formula_says_what_is_computed(tab: Tab) -> None:
    """Brackets are where a reader needs them: around a fraction that is squared, around a constant spelled as a sum."""
    for text in expressions():
        numbers = shown(tab, text, a=1.25, b=0.75, c=2.5, d=-0.5, x=3.0, m=1.0, s=0.5)
        known = {name: number for name, number in numbers.items() if name.isidentifier()}
        for line in tab.run(f"(() => {{ {READ} return formulas('.written math'); }})()"):
            *_, formula = line.split("=")
            result = evaluated(formula, known)
        root = tab.run("gradwalk.line.data[gradwalk.graph.root]")
        assert result == pytest.approx(root, rel=2e-3), (text, line)


def test_each_step_says_what_is_computed(tab: Tab) -> None:
    """So do the formula of a step forward, and the local gradient of a step back, which is the number beside it."""
    for text in expressions()[::3]:
        numbers = shown(tab, text, a=1.25, b=0.75, c=2.5, d=-0.5, x=3.0, m=1.0, s=0.5)
        known = {name: number for name, number in numbers.items() if name.isidentifier()}
        lines = tab.run(
            f"(() => {{ {READ} const found = []; for (let t = 1; t <= gradwalk.line.steps; t += 1) {{"
            " gradwalk.player.go(t, 'jump');"
            " found.push(formulas('.step .formula, .parts dd:first-of-type')); } return found.flat(); })()"
        )
        for line in lines:
            sides = [side for side in line.split("=") if "\u2202" not in side]
            results = [evaluated(side, known) for side in sides]
            assert results == pytest.approx([results[-1]] * len(results), rel=2e-3, nan_ok=True), (text, line)


PLAIN = [op for op in OPS.values() if is_plain(op)]


@pytest.mark.parametrize("op", PLAIN, ids=lambda op: op.name)
def test_one_spelling_above_the_graph_and_in_its_step(tab: Tab, op: Op) -> None:
    """An operation that is not taken apart, as a sigmoid is, is written the same in both: exp(a), and never eᵃ."""
    tab.run(f"gradwalk.type({typed(op)!r}); gradwalk.player.go(1, 'jump')")
    assert tab.run("gradwalk.header.problem.hidden")
    above, step = tab.run(f"(() => {{ {READ} return formulas('.written math, .step .formula:first-of-type'); }})()")
    assert above.removeprefix("v1=") == step.removeprefix("v1=")


def test_a_brace_is_as_high_as_its_cases(tab: Tab) -> None:
    """Forward and in a local gradient."""
    grows = tab.run(
        "(() => { const probe = document.createElement('div'); probe.innerHTML ="
        " '<math><mrow><mo class=brace>{</mo><mspace height=80px /></mrow></math>'; gradwalk.root.append(probe);"
        " const { height } = probe.querySelector('mo').getBoundingClientRect(); probe.remove();"
        " return height > 60; })()"
    )
    if not grows:
        pytest.skip("there is no font for mathematics here, so that none grows")
    shown(tab, "leaky_relu(a)*clamp(b, -1, 1)*where(a, b, c)", a=1.25, b=0.75, c=2.5)
    heights = tab.run(
        "(() => { const found = []; for (let t = 1; t <= gradwalk.line.steps; t += 1) { gradwalk.player.go(t, 'jump');"
        " for (const cases of document.querySelectorAll('.step .cases')) found.push("
        " [cases.previousElementSibling, cases].map((each) => each.getBoundingClientRect().height)); }"
        " return found; })()"
    )
    assert len(heights) > 6
    assert [pair for pair in heights if pair[0] < 0.9 * pair[1]] == []
