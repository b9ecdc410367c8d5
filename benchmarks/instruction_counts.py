"""How far each model is rolled up: scalar nodes in, instructions out, and the time that tracing and compiling took.

Run it with `python benchmarks/instruction_counts.py`; with a number, a random graph of so many nodes is added.
Answers are compared with the plain function first.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "compiler"))

from comparing import close, with_gradients
from models import MODELS, scalar_gpt, unstructured

from gradwalk.compiler.compile import compile
from gradwalk.compiler.version import Version


def measured(name: str, model: Any) -> str:
    function, args, leaves = model()
    compiled = compile(function)
    if not close(with_gradients(function, args, leaves), with_gradients(compiled, args, leaves)):
        raise SystemExit(f"{name}: the compiled function differs from the plain one")
    times = []
    for _ in range(5):
        start = time.perf_counter()
        version = Version(function, args, {}, False)
        times.append(time.perf_counter() - start)
    counts = version.program.counts
    return (
        f"| {name} | {counts.scalar_nodes:,} | {counts.instructions} | {counts.flops:,} | {counts.bytes:,} "
        f"| {min(times) * 1e3:.0f} |"
    )


def main() -> None:
    models: dict[str, Any] = {"scalar GPT, 8 positions, 4,064 parameters": scalar_gpt, **MODELS}
    if len(sys.argv) > 1:
        nodes = int(sys.argv[1])
        models[f"random graph, {nodes:,} operations"] = lambda: unstructured(nodes)
    print("| model | scalar nodes | instructions | flops | bytes | trace + compile, ms |")
    print("|---|--:|--:|--:|--:|--:|")
    for name, model in models.items():
        print(measured(name, model), flush=True)


if __name__ == "__main__":
    main()
