"""The standard math module on Values and on floats alike: `import gradwalk.math as math` is the whole port.

On plain numbers a function gives what the standard one gives (a few only to the last bits) and raises what it raises;
on a Value it records. What has no derivative (`factorial`) says so; `isnan` and the like answer about the number.
"""

from __future__ import annotations

import math as _standard
from collections.abc import Callable, Iterable, Sequence
from math import comb, e, factorial, gcd, inf, isqrt, lcm, nan, nextafter, perm, pi, tau, ulp
from typing import Any, NoReturn

from gradwalk import composites
from gradwalk.control import is_traced
from gradwalk.custom import custom_op
from gradwalk.errors import DivisionByZeroError, DomainError, NumberError, RangeError, refusals, refused_like_floats
from gradwalk.functions import abs as fabs
from gradwalk.functions import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cbrt,
    copysign,
    cos,
    cosh,
    erf,
    erfc,
    exp,
    expm1,
    fmod,
    lgamma,
    log1p,
    log2,
    log10,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
)
from gradwalk.functions import hypot as _hypot_of_two
from gradwalk.functions import log as _log
from gradwalk.functions import pow as _pow
from gradwalk.higher_order import data_of
from gradwalk.modes import current
from gradwalk.structure import is_value

__all__ = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "ceil",
    "comb",
    "copysign",
    "cos",
    "cosh",
    "degrees",
    "dist",
    "e",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "fabs",
    "factorial",
    "floor",
    "fma",
    "fmod",
    "frexp",
    "fsum",
    "gamma",
    "gcd",
    "hypot",
    "inf",
    "isclose",
    "isfinite",
    "isinf",
    "isnan",
    "isqrt",
    "lcm",
    "ldexp",
    "lgamma",
    "log",
    "log1p",
    "log2",
    "log10",
    "modf",
    "nan",
    "nextafter",
    "perm",
    "pi",
    "pow",
    "prod",
    "radians",
    "remainder",
    "sin",
    "sinh",
    "sqrt",
    "sumprod",
    "tan",
    "tanh",
    "tau",
    "trunc",
    "ulp",
]  # fmt: skip


# ---------------------------------------------------------------- powers and logarithms


def log(x: Any, base: Any = None) -> Any:
    """The logarithm, natural or to a base, which may be a Value too.

    >>> log(8.0, 2.0)
    3.0
    """
    return _log(x) if base is None else _log(x) / _log(base)


def pow(x: Any, y: Any) -> Any:
    """x to the power y. For 0 to a negative power floats raise another error here than for `**`, and so do Values.

    >>> pow(2.0, 3.0)
    8.0
    """
    before = refusals()
    try:
        return _pow(x, y)
    except NumberError as error:
        refused_like_floats(before)
        if isinstance(error, DivisionByZeroError):
            raise DomainError(*error.args) from None
        raise


def exp2(x: Any) -> Any:
    """2 to the power x.

    >>> exp2(3.0)
    8.0
    """
    return pow(2.0, x)


def gamma(x: Any) -> Any:
    """The gamma function: the factorial of x - 1 for any x. In a compiled function it is a call of Python's.

    >>> gamma(5.0)
    24.0
    """
    if not is_value(x):
        return _standard.gamma(x)
    logarithm = lgamma(x)
    if x == -inf:
        raise DomainError("gamma: expected x > 0 or not a whole number, got -inf")
    if x == inf:
        return logarithm.exp()
    number = _TRACED_GAMMA(x) if is_traced() else _plain_gamma(x.data)
    # exp(0) times the number: the number itself, and the logarithm's derivatives
    return (logarithm - logarithm.data).exp() * number


def _plain_gamma(x: float) -> float:
    try:
        return _standard.gamma(x)
    except OverflowError:
        raise RangeError(f"gamma: the result overflows, got {x!r}; scale the input down") from None


_TRACED_GAMMA = custom_op(_plain_gamma, lambda x, out: 0.0, name="gamma", check=False)


# ---------------------------------------------------------------- many numbers


def hypot(*xs: Any) -> Any:
    """The length of a vector, given by its coordinates.

    >>> hypot(2.0, 3.0, 6.0)
    7.0
    """
    if len(xs) == 2:
        return _hypot_of_two(*xs)
    length = composites.norm(xs) if xs else 0.0
    if isnan(length) and any(map(isinf, xs)):  # whatever the others are, even nan
        return composites.sum([fabs(x) for x in xs if isinf(x)])
    return length


def dist(p: Sequence[Any], q: Sequence[Any]) -> Any:
    """The distance between two points.

    >>> dist([1.0, 1.0], [4.0, 5.0])
    5.0
    """
    if len(p) != len(q):
        raise ValueError(f"dist: expected two points with as many coordinates, got {len(p)} and {len(q)}")
    return hypot(*(a - b for a, b in zip(p, q, strict=True)))


