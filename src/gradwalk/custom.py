"""Operations of one's own: `custom_op` out of a forward and its local gradients, `checkpoint` that recomputes.

Both make ordinary nodes by hand, so backward() treats them as any other. Where a second derivative is asked for, the
local gradients are computed on Values. A compiled function calls the two functions of a custom_op anew at every call.
"""

from __future__ import annotations

import functools
import inspect
import math
import pickle
import sys
import threading
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

from gradwalk import engine
from gradwalk.control import changed, inside, is_traced, on_construct
from gradwalk.errors import described
from gradwalk.functional import is_nested
from gradwalk.gradient_check import WRONG, check_input
from gradwalk.higher_order import NoGraphError
from gradwalk.hub import nodes_over_one
from gradwalk.modes import current
from gradwalk.structure import Structure, flatten, is_number, is_value

Function = Callable[..., Any]


def custom_op(
    forward: Function | None = None, local_grads: Function | None = None, *, name: str = "", check: bool = True
) -> Any:
    """An operation on Values out of two functions on floats: `forward(x, y, …)` and `local_grads(x, y, …, out)`.

    The local gradients, one per input, are compared with central differences when the operation is first used.

    >>> from gradwalk import Value
    >>> cube = custom_op(lambda x: x**3, lambda x, out: 3.0 * x**2, name="cube")
    >>> v = Value(2.0)
    >>> cube(v).backward()
    >>> v.grad, cube(2.0)
    (12.0, 8.0)
    """
    if local_grads is None:
        raise TypeError("custom_op: expected local_grads, a function of the inputs and the output, got None")
    if forward is None:  # @custom_op(local_grads=…)
        return lambda decorated: custom_op(decorated, local_grads, name=name, check=check)
    for what, function in (("forward", forward), ("local_grads", local_grads)):
        if not callable(function):
            raise TypeError(f"custom_op: expected {what} to be a function of the inputs, got {described(function)}")
    own_name = getattr(forward, "__name__", "<lambda>")
    return CustomOp(forward, local_grads, name or ("custom" if own_name == "<lambda>" else own_name), check)


class _Name(str):
    """What a node shows as its operation, and where to ask for its local gradients on Values."""

    local_grads_on_values: Function

    def __reduce__(self) -> Any:
        return str, (str(self),)


