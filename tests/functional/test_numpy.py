"""Functions written with NumPy: with one import changed, with none changed, and with Values among constants."""

from __future__ import annotations

import asyncio
import builtins
import math
import pickle
import statistics
import sys
import threading
import types
from math import sqrt
from typing import Any

import numpy as np
import pytest
from numpy import zeros

import gradwalk
import gradwalk.numpy as gnp
from gradwalk import Value, compile, grad, gradcheck, value_and_grad
from gradwalk.numpy.ufuncs import QUESTIONS, RULES

POINT = np.array([0.3, 0.7, 0.2])
MAKERS = [pytest.param(lambda f: f, id="eager"), pytest.param(compile, id="compiled")]


def fills_an_array(x: Any) -> Any:
    out = np.zeros(4)
    for i in range(3):
        out[i] = x[i] ** 2
    out[1:] += x
    return np.sum(out * np.array([1.0, 2.0, 3.0, 4.0], dtype=float))


def fills_by_name(x: Any) -> Any:
    out = zeros((2, 2))
    out[0, 0] = x[0] * x[1]
    out[1] = x[:2]
    return out.sum()


# ---------------------------------------------------------------- arrays that accept Values


@pytest.mark.parametrize("made", MAKERS)
@pytest.mark.parametrize("function", [fills_an_array, fills_by_name])
def test_code_that_is_not_touched(function: Any, made: Any) -> None:
    """Inside `everywhere()` its arrays accept Values; outside the error says what to do."""
    value, gradient = value_and_grad(made(gnp.everywhere()(function)))(POINT)
    assert value == function(POINT)
    assert type(gradient) is np.ndarray
    assert gradient.dtype == np.float64
    assert gradcheck(gnp.everywhere()(function), POINT)
    with pytest.raises(TypeError, match=r"import gradwalk.numpy as np.*dtype=object.*gradwalk.numpy.everywhere\(\)"):
        grad(function)(POINT)


def test_everywhere_as_a_context_leaves_nothing_behind() -> None:
    """Neither the module's names nor NumPy's are other ones afterwards, even after an error."""
    before = np.zeros, zeros, np
    with gnp.everywhere():
        assert grad(fills_an_array)(POINT) == pytest.approx([1.0 * 0.6 + 2.0, 4.0 * 0.7 + 3.0, 6.0 * 0.2 + 4.0])
        assert type(np.random.rand(3)) is np.ndarray  # compiled code gets what it asks NumPy for
    with pytest.raises(ZeroDivisionError), gnp.everywhere(), gnp.everywhere():
        1 / 0  # noqa: B018
    assert (np.zeros, zeros, np) == before
    assert np is sys.modules["numpy"]


def test_everywhere_is_for_one_thread() -> None:
    """Others get from the same names what NumPy gives."""
    made: list[Any] = []
    with gnp.everywhere():
        thread = threading.Thread(target=lambda: made.append(np.zeros(2)))
        thread.start()
        thread.join()
        made.append(np.zeros(2))
    assert [each.dtype for each in made] == [np.float64, object]


def test_everywhere_is_for_one_task() -> None:
    """Others of its thread get what NumPy gives, and a block may end while another goes on."""

    async def all_of_them() -> Any:
        both_inside, one_left = asyncio.Event(), asyncio.Event()

        async def first() -> Any:
            with gnp.everywhere():
                await both_inside.wait()
            one_left.set()
            return np.zeros(2).dtype

        async def second() -> Any:
            with gnp.everywhere():
                both_inside.set()
                await one_left.wait()
                return np.zeros(2).dtype

        async def outside() -> Any:
            await both_inside.wait()
            return np.zeros(2).dtype

        return await asyncio.gather(first(), second(), outside())

    before = np.zeros, zeros, np
    assert asyncio.run(all_of_them()) == [np.float64, object, np.float64]
    assert (np.zeros, zeros, np) == before


def test_everywhere_may_be_entered_again_inside_itself() -> None:
    """By the same object, and by a function that calls itself."""
    block = gnp.everywhere()
    with block, block:
        pass

    @gnp.everywhere()
    def deep(n: int) -> Any:
        return deep(n - 1) if n else np.zeros(1).dtype

    assert (deep(3), np.zeros(1).dtype) == (object, np.float64)


