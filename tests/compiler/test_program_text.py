"""Programs as people see them: text, counts, and a pickle that runs in another process."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradwalk
from gradwalk.compiler.compile import compile

w = [[gradwalk.Value(0.1 * (i - j)) for j in range(4)] for i in range(6)]


def layer(xs: Any) -> Any:
    return sum(sum(a * b for a, b in zip(row, x, strict=True)).tanh() for x in xs for row in w)


def program() -> Any:
    compiled = compile(layer)
    compiled(np.arange(12.0).reshape(3, 4) / 10)
    return compiled.program


def test_a_person_recognises_the_model() -> None:
    lines = str(program()).splitlines()
    assert lines[1] == "h0[3,6] = xs[3,4] @ w[6,4].T"
    assert lines[2] == "t1[3,6] = tanh(h0[3,6])"
    assert lines[-1].startswith("return t2")


def test_counts() -> None:
    counts = program().counts
    assert (counts.instructions, counts.guards, counts.flops) == (3, 0, 2 * 3 * 6 * 4 + 18 + 18)
    assert counts.scalar_nodes > 100
    assert 8 * counts.slots == counts.bytes


def test_a_pickled_program_runs_in_another_process(tmp_path: Path) -> None:
    made = program()
    inputs = np.linspace(-1, 1, len(made.inputs))
    from gradwalk.compiler import interpret

    expected = interpret.run(made, inputs)[made.outputs]
    (tmp_path / "program").write_bytes(pickle.dumps((made, inputs)))
    source = (
        "import pickle, sys\n"
        "from gradwalk.compiler import interpret\n"
        "program, inputs = pickle.load(open(sys.argv[1], 'rb'))\n"
        "print(repr(float(interpret.run(program, inputs)[program.outputs][0])))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", source, str(tmp_path / "program")], env=os.environ | {"PYTHONPATH": ":".join(sys.path)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert repr(float(expected[0])) == done.stdout.strip()


SEEN = """
import gradwalk
from gradwalk.compiler.flat import SIGNED
from gradwalk.compiler.interpret import _EDGES
from gradwalk.ops import OPS

@gradwalk.compile
def model(xs, w):
    hidden = [gradwalk.softmax([gradwalk.dot(row, x) for row in w]) for x in xs]
    angles = [gradwalk.atan2(sum(row), row[0] - row[1]) for row in hidden]
    return max(angles) + sum(gradwalk.copysign(1.0, a) * gradwalk.exp(a) if a > 0 else a for a in angles)