class CustomOp:
    """What `custom_op` makes. The program of a compiled function calls `evaluated`."""

    def __init__(self, forward: Function, local_grads: Function, name: str, check: bool) -> None:
        functools.update_wrapper(self, forward)
        self._forward, self._local_grads, self._unchecked = forward, local_grads, check
        self.name = _Name(name)
        self.name.local_grads_on_values = self._on_values

    def __call__(self, *inputs: Any) -> Any:
        trace = current().trace
        wrong = next((given for given in inputs if not is_number(given)), None) if trace is None else None
        if wrong is not None:
            raise TypeError(f"{self.name}: expected numbers and Values as inputs, got {described(wrong)}")
        if not any(map(is_value, inputs)):
            return self._number(self._forward(*inputs), "forward")
        if trace is not None:
            return trace.call(self, inputs)
        return self.node(inputs, [value.data if is_value(value) else value for value in inputs])

    def node(self, inputs: Sequence[Any], numbers: list[float]) -> Any:
        """The recorded node over these inputs, whose numbers are given."""
        out, local_grads = self.evaluated(numbers)
        cls: Any = next(type(value) for value in inputs if is_value(value))
        return recorded(cls(out, inputs, self.name, local_grads=local_grads))

    def evaluated(self, numbers: list[float]) -> tuple[float, list[float]]:
        """The output, and the local gradients at these inputs."""
        try:
            out = self._number(self._forward(*numbers), "forward")
            local_grads = self.local_grads(numbers, out)
            if self._unchecked:
                self._check(numbers, local_grads)
        except Exception as error:
            _last.raised = error
            raise
        return out, local_grads

    def local_grads(self, numbers: list[float], out: float) -> list[float]:
        """One for each input."""
        try:
            given = self._local_grads(*numbers, out)
        except TypeError:
            if not _takes(self._local_grads, len(numbers) + 1):
                raise TypeError(
                    f"{self.name}: expected local_grads to take the inputs and the output, {len(numbers) + 1} numbers, "
                    f"got a function of {inspect.signature(self._local_grads)}"
                ) from None
            raise
        several = given.tolist() if hasattr(given, "tolist") else given  # an array, or one of its numbers
        listed = [self._number(g, "local_grads") for g in (several if isinstance(several, list | tuple) else [several])]
        if len(listed) != len(numbers):
            raise ValueError(
                f"{self.name}: expected one local gradient per input, got {len(listed)} for {len(numbers)}"
            )
        return listed

    def _on_values(self, node: Any) -> list[Any]:
        """One for each input, as Values: the same function, given Values."""
        inputs = [child.data if child._constant else child for child in node._children]
        try:
            given = self._local_grads(*inputs, node)
        except TypeError as error:
            raise NoGraphError(
                f"{self.name}: expected local_grads that takes Values too, for a second derivative, got {error}"
            ) from error
        several = list(given) if isinstance(given, list | tuple) or hasattr(given, "tolist") else [given]
        return [number if is_value(number) else float(number) for number in several]

    def __reduce__(self) -> Any:
        """By the name a module has for the operation, else as its two functions, each by its name."""
        named = vars(sys.modules.get(self.__module__, object))
        found = next((name for name in (getattr(self, "__name__", ""), self.name) if named.get(name) is self), None)
        if found is not None:
            return found
        for function in (self._forward, self._local_grads):
            if "<" in getattr(function, "__qualname__", ""):  # <lambda>, or <locals> of another function
                raise pickle.PicklingError(
                    f"{self.name}: expected functions that a module knows by name, got {function.__qualname__}; "
                    "write them with def at the top of a module, or give the operation a name there"
                )
        return CustomOp, (self._forward, self._local_grads, str(self.name), self._unchecked)

    def _number(self, given: Any, function: str) -> float:
        if not is_number(given) or is_value(given):
            raise TypeError(f"{self.name}: expected {function} to return plain numbers, got {described(given)}")
        return float(given)

    def _check(self, numbers: list[float], local_grads: list[float]) -> None:
        """Raise on a wrong local gradient; at a kink, or where nothing can be told, check again at the next use."""
        told = True
        for i, (x, local_grad) in enumerate(zip(numbers, local_grads, strict=True)):

            def moved(step: float, i: int = i) -> Sequence[float] | None:
                try:
                    out = float(self._forward(*(n + step if k == i else n for k, n in enumerate(numbers))))
                except (ArithmeticError, ValueError):
                    return None
                return [out] if math.isfinite(out) else None

            entry = check_input(moved, float(x), [local_grad], 1e-6, [self.name])[0]
            if entry.verdict == WRONG and entry.estimate is not None:
                measured = f"{entry.estimate.derivative:.10g} ± {entry.estimate.error:.0e}"
                at = ", ".join(map(repr, numbers))
                raise ValueError(
                    f"{self.name}: local gradient {i} at ({at}) is {local_grad!r}, but central differences give "
                    f"{measured}; correct local_grads, or pass check=False"
                )
            told = told and entry.verdict == "ok"
        self._unchecked = not told


def _takes(function: Function, count: int) -> bool:
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # a builtin may not tell
        return True
    return True


class _Last(threading.local):
    raised: Exception | None = None


_last = _Last()


def raised() -> Exception | None:
    """What an operation has raised in this thread since this was last asked."""
    error, _last.raised = _last.raised, None
    return error


def recorded(node: Any) -> Any:
    """A node made by hand, with the modes of this thread applied to it as to any other."""
    modes = current()
    if modes.on_record:
        modes.on_record(node)
    return type(node)(node.data) if modes.no_grad else node


# ---------------------------------------------------------------- checkpoint


