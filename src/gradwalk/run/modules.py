"""Which classes of a script and of its own modules are offered for replacement, and who stands in for micrograd."""

from __future__ import annotations

import ast
import builtins
import functools
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

from gradwalk.own_files import is_own

# a builtin, so that it is found from every module; underscores at both ends, so that it is never mangled
OFFER = "__gradwalk_offer__"
# the name under which workers of multiprocessing import the script
WORKERS_MAIN = "__gradwalk_main__"


# the two modules of micrograd 0.1.0, by their crc32
PYPIS = {"engine.py": 0xD5A60213, "nn.py": 0x7C0C1C1F}

_worker_of = ""  # in a worker of multiprocessing: the script


@functools.cache  # each line once
def say(message: str) -> None:
    if sys.stderr and not _worker_of:  # a worker's parent has said it
        with suppress(OSError):  # the script may have no need of stderr
            print(f"gradwalk: {message}", file=sys.stderr, flush=True)


def install(keep_class: bool, is_notebook: bool = False) -> None:
    """From now on, modules are found as a script, or a notebook, under `gradwalk run` finds them."""
    from gradwalk.run.stand_in import offer

    setattr(builtins, OFFER, offer)
    changes: dict[str, Callable[[Any], None]] = {"multiprocessing.spawn": functools.partial(change_spawn, keep_class)}
    if is_notebook:
        from gradwalk.run.pools import say_what_is_of_cells

        changes["multiprocessing.pool"] = say_what_is_of_cells
    # right before PathFinder, whose answers it passes on: every other finder keeps its turn
    sys.meta_path.insert(sys.meta_path.index(PathFinder), Finder(keep_class, changes))


# ---------------------------------------------------------------- classes in source code


def compile_offering(source: bytes, path: str) -> CodeType:
    """`compile`, with every class of the right shape offered where it was defined; lines and columns stay."""
    if b"def backward" not in source or not (b"__add__" in source or b"__mul__" in source):
        return compile(source, path, "exec", dont_inherit=True)
    return compile(offering(ast.parse(source, path)), path, "exec", dont_inherit=True)


def offering(tree: ast.Module) -> ast.Module:
    """`Value = offer(Value)` after each such class, or after the functions that it needs from further down."""
    for block in blocks(tree):
        for node in [statement for statement in block if isinstance(statement, ast.ClassDef)]:
            if has_shape(node):
                block.insert(first_place(block, block.index(node)), offer_statement(node, assigned(tree, node)))
    return tree


def assigned(tree: ast.AST, offered: ast.ClassDef) -> dict[str, int]:
    """The attributes that are assigned somewhere, by line; left out are constructors, other classes, operators."""
    left_out: set[int] = set()
    for cls in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        for member in cls.body:
            if not isinstance(member, ast.FunctionDef):
                continue
            compared = cls is offered and member.name.startswith("__") and member.name != "__init__"
            left_out.update(
                id(node) for node in ast.walk(member)
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
                and (compared or (node.value.id == "self" and (cls is not offered or member.name == "__init__")))
            )  # fmt: skip
    return {
        node.attr: node.lineno for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and id(node) not in left_out
    }  # fmt: skip


def blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                yield block


def has_shape(node: ast.ClassDef) -> bool:
    methods = {member.name for member in node.body if isinstance(member, ast.FunctionDef)}
    return {"__init__", "backward"} <= methods and bool({"__add__", "__mul__"} & methods or node.bases)


def first_place(block: list[ast.stmt], position: int) -> int:
    """Right after the class; after later definitions that its methods use, as long as only definitions come between."""
    used = {name.id for name in ast.walk(block[position]) if isinstance(name, ast.Name)}
    place = position + 1
    for i in range(position + 1, len(block)):
        statement = block[i]
        if not isinstance(statement, ast.FunctionDef | ast.Import | ast.ImportFrom):
            break
        names = {alias.asname or alias.name for alias in getattr(statement, "names", ())}
        if (names or {getattr(statement, "name", "")}) & used:
            place = i + 1
    return place


def offer_statement(node: ast.ClassDef, lines: dict[str, int]) -> ast.stmt:
    assignments = ast.Dict([ast.Constant(name) for name in lines], [ast.Constant(line) for line in lines.values()])
    call = ast.Call(ast.Name(OFFER, ast.Load()), [ast.Name(node.name, ast.Load()), assignments], [])
    statement = ast.Assign([ast.Name(node.name, ast.Store())], call)
    line = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    for part in ast.walk(statement):
        ast.copy_location(part, node)
        if hasattr(part, "lineno"):
            part.lineno = part.end_lineno = line  # type: ignore[attr-defined]
    return statement


# ---------------------------------------------------------------- modules


