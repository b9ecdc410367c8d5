"""detect_nonfinite: the right line of each planted program; gradient_report: vanishing and exploding by scope."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import math
import operator
import threading
from collections.abc import Set
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from xml.etree import ElementTree

import pytest
from nonfinite_programs import BACKWARD, FORWARD, run

import gradwalk
from gradwalk import Value, scope
from gradwalk.blame import NonFiniteError, detect_nonfinite, gradient_report
from gradwalk.custom import checkpoint
from gradwalk.functional import grad, hessian


def marked(source: str) -> int:
    return next(i for i, line in enumerate(source.splitlines(), 1) if line.endswith("# here"))


@pytest.mark.parametrize("name", FORWARD)
def test_forward(name: str) -> None:
    """The line that first makes an inf or nan is named, in the user's own file."""
    with pytest.raises(NonFiniteError) as caught:
        run(FORWARD[name], detect_nonfinite(), "users_program.py", gradwalk.ieee())
    error = caught.value
    assert (error.phase, error.file, error.line) == ("forward", "users_program.py", marked(FORWARD[name])), str(error)


@pytest.mark.parametrize("name", BACKWARD)
def test_backward(name: str) -> None:
    """The line of the operation whose gradient first becomes inf or nan is named, not that of backward()."""
    with pytest.raises(NonFiniteError) as caught:
        run(BACKWARD[name], detect_nonfinite(), "users_program.py", gradwalk.ieee())
    error = caught.value
    assert (error.phase, error.file, error.line) == ("backward", "users_program.py", marked(BACKWARD[name])), str(error)


def test_there_are_fifty_programs() -> None:
    """The bar counts them."""
    assert len(FORWARD) + len(BACKWARD) == 50


def test_a_node_made_by_hand_has_a_line(engine: Any) -> None:
    """Where it was made, in the block's own thread; after the block nobody asks any more."""

    def program() -> Any:
        return engine.Value(math.inf, (engine.Value(1.0),), "hand")

    text = r"'hand' made inf in the forward pass, at .*test_blame\.py"
    with pytest.raises(NonFiniteError, match=text) as caught, detect_nonfinite():
        program()
    assert caught.value.line == program.__code__.co_firstlineno + 1
    assert program().data == math.inf


def test_the_message_has_operands_and_the_chain() -> None:
    """Operation, place, operands with their labels, and the way from the nearest labelled node."""
    a = Value(1e150, label="a")

    def program() -> None:
        b = a + 1.0
        c = b * 1e100
        c * c

    with pytest.raises(NonFiniteError) as caught, detect_nonfinite():
        program()
    first, operands, chain = str(caught.value).splitlines()
    assert first.startswith("'*' made inf in the forward pass, at ")
    assert first.split(":")[-1] == str(caught.value.line)
    assert operands == "  from 1e+250 and 1e+250"
    assert chain.startswith("  the chain: 'a' = 1e+150 → '+' (line ")
    assert chain.endswith(" = inf")


def test_the_chain_does_not_begin_at_the_culprit_itself() -> None:
    """Which may have a label, too."""
    a = Value(1e300, label="a")
    product = a * 1.0
    product.label = "product"
    a.data = product.data = math.inf
    with pytest.raises(NonFiniteError) as caught, detect_nonfinite():
        product + 1.0
    assert "the chain: 'a' = inf → " in str(caught.value)


def test_the_backward_message_says_what_was_multiplied(engine: Any) -> None:
    """The local gradient, the node's own gradient, and what became of them; the leaves keep their grad."""
    x = engine.Value(0.0, label="x")
    x.grad = 7.0
    text = r"(?s)'sqrt' made inf.*local gradient inf times its own gradient 3\.0"
    with pytest.raises(NonFiniteError, match=text), detect_nonfinite():
        (x.sqrt() * 3.0).backward()
    assert x.grad == 7.0


def test_nothing_is_made_of_zero_times_infinity(engine: Any) -> None:
    """As backward() hands on nothing there, there is nothing to find."""
    x = engine.Value(0.0, label="x")
    with detect_nonfinite():
        (x.sqrt() * 0.0).backward()
    assert x.grad == 0.0


