"""What the page says, without a browser: numbers, mistakes, sentences, addresses, Python code, first values."""

from __future__ import annotations

import contextlib
import io
import json
import math
import random
import re
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from py_mini_racer import MiniRacer
from test_page_engine import hostile, valid

import gradwalk
from gradwalk.expression import ExpressionError, parsed
from gradwalk.graph import short_number
from gradwalk.show.play import script
from gradwalk.show.program import program_of

DRIVER = """
globalThis.URLSearchParams = class {
  constructor(text = "") {
    this.parts = new Map(text.split("&").filter(Boolean).map((part) => part.split("=").map(decodeURIComponent)));
  }
  get(name) { return this.parts.get(name) ?? null; }
  set(name, value) { this.parts.set(name, value); }
  toString() { return [...this.parts].map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&"); }
};
const problem = (text) => { try { module_parser.parse(text); return ""; } catch (error) { return error.message; } };
const lineOf = (graph, mode = "right") => module_engine.timeline(graph, graph.nodes.map((node) => node.value), mode);
function started(text, known) {
  const graph = module_graph.fromExpression(text);
  const values = module_starts.startingValues(graph, known);
  graph.nodes.forEach((node, i) => { node.value = values[i]; });
  return graph;
}
function valuesOf(text, known) {
  const graph = started(text, known);
  return Object.fromEntries(graph.nodes.flatMap(({ label, children, constant, value }) =>
    (children.length || constant ? [] : [[label, value]])));
}
function sentences(graph, mode) {
  const line = lineOf(graph, mode);
  const steps = Array.from({ length: line.steps + 1 }, (_, t) => module_engine.stepAt(line, t));
  return steps.map((step, t) => module_describe.sentence(line, t, step));
}
const codeOf = (graph) => module_export.pythonCode(graph, graph.nodes.map((node) => node.value), lineOf(graph).data);
const resultOf = (graph) => [...lineOf(graph).data].at(-1);
"""


@pytest.fixture(scope="module")
def v8() -> Iterator[MiniRacer]:
    names = ("numbers", "nearest", "state", "starts", "predict", "paths", "describe", "export", "graph", "parser")
    with MiniRacer() as context:
        context.eval(script(*names, "engine") + DRIVER)
        yield context


def told(v8: MiniRacer, expression: str) -> Any:
    """What a piece of JavaScript comes to; JSON has no undefined, nan or infinity, which nothing here is."""
    return json.loads(v8.eval(f"JSON.stringify({expression})"))


# ---------------------------------------------------------------- numbers


def many_numbers() -> list[float]:
    source = random.Random(3)
    found = [0.0, 1.0, 0.1, 1 / 3, 1e15, 1e16, 123456789.0, 1e-4, 9.9999e-5, 1e-5, 5e-324, 1.7976931348623157e308, 1e22]
    found += [999999.0, 999999.5, 1000000.0, 1234567.0, 0.0001, 0.00012345678, 0.000012345678, 12345.678, 123456.5]
    found += [struct.unpack("<d", source.randbytes(8))[0] for _ in range(300)]
    found += [source.uniform(-1, 1) * 10.0 ** source.randrange(-6, 9) for _ in range(300)]
    found += [round(each, source.randrange(5)) for each in found[-300:]]
    return [sign * each for each in found if math.isfinite(each) for sign in (1.0, -1.0)]


