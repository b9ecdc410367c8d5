"""NumPy's functions on Values at nan, infinities, zeros of either sign, and nothing: what they give on floats."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import gradwalk
import gradwalk.numpy as gnp
from gradwalk import Value, compile, grad
from gradwalk.numpy.ufuncs import RULES

NAN, INF = np.nan, np.inf
SAMPLES: dict[str, list[Any]] = {
    "nan among numbers": [3.0, NAN, 1.0, NAN, 2.0],
    "nan first": [NAN, 3.0, 1.0],
    "nan alone": [NAN, NAN],
    "infinities": [INF, 1.0, -INF, NAN, INF],
    "an infinity": [1.0, INF, 2.0],
    "ties": [2.0, 1.0, 2.0, 1.0],
    "one": [2.5],
    "nothing": [],
    "rows": [[3.0, NAN, 1.0], [2.0, 5.0, -1.0]],
    "rows of nan": [[NAN, NAN, NAN], [INF, NAN, 2.0]],
    "fractions": [-0.3, -0.5, 0.5, 1.5, 2.5, -2.5, 0.49999999999999994, -0.0, 0.0],
    "beyond 2**53": [2.0**53 + 2.0, -(2.0**53) - 2.0, 4503599627370497.5, 1e300, -1e300],
}


def number(entry: Any) -> float:
    return float(entry.data if isinstance(entry, Value) else entry)


def flat(made: Any) -> list[Any]:
    """Shapes and numbers, by their bits but for the sign of nan."""
    if isinstance(made, tuple | list):
        return [flat(each) for each in made]
    array = np.asarray(made, object)
    return [array.shape, *("nan" if math.isnan(number(each)) else number(each).hex() for each in array.ravel())]


def outcome(function: Any, given: Any) -> Any:
    """What comes out, or that it is refused."""
    try:
        with np.errstate(all="ignore"), gradwalk.ieee():
            return flat(function(given))
    except (ValueError, IndexError):
        return "refused"


ORDER: dict[str, Any] = {
    "sort": lambda a: np.sort(a, kind="stable"),  # else the order of 0.0 and -0.0 is NumPy's secret
    "sort by columns": lambda a: np.sort(a, axis=0, kind="stable"),
    "sort all": lambda a: np.sort(a, axis=None, kind="stable"),
    "sort in place": lambda a: (a := a.copy(), a.sort(kind="stable"))[0],
    "argsort": lambda a: np.argsort(a, kind="stable"),
    "argsort as a method": lambda a: a.argsort(axis=0, kind="stable"),
    "argmax": np.argmax,
    "argmax of rows": lambda a: np.argmax(a, axis=-1, keepdims=True),
    "argmin, kept": lambda a: np.argmin(a, keepdims=True),
    "argmin as a method": lambda a: a.argmin(axis=0),
    "argmax into what is given": lambda a: np.argmax(a, axis=0, out=np.zeros(a.shape[1:], int)),
    "partition": lambda a: np.partition(a, 1)[..., 1],
    "partition in place": lambda a: (a := a.copy(), a.partition(1))[0][..., 1],
    "argpartition": lambda a: np.ravel(a)[np.argpartition(a, 1, axis=None)[1]],
    "lexsort": lambda a: np.lexsort((np.arange(a.size)[::-1].reshape(a.shape), a)),
    "searchsorted": lambda a: np.searchsorted(np.sort(np.ravel(a)), np.ravel(a)),
    "searchsorted, right": lambda a: np.searchsorted([0.0, 1.0, NAN], a, side="right"),
    "searchsorted, by places": lambda a: np.searchsorted(
        np.ravel(a), [NAN, 0.0, INF], sorter=np.argsort(a, axis=None, kind="stable")
    ),
    "digitize": lambda a: (np.digitize(a, [0.0, 1.0, 2.0]), np.digitize(a, [2.0, 1.0, 1.0], right=True)),
    "unique": lambda a: np.unique(a + 0.0, return_index=True, return_inverse=True, return_counts=True),
    "unique, each nan": lambda a: np.unique(a + 0.0, equal_nan=False),
    "unique along the one axis": lambda a: np.unique(np.ravel(a) + 0.0, axis=0),
    "setdiff1d": lambda a: np.setdiff1d(a + 0.0, [1.0]),
    "histogram": lambda a: np.histogram(a, [0.0, 1.0, 2.0])[0],
    "histogram of a range": lambda a: np.histogram(a, 4, (0.0, 4.0))[0],
    "any, all": lambda a: (np.any(a), np.all(a), ~np.any(a), ~np.all(a, axis=0)),
}

WITHOUT_NAN: dict[str, Any] = {
    **{name: getattr(np, name) for name in ("nanmax", "nanmin", "nanprod", "nancumprod", "nanargmax", "nanargmin")},
    **{
        f"{name} of rows": lambda a, name=name: getattr(np, name)(a, axis=-1, keepdims=True)
        for name in ("nanmax", "nanmin", "nanmean", "nanmedian", "nanvar", "nanargmax")
    },
    "nansum": lambda a: np.nansum(a) + 0.0,
    "nancumsum": lambda a: np.nancumsum(a) + 0.0,
    "nanmean where": lambda a: np.nanmean(a, where=a > 1.0),
    "nanmax with a start": lambda a: np.nanmax(a, initial=2.0, where=a > 1.0),
    "nanmedian": np.nanmedian,
    "nanmedian of columns": lambda a: np.nanmedian(a, axis=0),
    "nanquantile": lambda a: np.nanquantile(a, [0.0, 0.25, 1.0], axis=-1, keepdims=True),
    "nanpercentile": lambda a: np.nanpercentile(a, 50.0),
    "median": np.median,
    "quantile": lambda a: np.quantile(a, [0.25, 0.5, 0.75]),
    "clip, nan below": lambda a: np.clip(a, NAN, 1.0),
    "clip, nan above": lambda a: np.clip(a, 0.25, NAN),
    "clip, crossed": lambda a: np.clip(a, 2.0, 1.0),
    "clip between": lambda a: np.clip(1.0, a, 2.0),
    "linspace": lambda a: np.linspace(a, 1.0, 2)[-1],
    "interp": lambda a: np.interp(a, [0.0, 1.0, 2.0], [1.0, INF, -1.0]),
}

ROUNDED: dict[str, Any] = {
    **{name: getattr(np, name) for name in ("floor", "ceil", "trunc", "rint", "round", "sign", "modf")},
    "round to tens": lambda a: np.round(a, -1),
    "round to digits": lambda a: np.round(a, 2),
    **{
        f"{name} {other!r}": lambda a, name=name, other=other: getattr(np, name)(a, other)
        for name in ("mod", "fmod", "floor_divide", "divmod")
        for other in (2.0, -2.0, 0.0, -0.0, INF, -INF, NAN)
    },
    "divided": lambda a: np.divmod(-2.0, a),
}

EVERY = ORDER | WITHOUT_NAN | ROUNDED
PAIRS = [
    pytest.param(name, sample, id=f"{name}: {sample}")
    for name in EVERY
    for sample in SAMPLES
    if not (name in WITHOUT_NAN and sample == "fractions")  # NumPy adds them up in another order
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("name", "sample"), PAIRS)
def test_what_comes_out_is_what_floats_give(name: str, sample: str) -> None:
    """By its bits, and by its shape; where NumPy refuses, it is refused."""
    numbers = np.array(SAMPLES[sample], float)
    values = gnp.array(numbers).copy()
    for place in np.ndindex(values.shape):
        values[place] = Value(values[place])
    assert outcome(EVERY[name], values) == outcome(EVERY[name], numbers)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ["var", "std", "nanvar", "nanstd"])
@pytest.mark.parametrize("options", [{}, {"ddof": 1}, {"correction": 1}, {"axis": 0, "keepdims": True}, {"ddof": 9}])
@pytest.mark.parametrize("sample", ["nan among numbers", "ties", "rows", "one", "nan alone"])
def test_variances(name: str, options: dict[str, Any], sample: str) -> None:
    """With what is left out, and with as many as there are, or fewer."""
    numbers = np.array(SAMPLES[sample], float)
    with gradwalk.ieee(), np.errstate(all="ignore"):
        found = getattr(np, name)(gnp.array(numbers) * Value(1.0), **options)
        expected = getattr(np, name)(numbers, **options)
    assert np.shape(found) == np.shape(expected)
    assert [number(each) for each in np.ravel(np.asarray(found, object))] == pytest.approx(
        np.ravel(expected).tolist(), nan_ok=True
    )


@pytest.mark.parametrize("name", ["nancumsum", "nancumprod", "nansum", "nanprod"])
def test_what_stands_for_nan_is_a_float(name: str) -> None:
    """NumPy has whole numbers there, which are divided otherwise."""
    made = getattr(np, name)(gnp.array([[NAN, 1.0], [NAN, Value(2.0)]]), axis=0)
    assert [type(made.ravel()[place]) for place in (0, -1)] == [float, Value]


def test_a_variance_of_some() -> None:
    """As NumPy's, with where= and around a mean that is given."""
    numbers = np.array([3.0, 1.0, 7.0, 2.5])
    values = gnp.array(numbers) * Value(1.0)
    assert number(np.var(values, where=numbers > 2.0)) == pytest.approx(np.var(numbers, where=numbers > 2.0))
    assert number(np.std(values, mean=2.0)) == pytest.approx(np.std(numbers, mean=2.0))


