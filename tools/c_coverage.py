"""How many lines of each C file the last run of a build with GRADWALK_COVERAGE=1 reached, by gcov, and which not.

`make coverage` calls it; the counts lie in build/coverage.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path


def main() -> None:
    root = Path(__file__).parents[1]
    counts: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    with tempfile.TemporaryDirectory() as folder:
        for data in root.glob("build/coverage/**/*.gcda"):
            subprocess.run(["gcov", "--json-format", str(data)], cwd=folder, check=True, capture_output=True)
            for report in Path(folder).glob("*.gcov.json.gz"):
                for file in json.loads(gzip.decompress(report.read_bytes()))["files"]:
                    for line in file["lines"]:
                        counts[file["file"]][line["line_number"]] += line["count"]
                report.unlink()
    own = {name: lines for name, lines in counts.items() if "gradwalk/native" in name}
    reached = total = 0
    for name, lines in sorted(own.items()):
        missed = sorted(number for number, count in lines.items() if count == 0)
        reached, total = reached + len(lines) - len(missed), total + len(lines)
        share = 100 * (len(lines) - len(missed)) / len(lines)
        print(f"{name.partition('native/')[2]:34} {len(lines):5} lines {share:5.1f}%  {spans(missed)}")
    print(f"C lines: {reached} of {total}, {100 * reached / max(total, 1):.1f}%")


def spans(numbers: list[int]) -> str:
    """Line numbers, those in a row as one span.

    >>> spans([1, 2, 3, 7])
    '1-3, 7'
    """
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(f"{first}" if first == last else f"{first}-{last}" for first, last in found)


if __name__ == "__main__":
    main()
