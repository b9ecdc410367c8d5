"""Classes that `gradwalk run` keeps: they do what they did, and one line says why."""

from __future__ import annotations

import pytest
from running import LECTURE_CLASS, MICROGPT_CLASS, TELL_CLASS, with_gradwalk, with_python, write

pytestmark = pytest.mark.usefixtures("folder")


KEPT = {
    "data, shape, children=()):": "its constructor takes (data, shape, children=()), more than a number",
    "*data):": "its constructor takes (*data)",
    "data, children=(), local_grads=(), flag=None):\n        assert flag is None":
        "its constructor takes flag=None, and it is not clear what for",
    "data, children=(), local_grads=(), tag=None):\n        self.tag = tag or [data]":
        "its __init__ makes tag from the number: [0.75] of 0.75",
    "data, children=(), local_grads=(), flag=None):": "its constructor takes flag=None, and it is not clear what for",
}  # fmt: skip
BEFORE = "import functools, numpy; odd = type('Odd', (), {'__eq__': lambda *_: len(0)})()\n"
SUM = "return Value(self.data + other.data, (self, other), (1, 1))"


@pytest.mark.parametrize(
    ("line", "changed", "reason"),
    [
        *[("data, children=(), local_grads=()):", changed, reason) for changed, reason in KEPT.items()],
        (
            "self.grad = 0\n",
            "self.grad = 0\n        self.uses = []\n",
            "its __init__ sets uses to [], another for each",
        ),
        ("self.grad = 0\n", "self.grad = 0\n        self.id = id(self)\n", "its __init__ sets id to "),
        (
            "self.grad = 0\n",
            "self.grad = 0\n        self.odd = odd\n",
            "it could not be compared: TypeError: object of type 'int' has no len()",
        ),
        ("self.grad = 0\n", "self.grad = None\n", "its grad is None, not a plain number"),
        ("self.grad = 0\n", "self.grad = 1.5\n", "its grad starts at 1.5"),
        ("self.grad = 0\n", "if data == 7: self.grad = 0\n", "its objects have no data and grad"),
        ("self.data = data\n", "self.data = 2 * data\n", "its data is 1.5 for the number 0.75"),
        ("self.data = data\n", "self.data = self.start = data\n", "its number is in data and in start"),
        ("self.data = data\n", "self.start = self.data = data\n", "its number is in start and in data"),
        (
            "self.data = data\n",
            "self.data = data; assert data == 7, 'not 7'\n",
            "constructor raises AssertionError: not 7",
        ),
        (
            "    def __add__",
            "    __init__ = functools.partialmethod(__init__)\n    def __add__",
            "it has no __init__ of its",
        ),
        (SUM, SUM.replace("(self, other)", "{self: other}"), "its _children is dict {<__main__.Value object at 0x"),
        (
            SUM,
            SUM.replace("other.data", "other.date"),
            "its operations raise AttributeError: 'Value' object has no attr",
        ),
        ("def __add__", "def plus", "its operations raise TypeError: unsupported operand type(s) for +: 'Value' and"),
        (SUM, f"print('+')\n        {SUM}", "its __add__ (line 10) does something else\n"),
        (SUM, f"{SUM} if self is not other else 'twice'", " is twice, gradwalk's -0.3342874145674397\n"),
        (
            "def __add__(self, other):",
            "def __add__(self, *given):\n        other, = given",
            "else: it takes other operands\n",
        ),
        (
            "    def backward",
            "    def relu(self):\n        out = Value(max(self.data, 0.0), (self,), (float(self.data > 0),))\n"
            "        out.__dict__['m'] = 1\n        return out\n    def backward",
            "its relu (line 18) does something else on gradwalk's nodes: relu(0) is 0.0, gradwalk's raises TypeError: "
            "gradwalk's nodes are not changed through __dict__; write node.m = 1",
        ),
        (
            "v._local_grads):\n",
            "v._local_grads):\n                setattr(v, '_children', ())\n",
            "its backward (line 18) raises AttributeError: attribute '_children' of 'Value' objects is not writable",
        ),
        (
            "        self.grad = 1\n",
            "        self.grad = 1\n        for v in topo[:-1]:\n            v.grad *= Value.__base__ is not object\n",
            "its backward (line 18) gives other gradients on gradwalk's nodes",
        ),
        ("self.data = data\n", "self.data = numpy.array(data)\n", "its data is an array; gradwalk's nodes hold single"),
        ("    def backward", "    def cut(self): self._children = ()\n    def backward", "line 18 assigns _children"),
        ("    def backward", "    def __del__(self): pass\n    def backward", "it defines __del__"),
        ("class Value:", "class Base: pass\nclass Value(Base):", "it derives from another class"),
        (
            "for v in reversed(topo):",
            "for v in topo[::-1]:\n            print(len(Value.__mro__))",
            "its backward (line 18) ",
        ),
    ],
)
def test_class_that_gradwalk_cannot_stand_in_for_is_kept(line, changed, reason):
    """A class whose objects are something else than nodes is kept, and one line says why."""
    source = MICROGPT_CLASS.replace("    __slots__ = ('data', 'grad', '_children', '_local_grads')\n", "")
    assert line in source
    write("s.py", BEFORE + source.replace(line, changed) + TELL_CLASS.replace("__[1]", "__[-1]"))
    process = with_gradwalk("s.py")
    assert process.stdout == "builtins\n"
    assert "class Value is kept, not replaced by gradwalk's: " in process.stderr
    assert reason in process.stderr
    assert process.stderr.count("\n") == 1


