"""A walk as text for the terminal: the forward table, the steps with their arithmetic, the result and its check.

Only this module imports rich. Labels and expressions are set as plain text, never as markup, and what could steer a
terminal is replaced.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from gradwalk.check import Difference
from gradwalk.expression import printable
from gradwalk.formula import Symbol, variable
from gradwalk.graph import Graph, short_number
from gradwalk.ops import OPS
from gradwalk.walk import MODES, Contribution, Step, Walk

LEAF, GRAD, QUIET, WRONG, RIGHT = "cyan", "yellow", "bright_black", "bold red", "green"


def console() -> Console:
    """The terminal; without colour where NO_COLOR is set or the output is not a terminal."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure and (sys.stdout.encoding or "").lower().replace("-", "") != "utf8":
        reconfigure(errors="replace")  # × and → are nice to have, no reason to stop
    return Console(highlight=False, markup=False, emoji=False)


# ---------------------------------------------------------------- formulas, from the rows of the table

_LEVELS = {"or": 1, "and": 2, "<": 3, "<=": 3, ">": 3, ">=": 3, "+": 4, "-": 4, "*": 5, "div": 5, "neg": 6, "pow": 8}
_INFIX = {"*": "·", "div": "/", "pow": "**", "and": " and ", "or": " or "}


def written(formula: Any) -> str:
    """A formula of the table as a person writes it.

    >>> written(OPS["relu"].forward(variable("x"))), written(OPS["tanh"].local_grads(variable("x"), variable("out"))[0])
    ('0 if x < 0 else x', '4·sigmoid(2·x)·sigmoid(-2·x)')
    """
    return _written(formula)[0]


def _written(part: Any) -> tuple[str, int]:
    if not isinstance(part, Symbol):
        return format(float(part), ".6g"), 9 if part >= 0.0 else 6
    head, arguments = part.head, part.arguments
    if not arguments:
        return head, 9
    if head == "where":
        condition, chosen, otherwise = (_written(argument) for argument in arguments)
        return f"{_enclosed(chosen, 1)} if {condition[0]} else {otherwise[0]}", 0
    if head == "neg":
        return "-" + _enclosed(_written(arguments[0]), 6), 6
    if head == "and" and _is_equality(part):
        left, right = arguments[0].arguments  # type: ignore[union-attr]
        return f"{_enclosed(_written(left), 4)} = {_enclosed(_written(right), 4)}", 3
    if head in _LEVELS:
        level, sign = _LEVELS[head], _INFIX.get(head, f" {head} ")
        left_text, right_text = _written(arguments[0]), _written(arguments[1])
        return _enclosed(left_text, level) + sign + _enclosed(right_text, level + 1), level
    return f"{head}({', '.join(_written(argument)[0] for argument in arguments)})", 9


def _enclosed(text: tuple[str, int], level: int) -> str:
    return text[0] if text[1] >= level else f"({text[0]})"


def _is_equality(part: Symbol) -> bool:
    heads = [argument.head for argument in part.arguments if isinstance(argument, Symbol)]
    return heads == ["<=", ">="]


def formula_of(node: Any) -> str:
    """What the table says a node computes, in terms of x, y, …"""
    if not node._children:
        return "constant" if node._constant else "leaf"
    op = OPS.get(node._name)
    if op is None:
        return f"{node._name or node._op or 'by hand'}(…)"
    return written(op.forward(*map(variable, op.inputs), *node._parameters))


def local_formulas(node: Any) -> list[str]:
    """For each child, what the table says the local gradient is; empty for what is not in the table."""
    op = OPS.get(node._name)
    if op is None:
        return [""] * len(node._children)
    rows = op.local_grads(*map(variable, op.inputs), *node._parameters, variable("out"))
    return [f"∂/∂{name} = {written(row)}" for name, row in zip(op.inputs, rows, strict=True)]


# ---------------------------------------------------------------- tables


