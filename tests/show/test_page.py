"""The page in a real browser: Debian's Chromium, headless, with the network off."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import Browser, Tab

import gradwalk
from gradwalk import Value
from gradwalk.show.play import page
from gradwalk.walk import walk

RELU = ("relu(a*b + d)", {"a": 2.0, "b": -3.0, "d": 10.0})
HOSTILE_LABELS = [
    "<script>window.hacked = 1</script>", "</script><script>window.hacked = 1</script>",
    "<img src=x onerror=window.hacked=1>", "<!--", "'\"&<>", "\u202eevil", "${window.hacked=1}",
    "javascript:window.hacked=1",
]  # fmt: skip


@pytest.fixture
def tab(browser: Browser) -> Iterator[Tab]:
    opened = browser.open(reduced=True)
    yield opened
    assert opened.errors == []
    assert [
        address for address in opened.requests if not address.startswith(("file:", "about:", "blob:", "data:"))
    ] == []
    opened.close()


def show(
    tab: Tab, folder: Path, shown: Any = RELU[0], values: dict[str, float] | None = None, fragment: str = ""
) -> None:
    """Open the page, at the end of the walk unless the address says where."""
    tab.show(page(shown, RELU[1] if shown == RELU[0] and values is None else values), folder, fragment)
    if not fragment:
        tab.run("gradwalk.player.go(gradwalk.player.steps, 'jump')")
    tab.settle()


def numbers(tab: Tab) -> dict[str, tuple[float, float]]:
    """Data and gradient of every node at this step, by name, in full."""
    found = tab.run(
        "(() => { const { line, t, graph } = gradwalk; const grads = gradwalk.drawing.cards.map((card) => card.grad);"
        " return graph.names.map((name, i) => [name, line.data[i], grads[i]]); })()"
    )
    return {name: (data, grad) for name, data, grad in found}


def cards(tab: Tab) -> dict[str, list[str]]:
    """What is seen on the cards: name, data, grad."""
    found = tab.run(
        "(() => { const seen = (e) => (getComputedStyle(e).visibility === 'visible' ? e.textContent : '');"
        " return [...document.querySelectorAll('.node:not(.constant)')].map((card) => ["
        "card.getAttribute('aria-label').split(',')[0], seen(card.querySelector('.data')),"
        " seen(card.querySelector('.grad'))]); })()"
    )
    return {name: rest for name, *rest in found}


def table(tab: Tab) -> dict[str, list[str]]:
    """What the table says of each leaf: value, gradient, finite difference, verdict."""
    found = tab.run(
        "[...document.querySelectorAll('tbody tr')].map((row) => [row.querySelector('th').textContent,"
        " row.querySelector('input').value,"
        " ...[...row.querySelectorAll('td')].slice(1).map((cell) => cell.textContent)])"
    )
    return {name: rest for name, *rest in found}


# ---------------------------------------------------------------- loading and typing


def test_it_opens_at_the_beginning(tab: Tab, tmp_path: Path) -> None:
    """Nothing is computed yet, in a page that was just opened and for an example that was just chosen."""
    tab.show(page(), tmp_path)
    assert cards(tab)["v3"] == ["", ""]
    tab.press("End")
    tab.run("gradwalk.header.on.example({ text: 'a*b', values: { a: 1, b: 2 } })")
    assert cards(tab)["v1"] == ["", ""]


def test_at_the_end_everything_is_computed(tab: Tab, tmp_path: Path) -> None:
    """The page shows the graph, its data and its gradients, and the finite differences agree."""
    show(tab, tmp_path)
    assert cards(tab)["v3"] == ["4", "1"]
    assert table(tab) == {"a": ["2", "−3", "−3", "✓"], "b": ["−3", "2", "2", "✓"], "d": ["10", "1", "1", "✓"]}
    assert "relu" in tab.text(".written")


def test_every_number_is_the_engines(tab: Tab, tmp_path: Path) -> None:
    """Of a program handed over from Python, each node has the data and the gradient that backward() gives."""
    x = [Value(0.3 * i - 0.5, label=f"x{i}") for i in range(4)]
    loss = (gradwalk.dot(x, x) * x[0] + gradwalk.tanh(x[1] * x[2]) / x[3]) ** 2
    loss.backward()
    show(tab, tmp_path, loss)
    order = walk(loss).order
    found = list(numbers(tab).values())
    for node, (data, grad) in zip(order, found, strict=True):
        assert data == pytest.approx(node.data, rel=1e-12)
        assert node._constant or grad == pytest.approx(node.grad, rel=1e-12)


def test_typing_an_expression(tab: Tab, tmp_path: Path) -> None:
    """What is typed is drawn at once; values of names that stay are kept; the first new name gets a value."""
    show(tab, tmp_path)
    tab.press("/")
    tab.type("a*a + c")
    assert set(numbers(tab)) == {"a", "v1", "c", "v2"}
    assert numbers(tab)["a"] == (2.0, 4.0)


def test_a_mistake_is_pointed_at(tab: Tab, tmp_path: Path) -> None:
    """An expression that is not valid says why and where, and the last valid graph stays."""
    show(tab, tmp_path)
    tab.press("/")
    tab.type("relu(a*b + ^d)")
    assert "unexpected '^' at character 12; a power is written **" in tab.text(".problem")
    assert tab.text(".problem mark") == "^"
    assert set(cards(tab)) == {"a", "b", "v1", "d", "v2", "v3"}


def test_an_example_is_chosen(tab: Tab, tmp_path: Path) -> None:
    """Each example opens without a mistake, and all its gradients agree with the finite differences."""
    show(tab, tmp_path)
    for place in range(8):
        tab.run(
            "(() => { const s = document.querySelector('.examples');"
            f" s.value = '{place}'; s.dispatchEvent(new Event('change')); }})()"
        )
        tab.settle()
        tab.press("End")
        tab.wait("[...document.querySelectorAll('tbody .check')].every((cell) => cell.textContent === '✓')")


# ---------------------------------------------------------------- stepping, scrubbing, playing


def test_stepping_forward_and_back(tab: Tab, tmp_path: Path) -> None:
    """From the start, each key press computes one node, then seeds, then fires one edge; and back again."""
    show(tab, tmp_path)
    tab.press("Home")
    assert cards(tab)["v1"] == ["", ""]
    tab.press("ArrowRight")
    assert cards(tab)["v1"] == ["−6", ""]
    assert tab.text(".step-title") == "Step 1 of 9: forward"
    for _ in range(3):
        tab.press("ArrowRight")
    assert cards(tab)["v3"] == ["4", "1"]
    assert tab.text(".step-title") == "Step 4 of 9: backward, the seed"
    tab.press("ArrowRight")
    assert cards(tab)["v2"] == ["4", "1"]
    assert tab.run("document.querySelectorAll('.fires-backward:is(path)').length") == 1
    for _ in range(4):
        tab.press("ArrowRight")
    assert tab.text(".equation") == "b.grad+=2local·1upstream=2contribution"
    assert cards(tab)["b"][1] == "2"
    tab.press("ArrowLeft")
    assert cards(tab)["b"][1] == "0"
    assert "Step 8 of 9, backward: a.grad += −3 · 1 = −3; now 0 + −3 = −3." in tab.text("[aria-live]:not(.problem)")


def test_scrubbing(tab: Tab, tmp_path: Path) -> None:
    """The slider goes to any step, by mouse too, and says in words where it is."""
    show(tab, tmp_path)
    tab.run(
        "(() => { const s = document.querySelector('.timeline'); s.value = 2; s.dispatchEvent(new Event('input')); })()"
    )
    tab.settle()
    assert tab.text(".counter") == "2 / 9"
    assert cards(tab)["v3"][0] == ""
    assert tab.run("document.querySelector('.timeline').getAttribute('aria-valuetext')").startswith(
        "Step 2 of 9, forward: v2 = v1 + d = 4"
    )
    tab.click(".timeline")
    assert tab.text(".counter") in ("4 / 9", "5 / 9")


def test_playing(tab: Tab, tmp_path: Path) -> None:
    """Space plays from the start, space pauses."""
    show(tab, tmp_path)
    tab.press(" ")
    tab.wait("gradwalk.t >= 1 && gradwalk.t < 9")
    tab.press(" ")
    stopped = tab.run("gradwalk.t")
    tab.run("new Promise((done) => setTimeout(done, 1200))")
    assert stopped == tab.run("gradwalk.t")


# ---------------------------------------------------------------- editing


def test_editing_a_value(tab: Tab, tmp_path: Path) -> None:
    """A typed value is computed with at once: data, gradients and finite differences."""
    show(tab, tmp_path)
    tab.press("v")
    tab.run("document.activeElement.select()")
    tab.type("4")
    assert numbers(tab)["v1"][0] == -12.0
    assert numbers(tab)["v3"] == (0.0, 1.0)
    assert table(tab)["b"][1:] == ["0", "0", "✓"]
    tab.press("ArrowUp")
    assert numbers(tab)["a"][0] == 4.1


def test_old_differences_judge_no_new_gradient(tab: Tab, tmp_path: Path) -> None:
    """Of a graph whose differences take a while, there is no verdict before they are measured at the new values."""
    show(tab, tmp_path, "x*" + " + ".join(f"tanh(w{i}*x)*x" for i in range(39)))
    verdicts = "[...document.querySelectorAll('tbody .check')].map((cell) => cell.textContent).join('')"
    tab.wait(f"{verdicts}.length === 40", 20.0)
    at_once = tab.run(f"(() => {{ gradwalk.edit(0, 5); gradwalk.render('edit'); return {verdicts}; }})()")
    assert at_once == ""
    tab.wait(f"{verdicts}.length === 40", 20.0)
    assert "✗" not in tab.run(verdicts)


def test_an_edit_leaves_alone_what_stays(tab: Tab, tmp_path: Path) -> None:
    """Cards and rows that look the same after an edit are the same elements: they are not laid out again."""
    text = " + ".join(f"w{i}*x{i}" for i in range(12))
    show(tab, tmp_path, text)
    tab.run("gradwalk.before = new Set([...document.querySelectorAll('.node, tbody tr')]); 0")
    tab.run(f"gradwalk.header.on.text({text + ' + a'!r})")
    tab.settle()
    new = tab.run(
        "[...document.querySelectorAll('.node, tbody tr')].filter((each) => !gradwalk.before.has(each))"
        ".map((each) => each.getAttribute('aria-label')?.split(',')[0] ?? each.querySelector('th').textContent).sort()"
    )
    assert new == ["a", "a", "v23", "v24"]  # the leaf, its row, the result, and the one that is it no longer
    assert tab.run("[...document.querySelectorAll('.node')].every((each, k) => Number(each.dataset.card) === k)")


def test_dragging_a_value(tab: Tab, tmp_path: Path) -> None:
    """A leaf's card, and its value in the table, can be dragged."""
    show(tab, tmp_path)
    tab.drag(".node.editable", 60)
    assert numbers(tab)["a"][0] == pytest.approx(2.3)
    tab.drag("tbody tr:nth-child(2) input", -40)
    assert numbers(tab)["b"][0] == pytest.approx(-3.2)
    assert numbers(tab)["v1"][0] == numbers(tab)["a"][0] * numbers(tab)["b"][0]


