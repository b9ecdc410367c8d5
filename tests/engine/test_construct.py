"""Making a Value: both families' constructors, what a node shows, weird input, subclasses, the type itself."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from measures import bits, outcome, python

# ---------------------------------------------------------------- constructors


def test_a_leaf_from_a_number(engine: Any) -> None:
    """Value(data) is a leaf: no children, no op, no label, gradient zero."""
    x = engine.Value(3)
    assert (x.data, x.grad, x._children, x._local_grads, x._prev, x._op, x.label) == (3.0, 0.0, (), (), set(), "", "")


@pytest.mark.parametrize("number", [3, True, Fraction(1, 3), 0.1, -0.0, math.inf, 2**70, 1e-320])
def test_data_is_a_float(engine: Any, number: Any) -> None:
    """Any real number becomes a plain float, to the bit of float(number)."""
    x = engine.Value(number)
    assert type(x.data) is float
    assert bits([x.data]) == bits([float(number)])


def test_micrograd_constructor_by_position(engine: Any) -> None:
    """Value(data, children, op) is micrograd's."""
    x = engine.Value(2.0)
    out = engine.Value(4.0, (x, x), "twice")
    assert (out._children, out._local_grads, out._op, out._prev) == ((x, x), (), "twice", {x})


def test_micrograd_constructor_by_keyword(engine: Any) -> None:
    """Value(data=, _children=, _op=, label=) is micrograd's, with the lecture's label."""
    x = engine.Value(data=2.0, label="x")
    out = engine.Value(data=4.0, _children=(x,), _op="square", label="out")
    assert (out.data, out._children, out._op, out.label, x.label) == (4.0, (x,), "square", "out", "x")


def test_label_is_the_fourth_argument(engine: Any) -> None:
    """Value(data, children, op, label), as in the lecture."""
    assert engine.Value(1.0, (), "", "w").label == "w"


def test_microgpt_constructor_by_position(engine: Any) -> None:
    """Value(data, children, local_grads) is microgpt's, and takes part in backward()."""
    x, y = engine.Value(2.0), engine.Value(5.0)
    out = engine.Value(10.0, (x, y), (5.0, 2.0))
    out.backward()
    assert (out._children, out._local_grads, out._op) == ((x, y), (5.0, 2.0), "")
    assert (x.grad, y.grad) == (5.0, 2.0)


def test_microgpt_constructor_by_keyword(engine: Any) -> None:
    """Value(data, children=, local_grads=) is microgpt's."""
    x = engine.Value(2.0)
    out = engine.Value(4.0, children=(x,), local_grads=(4.0,))
    out.backward()
    assert (out._children, x.grad) == ((x,), 4.0)


def test_op_and_local_gradients_together(engine: Any) -> None:
    """An op's name does not exclude local gradients."""
    x = engine.Value(2.0)
    out = engine.Value(4.0, (x,), "square", local_grads=[4.0])
    out.backward()
    assert (out._op, out._local_grads, x.grad) == ("square", (4.0,), 4.0)


@pytest.mark.parametrize("collect", [tuple, list, set, iter], ids=["tuple", "list", "set", "iterator"])
def test_children_in_any_collection(engine: Any, collect: Callable[..., Any]) -> None:
    """Children may come as any iterable, and are shown as a tuple."""
    x = engine.Value(2.0)
    assert engine.Value(4.0, collect([x]), (4.0,))._children == (x,)


def test_a_plain_number_as_child(engine: Any) -> None:
    """A plain number among the children becomes a constant leaf."""
    x = engine.Value(2.0)
    out = engine.Value(6.0, (x, 3), (3.0, 2.0))
    out.backward()
    assert [(child.data, child.grad, child._constant) for child in out._children] == [
        (2.0, 3.0, False),
        (3.0, 2.0, True),
    ]


def test_more_children_than_a_node_has_room_for(engine: Any) -> None:
    """A node made by hand may have any number of children, also the same one many times."""
    x = engine.Value(2.0)
    out = engine.Value(0.0, [x] * 1000, range(1000))
    out.backward()
    assert (len(out._children), x.grad) == (1000, sum(range(1000)))


# ---------------------------------------------------------------- attributes


def test_data_and_grad_are_assignable(engine: Any) -> None:
    """A training step writes both."""
    p = engine.Value(2.0)
    (p * p).backward()
    p.data -= 0.25 * p.grad
    assert p.data == 1.0
    p.grad = 0
    assert (p.grad, type(p.grad)) == (0.0, float)


