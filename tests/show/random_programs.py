"""Random graphs of every operation there is, and how far the last digits of what is on the way move their gradients."""

from __future__ import annotations

import random
import sys
from typing import Any

from gradwalk import Value, composites
from gradwalk.ops import OPS
from gradwalk.row_ops import COMPOSITES
from gradwalk.walk import walk

MOST_NODES = 300
_COMMON = ("add", "sub", "mul", "div", "tanh", "exp")
_OVER_LISTS = [row for row in COMPOSITES.values() if row.name != "take"]


def random_program(source: random.Random) -> Any:
    """A root over at most 300 nodes, inside every domain, with numbers and slopes of moderate size."""
    values: list[Any] = [Value(source.uniform(-2, 2)) for _ in range(source.randint(2, 8))]
    wanted = source.randint(4, 600)
    for _ in range(2 * wanted):
        made = _made(source, values)
        if made is not None and abs(made.data) < 30.0 and all(abs(slope) < 50.0 for slope in made._local_grads):
            values.append(made)
        if len(values) >= wanted:
            break
    root = composites.sum(values[-6:])
    while len(root._topological_order()) > MOST_NODES:
        values = values[: -len(values) // 20]
        root = composites.sum(values[-6:])
    return root


def _made(source: random.Random, values: list[Any]) -> Any:
    """One more node, or None where these numbers have no such one."""

    def chosen() -> Any:
        return source.choice(values[-12:] if source.random() < 0.6 else values)

    if source.random() < 0.12:
        row, length = source.choice(_OVER_LISTS), source.randint(2, 4)
        lists = [[chosen() for _ in range(length)] for _ in row.inputs]
        made = getattr(composites, row.called_by)(*lists, *([source.randrange(length)] if row.target else []))
        return source.choice(made) if isinstance(made, list) else made
    op = OPS[source.choice(_COMMON)] if source.random() < 0.3 else source.choice(list(OPS.values()))
    inputs = [chosen() for _ in op.inputs]
    sample = source.choice(op.samples)
    parameters = sample[len(op.inputs) :] if isinstance(sample, tuple) else ()
    numbers = [*(each.data for each in inputs), *parameters]
    if not op.domain(*numbers) or not abs(op.forward(*numbers)) < 30.0:
        return None
    return inputs[0]._apply(op.name, *inputs, *parameters)


def moved_by_last_digits(root: Any, mode: str, source: random.Random) -> list[float]:
    """The gradients, by place, if every number on the way had another last digit."""

    def nudged(x: float) -> float:
        return x * (1.0 + source.choice((-1, 0, 1)) * sys.float_info.epsilon)

    new: dict[Any, Any] = {}
    for node in root._topological_order():
        children = tuple(new[child] for child in node._children)
        if not children:
            new[node] = Value(node.data)
            continue
        numbers = [child.data for child in children]
        if node._name in OPS:
            row = OPS[node._name]
            out = nudged(row.forward(*numbers, *node._parameters))
            slopes = row.local_grads(*numbers, *node._parameters, out)
        else:
            composite = COMPOSITES[node._name]
            out = nudged(composite.on(numbers, *node._parameters))
            slopes = composite.local_grads_on(numbers, *node._parameters, out)
        new[node] = Value(out, children, local_grads=tuple(map(nudged, slopes)))
    walked = walk(new[root], mode)
    walked.seek(-1)
    return [walked.grad(node) for node in new.values()]
