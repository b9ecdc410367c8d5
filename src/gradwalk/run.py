"""`gradwalk run`: an unmodified script on gradwalk's Value, otherwise as `python SCRIPT` would run it.

A fresh interpreter runs the script, so that nothing of the command line is in its modules or on its stack. There,
every `class Value` gets an outermost decorator, `Offer`, which hands back gradwalk's Value where it can stand in.
"""

from __future__ import annotations

import builtins
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import BuiltinImporter, ModuleSpec, PathFinder, SourceFileLoader, SourcelessFileLoader
from types import CodeType, FunctionType, ModuleType
from typing import Any, NoReturn

# by position, the names under which the two families' constructors take their arguments
CONSTRUCTOR = ({"data"}, {"_children", "children"}, {"_op", "local_grads"}, {"label"})
# how a number is shown or converted is the script's business: its methods win over gradwalk's
SCRIPT_WINS = {"__repr__", "__str__", "__format__", "__float__", "__int__"}
# a class with one of these behaves in a way that gradwalk's Value would not
NOT_REPLACEABLE = ("__eq__", "__new__", "__getattr__", "__getattribute__", "__setattr__", "__delattr__", "__del__")
# what a method may assign on one of gradwalk's Values
ASSIGNABLE = {"data", "grad", "label", "_backward"}
# what a constructor may assign: gradwalk's Value has these as well, whichever engine it comes from
CONSTRUCTED = ASSIGNABLE | {"_children", "_local_grads", "_prev", "_op"}
# a builtin, so that the decorator is found from every module; underscores at both ends, so that it is never mangled
DECORATOR = "__gradwalk_offer__"
WORKER_STARTERS = {f"multiprocessing.popen_{method}" for method in ("spawn_posix", "spawn_win32", "forkserver")}


# ---------------------------------------------------------------- in the interpreter of the command line


def run(script: str, arguments: Sequence[str], keep_class: bool = False) -> NoReturn:
    """Give this process over to the script."""
    command = [sys.executable, __file__, "keep" if keep_class else "replace", script, *arguments]
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name != "nt":
        os.execv(sys.executable, command)
    import subprocess

    process = subprocess.Popen(command)  # execv on Windows lets the shell go on before the script has ended
    while True:
        try:
            sys.exit(process.wait())
        except KeyboardInterrupt:  # the script gets it too, and decides
            continue


# ---------------------------------------------------------------- in the interpreter of the script


def prepare(mode: str, script: str, arguments: Sequence[str]) -> tuple[Callable[..., object], tuple[object, ...]]:
    """Make this interpreter look as `python SCRIPT` starts it; returns what is left to call, and on what."""
    keep_class = mode == "keep"
    safe_path = getattr(sys.flags, "safe_path", False)  # from Python 3.11 on
    sys.argv = [script, *arguments]
    sys.orig_argv = [sys.orig_argv[0], *sys.argv]
    install(keep_class)

    main = sys.modules["__main__"] = ModuleType("__main__")
    main.__dict__.update(__builtins__=builtins, __cached__=None)
    if sys.version_info < (3, 14):
        main.__annotations__ = {}

    if script == "-":
        path, folder, code = "<stdin>", "", compiled(sys.stdin.buffer.read(), "<stdin>", keep_class)
        loader: Any = BuiltinImporter
    else:
        path = os.path.join(os.getcwd(), script)  # not normalised: python does not either
        from pkgutil import get_importer, read_code

        if get_importer(path):  # a folder or a zip file: python, too, leaves it to runpy to find its __main__.py
            import runpy

            sys.path.insert(0, path)
            return runpy._run_module_as_main, ("__main__", False)  # type: ignore[attr-defined]
        import io

        try:
            with io.open_code(path) as file:
                bytecode = read_code(file) if path.endswith(".pyc") else None
                source = b"" if bytecode else file.read()
        except OSError as error:
            what = f"[Errno {error.errno}] {error.strerror}"
            print(f"{sys.executable}: can't open file {path!r}: {what}", file=sys.stderr)
            sys.exit(2)
        folder = os.path.dirname(os.path.realpath(path))
        loader = (SourcelessFileLoader if bytecode else SourceFileLoader)("__main__", path)
        try:
            code = bytecode or compiled(source, path, keep_class)
        except SyntaxError:
            if os.name != "nt":  # python reads a file by the line, and words some errors differently for that
                os.execv(sys.executable, sys.orig_argv)
            raise
    if not safe_path:
        sys.path.insert(0, folder)
    main.__dict__.update(__file__=path, __loader__=loader)
    return exec, (code, main.__dict__)


