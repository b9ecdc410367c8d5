"""Keys, buttons, fields and the pointer: each does what the page says it does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import Browser, Tab
from py_mini_racer import MiniRacer

from gradwalk.show.play import page, script

WALK = ("(a*b + a)**2", {"a": 2.0, "b": -3.0})  # 3 forward, the seed, 5 backward


@pytest.fixture
def tab(browser: Browser, tmp_path: Path) -> Iterator[Tab]:
    opened = browser.open(width=1280, height=720, reduced=True)
    opened.show(page(*WALK), tmp_path)
    yield opened
    assert opened.errors == []
    opened.close()


@pytest.fixture(scope="module")
def open_tab(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Tab:
    """One page for many small tests, each of which says where it begins."""
    opened = browser.open(width=1280, height=720, reduced=True)
    opened.show(page(*WALK), tmp_path_factory.mktemp("page"))
    return opened


# ---------------------------------------------------------------- keys


@pytest.fixture(scope="module")
def v8() -> Iterator[MiniRacer]:
    with MiniRacer() as context:
        context.eval(
            script("keyboard") + "let isLeft = false; const pressed = (key, target, given) => module_keyboard.shortcut("
            "{ key, composedPath: () => [{ blur() { isLeft = true; }, ...target }], ...given });"
        )
        yield context


@pytest.mark.parametrize(
    ("key", "target", "given", "action"),
    [
        ("b", "DIV", {}, "backward"),
        ("B", "DIV", {}, "backward"),
        ("b", "DIV", {"ctrlKey": True}, None),
        ("b", "DIV", {"metaKey": True}, None),
        ("b", "DIV", {"altKey": True}, None),
        ("b", "DIV", {"defaultPrevented": True}, None),
        ("b", "INPUT text", {}, None),
        ("b", "TEXTAREA", {}, None),
        ("Escape", "INPUT text", {}, None),
        ("ArrowLeft", "INPUT range", {}, "back"),
        (" ", "BUTTON", {}, None),
        (" ", "SUMMARY", {}, None),
        (" ", "A", {}, None),
        (" ", "DIV", {}, "toggle"),
        ("b", "BUTTON", {}, "backward"),
        ("ArrowUp", "SELECT", {}, None),
        ("Escape", "SELECT", {}, "escape"),
        ("x", "DIV", {}, None),
        ("constructor", "DIV", {}, None),
    ],
)
def test_whose_a_key_is(v8: MiniRacer, key: str, target: str, given: dict[str, bool], action: str | None) -> None:
    """Fields and lists keep theirs, buttons the space bar, and the browser all with Ctrl, Alt or Meta."""
    tag, _, kind = target.partition(" ")
    v8.eval("isLeft = false")
    assert action == v8.call("pressed", key, {"tagName": tag, "type": kind}, given)
    assert v8.eval("isLeft") is (key == "Escape" and tag == "INPUT")


def test_keys_do_what_the_help_says(tab: Tab) -> None:
    """One after the other: to a step, a mode, a size, a card, a field."""
    scale = tab.run("gradwalk.drawing.viewport.scale")
    place, mode = "gradwalk.t", "gradwalk.mode"
    size = "gradwalk.drawing.viewport.scale"
    card = "Number(document.activeElement.dataset.card)"
    detail = "gradwalk.detail.hidden"
    for key, seen, expected in [
        ("End", place, 9), ("f", place, 0), ("b", place, 4), ("ArrowRight", place, 5), ("ArrowLeft", place, 4),
        ("w", place, 4), ("4", mode, "assign"), ("w", place, tab.run("gradwalk.line.forwardSteps") + 5),
        ("2", mode, "breadth_first"), ("3", mode, "no_order"), ("5", mode, "not_reset"), ("1", mode, "right"),
        ("Home", place, 0), ("ArrowLeft", place, 0),
        ("+", size, 1.25 * scale), ("=", size, 1.25**2 * scale), ("-", size, 1.25 * scale),
        ("0", size, tab.run("gradwalk.drawing.viewport.whole")),
        ("ArrowUp", card, 4), ("ArrowDown", card, 4), ("ArrowUp", card, 3), ("ArrowUp", card, 2),
        ("ArrowDown", card, 3), ("ArrowUp", detail, False), ("Escape", detail, True),
        ("d", "gradwalk.root.dataset.theme", "dark"), ("d", "gradwalk.root.dataset.theme", "light"),
        ("?", "gradwalk.help.open", True), ("ArrowRight", place, 0), ("Escape", "gradwalk.help.open", False),
        ("v", "document.activeElement.getAttribute('aria-label')", "value of a"), ("b", place, 0),
        ("Escape", "document.activeElement.tagName", "BODY"),
        ("/", "document.activeElement.className", "expression"), ("End", place, 0),
    ]:  # fmt: skip
        tab.press(key)
        assert tab.run(seen) == pytest.approx(expected), (key, seen)


def test_from_no_card_at_all(tab: Tab) -> None:
    """Down begins with the first card, up with the last; a card is one stop of the Tab key at a time."""
    tab.press("ArrowDown")
    stops = "gradwalk.drawing.cards.filter(({ group }) => group.getAttribute('tabindex') === '0').map(({ k }) => k)"
    assert [tab.run("Number(document.activeElement.dataset.card)"), tab.run(stops)] == [0, [0]]
    tab.press("ArrowUp")
    assert tab.run(stops) == [0]  # there is none before it
    tab.press("ArrowDown")
    assert tab.run(stops) == [1]


# ---------------------------------------------------------------- the transport


def test_the_buttons_of_the_transport(tab: Tab) -> None:
    """To the start, back, on and to the end; from the end it plays from the start; the speed goes round."""
    found = []
    for name in ("last", "back", "back", "next", "first"):
        tab.run(f"document.querySelector('.icon.{name}').click()")
        found.append(tab.run("gradwalk.t"))
    assert found == [9, 8, 7, 8, 0]
    labels = "[toggle.getAttribute('aria-label'), toggle.title]"
    tab.press("End")
    pressed = tab.run(f"(({{ toggle }}) => {{ toggle.click(); return [gradwalk.t, ...{labels}]; }})(gradwalk.player)")
    assert pressed == [0, "Pause (space)", "Pause (space)"]
    tab.run("gradwalk.player.toggle.click()")
    assert tab.run(f"(({{ toggle }}) => {labels})(gradwalk.player)") == ["Play (space)", "Play (space)"]
    speeds = tab.run(
        "(({ speedButton: speed }) => [1, 2, 3, 4].map(() => { speed.click(); return speed.textContent; }))"
        "(gradwalk.player)"
    )
    assert speeds == ["2×", "4×", "0.5×", "1×"]


@pytest.mark.parametrize(
    ("steps", "speed", "taken", "pause"),
    [(9, 1, 1, 1000), (9, 2, 1, 500), (9, 0.5, 1, 2000), (80, 1, 1, 500), (10_000, 1, 4, 16), (10_000, 4, 16, 16)],
)
def test_a_long_walk_is_played_faster(open_tab: Tab, steps: int, speed: float, taken: int, pause: float) -> None:
    """A second for a step, forty for all of them; where steps are shorter than frames, several at a time."""
    assert open_tab.run(
        f"(() => {{ const {{ player }} = gradwalk; Object.assign(player, {{ steps: {steps}, speed: {speed}, t: 0 }});"
        " const { on } = player; player.on = { move() {} }; const real = globalThis.setTimeout; let pause = null;"
        " globalThis.setTimeout = (_, wait) => { pause = wait; return 1; }; player.tick();"
        " globalThis.setTimeout = real; Object.assign(player, { on, timer: null }); return [player.t, pause]; })()"
    ) == [taken, pause]


def test_the_track_says_where_one_is(tab: Tab) -> None:
    """How far, where the seed is, whether it is behind, and where the first wrong step is."""
    state = (
        "(({ player: { slider, root, flag, counter } }) => [slider.value, slider.max,"
        " slider.style.getPropertyValue('--at'), root.style.getPropertyValue('--seed'),"
        " root.classList.contains('in-backward'), flag.hidden, counter.textContent])(gradwalk)"
    )
    seed = f"{100 * 3.5 / 9:.3f}"
    for t, is_backward in ((0, False), (3, False), (4, True), (9, True)):
        tab.run(f"gradwalk.player.go({t}, 'jump')")
        value, most, at, split, behind, hidden, counter = tab.run(state)
        assert (value, most, behind, hidden, counter) == (str(t), "9", is_backward, True, f"{t} / 9")
        assert float(at[:-1]) == pytest.approx(100 * t / 9, abs=1e-3)
        assert f"{float(split[:-1]):.3f}" == seed
    tab.run("gradwalk.setMode('assign')")
    wrong = tab.run("gradwalk.line.firstWrongStep")
    assert tab.run("gradwalk.player.flag.hidden") is False
    assert float(tab.run("gradwalk.player.flag.style.getPropertyValue('--at')")) == pytest.approx(wrong / 9)


# ---------------------------------------------------------------- values


@pytest.mark.parametrize(
    ("start", "key", "given", "expected"),
    [
        (2, "ArrowUp", "", 2.1), (2, "ArrowDown", "", 1.9), (2, "ArrowUp", "shiftKey: true", 3), (2, "x", "", 2),
        (2, "ArrowUp", "altKey: true", 2.01), (2, "PageUp", "", 3), (2, "PageDown", "", 1), (25, "ArrowUp", "", 26),
        (-250, "ArrowDown", "", -260), (0.2, "ArrowUp", "", 0.3), (10, "ArrowUp", "", 11), (9.5, "ArrowUp", "", 9.6),
    ],
)  # fmt: skip
def test_keys_change_a_value(open_tab: Tab, start: float, key: str, given: str, expected: float) -> None:
    """By a tenth of its first digit's place, by ten times that with Shift or Page, by a tenth of it with Alt."""
    assert open_tab.run(
        f"(() => {{ gradwalk.edit(0, {start}); gradwalk.render('edit'); const field = document.querySelector('.value');"
        f" field.blur(); field.focus(); field.dispatchEvent(new KeyboardEvent('keydown', {{ key: '{key}', {given} }}));"
        " return [gradwalk.values[0], Number(field.value)]; })()"
    ) == [expected, expected]


