"""The sign of a zero that NumPy's functions add up: what they give on floats, where all there is to add is -0.0."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradwalk
import gradwalk.engine
import gradwalk.numpy as gnp
from gradwalk import compile, value_and_grad

Function = Callable[..., Any]

SHAPES: list[tuple[int, ...]] = [
    (),
    (0,),
    (1,),
    (2,),
    (3,),
    (9,),
    (0, 3),
    (3, 0),
    (1, 1),
    (1, 3),
    (3, 1),
    (2, 3),
    (2, 2),
]
SHAPES += [(1, 1, 1), (2, 2, 2)]


def ones_beside(a: Any, *more: int) -> Any:
    """A last axis as long as the array's."""
    return np.ones((*more, a.shape[-1]))


def row(a: Any) -> Any:
    return np.ravel(a)


REDUCED: dict[str, Function] = {
    **{
        f"{name} of all": getattr(np, name)
        for name in ("sum", "nansum", "mean", "nanmean", "prod", "var", "std", "average")
    },
    **{
        f"{name} along {axis}": lambda a, name=name, axis=axis: getattr(np, name)(a, axis=axis)
        for name in ("sum", "nansum", "mean", "nanmean", "prod", "average", "cumsum", "cumprod", "nancumsum", "median")
        for axis in (0, -1)
    },
    **{
        f"{ufunc.__name__}.{method}": lambda a, ufunc=ufunc, method=method: getattr(ufunc, method)(a)
        for ufunc in (np.add, np.subtract, np.multiply)
        for method in ("reduce", "accumulate")
    },
    "method": lambda a: (a.sum(), a.mean(), a.prod(), a.cumsum()),
    "method along an axis": lambda a: (a.sum(axis=0), a.sum(-1, keepdims=True), a.mean(axis=0), a.cumsum(axis=-1)),
    "sum of every axis": lambda a: np.sum(a, axis=tuple(range(a.ndim)), keepdims=True),
    "sum of two axes": lambda a: np.sum(a, axis=(0, 1)),
    "sum with a start": lambda a: (np.sum(a, initial=-0.0), np.sum(a, axis=0, initial=0.0)),
    "sum where": lambda a: (np.sum(a, where=True), np.sum(a, where=np.zeros(a.shape, bool))),
    "sum into what is given": lambda a: np.sum(a, axis=0, out=np.zeros_like(a[0])),
    "reduced from none": lambda a: np.add.reduce(a, axis=None, initial=None),
    "reduceat": lambda a: np.add.reduceat(a, range(a.shape[0])),
    "weighted": lambda a: np.average(a, axis=0, weights=np.ones(a.shape[:1])),
    "weighted all": lambda a: np.average(row(a), weights=np.ones(a.size)),
    "trace": lambda a: (np.trace(a), a.trace(), np.linalg.trace(a)),
    "trace beside": lambda a: np.trace(a, offset=1),
    "trapezoid": np.trapezoid,
    "differences": lambda a: (np.diff(a), np.ediff1d(a)),
    "bincount": lambda a: np.bincount(np.zeros(a.size, int), row(a), 2),
    "histogram": lambda a: np.histogram(np.zeros(a.size), [-1.0, 1.0, 2.0], weights=row(a))[0],
    "norm": lambda a: (np.linalg.norm(a), np.linalg.norm(row(a), 1), np.linalg.norm(a, axis=-1)),
}

PRODUCTS: dict[str, Function] = {
    "dot": lambda a: (np.dot(a, ones_beside(a)), np.dot(np.ones(a.shape[0]), a)),
    "dot of a row": lambda a: (
        np.dot(row(a), np.ones(a.size)),
        np.dot(np.ones(a.size), row(a)),
        np.dot(row(a), row(a)),
    ),
    "dot with a matrix": lambda a: np.dot(a, ones_beside(a, 2).T),
    "dot with a column": lambda a: np.dot(a, ones_beside(a, 1).T),
    "dot with a stack": lambda a: np.dot(a, np.ones((2, a.shape[-1], 2))),
    "dot with a number": lambda a: (np.dot(a, 2.0), np.dot(-2.0, a)),
    "dot as a method": lambda a: row(a).dot(np.ones(a.size)),
    "@": lambda a: (a @ ones_beside(a), np.ones(a.shape[0]) @ a, row(a) @ row(a)),
    "@ of matrices": lambda a: (a @ ones_beside(a, 2).T, a @ ones_beside(a, 1).T, a @ -ones_beside(a, 2).T),
    "@ of stacks": lambda a: np.stack([a, a]) @ np.ones((2, a.shape[-1], 2)),
    "inner": lambda a: (np.inner(a, ones_beside(a)), np.inner(a, ones_beside(a, 2)), np.inner(a, 2.0)),
    "vdot": lambda a: np.vdot(a, np.ones(a.shape)),
    "vecdot": lambda a: (np.vecdot(a, np.ones(a.shape)), np.linalg.vecdot(a, np.ones(a.shape))),
    "matvec": lambda a: (np.matvec(a, ones_beside(a)), np.vecmat(np.ones(a.shape[-2]), a)),
    "outer": lambda a: (np.outer(a, np.ones(2)), np.kron(a, np.ones(2))),
    "tensordot": lambda a: np.tensordot(a, np.ones(a.shape), axes=a.ndim),
    "tensordot of one axis": lambda a: (
        np.tensordot(a, ones_beside(a, 2).T, 1),
        np.tensordot(a, ones_beside(a, 1).T, 1),
    ),
    "tensordot of none": lambda a: (np.tensordot(a, np.ones(2), 0), np.tensordot(a, np.ones(1), 0)),
    "multi_dot": lambda a: np.linalg.multi_dot([row(a), np.ones((a.size, 2)), np.ones(2)]),
    "matrix_power": lambda a: np.linalg.matrix_power(np.outer(a, np.ones(a.size)), 2),
    "convolve": lambda a: [np.convolve(row(a), np.ones(2), mode) for mode in ("full", "same", "valid")],
    "correlate": lambda a: [np.correlate(row(a), np.ones(2), mode) for mode in ("full", "same", "valid")],
    "convolve with many": lambda a: np.convolve(np.ones(13), row(a)),
    **{
        f"einsum {subscripts}{optimize or ''}": lambda a, subscripts=subscripts, optimize=optimize: np.einsum(
            subscripts, a, *[np.ones(a.shape[-1])] * subscripts.count(","), optimize=optimize
        )
        for subscripts in (
            "...->...",
            "...i->...",
            "...i,i->...",
            "...i,j->...ij",
            "i->",
            "ij->",
            "ij->ji",
            "ii->",
            "ii",
        )
        for optimize in (False, True)
        if "..." not in subscripts or not optimize
    },
    "einsum of matrices": lambda a: [
        np.einsum("ij,jk->ik", a, ones_beside(a, 2).T, optimize=optimize) for optimize in (False, True, "greedy")
    ],
}

