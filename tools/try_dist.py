"""Installs everything in dist/ in an empty environment, with and without a compiler, and runs the README there.

`make dist` does it last. A source distribution without a compiler, and the pure wheel, run on the reference engine.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMMANDS = [["doctor"], ["trace", "relu(a*b + d)", "a=2", "b=-3", "d=10"], ["train", "--steps", "5"]]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```\n```text\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def tried(file: Path, compiler: bool) -> str:
    """The engine that it runs on; the README prints what it promises, or this fails."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        programs = Path(folder, "Scripts" if os.name == "nt" else "bin")
        environment = {name: text for name, text in os.environ.items() if not name.startswith(("GRADWALK", "PYTHON"))}
        if not compiler:
            environment["CC"] = str(Path(folder, "no-such-compiler"))

        def run(*command: str) -> str:
            process = subprocess.run(
                [programs / command[0], *command[1:]], cwd=folder, env=environment, capture_output=True, text=True
            )
            if process.returncode:
                sys.exit(f"{file.name}: {' '.join(command)}: {process.stdout}{process.stderr}")
            return process.stdout

        run("pip", "install", "--quiet", str(file))
        for code, promised in BLOCKS:  # each pasted alone
            said = run("python", "-c", code)
            if said != promised:
                sys.exit(f"{file.name}: the README promises\n{promised}\nand it printed\n{said}")
        for command in COMMANDS:
            run("gradwalk", *command)
        return run("python", "-c", "import gradwalk.engine; print(gradwalk.engine.NAME)").strip()


for file in sorted((ROOT / "dist").iterdir()):
    pure, source = file.name.endswith("-none-any.whl"), file.suffix == ".gz"
    for compiler in (True, False):
        engine = tried(file, compiler)
        print(f"{file.name}, {'with' if compiler else 'without'} a compiler: the README runs on the {engine} engine")
        if engine != ("reference" if pure or (source and not compiler) else "native"):
            sys.exit(f"expected the other engine for {file.name}")
