"""Eigenvalues of symmetric matrices and singular values, on Values.

NumPy finds them for plain numbers; two steps of Newton's method on Values say how they move (after one step first
derivatives are right, after two those up to the third). In a compiled function what NumPy found would be that of the
first call: it is refused there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from gradwalk.control import is_traced
from gradwalk.errors import refusal
from gradwalk.numpy import many as composites
from gradwalk.numpy.arrays import handles
from gradwalk.numpy.functions import objects
from gradwalk.structure import is_value

STEPS = 2


def _numbers(name: str, array: Any) -> Any:
    if is_traced():
        raise refusal(
            f"{name}: in a compiled function it would be that of the first call; leave the function uncompiled"
        )
    return np.array([[x.data if is_value(x) else float(x) for x in row] for row in array.tolist()])


def _refined(name: str, matrix: Any, found: Any) -> tuple[Any, Any]:
    """Eigenvalues and eigenvectors of a symmetric matrix, out of vectors that are the right ones as numbers."""
    vectors, size = objects(found), len(found)
    for _ in range(STEPS):
        products = vectors.T @ matrix @ vectors
        short = np.eye(size) - vectors.T @ vectors  # of being orthogonal and of length 1
        values = [products[i, i] / (1.0 - short[i, i]) for i in range(size)]
        turned = objects(np.zeros((size, size)))
        for i in range(size):
            for j in range(size):
                apart = values[j] - values[i]
                if i != j and apart == 0.0:
                    raise LinAlgError(f"{name}: expected values that differ, got {size} with equal ones among them")
                turned[i, j] = 0.5 * short[i, i] if i == j else (products[i, j] + values[j] * short[i, j]) / apart
        vectors = vectors + vectors @ turned
    return objects(values), vectors


def _stacked(of_one: Any, array: Any) -> Any:
    made = [of_one(one) for one in array]
    return [np.stack(each) for each in zip(*made, strict=True)]


@handles(np.linalg.eigh)
def eigh(a: Any, UPLO: Any = "L") -> Any:  # noqa: N803  (NumPy's name)
    """Eigenvalues and eigenvectors of a symmetric matrix, of which one half is read; the values have to differ.

    >>> [float(each) for each in eigh([[2.0, 0.0], [0.0, 1.0]]).eigenvalues]
    [1.0, 2.0]
    """
    array = objects(a)
    result = type(np.linalg.eigh(np.eye(1)))
    if array.ndim > 2:
        return result(*_stacked(lambda one: eigh(one, UPLO), array))
    half = np.tril(array) if UPLO.upper() == "L" else np.triu(array)
    matrix = half + half.T - np.diag(np.diagonal(array))
    return result(*_refined("eigh", matrix, np.linalg.eigh(_numbers("eigh", matrix), UPLO)[1]))


@handles(np.linalg.eigvalsh)
def eigvalsh(a: Any, UPLO: str = "L") -> Any:  # noqa: N803  (NumPy's name)
    """The eigenvalues of a symmetric matrix, of which one half is read."""
    return eigh(a, UPLO)[0]


@handles(np.linalg.svd)
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """The singular values, and the vectors that belong to them; the values have to differ.

    >>> svd([[3.0, 0.0], [0.0, 4.0]], compute_uv=False).tolist()
    [4.0, 3.0]
    """
    array = objects(a)
    result = type(np.linalg.svd(np.eye(1)))
    if array.ndim > 2:
        if not compute_uv:
            return np.stack([svd(one, compute_uv=False) for one in array])
        return result(*_stacked(lambda one: svd(one, full_matrices), array))
    height, width = array.shape
    if compute_uv and full_matrices and height != width:
        raise TypeError("svd: expected full_matrices=False with Values: how the vectors beyond turn is not defined")
    tall = array if height >= width else array.T
    found = np.linalg.svd(_numbers("svd", tall), full_matrices=False)[2].T
    _, right = _refined("svd", tall.T @ tall, found)
    scaled = tall @ right
    sizes = objects([composites.norm(column) for column in scaled.T.tolist()])
    if not compute_uv:
        return sizes
    left = scaled / sizes
    return result(left, sizes, right.T) if height >= width else result(right, sizes, left.T)


@handles(np.linalg.svdvals)
def svdvals(x: Any, /) -> Any:
    """The singular values."""
    return svd(x, compute_uv=False)