def test_everywhere_holds_for_modules_that_are_named() -> None:
    """An installed package is left alone, unless its name is given."""
    module = types.ModuleType("published")
    module.__file__ = np.__file__  # installed
    body = "    a = np.zeros(1)\n    a[0] = x * x\n    return a[0]\n"
    functions = f"def f(x):\n{body}def g(x):\n    import numpy as np\n{body}"
    exec(f"import numpy as np\n{functions}", module.__dict__)
    sys.modules["published"] = module
    try:
        for function in (module.f, module.g):
            with gnp.everywhere(), pytest.raises(TypeError, match="everywhere"):
                grad(lambda x, f=function: f(x))(3.0)
            with gnp.everywhere("published"):
                assert grad(lambda x, f=function: f(x))(3.0) == 6.0
    finally:
        del sys.modules["published"]


def test_everywhere_reaches_imports_in_functions() -> None:
    """`import numpy` and `from numpy import` where they are needed; afterwards Python imports as it did."""

    def published(x: Any) -> Any:
        import numpy as here
        from numpy import ones

        out, scale = here.zeros(2), ones(2)
        out[0], scale[1] = x[0] ** 2, x[1] * x[0]
        return out.sum() + scale.sum()

    before = builtins.__import__
    assert grad(gnp.everywhere()(published))([3.0, 5.0]) == [11.0, 3.0]
    assert builtins.__import__ is before


class Filled:
    """A function that belongs to an object."""

    def __call__(self, x: Any) -> Any:
        return fills_an_array(x)

    method = __call__


@pytest.mark.parametrize("kind", ["of no module", "a method", "an object"])
def test_everywhere_takes_whatever_can_be_called(kind: str) -> None:
    """Also what was made of a text, whose names are no module's."""
    space: dict[str, Any] = {"np": np}
    exec("def f(x):\n    out = np.zeros(1)\n    out[0] = x[0] * x[1]\n    return out[0]\n", space)
    function, expected = {
        "of no module": (space["f"], [0.7, 0.3, 0.0]),
        "a method": (Filled().method, [2.6, 5.8, 5.2]),
        "an object": (Filled(), [2.6, 5.8, 5.2]),
    }[kind]
    assert grad(gnp.everywhere()(function))(POINT) == pytest.approx(expected)
    assert space["np"] is np


def length(x: float, y: float) -> float:
    """As it is published: with the standard modules, however they are imported."""
    from math import log

    return sqrt(x * x + y * y) + math.exp(-x) * math.pi + statistics.mean([x, y]) + log(y)


@pytest.mark.parametrize("made", MAKERS)
def test_everywhere_the_standard_math_takes_values(made: Any) -> None:
    x, y = 3.0, 4.0
    value, gradient = value_and_grad(made(gnp.everywhere()(length)), argnums=(0, 1))(x, y)
    assert value == length(x, y)
    assert gradient == pytest.approx((x / 5.0 - math.exp(-x) * math.pi + 0.5, y / 5.0 + 0.5 + 1.0 / y), rel=1e-14)
    assert (sqrt, math.sqrt(4.0)) == (math.sqrt, 2.0)
    with pytest.raises(TypeError, match="everywhere"):
        grad(length)(x, y)


@pytest.mark.parametrize("name", ["zeros", "ones", "empty"])
def test_makers_make_arrays_that_accept_values(name: str) -> None:
    """Of floats; whole numbers and truth values stay what they are."""
    array = getattr(gnp, name)(3)
    array[1] = Value(2.0)
    assert (type(array), type(array[1])) == (gnp.Array, Value)
    assert getattr(gnp, name)(3, dtype=int).dtype.kind == "i"
    assert isinstance(array, np.ndarray)


def test_all_of_numpy_is_there() -> None:
    """What makes no array is NumPy's own."""
    assert gnp.exp is np.exp
    assert gnp.pi == np.pi
    assert gnp.array([1.0, Value(2.0)], dtype=float)[1].data == gnp.array([Value(2.0)], float)[0].data == 2.0
    assert gnp.full(2, Value(3.0))[1].data == 3.0
    assert gnp.arange(3).dtype.kind == "i"
    assert {"everywhere", *dir(np)} <= {*dir(gnp)}
    with gnp.everywhere():
        assert dir(np) == dir(sys.modules["numpy"])
    with pytest.raises(TypeError, match="array: expected numbers for dtype int64, got Values"):
        gnp.array([Value(1.0)], dtype=np.int64)


