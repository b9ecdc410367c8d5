"""Derivatives of ordinary Python functions: grad, value_and_grad, jacobian, hessian, and products with them.

A function is run once on Values; what it recorded is walked backward (one pass per output) or forward (one sweep per
input). A compiled function is replayed by its programs instead. Given Values, or used inside one another, these
functions return Values, so they nest to any order.
"""

from __future__ import annotations

import functools
import inspect
import math
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, Protocol, TypeVar, overload

from gradwalk import engine, higher_order
from gradwalk.control import changed, differentiated, is_differentiated
from gradwalk.engine import Value
from gradwalk.errors import RangeError, advise_on_arrays, described, number_from, refusals
from gradwalk.lost_derivatives import Comparisons, warn_of_caught, warn_of_rounding
from gradwalk.modes import current
from gradwalk.passed_twice import Watching, repeated, together
from gradwalk.structure import (
    ARRAY,
    ONE,
    ROW,
    Shape,
    Source,
    Structure,
    array_of,
    array_structure,
    flatten,
    is_number,
    is_value,
    values_among,
)

Function = Callable[..., Any]
Argnums = int | str | Sequence[int | str]
_PLACE = int, str

# A sweep forward runs in Python and a pass backward in C, over what one output depends on only: measured on native
# Values, one sweep costs about as much as this many passes (benchmarks/functional.py).
PASSES_PER_SWEEP = 200
_NONE = frozenset[int]()
_FLAT = (ONE, ROW, ARRAY)  # with nothing in it that could be there twice


def is_nested() -> bool:
    """Whether a derivative of a derivative is being taken."""
    return current().derivatives > 1


# ---------------------------------------------------------------- functions that know their derivatives


class Replayed:
    """What this module asks of a compiled function, which it takes instead of recording the plain one."""

    function: Function  # the plain one

    def run_at(self, args: Any, kwargs: Any, places: list[int | str], in_tuple: bool, of_gradient: bool) -> Any:
        """As a `Recording` of the function, or of its gradient; None where it has to be recorded.

        `places` are positions and names of the arguments to differentiate by; `in_tuple`: their structures as one.
        """
        raise NotImplementedError

    def value_and_gradient_at(self, array: Any) -> tuple[float, Any] | None:
        """The value, and the gradient by one array that is the only argument; None where it takes `run_at`."""
        raise NotImplementedError

    def product_at(self, array: Any, direction: Any) -> Any:
        """The Hessian times the direction, an array like the only argument; None where it takes `run_at`."""
        raise NotImplementedError

    def map(self, inputs: Any) -> list[Any]:
        """The function of each input (a tuple: of several arguments), in one pass."""
        raise NotImplementedError


# ---------------------------------------------------------------- running a function on Values


