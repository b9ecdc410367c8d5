"""scipy.special's ufuncs that are no composition of the table's operations: what their derivatives are.

Each is a `custom_op` whose local gradients are written with such functions again, so they have every derivative.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special as sp

from gradwalk.custom import custom_op
from gradwalk.functions import exp, log
from gradwalk.structure import is_value

Rule = Callable[..., Any]
_ROOT = 2.0 / math.sqrt(math.pi)


def _sign(x: Any) -> float:
    return 1.0 if x > 0.0 else -1.0 if x < 0.0 else 0.0


def _operation(name: str, *by: Rule | None) -> Rule:
    """The ufunc, out of its derivatives by each input, functions of the inputs and the output; None: there is none."""
    ufunc = getattr(sp, name)

    def local_grads(*given: Any) -> tuple[Any, ...]:
        return tuple(0.0 if rule is None else rule(*given) for rule in by)

    operation = custom_op(lambda *xs: float(ufunc(*xs)), local_grads, name=name, check=False)

    def apply(*numbers: Any) -> Any:
        for i, (number, rule) in enumerate(zip(numbers, by, strict=True)):
            if rule is None and is_value(number):
                raise TypeError(f"{name}: expected a plain number as argument {i}, got a Value; no derivative is known")
        return operation(*numbers)

    return apply


_ROWS: dict[str, tuple[Rule | None, ...]] = {
    # gamma functions and their integrals
    "psi": (lambda x, out: sp.zeta(2.0, x),),
    "zeta": (None, lambda s, q, out: -s * sp.zeta(s + 1.0, q)),
    "gammasgn": (lambda x, out: 0.0,),
    "gammainc": (None, lambda a, x, out: exp((a - 1.0) * log(x) - x - math.lgamma(a))),
    "gammaincc": (None, lambda a, x, out: -exp((a - 1.0) * log(x) - x - math.lgamma(a))),
    "betainc": (None, None, lambda a, b, x, out: x ** (a - 1.0) * (1.0 - x) ** (b - 1.0) / float(sp.beta(a, b))),
    "pdtr": (None, lambda k, m, out: -exp(k * log(m) - m - math.lgamma(k + 1.0))),
    "stdtr": (
        None,
        lambda df, t, out: (1.0 + t * t / df) ** (-0.5 * (df + 1.0)) / (math.sqrt(df) * float(sp.beta(0.5, 0.5 * df))),
    ),
    # error functions and their inverses, exponential integrals
    "erfinv": (lambda x, out: exp(out * out) / _ROOT,),
    "erfcinv": (lambda x, out: -exp(out * out) / _ROOT,),
    "ndtri": (lambda x, out: math.sqrt(math.tau) * exp(0.5 * out * out),),
    "erfi": (lambda x, out: _ROOT * exp(x * x),),
    "erfcx": (lambda x, out: 2.0 * x * out - _ROOT,),
    "dawsn": (lambda x, out: 1.0 - 2.0 * x * out,),
    "exp1": (lambda x, out: -exp(-x) / x,),
    "expi": (lambda x, out: exp(x) / x,),
    # Bessel functions
    "j0": (lambda x, out: -sp.j1(x),),
    "j1": (lambda x, out: 0.5 * (sp.j0(x) - sp.jv(2.0, x)),),
    "jv": (None, lambda n, x, out: 0.5 * (sp.jv(n - 1.0, x) - sp.jv(n + 1.0, x))),
    "y0": (lambda x, out: -sp.y1(x),),
    "y1": (lambda x, out: sp.y0(x) - out / x,),
    "yn": (None, lambda n, x, out: 0.5 * (sp.yv(n - 1.0, x) - sp.yv(n + 1.0, x))),
    "yv": (None, lambda n, x, out: 0.5 * (sp.yv(n - 1.0, x) - sp.yv(n + 1.0, x))),
    "i0": (lambda x, out: sp.i1(x),),
    "i1": (lambda x, out: 0.5 * (sp.i0(x) + sp.iv(2.0, x)),),
    "iv": (None, lambda n, x, out: 0.5 * (sp.iv(n - 1.0, x) + sp.iv(n + 1.0, x))),
    "i0e": (lambda x, out: sp.i1e(x) - _sign(x) * out,),
    "i1e": (lambda x, out: 0.5 * (sp.i0e(x) + sp.ive(2.0, x)) - _sign(x) * out,),
    "ive": (None, lambda n, x, out: 0.5 * (sp.ive(n - 1.0, x) + sp.ive(n + 1.0, x)) - _sign(x) * out),
    "k0": (lambda x, out: -sp.k1(x),),
    "k1": (lambda x, out: -0.5 * (sp.k0(x) + sp.kv(2.0, x)),),
    "kv": (None, lambda n, x, out: -0.5 * (sp.kv(n - 1.0, x) + sp.kv(n + 1.0, x))),
}  # fmt: skip

RULES: dict[str, Rule] = {getattr(sp, name).__name__: _operation(name, *by) for name, by in _ROWS.items()
                          if isinstance(getattr(sp, name), np.ufunc)}  # fmt: skip
RULES["_zeta"] = _operation("zeta", *_ROWS["zeta"])  # what sp.zeta of two arguments comes down to