def test_outside_a_domain(tab: Tab, tmp_path: Path) -> None:
    """What Python would raise for is said, and the node is marked."""
    show(tab, tmp_path, "log(a)", {"a": -1.5})
    assert tab.text(".trouble") == "log: expected x > 0, got -1.5 (node 'a')"
    assert tab.run("document.querySelectorAll('.troubled').length") == 1


# ---------------------------------------------------------------- the wrong modes


@pytest.mark.parametrize("mode", ["breadth_first", "no_order", "assign", "not_reset"])
def test_wrong_modes(tab: Tab, tmp_path: Path, mode: str) -> None:
    """Each mistake is shown: the end differs from the finite differences, and the first wrong step is marked."""
    show(tab, tmp_path, "ea = exp(a); eb = exp(b); p = ea/(ea + eb); q = p*p + p; q*p", {"a": 1.0, "b": 0.5})
    tab.run(f"gradwalk.setMode('{mode}')")
    tab.settle()
    assert "✗" in {row[3] for row in table(tab).values()}
    tab.press("w")
    assert tab.run("gradwalk.t") == tab.run("gradwalk.line.firstWrongStep")
    assert "it should be" in tab.text(".verdict")
    assert tab.run("document.querySelectorAll('.wrong-step').length") >= 1
    tab.press("1")
    tab.press("End")
    assert {row[3] for row in table(tab).values()} == {"✓"}


