"""Scripts for the tests of `gradwalk run`, and both ways to run them."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import textwrap

import gradwalk

MICROGPT_CLASS = """\
class Value:
    __slots__ = ('data', 'grad', '_children', '_local_grads')

    def __init__(self, data, children=(), local_grads=()):
        self.data = data
        self.grad = 0
        self._children = children
        self._local_grads = local_grads

    def __add__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        return Value(self.data + other.data, (self, other), (1, 1))

    def __mul__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        return Value(self.data * other.data, (self, other), (other.data, self.data))

    def backward(self):
        topo = []
        visited = set()
        def build_topo(v):
            if v not in visited:
                visited.add(v)
                for child in v._children:
                    build_topo(child)
                topo.append(v)
        build_topo(self)
        self.grad = 1
        for v in reversed(topo):
            for child, local_grad in zip(v._children, v._local_grads):
                child.grad += local_grad * v.grad
"""

LONG_CHAIN = """\
x = Value(2.0)
y = x * x
for _ in range(5000):
    y = y + 1.0
y.backward()
print(y.data, x.grad)
"""

LECTURE_CLASS = """\
import math

class Value:
    def __init__(self, data, _children=(), _op='', label=''):
        self.data = data
        self.grad = 0.0
        self._backward = lambda: None
        self._prev = set(_children)
        self._op = _op
        self.label = label

    def __repr__(self):
        return f"Value(data={self.data})"

    def __add__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data + other.data, (self, other), '+')
        def _backward():
            self.grad += 1.0 * out.grad
            other.grad += 1.0 * out.grad
        out._backward = _backward
        return out

    def __mul__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data * other.data, (self, other), '*')
        def _backward():
            self.grad += other.data * out.grad
            other.grad += self.data * out.grad
        out._backward = _backward
        return out

    def tanh(self):
        out = Value(math.tanh(self.data), (self,), 'tanh')
        def _backward():
            self.grad += (1 - out.data**2) * out.grad
        out._backward = _backward
        return out

    def bent(self):
        out = Value(self.data / (1 + abs(self.data)), (self,), 'bent')
        def _backward():
            self.grad += out.grad / (1 + abs(self.data))**2
        out._backward = _backward
        return out

    def backward(self):
        topo, visited = [], set()
        def build_topo(v):
            if v not in visited:
                visited.add(v)
                for child in v._prev:
                    build_topo(child)
                topo.append(v)
        build_topo(self)
        self.grad = 1.0
        for node in reversed(topo):
            node._backward()
"""

# "gradwalk" if the class was replaced, "builtins" if it is the script's own
TELL_CLASS = "print(Value.__mro__[1].__module__.partition('.')[0])\n"


def write(path, source):
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(source), encoding="utf-8")


def started(command, stdin=""):
    source = os.path.dirname(os.path.dirname(gradwalk.__file__))
    environment = {**os.environ, "PYTHONPATH": source, "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        command,
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        env=environment,
        check=False,
    )


def with_python(*arguments, stdin=""):
    return started([sys.executable, *arguments], stdin)


def with_gradwalk(*arguments, stdin=""):
    return started([sys.executable, "-m", "gradwalk", "run", *arguments], stdin)


def outcome(process):
    return process.stdout, process.stderr, process.returncode


def assert_same(*arguments, stdin=""):
    assert outcome(with_python(*arguments, stdin=stdin)) == outcome(with_gradwalk(*arguments, stdin=stdin))
