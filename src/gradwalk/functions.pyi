# do not edit; made by tools/generate.py from src/gradwalk/ops.py and row_ops.py
# mypy: disable-error-code="overload-overlap"

from collections.abc import Iterable
from typing import TypeVar, overload

from gradwalk._native import Number, Value

_T = TypeVar("_T")

@overload
def pow(x: Value, y: Number, /) -> Value: ...
@overload
def pow(x: float, y: Value, /) -> Value: ...
@overload
def pow(x: float, y: float, /) -> float:
    """Power with a Value as the exponent."""

@overload
def abs(x: Value, /) -> Value: ...
@overload
def abs(x: float, /) -> float:
    """Absolute value."""

@overload
def exp(x: Value, /) -> Value: ...
@overload
def exp(x: float, /) -> float:
    """Exponential."""

@overload
def expm1(x: Value, /) -> Value: ...
@overload
def expm1(x: float, /) -> float:
    """exp(x) - 1, exact near 0."""

@overload
def log(x: Value, /) -> Value: ...
@overload
def log(x: float, /) -> float:
    """Natural logarithm."""

@overload
def log1p(x: Value, /) -> Value: ...
@overload
def log1p(x: float, /) -> float:
    """log(1 + x), exact near 0."""

@overload
def log2(x: Value, /) -> Value: ...
@overload
def log2(x: float, /) -> float:
    """Logarithm to base 2."""

@overload
def log10(x: Value, /) -> Value: ...
@overload
def log10(x: float, /) -> float:
    """Logarithm to base 10."""

@overload
def sqrt(x: Value, /) -> Value: ...
@overload
def sqrt(x: float, /) -> float:
    """Square root."""

@overload
def cbrt(x: Value, /) -> Value: ...
@overload
def cbrt(x: float, /) -> float:
    """Cube root, also of negative numbers."""

@overload
def sin(x: Value, /) -> Value: ...
@overload
def sin(x: float, /) -> float:
    """Sine."""

@overload
def cos(x: Value, /) -> Value: ...
@overload
def cos(x: float, /) -> float:
    """Cosine."""

@overload
def tan(x: Value, /) -> Value: ...
@overload
def tan(x: float, /) -> float:
    """Tangent."""

@overload
def asin(x: Value, /) -> Value: ...
@overload
def asin(x: float, /) -> float:
    """Inverse sine."""

@overload
def acos(x: Value, /) -> Value: ...
@overload
def acos(x: float, /) -> float:
    """Inverse cosine."""

@overload
def atan(x: Value, /) -> Value: ...
@overload
def atan(x: float, /) -> float:
    """Inverse tangent."""

@overload
def atan2(y: Value, x: Number, /) -> Value: ...
@overload
def atan2(y: float, x: Value, /) -> Value: ...
@overload
def atan2(y: float, x: float, /) -> float:
    """Angle of the point (x, y)."""

@overload
def sinh(x: Value, /) -> Value: ...
@overload
def sinh(x: float, /) -> float:
    """Hyperbolic sine."""

@overload
def cosh(x: Value, /) -> Value: ...
@overload
def cosh(x: float, /) -> float:
    """Hyperbolic cosine."""

@overload
def tanh(x: Value, /) -> Value: ...
@overload
def tanh(x: float, /) -> float:
    """Hyperbolic tangent."""

@overload
def asinh(x: Value, /) -> Value: ...
@overload
def asinh(x: float, /) -> float:
    """Inverse hyperbolic sine."""

@overload
def acosh(x: Value, /) -> Value: ...
@overload
def acosh(x: float, /) -> float:
    """Inverse hyperbolic cosine."""

@overload
def atanh(x: Value, /) -> Value: ...
@overload
def atanh(x: float, /) -> float:
    """Inverse hyperbolic tangent."""

@overload
def relu(x: Value, /) -> Value: ...
@overload
def relu(x: float, /) -> float:
    """Rectified linear unit: the positive part of x."""

@overload
def leaky_relu(x: Value, slope: float = 0.01, /) -> Value: ...
@overload
def leaky_relu(x: float, slope: float = 0.01, /) -> float:
    """x, scaled by `slope` below 0."""

@overload
def elu(x: Value, alpha: float = 1.0, /) -> Value: ...
@overload
def elu(x: float, alpha: float = 1.0, /) -> float:
    """Exponential linear unit: x above 0, alpha (exp(x) - 1) below."""

@overload
def gelu(x: Value, /) -> Value: ...
@overload
def gelu(x: float, /) -> float:
    """Gaussian error linear unit, exact (not the tanh approximation)."""

@overload
def silu(x: Value, /) -> Value: ...
@overload
def silu(x: float, /) -> float:
    """x times its sigmoid; also called swish."""

@overload
def sigmoid(x: Value, /) -> Value: ...
@overload
def sigmoid(x: float, /) -> float:
    """Logistic function 1 / (1 + exp(-x))."""

@overload
def softplus(x: Value, /) -> Value: ...
@overload
def softplus(x: float, /) -> float:
    """log(1 + exp(x)), a smooth relu."""

@overload
def erf(x: Value, /) -> Value: ...
@overload
def erf(x: float, /) -> float:
    """Error function."""

