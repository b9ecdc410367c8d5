"""Derivatives of ordinary Python functions: grad, value_and_grad, jacobian, hessian, and products with them.

A function is run once on Values; what it recorded is walked backward (one pass per output) or forward (one sweep per
input). Given Values, or used inside one another, these functions return Values, so they nest to any order.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from gradwalk import engine, higher_order
from gradwalk.control import modes
from gradwalk.errors import ieee, number_from
from gradwalk.structure import Part, Shape, array_of, flatten, is_number, is_value, together, values_among

Function = Callable[..., Any]
Argnums = int | str | Sequence[int | str]

# A sweep forward runs in Python and a pass backward in C, over what one output depends on only: measured on native
# Values, one sweep costs about as much as this many passes (benchmarks/functional.py).
PASSES_PER_SWEEP = 200


class _Depth(threading.local):
    running = 0


_depth = _Depth()


# ---------------------------------------------------------------- running a function on Values


class Recording:
    """One run of a function: the Values it was given, what it returned, and whether derivatives are Values too."""

    def __init__(self, what: str, function: Function, args: Any, kwargs: Any, argnums: Argnums) -> None:
        self.what = what
        places = [_place(what, function, args, kwargs, argnum) for argnum in _listed(argnums)]
        numbers: list[Any] = []
        parts = []
        for place in places:
            before = len(numbers)
            given = args[place] if isinstance(place, int) else kwargs[place]
            try:
                parts.append(flatten(given, numbers))
            except TypeError as error:
                raise TypeError(f"{what}: argument {place!r}: {error}") from None
            if len(numbers) == before and not _is_empty(given):
                raise TypeError(f"{what}: expected numbers in argument {place!r}, got {_described(given)}")
        self.part = parts[0] if isinstance(argnums, int | str) else together(parts)
        given_values = values_among(numbers)
        self.cls: Any = type(given_values[0]) if given_values else engine.Value
        self.inputs = [_input(number, self.cls, what) for number in numbers] if given_values else self._leaves(numbers)
        positional, named = list(args), dict(kwargs)
        for place, part in zip(places, parts, strict=True):
            argument = part.fill(self.inputs, as_argument=True)
            if isinstance(place, int):
                positional[place] = argument
            else:
                named[place] = argument
        with _recording_if_not(self.inputs):
            _depth.running += 1
            try:
                self.result = function(*positional, **named)
            finally:
                _depth.running -= 1
        self.outputs: list[Any] = []
        self.foreign: list[Any] | None = None  # leaves that are not inputs: Values the function closes over
        self.with_graph = bool(given_values)

    def _leaves(self, numbers: list[Any]) -> list[Any]:
        try:
            return list(map(self.cls, numbers))
        except TypeError as error:
            raise TypeError(f"{self.what}: {error}") from None

    # ------------------------------------------------------------ what came out

    def one_output(self) -> Any:
        """The result as one number; whatever else it is, is refused in one sentence."""
        result = self.result
        if getattr(result, "shape", None) == () and hasattr(result, "item"):  # an array of no dimension
            result = result.item()
        if not is_number(result):
            advice = "is a return missing?" if result is None else "use gradwalk.jacobian for several outputs"
            raise TypeError(
                f"{self.what}: expected the function to return one number, got {_described(result)}; {advice}"
            )
        self.outputs = [result]
        self._settle()
        return result if self.with_graph else _plain(result)

    def all_outputs(self) -> Part:
        """The result's structure; its numbers become the outputs."""
        try:
            part = flatten(self.result, self.outputs)
        except TypeError as error:
            raise TypeError(f"{self.what}: the function's result: {error}") from None
        if not self.outputs and not _is_empty(self.result):
            advice = "; is a return missing?" if self.result is None else ""
            got = _described(self.result)
            raise TypeError(f"{self.what}: expected the function to return numbers, got {got}{advice}")
        self._settle()
        return part

    def _settle(self) -> None:
        """Inside another derivative, what depends on a Value from outside has to stay differentiable by it."""
        if not self.with_graph and _depth.running:
            self.with_graph = bool(self._foreign_leaves())

    def _foreign_leaves(self) -> list[Any]:
        if self.foreign is None:
            own = set(self.inputs)
            order = engine.topological_order(self._root([0.0] * len(self.outputs)))
            self.foreign = [node for node in order if not node._children and not node._constant and node not in own]
        return self.foreign

    def _root(self, weights: Sequence[Any]) -> Any:
        """One node above all outputs, which hands each its weight."""
        return self.cls(0.0, self.outputs, "outputs", local_grads=list(map(_plain, weights)))

    # ------------------------------------------------------------ walking it

    def backward(self, weights: Sequence[Any]) -> list[Any]:
        """The derivative of the weighted sum of the outputs by each input."""
        if self.with_graph or any(map(is_value, weights)):
            return self._backward_with_graph(weights)
        return self._gradients(self._root(weights))

    def row(self, i: int) -> list[Any]:
        """The derivative of one output by each input."""
        if self.with_graph:
            return self._backward_with_graph(_one_hot(len(self.outputs), i))
        output = self.outputs[i]
        return self._gradients(output) if is_value(output) else [0.0] * len(self.inputs)

    def _gradients(self, root: Any) -> list[float]:
        """One pass of backward() that leaves no trace: Values the function closes over keep their grad."""
        if hasattr(root, "_gradients"):  # the native engine's own
            gradients: list[float] | None = root._gradients(self.inputs)
            if gradients is not None:
                return gradients
        kept = [(leaf, leaf.grad) for leaf in self._foreign_leaves()]
        try:
            root.backward()
            return [leaf.grad for leaf in self.inputs]
        finally:
            for leaf in self.inputs:
                leaf.grad = 0.0
            for leaf, grad in kept:
                leaf.grad = grad

    def _backward_with_graph(self, weights: Sequence[Any]) -> list[Any]:
        order = engine.topological_order(self._root(weights))[:-1]
        depending = set(self.inputs)
        for node in order:
            if not depending.isdisjoint(node._children):
                depending.add(node)
        gradients: dict[Any, Any] = {}
        for output, weight in zip(self.outputs, weights, strict=True):
            if is_value(output):
                gradients[output] = gradients[output] + weight if output in gradients else weight
        inputs = set(self.inputs)
        with ieee():  # a branch that is not taken may be outside its domain
            for node in reversed(order):
                if node in inputs or node not in depending or node not in gradients:
                    continue
                gradient = gradients.pop(node)
                for child, local_grad in zip(node._children, higher_order.local_grads_of(node), strict=True):
                    if child in depending:
                        contribution = _product(local_grad, gradient)
                        gradients[child] = gradients[child] + contribution if child in gradients else contribution
        return [gradients.get(leaf, 0.0) for leaf in self.inputs]

    def forward(self, tangents: Sequence[Any]) -> list[Any]:
        """How fast each output changes as the inputs move along `tangents`: one sweep in the order of recording."""
        with_graph = self.with_graph or any(map(is_value, tangents))
        speeds: dict[Any, Any] = dict(zip(self.inputs, tangents, strict=True))
        with ieee():
            for node in engine.topological_order(self._root([0.0] * len(self.outputs)))[:-1]:
                if node in speeds or speeds.keys().isdisjoint(node._children):
                    continue
                local_grads = higher_order.local_grads_of(node) if with_graph else node._local_grads
                if not local_grads:
                    raise TypeError(
                        f"{self.what}: expected local gradients on every node, got one with a hand-written _backward, "
                        f"made as {node._op!r}; go backward through it (vjp, or jacobian with mode='reverse')"
                    )
                speed: Any = None
                for child, local_grad in zip(node._children, local_grads, strict=True):
                    if child in speeds:
                        part = _product(local_grad, speeds[child])
                        speed = part if speed is None else speed + part
                speeds[node] = speed
        return [speeds.get(output, 0.0) if is_value(output) else 0.0 for output in self.outputs]


