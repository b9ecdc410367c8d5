"""How a script's class is built, found out by building some of its objects: names do not matter, only what lands where.

A class has the shape if its objects hold a number, a gradient that starts at 0, what they were computed from and, in
one family, how to go backward, in the other, local gradients; and besides these only constants.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

# a class with one of these behaves in a way that a stand-in would not
NOT_REPLACEABLE = {"__new__", "__getattr__", "__getattribute__", "__setattr__", "__delattr__", "__del__", "__call__",
                   "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__"}  # fmt: skip
PLAIN = (int, float, str, bool, type(None))


class Kept(Exception):  # noqa: N818
    """Why a class is not replaced."""


@dataclass
class Shape:
    """What the parameters of a constructor are for, and which attribute shows what."""

    parameters: dict[str, str]  # name → "data", "children", "local_grads", "op", "label", "grad", "backward" or "extra"
    signature: inspect.Signature
    data: str = ""
    grad: str = "grad"
    backward: str = ""  # the attribute with the function that hands gradients on, in micrograd's family
    children: dict[str, type] = field(default_factory=dict)  # attribute → set, tuple or list
    local_grads: str = ""
    op: str = ""
    label: str = ""
    extra: dict[str, Any] = field(default_factory=dict)  # attribute → what it starts with
    given: dict[str, str] = field(default_factory=dict)  # attribute → the parameter it is set from
    from_number: list[str] = field(default_factory=list)  # those of them that are made from the number, if not given

    def children_of(self, node: Any) -> list[Any]:
        return list(getattr(node, next(iter(self.children)))) if self.children else []

    def has_sets(self) -> bool:
        """Whether what a node was computed from has no order, so that the order of sums is another every time."""
        return next(iter(self.children.values())) in (set, frozenset)

    def is_native(self) -> bool:
        """Whether the native constructor takes the same arguments, by position and by name."""
        accepted = {
            "data": {"data"}, "children": {"_children", "children"}, "op": {"_op"}, "local_grads": {"local_grads"},
            "label": {"label"},
        }  # fmt: skip
        place = {"data": 0, "children": 1, "op": 2, "local_grads": 2, "label": 3}
        for i, (name, role) in enumerate(self.parameters.items()):
            parameter = self.signature.parameters[name]
            by_name = parameter.kind is parameter.KEYWORD_ONLY
            if name not in accepted.get(role, ()) or (not by_name and place[role] != i):
                return False
            if (parameter.default is parameter.empty) != (i == 0):
                return False
        # microgpt's `children` is taken by name only there: by position it comes second all the same
        return not self.given


def shape_of(cls: type) -> Shape:
    if cls.__bases__ != (object,) or type(cls) is not type:
        raise Kept("it derives from another class")
    for name in vars(cls):
        if name in NOT_REPLACEABLE:
            raise Kept(f"it defines {name}")
    constructor: Any = vars(cls).get("__init__")
    if not isinstance(constructor, FunctionType):
        raise Kept("it has no __init__ of its own")
    parameters = list(inspect.signature(constructor).parameters.values())[1:]
    signature = inspect.Signature(parameters)
    if not parameters or any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        raise Kept(f"its constructor takes {signature}")
    if any(parameter.default is parameter.empty for parameter in parameters[1:]):
        raise Kept(f"its constructor takes {signature}, more than a number")
    shape = Shape({parameters[0].name: "data"}, signature)
    plain = built(cls, 0.75)
    for name, value in attributes(plain).items():
        if hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, float):
            raise Kept(f"its {name} is an array; gradwalk's nodes hold single numbers")
    made, shape.grad = after_a_pass(cls)
    # the functions that hand gradients on: each object has one, or each that was computed
    of_objects = [name for name, value in attributes(plain).items() if callable(value)] or [
        name for name, value in attributes(plain).items() if value is None and callable(getattr(made, name, None))
    ]
    if of_objects and not hasattr(cls, "_backward"):
        shape.backward = of_objects[0]
    for parameter in parameters[1:]:
        shape.parameters[parameter.name] = role_of(cls, shape, parameter.name, plain)
    read_attributes(cls, shape, plain)
    for name in shape.children:  # some keep what they are given: then what counts is what operations give
        shape.children[name] = type(getattr(made, name, ()))
        if shape.children[name] not in (set, frozenset, tuple, list):
            raise Kept(f"its {name} is {short(getattr(made, name, None))}")
    return shape


def after_a_pass(cls: Any) -> tuple[Any, str]:
    """A sum, and the attribute of its operands that `backward()` set to 1."""
    operands = built(cls, 0.5), built(cls, 1.5)
    try:
        made = operands[0] + operands[1]
    except Exception as error:
        raise Kept(f"its operations raise {type(error).__name__}: {error}") from None
    before = attributes(operands[1])
    try:
        made.backward()
    except Exception:  # said later, by the comparison, in better words
        return made, "grad"
    after = attributes(operands[1])
    set_by_it = [name for name, value in after.items() if is_number(value) and value != before.get(name)]
    return made, set_by_it[0] if len(set_by_it) == 1 else "grad"


def is_number(value: Any) -> bool:
    return type(value) in (int, float)


def built(cls: Any, number: Any, **given: Any) -> Any:
    try:
        return cls(number, **given)
    except Exception as error:
        raise Kept(f"its constructor raises {type(error).__name__}: {error}") from None


def attributes(node: Any) -> dict[str, Any]:
    names = [*getattr(node, "__dict__", ()), *slots(type(node))]
    return {name: getattr(node, name) for name in names if hasattr(node, name)}


def slots(cls: type) -> list[str]:
    given = vars(cls).get("__slots__", ())
    return [given] if isinstance(given, str) else list(given)


def role_of(cls: Any, shape: Shape, name: str, plain: Any) -> str:
    """What a parameter is for: where does a value that it was given turn up?"""
    before = attributes(plain)
    operands = (built(cls, 0.5), built(cls, 1.5))
    children = next((parameter for parameter, role in shape.parameters.items() if role == "children"), None)
    default = shape.signature.parameters[name].default
    for role in likely_roles(name, default, shape, children):
        values = {"children": operands, "local_grads": (2.5, 3.5), "op": "gradwalk", "label": "gradwalk"}
        value = {**values, "backward": is_number}.get(role, 2.5)
        given = {name: value, **({children: operands} if role == "local_grads" and children else {})}
        try:
            after = attributes(cls(0.75, **given))
        except Exception:  # not a value it takes
            continue
        found = [key for key, held in after.items() if holds(held, value) and not holds(before.get(key), value)]
        if not found:
            continue
        if role == "children":
            shape.children.update({key: type(after[key]) for key in found})
        elif found == [shape.grad]:
            return "grad"
        elif role == "extra":
            shape.given.update(dict.fromkeys(found, name))
        else:
            setattr(shape, role, found[0])
        return role
    raise Kept(f"its constructor takes {shape.signature.parameters[name]}, and it is not clear what for")


def likely_roles(name: str, default: Any, shape: Shape, children: str | None) -> list[str]:
    """What to try, the likeliest first: a class that checks nothing keeps whatever it is given."""
    roles = []
    words = isinstance(default, str) or (default is None and any(word in name for word in ("op", "label")))
    if words and not shape.op and "op" in name:
        roles.append("op")
    elif words and not shape.label and default == "":
        roles.append("label")
    elif not words and shape.backward and shape.backward.strip("_") == name.strip("_"):
        roles.append("backward")
    elif not words and children is None and not is_number(default) and default is not False:
        roles.append("children")
    elif not words and not shape.local_grads and (isinstance(default, tuple | list) or "local" in name):
        roles.append("local_grads")
    return [*roles, "extra"]


def holds(held: Any, value: Any) -> bool:
    if isinstance(value, tuple) and isinstance(held, set | tuple | list):
        return len(held) == len(value) and all(any(one is other or one == other for other in held) for one in value)
    return type(held) is type(value) and bool(held == value)


def read_attributes(cls: Any, shape: Shape, plain: Any) -> None:
    """Tell what a new object's attributes are; refuse what a node could not show."""
    known = {*shape.children, *shape.given, shape.local_grads, shape.op, shape.label, shape.backward}
    again, other = attributes(built(cls, 0.75)), attributes(built(cls, 1.25))
    for name in filter(None, (shape.op, shape.label, *shape.given)):
        value = getattr(plain, name)
        if value != other[name] and name in shape.given and isinstance(value, PLAIN) and value == again[name]:
            shape.from_number.append(name)
        elif value != other[name]:
            raise Kept(f"its __init__ makes {name} from the number: {short(value)} of 0.75")
    for name, value in attributes(plain).items():
        if name in known:
            continue
        if name in ("data", shape.grad) or (is_number(value) and (value, other[name]) == (0.75, 1.25)):
            read_number(shape, name, value)
        elif (isinstance(value, PLAIN) and value == again[name] == other[name]) or value == ():
            shape.extra[name] = value
        else:
            raise Kept(f"its __init__ sets {name} to {short(value)}, another for each object")
    if not shape.data or not hasattr(plain, shape.grad):
        raise Kept(f"its objects have no {shape.data or 'data'} and {shape.grad}")
    if not shape.children:
        raise Kept("its objects do not say what they were computed from")


def read_number(shape: Shape, name: str, value: Any) -> None:
    if not is_number(value):
        raise Kept(f"its {name} is {short(value)}, not a plain number")
    if name == shape.grad:
        if value != 0:
            raise Kept(f"its {name} starts at {value!r}")
    elif value != 0.75:
        raise Kept(f"its data is {value!r} for the number 0.75")
    elif shape.data:
        raise Kept(f"its number is in {shape.data} and in {name}")
    else:
        shape.data = name


def short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{type(value).__name__} {text[:37]}..."
