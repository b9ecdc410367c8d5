"""`gradwalk run` of more than a script: a module, a folder, a zip file, a notebook; workers; --report."""

from __future__ import annotations

import json
import math
import pathlib
import py_compile
import random
import zipfile

import pytest
from running import LECTURE_CLASS, MICROGPT_CLASS, TELL_CLASS, assert_same, outcome, with_gradwalk, with_python, write

from gradwalk import engine
from gradwalk.run import report, stand_in
from gradwalk.run.notebook import Notebook

ABOUT = "import sys\nprint(__name__, __package__, sys.argv[1:], sys.argv[0].rpartition('/')[2], __spec__ is None)\n"


pytestmark = pytest.mark.usefixtures("folder")


def test_module():
    """-m runs a module of a package as python -m does, and replaces its class."""
    write("package/__init__.py", "")
    write("package/main.py", ABOUT)
    assert_same("-m", "package.main", "--its", "option")
    write("package/main.py", LECTURE_CLASS + TELL_CLASS)
    assert with_gradwalk("-m", "package.main").stdout == "gradwalk\n"


def test_missing_module():
    """A module that is not there ends as with python -m."""
    process = with_gradwalk("-m", "no_such_module")
    assert process.returncode == 1
    assert "No module named no_such_module" in process.stderr


def test_folder_and_zip_file():
    """A folder or zip file with a __main__.py runs as with python; a class in it is replaced."""
    write("program/__main__.py", ABOUT)
    assert_same("program", "x")
    write("program/__main__.py", "from own import Value\n" + TELL_CLASS)
    write("program/own.py", LECTURE_CLASS)
    assert with_gradwalk("program").stdout == "gradwalk\n"
    with zipfile.ZipFile("program.zip", "w") as packed:
        for path in pathlib.Path("program").glob("*.py"):
            packed.write(path, path.name)
    assert with_gradwalk("program.zip").stdout == "gradwalk\n"


def test_module_without_its_source():
    """There is nothing to compile anew: its class is what it was."""
    write("own.py", LECTURE_CLASS)
    py_compile.compile("own.py", "own.pyc", doraise=True)
    pathlib.Path("own.py").unlink()
    write("s.py", "from own import Value\nprint(Value(2.0) * 3)\n" + TELL_CLASS)
    assert_same("s.py")


def test_data_of_a_package():
    """It is read by the package's own loader, whether its class was replaced or not."""
    write("own/__init__.py", MICROGPT_CLASS)
    write("own/words.txt", "one two")
    write("s.py", "import pkgutil\nprint(pkgutil.get_data('own', 'words.txt'))\nfrom own import Value\n" + TELL_CLASS)
    assert with_gradwalk("s.py").stdout == "b'one two'\ngradwalk\n"


def notebook(*cells):
    content = [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]
    content.insert(1, {"cell_type": "markdown", "source": ["not *code*"]})
    pathlib.Path("n.ipynb").write_text(json.dumps({"cells": content}), encoding="utf-8")


def test_notebook():
    """Cells run in order, what they end with is printed, and every definition of the class is replaced."""
    notebook(
        "%matplotlib inline\n" + LECTURE_CLASS,
        "a = Value(2.0)\na",
        "a * 3;",
        LECTURE_CLASS.replace("Value(data=", "Node(").replace("{self.data})", "{self.data})"),
        "!pip install nothing\nb = Value(3.0) + 1\nb",
        TELL_CLASS,
    )
    process = with_gradwalk("n.ipynb")
    assert process.stdout == "Value(data=2.0)\nNode(4.0)\ngradwalk\n"
    assert "gradwalk: n: left out %matplotlib inline\n" in process.stderr
    assert "gradwalk: n: left out !pip install nothing\n" in process.stderr


def test_notebook_saves_pictures():
    """A display that is a picture is saved, under the notebook's name."""
    notebook("class Picture:\n    def _repr_svg_(self): return '<svg/>'", "Picture()", "display(Picture(), 'text')")
    process = with_gradwalk("n.ipynb")
    assert process.stdout == "'text'\n"
    assert [pathlib.Path(f"n-{i}.svg").read_text() for i in (1, 2)] == ["<svg/>", "<svg/>"]
    assert "gradwalk: saved n-1.svg\n" in process.stderr


def test_what_gradwalk_imports_from_the_future_is_not_the_notebooks():
    notebook("def f(x: 1 + 1): pass\nf.__annotations__")
    assert with_gradwalk("n.ipynb").stdout == "{'x': 2}\n"


