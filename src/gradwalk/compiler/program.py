"""The program a compiled function replays: vector instructions over numbered slots of one buffer of float64.

It is made by `trace.py` and the passes, printed by `printing.py`, and run by `native/executor/`. What each
instruction computes is said beside `Instruction`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from gradwalk.compiler.printing import Counts
    from gradwalk.custom import CustomOp

Slots = npt.NDArray[np.int32]
Loop = tuple[int, int]  # how often, and how many slots further each time


@dataclass(eq=False, slots=True)  # not frozen: a long chain has millions of them, and freezing takes long
class View:
    """A matrix of slots to read, rows × columns: strided, in nested loops, or gathered through a table of slot numbers.

    Strided: entry (r, c) is slot `start + r * row_stride + c * column_stride`; strides may be 0 (broadcast).
    In loops: the entries, row by row, are what `loops` go through from `start` on, the outermost first.
    Gathered: entry (r, c) is slot `index[r, c]`.
    """

    rows: int
    columns: int
    start: int = 0
    row_stride: int = 0
    column_stride: int = 0
    loops: tuple[Loop, ...] = ()
    index: Slots | None = None

    @property
    def slots(self) -> npt.NDArray[np.intp]:
        """The slots it reads, as a matrix."""
        if self.index is not None:
            return self.index.astype(np.intp)
        slots = np.array([self.start], np.intp)
        for count, stride in self.loops or ((self.rows, self.row_stride), (self.columns, self.column_stride)):
            slots = np.add.outer(slots, stride * np.arange(count)).reshape(-1)
        return slots.reshape(self.rows, self.columns)


@dataclass(eq=False, slots=True)  # not frozen: a long chain has millions of them, and freezing takes long
class Instruction:
    """One vector operation. Its outputs are the slots `out … out + rows * columns - 1`, row by row.

    - a row of the table (`add`, `tanh`, `pow_number`, …): entry by entry; each operand is a View(rows, columns)
    - `matmul`: out[r, c] = Σ_k A[r, k] · B[c, k], with A a View(rows, k), B a View(columns, k); or several of them, one
      under the other, each with its part of the rows of A and of B
    - `dot`: out[r, 0] = Σ_k A[r, k] · B[r, k], both View(rows, k); columns is 1
    - another composite (`sum`, `norm`, …), with its parameters: out[r, 0] over A's row, a View(rows, k); with an output
      per entry (`softmax`, …): out[r, :] over A's row, a View(rows, columns)
    - with a target (`cross_entropy`): the second operand has the targets, a View(rows, 1) of whole numbers
    - `take`: out[r, :] = A[i, :] where i is the whole number in the second operand's (r, 0); A is a View(n, columns)
    - with `lengths`, rows of A are shorter than it is wide: of row r, the first lengths[r] entries count. A composite
      with an output per entry makes 0 of the others. Those of `matmul` are 0, and the function has no products with
      them: as 0 · inf must not count, it does not apply where what comes out is not finite
    - `call`: out[r, 0] is what a Python function says of A's row, a View(rows, k). Parameters: its place among the
      program's functions, and how many of the first guards the plain function had passed before it made the call
    """

    op: str
    out: int
    rows: int
    columns: int
    operands: tuple[View, ...]
    parameters: tuple[float, ...] = ()
    lengths: Slots | None = None

    @property
    def batch(self) -> int:
        """How many products a `matmul` is; 1 for all other instructions."""
        return self.operands[1].rows // self.columns if self.op == "matmul" else 1

    def unbatched(self) -> list[Instruction]:
        """Each of its products as an instruction."""
        if self.batch == 1:
            return [self]
        rows = self.rows // self.batch
        operands = [view.slots.astype(np.int32).reshape(self.batch, -1, view.columns) for view in self.operands]
        lengths = [None] * self.batch if self.lengths is None else self.lengths.reshape(self.batch, -1)
        return [
            Instruction(
                self.op,
                self.out + number * rows * self.columns,
                rows,
                self.columns,
                tuple(View(len(part), part.shape[1], index=part) for part in of_operands),
                self.parameters,
                lengths[number],
            )
            for number, of_operands in enumerate(zip(*operands, strict=True))
        ]


@dataclass(frozen=True)
class Guard:
    """A comparison the traced function made: where `left sign right` is not `outcome`, the program does not apply."""

    left: int
    sign: str
    right: int
    outcome: bool


@dataclass(eq=False, repr=False)
class Program:
    """`size` slots, `initial` numbers in them (constants; 0 elsewhere), where inputs go, and where results are."""

    size: int
    initial: npt.NDArray[np.float64]
    inputs: Slots
    outputs: Slots
    instructions: tuple[Instruction, ...]
    guards: tuple[Guard, ...] = ()
    scalar_nodes: int = 0  # of the graph it was made from
    arguments: int = 0  # so many of the inputs are numbers of the arguments, the others leaves closed over
    exact: bool = False  # one instruction a node, in the order and with the rounding of the eager engine
    functions: tuple[CustomOp, ...] = ()  # that `call` calls
    names: dict[int, str] = field(default_factory=dict)  # what a person would call the group that starts at a slot

    def __str__(self) -> str:
        from gradwalk.compiler.printing import written

        return written(self)

    def __repr__(self) -> str:
        return f"<program: {self.scalar_nodes} scalar nodes, {len(self.instructions)} instructions>"

    @property
    def counts(self) -> Counts:
        """Scalar nodes in, instructions out, slots, guards, flops and bytes."""
        from gradwalk.compiler.printing import counts

        return counts(self)
