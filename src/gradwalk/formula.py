"""The small language the rows of `ops.py` are written in.

Its functions take number-likes: a float is computed with IEEE results (inf and nan, never an exception), a
`Symbol` is written down and can be printed as C, JavaScript or LaTeX, and anything else (a `Value`) is asked to
apply the operation itself. Rows use `+ - *`, comparisons and these functions; there is no `if`, `/` or `**`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, NoReturn

# A float, a Symbol, or a Value of either engine. One row serves all of them, so no narrower type is true.
Number = Any


class Symbol:
    """One node of a written-down formula: an operator or function name and its arguments."""

    __slots__ = ("arguments", "head")

    def __init__(self, head: str, *arguments: Symbol | float) -> None:
        self.head = head
        self.arguments = arguments

    def _apply(self, name: str, *arguments: Number) -> Symbol:
        return Symbol(name, *arguments)

    def __add__(self, other: Number) -> Symbol:
        return Symbol("+", self, other)

    def __radd__(self, other: Number) -> Symbol:
        return Symbol("+", other, self)

    def __sub__(self, other: Number) -> Symbol:
        return Symbol("-", self, other)

    def __rsub__(self, other: Number) -> Symbol:
        return Symbol("-", other, self)

    def __mul__(self, other: Number) -> Symbol:
        return Symbol("*", self, other)

    def __rmul__(self, other: Number) -> Symbol:
        return Symbol("*", other, self)

    def __neg__(self) -> Symbol:
        return Symbol("neg", self)

    def __lt__(self, other: Number) -> Symbol:
        return Symbol("<", self, other)

    def __le__(self, other: Number) -> Symbol:
        return Symbol("<=", self, other)

    def __gt__(self, other: Number) -> Symbol:
        return Symbol(">", self, other)

    def __ge__(self, other: Number) -> Symbol:
        return Symbol(">=", self, other)

    def __and__(self, other: Number) -> Symbol:
        return Symbol("and", self, other)

    def __or__(self, other: Number) -> Symbol:
        return Symbol("or", self, other)

    def __bool__(self) -> NoReturn:
        raise TypeError("a row cannot branch on a symbol: use where(condition, a, b), & and |")


class Raw(Symbol):
    """A symbol that is printed as it is."""

    __slots__ = ()


def variable(name: str) -> Symbol:
    """A symbol that stands for itself."""
    return Symbol(name)


# ---------------------------------------------------------------- functions every target already has

# what every head of a formula does to number-likes
FUNCTIONS: dict[str, Callable[..., Number]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "neg": operator.neg, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge, "and": operator.and_, "or": operator.or_,
}  # fmt: skip


def _function(name: str, compute: Callable[..., float]) -> Callable[..., Number]:
    def function(*arguments: Number) -> Number:
        for argument in arguments:
            if type(argument) is not float:
                return argument._apply(name, *arguments)
        return compute(*arguments)

    function.__name__ = name
    FUNCTIONS[name] = function
    return function


def _ieee(raising: Callable[[float], float], outside: Callable[[float], float]) -> Callable[[float], float]:
    """`raising`, with `outside(x)` where Python raises and C returns inf or nan."""

    def compute(x: float) -> float:
        try:
            return raising(x)
        except (ValueError, OverflowError):
            return outside(x)

    return compute


def _nan(x: float) -> float:
    return math.nan


def _signed_infinity(x: float) -> float:
    return math.copysign(math.inf, x)


def _minus_infinity_at(pole: float) -> Callable[[float], float]:
    return lambda x: -math.inf if x == pole else math.nan


def _rounded(to_integer: Callable[[float], int]) -> Callable[[float], float]:
    # copysign keeps the zero's sign, as C does: ceil(-0.5) is -0.0
    return lambda x: math.copysign(float(to_integer(x)), x) if math.isfinite(x) else x


def _div(x: float, y: float) -> float:
    if y != 0.0:
        return x / y
    if x == 0.0 or x != x:
        return math.nan
    return math.copysign(math.inf, x) * math.copysign(1.0, y)


def _pow(x: float, y: float) -> float:
    try:
        return math.pow(x, y)
    except (ValueError, OverflowError):
        odd = math.isfinite(y) and math.fmod(y, 2.0) in (1.0, -1.0)
        if x == 0.0 or y == math.floor(y):
            return math.copysign(math.inf, x) if odd else math.inf
        return math.inf if x > 0.0 else math.nan


def _fmod(x: float, y: float) -> float:
    try:
        return math.fmod(x, y)
    except ValueError:
        return math.nan


def _atanh(x: float) -> float:
    return math.copysign(math.inf, x) if abs(x) == 1.0 else math.nan


div = _function("div", _div)
pow = _function("pow", _pow)
fmod = _function("fmod", _fmod)
atan2 = _function("atan2", math.atan2)
copysign = _function("copysign", math.copysign)
absolute = _function("abs", math.fabs)
floor = _function("floor", _rounded(math.floor))
ceil = _function("ceil", _rounded(math.ceil))
exp = _function("exp", _ieee(math.exp, lambda x: math.inf))
expm1 = _function("expm1", _ieee(math.expm1, lambda x: math.inf))
log = _function("log", _ieee(math.log, _minus_infinity_at(0.0)))
log1p = _function("log1p", _ieee(math.log1p, _minus_infinity_at(-1.0)))
log2 = _function("log2", _ieee(math.log2, _minus_infinity_at(0.0)))
log10 = _function("log10", _ieee(math.log10, _minus_infinity_at(0.0)))
sqrt = _function("sqrt", _ieee(math.sqrt, _nan))
sin = _function("sin", _ieee(math.sin, _nan))
cos = _function("cos", _ieee(math.cos, _nan))
tan = _function("tan", _ieee(math.tan, _nan))
asin = _function("asin", _ieee(math.asin, _nan))
acos = _function("acos", _ieee(math.acos, _nan))
atan = _function("atan", math.atan)
sinh = _function("sinh", _ieee(math.sinh, _signed_infinity))
cosh = _function("cosh", _ieee(math.cosh, lambda x: math.inf))
tanh = _function("tanh", math.tanh)
asinh = _function("asinh", math.asinh)
acosh = _function("acosh", _ieee(math.acosh, _nan))
atanh = _function("atanh", _ieee(math.atanh, _atanh))
larger = _function("max", max)  # these two for what is shown: what is computed says what it does about a nan
smaller = _function("min", min)


def where(condition: Number, a: Number, b: Number) -> Number:
    """`a` where the condition holds, else `b`: the language's only branch."""
    if isinstance(condition, Symbol):
        return Symbol("where", condition, a, b)
    return a if condition else b


