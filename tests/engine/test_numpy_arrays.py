"""NumPy: arrays on either side, functions on arrays of Values, scalars as numbers; never a Value with an array."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

SCALARS = [
    np.float16,
    np.float32,
    np.float64,
    np.longdouble,
    np.int8,
    np.int16,
    np.int32,
    np.int64,
    np.uint8,
    np.uint64,
]
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "**": lambda a, b: a**b,
}


@pytest.mark.parametrize("dtype", SCALARS, ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("symbol", OPERATORS)
def test_a_numpy_scalar_is_a_number(engine: Any, symbol: str, dtype: Any) -> None:
    """On either side of every operator, with the gradient of a plain number."""
    apply = OPERATORS[symbol]
    for swapped in (False, True):
        x, y = engine.Value(2.0), engine.Value(2.0)
        out = apply(dtype(3), x) if swapped else apply(x, dtype(3))
        plain = apply(3.0, y) if swapped else apply(y, 3.0)
        out.backward()
        plain.backward()
        assert type(out) is engine.Value
        assert (out.data, x.grad) == (plain.data, y.grad)


@pytest.mark.parametrize("dtype", SCALARS, ids=lambda dtype: dtype.__name__)
def test_a_value_made_of_a_numpy_scalar(engine: Any, dtype: Any) -> None:
    """data is a plain float."""
    x = engine.Value(dtype(1))
    x.data = dtype(1)
    x.grad = dtype(1)
    assert (type(x.data), x.data, type(x.grad), x.grad) == (float, 1.0, float, 1.0)


@pytest.mark.parametrize("dtype", SCALARS, ids=lambda dtype: dtype.__name__)
def test_comparison_with_a_numpy_scalar(engine: Any, dtype: Any) -> None:
    """On either side."""
    x = engine.Value(2.0)
    assert [bool(b) for b in (x < dtype(3), x > dtype(1), dtype(3) > x, dtype(3) < x)] == [True, True, True, False]


@pytest.mark.parametrize("symbol", OPERATORS)
@pytest.mark.parametrize("shape", [(3,), (2, 2), (1, 1, 1), (0,)])
def test_an_array_on_either_side(engine: Any, symbol: str, shape: tuple[int, ...]) -> None:
    """The result is an array of Values of the array's shape, never a Value holding an array."""
    apply = OPERATORS[symbol]
    array = np.arange(1.0, 1.0 + math.prod(shape)).reshape(shape)
    x = engine.Value(2.0)
    for out, expected in ((apply(x, array), apply(2.0, array)), (apply(array, x), apply(array, 2.0))):
        assert isinstance(out, np.ndarray)
        assert (out.shape, out.dtype) == (shape, object)
        assert all(type(v) is engine.Value and type(v.data) is float for v in out.flat)
        assert [v.data for v in out.flat] == pytest.approx(list(expected.flat), rel=1e-15)


def test_gradients_through_an_array(engine: Any) -> None:
    """backward() of a sum of an array of Values reaches the Value that was multiplied with it."""
    x = engine.Value(2.0)
    (x * np.array([1.0, 2.0, 4.0])).sum().backward()
    assert x.grad == 7.0


def test_a_zero_dimensional_array(engine: Any) -> None:
    """Gives a Value, with a float in it."""
    x = engine.Value(2.0)
    for out in (x * np.array(3.0), np.array(3.0) * x):
        assert (type(out), type(out.data), out.data) == (engine.Value, float, 6.0)


def test_an_integer_array(engine: Any) -> None:
    """Integers in arrays are numbers too."""
    out = engine.Value(2.0) * np.arange(3)
    assert [v.data for v in out] == [0.0, 2.0, 4.0]


def test_comparison_with_an_array(engine: Any) -> None:
    """Element by element."""
    x = engine.Value(2.0)
    assert (x < np.array([1.0, 3.0])).tolist() == [False, True]
    assert (np.array([1.0, 3.0]) < x).tolist() == [True, False]


def test_an_array_of_values(engine: Any) -> None:
    """np.array of Values is an object array of those very Values."""
    a, b = engine.Value(1.0), engine.Value(2.0)
    array = np.array([[a, b], [b, a]])
    assert (array.dtype, array.shape, array[0, 1] is b) == (object, (2, 2), True)
    assert np.array([a, 1.0]).dtype == object
    assert np.array(a).shape == ()


UFUNCS = ["exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "cbrt", "sin", "cos", "tan", "arcsin", "arccos",
          "arctan", "sinh", "cosh", "tanh", "arcsinh", "arctanh", "floor", "ceil", "negative", "positive", "absolute",
          "square", "reciprocal"]  # fmt: skip