# ---------------------------------------------------------------- without a mouse, on a phone, in the dark


def test_with_the_keyboard_only(tab: Tab, tmp_path: Path) -> None:
    """Expression, graph, values, modes and help are all reached and left without a mouse."""
    show(tab, tmp_path)
    tab.press("?")
    assert tab.run("document.querySelector('dialog').open")
    tab.press("Escape")
    assert not tab.run("document.querySelector('dialog').open")
    tab.press("/")
    tab.type("a*b")
    tab.press("Enter")
    assert tab.run("document.activeElement.getAttribute('aria-label')").startswith("v1, Product. a · b, data")
    assert not tab.run("document.querySelector('.detail').hidden")
    tab.press("ArrowUp")
    assert tab.run("document.activeElement.getAttribute('aria-label')").startswith("b, a leaf")
    tab.press("Enter")
    assert tab.run("document.activeElement.getAttribute('aria-label')") == "value of b"
    tab.press("ArrowUp", shift=True)
    assert (numbers(tab)["b"][0], tab.run("document.activeElement.value")) == (-2.0, "-2")
    tab.press("Escape")
    tab.press("4")
    assert tab.run("document.querySelector('.modes').value") == "assign"
    tab.press("d")
    assert tab.run("document.querySelector('.gradwalk').dataset.theme") == "dark"
    tab.run("document.querySelector('.expression').focus()")  # behind the last stop each browser has its own way
    reached = {"expression"}
    for _ in range(30):
        tab.press("Tab")
        reached.add(tab.run("document.activeElement.getAttribute('class') || document.activeElement.tagName"))
    assert {"expression", "examples", "modes", "timeline", "value number"} <= {str(name) for name in reached}


