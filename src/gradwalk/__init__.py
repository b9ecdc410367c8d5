"""Backpropagation over plain Python numbers: readable, fast, and every gradient can be watched."""

import builtins as _builtins
from importlib import import_module as _import_module
from types import ModuleType as _ModuleType
from typing import TYPE_CHECKING, Any as _Any

from gradwalk import (
    copies as _copies,  # these four give Value methods
    higher_order as _higher_order,
    operators as _operators,
    show as _show,
)
from gradwalk._version import __version__ as __version__
from gradwalk.control import ieee as ieee, no_grad as no_grad
from gradwalk.engine import Value as Value
from gradwalk.errors import (
    DivisionByZeroError as DivisionByZeroError,
    DomainError as DomainError,
    GradwalkWarning as GradwalkWarning,
    NumberError as NumberError,
    RangeError as RangeError,
    did_you_mean as _did_you_mean,
)
from gradwalk.functions import *
from gradwalk.scopes import scope as scope
from gradwalk.structure import stop_gradient as stop_gradient
from gradwalk.walk import walk as walk

# imported when first asked for: most programs need none of them
_LATER = {
    "functional": ("grad", "value_and_grad", "jacobian", "jacfwd", "jacrev", "hessian"),
    "products": ("hvp", "jvp", "vjp"),
    "implicit": ("implicit_root", "fixed_point"),
    "sparse": ("sparse_jacobian", "sparse_hessian"),
    "vectorize": ("vmap",),
    "custom": ("custom_op", "checkpoint"),
    "gradient_check": ("gradcheck", "assert_gradients"),
    "blame": ("detect_nonfinite", "gradient_report", "NonFiniteError"),
    "compiler.compile": ("compile",),
    "show.play": ("play",),
}
_MODULES = ("math", "nn", "numpy", "optim", "scipy", "statistics")
_MODULE_OF = {name: module for module, names in _LATER.items() for name in names}

# `as` tells type checkers that a name is for users
if TYPE_CHECKING:
    from gradwalk import (
        math as math,
        nn as nn,
        numpy as numpy,
        optim as optim,
        scipy as scipy,
        statistics as statistics,
    )
    from gradwalk.blame import (
        NonFiniteError as NonFiniteError,
        detect_nonfinite as detect_nonfinite,
        gradient_report as gradient_report,
    )
    from gradwalk.compiler.compile import compile as compile
    from gradwalk.custom import checkpoint as checkpoint, custom_op as custom_op
    from gradwalk.functional import (
        grad as grad,
        hessian as hessian,
        jacfwd as jacfwd,
        jacobian as jacobian,
        jacrev as jacrev,
        value_and_grad as value_and_grad,
    )
    from gradwalk.gradient_check import assert_gradients as assert_gradients, gradcheck as gradcheck
    from gradwalk.implicit import fixed_point as fixed_point, implicit_root as implicit_root
    from gradwalk.products import hvp as hvp, jvp as jvp, vjp as vjp
    from gradwalk.show.play import play as play
    from gradwalk.sparse import sparse_hessian as sparse_hessian, sparse_jacobian as sparse_jacobian
    from gradwalk.vectorize import vmap as vmap

else:  # a type checker would take it that there is every name

    def __getattr__(name: str) -> _Any:
        if name not in _MODULES and name not in _MODULE_OF:
            raise AttributeError(
                f"module 'gradwalk' has no attribute {name!r}{_did_you_mean(name, __dir__())}", name=name
            )
        try:
            module = _import_module(f"gradwalk.{_MODULE_OF.get(name, name)}")
        except ModuleNotFoundError as error:
            if error.name not in ("numpy", "scipy"):
                raise
            raise ImportError(
                f"gradwalk.{name}: expected {error.name} to be installed; pip install {error.name}", name=error.name
            ) from error
        if name in _MODULES:
            return module
        found = globals()[name] = getattr(module, name)
        return found


_HERE = [name for name, it in globals().items() if name[0] != "_" and not isinstance(it, _ModuleType)]
# for `import *`: no module, and nothing that Python has under the same name
__all__ = sorted({*_HERE, *_MODULE_OF} - {*dir(_builtins), "TYPE_CHECKING"})


def __dir__() -> list[str]:
    """What users use."""
    return sorted({*_HERE, *_MODULE_OF, *_MODULES, "__version__"} - {"TYPE_CHECKING"})
