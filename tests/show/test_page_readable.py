"""Readable at every size, by everybody: letters, labels, contrast, nothing that jumps."""

from __future__ import annotations

import json
from pathlib import Path

import axe
import pytest
from chromium import Browser, Tab

from gradwalk import Value, composites
from gradwalk.nn import MLP
from gradwalk.show.play import page

EXAMPLES = range(8)
PHONES = [(390, 844), (375, 667), (360, 640), (320, 568), (844, 390), (640, 360), (568, 320)]

SMALLEST = """Math.min(...[...document.querySelectorAll('.gradwalk *')].filter((e) => e.getClientRects().length &&
  [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())).map((e) =>
  parseFloat(getComputedStyle(e).fontSize) * (e.closest('.world') ? gradwalk.drawing.viewport.scale : 1)))"""

# what overlaps at any step: labels of edges with cards or with each other
OVERLAPS = """(() => { const found = [];
  const boxes = (selector) => [...document.querySelectorAll(selector)]
    .filter((e) => e.textContent || e.tagName === 'rect')
    .map((e) => [e.textContent || 'card', placed(e.getBBox(), e.getScreenCTM())]);
  // without the halo, which Firefox counts to what it bounds
  const placed = ({ x, y, width, height }, { a, d, e, f }) =>
    ({ left: a * x + e, right: a * (x + width) + e, top: d * y + f, bottom: d * (y + height) + f });
  const hits = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3;
  for (let t = 0; t <= gradwalk.line.steps; t += 1) {
    gradwalk.drawing.update(gradwalk.line, t);
    const labels = boxes('.graph .local');
    const cards = boxes('.node > .box');
    labels.forEach(([text, box], k) => {
      for (const [other, its] of [...cards, ...labels.slice(k + 1)]) {
        if (hits(box, its)) found.push(`${t}: ${text} on ${other}`);
      }
    });
  }
  return found; })()"""

# numbers that their own edge runs into from the side, where it reads as a minus sign
SIGNED_BY_LINES = """(() => { const { drawing, line, player } = gradwalk;
  player.go(line.steps, 'jump');
  return drawing.edges.filter((edge) => edge.label?.textContent).filter((edge) => {
    const { x, y, width, height } = edge.label.getBBox();
    const along = drawing.wayOf(edge);
    const isAtSide = (at) => Math.abs(Math.abs(at.x - (x + width / 2)) - (width / 2 + 5)) < 1;
    const isAtHeight = (at) => Math.abs(at.y - (y + height / 2)) < 0.25 * height;
    return Array.from({ length: 201 }, (_, k) => along(k / 200)).some((at) => isAtSide(at) && isAtHeight(at));
  }).map((edge) => edge.label.textContent); })()"""

# at any step: text beside the graph that what it stands in is too narrow for
CUT = """(() => { const found = new Set();
  const cuts = (e) => e.matches('td, aside') || getComputedStyle(e).overflowX !== 'visible';
  const around = (e) => (cuts(e) ? e : around(e.parentElement));
  for (let t = 0; t <= gradwalk.line.steps; t += 1) {
    gradwalk.player.go(t, 'jump');
    const fields = [...document.querySelectorAll('.value')].filter((e) => e.scrollWidth > e.clientWidth);
    for (const field of fields) found.add(`${t}: ${field.value}`);
    const texts = document.createTreeWalker(document.querySelector('aside'), NodeFilter.SHOW_TEXT);
    for (let text = texts.nextNode(); text; text = texts.nextNode()) {
      if (!text.data.trim() || text.parentElement.closest('.unseen')) continue;
      const range = document.createRange();
      range.selectNodeContents(text);
      const [own, its] = [range, around(text.parentElement)].map((e) => e.getBoundingClientRect());
      if (own.width && (own.left < its.left - 1 || own.right > its.right + 1)) found.add(`${t}: ${text.data}`);
    }
  }
  return [...found]; })()"""

# cards whose name and sign do not fit beside each other
TOO_WIDE = """(() => [...document.querySelectorAll('.node:not(.constant)')].filter((card) =>
  card.querySelector('.name').getBBox().width + (card.querySelector('.glyph').getBBox().width || -4) + 4 >
  card.querySelector('.box').getBBox().width - 12).length)()"""


