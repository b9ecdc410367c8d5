"""`gradwalk trace`: what it prints, what it refuses, one step at a time, and the numbers it gives to programs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

import gradwalk
from gradwalk import Value, cli
from gradwalk.expression import parsed
from gradwalk.finite_differences import finite_differences
from gradwalk.graph import Graph
from gradwalk.show import text, trace
from gradwalk.walk import MODES, Walk

NEURON = ("relu(a*b + d)", "a=2", "b=-3", "d=10")


def run(*arguments):
    return CliRunner().invoke(cli.main, ["trace", *arguments])


def printed(*arguments):
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.output


def refused(*arguments):
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    return result.output


# ---------------------------------------------------------------- what it prints


def test_forward_table():
    """Each node with the step that computes it, its formula from the table and its data."""
    output = printed(*NEURON)
    assert re.search(r"^ +a +leaf +2$", output, re.MULTILINE)
    assert re.search(r"^ +1 +v1 +a·b +-6$", output, re.MULTILINE)
    assert re.search(r"^ +3 +v3 +max\(0, v2\) +4$", output, re.MULTILINE)


def test_operations_are_written_as_on_the_page():
    """In the signs that text has, with the names of numbers that have one, and no brackets that say nothing."""
    output = printed("minimum(abs(a), floor(b)) + maximum(ceil(a), log2(b)) + hypot(a, b)/gelu(a)", "a=0.5", "b=2.5")
    for formula in ("|a|", "⌊b⌋", "min(v1, v2)", "⌈a⌉", "max(v4, v5)", "sqrt(a² + b²)", "0.5·a·erfc(-a/sqrt(2))"):
        assert re.search(rf"v\d+ +{re.escape(formula)} ", output), formula
    assert "∂/∂x = 1/(x·log(2))" in printed("log2(x)", "x=2")
    assert re.search(r"∂/∂v9 = -v10/v9", output)


def test_steps_have_the_numbers_of_the_page():
    """The nodes that are computed come first, then the seed, then each contribution."""
    output = printed(*NEURON)
    numbers = re.findall(r"^ +(\d+) +(\w+)\.grad", output, re.MULTILINE)
    assert numbers == [("4", "v3"), ("5", "v2"), ("6", "v1"), ("7", "d"), ("8", "a"), ("9", "b")]
    assert "the first step that goes wrong is step 6, at v1" in printed("x*x*2", "x=3", "--wrong", "assign")


def test_arithmetic_is_written_out():
    """Each contribution as local gradient · upstream gradient, and what the child has then."""
    output = printed(*NEURON)
    assert "b.grad += 2 · 1  → 2" in output
    assert "a.grad += -3 · 1  → -3" in output


def test_running_sum_is_written_out():
    """A second contribution shows what was there before."""
    assert "x.grad += 3 · 1  → 3 + 3 = 6" in printed("x*x", "x=3")


def test_every_leaf_is_checked():
    """The result has gradient, finite difference, error and a tick for every leaf."""
    output = printed("tanh(x)*y", "x=0.5", "y=-1")
    for leaf in "xy":
        assert re.search(rf"^{leaf} .*\de-\d+ +✓$|^{leaf} .* 0 +✓$", output, re.MULTILINE), output


def test_it_fits_eighty_columns():
    """No line is longer than a terminal is wide by default."""
    output = printed("sigmoid(tanh(x*y)*x + y)/softplus(x) + hypot(x, y)**3", "x=0.123456789", "y=-1.23456789e-5")
    assert max(map(len, output.splitlines())) <= 80


@pytest.mark.parametrize(("colour", "is_plain"), [({"NO_COLOR": "1"}, True), ({}, False)])
def test_no_color_is_respected(monkeypatch, capsys, colour, is_plain):
    """On a terminal there is colour, unless NO_COLOR says otherwise."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in colour.items():
        monkeypatch.setenv(name, value)
    trace.trace(NEURON[0], NEURON[1:], "right", False, False, False)
    has_colour = bool(re.search(r"\x1b\[[0-9;]*3[0-9]m|\x1b\[9[0-9]m", capsys.readouterr().out))
    assert is_plain != has_colour


def test_not_a_terminal_means_no_escapes():
    """Output into a pipe has no escape sequence in it."""
    assert "\x1b" not in printed(*NEURON)


