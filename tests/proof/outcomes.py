"""One program, run in every way there is: as float code, eager, compiled, exact, in batches, differentiated twice.

All of it by the engine of this process; `Engines` has a process for each.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import gc
import linecache
import math
import os
import signal
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
from calls import Call, Point
from programs import Program

import gradwalk
from gradwalk import control, engine

NAMES = ("a", "b", "n", "k", "xs", "ys", "d", "p", "arr")
LONGEST = 60  # seconds for all ways of running one program
TWICE = 3  # second derivatives at every third call
DIFFERENTIATED = {"a": 0, "b": 1, "xs": 4, "arr": 8}  # what derivatives are taken by, where several are: and its place


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a call came to: numbers and gradients, or the error it raised."""

    numbers: tuple[float, ...] = ()
    gradients: tuple[float, ...] | None = None
    raised: tuple[str, ...] = ()  # the names of the error's classes, its own first
    message: str = ""


# ---------------------------------------------------------------- what a program sees


def _sum(xs: Any) -> Any:
    """From left to right, as for Values: the built-in one corrects its rounding for floats, in newer Pythons."""
    total: Any = 0
    for x in xs:
        total = total + x
    return total


def _strict(x: float) -> float:
    if x < 0.0:
        raise ValueError("strict: below 0")
    return x * 3.0


def custom_operations() -> dict[str, Any]:
    made = gradwalk.custom_op
    return {
        "cube": made(lambda x: x**3, lambda x, out: 3.0 * x**2, name="cube", check=False),
        "step": made(lambda x: 1.0 if x > 0.0 else -0.5, lambda x, out: 0.0, name="step", check=False),
        "strict": made(_strict, lambda x, out: 3.0, name="strict", check=False),
        "blend": made(lambda x, y: x * math.tanh(y), lambda x, y, out: (math.tanh(y), x * (1.0 - math.tanh(y) ** 2)),
                      name="blend", check=False),
    }  # fmt: skip


@functools.lru_cache(maxsize=4)
def _code_of(source: str) -> Any:
    return compile(source, "program", "exec", dont_inherit=True)


class Ready:
    """A program's function, with weights of its own."""

    def __init__(self, source: str, is_plain: bool = False) -> None:
        number = float if is_plain else engine.Value
        self.weights = [number(0.75), number(-1.25)]
        scope = {
            "m": gradwalk, "np": np, "copy": copy, "dataclasses": dataclasses, "functools": functools, "P": Point,
            "sum": _sum, "w": self.weights, "h": self.weights[0] * 2.0, **custom_operations(),
            **{name: getattr(gradwalk, name) for name in ("grad", "value_and_grad", "jvp")},
        }  # fmt: skip
        linecache.cache["program"] = (len(source), None, source.splitlines(keepends=True), "program")  # as of a file
        exec(_code_of(source), scope)
        self.function: Any = scope["program"]
        self.is_plain = is_plain

    def before(self, call: Call) -> None:
        if self.is_plain:
            self.weights[1] = call.weight
        else:
            self.weights[1].data = call.weight
            for weight in self.weights:
                weight.grad = 0.0


def arguments_of(call: Call, number: Callable[[float], Any], array: Callable[[list[Any]], Any]) -> tuple[Any, ...]:
    """The call's arguments, made anew, with what `number` makes of each float."""

    def made(part: Any) -> Any:
        if isinstance(part, list | tuple):
            return type(part)(map(made, part))
        if isinstance(part, dict):
            return {key: made(entry) for key, entry in part.items()}
        return number(part) if isinstance(part, float) else part

    given = {name: made(part) for name, part in call.arguments.items()}
    if given["ys"] == "xs":
        given["ys"] = given["xs"]
    given["p"] = Point(*given["p"])
    given["arr"] = array(given["arr"])
    return tuple(given[name] for name in NAMES)


def objects(entries: list[Any]) -> Any:
    return np.array([*entries, None], dtype=object)[:-1]


def entries(part: Any) -> Iterator[Any]:
    """Whatever is in arguments or a result, in order."""
    if isinstance(part, dict):
        part = list(part.values())
    elif isinstance(part, Point):
        part = [part.u, part.v, part.k]
    elif isinstance(part, np.ndarray):
        part = part.tolist()
    if isinstance(part, list | tuple):
        for entry in part:
            yield from entries(entry)
    else:
        yield part


