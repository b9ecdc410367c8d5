"""custom_op: checked on first use, part of every mode; checkpoint: the same gradients, fewer nodes."""

from __future__ import annotations

import dataclasses
import math
import pickle
import random
from typing import Any

import numpy as np
import pytest

from gradwalk import Value, grad, hvp, jacobian
from gradwalk.blame import detect_nonfinite
from gradwalk.control import no_grad
from gradwalk.custom import checkpoint, custom_op
from gradwalk.engine import topological_order

# ---------------------------------------------------------------- custom_op


def test_a_custom_op_is_a_node(engine: Any) -> None:
    """With its name, its children and their local gradients; plain numbers are constants."""
    f = custom_op(lambda x, y: x * x * y, lambda x, y, out: (2.0 * x * y, x * x), name="xxy")
    x = engine.Value(3.0)
    out = f(x, 5.0)
    out.backward()
    assert (out.data, out._op, x.grad, out._local_grads) == (45.0, "xxy", 30.0, (30.0, 9.0))
    assert f(3.0, 5.0) == 45.0


def test_as_a_decorator() -> None:
    """The function's own name names the operation; one input may return its local gradient bare."""

    @custom_op(local_grads=lambda x, out: 3.0 * x * x)
    def cube(x: float) -> float:
        """x to the third."""
        return x**3

    assert cube(Value(2.0))._op == "cube"
    assert cube.__doc__ == "x to the third."
    assert grad(cube)(2.0) == 12.0


@pytest.mark.parametrize("wrong", [lambda x, out: -math.cos(x), lambda x, out: 1.01 * math.cos(x), lambda x, out: 0.0])
def test_a_wrong_local_gradient_is_found_on_first_use(wrong: Any) -> None:
    """The error has the operation, the point, the claim and the measurement; check=False lets it pass."""
    with pytest.raises(
        ValueError, match=r"sine: local gradient 0 at \(0\.7\) is .* central differences give 0\.7648421873"
    ):
        custom_op(math.sin, wrong, name="sine")(Value(0.7))
    assert custom_op(math.sin, wrong, check=False)(Value(0.7)).data == math.sin(0.7)


def test_it_is_checked_once() -> None:
    """The forward function is not called again for differences after the first use; at a kink it is put off."""
    calls = []

    def forward(x: float) -> float:
        calls.append(x)
        return abs(x)

    f = custom_op(forward, lambda x, out: math.copysign(1.0, x))
    f(Value(0.0))
    before = len(calls)
    f(Value(1.0))
    assert len(calls) > before + 1
    before = len(calls)
    f(Value(2.0))
    assert len(calls) == before + 1


def test_what_is_outside_the_domain_is_not_compared() -> None:
    """Differences close to where forward raises take only the steps that stay inside, and find what is wrong."""
    with pytest.raises(ValueError, match=r"log: local gradient 0 at \(0\.0001\) is 20000\.0, .* give 10000 ±"):
        custom_op(math.log, lambda x, out: 2.0 / x)(Value(1e-4))
    assert custom_op(math.log, lambda x, out: 1.0 / x)(Value(1e-4))._local_grads == (1e4,)


def test_functions_that_do_not_tell_their_parameters() -> None:
    """A builtin is called as it is."""
    larger = custom_op(max, lambda x, y, out: (float(x == out), float(y == out)))
    assert grad(larger, argnums=(0, 1))(3.0, 4.0) == (0.0, 1.0)
    assert custom_op(lambda x: x, max, check=False)(Value(1.0))._local_grads == (1.0,)
    with pytest.raises(TypeError, match=r"^'float' object is not an iterator$"):
        custom_op(lambda x: x, next)(Value(1.0))


def test_its_name_is_pickled_as_a_text() -> None:
    """What a node shows as its operation may be written down; its functions stay."""
    name = pickle.loads(pickle.dumps(custom_op(math.sin, lambda x, out: math.cos(x))(Value(1.0))._op))
    assert (type(name), name) == (str, "sin")


