"""Pass 11: every node gets its slot, so that groups are contiguous and what they read is strided where possible.

The numbers of the arguments come first, in their order; then the leaves and constants in the order in which matrix
products, dots, tables and the rest first read them, row by row; then the results, group by group. What is wide begins
on a cache line, so some slots are left free.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, groupby

import numpy as np

from gradwalk.compiler.flat import CONSTANT, INPUT, SIGNS, Flat, Ints, Truths
from gradwalk.compiler.matrices import NOBODY, Group
from gradwalk.compiler.program import Guard, Instruction, Program, View
from gradwalk.compiler.strided import first_run, nested_loops, strided_view, view_of
from gradwalk.ops import OPS

_LINE = 8  # slots in a cache line: a vector that begins on one is read and written in one go
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
    memory = _Slots(flat, slot, size)
    instructions = batched([memory.instruction(group, out) for group, out in zip(groups, outs, strict=True)])
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
    wanted = wanted[wanted != NOBODY]
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


class _Slots:
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
        if group.lengths is not None:
            return self._up_to_lengths(group, group.lengths, out)
        if group.op in OPS:  # entry by entry: as many columns as make it strided
            columns = best_width([self.slot[operand].ravel() for operand in operands])
            rows //= columns
            operands = tuple(operand.reshape(rows, columns) for operand in operands)
        return Instruction(group.op, out, rows, columns, tuple(map(self.view, operands)), group.parameters)

    def _up_to_lengths(self, group: Group, lengths: Ints, out: int) -> Instruction:
        rows, columns = group.nodes.shape
        is_beyond = np.arange(group.operands[0].shape[1]) >= lengths[:, None]
        if group.op in OPS:  # nobody reads what is made of the others
            wholes = [self._whole(operand, is_beyond, out) for operand in group.operands]
            found = [whole.ravel() for whole in wholes if whole is not None]
            columns = best_width(found) if found else columns
            views = tuple(
                self.view(np.where(is_beyond, operand[:, :1], operand).reshape(-1, columns))
                if whole is None
                else view_of(whole.reshape(-1, columns))
                for operand, whole in zip(group.operands, wholes, strict=True)
            )
            return Instruction(group.op, out, group.nodes.size // columns, columns, views, group.parameters)
        if group.op != "matmul":
            self.is_zero[out : out + rows * columns] = is_beyond.ravel()
        first, *others = group.operands
        whole = self._whole(first, is_beyond, out, zeros=group.op == "matmul")
        views = self.view(first) if whole is None else view_of(whole), *map(self.view, others)
        return Instruction(group.op, out, rows, columns, views, group.parameters, lengths.astype(np.int32))

    def _whole(self, nodes: Ints, is_beyond: Truths, out: int, zeros: bool = False) -> Ints | None:
        """Rows that go on evenly beyond their ends, over whatever lies there before `out`, or over zeros; None where
        none do."""
        slots, longest = self.slot[nodes], int(np.argmin(is_beyond.sum(axis=1)))
        whole = slots[:, :1] + int(slots[longest, 1] - slots[longest, 0]) * np.arange(slots.shape[1])
        if whole.min() < 0 or whole.max() >= out or (whole != slots)[~is_beyond].any():
            return None
        return None if zeros and not self.is_zero[whole[is_beyond]].all() else whole

    def view(self, nodes: Ints) -> View:
        view = view_of(self.slot[nodes])
        if (view.loops or view.index is not None) and (self.flat.op[nodes] == CONSTANT).all():
            start, self.size = self.size, self.size + nodes.size
            self.copies.append((start, nodes))
            return View(len(nodes), nodes.shape[1], start, nodes.shape[1], 1)
        return view


def batched(instructions: Sequence[Instruction]) -> tuple[Instruction, ...]:
    """The instructions, with products of one shape that are read and written evenly, one after the other, as one."""
    if not any(each.op == "matmul" for each in instructions):
        return tuple(instructions)
    made: list[Instruction] = []
    for shape, same in groupby(instructions, key=_shape_of_product):
        products = list(same)
        made += products if shape is None or len(products) == 1 else _one_product(products)
    return tuple(made)


def _shape_of_product(instruction: Instruction) -> tuple[int, int, int, bool] | None:
    if instruction.op != "matmul":
        return None
    return instruction.rows, instruction.columns, instruction.operands[0].columns, instruction.lengths is None


def _one_product(products: Sequence[Instruction]) -> Sequence[Instruction]:
    first, size = products[0], products[0].rows * products[0].columns
    operands = [np.concatenate([each.operands[place].slots for each in products]) for place in (0, 1)]
    in_a_row = all(each.out == first.out + number * size for number, each in enumerate(products))
    if not in_a_row or any(each.max() >= first.out or nested_loops(each) is None for each in operands):
        return products
    lengths = [each.lengths for each in products if each.lengths is not None]
    return [
        Instruction(
            "matmul",
            first.out,
            first.rows * len(products),
            first.columns,
            (view_of(operands[0]), view_of(operands[1])),
            lengths=np.concatenate(lengths) if lengths else None,
        )
    ]


def best_width(operands: Sequence[Ints]) -> int:
    """How many columns make most of these operands, each a run of slots, strided matrices."""
    count = len(operands[0])
    candidates = {count} | {width for operand in operands if count % (width := first_run(operand)) == 0}
    if len(candidates) == 1:
        return count
    return max(
        sorted(candidates),
        key=lambda width: (sum(strided_view(o.reshape(-1, width)) is not None for o in operands), width),
    )
