"""The built site, served as any static host would, and a browser to look at it: `make docs-test`."""

from __future__ import annotations

import functools
import http.server
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "build" / "site"
sys.path[:0] = [str(ROOT / "tests" / "show"), str(ROOT / "tools" / "site")]

import chromium  # noqa: E402


class Handler(http.server.SimpleHTTPRequestHandler):
    extensions_map = {  # noqa: RUF012
        **http.server.SimpleHTTPRequestHandler.extensions_map, ".mjs": "text/javascript", ".wasm": "application/wasm",
    }  # fmt: skip

    def send_head(self) -> Any:
        missing = getattr(self.server, "missing", None)
        if missing and missing in self.path:
            self.send_error(404)
            return None
        return super().send_head()

    def log_message(self, format: str, *arguments: object) -> None:
        pass


class Host(http.server.ThreadingHTTPServer):
    """The site on a port of its own; `is_down` lets all requests fail, as without a network, `missing` some."""

    is_down = False
    missing = ""

    def verify_request(self, request: object, client_address: object) -> bool:
        return not self.is_down

    def handle_error(self, request: object, client_address: object) -> None:
        pass  # a tab that is closed while it loads

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"


@pytest.fixture
def host() -> Iterator[Host]:
    """A fresh origin for each test: no test finds what another one left in the browser's caches."""
    if not (SITE / "index.html").is_file():
        pytest.fail("there is no site to test; run: make docs")
    server = Host(("127.0.0.1", 0), functools.partial(Handler, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="session")
def browser() -> Iterator[chromium.Browser]:
    with chromium.started() as started:
        yield started