def test_notebook_with_cell_magics():
    """Those that time or capture are left off, cells in another language left out; inside a string it is none."""
    notebook("%%time\nprint(1)", "%%bash\nls", 'print("""\n%no command\n""")')
    process = with_gradwalk("n.ipynb")
    assert process.stdout == "1\n\n%no command\n\n"
    assert process.stderr == "gradwalk: n: left out a cell with %%bash\n"


def test_notebook_saves_figures():
    """What is open in matplotlib after a cell is saved, and closed."""
    write("matplotlib/__init__.py", "")
    write("matplotlib/pyplot.py", """\
        class Figure:
            def savefig(self, content, format): content.write(format.encode())
        figures = {7: Figure()}
        figure, get_fignums, close = figures.get, lambda: list(figures), figures.pop
        """)  # fmt: skip
    notebook("import matplotlib.pyplot as plt", "print(plt.get_fignums())")
    assert with_gradwalk("n.ipynb").stdout == "[]\n"
    assert pathlib.Path("n-1.png").read_text() == "png"


def test_notebook_that_fails():
    """The traceback shows the cell's line; what is no notebook is one line and status 2."""
    notebook("x = 1", "y = x\n1 / 0")
    process = with_gradwalk("n.ipynb")
    assert process.returncode == 1
    assert 'n.ipynb[2]", line 2, in <module>\n    1 / 0' in process.stderr
    pathlib.Path("n.ipynb").write_text("[" * 100_000, "utf-8")
    process = with_gradwalk("n.ipynb")
    assert (process.returncode, process.stderr.count("\n")) == (2, 1)
    assert process.stderr.startswith(
        f"gradwalk: {pathlib.Path('n.ipynb').resolve()}: expected a notebook, got Recursion"
    )


HOSTILE = (None, True, 0, 10**400, 1e308, "", "code", "\x1b[2J", "\0", "\ud800", [], [[]], [1], {}, {"a": 1})


def is_read_or_refused(content, capsys):
    """Whether its cells are texts, or there is one line and status 2."""
    pathlib.Path("n.ipynb").write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    try:
        return all(type(cell) is str for cell in Notebook("n.ipynb", {}, False).cells)
    except SystemExit as left:
        said = capsys.readouterr().err
        assert not set(said) & set("\x1b\0"), said
        return (left.code, said.count("\n"), said[:19]) == (2, 1, "gradwalk: n.ipynb: ")


def test_notebooks_that_are_damaged(folder, capsys):
    """Any bit flipped, any part cut out, anything in the place of anything."""
    good = {"cells": [{"cell_type": "code", "source": ["x = 1\n", "x"], "outputs": []},
                      {"cell_type": "markdown", "source": "text"}, {"cell_type": "code", "source": "x"}],
            "nbformat": 4}  # fmt: skip
    whole, source = json.dumps(good).encode(), random.Random(3)
    assert is_read_or_refused(whole, capsys)
    for place in range(len(whole)):
        for bit in range(8):
            damaged = bytearray(whole)
            damaged[place] ^= 1 << bit
            assert is_read_or_refused(bytes(damaged), capsys)
        for cut in (whole[:place], whole[:place] + whole[place + source.randrange(30) :],
                    whole[:place] + source.randbytes(9) + whole[place:]):  # fmt: skip
            assert is_read_or_refused(cut, capsys)
    for value in HOSTILE:
        cells = [{"cell_type": "code", "source": value}, {"cell_type": value, "source": "x"}, {"source": "x"},
                 {"cell_type": "code"}, {"cell_type": "code", "source": [value]}, value]  # fmt: skip
        for content in (value, [value], {"cells": value}, *({"cells": [cell]} for cell in cells)):
            assert is_read_or_refused(content, capsys)
    for deep in (b"[" * 100_000, b'{"cells":' * 100_000, b'{"cells": [' + b"[" * 100_000, b"9" * 10_000):
        assert is_read_or_refused(deep, capsys)


@pytest.mark.parametrize("cell", ["(" * 3000, "x = 1\n!" + "(" * 3000], ids=repr)
def test_cells_that_are_no_python(cell):
    """What Python says of them, and nothing from below."""
    notebook("print(1)", cell)
    process = with_gradwalk("n.ipynb")
    assert (process.stdout, process.returncode) == ("1\n", 1) or process.returncode == 0
    assert "notebook.py" not in process.stderr


