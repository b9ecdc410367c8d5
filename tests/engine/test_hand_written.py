"""Operations written by hand in the micrograd style, and what happens when they go wrong."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable
from typing import Any

import pytest
from measures import python, snapshot


def tanh_by_hand(engine: Any, x: Any) -> Any:
    """The lecture's tanh: a node made by hand, with a closure."""
    t = math.tanh(x.data)
    out = engine.Value(t, (x,), "tanh")

    def _backward() -> None:
        x.grad += (1 - t**2) * out.grad

    out._backward = _backward
    return out


def failing(engine: Any, x: Any, error: BaseException) -> Any:
    out = engine.Value(x.data, (x,), "failing")

    def _backward() -> None:
        x.grad += 100.0
        raise error

    out._backward = _backward
    return out


# ---------------------------------------------------------------- taking part


def test_takes_part_in_backward(engine: Any) -> None:
    """A hand-written operation among ordinary ones gives the gradients of the built-in one."""
    x, y = engine.Value(0.5), engine.Value(0.5)
    (tanh_by_hand(engine, x * 2.0) * 3.0 + x).backward()
    ((y * 2.0).tanh() * 3.0 + y).backward()
    assert x.grad == pytest.approx(y.grad, rel=1e-15)


def test_is_called_once_per_pass(engine: Any) -> None:
    """However many parents it has, and after all of them."""
    calls = []
    x = engine.Value(2.0)
    out = engine.Value(2.0, (x,), "same")
    out._backward = lambda: calls.append(out.grad)
    total = out * 3.0 + out * 4.0
    total.backward()
    total.backward()
    assert calls == [7.0, 7.0]


def test_on_the_result_of_an_ordinary_operation(engine: Any) -> None:
    """An assigned _backward replaces the operation's own."""
    x = engine.Value(2.0)
    y = x * 3.0

    def _backward() -> None:
        x.grad += 1000.0 * y.grad

    y._backward = _backward
    (y * 2.0).backward()
    assert (x.grad, y.grad) == (2000.0, 2.0)


def test_wrapping_the_operations_own(engine: Any) -> None:
    """The old _backward can be called from the new one."""
    seen = []
    x = engine.Value(2.0)
    y = x**3
    own = y._backward

    def _backward() -> None:
        own()
        seen.append((y.grad, x.grad))

    y._backward = _backward
    y.backward()
    assert (x.grad, seen) == (12.0, [(1.0, 12.0)])


def test_on_a_leaf(engine: Any) -> None:
    """A leaf's _backward is called when its gradient is complete."""
    seen = []
    x = engine.Value(2.0)
    x._backward = lambda: seen.append(x.grad)
    (x * x).backward()
    assert seen == [4.0]


def test_on_the_root(engine: Any) -> None:
    """The root's gradient is 1 when its _backward is called."""
    seen = []
    y = engine.Value(2.0) * 3.0
    y._backward = lambda: seen.append(y.grad)
    y.backward()
    assert seen == [1.0]


def test_can_be_called_by_hand(engine: Any) -> None:
    """out._backward is the assigned function itself."""
    x = engine.Value(0.5)
    out = tanh_by_hand(engine, x)
    out.grad = 2.0
    out._backward()
    assert x.grad == (1 - math.tanh(0.5) ** 2) * 2.0


def test_may_replace_itself_while_it_runs(engine: Any) -> None:
    """A _backward that assigns a new one finishes; the next pass uses the new one."""
    calls = []
    x = engine.Value(1.0)
    out = engine.Value(1.0, (x,), "changing")

    def second() -> None:
        calls.append("second")

    def first() -> None:
        calls.append("first")
        out._backward = second
        gc.collect()
        calls.append("still first")

    out._backward = first
    out.backward()
    out.backward()
    assert calls == ["first", "still first", "second"]


