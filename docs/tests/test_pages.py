"""Every page of the built site: it asks no other host, fits its window, and axe-core finds nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from conftest import SITE
from packages import package
from test_lessons_in_the_page import MINUTES, run

from gradwalk.lessons import source

PAGES = sorted(str(path.parent.relative_to(SITE)) for path in SITE.rglob("index.html"))
LOOKS = {"desktop": (1280, 900), "phone": (390, 844)}
# what fits in each look without being moved: on a desk code, though not what it prints; on a phone the text's pictures
FITS = {"desktop": ".editor, pre.code:not(.language-text)", "phone": "span.picture"}

in_both_themes = pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])


def violations(tab: Any) -> list[Any]:
    """What axe-core finds on the page as it is now; walks are looked at by tests/show."""
    tab.run((package("axe-core") / "axe.min.js").read_text(encoding="utf-8"))
    shown = "(r) => r.violations.map((v) => [v.id, v.nodes.map((n) => n.html.slice(0, 200))])"
    settings = "{ exclude: [['iframe']] }, { resultTypes: ['violations'] }"
    # it takes its time on the longest pages: seconds, and half a minute where the processor is shared by ten
    return list(tab.run(f"axe.run({settings}).then({shown})", seconds=MINUTES))


@in_both_themes
@pytest.mark.parametrize("look", LOOKS)
def test_every_page(look: str, dark: bool, host: Any, browser: Any) -> None:
    """Its requests stay here, it is as wide as the window, nothing that has to fit is cut, axe-core finds nothing."""
    wrong = []
    width, height = LOOKS[look]
    tab = browser.open(host.address, width, height, offline=False, dark=dark)
    for page in PAGES:
        if page == "walk":  # tests/show looks at it
            continue
        tab.requests.clear()
        tab.go(f"{host.address}{'' if page == '.' else page + '/'}")
        tab.settle()
        found = violations(tab)
        wide = tab.run("document.documentElement.scrollWidth") - width
        parts = f"[...document.querySelectorAll('{FITS[look]}')]"
        cut = tab.run(f"{parts}.filter((each) => each.scrollWidth > each.clientWidth).map((each) => each.outerHTML)")
        elsewhere = [request for request in tab.requests if not request.startswith((host.address, "blob:", "data:"))]
        if found or wide > 0 or cut or elsewhere or tab.errors:
            wrong.append([page, found, wide, cut, elsewhere, list(tab.errors)])
            tab.errors.clear()
    tab.close()
    assert wrong == [], json.dumps(wrong, indent=1)


def test_no_page_is_wider_than_the_smallest_phone(host: Any, browser: Any) -> None:
    """Which has 320 pixels, as has a window in which everything is four times as large."""
    tab = browser.open(host.address, 320, 568, offline=False)
    widths = {}
    for page in PAGES:
        tab.go(f"{host.address}{page}/")
        tab.settle()
        widths[page] = tab.run("document.documentElement.scrollWidth")
    tab.close()
    assert {page: width for page, width in widths.items() if width > 320} == {}


@in_both_themes
def test_what_comes_of_a_cell(dark: bool, host: Any, browser: Any) -> None:
    """Everybody can read an error, its line, a hint, a passed exercise, a list of what was found, the open menu."""
    tab = browser.open(f"{host.address}lessons/01-what-a-derivative-tells/", *LOOKS["phone"], offline=False, dark=dark)
    tab.wait("Boolean(globalThis.gradwalkCells)")
    assert run(tab, 3)["error"]  # the start is not right
    assert run(tab, 0, "print('before')\n1 / 0")["error"]
    assert violations(tab) == []
    tab.run("gradwalkCells[0].reset()")
    [exercise] = [part for part in source.lessons()[0].parts if isinstance(part, source.Exercise)]
    assert run(tab, 3, exercise.answers[0])["error"] == ""
    tab.run("document.querySelector('.answer summary').click(); document.querySelector('button.menu').click()")
    tab.run("document.querySelector('.search input').focus()")
    tab.type("derivative")
    tab.wait("document.querySelectorAll('.results a').length > 0")
    assert violations(tab) == []
    tab.close()


# each walk when it is there: how much of what is said about the step does not fit below or beside the graph, and how
# much of a word runs into what stands beside it
HIDDEN = """(async () => {
  const hidden = [];
  for (const figure of document.querySelectorAll("figure.walk")) {
    figure.scrollIntoView();
    while (!figure.querySelector("iframe")?.contentWindow.gradwalk) await new Promise((done) => setTimeout(done, 20));
    const frame = figure.querySelector("iframe").contentWindow;
    await new Promise((done) => frame.requestAnimationFrame(() => frame.requestAnimationFrame(done)));
    const said = frame.document.querySelector("aside");
    const words = [...said.querySelectorAll("dt")].map((word) => word.scrollWidth - word.clientWidth);
    hidden.push(Math.max(0, said.scrollHeight - said.clientHeight, ...words));
  }
  return hidden;
})()"""


@pytest.mark.parametrize("look", LOOKS)
def test_what_a_walk_says_is_seen(look: str, host: Any, browser: Any) -> None:
    """In every lesson, at the step it opens at, the wrong ones included: nobody has to look for the rest."""
    tab = browser.open(host.address, *LOOKS[look], offline=False)
    for page in PAGES:
        if page.startswith("lessons/"):
            tab.go(f"{host.address}{page}/")
            assert set(tab.run(HIDDEN)) == {0}, page
    tab.close()


def test_a_walk_in_a_page_with_keys(host: Any, browser: Any) -> None:
    """Tab goes into its frame and out again; there an arrow takes a step."""
    tab = browser.open(f"{host.address}lessons/05-the-backward-pass/", *LOOKS["desktop"], offline=False)
    frame = "document.querySelector('figure.walk iframe')"
    tab.wait("Boolean(globalThis.gradwalkCells)")
    tab.run("document.querySelector('figure.walk').scrollIntoView(); gradwalkCells[2].shareButton.focus()")
    tab.wait(f"Boolean({frame}?.contentWindow.gradwalk)", 20.0)
    for _ in range(2):
        tab.press("Tab")
    assert tab.run(f"document.activeElement === {frame}")
    tab.press("ArrowRight")
    assert tab.run(f"{frame}.contentDocument.querySelector('aside').textContent").startswith("Step 5 of 9")
    for _ in range(8):
        tab.press("Tab")
    assert tab.run("document.activeElement === document.querySelector('figcaption a')")
    tab.close()


def test_the_navigation_shows_where_one_is(host: Any, browser: Any) -> None:
    """Also on the last page of a list that is longer than the window is high; the page itself begins at its top."""
    tab = browser.open(f"{host.address}contributing/", *LOOKS["desktop"], offline=False)
    tab.settle()
    box = "document.querySelector('#navigation%s').getBoundingClientRect()"
    assert tab.run(f"{box % ' [aria-current]'}.bottom <= Math.min(innerHeight, {box % ''}.bottom)")
    assert tab.run("scrollY") == 0
    tab.close()


@pytest.mark.parametrize("look", LOOKS)
def test_what_is_found_is_seen(look: str, host: Any, browser: Any) -> None:
    """The list of the search lies inside the window, and a key takes one into it."""
    tab = browser.open(host.address, *LOOKS[look], offline=False)
    tab.run("document.querySelector('.search input').focus()")
    tab.type("chain rule")
    tab.wait("document.querySelectorAll('.results a').length > 0")
    box = "document.querySelector('.results').getBoundingClientRect()"
    assert 0 <= tab.run(f"{box}.left") < tab.run(f"{box}.right") <= LOOKS[look][0]
    tab.press("ArrowDown")
    assert "chain rule" in tab.run("document.activeElement.textContent").lower()
    tab.close()


def test_a_function_in_the_walk(host: Any, browser: Any) -> None:
    """The page of the walk runs a function of the reader's own in the site's Python, and shows its graph."""
    tab = browser.open(f"{host.address}walk/", offline=False)
    tab.run("gradwalk.own.open(); gradwalk.own.field.value = 'def f(x, y=4):\\n    return x*y + tanh(x)'; 0")
    tab.run("void gradwalk.own.run()")
    tab.wait("gradwalk.graph.names.join() === 'x,y,v1,v2,v3'", 90.0)
    tab.run("gradwalk.own.field.value = 'def f(x):\\n    return math.log(-x)'; void gradwalk.own.run()")
    tab.wait("document.querySelector('.own .told').textContent.startsWith('line 2: DomainError')", 20.0)
    assert tab.errors == []
    tab.close()


def test_the_site_is_small() -> None:
    """Under 30 MB with Python in it."""
    assert sum(path.stat().st_size for path in SITE.rglob("*") if path.is_file()) < 30_000_000


def test_no_page_names_another_host() -> None:
    """Neither pages nor styles nor scripts of ours load anything from elsewhere."""
    ours = [path for path in SITE.rglob("*") if path.suffix in (".html", ".css", ".js") and "python" not in path.parts]
    loading = [
        path.name for path in ours if any(word in path.read_text() for word in ('src="http', "url(http", 'src="//'))
    ]
    assert loading == []
