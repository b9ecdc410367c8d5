"""Programs are checked completely before NumPy runs them, as the native executor does it: one may be from a file.

What is refused is a ValueError, or a TypeError; what is not, reads and writes the slots that it says.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import numpy.typing as npt

from gradwalk.compiler.interpret import SIGNS
from gradwalk.compiler.program import Instruction, Program, Slots, View
from gradwalk.ops import OPS
from gradwalk.row_ops import COMPOSITES

_MOST = 2**28  # entries of a View
_LARGEST = 2**31 - 1
_UNREAD, _WRITTEN, _CONSTANT = 0, 1, 2


def checked_program(program: Program) -> Program:
    """The program itself."""
    size = _whole("a size", program.size, 0, _LARGEST)
    if not (isinstance(program.initial, np.ndarray) and program.initial.dtype == np.float64):
        raise TypeError("Program: expected float64 numbers as initial")
    if program.initial.shape != (size,):
        raise ValueError(f"Program: expected {size} numbers as initial, got shape {program.initial.shape}")
    state = np.zeros(size, np.uint8)
    state[_slots("inputs", program.inputs, size)] = _WRITTEN
    for instruction in program.instructions:
        _check(instruction, program, state)
    _slots("outputs", program.outputs, size)
    for guard in program.guards:
        _whole("a guard's slot", guard.left, 0, size - 1)
        _whole("a guard's slot", guard.right, 0, size - 1)
        if guard.sign not in SIGNS:
            raise ValueError(f"Program: expected a guard's sign to be a comparison, got {guard.sign!r}")
    return program


def check_shapes(instruction: Instruction, program: Program) -> None:
    """Whether its parts fit together, and stay inside the program's slots."""
    size = program.size
    out = _whole("out", instruction.out, 0, size)
    rows = _whole("rows", instruction.rows, 1, size)
    columns = _whole("columns", instruction.columns, 1, (size - out) // rows)
    shapes = [[*_shape(view, size)] for view in _tuple("operands", instruction.operands)]
    parameters = [0.0 + each for each in _tuple("parameters", instruction.parameters)]  # float() would take a text
    lengths = instruction.lengths
    if lengths is not None and (len(_slots("lengths", lengths, size + 1)) != rows or lengths.min() < 1):
        raise ValueError(f"Program: expected {rows} lengths from 1 on, got {lengths!r}")
    if not _fits(instruction, rows, columns, shapes, parameters, program):
        raise ValueError(
            f"Program: expected other operands for op {instruction.op!r} ({rows} by {columns} at slot {out})"
        )


def _check(instruction: Instruction, program: Program, state: npt.NDArray[np.uint8]) -> None:
    check_shapes(instruction, program)
    for view in instruction.operands:
        read = state[view.slots]
        state[view.slots[read == _UNREAD]] = _CONSTANT
    out, end = instruction.out, instruction.out + instruction.rows * instruction.columns
    if state[out:end].any():
        raise ValueError(f"Program: expected slots that are written once, and then read, got others at slot {out}")
    state[out:end] = _WRITTEN


def _fits(
    instruction: Instruction,
    rows: int,
    columns: int,
    shapes: list[list[int]],
    parameters: list[float],
    program: Program,
) -> bool:
    op, lengths = instruction.op, instruction.lengths
    if program.exact and (op == "matmul" or rows * columns != 1):
        return False  # it is one of one instruction a node
    widths = [width for _, width in shapes]
    whole = [count == rows for count, _ in shapes]
    if op in OPS:
        of_entries = all(shape == [rows, columns] for shape in shapes) and lengths is None
        return of_entries and (len(shapes), len(parameters)) == (len(OPS[op].inputs), len(OPS[op].parameters))
    if op == "matmul":
        fits = len(shapes) == 2 and widths[0] == widths[1] and whole[0] and not parameters
        return (
            fits and shapes[1][0] % columns == 0 and rows % (shapes[1][0] // columns) == 0 and _reach(lengths, widths)
        )
    if op == "take":
        return len(shapes) == 2 and (lengths, parameters) == (None, []) and widths == [columns, 1] and whole[1]
    if op == "call":
        if len(parameters) != 2 or not all(0 <= each < _LARGEST and each == int(each) for each in parameters):
            return False
        function = dict(enumerate(program.functions)).get(int(parameters[0]))
        return hasattr(function, "evaluated") and len(shapes) == 1 and all(whole) and (columns, lengths) == (1, None)
    row = COMPOSITES.get(op)
    apart = len(row.inputs) if row is not None and op == "dot" else 1  # of others, one row stands behind the other
    if row is None or not all(whole) or len(shapes) != apart + bool(row.target):
        return False
    of_rows, targets = widths[:apart], widths[apart:]
    places = parameters[len(row.parameters) :] if program.exact and row.per_entry else []
    fits = len(parameters) - len(places) == len(row.parameters) and len(places) <= 1
    fits &= all(0 <= place < of_rows[0] and place == int(place) for place in places)
    fits &= apart > 1 or of_rows[0] % len(row.inputs) == 0
    fits &= columns == (of_rows[0] if row.per_entry and not places else 1) and len(set(of_rows)) == 1
    return fits and targets == [1] * bool(row.target) and (lengths is None or (columns > 1 and _reach(lengths, widths)))


def _reach(lengths: Slots | None, widths: list[int]) -> bool:
    return lengths is None or int(lengths.max()) <= widths[0]


def _shape(view: View, size: int) -> tuple[int, int]:
    """Of a View that stays inside the slots."""
    rows = _whole("rows of a View", view.rows, 1, _MOST)
    columns = _whole("columns", view.columns, 1, _MOST // rows)
    least = most = _whole("start", view.start, 0, size)
    strided = [(rows, view.row_stride), (columns, view.column_stride)]
    for _, stride in strided:
        _whole("a stride", stride, -size, size)
    if view.index is not None:
        if view.loops or len(_slots("a View", view.index, size)) != rows * columns:
            raise ValueError(f"Program: expected a View of {rows} by {columns} slots, got {view.index.shape}")
        return rows, columns
    made = 1
    for count, stride in view.loops or strided:
        made *= _whole("a loop of a View", count, 1, _MOST)
        moved = (count - 1) * _whole("a stride", stride, -size, size)
        least, most = least + min(moved, 0), most + max(moved, 0)
    if made != rows * columns:
        raise ValueError(f"Program: expected loops over {rows * columns} slots, got {view.loops!r}")
    if least < 0 or most >= size:
        raise ValueError(f"Program: expected a View inside {size} slots, got one from {least} to {most}")
    return rows, columns


def _whole(name: str, given: Any, least: int, most: int) -> int:
    number = operator.index(given)
    if isinstance(given, bool) or not least <= number <= most:  # to NumPy, True is a mask
        raise ValueError(f"Program: expected {name} from {least} to {most}, got {given!r}")
    return number


def _tuple(name: str, given: Any) -> tuple[Any, ...]:
    if not isinstance(given, tuple):
        raise TypeError(f"Program: expected a tuple of {name}, got a {type(given).__name__}")
    return given


def _slots(name: str, given: Any, size: int) -> Slots:
    if not (isinstance(given, np.ndarray) and given.dtype == np.int32):
        raise TypeError(f"Program: expected slots as an array of int32 for {name}")
    if given.size and not 0 <= int(given.min()) <= int(given.max()) < size:
        raise ValueError(f"Program: expected slots from 0 to {size - 1} for {name}, got {given!r}")
    return given.ravel()
