"""What arguments are to a compiled function: one object in two places, fields and attributes that somebody sets."""

from __future__ import annotations

import copy
from collections import UserDict
from dataclasses import dataclass, field
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import pytest

import gradwalk
from gradwalk import Value
from gradwalk.compiler.compile import KEPT, compile


def changes_the_first(xs: Any, ys: Any) -> Any:
    xs[0] = xs[0] * 10.0
    return ys[0] + ys[1]


def test_a_list_that_is_passed_twice_is_one_list() -> None:
    compiled = compile(changes_the_first)
    xs = [1.0, 2.0]
    assert compiled(xs, [1.0, 2.0]).data == 3.0
    assert compiled(xs, xs).data == 12.0
    assert compiled([1.0, 2.0], [1.0, 2.0]).data == 3.0
    array = np.array([1.0, 2.0])
    assert [compiled(array, array).data, compiled(array, array.copy()).data] == [12.0, 3.0]


def of_the_second(xs: Any, ys: Any) -> Any:
    return xs[0] * ys[1] * ys[1]


@pytest.mark.parametrize("kind", [list, np.array])
@pytest.mark.parametrize("made", [lambda f: f, compile, lambda f: compile(f, exact=True)])
def test_derivatives_take_what_is_passed_twice_as_two(kind: Any, made: Any) -> None:
    xs = kind([3.0, 4.0])
    function = made(of_the_second)
    value, (by_first, by_second) = gradwalk.value_and_grad(function, (0, 1))(xs, xs)
    assert (value, list(by_first), list(by_second)) == (48.0, [16.0, 0.0], [0.0, 24.0])
    if function is not of_the_second:
        value, (by_first, by_second) = function.value_and_grad(xs, xs)
        assert (value, list(by_first), list(by_second)) == (48.0, [16.0, 0.0], [0.0, 24.0])
        product = function.hessian_vector(xs, xs, vector=([1.0, 0.0], [0.0, 0.0]))
        assert list(map(list, product)) == [[0.0, 0.0], [0.0, 8.0]]


def test_derivatives_take_as_two_what_a_call_before_took_as_one() -> None:
    """And the next call takes it as one again."""
    compiled, changing = compile(of_the_second), compile(changes_the_first)
    xs = [3.0, 4.0]
    assert [compiled(xs, xs).data, changing(xs, xs).data] == [48.0, 34.0]
    assert compiled.value_and_grad(xs, xs) == (48.0, ([16.0, 0.0], [0.0, 24.0]))
    with pytest.raises(TypeError, match="in several places of the arguments"):
        changing.value_and_grad(xs, xs)
    assert changing(xs, xs).data == 34.0


def test_derivatives_take_what_is_passed_twice_as_two_where_each_operation_is_watched() -> None:
    """There the plain function is called, and no program."""
    compiled = compile(of_the_second)
    xs = [3.0, 4.0]
    with gradwalk.detect_nonfinite():
        assert compiled.value_and_grad(xs, xs) == (48.0, ([16.0, 0.0], [0.0, 24.0]))
        assert compiled.hessian_vector(xs, xs, vector=([1.0, 0.0], [0.0, 0.0])) == ([0.0, 0.0], [0.0, 8.0])


@pytest.mark.parametrize("made", [lambda f: f, compile])
def test_a_value_that_is_passed_twice_has_a_derivative_by_each_argument(made: Any) -> None:
    """It is no list that could be changed: each argument has its own."""
    v = Value(3.0)
    slopes = gradwalk.grad(made(lambda a, b: a * b * b), (0, 1))(v, v)
    assert [slope.data for slope in slopes] == [9.0, 18.0]


def changes_a_field(first: Any, second: Any) -> Any:
    first.radius = first.radius * 10.0
    return second.radius * 2.0


def changes_inside(both: Any, _: Any) -> Any:
    both["a"][0] = both["a"][1]
    return both["b"][0] * 2.0