def choose(tab: Tab, example: int) -> None:
    tab.run(
        "(() => { const s = document.querySelector('.examples');"
        f" s.value = '{example}'; s.dispatchEvent(new Event('change')); }})()"
    )
    tab.settle()


def test_no_text_is_smaller_than_eleven_pixels(tab: Tab, tmp_path: Path) -> None:
    """On every example, at 1280 by 720, at the beginning and at the end; and each of them is seen whole."""
    tab.show(page(), tmp_path)
    whole = (
        "(({ cards, viewport, placed }) => cards.every((card) => viewport.sees(placed.at[card.k], card.size)))"
        "(gradwalk.drawing)"
    )
    for example in EXAMPLES:
        choose(tab, example)
        assert tab.run(whole)
        assert tab.run(SMALLEST) >= 10.99
        tab.press("End")
        assert tab.run(SMALLEST) >= 10.99
    tab.show(page("exp(-((x - m)/s)**2/2)/(s*sqrt(2*3.14159)) + a**b**c1"), tmp_path)  # a fraction in an exponent
    for t in range(tab.run("gradwalk.line.steps") + 1):
        tab.run(f"gradwalk.player.go({t}, 'jump')")
        assert tab.run(SMALLEST) >= 10.99


def test_labels_of_edges_overlap_nothing(tab: Tab, tmp_path: Path) -> None:
    """At no step of any example does a number on an edge lie on a card or on another number."""
    tab.show(page(), tmp_path)
    for example in EXAMPLES:
        choose(tab, example)
        assert tab.run(OVERLAPS) == []


def test_no_edge_is_drawn_over_a_number(tab: Tab, tmp_path: Path) -> None:
    """Not the one that fires either: whatever number it crosses stays whole."""
    tab.show(page(), tmp_path)
    choose(tab, EXAMPLES[-1])
    for t in range(tab.run("gradwalk.line.steps") + 1):
        tab.run(f"gradwalk.player.go({t}, 'jump')")
        kinds = tab.run("[...document.querySelectorAll('.graph .edge, .graph .local')].map((each) => each.tagName)")
        assert kinds == sorted(kinds), t  # path, then text
    assert {*kinds} == {"path", "text"}


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (390, 844), (844, 390)])
def test_no_line_reads_as_a_minus_sign(browser: Browser, tmp_path: Path, width: int, height: int) -> None:
    """No edge runs into its number from the left or the right: −0.6 would be read where 0.6 is meant."""
    tab = browser.open(width=width, height=height)
    tab.show(page(), tmp_path)
    found = []
    for example in EXAMPLES:
        choose(tab, example)
        found += [(example, text) for text in tab.run(SIGNED_BY_LINES)]
    tab.close()
    assert found == []


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (844, 390)])
def test_no_number_beside_the_graph_is_cut(browser: Browser, tmp_path: Path, width: int, height: int) -> None:
    """A line that is too long goes on in the next one: of −0.2724 nobody sees −0.2."""
    tab = browser.open(width=width, height=height, reduced=True)
    tab.show(page(), tmp_path)
    for example in EXAMPLES[5:]:
        choose(tab, example)
        assert tab.run(CUT) == [], example
    for text in (
        "x = 0.123456; y = -0.000123456; atan2(x, y)*hypot(x, y)/lgamma(x + 3) + (x*y)**3",
        "a = -123456.7; b = 0.0001234; a*b*b + a*a*b*1e-9 + tanh(a*b)",
        "a = -1.234e-200; b = -0.02477; a*b - b",
    ):
        tab.show(page(text), tmp_path)
        assert tab.run(CUT) == []
    tab.close()


def test_a_number_is_nearest_to_its_own_edge(tab: Tab, tmp_path: Path) -> None:
    """Of two edges between the same cards, the upper one has its number above, the lower one below."""
    tab.show(page("a + a"), tmp_path)
    upper, lower = tab.run(
        "gradwalk.drawing.edges.map(({ spot, points }) => spot.y - 4 - (points[0].y + points[1].y) / 2)"
    )
    assert upper < 0 < lower


