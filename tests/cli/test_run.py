"""`gradwalk run SCRIPT` against `python SCRIPT`: what may differ is the class of nodes, and one line on stderr."""

from __future__ import annotations

import os
import random
import textwrap
import zlib
from importlib.util import spec_from_file_location

import pytest
from running import (
    LECTURE_CLASS,
    LONG_CHAIN,
    MICROGPT_CLASS,
    TELL_CLASS,
    assert_same,
    outcome,
    with_gradwalk,
    with_python,
    write,
)

from gradwalk.nn import MLP
from gradwalk.run import modules

pytestmark = pytest.mark.usefixtures("folder")


# ---------------------------------------------------------------- micrograd's names


WITHOUT_PACKAGES = "import sys; sys.path = [entry for entry in sys.path if 'site-packages' not in entry]\n"
USE_MICROGRAD = """\
import random
from micrograd.engine import Value
from micrograd import nn
random.seed(7)
a, b = Value(2), Value(-3.0)
e = (a - b) / a + a**2 + (a * b).relu()
e.backward()
print(a, b, e, e._op, sorted(v.data for v in e._prev))
net = nn.MLP(2, [4, 1])
out = net([a, b])
out.backward()
print(net, out, net.parameters()[0])
net.zero_grad()
print({p.grad for p in net.parameters()}, nn.Module().parameters())
"""


def test_micrograd_where_it_is_not_installed():
    """A script for micrograd runs without it: the same operations, ints where micrograd has ints."""
    write("s.py", WITHOUT_PACKAGES + USE_MICROGRAD + TELL_CLASS)
    process = with_gradwalk("s.py")
    first, second, third, told = process.stdout.splitlines()
    assert first == "Value(data=2, grad=3.25) Value(data=-3.0, grad=-0.5) Value(data=6.5, grad=1) + [0, 6.5]"
    layers = "Layer of [ReLUNeuron(2), ReLUNeuron(2), ReLUNeuron(2), ReLUNeuron(2)], Layer of [LinearNeuron(4)]"
    random.seed(7)
    net = MLP(2, [4, 1])  # drawn and computed as micrograd's
    out, weight = net([2.0, -3.0]), net.parameters()[0]
    out.backward()
    shown = f"Value(data={out.data}, grad=1) Value(data={weight.data}, grad={weight.grad})"
    assert second == f"MLP of [{layers}] {shown}"
    assert third == "{0} []"
    assert (told, process.stderr, process.returncode) == ("gradwalk", "", 0)


@pytest.mark.parametrize("package", [True, False])
def test_own_micrograd_folder_is_imported_as_it_is(package):
    """A micrograd of the user's own, with or without __init__.py, is theirs; its class is replaced like any other."""
    if package:
        write("micrograd/__init__.py", "")
    write("micrograd/engine.py", LECTURE_CLASS)
    write("micrograd/nn.py", "from micrograd.engine import Value\nclass Net:\n    layers = 'theirs'\n")
    write("s.py", "from micrograd.nn import Net, Value\nprint(Net.layers)\n" + TELL_CLASS)
    process = with_gradwalk("s.py")
    assert (process.stdout, process.returncode) == ("theirs\ngradwalk\n", 0)
    assert f"gradwalk: {os.path.join('micrograd', 'engine.py')}:3: class Value is replaced" in process.stderr


def test_own_micrograd_module():
    """So is a micrograd.py beside the script."""
    write("micrograd.py", LECTURE_CLASS + "own = 1\n")
    write("s.py", "from micrograd import Value, own\nprint(own)\n" + TELL_CLASS)
    assert with_gradwalk("s.py").stdout == "1\ngradwalk\n"


def test_installed_micrograd_that_is_not_pypis():
    """Somebody's own version of the package is theirs, wherever it is installed; its class is replaced, too."""
    write("site-packages/micrograd/__init__.py", "")
    write("site-packages/micrograd/engine.py", LECTURE_CLASS + "own = 1\n")
    write("site-packages/micrograd/nn.py", "from micrograd.engine import own\n")
    write("s.py", "import sys\nsys.path.insert(0, 'site-packages')\nfrom micrograd.nn import own\nprint(own)\n"
          "from micrograd.engine import Value\n" + TELL_CLASS)  # fmt: skip
    assert with_gradwalk("s.py").stdout == "1\ngradwalk\n"


