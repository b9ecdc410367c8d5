"""The engine as people write it for themselves: a plain class, children, local gradients and one loop.

What gradwalk's reference engine promises beyond this (domains, errors, both families' attributes) makes it slower
than this; so the GPT rows are measured against both.
"""

from __future__ import annotations

import math


class Value:
    """A number with its children and the derivative by each of them."""

    __slots__ = ("children", "data", "grad", "local_grads")

    def __init__(self, data, children=(), local_grads=()):
        self.data, self.grad, self.children, self.local_grads = data, 0.0, children, local_grads

    def __add__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        return Value(self.data + other.data, (self, other), (1.0, 1.0))

    def __mul__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        return Value(self.data * other.data, (self, other), (other.data, self.data))

    def __pow__(self, number):
        return Value(self.data**number, (self,), (number * self.data ** (number - 1),))

    def log(self):
        return Value(math.log(self.data), (self,), (1.0 / self.data,))

    def exp(self):
        return Value(math.exp(self.data), (self,), (math.exp(self.data),))

    def relu(self):
        return Value(max(0.0, self.data), (self,), (float(self.data > 0.0),))

    def __neg__(self):
        return self * -1.0

    def __sub__(self, other):
        return self + -other

    def __truediv__(self, other):
        return self * other**-1

    __radd__, __rmul__ = __add__, __mul__

    def backward(self):
        order, seen = [], set()

        def visit(node):
            if node not in seen:
                seen.add(node)
                for child in node.children:
                    visit(child)
                order.append(node)

        visit(self)
        self.grad = 1.0
        for node in reversed(order):
            for child, local_grad in zip(node.children, node.local_grads):  # noqa: B905
                child.grad += local_grad * node.grad
