"""`compile(function)`: the function, traced when it is first called and replayed from then on.

Randomness, printing and other side effects happen while tracing, not in the calls after it. Values the function
closes over are bound by reference: their numbers may change, which Values they are may not.
"""

from __future__ import annotations

import functools
import math
import os
import sys
import types
import warnings
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, Concatenate, Generic, NoReturn, ParamSpec, TypeVar, overload

import numpy as np

from gradwalk import engine, functional
from gradwalk.cached_property import cached_property
from gradwalk.compiler import batch, runs
from gradwalk.compiler.elsewhere import NUMBERS, ROWS, SUMS, Elsewhere, Known
from gradwalk.compiler.inside import refuse_differentiated, refuse_traced
from gradwalk.compiler.program import Program
from gradwalk.compiler.reading import Call, Fixed, Result, with_line
from gradwalk.compiler.trace import constant, is_tracing, result_of
from gradwalk.compiler.version import INAPPLICABLE, PLAIN, SEVERAL, Run, Version
from gradwalk.control import changed, current_modes, differentiated, inside, no_grad
from gradwalk.errors import GradwalkWarning, add_note, refusals
from gradwalk.files import write_file
from gradwalk.passes import Locked
from gradwalk.structure import is_number, is_value, values_among

if TYPE_CHECKING:
    from gradwalk.compiler.models import Models
    from gradwalk.compiler.runs import RunOfGradient, RunOfResult
    from gradwalk.compiler.to_jax import JaxFunction

KEPT = 32  # programs for one function; the one that was not used for longest goes
_FLOAT64 = np.dtype(np.float64)
_IN_ORDER = 0x101  # of an array's flags: C-contiguous and aligned
Number = engine.Value | float
_WARNED_AFTER = 8  # programs for arguments of one structure


P = ParamSpec("P")
Q = ParamSpec("Q")
A = TypeVar("A")
R = TypeVar("R", covariant=True)


@overload
def compile(function: Callable[P, R], *, exact: bool = False) -> Compiled[P, R]: ...
@overload
def compile(function: None = None, *, exact: bool = False) -> Callable[[Callable[P, R]], Compiled[P, R]]: ...
def compile(function: Callable[..., Any] | None = None, *, exact: bool = False) -> Any:
    """The function as a replayed program; also a decorator. `exact` keeps the eager engine's order and rounding.

    >>> @compile
    ... def energy(xs):
    ...     return sum(x * x for x in xs)
    >>> energy([3.0, 4.0]).data
    25.0
    >>> energy.value_and_grad([3.0, 4.0])
    (25.0, [6.0, 8.0])
    """
    if function is None:
        return functools.partial(compile, exact=exact)
    if not callable(function):
        raise TypeError(f"compile: expected a function, got a {type(function).__name__}")
    return Compiled(function, exact)