def test_an_expression_may_start_with_a_minus():
    """A leading minus is not taken for an option."""
    assert "-h*a" in printed("-h*a", "h=1", "a=2")


def test_a_kink_is_named():
    """At a kink the check says so, and accepts the chosen slope."""
    assert "✓ kink" in printed("relu(x)", "x=0")


def test_large_graphs_are_cut_and_say_so():
    """Beyond sixty steps the rest is counted; --all shows it."""
    expression = "+".join(["a"] * 100)
    assert "… 80 more steps; --all shows them" in printed(expression, "a=1")  # 99 + 1 + 198 in all
    assert "--all" not in printed(expression, "a=1", "--all")


# ---------------------------------------------------------------- mistakes on purpose


def test_wrong_modes_are_those_of_the_walk():
    """The command offers every wrong mode there is."""
    [option] = [option for option in cli.main.commands["trace"].params if option.name == "wrong"]
    assert [mode for mode in MODES if mode != "right"] == list(option.type.choices)


def test_wrong_mode_shows_where():
    """The first step that goes wrong is named, the right number stands beside the wrong, and the check fails."""
    output = printed("x*x*x", "x=3", "--wrong", "not_reset")
    assert "the first step that goes wrong is step 4, at v2" in output
    assert "✗ right: 27" in output
    assert re.search(r"^x +3 +45 +27 +4e-01 +✗$", output, re.MULTILINE)


def test_wrong_mode_without_consequence():
    """Where a mistake has no consequence, it says so."""
    assert "on this graph it makes no difference" in printed("a*b", "a=1", "b=2", "--wrong", "breadth_first")


# ---------------------------------------------------------------- what it refuses


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["a +* b"], "gradwalk: expected a name, a number or ( here, got '*'\n  a +* b\n     ^\n"),
        (["a*b", "a=1"], "gradwalk: no value for b; add b=1.0\n  a*b\n    ^\n"),
        (["a", "a=x"], "gradwalk: trace: expected a number for a, got 'x'\n"),
        (["a", "a=nan"], "gradwalk: trace: expected a finite number for a, got 'nan'\n"),
        (["a", "a"], "gradwalk: trace: expected NAME=NUMBER, got 'a'\n"),
        (["a", "a=1", "z=1"], "gradwalk: trace: z is no input of the expression; its inputs are a\n"),
        (
            ["a", "a=1", "--jsn"],
            "main trace: there is no option '--jsn'; did you mean '--json'? See main trace --help\n",
        ),
        (["nowhere.py:f"], "gradwalk: trace: there is no file 'nowhere.py'\n"),
        (["nowhere.py"], "gradwalk: trace: expected FILE.py:FUNCTION, got 'nowhere.py'; add the function\n"),
    ],
)
def test_mistakes_are_one_line(arguments, expected):
    """A mistake is one line (and a caret for an expression) and status 2."""
    assert expected == refused(*arguments)


def test_step_needs_a_terminal():
    """Without a terminal there are no keys to wait for."""
    assert "--step expected a terminal" in refused(*NEURON, "--step")


def test_markup_in_labels_is_text(capsys):
    """Rich markup and escape sequences in a label are shown, not obeyed."""
    x = Value(2.0, label="[red]x[/red]\x1b[2J[link=file:///]")
    graph, walking = Graph(x * 3.0), Walk(x * 3.0)
    text.show(text.page("[bold]title[/bold]", [("forward", text.forward_table(graph, 9))]))
    output = capsys.readouterr().out
    assert "[red]x[/red]�[2J" in output.replace("\n", "")
    assert "[bold]title[/bold]" in output
    assert "\x1b" not in output
    assert len(walking) == 2


# ---------------------------------------------------------------- functions in files


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "model.py"
    path.write_text(
        "import gradwalk\n"
        "def loss(x, w=0.5, activation='tanh'):\n"
        "    return (getattr(x * w, activation)() - 1.0) ** 2\n"
        "def fails(x):\n"
        "    return x / (x - x)\n"
        "def number(x):\n"
        "    return 3\n"
        "def leaves():\n"
        "    raise SystemExit('bye')\n"
    )
    return path