def script_with_workers(method):
    write(
        "s.py",
        MICROGPT_CLASS
        + f"""
def squared(x):
    y = Value(x) * x
    y.backward()
    return Value(y.data), Value.__mro__[1].__module__.partition('.')[0]

if __name__ == '__main__':
    import multiprocessing
    with multiprocessing.get_context('{method}').Pool(2) as pool:
        print([(v.data, type(v) is Value, where) for v, where in pool.map(squared, [2.0, 3.0])])
        pool.close()
        pool.join()
""",
    )


@pytest.mark.parametrize("character", ["\0", "\ud800"], ids=ascii)
def test_notebook_with_what_is_no_text(character):
    """No Python can be made of it: one line."""
    notebook("print(1)", f"x = '{character}'")
    process = with_gradwalk("n.ipynb")
    assert (process.stdout, process.returncode, process.stderr.count("\n")) == ("", 2, 1)
    assert ": expected a notebook, got " in process.stderr


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_workers(method):
    """Workers see the class that the script sees, and hand its objects back; nothing is said twice."""
    script_with_workers(method)
    plain, process = with_python("s.py"), with_gradwalk("s.py")
    assert plain.stdout.replace("builtins", "gradwalk") == process.stdout
    assert process.stderr.count("\n") == 1


def test_workers_of_a_module():
    """-m: they import it by its name."""
    script_with_workers("spawn")
    process = with_gradwalk("-m", "s")
    assert process.stdout == "[(4.0, True, 'gradwalk'), (9.0, True, 'gradwalk')]\n"
    assert process.stderr.count("\n") == 1


OF_A_CELL = """\
import multiprocessing, own
def squared(x): return x * x
class Named:
    def __init__(self, x): self.x = x
def starting(): pass
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
@pytest.mark.parametrize(
    ("settings", "work", "name"),
    [("", "pool.map(squared, [1, 2])", "squared"), ("", "pool.apply_async(squared, (1,)).get()", "squared"),
     ("", "list(pool.imap_unordered(own.doubled, [Named(2)]))", "Named"), ("", "pool.map(str, [Named])", "Named"),
     (", starting", "pool.map(own.doubled, [1, 2])", "starting"), ("", "pool.map(lambda x: x, [1])", "<lambda>")],
)  # fmt: skip
def test_workers_of_a_notebook_have_not_run_its_cells(method, settings, work, name):
    """What a cell defines cannot go to one that is spawned: that is said at once, with what to do."""
    write("own.py", "def doubled(x): return x + x")
    context = f"multiprocessing.get_context({method!r})"
    notebook(OF_A_CELL, f"with {context}.Pool(2{settings}) as pool:\n    print({work})", "print('on')")
    process = with_gradwalk("n.ipynb")
    assert (process.stdout, process.returncode) == ("", 1)
    last = process.stderr.splitlines()[-1]
    if "<" in name:
        assert "PicklingError" in last
        return
    assert last.endswith(
        f"PicklingError: {name} is defined in a cell of the notebook, and workers that are spawned do not run the "
        "cells: put it into a module beside the notebook, and import it, or use multiprocessing.get_context('fork')"
    )


def test_workers_of_a_notebook(folder):
    """They do what modules define, with the class that the cells see; those that are forked, and threads, do all."""
    made = "def made(x):\n    y = Value(x) * x\n    return Value(y.data), Value.__mro__[1].__module__\n"
    write("own.py", MICROGPT_CLASS + made)
    notebook(
        OF_A_CELL + "from multiprocessing.pool import ThreadPool",
        "for method in ('spawn', 'forkserver'):\n"
        "    with multiprocessing.get_context(method).Pool(2) as pool:\n"
        "        print([(v.data, type(v) is own.Value, where) for v, where in pool.map(own.made, [2.0, 3.0])])",
        "for pool in multiprocessing.get_context('fork').Pool(2, starting), ThreadPool(2, starting):\n"
        "    with pool:\n"
        "        print(pool.map(squared, [1, 2]), pool.map(type, [Named(1)]) == [Named])",
    )
    process = with_gradwalk("n.ipynb")
    where = "gradwalk" if engine.NAME == "native" else "builtins"
    lines = process.stdout.splitlines()
    assert lines[0] == lines[1]
    assert lines[0].startswith(f"[(4.0, True, '{where}")
    assert lines[2:] == ["[1, 4] True"] * 2
    assert process.stderr.count("\n") == 1
    assert process.returncode == 0


def test_workers_where_multiprocessing_is_imported_at_start_up():
    """As coverage does, or a sitecustomize: what workers hand back is of the script's class all the same."""
    script_with_workers("spawn")
    start = "import multiprocessing, runpy, sys; sys.argv = ['gradwalk', 'run', 's.py']"
    process = with_python("-c", f"{start}; runpy.run_module('gradwalk', run_name='__main__', alter_sys=True)")
    assert process.stdout == "[(4.0, True, 'gradwalk'), (9.0, True, 'gradwalk')]\n"