def leaves(part: Any) -> Iterator[Any]:
    """The floats and Values; integers are not differentiated by."""
    return (entry for entry in entries(part) if not isinstance(entry, int | np.integer))


def numbers_of(result: Any) -> tuple[float, ...]:
    return tuple(float(entry.data if isinstance(entry, engine.Value) else entry) for entry in entries(result))


def weighted(result: Any) -> Any:
    """One number out of a result, which has a part in every number of it: by its place, also among integers.

    (One that NumPy chose of numbers is an int in one way, and the same number as a Value in another.)
    """
    total: Any = None
    for i, value in enumerate(entries(result)):
        if isinstance(value, engine.Value):
            total = value * (i + 1.0) if total is None and i else value if total is None else total + value * (i + 1.0)
    return total


# ---------------------------------------------------------------- the ways


def outcome(make: Callable[[], Outcome]) -> Outcome:
    try:
        return make()
    except Exception as error:
        names = [kind.__name__ for kind in type(error).__mro__ if issubclass(kind, Exception)]
        return Outcome(raised=tuple(names), message=str(error)[:300])


def plain(ready: Ready, call: Call) -> Outcome:
    return Outcome(numbers_of(ready.function(*arguments_of(call, float, objects))))


def by_nodes(function: Any, ready: Ready, call: Call) -> Outcome:
    """Given Values, and walked back from the result."""
    given = arguments_of(call, engine.Value, objects)
    inputs = list(dict.fromkeys(leaves(given)))
    with control.inside([*inputs, *ready.weights]):  # copies and derivatives keep their history
        result = function(*given)
    numbers, root = numbers_of(result), weighted(result)
    if root is not None:
        root.backward()
    return Outcome(numbers, tuple(leaf.grad for leaf in (*inputs, *ready.weights)))


def by_numbers(function: Any, ready: Ready, call: Call) -> Outcome:
    """Given floats: `value_and_grad` for the arguments, `backward` for the weights."""
    given = arguments_of(call, float, np.array)
    value, gradients = function.value_and_grad(*given)
    again = function.backward(*arguments_of(call, float, np.array))
    same = value == again or value != value
    by_arguments = tuple(g for g, x in zip(entries(gradients), entries(given), strict=True) if type(x) is float)
    return Outcome((value if same else math.inf,), (*by_arguments, *(weight.grad for weight in ready.weights)))


def twice(function: Any, ready: Ready, call: Call) -> Outcome:
    """The gradient and the Hessian by some of the arguments, by the functions for functions."""
    given = arguments_of(call, float, np.array)
    by = tuple(place for name, place in DIFFERENTIATED.items() if not isinstance(call.arguments[name], int))
    value, gradient = gradwalk.value_and_grad(function, by)(*given)
    hessian = gradwalk.hessian(function, by)(*arguments_of(call, float, np.array))
    return Outcome((float(value), *map(float, entries(gradient))), tuple(map(float, entries(hessian))))


def outcomes(program: Program, way: str = "") -> dict[str, list[Outcome]]:
    """Every way's outcome of every call; only those that one way is compared with, where it is named."""
    signal.signal(signal.SIGPROF, _too_long)
    signal.setitimer(signal.ITIMER_PROF, LONGEST)  # of its own time: others may be busy, too
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return dict(_ways(program, way))
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


class TooLong(BaseException):
    """A program does not end: one that was made smaller may have lost what ends its loop."""


def _too_long(*_: Any) -> None:
    raise TooLong


def each(ready: Ready, calls: list[Call], make: Callable[..., Outcome], *given: Any) -> list[Outcome]:
    """What `make` makes of each call."""
    made = []
    for call in calls:
        ready.before(call)
        made.append(outcome(lambda call=call: make(*given, ready, call)))  # type: ignore[misc]
    return made


