"""A function that was typed into the page: it is run on Values, and what it recorded is shown.

The kernel does it in a notebook, Python in WebAssembly on the lessons' site; a page without either has no such field.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import json
import sys
import traceback
from typing import Any

from gradwalk import engine, functions, math, reference
from gradwalk.graph import short_number
from gradwalk.show.program import program_of

STARTS = (2.0, -3.0, 10.0, 0.5, 1.5, -1.0)  # for arguments that nobody gave a value
_FILE = "<your function>"


class OwnPythonError(ValueError):
    """What is wrong with the function, in a line, and which line of it that is about (0 for none)."""

    def __init__(self, problem: str, line: int = 0) -> None:
        super().__init__(f"line {line}: {problem}" if line else problem)
        self.line = line


def recorded_source(source: str, known: dict[str, Any] | None = None) -> tuple[Any, str]:
    """What the last function in `source` returns, and how it was called; `known` are names that it may use.

    >>> value, called = recorded_source("def f(x, y=4.0):\\n    return x*y + x")
    >>> called, value.data
    ('f(x=2, y=4)', 10.0)
    """
    namespace = {**_names(), **(known or {}), "__name__": "__main__"}
    with _told():
        tree = ast.parse(source, _FILE)
        exec(compile(tree, _FILE, "exec"), namespace)
    name = next((part.name for part in reversed(tree.body) if isinstance(part, ast.FunctionDef)), "")
    if not name:
        raise OwnPythonError("expected a function: def f(x, y): …")
    with _told():
        arguments = _arguments(namespace[name])
        value = namespace[name](**arguments)
    if not isinstance(value, engine.Value | reference.Value):
        raise OwnPythonError(f"expected {name} to return one number made of its arguments, got {type(value).__name__}")
    shown = ", ".join(f"{key}={short_number(each.data)}" for key, each in arguments.items())
    return value, f"{name}({shown})"


def answered(source: str) -> str:
    """For a page that runs Python itself: the program as JSON, or the error; what the function prints is dropped."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            value, called = recorded_source(source)
        return json.dumps({"program": {**program_of(value), "title": called}})
    except OwnPythonError as error:
        return json.dumps({"error": str(error)})


def _names() -> dict[str, Any]:
    return {
        **{name: each for name, each in vars(functions).items() if not name.startswith("_")},
        "gradwalk": sys.modules["gradwalk"],
        "math": math,
        "Value": engine.Value,
    }


def _arguments(function: Any) -> dict[str, Any]:
    """A Value for each argument: of its default, or of a number of ours."""
    named = [
        each
        for each in inspect.signature(function).parameters.values()
        if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
    ]
    starts = {each.name: STARTS[place % len(STARTS)] for place, each in enumerate(named)}
    numbers = {each.name: starts[each.name] if each.default is each.empty else each.default for each in named}
    return {
        name: engine.Value(float(number), label=name)
        for name, number in numbers.items()
        if isinstance(number, int | float) and not isinstance(number, bool)
    }


@contextlib.contextmanager
def _told() -> Any:
    """An error of the user's in one line, with the line of theirs."""
    try:
        yield
    except (Exception, SystemExit) as error:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == _FILE]
        line = error.lineno if isinstance(error, SyntaxError) else frames[-1].lineno if frames else 0
        problem = error.msg if isinstance(error, SyntaxError) else str(error)
        raise OwnPythonError(f"{type(error).__name__}: {problem}", line or 0) from None
