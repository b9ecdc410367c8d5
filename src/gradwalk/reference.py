"""The readable engine: Value and backward() in plain Python. Read it top to bottom.

What an operation computes is not here but in `ops.py`, and what goes wrong is worded in `errors.py`. The native
engine does the same thing, to the bit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from gradwalk.errors import (
    check_domain,
    check_range,
    number_from,
    number_to_compare,
    refuse_backward,
    refuse_conversion,
    refuse_label,
)
from gradwalk.operation import Op
from gradwalk.ops import OPS


class _Current(threading.local):
    scope = 0
    modes: tuple[bool, Any, Any, Any] = (False, None, None, None)
    on_construct: Any = None


_current = _Current()
equality_is_identity = False  # for the scripts of `gradwalk run`
COMPARISONS = {"<": float.__lt__, "<=": float.__le__, "==": float.__eq__, "!=": float.__ne__,
               ">": float.__gt__, ">=": float.__ge__}  # fmt: skip
_one_pass_at_a_time = threading.RLock()  # re-entrant: a hand-written _backward may call backward()


class Value:
    """A number that remembers how it was made, so that backward() can tell how it depends on its inputs."""

    __slots__ = ("_children", "_constant", "_data", "_grad", "_hand_written", "_label", "_local_grads", "_name",
                 "_op", "_parameters", "_scope")  # fmt: skip
    _backward_with_graph: ClassVar[Callable[[Value], None]]  # higher_order.py gives it to both engines

    def __init__(
        self, data: Any, _children: Sequence[Any] = (), _op: Any = "", label: str = "", *,
        children: Sequence[Any] | None = None, local_grads: Sequence[float] = (),
    ) -> None:  # fmt: skip
        if not isinstance(_op, str):  # the microgpt family passes local gradients where micrograd passes the op
            _op, local_grads = "", _op
        self._children = tuple(lift(child, "Value") for child in (_children if children is None else children))
        self._local_grads = tuple(number_from(local_grad, "Value") for local_grad in local_grads)
        if self._local_grads and len(self._local_grads) != len(self._children):
            counts = f"{len(self._local_grads)} for {len(self._children)}"
            raise ValueError(f"Value: expected one local gradient per child, got {counts}")
        self._data: float = number_from(data, "data")
        self._grad: Any = 0.0
        self.label = label
        self._op, self._name, self._parameters = _op, "", ()
        self._hand_written: Callable[[], None] | None = None
        self._constant = False
        self._scope = _current.scope
        if _current.on_construct and self._children:
            _current.on_construct(self)

    # ---------------------------------------------------------------- backward: the one rule

    def backward(self, create_graph: bool = False) -> None:
        """Add to the grad of every leaf the derivative of this Value with respect to it."""
        if create_graph:
            return self._backward_with_graph()
        with _one_pass_at_a_time:
            order = self._topological_order()
            before = [node.grad for node in order]
            for node in order:
                # leaves accumulate over passes; what was computed on the way starts afresh
                node.grad = 0.0 if node._children or node._constant else number_of(node.grad)
            self.grad += 1.0
            try:
                for node in reversed(order):
                    node._backward()
            except BaseException:
                for node, grad in zip(order, before, strict=True):
                    node.grad = grad
                raise

    @staticmethod
    def _cut(nodes: Sequence[Value], function: Callable[[], Any]) -> Any:
        """Call the function; meanwhile these nodes are leaves, whatever they were made of."""
        kept = [(node, node._children, node._local_grads, node._hand_written) for node in nodes]
        for node in nodes:
            node._children, node._local_grads, node._hand_written = (), (), None
        try:
            return function()
        finally:
            for node, *was in reversed(kept):
                node._children, node._local_grads, node._hand_written = was

    @staticmethod
    def _leaves(numbers: Any) -> list[Value]:
        """A Value for each number of a list, or of an array."""
        return list(map(Value, numbers))

    def _topological_order(self) -> list[Value]:
        """Every node reachable from here, each after all of its children: left-first, depth-first, no recursion."""
        order, seen, path = [], {self}, [(self, iter(self._children))]
        while path:
            node, children = path[-1]
            for child in children:
                if child not in seen:
                    seen.add(child)
                    path.append((child, iter(child._children)))
                    break
            else:
                order.append(node)
                path.pop()
        return order

    def _push(self) -> None:
        """Hand this node's gradient on to its children: the only place where gradients move."""
        if len(self._local_grads) < len(self._children):
            refuse_backward(self)
        for child, local_grad in zip(self._children, self._local_grads, strict=True):
            child.grad += local_grad * self.grad

    @property
    def _backward(self) -> Callable[[], None]:
        return self._hand_written or self._push

    @_backward.setter
    def _backward(self, function: Callable[[], None]) -> None:
        if not callable(function):
            raise TypeError(f"_backward: expected a function without arguments, got {function!r}")
        self._hand_written = None if function == self._push else function  # its own is not written by hand

    # ---------------------------------------------------------------- what a Value shows

    @property
    def data(self) -> Any:
        instead = _current.modes[3](self, True) if _current.modes[3] else None
        return self._data if instead is None else instead

    @data.setter
    def data(self, number: Any) -> None:
        if _current.modes[3]:
            _current.modes[3](self)
        self._data = number_from(number, "data")

    @property
    def grad(self) -> Any:
        if _current.modes[3]:
            _current.modes[3](self)
        return self._grad

    @grad.setter
    def grad(self, number: Any) -> None:
        self._grad = number if isinstance(number, Value) else number_from(number, "grad")

    @property
    def label(self) -> str:
        return self._label

    @label.setter
    def label(self, text: str) -> None:
        if not isinstance(text, str):
            refuse_label(text)
        self._label = text

    @property
    def _prev(self) -> set[Value]:
        return set(self._children)

    def __repr__(self) -> str:
        label = f", label={self.label!r}" if self.label else ""
        return f"Value(data={self.data!r}, grad={self.grad!r}{label})"

    # ---------------------------------------------------------------- operators; hash stays identity
    # fmt: off

    def __add__(self, other: Any) -> Any: return binary("add", self, other)
    def __radd__(self, other: Any) -> Any: return binary("add", other, self)
    def __sub__(self, other: Any) -> Any: return binary("sub", self, other)
    def __rsub__(self, other: Any) -> Any: return binary("sub", other, self)
    def __mul__(self, other: Any) -> Any: return binary("mul", self, other)
    def __rmul__(self, other: Any) -> Any: return binary("mul", other, self)
    def __truediv__(self, other: Any) -> Any: return binary("div", self, other)
    def __rtruediv__(self, other: Any) -> Any: return binary("div", other, self)
    def __pow__(self, other: Any) -> Any: return binary("pow", self, other)
    def __rpow__(self, other: Any) -> Any: return binary("pow", other, self)
    def __neg__(self) -> Value: return apply("neg", self)
    def __pos__(self) -> Value: return self
    def __abs__(self) -> Value: return apply("abs", self)
    def conjugate(self) -> Value: return self  # NumPy asks for it in norms and variances
    def __floor__(self) -> Value: return apply("floor", self)
    def __ceil__(self) -> Value: return apply("ceil", self)
    def __lt__(self, other: Any) -> Any: return compare(self, other, "<")
    def __le__(self, other: Any) -> Any: return compare(self, other, "<=")
    def __gt__(self, other: Any) -> Any: return compare(self, other, ">")
    def __ge__(self, other: Any) -> Any: return compare(self, other, ">=")
    def __eq__(self, other: Any) -> Any: return compare(self, other, "==")
    def __ne__(self, other: Any) -> Any: return compare(self, other, "!=")
    def __bool__(self) -> bool: return equality_is_identity or compare(self, 0.0, "!=")
    __hash__ = object.__hash__
    def __float__(self) -> float: refuse_conversion(self)
    def __int__(self) -> int: refuse_conversion(self)
    def _apply(self, name: str, *arguments: Any) -> Value: return apply(name, *arguments)

    # fmt: on