def test_pypis_micrograd_is_known_by_its_modules(folder, monkeypatch):
    """Whatever the ends of their lines; with another module, or without one, it is somebody's own."""
    installed = folder / "site-packages" / "micrograd"
    spec = spec_from_file_location("micrograd", installed / "__init__.py")
    write(installed / "engine.py", "as on PyPI\n")
    monkeypatch.setattr(modules, "PYPIS", dict.fromkeys(modules.PYPIS, zlib.crc32(b"as on PyPI\n")))
    assert not modules.is_pypis(spec)
    (installed / "nn.py").write_bytes(b"as on PyPI\r\n")
    assert modules.is_pypis(spec)
    write(installed / "nn.py", "another\n")
    assert not modules.is_pypis(spec)


def test_keep_class_leaves_a_micrograd_of_the_users_own():
    """--keep-class replaces nothing of it."""
    write("micrograd/engine.py", LECTURE_CLASS)
    write("s.py", "from micrograd.engine import Value\n" + TELL_CLASS)
    assert outcome(with_gradwalk("--keep-class", "s.py")) == ("builtins\n", "", 0)


# ---------------------------------------------------------------- the script's own class


def test_long_chain_completes():
    """A microgpt-style class whose recursion fails on 5,000 nodes is replaced by one that does not recurse."""
    write("s.py", MICROGPT_CLASS + LONG_CHAIN)
    assert "RecursionError" in with_python("s.py").stderr
    process = with_gradwalk("s.py")
    assert (process.stdout, process.returncode) == ("5004.0 4.0\n", 0)


def test_replacement_is_said_in_one_line():
    """stderr has one line: where the class was, and how to keep it."""
    write("s.py", MICROGPT_CLASS)
    said = "gradwalk: s.py:1: class Value is replaced by gradwalk's (--keep-class leaves it)\n"
    assert said == with_gradwalk("s.py").stderr


def test_keep_class_leaves_the_script_as_it_is():
    """With --keep-class even the RecursionError is the script's own, to the byte."""
    write("s.py", MICROGPT_CLASS + LONG_CHAIN)
    assert outcome(with_python("s.py")) == outcome(with_gradwalk("--keep-class", "s.py"))


def test_lecture_script_prints_the_same():
    """The lecture's class, with labels, closures, its own repr and an op of its own, prints what it printed."""
    use = """\
a = Value(2.0, label='a'); b = Value(-3.0, label='b')
out = (a * b + 6.8).tanh().bent(); out.label = 'out'
out.backward()
print(out, out.label, out._op, sorted(v.data for v in out._prev))
print(f"{a.grad:.12f} {b.grad:.12f}")
"""
    write("s.py", LECTURE_CLASS + use)
    assert with_python("s.py").stdout == with_gradwalk("s.py").stdout


def test_methods_of_its_own_are_named():
    """The line on stderr names the methods that gradwalk's Value was given."""
    write("s.py", LECTURE_CLASS)
    assert "with the script's own __repr__, bent and its formula for tanh (" in with_gradwalk("s.py").stderr


def test_class_in_a_function_is_replaced():
    """A class that is local to a function is the script's own, too."""
    inside = textwrap.indent(MICROGPT_CLASS + TELL_CLASS, "    ")
    write("s.py", f"def main():\n{inside}\nmain()\nmain()\n")
    process = with_gradwalk("s.py")
    assert process.stdout == "gradwalk\ngradwalk\n"
    assert process.stderr.count("\n") == 1