def test_names_that_fit_are_whole(tab: Tab, tmp_path: Path) -> None:
    """A card grows with its name, and its letters get smaller; only one that is too long for any card ends in dots."""
    tab.show(page(f"hidden = rmsnorm_of*é_input; hidden*the_longest_name_of_all*{'n' * 40}"), tmp_path)
    names = tab.run("[...document.querySelectorAll('.node .name')].map((name) => name.textContent)")
    assert names[:-2] == ["rmsnorm_of", "é_input", "hidden", "the_longest_name_of_all", "v1"]
    assert names[-2].startswith("nnnnnnnnnnnn")
    assert names[-2].endswith("n…")
    assert tab.run(TOO_WIDE) == 0
    assert tab.text("tbody tr:nth-child(3) th") == "the_longest_name_of_all"
    a, b, c = (Value(x, label=name) for name, x in (("a", 0.5), ("b", -1.25), ("c", 2.0)))
    root = composites.sum([*composites.rmsnorm([a, b, c]), composites.cross_entropy([a, b, c], 1)])
    tab.show(page(root + (a + b).leaky_relu() * c.stop_gradient()), tmp_path)
    assert tab.run(TOO_WIDE) == 0
    assert tab.run("document.querySelector('.node.leaf .box').getBBox().width") == 65  # a needs no more


ONE_SPELLING = """(() => { const { graph, drawing, formula } = gradwalk;
  const signs = [...document.querySelectorAll('.node.op .glyph')].map((each) => each.textContent);
  return [signs, formula.textContent]; })()"""


def test_one_spelling_of_an_operation(tab: Tab, tmp_path: Path) -> None:
    """On cards, in formulas, in what is said of an error, and on parts: what one types, or its sign."""
    tab.show(page("relu(log(a)) + sigmoid(-a)**2*leaky_relu(asin(b))**0.5"), tmp_path)
    signs, written = tab.run(ONE_SPELLING)
    assert sorted(signs) == sorted(
        ["relu", "log", "sigmoid", "−x", "x²", "leaky_relu", "asin", "xⁿ", "×", "+"]
    )  # fmt: skip
    for name in ("relu(log(", "sigmoid(−", "leaky_relu(asin("):
        assert name in written.replace("\u2061", "")
    shown = tab.run(
        "(() => { const seen = []; for (let t = 1; t <= gradwalk.line.steps; t += 1) {"
        " gradwalk.player.go(t, 'jump'); seen.push(document.querySelector('.step').textContent); }"
        " return seen.join(' '); })()"
    )
    assert "ln" not in shown
    assert "arc" not in shown
    assert "log(a)" in shown
    tab.show(page("(a*b)**0.5", {"a": -1.0, "b": 2.0}), tmp_path)
    assert tab.text(".trouble").startswith("pow: expected a positive base")


def test_a_name_is_the_same_everywhere(tab: Tab, tmp_path: Path) -> None:
    """A parameter of a model is called the same on its card, in the table and at its step; parts have signs."""
    tab.show(page(MLP(2, [2, 1])([0.5, -1.0])), tmp_path)
    tab.press("End")
    names = tab.run("[...document.querySelectorAll('.node.leaf:not(.constant) .name')].map((each) => each.textContent)")
    rows = tab.run("[...document.querySelectorAll('tbody th')].map((each) => each.textContent)")
    assert sorted(names) == sorted(rows)
    assert "l0.n1.w0" in names
    assert "l0.n0.w0.grad" in tab.text(".equation")
    tab.show(page(MLP(20, [40, 40, 1])([0.1] * 20) ** 2), tmp_path)
    titles = tab.run("gradwalk.drawing.cards.filter((card) => card.item.part).map((card) => card.about)")
    assert not [title for title in titles if title.startswith(("ReLU", "neg", "**", "*", "/"))]


