"""docs/contributing.md, followed to the letter in a copy of the tree: an operation and a composite."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from py_mini_racer import MiniRacer

ROOT = Path(__file__).resolve().parents[2]
XS = [0.3, -1.2, 2.0, -900.0]
# rows and declarations of shapes that the tables have none of
MORE_OPERATIONS = """
    Op(
        "product_apart",
        inputs=("x", "y"),
        parameters=("least",),
        defaults=(0.5,),
        forward=lambda x, y, least: where(absolute(x - y) < least, 0.0, x * y),
        local_grads=lambda x, y, least, out: (
            where(absolute(x - y) < least, 0.0, y),
            where(absolute(x - y) < least, 0.0, x),
        ),
        jumps=lambda x, y, least: absolute(absolute(x - y) - least),
        samples=((-2.0, 0.5, 0.5), (0.1, 0.3, 0.5), (2.0, 1.5, 0.2)),
        doc="The product, but 0 of two that are closer than `least`.",
    ),
"""
MORE_COMPOSITES = """
    Composite(
        "mean_square_distance",
        inputs=("xs", "ys"),
        forward=lambda xs, ys: _mean_of((xs - ys) * (xs - ys)),
        local_grads=lambda xs, ys, out: (div(2.0 * (xs - ys), count(xs)), div(2.0 * (ys - xs), count(xs))),
        doc="The mean of squared differences.",
    ),
    Composite(
        "pseudo_huber",
        parameters=("delta",),
        forward=lambda xs, delta: _mean_of(delta * (sqrt(delta * delta + xs * xs) - delta)),
        local_grads=lambda xs, delta, out: div(div(delta * xs, sqrt(delta * delta + xs * xs)), count(xs)),
        doc="A mean of lengths that are squares near 0.",
    ),
    Composite(
        "shares",
        per_entry=True,
        parameters=("eps",),
        defaults=(0.1,),
        keeps=lambda xs, eps: (total(xs * xs) + eps, xs * xs),
        forward=lambda xs, i, eps, sum, squares: div(at(squares, i), sum),
        local_grads=lambda xs, i, eps, sum, squares, out: 2.0 * (hot(xs, i, div(1.0, sum)) - div(out, sum)) * xs,
        doc="Each square's share of their sum.",
    ),
    Composite(
        "margin",
        target="target",
        forward=lambda xs, i: total(exp(xs - at(xs, i))),
        local_grads=lambda xs, i, out: exp(xs - at(xs, i)) - hot(xs, i, out),
        doc="How much larger the others are.",
    ),
    Composite(
        "mean_excess",
        parameters=("most",),
        forward=lambda xs, most: _mean_of(where(xs > most, xs - most, 0.0)),
        local_grads=lambda xs, most, out: div(where(xs > most, 1.0, 0.0), count(xs)),
        edges=lambda xs, most: at(absolute(xs - most), first_smallest(absolute(xs - most))),
        doc="How much is above a limit, with a kink there.",
    ),
    Composite(
        "share_above",
        parameters=("limit",),
        forward=lambda xs, limit: _mean_of(where(xs > limit, 1.0, 0.0)),
        local_grads=lambda xs, limit, out: 0.0,
        edges=lambda xs, limit: at(absolute(xs - limit), first_smallest(absolute(xs - limit))),
        doc="How many are above a limit, with a jump there.",
    ),
    Composite(
        "squares_beyond",
        padding="zero",
        parameters=("radius",),
        forward=lambda xs, radius: total(where(absolute(xs) > radius, xs * xs - radius * radius, 0.0)),
        local_grads=lambda xs, radius, out: where(absolute(xs) > radius, 2.0 * xs, 0.0),
        edges=lambda xs, radius: at(
            distances := absolute(absolute(xs) - radius),
            first_smallest(distances),
        ),
        doc="A sum of what is far out.",
    ),
    Composite(
        "square_distance",
        inputs=("xs", "ys"),
        padding="zero",
        forward=lambda xs, ys: total((xs - ys) * (xs - ys)),
        local_grads=lambda xs, ys, out: (2.0 * (xs - ys), 2.0 * (ys - xs)),
        doc="The sum of squared differences.",
    ),
    Composite(
        "most_below",
        inputs=("xs", "ys"),
        padding="first",
        keeps=lambda xs, ys: (first_largest(ys - xs),),
        forward=lambda xs, ys, place: at(ys, place) - at(xs, place),
        local_grads=lambda xs, ys, place, out: (hot(xs, place, -1.0), hot(ys, place)),
        edges=lambda xs, ys: at(
            leads := at(ys - xs, place := first_largest(ys - xs)) - (ys - xs) + hot(xs, place, 1e300),
            first_smallest(leads),
        ),
        doc="How far the first list is below the second, at most.",
    ),
    Composite(
        "gibbs",
        per_entry=True,
        padding="absent",
        parameters=("beta",),
        keeps=lambda xs, beta: (total(exp(beta * (xs - shift(xs)))), exp(beta * (xs - shift(xs)))),
        forward=lambda xs, i, beta, sum, weights: div(at(weights, i), sum),
        local_grads=lambda xs, i, beta, sum, weights, out: beta * (hot(xs, i, out) - div(out * weights, sum)),
        doc="A softmax with a temperature.",
    ),
    Composite(
        "at_most_the_last",
        per_entry=True,
        chooses=True,
        forward=lambda xs, i: where(at(xs, i) < (last := at(xs, count(xs) - 1.0)), at(xs, i), last),
        local_grads=lambda xs, i, out: where(
            at(xs, i) < at(xs, count(xs) - 1.0), hot(xs, i), hot(xs, count(xs) - 1.0)
        ),
        doc="The smaller of each entry and the last.",
    ),
    Composite(
        "half_of_largest",
        chooses=True,
        keeps=lambda xs: (first_largest(xs),),
        forward=lambda xs, place: 0.5 * at(xs, place),
        local_grads=lambda xs, place, out: hot(xs, place, 0.5),
        edges=lambda xs: at(
            leads := at(xs, place := first_largest(xs)) - xs + hot(xs, place, 1e300),
            first_smallest(leads),
        ),
        doc="Which is no entry.",
    ),