EVERY = REDUCED | PRODUCTS


def signs(made: Any) -> Any:
    """Shapes, and the numbers with the signs of zeros; nan has none."""
    if isinstance(made, tuple | list):
        return [signs(each) for each in made]
    array = np.asarray(made, object)
    numbers = [float(each.data if hasattr(each, "data") else each) for each in array.ravel().tolist()]
    return [array.shape, *("nan" if math.isnan(number) else repr(number) for number in numbers)]


def outcome(function: Function, given: Any) -> Any:
    try:
        with np.errstate(all="ignore"), gradwalk.ieee():
            return signs(function(given))
    except (ValueError, IndexError, TypeError, AttributeError, ZeroDivisionError):
        return "refused"


def values(numbers: Any, kind: Any, all_of_them: bool) -> Any:
    """The numbers in an array that accepts Values: Values, or the first of them alone."""
    array = gnp.array(numbers).copy()
    for count, place in enumerate(np.ndindex(array.shape)):
        if all_of_them or not count:
            array[place] = kind(numbers[place])
    return array


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("engine_name", sorted({gradwalk.engine.NAME, "reference"}))
def test_zeros_have_the_sign_that_they_have_on_floats(engine_name: str, name: str, shape: tuple[int, ...]) -> None:
    """Whatever begins with 0 is 0.0, whatever begins with the first term -0.0; and so with a 0.0 among them."""
    kind = gradwalk.engine.load(engine_name).Value
    for last in (-0.0, 0.0):
        numbers = np.full(shape, -0.0)
        numbers.reshape(-1)[-1:] = last
        expected = outcome(EVERY[name], numbers)
        if expected == "refused":
            continue
        for all_of_them in (True, False):
            assert outcome(EVERY[name], values(numbers, kind, all_of_them)) == expected


def total(a: Any) -> Any:
    return np.sum(a)


def along_an_axis(a: Any) -> Any:
    return np.sum(a.reshape(1, 2), axis=1)[0]


def sum_of_known(a: Any) -> Any:
    return np.nansum(a)


def product(a: Any) -> Any:
    return a @ np.ones(2)


def dot(a: Any) -> Any:
    return np.dot(np.ones((3, 2)), a)[1]


def trace(a: Any) -> Any:
    return np.trace(np.outer(a, np.ones(2)))


def convolved(a: Any) -> Any:
    return np.convolve(a, np.ones(2))[0]


def with_the_import(a: Any) -> Any:
    return gnp.sum(gnp.array([a[0], a[1]]))


@pytest.mark.parametrize("made", [lambda f: f, compile, lambda f: compile(f, exact=True), gnp.everywhere()],
                         ids=["eager", "compiled", "exact", "everywhere"])  # fmt: skip
@pytest.mark.parametrize("of", [total, along_an_axis, sum_of_known, product, dot, trace, convolved, with_the_import])
def test_what_sees_the_sign(of: Function, made: Function) -> None:
    """atan2(-0.0, -1) is -π, and atan2(0.0, -1) is π: derived, compiled, and with the program made elsewhere."""
    zeros = np.array([-0.0, -0.0])
    expected = math.atan2(float(of(zeros)), -1.0)
    assert expected == math.pi
    function = made(lambda a: gradwalk.atan2(of(a), -1.0))
    for point in (zeros, np.array([0.25, 0.5]), zeros):
        value, gradient = value_and_grad(function)(point)
        assert value == math.atan2(float(of(point)), -1.0)
        assert gradient.shape == (2,)


def test_a_sum_along_an_axis_is_one_node() -> None:
    """As that of everything is, and of nothing a number."""
    array = values(np.ones((2, 3)), gradwalk.Value, True)
    assert [made._op for made in np.sum(array, axis=1)] == ["sum", "sum"]
    assert array.sum()._op == np.sum(array)._op == "sum"
    assert len(np.sum(array)._children) == 6
    assert np.sum(array, axis=0, where=False).tolist() == [0.0] * 3
