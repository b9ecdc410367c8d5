"""`rows[i]` in a function as it stands: one program serves every i, where it can."""

from __future__ import annotations

import builtins
import importlib.util
import itertools
import linecache
import random
import threading
from pathlib import Path
from typing import Any

import pytest
from comparing import close, with_gradients

from gradwalk import Value, compile

# in a file of their own: pytest compiles this one in its own way
FUNCTIONS = """
from gradwalk import Value, maximum
import functools
import heapq
import math

ROWS = [[Value(0.3 * i - 0.1 * j, label=f"{i}{j}") for j in range(3)] for i in range(5)]
SINGLE = [Value(0.5 + 0.25 * i) for i in range(5)]
PAIRS = [(Value(1.0 + i), Value(2.0 - i)) for i in range(5)]
RAGGED = [[Value(float(i)) for _ in range(i + 1)] for i in range(5)]
NUMBERS = [0.5, 1.5, 2.5, 3.5, 4.5]
MIXED = [[v, n] for v, n in zip(SINGLE, NUMBERS)]
LEAVES = [*(v for row in ROWS for v in row), *SINGLE, *(v for r in [*PAIRS, *RAGGED] for v in r)]
ORDER = [3, 1, 4, 0, 2]

def table(x, i, j): return sum(v * x for v in ROWS[i]) * ROWS[j][1]
def single(x, i, j): return SINGLE[i] * x + SINGLE[j] ** 2
def pairs(x, i, j):
    a, b = PAIRS[i]
    return a * x - b * PAIRS[j][0]
def computed(x, i, j):
    made = [v * x for v in SINGLE]
    return made[i] / (1.0 + made[j] ** 2)
def argument(x, i, j): return [x, x * x, 2.0 * x, SINGLE[0], x][i] * j

def negative(x, i, j): return SINGLE[i - 5] * SINGLE[-j - 1] * x
def permuted(x, i, j): return SINGLE[ORDER[i]] * x + SINGLE[j]
def ragged(x, i, j): return sum(RAGGED[i]) * x + SINGLE[j]
def numbers(x, i, j): return math.sqrt(NUMBERS[i]) * x * SINGLE[j]
def lengths(x, i, j): return sum(SINGLE[:i + 1]) * x + SINGLE[j]
def counted_once(x, i, j):
    seen, total = set(), x * 0.0
    for v in (*ROWS[i], *ROWS[j], *ROWS[1]):
        if v not in seen:
            seen.add(v)
            total = total + v * x
    return total
def known_by_name(x, i, j): return {v: k for k, v in enumerate(SINGLE)}[SINGLE[i]] * x * SINGLE[j]
def the_same(x, i, j): return x * 2.0 if SINGLE[i] is SINGLE[j] else x * SINGLE[i]
def the_same_row(x, i, j): return x * 2.0 if id(ROWS[i]) == id(ROWS[j]) else x * SINGLE[i]
def labelled(x, i, j): return x * float(ROWS[i][0].label) * SINGLE[j]
def changed(x, i, j):
    made = [[x, x * 2.0] for _ in range(5)]
    row = made[i]
    row[0] = SINGLE[j]
    row.append(x)
    return sum(v for row in made for v in row)
def caught(x, i, j):
    rows = [[x, x * 2.0] for _ in range(5)]
    try:
        rows[i].append(SINGLE[j])
    except Exception:
        return x
    return sum(v for row in rows for v in row)
def stored(x, i, j):
    made = [x * 1.0] * 5
    made[i] = SINGLE[j]
    made[j] += x
    return sum(v * (k + 1) for k, v in enumerate(made))
def out_of_range(x, i, j):
    try:
        return SINGLE[i + 2] * x + SINGLE[j]
    except IndexError:
        return x
def empty(x, i, j):
    try:
        return [][i] * x
    except IndexError:
        return SINGLE[j] * x
def of_one_row(x, i, j):
    try:
        return sum([[x * 2.0, x]][i]) * SINGLE[j]
    except IndexError:
        return SINGLE[j] * x
def endless(x, i, j): return endless(x, i, j) if j > 3 else SINGLE[i] * x
def of_one(x, i, j):
    try:
        return [x * 2.0][i] * SINGLE[j]
    except IndexError:
        return x
def mixed(x, i, j): return sum(v * x for v in MIXED[i] if isinstance(v, float)) * SINGLE[j]
def nested(x, i, j): return (lambda k: [ROWS[k][m] * x for m in range(3)])(i)[j % 3]

def annotated(x, i, j):
    def of_place(k: int) -> Value: return SINGLE[k]
    return of_place(i) * x + of_place(j)

def keeping(x, i):
    rows, kept = KEPT
    kept.append(rows[i])
    return kept[-1][0] * x

class Model:
    def __init__(self): self.rows = ROWS
    def row(self, i): return self.rows[i]
    def __call__(self, x, i, j): return sum(a * b for a, b in zip(self.row(i), self.row(j))) * x
    @staticmethod
    def row_of(rows, i): return rows[i]
    @classmethod
    def first_of(cls, rows, i): return cls.row_of(rows, i)[0]
    def method(self, x, i, j): return self.first_of(self.rows, i) * self.row_of(self.rows, j)[1] * x
model = Model()
method = model.method

def scaled(factor, x, i, j): return SINGLE[i] * x * factor + SINGLE[j]
partial = functools.partial(scaled, 2.0)

def closed_over_later():
    def of_place(k): return SINGLE[k]
    def function(x, i, j): return of_place(i) * x + SINGLE[j] if x is not None else later
    yield function
    later = None
unfinished = closed_over_later()
not_yet_filled = next(unfinished)
"""
# what else may become of a table, or of the row itself, while a row of it is held; and how the row is read then
CHANGES = {
    "one entry": "made[1][0] = SINGLE[j]",
    "every row": "for each in made: each[0] *= x",
    "by another name": "other = made[2]; other[1] = x",
    "by a row at an open place": "made[j][1] = x",
    "at the place it was": "made[i][1] += x",
    "a slice": "made[3][:] = [x, x, x]",
    "longer": "made[4].append(x)",
    "shorter": "del made[0][0]",
    "in another order": "made[1].reverse()",
    "in an object": "held = Model(); held.rows = made[2]; held.rows[0] += x",
    "by C code": "heapq.heapreplace(made[2], x)",
    "it, by C code": "heapq.heappush(row, x * 9.0)",
    "not at all, in the end": "kept = made[2][0]; made[2][0] = x; {read}; made[2][0] = kept",
    "no longer, in the end": "made[2].append(x); {read}; made[2].pop()",
}
READ = ("row[0]", "row[-1]", "sum(row)", "row[:1][0]", "len(row)", "[*row][-1]", "(row + [x])[-2]", "(row * 2)[-1]",
        "(2 * row)[0]", "next(reversed(row))", "row.copy()[0]", "row.index(made[2][0]) if i == 2 else 9",
        "row.count(x)", "int(x in row)", "int(row == [x, *row[1:]])", "max(row)")  # fmt: skip
