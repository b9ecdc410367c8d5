"""Who refers to what: nobody holds what was refused, given back or computed with, also where only a count shows it."""

from __future__ import annotations

import contextvars
import gc
import sys
import weakref
from array import array
from collections.abc import Callable
from typing import Any

import pytest
from measures import python

from gradwalk import _native

OPTIMISERS, COMPOSITES = _native.OPTIMISERS, _native.COMPOSITES


def references(*objects: Any) -> list[int]:
    return [sys.getrefcount(each) for each in objects]


NO_NUMBER, BEYOND = object(), 10**20

WRONG: dict[str, Callable[[Any, Any], Any]] = {
    "a wrong child": lambda x, y: x.__class__(1.0, (x, y, NO_NUMBER)),
    "a wrong local gradient": lambda x, y: x.__class__(1.0, (x, y), (1.0, NO_NUMBER)),
    "too few local gradients": lambda x, y: x.__class__(1.0, (x, y), (1.0,)),
    "a wrong number": lambda x, y: x.__class__(NO_NUMBER, (x, y), "op", "label"),
    "a wrong operand": lambda x, y: x + NO_NUMBER,
    "out of the domain": lambda x, y: (x - 9.0).log(),
    "a division by zero": lambda x, y: x / 0.0,
    "a wrong comparison": lambda x, y: x < NO_NUMBER,
    "a wrong entry": lambda x, y: COMPOSITES["sum"]([x, y, NO_NUMBER]),
    "a wrong entry of many": lambda x, y: COMPOSITES["softmax"]([x, y] * 50 + [NO_NUMBER]),
    "lists of two lengths": lambda x, y: COMPOSITES["dot"]([x, y], [y]),
    "a second list that is none": lambda x, y: COMPOSITES["dot"]([x, y], NO_NUMBER),
    "a second list with a wrong entry": lambda x, y: COMPOSITES["dot"]([x, y], [y, NO_NUMBER]),
    "a wrong index": lambda x, y: COMPOSITES["cross_entropy"]([x, y], BEYOND),
    "an index that is none": lambda x, y: COMPOSITES["cross_entropy"]([x, y], NO_NUMBER),
    "a row of another length": lambda x, y: COMPOSITES["matvec"]([[x, y], [x]], [x, y]),
    "a row that is none": lambda x, y: COMPOSITES["matvec"]([[x, y], NO_NUMBER], [x, y]),
    "rows that are none": lambda x, y: COMPOSITES["matvec"](NO_NUMBER, [x, y]),
    "a row with a wrong entry": lambda x, y: COMPOSITES["matvec"]([[x, y], [y, NO_NUMBER]], [x, y]),
    "nothing to take from": lambda x, y: COMPOSITES["take"]([], x),
    "nothing to take": lambda x, y: COMPOSITES["take"]([x, y], BEYOND),
    "a wrong entry to take": lambda x, y: COMPOSITES["take"]([[x, y, NO_NUMBER], [y]], 0),
    "a leaf of no number": lambda x, y: x._leaves([1.0, 2.0, x, NO_NUMBER]),
    "a gradient by no Value": lambda x, y: (x * y)._gradients([x, y, NO_NUMBER]),
    "a cut of no Value": lambda x, y: x._cut([x, y, NO_NUMBER], dict),
    "a cut that fails": lambda x, y: x._cut([x * y, y], lambda: 1 / 0),
    "an unknown argument": lambda x, y: x.__class__(1.0, (x, y), wrong=[x, y]),
    "an unknown mode": lambda x, y: _native.Change(wrong=[x, y]).__enter__(),
    "a parameter that is no Value": lambda x, y: OPTIMISERS["sgd"]([x, y, NO_NUMBER], 0.1, 0.0, 0.0, False),
    "velocities of another length": lambda x, y: OPTIMISERS["sgd"]([x, y], 0.1, 0.9, 0.0, False, array("d", [0.0])),
    "no velocities": lambda x, y: OPTIMISERS["sgd"]([x, y], 0.1, 0.9, 0.0, False),
    "means of another length": lambda x, y: OPTIMISERS["adam"]([x, y], *[0.5] * 6, array("d", [0.0]), array("d")),
    "a gradient of no Value": lambda x, y: OPTIMISERS["zero_grad"]([x, y, NO_NUMBER]),
    "a norm of no Value": lambda x, y: OPTIMISERS["gradient_norm"]([x, y, NO_NUMBER]),
    "a scale of no Value": lambda x, y: OPTIMISERS["scale_gradients"]([x, y, NO_NUMBER], 0.5),
    "an owner that fails": lambda x, y: OPTIMISERS["gather_leaves"]({"a": [x, (y, 1)]}, [], int, len),
    "an array that is none": lambda x, y: _native.write([x, y], array("f", [0.0, 0.0])),
    "keys that fail": lambda x, y: _native.read(({"a": x}, [y, None]), [], [], (x,) * 6, len),
    "arrays of no graph": lambda x, y: _native.TRACING["flatten"]([x * y], [x, y], [None], 0),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_nobody_holds_what_was_refused(native: Any, wrong: Callable[[Any, Any], Any]) -> None:
    x, y = native.Value(0.5), native.Value(0.25)
    before = references(x, y, NO_NUMBER, BEYOND)
    for _ in range(3):
        with pytest.raises((TypeError, ValueError, IndexError, ZeroDivisionError)):
            wrong(x, y)
    assert before == references(x, y, NO_NUMBER, BEYOND)


def test_the_objects_that_everybody_shares_are_counted(native: Any) -> None:
    """A None more or less at each call is nothing that memory shows."""

    def everything() -> None:
        x, y = native.Value(0.5), native.Value(0.25)
        out = native.Value(0.5, (x, y * 2.0), (1.0, 2.0))
        out._backward = bool
        out.backward()
        out.backward(create_graph=False)
        with _native.Change(no_grad=True, on_compare="".format, on_construct="".format):
            assert not x < y
            assert x < 10**20
            assert x
            native.Value(1.0, (x,), (1.0,))
        x.log(), x._leaves([1.0]), x._gradients([x]), x.where(y, 1.0), repr(x), x._hand_written, x._constant
        OPTIMISERS["adam"]([x, y], *[0.5] * 6, array("d", [0.0] * 2), array("d", [0.0] * 2))
        OPTIMISERS["sgd"]([x, y], 0.1, 0.0, 0.0, False), OPTIMISERS["zero_grad"]([x, y])
        OPTIMISERS["scale_gradients"]([x], 0.5), OPTIMISERS["gather_leaves"]([x, {}], [], int, len)
        _native.read((x, None, ()), [], [], (None,) * 6, bool), _native.only_type([1, 2.0])

    shared = None, True, False, NotImplemented, (), ""
    everything()
    before = references(*shared)
    for _ in range(300):
        everything()
    grown = [now - then for then, now in zip(before, references(*shared), strict=True)]
    assert [0] * len(shared) == [0 if abs(more) < 200 else more for more in grown]


# ---------------------------------------------------------------- what is held for a while


@pytest.mark.parametrize("wrong", [False, True], ids=["right", "wrong"])
@pytest.mark.parametrize("name", ["adam", "sgd"])
def test_an_optimiser_lets_go_of_its_moments(native: Any, name: str, wrong: bool) -> None:
    """An array cannot grow while somebody looks into it."""
    parameters = [native.Value(0.5), native.Value(0.25)]
    moments = [array("d", [0.0, 0.0]), array("d", [0.0] * (3 if wrong and name == "adam" else 2))]
    if name == "adam":
        given: list[Any] = [parameters, *[0.5] * 6, *moments]
    else:
        given = [parameters, 0.1, 0.9, 0.0, False, array("d", [0.0, 0.0, 0.0]) if wrong else moments[0]]
        moments.append(given[-1])
    try:
        OPTIMISERS[name](*given)
    except ValueError:
        assert wrong
    for each in moments:
        each.append(1.0)
    assert all(each[-1] == 1.0 for each in moments)


def test_arrays_that_are_read_and_written_are_let_go(native: Any) -> None:
    numbers = array("d", [1.0, 2.0])
    assert [leaf.data for leaf in native.Value._leaves(numbers)] == [1.0, 2.0]
    assert _native.write([native.Value(3.0), 4], numbers)
    assert not _native.write([None, 4], numbers)
    single = array("f", [1.0])
    with pytest.raises(TypeError, match="expected an array of doubles, got one of the format f"):
        native.Value._leaves(single)
    single.append(1.0)
    numbers.append(5.0)
    assert list(numbers) == [3.0, 4.0, 5.0]


def test_a_sum_of_gradients_goes_when_the_gradient_does(native: Any) -> None:
    """Where a gradient is a Value, a pass by hand adds to it: of the sum nobody but the leaf has a hold."""
    x, gradient = native.Value(0.5), native.Value(2.0)
    before = references(gradient)
    out = x * 3.0
    out._backward = lambda: setattr(x, "grad", gradient)
    (x + out).backward()
    (x * 2.0)._push()
    x.grad = 0.0
    assert before == references(gradient)


@pytest.mark.parametrize("hung", [False, True], ids=["plain", "with an attribute"])
def test_a_cut_node_is_whole_again_and_let_go(native: Any, hung: bool) -> None:
    x, gradient = native.Value(0.5), native.Value(2.0)
    y = x * 3.0
    y.grad = gradient
    if hung:
        y.note = [x]
    before = references(x, y, gradient)
    assert native.Value._cut([y, x], lambda: {"a": len(y._children) + 1}) == {"a": 1}
    assert before == references(x, y, gradient)
    assert (x,) == y._children[:1]
    y.grad = 0.0
    assert references(gradient) == [before[2] - 1]


def test_other_nodes_may_go_while_one_is_cut(native: Any) -> None:
    """Both may be part of a ring, and stand in one list of such nodes."""
    x = native.Value(0.5)
    other, node = x * 2.0, x * 3.0
    other.note, node.note, others = [], ["kept"], [other]
    del other
    assert native.Value._cut([node], lambda: (others.clear(), node._children)) == (None, ())
    assert (node.note, node._children[0]) == (["kept"], x)


@pytest.mark.parametrize("how", ["left", "left by an exception", "dropped inside", "never entered", "entered twice"])
def test_a_block_lets_go_of_its_hooks(native: Any, how: str) -> None:
    """Also where nobody calls __exit__, as after a signal."""
    told: list[Any] = []
    x = native.Value(0.5)
    before = references(told)
    for _ in range(3):
        change = _native.Change(on_record=told.append, on_compare=lambda *_, told=told: None)
        if how != "never entered":
            change.__enter__()
            assert x * 2.0 < 3.0
        if how == "entered twice":
            with pytest.raises(RuntimeError, match="expected a new `with` block"):
                change.__enter__()
        if how.startswith(("left", "entered")):
            change.__exit__(*((None,) * 3 if how == "left" else sys.exc_info()))
        del change
    assert x * 2.0 < 3.0
    assert (3 if how != "never entered" else 0) == len(told)
    assert before == references(told)


def test_a_block_that_is_dropped_inside_another_ends(native: Any) -> None:
    """Its hook is let go, and the other goes on."""
    told: list[Any] = []
    before = references(told)

    def inside() -> None:
        outer, inner = _native.Change(on_record=told.append), _native.Change(no_grad=True)
        outer.__enter__()
        with inner:
            assert native.Value(0.5) * 2.0 == 1.0
            del outer
            assert (native.Value(0.5) * 2.0)._children == ()
        assert native.Value(0.5) * 2.0 == 1.0

    for _ in range(3):
        contextvars.copy_context().run(inside)
    assert len(told) == 3
    assert before == references(told)


def test_a_hook_that_fails_is_let_go(native: Any) -> None:
    x, failing = native.Value(0.5), {"a": 1}.__getitem__
    before = references(x, failing)
    for modes in ({"on_record": failing}, {"on_read": failing}, {"on_compare": failing}, {"on_construct": failing}):
        with pytest.raises((KeyError, TypeError)), _native.Change(**modes):
            native.Value(1.0, (x * 2.0 < 1.0, x), (1.0, repr(x)))
    del modes
    assert before == references(x, failing)


# ---------------------------------------------------------------- rings


class _Text(str):
    """A text that refers to something."""

    held: Any


@pytest.mark.parametrize("where", ["label", "_op", "grad", "_backward", "note"])
def test_a_ring_through_whatever_a_node_holds_is_collected(native: Any, where: str) -> None:
    class Sub(native.Value):
        """What can be asked whether it is still there."""

    x, text = Sub(0.5), _Text("text")
    if where == "_op":
        node = native.Value(1.0, (x,), text)
    else:
        node = native.Value(1.0, (x,), (1.0,))
        held = {"grad": x * 2.0, "_backward": lambda text=text: text}.get(where, text)
        setattr(node, where, held)
        del held
    text.held = x.held = node
    gone = weakref.ref(x)
    del node, x, text
    gc.collect()
    assert gone() is None


# ---------------------------------------------------------------- once a process


def test_what_is_looked_up_once_is_let_go() -> None:
    """The collector's callbacks, the lock of the passes, the modules they are found in."""
    code = """
import gc, sys
import gradwalk, gradwalk.errors, gradwalk.passes
def references():
    found = gc.callbacks, gradwalk.passes, gradwalk.passes.THE_PASS, gradwalk.passes.THE_PASS.lock, gradwalk.errors
    return [sys.getrefcount(each) for each in found]
def first():
    x = gradwalk.Value(0.5)
    out = gradwalk.Value(0.5, (x,), "same")
    out._backward = bool
    for _ in range(3):
        out.backward()
    x == 10**20
before = references()
first()
first()
print([now - then for then, now in zip(before, references())], sys.getrefcount(gc.callbacks[-1]))
"""
    done = python(code, GRADWALK_ENGINE="native")
    # the pass is kept, and so is the module of errors
    assert (done.stdout, done.stderr) == ("[0, 0, 1, 0, 1] 2\n", "")


def test_a_refused_node_does_not_count_as_written_by_hand() -> None:
    """The engine counts those that are: one too few, and their functions would not be called."""
    code = """
import gradwalk
x = gradwalk.Value(0.5)
for local_grads in ((1.0,), (1.0, None)):
    try:
        gradwalk.Value(1.0, (x, x), local_grads)
    except (TypeError, ValueError):
        out = gradwalk.Value(0.5, (x,), (1.0,))
        out._backward = lambda: print("called")
        out.backward()
        del out
"""
    assert python(code, GRADWALK_ENGINE="native").stdout == "called\ncalled\n"