@pytest.mark.parametrize("inherits", [True, False])
def test_operators_of_a_class_above_are_told_of(inherits):
    """A class with a backward() and no operators, a layer say, is nobody's business."""
    operator = "def __add__(self, other): return Value(self.data + other.data)" if inherits else "pass"
    write("s.py", f"""\
        class Above:
            {operator}
        class Value(Above):
            def __init__(self, data):
                self.data = data
            def backward(self):
                pass
        print(Value.__base__.__name__)
        """)  # fmt: skip
    process = with_gradwalk("s.py")
    assert process.stdout == "Above\n"
    assert ("kept, not replaced by gradwalk's: it derives from another class" in process.stderr) == inherits
    assert bool(process.stderr) == inherits


def test_class_that_does_not_say_what_its_objects_were_computed_from_is_kept():
    write("s.py", """\
        class Value:
            def __init__(self, data):
                self.data, self.grad = data, 0.0
            def __add__(self, other):
                out = Value(self.data + other.data)
                out.parents = self, other
                return out
            def backward(self):
                self.grad = 1.0
                for parent in getattr(self, 'parents', ()):
                    parent.grad += 1.0
        print(Value.__base__)
        """)  # fmt: skip
    process = with_gradwalk("s.py")
    assert process.stdout == "<class 'object'>\n"
    assert process.stderr.endswith("gradwalk's: its objects do not say what they were computed from\n")


def test_class_that_refuses_a_node_made_by_hand_is_kept():
    """gradwalk's would take it."""
    source = LECTURE_CLASS.replace("self.data = data", "self.data = data; assert len(_children) != 1")
    write("s.py", source + TELL_CLASS)
    process = with_gradwalk("s.py")
    assert process.stdout == "builtins\n"
    assert process.stderr.endswith("its backward (line 47) treats a node made by hand in another way\n")


def test_class_is_kept_where_the_native_engine_is_not(monkeypatch):
    monkeypatch.setenv("GRADWALK_ENGINE", "reference")
    write("s.py", MICROGPT_CLASS + TELL_CLASS)
    process = with_gradwalk("s.py")
    assert process.stdout == "builtins\n"
    assert process.stderr.endswith("is kept, not replaced by gradwalk's: the native engine is not there\n")


TRACES = {  # what a class changes: how, and what shows it
    "Value.made": ("class Value:\n    made = 0\n", "Value.made += 1", "Value.made"),
    "made": ("made = []\nclass Value:\n", "made.append(self)", "len(made)"),
    "numbers": ("numbers = {}\nclass Value:\n", "numbers[data] = 1", "numbers"),
    "Value.last": ("class Value:\n", "Value.last = data", "Value.last"),
    "ids": ("import itertools\nids = itertools.count()\nclass Value:\n", "next(ids)", "next(ids)"),
    "count": ("count = 0\nclass Value:\n", "globals().update(count=count + 1)", "count"),
    "last": ("first, last = [7], [None]\nclass Value:\n", "first; last[0] = data", "first, last"),
    "of": ("first, of = {'n': 7}, {'n': 0}\nclass Value:\n", "first; of['n'] = data", "first, of"),
    "the random numbers that follow": (
        "import random\nrandom.seed(1)\nclass Value:\n", "random.random()", "random.random()"
    ),
    "the random numbers": (
        "import numpy\nnumpy.random.seed(1)\nclass Value:\n", "numpy.random.rand()", "numpy.random.rand()"
    ),
}  # fmt: skip


@pytest.mark.parametrize("named", TRACES)
def test_class_that_leaves_traces_is_kept_and_trying_it_leaves_none(named):
    """A counter counts on from where it was; gradwalk's nodes would not be counted."""
    beginning, change, shown = TRACES[named]
    script = MICROGPT_CLASS.replace("class Value:\n", beginning)
    script = script.replace("self.data = data", f"self.data = data; {change}")
    write("s.py", script + f"a = Value(2.0) + 1\nprint(a.data, {shown})\n")
    found = with_gradwalk("s.py")
    assert with_python("s.py").stdout == found.stdout
    assert f"changes {named}" in found.stderr
    assert found.stderr.endswith(", which gradwalk's would leave alone\n")


def test_what_a_class_was_given_meanwhile_is_taken_away():
    """Before the script makes its first object there is nothing of it."""
    script = MICROGPT_CLASS.replace("self.data = data", "self.data = data; Value.last = data")
    write("s.py", script + "print(hasattr(Value, 'last'))\n")
    assert with_gradwalk("s.py").stdout == "False\n"


def test_weak_references_keep_the_class():
    """Nodes of gradwalk's take none."""
    write("s.py", "import weakref\n" + LECTURE_CLASS + "a = Value(1.0)\nprint(weakref.ref(a)() is a)\n")
    assert with_gradwalk("s.py").stdout == "True\n"
