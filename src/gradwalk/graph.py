"""A read-only view of a recorded graph: order, depth, counts, scopes; folded up, cut down, and exported.

`Graph(root)` sees every node; its `collapse`, `neighbourhood` and `overview` give a `GraphView`, in which an item may
stand for many nodes. A GraphView exports itself; pictures are made from it in `show/dot.py`.
"""

from __future__ import annotations

import importlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradwalk import engine
from gradwalk.cached_property import cached_property
from gradwalk.interface import number_of
from gradwalk.ops import OPS
from gradwalk.row_ops import COMPOSITES
from gradwalk.scopes import path_of

Path = tuple[str, ...]


@dataclass
class Scope:
    """A named part of the program: how many nodes were made in it, parts of its own included, and those parts."""

    name: str
    path: Path
    size: int = 0
    parts: dict[str, Scope] = field(default_factory=dict)


class Graph:
    """Every node that `root` was computed from, by its place in the order: children before parents.

    >>> from gradwalk import Value
    >>> a, b = Value(2.0, label="a"), Value(-3.0, label="b")
    >>> graph = Graph((a * b + a).relu())
    >>> len(graph), graph.depth, dict(graph.counts)
    (5, 3, {'leaf': 2, '*': 1, '+': 1, 'ReLU': 1})
    >>> graph.names
    ['a', 'b', 'v1', 'v2', 'v3']
    """

    def __init__(self, root: Any) -> None:
        self.root = root
        self.order: list[Any] = engine.topological_order(root)
        self.place: dict[Any, int] = {node: i for i, node in enumerate(self.order)}
        place = self.place
        self.children: list[list[int]] = [[place[child] for child in node._children] for node in self.order]

    def __len__(self) -> int:
        return len(self.order)

    @cached_property
    def parents(self) -> list[list[int]]:
        """For each node the nodes computed from it; twice, if twice."""
        parents: list[list[int]] = [[] for _ in self.order]
        for i, children in enumerate(self.children):
            for child in children:
                parents[child].append(i)
        return parents

    @cached_property
    def depths(self) -> list[int]:
        """For each node the longest way down to a leaf."""
        depths: list[int] = []
        for children in self.children:
            depths.append(max((depths[child] + 1 for child in children), default=0))
        return depths

    @property
    def depth(self) -> int:
        return self.depths[-1]

    @cached_property
    def counts(self) -> Counter[str]:
        """How many nodes there are of each operation, as it is written; 'leaf' and 'constant' for the others."""
        return Counter(map(operation_of, self.order))

    @cached_property
    def paths(self) -> list[Path]:
        return [path_of(node) for node in self.order]

    @cached_property
    def scopes(self) -> Scope:
        """The tree of scopes; its own name is empty, and its size that of the graph."""
        top = Scope("", ())
        for path, size in Counter(self.paths).items():
            scope = top
            scope.size += size
            for i, name in enumerate(path):
                scope = scope.parts.setdefault(name, Scope(name, path[: i + 1]))
                scope.size += size
        return top

    @cached_property
    def names(self) -> list[str]:
        """A name for each node: its label, a constant's number, else v1, v2, … or, for a leaf, x1, x2, …

        A label that is a long path, layers.0.neurons.1.w.0, is l0.n1.w0 here, if nothing else would be.
        """
        return _names(self)

    def name(self, node: Any) -> str:
        return self.names[self.place[node]]

    # ---------------------------------------------------------------- views

    def view(self) -> GraphView:
        """Every node as an item of its own."""
        return self._grouped(range(len(self)), lambda _: ("node", ()))

    def collapse(self, scopes: bool | int | Iterable[Path] = True, repeated: bool = False) -> GraphView:
        """One item for each scope, and one for what is repeated.

        `scopes` is how many levels of scopes stay in sight (True: one), or the paths to fold. What is `repeated` has
        the same shape and the same use; sums count as the same whatever the number of their terms.
        """
        fold = self._scope_groups(scopes)
        classes = self._repetitions(fold) if repeated else list(range(len(self)))
        keys: list[Any] = [classes[i] if path is None else path for i, path in enumerate(fold)]

        def describe(i: int) -> tuple[str, Path]:
            path = fold[i]
            return ("scope", path) if path is not None else ("repeated", ()) if repeated else ("node", ())

        return self._grouped(keys, describe)

    def neighbourhood(self, node: Any, radius: int = 2, most: int | None = None) -> GraphView:
        """The nodes at most `radius` edges away, in either direction; `most` keeps only the nearest."""
        if node not in self.place:
            raise ValueError(f"neighbourhood: expected a node of this graph, got {node!r}")
        return self.view().neighbourhood(self.place[node], radius, most)

    def overview(self, most: int = 300) -> GraphView:
        """What can be shown: everything, or scopes folded, or repetitions too, or else what is near the root."""
        if len(self) <= most:
            return self.view()
        deepest = max(map(len, self.paths))
        for levels in range(deepest, 0, -1):
            view = self.collapse(levels)
            if len(view.items) <= most:
                return view
        for levels in range(deepest, -1, -1):
            view = self.collapse(levels or False, repeated=True)
            if len(view.items) <= most:
                return view
        return view.neighbourhood(len(view.items) - 1, len(self), most)

    def folds(self) -> list[Path]:
        """For each node the parts it belongs to, outermost first: its scopes, then what is repeated there, if it is.

        A constant goes with what it is used by. The root belongs to none, so that it is always in sight.
        """
        repetitions = self.collapse(False, repeated=True)
        homes = self._scope_groups(max(map(len, self.paths)))
        parts: list[Path] = [homes[i] or () for i in range(len(self))]
        for k, item in enumerate(repetitions.items):
            if item.kind == "repeated":
                title = f"{repetitions.title(k)} (from {item.nodes[0]})"  # no two are called the same
                for i in item.nodes:
                    parts[i] = (*parts[i], title)
        for i, node in enumerate(self.order):
            if node._constant and self.parents[i]:
                parts[i] = parts[self.parents[i][0]]
        parts[-1] = ()
        return parts

    def _scope_groups(self, scopes: bool | int | Iterable[Path]) -> list[Path | None]:
        """For each node the path it is folded into; leaves used in only one such place go with it, the root stays."""
        if scopes is False:
            return [None] * len(self)
        if isinstance(scopes, int):
            levels = int(scopes)
            groups = [path[:levels] if path else None for path in self.paths]
        else:
            chosen = sorted({tuple(path) for path in scopes}, key=len)
            groups = [next((c for c in chosen if path[: len(c)] == c), None) for path in self.paths]
        groups[-1] = None
        for i in range(len(self)):
            if not self.children[i] and groups[i] is None and self.parents[i]:
                users = {groups[parent] for parent in self.parents[i]}
                groups[i] = users.pop() if len(users) == 1 else None
        return groups

    def _repetitions(self, fold: list[Path | None]) -> list[Any]:
        """A class for each node: the same shape below it, and used by the same classes above it."""
        heads = self._sum_heads()
        terms: list[set[int]] = [set() for _ in self.order]
        shapes: list[int] = []
        known: dict[Any, int] = {}
        for i, node in enumerate(self.order):
            below = [fold[c] or shapes[c] for c in self.children[i]]
            name = node._name or node._op
            if not self.children[i]:
                key: Any = ("constant",) if node._constant else ("leaf", re.sub(r"\d+", "0", node.label), self.paths[i])
            elif name in ("add", "+") or name in COMPOSITES:
                terms[i].update(
                    known.setdefault(("term", t), len(known)) for c, t in zip(self.children[i], below, strict=True)
                    if heads[c] != heads[i]
                )  # fmt: skip
                for child in self.children[i]:
                    if heads[child] == heads[i]:
                        terms[i] |= terms[child]
                key = (name, frozenset(terms[i]), self.paths[i])
            else:
                key = (name, tuple(below), node._parameters, self.paths[i])
            shapes.append(known.setdefault(key, len(known)))
        classes: list[Any] = [None] * len(self)
        seen: dict[Any, int] = {}
        for i in range(len(self) - 1, -1, -1):
            if heads[i] != i:
                classes[i] = classes[heads[i]]
                continue
            uses = frozenset(fold[parent] or classes[parent] for parent in self.parents[i])
            classes[i] = seen.setdefault((shapes[i], uses), i)
        return classes

    def _sum_heads(self) -> list[int]:
        """For each node itself, but for the partial sums of a + b + c + … the last of them."""
        heads = list(range(len(self)))
        for i in range(len(self) - 1, -1, -1):
            parents = self.parents[i]
            if self.order[i]._name == "add" and len(parents) == 1 and self.order[parents[0]]._name == "add":
                heads[i] = heads[parents[0]]
        return heads

    def _grouped(self, keys: Sequence[Any], describe: Callable[[int], tuple[str, Path]]) -> GraphView:
        """Items by key, in the order of their last nodes: children come before parents wherever there is no cycle."""
        members: dict[Any, list[int]] = {}
        for i, key in enumerate(keys):
            members.setdefault(key, []).append(i)
        items = []
        for nodes in sorted(members.values(), key=lambda nodes: nodes[-1]):
            kind, path = describe(nodes[-1])
            items.append(Item(nodes, "node" if len(nodes) == 1 and kind != "scope" else kind, path))
        return GraphView(self, items)


