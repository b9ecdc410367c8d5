"""A program as a pure function of jax arrays: `compiled.to_jax(*example)`, for `jit`, `grad`, `vmap` and meshes.

What the rows of both tables mean is said once, in the tables: `formulas.py` evaluates them on jax's arrays, too. Here
is how a program's views are read where there is no buffer of slots: as slices of what earlier instructions made.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gradwalk.cached_property import cached_property
from gradwalk.compiler import interpret
from gradwalk.compiler.formulas import Arrays, OverRows, arrays_of
from gradwalk.compiler.program import Instruction, Loop, Program
from gradwalk.compiler.reading import Call, with_line
from gradwalk.compiler.strided import nested_loops
from gradwalk.compiler.version import Version
from gradwalk.errors import GradwalkWarning
from gradwalk.ops import OPS
from gradwalk.row_ops import COMPOSITES

try:
    import jax
    import jax.numpy as jnp
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir
except ImportError as error:
    raise ImportError("to_jax: expected jax to be installed; pip install 'gradwalk[jax]'") from error

if TYPE_CHECKING:
    from gradwalk.compiler.compile import Compiled

MANY = 80  # different instructions: from about here on XLA takes minutes
_CONSTANT = -1
_EACH: Any = object()  # the place `i` where an output is made for each entry of a row


# ---------------------------------------------------------------- the tables on jax's arrays


class _Jax(Arrays):
    """Local gradients are those of the tables, not what jax would make of a formula: it knows no subgradients."""

    def __init__(self) -> None:
        super().__init__(jnp)
        self.heads |= {"erf": jax.scipy.special.erf, "erfc": jax.scipy.special.erfc}

    def shift(self, xs: Any) -> Any:
        return jax.lax.stop_gradient(super().shift(xs))

    def at(self, xs: Any, place: Any) -> Any:
        if place is _EACH:
            return xs
        return jnp.where(np.arange(xs.shape[-1]) == place, xs, 0.0).sum(axis=-1, keepdims=True)  # nothing to scatter

    def forward(self, name: str, inputs: Sequence[Any], parameters: Sequence[float]) -> Any:
        return _with_local_grads(name, tuple(parameters))(*inputs)

    def over_rows(self, name: str, xs: Any, target: Any, parameters: Sequence[float]) -> Any:
        row = COMPOSITES[name]
        if not row.per_entry:
            return _with_slopes(name, tuple(parameters))(xs, target)
        made = self.evaluated(row.output, arrays_of(row, xs, _EACH, parameters))
        return jnp.broadcast_to(made, (len(xs), 1, xs.shape[1]))[:, 0]

    def _floats(self, numbers: Any) -> Any:
        return jnp.asarray(numbers)


_JAX = _Jax()


@functools.cache
def _with_local_grads(name: str, parameters: tuple[float, ...]) -> Any:
    """A row of the table, entry by entry, with its own local gradients."""
    steep = bool(OPS[name].steep(*parameters))

    def compute(*inputs: Any) -> Any:
        return jnp.asarray(Arrays.forward(_JAX, name, inputs, parameters), inputs[0].dtype)

    def tangent(primals: Any, tangents: Any) -> Any:
        out = forward(*primals)
        local_grads = _JAX.local_grads(name, primals, parameters, out)
        parts = [_times(slope, each, steep) for slope, each in zip(local_grads, tangents, strict=True)]
        return out, jnp.asarray(sum(parts), out.dtype)

    forward: Any = jax.custom_jvp(compute)
    forward.defjvp(tangent)
    return forward


def _times(slope: Any, tangent: Any, steep: bool) -> Any:
    """Their product, but 0 where nothing comes to an infinite slope; a chain of products, so that jax transposes it."""
    if not steep:
        return slope * tangent
    largest = jnp.finfo(tangent.dtype).max
    once_more = jnp.where(jnp.isinf(slope), largest, 1.0)  # even the smallest number times the largest thrice is inf
    return tangent * jnp.clip(slope, -largest, largest) * once_more * once_more


@functools.cache
def _with_slopes(name: str, parameters: tuple[float, ...]) -> Any:
    """A composite with one output for a row, with its own local gradients."""

    def made(xs: Any, target: Any) -> OverRows:
        return OverRows(_JAX, COMPOSITES[name], xs, target, parameters)

    def compute(xs: Any, target: Any) -> Any:
        return jnp.asarray(made(xs, target).out, xs.dtype)

    def tangent(primals: Any, tangents: Any) -> Any:
        over = made(*primals)
        moved = (over.local_grads()[:, 0] * tangents[0]).sum(axis=1, keepdims=True)
        return forward(*primals), jnp.asarray(moved, primals[0].dtype)

    forward: Any = jax.custom_jvp(compute)
    forward.defjvp(tangent)
    return forward


# ---------------------------------------------------------------- slots, where there is no buffer


class _Pieces:
    """What is known so far: pieces of the buffer, each with the first slot it stands for; all else is constant."""

    def __init__(self, program: Program, dtype: Any) -> None:
        self.initial, self.dtype = program.initial, dtype
        self.owner = np.full(program.size, _CONSTANT, np.int32)
        self.starts: list[int] = []
        self.pieces: list[Any] = []

    def add(self, start: int, piece: Any) -> None:
        self.owner[start : start + piece.size] = len(self.pieces)
        self.starts.append(start)
        self.pieces.append(piece.reshape(-1))

    def read(self, slots: Any) -> Any:
        """The numbers in a matrix of slots."""
        owners = self.owner[slots]
        first = int(owners.flat[0])
        if (owners == first).all():
            return self._of_one(first, slots)
        for axis in (1, 0):  # side by side, or one under the other, from different pieces
            if (owners == owners.take([0], axis=1 - axis)).all():
                changes = np.flatnonzero(np.diff(owners.take(0, axis=1 - axis))) + 1
                if len(changes) < 64:
                    parts = np.split(slots, changes.tolist(), axis=axis)
                    return jnp.concatenate([self.read(part) for part in parts], axis=axis)
        pieces = [int(each) for each in np.unique(owners) if each != _CONSTANT]
        moved, end = np.zeros(slots.shape, np.int64), 0
        for each in pieces:
            moved[owners == each] = slots[owners == each] - self.starts[each] + end
            end += len(self.pieces[each])
        moved[owners == _CONSTANT] = end
        made = gathered(jnp.concatenate([self.pieces[each] for each in pieces]), moved)
        constants = np.where(owners == _CONSTANT, self.initial[slots], 0.0)
        if constants.tobytes() == bytes(constants.nbytes):  # no -0.0 among them, either
            return made
        return jnp.where(owners == _CONSTANT, jnp.asarray(constants, self.dtype), made)

    def _of_one(self, owner: int, slots: Any) -> Any:
        if owner == _CONSTANT:
            numbers = self.initial[slots]
            alike = bool((numbers == numbers.flat[0]).all())
            return jnp.full(slots.shape, numbers.flat[0], self.dtype) if alike else jnp.asarray(numbers, self.dtype)
        moved = slots - self.starts[owner]
        loops = nested_loops(moved)
        piece = self.pieces[owner]
        if loops is None or not _apart(loops):
            return gathered(piece, moved)
        return _strided(piece, int(moved.flat[0]), loops).reshape(slots.shape)


class _Table:
    """Which entry of the last axis goes where, `size` for a 0; jax compares tables by identity."""

    def __init__(self, places: Any, size: int) -> None:
        self.places, self.size = places, size

    @cached_property
    def backward(self) -> _Table | None:
        """Where each entry went; None where one went to so many places that a row for each would be mostly empty."""
        flat = self.places.ravel()
        order = np.argsort(flat, kind="stable")[: int((flat < self.size).sum())]
        times = np.bincount(flat[order], minlength=self.size)
        if self.size * int(times.max()) > 8 * flat.size:
            return None
        places = np.full((self.size, int(times.max())), flat.size)
        places[flat[order], np.arange(len(order)) - np.repeat(np.cumsum(times) - times, times)] = order
        return _Table(places, flat.size)


def _looked_up(numbers: Any, table: _Table) -> Any:
    if (table.places == table.size).any():
        numbers = jnp.pad(numbers, [(0, 0)] * (numbers.ndim - 1) + [(0, 1)])
    return numbers.at[..., table.places].get(mode="promise_in_bounds")


def _looked_up_shape(numbers: Any, table: _Table) -> Any:
    shape = *numbers.shape[:-1], *table.places.shape
    nowhere = jax.sharding.PartitionSpec(*(None for _ in shape))  # within a mesh, it varies along the same axes
    return numbers.update(shape=shape, sharding=jax.sharding.NamedSharding(numbers.sharding.mesh, nowhere))


def _looked_up_backward(handed: Any, numbers: Any, table: _Table) -> list[Any]:
    """jax's own way back is a scatter, which neither fuses nor is the same each time; by the table it is a gather."""
    flat = handed.reshape(*handed.shape[: handed.ndim - table.places.ndim], -1)
    if table.backward is not None:
        return [_looked_up_p.bind(flat, table=table.backward).sum(axis=-1)]
    zeros = jnp.zeros((*flat.shape[:-1], table.size + 1), flat.dtype)
    return [zeros.at[..., table.places.ravel()].add(flat, mode="promise_in_bounds")[..., :-1]]


