"""Every row of the table: its local gradients, its accuracy, its kinks, its domain, and its IEEE manners."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from itertools import product

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradwalk import formula
from gradwalk.formula import Symbol, variable
from gradwalk.operation import Op
from gradwalk.ops import OPS

EACH_OP = pytest.mark.parametrize("op", OPS.values(), ids=OPS)
INF, NAN = math.inf, math.nan


def samples(op: Op) -> list[tuple[float, ...]]:
    return [sample if isinstance(sample, tuple) else (sample,) for sample in op.samples]


# ---------------------------------------------------------------- local gradients against differences


def difference(function: Callable[[float], float], x: float) -> tuple[float, float]:
    """A sixth-order central difference, and a bound of its rounding error."""
    # a power of two near |x| / 1000, so that log(0.001) stays in its domain and the steps are exact
    step = 2.0 ** (math.floor(math.log2(min(abs(x), 1.0) or 1.0)) - 10)
    around = {k: function(x + k * step) for k in (-3, -2, -1, 1, 2, 3)}
    near, middle, far = (around[k] - around[-k] for k in (1, 2, 3))
    slope = (45.0 * near - 9.0 * middle + far) / (60.0 * step)
    return slope, 1e-14 * max(map(abs, around.values())) / step


@pytest.mark.parametrize("op", [op for op in OPS.values() if not op.stops], ids=lambda op: op.name)
def test_local_grads_are_slopes(op: Op) -> None:
    """At its row's samples, each local gradient is the slope of forward: relative 1e-9, plus rounding."""
    for point in samples(op):
        for i, local in enumerate(op.local_grads(*point, op.forward(*point))[: len(op.inputs)]):
            slope, rounding = difference(lambda x, i=i, p=point: op.forward(*p[:i], x, *p[i + 1 :]), point[i])
            assert local == pytest.approx(slope, rel=1e-9, abs=rounding), (point, op.inputs[i])


@EACH_OP
def test_samples_are_in_the_domain(op: Op) -> None:
    """A row has samples; its domain holds there, and forward and local gradients are finite."""
    assert op.samples
    for point in samples(op):
        out = op.forward(*point)
        assert op.domain(*point)
        assert all(map(math.isfinite, (out, *op.local_grads(*point, out)))), point


@EACH_OP
def test_one_local_gradient_per_input(op: Op) -> None:
    """Inputs have local gradients; parameters, which are fixed numbers, have none."""
    point = samples(op)[0]
    assert len(op.names) == len(point)
    assert len(op.inputs) == len(op.local_grads(*point, op.forward(*point)))


# ---------------------------------------------------------------- accuracy, against 50 digits

Draw = Callable[[random.Random], float]


def uniform(low: float, high: float) -> Draw:
    return lambda source: source.uniform(low, high)


def sizes(low: float, high: float, signed: bool = True) -> Draw:
    """Numbers of any size between two powers of ten."""
    return lambda source: math.copysign(10.0 ** source.uniform(low, high), source.random() - (0.5 if signed else 0.0))


def above(edge: float, low: float, high: float) -> Draw:
    return lambda source: edge + 10.0 ** source.uniform(low, high)


def logistic(x: mpmath.mpf) -> mpmath.mpf:
    return 1 / (1 + mpmath.exp(-x))


def normal(x: mpmath.mpf) -> mpmath.mpf:
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def bell(x: mpmath.mpf) -> mpmath.mpf:
    return mpmath.exp(-x * x / 2) / mpmath.sqrt(2 * mpmath.pi)


def radius(x: mpmath.mpf, y: mpmath.mpf) -> mpmath.mpf:
    return mpmath.sqrt(x * x + y * y)


def log_gamma(x: mpmath.mpf) -> mpmath.mpf:
    return mpmath.re(mpmath.loggamma(x))


ANY = (sizes(-300, 300), sizes(-3, 3), uniform(-3.0, 3.0))
SMOOTH = (uniform(-700.0, 700.0), uniform(-3.0, 3.0), sizes(-300, 0))

