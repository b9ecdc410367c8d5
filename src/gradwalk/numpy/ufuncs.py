"""What NumPy's and SciPy's ufuncs compute on Values, one number at a time, by their names.

Plain numbers beside Values are left to the ufunc itself, so that a constant is what it is without gradwalk.
"""

from __future__ import annotations

import functools
import math as standard
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, NoReturn

import numpy as np

from gradwalk import functions
from gradwalk import math as gm
from gradwalk.numpy import many as composites
from gradwalk.numpy.many import maximum, minimum
from gradwalk.structure import is_value

Rule = Callable[..., Any]

SQRT_HALF, LOG_SQRT_TAU = standard.sqrt(0.5), 0.5 * standard.log(standard.tau)


def _operation(name: str) -> Rule:
    """A row of the table, on the engine that the Value among its inputs is of."""

    def apply(*numbers: Any) -> Any:
        value = next(filter(is_value, numbers))
        return value._apply(name, *numbers)

    return apply


def _power(x: Any, y: Any) -> Any:
    return x**y


def _heaviside(x: Any, at_0: Any) -> Any:
    return at_0 if x == 0.0 else 0.0 if x < 0.0 else 1.0 if x > 0.0 else standard.nan


def _logaddexp(x: Any, y: Any) -> Any:
    return composites.logsumexp([x, y])


def _logaddexp2(x: Any, y: Any) -> Any:
    ln2 = standard.log(2.0)
    return composites.logsumexp([x * ln2, y * ln2]) / ln2


def _xlogy(x: Any, y: Any) -> Any:
    return 0.0 * y if not is_value(x) and x == 0.0 else x * functions.log(y)


def _betaln(a: Any, b: Any) -> Any:
    return functions.lgamma(a) + functions.lgamma(b) - functions.lgamma(a + b)


def _log_ndtr(x: Any) -> Any:
    if x > -30.0:
        return functions.log(0.5 * functions.erfc(-x * SQRT_HALF))
    square = x * x  # the tail by its continued fraction, backwards
    tail = 1.0
    for k in range(20, 0, -1):
        tail = 1.0 + k / square / tail
    return -0.5 * square - functions.log(-x) - LOG_SQRT_TAU - functions.log(tail)


def _clip(x: Any, low: Any, high: Any) -> Any:
    if is_value(x) and not is_value(low) and not is_value(high) and low <= high:
        return x.clamp(low, high)
    return minimum(maximum(x, low), high)  # where a bound is nan, so is the result; of bounds that cross, the upper one


def _fmax(x: Any, y: Any) -> Any:
    return y if x != x else x if y != y else maximum(x, y)


def _fmin(x: Any, y: Any) -> Any:
    return y if x != x else x if y != y else minimum(x, y)


def _rint(x: Any) -> Any:
    """The nearest whole number, the even one of two; a zero has the sign of x, infinity and nan stay what they are."""
    if x < 0.0:
        return -_rint(-x)
    below = x.floor()
    rest = x - below
    is_odd_half = rest >= 0.5 and functions.fmod(below, 2.0) > 0.0
    return below + 1.0 if rest > 0.5 or is_odd_half else below


def _trunc(x: Any) -> Any:
    return x.ceil() if x < 0.0 else x.floor()


def _sign(x: Any) -> Any:
    return x.sign() + 0.0  # of -0.0 it is 0.0


def _not(x: Any) -> bool:
    return not x


def _signbit(x: Any) -> Any:
    return functions.copysign(1.0, x) < 0.0  # of -0.0 and of nan, too


def _entr(x: Any) -> Any:
    return -_xlogy(x, x)


def _huber(delta: Any, r: Any) -> Any:
    return 0.5 * r * r if abs(r) <= delta else delta * (abs(r) - 0.5 * delta)


