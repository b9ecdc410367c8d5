"""Imports point one way, from the table to the command line; and `import gradwalk` stays light."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import gradwalk

PACKAGE = Path(gradwalk.__file__).resolve().parent
ROOT = Path(__file__).parents[1]

# a room may import from the lines above it, and from those it shares its line with
ORDER = [line.split() for line in """
    _version cached_property own_files files hub bundled _native
    lessons
    formula passes
    printing
    row_formula
    operation row_ops
    ops agreement
    modes
    errors
    interface workers
    reference
    engine
    control
    scopes expression finite_differences
    composites
    functions
    walk
    graph
    stored
    structure
    copies passed_twice lost_derivatives higher_order
    functional
    gradient_check
    custom
    math
    numpy
    blame statistics operators implicit vectorize scipy
    compiler
    products sparse
    optim nn
    show
    training
    run doctor
    cli
    __main__
""".strip().splitlines()]  # fmt: skip
# an array of Values is made by what knows structures, when there is one: the only import that points down
DOWN = {("structure", "numpy")}
RANK = {room: rank for rank, rooms in enumerate(ORDER) for room in rooms}
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def module_name(path: Path) -> str:
    parts = ["gradwalk", *path.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room(name: str) -> str:
    """The room of a module: `compiler` for gradwalk.compiler.trace; `gradwalk` for the package itself."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else parts[0]


def is_for_type_checkers(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def executed(node: ast.AST) -> Iterator[ast.AST]:
    """Every node below, functions' bodies included, but not what is under `if TYPE_CHECKING:`."""
    children = node.orelse if isinstance(node, ast.If) and is_for_type_checkers(node) else ast.iter_child_nodes(node)
    for child in children:
        yield child
        yield from executed(child)


def imported(source: str, name: str, is_package: bool) -> Iterator[str]:
    """The modules of gradwalk that a module imports, wherever in it the import stands."""
    for node in executed(ast.parse(source)):
        found: list[str] = []
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = name.split(".")
            above = base[: len(base) - node.level + is_package] if node.level else []
            source_name = ".".join([*above, *([node.module] if node.module else [])])
            # `from gradwalk import graph` is an import of the room, `from gradwalk import Value` of the package
            found = [f"gradwalk.{alias.name}" if alias.name in RANK else source_name for alias in node.names]
            found = found if source_name == "gradwalk" else [source_name]
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "import_module":
            found = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
        yield from (module for module in found if module.split(".")[0] == "gradwalk")


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_imports_point_one_way(path: Path) -> None:
    """No module imports from a later room, at its top or inside a function, nor from the package itself."""
    name = module_name(path)
    found = set(imported(path.read_text(encoding="utf-8"), name, path.name == "__init__.py"))
    last = len(ORDER)  # the package itself comes after all of its rooms
    later = sorted(
        module
        for module in found
        if RANK.get(room(module), last) > RANK.get(room(name), last) and (room(name), room(module)) not in DOWN
    )
    assert later == []


def test_every_module_has_a_room() -> None:
    """A new module is given its place in the order above."""
    homeless = [module_name(path) for path in MODULES if room(module_name(path)) not in RANK]
    assert homeless == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import gradwalk.cli", ["gradwalk.cli"]),
        ("from gradwalk.ops import OPS", ["gradwalk.ops"]),
        ("from gradwalk import graph, Value", ["gradwalk.graph", "gradwalk"]),
        ("from .ops import OPS", ["gradwalk.ops"]),
        ("from . import walk", ["gradwalk.walk"]),
        ("def f():\n    from gradwalk.nn import MLP", ["gradwalk.nn"]),
        ("import importlib\nimportlib.import_module('gradwalk.show')", ["gradwalk.show"]),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from gradwalk.cli import main", []),
        ("if TYPE_CHECKING:\n    pass\nelse:\n    import gradwalk.cli", ["gradwalk.cli"]),
        ("import gradwalker, math", []),
    ],
)
def test_the_check_itself_sees_imports(source: str, expected: list[str]) -> None:
    """Absolute, relative, nested and dynamic imports are found; those for type checkers are not."""
    assert expected == list(imported(source, "gradwalk.example", is_package=False))


