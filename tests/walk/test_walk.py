"""The walk: the same numbers as backward(), forward and back; and the mistakes it makes on purpose."""

from __future__ import annotations

import math
import random
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradwalk import composites
from gradwalk.engine import load
from gradwalk.walk import MODES, Walk, walk

WRONG = [mode for mode in MODES if mode != "right"]


def bits(number):
    """A float as its bytes: -0.0 is not 0.0, and a nan equals itself."""
    return struct.pack("<d", number)


def random_graph(seed, engine_name):
    """A root over shared nodes, aliases, constants, composites and leaves that already hold gradients."""
    rng = random.Random(seed)
    value = load(engine_name).Value
    many = composites.for_engine(engine_name)
    leaves = [value(rng.uniform(-2, 2), label=f"x{i}") for i in range(rng.randint(1, 4))]
    for leaf in leaves:
        leaf.grad = rng.choice([0.0, rng.uniform(-1, 1)])
    nodes = list(leaves)
    for _ in range(rng.randint(1, 25)):
        a, b, c = (rng.choice(nodes) for _ in range(3))
        k = rng.uniform(-2, 2)
        make = rng.choice([
            lambda a, b, c, k: a + b, lambda a, b, c, k: a * b, lambda a, b, c, k: a - k, lambda a, b, c, k: k * a,
            lambda a, b, c, k: a + a, lambda a, b, c, k: a.tanh(), lambda a, b, c, k: (a * 0.1).exp(),
            lambda a, b, c, k: a.relu(), lambda a, b, c, k: a**2, lambda a, b, c, k: a / (b * b + 1.0),
            lambda a, b, c, k: many.sum([a, b, k, a]), lambda a, b, c, k: many.dot([a, b], [c, k]),
            lambda a, b, c, k: many.softmax([a, b, c])[1], lambda a, b, c, k: many.cross_entropy([a, b, c], 2),
            lambda a, b, c, k: many.maximum([a, b, c]), lambda a, b, c, k: many.rmsnorm([a, b, c])[0],
        ])  # fmt: skip
        made = make(a, b, c, k)
        nodes.append(made if abs(made.data) < 1e3 else made.tanh())  # or the next exponential overflows
    return many.mean(nodes[len(leaves) :]) if rng.random() < 0.5 else nodes[-1]


@pytest.mark.parametrize("engine_name", ["reference", "native"])
@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_the_end_of_the_walk_is_backward(engine_name, seed):
    """On random graphs, the walk ends with the gradients of backward(), to the bit, and has changed none of its own."""
    root = random_graph(seed, engine_name)
    if seed % 2:
        root.backward()  # now interior nodes and constants hold gradients too
    walking = walk(root)
    before = [bits(node.grad) for node in walking.order]
    walking.seek(-1)
    assert before == [bits(node.grad) for node in walking.order]
    root.backward()
    assert [bits(node.grad) for node in walking.order] == [bits(walking.grad(node)) for node in walking.order]


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 2**32), mode=st.sampled_from(list(MODES)))
def test_both_engines_walk_alike(seed, mode):
    """The steps of one program on both engines have the same numbers, to the bit, in every mode."""
    ours, theirs = (walk(random_graph(seed, name), mode) for name in ("reference", "native"))
    assert len(ours) == len(theirs)
    assert ours.first_difference == theirs.first_difference
    for mine, other in zip(ours, theirs, strict=True):
        numbers = [[bits(x) for c in step.contributions for x in c[1:]] for step in (mine, other)]
        assert numbers[0] == numbers[1]


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), mode=st.sampled_from(list(MODES)), data=st.data())
def test_steps_back_undo_steps(seed, mode, data):
    """Wherever the walk goes, the gradients at a position are the same as on the first way there."""
    walking = walk(random_graph(seed, "native"), mode)
    seen = [[bits(g) for g in walking.gradients().values()]]
    while walking.next():
        seen.append([bits(g) for g in walking.gradients().values()])
    for _ in range(6):
        position = data.draw(st.integers(0, len(walking)))
        walking.seek(position)
        assert seen[position] == [bits(g) for g in walking.gradients().values()]


def test_first_step_is_the_seed(engine):
    """The first step gives the root its gradient of 1."""
    root = engine.Value(2.0) * engine.Value(3.0)
    step = walk(root)[0]
    assert (step.is_seed, step.node, step.upstream) == (True, root, 1.0)
    assert step.contributions == ((root, 1.0, 1.0, 1.0, 0.0, 1.0),)


def test_contribution_has_the_arithmetic(engine):
    """A contribution is local gradient × upstream gradient, and the child's gradient before and after."""
    x = engine.Value(3.0)
    first, second = walk(x * x)[1].contributions
    assert (x, 3.0, 1.0, 3.0, 0.0, 3.0) == tuple(first)
    assert (x, 3.0, 1.0, 3.0, 3.0, 6.0) == tuple(second)


