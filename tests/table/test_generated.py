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

from gradwalk.formula import absolute, equal, exp, variable, where
from gradwalk.operation import Op
from gradwalk.ops import OPS
from gradwalk.printing import latex
from gradwalk.row_formula import at, first_largest, first_smallest, hot, is_row, shift, total
from gradwalk.row_ops import COMPOSITES, Composite

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


def at_extremes(xs: Any) -> Any:
    return at(xs, first_largest(absolute(xs))) - at(xs, first_smallest(xs))


@pytest.mark.parametrize(
    ("forward", "local_grads", "formula", "slope", "of_the_chosen"),
    [
        (
            at_extremes,
            lambda xs, out: hot(xs, first_largest(absolute(xs))) - hot(xs, first_smallest(xs)),
            r"x_{\operatorname{argmax}_{j} \left|x_{j}\right|} - \left(\min_{j} x_{j}\right)",
            r"[j = \operatorname{argmax}_{k} \left|x_{k}\right|] - [j = \operatorname{argmin}_{k} x_{k}]",
            r"[j = \operatorname{argmax}_{k} \left|x_{k}\right|] - [j = \operatorname{argmin}_{k} x_{k}]",
        ),
        (
            lambda xs: at(absolute(xs), first_largest(absolute(xs))) + shift(xs),
            lambda xs, out: hot(xs, first_largest(absolute(xs)), 0.5),
            r"\left(\max_{j} \left|x_{j}\right|\right) + \left(\max_{j} x_{j}\right)",
            "0",
            "0.5",
        ),
        (
            lambda xs: total(exp(xs - shift(xs))),
            lambda xs, out: exp(xs - shift(xs)) + hot(xs, 0.0),
            r"\sum_{j} \exp\left(x_{j} - \left(\max_{k} x_{k}\right)\right)",
            r"\exp\left(x_{j} - \left(\max_{k} x_{k}\right)\right) + [j = 0]",
            r"\exp\left(x_{j} - \left(\max_{k} x_{k}\right)\right) + [j = 0]",
        ),
        (
            lambda xs: total(xs * total(xs * total(xs))),
            lambda xs, out: total(xs * total(xs)),
            r"\sum_{j} x_{j} \cdot \left(\sum_{k} x_{k} \cdot \left(\sum_{l} x_{l}\right)\right)",
            r"\sum_{k} x_{k} \cdot \left(\sum_{l} x_{l}\right)",
            r"\sum_{k} x_{k} \cdot \left(\sum_{l} x_{l}\right)",
        ),
    ],
    ids=["another's largest", "the largest", "shifted", "sums of sums"],
)
def test_formulas_over_rows_mean_what_is_computed(
    generate: ModuleType, forward: Any, local_grads: Any, formula: str, slope: str, of_the_chosen: str
) -> None:
    """Of a declaration without `shown`: which entry is meant is said, and where it is one of several."""
    row = Composite("row", forward=forward, local_grads=local_grads, doc="")
    assert generate.row_forward_latex(row) == formula
    found = [generate.row_local_grads_latex(row, is_hot) for is_hot in (None, False, True)]
    assert found[1:] == [[slope], [of_the_chosen]]
    assert found[0] == ([r"0.5 \cdot [j = \operatorname{argmax}_{k} \left|x_{k}\right|]"] if slope == "0" else [slope])


def test_a_long_name_is_one_name(generate: ModuleType) -> None:
    """Of a parameter: no product of its letters."""
    row = Composite(
        "row",
        parameters=("width", "p"),
        forward=lambda xs, width, p: total(width * xs) + p,
        local_grads=lambda xs, width, p, out: width * out,
        doc="",
    )
    assert generate.row_forward_latex(row) == r"\sum_{j} \mathit{width} \cdot x_{j} + p"
    assert generate.row_local_grads_latex(row) == [r"\mathit{width} \cdot \mathit{out}"]


@pytest.mark.parametrize("name", ["at", "count", "shift", "total"])
def test_a_row_may_have_the_name_of_a_function_over_rows(name: str) -> None:
    """It is a row all the same."""
    row = Composite("row", inputs=(name,), forward=total, local_grads=lambda xs, out: 2.0 * xs, doc="")
    assert is_row(row.slopes[0])


def test_an_entry_beside_the_place_is_not_the_chosen_one(generate: ModuleType) -> None:
    """Of an output for each entry, the chosen one is that of the same place."""
    row = Composite(
        "row",
        per_entry=True,
        forward=lambda xs, i: at(xs, i) - at(xs, i + 1.0),
        local_grads=lambda xs, i, out: hot(xs, i) - hot(xs, i + 1.0),
        doc="",
    )
    found = [generate.row_local_grads_latex(row, is_hot) for is_hot in (None, False, True)]
    assert found == [["[j = i] - [j = i + 1]"], ["-[j = i + 1]"], ["1 - [j = i + 1]"]]


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
    inputs = [name for each in COMPOSITES.values() for name in each.inputs]
    for name in {*variables, *called, *others} - {"PLAIN", "OPS", "COMPOSITES", *inputs}:
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
