"""A headless Firefox, driven by its own protocol, Marionette, over a socket; no driver, nothing to install but it.

It answers to what `chromium.py` does, so that each test of the page runs in either: GRADWALK_BROWSER=firefox.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import chromium

PREFERENCES = {
    "marionette.port": 0, "browser.shell.checkDefaultBrowser": False, "app.update.enabled": False,
    "datareporting.policy.dataSubmissionEnabled": False, "network.proxy.type": 0,
    "browser.startup.homepage_override.mstone": "ignore", "toolkit.cosmeticAnimations.enabled": False,
    "browser.download.useDownloadDir": True,
}  # fmt: skip
KEYS = {
    "ArrowLeft": "\ue012", "ArrowUp": "\ue013", "ArrowRight": "\ue014", "ArrowDown": "\ue015", "Home": "\ue011",
    "End": "\ue010", "Enter": "\ue007", "Escape": "\ue00c", "Tab": "\ue004",
}  # fmt: skip
SHIFT = "\ue008"
TIMEOUT = 180.0


class Browser(chromium.Browser):
    """One Firefox process with a profile of its own."""

    def __init__(self) -> None:
        firefox = shutil.which("firefox-esr") or shutil.which("firefox")
        if firefox is None:
            raise RuntimeError("these tests drive Firefox, and none was found; run: apt-get install firefox-esr")
        self.profile = tempfile.mkdtemp(prefix="gradwalk-firefox-")
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in PREFERENCES.items()]
        Path(self.profile, "user.js").write_text("\n".join(lines), encoding="utf-8")
        environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        command = [firefox, "--headless", "--no-remote", "--marionette", "--remote-allow-system-access"]
        self.process = subprocess.Popen(
            [*command, "--profile", self.profile, "about:blank"], env=environment | {"HOME": self.profile},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.last = 0
        self.buffer = b""
        self.socket = self.connected()

    def begin(self) -> None:
        self.packet()  # its greeting
        self.send("WebDriver:NewSession", capabilities={"alwaysMatch": {"pageLoadStrategy": "normal"}})
        self.send("WebDriver:SetTimeouts", script=TIMEOUT * 1000, pageLoad=TIMEOUT * 1000)
        self.first = self.send("WebDriver:GetWindowHandle")

    def connected(self) -> socket.socket:
        until = time.monotonic() + TIMEOUT
        while True:
            with contextlib.suppress(OSError, ValueError):
                port = int(Path(self.profile, "MarionetteActivePort").read_text())
                return socket.create_connection(("127.0.0.1", port), TIMEOUT)
            if time.monotonic() > until:
                raise TimeoutError(f"Firefox did not start within {TIMEOUT} s")
            time.sleep(0.05)

    def packet(self) -> Any:
        while b":" not in self.buffer:
            self.buffer += self.received()
        length, _, self.buffer = self.buffer.partition(b":")
        while len(self.buffer) < int(length):
            self.buffer += self.received()
        text, self.buffer = self.buffer[: int(length)], self.buffer[int(length) :]
        return json.loads(text)

    def received(self) -> bytes:
        part = self.socket.recv(1 << 20)
        if not part:
            raise RuntimeError("Firefox ended unexpectedly")
        return part

    def send(self, command: str, **parameters: Any) -> Any:
        self.last += 1
        text = json.dumps([0, self.last, command, parameters]).encode()
        self.socket.sendall(str(len(text)).encode() + b":" + text)
        _, _, error, result = self.packet()
        if error:
            raise RuntimeError(f"{command}: {error['message']}")
        return result["value"] if isinstance(result, dict) and set(result) == {"value"} else result

    def privileged(self, script: str, *arguments: Any) -> Any:
        """What a script of the browser itself, not of a page, returns."""
        self.send("Marionette:SetContext", value="chrome")
        try:
            return self.send("WebDriver:ExecuteScript", script=script, args=list(arguments))
        finally:
            self.send("Marionette:SetContext", value="content")

    def open(self, address: str = "about:blank", width: int = 1280, height: int = 800, **settings: Any) -> Tab:
        self.send("WebDriver:SwitchToWindow", handle=self.first)  # the last one may have been closed
        handle = self.send("WebDriver:NewWindow", type="tab")["handle"]
        tab = Tab(self, handle)
        tab.prepare(width, height, **settings)
        if address != "about:blank":
            tab.go(address)
        return tab

    def close(self) -> None:
        self.socket.close()
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)


class Tab(chromium.Tab):
    """One page, as chromium.Tab has it."""

    browser: Browser

    def __init__(self, browser: Browser, handle: str) -> None:
        self.browser, self.handle = browser, handle
        self.heard: list[str] = []
        self.asked: list[str] = []
        self.at = (0, 0)

    def send(self, command: str, **parameters: Any) -> Any:
        self.browser.send("WebDriver:SwitchToWindow", handle=self.handle)
        return self.browser.send(command, **parameters)

    def privileged(self, script: str, *arguments: Any) -> Any:
        self.browser.send("WebDriver:SwitchToWindow", handle=self.handle)
        return self.browser.privileged(script, *arguments)

    def prepare(self, width: int, height: int, dark: bool = False, offline: bool = True, reduced: bool = False) -> None:
        """The page gets exactly this size, however small a window may be; `offline` is every page's own policy here."""
        self.privileged(
            """const [width, height, dark, reduced] = arguments;
            Services.prefs.setIntPref("layout.css.prefers-color-scheme.content-override", dark ? 0 : 1);
            Services.prefs.setIntPref("ui.prefersReducedMotion", reduced ? 1 : 0);
            Services.prefs.setBoolPref("security.csp.enable", true);
            const win = Services.wm.getMostRecentWindow("navigator:browser");
            win.resizeTo(Math.max(width, 700) + 60, height + 260);
            const { style } = win.gBrowser.selectedBrowser;
            for (const [name, length] of Object.entries({ width, height })) {
              for (const limit of ["", "min-", "max-"]) style.setProperty(limit + name, `${length}px`, "important");
            }
            style.setProperty("flex", "none", "important");
            Services.console.reset();""",
            width, height, dark, reduced,
        )  # fmt: skip

    @property
    def errors(self) -> list[str]:  # type: ignore[override]
        """What went wrong in pages since it was last asked."""
        self.heard += self.privileged(
            """const found = Services.console.getMessageArray().filter((each) => each instanceof Ci.nsIScriptError
              && !(each.flags & each.warningFlag) && /^(file|http|blob):/.test(each.sourceName || "file:")
              && !/chrome|resource/.test(each.sourceName) && /content|CSP/.test(each.category))
              .map((each) => (each.category.includes("CSP") ? "Content Security Policy: " : "") + each.errorMessage);
            Services.console.reset();
            return found;"""
        )
        return self.heard

    @property
    def requests(self) -> list[str]:  # type: ignore[override]
        names = "performance.getEntriesByType('resource').map((each) => each.name)"
        self.asked += [name for name in self.run(names) if name not in self.asked]
        self.run("performance.clearResourceTimings()")
        return self.asked

    def go(self, address: str) -> None:
        self.send("WebDriver:Navigate", url=address)

    def run(self, expression: str, frame: int | None = None) -> Any:
        """The value of the last of these statements; a promise is awaited."""
        before, _, last = expression.rpartition(";")
        for statements, value in (("", expression), (before, last), (expression, "undefined")):
            script = f"""const done = arguments[arguments.length - 1];
              (async () => {{ {statements};\nreturn ({value}\n); }})().then(
                (value) => done({{ value: value === undefined ? null : value }}),
                (error) => done({{ error: String(error) + (error?.stack ?? "") }}))"""
            try:
                self.browser.send("WebDriver:SwitchToWindow", handle=self.handle)
                if frame is not None:
                    self.browser.send("WebDriver:SwitchToFrame", id=frame)
                answer = self.browser.send("WebDriver:ExecuteAsyncScript", script=script, args=[], newSandbox=False)
            except RuntimeError as error:
                if "SyntaxError" not in str(error):
                    raise
                continue
            finally:
                if frame is not None:
                    self.browser.send("WebDriver:SwitchToFrame", id=None)
            if isinstance(answer, dict) and "error" in answer:
                raise RuntimeError(answer["error"])
            return answer["value"] if isinstance(answer, dict) else answer
        raise RuntimeError(f"no JavaScript: {expression}")

    def without_policy(self) -> None:
        self.privileged('Services.prefs.setBoolPref("security.csp.enable", false)')

    def without_downloads(self) -> None:
        """Files may come: they land in the profile, which goes with the browser."""

    def press(self, key: str, shift: bool = False) -> None:
        value = KEYS.get(key, key)
        pressed = [{"type": "keyDown", "value": value}, {"type": "keyUp", "value": value}]
        if shift:
            pressed = [{"type": "keyDown", "value": SHIFT}, *pressed, {"type": "keyUp", "value": SHIFT}]
        self.send("WebDriver:PerformActions", actions=[{"type": "key", "id": "keyboard", "actions": pressed}])
        self.settle()

    def type(self, text: str) -> None:
        self.run(f"document.execCommand('insertText', false, {json.dumps(text)})")
        self.settle()

    def mouse(self, kind: str, x: float, y: float, buttons: int = 0) -> None:
        does: list[dict[str, Any]] = [{"type": "pointerMove", "x": round(x), "y": round(y), "duration": 0}]
        if kind != "mouseMoved":
            does.append({"type": "pointerDown" if kind == "mousePressed" else "pointerUp", "button": 0})
        pointer = {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": does}
        self.send("WebDriver:PerformActions", actions=[pointer])

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.send("WebDriver:TakeScreenshot", full=False)))

    def close(self) -> None:
        self.send("WebDriver:ReleaseActions")
        self.send("WebDriver:CloseWindow")


@contextlib.contextmanager
def started() -> Iterator[Browser]:
    browser = Browser()
    try:
        browser.begin()
        yield browser
    finally:
        browser.close()