model([[0.1, 0.2], [0.3, -0.4]], [[1.0, 2.0], [3.0, 4.0]])
print(model.program, SIGNED, _EDGES, [(op.reads, op.edge_inputs, op.signed_inputs) for op in OPS.values()])
"""


def test_a_program_is_the_same_in_every_process() -> None:
    """However Python orders its sets of names there."""
    command, seeds = [sys.executable, "-c", SEEN], ("5", "11", "12", "13")
    envs = [os.environ | {"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": seed} for seed in seeds]
    first, *others = [subprocess.run(command, env=env, capture_output=True, check=True).stdout for env in envs]
    assert b"atan2" in first
    assert others == [first] * len(others)


class Slotted:
    """An object without a __dict__."""

    __slots__ = ("weight",)

    def __init__(self) -> None:
        self.weight = gradwalk.Value(2.0)

    def __call__(self, x: Any) -> Any:
        return self.weight * x


class Holding:
    """An object that holds a Value, a list of them in a dict, and perhaps another object."""

    def __init__(self, part: Any = None) -> None:
        self.part, self.scale, self.parts = part, gradwalk.Value(2.0), {"bias": [gradwalk.Value(3.0)]}

    def method(self, x: Any) -> Any:
        return self.part.scale * x


class Descriptor(Holding):
    """Something that is asked through others, and not looked into."""

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self


held, described = Holding(Holding()), Descriptor()
of_array = np.array([gradwalk.Value(1.0), gradwalk.Value(2.0)])
growing = [1.0]


def unfinished() -> Any:
    weight = gradwalk.Value(3.0)

    def function(x: Any) -> Any:
        return weight * x if x is not None else later

    yield function
    later = None


waiting = unfinished()


def grow(xs: Any) -> Any:
    growing.append(2.0)
    return xs[0] * w[0][0]


@pytest.mark.parametrize(
    ("function", "args", "line"),
    [
        (max, (1.0, 2.0), "return arg1[0]"),
        (Slotted(), (1.0,), "m0[1,1] = leaf[1,1] * x[1,1]"),
        (lambda x: (of_array * x).sum(), (1.0,), "h0[1,1] = dot(of_array[1,2], x[1,1])"),
        (next(waiting), (1.0,), "m0[1,1] = weight[1,1] * x[1,1]"),
        (grow, (growing,), "m0[1,1] = input[1,1] * input[1,1]"),
        (lambda xs: sum(a * b for a, b in zip(xs, [1.5, 2.5, 3.5], strict=True)), ([1.0, 2.0, 3.0],),
         "h0[1,1] = dot(xs[1,3], constants[1,3])"),
        (lambda xs: sum((x * 2.5).tanh() for x in xs), ([1.0, 2.0, 3.0],), "m0[1,3] = xs[1,3] * 2.5"),
        (lambda xs: xs[1] * xs[2], ([1.0, 2.0, 3.0],), "m0[1,1] = xs+1[1,1] * xs+2[1,1]"),
        (lambda x: held.scale * x, (1.0,), "m0[1,1] = scale[1,1] * x[1,1]"),
        (lambda x: held.part.scale * x, (1.0,), "m0[1,1] = part.scale[1,1] * x[1,1]"),
        (lambda x: held.parts["bias"][0] * x, (1.0,), "m0[1,1] = bias[1,1] * x[1,1]"),
        (held.method, (1.0,), "m0[1,1] = part.scale[1,1] * x[1,1]"),
        (lambda x: described.scale * x, (1.0,), "m0[1,1] = leaf[1,1] * x[1,1]"),
    ],
    ids=["a builtin", "an object", "an array of Values", "a variable to come", "a list that grew", "constants",
         "one constant", "parts of a list", "an attribute", "a part's attribute", "a list in a dict", "a method",
         "a descriptor"],
)  # fmt: skip
def test_names_are_found_as_far_as_they_can_be(function: Any, args: Any, line: str) -> None:
    compiled = compile(function)
    compiled(*args)
    assert line in str(compiled.program).splitlines()
    assert repr(compiled.program).startswith("<program: ")


def test_guards_are_printed() -> None:
    compiled = compile(lambda x: x * x if x > 2.0 else x)
    compiled(3.0)
    assert "guard x[0] > 2" in str(compiled.program)


def test_what_is_taken_costs_no_operations() -> None:
    rows = [[gradwalk.Value(float(i)), gradwalk.Value(10.0 * i)] for i in range(3)]
    compiled = compile(lambda i: gradwalk.dot(gradwalk.take(rows, i), [1.0, 2.0]))
    assert compiled(1).data == 21.0
    program = compiled.program
    assert ([each.op for each in program.instructions], program.counts.flops) == (["take", "dot"], 4)


@pytest.mark.parametrize(("outputs", "more"), [(8, False), (9, True)])
def test_eight_results_are_shown(outputs: int, more: bool) -> None:
    compiled = compile(lambda xs: [2.0 * x for x in xs])
    compiled([1.0] * outputs)
    last = str(compiled.program).splitlines()[-1]
    assert (last.count("["), last.endswith(", …")) == (8, more)


double = gradwalk.custom_op(lambda x: 2.0 * x, lambda x, out: (2.0,), name="double")
first, second, third, fourth = ([gradwalk.Value(float(i + j)) for i in range(3)] for j in range(4))


def of_beginnings(xs: Any) -> Any:
    weights = [weight for end in range(1, len(xs) + 1) for weight in gradwalk.softmax(xs[:end])]
    return gradwalk.dot(weights, [float(i) for i in range(len(weights))])


def here_and_there(xs: Any) -> Any:
    return sum(xs[i].exp() for i in (0, 1, 5, 3, 8, 2))


def two_windows(xs: Any) -> Any:
    return [gradwalk.dot([xs[i], xs[i + 1], xs[i + 10], xs[i + 11]], [2.0, 3.0, 4.0, 5.0]) for i in (0, 5)]


@pytest.mark.parametrize(
    ("function", "args", "flops", "lines"),
    [
        (lambda xs: [-x for x in xs], ([1.0, 2.0, 3.0],), 3, ["n0[1,3] = -xs[1,3]", "return n0[0], n0[1], n0[2]"]),
        (lambda x: x**3, (2.0,), 1, ["p0[1,1] = x[1,1] ** 3", "return p0[0]"]),
        (lambda x: gradwalk.leaky_relu(x, 0.25), (2.0,), 1, ["l0[1,1] = leaky_relu(x[1,1], 0.25)", "return l0[0]"]),
        (lambda x: double(x), (2.0,), 1, ["t0[1,1] = double(x[1,1])", "return t0[0]"]),
        (lambda x: x if x > 2.0 else x * 3.0, (1.0,), 1,
         ["m0[1,1] = x[1,1] * 3", "guard not x[0] > 2", "return m0[0]"]),
        (lambda x: [x, x * 3.0], (1.0,), 1, ["m0[1,1] = x[1,1] * 3", "return x[0], m0[0]"]),
        (lambda xs, k: [x * k for x in xs], ([1.0, 2.0], 4.0), 2,
         ["m0[1,2] = xs[1,2] * k[1,1]", "return m0[0], m0[1]"]),
        (lambda xs: gradwalk.softmax(xs)[0], ([1.0, 2.0, 3.0, 4.0],), 12,
         ["t0[1,4] = softmax(xs[1,4])", "return t0[0]"]),
        (lambda xs: sum(xs), ([1.0, 2.0, 3.0, 4.0],), 4, ["t0[1,1] = sum(xs[1,4])", "return t0[0]"]),
        (of_beginnings, ([0.1, 0.2, 0.3, 0.4],), 4 * 4 * 3 + 2 * 10,
         ["t0[4,4] = softmax(xs[1,4]), rows of 1 to 4", "h1[1,1] = dot(t0[gather 1,10], constants[1,10])",
          "return h1[0]"]),
        (here_and_there, ([float(i) for i in range(9)],), 12,
         ["e0[1,6] = exp(xs[gather 1,6])", "t1[1,1] = sum(e0[1,6])", "return t1[0]"]),
        (two_windows, ([0.1 * i for i in range(30)],), 16,
         ["h0[2,1] = dot(xs[loop 2,4], constants[2,4])", "return h0[0], h0[1]"]),
        (lambda x: gradwalk.dot([first[0], second[0], third[0]], [x] * 3), (2.0,), 6,
         ["h0[1,1] = dot(first|second|third[1,3], x[1,1])", "return h0[0]"]),
        (lambda x: gradwalk.dot([first[0], second[0], third[0], fourth[0]], [x] * 4), (2.0,), 8,
         ["h0[1,1] = dot(first|second|third|…[1,4], x[1,1])", "return h0[0]"]),
    ],
    ids=["a sign", "a power", "a parameter", "a function of one's own", "a guard", "an argument", "one number for all",
         "a row", "a sum", "rows of different lengths", "a table", "loops", "three names", "more names"],
)  # fmt: skip
def test_every_kind_of_line(function: Any, args: Any, flops: int, lines: list[str]) -> None:
    """What is read, by its name and shape; what it costs, of which a row of a softmax counts three times."""
    compiled = compile(function)
    compiled(*args)
    head, *told = str(compiled.program).splitlines()
    assert (told, f" {flops} flops," in head) == (lines, True)


def test_tables_are_counted_among_the_bytes() -> None:
    compiled = compile(here_and_there)
    compiled([float(i) for i in range(9)])
    counts = compiled.program.counts
    assert counts.bytes == 8 * counts.slots + 4 * 6