def install(keep_class: bool, quiet: bool = False) -> None:
    """From here on, imports of micrograd, and classes named Value in the user's own modules, end at gradwalk."""
    import zipimport

    setattr(builtins, DECORATOR, Offer(quiet))
    # right before PathFinder, whose answers it passes on: every other finder keeps its turn
    place = sys.meta_path.index(PathFinder) if PathFinder in sys.meta_path else len(sys.meta_path)
    sys.meta_path.insert(place, Finder(keep_class, quiet))
    if not keep_class:
        zipimport.compile = compile_offering  # type: ignore[attr-defined]


def hide_own_frames() -> None:
    """Have the traceback that ends this interpreter start at the script, whatever sys.excepthook is by now."""
    hook = sys.excepthook

    def excepthook(kind: Any, error: Any, traceback: Any) -> Any:
        sys.excepthook = hook
        while traceback and traceback.tb_frame.f_code.co_filename == __file__:
            traceback = traceback.tb_next
        sys.last_traceback = traceback
        return hook(kind, error.with_traceback(traceback), traceback)

    sys.excepthook = excepthook


def say(message: str) -> None:
    if sys.stderr:
        print(f"gradwalk: {message}", file=sys.stderr, flush=True)


# ---------------------------------------------------------------- source, compiled so that its Value is offered


def compiled(source: bytes, path: str, keep_class: bool) -> CodeType:
    return compile(source, path, "exec", dont_inherit=True) if keep_class else compile_offering(source, path, "exec")


def compile_offering(source: Any, path: str, mode: str, flags: int = 0, dont_inherit: bool = True) -> CodeType:
    """`compile`, with a decorator on every class named Value; lines and columns stay what they are."""
    if mode != "exec" or not mentions_class(source):
        return compile(source, path, mode, flags, dont_inherit)  # type: ignore[no-any-return]
    import ast

    tree = compile(source, path, mode, flags | ast.PyCF_ONLY_AST, dont_inherit)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name == "Value":
            place = node.decorator_list[0] if node.decorator_list else node
            node.decorator_list.insert(0, ast.copy_location(ast.Name(DECORATOR, ast.Load()), place))
    return compile(tree, path, mode, flags, dont_inherit)  # type: ignore[no-any-return]


def mentions_class(source: Any) -> bool:
    return bool(re.search(rb"class\s+Value\b", source.encode() if isinstance(source, str) else source))


# ---------------------------------------------------------------- modules


class Finder(MetaPathFinder):
    """Answers as PathFinder does, but for micrograd, and for the user's own modules that define a Value."""

    def __init__(self, keep_class: bool, quiet: bool) -> None:
        self.keep_class = keep_class
        self.quiet = quiet

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name in WORKER_STARTERS:
            follow_into_workers(self.keep_class)
        spec = PathFinder.find_spec(name, path, target)
        if name == "micrograd" and not self.leaves_micrograd(spec):
            folders = list(spec.submodule_search_locations or ()) if spec else []
            if not self.quiet and any(is_own(folder) and shadowed(folder) for folder in folders):
                say(
                    f"{folders[0]} is not used: micrograd.engine and micrograd.nn are gradwalk's (--keep-class uses it)"
                )
            return ModuleSpec("micrograd", Micrograd(folders), is_package=True)
        if self.keep_class or spec is None or type(spec.loader) is not SourceFileLoader or not is_own(spec.loader.path):
            return spec
        try:
            source = spec.loader.get_data(spec.loader.path)
            if mentions_class(source):
                code = compile_offering(source, spec.loader.path, "exec")
                spec.loader = OfferingLoader(name, spec.loader.path, code)
        except Exception:  # python's own loader then fails in the same way, with the frames it should have
            return spec
        return spec

    def leaves_micrograd(self, spec: ModuleSpec | None) -> bool:
        """A micrograd.py of the user's own is one of their modules; a folder is one only where classes are kept."""
        if spec is None:
            return False
        if spec.submodule_search_locations is None:
            return is_own(spec.origin)
        return self.keep_class and any(
            is_own(folder) and shadowed(folder) for folder in spec.submodule_search_locations
        )


