"""Functions of SciPy on Values: `from gradwalk.scipy import special, stats, integrate`.

SciPy's ufuncs (erf, gammaln, expit, …) take Values by themselves, see gradwalk.numpy; here are those that do not.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["integrate", "special", "stats"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return import_module(f"gradwalk.scipy.{name}")
    raise AttributeError(f"module 'gradwalk.scipy' has no attribute {name!r}")
