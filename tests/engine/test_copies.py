"""Copying and pickling: a copy of a number inside a function is the number; a copied model has leaves of its own."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from measures import python

import gradwalk
import gradwalk.engine


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


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy], ids=lambda f: f.__name__)
def test_a_copy_of_a_result_keeps_its_history(engine: Any, duplicate: Any) -> None:
    """Its gradient goes where the original's would go; its label comes with it."""
    x = engine.Value(3.0)
    square = x * x
    square.label = "square"
    y = duplicate(square)
    (y * 2.0).backward()
    assert (y.data, y.label, x.grad) == (9.0, "square", 12.0)


def test_a_copy_of_a_hand_written_node(engine: Any) -> None:
    """The assigned _backward runs for the copy too."""
    x = engine.Value(3.0)
    out = engine.Value(9.0, (x,), "square")

    def backward() -> None:
        x.grad += 6.0 * out.grad

    out._backward = backward
    for duplicate in (copy.copy, copy.deepcopy):
        x.grad = 0.0
        (duplicate(out) * 2.0).backward()
        assert x.grad == 12.0


def test_a_deep_copy_of_a_model(engine: Any) -> None:
    """Its leaves are its own; one that appears twice still does."""
    x, y = engine.Value(3.0), engine.Value(4.0)
    model = copy.deepcopy({"weights": [x, x], "bias": y})
    first, second = model["weights"]
    assert first is second
    assert first is not x
    (first * model["bias"]).backward()
    assert (first.grad, x.grad, y.grad) == (4.0, 0.0, 0.0)


@pytest.mark.parametrize("order", [("leaf", "result"), ("result", "leaf")], ids=str)
def test_a_deep_copy_of_both_is_refused(engine: Any, order: Any) -> None:
    """A leaf with a life of its own and a result with its history cannot both be had."""
    x = engine.Value(3.0)
    held = {"leaf": x, "result": (x * 2.0).tanh(), "other": engine.Value(1.0)}
    with pytest.raises(
        TypeError, match="deepcopy: expected leaves, or results of operations, got a leaf together with"
    ):
        copy.deepcopy([held[name] for name in ("other", *order)])
    copied = copy.deepcopy([held["other"], held["result"]])
    (copied[0] * copied[1]).backward()
    assert (x.grad != 0.0, held["other"].grad) == (True, 0.0)


def test_copies_of_a_replaced_class(engine: Any) -> None:
    """Under `gradwalk run` a deepcopy has a graph of its own, as the script's own class gives it."""
    gradwalk.engine.set_equality_is_identity(True)
    try:
        x = engine.Value(3.0, label="x")
        leaf, result = copy.deepcopy([x, x * x])
    finally:
        gradwalk.engine.set_equality_is_identity(False)
    result.backward()
    assert (result._children[0] is leaf, leaf.grad, x.grad) == (True, 6.0, 0.0)


def test_a_hand_written_node_of_a_replaced_class(engine: Any) -> None:
    """Its closure is the script's own, and stays: it holds what it held."""
    gradwalk.engine.set_equality_is_identity(True)
    try:
        x = engine.Value(3.0)
        out = engine.Value(6.0, (x,), "twice")
        out._backward = lambda: setattr(x, "grad", x.grad + 2.0 * out.grad)
        out.grad = 5.0
        copied = copy.deepcopy(out)
    finally:
        gradwalk.engine.set_equality_is_identity(False)
    assert (copied._backward, copied.grad, copied._children[0] is x) == (out._backward, 5.0, False)


def test_what_a_memo_has_is_not_copied_again(engine: Any) -> None:
    """Whoever calls __deepcopy__ with a memo gets one copy of each Value."""
    x, memo = engine.Value(3.0), {}
    memo[id(x)] = x.__deepcopy__(memo)
    assert x.__deepcopy__(memo) is memo[id(x)] is not x


# ---------------------------------------------------------------- inside a function that is differentiated


@dataclasses.dataclass
class State:
    position: Any
    speed: Any


def history(x: Any) -> Any:
    """A simulation that keeps its states by deepcopy."""
    state, kept = State(x, x * 0.5), []
    for _ in range(5):
        state.position = state.position + 0.1 * state.speed
        state.speed = state.speed - 0.1 * state.position
        kept.append(copy.deepcopy(state))
    return sum((each.position * each.speed for each in kept), 0.0)


INSIDE = {
    "copy": lambda x: copy.copy(x) * x,
    "deepcopy": lambda x: copy.deepcopy(x) * x,
    "list": lambda x: copy.deepcopy([x, x * x])[0] * x,
    "asdict": lambda x: dataclasses.asdict(State(x, 2.0 * x))["speed"] * x,
    "astuple": lambda x: dataclasses.astuple(State(x, 2.0 * x))[0] * x,
    "history": history,
}


