"""A place to learn in: the rule with its line lit, predictions, steps downhill, paths, motion that explains."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import Browser, Tab
from py_mini_racer import MiniRacer

from gradwalk import Value, composites
from gradwalk.show.play import page, script
from gradwalk.show.program import program_of


@pytest.fixture
def tab(browser: Browser) -> Iterator[Tab]:
    opened = browser.open(width=1280, height=720, reduced=True)
    yield opened
    assert opened.errors == []
    opened.close()


def study(tab: Tab, what: str) -> None:
    tab.run(f"document.querySelector('[data-study={what}]').click()")
    tab.settle()


def answer(tab: Tab, number: float) -> str:
    tab.run(f"document.querySelector('.answer').value = '{number}'")
    tab.run("document.querySelector('.asking .quiet').click()")
    tab.settle()
    return tab.text(".predict .told")


# ---------------------------------------------------------------- the beginning


def test_the_beginning_says_what_to_do(tab: Tab, tmp_path: Path) -> None:
    """One sentence, a legend for the colours, and a name for the choice of modes."""
    tab.show(page(), tmp_path)
    assert tab.text(".invitation").startswith("Press play, or the right arrow key")
    assert tab.text(".legend") == "valuegradienton an edge: local gradient"
    assert tab.run("document.querySelector('.modes').labels[0].textContent").startswith("Backward pass:")


def test_there_is_one_numbering_of_steps(tab: Tab, tmp_path: Path) -> None:
    """The counter, the heading, the slider's words and the jump to the first wrong step count alike."""
    tab.show(page("(a*b + a)**2", {"a": 2.0, "b": -3.0}), tmp_path)
    tab.run("gradwalk.setMode('assign')")
    tab.settle()
    wrong = int(tab.text(".jump").rpartition(" ")[2])
    tab.click(".jump")
    assert tab.text(".counter") == f"{wrong} / 9"
    assert tab.text(".step-title").startswith(f"Step {wrong} of 9")
    assert tab.run("document.querySelector('.timeline').getAttribute('aria-valuetext')").startswith(
        f"Step {wrong} of 9"
    )


# ---------------------------------------------------------------- the rule


def test_the_current_line_of_the_rule_is_lit(tab: Tab, tmp_path: Path) -> None:
    """Forward the first line, the seed the second, a contribution the last, with its numbers in it."""
    tab.show(page("relu(a*b + d)", {"a": 2.0, "b": -3.0, "d": 10.0}), tmp_path)
    lit = "[...document.querySelectorAll('.rule li')].findIndex((line) => line.classList.contains('lit'))"
    found = []
    for _ in range(10):
        found.append(tab.run(lit))
        tab.press("ArrowRight")
    assert found == [-1, 0, 0, 0, 1, 4, 4, 4, 4, 4]
    assert tab.text(".rule li:last-child .now").strip() == "b.grad += 2 · 1"
    assert tab.text(".rule li:nth-child(3) .now") == "v1"


@pytest.mark.parametrize(
    ("mode", "line", "says"),
    [("assign", 5, "child.grad = local"), ("breadth_first", 3, "breadth_first"), ("no_order", 3, "in order")],
)
def test_a_wrong_mode_is_a_wrong_line(tab: Tab, tmp_path: Path, mode: str, line: int, says: str) -> None:
    """The line that a mistake changes is marked."""
    tab.show(page(), tmp_path)
    tab.run(f"gradwalk.setMode('{mode}')")
    tab.settle()
    assert says in tab.text(f".rule li:nth-child({line}).mistaken")


# ---------------------------------------------------------------- predict, then reveal


def test_predicting(tab: Tab, tmp_path: Path) -> None:
    """A gradient is asked for before it is shown; an answer is judged with its reason, and counted."""
    tab.show(page("(a*b + a)**2", {"a": 2.0, "b": -3.0}), tmp_path)
    study(tab, "predict")
    assert tab.run("document.querySelector('.answer').disabled")
    tab.press("b")
    assert tab.text(".question") == "v3 hands on to v2. What is v2.grad after that?"
    hidden = "getComputedStyle(document.querySelector('tbody td:nth-child(4)')).visibility"
    assert tab.run(hidden) == "hidden"
    assert answer(tab, -8) == "Right: −8."
    assert answer(tab, 1) == "Not 1 but −8: a factor is missing: the gradient upstream."
    assert answer(tab, -8) == "Right: −8."
    assert answer(tab, 24) == "Not 24 but 16: forgot to add: −8 was there already."
    assert answer(tab, 16) == "Not 16 but −16: the sign is the other one."
    assert tab.text(".predict .score") == "2 of 5 right"
    assert tab.run("gradwalk.t") == tab.run("gradwalk.line.steps")
    assert tab.run(hidden) == "visible"
    assert tab.text(".question") == "That was the walk."


