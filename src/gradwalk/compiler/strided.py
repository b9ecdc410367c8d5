"""Matrices of slot numbers as views: strided where they are regular in two directions, in loops where in more."""

from __future__ import annotations

import numpy as np

from gradwalk.compiler.flat import Ints
from gradwalk.compiler.program import Loop, View

_FEW = 32  # slots that are looked at faster by plain Python than by NumPy


def view_of(slots: Ints) -> View:
    """The matrix of slots, strided if it is, else in loops, else as a table."""
    strided = strided_view(slots)
    if strided is not None:
        return strided
    rows, columns = slots.shape
    loops = nested_loops(slots)
    if loops is not None:
        return View(rows, columns, int(slots[0, 0]), loops=tuple(loops))
    return View(rows, columns, index=np.ascontiguousarray(slots, np.int32))


def strided_view(slots: Ints) -> View | None:
    """The matrix of slots as start and strides, or None."""
    if slots.size <= _FEW:
        return _strided_few(slots)
    rows, columns = slots.shape
    start = int(slots[0, 0])
    row = int(slots[1, 0]) - start if rows > 1 else 0
    column = int(slots[0, 1]) - start if columns > 1 else 0
    if row < 0 or column < 0 or slots[-1, -1] != start + row * (rows - 1) + column * (columns - 1):
        return None
    grid = start + row * np.arange(rows)[:, None] + column * np.arange(columns)
    return View(rows, columns, start, row, column) if np.array_equal(grid, slots) else None


def _strided_few(slots: Ints) -> View | None:
    """The same, one slot after the other."""
    rows, columns = slots.shape
    table: list[int] = slots.ravel().tolist()
    start = table[0]
    row = table[columns] - start if rows > 1 else 0
    column = table[1] - start if columns > 1 else 0
    if row < 0 or column < 0:
        return None
    for number, head in enumerate(_even(start, row, rows)):
        if table[number * columns : (number + 1) * columns] != _even(head, column, columns):
            return None
    return View(rows, columns, start, row, column)


def _even(start: int, step: int, count: int) -> list[int]:
    return list(range(start, start + step * count, step)) if step else [start] * count


def nested_loops(slots: Ints) -> list[Loop] | None:
    """The loops, the outermost first, that go through these slots in their order from the first; None if none do.

    >>> nested_loops(np.array([[0, 1, 10, 11], [5, 6, 15, 16]]))
    [(2, 5), (2, 10), (2, 1)]
    """
    heads = slots.ravel()
    loops: list[Loop] = []
    while len(heads) > 1:
        count, step = first_run(heads), int(heads[1] - heads[0])
        if len(heads) % count or step < 0:
            return None
        turns = heads.reshape(-1, count)
        if not (turns == turns[:, :1] + step * np.arange(count)).all():
            return None
        loops.append((count, step))
        heads = turns[:, 0]
    return loops[::-1]


def first_run(slots: Ints) -> int:
    """How many slots from the beginning are evenly spaced."""
    few = slots[:_FEW].tolist()
    if len(few) > 1 and few != _even(few[0], few[1] - few[0], len(few)):
        return next(i for i in range(2, len(few)) if few[i] - few[i - 1] != few[1] - few[0])
    if len(few) == len(slots):
        return len(few)
    steps = np.diff(slots)
    breaks = np.flatnonzero(steps != steps[0])
    return int(breaks[0]) + 1 if len(breaks) else len(slots)
