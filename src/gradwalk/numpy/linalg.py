"""numpy.linalg on Values, by elimination: exact derivatives of any order, for small systems.

Every inner sum is one `dot`, so that a compiled function makes matrix products of them. What is not here is NumPy's
own, for plain numbers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from gradwalk import functions
from gradwalk.numpy import many as composites
from gradwalk.numpy.arrays import handles, wrapped
from gradwalk.numpy.functions import objects
from gradwalk.numpy.spectral import svd

Rows = list[list[Any]]
_ROUNDING = float(np.finfo(float).eps)


def __getattr__(name: str) -> Any:
    return getattr(np.linalg, name)


def _less(number: Any, left: list[Any], right: list[Any]) -> Any:
    """The number, less the sum of products."""
    return number - composites.from_first_dot(left, right) if left else number


def _eliminated(matrix: Rows) -> tuple[Rows, list[int], bool]:
    """Factors below and above the diagonal in one, the order of the rows, and whether it is an odd one."""
    rows, size = [list(row) for row in matrix], len(matrix)
    order, odd = list(range(size)), False
    for k in range(size):
        for i in range(k, size):  # this column of both factors
            rows[i][k] = _less(rows[i][k], rows[i][:k], [rows[j][k] for j in range(k)])
        pivot = k
        for i in range(k + 1, size):
            if abs(rows[i][k]) > abs(rows[pivot][k]):
                pivot = i
        if pivot != k:
            rows[k], rows[pivot], order[k], order[pivot] = rows[pivot], rows[k], order[pivot], order[k]
            odd = not odd
        if rows[k][k] == 0.0:
            continue  # whoever divides by it says so
        for i in range(k + 1, size):
            rows[i][k] = rows[i][k] / rows[k][k]
        for j in range(k + 1, size):  # and this row
            rows[k][j] = _less(rows[k][j], rows[k][:k], [rows[i][j] for i in range(k)])
    return rows, order, odd


def _forward(rows: Rows, given: list[Any], unit: bool) -> list[Any]:
    found: list[Any] = []
    for i, number in enumerate(given):
        left = _less(number, rows[i][:i], found)
        found.append(left if unit else left / rows[i][i])
    return found


def _backward(rows: Rows, given: list[Any]) -> list[Any]:
    found: list[Any] = []
    for i in reversed(range(len(given))):
        found.insert(0, _less(given[i], rows[i][i + 1 : len(given)], found) / rows[i][i])
    return found


def _square(name: str, a: Any) -> Any:
    array = objects(a)
    if array.ndim < 2 or array.shape[-1] != array.shape[-2]:
        raise LinAlgError(f"{name}: expected square matrices, got an array of shape {array.shape}")
    return array


def _each(of_one: Callable[[Rows], Any], array: Any) -> Any:
    """What it makes of each matrix of a stack."""
    if array.ndim == 2:
        return of_one(array.tolist())
    return np.stack([objects(_each(of_one, part)) for part in array])


# ---------------------------------------------------------------- systems


@handles(np.linalg.solve)
def solve(a: Any, b: Any) -> Any:
    """x, so that a @ x is b: by elimination with the largest pivots.

    >>> solve([[2.0, 1.0], [1.0, 3.0]], [3.0, 5.0]).tolist()
    [0.8, 1.4]
    """
    matrix, right = _square("solve", a), objects(b)
    if max(matrix.ndim, right.ndim) > 2:
        one, its = matrix.shape[-2:], right.shape[-2:]
        stack = np.broadcast_shapes(matrix.shape[:-2], right.shape[:-2])
        pairs = zip(
            np.broadcast_to(matrix, (*stack, *one)).reshape(-1, *one),
            np.broadcast_to(right, (*stack, *its)).reshape(-1, *its),
            strict=True,
        )
        made = np.stack([solve(left, column) for left, column in pairs])
        return made.reshape(*stack, *made.shape[1:])
    if len(right) != len(matrix):
        raise LinAlgError(f"solve: expected {len(matrix)} rows on the right, got {len(right)}")
    rows, order, _ = _eliminated(matrix.tolist())
    if any(rows[k][k] == 0.0 for k in range(len(rows))):
        raise LinAlgError("solve: expected a regular matrix, got a singular one")
    columns = right.T.tolist() if right.ndim == 2 else [right.tolist()]
    found = [_backward(rows, _forward(rows, [column[i] for i in order], unit=True)) for column in columns]
    return objects(found).T if right.ndim == 2 else objects(found[0])


@handles(np.linalg.inv)
def inv(a: Any) -> Any:
    """The inverse.

    >>> inv([[2.0, 0.0], [0.0, 4.0]]).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    matrix = _square("inv", a)
    return solve(matrix, np.eye(matrix.shape[-1]))