class OfferingLoader(SourceFileLoader):
    """A source file's loader that was given the code; it reads and writes no bytecode cache."""

    def __init__(self, name: str, path: str, code: CodeType) -> None:
        super().__init__(name, path)
        self.code = code

    def get_code(self, fullname: str) -> CodeType | None:
        return self.code


class Micrograd(Loader):
    """The package micrograd, its engine and nn gradwalk's; other submodules come from a real one, if there is one."""

    def __init__(self, folders: list[str]) -> None:
        self.folders = folders

    def exec_module(self, module: Any) -> None:
        from gradwalk import engine, nn

        module.__path__ = self.folders
        module.engine = sys.modules["micrograd.engine"] = engine
        module.nn = sys.modules["micrograd.nn"] = nn
        module.Value = engine.Value


def shadowed(folder: str) -> bool:
    return any(os.path.exists(os.path.join(folder, module)) for module in ("engine.py", "nn.py"))


def is_own(path: str | None) -> bool:
    """Whether a file is the user's: not installed, not of the standard library, not of gradwalk itself."""
    if path is None:
        return False
    path = os.path.realpath(path)
    if {"site-packages", "dist-packages"} & set(path.split(os.sep)):
        return False
    return not path.startswith(
        tuple(os.path.dirname(os.path.realpath(file)) + os.sep for file in (os.__file__, __file__))
    )


# ---------------------------------------------------------------- multiprocessing


def follow_into_workers(keep_class: bool) -> None:
    """Workers that are new interpreters install gradwalk, too, before they import the script."""
    from multiprocessing import forkserver, spawn

    server: Any = forkserver._forkserver
    if server._preload_modules == ["__main__"]:
        # the server would import the script without gradwalk, ahead of the workers it forks
        forkserver.set_forkserver_preload([])
    plain: Any = spawn.get_preparation_data
    if isinstance(plain, FunctionType) and plain.__module__ == __name__:
        return

    def get_preparation_data(name: str) -> dict[str, Any]:
        return {**plain(name), "gradwalk": WorkerInstallation(keep_class)}

    spawn.get_preparation_data = get_preparation_data


class WorkerInstallation:
    """Travels in what multiprocessing sends to a worker: to unpickle it is to install."""

    def __init__(self, keep_class: bool) -> None:
        self.keep_class = keep_class

    def __reduce__(self) -> tuple[Callable[[bool], None], tuple[bool]]:
        return install_in_worker, (self.keep_class,)


def install_in_worker(keep_class: bool) -> None:
    import runpy

    if not hasattr(builtins, DECORATOR):
        install(keep_class, quiet=True)
        if not keep_class:
            runpy.compile = compile_offering  # type: ignore[attr-defined]


# ---------------------------------------------------------------- classes


