"""SGD, Adam, AdamW and clipping: the formulas, equal bits on both engines, exact resumption, clear refusals."""

from __future__ import annotations

import contextlib
import math
import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gradwalk import engine, optim, reference
from gradwalk.optim import SGD, Adam, AdamW, clip_gradients

EACH_ENGINE = pytest.mark.parametrize("Value", [engine.load(name).Value for name in engine.ENGINES], ids=engine.ENGINES)
MAKERS: dict[str, Callable[[list[Any]], Any]] = {
    "sgd": lambda ps: SGD(ps, lr=0.1),
    "sgd with decay": lambda ps: SGD(ps, lr=0.1, weight_decay=0.03),
    "sgd with momentum": lambda ps: SGD(ps, lr=0.1, momentum=0.9),
    "sgd with all": lambda ps: SGD(ps, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.03),
    "adam": lambda ps: Adam(ps),
    "adam with betas": lambda ps: Adam(ps, lr=0.3, betas=(0.0, 0.999), eps=1e-3),
    "adamw": lambda ps: AdamW(ps, lr=0.05, weight_decay=0.2),
}
EACH_OPTIMISER = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def numbers(count: int, seed: int) -> list[float]:
    rng = random.Random(seed)
    return [rng.gauss(0, 1) * 10.0 ** rng.randint(-9, 3) for _ in range(count)]


def trajectory(make: Callable[[list[Any]], Any], Value: type, steps: int = 7) -> list[float]:  # noqa: N803
    """The parameters after some steps with gradients of all sizes, zeros among them."""
    parameters = [Value(number) for number in numbers(40, seed=0)]
    optimiser = make(parameters)
    for step in range(steps):
        for i, (parameter, grad) in enumerate(zip(parameters, numbers(40, seed=step + 1), strict=True)):
            parameter.grad = grad if i % 5 else 0.0
        optimiser.step()
    return [parameter.data for parameter in parameters]


# ---------------------------------------------------------------- engines


@EACH_OPTIMISER
def test_engines_agree_to_the_bit(make: Callable[[list[Any]], Any]) -> None:
    """The loops in C and those in Python leave the same bits in every parameter."""
    native, plain = (trajectory(make, engine.load(name).Value) for name in engine.ENGINES)
    assert [x.hex() for x in native] == [x.hex() for x in plain]


def test_parameters_of_both_engines_in_one_optimiser() -> None:
    """A mixture of engines works, and each parameter moves as it would alone."""
    mixed = [engine.load(name).Value(2.0) for name in engine.ENGINES]
    for parameter in mixed:
        parameter.grad = 0.5
    Adam(mixed, lr=0.1).step()
    assert mixed[0].data == mixed[1].data != 2.0


def test_native_values_use_the_loops_in_c() -> None:
    """An optimiser over native Values calls the extension, one over reference Values does not."""
    native = engine.load("native")
    assert native.OPTIMISERS["adam"] is Adam([native.Value(1.0)])._loops.adam
    assert optim._adam is Adam([reference.Value(1.0)])._loops.adam


@EACH_ENGINE
def test_gradients_that_are_values(Value: type) -> None:  # noqa: N803
    """After backward(create_graph=True) a gradient is a Value: steps read its number, zero_grad makes it 0.0."""
    x = Value(3.0)
    optimiser = SGD([x], lr=1.0)
    (x**3).backward(create_graph=True)
    optimiser.step()
    assert x.data == 3.0 - 27.0
    optimiser.zero_grad()
    assert x.grad == 0.0
    assert isinstance(x.grad, float)


def test_the_extension_refuses_what_it_cannot_write_to() -> None:
    """The functions in C check their arguments: no foreign object, no buffer of another size or type."""
    native = engine.load("native")
    adam, x = native.OPTIMISERS["adam"], native.Value(1.0)
    rest = (0.9, 0.95, 0.1, 1.0, 1e-8, 1.0)
    with pytest.raises(TypeError, match="expected a Value of the native engine as parameter 1"):
        adam((x, 2.0), *rest, np.zeros(2), np.zeros(2))
    with pytest.raises(ValueError, match="expected a buffer of 1 doubles"):
        adam((x,), *rest, np.zeros(1), np.zeros(2))
    with pytest.raises(ValueError, match="expected a buffer of 1 doubles"):
        adam((x,), *rest, np.zeros(1, dtype=np.int64), np.zeros(1))
    with pytest.raises(TypeError, match="expected velocities"):
        native.OPTIMISERS["sgd"]((x,), 0.1, 0.9, 0.0, False)
    assert x.data == 1.0


