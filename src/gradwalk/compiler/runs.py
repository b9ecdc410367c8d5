"""A compiled function's derivatives by some of its arguments, for `functional.py`: by programs, not by recording.

`Derivatives` makes the programs when they are first needed; a run is one point at which derivatives are asked for.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from numbers import Integral
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from gradwalk import engine, functional
from gradwalk.cached_property import cached_property
from gradwalk.compiler import interpret
from gradwalk.compiler.derivatives import Function, LargeProgramError, Places, along, jacobian_everywhere
from gradwalk.compiler.reading import Call, Fixed, NoValueError, Result, float_of
from gradwalk.compiler.trace import is_tracing
from gradwalk.compiler.version import Refused, Run, Version
from gradwalk.control import changed, current_modes
from gradwalk.higher_order import NoGraphError
from gradwalk.passed_twice import repeated, together
from gradwalk.structure import Structure, flatten, flatten_like, is_value, source_of, values_among

if TYPE_CHECKING:
    from gradwalk.compiler.compile import AnyCompiled as Compiled

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]
_FLOAT64 = np.dtype(np.float64)
_DIRECTIONS_PER_PASS = 4  # side by side, so many cost about as much as one pass in reverse


def _is_plain_array(given: Any) -> bool:
    return type(given) is np.ndarray and given.dtype is _FLOAT64


class Point:
    """The arguments of a call, those to differentiate by, and which numbers among all of the call's are theirs."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any], places: Places) -> None:
        self.args, self.kwargs, self.places = args, kwargs, places
        only: Any = args[0] if len(args) == 1 and not kwargs else None
        self.shape = only.shape if _is_plain_array(only) and only.size else None  # if there is nothing else

    @cached_property
    def entries(self) -> Ints:
        """Where the numbers to differentiate by are among those of the arguments."""
        if self.shape is not None:
            return np.arange(math.prod(self.shape))
        places = Call(self.args, self.kwargs).places()
        return np.concatenate([np.array(places[place], np.intp) for place in self.places])


