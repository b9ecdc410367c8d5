"""Readable at every size, by everybody: letters, labels, contrast, large graphs folded up, nothing that jumps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import axe
import pytest
from chromium import Browser, Tab

from gradwalk.nn import MLP
from gradwalk.show.play import page

EXAMPLES = range(8)
PHONES = [pytest.param(390, 844, id="upright"), pytest.param(844, 390, id="sideways")]

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


@pytest.fixture
def tab(browser: Browser) -> Iterator[Tab]:
    opened = browser.open(width=1280, height=720)
    yield opened
    assert opened.errors == []
    opened.close()


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
    """A card grows with its name; only one that is too long for any card ends in dots, and so does its row."""
    tab.show(page("hidden = tanh(weight_one*é_input); hidden*the_longest_name_of_all"), tmp_path)
    names = tab.run("[...document.querySelectorAll('.node .name')].map((name) => name.textContent)")
    assert names == ["weight_one", "é_input", "v1", "hidden", "the_longest_…", "v2"]
    wider = (
        "(() => [...document.querySelectorAll('.node:not(.constant)')].filter((card) => "
        "card.querySelector('.name').getBBox().width + (card.querySelector('.glyph').getBBox().width || -4) + 4 >"
        " card.querySelector('.box').getBBox().width - 12).length)()"
    )
    assert tab.run(wider) == 0
    assert tab.run("document.querySelector('tbody tr:last-child th').title") == "the_longest_name_of_all"


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


# ---------------------------------------------------------------- large graphs


def test_a_click_unfolds_and_another_folds(tab: Tab, tmp_path: Path) -> None:
    """A model is shown by its scopes; a part unfolds into parts and nodes, and folds up again."""
    root = MLP(20, [40, 40, 1])([0.1] * 20)
    tab.show(page(root), tmp_path)
    tab.settle()
    cards = tab.run("gradwalk.drawing.cards.length")
    assert 4 <= cards <= 120
    assert tab.run("gradwalk.drawing.cards.at(-1).i") == tab.run("gradwalk.graph.root")
    tab.click(".node.part")
    unfolded = tab.run("gradwalk.drawing.cards.length")
    assert unfolded > cards
    tab.run("document.querySelector('.opened button:last-child').click()")
    assert tab.run("gradwalk.drawing.cards.length") == cards


def test_unfolded_parts_are_listed_beside_the_graph(browser: Browser, tmp_path: Path) -> None:
    """What folds parts up again lies on no card, at any size, and stays one line; without parts there is none."""
    for width, height in ((1280, 720), (390, 844), (844, 390)):
        tab = browser.open(width=width, height=height)
        tab.show(page(MLP(3, [8, 8, 1])([1.0, -2.0, 0.5])), tmp_path)
        bottom, top, lines = tab.run(
            "(({ opened, canvas }) => [opened.getBoundingClientRect().bottom, canvas.getBoundingClientRect().top,"
            " new Set([...opened.children].map((each) => each.offsetTop)).size])(gradwalk)"
        )
        assert bottom <= top
        assert lines == 1
        choose(tab, 0)
        assert not tab.run("gradwalk.opened.getClientRects().length")
        tab.close()


def test_every_node_is_on_one_card(tab: Tab, tmp_path: Path) -> None:
    """However it is folded, no node is lost and none is there twice; and unfolding is bounded at each click."""
    tab.show(page(MLP(20, [40, 40, 1])([0.1] * 20)), tmp_path)
    for _ in range(12):
        nodes = tab.run("gradwalk.drawing.cards.flatMap((card) => card.item.nodes).sort((a, b) => a - b)")
        assert nodes == list(range(tab.run("gradwalk.graph.nodes.length")))
        before = len(tab.run("gradwalk.drawing.cards.map((card) => card.k)"))
        tab.run(
            "(() => { const parts = gradwalk.drawing.cards.filter((card) => card.item.part);"
            " gradwalk.fold(parts.sort((a, b) => b.item.nodes.length - a.item.nodes.length)[0].item.part); })()"
        )
        assert tab.run("gradwalk.drawing.cards.length") <= before + 45


def test_a_folded_graph_has_the_engines_numbers(tab: Tab, tmp_path: Path) -> None:
    """All gradients of a graph of thousands of nodes are the engine's, none of them a part of a sum."""
    root = MLP(12, [30, 30, 1])([0.1 * i for i in range(12)]) ** 2
    root.backward()
    tab.show(page(root), tmp_path)
    tab.press("End")
    shown = tab.run("[...gradwalk.line.grads]")
    for node, grad in zip(root._topological_order(), shown, strict=True):
        assert node._constant or grad == pytest.approx(node.grad, rel=1e-12, abs=1e-300)