def test_constants_are_what_numpy_makes_of_them() -> None:
    """An array without Values computes as NumPy does, inf and nan included; with them, its constants do."""
    with np.errstate(all="ignore"):
        assert gnp.log(gnp.array([0.0, 1.0])).tolist() == [-np.inf, 0.0]
        assert (gnp.array([1.0]) / gnp.array([0.0])).tolist() == [np.inf]
        mixed = gnp.array([0.0, Value(1.0)])
        assert np.log(mixed)[0] == -np.inf
        assert np.isnan((gnp.array([-8.0, Value(8.0)]) ** (1.0 / 3.0))[0])


def test_a_copy_and_a_pickle_of_an_array_are_such_arrays() -> None:
    """And the dtype float leaves the Values where they are."""
    array = gnp.array([1.0, 2.0])
    assert type(pickle.loads(pickle.dumps(array))) is gnp.Array
    assert type(array.copy()) is gnp.Array
    with_value = gnp.array([Value(1.5), 2.0])
    assert with_value.astype(float)[0] is with_value[0]
    with pytest.raises(TypeError, match="gradient would be lost"):
        with_value.astype(int)


# ---------------------------------------------------------------- constants among Values, under every ufunc

UFUNCS = sorted(
    {
        name
        for name in dir(np)
        if isinstance(getattr(np, name), np.ufunc) and getattr(np, name).__name__ in RULES
    }
)  # fmt: skip


@pytest.mark.parametrize("name", UFUNCS)
def test_constants_and_values_in_one_array(name: str) -> None:
    """Each entry gives the number that NumPy gives, and is a Value where it was one."""
    ufunc = getattr(np, name)
    numbers = np.array([1.25, 1.5, 2.0] if "arccosh" in ufunc.__name__ or name == "acosh" else [0.25, 0.5, 0.75])
    mixed = gnp.array([Value(numbers[0]), numbers[1], Value(numbers[2])])
    others = [2 * np.ones(3, int)] if name == "ldexp" else [np.array([0.5, 0.25, 0.5])] * (ufunc.nin - 1)
    made, expected = ufunc(mixed, *others), ufunc(numbers, *others)
    for ours, theirs in zip(
        made if ufunc.nout > 1 else [made], expected if ufunc.nout > 1 else [expected], strict=True
    ):
        plain = [entry.data if isinstance(entry, Value) else entry for entry in ours]
        assert plain == pytest.approx(theirs.tolist(), rel=1e-14)
        assert ours.dtype == (bool if ufunc.__name__ in QUESTIONS else object)
        assert not isinstance(ours[1], Value)


def test_a_clipped_probability() -> None:
    """At the bound an entry is a constant, and log takes it all the same."""
    f = lambda p: np.log(np.clip(p, 1e-9, 1.0)).sum()  # noqa: E731
    assert grad(f)(np.array([0.5, 0.0])).tolist() == [2.0, 0.0]
    g = lambda p: np.log(np.where(p > 0.1, p, 0.5)).sum()  # noqa: E731
    assert grad(g)(np.array([0.5, 0.0])).tolist() == [2.0, 0.0]


