"""Operations of one's own: `custom_op` out of a forward and its local gradients, `checkpoint` that recomputes.

Both make ordinary nodes by hand, so backward() treats them as any other; their own derivative is not recorded, so
they have first derivatives only.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from gradwalk import engine
from gradwalk.control import modes
from gradwalk.gradient_check import WRONG, check_input
from gradwalk.structure import Part, flatten, is_number, is_value

Function = Callable[..., Any]
_engine: Any = engine.load(engine.NAME)


def custom_op(
    forward: Function | None = None, local_grads: Function | None = None, *, name: str = "", check: bool = True
) -> Any:
    """An operation on Values out of two functions on floats: `forward(x, y, …)` and `local_grads(x, y, …, out)`.

    The local gradients, one per input, are compared with central differences when the operation is first used.

    >>> cube = custom_op(lambda x: x**3, lambda x, out: 3.0 * x**2, name="cube")
    >>> v = engine.Value(2.0)
    >>> cube(v).backward()
    >>> v.grad, cube(2.0)
    (12.0, 8.0)
    """
    if local_grads is None:
        raise TypeError("custom_op: expected local_grads, a function of the inputs and the output, got None")
    if forward is None:  # @custom_op(local_grads=…)
        return lambda decorated: custom_op(decorated, local_grads, name=name, check=check)
    return _CustomOp(forward, local_grads, name or getattr(forward, "__name__", "custom"), check)


class _CustomOp:
    def __init__(self, forward: Function, local_grads: Function, name: str, check: bool) -> None:
        functools.update_wrapper(self, forward)
        self._forward, self._local_grads, self._name, self._unchecked = forward, local_grads, name, check

    def __call__(self, *inputs: Any) -> Any:
        numbers = [value.data if is_value(value) else value for value in inputs]
        out = self._number(self._forward(*numbers), "forward")
        values = [value for value in inputs if is_value(value)]
        if not values:
            return out
        given = self._local_grads(*numbers, out)
        listed = [self._number(g, "local_grads") for g in (given if isinstance(given, list | tuple) else [given])]
        if len(listed) != len(inputs):
            raise ValueError(
                f"{self._name}: expected one local gradient per input, got {len(listed)} for {len(inputs)}"
            )
        if self._unchecked:
            self._check(numbers, listed)
        return recorded(type(values[0])(out, inputs, self._name, local_grads=listed))

    def _number(self, given: Any, function: str) -> float:
        if not is_number(given) or is_value(given):
            got = "None" if given is None else f"a {type(given).__name__}"
            raise TypeError(f"{self._name}: expected {function} to return plain numbers, got {got}")
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

            entry = check_input(moved, float(x), [local_grad], 1e-6, [self._name])[0]
            if entry.verdict == WRONG and entry.estimate is not None:
                measured = f"{entry.estimate.derivative:.10g} ± {entry.estimate.error:.0e}"
                at = ", ".join(map(repr, numbers))
                raise ValueError(
                    f"{self._name}: local gradient {i} at ({at}) is {local_grad!r}, but central differences give "
                    f"{measured}; correct local_grads, or pass check=False"
                )
            told = told and entry.verdict == "ok"
        self._unchecked = not told


def recorded(node: Any) -> Any:
    """A node made by hand, with the modes of this thread applied to it as to any other."""
    no_grad, on_record = _current_modes()[:2]
    if on_record:
        on_record(node)
    return type(node)(node.data) if no_grad else node


def _current_modes() -> Any:
    current = _engine.set_modes(False, None, None, None)
    _engine.set_modes(*current)
    return current


# ---------------------------------------------------------------- checkpoint


def checkpoint(f: Function) -> Function:
    """f, remembering only its inputs and outputs: what lies between is computed again during backward().

    Arguments and result may have any structure. f has to give the same numbers again, so no random ones inside.

    >>> x = engine.Value(2.0)
    >>> y = checkpoint(lambda x: (x * x + 1.0).log())(x)
    >>> y.backward()
    >>> x.grad, len(engine.topological_order(y))
    (0.8, 4)
    """

    @functools.wraps(f)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        no_grad, on_record = _current_modes()[:2]
        if no_grad:
            return f(*args, **kwargs)
        segment = _Segment(f, args, kwargs)
        made: set[Any] = set()

        def remember(node: Any) -> None:
            made.add(node)
            if on_record:
                on_record(node)

        with modes(on_record=remember):
            part, outputs, own = segment.run()
        children = [*own, *_closed_over(made, set(own.values()))]
        data = [output.data if is_value(output) else output for output in outputs]
        del outputs, own
        made.clear()  # and with it everything that lies between
        return part.fill(segment.nodes(data, children) if children else data)

    return checkpointed


def _closed_over(made: set[Any], own: set[Any]) -> list[Any]:
    """The leaves from outside that a function used without being given them."""
    found: dict[Any, None] = {}
    for node in made:
        for child in node._children:
            if child in made or child in own or child._constant:
                continue
            if child._children and child._name:
                label = f" (node {child.label!r})" if child.label else ""
                raise TypeError(
                    f"checkpoint: expected a function that is given every computed Value it uses, got one that closes "
                    f"over the result of {child._op!r}{label}; pass it as an argument"
                )
            found[child] = None
    return list(found)


class _Segment:
    """One call of a checkpointed function: what it was given, which is enough to run it again."""

    def __init__(self, f: Function, args: Any, kwargs: Any) -> None:
        self.f, self.numbers = f, list[Any]()
        self.part = flatten([list(args), kwargs], self.numbers)
        values = [number for number in self.numbers if is_value(number)]
        self.cls: Any = type(values[0]) if values else engine.Value
        self.data: list[float] = []
        self.mailboxes: list[Any] = []  # where each output leaves its gradient, without a way back to the output

    def run(self) -> tuple[Part, list[Any], dict[Any, Any]]:
        """The result's structure and numbers, and the leaf that stood in for each Value given."""
        own = {value: type(value)(value.data, label=value.label) for value in self.numbers if is_value(value)}
        args, kwargs = self.part.fill([own[n] if is_value(n) else n for n in self.numbers], as_argument=True)
        outputs: list[Any] = []
        part = flatten(self.f(*args, **kwargs), outputs)
        if not outputs:
            raise TypeError("checkpoint: expected the function to return numbers, got none; is a return missing?")
        return part, outputs, own

    def nodes(self, data: list[float], children: list[Any]) -> list[Any]:
        """A node for each output, over one that runs everything again when all of them have their gradient."""
        hub = self.cls(0.0, children, "checkpoint")
        hub._backward = self.backward
        made = [self.cls(number, (0.0, hub), "checkpoint", local_grads=(1.0, 0.0)) for number in data]
        self.data, self.mailboxes = data, [node._children[0] for node in made]
        return [recorded(node) for node in made]

    def backward(self) -> None:
        weights = [mailbox.grad for mailbox in self.mailboxes]
        for mailbox in self.mailboxes:
            mailbox.grad = 0.0
        if not any(weights):
            return
        with modes(no_grad=False):
            _, outputs, own = self.run()
        again = [output.data if is_value(output) else output for output in outputs]
        for before, now in zip(self.data, again, strict=False):
            if before != now and (before == before or now == now):
                raise ValueError(
                    f"checkpoint: expected the numbers of the forward pass again, got {now!r} instead of {before!r}; "
                    "a checkpointed function draws no random numbers, and its inputs stay as they were"
                )
        self.cls(0.0, outputs, "outputs", local_grads=weights).backward()  # adds to the leaves it closes over
        for value, leaf in own.items():
            value.grad += leaf.grad