@pytest.mark.parametrize(
    ("by", "shift", "expected"), [(3, False, 2), (4, False, 2.02), (-20, False, 1.9), (20, True, 3)]
)
def test_a_card_is_dragged(open_tab: Tab, by: float, shift: bool, expected: float) -> None:
    """A hundredth for every two pixels, with Shift a tenth; less than four pixels are a press that was not steady."""
    assert open_tab.run(
        "(() => { gradwalk.edit(0, 2); const card = document.querySelector('.node.editable');"
        " const tell = (kind, x) => card.dispatchEvent(new PointerEvent(kind, { clientX: x, pointerId: 1, button: 0,"
        f" shiftKey: {str(shift).lower()}, bubbles: true, cancelable: true }})); card.setPointerCapture = () => {{}};"
        f" tell('pointerdown', 100); tell('pointermove', 100 + {by}); tell('pointerup', 100 + {by});"
        f" tell('pointermove', 300); return gradwalk.values[0]; }})()"
    ) == pytest.approx(expected)  # fmt: skip


def test_all_nodes_are_listed_from_the_result_on(tab: Tab) -> None:
    """And only leaves again, when the button is pressed once more; each row has its node's numbers."""
    tab.press("End")
    rows = (
        "(({ table, graph }) => [table.toggle.getAttribute('aria-pressed'), table.rows.map((row) =>"
        " [graph.names[row.i], row.value.value ?? row.value.textContent, row.grad.textContent])])(gradwalk)"
    )
    leaves: list[Any] = ["false", [["a", "2", "16"], ["b", "−3", "−16"]]]
    assert tab.run(rows) == leaves
    tab.run("gradwalk.table.toggle.click()")
    a, b = leaves[1]
    assert tab.run(rows) == ["true", [["v3", "16", "1"], ["v2", "−4", "−8"], ["v1", "−6", "−8"], b, a]]
    tab.run("gradwalk.table.toggle.click()")
    assert tab.run(rows) == leaves


