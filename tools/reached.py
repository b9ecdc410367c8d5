"""What the last `make coverage` reached: Python's lines and branches by coverage, C lines by gcov, whose counts lie in
build/coverage; which lines not, and why. Below 95 % of either it fails.
"""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).parents[1]
COVERAGE = (sys.executable, "-m", "coverage")
LEAST = 95.0  # of Python, [tool.coverage.report] says so

# Why a stretch of lines is not reached, by what it says. They count as not reached all the same.
RELEASED = r"(Py_CLEAR|Py_X?DECREF|PyMem_\w*Free|PyBuffer_Release|\w+_(release\w*|unlock|give|give_up))\("
WAY_OUT = rf"\s*(return (-1|NULL|UNDECIDED\(lane\));|goto \w+;|\w+:|{RELEASED}.*)"
C_REASONS = {
    r"PyErr_NoMemory|NO_MEMORY|no_memory\(|(out of|without) memory|~MARKED|MAP_FAILED|Set\(variable, before\)":
        "no memory: the suite fails 120 allocations of each kind, make soak all",
    rf"\A({WAY_OUT}\n?)+\Z": "the way out where an allocation or Python itself failed, as above",
    r"_mm512_": "AVX-512, which not every processor has",
    r"\bforks?(ed)?\b": "in a fork's child, whose counts nobody writes down",
    r"composite_(keep|output|slopes)\(": "rows without a kernel: tests/contributing has one, in a copy of the tree",
    r'"(Executor|flatten|row_numbers|write|stand_in_set_ways): expected': "our own Python never asks for that",
    r"\A(static inline .*|\})\Z": "inlined wherever it runs: the copy by itself is never called",
    r"order_spare_path|order_give_up": "graphs of millions of nodes, untraced, and no memory for them",
    r"munmap\(start": "where the system puts memory, which is its own affair",
    r"Py_UNREACHABLE": "a kind that there is not",
    r"batch_share_run\(&shares\[i\]\)": "a thread that the system does not start",
    r"tp_free\(self\)|hung_dealloc": "a place for attributes, which lives as long as the type",
    r"Py_SETREF\(tuple": "the collector, just then: tests/engine/test_reentrancy.py, now and then",
    r"GetAttrString\(object, text\)": "more names of attributes than there are",
}  # fmt: skip
PYTHON_REASONS = {
    r"NotImplementedError": "a base class's: what derives from it has its own",
    r"[Jj]ax|[Dd]ask|distributed|loky|client\.": "needs jax or a cluster: make scale",
    r"functools import cached_property|error\.args = ": "for another version of Python",
    r"fcntl|sys\.exit\(subprocess": "Windows",
    r"os\._exit": "the last line of a process, which leaves without writing its counts down",
    r"np\.dot, np\.concatenate": "for another version of NumPy, whose functions in C have no signature",
    r"setattr\(self\.cls, name, method\)": "a formula that was read, and differs all the same: none is known",
    r"part \+ _read_up_to": "a pipe whose writer comes late: now and then",
    r"raised by a signal handler": "between two instructions: tests/control does that, untraced",
}


UNKNOWN = "no reason known (the lines above)" + "".join(
    f"; it was a short form, of {thin} cases of a test at most" for thin in sys.argv[1:]
)


def main() -> None:
    python, c = python_reached(), c_reached()
    if not (python and c):
        sys.exit(f"expected at least {LEAST} %")


def python_reached() -> bool:
    """Whether coverage finds it enough; its report is printed, and why lines in it are not reached."""
    enough = subprocess.run([*COVERAGE, "report", "--skip-covered"], check=False).returncode == 0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "lines.json")
        subprocess.run([*COVERAGE, "json", "-q", "--fail-under=0", "-o", file], check=True)
        files = json.loads(file.read_bytes())["files"]
    reasons: Counter[str] = Counter()
    for name, of_file in files.items():
        source = ["", *Path(name).read_text(encoding="utf-8").splitlines()]
        for first, last in stretches(of_file["missing_lines"]):
            reasons[reason_for("\n".join(source[first : last + 1]), PYTHON_REASONS)] += last + 1 - first
    tell(reasons)
    return enough


def c_reached() -> bool:
    """Whether enough C lines are reached; those of each file are printed."""
    counts: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    with tempfile.TemporaryDirectory() as folder:
        for data in ROOT.glob("build/coverage/**/*.gcda"):
            subprocess.run(["gcov", "--json-format", str(data)], cwd=folder, check=True, capture_output=True)
            for report in Path(folder).glob("*.gcov.json.gz"):
                for file in json.loads(gzip.decompress(report.read_bytes()))["files"]:
                    for line in file["lines"]:
                        counts[file["file"]][line["line_number"]] += line["count"]
                report.unlink()
    own = {name: lines for name, lines in counts.items() if "gradwalk/native" in name}
    reached = total = 0
    reasons: Counter[str] = Counter()
    for name, lines in sorted(own.items()):
        missed = stretches(sorted(number for number, count in lines.items() if count == 0))
        count = sum(last + 1 - first for first, last in missed)
        reached, total = reached + len(lines) - count, total + len(lines)
        source = ["", *(ROOT / name).read_text(encoding="utf-8").splitlines()]
        open_ones = []
        for first, last in missed:
            reason = reason_for("\n".join(source[first : last + 1]), C_REASONS)
            reasons[reason] += last + 1 - first
            if not reason:
                open_ones.append(f"{first}" if first == last else f"{first}-{last}")
        share = 100 * (len(lines) - count) / len(lines)
        print(f"{name.partition('native/')[2]:34} {len(lines):5} lines {share:5.1f}%  {', '.join(open_ones)}")
    tell(reasons)
    share = 100 * reached / max(total, 1)
    print(f"C lines: {reached} of {total}, {share:.1f}%", flush=True)
    return share >= LEAST


def tell(reasons: Counter[str]) -> None:
    for reason, count in reasons.most_common():
        print(f"{count:5} not reached: {reason or UNKNOWN}", flush=True)


def reason_for(text: str, reasons: dict[str, str]) -> str:
    """Why these lines are not reached; '' where that is not known.

    >>> reason_for("        PyErr_NoMemory();\\n        return -1;", C_REASONS)[:9]
    'no memory'
    """
    return next((reason for pattern, reason in reasons.items() if re.search(pattern, text)), "")


def stretches(numbers: list[int]) -> list[tuple[int, int]]:
    """The first and last of numbers that follow each other.

    >>> stretches([1, 2, 3, 7])
    [(1, 3), (7, 7)]
    """
    runs = (list(run) for _, run in groupby(enumerate(numbers), lambda at: at[1] - at[0]))
    return [(run[0][1], run[-1][1]) for run in runs]


if __name__ == "__main__":
    main()