def test_numbers_are_spelled_as_in_python(v8: MiniRacer) -> None:
    """In full as repr has them, and constants as pictures and the terminal do, with a true minus sign."""
    numbers = many_numbers()
    full, few = told(v8, f"{json.dumps(numbers)}.map((x) => [module_numbers.exact(x), module_numbers.digits(x)])"
                         ".reduce(([p, q], [a, b]) => [[...p, a], [...q, b]], [[], []])")  # fmt: skip
    assert [repr(x) for x in numbers] == full
    assert [short_number(x).replace("-", "−") for x in numbers] == few
    beyond = told(v8, "[NaN, Infinity, -Infinity].map((x) => [module_numbers.exact(x), module_numbers.digits(x)])")
    assert beyond == [["nan", "nan"], ["inf", "inf"], ["-inf", "−inf"]]


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        ("undefined", ""), ("null", ""), ("NaN", "nan"), ("Infinity", "inf"), ("-Infinity", "−inf"), ("0", "0"),
        ("-0", "0"), ("1", "1"), ("-1.5", "−1.5"), ("0.12346", "0.1235"), ("999.96", "1000"), ("999.94", "999.9"),
        ("1000.4", "1000"), ("61728.4", "61728"), ("-61728.6", "−61729"), ("1234567", "1234567"),
        ("-1234567", "−1234567"), ("12345678", "1.23e7"), ("0.012345", "0.01235"), ("0.0012345", "1.23e−3"),
        ("0.001", "0.001"), ("1e-5", "0.00001"), ("1e-6", "1e−6"), ("1.5e-9", "1.5e−9"), ("1e100", "1e100"),
        ("-1.2e-7", "−1.2e−7"), ("100", "100"),
    ],
)  # fmt: skip
def test_four_digits_for_the_eye(v8: MiniRacer, number: str, shown: str) -> None:
    """More before the point only; what would take more than seven characters has an exponent."""
    assert shown == v8.eval(f"module_numbers.short({number})")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("2", 2), (" 2.5 ", 2.5), ("−3", -3), ("-3", -3), ("+3", 3), ("1,5", 1.5), (".5", 0.5), ("5.", 5),
        ("1e3", 1000), ("1E−3", 0.001), ("1e999", None), ("", None), ("a", None), ("1 2", None), ("1,2,3", None),
        ("0x10", None), ("Infinity", None), ("1e", None), (".", None),
    ],
)  # fmt: skip
def test_what_is_typed_as_a_number(v8: MiniRacer, text: str, number: float | None) -> None:
    """A true minus sign and a decimal comma are understood; what is none, or too large for one, is nothing."""
    assert number == v8.eval(f"module_numbers.typed({json.dumps(text)})")


def test_numbers_that_json_has_not(v8: MiniRacer) -> None:
    """They are words there, and come back as what they were; any other word is nan."""
    assert told(v8, "[1.5, Infinity, -Infinity, NaN, 0].map(module_numbers.toJson)") == [1.5, "inf", "-inf", "nan", 0]
    back = "[1.5, 'inf', '-inf', 'nan', 'what'].map((x) => String(module_numbers.fromJson(x)))"
    assert told(v8, back) == ["1.5", "Infinity", "-Infinity", "NaN", "NaN"]


# ---------------------------------------------------------------- mistakes


def keystrokes(a: str, b: str) -> float:
    """The fewest to make one word of another; to swap two neighbours costs a little less than one."""
    known: dict[tuple[int, int], float] = {}
    for i in range(len(a) + 1):
        for j in range(len(b) + 1):
            ways = [0.0] if i == j == 0 else []
            ways += [known[i - 1, j] + 1] if i else []
            ways += [known[i, j - 1] + 1] if j else []
            ways += [known[i - 1, j - 1] + (a[i - 1] != b[j - 1])] if i and j else []
            swapped = i > 1 and j > 1 and a[i - 2 : i] == b[j - 2 : j][::-1]
            known[i, j] = min([*ways, *([known[i - 2, j - 2] + 0.9] if swapped else [])])
    return known[len(a), len(b)]


def test_the_nearest_name(v8: MiniRacer) -> None:
    """By the fewest keystrokes, the first of several; with more than a third of the letters wrong, and two, none."""
    source = random.Random(2)
    for _ in range(300):
        names = ["".join(source.choices("abc", k=source.randrange(1, 8))) for _ in range(6)]
        wrong = "".join(source.choices("abc", k=source.randrange(1, 8)))
        near = [name for name in names if keystrokes(wrong, name) <= max(1, max(len(wrong), len(name)) // 3)]
        expected = min(near, key=lambda name: keystrokes(wrong, name), default="")
        assert expected == v8.call("module_nearest.nearest", wrong, names)


def test_mistakes_are_told_in_the_same_words(v8: MiniRacer) -> None:
    """As in the terminal; but a list of what there is is longer here, and a sign is shown as it is, not escaped."""

    def alike(message: str) -> str:
        first = message.split("\n")[0].replace(",", "")
        return re.sub(r"(did you mean|the operations are) .*|(?<=unexpected ).* (?=at character)", "", first)

    texts = hostile(3000)
    said = told(v8, f"{json.dumps(texts)}.map(problem)")
    for text, theirs in zip(texts, said, strict=True):
        try:
            parsed(text)
            ours = ""
        except ExpressionError as error:
            ours = str(error)
        assert alike(ours) == alike(theirs), text[:80]


# ---------------------------------------------------------------- first values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a*b", {"a": 2, "b": 7}), ("relu(a*b + d)", {"a": 2, "b": 7, "d": 3}), ("relu(-a)", {"a": -0.75}),
        ("log(a - b)", {"a": 12, "b": 7}), ("acos(a) + b", {"a": 0.25, "b": 7}), ("a + 1e6", {"a": 2}),
        ("tanh(a*b*c)", {"a": 0.125, "b": 7, "c": 1.75}), ("exp(a*b)/c", {"a": 0.25, "b": 7, "c": 3.5}),
        ("(a - b)*(b - c)", {"a": 2, "b": 7, "c": 3}), ("sigmoid(100*a)", {"a": -0.025}),
        ("log(-a*b)", {"a": -0.75, "b": 7}), ("relu(a - 3)*b", {"a": 4, "b": 7}), ("relu(-a - 100)", {"a": -448}),
        ("atanh(a)*acosh(b)", {"a": 0.25, "b": 7}), ("c = 3; a*c", {"a": 2, "c": 3}),
        ("asin(a*b*c*d)", {"a": 0.125, "b": 7, "c": 1.75, "d": 0.5}), ("1/(a - 2)", {"a": 1.5}),
    ],
)  # fmt: skip
def test_first_values(v8: MiniRacer, text: str, values: dict[str, float]) -> None:
    """Such that something is to be seen, the same for everybody who types the same; b is 7 already, and stays so."""
    assert values == told(v8, f"valuesOf({json.dumps(text)}, {{ b: 7 }})")