UFUNCS = sorted(
    name for name in dir(np) if isinstance(getattr(np, name), np.ufunc) and getattr(np, name).__name__ in RULES
)
REDUCED = ("sum", "prod", "mean", "var", "std", "max", "min", "any")


@pytest.mark.parametrize(
    ("name", "axis"),
    [*((name, axis) for name in (*REDUCED, "argmax", "median") for axis in (None, 0, -1)),
     *((name, axis) for name in REDUCED for axis in ((0, 2), ())), ("median", (0, 2))],
)  # fmt: skip
def test_shapes_of_what_is_reduced(name: str, axis: Any) -> None:
    """With the axes that are kept, and without."""
    numbers = np.arange(24.0).reshape(2, 3, 4) % 7.0
    for keepdims in (True, False):
        made = getattr(np, name)(gnp.array(numbers) * Value(1.0), axis=axis, keepdims=keepdims)
        expected = getattr(np, name)(numbers, axis=axis, keepdims=keepdims)
        assert np.shape(made) == np.shape(expected)
        assert [number(each) for each in np.ravel(np.asarray(made, object))] == pytest.approx(
            np.ravel(expected).astype(float)
        )


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", UFUNCS)
def test_single_values(name: str) -> None:
    """Without an array around them they are what they are in one, and a zero has its place."""
    ufunc = getattr(np, name)
    for pair in ((0.25, 0.5), (0.5, 0.5), (0.75, 0.5), (0.0, 0.5), (0.5, 0.0), (0.0, 0.0)):
        others = [2] * (name == "ldexp") or [*pair[1:], 1.0][: ufunc.nin - 1]
        with gradwalk.ieee(), np.errstate(all="ignore"):
            made, expected = ufunc(Value(pair[0]), *others), ufunc(pair[0], *others)
        plain = [number(each) for each in (made if ufunc.nout > 1 else [made])]
        assert plain == pytest.approx([float(each) for each in np.atleast_1d(expected)], rel=1e-14, nan_ok=True)


