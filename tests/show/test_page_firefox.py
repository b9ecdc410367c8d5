"""The page in a second browser, in short: every example, keys, a mistake. `make firefox` runs all its tests there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import firefox
import pytest

from gradwalk.expression import parsed
from gradwalk.show.play import page

EXAMPLES = """(async () => {
  const { header, player } = gradwalk;
  const found = [];
  for (let k = 0; k < 8; k += 1) {
    header.examples.value = String(k);
    header.chosen();
    player.go(player.steps, "jump");
    const said = () => [...document.querySelectorAll("tbody .check")].map((each) => each.textContent);
    for (let wait = 0; wait < 100 && said().includes(""); wait += 1) await new Promise((done) => setTimeout(done, 30));
    const { graph, line, drawing } = gradwalk;
    found.push({
      text: graph.text, values: gradwalk.valuesByName(), data: [...line.data], grads: [...line.grads], said: said(),
      scale: drawing.viewport.scale, cards: document.querySelectorAll(".node > .box").length,
      whole: drawing.cards.every((card) => drawing.viewport.sees(drawing.placed.at[card.k], card.size)),
    });
  }
  return found;
})()"""


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[firefox.Tab]:
    with firefox.started() as browser:
        opened = browser.open(width=1280, height=720)
        opened.show(page(), tmp_path_factory.mktemp("page"))
        yield opened
        assert opened.errors == []


def test_every_example_has_the_engines_numbers(tab: firefox.Tab) -> None:
    """Data and gradients of each node are the engine's, every difference agrees, and all is seen and can be read."""
    examples: list[dict[str, Any]] = tab.run(EXAMPLES)
    assert len(examples) == 8
    for seen in examples:
        root = parsed(seen["text"]).evaluate(seen["values"])
        root.backward()
        order = root._topological_order()
        assert seen["cards"] == len(order)
        for node, data, grad in zip(order, seen["data"], seen["grads"], strict=True):
            assert data == pytest.approx(node.data, rel=1e-12)
            assert node._constant or grad == pytest.approx(node.grad, rel=1e-12)
        assert set(seen["said"]) == {"✓"}
        assert seen["whole"]
        assert 12.0 * seen["scale"] >= 10.99


# how far the index of a name reaches into the .grad that follows it
INTO_GRAD = """(() => {
  const written = document.querySelector(".step .grad-of");
  const rest = document.createRange();
  rest.selectNodeContents(written.lastChild);
  return written.querySelector("msub").getBoundingClientRect().right - rest.getBoundingClientRect().left;
})()"""


def test_a_dot_is_seen_behind_an_index(tab: firefox.Tab) -> None:
    """Where other browsers leave room behind an index, which is taken back, this one leaves none."""
    tab.run("gradwalk.type('relu(a*b + d)')")
    tab.run("gradwalk.player.go(4, 'jump')")
    assert tab.text(".step .grad-of").endswith(".grad")
    assert tab.run(INTO_GRAD) <= 0.5


def test_keys_and_mistakes(tab: firefox.Tab) -> None:
    """The keyboard steps, and a mistake is explained."""
    tab.press("Home")
    tab.press("ArrowRight")
    assert tab.run("gradwalk.t") == 1
    tab.run("gradwalk.type('rleu(a)')")
    assert "did you mean relu?" in tab.text(".problem")
