"""Which engine runs: GRADWALK_ENGINE, the fallback and its warning, and a quiet import."""

from __future__ import annotations

import pytest
from measures import python

SHOW = "import gradwalk, gradwalk.engine as e; print(e.NAME, gradwalk.Value.__module__, e.REASON)"
BLOCKED = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name == "gradwalk._native":
            raise ImportError("no native engine here")
sys.meta_path.insert(0, Blocker())
"""


def test_the_native_engine_is_the_default() -> None:
    """Where it was built."""
    assert python(SHOW).stdout == "native gradwalk it was built with the package\n"


@pytest.mark.parametrize("name", ["native", "reference"])
def test_the_environment_decides(name: str) -> None:
    """GRADWALK_ENGINE=native or =reference, without a warning."""
    done = python(SHOW, "-W", "error", GRADWALK_ENGINE=name)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(name)
    assert done.stdout.endswith(f"GRADWALK_ENGINE={name} is set\n")


def test_a_misspelled_engine_is_refused() -> None:
    """Rather than replaced by another one."""
    done = python(SHOW, GRADWALK_ENGINE="natvie")
    assert done.returncode == 1
    assert "GRADWALK_ENGINE: expected one of native, reference, got 'natvie'" in done.stderr


def test_an_empty_choice_is_none() -> None:
    """GRADWALK_ENGINE= is as if it were not set."""
    assert python(SHOW, GRADWALK_ENGINE="").stdout.startswith("native")


def test_the_fallback_says_so_once() -> None:
    """Without the extension the reference engine runs, after one warning that says what to do."""
    code = (
        BLOCKED
        + SHOW
        + "\nimport gradwalk.engine, gradwalk.functions\nx = gradwalk.Value(3.0)\n(x * x).backward()\nprint(x.grad)"
    )
    done = python(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("reference gradwalk.reference the native engine could not be imported")
    assert done.stdout.endswith("6.0\n")
    assert done.stderr.count("GradwalkWarning") == 1
    assert "install a C compiler" in done.stderr


def test_the_fallback_can_be_silenced() -> None:
    """GRADWALK_ENGINE=reference without the extension: no warning."""
    done = python(BLOCKED + SHOW, "-W", "error", GRADWALK_ENGINE="reference")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_browser_is_told_nothing_about_compilers() -> None:
    """In Pyodide there is no compiler to install: no warning."""
    done = python(BLOCKED + "sys.platform = 'emscripten'\n" + SHOW, "-W", "error")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "reference gradwalk.reference there is no native engine in a browser\n"


def test_native_without_the_extension_raises() -> None:
    """GRADWALK_ENGINE=native never falls back."""
    done = python(BLOCKED + SHOW, GRADWALK_ENGINE="native")
    assert done.returncode == 1
    assert "ImportError: no native engine here" in done.stderr


def test_everything_works_on_the_fallback() -> None:
    """Composites, higher order, copies and pickles, without the extension."""
    code = (
        BLOCKED
        + """
import warnings
warnings.simplefilter("ignore")
import copy, pickle, gradwalk
x = gradwalk.Value(2.0)
gradwalk.softmax([x, 1.0])
(x ** 3).backward(create_graph=True)
assert x.grad.data == 12.0
x.grad = 0.0
assert copy.deepcopy(x).data == pickle.loads(pickle.dumps(x)).data == 2.0
"""
    )
    done = python(code)
    assert (done.returncode, done.stderr) == (0, "")


def test_derivatives_on_the_fallback() -> None:
    """Of nested arguments, arrays and one Value given twice; compiled functions are the plain ones."""
    code = (
        BLOCKED
        + """
