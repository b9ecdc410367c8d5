"""Builds the site: `python tools/site/builder.py FOLDER`. Any static host can serve the folder.

Pages come from Markdown (pages.py), the reference from docstrings; the page of the walk, Python and gradwalk itself are
put beside them. A link that leads nowhere ends the build.
"""

from __future__ import annotations

import hashlib
import html
import json
import re
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

from packages import package
from pages import ROOT, Page, sections
from render import Renderer, titled

from gradwalk import _version
from gradwalk.show import play

HERE = Path(__file__).resolve().parent
PYTHON = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
STARTED = "started-"
LEFT_OUT = ("native", "run", "scipy")  # folders of src/gradwalk that are of no use in the browser


class BrokenLinkError(ValueError):
    """A link to a page or a heading that is not there."""


class Site:
    """The pages, and where they lead."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sections = sections()
        self.pages = [page for pages in self.sections.values() for page in pages]
        self.at = {page.path.resolve(): page for page in self.pages}
        self.template = (HERE / "template.html").read_text(encoding="utf-8")
        self.anchors: dict[str, set[str]] = {}
        self.links: list[tuple[Page, str, str]] = []  # from, to an address, to an anchor
        self.index: list[list[str]] = []

    def build(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(ROOT / "docs" / "assets", self.folder / "assets")
        shutil.copytree(ROOT / "examples", self.folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
        self.write_pages()
        self.write_walk()
        self.write_python()
        (self.folder / "search.json").write_text(json.dumps(self.index, ensure_ascii=False), encoding="utf-8")
        self.write_service_worker()

    # ---------------------------------------------------------------- pages

    def write_pages(self) -> None:
        for number in range(len(self.pages)):
            self.write_page(number)
        self.check_links()

    def write_page(self, number: int) -> None:
        page = self.pages[number]
        renderer = Renderer(page.up, lambda target: self.link(page, target))
        body = renderer.rendered(page.parts)
        self.anchors[page.address] = {anchor for _, _, anchor in renderer.headings}
        for (_, heading, _), (anchor, text) in zip(renderer.headings, renderer.words, strict=True):
            plain = re.sub(r"\x02\d+\x03|<[^>]+>|\s+", " ", text).strip()
            self.index.append([f"{page.address}#{anchor}", page.title.replace("`", ""), heading, plain])
        fields = {
            "title": page.title if page.title == "gradwalk" else f"{page.title.replace('`', '')} · gradwalk",
            "up": page.up or "./",
            "navigation": self.navigation(page),
            "contents": self.contents(renderer),
            "body": body,
            "around": self.around(number),
            "cells": renderer.data(),
            "version": _version.__version__,
        }
        text = re.sub(r"\{\{(\w+)\}\}", lambda found: fields[found[1]], self.template)
        path = self.folder / page.address / "index.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")

    def navigation(self, here: Page) -> str:
        parts = []
        for title, pages in self.sections.items():
            items = "".join(
                f'<li><a href="{here.up or "./"}{page.address}"{" aria-current=page" if page is here else ""}>'
                f"{titled(page.title)}</a></li>"
                for page in pages
            )
            ordered = "ol" if title == "Lessons" else "ul"
            parts.append(f'<h2>{title}</h2><{ordered} role="list">{items}</{ordered}>')
        return "".join(parts)

    def contents(self, renderer: Renderer) -> str:
        items = "".join(
            f'<li><a href="#{anchor}">{html.escape(said)}</a></li>'
            for level, said, anchor in renderer.headings
            if level == 2
        )
        return f'<h2>On this page</h2><ul role="list">{items}</ul>' if items.count("<li>") > 1 else ""

    def around(self, number: int) -> str:
        here = self.pages[number]
        links = []
        for step, word in ((-1, "previous"), (1, "next")):
            if 0 <= number + step < len(self.pages):
                page = self.pages[number + step]
                address = f"{here.up or './'}{page.address}"
                links.append(f'<a class="{word}" rel="{word[:4]}" href="{address}">{titled(page.title)}</a>')
        return "".join(links)

    # ---------------------------------------------------------------- links

    def link(self, page: Page, target: str) -> str:
        """Where a link of the Markdown leads on the site."""
        if re.match(r"[a-z]+:", target):
            return target
        path, _, anchor = target.partition("#")
        if not path:
            self.links.append((page, page.address, anchor))
            return target
        found = (page.path.parent / path).resolve()
        if found in self.at:
            other = self.at[found]
            self.links.append((page, other.address, anchor))
            return (page.up or "./") + other.address + (f"#{anchor}" if anchor else "")
        for folder in (ROOT / "docs" / "assets", ROOT / "examples"):
            if found.is_relative_to(folder) and found.is_file():
                return f"{page.up}{folder.name}/{found.relative_to(folder)}"
        raise BrokenLinkError(f"{page.path.relative_to(ROOT)}: {target} is no page of the site")

    def check_links(self) -> None:
        for page, address, anchor in self.links:
            if anchor and anchor not in self.anchors[address]:
                raise BrokenLinkError(
                    f"{page.path.relative_to(ROOT)}: there is no heading {anchor} in {address or 'index'}"
                )

    # ---------------------------------------------------------------- what is beside the pages

    def write_walk(self) -> None:
        (self.folder / "walk").mkdir()
        (self.folder / "walk" / "index.html").write_text(play.page(site="../"), encoding="utf-8", newline="\n")

    def write_python(self) -> None:
        """Python in WebAssembly as it came, gradwalk's sources as one archive, and the memory of both after the start.

        The archive is the same for the same files, and the memory is called by its hash: they belong together.
        """
        folder = self.folder / "python"
        folder.mkdir()
        for name in PYTHON:
            shutil.copyfile(package("pyodide") / name, folder / name)
        with zipfile.ZipFile(folder / "gradwalk.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted((ROOT / "src" / "gradwalk").rglob("*")):
                inside = path.relative_to(ROOT / "src")
                if path.suffix in (".py", ".txt", ".css", ".js", ".html") and inside.parts[1] not in LEFT_OUT:
                    archive.writestr(zipfile.ZipInfo(str(inside)), path.read_bytes(), zipfile.ZIP_DEFLATED)
        digest = hashlib.sha256((folder / "gradwalk.zip").read_bytes()).hexdigest()[:16]
        command = ["node", str(HERE / "started.mjs"), str(folder.resolve()), str(folder / f"{STARTED}{digest}.bin")]
        subprocess.run(command, check=True)
        sizes = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
        (folder / "sizes.json").write_text(json.dumps(sizes), encoding="utf-8")

    def write_service_worker(self) -> None:
        """The worker that keeps the site for later; its version is a hash of all that it keeps."""
        files = sorted(path for path in self.folder.rglob("*") if path.is_file() and not path.name.startswith(STARTED))
        total = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]
        kept = [str(path.relative_to(self.folder)) for path in files if path.name not in PYTHON]
        kept = [f"./{name.removesuffix('index.html')}" for name in kept]
        text = (HERE / "service-worker.js").read_text(encoding="utf-8")
        text = text.replace('"{{version}}"', json.dumps(total)).replace('["{{files}}"]', json.dumps(kept))
        text = text.replace('"{{python}}"', json.dumps(package("pyodide").name))
        (self.folder / "service-worker.js").write_text(text, encoding="utf-8", newline="\n")


def main() -> None:
    began = time.monotonic()
    folder = Path(sys.argv[1])
    site = Site(folder)
    site.build()
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{folder}: {len(site.pages)} pages, {size / 1e6:.1f} MB, in {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main()
