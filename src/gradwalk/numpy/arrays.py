"""An array in which numbers and Values stand side by side, and what NumPy's functions do with it.

It is an ndarray of objects. NumPy asks it before each ufunc and each function; what NumPy can do by itself on
objects, it does; what it cannot is in `ufuncs.py` and `linalg.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gradwalk.control import is_inside
from gradwalk.errors import NumberError, refused
from gradwalk.math import begun_with_0, isnan
from gradwalk.modes import current
from gradwalk.numpy import ufuncs
from gradwalk.numpy.many import dot, from_first_sum, maximum, minimum
from gradwalk.numpy.many import sum as sum_of
from gradwalk.structure import VALUE_TYPES, is_value, only_type

Function = Callable[..., Any]

HANDLED: dict[Any, Function] = {}  # functions of NumPy that cannot do it by themselves: what does it instead


class Array(np.ndarray):
    """Numbers and Values in one array; what is read out of it is a float or a Value.

    >>> from gradwalk import Value
    >>> a = accepting(np.zeros(3))
    >>> a[1] = Value(2.0)
    >>> np.exp(a)[0]
    1.0
    """

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return apply_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return apply_function(function, args, kwargs)

    def __iter__(self) -> Any:
        """Entries by NumPy's own way; a subclass would be asked for each by its index."""
        return iter(self.view(np.ndarray)) if self.ndim == 1 else super().__iter__()

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        """Floats stay as they are, and with them the Values; anything else is a plain array."""
        if np.dtype(dtype).kind in "fO":
            return self.copy()
        return plain(self).astype(dtype, *args, **kwargs)

    def round(self, decimals: Any = 0, out: Any = None) -> Any:
        """Rounded as NumPy rounds, which is not Python's way to digits; no gradient flows through it."""
        scale = 10.0 ** abs(decimals)
        made = np.rint(self * scale) / scale if decimals > 0 else np.rint(self / scale) * scale
        return made if out is None else _written(made, (out,))

    def sort(self, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> None:
        """As np.sort, in place."""
        self[...] = np.sort(self, axis)

    def partition(self, kth: Any, axis: Any = -1, kind: Any = None, order: Any = None) -> None:
        """As np.partition, in place."""
        self[...] = np.partition(self, kth, axis)

    def dot(self, other: Any, out: Any = None) -> Any:
        """As np.dot."""
        return np.dot(self, other) if out is None else super().dot(other, out)

    def __reduce__(self) -> Any:
        return accepting, (np.array(self.tolist(), object).reshape(self.shape),)


def _method(function: Function) -> Function:
    return functools.wraps(function)(lambda self, *args, **kwargs: function(self, *args, **kwargs))


for _function in (np.argmax, np.argmin, np.argsort, np.argpartition, np.searchsorted):
    setattr(Array, _function.__name__, _method(_function))  # NumPy's own do not ask, and know no nan among objects


def accepting(array: Any) -> Any:
    """The same numbers in an array that accepts Values; what is no array of floats or objects stays as it is."""
    if type(array) is Array or not isinstance(array, np.ndarray) or array.dtype.kind not in "fO":
        return array
    return (array if array.dtype.kind == "O" else array.astype(object)).view(Array)


def has_values(given: Any) -> bool:
    """Whether there is a Value somewhere in this argument."""
    if isinstance(given, np.ndarray):
        return given.dtype.kind == "O" and _has_values(given.ravel().tolist())
    if isinstance(given, list | tuple):
        return any(map(has_values, given))
    return is_value(given)


def _has_values(entries: list[Any]) -> bool:
    kind = only_type(entries)
    return issubclass(kind, VALUE_TYPES) if kind is not None else any(map(is_value, entries))


def plain(given: Any) -> Any:
    """The argument as NumPy knows it: arrays of plain numbers as such."""
    if isinstance(given, np.ndarray) and given.dtype.kind == "O":
        return np.array(given.view(np.ndarray).tolist()) if given.size else np.zeros(given.shape)
    if isinstance(given, Array):  # NumPy's own functions may make one of them of floats
        return given.view(np.ndarray)
    if isinstance(given, list | tuple) and any(isinstance(each, Array | list | tuple) for each in given):
        return type(given)(map(plain, given)) if type(given) in (list, tuple) else given
    return given


def wrapped(made: Any) -> Any:
    """What came out, with arrays that accept Values."""
    if isinstance(made, tuple | list):
        made = [wrapped(each) for each in made] if type(made) is list else (
            tuple(map(wrapped, made)) if type(made) is tuple else made)  # fmt: skip
        return made
    if isinstance(made, np.ndarray) and made.ndim == 0 and made.dtype.kind in "fO":
        return made.item()
    return made.item() if isinstance(made, np.floating) else accepting(made)


def _of_constants(made: Any) -> Any:
    """What was computed from plain numbers: where nothing is differentiated it is data, for whoever takes NumPy's."""
    return wrapped(made) if is_inside() or current().everywhere else made


# ---------------------------------------------------------------- ufuncs


_FLOAT64, _OF_NUMPY, _SEVERAL = np.float64, (np.generic, np.ndarray), (list, tuple)


def _as_number(given: Any) -> Any:
    if not isinstance(given, _OF_NUMPY):
        return given
    number = given.item()
    return float(number) if isinstance(number, np.longdouble) else number


def _is_many(given: Any) -> bool:
    return given.ndim > 0 if isinstance(given, np.ndarray) else isinstance(given, _SEVERAL)


def apply_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The ufunc where a Value, or an array with Values, is among its inputs."""
    try:
        return _applied(ufunc, method, inputs, options)
    except NumberError:
        refused(unlike_floats=1)  # NumPy makes an infinity or nan of them
        raise


def _applied(ufunc: Any, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    if method == "__call__" and not options:
        if len(inputs) == 2 and type(inputs[0]) is _FLOAT64 and type(inputs[1]) in VALUE_TYPES:
            return ufuncs.with_values(ufunc)(inputs[0].item(), inputs[1])  # an entry of an array times a Value
        if not any(map(_is_many, inputs)):
            made = ufuncs.of_numbers(ufunc)(*map(_as_number, inputs))
            return np.bool_(made) if ufunc.__name__ in ufuncs.QUESTIONS else made  # ~ of Python's True is not False
    if method == "at":
        return _apply_at(ufunc, *inputs)
    outs = options.get("out", ())
    if not any(map(has_values, inputs)):
        unwritten = {name: given for name, given in options.items() if name != "out"}
        made = getattr(ufunc, method)(*map(plain, inputs), **unwritten)
        return _written(made, outs) if outs else _of_constants(made)
    if any(isinstance(out, np.ndarray) and out.dtype.kind != "O" for out in outs) and (
        ufunc.__name__ not in ufuncs.QUESTIONS
    ):
        raise TypeError(f"{ufunc.__name__}: {ADVICE}")
    if ufunc.__name__ in ("matmul", "vecdot", "matvec", "vecmat"):
        made = _products(ufunc, inputs, options)
        return _written(made, outs) if outs else wrapped(made)
    arrays = [_as_objects(given) for given in inputs]
    if method == "reduceat":
        arrays[1] = inputs[1]  # places
    options.pop("dtype", None)
    loop = ufuncs.elementwise(ufunc)
    if method == "reduce" and ufunc in _OF_ROWS:
        options.pop("out", None)
        made = _reduced(_OF_ROWS[ufunc], arrays[0], **options)
        return _written(made, outs) if outs else wrapped(made)
    if method == "reduce" and "where" in options:
        options.setdefault("initial", ufunc.identity)  # which a loop over objects has not
    if outs:
        options["out"] = tuple(out.view(np.ndarray) if isinstance(out, np.ndarray) else out for out in outs)
    with np.errstate(all="ignore"):  # a nan that Values are compared with is no news
        made = getattr(loop, method)(*arrays, **options)
    if ufunc.__name__ in ufuncs.QUESTIONS:
        made = made.astype(bool) if isinstance(made, np.ndarray) else np.bool_(made)
    return outs[0] if len(outs) == 1 else outs or wrapped(made)


def _apply_at(ufunc: Any, target: Any, places: Any, *operands: Any) -> None:
    if target.dtype.kind == "O":
        ufuncs.elementwise(ufunc).at(target.view(np.ndarray), places, *map(_as_objects, operands))
    elif has_values(operands):
        raise TypeError(f"{ufunc.__name__}: {ADVICE}")
    else:
        ufunc.at(target, places, *map(plain, operands))


def _written(made: Any, outs: tuple[Any, ...]) -> Any:
    for out, numbers in zip(outs, made if isinstance(made, tuple) else (made,), strict=True):
        if out is not None:
            out[...] = numbers
    return outs[0] if len(outs) == 1 else outs


def _as_objects(given: Any) -> Any:
    """For a loop over objects: arrays give floats, not NumPy's scalars, which would look for arrays in Values."""
    if isinstance(given, np.ndarray):
        return given.view(np.ndarray) if given.dtype.kind in "Ob" else given.astype(object)
    if is_value(given):
        return ufuncs.boxed(given)
    if isinstance(given, list | tuple):
        return np.array(given, object)
    return _as_number(given)


def _products(ufunc: Any, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    left, right = (np.asarray(_as_objects(given)) for given in inputs)
    if ufunc.__name__ != "matmul" or max(left.ndim, right.ndim) > 2 or not left.size or not right.size:
        return each_begun_with_0(ufunc(left, right))
    if left.ndim == 0 or right.ndim == 0 or left.shape[-1] != right.shape[0]:
        raise ValueError(f"matmul: expected shapes that fit, got {left.shape} and {right.shape}")
    rows = left.tolist() if left.ndim == 2 else [left.tolist()]
    columns = right.T.tolist() if right.ndim == 2 else [right.tolist()]
    made = np.empty((len(rows), len(columns)), object)
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            made[i, j] = dot(row, column)  # one node, and a part of a matrix product after compiling
    return made.reshape(left.shape[:-1] + right.shape[1:])


def each_begun_with_0(totals: Any) -> Any:
    """The loop over objects begins with the first term, that over floats with 0."""
    return np.frompyfunc(begun_with_0, 1, 1)(totals)


def _reduced(of_row: Function, array: Any, axis: Any = 0, keepdims: bool = False, initial: Any = np._NoValue,
             where: Any = True) -> Any:  # fmt: skip
    """np.sum, np.max and np.min along axes, one node for each row: NumPy's own loop over objects loses a nan."""
    whole = axis is None or array.ndim == 0  # of a single number, NumPy takes 0 and -1 for an axis
    axes = tuple(range(array.ndim)) if whole else axis if isinstance(axis, tuple) else (axis,)
    rest = array.ndim - len(axes)
    moved, counted = (
        np.moveaxis(each, axes, range(-len(axes), 0)) for each in (array, np.broadcast_to(where, array.shape))
    )
    if of_row is sum_of and initial is not np._NoValue:
        of_row = from_first_sum
    first = [] if initial is np._NoValue or initial is None else [initial]
    made = np.empty(moved.shape[:rest], object)
    for place in np.ndindex(*made.shape):
        row = moved[(*place, ...)] if where is True else moved[(*place, ...)][counted[place]]
        made[place] = of_row(first + row.ravel().tolist())
    return np.expand_dims(made, axes) if keepdims else made


def _of_known(of_row: Function) -> Function:
    return lambda row: of_row([entry for entry in row if not isnan(entry)] or row[:1])


_OF_ROWS: dict[Any, Function] = {np.add: sum_of, np.maximum: maximum, np.minimum: minimum,
                                 np.fmax: _of_known(maximum), np.fmin: _of_known(minimum)}  # fmt: skip

ADVICE = (
    "a Value cannot be written into an array of floats, its gradient would be lost; make the array with "
    "`import gradwalk.numpy as np` or dtype=object, or run the function inside gradwalk.numpy.everywhere()"
)


# ---------------------------------------------------------------- functions


def apply_function(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The function of NumPy where an `Array` or a Value is among its arguments."""
    args, out = _without_out(function, args, kwargs)
    if out is not None:
        return _written(apply_function(function, args, kwargs), out if isinstance(out, tuple) else (out,))
    if function not in _WRITING and not any(map(has_values, (*args, *kwargs.values()))):
        numbers = list(map(plain, args))
        made = function(*numbers, **{name: plain(given) for name, given in kwargs.items()})
        if not any(_is_view(made, copy) for copy, given in zip(numbers, args, strict=True) if copy is not given):
            return _of_constants(made)  # else a view is to be one of the array itself, which may be written into
    if function in HANDLED:
        made = HANDLED[function](*args, **kwargs)
        return made if function in _LIKE else wrapped(made)
    given = tuple(_as_objects(arg).view(Array) if is_value(arg) else arg for arg in args)
    return wrapped(as_numpy_does(function, *given, **kwargs))


def as_numpy_does(function: Any, *args: Any, **kwargs: Any) -> Any:
    """The function itself, which asks nobody what to do instead."""
    return np.ndarray.__array_function__(_EMPTY, function, (Array,), args, kwargs)


def _is_view(made: Any, array: Any) -> bool:
    if isinstance(made, list | tuple):
        return any(_is_view(each, array) for each in made)
    arrays = isinstance(made, np.ndarray) and isinstance(array, np.ndarray) and array.base is None
    return arrays and np.may_share_memory(made, array)


# what is made to be filled: an array of no dimensions stays one
_LIKE = frozenset((np.zeros_like, np.ones_like, np.empty_like, np.full_like))
# what writes into its first argument
_WRITING = frozenset((np.copyto, np.put, np.place, np.putmask, np.fill_diagonal, np.put_along_axis))


def _without_out(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], Any]:
    """The positional arguments, and the array that the result is to be written into."""
    place = _place_of_out(function)
    last = None
    if place is not None and len(args) > place:
        args, last, rest = args[:place], args[place], args[place + 1 :]
        if rest:
            raise TypeError(f"{function.__name__}: expected what comes after out= by its name")
    if function is np.nan_to_num:  # which is told whether to make a copy
        return args, args[0] if kwargs.pop("copy", last) is False else None
    return args, kwargs.pop("out", last)


@functools.cache
def _place_of_out(function: Any) -> int | None:
    """Where it comes if it is given without its name."""
    import inspect

    if function is np.nan_to_num:
        return 1
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # written in C
        return 2 if function in (np.dot, np.concatenate) else None
    names = [parameter.name for parameter in parameters if parameter.kind <= parameter.POSITIONAL_OR_KEYWORD]
    return names.index("out") if "out" in names else None


_EMPTY = np.empty(0, object).view(Array)


def handles(*functions: Any) -> Callable[[Function], Function]:
    """The decorated function does what these functions of NumPy do, on Values."""

    def register(instead: Function) -> Function:
        HANDLED.update(dict.fromkeys(functions, instead))
        return instead

    return register