# name, what it is, its derivatives, where, the relative error that holds, and the absolute error where the
# result crosses zero (a sum of two terms of size 1 cannot keep relative digits there)
ACCURACY: tuple[tuple[str, Callable[..., object], Callable[..., tuple[object, ...]], Sequence[Draw], float, float], ...]
ACCURACY = (
    ("sqrt", mpmath.sqrt, lambda x: (1 / (2 * mpmath.sqrt(x)),), [sizes(-300, 300, False)], 1e-15, 0.0),
    (
        "cbrt",
        lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
        lambda x: (1 / (3 * mpmath.cbrt(abs(x)) ** 2),),
        [sizes(-320, 300), uniform(-3.0, 3.0)],
        1e-15,
        0.0,
    ),
    ("expm1", mpmath.expm1, lambda x: (mpmath.exp(x),), [uniform(-40.0, 700.0), sizes(-300, 0)], 1e-15, 0.0),
    (
        "log1p",
        mpmath.log1p,
        lambda x: (1 / (1 + x),),
        [above(-1.0, -15, 0), sizes(-300, -0.01), sizes(0, 300, False)],
        1e-15,
        0.0,
    ),
    (
        "hypot",
        radius,
        lambda x, y: (x / radius(x, y), y / radius(x, y)),
        ANY,
        1e-15,
        0.0,
    ),
    (
        "atan2",
        mpmath.atan2,
        lambda y, x: (x / (x * x + y * y), -y / (x * x + y * y)),
        ANY,
        1e-15,
        0.0,
    ),
    ("asin", mpmath.asin, lambda x: (1 / mpmath.sqrt(1 - x * x),), [uniform(-1.0, 1.0), above(-1.0, -15, 0)], 1e-15, 0),
    ("asinh", mpmath.asinh, lambda x: (1 / mpmath.sqrt(1 + x * x),), ANY, 1e-15, 0.0),
    (
        "acosh",
        mpmath.acosh,
        lambda x: (1 / mpmath.sqrt((x - 1) * (x + 1)),),
        [above(1.0, -15, 2), sizes(0, 300, False)],
        1e-15,
        0.0,
    ),
    ("atanh", mpmath.atanh, lambda x: (1 / (1 - x * x),), [uniform(-1.0, 1.0), above(-1.0, -15, 0)], 1e-15, 0.0),
    ("sigmoid", logistic, lambda x: (logistic(x) * logistic(-x),), SMOOTH, 1e-15, 0.0),
    ("softplus", lambda x: mpmath.log1p(mpmath.exp(x)), lambda x: (logistic(x),), SMOOTH, 1e-15, 0.0),
    (
        "silu",
        lambda x: x * logistic(x),
        lambda x: (logistic(x) * (1 + x * logistic(-x)),),
        SMOOTH,
        1e-15,
        1e-16,
    ),
    # exp(-x*x/2) knows its exponent to half a unit in the last place: up to 700 units of the result
    (
        "gelu",
        lambda x: x * normal(x),
        lambda x: (normal(x) + x * bell(x),),
        [uniform(-37.0, 37.0), uniform(-3.0, 3.0), sizes(-300, 0)],
        3e-13,
        1e-16,
    ),
    ("erf", mpmath.erf, lambda x: (2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-x * x),), [uniform(-26.0, 26.0)], 1e-13, 0),
    # tanh near 1 is rounded to a number whose distance to 1 is known to 1e-16: an absolute error
    ("tanh", mpmath.tanh, lambda x: (mpmath.sech(x) ** 2,), [uniform(-20.0, 20.0), sizes(-300, 0)], 1e-15, 2e-16),
    # near its zeros at 1 and 2 (and the negative ones), where logarithms of up to 10 cancel: an absolute error
    (
        "lgamma",
        log_gamma,
        lambda x: (mpmath.digamma(x),),
        [uniform(0.01, 3.0), uniform(3.0, 200.0), sizes(-300, 0, False), sizes(0, 300, False)],
        4e-15,
        4e-15,
    ),
)


def assert_near(expected: object, actual: float, relative: float, absolute: float, where: object) -> None:
    size = abs(expected)  # type: ignore[arg-type]
    if 2.3e-308 < size < 1.7e308:  # subnormal results have fewer digits to give
        error = abs(mpmath.mpf(actual) - expected)
        assert error <= relative * size + absolute, (where, float(expected), actual, float(error / size))  # type: ignore[arg-type]


@pytest.fixture
def fifty_digits() -> object:
    with mpmath.workdps(50):
        yield


