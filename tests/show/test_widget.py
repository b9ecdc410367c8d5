"""The notebook widget: what it hands to the page, what edits do in Python, and what a saved notebook shows."""

from __future__ import annotations

import html
import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from chromium import Browser

import gradwalk
from gradwalk import Value, composites
from gradwalk.show import play, widget
from gradwalk.show.widget import Player


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
    player.values = {"0": 0.5}
    player.values = {"0": 0.5, "1": 0.25}
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
    player.values = {"0": a.data}
    assert player.value is not root
    assert player.value.data == root.data


def test_without_anything_to_show_it_is_the_first_example() -> None:
    """Whose leaves are nobody's in Python: an edit changes nothing there."""
    player = Player(None)
    player.values = {"0": 4.0}
    assert (player.value, player.start) == (None, {})
    assert html.escape(play.page()) in player._copy()["text/html"]


def test_a_node_made_by_hand_is_not_recorded_again() -> None:
    """Nobody knows how it is computed; the leaf has its new data."""
    a = Value(3.0, label="a")
    square = Value(9.0, (a,), "sq")
    player = Player(square)
    player.values = {"0": 4.0}
    assert (a.data, player.value) == (4.0, square)


@pytest.mark.parametrize("values", [{"99": 1.0, "-1": 1.0, "2": 1.0}, {"0": "two"}, {"x": 1.0}, {"0": None}])
def test_what_is_no_edit_changes_nothing(program: tuple[Value, Value, Value], values: Any) -> None:
    """Places that are no leaf and values that are no number are ignored."""
    a, b, root = program
    player = Player(root)
    player.values = values
    assert (a.data, b.data, player.value.data) == (2.0, -3.0, root.data)


def test_python_pushes_updates(program: tuple[Value, Value, Value]) -> None:
    """After a change in Python, update() hands the leaves' data to the page; another Value replaces the program."""
    a, _, root = program
    player = Player(root)
    a.data = 7.0
    player.update()
    assert player.values == {"0": 7.0}
    assert player.value.data == (gradwalk.tanh(a * program[1]) + gradwalk.softmax([a, program[1]])[1]).data
    player.update(a * 2.0)
    assert len(player.start["program"]["nodes"]) == 3
    assert player.values == {}


def test_what_a_cell_changes_is_shown(program: tuple[Value, Value, Value], monkeypatch: pytest.MonkeyPatch) -> None:
    """When a cell has run, every widget has the leaves' data, and has recorded its result again."""
    events = pytest.importorskip("IPython.core.events")
    shell = SimpleNamespace(events=events.EventManager(None, events.available_events))
    monkeypatch.setattr(widget, "_shell", lambda: shell)
    a, _, root = program
    players = [Player(root), Player(a * a)]
    a.data = 3.0
    assert [player.values for player in players] == [{}, {}]
    shell.events.trigger("post_run_cell", None)
    assert [player.values for player in players] == [{"0": 3.0}, {"0": 3.0}]
    assert players[1].value.data == 9.0
    assert len(shell.events.callbacks["post_run_cell"]) == 1


def test_a_page_that_is_loaded_again_has_the_edits(program: tuple[Value, Value, Value]) -> None:
    """What a new view begins with, the start and the values, is what the kernel has."""
    a, b, root = program
    player = Player(root)
    player.values = {"0": 4.0}
    shown = [node.get("data") for node in player.start["program"]["nodes"]][:2]
    shown = [player.values.get(str(i), data) for i, data in enumerate(shown)]
    assert shown == [a.data, b.data] == [4.0, -3.0]


def test_two_widgets_of_one_leaf_agree(program: tuple[Value, Value, Value]) -> None:
    """An edit in one is in the other, and both have recorded their result again."""
    a, b, root = program
    one, other = Player(root), Player(a * a)
    one.values = {"0": 4.0}
    assert other.values == {"0": 4.0}
    assert other.value.data == 16.0
    other.values = {"0": 0.5}
    assert (a.data, one.values["0"]) == (0.5, 0.5)
    assert one.value.data == (gradwalk.tanh(a * b) + gradwalk.softmax([a, b])[1]).data


def test_numbers_that_json_lacks_arrive(program: tuple[Value, Value, Value]) -> None:
    """inf and nan go both ways, and end in one message each."""
    a, _, root = program
    player = Player(root)
    player.values = {"0": "inf"}
    assert a.data == math.inf
    a.data = math.nan
    player.update()
    assert player.values == {"0": "nan"}


class Shown:
    """An output of a cell, which can be written anew."""

    def __init__(self, data: dict[str, str], **options: Any) -> None:
        self.data, self.options = data, options

    def update(self, data: dict[str, str], **options: Any) -> None:
        assert options == {"raw": True}
        self.data = data


