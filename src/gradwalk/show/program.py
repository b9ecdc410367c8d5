"""A recorded graph as the JSON that the page reads: operations by name, leaves' data, labels, scopes, what to fold.

Of a graph that is too large for a page, the part nearest the result is handed on: each node in it has all
that uses it in it too, so its gradient is the whole graph's, to the bit. Nodes below the cut are marked, and so are
those that are used below it too: what is seen of their gradient is a part of a sum.

The page computes what it shows, so that leaves can be edited; but a browser's exp has another last digit than C's at
times, and where numbers cancel, last digits are all that is left. So what comes of such functions is handed on, too.
"""

from __future__ import annotations

import math
from collections import deque
from functools import lru_cache
from typing import Any

from gradwalk import engine, reference
from gradwalk.formula import calls_library, variable
from gradwalk.graph import Graph
from gradwalk.ops import OPS
from gradwalk.passes import THE_PASS
from gradwalk.row_ops import COMPOSITES
from gradwalk.scopes import path_of
from gradwalk.walk import is_hand_written

MOST_NODES = 100_000
MOST_UNFOLDED = 120  # cards; the page shows what is more folded up by scopes and repetitions

_VALUES = (engine.Value, reference.Value)


def program_of(root: Any, most: int = MOST_NODES) -> dict[str, Any]:
    """The graph below `root`: at most `most` nodes with their operations, and leaves where it was cut."""
    if not isinstance(root, _VALUES):
        raise TypeError(f"play: expected a Value or an expression, got {type(root).__name__}")
    order = root._topological_order()
    whole = set(order) if len(order) <= most else _nearest(order, most)
    kept = _order_within(root, whole)
    places = {node: place for place, node in enumerate(kept)}
    partial = {child for node in order if node not in whole for child in node._children}
    scopes: dict[str, int] = {}
    computed = _computed(kept, whole)
    nodes = [_node(node, places, scopes, computed.get(node), node in whole, node in partial) for node in kept]
    program: dict[str, Any] = {"nodes": nodes, "root": places[root], "scopes": list(scopes)}
    if len(whole) < len(order):
        program["total"] = len(order)
    elif len(order) > MOST_UNFOLDED:
        program |= _folded(root)
    return program


def _folded(root: Any) -> dict[str, Any]:
    """The parts there are, and for each node the number of the one it is in."""
    numbers: dict[tuple[str, ...], int] = {}
    folds = [numbers.setdefault(path, len(numbers)) for path in Graph(root).folds()]
    return {"parts": [list(path) for path in numbers], "folds": folds}


def nodes_of(root: Any, most: int = MOST_NODES) -> list[Any]:
    """The nodes that the page shows, in the order it numbers them in."""
    order = root._topological_order()
    return order if len(order) <= most else _order_within(root, _nearest(order, most))


def _order_within(root: Any, whole: set[Any]) -> list[Any]:
    """The engine's order, left-first and depth-first, of a graph that ends where `whole` does."""
    order: list[Any] = []
    seen = {root}
    path = [(root, iter(root._children))]
    while path:
        node, children = path[-1]
        for child in children:
            if child not in seen:
                seen.add(child)
                path.append((child, iter(child._children if child in whole else ())))
                break
        else:
            order.append(node)
            path.pop()
    return order


def _nearest(order: list[Any], most: int) -> set[Any]:
    """The `most` nodes nearest the root, each only after all that uses it."""
    waiting: dict[Any, int] = dict.fromkeys(order, 0)
    for node in order:
        for child in node._children:
            waiting[child] += 1
    ready: deque[Any] = deque([order[-1]])
    found: set[Any] = set()
    while ready and len(found) < most:
        node = ready.popleft()
        found.add(node)
        for child in node._children:
            waiting[child] -= 1
            if not waiting[child]:
                ready.append(child)
    return found


def _computed(kept: list[Any], whole: set[Any]) -> dict[Any, list[float]]:
    """Data and local gradients of what calls a library, from the leaves' data as they are now."""
    data: dict[Any, float] = {}
    found: dict[Any, list[float]] = {}
    for node in kept:
        name, parameters = node._name, node._parameters
        if not node._children or node not in whole or not _is_known(node):
            data[node] = node.data
            continue
        numbers = [data[child] for child in node._children]
        if name in OPS:
            data[node] = OPS[name].forward(*numbers, *parameters)
            if _calls_library(name, parameters):
                found[node] = [data[node], *OPS[name].local_grads(*numbers, *parameters, data[node])]
        else:
            row = COMPOSITES[name]
            data[node] = row.on(numbers, *parameters)
            if calls_library(row.output, *row.slopes):
                found[node] = [data[node], *row.local_grads_on(numbers, *parameters, data[node])]
    return found


@lru_cache
def _calls_library(name: str, parameters: tuple[float, ...]) -> bool:
    """Whether an operation does with these parameters: a square is a product."""
    op = OPS[name]
    names = [*map(variable, op.inputs), *parameters]
    return calls_library(op.forward(*names), *op.local_grads(*names, variable("out")))


def _is_known(node: Any) -> bool:
    return (node._name in OPS or node._name in COMPOSITES) and not is_hand_written(node)


def _node(
    node: Any,
    places: dict[Any, int],
    scopes: dict[str, int],
    computed: list[float] | None,
    is_whole: bool,
    is_partial: bool,
) -> dict[str, Any]:
    written: dict[str, Any] = {}
    if node.label:
        written["label"] = str(node.label)
    scope = "/".join(path_of(node))
    if scope:
        written["scope"] = scopes.setdefault(scope, len(scopes))
    if is_partial and not node._constant:
        written["partial"] = True
    if node._children and not is_whole:
        written["cut"] = True
    elif node._children:
        written |= _operation(node, places)
    elif node._constant:
        written["constant"] = True
    if computed:
        written["local_grads"] = list(map(number, computed[1:]))
    if not written.get("children") or "local_grads" in written:  # the page computes the others
        written["data"] = number(computed[0] if computed else node.data)
    return written


def _operation(node: Any, places: dict[Any, int]) -> dict[str, Any]:
    children = list(node._children)
    if _is_known(node):
        written: dict[str, Any] = {"op": node._name}
        if node._parameters:
            written["parameters"] = list(map(number, node._parameters))
    elif is_hand_written(node):
        children = list(dict.fromkeys(children))
        written = {"spelled": str(node._op), "local_grads": list(map(number, _observed(node)))}
    else:
        written = {"spelled": str(node._op), "local_grads": list(map(number, node._local_grads))}
    return written | {"children": [places[child] for child in children]}


def _observed(node: Any) -> list[float]:
    """The local gradients of a node whose `_backward` was written by hand: what it adds for a gradient of 1."""
    children = list(dict.fromkeys(node._children))
    with engine.taking_turns(), THE_PASS.lock:
        before = [(each, each.grad) for each in (node, *children)]
        try:
            for child in children:
                child.grad = 0.0
            node.grad = 1.0
            node._backward()
            return [float(child.grad) for child in children]
        finally:
            for each, grad in before:
                each.grad = grad


def number(x: float) -> float | str:
    """A number as JSON carries it: inf and nan as strings."""
    return float(x) if math.isfinite(x) else "nan" if math.isnan(x) else "inf" if x > 0 else "-inf"
