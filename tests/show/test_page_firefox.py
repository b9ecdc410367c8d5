"""The page in a second browser: Debian's Firefox, headless, driven from inside by a page that holds it in a frame.

No driver is needed: the page around it walks every example and sends what it saw to the server that handed it out.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from gradwalk.expression import parsed
from gradwalk.show.play import page

TIMEOUT = 90.0

AROUND = """<!doctype html><meta charset="utf-8"><iframe src="walk.html" width="1280" height="720"></iframe>
<script type="module">
const frame = document.querySelector("iframe");
const found = { errors: [], examples: [] };
const tell = () => fetch("found", { method: "POST", body: JSON.stringify(found) });
const painted = () => new Promise((done) => setTimeout(done, 30));
// Firefox counts the halo and the whole line as a text's box: its letters are in the middle of it
const letters = ({ left, top, right, bottom }, scale) => {
  const middle = (top + bottom) / 2;
  return { left: left + 4 * scale, right: right - 4 * scale, top: middle - 7 * scale, bottom: middle + 7 * scale };
};
const hits = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3;
const boxes = (page, selector) => [...page.querySelectorAll(selector)]
  .filter((each) => each.textContent || each.tagName === "rect").map((each) => each.getBoundingClientRect());
async function look() {
  const { contentWindow: view, contentDocument: page } = frame;
  view.addEventListener("error", (event) => found.errors.push(event.message));
  const choice = page.querySelector(".examples");
  for (let k = 0; k < 8; k += 1) {
    choice.value = String(k);
    choice.dispatchEvent(new view.Event("change"));
    const app = view.gradwalk;
    app.player.go(app.player.steps, "jump");
    const isOpen = () => [...page.querySelectorAll("tbody .check")].some((each) => !each.textContent);
    for (let wait = 0; wait < 60 && isOpen(); wait += 1) await painted();
    const labels = boxes(page, ".graph .local").map((box) => letters(box, app.drawing.viewport.scale));
    const cards = boxes(page, ".node > .box");
    found.examples.push({
      text: app.graph.text, values: app.valuesByName(), data: [...app.line.data], grads: [...app.line.grads],
      cards: cards.length,
      verdicts: [...page.querySelectorAll("tbody .check")].map((each) => each.textContent),
      overlaps: labels.flatMap((box, i) => [...cards, ...labels.slice(i + 1)].filter((other) => hits(box, other))
        .map((other) => [box, other].map((each) => [each.left, each.top, each.right, each.bottom].map(Math.round)))),
      smallest: 12 * app.drawing.viewport.scale, title: page.querySelector(".step-title").textContent,
    });
  }
  page.dispatchEvent(new view.KeyboardEvent("keydown", { key: "Home", bubbles: true }));
  found.atStart = view.gradwalk.t;
  page.dispatchEvent(new view.KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
  found.afterKey = view.gradwalk.t;
  view.gradwalk.type("rleu(a)");
  found.problem = page.querySelector(".problem").textContent;
}
const failed = (error) => found.errors.push(String(error));
frame.addEventListener("load", () => look().catch(failed).then(tell), { once: true });
</script>"""


class Handler(BaseHTTPRequestHandler):
    """Hands out the two pages, and takes what was found."""

    found: queue.Queue[dict[str, Any]]

    def do_GET(self) -> None:
        text = {"/": AROUND, "/walk.html": page()}.get(self.path)
        self.send_response(200 if text else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write((text or "").encode())

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()
        self.found.put(json.loads(body))

    def log_message(self, *_: Any) -> None:
        """Nothing is printed."""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What a walk through all examples saw."""
    firefox = shutil.which("firefox-esr") or shutil.which("firefox")
    if firefox is None:
        raise RuntimeError("these tests run in Firefox as well, and none was found; run: apt-get install firefox-esr")
    answers: queue.Queue[dict[str, Any]] = queue.Queue()
    handler = type("Handler", (Handler,), {"found": answers})
    profile = tmp_path_factory.mktemp("firefox")
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"} | {"HOME": str(profile)}
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}/"
        command = [firefox, "--headless", "--no-remote", "--profile", str(profile), address]
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield answers.get(timeout=TIMEOUT)
        finally:
            process.terminate()
            process.wait(20)
            server.shutdown()


def test_every_example_has_the_engines_numbers(found: dict[str, Any]) -> None:
    """Data and gradients of each node are the engine's, and every finite difference agrees."""
    assert found["errors"] == []
    assert len(found["examples"]) == 8
    for seen in found["examples"]:
        root = parsed(seen["text"]).evaluate(seen["values"])
        root.backward()
        order = root._topological_order()
        assert seen["cards"] == len(order)
        for node, data, grad in zip(order, seen["data"], seen["grads"], strict=True):
            assert data == pytest.approx(node.data, rel=1e-12)
            assert node._constant or grad == pytest.approx(node.grad, rel=1e-12)
        assert set(seen["verdicts"]) == {"✓"}


def test_it_is_as_readable(found: dict[str, Any]) -> None:
    """No label lies on a card or on another, and no letter is smaller than 11 pixels."""
    for seen in found["examples"]:
        assert seen["overlaps"] == [], seen["text"]
        assert seen["smallest"] >= 10.99
        assert seen["title"].endswith(": backward")


def test_keys_and_mistakes(found: dict[str, Any]) -> None:
    """The keyboard steps, and a mistake is explained."""
    assert (found["atStart"], found["afterKey"]) == (0, 1)
    assert "did you mean relu?" in found["problem"]
