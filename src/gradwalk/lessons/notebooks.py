"""The lessons as notebooks, made from the same Markdown as the site's pages: the body of `gradwalk lessons`."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gradwalk.files import replace_file
from gradwalk.lessons.source import Cell, Embedded, Lesson, Part, Text, lessons


def notebook(lesson: Lesson) -> dict[str, Any]:
    """A lesson in the notebook format 4.5: outputs are there before anything is run.

    >>> notebook(lessons()[0])["cells"][0]["source"].splitlines()[0]
    '# What a derivative tells'
    """
    cells = [cell for part in lesson.parts for cell in _cells(part)]
    for number, cell in enumerate(cells):
        cell["id"] = f"{lesson.name[:2]}-{number:03}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": cells}


def _cells(part: Part) -> list[dict[str, Any]]:
    if isinstance(part, Text):
        return [_markdown(part.markdown)]
    if isinstance(part, Cell):
        return [_code(part.code, part.output)]
    if isinstance(part, Embedded):
        given = "".join(f", {name}={value:g}" for name, value in part.values.items())
        played = f"import gradwalk\n\ngradwalk.play({part.expression!r}{given})"
        wrong = '  # then choose the mistake beside "Backward pass"' if "mode" in part.settings else ""
        return [_code(played + wrong)]
    answer = f"<details><summary>One answer</summary>\n\n```python\n{part.answers[0]}```\n</details>"
    return [
        _markdown("**Exercise.** Change the next cell; the one below it checks your answer."),
        _code(part.start),
        _code(f"{part.checks}\nprint('That is right.')"),
        _markdown(answer),
    ]


def _markdown(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": text.strip()}


def _code(code: str, output: str = "") -> dict[str, Any]:
    outputs = [{"output_type": "stream", "name": "stdout", "text": output}] if output else []
    return {"cell_type": "code", "metadata": {}, "execution_count": None, "source": code.strip(), "outputs": outputs}


def write_notebooks(folder: Path) -> None:
    """Write the notebooks that are not in the folder yet, and say how to open them."""
    import click

    folder.mkdir(parents=True, exist_ok=True)
    kept = 0
    for lesson in lessons():
        path = folder / f"{lesson.name}.ipynb"
        text = json.dumps(notebook(lesson), indent=1, ensure_ascii=False) + "\n"
        try:
            if path.exists():
                raise FileExistsError
            replace_file(path, text.encode(), new=True)
        except FileExistsError:
            kept += 1  # somebody may have worked in it
    total = len(lessons())
    already = f"; {kept} were there already and stay as they are" if kept else ""
    click.echo(f"{total - kept} of {total} lessons written to {folder}{already}")
    modules = {"lab": "jupyterlab", "notebook": "notebook"}
    opener = next((word for word, module in modules.items() if is_there(module)), None)
    if opener:
        click.echo(f"open them with: jupyter {opener} {folder}")
    else:
        click.echo("Jupyter is not installed here; to open them:")
        click.echo(f"  pip install jupyterlab 'gradwalk[notebook]'\n  jupyter lab {folder}")


def is_there(module: str) -> bool:
    """Whether it is installed; a folder of that name, of lessons perhaps, is no module."""
    found = find_spec(module)
    return found is not None and found.origin is not None