def test_modes_apply() -> None:
    """Nothing is recorded inside no_grad(); detect_nonfinite() sees it."""
    f = custom_op(lambda x: x * 1e300, lambda x, out: 1e300)
    with no_grad():
        assert f(Value(1.0))._children == ()
    with pytest.raises(FloatingPointError, match="made inf"), detect_nonfinite():
        custom_op(lambda x: math.inf, lambda x, out: 1.0, check=False)(Value(1.0))


@pytest.mark.parametrize(
    ("forward", "local_grads", "message"),
    [
        (lambda x: None, lambda x, out: 1.0, "f: expected forward to return plain numbers, got None"),
        (lambda x: x, lambda x, out: None, "f: expected local_grads to return plain numbers, got None"),
        (lambda x: x, lambda x, out: (1.0, 2.0), "f: expected one local gradient per input, got 2 for 1"),
        (lambda x: x, None, "custom_op: expected local_grads, a function of the inputs and the output, got None"),
        (lambda x: x, [1.0], "custom_op: expected local_grads to be a function of the inputs, got a list of 1"),
        (3.0, lambda x, out: 1.0, "custom_op: expected forward to be a function of the inputs, got a float"),
        (lambda x: x, lambda x: 1.0, r"local_grads to take the inputs and the output, 2 numbers, got .* \(x\)"),
    ],
)
def test_bad_functions(forward: Any, local_grads: Any, message: str) -> None:
    """One sentence says which of the two returned what."""
    with pytest.raises((TypeError, ValueError), match=message):
        custom_op(forward, local_grads, name="f")(Value(1.0))


def test_bad_inputs() -> None:
    """A list or a text is refused before the function sees it; an error inside the function passes through."""
    f = custom_op(lambda x: x * x, lambda x, out: 2.0 * x, name="square")
    for wrong, got in (([Value(1.0)], "a list of 1"), ("a", "'a'")):
        with pytest.raises(TypeError, match=f"square: expected numbers and Values as inputs, got {got}"):
            f(wrong)
    with pytest.raises(TypeError, match="'float' object is not subscriptable"):
        custom_op(lambda x: x, lambda x, out: x[0])(Value(1.0))


def test_local_gradients_as_an_array() -> None:
    """One entry per input, whole numbers too."""
    product = custom_op(lambda x, y: x * y, lambda x, y, out: np.array([y, x]))
    assert grad(product, argnums=(0, 1))(3, 5) == (5.0, 3.0)
    assert grad(grad(lambda x: product(x, x)))(3.0) == 2.0


# ---------------------------------------------------------------- checkpoint


def long_way(x: Any, y: Any, steps: int = 50) -> Any:
    for _ in range(steps):
        x = (x * y + 0.1).sin()
    return x


def test_same_numbers_and_gradients_with_fewer_nodes(engine: Any) -> None:
    """Up to the order in which contributions are added; what lies between is not held."""
    x, y = engine.Value(0.7), engine.Value(1.1)
    plain = long_way(x, y) * y
    plain.backward()
    expected = plain.data, x.grad, y.grad
    x.grad = y.grad = 0.0
    out = checkpoint(long_way)(x, y) * y
    assert len(topological_order(out)) < 10
    out.backward()
    assert (out.data, x.grad, y.grad) == pytest.approx(expected, rel=1e-14)
    once = x.grad, y.grad
    out.backward()
    assert (x.grad, y.grad) == (2.0 * once[0], 2.0 * once[1])


def test_several_outputs_and_inputs_in_structures(engine: Any) -> None:
    """A dict in, a tuple out; an output that is not used counts as 0."""

    def f(p: dict[str, Any], scale: float) -> tuple[Any, Any, float]:
        return p["a"] * p["b"] * scale, p["a"].exp(), 7.0

    a, b = engine.Value(2.0), engine.Value(3.0)
    first, second, constant = checkpoint(f)({"a": a, "b": b}, 10.0)
    first.backward()
    assert (a.grad, b.grad) == (30.0, 20.0)
    a.grad = b.grad = 0.0
    (first + 2.0 * second + constant).backward()
    assert (a.grad, b.grad) == (30.0 + 2.0 * math.exp(2.0), 20.0)


