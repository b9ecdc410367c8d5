"""`gradwalk doctor`: what it reports, to people and to programs."""

from __future__ import annotations

import io
import json
import platform
import shutil
import sys
from importlib import metadata
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from gradwalk import cli, doctor, engine
from gradwalk._version import __version__

NATIVE = {"available": True, "file": "native.so", "error": None, "build_failure": ""}


def run(*arguments):
    return CliRunner().invoke(cli.main, ["doctor", *arguments])


def states():
    return {what: state for what, _, state in doctor.lines(doctor.report())}


def test_report_is_json():
    """--json prints one object, with the versions in it."""
    found = json.loads(run("--json").output)
    assert (__version__, platform.python_version()) == (found["gradwalk"], found["python"]["version"])


def test_exit_status_is_zero():
    """The doctor reports; what it finds is not a failure."""
    assert run().exit_code == 0


def test_active_engine_and_its_reason():
    """The engine is named together with why it is the one."""
    assert f"engine: {engine.NAME}: {engine.REASON}\n" in run().output


def test_kernels_in_use_are_named():
    """With those that GRADWALK_KERNELS could choose."""
    native = engine.load("native")
    assert native.KERNELS in native.KERNELS_HERE
    assert native.KERNELS_HERE[-1] == "baseline"
    choices = ", ".join(native.KERNELS_HERE)
    assert f"kernels: {native.KERNELS}; GRADWALK_KERNELS chooses from {choices}\n" in run().output


def test_global_lock_of_a_free_threaded_python_is_explained(monkeypatch):
    """Where threads could run at once, the report says whether they do, and why not; elsewhere nothing."""
    monkeypatch.setattr("sysconfig.get_config_var", lambda name: {"Py_GIL_DISABLED": 1}.get(name, ""))
    monkeypatch.setattr("sys._is_gil_enabled", lambda: True, raising=False)
    assert "global lock: on: threads take turns, but for compiled functions; " in run().output
    monkeypatch.setattr("sys._is_gil_enabled", lambda: False, raising=False)
    assert "global lock: off\n" in run().output
    assert states()["global lock"] is True
    monkeypatch.setattr("sysconfig.get_config_var", lambda _name: None)
    assert "global lock" not in run().output


def test_native_extension_is_named_by_its_file():
    """Where the native engine is there, the file that it comes from is shown."""
    try:
        file = engine.load("native").__file__
    except ImportError:
        pytest.skip("the native engine is not built here")
    assert {"available": True, "file": file, "error": None, "build_failure": ""} == doctor.native_extension()


def test_missing_native_extension_is_said(monkeypatch):
    """Without the native engine the report has the import's own words."""

    def fail(_name):
        raise ImportError("no such file")

    monkeypatch.setattr(engine, "load", fail)
    assert "native engine: not built (no such file); " in run().output
    assert states()["native engine"] is False


def test_missing_compiler_comes_with_advice(monkeypatch):
    """Without a C compiler the report says how to get one and how to build again."""
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    line = next(line for line in run().output.splitlines() if line.startswith("C compiler: "))
    assert line.startswith("C compiler: none; ")
    assert line.endswith("pip install --force-reinstall --no-cache-dir --no-binary gradwalk gradwalk")


@pytest.mark.parametrize(
    ("platform", "advice"),
    [("darwin", "xcode-select --install"), ("linux", "apt install gcc"), ("win32", "Visual Studio Build Tools")],
)
def test_advice_is_for_this_system(monkeypatch, platform, advice):
    """Each system has its own way to a C compiler."""
    monkeypatch.setattr(sys, "platform", platform)
    assert advice in doctor.how_to_get_a_compiler()


def test_what_the_compiler_said_is_kept(monkeypatch, tmp_path):
    """A build that failed left its words in a file; they are shown where the engine is missing."""

    def fail(_name):
        raise ImportError("no such file")

    (tmp_path / "build_failure.txt").write_text("error: Python.h not found\n", encoding="utf-8")
    monkeypatch.setattr(engine, "load", fail)
    monkeypatch.setattr(engine, "__file__", str(tmp_path / "engine.py"))
    assert "the compiler said: error: Python.h not found\n" in run().output
    assert states()["the compiler said"] is False


