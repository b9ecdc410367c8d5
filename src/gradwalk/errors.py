"""What both engines say about bad input, so that the texts cannot differ. Under `ieee()` (control.py) it passes.

The native engine calls these functions too, but only once something is wrong: the fast path never comes here.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Sequence
from numbers import Number, Real
from typing import Any, NamedTuple, NoReturn

from gradwalk.modes import current
from gradwalk.operation import Op, everywhere
from gradwalk.ops import OPS

ENDS_ALL = (RecursionError, MemoryError)  # of these, a second try by each of its callers would be 2**depth tries


def likeliest(name: str, known: Iterable[str]) -> str:
    """The known name that is most like this one, "" where none is; letters that were swapped are the likeliest slip.

    >>> likeliest("tahn", ["tan", "tanh"])
    'tanh'
    """
    from difflib import get_close_matches  # only once something is wrong

    known = list(known)
    swapped = [other for other in known if sorted(other) == sorted(name)]
    return (swapped or get_close_matches(name, known, 1) or [""])[0]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The same as the end of a message.

    >>> did_you_mean("sofmax", ["softmax", "sum"])
    "; did you mean 'softmax'?"
    """
    meant = likeliest(name, known)
    return f"; did you mean {meant!r}?" if meant else ""


class GradwalkWarning(RuntimeWarning):
    """Whatever gradwalk warns of, so that `warnings` can be told about it alone."""


class WorkerError(RuntimeError):
    """Workers of an executor died, or it cannot be reached, and their work could not be done by others."""


class Refusals(NamedTuple):
    """How often a number was refused: a function that catches the error branches on it."""

    operations: int = 0  # as in log(-1)
    unlike_floats: int = 0  # where floats are not, as in float(v): it does something else than it does with floats
    unlike_numpys: int = 0  # where NumPy's floats are not: x / 0 is an infinity if x is an entry of an array


class _Refused(threading.local):
    so_far = Refusals()


_refused = _Refused()


def refusals() -> Refusals:
    """Those of this thread."""
    return _refused.so_far


def refused(operations: int = 0, unlike_floats: int = 0, unlike_numpys: int = 0) -> None:
    """Count what was refused."""
    before = _refused.so_far
    _refused.so_far = Refusals(
        before.operations + operations, before.unlike_floats + unlike_floats, before.unlike_numpys + unlike_numpys
    )


def refused_like_floats(before: Refusals) -> None:
    """Of the refusals since then, none was unlike those of floats."""
    _refused.so_far = before._replace(operations=_refused.so_far.operations)


class NumberError(Exception):
    """An operation was given a number it can do nothing with; each kind is also what plain floats raise, and only that.

    So `except ValueError` around a division goes on letting it pass, as it does without gradwalk.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        refused(operations=1)


class DomainError(NumberError, ValueError):
    """An operation was given a number it is not defined for, such as the logarithm of -1."""


class DivisionByZeroError(NumberError, ZeroDivisionError):
    """A division by zero, or 0 to a negative power."""


class RangeError(NumberError, OverflowError):
    """A finite input whose result is too large for a float."""


def refusal(message: str) -> TypeError:
    """To be raised where a number would be fixed, or lose its gradient: counted."""
    refused(unlike_floats=1)
    return TypeError(message)


def add_note(error: BaseException, note: str) -> None:
    """A line below the error's own text; before Python 3.11, which has none below it, a part of the text."""
    if hasattr(error, "add_note"):
        error.add_note(note)
    elif len(error.args) == 1 and isinstance(error.args[0], str):
        error.args = (f"{error.args[0]}\n{note}",)
    else:
        error.args = (*error.args, note)


_POWERS = ("pow", "pow_number")


def check_domain(op: Op, numbers: Sequence[float], inputs: Sequence[Any]) -> None:
    """Raise unless `numbers` are in the domain of `op`; a nan passes through, but for nan / 0, as with floats."""
    if op.domain is everywhere or op.domain(*numbers) or current().ieee:
        return
    if any(map(math.isnan, numbers[1:] if op.name == "div" else numbers)):
        return
    is_power = op.name in _POWERS
    is_division = op.name == "div" or (is_power and numbers[0] == 0.0)  # to a negative exponent: 1 over 0
    # of a float, the power would be a complex number
    refused(unlike_floats=is_power and not is_division, unlike_numpys=is_power or is_division)
    kind = DivisionByZeroError if is_division else DomainError
    advice = "clamp the input or use gradwalk.ieee()" if op.name != "clamp" else "swap them"
    raise kind(f"{op.called_by}: expected {op.expected}, got {_shown_inputs(op, numbers, inputs)}; {advice}")


def check_range(op: Op, numbers: Sequence[float], out: float, inputs: Sequence[Any]) -> None:
    """Raise if finite `numbers` gave an infinite `out`, for operations that say they can overflow."""
    if not op.overflows or not math.isinf(out) or current().ieee or not all(map(math.isfinite, numbers)):
        return
    refused(unlike_numpys=op.name in _POWERS)
    shown = _shown_inputs(op, numbers, inputs)
    raise RangeError(f"{op.called_by}: the result overflows, got {shown}; scale the input down or use gradwalk.ieee()")


