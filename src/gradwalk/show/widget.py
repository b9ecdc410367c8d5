"""The page inside a notebook, through anywidget: edits of leaves reach Python, and Python's changes reach the page.

Where widgets are not live (a saved notebook, nbconvert) the same page is there as a copy that needs no kernel, and
where even that is stripped, its picture.
"""

from __future__ import annotations

import html
import math
import sys
import weakref
from collections.abc import Mapping
from typing import Any, ClassVar
from uuid import uuid4

import anywidget
import traitlets

from gradwalk.composites import for_engine
from gradwalk.control import ieee
from gradwalk.expression import Expression, parsed
from gradwalk.ops import OPS
from gradwalk.reference import Value as ReferenceValue
from gradwalk.row_ops import COMPOSITES
from gradwalk.show.notebook import mimebundle
from gradwalk.show.own_python import OwnPythonError, recorded_source
from gradwalk.show.play import page, script, start_of, style
from gradwalk.show.program import nodes_of, number


class Player(anywidget.AnyWidget):
    """A walk in a notebook. `value` is the root, computed anew from the leaves whenever one was edited.

    An edit in the page sets the leaf's data here; what was recorded before keeps its numbers, as ever. Leaves that a
    cell changes are shown when it has run, or at once by `update()`; `update(loss)` shows another Value.
    """

    # anywidget reads these two by name
    _esm = script("widget") + "export default module_widget;\n"
    start = traitlets.Dict().tag(sync=True)
    values = traitlets.Dict().tag(sync=True)  # what differs from the start, by the leaf's number in the page
    # not "style": widgets have one already, which is a model of its own
    stylesheet = traitlets.Unicode(style()).tag(sync=True)
    height = traitlets.Int(640).tag(sync=True)
    copy = traitlets.Unicode().tag(sync=True)  # the class of the copy: -live on the whole page hides it

    _all: ClassVar[weakref.WeakSet[Player]] = weakref.WeakSet()

    def __init__(self, shown: Any, values: Mapping[str, float] | None = None, **options: Any) -> None:
        self._copies: list[Any] = []
        self._nodes: list[Any] = []
        self.value, nodes, start = _prepared(shown, values)
        super().__init__(start=start, copy=f"gradwalk-copy-{uuid4().hex[:12]}", **options)
        self._nodes = nodes
        self.on_msg(self._asked)
        _follow_cells()
        Player._all.add(self)

    def update(self, shown: Any = None) -> None:
        """Show the leaves' current data, or another Value or expression."""
        if shown is None:
            self._pull()
        else:
            self._show(*_prepared(shown, None))

    def _show(self, value: Any, nodes: list[Any], start: dict[str, Any]) -> None:
        self._nodes = []
        self.values = {}
        self.value, self._nodes, self.start = value, nodes, start
        self._renew_copies()

    def _asked(self, _: Any, content: Any, __: Any) -> None:
        """A function typed into the page: it is run here, with what the notebook knows, and its graph is shown."""
        source = str(content.get("python", ""))
        try:
            value, called = recorded_source(source, _users_names())
        except OwnPythonError as error:
            self.send({"error": str(error)})
            return
        value, nodes, start = _prepared(value, None)
        self._show(value, nodes, {"program": {**start["program"], "title": called}, "source": source})

    @traitlets.observe("values")
    def _edited(self, change: Any) -> None:
        """An edit in the page: the leaf's data changes, and `value` is recorded again from the leaves."""
        leaves = dict(self._leaves())
        for place, value in dict(change["new"]).items():
            known = _number(value)
            if str(place) in leaves and known is not None and not _same(leaves[str(place)].data, known):
                leaves[str(place)].data = known
        self._recompute()
        self._renew_copies()
        for other in list(Player._all):
            if other is not self:
                other._pull()

    def _leaves(self) -> list[tuple[str, Any]]:
        return [(str(i), node) for i, node in enumerate(self._nodes) if not node._children and not node._constant]

    def _pull(self) -> None:
        """Let the page have what the leaves are now; nothing is sent if it has."""
        written = self.start.get("program", {}).get("nodes", [])
        news = {}
        for place, leaf in self._leaves():
            shown = _number(self.values.get(place, written[int(place)].get("data")))
            if shown is None or not _same(shown, leaf.data):
                news[place] = number(leaf.data)
        if news:
            self.values = self.values | news

    def _recompute(self) -> None:
        if self.value is not None and self._nodes:
            self.value, self._nodes = recomputed(self.value, self._nodes)

    # ---------------------------------------------------------------- what a notebook shows

    def _ipython_display_(self) -> None:
        """Two outputs: the live page, and a copy of it that needs no kernel, which a live page hides.

        As two forms of one output they would not do: without a kernel a notebook takes the live one, and shows none.
        """
        from IPython import display as notebook

        display: Any = notebook.display
        bundle = self._repr_mimebundle_()
        data, *metadata = bundle if isinstance(bundle, tuple) else (bundle,)
        live = {**(data or {}), "text/plain": ""}  # no repr where widgets are not known
        display(live, raw=True, metadata=metadata[0] if metadata else None)
        self._copies.append(display(self._copy(), raw=True, display_id=True))

    def _renew_copies(self) -> None:
        for handle in self._copies:
            if handle is not None:
                handle.update(self._copy(), raw=True)

    def _copy(self) -> dict[str, str]:
        """The whole page in a frame; its picture, for where frames are stripped; its text."""
        shown = self.value
        drawn = {"text/plain": "gradwalk"} if shown is None else mimebundle(shown)
        framed = (
            f'<div class="{self.copy}">'
            f"<style>.{self.copy} iframe ~ img, .{self.copy}-live .{self.copy}, "
            # without a kernel the live page, the output before this one, is a notebook's apology for not having it
            f":root:not(.{self.copy}-live) .jp-OutputArea-child:has(+ .jp-OutputArea-child .{self.copy})"
            " { display: none }</style>"
            f'<iframe title="gradwalk" sandbox="allow-scripts allow-downloads" style="width: 100%; border: 0" '
            f'height="{self.height}" srcdoc="{html.escape(page(shown))}"></iframe>{drawn.get("text/html", "")}</div>'
        )
        return drawn | {"text/html": framed}


def _shell() -> Any:
    """What runs the cells of the notebook; None where there is none."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython else None


def _users_names() -> dict[str, Any]:
    """What the cells of the notebook have defined."""
    shell = _shell()
    return {} if shell is None else dict(shell.user_ns)


def _follow_cells() -> None:
    """From now on, whatever a cell does to leaves is in every widget when it has run."""
    shell = _shell()
    if shell is not None and _after_cell not in shell.events.callbacks["post_run_cell"]:
        shell.events.register("post_run_cell", _after_cell)


def _after_cell(_: Any) -> None:
    for player in list(Player._all):
        player.update()


def _number(given: Any) -> float | None:
    """What the page sent as a number; None where it is none."""
    try:
        return float(given)
    except (TypeError, ValueError):
        return None


def _same(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))


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
