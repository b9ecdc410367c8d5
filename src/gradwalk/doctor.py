"""`gradwalk doctor`: which engine is active and why, and what this machine has that gradwalk can use.

`report()` gathers it as plain data; `as_json()` and `show()` are two ways to read it. Nothing is changed or fetched.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from importlib import metadata
from typing import Any

from gradwalk import engine
from gradwalk._version import __version__

# what `pip install gradwalk` brings, and what each extra adds
PACKAGES = {
    "core": ("click", "numpy", "rich", "safetensors"),
    "draw": ("pygraphviz",),
    "notebook": ("anywidget",),
    "science": ("scipy",),
}
PURPOSES = {"draw": "pictures of graphs", "notebook": "notebooks", "science": "SciPy"}
CPU_FEATURES = ("sse4_2", "avx", "avx2", "fma", "avx512f", "avx512dq", "asimd", "sve")


def report() -> dict[str, Any]:
    """Everything the doctor knows, ready for JSON.

    >>> report()["self_test"]["passed"]
    True
    """
    return {
        "gradwalk": __version__,
        "python": {
            "version": platform.python_version(),
            "implementation": platform.python_implementation(),
            "executable": sys.executable,
            "global_lock": global_lock(),
        },
        "engine": {"name": engine.NAME, "reason": engine.REASON},
        "native": native_extension(),
        "compiler": compiler(),
        "cpu": cpu(),
        "packages": packages(),
        "self_test": self_test(),
    }


def native_extension() -> dict[str, Any]:
    """Whether the native engine can be imported, and from which file."""
    try:
        module = engine.load("native")
    except ImportError as error:
        return {"available": False, "file": None, "error": str(error), "build_failure": engine.build_failure()}
    return {"available": True, "file": module.__file__, "error": None, "build_failure": ""}


def global_lock() -> str:
    """Of a free-threaded Python: whether its threads take turns all the same, and why. Empty for any other."""
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        return ""
    if not sys._is_gil_enabled():  # type: ignore[attr-defined,unused-ignore]
        return "off"
    return "on: threads take turns, but for compiled functions; the native engine has no locks of its own"


def compiler() -> dict[str, Any]:
    """The C compiler that a build of the native engine would use, and what it calls itself."""
    configured = os.environ.get("CC") or sysconfig.get_config_var("CC") or ""
    candidates = [*configured.split()[:1], "cc", "gcc", "clang", *(["cl"] if os.name == "nt" else [])]
    file = next((found for found in map(shutil.which, candidates) if found), None)
    advice = None if file else f"{how_to_get_a_compiler()}, then: {engine.REINSTALL}"
    return {"file": file, "version": version_line(file) if file else None, "advice": advice}


def how_to_get_a_compiler() -> str:
    if sys.platform == "darwin":
        return "xcode-select --install"
    if sys.platform == "win32":
        return "install the Visual Studio Build Tools (C++ workload)"
    return "install gcc or clang with the system's package manager (Debian, Ubuntu: apt install gcc python3-dev)"


def version_line(file: str) -> str | None:
    """The first line of `COMPILER --version`; None where it does not say."""
    try:
        answer = subprocess.run([file, "--version"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = (answer.stdout or answer.stderr).strip().splitlines()
    return lines[0] if lines else None


def cpu() -> dict[str, Any]:
    """The processor's architecture and, where Linux tells, which of the vector features it has; the kernels in use."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            flags = next(
                (set(line.partition(":")[2].split()) for line in file if line[:5].lower() in FLAG_LINES), set()
            )
    except OSError:
        flags = set()
    try:
        native = engine.load("native")
        kernels = {"used": native.KERNELS, "here": native.KERNELS_HERE}
    except ImportError:
        kernels = None
    features = [feature for feature in CPU_FEATURES if feature in flags]
    return {"machine": platform.machine(), "features": features, "kernels": kernels}


FLAG_LINES = ("flags", "featu")  # "flags" on x86, "Features" on ARM


def packages() -> list[dict[str, Any]]:
    """Each package gradwalk can use: its version, or the command that installs it."""
    rows = []
    for extra, names in PACKAGES.items():
        for name in names:
            try:
                version = metadata.version(name)
            except metadata.PackageNotFoundError:
                version = None
            command = f"pip install {name}" if extra == "core" else f"pip install 'gradwalk[{extra}]'"
            rows.append({"name": name, "extra": extra, "version": version, "install": None if version else command})
    return rows


