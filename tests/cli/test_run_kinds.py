"""What people wrote, one small script for each kind: it prints what it prints with python, on gradwalk's nodes."""

from __future__ import annotations

import pytest
from running import LECTURE_CLASS, MICROGPT_CLASS, TELL_CLASS, with_gradwalk, with_python, write

COMPOSED = """
    def __pow__(self, other):
        return Value(self.data**other, (self,), (other * self.data**(other - 1),))
    def exp(self): return Value(math.exp(self.data), (self,), (math.exp(self.data),))
    def __neg__(self): return self * -1
    def __radd__(self, other): return self + other
    def __sub__(self, other): return self + (-other)
    def __rsub__(self, other): return other + (-self)
    def __rmul__(self, other): return self * other
    def __truediv__(self, other): return self * other**-1
    def __rtruediv__(self, other): return other * self**-1
"""
MICROGPT = "import math, random\n" + MICROGPT_CLASS + COMPOSED
LECTURE = (
    LECTURE_CLASS
    + """
    def __neg__(self): return self * -1
    def __radd__(self, other): return self + other
    def __sub__(self, other): return self + (-other)
    def __rmul__(self, other): return self * other
    def __pow__(self, other):
        out = Value(self.data**other, (self,), f'**{other}')
        def _backward(): self.grad += other * self.data**(other - 1) * out.grad
        out._backward = _backward
        return out
    def __truediv__(self, other): return self * other**-1
"""
)
PICTURE = """
def picture(v):
    below = sorted(v._prev, key=lambda c: c.data) if hasattr(v, '_prev') else v._children
    return f"{getattr(v, '_op', '')}[{v.data!r} {v.grad!r}]({', '.join(map(picture, below))})"
"""
INTS = (
    LECTURE.replace("self.grad = 0.0", "self.grad = 0")
    .replace("self.grad = 1.0", "self.grad = 1")
    .replace("1.0 * ", "")
)

