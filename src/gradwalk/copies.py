"""Copying and pickling of Values, for both engines, without recursion.

Inside a function that is differentiated or traced, a copy is the same number with the same history, as a copied float
would be the same number. Outside, a leaf is copied whole, and what was computed keeps its history; a deepcopy that has
to do with both, a leaf and what was computed from it, is refused: one of the two would be cut off.
"""

from __future__ import annotations

import copy
from typing import Any

from gradwalk import engine, interface
from gradwalk.control import is_inside

_MET = "gradwalk.copies"  # in the memo of a deepcopy: which leaves have a copy, and what lies below computed nodes


# ---------------------------------------------------------------- leaves: what a model is made of


def _leaf_like(value: Any) -> Any:
    grad = value.grad
    return _leaf(type(value), value.data, grad if isinstance(grad, float) else float(grad.data), value.label)


def _leaf(cls: Any, data: float, grad: float, label: str) -> Any:
    if cls.__module__.startswith("gradwalk"):
        leaf = cls(data, label=label)
    else:  # a subclass, which may have a constructor of its own
        leaf = cls.__new__(cls)
        next(base for base in cls.__mro__ if base.__module__.startswith("gradwalk")).__init__(leaf, data, label=label)
    leaf.grad = grad
    return leaf


def _restored(cls: Any, data: float, grad: float, label: str, attributes: dict[str, Any]) -> Any:
    return _with(attributes, _leaf(cls, data, grad, label))


def _with(attributes: dict[str, Any], value: Any) -> Any:
    for name, held in attributes.items():
        setattr(value, name, held)
    return value


def _reduce(value: Any) -> Any:
    if is_inside(value):
        raise TypeError(
            "pickle: expected a Value outside of a function that is differentiated or compiled, got one inside, which "
            "would lose its history; compute with it, or pickle gradwalk.stop_gradient(v).data of an eager one"
        )
    if value._children:
        raise TypeError(
            f"pickle: expected a leaf, got the result of {value._op!r}; pickle its .data, or the leaves it came from"
        )
    leaf = _leaf_like(value)
    return _restored, (type(value), leaf.data, leaf.grad, leaf.label, value._attributes)


# ---------------------------------------------------------------- copies


def _has_history(value: Any) -> bool:
    return bool(value._children) or value._hand_written is not None


def _same_again(value: Any) -> Any:
    """A node of its own with the same number, whose history is the value."""
    if type(value).__module__.startswith("gradwalk"):
        copied = value * 1.0
    else:  # an operation would give a plain Value
        copied = type(value)(value.data, (value,), "copy", local_grads=(1.0,))
    if value.label:
        copied.label = value.label
    return copied


def _copy(value: Any) -> Any:
    made = _same_again if _has_history(value) or is_inside(value) else _leaf_like
    return _with(value._attributes, made(value))


def _deepcopy(value: Any, memo: dict[Any, Any]) -> Any:
    if id(value) in memo:
        return memo[id(value)]
    if interface.equality_is_identity and value._children:
        return _graph_of_its_own(value, memo)
    inside = is_inside(value)
    copied = _same_again(value) if inside or _has_history(value) else _leaf_like(value)
    if not inside and not interface.equality_is_identity:
        _refuse_both(value, memo)
    memo[id(value)] = copied
    return _with(copy.deepcopy(value._attributes, memo), copied)


def _refuse_both(value: Any, memo: dict[Any, Any]) -> None:
    """Raise if one deepcopy has to do with a leaf, which gets a life of its own, and with what was computed from it."""
    leaves, computed, below = memo.setdefault(_MET, (set(), [], set()))
    if _has_history(value):
        computed.append(value)
        clash = False
    else:
        leaves.add(id(value))
        clash = id(value) in below
    while leaves and computed:  # nothing to look for in a copy of computed nodes alone
        for child in computed.pop()._children:
            if id(child) not in below:
                below.add(id(child))
                clash = clash or id(child) in leaves
                if child._children:
                    computed.append(child)
    if clash:
        raise TypeError(
            "deepcopy: expected leaves, or results of operations, got a leaf together with what was computed from it; "
            "of the copies, either the leaf would have no part in the result or the result would lose its history: "
            "copy the leaves by themselves, or copy inside the function that is differentiated"
        )


def _graph_of_its_own(value: Any, memo: dict[Any, Any]) -> Any:
    """As a script's own class Value is copied, which `gradwalk run` has replaced: with everything below."""
    for node in value._topological_order():
        if id(node) not in memo:
            made = _leaf_like(node)
            if node._children:
                children = tuple(memo[id(child)] for child in node._children)
                made = type(node)(node.data, children, node._op, node.label, local_grads=node._local_grads)
                made.grad = node.grad
            if node._hand_written is not None:
                made._backward = node._hand_written
            memo[id(node)] = _with(node._attributes, made)
    return memo[id(value)]


for _module in engine.available():
    _module.Value.__reduce__ = _reduce
    _module.Value.__copy__ = _copy
    _module.Value.__deepcopy__ = _deepcopy