def test_a_grad_that_was_bad_before(engine: Any) -> None:
    """A leaf that comes with nan in its grad is named as such."""
    x = engine.Value(1.0, label="x")
    x.grad = math.nan
    text = r"the grad of 1\.0 \(node 'x'\) was nan before this backward pass"
    with pytest.raises(NonFiniteError, match=text), detect_nonfinite():
        (x * 2.0).backward()


def test_finite_programs_run_as_before(engine: Any) -> None:
    """Nothing changes inside the block, nor after it."""
    backward = engine.Value.backward
    x = engine.Value(3.0)
    with detect_nonfinite():
        (x * x).backward()
        with gradwalk.ieee():
            assert (engine.Value(-math.inf).exp()).data == 0.0
    assert x.grad == 6.0
    assert engine.Value.backward is backward
    assert (x * 1e308 * 10.0).data == math.inf


def test_a_block_in_a_block_gives_back_the_one_around_it(engine: Any) -> None:
    """What was made before the inner one still has its line, once that is left."""
    with detect_nonfinite():
        y = engine.Value(0.0).sqrt()
        with detect_nonfinite():
            engine.Value(1.0).exp().backward()
        with pytest.raises(NonFiniteError, match=r"in the backward pass, at .*test_blame\.py"):
            y.backward()


def test_after_the_last_block_backward_is_the_engines_own(engine: Any) -> None:
    """However many blocks there were, one after the other or one in the other: nothing watches any more."""
    for _ in range(2):
        with detect_nonfinite(), detect_nonfinite():
            assert engine.Value.backward.__module__ == "gradwalk.blame"
    assert getattr(engine.Value.backward, "__module__", "native") != "gradwalk.blame"


def test_nodes_from_before_the_block(engine: Any) -> None:
    """They have no line, and the message says so."""
    y = engine.Value(0.0).sqrt()
    with pytest.raises(NonFiniteError, match="in a node made before the block"), detect_nonfinite():
        y.backward()


def test_the_culprit_from_before_the_block(engine: Any) -> None:
    """Seen when it is used: the operation that made it first is named, not the one that used it."""
    culprit = engine.Value(1e200, label="a") * 1e200
    later, other = (culprit + 1.0) * 2.0, engine.Value(1e300) * 1e300
    with pytest.raises(NonFiniteError, match=r"'\*' made inf in the forward pass") as caught, detect_nonfinite():
        later - 1.0
    assert caught.value.node is culprit
    with pytest.raises(NonFiniteError) as caught, detect_nonfinite():
        engine.Value(2.0) * later
    assert caught.value.node is culprit
    with pytest.raises(NonFiniteError) as caught, detect_nonfinite():
        later * other  # of two, the one on the left
    assert caught.value.node is culprit


def test_second_derivatives_do_not_trip_it() -> None:
    """Branches of a row that are not taken may be inf while derivatives are recorded."""
    with detect_nonfinite():
        assert hessian(lambda x: x**2)(0.0) == 2.0
        assert grad(grad(lambda x: x**3))(0.0) == 0.0


def test_functions_are_watched_too() -> None:
    """grad() inside the block raises for what backward() would."""
    with pytest.raises(NonFiniteError, match="'sqrt' made inf in the backward pass"), detect_nonfinite():
        grad(lambda x: x.sqrt())(0.0)


def test_other_threads_are_left_alone() -> None:
    """A block in one thread does not watch another."""
    outcomes: list[float] = []

    def other() -> None:
        x = Value(0.0)
        x.sqrt().backward()
        outcomes.append(x.grad)

    with detect_nonfinite():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert outcomes == [math.inf]


def test_where_there_are_only_library_lines() -> None:
    """A pool's thread that calls an operation itself, in this context: the library's line is the closest there is."""
    here = contextvars.copy_context
    with detect_nonfinite(), ThreadPoolExecutor(1) as pool, pytest.raises(NonFiniteError, match=r"thread\.py:\d+\n"):
        pool.submit(here().run, operator.mul, Value(1e200), 1e200).result()


@pytest.mark.parametrize(
    "multiply",
    [
        functools.singledispatch(operator.mul),
        lambda x, y: Set.isdisjoint(set(), map(operator.mul, [x], [y])),  # a module that Python carries frozen
    ],
    ids=["functools", "frozen"],
)
def test_a_librarys_line_is_not_the_users(multiply: Any) -> None:
    """Who called the library is named."""
    with pytest.raises(NonFiniteError) as caught, detect_nonfinite():
        multiply(Value(1e200), 1e200)
    assert caught.value.file == __file__