def _given(kind: str, made: Any) -> tuple[Any, Any]:
    """The arguments, where the second part is what `made` makes of the first."""
    row = [3.0, 4.0]
    first: Any = {"array": np.array(row), "dict": {0: 3.0, 1: 4.0}, "field": Disc(2.0)}.get(kind, row)
    return ({"a": row, "b": made(row)}, 1.0) if kind == "inside" else (first, made(first))


@pytest.mark.parametrize("kind", ["list", "array", "dict", "field", "inside"])
@pytest.mark.parametrize("made", [lambda f: f, compile, lambda f: compile(f, exact=True)])
def test_changes_to_what_derivatives_take_as_two_are_refused(kind: str, made: Any) -> None:
    """Also if the function was compiled for two before."""
    plain = {"field": changes_a_field, "inside": changes_inside}.get(kind, changes_the_first)
    function = made(plain)
    calls = [gradwalk.value_and_grad(function), gradwalk.value_and_grad(function, (0, 1)), gradwalk.hessian(function)]
    calls += [] if function is plain else [function.value_and_grad]
    for call in calls:
        call(*_given(kind, copy.copy))
        with pytest.raises(TypeError, match=r"in several places of the arguments.*give it a copy"):
            call(*_given(kind, lambda first: first))


def shifted(a: Any, b: Any) -> Any:
    a += 1.0
    return (a * b).sum()


SHARED = {
    "shifted": lambda x: (x[:8], x[1:9]), "the whole and a part": lambda x: (x, x[3:4]),
    "backward": lambda x: (x[::-1][:8], x[8:]), "an empty step": lambda x: (x[::2][:4], x[::3][:4]),
    "a column and a row": lambda x: (x.reshape(4, 4)[:, 1], x.reshape(4, 4)[2]),
    "a view of a view": lambda x: (x[2:][1:5], x.reshape(4, 4)[1]),
    "a buffer": lambda x: (np.frombuffer(x)[:4], x[3:7]),
}  # fmt: skip
DISJOINT = {
    "rows": lambda x: tuple(x.reshape(4, 4)[1:3]), "columns": lambda x: tuple(x.reshape(4, 4).T[1:3]),
    "turns": lambda x: (x[::2], x[1::2]), "halves": lambda x: (x[:8], x[8:]),
    "another's": lambda x: (x[:8], x.copy()[:8]),
}  # fmt: skip
CALLS_OF_TWO = {
    "value_and_grad": lambda f: gradwalk.value_and_grad(f), "both": lambda f: gradwalk.value_and_grad(f, (0, 1)),
    "of a compiled one": lambda f: gradwalk.value_and_grad(compile(f), (0, 1)),
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS_OF_TWO.values(), ids=CALLS_OF_TWO)
def test_arrays_that_share_memory_are_in_several_places(call: Any) -> None:
    """What is written to one of them is in the other, too, unless no number is in both."""
    changing, reading = call(shifted), call(lambda a, b: (a * b).sum())

    for views in DISJOINT.values():
        a, b = views(np.arange(16.0))
        assert changing(a, b)[0] == ((a + 1.0) * b).sum()
    for views in SHARED.values():
        a, b = views(np.arange(16.0))
        with pytest.raises(TypeError, match=r"in several places of the arguments.*give it a copy"):
            changing(a, b)
        assert reading(a, b)[0] == (a * b).sum()
    assert changing(np.arange(8.0), np.arange(1.0, 9.0))[0] == 204.0  # copies


@pytest.mark.parametrize("made", [lambda f: f, compile])
@pytest.mark.parametrize("outer", [lambda inner: [inner], lambda inner: {0: inner}, lambda inner: (inner,)])
def test_what_is_inside_of_what_is_in_two_places_is_so_too(made: Any, outer: Any) -> None:
    """A row of a table that is passed twice may not be changed, either."""

    def changes_a_row(table: Any, again: Any) -> Any:
        table[0][0] = table[0][0] * 10.0
        return again[0][0] * 1.0

    table = outer([1.0, 2.0])
    with pytest.raises(TypeError, match="in several places of the arguments"):
        gradwalk.value_and_grad(made(changes_a_row), (0, 1))(table, table)
    assert gradwalk.value_and_grad(made(changes_a_row), (0, 1))(table, outer([1.0, 2.0]))[0] == 1.0