def test_what_is_said_of_a_card_covers_neither_it_nor_the_sides(tab: Tab) -> None:
    """It is below its card, or above it where there is no room, and inside the stage."""
    for k in range(5):
        tab.run(f"gradwalk.hover(gradwalk.drawing.cards[{k}])")
        note, card, stage = tab.run(
            f"[gradwalk.detail, gradwalk.drawing.cards[{k}].group, gradwalk.stage].map((each) => {{"
            " const { left, right, top, bottom } = each.getBoundingClientRect(); return [left, right, top, bottom]; })"
        )
        assert stage[0] + 7 <= note[0]
        assert note[1] <= stage[1] - 7
        assert card[3] + 9 <= note[2] or note[3] <= card[2] - 9
        middle = (card[0] + card[1]) / 2 - (note[0] + note[1]) / 2
        assert abs(middle) < 1 or note[0] < stage[0] + 9 or note[1] > stage[1] - 9
    tab.run("gradwalk.hover(null)")
    assert tab.run("gradwalk.detail.hidden")


# ---------------------------------------------------------------- the field for expressions


@pytest.mark.parametrize(
    ("before", "after", "seen"),
    [
        ("b ", " c", "b ^ c"), ("a = 1\nb ", " c\nd", "b ^ c"), ("", "", "^"), ("a\n", "\nb", "^"),
        ("b" * 40, "c" * 40, "b" * 24 + "^" + "c" * 23),
        ("a\n" + "b" * 24, "c" * 23 + "\nd", "b" * 24 + "^" + "c" * 23),
    ],
)  # fmt: skip
def test_a_mistake_is_shown_with_what_is_around_it(open_tab: Tab, before: str, after: str, seen: str) -> None:
    """Of its line, and of a long one the characters beside it."""
    text, place = json.dumps(f"{before}^{after}"), len(before)
    shown = (
        "[...document.querySelectorAll('.excerpt, .excerpt mark')].map((each) => each.textContent)"
        ".concat(gradwalk.header.problem.hidden, gradwalk.header.field.getAttribute('aria-invalid'))"
    )
    open_tab.run(f"gradwalk.header.setError('not so', {text}, {place})")
    assert open_tab.run(shown) == [seen, "^", False, "true"]
    open_tab.run("gradwalk.header.setError('', '', -1)")
    assert open_tab.run(shown) == [True, "false"]


