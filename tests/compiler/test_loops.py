"""The loops over a graph in C and their twins in Python: one answer; and the nodes of a trace as arrays."""

from __future__ import annotations

import random
from array import array
from typing import Any

import numpy as np
import pytest

import gradwalk
from gradwalk import control, engine
from gradwalk.compiler.flat import starts_of
from gradwalk.compiler.loops import LOOPS, PLAIN
from gradwalk.compiler.recorded import in_python, recorded

native_only = pytest.mark.skipif(engine.NAME != "native", reason="there is one engine to ask")


def random_graph(seed: int) -> tuple[Any, Any]:
    """Leaves, and nodes of one to four children, many of them alike."""
    rng = random.Random(seed)
    children = [[rng.randrange(node) for _ in range(rng.randrange(5))] if node > 3 else [] for node in range(60)]
    return starts_of(np.array(list(map(len, children)))), np.array([c for row in children for c in row], np.int64)


def filled(loops: Any, name: str, starts: Any, children: Any, before: Any, *more: Any) -> tuple[list[Any], Any]:
    """What a loop makes of an array, and what it returns."""
    array = before.copy()
    returned = getattr(loops, name)(starts, children, array, *more)
    return array.tolist(), returned


@pytest.mark.parametrize("loops", [pytest.param(PLAIN, id="python"), pytest.param(LOOPS, id="engine")])
class TestEach:
    starts = starts_of(np.array([0, 0, 1, 2, 2]))
    children = np.array([0, 2, 1, 3, 2])

    def test_levels_count_from_the_leaves(self, loops: Any) -> None:
        assert filled(loops, "levels", self.starts, self.children, np.full(5, 9))[0] == [0, 0, 1, 2, 3]

    def test_latest_levels_count_from_the_users(self, loops: Any) -> None:
        assert filled(loops, "latest_levels", self.starts, self.children, np.full(5, 4))[0] == [1, 2, 2, 3, 4]

    def test_what_a_node_needs_is_marked(self, loops: Any) -> None:
        needed = np.array([False, False, True, False, False])
        assert filled(loops, "mark_needed", self.starts, self.children, needed)[0] == [True, False, True, False, False]

    def test_what_depends_on_a_node_is_marked(self, loops: Any) -> None:
        marked = np.array([False, True, False, False, False])
        assert filled(loops, "mark_users", self.starts, self.children, marked)[0] == [False, True, False, True, True]

    def test_equal_nodes_are_found_through_equal_children(self, loops: Any) -> None:
        starts, children = starts_of(np.array([0, 1, 1, 1, 1, 1])), np.array([0, 0, 1, 2, 2])
        doing = np.array([0, 7, 7, 8, 8, 9])
        assert filled(loops, "first_equals", starts, children, np.empty(6, np.int64), doing) == ([0, 1, 1, 3, 3, 5], 2)

    def test_rows_are_numbered_in_the_order_of_their_first_appearance(self, loops: Any) -> None:
        rows, numbers, firsts = np.array([[5, 1], [2, 2], [5, 1], [1, 5]]), np.empty(4, np.int64), np.empty(4, np.int64)
        count = loops.row_numbers(rows, numbers, firsts)
        assert (count, numbers.tolist(), firsts[:count].tolist()) == (3, [0, 1, 0, 2], [0, 1, 3])


@native_only
@pytest.mark.parametrize("seed", range(20))
def test_the_twins_agree(seed: int) -> None:
    starts, children = random_graph(seed)
    rng = np.random.default_rng(seed)
    some = rng.random(60) < 0.1
    for name, before, *more in (
        ("levels", np.zeros(60, np.int64)),
        ("latest_levels", np.full(60, 99)),
        ("mark_needed", some),
        ("mark_users", some),
        ("first_equals", np.zeros(60, np.int64), rng.integers(0, 3, 60)),
    ):
        expected = filled(PLAIN, name, starts, children, before, *more)
        assert expected == filled(LOOPS, name, starts, children, before, *more), name


@native_only
@pytest.mark.parametrize("children", [[1], [-1], [5]])
def test_a_child_that_does_not_come_first_is_refused(children: list[int]) -> None:
    with pytest.raises(ValueError, match="children come before the nodes that use them"):
        LOOPS.levels(starts_of(np.array([0, 1])), np.array(children), np.zeros(2, np.int64))