class Finder:
    """Answers as PathFinder does, but for the user's own modules with a class to offer, and for micrograd."""

    def __init__(self, keep_class: bool, changes: dict[str, Callable[[Any], None]]) -> None:
        self.keep_class, self.changes = keep_class, changes

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name == WORKERS_MAIN:
            return self.offering(ModuleSpec(name, SourceFileLoader(name, _worker_of), origin=_worker_of))
        spec = PathFinder.find_spec(name, path, target)
        if name == "micrograd" and (spec is None or is_pypis(spec)):  # the same, but ours
            loader: Any = Micrograd()  # no importlib.abc, which is long to import
            return ModuleSpec(name, loader, is_package=True)
        if name in self.changes and spec and spec.loader:
            loader = ChangingLoader(spec.loader, self.changes[name])
            spec.loader = loader
            return spec
        # of what is installed, only somebody's own version of micrograd is offered
        offered = spec and (is_own(spec.origin) or name.partition(".")[0] == "micrograd")
        return self.offering(spec) if spec and offered else spec

    def offering(self, spec: ModuleSpec) -> ModuleSpec:
        """The same, but that its classes are offered."""
        loader: Any = spec.loader
        if self.keep_class or not hasattr(loader, "get_source") or not hasattr(loader, "get_filename"):
            return spec
        try:
            path = loader.get_filename(spec.name)
            if not path.endswith(".py"):
                return spec
            source = loader.get_data(path)
            if b"def backward" in source:
                spec.loader = OfferingLoader(spec.name, path, loader, compile_offering(source, path))
        except Exception:  # python's own loader then fails in the same way, with the frames it should have
            return spec
        return spec


def is_pypis(spec: ModuleSpec) -> bool:
    """Whether this is the package as it is on PyPI, and nobody's own of that name."""
    if not spec.origin or is_own(spec.origin):
        return False
    try:
        for name, digest in PYPIS.items():
            with open(os.path.join(os.path.dirname(spec.origin), name), "rb") as file:
                if zlib.crc32(file.read().replace(b"\r\n", b"\n")) != digest:
                    return False
    except OSError:
        return False
    return True


class OfferingLoader(SourceFileLoader):
    """A loader that was given the code; it reads and writes no bytecode cache, and is the other one in all else."""

    def __init__(self, name: str, path: str, loader: Any, code: CodeType) -> None:
        super().__init__(name, path)
        self.loader, self.code = loader, code

    def get_code(self, fullname: str) -> CodeType | None:
        return self.code

    def get_data(self, path: str) -> bytes:
        data: bytes = self.loader.get_data(path)
        return data


class Micrograd:
    """The package micrograd as it is on PyPI, written by us, its Value replaced like any other."""

    def create_module(self, spec: ModuleSpec) -> None:
        """As usual."""

    def exec_module(self, module: Any) -> None:
        from gradwalk.run import micrograd_engine, micrograd_nn

        module.engine = sys.modules["micrograd.engine"] = micrograd_engine
        module.nn = sys.modules["micrograd.nn"] = micrograd_nn


# ---------------------------------------------------------------- workers of multiprocessing


class ChangingLoader:
    """A module of multiprocessing, with something changed."""

    def __init__(self, loader: Any, change: Callable[[Any], None]) -> None:
        self.loader, self.change = loader, change

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        created: ModuleType | None = self.loader.create_module(spec)
        return created

    def exec_module(self, module: Any) -> None:
        self.loader.exec_module(module)
        self.change(module)


def change_spawn(keep_class: bool, module: Any) -> None:
    """In multiprocessing.spawn: workers are to see what this interpreter sees."""
    plain = module.get_preparation_data

    def get_preparation_data(name: str) -> dict[str, Any]:
        data: dict[str, Any] = plain(name)
        if "init_main_from_path" in data:
            data = {"gradwalk": Worker(keep_class, data.pop("init_main_from_path")), **data}
            data["init_main_from_name"] = WORKERS_MAIN
        elif "init_main_from_name" in data:  # the script was started with -m, and is imported by its name
            data = {"gradwalk": Worker(keep_class, data["init_main_from_name"]), **data}
        else:  # a notebook, of which they import what its cells do
            data = {"gradwalk": Worker(keep_class, sys.argv[0]), **data}
        return data

    module.get_preparation_data = get_preparation_data


class Worker:
    """Prepares the interpreter in which it is unpickled, before the script is imported there."""

    def __init__(self, keep_class: bool, path: str) -> None:
        self.arguments = keep_class, path

    def __reduce__(self) -> Any:
        return prepare_worker, self.arguments


def prepare_worker(keep_class: bool, path: str) -> None:
    global _worker_of
    _worker_of = path
    install(keep_class)