def test_lecture_style_class_of_operations(engine: Any) -> None:
    """A chain of hand-written operations over many values, as in a lecture's notebook."""
    xs = [engine.Value(0.1 * i) for i in range(10)]

    def add(a: Any, b: Any) -> Any:
        out = engine.Value(a.data + b.data, (a, b), "+")

        def _backward() -> None:
            a.grad += out.grad
            b.grad += out.grad

        out._backward = _backward
        return out

    total = xs[0]
    for x in xs[1:]:
        total = add(total, tanh_by_hand(engine, x))
    total.backward()
    assert [x.grad for x in xs] == [1.0] + [1 - math.tanh(x.data) ** 2 for x in xs[1:]]


def test_gradients_that_are_values(engine: Any) -> None:
    """A closure that computes with Values (x.grad += out * out.grad) loses no contribution, in any order."""
    for first in (True, False):
        x = engine.Value(2.0)
        out = engine.Value(math.exp(2.0), (x,), "exp")

        def _backward(x: Any = x, out: Any = out) -> None:
            x.grad += out * out.grad

        out._backward = _backward
        (out + x * 3.0 if first else x * 3.0 + out).backward()
        assert getattr(x.grad, "data", x.grad) == math.exp(2.0) + 3.0


def test_interior_gradients_that_are_values(engine: Any) -> None:
    """A Value as an interior gradient is handed on as its number, and is gone at the next pass."""
    x = engine.Value(2.0)
    inner = x * 5.0
    out = engine.Value(1.0, (inner,), "one")

    def _backward() -> None:
        inner.grad = inner.grad + engine.Value(3.0)

    out._backward = _backward
    for _ in range(2):
        x.grad = 0.0
        out.backward()
        assert x.grad == 15.0
        assert type(x.grad) is float


def test_a_gradient_that_is_a_value_is_pushed_as_its_number(engine: Any) -> None:
    """One step by hand, too, hands on a number."""
    x = engine.Value(2.0)
    out = x * 5.0
    out.grad = engine.Value(3.0)
    out._backward()
    assert (15.0, float) == (x.grad, type(x.grad))


def test_must_be_callable(engine: Any) -> None:
    """_backward = 3 is refused."""
    with pytest.raises(TypeError, match="_backward: expected a function without arguments, got 3"):
        engine.Value(1.0)._backward = 3


# ---------------------------------------------------------------- without local gradients


def test_a_node_by_hand_without_gradients_is_refused(engine: Any) -> None:
    """Children, but neither local gradients nor a _backward: backward() says so."""
    x = engine.Value(2.0)
    out = engine.Value(4.0, (x,), "square", "out")
    text = (
        "backward: expected local_grads or an assigned _backward on the node made by hand as 'square' "
        r"\(node 'out'\), got neither; its children would get no gradient"
    )
    with pytest.raises(TypeError, match=text):
        out.backward()
    with pytest.raises(TypeError, match=text):
        out._backward()


@pytest.mark.parametrize("with_careful_node", [False, True])
def test_a_refused_pass_leaves_every_gradient(engine: Any, with_careful_node: bool) -> None:
    """The graph is as it was before: leaves, interior nodes, root."""
    kept = tanh_by_hand(engine, engine.Value(1.0)) if with_careful_node else None
    x, y = engine.Value(2.0), engine.Value(3.0)
    inner = x * y
    bad = engine.Value(4.0, (inner,), "square")
    root = bad * x + y.exp() * bad
    for i, node in enumerate(root._topological_order()):
        node.grad = 10.0 + i
    before = snapshot(root)
    with pytest.raises(TypeError):
        root.backward()
    assert snapshot(root) == before
    del kept


