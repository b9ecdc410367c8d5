"""A walk as text for the terminal: the forward table, the steps with their arithmetic, the result and its check.

Only this module imports rich. Labels and expressions are set as plain text, never as markup, and what could steer a
terminal is replaced.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from gradwalk.expression import printable
from gradwalk.finite_differences import Difference
from gradwalk.formula import Symbol, variable
from gradwalk.graph import Graph, short_number, superscript
from gradwalk.operation import Op
from gradwalk.ops import OPS
from gradwalk.printing import NAMED_NUMBERS
from gradwalk.walk import MODES, Contribution, Step, Walk

_NARROW = 10  # what a column of names should have, or another column goes
_NARROWEST = 3  # what is left of it where none can
LEAF, GRAD, QUIET, WRONG, RIGHT = "cyan", "yellow", "bright_black", "bold red", "green"


def console() -> Console:
    """The terminal; without colour where NO_COLOR is set or the output is not a terminal."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure and (sys.stdout.encoding or "").lower().replace("-", "") != "utf8":
        reconfigure(errors="replace")  # × and → are nice to have, no reason to stop
    return Console(highlight=False, markup=False, emoji=False)


# ---------------------------------------------------------------- formulas, from the rows of the table

_LEVELS = {"or": 1, "and": 2, "<": 3, "<=": 3, ">": 3, ">=": 3, "+": 4, "-": 4, "*": 5, "div": 5, "neg": 6, "pow": 8,
           "power": 8}  # fmt: skip
_AROUND = {"abs": "|%s|", "floor": "⌊%s⌋", "ceil": "⌈%s⌉"}
_INFIX = {"*": "·", "div": "/", "pow": "**", "power": "**", "and": " and ", "or": " or "}


def written(formula: Any, names: Mapping[str, str] = MappingProxyType({})) -> str:
    """A formula of the table as a person writes it, with these names for its variables.

    >>> written(OPS["relu"].shown(variable("x"))), written(OPS["mul"].local_grads(variable("x"), variable("y"), 0)[0])
    ('max(0, x)', 'y')
    >>> written(OPS["mul"].forward(variable("x"), variable("y")), {"x": "w", "y": "a + b"})
    'w·(a + b)'
    """
    return _written(formula, names)[0]


def _written(part: Any, names: Mapping[str, str]) -> tuple[str, int]:
    if not isinstance(part, Symbol):
        name, _ = NAMED_NUMBERS.get(abs(part), ("", ""))
        return "-" * (bool(name) and part < 0.0) + (name or format(float(part), ".6g")), 9 if part >= 0.0 else 6
    head, arguments = part.head, part.arguments
    if not arguments:
        name = names.get(head, head)
        return name, 9 if _is_one_word(name) else 0
    if head == "where":
        condition, chosen, otherwise = (_written(argument, names) for argument in arguments)
        return f"{_enclosed(chosen, 1)} if {condition[0]} else {otherwise[0]}", 0
    if head == "pow" and not isinstance(arguments[1], Symbol) and arguments[1] == 1.0:
        return _written(arguments[0], names)  # the slope of a square is 2·x
    if head in ("pow", "power") and not isinstance(arguments[1], Symbol) and superscript(arguments[1]):
        return _enclosed(_written(arguments[0], names), 9) + superscript(arguments[1]), 8
    if head == "neg":
        return "-" + _enclosed(_written(arguments[0], names), _LEVELS["div"]), 6
    if head in _LEVELS:
        level, sign = _LEVELS[head], _INFIX.get(head, f" {head} ")
        left_text, right_text = _written(arguments[0], names), _written(arguments[1], names)
        return _enclosed(left_text, level) + sign + _enclosed(right_text, level + 1), level
    if head in _AROUND:
        return _AROUND[head] % _written(arguments[0], names)[0], 9
    return f"{head}({', '.join(_written(argument, names)[0] for argument in arguments)})", 9


def _is_one_word(name: str) -> bool:
    """Whether a name may stand beside a sign without brackets: `a`, `2e-3`, `tanh(x)`, but not `a + b`."""
    return re.fullmatch(r"[\w#.]+(\([^()]*\))?|[\d.]+e[+-]?\d+", name) is not None


def _enclosed(text: tuple[str, int], level: int) -> str:
    return text[0] if text[1] >= level else f"({text[0]})"


def formula_of(graph: Graph, node: Any) -> str:
    """What a node computes, in terms of the names of its children."""
    if not node._children:
        return "constant" if node._constant else "leaf"
    op = OPS.get(node._name)
    if op is not None:
        return written(
            (op.shown or op.forward)(*map(variable, op.inputs), *node._parameters), _names_in(op, graph, node)
        )
    listed = [graph.name(child) for child in node._children[:8]] + ["…"] * (len(node._children) > 8)
    return f"{node._name or node._op or 'by hand'}({', '.join(listed)})"