def test_rows_and_nothing_are_arrays_that_accept_values() -> None:
    """What is gone through row by row, and no points between two."""
    assert [type(row) for row in gnp.zeros((2, 3))] == [gnp.Array] * 2
    assert [type(entry) for entry in gnp.zeros(2)] == [float] * 2
    assert np.linspace(Value(1.0), 2.0, 0).shape == (0,)


def test_a_correlation_is_none_above_1() -> None:
    """Though its quotient is, by rounding."""
    for seed in range(30):
        row = gnp.array(np.random.default_rng(seed).normal(size=3)) * Value(1.0)
        found = [number(each) for each in np.corrcoef(row, row * -0.3).ravel()]
        assert max(found) <= 1.0
        assert min(found) >= -1.0


def test_derivatives_go_to_what_was_chosen() -> None:
    """Past a nan, eagerly and compiled; a nan that is left out gets nothing."""
    point = np.array([3.0, NAN, 1.0, 2.0])
    for function, expected in (
        (lambda x: np.sort(x)[0], [0.0, 0.0, 1.0, 0.0]),
        (lambda x: x[np.argmin(x[2:])], [1.0, 0.0, 0.0, 0.0]),
        (lambda x: np.nanmax(x) * 2.0, [2.0, 0.0, 0.0, 0.0]),
        (lambda x: np.nanmean(x), [1 / 3, 0.0, 1 / 3, 1 / 3]),
        (lambda x: np.nanmedian(x), [0.0, 0.0, 0.0, 1.0]),
        (lambda x: np.nanvar(x), [2 / 3, 0.0, -2 / 3, 0.0]),
    ):
        assert grad(function)(point) == pytest.approx(expected)
        assert grad(compile(function))(point) == pytest.approx(expected)


