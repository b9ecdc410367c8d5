"""What a script gets for micrograd's engine where micrograd is not installed, or is the package of that name.

The class is written out in micrograd's manner, then replaced like a script's own: so its operations are composed of
the same others, and what a script sees of a graph is what micrograd shows.
"""

from __future__ import annotations

from typing import Any

from gradwalk.run.stand_in import replaced


class Value:
    """A number that remembers how it was made."""

    def __init__(self, data: Any, _children: Any = (), _op: str = "") -> None:
        self.data = data
        self.grad: Any = 0
        self._backward: Any = lambda: None
        self._prev = set(_children)
        self._op = _op

    def __add__(self, other: Any) -> Any:
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data + other.data, (self, other), "+")

        def push() -> None:
            self.grad += out.grad
            other.grad += out.grad

        out._backward = push
        return out

    def __mul__(self, other: Any) -> Any:
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data * other.data, (self, other), "*")

        def push() -> None:
            self.grad += other.data * out.grad
            other.grad += self.data * out.grad

        out._backward = push
        return out

    def __pow__(self, other: Any) -> Any:
        assert isinstance(other, int | float), "only int and float powers"  # what micrograd raises
        out = Value(self.data**other, (self,), f"**{other}")

        def push() -> None:
            self.grad += other * self.data ** (other - 1) * out.grad

        out._backward = push
        return out

    def relu(self) -> Any:
        out = Value(0 if self.data < 0 else self.data, (self,), "ReLU")

        def push() -> None:
            self.grad += (out.data > 0) * out.grad

        out._backward = push
        return out

    def backward(self) -> None:
        order: list[Any] = []
        seen = set()

        def visit(node: Any) -> None:
            if node not in seen:
                seen.add(node)
                for child in node._prev:
                    visit(child)
                order.append(node)

        visit(self)
        self.grad = 1
        for node in reversed(order):
            node._backward()

    # fmt: off
    def __neg__(self) -> Any: return self * -1
    def __radd__(self, other: Any) -> Any: return self + other
    def __sub__(self, other: Any) -> Any: return self + (-other)
    def __rsub__(self, other: Any) -> Any: return other + (-self)
    def __rmul__(self, other: Any) -> Any: return self * other
    def __truediv__(self, other: Any) -> Any: return self * other**-1
    def __rtruediv__(self, other: Any) -> Any: return other * self**-1
    def __repr__(self) -> str: return f"Value(data={self.data}, grad={self.grad})"
    # fmt: on


Value = replaced(Value, globals())  # type: ignore[misc]
