"""Compiles the engine for systems that are not this one, and in ways that are not the usual: no warning, no error.

zig, from PyPI, brings the C libraries of all of them. What Python would say of such a system is in builds/pyconfig.h.
For Windows it is linked, too, by mingw, which is quicker at it, against all that Python's headers declare. What runs
elsewhere: `make arm64`, and the machines in .github/workflows.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MINGW = "x86_64-w64-mingw32"
TARGETS = [
    "x86_64-linux-gnu.2.28",
    "x86_64-linux-gnu.2.43",  # the first that declares call_once
    "aarch64-linux-gnu.2.28",
    "x86_64-linux-musl",
    "x86_64-windows-gnu",
    "aarch64-macos",
    "x86_64-macos",
]
WAYS = [
    ["gcc", "-std=c11", "-O3"],  # warnings that only come while optimising
    ["gcc", "-std=c2x", "-O0"],  # as older compilers spell c23
    ["clang", "-std=c11", "-O0"],
    ["clang", "-std=c2x", "-O0"],
]
FLAGS = ["-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-fno-math-errno", "-fvisibility=hidden", "-fPIC"]
ZIG = [sys.executable, "-m", "ziglang"]


def succeeds(what: str, command: list[str]) -> bool:
    """What the compiler says is shown."""
    done = subprocess.run(command, cwd=ROOT, check=False)
    print(f"{what}: {'ok' if done.returncode == 0 else 'FAILS'}", flush=True)
    return done.returncode == 0


def compiled(command: list[str], folder: str) -> bool:
    source = [f"-I{folder}", "-Isrc/gradwalk/native", "-c", "src/gradwalk/native/one_unit.c", "-o", f"{folder}/unit.o"]
    return succeeds(" ".join(command).removeprefix(" ".join(ZIG)), [*command, *FLAGS, *source])


def linked_for_windows(folder: str) -> bool:
    """What was compiled last, against a stand-in for Python's own library: every name that its headers declare."""
    headers = "".join(path.read_text(encoding="utf-8") for path in Path(folder).rglob("*.h"))
    names = re.findall(r"PyAPI_(FUNC|DATA)\([^)]*\)\s*\(?\**\s*(\w+)", headers)
    lines = {f"{name} DATA" if kind == "DATA" else name for kind, name in names}
    lines |= {*re.findall(r"#define Py\w+\s+(_Py\w+_SizeT)", headers)}  # what some of them are called in truth
    Path(folder, "python.def").write_text("LIBRARY python.dll\nEXPORTS\n" + "\n".join(sorted(lines)))
    library = [f"{MINGW}-dlltool", "-d", f"{folder}/python.def", "-l", f"{folder}/libpython.a"]
    module = ["-shared", f"{folder}/unit.o", f"-L{folder}", "-lpython", "-o", f"{folder}/_native.pyd"]
    return succeeds("Python's names as a library", library) and succeeds("linked", [f"{MINGW}-gcc", *module])


with tempfile.TemporaryDirectory() as folder:
    shutil.copytree(sysconfig.get_path("include"), folder, dirs_exist_ok=True)
    results = [compiled(way, folder) for way in WAYS]
    shutil.copy(ROOT / "tools/builds/pyconfig.h", folder)
    results.append(compiled([f"{MINGW}-gcc", "-std=c11", "-O0"], folder) and linked_for_windows(folder))
    for target in TARGETS:
        results.append(compiled([*ZIG, "cc", "-target", target, "-std=c11", "-O0", "-fno-sanitize=undefined"], folder))
sys.exit(not all(results))