class Compiled(functional.Replayed, Generic[P, R]):
    """A compiled function. Calling it makes one node; `programs` are all that its guards have made."""

    def __init__(self, function: Callable[P, R], exact: bool = False) -> None:
        functools.update_wrapper(self, function)
        self.function, self.exact = function, exact
        self._versions: dict[Hashable, tuple[Version, ...]] = {}  # of each structure, the last used first
        self._used: dict[Hashable, None] = {}  # the structures, the last used last
        self._latest: Version | None = None
        self._arrays: dict[tuple[int, ...], Version] = {}  # the last version for one array of this shape
        self._warned = False
        self._bound: dict[int, Compiled[..., Any]] = {}  # as a method: one for each object
        self._locked = Locked()  # held where the above are changed, and while nothing else is done

    def __reduce__(self) -> Any:
        """By the name that its module or its object has for it, else as the function and the options."""
        owner, name = getattr(self.function, "__self__", None), getattr(self, "__name__", "")
        if isinstance(getattr(type(owner), name, None), Compiled):
            return getattr, (owner, name)
        return functional.name_of(self) or (Compiled, (self.function, self.exact))

    # ---------------------------------------------------------------- for people who look

    @property
    def programs(self) -> list[Program]:
        """Every program made so far, the last used one first for each structure of arguments."""
        return [version.program for key in list(self._used) for version in self._versions.get(key, ())]

    @property
    def program(self) -> Program:
        """The program last used for the structure of arguments seen last."""
        if self._latest is None:
            raise ValueError(f"compile: expected a call of {with_line(self.function)} before its program is looked at")
        return self._latest.program

    def __repr__(self) -> str:
        return f"<compiled {with_line(self.function)}, {len(self.programs)} programs>"

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Compiled[P, R]: ...
    @overload
    def __get__(self: Compiled[Concatenate[Any, Q], R], instance: object, owner: Any = None) -> Compiled[Q, R]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """As a method: compiled for this object alone, whose Values are closed over."""
        if instance is None:
            return self
        bound = self._bound.get(id(instance))  # which it keeps alive, so that the id stays its own
        if bound is None:
            with self._locked.lock:
                method = Compiled(types.MethodType(self.function, instance), self.exact)
                bound = self._bound.setdefault(id(instance), method)
                if len(self._bound) > KEPT:
                    del self._bound[next(iter(self._bound))]
        return bound

    # ---------------------------------------------------------------- calls

    @overload
    def __call__(self: Compiled[P, Number], *args: P.args, **kwargs: P.kwargs) -> engine.Value: ...
    @overload
    def __call__(self: Compiled[P, list[float]], *args: P.args, **kwargs: P.kwargs) -> list[engine.Value]: ...
    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        modes = current_modes()
        if modes.trace is not None:  # inside another compiled function it is part of that one's graph
            return self.function(*args, **kwargs)
        if modes.derivatives > 1:  # one node has a first derivative only
            return self._plain(args, kwargs)
        if "scipy" in sys.modules and sys._getframe(1).f_globals.get("__name__", "").startswith("scipy."):
            return self._numbers(args, kwargs)  # SciPy computes with what it gets, and hands no gradient on
        made = self._run(Run.node, args, kwargs)
        return self._plain(args, kwargs) if made is PLAIN else made

    @no_grad()
    def _numbers(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        made = self._run(Run.node, args, kwargs)
        return self._plain(args, kwargs) if made is PLAIN else made

    @overload
    def value_and_grad(self: Compiled[[A], Any], x: A, /) -> tuple[float, A]: ...
    @overload
    def value_and_grad(self, *args: P.args, **kwargs: P.kwargs) -> tuple[float, Any]: ...
    def value_and_grad(self, *args: Any, **kwargs: Any) -> tuple[float, Any]:
        """The value, and its gradient by the numbers of the arguments, in their structure (of several: a tuple)."""
        value, whole, call = self._value_and_whole(args, kwargs)
        if call is not None and call.fixed is not None:
            whole = runs.by_fixed_integers(self._other_for_floats._value_and_whole, value, whole, call, call.fixed)
        return value, whole[0] if len(whole) == 1 else whole

    def _value_and_whole(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, tuple[Any, ...], Any]:
        """The value, its gradient by each argument, and the call; fixed integers do not move."""
        made = self._run(Run.value_and_gradient, args, kwargs, apart=True)
        if made is PLAIN:
            refuse_traced("value_and_grad", self.function)
        if made is SEVERAL:
            self._refuse_many()
        value, gradient, call = self._eager_value_and_grad(args, kwargs) if made is PLAIN else made
        if call is None:
            return value, (gradient if args[0].ndim == 1 else gradient.reshape(args[0].shape),), None
        filled, named = call.filled(gradient, as_argument=False)
        return value, (*filled, named) if named else filled, call

    @cached_property
    def _other_for_floats(self) -> AnyCompiled:
        """For what is called with floats in place of integers: such programs are none that the user asked for."""
        other = Compiled(self.function, self.exact)
        other._warned = True
        return other

    def backward(self, *args: P.args, **kwargs: P.kwargs) -> float:
        """What `compiled(*args).backward()` does, without the node: adds to the leaves' gradients, returns the value.

        >>> weight = engine.Value(3.0)
        >>> compile(lambda x: weight * x).backward(2.0), weight.grad
        (6.0, 2.0)
        """
        if differentiated:
            refuse_differentiated("backward", self, self, *args, **kwargs)
        made = self._run(Run.backward, args, kwargs)
        if made is SEVERAL:
            self._refuse_many("backward")
        if made is not PLAIN:
            return made  # type: ignore[no-any-return]
        refuse_traced("backward", self.function)
        with changed(no_grad=False):  # as where a program does it
            out = self._one(self._plain(args, kwargs), "backward")
            out.backward()
        return float(out.data)

    def train_step(self, optimiser: Any, *args: Any, lr: float | None = None, **kwargs: Any) -> float:
        """What `backward(*args)`, `optimiser.step(lr)` and `optimiser.zero_grad()` do, in one go; returns the value.

        Where the value is not finite, nothing is moved.

        >>> from gradwalk.optim import Adam
        >>> weight = engine.Value(3.0)
        >>> error = compile(lambda x: (weight * x - 1.0) ** 2)
        >>> optimiser = Adam([weight], lr=0.1)
        >>> error.train_step(optimiser, 2.0), round(weight.data, 6), weight.grad
        (25.0, 2.9, 0.0)
        """
        if differentiated:
            refuse_differentiated("train_step", self, self, *args, **kwargs)
        # a wrapper that hands on what it has not has a step of its own
        if hasattr(type(optimiser), "steps_by_loop") and optimiser.steps_by_loop:
            value = self._run(lambda run, numbers, _: run.train(numbers, optimiser, lr), args, kwargs)
            if type(value) is float:
                return value
        if not hasattr(optimiser, "zero_grad"):
            raise TypeError(f"compile: train_step expected an optimiser first, got a {type(optimiser).__name__}")
        refuse_traced("train_step", self.function)
        value = self.backward(*args, **kwargs)
        if math.isfinite(value):
            optimiser.step() if lr is None else optimiser.step(lr)  # an optimiser of one's own may have no lr to give
        optimiser.zero_grad()
        return value

    def hessian_vector(self, *args: Any, vector: Any) -> Any:
        """The Hessian by the numbers of the arguments, times `vector`, which has their structure (of several: a tuple).

        Integers do not move: by them it is 0.

        >>> compile(lambda x: x[0] * x[0] * x[1]).hessian_vector([3.0, 5.0], vector=[1.0, 0.0])
        [10.0, 6.0]
        """
        vectors = vector if len(args) > 1 else (vector,)
        try:
            if current_modes().derivatives or is_tracing():
                raise runs.RecordError
            product = self.derivatives.hessian_vector(args, vectors)
        except runs.RecordError:
            product = runs.plain_hessian_vector(self._of_floats, args, vectors)
        return product[0] if len(args) == 1 else product

    # ---------------------------------------------------------------- elsewhere

    def to_jax(self, *example: Any) -> JaxFunction:
        """The program for arguments like these as a function of jax arrays: (leaves, arguments) → outputs, holds.

        It is pure, so `jax.jit`, `grad`, `vmap` and meshes take it; docs/more-machines.md says when that pays.
        """
        from gradwalk.compiler.to_jax import to_jax

        return to_jax(self, self.version_for(example, "to_jax"))

    def export(self, path: str | os.PathLike[str], *example: Any) -> None:
        """Write the same function, over a batch of arguments, to a StableHLO file that jax reads without gradwalk.

        Without an example it is the program used last. `jax.export.deserialize` gives (leaves, arguments) → outputs,
        holds, with a row of numbers for each input, and its gradients; the leaves are those of `to_jax`, in its order.
        """
        from gradwalk.compiler.to_jax import exported, to_jax

        version = self.version_for(example, "export") if example or self._latest is None else self._latest
        write_file(path, exported(to_jax(self, version)))

    def models(self, weights: Any, parameters: Any, device: str = "") -> Models:
        """Many models of this function's shape, stepped side by side by one program: `step(optimiser, inputs)`.

        `parameters` are the Values the function closes over (a Module, a list, a dict of lists), `weights` one model or
        list of numbers for each, a matrix with a row for each, or a dict of arrays with an axis for the models first.
        With `device="jax"` they live and are stepped on jax's device, in its precision.

        >>> from gradwalk.optim import Adam
        >>> weight = engine.Value(0.0)
        >>> error = compile(lambda x: (weight * x - 1.0) ** 2)
        >>> models = error.models([[3.0], [1.0]], [weight])
        >>> models.step(Adam([weight]), [2.0, 2.0], lr=[0.1, 0.0]).tolist()
        [25.0, 1.0]
        >>> models.weights.round(6).tolist()
        [[2.9], [1.0]]
        """
        if device not in ("", "jax"):
            raise ValueError(f"models: expected device='jax', or none for the native executor, got {device!r}")
        if device == "jax":
            from gradwalk.compiler.jax_models import JaxModels

            return JaxModels(self, weights, parameters)
        from gradwalk.compiler.models import Models

        return Models(self, weights, parameters)

    def version_for(self, args: tuple[Any, ...], called: str) -> Version:
        """The version that applies to these arguments, to be taken elsewhere."""
        refuse_traced(called, self.function)
        found = self._run(Run.applicable, args, {})
        if found is PLAIN:
            raise ValueError(
                f"{called}: expected arguments for which {with_line(self.function)} is a program; for these only the "
                "plain function knows the result: it compares numbers that are too close, or catches an error"
            )
        if found.values:
            raise TypeError(f"{called}: expected plain numbers as arguments, got a Value among them")
        return found  # type: ignore[no-any-return]

    # ---------------------------------------------------------------- for functional.py

    @cached_property
    def derivatives(self) -> runs.Derivatives:
        """The programs for its other derivatives, made when they are asked for."""
        return runs.Derivatives(self)

    def value_and_gradient_at(self, array: Any) -> tuple[float, Any] | None:
        if type(array) is not np.ndarray or array.dtype is not _FLOAT64:
            return None
        made = self._run(Run.value_and_gradient, (array,), {}, apart=True)
        if type(made) is not tuple:
            return None
        return made[0], made[1] if array.ndim == 1 else made[1].reshape(array.shape)

    def product_at(self, array: Any, direction: Any) -> Any:
        return self.derivatives.quick_product(array, direction)

    def run_at(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], places: list[int | str], in_tuple: bool, of_gradient: bool
    ) -> RunOfResult | RunOfGradient | None:
        return runs.run_at(self, args, kwargs, places, in_tuple, of_gradient)

    # ---------------------------------------------------------------- many inputs

    @cached_property
    def known_elsewhere(self) -> Known:
        """What has been made ready to travel to an executor's workers."""
        return Known()

    def _way(self, executor: Executor | None, threads: int | None) -> batch.Here:
        return batch.Here(threads) if executor is None else Elsewhere(executor, self.known_elsewhere)

    def map(
        self: AnyCompiled, inputs: Iterable[Any], *, executor: Executor | None = None, threads: int | None = None
    ) -> list[Any]:
        """The function of each input (a tuple: of several arguments), in one pass for those of one structure.

        A batch is shared among `threads` of this process (as many as there are cores), or the workers of an `executor`
        like those of `concurrent.futures`; the numbers are the same, to the bit.

        >>> weight = engine.Value(3.0)
        >>> scaled = compile(lambda x: weight * x).map([1.0, 2.0])
        >>> (scaled[0] + scaled[1]).backward()
        >>> weight.grad
        3.0
        """
        way = self._way(executor, threads)
        return batch.mapped(self, inputs, batch.nodes, NUMBERS, lambda args: self(*args), way)

    def map_backward(
        self: AnyCompiled, inputs: Iterable[Any], *, executor: Executor | None = None, threads: int | None = None
    ) -> list[float]:
        """What `sum(compiled.map(inputs)).backward()` does, without the nodes; returns the values.

        >>> weight = engine.Value(3.0)
        >>> compile(lambda x: weight * x).map_backward([1.0, 2.0]), weight.grad
        ([3.0, 6.0], 3.0)
        """
        inputs, way = list(inputs), self._way(executor, threads)
        if differentiated:
            refuse_differentiated("map_backward", self, self.map, inputs)
        return batch.mapped(self, inputs, batch.accumulated, SUMS, lambda args: self.backward(*args), way)

    def map_gradients(
        self: AnyCompiled, inputs: Iterable[Any], parameters: Iterable[Any], *, executor: Executor | None = None,
        threads: int | None = None,
    ) -> tuple[list[float], Any]:  # fmt: skip
        """The values, and an array with a row for each: its own gradient by these Values the function closes over.

        >>> weight = engine.Value(3.0)
        >>> values, gradients = compile(lambda x: weight * x).map_gradients([1.0, 2.0], [weight])
        >>> gradients.tolist()
        [[1.0], [2.0]]
        """
        asked, inputs = list(parameters), list(inputs)
        refuse_traced("map_gradients", self.function)
        if differentiated:
            refuse_differentiated("map_gradients", self, self.map, inputs)

        def alone(args: tuple[Any, ...]) -> tuple[float, list[float]]:
            with changed(no_grad=False):
                out = self._one(self(*args), "map_gradients")
            return out.data, engine.gradients_of(out, asked)

        way = self._way(executor, threads)
        made = batch.mapped(self, inputs, functools.partial(batch.gradients_by, asked), ROWS, alone, way)
        return [number for number, _ in made], np.array([row for _, row in made]).reshape(len(made), len(asked))

    def map_train_step(
        self: AnyCompiled, optimiser: Any, inputs: Iterable[Any], *, lr: float | None = None,
        executor: Executor | None = None, threads: int | None = None,
    ) -> list[float]:  # fmt: skip
        """`train_step` over a batch: along the gradient of the sum of the values, which are returned.

        Where a value is not finite, nothing is moved.

        >>> from gradwalk.optim import SGD
        >>> weight = engine.Value(3.0)
        >>> error = compile(lambda x: (weight * x - 1.0) ** 2)
        >>> error.map_train_step(SGD([weight], lr=0.1), [1.0, 2.0]), round(weight.data, 6)
        ([4.0, 25.0], 0.6)
        """
        if not hasattr(optimiser, "zero_grad"):
            raise TypeError(f"compile: map_train_step expected an optimiser first, got a {type(optimiser).__name__}")
        refuse_traced("map_train_step", self.function)
        inputs = list(inputs)
        if differentiated:
            refuse_differentiated("map_train_step", self, self.map, inputs)
        values = self.map_backward(inputs, executor=executor, threads=threads)
        if all(map(math.isfinite, values)):
            optimiser.step(lr)
        optimiser.zero_grad()
        return values

    def _raise_if_plain(self, error: Exception, version: Version, failed: list[tuple[Any, ...]]) -> None:
        """A custom operation's error, where the plain function comes to that operation too: now, it might not fail."""
        again = [self._traced(Call(args, {}), changing=False, another_structure=False) for args in failed]
        if any(each.digest == version.digest for each in again) and not any(each.caught for each in again):
            raise error  # where one of them catches it, the others have failed for reasons of their own

    # ---------------------------------------------------------------- the plain function

    def _plain(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the function itself says, given Values for numbers as in a trace; plain numbers under no_grad."""
        result = self.plain_result(Call(args, kwargs))
        return result.fill(result.values if not current_modes().no_grad else [value.data for value in result.values])

    def plain_result(self, call: Call) -> Result:
        """The same, not yet put together."""
        return result_of(self._applied(call), self.function, branches=True)  # of many calls this may be one branch

    def _applied(self, call: Call) -> Any:
        given = [x if is_value(x) or type(x) is int else engine.Value(x) for x in call.taken_apart()]
        with inside(values_among(given)):
            return call.applied(self.function, given)

    def _one(self, out: Any, called: str = "value_and_grad") -> Any:
        """The result, if it is one Value, on its own or the only one of an array."""
        if isinstance(out, np.ndarray) and out.size == 1:
            out = out.item()
        return out if is_value(out) else constant(out) if is_number(out) else self._refuse_many(called)

    def _refuse_many(self, called: str = "value_and_grad") -> NoReturn:
        raise TypeError(
            f"compile: {called} expected {with_line(self.function)} to return one Value, got a structure of them"
        )

    def _eager_value_and_grad(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[float, Any, Call]:
        """The value, its gradient by each entry of the arguments, and the call."""
        call = Call(args, kwargs, apart=True)
        floats = runs.floats_in(call)
        value, gradient = functional.value_and_grad(self._of_floats(call))(floats)
        call.fixed = Fixed() if call.settings or len(floats) < len(call.taken_apart()) else None
        return value, runs.beside_integers(call, gradient, 0.0), call

    def _of_floats(self, call: Call) -> Callable[[list[Any]], Any]:
        """The plain function of the numbers in its arguments that are no integers."""
        return lambda floats: self._one(call.applied(self.function, runs.beside_integers(call, floats)))

    # ---------------------------------------------------------------- the door

    def _run(self, use: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], apart: bool = False) -> Any:
        """What `use(run, numbers, call)` makes of a run of the program that applies to these arguments.

        It is `PLAIN` where only the plain function will do.
        """
        modes = current_modes()
        # detect_nonfinite() wants to see each operation, and its line; a derivative of a derivative, what it is made of
        if modes.trace is not None or modes.watched or (apart and modes.derivatives):
            return PLAIN
        error = failed = None
        array: Any = args[0] if len(args) == 1 and not kwargs else None
        if type(array) is np.ndarray and array.dtype is _FLOAT64 and array.flags.num & _IN_ORDER == _IN_ORDER:
            version = self._arrays.get(array.shape)  # there is nothing to find out but the shape
            if version is not None:
                made = version.used(use, array if array.ndim == 1 else array.reshape(-1), None)
                if made is not INAPPLICABLE:
                    if version is not self._latest and made is not PLAIN:
                        self._remember(version, array)
                    return made
                error, failed = version.raised(), version
        call = Call(args, kwargs, apart)
        data, numbers = call.numbers()
        versions = self._versions.get(call.key, ())
        for version in versions:
            if version.fits(data) and version is not failed:
                made = version.used(use, numbers, call)
                if made is not INAPPLICABLE:
                    if version is not self._latest and made is not PLAIN:
                        self._remember(version, array)
                    return made
                if (raised := version.raised()) is not None:
                    error, failed = raised, version
        changing = any(version.opened or not version.fits(data) for version in versions)  # the integers
        version = self._traced(call, changing, another_structure=bool(self._versions) and not versions)
        if error is not None and failed is not None and failed.digest == version.digest and not version.caught:
            raise error  # of a custom operation, and only in the program: the plain function would have come to it too
        if version.caught:
            return PLAIN  # an error it caught is a branch without a comparison: only the plain function knows
        if any(version.digest == other.digest for other in versions):
            return PLAIN  # the guards hold, but an operation came out infinite or nan: the plain says why
        version = self._add(call.key, version, numbers)
        self._remember(version, array)
        made = version.used(use, numbers, call)
        if made is INAPPLICABLE and (error := version.raised()) is not None:
            raise error  # the trace has just come to that operation
        return PLAIN if made is INAPPLICABLE else made

    def _traced(self, call: Call, changing: bool, another_structure: bool) -> Version:
        before = refusals()
        try:
            return Version(self.function, call, self.exact, changing)
        except Exception as error:
            if refusals().unlike_floats != before.unlike_floats:
                self._raise_own_error(call)
            if another_structure:
                add_note(
                    error,
                    f"compile: {with_line(self.function)} was called with arguments of another structure than before, "
                    "and traced again for them",
                )
            raise

    def _raise_own_error(self, call: Call) -> None:
        """A number may have been refused in the text of an error: then that error is raised."""
        try:
            self._applied(call)
        except Exception as own:
            raise own from None

    def _remember(self, version: Version, array: Any) -> None:
        """The version was used last."""
        key = version.key
        with self._locked.lock:
            others = self._versions.get(key)
            if others is None or version not in others:  # it was dropped meanwhile
                return
            if type(array) is np.ndarray and array.dtype == np.float64:
                self._arrays[array.shape] = version
            if others[0] is not version:
                self._versions[key] = (version, *[other for other in others if other is not version])
            self._used.pop(key, None)
            self._used[key] = None
            self._latest = version

    def _add(self, key: Hashable, version: Version, numbers: Any) -> Version:
        """The version is kept; or the one like it that another thread has made meanwhile is returned."""
        with self._locked.lock:
            versions = self._versions.get(key, ())
            like = next((other for other in versions if other.digest == version.digest), None)
            if like is not None:
                return like
            if version.opened:  # it serves what those with more integers fixed served
                versions = tuple(other for other in versions if not version.whole.keys() < other.whole.keys())
            self._versions[key] = (version, *versions)
            self._used[key] = None
            count, structures = sum(map(len, self._versions.values())), len(self._versions)
            if count > KEPT:
                oldest = next(iter(self._used))
                *kept, dropped = self._versions[oldest]
                self._arrays = {shape: other for shape, other in self._arrays.items() if other is not dropped}
                if kept:
                    self._versions[oldest] = tuple(kept)
                else:
                    del self._versions[oldest], self._used[oldest]
        if not self._warned and len(versions) >= _WARNED_AFTER:
            self._warn(
                f"was traced {len(versions) + 1} times for arguments of one structure, because "
                f"{versions[0].what_changed(numbers)} keeps changing; use gradwalk.where, maximum or take for it, or "
                "leave the function uncompiled"
            )
        elif not self._warned and count > KEPT:
            self._warn(
                f"was called with arguments of {structures} structures, and keeps the last {KEPT} programs only; give "
                "it lists of the same lengths, or leave it uncompiled"
            )
        return version

    def _warn(self, message: str) -> None:
        self._warned = True
        warnings.warn(f"compile: {with_line(self.function)} {message}", GradwalkWarning, stacklevel=5)


AnyCompiled = Compiled[..., Any]
