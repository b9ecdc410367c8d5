"""Every nth allocation fails, for each n: a MemoryError, and afterwards a process that computes as before."""

from __future__ import annotations

import os

import pytest
from measures import python

pytest.importorskip("_testcapi")

ALLOCATING = {"PYTHONMALLOC": "malloc", "COVERAGE_PROCESS_CONFIG": ""}  # what measures coverage does not survive it
MOST = 3000 if os.environ.get("GRADWALK_SOAK") else 120

PREAMBLE = """
import ctypes, gc, sys, _testcapi
import gradwalk
from gradwalk import engine
Value = engine.load("native").Value
class Sub(Value):
    pass
def expected():
    x = Value(0.5)
    y = (x * x + 1.0).tanh() * x
    y.backward()
    return x.grad, y.data
right = expected()
def fails(work, nth):
    failed = False
    _testcapi.set_nomemory(nth, nth + 1)
    try:
        work()
    except MemoryError:
        failed = True
    finally:
        _testcapi.remove_mem_hooks()
    return failed
def sweep(work, look=lambda nth: None):
    "Until no allocation is left to fail."
    work()
    for nth in range(MOST):
        failed = fails(work, nth)
        assert expected() == right, nth
        look(nth)
        if not failed and nth > 60:
            break
    gc.collect()
"""

WORK = {
    "operations": """
def work():
    x = Value(0.5)
    y = x
    for _ in range(5):
        y = (y * x + 2.0).tanh() ** 2.0
    y.label = "y"
    y.backward()
    return y._children, y._local_grads, y._topological_order(), repr(y), x._scope
""",
    "composites": """
def work():
    xs = [Value(float(i)) for i in range(70)]
    out = gradwalk.sum([*gradwalk.softmax(xs), gradwalk.dot(xs, xs), gradwalk.cross_entropy(xs, 3), gradwalk.norm(xs)])
    (out + gradwalk.where(xs[0], xs[1], 2.0)).backward()
    return out._gradients(xs)
""",
    "by hand": """
def work():
    x = Value(0.5)
    out = Value(1.0, (x,), "made", label="l")
    def push():
        x.grad += out.grad
    out._backward = push
    y = x * 2.0
    y._backward = lambda: (y, push)
    sub = Sub(1.0, (out, y), (1.0, 2.0))
    sub.graph = sub * 2.0
    sub.graph.backward()
    sub.__init__(2.0)
""",
    "create_graph": """
def work():
    xs = [Value(0.5) for _ in range(70)]
    out = gradwalk.dot(xs, xs).tanh()
    out.backward(create_graph=True)
    xs[0].grad.backward()
    Value._cut([out], lambda: out.grad)
""",
    "collected": """
def work():
    for _ in range(3):
        x = Value(0.5)
        x._backward = lambda x=x: x
        x.grad = x * 2.0
    gc.collect()
""",
    "compiled": """
f = gradwalk.compile(lambda x, y: (x * y + x).tanh() * y)
def work():
    x, y = gradwalk.Value(0.5), gradwalk.Value(0.25)
    f(x, y).backward()
    f.value_and_grad(0.5, 0.25)
""",
    "directions": """
import numpy as np
from gradwalk.compiler.program import Instruction, View
slots = [np.array(numbers, np.int32) for numbers in ([0, 1], [2])]
program = 3, np.zeros(3), *slots, (Instruction("mul", 2, 1, 1, (View(1, 1, 0), View(1, 1, 1))),), ()
def work():
    executor = gradwalk._native.Executor(*program)
    along = np.array([3.0]), (), np.array([[1.0], [2.0]]), np.zeros((2, 1))
    try:
        executor.run_directions(*along)
    except MemoryError:
        pass
    executor.run_directions(*along)  # nobody holds it any more
    assert along[-1].tolist() == [[3.0], [6.0]]
""",
    "optimisers": """
from gradwalk.optim import Adam, SGD
def work():
    xs = [gradwalk.Value(0.5) for _ in range(5)]
    for optimiser in (Adam(xs, lr=0.1), SGD(xs, lr=0.1, momentum=0.9)):
        gradwalk.dot(xs, xs).backward()
        optimiser.step()
        optimiser.zero_grad()
""",
}

