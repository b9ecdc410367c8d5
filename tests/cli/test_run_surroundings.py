"""All that is not the class is with `gradwalk run` as with `python`: surroundings, options, failures."""

from __future__ import annotations

import os
import pathlib
import sys

import pytest
from running import (
    MICROGPT_CLASS,
    assert_same,
    outcome,
    with_gradwalk,
    with_python,
    write,
)

pytestmark = pytest.mark.usefixtures("folder")


SURROUNDINGS = """\
import os, sys
print(__name__, __file__, __spec__, type(__loader__), __builtins__, sorted(globals()))
print(sys.argv, sys.orig_argv, sys.path[0], os.getcwd())
"""


@pytest.mark.parametrize("script", ["s.py", "./s.py", "below/../s.py"])
def test_surroundings(script):
    """Names, arguments and paths that a script can see are those that python gives it."""
    write("below/empty.txt", "")
    write("s.py", SURROUNDINGS)
    assert_same(script, "one", "--two=2", "-x")


def test_linked_script():
    """Beside a symbolic link, modules are looked for where the file really is."""
    write("real/s.py", SURROUNDINGS)
    try:
        os.symlink("real/s.py", "link.py")
    except OSError:
        pytest.skip("no symbolic links here")
    assert_same("link.py")


def test_options_after_the_script_are_its_own():
    """--help and --keep-class after SCRIPT go to the script."""
    write("s.py", "import sys; print(sys.argv)")
    assert_same("s.py", "--help", "--keep-class", "--", "-h")


def test_standard_input_is_the_scripts():
    """A script reads its standard input."""
    write("s.py", "print(input(), input())")
    assert_same("s.py", stdin="a line\nanother\n")


def test_missing_script():
    """A missing script gives python's line and python's status."""
    process = with_gradwalk("missing.py")
    assert outcome(with_python("missing.py")) == outcome(process)
    assert process.returncode == 2


def test_source_encoding():
    """The encoding that a script declares is honoured."""
    pathlib.Path("s.py").write_bytes("# coding: latin-1\nprint('é')\n".encode("latin-1"))
    assert_same("s.py")


SHAPED = "class Value:\n    def backward(self): pass\n    def __add__(self, other): pass\n"


@pytest.mark.parametrize("option", [[], ["--keep-class"]])
@pytest.mark.parametrize("beginning", ["", SHAPED, "class Value:\n    pass\n", "from __future__ import annotations\n"])
def test_what_gradwalk_imports_from_the_future_is_not_the_scripts(beginning, option):
    """An annotation is what it is under python, whichever way the script is compiled."""
    write("s.py", beginning + "def f(x: 1 + 1): pass\nprint(f.__annotations__)\n")
    assert outcome(with_python("s.py")) == outcome(with_gradwalk(*option, "s.py"))


@pytest.mark.untraced
def test_module_beside_the_script_has_the_name_of_a_standard_one():
    """It is the script's own that is imported, also where gradwalk needs the other."""
    write("program/tokenize.py", "vocabulary = 27\n")
    write("program/copy.py", "first = 'own'\n")
    write("program/s.py", "import copy, tokenize\nprint(tokenize.vocabulary, copy.first)\n")
    assert_same("program/s.py")


def test_module_beside_the_script_has_the_name_of_one_that_gradwalk_has_imported():
    """The same, whatever else has imported it before."""
    write("program/keyword.py", "first = 'own'\n")
    write("program/s.py", "import keyword\nprint(keyword.first)\n")
    assert with_gradwalk("program/s.py").stdout == "own\n"


def test_nothing_of_the_command_line_is_imported():
    """A script's modules are its own, and those that stand for its class."""
    write("s.py", "import sys\nprint(*sorted({'click', 'rich', 'numpy', 'gradwalk.cli'} & set(sys.modules)))\n")
    for options in ([], ["--keep-class"], ["--"]):
        assert with_gradwalk(*options, "s.py").stdout == "\n"


