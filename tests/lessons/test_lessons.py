"""The lessons as CPython runs them: every cell prints what is recorded, every exercise tells right from wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradwalk import walk
from gradwalk.bundled import texts
from gradwalk.expression import parsed
from gradwalk.lessons import cells, source

LESSONS = source.lessons()
each_lesson = pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)


@each_lesson
def test_cells_print_what_is_recorded_and_exercises_know_their_answers(lesson: source.Lesson) -> None:
    """In order and in one namespace, as in the page; answers start from what the cells above them left."""
    namespace: dict[str, object] = {}
    for number, part in enumerate(lesson.parts):
        if isinstance(part, source.Cell):
            outcome = cells.run(part.code, namespace, f"cell {number}")
            assert (outcome.error, outcome.text) == ("", part.output), part.code
        if isinstance(part, source.Exercise):
            for right in part.answers:
                assert cells.check(right, part.checks, namespace).error == "", right
            for wrong in (part.start, *part.wrong):
                assert cells.check(wrong, part.checks, namespace).error != "", wrong


def test_texts_in_one_file_are_those_of_the_folder(tmp_path: Path) -> None:
    """setup.py puts them together, with a form feed and a name before each, in any order."""
    folder = tmp_path / "docs"
    folder.mkdir()
    written = {"a.md": "first\nlines\n", "b.js": "", "c.md": "last"}
    for name, text in written.items():
        (folder / name).write_text(text)
    assert texts(folder, "*.md", "*.js") == written
    (tmp_path / "docs.txt").write_text("".join(f"\f{name}\n{written[name]}" for name in ("c.md", "a.md", "b.js")))
    assert list(texts(folder).items()) == list(written.items())


@pytest.mark.untraced
@each_lesson
def test_what_a_lesson_has(lesson: source.Lesson) -> None:
    """A walk, cells and an exercise with a wrong answer; code that fits a phone held sideways; a text that is short."""
    kinds = [type(part) for part in lesson.parts]
    assert {source.Embedded, source.Cell, source.Exercise} <= set(kinds)
    assert all(part.wrong for part in lesson.parts if isinstance(part, source.Exercise))
    code = [part.code for part in lesson.parts if isinstance(part, source.Cell)]
    assert [line for text in code for line in text.splitlines() if len(line) > 80] == []
    assert sum(len(part.markdown.split()) for part in lesson.parts if isinstance(part, source.Text)) < 900


@each_lesson
def test_walks_can_be_shown(lesson: source.Lesson) -> None:
    """Each embedded expression is one, its values are of its inputs, its mode is one of the page's."""
    for part in lesson.parts:
        if isinstance(part, source.Embedded):
            expression = parsed(part.expression)
            assert set(part.values) <= set(expression.inputs)
            assert part.settings.keys() <= {"mode", "t"}
            assert part.settings.get("mode", "right") in walk.__globals__["MODES"]


def test_lessons_are_numbered() -> None:
    """01, 02, … without a gap."""
    assert [lesson.name[:2] for lesson in LESSONS] == [f"{number:02}" for number in range(1, len(LESSONS) + 1)]


def test_a_traceback_shows_the_learners_lines() -> None:
    """Through a function of theirs and into gradwalk, whose own lines are left out and whose advice is not."""
    code = "from gradwalk import Value\n\ndef f(x):\n    return x.log()\n\nf(Value(-1.0))\n"
    outcome = cells.run(code, {}, "cell 1")
    assert outcome.line == 4
    assert outcome.error.splitlines() == [
        "line 6: f(Value(-1.0))",
        "line 4, in f: return x.log()",
        "gradwalk.errors.DomainError: log: expected x > 0, got -1.0; clamp the input or use gradwalk.ieee()",
    ]