import warnings
warnings.simplefilter("ignore")
import gradwalk, numpy as np
def f(point, scale): return scale * sum(x * x for x in point["x"]) + point["y"][0]
assert gradwalk.grad(f)({"x": [1.0, 2], "y": np.array([3.0])}, 2.0) == {"x": [4.0, 8.0], "y": np.array([1.0])}
assert gradwalk.hessian(lambda xs: xs[0] * xs[1])(np.array([1.0, 2.0])).tolist() == [[0.0, 1.0], [1.0, 0.0]]
x = gradwalk.Value(3.0)
gradwalk.compile(lambda a, b: a * b)(x, x).backward()
assert x.grad == 6.0
assert gradwalk.compile(lambda xs: xs[0] * xs[1]).value_and_grad([2.0, x]) == (6.0, [3.0, 2.0])
assert gradwalk.compile(lambda xs, y: (xs * y).sum())(np.array([1.0, 2.0]), x).data == 9.0
outs = gradwalk.compile(lambda xs: xs[0] * xs[1]).map([[1.0, 2.0], [3.0, 4.0]])
assert [out.data for out in outs] == [2.0, 12.0]
def without_gradient(x):
    with gradwalk.no_grad():
        return x * 2.0
try:
    gradwalk.compile(without_gradient)(1.0)
except TypeError as error:
    assert "uses no_grad() inside" in str(error)
else:
    raise AssertionError
"""
    )
    done = python(code)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", ["native", "reference"])
def test_import_is_quiet(name: str) -> None:
    """`import gradwalk` under -W error prints nothing."""
    done = python("import gradwalk", "-W", "error", GRADWALK_ENGINE=name)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_import_is_light() -> None:
    """Neither NumPy nor rich is loaded by `import gradwalk`, nor by using it."""
    code = (
        "import sys, gradwalk; x = gradwalk.Value(2.0); gradwalk.softmax([x, x])[0].backward(); "
        "print([m for m in ('numpy', 'rich', 'click', 'safetensors') if m in sys.modules])"
    )
    assert python(code).stdout == "[]\n"


def test_a_part_that_cannot_be_imported_says_so_itself() -> None:
    """Only NumPy and SciPy are told to be installed."""
    done = python("import sys, gradwalk\nsys.modules['gradwalk.statistics'] = None\ngradwalk.statistics")
    assert done.stderr.endswith("ModuleNotFoundError: import of gradwalk.statistics halted; None in sys.modules\n")


def test_micrograds_import_path() -> None:
    """from gradwalk.engine import Value, as with micrograd."""
    done = python("from gradwalk.engine import Value; import gradwalk; print(Value is gradwalk.Value)")
    assert done.stdout == "True\n"


def test_values_of_two_engines_do_not_mix() -> None:
    """A Value of one engine is no number for the other."""
    code = """
from gradwalk import engine
a, b = engine.load("native").Value(1.0), engine.load("reference").Value(1.0)
for make in (lambda: a + b, lambda: b + a, lambda: a < b, lambda: a.atan2(b), lambda: type(a)(1.0, (b,))):
    try:
        make()
    except TypeError:
        print("refused")
"""
    assert python(code).stdout == "refused\n" * 5


def test_kernels_are_chosen_by_the_environment() -> None:
    """GRADWALK_KERNELS=baseline: compiled functions give the same bits on every processor; a wrong name is refused."""
    code = (
        "import gradwalk; f = gradwalk.compile(lambda xs: gradwalk.sum([gradwalk.exp(x) * x for x in xs]));"
        "f([0.1 * i for i in range(9)]); from gradwalk import _native;"
        "print(_native.KERNELS)"
    )
    assert python(code, GRADWALK_KERNELS="baseline").stdout == "baseline\n"


@pytest.mark.parametrize("wanted", [{}, {"GRADWALK_ENGINE": "native"}])
def test_misspelt_kernels_are_refused(wanted: dict[str, str]) -> None:
    """With the names there are, and no advice about compilers: nothing is missing, and nothing slower is taken."""
    done = python("import gradwalk", GRADWALK_KERNELS="axv2", **wanted)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ImportError: GRADWALK_KERNELS: expected one of ['")
    assert last.endswith("'baseline'] on this machine, got 'axv2'")
