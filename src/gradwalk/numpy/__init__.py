"""NumPy's namespace with arrays that accept Values: `import gradwalk.numpy as np` is the one changed import.

Whatever makes an array of floats makes an `Array` here, of numbers and Values side by side; everything else is
NumPy's own, and comes to `arrays.py` by itself when it meets one. For code that is not to be touched: `everywhere`.
"""

from __future__ import annotations

from typing import Any

import numpy as _numpy

from gradwalk.numpy import linalg as linalg
from gradwalk.numpy import missing as _missing  # noqa: F401  (what it does is asked for by NumPy)
from gradwalk.numpy import order as _order  # noqa: F401
from gradwalk.numpy.arrays import Array
from gradwalk.numpy.elsewhere import everywhere
from gradwalk.numpy.makers import ACCEPTING

__all__ = ["Array", "everywhere"]

globals().update(ACCEPTING)


def __getattr__(name: str) -> Any:
    return getattr(_numpy, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(_numpy)})