@overload
def erfc(x: Value, /) -> Value: ...
@overload
def erfc(x: float, /) -> float:
    """1 - erf(x), exact for large x."""

@overload
def lgamma(x: Value, /) -> Value: ...
@overload
def lgamma(x: float, /) -> float:
    """Logarithm of the absolute value of the gamma function."""

@overload
def hypot(x: Value, y: Number, /) -> Value: ...
@overload
def hypot(x: float, y: Value, /) -> Value: ...
@overload
def hypot(x: float, y: float, /) -> float:
    """Length of the vector (x, y), without overflow on the way."""

@overload
def fmod(x: Value, y: Number, /) -> Value: ...
@overload
def fmod(x: float, y: Value, /) -> Value: ...
@overload
def fmod(x: float, y: float, /) -> float:
    """Remainder with the sign of x, as C's fmod."""

@overload
def copysign(x: Value, y: Number, /) -> Value: ...
@overload
def copysign(x: float, y: Value, /) -> Value: ...
@overload
def copysign(x: float, y: float, /) -> float:
    """The size of x with the sign of y."""

@overload
def floor(x: Value, /) -> Value: ...
@overload
def floor(x: float, /) -> float:
    """Round down."""

@overload
def ceil(x: Value, /) -> Value: ...
@overload
def ceil(x: float, /) -> float:
    """Round up."""

@overload
def sign(x: Value, /) -> Value: ...
@overload
def sign(x: float, /) -> float:
    """-1, 0 or 1."""

@overload
def where(condition: Value, x: Number, y: Number, /) -> Value: ...
@overload
def where(condition: float, x: Value, y: Number, /) -> Value: ...
@overload
def where(condition: float, x: float, y: Value, /) -> Value: ...
@overload
def where(condition: float, x: float, y: float, /) -> float:
    """x where the condition is not 0, else y."""

@overload
def clamp(x: Value, low: float, high: float, /) -> Value: ...
@overload
def clamp(x: float, low: float, high: float, /) -> float:
    """x, held between two numbers."""

@overload
def sum(xs: Iterable[float]) -> float: ...
@overload
def sum(xs: Iterable[Number]) -> Value:
    """The sum as one node."""

@overload
def mean(xs: Iterable[float]) -> float: ...
@overload
def mean(xs: Iterable[Number]) -> Value:
    """The mean as one node."""

@overload
def dot(xs: Iterable[float], ys: Iterable[float]) -> float: ...
@overload
def dot(xs: Iterable[Number], ys: Iterable[Number]) -> Value:
    """The sum of products as one node."""

@overload
def norm(xs: Iterable[float]) -> float: ...
@overload
def norm(xs: Iterable[Number]) -> Value:
    """The Euclidean length as one node, without overflow on the way."""

@overload
def logsumexp(xs: Iterable[float]) -> float: ...
@overload
def logsumexp(xs: Iterable[Number]) -> Value:
    """The logarithm of the sum of exponentials as one node, without overflow on the way."""

@overload
def softmax(xs: Iterable[float]) -> list[float]: ...
@overload
def softmax(xs: Iterable[Number]) -> list[Value]:
    """Exponentials divided by their sum: one node per output."""

@overload
def log_softmax(xs: Iterable[float]) -> list[float]: ...
@overload
def log_softmax(xs: Iterable[Number]) -> list[Value]:
    """Logarithms of the softmax, exact where it underflows: one node per output."""

@overload
def cross_entropy(logits: Iterable[float], target: int) -> float: ...
@overload
def cross_entropy(logits: Iterable[Number], target: int) -> Value:
    """Minus the logarithm of the probability that softmax gives to entry `target`, as one node."""

@overload
def rmsnorm(xs: Iterable[float], eps: float = 1e-05) -> list[float]: ...
@overload
def rmsnorm(xs: Iterable[Number], eps: float = 1e-05) -> list[Value]:
    """xs divided by the root of their mean square: one node per output."""

@overload
def layernorm(xs: Iterable[float], eps: float = 1e-05) -> list[float]: ...
@overload
def layernorm(xs: Iterable[Number], eps: float = 1e-05) -> list[Value]:
    """xs less their mean, divided by the root of their variance: one node per output."""

@overload
def maximum(xs: Iterable[float], /) -> float: ...
@overload
def maximum(*xs: float) -> float: ...
@overload
def maximum(xs: Iterable[Number], /) -> Value: ...
@overload
def maximum(*xs: Number) -> Value:
    """The largest; of equals, the first gets the gradient."""

@overload
def minimum(xs: Iterable[float], /) -> float: ...
@overload
def minimum(*xs: float) -> float: ...
@overload
def minimum(xs: Iterable[Number], /) -> Value: ...
@overload
def minimum(*xs: Number) -> Value:
    """The smallest; of equals, the first gets the gradient."""

def take(rows: Iterable[_T], index: int) -> _T:
    """`rows[index]` as recorded nodes: one node for a Value, a list of nodes for a row of them."""

@overload
def matvec(rows: Iterable[Iterable[float]], x: Iterable[float]) -> list[float]: ...
@overload
def matvec(rows: Iterable[Iterable[Number]], x: Iterable[Number]) -> list[Value]:
    """A dot with each row."""

