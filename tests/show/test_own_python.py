"""A function typed into the page: what is shown of it, what is said of its mistakes, and where the field is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from chromium import Browser

from gradwalk.show.own_python import OwnPythonError, answered, recorded_source
from gradwalk.show.play import page
from gradwalk.show.widget import Player


def test_the_last_function_is_called() -> None:
    """Arguments become leaves with their names, of their defaults or of a number; gradwalk's functions are there."""
    value, called = recorded_source(
        "def g(x):\n    return 2*x\ndef f(x, y=4, *, flag=True):\n    return tanh(g(x)) + y if flag else x"
    )
    assert (called, value.data) == ("f(x=2, y=4)", 4.999329299739067)
    assert {node.label for node in value._topological_order() if not node._children} == {"x", "y", ""}


def test_arguments_without_a_number_get_one() -> None:
    """Six that differ, then the same again; what is no number stays as it is, and what takes any number gets none."""
    value, called = recorded_source(
        "def f(a, b, c, d, e, f, g, *more, s='t', n=None, **others):\n"
        "    return a + b + c + d + e + f + g if (more, s, n, others) == ((), 't', None, {}) else a"
    )
    assert called == "f(a=2, b=-3, c=10, d=0.5, e=1.5, f=-1, g=2)"
    assert value.data == 12.0


def test_names_of_the_notebook_are_known() -> None:
    """Beside gradwalk's own, and before them."""
    value, _ = recorded_source("def f(x):\n    return tanh(x) + k", {"k": 3.0, "tanh": lambda x: 2 * x})
    assert value.data == 7.0
    value, _ = recorded_source(
        "def f(x):\n    return math.tanh(x) * gradwalk.relu(Value(1.0)) + _hidden(x)", {"_hidden": abs}
    )
    assert value.data == pytest.approx(2.964027580075817)


def test_what_a_function_prints_is_dropped(capsys: pytest.CaptureFixture[str]) -> None:
    """Its program is the answer, with how it was called as its title."""
    answer = json.loads(answered("def f(x):\n    print('seen')\n    return x * x"))
    assert answer["program"]["title"] == "f(x=2)"
    assert len(answer["program"]["nodes"]) == 2
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("def f(x", "line 1: SyntaxError"),
        ("x = 1", "expected a function"),
        ("def f(x):\n    return 1", "expected f to return one number made of its arguments, got int"),
        ("def f(x):\n    y = -x\n    return y.log()", "line 3: DomainError: log: expected x > 0"),
        ("import sys\nsys.exit()", "line 2: SystemExit"),
        ("def f(x):\n    return x + unknown", "line 2: NameError"),
    ],
)
def test_mistakes_are_told_with_their_line(source: str, problem: str) -> None:
    with pytest.raises(OwnPythonError) as caught:
        recorded_source(source)
    assert str(caught.value).startswith(problem)
    assert json.loads(answered(source)) == {"error": str(caught.value)}


def test_the_kernel_runs_it() -> None:
    """In a notebook the widget shows the function's graph, whose leaves are live; a mistake is sent back."""
    player = Player("a*b", {"a": 2.0, "b": 3.0})
    sent: list[Any] = []
    player.send = sent.append  # type: ignore[method-assign]
    player._asked(player, {"python": "def f(x, y=5.0):\n    return x*y"}, [])
    assert (player.value.data, player.start["program"]["title"]) == (10.0, "f(x=2, y=5)")
    player.values = {"0": 3.0}
    assert player.value.data == 15.0
    player._asked(player, {"python": "def f(x): return"}, [])
    assert len(sent) == 1
    assert "got NoneType" in sent[0]["error"]
    assert player.value.data == 15.0


def test_the_field_is_where_there_is_a_python(browser: Browser, tmp_path: Path) -> None:
    """A page from a file has none, and says so in its help; with one the answer is shown, and a mistake is told."""
    tab = browser.open()
    tab.show(page(), tmp_path)
    buttons = "[...document.querySelectorAll('.tools button')].map((each) => each.textContent)"
    assert "Python" not in tab.run(buttons)
    assert "no Python to run it" in tab.text(".help")
    tab.show(page(site="../"), tmp_path)
    assert "Python" in tab.run(buttons)
    answers = {
        "bad": {"error": "line 1: SyntaxError"},
        "good": json.loads(answered("def f(x, y):\n    return x*y + x")),
    }
    tab.run(f"gradwalk.own.python = {{ run: async (source) => ({json.dumps(answers)})[source] }}; 0")
    tab.run("[...document.querySelectorAll('.tools button')].find((each) => each.textContent === 'Python').click()")
    tab.run("gradwalk.own.field.value = 'bad'; gradwalk.own.run()")
    assert tab.text(".own .told") == "line 1: SyntaxError"
    tab.run("gradwalk.own.field.value = 'good'; gradwalk.own.run()")
    assert tab.run("[gradwalk.own.root.open, gradwalk.graph.names.join(), gradwalk.values[0]]") == [
        False,
        "x,y,v1,v2",
        2,
    ]
    assert tab.run("document.querySelector('.examples').value") == "program"
    assert "f(x=2, y=-3)" in tab.run("document.querySelector('.expression').placeholder")
    tab.run("gradwalk.header.on.example({ text: 'a*b', values: { a: 1, b: 2 } })")
    tab.run("gradwalk.header.on.program()")
    assert tab.run("gradwalk.graph.names.join()") == "x,y,v1,v2"
    assert tab.errors == []
    tab.close()
