"""Keys, buttons, fields and the pointer: each does what the page says it does."""

from __future__ import annotations

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
    label = "gradwalk.player.toggle.getAttribute('aria-label')"
    tab.press("End")
    tab.run("gradwalk.player.toggle.click()")
    assert tab.run(f"[gradwalk.t, {label}]") == [0, "Pause (space)"]
    tab.run("gradwalk.player.toggle.click()")
    assert tab.run(label) == "Play (space)"
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
