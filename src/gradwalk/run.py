"""`gradwalk run`: an unmodified script on gradwalk's Value, otherwise as `python SCRIPT` would run it.

A fresh interpreter runs the script, so that nothing of the command line is in its modules or on its stack. There,
every `class Value` gets an outermost decorator, `offer`, which hands back gradwalk's Value where it can stand in.
"""

from __future__ import annotations

import sys

if __name__ == "__main__" and not getattr(sys.flags, "safe_path", False):
    del sys.path[0]  # the folder of this file: its math.py, for one, is not the standard library's

import builtins
import functools
import io
import math
import os
import re
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, FunctionType, ModuleType
from typing import Any, NoReturn

# by position, the names under which the two families' constructors take their arguments
CONSTRUCTOR = ({"data"}, {"_children", "children"}, {"_op", "local_grads"}, {"label"})
# how a number is shown or converted is the script's business: its methods win over gradwalk's
SCRIPT_WINS = {"__repr__", "__str__", "__format__", "__float__", "__int__"}
# a class with one of these behaves in a way that gradwalk's Value would not
NOT_REPLACEABLE = {
    *("__eq__", "__ne__", "__new__", "__getattr__", "__getattribute__", "__setattr__", "__delattr__", "__del__"),
    *("_apply", "_constant", "_name", "_parameters", "_push", "_topological_order"),  # gradwalk needs its own
}
# what a method may assign on one of gradwalk's Values
ASSIGNABLE = {"data", "grad", "label", "_backward"}
# what a constructor may assign: gradwalk's Value has these as well, whichever engine it comes from
CONSTRUCTED = ASSIGNABLE | {"_children", "_local_grads", "_prev", "_op"}
# a builtin, so that the decorator is found from every module; underscores at both ends, so that it is never mangled
DECORATOR = "__gradwalk_offer__"
# of what gradwalk's Value was given: from which module's class
GIVERS: dict[str, str] = {}

ARITHMETIC = {f"__{side}{name}__" for side in ("", "r") for name in ("add", "sub", "mul", "truediv", "pow")}
OPERATORS = ARITHMETIC | {"__neg__", "__pos__", "__lt__", "__le__", "__gt__", "__ge__"}
# where operators are compared, by number of operands: not dyadic, so that a rounded constructor shows
INSIDE: dict[int, tuple[Any, ...]] = {1: (-1.7, 0.3), 2: ((0.3, 1.7), (2.1, -0.7), (1.3, 3))}
# where either side may raise: edges of domains, a division by zero, an overflow
OUTSIDE: dict[int, tuple[Any, ...]] = {1: ((0.0,), (-1.0,), (800.0,)), 2: ((1.0, 0.0), (0.0, 2.0), (-2.0, 3))}


# ---------------------------------------------------------------- in the interpreter of the command line


def run(script: str, arguments: Sequence[str], keep_class: bool = False) -> NoReturn:
    """Give this process over to the script."""
    command = [sys.executable, __file__, "keep" if keep_class else "replace", script, *arguments]
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name != "nt":
        os.execv(sys.executable, command)
    import signal
    import subprocess

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the script gets it too, and decides
    sys.exit(subprocess.call(command))  # execv on Windows lets the shell go on before the script has ended


# ---------------------------------------------------------------- in the interpreter of the script