def test_import_is_light() -> None:
    """`import gradwalk` in a fresh process loads neither NumPy nor rich nor click nor ctypes."""
    program = (
        "import json, sys; before = set(sys.modules); import gradwalk;"
        " print(json.dumps(sorted({name.split('.')[0] for name in set(sys.modules) - before})))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = json.loads(run.stdout)
    assert "gradwalk" in loaded
    heavy = [name for name in ("numpy", "rich", "click", "ctypes", "safetensors") if name in loaded]
    assert heavy == []


def mapped(folder: str) -> list[str]:
    """What the README's map says is in this folder: names, then two spaces or more, then what it is."""
    _, found, rest = (ROOT / "README.md").read_text(encoding="utf-8").partition(f"\n    {folder}/\n")
    assert found
    lines = re.match(r"(?: {6}.*\n)*", rest)
    assert lines is not None
    return [name for line in lines[0].splitlines() for name in re.split(r" {2,}", line.strip())[0].split(", ")]


@pytest.mark.parametrize("folder", ["src/gradwalk", "tools"])
def test_the_map_is_of_this_tree(folder: str) -> None:
    """Each file and each folder is in the README's map, once; what every package has, and what is generated, is not."""
    left_out = re.compile(r"__\w+__(\.py)?|_version\.py|_native\..*|.*\.pyi|py\.typed|\..*")
    there = [path.name + "/" * path.is_dir() for path in (ROOT / folder).iterdir() if not left_out.fullmatch(path.name)]
    assert sorted(mapped(folder)) == sorted(there)


# ---------------------------------------------------------------- one name, one thing

# what two modules may both call so: a copy of micrograd has its names; others are public, or a word of the user's
TWICE = {
    "Value": "micrograd's",
    "Neuron": "micrograd's",
    "Layer": "micrograd's",
    "MLP": "micrograd's",
    "Module": "micrograd's",
    "everywhere": "numpy.everywhere() is public; in a row of the table the word stands alone",
    "sample": "the command is named as it is typed",
}


def names_of_two(sources: dict[str, str]) -> dict[str, list[str]]:
    """The names that several modules give to something of theirs: every class, and functions that others import."""
    trees = {module: ast.parse(source) for module, source in sources.items()}
    taken = {
        (node.module, alias.name)
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    made: dict[str, set[str]] = {}
    for module, tree in trees.items():
        for node in tree.body:
            is_for_others = isinstance(node, ast.FunctionDef) and (module, node.name) in taken
            if isinstance(node, ast.ClassDef) or is_for_others:
                made.setdefault(node.name, set()).add(module)
    return {name: sorted(modules) for name, modules in made.items() if len(modules) > 1}


def test_a_name_means_one_thing() -> None:
    """No two modules have a class of one name, public or not, or functions of one name that others import."""
    found = names_of_two({module_name(path): path.read_text(encoding="utf-8") for path in MODULES})
    assert {name: modules for name, modules in found.items() if name not in TWICE} == {}
    assert found.keys() == TWICE.keys()  # the list above has nothing that is no longer so


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("class _Plan: pass", "class _Plan: pass", {"_Plan": ["one", "other"]}),
        ("def shown(): pass", "def shown(): pass", {}),
        ("def shown(): pass", "def shown(): pass\ndef f():\n    from one import shown as s", {}),
        ("def f(): pass\nfrom other import f as g", "def f(): pass\nfrom one import f", {"f": ["one", "other"]}),
        ("class A: pass", "def f():\n    class A: pass", {}),
    ],
)
def test_the_check_itself_sees_names(one: str, other: str, expected: dict[str, list[str]]) -> None:
    assert names_of_two({"one": one, "other": other}) == expected