def local_formulas(graph: Graph, node: Any) -> list[str]:
    """For each child, what the table says the local gradient is; empty for what is not in the table."""
    op = OPS.get(node._name)
    if op is None:
        return [""] * len(node._children)
    rows = (op.shown_local_grads or op.local_grads)(*map(variable, op.inputs), *node._parameters, variable("out"))
    names = _names_in(op, graph, node)
    return [f"∂/∂{_alone(names[name])} = {written(row, names)}" for name, row in zip(op.inputs, rows, strict=True)]


def _names_in(op: Op, graph: Graph, node: Any) -> dict[str, str]:
    """What the variables of a row stand for at a node."""
    children = zip(op.inputs, node._children, strict=True)
    return {name: graph.name(child) for name, child in children} | {"out": graph.name(node)}


def _alone(name: str) -> str:
    return name if _is_one_word(name) else f"({name})"


# ---------------------------------------------------------------- tables


def _table(columns: Sequence[tuple[str, Any]], rows: Sequence[Sequence[Text]], optional: Sequence[str] = ()) -> Table:
    """A table in which no number is ever cut: where the terminal is too narrow, the optional columns go, in this order.

    Columns to the right hold numbers; of the others, names end in an ellipsis.
    """
    widths = [
        max([len(name), *(row[i].cell_len for row in rows if i < len(row))]) for i, (name, _) in enumerate(columns)
    ]
    is_name = [justify == "left" for _, justify in columns]
    wanted = [min(width, _NARROW) if is_name[i] else width for i, width in enumerate(widths)]
    least = [min(width, _NARROWEST) if is_name[i] else width for i, width in enumerate(widths)]
    kept = list(range(len(columns)))
    for name in optional:
        if sum(wanted[i] + 3 for i in kept) - 3 > _width():
            kept = [i for i in kept if columns[i][0] != name]
    for _ in range(sum(widths[i] + 3 for i in kept) - 3 - _width()):
        widths[max(kept, key=lambda i: widths[i] - least[i])] -= 1
    table = Table(box=box.SIMPLE_HEAD, header_style=QUIET, pad_edge=False, show_edge=False)
    for i in kept:
        name, justify = columns[i]
        table.add_column(name, justify=justify, overflow="ellipsis", no_wrap=True, width=max(widths[i], least[i]))
    for row in rows:
        table.add_row(*(row[i] if i < len(row) else Text() for i in kept))
    return table


def _width() -> int:
    return console().width


def _name(graph: Graph, node: Any) -> Text:
    return Text(graph.name(node), style=QUIET if node._constant else LEAF if not node._children else "bold")


def _long(x: float) -> str:
    """All digits if they fit a column, else ten."""
    text = repr(x).removesuffix(".0")
    return text if len(text) <= 13 else f"{x:.10g}"


def _more(hidden: int, what: str) -> list[RenderableType]:
    return [Text(f"… {hidden:,} more {what}; --all shows them", style=QUIET)] if hidden > 0 else []


def forward_table(graph: Graph, most: int) -> RenderableType:
    """Every node, and the number of the step that computes it."""
    shown = [node for node in graph.order if not node._constant]
    rows = []
    computed = 0
    for node in shown[:most]:
        computed += bool(node._children)
        number = Text(str(computed) if node._children else "", style=QUIET)
        formula = Text(formula_of(graph, node), style="" if node._children else QUIET)
        rows.append([number, _name(graph, node), formula, Text(_long(node.data))])
    columns = [("step", "right"), ("node", "left"), ("formula", "left"), ("data", "right")]
    table = _table(columns, rows, ["formula", "step"])
    return Group(table, *_more(len(shown) - most, "nodes"))


def result_table(graph: Graph, walking: Walk, differences: dict[Any, Difference], most: int) -> RenderableType:
    """Every gradient where the walk ends; for leaves the finite difference, and whether it agrees."""
    columns = [("node", "left"), ("data", "right"), ("grad", "right"), ("finite difference", "right"),
               ("error", "right"), ("", "right")]  # fmt: skip
    shown = [node for node in graph.order if not node._constant]
    leaves_first = sorted(shown, key=lambda node: bool(node._children))
    size = graph.root.data
    rows = []
    for node in leaves_first[:most]:
        grad = walking.grad(node)
        cells = [_name(graph, node), Text(short_number(node.data)), Text(_long(grad), style=GRAD)]
        difference = differences.get(node)
        if difference:
            verdict = difference.verdict(grad)
            said = ("can't tell", "✓", "✗")[verdict] + (" kink" if difference.is_kink else "")
            said = said if difference.is_known else "edge"
            error = difference.relative_error(grad, size)
            cells += [Text(f"{difference.slope:.9g}"), Text(f"{error:.0e}" if error else "0", style=QUIET)]
            cells.append(Text(said, style=(QUIET, RIGHT, WRONG)[verdict]))
        rows.append(cells)
    table = _table(columns, rows, ["error", "data", "finite difference"])
    return Group(table, *_more(len(shown) - most, "nodes"))


# ---------------------------------------------------------------- steps


