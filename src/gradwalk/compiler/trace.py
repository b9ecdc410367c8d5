"""Tracing: the function is run once, and the graph the engine records anyway becomes a `Flat`.

Every number in the arguments is given to the function as a Value of its own, every integer as an `Index`. What it
compares is written down as a guard; `.data` is a Value too, which hands no gradient on.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from numbers import Integral
from typing import Any, NoReturn

import numpy as np

from gradwalk import composites, control, custom, engine, higher_order
from gradwalk.compiler.flat import (
    CALL,
    CODES,
    CONSTANT,
    INPUT,
    SIGNS,
    TARGETED,
    Codes,
    Flat,
    Ints,
    is_among,
    starts_of,
    table_of,
)
from gradwalk.compiler.index import Index, is_index
from gradwalk.compiler.reading import Call, NoValueError, Result, float_of, user_instruction, user_line, with_line
from gradwalk.compiler.recorded import BY_HAND, recorded
from gradwalk.compiler.subscripts import MOST, ClosedError, Row, Taken, opened
from gradwalk.errors import ENDS_ALL, add_note, advise_on_arrays, refusal, refusals, refused
from gradwalk.lost_derivatives import ROUNDING, SEARCH, are_equal, warn_of_caught
from gradwalk.modes import current
from gradwalk.operation import everywhere
from gradwalk.ops import OPS
from gradwalk.passes import Shared
from gradwalk.row_ops import COMPOSITES
from gradwalk.structure import KEPT, Key, Reading, flatten, is_value

_TAKEN = "take"
_REFUSING = frozenset({"call", *(name for name, op in OPS.items() if op.domain is not everywhere or op.overflows)})
_OF_AN_INDEX = "Index", "type int", "Expected an int"  # in errors of json, decimal, datetime, math


def is_tracing() -> bool:
    """Whether a function that is being compiled runs here."""
    return current().trace is not None


def current_trace() -> Trace | None:
    """Whose function runs here."""
    trace: Trace | None = current().trace
    return trace


class Trace:
    """One run of a function: its flat graph, its result, and what has to be so for the graph to apply again."""

    flat: Flat
    leaves: tuple[Any, ...]  # closed over, in the order of the flat graph's later inputs
    computed: list[Any]  # those of them that are nodes with a history
    result: Result
    caught: bool  # an operation was refused, and the function went on: no guard can tell when that happens again

    def __init__(self, function: Callable[..., Any], call: Call, exact: bool = False, opening: bool = False) -> None:
        self.function, self.arguments, self.exact = function, call, exact
        self.opening = opening  # whether subscripts are left open
        self.subscripted = 0  # among how many entries they chose
        self.rows: list[Row] = []  # of which they left open which one it is
        self.closed = False  # something was done that only the integer itself can answer
        self.caught = False
        self.entries: list[Any] = []  # the Value that stands for each entry of the arguments
        self.given: list[Any] = []  # and what was given there
        self.recorded: list[Any] = []
        self.compared: list[tuple[Any, Any, str, bool]] = []
        self.asked: set[tuple[int, float, str]] = set()
        self.unlike: tuple[Any, Any, tuple[int, int]] | None = None  # the last comparison, if it found two unequal
        self.lines: list[str] = []  # where each comparison was made
        self.whole: dict[int, int] = {}  # entries that were used as plain integers, and which integer
        self.tables: dict[tuple[int, ...], int] = {}
        self.taken: dict[int, tuple[int, int]] = {}
        self.open: dict[int, Index] = {}  # the nodes that an index left open has a part in
        self.functions: list[custom.CustomOp] = []
        self.called: dict[int, tuple[int, int]] = {}  # the parameters of nodes that a custom_op made
        self.stand_ins: dict[int, Any] = {}  # of Values that are given
        self.own: int | None = None  # so many of the recorded nodes are the function's own, if others follow

    # ---------------------------------------------------------------- what the function is given

    def _stand_in(self, given: Any) -> Any:
        """What the function is given for an entry of the arguments: a Value given twice is the same both times."""
        is_index = type(given) is int
        value = engine.Value(_data(given) if is_value(given) else float_of(given))
        self.entries.append(value)
        self.given.append(given)
        if is_index:
            return Index(self, len(self.entries) - 1, given, value)
        return self.stand_ins.setdefault(id(given), value) if self.arguments.repeated and is_value(given) else value

    def specialise(self, entry: int, number: int) -> None:
        """The function uses the integer in a way that a program cannot keep open."""
        self.whole[entry] = number

    def compare(self, left: Any, right: Any, sign: str, outcome: bool) -> None:
        """A comparison the function made: one guard, however often it made it."""
        self.unlike = (left, right, user_instruction()) if sign == "==" and not outcome else None
        key = id(left), id(right) if is_value(right) else float(right), sign
        if key not in self.asked:
            self.asked.add(key)
            self.compared.append((left, right, sign, outcome))
            self.lines.append(user_line())

    def take(self, index: Index, rows: list[Any], kind: Any = engine.Value) -> Any:
        """`rows[index]`, with the index left open: one node per column, over the whole column."""
        listed = [row if isinstance(row, list | tuple) else [row] for row in rows]
        if len({len(row) for row in listed}) > 1 or not index.within(len(rows)):
            return None
        values = [
            row if all(map(is_value, row)) else [x if is_value(x) else constant(x) for x in row] for row in listed
        ]
        if self.exact and any(value._children for row in values for value in row):
            return None  # a walk that comes to all of them would add up what they get in another order
        table = self.tables.setdefault(tuple(map(id, chain.from_iterable(values))), len(self.tables))
        local_grads = [0.0] * (len(rows) + 1)
        local_grads[index.number + 1] = 1.0
        made = []
        for column, entries in enumerate(zip(*values, strict=True)):
            data = entries[index.number]
            made.append(self._by_hand(_data(data), (index.value, *entries), local_grads, _TAKEN, index, kind))
            self.taken[id(made[-1])] = table, column
        return made if isinstance(rows[0], list | tuple) else made[0]

    def subscript(self, index: Index, rows: Any, entries: int) -> Any:
        """`rows[index]` in the function's own code."""
        self.subscripted += entries
        if self.subscripted > MOST:
            raise ClosedError
        taken = self.take(index, list(rows), Taken)
        if taken is None or is_value(rows[0]):
            return taken
        if type(rows[0]) is tuple:
            return tuple(taken)
        self.rows.append(Row(taken, rows))
        return self.rows[-1]

    def composite(self, name: str, index: Index, xs: list[Any]) -> Any:
        """The composite, as a cross entropy, with the target left open."""
        if not index.within(len(xs)):
            return None
        with control.changed(on_record=_ignored):  # the node made instead has one child more
            out = composites.PUBLIC[name](xs, index.number)
        if not is_value(out):
            index.fixed()  # of plain numbers there is no node: the integer is fixed
            return out
        local_grads = (*out._local_grads, 0.0)
        return self._by_hand(_data(out), (*out._children, index.value), local_grads, name, index)

    def call(self, function: custom.CustomOp, inputs: Sequence[Any]) -> Any:
        """The node of a custom_op: the program will call its functions again."""
        given = [entry.fixed() if is_index(entry) else entry for entry in inputs]
        numbers = [_data(entry) if is_value(entry) else entry for entry in given]
        try:
            with self._interrupted():
                out, local_grads = function.evaluated(numbers)
        except Exception as error:
            self.caught = True  # if the function goes on
            add_note(error, f"compile: {function.name} was called at {user_line()}, in {with_line(self.function)}")
            raise
        if control.current_modes().no_grad:
            self._refuse_no_grad()
        node = custom.recorded(engine.Value(out, given, function.name, local_grads=local_grads))
        if function not in self.functions:
            self.functions.append(function)
        self.called[id(node)] = self.functions.index(function), len(self.compared)
        return node

    def _interrupted(self) -> control.changed:
        """Inside runs what a program will run too: all it may not do is to look at numbers of this call."""
        read = self._refuse_read_of_own
        return control.changed(trace=None, on_record=_ignored, on_compare=_ignored, on_read=read)

    def _by_hand(
        self, data: float, children: Any, local_grads: Any, op: str, index: Index, kind: Any = engine.Value
    ) -> Any:
        node = kind(data, children, op, local_grads=local_grads)
        self.recorded.append(node)
        self.open[id(node)] = index
        return node

    def local_grads_of(self, node: Any) -> Any:
        """As `higher_order.local_grads_of`, and for the nodes whose index is open."""
        index = self.open.get(id(node))
        if index is None:
            return higher_order.local_grads_of(node)
        if id(node) in self.taken:
            return [0.0, *composites.ON_VALUES.hot(node._children[1:], index.value)]
        xs = list(node._children[:-1])
        return [*COMPOSITES[node._op].local_grads_on(xs, index.value, node, lists=composites.ON_VALUES), 0.0]

    # ---------------------------------------------------------------- running it

    def run(self) -> Trace:
        """Run the function and keep what it did."""
        hook: Any = self.recorded.append
        if engine.NAME == "reference":
            hook = self._note_on_reference
        hooks = control.changed(
            trace=self, no_grad=False, on_record=hook, on_compare=self.compare, on_read=self._read, on_construct=None
        )
        refused = refusals()
        self.refused = refused.operations
        try:
            with hooks, built_ins():
                stand_ins = [self._stand_in(given) for given in self.arguments.taken_apart()]
                self.eager = self.arguments.applied(self.function, stand_ins)
        except TypeError as error:
            advise_on_arrays(error)
            if int in map(type, self.given) and any(words in str(error) for words in _OF_AN_INDEX):
                add_note(
                    error, "compile: an integer argument n is an Index in a trace; code in C that insists wants int(n)"
                )
            raise
        if refusals() != refused:
            self.caught = self.caught or refusals().operations != self.refused
            warn_of_caught(f"compile: {with_line(self.function)}", refused, self.arguments.keys)
        self.result = result_of(self.eager, self.function, self.branches)
        self._as_arrays()
        self._keep_refusing()
        return self

    @property
    def branches(self) -> bool:
        """Whether the function may have taken another way with other numbers: it compared some, or caught an error."""
        return bool(self.compared) or self.caught or refusals().operations != self.refused

    def _note_on_reference(self, node: Any) -> None:
        if control.current_modes().no_grad:
            self._refuse_no_grad()
        self.recorded.append(node)

    def _refuse_no_grad(self) -> NoReturn:
        raise TypeError(
            f"compile: {with_line(self.function)} uses no_grad() inside; call the compiled function under no_grad(), "
            "or use gradwalk.stop_gradient(v) where no gradient should flow"
        )

    def _read(self, value: Any, what: str) -> Any:
        """In place of `.data`, a Value that hands no gradient on and is computed again in every call."""
        if what == "data":
            return value._apply("stop_gradient", value)
        return None if self._is_looked_for(value) else self._refuse_read(what)

    def _is_looked_for(self, value: Any) -> bool:
        """Whether a list has just not found it, in one instruction, and puts it into the text of its error."""
        *sides, instruction = self.unlike or (None,)
        return any(side is value for side in sides) and instruction == user_instruction()

    def _refuse_read(self, what: str) -> NoReturn:
        message = (
            f"compile: {with_line(self.function)} reads or sets .grad (backward() and optimisers do), sets .data, or "
            f"makes a text of a number, at {user_line()}; it would be fixed in every later call: do it outside the "
            "compiled function, or use gradwalk.grad inside"
        )
        if what == "text":
            raise refusal(message)
        refused(operations=1)  # a function that goes on is the plain one's business; one that does not, has not trained
        raise TypeError(message)

    def _refuse_read_of_own(self, value: Any, what: str) -> None:
        if any(value is own for own in chain(self.entries, self.recorded)):
            raise refusal(
                f"compile: {with_line(self.function)} reads .data (or .grad, or sets one) at {user_line()}, in a "
                "custom operation that is not given it; the number would be fixed in every later call: make it an input"
            )

    # ---------------------------------------------------------------- the graph as arrays

    def _as_arrays(self) -> None:
        sides = [side for left, right, *_ in self.compared for side in (left, right)]
        compared = [side for side in sides if is_value(side)]
        plain = [float(side) for side in sides if not is_value(side)]
        made = recorded(self.recorded, self.entries, [*self.result.values, *compared], len(plain))
        if made is None:
            self._refuse_no_grad()
        self.leaves = made.leaves
        self.computed = [leaf for leaf in self.leaves if leaf._children]
        self._refuse_made_inside()

        inputs = len(self.entries) + len(self.leaves)
        constants = np.concatenate([made.constants, plain])
        before = inputs + len(constants)
        op = np.empty(before + len(made.codes), np.int16)
        op[:inputs], op[inputs:before], op[before:] = INPUT, CONSTANT, made.codes
        targets = before + np.flatnonzero(is_among(made.codes, TARGETED))  # parameters, not yet children
        by_hand = self._describe_by_hand(op, before)
        row = np.zeros(len(op), np.int32)
        places = (np.arange(inputs, before), before + made.with_parameters, np.fromiter(by_hand, np.int64))
        given = (np.column_stack([constants, np.zeros(len(constants))]), made.parameters, [*by_hand.values()])
        numbers, row[np.concatenate(places)] = table_of(np.concatenate([np.reshape(each, (-1, 2)) for each in given]))
        guards = np.zeros(len(sides), np.int64)
        is_number = np.array([not is_value(side) for side in sides], np.bool_)
        guards[is_number] = np.arange(before - len(plain), before)
        guards[~is_number] = made.roots[len(self.result.values) :]
        flat = Flat(
            op=op,
            starts=np.concatenate([np.zeros(before, np.int64), made.starts]),
            children=made.children,
            numbers=numbers,
            row=row,
            inputs=np.arange(inputs),
            outputs=made.roots[: len(self.result.values)],
            guards=guards.reshape(-1, 2),
            signs=np.array([SIGNS.index(sign) for _, _, sign, _ in self.compared], np.int64),
            outcomes=np.array([outcome for *_, outcome in self.compared], np.bool_),
        )
        self.scalar_nodes = flat.size - len(made.constants) + made.constant_uses
        self.flat = _with_targets(flat, targets)

    def _keep_refusing(self) -> None:
        """What nothing depends on may be refused in a later call, as in the plain function: it becomes a guard."""
        first = self.flat.size - len(self.recorded)
        unused = np.flatnonzero(~self.flat.live)
        unused = unused[is_among(self.flat.op[unused], _REFUSING)]
        unused = unused[unused < first + (len(self.recorded) if self.own is None else self.own)]
        if len(unused):
            nodes = [self.recorded[node - first] for node in unused.tolist()]
            self.compared += [(node, node, "<=", True) for node in nodes]  # it is no nan
            self.lines += [f"{with_line(self.function)}, of something that is not used,"] * len(nodes)
            self.flat = replace(
                self.flat,
                guards=np.concatenate([self.flat.guards, np.column_stack([unused, unused])]),
                signs=np.append(self.flat.signs, [SIGNS.index("<=")] * len(unused)),
                outcomes=np.append(self.flat.outcomes, [True] * len(unused)),
            )

    def searched(self) -> dict[int, int]:
        """Numbers of the arguments that were compared, but not computed with, and how often; 0 if found equal."""
        flat, count = self.flat, len(self.entries)
        told = [are_equal(sign, outcome) and left is not right for left, right, sign, outcome in self.compared]
        equal = flat.guards[np.array(told, np.bool_)]
        if len(flat.guards) < SEARCH and not len(equal):
            return {}
        unused = np.array([type(given) is not int for given in self.given], np.bool_)
        if unused.any():
            unused &= ~flat.needed_for(flat.outputs)[flat.inputs[:count]]
        if not unused.any():
            return {}
        guards = flat.guards[: 10 * SEARCH]
        times = np.sum([flat.needed_for(guard)[flat.inputs[:count]] for guard in guards], axis=0) * unused
        once = flat.needed_for(equal.reshape(-1))[flat.inputs[:count]] & unused
        found = dict.fromkeys(np.flatnonzero(once).tolist(), 0)
        return found | {entry: int(times[entry]) for entry in np.flatnonzero(times >= SEARCH).tolist()}

    def rounded(self) -> dict[int, bool]:
        """Whether it is through what is rounded alone that the result depends on a number of the arguments."""
        flat = self.flat
        roundings = np.flatnonzero(flat.is_op(*ROUNDING))
        if not len(roundings):
            return {}
        counts = np.diff(flat.starts)
        counts[roundings] = 0  # what is below them is not reached through them
        cut = replace(
            flat, starts=np.append(0, counts.cumsum()), children=np.delete(flat.children, flat.starts[roundings])
        )
        of_entries = flat.inputs[: len(self.entries)]
        needed = flat.needed_for(flat.outputs)[of_entries]
        moved = cut.needed_for(flat.outputs)[of_entries]
        return {entry: not moved[entry] for entry in np.flatnonzero(needed).tolist()}

    def _refuse_made_inside(self) -> None:
        """A node from outside may have been computed before the trace, but not by hand out of what is inside."""
        waiting = self.computed.copy()
        inside = set(map(id, chain(self.recorded, self.entries))) if waiting else set()
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
            f"compile: {with_line(self.function)} makes a node by hand ({node._op!r}); a program has only operations "
            "of the table, composites and custom_op: make it one of these, or leave it outside the compiled function"
        )

    def _describe_by_hand(self, op: Codes, before: int) -> dict[int, tuple[int, int]]:
        """What the trace itself made by hand gets its operation, others are refused; returns their parameters."""
        parameters = {}
        for place in np.flatnonzero(op == BY_HAND).tolist():
            node = self.recorded[place - before]
            if id(node) in self.taken:
                op[place] = CODES[_TAKEN]
                parameters[place] = self.taken[id(node)]
            elif id(node) in self.called:
                op[place] = CALL
                parameters[place] = self.called[id(node)]
            elif id(node) in self.open:
                op[place] = CODES[node._op]
            else:
                self._refuse_by_hand(node)
        return parameters