FUNCTIONS: dict[str, Any] = {
    "sum": lambda x: np.sum(x * x),
    "sum by axis": lambda x: np.sum(np.outer(x, x), axis=0)[1],
    "mean, std, var": lambda x: np.mean(x) * np.std(x) + np.var(x),
    "prod": lambda x: np.prod(x),
    "max, min": lambda x: np.max(x) - np.min(x) * x.max(),
    "where": lambda x: np.where(x > 0.25, x * x, np.sin(x)).sum(),
    "clip": lambda x: np.clip(x, 0.25, 0.6).sum() + x.sum(),
    "linspace": lambda x: np.sum(np.linspace(x[0], x[1], 5) ** 2),
    "einsum": lambda x: np.einsum("i,ij,j->", x, np.outer(x, np.ones(3)), x),
    "tensordot": lambda x: np.tensordot(np.outer(x, x), np.outer(x, x), axes=1).sum(),
    "cumsum, diff": lambda x: np.sum(np.cumsum(x) ** 2) + np.sum(np.diff(x) ** 2),
    "interp": lambda x: np.interp(x[0], [0.0, 0.5, 1.0], [0.0, x[1], 2.0]),
    "fancy and boolean indexing": lambda x: x[[2, 0]].sum() ** 2 + (x[x > 0.25] ** 3).sum(),
    "matmul": lambda x: (np.outer(x, x) @ x) @ x,
    "dot": lambda x: np.dot(x, np.dot(np.eye(3), x)),
    "concatenate, stack": lambda x: (np.concatenate([x, x * x]) ** 2).sum() + np.stack([x, x]).prod(),
    "sort, median": lambda x: np.sort(x)[0] ** 2 + np.median(x) * np.median(x[:2]),
    "norm": lambda x: np.linalg.norm(x) + np.linalg.norm(x, 1) * np.linalg.norm(x, np.inf) + np.linalg.norm(x, 3),
    "reductions of ufuncs": lambda x: np.logaddexp.reduce(x) + np.maximum.reduce(x) + np.multiply.accumulate(x).sum(),
    "heaviside, logaddexp, mod": lambda x: (np.heaviside(x, 0.5) * np.logaddexp(x, 0.1) + np.mod(x, 0.17)).sum(),
    "roll, flip, tile, repeat": lambda x: (
        (np.roll(x, 1) * np.flip(x)).sum() + np.tile(x, 2).sum() * np.repeat(x, 2).prod()
    ),
    "trapezoid": lambda x: np.trapezoid(x * x, dx=0.5),
    "polyval": lambda x: np.polyval(x, x[0]),
    "average": lambda x: np.average(x, weights=x * x),
    "quantiles": lambda x: (
        np.percentile(x, [30, 90]).prod() * np.percentile(x, 40)
        + np.quantile(np.outer(x, x), 0.7, axis=1, keepdims=True)[1, 0]
    ),
    "cov, corrcoef": lambda x: np.cov(x, x**2, bias=True).sum() + np.corrcoef(np.vstack([x, np.sin(9 * x)]))[0, 1],
    "with nan": lambda x: np.nansum(x * x) * np.nanmean(x) + np.nanstd(x),
    "where in a reduction": lambda x: np.sum(x, where=x > 0.25) * np.max(x, where=x < 0.5, initial=0.1),
    "bincount": lambda x: np.bincount([1, 0, 1], weights=x, minlength=4)[1] ** 2,
    "vectorize": lambda x: (np.vectorize(lambda t: t**2 if t > 0.25 else 1 / t)(x) + np.vectorize(abs)(x[0])).sum(),
    "isclose": lambda x: np.where(np.isclose(x, np.inf), x, x * x).sum() + x[int(np.array_equal(x, x))],
    "kron, trace, cross": lambda x: np.trace(np.kron(np.outer(x, x), np.eye(2))) + np.cross(x, np.ones(3))[0],
}