def drawn(name: str, draws: Sequence[Draw], count: int) -> list[tuple[float, ...]]:
    source = random.Random(name)
    return [tuple(source.choice(draws)(source) for _ in OPS[name].inputs) for _ in range(count)]


@pytest.mark.usefixtures("fifty_digits")
@pytest.mark.parametrize(
    ("name", "function", "_", "draws", "relative", "absolute"), ACCURACY, ids=[row[0] for row in ACCURACY]
)
def test_forward_is_accurate(
    name: str, function: Callable[..., object], _: object, draws: Sequence[Draw], relative: float, absolute: float
) -> None:
    """Forward is within the stated error of the true number, over the whole domain."""
    for point in drawn(name, draws, 300):
        assert_near(function(*map(mpmath.mpf, point)), OPS[name].forward(*point), relative, absolute, point)


@pytest.mark.usefixtures("fifty_digits")
@pytest.mark.parametrize(
    ("name", "_", "derivatives", "draws", "relative", "absolute"), ACCURACY, ids=[row[0] for row in ACCURACY]
)
def test_local_grads_are_accurate(
    name: str,
    _: object,
    derivatives: Callable[..., tuple[object, ...]],
    draws: Sequence[Draw],
    relative: float,
    absolute: float,
) -> None:
    """Local gradients are within the stated error of the true derivatives, over the whole domain."""
    for point in drawn(name, draws, 300):
        locals_ = OPS[name].local_grads(*point, OPS[name].forward(*point))
        for expected, actual in zip(derivatives(*map(mpmath.mpf, point)), locals_, strict=True):
            assert_near(expected, actual, relative, absolute, point)


@pytest.mark.usefixtures("fifty_digits")
def test_digamma_of_negative_numbers() -> None:
    """Below 0, digamma and lgamma go through their reflections: to 1e-13 of the size of what is subtracted."""
    for point in (-k + fraction for k in range(30) for fraction in (0.001, 0.2, 0.5, 0.7, 0.999)):
        expected = mpmath.digamma(mpmath.mpf(point))
        assert_near(expected, formula.digamma(point), 1e-13, 1e-13, point)
        assert_near(log_gamma(mpmath.mpf(point)), formula.lgamma(point), 1e-14, 1e-13, point)


@pytest.mark.usefixtures("fifty_digits")
def test_error_functions() -> None:
    """erf to a unit in the last place, erfc to four, where the result is a normal number; in C to one and three."""
    source = random.Random(7)
    at = [source.uniform(-6.0, 6.0) for _ in range(600)] + [source.uniform(0.0, 26.5) for _ in range(300)]
    at += [math.copysign(10.0 ** source.uniform(-307.0, 0.0), source.random() - 0.5) for _ in range(200)]
    for x in (*at, 0.5, 1.0, -0.5, -1.0, math.nextafter(0.5, 0.0), math.nextafter(1.0, 0.0)):
        for exact, ours, units in ((mpmath.erf, formula.erf, 1), (mpmath.erfc, formula.erfc, 4)):
            expected = exact(mpmath.mpf(x))
            assert abs(ours(x) - expected) <= units * math.ulp(float(expected)), (x, ours(x), expected)


@pytest.mark.parametrize("name", ["erf", "erfc"])
def test_error_functions_at_special_values(name: str) -> None:
    """The bits that Python gives at zeros, infinities, nan and far out; erfc vanishes gradually."""
    ours, theirs = getattr(formula, name), getattr(math, name)
    for x in (0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, -5e-324, 28.0, -28.0, 1e308, -1e308, -7.0):
        assert repr(theirs(x)) == repr(ours(x)), x
    assert max(abs(theirs(x) - ours(x)) for x in (26.6 + 0.001 * k for k in range(900))) <= 2e-323


# ---------------------------------------------------------------- symbols


@pytest.mark.parametrize(
    "attempt",
    [
        lambda x: bool(x),
        lambda x: 1.0 if x > 0.0 else 0.0,
        lambda x: x > 0.0 and x < 1.0,
        lambda x: x / 2.0,
        lambda x: 2.0 / x,
        lambda x: x**2.0,
        lambda x: 2.0**x,
    ],
    ids=["bool", "if", "and", "div", "rdiv", "pow", "rpow"],
)
def test_symbols_refuse(attempt: Callable[[Symbol], object]) -> None:
    """A row cannot branch on a symbol, nor use `/` and `**`, which raise in Python where C gives inf."""
    with pytest.raises(TypeError):
        attempt(variable("x"))