class Derivatives:
    """The programs for derivatives of one compiled function."""

    def __init__(self, compiled: Compiled) -> None:
        self.compiled = compiled
        self._programs: dict[Hashable, Compiled] = {}
        self._too_large: set[Compiled] = set()
        self.backward_only = False  # there is a node made by hand, with local gradients of which there is no graph
        self._layouts: WeakKeyDictionary[Result, tuple[Ints, Ints]] = WeakKeyDictionary()

    def tangents(self, point: Point, of_gradient: bool, direction: Array) -> Array:
        """How fast the numbers of the result (or the gradient) change along the direction."""
        program, given = self._program(along, point, of_gradient, direction)
        numbers = _numbers_of(program, given, of_gradient)[0]
        return numbers[:-1] if of_gradient else numbers[: len(numbers) // 2]

    def matrix(self, point: Point, of_gradient: bool, rows: int, columns: int) -> Array | None:
        """The Jacobian of the result's numbers, or the Hessian, by one program; None if it would be too large."""
        program, given = self._program(jacobian_everywhere, point, of_gradient)
        if program in self._too_large:
            return None
        try:
            numbers, result = _numbers_of(program, given, of_gradient)
        except LargeProgramError:
            self._too_large.add(program)
            return None
        places, sources = self._layout(result)
        matrix = np.zeros(rows * columns)
        matrix[places] = numbers[sources]
        return matrix.reshape(rows, columns)

    def matrix_by_directions(self, point: Point, of_gradient: bool, rows: int, columns: int) -> Array:
        """The same, column by column, many of them side by side."""
        directions = np.eye(columns)
        program, given = self._program(along, point, of_gradient, directions[0])

        def side_by_side(run: Run, numbers: Array, _: Any) -> Any:
            refused = run.forward(numbers)
            if refused is not None:
                return refused
            alone = program.exact or run.version.program.functions  # one direction after the other
            by_many = None if alone else getattr(run.executor, "run_directions", None)
            found = np.empty((columns, len(run.version.program.outputs)))
            found_all = by_many is not None and by_many(np.asarray(numbers)[:-columns], run.leaves, directions, found)
            return np.ascontiguousarray(found[:, :rows].T) if found_all else Refused.PLAIN

        made = program._run(side_by_side, given, {}, apart=True)
        if not isinstance(made, Refused):
            _refuse_nan(made.ravel())
            return made  # type: ignore[no-any-return]
        return np.column_stack([self.tangents(point, of_gradient, direction) for direction in directions])

    def hessian_vector(self, args: tuple[Any, ...], vector: tuple[Any, ...]) -> Any:
        """The Hessian by all numbers of the arguments but integers, times a vector of the arguments' structure."""
        product = self.quick_product(args[0], vector[0]) if len(args) == 1 else None
        if product is not None:
            return (product,)
        point = Point(args, {}, tuple(range(len(args))))
        call = Call(args, {}, apart=True)
        moving = [type(entry) is not int for entry in call.taken_apart()]
        try:
            numbers = flatten_like(flatten(args, []), vector)
        except ValueError as error:
            raise ValueError(f"compile: hessian_vector: the vector, like the arguments: {error}") from None
        chosen = np.array(moving, np.bool_)
        products = np.zeros(len(moving))
        products[chosen] = self.tangents(point, True, np.array(numbers, np.float64)[chosen])
        return call.filled(products, as_argument=False)[0]

    def quick_product(self, array: Any, direction: Any) -> Array | None:
        """The Hessian times the direction, if both are arrays of one shape: there is no need for lists."""
        if not _is_plain_array(array) or not _is_plain_array(direction):
            return None
        if array.shape != direction.shape or not array.size:
            return None
        program = self._programs.get((along, True, (0,), array.shape))
        if program is None:
            program = self._program(along, Point((array,), {}, (0,)), True)[0]
        made = program._run(Run.outputs_and_result, (np.concatenate((array, direction), None),), {}, apart=True)
        if type(made) is not tuple or _has_nan(made[0]):
            return None
        return made[0][:-1].reshape(array.shape)  # type: ignore[no-any-return]

    def _program(
        self, kind: Callable[..., Function], point: Point, of_gradient: bool, direction: Array | None = None
    ) -> tuple[Compiled, tuple[Any, ...]]:
        """The derived function of that kind, compiled, and what to call it with here."""
        key = kind, of_gradient, point.places, point.shape
        made = self._programs.get(key)
        if made is None:
            derived = kind(self.compiled.function, point.places, of_gradient)
            if point.shape is not None:
                derived = _of_one_array(derived, point.shape)
            made = self._programs[key] = type(self.compiled)(derived, self.compiled.exact)
        if point.shape is not None:
            array = point.args[0]
            return made, (array.reshape(-1) if direction is None else np.concatenate((array, direction), None),)
        return made, (point.args, point.kwargs, *(() if direction is None else (direction.tolist(),)))

    def _layout(self, result: Result) -> tuple[Ints, Ints]:
        """Where in the matrix the numbers of `jacobian_everywhere` go, and which of them."""
        if result not in self._layouts:
            hollow = result.hollow
            self._layouts[result] = np.array(hollow["places"], np.intp), np.array(hollow["sources"], np.intp)
        return self._layouts[result]


def _of_one_array(derived: Function, shape: tuple[int, ...]) -> Function:
    """The point and the direction one after the other, in one array: the quickest way into a compiled function."""
    size = math.prod(shape)

    @functools.wraps(derived)
    def of_array(numbers: Any) -> Any:
        direction = (numbers[size:],) if len(numbers) > size else ()
        return derived((numbers[:size].reshape(shape),), {}, *direction)

    return of_array


class RecordError(Exception):
    """A program that goes forward does not apply here, as at an infinite slope: the gradient is to be recorded.

    Where 0 · inf counts as 0, the order of the products tells: it has to be the same as without compile.
    """


def _has_nan(numbers: Array) -> bool:
    return bool(len(numbers)) and math.isnan(numbers.item(numbers.argmax()))  # which is the first nan, if there is one


def _refuse_nan(numbers: Array) -> None:
    """It may be 0 · inf."""
    if _has_nan(numbers):
        raise RecordError


def _numbers_of(compiled: Compiled, args: tuple[Any, ...], of_gradient: bool) -> tuple[Array, Result]:
    """The numbers of the result, one after the other, and its structure."""
    made = compiled._run(Run.outputs_and_result, args, {}, apart=True)
    if type(made) is tuple:
        _refuse_nan(made[0])
        return made
    if of_gradient:
        raise RecordError
    with changed(no_grad=False):
        result = compiled.plain_result(Call(args, {}, apart=True))
    return np.array([value.data for value in result.values]), result


# ---------------------------------------------------------------- one point, as functional.Recording has it


class RunOfResult:
    """The result at a point and its derivatives."""

    def __init__(self, compiled: Compiled, point: Point, structure: Structure, run: Run, numbers: Array) -> None:
        """The run was just made at the point, whose numbers these are."""
        self._derivatives, self._point, self.structure = compiled.derivatives, point, structure
        self._version: Version = run.version
        self.inputs = range(len(point.entries))
        self._arguments = numbers
        self._numbers = run.outputs()
        self.single = self._version.result.single
        self._rows = run.gradients(np.ones((1, 1)))[:, point.entries] if self.single else None

    def one_output(self) -> float:
        return self._numbers.item()

    def row(self, i: int) -> list[float]:
        """The derivative of the only output by each input."""
        return self._rows[i].tolist()  # type: ignore[index, no-any-return]

    def all_outputs(self) -> Structure:
        """The result's structure. Numbers in it that depend on nothing are outputs too."""
        markers = list(map(engine.Value, self._numbers.tolist()))
        numbers: list[Any] = []
        structure = flatten(self._version.result.fill(markers), numbers)
        place = {id(marker): i for i, marker in enumerate(markers)}
        self.outputs = range(len(numbers))
        self._moving = np.array([i for i, number in enumerate(numbers) if id(number) in place], np.intp)
        return structure

    def rows(self, mode: str | None) -> Array:
        """The whole Jacobian, a row for each output."""
        if self._rows is not None and mode != "forward":
            return self._among_outputs(self._rows)
        rows = None
        if mode != "reverse" and not self._derivatives.backward_only:
            try:
                rows = self._rows_forward(mode)
            except (NoGraphError, RecordError) as error:
                self._derivatives.backward_only = isinstance(error, NoGraphError)
        return self._among_outputs(self._run_again(np.eye(len(self._numbers))) if rows is None else rows)

    def _rows_forward(self, mode: str | None) -> Array | None:
        """By programs that go forward; None where passes in reverse are less work, a few for each output."""
        count, columns = len(self._numbers), len(self.inputs)
        if mode is None and count * _DIRECTIONS_PER_PASS <= columns:
            return None
        rows = self._derivatives.matrix(self._point, False, count, columns) if mode is None else None
        return rows if rows is not None else self._derivatives.matrix_by_directions(self._point, False, count, columns)

    def backward(self, weights: Sequence[float]) -> Any:
        """The derivative of the weighted sum of the outputs by each input."""
        seeds = np.array(weights, np.float64)[self._moving]
        return self._run_again(seeds.reshape(1, -1))[0].tolist()

    def forward(self, tangents: Sequence[float]) -> Any:
        """How fast each output changes as the inputs move along `tangents`."""
        direction = np.array(tangents, np.float64)
        if not self._derivatives.backward_only:
            try:
                moved = self._derivatives.tangents(self._point, False, direction)
                return self._among_outputs(moved.reshape(-1, 1))[:, 0].tolist()
            except (NoGraphError, RecordError) as error:
                self._derivatives.backward_only = isinstance(error, NoGraphError)
        return interpret.handed_on(self.rows("reverse").T, direction[None])[0].tolist()

    def _among_outputs(self, rows: Array) -> Array:
        if len(rows) == len(self.outputs):
            return rows
        among = np.zeros((len(self.outputs), rows.shape[1]))
        among[self._moving] = rows
        return among

    def _run_again(self, seeds: Array) -> Array:
        """A reverse pass for each row of seeds, over another run at the point."""

        def gradients(run: Run, numbers: Array, _: Any) -> Array:
            run.forward(numbers)
            return run.gradients(seeds)

        return np.asarray(self._version.used(gradients, self._arguments)[:, self._point.entries])


class RunOfGradient:
    """The gradient at a point and its derivatives: the Hessian, and its products."""

    def __init__(self, compiled: Compiled, point: Point, structure: Structure) -> None:
        self._compiled, self._point, self.structure = compiled, point, structure
        self._derivatives = compiled.derivatives
        self.inputs = self.outputs = range(len(point.entries))

    def all_outputs(self) -> Structure:
        return self.structure

    def quick_product(self, direction: Any) -> Array | None:
        """`Derivatives.quick_product`, where the point is an array and nothing else."""
        return None if self._point.shape is None else self._derivatives.quick_product(self._point.args[0], direction)

    def rows(self, mode: str | None) -> Array:
        """The Hessian: there is one way to it only."""
        count = len(self.inputs)
        try:
            whole = self._derivatives.matrix(self._point, True, count, count)
            if whole is None:
                whole = self._derivatives.matrix_by_directions(self._point, True, count, count)
        except RecordError:
            whole = np.array(self._recorded().rows(mode)).reshape(count, count)
        return whole

    def forward(self, tangents: Sequence[float]) -> Any:
        try:
            return self._derivatives.tangents(self._point, True, np.array(tangents, np.float64)).tolist()
        except RecordError:
            return self._recorded().backward(tangents)

    def _recorded(self) -> Any:
        point = self._point
        run = functional.run_of(
            "hessian", self._compiled.function, point.args, point.kwargs, tuple(point.places), order=2
        )
        run.all_outputs()
        return run

    backward = forward  # the Hessian is symmetric


def run_at(
    compiled: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any], places: Sequence[int | str], in_tuple: bool,
    of_gradient: bool,
) -> RunOfResult | RunOfGradient | None:  # fmt: skip
    """The compiled function at these arguments; None where the function has to be recorded."""
    once = tuple(dict.fromkeys(places))  # an argument that is asked for twice is one
    point = Point(args, kwargs, once)
    if point.shape is not None:
        structures: dict[int | str, Structure] = {once[0]: _structure_of_array(point.shape)}
        point.args = (args[0].copy(),)  # it may change before a product is asked for
    else:
        numbers: list[Any] = []
        try:
            structures = {at: flatten(args[at] if isinstance(at, int) else kwargs[at], numbers) for at in once}
        except TypeError:
            return None
        if not numbers or values_among(numbers) or repeated((*args, *kwargs.values())):
            return None
        floats = source_of(list(map(float, numbers)), as_argument=True)  # where a derivative is asked, 3 is 3.0
        filled = {at: floats.filled(each.key, each.like) for at, each in structures.items()}
        given = tuple(filled.get(at, argument) for at, argument in enumerate(args))
        point = Point(given, {at: filled.get(at, argument) for at, argument in kwargs.items()}, once)
    structure = together(structures, places) if in_tuple else structures[places[0]]

    def of_result(run: Run, numbers: Array, _: Any) -> Any:
        refused = run.forward(numbers)
        if refused is not None:
            return refused
        if run.version.loses:
            run.version.tell("compile: a derivative", point.entries.tolist())
        if of_gradient:
            return RunOfGradient(compiled, point, structure) if run.version.result.single else None
        return RunOfResult(compiled, point, structure, run, numbers)

    try:
        made = compiled._run(of_result, point.args, point.kwargs, apart=True)
    except NoValueError:  # what the plain function says of that, is said
        return None
    return None if isinstance(made, Refused) else made