@pytest.mark.parametrize(
    ("code", "line", "said"),
    [
        ("x = (1\n", 1, "SyntaxError"),
        ("import sys\nsys.exit(3)", 2, "SystemExit: 3"),
        ("def f():\n    return f()\nf()", 2, "RecursionError"),
        ("raise KeyboardInterrupt", 1, "KeyboardInterrupt"),
    ],
)
def test_no_cell_ends_more_than_itself(code: str, line: int, said: str) -> None:
    """Whatever a cell raises is told, with its line."""
    outcome = cells.run(code, {}, "cell 1")
    assert outcome.line == line
    assert said in outcome.error


@pytest.mark.parametrize("ending", ["import sys; sys.exit(3)", "raise KeyboardInterrupt", "1 / 0", "f()"])
def test_no_answer_ends_more_than_its_check(ending: str) -> None:
    """Also where only the check calls what ends it; the line is the learner's."""
    outcome = cells.check(f"def f():\n    {ending}", "f()", {})
    assert (outcome.line, bool(outcome.error)) == (2, True)


def test_an_answer_that_cannot_run_is_not_checked() -> None:
    """What is wrong with it is told with its line, not what the check then misses."""
    outcome = cells.check("x = 1\ny = x / 0", "assert y == 1, 'y should be 1'", {})
    assert (outcome.line, outcome.error.splitlines()[-1]) == (2, "ZeroDivisionError: division by zero")


def test_what_is_written_to_stderr_is_shown() -> None:
    """Where warnings go: whoever is warned in a notebook is warned in a page."""
    told: list[str] = []
    code = "import sys\nprint('one')\nassert sys.stdout.writable()\nprint('two', file=sys.stderr)"
    outcome = cells.run(code, {}, tell=told.append)
    assert (outcome.error, outcome.text, "".join(told)) == ("", "one\ntwo\n", "one\ntwo\n")


def test_what_is_shown_is_text_tables_and_pictures() -> None:
    """In the order in which it came; a Value as its picture."""
    made = "from gradwalk import Value\nfrom gradwalk.lessons.cells import table\n"
    outcome = cells.run(made + "print('one')\ndisplay(table([(1,)], 'n'))\nValue(2.0)", {})
    assert [sorted(part) for part in outcome.shown] == [
        ["text/plain"], ["text/html", "text/plain"], ["image/svg+xml", "text/plain"],
    ]  # fmt: skip
    assert outcome.text == "one\nn\n1\nValue(data=2.0, grad=0.0)\n"


@pytest.mark.parametrize(
    ("answer", "hint"),
    [("def f(x):\n    2 * x", "Is there a return missing?"), ("def f(x):\n    return 2", "where a Value should")],
)
def test_what_a_check_stumbles_over_is_said_in_the_learners_words(answer: str, hint: str) -> None:
    """Python's own error names what the check did with the answer, which the learner does not see."""
    assert hint in cells.check(answer, "assert f(1.0).data == 2.0", {}).error


def test_exercises_without_an_answer_are_refused() -> None:
    """A lesson that lacks a part of an exercise cannot be read."""
    with pytest.raises(source.LessonError, match="expected one check"):
        source.parts_of("```python exercise\npass\n```\n```python check\npass\n```\n")


@pytest.mark.parametrize("text", ["", "A text.\n", "```python\n1\n```\n"])
def test_a_lesson_without_a_title_is_refused(text: str) -> None:
    """By the name of its file."""
    with pytest.raises(source.LessonError, match=r"01-new\.md: expected a title in the first line"):
        source.read(source.FOLDER / "01-new.md", text)


def test_static_cells_are_not_live() -> None:
    """What needs NumPy is shown in the page, and runs elsewhere."""
    parts = source.parts_of("```python static\nimport numpy\n```\n```python seconds=30\n1\n```\n```python\n1\n```\n")
    found = [(part.is_live, part.seconds) for part in parts if isinstance(part, source.Cell)]
    assert found == [(False, 0), (True, 30), (True, 10)]


def test_unknown_figures_are_refused() -> None:
    """A figure that no benchmark wrote cannot be on a page."""
    with pytest.raises(source.LessonError, match="not in figures"):
        source.parts_of("It is {no_such_figure}.")