def test_the_refusal_says_what_to_use() -> None:
    """The error for `if` on a symbol names `where`."""
    with pytest.raises(TypeError, match=r"use where\(condition, a, b\)"):
        bool(variable("x") > 0.0)


@EACH_OP
def test_rows_take_symbols(op: Op) -> None:
    """Every part of a row can be written down: it has no `if`, `/` or `**`."""
    names = [variable(name) for name in op.names]
    assert isinstance(op.forward(*names), Symbol)
    assert len(op.inputs) == len(op.local_grads(*names, variable("out")))


# ---------------------------------------------------------------- kinks, and other chosen local gradients

KINKS = (
    ("relu", (0.0,), (0.0,)),
    ("relu", (-0.0,), (0.0,)),
    ("relu", (5e-324,), (1.0,)),
    ("abs", (0.0,), (0.0,)),
    ("abs", (-0.0,), (0.0,)),
    ("abs", (-5e-324,), (-1.0,)),
    ("leaky_relu", (0.0, 0.25), (0.25,)),
    ("leaky_relu", (-0.0, 0.25), (0.25,)),
    ("elu", (0.0, 0.75), (0.75,)),
    ("elu", (-0.0, 0.75), (0.75,)),
    ("maximum", (1.5, 1.5), (1.0, 0.0)),
    ("minimum", (1.5, 1.5), (1.0, 0.0)),
    ("maximum", (0.0, -0.0), (1.0, 0.0)),
    ("minimum", (0.0, -0.0), (1.0, 0.0)),
    ("hypot", (0.0, 0.0), (0.0, 0.0)),
    ("hypot", (-0.0, 0.0), (0.0, 0.0)),
    ("atan2", (0.0, 0.0), (0.0, 0.0)),
    ("atan2", (-0.0, -0.0), (0.0, 0.0)),
    ("clamp", (-1.0, -1.0, 2.0), (1.0,)),
    ("clamp", (2.0, -1.0, 2.0), (1.0,)),
    ("clamp", (0.0, 0.0, 0.0), (1.0,)),
    ("copysign", (0.0, -3.0), (0.0, 0.0)),
    ("copysign", (2.0, -0.0), (-1.0, 0.0)),
    ("copysign", (-2.0, 0.0), (-1.0, 0.0)),
    ("floor", (1.0,), (0.0,)),
    ("ceil", (1.0,), (0.0,)),
    ("sign", (0.0,), (0.0,)),
    ("where", (0.0, 2.0, 3.0), (0.0, 0.0, 1.0)),
    ("where", (-0.0, 2.0, 3.0), (0.0, 0.0, 1.0)),
    ("where", (5e-324, 2.0, 3.0), (0.0, 1.0, 0.0)),
    ("fmod", (6.0, 2.0), (1.0, -3.0)),
    ("fmod", (-6.0, 2.0), (1.0, 3.0)),
    ("sqrt", (0.0,), (INF,)),
    ("sqrt", (-0.0,), (INF,)),
    ("cbrt", (0.0,), (INF,)),
    ("cbrt", (-0.0,), (INF,)),
    ("asin", (1.0,), (INF,)),
    ("asin", (-1.0,), (INF,)),
    ("acos", (1.0,), (-INF,)),
    ("acos", (-1.0,), (-INF,)),
    ("acosh", (1.0,), (INF,)),
    ("pow", (0.0, 2.0), (0.0, 0.0)),
    ("pow", (0.0, 1.0), (1.0, 0.0)),
    ("pow", (0.0, 0.5), (INF, 0.0)),
    ("pow", (0.0, 0.0), (0.0, 0.0)),
    ("pow", (2.0, 0.0), (0.0, math.log(2.0))),
    ("pow", (1e-310, 0.0), (0.0, math.log(1e-310))),
    ("pow", (1.0, 3.0), (3.0, 0.0)),
    ("pow", (-2.0, 3.0), (12.0, NAN)),
    ("pow_number", (0.0, 0.0), (0.0,)),
    ("pow_number", (0.0, 1.0), (1.0,)),
    ("pow_number", (0.0, 2.0), (0.0,)),
    ("pow_number", (0.0, 3.0), (0.0,)),
    ("pow_number", (0.0, 0.5), (INF,)),
    ("pow_number", (-2.0, 3.0), (12.0,)),
    ("pow_number", (-2.0, -1.0), (-0.25,)),
    ("pow_number", (1e-200, 3.0), (0.0,)),
    ("pow_number", (1e-120, 3.0), (3e-240,)),
)