def prepare(mode: str, script: str, arguments: Sequence[str]) -> tuple[CodeType, dict[str, Any]]:
    """Make this interpreter look as `python SCRIPT` starts it; returns the script's code and its globals."""
    keep_class = mode == "keep"
    sys.argv = [script, *arguments]
    sys.orig_argv = [sys.orig_argv[0], *sys.argv]
    path = os.path.join(os.getcwd(), script)  # not normalised: python does not either
    try:
        with io.open_code(path) as file:
            source = file.read()
    except OSError as error:
        what = f"[Errno {error.errno}] {error.strerror}"
        print(f"{sys.executable}: can't open file {path!r}: {what}", file=sys.stderr)
        sys.exit(2)
    try:
        code = compile(source, path, "exec", dont_inherit=True) if keep_class else compile_offering(source, path)
    except SyntaxError:
        if os.name != "nt":  # python reads a file by the line, and words some errors differently for that
            os.execv(sys.executable, sys.orig_argv)
        raise
    setattr(builtins, DECORATOR, offer)
    # right before PathFinder, whose answers it passes on: every other finder keeps its turn
    sys.meta_path.insert(sys.meta_path.index(PathFinder), Finder(keep_class))
    if not getattr(sys.flags, "safe_path", False):  # from Python 3.11 on
        sys.path.insert(0, os.path.dirname(os.path.realpath(path)))
    main = sys.modules["__main__"] = ModuleType("__main__")
    loader = SourceFileLoader("__main__", path)
    main.__dict__.update(__builtins__=builtins, __cached__=None, __file__=path, __loader__=loader)
    if sys.version_info < (3, 14):
        main.__annotations__ = {}
    return code, main.__dict__


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


@functools.cache  # each line once
def say(message: str) -> None:
    if sys.stderr:
        print(f"gradwalk: {message}", file=sys.stderr, flush=True)


# ---------------------------------------------------------------- modules


def mentions_class(source: bytes) -> bool:
    return bool(re.search(rb"class\s+Value\b", source))


def compile_offering(source: bytes, path: str) -> CodeType:
    """`compile`, with a decorator on every class named Value; lines and columns stay what they are."""
    if not mentions_class(source):
        return compile(source, path, "exec", dont_inherit=True)
    import ast

    tree = ast.parse(source, path)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name == "Value":
            place = node.decorator_list[0] if node.decorator_list else node
            node.decorator_list.insert(0, ast.copy_location(ast.Name(DECORATOR, ast.Load()), place))
    return compile(tree, path, "exec", dont_inherit=True)


class Finder(MetaPathFinder):
    """Answers as PathFinder does, but for micrograd, and for the user's own modules that define a Value."""

    def __init__(self, keep_class: bool) -> None:
        self.keep_class = keep_class

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target)
        own = spec is not None and is_own(spec.origin)
        folders = spec.submodule_search_locations if spec else None
        # a micrograd.py of the user's own is one of their modules; a folder is one only where classes are kept
        if name == "micrograd" and not (own and (self.keep_class or folders is None)):
            if own and folders:
                say(f"{folders[0]}: its engine and nn are not used but gradwalk's (--keep-class uses them)")
            gradwalks = ModuleSpec(name, Micrograd(), is_package=True)
            gradwalks.submodule_search_locations = folders or []  # where its other modules are found
            return gradwalks
        if spec and own and type(spec.loader) is SourceFileLoader and not self.keep_class:
            try:
                source = spec.loader.get_data(spec.loader.path)
                if mentions_class(source):
                    code = compile_offering(source, spec.loader.path)
                    spec.loader = OfferingLoader(name, spec.loader.path, code)
            except Exception:  # python's own loader then fails in the same way, with the frames it should have
                return spec
        return spec


class OfferingLoader(SourceFileLoader):
    """A source file's loader that was given the code; it reads and writes no bytecode cache."""

    def __init__(self, name: str, path: str, code: CodeType) -> None:
        super().__init__(name, path)
        self.code = code

    def get_code(self, fullname: str) -> CodeType | None:
        return self.code


class Micrograd(Loader):
    """The package micrograd, its engine and nn gradwalk's."""

    def exec_module(self, module: Any) -> None:
        from gradwalk import engine, nn

        module.engine = sys.modules["micrograd.engine"] = engine
        module.nn = sys.modules["micrograd.nn"] = nn
        module.Value = engine.Value


def is_own(path: str | None) -> bool:
    """Whether a file is the user's: not installed, not of the standard library, not of gradwalk itself."""
    path = os.path.realpath(path or os.__file__)
    folders = tuple(os.path.dirname(os.path.realpath(file)) + os.sep for file in (os.__file__, __file__))
    return not path.startswith(folders) and not {"site-packages", "dist-packages"} & set(path.split(os.sep))


