"""The page's parser and engine, run in V8 without a browser, against the package: same language, same numbers."""

from __future__ import annotations

import functools
import json
import math
import operator
import random
import struct
import time
from collections.abc import Iterator
from typing import Any

import pytest
from py_mini_racer import MiniRacer

import gradwalk
from gradwalk import composites, engine, expression
from gradwalk.expression import ExpressionError, parsed
from gradwalk.finite_differences import finite_differences
from gradwalk.graph import Graph, glyph_of
from gradwalk.ops import OPS
from gradwalk.show.play import script
from gradwalk.show.program import nodes_of, program_of
from gradwalk.walk import MODES, Walk

HOSTILE = 100_000

DRIVER = """
const bits = new DataView(new ArrayBuffer(8));
const encode = (x) => { bits.setFloat64(0, x); return bits.getBigUint64(0).toString(16).padStart(16, "0"); };
const decode = (digits) => { bits.setBigUint64(0, BigInt("0x" + digits)); return bits.getFloat64(0); };
function verdicts(texts) {
  return JSON.stringify(texts.map((text) => {
    let verdict;
    // a slow one is tried again: the machine may have been busy with something else
    for (let attempt = 0; attempt < 3; attempt += 1) {
      const start = Date.now();
      try { module_parser.parse(text); verdict = -1; }
      catch (error) {
        if (!(error instanceof module_parser.ExpressionError)) return "raised " + error;
        verdict = [...text.slice(0, error.position)].length;
      }
      if (Date.now() - start <= 100) return verdict;
    }
    return "slow";
  }));
}
function answers(graph, values, mode) {
  const line = module_engine.timeline(graph, values, mode);
  return JSON.stringify({
    labels: graph.nodes.map((node) => node.label), ops: graph.nodes.map((node) => node.op),
    data: [...line.data].map(encode), grads: [...line.grads].map(encode),
    steps: [...line.contributions].map((step) => [
      step.node, step.child, ...[step.local, step.upstream, step.product, step.before, step.after].map(encode)]),
    firstWrong: line.firstWrong < 0 ? null : line.contributions.node[line.firstWrong],
    problems: line.problems.map((problem) => problem.message),
    slopes: graph.nodes.map((node, i) => (
      node.children.length ? null : encode(module_engine.finiteDifference(line, i).slope))),
    kinks: graph.nodes.map((node, i) => module_engine.finiteDifference(line, i).isKink),
    verdicts: graph.nodes.map((node, i) => (
      node.children.length || node.constant ? null : module_engine.judged(
        line.grads[i], module_engine.finiteDifference(line, i), line.data[graph.root]))),
  });
}
function valuesOf(graph, given) {
  return graph.nodes.map((node) => (
    node.label in given && !node.children.length ? decode(given[node.label]) : node.value));
}
function ofText(text, given, mode) {
  const graph = module_graph.fromExpression(text);
  const values = valuesOf(graph, given);
  return answers(graph, values, mode);
}
function codeOf(text, given) {
  const graph = module_graph.fromExpression(text);
  const values = valuesOf(graph, given);
  return module_export.pythonCode(graph, values, module_engine.forward(graph, values).data);
}
function calledOf(program) {
  const graph = module_graph.fromProgram(program);
  const glyphs = graph.nodes.map((node) => (node.children.length ? module_describe.glyph(node) : ""));
  return JSON.stringify({ names: graph.names, glyphs });
}
function ofProgram(program, mode, edits = {}) {
  const graph = module_graph.fromProgram(program);
  return answers(graph, graph.nodes.map((node, i) => edits[i] ?? node.value), mode);
}
function savedAndOpened(program, edits) {
  const graph = module_graph.fromProgram(program);
  const line = module_engine.timeline(graph, graph.nodes.map((node, i) => edits[i] ?? node.value), "right");
  return ofProgram(JSON.parse(JSON.stringify(module_graph.toProgram(line))), "right");
}
"""


@pytest.fixture(scope="module")
def v8() -> Iterator[MiniRacer]:
    with MiniRacer() as context:
        context.eval(script("parser", "graph", "engine", "state", "export", "examples", "describe") + DRIVER)
        yield context


def encode(number: float) -> str:
    return struct.pack(">d", number).hex()


def decode(digits: str) -> float:
    return struct.unpack(">d", bytes.fromhex(digits))[0]


