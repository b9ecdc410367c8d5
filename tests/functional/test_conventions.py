"""What people who come from jax and autograd write."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import gradwalk.numpy as gnp
from gradwalk import (
    Value,
    compile,
    custom_op,
    fixed_point,
    grad,
    hessian,
    implicit_root,
    jacfwd,
    jacobian,
    jacrev,
    sparse_hessian,
    sparse_jacobian,
    stop_gradient,
    value_and_grad,
    vmap,
)  # fmt: skip
from gradwalk.sparse import coloured

MAKERS = [pytest.param(lambda f: f, id="plain"), pytest.param(compile, id="compiled")]


def test_argnum() -> None:
    """autograd's name for it."""
    assert grad(lambda x, y: x * y * y, argnum=1)(2.0, 3.0) == 12.0
    assert value_and_grad(lambda x, y: x * y, argnum=(0, 1))(2.0, 3.0) == (6.0, (3.0, 2.0))


def test_has_aux() -> None:
    """What is returned besides comes back as plain numbers, in its structure."""

    def loss(x: Any) -> Any:
        return x * x, {"twice": 2.0 * x, "name": "x"}

    assert grad(loss, has_aux=True)(3.0) == (6.0, {"twice": 6.0, "name": "x"})
    assert value_and_grad(loss, has_aux=True)(3.0) == ((9.0, {"twice": 6.0, "name": "x"}), 6.0)
    assert grad(lambda x: grad(loss, has_aux=True)(x)[0])(3.0) == 2.0
    with pytest.raises(TypeError, match="grad: expected a function that returns its value and more, got a Value"):
        grad(lambda x: x * x, has_aux=True)(3.0)


def test_jacfwd_and_jacrev() -> None:
    """The same matrix, by either way."""
    f, x = lambda x: gnp.array([x[0] * x[1], x[1] ** 2, x[0]]), np.array([2.0, 3.0])
    expected = [[3.0, 2.0], [0.0, 6.0], [1.0, 0.0]]
    assert jacfwd(f)(x).tolist() == jacrev(f)(x).tolist() == expected


@pytest.mark.parametrize("made", MAKERS)
def test_vmap(made: Any) -> None:
    """Rows of arrays and lists, an argument that is the same for all, results of any structure."""
    rows = np.arange(6.0).reshape(3, 2)
    assert vmap(made(lambda x: x[0] * x[1]))(rows).tolist() == [0.0, 6.0, 20.0]
    assert vmap(made(lambda x, a: a * x[0]), in_axes=(0, None))(rows.tolist(), 2.0).tolist() == [0.0, 4.0, 8.0]
    assert vmap(made(lambda x: x[0] + x[1] + x[2]), in_axes=1)(rows).tolist() == [6.0, 9.0]
    both = vmap(made(lambda x: {"a": x[0] * 1.0, "b": [x[1] * 2.0]}))(rows)
    assert both["a"].tolist() == [0.0, 2.0, 4.0]
    assert both["b"][0].tolist() == [2.0, 6.0, 10.0]
    assert vmap(grad(made(lambda x: x[0] * x[1])))(rows).tolist() == [[1.0, 0.0], [3.0, 2.0], [5.0, 4.0]]
    assert vmap(made(lambda x: x * x))(np.array([1.0, 2.0])).tolist() == [1.0, 4.0]
    with pytest.raises(ValueError, match=r"vmap: expected as many rows in each argument, got \[2, 3\]"):
        vmap(made(lambda x, y: x * y))([1.0, 2.0], [1.0, 2.0, 3.0])


@pytest.mark.parametrize("made", MAKERS)
def test_vmap_beside_a_value(made: Any) -> None:
    """Which is the same for all rows, and gets its gradient."""
    weight = Value(2.0)
    sum(vmap(made(lambda x, w: w * x), in_axes=(0, None))([1.0, 3.0], weight)).backward()
    assert weight.grad == 4.0


@pytest.mark.parametrize("made", MAKERS)
def test_vmap_of_a_single_row(made: Any) -> None:
    """An array of one."""
    assert vmap(made(lambda x: x * x))([3.0]).tolist() == [9.0]


def test_vmap_of_an_object_that_maps_something_else() -> None:
    """Only a compiled function is asked to do many at once: `map` may mean anything elsewhere."""

    class Layer:
        def __call__(self, x: Any) -> Any:
            return x * x

        def map(self, inputs: Any) -> list[float]:
            raise AssertionError("it is none of vmap's")

    assert vmap(Layer())([1.0, 2.0, 3.0]).tolist() == [1.0, 4.0, 9.0]


def test_vmap_refusals() -> None:
    """Of no rows there is nothing; axes and structures that do not fit are said."""
    assert vmap(lambda x: x * x)([]).tolist() == []
    with pytest.raises(ValueError, match="vmap: expected an axis for each of 2 arguments, got 1"):
        vmap(lambda x, y: x * y, in_axes=(0,))([1.0], [2.0])
    with pytest.raises(TypeError, match="vmap: expected an array for axis 1, got a list"):
        vmap(lambda x: x[0], in_axes=1)([[1.0]])
    with pytest.raises(ValueError, match="vmap: expected results of one structure, got different ones"):
        vmap(lambda x: [x] * int(x))([1.0, 2.0])


