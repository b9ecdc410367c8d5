"""This interpreter is made to look as `python` starts it, and given over to the script."""

from __future__ import annotations

import builtins
import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib.machinery import SourceFileLoader
from types import FrameType, ModuleType
from typing import Any

from gradwalk.run.modules import compile_offering, install

# what python has imported before it runs a script: one of that name beside the script is never found
AT_START = {"abc", "codecs", "encodings", "genericpath", "io", "ntpath", "os", "posixpath", "site", "stat", "zipimport"}


def start(settings: set[str], target: str, arguments: Sequence[str]) -> None:
    """Run the script; what it raises is raised as if there were nothing below it."""
    if not getattr(sys.flags, "safe_path", False):  # from Python 3.11 on
        del sys.path[0]  # the folder of the command, or the one that python -m looks into
    try:
        if "report" in settings:
            from gradwalk.run.report import begin

            begin()
        script = prepare(settings, target, arguments)
        sys.setrecursionlimit(sys.getrecursionlimit() + recursion_below())
        script()
    except BaseException:
        hide_frames_below()
        raise


def recursion_below() -> int:
    """How much of the recursion limit is used up below the script: by frames and, before Python 3.12, by exec."""
    frames = list(frames_from(sys._getframe(1)))
    of_exec = 1 + any(frame.f_code.co_name == "_run_code" for frame in frames)  # the script's, and python -m's
    return len(frames) + 1 + (of_exec if sys.version_info < (3, 12) else 0)  # and the function that runs the script


def prepare(settings: set[str], target: str, arguments: Sequence[str]) -> Callable[[], None]:
    """Make this interpreter look as python starts it; returns what runs the script."""
    keep_class = "keep" in settings
    main = sys.modules["__main__"] = ModuleType("__main__")
    if "__mp_main__" in sys.modules:  # multiprocessing was imported at start-up, and workers' objects come back as its
        sys.modules["__mp_main__"] = main
    main.__dict__.update(__builtins__=builtins)
    if sys.version_info < (3, 14):
        main.__annotations__ = {}
    is_notebook = "module" not in settings and target.endswith(".ipynb") and not os.path.isdir(target)
    install(keep_class, is_notebook)
    safe_path = getattr(sys.flags, "safe_path", False)
    if "module" in settings:
        sys.argv = ["-m", *arguments]
        sys.orig_argv = [sys.orig_argv[0], "-m", target, *arguments]
        if not safe_path:
            sys.path.insert(0, os.getcwd())
            find_own_modules(os.getcwd())
        return lambda: run_module(target)
    sys.argv = [target, *arguments]
    sys.orig_argv = [sys.orig_argv[0], *sys.argv]
    path = os.path.join(os.getcwd(), target)  # not normalised: python does not either
    if os.path.isdir(path) or is_zip(path):
        sys.path.insert(0, path)
        find_own_modules(path)
        return lambda: run_module("__main__")
    if is_notebook:
        from gradwalk.run.notebook import Notebook  # what reads it takes no module beside it for Python's

        notebook = Notebook(path, main.__dict__, keep_class)
        find_beside(path)
        return notebook.run
    try:
        with io.open_code(path) as file:
            source = file.read()
    except OSError as error:
        what = f"[Errno {error.errno}] {error.strerror}"
        print(f"{sys.executable}: can't open file {path!r}: {what}", file=sys.stderr)
        sys.exit(2)
    find_beside(path)
    try:
        code = compile(source, path, "exec", dont_inherit=True) if keep_class else compile_offering(source, path)
    except SyntaxError:
        if os.name == "nt":
            raise
        os.execv(sys.executable, sys.orig_argv)  # python reads a file by the line, and words some errors otherwise
    main.__dict__.update(__cached__=None, __file__=path, __loader__=SourceFileLoader("__main__", path))
    return lambda: exec(code, main.__dict__)


def is_zip(path: str) -> bool:
    if path.endswith((".py", ".ipynb")) or not os.path.isfile(path):
        return False
    import zipfile

    return zipfile.is_zipfile(path)


def run_module(name: str) -> None:
    """`python -m NAME`, and for `__main__` a folder or zip file that is first on the path."""
    import runpy

    runpy._run_module_as_main(name, alter_argv=name != "__main__")  # type: ignore[attr-defined]


def hide_frames_below() -> None:
    """Have the traceback that ends this interpreter start at the script, whatever sys.excepthook is by now."""
    hook = sys.excepthook
    below, own = list(frames_from(sys._getframe(1))), os.path.dirname(__file__)

    def excepthook(kind: Any, error: Any, traceback: Any) -> Any:
        sys.excepthook = hook
        while traceback and (
            traceback.tb_frame in below or os.path.dirname(traceback.tb_frame.f_code.co_filename) == own
        ):
            traceback = traceback.tb_next
        sys.last_traceback = traceback
        return hook(kind, error.with_traceback(traceback), traceback)

    sys.excepthook = excepthook


def frames_from(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def find_beside(path: str) -> None:
    """Have modules beside the script found."""
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, os.path.dirname(os.path.realpath(path)))
        find_own_modules(sys.path[0])


def find_own_modules(folder: str) -> None:
    """Have a module beside the script found, also where gradwalk has imported one of that name already."""
    with suppress(OSError):
        for name in os.listdir(folder):
            name = name.partition(".")[0]
            if name in sys.stdlib_module_names and name not in AT_START and name not in sys.builtin_module_names:
                sys.modules.pop(name, None)