def _product(local_grad: Any, gradient: Any) -> Any:
    if isinstance(local_grad, float) and local_grad == 1.0:
        return gradient
    return local_grad * gradient


def _input(number: Any, cls: Any, what: str) -> Any:
    if not is_value(number):
        return cls(number_from(number, what))
    own = number * 1.0  # a node of its own, so that the same Value used by the function directly stays apart from it
    if number.label:
        own.label = number.label
    return own


@contextmanager
def _recording_if_not(inputs: list[Any]) -> Iterator[None]:
    """Inside no_grad() too, a derivative that was asked for is computed."""
    if not inputs or (inputs[0] * 1.0)._children:
        yield
    else:
        with modes(no_grad=False):
            yield


def _plain(number: Any) -> float:
    return float(number.data) if is_value(number) else float(number)


def _is_empty(given: Any) -> bool:
    return hasattr(given, "__len__") and not isinstance(given, str | bytes) and len(given) == 0


def _described(given: Any) -> str:
    if given is None or isinstance(given, bool | str):
        return repr(given)
    count = f" of {len(given)}" if hasattr(given, "__len__") and getattr(given, "shape", None) != () else ""
    return f"a {type(given).__name__}{count}"


# ---------------------------------------------------------------- which arguments


def _listed(argnums: Argnums) -> Sequence[int | str]:
    return (argnums,) if isinstance(argnums, int | str) else tuple(argnums)