def test_class_in_a_function_that_is_kept():
    """Its methods find it as before, by its name and as what they stand in, though another was tried out there."""
    line = "        self.grad = 1\n"
    inside = MICROGPT_CLASS.replace(line, f"{line}        for v in topo[:-1]: v.grad *= Value.__base__ is not object\n")
    inside += "    def is_one(self): return type(self) is __class__\n"
    inside = textwrap.indent(inside + "print((Value(2.0) + 1.0).is_one())\n" + TELL_CLASS, "    ")
    write("s.py", f"def main():\n{inside}\nmain()\n")
    process = with_gradwalk("s.py")
    assert process.stdout == "True\nbuiltins\n"
    assert "class Value is kept" in process.stderr


def test_class_with_a_decorator_is_named_by_its_first_line():
    """Where Python says that it begins."""
    write("s.py", "def same(cls): return cls\n\n@same\n@same\n" + MICROGPT_CLASS + TELL_CLASS)
    process = with_gradwalk("s.py")
    assert process.stdout == "gradwalk\n"
    assert process.stderr.startswith("gradwalk: s.py:3: class Value is replaced")


RELUS = {
    "micrograd's": ("0 if self.data < 0 else self.data", "(out.data > 0) * out.grad"),
    "by its operand": ("max(0, self.data)", "(self.data > 0) * out.grad"),
    "0 at 0": ("self.data if self.data > 0 else 0", "(self.data > 0) * out.grad"),
}


@pytest.mark.parametrize("kind", RELUS)
def test_relus_are_native(kind):
    """Whether a number that is cut off is an int, and what its slope is found by."""
    data, slope = RELUS[kind]
    method = f"""\
    def relu(self):
        out = Value({data}, (self,), 'ReLU')
        def _backward(): self.grad += {slope}
        out._backward = _backward
        return out
"""
    use = """
for number in (-1.5, 0.0, 2.5, -3, 0, 4, float('nan')):
    x = Value(number)
    y = x.relu()
    y.backward()
    print(y.data, x.grad)
"""
    write("s.py", LECTURE_CLASS.replace("    def backward", method + "\n    def backward") + use)
    process = with_gradwalk("s.py")
    assert with_python("s.py").stdout == process.stdout
    assert "relu" not in process.stderr


def test_a_function_by_another_word_is_native():
    """What it is called is shown, and changes nothing else."""
    method = """\
    def exp(self):
        out = Value(math.exp(self.data), (self,), 'e to the x')
        def _backward(): self.grad += out.data * out.grad
        out._backward = _backward
        return out
"""
    use = "x = Value(0.5)\ny = x.exp()\ny.backward()\nprint(y.data, x.grad, y._op)\n"
    write("s.py", LECTURE_CLASS.replace("    def backward", method + "\n    def backward") + use)
    process = with_gradwalk("s.py")
    assert with_python("s.py").stdout == process.stdout
    assert "exp" not in process.stderr


def test_class_in_a_local_module_is_replaced():
    """A module of the user's own that defines Value counts as the script."""
    write("engine_of_mine.py", MICROGPT_CLASS)
    write("s.py", "from engine_of_mine import Value\n" + TELL_CLASS)
    process = with_gradwalk("s.py")
    assert process.stdout == "gradwalk\n"
    assert "gradwalk: engine_of_mine.py:1: class Value is replaced" in process.stderr


def test_replacement_leaves_no_bytecode():
    """Plain python afterwards finds the module's own class, not what gradwalk made of it."""
    write("engine_of_mine.py", MICROGPT_CLASS)
    write("s.py", "from engine_of_mine import Value\n" + TELL_CLASS)
    with_gradwalk("s.py")
    assert with_python("s.py").stdout == "builtins\n"


def test_class_in_an_installed_module_is_left():
    """A Value from site-packages belongs to somebody else."""
    write("site-packages/installed.py", MICROGPT_CLASS)
    write(
        "s.py",
        "import sys; sys.path.append('site-packages')\nfrom installed import Value\nprint(Value.__mro__[1].__module__)",
    )
    assert_same("s.py")


def test_class_without_backward_is_left():
    """A class that only happens to be called Value is none of gradwalk's business."""
    write("s.py", "class Value:\n    pass\nprint(Value.__mro__[1].__module__)")
    assert_same("s.py")


