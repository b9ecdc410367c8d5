"""Programs run by NumPy, one instruction after the other: slow, and what the native executor is tested against."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gradwalk.compiler import formulas
from gradwalk.compiler.flat import CHECKED, ROW_OPS
from gradwalk.compiler.program import Guard, Instruction, Program, View
from gradwalk.composites import COMPOSITES
from gradwalk.ops import OPS

Array = npt.NDArray[np.float64]
_SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge
}  # fmt: skip


def run(program: Program, inputs: npt.ArrayLike) -> Array:
    """Every slot after the forward pass."""
    slots = program.initial.copy()
    slots[program.inputs] = inputs
    forward = _exact_forward if program.exact else _forward
    with np.errstate(all="ignore"):
        for instruction in program.instructions:
            out = instruction.out
            result = forward(instruction, [slots[places(view)] for view in instruction.operands])
            slots[out : out + instruction.rows * instruction.columns] = np.ravel(result)
    return slots


def gradients(program: Program, slots: Array, seeds: npt.ArrayLike) -> Array:
    """The gradient of every input: of the results, each times its seed, after `run` gave these slots."""
    grads = np.zeros(program.size)
    np.add.at(grads, program.outputs, seeds)
    backward = _exact_backward if program.exact else _backward
    with np.errstate(all="ignore"):
        for instruction in reversed(program.instructions):
            end = instruction.out + instruction.rows * instruction.columns
            shape = instruction.rows, instruction.columns
            grad = grads[instruction.out : end].reshape(shape)
            if not grad.any():
                continue  # only a guard reads it: it hands nothing on, not even 0 · inf
            operands = [slots[places(view)] for view in instruction.operands]
            contributions = backward(instruction, operands, slots[instruction.out : end].reshape(shape), grad)
            for view, contribution in zip(instruction.operands, contributions, strict=True):
                if contribution is not None:
                    np.add.at(grads, places(view), contribution)
    return np.asarray(grads[program.inputs])


def places(view: View) -> npt.NDArray[np.intp]:
    """The slots a view reads, as a matrix."""
    if view.index is not None:
        return view.index.astype(np.intp)
    row, column = np.arange(view.rows)[:, None], np.arange(view.columns)
    return np.asarray(view.start + row * view.row_stride + column * view.column_stride, np.intp)


def first_failed(program: Program, slots: Array) -> Guard | None:
    """The first comparison that came out otherwise than in the trace."""
    for guard in program.guards:
        if bool(_SIGNS[guard.sign](slots[guard.left], slots[guard.right])) != guard.outcome:
            return guard
    return None


def applies(program: Program, slots: Array) -> bool:
    """Whether every guard holds, and nothing was computed that an operation may refuse to compute."""
    for instruction in program.instructions:
        end = instruction.out + instruction.rows * instruction.columns
        if instruction.op in CHECKED and not np.isfinite(slots[instruction.out : end]).all():
            return False
    return first_failed(program, slots) is None


# ---------------------------------------------------------------- what each instruction computes


def _forward(instruction: Instruction, operands: list[Array]) -> Any:
    name, xs = instruction.op, operands[0]
    if name in OPS:
        return formulas.forward(name, operands, instruction.parameters)
    if name == "matmul":
        return xs @ operands[1].T
    if name == "take":
        return xs[np.clip(operands[1][:, 0].astype(np.intp), 0, len(xs) - 1)]
    if name == "cross_entropy":
        target = np.clip(operands[1].astype(np.intp), 0, xs.shape[1] - 1)
        return _logsumexp(xs) - np.take_along_axis(xs, target, axis=1)
    return _OVER_ROWS[name](instruction, operands)


def _shifted(xs: Array) -> tuple[Array, Array]:
    largest = xs.max(axis=1, keepdims=True)
    shift = np.where(np.isfinite(largest), largest, 0.0)
    return np.exp(xs - shift), shift


def _logsumexp(xs: Array) -> Array:
    exponentials, shift = _shifted(xs)
    return np.asarray(np.log(exponentials.sum(axis=1, keepdims=True)) + shift)


def _softmax(xs: Array) -> Array:
    exponentials, _ = _shifted(xs)
    return np.asarray(exponentials / exponentials.sum(axis=1, keepdims=True))


def _rms_scale(xs: Array, eps: float) -> Array:
    return np.asarray(((xs * xs).mean(axis=1, keepdims=True) + eps) ** -0.5)


def _centred(xs: Array) -> Array:
    return np.asarray(xs - xs.mean(axis=1, keepdims=True))


def _norm(xs: Array) -> Array:
    scale = np.abs(xs).max(axis=1, keepdims=True)
    usable = (scale > 0.0) & np.isfinite(scale)
    safe = np.where(usable, scale, 1.0)
    length = np.sqrt(((xs / safe) ** 2).sum(axis=1, keepdims=True)) * safe
    return np.asarray(np.where(usable, length, np.abs(xs).sum(axis=1, keepdims=True)))


_OVER_ROWS: dict[str, Callable[[Instruction, list[Array]], Array]] = {
    "dot": lambda _, xs: (xs[0] * xs[1]).sum(axis=1),
    "sum": lambda _, xs: xs[0].sum(axis=1),
    "mean": lambda _, xs: xs[0].mean(axis=1),
    "norm": lambda _, xs: _norm(xs[0]),
    "logsumexp": lambda _, xs: _logsumexp(xs[0]),
    "largest": lambda _, xs: xs[0].max(axis=1),
    "smallest": lambda _, xs: xs[0].min(axis=1),
    "softmax": lambda _, xs: _softmax(xs[0]),
    "log_softmax": lambda _, xs: xs[0] - _logsumexp(xs[0]),
    "rmsnorm": lambda i, xs: xs[0] * _rms_scale(xs[0], i.parameters[0]),
    "layernorm": lambda i, xs: _centred(xs[0]) * _rms_scale(_centred(xs[0]), i.parameters[0]),
}  # fmt: skip


# ---------------------------------------------------------------- and what it hands back


def _one_hot(xs: Array, position: Array) -> Array:
    hot = np.zeros_like(xs)
    np.put_along_axis(hot, position.astype(np.intp).reshape(-1, 1), 1.0, axis=1)
    return hot


def _extreme(xs: Array, sign: float) -> Array:
    return np.asarray(np.argmax(np.where(np.isnan(xs), np.inf, sign * xs), axis=1), np.float64)


def _backward(instruction: Instruction, operands: list[Array], out: Array, grad: Array) -> list[Array | None]:
    name, xs = instruction.op, operands[0]
    if name in OPS:
        local = formulas.local_grads(name, operands, instruction.parameters, out)
        return [each * grad for each in local]
    if name == "matmul":
        return [grad @ operands[1], grad.T @ xs]
    if name == "dot":
        return [grad * operands[1], grad * xs]
    if name == "take":
        table = np.zeros_like(xs)
        np.add.at(table, np.clip(operands[1][:, 0].astype(np.intp), 0, len(xs) - 1), grad)
        return [table, None]
    if name == "cross_entropy":
        target = np.clip(operands[1], 0, xs.shape[1] - 1)
        return [grad * (_softmax(xs) - _one_hot(xs, target)), None]
    return [_row_grads(instruction, xs, out, grad)]


def _row_grads(instruction: Instruction, xs: Array, out: Array, grad: Array) -> Array:
    name, count = instruction.op, xs.shape[1]
    if name == "sum":
        return grad * np.ones_like(xs)
    if name == "mean":
        return grad * np.full_like(xs, 1.0 / count)
    if name == "norm":
        return grad * np.where(out == 0.0, 0.0, xs / out)
    if name == "logsumexp":
        return grad * _softmax(xs)
    if name in ("largest", "smallest"):
        return grad * _one_hot(xs, _extreme(xs, 1.0 if name == "largest" else -1.0))
    if name == "softmax":
        return np.asarray(out * (grad - (grad * out).sum(axis=1, keepdims=True)))
    if name == "log_softmax":
        return np.asarray(grad - _softmax(xs) * grad.sum(axis=1, keepdims=True))
    centred = _centred(xs) if name == "layernorm" else xs
    scale = _rms_scale(centred, instruction.parameters[0])
    slope = (grad * out).sum(axis=1, keepdims=True) * scale * scale / count
    inner = np.asarray(grad * scale - slope * centred)
    return np.asarray(inner - inner.mean(axis=1, keepdims=True)) if name == "layernorm" else inner


# ---------------------------------------------------------------- exact programs: the rows of the tables, on floats


def _numbers(instruction: Instruction, operands: Sequence[Array]) -> tuple[list[float], tuple[Any, ...]]:
    """What the row of COMPOSITES takes: its inputs, and its parameters."""
    xs: list[float] = operands[0].ravel().tolist()
    if instruction.op == "dot":
        return xs + operands[1].ravel().tolist(), ()
    if instruction.op == "cross_entropy":
        return xs, (int(operands[1][0, 0]),)
    if instruction.op in ROW_OPS:
        return xs, (int(instruction.parameters[-1]), *instruction.parameters[:-1])
    return xs, ()


def _exact_forward(instruction: Instruction, operands: list[Array]) -> Any:
    if instruction.op in OPS:
        return OPS[instruction.op].forward(*(float(x[0, 0]) for x in operands), *instruction.parameters)
    if instruction.op == "take":
        return operands[0][int(operands[1][0, 0])]
    xs, parameters = _numbers(instruction, operands)
    return COMPOSITES[instruction.op].forward(xs, *parameters)


def _exact_backward(instruction: Instruction, operands: list[Array], out: Array, grad: Array) -> list[Array | None]:
    if instruction.op == "take":
        table = np.zeros_like(operands[0])
        table[int(operands[1][0, 0])] = grad[0]
        return [table, None]
    if instruction.op in OPS:
        entries = [float(x[0, 0]) for x in operands]
        slopes = OPS[instruction.op].local_grads(*entries, *instruction.parameters, float(out[0, 0]))
        return [np.full((1, 1), float(each) * grad[0, 0]) for each in slopes]
    xs, parameters = _numbers(instruction, operands)
    local = COMPOSITES[instruction.op].local_grads(xs, *parameters, float(out[0, 0]))
    contributions = np.array([float(each) * grad[0, 0] for each in local])
    width = operands[0].size
    parts: list[Array | None] = [contributions[:width].reshape(operands[0].shape)]
    if instruction.op == "dot":
        parts.append(contributions[width:].reshape(operands[1].shape))
    return parts + [None] * (len(operands) - len(parts))
