"""Every function and method of the C engine with arguments that it is not for: an exception, or an answer; no crash.

And after an exception nobody holds what was given.
"""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from measures import python

from gradwalk import _native

CALLS = """
import random, sys
from array import array
import numpy as np
from gradwalk import _native
from gradwalk.compiler.program import Guard, Instruction, Program, View

def expected():
    x = _native.Value(0.5)
    y = (x * x + 1.0).tanh() * x
    y.backward()
    return x.grad, y.data

def slots(*numbers):
    return np.array(numbers, dtype=np.int32)

program = Program(3, np.zeros(3), slots(0, 1), slots(2), (Instruction("mul", 2, 1, 1, (View(1, 1, 0), View(1, 1, 1))),))
executor = _native.Executor(program.size, program.initial, program.inputs, program.outputs, program.instructions, ())
x, y = _native.Value(0.5), _native.Value(2.0)
GIVEN = [compile(text.strip(), text, "eval") for text in '''
None; True; 0; -1; 3; 2**70; 0.5; float("nan"); ""; "sum"; b"12345678"; []; (); {}; [1.0, 2]; ["a"]; [[1.0, x], [y]]
(x, y); [x, y]; {"a": x}; [None, x]; x; x * y; iter([x]); array("d", [1.0, 2.0]); array("d", [1.0]); array("d")
np.ones((2, 3)); np.ones(2, np.float32); slots(); slots(0, 1); slots(1, 2, 3); slots(-1, 5); array("q", [0, 2**62])
bytearray(16); memoryview(bytes(16)); max; lambda *given: given; object(); int; type(x); executor; program.instructions
(Guard(0, "<", 1, True),)
'''.strip().replace("\\n", ";").split(";")]

def callables():
    for table in (_native.FUNCTIONS, _native.COMPOSITES, _native.LOOPS, _native.OPTIMISERS, _native.TRACING):
        yield from table.items()
    for name, found in vars(_native).items():
        if callable(found) and name != "set_equality_is_identity":  # which it then would be
            yield name, found
    for owner in (x, x * y, executor, _native.Change()):
        for name in dir(owner):
            if callable(getattr(owner, name)) and name not in dir(object):
                yield name, getattr(owner, name)

def references(arguments):
    "How many there are to what nobody else refers to."
    own = [each for each in arguments if isinstance(each, (list, dict, np.ndarray, array, bytearray, type(x)))]
    return [sys.getrefcount(each) for each in (x, y, executor, *own)]

generator, right, refused = random.Random(0), expected(), 0
for name, call in callables():
    tries = [(), *((given,) for given in GIVEN), *((a, b) for a in GIVEN for b in generator.sample(GIVEN, 3))]
    tries += [[generator.choice(GIVEN) for _ in range(generator.randint(3, 8))] for _ in range(TRIES)]
    for chosen in tries:
        arguments, is_refused = list(map(eval, chosen)), False
        before = references(arguments)
        try:
            call(*arguments)
        except Exception as error:
            assert not isinstance(error, (SystemError, MemoryError)), (name, *(code.co_filename for code in chosen))
            is_refused = True
        if is_refused:
            held = [now - then for then, now in zip(before, references(arguments))]
            assert max(held) <= 0, (name, held, *(code.co_filename for code in chosen))  # an iterator lets go of some
            refused += 1
assert expected() == right
assert refused > 10000
print("done")
"""

TYPES = """
import copy, gc
import numpy as np
from gradwalk import _native

class Sub(_native.Value):
    pass

v, formula = _native.Value(2.0), (lambda x: x, "same", bytes([2, 0, 2, 0]), b"", 2, True)
v.hung, stand_in = 1, _native.stand_in("script.Node", 0)
executor = _native.Executor(1, np.zeros(1), np.zeros(1, np.int32), np.zeros(1, np.int32), (), ())
found = [v, Sub(1.0), stand_in(1.0), executor, _native.Change(), _native.Value.hung, _native.formula_method(formula)]
kinds = {type(each) for each in found}
kinds |= {kind for kind in gc.get_objects()  # and what is made elsewhere
          if isinstance(kind, type) and (kind.__module__ == "gradwalk._native" or issubclass(kind, _native.Value))}
foreign = [3, 2.5, "abc" * 10, [1], object(), int, None, *found]

def attempt(call, *given):
    try:
        return call(*given)
    except Exception as error:
        assert not isinstance(error, (SystemError, MemoryError)), (call, given)

made = [kind.__new__(kind) for kind in (Sub, _native.Change)]
for kind in kinds:
    made += [attempt(kind), attempt(kind.__new__, kind), attempt(object.__new__, kind)]
made += [attempt(copy.copy, each) for each in found]
for each in filter(None, made):
    for name in dir(each):
        got = attempt(getattr, each, name)
        for given in ((), (None,), (v,), (None, None, None)):
            attempt(got, *given)
        attempt(setattr, each, name, v)
        attempt(delattr, each, name)
for kind in kinds:
    for entry in vars(kind).values():
        for other in foreign:
            for given in ((other,), (other, v), (v, other), (other, 1, None)):
                attempt(entry, *given)
                for name in ("__get__", "__set__", "__delete__"):
                    attempt(lambda: getattr(entry, name)(*given))
assert len(kinds) >= 7, kinds
gc.collect()
print("done")
"""


def test_types_without_what_makes_them_and_on_others() -> None:
    """An object that no __init__ has filled, and a method or descriptor of one type that is given one of another."""
    done = python(TYPES, GRADWALK_ENGINE="native")
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr[-2000:]


def test_wrong_arguments() -> None:
    done = python(CALLS.replace("TRIES", "100"), GRADWALK_ENGINE="native")
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr[-2000:]


@pytest.mark.parametrize(("place", "given"), [(0, []), (1, ()), (2, ()), (3, [None] * 6), (3, (None,) * 5), (5, None)])
def test_each_argument_of_a_reading_is_looked_at(place: int, given: Any) -> None:
    """A list of the right length is no tuple, and its items are elsewhere."""
    arguments: list[Any] = [(1.0,), [], [], (None,) * 6, len]
    arguments[place : place + 1] = [given]
    with pytest.raises(TypeError, match="read: expected a tuple, two lists, the kinds and a function"):
        _native.read(*arguments)


def test_an_int_beyond_all_floats_is_no_double() -> None:
    """That it is too large is an answer, and not an error."""
    assert _native.all_doubles([1.0, 10**400, 2]) is False


@pytest.mark.parametrize("name", ["levels", "latest_levels", "mark_needed", "mark_users"])
def test_what_is_to_be_filled_has_to_be_writable(name: str) -> None:
    """A view that can only be read is not."""
    fixed = memoryview(array("b" if name.startswith("mark") else "q", [0])).toreadonly()
    with pytest.raises(BufferError):
        _native.LOOPS[name](array("q", [0, 0]), array("q"), fixed)