# ---------------------------------------------------------------- recording an operation


def apply(name: str, *arguments: Any) -> Value:
    """Run one row of the table on Values and numbers, and record it."""
    op = OPS[name]
    inputs = [lift(argument, name) for argument in arguments[: len(op.inputs)]]
    parameters = tuple(number_from(argument, name) for argument in arguments[len(op.inputs) :])
    numbers = [*(value._data for value in inputs), *parameters]
    check_domain(op, numbers, inputs)
    data = op.forward(*numbers)
    check_range(op, numbers, data, inputs)
    return node(data, inputs, op.local_grads(*numbers, data), op.spelled(parameters), name, parameters)


def lift(given: Any, operation: str) -> Value:
    """A Value as it is; a plain number as a constant leaf."""
    if isinstance(given, Value):
        return given
    constant = Value(number_from(given, operation))
    constant._constant = True
    return constant


def node(data: float, children: Sequence[Value], local_grads: Sequence[float], op: str, name: str, parameters: Any) -> Value:  # noqa: E501  # fmt: skip
    """A recorded node; `name` says which row of the table (or which composite) made it."""
    out = Value(data, _op=op)
    out._children, out._local_grads = tuple(children), tuple(local_grads)
    out._name, out._parameters = name, parameters
    no_grad, on_record, _, _ = _current.modes
    if on_record:
        on_record(out)
    return Value(data) if no_grad else out