def close(expected: float, actual: float, tolerance: float) -> bool:
    if math.isnan(expected) or math.isnan(actual):
        return math.isnan(expected) and math.isnan(actual)
    return expected == actual or abs(expected - actual) <= tolerance * max(abs(expected), abs(actual), 1e-290)


# ---------------------------------------------------------------- the language


def valid(source: random.Random, depth: int, names: list[str], exact: bool = False) -> str:
    """A random expression that is valid; `exact` keeps to what IEEE arithmetic fixes to the bit."""
    if depth == 0 or source.random() < 0.15:
        return source.choice(names) if source.random() < 0.75 else f"{source.uniform(0.1, 3):.3g}"

    def part() -> str:
        return valid(source, depth - 1, names, exact)

    smooth = ("tanh", "sin", "cos", "atan", "sigmoid", "relu", "gelu", "silu", "softplus", "elu", "asinh", "erf", "abs")
    kind = source.random()
    if kind < 0.65 or exact:
        return f"({part()} {source.choice('+-*/' if exact else '+-*')} {part()})"
    if kind < 0.9:
        return f"{source.choice(smooth)}({part()})"
    return source.choice([f"({part()})**2", f"-{part()}", f"max({part()}, {part()})", f"hypot({part()}, 1)"])


def mutated(source: random.Random, text: str) -> str:
    """A few characters changed, dropped, doubled or put in: mostly not valid any more."""
    pieces = [
        "(", ")", ",", ";", "=", "\n", "**", "*", "-", "+", "/", ".", "e", "1e", "1e999", "0x", "__", "__proto__",
        "constructor", "import", "eval", "relu", "relu(", "pow(", "clamp(", "π", "λ", "·", "×", "−", "\u00a0", "\u200b",
        "<script>", "</script>", "\x00", "\x1b[2J", "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"),
        "'", '"', "`", "${x}", "\\", "\u2028", "\u202e", "²", "Ω", "ﬁ", "a=", "toString", "NaN", "Infinity", "١",
    ]  # fmt: skip
    characters = list(text)
    for _ in range(source.randint(1, 4)):
        place = source.randint(0, len(characters))
        action = source.random()
        if action < 0.4 and place < len(characters):
            characters.pop(place)
        elif action < 0.5 and place < len(characters):
            characters.insert(place, characters[place])
        else:
            characters.insert(place, source.choice(pieces))
    return "".join(characters)