class Recording:
    """One run of a function: the Values it was given, what it returned, and whether derivatives are Values too."""

    def __init__(
        self, what: str, function: Function, args: Any, kwargs: Any, argnums: Argnums, forward: bool = False
    ) -> None:
        self.what = what
        places = places_of(what, function, args, kwargs, argnums)
        numbers: Any = []
        structures: dict[int | str, Structure] = {}  # an argument that is asked for twice is one
        for place in places if len(places) == 1 else dict.fromkeys(places):
            before = len(numbers)
            given = args[place] if isinstance(place, int) else kwargs[place]
            if len(places) == 1 and (structure := array_structure(given)) is not None:
                structures, numbers = {place: structure}, given.reshape(-1)
                break
            try:
                structures[place] = flatten(given, numbers)
            except TypeError as error:
                raise TypeError(f"{what}: argument {place!r}: {error}") from None
            if len(numbers) == before and not _is_empty(given):
                got = described(given) + _advice_on_argument(given)
                raise TypeError(f"{what}: expected numbers in argument {place!r}, got {got}")
        self.structure = structures[places[0]] if isinstance(argnums, _PLACE) else together(structures, places)
        given_values = values_among(numbers) if type(numbers) is list else []
        self.cls: Any = type(given_values[0]) if given_values else engine.Value
        self.inputs = [_input(number, self.cls, what) for number in numbers] if given_values else self._leaves(numbers)
        positional, named = list(args), dict(kwargs)
        alone = len(args) == 1 and not kwargs and structures[places[0]].key[0] in _FLAT
        shared = _NONE if alone else repeated((*args, *kwargs.values()))
        watching = Watching(self.inputs, shared) if shared else None
        source = watching or (Source(self.inputs, as_argument=True) if len(structures) > 1 else None)
        for place, structure in structures.items():
            argument = source.filled(structure.key, structure.like) if source else structure.fill(self.inputs, True)
            if isinstance(place, int):
                positional[place] = argument
            else:
                named[place] = argument
        # what is given as Values will be differentiated by somebody else, too; what goes forward has to be recorded,
        # like that, operation by operation: a node with a _backward of its own is for going back
        modes, levels = current(), 2 if given_values or forward else 1
        self.compared, refused = Comparisons(self.cls, modes.on_compare), refusals()
        # inside no_grad() too, a derivative that was asked for is computed
        key = id(self)
        with changed(no_grad=False, derivatives=modes.derivatives + levels, on_compare=self.compared.remember):
            try:
                differentiated[key] = self.inputs
                if watching is None:
                    self.result = function(*positional, **named)
                else:
                    self.result = watching.applied(what, function, positional, named)
            except TypeError as error:
                advise_on_arrays(error)
                raise
            finally:
                try:
                    differentiated.pop(key, None)
                finally:  # once more, for where a signal came in the middle, or memory ended
                    differentiated.pop(key, None)
        if refusals() != refused:
            warn_of_caught(what, refused, [structure.key for structure in structures.values()])
        self.outputs: list[Any] = []
        self.foreign: list[Any] | None = None  # leaves that are not inputs: Values the function closes over
        self.with_graph = bool(given_values) or modes.on_read is not None  # a number would be fixed in a trace

    def _leaves(self, numbers: Any) -> list[Any]:
        try:
            return self.cls._leaves(numbers)  # type: ignore[no-any-return]
        except RangeError:
            return [self.cls(number_from(number, self.what)) for number in numbers]  # who was called, says so

    # ------------------------------------------------------------ what came out

    def one_output(self) -> Any:
        """The result as one number; whatever else it is, is refused in one sentence."""
        result = self.result
        known = type(result) is self.cls or is_number(result)
        if not known and getattr(result, "size", None) == 1 and hasattr(result, "item"):
            result = result.item()  # an array of one number
        if not known and not is_number(result):
            advice = _advice_on_result(result, "use gradwalk.jacobian for several outputs")
            raise TypeError(f"{self.what}: expected the function to return one number, got {described(result)}{advice}")
        self.outputs = [result]
        self._settle()
        return result if self.with_graph else _plain(result)

    def all_outputs(self) -> Structure:
        """The result's structure; its numbers become the outputs."""
        try:
            structure = flatten(self.result, self.outputs)
        except TypeError as error:
            raise TypeError(f"{self.what}: the function's result: {error}") from None
        if not self.outputs and not _is_empty(self.result):
            got = described(self.result) + _advice_on_result(self.result, "")
            raise TypeError(f"{self.what}: expected the function to return numbers, got {got}")
        self._settle()
        return structure

    def _settle(self) -> None:
        """Inside another derivative, what depends on a Value from outside has to stay differentiable by it."""
        if not self.with_graph and current().derivatives:
            self.with_graph = bool(self._foreign_leaves())
        elif not self.with_graph and differentiated:  # in another thread
            self.with_graph = any(map(is_differentiated, self._foreign_leaves()))

    def _foreign_leaves(self) -> list[Any]:
        if self.foreign is None:
            own = set(self.inputs)
            order = engine.topological_order(self.above())
            self.foreign = [node for node in order if not node._children and not node._constant and node not in own]
        return self.foreign

    def _root(self, weights: Sequence[Any]) -> Any:
        """One node above all outputs, which hands each its weight."""
        return self.cls(0.0, self.outputs, "outputs", local_grads=list(map(_plain, weights)))

    def above(self) -> Any:
        """The same, for whoever asks only for what lies below."""
        return self._root([0.0] * len(self.outputs))

    # ------------------------------------------------------------ walking it

    def backward(self, weights: Sequence[Any]) -> list[Any]:
        """The derivative of the weighted sum of the outputs by each input."""
        if self.with_graph or any(map(is_value, weights)):
            return self._backward_with_graph(weights)
        return self._told(engine.gradients_of(self._root(weights), self.inputs))

    def row(self, i: int) -> list[Any]:
        """The derivative of one output by each input."""
        if self.with_graph:
            return self._backward_with_graph(_one_hot(len(self.outputs), i))
        output = self.outputs[i]
        return self._told(engine.gradients_of(output, self.inputs) if is_value(output) else [0.0] * len(self.inputs))

    def _told(self, found: list[Any]) -> list[Any]:
        """What was found; with a warning if it is 0 because the function searched by comparing, or rounds."""
        if self.compared.sides and any(map(_is_zero, found)):
            names = list(self.structure.names("the argument"))
            self.compared.warn(self.what, self.above(), self.inputs, names)
        if found and _is_zero(found[0]) and all(map(_is_zero, found)):
            warn_of_rounding(self.what, self.above(), self.inputs)
        return found

    def _backward_with_graph(self, weights: Sequence[Any]) -> list[Any]:
        gradients: dict[Any, Any] = {}
        for output, weight in zip(self.outputs, weights, strict=True):
            if is_value(output):
                gradients[output] = gradients[output] + weight if output in gradients else weight
        order = engine.topological_order(self.above())[:-1]
        with changed(on_compare=self.compared.told_too):  # of what the rows of the table compare, only a trace is told
            gradients = higher_order.pulled_back(order, gradients, set(self.inputs), higher_order.local_grads_of)
        return self._told([gradients.get(leaf, 0.0) for leaf in self.inputs])

    def forward(self, tangents: Sequence[Any]) -> list[Any]:
        """How fast each output changes as the inputs move along `tangents`: one sweep in the order of recording."""
        with_graph = self.with_graph or any(map(is_value, tangents))
        rule = higher_order.local_grads_of if with_graph else self._local_grads_of
        order = engine.topological_order(self.above())[:-1]
        with changed(on_compare=self.compared.told_too):
            moving = higher_order.pushed_forward(order, dict(zip(self.inputs, tangents, strict=True)), rule)
        return self._told([moving.get(output, 0.0) if is_value(output) else 0.0 for output in self.outputs])

    def _local_grads_of(self, node: Any) -> Sequence[float]:
        local_grads: Sequence[float] = node._local_grads
        if not local_grads:
            raise TypeError(
                f"{self.what}: expected local gradients on every node, got one with a hand-written _backward, "
                f"made as {node._op!r}; go backward through it (vjp, or jacobian with mode='reverse')"
            )
        return local_grads

    def _can_go_forward(self) -> bool:
        order = engine.topological_order(self.above())
        return all(node._local_grads or not node._children for node in order)

    def rows(self, mode: str | None) -> list[list[Any]]:
        """The whole Jacobian, a row for each output."""
        inputs, outputs = len(self.inputs), len(self.outputs)
        if mode == "forward" or (mode is None and inputs * PASSES_PER_SWEEP < outputs and self._can_go_forward()):
            columns = [self.forward(_one_hot(inputs, i)) for i in range(inputs)]
            return [list(row) for row in zip(*columns, strict=True)]
        return [self.row(i) for i in range(outputs)]


