"""Many models of one program: the weights of as many separate runs, per-model rates and masks, other branches."""

import numpy as np
import pytest
from models import OPTIMISERS

import gradwalk
from gradwalk import custom_op, optim
from gradwalk.optim import SGD, Adam

NAMES = ["emma", "olivia", "ava", "isabella", "sophia", "mia", "amelia"]


def small(seed):
    model = gradwalk.nn.GPT(vocab_size=27, n_embd=8, n_head=2, block_size=8, seed=seed)
    rng = np.random.default_rng(seed)
    for parameter in model.parameters():
        parameter.data += rng.normal(0.0, 0.05)
    return model


def tokens(step, seed):
    name = NAMES[(step * 3 + seed) % len(NAMES)]
    return [26, *(ord(letter) - 97 for letter in name), 26][:9]


@pytest.mark.parametrize("name", OPTIMISERS)
def test_as_many_separate_runs(name):
    """Names of different lengths are different programs; every model's weights are those of a run of its own.

    Some lengths have eight models and more, which go side by side, some have fewer, and two are left over.
    """
    count, steps = 24, 6
    shared = small(0)
    models = gradwalk.compile(lambda t: shared.loss(t)).models([small(seed) for seed in range(count)], shared)
    optimiser = OPTIMISERS[name](shared.parameters())
    before = [value.data for value in shared.parameters()]
    values = [models.step(optimiser, [tokens(i, seed) for seed in range(count)]) for i in range(steps)]
    assert before == [value.data for value in shared.parameters()]
    for seed in (0, 1, 2, 9, 22, 23):
        model = small(seed)
        alone, own = gradwalk.compile(lambda t, model=model: model.loss(t)), OPTIMISERS[name](model.parameters())
        losses = [alone.train_step(own, tokens(i, seed)) for i in range(steps)]
        assert np.allclose([made[seed] for made in values], losses, rtol=1e-12)
        expected = np.array([value.data for value in model.parameters()])
        assert np.abs(models.weights[seed] - expected).max() <= 1e-12 * np.abs(expected).max()


def layered(weights):
    """A loss that is no exact program, with a branch, a slope that can be infinite, and a result that can."""
    *first, last, under, scale = weights
    rows = [first[8 * i : 8 * i + 8] for i in range(8)]

    def loss(x, y):
        hidden = [gradwalk.tanh(gradwalk.dot(row, x)) for row in rows]
        out = gradwalk.dot(hidden, hidden) * last if last > 0.0 else last * hidden[0]
        return (out - y) ** 2 + last * gradwalk.sqrt(gradwalk.relu(under)) + gradwalk.exp(scale) * y

    return loss


@pytest.mark.parametrize("count", [15, 18])
def test_neighbours_do_not_matter(count):
    """Side by side, one branches otherwise, one has no finite result, one an infinite slope; others sit a step out."""
    rng = np.random.default_rng(count)
    rows = np.hstack([rng.normal(0.0, 0.4, (count, 64)), rng.uniform(0.5, 1.0, (count, 2)), -np.ones((count, 1))])
    rows[1, 64], rows[9, 66], rows[12, 65] = -0.7, 2000.0, 0.0
    masks = [rng.permutation(count) > 0 for _ in range(3)] + [np.ones(count, bool)]
    inputs = [[(rng.normal(size=8).tolist(), float(rng.normal())) for _ in rows] for _ in masks]
    rates = rng.uniform(0.01, 0.1, count)
    shared = [gradwalk.Value(number) for number in rows[0]]
    models = gradwalk.compile(layered(shared)).models(rows, shared)
    optimiser = Adam(shared)
    made = [models.try_step(optimiser, given, rates, mask)[0] for given, mask in zip(inputs, masks, strict=True)]
    for model, row in enumerate(rows):
        weights = [gradwalk.Value(number) for number in row]
        alone, own = gradwalk.compile(layered(weights)), Adam(weights, lr=rates[model])
        for step, mask in enumerate(masks):
            expected = np.nan
            if mask[model] and model != 9:
                expected = alone.train_step(own, *inputs[step][model])
            assert np.allclose(made[step][model], expected, rtol=1e-12, equal_nan=True)
        moved = np.array([value.data for value in weights])
        assert np.allclose(models.weights[model], moved, rtol=0.0, atol=1e-12, equal_nan=True)


def test_one_that_branches_otherwise_goes_alone(monkeypatch):
    """And the program that fits the others stays theirs, although another one was used last."""
    rows = np.random.default_rng(0).uniform(0.1, 1.0, (16, 67))
    rows[4, 64] = -0.7
    shared = [gradwalk.Value(number) for number in rows[0]]
    models = gradwalk.compile(layered(shared)).models(rows, shared)
    alone: list[int] = []
    once = models._alone
    monkeypatch.setattr(models, "_alone", lambda model, *others: alone.append(model) or once(model, *others))
    for _ in range(3):
        models.step(SGD(shared, lr=1e-4), [([0.1] * 8, 1.0)] * 16)
    assert alone == [4, 4, 4]