@handles(np.linalg.lstsq)
def lstsq(a: Any, b: Any, rcond: Any = None) -> tuple[Any, Any, int, Any]:
    """The x for which a @ x is closest to b, as np.linalg.lstsq; of matrices of full rank, without singular values.

    >>> lstsq([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]], [1.0, 3.0, 5.0])[0].round(9).tolist()
    [1.0, 2.0]
    """
    matrix, right = objects(a), objects(b)
    height, width = matrix.shape
    if height < width:  # of all that fit, the shortest
        basis, triangle = qr(matrix.T)
        found = basis @ objects(_each_column(right, lambda column: _forward(triangle.T.tolist(), column, unit=False)))
        return found, objects([]), height, objects([])
    basis, triangle = qr(matrix)
    found = objects(_each_column(basis.T @ right, lambda column: _backward(triangle.tolist(), column)))
    missed = right - matrix @ found
    residuals = objects([]) if height == width else np.atleast_1d(objects(np.sum(missed * missed, axis=0)))
    return found, residuals, width, objects([])


def _each_column(right: Any, solved: Callable[[list[Any]], list[Any]]) -> Any:
    right = objects(right)
    return solved(right.tolist()) if right.ndim == 1 else objects([solved(column) for column in right.T.tolist()]).T


@handles(np.linalg.qr)
def qr(a: Any, mode: str = "reduced") -> Any:
    """An orthogonal and a triangular factor with a positive diagonal (NumPy's signs may differ), of full rank."""
    if mode != "reduced":
        raise TypeError(f"qr: expected mode 'reduced' with Values, got {mode!r}")
    columns = objects(a).T.tolist()
    basis: Rows = []
    triangle = [[0.0] * len(columns) for _ in columns]
    for j, column in enumerate(columns):
        before = composites.norm(column)
        for _ in range(2):  # twice is enough for rounding not to count
            for i, unit in enumerate(basis):
                share = composites.from_first_dot(unit, column)
                triangle[i][j] = triangle[i][j] + share
                column = [number - share * along for number, along in zip(column, unit, strict=True)]
        length = composites.norm(column)
        if length <= before * (_ROUNDING * len(column)):
            raise LinAlgError(
                "qr: expected columns that do not depend on each other: of less than full rank, how qr, lstsq and pinv "
                "move is not defined"
            )
        triangle[j][j] = length
        basis.append([number / length for number in column])
    return objects(basis).T, objects(triangle)


@handles(np.linalg.pinv)
def pinv(a: Any, *_: Any, **__: Any) -> Any:
    """The pseudo-inverse of a matrix of full rank."""
    matrix = objects(a)
    if matrix.ndim > 2:
        return np.stack([pinv(one) for one in matrix])
    height, width = matrix.shape
    return lstsq(matrix, np.eye(height))[0] if height >= width else lstsq(matrix.T, np.eye(width))[0].T


@handles(np.linalg.cholesky)
def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    """The lower factor of a symmetric positive matrix; of its lower half, as NumPy reads it.

    >>> cholesky([[4.0, 2.0], [2.0, 5.0]]).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """

    def of_one(matrix: Rows) -> Any:
        rows: Rows = []
        for i, given in enumerate(matrix):
            row: list[Any] = []
            for j in range(i):
                row.append(_less(given[j], row, rows[j][:j]) / rows[j][j])
            square = _less(given[i], row, row)
            if not square > 0.0:
                raise LinAlgError("cholesky: expected a positive definite matrix")
            rows.append([*row, functions.sqrt(square), *[0.0] * (len(matrix) - i - 1)])
        return objects(rows)

    matrix = _square("cholesky", a)
    if upper:
        return np.swapaxes(_each(of_one, np.swapaxes(matrix, -1, -2)), -1, -2)
    return _each(of_one, matrix)


# ---------------------------------------------------------------- numbers of a matrix


