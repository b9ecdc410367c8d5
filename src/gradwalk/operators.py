"""What a number can do besides the operations of the table: %, //, divmod, round, trunc, .real, and the like.

Given to the Values of both engines. Whatever rounds is a Value without gradient; what has to be a plain number, and
would be the same in every later call of a compiled function, is refused.
"""

from __future__ import annotations

import functools
from importlib import import_module
from typing import Any

from gradwalk import engine
from gradwalk import math as gm
from gradwalk.control import current_modes, is_traced
from gradwalk.errors import DivisionByZeroError, DomainError, number_from, refusal, refused
from gradwalk.lost_derivatives import ROUNDED
from gradwalk.structure import is_value


def _beside(value: Any, other: Any, operation: str) -> bool:
    """Whether the other is a number too: an array knows itself what to do with a Value."""
    return isinstance(other, type(value)) or number_from(other, operation, beside=value) is not NotImplemented


def _rest(x: Any, y: Any) -> tuple[Any, bool]:
    """fmod, and whether it lacks the sign of y. By 0 it is a division, of infinity nan: unlike math.fmod, but as %."""
    try:
        rest = (x if is_value(x) else y)._apply("fmod", x, y)
    except DomainError as error:
        if y == 0.0:
            refused(unlike_numpys=1)
            raise DivisionByZeroError(*error.args) from None
        return (x - x) * y, False
    if rest < 0.0:
        return rest, y > 0.0
    if rest > 0.0:
        return rest, y < 0.0
    if y == 0.0 and not current_modes().ieee:
        refused(unlike_numpys=1)
        raise DivisionByZeroError("mod: expected a divisor other than 0, got nan % 0")
    # a zero has the sign of y; written so that a program does not take it for the beginning of a sum
    return rest - -0.0 if y > 0.0 else -(0.0 - rest), False


def _remainder(x: Any, y: Any) -> Any:
    rest, is_below = _rest(x, y)
    return rest + y if is_below else rest


def _whole(x: Any, y: Any) -> Any:
    rest, is_below = _rest(x, y)
    if current_modes().ieee and y == 0.0:
        return (x / y).floor()
    quotient = (x - rest) / y  # whole but for rounding
    if is_below:
        quotient = quotient - 1.0
    below = quotient.floor()
    if quotient - below > 0.5:
        below = below + 1.0
    return below.copysign((x / y).floor())  # a zero has the sign of the quotient


def _operator(operation: str, of_two: Any) -> tuple[Any, Any]:
    def forward(self: Any, other: Any) -> Any:
        return of_two(self, other) if _beside(self, other, operation) else NotImplemented

    def reflected(self: Any, other: Any) -> Any:
        return of_two(other, self) if _beside(self, other, operation) else NotImplemented

    return forward, reflected


def _rounded(self: Any, digits: int | None = None) -> Any:
    """To the nearest whole number, the even one of two; or to so many digits."""
    if digits is not None:
        if is_traced():
            raise refusal(
                "round: digits of a traced number would be fixed in every later call; write "
                "round(x * 1000.0) / 1000.0, or round after the call"
            )
        return type(self)(round(self.data, digits), (), ROUNDED)
    below = gm.floor(self)
    rest = self - below
    if rest < 0.5:
        return below
    return below + 1.0 if rest > 0.5 or _remainder(below, 2.0) > 0.0 else below


def _is_integer(self: Any) -> bool:
    """Whether the number is a whole one."""
    return gm.isfinite(self) and bool(self == self.floor())


def _item(self: Any) -> Any:
    """This Value: it stands where NumPy's arrays hold a number."""
    return self


def _format(self: Any, specification: str) -> str:
    if not specification:
        return str(self)
    if is_traced():
        raise refusal("format: the digits of a traced number would be those of one call; print after the call")
    return format(self.data, specification)


@functools.cache
def _numpy() -> Any:
    """Not before NumPy asks."""
    return import_module("gradwalk.numpy.arrays")


def _asked_by_ufunc(self: Any, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    return _numpy().apply_ufunc(ufunc, method, inputs, options)


def _asked_by_function(self: Any, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
    return _numpy().apply_function(function, args, kwargs)


for _module in engine.available():
    _Value = _module.Value
    _Value.__mod__, _Value.__rmod__ = _operator("mod", _remainder)
    _Value.__floordiv__, _Value.__rfloordiv__ = _operator("floordiv", _whole)
    _Value.__divmod__, _Value.__rdivmod__ = _operator("divmod", lambda x, y: (_whole(x, y), _remainder(x, y)))
    _Value.__floor__, _Value.__ceil__, _Value.__round__, _Value.__trunc__ = gm.floor, gm.ceil, _rounded, gm.trunc
    _Value.real = property(lambda self: self, doc="This Value: it is a real number.")
    _Value.imag = property(lambda self: 0.0, doc="0: it is a real number.")
    _Value.item, _Value.is_integer, _Value.__format__ = _item, _is_integer, _format
    _Value.__array_ufunc__, _Value.__array_function__ = _asked_by_ufunc, _asked_by_function