def test_subclass_of_gradwalks_value_is_left():
    """A script that derives its Value from micrograd's has said what it wants."""
    write("s.py", """\
        from micrograd import engine
        class Value(engine.Value):
            def __init__(self, data):
                super().__init__(data)
            def __add__(self, other):
                return 'added'
            def backward(self):
                print('its own')
        Value(4.0).backward()
        print(Value(4.0) + 1)
        """)  # fmt: skip
    assert outcome(with_gradwalk("s.py")) == ("its own\nadded\n", "", 0)


def test_class_that_a_decorator_made_something_else_of_is_left():
    """What stands under its name is no class any more."""
    write("s.py", "def made(cls): return cls(1.5)\n\n@made\n" + MICROGPT_CLASS + "print(Value.data)\n")
    assert_same("s.py")


# ---------------------------------------------------------------- operations that gradwalk has, too

METHODS = {
    "a leaky relu": ("relu", "x if x > 0 else 0.1 * x", "1.0 if x > 0 else 0.1"),
    "a relu with slope 1 at 0": ("relu", "max(0.0, x)", "1.0 if x >= 0 else 0.0"),
    "a log of a bit more": ("log", "math.log(x + 1e-12)", "1 / (x + 1e-12)"),
    "a clamped log": ("log", "math.log(max(x, 1e-6))", "1 / max(x, 1e-6)"),
    "a clipped exp": ("exp", "math.exp(min(x, 50))", "math.exp(min(x, 50))"),
    "a steep sigmoid": ("sigmoid", "1 / (1 + math.exp(-4 * x))", "4 * math.exp(-4 * x) / (1 + math.exp(-4 * x))**2"),
    "a rough gradient": ("tanh", "math.tanh(x)", "1.0 - abs(math.tanh(x))"),
}
SAME = {
    "relu": ("relu", "0 if x < 0 else x", "float(x > 0)"),
    "the lecture's tanh": (
        "tanh",
        "(math.exp(2 * x) - 1) / (math.exp(2 * x) + 1)",
        "1 - ((math.exp(2 * x) - 1) / (math.exp(2 * x) + 1))**2",
    ),
    "a plain sigmoid": ("sigmoid", "1 / (1 + math.exp(-x))", "math.exp(-x) / (1 + math.exp(-x))**2"),
    "log": ("log", "math.log(x)", "1 / x"),
    "sqrt": ("sqrt", "math.sqrt(x)", "0.5 * x ** -0.5"),
}


def with_method(source, name, data, slope, first="print('called')"):
    """A class and one method more, in the style of its family."""
    if "local_grads" in source:
        body = f"return Value({data}, (self,), ({slope},))"
    else:
        body = f"""out = Value({data}, (self,), '{name}')
        def _backward():
            self.grad += ({slope}) * out.grad
        out._backward = _backward
        return out"""
    method = f"    def {name}(self):\n        {first}\n        x = self.data\n        {body}\n\n"
    return "import math\n" + source.replace("    def backward", method + "    def backward")


def using(name):
    return textwrap.dedent(f"""
        for number in (0.4, -0.7, 0.0):
            x = Value(number)
            try:
                y = x.{name}() * 3.0
                y.backward()
                print(y.data, x.grad)
            except (ValueError, ZeroDivisionError):
                print('out of its domain')
        """)


@pytest.mark.parametrize("family", [MICROGPT_CLASS, LECTURE_CLASS.replace("def tanh", "def th")])
@pytest.mark.parametrize("method", METHODS)
def test_method_that_computes_something_else_stays(method, family):
    """Numbers and output are the script's, and the line names the method."""
    name = METHODS[method][0]
    write("s.py", with_method(family, *METHODS[method]) + using(name))
    process = with_gradwalk("s.py")
    assert with_python("s.py").stdout == process.stdout
    assert "class Value is replaced by gradwalk's, with " in process.stderr
    assert f"its {name}, different from gradwalk's (" in process.stderr
    assert process.stderr.count("\n") == 1