# ---------------------------------------------------------------- sentences


def test_each_step_in_a_sentence(v8: MiniRacer) -> None:
    """Forward, the seed, and what is handed on, with what was there before."""
    text = "a = 2; b = -3; relu(a*b + a) - -a/b + a**2"
    assert told(v8, f"sentences(module_graph.fromExpression({json.dumps(text)}), 'right')")[:12] == [
        "Start: the leaves have their values, nothing is computed yet.",
        "Step 1 of 22, forward: v1 = a · b = −6.",
        "Step 2 of 22, forward: v2 = v1 + a = −4.",
        "Step 3 of 22, forward: v3 = relu of v2 = 0.",
        "Step 4 of 22, forward: v4 = −a = −2.",
        "Step 5 of 22, forward: v5 = v4 ÷ b = 0.6667.",
        "Step 6 of 22, forward: v6 = v3 − v5 = −0.6667.",
        "Step 7 of 22, forward: v7 = a to the power 2 = 4.",
        "Step 8 of 22, forward: v8 = v6 + v7 = 3.333.",
        "Step 9 of 22, the seed: v8.grad = 1.",
        "Step 10 of 22, backward: v6.grad += 1 · 1 = 1; now 0 + 1 = 1.",
        "Step 11 of 22, backward: v7.grad += 1 · 1 = 1; now 0 + 1 = 1.",
    ]


def test_a_wrong_step_in_a_sentence(v8: MiniRacer) -> None:
    """What it should be, and in the mode that assigns, what is lost."""
    assert told(v8, "sentences(module_graph.fromExpression('a = 3; a*a'), 'assign')")[-2:] == [
        "Step 3 of 4, backward: a.grad = 3 · 1 = 3; now it was 0 = 3.",
        "Step 4 of 4, backward: a.grad = 3 · 1 = 3; now it was 3 = 3."
        " This is wrong: it should be 3 handed on, 6 in all.",
    ]


def test_operations_of_many_in_a_sentence(v8: MiniRacer) -> None:
    """Six are listed, of seven the first five and how many there are; numbers that are no nodes come last."""
    row = [gradwalk.Value(float(i), label=f"x{i}") for i in range(7)]
    by_hand = gradwalk.Value(1.0, (row[0],), "mine", local_grads=(1.0,))
    nodes = [gradwalk.sum(row[:6]), gradwalk.sum(row), row[1].clamp(-1.0, 2.5), by_hand]
    root = gradwalk.sum(nodes)
    words = told(
        v8,
        "((graph) => graph.nodes.map((_, i) => module_describe.inWords(graph, i)).filter(Boolean))"
        f"(module_graph.fromProgram({json.dumps(program_of(root))}))",
    )
    assert words == [
        "sum of x0, x1, x2, x3, x4, x5",
        "sum of x0, x1, x2, x3, x4, … (7)",
        "clamp of x1, −1, 2.5",
        "mine of x0",
        "sum of v1, v2, v3, v4",
    ]


