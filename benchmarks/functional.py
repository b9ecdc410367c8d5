"""value_and_grad, hessian, hvp and checkpoint on plain and compiled functions: times and memory, ratios of one run.

`python benchmarks/functional.py [--quick]`. Peers that are not installed are left out, and said so. The answers are
compared before anything is timed.
"""

from __future__ import annotations

import argparse
import gc
import math
import random
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from itertools import pairwise

from engine import best_interleaved, check_equal, resident_bytes, with_deep_stack
from results import Row, duration, left_out, parsed_arguments, record, show, table_of

from gradwalk import Value, compile, hessian, hvp, jacobian, softplus, tanh, value_and_grad
from gradwalk.custom import checkpoint


def rosenbrock(x):
    total = 0.0
    for a, b in pairwise(x):
        total = total + 100.0 * (b - a * a) ** 2 + (1.0 - a) ** 2
    return total


def point(count: int) -> list[float]:
    rng = random.Random(1)
    return [rng.uniform(-1.5, 1.5) for _ in range(count)]


# ---------------------------------------------------------------- peers, each a value and a gradient of the same code


def micrograd_gradient(x: list[float]) -> Callable[[], list[float]]:
    from micrograd.engine import Value as Micrograd

    def run() -> list[float]:
        leaves = [Micrograd(a) for a in x]
        rosenbrock(leaves).backward()
        return [leaf.grad for leaf in leaves]

    return run


def torch_gradient(x: list[float]) -> Callable[[], list[float]]:
    import torch

    torch.set_num_threads(1)

    def run() -> list[float]:
        leaves = [torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in x]
        return [g.item() for g in torch.autograd.grad(rosenbrock(leaves), leaves)]

    return run


def xad_gradient(x: list[float]) -> Callable[[], list[float]]:
    import xad.adj_1st as xad

    def run() -> list[float]:
        with xad.Tape() as tape:
            leaves = [xad.Real(a) for a in x]
            for leaf in leaves:
                tape.registerInput(leaf)
            tape.newRecording()
            out = rosenbrock(leaves)
            tape.registerOutput(out)
            out.derivative = 1.0
            tape.computeAdjoints()
            return [leaf.derivative for leaf in leaves]

    return run


PEERS = {"micrograd": (micrograd_gradient, 80.0), "xad": (xad_gradient, 15.0), "torch": (torch_gradient, 200.0)}


def gradient_rows(rounds: int) -> list[Row]:
    """All peers and gradwalk in turns; micrograd, which leaves cycles behind, with the collector off as well."""
    x = point(1000)
    ours = value_and_grad(rosenbrock)
    peers = {}
    for name, (made, _) in PEERS.items():
        try:
            peers[name] = made(x)
        except ImportError:
            left_out(name)
            continue
        check_equal(f"Rosenbrock, gradwalk and {name}", ours(x)[1], peers[name](), relative=1e-12)
    sides = {"ours": (lambda: ours(x), 50), **{name: (run, 1) for name, run in peers.items()}}
    best = best_interleaved(3 * rounds, sides)  # more of them, because a peer's turn is one call, and ours many
    rows = [ratio(f"{name} / value_and_grad, Rosenbrock, 1,000", best[name], best["ours"], PEERS[name][1])
            for name in peers]  # fmt: skip
    if "micrograd" in peers:
        gc.disable()
        try:
            best = best_interleaved(rounds, {"ours": (lambda: ours(x), 50), "micrograd": (peers["micrograd"], 1)})
        finally:
            gc.enable()
        rows.append(ratio("micrograd / value_and_grad, collector off", best["micrograd"], best["ours"]))
    return rows + overhead_rows(rounds, x)


def overhead_rows(rounds: int, x: list[float]) -> list[Row]:
    """What value_and_grad adds to the function on Values and a backward pass; and what an array costs beside a list."""

    def by_hand() -> list[float]:
        leaves = [Value(a) for a in x]
        rosenbrock(leaves).backward()
        return [leaf.grad for leaf in leaves]

    ours = value_and_grad(rosenbrock)
    sides = {"list": (lambda: ours(x), 10), "by hand": (by_hand, 10), "floats": (lambda: rosenbrock(x), 10)}
    try:
        import numpy
    except ImportError:
        left_out("numpy")
    else:
        array = numpy.array(x)
        sides["array"] = (lambda: ours(array), 10)
    best = best_interleaved(rounds, sides)
    rows = [
        ratio("value_and_grad / Values and backward() by hand", best["list"], best["by hand"]),
        ratio("value_and_grad / the function on floats", best["list"], best["floats"]),
    ]
    if "array" in best:
        rows.append(ratio("value_and_grad of an array / of a list", best["array"], best["list"]))
    return rows