def _table(*columns: tuple[str, Any]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, header_style=QUIET, pad_edge=False, show_edge=False)
    for name, justify in columns:
        table.add_column(name, justify=justify, overflow="fold", no_wrap=justify == "right")
    return table


def _name(graph: Graph, node: Any) -> Text:
    return Text(graph.name(node), style=QUIET if node._constant else LEAF if not node._children else "bold")


def _long(x: float) -> str:
    """All digits if they fit a column, else ten."""
    text = repr(x)
    return text if len(text) <= 13 else f"{x:.10g}"


def _more(hidden: int, what: str) -> list[RenderableType]:
    return [Text(f"… {hidden:,} more {what}; --all shows them", style=QUIET)] if hidden > 0 else []


def forward_table(graph: Graph, most: int) -> RenderableType:
    table = _table(("node", "left"), ("formula", "left"), ("of", "left"), ("data", "right"))
    shown = [node for node in graph.order if not node._constant]
    for node in shown[:most]:
        children = ", ".join(graph.name(child) for child in node._children[:8])
        children += ", …" if len(node._children) > 8 else ""
        formula = Text(formula_of(node), style=QUIET if not node._children else "")
        table.add_row(_name(graph, node), formula, Text(children, style=QUIET), Text(_long(node.data)))
    return Group(table, *_more(len(shown) - most, "nodes"))


def result_table(graph: Graph, walking: Walk, differences: dict[Any, Difference], most: int) -> RenderableType:
    """Every gradient where the walk ends; for leaves the finite difference, and whether it agrees."""
    table = _table(("node", "left"), ("data", "right"), ("grad", "right"), ("finite difference", "right"),
                   ("error", "right"), ("", "left"))  # fmt: skip
    shown = [node for node in graph.order if not node._constant]
    leaves_first = sorted(shown, key=lambda node: bool(node._children))
    size = graph.root.data
    for node in leaves_first[:most]:
        grad = walking.grad(node)
        cells = [_name(graph, node), Text(short_number(node.data)), Text(_long(grad), style=GRAD)]
        difference = differences.get(node)
        if difference:
            verdict = difference.verdict(grad, size)
            said = ("can't tell", "✓", "✗")[verdict] + (" kink" if difference.is_kink else "")
            said = said if difference.is_known else "edge"
            error = difference.relative_error(grad, size)
            cells += [Text(f"{difference.slope:.9g}"), Text(f"{error:.0e}" if error else "0", style=QUIET)]
            cells.append(Text(said, style=(QUIET, RIGHT, WRONG)[verdict]))
        table.add_row(*cells)
    return Group(table, *_more(len(shown) - most, "nodes"))


# ---------------------------------------------------------------- steps


def _grad_of(graph: Graph, node: Any) -> str:
    name = graph.name(node)
    return f"{name}.grad" if re.fullmatch(r"[\w#]+(\([^()]*\))?", name) else f"({name}).grad"


def step_lines(graph: Graph, walking: Walk, step: Step) -> list[Text]:
    """A step as lines: who hands on what, and for each child the arithmetic."""
    wrong = walking.mode != "right" and walking.differs(step)
    right = walking.right_step(step) if wrong else step
    if step.is_seed:
        [seed] = step.contributions
        line = Text("seed   ", style=QUIET)
        line.append(f"{_grad_of(graph, step.node)} = {short_number(seed.after)}", style=GRAD)
        return [line]
    head = Text(f"{step.index:>4}   ", style=QUIET)
    head.append(graph.name(step.node), style="bold")
    head.append(f"  hands on {short_number(step.upstream)}", style=QUIET)
    if wrong and step.upstream != right.upstream:
        head.append(f"  ✗ its gradient is {short_number(right.upstream)}", style=WRONG)
    lines = [head]
    formulas = local_formulas(step.node)
    for i, contribution in enumerate(step.contributions):
        if contribution.child._constant:
            continue
        line = Text("         ")
        line.append(_arithmetic(graph, walking, contribution))
        if wrong and contribution.after != right.contributions[i].after and walking.mode in ("assign", "not_reset"):
            line.append(f"  ✗ right: {short_number(right.contributions[i].after)}", style=WRONG)
        elif i < len(formulas) and max(46, line.cell_len + 2) + len(formulas[i]) <= 80:
            line.append(" " * max(2, 46 - line.cell_len) + formulas[i], style=QUIET)
        lines.append(line)
    return lines