_looked_up_p = Primitive("looked_up")
_looked_up_p.def_impl(_looked_up)
_looked_up_p.def_abstract_eval(_looked_up_shape)
ad.deflinear2(_looked_up_p, _looked_up_backward)
batching.primitive_batchers[_looked_up_p] = lambda given, axes, table: (
    _looked_up_p.bind(jnp.moveaxis(given[0], axes[0], 0), table=table),
    0,
)
mlir.register_lowering(_looked_up_p, mlir.lower_fun(_looked_up, multiple_results=False))


def gathered(numbers: Any, places: Any) -> Any:
    """The numbers at these places of an array of one axis; one place after the last is a 0."""
    return _looked_up_p.bind(numbers, table=_Table(places, len(numbers)))


def _apart(loops: Sequence[Loop]) -> bool:
    """Whether no slot is read twice, but by loops that stay where they are."""
    reach = 1
    for count, stride in sorted((loop for loop in loops if loop[1]), key=lambda loop: loop[1]):
        if stride < reach:
            return False
        reach += (count - 1) * stride
    return True


def _strided(piece: Any, start: int, loops: Sequence[Loop]) -> Any:
    """The loops as slices and reshapes, which every engine does well: an axis for each, in their order."""
    moving = sorted((place for place, loop in enumerate(loops) if loop[1]), key=lambda place: -loops[place][1])
    made = piece[start : start + (loops[moving[0]][0] * loops[moving[0]][1] if moving else 1)]
    for done, place in enumerate(moving):
        count, stride = loops[place]
        missing = count * stride - made.shape[-1]
        if missing > 0:
            made = jnp.pad(made, [(0, 0)] * done + [(0, missing)])
        made = made[..., : count * stride].reshape(*made.shape[:-1], count, stride)
    made = made[..., 0]
    made = made.transpose(np.argsort(moving).tolist())
    staying = [place for place, loop in enumerate(loops) if not loop[1]]
    return jnp.broadcast_to(jnp.expand_dims(made, staying), [count for count, _ in loops])


