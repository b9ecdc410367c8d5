"""Many models, one program: rows of weights that are stepped side by side, each along its own gradient.

A row is what the parameters' numbers would be if the function closed over that model. Weights, moments and step counts
live here, in arrays; the Values the function closes over are left as they are.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gradwalk import reference
from gradwalk.compiler.batch import Rows, arguments_of, by_structure
from gradwalk.compiler.executors import trains
from gradwalk.compiler.reading import with_line
from gradwalk.compiler.trace import is_tracing
from gradwalk.compiler.version import PLAIN, Run, Version
from gradwalk.control import is_watched
from gradwalk.errors import ENDS_ALL
from gradwalk.structure import flatten, is_value

if TYPE_CHECKING:
    from gradwalk.compiler.compile import Compiled

Array = npt.NDArray[np.float64]
Numbers = npt.ArrayLike


class Models:
    """`weights` has a row for each model, in the order of `parameters`; rows may be read and written between steps."""

    def __init__(self, compiled: Compiled[..., Any], weights: Any, parameters: Any) -> None:
        self.compiled = compiled
        self.parameters = _values_in(parameters)
        self.weights = _rows(weights, parameters, len(self.parameters))
        self.steps = np.zeros(len(self), np.int64)  # of each model
        self._moments: dict[str, Array] = {}
        self._served: dict[Hashable, Version] = {}  # the last to fit most models, of each structure of arguments
        self._slots: dict[int, tuple[Version, Any]] = {}  # of the parameters in each version, by its id

    def __len__(self) -> int:
        return len(self.weights)

    def __repr__(self) -> str:
        return f"<{len(self)} models of {len(self.parameters):,} parameters, {with_line(self.compiled.function)}>"

    def value(self, inputs: Sequence[Any]) -> Array:
        """The function of each model's input (a tuple: of several arguments)."""
        return self._values_of(self._run(None, inputs, None, None))

    def value_and_grad(self, inputs: Sequence[Any]) -> tuple[Array, Array]:
        """The same, and its gradient by each of the model's weights: nan where the value is not finite."""
        gradients = np.full_like(self.weights, np.nan)
        return self._values_of(self._run(None, inputs, None, None, gradients)), gradients

    def step(self, optimiser: Any, inputs: Sequence[Any], lr: Numbers | None = None, mask: Any = None) -> Array:
        """What `train_step` does, for each model on its own input; returns the values, nan where `mask` is false.

        Where a value is not finite, nothing is moved; where the function raises for a model, the others have made their
        step. The optimiser says how; its own parameters and moments are not touched. `lr` is a number, or one for each.
        """
        return self._values_of(self.try_step(optimiser, inputs, lr, mask))

    def try_step(
        self, optimiser: Any, inputs: Sequence[Any], lr: Numbers | None = None, mask: Any = None
    ) -> tuple[Array, dict[int, Exception]]:
        """The same, and what the function raised for which models."""
        if type(optimiser).__module__ != "gradwalk.optim":  # a subclass may step otherwise
            raise TypeError(f"models: expected an optimiser of gradwalk.optim first, got a {type(optimiser).__name__}")
        self.moments(optimiser)
        rate = optimiser.lr if lr is None else lr
        rates = [rate] * len(self) if isinstance(rate, float) else np.full(len(self), rate, np.float64).tolist()
        if not all(0.0 <= rate < math.inf for rate in set(rates)):
            raise ValueError(f"models: expected finite learning rates >= 0, got {lr!r}")
        return self._run(optimiser, inputs, rates, mask)

    def moments(self, optimiser: Any) -> dict[str, Array]:
        """What the optimiser keeps for each weight, by its name: rows that may be read and written between steps."""
        for name in optimiser.moments:
            if name not in self._moments:
                self._moments[name] = self._zeros()
        return {name: self._moments[name] for name in optimiser.moments}

    @staticmethod
    def _values_of(made: tuple[Array, dict[int, Exception]]) -> Array:
        values, raised = made
        for error in raised.values():
            raise error
        return values

    def _zeros(self) -> Any:
        return np.zeros_like(self.weights)

    # ---------------------------------------------------------------- one pass over the models

    def _grouped(self, inputs: Sequence[Any], mask: Any) -> dict[Hashable, Rows]:
        """The chosen models with the entries of their arguments, by the structure of these."""
        if len(inputs) != len(self):
            raise ValueError(f"models: expected {len(self)} inputs, one for each model, got {len(inputs)}")
        if mask is None:
            return by_structure(inputs)
        chosen = np.flatnonzero(np.broadcast_to(mask, len(self))).tolist()
        groups = by_structure([inputs[model] for model in chosen])
        for rows in groups.values():
            rows.places = [chosen[place] for place in rows.places]
        return groups

    def _settings(self, optimiser: Any, rates: list[float], chosen: list[int]) -> Array:
        """A row of settings for each of these models' next step."""
        steps = self.steps.tolist()
        if rates.count(rates[0]) == steps.count(steps[0]) == len(self):  # as mostly
            one = array("d", optimiser.settings(rates[0], steps[0]))
            return np.frombuffer(one * len(chosen)).reshape(len(chosen), len(one))
        at = [(rates[model], steps[model]) for model in chosen]
        known = {each: optimiser.settings(*each) for each in set(at)}
        return np.array([known[each] for each in at], np.float64)

    def _run(
        self, optimiser: Any, inputs: Sequence[Any], rates: Any, mask: Any, gradients: Array | None = None
    ) -> tuple[Array, dict[int, Exception]]:
        values = np.full(len(self), np.nan)
        errors: dict[int, Exception] = {}
        for key, rows in self._grouped(inputs, mask).items():
            version = self._version(key, rows.entries[0], arguments_of(inputs[rows.places[0]]))
            left = rows.places
            if version is not None:
                fitting = rows.fitting(version)
                failed = self._stepped(version, fitting, optimiser, rates, values, gradients)
                if 2 * len(failed) > len(fitting):
                    self._served.pop(key, None)
                else:
                    self._served[key] = version
                done = set(fitting.places) - failed if failed or fitting is not rows else left
                left = [] if len(done) == len(rows) else [model for model in left if model not in done]
            for model in left:
                values[model] = np.nan
                try:
                    values[model] = self._alone(model, arguments_of(inputs[model]), optimiser, rates, gradients)
                except ENDS_ALL:
                    raise
                except Exception as raised:  # the other models go on: each has made this step, or has not
                    errors[model] = raised
        if optimiser is not None:
            self.steps += np.isfinite(values)
        return values, errors

    def _version(self, key: Hashable, entries: list[Any], args: tuple[Any, ...]) -> Version | None:
        """One that the native executor can step; which weights it was traced with does not matter to it."""
        known = () if is_tracing() or is_watched() else self.compiled._versions.get(key, ())
        # what served most comes first: the last to be used may be that of one model which went alone
        order = sorted(known, key=lambda version: version is not self._served.get(key))
        found: Any = next((version for version in order if version.fits(entries)), None)
        if found is None:
            found = self.compiled._run(Run.applicable, args, {})
        if found is PLAIN or found.values or not found.result.single or not found.ends or found.program.functions:
            return None
        return found if trains(found.used(lambda run, *_: run.executor, None)) else None

    def _stepped(
        self, version: Version, chosen: Rows, optimiser: Any, rates: Any, values: Array, gradients: Array | None
    ) -> set[int]:
        """One step of these models by the version's program; those to which it does not apply."""
        slots = self._slots_in(version)
        # the executor would take another optimiser's numbers for those of a loop that it has
        known = optimiser is None or optimiser.moves_arrays
        if not len(chosen) or slots is None or not known:
            return set(chosen.places)
        rows = np.array(chosen.places, np.int32)
        arguments = chosen.numbers
        every = len(chosen) == len(self)
        made = values if every else np.empty(len(chosen))
        settings: Any = None
        moments: list[Any] = [gradients, None]
        if optimiser is not None:
            settings = self._settings(optimiser, rates, chosen.places)
            moments = [*self.moments(optimiser).values(), None, None][:2]

        def use(run: Run, *_: Any) -> Any:
            return run.executor.step_models(rows, slots, arguments, self.weights, made, settings, *moments)

        failed = version.used(use, None)
        if not every:
            values[rows] = made
        return {chosen.places[place] for place in failed}

    def _slots_in(self, version: Version) -> Any:
        known = self._slots.get(id(version))
        if known is None:
            known = self._slots[id(version)] = version, version.slots_of(self.parameters)
        return known[1]

    def _alone(self, model: int, args: tuple[Any, ...], optimiser: Any, rates: Any, gradients: Array | None) -> float:
        """What the compiled function says where it closes over this model, whichever program or branch that takes."""
        before = [(value.data, value.grad) for value in self.parameters]
        try:
            for value, number in zip(self.parameters, self.weights[model].tolist(), strict=True):
                value.data, value.grad = number, 0.0
            result = self.compiled.backward(*args)
            gradient = [value.grad for value in self.parameters]
        finally:
            for value, (data, grad) in zip(self.parameters, before, strict=True):
                value.data, value.grad = data, grad
        if gradients is not None and np.isfinite(result):
            gradients[model] = gradient
        if optimiser is not None and np.isfinite(result):
            moved = [reference.Value(number) for number in self.weights[model].tolist()]
            for value, slope in zip(moved, gradient, strict=True):
                value.grad = slope
            kept = [each[model] for each in self.moments(optimiser).values()]
            moments = [each.tolist() for each in kept]  # an optimiser's loop is written for plain numbers
            optimiser.move(moved, moments, optimiser.settings(float(rates[model]), int(self.steps[model])))
            self.weights[model] = [value.data for value in moved]
            for each, numbers in zip(kept, moments, strict=True):
                each[:] = numbers
        return result