def test_a_mistake_that_is_nowhere(open_tab: Tab) -> None:
    """At the end it is marked by a blank; one that is about all of it has no excerpt."""
    excerpt = "[...document.querySelectorAll('.excerpt')].map((each) => each.textContent)"
    open_tab.run("gradwalk.header.setError('not so', 'a +', 3)")
    assert open_tab.run(excerpt) == ["a +␣"]
    open_tab.run("gradwalk.header.setError('not so', 'a +', -1)")
    assert open_tab.run(excerpt) == []
    open_tab.run("gradwalk.header.setError('', '', -1)")


@pytest.mark.parametrize(("lines", "rows"), [(1, 1), (2, 2), (6, 6), (9, 6)])
def test_the_field_is_as_high_as_its_text(open_tab: Tab, lines: int, rows: int) -> None:
    """Up to six lines."""
    assert rows == open_tab.run(
        f"(({{ field }}) => {{ field.value = 'a\\n'.repeat({lines - 1}) + 'a'; gradwalk.header.grow();"
        " const { rows } = field; field.value = ''; gradwalk.header.grow(); return rows; })(gradwalk.header)"
    )


def test_a_press_beside_the_help_closes_it(tab: Tab) -> None:
    """And none on it."""
    is_open = "(({ help }, at) => { help.showModal(); at(help).click(); return help.open; })"
    assert tab.run(f"{is_open}(gradwalk, (help) => help.querySelector('h2'))") is True
    assert tab.run("(gradwalk.help.close(), gradwalk.help.open)") is False
    assert tab.run(f"{is_open}(gradwalk, (help) => help)") is False