def test_report():
    """--report says at the end what was replaced, how many nodes there were and where the time went."""
    write("s.py", MICROGPT_CLASS + "x = Value(2.0)\ny = x * x + 1.0\ny.backward()\nprint(x.grad)\n")
    process = with_gradwalk("--report", "s.py")
    assert process.stdout == "4.0\n"
    lines = process.stderr.splitlines()
    assert lines[0].startswith("gradwalk: s.py:1: class Value is replaced by gradwalk's")
    assert lines[1].startswith("gradwalk: 2 nodes, 1 backward passes, ")
    assert [line.split()[1] for line in lines[2:5]] == ["forward", "backward", "the"]


def test_report_without_a_class():
    """A script with nothing to replace is told so."""
    write("s.py", "print(1)")
    assert outcome(with_gradwalk("--report", "s.py")) == (
        "1\n", "gradwalk: no class was offered: none has __init__, backward and __add__ or __mul__\n", 0,
    )  # fmt: skip


@pytest.mark.skipif(engine.NAME == "reference", reason="nothing is replaced there")
@pytest.mark.parametrize(("seconds", "forward", "own"), [(1e-3, 4, 3), (3e-3, 12, 0)])
def test_where_the_time_went(monkeypatch, capsys, seconds, forward, own):
    """Nodes that were made to compare the classes are left out; what is left of the time is the script's."""
    settings = {"_began": 2.0, "_backward_seconds": 3.0, "_backward_passes": 1200, "_nodes_compared": 100}
    for name, value in {**settings, "_lines": ["said"], "advice": lambda *given: [f"advice on {given}"]}.items():
        monkeypatch.setattr(report, name, value)
    monkeypatch.setattr(report.time, "perf_counter", lambda: 12.0)
    monkeypatch.setattr(report, "seconds_a_node", lambda _: seconds)
    monkeypatch.setattr(stand_in, "REPLACED", ["class"])
    monkeypatch.setattr("gradwalk._native.stand_in_nodes", lambda: 4100)
    report.show()
    assert capsys.readouterr().err.splitlines() == [
        "gradwalk: said",
        "gradwalk: 4,000 nodes, 1,200 backward passes, 10 s:",
        f"gradwalk:   forward   about {forward} s",
        "gradwalk:   backward        3 s",
        f"gradwalk:   the script's own Python  {own} s",
        f"gradwalk: advice on (['class'], {float(forward)}, {float(own)})",
    ]


def test_advice_of_a_report():
    """Which methods are slow because they are Python's, and whether the script's own loops are."""

    class Own:
        tanh = math.tanh

        def exp(self):
            return self

    own = "exp() is the script's own, in Python: written as the math module computes it, it would run native"
    loops = "most of the time is the script's own loops: gradwalk.compile(loss) replays a step without them"
    for replaced, rest, told in (([], 1.0, []), ([Own], 1.0, [own]), ([object, Own], 1.25, [own, loops])):
        assert report.advice(replaced, 0.5, rest) == [f"for more speed: {line}" for line in told]


def test_backward_is_timed_whatever_comes_of_it(monkeypatch):
    """Each pass counts, one that raises, too."""
    clock = iter([1.0, 3.0, 10.0, 10.5])
    monkeypatch.setattr(report.time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(report, "_backward_seconds", 0.0)
    monkeypatch.setattr(report, "_backward_passes", 0)

    class Own:
        def backward(self, again, *, fails=False):
            return 1 / 0 if fails else again

    report.timed(Own)
    assert Own().backward(4) == 4
    with pytest.raises(ZeroDivisionError):
        Own().backward(4, fails=True)
    assert (report._backward_seconds, report._backward_passes) == (2.5, 2)
