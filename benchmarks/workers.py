"""When several threads or processes pay for one step of a batch: `python benchmarks/workers.py`.

One core is the measure. The best of some rounds, in which all take turns; nothing else should run.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import numpy as np

import gradwalk
from gradwalk.optim import Adam
from gradwalk.training import data
from gradwalk.training.tokenizer import Tokenizer
from gradwalk.workers import processes

SIZES = (64, 256, 512, 1024, 4096)


def main(rounds: int) -> None:
    model = gradwalk.nn.GPT(seed=1)
    loss, optimiser = gradwalk.compile(model.loss), Adam(model.parameters())
    documents, rng = data.read_documents(data.BUNDLED_NAMES), np.random.default_rng(0)
    tokenizer = Tokenizer.for_documents(documents)
    print("names a step; ms by one thread; how many times faster by two threads, by two processes")
    with processes(2) as pool:
        for size in SIZES:
            names = [tokenizer.encode(documents[i])[:9] for i in rng.integers(0, len(documents), size)]
            ways: dict[str, dict[str, Any]] = {
                "one": {"threads": 1},
                "threads": {"threads": 2},
                "pool": {"executor": pool},
            }
            best = dict.fromkeys(ways, float("inf"))
            for _ in range(rounds):
                for name, way in ways.items():
                    began = time.perf_counter()
                    loss.map_train_step(optimiser, names, **way)
                    best[name] = min(best[name], time.perf_counter() - began)
            faster = [best["one"] / best[name] for name in ("threads", "pool")]
            print(f"{size:5}  {best['one'] * 1e3:7.2f}  {faster[0]:5.2f}  {faster[1]:5.2f}", flush=True)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
