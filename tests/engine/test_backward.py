"""backward(): the examples everybody knows, the order of accumulation, passes after passes, constants."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from typing import Any

import pytest
from measures import bits

# ---------------------------------------------------------------- examples that must come out exactly


def test_relu_of_a_neuron(engine: Any) -> None:
    """f = relu(a·b + d) with a=2, b=-3, d=10."""
    a, b, d = engine.Value(2.0), engine.Value(-3.0), engine.Value(10.0)
    c = a * b
    e = c + d
    f = e.relu()
    f.backward()
    assert f.data == 4.0
    assert [v.grad for v in (a, b, c, d, e, f)] == [-3.0, 2.0, 1.0, 1.0, 1.0, 1.0]


def test_a_plus_a(engine: Any) -> None:
    """b = a + a gives a the gradient 2."""
    a = engine.Value(3.0)
    (a + a).backward()
    assert a.grad == 2.0


def test_a_node_used_twice(engine: Any) -> None:
    """c = a·b; d = c + a; e = d² with a=2, b=3 (the variables of the issue: e = 64)."""
    a, b = engine.Value(2.0), engine.Value(3.0)
    c = a * b
    d = c + a
    e = d**2
    e.backward()
    assert (e.data, d.grad, c.grad, a.grad, b.grad) == (64.0, 16.0, 16.0, 64.0, 32.0)


def test_one_step_by_hand(engine: Any) -> None:
    """c.grad = 1.0; c._backward() pushes one node's contributions."""
    a, b = engine.Value(2.0), engine.Value(3.0)
    c = a * b
    c.grad = 1.0
    c._backward()
    assert (a.grad, b.grad) == (3.0, 2.0)


def test_a_sum_times_a_factor(engine: Any) -> None:
    """(a+b)·c: a and b both get c; c gets a+b."""
    a, b, c = engine.Value(2.0), engine.Value(5.0), engine.Value(-4.0)
    ((a + b) * c).backward()
    assert (a.grad, b.grad, c.grad) == (-4.0, -4.0, 7.0)


def test_two_losses_that_share_interior_nodes(engine: Any) -> None:
    """Each with its own backward(): the leaves hold the exact sum."""
    a, b = engine.Value(2.0), engine.Value(3.0)
    shared = a * b
    first, second = shared * 5.0, shared**2
    first.backward()
    second.backward()
    assert (a.grad, b.grad) == (5.0 * 3.0 + 2 * 6.0 * 3.0, 5.0 * 2.0 + 2 * 6.0 * 2.0)


# ---------------------------------------------------------------- the order of accumulation


def recursive_backward(root: Any) -> dict[Any, float]:
    """The specification, by plain recursion: left-first depth-first post-order, reversed."""
    order: list[Any] = []
    seen: set[Any] = set()

    def visit(node: Any) -> None:
        if node not in seen:
            seen.add(node)
            for child in node._children:
                visit(child)
            order.append(node)

    visit(root)
    grads = dict.fromkeys(order, 0.0)
    grads[root] = 1.0
    for node in reversed(order):
        for child, local_grad in zip(node._children, node._local_grads, strict=True):
            grads[child] += local_grad * grads[node]
    return grads


def random_graph(engine: Any, seed: int, count: int) -> tuple[Any, list[Any]]:
    source = random.Random(seed)
    leaves = [engine.Value(source.uniform(-2.0, 2.0)) for _ in range(4)]
    nodes = list(leaves)
    for _ in range(count):
        a, b, c = (source.choice(nodes) for _ in range(3))
        makers: list[Callable[[], Any]] = [
            lambda a=a, b=b: a * 0.1 + b,
            lambda a=a, b=b: (a * b).tanh(),
            lambda a=a, b=b: a - b * 1e-3,
            lambda a=a: a.sin(),
            lambda a=a, b=b, c=c: engine.composites.sum([a, b, c, 0.1]),
            lambda a=a, b=b, c=c: engine.composites.dot([a, b], [c, a]).tanh(),
            lambda a=a, b=b, c=c: engine.functions.where(a, b, c),
        ]
        nodes.append(source.choice(makers)())
    root = nodes[-1]
    for node in nodes[-20:-1]:
        root = root * 0.7 + node
    return root, leaves


@pytest.mark.parametrize("seed", range(40))
def test_the_order_is_the_specified_one(engine: Any, seed: int) -> None:
    """Every gradient of a tangled graph equals, to the bit, what the recursive definition gives."""
    root, leaves = random_graph(engine, seed, 60)
    expected = recursive_backward(root)
    for leaf in leaves:
        leaf.grad = 0.0
    root.backward()
    nodes = list(expected)
    assert bits(node.grad for node in nodes) == bits(expected[node] for node in nodes)