def checkpoint(f: Function) -> Function:
    """f, remembering only its inputs and outputs: what lies between is computed again during backward().

    Arguments and result may have any structure, and f may close over Values, computed ones too. It has to give the
    same numbers again, so no random ones inside. Within a second derivative, which needs all of it, nothing is saved.

    >>> from gradwalk.engine import Value, topological_order
    >>> x = Value(2.0)
    >>> y = checkpoint(lambda x: (x * x + 1.0).log())(x)
    >>> y.backward()
    >>> x.grad, len(topological_order(y))
    (0.8, 4)
    """

    if not callable(f):
        raise TypeError(f"checkpoint: expected a function, got {described(f)}; write checkpoint(f)(x)")

    @functools.wraps(f)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        modes = current()
        if modes.no_grad or is_nested() or is_traced():  # a program is replayed: there is nothing to save
            return f(*args, **kwargs)
        segment = _Segment(f, args, kwargs)
        made: set[Any] = set()

        def remember(node: Any) -> None:
            made.add(node)
            if modes.on_record:
                modes.on_record(node)

        with changed(on_record=remember), on_construct(made.add):
            structure, outputs, own = segment.run()
        segment.closed_over = _closed_over(made, outputs, set(own.values()))
        children = [*own, *segment.closed_over]
        data = [output.data if is_value(output) else output for output in outputs]
        del outputs, own
        made.clear()  # and with it everything that lies between
        return structure.fill(segment.nodes(data, children) if children else data)

    return checkpointed


def _closed_over(made: set[Any], outputs: list[Any], own: set[Any]) -> list[Any]:
    """The Values from outside that a function used without being given them."""
    used = [*(child for node in made for child in node._children), *filter(is_value, outputs)]
    return list(dict.fromkeys(v for v in used if v not in made and v not in own and not v._constant))


class _Segment:
    """One call of a checkpointed function: what it was given, which is enough to run it again."""

    def __init__(self, f: Function, args: Any, kwargs: Any) -> None:
        self.f, self.numbers = f, list[Any]()
        self.structure = flatten([list(args), kwargs], self.numbers)
        values = [number for number in self.numbers if is_value(number)]
        self.cls: Any = type(values[0]) if values else engine.Value
        self.ieee = current().ieee
        self.data: list[float] = []
        self.closed_over: list[Any] = []

    def run(self) -> tuple[Structure, list[Any], dict[Any, Any]]:
        """The result's structure and numbers, and the leaf that stood in for each Value given."""
        own = {value: type(value)(value.data, label=value.label) for value in self.numbers if is_value(value)}
        args, kwargs = self.structure.fill([own[n] if is_value(n) else n for n in self.numbers], as_argument=True)
        outputs: list[Any] = []
        with inside(list(own.values())):
            result = self.f(*args, **kwargs)
        try:
            structure = flatten(result, outputs)
        except TypeError as error:
            raise TypeError(f"checkpoint: the function's result: {error}") from None
        if not outputs:
            advice = "; is a return missing?" if result is None else ""
            raise TypeError(f"checkpoint: expected the function to return numbers, got {described(result)}{advice}")
        return structure, outputs, own

    def nodes(self, data: list[float], children: list[Any]) -> list[Any]:
        """A node for each output, over one that runs everything again when all of them have their gradient."""
        self.data = data
        return list(map(recorded, nodes_over_one(self.cls, data, children, "checkpoint", self.backward)))

    def backward(self, weights: list[float]) -> None:
        with changed(no_grad=False, ieee=self.ieee):
            _, outputs, own = self.run()
        again = [output.data if is_value(output) else output for output in outputs]
        for before, now in zip_longest(self.data, again):
            if before != now and (before == before or now == now):
                raise ValueError(
                    f"checkpoint: expected the numbers of the forward pass again, got {now!r} instead of {before!r}; "
                    "a checkpointed function draws no random numbers, and its inputs stay as they were"
                )
        root = self.cls(0.0, outputs, "outputs", local_grads=weights)
        # adds to what it closes over, and goes no further: what lies below belongs to the pass that is under way
        self.cls._cut([value for value in self.closed_over if value._children], root.backward)
        for value, leaf in own.items():
            value.grad += leaf.grad