def prod(xs: Iterable[Any], *, start: Any = 1) -> Any:
    """The product.

    >>> prod([2.0, 3.0, 4.0])
    24.0
    """
    for x in xs:
        start = start * x
    return start


_EXACT_SUM = custom_op(
    lambda *terms: _standard.fsum(terms), lambda *terms: (1.0,) * (len(terms) - 1), name="fsum", check=False
)


def fsum(xs: Iterable[Any]) -> Any:
    """The sum, without the rounding errors of adding one by one. In a compiled function it is a call of Python's.

    >>> fsum([1e16, 1.0, -1e16])
    1.0
    """
    terms = list(xs)
    if not any(map(is_value, terms)):
        return _standard.fsum(terms)
    if is_traced():
        return _EXACT_SUM(*terms)
    total, exact = composites.sum(terms), _standard.fsum(map(data_of, terms))
    while (error := exact - total.data) and _standard.isfinite(error):
        total = total + error  # rounded itself, where the sum was far off
    return total + exact if total.data == 0.0 else total  # a zero of Python's sign


def sumprod(p: Iterable[Any], q: Iterable[Any]) -> Any:
    """The sum of products.

    >>> sumprod([1.0, 2.0], [3.0, 4.0])
    11.0
    """
    left, right = list(p), list(q)
    return begun_with_0(composites.dot(left, right)) if left or right else 0


def begun_with_0(total: Any) -> Any:
    """0.0 + total, which differs where the total is -0.0: only there, or where nobody knows yet, it is a node."""
    if not is_value(total):
        return 0.0 + total
    return total if not is_traced() and (total.data or _standard.copysign(1.0, total.data) > 0.0) else 0.0 + total


def fma(x: Any, y: Any, z: Any) -> Any:
    """x * y + z: rounded once for floats, twice for Values.

    >>> fma(2.0, 3.0, 4.0)
    10.0
    """
    if any(map(is_value, (x, y, z))) or not all(map(_standard.isfinite, (x, y, z))):
        return like_standard(x * y + z, "fma", x, y, z)
    from fractions import Fraction

    exact = Fraction(x) * Fraction(y) + Fraction(z)
    return float(exact) if exact else x * y + z  # a zero of the right sign


def like_standard(out: Any, name: str, *given: Any) -> Any:
    """What is composed of operations that may overflow; the standard function raises where it is inf or nan of none."""
    if not isfinite(out) and not current().ieee:
        if isnan(out) and not any(map(isnan, given)) and not all(map(isfinite, given)):
            raise DomainError(f"{name}: expected numbers of which it is one, got infinite ones")
        if all(map(isfinite, given)):
            raise RangeError(f"{name}: the result overflows; scale the input down")
    return out


# ---------------------------------------------------------------- angles


def degrees(x: Any) -> Any:
    """Radians in degrees.

    >>> degrees(pi)
    180.0
    """
    return x * (180.0 / pi)


def radians(x: Any) -> Any:
    """Degrees in radians.

    >>> radians(180.0) == pi
    True
    """
    return x * (pi / 180.0)


# ---------------------------------------------------------------- parts of a number


def floor(x: Any) -> Any:
    """Rounded down: an int for a number, a Value without gradient for a Value.

    >>> floor(2.5)
    2
    """
    return _as_int(_finite(x, "floor").floor()) if is_value(x) else _standard.floor(x)


def ceil(x: Any) -> Any:
    """Rounded up: an int for a number, a Value without gradient for a Value.

    >>> ceil(2.5)
    3
    """
    return _as_int(_finite(x, "ceil").ceil()) if is_value(x) else _standard.ceil(x)


def trunc(x: Any) -> Any:
    """Rounded towards 0: an int for a number, a Value without gradient for a Value.

    >>> trunc(-2.5)
    -2
    """
    return _as_int(_towards_zero(_finite(x, "trunc"))) if is_value(x) else _standard.trunc(x)


def _as_int(whole: Any) -> Any:
    """Python's are ints, and there is no -0 among them."""
    return whole + 0.0


def _towards_zero(x: Any) -> Any:
    return x.ceil() if x < 0.0 else x.floor()


def _finite(x: Any, name: str) -> Any:
    """x, or what Python says of a number that no whole number is near to."""
    if not isfinite(x) and not current().ieee:
        kind, got = (DomainError, "nan") if isnan(x) else (RangeError, "an infinite one")
        raise kind(f"{name}: expected a finite number, got {got}; clamp the input or use gradwalk.ieee()")
    return x


