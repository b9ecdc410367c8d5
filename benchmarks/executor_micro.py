"""The native executor on hand-made programs of the shapes that the bars name: microseconds a call.

python benchmarks/executor_micro.py [kernels]
"""

import random
import sys
import time

import numpy as np

from gradwalk import _native
from gradwalk.compiler.program import Instruction, Program, View

KERNELS = sys.argv[1] if len(sys.argv) > 1 else None


class Builder:
    """Slots handed out one after the other."""

    def __init__(self):
        self.size, self.instructions, self.constants, self.inputs = 0, [], {}, []

    def take(self, count):
        self.size += count
        return self.size - count

    def input(self, rows, columns):
        start = self.take(rows * columns)
        self.inputs += range(start, self.size)
        return View(rows, columns, start, columns, 1)

    def constant(self, number, rows, columns):
        start = self.take(1)
        self.constants[start] = number
        return View(rows, columns, start, 0, 0)

    def add(self, op, rows, columns, *operands, parameters=()):
        out = self.take(rows * columns)
        self.instructions.append(Instruction(op, out, rows, columns, operands, parameters))
        return View(rows, columns, out, columns, 1)

    def program(self, output):
        initial = np.zeros(self.size)
        for slot, number in self.constants.items():
            initial[slot] = number
        inputs = np.array(self.inputs, dtype=np.int32)
        return Program(self.size, initial, inputs, np.array([output], dtype=np.int32), tuple(self.instructions))


def transposed(view):
    return View(view.columns, view.rows, view.start, view.column_stride, view.row_stride)


def part(view, first_row, rows, first_column, columns):
    start = view.start + first_row * view.row_stride + first_column * view.column_stride
    return View(rows, columns, start, view.row_stride, view.column_stride)


def gpt(positions=8, width=16, vocabulary=27, heads=4):
    """One layer: embeddings, attention, an MLP, cross entropy. Arguments: tokens, then targets."""
    b = Builder()
    tokens, targets = b.input(positions, 1), b.input(positions, 1)
    wte, wpe = b.input(vocabulary, width), b.input(positions, width)
    wq, wk, wv, wo = (b.input(width, width) for _ in range(4))
    up, down = b.input(4 * width, width), b.input(width, 4 * width)
    head = b.input(vocabulary, width)

    def linear(x, w):
        return b.add("matmul", x.rows, w.rows, x, w)

    def norm(x):
        return b.add("rmsnorm", x.rows, x.columns, x, parameters=(1e-5,))

    x = b.add("take", positions, width, wte, tokens)
    x = norm(b.add("add", positions, width, x, wpe))
    y = norm(x)
    q, k, v = linear(y, wq), linear(y, wk), linear(y, wv)
    size = width // heads
    parts = []
    for h in range(heads):
        for p in range(positions):
            scores = linear(part(q, p, 1, h * size, size), part(k, 0, p + 1, h * size, size))
            scores = b.add("div", 1, p + 1, scores, b.constant(size**0.5, 1, p + 1))
            weights = b.add("softmax", 1, p + 1, scores)
            out = b.add("matmul", 1, size, weights, transposed(part(v, 0, p + 1, h * size, size)))
            parts.append(out)
    index = np.empty((positions, width), dtype=np.int32)
    for i, out in enumerate(parts):
        h, p = divmod(i, positions)
        index[p, h * size : (h + 1) * size] = range(out.start, out.start + size)
    x = b.add("add", positions, width, linear(View(positions, width, index=index), wo), x)
    y = b.add("relu", positions, 4 * width, linear(norm(x), up))
    x = b.add("add", positions, width, linear(y, down), x)
    losses = b.add("cross_entropy", positions, 1, linear(x, head), targets)
    loss = b.add("mean", 1, 1, View(1, positions, losses.start, 0, 1))
    return b.program(loss.start), 2 * positions


def gpt_grouped(positions=8, width=16, vocabulary=27, heads=4):
    """The same with attention over all heads and positions of one length at a time: about 48 instructions."""
    b = Builder()
    tokens, targets = b.input(positions, 1), b.input(positions, 1)
    wte, wpe = b.input(vocabulary, width), b.input(positions, width)
    wq, wk, wv, wo = (b.input(width, width) for _ in range(4))
    up, down = b.input(4 * width, width), b.input(width, 4 * width)
    head = b.input(vocabulary, width)

    def linear(x, w):
        return b.add("matmul", x.rows, w.rows, x, w)

    def norm(x):
        return b.add("rmsnorm", x.rows, x.columns, x, parameters=(1e-5,))

    x = b.add("take", positions, width, wte, tokens)
    x = norm(b.add("add", positions, width, x, wpe))
    y = norm(x)
    q, k, v = linear(y, wq), linear(y, wk), linear(y, wv)
    size = width // heads
    pairs = [(h, p, t) for p in range(positions) for h in range(heads) for t in range(p + 1)]

    def gathered(rows):
        return View(len(rows), len(rows[0]), index=np.array(rows, dtype=np.int32))

    left = gathered([[q.start + p * width + h * size + i for i in range(size)] for h, p, t in pairs])
    right = gathered([[k.start + t * width + h * size + i for i in range(size)] for h, p, t in pairs])
    scores = b.add("dot", len(pairs), 1, left, right)
    scores = b.add("div", len(pairs), 1, scores, b.constant(size**0.5, len(pairs), 1))
    place, first = {}, scores.start
    for p in range(positions):
        weights = b.add("softmax", heads, p + 1, View(heads, p + 1, first, p + 1, 1))
        first += heads * (p + 1)
        for h in range(heads):
            for t in range(p + 1):
                place[h, p, t] = weights.start + h * (p + 1) + t
    mixed = []
    for p in range(positions):
        rows = [(h, i) for h in range(heads) for i in range(size)]
        left = gathered([[place[h, p, t] for t in range(p + 1)] for h, i in rows])
        right = gathered([[v.start + t * width + h * size + i for t in range(p + 1)] for h, i in rows])
        mixed.append(b.add("dot", width, 1, left, right))
    mixed = View(positions, width, mixed[0].start, width, 1)
    x = b.add("add", positions, width, linear(mixed, wo), x)
    y = b.add("relu", positions, 4 * width, linear(norm(x), up))
    x = b.add("add", positions, width, linear(y, down), x)
    losses = b.add("cross_entropy", positions, 1, linear(x, head), targets)
    loss = b.add("mean", 1, 1, View(1, positions, losses.start, 0, 1))
    return b.program(loss.start), 2 * positions