def test_a_leaf_whose_gradient_overflows_has_no_chain() -> None:
    """What came to it was finite, each by itself; nothing lies below a leaf."""
    x = Value(1.0, label="x")
    with pytest.raises(NonFiniteError) as caught, detect_nonfinite():
        (x * 1e308 + (x - 1.0) * 1e308).backward()
    [line] = str(caught.value).splitlines()
    assert line.startswith("the gradient of 1.0 (node 'x') overflowed as its contributions were added up")


def test_a_node_made_by_hand_in_a_checkpoint() -> None:
    """Both who checkpoints and who watches are told of it."""
    with detect_nonfinite(), pytest.raises(NonFiniteError, match="'hand' made inf in the forward pass"):
        checkpoint(lambda x: Value(math.inf, (x,), "hand", local_grads=(1.0,)))(Value(1.0))


@pytest.mark.parametrize(
    ("count", "told"),
    [(3, ""), (4, " and 1e+308"), (5, " and 1e+308 and 1 more"), (6, " and 1e+308 and 2 more")],
)
def test_of_many_operands_four_are_told(count: int, told: str) -> None:
    """The others are counted."""
    with pytest.raises(NonFiniteError) as caught, detect_nonfinite():
        gradwalk.sum([Value(1e308) for _ in range(count)])
    assert str(caught.value).splitlines()[1] == f"  from 1e+308 and 1e+308 and 1e+308{told}"


@pytest.mark.parametrize("length", [1, 4, 5, 9])
def test_a_long_chain_is_told_by_its_ends(length: int) -> None:
    """Where it begins, and the last steps: six in all."""
    x = Value(1e200, label="a")

    def program() -> None:
        y = x
        for _ in range(length):
            y = abs(y)
        y * 1e200

    with pytest.raises(NonFiniteError) as caught, detect_nonfinite():
        program()
    first, *steps, last = str(caught.value).splitlines()[-1].split(" → ")
    assert (first, last[-6:]) == ("  the chain: 'a' = 1e+200", " = inf")
    assert ["'abs'"] * min(length, 4) == [step.split()[0] for step in steps]


def test_a_chain_begins_at_the_nearest_leaf_where_nothing_has_a_label() -> None:
    """A constant is no beginning."""
    with pytest.raises(NonFiniteError) as caught, detect_nonfinite():
        (Value(1e200) * 2.0 * 3.0) * (2.0 * Value(1e300))
    assert "  the chain: 1e+300 → " in str(caught.value)


def test_constants_are_nobodys_trouble(engine: Any) -> None:
    """They are no inputs: what one is handed, or holds, may be anything."""
    x = engine.Value(1.0)
    quotient = x / 1e-200  # by the constant, the derivative is infinite
    quotient.backward()
    with detect_nonfinite():
        quotient.backward()
    assert x.grad == pytest.approx(2e200)


def test_behind_a_constant_it_goes_on_looking(engine: Any) -> None:
    """What a constant is handed is no trouble, but what comes after it in the pass may be."""
    x, y = engine.Value(1.0), engine.Value(0.0)
    with pytest.raises(NonFiniteError, match="'sqrt' made inf in the backward pass"), detect_nonfinite():
        (y.sqrt() + x / 1e-200).backward()
    assert (x.grad, y.grad) == (0.0, 0.0)


@pytest.fixture
def report() -> gradwalk.blame.GradientReport:
    """Four scopes: one over all of the axis, one at its middle, one without a gradient, one that is infinite."""
    kinds = [
        ("wide", 3, 1e-4, 1e-1, 1e4, 0.25, 0),
        ("one", 1, 1.0, 1.0, 1.0, 0.0, 0),
        ("none", 1, 0.0, 0.0, 0.0, 1.0, 0),
        ("burst", 1200, 0.0, math.nan, 0.0, 0.0, 1200),
    ]
    return gradwalk.blame.GradientReport([gradwalk.blame.ScopeGradients(*kind) for kind in kinds])


def test_gradients_are_drawn_on_a_logarithmic_axis(report: Any) -> None:
    """A line from the smallest to the largest, a diamond at the median, powers of ten below both ends."""
    assert report.plot(width=17).splitlines() == [
        "wide  │──────◆──────────│",
        "one   │        ◆        │",
        "none  │                 │",
        "burst │                 │",
        "       1e-04       1e+04",
    ]


