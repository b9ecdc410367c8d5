"""Large graphs on the page: folded up by scope, and as quick as small ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from chromium import Browser, Tab
from test_page_readable import choose

from gradwalk.nn import MLP
from gradwalk.show.play import page


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


def test_a_folded_card_says_a_gradient(tab: Tab, tmp_path: Path) -> None:
    """That of the node which the step is about, or of its last one."""
    tab.show(page(MLP(20, [40, 40, 1])([0.1] * 20)), tmp_path)
    tab.run("gradwalk.player.go(gradwalk.line.steps - 40, 'jump')")
    labels = "[...document.querySelectorAll('.node.part')].map((card) => card.getAttribute('aria-label'))"
    assert all(", folded up; " in label and ", gradient " in label for label in tab.run(labels))
    name, grad = tab.run(
        "(({ graph, line }) => { const step = line.contributions.at(line.contributions.length - 41);"
        " return [graph.names[step.child], step.after]; })(gradwalk)"
    )
    label = tab.run("document.querySelector('.part.active-child').getAttribute('aria-label')")
    assert label.endswith(f", gradient {float(grad)!r}")
    assert f", folded up; {name}, data " in label