def test_a_system_that_does_not_list_its_features(monkeypatch):
    """Without /proc/cpuinfo the processor is named, and its kernels."""

    def fail(*_, **__):
        raise FileNotFoundError

    monkeypatch.setattr(doctor, "open", fail, raising=False)
    found = doctor.cpu()
    assert (found["machine"], found["features"], found["kernels"] is None) == (platform.machine(), [], False)


@pytest.mark.parametrize(
    ("said", "features"),
    [
        ("processor\t: 0\nflags\t\t: fpu avx2 sse4_2 avx512bw\nflags\t\t: sve\n", ["sse4_2", "avx2"]),
        ("processor\t: 0\nFeatures\t: fp asimd\n", ["asimd"]),
        ("processor\t: 0\n", []),
    ],
    ids=["x86", "ARM", "neither"],
)
def test_vector_features_are_those_that_linux_lists(monkeypatch, said, features):
    """Of the first processor, and only those that kernels are written for."""
    monkeypatch.setattr(doctor, "open", lambda *_, **__: io.StringIO(said), raising=False)
    assert features == doctor.cpu()["features"]


@pytest.mark.parametrize(
    ("failure", "shown"),
    [
        ("", []),
        ("one\ntwo\nthree\nfour", ["two", "three", "four"]),
        ("a\nb\nx.c: Error: 1\nc\nerror 2\nd\nerror 3\nerror 4\ne", ["x.c: Error: 1", "error 2", "error 3"]),
    ],
    ids=["nothing", "its end", "errors"],
)
def test_of_what_the_compiler_said_three_lines_are_shown(failure, shown):
    """The first errors, or else the end."""
    assert shown == doctor.excerpt(failure)


@pytest.mark.parametrize(
    ("out", "err", "line"),
    [("cc 1.0\nand more\n", "warning", "cc 1.0"), ("", "cl 2.0\nusage", "cl 2.0"), ("", "\n", None)],
    ids=["stdout", "stderr", "silent"],
)
def test_version_of_the_compiler(monkeypatch, out, err, line):
    """The first line of what it says, wherever it says it."""
    monkeypatch.setattr(doctor.subprocess, "run", lambda *_, **__: SimpleNamespace(stdout=out, stderr=err))
    assert line == doctor.version_line("cc")


def test_compiler_that_fails_on_being_asked(tmp_path):
    """What it says is shown all the same."""
    script = tmp_path / "cc"
    script.write_text("#!/bin/sh\necho 'cc: unknown option' >&2\nexit 1\n")
    script.chmod(0o755)
    assert doctor.version_line(str(script)) == "cc: unknown option"


@pytest.mark.parametrize(
    ("variable", "pythons", "there", "file"),
    [
        ("mycc -O2", None, {"mycc", "cc"}, "/bin/mycc"),
        ("mycc -O2", None, {"cc", "gcc"}, "/bin/cc"),
        ("mycc", "theirs -pthread", {"mycc", "theirs"}, "/bin/mycc"),
        ("", "theirs -pthread", {"theirs", "cc"}, "/bin/theirs"),
        ("", None, {"clang"}, "/bin/clang"),
    ],
    ids=["CC", "CC is missing", "CC before Python's", "Python's", "clang"],
)
def test_which_compiler_a_build_would_use(monkeypatch, variable, pythons, there, file):
    """The one of CC, else of Python's own build, else whichever is there."""
    monkeypatch.setenv("CC", variable)
    monkeypatch.setattr("sysconfig.get_config_var", lambda _name: pythons)
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}" if name in there else None)
    monkeypatch.setattr(doctor, "version_line", lambda file: "1.0")
    assert doctor.compiler() == {"file": file, "version": "1.0", "advice": None}


@pytest.mark.parametrize(("system", "file"), [("posix", None), ("nt", "/bin/cl")])
def test_what_is_called_cl_is_a_compiler_on_windows_only(monkeypatch, system, file):
    """Elsewhere it may be anything, such as a Lisp."""
    monkeypatch.setattr(doctor.os, "name", system)
    monkeypatch.setattr(shutil, "which", lambda name: "/bin/cl" if name == "cl" else None)
    monkeypatch.setattr(doctor, "version_line", lambda file: "1.0")
    assert file == doctor.compiler()["file"]


