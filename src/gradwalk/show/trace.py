"""`gradwalk trace`: the walk of an expression, or of a function in a file of the user's.

Reads what was asked for, records the graph, and hands it to `text.py`; `--json` has every number in full.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import math
import os
import re
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from gradwalk import engine
from gradwalk.expression import ExpressionError, parsed, printable
from gradwalk.files import special_file
from gradwalk.finite_differences import Difference, finite_differences
from gradwalk.graph import Graph
from gradwalk.walk import Walk

MOST_SHOWN = 60
_PATIENCE = 0.15  # seconds between two looks at the size of the window
MOST_EVALUATIONS = 2_000_000  # of rows, for the finite differences: about a second


def trace(target: str, assignments: Sequence[str], mode: str, step: bool, as_json: bool, show_all: bool) -> None:
    """The command's body."""
    values = _values(assignments)
    script = re.fullmatch(r"(?P<file>.+\.py):(?P<function>\w+)", target, re.DOTALL)
    if script:
        root, title = _from_script(script["file"], script["function"], values)
    elif re.fullmatch(r"\S+\.py", target):
        raise click.ClickException(f"trace: expected FILE.py:FUNCTION, got {printable(target)!r}; add the function")
    else:
        root, title = _from_expression(target, values)
    graph, walking = Graph(root), Walk(root, mode)
    if as_json:
        click.echo(json.dumps(as_dict(title, graph, walking), allow_nan=False, indent=1))
    elif step:
        _step_through(title, graph, walking)
    else:
        _print(title, graph, walking, len(graph) + 1 if show_all else MOST_SHOWN)


# ---------------------------------------------------------------- what to trace


def _values(assignments: Sequence[str]) -> dict[str, float]:
    values: dict[str, float] = {}
    for given in assignments:
        name, equals, number = given.partition("=")
        if not equals or not name.isidentifier():
            raise click.ClickException(f"trace: expected NAME=NUMBER, got {printable(given)!r}")
        try:
            values[name] = float(number)
        except ValueError:
            raise click.ClickException(f"trace: expected a number for {name}, got {printable(number)!r}") from None
        if not math.isfinite(values[name]):
            raise click.ClickException(f"trace: expected a finite number for {name}, got {printable(number)!r}")
    return values


def _from_expression(text: str, values: dict[str, float]) -> tuple[Any, str]:
    try:
        expression = parsed(text)
        unknown = [name for name in values if name not in expression.inputs]
        if unknown:
            known = ", ".join(expression.inputs[:8])
            raise click.ClickException(f"trace: {unknown[0]} is no input of the expression; its inputs are {known}")
        return expression.evaluate(values), " ".join(text.split())
    except ExpressionError as error:
        raise click.ClickException(str(error)) from None


def _from_script(file: str, name: str, values: dict[str, float]) -> tuple[Any, str]:
    path = Path(file)
    if kind := special_file(path):
        raise click.ClickException(f"trace: {printable(file)}: {kind}, expected a file")
    if not path.is_file():
        raise click.ClickException(f"trace: there is no file {printable(file)!r}")
    with _users_errors(path):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules.setdefault(path.stem, module)
        sys.path.insert(0, str(path.resolve().parent))
        spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        raise click.ClickException(f"trace: {path.name} has no function {name}")
    arguments = _arguments(function, name, values)
    with _users_errors(path):
        result = function(**arguments)
    if not isinstance(result, engine.Value):
        kind = type(result).__name__
        raise click.ClickException(f"trace: expected {name} to return a Value, got a {kind}; return the loss itself")
    shown = ", ".join(f"{key}={value.data!r}" for key, value in arguments.items() if isinstance(value, engine.Value))
    return result, f"{path.name}: {name}({shown})"


def _arguments(function: Any, name: str, values: dict[str, float]) -> dict[str, Any]:
    """Values for the given numbers and for numeric defaults; other defaults as they are."""
    arguments: dict[str, Any] = {}
    missing = []
    named = [
        p
        for p in inspect.signature(function).parameters.values()
        if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    ]
    for parameter in named:
        default = values.get(parameter.name, parameter.default)
        if default is parameter.empty:
            missing.append(parameter.name)
        elif isinstance(default, int | float) and not isinstance(default, bool):
            arguments[parameter.name] = engine.Value(default, label=parameter.name)
    if missing:
        example = " ".join(f"{each}=1.0" for each in missing)
        raise click.ClickException(f"trace: no value for {', '.join(missing)} of {name}; add {example}")
    unknown = [key for key in values if key not in arguments]
    if unknown:
        known = ", ".join(parameter.name for parameter in named) or "none"
        raise click.ClickException(f"trace: {unknown[0]} is no argument of {name}; its arguments are {known}")
    return arguments


@contextmanager
def _users_errors(path: Path) -> Iterator[None]:
    """An error in the user's file in one line: where, and what."""
    try:
        yield
    except (Exception, SystemExit) as error:
        here = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).name == path.name]
        line = error.lineno if isinstance(error, SyntaxError) else here[-1].lineno if here else None
        where = f"{path.name}, line {line}" if line else path.name
        problem = " ".join(printable(str(error).replace("\n", " ")).split())
        raise click.ClickException(f"{where}: {type(error).__name__}: {problem}") from None


# ---------------------------------------------------------------- the three ways to show it


