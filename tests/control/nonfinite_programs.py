"""Fifty programs that make an inf or nan; the line that does is marked `# here`, or found in the backward pass."""

from __future__ import annotations

import math
from typing import Any

import gradwalk

FORWARD = {
    "product": "y = x * 1e200\nz = y * 1e200  # here\nw = z + 1.0",
    "square": "y = (x * 1e160) ** 1\nz = y * y  # here",
    "sum": "y = x * 0.7e308\nz = y + y  # here",
    "difference": "y = x * -0.7e308\nz = y - 1.5e308  # here",
    "loop": "y = x * 2.0\nfor _ in range(20):\n    y = y * y  # here",
    "quotient": "y = x * 1e-200\nz = 1e200 / y  # here",
    "small quotient": "y = x / 1e-300\nz = y / 1e-300  # here",
    "log of 0": "with ieee:\n    y = x - x\n    z = y.log()  # here",
    "log below 0": "with ieee:\n    y = x - 5.0\n    z = y.log()  # here",
    "sqrt below 0": "with ieee:\n    y = -x\n    z = y.sqrt() + 1.0  # here",
    "exp": "with ieee:\n    y = x * 1000.0\n    z = y.exp()  # here",
    "sinh": "with ieee:\n    y = x * 1000.0\n    z = y.sinh()  # here",
    "division by 0": "with ieee:\n    y = x * 0.0\n    z = x / y  # here",
    "0 / 0": "with ieee:\n    y = x * 0.0\n    z = y / y  # here",
    "pow": "with ieee:\n    y = x * 1e10\n    z = y ** 40  # here",
    "negative pow": "with ieee:\n    y = -x\n    z = y ** 0.5  # here",
    "asin": "with ieee:\n    y = x + 1.0\n    z = y.asin()  # here",
    "acosh": "with ieee:\n    y = x * 0.1\n    z = y.acosh()  # here",
    "atanh": "with ieee:\n    y = x / x\n    z = y.atanh()  # here",
    "log1p": "with ieee:\n    y = x * -1.0\n    z = (y - 3.0).log1p()  # here",
    "lgamma": "with ieee:\n    y = x * 1e306\n    z = y.lgamma()  # here",
    "fmod": "with ieee:\n    y = x * 0.0\n    z = x.fmod(y)  # here",
    "math module": "y = x * 1e200\nz = gm.hypot(y, y) * gm.exp(x * 300.0)  # here",
    "in a function": "def inner(a):\n    b = a * 1e300\n    return b * 1e300  # here\ny = x + 1.0\nz = inner(y)",
    "in a list": "ys = [x * float(k) for k in range(1, 4)]\nzs = [y * 1e308 for y in ys]  # here",
    "sum composite": "ys = [x * 0.7e308, x * 0.7e308]\nz = gradwalk.sum(ys)  # here",
    "dot composite": "ys = [x * 1e200, x]\nz = gradwalk.dot(ys, ys)  # here",
    "input inf": "y = gradwalk.Value(math.inf, label='given')\nz = y + 1.0  # here",
    "input nan": "y = gradwalk.Value(math.nan)\nz = x * 2.0\nw = z * y  # here",
    "inf - inf": "with ieee:\n    ys = [x * 3.0]\n    z = gradwalk.sum([*ys, 1.0]) / (ys[0] - ys[0])  # here",
    "hand-made node": "y = gradwalk.Value(x.data * math.inf, (x,), 'hand', local_grads=(1.0,))  # here\nz = y + 1.0",
    "custom op": "f = custom_op(lambda a: a * math.inf, lambda a, out: 1.0, check=False)\nz = f(x)  # here",
    "numpy product": "a = np.array([x, x * 2.0])\nb = a * 1e308  # here",
    "numpy dot": "a = np.array([x, x * 2.0]) * 1e200\nz = np.dot(a, a)  # here",
    "generator": "z = 0.0\nfor k in range(400):\n    z = z * 10.0 + x  # here",
}

BACKWARD = {
    "sqrt at 0": "y = x - x\nz = y.sqrt()  # here\nw = z * 2.0",
    "sqrt behind a branch": "y = x * 0.0\nz = y.sqrt() * 3.0  # here\nw = gradwalk.where(1.0, z, x)",
    "cbrt at 0": "y = x * 0.0\nz = y.cbrt()  # here\nw = z + x",
    "pow at 0": "y = x - x\nz = y ** 0.5  # here\nw = z + 1.0",
    "asin at 1": "y = x / x\nz = y.asin()  # here\nw = z + z",
    "acos at 1": "y = x / x\nz = y.acos()  # here\nw = 3.0 * z",
    "acosh at 1": "y = x / x\nz = y.acosh()  # here\nw = 3.0 * z",
    "overflow": "y = x * 1e-300\nz = y * 1e200  # here\nw = z * 1e200",
    "long overflow": "y = x * 1e-280\nfor _ in range(7):\n    y = y * 1e40  # here\nw = y * 1e40",
    "sum overflows": "y = x * 1e-300  # here\nw = (y * 1e308 + y * 1e308) * 1.0",
    "quotient": "y = x * 1e-160\nz = 1.0 / y  # here\nw = z * 1e-150",
    "hand-written": (
        "y = gradwalk.Value(1.0, [x])  # here\ny._backward = lambda: setattr(x, 'grad', math.nan)\nw = y + y"
    ),
    "local gradient nan": "y = gradwalk.Value(1.0, (x,), 'hand', local_grads=(math.nan,))  # here\nw = y * 1.0",
    "custom op": "f = custom_op(lambda a: a, lambda a, out: math.inf, check=False)\ny = f(x)  # here\nw = y + 1.0",
    "log at the smallest number": "y = x * 5e-324\nz = y.log()  # here\nw = z + x",
}


def run(source: str, detect: Any, file: str, ieee: Any) -> None:
    """The program in a file of that name, with x = 2; a program that makes w is differentiated."""
    import numpy as np

    import gradwalk.math as gm
    from gradwalk.custom import custom_op

    names: dict[str, Any] = {
        "x": gradwalk.Value(2.0, label="x"), "gradwalk": gradwalk, "math": math, "gm": gm, "np": np, "ieee": ieee,
        "custom_op": custom_op,
    }  # fmt: skip
    code = compile(source, file, "exec")
    with detect:
        exec(code, names)
        if "w" in names:
            names["w"].backward()