@pytest.mark.parametrize("made", [lambda f: f, compile])
def test_what_is_in_one_place_may_be_changed_beside_what_is_in_two(made: Any) -> None:
    """Only what is there twice has to stay as it is."""

    def changes_the_last(xs: Any, ys: Any, zs: Any) -> Any:
        zs[0] = zs[0] * 10.0
        return xs[0] * ys[1] * zs[0]

    xs = [3.0, 4.0]
    slopes = gradwalk.grad(made(changes_the_last), (0, 1, 2))(xs, xs, [1.0])
    assert slopes == ([40.0, 0.0], [0.0, 30.0], [120.0])


def longer_by_one(xs: Any, ys: Any) -> Any:
    ys.append(1.0)
    return gradwalk.dot(xs, ys)


@pytest.mark.parametrize("made", [lambda f: f, compile])
def test_an_error_that_comes_of_such_a_change_is_said_to(made: Any) -> None:
    """As two, the lists have different lengths; as one they have not."""
    xs = [3.0, 4.0]
    with pytest.raises(TypeError, match="in several places of the arguments"):
        gradwalk.value_and_grad(made(longer_by_one))(xs, xs)


def test_a_value_that_is_passed_twice_is_one_value() -> None:
    compiled = compile(lambda a, b: a * 2.0 if a is b else a + b * 5.0)
    v, w = Value(3.0), Value(3.0)
    assert [compiled(v, v).data, compiled(v, w).data, compiled(v, v).data] == [6.0, 18.0, 6.0]
    compiled(v, v).backward()
    assert v.grad == 2.0


def test_values_that_are_keys_of_a_dict_are_the_values_among_the_arguments() -> None:
    compiled = compile(lambda d, v: v * d.get(v, 100.0))
    v, w = Value(3.0), Value(3.0)
    assert [compiled({v: 2.0}, v).data, compiled({v: 2.0}, w).data, compiled({w: 4.0}, w).data] == [6.0, 300.0, 12.0]


# ---------------------------------------------------------------- what else belongs to an argument


@dataclass
class Disc:
    radius: float
    area: float = field(init=False)

    def __post_init__(self) -> None:
        self.area = self.radius * self.radius * 3.0


@dataclass
class Settings:
    layers: int
    heads: int = 2


@dataclass
class Powers:
    base: float
    exponent: int


class Row(list[Any]):
    scale = 1.0


def test_a_field_that_follows_from_others_does_so_until_it_is_set() -> None:
    compiled = compile(lambda disc: disc.area * 2.0)
    assert [compiled(Disc(1.0)).data, compiled(Disc(2.0)).data] == [6.0, 24.0]
    cut = Disc(2.0)
    cut.area = 5.0
    assert [compiled(cut).data, compiled(Disc(2.0)).data] == [10.0, 24.0]
    assert gradwalk.grad(compiled)(Disc(2.0)).radius == 24.0
    assert gradwalk.grad(lambda disc: disc.area * 2.0)(cut).area == 2.0


def test_numbers_beside_integers_are_no_settings() -> None:
    compiled = compile(lambda powers: powers.base * powers.exponent)
    calls = Powers(2.0, 3), Powers(4.0, 3), Powers(2.0, 5)
    assert [compiled(powers).data for powers in calls] == [6.0, 12.0, 10.0]
    assert compiled.value_and_grad(Powers(2.0, 3))[1].base == 3.0
    assert len(compiled.programs) == 1


def test_settings_may_change() -> None:
    compiled = compile(lambda settings, x: x * settings.layers)
    settings = Settings(3)
    assert compiled(settings, 2.0).data == 6.0
    settings.layers = 4
    assert compiled(settings, 2.0).data == 8.0
    assert compiled(Settings(3), 2.0).data == 6.0
    assert len(compiled.programs) == 2


def test_attributes_of_a_list_are_parts_of_it() -> None:
    compiled = compile(lambda xs: xs[0] * xs.scale)
    xs = Row([3.0])
    assert compiled(xs).data == 3.0
    for scale in (2.0, 5.0):
        xs.scale = scale
        assert compiled(xs).data == 3.0 * scale
        assert gradwalk.value_and_grad(lambda xs: xs[0] * xs.scale)(xs)[0] == 3.0 * scale