def operation_of(node: Any) -> str:
    """What made a node, as it is written: `*`, `ReLU`; 'leaf' or 'constant' where nothing did."""
    return (node._op or "?") if node._children else "constant" if node._constant else "leaf"


def glyph_of(node: Any) -> str:
    """What stands for a node's operation in pictures, as on the page's cards (page/describe.js): `×`, `relu`, `x²`."""
    row = OPS.get(node._name) or COMPOSITES.get(node._name)
    if not node._children or row is None:
        return operation_of(node)
    power = superscript(node._parameters[0]) if row.name == "pow_number" else ""
    return f"x{power}" if power else row.glyph or row.name


def superscript(x: float) -> str:
    """A short whole number, raised; nothing for others.

    >>> superscript(2.0), superscript(-10.0), superscript(0.5)
    ('²', '⁻¹⁰', '')
    """
    return str(int(x)).translate(_RAISED) if abs(x) < 100.0 and x == int(x) else ""


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


# ---------------------------------------------------------------- views


@dataclass(frozen=True)
class Item:
    """One node, or many that are shown as one: a scope, or the repetitions of one structure."""

    nodes: list[int]
    kind: str  # "node", "scope", "repeated"
    path: Path = ()


@dataclass(frozen=True)
class Edge:
    """From a child to what was computed from it; `local_grad` is there where it stands for one edge only.

    Nor is it there for a constant, which gets no gradient.
    """

    child: int
    parent: int
    count: int
    local_grad: float | None