@pytest.mark.parametrize("made", MAKERS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_numpy(name: str, made: Any) -> None:
    """The value that NumPy gives, and a derivative that the differences confirm."""
    f = FUNCTIONS[name]
    value, gradient = value_and_grad(made(f))(POINT)
    assert value == pytest.approx(float(f(POINT)), rel=1e-13)
    assert gradient == pytest.approx(grad(f)(POINT), rel=1e-12)
    report = gradcheck(f, POINT)
    assert report, str(report)


LESS_USUAL: dict[str, Any] = {
    "dot as a method": lambda x: x.dot(x) * x[0],
    "dot into what is given": lambda x: np.outer(x, x).dot(np.outer(x, x), out=np.zeros((3, 3))).sum(),
    "dot with a number": lambda x: np.dot(x[0], x).sum() * np.dot(x[1], 2.0),
    "dot of three dimensions": lambda x: np.dot(np.ones((2, 2, 3)), np.stack([np.outer(x, x)] * 2)).sum(),
    "inner, vdot": lambda x: (
        np.inner(np.outer(x, x), x).sum() * np.inner(x, 2.0)[0] + np.vdot(np.outer(x, x), np.eye(3))
    ),
    "vecdot, matmul of a stack": lambda x: np.vecdot(x, x) + np.matmul(np.stack([np.outer(x, x)] * 2), x).sum(),
    "largest of all": lambda x: np.maximum.reduce(np.outer(x, x), axis=None) - np.minimum.reduce(x, axis=None),
    "largest of rows": lambda x: (np.max(np.outer(x, x), axis=1, keepdims=True) * x).sum() + np.max(x, axis=()).sum(),
    "largest of some": lambda x: np.min(np.outer(x, x), axis=1, where=np.eye(3) == 0.0, initial=0.2).sum(),
    "arrays like others": lambda x: (
        (np.full_like(x, x[0], shape=(5,)) * np.ones_like(x, shape=5)).sum() + np.full_like(x, 2.5)[2] * x[1]
    ),
    "interp beyond the ends": lambda x: np.interp(4 * x, [1.0, 2.0], [x[0], 3.0]).sum(),
    "interp with others there": lambda x: np.interp(4 * x, [1.0, 2.0], [x[0], 3.0], left=x[2], right=x[1] ** 2).sum(),
    "interp of one point": lambda x: np.interp(x, [0.7], [x[0]]).sum(),
    "linspace of none, and along another axis": lambda x: (
        np.linspace(x[0], x[1], 0).sum() + (np.linspace(x[:2], x[1:], 3, axis=1)[0] ** 2).sum()
    ),
    "linspace with its step": lambda x: np.prod(np.linspace(x[0], x[1], 4, endpoint=False, retstep=True)[1]) * x[2],
    "sinc": lambda x: (np.sinc(x) * np.sinc(x - x[0])).sum(),
    "allclose": lambda x: (x**2).sum() if np.allclose(x, x + 1e-12) and not np.allclose(x, x[::-1]) else x[1],
    "real, imag, angle": lambda x: (
        (np.real(x) * x + np.imag(x)).sum() + np.angle(-x).sum() * np.angle(x[0] - 1.0, deg=True) * np.real(x[1])
    ),
    "iscomplexobj, isrealobj": lambda x: x[int(np.isrealobj(x))] * x[int(np.iscomplexobj(x))],
    "clip between Values": lambda x: (np.clip(np.sin(9 * x), x[2], x[1]) ** 2).sum(),
    "frompyfunc of one number": lambda x: np.frompyfunc(lambda a, b: a * b, 2, 1)(x[0], x[1]),
    "logical_not": lambda x: np.where(np.logical_not(x - x[0]), x * x, x).sum(),
    "fmax, fmin": lambda x: (np.fmax(x, x[0]) * np.fmin(x, np.nan) + np.fmax.reduce(x)).sum(),
}


@pytest.mark.parametrize("name", LESS_USUAL)
def test_less_usual_functions_of_numpy(name: str) -> None:
    """The same, eager and compiled."""
    f = gnp.everywhere()(LESS_USUAL[name])
    for made in (f, compile(f)):
        value, gradient = value_and_grad(made)(POINT)
        assert value == pytest.approx(float(LESS_USUAL[name](POINT)), rel=1e-13)
        assert gradient == pytest.approx(grad(f)(POINT), rel=1e-12)
    report = gradcheck(f, POINT)
    assert report, str(report)


def test_the_middle_of_sinc() -> None:
    """By its series: every derivative is there."""
    derivatives = [grad(np.sinc), grad(grad(np.sinc)), grad(grad(grad(grad(np.sinc))))]
    assert [f(0.0) for f in derivatives] == pytest.approx([0.0, -(np.pi**2) / 3, np.pi**4 / 5])
    assert value_and_grad(np.sinc)(0.001) == pytest.approx((float(np.sinc(0.001)), -(np.pi**2) / 3 * 0.001), rel=1e-5)


def test_nan_among_values() -> None:
    """The largest is nan as NumPy has it; fmax and fmin leave it out."""
    numbers = np.array([[1.0, np.nan, 3.0], [5.0, 4.0, 2.0]])
    values = gnp.array([[Value(number) for number in row] for row in numbers])
    for function in (np.max, np.min, np.fmax.reduce, np.fmin.reduce, np.nanmax):
        for axis in (None, 0, 1):
            found = np.asarray(function(values, axis=axis), object).ravel().tolist()
            expected = np.ravel(function(numbers, axis=axis)).tolist()
            assert [each.data for each in found] == pytest.approx(expected, nan_ok=True)
    larger = compile(np.fmax)
    assert [larger(*pair).data for pair in ((1.0, 2.0), (np.nan, 2.0), (3.0, np.nan), (3.0, 2.0))] == [
        2.0,
        2.0,
        3.0,
        3.0,
    ]


SPECIAL: dict[str, Any] = {
    "signbit": np.signbit,
    "heaviside": lambda s: np.heaviside(s, 0.25),
    "angle": np.angle,
    "angle in degrees": lambda s: np.angle(s, deg=True),
    "sign": np.sign,
    "copysign": lambda s: np.copysign(2.0, s),
    "isclose": lambda s: np.isclose(s, s),
    "isclose to infinity": lambda s: np.isclose(s, np.inf),
    "isclose, nan": lambda s: np.isclose(s, s, equal_nan=True),
    "isclose, near": lambda s: np.isclose(s, s * (1.0 + 0.9e-5) + 1e-9) | np.isclose(s, s * (1.0 + 1.2e-5)),
    "isclose, just": lambda s: np.isclose(s, s + 0.5, rtol=0.0, atol=0.5),
    "array_equal": lambda s: np.array_equal(s, s),
    "array_equal, nan": lambda s: np.array_equal(s, s, equal_nan=True),
    "array_equal, shapes": lambda s: np.array_equal(s[3:], s[3:4]),
    "nan_to_num": lambda s: np.nan_to_num(s, nan=3.0),
    "nan_to_num, infinities": lambda s: np.nan_to_num(s, posinf=1.0, neginf=-7.0),
    "median": np.median,
    "median of rows": lambda s: np.median(np.stack([s, 0.5 + np.isnan(s)]), axis=1),
    "quantiles": lambda s: np.quantile(np.stack([s, s[::-1]]), [0.25, 0.5], axis=0),
    "logical_not": np.logical_not,
    "modulo": lambda s: np.mod(s[5:], [0.3, -0.3]),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_zeros_infinities_and_nan_are_what_numpy_makes_of_them(name: str) -> None:
    """Both zeros have their sign; nan is neither above nor below, and has no place in an order."""
    numbers = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, -2.5])
    with np.errstate(all="ignore"):
        expected = SPECIAL[name](numbers)
    found = np.asarray(SPECIAL[name](gnp.array(list(map(Value, numbers)))), object)
    plain = [float(each.data if isinstance(each, Value) else each) for each in found.ravel()]
    assert found.shape == np.shape(expected)
    assert plain == pytest.approx(np.ravel(expected).astype(float).tolist(), nan_ok=True)