def checked(graph: Graph) -> dict[Any, Difference]:
    """The finite difference of every leaf, or of as many as can be had in about a second."""
    leaves = [node for node in graph.order if not node._children and not node._constant]
    most = max(1, MOST_EVALUATIONS // (16 * len(graph)))
    differences = finite_differences(graph.root, leaves[:most])
    return {difference.leaf: difference for difference in differences or ()}


def _print(title: str, graph: Graph, walking: Walk, most: int) -> None:
    from rich.console import Group

    from gradwalk.show import text

    walking.seek(-1)
    differences = checked(graph)
    sections = [
        ("forward", text.forward_table(graph, most)),
        ("backward", Group(*text.mode_lines(graph, walking), text.walk_lines(graph, walking, most))),
        ("result", text.result_table(graph, walking, differences, most)),
    ]
    text.show(text.page(title, sections))


def as_dict(title: str, graph: Graph, walking: Walk) -> dict[str, Any]:
    """Everything that is shown, and every number in full; nan and infinities as strings."""
    walking.seek(-1)
    differences = checked(graph)
    place = graph.place
    nodes = [
        {
            "id": i, "name": graph.names[i], "label": node.label, "op": node._op, "constant": node._constant,
            "children": graph.children[i], "local_grads": [_number(grad) for grad in node._local_grads],
            "data": _number(node.data), "grad": _number(walking.grad(node)),
        }
        for i, node in enumerate(graph.order)
    ]  # fmt: skip
    steps = [
        {
            "number": walking.number(step), "node": place[step.node], "seed": step.is_seed,
            "upstream": _number(step.upstream),
            "wrong": walking.mode != "right" and walking.differs(step),
            "contributions": [
                {
                    "child": place[c.child], "local_grad": _number(c.local_grad), "upstream": _number(c.upstream),
                    "product": _number(c.product), "before": _number(c.before), "after": _number(c.after),
                }
                for c in step.contributions
            ],
        }
        for step in walking
    ]  # fmt: skip
    size = graph.root.data
    check = [
        {
            "node": place[leaf], "finite_difference": _number(difference.slope), "kink": difference.is_kink,
            "relative_error": _number(difference.relative_error(walking.grad(leaf), size)),
            "agrees": (None, True, False)[difference.verdict(walking.grad(leaf))],
        }
        for leaf, difference in differences.items()
    ]  # fmt: skip
    return {
        "title": title, "mode": walking.mode, "first_difference": walking.first_difference,
        "first_wrong_number": walking.first_wrong_number,
        "root": len(graph) - 1, "nodes": nodes, "steps": steps, "check": check,
    }  # fmt: skip


def _number(x: float | None) -> float | str | None:
    return x if x is None or math.isfinite(x) else repr(x)


def _step_through(title: str, graph: Graph, walking: Walk) -> None:
    from gradwalk.show import text

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.ClickException("trace: --step expected a terminal; leave it out to print every step")
    console = text.console()
    number = 0
    with console.screen() as screen, _keys() as next_key:
        while True:
            size = console.size
            screen.update(text.screen(graph, walking, title, number, size.height))
            while (key := next_key()) is None and console.size == size:
                pass  # nothing was pressed, and the window is as it was
            if key is None:
                continue
            if key in ("q", "Q", "\x1b", "\x03", ""):
                return
            if key in (" ", "n", "\r", "\n", "\x1b[C", "\x1b[B", "\x1bOC", "\x1bOB", "\xe0M", "\xe0P"):
                number = min(number + 1, walking.last_number)
            elif key in ("b", "p", "\x7f", "\b", "\x1b[D", "\x1b[A", "\x1bOD", "\x1bOA", "\xe0K", "\xe0H"):
                number = max(number - 1, 0)
            elif key in ("\x1b[H", "\x1bOH", "\x1b[1~", "\xe0G", "g", "0"):
                number = 0
            elif key in ("\x1b[F", "\x1bOF", "\x1b[4~", "\xe0O", "G", "$"):
                number = walking.last_number


class _KeysOf:
    """Key after key from what a terminal sends: several may come at once, and an arrow key is a whole sequence."""

    def __init__(self, read: Callable[[], str | None]) -> None:
        self.read, self.waiting = read, ""

    def next(self) -> str | None:
        """The next key; None if none came for a while; "" at the end of the input."""
        if not self.waiting:
            read = self.read()
            if read is None:
                return None
            self.waiting = read
        match = re.match(r"\x1b\[[0-9;]*[A-Za-z~]|\x1bO[A-Z]|.", self.waiting, re.DOTALL)
        key = match[0] if match else ""
        self.waiting = self.waiting[len(key) :]
        return key


@contextmanager
def _keys() -> Iterator[Any]:
    """Single keys as they are pressed, without Enter; an arrow key comes as its whole sequence."""
    if sys.platform == "win32":
        import msvcrt

        def pressed() -> str | None:
            if not msvcrt.kbhit():
                time.sleep(_PATIENCE)
                return None
            key = msvcrt.getwch()
            return "\xe0" + msvcrt.getwch() if key in "\x00\xe0" else key

        yield pressed
        return
    import select
    import termios
    import tty

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    try:
        tty.setcbreak(terminal)

        def read() -> str | None:
            ready, _, _ = select.select([terminal], [], [], _PATIENCE)
            return os.read(terminal, 64).decode(errors="replace") if ready else None

        yield _KeysOf(read).next
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
