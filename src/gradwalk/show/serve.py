"""`gradwalk play --serve`: hands out one page, on the loopback address only, to whoever asks for it by that name.

It is for people on a remote machine, who reach it through a tunnel. It serves no files and takes no input.
"""

from __future__ import annotations

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import click

LOOPBACK = "127.0.0.1"
NAMES = ("127.0.0.1", "localhost", "[::1]")


class Server(ThreadingHTTPServer):
    """The one page, at /, on a free port or the one given."""

    daemon_threads = True

    def __init__(self, text: str, port: int = 0) -> None:
        self.content = text.encode()
        super().__init__((LOOPBACK, port), _Handler)

    @property
    def address(self) -> str:
        return f"http://{LOOPBACK}:{self.server_address[1]}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser may close before it has all."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: Server
    timeout = 10
    server_version = "gradwalk"
    sys_version = ""

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, with_body: bool) -> None:
        # another site's name that was pointed at this address (DNS rebinding) must not be able to read the page
        host = self.headers.get("Host", "").rpartition(":")[0] or self.headers.get("Host", "")
        if host not in NAMES or len(self.headers.get_all("Host", [])) != 1:
            return self._send(403, b"gradwalk play answers to localhost only\n", "text/plain", with_body)
        if self.path.partition("?")[0] != "/":
            return self._send(404, b"there is one page, at /\n", "text/plain", with_body)
        self._send(200, self.server.content, "text/html", with_body)

    def _send(self, status: int, content: bytes, kind: str, with_body: bool) -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.end_headers()
        if with_body:
            self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Requests are nobody's business."""


def serve(text: str) -> None:
    """Serve until interrupted."""
    with Server(text) as server:
        click.echo(f"{server.address}  (control-C ends it)")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            click.echo()
