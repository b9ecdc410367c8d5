"""Backpropagation over plain Python numbers: readable, fast, and every gradient can be watched."""

from gradwalk import copies as _copies  # these three give Value methods
from gradwalk import higher_order as _higher_order
from gradwalk import show as _show
from gradwalk._version import __version__
from gradwalk.composites import (
    cross_entropy,
    dot,
    layernorm,
    log_softmax,
    logsumexp,
    matvec,
    maximum,
    mean,
    minimum,
    norm,
    rmsnorm,
    softmax,
    sum,
    take,
)
from gradwalk.control import no_grad
from gradwalk.engine import Value
from gradwalk.errors import DivisionByZeroError, DomainError, RangeError, ieee
from gradwalk.functions import *
from gradwalk.scopes import scope
from gradwalk.walk import walk