def test_a_walk_is_lazy(engine):
    """Making a walk computes no step; asking for one computes those up to it."""
    root = engine.Value(1.0)
    for _ in range(50):
        root = root * 2.0
    walking = walk(root)
    assert walking._steps == []
    walking[3]
    assert len(walking._steps) == 4


def test_both_ends_hold(engine):
    """There is nothing after the last step and nothing before the first; seeking beyond says so."""
    walking = walk(engine.Value(1.0) * 2.0)
    assert walking.back() is None
    walking.seek(-1)
    assert walking.next() is None
    with pytest.raises(IndexError, match="from 0 to 2, got 3"):
        walking.seek(3)


def test_what_is_not_in_a_walk_is_refused(engine):
    """Another graph's node, a step after the last, a number of no step."""
    walking = walk(engine.Value(1.0) * 2.0)
    with pytest.raises(ValueError, match="grad: expected a node of this walk, got Value"):
        walking.grad(engine.Value(1.0))
    for index in (2, -3):
        with pytest.raises(IndexError, match=f"expected a step from 0 to 1, got {index}"):
            walking[index]
    for number in (1, 4):
        with pytest.raises(IndexError, match=f"expected a number from 2 to 3, got {number}"):
            walking.numbered(number)


def test_steps_are_counted_from_either_end(engine):
    """As in a list."""
    walking = walk(engine.Value(1.0) * 2.0)
    assert (walking[1], walking[0]) == (walking[-1], walking[-2])
    walking.seek(-2)
    assert walking.position == 1


def test_shown_with_where_it_stands(engine):
    root = engine.Value(1.0) * engine.Value(2.0)
    walking = walk(root, mode="assign")
    walking.seek(1)
    assert repr(walking) == "<walk of 3 nodes, 1 of 2 steps taken, mode='assign'>"
    assert repr(walking.right) == "<walk of 3 nodes, 0 of 2 steps taken>"


def test_write_gradients(engine):
    """Only write_gradients() changes the nodes, to where the walk stands."""
    x = engine.Value(3.0)
    walking = walk(x * x)
    walking.seek(-1)
    assert x.grad == 0.0
    walking.write_gradients()
    assert x.grad == 6.0


def test_a_leaf_alone(engine):
    """The walk of a leaf is the seed, which adds to what the leaf holds, as backward() does."""
    leaf = engine.Value(1.0)
    leaf.grad = 2.5
    walking = walk(leaf)
    walking.seek(-1)
    assert (len(walking), walking.grad(leaf)) == (1, 3.5)


@pytest.mark.parametrize(("mode", "after"), [("right", 3.5), ("not_reset", 3.5), ("assign", 1.0)])
def test_the_seed_of_a_leaf_that_holds_a_gradient(engine, mode, after):
    """A leaf is never reset, so only who assigns loses what it held."""
    leaf = engine.Value(1.0)
    leaf.grad = 2.5
    assert walk(leaf, mode)[0].contributions[0].after == after


@pytest.mark.parametrize("mode", MODES)
def test_a_fresh_walk_forgets_what_leaves_hold(engine, mode):
    """And is compared with one that has forgotten it, too."""
    x = engine.Value(3.0)
    unspoilt = walk(x.tanh() * 2.0, mode)
    goes_wrong = unspoilt.first_difference
    unspoilt.seek(-1)
    x.grad = 5.0
    walking = walk(unspoilt.root, mode, fresh=True)
    assert goes_wrong == walking.first_difference
    walking.seek(-1)
    assert unspoilt.gradients() == walking.gradients()


def test_zeros_keep_their_sign(engine):
    """-0.0 plus a contribution of -0.0 stays -0.0, as in backward()."""
    leaf = engine.Value(1.0)
    leaf.grad = -0.0
    walking = walk(leaf * -0.0)
    walking.seek(-1)
    assert bits(walking.grad(leaf)) == bits(-0.0)


def test_hand_written_backward_takes_part(engine):
    """An operation in micrograd's style is walked by its effect, and its gradients stay as they were."""
    a, b = engine.Value(2.0), engine.Value(5.0)
    product = engine.Value(a.data * b.data, (a, b), "mine")

    def push():
        a.grad += b.data * product.grad
        b.grad += a.data * product.grad

    product._backward = push
    root = product * 3.0
    walking = walk(root)
    walking.seek(-1)
    assert (walking.grad(a), walking.grad(b)) == (15.0, 6.0)
    assert (a.grad, b.grad, product.grad) == (0.0, 0.0, 0.0)
    assert [c.local_grad for c in walking[2].contributions] == [None, None]


def test_a_hand_written_leaf_is_a_step(engine):
    """It hands nothing on, but it is told with the gradient that it has."""
    leaf = engine.Value(2.0)
    leaf._backward = lambda: None
    walking = walk(leaf * 3.0)
    assert (leaf, 3.0, ()) == (walking[-1].node, walking[-1].upstream, walking[-1].contributions)


def test_a_node_without_local_gradients_is_refused(engine):
    """A node made by hand that cannot hand anything on raises what backward() raises."""
    root = engine.Value(1.0, (engine.Value(2.0),), "mine")
    with pytest.raises(TypeError, match="expected local_grads or an assigned _backward"):
        walk(root).seek(-1)


