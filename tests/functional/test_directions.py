"""Directions match what they move along by key and shape; an argument may be asked for twice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gradwalk import compile, grad, hessian, hvp, jacobian, jvp, value_and_grad, vjp

MAKERS = [pytest.param(lambda f: f, id="plain"), pytest.param(compile, id="compiled")]


def weighted(p: Any) -> Any:
    return 10.0 * p["a"] + p["b"] * p["b"]


@pytest.mark.parametrize("made", MAKERS)
def test_a_dict_matches_by_key(made: Any) -> None:
    """In whatever order the direction has its keys."""
    f, point = made(weighted), {"a": 1.0, "b": 2.0}
    assert jvp(f)(point, {"b": 1.0, "a": 0.0}) == 4.0
    assert hvp(f)(point, {"b": 1.0, "a": 0.0}) == {"a": 0.0, "b": 2.0}
    assert vjp(made(lambda x: {"a": x, "b": 3.0 * x}))(1.0, {"b": 1.0, "a": 0.0}) == 3.0


def test_the_products_of_a_compiled_function_match_by_key() -> None:
    """`hessian_vector` too."""
    compiled = compile(weighted)
    product = compiled.hessian_vector({"a": 1.0, "b": 2.0}, vector={"b": 1.0, "a": 0.0})
    assert product == {"a": 0.0, "b": 2.0}


@pytest.mark.parametrize(
    "direction", [[[1.0, 0.0], [0.0, 2.0]], ((1.0, 0.0), (0.0, 2.0)), np.array([[1.0, 0.0], [0.0, 2.0]])]
)
def test_lists_tuples_and_arrays_of_one_shape_are_alike(direction: Any) -> None:
    """What counts is where a number stands."""
    point = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert jvp(lambda x: x[0, 0] * x[1, 1])(point, direction) == 6.0
    assert jvp(lambda x: x[0][0] * x[1][1])(point.tolist(), direction) == 6.0


@pytest.mark.parametrize(
    ("point", "direction", "message"),
    [
        ({"a": 1.0, "b": 2.0}, {"a": 1.0, "c": 2.0}, r"expected 2 .* \['b'\], got 2 .* \['c'\]"),
        ({"a": 1.0, "b": 2.0}, [1.0, 2.0], r"expected 2 numbers at \['a'\], \['b'\], got 2 numbers at \[0\], \[1\]"),
        (np.ones((2, 3)), np.ones((3, 2)), r"expected 6 .* got 6 numbers at .*\[0\]\[1\], \[1\]"),
        (np.ones((2, 3)), np.ones(6), r"expected 6 numbers at .*, got 6 numbers at \[0\], \[1\]"),
        (np.ones((1, 7)), np.ones(6), r"expected 7 .*, \[0\]\[3\], …, \[0\]\[6\], got 6 numbers at .*, \[4\], \[5\]"),
    ],
)  # fmt: skip
def test_another_structure_is_refused(point: Any, direction: Any, message: str) -> None:
    """As many numbers are not enough; the error says both structures."""
    for product in (jvp, hvp):
        with pytest.raises(ValueError, match=f"{product.__name__}: the direction, like the argument: {message}"):
            product(lambda p: 1.0 * (p["a"] if isinstance(p, dict) else p[0, 0]))(point, direction)


@pytest.mark.parametrize("made", MAKERS)
@pytest.mark.parametrize("argnums", [(0, 0), (0, "x"), (0, -2)])
def test_an_argument_may_be_asked_for_twice(made: Any, argnums: Any) -> None:
    """Both get its derivative."""
    f = made(lambda x, y: x * x * y)
    assert grad(f, argnums=argnums)(3.0, 2.0) == (12.0, 12.0)
    assert value_and_grad(f, argnums=argnums)(3.0, 2.0) == (18.0, (12.0, 12.0))
    assert jacobian(f, argnums=argnums)(3.0, 2.0) == (12.0, 12.0)
    assert hessian(f, argnums=argnums)(3.0, 2.0) == ((4.0, 4.0), (4.0, 4.0))
    assert grad(f, argnums=(0, 1, 0))(3.0, 2.0) == (12.0, 9.0, 12.0)
    with pytest.raises(ValueError, match="jvp: expected each argument once in argnums"):
        jvp(f, argnums=argnums)(3.0, (1.0, 1.0), 2.0)
