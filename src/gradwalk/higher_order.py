"""Derivatives that are Values: the same chain rule, with the rows of the table run on Values instead of floats.

Backward it is what backward(create_graph=True) does; its gradients can be differentiated again. Forward it tells how
fast every node moves if the inputs do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gradwalk import engine
from gradwalk.composites import ON_VALUES
from gradwalk.control import changed, is_traced
from gradwalk.modes import current
from gradwalk.ops import OPS
from gradwalk.passes import THE_PASS
from gradwalk.reference import CHOOSING, contribution
from gradwalk.row_ops import COMPOSITES
from gradwalk.structure import is_value

Rule = Callable[[Any], Sequence[Any]]  # a node's local gradients: floats, or Values where they depend on something


class NoGraphError(TypeError):
    """A node made by hand is on the way: its local gradients are numbers, and have no graph."""


def gradient_values(root: Any) -> dict[Any, Any]:
    """The derivative of `root` by each leaf it depends on, as Values.

    >>> x = engine.Value(3.0)
    >>> gradient_values(x**3)[x].data
    27.0
    """
    order = engine.topological_order(root)
    leaves = [node for node in order if not node._children and not node._constant]
    gradients = pulled_back(order, {root: 1.0}, set(leaves), local_grads_of)
    found = ((leaf, gradients.get(leaf, 0.0)) for leaf in leaves)
    return {leaf: type(root)(number) if isinstance(number, float) else number for leaf, number in found}


def pulled_back(order: Sequence[Any], gradients: dict[Any, Any], by: set[Any], rule: Rule) -> dict[Any, Any]:
    """From the gradients of some nodes to those of the nodes `by`, which they depend on.

    Gradients are Values, or floats where they depend on nothing. A node that is not there has the gradient 0.
    """
    depending = set(by)
    for node in order:
        if not depending.isdisjoint(node._children):
            depending.add(node)
    with _rows_on_values():
        for node in reversed(order):
            if node in by or node not in depending or node not in gradients:
                continue
            gradient = gradients.pop(node)
            for child, local_grad in zip(node._children, rule(node), strict=True):
                if child in depending and not _is_nothing(local_grad, gradient, node):
                    part = chained(gradient, local_grad)
                    gradients[child] = gradients[child] + part if child in gradients else part
    return gradients


def pushed_forward(order: Iterable[Any], tangents: dict[Any, Any], rule: Rule) -> dict[Any, Any]:
    """From the tangents of some nodes to those of all nodes of the order that depend on them.

    A tangent is a number, a Value, or whatever can be added to its like and multiplied by either. A node that is not
    there has the tangent 0.

    >>> x = engine.Value(3.0)
    >>> y = x**3
    >>> pushed_forward([x, y], {x: 10.0}, local_grads_of)[y].data
    270.0
    """
    with _rows_on_values():
        for node in order:
            if node in tangents or tangents.keys().isdisjoint(node._children):
                continue
            for child, local_grad in zip(node._children, rule(node), strict=True):
                if child in tangents and not _is_nothing(local_grad, tangents[child], node):
                    part = chained(tangents[child], local_grad)
                    tangents[node] = tangents[node] + part if node in tangents else part
    return tangents


def _rows_on_values() -> changed:
    """A branch that is not taken may be outside its domain; and numbers may be read, where tracing would refuse it:
    they are only compared with those of the forward pass."""
    return changed(ieee=True, on_read=_ignored if current().on_read else None)


def _ignored(*_: Any) -> None:
    pass


def _is_nothing(local_grad: Any, derivative: Any, node: Any) -> bool:
    """Whether a slope of 0 hands nothing on. Of a derivative that is nan it does, but where the node chooses."""
    if type(local_grad) is not float or local_grad != 0.0:
        return False
    number = data_of(derivative)
    return type(number) is not float or number == number or node._name in CHOOSING


def chained(derivative: Any, local_grad: Any) -> Any:
    """One step of the chain rule: the product, without a node for a factor that is 1."""
    if type(local_grad) is float and local_grad == 1.0:
        return derivative
    if type(derivative) is float and derivative == 1.0:
        return local_grad
    product = local_grad * derivative
    number = product if type(product) is float else data_of(product)
    if isinstance(number, float) and number != number and not is_traced():
        # in a trace this would be so in every later call; there, what is nan here is for the plain function
        return 0.0 if contribution(data_of(local_grad), data_of(derivative)) == 0.0 else product
    return product


def data_of(given: Any) -> Any:
    """The number of a Value, which is a Value again in a trace; a plain number is its own."""
    return given.data if is_value(given) else given


def local_grads_of(node: Any) -> Any:
    """The row's local gradients at the node, as Values (or floats where they do not depend on anything)."""
    name = node._name
    local_grads: Sequence[Any]
    if node._hand_written is not None:
        name = ""  # whatever made the node, its derivative is what was written by hand
    if name in OPS:
        local_grads = OPS[name].local_grads(*node._children, *node._parameters, node)
    elif name in COMPOSITES:
        local_grads = COMPOSITES[name].local_grads_on(list(node._children), *node._parameters, node, lists=ON_VALUES)
    elif name == "" and node._hand_written is None and hasattr(node._op, "local_grads_on_values"):
        return node._op.local_grads_on_values(node)  # of a custom_op
    else:
        raise NoGraphError(
            f"backward: expected operations of the table on the way to a second derivative, got a node made by hand as "
            f"{node._op!r}; its local gradients are plain numbers, so it has a first derivative only"
        )
    for now, then in zip(local_grads, node._local_grads, strict=True):
        number = now if isinstance(now, float) else now.data
        if number != then and (number == number or then == then):
            raise ValueError(
                f"backward: expected the numbers of the forward pass under create_graph, got changed ones: the local "
                f"gradient of {node._op!r} was {then!r} and is now {number!r}; run the forward pass again"
            )
    return local_grads


# ---------------------------------------------------------------- backward(create_graph=True)


def _backward_with_graph(root: Any) -> None:
    gradients = gradient_values(root)
    with engine.taking_turns(), THE_PASS.lock:
        before = {node: node.grad for node in engine.topological_order(root)}
        try:
            root.backward()  # sets the gradients on the way, and checks that the walk is possible
            for leaf, gradient in gradients.items():
                earlier = before[leaf]
                leaf.grad = gradient if isinstance(earlier, float) and earlier == 0.0 else gradient + earlier
        except BaseException:
            for node, grad in before.items():
                node.grad = grad
            raise


for _module in engine.available():
    _module.Value._backward_with_graph = _backward_with_graph