def _input(number: Any, cls: Any, what: str) -> Any:
    if not is_value(number):
        return cls(number_from(number, what))
    own = number * 1.0  # a node of its own, so that the same Value used by the function directly stays apart from it
    if number.label:
        own.label = number.label
    return own


def _is_zero(number: Any) -> bool:
    """A plain one: what is a Value may be computed with."""
    return type(number) is float and number == 0.0


def _plain(number: Any) -> float:
    return float(number.data) if is_value(number) else float(number)


def _is_empty(given: Any) -> bool:
    return hasattr(given, "__len__") and not isinstance(given, str | bytes) and len(given) == 0


def _advice_on_argument(given: Any) -> str:
    if hasattr(given, "__next__"):
        return "; give a list"
    if hasattr(given, "astype"):
        return "; convert it with .astype(float) first"
    return "; convert it with float() first" if isinstance(given, bool | str) or hasattr(given, "__float__") else ""


def _advice_on_result(result: Any, of_many: str) -> str:
    if result is None:
        return "; is a return missing?"
    if hasattr(result, "__next__"):
        return "; return a list"
    if isinstance(result, bool):
        return "; a comparison has no gradient"
    if isinstance(result, complex):
        return "; take its .real or .imag"
    return f"; {of_many}" if of_many and hasattr(result, "__len__") and not isinstance(result, str) else ""