def test_lists_of_values() -> None:
    """With the one import changed, or inside everywhere(), a list is what an array is."""
    clipped = lambda a, b: np.log(np.clip([a, b], 0.25, 1.0)).sum()  # noqa: E731
    assert grad(gnp.everywhere()(clipped), argnums=(0, 1))(0.5, 0.0) == (2.0, 0.0)
    assert grad(lambda a: gnp.log(gnp.clip([a, 0.0, 0.5 * a], 0.25, 1.0)).sum())(0.25) == 4.0
    assert number(gnp.sort([Value(NAN), Value(2.0), 1.0])[0]) == 1.0
    assert math.isnan(number(gnp.max([1.0, Value(NAN), Value(2.0)])))
    assert gnp.argmax([[Value(1.0), NAN], [Value(2.0), 3.0]], axis=1).tolist() == [1, 1]
    assert gnp.argmax([gnp.array([Value(1.0), NAN]), np.array([2.0, 3.0])], axis=1).tolist() == [1, 1]
    with pytest.raises(TypeError, match=r"import gradwalk.numpy as np.*everywhere\(\)"):
        grad(clipped, argnums=(0, 1))(0.5, 0.0)


def test_two_results_of_plain_numbers() -> None:
    """An array that accepts Values, and has none."""
    assert [each.tolist() for each in np.divmod(gnp.array([5.0, -5.0]), 2.0)] == [[2.0, -3.0], [1.0, 1.0]]


def test_what_is_true_of_one_value_can_be_turned() -> None:
    """~ of NumPy's False is True; of Python's it is -1, which happens to be."""
    assert not ~np.isfinite(Value(1.0))
    assert not ~np.any(gnp.array([Value(1.0)]))


@pytest.mark.parametrize("x", [-0.0, 0.0, -2.0, 2.0, -5.5, 5.5])
@pytest.mark.parametrize("y", [-2.0, 2.0, -INF, INF])
def test_quotients_have_the_sign_that_floats_have(x: float, y: float) -> None:
    """By Python's operators, a zero included."""
    expected = [each.hex() for each in (x // y, x % y, *divmod(x, y))]
    for a, b in ((Value(x), y), (x, Value(y)), (Value(x), Value(y))):
        assert [each.data.hex() for each in (a // b, a % b, *divmod(a, b))] == expected


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: np.unique(np.stack([x, x]), axis=0), "unique: an axis is not supported with Values"),
        (lambda x: np.histogram(x, "auto"), "expected how many bins, or their edges, with Values, got 'auto'"),
    ],
)
def test_what_is_refused_says_why(function: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        function(gnp.array([1.0, 2.0]) * Value(1.0))


SINGLE: dict[str, Any] = {
    **{function.__name__: function for function in (
        np.max, np.min, np.prod, np.mean, np.median, np.std, np.var, np.round, np.abs, np.nan_to_num, np.cumsum,
        np.sinc, np.real, np.ptp, np.fix, np.average, np.sign, np.square, np.ravel, np.trunc, np.ceil,
    )},
    "clip": lambda a: np.clip(a, 0.5, 1.5),
    "clip below": lambda a: np.clip(a, 0.5, None),
    "where": lambda a: np.where(a > 1.0, a, 0.0),
    "interp": lambda a: np.interp(a, [0.0, 1.0, 2.0], [1.0, 3.0, 2.0]),
    "polyval": lambda a: np.polyval([1.0, 2.0, 3.0], a),
    "isclose": lambda a: np.isclose(a, 1.0),
    "piecewise": lambda a: np.piecewise(a, [a < 1.0, a >= 1.0], [lambda x: x, lambda x: 2.0 * x]),
    "quantile": lambda a: np.quantile(a, 0.3) + 0.0,
    "linspace": lambda a: np.linspace(0.0, a, 3),
    "full": lambda a: np.full(2, a),
    "append": lambda a: np.append(a, 1.0),
    "zeros_like": np.zeros_like,
}  # fmt: skip


@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.parametrize("x", [NAN, 0.3, 1.0, 2.0, -1.0, -0.0, 0.0, 1.5, 0.5])
def test_a_single_value(name: str, x: float) -> None:
    """As NumPy's number on its own: no bound takes the place of nan, and no function fails."""
    assert outcome(SINGLE[name], Value(x)) == outcome(SINGLE[name], np.float64(x))