# ---------------------------------------------------------------- classes


class Kept(Exception):  # noqa: N818
    """Why a class is not replaced."""


def offer(offered: Any) -> Any:
    """The decorator: gradwalk's Value in place of a class, or the class itself and, in one line, why."""
    from gradwalk.engine import Value

    if not isinstance(offered, type) or not callable(getattr(offered, "backward", None)) or issubclass(offered, Value):
        return offered
    place = sys._getframe(1)
    bind(offered, place.f_locals)
    where = f"{shown(place.f_code.co_filename)}:{place.f_lineno}: class Value is"
    try:
        check_shape(offered)
        added, differing = merge(offered, Value)
    except Kept as reason:
        say(f"{where} kept, not replaced by gradwalk's: {reason}")
        return offered
    own = [f"the script's own {', '.join(added)}"] if added else []
    own += [f"its {', '.join(differing)}, different from gradwalk's"] if differing else []
    members = f", with {' and '.join(own)}" if own else ""
    say(f"{where} replaced by gradwalk's{members} (--keep-class leaves it)")
    return Value


def bind(offered: type, variables: Any) -> None:
    """Set `Value` as the class statement is about to, so that the class's methods work already."""
    variables["Value"] = offered
    for method in vars(offered).values():  # in a function, and before Python 3.13, those are but a copy
        if isinstance(method, FunctionType):
            for name, cell in zip(method.__code__.co_freevars, method.__closure__ or (), strict=True):
                if name == "Value":
                    cell.cell_contents = offered


def shown(path: str) -> str:
    inside = os.path.relpath(path) if os.path.isabs(path) else path
    return path if inside.startswith("..") else inside


def check_shape(offered: type) -> None:
    """Refuse a class that has something about it which gradwalk's Value could not stand in for."""
    import inspect

    if offered.__bases__ != (object,) or type(offered) is not type:
        raise Kept("it derives from another class")
    for name, member in vars(offered).items():
        if name in NOT_REPLACEABLE or (name in ASSIGNABLE and isinstance(member, property)):
            raise Kept(f"it defines {name}")
    constructor: Any = vars(offered).get("__init__")
    if not isinstance(constructor, FunctionType):
        raise Kept("it has no __init__ of its own")
    parameters = list(inspect.signature(constructor).parameters.values())[1:]
    if not parameters or parameters[0].default is not inspect.Parameter.empty:
        raise Kept("its constructor does not require data")
    for position, parameter in enumerate(parameters):
        names = set().union(*CONSTRUCTOR) if parameter.kind is parameter.KEYWORD_ONLY else set()
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD and position < len(CONSTRUCTOR):
            names = CONSTRUCTOR[position]
        if parameter.name not in names:
            raise Kept(f"its constructor takes {parameter}, which gradwalk's does not take there")
    backward = inspect.signature(offered.backward)  # type: ignore[attr-defined]
    if len(backward.parameters) > 1:
        raise Kept(f"its backward takes {backward}, gradwalk's does not")
    for name, member in vars(offered).items():
        if name != "backward":
            check_assigned(name, member, CONSTRUCTED)


def check_assigned(name: str, member: Any, assignable: set[str]) -> None:
    """Refuse a method that assigns another attribute, or a global variable: gradwalk's would not."""
    import dis

    function = getattr(member, "__func__", getattr(member, "fget", member))
    codes = [function.__code__] if isinstance(function, FunctionType) else []
    for code in codes:
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
        for instruction in dis.get_instructions(code):
            if instruction.opname in ("STORE_ATTR", "STORE_GLOBAL") and instruction.argval not in assignable:
                raise Kept(f"its {name} assigns {instruction.argval}")