KINDS = {
    "a quotient stays a product with a power": LECTURE
    + PICTURE
    + "e = Value(1.5)\ny = (e - 1) / (e + 1)\ny.backward()\nprint(picture(y))\n",
    "the last bit of a small softmax": MICROGPT
    + """
random.seed(1)
w = [[Value(random.gauss(0, 1)) for _ in range(3)] for _ in range(4)]
for step in range(20):
    xs = [sum(a * b for a, b in zip(row, [0.3, -0.2, 1.7])) for row in w]
    top = max(x.data for x in xs)
    es = [(x - top).exp() for x in xs]
    loss = 1.0 - es[step % 4] / sum(es)
    loss.backward()
    for row in w:
        for v in row:
            v.data -= 0.1 * v.grad
            v.grad = 0
print(loss.data.hex(), *(v.data.hex() for row in w for v in row))
""",
    "ints stay ints": INTS
    + PICTURE
    + """
a, b = Value(2), Value(-3)
c = a * b + 10
c.backward()
print(a.data, a.grad, c, picture(c), ['x', 'y', 'z'][(a * 1).data], (a ** 3).data, (a * 0.5).data, picture(a - 1))
b.data = 7; a.grad = 0
print(b.data, a.grad, a.data + 0.5)
""",
    "gradients start from an int, backward() from a float": INTS.replace("self.grad = 1\n", "self.grad = 1.0\n")
    + PICTURE
    + "a, b = Value(2), Value(3)\nc = a * b + a\nprint(picture(c))\nc.backward()\nprint(picture(c))\n",
    "gradients start from a float, backward() from an int": INTS.replace("self.grad = 0\n", "self.grad = 0.0\n")
    + PICTURE
    + "a, b = Value(2), Value(3)\nc = a * b + a\nprint(picture(c))\nc.backward()\nprint(picture(c))\n",
    "gradients handed on by hand": INTS
    + """
a, b = Value(2.5), Value(-0.5)
c = a * b
d = c + a
d.grad = 1
for node in (d, c):
    node._backward()
print(a.grad, b.grad, c.grad)
e = a * 2.5
e.grad = 1
e._backward()
print(sorted((v.data, v.grad) for v in e._prev))
print(Value(True) + 1, ((Value(2**53 - 1) + 1) * 1.0).data)
""",
    "backward that zeroes first": INTS.replace(
        "build_topo(self)\n", "build_topo(self)\n        for v in topo: v.grad = 0\n"
    )
    + """
x = Value(3.5)
y = x * x
for _ in range(2):
    (y + x).backward()
    print(x.grad, y.grad)
""",
    "numbers that change before backward() is called": LECTURE
    + """
    def relu(self):
        out = Value(0 if self.data < 0 else self.data, (self,), 'ReLU')
        def _backward(): self.grad += (out.data > 0) * out.grad
        out._backward = _backward
        return out
    def exp(self):
        out = Value(math.exp(self.data), (self,), 'exp')
        def _backward(): self.grad += out.data * out.grad
        out._backward = _backward
        return out
w, x = Value(0.5), Value(-2.0)
losses = [(w * x * i - 1.0) ** 2 + (w / i).exp() + (w - i / 2).relu() + (w * 3).tanh() for i in (1, 2, 3)]
for loss in losses:
    loss.backward()
    for v in (w, *losses, *loss._prev):
        v.data -= 0.3 * v.grad
    print(*(round(number, 9) for number in (w.data, w.grad, x.grad)))  # the order in a set is anybody's
    w.label = 'w'
    w.grad = x.grad = 0.0
    losses[-1].label = 'last'
""",
    "and local gradients that do not": MICROGPT
    + """
w, x = Value(0.5), Value(-2.0)
y = (w * x) ** 2 + (w * 0.1).exp()
w.data = 7.0
y.backward()
print(w.grad, x.grad)
""",
    "what vars() shows": LECTURE
    + """
w = Value(2.0, label='w')
w.m = 1.0
print(list(vars(w)), vars(w)['label'], w.__dict__['m'], 'data' in (w * 2).__dict__, vars(w + 1)['_op'])
""",
    "a subclass with a sum of its own": LECTURE
    + """
class Loud(Value):
    def __add__(self, other):
        print('added')
        return super().__add__(other)
print(1 + Loud(3.0), sum([Loud(1.0), Loud(2.0)]))
Value.__mul__ = lambda self, other: 'multiplied'
print(2 * Value(1.0), -Value(1.0))
""",
    "two passes add up as they do": LECTURE
    + """
x = Value(3.0)
y = x * x * x
y.backward(); y.backward()
print(x.grad, sorted(v.grad for v in y._prev))
""",
    "a backward that zeroes first": LECTURE.replace(
        "        self.grad = 1.0\n",
        """\
        for node in topo: node.grad = 0.0
        self.grad = 1.0
""",
    )
    + "x = Value(3.0)\ny = x * 2.0 + x\ny.backward(); y.backward()\nprint(x.grad)\n",
    "a backward that prints": LECTURE.replace("node._backward()", "print('at', node._op); node._backward()")
    + "x = Value(3.0)\ny = x * 2.0 + x\ny.backward()\nprint(x.grad)\n",
    "a backward with an argument": MICROGPT.replace("def backward(self)", "def backward(self, grad=1)").replace(
        "self.grad = 1\n", "self.grad = grad\n"
    )
    + "x = Value(3.0)\n(x * x).backward()\nprint(x.grad)\n(x * x).backward(grad=0.5)\nprint(x.grad)\n",
    "other names of parameters": MICROGPT.replace("children=(), local_grads=()", "parents=(), derivatives=()")
    .replace("= children", "= parents")
    .replace("= local_grads", "= derivatives")
    + "x = Value(3.0)\ny = Value(x.data**2, parents=(x,), derivatives=(2 * x.data,))\n"
    "(y * 2.0).backward()\nprint(x.grad, y._children == (x,))\n",
    "other names of attributes": LECTURE.replace("self._op = _op", "self.op = _op").replace("_prev", "parents")
    + "x = Value(3.0)\ny = x * x + 1.0\ny.backward()\nprint(y.op, len(y.parents), x.grad, Value(1.0).op == '')\n",
    "other words for operations": LECTURE.replace("'+'", "'plus'").replace("f'**{other}'", "'power'")
    + PICTURE
    + "print(picture(Value(3.0) ** 2 + 1.0))\n",
    "numbers, lists and dicts that stay as they are": "n, names, of, seen = 3, ['x'], {'n': 7}, {3}\n"
    + MICROGPT_CLASS.replace("    __slots__", "    kinds = {'a': 1}\n    __slots__")
    + "    def named(self): return names, of, seen, n, self.kinds\nprint(Value(2.0).named())\n",
    "a label in second place": LECTURE
    + "a = Value(2.0, 'a')\nb = Value(3.0, label='b')\nprint((a * b).data, b.label)\n",
    "a constructor with the label in second place": LECTURE.replace(
        "data, _children=(), _op='', label=''", "data, label='', _children=(), _op=''"
    )
    .replace("(self, other), '", "_children=(self, other), _op='")
    .replace("(self,), ", "_children=(self,), _op=")
    + "a = Value(2.0, 'a')\ny = a * Value(3.0, 'b') + a.tanh()\ny.backward()\nprint(a.label, a.grad, y._op)\n",
    "attributes with defaults": LECTURE.replace("label=''):", "label='', colour=None):").replace(
        "self.label = label", "self.label = label; self.colour = colour; self.momentum = 0.0"
    )
    + "a = Value(2.0, colour='red')\ny = a * a\na.momentum += 0.5\nprint(a.colour, y.colour, a.momentum, y.momentum)\n",
    "attributes hung on nodes": MICROGPT.replace("    __slots__ = ('data', 'grad', '_children', '_local_grads')\n", "")
    + "w = Value(2.0)\nw.m, w.v = 0.0, [1]\ny = w * w\ny.name = 'y'\nprint(w.m, w.v, y.name, hasattr(y, 'm'))\n",
    "the name of an operation set afterwards": LECTURE
    + "y = Value(2.0) * 3.0\ny._op = 'mine'\nprint(y._op, (y + 1)._op)\n",
    "a class of another name": LECTURE.replace("Value", "Scalar") + "Value = Scalar\nx = Scalar(3.0)\nprint(x * 2)\n",
    "a subclass": LECTURE
    + """
class Weight(Value):
    def __init__(self, data, name):
        super().__init__(data, label=name)
        self.m = 0.0
    def __repr__(self): return f'{self.label}={self.data}'
    def add(self): self.m += self.grad
w = Weight(2.0, 'w')
y = w * w + 1.0
y.backward()
w.add()
print(w, w.grad, w.m, type(y).__name__, isinstance(w, Value))
""",
    "a helper defined later": LECTURE.replace(
        "other = other if isinstance(other, Value) else Value(other)", "other = lifted(other)"
    )
    + "\ndef lifted(x):\n    return x if isinstance(x, Value) else Value(x)\n\nx = Value(3.0)\nprint(x * 2 + 1)\n",
    "equality is identity": MICROGPT + "a, b = Value(1.0), Value(1.0)\n"
    "print(a == b, a != b, a == 1.0, [a, b].index(b), b in [a], len({a, b}), bool(Value(0.0)))\n",
    "equality of its own": MICROGPT + "    def __eq__(self, other): return self.data == getattr(other, 'data', other)\n"
    "    def __hash__(self): return id(self)\nprint(Value(1.0) == Value(1.0), Value(1.0) == 2.0)\n",
    "a gradient that is assigned in a power": LECTURE.replace(
        "self.grad += other * self.data", "self.grad = other * self.data"
    )
    + "x = Value(3.0)\ny = x**2\ny.backward(); y.backward()\nprint(x.grad)\n",
    "labels that operations make": LECTURE.replace("(self,), 'tanh')", "(self,), 'tanh', f'tanh({self.label})')")
    + "print(Value(0.5, label='x').tanh().label)\n",
    "a method _backward": """\
class Value:
    def __init__(self, data, children=(), op=''):
        self.data, self.grad, self.children, self.op = data, 0.0, children, op
    def __add__(self, other): return Value(self.data + other.data, (self, other), '+')
    def __mul__(self, other): return Value(self.data * other.data, (self, other), '*')
    def cube(self): return Value(self.data**3, (self,), 'cube')
    def _backward(self):
        if self.op == '+':
            for c in self.children: c.grad += self.grad
        elif self.op == '*':
            a, b = self.children
            a.grad += b.data * self.grad
            b.grad += a.data * self.grad
        elif self.op == 'cube':
            self.children[0].grad += 3 * self.children[0].data**2 * self.grad
    def backward(self):
        order = []
        def visit(v):
            if v not in order:
                for c in v.children: visit(c)
                order.append(v)
        visit(self)
        self.grad = 1.0
        for v in reversed(order): v._backward()
x, y = Value(2.0), Value(0.5)
z = (x * y + x).cube() * y
z.backward()
print(x.grad, y.grad, z.op)
""",
    "a gradient of another name, and one that is given": LECTURE.replace("label=''):", "label='', _grad=0.0):")
    .replace("self.grad", "self._grad")
    .replace("other.grad", "other._grad")
    .replace("out.grad", "out._grad")
    .replace("_grad = 0.0", "_grad = _grad")
    + "a, b = Value(2.0), Value(3.0, _grad=0.5)\n(a * b + a).backward()\nprint(a._grad, b._grad)\n",
    "leaves with None for the function": LECTURE.replace("label=''):", "label='', step=None):")
    .replace("self._backward = lambda: None", "self._step = step")
    .replace("node._backward()", "node._step and node._step()")
    .replace("out._backward =", "out._step =")
    + """
a = Value(2.0)
y = Value(a.data**3, (a,), step=lambda: setattr(a, 'grad', a.grad + 3 * a.data**2 * y.grad))
z = y * 2.0 + a
z.backward()
print(a.grad, a._step, z._step is None)
""",
    "a gradient in second place": LECTURE.replace(
        "data, _children=(), _op='', label=''", "data, grad=0.0, _children=[], _op='', label=''"
    )
    .replace("(self, other), '", "_children=[self, other], _op='")
    .replace("(self,), ", "_children=[self], _op=")
    .replace("self.grad = 0.0", "self.grad = grad")
    + "a = Value(2.0, 0.25)\ny = a * 3.0\ny.backward()\nprint(a.grad, y._op)\n",
    "operations that take nodes only": LECTURE.replace(
        "other = other if isinstance(other, Value) else Value(other)",
        "if not isinstance(other, Value): return NotImplemented",
    )
    + "a = Value(2.0)\ny = a * Value(3.0) + a\ny.backward()\nprint(a.grad, y)\n",
    "a difference called a sum, and one made by hand": LECTURE.replace(
        "def __sub__(self, other): return self + (-other)",
        "def __sub__(self, other): return Value(self.data - other, (self,), '+')",
    )
    + "    def __rsub__(self, other): return Value(other - self.data, (self,), '-')\n"
    "a = Value(2.0)\nprint((a - 1)._op, (1 - a)._op, (a + 1)._op)\n",
    "a tanh of exponentials over sets": LECTURE.replace(
        "    def backward(self):",
        """\
    def exp(self):
        out = Value(math.exp(self.data), (self,), 'exp')
        def _backward(): self.grad += out.data * out.grad
        out._backward = _backward
        return out
    def tanh(self):
        e = (self * 2.0).exp()
        return (e - 1.0) / (e + 1.0)
    def backward(self):""",
    )
    + "x = Value(0.7)\ny = x.tanh()\ny.backward()\nprint(y.data, round(x.grad, 12))\n",
    "what gradwalk's nodes can do besides": MICROGPT.replace(
        "    __slots__ = ('data', 'grad', '_children', '_local_grads')\n", ""
    )
    + """
x = Value(0.5)
print(hasattr(x, 'sin'), hasattr(x, 'label'), hasattr(Value, 'cosh'), getattr(x, 'tanh', 'none'))
try: x.relu6
except AttributeError as error: print(error)
try: (x * 2).sigmoid()
except AttributeError as error: print(error)
x.label, x.sign = 7, -1
print(x.label, x.sign, (x * x).exp().data)
""",
    "a name that is made from the number": MICROGPT.replace(
        "    __slots__ = ('data', 'grad', '_children', '_local_grads')\n", ""
    ).replace("local_grads=()):", "local_grads=(), tag=None):\n        self.tag = tag or str(data)")
    + """
a, b = Value(2, tag='a'), Value(3.0)
y = a * b + 1
b.data = 7.5
y.backward()
print(a.tag, b.tag, y.tag, (b + 1).tag, Value(4, tag=None).tag, a.grad, b.grad)
""",
    "ints below what has a label": INTS
    + """
a, b, c = Value(2), Value(3), Value(1.5)
for y in (a * b, a + b, a - 2, b ** 2, a * 4, c * b, c + 1):
    y.label = 'y'
    y.backward()
    print(a.grad, b.grad, c.grad, y.grad)
""",
    "a power whose slope at 0 is another": LECTURE.replace(
        "self.data**(other - 1) * out", "(self.data and self.data**(other - 1)) * out"
    )
    + """
for base, exponent in ((0.0, 1), (0.0, 0.5), (0.0, 2), (2.0, 1)):
    x = Value(base)
    (x ** exponent).backward()
    print(x.grad)
""",
    "nothing of what is no number": MICROGPT
    + """
    def relu(self): return Value(max(0, self.data), (self,), (float(self.data > 0),))
for number in (float('nan'), -1.5, 2, 0.0):
    x = Value(number)
    y = x.relu()
    y.backward()
    print(y.data, x.grad)
""",
    "ints below a power that has a label": INTS
    + """
for exponent, x in ((3, Value(2)), (2, Value(2.5)), (2.0, Value(2)), (-1, Value(2)), (0, Value(2))):
    power = x**exponent
    power.label = 'power'
    (power * 3).backward()
    print(power.data, power.grad, x.grad)
""",
    "a backward() that calls a method, zeroes gradients and prints nodes": LECTURE.replace(
        "        topo, visited = [], set()",
        "        for node in self.all(): node.grad = 0.0\n        topo, visited = [], set()",
    ).replace("        self.grad = 1.0\n", "        self.grad = 1.0\n        print(self.order(topo))\n")
    + """
    def order(self, nodes): return sorted(nodes, key=lambda node: (node.data, node._op))
    def all(self): return [self, *(node for child in self._prev for node in child.all())]
a, b = Value(2.5), Value(-0.5)
c = a * b + a
for _ in range(2):
    c.backward()
    print(a.grad, b.grad)
""",
}