def test_on_a_phone(browser: Browser, tmp_path: Path) -> None:
    """On a narrow screen nothing is wider than the screen, and the transport stays in reach."""
    tab = browser.open(width=390, height=844)
    show(tab, tmp_path)
    assert tab.run("document.documentElement.scrollWidth") <= 390
    buttons = tab.run("document.querySelector('.transport').getBoundingClientRect().bottom")
    assert buttons <= 844
    tab.click(".icon.back")
    assert tab.text(".counter") == "8 / 9"
    assert tab.errors == []
    tab.close()


def test_in_the_dark_and_without_motion(browser: Browser, tmp_path: Path) -> None:
    """The system's dark colours are used, and no dots run for those who asked for less motion."""
    tab = browser.open(dark=True, reduced=True)
    show(tab, tmp_path)
    assert tab.run("getComputedStyle(document.querySelector('.gradwalk')).backgroundColor") == "rgb(19, 21, 25)"
    tab.press("ArrowLeft")
    tab.press("ArrowLeft")
    assert tab.run("document.querySelectorAll('.pulse').length") == 0
    assert tab.errors == []
    tab.close()


# ---------------------------------------------------------------- the address and the exports


def test_the_address_reproduces_the_state(tab: Tab, tmp_path: Path) -> None:
    """The address alone brings back expression, values, step and mode."""
    show(tab, tmp_path)
    tab.press("/")
    tab.type("(a*b + a)**2")
    tab.press("Enter")
    tab.press("4")
    tab.press("B")
    tab.wait("location.hash.includes('m=assign')")
    tab.wait("location.hash.includes(`t=${gradwalk.t}&`)")
    fragment = tab.run("location.hash")
    before = (numbers(tab), tab.text(".counter"))
    show(tab, tmp_path, fragment=fragment)
    assert before == (numbers(tab), tab.text(".counter"))
    assert tab.run("gradwalk.mode") == "assign"


