"""axe-core, which knows what a page must have for everybody to use it; fetched by npm once, into build/."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from chromium import Tab

VERSION = "4.14.0"
KEPT = Path(__file__).resolve().parents[2] / "build" / f"axe-core-{VERSION}.min.js"


def source() -> str:
    if not KEPT.exists():
        npm = shutil.which("npm")
        if npm is None:
            raise RuntimeError("axe-core comes through npm, and none was found; run: apt-get install npm")
        KEPT.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=KEPT.parent) as folder:
            command = [npm, "pack", "--silent", f"axe-core@{VERSION}"]
            subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=120)
            with tarfile.open(next(Path(folder).glob("*.tgz"))) as archive:
                found = archive.extractfile("package/axe.min.js")
                assert found is not None
                fetched = Path(folder) / "axe.js"
                fetched.write_bytes(found.read())
            os.replace(fetched, KEPT)  # other workers may be doing the same
    return KEPT.read_text(encoding="utf-8")


def findings(tab: Tab) -> list[str]:
    """What axe-core has to say of the page as it stands, each with the first element it is about."""
    tab.run(f"{source()}; 0")
    found: list[dict[str, Any]] = tab.run("axe.run(document).then((result) => result.violations)")
    return [f"{each['id']}: {each['help']}: {each['nodes'][0]['html'][:200]}" for each in found]
