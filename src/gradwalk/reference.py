"""The readable engine: Value and backward() in plain Python. Read it top to bottom.

What an operation computes is in `ops.py`, what goes wrong is worded in `errors.py`, and what else a Value answers
(attributes, operators, comparisons) is in `interface.py`. The native engine does the same thing, to the bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from gradwalk.errors import check_domain, check_range, number_from, refuse_backward
from gradwalk.interface import Interface, give_operations, number_of, set_equality_is_identity
from gradwalk.modes import Change, current
from gradwalk.ops import OPS
from gradwalk.passes import THE_PASS
from gradwalk.row_ops import COMPOSITES

__all__ = ["FUNCTIONS", "Change", "Value", "apply", "lift", "node", "set_equality_is_identity"]


CHOOSING = {name for table in (OPS, COMPOSITES) for name, row in table.items() if row.chooses}


class Value(Interface):
    """A number that remembers how it was made, so that backward() can tell how it depends on its inputs."""

    __slots__ = ("__dict__",)  # for what people hang on a Value; the rest is listed in interface.py
    _backward_with_graph: ClassVar[Callable[[Value], None]]  # higher_order.py gives it to both engines

    def __init__(
        self, data: Any, _children: Sequence[Any] = (), _op: Any = "", label: str = "", *,
        children: Sequence[Any] | None = None, local_grads: Sequence[float] = (),
    ) -> None:  # fmt: skip
        if not isinstance(_op, str):  # the microgpt family passes local gradients where micrograd passes the op
            _op, local_grads = "", _op
        self._children = tuple(lift(child, "Value") for child in (_children if children is None else children))
        self._local_grads = tuple(number_from(local_grad, "Value") for local_grad in local_grads)
        if self._local_grads and len(self._local_grads) != len(self._children):
            counts = f"{len(self._local_grads)} for {len(self._children)}"
            raise ValueError(f"Value: expected one local gradient per child, got {counts}")
        self._data = number_from(data, "data")
        self._grad = 0.0
        self.label = label
        self._op, self._name, self._parameters = _op, "", ()
        self._hand_written = None
        self._constant = False
        modes = current()
        self._scope = modes.scope
        if modes.on_construct and self._children:
            modes.on_construct(self)

    # ---------------------------------------------------------------- backward: the one rule

    def backward(self, create_graph: bool = False) -> None:
        """Add to the grad of every leaf the derivative of this Value with respect to it."""
        if create_graph:
            return self._backward_with_graph()
        with THE_PASS.lock:
            order = self._topological_order()
            before = [node.grad for node in order]
            for node in order:
                # leaves accumulate over passes; what was computed on the way starts afresh
                node.grad = 0.0 if node._children or node._constant else number_of(node.grad)
            self.grad += 1.0
            try:
                for node in reversed(order):
                    node._backward()
            except BaseException:
                for node, grad in zip(order, before, strict=True):
                    node.grad = grad
                raise

    def _topological_order(self) -> list[Value]:
        """Every node reachable from here, each after all of its children: left-first, depth-first, no recursion."""
        order, seen, path = [], {self}, [(self, iter(self._children))]
        while path:
            node, children = path[-1]
            for child in children:
                if child not in seen:
                    seen.add(child)
                    path.append((child, iter(child._children)))
                    break
            else:
                order.append(node)
                path.pop()
        return order

    def _push(self) -> None:
        """Hand this node's gradient on to its children: the only place where gradients move."""
        if len(self._local_grads) < len(self._children):
            refuse_backward(self)
        for child, local_grad in zip(self._children, self._local_grads, strict=True):
            child.grad += contribution(local_grad, number_of(self.grad), self._name)

    def _apply(self, name: str, *arguments: Any) -> Value:
        return apply(name, *arguments)


def contribution(local_grad: float, grad: float, name: str = "") -> float:
    """What a child gets: the product. But 0 · inf is 0 here: what has no part in the result gets nothing.

    And what is stopped, or was not chosen, gets nothing whatever comes.
    """
    product = local_grad * grad
    if math.isnan(product) and (grad == 0.0 or (local_grad == 0.0 and (math.isinf(grad) or name in CHOOSING))):
        return 0.0
    return product


# ---------------------------------------------------------------- recording an operation


def apply(name: str, *arguments: Any) -> Value:
    """Run one row of the table on Values and numbers, and record it."""
    op = OPS[name]
    inputs = [lift(argument, name) for argument in arguments[: len(op.inputs)]]
    parameters = tuple(number_from(argument, name) for argument in arguments[len(op.inputs) :])
    numbers = [*(value._data for value in inputs), *parameters]
    check_domain(op, numbers, inputs)
    data = op.forward(*numbers)
    check_range(op, numbers, data, inputs)
    return node(data, inputs, op.local_grads(*numbers, data), op.spelled(parameters), name, parameters)


def lift(given: Any, operation: str) -> Value:
    """A Value as it is; a plain number as a constant leaf."""
    if isinstance(given, Value):
        return given
    constant = Value(number_from(given, operation))
    constant._constant = True
    return constant


def node(
    data: float, children: Sequence[Value], local_grads: Sequence[float], op: str, name: str, parameters: Any
) -> Value:
    """A recorded node; `name` says which row of the table (or which composite) made it."""
    out = Value(data, _op=op)
    out._children, out._local_grads = tuple(children), tuple(local_grads)
    out._name, out._parameters = name, parameters
    modes = current()
    if modes.on_record:
        modes.on_record(out)
    return Value(data) if modes.no_grad else out


FUNCTIONS = give_operations(Value, apply)