# ---------------------------------------------------------------- predictions and paths


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (17, ""), (12, "forgot to add: 5 was there already"), (-17, "the sign is the other one"),
        (-7, "the sign is the other one"), (9, "a factor is missing: the local gradient"),
        (4, "a factor is missing: the local gradient"), (8, "a factor is missing: the gradient upstream"),
        (3, "a factor is missing: the gradient upstream"),
        (5, "something arrives: local gradient times upstream gradient"),
        (99, "local gradient times upstream gradient, added to what is there"),
        (17.03, ""), (17.04, "local gradient times upstream gradient, added to what is there"),
    ],
)  # fmt: skip
def test_why_an_answer_is_wrong(v8: MiniRacer, answer: float, why: str) -> None:
    """The slip that leads to just this number, of 5 + 3 · 4 = 17."""
    step = {"before": 5, "local": 3, "upstream": 4, "product": 12, "after": 17}
    assert why == v8.call("module_predict.slip", answer, step)


def test_gradients_that_were_added_along_an_edge(v8: MiniRacer) -> None:
    """7 in all, for 0.5 + 2 · 5: that is none of the other slips."""
    step = {"before": 0.5, "local": 2, "upstream": 5, "product": 10, "after": 10.5}
    assert v8.call("module_predict.slip", 7.5, step) == "along an edge gradients are multiplied, not added"


def test_paths_come_first_argument_first(v8: MiniRacer) -> None:
    """From the result down; of many, the first ones."""
    line = "lineOf(module_graph.fromExpression('a = 2; b = 3; (a*b + a)*a'))"
    parts = "({ nodes, slots, factors, product }) => [nodes, slots, factors, product]"
    paths = f"module_paths.listPaths(line, 0, most).map({parts})"
    whole = [[[4, 3, 2, 0], [0, 0, 0], [2, 1, 3], 6], [[4, 3, 0], [0, 1], [2, 1], 2], [[4, 0], [1], [8], 8]]
    for most in (1, 2, 24):
        assert whole[:most] == told(v8, f"((line, most) => {paths})({line}, {most})")


# ---------------------------------------------------------------- addresses


@pytest.mark.parametrize(
    ("state", "address"),
    [
        ({}, ""),
        ({"text": "a+b", "values": {"a": 2, "b": -0.5}, "t": 7}, "e=a%2Bb&v=a%3A2%2Cb%3A-0.5&t=7"),
        ({"mode": "assign", "theme": "dark", "isEmbedded": True}, "m=assign&theme=dark&mode=embed"),
        ({"theme": "light"}, "theme=light"),
    ],
)
def test_the_state_is_an_address(v8: MiniRacer, state: dict[str, Any], address: str) -> None:
    """What is as usual is left out; read again it is what it was."""
    usual = {"text": "", "values": {}, "t": 0, "mode": "right", "theme": None, "isEmbedded": False}
    assert address == v8.call("module_state.toHash", usual | state)
    unsaid = {"text": None, "values": {}, "t": None, "mode": "right", "theme": None, "isEmbedded": False}
    found = told(v8, f"module_state.fromHash({json.dumps('#' + address)}, ['right', 'assign'])")
    assert unsaid | state == found


@pytest.mark.parametrize(
    ("address", "what", "found"),
    [
        ("e=" + "a" * 12000, "text", "a" * 12000), ("e=" + "a" * 12001, "text", None), ("e=", "text", ""),
        ("t=1234567", "t", 1234567), ("t=12345678", "t", None), ("t=-1", "t", None), ("m=evil", "mode", "right"),
        ("theme=sepia", "theme", None), ("mode=whole", "isEmbedded", False),
        ("v=a:1,:2,b:,c,d:x,e:Infinity,f:-2e3", "values", {"a": 1, "f": -2000}),
    ],
)  # fmt: skip
def test_what_an_address_may_not_say(v8: MiniRacer, address: str, what: str, found: Any) -> None:
    """Too long, too many steps, no number, no such mode: it is as if it were not there."""
    assert found == told(v8, f"module_state.fromHash({json.dumps(address)}, ['right', 'assign'])")[what]


# ---------------------------------------------------------------- Python code

HEAD = "import gradwalk\nfrom gradwalk import Value\n\n"


def run(code: str) -> list[str]:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(code, "exported", "exec"), {})
    return out.getvalue().splitlines()


