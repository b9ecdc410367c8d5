"""A hundred random programs on every run of the suite, and that the proof would notice: `make fuzz` tries more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from calls import CALLS, Call
from differences import Difference, differences, shown, smallest
from fuzz import found, found_in, made_small
from outcomes import Engines, Outcome, TooLong, outcomes
from programs import Program, program

PROGRAMS = 100
SEED = 1


@pytest.fixture(scope="module")
def engines() -> Iterator[Engines]:
    running = Engines()
    yield running
    running.close()


def test_programs_say_the_same_however_they_are_run(engines: Engines) -> None:
    """Float code, both engines, compiled, exact, in batches, and their derivatives: see outcomes.py."""
    for tried, different in found_in(engines, range(SEED, SEED + PROGRAMS)):
        for difference in different:
            pytest.fail(made_small(0, tried, difference))


def test_programs_are_of_every_kind() -> None:
    """What the programs are made of, so that no kind is lost; and every call raises or returns something else."""
    written = "\n".join(program(seed).source for seed in range(400))
    for part in (
        *("if ", "elif ", "else:", "for ", "while ", "break", "continue", "try:", "except ", "finally:", "raise "),
        *("match ", "def f", "nonlocal ", "lambda ", "copy.copy(", "copy.deepcopy(", "dataclasses.asdict(", " in "),
        *(" == ", " != ", " <= ", " and ", " or ", "not ", "grad(grad(", "jvp(", "m.take(", "m.cross_entropy("),
        *("isinstance(", "~n", " << ", ".append(", ".sort(", ".index(", "np.where(", "h", "w[1]", "p.u", "step("),
    ):
        assert part in written, part
    assert all(len(program(seed).calls) == CALLS for seed in range(10))


# ---------------------------------------------------------------- would it notice?

CALL = Call(
    {"a": 1.0, "b": 2.0, "n": 1, "k": 0, "xs": [1.0, 2.0], "ys": [3.0], "d": {"u": 1.0, "v": 2.0}, "p": (1.0, 2.0, 1),
     "arr": [1.0, 2.0, 3.0]},
    weight=0.5,
)  # fmt: skip
HEADER = "def program(a, b, n, k, xs, ys, d, p, arr):\n"


def small(body: str) -> Program:
    return Program(HEADER + "".join(f"    {line}\n" for line in body.split("\n")), [CALL] * 2)


def test_a_right_program_has_no_differences(engines: Engines) -> None:
    assert found(engines, small("return a * b + xs[0] * w[1] + h")) == []


@pytest.mark.parametrize("way", ["plain", "eager", "exact, nodes", "compiled, nodes", "compiled twice", "batch"])
@pytest.mark.parametrize("wrong", [Outcome((7.0,), (0.0,)), Outcome(raised=("TypeError",))])
def test_a_wrong_outcome_is_seen(engines: Engines, way: str, wrong: Outcome) -> None:
    """Another number, or an error: in each way of running it."""
    tried = small("return a * b + xs[0] * w[1] + h")
    of = engines.outcomes(tried)
    native = of["native"]
    assert list(differences(tried, of)) == []
    of["native"] = {**native, way: [wrong, *native[way][1:]]}
    assert {0} == {difference.call for difference in differences(tried, of)}


@pytest.mark.parametrize("way", ["eager", "exact, nodes", "compiled, nodes", "batch"])
def test_a_wrong_gradient_is_seen(engines: Engines, way: str) -> None:
    """One part in a billion of one gradient."""
    tried = small("return a * b + xs[0] * w[1] + h")
    of = engines.outcomes(tried)
    right = of["native"][way][1]
    *others, last = right.gradients or ()
    of["native"][way][1] = replace(right, gradients=(*others, last * (1.0 + 1e-9)))
    assert {1} == {difference.call for difference in differences(tried, of)}


def test_a_wrong_derivative_of_both_engines_is_seen(engines: Engines) -> None:
    """Central differences know better than a custom operation whose gradient is nonsense; beside a kink, or where the
    branch is that of one point alone, they do not."""
    wrong = "return m.custom_op(lambda x: x * x, lambda x, out: 5.0, check=False)(a) + w[1]"
    assert {"eager against central differences"} == {difference.way for difference in found(engines, small(wrong))}
    kink = "return m.relu(a - 1.0) + w[1]"
    assert found(engines, small(kink)) == []
    branch = "return (a - 1.0) or w[1] * 0.0"
    assert found(engines, small(branch)) == []


def test_a_program_that_does_not_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a smaller form of one that failed may be; the process goes on with the next."""
    monkeypatch.setattr("outcomes.LONGEST", 1)
    with pytest.raises(TooLong):
        outcomes(small("while True:\n    pass"))
    assert outcomes(small("return a * b"))["eager"][0].numbers == (2.0,)


def test_a_failing_program_is_made_small() -> None:
    """Statements, branches, parts of expressions and calls that do not matter go."""
    tried = small("v = a\nfor x in xs:\n    if x > b:\n        v = v + m.sin(x * 2.0)\nreturn [v, b]")
    tried = replace(tried, calls=[CALL] * 8)
    least = smallest(tried, lambda one: "m.sin(" in one.source and bool(one.calls))
    assert least.source == HEADER + "    v = m.sin(1.0)\n"
    assert len(least.calls) == 1
    report = shown(least, Difference(0, "plain against eager", Outcome((1.0,)), Outcome(raised=("TypeError",))))
    assert all(part in report for part in ("plain against eager", "m.sin(", "'xs': [1.0, 2.0]", "TypeError"))
