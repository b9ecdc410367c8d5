"""Compiles the engine for systems that are not this one, and in ways that are not the usual: no warning, no error.

zig, from PyPI, brings the C libraries of all of them. What Python would say of such a system is in builds/pyconfig.h.
Nothing is linked, and nothing runs: that is for the machines in .github/workflows.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGETS = [
    "x86_64-linux-gnu.2.28",
    "x86_64-linux-gnu.2.43",  # the first that declares call_once
    "aarch64-linux-gnu.2.28",
    "x86_64-linux-musl",
    "x86_64-windows-gnu",
    "aarch64-macos",
    "x86_64-macos",
]
FLAGS = ["-O0", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-fno-math-errno", "-fvisibility=hidden", "-fPIC"]


def compiled(what: str, command: list[str], folder: str) -> bool:
    """Whether it compiles; what the compiler says is shown."""
    source = [f"-I{folder}", "-Isrc/gradwalk/native", "-c", "src/gradwalk/native/one_unit.c", "-o", f"{folder}/unit.o"]
    done = subprocess.run([*command, *FLAGS, *source], cwd=ROOT, check=False)
    print(f"{what}: {'compiles' if done.returncode == 0 else 'FAILS'}", flush=True)
    return done.returncode == 0


with tempfile.TemporaryDirectory() as folder:
    shutil.copytree(sysconfig.get_path("include"), folder, dirs_exist_ok=True)
    ways = [
        (f"{compiler} {standard}", [compiler, f"-std={standard}"])
        for compiler in ("gcc", "clang")
        for standard in ("c11", "c2x")  # as older compilers spell c23
        if shutil.which(compiler)
    ]
    results = [compiled(what, command, folder) for what, command in ways]
    shutil.copy(ROOT / "tools/builds/pyconfig.h", folder)
    zig = [sys.executable, "-m", "ziglang", "cc", "-std=c11"]
    results += [compiled(target, [*zig, "-target", target], folder) for target in TARGETS]
sys.exit(not all(results))