@pytest.mark.parametrize(
    ("made", "forward", "slopes"),
    [
        ("softmax", "exp(b)∑jexp(xj)", {"−v1⋅exp(a)∑kexp(xk)", "v1⋅(1−exp(b)∑kexp(xk))", "−v1⋅exp(c)∑kexp(xk)"}),
        ("log_softmax", "b−log(∑jexp(xj))", {"−exp(a)∑kexp(xk)", "1−exp(b)∑kexp(xk)", "−exp(c)∑kexp(xk)"}),
        ("cross_entropy", "log(∑jexp(xj))−b", {"exp(a)∑kexp(xk)", "exp(b)∑kexp(xk)−1", "exp(c)∑kexp(xk)"}),
        ("logsumexp", "log(∑jexp(xj))", {f"exp({name})∑kexp(xk)" for name in "abc"}),
        ("norm", "∑jxj2", {"av1", "bv1", "cv1"}),
        ("rmsnorm", "b∑jxj23+ε", {f"{one}3⋅(∑kxk23+ε)" for one in ("−v1⋅a", "1∑kxk23+ε−v1⋅b", "−v1⋅c")}),
        ("layernorm", "b−μσ2+ε",
         {f"{one}−μ)3⋅(σ2+ε)" for one in ("−13⋅σ2+ε−v1⋅(a", "1−13σ2+ε−v1⋅(b", "−13⋅σ2+ε−v1⋅(c")}),
        ("maximum", "maxjxj", set()),
        ("take", "b", set()),
    ],
)  # fmt: skip
def test_formulas_over_rows_have_the_names(
    browser: Browser, tmp_path: Path, made: str, forward: str, slopes: set[str]
) -> None:
    """Of softmax and its kin, as people know them: with the names of what is meant, not x3, and no [3 = j]; uncut."""
    a, b, c = (Value(x, label=name) for name, x in (("a", 0.5), ("b", -1.25), ("c", 2.0)))
    given = [1] if made in ("cross_entropy", "take") else []
    out = getattr(composites, made)([a, b, c], *given)
    for width in (1280, 1000):
        tab = browser.open(width=width, height=720, reduced=True)
        tab.show(page(out[1] if isinstance(out, list) else out), tmp_path)
        tab.run("gradwalk.player.go(1, 'jump')")
        assert tab.text(".step .formula") == f"v1={forward}"
        found = tab.run(
            "(() => { const seen = []; for (let t = 3; t <= gradwalk.line.steps; t += 1) {"
            " gradwalk.player.go(t, 'jump'); seen.push(document.querySelector('.parts dd').textContent); }"
            " return seen; })()"
        )
        assert {text.split("=", 1)[1].rsplit("=", 1)[0] for text in found if text.count("=") > 1} == slopes
        assert tab.run(CUT) == []
        assert tab.run("(({ stepBox }) => stepBox.scrollHeight - stepBox.clientHeight)(gradwalk)") <= 0
        tab.close()


def test_a_long_formula_fits_or_scrolls(tab: Tab, tmp_path: Path) -> None:
    """It is set smaller, and what is left over can be reached; it lies on nothing beside it."""
    tab.show(page(" + ".join(f"weight_{i}*input_{i}" for i in range(9))), tmp_path)
    seen = tab.run(
        "(({ formula, stage }) => [formula.scrollWidth > formula.clientWidth, getComputedStyle(formula).overflowX,"
        " formula.getBoundingClientRect().right <= stage.getBoundingClientRect().right])(gradwalk)"
    )
    assert seen == [True, "auto", True]


@pytest.mark.parametrize(("text", "shown"), [
    ("q**2", "2⋅q"), ("q**3", "3⋅q2"), ("q**-1", "(−1)⋅q(−2)"), ("q**2.5", "2.5⋅q1.5"),
])  # fmt: skip
def test_the_slope_of_a_power_is_worked_out(tab: Tab, tmp_path: Path, text: str, shown: str) -> None:
    """2·q, and not 2·q to the power of 2 − 1."""
    tab.show(page(text), tmp_path)
    tab.press("End")
    assert f"={shown}=" in tab.text(".parts dd").replace(" ", "")


def test_edges_have_arrowheads(tab: Tab, tmp_path: Path) -> None:
    """Each edge ends in a head at the result; one that fires backward has it at the child."""
    tab.show(page(), tmp_path)
    paths = tab.run("[...document.querySelectorAll('.edge')].map((e) => e.getAttribute('d').split('M').length - 1)")
    assert paths == [2] * 5
    tab.press("End")
    head = tab.run("document.querySelector('.edge.fires-backward').getAttribute('d').split('M').at(-1)")
    start = tab.run("document.querySelector('.edge.fires-backward').getAttribute('d').split('M')[1].split('C')[0]")
    assert start in head