# what calls no function that is written in Python: where there is no memory for its frame, Python itself loses some
LOSSLESS = """
LEAVES = [Value(0.01 * i) for i in range(70)]
c = gradwalk._native.COMPOSITES
class Malloc(ctypes.Structure):
    _fields_ = [(str(i), ctypes.c_size_t) for i in range(10)]
mallinfo = getattr(ctypes.CDLL(None), "mallinfo2", Malloc)  # where the library of C does not say, 0
mallinfo.restype = Malloc
def used():
    "How many bytes are allocated."
    return getattr(mallinfo(), "7")
def references():
    return [sys.getrefcount(leaf) for leaf in LEAVES]
def grown(nth):
    before = used()
    for _ in range(3):
        fails(work, nth)
    return used() - before
def look(nth):
    "What is lost is lost each time; other things come and go, and what Python keeps to be used again fills up."
    assert references() == before, nth
    assert any(grown(nth) <= 0 for _ in range(99)), nth
gc.disable()  # it lets go of what is kept to be used again
"""

EXACT = {
    "operations": """
def work():
    x, other = LEAVES[:2]
    y = x
    for _ in range(5):
        y = (y * x + 2.0).tanh() ** 2.0
    y = y.where(other, 1.0) + y.clamp(0.0, 1.0)
    y.label = "y"
    y.backward()
    y._push()
    return y._children, y._local_grads, y._topological_order(), repr(y), x._scope, y._prev, y._op, (x**3)._parameters
""",
    "composites": """
def work():
    out = c["sum"]([1.0, *c["softmax"](LEAVES * 2), c["dot"](LEAVES, LEAVES), c["norm"](LEAVES)])
    out = c["sum"](c["matvec"]([LEAVES[:2], (out, 1.0)], [out, 2.0]))
    c["take"]([[out, 1.0], LEAVES[:2]], index=0), c["take"](LEAVES, 0), Value._leaves([1.0, 2.0, 3])
    return out._gradients(LEAVES)
""",
    "constructed": """
def work():
    x, y = LEAVES[:2]
    made = Value(1.0, children=[x, 2.0], local_grads=[1.0, 2.0], label="made")
    made.note, made.one_more = [1.0], 1
    del made.note
    made.__init__(2.0, (y,), (1.0,), "op")
    Value._cut([made, y], dict)
    leaf = Value(1.0)
    leaf.grad = x
    (leaf * 2.0)._push()
    return made._attributes, made._hand_written, made._op, Value(1.0, [x, y], [1.0, 1.0])
""",
    "blocks": """
outside = gradwalk.modes.VARIABLE.get()
hook = "".format  # whatever it is given
def work():
    x = LEAVES[0]
    try:
        with gradwalk._native.Change(no_grad=True, on_compare=hook, on_construct=hook):
            with gradwalk._native.Change(on_record=hook, scope=7):
                y = (x * 2.0).tanh()
            y < 1, bool(y), y == x, Value(1.0, (x,), (1.0,)), c["sum"]([x, y])
            assert y._children == ()
    finally:
        assert gradwalk.modes.VARIABLE.get() is outside
""",
    "a graph as arrays": """
tracing = gradwalk._native.TRACING
x, y = LEAVES[:2]
nodes = [node for node in ((x * y + 2.0).clamp(0.0, 1.0) + 3.0)._topological_order() if node._children]
def work():
    return tracing["flatten"](nodes, [x], nodes[-1:], 1), tracing["op_names"]()
""",
    "structures": """
holders = [[] for _ in range(40)] * 2
def work():
    x, y = LEAVES[:2]
    given = (1.0, [1, 2], [x, y], (x, 1.0), {"a": x, "b": [1.0]}, {1: 2.0}, None)
    gradwalk._native.read(given, [], [], ("row", "sequence", "mapping", "float", "int", "value"), id)
    return gradwalk._native.repetitions(holders)
""",
    "optimisers": """
from array import array
means, squares, optimisers = array("d", [0.0] * 70), array("d", [0.0] * 70), gradwalk._native.OPTIMISERS
def work():
    optimisers["adam"](LEAVES, 0.9, 0.999, 0.1, 1.0, 1e-8, 1.0, means, squares)
    optimisers["sgd"](LEAVES, 0.1, 0.9, 0.1, True, means)
    optimisers["zero_grad"](LEAVES), optimisers["gradient_norm"](LEAVES), optimisers["scale_gradients"](LEAVES, 0.5)
    optimisers["gather_leaves"]({"a": LEAVES, "b": (LEAVES, 1.0)}, [], int, id)
""",
}