def exported(tab: Tab, what: str) -> str:
    """What a save would write, as text."""
    source = {"svg": "gradwalk.drawing", "html": "gradwalk.pristine"}[what]
    tab.run(
        "window.saved = new Promise((done) => { const make = URL.createObjectURL;"
        " URL.createObjectURL = (blob) => { blob.text().then(done); return make.call(URL, blob); }; }), 0"
    )
    assert tab.run(f"Boolean({source})")
    tab.run(f"document.querySelector('[data-save={what}]').click()")
    return str(tab.run("window.saved"))


def test_the_exported_file_stands_alone(tab: Tab, browser: Browser, tmp_path: Path) -> None:
    """The HTML saved from the page opens from disk, offline, with the edited values, and is under 250 KB."""
    tab.without_downloads()
    show(tab, tmp_path)
    tab.run("gradwalk.edit(0, 5)")
    tab.settle()
    html = exported(tab, "html")
    assert len(html.encode()) < 250_000
    other = browser.open()
    other.show(html, tmp_path)
    other.settle()
    assert numbers(other)["a"] == (5.0, -0.0)
    assert numbers(other)["v1"][0] == -15.0
    assert other.errors == []
    other.close()


def test_a_program_is_exported_too(tab: Tab, browser: Browser, tmp_path: Path) -> None:
    """A program from Python survives being saved from the page, labels and all."""
    tab.without_downloads()
    a = Value(2.0, label=HOSTILE_LABELS[1])
    show(tab, tmp_path, gradwalk.tanh(a * 3.0))
    html = exported(tab, "html")
    other = browser.open()
    other.show(html, tmp_path)
    other.settle()
    assert HOSTILE_LABELS[1] in numbers(other)
    assert other.run("window.hacked") is None
    assert other.errors == []
    other.close()


def test_pictures(tab: Tab, tmp_path: Path) -> None:
    """The SVG is well-formed and has every card's numbers; the PNG has pixels."""
    tab.without_downloads()
    show(tab, tmp_path)
    svg = exported(tab, "svg")
    import xml.etree.ElementTree as ElementTree

    texts = [text for node in ElementTree.fromstring(svg).iter() if (text := node.text)]
    assert {"−6", "relu", "10"} <= set(texts)
    tab.press("Home")
    assert "−6" not in exported(tab, "svg")  # not computed yet, and not in the picture
    size = tab.run(
        "(async () => { const f = document.querySelector('[data-save=png]'); globalThis.png = new Promise((done) => {"
        " const make = URL.createObjectURL; URL.createObjectURL = (blob) => {"
        " if (blob.type === 'image/png') done(blob.size); return make.call(URL, blob); }; });"
        " f.click(); return await globalThis.png; })()"
    )
    assert size > 5000


# ---------------------------------------------------------------- safety