def test_the_height_is_used(tab: Tab, tmp_path: Path) -> None:
    """A graph takes most of the canvas one way or the other."""
    tab.show(page(), tmp_path)
    for example in (0, *range(2, 8)):  # a + a is two cards
        choose(tab, example)
        width, height = tab.run(
            "(() => { const { placed, viewport } = gradwalk.drawing; return [placed.width * viewport.scale /"
            " viewport.view.width, placed.height * viewport.scale / viewport.view.height]; })()"
        )
        assert max(width, height) > 0.6, example
        assert min(width, height) > 0.2


def test_the_view_follows_the_step(browser: Browser, tmp_path: Path) -> None:
    """At every step of the MLP, also on a phone, what receives is in sight, and the result or its number is."""
    for width, height in ((1280, 720), (390, 844)):
        tab = browser.open(width=width, height=height)
        tab.show(page(), tmp_path)
        choose(tab, 5)
        for _ in range(tab.run("gradwalk.line.steps")):
            seen = tab.run(
                "(() => { gradwalk.player.step(1); const { drawing, line, t, rootChip } = gradwalk;"
                " const card = drawing.cards[drawing.itemOf[line.contributions.child[t - line.forwardSteps - 2]"
                " ?? line.computing[t - 1] ?? line.graph.root]];"
                " return [drawing.viewport.sees(drawing.placed.at[card.k], card.size),"
                " drawing.seesRoot || !rootChip.hidden]; })()"
            )
            assert seen == [True, True]
        tab.close()


def test_what_just_fits_is_whole(tab: Tab, tmp_path: Path) -> None:
    """A graph nearly as wide as the view stands still in it: no step moves it for the sake of its margins."""
    tab.show(page(), tmp_path)
    tab.run(
        "(({ viewport, placed }) => { viewport.view = { width: placed.width * 11 / 12 + 10, height: 400 };"
        " viewport.fit(); })(gradwalk.drawing)"
    )
    for t in range(tab.run("gradwalk.line.steps") + 1):
        tab.run(f"gradwalk.player.go({t}, 'jump')")
        assert tab.run(
            "(({ cards, viewport, placed }) => cards.every(({ k, size }) => viewport.sees(placed.at[k], size)))"
            "(gradwalk.drawing)"
        ), t


def test_the_result_covers_no_card_of_the_step(browser: Browser, tmp_path: Path) -> None:
    """Where the result is out of sight, its number stands in a corner that the step is not in."""
    for width, height in ((390, 844), (320, 568), (568, 320)):
        tab = browser.open(width=width, height=height, reduced=True)
        tab.show(page(), tmp_path)
        choose(tab, 5)
        covered = tab.run(
            "(() => { const found = []; const { player, line, rootChip } = gradwalk;"
            " const hits = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;"
            " for (let t = 0; t <= line.steps; t += 1) { player.go(t, 'jump'); if (rootChip.hidden) continue;"
            " for (const card of document.querySelectorAll('[class*=active-] > .box'))"
            " if (hits(card.getBoundingClientRect(), rootChip.getBoundingClientRect())) found.push(t); }"
            " return found; })()"
        )
        assert covered == [], (width, height)
        tab.close()


# ---------------------------------------------------------------- nothing jumps


PLACES = """(() => { const found = new Set(); for (let t = 0; t <= gradwalk.line.steps; t += 1) {
  gradwalk.player.go(t, 'jump'); found.add(document.querySelector('.values').offsetTop + '/' +
    document.querySelector('.canvas').getBoundingClientRect().top + '/' + gradwalk.canvas.clientHeight); }
  return [...found]; })()"""


@pytest.mark.parametrize("mode", ["right", "assign"])
def test_the_panel_stands_still(tab: Tab, tmp_path: Path, mode: str) -> None:
    """The table and the graph stay where they are at every step of every example."""
    tab.show(page(), tmp_path)
    tab.run(f"gradwalk.setMode('{mode}')")
    for example in EXAMPLES:
        choose(tab, example)
        places = tab.run(PLACES)
        assert len(places) == 1, (example, places)


