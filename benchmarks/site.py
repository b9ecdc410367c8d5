"""What a visitor waits for, in Chromium on the built site: first paint, the first result of Python, and how much loads.

`make docs` first, then `python benchmarks/site.py`. Cold is a browser that has seen nothing; warm is a second visit.
"""

from __future__ import annotations

import argparse
import functools
import sys
import threading
import time
from http.server import ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "docs" / "tests"), str(ROOT / "tests" / "show")]  # both have a conftest

import chromium  # noqa: E402
from conftest import SITE, Handler  # noqa: E402
from results import Row, parsed_arguments, record, show, table_of  # noqa: E402

PAGE = "lessons/01-what-a-derivative-tells/"
BARS = {"first paint of a lesson": 1.0, "first result, cold": 8.0, "first result, warm": 3.0}


def visit(browser: chromium.Browser, address: str) -> tuple[float, float]:
    """Seconds to the first paint of a lesson, and from asking its first cell to the result."""
    tab = browser.open(address, offline=False)
    tab.wait("Boolean(globalThis.gradwalkCells)", 60.0)
    tab.wait("performance.getEntriesByName('first-contentful-paint').length > 0")  # cells may be there before the paint
    painted = tab.run("performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1000.0
    tab.wait("navigator.serviceWorker.controller !== null", 60.0)
    began = time.perf_counter()
    tab.run("gradwalkCells[0].run()")
    waited = time.perf_counter() - began
    assert tab.run("gradwalkCells[0].outcome.text") == "4.0\n"
    tab.wait("caches.keys().then((names) => names.length === 2)", 60.0)
    tab.close()
    return painted, waited


def megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def main() -> None:
    arguments = parsed_arguments(argparse.ArgumentParser(description="Time a lesson in Chromium, on the built site."))
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    chromium.TIMEOUT = 120.0
    with chromium.started() as browser:
        address = f"http://127.0.0.1:{server.server_port}/{PAGE}"
        painted, cold = visit(browser, address)
        time.sleep(2.0)  # what is fetched goes into the browser's cache
        _, warm = visit(browser, address)
    seen = zip(BARS.items(), (painted, cold, warm), strict=True)
    rows = [Row(what, seconds, "s", bar, True, "") for (what, bar), seconds in seen]
    rows.append(Row("the whole site", megabytes(SITE), "MB", 30.0, True, ""))
    rows.append(Row("what the first run of a cell loads", megabytes(SITE / "python"), "MB", None, True, ""))
    table = table_of(rows)
    show(table)
    if arguments.record:
        record("site", {"site": table}, "Chromium")


if __name__ == "__main__":
    main()
