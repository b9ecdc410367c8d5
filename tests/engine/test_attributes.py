"""What people hang on a Value, and how a Value is formatted."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
from typing import Any

import pytest

import gradwalk
import gradwalk.engine


def test_anything_may_be_hung_on_a_value(engine: Any) -> None:
    """Adam's moments, a colour, an id: on a leaf, a result, a node made by hand; others have nothing of it."""
    x = engine.Value(2.0)
    nodes = [x, x * 3.0, x.tanh(), engine.Value(1.0, (x,), "by hand"), x + x * x]
    for i, node in enumerate(nodes):
        node.moment, node.colour = 0.5 * i, "red"
        node.moment += 1.0
    assert [node.moment for node in nodes] == [0.5 * i + 1.0 for i in range(5)]
    assert nodes[1]._attributes == {"moment": 1.5, "colour": "red"}
    assert not hasattr(engine.Value(1.0), "moment")
    nodes[-1].backward()
    assert (x.grad, x.colour) == (5.0, "red")


def test_attributes_are_deleted_and_missed(engine: Any) -> None:
    """With the words of the interpreter."""
    x = engine.Value(2.0)
    for act in (lambda: x.never, lambda: delattr(x, "never")):
        with pytest.raises(AttributeError, match="never"):
            act()
    x.there = 1
    del x.there
    with pytest.raises(AttributeError, match="'Value' object has no attribute 'there'"):
        _ = x.there
    with pytest.raises(AttributeError):
        del x.there


@pytest.mark.parametrize("name", ["backward", "relu", "_op"])
def test_nothing_is_hung_in_the_place_of_a_method(native: Any, name: str) -> None:
    x = native.Value(2.0)
    with pytest.raises(AttributeError, match=name):
        setattr(x, name, 1)
    assert x._attributes == {}


def test_a_subclass_has_a_dict_of_its_own(engine: Any) -> None:
    """A name that was hung on a Value before makes no difference to it."""

    class Weight(engine.Value):  # type: ignore[misc, name-defined]
        pass

    engine.Value(1.0).rank = 1
    w = Weight(2.0)
    w.rank = 7
    assert (w.rank, w.__dict__, w._attributes) == (7, {"rank": 7}, {"rank": 7})
    del w.rank
    assert not hasattr(w, "rank")


def test_copies_and_pickles_carry_them(engine: Any) -> None:
    """A deepcopy copies what they hold, and finds its way through a ring."""
    x = engine.Value(2.0)
    x.held = [1.0]
    x.ring = x
    shallow, deep = copy.copy(x), copy.deepcopy(x)
    assert (shallow.held is x.held, deep.held == [1.0], deep.held is x.held) == (True, True, False)
    assert deep.ring is deep
    result = copy.deepcopy(x * 2.0)
    assert result._attributes == {}
    if engine.name == gradwalk.engine.NAME:
        del x.ring
        assert pickle.loads(pickle.dumps(x)).held == [1.0]


def test_they_go_with_their_node(native: Any) -> None:
    """What is held is let go when the node is freed, and a node without any costs nothing."""
    held = [object()]
    before = sys.getrefcount(held)
    for _ in range(10):
        x = native.Value(1.0)
        x.held = held
        (x * 2.0).held = held
        x.ring = [x]
    del x
    gc.collect()
    assert sys.getrefcount(held) == before
    assert native.Value.__basicsize__ == 64


def test_formatting_shows_the_number(engine: Any) -> None:
    """f"{loss:.4f}"; without a specification it is what str() gives."""
    x = engine.Value(2.5)
    assert (f"{x:.3f}", f"{x:>8}", f"{x}", format(x, "e")) == ("2.500", "     2.5", str(x), "2.500000e+00")
    with pytest.raises(ValueError, match="format"):
        f"{x:d}"


@pytest.mark.parametrize("shown", [lambda x: f"{x:.3f}", repr, str], ids=["format", "repr", "str"])
def test_showing_in_a_trace_is_refused(shown: Any) -> None:
    """The text would be that of the first call for ever."""

    def f(x: Any) -> Any:
        return x * len(shown(x))

    with pytest.raises(TypeError, match=r"compile: |^format: "):
        gradwalk.compile(f)(gradwalk.Value(2.0))
    assert gradwalk.grad(f)(2.0) == len(shown(gradwalk.Value(2.0)))