def self_test() -> dict[str, Any]:
    """relu(a*b + d) at 2, -3, 10, forward and backward, on the active engine."""
    expected = [4.0, -3.0, 2.0]
    a, b, d = engine.Value(2.0), engine.Value(-3.0), engine.Value(10.0)
    out = (a * b + d).relu()
    out.backward()
    got = [out.data, a.grad, b.grad]
    return {"passed": got == expected, "expected": expected, "got": got}


def as_json() -> str:
    return json.dumps(report(), indent=2)


def lines(found: dict[str, Any]) -> list[tuple[str, str, bool | None]]:
    """The report as rows to read: what, the finding, and whether it is as it should be; None for what is optional."""
    python, native, cc, test = found["python"], found["native"], found["compiler"], found["self_test"]
    features = " ".join(found["cpu"]["features"])
    kernels = found["cpu"]["kernels"]
    advice = f"run: {engine.REINSTALL}" if cc["file"] else "it needs a C compiler"
    rows: list[tuple[str, str, bool | None]] = [
        ("gradwalk", found["gradwalk"], True),
        ("python", f"{python['version']} ({python['implementation']}), {python['executable']}", True),
        *([("global lock", python["global_lock"], True)] if python["global_lock"] else []),
        ("engine", f"{found['engine']['name']}: {found['engine']['reason']}", True),
        ("native engine", native["file"] or f"not built ({native['error']}); {advice}", native["available"]),
        *[("the compiler said", line, False) for line in excerpt(native["build_failure"])],
        # once the native engine is there, nothing needs the compiler
        ("C compiler", compiler_line(cc), bool(cc["file"]) or (None if native["available"] else False)),
        ("processor", f"{found['cpu']['machine']} {features}".rstrip(), True),
        *([("kernels", kernels_line(kernels), True)] if kernels else []),
    ]
    for package in found["packages"]:
        name, extra, version = package["name"], package["extra"], package["version"]
        if extra == "core":
            rows.append((name, version or f"not installed; run: {package['install']}", bool(version)))
        else:
            rows.append(
                (name, version or f"optional, for {PURPOSES[extra]}: {package['install']}", bool(version) or None)
            )
    out, da, db = (f"{number:g}" for number in test["got"])
    verdict = "ok" if test["passed"] else "WRONG: expected 4, -3 and 2; please report this"
    rows.append(("self-test", f"relu(a*b + d) = {out}, its gradients -> a {da}, b {db}: {verdict}", test["passed"]))
    wrong = [what for what, _, state in rows if state is False]
    rows.append(("verdict", f"look at: {', '.join(wrong)}" if wrong else "all is well", not wrong))
    return rows


def excerpt(failure: str) -> list[str]:
    """The lines of the compiler's message that say most: the first errors; else its end."""
    said = failure.splitlines()
    errors = [line for line in said if "error" in line.lower()]
    return (errors or said[-3:])[:3]


def kernels_line(kernels: dict[str, Any]) -> str:
    return f"{kernels['used']}; GRADWALK_KERNELS chooses from {', '.join(kernels['here'])}"


def compiler_line(cc: dict[str, Any]) -> str:
    return f"{cc['file']}: {cc['version'] or 'version unknown'}" if cc["file"] else f"none; {cc['advice']}"


def show() -> None:
    """Print the report: a table on a terminal (plain with NO_COLOR), `what: finding` lines anywhere else."""
    rows = lines(report())
    if not sys.stdout.isatty():
        print("\n".join(f"{what}: {finding}" for what, finding, _ in rows))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    good, bad, optional = "✓✗·" if console.encoding.startswith("utf") else "+x."
    marks = {True: (good, "green"), False: (bad, "bold red"), None: (optional, "dim")}
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for what, finding, state in rows:
        # Text, not markup: 'gradwalk[draw]' would lose its extra; folded, so that a command is never cut off
        table.add_row(Text(*marks[state]), Text(what, "bold"), Text(finding, overflow="fold"))
    console.print(table)
