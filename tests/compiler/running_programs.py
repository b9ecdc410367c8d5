"""Hand-made programs, run by the executor and, entry by entry, by the eager engine."""

import dataclasses
import itertools

import numpy as np
import pytest

from gradwalk import composites, ops
from gradwalk.compiler.program import Instruction, Program, View

native = pytest.importorskip("gradwalk._native", reason="the executor is native")
functions = composites.for_engine("native")


def slot_array(numbers):
    return np.array(numbers, dtype=np.int32)


KERNELS = native.KERNELS_HERE


def make(program, **options):
    return native.Executor(
        program.size, program.initial, program.inputs, program.outputs, program.instructions, program.guards, **options
    )


def entries(view):
    """The slots of a View as nested lists."""
    if view.index is not None:
        return view.index.reshape(view.rows, view.columns).tolist()
    loops = view.loops or [(view.rows, view.row_stride), (view.columns, view.column_stride)]
    further = itertools.product(*([turn * stride for turn in range(count)] for count, stride in loops))
    slots = [view.start + sum(steps) for steps in further]
    return [slots[i : i + view.columns] for i in range(0, len(slots), view.columns)]


def eager(program, inputs, seeds):
    """Outputs and input gradients, from the eager engine run entry by entry."""
    slots = [native.Value(x) for x in program.initial]
    for slot, x in zip(program.inputs, inputs, strict=True):
        slots[slot] = native.Value(x)
    leaves = [slots[slot] for slot in program.inputs]
    for instruction in program.instructions:
        op = instruction.op
        views = [[[slots[s] for s in row] for row in entries(v)] for v in instruction.operands]
        results = []
        for r in range(instruction.rows):
            if op in ops.OPS:
                for c in range(instruction.columns):
                    operands = [view[r][c] for view in views]
                    results.append(operands[0]._apply(op, *operands, *instruction.parameters))
            elif op == "matmul":
                results += [functions.dot(views[0][r], row) for row in views[1]]
            elif op == "dot":
                results.append(functions.dot(views[0][r], views[1][r]))
            elif op == "take":
                results += functions.take(views[0], int(views[1][r][0].data))
            elif op == "cross_entropy":
                results.append(functions.cross_entropy(views[0][r], int(views[1][r][0].data)))
            elif op in ("softmax", "log_softmax"):
                results += getattr(functions, op)(views[0][r])
            elif op in ("rmsnorm", "layernorm"):
                results += getattr(functions, op)(views[0][r], instruction.parameters[0])
            else:
                name = {"largest": "maximum", "smallest": "minimum"}.get(op, op)
                results.append(getattr(functions, name)(views[0][r]))
        for i, result in enumerate(results):
            slots[instruction.out + i] = result
    outputs = [slots[s] for s in program.outputs]
    total = functions.dot(outputs, [native.Value(s) for s in seeds])
    total.backward()
    return [y.data for y in outputs], [leaf.grad for leaf in leaves]


def run(executor, program, inputs, seeds):
    assert executor.run(np.array(inputs, dtype=float))
    outputs, gradients = np.empty(len(program.outputs)), np.empty(len(program.inputs))
    executor.outputs(outputs)
    executor.gradients(np.array(seeds, dtype=float), gradients)
    return outputs, gradients


def close(expected, actual):
    expected, actual = np.array(expected), np.array(actual)
    scale = max(1.0, np.abs(expected).max(initial=0.0))
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-13 * scale)


def numbers_for(generator, count, low=0.2, high=2.0):
    return [generator.uniform(low, high) for _ in range(count)]


def check(program, kernels, inputs, generator):
    """Outputs and gradients agree; so do those of an exact program, to the bit, and those of a batch."""
    seeds = numbers_for(generator, len(program.outputs))
    outputs, gradients = eager(program, inputs, seeds)
    actual = run(make(program, kernels=kernels), program, inputs, seeds)
    close(outputs, actual[0])
    close(gradients, actual[1])
    exact = run(make(program, kernels=kernels, exact=True), program, inputs, seeds)
    assert outputs == exact[0].tolist()
    close(gradients, exact[1])
    examples, arguments = 11, len(inputs) // 2
    batch = np.array([[x * (1.0 + 0.01 * e * (x != round(x))) for x in inputs[:arguments]] for e in range(examples)])
    leaves = tuple(native.Value(x) for x in inputs[arguments:])
    batch_outputs = np.empty((examples, len(outputs)))
    batch_gradients, leaf_gradients = np.empty_like(batch), np.empty((examples, len(leaves)))
    executor = make(program, kernels=kernels)
    assert executor.run_batch(batch, leaves, batch_outputs, np.array(seeds), batch_gradients, leaf_gradients) == []
    for e in range(examples):
        outputs, gradients = eager(program, [*batch[e], *inputs[arguments:]], seeds)
        close(outputs, batch_outputs[e])
        close(gradients[:arguments], batch_gradients[e])
        close(gradients[arguments:], leaf_gradients[e])
    summed = np.empty(len(leaves))
    assert executor.run_batch(batch, leaves, batch_outputs, np.array(seeds), None, summed) == []
    close(leaf_gradients.sum(axis=0), summed)


def program_of(slots, build, generator=None, initial=None):
    """A program with inputs in slots 0 … slots - 1; `build(add)` adds instructions, all results are outputs."""
    instructions, size = [], slots

    def add(op, rows, columns, *operands, parameters=()):
        nonlocal size
        instructions.append(Instruction(op, size, rows, columns, operands, parameters))
        size += rows * columns
        return size - rows * columns

    build(add)
    first = instructions[-1].out if generator is None else slots
    numbers = np.zeros(size)
    if initial is not None:
        numbers[: len(initial)] = initial
    return Program(size, numbers, slot_array(range(slots)), slot_array(range(first, size)), tuple(instructions))


def views_of(generator, slots, rows, columns):
    """Views of that shape over the slots, one of each kind."""
    index = [generator.randrange(slots) for _ in range(rows * columns)]
    found = [View(rows, columns, index=slot_array(index).reshape(rows, columns))]
    if rows * columns <= slots:
        found += [View(rows, columns, 0, columns, 1), View(rows, columns, 0, 1, rows)]
        found.append(View(rows, columns, rows * columns - 1, -columns, -1))
    if rows + columns - 1 <= slots:
        found.append(View(rows, columns, 0, 1, 1))  # rows overlap
    found.append(View(rows, columns, 1, 0, 0))
    if columns <= slots:
        found.append(View(rows, columns, 0, 0, 1))
    if rows <= slots:
        found.append(View(rows, columns, 0, 1, 0))
    if rows % 2 == 0 and rows < slots:  # forward, in both halves backward, and each slot over and over
        found.append(View(rows, columns, rows // 2, loops=((2, rows // 2), (rows // 2, -1), (columns, 0))))
    return found


def moved(view, by):
    """The same View over slots further on."""
    if view.index is not None:
        return View(view.rows, view.columns, index=view.index + np.int32(by))
    return dataclasses.replace(view, start=view.start + by)