"""
NAMES = (
    "hardshrink",
    "product_apart",
    "logcosh_mean",
    "mean_square_distance",
    "pseudo_huber",
    "shares",
    "margin",
    "mean_excess",
    "share_above",
    "squares_beyond",
    "square_distance",
    "most_below",
    "gibbs",
    "at_most_the_last",
    "half_of_largest",
)


def blocks() -> list[str]:
    """The row and the declaration that the page shows."""
    text = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    return re.findall(r"^```py\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def add_row(path: Path, block: str) -> None:
    """The block's imports go to the imports, the rest to the end of the table."""
    imports = "".join(line for line in block.splitlines(True) if line.startswith("from "))
    row = block.replace(imports, "").strip().rstrip(",") + ","
    text = path.read_text(encoding="utf-8")
    before, rest = text.split("\n_ROWS = (\n")
    rows, after = rest.split("\n)\n", 1)
    before = before.replace("\nfrom gradwalk.", f"\n{imports}from gradwalk.", 1)
    path.write_text(f"{before}\n_ROWS = (\n{rows}\n{row}\n)\n{after}", encoding="utf-8")


def run(tree: Path, *command: str, engine: str = "native") -> str:
    """What the command prints in the copy; it has to succeed."""
    environment = os.environ | {"PYTHONPATH": str(tree / "src"), "GRADWALK_ENGINE": engine}
    done = subprocess.run(
        [sys.executable, *command], cwd=tree, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree with these rows and declarations more, generated and built."""
    tree = tmp_path_factory.mktemp("contributed")
    for name in ("src", "tools", "docs", "tests"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__"))
    for name in ("setup.py", "pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, tree)
    operation, composite = blocks()
    for name, added in (("ops", (operation, MORE_OPERATIONS)), ("row_ops", (composite, MORE_COMPOSITES))):
        for block in added:
            add_row(tree / f"src/gradwalk/{name}.py", block)
    run(tree, "tools/generate.py", engine="reference")
    run(tree, "setup.py", "-q", "build_ext", "--inplace", engine="reference")
    return tree


@pytest.mark.unsanitized
@pytest.mark.parametrize("engine", ["native", "reference"])
def test_right_in_every_mode(tree: Path, engine: str) -> None:
    """Plain, compiled, exact, in a batch, in many rows, at the jump, and to second order."""
    script = str(ROOT / "tests" / "contributing" / "every_mode.py")
    assert run(tree, script, *NAMES, engine=engine).strip() == ""


@pytest.mark.unsanitized
def test_right_in_the_tests_of_the_tables(tree: Path) -> None:
    """What `make test` asks of each of them, and of the tables as a whole."""
    asked = f"not [ or {' or '.join(NAMES)}"
    files = ("tests/table", "tests/engine/test_parity.py", "tests/engine/test_higher_order.py")
    print(run(tree, "-m", "pytest", "-q", "-k", asked, *files))


@pytest.mark.unsanitized
@pytest.mark.parametrize("engine", ["native", "reference"])
def test_functions_for_people(tree: Path, engine: str) -> None:
    """By name, with the default, on numbers that would overflow."""
    script = f"import gradwalk; print([*map(gradwalk.hardshrink, {XS}), gradwalk.logcosh_mean({XS})])"
    *shrunk, mean = json.loads(run(tree, "-c", script, engine=engine))
    assert shrunk == [0.0, -1.2, 2.0, -900.0]
    assert mean == pytest.approx(sum(abs(x) + math.log1p(math.exp(-2.0 * abs(x))) - math.log(2.0) for x in XS) / 4.0)


@pytest.mark.unsanitized
def test_right_on_the_page(tree: Path) -> None:
    """Both in JavaScript: values and local gradients."""
    modules = run(tree, "-c", "from gradwalk.show.play import script; print(script('ops', 'composites'))")
    op, row = "module_ops.OPS.hardshrink", "module_composites.COMPOSITES.logcosh_mean"
    with MiniRacer() as v8:
        v8.eval(modules)
        found = json.loads(
            v8.eval(
                f"JSON.stringify([{op}.forward(2, 1.5), {op}.forward(1, 1.5), {op}.localGrads(2, 1.5, 2)[0],"
                f"{row}.forward([0.3, -1.2]), ...{row}.localGrads([0.3, -1.2], 0)])"
            )
        )
    value = (math.log(math.cosh(0.3)) + math.log(math.cosh(1.2))) / 2.0
    assert found == pytest.approx([2.0, 0.0, 1.0, value, math.tanh(0.3) / 2.0, math.tanh(-1.2) / 2.0])


@pytest.mark.unsanitized
def test_documented(tree: Path) -> None:
    """Both are in docs/ops.md and in the type stub."""
    for path in ("docs/ops.md", "src/gradwalk/functions.pyi"):
        text = (tree / path).read_text(encoding="utf-8")
        assert "hardshrink" in text
        assert "logcosh_mean" in text