OBJECTS = {
    "copies": MICROGPT.replace("    __slots__ = ('data', 'grad', '_children', '_local_grads')\n", "")
    + """
import copy, pickle
w = Value(2.5); w.grad = 3; w.m = 0.5
for other in (copy.copy(w), copy.deepcopy([w])[0], pickle.loads(pickle.dumps(w))):
    print(other.data, other.grad, other.m, other is w, type(other) is Value)
y = copy.deepcopy(w * w + 1.0)
y.backward()
print(y.data, w.grad, y._children[0]._children[0].grad)
""",
    "a constant besides": MICROGPT.replace(
        "    __slots__ = ('data', 'grad', '_children', '_local_grads')\n", ""
    ).replace("self.data = data", "self.decay = 0.75; self.data = data")
    + "a = Value(2.0)\na.decay = 0.5\nprint(a.decay, (a + 1).decay, a.data)\n",
    "a number by default": MICROGPT.replace("data, children=()", "data=0.0, children=()")
    + "print(Value().data, (Value() + 2).data)\n",
    "subclasses of a class with parameters of its own": LECTURE.replace(
        "label=''):", "label='', colour=None):"
    ).replace("self.label = label", "self.label = label; self.colour = colour")
    + """
class Red(Value):
    def __init__(self, data, **named):
        super().__init__(data, colour='red', **named)
class Plain(Value): pass
r = Red(2.0, label='r')
y = r * r + Plain(3.0, (), '', 'p', 'green')
y.backward()
print(r, r.colour, r.label, r.grad, y.colour, type(y) is Value, Plain(3.0).colour)
""",
    "what is not defined": MICROGPT_CLASS
    + """
import math
for f in (float, int, abs, round, math.floor, math.ceil, vars, lambda x: x < x, lambda x: f'{x:.2f}',
          lambda x: x.__dict__):
    try: f(Value(1.5))
    except Exception as error: print(type(error), error)
""",
    "attributes that are deleted": MICROGPT.replace(
        "    __slots__ = ('data', 'grad', '_children', '_local_grads')\n", ""
    )
    + """
x = Value(1.0)
for name in ('label', 'm'):
    setattr(x, name, 7)
    delattr(x, name)
    print(hasattr(x, name))
    try: delattr(x, name)
    except AttributeError as error: print('of this node' in str(error))
""",
}


pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize("kind", KINDS)
def test_kind(kind):
    check(KINDS[kind])


@pytest.mark.parametrize("kind", OBJECTS)
def test_objects_of_a_kind(kind):
    check(OBJECTS[kind])


def check(source):
    """The same lines, to the last digit, and the class was replaced."""
    write("s.py", source)
    plain = with_python("s.py")
    assert plain.stderr == ""
    write("s.py", source + TELL_CLASS)
    process = with_gradwalk("s.py")
    assert plain.stdout + "gradwalk\n" == process.stdout, process.stderr


REFLECTED = """
    def __rsub__(self, other): return other + (-self)
    def __rtruediv__(self, other): return other * self**-1
"""
TUPLES = """
def picture(v): return f"[{v.data!r} {v.grad!r}]({', '.join(map(picture, v._children))})"
"""
ALL_OPERATORS = """
a, b = Value(2.5), Value(3)
for y in (a - b, a / b, -b, 1.5 - a, 2 / a, 1 + b, 1.5 * a, a - 1.5, a / 2, b - 1, a - a, a / a, sum([a, b])):
    y.backward()
    print(picture(y))
"""


@pytest.mark.parametrize("start", [MICROGPT + TUPLES, LECTURE + REFLECTED + PICTURE, INTS + REFLECTED + PICTURE])
def test_operators_composed_as_usual_are_native(start):
    """Python would be asked for each of them otherwise; and for every sum, where only `1 + x` is the script's."""
    write("s.py", start + ALL_OPERATORS)
    found = with_gradwalk("s.py")
    assert found.stdout == with_python("s.py").stdout
    assert "__" not in found.stderr.replace("__repr__", "")