def test_nothing_that_is_said_moves_the_panel(tab: Tab, tmp_path: Path) -> None:
    """Not an error, not a long verdict on a prediction, not the formula of a row or a name as long as a path."""
    tab.show(page("clamp(log(a)*b, -1, 1) + (b*a)**0.5", {"a": 1.5, "b": 2.0}), tmp_path)
    places = set(tab.run(PLACES))
    tab.run("gradwalk.edit(0, -1.5)")
    tab.settle()
    assert "expected x > 0" in tab.text(".trouble")
    assert len(places | set(tab.run(PLACES))) == 1
    tab.run("gradwalk.study.choose('predict'); gradwalk.player.go(gradwalk.line.forwardSteps + 1, 'jump')")
    place = "document.querySelector('.values').offsetTop"
    before = tab.run(place)
    for answer in ("7", "0.123456", "-1e-200"):
        tab.run(f"gradwalk.study.predict.field.value = '{answer}'; gradwalk.study.predict.answer()")
        assert before == tab.run(place)
    model = MLP(2, [2, 1])
    for root in (
        composites.layernorm([model([0.5, -1.0]) * x for x in (1.0, 2.0, 3.0)])[1],
        model([1.0, 2.0]) ** 2,
    ):
        tab.show(page(root), tmp_path)
        assert len(tab.run(PLACES)) == 1


def test_a_mistake_dims_the_graph_and_moves_nothing(tab: Tab, tmp_path: Path) -> None:
    """Nor does the focus; and the nearest operation is offered."""
    tab.show(page(), tmp_path)
    place = "JSON.stringify(document.querySelector('.canvas').getBoundingClientRect())"
    before = tab.run(place)
    tab.press("/")
    assert before == tab.run(place)
    tab.type("rleu(a*b)")
    assert before == tab.run(place)
    assert "there is no operation rleu; did you mean relu?" in tab.text(".problem")
    assert float(tab.run("getComputedStyle(document.querySelector('.graph')).opacity")) < 0.5
    tab.run("document.querySelector('.expression').select()")
    tab.type("relu(a*b)")
    assert float(tab.run("getComputedStyle(document.querySelector('.graph')).opacity")) == 1.0


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [("sgimoid", "sigmoid"), ("tahnh", "tanh"), ("tahn", "tanh"), ("sqr", "sqrt"), ("Relu", "relu"), ("zzzz", None)],
)
def test_did_you_mean(tab: Tab, tmp_path: Path, wrong: str, meant: str | None) -> None:
    """A slip of the fingers is recognised; what is like nothing gets the list."""
    tab.show(page(), tmp_path)
    tab.run(f"gradwalk.type({json.dumps(wrong + '(a)')})")
    assert (f"did you mean {meant}?" if meant else "the operations are") in tab.text(".problem")


# ---------------------------------------------------------------- phones


@pytest.mark.parametrize(("width", "height"), PHONES)
def test_the_arithmetic_is_above_the_fold(browser: Browser, tmp_path: Path, width: int, height: int) -> None:
    """On a phone the graph and all of the step's arithmetic are seen without scrolling, at every step, in any mode."""
    tab = browser.open(width=width, height=height)
    tab.show(page(), tmp_path)
    for example, mode in ((0, "right"), (5, "right"), (7, "right"), (6, "breadth_first")):
        choose(tab, example)
        tab.run(f"gradwalk.setMode('{mode}')")
        lowest = tab.run(
            "(() => { let lowest = 0; for (let t = 0; t <= gradwalk.line.steps; t += 1) {"
            " gradwalk.player.go(t, 'jump'); lowest = Math.max(lowest,"
            " ...[...document.querySelectorAll('.step > :not(.verdict)')].map((e) =>"
            " e.getBoundingClientRect().bottom)); } return lowest; })()"
        )
        bar = tab.run("document.querySelector('.transport').getBoundingClientRect().top")
        assert lowest <= (bar if height > width else height), example
        assert lowest <= tab.run("document.querySelector('.step').getBoundingClientRect().bottom") + 1
        assert tab.run("document.documentElement.scrollWidth") <= width
        assert tab.run("gradwalk.canvas.clientHeight") > (200 if min(width, height) > 320 else 170)
    assert tab.errors == []
    tab.close()


