"""When several threads or processes pay: `python benchmarks/workers.py`, on two cores that have nothing else to do.

A step of a batch by one thread, by two and by two processes; a step of many models; a sweep beside a single run. The
best of some rounds, in which all take turns.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np
from results import Row, Table, duration, figure, parsed_arguments, record, show, table_of

import gradwalk
from gradwalk.optim import Adam
from gradwalk.training import data
from gradwalk.training.tokenizer import Tokenizer
from gradwalk.workers import processes

SIZES = (64, 256, 512, 1024, 4096)
SEEDS = 64
IN_A_ROW = 4  # steps, as in training: the first of them wakes the workers up
DOCUMENTS = data.read_documents(data.BUNDLED_NAMES)


def names_of(count: int) -> list[Any]:
    tokenizer, rng = Tokenizer.for_documents(DOCUMENTS), np.random.default_rng(0)
    return [tokenizer.encode(DOCUMENTS[i])[:9] for i in rng.integers(0, len(DOCUMENTS), count)]


def steps(rounds: int) -> Table:
    """How many times faster a step over many names is."""
    model = gradwalk.nn.GPT(seed=1)
    loss, optimiser = gradwalk.compile(model.loss), Adam(model.parameters())
    table = [["names a step", "one thread", "two threads, times faster", "two processes, times faster"]]
    with processes(2) as pool:
        for size in SIZES:
            names = names_of(size)
            ways: dict[str, dict[str, Any]] = {
                "one": {"threads": 1},
                "threads": {"threads": 2},
                "pool": {"executor": pool},
            }
            best = dict.fromkeys(ways, float("inf"))
            for _ in range(rounds):
                for name, _ in itertools.product(ways, range(IN_A_ROW)):
                    began = time.perf_counter()
                    loss.map_train_step(optimiser, names, **ways[name])
                    best[name] = min(best[name], time.perf_counter() - began)
            faster = [figure(best["one"] / best[name]) for name in ("threads", "pool")]
            table.append([f"{size:,}", duration(best["one"]), *faster])
    return table


def models_row(rounds: int) -> Row:
    """Many models, each on a name of its own, all of one length, by one thread."""
    models = [gradwalk.nn.GPT(seed=seed) for seed in range(SEEDS)]
    names = [name for name in names_of(20 * SEEDS) if len(name) == 8][:SEEDS]
    many = gradwalk.compile(models[0].loss).models(models, models[0])
    optimiser, best = Adam(models[0].parameters()), float("inf")
    for _ in range(20 * rounds):
        began = time.perf_counter()
        many.step(optimiser, names)
        best = min(best, time.perf_counter() - began)
    return Row(f"a step of each of {SEEDS} models, a model", 1e6 * best / SEEDS, "µs", 15.0, True, duration(best))


def sweep_row(rounds: int) -> Row:
    """Many runs at once beside one, each as a command."""
    commands = {"train": ("train",), "sweep": ("sweep", "--seed", f"1..{SEEDS}")}
    best = dict.fromkeys(commands, float("inf"))
    for _, (name, words) in itertools.product(range(rounds), commands.items()):
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            subprocess.run(
                [sys.executable, "-m", "gradwalk", *words], cwd=folder, stdout=subprocess.DEVNULL, check=True
            )
            best[name] = min(best[name], time.perf_counter() - began)
    detail = f"{duration(best['sweep'])} / {duration(best['train'])}"
    return Row(
        f"`gradwalk sweep` of {SEEDS} seeds / `gradwalk train`", best["sweep"] / best["train"], "×", None, True, detail
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Time threads, processes and sweeps.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    arguments = parsed_arguments(parser)
    rounds = 3 if arguments.quick else 20
    rows = [models_row(rounds), sweep_row(1 if arguments.quick else 3)]
    tables = {"steps": steps(rounds), "sweep": table_of(rows)}
    for table in tables.values():
        show(table)
    if arguments.record:
        record("workers", tables)


if __name__ == "__main__":
    main()
