"""What Python people expect of any package: help, signatures, dir, import *, pickles, a category of warnings."""

from __future__ import annotations

import builtins
import inspect
import multiprocessing
import pickle
import pydoc
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gradwalk
import gradwalk.engine
from gradwalk import composites
from gradwalk.ops import OPERATORS, OPS


def cube(x: float) -> float:
    return x**3


def pair(x: float) -> list[float]:
    return [x * x, gradwalk.exp(x)]


@gradwalk.compile
def compiled(x: float) -> float:
    return x**3


DERIVATIVES: list[Callable[..., Any]] = [
    gradwalk.grad(cube),
    gradwalk.grad(gradwalk.grad(cube)),
    gradwalk.value_and_grad(cube),
    gradwalk.jacobian(pair),
    gradwalk.hessian(cube),
    compiled,
    gradwalk.compile(cube, exact=True),
    gradwalk.grad(compiled),
    gradwalk.grad(gradwalk.compile(cube)),
]


def number_of(result: Any) -> Any:
    return result.data if isinstance(result, gradwalk.Value) else result


def called(given: tuple[Callable[..., Any], float]) -> Any:
    return number_of(given[0](given[1]))


@pytest.mark.parametrize("function", DERIVATIVES, ids=lambda function: type(function).__name__)
def test_pickles(function: Callable[..., Any]) -> None:
    """Derivatives and compiled functions of functions that pickle."""
    assert called((pickle.loads(pickle.dumps(function)), 2.0)) == called((function, 2.0))


def test_products_pickle() -> None:
    """jvp, vjp and hvp do too."""
    for product in (gradwalk.jvp(pair), gradwalk.vjp(pair), gradwalk.hvp(cube)):
        direction: Any = [1.0, 0.0] if product._what == "vjp" else 1.0
        assert pickle.loads(pickle.dumps(product))(2.0, direction) == product(2.0, direction)


def test_go_through_a_spawn_pool() -> None:
    """To processes that start from nothing."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.map(called, [(function, 2.0) for function in DERIVATIVES])
    assert found == [called((function, 2.0)) for function in DERIVATIVES]


def test_dir_is_for_users() -> None:
    """It lists what the documentation talks about; each of it is there, and has documentation."""
    listed = dir(gradwalk)
    assert {"Value", "exp", "grad", "compile", "nn", "optim", "GradwalkWarning", "__version__"} <= {*listed}
    assert not {"engine", "errors", "formula", "Any", "TYPE_CHECKING", "import_module", "did_you_mean"} & {*listed}
    assert [name for name in listed if not (getattr(gradwalk, name).__doc__ or "").strip()] == []


def test_import_star_shadows_no_builtin() -> None:
    """`from gradwalk import *` leaves sum, abs, pow and compile as they are; and brings no module."""
    program = "before = set(dir()); from gradwalk import *; print(*sorted(set(dir()) - before - {'before'}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    brought = done.stdout.split()
    assert {"Value", "softmax", "grad", "maximum"} <= {*brought}
    assert not {*brought} & {*dir(builtins), "math", "nn", "TYPE_CHECKING"}


@pytest.mark.parametrize("engine_name", gradwalk.engine.ENGINES)
def test_signatures(engine_name: str) -> None:
    """Every function, and every method of a Value, tells its arguments by the names that the table has."""
    module = gradwalk.engine.load(engine_name)
    for op in OPS.values():
        names = list(op.names)
        assert list(inspect.signature(module.FUNCTIONS[op.name]).parameters) == names
        for name in {op.name, *op.aliases} - {*OPERATORS}:
            assert list(inspect.signature(getattr(module.Value, name)).parameters)[1:] == names[1:]
    functions = vars(composites.for_engine(engine_name))
    assert [name for name, function in functions.items() if not inspect.signature(function).parameters] == []
    assert "(xs, eps=1e-05)" in str(inspect.signature(functions["rmsnorm"]))
    assert next(iter(inspect.signature(module.Value).parameters)) == "data"


@pytest.mark.parametrize("engine_name", gradwalk.engine.ENGINES)
def test_what_a_value_has_is_documented(engine_name: str) -> None:
    """Each method has a signature, and all that is for users says what it is. (What others hung on it is theirs.)"""
    value = gradwalk.engine.load(engine_name).Value
    asked = f"from gradwalk import engine; print(*dir(engine.load({engine_name!r}).Value))"
    told = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout
    names = [name for name in told.split() if not name.startswith("__")]
    for method in filter(callable, (getattr(value, name) for name in names)):
        inspect.signature(method)
    assert [name for name in names if name[0] != "_" and not inspect.getdoc(getattr(value, name))] == []


def test_help() -> None:
    """help() shows what a function takes and does."""
    assert "exp(x, /)\n    Exponential." in pydoc.render_doc(gradwalk.exp, renderer=pydoc.plaintext)
    text = pydoc.render_doc(gradwalk.Value, renderer=pydoc.plaintext)
    assert "class Value" in text
    assert "Value(data, _children=(), _op='', label='', *, children=(), local_grads=())" in text
    assert "leaky_relu(self, slope=0.01, /)" in text
    assert "(x: 'float')" in str(inspect.signature(gradwalk.grad(cube)))
    assert "(x: 'float')" in str(inspect.signature(compiled))


def test_attribute_that_does_not_exist() -> None:
    """The one that was meant is named."""
    with pytest.raises(AttributeError, match="did you mean 'tanh'"):
        gradwalk.tahn  # noqa: B018
    with pytest.raises(AttributeError, match="did you mean 'softmax'"):
        gradwalk.sofmax  # noqa: B018


def test_warnings_have_a_category() -> None:
    """Of their own, so that nobody else's is silenced with it."""
    keeps_changing = gradwalk.compile(lambda x, n: x * sum(range(n)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in range(12):
            keeps_changing(float(n), n)
    assert {warning.category for warning in caught} == {gradwalk.GradwalkWarning}


def test_every_warning_is_of_that_category() -> None:
    """There is no `warnings.warn` with another one."""
    from pathlib import Path

    for path in Path(gradwalk.__file__).parent.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert text.count("warnings.warn(") <= text.count("GradwalkWarning"), path
        assert "RuntimeWarning" not in text or path.name == "errors.py", path


def test_one_topic_per_file() -> None:
    """No file of the package that people write has more than 600 lines."""
    package = Path(__file__).parents[1] / "src" / "gradwalk"
    sources = [path for kind in ("py", "c", "h", "js", "css") for path in package.rglob(f"*.{kind}")]
    assert len(sources) > 200
    texts = {path.name: path.read_text(encoding="utf-8") for path in sources}
    assert {
        name for name, text in texts.items() if text.count("\n") > 600 and "made by tools" not in text[:400]
    } == set()