@pytest.mark.parametrize(
    ("available", "verdict"), [(True, "all is well"), (False, "look at: native engine, C compiler")]
)
def test_who_needs_a_compiler(monkeypatch, available, verdict):
    """Nobody, once the native engine is there."""
    native = NATIVE if available else {**NATIVE, "available": False, "file": None, "error": "no"}
    monkeypatch.setattr(doctor, "native_extension", lambda: native)
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    assert run().output.endswith(f"verdict: {verdict}\n")


def test_compiler_that_does_not_start(monkeypatch):
    """A compiler that cannot be asked for its version is still named."""
    monkeypatch.setattr(shutil, "which", lambda _name: "/no/such/compiler")
    assert doctor.compiler() == {"file": "/no/such/compiler", "version": None, "advice": None}


def test_missing_extra_comes_with_its_command(monkeypatch):
    """An extra that is not installed is shown with the command that installs it, brackets and all."""
    monkeypatch.setitem(doctor.PACKAGES, "draw", ("no-such-package",))
    assert "no-such-package: optional, for pictures of graphs: pip install 'gradwalk[draw]'\n" in run().output
    assert states()["no-such-package"] is None


def test_missing_extra_is_no_fault(monkeypatch):
    """What is optional does not change the verdict."""
    monkeypatch.setattr(doctor, "native_extension", lambda: NATIVE)
    monkeypatch.setitem(doctor.PACKAGES, "draw", ("no-such-package",))
    assert run().output.endswith("verdict: all is well\n")


def test_verdict_names_what_is_wrong(monkeypatch):
    """The last line says where to look."""
    monkeypatch.setattr(doctor, "native_extension", lambda: NATIVE)
    monkeypatch.setitem(doctor.PACKAGES, "core", ("click", "no-such-package"))
    assert run().output.endswith("verdict: look at: no-such-package\n")
    assert "no-such-package: not installed; run: pip install no-such-package\n" in run().output


def test_installed_package_is_shown_with_its_version():
    """A package that is there is shown with its version, and nothing to do."""
    click = next(package for package in doctor.packages() if package["name"] == "click")
    assert click["install"] is None
    assert f"click: {metadata.version('click')}\n" in run().output


@pytest.mark.parametrize("extra", ["core", "draw"])
def test_what_is_there_is_as_it_should_be(monkeypatch, extra):
    """Whether it has to be there or may be."""
    monkeypatch.setitem(doctor.PACKAGES, extra, ("click",))
    monkeypatch.setattr(doctor, "compiler", lambda: {"file": "cc", "version": "1.0", "advice": None})
    assert (states()["click"], states()["C compiler"]) == (True, True)


def test_self_test_runs_on_the_active_engine():
    """relu(a*b + d) at 2, -3, 10 and two of its gradients, computed and judged."""
    assert "self-test: relu(a*b + d) = 4, its gradients -> a -3, b 2: ok\n" in run().output


def test_failing_self_test_is_said(monkeypatch):
    """An engine that computes something else is found out."""
    monkeypatch.setattr(doctor, "self_test", lambda: {"passed": False, "expected": [4, -3, 2], "got": [4, 0, 2]})
    assert "a 0, b 2: WRONG" in run().output


@pytest.mark.parametrize("no_color", [False, True])
def test_colour_on_a_terminal_only_without_no_color(monkeypatch, capsys, no_color):
    """On a terminal the marks are coloured, unless NO_COLOR is set."""
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    if no_color:
        monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    doctor.show()
    assert no_color is ("\x1b[32m" not in capsys.readouterr().out)


def test_table_on_a_terminal(monkeypatch, capsys):
    """A mark before each line: what is well, what is not, what is optional."""
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    rows = [("engine", "native", True), ("numpy", "none", False), ("scipy", "optional", None)]
    monkeypatch.setattr(doctor, "lines", lambda _found: rows)
    doctor.show()
    shown = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert shown == ["✓  engine  native", "✗  numpy   none", "·  scipy   optional"]


def test_terminal_keeps_the_brackets_of_an_extra(monkeypatch, capsys):
    """The table on a terminal shows 'gradwalk[draw]' whole, not read as markup."""
    monkeypatch.setitem(doctor.PACKAGES, "draw", ("no-such-package",))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    doctor.show()
    assert "pip install 'gradwalk[draw]'" in capsys.readouterr().out