def test_python_code_of_any_expression(v8: MiniRacer) -> None:
    """Run, it gives the page's result: brackets are where Python needs them."""
    source = random.Random(6)
    texts = ["(a - b) - (a - b)", "a/(b/c)", "(-a)**2", "-a**2", "(a**b)**c", "a**b**c", "a**-2*b", "2 - (a - 3)"]
    texts += ["-(a + b)*-c", "a*-2 + b**-0.5", "a - (-b)", "(a*b)**(b*c)", "-(-a)", "(a + b)**3*2"]
    texts += [valid(source, 4, ["a", "b", "c"]) + " + a" for _ in range(80)]
    for text in texts:
        given = f"a = 1.25; b = 0.75; c = 2.5; {text}"
        code, expected = told(v8, f"((graph) => [codeOf(graph), resultOf(graph)])"
                                  f"(module_graph.fromExpression({json.dumps(given)}))")  # fmt: skip
        first, *_ = run(code)
        assert float(first.split()[-1]) == pytest.approx(expected, rel=1e-12), (text, code)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a*b + a", "a * b + a"), ("a + b + a", "a + b + a"), ("a - (b - a)", "a - (b - a)"), ("a*b*a", "a * b * a"),
        ("-a**2", "-a ** 2.0"), ("(-a)**2", "(-a) ** 2.0"), ("a**-1", "a ** (-1.0)"), ("a**b", "a ** b"),
        ("a*-2 + b", "a * -2.0 + b"), ("tanh(a + b)", "gradwalk.tanh(a + b)"), ("b + 3", "b + 3.0"),
        ("leaky_relu(a, 0.1)", "gradwalk.leaky_relu(a, 0.1)"),
    ],
)  # fmt: skip
def test_python_code_as_a_person_writes_it(v8: MiniRacer, text: str, line: str) -> None:
    """Without brackets that say nothing."""
    code = v8.eval(f"codeOf(module_graph.fromExpression('a = 2; b = 3; ' + {json.dumps(text)}))")
    assert re.search(r"^v\d = (.*)$", str(code), re.MULTILINE)[1] == line  # type: ignore[index]


def test_the_whole_of_python_code(v8: MiniRacer) -> None:
    """Leaves with their labels, what is used twice or has a name of its own, and the gradients."""
    code = v8.eval("codeOf(module_graph.fromExpression('a = 2; u = a*b; c = u*u; c + 1', 'x'))")
    assert code == HEAD + (
        'a = Value(2.0, label="a")\nb = Value(2.0, label="b")\nu = a * b\nu.label = "u"\nc = u * u\nc.label = "c"\n'
        'v1 = c + 1.0\n\nv1.backward()\nprint("v1", v1.data)\nfor leaf in [a, b]:\n'
        "    print(leaf.label, leaf.data, leaf.grad)\n"
    )


def test_python_code_of_programs(v8: MiniRacer) -> None:
    """Composites, nodes made by hand, and numbers that Python has no digits for."""
    a, b, c = (gradwalk.Value(x, label=name) for name, x in (("a", 0.5), ("b", -1.25), ("c", 2.0)))
    by_hand = gradwalk.Value(9.0, (a,), "mine", local_grads=(6.0,))
    two = gradwalk.Value(4.0, (a, b), "two", local_grads=(0.5, -2.0))
    parts = [gradwalk.softmax([a, b, c])[1], gradwalk.cross_entropy([a, b, c], 2), gradwalk.dot([a, b], [b, c])]
    parts += [gradwalk.take([a, b], 1), gradwalk.mean([a, b, c]), gradwalk.layernorm([a, b])[0], by_hand, two]
    root = gradwalk.sum(parts)
    root.backward()
    code = v8.eval(f"codeOf(module_graph.fromProgram({json.dumps(program_of(root))}))")
    first, *leaves = run(str(code))
    assert float(first.split()[-1]) == pytest.approx(root.data, rel=1e-12)
    for (name, _, grad), leaf in zip(map(str.split, leaves), (a, b, c), strict=True):
        assert (name, float(grad)) == (leaf.label, pytest.approx(leaf.grad, rel=1e-12))
    with gradwalk.ieee():
        endless = gradwalk.Value(math.inf, label="endless") * gradwalk.Value(-0.0)
    code = v8.eval(f"codeOf(module_graph.fromProgram({json.dumps(program_of(endless))}))")
    assert 'endless = Value(float("inf"), label="endless")' in str(code)
    assert "Value(-0.0)" in str(code)


def test_python_code_of_a_part_says_so(v8: MiniRacer) -> None:
    """How many nodes there are in all."""
    root = gradwalk.Value(1.0, label="x")
    for _ in range(30):
        root = root.tanh()
    code = str(v8.eval(f"codeOf(module_graph.fromProgram({json.dumps(program_of(root, most=4))}))"))
    assert "\n# the 5 nodes nearest the result, of 31: what the others add to gradients is not here\n" in code