def test_a_refused_pass_leaves_every_gradient_of_an_otherwise_plain_process(engine: Any) -> None:
    """The same where no hand-written _backward was ever assigned, in a process of its own."""
    code = f"""
from gradwalk import engine
Value = engine.load({engine.name!r}).Value
x = Value(2.0)
inner = x * 3.0
root = Value(5.0, (inner,), "square") * x
x.grad, inner.grad, root.grad = 7.0, 8.0, 9.0
try:
    root.backward()
except TypeError:
    print(x.grad, inner.grad, root.grad)
"""
    assert python(code).stdout == "7.0 8.0 9.0\n"


def test_a_refused_pass_can_be_repeated(engine: Any) -> None:
    """After the missing _backward is given, the same graph works."""
    x = engine.Value(2.0)
    bad = engine.Value(4.0, (x,), "square")
    root = bad * 3.0 + x
    with pytest.raises(TypeError):
        root.backward()

    def _backward() -> None:
        x.grad += 2 * x.data * bad.grad

    bad._backward = _backward
    root.backward()
    assert x.grad == 13.0


def test_a_leaf_made_with_an_op_needs_nothing(engine: Any) -> None:
    """Without children there is nothing to push."""
    x = engine.Value(2.0, (), "input")
    (x * 3.0).backward()
    assert (x._op, x.grad) == ("input", 3.0)


# ---------------------------------------------------------------- exceptions


@pytest.mark.parametrize("error", [KeyError("mine"), KeyboardInterrupt(), SystemExit(3)], ids=repr)
def test_an_exception_comes_through_unchanged(engine: Any, error: BaseException) -> None:
    """The very exception that the hand-written _backward raised."""
    root = failing(engine, engine.Value(1.0) * 2.0, error) + 1.0
    with pytest.raises(type(error)) as caught:
        root.backward()
    assert caught.value is error


def test_an_exception_leaves_every_gradient(engine: Any) -> None:
    """Everything is put back: data and gradients of leaves, interior nodes, constants and the root."""
    x, y = engine.Value(2.0), engine.Value(3.0)
    inner = x * y
    root = (failing(engine, inner, KeyError("no")) + inner * y) * 2.0 + x.exp()
    for i, node in enumerate(root._topological_order()):
        node.grad = 10.0 + i
    before = snapshot(root)
    with pytest.raises(KeyError):
        root.backward()
    assert snapshot(root) == before


def test_an_exception_leaves_gradients_that_are_values(engine: Any) -> None:
    """A gradient from create_graph is still a Value, the same one, after a pass that failed."""
    x = engine.Value(2.0)
    (x**3).backward(create_graph=True)
    gradient = x.grad
    with pytest.raises(KeyError):
        failing(engine, x, KeyError("no")).backward()
    assert x.grad is gradient


def test_a_pass_after_an_exception(engine: Any) -> None:
    """The next pass over the same nodes gives what it would have given."""
    x = engine.Value(2.0)
    inner = x * 3.0
    bad = failing(engine, inner, KeyError("no"))
    root = bad + inner
    with pytest.raises(KeyError):
        root.backward()
    bad._backward = lambda: None
    root.backward()
    assert (x.grad, inner.grad) == (3.0, 1.0)


# ---------------------------------------------------------------- backward() inside a _backward


def nested(engine: Any, x: Any, inside: Callable[[], None]) -> Any:
    out = engine.Value(x.data, (x,), "nested")

    def _backward() -> None:
        inside()
        x.grad += out.grad

    out._backward = _backward
    return out


def test_backward_inside_a_hand_written_backward(engine: Any) -> None:
    """On another graph, it gives that graph's gradients and leaves the outer pass right."""
    x, other = engine.Value(2.0), engine.Value(5.0)

    def inside() -> None:
        (other * other).backward()

    out = nested(engine, x * 3.0, inside)
    (out * 2.0 + x).backward()
    assert (x.grad, other.grad) == (7.0, 10.0)


def test_backward_inside_on_shared_leaves(engine: Any) -> None:
    """Contributions of the inner pass to shared leaves stay."""
    x = engine.Value(2.0)

    def inside() -> None:
        (x * x).backward()

    (nested(engine, x * 3.0, inside) * 2.0).backward()
    assert x.grad == 6.0 + 4.0