@pytest.fixture(scope="module")
def v8() -> Iterator[MiniRacer]:
    with MiniRacer() as context:
        context.eval(script("graph", "engine", "predict", "paths"))
        yield context


def test_a_right_answer_is_never_called_a_slip(v8: MiniRacer) -> None:
    """Whatever the numbers, the answer with four digits is right, and twice of it is not."""
    source = random.Random(4)
    for _ in range(300):
        before = source.choice([0.0, source.uniform(-9, 9)])
        local, upstream = source.uniform(-5, 5), source.uniform(-5, 5)
        product = local * upstream
        step = {"before": before, "local": local, "upstream": upstream, "product": product, "after": before + product}
        assert v8.call("module_predict.slip", float(f"{step['after']:.4g}"), step) == ""
        assert v8.call("module_predict.slip", 2.0 * step["after"] + 1.0, step) != ""
    tiny = {"before": 0.0, "local": 2.68e-23, "upstream": 1.0, "product": 2.68e-23, "after": 2.68e-23}
    assert v8.call("module_predict.slip", 1e-12, tiny) != ""  # small is not near
    assert v8.call("module_predict.slip", -2.68e-23, tiny) == "the sign is the other one"
    cancelled = {"before": 0.3, "local": -0.1, "upstream": 3.0, "product": -0.3 - 6e-17, "after": -5.6e-17}
    assert v8.call("module_predict.slip", 0.0, cancelled) == ""


# ---------------------------------------------------------------- downhill


def test_one_step_downhill(tab: Tab, tmp_path: Path) -> None:
    """Each chosen leaf moves against its gradient, others stay, and the result falls."""
    tab.show(page(), tmp_path)
    tab.run("gradwalk.example({ text: 'e = w*x - y; e**2', values: { w: 3, x: 2, y: 1 } })")
    study(tab, "downhill")
    tab.run("[...document.querySelectorAll('.leaves input')].slice(1).forEach((box) => box.click())")
    tab.run("document.querySelector('.rate').value = '0.01'")
    tab.run("document.querySelector('.downhill button').click()")
    tab.settle()
    assert tab.run("gradwalk.valuesByName()") == {"w": pytest.approx(3 - 0.01 * 20), "x": 2, "y": 1}
    assert tab.text(".downhill .told") == "1 step: from 25 to 21.16"


def test_a_rate_that_is_no_number_moves_nothing_and_is_marked(tab: Tab, tmp_path: Path) -> None:
    """The field says so until a number stands there."""
    tab.show(page(), tmp_path)
    tab.run("gradwalk.example({ text: 'e = w*x - y; e**2', values: { w: 3, x: 2, y: 1 } })")
    study(tab, "downhill")
    for typed, is_wrong in (("a lot", True), ("0.01", False)):
        tab.run(f"document.querySelector('.rate').value = '{typed}'")
        tab.run("document.querySelector('.downhill button').click()")
        tab.settle()
        assert tab.run("document.querySelector('.rate').classList.contains('bad')") is is_wrong
        assert (tab.run("gradwalk.valuesByName()") == {"w": 3, "x": 2, "y": 1}) is is_wrong


def test_the_mlp_learns_its_data(tab: Tab, tmp_path: Path) -> None:
    """Run until it is stopped: the data stay, the loss falls, and the curve has a point for each step."""
    tab.show(page(), tmp_path)
    tab.run(
        "(() => { const s = document.querySelector('.examples'); s.value = '5';"
        " s.dispatchEvent(new Event('change')); })()"
    )
    study(tab, "downhill")
    before = tab.run("gradwalk.line.data.at(-1)")
    tab.run("document.querySelectorAll('.downhill .quiet')[1].click()")
    tab.wait("gradwalk.study.downhill.history.length > 8")
    tab.run("document.querySelectorAll('.downhill .quiet')[1].click()")
    assert tab.run("gradwalk.line.data.at(-1)") < 0.5 * before
    values = tab.run("gradwalk.valuesByName()")
    assert (values["x1"], values["x2"], values["y"]) == (1, 2, 1)
    points = tab.run("document.querySelector('.falling').getAttribute('points')").split(" ")
    assert len(points) == tab.run("gradwalk.study.downhill.history.length")
    ends = [float(points[end].partition(",")[0]) for end in (0, -1)]
    assert sum(ends) == tab.run("document.querySelector('.falling').ownerSVGElement.viewBox.baseVal.width")