def test_what_is_in_no_row_is_written_as_a_call(script):
    """By its name, with at most eight of its children; it has no formula for its slopes."""
    script.write_text(
        "import gradwalk\n"
        "def f(a, b):\n"
        "    x = gradwalk.Value(a.data**2, (a,), 'sq')\n"
        "    def backward():\n"
        "        a.grad += 2.0 * a.data * x.grad\n"
        "    x._backward = backward\n"
        "    return gradwalk.sum([x, b] * 5) + gradwalk.softmax([a, b])[0]\n"
    )
    output = printed(f"{script}:f", "a=3", "b=1")
    formulas = re.findall(r"^ +\d+ +(v\d) +(\S+\(.*\)) ", output, re.MULTILINE)
    assert sorted(formulas) == [
        ("v1", "sq(a)"), ("v2", "sum(v1, b, v1, b, v1, b, v1, b, …)"), ("v3", "softmax(a, b)"),
    ]  # fmt: skip
    assert "a.grad += 30  → " in output
    assert re.search(r"v1\.grad \+= 1 · 1  → 1$", output, re.MULTILINE)


def test_output_that_has_no_signs():
    """Where the encoding is ASCII, what it lacks is a question mark."""
    command = [sys.executable, "-m", "gradwalk", "trace", "x*x", "x=3"]
    ascii_only = os.environ | {"PYTHONIOENCODING": "ascii"}
    output = subprocess.run(command, env=ascii_only, capture_output=True, text=True, check=True).stdout
    assert "x.grad += 3 ? 1  ? 3 + 3 = 6" in output


def test_a_function_of_the_users(script):
    """The function gets Values for the numbers given and for numeric defaults, other defaults as they are."""
    output = printed(f"{script}:loss", "x=2")
    assert "model.py: loss(x=2.0, w=0.5)" in output
    assert re.search(r"^ +2 +v2 +tanh\(v1\) ", output, re.MULTILINE)
    assert len(re.findall("✓", output)) == 2


def test_a_file_may_use_its_neighbours_and_itself(script):
    """What is imported is looked for beside it; and a class in it finds the module that it is from."""
    (script.parent / "its_neighbour.py").write_text("half = 0.5\n")
    script.with_name("own_module.py").write_text(
        "from __future__ import annotations\n"
        "from dataclasses import dataclass\nimport its_neighbour\n"
        "@dataclass\nclass Scale:\n    by: float\n"
        "def f(x):\n    return x * Scale(its_neighbour.half).by\n"
    )
    assert "own_module.py: f(x=4.0)" in printed(f"{script.with_name('own_module.py')}:f", "x=4")


def test_a_default_can_be_overridden(script):
    """A number given on the command line replaces the default."""
    assert "loss(x=2.0, w=3.0)" in printed(f"{script}:loss", "x=2", "w=3")


@pytest.mark.parametrize(
    ("function", "values", "expected"),
    [
        ("loss", [], "trace: no value for x of loss; add x=1.0"),
        ("loss", ["x=1", "y=2"], "trace: y is no argument of loss; its arguments are x, w, activation"),
        ("fails", ["x=1"], "model.py, line 5: DivisionByZeroError: div: expected a divisor other than 0"),
        ("number", ["x=1"], "trace: expected number to return a Value, got a int"),
        ("missing", [], "trace: model.py has no function missing"),
        ("leaves", [], "model.py, line 9: SystemExit: bye"),
    ],
)
def test_mistakes_in_functions_are_one_line(script, function, values, expected):
    """An error in the user's file is one line with the place in it."""
    output = refused(f"{script}:{function}", *values)
    assert expected in output
    assert output.count("\n") == 1


def test_a_file_that_is_not_python(tmp_path):
    """A syntax error has its line."""
    path = tmp_path / "broken.py"
    path.write_text("x = 1\ndef f(:\n")
    assert "broken.py, line 2: SyntaxError" in refused(f"{path}:f")


# ---------------------------------------------------------------- for programs


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "right"] + [None])
def test_json_has_the_engines_numbers(mode):
    """--json has the data of the engine and the gradients of the walk, exactly."""
    expression = "c = a*b; tanh(c + a)**2/(c*c + 1)"
    found = json.loads(printed(expression, "a=0.3", "b=-1.7", "--json", *(["--wrong", mode] if mode else [])))
    root = parsed(expression).evaluate({"a": 0.3, "b": -1.7})
    walking = Walk(root, mode or "right")
    walking.seek(-1)
    assert [node.data for node in walking.order] == [node["data"] for node in found["nodes"]]
    assert [walking.grad(node) for node in walking.order] == [node["grad"] for node in found["nodes"]]
    afters = [contribution["after"] for step in found["steps"] for contribution in step["contributions"]]
    assert [c.after for step in walking for c in step.contributions] == afters
    assert walking.first_difference == found["first_difference"]
    slopes = [difference.slope for difference in finite_differences(root)]
    assert slopes == [entry["finite_difference"] for entry in found["check"]]


