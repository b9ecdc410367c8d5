"""What a cell can do: run, be edited, be stopped, be reset, be shared; with the keyboard, and without a network."""

from __future__ import annotations

import json
from typing import Any

import pytest
from test_lessons_in_the_page import MINUTES, run

PAGE = "lessons/01-what-a-derivative-tells/"


@pytest.fixture
def tab(host: Any, browser: Any) -> Any:
    opened = browser.open(host.address + PAGE, offline=False)
    opened.wait("Boolean(globalThis.gradwalkCells)")
    yield opened
    opened.close()


def shown(tab: Any, number: int) -> str:
    return str(tab.run(f"gradwalkCells[{number}].output.textContent"))


def test_cells_above_run_first(tab: Any) -> None:
    """The second cell needs the first: running it runs both, and again when the first was changed."""
    run(tab, 1)
    assert "4.0" in shown(tab, 0)
    tab.run("void (gradwalkCells[0].editor.code = 'def f(a):\\n    return 7.0 * a')")
    run(tab, 1)
    assert shown(tab, 1).startswith(("7.0", "6.99"))


def test_what_depends_on_a_changed_cell_runs_again(tab: Any) -> None:
    """Also what lies between: the third cell is computed by the second, which is computed by the first."""
    for number, code in enumerate(("a = 1", "b = 10 * a", "print(b)")):
        tab.run(f"void (gradwalkCells[{number}].editor.code = {json.dumps(code)})")
    assert run(tab, 2)["text"] == "10\n"
    assert run(tab, 0, "a = 2")["error"] == ""
    assert run(tab, 2)["text"] == "20\n"


@pytest.mark.parametrize(
    "code", ["import js\njs.close()", "import os\nos._exit(1)", "from pyodide_js import _module\n_module._abort()"]
)
def test_python_that_ends_is_started_again(tab: Any, code: str) -> None:
    """Whoever ends the worker or the interpreter in it waits for the seconds of a cell, at most."""
    run(tab, 0)
    tab.run("void (gradwalkCells[0].seconds = 3)")
    run(tab, 0, code)
    run(tab, 0, "print(1)")
    assert run(tab, 0, "print(1)")["text"] == "1\n"


@pytest.mark.parametrize("code", ["import numpy", "import gradwalk.numpy", "import gradwalk\ngradwalk.compile"])
def test_what_the_page_lacks_runs_elsewhere(tab: Any, code: str) -> None:
    """Nothing can be installed here, and the error does not say so."""
    error = run(tab, 0, code)["error"]
    assert error.endswith("What needs more runs in your own.")
    assert "numpy" in error
    assert "pip install" not in error


def test_nobody_is_asked(tab: Any) -> None:
    """There is no terminal to type into, and the error says what to do."""
    assert "write the answer into its code" in run(tab, 0, "input('who? ')")["error"]


def test_python_starts_when_somebody_turns_to_a_cell(tab: Any) -> None:
    """Not with the page, but before the button is pressed; what is there then is used."""
    assert tab.run("gradwalkCells[0].python.worker === null")
    tab.run("void gradwalkCells[0].editor.field.focus()")
    assert tab.run("gradwalkCells[0].python.worker !== null")
    assert run(tab, 0)["text"] == "4.0\n"
    assert tab.run("gradwalkCells[0].python.generation") == 1


def test_starts_differ_in_what_is_random(tab: Any) -> None:
    """Every visitor's Python goes on from the same memory, but not with the same random numbers; modules load later."""
    numbers = set()
    for _ in range(2):
        numbers.add(run(tab, 0, "import random, gradwalk.statistics, fractions\nprint(random.random())")["text"])
        tab.run("void (gradwalkCells[0].python.worker.terminate(), gradwalkCells[0].python.worker = null)")
    assert len(numbers) == 2


def test_it_starts_without_that_memory(tab: Any, host: Any) -> None:
    """After a new build the old one's is not there any more: Python starts from nothing."""
    host.missing = "/python/started-"
    assert run(tab, 0)["text"] == "4.0\n"


def test_a_start_that_failed_is_tried_again(tab: Any) -> None:
    """Nobody waits for it yet, and nobody waits for ever."""
    tab.run("void gradwalkCells[0].python.start()")
    tab.run("void gradwalkCells[0].python.heard({ kind: 'failed', text: 'no network' })")
    assert tab.run("gradwalkCells[0].python.worker === null")
    assert run(tab, 0)["text"] == "4.0\n"


def test_a_loop_that_does_not_end_is_stopped(tab: Any) -> None:
    """After its seconds, with what it printed; the next run starts afresh and works."""
    tab.run("void (gradwalkCells[0].seconds = 2)")
    outcome = run(tab, 0, "print('begun', flush=True)\nwhile True:\n    pass")
    assert "Stopped after 2 seconds" in outcome["error"]
    assert "begun" in shown(tab, 0)
    tab.run("gradwalkCells[0].reset()")
    assert run(tab, 0)["text"] == "4.0\n"


def test_stop(tab: Any) -> None:
    """The button that runs a cell stops it while it runs."""
    tab.run("void (gradwalkCells[0].editor.code = 'while True: pass')")
    tab.run("void gradwalkCells[0].run()")
    tab.wait("gradwalkCells[0].status.textContent === 'Running'", MINUTES)
    tab.click("#cell-1 .run")
    tab.wait("!gradwalkCells[0].isRunning")
    assert "Stopped." in shown(tab, 0)