RULES: dict[str, Rule] = {
    # the table's operations have the names that NumPy has
    **{name: _operation(name) for name in
       ("exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "cbrt", "sin", "cos", "tan", "sinh", "cosh", "tanh",
        "floor", "ceil", "hypot", "fmod", "copysign", "erf", "erfc")},
    **{f"arc{name}": _operation(f"a{name}") for name in ("sin", "cos", "tan", "tan2", "sinh", "cosh", "tanh")},
    **{name: getattr(gm, name) for name in ("exp2", "degrees", "radians", "isnan", "isinf", "isfinite", "modf",
                                            "ldexp", "gamma", "frexp")},
    "absolute": abs, "fabs": abs, "negative": lambda x: -x, "positive": lambda x: x, "conjugate": lambda x: x,
    "square": lambda x: x * x, "reciprocal": lambda x: 1.0 / x, "rint": _rint, "trunc": _trunc, "sign": _sign,
    "deg2rad": gm.radians, "rad2deg": gm.degrees, "logical_not": _not, "signbit": _signbit,
    "add": lambda x, y: x + y, "subtract": lambda x, y: x - y, "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y, "power": _power, "float_power": _power, "floor_divide": lambda x, y: x // y,
    "remainder": lambda x, y: x % y, "divmod": divmod, "heaviside": _heaviside,
    "maximum": maximum, "minimum": minimum, "fmax": _fmax, "fmin": _fmin,
    "logaddexp": _logaddexp, "logaddexp2": _logaddexp2, "clip": _clip,
    "less": lambda x, y: x < y, "less_equal": lambda x, y: x <= y, "greater": lambda x, y: x > y,
    "greater_equal": lambda x, y: x >= y, "equal": lambda x, y: x == y, "not_equal": lambda x, y: x != y,
    "logical_and": lambda x, y: bool(x) and bool(y), "logical_or": lambda x, y: bool(x) or bool(y),
    "logical_xor": lambda x, y: bool(x) != bool(y),
    # scipy.special
    "gammaln": _operation("lgamma"), "loggamma": _operation("lgamma"), "rgamma": lambda x: 1.0 / gm.gamma(x),
    "expit": _operation("sigmoid"), "log_expit": lambda x: -functions.softplus(-x),
    "logit": lambda p: functions.log(p) - functions.log1p(-p), "exp10": lambda x: 10.0**x,
    "betaln": _betaln, "beta": lambda a, b: functions.exp(_betaln(a, b)),
    "xlogy": _xlogy, "xlog1py": lambda x, y: _xlogy(x, 1.0 + y),
    "ndtr": lambda x: 0.5 * functions.erfc(-x * SQRT_HALF), "log_ndtr": _log_ndtr,
    "entr": _entr, "rel_entr": lambda x, y: _xlogy(x, x / y), "kl_div": lambda x, y: _xlogy(x, x / y) - x + y,
    "huber": _huber, "pseudo_huber": lambda delta, r: delta * delta * (functions.sqrt(1.0 + (r / delta) ** 2) - 1.0),
    "sindg": lambda x: functions.sin(gm.radians(x)), "cosdg": lambda x: functions.cos(gm.radians(x)),
}  # fmt: skip

# those whose result is True or False
QUESTIONS = frozenset(
    ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "isnan", "isinf", "isfinite", "signbit",
     "logical_not", "logical_and", "logical_or", "logical_xor")
)  # fmt: skip

# those that Python's operators do in the same way for plain numbers: the loop over objects is NumPy's own
AS_THEY_ARE = frozenset(("add", "subtract", "multiply", "negative", "positive", "less", "less_equal", "greater",
                         "greater_equal"))  # fmt: skip


@functools.cache
def with_values(ufunc: Any) -> Rule:
    """The ufunc of numbers with a Value among them."""
    name = ufunc.__name__
    rule = RULES.get(name)
    if rule is None and getattr(np, name, None) is not ufunc and "scipy.special" in sys.modules:
        rule = import_module("gradwalk.numpy.special").RULES.get(name)

    if rule is None and _is_of_python(ufunc):
        rule = _boxing(ufunc)

    def refuse(*numbers: Any) -> NoReturn:
        raise TypeError(
            f"numpy: {name} has no derivative here; make it an operation of your own with "
            "gradwalk.custom_op(forward, local_grads)"
        )

    return rule or refuse


def boxed(number: Any) -> Any:
    """An array of this one number, which NumPy is not to ask what it is."""
    made = np.empty((), object)
    made[()] = number
    return made


def _is_of_python(ufunc: Any) -> bool:
    """Whether it loops over a function in Python, as those of np.vectorize and np.frompyfunc do."""
    return bool(ufunc.types == ["O" * ufunc.nin + "->" + "O" * ufunc.nout])


def _boxing(ufunc: Any) -> Rule:
    return lambda *numbers: ufunc(*map(boxed, numbers))


@functools.cache
def of_numbers(ufunc: Any) -> Rule:
    """The ufunc of single numbers and Values."""

    def apply(*numbers: Any) -> Any:
        if any(map(is_value, numbers)):
            return with_values(ufunc)(*numbers)
        made = ufunc(*numbers)
        return tuple(map(_plain, made)) if isinstance(made, tuple) else _plain(made)

    return apply


def _plain(number: Any) -> Any:
    """A NumPy number as Python's; out of an integer of a trace comes a Python number at once."""
    return number.item() if hasattr(number, "item") else number


@functools.cache
def elementwise(ufunc: Any) -> Any:
    """The ufunc over arrays of numbers and Values: NumPy broadcasts, reduces and writes as it always does."""
    if ufunc.__name__ in AS_THEY_ARE or _is_of_python(ufunc):
        return ufunc
    has_one = ufunc.nin == 2 and (ufunc.identity is not None or ufunc.__name__ in ("fmax", "fmin"))
    identity = {"identity": ufunc.identity} if has_one else {}  # None: there is none, but it may go along several axes
    return np.frompyfunc(of_numbers(ufunc), ufunc.nin, ufunc.nout, **identity)
