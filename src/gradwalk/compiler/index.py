"""An integer argument inside a trace.

`gradwalk.take(rows, i)` and `gradwalk.cross_entropy(logits, i)` leave it open, a comparison makes a guard, arithmetic
with a Value takes it as a number, `rows[i]` is for subscripts.py to decide; whatever else needs the integer itself
(`range(i)`, `names[i]`, `i + 1`) fixes it.
"""

from __future__ import annotations

import math
import operator
import random
import sys
from collections.abc import Callable
from numbers import Integral, Number, Real
from typing import Any

from gradwalk.composites import OpenPlace
from gradwalk.structure import is_value

EXACT = 2**53  # from there on a float64 cannot tell integers apart
LARGEST = 2**1024 - 2**970  # from there on an integer is no float64
_SEED = random.Random.seed.__code__


class Index(OpenPlace):
    """Not an int, though it says it is one: C code would take the integer out of an int without asking.

    Where it says it is an `np.int64`, its number is one, and wraps around.
    """

    __slots__ = ("_entry", "_trace", "number", "value")
    knows_values = True  # beside a Value, it says itself what is to be done

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self.number)

    def __init__(self, trace: Any = None, entry: int | None = None, number: Any = 0, value: Any = None) -> None:
        if entry is None:
            raise TypeError("compile: type(n)(…) of an integer argument n, which is an Index in a trace; use int(n)")
        self._trace, self._entry, self.number, self.value = trace, entry, number, value

    def fixed(self) -> Any:
        """The integer itself, as it was given; it is fixed from now on."""
        self._trace.specialise(self._entry, int(self.number))
        return self.number

    def __index__(self) -> int:
        return int(self.fixed())

    __int__ = __index__

    def __float__(self) -> float:
        return float(self.__index__())

    def __hash__(self) -> int:
        found = hash(self.fixed())
        if found != abs(int(self.number)) and sys._getframe(1).f_code is _SEED:  # of an int it would take abs(n)
            raise TypeError("compile: a random seed that is an integer argument n, an Index in a trace; use int(n)")
        return found

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __repr__(self) -> str:
        return repr(self.fixed())

    def __str__(self) -> str:
        return str(self.fixed())

    def __format__(self, spec: str) -> str:
        return format(self.fixed(), spec)

    # ---------------------------------------------------------------- left open

    def _composite(self, name: str, xs: list[Any]) -> Any:
        """For `gradwalk.take` and the like: the nodes, or None if they have to be made the ordinary way."""
        return self._trace.take(self, xs) if name == "take" else self._trace.composite(name, self, xs)

    def opens(self) -> bool:
        """Whether a subscript in the function's own code may leave it open."""
        return self._trace.opening  # type: ignore[no-any-return]

    def taken_from(self, rows: Any, entries: int) -> Any:
        """`rows[self]`, left open; None if it has to be fixed."""
        return self._trace.subscript(self, rows, entries)

    def within(self, count: int) -> bool:
        """Whether it is the place of one of `count` entries; a guard from now on."""
        return self >= 0 and self < count

    # ---------------------------------------------------------------- comparisons: guards

    def _compared(self, other: Any, sign: str, compare: Callable[[Any, Any], bool]) -> bool:
        """A guard; where a program's numbers could not tell the two apart, the integer is fixed instead."""
        if is_value(other):
            outcome = compare(self.value if self.is_exact() else self.fixed(), other)
            return type(self.number == 0)(outcome)  # type: ignore[no-any-return]  # NumPy has truths of its own
        outcome = compare(self.number, _plain(other))
        if is_index(other):
            if not (self.is_exact() or other.is_exact()):  # beside one that is, the other is on the right side
                other.fixed()
                self.fixed()
                return outcome
            other = other.value
        elif not (isinstance(other, Real) and (abs(other) == math.inf or _is_float(other))):
            self.fixed()  # beside an array, too
            return outcome
        self._trace.compare(self.value, other, sign, bool(outcome))
        return outcome

    def is_exact(self) -> bool:
        """Whether a float64 tells it from its neighbours; a guard from now on."""
        return self > -EXACT + 1 and self < EXACT - 1

    def __lt__(self, other: Any) -> bool:
        return self._compared(other, "<", operator.lt)

    def __le__(self, other: Any) -> bool:
        return self._compared(other, "<=", operator.le)

    def __gt__(self, other: Any) -> bool:
        return self._compared(other, ">", operator.gt)

    def __ge__(self, other: Any) -> bool:
        return self._compared(other, ">=", operator.ge)

    def __eq__(self, other: object) -> bool:
        if not (is_value(other) or isinstance(other, int | float | Number)):
            return NotImplemented
        return self._compared(other, "==", operator.eq)

    def __ne__(self, other: object) -> bool:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else type(equal)(not equal)

    # ---------------------------------------------------------------- arithmetic

    def _beside(self, other: Any) -> Any:
        """As a number beside a Value, which says no if it is too large for one; else as a plain, fixed integer."""
        return self.value if is_value(other) and abs(self.number) < LARGEST else self.fixed()

    # fmt: off
    def __add__(self, other: Any) -> Any: return self._beside(other) + other
    def __radd__(self, other: Any) -> Any: return other + self._beside(other)
    def __sub__(self, other: Any) -> Any: return self._beside(other) - other
    def __rsub__(self, other: Any) -> Any: return other - self._beside(other)
    def __mul__(self, other: Any) -> Any: return self._beside(other) * other
    def __rmul__(self, other: Any) -> Any: return other * self._beside(other)
    def __truediv__(self, other: Any) -> Any: return self._beside(other) / other
    def __rtruediv__(self, other: Any) -> Any: return other / self._beside(other)
    def __floordiv__(self, other: Any) -> Any: return self.fixed() // other
    def __rfloordiv__(self, other: Any) -> Any: return other // self.fixed()
    def __mod__(self, other: Any) -> Any: return self.fixed() % other
    def __rmod__(self, other: Any) -> Any: return other % self.fixed()
    def __divmod__(self, other: Any) -> Any: return divmod(self.fixed(), other)
    def __rdivmod__(self, other: Any) -> Any: return divmod(other, self.fixed())
    def __pow__(self, other: Any, modulo: Any = None) -> Any: return pow(self.fixed(), other, modulo)
    def __rpow__(self, other: Any, modulo: Any = None) -> Any: return pow(other, self.fixed(), modulo)
    def __and__(self, other: Any) -> Any: return self.fixed() & other
    def __or__(self, other: Any) -> Any: return self.fixed() | other
    def __xor__(self, other: Any) -> Any: return self.fixed() ^ other
    def __lshift__(self, other: Any) -> Any: return self.fixed() << other
    def __rshift__(self, other: Any) -> Any: return self.fixed() >> other
    def __rand__(self, other: Any) -> Any: return other & self.fixed()
    def __ror__(self, other: Any) -> Any: return other | self.fixed()
    def __rxor__(self, other: Any) -> Any: return other ^ self.fixed()
    def __rlshift__(self, other: Any) -> Any: return other << self.fixed()
    def __rrshift__(self, other: Any) -> Any: return other >> self.fixed()
    def __invert__(self) -> Any: return ~self.fixed()
    def __round__(self, digits: Any = None) -> Any: return round(self.fixed(), digits)
    def __trunc__(self) -> Any: return math.trunc(self.fixed())
    def __floor__(self) -> Any: return math.floor(self.fixed())
    def __ceil__(self) -> Any: return math.ceil(self.fixed())
    def __neg__(self) -> Any: return -self.fixed()
    def __pos__(self) -> Index: return self
    def __abs__(self) -> Any: return abs(self.fixed())
    # fmt: on

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        import numpy as np

        return np.array(self.fixed(), *args, **kwargs)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """As of the integer itself: a plain one leaves a `uint8` beside it what it is."""
        if any(map(is_value, inputs)):
            return NotImplemented  # it knows what to do
        return getattr(ufunc, method)(*[x.fixed() if is_index(x) else x for x in inputs], **options)

    def __copy__(self) -> Index:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Index:
        return self  # with its trace, and open as it was

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.__class__, (self.fixed(),)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.fixed(), name)  # bit_length and its like


Integral.register(Index)


def is_index(given: Any) -> bool:
    """Whether this is an Index, whatever it says it is."""
    return type(given) is Index


def _is_float(other: Any) -> bool:
    """Whether a program's numbers tell it from its neighbours."""
    return -EXACT < other < EXACT and bool(other == float(other))


def _plain(other: Any) -> Any:
    return other.number if is_index(other) else other
