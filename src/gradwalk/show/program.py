"""A recorded graph as the JSON that the page reads: operations by name, leaves' data, labels, scopes, what to fold.

Of a graph that is too large for a page, the part nearest the result is handed on: each node in it has all
that uses it in it too, so its gradient is the whole graph's, to the bit. Nodes below the cut are marked, and so are
those that are used below it too: what is seen of their gradient is a part of a sum.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Any

from gradwalk import engine, reference
from gradwalk.graph import Graph
from gradwalk.ops import OPS
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
    nodes = [_node(node, places, scopes, node in whole, node in partial) for node in kept]
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


def _node(
    node: Any, places: dict[Any, int], scopes: dict[str, int], is_whole: bool, is_partial: bool
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
    if not written.get("children") or "local_grads" in written:  # the page computes the others
        written["data"] = number(node.data)
    return written


def _operation(node: Any, places: dict[Any, int]) -> dict[str, Any]:
    by_hand = is_hand_written(node)
    is_known = not by_hand and (node._name in OPS or node._name in COMPOSITES)
    written: dict[str, Any] = {
        "op": node._name if is_known else str(node._op),
        "children": [places[child] for child in node._children],
    }
    if is_known and node._parameters:
        written["parameters"] = [number(parameter) for parameter in node._parameters]
    if by_hand:
        written["children"] = [places[child] for child in dict.fromkeys(node._children)]
        written["local_grads"] = [number(grad) for grad in _observed(node)]
    elif not is_known:
        written["local_grads"] = [number(grad) for grad in node._local_grads]
    return written


def _observed(node: Any) -> list[float]:
    """The local gradients of a node whose `_backward` was written by hand: what it adds for a gradient of 1."""
    children = list(dict.fromkeys(node._children))
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