@pytest.mark.parametrize(
    ("name", "rest"),
    [
        ("adam", (0.9, 0.95, 0.1, 1.0, 1e-8, 1.0, np.zeros(1), np.zeros(1))),
        ("adam", (0.9, 0.95, 0.1, 1.0, 1e-8, 1.0, np.zeros(1), np.zeros(2))),
        ("sgd", (0.1, 0.9, 0.0, False, np.zeros(1))),
        ("sgd", (0.1, 0.9, 0.0, False, np.zeros(2))),
        ("zero_grad", ()),
        ("gradient_norm", ()),
        ("scale_gradients", (0.5,)),
    ],
)
def test_the_extension_lets_go_of_the_parameters(name: str, rest: tuple[Any, ...]) -> None:
    """Also where it refuses what comes with them."""
    native = engine.load("native")
    parameters = (native.Value(1.0),)
    before = sys.getrefcount(parameters)
    with contextlib.suppress(ValueError):
        native.OPTIMISERS[name](parameters, *rest)
    assert before == sys.getrefcount(parameters)


def test_looking_for_parameters_holds_on_to_nothing() -> None:
    """Neither to what is looked through, nor to what the visitor returns, nor to a place on the stack."""
    native = engine.load("native")
    x, returned = native.Value(1.0), object()
    nested, before = {"a": [x, 1]}, (sys.getrefcount(x), sys.getrefcount(returned))
    for _ in range(2 * sys.getrecursionlimit()):
        native.OPTIMISERS["gather_leaves"](nested, [], int, lambda owner: returned)
    assert before == (sys.getrefcount(x), sys.getrefcount(returned))


# ---------------------------------------------------------------- formulas


@EACH_ENGINE
def test_sgd_is_the_hand_written_update(Value: type) -> None:  # noqa: N803
    """Without options a step is p.data -= lr * p.grad."""
    x = Value(1.7)
    x.grad = 0.3
    SGD([x], lr=0.1).step()
    assert x.data == 1.7 - 0.1 * 0.3


@EACH_ENGINE
@pytest.mark.parametrize("nesterov", [False, True])
def test_momentum_remembers_all_gradients(Value: type, nesterov: bool) -> None:  # noqa: N803
    """The velocity is the sum of all gradients, weakened by momentum for each step since; Nesterov looks ahead."""
    x, grads, momentum, lr = Value(0.0), [1.0, -2.0, 0.5, 4.0], 0.5, 0.25
    optimiser = SGD([x], lr=lr, momentum=momentum, nesterov=nesterov)
    expected = 0.0
    for t, grad in enumerate(grads):
        x.grad = grad
        optimiser.step()
        velocity = sum(momentum ** (t - i) * grads[i] for i in range(t + 1))
        expected -= lr * (grad + momentum * velocity if nesterov else velocity)
    assert x.data == expected  # powers of two: exact


@EACH_ENGINE
def test_weight_decay_of_sgd_is_a_gradient(Value: type) -> None:  # noqa: N803
    """SGD's weight decay acts as the gradient of an L2 penalty, momentum included."""
    x = Value(8.0)
    optimiser = SGD([x], lr=0.5, momentum=0.5, weight_decay=0.25)
    optimiser.step()
    assert x.data == 8.0 - 0.5 * 2.0
    optimiser.step()
    assert x.data == 7.0 - 0.5 * (0.5 * 2.0 + 0.25 * 7.0)


@EACH_ENGINE
def test_adam_weighs_gradients_by_their_age(Value: type) -> None:  # noqa: N803
    """Each step is lr · m/(√v + ε), with m and v weighted means of the gradients and their squares so far."""
    x, grads, (b1, b2), lr, eps = Value(1.0), [0.3, -0.1, 2.0, 0.05], (0.9, 0.95), 0.01, 1e-8
    optimiser, expected = Adam([x], lr=lr), 1.0
    for t, grad in enumerate(grads):
        x.grad = grad
        optimiser.step()
        ages = [t - i for i in range(t + 1)]
        mean = sum(b1**age * g for age, g in zip(ages, grads, strict=False)) / sum(b1**age for age in ages)
        square = sum(b2**age * g * g for age, g in zip(ages, grads, strict=False)) / sum(b2**age for age in ages)
        expected -= lr * mean / (math.sqrt(square) + eps)
    assert x.data == pytest.approx(expected, rel=1e-13)


