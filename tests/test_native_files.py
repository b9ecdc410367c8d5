"""The C engine: every file stands on its own, whatever unit it is built in."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

NATIVE = Path(__file__).parents[1] / "src/gradwalk/native"
FILES = sorted(path.relative_to(NATIVE).as_posix() for path in NATIVE.rglob("*.c"))
INCLUDES = [f"-I{NATIVE}", f"-I{sysconfig.get_path('include')}"]
WARNINGS = ["-std=c11", "-Wall", "-Wextra", "-Wswitch-enum", "-Werror"]  # a new kind is missed where it has no case


# at the beginning of a line, what is defined there; a macro that defines functions is written in capitals
DEFINED = re.compile(r"^(?!typedef|#|[A-Z_]+\()[A-Za-z_][\w \*]*?\b(\w+)\((?:[^;{}]|\n)*?\)\s*\{", re.MULTILINE)
# where it is another word than the name of the file: of many views, the view; or the kinds that a file knows of
PREFIXES = {
    "executor/products.c": "products|dot|matmul|pairs",
    "executor/views.c": "view",
    "value/cycles.c": "cycles|ring",
    "value/numbers.c": "number",
    "value/value.c": "value|details|history|work",
}
# what a type's slot is filled with keeps the type's name: the interpreter calls it, as tp_new, nb_add and the like
IN_SLOT = re.compile(r"\{Py_\w+, (\w+)\}|->tp_\w+ = (\w+);")


def compiler(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.fail(f"{name} is missing; apt-get install {name}")
    return found


def run(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["gcc", "clang"])
@pytest.mark.parametrize("file", FILES)
def test_every_file_compiles_alone(name: str, file: str) -> None:
    """It includes what it uses: nothing is there only because another file came before it."""
    run(compiler(name), *WARNINGS, "-fsyntax-only", *INCLUDES, NATIVE / file)


def test_compiled_one_by_one_they_make_the_module(tmp_path: Path) -> None:
    """What one file promises to the others in a header, it has."""
    alone = [NATIVE / file for file in FILES if file != "one_unit.c"]
    flags = [*WARNINGS, "-O0", "-fPIC", "-fvisibility=hidden", *INCLUDES]
    made = tmp_path / "module.so"
    run(compiler("gcc"), "-shared", *flags, *alone, "-o", made, "-lm")
    ctypes.PyDLL(str(made))  # fails where a name is missing


def test_one_unit_has_every_file() -> None:
    text = (NATIVE / "one_unit.c").read_text()
    assert sorted(FILES) == sorted(["one_unit.c", *(f for f in FILES if f'#include "{f}"' in text)])


@pytest.mark.parametrize("file", [file for file in FILES if file != "one_unit.c"])
def test_a_function_begins_with_the_name_of_its_file(file: str) -> None:
    """Where it is called, it is known where it stands; what Python calls of an Executor may stand in any file."""
    slots = {name for other in FILES for pair in IN_SLOT.findall((NATIVE / other).read_text()) for name in pair}
    prefixes = PREFIXES.get(file, Path(file).stem) + "|executor|PyInit"
    found = DEFINED.findall((NATIVE / file).read_text())
    assert found
    assert [name for name in found if not re.match(f"(?:{prefixes})_", name) and name not in slots] == []


@pytest.mark.parametrize("file", sorted(NATIVE.rglob("*.[ch]")), ids=lambda file: file.relative_to(NATIVE).as_posix())
def test_every_switch_has_a_default(file: Path) -> None:
    """What no case is for does not go on in silence, nor with what happens to be the last case."""
    text = file.read_text()
    assert [text.count("\n", 0, place) + 1 for place in switches(text) if "default:" not in body(text, place)] == []


def switches(text: str) -> list[int]:
    return [found.end() for found in re.finditer(r"\bswitch \(.*\) ", text)]


def body(text: str, place: int) -> str:
    """The block that begins there, without the blocks of other switches in it."""
    depth, made = 0, ""
    for found in re.finditer(r"[{}]|[^{}]+", text[place:]):
        depth += {"{": 1, "}": -1}.get(found[0], 0)
        made += found[0] if depth == 1 else ""
        if not depth:
            return made
    raise AssertionError("a block has no end")


def test_the_check_itself_sees_a_switch_without_a_default() -> None:
    """One that stands in another one's block does not count for it."""
    text = "switch (f(a)) {\ncase 1: {\n    switch (b) {\n    default: break;\n    }\n}\n}\n"
    assert ["default:" in body(text, place) for place in switches(text)] == [False, True]


def test_what_a_kind_of_step_does_is_in_its_file() -> None:
    """Past where an instruction's kind is read, step.c asks the table, so that a new kind needs none of its lines."""
    read = (NATIVE / "executor/step.c").read_text().split("/* The attribute of that name as a tuple")[1]
    assert re.findall(r"\bKIND_\w+", read) == []
