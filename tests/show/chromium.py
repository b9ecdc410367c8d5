"""A headless Chromium, driven over a pipe with the DevTools protocol; no driver, no port, nothing to install but it.

`Browser()` starts it, `page(...)` opens a tab; what the page logs, throws or asks the network for is kept.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
    "--mute-audio", "--disable-dev-shm-usage", "--remote-debugging-pipe",
]  # fmt: skip
# the protocol speaks on the descriptors 3 and 4, which subprocess cannot hand over by number
LAUNCHER = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execvp(sys.argv[3], sys.argv[3:])"
)
KEYS = {
    "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Home": 36, "End": 35, "Enter": 13, "Escape": 27,
    "Tab": 9,
}  # fmt: skip
TIMEOUT = 30.0


def executable() -> str:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        found = shutil.which(name)
        if found:
            return found
    raise RuntimeError("these tests drive a real browser, and none was found; run: apt-get install chromium")


class Browser:
    """One Chromium process with a profile of its own; `bars`, to scroll with, take room beside what they scroll."""

    def __init__(self, bars: bool = False) -> None:
        self.profile = tempfile.mkdtemp(prefix="gradwalk-chromium-")
        commands_out, commands_in = os.pipe()
        answers_out, answers_in = os.pipe()
        flags = FLAGS if bars else [*FLAGS, "--hide-scrollbars"]
        command = [executable(), *flags, f"--user-data-dir={self.profile}", "about:blank"]
        # what the sanitizers have loaded first is for the extension, and not for a browser
        environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", LAUNCHER, str(commands_out), str(answers_in), *command],
            pass_fds=(commands_out, answers_in), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment,
        )  # fmt: skip
        os.close(commands_out)
        os.close(answers_in)
        self.to, self.come = commands_in, answers_out
        self.buffer = b""
        self.last = 0
        self.tabs: dict[str, Tab] = {}

    def call(
        self, method: str, session: str | None = None, seconds: float = TIMEOUT, **parameters: Any
    ) -> dict[str, Any]:
        self.last += 1
        message: dict[str, Any] = {"id": self.last, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data) :]
        wanted = self.last
        while True:
            answer = self.receive(time.monotonic() + seconds)
            if answer is None:
                raise TimeoutError(f"Chromium did not answer {method} within {seconds} s")
            if answer.get("id") == wanted:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def receive(self, until: float) -> dict[str, Any] | None:
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.come], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                return None
            chunk = os.read(self.come, 1 << 20)
            if not chunk:
                raise RuntimeError("Chromium ended unexpectedly")
            self.buffer += chunk
        text, _, self.buffer = self.buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        tab = self.tabs.get(message.get("sessionId", ""))
        if tab and "method" in message:
            tab.hear(message["method"], message["params"])
        return message

    def open(self, address: str = "about:blank", width: int = 1280, height: int = 800, **settings: Any) -> Tab:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = self.tabs[session] = Tab(self, session, target)
        tab.prepare(width, height, **settings)
        if address != "about:blank":
            tab.go(address)
        return tab

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self.call("Browser.close")
        for end in (self.to, self.come):
            os.close(end)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)


class Tab:
    """One page; `requests` and `errors` are what it asked for and what went wrong in it."""

    def __init__(self, browser: Browser, session: str, target: str) -> None:
        self.browser, self.session, self.target = browser, session, target
        self.requests: list[str] = []
        self.errors: list[str] = []
        self.loaded = False

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self.browser.call(method, self.session, **parameters)

    def prepare(self, width: int, height: int, dark: bool = False, offline: bool = True, reduced: bool = False) -> None:
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        mobile = width < 600
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2 if mobile else 1,
            mobile=mobile,
        )
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        features.append({"name": "prefers-reduced-motion", "value": "reduce" if reduced else "no-preference"})
        self.call("Emulation.setEmulatedMedia", features=features)
        if offline:
            self.call(
                "Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0
            )

    def hear(self, event: str, given: dict[str, Any]) -> None:
        if event == "Network.requestWillBeSent":
            self.requests.append(given["request"]["url"])
        elif event == "Runtime.exceptionThrown":
            details = given["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif event == "Log.entryAdded" and given["entry"]["level"] == "error":
            self.errors.append(given["entry"]["text"])
        elif event == "Page.loadEventFired":
            self.loaded = True

    def go(self, address: str) -> None:
        self.loaded = False
        self.call("Page.navigate", url=address)
        until = time.monotonic() + TIMEOUT
        while not self.loaded and self.browser.receive(until):
            pass
        if not self.loaded:
            raise TimeoutError(f"{address} did not load")

    def show(self, html: str, folder: Path, fragment: str = "") -> None:
        path = folder / "page.html"
        path.write_text(html, encoding="utf-8", newline="\n")
        self.go("about:blank")
        self.go(path.as_uri() + fragment)

    def without_policy(self) -> None:
        """Let scripts into pages whose own policy forbids it: the tests' own."""
        self.call("Page.setBypassCSP", enabled=True)

    def without_downloads(self) -> None:
        self.call("Browser.setDownloadBehavior", behavior="deny")

    def run(self, expression: str, frame: int | None = None, seconds: float = TIMEOUT) -> Any:
        """The value of a JavaScript expression; a promise is awaited. `frame` is the number of one of the page's."""
        where: dict[str, Any] = {} if frame is None else {"contextId": self.world(frame)}
        answer = self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True, seconds=seconds, **where
        )
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description", details["text"]))
        return answer["result"].get("value")

    def world(self, frame: int) -> int:
        """Where scripts run that see a frame's document."""
        found = self.call("Page.getFrameTree")["frameTree"]["childFrames"][frame]["frame"]["id"]
        answer = self.call("Page.createIsolatedWorld", frameId=found, worldName="test")
        return int(answer["executionContextId"])

    def text(self, selector: str) -> str:
        return str(self.run(f"document.querySelector({json.dumps(selector)}).textContent"))

    def wait(self, expression: str, seconds: float = 5.0) -> None:
        until = time.monotonic() + seconds
        while not self.run(expression):
            if time.monotonic() > until:
                raise AssertionError(f"never true: {expression}")
            time.sleep(0.02)

    def settle(self) -> None:
        """Wait until what was asked for is on the screen."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")

    def press(self, key: str, shift: bool = False) -> None:
        code = KEYS.get(key, ord(key.upper()) if len(key) == 1 else 0)
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        common = {"key": key, "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **common)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)
        self.settle()

    def type(self, text: str) -> None:
        self.call("Input.insertText", text=text)
        self.settle()

    def mouse(self, kind: str, x: float, y: float, buttons: int = 0) -> None:
        button = "left" if buttons or kind == "mouseReleased" else "none"
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, buttons=buttons, clickCount=1)

    def centre(self, selector: str) -> tuple[float, float]:
        box = self.run(
            f"(() => {{ const b = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
            " return [b.left + b.width / 2, b.top + b.height / 2]; })()"
        )
        return box[0], box[1]

    def click(self, selector: str) -> None:
        x, y = self.centre(selector)
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, 1)
        self.mouse("mouseReleased", x, y)
        self.settle()

    def drag(self, selector: str, by: float, steps: int = 5) -> None:
        x, y = self.centre(selector)
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, 1)
        for k in range(1, steps + 1):
            self.mouse("mouseMoved", x + by * k / steps, y, 1)
        self.mouse("mouseReleased", x + by, y)
        self.settle()

    def screenshot(self, path: Path) -> None:
        data = self.call("Page.captureScreenshot", format="png")["data"]
        path.write_bytes(base64.b64decode(data))

    def close(self) -> None:
        self.browser.call("Target.closeTarget", targetId=self.target)


@contextlib.contextmanager
def started(bars: bool = False) -> Iterator[Browser]:
    browser = Browser(bars)
    try:
        yield browser
    finally:
        browser.close()
