# do not edit; made by tools/generate.py from src/gradwalk/ops.py and row_ops.py

from collections.abc import Iterable
from typing import Any

from gradwalk._native import Number

def pow(x: Number, y: Number, /) -> Any:
    """Power with a Value as the exponent."""

def abs(x: Number, /) -> Any:
    """Absolute value."""

def exp(x: Number, /) -> Any:
    """Exponential."""

def expm1(x: Number, /) -> Any:
    """exp(x) - 1, exact near 0."""

def log(x: Number, /) -> Any:
    """Natural logarithm."""

def log1p(x: Number, /) -> Any:
    """log(1 + x), exact near 0."""

def log2(x: Number, /) -> Any:
    """Logarithm to base 2."""

def log10(x: Number, /) -> Any:
    """Logarithm to base 10."""

def sqrt(x: Number, /) -> Any:
    """Square root."""

def cbrt(x: Number, /) -> Any:
    """Cube root, also of negative numbers."""

def sin(x: Number, /) -> Any:
    """Sine."""

def cos(x: Number, /) -> Any:
    """Cosine."""

def tan(x: Number, /) -> Any:
    """Tangent."""

def asin(x: Number, /) -> Any:
    """Inverse sine."""

def acos(x: Number, /) -> Any:
    """Inverse cosine."""

def atan(x: Number, /) -> Any:
    """Inverse tangent."""

def atan2(y: Number, x: Number, /) -> Any:
    """Angle of the point (x, y)."""

def sinh(x: Number, /) -> Any:
    """Hyperbolic sine."""

def cosh(x: Number, /) -> Any:
    """Hyperbolic cosine."""

def tanh(x: Number, /) -> Any:
    """Hyperbolic tangent."""

def asinh(x: Number, /) -> Any:
    """Inverse hyperbolic sine."""

def acosh(x: Number, /) -> Any:
    """Inverse hyperbolic cosine."""

def atanh(x: Number, /) -> Any:
    """Inverse hyperbolic tangent."""

def relu(x: Number, /) -> Any:
    """Rectified linear unit: the positive part of x."""

def leaky_relu(x: Number, slope: float = 0.01, /) -> Any:
    """x, scaled by `slope` below 0."""

def elu(x: Number, alpha: float = 1.0, /) -> Any:
    """Exponential linear unit: x above 0, alpha (exp(x) - 1) below."""

def gelu(x: Number, /) -> Any:
    """Gaussian error linear unit, exact (not the tanh approximation)."""

def silu(x: Number, /) -> Any:
    """x times its sigmoid; also called swish."""

def sigmoid(x: Number, /) -> Any:
    """Logistic function 1 / (1 + exp(-x))."""

def softplus(x: Number, /) -> Any:
    """log(1 + exp(x)), a smooth relu."""

def erf(x: Number, /) -> Any:
    """Error function."""

def erfc(x: Number, /) -> Any:
    """1 - erf(x), exact for large x."""

def lgamma(x: Number, /) -> Any:
    """Logarithm of the absolute value of the gamma function."""

def hypot(x: Number, y: Number, /) -> Any:
    """Length of the vector (x, y), without overflow on the way."""

def fmod(x: Number, y: Number, /) -> Any:
    """Remainder with the sign of x, as C's fmod."""

def copysign(x: Number, y: Number, /) -> Any:
    """The size of x with the sign of y."""

def floor(x: Number, /) -> Any:
    """Round down."""

def ceil(x: Number, /) -> Any:
    """Round up."""

def sign(x: Number, /) -> Any:
    """-1, 0 or 1."""

def where(condition: Number, x: Number, y: Number, /) -> Any:
    """x where the condition is not 0, else y."""

def stop_gradient(x: Number, /) -> Any:
    """x itself, but no gradient flows back through it."""

def clamp(x: Number, low: float, high: float, /) -> Any:
    """x, held between two numbers."""

def sum(xs: Iterable[Any]) -> Any:
    """The sum as one node."""

def mean(xs: Iterable[Any]) -> Any:
    """The mean as one node."""

def dot(xs: Iterable[Any], ys: Iterable[Any]) -> Any:
    """The sum of products as one node."""

def norm(xs: Iterable[Any]) -> Any:
    """The Euclidean length as one node, without overflow on the way."""

def logsumexp(xs: Iterable[Any]) -> Any:
    """The logarithm of the sum of exponentials as one node, without overflow on the way."""

def softmax(xs: Iterable[Any]) -> list[Any]:
    """Exponentials divided by their sum: one node per output."""

def log_softmax(xs: Iterable[Any]) -> list[Any]:
    """Logarithms of the softmax, exact where it underflows: one node per output."""

def cross_entropy(logits: Iterable[Any], target: int) -> Any:
    """Minus the logarithm of the probability that softmax gives to entry `target`, as one node."""

def rmsnorm(xs: Iterable[Any], eps: float = 1e-05) -> list[Any]:
    """xs divided by the root of their mean square: one node per output."""

def layernorm(xs: Iterable[Any], eps: float = 1e-05) -> list[Any]:
    """xs shifted to mean 0 and scaled to variance 1: one node per output."""

def maximum(*xs: Any) -> Any:
    """The largest; of equals, the first gets the gradient."""

def minimum(*xs: Any) -> Any:
    """The smallest; of equals, the first gets the gradient."""

def take(rows: Iterable[Any], index: int) -> Any:
    """`rows[index]` as recorded nodes: one node for a Value, a list of nodes for a row of them."""

def matvec(rows: Iterable[Iterable[Number]], x: Iterable[Number]) -> list[Any]: ...