def ratio(what: str, left: float, right: float, bar: float | None = None) -> Row:
    return Row(what, left / right, "×", bar, False, f"{duration(left)} / {duration(right)}")


# ---------------------------------------------------------------- second derivatives, and the two ways of a Jacobian


def second_order_rows(rounds: int) -> list[Row]:
    x = point(100)
    first, second, product = value_and_grad(rosenbrock), hessian(rosenbrock), hvp(rosenbrock)
    kept = product.at(x)
    by_rows = [math.fsum(a * b for a, b in zip(row, x, strict=True)) for row in second(x)]
    check_equal("hvp and hessian", product(x, x), by_rows, relative=1e-9)
    sides = {"gradient": (lambda: first(x), 50), "hessian": (lambda: second(x), 2), "hvp": (lambda: product(x, x), 5),
             "kept": (lambda: kept(x), 50)}  # fmt: skip
    best = best_interleaved(rounds, sides)
    return [
        Row(f"{what}, 100 variables / gradient", best[side] / best["gradient"], "×", None, True,
            f"{duration(best[side])} / {duration(best['gradient'])}")
        for what, side in (("hessian, eager", "hessian"), ("hvp", "hvp"), ("hvp.at(x), each product", "kept"))
    ]  # fmt: skip


def trajectory(x, steps: int = 1000):
    """Every output depends on all steps before it: the shape for which going forward pays."""
    seen = []
    for _ in range(steps):
        x = x + 0.01 * (1.0 - x * x)
        seen.append(x)
    return seen


def jacobian_rows(rounds: int) -> list[Row]:
    forward, reverse = (jacobian(trajectory, mode=mode) for mode in ("forward", "reverse"))
    check_equal("jacobian, both ways", forward(0.5), reverse(0.5), relative=1e-12)
    best = best_interleaved(rounds, {"forward": (lambda: forward(0.5), 2), "reverse": (lambda: reverse(0.5), 2)})
    return [Row("jacobian 1 → 1,000, reverse / forward", best["reverse"] / best["forward"], "×", None, False,
                f"{duration(best['reverse'])} / {duration(best['forward'])}")]  # fmt: skip


# ---------------------------------------------------------------- compiled functions


def numpy_gradient(x) -> Callable[[], object]:
    import numpy

    def run() -> object:
        before, after = x[:-1], x[1:]
        rest, missing = after - before * before, 1.0 - before
        gradient = numpy.zeros(len(x))
        gradient[:-1] = -400.0 * before * rest - 2.0 * missing
        gradient[1:] += 200.0 * rest
        return float(100.0 * (rest @ rest) + missing @ missing), gradient

    return run


def casadi_gradient(x) -> Callable[[], object]:
    """Memory that was bound before: the numbers are copied in, and the gradient is where it always is."""
    import casadi
    import numpy

    numbers = casadi.SX.sym("x", len(x))
    value = rosenbrock(casadi.vertsplit(numbers))
    function = casadi.Function("both", [numbers], [value, casadi.densify(casadi.gradient(value, numbers))])
    given, out, gradient = numpy.zeros(len(x)), numpy.zeros(1), numpy.zeros(len(x))
    buffer, evaluate = function.buffer()
    buffer.set_arg(0, memoryview(given))
    buffer.set_res(0, memoryview(out))
    buffer.set_res(1, memoryview(gradient))

    def run() -> object:
        given[:] = x
        evaluate()
        return out.item(), gradient

    run.kept = buffer  # evaluate() does not keep what it works on alive
    return run


def compiled_rows(rounds: int) -> list[Row]:
    import numpy

    x = numpy.array(point(1000))
    ours = value_and_grad(compile(rosenbrock))
    sides = {"ours": (lambda: ours(x), 1000)}
    bars = {"NumPy by hand": (numpy_gradient, 1.0), "casadi's buffers": (casadi_gradient, 2.0)}
    for name, (made, _) in bars.items():
        try:
            run = made(x)
        except ImportError:
            left_out(name)
            continue
        check_equal(f"compiled Rosenbrock and {name}", ours(x)[1], run()[1], relative=1e-12)
        sides[name] = run, 1000
    best = best_interleaved(rounds, sides)
    return [
        ratio(f"{name} / compiled value_and_grad, Rosenbrock, 1,000", best[name], best["ours"], bar)
        for name, (_, bar) in bars.items()
        if name in best
    ] + compiled_second_order_rows(rounds)