def test_what_an_operation_shows(engine: Any) -> None:
    """Children in order, local gradients beside them, the children as a set, the op as it is written."""
    a, b = engine.Value(2.0), engine.Value(-3.0)
    c = a * b
    assert (c._children, c._local_grads, c._prev, c._op) == ((a, b), (-3.0, 2.0), {a, b}, "*")


@pytest.mark.parametrize(
    ("make", "op"),
    [
        (lambda v: v + v, "+"),
        (lambda v: v - v, "-"),
        (lambda v: v * v, "*"),
        (lambda v: v / v, "/"),
        (lambda v: v**3, "**3"),
        (lambda v: v**0.5, "**0.5"),
        (lambda v: v**-1, "**-1"),
        (lambda v: v**v, "**"),
        (lambda v: 2**v, "**"),
        (lambda v: -v, "neg"),
        (lambda v: v.relu(), "ReLU"),
        (lambda v: v.tanh(), "tanh"),
        (lambda v: v.exp(), "exp"),
    ],
)
def test_op_is_spelled_as_written(engine: Any, make: Callable[[Any], Any], op: str) -> None:
    """`_op` is what a drawing of the graph shows."""
    assert make(engine.Value(2.0))._op == op


def test_the_same_child_twice(engine: Any) -> None:
    """a + a has two children and one previous node."""
    a = engine.Value(1.0)
    b = a + a
    assert (b._children, b._prev) == ((a, a), {a})


def test_label_on_any_node(engine: Any) -> None:
    """A label can be given to a leaf, a constant and a result at any time, and changes nothing else."""
    x = engine.Value(2.0)
    for node in (x, x * 3, x**2, x + x, x.clamp(0, 1), engine.composites.sum([x, x])):
        before = node._children, node._local_grads, node._op, node._name, node._parameters, node.data
        node.label = "here"
        assert node.label == "here"
        assert (node._children, node._local_grads, node._op, node._name, node._parameters, node.data) == before


def test_repr(engine: Any) -> None:
    """micrograd's repr; a label is added where there is one."""
    x = engine.Value(2.0)
    y = engine.Value(-0.5, label="y")
    assert repr(x) == "Value(data=2.0, grad=0.0)"
    assert repr(y) == "Value(data=-0.5, grad=0.0, label='y')"


def test_unary_plus_is_the_value_itself(engine: Any) -> None:
    """+v records nothing."""
    x = engine.Value(2.0)
    assert +x is x


def test_sum_of_python(engine: Any) -> None:
    """The built-in sum() starts from 0 and works."""
    xs = [engine.Value(float(i)) for i in range(5)]
    total = sum(xs)
    total.backward()
    assert total.data == 10.0
    assert [x.grad for x in xs] == [1.0] * 5


@pytest.mark.parametrize("name", ["data", "grad", "label", "_backward", "_prev"])
def test_attributes_cannot_be_deleted(engine: Any, name: str) -> None:
    """A Value always has all of its attributes."""
    x = engine.Value(2.0)
    with pytest.raises(AttributeError):
        delattr(x, name)
    assert repr(x) == "Value(data=2.0, grad=0.0)"


def test_no_weak_references(engine: Any) -> None:
    """Both engines spend no memory on weak references."""
    with pytest.raises(TypeError):
        weakref.ref(engine.Value(1.0))


# ---------------------------------------------------------------- weird input

WEIRD_CONSTRUCTORS: dict[str, Callable[[Any], Any]] = {
    "a string": lambda make: make("1.0"),
    "None": lambda make: make(None),
    "complex": lambda make: make(1j),
    "a list": lambda make: make([1.0]),
    "a Decimal": lambda make: make(Decimal(1)),
    "a Value": lambda make: make(make(1.0)),
    "a huge integer": lambda make: make(10**400),
    "a huge fraction": lambda make: make(Fraction(10**400)),
    "a string as child": lambda make: make(1.0, ("x",)),
    "None as child": lambda make: make(1.0, (None,)),
    "a huge integer as child": lambda make: make(1.0, (10**400,)),
    "a string as local gradient": lambda make: make(1.0, (make(2.0),), ("x",)),
    "a Value as local gradient": lambda make: make(1.0, (make(2.0),), (make(1.0),)),
    "too many local gradients": lambda make: make(1.0, (make(2.0),), (1.0, 2.0)),
    "too few local gradients": lambda make: make(1.0, (make(2.0), make(2.0)), (1.0,)),
    "local gradients without children": lambda make: make(1.0, (), (1.0,)),
    "no collection of children": lambda make: make(1.0, 5),
    "None for children": lambda make: make(1.0, None),
    "no collection of local gradients": lambda make: make(1.0, (), 5),
    "a number as label": lambda make: make(1.0, label=3),
    "None as label": lambda make: make(1.0, label=None),
}


