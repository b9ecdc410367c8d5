"""Identity, comparison, copying and pickling."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import pytest

import gradwalk.engine

# ---------------------------------------------------------------- identity


def test_values_live_in_sets_and_dicts(engine: Any) -> None:
    """Each is one key, whatever its number, and stays findable when its number changes."""
    values = [engine.Value(1.0) for _ in range(100)]
    places = {value: i for i, value in enumerate(values)}
    for value in values:
        value.data = 7.0
    assert [places[value] for value in values] == list(range(100))
    assert len(set(values + values)) == 100
    assert engine.Value(7.0) not in places


def test_hash_is_stable(engine: Any) -> None:
    """The hash does not change when a label, a gradient or a _backward moves the node to another layout."""
    x = engine.Value(2.0)
    y = x * 3
    before = hash(x), hash(y)
    x.label, y.label = "x", "y"
    y._backward = lambda: None
    x.grad = engine.Value(1.0)
    assert (hash(x), hash(y)) == before


def test_comparisons_compare_data(engine: Any) -> None:
    """<, <=, >, >= between Values, and with numbers on either side."""
    one, two, other = engine.Value(1.0), engine.Value(2.0), engine.Value(1.0)
    assert [one < two, one <= two, one > two, one >= two] == [True, True, False, False]
    assert [one < other, one <= other, one > other, one >= other] == [False, True, False, True]
    assert [one < 2, one <= 1.0, one > 2, one >= 0] == [True, True, False, True]
    assert [2 > one, 0 >= one, True <= one] == [True, False, True]  # noqa: SIM300


def test_comparisons_with_nan_are_false(engine: Any) -> None:
    """As for floats."""
    x, nan = engine.Value(1.0), engine.Value(math.nan)
    assert not any([x < nan, x <= nan, x > nan, x >= nan, nan < 1.0, nan >= nan])


def test_comparisons_give_bools(engine: Any) -> None:
    """A comparison is a plain bool, so that max, min and sorted work."""
    values = [engine.Value(d) for d in (2.0, -1.0, 3.0)]
    assert type(values[0] < values[1]) is bool
    assert (max(values) is values[2], min(values) is values[1]) == (True, True)
    assert [value.data for value in sorted(values)] == [-1.0, 2.0, 3.0]


# ---------------------------------------------------------------- copies


def leaf(engine: Any) -> Any:
    x = engine.Value(2.5, label="w")
    x.grad = -0.5
    return x


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy], ids=lambda f: f.__name__)
def test_a_copied_leaf(engine: Any, duplicate: Any) -> None:
    """A copy has the same number, gradient and label, and a life of its own."""
    x = leaf(engine)
    y = duplicate(x)
    assert y is not x
    assert type(y) is type(x)
    assert (y.data, y.grad, y.label) == (2.5, -0.5, "w")
    y.data = 9.0
    assert x.data == 2.5


def test_a_shallow_copy_shares_the_children(engine: Any) -> None:
    """copy.copy of a result is a node over the same children."""
    x = engine.Value(3.0)
    y = copy.copy(x * x)
    y.backward()
    assert (y._children, y._op, x.grad) == ((x, x), "*", 6.0)


def test_a_deep_copy_has_a_graph_of_its_own(engine: Any) -> None:
    """copy.deepcopy copies what is below, keeps sharing as it is, and leaves the original alone."""
    x = engine.Value(3.0, label="x")
    y = x * x
    z = copy.deepcopy(y + y * 2)
    z.backward()
    (copied,) = (node for node in z._topological_order() if node.label == "x")
    assert (x.grad, copied is x, copied.grad) == (0.0, False, 18.0)


def test_a_deep_copy_of_a_model(engine: Any) -> None:
    """A list in which one leaf appears twice still has it twice after the copy."""
    x = engine.Value(3.0)
    model = copy.deepcopy({"weights": [x, x], "out": x * 2})
    first, second = model["weights"]
    assert first is second is model["out"]._children[0]
    assert first is not x


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_leaf_is_pickled(engine: Any, protocol: int) -> None:
    """Number, gradient and label come back."""
    if engine.name != gradwalk.engine.NAME == "reference":
        pytest.skip("gradwalk.Value is the other engine's in this process")
    y = pickle.loads(pickle.dumps(leaf(engine), protocol))
    assert (type(y), y.data, y.grad, y.label) == (engine.Value, 2.5, -0.5, "w")


@pytest.mark.parametrize("number", [-0.0, math.inf, math.nan, 5e-324])
def test_special_numbers_survive_copies(engine: Any, number: float) -> None:
    """Copies keep the bits."""
    assert repr(copy.copy(engine.Value(number)).data) == repr(number)


def test_a_result_is_not_pickled(engine: Any) -> None:
    """What it was computed from would have to come along: an error says what to do."""
    with pytest.raises(TypeError, match=r"pickle: expected a leaf, got the result of '\*'; pickle its .data"):
        pickle.dumps(engine.Value(2.0) * 3)


class Parameter(gradwalk.engine.load("reference").Value):
    """A subclass of the reference engine's Value that pickle can find by name."""


class NativeParameter(gradwalk.engine.load("native").Value):
    """The same for the native engine."""


@pytest.mark.parametrize("cls", [Parameter, NativeParameter], ids=["reference", "native"])
def test_a_subclass_is_copied_with_its_attributes(cls: Any) -> None:
    """copy, deepcopy and pickle keep the class and what the instance carries."""
    p = cls(2.0, label="p")
    p.name = "weight"
    for duplicate in (copy.copy(p), copy.deepcopy(p), pickle.loads(pickle.dumps(p))):
        assert (type(duplicate), duplicate.data, duplicate.label) == (cls, 2.0, "p")
        assert duplicate.name == "weight"


def test_a_copied_gradient_that_is_a_value(engine: Any) -> None:
    """A leaf with a gradient from create_graph is copied with the gradient's number."""
    x = engine.Value(2.0)
    (x**3).backward(create_graph=True)
    assert copy.copy(x).grad == copy.deepcopy(x).grad == 12.0
    x.grad = 0.0
