"""How many instructions the compiler makes of the models that its tests use: `python benchmarks/counts.py [--record]`.

Nothing is timed; the counts are the same on every machine, and a test counts again.
"""

from __future__ import annotations

import argparse
import sys

from results import HERE, Table, figure, parsed_arguments, record, show

import gradwalk

sys.path.insert(0, str(HERE.parent / "tests" / "compiler"))

from models import MODELS, scalar_gpt


def counted() -> Table:
    table = [["model", "scalar nodes", "instructions", "flops", "bytes"]]
    for name, model in {"scalar GPT, 8 positions": scalar_gpt, **MODELS}.items():
        function, args, _ = model()
        compiled = gradwalk.compile(function)
        compiled(*args)
        counts = compiled.program.counts
        table.append([name, *map(figure, (counts.scalar_nodes, counts.instructions, counts.flops, counts.bytes))])
    return table


def main() -> None:
    arguments = parsed_arguments(argparse.ArgumentParser(description="Count instructions of compiled functions."))
    table = counted()
    show(table)
    if arguments.record:
        record("counts", {"counts": table})


if __name__ == "__main__":
    main()