@pytest.mark.parametrize(
    ("usual", "other"),
    [
        ("return self * -1", "return self * -1.0"),
        ("return self * -1", "return Value(-1) * self"),
        ("return self + (-other)", "return -other + self"),
        ("return self * other**-1", "return other**-1 * self"),
        ("return self * other**-1", "return self * (1 / other.data) if isinstance(other, Value) else self * other**-1"),
    ],
)
def test_operators_composed_in_another_way_stay_so(usual, other):
    write("s.py", MICROGPT.replace(usual, other) + TUPLES + ALL_OPERATORS)
    found = with_gradwalk("s.py")
    assert found.stdout == with_python("s.py").stdout
    assert "different from gradwalk's" in found.stderr


READ_LATE = """
    def __truediv__(self, other):
        out = Value(self.data / other.data, (self, other), '/')
        def _backward():
            self.grad += (1 / other.data) * out.grad
            other.grad += (-self.data / (other.data * other.data)) * out.grad
        out._backward = _backward
        return out
    def log(self):
        out = Value(math.log(self.data), (self,), 'log')
        def _backward(): self.grad += (1 / self.data) * out.grad
        out._backward = _backward
        return out
a, b = Value(0.5), Value(3.0)
c = a / b
d = c.log() * a
a.data, b.data, c.data = 2.0, 4.0, 8.0
d.backward()
print(a.grad, b.grad, c.grad, d.data)
"""