def test_what_a_screen_reader_hears(tab: Tab) -> None:
    """The mode that was chosen, and what is wrong with a value."""
    heard = "gradwalk.live.textContent"
    tab.run("gradwalk.setMode('assign')")
    assert tab.run(heard) == tab.run("document.querySelector('.modes').selectedOptions[0].textContent")
    tab.run("gradwalk.example({ text: 'log(a)', values: { a: 2 } }); gradwalk.edit(0, -1)")
    tab.settle()
    assert tab.run(heard).startswith("log: expected x > 0, got -1.0")


def test_another_size_is_another_drawing(tab: Tab) -> None:
    """All of the graph is in sight again; where nothing has changed, it stays as it was."""
    size = "[gradwalk.drawing.viewport.view.height, gradwalk.drawing.svg.style.height]"
    tab.run("gradwalk.canvas.style.flex = 'none'; gradwalk.canvas.style.height = '300px'; 0")
    tab.wait(f"String({size}) === '300,300px'")
    assert tab.run("gradwalk.drawing.placed.height * gradwalk.drawing.viewport.scale") <= 300
    same = "(({ drawing: { placed } }) => { gradwalk.resized(); return placed === gradwalk.drawing.placed; })(gradwalk)"
    assert tab.run(same)


def test_an_address_that_is_typed_is_opened(tab: Tab) -> None:
    """With its expression, its values and its step."""
    tab.run("location.hash = '#e=p*q&v=p:3,q:4&t=2'")
    tab.wait("gradwalk.graph.names.join() === 'p,q,v1'")
    assert tab.run("[gradwalk.values.slice(0, 2).join(), gradwalk.t, gradwalk.mode]") == ["3,4", 2, "right"]


# ---------------------------------------------------------------- without a browser


@pytest.fixture(scope="module")
def parts() -> Iterator[MiniRacer]:
    with MiniRacer() as context:
        context.eval(
            script("dom", "own")
            + """
function dragged(button, events) {
  const heard = {}; const seen = [];
  const target = {
    addEventListener: (kind, act) => { heard[kind] = act; }, removeEventListener: (kind) => { delete heard[kind]; },
    setPointerCapture: (id) => seen.push(`held ${id}`),
  };
  const move = (by, more) => seen.push([by, more]);
  module_dom.drag({ button, clientX: 100, pointerId: 7 }, target, move, () => seen.push("tap"));
  for (const [type, clientX, shiftKey] of events) {
    heard[type]?.({ type, clientX, shiftKey, pointerId: 7, preventDefault() {} });
  }
  return JSON.stringify([seen, Object.keys(heard)]);
}
function entered(value, at, keys) {
  const seen = [];
  const field = {
    value, selectionStart: at, selectionEnd: at,
    setRangeText(text, from, to, how) { seen.push(text, from, to, how); },
  };
  const event = { key: "Enter", preventDefault() { seen.push("taken"); }, ...keys };
  module_own.OwnPython.prototype.key.call({ field, run: () => seen.push("run") }, event);
  return JSON.stringify(seen);
}
function beside(about, size) {
  const style = {};
  const setProperty = (name, to) => { style[name] = to; };
  const at = ([left, top, width, height]) => (
    { getBoundingClientRect: () => ({ left, top, width, height, bottom: top + height }) });
  const note = { offsetWidth: size[0], offsetHeight: size[1], style: { setProperty } };
  module_dom.placeBeside(note, at(about), at([10, 20, 400, 300]));
  return [style.left, style.top];
}
function shrunk(fits) {
  let fit = "";
  const part = { get scrollWidth() { return 100 * Number(fit); }, clientWidth: 100 * fits };
  const box = {
    style: { getPropertyValue: () => fit, setProperty: (_, to) => { fit = String(to); } },
    scrollHeight: 5, clientHeight: 5, querySelectorAll: () => [part],
  };
  module_dom.shrinkToFit(box, "");
  return fit;
}"""
        )
        yield context


