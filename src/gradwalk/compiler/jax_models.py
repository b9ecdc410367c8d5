"""Many models on jax's device: `compiled.models(weights, parameters, device="jax")`, for thousands of them on a GPU.

A step is one jitted function: the program by `to_jax`, over all models by `vmap`, and the optimiser's own formula.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradwalk.compiler.batch import Rows, arguments_of
from gradwalk.compiler.models import Models
from gradwalk.compiler.reading import with_line
from gradwalk.compiler.to_jax import (
    JaxFunction,
    gathered,
    runs_of,
    to_jax,
)  # first, for what it says where jax is missing
from gradwalk.compiler.version import Version

import jax  # isort: skip
import jax.numpy as jnp  # isort: skip

_MANY = 64  # runs of parameters: more than that are not worth a slice each


class JaxModels(Models):
    """`weights` is a jax array. A model to which the program does not apply does not move, and an error names it."""

    weights: Any

    def __init__(self, compiled: Any, weights: Any, parameters: Any) -> None:
        super().__init__(compiled, weights, parameters)
        self.weights = jnp.asarray(self.weights)
        self._functions: dict[int, tuple[JaxFunction, Any]] = {}
        self._steps: dict[Any, Any] = {}

    def _zeros(self) -> Any:
        return jnp.zeros_like(self.weights)

    def value_and_grad(self, inputs: Sequence[Any]) -> Any:
        raise TypeError("models: expected device=None for value_and_grad; jax.grad of compiled.to_jax(…) does it there")

    def _run(
        self, optimiser: Any, inputs: Sequence[Any], rates: Any, mask: Any, _: Any = None
    ) -> tuple[Any, dict[int, Exception]]:
        values = np.full(len(self), np.nan)
        failed: list[int] = []
        for rows in self._grouped(inputs, mask).values():
            version = self.compiled.version_for(arguments_of(inputs[rows.places[0]]), "models")
            fitting = rows.only(map(version.fits, rows.entries))
            failed += [
                model for model, entries in zip(rows.places, rows.entries, strict=True) if not version.fits(entries)
            ]
            failed += self._stepped_by_jax(version, fitting, optimiser, rates, values)
        if optimiser is not None:
            self.steps[np.isfinite(values)] += 1
        if failed:
            shown = ", ".join(map(str, sorted(failed)[:8])) + (", …" if len(failed) > 8 else "")
            error = ValueError(
                f"models: the program of {with_line(self.compiled.function)} does not apply to models {shown}: they "
                "branch otherwise or would raise, and have not moved; the others have made their step"
            )
            return values, dict.fromkeys(failed, error)
        return values, {}

    def _stepped_by_jax(self, version: Version, chosen: Rows, optimiser: Any, rates: Any, values: Any) -> list[int]:
        rows = np.array(chosen.places, int)
        arguments = chosen.numbers
        whole = len(rows) == len(self)
        names = () if optimiser is None else optimiser.moments
        state = [self.weights, *(self._moments[name] for name in names)]
        here = state if whole else [each[rows] for each in state]
        settings = None if optimiser is None else self._settings(optimiser, rates, chosen.places)
        made, holds, here = self.jitted(version, optimiser)(here, arguments, settings)
        for place, (old, new) in enumerate(zip(state, here, strict=True)):
            state[place] = new if whole else old.at[rows].set(new)
        self.weights, self._moments = state[0], self._moments | dict(zip(names, state[1:], strict=True))
        made, holds = np.asarray(made, np.float64), np.asarray(holds)
        values[rows[holds]] = made[holds]
        return [int(row) for row in rows[~holds]]

    def jitted(self, version: Version, optimiser: Any) -> Any:
        """The step of one version, or its values where there is no optimiser."""
        key = id(version), optimiser and (optimiser.loop, optimiser.settings(0.0, 0))
        if key not in self._steps:
            if id(version) not in self._functions:
                function = to_jax(self.compiled, version)
                place = {id(value): place for place, value in enumerate(self.parameters)}
                missing = [leaf for leaf in function.leaves if id(leaf) not in place]
                if missing:
                    raise ValueError(f"models: expected every leaf among the parameters, {len(missing)} are not")
                self._functions[id(version)] = function, np.array([place[id(leaf)] for leaf in function.leaves], int)
            function, order = self._functions[id(version)]
            self._steps[key] = jax.jit(functools.partial(_step, function, order, optimiser), donate_argnums=0)
        return self._steps[key]


def _step(
    function: JaxFunction, order: Any, optimiser: Any, state: list[Any], arguments: Any, settings: Any
) -> tuple[Any, Any, list[Any]]:
    """Values, whether the program applies, and the weights and moments of each model after its step."""
    runs = runs_of(function.leaf_slots, order)

    def loss(weights: Any, numbers: Any) -> Any:
        if len(runs) > _MANY:
            return function(gathered(weights, order), numbers)
        pieces = [(slot, weights[order[begin] : order[begin] + end - begin]) for slot, begin, end in runs]
        return function.over(pieces, numbers)

    arguments = arguments.astype(state[0].dtype)
    if optimiser is None:
        return *jax.vmap(loss)(state[0], arguments), state
    (values, holds), grads = jax.vmap(jax.value_and_grad(loss, has_aux=True))(state[0], arguments)
    columns = [column[:, None].astype(state[0].dtype) for column in settings.T]
    moved = optimiser.moved(state[0], grads, state[1:], columns, jnp.sqrt)
    moves = (holds & jnp.isfinite(values))[:, None]
    return values, holds, [jnp.where(moves, new, old) for new, old in zip(moved, state, strict=True)]
