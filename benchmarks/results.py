"""What a benchmark reports: rows that are printed and, with --record, written to results/NAME.json.

The tables of benchmarks/README.md are made of these files. `python benchmarks/results.py` makes them again, as --record
does; a test compares them, so that no figure can be typed there.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import json
import os
import platform
import re
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
README = HERE / "README.md"
Table = list[list[str]]  # the headings, and then the rows


@dataclass
class Row:
    """One line of the report: a number, what it has to reach, and the measurements that it is made of."""

    what: str
    number: float
    unit: str
    bar: float | None
    at_most: bool
    detail: str

    @property
    def missed(self) -> bool:
        if self.bar is None:
            return False
        return self.number > self.bar if self.at_most else self.number < self.bar

    def cells(self) -> list[str]:
        bar = "" if self.bar is None else f"{'≤' if self.at_most else '≥'} {self.bar:g}"
        return [self.what, f"{figure(self.number)} {self.unit}".strip(), bar + ", MISSED" * self.missed, self.detail]


def figure(number: float) -> str:
    """Three digits, or all of a number that is larger than that.

    >>> figure(1.9666), figure(3878.2), figure(44)
    ('1.97', '3,878', '44')
    """
    return f"{number:,.0f}" if number >= 100.0 or isinstance(number, int) else f"{number:.3g}"


def duration(taken: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if taken >= scale:
            return f"{taken / scale:.3g} {unit}"
    return f"{taken / 1e-9:.3g} ns"


def table_of(rows: list[Row]) -> Table:
    return [["what", "measured", "bar", "both sides"], *(row.cells() for row in rows)]


def show(table: Table) -> None:
    """By rich in a terminal, aligned columns elsewhere."""
    if sys.stdout.isatty() and importlib.util.find_spec("rich"):
        from rich.console import Console
        from rich.table import Table as RichTable

        shown = RichTable(*table[0])
        for cells in table[1:]:
            shown.add_row(*cells, style="red" if any("MISSED" in cell for cell in cells) else None)
        Console().print(shown)
        return
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for line in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    print()


# ---------------------------------------------------------------- files


def parsed_arguments(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Every benchmark's --record; what leaves something out is no record."""
    parser.add_argument("--record", action="store_true", help="write the results to benchmarks/results and README.md")
    arguments = parser.parse_args()
    if arguments.record and any(getattr(arguments, option, None) for option in ("quick", "only", "cpu")):
        parser.error("--record is for a full run")
    return arguments


def left_out(peer: str) -> None:
    """Say that a peer is not installed. A record needs all of them."""
    said = f"{peer} is not installed, its rows are left out; make bench installs it"
    if "--record" in sys.argv:
        sys.exit(f"{said}. Nothing was recorded")
    print(said, file=sys.stderr)


def machine() -> str:
    """What the figures depend on."""
    cpuinfo = Path("/proc/cpuinfo")
    named = re.search(r"model name\s*:\s*(.*)", cpuinfo.read_text()) if cpuinfo.is_file() else None
    processor = named[1] if named else platform.processor() or platform.machine()
    return f"{processor}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"


def record(name: str, tables: dict[str, Table], versions: str = "") -> None:
    """Write what the benchmark `name`.py has just measured, and the README's tables with it."""
    path = HERE / "results" / f"{name}.json"
    result = {
        "command": f"python benchmarks/{name}.py --record",
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "machine": machine() + (f"; {versions}" if versions else ""),
        "tables": tables,
    }
    path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8", newline="\n")
    fill_readme()


def fill_readme() -> None:
    README.write_text(filled(README.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")


def filled(text: str) -> str:
    """The text with the recorded tables between `<!-- NAME: TABLE -->` and `<!-- end -->`."""

    said: set[str] = set()

    def block(found: re.Match[str]) -> str:
        result = json.loads((HERE / "results" / f"{found[1]}.json").read_text(encoding="utf-8"))
        head = "" if found[1] in said else f"`{result['command']}` on {result['date']}, {result['machine']}:\n\n"
        said.add(found[1])
        return f"<!-- {found[1]}: {found[2]} -->\n{head}{markdown(result['tables'][found[2]])}<!-- end -->"

    return re.sub(r"<!-- (\w+): (\w+) -->\n.*?<!-- end -->", block, text, flags=re.DOTALL)


def markdown(table: Table) -> str:
    """Columns of numbers are aligned to the right; what was missed is bold."""
    headings, *rows = table
    columns = zip(*rows, strict=True)
    lines = [
        "--:" if all(re.fullmatch(r"[\d.,]+( [^\d /]+)?", cell) for cell in column) else "---" for column in columns
    ]
    cells = [headings, lines, *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in cells).replace("MISSED", "**missed**")


if __name__ == "__main__":
    fill_readme()