@pytest.mark.parametrize("method", SAME)
def test_another_way_to_write_the_same_function(method):
    """It prints the same to the last digit: where bits differ, the script's formula is computed."""
    name = SAME[method][0]
    write("s.py", with_method(MICROGPT_CLASS, *SAME[method], first="pass") + using(name))
    process = with_gradwalk("s.py")
    assert with_python("s.py").stdout == process.stdout
    assert ("its formula for" in process.stderr) == (name in ("tanh", "sigmoid", "sqrt"))


def test_method_with_an_optional_argument_stays():
    """gradwalk's method would not know the argument's name."""
    source = MICROGPT_CLASS + "    def log(self, eps=0.5): return Value(self.data + eps, (self,), (1.0,))\n"
    write("s.py", source + "print(Value(1.0).log(eps=0.25).data)")
    process = with_gradwalk("s.py")
    assert process.stdout == "1.25\n"
    assert "with its log, different from gradwalk's" in process.stderr


OTHER_OPERATORS = {
    "__radd__": ("    def __mul__", "    def __radd__(self, other): return self * other\n\n    def __mul__"),
    "__lt__": ("    def __mul__", "    def __lt__(self, other): return True\n\n    def __mul__"),
    "__truediv__": (
        "    def __mul__",
        "    def __truediv__(self, y): return Value(self.data / (y + 1e-12), (self,), (1 / (y + 1e-12),))\n"
        "    def __mul__",
    ),
}
USE_OPERATORS = "x = Value(2.0)\ny = 3.0 + x\nprint(y.data, x < y)\n"


@pytest.mark.parametrize("name", OTHER_OPERATORS)
def test_operator_that_computes_something_else_stays(name):
    """It computes what it computed, on gradwalk's nodes, and one line names the operator."""
    line, changed = OTHER_OPERATORS[name]
    more = "    def __radd__(self, other): return self + other\n" if name != "__radd__" else ""
    more += "    def __lt__(self, other): return self.data < other.data\n" if name != "__lt__" else ""
    source = MICROGPT_CLASS.replace(line, changed) + more
    write("s.py", source + USE_OPERATORS + "print((x / 3.0).data)\n" * (name == "__truediv__") + TELL_CLASS)
    process = with_gradwalk("s.py")
    assert with_python("s.py").stdout.replace("builtins", "gradwalk") == process.stdout
    assert name in process.stderr
    assert process.stderr.endswith("different from gradwalk's (--keep-class leaves it)\n")


@pytest.mark.parametrize(
    ("line", "changed", "said"),
    [
        ("self.data * other.data,", "self.data * other.data * 1.5,", "its __mul__ (line 14) does something else: "),
        ("(1, 1)", "(1, 0.5)", " has the gradient 0.5 by operand 2, gradwalk's 1, finite differences say 1"),
    ],
)
def test_learners_mistake_is_explained(line, changed, said):
    """A class whose sums or products are wrong is kept; the line shows operands, both results and the difference."""
    assert line in MICROGPT_CLASS
    write("s.py", MICROGPT_CLASS.replace(line, changed) + "print((Value(2.0) * 3.0 + 1.0).data)\n" + TELL_CLASS)
    process = with_gradwalk("s.py")
    assert with_python("s.py").stdout == process.stdout
    assert said in process.stderr
    assert process.stderr.count("\n") == 1


LINES_OF_BACKWARD = {
    "topo.insert(0, v)": (
        "topo.append(v)",
        "its backward (line 18) gives a the gradient 0.0 in d = a*b; e = d + a; f = e*d + (c + 2)*e; g = f + f*2 at "
        "a = 2.5, b = -0.75, c = 3, gradwalk's 0.9375, finite differences say 0.9375\n",
    ),
    "v.children:": (
        "v._children:",
        "its backward (line 18) raises AttributeError: 'Value' object has no attribute 'children' (line 24), in a ",
    ),
}


@pytest.mark.parametrize("changed", LINES_OF_BACKWARD)
def test_mistake_in_backward_is_explained(changed):
    """With the graph, both gradients and finite differences, or with what it raises, and where."""
    line, said = LINES_OF_BACKWARD[changed]
    assert line in MICROGPT_CLASS
    write("s.py", MICROGPT_CLASS.replace(line, changed) + TELL_CLASS)
    process = with_gradwalk("s.py")
    assert process.stdout == "builtins\n"
    assert said in process.stderr
    assert process.stderr.count("\n") == 1