# ---------------------------------------------------------------- built-in functions


_PLAIN = frozenset({float, int})


class _BuiltIns(Shared):
    """Those that mean something else while some thread traces.

    `max` and `min` over Values record the largest, not a guard on which it was. `pow` with three arguments asks none
    of them but the first, which would not know what an Index is.
    """

    def __init__(self) -> None:
        super().__init__(lambda _: vars(builtins).update(self.traced), lambda: vars(builtins).update(self.plain))
        self.plain = {name: getattr(builtins, name) for name in ("max", "min", "pow")}
        self.traced = {"max": self._choosing("max"), "min": self._choosing("min"), "pow": self._power()}

    def _power(self) -> Callable[..., Any]:
        plain = self.plain["pow"]

        @functools.wraps(plain)
        def power(base: Any, exp: Any, mod: Any = None) -> Any:
            if mod is None:
                return plain(base, exp)
            return plain(*(x.fixed() if is_index(x) else x for x in (base, exp, mod)))

        return power

    def _choosing(self, name: str) -> Callable[..., Any]:
        plain, recorded = self.plain[name], composites.PUBLIC[f"{name}imum"]

        @functools.wraps(plain)
        def choose(*args: Any, **options: Any) -> Any:
            if options or not args or (len(args) > 1 and _PLAIN.issuperset(map(type, args))):
                return plain(*args, **options)
            trace = current_trace()
            if trace is None or trace.exact:
                return plain(*args)  # exact: a node more would change the order of sums on the way back
            given = list(args) if len(args) > 1 else list(args[0])
            if _PLAIN.issuperset(map(type, given)) or not all(is_value(x) or type(x) in _PLAIN for x in given):
                return plain(given)
            return recorded(given)  # also of a single one: as in the first position of attention, like the others

        if engine.NAME != "native":
            return choose
        chosen: Callable[..., Any] = engine.load("native").TRACING["choosing"](plain, choose)
        return chosen  # for plain numbers as fast as Python's own


