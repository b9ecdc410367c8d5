"""`gradwalk lessons`: the same lessons as notebooks."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from gradwalk.cli import main
from gradwalk.lessons import cells, notebooks, source


def written(folder: Path) -> str:
    done = CliRunner().invoke(main, ["lessons", str(folder)])
    assert done.exit_code == 0, done.output
    return done.output


def test_all_lessons_are_written_and_said_how_to_open(tmp_path: Path) -> None:
    """One notebook a lesson; the last lines are what to type next."""
    output = written(tmp_path / "course")
    names = [lesson.name for lesson in source.lessons()]
    assert sorted(path.stem for path in (tmp_path / "course").glob("*.ipynb")) == names
    assert f"{len(names)} of {len(names)} lessons written to" in output
    assert "jupyter lab" in output or "jupyter notebook" in output


@pytest.mark.parametrize(
    ("module", "said"),
    [("jupyterlab.py", "jupyter lab"), ("notebook.py", "jupyter notebook"), ("", "Jupyter is not installed here")],
)
def test_how_to_open_them_depends_on_what_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, said: str
) -> None:
    """A folder that is called like Jupyter's own is not Jupyter."""
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    if module:
        (tmp_path / module).touch()
    assert said in written(tmp_path / "notebook").splitlines()[1]
    assert said in written(tmp_path / "notebook").splitlines()[1]


def test_work_in_a_notebook_is_kept(tmp_path: Path) -> None:
    """A second call writes only what is missing."""
    written(tmp_path)
    mine = tmp_path / f"{source.lessons()[0].name}.ipynb"
    mine.write_text("my own work")
    (tmp_path / f"{source.lessons()[1].name}.ipynb").unlink()
    assert f"1 of {len(source.lessons())} lessons written" in written(tmp_path)
    assert mine.read_text() == "my own work"


def test_a_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    """One line, status 2."""
    (tmp_path / "file").write_text("")
    assert CliRunner().invoke(main, ["lessons", str(tmp_path / "file")]).exit_code == 2


@pytest.mark.parametrize("lesson", source.lessons(), ids=lambda lesson: lesson.name)
def test_a_notebook_holds_the_lesson(lesson: source.Lesson) -> None:
    """Every cell with its recorded output, every walk as a call, every exercise with its checks; ids are unique."""
    made = json.loads(json.dumps(notebooks.notebook(lesson)))
    assert (made["nbformat"], made["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in made["cells"]]
    assert len(ids) == len(set(ids))
    code = [cell for cell in made["cells"] if cell["cell_type"] == "code"]
    outputs = ["".join(output["text"] for output in cell["outputs"]) for cell in code]
    recorded = [part.output for part in lesson.parts if isinstance(part, source.Cell)]
    assert [text for text in outputs if text] == [text for text in recorded if text]
    for cell in code:
        compile(cell["source"], "cell", "exec")


def test_a_walk_that_goes_wrong_says_how_to_make_it() -> None:
    """The text speaks of a mistake, and the widget begins without one."""
    for lesson in source.lessons():
        wrong = [part for part in lesson.parts if isinstance(part, source.Embedded) and "mode" in part.settings]
        sources = [cell["source"] for cell in notebooks.notebook(lesson)["cells"]]
        assert len(wrong) == sum("choose the mistake" in text for text in sources)


def test_an_exercise_in_a_notebook_is_checked_by_the_cell_below_it() -> None:
    """With the answer in place it says so."""
    [exercise] = [part for part in source.lessons()[0].parts if isinstance(part, source.Exercise)]
    made = notebooks.notebook(source.lessons()[0])
    [check] = [cell for cell in made["cells"] if "That is right" in cell["source"]]
    namespace: dict[str, object] = {}
    cells.run(exercise.answers[0], namespace)
    assert cells.run(check["source"], namespace).text == "That is right.\n"


def test_a_notebook_cell_by_cell() -> None:
    """Of each kind of part of a lesson, in the format that Jupyter reads."""
    parts = (
        source.Text("# T\n\ntext\n"),
        source.Cell("print(1)\n", "1\n", 10),
        source.Cell("2\n", "", 0),
        source.Embedded("x*y", {"x": 2.0, "y": -0.5}, {"mode": "assign"}),
        source.Embedded("x", {}, {"t": "3"}),
        source.Exercise("start\n", "assert f\n", ("answer\n", "other\n"), ("wrong\n",)),
    )
    made = notebooks.notebook(source.Lesson(Path("07-new.md"), "T", parts))

    def code(text: str, number: int, printed: str = "") -> dict[str, object]:
        outputs = [{"output_type": "stream", "name": "stdout", "text": printed}] if printed else []
        return {
            "cell_type": "code", "metadata": {}, "execution_count": None, "source": text, "outputs": outputs,
            "id": f"07-{number:03}",
        }  # fmt: skip

    def markdown(text: str, number: int) -> dict[str, object]:
        return {"cell_type": "markdown", "metadata": {}, "source": text, "id": f"07-{number:03}"}

    assert made["cells"] == [
        markdown("# T\n\ntext", 0),
        code("print(1)", 1, "1\n"),
        code("2", 2),
        code(
            "import gradwalk\n\ngradwalk.play('x*y', x=2, y=-0.5)  # then choose the mistake beside \"Backward pass\"",
            3,
        ),
        code("import gradwalk\n\ngradwalk.play('x')", 4),
        markdown("**Exercise.** Change the next cell; the one below it checks your answer.", 5),
        code("start", 6),
        code("assert f\n\nprint('That is right.')", 7),
        markdown("<details><summary>One answer</summary>\n\n```python\nanswer\n```\n</details>", 8),
    ]
    assert made["metadata"]["kernelspec"]["name"] == "python3"


def test_what_is_kept_is_counted(tmp_path: Path) -> None:
    """And nothing is said of it where there is none."""
    count = len(source.lessons())
    assert "already" not in written(tmp_path)
    assert f"0 of {count} lessons written to {tmp_path}; {count} were there already and stay as they are" in written(
        tmp_path
    )