def test_one_size_of_gradients_has_an_axis_too(report: Any) -> None:
    """Of one power of ten."""
    alone = gradwalk.blame.GradientReport(report.scopes[1:2])
    assert alone.plot(width=5).splitlines() == ["one │◆    │", "     1e+001e+01"]


def test_bars_of_a_notebook_are_the_plots(report: Any) -> None:
    """240 pixels from one end of the axis to the other, and 6 on either side of it."""
    page = ElementTree.fromstring(report._repr_html_())
    bars = [[float(line.get("x1")), float(line.get("x2"))] for line in page.iter("line")]  # type: ignore[arg-type]
    assert bars == [[6.0, 246.0], [126.0, 126.0]]
    assert [svg.get("width") for svg in page.iter("svg")] == ["252", "252"]
    assert {cell.get("style") for cell in page.findall("tr/*[last()]")} == {"min-width: 252px"}
    assert [path.get("d") for path in page.iter("path")] == ["M91.0 7l5 -5 5 5 -5 5z", "M121.0 7l5 -5 5 5 -5 5z"]


def test_columns_of_the_table_are_as_wide_as_their_cells(report: Any) -> None:
    assert report.table().splitlines() == [
        "scope  nodes  smallest   median  largest  zero",
        "wide       3   1.0e-04  1.0e-01  1.0e+04   25%  exploding",
        "one        1   1.0e+00  1.0e+00  1.0e+00    0%",
        "none       1   0.0e+00  0.0e+00  0.0e+00  100%  no gradient",
        "burst  1,200   0.0e+00      nan  0.0e+00    0%  inf or nan",
    ]


@pytest.mark.parametrize(
    ("median", "largest", "verdict"),
    [(1e-6, 1e3, ""), (9e-7, 1e3, "vanishing"), (1.0, 1001.0, "exploding"), (9e-7, 1001.0, "exploding")],
)
def test_verdicts_of_scopes(median: float, largest: float, verdict: str) -> None:
    """Vanishing goes by the median, exploding by the largest."""
    assert gradwalk.blame.ScopeGradients("a", 1, 1e-9, median, largest, 0.0, 0).verdict == verdict


def test_gradients_of_a_scope_are_summed_up() -> None:
    """The smallest is one that is not 0; the share of zeros is one of those that are finite."""
    a, b, c, d = (Value(1.0) for _ in range(4))
    with scope("s"):
        out = a * 4.0 + b * -0.5 + c * 0.0 + d * math.inf
    [found] = gradient_report(out).scopes
    assert (found.nodes, found.nonfinite, found.smallest, found.median, found.largest) == (11, 1, 0.5, 1.0, 4.0)
    assert found.zero == pytest.approx(1 / 10)


def test_gradient_report_names_what_vanishes_and_explodes() -> None:
    """One row per scope, from the inputs to the loss, with its verdict; leaves keep their grad."""
    x = Value(0.5)
    x.grad = 3.0
    with scope("early"):
        h = x * 1e-3
    with scope("squash"):
        for _ in range(4):
            h = h * 1e-3
    with scope("dead"):
        d = (h - 1.0).relu()
    with scope("late"):
        out = h * 1e5 + d * 1.0
        out = out * 1.0
    report = gradient_report(out)
    assert [(s.scope, s.verdict) for s in report.scopes] == [
        ("early", "vanishing"), ("squash", "exploding"), ("late", ""), ("dead", ""),
    ]  # fmt: skip
    assert x.grad == 3.0
    assert report.table().splitlines()[0].split() == ["scope", "nodes", "smallest", "median", "largest", "zero"]
    assert len(report.plot().splitlines()) == len(report.scopes) + 1
    assert "◆" in report.plot()


def test_gradient_report_of_a_dead_and_an_infinite_scope() -> None:
    """A row that nothing reaches and one that overflowed are called so; a report prints as the table and the plot."""
    with scope("dead"):
        d = Value(-1.0) * 2.0
    with scope("burst"):
        b = Value(1.0) * 1e200 * 1e200
    report = gradient_report(d.relu() + b)
    assert [(s.scope, s.verdict) for s in report.scopes if s.scope != "(no scope)"] == [
        ("dead", "no gradient"), ("burst", "inf or nan"),
    ]  # fmt: skip
    assert str(report) == f"{report.table()}\n\n{report.plot()}"
    assert report._repr_html_().count("<svg") == sum(s.largest > 0.0 for s in report.scopes) == 2