LESSON = """# A title

Some text.

```python
print(1)
```
```text
1
```

```python seconds=30
2
```

```walk
u = x*y
u + x
x=2 y=-0.5 z=1e-3 t=3 mode=assign
```

```bash
ls
```
```python exercise
def f(): ...
```
```python check
assert f() == 1
```
```python answer
def f(): return 1
```
```python right
f = lambda: 1
```
```python wrong
f = lambda: 2
```
```python wrong
f = None
```
The end.
"""


def test_a_lesson_part_by_part() -> None:
    """Text, cells with what they print, walks, other blocks as they are, exercises with all that belongs to them."""
    lesson = source.read(source.FOLDER / "99-new.md", LESSON)
    assert (lesson.title, lesson.name) == ("A title", "99-new")
    assert lesson.parts == (
        source.Text("# A title\n\nSome text.\n\n"),
        source.Cell("print(1)\n", "1\n", 10),
        source.Cell("2\n", "", 30),
        source.Embedded("u = x*y\nu + x", {"x": 2.0, "y": -0.5, "z": 0.001}, {"t": "3", "mode": "assign"}),
        source.Text("```bash\nls\n```\n"),
        source.Exercise(
            "def f(): ...\n", "assert f() == 1\n", ("def f(): return 1\n", "f = lambda: 1\n"),
            ("f = lambda: 2\n", "f = None\n"),
        ),
        source.Text("The end.\n"),
    )  # fmt: skip


def test_figures_stand_where_their_names_do() -> None:
    """In the text, and not in code."""
    name, figure = next(iter(source.figures().items()))
    assert source.with_figures(f"It is {{{name}}}, {{{name}}}.") == f"It is {figure}, {figure}."
    [text, cell] = source.parts_of(f"{{{name}}}\n```python\n{{{name}}}\n```\n")
    assert (text, cell) == (source.Text(f"{figure}\n"), source.Cell(f"{{{name}}}\n", "", 10))


def test_a_table() -> None:
    """As text in columns, with titles or without; as HTML with all of it escaped."""
    assert repr(cells.table([("a", 1), ("bcd", 22)])) == "a    1\nbcd  22"
    titled = cells.table([("<b>", 1)], "name", "&")
    assert repr(titled) == "name  &\n<b>   1"
    assert titled._repr_html_() == (
        '<table><thead><tr><th scope="col">name</th><th scope="col">&amp;</th></tr></thead>'
        "<tbody><tr><td>&lt;b&gt;</td><td>1</td></tr></tbody></table>"
    )


def test_the_last_line_is_shown_as_in_a_notebook() -> None:
    """If it is an expression, and is not None; what was defined stays defined."""
    namespace: dict[str, object] = {}
    shown = [cells.run(code, namespace).text for code in ("x = 2", "x", "x + 1\nx = 5", "None", "", "print(x)", "'a'")]
    assert shown == ["", "2\n", "", "", "", "5\n", "'a'\n"]


def test_what_is_printed_in_pieces_is_one_output() -> None:
    """Each piece is told at once."""
    told: list[str] = []
    outcome = cells.run("print(1, end='')\nprint(2)\n3", {}, tell=told.append)
    assert outcome.shown == [{"text/plain": "12\n"}, {"text/plain": "3\n"}]
    assert "".join(told) == "12\n"


def test_a_syntax_error_is_told_without_a_file() -> None:
    """With the line, and where in it."""
    outcome = cells.run("x = 1\ny = = 2\n", {}, "cell 3")
    assert (outcome.line, "File" in outcome.error) == (2, False)
    assert outcome.error.splitlines()[-1] == "SyntaxError: invalid syntax"
    assert "y = = 2" in outcome.error


def test_a_check_that_says_nothing_says_not_yet() -> None:
    """And what an answer defines does not stay."""
    namespace: dict[str, object] = {}
    assert cells.check("x = 1", "print('unseen')\nassert x == 2", namespace).error == "not yet"
    outcome = cells.check("x = 2", "print('unseen')\nassert x == 2", namespace)
    assert (outcome.error, outcome.text, namespace) == ("", "", {})
