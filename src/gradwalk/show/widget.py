"""The page inside a notebook, through anywidget: edits of leaves reach Python, and Python's changes reach the page.

Where widgets are not live (a saved notebook, a renderer without scripts) the walk is there as plain tables.
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

import anywidget
import traitlets

from gradwalk.composites import for_engine
from gradwalk.control import ieee
from gradwalk.expression import Expression, parsed
from gradwalk.ops import OPS
from gradwalk.reference import Value as ReferenceValue
from gradwalk.row_ops import COMPOSITES
from gradwalk.show.play import script, start_of, style
from gradwalk.show.program import nodes_of, number
from gradwalk.walk import walk

MOST_STEPS = 200


class Player(anywidget.AnyWidget):
    """A walk in a notebook. `value` is the root, computed anew from the leaves whenever one was edited.

    Change leaves in Python and call `update()`, or give it another Value: `update(loss)`.
    """

    # anywidget reads these two by name
    _esm = script("widget") + "export default module_widget;\n"
    start = traitlets.Dict().tag(sync=True)
    # not "style": widgets have one already, which is a model of its own
    stylesheet = traitlets.Unicode(style()).tag(sync=True)
    height = traitlets.Int(640).tag(sync=True)

    def __init__(self, shown: Any, values: Mapping[str, float] | None = None, **options: Any) -> None:
        self.value, self._nodes, start = _prepared(shown, values)
        super().__init__(start=start, **options)
        self.on_msg(self._received)

    def update(self, shown: Any = None) -> None:
        """Show the leaves' current data, or another Value or expression."""
        if shown is not None:
            self.value, self._nodes, self.start = _prepared(shown, None)
            return
        self._recompute()
        leaves = {str(i): number(node.data) for i, node in enumerate(self._nodes) if not node._children}
        self.send({"kind": "values", "values": leaves})

    def _received(self, _: Any, message: Any, __: Any) -> None:
        """An edit in the page: the leaf's data changes, and `value` is recorded again from the leaves."""
        if not isinstance(message, dict) or message.get("kind") != "edit":
            return
        for place, value in dict(message.get("values", {})).items():
            index = int(place)
            if 0 <= index < len(self._nodes) and not self._nodes[index]._children:
                self._nodes[index].data = float(value)
        self._recompute()

    def _recompute(self) -> None:
        if self.value is not None:
            self.value, self._nodes = recomputed(self.value, self._nodes)

    def _ipython_display_(self) -> None:
        """Two outputs: the live page, and the walk as tables, which is what a saved notebook still shows.

        As two forms of one output they would not do: a notebook without a kernel takes the live one, and shows nothing.
        """
        from IPython import display as notebook

        display: Any = notebook.display
        bundle = self._repr_mimebundle_()
        data, *metadata = bundle if isinstance(bundle, tuple) else (bundle,)
        display(data, raw=True, metadata=metadata[0] if metadata else None)
        if self.value is not None:
            display({"text/html": static_walk(self.value), "text/plain": repr(self.value)}, raw=True)


def _prepared(shown: Any, values: Mapping[str, float] | None) -> tuple[Any, list[Any], dict[str, Any]]:
    """The root (None for the first example), its nodes in the page's order, and what the page begins with."""
    start = start_of(shown, values)
    if isinstance(shown, str | Expression):
        expression = parsed(shown) if isinstance(shown, str) else shown
        shown = expression.evaluate(values or {})
        start = start_of(shown)
    if shown is None:
        return None, [], start
    return shown, nodes_of(shown), start


def recomputed(root: Any, shown: list[Any]) -> tuple[Any, list[Any]]:
    """The graph of `root` recorded again from the leaves' present data, and what each of `shown` became.

    Leaves stay the objects they are. A graph with a node made by hand cannot be computed again and is returned as
    it is.
    """
    order = root._topological_order()
    if any(node._children and node._name not in OPS and node._name not in COMPOSITES for node in order):
        return root, shown
    name = "reference" if isinstance(root, ReferenceValue) else "native"
    new: dict[Any, Any] = {}
    with ieee():
        for node in order:
            if not node._children:
                new[node] = node
                continue
            children = [new[child] for child in node._children]
            made = _applied(name, node, children)
            made.label = node.label
            new[node] = made
    return new[root], [new[node] for node in shown]


def _applied(name: str, node: Any, children: list[Any]) -> Any:
    """The node's operation on other children, recorded under its own name."""
    if node._name in OPS:
        return children[0]._apply(node._name, *children, *node._parameters)
    row = COMPOSITES[node._name]
    function = getattr(for_engine(name), row.called_by)
    if row.name == "take":  # its only child is the entry that was taken
        return function(children, 0)
    length = len(children) // len(row.inputs)
    lists = [children[i * length : (i + 1) * length] for i in range(len(row.inputs))]
    parameters = node._parameters[1:] if row.per_entry else node._parameters
    made = function(*lists, *parameters)
    return made[node._parameters[0]] if row.per_entry else made


# ---------------------------------------------------------------- what is left when nothing is live


def static_walk(root: Any) -> str:
    """The leaves and the steps as two tables: no script, no style sheet, every label escaped."""
    walked = walk(root, fresh=True)
    names = _names(walked.order)
    walked.seek(-1)
    leaves = [node for node in walked.order if not node._children and not node._constant]
    rows = "".join(_row(names[node], f"{node.data:.6g}", f"{walked.grad(node):.6g}") for node in leaves[:MOST_STEPS])
    steps = []
    for step in walked:
        for given in step.contributions:
            local = "" if given.local_grad is None else f"{given.local_grad:.6g} × {given.upstream:.6g} = "
            arithmetic = "1" if step.is_seed else f"{local}{given.product:.6g}"
            steps.append(_row(names[step.node], f"{names[given.child]}.grad += {arithmetic}", f"{given.after:.6g}"))
        if len(steps) >= MOST_STEPS:
            steps.append(_row("…", f"{len(walked):,} steps in all", ""))
            break
    return (
        f"<table><thead><tr><th>leaf</th><th>data</th><th>grad</th></tr></thead><tbody>{rows}</tbody></table>"
        f"<details><summary>the walk, step by step</summary><table><thead><tr><th>node</th><th>step</th><th>sum</th>"
        f"</tr></thead><tbody>{''.join(steps)}</tbody></table></details>"
    )


def _row(*cells: str) -> str:
    return "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"


def _names(order: list[Any]) -> dict[Any, str]:
    return {node: str(node.label) or f"{'v' if node._children else 'x'}{i}" for i, node in enumerate(order)}
