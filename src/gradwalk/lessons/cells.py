"""Running a cell as a notebook does: what it prints, what its last line shows, and a traceback of the learner's lines.

The browser's worker, the tests and nothing else run lessons through here, so what they show cannot differ.
"""

from __future__ import annotations

import ast
import contextlib
import html
import io
import linecache
import re
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

_NAMES = ("<cell", "<your answer")  # what runs here is called so in tracebacks
_SHOWN = ("image/svg+xml", "text/html")  # the first of them that there is
# what a check stumbles over, and what that says about the answer
_HINTS = {
    "NoneType": "Is there a return missing?",
    "'(float|int)' object has no attribute": "A plain number came where a Value should.",
}


@dataclass
class Outcome:
    """What came of a cell: text and displays in order (`shown`), and the error that ended it, if one did."""

    shown: list[dict[str, str]] = field(default_factory=list)
    error: str = ""
    line: int = 0  # the learner's line that the error is about

    @property
    def text(self) -> str:
        """All that was printed and shown, as plain text: what the lessons record below a cell."""
        return "".join(part["text/plain"] for part in self.shown)


def run(
    source: str, namespace: dict[str, Any], name: str = "cell", tell: Callable[[str], None] | None = None
) -> Outcome:
    """Run a cell; the value of its last line, if it is an expression, is shown as a notebook shows it.

    `tell` is given what is printed while it is printed.

    >>> run("x = 2\\nx * 21", {}).text
    '42\\n'
    >>> outcome = run("a = 1\\na / 0", {})
    >>> outcome.line, outcome.error.splitlines()[-1]
    (2, 'ZeroDivisionError: division by zero')
    """
    outcome = Outcome()
    printed = _Printed(outcome, tell)
    linecache.cache[f"<{name}>"] = (len(source), None, source.splitlines(keepends=True), f"<{name}>")
    namespace.setdefault("__name__", "__main__")
    namespace["display"] = lambda *values: outcome.shown.extend(map(shown, values))  # as in a notebook
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):  # a warning is to be seen, too
            value = _executed(source, namespace, f"<{name}>")
            if value is not None:
                outcome.shown.append(shown(value))
    except BaseException as error:  # also SystemExit and KeyboardInterrupt: a cell ends, its page does not
        outcome.error, outcome.line = told(error, f"<{name}>")
    return outcome


def check(source: str, checks: str, namespace: dict[str, Any]) -> Outcome:
    """Run an answer, then the checks on what it defined; an assertion that does not hold is the hint in `error`.

    >>> check("def double(x): return x + x", "assert double(4) == 8", {}).error
    ''
    >>> check("def double(x): return x * x", "assert double(4) == 8, 'double(4) should be 8'", {}).error
    'double(4) should be 8'
    """
    tried = dict(namespace)
    outcome = run(source, tried, "your answer")
    if outcome.error:
        return outcome
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(checks, "<checks>", "exec"), tried)
    except AssertionError as error:
        outcome.error = str(error) or "not yet"
    except BaseException as error:  # as above
        outcome.error, outcome.line = told(error, "<your answer>")
        if not outcome.line:
            hints = [hint for said, hint in _HINTS.items() if re.search(said, str(error))]
            outcome.error = "\n".join([outcome.error, *hints])
    return outcome


def shown(value: Any) -> dict[str, str]:
    """A value as its notebook representation: always text, and a table or a picture where it has one."""
    bundle = {"text/plain": f"{value!r}\n"}
    offered: dict[str, str] = {}
    if hasattr(value, "_repr_mimebundle_"):
        offered = value._repr_mimebundle_()
    elif hasattr(value, "_repr_html_"):
        offered = {"text/html": value._repr_html_()}
    return bundle | {kind: offered[kind] for kind in [each for each in _SHOWN if each in offered][:1]}


def table(rows: Any, *titles: str) -> Table:
    """Rows of anything as a table; in a notebook it is shown as one.

    >>> table([(1, 1.0), (10, 0.1)], "h", "slope")
    h   slope
    1   1.0
    10  0.1
    """
    return Table([[str(entry) for entry in row] for row in rows], titles)


class Table:
    """Rows of text under their titles."""

    def __init__(self, rows: list[list[str]], titles: tuple[str, ...]) -> None:
        self.rows, self.titles = rows, titles

    def __repr__(self) -> str:
        lines = [list(self.titles), *self.rows] if self.titles else self.rows
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(entry.ljust(width) for entry, width in zip(line, widths, strict=True)).rstrip() for line in lines
        )

    def _repr_html_(self) -> str:
        head = "".join(f'<th scope="col">{html.escape(title)}</th>' for title in self.titles)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(entry)}</td>" for entry in row) + "</tr>" for row in self.rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


# ---------------------------------------------------------------- how


def _executed(source: str, namespace: dict[str, Any], name: str) -> Any:
    """The value of the last line if it is an expression, as in a notebook."""
    tree = ast.parse(source, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), namespace)
    return eval(compile(ast.Expression(last.value), name, "eval"), namespace) if isinstance(last, ast.Expr) else None


def told(error: BaseException, name: str) -> tuple[str, int]:
    """A traceback without what runs the cell, and the learner's line in it.

    Frames of gradwalk itself are left out below the learner's last line: its errors say what to do.
    """
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename.startswith(_NAMES)]
    lines = [text for text in traceback.format_exception_only(error) if "File" not in text or name in text]
    if isinstance(error, SyntaxError):
        return "".join(lines).replace(f'File "{name}", ', "").strip(), error.lineno or 0
    where = [
        f"line {frame.lineno}" + (f", in {frame.name}" if frame.name != "<module>" else "") + f": {frame.line}"
        for frame in own[:8]
    ]
    return "\n".join([*where, *(line.rstrip() for line in lines)]), (own[-1].lineno or 0) if own else 0


class _Printed(io.TextIOBase):
    """Where print() writes: appended to what is shown, in order, and told at once."""

    def __init__(self, outcome: Outcome, tell: Callable[[str], None] | None) -> None:
        self.outcome, self.told = outcome, tell

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        so_far = self.outcome.shown
        if so_far and len(so_far[-1]) == 1:
            so_far[-1]["text/plain"] += text
        else:
            so_far.append({"text/plain": text})
        if self.told:
            self.told(text)
        return len(text)
