"""Programs run by NumPy, one instruction after the other: for the reference engine, and to test the native executor."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gradwalk.compiler.flat import CHECKED, EXACT, ROW_OPS, TARGETED
from gradwalk.compiler.formulas import NUMPY, Arrays, OverRows
from gradwalk.compiler.program import Guard, Instruction, Program
from gradwalk.custom import CustomOp
from gradwalk.errors import ENDS_ALL
from gradwalk.operation import nowhere
from gradwalk.ops import OPS
from gradwalk.reference import CHOOSING, contribution
from gradwalk.row_ops import COMPOSITES

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
_UNIT = 2.0**-53
SAFETY = 4.0
_EDGES = {op.name: [op.inputs.index(each) for each in op.edge_inputs] for op in OPS.values() if op.edge_inputs}
_ROW_EDGES = {row.name for row in COMPOSITES.values() if row.chooses or row.edges is not nowhere}
_WITH_EDGES = _ROW_EDGES.union(_EDGES)
SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne
}  # fmt: skip


class InapplicableError(Exception):
    """Found before the end, at a call that the plain function would not have made; the guard, if it was one."""

    def __init__(self, guard: Guard | None = None, undecided: bool = False) -> None:
        self.guard, self.undecided = guard, undecided


def run(program: Program, inputs: npt.ArrayLike) -> Array:
    """Every slot after the forward pass."""
    slots = program.initial.copy()
    slots[program.inputs] = inputs
    computed = _exact_forward if program.exact else forward
    with np.errstate(all="ignore"):
        for instruction in program.instructions:
            out = instruction.out
            operands = [slots[view.slots] for view in instruction.operands]
            if instruction.op == "call":
                result = _called(program, instruction, operands[0], slots)
            else:
                result = computed(instruction, operands)
            slots[out : out + instruction.rows * instruction.columns] = np.ravel(result)
    return slots


def _called(program: Program, instruction: Instruction, rows: Array, slots: Array) -> list[float]:
    function, before = program.functions[int(instruction.parameters[0])], int(instruction.parameters[1])
    known = [guard for guard in program.guards[:before] if max(guard.left, guard.right) < instruction.out]
    failed, undecided = judged(program, slots, known, instruction.out)
    if failed or undecided:
        raise InapplicableError(failed, failed is None)
    if not _all_finite(program, slots, instruction.out):  # the plain function has raised before it comes to the call
        raise InapplicableError
    try:
        return [function.evaluated(row)[0] for row in rows.tolist()]
    except ENDS_ALL:
        raise
    except Exception as error:  # the plain function will raise it too, if it comes to that call
        raise InapplicableError from error


def run_guarded(program: Program, inputs: npt.ArrayLike) -> tuple[Array, bool | None]:
    """Every slot, and whether the program applies: None where a comparison is too close to tell."""
    try:
        slots = run(program, inputs)
    except InapplicableError as stopped:
        return program.initial, None if stopped.undecided else False
    return slots, applies(program, slots)


def gradients(program: Program, slots: Array, seeds: npt.ArrayLike) -> Array:
    """The gradient of every input: of the results, each times its seed, after a run left these slots."""
    grads = np.zeros(program.size)
    np.add.at(grads, program.outputs, seeds)
    with np.errstate(all="ignore"):
        for instruction in reversed(program.instructions):
            end = instruction.out + instruction.rows * instruction.columns
            shape = instruction.rows, instruction.columns
            grad = grads[instruction.out : end].reshape(shape)
            if not grad.any():
                continue  # only a guard reads it
            operands = [slots[view.slots] for view in instruction.operands]
            out = slots[instruction.out : end].reshape(shape)
            spared = np.isinf(grad) | (instruction.op in CHOOSING)
            if instruction.op == "call":
                function = program.functions[int(instruction.parameters[0])]
                contributions: list[Array | None] = [_contribution(_slopes(function, operands[0], out), grad, spared)]
            elif program.exact:
                contributions = _exact_backward(instruction, operands, out, grad)
            else:
                contributions = _backward(instruction, operands, out, grad, spared)
            for view, handed_on in zip(instruction.operands, contributions, strict=True):
                if handed_on is not None:
                    np.add.at(grads, view.slots, handed_on)
    return np.asarray(grads[program.inputs])


def gradients_again(program: Program, slots: bytes, seeds: bytes) -> Array:
    """For the native executor, whose kernels multiply 0 by infinity where the rule says that nothing is handed on."""
    return gradients(program, np.frombuffer(slots), np.frombuffer(seeds))


def _slopes(function: CustomOp, rows: Array, out: Array) -> Array:
    return np.array([function.local_grads(row, y) for row, y in zip(rows.tolist(), out.ravel().tolist(), strict=True)])


def first_failed(program: Program, slots: Array) -> Guard | None:
    """The first comparison that came out otherwise than in the trace."""
    return judged(program, slots, program.guards, program.size)[0]


def applies(program: Program, slots: Array) -> bool | None:
    """Whether nothing was computed that an operation may refuse to compute, and every guard holds; None: may hold."""
    if not _all_finite(program, slots, program.size):
        return False
    failed, undecided = judged(program, slots, program.guards, program.size)
    return None if undecided and failed is None else failed is None


def _all_finite(program: Program, slots: Array, end: int) -> bool:
    """Whether what operations have to make finite is, in the slots before `end`."""
    checked = (each for each in program.instructions if is_checked(each) and each.out < end)
    return all(np.isfinite(slots[each.out : each.out + each.rows * each.columns]).all() for each in checked)


def is_checked(instruction: Instruction) -> bool:
    """Whether all that it makes has to be finite."""
    return instruction.op in CHECKED or (instruction.op == "matmul" and instruction.lengths is not None)


# ---------------------------------------------------------------- guards


def judged(program: Program, slots: Array, guards: Sequence[Guard], end: int) -> tuple[Guard | None, bool]:
    """The first guard that surely fails, and whether there is one that nobody can be sure of; slots to `end` are known.

    The plain function compares numbers that were rounded in another order. Where the two sides are closer than that
    can have moved them, its outcome is not known here; nor is that of `floor` near a whole number, and the slope of
    `relu` near 0.
    """
    undecided = False
    edges = [each for each in program.instructions if each.op in _WITH_EDGES and each.out < end]
    if program.exact or not (guards or edges):
        doubt = np.zeros(program.size)
    else:
        doubt = doubts(program, slots, end)
        undecided = any(_is_beyond_edge(each, slots, doubt) for each in edges)
    for guard in guards:
        left, right = slots.item(guard.left), slots.item(guard.right)
        doubtful = SAFETY * (doubt[guard.left] + doubt[guard.right])
        if guard.left != guard.right and doubtful != 0.0 and not abs(left - right) > doubtful:
            undecided = True
        elif bool(SIGNS[guard.sign](left, right)) != guard.outcome:
            return guard, undecided
    return None, undecided


def _edge_distance(instruction: Instruction, slots: Array) -> Any:
    if instruction.op in _ROW_EDGES:
        return _row_edge_distance(instruction, slots)
    with np.errstate(all="ignore"):
        numbers = [slots[view.slots] for view in instruction.operands]
        return NUMPY.edge_distance(instruction.op, numbers, instruction.parameters)


def _row_edge_distance(instruction: Instruction, slots: Array) -> Array:
    row, there = COMPOSITES[instruction.op], instruction.operands[0].slots
    lengths = itertools.repeat(None) if instruction.lengths is None else instruction.lengths
    given = instruction.parameters[: len(row.parameters)]
    edges = [row.edge_distance(xs[:n], *given) for xs, n in zip(slots[there].tolist(), lengths, strict=False)]
    distance = np.array(edges)[:, None]
    if row.chooses:
        rows, columns = instruction.rows, instruction.columns
        outs = slots[instruction.out : instruction.out + rows * columns].reshape(rows, 1, columns)
        entries = np.broadcast_to(there[:, :, None], (*there.shape, columns))  # each beside each output
        apart = np.abs(slots[entries] - outs)
        chosen = np.take_along_axis(entries, (apart == 0.0).argmax(axis=1)[:, None], axis=1)
        others = np.where((entries == chosen) & (apart == 0.0), np.inf, apart)
        distance = np.minimum(distance, others.min(axis=(1, 2))[:, None])
    return distance


def _is_beyond_edge(instruction: Instruction, slots: Array, doubt: Array) -> bool:
    """Whether an entry is so close to a jump or kink that the plain function may be on the other side."""
    there = [view.slots for view in instruction.operands]
    if instruction.op in _ROW_EDGES:
        doubtful = doubt[there[0]].sum(axis=1, keepdims=True)
    else:
        doubtful = sum(doubt[there[operand]] for operand in _EDGES[instruction.op])
    return bool(((doubtful != 0.0) & ~(_edge_distance(instruction, slots) > SAFETY * doubtful)).any())


def doubts(program: Program, slots: Array, end: int) -> Array:
    """How far each slot may be from what the eager engine computes, to first order; 0 where it is the same number."""
    doubt = np.zeros(program.size)
    with np.errstate(all="ignore"):
        for instruction in program.instructions:
            if instruction.out >= end:
                break
            own = slice(instruction.out, instruction.out + instruction.rows * instruction.columns)
            there = [view.slots for view in instruction.operands]
            out = slots[own].reshape(instruction.rows, instruction.columns)
            operands, before = [slots[place] for place in there], [doubt[place] for place in there]
            if instruction.op == "call":
                function = program.functions[int(instruction.parameters[0])]
                made = carried(_slopes(function, operands[0], out), before[0]).sum(axis=1)
            else:
                made = doubt_of(instruction, operands, before, out)
            doubt[own] = np.ravel(made)
    return doubt


def carried(slopes: Any, before: Any, on: Arrays = NUMPY) -> Any:
    """The doubt that comes with an operand: where there is none, an infinite slope makes none."""
    return on.xp.where(before == 0.0, 0.0, on.xp.abs(slopes) * before)


def doubt_of(
    instruction: Instruction, operands: list[Any], before: list[Any], out: Any, on: Arrays = NUMPY, unit: float = _UNIT
) -> Any:
    """The doubt of what an instruction makes, where its operands have some; numbers are rounded to `unit`."""
    name, xs, xp = instruction.op, operands[0], on.xp
    if name in OPS:
        slopes = on.local_grads(name, operands, instruction.parameters, out)
        brought = sum(carried(slope, each, on) for slope, each in zip(slopes, before, strict=True))
        return brought + (xp.asarray(brought != 0.0) if name in EXACT else 1.0) * (4 * unit * xp.abs(out))
    if name in ("matmul", "dot"):
        sizes = [xp.abs(operand) for operand in operands]
        own = 0.0 if xs.shape[1] == 1 else (xs.shape[1] + 1) * unit
        left, right = before[0] + own * sizes[0], before[1]
        if name == "matmul":
            return _products(left, sizes[1], instruction) + _products(sizes[0], right, instruction)
        return (left * sizes[1] + sizes[0] * right).sum(axis=1)
    if name == "take":
        return before[0][_within(operands[1][:, 0], len(xs), on)]
    entries = _row_entries(instruction, xs, on)
    made = OverRows(on, COMPOSITES[name], entries, _target(operands, on), instruction.parameters)
    xs = _up_to_lengths(instruction, xs, 0.0, on)
    slopes_of_rows = xp.abs(made.local_grads())
    own = 0.0 if made.row.is_exact(xs.shape[1]) else (xs.shape[1] + 16) * unit
    size = xp.abs(out) + (slopes_of_rows * xp.abs(xs)[:, None, :]).sum(axis=2) + made.row.is_logarithm
    brought = carried(slopes_of_rows, before[0][:, None, :], on).sum(axis=2)
    return _up_to_lengths(instruction, brought + own * size, 0.0, on)


# ---------------------------------------------------------------- what each instruction computes


def forward(instruction: Instruction, operands: list[Any], on: Arrays = NUMPY) -> Any:
    """What the instruction computes, of arrays of any kind."""
    name, xs = instruction.op, operands[0]
    if name in OPS:
        return on.forward(name, operands, instruction.parameters)
    if name == "matmul":
        return _products(xs, operands[1], instruction)
    if name == "take":
        return xs[_within(operands[1][:, 0], len(xs), on)]
    if name == "dot":
        return (xs * operands[1]).sum(axis=1)
    made = on.over_rows(name, _row_entries(instruction, xs, on), _target(operands, on), instruction.parameters)
    return _up_to_lengths(instruction, made, 0.0, on)


def _row_entries(instruction: Instruction, xs: Any, on: Arrays = NUMPY) -> Any:
    """What a composite computes with: whoever has a row of different lengths takes -inf for what is not there."""
    return _up_to_lengths(instruction, xs, -np.inf, on)


def _up_to_lengths(instruction: Instruction, rows: Any, otherwise: float, on: Arrays = NUMPY) -> Any:
    if instruction.lengths is None:
        return rows
    return on.xp.where(np.arange(rows.shape[1]) < instruction.lengths[:, None], rows, otherwise)


def _products(left: Any, right: Any, instruction: Instruction) -> Any:
    """Every row of one matrix with every row of the other; of several products, one under the other."""
    if instruction.batch == 1:
        return left @ right.T
    parts = [each.reshape(instruction.batch, -1, each.shape[1]) for each in (left, right)]
    return (parts[0] @ parts[1].swapaxes(1, 2)).reshape(instruction.rows, instruction.columns)


def _within(places: Any, count: int, on: Arrays = NUMPY) -> Any:
    """Places as whole numbers; one that is outside would have failed a guard."""
    return on.xp.clip(places.astype(np.int32), 0, count - 1)


def _target(operands: list[Any], on: Arrays = NUMPY) -> Any:
    return _within(operands[1], operands[0].shape[1], on) if len(operands) > 1 else None


# ---------------------------------------------------------------- and what it hands back


def _backward(
    instruction: Instruction, operands: list[Array], out: Array, grad: Array, spared: Mask
) -> list[Array | None]:
    name, xs = instruction.op, operands[0]
    if name in OPS:
        local = NUMPY.local_grads(name, operands, instruction.parameters, out)
        return [_contribution(each, grad, spared) for each in local]
    if name == "matmul":
        parts = zip(*(np.split(each, instruction.batch) for each in (xs, operands[1], grad, spared)), strict=True)
        handed = [(handed_on(right, of, so), handed_on(left, of.T, so.T)) for left, right, of, so in parts]
        return [np.concatenate(each) for each in zip(*handed, strict=True)]
    if name == "dot":
        return [_contribution(operands[1], grad, spared), _contribution(xs, grad, spared)]
    if name == "take":
        table = np.zeros_like(xs)
        np.add.at(table, _within(operands[1][:, 0], len(xs)), grad)
        return [table, None]
    grad = _up_to_lengths(instruction, grad, 0.0)
    xs = _row_entries(instruction, xs)
    slopes = OverRows(NUMPY, COMPOSITES[name], xs, _target(operands), instruction.parameters).local_grads()
    handed = _contribution(slopes, grad[:, :, None], spared[:, :, None]).sum(axis=1)
    return [handed, *([None] * (len(operands) - 1))]


def _contribution(local: Any, grad: Array, spared: Mask) -> Array:
    """`reference.contribution`, entry by entry; what is `spared` hands on nothing where the local gradient is 0."""
    product = np.asarray(local * grad)
    nothing = np.isnan(product)
    if nothing.any():
        nothing &= (grad == 0.0) | ((local == 0.0) & spared)
        product[nothing] = 0.0
    return product


def handed_on(local: Array, grad: Array, spared: Mask | None = None) -> Array:
    """What each row of gradients hands on through a matrix of local gradients: their product, by the same rule."""
    spared = np.isinf(grad) if spared is None else spared
    with np.errstate(all="ignore"):
        product: Array = grad @ local
        for row in np.flatnonzero(np.isnan(product).any(axis=1)):
            product[row] = _contribution(local, grad[row][:, None], spared[row][:, None]).sum(axis=0)
    return product


# ---------------------------------------------------------------- exact programs: the rows of the tables, on floats


def _numbers(instruction: Instruction, operands: Sequence[Array]) -> tuple[list[float], tuple[Any, ...]]:
    """What the row of COMPOSITES takes: its inputs, and its parameters."""
    xs: list[float] = operands[0].ravel().tolist()
    if instruction.op == "dot":
        return xs + operands[1].ravel().tolist(), ()
    if instruction.op in TARGETED:
        return xs, (_place(operands, len(xs)),)
    if instruction.op in ROW_OPS:
        return xs, (int(instruction.parameters[-1]), *instruction.parameters[:-1])
    return xs, instruction.parameters


def _place(operands: Sequence[Array], count: int) -> int:
    return int(_within(operands[1][0, 0], count))


def _exact_forward(instruction: Instruction, operands: list[Array]) -> Any:
    if instruction.op in OPS:
        return OPS[instruction.op].forward(*(float(x[0, 0]) for x in operands), *instruction.parameters)
    if instruction.op == "take":
        return operands[0][_place(operands, len(operands[0]))]
    xs, parameters = _numbers(instruction, operands)
    return COMPOSITES[instruction.op].on(xs, *parameters)


def _exact_backward(instruction: Instruction, operands: list[Array], out: Array, grad: Array) -> list[Array | None]:
    if instruction.op == "take":
        table = np.zeros_like(operands[0])
        table[_place(operands, len(table))] = grad[0]
        return [table, None]
    if instruction.op in OPS:
        entries = [float(x[0, 0]) for x in operands]
        slopes = OPS[instruction.op].local_grads(*entries, *instruction.parameters, float(out[0, 0]))
        return [np.full((1, 1), contribution(float(each), float(grad[0, 0]), instruction.op)) for each in slopes]
    xs, parameters = _numbers(instruction, operands)
    local = COMPOSITES[instruction.op].local_grads_on(xs, *parameters, float(out[0, 0]))
    contributions = np.array([contribution(float(each), float(grad[0, 0]), instruction.op) for each in local])
    width = operands[0].size
    parts: list[Array | None] = [contributions[:width].reshape(operands[0].shape)]
    if instruction.op == "dot":
        parts.append(contributions[width:].reshape(operands[1].shape))
    return parts + [None] * (len(operands) - len(parts))