def test_the_boundary_moves_while_it_learns(tab: Tab, tmp_path: Path) -> None:
    """On two moons the loss is the mean over all points; more of them come to be on the right side; it shows."""
    tab.show(page(), tmp_path)
    tab.run("gradwalk.header.examples.value = '5'; gradwalk.header.chosen()")
    study(tab, "downhill")
    tab.click(".moons input")
    assert tab.text(".downhill .told").endswith("25 % on the right side")
    before = tab.run("document.querySelector('.boundary').toDataURL()")
    tab.run("for (let k = 0; k < 40; k += 1) gradwalk.study.downhill.once()")
    assert tab.text(".downhill .told") == "40 steps: from 3.575 to 0.7061; 69 % on the right side"
    assert tab.run("document.querySelector('.boundary').toDataURL()") != before
    values = tab.run("gradwalk.valuesByName()")
    assert (values["x1"], values["x2"], values["y"]) == (1, 2, 1)
    tab.run("gradwalk.type('a*b')")
    assert not tab.run("document.querySelector('.moons').getClientRects().length")


@pytest.mark.parametrize(("name", "middle"), [("x1", 0.5), ("x2", 0.25)])
def test_the_boundary_is_where_the_network_changes_its_mind(tab: Tab, tmp_path: Path, name: str, middle: float) -> None:
    """Of a network that asks whether x1, or x2, is beyond the middle of the map, it halves the map."""
    tab.show(page(), tmp_path)
    text = f"out = {name} - c + 0*x1*x2; (out - y)**2"
    tab.run(f"gradwalk.example({{ text: '{text}', values: {{ c: {middle}, x1: 1, x2: 2, y: 1 }} }})")
    study(tab, "downhill")
    tab.click(".moons input")
    place = "[share * width, 4]" if name == "x1" else "[4, share * height]"  # beside all points
    seen = tab.run(
        "(() => { const map = document.querySelector('.boundary'); const { width, height } = map;"
        f" return [0.02, 0.2, 0.47, 0.53, 0.8, 0.98].map((share) => {place}.map(Math.floor))"
        " .map(([x, y]) => String(map.getContext('2d').getImageData(x, y, 1, 1).data)); })()"
    )
    assert seen == [seen[0]] * 3 + [seen[-1]] * 3
    assert seen[0] != seen[-1]


# ---------------------------------------------------------------- paths


def test_every_path_with_its_product(tab: Tab, tmp_path: Path) -> None:
    """The paths to a leaf are listed, their sum is its gradient, and one that is pointed at is lit in the graph."""
    tab.show(page("(a*b + a)**2", {"a": 2.0, "b": -3.0}), tmp_path)
    study(tab, "paths")
    listed = tab.run("[...document.querySelectorAll('.path')].map((path) => path.textContent)")
    assert listed == ["v3 → v2 → v1 → a−8 · 1 · −3 = 24", "v3 → v2 → a−8 · 1 = −8"]
    assert "the sum of the products is 16, and a.grad is 16" in tab.text(".paths .told")
    tab.run("document.querySelector('.path').focus()")
    assert tab.run("document.querySelectorAll('.on-path').length") == 3
    tab.run("gradwalk.setMode('assign')")
    tab.settle()
    assert "and a.grad should be 16" in tab.text(".paths .told")