def test_a_deep_chain(engine):
    """A chain of 20,000 nodes is walked without recursion."""
    root = x = engine.Value(1.0)
    for _ in range(20_000):
        root = root + 0.0
    walking = walk(root)
    walking.seek(-1)
    assert walking.grad(x) == 1.0


def test_gradients_that_are_values(engine):
    """After backward(create_graph=True) a leaf's gradient is a Value; the walk starts from its number."""
    x = engine.Value(3.0)
    (x * x).backward(create_graph=True)
    root = x * 2.0
    walking = walk(root)
    walking.seek(-1)
    assert walking.grad(x) == 8.0


# ---------------------------------------------------------------- mistakes on purpose


def final(root, mode, node):
    walking = walk(root, mode)
    walking.seek(-1)
    return walking.grad(node)


def test_not_reset_is_micrograds_second_pass(engine):
    """y = x³ at 3, leaf zeroed, second pass without a reset: 45, not 27; step 1 leaves the first wrong number."""
    x = engine.Value(3.0)
    root = x * x * x
    assert (final(root, "right", x), final(root, "not_reset", x)) == (27.0, 45.0)
    assert walk(root, "not_reset").first_difference == 1


def test_assign_loses_all_but_the_last_contribution(engine):
    """With = instead of +=, a + a has gradient 1, and the step of the sum is where it goes wrong."""
    a = engine.Value(2.0)
    root = a + a
    assert (final(root, "right", a), final(root, "assign", a)) == (2.0, 1.0)
    assert walk(root, "assign").first_difference == 1


def test_breadth_first_hands_on_too_early(engine):
    """A node reached by a short way hands on before its contribution by the long way has come."""
    a = engine.Value(2.0, label="a")
    b = a * 3.0
    root = (b * 1.0).tanh() * 1.0 + b  # b is near the root on the right, far on the left
    walking = walk(root, "breadth_first")
    assert walking[walking.first_difference].node is b
    assert final(root, "breadth_first", a) == 3.0 != final(root, "right", a)


def test_breadth_first_is_right_on_a_tree(engine):
    """Where every node is used once, breadth-first order makes no difference."""
    root = (engine.Value(2.0) * engine.Value(3.0)).tanh() + engine.Value(1.0)
    assert walk(root, "breadth_first").first_difference is None


def test_of_a_step_the_first_wrong_contribution_is_numbered(engine):
    """Where the node hands on the right gradient: one that finds nothing to overwrite is right."""
    a, b = engine.Value(2.0), engine.Value(3.0)
    walking = walk(a + b * a, "assign")
    step = walking[walking.first_difference]
    assert [part.child for part in step.contributions] == [b, a]
    assert walking.first_wrong_number == walking.number(step) + 1


def test_a_nan_on_both_sides_is_no_difference(engine):
    """A gradient that is nan in the right walk as well is not where a mode went wrong."""
    x = engine.Value(2.0)
    walking = walk(x * 3.0 * math.nan, "breadth_first")
    assert walking.first_difference is None
    walking.seek(-1)
    assert math.isnan(walking.grad(x))


def test_a_nan_on_one_side_is_a_difference(engine):
    """Infinities of both signs add up to nan, unless one of them is lost."""
    x = engine.Value(1.0)
    u = x.tanh()
    walking = walk(u * math.inf + u * -math.inf, "assign")
    assert math.isnan(walking.right_step(walking[-1]).upstream)
    assert walking[walking.first_difference].contributions[0].child is u


def test_no_order_hands_on_nothing(engine):
    """Without the reversal every node hands on before it has a gradient: the first step is wrong, leaves stay at 0."""
    x = engine.Value(3.0)
    root = (x * x).relu()
    walking = walk(root, "no_order")
    assert (walking.first_difference, final(root, "no_order", x)) == (1, 0.0)
    assert (walking[1].upstream, walking.right_step(walking[1]).upstream) == (0.0, 1.0)


def test_the_right_mode_never_differs(engine):
    """The right walk has no first difference."""
    x = engine.Value(3.0)
    walking = walk(x * x + x)
    assert (walking.first_difference, walking.right) == (None, walking)


@pytest.mark.parametrize("mode", WRONG)
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_no_difference_means_the_right_gradients(mode, seed):
    """If a wrong mode reports no difference, the leaves' gradients are right but for the order of sums."""
    root = random_graph(seed, "native")
    walking = walk(root, mode)
    if walking.first_difference is None:
        walking.seek(-1)
        walking.right.seek(-1)
        for node in walking.order:
            if not node._children:
                expected = walking.right.grad(node)
                assert math.isclose(walking.grad(node), expected, rel_tol=1e-6, abs_tol=1e-6), node


def test_an_unknown_mode_is_refused(engine):
    """The error names the modes there are."""
    with pytest.raises(ValueError, match="expected a mode of right, breadth_first"):
        Walk(engine.Value(1.0), "backwards")