def extremes() -> list[str]:
    """Strings at, just inside and just outside the limits."""
    deep, long = expression.MOST_NESTING, expression.MOST_NODES
    texts = [
        "",
        " ",
        ";",
        "\n",
        "a",
        "a=1",
        "1",
        "-",
        "(" * deep + "a" + ")" * deep,
        "(" * (deep + 1) + "a" + ")" * (deep + 1),
    ]
    texts += [
        "-" * deep + "a",
        "-" * (deep + 1) + "a",
        "**".join("a" * deep),
        "**".join(["a"] * (deep + 2)),
        "(" * 9000,
    ]
    texts += [
        "+".join(["a"] * (long // 2)),
        "+".join(["a"] * (long // 2 + 1)),
        "a" * 10_000,
        "a" * 10_001,
        "😀" * 10_000,
        "😀" * 10_001,
    ]
    texts += ["1e308*a", "1e309*a", "9" * 400 + "*a", "." * 10_000, "a;" * 5000, "relu(" * 2000, ",".join("a" * 5000)]
    return texts


def hostile(count: int) -> list[str]:
    source = random.Random(7)
    texts = extremes()
    names = ["a", "b", "x1", "λ", "_", "loss"]
    alphabet = [*"ab1. ()+-*/,;=\n_e", "relu", "max", "λ", "·", "<", ">", "&", "'", "\x7f"]
    while len(texts) < count:
        if source.random() < 0.75:
            text = valid(source, source.randint(1, 4), names)
            if source.random() < 0.3:
                text = f"c = {text}; c + a"
            texts.append(mutated(source, text) if source.random() < 0.85 else text)
        else:
            texts.append("".join(source.choices(alphabet, k=source.randint(0, 24))))
    return texts


def python_verdict(text: str) -> int | str:
    """-1 for a valid program, else the place of the mistake; "slow" if it took over 100 ms of the processor."""
    for _ in range(3):  # a slow one is tried again: the collector may have been at work
        start = time.process_time()
        try:
            parsed(text)
            verdict = -1
        except ExpressionError as error:
            verdict = error.position
        if time.process_time() - start <= 0.1:
            return verdict
    return "slow"


def test_hostile_strings_get_the_same_verdict(v8: MiniRacer) -> None:
    """100,000 strings, most of them broken: both parsers accept the same, and point at the same character."""
    texts = hostile(HOSTILE)
    found: list[Any] = []
    for start in range(0, len(texts), 5000):
        found += json.loads(v8.call("verdicts", texts[start : start + 5000]))
    differing = [
        (text[:80], ours, theirs)
        for text, theirs in zip(texts, found, strict=True)
        if (ours := python_verdict(text)) != theirs
    ]
    assert differing == []
    accepted = sum(verdict == -1 for verdict in found)
    assert 0.05 < accepted / len(found) < 0.95  # the strings are neither all broken nor all valid


def test_functions_are_the_same(v8: MiniRacer) -> None:
    """The page knows every spelling of every operation that the package knows, and no other."""
    assert json.loads(v8.eval("JSON.stringify(Object.fromEntries(module_parser.FUNCTIONS))")) == expression.FUNCTIONS


def test_limits_are_the_same(v8: MiniRacer) -> None:
    """So are the limits of length, size and nesting."""
    limits = json.loads(
        v8.eval("JSON.stringify([module_parser.MOST_CHARACTERS, module_parser.MOST_NODES, module_parser.MOST_NESTING])")
    )
    assert limits == [expression.MOST_CHARACTERS, expression.MOST_NODES, expression.MOST_NESTING]


# ---------------------------------------------------------------- the numbers


def compare(root: Any, answer: dict[str, Any], mode: str, tolerance: float) -> None:
    """Every number of the page against the walk of the package."""
    walked = Walk(root, mode)
    walked.seek(-1)
    assert [node._name for node in walked.order] == answer["ops"]
    for place, node in enumerate(walked.order):
        assert close(node.data, decode(answer["data"][place]), tolerance), (place, node)
        grad = 0.0 if node._constant else walked.grad(node)  # the page hands nothing on to a constant
        assert close(grad, decode(answer["grads"][place]), tolerance), (place, node)
    places = {node: place for place, node in enumerate(walked.order)}
    expected = [
        (places[step.node], places[part.child], *part[1:])
        for step in walked
        if not step.is_seed
        for part in step.contributions
        if not part.child._constant
    ]
    assert len(expected) == len(answer["steps"])
    for ours, theirs in zip(expected, answer["steps"], strict=True):
        assert ours[:2] == tuple(theirs[:2])
        assert all(close(a, decode(b), tolerance) for a, b in zip(ours[2:], theirs[2:], strict=True)), (ours, theirs)


@pytest.mark.parametrize("mode", MODES)
def test_random_expressions(v8: MiniRacer, mode: str) -> None:
    """Data, gradients and each step's arithmetic equal the package's to 1e-12, in the right and the wrong modes."""
    source = random.Random(mode)
    compared = 0
    while compared < 200:
        names = ["a", "b", "c", "d"]
        first = valid(source, 3, names)
        text = f"u = {first}; v = {valid(source, 3, [*names, 'u'])}; u * v + {valid(source, 2, ['u', 'v', 'a'])}"
        values = {name: source.uniform(-2, 2) for name in names}
        try:
            root = parsed(text).evaluate(values)
        except ExpressionError:
            continue
        answer = json.loads(v8.call("ofText", text, {name: encode(value) for name, value in values.items()}, mode))
        compare(root, answer, mode, 1e-12)
        assert answer["problems"] == []
        compared += 1


@pytest.mark.parametrize("mode", MODES)
def test_zero_times_infinity_hands_on_nothing(v8: MiniRacer, mode: str) -> None:
    """A gradient of 0 at an infinite slope, and an infinite gradient at a slope of 0, as in the package."""
    for text in ("a * sqrt(b) + b", "cbrt(a * b) + a", "cbrt(a * a) * b + a", "sqrt(a**2) + a * log(1.0 + b)"):
        answer = json.loads(v8.call("ofText", text, {"a": encode(0.0), "b": encode(0.0)}, mode))
        compare(parsed(text).evaluate({"a": 0.0, "b": 0.0}), answer, mode, 0.0)


def test_what_is_stopped_hands_on_nothing_whatever_comes(v8: MiniRacer) -> None:
    answer = json.loads(
        v8.call("ofText", "b * stop_gradient(a) + a", {"a": encode(0.5), "b": encode(math.nan)}, "correct")
    )
    assert decode(answer["grads"][answer["labels"].index("a")]) == 1.0


@pytest.mark.parametrize("mode", MODES)
def test_arithmetic_is_exact(v8: MiniRacer, mode: str) -> None:
    """With + - * / alone every number is the package's, to the bit."""
    source = random.Random(mode)
    compared = 0
    while compared < 60:
        text = (
            f"u = {valid(source, 4, ['a', 'b', 'c'], exact=True)}; u + {valid(source, 3, ['a', 'b', 'u'], exact=True)}"
        )
        values = {name: source.uniform(-2, 2) for name in "abc"}
        try:
            root = parsed(text).evaluate(values)
        except ExpressionError:
            continue
        answer = json.loads(v8.call("ofText", text, {name: encode(value) for name, value in values.items()}, mode))
        compare(root, answer, mode, 0.0)
        compared += 1


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "right"])
def test_first_wrong_step(v8: MiniRacer, mode: str) -> None:
    """The page and the walk name the same node as the first to go wrong."""
    text = "ea = exp(a); eb = exp(b); t = ea + eb; p = ea / t; -log(p)"
    values = {"a": 1.0, "b": 2.0}
    root = parsed(text).evaluate(values)
    walked = Walk(root, mode)
    wrong = walked.first_difference
    assert wrong is not None
    answer = json.loads(v8.call("ofText", text, {name: encode(value) for name, value in values.items()}, mode))
    assert walked.order.index(walked[wrong].node) == answer["firstWrong"]


def test_finite_differences_are_those_of_check(v8: MiniRacer) -> None:
    """The column beside the gradients has the numbers that `gradwalk trace` prints."""
    text, values = "relu(a*b + d) * c - a/c + d**3", {"a": 2.0, "b": -3.0, "d": 10.0, "c": 0.3}
    root = parsed(text).evaluate(values)
    answer = json.loads(v8.call("ofText", text, {name: encode(value) for name, value in values.items()}, "right"))
    differences = finite_differences(root)
    assert differences is not None
    for difference in differences:
        place = answer["labels"].index(difference.leaf.label)
        assert close(difference.slope, decode(answer["slopes"][place]), 1e-12)


@pytest.mark.parametrize(
    ("text", "at", "kink"),
    [
        ("relu(a)", 0.0, True),
        ("abs(a) + a", 0.0, True),
        ("-abs(a - 1)", 1.0, True),
        ("leaky_relu(a)", 0.0, True),
        ("abs(a) * 1e-3 + 5", 0.0, True),
        ("relu(a)", 0.5, False),
        ("a**2", 0.0, False),
        ("1e3 * a**2 + a", 0.0, False),
        ("1e6 + a**2", 0.0, False),
        ("a + 1", 3.0, False),
    ],
)
def test_kinks_are_those_of_check(v8: MiniRacer, text: str, at: float, kink: bool) -> None:
    """Where the two sides have slopes of their own, and nowhere else."""
    (difference,) = finite_differences(parsed(text).evaluate({"a": at})) or ()
    answer = json.loads(v8.call("ofText", text, {"a": encode(at)}, "right"))
    assert (kink, kink) == (difference.is_kink, answer["kinks"][answer["labels"].index("a")])


def test_domain_errors_are_told(v8: MiniRacer) -> None:
    """What Python raises for is computed on as IEEE does, and said in the same words."""
    answer = json.loads(v8.call("ofText", "log(a) + 1/b", {"a": encode(-1.5), "b": encode(0.0)}, "right"))
    assert answer["problems"] == [
        "log: expected x > 0, got -1.5 (node 'a')",
        "div: expected a divisor other than 0, got x = 1.0, y = 0.0 (node 'b')",
    ]


# ---------------------------------------------------------------- programs from Python


def composite_program() -> Any:
    a, b, c = (engine.Value(x, label=name) for name, x in (("a", 0.5), ("b", -1.25), ("c", 2.0)))
    p = composites.softmax([a, b, c])
    n = composites.rmsnorm([a, b, c]) + composites.layernorm([a, b, c])
    parts = [*p, *composites.log_softmax([a, b]), *n, composites.mean([a, b]), composites.norm([a, c])]
    parts += [composites.logsumexp([a, b]), composites.cross_entropy([a, b, c], 1), composites.dot([a, b], [b, c])]
    parts += [composites.maximum([a, b, c]), composites.minimum([a, b, c]), composites.take([a, b], 1)]
    return composites.sum(parts)


@pytest.mark.parametrize("mode", MODES)
def test_composites(v8: MiniRacer, mode: str) -> None:
    """A program of composites gives the engine's numbers: to the bit as it comes, to 1e-12 if the page computes all."""
    root = composite_program()
    program = program_of(root)
    compare(root, json.loads(v8.call("ofProgram", program, mode)), mode, 0.0)
    assert sum("data" in node for node in program["nodes"]) > 10
    compare(root, json.loads(v8.call("ofProgram", without_numbers(program), mode)), mode, 1e-12)


def without_numbers(program: dict[str, Any]) -> dict[str, Any]:
    """What the page gets to know of an expression: of operations only which they are."""
    known = ("op", "children", "parameters")
    nodes = [
        {name: node[name] for name in known if name in node} if "op" in node else node for node in program["nodes"]
    ]
    return {**program, "nodes": nodes}


def test_numbers_are_the_engines_until_a_leaf_below_them_is_another(v8: MiniRacer) -> None:
    """What was handed on is shown as it is, computed anew above an edit, and back with the leaf's old value."""
    a, b = engine.Value(0.5, label="a"), engine.Value(0.25, label="b")
    program = program_of(gradwalk.exp(a) * gradwalk.sin(b))
    program["nodes"][1] |= {"data": 7.0, "local_grads": [8.0]}  # so that it is seen where they come from
    program["nodes"][3] |= {"data": 3.0, "local_grads": [2.0]}

    def shown(edits: dict[str, float]) -> list[float]:
        answer = json.loads(v8.call("ofProgram", program, "right", edits))
        assert answer == json.loads(v8.call("savedAndOpened", program, edits))
        return [*map(decode, answer["data"]), *map(decode, answer["grads"])]

    assert shown({}) == [0.5, 7.0, 0.25, 3.0, 21.0, 8.0 * 3.0, 3.0, 2.0 * 7.0, 7.0, 1.0]
    e = math.exp(1.5)
    assert shown({"0": 1.5}) == [1.5, e, 0.25, 3.0, e * 3.0, e * 3.0, 3.0, 2.0 * e, e, 1.0]
    assert shown({"0": 0.5}) == shown({})


def test_nodes_made_by_hand(v8: MiniRacer) -> None:
    """Nodes that Python made by hand are replayed with the local gradients they recorded, whatever they are called."""
    a = engine.Value(3.0, label="a")
    by_hand = engine.Value(9.0, (a,), "tanh", local_grads=(6.0,))
    closure = engine.Value(a.data * 2.0, (a,), "relu")

    def backward() -> None:
        a.grad += 2.0 * closure.grad

    closure._backward = backward
    root = by_hand * closure
    root.backward()
    answer = json.loads(v8.call("ofProgram", program_of(root), "right"))
    assert a.grad == decode(answer["grads"][0])
    assert a.grad == 6.0 * 6.0 + 2.0 * 9.0


def test_a_large_program_is_cut_and_stays_right(v8: MiniRacer) -> None:
    """Of a large graph the nearest nodes are shown, and their gradients are the whole graph's, to the bit."""
    source = random.Random(3)
    values = [engine.Value(source.uniform(-1, 1), label=f"x{i}") for i in range(20)]
    for _ in range(3000):
        left, right = source.choice(values[-40:]), source.choice(values[-40:])
        values.append(left * right if source.random() < 0.5 else left + right * 0.5)
    root = composites.sum(values[-30:])
    root.backward()
    program = program_of(root, most=200)
    order = engine.topological_order(root)
    assert program["total"] == len(order) > 1000
    assert len(program["nodes"]) < 600
    answer = json.loads(v8.call("ofProgram", program, "right"))
    shown = zip(program["nodes"], nodes_of(root, most=200), answer["grads"], strict=True)
    whole = [(encode(node.grad), grad) for written, node, grad in shown if "children" in written]
    assert len(whole) > 100
    assert [ours for ours, _ in whole] == [theirs for _, theirs in whole]


def test_python_code_gives_the_same_numbers(v8: MiniRacer) -> None:
    """The exported code, run, has the data and the gradients that the page shows."""
    import contextlib
    import io

    examples = json.loads(v8.eval("JSON.stringify(module_examples.EXAMPLES)"))
    for example in examples:
        values = {name: encode(float(value)) for name, value in example["values"].items()}
        answer = json.loads(v8.call("ofText", example["text"], values, "right"))
        code = v8.call("codeOf", example["text"], values)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(code, "exported", "exec"), {})
        printed = [line.split() for line in out.getvalue().splitlines()[1:]]
        assert printed
        for label, data, grad in printed:
            place = answer["labels"].index(label)
            assert close(float(data), decode(answer["data"][place]), 1e-12)
            assert close(float(grad), decode(answer["grads"][place]), 1e-11)


def test_python_code_of_labels_that_are_no_names(v8: MiniRacer) -> None:
    """Each node has a name of its own in it, which is none of Python's, and the labels stay as they are."""
    labels = ["a b", "a-b", "class", "Value", "gradwalk", "v", "v_1", "x\u00b2", "\ufb01", "fi"]
    leaves = [engine.Value(1.5 + i, label=label) for i, label in enumerate(labels)]
    root = functools.reduce(operator.mul, leaves)
    v8.eval(f"var labelled = module_graph.fromProgram({json.dumps(program_of(root))})")
    code = v8.eval("module_export.pythonCode(labelled, labelled.nodes.map((node) => node.value), [])")
    made: dict[str, Any] = {}
    exec(compile(str(code), "exported", "exec"), made)
    root.backward()
    found = {each.label: each for each in made.values() if isinstance(each, gradwalk.Value) and each.label}
    assert [found[label].grad for label in labels] == [leaf.grad for leaf in leaves]


def test_examples_are_those_promised(v8: MiniRacer) -> None:
    """The starting examples, in order, each valid in Python too and inside every domain."""
    examples = json.loads(v8.eval("JSON.stringify(module_examples.EXAMPLES)"))
    expected = [
        "relu(a·b + d)",
        "a + a",
        "(a·b + a)²",
        "(a + b)·c",
        "a neuron",
        "a small MLP",
        "softmax with cross entropy",
        "attention over two tokens",
    ]
    assert expected == [example["title"] for example in examples]
    for example in examples:
        parsed(example["text"]).evaluate(example["values"])


@pytest.mark.parametrize(
    "hash_",
    ["#e=a%2Bb&v=a:2,b:-3&t=2&m=assign&theme=dark", "#", "#v=__proto__:3&e=a", "#t=-1&m=evil&v=a:NaN,:,", "#%E0%A4%A"],
)
def test_any_address_is_read(v8: MiniRacer, hash_: str) -> None:
    """An address from anywhere is read without an exception, and what is not understood is left out."""
    # V8 alone has no URLSearchParams; a small one is enough here
    v8.eval(
        "globalThis.URLSearchParams ??= class { constructor(t = '') { this.m = new Map(t.split('&').filter(Boolean)"
        ".map((p) => p.split('=').map((x) => { try { return decodeURIComponent(x); } catch { return x; } }))); }"
        " get(n) { return this.m.get(n) ?? null; } }"
    )
    found = json.loads(v8.eval(f"JSON.stringify(module_state.fromHash({json.dumps(hash_)}, ['right', 'assign']))"))
    assert found["mode"] in ("right", "assign")
    assert all(isinstance(value, int | float) for value in found["values"].values())


def test_things_are_called_as_in_python(v8: MiniRacer) -> None:
    """Operations and nodes have one name, on the page, in pictures and in the terminal."""
    long = [
        "layers.0.neurons.1.w.0",
        "layers.0.neurons.1.w.1",
        "layers.10.b",
        "lanes.10.long.b",
        "lines.10.long.b",
        "w.0",
    ]
    leaves = [gradwalk.Value(0.5 + 0.1 * i, label=label) for i, label in enumerate(long)]
    values: list[Any] = [*leaves]
    with gradwalk.ieee():
        for name, op in OPS.items():
            parameters = list(op.samples[0])[len(op.inputs) :] if op.parameters else []
            values.append(leaves[0]._apply(name, *leaves[: len(op.inputs)], *parameters))
        values += [leaves[0] ** power for power in (2, -1, -12, 0.5, 99, 100)]
        values += [gradwalk.Value(1.0, (leaves[0],), (1.0,)), gradwalk.Value(1.0, (leaves[0],), "by hand")]
        root = gradwalk.sum([*values, *gradwalk.softmax(leaves), gradwalk.cross_entropy(leaves, 1), *leaves[:2]])
    graph = Graph(root)
    found = json.loads(v8.call("calledOf", program_of(root)))
    assert found["names"] == graph.names
    glyphs = ["" if not node._children else glyph_of(node) for node in graph.order]
    assert found["glyphs"] == [glyph if len(glyph) <= 13 else f"{glyph[:12]}…" for glyph in glyphs]
