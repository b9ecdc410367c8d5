"""Cards, without a browser: how large they are for their letters, and what stands where on them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from py_mini_racer import MiniRacer

from gradwalk.show.play import script

# as much of a document as cards need; without fonts every letter is 0.6 of its size wide
DRIVER = """
class Made {
  constructor(tag) { Object.assign(this, { tag, attributes: {}, children: [], dataset: {} }); }
  setAttribute(name, value) { this.attributes[name] = value; }
  removeAttribute(name) { delete this.attributes[name]; }
  getAttribute(name) { return name in this.attributes ? String(this.attributes[name]) : null; }
  append(...parts) { for (const part of parts) { this.children.push(part); if (part.tag) part.parent = this; } }
  before(part) { this.parent.children.splice(this.parent.children.indexOf(this), 0, part); }
  get textContent() { return this.children.map((each) => each.textContent ?? each).join(""); }
  set textContent(text) { this.children = [text]; }
  get firstChild() { return null; }
}
globalThis.document = { createElementNS: (_, tag) => new Made(tag) };
const tree = (part) => (part.tag ? [part.tag, part.attributes, ...part.children.map(tree)] : part);
function graphOf(text, name) {
  const graph = module_graph.fromExpression(text);
  return [graph, name === undefined ? graph.root : graph.names.indexOf(name)];
}
function size(text, name) {
  const [graph, i] = graphOf(text, name);
  const { width, height } = module_cards.sizeOf(graph, { nodes: [i], part: null });
  return [width, height];
}
function card(text, name) {
  const [graph, i] = graphOf(text, name);
  const item = { nodes: [i], part: null };
  const made = module_cards.cardOf(graph, item, 4, module_cards.sizeOf(graph, item), { x: 7, y: 9 }, new Map());
  return JSON.stringify([tree(made.group), made.about, made.editable]);
}
function part(title, count) {
  const item = { nodes: Array(count).fill(0), part: { title } };
  const [graph] = graphOf("a*b");
  const made = module_cards.cardOf(graph, item, 0, module_cards.sizeOf(graph, item), { x: 0, y: 0 }, new Map());
  return JSON.stringify([tree(made.group), made.about, made.editable]);
}
function written(text, room) {
  const made = new Made("text");
  made.setAttribute("textLength", 1);
  module_cards.writeNumber(made, text, room);
  return JSON.stringify([made.textContent, made.attributes]);
}
"""


@pytest.fixture(scope="module")
def v8() -> Iterator[MiniRacer]:
    with MiniRacer() as context:
        context.eval("globalThis.Node = { TEXT_NODE: 3 };" + script("cards", "graph") + DRIVER)
        yield context


@pytest.mark.parametrize(
    ("text", "name", "width", "height"),
    [
        ("a + 3", "3", 34, 24), ("a + 12345678", "12345678", pytest.approx(14 + 8 * 7.2), 24), ("a*b", "a", 65, 52),
        ("a*" + "n" * 10, "n" * 10, 12 + 90 + 2, 52),
        ("a*" + "n" * 11, "n" * 11, 12 + 80 + 2, 52),  # 113 would be too wide, in large letters
        ("a*" + "n" * 21, "n" * 21, 12 + 152 + 2, 52), ("a*" + "n" * 40, "n" * 40, 170, 52),
        ("tanh(a)", None, 12 + 5 + 30 + 18 + 2, 52),  # v1, with an index
        ("leaky_relu(a)", None, 12 + 5 + 75 + 18 + 2, 52),
    ],
)  # fmt: skip
def test_a_card_is_as_wide_as_its_letters(v8: MiniRacer, text: str, name: str | None, width: Any, height: int) -> None:
    """And not too narrow; a long name is in small letters, and the longest have an end."""
    assert [width, height] == list(v8.call("size", text, *([name] if name else [])))


def test_what_stands_on_a_card(v8: MiniRacer) -> None:
    """Name and sign above, data and gradient below each other at the right; its place is its middle."""
    group, about, editable = json.loads(v8.call("card", "u12 = a*b; tanh(u12)", "u12"))
    tag, attributes, box, name, glyph, count, data, blank, grad = group
    assert (tag, blank, about, editable) == ("g", " ", "u12, Product. a · b", False)
    assert attributes == {
        "class": "node op", "role": "img", "transform": "translate(7 9)", "tabindex": "-1", "data-card": 4,
    }  # fmt: skip
    assert box == ["rect", {"class": "box", "x": -32.5, "y": -26, "width": 65, "height": 52, "rx": 9}]
    assert name == ["text", {"class": "name", "x": -26.5, "y": -10}, "u", ["tspan", {"dy": 3, "dx": 1}, "12"]]
    assert glyph == ["text", {"class": "glyph", "x": 26.5, "y": -10}, "×"]
    assert count == ["text", {"class": "count", "x": -26.5, "y": 6}, ""]
    assert data == ["text", {"class": "data number", "x": 26.5, "y": 6.5}]
    assert grad == ["text", {"class": "grad number", "x": 26.5, "y": 21}]


@pytest.mark.parametrize(
    ("name", "kinds", "editable"),
    [("a", "node leaf editable", True), ("3", "node leaf constant", False), ("v2", "node op root", False)],
)
def test_each_kind_of_card(v8: MiniRacer, name: str, kinds: str, editable: bool) -> None:
    """A leaf can be edited; a constant has its number only; the result is known."""
    group, _, can_be_edited = json.loads(v8.call("card", "tanh(a*3)", name))
    assert (group[1]["class"], can_be_edited) == (kinds, editable)
    is_constant = "constant" in kinds
    assert group[2][1]["rx"] == (12 if is_constant else 9)
    assert (group[3][1]["class"] == "constant-text") is is_constant


def test_a_card_of_a_part(v8: MiniRacer) -> None:
    """It is a button with another card behind it, and says how many nodes are in it."""
    group, about, editable = json.loads(v8.call("part", "layer 1", 1234))
    assert (group[1]["class"], group[1]["role"], about, editable) == (
        "node part",
        "button",
        "layer 1 1,234 nodes",
        False,
    )
    behind, box, name, glyph, count = group[2:7]
    assert behind == ["rect", {"class": "box behind", "x": -52, "y": -30, "width": 112, "height": 52, "rx": 9}]
    assert box[1]["x"] == -56
    assert name[2:] == ["layer 1"]
    assert (glyph[2], count[2]) == ("⊞", "1,234 nodes")


@pytest.mark.parametrize(
    ("name", "shown", "kinds"),
    [
        ("n" * 10, "n" * 10, "name"), ("n" * 11, "n" * 11, "name small"), ("n" * 21, "n" * 21, "name small"),
        ("n" * 40, "n" * 20 + "…", "name small"),
    ],
)  # fmt: skip
def test_a_name_is_whole_if_it_can_be(v8: MiniRacer, name: str, shown: str, kinds: str) -> None:
    """In large letters, in small ones, or its beginning."""
    group, *_ = json.loads(v8.call("card", f"a*{name}", name))
    assert group[3][1:] == [{"class": kinds, "x": group[2][1]["x"] + 6, "y": -10}, shown]


@pytest.mark.parametrize(("room", "attributes"), [(12 + 7.2 * 5, {}), (12 + 7.2 * 5 - 0.1, 35.9)])
def test_a_number_that_is_too_long_is_set_narrower(v8: MiniRacer, room: float, attributes: Any) -> None:
    """Just as wide as there is room."""
    text, found = json.loads(v8.call("written", "12345", room))
    expected = attributes and {"textLength": pytest.approx(attributes), "lengthAdjust": "spacingAndGlyphs"}
    assert (text, found) == ("12345", expected or {})