@EACH_ENGINE
def test_weight_decay_of_adamw_is_apart_from_the_gradient(Value: type) -> None:  # noqa: N803
    """AdamW shrinks the parameter by lr · weight_decay and otherwise moves as Adam does."""
    x, y = Value(2.0), Value(2.0)
    x.grad = y.grad = 0.7
    Adam([x], lr=0.125).step()
    AdamW([y], lr=0.125, weight_decay=0.5).step()
    assert x.data - y.data == pytest.approx(2.0 * 0.125 * 0.5, rel=1e-14)


@EACH_OPTIMISER
@EACH_ENGINE
def test_a_rate_for_one_step(Value: type, make: Callable[[list[Any]], Any]) -> None:  # noqa: N803
    """step(lr) uses that rate once; step() goes back to the optimiser's own; a rate of 0 moves nothing."""
    x = Value(1.0)
    x.grad = 0.5
    optimiser = make([x])
    optimiser.step(lr=0.0)
    optimiser.step(lr=0)
    assert x.data == 1.0
    optimiser.step()
    assert x.data < 1.0


@EACH_OPTIMISER
def test_arrays_move_as_values_do(make: Callable[[list[Any]], Any]) -> None:
    """`moved` takes the numbers, gradients and moments of many models in arrays, and a square root for them."""
    starts, grads = np.array(numbers(40, seed=0)), [np.array(numbers(40, seed=step)) for step in (1, 2, 3)]
    optimiser = make([reference.Value(number) for number in starts.tolist()])
    data, moments = starts, [np.zeros(40) for _ in optimiser.moments]
    for step, grad in enumerate(grads):
        settings = [np.full(40, setting) for setting in optimiser.settings(optimiser.lr, step)]
        data, *moments = optimiser.moved(data, grad, moments, settings, np.sqrt)
        for parameter, slope in zip(optimiser.parameters, grad.tolist(), strict=True):
            parameter.grad = slope
        optimiser.step()
    state = optimiser.state_dict()
    assert [p.data for p in optimiser.parameters] == data.tolist()
    assert [state[name].tolist() for name in optimiser.moments] == [each.tolist() for each in moments]


def test_arrays_of_another_optimiser_are_refused() -> None:
    """One with a loop of its own has no formula for arrays."""

    class Other(SGD):
        loop = "other"

    with pytest.raises(ValueError, match="Other: expected Adam or AdamW or SGD for models on jax"):
        Other([engine.Value(1.0)], lr=0.1).moved(np.ones(1), np.ones(1), [], [np.ones(1)] * 4, np.sqrt)


def test_settings_that_nobody_gave() -> None:
    """SGD has no momentum and no decay, Adam no decay, and AdamW is Adam with a decay of 0.01."""
    x = engine.Value(1.0)
    sgd, adam, adamw = SGD([x], 0.1), Adam([x]), AdamW([x])
    assert (sgd.momentum, sgd.nesterov, sgd.weight_decay) == (0.0, False, 0.0)
    assert (adam.lr, adam.betas, adam.eps, adam.weight_decay) == (0.01, (0.9, 0.95), 1e-8, 0.0)
    assert (adamw.lr, adamw.betas, adamw.eps, adamw.weight_decay) == (0.01, (0.9, 0.95), 1e-8, 0.01)


# ---------------------------------------------------------------- state


@EACH_OPTIMISER
@EACH_ENGINE
def test_resumes_to_the_bit(Value: type, make: Callable[[list[Any]], Any]) -> None:  # noqa: N803
    """3 steps, the state into a fresh optimiser, and 4 more steps are 7 steps, bit for bit."""
    parameters = [Value(number) for number in numbers(40, seed=0)]
    optimiser = make(parameters)
    for step in range(7):
        if step == 3:
            state = optimiser.state_dict()
            parameters = [Value(parameter.data) for parameter in parameters]
            optimiser = make(parameters)
            optimiser.load_state_dict(state)
        for i, (parameter, grad) in enumerate(zip(parameters, numbers(40, seed=step + 1), strict=True)):
            parameter.grad = grad if i % 5 else 0.0
        optimiser.step()
    assert optimiser.steps == 7
    assert [p.data.hex() for p in parameters] == [x.hex() for x in trajectory(make, Value)]


def test_state_is_a_copy() -> None:
    """Later steps do not change a state that was taken, nor does a state that was loaded change with the optimiser."""
    x = engine.Value(1.0)
    x.grad = 0.5
    optimiser = Adam([x])
    optimiser.step()
    state = optimiser.state_dict()
    before = state["means"].copy()
    optimiser.load_state_dict(state)
    optimiser.step()
    assert state["means"].tolist() == before.tolist() != optimiser.state_dict()["means"].tolist()