def test_gradient_report_in_a_notebook() -> None:
    """A table with a bar for each scope that has a gradient; whatever a scope is called, it is only text."""
    x = Value(0.5)
    with scope('<script>alert("a&b")</script>'):
        h = x * 1e-3
    with scope("late"):
        out = h * 1e5
    with scope("dead"):
        out = out + (x * 0.0).relu() * 0.0
    report = gradient_report(out)
    page = ElementTree.fromstring(report._repr_html_())
    head, *rows = page.findall("tr")
    assert [cell.text or "" for cell in head][:6] == ["scope", "nodes", "smallest", "median", "largest", "zero"]
    assert ["".join(row[0].itertext()) for row in rows] == [s.scope for s in report.scopes]
    assert rows[0][0].text == '<script>alert("a&b")</script>'
    assert [len(row.findall(".//svg")) for row in rows] == [int(s.largest > 0.0) for s in report.scopes]
    assert [span.text for span in head.findall(".//span")] == report.plot().splitlines()[-1].split()


def test_gradient_report_without_gradients() -> None:
    """There is nothing to draw, in a notebook either."""
    report = gradient_report(Value(1.0).stop_gradient() * 0.0)
    zero = gradwalk.blame.GradientReport([s for s in report.scopes if s.largest == 0.0])
    assert zero.plot() == "(no gradients to draw)"
    assert "<svg" not in zero._repr_html_()


def test_gradient_report_depth_and_bad_input() -> None:
    """Scopes fold up to the depth given; a plain number is refused."""
    x = Value(2.0)
    with scope("a"), scope("b"):
        y = x * x
    assert [s.scope for s in gradient_report(y).scopes] == ["a/b"]
    assert [s.scope for s in gradient_report(y, depth=1).scopes] == ["a"]
    with pytest.raises(TypeError, match="gradient_report: expected a Value, got a float"):
        gradient_report(2.0)


@pytest.mark.parametrize(
    "run",
    [
        lambda: gradwalk.compile(lambda i: gradwalk.take([[gradwalk.Value(1.0)], [gradwalk.Value(2.0)]], i)[0])(1).data,
        lambda: (
            gradwalk.compile(lambda i: gradwalk.cross_entropy([gradwalk.Value(1.0), gradwalk.Value(2.0)], i))(1).data
        ),
        lambda: gradwalk.compile(gradwalk.custom_op(lambda x: x * x, lambda x, out: 2.0 * x, name="square"))(3.0).data,
        lambda: gradwalk.hessian(gradwalk.compile(lambda x: x**3))(2.0),
        lambda: gradwalk.hvp(gradwalk.compile(lambda x: x**3))(2.0, 1.0),
    ],
    ids=["take", "cross_entropy", "custom_op", "hessian", "hvp"],
)
def test_compiled_functions_are_traced_while_watched(run: Any) -> None:
    """The watch on nodes made by hand does not read the numbers of a trace."""
    expected = run()
    with gradwalk.detect_nonfinite():
        assert run() == expected


def test_tasks_have_their_own_detector() -> None:
    """One that is in no block gets inf as a gradient; one that is, an error, also when another's block has ended."""

    def slope_at_zero() -> Any:
        with gradwalk.ieee():
            x = Value(0.0)
            try:
                x.sqrt().backward()
            except NonFiniteError:
                return "detected"
            return x.grad

    async def all_of_them() -> Any:
        both_inside, one_left = asyncio.Event(), asyncio.Event()

        async def first() -> Any:
            with detect_nonfinite():
                await both_inside.wait()
                found = slope_at_zero()
            one_left.set()
            return found

        async def second() -> Any:
            with detect_nonfinite():
                both_inside.set()
                await one_left.wait()
                return slope_at_zero()

        async def outside() -> Any:
            await both_inside.wait()
            found = slope_at_zero()
            await one_left.wait()
            return found, slope_at_zero()

        return await asyncio.gather(first(), second(), outside())

    backward = Value.backward
    assert asyncio.run(all_of_them()) == ["detected", "detected", (math.inf, math.inf)]
    assert Value.backward is backward