def test_json_of_a_small_graph():
    """All that is in it: nodes, steps with their numbers and what is wrong with them, and the check."""
    found = json.loads(printed("abs(x)*x", "x=0", "--wrong", "assign", "--json"))
    names = ("id", "name", "label", "constant", "children", "local_grads", "data", "grad")
    assert [[node[name] for name in names] for node in found["nodes"]] == [
        [0, "x", "x", False, [], [], 0.0, 0.0], [1, "v1", "", False, [0], [0.0], 0.0, 0.0],
        [2, "v2", "", False, [1, 0], [0.0, 0.0], 0.0, 1.0],
    ]  # fmt: skip
    assert [(step["number"], step["node"], step["seed"], step["wrong"]) for step in found["steps"]] == [
        (3, 2, True, False), (4, 2, False, False), (6, 1, False, False),
    ]  # fmt: skip
    nothing = {"child": 1, "local_grad": 0.0, "upstream": 1.0, "product": 0.0, "before": 0.0, "after": 0.0}
    assert found["steps"][1]["contributions"] == [nothing, nothing | {"child": 0}]
    [said] = found["check"]  # |x|·x has a slope of 0 there, which no difference shows
    assert (said["node"], said["kink"], said["relative_error"], said["agrees"]) == (0, False, 1.0, None)
    [said] = json.loads(printed("relu(x)", "x=0", "--json"))["check"]
    assert (said["kink"], said["agrees"]) == (True, True)
    named = ("title", "mode", "first_difference", "first_wrong_number", "root")
    assert [found[name] for name in named] == ["abs(x)*x", "assign", None, None, 2]
    found = json.loads(printed("x*x", "x=3", "--wrong", "assign", "--json"))
    assert [step["wrong"] for step in found["steps"]] == [False, True]
    assert [each["agrees"] for each in found["check"]] == [False]
    assert (found["first_difference"], found["first_wrong_number"]) == (1, 4)


def test_numbers_that_json_has_not_are_words():
    """nan and infinities."""
    with gradwalk.ieee():
        root = Value(float("inf"), label="a") * Value(float("nan"), label="b")
    found = trace.as_dict("", Graph(root), Walk(root))
    assert [node["data"] for node in found["nodes"]] == ["inf", "nan", "nan"]
    assert found["nodes"][2]["local_grads"] == ["nan", "inf"]


@pytest.mark.parametrize(("most", "count"), [(16 * 7 * 3, 3), (16 * 7 * 3 - 1, 2), (1, 1)])
def test_of_many_leaves_some_are_checked(monkeypatch, most, count):
    """As many as there is time for, and one at least."""
    monkeypatch.setattr(trace, "MOST_EVALUATIONS", most)
    root = parsed("a*b + c*d").evaluate(dict.fromkeys("abcd", 2.0))
    assert [difference.label for difference in trace.checked(Graph(root))] == ["a", "b", "c", "d"][:count]


# ---------------------------------------------------------------- one step at a time


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        (["ab"], ["a", "b", ""]), (["\x1b[C\x1b[D"], ["\x1b[C", "\x1b[D", ""]), (["\x1bOHx"], ["\x1bOH", "x", ""]),
        (["\x1b[1~\x1b"], ["\x1b[1~", "\x1b", ""]), ([None, "a"], [None, "a", ""]), (["\n"], ["\n", ""]),
    ],
)  # fmt: skip
def test_what_a_terminal_sends_is_taken_key_by_key(sent, keys):
    """Several at once, and an arrow as one; nothing for a while is None, and the end is empty."""
    waiting = iter([*sent, ""])
    read = trace._KeysOf(lambda: next(waiting)).next
    assert [read() for _ in keys] == keys


