"""What the page says of a gradient is so: a number is the engine's, or it says that it is part of a sum."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from chromium import Browser
from py_mini_racer import MiniRacer
from random_programs import random_program

import gradwalk
from gradwalk import Value, composites
from gradwalk.expression import parsed
from gradwalk.finite_differences import finite_differences
from gradwalk.graph import Graph
from gradwalk.nn import GPT, MLP
from gradwalk.show.play import page, script
from gradwalk.show.program import nodes_of, program_of

DRIVER = """
function judged(program, mode) {
  const graph = module_graph.fromProgram(program);
  const line = module_engine.timeline(graph, graph.nodes.map((node) => node.value), mode);
  return JSON.stringify(graph.nodes.map((node, i) => {
    const difference = module_engine.finiteDifference(line, i);
    const said = node.children.length || node.constant || Number.isNaN(difference.slope) ? null
      : module_engine.judged(line.grads[i], difference);
    return { said, editable: module_graph.isEditable(graph, i), grad: line.grads[i], partial: node.partial };
  }));
}
function names(program) {
  return JSON.stringify(module_graph.fromProgram(program).names);
}
function namesOf(text) {
  return JSON.stringify(module_graph.fromExpression(text).names);
}
function started(text) {
  const graph = module_graph.fromExpression(text);
  const values = module_starts.startingValues(graph, {});
  const line = module_engine.timeline(graph, values, "right");
  return JSON.stringify({ problems: line.problems, locals: [...line.contributions].map((step) => step.local) });
}
"""


@pytest.fixture(scope="module")
def v8() -> Iterator[MiniRacer]:
    with MiniRacer() as context:
        context.eval(script("graph", "engine", "starts", "export"))
        context.eval(DRIVER)
        yield context


def test_a_thing_has_one_name(v8: MiniRacer) -> None:
    """What the page calls a node, the terminal and the pictures do, too."""
    source = random.Random(8)
    roots = [random_program(source) for _ in range(10)] + [MLP(2, [2, 1])([0.5, -1.0])]
    a, b, v1 = Value(1.0, label="a"), Value(2.0, label="a"), Value(3.0, label="v1")
    roots.append((a * b + v1) * a)
    for root in roots:
        assert plain(v8.call("names", program_of(root))) == Graph(root).names
    assert "l0.n1.w0" in Graph(roots[-2]).names
    assert Graph(roots[-1]).names == ["a", "a#2", "v2", "v1", "v3", "v4"]


@pytest.mark.parametrize(
    "text",
    [
        "a/sqrt(2)",
        "a*(1/3) + (2 + 3*4)*b",
        "a - -2",
        "max(1, 2)*a**(1/2) + tanh(0.5)*-(-2)*b",
        "exp(-(1/2))*a*(2**0.5)",
        "123456.789*a - 0.1234567891*a + 1e-12*a - 12345678*a + 1234567891*a/0.000012345678",
    ],
)
def test_what_is_written_stays_written(v8: MiniRacer, text: str) -> None:
    """sqrt(2) stays sqrt(2), on the page as in the terminal."""
    expression = parsed(text)
    root = expression.evaluate(dict.fromkeys(expression.inputs, 1.5))
    assert plain(v8.call("namesOf", text)) == Graph(root).names
    assert plain(v8.call("names", program_of(root))) == Graph(root).names
    if text == "a/sqrt(2)":
        assert Graph(root).names == ["a", "sqrt(2)", "v1"]


def plain(names: str) -> list[str]:
    return [name.replace("\u2212", "-") for name in json.loads(names)]


@pytest.mark.parametrize(
    "loss",
    [
        pytest.param(lambda: MLP(3, [8, 8, 1])([1.0, -2.0, 0.5]) ** 2, id="mlp"),
        pytest.param(lambda: gpt_loss(), id="gpt"),
        pytest.param(lambda: saturated(), id="saturated"),
    ],
)
def test_models_get_no_cross(v8: MiniRacer, loss: Any) -> None:
    """Whatever a right gradient is too small for, the difference says it cannot tell; most can be told."""
    judged = json.loads(v8.call("judged", program_of(loss()), "right"))
    said = [leaf["said"] for leaf in judged if leaf["said"] is not None]
    assert -1 not in said
    assert said.count(1) > 0.6 * len(said)


def gpt_loss() -> Any:
    model = GPT(vocab_size=9, block_size=4, n_embd=8, n_head=2, n_layer=1)
    return model.loss([0, 3, 5, 1])


def saturated() -> Any:
    d, w2, b = Value(3.0), Value(2.625), Value(1.0)
    return gradwalk.sigmoid(gradwalk.exp(d) - w2 / b)


@pytest.mark.parametrize("text", ["tanh(1e7*x - 5e6)", "sin(1e9*x)", "3000 + erf(1e13*x*y*1e7)", "sigmoid(x/y)*x"])
def test_what_is_steep_gets_no_cross(v8: MiniRacer, text: str) -> None:
    """To a step that is too large for it a steep function looks flat, or anything; a smaller step contradicts."""
    expression = parsed(text)
    numbers = {"x": 0.5, "y": 1e-7} if text.startswith("s") or "y" not in text else {"x": 1.2e-13, "y": -1.2e-13}
    root = expression.evaluate({name: numbers[name] for name in expression.inputs})
    root.backward()
    differences = finite_differences(root)
    assert differences is not None
    assert -1 not in [found.verdict(found.leaf.grad) for found in differences]
    assert -1 not in [leaf["said"] for leaf in json.loads(v8.call("judged", program_of(root), "right"))]
    assert 1 not in [found.verdict(1.5 * found.leaf.grad + 1.0) for found in differences]


# ---------------------------------------------------------------- a graph that is cut down


def test_partial_gradients_are_called_so(v8: MiniRacer) -> None:
    """Of a graph that is cut down every gradient is the whole graph's, or the page knows that it is a part."""
    source = random.Random(3)
    values = [Value(source.uniform(-1, 1), label=f"x{i}") for i in range(20)]
    for _ in range(3000):
        values.append(source.choice(values[-40:]) * 0.7 + source.choice(values) * 0.3)
    root = composites.sum(values[-30:] + values[:20])
    root.backward()
    program = program_of(root, most=200)
    judged = json.loads(v8.call("judged", program, "right"))
    partial = 0
    for shown, node in zip(judged, nodes_of(root, most=200), strict=True):
        if node._constant:
            continue
        if shown["partial"]:
            partial += 1
            assert (shown["said"], shown["editable"]) == (None, False)
        else:
            assert shown["grad"] == pytest.approx(node.grad, rel=1e-12)
    assert partial > 5