def test_in_turns_with_training_steps():
    """One program for both, which knows by whose slots it steps."""
    shared = small(0)
    compiled, optimiser = gradwalk.compile(shared.loss), Adam(shared.parameters())
    models = compiled.models([small(seed) for seed in range(3)], shared)
    for step in range(4):
        name = tokens(step, 0)
        value = compiled.train_step(optimiser, name)
        assert models.step(Adam(shared.parameters()), [name] * 3)[0] == value
    assert models.weights[0].tolist() == [parameter.data for parameter in shared.parameters()]


def test_rates_and_masks():
    """A rate for each model, and models that sit a step out."""
    weight = gradwalk.Value(0.0)
    error = gradwalk.compile(lambda x: (weight * x - 1.0) ** 2)
    models = error.models(np.array([[3.0], [3.0], [3.0]]), [weight])
    values = models.step(SGD([weight], lr=9.0), [1.0, 1.0, 1.0], lr=[0.1, 0.2, 0.3], mask=[True, False, True])
    assert np.array_equal(values, [4.0, np.nan, 4.0], equal_nan=True)
    assert models.weights.ravel().tolist() == [3.0 - 0.1 * 4.0, 3.0, 3.0 - 0.3 * 4.0]
    assert models.steps.tolist() == [1, 0, 1]
    assert models.value([1.0, 1.0, 2.0]).tolist()[1] == 4.0


def test_a_rate_for_each_where_each_has_made_another_number_of_steps():
    """The first model has made a step when both make one, at rates of their own."""
    weight = gradwalk.Value(0.0)
    models = gradwalk.compile(lambda x: weight * x).models([[1.0], [1.0]], [weight])
    models.step(SGD([weight], lr=0.5), [1.0, 1.0], mask=[True, False])
    models.step(SGD([weight], lr=0.5), [1.0, 1.0], lr=[0.25, 0.125])
    assert models.weights.tolist() == [[0.25], [0.875]]


def test_a_single_model():
    """It is stepped as those beside others are."""
    weight = gradwalk.Value(0.0)
    models = gradwalk.compile(lambda x: weight * x).models([[1.0]], [weight])
    assert models.step(SGD([weight], lr=0.5), [3.0]).tolist() == [3.0]
    assert models.weights.tolist() == [[-0.5]]


def test_models_that_branch_otherwise():
    """Guards look at each model's weights: another branch is another program, and an error is the plain function's."""
    weight = gradwalk.Value(1.0)
    compiled = gradwalk.compile(lambda x: weight * x if weight > 0.0 else weight * weight * x)
    models = compiled.models([[2.0], [-3.0], [4.0]], [weight])
    assert models.value([1.0, 1.0, 2.0]).tolist() == [2.0, 9.0, 8.0]
    for _ in range(2):
        models.step(Adam([weight], lr=0.5), [1.0, 1.0, 1.0])
    assert np.allclose(models.weights.ravel(), [1.0, -2.0, 3.0], atol=0.05)
    assert weight.data == 1.0
    assert weight.grad == 0.0
    logarithm = gradwalk.compile(lambda x: gradwalk.log(weight * x)).models([[2.0], [-3.0]], [weight])
    with pytest.raises(ValueError, match="log: expected x > 0"):
        logarithm.value([1.0, 1.0])
    with pytest.raises(ValueError, match="log: expected x > 0"):
        logarithm.step(SGD([weight], lr=1.0), [1.0, 1.0])
    assert logarithm.weights.ravel().tolist() == [1.5, -3.0]  # the other one has made its step
    assert logarithm.steps.tolist() == [1, 0]


def test_weights_by_name():
    """A dict of arrays with an axis for the models first, as a state_dict has them for one."""
    shared, models = small(0), [small(seed) for seed in range(3)]
    states = [model.state_dict() for model in models]
    stacked = {name: np.stack([state[name] for state in states]) for name in states[0]}
    compiled = gradwalk.compile(lambda t: shared.loss(t))
    by_name, by_model = compiled.models(stacked, shared), compiled.models(models, shared)
    assert np.array_equal(by_name.weights, by_model.weights)


def test_an_operation_of_ones_own():
    """Each model goes alone; the weights are those of as many runs."""
    square = gradwalk.custom_op(lambda x: x * x, lambda x, out: 2.0 * x, name="square")
    weight = gradwalk.Value(0.0)
    models = gradwalk.compile(lambda x: square(weight) * x).models([[3.0], [4.0]], [weight])
    assert repr(models).startswith("<2 models of 1 parameters, <lambda> (")
    assert models.step(SGD([weight], lr=0.1), [2.0, 3.0]).tolist() == [18.0, 48.0]
    assert models.weights.ravel().tolist() == pytest.approx([3.0 - 0.1 * 12.0, 4.0 - 0.1 * 24.0])