class GraphView:
    """Items and the edges between them; what is not in any item is `hidden`."""

    def __init__(self, graph: Graph, items: list[Item]) -> None:
        self.graph, self.items = graph, items
        self.item_of = {i: k for k, item in enumerate(items) for i in item.nodes}
        self.hidden = len(graph) - len(self.item_of)

    @cached_property
    def edges(self) -> list[Edge]:
        counts: Counter[tuple[int, int, float | None]] = Counter()
        single = [item.kind == "node" for item in self.items]
        for parent, above in self.item_of.items():
            node = self.graph.order[parent]
            local_grads: Sequence[float | None] = node._local_grads or [None] * len(node._children)
            for child, local_grad in zip(self.graph.children[parent], local_grads, strict=True):
                below = self.item_of.get(child)
                if below is not None and below != above:
                    is_alone = single[above] and single[below] and not self.graph.order[child]._constant
                    counts[below, above, local_grad if is_alone else None] += 1
        return [Edge(below, above, count, grad) for (below, above, grad), count in counts.items()]

    def cut_edges(self, item: int) -> int:
        """How many edges lead from an item to what is hidden."""
        graph = self.graph
        around = (other for i in self.items[item].nodes for other in (*graph.children[i], *graph.parents[i]))
        return sum(other not in self.item_of for other in around)

    def neighbourhood(self, centre: int, radius: int = 2, most: int | None = None) -> GraphView:
        """The items at most `radius` edges from the item number `centre`."""
        around: list[list[int]] = [[] for _ in self.items]
        for edge in self.edges:
            around[edge.child].append(edge.parent)
            around[edge.parent].append(edge.child)
        distance, queue = {centre: 0}, [centre]
        for item in queue:  # it grows on the way
            if most is not None and len(queue) >= most:
                break
            for other in around[item] if distance[item] < radius else ():
                if other not in distance:
                    distance[other] = distance[item] + 1
                    queue.append(other)
        return GraphView(self.graph, [self.items[k] for k in sorted(queue[:most])])

    def title(self, k: int) -> str:
        """What an item is called: a node's name, a scope's path, or the operation that is repeated and how often."""
        item = self.items[k]
        if item.kind == "node":
            return self.graph.names[item.nodes[-1]]
        if item.kind == "scope":
            return "/".join(item.path)
        return f"{self.glyph(k)} ×{len(item.nodes):,}"

    def operation(self, k: int) -> str:
        return operation_of(self.graph.order[self.items[k].nodes[-1]])

    def glyph(self, k: int) -> str:
        return glyph_of(self.graph.order[self.items[k].nodes[-1]])

    # ---------------------------------------------------------------- export

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers, for JSON; a number that JSON lacks (nan, infinity) is a string."""
        items = []
        for k, item in enumerate(self.items):
            entry: dict[str, Any] = {"id": k, "kind": item.kind, "name": self.title(k), "size": len(item.nodes)}
            if item.kind == "node":
                node = self.graph.order[item.nodes[0]]
                entry |= {
                    "op": operation_of(node), "label": node.label, "data": _json_number(node.data),
                    "grad": _json_number(number_of(node.grad)), "scope": list(path_of(node)),
                }  # fmt: skip
            items.append(entry)
        edges = [
            {"child": e.child, "parent": e.parent, "count": e.count, "local_grad": _json_number(e.local_grad)}
            for e in self.edges
        ]
        return {"items": items, "edges": edges, "nodes": len(self.graph), "hidden": self.hidden}

    def to_json(self) -> str:
        """JSON that may also stand inside a <script> element: < > & are written as escapes."""
        text = json.dumps(self.to_dict(), allow_nan=False)
        return re.sub("[<>&\u2028\u2029]", lambda found: f"\\u{ord(found[0]):04x}", text)

    def to_dot(self) -> str:
        """Plain Graphviz source, child → parent, local gradients on the edges."""
        lines = ["digraph gradwalk {", "  rankdir=LR;", '  node [shape=box, style=rounded, fontname="Helvetica"];']
        lines += [f"  n{k} [label={dot_string(self._caption(k))}];" for k in range(len(self.items))]
        lines += [f"  n{e.child} -> n{e.parent} [label={dot_string(edge_caption(e))}];" for e in self.edges]
        return "\n".join([*lines, "}", ""])

    def to_mermaid(self) -> str:
        """A Mermaid flowchart."""
        lines = ["flowchart LR"]
        lines += [f'  n{k}["{_mermaid_text(self._caption(k))}"]' for k in range(len(self.items))]
        lines += [f'  n{e.child} -->|"{_mermaid_text(edge_caption(e))}"| n{e.parent}' for e in self.edges]
        return "\n".join([*lines, ""])

    def to_networkx(self) -> Any:
        """A networkx.MultiDiGraph with the entries of `to_dict` as attributes, and data as floats."""
        try:
            networkx: Any = importlib.import_module("networkx")
        except ImportError as error:
            raise ImportError("to_networkx: expected networkx to be installed; pip install networkx") from error
        made = networkx.MultiDiGraph()
        content = self.to_dict()
        for entry in content["items"]:
            made.add_node(entry.pop("id"), **entry)
        for edge in self.edges:
            made.add_edge(edge.child, edge.parent, count=edge.count, local_grad=edge.local_grad)
        for k, item in enumerate(self.items):
            if item.kind == "node":
                node = self.graph.order[item.nodes[0]]
                made.nodes[k].update(data=node.data, grad=number_of(node.grad))
        return made

    def _caption(self, k: int) -> str:
        item = self.items[k]
        if item.kind != "node":
            return self.title(k) + (f"\n{len(item.nodes):,} nodes" if item.kind == "scope" else "")
        node = self.graph.order[item.nodes[0]]
        op = f" [{node._op}]" if node._children else ""
        return f"{self.title(k)}{op}\ndata {short_number(node.data)}\ngrad {short_number(number_of(node.grad))}"


def edge_caption(edge: Edge) -> str:
    grad = "" if edge.local_grad is None else short_number(edge.local_grad)
    return grad + (f" ×{edge.count:,}" if edge.count > 1 else "")


def short_number(x: float) -> str:
    """A float: all of its digits if they fit into nine characters, else six; without a zero at its end.

    >>> short_number(0.1), short_number(2.0), short_number(1 / 3), short_number(-1e100 / 3)
    ('0.1', '2', '0.333333', '-3.33333e+99')
    """
    text = repr(x).removesuffix(".0")
    return text if len(text) <= 9 else f"{x:.6g}"


def dot_string(text: str) -> str:
    """A quoted string of the DOT language, in which a backslash would start an escape and & an entity."""
    escaped = shown_text(text).replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def shown_text(text: str) -> str:
    """A label as text that any output can hold: lines stay, other control characters become a mark."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def _mermaid_text(text: str) -> str:
    """Everything but letters, digits and a few signs as a character entity, which Mermaid always takes as text."""
    return "<br/>".join(re.sub(r"[^\w .,]", lambda c: f"#{ord(c[0])};", line) for line in shown_text(text).split("\n"))


