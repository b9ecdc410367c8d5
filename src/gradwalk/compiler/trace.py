"""Tracing: the function is run once, and the graph the engine records anyway becomes a `Flat`.

Every number in the arguments is given to the function as a Value of its own, every integer as an `Index`. What it
compares is written down as a guard; a read of `.data` is refused.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any, NoReturn

import numpy as np

from gradwalk import composites, control, engine, reference
from gradwalk.compiler.arguments import replaced, user_line
from gradwalk.compiler.flat import CODES, CONSTANT, INPUT, ROW_OPS, SIGNS, Flat, Ints, starts_of
from gradwalk.compiler.index import Index
from gradwalk.compiler.results import Result, result_of
from gradwalk.structure import is_value

_TAKEN = "take"
_PARAMETRISED = frozenset(
    {"pow_number", "leaky_relu", "elu", "clamp", "cross_entropy", "take", *ROW_OPS}
)  # a node of another operation has no parameters to ask for


class Trace:
    """One run of a function: its flat graph, its result, and what has to be so for the graph to apply again."""

    flat: Flat
    leaves: tuple[Any, ...]  # closed over, in the order of the flat graph's later inputs
    result: Result
    eager: Any  # what the run itself returned

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.function = function
        self.entries: list[Any] = []  # the Value that stands for each entry of the arguments
        self.given: list[Any] = []  # and what was given there
        self.recorded: list[Any] = []
        self.compared: list[tuple[Any, Any, str, bool]] = []
        self.asked: set[tuple[int, float, str]] = set()
        self.lines: list[str] = []  # where each comparison was made
        self.whole: dict[int, int] = {}  # entries that were used as plain integers, and which integer
        self.tables: dict[tuple[int, ...], int] = {}
        self.taken: dict[int, tuple[int, int]] = {}
        self.args, self.kwargs = replaced((args, kwargs), self._number, self._integer)

    # ---------------------------------------------------------------- what the function is given

    def _number(self, given: Any) -> Any:
        value = engine.Value(given.data if is_value(given) else given)
        self.entries.append(value)
        self.given.append(given)
        return value

    def _integer(self, given: int) -> Index:
        return Index(self, len(self.entries), given, self._number(float(given)))

    def specialise(self, entry: int, number: int) -> None:
        """The function uses the integer in a way that a program cannot keep open."""
        self.whole[entry] = number

    def compare(self, left: Any, right: Any, sign: str, outcome: bool) -> None:
        """A comparison the function made: one guard, however often it made it."""
        key = id(left), id(right) if is_value(right) else float(right), sign
        if key not in self.asked:
            self.asked.add(key)
            self.compared.append((left, right, sign, outcome))
            self.lines.append(user_line())

    def take(self, index: Index, rows: list[Any]) -> Any:
        """`rows[index]`, with the index left open: one node per column, over the whole column."""
        listed = [row if isinstance(row, list | tuple) else [row] for row in rows]
        if len({len(row) for row in listed}) > 1 or not index.within(len(rows)):
            return None
        values = [[x if is_value(x) else _constant(x) for x in row] for row in listed]
        key = tuple(id(value) for row in values for value in row)
        table = self.tables.setdefault(key, len(self.tables))
        made = []
        for column, entries in enumerate(zip(*values, strict=True)):
            local_grads = [0.0] * (len(entries) + 1)
            local_grads[index.number + 1] = 1.0
            data = entries[index.number]
            made.append(self._by_hand(_data(data), (index.value, *entries), local_grads, _TAKEN))
            self.taken[id(made[-1])] = table, column
        return made if isinstance(rows[0], list | tuple) else made[0]

    def cross_entropy(self, index: Index, logits: list[Any]) -> Any:
        """The cross entropy with the target left open."""
        if not index.within(len(logits)):
            return None
        with control.modes(on_record=_ignored):  # the node made instead has one child more
            out = composites.cross_entropy(logits, index.number)
        if not is_value(out):
            return out
        return self._by_hand(_data(out), (*out._children, index.value), (*out._local_grads, 0.0), "cross_entropy")

    def _by_hand(self, data: float, children: Any, local_grads: Any, op: str) -> Any:
        node = engine.Value(data, children, op, local_grads=local_grads)
        self.recorded.append(node)
        return node

    # ---------------------------------------------------------------- running it

    def run(self) -> Trace:
        """Run the function and keep what it did."""
        hook: Any = self.recorded.append
        if engine.NAME == "reference":
            hook = self._record_on_reference
        with control.modes(no_grad=False, on_record=hook, on_compare=self.compare, on_read=self._refuse_read):
            self.eager = self.function(*self.args, **self.kwargs)
        self.result = result_of(self.eager, self.function)
        collecting = gc.isenabled()
        gc.disable()  # a tuple for each node, and none of them garbage
        try:
            self._flatten()
        finally:
            if collecting:
                gc.enable()
        return self

    def _record_on_reference(self, node: Any) -> None:
        if reference._current.modes[0]:
            self._refuse_no_grad()
        self.recorded.append(node)

    def _refuse_no_grad(self) -> NoReturn:
        raise TypeError(
            f"compile: {described(self.function)} uses no_grad() inside; call the compiled function under no_grad(), "
            "or use gradwalk.stop_gradient(v) where no gradient should flow"
        )

    def _refuse_read(self, _: Any) -> NoReturn:
        raise TypeError(
            f"compile: {described(self.function)} reads .data at {user_line()}; the number would be fixed in every "
            "later call; compute with the Value, and use gradwalk.stop_gradient(v) where no gradient should flow"
        )

    # ---------------------------------------------------------------- the graph as arrays

    def _flatten(self) -> None:
        nodes = self.recorded
        children = [node._children for node in nodes]
        if not all(children):
            self._refuse_no_grad()
        names = [node._name for node in nodes]
        flat_children = list(chain.from_iterable(children))
        sides = [side for left, right, *_ in self.compared for side in (left, right)]
        numbers = [float(side) for side in sides if not is_value(side)]
        known = set(map(id, nodes))
        used = chain(flat_children, self.result.values, filter(is_value, sides))
        outside = {id(value): value for value in used if id(value) not in known}
        for entry in self.entries:
            outside.pop(id(entry), None)
        self._refuse_made_inside(outside.values(), known | {id(entry) for entry in self.entries})
        constants = [value for value in outside.values() if value._constant]
        self.leaves = tuple(value for value in outside.values() if not value._constant)

        first = [*self.entries, *self.leaves, *constants]
        before = len(first) + len(numbers)
        places = {id(value): place for place, value in enumerate(first)}
        places.update(zip(map(id, nodes), range(before, before + len(nodes)), strict=True))
        of_number = iter(range(len(first), before))
        inputs = len(self.entries) + len(self.leaves)

        op = np.concatenate([
            np.full(inputs, INPUT), np.full(before - inputs, CONSTANT),
            np.array([CODES.get(name, -1) for name in names], np.int64),
        ])  # fmt: skip
        number = np.zeros(len(op))
        number[inputs:before] = [*(value.data for value in constants), *numbers]
        counts = np.concatenate([np.zeros(before, np.int64), np.fromiter(map(len, children), np.int64, len(nodes))])
        parameters = self._parameters(names, op, before)
        flat = Flat(
            op=op,
            starts=starts_of(counts),
            children=np.fromiter((places[id(child)] for child in flat_children), np.int64, len(flat_children)),
            parameters=parameters,
            number=number,
            inputs=np.arange(inputs),
            outputs=np.array([places[id(value)] for value in self.result.values], np.int64),
            guards=np.array(
                [places[id(side)] if is_value(side) else next(of_number) for side in sides], np.int64
            ).reshape(-1, 2),
            signs=np.array([SIGNS.index(sign) for _, _, sign, _ in self.compared], np.int64),
            outcomes=np.array([outcome for *_, outcome in self.compared], np.bool_),
        )
        self.scalar_nodes = flat.size
        self.flat = with_targets(flat, self._static_targets(names, before))

    def _refuse_made_inside(self, outside: Iterable[Any], inside: set[int]) -> None:
        """A node from outside may have been computed before the trace, but not by hand out of what is inside."""
        waiting = [value for value in outside if value._children]
        seen: set[int] = set()
        while waiting:
            node = waiting.pop()
            for child in node._children:
                if id(child) in inside:
                    self._refuse_by_hand(node)
                if id(child) not in seen:
                    seen.add(id(child))
                    waiting.append(child)

    def _refuse_by_hand(self, node: Any) -> NoReturn:
        raise TypeError(
            f"compile: {described(self.function)} makes a node by hand ({node._op!r}); a program has only "
            "operations of the table and composites: leave it outside the compiled function"
        )

    def _parameters(self, names: list[str], op: Ints, before: int) -> Any:
        parameters = np.zeros((len(op), 2))
        for i, name in enumerate(names):
            if name in _PARAMETRISED:
                given = self.recorded[i]._parameters
                parameters[before + i, : len(given)] = given
            elif not name:
                node = self.recorded[i]
                if id(node) in self.taken:
                    op[before + i] = CODES[_TAKEN]
                    parameters[before + i] = self.taken[id(node)]
                elif node._op == "cross_entropy":
                    op[before + i] = CODES["cross_entropy"]
                else:
                    self._refuse_by_hand(node)
        return parameters

    def _static_targets(self, names: list[str], before: int) -> Ints:
        """The cross entropies whose target is a parameter, not yet a child."""
        return np.array([before + i for i, name in enumerate(names) if name == "cross_entropy"], np.int64)


def with_targets(flat: Flat, nodes: Ints) -> Flat:
    """The target of these cross entropies as one more child, a constant."""
    if not len(nodes):
        return flat
    targets, which = np.unique(flat.parameters[nodes, 0], return_inverse=True)
    shift = len(targets)  # the constants go first: children have smaller numbers
    counts = flat.counts.copy()
    counts[nodes] += 1
    extra = np.insert(flat.children + shift, flat.starts[nodes + 1], which.ravel())
    parameters = flat.parameters.copy()
    parameters[nodes] = 0.0
    return Flat(
        op=np.concatenate([np.full(shift, CONSTANT), flat.op]),
        starts=starts_of(np.concatenate([np.zeros(shift, np.int64), counts])),
        children=extra,
        parameters=np.concatenate([np.zeros((shift, 2)), parameters]),
        number=np.concatenate([targets, flat.number]),
        inputs=flat.inputs + shift,
        outputs=flat.outputs + shift,
        guards=flat.guards + shift,
        signs=flat.signs,
        outcomes=flat.outcomes,
    )


def described(function: Callable[..., Any]) -> str:
    """The user's function with the line it starts on: `loss (model.py:12)`."""
    code = getattr(function, "__code__", None)
    name = getattr(function, "__name__", type(function).__name__)
    return f"{name} ({code.co_filename}:{code.co_firstlineno})" if code else name


def _constant(number: Any) -> Any:
    """A plain number as a node that nobody differentiates by."""
    return (engine.Value(0.0, (number,), local_grads=(0.0,)))._children[0]


def _data(value: Any) -> float:
    with control.modes(on_read=_ignored):
        return float(value.data)


def _ignored(_: Any) -> None:
    pass