def test_a_state_may_be_of_plain_lists() -> None:
    """As it comes back from JSON."""
    optimiser = Adam([engine.Value(1.0), engine.Value(2.0)])
    optimiser.load_state_dict({"step": 5, "means": [0.5, 1.0], "squares": [0.25, 2.0]})
    state = optimiser.state_dict()
    assert (state["step"], state["means"].tolist(), state["squares"].tolist()) == (5, [0.5, 1.0], [0.25, 2.0])


@EACH_OPTIMISER
def test_a_state_before_the_first_step(make: Callable[[list[Any]], Any]) -> None:
    """It has counted no steps, and loads like any other."""
    first, second = make([engine.Value(1.0)]), make([engine.Value(1.0)])
    second.step()
    second.load_state_dict(first.state_dict())
    assert 0 == second.steps == second.state_dict()["step"]


def test_shown_with_its_rate() -> None:
    assert repr(SGD([engine.Value(1.0)], lr=0.125)) == "SGD(1 parameters, lr=0.125)"


def test_an_empty_state_is_refused() -> None:
    with pytest.raises(ValueError, match="SGD: expected a state with step, velocities, got nothing"):
        SGD([engine.Value(1.0)], lr=0.1, momentum=0.5).load_state_dict({})


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"means": np.zeros(3)}, r"expected 2 float64 numbers as means, got float64 of shape \(3,\)"),
        ({"squares": np.zeros(2, dtype=np.float32)}, r"as squares, got float32 of shape \(2,\)"),
        ({"velocities": np.zeros(2)}, "expected a state with step, means, squares, got step, means, squares, veloc"),
        ({"step": -1}, "expected a step count of at least 0, got -1"),
    ],
)
def test_a_state_that_does_not_fit(change: dict[str, Any], complaint: str) -> None:
    """A foreign state is refused in one sentence, and the optimiser stays as it was."""
    optimiser = Adam([engine.Value(1.0), engine.Value(2.0)])
    optimiser.step()
    before = optimiser.state_dict()
    foreign = {"step": 5, "means": np.ones(2), "squares": np.ones(2)} | change
    with pytest.raises(ValueError, match=complaint):
        optimiser.load_state_dict(foreign)
    with pytest.raises(ValueError, match=r"Adam: expected a state with step, means, squares, got nothing$"):
        optimiser.load_state_dict({})
    after = optimiser.state_dict()
    assert {name: np.asarray(part).tolist() for name, part in before.items()} == {
        name: np.asarray(part).tolist() for name, part in after.items()
    }


# ---------------------------------------------------------------- gradients


@EACH_ENGINE
def test_zero_grad(Value: type) -> None:  # noqa: N803
    """Every gradient is 0.0 afterwards."""
    parameters = [Value(1.0) for _ in range(3)]
    for parameter in parameters:
        parameter.grad = 7.0
    Adam(parameters).zero_grad()
    assert [parameter.grad for parameter in parameters] == [0.0] * 3


def with_gradients(Value: type, *grads: float) -> list[Any]:  # noqa: N803
    parameters = [Value(1.0) for _ in grads]
    for parameter, grad in zip(parameters, grads, strict=True):
        parameter.grad = grad
    return parameters


@EACH_ENGINE
def test_clipping_shortens_what_is_too_long(Value: type) -> None:  # noqa: N803
    """The norm before is returned; afterwards it is max_norm, and the direction is what it was."""
    parameters = with_gradients(Value, 3.0, -4.0)
    assert clip_gradients(parameters, 1.25) == 5.0
    assert [parameter.grad for parameter in parameters] == [0.75, -1.0]


@EACH_ENGINE
@pytest.mark.parametrize("grads", [(3.0, -4.0), (0.0, -0.0)])
def test_clipping_leaves_what_is_short(Value: type, grads: tuple[float, ...]) -> None:  # noqa: N803
    """Gradients within the limit, zeros included, stay as they are."""
    parameters = with_gradients(Value, *grads)
    assert clip_gradients(parameters, 5.0) == math.hypot(*grads)
    assert [parameter.grad for parameter in parameters] == list(grads)


@EACH_ENGINE
def test_clipping_does_not_overflow(Value: type) -> None:  # noqa: N803
    """Gradients whose squares overflow or vanish have a norm all the same."""
    assert clip_gradients(with_gradients(Value, 3e200, 4e200), 1.0) == pytest.approx(5e200, rel=1e-15)
    assert clip_gradients(with_gradients(Value, 3e-200, 4e-200), 1.0) == pytest.approx(5e-200, rel=1e-15, abs=0)