def test_backward_inside_through_the_same_nodes(engine: Any) -> None:
    """An inner pass through nodes of the outer walk visits all of them: no mark is left over."""
    x = engine.Value(2.0)
    inner = x * 3.0
    once = []

    def inside() -> None:
        (inner * inner).backward()
        once.append((x.grad, inner.grad))

    (nested(engine, inner, inside) + x).backward()
    assert once == [(1.0 + 2 * 6.0 * 3.0, 12.0)]


def test_backward_nested_deeply(engine: Any) -> None:
    """A pass inside a pass inside a pass …"""
    x = engine.Value(1.0)

    def level(depth: int) -> None:
        if depth:
            nested(engine, x * 1.0, lambda: level(depth - 1)).backward()

    level(30)
    assert x.grad == 30.0


def test_an_exception_in_the_inner_pass(engine: Any) -> None:
    """It goes through both passes, and both graphs are as they were."""
    x, other = engine.Value(2.0), engine.Value(5.0)
    x.grad, other.grad = 3.0, 4.0

    def inside() -> None:
        failing(engine, other, KeyError("inner")).backward()

    root = nested(engine, x * 3.0, inside) * 2.0
    with pytest.raises(KeyError):
        root.backward()
    assert (x.grad, other.grad, root.grad) == (3.0, 4.0, 0.0)


# ---------------------------------------------------------------- both engines alike


def test_a_number_that_is_shown_in_the_middle_of_a_second_pass(engine: Any) -> None:
    """Its gradient is that of the last pass, without what had come to the node by then."""
    x = engine.Value(2.0)
    product = x * 3.0
    half = engine.Value(product.data * 0.5, (product,), "half")

    def push() -> None:
        product.grad += 0.5 * half.grad

    half._backward = push
    once, twice = abs(product), product * half
    once.backward()
    twice.backward()
    assert (product.grad, product._children[1].grad, x.grad) == (6.0, 12.0, 3.0 + 18.0)


def test_both_engines_give_the_same_numbers(reference: Any, native: Any) -> None:
    """A tangle of hand-written and ordinary operations, to the bit."""

    def tangle(engine: Any) -> list[tuple[int, int]]:
        a, b = engine.Value(0.3), engine.Value(-0.7)
        c = tanh_by_hand(engine, a * b)
        d = tanh_by_hand(engine, c * 0.1 + a) * c + b * 0.2
        e = engine.Value(d.data * 2, (d, c), (2.0, 0.3)) + engine.composites.dot([a, c], [d, 0.1])
        e.backward()
        e.backward()
        return snapshot(e)

    assert tangle(reference) == tangle(native)


@pytest.mark.parametrize(
    "before",
    [
        "native.COMPOSITES['sum']([x, x, x])",
        "native.COMPOSITES['sum']([x, x, x]).backward(create_graph=True); x.grad = 0.0",
        "by_hand(x, []).backward(); x.grad = 0.0",
        "refused(lambda: native.Value(1.0, (x, x), (1.0,)))",
        "refused(lambda: native.Value(1.0, (x, x, 'y'), (1.0,)))",
    ],
)
def test_is_called_whatever_has_come_and_gone_before(before: str) -> None:
    """Nodes that were freed, and those that were refused, do not count any more."""
    done = python(f"""
from gradwalk import engine
native = engine.load("native")

def refused(call):
    try:
        call()
    except (TypeError, ValueError):
        return
    raise AssertionError("it was taken")

def by_hand(x, calls):
    node = native.Value(x.data, (x,), (1.0,))
    node._backward = lambda: calls.append(1)
    return node

x, calls = native.Value(2.0), []
{before}
by_hand(x, calls).backward()
print(calls, x.grad)
""")
    assert (done.stdout, done.returncode) == ("[1] 0.0\n", 0), done.stderr
