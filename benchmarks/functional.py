"""value_and_grad, hessian, hvp and checkpoint on ordinary functions: times and memory, as ratios taken in one run.

`python benchmarks/functional.py [--quick]`. Peers that are not installed are left out, and said so. The answers are
compared before anything is timed.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import math
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from gradwalk import Value
from gradwalk.custom import checkpoint
from gradwalk.functional import hessian, hvp, jacobian, value_and_grad

_spec = importlib.util.spec_from_file_location("engine_benchmark", Path(__file__).with_name("engine.py"))
assert _spec is not None
assert _spec.loader is not None
engine_benchmark = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = engine_benchmark  # its dataclasses look their module up
_spec.loader.exec_module(engine_benchmark)
Row, best_interleaved, duration = engine_benchmark.Row, engine_benchmark.best_interleaved, engine_benchmark.duration


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


def gradient_rows(rounds: int) -> list[object]:
    x = point(1000)
    ours = value_and_grad(rosenbrock)
    rows = []
    for name, (made, bar) in PEERS.items():
        try:
            peer = made(x)
        except ImportError:
            print(f"{name} is not installed, its row is left out", file=sys.stderr)
            continue
        engine_benchmark.check_equal(f"Rosenbrock, gradwalk and {name}", ours(x)[1], peer(), relative=1e-12)
        best = best_interleaved(rounds, {"ours": (lambda: ours(x), 10), "peer": (peer, 1)})
        both = f"{duration(best['peer'])} / {duration(best['ours'])}"
        rows.append(
            Row(f"{name} / value_and_grad, Rosenbrock, 1,000", best["peer"] / best["ours"], "×", bar, False, both)
        )
    return rows


# ---------------------------------------------------------------- second derivatives, and the two ways of a Jacobian


def second_order_rows(rounds: int) -> list[object]:
    x = point(100)
    first, second, product = value_and_grad(rosenbrock), hessian(rosenbrock), hvp(rosenbrock)
    kept = product.at(x)
    by_rows = [math.fsum(a * b for a, b in zip(row, x, strict=True)) for row in second(x)]
    engine_benchmark.check_equal("hvp and hessian", product(x, x), by_rows, relative=1e-9)
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


def jacobian_rows(rounds: int) -> list[object]:
    forward, reverse = (jacobian(trajectory, mode=mode) for mode in ("forward", "reverse"))
    engine_benchmark.check_equal("jacobian, both ways", forward(0.5), reverse(0.5), relative=1e-12)
    best = best_interleaved(rounds, {"forward": (lambda: forward(0.5), 2), "reverse": (lambda: reverse(0.5), 2)})
    return [Row("jacobian 1 → 1,000, reverse / forward", best["reverse"] / best["forward"], "×", None, False,
                f"{duration(best['reverse'])} / {duration(best['forward'])}")]  # fmt: skip


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
    before = engine_benchmark.resident_bytes()
    out = x
    for _ in range(parts):
        out = segment(out, y, steps)
    held = engine_benchmark.resident_bytes() - before
    out.backward()
    print(held, y.grad)


def checkpoint_rows(quick: bool) -> list[object]:
    parts, steps = 100, 1_000 if quick else 10_000
    outcomes = []
    for kept in (True, False):
        command = [sys.executable, __file__, "--measure-checkpoint", str(parts), str(steps), str(int(kept))]
        held, slope = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        outcomes.append((float(held), float(slope)))
    (everything, slope), (checkpointed, again) = outcomes
    engine_benchmark.check_equal("gradient with and without checkpoints", [slope], [again], relative=1e-9)
    detail = f"{everything / 1e6:.1f} MB / {checkpointed / 1e6:.2f} MB; {2 * parts * steps:,} nodes in {parts} parts"
    return [Row("memory, everything / checkpointed", everything / max(checkpointed, 1.0), "×", None, False, detail)]


def main() -> int:
    parser = argparse.ArgumentParser(description="Time derivatives of ordinary functions.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--measure-checkpoint", type=int, nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure_checkpoint:
        parts, steps, kept = arguments.measure_checkpoint
        measure_checkpoint(parts, steps, bool(kept))
        return 0
    rounds = 3 if arguments.quick else 10
    rows: list[object] = []

    def measured() -> None:
        rows.extend(gradient_rows(rounds))

    sys.setrecursionlimit(100_000)  # micrograd's backward() recurses as deep as the graph
    threading.stack_size(512 * 1024 * 1024)
    thread = threading.Thread(target=measured)
    thread.start()
    thread.join()
    rows += second_order_rows(rounds) + jacobian_rows(rounds) + checkpoint_rows(arguments.quick)
    engine_benchmark.show(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