def modf(x: Any) -> tuple[Any, Any]:
    """The part behind the point and the part before it.

    >>> modf(2.5)
    (0.5, 2.0)
    """
    if not is_value(x):
        return _standard.modf(x)
    return (copysign(0.0, x), x) if isinf(x) else (fmod(x, 1.0), _towards_zero(x))


def frexp(x: Any) -> tuple[Any, int]:
    """A mantissa between 1/2 and 1, and the power of 2 it is multiplied by.

    >>> frexp(10.0)
    (0.625, 4)
    """
    if not is_value(x):
        return _standard.frexp(x)
    if not isfinite(x) or not (x < 0.0 or x > 0.0):
        return x, 0
    low, high = -1074, 1024  # the exponent, found by comparing alone: 2**(low - 1) <= |x| < 2**high
    while low < high:
        middle = (low + high) // 2
        if -(2.0**middle) < x < 2.0**middle:
            high = middle
        else:
            low = middle + 1
    return ldexp(x, -low), low


def ldexp(x: Any, i: int) -> Any:
    """x times 2 to the power i.

    >>> ldexp(0.625, 4)
    10.0
    """
    if not is_value(x):
        return _standard.ldexp(x, i)
    out, i = x, max(-2200, min(i, 2200))  # from the smallest number to infinity, and back to 0
    while i:  # 2.0**i may be out of range where the result is not; what rounds is the last step alone
        step = min(i, 1023) if i >= -1022 else max(i + 1022, -1022)
        out, i = out * 2.0**step, i - step
    return like_standard(out, "ldexp", x)


def remainder(x: Any, y: Any) -> Any:
    """x minus the nearest whole multiple of y.

    >>> remainder(7.0, 4.0)
    -1.0
    """
    if not is_value(x) and not is_value(y):
        return _standard.remainder(x, y)
    rest = fmod(x, y)  # with the sign of x, as the result if it is 0
    below, above = fabs(rest), fabs(y) - fabs(rest)
    if below < above:
        return rest
    if below > above:
        return rest - copysign(y, x)
    return rest - 2.0 * fmod(0.5 * (x - rest), y)  # in the middle: the even multiple; and nan


# ---------------------------------------------------------------- questions


def isnan(x: Any) -> bool:
    """Whether this is not a number.

    >>> isnan(nan)
    True
    """
    return not x >= x


def isinf(x: Any) -> bool:
    """Whether this is infinite.

    >>> isinf(-inf)
    True
    """
    return bool(x >= inf) or bool(x <= -inf)


def isfinite(x: Any) -> bool:
    """Whether this is neither infinite nor nan.

    >>> isfinite(1.0)
    True
    """
    return bool(x < inf) and bool(x > -inf)


def isclose(a: Any, b: Any, *, rel_tol: float = 1e-09, abs_tol: float = 0.0) -> bool:
    """Whether two numbers are the same up to a tolerance.

    >>> isclose(1.0, 1.0 + 1e-12)
    True
    """
    if not is_value(a) and not is_value(b):
        return _standard.isclose(a, b, rel_tol=rel_tol, abs_tol=abs_tol)
    if rel_tol < 0.0 or abs_tol < 0.0:
        raise ValueError(f"isclose: expected tolerances of 0 or more, got {rel_tol!r} and {abs_tol!r}")
    if isinf(a) or isinf(b):
        return bool(a >= b) and bool(a <= b)
    difference = fabs(a - b)
    return bool(difference <= fabs(rel_tol * a) or difference <= fabs(rel_tol * b) or difference <= abs_tol)


# ---------------------------------------------------------------- what has no derivative


def _of_plain_numbers(function: Callable[..., Any], advice: str) -> Callable[..., Any]:
    """The standard function, with one clear sentence for a Value."""

    def checked(*numbers: Any, **named: Any) -> Any:
        if any(map(is_value, numbers)):
            _refuse(function.__name__, advice)
        return function(*numbers, **named)

    checked.__name__ = checked.__qualname__ = function.__name__
    checked.__doc__ = function.__doc__
    return checked


def _refuse(name: str, advice: str) -> NoReturn:
    raise TypeError(f"{name}: expected plain numbers, got a Value, and it has no derivative; {advice}")


factorial = _of_plain_numbers(factorial, "use gamma(x + 1)")
comb = _of_plain_numbers(comb, "use lgamma for its logarithm, or .data for the number")
perm = _of_plain_numbers(perm, "use lgamma for its logarithm, or .data for the number")
gcd = _of_plain_numbers(gcd, "use .data for the number")
lcm = _of_plain_numbers(lcm, "use .data for the number")
isqrt = _of_plain_numbers(isqrt, "use sqrt(x)")
nextafter = _of_plain_numbers(nextafter, "use .data for the number")
ulp = _of_plain_numbers(ulp, "use .data for the number")