def test_quotients_and_logarithms_that_read_their_numbers_late():
    """A closure looks at the data there is when it runs."""
    write("s.py", LECTURE_CLASS + READ_LATE + TELL_CLASS)
    assert with_gradwalk("s.py").stdout == with_python("s.py").stdout.replace("builtins", "gradwalk")


def test_a_class_that_adds_and_multiplies_nothing_is_its_own():
    """A task queue may have a method of that name as well."""
    write(
        "s.py", "class Cursor:\n    def backward(self): return 'back'\nprint(Cursor().backward(), Cursor.__mro__[1])\n"
    )
    assert with_gradwalk("s.py").stdout == with_python("s.py").stdout


@pytest.mark.parametrize(
    "change", ["update(m=1)", "setdefault('m', 1)", "pop('data')", "popitem()", "clear()", "__delitem__('data')"]
)
def test_what_vars_shows_is_not_changed(change):
    """It would be lost."""
    write("s.py", LECTURE_CLASS + f"w = Value(2.0)\ntry: vars(w).{change}\nexcept TypeError: print('refused')\n")
    assert with_gradwalk("s.py").stdout == "refused\n"


def test_the_name_of_an_operation_is_a_text():
    write("s.py", LECTURE_CLASS + "y = Value(1.0) + Value(2.0)\ny._op = 'total'\nprint(y._op)\ny._op = 5\n")
    found = with_gradwalk("s.py")
    assert found.stdout == "total\n"
    assert "op: expected a string, got 5" in found.stderr