@pytest.mark.parametrize(("name", "point", "expected"), KINKS, ids=[f"{name}{point}" for name, point, _ in KINKS])
def test_chosen_local_grads(name: str, point: tuple[float, ...], expected: tuple[float, ...]) -> None:
    """At a kink, a jump or a vertical tangent, the local gradients are the ones stated beside the row."""
    op = OPS[name]
    assert expected == pytest.approx(op.local_grads(*point, op.forward(*point)), rel=1e-15, abs=0.0, nan_ok=True)


# ---------------------------------------------------------------- domains

EDGES = (
    ("div", (1.0, 5e-324), True), ("div", (1.0, 0.0), False), ("div", (1.0, -0.0), False), ("div", (0.0, 0.0), False),
    ("log", (5e-324,), True), ("log", (0.0,), False), ("log", (-0.0,), False), ("log", (-1.0,), False),
    ("log2", (5e-324,), True), ("log2", (0.0,), False), ("log10", (5e-324,), True), ("log10", (0.0,), False),
    ("log1p", (-1.0,), False), ("log1p", (-0.9999999999999999,), True),
    ("sqrt", (0.0,), True), ("sqrt", (-0.0,), True), ("sqrt", (-5e-324,), False),
    ("asin", (1.0,), True), ("asin", (1.0000000000000002,), False), ("asin", (-1.0,), True),
    ("acos", (-1.0,), True), ("acos", (-1.0000000000000002,), False),
    ("acosh", (1.0,), True), ("acosh", (0.9999999999999999,), False),
    ("atanh", (1.0,), False), ("atanh", (-1.0,), False), ("atanh", (0.9999999999999999,), True),
    ("sin", (INF,), False), ("cos", (-INF,), False), ("tan", (INF,), False), ("sin", (1e308,), True),
    ("pow", (0.0, 0.0), True), ("pow", (0.0, -1.0), False), ("pow", (-8.0, 1.0 / 3.0), False),
    ("pow", (-8.0, 3.0), True), ("pow", (-0.0, -1.0), False), ("pow", (-0.0, 0.5), True),
    ("pow_number", (0.0, 0.0), True), ("pow_number", (0.0, -1.0), False), ("pow_number", (-8.0, 0.5), False),
    ("pow_number", (-8.0, -3.0), True),
    ("lgamma", (0.0,), False), ("lgamma", (-0.0,), False), ("lgamma", (-3.0,), False), ("lgamma", (-2.5,), True),
    ("lgamma", (5e-324,), True), ("lgamma", (-1e16,), False), ("lgamma", (-INF,), True), ("lgamma", (INF,), True),
    ("fmod", (1.0, 0.0), False), ("fmod", (INF, 1.0), False), ("fmod", (1.0, INF), True),
    ("clamp", (0.0, 1.0, 1.0), True), ("clamp", (0.0, 1.0, 0.5), False),
)  # fmt: skip


@pytest.mark.parametrize(("name", "point", "inside"), EDGES, ids=[f"{name}{point}" for name, point, _ in EDGES])
def test_domain_edges(name: str, point: tuple[float, ...], inside: bool) -> None:
    """The domain ends where the row says it does, and it says which points are in."""
    assert inside is bool(OPS[name].domain(*point))


@EACH_OP
def test_a_domain_says_what_it_expected(op: Op) -> None:
    """A row with a domain has a text for the error; a row without has none."""
    assert bool(op.expected) == (op.domain(*[variable(name) for name in op.names]) is not True)


