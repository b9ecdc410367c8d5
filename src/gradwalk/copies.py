"""Copying and pickling of Values, for both engines, without recursion.

A leaf is copied and pickled whole. An interior node is copied with its local gradients as numbers, so a copy has
first derivatives only, and it is not pickled: what it was computed from would have to come along.
"""

from __future__ import annotations

from typing import Any

from gradwalk import engine


def _restored_leaf(cls: Any, data: float, grad: float, label: str, attributes: dict[str, Any]) -> Any:
    if cls.__module__.startswith("gradwalk"):
        leaf = cls(data, label=label)
    else:  # a subclass, which may have a constructor of its own
        leaf = cls.__new__(cls)
        next(base for base in cls.__mro__ if base.__module__.startswith("gradwalk")).__init__(leaf, data, label=label)
    leaf.grad = grad
    return _with_attributes(leaf, attributes)


def _with_attributes(value: Any, attributes: dict[str, Any]) -> Any:
    """Instances of a subclass may have some; Value itself has not."""
    if attributes:
        value.__dict__.update(attributes)
    return value


def _number(grad: Any) -> float:
    return grad if isinstance(grad, float) else float(grad.data)


def _reduce(value: Any) -> Any:
    if value._children:
        raise TypeError(
            f"pickle: expected a leaf, got the result of {value._op!r}; pickle its .data, or the leaves it came from"
        )
    return _restored_leaf, (type(value), value.data, _number(value.grad), value.label, _attributes(value))


def _attributes(value: Any) -> dict[str, Any]:
    return dict(getattr(value, "__dict__", {}))


def _remade(value: Any, children: tuple[Any, ...]) -> Any:
    if not children:
        return _restored_leaf(type(value), value.data, _number(value.grad), value.label, _attributes(value))
    copied = type(value)(value.data, children, value._op, value.label, local_grads=value._local_grads)
    copied.grad = value.grad
    return _with_attributes(copied, _attributes(value))


def _copy(value: Any) -> Any:
    return _remade(value, value._children)


def _deepcopy(value: Any, memo: dict[int, Any]) -> Any:
    for node in value._topological_order():
        if id(node) not in memo:
            memo[id(node)] = _remade(node, tuple(memo[id(child)] for child in node._children))
    return memo[id(value)]


for _module in engine.available():
    _module.Value.__reduce__ = _reduce
    _module.Value.__copy__ = _copy
    _module.Value.__deepcopy__ = _deepcopy
