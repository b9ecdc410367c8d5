"""Walks in the frames of another page: mode=embed in the address."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import Browser, Tab

from gradwalk.show.play import page

LESSON = """<!doctype html><meta charset="utf-8"><body>
<iframe src="walk.html#mode=embed&e=relu(a*b%2Bd)&v=a:2,b:-3,d:10&t=6" width="900" height="340"></iframe>
<iframe src="walk.html#mode=embed&e=(a*b%2Ba)**2&m=assign&t=9" width="900" height="380"></iframe>
<iframe src="walk.html#mode=embed&e=a%2Ba&t=4" width="360" height="480"></iframe></body>"""


@pytest.fixture
def tab(browser: Browser) -> Iterator[Tab]:
    opened = browser.open()
    yield opened
    assert opened.errors == []
    opened.close()


def visible(tab: Tab, selector: str) -> bool:
    return bool(tab.run(f"document.querySelector('{selector}').getClientRects().length"))


def test_there_is_no_header_and_one_row_of_controls(tab: Tab, tmp_path: Path) -> None:
    """The graph, the step and the transport are there, in a height that a lesson has; the rest is a click away."""
    for width in (900, 360):
        narrow = tab.browser.open(width=width, height=380)
        narrow.show(page(), tmp_path, "#mode=embed&e=relu(a*b%2Bd)&t=6")
        narrow.settle()
        shown = {name: visible(narrow, name) for name in ("header", ".values", ".graph", ".step", ".transport")}
        assert shown == {"header": False, ".values": False, ".graph": True, ".step": True, ".transport": True}
        heights = narrow.run("[...document.querySelectorAll('.transport > *')].map((e) => e.offsetHeight)")
        assert narrow.run("document.querySelector('.transport').offsetHeight") < max(heights) + 24
        assert narrow.run("document.documentElement.scrollHeight") <= 380
        assert narrow.run("document.documentElement.scrollWidth") <= width
        assert narrow.errors == []
        narrow.close()


def test_in_a_column_of_text_the_graph_has_all_the_width(tab: Tab, tmp_path: Path) -> None:
    """The step is below it, and asks nobody to type into a field that is not there."""
    for width, height in ((735, 640), (358, 660)):
        narrow = tab.browser.open(width=width, height=height)
        narrow.show(page(), tmp_path, "#mode=embed&e=a*b%2Ba&m=assign")
        narrow.settle()
        assert narrow.run("document.querySelector('.canvas').clientWidth") == width
        assert not visible(narrow, ".typing")
        narrow.press("End")
        # the panel can be moved there, but what is computed is seen without
        panel, sums = (
            narrow.run(f"document.querySelector('{name}').getBoundingClientRect().bottom")
            for name in ("aside", ".equation")
        )
        assert sums <= panel
        assert narrow.errors == []
        narrow.close()


def test_in_a_low_frame_the_step_is_whole(tab: Tab, tmp_path: Path) -> None:
    """As wide as a column of text: the equation is beside its parts, and nothing is below, or much smaller for it."""
    frame = tab.browser.open(width=735, height=420, reduced=True)
    frame.show(page(), tmp_path, "#mode=embed&e=relu(a*b%2Bd)&t=0")
    seen = frame.run(
        "(({ line, player, stepBox }) => Array.from({ length: line.steps + 1 }, (_, t) => { player.go(t, 'jump');"
        " return [stepBox.scrollHeight <= stepBox.clientHeight, stepBox.style.getPropertyValue('--fit')]; }))(gradwalk)"
    )
    assert all(is_whole and float(fit) > 0.8 for is_whole, fit in seen), seen
    frame.close()


@pytest.mark.parametrize(("width", "height"), [(735, 420), (760, 360), (735, 640), (900, 380), (358, 480)])
def test_what_a_wrong_mode_is_stays_in_its_box(tab: Tab, tmp_path: Path, width: int, height: int) -> None:
    """Whether something goes wrong or not, in the frames that lessons have."""
    for text in ("(a*b%2Ba)**2", "a*b"):
        frame = tab.browser.open(width=width, height=height)
        frame.show(page(), tmp_path, f"#mode=embed&e={text}&m=assign&t=5")
        over = frame.run("(({ modeBox }) => modeBox.scrollHeight - modeBox.clientHeight)(gradwalk)")
        assert over <= 0
        below = frame.run(
            "document.querySelector('.mode-box').getBoundingClientRect().bottom -"
            " document.querySelector('aside').getBoundingClientRect().bottom"
        )
        assert below <= 0 or width > 780 or width < 560  # there it comes after the step, and one scrolls to it
        frame.close()


def test_the_address_stays_embedded_and_leads_to_the_whole_page(tab: Tab, tmp_path: Path) -> None:
    """Each step is in the address of the frame, and the link has the same state without the frame."""
    tab.show(page(), tmp_path, "#mode=embed&e=a*b&v=a:2,b:5&m=assign")
    tab.press("ArrowRight")
    tab.wait("location.hash.includes('t=1') && location.hash.includes('mode=embed')")
    link = tab.run("document.querySelector('.whole').href")
    tab.go("about:blank")
    tab.go(link)
    assert visible(tab, "header")
    assert tab.run("[gradwalk.t, gradwalk.mode, gradwalk.values.join()]") == [1, "assign", "2,5,0"]


def test_the_wheel_is_left_to_the_page_around(tab: Tab, tmp_path: Path) -> None:
    """A reader who scrolls a lesson is not caught by a graph that is larger than its frame."""
    for fragment, taken in (("#mode=embed", False), ("", True)):
        tab.show(page(), tmp_path, fragment)
        tab.run("gradwalk.drawing.viewport.zoom(3)")
        event = "new WheelEvent('wheel', { deltaY: 50, cancelable: true, bubbles: true })"
        prevented = tab.run(f"!document.querySelector('svg.graph:not(.lower)').dispatchEvent({event})")
        assert prevented is taken


def test_several_walks_on_one_page(tab: Tab, tmp_path: Path) -> None:
    """Each frame has its own expression, step and mode, and keys move only the one that has the focus."""
    (tmp_path / "walk.html").write_text(page(), encoding="utf-8")
    (tmp_path / "lesson.html").write_text(LESSON, encoding="utf-8")
    tab.without_policy()
    tab.go((tmp_path / "lesson.html").as_uri())

    def counters() -> list[str]:
        return [tab.run("document.querySelector('.counter').textContent", frame) for frame in range(3)]

    assert counters() == ["6 / 9", "9 / 9", "4 / 4"]
    tab.run("document.querySelector('.icon.back').focus()", 1)
    tab.press("ArrowLeft")
    assert counters() == ["6 / 9", "8 / 9", "4 / 4"]