built_ins = _BuiltIns()


def traced(function: Callable[..., Any], call: Call, exact: bool, opening: bool) -> Trace:
    """The function's trace; where integers keep changing, with its subscripts open, if they can be."""
    if opening and not exact:  # exact: a node more would change the order of sums on the way back
        with opened(function) as is_open:
            trace = Trace(function, call, opening=is_open)
            try:
                trace.run()
                for row in trace.rows:
                    row.check()
            except ENDS_ALL:
                raise
            except Exception:
                if not trace.subscripted:
                    raise
            else:
                if not trace.closed:
                    return trace
    return Trace(function, call, exact).run()


def _with_targets(flat: Flat, nodes: Ints) -> Flat:
    """The target of these nodes as one more child, a constant."""
    if not len(nodes):
        return flat
    targets, which = np.unique(flat.row[nodes], return_inverse=True)
    shift = len(targets)  # the constants go first: children have smaller numbers
    counts = flat.counts.copy()
    counts[nodes] += 1
    row = np.concatenate([targets, flat.row])
    row[shift + nodes] = 0
    return Flat(
        op=np.concatenate([np.full(shift, CONSTANT, np.int16), flat.op]),
        starts=starts_of(np.concatenate([np.zeros(shift, np.int64), counts])),
        children=np.insert(flat.children + shift, flat.starts[nodes + 1], which.ravel()),
        numbers=flat.numbers,
        row=row,
        inputs=flat.inputs + shift,
        outputs=flat.outputs + shift,
        guards=flat.guards + shift,
        signs=flat.signs,
        outcomes=flat.outcomes,
    )