FUNCTIONS["where"] = where


def equal(a: Number, b: Number) -> Number:
    """`a` and `b` are the same number (`==` on symbols is identity)."""
    return (a <= b) & (a >= b)


# ---------------------------------------------------------------- functions defined by a formula of their own
# Python's math module and C's libm disagree in the last bit here (hypot, lgamma), or one of the targets lacks the
# function (cbrt before Python 3.11, digamma; JavaScript erf); one definition for all targets makes them agree.

DEFINITIONS: dict[str, Callable[..., Number]] = {}


def _defined(body: Callable[..., Number]) -> Callable[..., Number]:
    """A function of the language that is a row of the table too: a Value records it as one node."""
    DEFINITIONS[body.__name__] = body
    return wraps(body)(_function(body.__name__, body))


def _auxiliary(body: Callable[..., Number]) -> Callable[..., Number]:
    """A function of the language that is no row: a Value runs through its formula."""
    DEFINITIONS[body.__name__] = body

    @wraps(body)
    def function(x: Number) -> Number:
        return Symbol(body.__name__, x) if isinstance(x, Symbol) else body(x)

    FUNCTIONS[body.__name__] = function
    return function


@_defined
def hypot(x: Number, y: Number) -> Number:
    """Scaled by the larger leg, so that squares neither overflow nor vanish."""
    a, b = absolute(x), absolute(y)
    large, small = where(a >= b, a, b), where(a >= b, b, a)
    ratio = div(small, large)
    scaled = large * sqrt(1.0 + ratio * ratio)
    infinite = equal(a, math.inf) | equal(b, math.inf)  # whatever the other is, even nan
    return where(infinite, math.inf, where(equal(large, 0.0), a + b, scaled))


@_defined
def power(x: Number, y: Number) -> Number:
    """A square is a product: that is no call, and it is the nearest float, which pow() misses at times."""
    return where(equal(y, 2.0), x * x, pow(x, y))


@_defined
def cbrt(x: Number) -> Number:
    """A power, then one Newton step to repair its last bits."""
    a = absolute(x)
    guess = pow(a, 1.0 / 3.0)
    better = guess - div(guess - div(div(a, guess), guess), 3.0)
    return copysign(where(equal(a, 0.0) | equal(a, math.inf), a, better), x)


@_defined
def sigmoid(x: Number) -> Number:
    """exp never sees a positive number, so it cannot overflow."""
    e = exp(-absolute(x))
    return div(where(x < 0.0, e, 1.0), 1.0 + e)