def compiled_second_order_rows(rounds: int) -> list[Row]:
    """Hessians by 100 variables, one of them sparse, and products, which need no Hessian."""
    import numpy

    x = numpy.array(point(100))
    rows = []
    for name, f in {"Rosenbrock": rosenbrock, "logistic": logistic(200, 100), "MLP": perceptron((2, 5, 12, 1))}.items():
        compiled = compile(f)
        first, second, product = value_and_grad(compiled), hessian(compiled), hvp(compiled)
        expected = hessian(f)(x)
        check_equal(f"hessian, {name}", second(x).ravel(), expected.ravel(), relative=1e-10)
        check_equal(f"hvp, {name}", product(x, x), expected @ x, relative=1e-9)
        sides = {"gradient": (partial(first, x), 1000), "hessian": (partial(second, x), 20),
                 "hvp": (partial(product, x, x), 200)}  # fmt: skip
        best = best_interleaved(rounds, sides)
        for what, bar in (("hessian", 60.0), ("hvp", None)):
            rows.append(Row(f"{what}, compiled {name}, 100 variables / gradient", best[what] / best["gradient"], "×",
                            bar, True, f"{duration(best[what])} / {duration(best['gradient'])}"))  # fmt: skip
    return rows


def logistic(samples: int, count: int) -> Callable[..., object]:
    rng = random.Random(2)
    data = [[rng.gauss(0.0, 1.0) for _ in range(count)] for _ in range(samples)]

    def loss(x):
        return sum(softplus(sum(a * b for a, b in zip(row, x, strict=True))) for row in data)

    return loss


def perceptron(sizes: tuple[int, ...]) -> Callable[..., object]:
    """A squared error over 8 samples, as a function of all weights and biases."""
    rng = random.Random(3)
    samples = [([rng.gauss(0.0, 1.0) for _ in range(sizes[0])], rng.gauss(0.0, 1.0)) for _ in range(8)]

    def loss(parameters):
        total = 0.0
        for x, target in samples:
            left = iter(parameters)
            for count in sizes[1:]:
                x = [sum((next(left) * a for a in x), next(left)) for _ in range(count)]
                x = [tanh(a) for a in x] if count > 1 else x
            total = total + (x[0] - target) ** 2
        return total

    return loss


# ---------------------------------------------------------------- memory of a checkpoint


def part(x, y, steps: int):
    for _ in range(steps):
        x = x * y + 0.1
    return x


def measure_checkpoint(parts: int, steps: int, kept: bool) -> None:
    """Run in a process of its own: resident bytes held at the end of the forward pass, and the gradient."""
    segment = part if kept else checkpoint(part)
    x, y = Value(0.5), Value(0.9)
    gc.collect()
    before = resident_bytes()
    out = x
    for _ in range(parts):
        out = segment(out, y, steps)
    held = resident_bytes() - before
    out.backward()
    print(held, y.grad)


def checkpoint_rows(quick: bool) -> list[Row]:
    parts, steps = 100, 1_000 if quick else 10_000
    outcomes = []
    for kept in (True, False):
        command = [sys.executable, __file__, "--measure-checkpoint", str(parts), str(steps), str(int(kept))]
        held, slope = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        outcomes.append((float(held), float(slope)))
    (everything, slope), (checkpointed, again) = outcomes
    check_equal("gradient with and without checkpoints", [slope], [again], relative=1e-9)
    detail = f"{everything / 1e6:.1f} MB / {checkpointed / 1e6:.2f} MB; {2 * parts * steps:,} nodes in {parts} parts"
    return [Row("memory, everything / checkpointed", everything / max(checkpointed, 1.0), "×", None, False, detail)]


def main() -> int:
    parser = argparse.ArgumentParser(description="Time derivatives of ordinary functions.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--measure-checkpoint", type=int, nargs=3, help=argparse.SUPPRESS)
    arguments = parsed_arguments(parser)
    if arguments.measure_checkpoint:
        parts, steps, kept = arguments.measure_checkpoint
        measure_checkpoint(parts, steps, bool(kept))
        return 0
    rounds = 3 if arguments.quick else 10
    rows = with_deep_stack(lambda: gradient_rows(rounds))
    rows += second_order_rows(rounds) + jacobian_rows(rounds)
    rows += compiled_rows(rounds) + checkpoint_rows(arguments.quick)
    show(table_of(rows))
    if arguments.record:
        record("functional", {"functional": table_of(rows)})
    return 0


if __name__ == "__main__":
    sys.exit(main())