def rosenbrock(n=1000):
    """Σ 100 (x[i+1] - x[i]²)² + (1 - x[i])²."""
    b = Builder()
    x = b.input(1, n)
    m = n - 1
    here, after = part(x, 0, 1, 0, m), part(x, 0, 1, 1, m)
    squares = b.add("pow_number", 1, m, here, parameters=(2.0,))
    bend = b.add("pow_number", 1, m, b.add("sub", 1, m, after, squares), parameters=(2.0,))
    bend = b.add("mul", 1, m, bend, b.constant(100.0, 1, m))
    slope = b.add("pow_number", 1, m, b.add("sub", 1, m, b.constant(1.0, 1, m), here), parameters=(2.0,))
    total = b.add("sum", 1, 1, b.add("add", 1, m, bend, slope))
    return b.program(total.start), n


def mlp():
    b = Builder()
    x = b.input(1, 2)
    for before, after in ((2, 16), (16, 16), (16, 1)):
        w, bias = b.input(after, before), b.input(1, after)
        x = b.add("add", 1, after, b.add("matmul", 1, after, x, w), bias)
        x = b.add("tanh", 1, after, x) if after > 1 else x
    return b.program(x.start), 2


def random_graph(nodes=100_000, leaves=1000, levels=100):
    """No structure: operands anywhere before, groups of one op a level."""
    generator, b = random.Random(0), Builder()
    b.input(1, leaves)
    ops = ("add", "mul", "tanh", "sub", "sigmoid")
    for _ in range(levels):
        available = b.size
        for op in ops:
            count = nodes // levels // len(ops)
            views = [
                View(1, count, index=np.array([generator.randrange(available) for _ in range(count)], dtype=np.int32)
                     .reshape(1, count))
                for _ in range(1 if op in ("tanh", "sigmoid") else 2)
            ]  # fmt: skip
            b.add(op, 1, count, *views)
    total = b.add("sum", 1, 1, View(1, 1000, b.size - 1000, 0, 1))
    return b.program(total.start), leaves


def best_of(function, seconds=0.5):
    function()
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        started = time.perf_counter()
        for _ in range(20):
            function()
        best = min(best, (time.perf_counter() - started) / 20)
    return best * 1e6


def measure(name, program, arguments):
    generator = np.random.default_rng(0)
    options = {"kernels": KERNELS} if KERNELS else {}
    executor = _native.Executor(
        program.size, program.initial, program.inputs, program.outputs, program.instructions, program.guards, **options
    )
    given = generator.integers(0, 8, arguments).astype(float) if "gpt" in name else generator.uniform(-1, 1, arguments)
    leaves = tuple(_native.Value(x) for x in generator.normal(0, 0.2, len(program.inputs) - arguments))
    into, seeds, output = np.empty(arguments), np.ones(1), np.empty(1)
    gradients = np.empty(len(program.inputs))
    means, squares = np.zeros(len(leaves)), np.zeros(len(leaves))
    settings = (1e-9, 0.9, 0.999, 0.1, 0.001, 1e-8, 1.0)
    everything = np.concatenate([given, [leaf.data for leaf in leaves]])
    executor.run(everything)

    def step():
        executor.run_values(given, leaves)
        executor.outputs(output)
        executor.gradients_into(seeds, leaves, into)
        executor.adam(leaves, means, squares, *settings)

    rows = {
        "run": lambda: executor.run(everything),
        "run_values": lambda: executor.run_values(given, leaves),
        "gradients": lambda: executor.gradients(seeds, gradients),
        "gradients_into": lambda: executor.gradients_into(seeds, leaves, into),
        "adam": lambda: executor.adam(leaves, means, squares, *settings),
        "value_and_gradients": lambda: executor.value_and_gradients(given, leaves, output, seeds, gradients),
        "step": step,
    }
    print(f"{name}: {len(program.instructions)} instructions, {program.size} slots, {executor.kernels}")
    for row, function in rows.items():
        print(f"    {row:20} {best_of(function):10.2f} µs")
    if "gpt" in name:
        many = np.tile(given, (64, 1))
        outputs, sums = np.empty((64, 1)), np.empty(len(leaves))
        batch = best_of(lambda: executor.run_batch(many, leaves, outputs, seeds, None, sums))
        print(f"    {'batch of 64, each':20} {batch / 64:10.2f} µs")


if __name__ == "__main__":
    measure("mlp", *mlp())
    measure("rosenbrock", *rosenbrock())
    measure("gpt", *gpt())
    measure("gpt, grouped", *gpt_grouped())
    measure("random graph", *random_graph())
