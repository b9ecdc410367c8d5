"""What every Value of the reference engine answers: its attributes, operators, comparisons, conversions.

None of it is needed to understand `reference.py`, and most follows from the table.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from gradwalk.errors import number_from, number_to_compare, refuse_conversion, refuse_label
from gradwalk.modes import current
from gradwalk.operation import Op
from gradwalk.ops import OPS

equality_is_identity = False  # for the scripts of `gradwalk run`
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt, ">=": operator.ge
}  # fmt: skip


class Interface:
    """The rest of a Value. Whoever wants to know that a number is read, or compared, is told (modes.py)."""

    __slots__ = ("_children", "_constant", "_data", "_grad", "_hand_written", "_label", "_local_grads", "_name", "_op",
                 "_parameters", "_scope")  # fmt: skip
    _data: float
    _grad: Any
    _label: str
    _children: tuple[Any, ...]
    _local_grads: tuple[float, ...]
    _hand_written: Callable[[], None] | None
    _apply: Callable[..., Any]
    _push: Callable[[], None]

    # ---------------------------------------------------------------- attributes

    @property
    def data(self) -> Any:
        """The number."""
        on_read = current().on_read
        instead = on_read(self, "data") if on_read else None
        return self._data if instead is None else instead

    @data.setter
    def data(self, number: Any) -> None:
        _tell_read(self)
        self._data = number_from(number, "data")

    @property
    def grad(self) -> Any:
        """How much the result of the last backward() changes with this number."""
        _tell_read(self)
        return self._grad

    @grad.setter
    def grad(self, number: Any) -> None:
        _tell_read(self)
        self._grad = number if isinstance(number, Interface) else number_from(number, "grad")

    @property
    def label(self) -> str:
        """A name to recognise the node by."""
        return self._label

    @label.setter
    def label(self, text: str) -> None:
        if not isinstance(text, str):
            refuse_label(text)
        self._label = text

    @property
    def _attributes(self) -> dict[str, Any]:
        return dict(self.__dict__)

    @property
    def _prev(self) -> set[Any]:
        return set(self._children)

    @property
    def _backward(self) -> Callable[[], None]:
        return self._hand_written or self._push

    @_backward.setter
    def _backward(self, function: Callable[[], None]) -> None:
        if not callable(function):
            raise TypeError(f"_backward: expected a function without arguments, got {function!r}")
        self._hand_written = None if function == self._push else function

    def __repr__(self) -> str:
        _tell_read(self, "text")
        label = f", label={self._label!r}" if self._label else ""
        return f"Value(data={self._data!r}, grad={self._grad!r}{label})"

    def conjugate(self) -> Any:
        """This Value: NumPy asks for it in norms and variances."""
        return self

    # ---------------------------------------------------------------- operators; hash stays identity
    # fmt: off

    def __pos__(self) -> Any: return self
    def __lt__(self, other: Any) -> Any: return _compared(self, other, "<")
    def __le__(self, other: Any) -> Any: return _compared(self, other, "<=")
    def __gt__(self, other: Any) -> Any: return _compared(self, other, ">")
    def __ge__(self, other: Any) -> Any: return _compared(self, other, ">=")
    def __eq__(self, other: Any) -> Any: return _compared(self, other, "==")
    def __ne__(self, other: Any) -> Any: return _compared(self, other, "!=")
    def __bool__(self) -> bool: return equality_is_identity or bool(_compared(self, 0.0, "!="))
    __hash__ = object.__hash__
    def __float__(self) -> float: refuse_conversion(self)
    def __int__(self) -> int: refuse_conversion(self)

    # fmt: on

    @staticmethod
    def _cut(nodes: Sequence[Any], function: Callable[[], Any]) -> Any:
        """Call the function; meanwhile these nodes are leaves, whatever they were made of."""
        kept = [(node, node._children, node._local_grads, node._hand_written) for node in nodes]
        for node in nodes:
            node._children, node._local_grads, node._hand_written = (), (), None
        try:
            return function()
        finally:
            for node, *was in reversed(kept):
                node._children, node._local_grads, node._hand_written = was

    @classmethod
    def _leaves(cls, numbers: Any) -> list[Any]:
        """A Value for each number of a list, or of an array."""
        return list(map(cls, numbers))


def number_of(grad: Any) -> float:
    """A gradient as a float; after backward(create_graph=True) it is a Value."""
    if isinstance(grad, float):
        return grad
    return grad._data if isinstance(grad, Interface) else float(grad.data)


def _tell_read(value: Any, what: str = "") -> None:
    on_read = current().on_read
    if on_read:
        on_read(value, what)


def _compared(left: Any, right: Any, sign: str) -> Any:
    if equality_is_identity and sign in ("==", "!="):
        return NotImplemented
    if not isinstance(right, Interface):
        known = number_to_compare(right, sign, left)
        if known is NotImplemented:
            return NotImplemented
        sign, right = known
    outcome = _COMPARISONS[sign](left._data, right if isinstance(right, float) else right._data)
    on_compare = current().on_compare
    if on_compare:
        on_compare(left, right, sign, outcome)
    return outcome


def set_equality_is_identity(wanted: bool) -> bool:
    """Whether ==, != and truth are those of a class that defines neither, in this process; returns what was before."""
    global equality_is_identity
    before, equality_is_identity = equality_is_identity, wanted
    return before


# ---------------------------------------------------------------- from the table

_UNARY = {"neg": "__neg__", "abs": "__abs__"}
_BINARY = {"add": "add", "sub": "sub", "mul": "mul", "div": "truediv", "pow": "pow"}


def give_operations(value: Any, apply: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """Give the class operators, and a method for every row of the table; returns the rows as functions by name."""
    functions = {op.name: _function(op, apply) for op in OPS.values()}
    for op in OPS.values():
        for name in (op.name, *op.aliases):
            setattr(value, name, functions[op.name])
    for name, special in _UNARY.items():
        setattr(value, special, functions[name])
    for name, special in _BINARY.items():
        setattr(value, f"__{special}__", _operator(name, apply))
        setattr(value, f"__r{special}__", _operator(name, apply, reflected=True))
    return functions


def _operator(name: str, apply: Callable[..., Any], reflected: bool = False) -> Callable[..., Any]:
    def operate(value: Any, other: Any) -> Any:
        if not isinstance(other, Interface):
            other = number_from(other, name, beside=value)
            if other is NotImplemented:
                return NotImplemented
            if name == "pow" and not reflected:
                return apply("pow_number", value, other)
        return apply(name, other, value) if reflected else apply(name, value, other)

    return operate


def _function(op: Op, apply: Callable[..., Any]) -> Callable[..., Any]:
    """The operation as a function: on a Value it records, on plain numbers it computes."""

    def call(*arguments: Any) -> Any:
        given = len(arguments) - len(op.inputs)
        if not len(op.parameters) - len(op.defaults) <= given <= len(op.parameters):
            raise TypeError(f"{op.name}: expected {', '.join(op.names)}, got {len(arguments)} arguments")
        arguments += op.defaults[given:]
        if op.name == "pow" and isinstance(arguments[0], Interface):
            return arguments[0] ** arguments[1]
        recorded = apply(op.name, *arguments)
        return recorded if any(isinstance(argument, Interface) for argument in arguments) else recorded._data

    call.__module__, call.__name__, call.__qualname__ = "gradwalk.functions", op.name, op.name  # for pickle
    call.__doc__ = op.doc
    call.__signature__ = op.signature  # type: ignore[attr-defined]
    return call
