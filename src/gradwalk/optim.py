"""Optimisers over Values: SGD, Adam, AdamW; gradient clipping; schedules for the learning rate.

The loops below are the definition. For Values of the native engine they run in native/value/optim.c, to the bit.
"""

from __future__ import annotations

import inspect
import math
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from gradwalk import engine, reference
from gradwalk.interface import number_of
from gradwalk.passes import THE_PASS
from gradwalk.structure import float64s

__all__ = [
    "OPTIMISERS", "SCHEDULES", "SGD", "Adam", "AdamW", "Optimiser", "clip_gradients", "constant", "cosine", "linear",
]  # fmt: skip

Parameters = Sequence[Any]
Schedule = Callable[[int], float]


# ---------------------------------------------------------------- the loops, for any engine


def adam_moved(
    data: Any, grad: Any, beta: Any, beta_square: Any, step: Any, scale: Any, epsilon: Any, shrink: Any, mean: Any,
    square: Any, *, root: Callable[[Any], Any] = math.sqrt,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """A number, or an array of them, after a step of Adam, and both its moments."""
    mean = beta * mean + (1.0 - beta) * grad
    square = beta_square * square + (1.0 - beta_square) * grad * grad
    change = step * mean / (root(square) * scale + epsilon)
    return data * shrink - change, mean, square


def sgd_moved(
    data: Any, grad: Any, rate: Any, momentum: float, decay: float, nesterov: float, velocity: Any = 0.0
) -> tuple[Any, Any]:
    """The same after a step of gradient descent, and its velocity."""
    direction = grad
    if decay != 0.0:
        direction = direction + decay * data
    if momentum != 0.0:
        velocity = momentum * velocity + direction
        direction = direction + momentum * velocity if nesterov else velocity
    return data - rate * direction, velocity


def _adam(parameters: Parameters, *settings_and_moments: Any) -> None:
    *settings, means, squares = settings_and_moments
    with THE_PASS.lock:
        for i, parameter in enumerate(parameters):
            given = *settings, means[i], squares[i]
            parameter.data, means[i], squares[i] = adam_moved(parameter.data, number_of(parameter.grad), *given)


def _sgd(
    parameters: Parameters, rate: float, momentum: float, decay: float, nesterov: float, velocities: Any = ()
) -> None:
    with THE_PASS.lock:
        for i, parameter in enumerate(parameters):
            velocity = velocities[i] if momentum != 0.0 else 0.0
            grad = number_of(parameter.grad)
            parameter.data, velocity = sgd_moved(parameter.data, grad, rate, momentum, decay, nesterov, velocity)
            if momentum != 0.0:
                velocities[i] = velocity


def _adam_of_arrays(data: Any, grad: Any, moments: Any, settings: Any, _: Any, root: Any) -> Any:
    return adam_moved(data, grad, *settings, *moments, root=root)


def _sgd_of_arrays(data: Any, grad: Any, moments: Any, settings: Any, plain: Any, _: Any) -> Any:
    """`plain`: the settings as numbers, which are looked at; only the rate is another for each model."""
    _, momentum, decay, nesterov = plain
    return sgd_moved(data, grad, settings[0], momentum, decay, bool(nesterov), *moments)[: 1 + len(moments)]


# many models at once: on jax here, and by the executor as native/executor/models.c has it
_OF_ARRAYS: dict[str, Callable[..., Any]] = {"adam": _adam_of_arrays, "sgd": _sgd_of_arrays}


def _zero_grad(parameters: Parameters) -> None:
    with THE_PASS.lock:
        for parameter in parameters:
            parameter.grad = 0.0


def _gradient_norm(parameters: Parameters) -> float:
    grads = [number_of(parameter.grad) for parameter in parameters]
    # scaled by the largest, so that squares neither overflow nor vanish
    largest = max(map(abs, grads)) if all(grad == grad for grad in grads) else math.nan
    if not 0.0 < largest < math.inf:
        return largest
    total = 0.0
    for grad in grads:
        ratio = grad / largest
        total = total + ratio * ratio
    return math.sqrt(total) * largest


def _scale_gradients(parameters: Parameters, factor: float) -> None:
    for parameter in parameters:
        parameter.grad = number_of(parameter.grad) * factor


def _gather_leaves(nested: Any, found: list[Any], owner_type: type, visit: Callable[[Any], None]) -> None:
    """Append the leaves in nested lists, tuples and dicts to `found`, and call visit(owner) for each `owner_type`."""
    if isinstance(nested, engine.Value):
        if not nested._children:
            found.append(nested)
    elif isinstance(nested, list | tuple | dict):
        for item in tuple(nested.values() if isinstance(nested, dict) else nested):
            _gather_leaves(item, found, owner_type, visit)
    elif isinstance(nested, owner_type):
        visit(nested)


_REFERENCE = SimpleNamespace(
    adam=_adam, sgd=_sgd, zero_grad=_zero_grad, gradient_norm=_gradient_norm, scale_gradients=_scale_gradients,
    gather_leaves=_gather_leaves,
)  # fmt: skip


def _engines() -> dict[type, SimpleNamespace]:
    """The loops by the type of Value they are for."""
    loops: dict[type, SimpleNamespace] = {reference.Value: _REFERENCE}
    try:
        native: Any = engine.load("native")
    except ImportError:
        return loops
    return loops | {native.Value: SimpleNamespace(**{**vars(_REFERENCE), **native.OPTIMISERS})}


_LOOPS = _engines()
ACTIVE = _LOOPS[engine.Value]


# ---------------------------------------------------------------- checks


def _loops_for(who: str, parameters: tuple[Any, ...]) -> SimpleNamespace:
    """The loops of the engine that made the parameters; for a mixture, those that work with any."""
    if not parameters:
        raise ValueError(f"{who}: expected at least one parameter, got none")
    kinds = set(map(type, parameters))
    if not all(issubclass(kind, tuple(_LOOPS)) for kind in kinds):
        i, found = next((i, one) for i, one in enumerate(parameters) if not isinstance(one, tuple(_LOOPS)))
        raise TypeError(f"{who}: expected a Value as parameter {i}, got {found!r} ({type(found).__name__})")
    return _LOOPS.get(kinds.pop(), _REFERENCE) if len(kinds) == 1 else _REFERENCE


def _check_each_once(who: str, parameters: tuple[Any, ...]) -> None:
    places: dict[Any, int] = {}
    for i, parameter in enumerate(parameters):
        if places.setdefault(parameter, i) != i:
            raise ValueError(f"{who}: expected every parameter once, got parameter {places[parameter]} again as {i}")


def _checked_number(who: str, name: str, given: float, lowest: float, below: float = math.inf) -> float:
    """`given` as a float, if lowest <= given < below."""
    number = float(given)
    if not lowest <= number < below:
        expected = f"a finite {name} >= {lowest:g}" if below == math.inf else f"{lowest:g} <= {name} < {below:g}"
        raise ValueError(f"{who}: expected {expected}, got {given!r}")
    return number


# ---------------------------------------------------------------- optimisers


class Optimiser:
    """What all of them share: parameters, a learning rate, and numbers kept for each parameter between steps."""

    def __init__(self, parameters: Iterable[Any], lr: float) -> None:
        self.name = type(self).__name__
        self.parameters = tuple(parameters)
        self._loops = _loops_for(self.name, self.parameters)
        _check_each_once(self.name, self.parameters)
        self.lr = _checked_number(self.name, "lr", lr, 0.0)
        self.steps = 0
        self._moments: dict[str, array[float]] = {}

    def step(self, lr: float | None = None) -> None:
        """Move every parameter by its gradient; `lr` replaces the learning rate for this step."""
        self._move(self._counted(lr))

    def _counted(self, lr: float | None) -> float:
        """The learning rate of one more step."""
        rate = self.lr if lr is None else lr
        if type(rate) is not float or not 0.0 <= rate < math.inf:
            rate = _checked_number(self.name, "lr", rate, 0.0)
        self.steps += 1
        return rate

    def _move(self, rate: float) -> None:
        loop = getattr(self._loops, self.loop)
        loop(self.parameters, *self.settings(rate, self.steps - 1), *self._moments.values())

    # for many models, whose numbers are in arrays

    loop: str  # which of the loops above

    @property
    def moments(self) -> tuple[str, ...]:
        """The names of the numbers that are kept for each parameter."""
        return tuple(self._moments)

    def settings(self, rate: float, steps: int) -> tuple[float, ...]:
        """What the loop needs, besides numbers and moments, for the step that comes after so many."""
        raise NotImplementedError

    def move(self, parameters: Parameters, moments: Sequence[Any], settings: tuple[float, ...]) -> None:
        """One step of these parameters, whose moments are elsewhere."""
        getattr(_REFERENCE, self.loop)(parameters, *settings, *moments)

    def moved(self, data: Any, grad: Any, moments: Sequence[Any], settings: Sequence[Any], root: Any) -> Any:
        """Arrays after a step, then their moments; `settings` has an array for each, `root` takes their square root."""
        if not self.moves_arrays:
            known = " or ".join(kind.__name__ for kind in OPTIMISERS.values() if kind.loop in _OF_ARRAYS)
            raise ValueError(f"{self.name}: expected {known} for models on jax")
        return _OF_ARRAYS[self.loop](data, grad, moments, settings, self.settings(0.0, 0), root)

    @property
    def moves_arrays(self) -> bool:
        """Whether its loop is one of those that move many models at once."""
        return self.loop in _OF_ARRAYS

    def _zeros(self) -> array[float]:
        return array("d", bytes(8 * len(self.parameters)))

    def zero_grad(self) -> None:
        """Reset every gradient; without it, gradients of successive steps add up."""
        self._loops.zero_grad(self.parameters)

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs besides the parameters: the step count, and moments in parameter order."""
        return {"step": self.steps, **{name: float64s(kept, (len(kept),)) for name, kept in self._moments.items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where the optimiser that wrote `state` stopped; nothing changes if it does not fit."""
        names = ["step", *self._moments]
        if set(state) != set(names):
            expected, got = ", ".join(names), ", ".join(map(str, state)) or "nothing"
            raise ValueError(f"{self.name}: expected a state with {expected}, got {got}")
        steps = int(state["step"])
        if steps < 0:
            raise ValueError(f"{self.name}: expected a step count of at least 0, got {steps}")
        moments = {}
        for name in self._moments:
            try:
                given = memoryview(state[name])
            except TypeError:  # no array: a list of numbers
                given = memoryview(array("d", state[name]))
            if given.shape != (len(self.parameters),) or given.format != "d":
                raise ValueError(
                    f"{self.name}: expected {len(self.parameters)} float64 numbers as {name}, "
                    f"got {getattr(state[name], 'dtype', given.format)} of shape {given.shape}"
                )
            moments[name] = array("d", given.tobytes())
        self.steps, self._moments = steps, moments

    def __repr__(self) -> str:
        return f"{self.name}({len(self.parameters):,} parameters, lr={self.lr:g})"


class SGD(Optimiser):
    """Gradient descent, with momentum, Nesterov's look ahead, and weight decay (an L2 penalty) on request.

    >>> from gradwalk import Value
    >>> x = Value(3.0)
    >>> optimiser = SGD([x], lr=0.1)
    >>> (x * x).backward()
    >>> optimiser.step()
    >>> round(x.data, 9)
    2.4
    """

    def __init__(
        self, parameters: Iterable[Any], lr: float, momentum: float = 0.0, nesterov: bool = False,
        weight_decay: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(parameters, lr)
        self.momentum = _checked_number(self.name, "momentum", momentum, 0.0, 1.0)
        self.nesterov = bool(nesterov)
        self.weight_decay = _checked_number(self.name, "weight_decay", weight_decay, 0.0)
        if self.nesterov and self.momentum == 0.0:
            raise ValueError(f"{self.name}: expected momentum > 0 with nesterov, got {momentum!r}")
        self._moments = {"velocities": self._zeros()} if self.momentum else {}

    loop = "sgd"

    def settings(self, rate: float, steps: int) -> tuple[float, ...]:
        return rate, self.momentum, self.weight_decay, self.nesterov


class Adam(Optimiser):
    """Steps of a size that hardly depends on the size of the gradients, by running means of them and their squares.

    >>> from gradwalk import Value
    >>> x = Value(3.0)
    >>> optimiser = Adam([x], lr=0.1)
    >>> (x * x).backward()
    >>> optimiser.step()
    >>> round(x.data, 6)
    2.9
    """

    def __init__(
        self, parameters: Iterable[Any], lr: float = 1e-2, betas: tuple[float, float] = (0.9, 0.95), eps: float = 1e-8
    ) -> None:
        super().__init__(parameters, lr)
        beta, beta_square = betas
        self.betas = (
            _checked_number(self.name, "betas", beta, 0.0, 1.0),
            _checked_number(self.name, "betas", beta_square, 0.0, 1.0),
        )
        self.eps = _checked_number(self.name, "eps", eps, 0.0)
        if self.eps == 0.0:
            raise ValueError(f"{self.name}: expected eps > 0, got {eps!r}; a gradient of zero would divide by it")
        self.weight_decay = 0.0
        self._moments = {"means": self._zeros(), "squares": self._zeros()}

    @property
    def steps_by_loop(self) -> bool:
        """Whether a step is Adam's own: no subclass, and nobody since, has put another in its place."""
        kind, own = type(self), self.__dict__
        return (
            kind.step is _STEP and kind.zero_grad is _ZERO_GRAD and kind._move is _MOVE and self.loop == "adam"
            and not ("step" in own or "zero_grad" in own or "_move" in own)
        )  # fmt: skip

    def step_by(self, loop: Callable[..., None], slots: Any, lr: float | None = None) -> None:
        """`step`, carried out by the loop of a compiled function, which has the gradients in these slots."""
        rate, (means, squares) = self._counted(lr), self._moments.values()
        beta, beta_square, step, scale, eps, shrink = self.settings(rate, self.steps - 1)  # one by one: it is quicker
        loop(self.parameters, slots, beta, beta_square, step, scale, eps, shrink, means, squares)

    loop = "adam"

    def settings(self, rate: float, steps: int) -> tuple[float, ...]:
        beta, beta_square = self.betas
        # the running means start at zero; dividing by what is missing to one takes that bias out
        step, scale = rate / (1.0 - beta ** (steps + 1)), 1.0 / math.sqrt(1.0 - beta_square ** (steps + 1))
        return beta, beta_square, step, scale, self.eps, 1.0 - rate * self.weight_decay


_STEP, _ZERO_GRAD, _MOVE = Adam.step, Adam.zero_grad, Adam._move


class AdamW(Adam):
    """Adam with weight decay kept apart from the gradient: every step shrinks each parameter by lr · weight_decay.

    >>> from gradwalk import Value
    >>> x = Value(2.0)
    >>> AdamW([x], lr=0.1, weight_decay=0.5).step()
    >>> x.data
    1.9
    """

    def __init__(
        self, parameters: Iterable[Any], lr: float = 1e-2, betas: tuple[float, float] = (0.9, 0.95), eps: float = 1e-8,
        weight_decay: float = 0.01,
    ) -> None:  # fmt: skip
        super().__init__(parameters, lr, betas, eps)
        self.weight_decay = _checked_number(self.name, "weight_decay", weight_decay, 0.0)


OPTIMISERS: dict[str, type[Optimiser]] = {kind.__name__.lower(): kind for kind in (Adam, AdamW, SGD)}


def takers(setting: str) -> list[str]:
    """The names of the optimisers that have this setting.

    >>> takers("weight_decay")
    ['adamw', 'sgd']
    """
    return [name for name, kind in OPTIMISERS.items() if setting in inspect.signature(kind).parameters]


def clip_gradients(parameters: Iterable[Any], max_norm: float) -> float:
    """Scale all gradients down together, so that their length is at most `max_norm`; returns the length before.

    >>> from gradwalk import Value
    >>> x, y = Value(3.0), Value(4.0)
    >>> (0.5 * (x * x + y * y)).backward()
    >>> clip_gradients([x, y], max_norm=1.0)
    5.0
    >>> x.grad, y.grad
    (0.6000000000000001, 0.8)
    """
    checked = tuple(parameters)
    loops = _loops_for("clip_gradients", checked)
    longest = _checked_number("clip_gradients", "max_norm", max_norm, 0.0)
    with THE_PASS.lock:
        length: float = loops.gradient_norm(checked)
        if not math.isfinite(length):
            grads = [number_of(parameter.grad) for parameter in checked]
            where = next((f"{grad} at parameter {i}" for i, grad in enumerate(grads) if not math.isfinite(grad)), "inf")
            raise ValueError(f"clip_gradients: expected a finite gradient norm, got {where}; nothing was scaled")
        if length > longest:
            loops.scale_gradients(checked, longest / length)
    return length


# ---------------------------------------------------------------- schedules: step, from 0 → factor of the learning rate


def _schedule(shape: Callable[[float], float], steps: int, warmup: int, floor: float) -> Schedule:
    if not (0 <= warmup < steps or steps == 0 == warmup):
        raise ValueError(f"schedule: expected 0 <= warmup < steps, got warmup {warmup} of {steps} steps")
    lowest = _checked_number("schedule", "floor", floor, 0.0)

    def factor(step: int) -> float:
        if step < warmup:
            return (step + 1) / (warmup + 1)
        progress = (step - warmup) / (steps - warmup) if step < steps else 1.0
        return lowest + (1.0 - lowest) * shape(progress)

    return factor


def constant(steps: int, warmup: int = 0, floor: float = 0.0) -> Schedule:
    """1 at every step after the warm-up; `floor` is taken so that all schedules are called alike.

    >>> [constant(10, warmup=3)(step) for step in range(5)]
    [0.25, 0.5, 0.75, 1.0, 1.0]
    """
    return _schedule(lambda progress: 1.0, steps, warmup, floor)


def linear(steps: int, warmup: int = 0, floor: float = 0.0) -> Schedule:
    """From 1 straight down to `floor` at the end of `steps`.

    >>> [linear(4)(step) for step in range(6)]
    [1.0, 0.75, 0.5, 0.25, 0.0, 0.0]
    """
    return _schedule(lambda progress: 1.0 - progress, steps, warmup, floor)


def cosine(steps: int, warmup: int = 0, floor: float = 0.0) -> Schedule:
    """From 1 down to `floor` along half a wave: slowly at first and at the end.

    >>> [round(cosine(4, floor=0.1)(step), 3) for step in range(5)]
    [1.0, 0.868, 0.55, 0.232, 0.1]
    """
    return _schedule(lambda progress: 0.5 * (1.0 + math.cos(math.pi * progress)), steps, warmup, floor)


SCHEDULES: dict[str, Callable[..., Schedule]] = {"constant": constant, "linear": linear, "cosine": cosine}
