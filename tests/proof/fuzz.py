"""`make fuzz`: random programs for as long as one likes, and each failure in its smallest form.

FUZZ=20000 make fuzz        as many programs
SEED=40000 FUZZ=10 make fuzz     these ten
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from concurrent.futures import BrokenExecutor

from differences import Difference, differences, shown, smallest
from outcomes import Asked, Engines, TooLong
from programs import Program, program

AHEAD = 8  # programs that are run while one is looked at


def found(engines: Engines, tried: Program, way: str = "") -> list[Difference]:
    """All differences; those of one way only, where it is named."""
    return [d for d in differences(tried, engines.outcomes(tried, way)) if not way or d.way == way]


def found_in(engines: Engines, seeds: Iterable[int]) -> Iterator[tuple[Program, list[Difference]]]:
    """The differences of one program after the other, while both engines are busy with the next ones."""
    waiting = deque[tuple[Program, Asked]]()
    for tried in map(program, seeds):
        waiting.append((tried, engines.asked(tried)))
        if len(waiting) > AHEAD:
            yield _received(*waiting.popleft())
    while waiting:
        yield _received(*waiting.popleft())


def _received(tried: Program, asked: Asked) -> tuple[Program, list[Difference]]:
    try:
        return tried, list(differences(tried, {name: outcomes.result() for name, outcomes in asked.items()}))
    except TooLong:  # a list that doubles in a loop in a loop, say; or a hang of ours
        print(f"# seed {tried.seed}: takes too long in one of the ways, and counts for nothing", flush=True)
        return tried, []


def made_small(nice: int, tried: Program, difference: Difference) -> str:
    """The smallest program that fails like this one, and how."""
    engines = Engines(nice)  # of its own: a smaller program may put an array into itself, and that crashes NumPy

    def alike(one: Program) -> list[Difference]:
        nonlocal engines
        try:
            return [d for d in found(engines, one, difference.way) if d.kind == difference.kind]
        except TooLong:
            return []
        except BrokenExecutor:
            engines = Engines(nice)
            return []

    small = smallest(tried, lambda one: bool(alike(one)))
    told = shown(small, [*alike(small), difference][0])
    engines.close()
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, nargs="?", default=1000, help="programs to try")
    parser.add_argument("--seed", type=int, default=0, help="of the first")
    parser.add_argument("--show", type=int, default=20, help="failures to make small and show, one of a kind")
    parser.add_argument("--nice", type=int, default=10, help="how far to step back behind others")
    options = parser.parse_args()
    engines, failed, kinds, begun = Engines(options.nice), 0, Counter[tuple[str, ...]](), time.monotonic()
    os.nice(options.nice)
    seeds = range(options.seed, options.seed + options.count)
    for done, (tried, different) in enumerate(found_in(engines, seeds), start=1):
        failed += bool(different)
        for difference in different[:1]:
            kinds[difference.kind] += 1
            if kinds[difference.kind] == 1 and sum(kinds.values()) <= options.show:
                print(made_small(options.nice, tried, difference), "\n", flush=True)
            else:
                print(f"# seed {tried.seed}: {difference.way}", flush=True)
        if done % 100 == 0 or done == options.count:
            rate = done / (time.monotonic() - begun)
            print(f"{done} programs of {options.count}, {failed} with a difference, {rate:.1f} a second", flush=True)
    engines.close()
    for kind, count in kinds.most_common():
        print(count, " ".join(kind))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
