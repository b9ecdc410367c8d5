"""The panel beside the graph, word by word: each step, what a wrong mode is, a node's details, and the table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from chromium import Browser, Tab

import gradwalk
from gradwalk import Value
from gradwalk.show.play import page

SAID = """(({ line, player, stepBox }) => Array.from({ length: line.steps + 1 }, (_, t) => {
  player.go(t, "jump"); return stepBox.textContent.replaceAll("\\u2061", ""); }))(gradwalk)"""
ROWS = """[...document.querySelectorAll("tbody tr")].map((row) => [row.className,
  ...[...row.querySelectorAll("input, .cell, .check")].map((each) =>
    [each.className, each.value ?? each.textContent, each.title])])"""


@pytest.fixture(scope="module")
def tab(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    opened = browser.open(width=1280, height=720, reduced=True)
    opened.show(page(), tmp_path_factory.mktemp("page"))
    yield opened
    assert opened.errors == []
    opened.close()


def show(tab: Tab, text: str, mode: str = "right", **values: float) -> None:
    """An expression with these values, where its walk ends."""
    tab.run(f"gradwalk.setMode('{mode}'); gradwalk.example({{ text: '{text}', values: {values} }})")
    tab.run("gradwalk.player.go(gradwalk.line.steps, 'jump')")
    tab.settle()


def test_each_step(tab: Tab) -> None:
    """Its number and kind, the formula with names and with numbers, or the product, where it is from, and the sum."""
    show(tab, "(a*b + a)**2", a=2.0, b=-3.0)
    beginning, *steps = tab.run(SAID)
    assert beginning.startswith("Step 0 of 9: the beginningPress play, or the right arrow key")
    assert steps[3].startswith("Step 4 of 9: backward, the seedv3.grad=1The result changes by exactly as much")
    assert steps[:3] + steps[4:] == [
        "Step 1 of 9: forwardv1=a⋅b2⋅(−3)=−6",
        "Step 2 of 9: forwardv2=v1+a(−6)+2=−4",
        "Step 3 of 9: forwardv3=v22(−4)2=16",
        "Step 5 of 9: backwardv2.grad+=−8local·1upstream=−8contributionlocal∂v3∂v2=2⋅v2=−8upstreamv3.grad = 1"
        "sum0+(−8)=−8",
        "Step 6 of 9: backwardv1.grad+=1local·−8upstream=−8contributionlocal∂v2∂v1=1upstreamv2.grad = −8sum0+(−8)=−8",
        "Step 7 of 9: backwarda.grad+=1local·−8upstream=−8contributionlocal∂v2∂a=1upstreamv2.grad = −8sum0+(−8)=−8",
        "Step 8 of 9: backwarda.grad+=−3local·−8upstream=24contributionlocal∂v1∂a=b=−3upstreamv1.grad = −8sum−8+24=16",
        "Step 9 of 9: backwardb.grad+=2local·−8upstream=−16contributionlocal∂v1∂b=a=2upstreamv1.grad = −8"
        "sum0+(−16)=−16",
    ]


def test_only_what_is_negative_is_in_parentheses(tab: Tab) -> None:
    """Behind a sign."""
    show(tab, "a*b", a=0.5, b=0.0)
    assert [said.rpartition("sum")[2] for said in tab.run(SAID)[3:]] == ["0+0=0", "0+0.5=0.5"]


def test_each_step_that_assigns(tab: Tab) -> None:
    """There is an arrow in the place of a sum; what is wrong is said, and what it should be."""
    show(tab, "a*a", "assign", a=3.0)
    assert tab.run(SAID)[3:] == [
        "Step 3 of 4: backwarda.grad=3local·1upstream=3contributionlocal∂v1∂a=a=3upstreamv1.grad = 1overwritten0→3",
        "Step 4 of 4: backwarda.grad=3local·1upstream=3contributionlocal∂v1∂a=a=3upstreamv1.grad = 1overwritten3→3"
        "Wrong here: a.grad is 3, it should be 6.",
    ]
    assert tab.run("document.querySelectorAll('.step .bad').length") == 0


def test_a_step_that_comes_too_early(tab: Tab) -> None:
    """It is the gradient that is handed on which is wrong, and marked."""
    show(tab, "u = a*b; u*a", "no_order", a=3.0, b=2.0)
    tab.run("gradwalk.player.go(gradwalk.line.firstWrongStep, 'jump')")
    assert tab.text(".verdict") == "Wrong here: u.grad is 0, it should be 3."
    assert tab.text(".step .bad").startswith("0")


@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [
        ("a*a", "right", ""),
        ("a*a", "assign", "First wrong step: 4"),
        ("a*b", "assign", "On this graph nothing goes wrong: every gradient is as it should be."),
    ],
)
def test_what_a_wrong_mode_is(tab: Tab, text: str, mode: str, said: str) -> None:
    """With its name, why it is wrong, and where; the right one is not spoken of."""
    show(tab, text, mode, a=3.0, b=2.0)
    shown = tab.run("gradwalk.modeBox.textContent")
    assert said in shown
    assert (tab.run("gradwalk.modeBox.hidden"), shown == "") == (mode == "right",) * 2
    assert shown.startswith("Wrong on purpose: = instead of +=Each contribution overwrites the one before.") is bool(
        said
    )


def details(tab: Tab, *cards: int) -> list[str]:
    return [
        tab.run(
            f"(gradwalk.hover(gradwalk.drawing.cards[{card}]), gradwalk.detail.textContent.replaceAll('\\u2061', ''))"
        )
        for card in cards
    ]


def test_the_details_of_a_node(tab: Tab) -> None:
    """What it is, its formula and its slopes, and its numbers in full, those that there are by then."""
    show(tab, "a*b", a=2.0, b=-0.5)
    assert details(tab, 0, 2) == [
        "aa leafdata2.0grad-0.5finite difference-0.5",
        "v1Product.v1=a⋅b∂v1∂a=b=−0.5∂v1∂b=a=2data-1.0grad1.0finite difference1.0",
    ]
    tab.run("gradwalk.player.go(1, 'jump')")
    assert details(tab, 0) == ["aa leafdata2.0finite difference-0.5"]
    show(tab, "relu(a)", a=0.0)
    assert details(tab, 0) == ["aa leafdata0.0grad0.0finite difference0.5, at a kink"]


@pytest.mark.parametrize(("count", "slopes"), [(4, 4), (5, 1)])
def test_the_slopes_of_a_node_with_many(tab: Tab, count: int, slopes: int, tmp_path_factory: Any) -> None:
    """All of four, of more the first one."""
    row = [Value(float(i + 1), label=f"x{i}") for i in range(count)]
    with gradwalk.scope("rows"):
        root = gradwalk.sum(row)
    opened = tab.browser.open(width=1280, height=720, reduced=True)
    opened.show(page(root), tmp_path_factory.mktemp("page"))
    (said,) = details(opened, count)
    assert [said.count(f"∂x{i}") for i in range(count)] == [1] * slopes + [0] * (count - slopes)
    assert "scoperows" in said
    opened.close()


def test_the_table_in_full(tab: Tab) -> None:
    """Numbers to be read, and all of their digits to be pointed at; a verdict with its reason."""
    show(tab, "relu(a)*1e9 + b*12345678.5", a=0.0, b=-1234567.0)
    kink = "at a kink: any slope between those on both sides is right"
    assert tab.run(ROWS) == [
        ["", ["value number", "0", "0.0"], ["cell", "0", "0.0"], ["cell", "5e8", "500000000.0"], ["check", "✓", kink]],
        ["", ["value number long", "−1234567", "-1234567.0"], ["cell", "1.23e7", "12345678.5"],
         ["cell", "1.23e7", "12345678.5"], ["check", "✓", ""]],
    ]  # fmt: skip
    assert tab.run("[...document.querySelectorAll('input.value')].map((each) => each.ariaValueNow)") == [
        "0",
        "-1234567",
    ]


def test_long_numbers_are_smaller(tab: Tab) -> None:
    """From eight characters on, and more so from nine on."""
    show(tab, "a*b*c", a=1.25e-7, b=-1.25e-7, c=-1.25e-107)
    fields = tab.run("[...document.querySelectorAll('input.value')].map((each) => [each.value, each.className])")
    assert fields == [
        ["1.25e−7", "value number"], ["−1.25e−7", "value number long"], ["−1.25e−107", "value number long longest"],
    ]  # fmt: skip


def test_a_row_that_disagrees(tab: Tab) -> None:
    """It is marked, and no other; at any step but the last nothing is judged."""
    show(tab, "a*a + b", "assign", a=3.0, b=1.0)
    marked = "[...document.querySelectorAll('tbody tr')].map((row) => [row.className, row.lastChild.textContent])"
    assert tab.run(marked) == [["disagrees", "✗"], ["", "✓"]]
    tab.run("gradwalk.player.step(-1)")
    assert tab.run(marked) == [["", ""], ["", ""]]
    tab.run("gradwalk.player.step(1)")
    assert tab.run(marked) == [["disagrees", "✗"], ["", "✓"]]


def test_what_cannot_be_told(tab: Tab) -> None:
    """A question mark, and why."""
    show(tab, "abs(a)*a", a=0.0)
    *_, (_, said, why) = tab.run(ROWS)[0]
    assert (said, why) == ("?", "can’t tell: the difference is less accurate than that here")


def test_what_is_no_number_is_marked(tab: Tab) -> None:
    """While it stands there; what it was comes back when the field is left."""
    show(tab, "a*b", a=2.5, b=3.0)
    found = tab.run(
        "(() => { const field = document.querySelector('input.value'); const seen = []; field.focus();"
        " for (const text of ['zz', '4', 'z']) { field.value = text; field.dispatchEvent(new Event('input'));"
        " seen.push(field.classList.contains('bad'), gradwalk.values[0]); } return seen; })()"
    )
    assert found == [True, 2.5, False, 4, True, 4]
    tab.settle()
    left = "((field) => { field.blur(); return [field.classList.contains('bad'), field.value]; })"
    assert tab.run(f"{left}(document.querySelector('input.value'))") == [False, "4"]