def test_keys_on_windows(monkeypatch):
    """What is not a letter comes as two; while none is pressed it waits a little, and says so."""
    pressed = iter("a\xe0M\x00K")
    is_pressed = iter([True, False, True, True])
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setitem(
        sys.modules, "msvcrt", SimpleNamespace(kbhit=lambda: next(is_pressed), getwch=lambda: next(pressed))
    )
    monkeypatch.setattr(trace, "_PATIENCE", 0.0)
    with trace._keys() as next_key:
        assert [next_key() for _ in range(4)] == ["a", None, "\xe0M", "\xe0K"]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals on Windows")
def test_stepping_with_the_keyboard():
    """Arrow keys and letters step forward and back, several at once too; q leaves, and the terminal is as before."""
    import fcntl
    import pty
    import select
    import struct
    import termios

    child, terminal = pty.fork()
    if child == 0:
        own = {name: text for name, text in os.environ.items() if name not in ("COLUMNS", "LINES")}
        command = [sys.executable, "-m", "gradwalk", "trace", *NEURON, "--step"]
        os.execve(sys.executable, command, own | {"TERM": "xterm-256color", "NO_COLOR": "1"})
    shown = b""
    settings = termios.tcgetattr(terminal)

    def wait_for(wanted):
        nonlocal shown
        end = time.monotonic() + 20
        while wanted.encode() not in shown:
            assert time.monotonic() < end, shown.decode(errors="replace")
            if select.select([terminal], [], [], 0.2)[0]:
                shown += os.read(terminal, 65536)
        shown = b""

    wait_for("step 0 of 9: the beginning")
    assert settings != termios.tcgetattr(terminal)
    end = time.monotonic() + 20
    while select.select([terminal], [], [], 0.5)[0]:  # then it waits, and draws nothing
        os.read(terminal, 65536)
        assert time.monotonic() < end
    for keys, expected in [
        ("\x1b[C", "step 1 of 9: forward"), ("   ", "step 4 of 9: backward"), ("\x1b[D\x1b[D", "step 2 of 9"),
        ("bb", "step 0 of 9"), ("b", "step 0 of 9"), ("\x1b[F", "step 9 of 9"), ("\x1b[H", "step 0 of 9"),
        ("G", "step 9 of 9"),
    ]:  # fmt: skip
        os.write(terminal, keys.encode())
        wait_for(expected)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 50, 0, 0))
    wait_for("step 9 of 9")  # nothing was pressed: the new size alone draws it again
    os.write(terminal, b"q")
    _, status = os.waitpid(child, 0)
    assert settings == termios.tcgetattr(terminal)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 0


# ---------------------------------------------------------------- narrow terminals, and names


@pytest.mark.parametrize("columns", [100, 80, 60, 50, 44, 36, 30, 24])
def test_no_number_is_cut(monkeypatch, columns):
    """However narrow the terminal, every number that is shown is whole: columns go before digits do."""
    monkeypatch.setenv("COLUMNS", str(columns))
    output = printed(
        "tanh(w*x - y)**2 + 6e-11*w + 0*a_long_name", "w=2", "x=3", "y=5.123456789", "a_long_name=12345.6789"
    )
    table = output[output.index("result") :].splitlines()
    grads = {line.split()[0]: line.split() for line in table if line.startswith(("w ", "x ", "y "))}
    for name, grad in (("w", "2.128516017"), ("x", "1.419010678"), ("y", "-0.7095053389")):
        assert grad in grads[name]
        assert grads[name][-1] == "✓"
    assert "5.123456789" in output
    assert re.search(r"a_\S* .*12345\.6789$", output, re.MULTILINE)


def test_the_slope_of_a_power_is_worked_out():
    for exponent, shown in (("2", "2·q"), ("3", "3·q²"), ("-1", "-1·q⁻²"), ("2.5", "2.5·q**1.5")):
        output = printed(f"q**{exponent}", "q=2")
        assert re.search(rf"∂/∂q = {re.escape(shown)}$", output, re.MULTILINE), output


def test_formulas_have_the_users_names():
    """A local gradient is written with the names of the expression, even where these are x and y."""
    output = printed("w*x - y", "w=2", "x=3", "y=1")
    assert re.search(r"w\.grad \+= 3 · 1 +→ 3 +∂/∂w = x$", output, re.MULTILINE)
    assert re.search(r"x\.grad \+= 2 · 1 +→ 2 +∂/∂x = w$", output, re.MULTILINE)
    assert re.search(r"^ +1 +v1 +w·x +6$", output, re.MULTILINE)