def test_a_traceback_marks_the_line(tab: Any) -> None:
    """The learner's line is named in the text and marked in the editor."""
    outcome = run(tab, 0, "a = 1\nb = a / 0\n")
    assert outcome["line"] == 2
    assert "ZeroDivisionError" in shown(tab, 0)
    assert (
        tab.run("gradwalkCells[0].editor.colours.querySelector('.wrong-line').style.getPropertyValue('--line')") == "1"
    )


def test_pictures_and_tables(tab: Any) -> None:
    """A Value is a picture with its text beside it; a table is one; markup in it is only words."""
    run(tab, 0, "from gradwalk import Value\nValue(2.0, label='a') * Value(3.0, label='b')")
    assert tab.run("document.querySelector('#cell-1 .output img').alt") == "Value(data=6.0, grad=0.0)"
    tab.wait("document.querySelector('#cell-1 .output img').naturalWidth > 100")
    run(tab, 0, "print('name   number\\na      1.0')")
    assert tab.run("getComputedStyle(document.querySelector('#cell-1 .output pre')).whiteSpace") == "pre"
    evil = "<img src=x onerror=alert(1)>"
    run(
        tab,
        0,
        f"class T:\n    def _repr_html_(self):\n        return '<table><tr><td>{evil}<b>x</b></td></tr></table>'\nT()",
    )
    assert tab.run("document.querySelectorAll('#cell-1 .output td').length") == 1
    assert tab.run("document.querySelectorAll('#cell-1 .output img').length") == 0


def test_reset_and_share(tab: Any, host: Any, browser: Any) -> None:
    """An address carries changed code to another tab, which does not run it; reset brings the lesson's back."""
    code = "print('sähar\u0065d')  # ∂\n"
    tab.run(f"void (gradwalkCells[1].editor.code = {json.dumps(code)})")
    tab.run("gradwalkCells[1].share()")
    address = tab.run("location.href")
    other = browser.open(address, offline=False)
    other.wait("globalThis.gradwalkCells?.[1].status.textContent.includes('Read it')")
    assert other.run("gradwalkCells[1].editor.code") == code.rstrip("\n")
    assert [request for request in other.requests if "/python/" in request] == []
    other.run("gradwalkCells[1].reset()")
    assert "nudge = 0.01" in other.run("gradwalkCells[1].editor.code")
    other.close()


def test_an_address_in_the_tab_that_has_the_page(tab: Any) -> None:
    """Who looks through what a class did puts one address after the other into one tab: nothing is loaded anew."""
    tab.run("void (gradwalkCells[1].editor.code = 'print(2)')")
    tab.run("gradwalkCells[1].share()")
    address = tab.run("location.hash")
    tab.run("gradwalkCells[1].reset(); location.hash = ''")
    tab.run(f"void (location.hash = {json.dumps(address)})")
    tab.wait("gradwalkCells[1].editor.code === 'print(2)'")


@pytest.mark.parametrize(
    "hash", ["#cell=1&code=%%%", "#cell=99&code=AAAA", "#cell=x&code=", "#cell=1&code=" + "A" * 70000]
)
def test_addresses_that_are_no_good(hash: str, host: Any, browser: Any) -> None:
    """Whatever an address says, the page works."""
    tab = browser.open(host.address + PAGE + hash, offline=False)
    tab.wait("Boolean(globalThis.gradwalkCells)")
    assert tab.run("gradwalkCells[0].editor.code.startsWith('def f')")
    assert tab.errors == []
    tab.close()


def test_the_keyboard_is_enough(tab: Any) -> None:
    """Tab reaches the editor and leaves it again; typing makes Tab indent until Escape; Shift and Enter runs."""
    field = "gradwalkCells[0].editor.field"
    tab.run(f"{field}.focus()")
    tab.press("Tab")
    assert tab.run("document.activeElement.textContent") == "Run"
    tab.run(f"{field}.focus(); {field}.setSelectionRange(0, {field}.value.length)")
    tab.type("if True:")
    tab.press("Enter")
    tab.type("print(1)")
    assert tab.run("gradwalkCells[0].editor.code") == "if True:\n    print(1)"
    tab.press("Enter")
    tab.press("Tab")
    assert tab.run("gradwalkCells[0].editor.code").endswith("\n        ")
    tab.press("Escape")
    tab.press("Tab")
    assert tab.run("document.activeElement.textContent") == "Run"
    tab.run(f"{field}.focus()")
    tab.press("Enter", shift=True)
    tab.wait("gradwalkCells[0].outcome && !gradwalkCells[0].isRunning", MINUTES)
    assert shown(tab, 0) == "1\n"


def test_the_second_visit_needs_no_network(tab: Any, host: Any, browser: Any) -> None:
    """With the host gone, pages, the walk, the search and Python still work."""
    tab.wait("navigator.serviceWorker.controller !== null", 60.0)
    run(tab, 0)
    kept = "caches.keys().then((names) => caches.open(names.find((name) => name.includes('-python-'))))"
    tab.wait(f"{kept}.then((cache) => cache.keys()).then((files) => files.length >= 5)", 60.0)
    host.is_down = True
    second = browser.open(host.address + PAGE, offline=False)
    second.wait("Boolean(globalThis.gradwalkCells)")
    assert run(second, 0)["text"] == "4.0\n"
    second.go(host.address + "walk/")
    second.wait("Boolean(document.querySelector('.gradwalk'))")
    second.go(host.address)
    second.run("document.querySelector('.search input').focus()")
    second.type("derivative")
    second.wait("document.querySelectorAll('.results a').length > 0")
    second.close()
