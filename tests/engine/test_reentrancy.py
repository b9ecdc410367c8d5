"""Python code that runs where nobody expects it: __del__, weakrefs, gc callbacks, conversions, signals; and what an
assignment or a second __init__ may do to a node that is in use. Each runs in an interpreter of its own: a crash is
one failed test."""

from __future__ import annotations

import pytest
from measures import python

PREAMBLE = """
import gc, signal, sys, threading, weakref
import gradwalk
from gradwalk import engine
Value = engine.load("native").Value
class Sub(Value):
    pass
class Empty(Value):
    __slots__ = ()
class Finalized:
    def __init__(self, function):
        self.function = function
    def __del__(self):
        self.function()
class Label(str):
    def __del__(self):
        self.function()
def labelled(node, function):
    label = Label("label")
    label.function = function
    node.label = label
def use(count=200):
    "Build, differentiate, free."
    x = Value(0.5)
    y = x
    for _ in range(count):
        y = (y * x + 1.0).tanh()
    y.label = "y"
    y.backward()
    (x * x).backward(create_graph=True)
    return x
def many_gradients(count=200):
    "More gradients that are Values than are looked at once."
    leaves = [Value(float(i)) for i in range(count)]
    for leaf in leaves:
        leaf.grad = leaf * 2.0
    return leaves
"""