@pytest.mark.parametrize(
    ("name", "point", "expected"),
    [
        ("log", (0.0,), -INF),
        ("log", (-1.0,), NAN),
        ("log1p", (-1.0,), -INF),
        ("sqrt", (-1.0,), NAN),
        ("div", (1.0, 0.0), INF),
        ("div", (1.0, -0.0), -INF),
        ("div", (0.0, 0.0), NAN),
        ("pow", (0.0, -1.0), INF),
        ("pow", (-0.0, -1.0), -INF),
        ("pow", (-0.0, -2.0), INF),
        ("pow", (-8.0, 0.5), NAN),
        ("pow", (-10.0, 309.0), -INF),
        ("pow", (1.0, NAN), 1.0),
        ("pow", (NAN, 0.0), 1.0),
        ("pow", (-1.0, INF), 1.0),
        ("exp", (1000.0,), INF),
        ("expm1", (1000.0,), INF),
        ("sinh", (-1000.0,), -INF),
        ("cosh", (-1000.0,), INF),
        ("sin", (INF,), NAN),
        ("asin", (2.0,), NAN),
        ("acosh", (0.5,), NAN),
        ("atanh", (-1.0,), -INF),
        ("atanh", (2.0,), NAN),
        ("lgamma", (0.0,), INF),
        ("lgamma", (-3.0,), INF),
        ("lgamma", (1e306,), INF),
        ("fmod", (1.0, 0.0), NAN),
        ("fmod", (INF, 1.0), NAN),
    ],
)
def test_outside_the_domain_rows_give_ieee_results(name: str, point: tuple[float, ...], expected: float) -> None:
    """Where Python's math module raises, a row gives what C gives."""
    assert OPS[name].forward(*point) == pytest.approx(expected, nan_ok=True)


# ---------------------------------------------------------------- any float at all

SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -1.5, 3.0, INF, -INF, NAN, 5e-324, -5e-324, 1e-310, 1e308, -1e308, 710.0, -746.0)


def run(op: Op, point: Sequence[float]) -> tuple[object, ...]:
    op.domain(*point)
    out = op.forward(*point)
    return (out, *op.local_grads(*point, out))


@EACH_OP
def test_rows_never_raise_at_special_values(op: Op) -> None:
    """At zeros, infinities, nan, subnormal and huge numbers, in every combination, a row gives floats."""
    for point in product(SPECIAL, repeat=len(op.names)):
        assert {float} == set(map(type, run(op, point))), point


@EACH_OP
@settings(max_examples=50, deadline=None, database=None, derandomize=True)
@given(data=st.data())
def test_rows_never_raise(op: Op, data: st.DataObject) -> None:
    """For any floats at all, a row gives floats: inf and nan, never an exception."""
    point = data.draw(st.tuples(*(st.floats() for _ in op.names)))
    assert {float} == set(map(type, run(op, point)))


@pytest.mark.parametrize("op", [op for op in OPS.values() if len(op.inputs) == 1], ids=lambda op: op.name)
def test_nan_goes_through(op: Op) -> None:
    """A nan is in no domain's way: forward of nan is nan for every operation with one input."""
    assert math.isnan(op.forward(NAN, *samples(op)[0][1:]))


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "atan2", "minimum", "maximum", "hypot", "fmod"])
@pytest.mark.parametrize("point", [(NAN, 2.0), (2.0, NAN), (NAN, NAN), (NAN, 0.0), (0.0, NAN)])
def test_nan_goes_through_from_either_side(name: str, point: tuple[float, float]) -> None:
    """A nan on either side of an operation with two inputs makes its result nan; minimum and maximum too."""
    assert math.isnan(OPS[name].forward(*point))


ODD_AT_ZERO = (
    "sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "erf", "cbrt", "expm1", "log1p", "sqrt", "floor",
    "ceil", "sign", "relu", "gelu", "silu",
)  # fmt: skip


@pytest.mark.parametrize("name", ODD_AT_ZERO)
def test_zero_keeps_its_sign(name: str) -> None:
    """forward(-0.0) is -0.0 and forward(0.0) is 0.0, as IEEE 754 asks of what crosses zero at zero."""
    signs = [math.copysign(1.0, OPS[name].forward(x)) for x in (-0.0, 0.0)]
    assert signs == [-1.0, 1.0]


def test_a_square_is_the_product() -> None:
    """To the bit, where pow() is off by one in a thousand; and with its overflow, its nan and its zero."""
    rng = random.Random(0)
    numbers = [rng.uniform(-10.0, 10.0) for _ in range(5000)]
    assert [OPS["pow_number"].forward(x, 2.0) for x in numbers] == [x * x for x in numbers]
    assert [OPS["pow_number"].forward(x, 2.0) for x in (-0.0, 1e200, -INF)] == [0.0, INF, INF]
    assert math.isnan(OPS["pow_number"].forward(NAN, 2.0))
