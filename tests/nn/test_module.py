"""Module: which Values are parameters, what they are called, saving and loading them, freezing, showing."""

from __future__ import annotations

import gc
import pickle
import sys
from typing import Any

import numpy as np
import pytest

from gradwalk import Value
from gradwalk.nn import GPT, MLP, Linear, Module


class Sample(Module):
    """One of everything a module may hold."""

    def __init__(self) -> None:
        self.matrix = [[Value(1.0), Value(2.0)], [Value(3.0), Value(4.0)], [Value(5.0), Value(6.0)]]
        self.name = "no parameter"
        self.part = Linear(2, 1, bias=True, deviation=0.0)
        self.by_name = {"left": Value(7.0), "right": [Value(8.0)]}
        self.ragged = [[Value(9.0)], [Value(10.0), Value(11.0)]]
        self.parts = (Linear(1, 1, deviation=0.0), [Linear(1, 1, deviation=0.0)])
        self.single = Value(12.0)


NAMES = [
    "matrix.0.0", "matrix.0.1", "matrix.1.0", "matrix.1.1", "matrix.2.0", "matrix.2.1", "part.weight.0.0",
    "part.weight.0.1", "part.bias.0", "by_name.left", "by_name.right.0", "ragged.0.0", "ragged.1.0", "ragged.1.1",
    "parts.0.weight.0.0", "parts.1.0.weight.0.0", "single",
]  # fmt: skip


def test_order_and_names_of_parameters() -> None:
    """Parameters come in the order of assignment, depth first, under dotted names; both lists agree."""
    module = Sample()
    named = list(module.named_parameters())
    assert [name for name, _ in named] == NAMES
    assert [value for _, value in named] == module.parameters()


def test_tensors_are_named_by_their_attribute() -> None:
    """A rectangular list is one tensor, a ragged one falls apart into its rows, a Value has the shape ()."""
    shapes = {name: array.shape for name, array in Sample().state_dict().items()}
    assert shapes == {
        "matrix": (3, 2), "part.weight": (1, 2), "part.bias": (1,), "by_name.left": (), "by_name.right": (1,),
        "ragged.0": (1,), "ragged.1": (2,), "parts.0.weight": (1, 1), "parts.1.0.weight": (1, 1), "single": (),
    }  # fmt: skip


def test_names_of_the_mlp_and_the_gpt() -> None:
    """A neuron's weights are one tensor and its bias another; a matrix of the GPT is one tensor."""
    mlp = {name: array.shape for name, array in MLP(2, [3, 1]).state_dict().items()}
    assert (mlp["layers.0.neurons.1.w"], mlp["layers.0.neurons.1.b"]) == ((2,), ())
    assert {name: array.shape for name, array in GPT().state_dict().items()} == {
        "token_embedding.weight": (27, 16), "position_embedding.weight": (8, 16), "blocks.0.attention.wq": (16, 16),
        "blocks.0.attention.wk": (16, 16), "blocks.0.attention.wv": (16, 16), "blocks.0.attention.wo": (16, 16),
        "blocks.0.mlp.up": (64, 16), "blocks.0.mlp.down": (16, 64), "head.weight": (27, 16),
    }  # fmt: skip


def test_what_was_computed_is_no_parameter() -> None:
    """A module may keep results in its attributes: only leaves are parameters."""
    module = Sample()
    module.last = module.single * 2.0  # type: ignore[attr-defined]
    module.outputs = [module.single + 1.0, module.last]  # type: ignore[attr-defined]
    assert [name for name, _ in module.named_parameters()] == NAMES
    assert len(module.parameters()) == len(NAMES)


def test_a_list_with_a_result_in_it_is_no_tensor() -> None:
    """Of a list that holds leaves and results, the leaves are parameters, each by itself."""
    module = Module()
    leaf = Value(1.0)
    module.mixed = [leaf, leaf * 2.0]  # type: ignore[attr-defined]
    assert {"mixed.0": leaf} == module.tensors()


