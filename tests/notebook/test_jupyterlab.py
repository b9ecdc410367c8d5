"""The widget in a real JupyterLab, in Chromium, with a kernel: make notebook runs this in an environment of its own."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "show"))

from chromium import Browser, Tab, started

CELLS = [
    "import gradwalk\na, b = gradwalk.Value(2.0, label='a'), gradwalk.Value(5.0, label='b')\nf = a*b + a",
    "walk = gradwalk.play(f)\nwalk",
    "walk",
    "print('kernel:', a.data, walk.value.data)",
    "f",
    "a.data = 3.0",
]
VIEWS = (
    "[...document.querySelectorAll('*')].map((each) => each.shadowRoot)"
    ".filter((tree) => tree?.querySelector('.gradwalk'))"
)
FIRST_VALUES = f"{VIEWS}.map((tree) => tree.querySelector('input.value').value)"


def notebook() -> dict[str, Any]:
    cells = [
        {"cell_type": "code", "id": f"cell{i}", "execution_count": None, "metadata": {}, "outputs": [], "source": text}
        for i, text in enumerate(CELLS)
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A JupyterLab of its own, with its own settings, on a free port."""
    folder = tmp_path_factory.mktemp("lab")
    (folder / "walk.ipynb").write_text(json.dumps(notebook()), encoding="utf-8")
    places = {name: str(folder / name.lower()) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "HOME")}
    for place in places.values():
        Path(place).mkdir()
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", "--port=0",
        "--IdentityProvider.token=secret", f"--ServerApp.root_dir={folder}", "--LabApp.expose_app_in_browser=True",
    ]  # fmt: skip
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, env=os.environ | places, stdout=log, stderr=log)
    try:
        yield address_of(folder / "jupyter_runtime_dir"), folder
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def address_of(runtime: Path) -> str:
    until = time.monotonic() + 180.0
    while time.monotonic() < until:
        for path in runtime.glob("jpserver-*.json"):
            with contextlib.suppress(ValueError, OSError):
                url = str(json.loads(path.read_text())["url"])
                urllib.request.urlopen(f"{url}api?token=secret", timeout=5).close()
                return url
        time.sleep(0.2)
    raise TimeoutError("JupyterLab did not start")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started() as running:
        yield running


def opened(browser: Browser, url: str, name: str = "walk.ipynb") -> Tab:
    """The notebook in a tab, once its cells are there."""
    tab = browser.open(width=1400, height=1000, offline=False)
    tab.go(f"{url}lab/tree/{name}?token=secret")
    tab.wait("Boolean(window.jupyterapp?.shell?.currentWidget?.content?.widgets?.length)", 90.0)
    return tab


def command(tab: Tab, name: str) -> None:
    tab.run(f"window.jupyterapp.commands.execute('{name}').then(() => 0)")


def run_cell(tab: Tab, number: int) -> None:
    tab.run(
        f"(() => {{ const {{ content }} = jupyterapp.shell.currentWidget; content.activeCellIndex = {number};"
        " return jupyterapp.commands.execute('notebook:run-cell').then(() => 0); })()"
    )


def wait_for_kernel(tab: Tab, a: float, value: float) -> None:
    """Run the cell that prints, until it says that the kernel has these numbers."""
    run_cell(tab, 3)
    text = "[...document.querySelectorAll('.jp-OutputArea-output pre')].map((each) => each.textContent.trim())"
    tab.wait(f"{text}.includes('kernel: {a} {value}')", 20.0)


def frames(tab: Tab) -> list[float]:
    """The heights at which copies of the page are seen."""
    found = (
        "[...document.querySelectorAll('iframe[title=gradwalk]')].map((each) => each.getBoundingClientRect().height)"
    )
    return [height for height in tab.run(found) if height > 0]