# ---------------------------------------------------------------- the function


def runs_of(slots: Any, *places: Any) -> list[tuple[int, int, int]]:
    """Runs of slots, and of other numbers beside them: the first slot, the first place, and that after the last."""
    broken = np.any([np.diff(each) != 1 for each in (slots, *places)], axis=0)
    ends = [*(np.flatnonzero(broken) + 1).tolist(), len(slots)] if len(slots) else []
    return [(int(slots[begin]), begin, end) for begin, end in zip([0, *ends], ends, strict=False)]


class JaxFunction:
    """A program as a pure function of the leaves' numbers and the arguments', two arrays of one axis.

    It returns the outputs (a number, or an array of them) and whether the program applies to these numbers: where it
    does not, the plain function would have branched otherwise or raised, and the outputs say nothing. `leaves` are
    the Values closed over, in the order in which their numbers are taken.
    """

    def __init__(self, compiled: Compiled[..., Any], version: Version) -> None:
        self.compiled, self._version, self.program = compiled, version, version.program
        program = self.program
        slots = program.inputs[program.arguments :]
        order = np.argsort(slots, kind="stable")  # as they lie in memory, so that matrices are slices
        self.leaves = tuple(version.leaves[place] for place in order)
        self.leaf_slots, self._argument_slots = slots[order], program.inputs[: program.arguments]
        self._single = version.result.single
        self._mapped: Any = None
        _warn_of_many(compiled, program)

    def __repr__(self) -> str:
        return f"<jax function of {len(self.leaves)} leaves and {self.program.arguments} numbers, {self.program!r}>"

    def __call__(self, leaves: Any, arguments: Any) -> tuple[Any, Any]:
        leaves, arguments = jnp.asarray(leaves), jnp.asarray(arguments)
        expected = (len(self.leaves),), (self.program.arguments,)
        if (leaves.shape, arguments.shape) != expected:
            raise ValueError(
                f"to_jax: expected arrays of shapes {expected[0]} and {expected[1]}, got {leaves.shape} and "
                f"{arguments.shape}; use jax.vmap for a batch"
            )
        runs = runs_of(self.leaf_slots)
        return self.over([(slot, leaves[begin:end]) for slot, begin, end in runs], arguments)

    def over(self, leaves: Iterable[tuple[int, Any]], arguments: Any) -> tuple[Any, Any]:
        """The same, of the leaves' numbers in pieces, each after the first slot that it stands for."""
        dtype = functools.reduce(
            jnp.promote_types, [jnp.float32, arguments.dtype, *(piece.dtype for _, piece in leaves)]
        )
        memory = _Pieces(self.program, dtype)
        for slot, begin, end in runs_of(self._argument_slots):
            memory.add(slot, arguments[begin:end].astype(dtype))
        for slot, piece in leaves:
            memory.add(slot, piece.astype(dtype))
        finite = [True]
        for instruction in self.program.instructions:
            made = interpret.forward(instruction, _operands(memory, instruction), _JAX)
            if interpret.is_checked(instruction):
                finite.append(jnp.isfinite(made).all())
            memory.add(instruction.out, made)
        outputs = memory.read(self.program.outputs[None, :])[0]
        holds = functools.reduce(jnp.logical_and, [*finite, self._guarded(memory), self._as_traced(arguments)])
        return (outputs[0] if self._single else outputs), jax.lax.stop_gradient(holds)

    def _as_traced(self, arguments: Any) -> Any:
        """Whether the integers that the trace fixed are what they were."""
        whole = self._version.whole
        if not whole:
            return True
        expected = np.zeros(self.program.arguments)
        expected[list(whole)] = list(whole.values())
        free = ~np.isin(np.arange(self.program.arguments), list(whole))
        return (free | (arguments == expected)).all()

    def _guarded(self, memory: _Pieces) -> Any:
        """Whether every guard surely holds: two sides closer than rounding can have moved them are no answer."""
        guards = self.program.guards
        if not guards:
            return True
        sides = np.array([[guard.left, guard.right] for guard in guards])
        holds = []
        for sign in sorted({guard.sign for guard in guards}):
            chosen = np.array([place for place, guard in enumerate(guards) if guard.sign == sign])
            outcomes = np.array([[guards[place].outcome] for place in chosen])
            left, right = memory.read(sides[chosen, :1]), memory.read(sides[chosen, 1:])
            holds.append((interpret.SIGNS[sign](left, right) == outcomes).all())
        constant = memory.owner[sides] == _CONSTANT
        endless = (constant & ~np.isfinite(self.program.initial[sides])).any(axis=1)  # nothing is rounded across it
        open_to_doubt = sides[(sides[:, 0] != sides[:, 1]) & ~endless]
        doubt = _doubts(self.program, memory, open_to_doubt)
        if doubt is not None:
            apart = jnp.abs(memory.read(open_to_doubt[:, :1]) - memory.read(open_to_doubt[:, 1:]))
            holds.append(((doubt == 0.0) | (apart > interpret.SAFETY * doubt)).all())
        return functools.reduce(jnp.logical_and, holds)

    # ---------------------------------------------------------------- between Python and jax

    def numbers(self) -> Any:
        """The numbers of the leaves, as they are now."""
        return np.array([leaf.data for leaf in self.leaves], np.float64)

    def arguments(self, *args: Any, **kwargs: Any) -> Any:
        """The numbers of a call's arguments, in the order in which the function takes them."""
        call = Call(args, kwargs)
        if call.key != self._version.key:
            raise ValueError("to_jax: expected arguments of the same structure as the example's; export them, too")
        return np.array(call.numbers()[1], np.float64)

    def map(self, inputs: Iterable[Any]) -> list[Any]:
        """What `compiled.map` says, as plain numbers: by jax where the program applies, else by Python.

        The leaves' numbers are those of now; an input that is a tuple is several arguments.
        """
        calls = [given if isinstance(given, tuple) else (given,) for given in inputs]
        if not calls:
            return []
        if self._mapped is None:
            self._mapped = jax.jit(jax.vmap(self, in_axes=(None, 0)))
        rows = np.array([self.arguments(*args) for args in calls])
        outputs, holds = jax.device_get(self._mapped(self.numbers(), rows))
        results: list[Any] = outputs.tolist()
        for place in np.flatnonzero(~holds).tolist():
            made = self.compiled.plain_result(Call(calls[place], {})).values
            results[place] = made[0].data if self._single else [value.data for value in made]
        return results