@handles(np.linalg.det)
def det(a: Any) -> Any:
    """The determinant.

    >>> det([[2.0, 1.0], [1.0, 3.0]])
    5.0
    """

    def of_one(matrix: Rows) -> Any:
        return _expanded(matrix) if len(matrix) <= 3 else _by_pivots(matrix)

    return _each(of_one, _square("det", a))


def _expanded(matrix: Rows) -> Any:
    """By the first row: no division, so that a singular matrix has its derivative too."""
    if len(matrix) < 2:
        return matrix[0][0] if matrix else 1.0
    terms = [
        (-1.0) ** j * number * _expanded([row[:j] + row[j + 1 :] for row in matrix[1:]])
        for j, number in enumerate(matrix[0])
    ]
    return functools.reduce(lambda total, term: total + term, terms)


def _by_pivots(matrix: Rows) -> Any:
    rows, _, odd = _eliminated(matrix)
    if any(rows[k][k] == 0.0 for k in range(len(rows))):
        return _expanded(matrix)
    product = functools.reduce(lambda total, k: total * rows[k][k], range(1, len(rows)), rows[0][0])
    return -product if odd else product


@handles(np.linalg.slogdet)
def slogdet(a: Any) -> Any:
    """The sign of the determinant and the logarithm of its size.

    >>> slogdet([[-2.0, 0.0], [0.0, 1.0]])[0]
    -1.0
    """

    def of_one(matrix: Rows) -> Any:
        rows, _, odd = _eliminated(matrix)
        pivots = [rows[k][k] for k in range(len(rows))]
        negative = sum(pivot < 0.0 for pivot in pivots) + odd
        if any(pivot == 0.0 for pivot in pivots):
            return objects([0.0, float("-inf")])
        logs = [functions.log(abs(pivot)) for pivot in pivots]
        return objects([-1.0 if negative % 2 else 1.0, composites.sum(logs) if logs else 0.0])

    made = _each(of_one, _square("slogdet", a))
    result = type(np.linalg.slogdet(np.eye(1)))
    return result(wrapped(made[..., 0]), wrapped(made[..., 1]))


@handles(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """As np.linalg.norm.

    >>> norm([3.0, 4.0])
    5.0
    """
    array = objects(x)
    if axis is None and (ord is None or (ord == 2 and array.ndim == 1) or (ord == "fro" and array.ndim == 2)):
        made = composites.norm(array.ravel().tolist()) if array.size else 0.0
        return objects(made).reshape((1,) * array.ndim) if keepdims else made
    axes = tuple(range(array.ndim)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    if len(axes) > 2 and ord is not None:
        raise ValueError(f"norm: expected one axis or two for the order {ord!r}, got {len(axes)}")
    if len(axes) == 1 and isinstance(ord, str):
        raise ValueError(f"norm: expected an order of a vector norm, got {ord!r}")
    if len(axes) == 2 and ord not in (None, "fro"):
        if ord in (1, -1, np.inf, -np.inf):
            inner, outer = (axes[0], axes[1]) if abs(ord) == 1 else (axes[1], axes[0])
            totals = np.sum(abs(array), axis=inner, keepdims=True)
            made = (np.max if ord > 0 else np.min)(totals, axis=outer, keepdims=True)
            return made if keepdims else np.squeeze(made, axes)
        if ord not in (2, -2, "nuc"):
            raise ValueError(f"norm: expected an order of a matrix norm, got {ord!r}")
        sizes = svd(np.moveaxis(array, axes, (-2, -1)), compute_uv=False)
        made = (np.sum if ord == "nuc" else np.max if ord > 0 else np.min)(sizes, axis=-1)
        return np.expand_dims(objects(made), axes) if keepdims else made
    if ord in (None, 2, "fro"):
        moved = np.moveaxis(array, axes, range(-len(axes), 0))
        flat = moved.reshape(*moved.shape[: -len(axes)], -1)
        made = (
            np.apply_along_axis(lambda row: composites.norm(row.tolist()), -1, flat) if flat.size else np.sum(flat, -1)
        )
    elif ord in (np.inf, -np.inf):
        made = (np.max if ord > 0 else np.min)(abs(array), axis=axes)
    elif ord == 0:
        made = np.sum(array != 0.0, axis=axes, dtype=float)
    elif ord == 1:
        made = np.sum(abs(array), axis=axes)
    else:
        made = np.sum(abs(array) ** ord, axis=axes) ** (1.0 / ord)
    return np.expand_dims(objects(made), axes) if keepdims else made