@pytest.mark.parametrize("name", UFUNCS)
def test_numpys_functions_on_arrays_of_values(engine: Any, name: str) -> None:
    """np.exp and friends record an operation on each Value, with the number NumPy gives for floats."""
    function = getattr(np, name)
    numbers = np.array([0.25, 0.5])
    values = np.array([engine.Value(number) for number in numbers])
    out = function(values)
    assert [type(v) for v in out] == [engine.Value] * 2
    assert [v.data for v in out] == pytest.approx(function(numbers).tolist(), rel=1e-14)


def test_arccosh_of_an_array(engine: Any) -> None:
    """The one whose domain starts at 1."""
    assert np.arccosh(np.array([engine.Value(2.0)]))[0].data == math.acosh(2.0)


@pytest.mark.parametrize("name", ["arctan2", "hypot", "fmod", "power", "add", "subtract"])
def test_numpys_functions_of_two(engine: Any, name: str) -> None:
    """Also with a plain array beside it, on either side."""
    function = getattr(np, name)
    numbers, others = np.array([0.25, 5.5]), np.array([1.5, 2.0])
    values = np.array([engine.Value(number) for number in numbers])
    objects = np.array([engine.Value(number) for number in others])
    for out in (function(values, objects), function(values, others)):
        assert [v.data for v in out] == pytest.approx(function(numbers, others).tolist(), rel=1e-14)


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_choosing_between_arrays(engine: Any, name: str) -> None:
    """np.maximum and np.minimum hand back one of the two Values at each place."""
    a, b, c, d = (engine.Value(number) for number in (1.0, 4.0, 3.0, 2.0))
    chosen = getattr(np, name)(np.array([a, b]), np.array([c, d]))
    assert list(chosen) == ([c, b] if name == "maximum" else [a, d])


def test_a_value_is_its_own_conjugate(engine: Any) -> None:
    """NumPy asks each entry for it; the gradient goes on."""
    x = engine.Value(3.0)
    [same] = np.conjugate(np.array([x]))
    assert same is x


def test_a_ufunc_on_a_bare_value(engine: Any) -> None:
    """np.exp(v) is v.exp()."""
    x = engine.Value(0.5)
    out = np.exp(x)
    out.backward()
    assert (type(out), out.data, x.grad) == (engine.Value, math.exp(0.5), math.exp(0.5))


def test_linear_algebra_on_arrays_of_values(engine: Any) -> None:
    """dot, @, sum, mean and prod work, and gradients flow through them."""
    w = np.array([[engine.Value(float(3 * i + j)) for j in range(3)] for i in range(2)])
    x = np.array([1.0, 2.0, 3.0])
    out = (w @ x).sum() + w.mean() * 6.0 + np.dot(w[0], w[1])
    out.backward()
    assert out.data == (8.0 + 26.0) + 15.0 + (0 * 3 + 1 * 4 + 2 * 5)
    assert [v.grad for v in w[0]] == [1.0 + 1.0 + 3.0, 2.0 + 1.0 + 4.0, 3.0 + 1.0 + 5.0]


def test_an_array_is_no_number(engine: Any) -> None:
    """A Value never holds an array, not even one of a single number."""
    x = engine.Value(1.0)
    for array in (np.array([1.0, 2.0]), np.array([1.0]), np.array(1.0)):
        with pytest.raises(TypeError, match="data: expected a number or a Value, got a ndarray"):
            engine.Value(array)
        with pytest.raises(TypeError):
            x.data = array
        with pytest.raises(TypeError):
            x.grad = array
    assert (x.data, x.grad) == (1.0, 0.0)


def test_a_float_array_does_not_swallow_a_value(engine: Any) -> None:
    """Assigning into a float array, or asking for one, would drop the gradient: a TypeError."""
    x = engine.Value(1.0)
    floats = np.zeros(2)
    with pytest.raises((TypeError, ValueError)):
        floats[0] = x
    with pytest.raises((TypeError, ValueError)):
        np.array([x], dtype=float)
    with pytest.raises((TypeError, ValueError)):
        floats += x


def test_power_functions_of_arrays(engine: Any) -> None:
    """v ** array and pow(v, array) are the same array of Values."""
    x = engine.Value(3.0)
    exponents = np.array([1.0, 2.0])
    assert [v.data for v in x**exponents] == [v.data for v in engine.functions.pow(x, exponents)] == [3.0, 9.0]


def test_composites_over_arrays(engine: Any) -> None:
    """An array of Values is a list of numbers like any other."""
    values = np.array([engine.Value(1.0), engine.Value(2.0)])
    out = engine.composites.dot(values, np.array([3.0, 4.0]))
    out.backward()
    assert (out.data, values[0].grad, values[1].grad) == (11.0, 3.0, 4.0)
    assert engine.composites.sum(np.float32([1.0, 2.0])) == 3.0