class Named(dict[str, float]):
    pass


def test_attributes_of_a_dict_are_parts_of_it() -> None:
    given = Named(a=3.0)
    given.rate = 2.0  # type: ignore[attr-defined]
    for function in (lambda d: d["a"] * d.rate, compile(lambda d: d["a"] * d.rate)):
        slope = gradwalk.grad(function)(given)
        assert (type(slope), slope, slope.rate) == (Named, {"a": 2.0}, 3.0)


def test_what_a_mapping_of_ones_own_keeps_its_items_in_is_no_part_of_it() -> None:
    """Each number counts once."""
    report = gradwalk.gradcheck(lambda d: d["a"] * d["b"], UserDict(a=2.0, b=3.0))
    assert [(entry.name, entry.derivative) for entry in report.entries] == [("x['a']", 3.0), ("x['b']", 2.0)]


def squares(xs: Any) -> Any:
    return (xs * xs).sum()


def test_an_array_that_is_a_file() -> None:
    """As any other array; it came out as one number among many, and the numbers of others were read in its place."""
    compiled, array = compile(squares), np.array([1.0, 2.0, 3.0])
    with TemporaryFile() as file:
        mapped: Any = np.memmap(file, float, "w+", shape=3)
        mapped[:] = array
        for given in (array, mapped, array):
            assert compiled(given).data == 14.0
            assert compiled.map([given, given])[1].data == 14.0
            assert compiled.value_and_grad(given)[1].tolist() == [2.0, 4.0, 6.0]
            assert gradwalk.grad(squares)(given).tolist() == [2.0, 4.0, 6.0]


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("made", [np.matrix, np.ma.array, lambda xs: np.array(xs).view(type("Own", (np.ndarray,), {}))])
def test_arrays_that_compute_in_their_own_way_are_refused(made: Any) -> None:
    """A product of matrices is no product of entries, and what is masked does not count."""
    for call in (compile(squares), compile(squares).value_and_grad, gradwalk.grad(squares)):
        with pytest.raises(TypeError, match=r"which computes in its own way; give numpy.asarray\(\) of it"):
            call(made([[1.0, 2.0], [3.0, 4.0]]))


def test_arrays_that_lie_anywhere_in_memory() -> None:
    """Between the bytes of others, or with their bytes the other way round."""
    array = np.array([1.0, 2.0, 3.0])
    unaligned = np.ndarray(3, np.float64, b"-" + array.tobytes(), 1)
    compiled = compile(squares)
    for given in (array, unaligned, array.astype(">f8"), array[::-1]):
        expected = (2.0 * given).tolist()
        assert gradwalk.grad(squares)(given).tolist() == expected
        assert gradwalk.grad(compiled)(given).tolist() == compiled.value_and_grad(given)[1].tolist() == expected
        assert gradwalk.hvp(compiled)(given, given).tolist() == gradwalk.hvp(squares)(given, given).tolist() == expected


def test_keys_that_are_one_to_a_dict_are_three_to_a_function() -> None:
    compiled = compile(lambda given: sum(x * len(type(key).__name__) for key, x in given.items()))
    keys: tuple[Any, ...] = (1, 1.0, True, 1)
    assert [compiled({key: 1.0}).data for key in keys] == [3.0, 5.0, 4.0, 3.0]


@pytest.mark.parametrize("operation", [lambda x, n: x * n, lambda x, n: n - x, lambda x, n: x / n, lambda x, n: n**x])
def test_an_integer_beyond_all_floats(operation: Any) -> None:
    """It was infinite; with floats, and with Values, it is an error."""
    compiled = compile(operation)
    assert compiled(2.0, 3).data == operation(2.0, 3)
    for call in (compiled, compiled.value_and_grad, lambda x, n: compiled.map([(x, n)]), operation):
        with pytest.raises(OverflowError):
            call(2.0, 10**400)