@pytest.mark.parametrize("weird", WEIRD_CONSTRUCTORS)
def test_weird_input_is_refused(engine: Any, weird: str) -> None:
    """What is no number, child, local gradient or label is refused at once; what is too large, as float() does it."""
    with pytest.raises((TypeError, ValueError, OverflowError)):
        WEIRD_CONSTRUCTORS[weird](engine.Value)


@pytest.mark.parametrize("weird", WEIRD_CONSTRUCTORS)
def test_weird_input_is_refused_in_the_same_words(reference: Any, native: Any, weird: str) -> None:
    """Both engines say the same about bad input to the constructor."""
    make = WEIRD_CONSTRUCTORS[weird]
    assert outcome(lambda: make(reference.Value)) == outcome(lambda: make(native.Value))


def test_a_value_in_a_value_is_not_called_a_number(engine: Any) -> None:
    """Value(Value(1.0)) says what is wrong: it does not expect the very thing it got."""
    with pytest.raises(TypeError) as caught:
        engine.Value(engine.Value(1.0))
    assert "or a Value, got a Value" not in str(caught.value)


@pytest.mark.parametrize("attribute", ["data", "grad"])
@pytest.mark.parametrize(
    "bad", ["x", None, 1j, [1.0], 10**400, -(10**400)], ids=["str", "None", "complex", "list", "huge", "minus huge"]
)
def test_a_refused_assignment_changes_nothing(engine: Any, attribute: str, bad: Any) -> None:
    """data and grad keep their number when the new one is refused."""
    x = engine.Value(3.0)
    x.grad = 7.0
    with pytest.raises((TypeError, ValueError, OverflowError)):
        setattr(x, attribute, bad)
    assert (x.data, x.grad) == (3.0, 7.0)


@pytest.mark.parametrize("bad", [3, None, b"w"], ids=repr)
def test_a_label_is_a_string(engine: Any, bad: Any) -> None:
    """A label that is no string is refused, and the old one kept."""
    x = engine.Value(1.0, label="w")
    with pytest.raises(TypeError):
        x.label = bad
    assert x.label == "w"


CHANGING = """
from fractions import Fraction
from gradwalk import composites, engine
Value, C = engine.load({name!r}).Value, composites.for_engine({name!r})
class Clearing(Fraction):
    def __float__(self):
        numbers.clear()
        return 1.0
numbers = [Clearing(1), *[2.0] * 100]
{call}
"""


@pytest.mark.parametrize(
    "call",
    [
        "C.sum(numbers)",
        "C.dot(numbers, [1.0] * 101)",
        "C.matvec([numbers], [1.0] * 101)",
        "C.take([numbers], 0)",
        "Value(1.0, numbers, [1.0] * 101)",
        "Value(1.0, [Value(1.0)] * 101, numbers)",
    ],
)
def test_a_list_that_changes_while_it_is_read(engine: Any, call: str) -> None:
    """A number whose __float__ empties the list it came from does no harm to the interpreter."""
    done = python(
        CHANGING.format(name=engine.name, call=f"try: {call}\nexcept (TypeError, ValueError, RuntimeError): pass")
    )
    assert (done.returncode, done.stderr) == (0, "")


# ---------------------------------------------------------------- subclasses


def test_a_subclass_is_a_value(engine: Any) -> None:
    """A subclass may have attributes and methods of its own, and its instances take part in graphs."""

    class Parameter(engine.Value):
        def __init__(self, data: float, name: str) -> None:
            super().__init__(data, label=name)
            self.name = name

        def doubled(self) -> Any:
            return self * 2

    p = Parameter(3.0, "p")
    out = p.doubled() + p**2
    out.backward()
    assert (p.name, p.label, p.grad, isinstance(p, engine.Value)) == ("p", "p", 8.0, True)


def test_an_operation_with_two_parameters_on_a_subclass(engine: Any) -> None:
    """It makes the same node as of the class itself."""

    class Own(engine.Value):  # type: ignore[misc, name-defined]
        pass

    x = Own(0.5)
    (x.clamp(0.0, 1.0) * 3.0 + x.clamp(0.7, 1.0)).backward()
    assert x.grad == 3.0