def test_clipping_agrees_to_the_bit() -> None:
    """The norm and the scaled gradients have the same bits on both engines."""
    results = []
    for name in engine.ENGINES:
        parameters = with_gradients(engine.load(name).Value, *numbers(50, seed=3))
        results.append([clip_gradients(parameters, 0.1).hex(), *(p.grad.hex() for p in parameters)])
    assert results[0] == results[1]


@EACH_ENGINE
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("others", [(1.0, 2.0), (math.inf, 1.0)])
def test_clipping_refuses_what_is_not_finite(Value: type, bad: float, others: tuple[float, float]) -> None:  # noqa: N803
    """A nan or inf among the gradients is an error that says where the first is; no gradient is scaled."""
    parameters = with_gradients(Value, others[0], bad, others[1])
    place = 0 if math.isinf(others[0]) else 1
    with pytest.raises(ValueError, match=f"expected a finite gradient norm, got .* at parameter {place}"):
        clip_gradients(parameters, 1.0)
    assert parameters[2].grad == others[1]


@EACH_ENGINE
def test_clipping_refuses_a_norm_beyond_floats(Value: type) -> None:  # noqa: N803
    """Though each gradient is finite."""
    with pytest.raises(ValueError, match="expected a finite gradient norm, got inf; nothing was scaled"):
        clip_gradients(with_gradients(Value, 1.5e308, 1.5e308), 1.0)


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize("lr", [-0.1, math.nan, math.inf])
def test_impossible_rates(lr: float) -> None:
    """A negative or non-finite lr is refused when the optimiser is made and at a step, which then does nothing."""
    x = engine.Value(1.0)
    with pytest.raises(ValueError, match=f"SGD: expected a finite lr >= 0, got {lr}"):
        SGD([x], lr=lr)
    optimiser = Adam([x])
    with pytest.raises(ValueError, match=f"Adam: expected a finite lr >= 0, got {lr}"):
        optimiser.step(lr)
    assert optimiser.steps == 0


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda x: Adam([x], betas=(1.0, 0.9)), "Adam: expected 0 <= betas < 1, got 1.0"),
        (lambda x: Adam([x], betas=(-0.1, 0.9)), "Adam: expected 0 <= betas < 1, got -0.1"),
        (lambda x: Adam([x], betas=(0.9, -0.1)), "Adam: expected 0 <= betas < 1, got -0.1"),
        (lambda x: Adam([x], betas=(0.9, 1.0)), "Adam: expected 0 <= betas < 1, got 1.0"),
        (lambda x: Adam([x], eps=-1e-8), "Adam: expected a finite eps >= 0, got -1e-08"),
        (lambda x: AdamW([x], betas=(0.9, math.nan)), "AdamW: expected 0 <= betas < 1, got nan"),
        (lambda x: Adam([x], eps=0.0), "Adam: expected eps > 0, got 0.0"),
        (lambda x: AdamW([x], weight_decay=-1.0), "AdamW: expected a finite weight_decay >= 0, got -1.0"),
        (lambda x: SGD([x], lr=0.1, momentum=1.0), "SGD: expected 0 <= momentum < 1, got 1.0"),
        (lambda x: SGD([x], lr=0.1, momentum=-0.5), "SGD: expected 0 <= momentum < 1, got -0.5"),
        (lambda x: SGD([x], lr=0.1, weight_decay=-1.0), "SGD: expected a finite weight_decay >= 0, got -1.0"),
        (lambda x: SGD([x], lr=0.1, nesterov=True), "SGD: expected momentum > 0 with nesterov, got 0.0"),
        (lambda x: Adam([]), "Adam: expected at least one parameter, got none"),
        (lambda x: clip_gradients([], 1.0), "clip_gradients: expected at least one parameter, got none"),
        (lambda x: clip_gradients([x], -1.0), "clip_gradients: expected a finite max_norm >= 0, got -1.0"),
        (lambda x: SGD([x, engine.Value(2.0), x], lr=0.1), "SGD: expected every parameter once, got parameter 0 again"),
    ],
)
def test_impossible_settings(make: Callable[[Any], Any], complaint: str) -> None:
    """Each impossible setting is refused in one sentence that says what was expected."""
    with pytest.raises(ValueError, match=complaint):
        make(engine.Value(1.0))


def test_parameters_are_values() -> None:
    """Anything else among the parameters is named, with its place."""
    with pytest.raises(TypeError, match=r"Adam: expected a Value as parameter 1, got 2.0 \(float\)"):
        Adam([engine.Value(1.0), 2.0])
    with pytest.raises(TypeError, match=r"clip_gradients: expected a Value as parameter 0, got 'x' \(str\)"):
        clip_gradients("xy", 1.0)