@pytest.mark.parametrize(
    ("button", "events", "seen"),
    [
        (0, [("pointerup", 100)], ["held 7", "tap"]),
        (0, [("pointermove", 103), ("pointerup", 103)], ["held 7", "tap"]),
        (0, [("pointermove", 104), ("pointerup", 104)], ["held 7", "held 7", [4, False]]),
        (0, [("pointermove", 96), ("pointermove", 99, True)], ["held 7", "held 7", [-4, False], "held 7", [-1, True]]),
        (0, [("pointercancel", 100)], ["held 7"]),
        (2, [("pointermove", 150), ("pointerup", 150)], []),
    ],
)
def test_dragging(parts: MiniRacer, button: int, events: list[Any], seen: list[Any]) -> None:
    """From four pixels on; a press that does not move is a tap; another button, and what is cancelled, is nothing."""
    given = [[kind, x, bool(more)] for kind, x, *more in events]
    found, heard = json.loads(parts.call("dragged", button, given))
    assert found == seen
    is_over = events[-1][0] != "pointermove" or button != 0
    assert bool(heard) is not is_over


@pytest.mark.parametrize(
    ("value", "at", "keys", "seen"),
    [
        ("def f(x):", 9, {}, ["taken", "\n    ", 9, 9, "end"]),
        ("def f(x):\n    y = x", 19, {}, ["taken", "\n    ", 19, 19, "end"]),
        ("  if x: \nz", 8, {}, ["taken", "\n      ", 8, 8, "end"]),
        ("x", 0, {}, ["taken", "\n", 0, 0, "end"]),
        ("x", 1, {"ctrlKey": True}, ["taken", "run"]), ("x", 1, {"metaKey": True}, ["taken", "run"]),
        ("x", 1, {"shiftKey": True}, ["taken", "run"]), ("x", 1, {"key": "a"}, []),
    ],
)  # fmt: skip
def test_enter_in_a_function(parts: MiniRacer, value: str, at: int, keys: dict[str, Any], seen: list[Any]) -> None:
    """A new line is indented as the last one, and by four more after a colon; with Ctrl, Shift or Meta it is run."""
    assert seen == json.loads(parts.call("entered", value, at, keys))


@pytest.mark.parametrize(
    ("about", "size", "place"),
    [
        ([110, 120, 40, 20], [100, 50], ["70px", "130px"]),  # below, in its middle
        ([20, 120, 40, 20], [100, 50], ["8px", "130px"]),
        ([380, 120, 40, 20], [100, 50], ["292px", "130px"]),
        ([110, 220, 40, 20], [100, 66], ["70px", "230px"]),  # up to the end of the stage, with four to spare
        ([110, 220, 40, 20], [100, 67], ["70px", "123px"]),  # above
        ([110, 50, 40, 220], [100, 50], ["70px", "260px"]),  # there is no room above either
    ],
)
def test_a_note_stands_beside_what_it_is_about(
    parts: MiniRacer, about: list[int], size: list[int], place: list[str]
) -> None:
    assert place == list(parts.call("beside", about, size))


@pytest.mark.parametrize(("fits", "fit"), [(1, "1"), (0.99, "0.94"), (0.94, "0.94"), (0.8, "0.76"), (0.1, "0.7")])
def test_what_is_too_wide_is_set_smaller(parts: MiniRacer, fits: float, fit: str) -> None:
    """As little as is needed, and no smaller than seven tenths."""
    assert fit == parts.call("shrunk", fits)
