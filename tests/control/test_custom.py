"""custom_op: checked on first use, part of every mode; checkpoint: the same gradients, fewer nodes."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from gradwalk import Value
from gradwalk.blame import detect_nonfinite
from gradwalk.control import no_grad
from gradwalk.custom import checkpoint, custom_op
from gradwalk.engine import topological_order
from gradwalk.functional import grad, jacobian

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
    ],
)
def test_bad_functions(forward: Any, local_grads: Any, message: str) -> None:
    """One sentence says which of the two returned what."""
    with pytest.raises((TypeError, ValueError), match=message):
        custom_op(forward, local_grads, name="f")(Value(1.0))


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


def test_parameters_it_closes_over(engine: Any) -> None:
    """Leaves get their gradient; a computed Value has to be passed in."""
    w, x = engine.Value(3.0), engine.Value(2.0)
    checkpoint(lambda x: w * x * w)(x).backward()
    assert (w.grad, x.grad) == (12.0, 9.0)
    computed = w * 2.0
    with pytest.raises(TypeError, match=r"closes over the result of '\*'; pass it as an argument"):
        checkpoint(lambda x: computed * x)(x)


def test_nested_and_in_sequence(engine: Any) -> None:
    """Checkpoints inside checkpoints, and one after the other."""
    x, y = engine.Value(0.7), engine.Value(1.1)
    long_way(long_way(x, y), y).backward()
    expected = x.grad, y.grad
    x.grad = y.grad = 0.0
    part = checkpoint(long_way)
    checkpoint(lambda x, y: part(part(x, y), y))(x, y).backward()
    assert (x.grad, y.grad) == pytest.approx(expected, rel=1e-13)


def test_a_function_that_does_not_repeat_itself() -> None:
    """Random numbers inside are found out during backward()."""
    rng = random.Random(0)
    out = checkpoint(lambda x: x * rng.random())(Value(1.0))
    with pytest.raises(ValueError, match="checkpoint: expected the numbers of the forward pass again"):
        out.backward()


def test_plain_numbers_no_grad_and_derivatives() -> None:
    """Floats give floats; no_grad() gives leaves; grad and jacobian go through it, a second derivative says no."""
    f = checkpoint(lambda x: x * x * x)
    assert f(2.0) == 8.0
    with no_grad():
        assert f(Value(2.0))._children == ()
    assert grad(f)(2.0) == 12.0
    assert jacobian(lambda x: [f(x), 2.0 * f(x)])(2.0) == [12.0, 24.0]
    with pytest.raises(TypeError, match="got a node made by hand as 'checkpoint'"):
        grad(grad(f))(2.0)
    with pytest.raises(TypeError, match="checkpoint: expected the function to return numbers, got none"):
        checkpoint(lambda x: None)(Value(1.0))