@dataclasses.dataclass
class Square:
    side: Any
    area: Any = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.area = self.side * self.side


def test_a_field_that_follows_from_others_does_so_inside(engine: Any) -> None:
    """Of the Values that the function is given there: gradients come to those outside."""
    side = engine.Value(3.0)
    out = checkpoint(lambda square: square.area * 2.0)(Square(side))
    out.backward()
    assert (out.data, side.grad) == (18.0, 12.0)


def test_parameters_it_closes_over(engine: Any) -> None:
    """They get their gradient without being passed in."""
    w, x = engine.Value(3.0), engine.Value(2.0)
    checkpoint(lambda x: w * x * w)(x).backward()
    assert (w.grad, x.grad) == (12.0, 9.0)


@pytest.mark.parametrize("wrapped", [lambda f: f, checkpoint, lambda f: checkpoint(checkpoint(f))])
def test_computed_values_it_closes_over(engine: Any, wrapped: Any) -> None:
    """Their gradient flows on to what they were made of, whoever else uses them, before the checkpoint or after it."""
    w, x = engine.Value(3.0), engine.Value(2.0)
    shared = w * x
    hand_made = engine.Value(shared.data + 1.0, (shared,), "hand", local_grads=(1.0,))
    before = shared * 5.0
    inside = wrapped(lambda x: x * shared * hand_made + before)(x)
    after = shared.exp() * 1e-3
    (inside * after + before * shared).backward()
    # the same in one formula: s = w x, out = (x s (s + 1) + 5 s) exp(s) / 1000 + 5 s s
    s, e = 6.0, math.exp(6.0) * 1e-3
    by_s = (2.0 * (2.0 * s + 1.0) + 5.0) * e + (2.0 * s * (s + 1.0) + 5.0 * s) * e + 10.0 * s
    assert w.grad == pytest.approx(by_s * 2.0, rel=1e-14)
    assert x.grad == pytest.approx(by_s * 3.0 + s * (s + 1.0) * e, rel=1e-14)


def test_a_value_that_is_closed_over_and_returned(engine: Any) -> None:
    """As it stands, without an operation in between."""
    w, x = engine.Value(3.0), engine.Value(2.0)
    shared = w * w
    out, leaf = checkpoint(lambda x: (shared, w))(x)
    (out * 10.0 + leaf + shared).backward()
    assert (w.grad, x.grad) == (67.0, 0.0)


def test_a_chain_of_checkpoints_over_each_other(engine: Any) -> None:
    """Each closes over the result of the one before; each function is run twice, once on the way back."""
    w, calls = engine.Value(0.9), []

    def step(previous: Any) -> Any:
        def f(w: Any) -> Any:
            calls.append(previous)
            return (previous * w).sin()

        return checkpoint(f)

    out, plain = w, w
    for _ in range(10):
        out, plain = step(out)(w), (plain * w).sin()
    plain.backward()
    expected, w.grad = w.grad, 0.0
    out.backward()
    assert w.grad == pytest.approx(expected, rel=1e-14)
    assert len(calls) == 20


def test_nested_and_in_sequence(engine: Any) -> None:
    """Checkpoints inside checkpoints, and one after the other."""
    x, y = engine.Value(0.7), engine.Value(1.1)
    long_way(long_way(x, y), y).backward()
    expected = x.grad, y.grad
    x.grad = y.grad = 0.0
    part = checkpoint(long_way)
    checkpoint(lambda x, y: part(part(x, y), y))(x, y).backward()
    assert (x.grad, y.grad) == pytest.approx(expected, rel=1e-13)