class Offer:
    """The decorator: gradwalk's Value in place of a class, or the class itself and, in one line, why."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        self.said: set[str] = set()

    def __call__(self, offered: Any) -> Any:
        from gradwalk import engine

        if not isinstance(offered, type) or not callable(getattr(offered, "backward", None)):
            return offered
        if issubclass(offered, engine.Value):
            return offered
        place = sys._getframe(1)
        where = f"{shown(place.f_code.co_filename)}:{place.f_lineno}"
        reason = next(reasons_to_keep(offered), None)
        if reason:
            self.say_once(f"{where}: class Value is kept, not replaced by gradwalk's: {reason}")
            return offered
        added = own_members(offered)
        for name, member in added.items():
            setattr(engine.Value, name, member)
        methods = f", with the script's own {', '.join(added)}" if added else ""
        self.say_once(f"{where}: class Value is replaced by gradwalk's{methods} (--keep-class leaves it)")
        return engine.Value

    def say_once(self, message: str) -> None:
        if not self.quiet and message not in self.said:
            self.said.add(message)
            say(message)


def shown(path: str) -> str:
    inside = os.path.relpath(path) if os.path.isabs(path) else path
    return path if inside.startswith("..") else inside


def reasons_to_keep(offered: type) -> Iterator[str]:
    """What about a class gradwalk's Value could not stand in for."""
    from gradwalk.ops import OPS

    if offered.__bases__ != (object,) or type(offered) is not type:
        yield "it derives from another class"
    for name in NOT_REPLACEABLE:
        if name in vars(offered):
            yield f"it defines {name}"
    yield from reasons_in_constructor(vars(offered).get("__init__"))
    members = own_members(offered)
    for name in ("__init__", *members):
        for attribute in assigned_on_self(vars(offered)[name]):
            if attribute not in (CONSTRUCTED if name == "__init__" else ASSIGNABLE):
                yield f"{name} assigns self.{attribute}, which gradwalk's Value does not take"
    for name, member in vars(offered).items():
        if name in OPS and name not in members and isinstance(member, FunctionType):
            code, op = member.__code__, OPS[name]
            fewest = code.co_argcount - len(member.__defaults__ or ())
            if fewest < len(op.names) - len(op.defaults) or code.co_argcount > len(op.names):
                yield f"its {name} takes ({', '.join(code.co_varnames[: code.co_argcount])}), gradwalk's does not"


def reasons_in_constructor(constructor: Any) -> Iterator[str]:
    import inspect

    if not isinstance(constructor, FunctionType):
        yield "it has no __init__ of its own"
        return
    parameters = list(inspect.signature(constructor).parameters.values())[1:]
    if not parameters or parameters[0].default is not inspect.Parameter.empty:
        yield "its constructor does not require data"
    positional = 0
    for parameter in parameters:
        names: set[str] = set()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            names = set().union(*CONSTRUCTOR)
        elif parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD and positional < len(CONSTRUCTOR):
            names = CONSTRUCTOR[positional]
            positional += 1
        if parameter.name not in names:
            yield f"its constructor takes {parameter}, which gradwalk's does not take there"


def own_members(offered: type) -> dict[str, Any]:
    """What a class has and gradwalk's Value lacks, and how it shows itself; in the order of its definitions."""
    from gradwalk.engine import Value

    def is_own_member(name: str, member: Any) -> bool:
        if name.startswith("__") and name.endswith("__"):
            written = isinstance(member, FunctionType) and not name.startswith("__annot") and name != "__init__"
            return written and (name in SCRIPT_WINS or not hasattr(Value, name))
        return not hasattr(Value, name) and not hasattr(member, "__objclass__")  # a slot's descriptor has that

    return {name: member for name, member in vars(offered).items() if is_own_member(name, member)}


def assigned_on_self(member: Any) -> Iterator[str]:
    """The attributes that a method assigns on its first argument."""
    import dis

    function = getattr(member, "__func__", getattr(member, "fget", member))
    if not isinstance(function, FunctionType) or isinstance(member, staticmethod) or not function.__code__.co_argcount:
        return
    loaded: tuple[Any, ...] = ()
    for instruction in dis.get_instructions(function):
        # from Python 3.13 on one instruction may load two names: the last one is on top of the stack
        if instruction.opname == "STORE_ATTR" and loaded[-1:] == function.__code__.co_varnames[:1]:
            yield instruction.argval
        loaded = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)


if __name__ == "__main__":
    if not getattr(sys.flags, "safe_path", False):
        del sys.path[0]  # the folder of this file, which must not be searched for modules
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the command line has said already which engine is missing
        from gradwalk.run import hide_own_frames, prepare

    try:
        start, given = prepare(sys.argv[1], sys.argv[2], sys.argv[3:])
        # room for what is below the script on the stack: this frame and, before Python 3.12, the call of exec
        sys.setrecursionlimit(sys.getrecursionlimit() + (1 if sys.version_info >= (3, 12) else 2))
        start(*given)
    except BaseException:
        hide_own_frames()
        raise