def run_of(what: str, f: Function, args: Any, kwargs: Any, argnums: Argnums, order: int = 1, one: bool = False,
           forward: bool = False) -> Any:  # fmt: skip
    """The function (order 2: its gradient) at these arguments: by the programs of a compiled one, else recorded.

    A compiled function is recorded like a plain one where its derivative has to be a graph again.
    """
    if isinstance(f, Replayed) and not current().derivatives:
        places = places_of(what, f, args, kwargs, argnums)
        run = f.run_at(args, kwargs, places, not isinstance(argnums, _PLACE), order == 2)
        if run is not None and (not one or run.single):
            return run
    plain = f.function if isinstance(f, Replayed) else f
    return Recording(what, plain if order == 1 else Gradient(what, plain, argnums), args, kwargs, argnums, forward)


# ---------------------------------------------------------------- which arguments


def _check_argnums(what: str, argnums: Any) -> None:
    several = argnums if isinstance(argnums, Sequence) and not isinstance(argnums, str) else [argnums]
    if not several or not all(isinstance(one, _PLACE) and not isinstance(one, bool) for one in several):
        raise TypeError(f"{what}: expected argnums to be positions or names of arguments, got {argnums!r}")


def places_of(what: str, function: Function, args: Any, kwargs: Any, argnums: Argnums) -> list[int | str]:
    """Where the call has these arguments: positions and keywords."""
    if type(argnums) is int and 0 <= argnums < len(args):  # the common case, quickly
        return [argnums]
    several = [argnums] if isinstance(argnums, _PLACE) else argnums
    return [_place_of(what, function, args, kwargs, argnum) for argnum in several]


def _place_of(what: str, function: Function, args: Any, kwargs: Any, argnum: int | str) -> int | str:
    if isinstance(argnum, int) and -len(args) <= argnum < len(args):
        return argnum % len(args)
    if argnum in kwargs:
        return argnum
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # a builtin may not tell
        names = []
    if isinstance(argnum, str) and argnum in names and names.index(argnum) < len(args):
        return names.index(argnum)
    if isinstance(argnum, int) and 0 <= argnum < len(names) and names[argnum] in kwargs:
        return names[argnum]
    known = f"; the function's are {', '.join(names)}" if names else ""
    raise TypeError(f"{what}: expected a call with argument {argnum!r}, got {len(args)} positional{known}")


CALLS = {"jvp": "(f)(x, v)", "vjp": "(f)(x, u)", "hvp": "(f)(x, p)", "gradcheck": "(f, x)"}


def checked(what: str, function: Function, argnums: Argnums) -> Function:
    """The function, if it can be called and `argnums` can say which arguments are meant."""
    if not callable(function):
        call = what + CALLS.get(what, "(f)(x)")
        raise TypeError(f"{what}: expected a function, got {described(function)}; write {call}")
    _check_argnums(what, argnums)
    return function


# ---------------------------------------------------------------- for users

# What type checkers are told: the first argument comes out as it went in. What is differentiated may be annotated as
# plain numbers, or as the Values that the function is given; whoever calls the derivative may then give either.

A = TypeVar("A")
C = TypeVar("C")
X = TypeVar("X", contravariant=True)
Out = TypeVar("Out", covariant=True)
P = ParamSpec("P")
OfFirst = Callable[Concatenate[A, P], Any]


class OfValues(Protocol[X, P, Out]):
    """A derivative of a function that is annotated with Values: of the plain numbers `X` it is `Out`."""

    @overload
    def __call__(self, x: X, /, *args: P.args, **kwargs: P.kwargs) -> Out: ...
    @overload
    def __call__(self, x: Any, /, *args: P.args, **kwargs: P.kwargs) -> Any: ...


if TYPE_CHECKING:

    class Given(Value):
        """What a lambda is thought to be given: a Value, or a structure of them."""

        def __getitem__(self, place: Any) -> Any: ...
        def __iter__(self) -> Iterator[Any]: ...
        def __len__(self) -> int: ...