def _values_in(parameters: Any) -> tuple[Any, ...]:
    found: list[Any] = []
    flatten(parameters.parameters() if hasattr(parameters, "parameters") else parameters, found)
    if not found or not all(map(is_value, found)) or len(set(map(id, found))) != len(found):
        raise TypeError("models: expected a Module, or a structure of different Values, as parameters")
    return tuple(found)


def _rows(weights: Any, parameters: Any, count: int) -> Array:
    """A row for each model: from a matrix, from a dict of arrays by tensor, or from one model or list for each."""
    if isinstance(weights, Mapping):
        expected = parameters.state_dict() if hasattr(parameters, "state_dict") else parameters
        if not isinstance(expected, Mapping) or set(expected) != set(weights):
            raise ValueError(f"models: expected weights for {', '.join(expected)}, got {', '.join(map(str, weights))}")
        arrays = [np.asarray(weights[name], np.float64) for name in expected]
        rows: Any = np.concatenate([array.reshape(len(array), -1) for array in arrays], axis=1)
    elif isinstance(weights, np.ndarray):
        rows = weights
    else:
        rows = [_numbers(each) for each in weights]
    made: Array = np.array(rows, np.float64, order="C", ndmin=2)
    if made.shape[1:] != (count,) or not len(made):
        raise ValueError(f"models: expected {count} weights for each model, got an array of shape {made.shape}")
    return made


def _numbers(model: Any) -> list[float]:
    found: list[Any] = []
    flatten(model.parameters() if hasattr(model, "parameters") else model, found)
    return [each.data if is_value(each) else float(each) for each in found]