# the room for an order is kept, and doubles: there is nothing to fail but where a graph is twice as long as any before
LONGER = """
WAYS = {
    "backward": lambda x, y: y.backward(),
    "order": lambda x, y: len(y._topological_order()),
    "gradients": lambda x, y: y._gradients([x])[0],
    "by hand": lambda x, y: setattr(x, "_backward", int) or y.backward(),
    "in a script": lambda x, y: y.backward(),
}
def chain(length, cls):
    x = y = cls(1.0)
    for _ in range(length):
        y = y + x
    return x, y
def once():
    found[0] = way(x, y)  # a list that grows would fail after the pass
for power, (name, way) in enumerate(WAYS.items()):
    length, found, failed = 1500 << power, [None], 0
    x, y = chain(length, gradwalk._native.stand_in("script.Value", 0) if name == "in a script" else Value)
    while fails(once, failed):
        failed += 1
    assert failed >= 2, name
    assert (found[-1] or x.grad) == length + 1.0, (name, found, x.grad)
    x._backward = x._push
# what leaves no trace puts gradients aside, and back
x, y = chain(200, Value)
y.backward()
nodes = y._topological_order()
before, failed = [node.grad for node in nodes], 0
while fails(lambda: found.append(y._gradients([x])), failed):
    failed += 1
    assert [node.grad for node in nodes] == before, failed
assert (failed >= 2, found[-1], [node.grad for node in nodes]) == (True, [201.0], before)
# so do many nodes that may be part of a ring
failed, held = 0, []
def watched():
    while len(held) < 200:
        node = Value(1.0)
        node.grad = node * 2.0
        held.append(node)
while fails(watched, failed):
    failed += 1
assert failed >= 2
assert [node.grad.data for node in held] == [2.0] * 200
print("done")
"""


ALONE = """
import _testcapi
for nth in range(60):
    _testcapi.set_nomemory(nth, nth + 1)
    try:
        functions = [lambda x=x: x for x in range(9)]
    except MemoryError:
        pass
    finally:
        _testcapi.remove_mem_hooks()
"""


@pytest.fixture(scope="module", autouse=True)
def _a_python_that_survives_it() -> None:
    """Some do not, 3.12.3 for one: where there is no memory for a function it crashes by itself."""
    if python(ALONE, **ALLOCATING).returncode < 0:
        pytest.skip("this Python crashes where an allocation fails, also without gradwalk")


@pytest.mark.parametrize("name", WORK)
def test_every_allocation_fails_once(name: str) -> None:
    """No crash, no wrong number afterwards, whichever allocation it was."""
    code = PREAMBLE.replace("MOST", str(MOST)) + WORK[name] + "\nsweep(work)\nprint('done')"
    done = python(code, GRADWALK_ENGINE="native", **ALLOCATING)
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr[-2000:]


@pytest.mark.parametrize("name", EXACT)
def test_whatever_fails_nothing_is_left_behind(name: str) -> None:
    """What was allocated until then is free again, and nobody refers to what it was computed from."""
    code = PREAMBLE.replace("MOST", str(MOST)) + LOSSLESS + EXACT[name]
    code += "\nwork()\nbefore = references()\nsweep(work, look)\nprint('done')"
    done = python(code, GRADWALK_ENGINE="native", **ALLOCATING)
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr[-2000:]


def test_a_pass_over_a_longer_graph_fails_and_is_repeated() -> None:
    """Nothing is marked any more, nothing was added: the next pass comes to the same as the first would have."""
    done = python(PREAMBLE.replace("MOST", "0") + LONGER, GRADWALK_ENGINE="native", **ALLOCATING)
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr[-2000:]


UNLOCKED = """
import threading
from gradwalk.passes import THE_PASS
def in_another_thread(work):
    found = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]
def look(nth):
    assert in_another_thread(lambda: THE_PASS.lock.acquire(timeout=10.0) and not THE_PASS.lock.release()), nth
"""


def test_a_pass_that_fails_gives_its_lock_back() -> None:
    """A node has a _backward of its own, so that the pass takes the lock that all threads share."""
    code = PREAMBLE.replace("MOST", str(MOST)) + WORK["by hand"] + UNLOCKED + "\nsweep(work, look)\nprint('done')"
    done = python(code, GRADWALK_ENGINE="native", **ALLOCATING)
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr[-2000:]


FORGOTTEN = {
    "grad": """
w = Value(0.5)
def work():
    return gradwalk.grad(lambda x: x[0] * x[1] * w)([1.0, 2.0])
""",
    "checkpoint": """
square = gradwalk.checkpoint(lambda x: x * x)
def work():
    square(Value(0.5)).backward()
""",
}


@pytest.mark.parametrize("engine_name", ["native", "reference"])
@pytest.mark.parametrize("name", FORGOTTEN)
def test_what_was_differentiated_is_forgotten(name: str, engine_name: str) -> None:
    """A leaf that a derivative was taken by can be copied and pickled again."""
    code = PREAMBLE.replace("MOST", "400") + "Value = gradwalk.Value\n" + FORGOTTEN[name]
    code += "\ndef look(nth):\n    assert not gradwalk.control.differentiated, nth\nsweep(work, look)\nprint('done')"
    done = python(code, GRADWALK_ENGINE=engine_name, **ALLOCATING)
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr[-2000:]