def test_what_a_method_does_on_other_nodes_is_explained():
    """A node whose children are no nodes: the line shows the operands, and both."""
    power = """\
    def __pow__(self, other):
        return Value(self.data**other, (self, other), (other * self.data**(other - 1), 0))
"""
    backward = MICROGPT_CLASS.replace("if v not in visited:", "if isinstance(v, Value) and v not in visited:")
    skipping = backward.replace("child.grad +=", "if isinstance(child, Value): child.grad +=")
    write("s.py", skipping + power + TELL_CLASS)
    process = with_gradwalk("s.py")
    assert process.stdout == "builtins\n"
    assert "its __pow__ (line 32) does something else on gradwalk's nodes: 2.478 ** 2.8 shows" in process.stderr
    assert process.stderr.endswith(" shows ['Value', 'float'] as its _children, gradwalk's ['Value', 'Value']\n")


def test_lost_contribution_is_the_scripts_own():
    """The classic mistake, `grad =` for `grad +=`, is shown as the script has it: the class is kept."""
    source = LECTURE_CLASS.replace("grad += 1.0 * out.grad", "grad = 1.0 * out.grad")
    write("s.py", source + "a = Value(3.0)\nb = a + a\nb.backward()\nprint(a.grad)")
    process = with_gradwalk("s.py")
    assert process.stdout == "1.0\n"
    assert "has the gradient 1.0, gradwalk's 2.0, finite differences say 2" in process.stderr


def test_operands_that_the_script_does_not_take_are_no_difference():
    """micrograd's power takes numbers only; gradwalk's, which takes more, stands in for it."""
    power = """
    def __pow__(self, other):
        assert isinstance(other, (int, float)), 'only numbers'
        return Value(self.data**other, (self,), (other * self.data**(other - 1),))
"""
    write("s.py", MICROGPT_CLASS + power + TELL_CLASS)
    assert with_gradwalk("s.py").stdout == "gradwalk\n"


def test_flag_without_which_there_is_no_gradient_is_named():
    """The reason is the flag, not the sum."""
    script = LECTURE_CLASS.replace("label=''", "label='', requires_grad=False")
    script = script.replace("self.label = label", "self.label = label\n        self.requires_grad = requires_grad")
    script = script.replace("self.grad += 1.0 * out.grad", "self.grad += 1.0 * out.grad * self.requires_grad")
    write("s.py", script + "print(Value(1.0) + 2)")
    assert "has the gradient 0.0 by operand 1 unless requires_grad is True" in with_gradwalk("s.py").stderr


def test_class_defined_again_has_its_new_methods():
    """As in a lecture's notebook: the later class's method is the one that counts."""
    first = with_method(MICROGPT_CLASS, "relu", "1.0", "0.0") + "    def name(self): return 'first'\n"
    second = with_method(MICROGPT_CLASS, "relu", "2.0", "0.0") + "    def name(self): return 'second'\n"
    write("s.py", f"{first}\n{second}\nx = Value(5.0)\nprint(x.relu().data, x.name())\n" + TELL_CLASS)
    assert with_gradwalk("s.py").stdout == "called\n2.0 second\ngradwalk\n"


def test_methods_of_two_modules_do_not_mix():
    """Each module's class has a stand-in of its own, with its own relu and its own words."""
    write("first.py", with_method(MICROGPT_CLASS, "relu", "1.0", "0.0") + "    def __repr__(self): return 'first'\n")
    write("second.py", with_method(MICROGPT_CLASS, *SAME["relu"]) + "    def __repr__(self): return 'second'\n")
    write(
        "s.py", "import first, second\nprint(first.Value(5.0).relu(), second.Value(5.0).relu().data, second.Value(1))"
    )
    process = with_gradwalk("s.py")
    assert with_python("s.py").stdout == process.stdout
    assert process.stderr.count("class Value is replaced") == 2