def test_the_sum_over_paths_is_the_gradient(v8: MiniRacer) -> None:
    """On random graphs, counted exactly: also where there are more paths than could ever be walked."""
    source = random.Random(7)
    for _ in range(20):
        values: list[Any] = [Value(source.uniform(-1, 1)) for _ in range(3)]
        for _ in range(7):
            values.append(source.choice((lambda a, b: a * b, lambda a, b: a + b))(*source.choices(values[-4:], k=2)))
        root = composites.sum(values[-3:])
        root.backward()
        order = root._topological_order()
        v8.eval(
            f"var line = (() => {{ const g = module_graph.fromProgram({json.dumps(program_of(root))});"
            " return module_engine.timeline(g, g.nodes.map((n) => n.value), 'right'); })()"
        )
        for i, leaf in enumerate(order):
            if leaf._children:
                continue
            found = json.loads(
                v8.eval(f"JSON.stringify(module_paths.listPaths(line, {i}, 1e6).map((path) => path.product))")
            )
            assert len(found) == int(v8.eval(f"String(module_paths.countPaths(line.graph, {i}))"))
            assert math.fsum(found) == pytest.approx(leaf.grad, rel=1e-9, abs=1e-12)
    x: Any = Value(1.0)
    for _ in range(80):
        x = x + x
    v8.eval(f"var doubled = module_graph.fromProgram({json.dumps(program_of(x))})")
    assert int(v8.eval("String(module_paths.countPaths(doubled, 0))")) == 2**80


# ---------------------------------------------------------------- motion


def test_the_number_travels_and_is_added_when_it_arrives(browser: Browser, tmp_path: Path) -> None:
    """While the product is on its way the child still has what it had; then it has the sum."""
    tab = browser.open(width=1280, height=720)
    tab.show(page("(a*b + a)**2", {"a": 2.0, "b": -3.0}), tmp_path)
    tab.run("gradwalk.player.go(7, 'jump')")
    tab.run("gradwalk.player.step(1)")
    grad = "document.querySelectorAll('.node .grad')[0].textContent"
    row = "document.querySelector('tbody tr td.grad').textContent"
    assert tab.run(f"[document.querySelector('.pulse text').textContent, {grad}, {row}]") == ["24", "−8", "−8"]
    tab.wait(grad + " === '16'")
    assert tab.run("document.querySelectorAll('.pulse').length") == 0
    assert tab.run(row) == "16"
    tab.run("gradwalk.player.go(7, 'jump'); gradwalk.player.step(1); gradwalk.player.step(1)")
    assert tab.run(grad) == "16"
    assert tab.errors == []
    tab.close()


@pytest.mark.parametrize(("step", "begins", "ends"), [(1, (0, "right"), (2, "left")), (7, (3, "left"), (0, "right"))])
def test_what_travels_goes_from_card_to_card(
    browser: Browser, tmp_path: Path, step: int, begins: tuple[int, str], ends: tuple[int, str]
) -> None:
    """Forward a dot, from the operand to the result; backward a gradient, from the result to the operand."""
    tab = browser.open(width=1280, height=720)
    tab.show(page("(a*b + a)**2", {"a": 2.0, "b": -3.0}), tmp_path)
    tab.run(f"gradwalk.player.go({step - 1}, 'jump'); gradwalk.player.step(1)")
    for share, (card, side) in ((0, begins), (1, ends)):
        left, right, edge = tab.run(
            f"(() => {{ const {{ motion, cards }} = gradwalk.drawing; motion.place({share});"
            " const { left, right } = document.querySelector('.pulse').getBoundingClientRect();"
            f" return [left, right, cards[{card}].group.getBoundingClientRect().{side}]; }})()"
        )
        assert left < edge < right
    assert tab.errors == []
    tab.close()


def test_what_travels_covers_no_number_of_its_edge(browser: Browser, tmp_path: Path) -> None:
    """The product goes beside the local gradient, at every step of the examples; forward, dots go under it."""
    tab = browser.open(width=1280, height=720)
    tab.show(page(), tmp_path)
    for example in (2, 5, 7):
        tab.run(f"gradwalk.header.examples.value = '{example}'; gradwalk.header.chosen()")
        covered = tab.run(
            "(() => { const found = []; const { drawing, line, player } = gradwalk;"
            " const hits = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;"
            " for (let t = line.forwardSteps + 2; t <= line.steps; t += 1) {"
            " player.go(t - 1, 'jump'); player.step(1);"
            " for (let k = 0; k <= 40; k += 1) { drawing.motion.place(k / 40);"
            " const pill = document.querySelector('.pulse rect').getBoundingClientRect();"
            " for (const text of drawing.told.children)"
            " if (hits(pill, text.getBoundingClientRect())) found.push(t); } }"
            " return found; })()"
        )
        assert covered == []
    tab.run("gradwalk.player.go(0, 'jump'); gradwalk.player.step(1)")
    assert (
        tab.run("document.querySelector('.pulse.forward').compareDocumentPosition(gradwalk.drawing.labelLayer)") & 4
    )  # comes after it
    assert tab.errors == []
    tab.close()