def test_refusals():
    weight = gradwalk.Value(1.0)
    compiled = gradwalk.compile(lambda x: weight * x)
    with pytest.raises(ValueError, match="expected 1 weights for each model"):
        compiled.models([[1.0, 2.0]], [weight])
    with pytest.raises(TypeError, match="structure of different Values"):
        compiled.models([[1.0, 2.0]], [weight, weight])
    with pytest.raises(ValueError, match="expected device='jax', or none for the native executor, got 'gpu'"):
        compiled.models([[1.0]], [weight], device="gpu")
    models = compiled.models([[1.0], [2.0]], [weight])
    with pytest.raises(ValueError, match="expected 2 inputs, one for each model, got 1"):
        models.value([1.0])
    with pytest.raises(TypeError, match="expected an optimiser"):
        models.step(object(), [1.0, 1.0])
    with pytest.raises(ValueError, match="finite learning rates"):
        models.step(SGD([weight], lr=1.0), [1.0, 1.0], lr=float("nan"))
    with pytest.raises(ValueError, match="expected weights for"):
        compiled.models({"w": [[1.0]]}, {"v": [weight]})


class Signs(optim.Optimiser):
    """As docs/contributing.md says: with as many settings and moments as SGD, and a step of its own."""

    __module__ = "gradwalk.optim"

    def __init__(self, parameters, lr):
        super().__init__(parameters, lr)
        self._moments = {"velocities": self._zeros()}

    loop = "signs"

    def settings(self, rate, steps):
        return rate, 0.9, 0.0, 0.0


def by_signs(parameters, rate, keep, _, __, means):
    for i, parameter in enumerate(parameters):
        means[i] = keep * means[i] + (1.0 - keep) * parameter.grad
        parameter.data -= rate * ((means[i] > 0.0) - (means[i] < 0.0))  # which only plain numbers can do


def test_a_new_optimiser_steps_by_its_own_loop(monkeypatch):
    """Alone, compiled, in a batch and with many models: nobody takes it for another one."""
    for loops in {id(each): each for each in (optim._REFERENCE, *optim._LOOPS.values())}.values():
        monkeypatch.setattr(loops, "signs", by_signs, raising=False)
    ends = []
    for way in ("eager", "train_step", "map_train_step", "models"):
        slope, offset = gradwalk.Value(0.25), gradwalk.Value(-0.5)
        loss = gradwalk.compile(lambda x, y, slope=slope, offset=offset: (slope * x + offset - y) ** 2)
        optimiser = Signs([slope, offset], lr=0.1)
        models = loss.models([[0.25, -0.5]] * 2, [slope, offset])
        for x in (1.0, 2.0, -1.0):
            if way == "eager":
                loss.backward(x, 2.0 * x)
                optimiser.step()
                optimiser.zero_grad()
            elif way == "train_step":
                loss.train_step(optimiser, x, 2.0 * x)
            elif way == "map_train_step":
                loss.map_train_step(optimiser, [(x, 2.0 * x)])
            else:
                models.step(optimiser, [(x, 2.0 * x)] * 2)
        ends += models.weights.tolist() if way == "models" else [[slope.data, offset.data]]
    assert np.allclose(ends, [ends[0]] * 5, rtol=1e-12)


@pytest.mark.parametrize("count", [1, 11])
def test_gradients_of_weights_that_stay(count):
    """As `backward` has them for each model alone, also where one branches otherwise or is infinite."""
    rng = np.random.default_rng(5)
    leaves = [gradwalk.Value(0.1) for _ in range(67)]
    compiled = gradwalk.compile(layered(leaves))
    weights = rng.normal(0.0, 0.5, (count, 67))
    weights[:, -3:] = 1.0, -1.0, 0.0
    weights[-1, -3:] = [-1.0, 0.0, 0.0]
    if count > 4:
        weights[3, -1] = 800.0
    inputs = [(rng.normal(0.0, 1.0, 8).tolist(), 0.5 + 0.1 * k) for k in range(count)]
    models = compiled.models(weights, leaves)
    with gradwalk.ieee():
        values, gradients = models.value_and_grad(inputs)
        assert np.array_equal(models.weights, weights)
        for row, given, value, gradient in zip(weights, inputs, values, gradients, strict=True):
            alone = [gradwalk.Value(number) for number in row]
            expected = gradwalk.compile(layered(alone)).backward(*given)
            assert value == pytest.approx(expected, rel=1e-12)
            slopes = [leaf.grad for leaf in alone] if np.isfinite(value) else [np.nan] * 67
            assert gradient == pytest.approx(slopes, rel=1e-12, abs=1e-12, nan_ok=True)


def test_models_whose_operation_asks_them_again_end():
    """As endless recursion does; each of two models trying on by itself would be 2**depth tries."""
    weight, asked = gradwalk.Value(2.0), []
    operation = custom_op(lambda x: (asked and many.value([1.0, 2.0]), x)[1], lambda x, out: 1.0)
    compiled = gradwalk.compile(lambda x: operation(x) * weight)
    compiled(3.0)
    many = compiled.models([[1.0], [2.0]], [weight])
    assert many.value([1.0, 2.0]).tolist() == [1.0, 4.0]
    asked.append(True)
    with pytest.raises(RecursionError):
        many.value([1.0, 2.0])