def test_the_last_bit_depends_on_the_order(engine: Any) -> None:
    """0.1 + 0.2 + 0.3 in the order in which the walk reaches x, which is not the order of the sum."""
    x = engine.Value(1.0)
    total = (x * 0.1 + x * 0.2) + x * 0.3
    total.backward()
    assert x.grad == (0.3 + 0.2) + 0.1 != (0.1 + 0.2) + 0.3


def test_topological_order_is_left_first(engine: Any) -> None:
    """Each node after all of its children, the left one's first."""
    a, b, c = engine.Value(1.0), engine.Value(2.0), engine.Value(3.0)
    left = b * a
    right = a * c
    root = left + right
    assert root._topological_order() == [b, a, left, c, right, root]


def test_a_leaf_is_its_own_order(engine: Any) -> None:
    """backward() of a leaf gives it the gradient 1, and another 1 the second time."""
    x = engine.Value(5.0)
    x.backward()
    x.backward()
    assert (x._topological_order(), x.grad) == ([x], 2.0)


# ---------------------------------------------------------------- pass after pass


def test_backward_twice_doubles_the_leaves(engine: Any) -> None:
    """Leaves accumulate, interior gradients restart."""
    x = engine.Value(3.0)
    y = x * x
    z = y * x
    z.backward()
    once = x.grad, y.grad, z.grad
    z.backward()
    assert (x.grad, y.grad, z.grad) == (2 * once[0], once[1], once[2])


def test_the_case_micrograd_gets_wrong(engine: Any) -> None:
    """y = x³ at 3, the leaf zeroed: the second pass gives 27 again, not 45."""
    x = engine.Value(3.0)
    y = x * x * x
    y.backward()
    x.grad = 0.0
    y.backward()
    assert x.grad == 27.0


def test_stale_interior_gradients_do_not_leak(engine: Any) -> None:
    """A gradient written on an interior node, even nan, is gone at the next pass."""
    x = engine.Value(3.0)
    y = x * 2.0
    z = y * 5.0
    y.grad = math.nan
    z.grad = math.inf
    z.backward()
    assert (x.grad, y.grad, z.grad) == (10.0, 5.0, 1.0)


def test_what_the_root_does_not_reach_is_untouched(engine: Any) -> None:
    """Gradients outside the graph of the root stay as they are."""
    x = engine.Value(3.0)
    y = x * 2.0
    other = y * 7.0
    other.grad = 42.0
    y.backward()
    assert (x.grad, other.grad) == (2.0, 42.0)


def test_from_an_interior_node(engine: Any) -> None:
    """backward() may start anywhere; a pass from the root afterwards starts that node afresh."""
    x = engine.Value(3.0)
    y = x * 2.0
    z = y * 5.0
    y.backward()
    assert (x.grad, y.grad, z.grad) == (2.0, 1.0, 0.0)
    z.backward()
    assert (x.grad, y.grad, z.grad) == (12.0, 5.0, 1.0)


def test_backward_returns_nothing(engine: Any) -> None:
    """backward() is a statement."""
    assert engine.Value(1.0).backward() is None


def test_local_gradients_are_taken_at_forward_time(engine: Any) -> None:
    """Changing .data afterwards does not change them."""
    a, b = engine.Value(2.0), engine.Value(3.0)
    c = a * b
    d = c.exp()
    a.data, b.data, c.data, d.data = 100.0, 200.0, 300.0, 400.0
    d.backward()
    assert (a.grad, b.grad) == (math.exp(6.0) * 3.0, math.exp(6.0) * 2.0)


def test_a_training_loop(engine: Any) -> None:
    """Squared loss over three samples, zero the gradients, backward, step: the loss falls."""
    source = random.Random(1)
    weights = [[engine.Value(source.uniform(-1, 1)) for _ in range(3)] for _ in range(4)]
    last = [engine.Value(source.uniform(-1, 1)) for _ in range(4)]
    parameters = [w for row in weights for w in row] + last
    samples = [((1.0, 2.0), 1.0), ((-1.0, 0.5), -1.0), ((0.5, -1.0), 0.5)]

    def loss() -> Any:
        total = 0.0
        for (x, y), target in samples:
            hidden = [(row[0] * x + row[1] * y + row[2]).tanh() for row in weights]
            total = total + (sum(w * h for w, h in zip(last, hidden, strict=True)) - target) ** 2
        return total

    history = []
    for _ in range(30):
        out = loss()
        for p in parameters:
            p.grad = 0.0
        out.backward()
        for p in parameters:
            p.data -= 0.05 * p.grad
        history.append(out.data)
    assert all(later < earlier for earlier, later in itertools.pairwise(history))


# ---------------------------------------------------------------- constants

LOOKS = [False, True]


