"""Backpropagation over plain Python numbers: readable, fast, and every gradient can be watched."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gradwalk import copies as _copies  # these four give Value methods
from gradwalk import higher_order as _higher_order
from gradwalk import operators as _operators
from gradwalk import show as _show
from gradwalk._version import __version__
from gradwalk.control import ieee, no_grad
from gradwalk.engine import Value
from gradwalk.errors import DivisionByZeroError, DomainError, RangeError
from gradwalk.functions import *
from gradwalk.scopes import scope
from gradwalk.structure import stop_gradient
from gradwalk.walk import walk

# imported when first asked for: most programs need none of them
_LATER = {
    "functional": ("grad", "value_and_grad", "jacobian", "jacfwd", "jacrev", "hessian", "hvp", "jvp", "vjp"),
    "implicit": ("implicit_root", "fixed_point"),
    "sparse": ("sparse_jacobian", "sparse_hessian"),
    "vectorize": ("vmap",),
    "custom": ("custom_op", "checkpoint"),
    "gradient_check": ("gradcheck", "assert_gradients"),
    "blame": ("detect_nonfinite", "gradient_report", "NonFiniteError"),
    "compiler.compile": ("compile",),
    "show.play": ("play",),
}
_MODULE_OF = {name: module for module, names in _LATER.items() for name in names}

if TYPE_CHECKING:
    from gradwalk.blame import NonFiniteError, detect_nonfinite, gradient_report
    from gradwalk.compiler.compile import compile
    from gradwalk.custom import checkpoint, custom_op
    from gradwalk.functional import grad, hessian, hvp, jacfwd, jacobian, jacrev, jvp, value_and_grad, vjp
    from gradwalk.gradient_check import assert_gradients, gradcheck
    from gradwalk.implicit import fixed_point, implicit_root
    from gradwalk.show.play import play
    from gradwalk.sparse import sparse_hessian, sparse_jacobian
    from gradwalk.vectorize import vmap


def __getattr__(name: str) -> Any:
    if name in ("nn", "optim", "math", "numpy", "scipy", "statistics"):
        return import_module(f"gradwalk.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'gradwalk' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"gradwalk.{_MODULE_OF[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})
