"""Whatever fonts a reader has, and bars to scroll with: the page is laid out by what they measure there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import chromium
import pytest
from chromium import Browser, Tab
from test_page_readable import CUT, EXAMPLES, TOO_WIDE, choose

from gradwalk import Value, composites
from gradwalk.show.play import page

WIDEST = "Verdana, 'DejaVu Sans', sans-serif"  # of those that systems come with
SIZES = [(1280, 720), (390, 844), (375, 667), (320, 568), (844, 390)]

# at any step: how much of it is below its box
LOWEST = """(({ line, player, stepBox }) => Math.max(...Array.from({ length: line.steps + 1 }, (_, t) => {
  player.go(t, 'jump'); return stepBox.scrollHeight - stepBox.clientHeight; })))(gradwalk)"""

# at any step: what has a bar that takes room, though all of it is in sight
NEEDLESS_BARS = """(({ line, player }) => [...new Set(Array.from({ length: line.steps + 1 }, (_, t) => {
  player.go(t, 'jump');
  return [...document.querySelectorAll('.step, .step *, .written')].filter((e) => e instanceof HTMLElement &&
    e.offsetWidth - e.clientWidth > 2 && e.clientWidth).map((e) => `${t}: ${e.className}`); }).flat())])(gradwalk)"""


@pytest.fixture(params=SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def wide(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Tab]:
    width, height = request.param
    tab = browser.open(width=width, height=height, reduced=True)
    yield tab
    assert tab.errors == []
    tab.close()


def in_wide_letters(html: str) -> str:
    fonts = f".gradwalk {{ --serif: {WIDEST}; --sans: {WIDEST}; }} math {{ font-family: {WIDEST}; }}"
    without_policy = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", html)
    return without_policy.replace("</head>", f"<style>{fonts}</style></head>")


def test_wide_letters_are_not_cut(wide: Tab, tmp_path: Path) -> None:
    """What is too wide, or too high by then, is set smaller; names have cards as wide as they are."""
    wide.show(in_wide_letters(page()), tmp_path)
    for example in EXAMPLES:
        choose(wide, example)
        assert wide.run(LOWEST) <= 0, example
        assert wide.run(CUT) == [], example
        assert wide.run(TOO_WIDE) == 0


def test_wide_names_have_wide_cards(wide: Tab, tmp_path: Path) -> None:
    """Or smaller letters."""
    wide.show(in_wide_letters(page("hidden = rmsnorm_of*memory; log(hidden*the_longest_name_of_all)")), tmp_path)
    assert wide.run(TOO_WIDE) == 0


@pytest.mark.parametrize("made", ["rmsnorm", "layernorm", "softmax"])
def test_wide_formulas_are_not_cut(wide: Tab, tmp_path: Path, made: str) -> None:
    """The longest there are; on a phone what is too high for the step's box even in small letters scrolls there."""
    row = [Value(x, label=name) for name, x in (("a", 0.5), ("b", -1.25), ("c", 2.0))]
    wide.show(in_wide_letters(page(getattr(composites, made)(row)[1])), tmp_path)
    assert wide.run(CUT) == []
    assert wide.run("innerWidth") < 1000 or wide.run(LOWEST) <= 0


def test_what_fits_is_not_made_smaller(browser: Browser, tmp_path: Path) -> None:
    """In the usual fonts no example needs it."""
    tab = browser.open(width=1280, height=720, reduced=True)
    tab.show(page(), tmp_path)
    for example in EXAMPLES:
        choose(tab, example)
        fits = tab.run(
            "(({ line, player, stepBox }) => [...new Set(Array.from({ length: line.steps + 1 }, (_, t) => {"
            " player.go(t, 'jump'); return stepBox.style.getPropertyValue('--fit'); }))])(gradwalk)"
        )
        assert fits == ["1"], example
    tab.close()


def test_no_bar_stands_beside_a_formula(tmp_path: Path) -> None:
    """Where bars take room, as on most desktops: none for the depth of a fraction, which is seen anyway."""
    with chromium.started(bars=True) as browser:
        tab = browser.open(width=1280, height=720, reduced=True)
        tab.show(page(), tmp_path)
        for example in EXAMPLES:
            choose(tab, example)
            assert tab.run(NEEDLESS_BARS) == [], example
            assert tab.run(CUT) == [], example