def test_a_saved_notebook_shows_the_page(program: tuple[Value, Value, Value], monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the live view the cell has the whole page in a frame, and its picture for where frames are stripped."""
    *_, root = program
    outputs: list[Shown] = []

    def display(data: dict[str, str], **options: Any) -> Shown:
        outputs.append(Shown(data, **options))
        return outputs[-1]

    monkeypatch.setattr("IPython.display.display", display)
    player = Player(root)
    player._ipython_display_()
    assert outputs[0].options["raw"]
    assert outputs[1].options == {"raw": True, "display_id": True}  # or it could not be written anew
    live, copy = (output.data for output in outputs)
    assert "application/vnd.jupyter.widget-view+json" in live
    assert live["text/plain"] == ""
    assert html.escape(play.page(root)) in copy["text/html"]
    assert 'src="data:image/svg+xml;base64,' in copy["text/html"]
    assert copy["text/plain"] == repr(root)
    assert copy["image/svg+xml"].startswith("<?xml")
    player.values = {"0": 4.0}
    assert html.escape(play.page(player.value)) in outputs[1].data["text/html"]


def test_labels_in_the_copy_are_text() -> None:
    """A label cannot be markup in a saved notebook either."""
    copy = Player(Value(1.0, label='"><img src=x onerror=alert(1)>') * 2.0)._copy()["text/html"]
    assert copy.count("<img") == 1  # the picture
    assert "onerror=alert(1)>" not in copy


def test_without_a_kernel_there_is_no_widget() -> None:
    """Here, where no kernel runs, play would open a browser."""
    assert not play.in_notebook()


# ---------------------------------------------------------------- the front end, in a real browser


def test_the_front_end(browser: Browser, program: tuple[Value, Value, Value], tmp_path: Path) -> None:
    """The widget's own module, given a model as anywidget would, draws, sends edits and takes values."""
    *_, root = program
    player = Player(root)
    names = ("start", "values", "stylesheet", "height", "copy")
    state = json.dumps({name: getattr(player, name) for name in names}).replace("<", "\\u003c")
    module = str(player._esm).replace("export default module_widget;", "globalThis.widget = module_widget;")
    model = (
        f"const state = {state}; const heard = {{}}; globalThis.sent = []; globalThis.heard = heard;"
        "const tell = (n) => (heard[n] ?? []).forEach((f) => f());"
        "globalThis.model = { get: (n) => state[n], on: (n, f) => { (heard[n] ??= []).push(f); },"
        " off: (n, f) => { heard[n] = heard[n].filter((each) => each !== f); },"
        " set: (n, v) => { state[n] = v; tell(`change:${n}`); }, save_changes: () => sent.push(state.values) };"
        "globalThis.ends = []; const shown = () => { ends.push(widget.render({ model, el: document.body }));"
        " return document.body.lastElementChild.shadowRoot; };"
        "globalThis.tree = shown(); globalThis.second = shown();"
    )
    text = (
        "<!doctype html><meta charset=utf-8><body data-jp-theme-light=false>"
        "<div class=jp-OutputArea-child>Loading widget...</div>"
        f"<div class=jp-OutputArea-child>{player._copy()['text/html']}</div>"
        f"<script type=module>{module}{model}</script></body>"
    )
    tab = browser.open()
    tab.show(text, tmp_path)
    tab.settle()
    assert tab.run("tree.querySelectorAll('.node').length") == 6
    assert tab.run("tree.querySelector('.graph').getBoundingClientRect().height") > 200
    tab.run(
        "(() => { const f = tree.querySelector('input.value'); f.focus(); f.value = '4';"
        " f.dispatchEvent(new Event('input')); })()"
    )
    tab.wait("sent.length === 1")
    assert tab.run("sent[0]") == {"0": 4}
    assert tab.run("second.querySelector('input.value').value") == "4"
    tab.run("model.set('values', { 0: 4, 1: 9 })")
    tab.settle()
    values = "(view) => [...view.querySelectorAll('input.value')].map((field) => field.value)"
    assert tab.run(f"[tree, second].map({values})") == [["4", "9"], ["4", "9"]]
    # an example that is looked at in between is nobody's in the kernel
    choose = "((which) => { const s = tree.querySelector('.examples'); s.value = which;"
    choose += " s.dispatchEvent(new Event('change')); })"
    tab.run(f"{choose}('1')")
    tab.run("tree.querySelector('input.value').blur(), tree.querySelector('input.value').focus()")
    tab.type("6")
    assert tab.run(f"({values})(tree)") == ["6"]
    tab.run("model.set('values', { 0: 4, 1: 8 }); new Promise((done) => setTimeout(done, 300))")
    assert tab.run("[sent.length, ...tree.querySelectorAll('input.value')].map((e) => e.value ?? e)") == [1, "6"]
    tab.run("tree.querySelector('input.value').blur()")
    tab.run(f"{choose}('program')")
    assert tab.run(f"[tree, second].map({values})") == [["4", "8"], ["4", "8"]]
    # the notebook's theme; its copy for saved notebooks is hidden; what an edit means is said
    assert tab.run("tree.querySelector('.gradwalk').dataset.theme") == "dark"
    tab.run("document.body.dataset.jpThemeLight = 'true'")
    tab.wait("tree.querySelector('.gradwalk').dataset.theme === 'light'")
    tab.run("delete document.body.dataset.jpThemeLight")
    for theme in ("dark", "light"):  # as another notebook says it
        tab.run(f"document.body.className = 'vscode-{theme}'")
        tab.wait(f"tree.querySelector('.gradwalk').dataset.theme === '{theme}'")
    tab.run("document.body.className = ''")
    tab.wait("tree.querySelector('.gradwalk').dataset.theme === undefined")
    seen = "[...document.querySelectorAll('.jp-OutputArea-child')].map((each) => each.clientHeight > 0)"
    assert tab.run(seen) == [True, False]
    assert "in the kernel" in tab.run("tree.querySelector('.note').textContent")
    # with the last view the copy is back, and the place of the views is not seen
    tab.run("ends[0]()")
    assert tab.run(seen) == [True, False]
    tab.run("ends[1]()")
    assert tab.run(seen) == [False, True]
    assert tab.run("Object.values(heard).flat().length") == 0  # nobody listens for views that are gone
    assert tab.errors == []
    tab.close()


def test_no_trait_hides_one_that_every_widget_has() -> None:
    """A notebook's widget manager takes `style` and `layout` for models; a text of that name breaks the view."""
    assert {"style", "layout", "tooltip", "tabbable"}.isdisjoint(Player.class_own_traits())