def binary(name: str, left: Any, right: Any) -> Any:
    if isinstance(left, Value) and isinstance(right, Value):
        return apply(name, left, right)
    value, other = (left, right) if isinstance(left, Value) else (right, left)
    number = number_from(other, name, beside=value)
    if number is NotImplemented:
        return NotImplemented
    if name == "pow" and value is left:
        return apply("pow_number", value, number)
    return apply(name, value, number) if value is left else apply(name, number, value)


def compare(left: Value, right: Any, sign: str) -> Any:
    if equality_is_identity and sign in ("==", "!="):
        return NotImplemented
    number = right
    if not isinstance(right, Value):
        known = number_to_compare(right, sign, left)
        if known is NotImplemented:
            return NotImplemented
        sign, number = known
    outcome = COMPARISONS[sign](left._data, number._data if isinstance(number, Value) else number)
    if _current.modes[2]:
        _current.modes[2](left, number, sign, outcome)
    return outcome


def number_of(grad: Any) -> float:
    return grad._data if isinstance(grad, Value) else grad


def current_modes() -> tuple[bool, Any, Any, Any]:
    """What is in force in this thread, as set_modes takes it."""
    return _current.modes


def set_modes(no_grad: bool, on_record: Any, on_compare: Any, on_read: Any) -> tuple[bool, Any, Any, Any]:
    """What is different from now on in this thread (see control.py); returns what was before."""
    before, _current.modes = _current.modes, (no_grad, on_record, on_compare, on_read)
    return before


def set_on_construct(hook: Any) -> Any:
    """A function to be told of every node made by hand from now on in this thread, or None; returns the one before."""
    before, _current.on_construct = _current.on_construct, hook
    return before


def set_scope(number: int) -> int:
    """Nodes made from now on in this thread belong to that scope; returns the one before."""
    before, _current.scope = _current.scope, number
    return before


def set_equality_is_identity(wanted: bool) -> bool:
    """Whether ==, != and truth are those of a class that defines neither, in this process; returns what was before."""
    global equality_is_identity
    before, equality_is_identity = equality_is_identity, wanted
    return before


def function(op: Op) -> Callable[..., Any]:
    """The operation as a function: on a Value it records, on plain numbers it computes."""

    def call(*arguments: Any) -> Any:
        given = len(arguments) - len(op.inputs)
        if not len(op.parameters) - len(op.defaults) <= given <= len(op.parameters):
            raise TypeError(f"{op.name}: expected {', '.join(op.names)}, got {len(arguments)} arguments")
        arguments += op.defaults[given:]
        if op.name == "pow" and isinstance(arguments[0], Value):
            return arguments[0] ** arguments[1]
        recorded = apply(op.name, *arguments)
        return recorded if any(isinstance(argument, Value) for argument in arguments) else recorded._data

    call.__name__ = call.__qualname__ = op.name
    call.__doc__ = op.doc
    return call


FUNCTIONS = {op.name: function(op) for op in OPS.values()}
for _op in OPS.values():
    for _name in (_op.name, *_op.aliases):
        setattr(Value, _name, FUNCTIONS[_op.name])