def test_one_list_under_two_names_is_one_tensor() -> None:
    """Also where it is all that the module has."""
    module = Module()
    module.weight = [Value(1.0), Value(2.0)]  # type: ignore[attr-defined]
    module.again = module.weight  # type: ignore[attr-defined]
    assert list(module.tensors()) == ["weight"]


def test_shared_parameters_come_once() -> None:
    """What two attributes share appears once, under the first name, and a module may know its owner."""
    module = Sample()
    module.again, module.owner, module.row = module.part, module, module.matrix[0]  # type: ignore[attr-defined]
    assert [name for name, _ in module.named_parameters()] == NAMES
    assert len(module.parameters()) == len(NAMES)
    assert repr(module)


def test_parameters_are_labelled_with_their_paths() -> None:
    """By the outermost module's constructor, in every model that is made; a label of the user's own stays."""

    class Labelled(Sample):
        def __init__(self) -> None:
            super().__init__()
            self.own = Value(13.0)
            self.own.label = "my own"

    for _ in range(2):
        module = Labelled()
        assert [*NAMES, "my own"] == [value.label for value in module.parameters()]


def test_a_constructor_that_fails_leaves_the_next_its_labels() -> None:
    """Whoever catches the error can make another model, and finds its parameters labelled."""

    class Failing(Module):
        def __init__(self) -> None:
            raise ValueError("on purpose")

    with pytest.raises(ValueError, match="on purpose"):
        Failing()
    assert [value.label for value in Linear(1, 1).parameters()] == ["weight.0.0"]


def test_a_module_beside_another_base() -> None:
    """What the other base does when it is subclassed still happens."""
    told: list[str] = []

    class Telling:
        def __init_subclass__(cls) -> None:
            super().__init_subclass__()
            told.append(cls.__name__)

    class Both(Module, Telling):
        pass

    assert [Both.__name__] == told


def test_a_list_that_contains_itself_is_no_place_for_parameters() -> None:
    """Looking for parameters ends in Python's own error, as any recursion without an end."""
    module = Module()
    module.endless = []  # type: ignore[attr-defined]
    module.endless.append(module.endless)  # type: ignore[attr-defined]
    with pytest.raises(RecursionError):
        module.parameters()


def test_a_part_with_its_own_parameters_method() -> None:
    """In the style of micrograd, a class may say itself what its parameters are; whoever holds it asks it."""

    class Half(Linear):
        def parameters(self) -> list[Value]:
            return self.weight[0]

    module = Module()
    module.half = Half(2, 2)  # type: ignore[attr-defined]
    assert module.parameters() == module.half.weight[0]  # type: ignore[attr-defined]


def test_asking_for_parameters_leaves_nothing_behind() -> None:
    """The list of parameters is the only thing that parameters() leaves, without help from the cycle collector."""
    module = Sample()
    before = sys.getrefcount(module.single)
    gc.disable()
    try:
        module.parameters()
        module.zero_grad()
        after = sys.getrefcount(module.single)
    finally:
        gc.enable()
    assert after == before


def test_zero_grad() -> None:
    """Every gradient is 0.0 afterwards, also one that is a Value."""
    module = Sample()
    for parameter in module.parameters():
        parameter.grad = 3.0
    module.single.grad = Value(1.0)
    module.zero_grad()
    assert [parameter.grad for parameter in module.parameters()] == [0.0] * len(NAMES)


def test_state_survives_a_round_trip_to_the_bit() -> None:
    """What state_dict gives, load_state_dict takes: every bit, in the Values that are there."""
    model, other = GPT(seed=1), GPT(seed=2)
    values = other.parameters()
    other.load_state_dict(model.state_dict())
    assert [p.data.hex() for p in other.parameters()] == [p.data.hex() for p in model.parameters()]
    assert all(now is before for now, before in zip(other.parameters(), values, strict=True))


def test_state_is_a_copy() -> None:
    """A state that was taken does not change with the parameters."""
    module = Sample()
    state = module.state_dict()
    module.single.data = 99.0
    assert (state["single"], state["single"].dtype) == (12.0, np.float64)