def _shown_inputs(op: Op, numbers: Sequence[float], inputs: Sequence[Any]) -> str:
    labels = [getattr(value, "label", "") for value in inputs] + [""] * len(op.parameters)
    parts = [
        (f"{name} = " if len(numbers) > 1 else "") + repr(number) + (f" (node {label!r})" if label else "")
        for name, number, label in zip(op.names, numbers, labels, strict=True)
    ]
    return ", ".join(parts)


def check_op(name: str, numbers: Sequence[float], out: float, inputs: Sequence[Any]) -> None:
    """Both checks, for the native engine, which knows operations by name."""
    check_domain(OPS[name], numbers, inputs)
    check_range(OPS[name], numbers, out, inputs)


def number_from(given: Any, operation: str, beside: Any = None) -> Any:
    """`given` as a float, NotImplemented for what may know how to handle a Value itself, else a TypeError."""
    if type(given) is float:
        return given
    if beside is not None and getattr(type(given), "knows_values", False):
        return NotImplemented
    if isinstance(given, Real):
        try:
            return float(given)
        except OverflowError:
            raise RangeError(
                f"{operation}: expected a number that fits a float, got a larger {type(given).__name__}; scale it down"
            ) from None
    if beside is not None and not isinstance(given, str | bytes | complex | list | tuple | dict | set | None):
        return NotImplemented
    is_value = hasattr(given, "_local_grads")
    label = getattr(beside, "label", "")
    raise TypeError(
        f"{operation}: expected {'a number' if is_value else 'a number or a Value'}, got {_shown(given)}"
        + (f" beside node {label!r}" if label else "")
        + ("; take its .data" if is_value else "; take its .real and .imag" if isinstance(given, complex)
           else "; convert it to a float first")
    )  # fmt: skip


def number_to_compare(given: Any, sign: str, beside: Any) -> Any:
    """The sign and the float that stand for a comparison with `given`, a number of any type, as Python makes it: exact.

    >>> number_to_compare(2**53 + 1, "<", None), number_to_compare(2**53 + 1, "==", None)
    (('<=', 9007199254740992.0), ('==', nan))
    """
    if getattr(type(given), "knows_values", False):
        return NotImplemented
    if sign in ("==", "!="):
        if isinstance(given, complex):
            given = given.real if given.imag == 0.0 else math.nan
        if not isinstance(given, Number):
            return NotImplemented  # whoever it is may know; else Python takes them as different
    elif not isinstance(given, Real):
        return number_from(given, "compare", beside)
    try:
        number = float(given)
    except OverflowError:
        number = math.inf if given > 0 else -math.inf
    if number == given or number != number:
        return sign, number
    if sign in ("==", "!="):
        return sign, math.nan  # no float is equal to it
    below = number < given  # between the two there is no other float
    return ("<=" if below else "<") if sign[0] == "<" else (">" if below else ">="), number


def _shown(given: Any) -> str:
    if given is None or isinstance(given, str | bytes | complex):
        return f"{given!r} ({type(given).__name__})" if given is not None else "None"
    return f"a {type(given).__name__}"


def described(given: Any) -> str:
    """What was given, for a message: its kind and size, or itself if it is short.

    >>> described([1.0, 2.0]), described(3), described("text")
    ('a list of 2', 'an int', "'text'")
    """
    shape = getattr(given, "shape", None)
    if given is None or isinstance(given, bool | str) or shape == ():
        return repr(given)
    if isinstance(shape, tuple) and hasattr(given, "dtype"):
        return f"an array of shape {shape} and dtype {given.dtype}"
    name = type(given).__name__
    count = f" of {len(given)}" if hasattr(given, "__len__") and not isinstance(given, type) else ""
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}{count}"


ARRAYS = (
    "for an array that takes Values, `import gradwalk.numpy as np`, dtype=object, or gradwalk.numpy.everywhere() "
    "around code that is not to be touched"
)
# what NumPy says of an array of objects that it cannot compute with
_OF_OBJECTS = "has no callable", "dtype('O')", "could not be safely coerced"


def advise_on_arrays(error: TypeError) -> None:
    """Raise NumPy's error about an array with Values in it once more, with what to do; any other is left alone."""
    if any(words in str(error) for words in _OF_OBJECTS):
        raise TypeError(f"{error}; {ARRAYS}") from error


def refuse_conversion(value: Any) -> NoReturn:
    """float(v), int(v) and math.exp(v) would drop the gradient without a word."""
    label = value.label
    node = f"node {label!r}" if label else "a Value"
    raise refusal(
        f"float: {node} does not turn into a plain number by itself, its gradient would be lost; compute with "
        "gradwalk's own functions (gradwalk.exp(v) or v.exp(), not math.exp(v); gradwalk.math, gradwalk.statistics); "
        f"{ARRAYS}; .data is the number alone"
    )


ENDLESS = "expected numbers in a structure that ends, got one that contains itself; give the numbers in it alone"


def refuse_backward(value: Any) -> NoReturn:
    """A node made by hand with children, but without local gradients, and no `_backward` assigned."""
    label = f" (node {value.label!r})" if value.label else ""
    raise TypeError(
        f"backward: expected local_grads or an assigned _backward on the node made by hand as {value._op!r}{label}, "
        "got neither; its children would get no gradient"
    )


def refuse_label(given: Any) -> NoReturn:
    raise TypeError(f"label: expected a string, got {given!r}")