def test_vmap_in_a_derivative() -> None:
    """Values go through it."""
    assert grad(lambda w: sum(vmap(lambda x: w * x)([1.0, 2.0, 4.0])))(3.0) == 7.0
    assert grad(lambda x: np.sum(vmap(lambda a: a * a)(x)))(np.array([1.0, 2.0])).tolist() == [2.0, 4.0]


@pytest.mark.parametrize("made", MAKERS)
def test_vmap_of_rows_of_numbers_and_a_value_that_is_the_same_for_all(made: Any) -> None:
    """Gradients come to the Value from every row."""
    scaled = vmap(made(lambda x, a: a * x), in_axes=(0, None))
    assert grad(lambda a: sum(scaled([1.0, 2.0, 4.0], a)))(3.0) == 7.0


def test_stop_gradient_of_structures() -> None:
    """Lists, dicts and arrays, in their structure; plain numbers stay."""
    assert grad(lambda x: stop_gradient([x, 2.0])[0] * x)(3.0) == 3.0
    assert grad(lambda x: stop_gradient({"a": x})["a"] * x)(3.0) == 3.0
    assert grad(lambda x: (stop_gradient(x) * x).sum())(np.array([2.0, 3.0])).tolist() == [2.0, 3.0]
    assert grad(lambda x: stop_gradient(x) * x)(3.0) == 3.0
    assert stop_gradient([1.0, "text"]) == [1.0, "text"]
    assert stop_gradient(Value(2.0)).data == 2.0


# ---------------------------------------------------------------- roots and fixed points


def bisected(f: Any, low: float, high: float) -> float:
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if f(middle) < 0.0 else (low, middle)
    return 0.5 * (low + high)


def test_a_root_moves_as_its_equation_says() -> None:
    """Of one number: the square root, to the third derivative; found by bisection on Values."""

    def root(a: Any) -> Any:
        return implicit_root(lambda x, a: x * x - a, bisected(lambda x: x * x - a, 0.0, 10.0), a)

    assert root(2.0) == pytest.approx(2.0**0.5, rel=1e-15)
    assert grad(root)(2.0) == pytest.approx(0.5 * 2.0**-0.5, rel=1e-12)
    assert grad(grad(root))(2.0) == pytest.approx(-0.25 * 2.0**-1.5, rel=1e-12)
    assert grad(grad(grad(root)))(2.0) == pytest.approx(0.375 * 2.0**-2.5, rel=1e-12)


def test_a_root_of_several_equations() -> None:
    """A circle and a line."""

    def equations(x: Any, radius: Any) -> Any:
        return [x[0] ** 2 + x[1] ** 2 - radius**2, x[0] - x[1]]

    def corner(radius: Any) -> Any:
        return implicit_root(equations, [1.0, 1.0], radius)[0]

    assert grad(corner)(2.0**0.5) == pytest.approx(0.5**0.5, rel=1e-12)
    with pytest.raises(ValueError, match="implicit_root: expected 2 equations for as many numbers, got 1"):
        implicit_root(lambda x, a: [x[0] - a], [1.0, 1.0], 1.0)
    with pytest.raises(TypeError, match="implicit_root: expected the root as numbers, got a list of 0"):
        implicit_root(lambda x, a: x, [], 1.0)


def test_a_fixed_point() -> None:
    """Heron's way to the square root, of a number and of a list."""
    assert grad(lambda a: fixed_point(lambda x, a: 0.5 * (x + a / x), 1.0, a))(9.0) == pytest.approx(1.0 / 6.0)
    both = jacobian(lambda a: fixed_point(lambda x, a: [0.5 * (x[0] + a / x[0]), 0.1 * x[0]], [1.0, 1.0], a))(9.0)
    assert both == pytest.approx([1.0 / 6.0, 1.0 / 60.0])
    with pytest.raises(ValueError, match="fixed_point: expected f to settle within 50 applications"):
        fixed_point(lambda x: -x + 1.0, 0.0, most=50)


@dataclass
class Square:
    side: Any
    area: Any = field(init=False)

    def __post_init__(self) -> None:
        self.area = self.side * self.side


def test_a_root_in_a_dataclass() -> None:
    """A field that follows from the others does so wherever the equation is asked, and in what was found."""

    def root(area: Any) -> Any:
        return implicit_root(lambda square, area: square.area - area, Square(3.0), area)

    def settled(area: Any) -> Any:
        return fixed_point(lambda square, area: Square(0.5 * (square.area + area) / square.side), Square(1.0), area)

    for found in (root, settled):
        assert found(9.0).area == pytest.approx(9.0)
        assert grad(lambda area, found=found: found(area).side)(9.0) == pytest.approx(1.0 / 6.0)
        assert grad(lambda area, found=found: found(area).area)(9.0) == pytest.approx(1.0)