def test_the_widget_in_jupyterlab(server: tuple[str, Path], browser: Browser) -> None:
    """Display, edits on both sides, two views, reload, save, another kernel, nbconvert: all show the same numbers."""
    url, folder = server
    tab = opened(browser, url)
    tab.wait("jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status === 'idle'", 90.0)
    command(tab, "notebook:run-all-cells")
    tab.wait(f"{VIEWS}.length === 2", 60.0)
    tab.wait(f"{FIRST_VALUES}.join() === '3,3'", 20.0)  # the last cell changed it, and the views follow
    assert frames(tab) == []  # beside live views the copies are hidden

    tab.run(
        f"(() => {{ const field = {VIEWS}[0].querySelector('input.value'); field.focus(); field.value = '4';"
        " field.dispatchEvent(new Event('input')); field.blur(); })()"
    )
    tab.wait(f"{FIRST_VALUES}.join() === '4,4'", 20.0)
    wait_for_kernel(tab, 4.0, 24.0)
    run_cell(tab, 5)
    tab.wait(f"{FIRST_VALUES}.join() === '3,3'", 20.0)
    wait_for_kernel(tab, 3.0, 18.0)

    picture = "getComputedStyle(document.querySelector('.gradwalk-picture')).colorScheme"
    for name, theme in (("JupyterLab Dark", "dark"), ("JupyterLab Light", "light")):
        tab.run(f"jupyterapp.commands.execute('apputils:change-theme', {{ theme: '{name}' }}).then(() => 0)")
        tab.wait(f"{VIEWS}.every((tree) => tree.querySelector('.gradwalk').dataset.theme === '{theme}')", 20.0)
        tab.wait(f"{picture} === '{theme}'", 20.0)
        if place := os.environ.get("GRADWALK_PICTURES"):
            for number in (1, 4):
                tab.run(f"document.querySelectorAll('.jp-Cell')[{number}].scrollIntoView()")
                time.sleep(0.5)
                tab.screenshot(Path(place) / f"{theme}{number}.png")

    command(tab, "docmanager:save")
    tab.close()
    tab = opened(browser, url)  # the kernel is still there
    tab.wait(f"{VIEWS}.length === 2", 60.0)
    tab.wait(f"{FIRST_VALUES}.join() === '3,3'", 20.0)
    tab.run("jupyterapp.shell.currentWidget.sessionContext.shutdown().then(() => 0)")
    tab.close()

    tab = opened(browser, url)  # another kernel, which knows of no widget
    tab.wait("document.querySelectorAll('iframe[title=gradwalk]').length === 2", 60.0)
    assert len(frames(tab)) == 2
    time.sleep(2.0)  # it may still be looking for the widget
    assert "widget" not in tab.run("document.querySelector('.jp-Notebook').innerText").lower()
    if place := os.environ.get("GRADWALK_PICTURES"):
        tab.screenshot(Path(place) / "reopened.png")
    tab.close()

    saved = json.loads((folder / "walk.ipynb").read_text(encoding="utf-8"))
    copies = [
        "".join(output["data"]["text/html"])
        for cell in saved["cells"][1:3]
        for output in cell["outputs"]
        if "text/html" in output.get("data", {})
    ]
    assert len(copies) == 2
    assert all("&quot;data&quot;:3.0" in copy for copy in copies)

    run = [sys.executable, "-m", "nbconvert", "--to", "html", "--log-level=ERROR", str(folder / "walk.ipynb")]
    subprocess.run(run, check=True, timeout=120)
    tab = browser.open(width=1400, height=1000)
    tab.go((folder / "walk.html").as_uri())
    assert len(frames(tab)) == 2
    assert "Player(" not in tab.run("document.body.innerText")
    if place := os.environ.get("GRADWALK_PICTURES"):
        tab.screenshot(Path(place) / "nbconvert.png")
    tab.close()

    # from somebody else it is not trusted: of its outputs only what can run nothing is shown
    saved["cells"][0]["source"] += "\n"
    (folder / "foreign.ipynb").write_text(json.dumps(saved), encoding="utf-8")
    tab = opened(browser, url, "foreign.ipynb")
    foreign = "[...jupyterapp.shell.widgets('main')].find((each) => each.context?.path === 'foreign.ipynb')"
    shown = f"{foreign}.node"
    # the workspace may still have the other one there
    in_front = f"(jupyterapp.shell.activateById({foreign}.id), true)"
    pictures = (
        f"[1, 2].every((cell) => [...{shown}.querySelectorAll('.jp-Cell')[cell].querySelectorAll('.jp-OutputArea img')]"
        ".some((each) => each.naturalWidth > 0 && each.getBoundingClientRect().height > 0))"
    )
    tab.wait(f"{foreign} && {in_front} && {shown}.querySelectorAll('.jp-Cell').length === 6 && {pictures}", 60.0)
    assert tab.run(f"{shown}.querySelectorAll('.jp-OutputArea iframe').length") == 0
    assert "widget" not in tab.run(f"{shown}.innerText").lower()
    if place := os.environ.get("GRADWALK_PICTURES"):
        tab.screenshot(Path(place) / "foreign.png")
    tab.close()