def test_labels_arrive_as_text(tab: Tab, tmp_path: Path) -> None:
    """Labels and scopes that look like markup or code are shown letter by letter, and run nothing."""
    leaves = [Value(float(i + 1), label=label) for i, label in enumerate(HOSTILE_LABELS)]
    with gradwalk.scope("<b>scope</b>"):
        root = gradwalk.sum(leaves)
    root.label = "<script>window.hacked = 2</script>"
    show(tab, tmp_path, root)
    assert [*HOSTILE_LABELS, root.label] == tab.run("gradwalk.graph.names")
    for i in range(len(leaves) + 1):
        tab.run(f"gradwalk.drawing.focus({i})")
    assert "<b>scope</b>" in tab.text(".detail")
    assert (
        tab.run("document.querySelectorAll('.gradwalk b, .gradwalk img, .gradwalk script').length") == 1
    )  # the wordmark
    assert tab.run("window.hacked") is None


def test_hostile_expressions_and_addresses(tab: Tab, tmp_path: Path) -> None:
    """Neither the field nor the address can bring markup or code in."""
    fragment = "#e=%3Cimg%20src%3Dx%20onerror%3Dwindow.hacked%3D1%3E&v=__proto__:1&t=99999999&m=x"
    show(tab, tmp_path, fragment=fragment)
    assert "unexpected '<'" in tab.text(".problem")
    assert tab.run("document.querySelectorAll('img').length") == 0
    tab.press("/")
    tab.type("constructor + __proto__ + toString")
    assert {"constructor", "__proto__", "toString"} <= set(numbers(tab))
    assert tab.run("window.hacked") is None
    assert tab.run("({}).polluted") is None


def test_the_policy_holds(tab: Tab, tmp_path: Path) -> None:
    """The file's own policy forbids other scripts and the network."""
    show(tab, tmp_path)
    tab.run(
        "(() => { const s = document.createElement('script'); s.textContent = 'window.hacked = 1';"
        " document.body.append(s); })()"
    )
    refused = tab.run("fetch('https://example.com/').then(() => 'sent', () => 'refused')")
    assert refused == "refused"
    assert tab.run("window.hacked") is None
    assert any("Content Security Policy" in error for error in tab.errors)
    tab.errors.clear()
    tab.requests.clear()


# ---------------------------------------------------------------- large graphs


def large_program() -> Value:
    values = [Value(0.1 * i, label=f"x{i}") for i in range(30)]
    for k in range(960):
        left, right = values[-1 - k % 9], values[-2 - k % 23]
        values.append(gradwalk.tanh(left + right) if k % 3 == 0 else left * right if k % 3 == 1 else left + right)
    return gradwalk.sum(values)


