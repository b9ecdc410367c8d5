"""Models on jax's device: the weights of the native executor's, and an error where a program does not apply."""

import numpy as np
import pytest
from models import OPTIMISERS

import gradwalk
from gradwalk.optim import SGD


@pytest.mark.parametrize("name", OPTIMISERS)
def test_as_the_native_executor(name):
    """Two structures of input, rates and a mask of their own: weights to 1e-12."""
    rng = np.random.default_rng(0)
    weights = [gradwalk.Value(0.0) for _ in range(4)]
    error = gradwalk.compile(lambda xs: (gradwalk.dot(weights[: len(xs)], xs) - 1.0) ** 2)
    rows = rng.normal(size=(6, 4))
    inputs = [rng.normal(size=4 if model % 3 else 2).tolist() for model in range(6)]
    natively, by_jax = error.models(rows, weights), error.models(rows, weights, device="jax")
    optimiser, rates, mask = OPTIMISERS[name](weights), np.linspace(0.01, 0.05, 6), [True] * 4 + [False, True]
    for step in range(4):
        given = (optimiser, inputs, rates, mask if step == 2 else None)
        assert np.allclose(natively.step(*given), by_jax.step(*given), rtol=1e-12, equal_nan=True)
    assert np.allclose(natively.weights, by_jax.weights, rtol=1e-12, atol=1e-14)
    assert natively.steps.tolist() == by_jax.steps.tolist()
    assert np.allclose(natively.value(inputs), by_jax.value(inputs), rtol=1e-12)


def test_a_model_that_branches_otherwise():
    """It is named, and has not moved; the others have."""
    weight = gradwalk.Value(1.0)
    compiled = gradwalk.compile(lambda x: weight * x if weight > 0.0 else weight * weight * x)
    models = compiled.models([[2.0], [-3.0]], [weight], device="jax")
    with pytest.raises(ValueError, match="does not apply to models 1: they branch otherwise"):
        models.step(SGD([weight], lr=0.5), [1.0, 1.0])
    assert np.asarray(models.weights).ravel().tolist() == [1.5, -3.0]
    assert models.steps.tolist() == [1, 0]


@pytest.mark.parametrize("turned", [False, True])
def test_parameters_in_another_order(turned):
    """Than the program reads them in, and more of them; cut into a few pieces, or gathered."""
    rng = np.random.default_rng(0)
    weights = [gradwalk.Value(0.0) for _ in range(90)]
    error = gradwalk.compile(lambda xs: (gradwalk.dot(weights[40:80], xs) + gradwalk.sum(weights[:40])) ** 2)
    parameters = weights[::-1] if turned else weights
    rows, inputs = rng.normal(size=(3, 90)), rng.normal(size=(3, 40)).tolist()
    natively, by_jax = error.models(rows, parameters), error.models(rows, parameters, device="jax")
    for _ in range(2):
        step = SGD(weights, lr=1e-3), inputs
        assert np.allclose(natively.step(*step), by_jax.step(*step), rtol=1e-12)
    assert np.allclose(natively.weights, by_jax.weights, rtol=1e-12, atol=1e-14)


def test_other_devices_are_refused():
    weight = gradwalk.Value(1.0)
    with pytest.raises(ValueError, match="expected device='jax'"):
        gradwalk.compile(lambda x: weight * x).models([[2.0]], [weight], device="gpu")