def test_a_subclass_made_with_children(engine: Any) -> None:
    """A subclass instance can be an interior node, with local gradients or a hand-written _backward."""

    class Node(engine.Value):
        pass

    x = engine.Value(2.0)
    first = Node(4.0, (x,), (4.0,))
    second = Node(8.0, (first,), "twice")

    def push() -> None:
        first.grad += 2.0 * second.grad

    second._backward = push
    (second + x).backward()
    assert (second.grad, first.grad, x.grad) == (1.0, 2.0, 9.0)


def test_a_subclass_may_override_an_operator(engine: Any) -> None:
    """Python asks the subclass first, also when it stands on the right."""

    class Loud(engine.Value):
        def __radd__(self, other: Any) -> str:
            return "radd"

        def __add__(self, other: Any) -> str:
            return "add"

    assert (engine.Value(1.0) + Loud(1.0), Loud(1.0) + engine.Value(1.0), 1.0 + Loud(1.0)) == ("radd", "add", "radd")


def test_a_subclass_on_either_side_of_every_operator(engine: Any) -> None:
    """Subclass instances are operands like any other."""

    class Sub(engine.Value):
        pass

    a, b = Sub(2.0), engine.Value(3.0)
    outs = [a + b, b + a, a * b, b * a, a - b, b - a, a / b, b / a, a**b, b**a, a**2, 2**a, -a, abs(a)]
    assert [out.data for out in outs] == [5, 5, 6, 6, -1, 1, 2 / 3, 1.5, 8, 9, 4, 4, -2, 2]
    assert [a in out._prev for out in outs] == [True] * len(outs)
    assert [a < b, b > a, a < 3, a <= b] == [True] * 4


def test_a_second_init_makes_a_fresh_leaf(engine: Any) -> None:
    """Calling __init__ again replaces everything: children, op, label and gradient."""

    class Node(engine.Value):
        pass

    x = engine.Value(2.0)
    for node in (Node(4.0, (x,), (4.0,), "out"), engine.Value(4.0, (x,), (4.0,), "out"), x * x, x + 1.0, x.exp()):
        node.grad = 5.0
        node.__init__(1.0)
        assert (node.data, node.grad, node._children, node._local_grads, node.label) == (1.0, 0.0, (), (), "")
        node.__init__(3.0, (x,), (2.0,))
        assert (node.data, node._children, node._local_grads) == (3.0, (x,), (2.0,))


def test_init_again_while_it_is_differentiated(engine: Any) -> None:
    """A node that is made anew inside its own _backward does not pull its children from under the walk."""
    code = f"""
from gradwalk import engine
Value = engine.load({engine.name!r}).Value
class Node(Value): pass
for i in range(400):
    x = Value(2.0)
    parts = x * 3, x.exp() * x.sin()
    out = (Node, Value)[i % 2](4.0, parts, "node")
    def push():
        out.__init__(1.0, (Value(1.0),), "other")
        for part in parts:
            part.__init__(2.0)
        keep = [Value(3.0) * 2 for _ in range(50)]
    out._backward = push
    (out * 2).backward()
    del out, parts
"""
    done = python(code, PYTHONMALLOC="debug")
    assert (done.returncode, done.stderr) == (0, "")


# ---------------------------------------------------------------- the type


def test_a_method_can_be_added_to_the_type(engine: Any) -> None:
    """As in the lecture, where Value grows methods from cell to cell."""

    def cube(self: Any) -> Any:
        return self * self * self

    engine.Value.cube = cube
    try:
        x = engine.Value(2.0)
        x.cube().backward()
        assert x.grad == 12.0
    finally:
        del engine.Value.cube
    assert not hasattr(engine.Value, "cube")


def test_a_method_of_the_type_can_be_replaced(engine: Any) -> None:
    """A replaced method is used at once, and can be put back."""
    before = engine.Value.tanh
    engine.Value.tanh = lambda self: "mine"
    try:
        assert engine.Value(1.0).tanh() == "mine"
    finally:
        engine.Value.tanh = before
    assert engine.Value(0.0).tanh().data == 0.0


def test_an_operator_of_the_type_can_be_replaced(engine: Any) -> None:
    """A replaced operator is used by the interpreter."""
    before = engine.Value.__mul__
    engine.Value.__mul__ = lambda self, other: "mine"
    try:
        assert engine.Value(1.0) * 2 == "mine"
    finally:
        engine.Value.__mul__ = before
    assert (engine.Value(3.0) * 2).data == 6.0


def test_the_type_is_called_value(engine: Any) -> None:
    """Messages of the interpreter name the type as the user knows it."""
    assert (engine.Value.__name__, engine.Value.__qualname__) == ("Value", "Value")
