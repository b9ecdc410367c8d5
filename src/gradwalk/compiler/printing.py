"""A program for people: `h[8,64] = x[8,16] @ mlp_in[64,16].T`, one line an instruction, and what it costs."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from gradwalk.compiler.program import Instruction, Program, View
from gradwalk.ops import OPS

_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**"}


@dataclass(frozen=True)
class Counts:
    """What a program costs: floating-point operations of one forward pass, and the memory of its slots and tables."""

    scalar_nodes: int
    instructions: int
    slots: int
    guards: int
    flops: int
    bytes: int


def counts(program: Program) -> Counts:
    """The counts of a program; an `exp` counts as one operation, like an addition."""
    tables = sum(v.index.nbytes for i in program.instructions for v in i.operands if v.index is not None)
    return Counts(
        scalar_nodes=program.scalar_nodes,
        instructions=len(program.instructions),
        slots=program.size,
        guards=len(program.guards),
        flops=sum(map(_flops, program.instructions)),
        bytes=8 * program.size + tables,
    )


def _flops(instruction: Instruction) -> int:
    entries = instruction.rows * instruction.columns
    if instruction.op in ("matmul", "dot"):
        return 2 * entries * instruction.operands[0].columns
    if instruction.op in OPS:
        return entries
    if instruction.op == "take":
        return 0
    return instruction.rows * instruction.operands[0].columns * (3 if instruction.columns > 1 else 1)


def written(program: Program) -> str:
    """Every instruction on a line, and the counts on top."""
    names = _Names(program)
    count = counts(program)
    head = (
        f"# {count.scalar_nodes:,} scalar nodes -> {count.instructions} instructions, {count.slots:,} slots, "
        f"{count.guards} guards, {count.flops:,} flops, {count.bytes:,} bytes"
    )
    lines = [head, *(names.line(instruction) for instruction in program.instructions)]
    for guard in program.guards:
        wanted = "" if guard.outcome else "not "
        lines.append(f"guard {wanted}{names.slot(guard.left)} {guard.sign} {names.slot(guard.right)}")
    shown = ", ".join(names.slot(int(slot)) for slot in program.outputs[:8])
    lines.append(f"return {shown}" + (", …" if len(program.outputs) > 8 else ""))
    return "\n".join(lines)


class _Names:
    """Which block a slot belongs to, and what it is called."""

    def __init__(self, program: Program) -> None:
        blocks = dict(program.names)
        for number, instruction in enumerate(program.instructions):
            blocks[instruction.out] = program.names.get(instruction.out, f"{_letter(instruction)}{number}")
        self.starts = sorted(blocks)
        self.names = [blocks[start] for start in self.starts]
        self.program = program
        self.shapes: dict[int, tuple[int, int]] = {}  # of the results shown so far
        self.inputs = set(program.inputs.tolist())
        self.first_result = min((i.out for i in program.instructions), default=program.size)
        self.end = max((i.out + i.rows * i.columns for i in program.instructions), default=program.size)

    def is_constant(self, slot: int) -> bool:
        return slot not in self.inputs and not self.first_result <= slot < self.end

    def line(self, instruction: Instruction) -> str:
        shape = self.shape_of(instruction)
        self.shapes[instruction.out] = shape
        operands = [self.view(view, shape) for view in instruction.operands]
        name = instruction.op
        if name == "call":
            name = self.program.functions[int(instruction.parameters[0])].name
        made = f"{self.name(instruction.out)}[{shape[0]},{shape[1]}] = {_expression(name, instruction, operands)}"
        if instruction.lengths is None:
            return made
        return f"{made}, rows of {instruction.lengths.min()} to {instruction.lengths.max()}"

    def shape_of(self, instruction: Instruction) -> tuple[int, int]:
        """As it runs; but a long row, made entry by entry of a whole matrix, is shown as that matrix."""
        shape = instruction.rows, instruction.columns
        for view in instruction.operands if instruction.rows == 1 and instruction.op in OPS else ():
            rows, columns = self.shapes.get(view.start, shape)
            if view.column_stride == 1 and rows * columns == instruction.columns:  # else it is 0, or no strided one
                return rows, columns
        return shape

    def name(self, slot: int) -> str:
        place = bisect_right(self.starts, slot) - 1
        return self.names[place] if place >= 0 else "input"

    def slot(self, slot: int) -> str:
        if self.is_constant(slot):
            return f"{self.program.initial[slot]:g}"
        place = bisect_right(self.starts, slot) - 1
        offset = slot - self.starts[place] if place >= 0 else slot
        return f"{self.name(slot)}[{offset}]"

    def view(self, view: View, shape: tuple[int, int]) -> str:
        if view.index is not None or view.loops:
            used = {self.block(int(slot)): None for slot in view.slots.ravel()[:4096]}
            return f"{_joined(list(used))}[{'loop' if view.loops else 'gather'} {view.rows},{view.columns}]"
        if self.is_constant(view.start):
            if view.rows * view.columns == 1 or view.row_stride == view.column_stride == 0:
                return f"{self.program.initial[view.start]:g}"
            return f"constants[{view.rows},{view.columns}]"
        last = view.start + (view.rows - 1) * view.row_stride + (view.columns - 1) * view.column_stride
        first, end = bisect_right(self.starts, view.start) - 1, bisect_right(self.starts, last)
        offset = view.start - self.starts[first] if first >= 0 else 0
        names = self.names[max(first, 0) : end] or ["input"]
        name = _joined(list(dict.fromkeys(names))) + (f"+{offset}" if offset else "")
        rows, columns = view.rows, view.columns
        if rows == 1 and view.column_stride == 1 and shape[0] * shape[1] == columns:
            rows, columns = shape
        elif view.row_stride == 0:
            rows = 1
        return f"{name}[{rows},{1 if view.column_stride == 0 else columns}]"

    def block(self, slot: int) -> str:
        return "constants" if self.is_constant(slot) else self.name(slot)


def _joined(names: list[str]) -> str:
    return "|".join(names[:3]) + ("|…" if len(names) > 3 else "")


def _letter(instruction: Instruction) -> str:
    return "h" if instruction.op in ("matmul", "dot") else instruction.op[0] if instruction.op in OPS else "t"


def _expression(name: str, instruction: Instruction, operands: list[str]) -> str:
    if name == "matmul":
        return f"{operands[0]} @ {operands[1]}.T"
    if name in _INFIX:
        return f" {_INFIX[name]} ".join(operands)
    if name == "neg":
        return f"-{operands[0]}"
    if name == "pow_number":
        return f"{operands[0]} ** {instruction.parameters[0]:g}"
    parameters = instruction.parameters if instruction.op != "call" else ()
    shown = [*operands, *(f"{parameter:g}" for parameter in parameters)]
    return f"{name}({', '.join(shown)})"
