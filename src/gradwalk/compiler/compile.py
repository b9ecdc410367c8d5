"""`compile(function)`: the function, traced when it is first called and replayed from then on.

Randomness, printing and other side effects happen while tracing, not in the calls after it. Values the function
closes over are bound by reference: their numbers may change, which Values they are may not.
"""

from __future__ import annotations

import functools
import itertools
import math
import types
import warnings
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np

from gradwalk import engine
from gradwalk.compiler import batch
from gradwalk.compiler.arguments import described, flatten_arrays, flatten_call, like_arguments, replaced
from gradwalk.compiler.program import Program
from gradwalk.compiler.replay import Derivatives, Replay, ReplayOfGradient, replay
from gradwalk.compiler.results import result_of
from gradwalk.compiler.trace import tracing
from gradwalk.compiler.version import Version
from gradwalk.control import current_modes, is_watched
from gradwalk.errors import add_note
from gradwalk.functional import is_nested
from gradwalk.structure import is_value, only_type, values_among, write

KEPT = 32  # programs for one function; the one that was not used for longest goes
_FLOAT64 = np.dtype(np.float64)
_WARNED_AFTER = 8  # programs for arguments of one structure


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


class Compiled:
    """A compiled function. Calling it makes one node; `programs` are all that its guards have made."""

    def __init__(self, function: Callable[..., Any], exact: bool = False) -> None:
        functools.update_wrapper(self, function)
        self.function, self.exact = function, exact
        self._versions: dict[Hashable, list[Version]] = {}
        self._arrays: dict[tuple[int, ...], Version] = {}  # the last version for one array of this shape
        self._count = 0
        self._warned = False
        self._bound: dict[int, Compiled] = {}  # as a method: one for each object

    # ---------------------------------------------------------------- for people who look

    @property
    def programs(self) -> list[Program]:
        """Every program made so far, the last used one first for each structure of arguments."""
        return [version.program for versions in self._versions.values() for version in versions]

    @property
    def program(self) -> Program:
        """The program last used for the structure of arguments seen last."""
        if not self._versions:
            raise ValueError(f"compile: expected a call of {described(self.function)} before its program is looked at")
        return self._versions[next(reversed(self._versions))][0].program

    def __repr__(self) -> str:
        return f"<compiled {described(self.function)}, {len(self.programs)} programs>"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """As a method: compiled for this object alone, whose Values are closed over."""
        if instance is None:
            return self
        bound = self._bound.get(id(instance))  # which it keeps alive, so that the id stays its own
        if bound is None:
            bound = self._bound[id(instance)] = Compiled(types.MethodType(self.function, instance), self.exact)
            if len(self._bound) > KEPT:
                del self._bound[next(iter(self._bound))]
        return bound

    # ---------------------------------------------------------------- calls

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if tracing.active:  # inside another compiled function it is part of that one's graph
            return self.function(*args, **kwargs)
        if is_nested():  # one node has a first derivative only
            return self._plain(args, kwargs)
        entries: list[Any] = []
        version = self._quick(args) if not kwargs else None
        if version is None:
            version = self._version(args, kwargs, entries)
            if version is None:
                return self._plain(args, kwargs)
        try:
            return version.node(entries)
        finally:
            version.lock.release()

    def value_and_grad(self, *args: Any, **kwargs: Any) -> tuple[float, Any]:
        """The value, and its gradient by the numbers of the arguments, in their structure (of several: a tuple)."""
        both = self.quick_value_and_grad(args[0]) if len(args) == 1 and not kwargs else None
        if both is not None:
            return both
        entries: list[Any] = []
        version = self._version(args, kwargs, entries)
        if version is None:
            return self._eager_value_and_grad(args, kwargs)
        try:
            if not version.result.single:
                self._refuse_many()
            value, gradient = version.value_and_gradient()
        finally:
            version.lock.release()
        whole = args if not kwargs else (*args, kwargs)
        made = like_arguments(whole, gradient)
        return value, made[0] if len(whole) == 1 else made

    def backward(self, *args: Any, **kwargs: Any) -> float:
        """What `compiled(*args).backward()` does, without the node: adds to the leaves' gradients, returns the value.

        >>> weight = engine.Value(3.0)
        >>> compile(lambda x: weight * x).backward(2.0), weight.grad
        (6.0, 2.0)
        """
        entries: list[Any] = []
        version = self._quick(args) if not kwargs else None
        if version is None:
            version = self._version(args, kwargs, entries)
        if version is None or version.values or not version.result.single:
            if version is not None:
                version.lock.release()
            out = self(*args, **kwargs)
            if not is_value(out):
                self._refuse_many("backward")
            out.backward()
            return float(out.data)
        try:
            return version.accumulate()
        finally:
            version.lock.release()

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
        if not hasattr(optimiser, "zero_grad"):
            raise TypeError(f"compile: train_step expected an optimiser first, got a {type(optimiser).__name__}")
        version = self._version(args, kwargs, []) if hasattr(optimiser, "step_by") else None
        if version is not None:
            try:
                if version.result.single and not version.values and (value := version.train(optimiser, lr)) is not None:
                    return value
            finally:
                version.lock.release()
        value = self.backward(*args, **kwargs)
        if math.isfinite(value):
            optimiser.step(lr)
        optimiser.zero_grad()
        return value

    def hessian_vector(self, *args: Any, vector: Any) -> Any:
        """The Hessian by the numbers of the arguments, times `vector`, which has their structure (of several: a tuple).

        >>> compile(lambda x: x[0] * x[0] * x[1]).hessian_vector([3.0, 5.0], vector=[1.0, 0.0])
        [10.0, 6.0]
        """
        product = self.derivatives.hessian_vector(args, vector if len(args) > 1 else (vector,))
        return product[0] if len(args) == 1 else product

    # ---------------------------------------------------------------- for functional.py

    @functools.cached_property
    def derivatives(self) -> Derivatives:
        """The programs for its other derivatives, made when they are asked for."""
        return Derivatives(self)

    def quick_value_and_grad(self, array: Any) -> tuple[float, Any] | None:
        """`value_and_grad` of an array, if there is a program for it that applies."""
        version = self._array_version(array)
        if version is None or not version.result.single or tracing.active:
            return None
        return version.run_with_gradient(array)

    def quick_hessian_vector(self, array: Any, vector: Any) -> Any:
        """`hessian_vector` of an array with another of its shape; None for anything else."""
        return None if tracing.active or is_watched() else self.derivatives.quick_product(array, vector)

    def replay(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], places: list[int | str], in_tuple: bool, of_gradient: bool
    ) -> Replay | ReplayOfGradient | None:
        """At these arguments, by programs; None where the plain function has to be recorded."""
        return None if tracing.active or is_watched() else replay(self, args, kwargs, places, in_tuple, of_gradient)

    # ---------------------------------------------------------------- many inputs

    def map(self, inputs: Iterable[Any]) -> list[Any]:
        """The function of each input (a tuple: of several arguments), in one pass for those of one structure.

        >>> weight = engine.Value(3.0)
        >>> scaled = compile(lambda x: weight * x).map([1.0, 2.0])
        >>> (scaled[0] + scaled[1]).backward()
        >>> weight.grad
        3.0
        """
        return self._mapped(inputs, batch.nodes, lambda args: self(*args))

    def map_backward(self, inputs: Iterable[Any]) -> list[float]:
        """What `sum(compiled.map(inputs)).backward()` does, without the nodes; returns the values.

        >>> weight = engine.Value(3.0)
        >>> compile(lambda x: weight * x).map_backward([1.0, 2.0]), weight.grad
        ([3.0, 6.0], 3.0)
        """
        return self._mapped(inputs, batch.accumulated, lambda args: self.backward(*args))

    def map_gradients(self, inputs: Iterable[Any], parameters: Iterable[Any]) -> tuple[list[float], Any]:
        """The values, and an array with a row for each: its own gradient by these Values the function closes over.

        >>> weight = engine.Value(3.0)
        >>> values, gradients = compile(lambda x: weight * x).map_gradients([1.0, 2.0], [weight])
        >>> gradients.tolist()
        [[1.0], [2.0]]
        """
        asked = list(parameters)
        columns = {id(parameter): column for column, parameter in enumerate(asked)}

        def together(version: Version, rows: Any) -> tuple[list[Any], list[int]]:
            numbers, by_leaf, failed = batch.gradients(version, rows)
            gradients = np.zeros((len(rows), len(asked)))
            for place, leaf in enumerate(version.leaves):
                if id(leaf) in columns:
                    gradients[:, columns[id(leaf)]] = by_leaf[:, place]
            return list(zip(numbers, gradients, strict=True)), failed

        def alone(args: tuple[Any, ...]) -> tuple[float, list[float]]:
            out = self(*args)
            if not is_value(out):
                self._refuse_many("map_gradients")
            return out.data, engine.gradients_of(out, asked)

        made = self._mapped(inputs, together, alone)
        return [number for number, _ in made], np.array([row for _, row in made]).reshape(len(made), len(asked))

    def _mapped(
        self,
        inputs: Iterable[Any],
        together: Callable[[Version, Any], tuple[list[Any], list[int]]],
        alone: Callable[[tuple[Any, ...]], Any],
    ) -> list[Any]:
        """What `together` makes of the inputs to which one program applies, and `alone` of those no program fits."""
        calls = [given if isinstance(given, tuple) else (given,) for given in inputs]
        results: list[Any] = [None] * len(calls)
        for key, rows in _by_structure(calls).items():
            if values_among(rows[0][1]):  # then there are in all of them
                for place, _ in rows:
                    results[place] = alone(calls[place])
                continue
            version = self._last_for(key, calls[rows[0][0]])  # which mostly applies to all of them
            while rows:  # one pass for each program that is needed; what the first of the rest needs is traced
                if version is None:
                    version = self._version(calls[rows[0][0]], {}, [])
                    if version is not None:
                        version.lock.release()
                if version is None or not version.result.single:
                    place, _ = rows.pop(0)
                    results[place] = alone(calls[place])
                    version = None
                    continue
                fitting = [row for row in rows if version.fits(row[1])]
                numbers = np.empty((len(fitting), len(rows[0][1])))
                write(list(itertools.chain.from_iterable(entries for _, entries in fitting)), numbers.reshape(-1))
                made, failed = together(version, numbers)
                for (place, _), result in zip(fitting, made, strict=True):
                    results[place] = result
                if not failed and len(fitting) == len(rows):
                    break
                done = {place for place, _ in fitting} - {fitting[row][0] for row in failed}
                if 0 in failed:  # another program's, or rounded otherwise beside others than by itself
                    results[rows[0][0]] = alone(calls[rows[0][0]])
                    done.add(rows[0][0])
                rows = [row for row in rows if row[0] not in done]
                version = None
        return results

    def _plain(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the function itself says, given Values for numbers as in a trace; plain numbers under no_grad."""
        given, named = replaced((args, kwargs), lambda x: x if is_value(x) else engine.Value(x), int)
        result = result_of(self.function(*given, **named), self.function)
        return result.filled(result.values if not current_modes()[0] else [value.data for value in result.values])

    def _refuse_many(self, called: str = "value_and_grad") -> None:
        raise TypeError(
            f"compile: {called} expected {described(self.function)} to return one Value, got a structure of them"
        )

    def _eager_value_and_grad(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[float, Any]:
        leaves: list[Any] = []

        def leaf(number: Any) -> Any:
            leaves.append(engine.Value(number.data if is_value(number) else number))
            return leaves[-1]

        def fixed(number: int) -> int:
            leaves.append(engine.Value(float(number)))
            return number

        given, named = replaced((args, kwargs), leaf, fixed)
        out = self.function(*given, **named)
        if not is_value(out):
            self._refuse_many()
        whole = args if not kwargs else (*args, kwargs)
        made = like_arguments(whole, np.array(engine.gradients_of(out, leaves)))
        return out.data, made[0] if len(whole) == 1 else made

    # ---------------------------------------------------------------- which program applies

    def _array_version(self, array: Any) -> Version | None:
        """The version that was right last time for an array of this shape."""
        if type(array) is not np.ndarray or array.dtype is not _FLOAT64 or not array.flags.c_contiguous or is_watched():
            return None
        return self._arrays.get(array.shape)

    def _quick(self, args: tuple[Any, ...]) -> Version | None:
        """That version, locked and run; None if there is none, or if it does not apply now."""
        version = self._array_version(args[0]) if len(args) == 1 else None
        if version is None:
            return None
        array = args[0]
        return version if version.locked_run(array if array.ndim == 1 else array.reshape(-1)) else None

    def _version(self, args: tuple[Any, ...], kwargs: dict[str, Any], entries: list[Any]) -> Version | None:
        """The version that applies, locked and run on these arguments; None if only the plain function will do."""
        if is_watched():
            return None  # detect_nonfinite() wants to see each operation, and its line
        pieces: list[Any] = []
        arrays = args and not kwargs and type(args[0]) is not list
        keys = [flatten_arrays(argument, pieces) for argument in args] if arrays else [None]
        if None not in keys:
            key: Hashable = tuple(keys)
            versions = self._versions.get(key, [])
            data: Any = np.concatenate(pieces, dtype=np.float64)
            numbers = data
        else:
            key = flatten_call(args, kwargs, entries)
            versions = self._versions.get(key, [])
            mixed = not versions or versions[0].values  # with Values among the entries, or nobody knows yet
            data = [entry.data if is_value(entry) else entry for entry in entries] if mixed else entries
            numbers = np.empty(len(data))
            write(data, numbers)
        for version in versions:
            if not version.fits(data):
                continue
            if version.locked_run(numbers):
                if version is not versions[0]:
                    versions.remove(version)
                    versions.insert(0, version)
                return self._remembered(version, key, args, kwargs)
            if version.executor.undecided:
                return None  # two numbers so close that only the plain function knows how it compares them
        version = self._traced(args, kwargs, another_structure=bool(self._versions) and not versions)
        if version.caught:
            return None  # an error it caught is a branch without a comparison: only the plain function knows
        if any(version.digest == other.digest for other in versions):
            return None  # the guards hold, but an operation came out infinite or nan: the plain function says why
        self._add(key, version, versions, numbers)
        return self._remembered(version, key, args, kwargs) if version.locked_run(numbers) else None

    def _last_for(self, key: Hashable, args: tuple[Any, ...]) -> Version | None:
        """The version used last for this structure, not run: whether it applies is not known."""
        versions = self._versions.get(key)
        return self._remembered(versions[0], key, args, {}) if versions and not is_watched() else None

    def _traced(self, args: tuple[Any, ...], kwargs: dict[str, Any], another_structure: bool) -> Version:
        tracing.active = True
        try:
            return Version(self.function, args, kwargs, self.exact)
        except Exception as error:
            if another_structure:
                add_note(
                    error,
                    f"compile: {described(self.function)} was called with arguments of another structure than before, "
                    "and traced again for them",
                )
            raise
        finally:
            tracing.active = False

    def _remembered(self, version: Version, key: Hashable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Version:
        if key != next(reversed(self._versions)):
            self._versions[key] = self._versions.pop(key)  # the structure used last comes last
        if len(args) == 1 and not kwargs and type(args[0]) is np.ndarray and args[0].dtype == np.float64:
            self._arrays[args[0].shape] = version
        return version

    def _add(self, key: Hashable, version: Version, versions: list[Version], numbers: Any) -> None:
        if len(versions) >= _WARNED_AFTER and not self._warned:
            self._warned = True
            warnings.warn(
                f"compile: {described(self.function)} was traced {len(versions) + 1} times for arguments of one "
                f"structure, because {versions[0].what_changed(numbers)} keeps changing; use gradwalk.where, "
                "maximum or take for it, or leave the function uncompiled",
                RuntimeWarning,
                stacklevel=4,
            )
        versions.insert(0, version)
        self._versions[key] = versions
        self._count += 1
        if self._count > KEPT and not self._warned:
            self._warned = True
            warnings.warn(
                f"compile: {described(self.function)} was called with arguments of {len(self._versions)} structures, "
                f"and keeps the last {KEPT} programs only; give it lists of the same lengths, or leave it uncompiled",
                RuntimeWarning,
                stacklevel=4,
            )
        while self._count > KEPT:
            oldest = next(iter(self._versions))
            dropped = self._versions[oldest].pop()
            self._arrays = {shape: kept for shape, kept in self._arrays.items() if kept is not dropped}
            if not self._versions[oldest]:
                del self._versions[oldest]
            self._count -= 1


def _by_structure(calls: list[tuple[Any, ...]]) -> dict[Hashable, list[tuple[int, list[Any]]]]:
    """The place and the entries of each call, sorted by the structure of its arguments."""
    sorted_by: dict[Hashable, list[tuple[int, list[Any]]]] = {}
    last: Any = None  # type and length of the last call's only argument, where it is a list of plain numbers
    alike: list[tuple[int, list[Any]]] = []  # the calls like it
    for place, args in enumerate(calls):
        row = (only_type(args[0]), len(args[0])) if len(args) == 1 and type(args[0]) is list else (None, 0)
        if row == last:
            alike.append((place, args[0]))
            continue
        entries: list[Any] = []
        alike = sorted_by.setdefault(flatten_call(args, {}, entries), [])
        alike.append((place, entries))
        last = row if row[0] in (float, int) else None
    return sorted_by