def _json_number(x: float | None) -> float | str | None:
    return x if x is None or math.isfinite(x) else repr(x)


# ---------------------------------------------------------------- names


def _names(graph: Graph) -> list[str]:
    """As the page names them (page/graph.js), so that a thing has one name wherever it is shown."""
    labels = [shown_text(node.label).replace("\n", " ") for node in graph.order]
    short = {label: _abbreviated(label) for label in labels}
    meant = Counter(short.values())
    labels = [short[label] if meant[short[label]] == 1 else label for label in labels]
    taken: set[str] = set()
    reserved, counts = set(labels), Counter[str]()
    names: list[str] = []
    for node, label in zip(graph.order, labels, strict=True):
        name = label
        if node._constant:
            names.append(label or short_number(node.data))
            continue
        if not label:
            letter = "v" if node._children else "x"
            while not name or name in reserved:
                counts[letter] += 1
                name = f"{letter}{counts[letter]}"
        elif label in taken:
            while name in taken or name in reserved:
                counts[label] += 1
                name = f"{label}#{counts[label] + 1}"
        taken.add(name)
        names.append(name)
    return names


def _abbreviated(label: str) -> str:
    return label if len(label) <= 14 else re.sub(r"([A-Za-z_])[A-Za-z_]*\.(?=[0-9])", r"\1", label)
