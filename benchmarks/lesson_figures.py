"""Writes src/gradwalk/lessons/figures.json: every figure that the lessons and the site's pages name in their text.

Counts are the same on every machine, and a test counts them again; what was measured is of the machine it ran on, and
says so. Run it with `python benchmarks/lesson_figures.py [--counts]`; a quiet machine gives better ratios.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "examples"), str(ROOT / "benchmarks")]

import plain_value  # noqa: E402
import scalar_gpt  # noqa: E402

import gradwalk  # noqa: E402

FIGURES = ROOT / "src" / "gradwalk" / "lessons" / "figures.json"
ROUNDS = 12
ONE_NAME = {"four": "emma", "five": "emily"}


def counts() -> dict[str, str]:
    """What can be counted: parameters, nodes, instructions."""
    parameters = scalar_gpt.initial_parameters(random.Random(42))
    weights = set(scalar_gpt.flattened(parameters))
    figures = {"gpt_parameters": len(weights), "gpt_runs_to_nudge": 2 * len(weights)}
    for letters, name in ONE_NAME.items():
        nodes = nodes_of(scalar_gpt.loss_of(parameters, scalar_gpt.tokens_of(name)), "_children")
        constants = sum(not node._children and node not in weights for node in nodes)
        figures[f"nodes_{letters}_letters"] = len(nodes)
        figures[f"operations_{letters}_letters"] = sum(bool(node._children) for node in nodes)
        figures[f"constants_{letters}_letters"] = constants
        figures[f"weights_used_{letters}_letters"] = len(nodes) - constants - figures[f"operations_{letters}_letters"]
        plain = scalar_gpt.initial_parameters(random.Random(42), plain_value.Value)
        loss = scalar_gpt.loss_of(plain, scalar_gpt.tokens_of(name))
        figures[f"plain_nodes_{letters}_letters"] = len(nodes_of(loss, "children"))
    program = compiled(parameters).program
    figures["compiled_nodes"] = program.counts.scalar_nodes
    figures["compiled_instructions"] = program.counts.instructions
    figures["compiled_products"] = str(program).count(" @ ")
    return {name: f"{count:,}" for name, count in figures.items()} | recorded()


def recorded() -> dict[str, str]:
    """What compiled.py wrote down of a training step of this model."""
    table = json.loads((ROOT / "benchmarks" / "results" / "compiled.json").read_text(encoding="utf-8"))["tables"]
    rows = {what: rest for what, *rest in table["compiled"]}
    step = rows["GPT training step, compiled.train_step(…), any name"][0]
    plain, _, _ = rows["GPT training step, plain python / gradwalk"][2].partition(" / ")
    plain, _, _ = plain.partition(" (")
    microseconds = float(step.removesuffix(" µs"))
    return {"compiled_step": step, "plain_step": plain, "steps_in_a_tenth": f"{1e5 / microseconds:,.0f}"}


def nodes_of(root: Any, children: str) -> set[Any]:
    seen, waiting = {root}, [root]
    while waiting:
        found = set(getattr(waiting.pop(), children)) - seen
        seen |= found
        waiting += found
    return seen


def compiled(parameters: Any) -> Any:
    """The loss of one name of eight positions as a compiled function that has been traced."""
    function = gradwalk.compile(lambda tokens: scalar_gpt.loss_of(parameters, tokens))
    function(scalar_gpt.tokens_of("gabriela"))
    return function


def measured() -> dict[str, str]:
    """What depends on the machine: processor time, the best of several rounds, taken in turns."""
    parameters = scalar_gpt.initial_parameters(random.Random(42))
    tokens = scalar_gpt.tokens_of(ONE_NAME["five"])

    def forward() -> None:
        scalar_gpt.loss_of(parameters, tokens)

    def both() -> None:
        scalar_gpt.loss_of(parameters, tokens).backward()

    runs = {"forward": forward, "both": both}
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(ROUNDS):
        for name, run in runs.items():
            began = time.process_time()
            run()
            best[name] = min(best[name], time.process_time() - began)
    nudging = 2 * len(scalar_gpt.flattened(parameters)) * best["forward"]
    return {
        "nudging_against_backward": f"{nudging / best['both']:,.0f}",
        "both_against_forward": f"{best['both'] / best['forward']:.1f}",
        "machine": f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the figures that the lessons name.")
    parser.add_argument("--counts", action="store_true", help="only what can be counted; the times stay as they are")
    times = json.loads(FIGURES.read_text(encoding="utf-8")) if parser.parse_args().counts else measured()
    FIGURES.write_text(json.dumps(times | counts(), indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(FIGURES.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