@pytest.mark.parametrize("q", [0.3, [0.3, 0.5], [[0.3, 0.5, 0.6]]], ids=["one", "row", "matrix"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_shapes_of_quantiles(q: Any, axis: Any, keepdims: bool) -> None:
    """The shape of what is asked for comes first, as NumPy has it."""
    numbers = np.arange(12.0).reshape(3, 4) ** 1.5
    expected = np.quantile(numbers, q, axis=axis, keepdims=keepdims)
    found = np.asarray(np.quantile(gnp.array(numbers) * Value(1.0), q, axis=axis, keepdims=keepdims), object)
    assert found.shape == expected.shape
    assert [each.data for each in found.ravel()] == pytest.approx(expected.ravel().tolist())


def test_a_sample_is_correlated_with_itself() -> None:
    """One alone gives a number, not a matrix; and samples may stand in columns."""
    assert np.corrcoef(gnp.array([Value(1.0), 2.0, 4.0])).data == 1.0
    numbers = np.array([[1.0, 2.0, 3.5], [4.0, -5.0, 6.0], [7.0, 8.0, 10.0]])
    values = gnp.array(numbers) * Value(1.0)
    for function in (np.corrcoef, np.cov, lambda m, **how: np.cov(m, m**2, ddof=0, **how)):
        found, expected = function(values, rowvar=False), function(numbers, rowvar=False)
        assert [each.data for each in found.ravel()] == pytest.approx(expected.ravel().tolist())


REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "matmul": (lambda x: np.outer(x, x) @ x[:2], ValueError, r"shapes that fit, got \(3, 3\) and \(2,\)"),
    "after out": (lambda x: np.mean(x, 0, None, None, True), TypeError, "mean: expected what comes after out= by its"),
    "interp": (lambda x: np.interp(x, [0.0, 1.0], [0.0, 1.0], period=1.0), TypeError, "with x % period"),
    "interp of nothing": (
        lambda x: np.interp(x, [0.0, 1.0], [0.0]),
        ValueError,
        "as many places as heights, got 2 and 1",
    ),
    "linspace": (
        lambda x: np.linspace(x[0], x[1], 3, dtype=int),
        TypeError,
        "expected a dtype of floats .*, got int64",
    ),
    "quantile": (lambda x: np.quantile(x, 0.3, method="lower"), TypeError, "expected method 'linear' .*, got 'lower'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_why(name: str) -> None:
    function, kind, words = REFUSED[name]
    with pytest.raises(kind, match=words):
        grad(lambda x: np.sum(function(x)))(POINT)


def test_arrays_like_one_with_values() -> None:
    """Of the dtype that is asked for; and a step where there is but one point is none."""
    array = gnp.array([Value(1.0), 2.0])
    assert [np.zeros_like(array, int).dtype.kind, np.ones_like(array, dtype=bool).dtype.kind] == ["i", "b"]
    assert np.isnan(np.linspace(Value(1.0), 2.0, 1, retstep=True)[1].data)


def writes_at_places(x: Any) -> Any:
    out, counts = np.zeros(4), np.ones(4)
    np.add.at(counts, [0, 0, 2], 2.5)
    np.add.at(out, [0, 1, 0], x)
    np.multiply.at(out, [1, 1], x[0])
    square, same = np.zeros((2, 2)), np.zeros(4)
    np.fill_diagonal(square, 3.0)
    np.put(counts, [3], 7.0)
    np.copyto(same, counts)
    return (out * counts * same).sum() + square.sum() * x[0]


def writes_into_views(x: Any) -> Any:
    square, row, line = np.zeros((3, 3)), np.zeros((1, 3)), np.ones(6)
    np.ravel(square)[:3] = x
    np.transpose(square)[1] += x
    np.einsum("ii->i", square)[:] = 2.0 * x
    np.squeeze(row)[1:] = x[:2]
    np.atleast_2d(np.flip(row))[0, 0] = x[2]
    first, second = np.split(line, 2)
    np.reshape(first, (3, 1))[:, 0] = x
    second *= x
    return (square**2).sum() + (row * x).sum() + (line * np.arange(6.0)).sum() + np.add.reduceat(line, [0, 4])[1] ** 2


def writes_into_what_is_given(x: Any) -> Any:
    square, shares, out = np.outer(x, x), np.zeros((3, 3)), [np.zeros(3) for _ in range(9)]
    np.dot(square, square, shares)
    np.dot(x, square, out=out[0])
    for i, function in enumerate((np.sum, np.mean, np.var, np.std, np.median, np.max), 1):
        function(square, axis=0, out=out[i])
    np.quantile(square, 0.2, axis=1, out=out[7])
    np.round(square[0], 2, out[8])
    np.clip(square[1], 0.1, 0.3, out[6])
    np.einsum("i,ij->j", x, square, out=out[5])
    return shares.sum() + sum((i + 1) * each.sum() for i, each in enumerate(out))


def replaces_nan_in_place(x: Any) -> Any:
    out = np.array([np.nan, np.inf, x[0], x[1]])
    np.nan_to_num(out, copy=False, nan=2.0, posinf=3.0)
    again = np.array([np.nan, x[2]])
    np.nan_to_num(again, False)
    return (out * out).sum() + again.sum()


@pytest.mark.parametrize("made", MAKERS)
@pytest.mark.parametrize(
    "function", [writes_at_places, writes_into_views, writes_into_what_is_given, replaces_nan_in_place]
)
def test_functions_that_write(function: Any, made: Any) -> None:
    """Where they are told to: with plain numbers as with Values."""
    inside = gnp.everywhere()(function)
    value, gradient = value_and_grad(made(inside))(POINT)
    assert value == pytest.approx(function(POINT), rel=1e-13)
    assert inside(POINT) == pytest.approx(function(POINT), rel=1e-13)
    assert gradient == pytest.approx(grad(inside)(POINT), rel=1e-12)
    assert gradcheck(inside, POINT)


@pytest.mark.parametrize("decimals", [1, 0, -1])
def test_digits_are_rounded_as_numpy_rounds_them(decimals: int) -> None:
    """Of 1.15, Python makes 1.1 and NumPy 1.2."""
    numbers = np.array([1.15, 1.05, 0.35, 25.0, 2.5])
    made = np.round(gnp.array([*map(Value, numbers[:4]), numbers[4]]), decimals)
    assert [float(each.data if isinstance(each, Value) else each) for each in made] == numbers.round(decimals).tolist()


def test_adding_values_at_places_of_floats_says_what_to_do() -> None:
    """Of plain numbers there is nothing to say, whichever array they stand in."""
    with pytest.raises(TypeError, match=r"add: a Value cannot be written.*everywhere\(\)"):
        grad(lambda x: np.add.at(np.zeros(3), [0, 1, 1], x))(POINT)
    counts = np.zeros(3)
    np.add.at(counts, [0, 1, 1], gnp.array([1.0, 2.0, 3.0]))
    assert counts.tolist() == [1.0, 5.0, 0.0]


def test_what_has_no_derivative_says_so() -> None:
    """A ufunc that is not known, and a complex number."""
    special = pytest.importorskip("scipy.special")
    with pytest.raises(
        TypeError, match=r"ellipk has no derivative here; make it an operation of your own with gradwalk.cus"
    ):
        grad(lambda x: special.ellipk(x).sum())(POINT)
    with pytest.raises(TypeError, match=r"complex.*\.real and \.imag"):
        grad(lambda x: (x * 1j).sum())(POINT)


def _added(x: Any) -> Any:
    made = np.zeros(2)
    made += np.array([x, x])
    return made.sum()


@pytest.mark.parametrize("derivative", [gradwalk.grad, gradwalk.compile, gradwalk.jacobian])
@pytest.mark.parametrize(
    "function",
    [
        _added,
        lambda x: np.sin(np.array([x, 1.0])).sum(),
        lambda x: np.exp2(np.array([x, x])).sum(),
        lambda x: np.logaddexp(np.array([x]), 1.0).sum(),
        lambda x: np.linalg.det(np.array([[x, 1.0], [2.0, x]])),
    ],
)
def test_what_numpy_refuses_of_plain_arrays_of_values_is_explained(function: Any, derivative: Any) -> None:
    """Its own error, and both ways out; each of them works."""
    with pytest.raises(TypeError, match="; for an array that takes Values, `import gradwalk"):
        derivative(function)(2.0)
    derivative(gnp.everywhere()(function))(2.0)


def test_a_compiled_function_returns_plain_arrays() -> None:
    """Whatever the function computed with: of numbers, where nothing is recorded."""
    with gradwalk.no_grad():
        plain = compile(lambda x: np.sin(x) * 2.0)(POINT)
    assert (type(plain), plain.dtype) == (np.ndarray, np.float64)


def test_what_numpy_makes_of_such_an_array_in_floats_can_be_computed_with() -> None:
    """Plotting libraries ask for floats and keep the subclass; NumPy's functions on that end."""
    made = np.asanyarray(gnp.array([1.0, 2.0]), float)
    assert [each.tolist() for each in np.broadcast_arrays(made, made)] == [[1.0, 2.0], [1.0, 2.0]]
    assert np.column_stack([made, made]).tolist() == [[1.0, 1.0], [2.0, 2.0]]
    assert (made + 1.0).tolist() == [2.0, 3.0]


def test_data_is_numpys_own() -> None:
    """What is computed from plain numbers where nothing is differentiated goes into code that takes floats only."""
    probabilities = np.exp(gnp.zeros(4)) / 4.0
    assert (type(probabilities), probabilities.dtype) == (np.ndarray, np.dtype(float))
    assert np.random.default_rng(0).choice(4, p=probabilities) in range(4)

    def scaled(x: Any) -> Any:
        out = 10.0 * gnp.ones(2)  # inside, such an array is written into
        out[0] = x * x
        return out.sum()

    assert grad(scaled)(3.0) == grad(compile(scaled))(3.0) == 6.0