def test_numpy_takes_an_integer_argument_for_an_integer() -> None:
    compiled = compile(lambda x, n: x * np.sqrt(n) + np.power(2.0, n) * np.exp(n))
    for n in (4, 9, 4):
        assert compiled(2.0, n).data == pytest.approx(2.0 * np.sqrt(n) + np.power(2.0, n) * np.exp(n))


def test_truth_values_in_a_result_are_none_of_the_numbers() -> None:
    compiled = compile(lambda x: (x * 2.0, True, 3, x > 1.0))
    assert [type(part) for part in compiled(2.0)[1:]] == [bool, int, bool]


class Counted:
    """An integer in all but name."""

    def __index__(self) -> int:
        return 4


def test_what_is_an_integer_in_all_but_name_is_returned_as_one() -> None:
    assert compile(lambda x: (x * 2.0, Counted()))(2.0)[1] == 4


@dataclass
class Twig:
    length: float
    grown_from: Any = None
    twigs: list[Any] = field(default_factory=list)


def twice_the_first(whole: Any) -> Any:
    return 2.0 * (
        whole.length if isinstance(whole, Twig) else next(iter(whole.values() if type(whole) is dict else whole))
    )


def endless() -> list[Any]:
    twig, numbers, by_name = Twig(1.0), [1.0], {"length": 1.0}
    twig.twigs.append(Twig(2.0, grown_from=twig))
    numbers.append(numbers)  # type: ignore[arg-type]
    by_name["all"] = by_name  # type: ignore[assignment]
    own = Twig(1.0)
    own.grown_from = own
    return [twig, own, numbers, by_name]


ENDLESS = pytest.mark.parametrize("whole", endless(), ids=["dataclasses", "dataclass", "list", "dict"])


@ENDLESS
@pytest.mark.parametrize("made", [gradwalk.grad, compile, gradwalk.jacobian])
def test_what_contains_itself_is_refused_in_one_sentence(made: Any, whole: Any) -> None:
    with pytest.raises(TypeError, match="structure that ends, got one that contains itself"):
        made(twice_the_first)(whole)
    with pytest.raises(TypeError, match="structure that ends, got one that contains itself"):
        compile(lambda x: [x, whole])(1.0)


@ENDLESS
def test_what_contains_itself_may_stand_beside_what_is_differentiated(whole: Any) -> None:
    """Nobody asks for its numbers."""
    assert gradwalk.grad(lambda x, beside: x * x)(3.0, whole) == 6.0


KINDS_OF_ROWS = pytest.mark.parametrize("kind", [list, np.array])


@KINDS_OF_ROWS
def test_the_program_is_that_of_the_last_call(kind: Any) -> None:
    """Also where the arguments are an array like one that was there before."""
    compiled = compile(lambda xs: gradwalk.dot(xs, xs))
    for length in (2, 3, 2):
        compiled(kind([1.0] * length))
        assert length == compiled.program.arguments
    assert [program.arguments for program in compiled.programs] == [3, 2]


@KINDS_OF_ROWS
def test_the_program_that_was_not_used_for_longest_goes(kind: Any) -> None:
    """Not the one that was made first; and what is called for once more is made once more."""
    compiled = compile(lambda xs: gradwalk.dot(xs, xs))
    for length in (*range(1, KEPT + 1), 1):
        compiled(kind([1.0] * length))
    with pytest.warns(RuntimeWarning, match="33 structures") as told:
        compiled(kind([1.0] * (KEPT + 1)))
    assert {warning.filename for warning in told} == {__file__}
    assert [*range(3, KEPT + 1), 1, KEPT + 1] == [program.arguments for program in compiled.programs]
    assert compiled(kind([1.0, 2.0])).data == 5.0
    assert [*range(4, KEPT + 1), 1, KEPT + 1, 2] == [program.arguments for program in compiled.programs]


def test_the_ninth_program_for_one_structure_is_warned_of() -> None:
    compiled = compile(lambda x, n: x * sum(1.0 for _ in range(n)))
    for n in range(1, 9):
        compiled(1.0, n)
    with pytest.warns(RuntimeWarning, match="was traced 9 times for arguments of one structure"):
        compiled(1.0, 9)
