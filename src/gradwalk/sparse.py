"""Sparse Jacobians and Hessians as SciPy's sparse matrices: what depends on what is read from the recorded graph.

Columns that no output sees together share a direction (a colour), so there are as many sweeps as colours, not as
inputs. A compiled function has a program with nothing but the entries that are not always 0.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradwalk import engine, functional
from gradwalk.control import is_inside
from gradwalk.functional import Argnums, Function, Recording, Replayed
from gradwalk.structure import is_value


def sparse_jacobian(f: Function, argnums: Argnums = 0) -> Function:
    """Every output by every input, as a `scipy.sparse` matrix of numbers in the order they stand in.

    >>> print(sparse_jacobian(lambda x: [x[0] * x[1], x[1] + x[2]])([2.0, 3.0, 4.0]).toarray())
    [[3. 2. 0.]
     [0. 1. 1.]]
    """
    return _sparse("sparse_jacobian", f, argnums)


def sparse_hessian(f: Function, argnums: Argnums = 0) -> Function:
    """All second derivatives, as a `scipy.sparse` matrix of numbers in the order they stand in.

    >>> print(sparse_hessian(lambda x: x[0] ** 2 * x[1] + x[2] ** 2)([2.0, 3.0, 4.0]).toarray())
    [[6. 4. 0.]
     [4. 0. 0.]
     [0. 0. 2.]]
    """
    functional.checked("sparse_hessian", f, argnums)
    plain = f.function if isinstance(f, Replayed) else f
    return _sparse("sparse_hessian", functional.grad(plain, argnums), argnums)


def _sparse(what: str, f: Function, argnums: Argnums) -> Function:
    functional.checked(what, f, argnums)

    @functools.wraps(f)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        from scipy.sparse import csr_array

        run = Recording(what, f, args, kwargs, argnums, forward=True)
        run.all_outputs()
        if run.with_graph and is_inside():
            raise TypeError(
                f"{what}: expected plain numbers, got Values that are differentiated once more or being compiled, "
                f"which a sparse matrix cannot hold; use gradwalk.{what.removeprefix('sparse_')} there"
            )
        rows = _pattern(run)
        colours = coloured(rows, len(run.inputs))
        entries: dict[tuple[int, int], float] = {}
        for colour in range(max(colours, default=-1) + 1):
            moving = [1.0 if own == colour else 0.0 for own in colours]
            speeds = run.forward(moving)
            for i, columns in enumerate(rows):
                for j in columns:
                    if colours[j] == colour:
                        speed = speeds[i]
                        entries[i, j] = float(speed.data if is_value(speed) else speed)
        places = np.array(list(entries), np.intp).reshape(-1, 2)
        shape = len(run.outputs), len(run.inputs)
        return csr_array((np.array(list(entries.values()), np.float64), (places[:, 0], places[:, 1])), shape=shape)

    return differentiated


def _pattern(run: Recording) -> list[list[int]]:
    """The inputs that each output depends on."""
    below = {leaf: 1 << place for place, leaf in enumerate(run.inputs)}
    for node in engine.topological_order(run.above())[:-1]:
        if node not in below:
            mask = 0
            for child in node._children:
                mask |= below.get(child, 0)
            below[node] = mask
    return [_bits(below.get(output, 0)) if is_value(output) else [] for output in run.outputs]


def _bits(mask: int) -> list[int]:
    return [place for place in range(mask.bit_length()) if mask >> place & 1]


def coloured(rows: Sequence[Sequence[int]], count: int) -> list[int]:
    """A colour for each of so many columns; those that meet in a row have different ones.

    >>> coloured([[0, 1], [1, 2], [2, 3]], 4)
    [0, 1, 0, 1]
    """
    meeting: list[set[int]] = [set() for _ in range(count)]
    for columns in rows:
        for column in columns:
            meeting[column].update(columns)
    colours = [-1] * count
    for column in range(count):
        taken = {colours[other] for other in meeting[column]}
        colours[column] = next(colour for colour in range(count) if colour not in taken)
    return colours