@pytest.mark.parametrize(("width", "height"), [(320, 568), (568, 320), (640, 360), (820, 1180), (1024, 768)])
def test_nothing_lies_on_anything_else(browser: Browser, tmp_path: Path, width: int, height: int) -> None:
    """On the smallest phones, at twice the usual size of letters, on tablets; and nothing is scrolled sideways."""
    tab = browser.open(width=width, height=height)
    tab.show(page(), tmp_path)
    choose(tab, 7)
    overlaps = tab.run(
        "(() => { const shown = [...document.querySelectorAll('header > *, .tools > *, .stage, aside, .transport > *,"
        " .icon, .to-backward, .key')].filter((e) => e.getClientRects().length);"
        " const meet = (a, b, from, to) => a[from] < b[to] - 1 && b[from] < a[to] - 1;"
        " const hits = (a, b) => meet(a, b, 'left', 'right') && meet(a, b, 'top', 'bottom');"
        " const sticks = (e) => getComputedStyle(e.closest('.transport') ?? e).position === 'sticky';"
        " return shown.flatMap((a, k) => shown.slice(k + 1).filter((b) => !a.contains(b) && !b.contains(a) &&"
        " sticks(a) === sticks(b) && hits(a.getBoundingClientRect(), b.getBoundingClientRect()))"
        ".map((b) => `${a.className} on ${b.className}`)); })()"
    )
    assert overlaps == []
    assert tab.run("document.documentElement.scrollWidth") <= width
    tab.close()


# ---------------------------------------------------------------- for everybody


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing(browser: Browser, tmp_path: Path, dark: bool) -> None:
    """In both themes, at the beginning, in the middle, in a wrong mode, with the help open, embedded, on a phone."""
    tab = browser.open(width=1280, height=720, dark=dark)
    tab.without_policy()
    tab.show(page(), tmp_path)
    assert axe.findings(tab) == []
    choose(tab, 5)
    tab.run("gradwalk.player.go(32, 'jump'); gradwalk.table.showAll(true)")
    assert axe.findings(tab) == []
    for study in ("predict", "downhill", "paths"):
        tab.run(f"gradwalk.study.choose('{study}')")
        assert axe.findings(tab) == []
    tab.run(
        "gradwalk.setMode('assign'); gradwalk.player.go(gradwalk.line.firstWrongStep, 'jump'); gradwalk.type('rleu(a)')"
    )
    assert axe.findings(tab) == []
    tab.press("?")
    assert axe.findings(tab) == []
    tab.show(page(), tmp_path, "#mode=embed&t=6")
    assert axe.findings(tab) == []
    tab.show(page(MLP(20, [40, 40, 1])([0.1] * 20)), tmp_path)
    tab.run("gradwalk.player.go(gradwalk.line.steps - 40, 'jump')")
    assert axe.findings(tab) == []
    tab.close()
    phone = browser.open(width=390, height=844, dark=dark)
    phone.without_policy()
    phone.show(page(), tmp_path)
    phone.press("End")
    assert axe.findings(phone) == []
    phone.close()


def test_a_card_says_its_gradient(tab: Tab, tmp_path: Path) -> None:
    """A screen reader hears name, operation, value and gradient of each card, as they are at this step."""
    tab.show(page(), tmp_path)
    labels = "[...document.querySelectorAll('.node')].map((card) => card.getAttribute('aria-label'))"
    assert tab.run(labels)[2] == "v1, Product. a · b"
    tab.press("ArrowRight")
    assert tab.run(labels)[2] == "v1, Product. a · b, data -6.0"
    tab.press("End")
    assert tab.run(labels)[0] == "a, a leaf, data 2.0, gradient -3.0"
    assert tab.run(labels)[2] == "v1, Product. a · b, data -6.0, gradient 1.0"


def test_a_column_that_is_empty_says_why(tab: Tab, tmp_path: Path) -> None:
    """Of thousands of nodes no difference is measured until its row is pointed at."""
    tab.show(page(MLP(20, [40, 40, 1])([0.1] * 20)), tmp_path)
    assert "a difference is measured when its row is pointed at" in tab.text(".unmeasured")
    assert tab.run("getComputedStyle(document.querySelector('.unmeasured')).display") != "none"
    tab.press("End")
    cell = "document.querySelector('tbody tr td:nth-child(4)').textContent"
    assert tab.run(cell) == ""
    tab.run("document.querySelector('tbody tr input').focus()")
    assert tab.run(cell) != ""
    assert tab.text("tbody tr .check") == "✓"
    choose(tab, 0)
    assert tab.run("getComputedStyle(document.querySelector('.unmeasured')).display") == "none"