def test_a_part_is_called_so_wherever_it_is_said(browser: Browser, tmp_path: Any) -> None:
    """Of a leaf that is used below the cut, too: by its card, in the step's words, at the sum of its paths, in code."""
    x, y = Value(2.0, label="x"), Value(3.0, label="y")
    program = program_of(x * y + gradwalk.tanh(x) * y, most=3)
    tab = browser.open()
    tab.without_downloads()
    tab.show(page(), tmp_path, "")
    tab.run(f"gradwalk.start = {{ program: {json.dumps(program)} }}; gradwalk.showProgram()")
    leaf = tab.run("gradwalk.graph.names.indexOf('x')")
    assert tab.run(f"gradwalk.graph.nodes[{leaf}].partial")
    step = tab.run(f"gradwalk.line.contributions.child.indexOf({leaf})")
    tab.run(f"gradwalk.player.go(gradwalk.line.forwardSteps + 2 + {step}, 'step')")
    tab.run(f"gradwalk.drawing.focus({leaf})")
    tab.run("gradwalk.study.choose('paths')")
    tab.run(f"gradwalk.study.paths.choice.value = '{leaf}'; gradwalk.study.paths.write()")
    code = tab.run(
        "new Promise((done) => { const own = URL.createObjectURL;"
        " URL.createObjectURL = (blob) => { blob.text().then(done); return own(blob); };"
        " document.querySelector('[data-save=python]').click(); })"
    )
    part = "a part of the gradient: the rest of the graph, which is not shown, adds to it"
    assert part in tab.run("document.activeElement.getAttribute('aria-label')")
    assert part in tab.text("[aria-live]:not(.problem)")
    assert part in tab.text(".detail")
    assert part in tab.text(".paths .told")
    assert "what the others add to gradients is not here" in code
    tab.close()