@overload
def value_and_grad(
    f: Callable[Concatenate[A, P], tuple[Any, C]], argnums: Literal[0] = 0, *, has_aux: Literal[True]
) -> Callable[Concatenate[A, P], tuple[tuple[float, C], A]]: ...
@overload
def value_and_grad(f: OfFirst[Given, P], argnums: Literal[0] = 0) -> OfValues[float, P, tuple[float, float]]: ...
@overload
def value_and_grad(
    f: OfFirst[list[Value], P], argnums: Literal[0] = 0
) -> OfValues[list[float], P, tuple[float, list[float]]]: ...
@overload
def value_and_grad(f: OfFirst[A, P], argnums: Literal[0] = 0) -> Callable[Concatenate[A, P], tuple[float, A]]: ...
@overload
def value_and_grad(
    f: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False, argnum: Argnums | None = None
) -> Callable[P, tuple[Any, Any]]: ...
def value_and_grad(f: Function, argnums: Argnums = 0, has_aux: bool = False, argnum: Argnums | None = None) -> Any:
    """f's value and its gradient by the arguments `argnums` (positions or names; also `argnum`), in one run.

    With `has_aux`, f returns its value and anything besides, and so does this: `((value, besides), gradient)`.

    >>> value_and_grad(lambda x: x[0] * x[1])([3.0, 4.0])
    (12.0, [4.0, 3.0])
    """
    kind = ValueAndGradientWithAux if has_aux else ValueAndGradient
    return kind("value_and_grad", f, argnums if argnum is None else argnum)


class Derivative:
    """A derivative of a function, called as the function is; it can be a method, and pickles if the function does."""

    def __init__(self, what: str, f: Function, argnums: Argnums, *options: Any) -> None:
        functools.update_wrapper(self, checked(what, f, argnums), updated=())
        self.what, self.f, self.argnums, self.options = what, f, argnums, options
        self._replayed = f if isinstance(f, Replayed) and argnums == 0 else None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def _both(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        """The value and the gradient."""
        if self._replayed is not None and len(args) == 1 and not kwargs:
            both = self._replayed.value_and_gradient_at(args[0])
            if both is not None:
                return both
        run = run_of(self.what, self.f, args, kwargs, self.argnums, one=True)
        value = run.one_output()
        return value, run.structure.fill(run.row(0))

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self) -> Any:
        return name_of(self) or (type(self), (self.what, self.f, self.argnums, *self.options))


def name_of(it: Any) -> str | None:
    """The name by which its module knows an object, for pickle; None if it does not."""
    found: Any = sys.modules.get(getattr(it, "__module__", ""))
    name: str = getattr(it, "__qualname__", "")
    for part in name.split("."):
        found = getattr(found, part, None)
    return name if found is it else None


class ValueAndGradient(Derivative):
    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        return self._both(args, kwargs)


class ValueAndGradientWithAux(Derivative):
    def __call__(self, *args: Any, **kwargs: Any) -> tuple[tuple[Any, Any], Any]:
        run = Recording(self.what, self.f, args, kwargs, self.argnums)
        if not isinstance(run.result, tuple) or len(run.result) != 2:
            got = described(run.result)
            raise TypeError(f"{self.what}: expected a function that returns its value and more, got {got}")
        run.result, besides = run.result
        value = run.one_output()
        gradient = run.structure.fill(run.row(0))
        if not run.with_graph:
            numbers: list[Any] = []
            besides = flatten(besides, numbers).fill(list(map(_plain, numbers)))
        return (value, besides), gradient