def _operands(memory: _Pieces, instruction: Instruction) -> list[Any]:
    return [memory.read(view.slots) for view in instruction.operands]


def _doubts(program: Program, memory: _Pieces, sides: Any) -> Any:
    """How far the two sides of each guard may be from what the plain function compares; None where they are exact."""
    needed = np.zeros(program.size, np.bool_)
    needed[sides] = True
    wanted = []
    for instruction in reversed(program.instructions):
        own = slice(instruction.out, instruction.out + instruction.rows * instruction.columns)
        if needed[own].any():
            wanted.append(instruction)
            for view in instruction.operands:
                needed[view.slots] = True
    if not wanted or program.exact:
        return None
    unit = float(jnp.finfo(memory.dtype).eps) / 2
    doubts = _Pieces(program, memory.dtype)
    doubts.initial = np.zeros(program.size)
    for instruction in reversed(wanted):
        size = instruction.rows * instruction.columns
        made = memory.read(np.arange(instruction.out, instruction.out + size).reshape(instruction.rows, -1))
        operands, before = _operands(memory, instruction), _operands(doubts, instruction)
        doubts.add(instruction.out, interpret.doubt_of(instruction, operands, before, made, _JAX, unit))
    return jax.lax.stop_gradient(doubts.read(sides[:, :1]) + doubts.read(sides[:, 1:]))