PROGRAMS = {
    "init_of_a_node_with_history": """
p = Sub(1.0)
(p * p).backward(create_graph=True)
p.__init__(3.0)
assert (p.data, p.grad, p._children) == (3.0, 0.0, ())
(p * p).backward(create_graph=True)
assert p.grad.data == 6.0
""",
    "init_among_many_gradients": """
leaves = [Sub(1.0) for _ in range(100)]
for p in leaves:
    (p * p).backward(create_graph=True)
for p in leaves[::3] + leaves[::-1]:
    p.__init__(2.0)
many_gradients()
""",
    "class_assignment": """
v = Value(1.0)
for kind in (Empty, Sub):
    for assign in (lambda: setattr(v, "__class__", kind), lambda: object.__setattr__(v, "__class__", kind),
                   lambda: object.__dict__["__class__"].__set__(v, kind),
                   lambda: setattr(kind(1.0), "__class__", Value)):
        try:
            assign()
        except TypeError:
            pass
        else:
            raise AssertionError("it was assigned")
gc.collect()
v = Value(1.0, (v,), "made")
try:
    v.__class__ = Empty
except TypeError:
    pass
gc.collect()
""",
    "class_assignment_between_stand_ins": """
from gradwalk import _native
kinds = [_native.stand_in(f"script.{name}", 0) for name in ("Node", "Other")]
kinds += [type("Derived", (kind,), {}) for kind in kinds] + [type("Bare", (kinds[0],), {"__slots__": ()}), Value, Sub]
for old in kinds:
    for new in kinds:
        for v in (old(1.0), old(1.0) * 2.0, old(1.0, (old(2.0),), "made")):
            for assign in (lambda: setattr(v, "__class__", new), lambda: object.__setattr__(v, "__class__", new),
                           lambda: object.__dict__["__class__"].__set__(v, new)):
                for _ in range(100 * (type(v) is not new)):
                    try:
                        assign()
                    except TypeError:
                        pass
                    else:
                        raise AssertionError(f"it was assigned: {old} {new}")
        del v
for kind in kinds:
    x = kind(3.0)
    (x * x).backward()
    assert x.grad == 6.0
gc.collect()
""",
    "gradients_that_change_the_next_ones_as_they_go": """
w = Value(2.0)
def add():
    w.grad += 3.0
def replace():
    w.grad = 3.0
class Going(Value):
    act = staticmethod(add)
    def __del__(self):
        self.act()
def assign(gradient):
    w.grad = gradient
compiled = gradwalk.compile(lambda x: w * x)
compiled(1.0)
optimiser = gradwalk.optim.SGD([w], 0.0)
writes = {
    "a number": (lambda: assign(5.0), 8.0), "zero_grad": (optimiser.zero_grad, 3.0),
    "backward": ((w * 1.0).backward, 5.0), "compiled": (lambda: compiled.backward(1.0), 5.0),
    "a batch": (lambda: compiled.map_backward([1.0, 2.0]), 7.0),
    "clip_gradients": (lambda: gradwalk.optim.clip_gradients([w], 0.5), 3.5),
}
for name, (write, expected) in writes.items():
    assign(Going(1.0))
    write()
    assert w.grad == expected, (name, w.grad)
Going.act = staticmethod(replace)
for gradient in (5.0, Value(5.0)):
    assign(Going(1.0))
    assign(gradient)
    assert w.grad == 3.0, w.grad
nodes = [Value(1.0), Value(1.0)]
def fail():
    nodes[0].grad = Going(1.0)
    raise KeyError
top = nodes[0] * nodes[1]
top._backward = fail
for node in nodes:
    node.grad = 7.0
Going.act = staticmethod(lambda: seen.append([node.grad for node in nodes]))
seen = []
try:
    top.backward()
except KeyError:
    pass
assert seen == [[7.0, 7.0]], seen
""",
    "what_is_dropped_in_a_compiled_call_makes_another": """
import numpy as np
from gradwalk import _native
from gradwalk.compiler.program import Instruction, Program, View
w = Value(2.0)
compiled = gradwalk.compile(lambda x: w * x)
training = gradwalk.compile(lambda x: w * w * x)
seen = []
class Going(Value):
    def __del__(self):
        seen.append((compiled(2.0).data, training(3.0).data))
w.grad = Going(1.0)
assert compiled.backward(1.0) == 2.0 and len(seen) == 1
optimiser = gradwalk.optim.Adam([w], 0.0)
for _ in range(3):
    w.grad = Going(1.0)
    training.train_step(optimiser, 1.0)
assert seen == [(4.0, 12.0)] * 4, seen
slots = np.arange(3, dtype=np.int32)
product = (Instruction("mul", 2, 1, 1, (View(1, 1, 0), View(1, 1, 1))),)
executor = _native.Executor(3, np.zeros(3), slots[:2], slots[2:], product, ())
class Leaf(Value):
    def __del__(self):
        seen.append(executor.value([], (Value(3.0), Value(4.0))))
for leaves in ((Leaf(1.0), Value(5.0)), (Leaf(2.0), Value(5.0)), np.ones(2), (Leaf(2.0), Value(5.0)), np.ones(2)):
    if isinstance(leaves, tuple):
        executor.value([], leaves)
    else:
        executor.run_batch(np.empty((1, 0)), leaves, np.empty(1))
del leaves
assert seen[4:] == [12.0] * 3, seen
""",
    "closure_dropped_that_sets_many_gradients": """
kept = []
for _ in range(20):
    out = Value(1.0) * 2.0
    out._backward = Finalized(lambda: kept.append(many_gradients())).__init__
    above = [out * float(i) for i in range(10)]
    del out, above
assert len(kept) == 20
""",
    "gradient_dropped_that_sets_many_gradients": """
kept = []
class Loud(Value):
    def __del__(self):
        kept.append(many_gradients(100))
for _ in range(20):
    leaves = many_gradients(70)
    for leaf in leaves:
        leaf.grad = Loud(1.0) * 2.0
    leaves[0].grad = 0.0
    del leaves, leaf
assert len(kept) == 20 * 70, len(kept)
""",
    "child_dropped_that_looks_at_its_parents": """
class Loud(Value):
    def __del__(self):
        many_gradients()
        gc.collect()
for _ in range(10):
    node = Value(1.0)
    for _ in range(50):
        node = gradwalk.sum([node, Loud(1.0), Loud(2.0), node * 2.0])
        node.grad = Value(1.0) * 2.0
    del node
""",
    "push_while_children_are_dropped": """
class Greedy(Value):
    def __add__(self, other):
        node.__init__(1.0)
        many_gradients()
        return Value(3.0)
for _ in range(50):
    leaves = [Value(1.0) for _ in range(5)]
    node = Sub(1.0, leaves, [1.0] * 5)
    for leaf in leaves:
        leaf.grad = Greedy(1.0)
    del leaves, leaf
    node.grad = 1.0
    node._push()
""",
    "cut_with_a_value_as_gradient": """
x = Value(2.0)
y = x * 3.0
y.grad = x * 5.0
def inside():
    assert y._children == () and y.grad.data == 10.0
    many_gradients()
    y.label = "cut"
    (y * y).backward(create_graph=True)
    return many_gradients()
Value._cut([y, y], inside)
many_gradients()
assert [child.data for child in y._children] == [2.0, 3.0] and y.label == ""
assert y.grad.data == 10.0 + 12.0, y.grad
def fails():
    y.grad = 7.0
    raise KeyError
try:
    Value._cut([x, y], fails)
except KeyError:
    pass
assert y.grad == 7.0 and len(y._children) == 2
many_gradients()
""",
    "init_of_a_cut_node": """
x = Value(2.0)
y = Sub(1.0, (x * 2.0,), (1.0,))
y._backward = lambda: None
Value._cut([y], lambda: y.__init__(1.0, (y * 2.0,), (1.0,)))
assert len(y._children) == 1 and y._children[0].data == 4.0
many_gradients()
""",
    "gc_callback_that_calls_init": """
v = Sub(1.0, [Value(float(i)) for i in range(10)], [1.0] * 10)
count = [10]
def shrink(phase, info):
    count[0] = 10 - count[0]
    v.__init__(1.0, [Value(float(i)) for i in range(count[0])], [1.0] * count[0])
gc.callbacks.append(shrink)
gc.set_threshold(1)
kept = []
for _ in range(2000):
    kept.append((v._children, v._local_grads, v._prev, v._topological_order()))
    v.backward()
    v._gradients([v])
gc.set_threshold(700)
""",
    "gc_callback_that_calls_init_while_an_attribute_is_hung_on": """
Value(0.0).foo = 1
w = Value(1.0)
w.foo = [w]
nodes, thing = [], [1]
def move(phase, info):
    if phase == "start" and not nodes:
        v.__init__(4.0)
        nodes.extend(Value(float(i), label="z") for i in range(100))
gc.callbacks.append(move)
spare = []
for make in (lambda: Value(1.0, label="x"), lambda: Value(1.0), lambda: Value(1.0) * 2.0) * 4:
    gc.disable()
    gc.set_threshold(1, 1000, 1000)
    v = make()
    spare.append([[{} for _ in range(200)], [[] for _ in range(100)]])
    nodes.clear()
    gc.enable()
    v.foo = thing
    gc.disable()
    assert v.foo is thing and not any(hasattr(node, "foo") for node in nodes)
gc.callbacks.remove(move)
gc.set_threshold(700)
""",
    "list_that_is_cleared_while_repetitions_are_found": """
from gradwalk import _native
def clear(phase, info):
    items.clear()
gc.callbacks.append(clear)
for _ in range(50):
    gc.disable()
    gc.set_threshold(1, 1000, 1000)
    items = [object()] * 5000
    spare = [[[] for _ in range(200)], [(i, i) for i in range(2300)]]
    gc.enable()
    assert len(_native.repetitions(items)) < 5000
gc.callbacks.remove(clear)
gc.set_threshold(700)
""",
    "gc_callback_during_everything": """
leaves = [Sub(0.5) for _ in range(4)]
def disturb(phase, info):
    for leaf in leaves:
        leaf.__init__(0.5)
    leaves[0].grad = leaves[1] * 2.0
    leaves[0].grad = 0.0
gc.callbacks.append(disturb)
gc.set_threshold(1)
for _ in range(300):
    total = gradwalk.sum([a * b for a in leaves for b in leaves])
    total = total + gradwalk.dot(leaves, leaves) + gradwalk.sum(gradwalk.softmax(leaves))
    total.backward()
    total._gradients(list(leaves))
    total._topological_order()
    (total * total).backward(create_graph=True)
gc.set_threshold(700)
""",
    "lists_that_shrink_while_they_are_read": """
import array
from gradwalk import _native
class Shrinking:
    def __float__(self):
        numbers.clear()
        return 1.0
    __index__ = None
import numbers as tower
tower.Real.register(Shrinking)
calls = [lambda: _native.write(numbers, array.array("d", [0.0] * 50)), lambda: Value._leaves(numbers),
         lambda: gradwalk.sum(numbers), lambda: gradwalk.dot(numbers, [1.0] * 50), lambda: gradwalk.softmax(numbers),
         lambda: gradwalk.cross_entropy(numbers, 3), lambda: gradwalk.matvec([numbers], [1.0] * 50),
         lambda: Value(1.0, numbers, [1.0] * 50), lambda: Value(1.0, [Value(1.0)] * 50, numbers),
         lambda: gradwalk.take(numbers, 0)]
for call in calls:
    numbers = [Value(1.0) if i == 40 else Shrinking() for i in range(50)]
    numbers[40] = 1.5
    try:
        call()
    except (RuntimeError, IndexError, ValueError, TypeError):
        pass
""",
    "labels_that_use_the_engine_as_they_go": """
made = []
node = Value(1.0)
for _ in range(300):
    node = node * 1.5 + 0.1
    labelled(node, lambda: made.append(use(20)))
other = node.tanh()
labelled(other, lambda: made.append(many_gradients()))
other.label = "plain"
del node, other
assert len(made) == 301
""",
    "weakrefs_that_use_the_engine": """
seen = []
for _ in range(50):
    nodes = [Sub(1.0) for _ in range(10)]
    references = [weakref.ref(node, lambda reference: seen.append(many_gradients(70))) for node in nodes]
    total = gradwalk.sum(nodes)
    total.backward(create_graph=True)
    del nodes, total
gc.collect()
assert len(seen) > 0
""",
    "finalizers_in_rings_see_whole_objects": """
seen = []
class Owner(Value):
    def __del__(self):
        self.graph.backward()
        seen.append((self.grad, len(self.graph._topological_order())))
for _ in range(10):
    owner = Owner(2.0)
    owner.graph = (owner * owner).tanh() * 3.0
    del owner
gc.collect()
assert len(seen) == 10 and len(set(seen)) == 1 and seen[0][0] != 0.0 and seen[0][1] == 5, seen
""",
    "finalizers_that_resurrect_a_ring": """
saved = []
class Owner(Value):
    def __del__(self):
        saved.append(self)
owner = Owner(2.0)
owner.graph = owner * owner
del owner
gc.collect()
assert len(saved) == 1
saved[0].graph.backward()
assert saved[0].grad == 4.0 and len(saved[0].graph._children) == 2
saved.clear()
gc.collect()
assert not any(isinstance(object, Owner) for object in gc.get_objects())
""",
    "finalizers_that_make_rings_for_ever": """
class Again(Value):
    def __del__(self):
        if not done:
            new = Again(1.0)
            new.graph = new * 2.0
done = False
first = Again(1.0)
first.graph = first * 2.0
del first
for _ in range(20):
    gc.collect()
done = True
gc.collect()
""",
    "a_look_for_rings_in_the_middle_of_freeing": """
kept = []
class Loud(Value):
    def __del__(self):
        kept.append(many_gradients(70))
for _ in range(30):
    # both are on their way out, and listed, while the other's gradient runs Python code
    a, b = Value(1.0) * 2.0, Value(1.0) * 2.0
    a.grad, b.grad = Loud(1.0) * 2.0, Loud(1.0) * 2.0
    pair = a + b
    del a, b, pair
    del kept[:]
""",
    "hand_written_code_that_changes_the_graph": """
for _ in range(20):
    x = Sub(1.0)
    middle = Sub(1.0, (x * 2.0,), (1.0,))
    top = middle * 3.0
    def change():
        middle.__init__(5.0)
        x.__init__(1.0, (top,), (1.0,))
        gc.collect()
    top._backward = change
    (top * 2.0 + x).backward()
""",
    "recording_hooks_that_keep_or_change_what_is_recorded": """
from gradwalk.control import changed
kept = []
class Loud(Value):
    def __del__(self):
        for node in kept:
            node._children, node._topological_order()
def record(node):
    kept.append(node)
with changed(no_grad=True, on_record=record):
    for _ in range(50):
        out = gradwalk.sum([Loud(1.0), Loud(2.0), 3.0])
        assert out._children == ()
""",
    "a_hook_that_takes_itself_away": """
from gradwalk.control import changed
for name in ("on_record", "on_compare", "on_read"):
    def hook(*arguments):
        block.__exit__()
        gc.collect()
    block = changed(**{name: lambda *arguments: hook()})
    block.__enter__()
    v = Value(1.0) * 2.0
    v < 3.0, v.data
    block.__exit__()
""",
    "signals_in_the_middle": """
hits = []
def handler(number, frame):
    hits.append(many_gradients(70))
    use(10)
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
for _ in range(100):
    x = use()
    labelled(x, lambda: use(5))
    del hits[:]
signal.setitimer(signal.ITIMER_REAL, 0)
x = use()
assert x.grad.data == use().grad.data
""",
    "threads_that_free_at_once": """
def work():
    for _ in range(60):
        node = use(50) * 2.0
        labelled(node, lambda: use(5))
        out = Value(1.0, (node,), "made")
        out._backward = lambda out=out: None
        (out * 2.0).backward()
sys.setswitchinterval(1e-5)
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
gc.collect()
""",
    "nodes_that_outlive_the_interpreter": """
import atexit, builtins
x = use()
owner = Sub(1.0)
owner.graph = owner * 2.0
x._backward = lambda x=x, owner=owner: None
builtins.kept = [x, owner, Finalized(lambda: None)]
atexit.register(lambda: gc.collect())
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_runs_to_its_end(name: str) -> None:
    """Whatever runs in the middle, the process goes on and the numbers are right."""
    done = python(f"{PREAMBLE}\n{PROGRAMS[name]}\nprint('done')")
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)