@pytest.mark.parametrize("look", LOOKS)
def test_a_plain_number_is_a_child(engine: Any, look: bool) -> None:
    """x * 2 has the children (x, 2.0), with the gradients micrograd gives, looked at before backward() or not."""
    x = engine.Value(3.0)
    y = x * 2
    if look:
        assert [child.data for child in y._children] == [3.0, 2.0]
    (y * 5.0).backward()
    assert [(child.data, child.grad) for child in y._children] == [(3.0, 10.0), (2.0, 15.0)]


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda x: x + 2, [(3.0, 1.0), (2.0, 1.0)]),
        (lambda x: 2 + x, [(2.0, 1.0), (3.0, 1.0)]),
        (lambda x: x - 2, [(3.0, 1.0), (2.0, -1.0)]),
        (lambda x: 2 - x, [(2.0, 1.0), (3.0, -1.0)]),
        (lambda x: 2 * x, [(2.0, 3.0), (3.0, 2.0)]),
        (lambda x: x / 2, [(3.0, 0.5), (2.0, -0.75)]),
        (lambda x: 6 / x, [(6.0, 1 / 3.0), (3.0, -2.0 / 3.0)]),
        (lambda x: 2**x, [(2.0, 12.0), (3.0, 8.0 * math.log(2.0))]),
        (lambda x: x.maximum(2), [(3.0, 1.0), (2.0, 0.0)]),
        (lambda x: x.where(x, 7.0), [(3.0, 1.0), (3.0, 1.0), (7.0, 0.0)]),
    ],
)
def test_constants_on_either_side(engine: Any, make: Any, expected: list[tuple[float, float]], look: bool) -> None:
    """Children stand in the order in which they are written, and constants get gradients too."""
    x = engine.Value(3.0)
    y = make(x)
    if look:
        assert [child.data for child in y._children] == [data for data, _ in expected]
    y.backward()
    assert [(child.data, child.grad) for child in y._children] == expected


def test_an_exponent_that_is_a_number_is_no_child(engine: Any) -> None:
    """x ** 2 has one child, as in micrograd."""
    x = engine.Value(3.0)
    assert (x**2)._children == (x,)


@pytest.mark.parametrize("look", LOOKS)
def test_constants_restart_at_each_pass(engine: Any, look: bool) -> None:
    """The gradient of a plain number is of the last pass, not of all."""
    x = engine.Value(3.0)
    y = x * 2
    if look:
        assert len(y._children) == 2
    y.backward()
    y.backward()
    assert [child.grad for child in y._children] == [4.0, 3.0]


def test_the_same_constant_is_shown_each_time(engine: Any) -> None:
    """The children are the same nodes whenever they are looked at."""
    y = engine.Value(3.0) * 2
    assert y._children == y._children
    assert y._children[1] in y._prev


@pytest.mark.parametrize("look", LOOKS)
def test_a_constant_has_no_gradient_before_a_pass(engine: Any, look: bool) -> None:
    """Writing a node's gradient by hand pushes nothing yet."""
    y = engine.Value(3.0) * 2
    if look:
        assert len(y._children) == 2
    y.grad = 3.0
    assert [child.grad for child in y._children] == [0.0, 0.0]


@pytest.mark.parametrize("look", LOOKS)
def test_zeroing_a_node_leaves_its_constants(engine: Any, look: bool) -> None:
    """A constant keeps its gradient of the last pass when its parent's gradient is written over."""
    y = engine.Value(3.0) * 2
    if look:
        assert len(y._children) == 2
    y.backward()
    y.grad = 0.0
    assert [child.grad for child in y._children] == [2.0, 3.0]


@pytest.mark.parametrize("look", LOOKS)
def test_pushing_twice_by_hand(engine: Any, look: bool) -> None:
    """Each _backward() adds its contributions to the constant as to any child."""
    y = engine.Value(3.0) * 2
    if look:
        assert len(y._children) == 2
    y.grad = 1.0
    y._backward()
    y._backward()
    assert [child.grad for child in y._children] == [4.0, 6.0]


@pytest.mark.parametrize("look", LOOKS)
def test_a_label_on_a_node_with_a_constant(engine: Any, look: bool) -> None:
    """Naming a node between passes does not change its constants' gradients."""
    y = engine.Value(3.0) * 2
    if look:
        assert len(y._children) == 2
    y.backward()
    y.label = "y"
    assert [child.grad for child in y._children] == [2.0, 3.0]
    y.backward()
    assert [child.grad for child in y._children] == [4.0, 3.0]


@pytest.mark.parametrize("look", LOOKS)
def test_zero_times_infinity_at_a_constant(engine: Any, look: bool) -> None:
    """A gradient of 0 at a node whose local gradient is inf hands on nothing, looked at before or after."""
    y = engine.Value(math.inf) * 2
    if look:
        assert len(y._children) == 2
    (y * 0.0).backward()
    assert y._children[1].grad == 0.0