def _place(what: str, function: Function, args: Any, kwargs: Any, argnum: int | str) -> int | str:
    """Where the call has the argument: a position or a keyword."""
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


def _checked(what: str, function: Function) -> Function:
    if not callable(function):
        raise TypeError(f"{what}: expected a function, got {_described(function)}; write {what}(f)(x)")
    return function


# ---------------------------------------------------------------- for users


def value_and_grad(f: Function, argnums: Argnums = 0) -> Function:
    """f's value and its gradient by the arguments `argnums` (positions or names), in one run.

    >>> value_and_grad(lambda x: x[0] * x[1])([3.0, 4.0])
    (12.0, [4.0, 3.0])
    """
    return _value_and_grad("value_and_grad", f, argnums)


def _value_and_grad(what: str, f: Function, argnums: Argnums) -> Function:
    _checked(what, f)

    @functools.wraps(f)
    def differentiated(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        run = Recording(what, f, args, kwargs, argnums)
        value = run.one_output()
        return value, run.part.fill(run.row(0))

    return differentiated


def grad(f: Function, argnums: Argnums = 0) -> Function:
    """The gradient of f by the arguments `argnums`, in their structure. Nest it for higher derivatives.

    >>> grad(lambda x: x**3)(2.0)
    12.0
    >>> grad(grad(lambda x: x**3))(2.0)
    12.0
    >>> grad(lambda a, b: a * b, argnums="b")(2.0, b=5.0)
    2.0
    """
    both = _value_and_grad("grad", f, argnums)

    @functools.wraps(f)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        return both(*args, **kwargs)[1]

    return differentiated


def jacobian(f: Function, argnums: Argnums = 0, mode: str | None = None) -> Function:
    """Every output's gradient: f's structure, with the arguments' structure in place of each number.

    An array of shape (m,) by an array of shape (n,) is one array of shape (m, n). It goes forward or in `reverse`,
    whichever is less work for the numbers of inputs and outputs, unless `mode` says which.

    >>> jacobian(lambda x, y: [x * y, x + y], argnums=(0, 1))(2.0, 3.0)
    [(3.0, 2.0), (1.0, 1.0)]
    """
    _checked("jacobian", f)
    if mode not in (None, "forward", "reverse"):
        raise ValueError(f"jacobian: expected mode 'forward' or 'reverse', got {mode!r}")

    @functools.wraps(f)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        run = Recording("jacobian", f, args, kwargs, argnums)
        outputs_part = run.all_outputs()
        rows = _rows(run, mode)

        def of_output(output: int, output_shape: Shape) -> Any:
            return run.part.build(lambda entry, shape: _block(rows, output, output_shape, entry, shape))

        return outputs_part.build(of_output)

    return differentiated


def _rows(run: Recording, mode: str | None) -> list[list[Any]]:
    """The whole Jacobian, a row for each output."""
    inputs, outputs = len(run.inputs), len(run.outputs)
    if mode == "forward" or (mode is None and inputs * PASSES_PER_SWEEP < outputs):
        columns = [run.forward(_one_hot(inputs, i)) for i in range(inputs)]
        return [list(row) for row in zip(*columns, strict=True)]
    return [run.row(i) for i in range(outputs)]


def _one_hot(count: int, position: int) -> list[float]:
    return [1.0 if i == position else 0.0 for i in range(count)]


def _block(rows: list[list[Any]], output: int, output_shape: Shape, entry: int, shape: Shape) -> Any:
    if output_shape is None and shape is None:
        return rows[output][entry]
    height, width = _size(output_shape), _size(shape)
    numbers = [number for row in rows[output : output + height] for number in row[entry : entry + width]]
    return array_of(numbers, (output_shape or ()) + (shape or ()))


def _size(shape: Shape) -> int:
    return functools.reduce(lambda a, b: a * b, shape or (), 1)


def hessian(f: Function, argnums: Argnums = 0) -> Function:
    """All second derivatives of f: the arguments' structure, within the arguments' structure.

    >>> hessian(lambda x: x[0] ** 2 * x[1])([3.0, 5.0])
    [[10.0, 6.0], [6.0, 0.0]]
    """
    return jacobian(grad(f, argnums), argnums, mode="reverse")


class Products:
    """Products of one function's derivative with directions; the direction is the second argument, as SciPy has it.

    `at` runs the function once, and gives a function of the direction alone.
    """

    def __init__(self, what: str, f: Function, argnums: Argnums, forward: bool) -> None:
        self._what, self._f, self._argnums, self._forward = what, _checked(what, f), argnums, forward

    def __call__(self, x: Any, direction: Any, /, *args: Any, **kwargs: Any) -> Any:
        return self.at(x, *args, **kwargs)(direction)

    def at(self, *args: Any, **kwargs: Any) -> Function:
        """The product at this point, for any direction.

        >>> times = hvp(lambda x: x[0] ** 2 * x[1]).at([3.0, 5.0])
        >>> times([1.0, 0.0]), times([0.0, 1.0])
        ([10.0, 6.0], [6.0, 0.0])
        """
        run = Recording(self._what, self._f, args, kwargs, self._argnums)
        outputs_part = run.all_outputs()

        def product(direction: Any) -> Any:
            numbers: list[Any] = []
            flatten(direction, numbers)
            numbers = [number if is_value(number) else float(number) for number in numbers]
            expected = run.inputs if self._forward else run.outputs
            if len(numbers) != len(expected):
                of = "argument" if self._forward or self._what == "hvp" else "result"
                raise ValueError(
                    f"{self._what}: expected a direction of {len(expected)} numbers, like the {of}, got {len(numbers)}"
                )
            return outputs_part.fill(run.forward(numbers)) if self._forward else run.part.fill(run.backward(numbers))

        return product


def jvp(f: Function, argnums: Argnums = 0) -> Products:
    """`jvp(f)(x, v)`: the Jacobian times v, in f's structure, by one sweep forward.

    >>> jvp(lambda x: [x[0] * x[1], x[0]])([2.0, 3.0], [1.0, 10.0])
    [23.0, 1.0]
    """
    return Products("jvp", f, argnums, forward=True)


def vjp(f: Function, argnums: Argnums = 0) -> Products:
    """`vjp(f)(x, u)`: u times the Jacobian, in the argument's structure, by one pass backward.

    >>> vjp(lambda x: [x[0] * x[1], x[0]])([2.0, 3.0], [1.0, 10.0])
    [13.0, 2.0]
    """
    return Products("vjp", f, argnums, forward=False)


def hvp(f: Function, argnums: Argnums = 0) -> Products:
    """`hvp(f)(x, p)`: the Hessian times p, without the Hessian; SciPy takes it as `hessp`.

    >>> hvp(lambda x: x[0] ** 2 * x[1])([3.0, 5.0], [1.0, 0.0])
    [10.0, 6.0]
    """
    return Products("hvp", grad(_checked("hvp", f), argnums), argnums, forward=False)  # the Hessian is symmetric