def _grad_of(graph: Graph, node: Any) -> str:
    return f"{_alone(graph.name(node))}.grad"


def step_lines(graph: Graph, walking: Walk, step: Step, until: int | None = None) -> list[Text]:
    """A step as lines: who hands on what, and for each child the number and the arithmetic; `until` one of them."""
    wrong = walking.mode != "right" and walking.differs(step)
    right = walking.right_step(step) if wrong else step
    first = walking.number(step)
    if step.is_seed:
        [seed] = step.contributions
        line = Text(f"{first:>4}   ", style=QUIET)
        line.append(f"{_grad_of(graph, step.node)} = {short_number(seed.after)}", style=GRAD)
        line.append("  the seed", style=QUIET)
        return [line]
    head = Text("       ")
    head.append(graph.name(step.node), style="bold")
    head.append(f"  hands on {short_number(step.upstream)}", style=QUIET)
    if wrong and step.upstream != right.upstream:
        head.append(f"  ✗ its gradient is {short_number(right.upstream)}", style=WRONG)
    lines = [head]
    formulas = local_formulas(graph, step.node)
    width = min(80, _width())
    given = [(i, each) for i, each in enumerate(step.contributions) if not each.child._constant]
    for number, (i, contribution) in enumerate(given[:until], start=first):
        line = Text(f"{number:>4}     ", style=QUIET)
        line.append(_arithmetic(graph, walking, contribution))
        if wrong and contribution.after != right.contributions[i].after and walking.mode in ("assign", "not_reset"):
            line.append(f"  ✗ right: {short_number(right.contributions[i].after)}", style=WRONG)
        elif i < len(formulas) and max(46, line.cell_len + 2) + len(formulas[i]) <= width:
            line.append(" " * max(2, 46 - line.cell_len) + formulas[i], style=QUIET)
        lines.append(line)
    return lines


def _arithmetic(graph: Graph, walking: Walk, contribution: Contribution) -> Text:
    _, local_grad, upstream, product, before, after = contribution
    sign = "=" if walking.mode == "assign" else "+="
    factors = (
        f"{short_number(local_grad)} · {short_number(upstream)}" if local_grad is not None else short_number(product)
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
    hidden = walking.last_number + 1 - walking.number(walking[most]) if most < len(walking) else 0
    return Group(*lines, *_more(hidden, "steps"))


def mode_lines(graph: Graph, walking: Walk) -> list[RenderableType]:
    """What a wrong mode does, and where it first goes wrong."""
    if walking.mode == "right":
        return []
    first = walking.first_wrong_number
    where = "on this graph it makes no difference"
    if first is not None:
        where = f"the first step that goes wrong is step {first}, at {graph.name(walking.numbered(first)[0].node)}"
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


def screen(graph: Graph, walking: Walk, title: str, number: int, height: int) -> RenderableType:
    """What `--step` shows: the step with this number, and every number and gradient as it is then."""
    node, touched, known, lines = _moment(graph, walking, number)
    shown = [node for node in reversed(graph.order) if not node._constant]
    centre = next((i for i, each in enumerate(shown) if each is node), 0)
    rows = max(3, height - len(lines) - 10)
    first = max(0, min(centre - rows // 3, len(shown) - rows))
    cells = []
    for each in shown[first : first + rows]:
        mark = "▶" if each is node else "●" if each in touched else " "
        grad = Text(
            short_number(touched.get(each, walking.grad(each))), style=f"bold {GRAD}" if each in touched else QUIET
        )
        data = Text(short_number(each.data) if graph.place[each] < known or not each._children else "")
        cells.append([Text(mark, style=GRAD), _name(graph, each), data, grad])
    table = _table([("", "left"), ("node", "left"), ("data", "right"), ("grad", "right")], cells, ["data"])
    part = "the beginning" if not number else "forward" if number <= walking.forward_steps else "backward"
    progress = f"step {number} of {walking.last_number}: {part}"
    return page(title, [(progress, Group(*lines[: max(2, height - 8)])), ("gradients now", table), (KEYS, Text())])


def _moment(graph: Graph, walking: Walk, number: int) -> tuple[Any, dict[Any, float], int, list[Text]]:
    """The node that a step is about, the gradients it has changed, how many nodes have data then, and it as lines.

    The walk then stands before it.
    """
    if number <= walking.forward_steps:
        walking.seek(0)
        if number == 0:
            return None, {}, 0, [Text("Nothing is computed yet: the leaves have their values.")]
        node = [each for each in graph.order if each._children][number - 1]
        line = Text(f"{number:>4}   ", style=QUIET)
        line.append(f"{graph.name(node)} = {formula_of(graph, node)} = {_long(node.data)}", style="bold")
        return node, {}, graph.place[node] + 1, [line]
    step, place = walking.numbered(number)
    walking.seek(step.index)
    touched = {given.child: given.after for given in step.shown[: place + 1]}
    return None if step.is_seed else step.node, touched, len(graph), step_lines(graph, walking, step, place + 1)