def test_options_of_the_interpreter_hold_for_the_script():
    """`python -O -m gradwalk run` runs the script as `python -O` does."""
    write("s.py", "import sys\nassert False\nprint(sys.flags.optimize, sys.warnoptions)\n")
    options = ["-O", "-W", "ignore::DeprecationWarning"]
    assert with_python(*options, "s.py").stdout == with_python(*options, "-m", "gradwalk", "run", "s.py").stdout != ""


def test_own_classes_can_be_pickled():
    """The script's module is __main__, where pickle looks for its classes."""
    write("s.py", """\
        import pickle
        class Point:
            x = 1
        print(type(pickle.loads(pickle.dumps(Point()))) is Point)
        """)  # fmt: skip
    assert_same("s.py")


FAILURES = {
    "an exception": "def divide(x):\n    return 1 / x\ndivide(0)\n",
    "a cause": "try:\n    {}['a']\nexcept KeyError as error:\n    raise ValueError('é') from error\n",
    "a context": "try:\n    {}['a']\nexcept KeyError:\n    1 / 0\n",
    "recursion": "def again():\n    again()\nagain()\n",
    "a syntax error": "def f(:\n    pass\n",
    "a late syntax error": "x = 1\nreturn x\n",
    "an undeclared encoding": "print('\udce9')\n",
    "a syntax error beside a class Value": "class Value:\n    def backward(self): pass\nreturn 1\n",
    "a class body": "class Value:\n    ratio = 1 / 0\n    def backward(self): pass\n",
    "a missing module": "import no_such_module\n",
    "a failing module": "import failing\n",
    "a module with a syntax error": "import unreadable\n",
    "a hook": "import sys\nsys.excepthook = lambda *given: print(given[1], given[2].tb_lineno)\n1 / 0\n",
    "a thread": "import threading\nthreading.Thread(target=lambda: 1 / 0, name='t').start()\n",
    "what is left of it": "import atexit, sys\nlast = lambda: sys.last_traceback.tb_frame.f_code.co_filename\n"
    "atexit.register(lambda: print(last(), sys.excepthook is sys.__excepthook__))\n1 / 0\n",
    "at exit": "import atexit\natexit.register(print, 'bye')\n1 / 0\n",
    "exit with a number": "import sys\nsys.exit(7)\n",
    "exit with a text": "import sys\nsys.exit('what to do')\n",
    "exit with nothing": "raise SystemExit\n",
    "exit at once": "import os\nos._exit(3)\n",
    "an interrupt": "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)\n",
}


@pytest.mark.parametrize("failure", FAILURES)
def test_failures_look_the_same(failure):
    """Output, traceback and exit status of a script that ends badly are python's, to the byte."""
    if failure == "an interrupt" and sys.platform == "win32":
        pytest.skip("Windows has no SIGINT to die of")
    pathlib.Path("s.py").write_bytes(FAILURES[failure].encode("utf-8", "surrogateescape"))
    write("failing.py", "class Value:\n    ratio = 1 / 0\n    def backward(self): pass\n")
    write("unreadable.py", "class Value:\n    def backward(self) pass\n")
    with_python("s.py")  # the second run of each finds the same bytecode caches
    assert_same("s.py")


def test_traceback_after_the_replacement():
    """Where the class was replaced, lines and carets of a traceback are still the file's."""
    write("s.py", MICROGPT_CLASS + "def use(x):\n    return x.data + {}['a']\nuse(Value(1.0))\n")
    said, _, traceback = with_gradwalk("s.py").stderr.partition("\n")
    assert said.startswith("gradwalk: s.py:1: class Value is replaced")
    assert with_python("s.py").stderr == traceback


@pytest.mark.parametrize("arguments", [[], ["--no-such-option", "s.py"]])
def test_mistake_on_the_command_line(arguments):
    """A mistake in the command itself is one line and status 2."""
    process = with_gradwalk(*arguments)
    assert (process.returncode, process.stderr.count("\n")) == (2, 1)