def test_a_whole_graph_has_no_partial_gradient() -> None:
    """Nothing is marked where nothing was cut."""
    x = Value(2.0)
    assert not any("partial" in node for node in program_of(x * x + x)["nodes"])


# ---------------------------------------------------------------- constants


def test_constants_receive_nothing(v8: MiniRacer) -> None:
    """No step hands a gradient to a number that stands in the text."""
    program = "module_engine.timeline(module_graph.fromExpression('sqrt(2)*a + 5*a'), [], 'right')"
    steps = v8.eval(
        f"JSON.stringify([...{program}.contributions].map((step) => {program}.graph.nodes[step.child].constant))"
    )
    assert json.loads(steps) == [False] * 4


# ---------------------------------------------------------------- values to begin with


@pytest.mark.parametrize(
    "text",
    [
        "relu(x - 10)", "relu(a - b) + relu(b - c)", "tanh(a*b*c)", "log(a - b)", "sqrt(a - 3)", "sigmoid(a*b*c*d)",
        "relu(-x)", "exp(a*b*c)", "relu(w1*x + b1)*w2 + relu(w3*x + b2)*w4", "asin(x)", "atanh(a*b)",
        "tanh(w*x + b) - y", "maximum(a, b)*minimum(a, c)", "1/(a - 2)", "relu(a - 1000)*b", "tanh(w*x + b)",
        "sigmoid(w*x + b)", "(tanh(w*x + b) - y)**2", "exp(a*b)/(1 + exp(a*b))", "tanh(tanh(w*x + b)*v + c)",
        "relu(-a) + relu(a - b)", "relu(-a)*relu(-b)*relu(-c)", "relu(a - b) + relu(b - c) + relu(c - d)",
        "sigmoid(100*a)", "acosh(a)*atanh(b)*log(c - d)",
    ],
)  # fmt: skip
def test_expressions_begin_alive(v8: MiniRacer, text: str) -> None:
    """An expression that is no example begins inside every domain, and no node is dead or saturated."""
    found = json.loads(v8.call("started", text))
    assert found["problems"] == []
    if "maximum" not in text:
        assert [local for local in found["locals"] if not 0.05 < abs(local) < 1e4] == []


def leaves(tab: Any) -> dict[str, float]:
    return tab.run("gradwalk.valuesByName()")  # type: ignore[no-any-return]


def test_the_readme_command_opens_as_the_example(browser: Browser, tmp_path: Any) -> None:
    """`gradwalk play 'relu(a*b + d)'` has the example's values."""
    tab = browser.open()
    tab.show(page("relu(a*b + d)"), tmp_path, "")
    tab.settle()
    assert leaves(tab) == {"a": 2, "b": -3, "d": 10}
    tab.close()


def typed(tab: Any, text: str) -> None:
    tab.run(f"(() => {{ gradwalk.header.field.value = {json.dumps(text)}; gradwalk.header.typed(); }})()")
    tab.settle()


def test_what_stands_in_the_text_wins(browser: Browser, tmp_path: Any) -> None:
    """An assignment that is typed in front takes effect, an edit of that value changes the text, others stay."""
    tab = browser.open()
    tab.show(page("relu(a*b + d)"), tmp_path, "")
    tab.settle()
    typed(tab, "a = 5; relu(a*b + d)")
    assert leaves(tab) == {"a": 5, "b": -3, "d": 10}
    tab.run("gradwalk.edit(gradwalk.graph.names.indexOf('a'), 7)")
    assert tab.run("gradwalk.header.field.value") == "a = 7; relu(a*b + d)"
    typed(tab, "relu(a*b + d) + c")
    assert {name: value for name, value in leaves(tab).items() if name != "c"} == {"a": 7, "b": -3, "d": 10}
    tab.close()


def test_pictures_keep_their_labels(browser: Browser, tmp_path: Any) -> None:
    """In an exported picture the halo of a label is painted below its digits, as on the screen."""
    tab = browser.open()
    tab.show(page("relu(a*b + d)"), tmp_path, "")
    tab.settle()
    text = tab.run(
        "new Promise((done) => { const own = URL.createObjectURL;"
        " URL.createObjectURL = (blob) => { blob.text().then(done); return own(blob); };"
        " document.querySelector('[data-save=svg]').click(); })"
    )
    assert text.count('paint-order="stroke"') >= 5
    tab.close()
