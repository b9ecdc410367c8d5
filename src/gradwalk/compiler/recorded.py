"""The nodes a trace recorded, as arrays: in C on the native engine, in plain Python on the reference engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from types import SimpleNamespace
from typing import Any

import numpy as np

from gradwalk import engine
from gradwalk.compiler.flat import CODES, Codes, Floats, Ints, starts_of
from gradwalk.ops import OPS
from gradwalk.row_ops import COMPOSITES

BY_HAND = -1  # the code of a node that no operation of the table and no composite made
# a node of another operation has no parameters to ask for
_WITH_PARAMETERS = {op.name for op in OPS.values() if op.parameters}
_WITH_PARAMETERS |= {row.name for row in COMPOSITES.values() if row.indexed or row.parameters}


@dataclass(frozen=True, eq=False)
class Recorded:
    """Places count the entries of the arguments first, then the leaves, the constants, some others, then the nodes."""

    leaves: tuple[Any, ...]  # closed over, in the order of their first use
    constants: Floats
    constant_uses: int
    codes: Codes  # of the nodes' operations
    starts: Ints
    children: Ints
    with_parameters: Ints  # nodes, by their place among the nodes
    parameters: Floats  # two for each of those
    roots: Ints


def recorded(nodes: list[Any], entries: list[Any], roots: list[Any], others: int) -> Recorded | None:
    """None where a node has no children, as under no_grad."""
    return (_by_native_engine if engine.NAME == "native" else in_python)(nodes, entries, roots, others)


def _by_native_engine(nodes: list[Any], entries: list[Any], roots: list[Any], others: int) -> Recorded | None:
    native = SimpleNamespace(**engine.load("native").TRACING)
    made = native.flatten(nodes, entries, roots, others)
    if made is None:
        return None
    leaves, ops, starts, children, with_parameters, parameters, places, constants, uses = made
    codes = np.array([CODES.get(name, BY_HAND) for name in native.op_names()], np.int16)
    return Recorded(
        leaves=leaves,
        constants=np.frombuffer(constants),
        constant_uses=uses,
        codes=codes[np.frombuffer(ops, np.uint8)],
        starts=np.frombuffer(starts, np.int64),
        children=np.frombuffer(children, np.int64),
        with_parameters=np.frombuffer(with_parameters, np.int64),
        parameters=np.frombuffer(parameters).reshape(-1, 2),
        roots=np.frombuffer(places, np.int64),
    )


def in_python(nodes: list[Any], entries: list[Any], roots: list[Any], others: int) -> Recorded | None:
    """The same by asking the nodes one by one."""
    children = [node._children for node in nodes]
    if not all(children):
        return None
    names = [node._name for node in nodes]
    known = set(map(id, chain(nodes, entries)))
    used = chain(chain.from_iterable(children), roots)
    outside = {id(value): value for value in used if id(value) not in known}.values()
    constants = [value for value in outside if value._constant]
    leaves = tuple(value for value in outside if not value._constant)
    places = {id(value): place for place, value in enumerate(chain(entries, leaves, constants))}
    first_node = len(places) + others
    places |= {id(node): place for place, node in enumerate(nodes, first_node)}
    with_parameters = [i for i, name in enumerate(names) if name in _WITH_PARAMETERS]
    parameters = np.zeros((len(with_parameters), 2))
    for row, node in enumerate(with_parameters):
        given = nodes[node]._parameters
        parameters[row, : len(given)] = given

    def of(values: Sequence[Any]) -> Ints:
        return np.array([places[id(value)] for value in values], np.int64)

    return Recorded(
        leaves=leaves,
        constants=np.array([value.data for value in constants], np.float64),
        constant_uses=len(constants),
        codes=np.array([CODES.get(name, BY_HAND) for name in names], np.int16),
        starts=starts_of(np.array(list(map(len, children)), np.int64)),
        children=of(list(chain.from_iterable(children))),
        with_parameters=np.array(with_parameters, np.int64),
        parameters=parameters,
        roots=of(roots),
    )