def test_a_large_graph_is_folded(tab: Tab, tmp_path: Path) -> None:
    """Of a thousand nodes as many cards are drawn as can be looked at, and every step can be reached."""
    show(tab, tmp_path, large_program())
    assert tab.run("gradwalk.graph.nodes.length") > 900
    assert tab.run("gradwalk.drawing.cards.length") <= 120
    steps = tab.run("gradwalk.line.steps")
    for t in (0, steps // 3, steps // 2, steps):
        tab.run(f"gradwalk.player.go({t}, 'scrub')")
        tab.settle()
        assert tab.text(".counter") == f"{t} / {steps}"
    assert json.loads(tab.run("JSON.stringify(gradwalk.line.problems)")) == []


# ---------------------------------------------------------------- small things that a hand expects


def test_the_menu_closes(tab: Tab, tmp_path: Path) -> None:
    """Esc closes the Save menu, and so does a press anywhere else."""
    show(tab, tmp_path)
    for leave in (lambda: tab.press("Escape"), lambda: tab.click(".expression")):
        tab.click(".menu summary")
        assert tab.run("document.querySelector('.menu').open") is True
        leave()
        assert tab.run("document.querySelector('.menu').open") is False


def test_copying_the_address_says_so(tab: Tab, tmp_path: Path) -> None:
    """Whether the address could be copied or not, the button tells."""
    show(tab, tmp_path)
    tab.click(".menu summary")
    tab.click("[data-save=link]")
    tab.wait("document.querySelector('.menu summary').textContent !== 'Save'")


def test_the_list_says_which_example_is_shown(tab: Tab, tmp_path: Path) -> None:
    """Until another text is typed, which is none of them; a program is an entry of its own."""
    chosen = "document.querySelector('.examples').value"
    show(tab, tmp_path)
    assert tab.run(chosen) == "0"
    tab.press("/")
    tab.type("a*b")
    assert tab.run(chosen) == ""
    show(tab, tmp_path, Value(2.0) * 3.0)
    assert tab.run(chosen) == "program"


def test_the_example_shown_can_be_chosen_again(tab: Tab, tmp_path: Path) -> None:
    """Choosing it once more, by mouse or by keys, resets its values; looking at the list changes nothing."""
    show(tab, tmp_path)
    chosen = "document.querySelector('.examples').value"
    for opening in ("new PointerEvent('pointerdown')", "new KeyboardEvent('keydown', { key: ' ' })"):
        tab.run("gradwalk.edit(0, 7.5)")
        tab.run(f"document.querySelector('.examples').dispatchEvent({opening})")
        assert tab.run(chosen) == ""
        tab.run("document.querySelector('.examples').dispatchEvent(new Event('blur'))")
        assert tab.run(chosen) == "0"
        tab.run(
            "(() => { const s = document.querySelector('.examples'); s.value = '0';"
            " s.dispatchEvent(new Event('change')) })()"
        )
        assert tab.run("gradwalk.values[0]") == 2
    show(tab, tmp_path, Value(2.0) * 3.0)
    tab.run("document.querySelector('.examples').dispatchEvent(new PointerEvent('pointerdown'))")
    tab.run("document.querySelector('.examples').dispatchEvent(new Event('blur'))")
    assert tab.run(chosen) == "program"


def test_a_notch_of_the_wheel_is_a_small_step(tab: Tab, tmp_path: Path) -> None:
    """Ctrl and one notch zoom by about a fifth, not by three."""
    show(tab, tmp_path)
    before = tab.run("gradwalk.drawing.viewport.scale")
    tab.run(
        "gradwalk.drawing.viewport.wheel({ ctrlKey: true, deltaY: -120, clientX: 300, clientY: 300,"
        " preventDefault() {} })"
    )
    assert 1.1 < tab.run("gradwalk.drawing.viewport.scale") / before < 1.3


def test_every_stop_of_the_tab_key_has_a_name(tab: Tab, tmp_path: Path) -> None:
    """Twenty-four presses of Tab never end on something a screen reader has no word for."""
    show(tab, tmp_path)
    for _ in range(24):
        tab.press("Tab")
        found = tab.run(
            "(() => { const e = document.activeElement; return [e.tagName,"
            " e.getAttribute('aria-label') || e.title || (e.labels && e.labels.length) ||"
            " (['BUTTON', 'SUMMARY', 'BODY'].includes(e.tagName) && 'text')]; })()"
        )
        assert found[1], found


def test_zeros_have_no_sign_and_numbers_no_trailing_zeros(tab: Tab, tmp_path: Path) -> None:
    """No "0 + −0 = 0", no 0.5000 beside 2."""
    show(tab, tmp_path, "a*b", {"a": -0.5, "b": 0.0})
    assert cards(tab)["a"] == ["−0.5", "0"]
    assert "−0 " not in tab.text(".step") + " "
    show(tab, tmp_path, "a*b + c", {"a": 61728.4, "b": 1.0, "c": 0.25})
    assert cards(tab)["v1"][0] == "61728"  # and not 61730
    assert cards(tab)["c"][0] == "0.25"


def test_accented_names(tab: Tab, tmp_path: Path) -> None:
    """Names may be written in any Latin letters: é is one, × is still a product."""
    show(tab, tmp_path, "é×ü + ế", {"é": 2.0, "ü": 3.0, "ế": 1.0})
    assert numbers(tab)["é"] == (2, 3)