@pytest.mark.parametrize("name", INSIDE)
def test_a_copy_inside_is_the_same_number(name: str) -> None:
    """Eager, compiled and compiled exactly: with the same history, to second derivatives."""
    f = INSIDE[name]
    step = 1e-6
    expected = (f(2.0 + step) - f(2.0 - step)) / (2.0 * step)
    for made in (f, gradwalk.compile(f), gradwalk.compile(f, exact=True)):
        value, slope = gradwalk.value_and_grad(made)(2.0)
        assert (value, slope) == (pytest.approx(f(2.0), rel=1e-15), pytest.approx(expected, rel=1e-8))
        assert gradwalk.grad(gradwalk.grad(made))(2.0) == gradwalk.grad(gradwalk.grad(f))(2.0)


def test_pickling_inside_is_refused() -> None:
    """It would cut the graph in silence."""
    with pytest.raises(TypeError, match="pickle: expected a Value outside of a function that is differentiated"):
        gradwalk.grad(lambda x: pickle.loads(pickle.dumps(x)) * x)(2.0)


# ---------------------------------------------------------------- pickling, and what comes along


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


# ---------------------------------------------------------------- where no mode tells that it is inside


def in_a_thread(function: Any) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def test_a_copy_in_a_thread_of_the_function() -> None:
    """It was cut off: 3 for 6."""
    assert gradwalk.grad(lambda x: in_a_thread(lambda: copy.deepcopy(x) * x))(3.0) == 6.0
    assert gradwalk.grad(lambda x: in_a_thread(lambda: copy.copy([x])[0] * copy.copy(x)))(3.0) == 6.0
    with pytest.raises(TypeError, match="pickle: expected a Value outside of a function"):
        gradwalk.grad(lambda x: in_a_thread(lambda: pickle.loads(pickle.dumps(x)) * x))(3.0)


def test_a_model_that_another_thread_copies_meanwhile() -> None:
    """What is differentiated is not the model, so its copy is a model of its own."""
    model = [gradwalk.Value(2.0)]
    copied = []

    def function(x: Any) -> Any:
        copied.extend(in_a_thread(lambda: copy.deepcopy(model)))
        return x * model[0]

    assert gradwalk.grad(function)(3.0) == 2.0
    assert copied[0]._children == ()


def test_a_derivative_in_a_thread_of_the_function() -> None:
    """It came back as a number, and what it depends on was lost: 0 for 4."""
    inner = lambda x: in_a_thread(lambda: gradwalk.grad(lambda y: x * y * y)(2.0))  # noqa: E731
    assert gradwalk.grad(inner)(3.0) == 4.0
    w = gradwalk.Value(3.0)
    own = lambda x: x * in_a_thread(lambda: gradwalk.grad(lambda y: w * y * y)(2.0))  # noqa: E731
    assert gradwalk.grad(own)(3.0) == 12.0
    both = lambda x: in_a_thread(lambda: gradwalk.grad(lambda y: w * x * y * y)(2.0))  # noqa: E731
    assert gradwalk.grad(both)(3.0) == 12.0


def test_what_a_function_has_kept_is_outside_again() -> None:
    """Once its derivative is taken, a copy of its argument is a leaf."""
    kept: list[Any] = []
    gradwalk.grad(lambda x: kept.append(x) or x * x)(3.0)  # type: ignore[func-returns-value]
    assert copy.copy(kept[0])._children == ()


@pytest.mark.parametrize("function", [
    lambda x: copy.deepcopy(x) * x,
    lambda x: gradwalk.grad(lambda y: x * x * y)(1.0),
])  # fmt: skip
def test_inside_a_checkpoint(function: Any) -> None:
    """It is run again for its derivative, and is inside all the time."""
    checkpointed = gradwalk.checkpoint(function)
    assert gradwalk.grad(lambda x: checkpointed(x) * 1.0)(3.0) == 6.0
    x = gradwalk.Value(3.0)
    checkpointed(x).backward()
    assert x.grad == 6.0


def test_a_checkpoint_is_run_again_as_it_was_run() -> None:
    x = gradwalk.Value(0.0)
    with gradwalk.ieee():
        y = gradwalk.checkpoint(lambda x: x.log())(x)
    y.backward()
    assert x.grad == math.inf


PUBLIC = """
import importlib, inspect, pickle, gradwalk

def of(module):
    names = dir(module) if "numpy" in module.__name__ or "scipy" in module.__name__ else module.__all__
    return {name: getattr(module, name) for name in names if not name.startswith("_")}

for name in ("", ".functions", ".math", ".statistics", ".numpy", ".numpy.linalg", ".scipy.special", ".scipy.stats",
             ".scipy.integrate"):
    theirs = vars(importlib.import_module(name[1:])) if name not in ("", ".functions") else {}
    for each, it in of(importlib.import_module("gradwalk" + name)).items():
        if inspect.isroutine(it) and it is not theirs.get(each):
            try:
                assert pickle.loads(pickle.dumps(it)) is it, "another object"
            except Exception as error:
                print(name, each, error)
assert pickle.loads(pickle.dumps(gradwalk.compile(gradwalk.math.sin)))(0.0).data == 0.0
"""


@pytest.mark.parametrize("name", ["native", "reference"])
def test_functions_are_pickled_by_name(name: str) -> None:
    """Each that is not the standard library's, NumPy's or SciPy's own comes back as itself."""
    done = python(PUBLIC, GRADWALK_ENGINE=name)
    assert (done.stdout, done.stderr) == ("", "")
