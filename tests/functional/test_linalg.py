"""numpy.linalg on Values: NumPy's numbers, derivatives that the differences confirm, and the same compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradwalk.numpy as gnp
from gradwalk import Value, compile, grad, gradcheck, hessian, value_and_grad

RNG = np.random.default_rng(3)
MATRIX = RNG.normal(size=(4, 4))
POSITIVE = MATRIX @ MATRIX.T + np.eye(4)
TALL = RNG.normal(size=(5, 3))
VECTOR = RNG.normal(size=4)
STACK = RNG.normal(size=(3, 4, 4))

CASES: dict[str, tuple[Any, Any]] = {
    "solve": (lambda a: np.linalg.solve(a, VECTOR).sum(), MATRIX),
    "solve for many": (lambda a: (np.linalg.solve(a, MATRIX.T) ** 2).sum(), MATRIX),
    "solve, by the right side": (lambda b: (np.linalg.solve(MATRIX, b) ** 2).sum(), VECTOR),
    "inv": (lambda a: (np.linalg.inv(a) ** 2).sum(), MATRIX),
    "det": (np.linalg.det, MATRIX),
    "det of a small one": (np.linalg.det, MATRIX[:3, :3]),
    "slogdet": (lambda a: np.linalg.slogdet(a)[1], MATRIX),
    "cholesky": (lambda a: (np.linalg.cholesky(a + a.T) ** 3).sum(), POSITIVE),
    "norm": (np.linalg.norm, MATRIX),
    "norms of rows": (lambda a: (np.linalg.norm(a, axis=1) ** 3).sum(), MATRIX),
    "norm 1 of a matrix": (lambda a: np.linalg.norm(a, 1), MATRIX),
    "lstsq": (lambda a: (np.linalg.lstsq(a, np.arange(5.0), rcond=None)[0] ** 2).sum(), TALL),
    "lstsq of a wide one": (lambda a: (np.linalg.lstsq(a, np.arange(3.0), rcond=None)[0] ** 2).sum(), TALL.T),
    "pinv": (lambda a: (np.linalg.pinv(a) ** 2).sum(), TALL),
    "a stack": (lambda a: np.linalg.det(np.stack([a, a.T])).sum() + np.linalg.inv(np.stack([a, a + a])).prod(), MATRIX),
    "solve for stacks": (
        lambda a: sum(
            (np.linalg.solve(left, right) ** 2).sum()
            for left, right in (
                (a, STACK), (np.stack([a, a.T]), STACK[:, None]), (STACK[:, None], a),
                (np.stack([a, a.T])[None], VECTOR),
            )
        ), MATRIX
    ),
    "pinv of a stack": (lambda a: (np.linalg.pinv(np.stack([a, 2.0 * a])) ** 2).sum(), TALL),
    "the upper factor": (lambda a: (np.linalg.cholesky(np.triu(a), upper=True) ** 3).sum(), POSITIVE),
    "matrix_power, multi_dot": (
        lambda a: np.linalg.matrix_power(a, 3).sum() + np.linalg.multi_dot([a, a, VECTOR]).sum(), MATRIX
    ),
}  # fmt: skip


@pytest.mark.parametrize("made", [pytest.param(lambda f: f, id="eager"), pytest.param(compile, id="compiled")])
@pytest.mark.parametrize("name", CASES)
def test_linalg(name: str, made: Any) -> None:
    """The value of NumPy's own, eager and compiled."""
    f, point = CASES[name]
    value, gradient = value_and_grad(made(f))(point)
    assert value == pytest.approx(float(f(point)), rel=1e-9)
    assert gradient == pytest.approx(grad(f)(point), rel=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_derivatives(name: str) -> None:
    """Confirmed by differences."""
    f, point = CASES[name]
    report = gradcheck(f, point, tolerance=1e-5)
    assert report, str(report)


@pytest.mark.parametrize("name", ["qr", "lstsq", "pinv"])
@pytest.mark.parametrize("made", [pytest.param(lambda f: f, id="eager"), pytest.param(compile, id="compiled")])
def test_less_than_full_rank_is_refused(name: str, made: Any) -> None:
    """What is left of the last column is rounding, and nothing may be computed from it."""
    dependent = np.column_stack([TALL[:, :2], TALL[:, 0] - 2.0 * TALL[:, 1]])
    functions: dict[str, Any] = {
        "qr": lambda a: np.linalg.qr(a)[1].sum(),
        "lstsq": lambda a: np.linalg.lstsq(a, np.ones(5), rcond=None)[0].sum(),
        "pinv": lambda a: np.linalg.pinv(a).sum(),
    }
    f = made(functions[name])
    value_and_grad(f)(TALL)
    with pytest.raises(np.linalg.LinAlgError, match="full rank"):
        value_and_grad(f)(dependent)


def test_second_derivatives() -> None:
    """Of the determinant by two entries that meet in it: the product of the others."""
    by = hessian(np.linalg.det)(np.array([[2.0, 1.0], [1.0, 3.0]]))
    assert by[0, 0, 1, 1] == 1.0
    assert by[0, 1, 1, 0] == -1.0


def test_a_singular_matrix() -> None:
    """No solution, but a determinant with a derivative."""
    singular = np.array([[1.0, 2.0], [2.0, 4.0]])
    assert grad(np.linalg.det)(singular).tolist() == [[4.0, -2.0], [-2.0, 1.0]]
    assert grad(np.linalg.det)(np.diag([1.0, 2.0, 3.0, 0.0])).tolist() == np.diag([0.0, 0.0, 0.0, 6.0]).tolist()
    assert np.linalg.slogdet(gnp.array([[Value(1.0), 2.0], [0.0, Value(0.0)]])) == (0.0, -np.inf)
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        grad(lambda a: np.linalg.solve(a, np.ones(2)).sum())(singular)
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        grad(lambda a: np.linalg.cholesky(a).sum())(-np.eye(2))
    with pytest.raises(np.linalg.LinAlgError, match="square"):
        grad(lambda a: np.linalg.det(a))(np.ones((2, 3)))
    with pytest.raises(np.linalg.LinAlgError, match="values that differ"):
        grad(lambda a: np.linalg.eigh(a)[1][0, 0])(np.eye(2))


REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "rows": (lambda a: np.linalg.solve(a[:3], VECTOR), np.linalg.LinAlgError, "expected 3 rows on the right, got 4"),
    "qr": (lambda a: np.linalg.qr(a, "complete"), TypeError, "expected mode 'reduced' with Values, got 'complete'"),
    "svd": (np.linalg.svd, TypeError, "expected full_matrices=False with Values"),
    "order": (lambda a: np.linalg.norm(a, 3), ValueError, "expected an order of a matrix norm, got 3"),
    "order of a vector": (lambda a: np.linalg.norm(a[0], "nuc"), ValueError, "order of a vector norm, got 'nuc'"),
    "axes": (lambda a: np.linalg.norm(np.stack([a, a]), 2), ValueError, "one axis or two for the order 2, got 3"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_why(name: str) -> None:
    function, kind, words = REFUSED[name]
    with pytest.raises(kind, match=words):
        grad(lambda a: function(a)[0])(TALL)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize(
    ("axis", "order"),
    [*((axis, order) for axis in (0, -1) for order in (None, 0, 1, 2, 3, -1, -2, np.inf, -np.inf)),
     *((axis, order) for axis in ((0, 1), (2, 0)) for order in (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)),
     (None, None)],
)  # fmt: skip
def test_norms(axis: Any, order: Any, keepdims: bool) -> None:
    """Of every order, along any axes, that are kept or not."""
    for stack in [STACK[:, :2, :3], *[STACK[0]] * (axis == (0, 1)), *[STACK[0, 0]] * (axis == 0)]:
        along = axis if stack.ndim > 2 else None
        expected = np.linalg.norm(stack, order, along, keepdims)
        found = np.asarray(np.linalg.norm(gnp.array(stack) * Value(1.0), order, along, keepdims), object)
        assert found.shape == expected.shape
        plain = [each.data if isinstance(each, Value) else each for each in found.ravel()]
        assert plain == pytest.approx(expected.ravel().tolist())


def test_singular_vectors_of_a_square_matrix() -> None:
    """NumPy's, with its signs."""
    found = np.linalg.svd(gnp.array(MATRIX) * Value(1.0))
    for ours, theirs in zip(found, np.linalg.svd(MATRIX), strict=True):
        assert [each.data for each in ours.ravel()] == pytest.approx(theirs.ravel().tolist())


@pytest.mark.parametrize("right", [1, 2], ids=["a vector", "columns"])
@pytest.mark.parametrize("matrix", [TALL, MATRIX, TALL.T], ids=["tall", "square", "wide"])
def test_what_least_squares_miss(matrix: Any, right: int) -> None:
    """The squares that are left over, one for each column, where there are more rows than unknowns; and the rank."""
    wanted = RNG.normal(size=(len(matrix), 3)[:right])
    expected = np.linalg.lstsq(matrix, wanted, rcond=None)
    found = np.linalg.lstsq(gnp.array(matrix) * Value(1.0), wanted, rcond=None)
    for ours, theirs in zip(found[:2], expected[:2], strict=True):
        assert ours.shape == theirs.shape
        assert [each.data for each in ours.ravel()] == pytest.approx(theirs.ravel().tolist())
    assert found[2] == expected[2]


def test_how_many_are_not_0() -> None:
    """A float, as NumPy's; nothing moves it."""
    count = np.linalg.norm(gnp.array([Value(0.0), Value(2.0), 3.0]), 0)
    assert (type(count), count) == (float, 2.0)


SYMMETRIC = POSITIVE + np.diag([0.0, 1.0, 2.0, 3.0])
SPECTRAL: dict[str, tuple[Any, Any]] = {
    "eigenvalues": (lambda a: (np.linalg.eigvalsh(a) ** 2 * np.arange(4.0)).sum(), SYMMETRIC),
    "eigenvectors": (lambda a: (np.linalg.eigh(a)[1] ** 4 * MATRIX).sum(), SYMMETRIC),
    "the upper half": (lambda a: np.linalg.eigh(a, "U")[0][0], SYMMETRIC),
    "a stack": (lambda a: np.linalg.eigvalsh(np.stack([a, 2.0 * a]))[1, 2], SYMMETRIC),
    "singular values": (lambda a: (np.linalg.svd(a, compute_uv=False) ** 3).sum(), TALL),
    "singular vectors": (lambda a: sum((each**4).sum() for each in np.linalg.svd(a, full_matrices=False)), TALL),
    "those of a wide one": (lambda a: sum((each**4).sum() for each in np.linalg.svd(a, full_matrices=False)), TALL.T),
    "those of a stack": (
        lambda a: sum((each**4).sum() for each in np.linalg.svd(np.stack([a, 2.0 * a]), full_matrices=False)),
        TALL,
    ),
    "singular values of a stack": (
        lambda a: (
            (np.linalg.svdvals(np.stack([a, a + 1.0])) ** 3).sum()
            + np.linalg.norm(np.stack([a, a**2]), 2, (1, 2)).prod()
        ),
        TALL,
    ),
    "norms": (lambda a: np.linalg.norm(a, 2) * np.linalg.norm(a, "nuc") + np.linalg.norm(a, -2), TALL),
}


@pytest.mark.parametrize("name", SPECTRAL)
def test_spectral(name: str) -> None:
    """NumPy's numbers, and derivatives that the differences confirm, up to the second."""
    f, point = SPECTRAL[name]
    assert value_and_grad(f)(point)[0] == pytest.approx(float(f(point)), rel=1e-9)
    report = gradcheck(f, point, tolerance=1e-5)
    assert report, str(report)
    report = gradcheck(lambda a: (grad(f)(a) ** 2).sum(), point, tolerance=1e-4)
    assert report, str(report)


def test_eigenvectors_have_the_signs_of_the_half_that_is_read() -> None:
    """As NumPy has them: they may differ between the halves."""
    for half in "LU":
        for seed in range(10):
            matrix = np.random.default_rng(seed).normal(size=(6, 6))
            entries = [(lambda a, j=j, half=half: np.linalg.eigh(a, half)[1][0, j]) for j in range(6)]
            assert [value_and_grad(f)(matrix)[0] for f in entries] == pytest.approx([float(f(matrix)) for f in entries])


def test_spectral_in_a_compiled_function() -> None:
    """What NumPy finds would be that of the first call."""
    with pytest.raises(TypeError, match="eigh: in a compiled function it would be that of the first call"):
        compile(lambda a: np.linalg.eigvalsh(a).sum())(SYMMETRIC)