@functools.cache
def _structure_of_array(shape: tuple[int, ...]) -> Structure:
    return flatten(np.empty(shape), [])


def floats_in(call: Call) -> list[Any]:
    """The numbers of the arguments that are no integers: Values only where derivatives are taken by them."""
    floats = [x for x in call.taken_apart() if type(x) is not int]
    return floats if current_modes().derivatives or is_tracing() else [x.data if is_value(x) else x for x in floats]


def beside_integers(call: Call, floats: list[Any], integer: float | None = None) -> list[Any]:
    """The numbers of the arguments with these for those that are no integers; the integers as they are, or as that."""
    rest = iter(floats)
    return [next(rest) if type(x) is not int else x if integer is None else integer for x in call.taken_apart()]


def plain_hessian_vector(of_floats: Callable[[Call], Any], args: tuple[Any, ...], vectors: Any) -> Any:
    """The Hessian times these by the plain function: for each of the arguments, 0 by integers."""
    call = Call(args, {}, apart=True)
    moving = zip(call.taken_apart(), flatten_like(flatten(args, []), vectors), strict=True)
    run = functional.run_of("hessian_vector", of_floats(call), (floats_in(call),), {}, 0, order=2)
    run.all_outputs()
    moved = run.backward([each for x, each in moving if type(x) is not int])  # the Hessian is symmetric
    return call.filled(beside_integers(call, moved, 0.0), as_argument=False)[0]