def _warn_of_many(compiled: Compiled[..., Any], program: Program) -> None:
    kinds = {
        (each.op, each.rows, each.columns, each.parameters, *((view.loops or (view.row_stride, view.column_stride))
          if view.index is None else view.index.tobytes() for view in each.operands))
        for each in program.instructions
    }  # fmt: skip
    if len(kinds) > MANY:
        warnings.warn(
            f"to_jax: {with_line(compiled.function)} is a program of {len(kinds)} different instructions; XLA may take "
            "minutes to compile it, and will not make it faster than the native executor does",
            GradwalkWarning,
            stacklevel=4,
        )


def to_jax(compiled: Compiled[..., Any], version: Version) -> JaxFunction:
    """The version's program."""
    if version.program.functions:
        raise TypeError(
            f"to_jax: {with_line(compiled.function)} calls an operation of your own, which is Python; jax has no way "
            "to run it"
        )
    return JaxFunction(compiled, version)


def exported(function: JaxFunction) -> bytes:
    """The function over a batch of any size, with its first derivatives, as `jax.export.deserialize` reads it."""
    from jax import export

    if hasattr(jax, "enable_x64"):
        double_precision = jax.enable_x64(True)
    else:  # before jax 0.8
        from jax.experimental import enable_x64

        double_precision = enable_x64()
    with double_precision:
        (batch,) = export.symbolic_shape("batch")
        leaves = jax.ShapeDtypeStruct((len(function.leaves),), jnp.float64)
        arguments = jax.ShapeDtypeStruct((batch, function.program.arguments), jnp.float64)
        batched = jax.jit(jax.vmap(function, in_axes=(None, 0)))
        platforms = ("cpu", "cuda", "rocm", "tpu")
        made = export.export(batched, platforms=platforms)(leaves, arguments)
        return bytes(made.serialize(vjp_order=1))
