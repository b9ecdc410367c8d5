"""scipy.integrate on Values: odeint and solve_ivp by Runge and Kutta's method of order 5, with steps of their own.

The steps are chosen by plain numbers, so derivatives are those of the computed solution. In a compiled function they
would be those of the first call: it is refused there.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy import integrate
from scipy.integrate import RK45

from gradwalk.control import is_traced
from gradwalk.errors import refusal
from gradwalk.numpy.arrays import has_values, plain, wrapped
from gradwalk.numpy.functions import objects
from gradwalk.structure import is_value

Slopes = Callable[[Any, Any], Any]


def __getattr__(name: str) -> Any:
    return getattr(integrate, name)


def odeint(func: Any, y0: Any, t: Any, args: tuple[Any, ...] = (), tfirst: bool = False, rtol: float = 1e-8,
           atol: float = 1e-8, **options: Any) -> Any:  # fmt: skip
    """The solution at each time of t, a row for each, as scipy.integrate.odeint."""

    def slopes(time: Any, y: Any) -> Any:
        return func(time, y, *args) if tfirst else func(y, time, *args)

    start, times = np.atleast_1d(objects(y0)), list(objects(t).ravel())
    if not has_values([y0, t, slopes(times[0], start)]):
        return integrate.odeint(
            _on_numbers(func), plain(y0), plain(t), args=args, tfirst=tfirst, rtol=rtol, atol=atol, **options
        )
    rows = [start]
    for before, after in pairwise(times):
        rows.append(_integrated(slopes, before, after, rows[-1], rtol, atol)[1][-1])
    return wrapped(np.stack(rows))


def solve_ivp(fun: Any, t_span: Any, y0: Any, method: Any = "RK45", t_eval: Any = None, dense_output: bool = False,
              events: Any = None, vectorized: bool = False, args: tuple[Any, ...] | None = None, rtol: float = 1e-3,
              atol: float = 1e-6, **options: Any) -> Any:  # fmt: skip
    """The solution, as scipy.integrate.solve_ivp: with `t`, `y` and `success`."""

    def slopes(time: Any, y: Any) -> Any:
        return fun(time, y, *(args or ()))

    start = np.atleast_1d(objects(y0))
    if not has_values([t_span, y0, t_eval, slopes(t_span[0], start)]):
        given = {"dense_output": dense_output, "events": events, "vectorized": vectorized, "rtol": rtol, "atol": atol}
        return integrate.solve_ivp(
            _on_numbers(fun), t_span, plain(y0), method, plain(t_eval), args=args, **given, **options
        )
    if dense_output or events is not None:
        raise TypeError("solve_ivp: events and dense_output are not supported with Values; ask for times with t_eval")
    if t_eval is None:
        times, rows = _integrated(slopes, t_span[0], t_span[1], start, rtol, atol)
    else:
        times, before = list(objects(t_eval).ravel()), t_span[0]
        rows, y = [], start
        for time in times:
            y = _integrated(slopes, before, time, y, rtol, atol)[1][-1]
            rows.append(y)
            before = time
    found = wrapped(np.stack(rows).T)
    return SimpleNamespace(t=objects(times), y=found, success=True, status=0, message="", t_events=None, sol=None)


def _integrated(slopes: Slopes, first: Any, last: Any, y: Any, rtol: float, atol: float) -> tuple[list[Any], list[Any]]:
    """The times and states of all steps from the first time to the last."""
    if is_traced():
        raise refusal(
            "integrate: in a compiled function the steps of the first call would be used in every later call; "
            "leave the function uncompiled, or write the steps out in a loop of your own"
        )
    span = last - first
    begin, end = _plain(first), _plain(last)
    shares = (
        [(time - begin) / (end - begin) for time in _steps(slopes, begin, end, y, rtol, atol)] if end != begin else []
    )
    times, states, slope = [first], [y], objects(slopes(first, y))
    for before, after in pairwise([0.0, *shares]):
        step = span * (after - before)
        time, stages = times[-1], [slope]
        for share, row in zip(RK45.C[1:].tolist(), RK45.A[1:].tolist(), strict=True):
            moved = states[-1] + step * _combined(row, stages)
            stages.append(objects(slopes(time + share * step, moved)))
        states.append(states[-1] + step * _combined(RK45.B.tolist(), stages))
        times.append(first + span * after if after < 1.0 else last)
        slope = objects(slopes(times[-1], states[-1]))
    return times, states


def _combined(weights: list[float], stages: list[Any]) -> Any:
    total = weights[0] * stages[0]
    for weight, stage in zip(weights[1:], stages[1:], strict=False):
        if weight:
            total = total + weight * stage
    return total


def _steps(slopes: Slopes, begin: float, end: float, y: Any, rtol: float, atol: float) -> list[float]:
    """The times at which SciPy's own method makes a step, found with plain numbers."""

    def plain_slopes(time: float, state: Any) -> Any:
        return np.array([_plain(each) for each in objects(slopes(time, objects(state.tolist()))).ravel()])

    stepping = RK45(plain_slopes, begin, np.array([_plain(each) for each in y]), end, rtol=rtol, atol=atol)
    times = []
    while stepping.status == "running":
        message = stepping.step()
        if stepping.status == "failed":
            raise RuntimeError(f"integrate: {message}")
        times.append(float(stepping.t))
    return times


def _on_numbers(slopes: Any) -> Any:
    """The same function, for SciPy, which takes arrays of floats only."""
    return lambda *args: plain(slopes(*args))


def _plain(number: Any) -> float:
    return float(number.data if is_value(number) else number)


OURS = {"odeint": odeint, "solve_ivp": solve_ivp}  # for everywhere()