def merge(offered: type, value: type) -> tuple[list[str], list[str]]:
    """Give gradwalk's Value the members it lacks, and the methods that compute something else; returns their names."""
    from gradwalk.ops import OPS

    ops = {name: op for op in OPS.values() for name in (op.name, *op.aliases, f"__{op.name}__") if hasattr(value, name)}
    members = vars(offered)
    shared = [name for name in members if name in OPERATORS or name in ops]
    added = [name for name in members if name not in shared and is_added(name, members[name], value)]
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        samples = {name: () if name in OPERATORS else ops[name].samples for name in shared}
        differing = [name for name in shared if not agree(offered, value, name, samples[name])]
    for name in added + differing:
        if name in OPERATORS:
            raise Kept(f"its {name} computes something else")
        if GIVERS.get(name, offered.__module__) != offered.__module__:
            raise Kept(f"gradwalk's already has the {name} of a class Value in {GIVERS[name]}")
        check_assigned(name, members[name], ASSIGNABLE)
    for name in added + differing:
        setattr(value, name, members[name])
        GIVERS[name] = offered.__module__
    return added, differing


def is_added(name: str, member: Any, value: type) -> bool:
    if name.startswith("__") and (not isinstance(member, FunctionType) or name.startswith("__annot")):
        return False
    lacking = not hasattr(value, name) or name in SCRIPT_WINS or name in GIVERS
    return lacking and not hasattr(member, "__objclass__")  # a slot's descriptor has that


# ---------------------------------------------------------------- is it the same operation?


def agree(offered: type, value: type, name: str, samples: Sequence[Any]) -> bool:
    """Whether an operation of both classes computes the same, tried on Values, on a Value and numbers, on one twice."""
    method: Any = vars(offered)[name]
    optional = getattr(method, "__defaults__", None) or ()
    if not isinstance(method, FunctionType) or (name not in OPERATORS and (optional or method.__kwdefaults__)):
        return False  # what may be left out may be given by its name, which gradwalk's does not know
    arity = method.__code__.co_argcount - len(optional)
    inside = [sample[:arity] if isinstance(sample, tuple) else (sample,) for sample in samples or INSIDE.get(arity, ())]
    taken = False
    for kind in range(3):
        theirs = [outcome(offered, name, numbers, kind) for numbers in inside]
        if not any(theirs):
            continue  # operands that its method does not take
        taken = True
        outside = OUTSIDE.get(arity, ())
        theirs += [outcome(offered, name, numbers, kind) for numbers in outside]
        for i, (found, numbers) in enumerate(zip(theirs, (*inside, *outside), strict=True)):
            may_raise = found is None and i >= len(inside)
            if not may_raise and not alike(found, outcome(value, name, numbers, kind)):
                return False
    return taken


def outcome(cls: Any, name: str, numbers: tuple[float, ...], kind: int) -> list[float] | None:
    """The data and the gradients of one operation; None where it raises, or gives something that is no number."""
    try:
        values = [cls(number) for number in numbers[: 1 if kind else None]]
        rest = (values[1:], numbers[1:], values * (len(numbers) - 1))[kind]
        out = getattr(values[0], name)(*rest)
        found = [out]
        if isinstance(out, cls):
            out.backward()
            found = [out.data, *(value.grad for value in values)]
        return found if all(isinstance(number, int | float) for number in found) else None
    except Exception:
        return None


def alike(theirs: list[float] | None, ours: list[float] | None) -> bool:
    if theirs is None or ours is None or len(theirs) != len(ours):
        return theirs is ours
    # where gradwalk's says nan there is no derivative: that of a negative number's power in its exponent
    return all(
        math.isnan(y) or math.isclose(x, y, rel_tol=1e-9, abs_tol=1e-12) for x, y in zip(theirs, ours, strict=True)
    )


if __name__ == "__main__":
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the command line has said already which engine is missing
        from gradwalk.run import hide_own_frames, prepare

    try:
        code, variables = prepare(sys.argv[1], sys.argv[2], sys.argv[3:])
        # room for what is below the script on the stack: this frame and, before Python 3.12, the call of exec
        sys.setrecursionlimit(sys.getrecursionlimit() + (1 if sys.version_info >= (3, 12) else 2))
        exec(code, variables)
    except BaseException:
        hide_own_frames()
        raise
