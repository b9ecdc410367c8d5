"""The interpreter of the script: made to look as `python` starts it, then given over.

`python start.py SETTINGS TARGET ARGUMENTS...`; see __init__.py for who starts it.
"""

from __future__ import annotations

import sys

if __name__ == "__main__" and not getattr(sys.flags, "safe_path", False):
    del sys.path[0]  # the folder of this file, whose modules are none of the script's

import builtins
import io
import os
from collections.abc import Callable, Sequence
from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import Any

from gradwalk.run.modules import compile_offering, install


def prepare(settings: set[str], target: str, arguments: Sequence[str]) -> Callable[[], None]:
    """Make this interpreter look as python starts it; returns what runs the script."""
    keep_class = "keep" in settings
    main = sys.modules["__main__"] = ModuleType("__main__")
    main.__dict__.update(__builtins__=builtins)
    if sys.version_info < (3, 14):
        main.__annotations__ = {}
    install(keep_class)
    safe_path = getattr(sys.flags, "safe_path", False)  # from Python 3.11 on
    if "module" in settings:
        sys.argv = ["-m", *arguments]
        sys.orig_argv = [sys.orig_argv[0], "-m", target, *arguments]
        if not safe_path:
            sys.path.insert(0, os.getcwd())
        return lambda: run_module(target)
    sys.argv = [target, *arguments]
    sys.orig_argv = [sys.orig_argv[0], *sys.argv]
    path = os.path.join(os.getcwd(), target)  # not normalised: python does not either
    if os.path.isdir(path) or is_zip(path):
        sys.path.insert(0, path)
        return lambda: run_module("__main__")
    try:
        with io.open_code(path) as file:
            source = file.read()
    except OSError as error:
        what = f"[Errno {error.errno}] {error.strerror}"
        print(f"{sys.executable}: can't open file {path!r}: {what}", file=sys.stderr)
        sys.exit(2)
    if not safe_path:
        sys.path.insert(0, os.path.dirname(os.path.realpath(path)))
    if target.endswith(".ipynb"):
        from gradwalk.run.notebook import Notebook

        return Notebook(path, source, main.__dict__, keep_class).run
    try:
        code = compile(source, path, "exec", dont_inherit=True) if keep_class else compile_offering(source, path)
    except SyntaxError:
        if os.name != "nt":  # python reads a file by the line, and words some errors differently for that
            os.execv(sys.executable, sys.orig_argv)
        raise
    main.__dict__.update(__cached__=None, __file__=path, __loader__=SourceFileLoader("__main__", path))
    return lambda: exec(code, main.__dict__)


def is_zip(path: str) -> bool:
    import zipfile

    return os.path.isfile(path) and not path.endswith((".py", ".ipynb")) and zipfile.is_zipfile(path)


def run_module(name: str) -> None:
    """`python -m NAME`, and for `__main__` a folder or zip file that is first on the path."""
    import runpy

    runpy._run_module_as_main(name, alter_argv=name != "__main__")  # type: ignore[attr-defined]


def hide_own_frames() -> None:
    """Have the traceback that ends this interpreter start at the script, whatever sys.excepthook is by now."""
    hook = sys.excepthook

    def excepthook(kind: Any, error: Any, traceback: Any) -> Any:
        sys.excepthook = hook
        own = os.path.dirname(__file__)
        while traceback and os.path.dirname(traceback.tb_frame.f_code.co_filename) == own:
            traceback = traceback.tb_next
        sys.last_traceback = traceback
        return hook(kind, error.with_traceback(traceback), traceback)

    sys.excepthook = excepthook


if __name__ == "__main__":
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the command line has said already which engine is missing
        from gradwalk.run.start import hide_own_frames, prepare

    try:
        settings = set(sys.argv[1].split(","))
        if "report" in settings:
            from gradwalk.run.report import begin

            begin()
        script = prepare(settings, sys.argv[2], sys.argv[3:])
        # room for what is below the script on the stack: this frame, the lambda and, before 3.12, the call of exec
        sys.setrecursionlimit(sys.getrecursionlimit() + (2 if sys.version_info >= (3, 12) else 3))
        script()
    except BaseException:
        hide_own_frames()
        raise
