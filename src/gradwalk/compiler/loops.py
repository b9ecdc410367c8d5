"""Loops over a flat graph that go from node to node, as NumPy cannot: in C on the native engine, else the ones below.

Both fill in an array they are given. The children of node i are `children[starts[i]:starts[i + 1]]`, as in a `Flat`.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from gradwalk import engine

if TYPE_CHECKING:
    from gradwalk.compiler.flat import Ints, Truths


def levels(starts: Ints, children: Ints, level: Ints) -> None:
    """0 for nodes without children, else one more than the highest child's."""
    made = [0] * len(level)
    used, begin = children.tolist(), 0
    for node, end in enumerate(starts[1:].tolist()):
        if end > begin:
            made[node] = 1 + max([made[child] for child in used[begin:end]])
        begin = end
    level[:] = made


def latest_levels(starts: Ints, children: Ints, level: Ints) -> None:
    """Lowers the levels it is given until every node is below those that use it."""
    latest, used = level.tolist(), children.tolist()
    end = len(used)
    for node in range(len(latest) - 1, -1, -1):
        begin = int(starts[node])
        for child in used[begin:end]:
            if latest[child] >= latest[node]:
                latest[child] = latest[node] - 1
        end = begin
    level[:] = latest


def mark_needed(starts: Ints, children: Ints, needed: Truths) -> None:
    """Marks whatever the marked nodes depend on."""
    marks, used = needed.tolist(), children.tolist()
    for node in np.flatnonzero(np.diff(starts))[::-1].tolist():
        if marks[node]:
            for child in used[starts[node] : starts[node + 1]]:
                marks[child] = True
    needed[:] = marks


def mark_users(starts: Ints, children: Ints, marked: Truths) -> None:
    """Marks whatever depends on the marked nodes."""
    marks, used = marked.tolist(), children.tolist()
    for node in np.flatnonzero(np.diff(starts)).tolist():
        marks[node] = marks[node] or any(marks[child] for child in used[starts[node] : starts[node + 1]])
    marked[:] = marks


def first_equals(starts: Ints, children: Ints, firsts: Ints, doing: Ints) -> int:
    """For each node the first that does the same with the same children; returns how many have another before them."""
    first, used = list(range(len(firsts))), children.tolist()
    seen: dict[tuple[Any, ...], int] = {}
    nodes = np.flatnonzero(np.diff(starts)).tolist()
    for node in nodes:
        key = int(doing[node]), *(first[child] for child in used[starts[node] : starts[node + 1]])
        first[node] = seen.setdefault(key, node)
    firsts[:] = first
    return len(nodes) - len(seen)


def follow(ends: Ints) -> None:
    """From each node's replacement to the end of its chain of replacements."""
    chain = ends.tolist()
    for node in range(len(chain)):
        path = []
        while chain[node] != node:
            path.append(node)
            node = chain[node]
        for passed in path:
            chain[passed] = node
    ends[:] = chain


def row_numbers(rows: Ints, numbers: Ints, firsts: Ints) -> int:
    """Equal rows get one number, in the order of their first appearance, which is noted; returns how many there are."""
    seen: dict[tuple[int, ...], int] = {}
    for place, row in enumerate(map(tuple, rows.tolist())):
        if row not in seen:
            firsts[len(seen)] = place
            seen[row] = len(seen)
        numbers[place] = seen[row]
    return len(seen)


PLAIN = SimpleNamespace(
    levels=levels,
    latest_levels=latest_levels,
    mark_needed=mark_needed,
    mark_users=mark_users,
    first_equals=first_equals,
    follow=follow,
    row_numbers=row_numbers,
)
LOOPS: Any = SimpleNamespace(**engine.load("native").LOOPS) if engine.NAME == "native" else PLAIN


def same_rows(table: Ints) -> tuple[Ints, Ints]:
    """The different rows of a table in order of appearance, and for each row which of them it is."""
    numbers, firsts = np.empty(len(table), np.int64), np.empty(len(table), np.int64)
    count = LOOPS.row_numbers(np.ascontiguousarray(table), numbers, firsts)
    return table[firsts[:count]], numbers