def _arithmetic(graph: Graph, walking: Walk, contribution: Contribution) -> Text:
    _, local_grad, upstream, product, before, after = contribution
    sign = "=" if walking.mode == "assign" else "+="
    factors = (
        f"{short_number(local_grad)} × {short_number(upstream)}" if local_grad is not None else short_number(product)
    )
    total = f"{short_number(before)} + {short_number(product)} = " if before and walking.mode != "assign" else ""
    text = Text(f"{_grad_of(graph, contribution.child)} {sign} {factors}")
    text.append("  → ", style=QUIET)
    text.append(total, style=QUIET)
    text.append(short_number(after), style=GRAD)
    return text


def walk_lines(graph: Graph, walking: Walk, most: int) -> RenderableType:
    lines: list[RenderableType] = []
    for index in range(min(most, len(walking))):
        lines += step_lines(graph, walking, walking[index])
    return Group(*lines, *_more(len(walking) - most, "steps"))


def mode_lines(graph: Graph, walking: Walk) -> list[RenderableType]:
    """What a wrong mode does, and where it first goes wrong."""
    if walking.mode == "right":
        return []
    first = walking.first_difference
    where = "on this graph it makes no difference"
    if first is not None:
        where = f"the first step that goes wrong is step {first}, at {graph.name(walking[first].node)}"
    return [Text(f"wrong on purpose ({walking.mode}): {MODES[walking.mode]}", style=WRONG), Text(where), Text()]


def show(content: RenderableType) -> None:
    """Print it, without the blanks that fill up each line."""
    terminal = console()
    with terminal.capture() as captured:
        terminal.print(content)
    terminal.file.write("\n".join(line.rstrip() for line in captured.get().rstrip().split("\n")) + "\n")


def page(title: str, sections: Iterable[tuple[str, RenderableType]]) -> RenderableType:
    parts: list[RenderableType] = [Text(printable(title), style="bold"), Text()]
    for heading, body in sections:
        parts += [Rule(Text(heading, style="bold"), align="left", style=QUIET), Padding(body, (0, 0, 1, 0))]
    return Group(*parts)


# ---------------------------------------------------------------- one step at a time

KEYS = "→ or space: next   ← or b: back   home, end: first, last   q: quit"


def screen(graph: Graph, walking: Walk, title: str, height: int) -> RenderableType:
    """What `--step` shows: the step just taken, and every gradient as it is now."""
    taken = walking[walking.position - 1] if walking.position else None
    touched = {contribution.child for contribution in taken.contributions} if taken else set()
    lines = (
        step_lines(graph, walking, taken) if taken else [Text("Nothing has happened yet: every gradient is as it was.")]
    )
    table = _table(("", "left"), ("node", "left"), ("data", "right"), ("grad", "right"))
    shown = [node for node in reversed(graph.order) if not node._constant]
    centre = next((i for i, node in enumerate(shown) if taken and node is taken.node), 0)
    rows = max(3, height - len(lines) - 10)
    first = max(0, min(centre - rows // 3, len(shown) - rows))
    for node in shown[first : first + rows]:
        mark = "▶" if taken and node is taken.node and not taken.is_seed else "●" if node in touched else " "
        grad = Text(short_number(walking.grad(node)), style=f"bold {GRAD}" if node in touched else QUIET)
        table.add_row(Text(mark, style=GRAD), _name(graph, node), Text(short_number(node.data)), grad)
    progress = f"{walking.position} of {len(walking)} steps taken"
    return page(title, [(progress, Group(*lines[: max(2, height - 8)])), ("gradients now", table), (KEYS, Text())])
