"""How many lines of each C file the last run of a build with GRADWALK_COVERAGE=1 reached, by gcov, and which not, and
why; below 95 % it fails. `make coverage` calls it; the counts lie in build/coverage.
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
LEAST = 95.0

# Why a stretch of lines is not reached, by what it says. They count as not reached all the same.
WAY_OUT = r"\s*(return (-1|NULL);|goto \w+;|(Py_CLEAR|Py_X?DECREF|PyMem_\w*Free|PyBuffer_Release|\w+_release)\(.*)"
REASONS = {
    r"PyErr_NoMemory|NO_MEMORY|no_memory\(": "no memory: the suite fails 120 allocations of each kind, make soak all",
    rf"\A({WAY_OUT}\n?)+\Z": "the way out where an allocation or Python itself failed, as above",
    r"_mm512_": "AVX-512, which not every processor has",
}


def main() -> None:
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
            reason = reason_for("\n".join(source[first : last + 1]))
            reasons[reason] += last + 1 - first
            if not reason:
                open_ones.append(f"{first}" if first == last else f"{first}-{last}")
        share = 100 * (len(lines) - count) / len(lines)
        print(f"{name.partition('native/')[2]:34} {len(lines):5} lines {share:5.1f}%  {', '.join(open_ones)}")
    for reason, count in reasons.most_common():
        print(f"{count:5} not reached: {reason or 'no reason known (the lines above)'}")
    share = 100 * reached / max(total, 1)
    print(f"C lines: {reached} of {total}, {share:.1f}%")
    if share < LEAST:
        sys.exit(f"expected at least {LEAST} %")


def reason_for(text: str) -> str:
    """Why these lines are not reached; '' where that is not known.

    >>> reason_for("        PyErr_NoMemory();\\n        return -1;")[:9]
    'no memory'
    """
    return next((reason for pattern, reason in REASONS.items() if re.search(pattern, text)), "")


def stretches(numbers: list[int]) -> list[tuple[int, int]]:
    """The first and last of numbers that follow each other.

    >>> stretches([1, 2, 3, 7])
    [(1, 3), (7, 7)]
    """
    runs = (list(run) for _, run in groupby(enumerate(numbers), lambda at: at[1] - at[0]))
    return [(run[0][1], run[-1][1]) for run in runs]


if __name__ == "__main__":
    main()
