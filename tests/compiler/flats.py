"""Graphs as the passes take them, written down by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradwalk.compiler.flat import CODES, SIGNS, Flat, starts_of, table_of


def flat_of(
    nodes: list[tuple[Any, ...]],
    inputs: int,
    outputs: list[int],
    guards: list[tuple[int, str, int, bool]] | None = None,
) -> Flat:
    """A small graph: `inputs` input nodes, then (op, children…) or (op, children…, (parameters…))."""
    written = [("input",)] * inputs + nodes
    given = np.zeros((len(written), 2))
    children: list[list[int]] = []
    for i, (name, *rest) in enumerate(written):
        if name == "constant":
            given[i, 0] = rest.pop()
        if rest and isinstance(rest[-1], tuple):
            parameters = rest.pop()
            given[i, : len(parameters)] = parameters
        children.append(rest)
    numbers, row = table_of(given)
    compared = guards or []
    return Flat(
        op=np.array([CODES[name] for name, *_ in written], np.int16),
        starts=starts_of(np.array([len(c) for c in children], np.int64)),
        children=np.array([c for row in children for c in row], np.int64),
        numbers=numbers,
        row=row,
        inputs=np.arange(inputs),
        outputs=np.array(outputs, np.int64),
        guards=np.array([(left, right) for left, _, right, _ in compared], np.int64).reshape(-1, 2),
        signs=np.array([SIGNS.index(sign) for _, sign, _, _ in compared], np.int64),
        outcomes=np.array([outcome for *_, outcome in compared], np.bool_),
    )