def constant(number: Any) -> Any:
    """A plain number as a node that nobody differentiates by."""
    return (engine.Value(0.0, (number,), local_grads=(0.0,)))._children[0]


class _Plain(Reading):
    """The plain numbers of one sort, integers or others; all else is as it is."""

    def __init__(self, integral: bool) -> None:
        self.integral = integral

    def number(self, whole: Any, numbers: list[Any]) -> Key:
        if is_value(whole) or is_index(whole) or isinstance(whole, Integral) is not self.integral:
            return KEPT
        return super().number(whole, numbers)

    def row(self, whole: Any, numbers: list[Any]) -> Key | None:
        return None

    def array(self, array: Any, numbers: list[Any]) -> Key:
        return super().array(array, numbers) if array.dtype.kind in ("iu" if self.integral else "f") else KEPT

    def kept(self, whole: Any) -> Key:
        return KEPT


def result_of(returned: Any, function: Callable[..., Any], branches: bool) -> Result:
    """The result. Of a function that branches, one without a Value is what a branch returns as it stands there.

    Then its numbers are constants: integers, too, if there are no others.
    """
    with suppress(NoValueError):
        return Result(returned, function)
    for integral in (False, True) if branches else ():
        numbers: list[Any] = []
        structure = flatten(returned, numbers, _Plain(integral))
        if numbers:
            returned = structure.fill(list(map(constant, numbers)))
            break
    return Result(returned, function)


def _data(value: Any) -> float:
    with control.changed(on_read=_ignored):
        return float(value.data)


def _ignored(*_: Any) -> None:
    pass