def test_a_step_inside_a_folded_part_says_which(tab: Tab, tmp_path: Path) -> None:
    """The card of the part is lit, and has the name and the number of the node that the step is about."""
    tab.show(page(MLP(20, [40, 40, 1])([0.1] * 20)), tmp_path)
    tab.run("gradwalk.player.go(gradwalk.line.steps - 40, 'jump')")
    assert tab.run("document.querySelectorAll('.part.active-child').length") == 1
    name = tab.run(
        "gradwalk.graph.names[gradwalk.line.contributions.at(gradwalk.line.contributions.length - 41).child]"
    )
    assert tab.text(".part.active-child .grad").startswith(f"{name}: ")


WRITTEN = """(() => { const seen = new MutationObserver(() => {}); const { root } = gradwalk;
  seen.observe(root, { subtree: true, childList: true, characterData: true });
  const change = (t) => { gradwalk.t = t; gradwalk.render("scrub"); return seen.takeRecords(); };
  const { forwardSteps, steps } = gradwalk.line;
  change(steps);
  const kinds = (records) => records.map(({ target }) => (target.closest ? target : target.parentElement))
    .map((e) => e.closest(".data, .grad, .step, .study, .transport, .edges")?.getAttribute("class").split(" ")[0]);
  return { back: kinds(change(forwardSteps)), again: kinds(change(steps)), next: kinds(change(steps - 1)) }; })()"""


def test_a_scrub_writes_what_differs(tab: Tab, tmp_path: Path) -> None:
    """To before the gradients and back, hundreds of cards and rows are hidden and seen again, but not written again."""
    tab.show(page(MLP(20, [40, 40, 1])([0.1] * 20)), tmp_path)
    tab.wait("[...document.querySelectorAll('tbody td.grad')].every((cell) => cell.textContent)")  # when it is idle
    assert tab.run("gradwalk.t") == 0
    assert tab.run("getComputedStyle(document.querySelector('td.grad > div')).visibility") == "hidden"
    written = tab.run(WRITTEN)
    for way in ("back", "again"):
        assert sum(kind in ("data", "grad") for kind in written[way]) <= 3  # the parts that the step is in
    assert len(written["next"]) <= 24


def test_a_long_table_comes_in_parts(tab: Tab, tmp_path: Path) -> None:
    """Forty rows, as many more for each click, then all; another graph begins again."""
    tab.show(page(MLP(4, [16, 1])([0.1] * 4)), tmp_path)
    rows = "[document.querySelectorAll('tbody tr').length, gradwalk.table.more.hidden]"
    assert tab.run(rows) == [40, False]
    assert tab.text(".more") == "40 more, of 57"
    tab.run("document.querySelector('.more').click()")
    assert tab.run(rows) == [80, False]
    assert tab.run("[...document.querySelectorAll('tbody input')].every((field) => field.value)")
    assert tab.text(".more") == "17 more, of 17"
    tab.run("document.querySelector('.more').click()")
    assert tab.run(rows) == [97, True]
    tab.run("gradwalk.header.on.program()")
    assert tab.run(rows) == [40, False]


# ---------------------------------------------------------------- nothing jumps


@pytest.mark.parametrize("mode", ["right", "assign"])
def test_the_panel_stands_still(tab: Tab, tmp_path: Path, mode: str) -> None:
    """The table and the graph stay where they are at every step of every example."""
    tab.show(page(), tmp_path)
    tab.run(f"gradwalk.setMode('{mode}')")
    for example in EXAMPLES:
        choose(tab, example)
        places = tab.run(
            "(() => { const found = new Set(); for (let t = 0; t <= gradwalk.line.steps; t += 1) {"
            " gradwalk.player.go(t, 'jump'); found.add(document.querySelector('.values').offsetTop + '/' +"
            " document.querySelector('.canvas').getBoundingClientRect().top + '/' + gradwalk.canvas.clientHeight); }"
            " return [...found]; })()"
        )
        assert len(places) == 1, (example, places)


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
        assert tab.run("document.documentElement.scrollWidth") <= width
        assert tab.run("gradwalk.canvas.clientHeight") > 200
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