CHANGING = {
    f"row_{k}": f"""
def row_{k}(x, i, j):
    made = [[x * (2.0 + a + 2 * b) for b in range(3)] for a in range(5)]
    row, seen = made[i], 0.0
    {change.format(read=f"seen = {read}")}
    return sum(v * (k + 1) for k, v in enumerate(row)) + sum(v for each in made for v in each) + seen
"""
    for k, (change, read) in enumerate(
        (change, read) for change in CHANGES.values() for read in (READ if "{read}" in change else READ[:1])
    )
}
OPEN = ("table", "single", "pairs", "computed", "argument", "nested", "annotated", "model", "method",
        "partial", "not_yet_filled")  # fmt: skip
FIXED = ("negative", "permuted", "ragged", "numbers", "lengths", "counted_once", "known_by_name", "the_same",
         "the_same_row", "labelled", "changed", "caught", "stored", "out_of_range", "empty", "of_one", "of_one_row",
         "mixed", *CHANGING)  # fmt: skip


def loaded(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("subscripts") / "functions_with_tables.py"
    path.write_text(FUNCTIONS + "".join(CHANGING.values()), encoding="utf-8")
    return loaded(path)


@pytest.mark.parametrize("name", [*OPEN, *FIXED])
@pytest.mark.filterwarnings("ignore:compile:RuntimeWarning")
def test_the_answers_are_those_of_the_plain_function(functions: Any, name: str) -> None:
    """Every pair of integers, in an order in which programs are made, dropped and used again."""
    function = getattr(functions, name)
    compiled = compile(function)
    for i, j in [(3, 1), (3, 2), (2, 2), *itertools.product(range(5), range(5)), (3, 1)]:
        expected = with_gradients(function, (0.7, i, j), functions.LEAVES)
        assert close(expected, with_gradients(compiled, (0.7, i, j), functions.LEAVES)), (i, j)


@pytest.mark.parametrize("name", OPEN)
def test_one_program_serves_every_integer(functions: Any, name: str) -> None:
    compiled = compile(getattr(functions, name))
    for i, j in itertools.product(range(5), range(3)):
        compiled(0.7, i, j)
    assert len(compiled.programs) <= (3 if name == "nested" else 1)  # j % 3 needs j


def test_endless_recursion_is_the_functions_own_error(functions: Any) -> None:
    compiled = compile(functions.endless)
    assert [compiled(2.0, i, 0).data for i in range(3)] == [2.0 * single.data for single in functions.SINGLE[:3]]
    with pytest.raises(RecursionError, match="maximum recursion depth"):
        compiled(2.0, 3, 4)


def test_a_gpt_of_scalars_has_one_program_for_each_length() -> None:
    """examples/scalar_gpt.py as it stands: the token is the index of a list."""
    gpt = loaded(Path(__file__).resolve().parents[2] / "examples" / "scalar_gpt.py")
    parameters = gpt.initial_parameters(random.Random(0))
    leaves = gpt.flattened(parameters)

    def loss(tokens: Any) -> Any:
        return gpt.loss_of(parameters, tokens)

    code = gpt.next_token_logits.__code__
    compiled = compile(loss)
    for name in ("ada", "ida", "eva", "ben", "mo"):
        tokens = gpt.tokens_of(name)
        assert close(with_gradients(loss, (tokens,), leaves), with_gradients(compiled, (tokens,), leaves))
    assert len(compiled.programs) == 2
    assert gpt.next_token_logits.__code__ is code


def test_a_row_that_is_kept_after_the_trace_says_what_it_is(functions: Any) -> None:
    """Once it is not what it was; and it cannot be changed."""
    compiled = compile(functions.keeping)
    rows = [[Value(float(i))] for i in range(3)]
    kept: list[Any] = []
    functions.keeping.__globals__["KEPT"] = rows, kept
    for i in range(2):
        compiled(2.0, i)
    assert kept[1][0].data == 1.0
    rows[2][0] = Value(7.0)
    for use in (lambda row: row[0], lambda row: row.append(1.0)):
        with pytest.raises(Exception, match=r"keep rows\[int\(i\)\]"):
            use(kept[1])


def test_integers_that_stay_the_same_are_fixed(functions: Any) -> None:
    """Where the same place is read every time, the program reads that place alone."""
    compiled = compile(functions.single)
    for x in (0.5, 0.7, 0.9):
        compiled(x, 2, 3)
    assert "take" not in str(compiled.program)
    assert len(compiled.programs) == 1


@pytest.mark.parametrize(("name", "entries"), [("single", 5 + 5), ("table", 5 * 3 + 5 * 3)])
@pytest.mark.parametrize("too_many", [False, True])
def test_too_many_entries_are_not_left_open(
    functions: Any, name: str, entries: int, too_many: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thousands of subscripts of a long list would be a program with their product in it."""
    monkeypatch.setattr("gradwalk.compiler.trace.MOST", entries - too_many)
    function = getattr(functions, name)
    compiled = compile(function)
    for i in range(3):
        assert close([function(1.0, i, 0).data], [compiled(1.0, i, 0).data])
    assert len(compiled.programs) == (3 if too_many else 1)


def test_a_cell_that_is_more_than_python(functions: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text of a cell in a notebook need not be Python: its functions are compiled with each integer fixed."""
    text = "%matplotlib inline\ndef cell(x, i): return SINGLE[i] * x\n"
    monkeypatch.setitem(linecache.cache, "<cell 1>", (len(text), None, text.splitlines(keepends=True), "<cell 1>"))
    exec(builtins.compile(text.replace("%matplotlib inline", ""), "<cell 1>", "exec"), names := vars(functions).copy())
    compiled = compile(names["cell"])
    assert [compiled(2.0, i).data for i in (0, 1, 0)] == [1.0, 1.5, 1.0]
    assert len(compiled.programs) == 2


def test_a_function_that_two_threads_trace_at_once(functions: Any) -> None:
    """Its subscripts stay open until both are done."""
    code, other, results = functions.single.__code__, compile(functions.single), []
    other(1.0, 0, 3)
    while_traced: list[Any] = []

    def around(x: Any, i: int, j: int) -> Any:
        for each in while_traced:
            thread = threading.Thread(target=lambda traced=each: results.append(traced(1.0, 1, 3).data))
            thread.start()
            thread.join()
        return functions.single(x, i, j)

    compiled = compile(around)
    compiled(2.0, 0, 3)
    while_traced.append(other)
    assert [compiled(2.0, i, 3).data for i in (1, 2)] == [0.75 * 2.0 + 1.25**2, 1.0 * 2.0 + 1.25**2]
    assert (results, len(compiled.programs), len(other.programs)) == ([0.75 + 1.25**2], 1, 1)
    assert functions.single.__code__ is code


def test_functions_have_their_own_code_again(functions: Any) -> None:
    """Also where the function raises; meanwhile, other threads get what they always got."""
    code, wrong, stop = functions.single.__code__, [], threading.Event()

    def watch() -> None:
        while not stop.is_set():
            out = functions.single(2.0, 1, 3)
            if out.data != 0.75 * 2.0 + 1.25**2:
                wrong.append(out)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        for _ in range(20):
            compiled = compile(functions.single)
            for i in range(3):
                compiled(2.0, i, 3)
            with pytest.raises(IndexError):
                compiled(2.0, 7, 3)
    finally:
        stop.set()
        thread.join()
    assert not wrong
    assert functions.single.__code__ is code