def test_a_node_that_is_cut_off_is_a_leaf_for_a_while(engine: Any) -> None:
    """It keeps its gradient and adds to it; afterwards it is what it was, whatever happened to it meanwhile."""
    x = engine.Value(3.0)
    shared, by_hand = x * x, engine.Value(1.0, (x,), "hand")
    by_hand._backward = lambda: None
    shared.grad = 10.0

    def meanwhile() -> None:
        assert (shared._children, by_hand._children) == ((), ())
        (shared * by_hand).backward()
        shared.label = "seen"
        raise KeyError

    with pytest.raises(KeyError):
        engine.Value._cut([shared, by_hand, shared], meanwhile)
    assert (shared.grad, by_hand.grad, x.grad) == (11.0, 9.0, 0.0)
    assert (shared._children, shared._op, by_hand._children) == ((x, x), "*", (x,))
    shared.backward()
    assert x.grad == 6.0


def test_a_function_that_does_not_repeat_itself() -> None:
    """Random numbers inside are found out during backward()."""
    rng = random.Random(0)
    out = checkpoint(lambda x: x * rng.random())(Value(1.0))
    with pytest.raises(ValueError, match="checkpoint: expected the numbers of the forward pass again"):
        out.backward()


@pytest.mark.parametrize(("first", "then"), [(math.nan, 1.0), (1.0, math.nan)])
def test_a_number_that_is_nan_only_once(first: float, then: float) -> None:
    """Is not the number of the forward pass; one that is nan again is."""
    factors = iter([first, then, math.nan, math.nan])
    f = checkpoint(lambda x: x * next(factors))
    out = f(Value(1.0))
    with pytest.raises(ValueError, match="checkpoint: expected the numbers of the forward pass again"):
        out.backward()
    f(Value(1.0)).backward()


@pytest.mark.parametrize(("first", "then"), [(1, 2), (2, 1)])
def test_a_function_that_returns_another_count_of_numbers(first: int, then: int) -> None:
    """It is the checkpoint that says so."""
    counts = iter([first, then])
    outputs = checkpoint(lambda x: [x * x] * next(counts))(Value(3.0))
    with pytest.raises(ValueError, match=r"checkpoint: expected the numbers of the forward .*, got (9\.0|None)"):
        outputs[0].backward()


def test_inside_a_checkpoint_too_the_operation_is_named() -> None:
    """By detect_nonfinite(): the one that made inf, not the whole."""
    with pytest.raises(FloatingPointError, match=r"^'\*' made inf"), detect_nonfinite():
        checkpoint(lambda x: x * 1e200)(Value(1e200))


def test_plain_numbers_no_grad_and_derivatives() -> None:
    """Floats give floats; no_grad() gives leaves; derivatives of every order go through it."""
    f = checkpoint(lambda x: x * x * x)
    assert f(2.0) == 8.0
    with no_grad():
        assert f(Value(2.0))._children == ()
    assert grad(f)(2.0) == 12.0
    assert jacobian(lambda x: [f(x), 2.0 * f(x)])(2.0) == [12.0, 24.0]
    assert grad(grad(f))(2.0) == 12.0
    assert hvp(lambda x: f(x[0]) * x[1])([2.0, 5.0], [1.0, 1.0]) == [72.0, 12.0]
    with pytest.raises(TypeError, match=r"second derivative.* got a node made by hand as 'checkpoint'"):
        f(Value(2.0)).backward(create_graph=True)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: checkpoint(3.0), r"checkpoint: expected a function, got a float; write checkpoint\(f\)\(x\)"),
        (lambda: checkpoint(lambda x: None)(Value(1.0)), "to return numbers, got None; is a return missing?"),
        (lambda: checkpoint(lambda x: "a")(Value(1.0)), "checkpoint: expected the function to return numbers, got 'a'"),
        (lambda: checkpoint(lambda x: {x})(Value(1.0)), "checkpoint: the function's result: .* a set has no order"),
    ],
)
def test_bad_checkpoints(call: Any, message: str) -> None:
    """A TypeError in one sentence."""
    with pytest.raises(TypeError, match=message):
        call()