def by_fixed_integers(
    run: Callable[..., Any], value: Any, whole: tuple[Any, ...], call: Call, fixed: Fixed
) -> tuple[Any, ...]:
    """The gradient by each argument, with that by integers which are fixed: what it is by the same numbers as floats.

    If floats will not do (`range(n)`), or make another value, it stays 0 by all that are fixed in an argument.
    """
    given = (*call.args, call.kwargs) if call.kwargs else call.args
    floats = {place: moved for place, each in enumerate(given) if (moved := _with_floats(each)) is not None}
    if fixed.moving is None:
        fixed.moving = [[*floats], *([place] for place in floats if len(floats) > 1)]
    gradients, moving = list(whole), []
    for places in fixed.moving:
        arguments = [floats[place] if place in places else each for place, each in enumerate(given)]
        with suppress(Exception):  # the function may need integers, and says so in whatever way
            again, by_each, _ = run(tuple(arguments[: len(call.args)]), arguments[-1] if call.kwargs else {})
            if not abs(again - value) > 1e-9 * (1.0 + abs(value)):  # it may be rounded otherwise
                moving.append(places)
                for place in places:
                    gradients[place] = by_each[place]
                if len(places) == len(floats):
                    break
    fixed.moving = moving
    return tuple(gradients)


def _with_floats(argument: Any) -> Any:
    """The argument with floats in place of its integers; None where there are none."""
    numbers: list[Any] = []
    structure = flatten(argument, numbers)
    if not any(isinstance(number, Integral) for number in numbers):
        return None
    return structure.fill([float_of(number) if isinstance(number, Integral) else number for number in numbers])
