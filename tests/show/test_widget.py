"""The notebook widget: what it hands to the page, what edits do in Python, and what a saved notebook shows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import Browser, started

import gradwalk
from gradwalk import Value, composites
from gradwalk.show import play
from gradwalk.show.widget import Player, static_walk


@pytest.fixture
def program() -> tuple[Value, Value, Value]:
    a, b = Value(2.0, label="a"), Value(-3.0, label="b")
    return a, b, gradwalk.tanh(a * b) + gradwalk.softmax([a, b])[1]


def test_it_begins_with_the_program(program: tuple[Value, Value, Value]) -> None:
    """The widget's state is the program, as the page reads it."""
    *_, root = program
    assert Player(root).start == play.start_of(root)


def test_an_expression_is_live_too() -> None:
    """An expression with values becomes a graph whose leaves Python has."""
    player = Player("a*b", {"a": 2.0, "b": 5.0})
    assert player.value.data == 10.0
    assert [node["label"] for node in player.start["program"]["nodes"][:2]] == ["a", "b"]


def test_an_edit_reaches_python(program: tuple[Value, Value, Value]) -> None:
    """A leaf edited in the page has its new data in Python, and `value` is recorded again from it."""
    a, b, root = program
    player = Player(root)
    player._received(player, {"kind": "edit", "values": {"0": 0.5}}, [])
    player._received(player, {"kind": "edit", "values": {"1": 0.25}}, [])
    assert (a.data, b.data) == (0.5, 0.25)
    again = gradwalk.tanh(a * b) + gradwalk.softmax([a, b])[1]
    assert player.value.data == again.data
    player.value.backward()
    expected = a.grad
    a.grad = 0.0
    again.backward()
    assert expected == a.grad


def test_composites_are_recorded_again() -> None:
    """Every composite can be computed again from its leaves."""
    a, b = Value(0.5, label="a"), Value(-1.25, label="b")
    parts = [
        *gradwalk.log_softmax([a, b]),
        *gradwalk.rmsnorm([a, b]),
        *gradwalk.layernorm([a, b]),
        gradwalk.take([a, b], 1),
    ]
    parts += [
        gradwalk.mean([a, b]),
        gradwalk.norm([a, b]),
        gradwalk.logsumexp([a, b]),
        gradwalk.cross_entropy([a, b], 1),
    ]
    parts += [gradwalk.dot([a], [b]), composites.maximum([a, b]), composites.minimum([a, b])]
    root = gradwalk.sum(parts)
    player = Player(root)
    player._received(player, {"kind": "edit", "values": {}}, [])
    assert player.value is not root
    assert player.value.data == root.data


@pytest.mark.parametrize(
    "message", ["edit", {}, {"kind": "edit"}, {"kind": "edit", "values": {"99": 1.0, "-1": 1.0, "2": 1.0}}]
)
def test_other_messages_change_nothing(program: tuple[Value, Value, Value], message: Any) -> None:
    """What is no edit of a leaf is ignored."""
    a, b, root = program
    player = Player(root)
    player._received(player, message, [])
    assert (a.data, b.data, player.value.data) == (2.0, -3.0, root.data)


def test_python_pushes_updates(program: tuple[Value, Value, Value], monkeypatch: pytest.MonkeyPatch) -> None:
    """After a change in Python, update() sends the leaves' data to the page; another Value replaces the program."""
    a, _, root = program
    player = Player(root)
    sent: list[Any] = []
    monkeypatch.setattr(player, "send", sent.append)
    a.data = 7.0
    player.update()
    assert sent == [{"kind": "values", "values": {"0": 7.0, "1": -3.0}}]
    assert player.value.data == (gradwalk.tanh(a * program[1]) + gradwalk.softmax([a, program[1]])[1]).data
    player.update(a * 2.0)
    assert len(player.start["program"]["nodes"]) == 3


def test_a_saved_notebook_shows_the_walk(program: tuple[Value, Value, Value], monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the live view the output has the walk as HTML without scripts, and as text."""
    *_, root = program
    root.backward()  # what the leaves hold from before is not part of what is shown
    outputs: list[dict[str, str]] = []
    monkeypatch.setattr("IPython.display.display", lambda data, **_: outputs.append(data))
    Player(root)._ipython_display_()
    live, static = outputs
    assert "application/vnd.jupyter.widget-view+json" in live
    assert "a.grad +=" in static["text/html"]
    assert "<script" not in static["text/html"]
    assert static == {"text/html": static_walk(root), "text/plain": repr(root)}


def test_labels_in_the_static_walk_are_text() -> None:
    """A label cannot be markup in a saved notebook either."""
    html = static_walk(Value(1.0, label="<img src=x onerror=alert(1)>") * 2.0)
    assert "<img" not in html
    assert "&lt;img" in html


def test_without_a_kernel_there_is_no_widget() -> None:
    """Here, where no kernel runs, play would open a browser."""
    assert not play.in_notebook()


# ---------------------------------------------------------------- the front end, in a real browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started() as running:
        yield running


def test_the_front_end(browser: Browser, program: tuple[Value, Value, Value], tmp_path: Path) -> None:
    """The widget's own module, given a model as anywidget would, draws, sends edits and takes values."""
    *_, root = program
    player = Player(root)
    state = json.dumps({"start": player.start, "stylesheet": player.stylesheet, "height": player.height}).replace(
        "<", "\\u003c"
    )
    module = str(player._esm).replace("export default module_widget;", "globalThis.widget = module_widget;")
    model = (
        f"const state = {state}; const heard = {{}}; globalThis.sent = []; globalThis.heard = heard;"
        "const model = { get: (n) => state[n], on: (n, f) => { heard[n] = f; }, send: (m) => sent.push(m) };"
        "widget.render({ model, el: document.body }); globalThis.tree = document.body.lastElementChild.shadowRoot;"
    )
    html = f"<!doctype html><meta charset=utf-8><body></body><script type=module>{module}{model}</script>"
    tab = browser.open()
    tab.show(html, tmp_path)
    tab.settle()
    assert tab.run("tree.querySelectorAll('.node').length") == 6
    assert tab.run("tree.querySelector('.graph').getBoundingClientRect().height") > 200
    tab.run(
        "(() => { const f = tree.querySelector('input.value'); f.focus(); f.value = '4';"
        " f.dispatchEvent(new Event('input')); })()"
    )
    tab.wait("sent.length === 1")
    assert tab.run("sent[0]") == {"kind": "edit", "values": {"0": 4}}
    tab.run("heard['msg:custom']({ kind: 'values', values: { 1: 9 } })")
    tab.settle()
    assert tab.run("[...tree.querySelectorAll('input.value')].at(1).value") == "9"
    assert tab.errors == []
    tab.close()


def test_no_trait_hides_one_that_every_widget_has() -> None:
    """A notebook's widget manager takes `style` and `layout` for models; a text of that name breaks the view."""
    assert {"style", "layout", "tooltip", "tabbable"}.isdisjoint(Player.class_own_traits())
