"""THE TABLE: every operation, its forward and its local gradients. Start here.

A row is written once, in the language of `formula.py`, and serves everywhere: the reference engine runs it on
floats, `tools/generate.py` prints it as C, JavaScript and LaTeX, and higher derivatives run it on Values.
To add an operation, add a row and run `make generate`.
"""

from __future__ import annotations

import math

from gradwalk.formula import (
    absolute, acos, acosh, asin, asinh, atan, atan2, atanh, cbrt, ceil, copysign, cos, cosh, digamma, div, equal,
    erf, erfc, exp, expm1, floor, fmod, hypot, larger, lgamma, log, log1p, log2, log10, pow, power, sigmoid, sin,
    sinh, smaller, sqrt, tan, tanh, where,
)  # fmt: skip
from gradwalk.operation import Op, always, finite, from_multiple, from_one, from_whole, has_power, nearer, sign, signed

_XY = ("x", "y")
_PAIRS = ((2.0, 3.0), (-1.5, 0.25), (0.5, -4.0))

_ROWS = (
    # ---------------------------------------------------------------- arithmetic
    Op(
        "add",
        glyph="+",
        symbol="+",
        inputs=_XY,
        forward=lambda x, y: x + y,
        local_grads=lambda x, y, out: (1.0, 1.0),
        samples=_PAIRS,
        operator=True,
        doc="Sum.",
    ),
    Op(
        "sub",
        glyph="−",
        symbol="-",
        inputs=_XY,
        forward=lambda x, y: x - y,
        local_grads=lambda x, y, out: (1.0, -1.0),
        samples=_PAIRS,
        operator=True,
        doc="Difference.",
    ),
    Op(
        "mul",
        glyph="×",
        symbol="*",
        inputs=_XY,
        forward=lambda x, y: x * y,
        local_grads=lambda x, y, out: (y, x),
        samples=_PAIRS,
        operator=True,
        doc="Product.",
    ),
    Op(
        "div",
        glyph="÷",
        symbol="/",
        inputs=_XY,
        forward=lambda x, y: div(x, y),
        local_grads=lambda x, y, out: (div(1.0, y), -div(out, y)),
        domain=lambda x, y: (y < 0.0) | (y > 0.0),
        expected="a divisor other than 0",
        samples=_PAIRS,
        operator=True,
        borders=lambda x, y: absolute(y),
        steep=always,
        doc="Quotient.",
    ),
    Op(
        "pow",
        glyph="xʸ",
        symbol="**",
        inputs=_XY,
        forward=lambda x, y: pow(x, y),
        # in the exponent: 0 at x = 0, where out stays 0; nan for x < 0, where no derivative exists
        local_grads=lambda x, y, out: (
            # not where(y = 0, 0, …), which would lose the derivative in y; only 0 * inf at x = 0 is kept away
            y * where(equal(y, 0.0) & (absolute(x) < 1e-300), 0.0, pow(x, y - 1.0)),
            where(equal(x, 0.0), 0.0, out * log(x)),
        ),
        domain=has_power,
        expected="a positive base, 0 with an exponent of at least 0, or a negative base with a whole exponent",
        overflows=True,
        samples=((2.0, 3.0), (0.5, -1.5), (1.5, 0.0)),
        jumps=hypot,
        borders=lambda x, y: absolute(x),
        steep=always,
        shown_local_grads=lambda x, y, out: (y * pow(x, y - 1.0), out * log(x)),
        doc="Power with a Value as the exponent.",
    ),
    Op(
        "pow_number",
        called="pow",
        glyph="xⁿ",
        symbol="**n",
        parameters=("n",),
        forward=lambda x, n: power(x, n),
        # x**2 is common enough to spare it a call; at n = 0 the product would be 0 * inf for x = 0
        local_grads=lambda x, n, out: (where(equal(n, 2.0), 2.0 * x, where(equal(n, 0.0), 0.0, n * pow(x, n - 1.0))),),
        domain=has_power,
        expected="a positive base, 0 with an exponent of at least 0, or a negative base with a whole exponent",
        overflows=True,
        samples=((2.0, 3.0), (-1.5, 2.0), (0.5, -1.5), (4.0, 0.5), (-2.0, -3.0), (0.0, 2.0), (3.0, 0.0)),
        operator=True,
        borders=lambda x, n: where((n >= 1.0) & equal(n, floor(n)), math.inf, absolute(x)),
        steep=lambda n: n < 1.0,
        shown_local_grads=lambda x, n, out: (n * pow(x, n - 1.0),),
        doc="Power by a plain number.",
    ),
    Op("neg", glyph="−x", forward=lambda x: -x, local_grads=lambda x, out: (-1.0,), operator=True, doc="Negation."),
    Op(
        "abs",
        glyph="|x|",
        forward=lambda x: absolute(x),
        local_grads=lambda x, out: (sign(x),),  # at 0: 0, the middle of [-1, 1]
        samples=(-20.0, -0.5, 0.5, 20.0),
        kinks=absolute,
        doc="Absolute value.",
    ),
    # ---------------------------------------------------------------- powers and logarithms
    Op("exp", forward=lambda x: exp(x), local_grads=lambda x, out: (out,), overflows=True, doc="Exponential."),
    Op(
        "expm1",
        forward=lambda x: expm1(x),
        local_grads=lambda x, out: (exp(x),),  # not out + 1: it cancels for x well below 0
        overflows=True,
        doc="exp(x) - 1, exact near 0.",
    ),
    Op(
        "log",
        forward=lambda x: log(x),
        local_grads=lambda x, out: (div(1.0, x),),
        domain=lambda x: x > 0.0,
        expected="x > 0",
        samples=(1e-3, 0.5, 1.0, 20.0),
        borders=absolute,
        steep=always,
        doc="Natural logarithm.",
    ),
    Op(
        "log1p",
        forward=lambda x: log1p(x),
        local_grads=lambda x, out: (div(1.0, 1.0 + x),),
        domain=lambda x: x > -1.0,
        expected="x > -1",
        borders=lambda x: absolute(x + 1.0),
        samples=(-0.9, -1e-9, 0.5, 20.0),
        doc="log(1 + x), exact near 0.",
    ),
    Op(
        "log2",
        forward=lambda x: log2(x),
        local_grads=lambda x, out: (div(1.0 / math.log(2.0), x),),
        domain=lambda x: x > 0.0,
        expected="x > 0",
        samples=(1e-3, 0.5, 1.0, 20.0),
        borders=absolute,
        steep=always,
        shown_local_grads=lambda x, out: (div(1.0, x * math.log(2.0)),),
        doc="Logarithm to base 2.",
    ),
    Op(
        "log10",
        forward=lambda x: log10(x),
        local_grads=lambda x, out: (div(1.0 / math.log(10.0), x),),
        domain=lambda x: x > 0.0,
        expected="x > 0",
        samples=(1e-3, 0.5, 1.0, 20.0),
        borders=absolute,
        steep=always,
        shown_local_grads=lambda x, out: (div(1.0, x * math.log(10.0)),),
        doc="Logarithm to base 10.",
    ),
    Op(
        "sqrt",
        glyph="√x",
        forward=lambda x: sqrt(x),
        local_grads=lambda x, out: (div(0.5, absolute(out)),),  # at 0: inf, also at -0.0
        domain=lambda x: x >= 0.0,
        expected="x >= 0",
        samples=(1e-3, 0.5, 20.0),
        borders=absolute,
        steep=always,
        shown_local_grads=lambda x, out: (div(1.0, 2.0 * out),),
        doc="Square root.",
    ),
    Op(
        "cbrt",
        glyph="∛x",
        forward=lambda x: cbrt(x),
        local_grads=lambda x, out: (div(1.0, 3.0 * out * out),),  # at 0: inf
        samples=(-20.0, -0.5, 0.5, 20.0),
        borders=absolute,
        steep=always,
        shown_local_grads=lambda x, out: (div(1.0, 3.0 * power(out, 2.0)),),
        doc="Cube root, also of negative numbers.",
    ),
    # ---------------------------------------------------------------- trigonometric and hyperbolic
    Op(
        "sin",
        forward=lambda x: sin(x),
        local_grads=lambda x, out: (cos(x),),
        domain=finite,
        expected="a finite x",
        doc="Sine.",
    ),
    Op(
        "cos",
        forward=lambda x: cos(x),
        local_grads=lambda x, out: (-sin(x),),
        domain=finite,
        expected="a finite x",
        doc="Cosine.",
    ),
    Op(
        "tan",
        forward=lambda x: tan(x),
        local_grads=lambda x, out: (1.0 + out * out,),
        domain=finite,
        expected="a finite x",
        samples=(-1.2, -0.5, -0.0, 0.5, 1.2),
        shown_local_grads=lambda x, out: (1.0 + power(out, 2.0),),
        doc="Tangent.",
    ),
    Op(
        "asin",
        aliases=("arcsin",),
        forward=lambda x: asin(x),
        local_grads=lambda x, out: (div(1.0, sqrt((1.0 - x) * (1.0 + x))),),  # at ±1: inf
        domain=lambda x: absolute(x) <= 1.0,
        expected="-1 <= x <= 1",
        samples=(-0.9, -0.5, -0.0, 0.5, 0.9),
        borders=from_one,
        steep=always,
        shown_local_grads=lambda x, out: (div(1.0, sqrt(1.0 - power(x, 2.0))),),
        doc="Inverse sine.",
    ),
    Op(
        "acos",
        aliases=("arccos",),
        forward=lambda x: acos(x),
        local_grads=lambda x, out: (-div(1.0, sqrt((1.0 - x) * (1.0 + x))),),  # at ±1: -inf
        domain=lambda x: absolute(x) <= 1.0,
        expected="-1 <= x <= 1",
        samples=(-0.9, -0.5, -0.0, 0.5, 0.9),
        borders=from_one,
        steep=always,
        shown_local_grads=lambda x, out: (-div(1.0, sqrt(1.0 - power(x, 2.0))),),
        doc="Inverse cosine.",
    ),
    Op(
        "atan",
        aliases=("arctan",),
        forward=lambda x: atan(x),
        local_grads=lambda x, out: (div(1.0, 1.0 + x * x),),
        shown_local_grads=lambda x, out: (div(1.0, 1.0 + power(x, 2.0)),),
        doc="Inverse tangent.",
    ),
    Op(
        "atan2",
        aliases=("arctan2",),
        inputs=("y", "x"),
        forward=lambda y, x: atan2(y, x),
        # divided twice by the radius, so that its square cannot overflow; at the origin: 0
        local_grads=lambda y, x, out: (
            where(equal(x, 0.0) & equal(y, 0.0), 0.0, div(div(x, hypot(y, x)), hypot(y, x))),
            where(equal(x, 0.0) & equal(y, 0.0), 0.0, -div(div(y, hypot(y, x)), hypot(y, x))),
        ),
        samples=((1.0, 2.0), (-3.0, 0.5), (2.0, -1.0), (-1.0, -1.0)),
        jumps=lambda y, x: where(x > 0.0, hypot(y, x), absolute(y)),
        steep=always,
        shown_local_grads=lambda y, x, out: (
            div(x, power(x, 2.0) + power(y, 2.0)),
            -div(y, power(x, 2.0) + power(y, 2.0)),
        ),
        doc="Angle of the point (x, y).",
    ),
    Op(
        "sinh",
        forward=lambda x: sinh(x),
        local_grads=lambda x, out: (cosh(x),),
        overflows=True,
        doc="Hyperbolic sine.",
    ),
    Op(
        "cosh",
        forward=lambda x: cosh(x),
        local_grads=lambda x, out: (sinh(x),),
        overflows=True,
        doc="Hyperbolic cosine.",
    ),
    Op(
        "tanh",
        forward=lambda x: tanh(x),
        # not (1 - out) (1 + out): out is rounded already, and near ±1 little of the difference is left;
        # nor 1 / cosh(x)^2, whose own derivative is 0 * inf for large x
        local_grads=lambda x, out: (4.0 * sigmoid(2.0 * x) * sigmoid(-2.0 * x),),
        samples=(-5.0, -0.5, -0.0, 0.5, 5.0),
        shown_local_grads=lambda x, out: (1.0 - power(out, 2.0),),
        doc="Hyperbolic tangent.",
    ),
    Op(
        "asinh",
        aliases=("arcsinh",),
        forward=lambda x: asinh(x),
        local_grads=lambda x, out: (div(1.0, hypot(x, 1.0)),),  # not sqrt(x*x + 1): it overflows
        shown_local_grads=lambda x, out: (div(1.0, sqrt(power(x, 2.0) + 1.0)),),
        doc="Inverse hyperbolic sine.",
    ),
    Op(
        "acosh",
        aliases=("arccosh",),
        forward=lambda x: acosh(x),
        local_grads=lambda x, out: (div(1.0, sqrt(x - 1.0) * sqrt(x + 1.0)),),  # at 1: inf
        domain=lambda x: x >= 1.0,
        expected="x >= 1",
        samples=(1.1, 2.0, 20.0),
        borders=lambda x: absolute(x - 1.0),
        steep=always,
        shown_local_grads=lambda x, out: (div(1.0, sqrt(power(x, 2.0) - 1.0)),),
        doc="Inverse hyperbolic cosine.",
    ),
    Op(
        "atanh",
        aliases=("arctanh",),
        forward=lambda x: atanh(x),
        local_grads=lambda x, out: (div(1.0, (1.0 - x) * (1.0 + x)),),
        domain=lambda x: absolute(x) < 1.0,
        expected="-1 < x < 1",
        borders=from_one,
        samples=(-0.9, -0.5, -0.0, 0.5, 0.9),
        shown_local_grads=lambda x, out: (div(1.0, 1.0 - power(x, 2.0)),),
        doc="Inverse hyperbolic tangent.",
    ),
    # ---------------------------------------------------------------- activations
    Op(
        "relu",
        symbol="ReLU",
        forward=lambda x: where(x < 0.0, 0.0, x),
        local_grads=lambda x, out: (where(x > 0.0, 1.0, 0.0),),  # at 0: 0
        samples=(-20.0, -0.5, 0.5, 20.0),
        kinks=absolute,
        shown=lambda x: larger(0.0, x),
        doc="Rectified linear unit: the positive part of x.",
    ),
    Op(
        "leaky_relu",
        parameters=("slope",),
        defaults=(0.01,),
        forward=lambda x, slope: where(x < 0.0, slope * x, x),
        local_grads=lambda x, slope, out: (where(x > 0.0, 1.0, slope),),  # at 0: the slope
        samples=((-20.0, 0.01), (-0.5, 0.2), (0.5, 0.01), (20.0, 0.2)),
        kinks=lambda x, slope: absolute(x),
        doc="x, scaled by `slope` below 0.",
    ),
    Op(
        "elu",
        parameters=("alpha",),
        defaults=(1.0,),
        forward=lambda x, alpha: where(x < 0.0, alpha * expm1(x), x),
        local_grads=lambda x, alpha, out: (where(x > 0.0, 1.0, alpha * exp(x)),),  # at 0: alpha
        samples=((-20.0, 1.0), (-0.5, 0.7), (0.5, 0.7), (20.0, 1.0)),
        kinks=lambda x, alpha: absolute(x),
        doc="Exponential linear unit: x above 0, alpha (exp(x) - 1) below.",
    ),
    Op(
        "gelu",
        forward=lambda x: 0.5 * x * erfc(-x * math.sqrt(0.5)),  # erfc, not 1 + erf: it cancels for x below 0
        local_grads=lambda x, out: (
            0.5 * erfc(-x * math.sqrt(0.5)) + x * math.sqrt(0.5 / math.pi) * exp(-0.5 * x * x),
        ),
        shown=lambda x: 0.5 * x * erfc(-div(x, math.sqrt(2.0))),
        shown_local_grads=lambda x, out: (
            0.5 * erfc(-div(x, math.sqrt(2.0))) + x * div(exp(-div(power(x, 2.0), 2.0)), math.sqrt(2.0 * math.pi)),
        ),
        doc="Gaussian error linear unit, exact (not the tanh approximation).",
    ),
    Op(
        "silu",
        forward=lambda x: x * sigmoid(x),
        local_grads=lambda x, out: (sigmoid(x) * (1.0 + x * sigmoid(-x)),),
        doc="x times its sigmoid; also called swish.",
    ),
    Op(
        "sigmoid",
        forward=lambda x: sigmoid(x),
        local_grads=lambda x, out: (out * sigmoid(-x),),  # not 1 - out: it cancels for large x
        shown=lambda x: div(1.0, 1.0 + exp(-x)),
        shown_local_grads=lambda x, out: (out * (1.0 - out),),
        doc="Logistic function 1 / (1 + exp(-x)).",
    ),
    Op(
        "softplus",
        forward=lambda x: where(x < 0.0, 0.0, x) + log1p(exp(-absolute(x))),
        local_grads=lambda x, out: (sigmoid(x),),
        shown=lambda x: log(1.0 + exp(x)),
        doc="log(1 + exp(x)), a smooth relu.",
    ),
    # ---------------------------------------------------------------- special functions
    Op(
        "erf",
        forward=lambda x: erf(x),
        local_grads=lambda x, out: (2.0 / math.sqrt(math.pi) * exp(-(x * x)),),
        samples=(-3.0, -0.5, -0.0, 0.5, 3.0),
        shown_local_grads=lambda x, out: (div(2.0 * exp(-power(x, 2.0)), math.sqrt(math.pi)),),
        doc="Error function.",
    ),
    Op(
        "erfc",
        forward=lambda x: erfc(x),
        local_grads=lambda x, out: (-2.0 / math.sqrt(math.pi) * exp(-(x * x)),),
        samples=(-3.0, -0.5, -0.0, 0.5, 3.0),
        shown_local_grads=lambda x, out: (-div(2.0 * exp(-power(x, 2.0)), math.sqrt(math.pi)),),
        doc="1 - erf(x), exact for large x.",
    ),
    Op(
        "lgamma",
        forward=lambda x: lgamma(x),
        local_grads=lambda x, out: (digamma(x),),
        domain=lambda x: (x > 0.0) | (x > floor(x)) | equal(x, -math.inf),
        expected="x > 0 or not a whole number",
        overflows=True,
        samples=(-2.5, 0.3, 1.7, 4.0, 20.0),
        borders=lambda x: where(x > 0.0, x, from_whole(x)),
        steep=always,
        doc="Logarithm of the absolute value of the gamma function.",
    ),
    # ---------------------------------------------------------------- selection and rounding
    Op(
        "minimum",
        glyph="min",
        inputs=_XY,
        chooses=True,
        forward=lambda x, y: where(x <= y, x, where(y < x, y, x + y)),  # x + y carries a nan through
        local_grads=lambda x, y, out: (where(x <= y, 1.0, 0.0), where(x <= y, 0.0, 1.0)),  # a tie: the first
        samples=_PAIRS,
        kinks=lambda x, y: absolute(x - y),
        shown=lambda x, y: smaller(x, y),
        doc="The smaller of two.",
    ),
    Op(
        "maximum",
        glyph="max",
        inputs=_XY,
        chooses=True,
        forward=lambda x, y: where(x >= y, x, where(y > x, y, x + y)),  # x + y carries a nan through
        local_grads=lambda x, y, out: (where(x >= y, 1.0, 0.0), where(x >= y, 0.0, 1.0)),  # a tie: the first
        samples=_PAIRS,
        kinks=lambda x, y: absolute(x - y),
        shown=lambda x, y: larger(x, y),
        doc="The larger of two.",
    ),
    Op(
        "hypot",
        inputs=_XY,
        forward=lambda x, y: hypot(x, y),
        local_grads=lambda x, y, out: (  # at the origin: 0
            where(equal(out, 0.0), 0.0, div(x, out)),
            where(equal(out, 0.0), 0.0, div(y, out)),
        ),
        samples=_PAIRS,
        kinks=hypot,
        shown=lambda x, y: sqrt(power(x, 2.0) + power(y, 2.0)),
        shown_local_grads=lambda x, y, out: (div(x, out), div(y, out)),
        doc="Length of the vector (x, y), without overflow on the way.",
    ),
    Op(
        "fmod",
        inputs=_XY,
        forward=lambda x, y: fmod(x, y),
        local_grads=lambda x, y, out: (1.0, floor(div(out - x, y) + 0.5)),  # at a jump: from the side x = 0 is on
        domain=lambda x, y: finite(x) & ((y < 0.0) | (y > 0.0)),
        expected="a finite x and a divisor other than 0",
        samples=((5.5, 2.0), (-5.5, 2.0), (5.5, -1.25), (0.3, 2.0)),
        jumps=from_multiple,
        borders=lambda x, y: absolute(y),
        steep=always,
        doc="Remainder with the sign of x, as C's fmod.",
    ),
    Op(
        "copysign",
        inputs=_XY,
        forward=lambda x, y: copysign(x, signed(y)),
        local_grads=lambda x, y, out: (sign(x) * copysign(1.0, signed(y)), 0.0),  # at x = 0: 0
        samples=_PAIRS,
        jumps=lambda x, y: absolute(y),
        kinks=lambda x, y: absolute(x),
        shown=lambda x, y: copysign(x, y),
        shown_local_grads=lambda x, y, out: (sign(x) * copysign(1.0, y), 0.0),
        doc="The size of x with the sign of y.",
    ),
    Op(
        "floor",
        glyph="⌊x⌋",
        forward=lambda x: floor(x),
        local_grads=lambda x, out: (0.0,),
        samples=(-1.5, 0.5),
        jumps=from_whole,
        doc="Round down.",
    ),
    Op(
        "ceil",
        glyph="⌈x⌉",
        forward=lambda x: ceil(x),
        local_grads=lambda x, out: (0.0,),
        samples=(-1.5, 0.5),
        jumps=from_whole,
        doc="Round up.",
    ),
    Op(
        "sign",
        forward=lambda x: where(x > 0.0, 1.0, where(x < 0.0, -1.0, x)),
        local_grads=lambda x, out: (0.0,),
        samples=(-0.5, 0.5),
        jumps=absolute,
        doc="-1, 0 or 1.",
    ),
    Op(
        "where",
        inputs=("condition", "x", "y"),
        chooses=True,
        forward=lambda condition, x, y: where((condition < 0.0) | (condition > 0.0), x, y),
        local_grads=lambda condition, x, y, out: (
            0.0,
            where((condition < 0.0) | (condition > 0.0), 1.0, 0.0),
            where((condition < 0.0) | (condition > 0.0), 0.0, 1.0),
        ),
        samples=((1.0, 2.0, 3.0), (0.0, 2.0, 3.0)),
        jumps=lambda condition, x, y: absolute(condition),
        doc="x where the condition is not 0, else y.",
    ),
    Op(
        "stop_gradient",
        chooses=True,  # nothing
        forward=lambda x: x,
        local_grads=lambda x, out: (0.0,),  # on purpose: the derivative of x is 1
        samples=(0.5,),
        doc="x itself, but no gradient flows back through it.",
    ),
    Op(
        "clamp",
        parameters=("low", "high"),
        forward=lambda x, low, high: where(x < low, low, where(x > high, high, x)),
        local_grads=lambda x, low, high, out: (where((x < low) | (x > high), 0.0, 1.0),),  # at an end: 1
        domain=lambda x, low, high: low <= high,
        expected="low <= high",
        samples=((0.5, -1.0, 1.0), (-2.0, -1.0, 1.0), (2.0, -1.0, 1.0)),
        kinks=lambda x, low, high: nearer(absolute(x - low), absolute(x - high)),
        doc="x, held between two numbers.",
    ),
)

OPS: dict[str, Op] = {op.name: op for op in _ROWS}

OPERATORS = frozenset(op.name for op in _ROWS if op.operator)
STOPS = frozenset(op.name for op in _ROWS if op.stops)