def _ways(program: Program, way: str) -> Iterator[tuple[str, list[Outcome]]]:
    """Exact programs, and those of the reference engine, are made by every other program: they take long."""
    calls, some = program.calls, program.calls[::TWICE]
    even = program.seed % 2 == 0
    if engine.NAME == "native":
        yield "plain", each(Ready(program.source, is_plain=True), calls, plain)
    ready = Ready(program.source)
    eager = each(ready, calls, by_nodes, ready.function)
    yield "eager", eager
    yield "eager twice", each(ready, some, twice, ready.function)
    if not way or way.startswith("exact"):
        exact = Ready(program.source)
        made = gradwalk.compile(exact.function, exact=True)
        if even:
            yield "exact, nodes", each(exact, calls, by_nodes, made)
        elif engine.NAME == "native":
            yield "exact, numbers", each(exact, calls, by_numbers, made)
            yield "exact twice", each(exact, some, twice, made)
    if engine.NAME == "reference" and even:
        return
    rolled = Ready(program.source)
    made = gradwalk.compile(rolled.function)
    if not way or way.startswith("compiled"):
        yield "compiled, nodes", each(rolled, calls, by_nodes, made)
        yield "compiled, numbers", each(rolled, calls, by_numbers, made)
        yield "compiled twice", each(rolled, some, twice, made)
    if not way or way.startswith("batch"):
        if program.seed % 4 == 0:  # nothing is known of the program before
            rolled = Ready(program.source)
            made = gradwalk.compile(rolled.function)
        yield from _batches(program, eager, rolled, made)


def _batches(program: Program, eager: list[Outcome], ready: Ready, made: Any) -> Iterator[tuple[str, list[Outcome]]]:
    """In one go, those that raise nothing; the weight is the first call's for all, so only these have their like."""
    first = program.calls[0]
    like = [i for i, call in enumerate(program.calls) if call.weight == first.weight and not eager[i].raised]
    ready.before(first)

    def rows(make: Callable[[], list[Outcome]]) -> list[Outcome]:
        """What became of these calls, or of all of them; the others are left out."""
        whole: Any = None
        try:
            done = make()
        except Exception as error:
            whole = error
            done = [outcome(lambda: _raise(whole)) for _ in like]
        placed = dict(zip(like, done, strict=True))
        return [placed.get(i, Outcome()) for i in range(len(program.calls))]

    wrapped: list[
        Any
    ] = []  # results that are a structure, of one number or of none, which `map_gradients` does not take

    def inputs() -> list[Any]:
        return [arguments_of(program.calls[i], float, np.array) for i in like]

    def mapped() -> list[Outcome]:
        results = made.map(inputs())
        wrapped.extend(result for result in results if isinstance(result, list | tuple | dict | np.ndarray | Point))
        return [Outcome(numbers_of(result), _gradients(ready, result)) for result in results]

    def with_gradients() -> list[Outcome]:
        values, gradients = made.map_gradients(inputs(), ready.weights)
        return [Outcome((v,), tuple(g)) for v, g in zip(values, gradients.tolist(), strict=True)]

    yield "batch", rows(mapped)
    if all(len(eager[i].numbers) == 1 for i in like) and not wrapped:
        yield "batch, gradients", rows(with_gradients)


def _gradients(ready: Ready, result: Any) -> tuple[float, ...]:
    """By the weights."""
    for weight in ready.weights:
        weight.grad = 0.0
    root = weighted(result)
    if root is not None:
        root.backward()
    return tuple(weight.grad for weight in ready.weights)


def _raise(error: Exception) -> Any:
    raise error


# ---------------------------------------------------------------- both engines


Asked = dict[str, "Future[dict[str, list[Outcome]]]"]  # of each engine


class Engines:
    """A process for each engine; `nice` is how far it steps back behind others."""

    def __init__(self, nice: int = 0) -> None:
        before = os.environ.get("GRADWALK_ENGINE")
        self.pools = {}
        for name in engine.ENGINES:
            os.environ["GRADWALK_ENGINE"] = name
            self.pools[name] = ProcessPoolExecutor(1, get_context("spawn"), _begin, (nice,))
            self.pools[name].submit(engine_name).result()
        os.environ.pop("GRADWALK_ENGINE")
        if before is not None:
            os.environ["GRADWALK_ENGINE"] = before

    def asked(self, program: Program, way: str = "") -> Asked:
        """The outcomes to come, by each engine."""
        return {name: pool.submit(outcomes, program, way) for name, pool in self.pools.items()}

    def outcomes(self, program: Program, way: str = "") -> dict[str, dict[str, list[Outcome]]]:
        return {name: future.result() for name, future in self.asked(program, way).items()}

    def close(self) -> None:
        for pool in self.pools.values():
            pool.shutdown(cancel_futures=True)


def _begin(nice: int) -> None:
    os.nice(nice)
    gc.freeze()  # gradwalk and NumPy are no garbage


def engine_name() -> str:
    return engine.NAME