def test_nested_lists_load_too() -> None:
    """A state may hold nested lists, whole numbers and float32 arrays."""
    linear = Linear(2, 1, bias=True)
    linear.load_state_dict({"weight": [[1, 2.5]], "bias": np.array([3.0], dtype=np.float32)})
    assert [parameter.data for parameter in linear.parameters()] == [1.0, 2.5, 3.0]


@pytest.mark.parametrize(
    ("state", "complaint"),
    [
        ({"weight": [[1.0, 2.0]]}, "missing 'bias'$"),
        ({"weight": [[1.0, 2.0]], "bias": [0.0], "gain": 1.0}, "unexpected 'gain'$"),
        ({"weight": [1.0, 2.0], "bias": [0.0]}, r"'weight' has shape \(2,\) instead of \(1, 2\)$"),
        ({"weight": [[1.0, 2.0]], "bias": 0.0}, r"'bias' has shape \(\) instead of \(1,\)$"),
        ({"weight": [["1", "2"]], "bias": [0.0]}, "'weight' holds no real numbers$"),
        ({"weight": [[1.0, 2.0], [3.0]], "bias": [0.0]}, "'weight' holds no real numbers$"),
        ({"weight": [[1j, 2.0]], "bias": [0.0]}, "'weight' holds no real numbers$"),
        ({"weight": [[True, 2.0]], "bias": [0.0]}, "'weight' holds no real numbers$"),
        ({"weight": [[10**400, 2.0]], "bias": [0.0]}, "'weight' holds no real numbers$"),
        (dict.fromkeys("abcde", 0.0), "missing 'weight', 'bias'; unexpected 'a', 'b', 'c' and 2 more$"),
    ],
)
def test_a_state_that_does_not_fit(state: dict[str, Any], complaint: str) -> None:
    """One sentence names what is missing, unexpected or misshapen, and no parameter has changed."""
    linear = Linear(2, 1, bias=True)
    before = [parameter.data for parameter in linear.parameters()]
    with pytest.raises(ValueError, match=complaint):
        linear.load_state_dict(state)
    assert [parameter.data for parameter in linear.parameters()] == before


def test_frozen_computes_the_same_without_recording() -> None:
    """A frozen copy gives the same numbers as plain floats, and does not follow the model any more."""
    for model in (MLP(2, [3, 1]), MLP(2, [1, 2, 1], activation="tanh"), Linear(2, 3, bias=True)):
        frozen, inputs = model.frozen(), [0.5, -2.0]
        expected = [out.data for out in np.ravel(model(inputs))]
        assert [float(out) for out in np.ravel(frozen(inputs))] == expected
        assert all(isinstance(out, float) for out in np.ravel(frozen(inputs)))
        assert frozen.parameters() == []
        model.parameters()[0].data += 1.0
        assert [float(out) for out in np.ravel(frozen(inputs))] == expected


def test_a_frozen_part_that_is_used_twice_is_one() -> None:
    """Parts in lists, tuples and dicts are frozen too; whoever shared one shares its frozen twin."""
    model = Sample()
    model.again = {"same": model.part}
    frozen = model.frozen()
    assert frozen.again["same"] is frozen.part is not model.part
    assert [part.parameters() for part in (frozen, frozen.parts[0], frozen.parts[1][0])] == [[], [], []]
    assert (frozen.parts[0].weight, frozen.by_name["right"]) == ([[0.0]], [8.0])


def test_repr_shows_the_tree() -> None:
    """A line for each tensor with its shape and for each part; parts with a repr of their own keep it."""
    module = Module()
    module.mlp, module.steps, module.scale = MLP(2, [1]), [Linear(1, 2)], Value(1.0)  # type: ignore[attr-defined]
    assert repr(module).splitlines() == [
        "Module: 6 parameters",
        "  mlp: MLP of [Layer of [LinearNeuron(2)]]",
        "  steps.0: Linear",
        "    weight: 2 × 1",
        "  scale: 1",
    ]


def test_models_can_be_pickled() -> None:
    """A model goes through pickle with its parameters."""
    model = MLP(2, [3, 1], activation="gelu")
    twin = pickle.loads(pickle.dumps(model))
    assert twin([1.0, 2.0]).data == model([1.0, 2.0]).data