@pytest.mark.parametrize("start", [lambda a: 1.0, lambda a: a])
def test_what_searches_cannot_be_compiled_and_says_so(start: Any) -> None:
    """How often f is applied depends on the numbers; what was found before goes into a compiled function."""
    heron = compile(lambda a: fixed_point(lambda x, a: 0.5 * (x + a / x), start(a), a))
    with pytest.raises(TypeError, match="fixed_point: expected plain numbers to search with"):
        heron(9.0)
    root = compile(lambda found, a: implicit_root(lambda x, a: x * x - a, found, a))
    assert [root(3.0, 9.0).data, root(2.0, 4.0).data] == pytest.approx([3.0, 2.0])
    assert grad(root, argnums=1)(2.0, 4.0) == pytest.approx(0.25)
    for matrix in (sparse_jacobian(lambda x: x[0] * x[0]), sparse_hessian(lambda x: x[0] * x[0])):
        with pytest.raises(TypeError, match="or being compiled, which a sparse matrix cannot hold"):
            compile(matrix)([2.0])


# ---------------------------------------------------------------- sparse matrices


def test_sparse_matrices_hold_numbers() -> None:
    """What they depend on was lost in silence: a derivative of 0."""
    inner = {
        "sparse_jacobian": lambda x: sparse_jacobian(lambda y: [x * y[0]])([1.0]).toarray()[0, 0] * x,
        "sparse_hessian": lambda x: sparse_hessian(lambda y: x * y[0] ** 2)([1.0]).toarray()[0, 0] * x,
    }
    for name, function in inner.items():
        with pytest.raises(TypeError, match=f"{name}: expected plain numbers.* use gradwalk.{name[7:]} there"):
            grad(function)(3.0)
    assert grad(lambda x: sparse_jacobian(lambda y: [y[0] ** 2])([1.0]).toarray()[0, 0] * x)(3.0) == 2.0


def test_sparse_matrices() -> None:
    """The same numbers as the dense ones, and no more entries than there are dependences."""
    pytest.importorskip("scipy")

    def chained(x: Any) -> Any:
        return [a * b for a, b in itertools.pairwise(x)]

    def rosenbrock(x: Any) -> Any:
        return sum(100.0 * (b - a * a) ** 2 + (1.0 - a) ** 2 for a, b in itertools.pairwise(x))

    x = np.linspace(0.5, 1.5, 12)
    for made in (lambda f: f, compile):
        found = sparse_jacobian(made(chained))(x)
        assert (found.shape, found.nnz) == ((11, 12), 22)
        assert found.toarray().tolist() == np.array(jacobian(chained)(x)).tolist()
        second = sparse_hessian(made(rosenbrock))(x)
        assert second.nnz <= 34
        assert second.toarray() == pytest.approx(hessian(rosenbrock)(x), rel=1e-12)


@pytest.mark.parametrize("outputs", [[], [1.0, 2.0]])
def test_a_sparse_matrix_without_entries(outputs: Any) -> None:
    """Has its shape."""
    found = sparse_jacobian(lambda x: outputs)([3.0, 4.0, 5.0])
    assert (found.shape, found.nnz) == ((len(outputs), 3), 0)


@pytest.mark.parametrize("matrix", [sparse_jacobian, sparse_hessian])
def test_sparse_matrices_of_what_is_no_function(matrix: Any) -> None:
    """It is refused when it is given, not when the matrix is asked for."""
    with pytest.raises(TypeError, match=rf"{matrix.__name__}: expected a function, got a float; write .*\(f\)\(x\)"):
        matrix(3.0)


def test_colours() -> None:
    """A band of width 3 needs three, however long."""
    rows = [[j for j in (i - 1, i, i + 1) if 0 <= j < 50] for i in range(50)]
    assert max(coloured(rows, 50)) == 2


# ---------------------------------------------------------------- second derivatives of one's own operations


@pytest.mark.parametrize("made", MAKERS)
def test_second_derivatives_of_a_custom_op(made: Any) -> None:
    """Its local gradients are computed on Values; plain inputs reach them as plain numbers."""
    power = custom_op(lambda x, n: x**n, lambda x, n, out: (n * x ** (n - 1.0), 0.0), name="power", check=False)
    f = made(lambda x: power(x, 3.0) * x)
    assert grad(f)(2.0) == 32.0
    assert grad(grad(f))(2.0) == 48.0
    assert hessian(f)(2.0) == 48.0
    assert grad(grad(grad(lambda x: power(x, 4.0))))(2.0) == 48.0


def test_a_custom_op_of_floats_only_says_so() -> None:
    """Where its second derivative is asked for."""
    sine = custom_op(math.sin, lambda x, out: math.cos(x), name="sine")
    assert grad(lambda x: sine(x))(0.0) == 1.0
    with pytest.raises(TypeError, match=r"sine: expected local_grads that takes Values too, for a second derivative"):
        grad(grad(lambda x: sine(x)))(0.5)