DERIVED = {
    "== says what != does": "__eq__(self, o): return self.data == getattr(o, 'data', o)\n"
    "    __hash__ = object.__hash__",
    "equal nodes are one": "__eq__(self, o): return self.data == getattr(o, 'data', o)\n"
    "    def __hash__(self): return hash(self.data)",
    "an empty one is false": "__len__(self): return int(self.data)",
    "a length that is none": "__len__(self): return -1",
    "an index is a number": "__index__(self): return int(self.data)",
    "a float has a floor": "__float__(self): return self.data + 0.5",
    "< says what > does": "__lt__(self, o): return self.data < getattr(o, 'data', o)",
    "items are iterated": "__getitem__(self, i): return [self.data, 7.0][i]",
    "what is iterated contains": "__iter__(self): return iter([self.data, 7.0])",
    "a text is formatted": "__str__(self): return 'it is ' + str(self.data)",
    "a state is copied": "__getstate__(self): return None, {'data': 5.0, 'grad': 0.0}",
    "how it is made is copied": "__reduce__(self): return Value, (5.0,)",
}
ASKED = """
import copy, math, operator
a, b, c, zero = Value(2.0), Value(2.0), Value(3.0), Value(0.0)
asked = [bool, operator.not_, list, float, int, complex, math.floor, math.ceil, math.sqrt, lambda v: "%d" % v]
asked += [lambda v: 7.0 in v, lambda v: f"{v}"[:5] == "it is", lambda v: copy.copy(v).data]
asked += [lambda v: copy.deepcopy(v).data]
for sign in (operator.eq, operator.ne, operator.lt, operator.gt, operator.le):
    asked += [lambda v, s=sign: s(v, a), lambda v, s=sign: s(b, v), lambda v, s=sign: s(v, 2.0)]
for i, ask in enumerate(asked):
    for v in (a, c, zero):
        try: print(i, ask(v))
        except Exception as error: print(i, type(error).__name__)
((a * b) * (b * c)).backward()
print(a.grad, b.grad, c.grad)
"""


@pytest.mark.parametrize("kind", DERIVED)
def test_what_python_takes_for_a_method_that_is_not_there(kind):
    """With one of these, a class has more than that method."""
    write("s.py", MICROGPT_CLASS + f"    def {DERIVED[kind]}\n" + ASKED)
    assert with_gradwalk("s.py").stdout == with_python("s.py").stdout
