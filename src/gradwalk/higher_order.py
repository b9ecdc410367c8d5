"""backward(create_graph=True): the same rule, with the rows of the table run on Values instead of floats.

The gradients come out as Values with a graph of their own, which can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradwalk import engine
from gradwalk.composites import COMPOSITES
from gradwalk.errors import ieee
from gradwalk.ops import OPS


def gradient_values(root: Any) -> dict[Any, Any]:
    """The derivative of `root` by each leaf it depends on, as Values.

    >>> x = engine.Value(3.0)
    >>> gradient_values(x**3)[x].data
    27.0
    """
    order = engine.topological_order(root)
    gradients: dict[Any, Any] = {root: type(root)(1.0)}
    with ieee():  # a branch that is not taken may be outside its domain
        for node in reversed(order):
            if not node._children:
                continue
            gradient = gradients.pop(node)
            for child, local_grad in zip(node._children, local_grads_of(node), strict=True):
                contribution = gradient if _is_one(local_grad) else local_grad * gradient
                gradients[child] = gradients[child] + contribution if child in gradients else contribution
    return {leaf: gradient for leaf, gradient in gradients.items() if not leaf._constant}


def _is_one(local_grad: Any) -> bool:
    return isinstance(local_grad, float) and local_grad == 1.0


def local_grads_of(node: Any) -> Any:
    """The row's local gradients at the node, as Values (or floats where they do not depend on anything)."""
    name = node._name
    local_grads: Sequence[Any]
    if node._hand_written is not None:
        name = ""  # whatever made the node, its derivative is what was written by hand
    if name in OPS:
        local_grads = OPS[name].local_grads(*node._children, *node._parameters, node)
    elif name in COMPOSITES:
        local_grads = COMPOSITES[name].local_grads(list(node._children), *node._parameters, node)
    else:
        raise TypeError(
            f"backward: expected an operation of the table on the way, got a node made by hand as {node._op!r}; "
            "its local gradients are plain numbers, whose own derivative is not known to create_graph"
        )
    for now, then in zip(local_grads, node._local_grads, strict=True):
        number = now if isinstance(now, float) else now.data
        if number != then and (number == number or then == then):
            raise ValueError(
                f"backward: expected the numbers of the forward pass under create_graph, got changed ones: the local "
                f"gradient of {node._op!r} was {then!r} and is now {number!r}; run the forward pass again"
            )
    return local_grads


def _backward_with_graph(root: Any) -> None:
    gradients = gradient_values(root)
    before = {leaf: leaf.grad for leaf in gradients}
    root.backward()  # sets the gradients on the way, and checks that the walk is possible
    for leaf, gradient in gradients.items():
        earlier = before[leaf]
        leaf.grad = gradient if isinstance(earlier, float) and earlier == 0.0 else gradient + earlier


for _module in engine.available():
    _module.Value._backward_with_graph = _backward_with_graph