@overload
def grad(
    f: Callable[Concatenate[A, P], tuple[Any, C]], argnums: Literal[0] = 0, *, has_aux: Literal[True]
) -> Callable[Concatenate[A, P], tuple[A, C]]: ...
@overload
def grad(f: OfFirst[Given, P], argnums: Literal[0] = 0) -> OfValues[float, P, float]: ...
@overload
def grad(f: OfFirst[list[Value], P], argnums: Literal[0] = 0) -> OfValues[list[float], P, list[float]]: ...
@overload
def grad(f: OfFirst[A, P], argnums: Literal[0] = 0) -> Callable[Concatenate[A, P], A]: ...
@overload
def grad(
    f: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False, argnum: Argnums | None = None
) -> Callable[P, Any]: ...
def grad(f: Function, argnums: Argnums = 0, has_aux: bool = False, argnum: Argnums | None = None) -> Any:
    """The gradient of f by the arguments `argnums`, in their structure. Nest it for higher derivatives.

    With `has_aux`, f returns its value and anything besides, and this `(gradient, besides)`.

    >>> grad(lambda x: x**3)(2.0)
    12.0
    >>> grad(grad(lambda x: x**3))(2.0)
    12.0
    >>> grad(lambda a, b: a * b, argnums="b")(2.0, b=5.0)
    2.0
    """
    return (GradientWithAux if has_aux else Gradient)("grad", f, argnums if argnum is None else argnum)


class Gradient(Derivative):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._both(args, kwargs)[1]


class GradientWithAux(ValueAndGradientWithAux):
    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        (_, besides), gradient = super().__call__(*args, **kwargs)
        return gradient, besides


@overload
def jacobian(
    f: Callable[Concatenate[A, P], float], argnums: Literal[0] = 0, mode: str | None = None
) -> Callable[Concatenate[A, P], A]: ...
@overload
def jacobian(
    f: Callable[Concatenate[A, P], list[float]], argnums: Literal[0] = 0, mode: str | None = None
) -> Callable[Concatenate[A, P], list[A]]: ...
@overload
def jacobian(f: Callable[P, Any], argnums: Argnums = 0, mode: str | None = None) -> Callable[P, Any]: ...
def jacobian(f: Function, argnums: Argnums = 0, mode: str | None = None) -> Any:
    """Every output's gradient: f's structure, with the arguments' structure in place of each number.

    An array of shape (m,) by an array of shape (n,) is one array of shape (m, n). It goes forward or in `reverse`,
    whichever is less work for the numbers of inputs and outputs, unless `mode` says which.

    >>> jacobian(lambda x, y: [x * y, x + y], argnums=(0, 1))(2.0, 3.0)
    [(3.0, 2.0), (1.0, 1.0)]
    """
    if mode not in (None, "forward", "reverse"):
        raise ValueError(f"jacobian: expected mode 'forward' or 'reverse', got {mode!r}")
    return Jacobian("jacobian", f, argnums, mode, 1)


def jacfwd(f: Callable[P, Any], argnums: Argnums = 0) -> Callable[P, Any]:
    """The Jacobian, by sweeps forward."""
    return jacobian(f, argnums, mode="forward")


def jacrev(f: Callable[P, Any], argnums: Argnums = 0) -> Callable[P, Any]:
    """The Jacobian, by passes backward."""
    return jacobian(f, argnums, mode="reverse")


class Jacobian(Derivative):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        mode, order = self.options
        run = run_of(self.what, self.f, args, kwargs, self.argnums, order, forward=mode == "forward")
        outputs = run.all_outputs()
        rows = run.rows(mode)

        def of_output(output: int, output_shape: Shape) -> Any:
            if output_shape is None:
                return run.structure.fill(rows[output])
            return run.structure.build(lambda entry, shape: _block(rows, output, output_shape, entry, shape))

        return outputs.build(of_output)


def _one_hot(count: int, position: int) -> list[float]:
    return [1.0 if i == position else 0.0 for i in range(count)]


def _block(rows: Any, output: int, output_shape: tuple[int, ...], entry: int, shape: Shape) -> Any:
    """An array of outputs by one input, or by an array of them."""
    height, width = math.prod(output_shape), math.prod(shape or ())
    if not isinstance(rows, list):
        return rows[output : output + height, entry : entry + width].reshape(output_shape + (shape or ()))
    numbers = [number for row in rows[output : output + height] for number in row[entry : entry + width]]
    return array_of(numbers, output_shape + (shape or ()))


def hessian(f: Callable[P, Any], argnums: Argnums = 0) -> Callable[P, Any]:
    """All second derivatives of f: the arguments' structure, within the arguments' structure.

    >>> hessian(lambda x: x[0] ** 2 * x[1])([3.0, 5.0])
    [[10.0, 6.0], [6.0, 0.0]]
    """
    return Jacobian("hessian", f, argnums, "reverse", 2)