# erf(x) / x - 1 as a series in x², and (1 + 2x) exp(x²) erfc(x) as a polynomial in (x - 4) / (x + 4) for 1/2 ≤ x ≤ 28
_TWO_BY_ROOT_PI = 2.0 / math.sqrt(math.pi)
_ERF = (0.1283791670955126, *(_TWO_BY_ROOT_PI * (-1) ** n / (math.factorial(n) * (2 * n + 1)) for n in range(1, 19)))
_SCALED_ERFC = (
    1.2329951186255526, -0.1396211168405625, 0.015379652102619901, 0.06809705425468844, -0.1010390660363143,
    0.09373283499853434, -0.06633036581196795, 0.03716751553379472, -0.016197734061059108, 0.00503197001856426,
    -0.0007577732634973155, -0.00019925696553927866, 0.00015062155590137163, -2.4398057333996413e-05,
    -1.1221668942295945e-05, 5.706494720146254e-06, 2.9313186423696087e-07, -8.195085083459565e-07,
    7.540467350144586e-08, 1.03256669073015e-07, -1.8406671051403966e-08, -9.652213521087604e-09,
    1.9717656765049794e-09,
)  # fmt: skip


@_auxiliary
def erf_near_zero(x: Number) -> Number:
    """erf for |x| ≤ 1."""
    square = x * x
    series: Number = _ERF[-1]
    for coefficient in reversed(_ERF[:-1]):
        series = series * square + coefficient
    return x + x * series


@_auxiliary
def erfc_above_half(x: Number) -> Number:
    """erfc for x ≥ 1/2; all of it is used up at 28. The square in exp is rounded, and what it loses is made up for."""
    y = where(x < 28.0, x, 28.0)
    ratio = div(y - 4.0, y + 4.0)
    scaled: Number = _SCALED_ERFC[-1]
    for coefficient in reversed(_SCALED_ERFC[:-1]):
        scaled = scaled * ratio + coefficient
    wide = 134217729.0 * y
    high = wide - (wide - y)  # half the digits: its square is exact
    low = y - high
    square = y * y
    e = exp(-square)
    return div((e - e * (high * high - square + 2.0 * high * low + low * low)) * scaled, 1.0 + 2.0 * y)


@_defined
def erf(x: Number) -> Number:
    """A series near 0, and 1 - erfc beyond."""
    a = absolute(x)
    beyond = copysign(1.0 - erfc_above_half(a), x)
    return where(a < 1.0, erf_near_zero(x), where(equal(x, x), beyond, x))


@_defined
def erfc(x: Number) -> Number:
    """1 - erf where nothing cancels, else a function of its own."""
    a = absolute(x)
    beyond = where(x < 0.0, 2.0, 0.0) + copysign(erfc_above_half(a), x)
    return where(a < 0.5, 1.0 - erf_near_zero(x), where(equal(x, x), beyond, x))


# The Stirling series of log Gamma beyond its leading terms: B(2k) / (2k (2k-1) z^(2k-1)), k = 1, 2, …
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)
_SHIFT = 8


@_auxiliary
def lgamma_above_half(x: Number) -> Number:
    """log Gamma for x ≥ 1/2: shifted up by 8 where the Stirling series would not converge yet."""
    small = x < float(_SHIFT)
    product = x
    for k in range(1, _SHIFT):
        product = product * (x + float(k))
    z = where(small, x + float(_SHIFT), x)
    inverse = div(1.0, z)
    square = inverse * inverse
    series: Number = _STIRLING[-1]
    for coefficient in reversed(_STIRLING[:-1]):
        series = series * square + coefficient
    tail = series * inverse + 0.5 * math.log(2.0 * math.pi)
    stirling = (z - 0.5) * (log(z) - 1.0) + (tail - 0.5)
    return where(small, stirling - log(where(small, product, 1.0)), stirling)


# (-1)^k (zeta(k) - 1) / k for k = 2, 3, …: the series of log Gamma(2 + z) beyond its linear term
_ZETA = (
    0.3224670334241132, -0.0673523010531981, 0.020580808427784546, -0.007385551028673986,
    0.0028905103307415234, -0.001192753911703261, 0.0005096695247430425, -0.00022315475845357939,
    9.945751278180853e-05, -4.492623673813314e-05, 2.050721277567069e-05, -9.439488275268397e-06,
    4.374866789907488e-06, -2.039215753801366e-06, 9.55141213040742e-07, -4.492469198764566e-07,
    2.1207184805554665e-07, -1.0043224823968099e-07, 4.7698101693639804e-08, -2.2711094608943164e-08,
    1.0838659214896955e-08, -5.183475041970047e-09, 2.4836745438024785e-09, -1.1921401405860912e-09,
    5.731367241678862e-10, -2.7595228851242334e-10, 1.330476437424449e-10, -6.4229645638381e-11,
)  # fmt: skip


