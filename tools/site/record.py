"""Runs the cells of lessons and writes what they print below them: `python tools/site/record.py [NAME …]`.

For the author of a lesson, who then reads what changed; the tests only compare.
"""

from __future__ import annotations

import re
import sys

import pages  # noqa: F401  # makes src importable

from gradwalk.lessons import cells, source

_CELL = re.compile(r"^```python( seconds=\d+| static)?\n(.*?)^```\n(?:```text\n.*?^```\n)?", re.DOTALL | re.MULTILINE)


def main() -> None:
    for lesson in source.lessons():
        if len(sys.argv) > 1 and not any(lesson.name.startswith(name) for name in sys.argv[1:]):
            continue
        namespace: dict[str, object] = {}

        def recorded(found: re.Match[str], namespace: dict[str, object] = namespace) -> str:
            outcome = cells.run(found[2], namespace)
            if outcome.error:
                raise SystemExit(f"{outcome.error}\nin\n{found[2]}")
            output = f"```text\n{outcome.text}```\n" if outcome.text else ""
            return f"```python{found[1] or ''}\n{found[2]}```\n{output}"

        text = lesson.path.read_text(encoding="utf-8")
        lesson.path.write_text(_CELL.sub(recorded, text), encoding="utf-8", newline="\n")
        source.files.cache_clear()
        print(lesson.name)


if __name__ == "__main__":
    main()
