"""Pass 9: every node gets its slot, so that groups are contiguous and what they read is strided where possible.

The numbers of the arguments come first, in their order; then the leaves and constants in the order in which matrix
products, dots, tables and the rest first read them, row by row; then the results, group by group. What is wide begins
on a cache line, so some slots are left free.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from gradwalk.compiler.flat import CONSTANT, INPUT, SIGNS, Flat, Ints, Truths
from gradwalk.compiler.matrices import NOBODY, Group
from gradwalk.compiler.program import Guard, Instruction, Program, View
from gradwalk.ops import OPS

_LINE = 8  # slots in a cache line: a vector that begins on one is read and written in one go
_FEW = 32  # slots that are looked at faster by plain Python than by NumPy
_FIRST_CHOICE = ("matmul", "dot", "take", "cross_entropy")


def laid_out(flat: Flat, groups: Sequence[Group], arguments: int) -> Program:
    """The program of these groups; the first `arguments` inputs are the numbers of the arguments."""
    slot = np.full(flat.size, NOBODY)
    slot[flat.inputs[:arguments]] = np.arange(arguments)
    size = _place_leaves(flat, groups, slot, arguments)
    sizes = [group.nodes.size for group in groups]
    outs, size = _aligned(sizes, size)
    made = np.concatenate([np.empty(0, np.int64), *(group.nodes.ravel() for group in groups)])
    moved = np.array(outs, np.int64) - np.cumsum([0, *sizes])[:-1]  # from where they would be without gaps
    places = np.arange(len(made)) + np.repeat(moved, sizes)
    slot[made[made != NOBODY]] = places[made != NOBODY]
    memory = _Memory(flat, slot, size)
    instructions = tuple([memory.instruction(group, out) for group, out in zip(groups, outs, strict=True)])
    return Program(
        size=memory.size,
        initial=memory.initial(),
        inputs=slot[flat.inputs].astype(np.int32),
        outputs=slot[flat.outputs].astype(np.int32),
        instructions=instructions,
        guards=tuple(
            Guard(left, SIGNS[sign], right, outcome)
            for (left, right), sign, outcome in zip(
                slot[flat.guards].tolist(), flat.signs.tolist(), flat.outcomes.tolist(), strict=True
            )
        ),
        arguments=arguments,
    )


def _aligned(sizes: Sequence[int], start: int) -> tuple[list[int], int]:
    """Where each of these groups begins, the wide ones on a cache line, and where the last one ends."""
    starts = []
    for size in sizes:
        if size >= _LINE:
            start += -start % _LINE
        starts.append(start)
        start += size
    return starts, start


def _place_leaves(flat: Flat, groups: Sequence[Group], slot: Ints, start: int) -> int:
    """Slots for the inputs and constants that have none yet; returns the one after the last."""
    leaf = (flat.op == INPUT) | (flat.op == CONSTANT)
    first = [group for name in _FIRST_CHOICE for group in groups if group.op == name]
    read = [operand.ravel() for group in chain(first, groups) for operand in _longest_first(group)]
    wanted = np.concatenate([*read, flat.inputs, flat.outputs, flat.guards.ravel()])
    wanted = wanted[leaf[wanted]]
    wanted = wanted[slot[wanted] == NOBODY]
    _, where = np.unique(wanted, return_index=True)
    ordered = wanted[np.sort(where)]
    ordered = np.concatenate([ordered[flat.op[ordered] == INPUT], ordered[flat.op[ordered] == CONSTANT]])
    (first_slot,), end = _aligned([len(ordered)], start)
    slot[ordered] = np.arange(first_slot, end)
    return end


def _longest_first(group: Group) -> Sequence[Ints]:
    return group.operands if group.op in OPS else sorted(group.operands, key=lambda operand: -operand.size)


class _Memory:
    """The slots, with room at the end for copies of constants that do not lie in a row where they are read."""

    def __init__(self, flat: Flat, slot: Ints, size: int) -> None:
        self.flat, self.slot, self.size = flat, slot, size
        self.copies: list[tuple[int, Ints]] = []
        self.is_zero = np.zeros(size, np.bool_)  # what composites make behind the end of a row

    def initial(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        numbers = np.zeros(self.size)
        constants = np.flatnonzero((self.flat.op == CONSTANT) & (self.slot != NOBODY))
        numbers[self.slot[constants]] = self.flat.given(constants)[:, 0]
        for start, nodes in self.copies:
            numbers[start : start + nodes.size] = self.flat.given(nodes.ravel())[:, 0]
        return numbers

    def instruction(self, group: Group, out: int) -> Instruction:
        rows, columns = group.nodes.shape
        operands = group.operands
        if rows == columns == 1 and group.op in OPS:  # nothing to find out, and in a chain there are many
            views = tuple([View(1, 1, self.slot.item(operand.item(0))) for operand in operands])
            return Instruction(group.op, out, 1, 1, views, group.parameters)
        if group.op in OPS:  # entry by entry: as many columns as make it strided
            columns = best_width([self.slot[operand].ravel() for operand in operands])
            rows //= columns
            operands = tuple(operand.reshape(rows, columns) for operand in operands)
        views = tuple(map(self.view, operands))
        if group.lengths is None:
            return Instruction(group.op, out, rows, columns, views, group.parameters)
        is_beyond = np.arange(operands[0].shape[1]) >= group.lengths[:, None]
        if group.op != "matmul":
            self.is_zero[out : out + rows * columns] = is_beyond.ravel()
        shorter = self._strided_up_to(operands[0], is_beyond, must_be_zero=group.op == "matmul")
        views = (shorter or views[0], *views[1:])
        return Instruction(group.op, out, rows, columns, views, group.parameters, group.lengths.astype(np.int32))

    def _strided_up_to(self, nodes: Ints, is_beyond: Truths, must_be_zero: bool) -> View | None:
        """A strided view that has these nodes where they count, and what may be anything, or zeros, elsewhere."""
        slots, longest = self.slot[nodes], int(np.argmin(is_beyond.sum(axis=1)))
        (rows, columns), start = slots.shape, int(slots[0, 0])
        row, column = int(slots[1, 0]) - start, int(slots[longest, 1] - slots[longest, 0])
        grid = start + row * np.arange(rows)[:, None] + column * np.arange(columns)
        if row < 0 or column < 0 or grid[-1, -1] >= len(self.is_zero) or (grid != slots)[~is_beyond].any():
            return None
        if must_be_zero and not self.is_zero[grid[is_beyond]].all():
            return None
        return View(rows, columns, start, row, column)

    def view(self, nodes: Ints) -> View:
        slots = self.slot[nodes]
        strided = strided_view(slots)
        if strided is not None:
            return strided
        if (self.flat.op[nodes] == CONSTANT).all():
            start, self.size = self.size, self.size + nodes.size
            self.copies.append((start, nodes))
            return View(len(nodes), nodes.shape[1], start, nodes.shape[1], 1)
        return View(len(slots), slots.shape[1], index=np.ascontiguousarray(slots, np.int32))


def strided_view(slots: Ints) -> View | None:
    """The matrix of slots as start and strides, or None."""
    if slots.size <= _FEW:
        return _strided_few(slots)
    rows, columns = slots.shape
    start = int(slots[0, 0])
    row = int(slots[1, 0]) - start if rows > 1 else 0
    column = int(slots[0, 1]) - start if columns > 1 else 0
    if row < 0 or column < 0:
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
    grid = [start + r * row + c * column for r in range(rows) for c in range(columns)]
    return View(rows, columns, start, row, column) if grid == table else None


def best_width(operands: Sequence[Ints]) -> int:
    """How many columns make most of these operands, each a run of slots, strided matrices."""
    count = len(operands[0])
    candidates = {count} | {width for operand in operands if count % (width := _first_run(operand)) == 0}
    return max(
        sorted(candidates),
        key=lambda width: (sum(strided_view(o.reshape(-1, width)) is not None for o in operands), width),
    )


def _first_run(slots: Ints) -> int:
    """How many slots from the beginning are evenly spaced."""
    if len(slots) <= _FEW:
        few = slots.tolist()
        return next((i for i in range(2, len(few)) if few[i] - few[i - 1] != few[1] - few[0]), len(few))
    steps = np.diff(slots)
    breaks = np.flatnonzero(steps != steps[0])
    return int(breaks[0]) + 1 if len(breaks) else len(slots)