@_auxiliary
def lgamma_near_two(x: Number) -> Number:
    """log Gamma for 1/2 ≤ x ≤ 5/2, with all its digits at the zeros 1 and 2."""
    below = x < 1.5
    z = x - where(below, 1.0, 2.0)
    series: Number = _ZETA[-1]
    for coefficient in reversed(_ZETA[:-1]):
        series = series * z + coefficient
    two = z * (series * z + (1.0 - 0.5772156649015329))  # Euler's constant
    return where(below, two - log1p(z), two)


@_defined
def lgamma(x: Number) -> Number:
    """log of |Gamma(x)|; below 1/2 by the reflection Gamma(x) Gamma(1-x) = pi / sin(pi x)."""
    low = x < 0.5
    y = where(low, 1.0 - x, x)
    above = where(y < 2.5, lgamma_near_two(where(y < 2.5, y, 2.0)), lgamma_above_half(y))
    near_zero = absolute(x) < 1e-290  # there pi x would lose digits, and log Gamma(x) is -log |x|
    reflected = where(near_zero, -log(absolute(x)), math.log(math.pi) - log(sin_pi(x)) - above)
    return where(equal(absolute(x), math.inf), math.inf, where(low, reflected, above))


@_auxiliary
def sin_pi(x: Number) -> Number:
    """|sin(pi x)|, reduced before the multiplication by pi loses the digits."""
    return sin(math.pi * absolute(x - floor(x + 0.5)))


@_auxiliary
def digamma(x: Number) -> Number:
    """The derivative of log Gamma, by the same shift, series and reflection."""
    low = x < 0.5
    y = where(low, 1.0 - x, x)
    small = y < float(_SHIFT)
    steps = div(1.0, y)
    for k in range(1, _SHIFT):
        steps = steps + div(1.0, y + float(k))
    z = where(small, y + float(_SHIFT), y)
    inverse = div(1.0, z)
    square = inverse * inverse
    series: Number = _STIRLING[-1] * (2 * len(_STIRLING) - 1)
    for k in reversed(range(len(_STIRLING) - 1)):
        series = series * square + _STIRLING[k] * (2 * k + 1)
    asymptotic = log(z) - 0.5 * inverse - series * square
    above = where(small, asymptotic - steps, asymptotic)
    return where(low, above - div(math.pi, tan(math.pi * (x - floor(x + 0.5)))), above)


# ---------------------------------------------------------------- what a formula is made of

# IEEE 754 says what these give, to the last bit: whoever computes them
_EXACT = {"+", "-", "*", "div", "neg", "<", "<=", ">", ">=", "and", "or", "where", "abs", "sqrt", "fmod", "copysign",
          "floor", "ceil"}  # fmt: skip


def heads(formula: Number) -> set[str]:
    """The operators, functions and variables in a formula, and in those that define its functions."""
    found: set[str] = set()
    waiting = [formula]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Symbol):
            waiting.extend(part.arguments)
            if part.head in DEFINITIONS:
                known = (Symbol("") if isinstance(each, Symbol) else each for each in part.arguments)
                waiting.append(DEFINITIONS[part.head](*known))
            else:
                found.add(part.head)
    return found


_SIGNED = {"copysign": 1, "atan2": 0}  # from which of their arguments on the sign of a zero shows


def signed_heads(formula: Number) -> set[str]:
    """What a formula sees the sign of, even of a zero."""
    found: set[str] = set()
    for part in formula.arguments if isinstance(formula, Symbol) else ():
        found |= signed_heads(part)
    if isinstance(formula, Symbol) and formula.head in _SIGNED:
        for part in formula.arguments[_SIGNED[formula.head] :]:
            found |= heads(part)
    return found


def is_exact(formula: Number, names: Sequence[str]) -> bool:
    """Whether a formula over variables of these names has one result, however and by whom it is computed."""
    return heads(formula) <= _EXACT | {*names, ""}


def calls_library(*formulas: Number) -> bool:
    """Whether there is a function of a library in them, which may have another last digit elsewhere."""
    return not set().union(*map(heads, formulas)).isdisjoint(FUNCTIONS.keys() - _EXACT)