@native_only
@pytest.mark.parametrize("starts", [[-1, 0, 1], [1, 1, 1], [0, 0, 3, 1]])
def test_children_begin_with_the_first_and_go_on_in_order(starts: list[int]) -> None:
    """Also where what lies outside of the array would do."""
    with pytest.raises(ValueError, match="children come before the nodes that use them"):
        LOOPS.levels(np.array(starts), np.zeros(4, np.int64)[:1], np.zeros(len(starts) - 1, np.int64))


@native_only
@pytest.mark.parametrize("place", range(3))
def test_items_of_another_size_are_refused(place: int) -> None:
    """However many bytes there are of them."""
    given = [np.array([0, 0, 1]), np.array([0]), np.zeros(2, np.int64)]
    given[place] = given[place].view(np.int32)
    with pytest.raises(ValueError, match="items of 8 bytes"):
        LOOPS.levels(*given)


@native_only
def test_a_graph_that_was_refused_is_not_held() -> None:
    """Its arrays could not grow while somebody looks into them."""
    graph = [array("q", numbers) for numbers in ([0, 0, 1], [1], [0, 0])]
    with pytest.raises(ValueError, match="children come before"):
        LOOPS.levels(*graph)
    for each in graph:
        each.append(0)


@native_only
@pytest.mark.parametrize("end", [-1, 2])
def test_a_replacement_outside_the_array_is_refused(end: int) -> None:
    """Also where what lies there would end the chain."""
    whole = np.array([-1, end, 1, 2])
    with pytest.raises(ValueError, match="chains of replacements that end"):
        LOOPS.follow(whole[1:3])


@native_only
def test_an_array_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="expected 2 items of 8 bytes as nodes"):
        LOOPS.levels(starts_of(np.array([0, 1])), np.array([0]), np.zeros(3, np.int64))


def traced() -> tuple[list[Any], list[Any], Any]:
    """Nodes with hidden numbers, parameters, many children and leaves, the entry they begin with, and the last."""
    nodes: list[Any] = []
    entry, leaf = gradwalk.Value(0.5), gradwalk.Value(2.0)
    with control.changed(on_record=nodes.append):
        out = gradwalk.sum([(entry * 2.0 + leaf) ** 3, 2.0 - entry, gradwalk.clamp(leaf, -1.0, 1.5), leaf])
    return nodes, [entry], out


@native_only
def test_the_engine_and_python_make_one_graph_of_the_nodes() -> None:
    nodes, entries, out = traced()
    native, python = recorded(nodes, entries, [out], 3), in_python(nodes, entries, [out], 3)
    assert native is not None
    assert python is not None
    assert native.leaves == python.leaves
    assert native.codes.tolist() == python.codes.tolist()
    assert native.starts.tolist() == python.starts.tolist()
    assert native.with_parameters.tolist() == python.with_parameters.tolist()
    assert native.parameters.tolist() == python.parameters.tolist()
    assert _described(native) == _described(python)


def _described(made: Any) -> list[Any]:
    """Every child and root: the number of a constant, the place of an entry or leaf, the place among the nodes."""
    first = 1 + len(made.leaves)
    constants = made.constants.tolist()
    return [
        place if place < first
        else ("number", constants[place - first]) if place < first + len(constants)
        else ("node", place - first - len(constants) - 3)
        for place in (*made.children.tolist(), *made.roots.tolist())
    ]  # fmt: skip


def test_one_number_used_twice_is_one_constant_on_the_native_engine_and_never_lost() -> None:
    nodes, entries, out = traced()
    made = recorded(nodes, entries, [out], 0)
    assert made is not None
    assert set(made.constants.tolist()) == {2.0}
    assert made.constant_uses == 2


def test_gradients_are_as_they_were_after_the_nodes_were_read() -> None:
    nodes, entries, out = traced()
    out.backward()
    everything = [*nodes, *entries, *out._children]
    before = [value.grad for value in everything]
    recorded(nodes, entries, [out], 0)
    assert [value.grad for value in everything] == before


@pytest.mark.parametrize("way", [recorded, in_python])
def test_a_node_without_children_is_not_for_a_program(way: Any) -> None:
    assert way([gradwalk.Value(1.0)], [], [], 0) is None
