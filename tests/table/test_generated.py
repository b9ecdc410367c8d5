"""What tools/generate.py makes of the table is what the repository holds, and its LaTeX is well formed."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gradwalk.formula import equal, variable, where
from gradwalk.operation import Op
from gradwalk.ops import OPS
from gradwalk.printing import latex
from gradwalk.row_ops import COMPOSITES

ROOT = Path(__file__).resolve().parents[2]
GENERATED = (
    "src/gradwalk/native/formulas_generated.h",
    "src/gradwalk/native/ops_generated.h",
    "src/gradwalk/native/composites_generated.h",
    "src/gradwalk/show/page/composites.js",
    "src/gradwalk/show/page/formulas.js",
    "src/gradwalk/show/page/ops.js",
    "src/gradwalk/show/page/agreement.js",
    "src/gradwalk/_native.pyi",
    "src/gradwalk/functions.pyi",
    "docs/ops.md",
)


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    sys.path.append(str(ROOT / "tools"))  # it has a second part
    spec = importlib.util.spec_from_file_location("generate", ROOT / "tools" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def section(op: Op) -> str:
    """The part of docs/ops.md about one operation."""
    text = (ROOT / "docs" / "ops.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## `(\w+)`\n(.*?)(?=^## |\Z)", text, flags=re.MULTILINE | re.DOTALL))
    return sections[op.name]


def delimiters(text: str) -> list[str]:
    """Braces, \\left, \\right and environments in their order; \\{ and \\} are characters, not delimiters."""
    return re.findall(r"\\left(?![a-z])|\\right(?![a-z])|\\begin\{\w+\}|\\end\{\w+\}|(?<!\\)[{}]", text)


def unclosed(text: str) -> list[str]:
    """What is open at the end, or the first delimiter that closes something else."""
    opened: list[str] = []
    for delimiter in delimiters(text):
        if delimiter in ("{", r"\left") or delimiter.startswith(r"\begin"):
            opened.append(delimiter)
            continue
        expected = {"}": "{", r"\right": r"\left"}.get(delimiter, delimiter.replace(r"\end", r"\begin"))
        if not opened or opened.pop() != expected:
            return [delimiter]
    return opened


def test_every_output_is_listed(generate: ModuleType) -> None:
    """The files compared below are the files the generator writes."""
    assert sorted(GENERATED) == sorted(path.relative_to(ROOT).as_posix() for path in generate.outputs())


@pytest.mark.parametrize("name", GENERATED)
def test_committed_file_is_current(generate: ModuleType, name: str) -> None:
    """A generated file holds, to the byte, what the table says now."""
    expected = generate.outputs()[ROOT / name].encode()
    # the two texts are long: the message, not a diff, is the help
    current = expected == (ROOT / name).read_bytes()
    assert current, f"{name} is not what the table says: run `make generate` and commit the result"


def test_generating_twice_gives_the_same(generate: ModuleType) -> None:
    """The generator has no hidden state: no set order, no counters that go on."""
    assert generate.outputs() == generate.outputs()


@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
def test_documentation_has_every_operation(op: Op) -> None:
    """docs/ops.md says of each operation what it is and gives one local gradient per input."""
    text = section(op)
    assert op.doc in text
    assert [latex(variable(name)) for name in op.inputs] == re.findall(r"\{\\partial ([^=]*)\} = ", text)


@pytest.mark.parametrize(("table", "name", "file"), [(OPS, "exp", "ops"), (COMPOSITES, "mean", "composites")])
def test_what_is_quoted_in_a_doc(
    generate: ModuleType, monkeypatch: pytest.MonkeyPatch, table: dict[str, Any], name: str, file: str
) -> None:
    """Quotes, backslashes and ends of lines stay what they are in C, JavaScript and Python."""
    doc = 'Of "x", \\a of "y"\nand "z"'
    first = doc.splitlines()[0]
    monkeypatch.setitem(table, name, replace(table[name], doc=doc))
    texts = {path.name: text for path, text in generate.outputs().items()}
    for language in (f"{file}_generated.h", f"{file}.js"):
        literals = re.findall(r'"(?:[^"\\\n]|\\.)*"', texts[language])
        assert [first in json.loads(each) for each in literals if r"\\a of" in each] == [True], language
    functions = [each for each in ast.walk(ast.parse(texts["functions.pyi"])) if isinstance(each, ast.FunctionDef)]
    assert first in [ast.get_docstring(function) for function in functions if function.name == name]


LANGUAGES = (
    "all",
    "default",
    "double",
    "fabs",
    "lambda",
    "local_grads",
    "localGrads",
    "Math",
    "new",
    "out",
    "self",
    "t12",
)


@pytest.mark.parametrize(
    ("row", "file", "others"),
    [
        (OPS["leaky_relu"], "ops.js", LANGUAGES[1:]),
        (OPS["leaky_relu"], "formulas_generated.h", ()),
        (COMPOSITES["rmsnorm"], "composites.js", LANGUAGES),
    ],
)
def test_names_that_generated_code_has_for_itself_are_refused(
    generate: ModuleType, row: Any, file: str, others: tuple[str, ...]
) -> None:
    """Those of its variables, of the functions that it calls and of what the languages have."""
    text = next(text for path, text in generate.outputs().items() if path.name == file)
    variables = re.findall(r"(?:const|let|double|int|ptrdiff_t) (\w+) =", text)
    called = re.findall(r"\w+", "".join(re.findall(r"import \{(.*)\}", text)))
    for name in {*variables, *called, *others} - {"PLAIN", "OPS", "COMPOSITES", "xs", "ys"}:
        with pytest.raises(TypeError, match="expected a name that generated code has no use for"):
            replace(row, parameters=(name,))
        with pytest.raises(TypeError, match="expected a name that generated code has no use for"):
            replace(row, inputs=(name,))


def test_an_equality_is_written_as_one() -> None:
    """In formulas, where it is two comparisons of the same numbers."""
    x, y = variable("x"), variable("y")
    assert latex(where(equal(x + y, 0.0), 1.0, x)) == r"\begin{cases}1 & x + y = 0 \\ x & \text{otherwise}\end{cases}"
    assert latex((x <= y) & (y >= x)) == r"x \le y \wedge y \ge x"


@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
def test_documentation_is_balanced(op: Op) -> None:
    """Braces, \\left and \\right, and environments close in the order they opened, in each formula."""
    formulas = re.findall(r"\$\$(.*?)\$\$", section(op), flags=re.DOTALL)
    assert len(formulas) == 1 + len(op.inputs)
    assert [[] for _ in formulas] == [unclosed(formula) for formula in formulas]


@pytest.mark.parametrize("wrong", ["{", "}", r"\left(", r"\right)", r"{\left(}\right)", r"\begin{cases}{\end{cases}}"])
def test_the_check_itself_sees_what_is_wrong(wrong: str) -> None:
    """Unbalanced and crossed delimiters are found."""
    assert unclosed(wrong) != []
