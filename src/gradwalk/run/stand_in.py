"""The class that takes the place of a script's: nodes of the native engine, with what that class does its own way."""

from __future__ import annotations

import math
import os
import sys
from functools import partial, partialmethod
from types import FunctionType
from typing import Any, NoReturn

from gradwalk.run import report
from gradwalk.run.compare import (
    ARITHMETIC,
    OPERATORS,
    Raised,
    Side,
    Theirs,
    difference,
    explained,
    failing,
    hushed,
    passes,
    quietly,
    unlike,
)
from gradwalk.run.formulas import formula_of
from gradwalk.run.modules import say
from gradwalk.run.shape import Kept, Shape, attributes, shape_of, slots
from gradwalk.run.state import State

# what is not a member that somebody wrote
NOT_MEMBERS = {"backward", "_backward", "__module__", "__qualname__", "__dict__", "__weakref__", "__slots__",
               "__init__", "__annotations__", "__firstlineno__", "__static_attributes__", "__annotate__",
               "__annotate_func__", "__annotations_cache__"}  # fmt: skip
# without one of its own, a class has object's: gradwalk's would be something new
AS_OF_OBJECT = ("__repr__", "__str__", "__float__", "__int__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__",
                "__abs__", "__floor__", "__ceil__", "__round__", "__format__")  # fmt: skip
# what Python asks a class for instead, which the type of a node does not come to: it has something in that place
FOLLOWING = (
    ("__bool__", {"__len__"}, lambda node: len(node) != 0),
    ("__float__", {"__index__"}, lambda node: float(node.__index__())),
    ("__int__", {"__index__"}, lambda node: node.__index__()),
    ("__floor__", {"__float__", "__index__"}, lambda node: math.floor(float(node))),
    ("__ceil__", {"__float__", "__index__"}, lambda node: math.ceil(float(node))),
)
# what Python says of an object whose class has no such method
LACKING = {
    "__float__": "float() argument must be a string or a real number, not {!r}",
    "__int__": "int() argument must be a string, a bytes-like object or a real number, not {!r}",
    "__abs__": "bad operand type for abs(): {!r}",
    "__round__": "type {} doesn't define __round__ method",
    "__floor__": "must be real number, not {}",
    "__ceil__": "must be real number, not {}",
}
# what most classes compose of other operators, as native/value/stand_in.c numbers it; what needs others comes later
COMPOSED = {"__radd__": 512, "__rmul__": 1024, "__neg__": 2048, "__pow__": 0, "__sub__": 4096, "__rsub__": 8192,
            "__truediv__": 16384, "__rtruediv__": 32768}  # fmt: skip
REPLACED: list[Any] = []  # the stand-ins of this process, for the report


def offer(offered: Any, assigned: dict[str, int]) -> Any:
    """A stand-in for a class, or the class itself and, in one line, why; `assigned`: attributes, and on which line."""
    frame = sys._getframe(1)
    if not isinstance(offered, type) or not callable(getattr(offered, "backward", None)):
        return offered
    if not hasattr(offered, "__add__") and not hasattr(offered, "__mul__"):  # nor has a class above it
        return offered
    from gradwalk import engine

    if issubclass(offered, engine.Value):
        return offered
    where = f"{shown(frame.f_code.co_filename)}:{frame.f_lineno}: class {offered.__name__} is"
    if engine.NAME != "native":
        tell(f"{where} kept, not replaced by gradwalk's: the native engine is not there")
        return offered
    from gradwalk import _native

    state, before = State(offered), _native.stand_in_nodes()
    try:
        made = Replacement(offered, frame.f_locals, assigned)
        if state.changed():
            made.bind(offered)
            raise Kept(f"making and using its objects changes {state.changed()}, which gradwalk's would leave alone")
    except Exception as reason:
        if not isinstance(reason, Kept):  # a class that nobody thought of: it works as ever
            reason = Kept(f"it could not be compared: {type(reason).__name__}: {reason}")
        tell(f"{where} kept, not replaced by gradwalk's: {reason}")
        return offered
    finally:
        state.restore()
        report.leave_out(_native.stand_in_nodes() - before)
    tell(f"{where} replaced by gradwalk's{made.members()} (--keep-class leaves it)")
    REPLACED.append(made.cls)
    if report.wanted():
        report.timed(made.cls)
    return made.cls


def tell(line: str) -> None:
    report.note(line) if report.wanted() else say(line)


def replaced(cls: Any, variables: Any) -> Any:
    """The stand-in of a class that has one; without the native engine the class itself, which is as fast."""
    from gradwalk import engine

    return Replacement(cls, variables, {}).cls if engine.NAME == "native" else cls


def shown(path: str) -> str:
    inside = os.path.relpath(path) if os.path.isabs(path) else path
    return path if inside.startswith("..") else inside


class Replacement:
    """A script's class and what takes its place."""

    def __init__(self, offered: Any, variables: Any, assigned: dict[str, int]) -> None:
        self.offered, self.variables = offered, variables
        with hushed():  # a class that prints prints for itself
            self.shape = shape_of(offered)
        for name in (*self.shape.children, self.shape.local_grads):
            if name in assigned:
                raise Kept(f"line {assigned[name]} assigns {name}, which a node of gradwalk's has for good")
        if any(getattr(it, "__module__", getattr(it, "__name__", "")) == "weakref" for it in variables.values()):
            raise Kept("the script uses weakref, and gradwalk's nodes take no weak references")
        self.theirs = Theirs(offered, self.shape)
        self.own: list[str] = []  # members that gradwalk has not
        self.differing: list[str] = []  # members that do something else than gradwalk's
        self.formulas: list[str] = []  # those of both that C computes by the script's own formula
        expected = self.expected_passes()
        self.ways = ways_of(offered, self.shape)
        self.cls = stand_in_type(offered, self.shape, self.ways)
        self.ours = Side(self.cls, self.shape)
        try:
            for name in ("__add__", "__mul__"):
                self.require_native(name)
            operations = self.add_own_members()  # which backward may call
            self.choose_backward(expected)
            self.choose_operations(operations)
            self.check_differing()
            self.bind(self.cls)
        except BaseException:
            self.bind(offered)
            raise

    def members(self) -> str:
        own = [f"the script's own {', '.join(self.own)}"] if self.own else []
        own += [f"its formula for {', '.join(self.formulas)}"] if self.formulas else []
        own += [f"its {', '.join(self.differing)}, different from gradwalk's"] if self.differing else []
        return f", with {' and '.join(own)}" if own else ""

    def bind(self, cls: type) -> None:
        """Have the methods find this class under the name of the script's, wherever they look it up."""
        name = self.offered.__name__
        self.variables[name] = cls
        for method in vars(self.offered).values():  # in a function, and before Python 3.13, those are but a copy
            if isinstance(method, FunctionType):
                for variable, cell in zip(method.__code__.co_freevars, method.__closure__ or (), strict=True):
                    if variable in (name, "__class__"):
                        cell.cell_contents = cls

    def line(self, name: str) -> str:
        code = getattr(vars(self.offered)[name], "__code__", None)
        return f" (line {code.co_firstlineno})" if code else ""

    def expected_passes(self) -> Any:
        expected = passes(self.theirs)
        result, _ = expected[0]
        if isinstance(result, Raised):
            raise Kept(f"its backward{self.line('backward')} {result.words}, in a small graph")
        return expected

    # ---------------------------------------------------------------- members

    def add_own_members(self) -> list[str]:
        """Put what gradwalk has not on the new class, hide what it has not; returns what is left to choose."""
        members = vars(self.offered)
        native = set(dir(self.cls))
        shape = self.shape
        instance = {shape.data, shape.grad, shape.backward, shape.op, shape.label, shape.local_grads,
                    *shape.children, *shape.extra, *shape.given, *slots(self.offered)}  # fmt: skip
        left = []
        for name, member in members.items():
            if name in NOT_MEMBERS or name in instance:  # what the class says of an attribute, every object says anew
                continue
            if name in OPERATORS or (name in native and isinstance(member, FunctionType) and not name.startswith("__")):
                left.append(name)
                continue
            setattr(self.cls, name, member)
            if isinstance(member, FunctionType | property | staticmethod | classmethod) and name != "__hash__":
                self.own.append(name)
        for name in AS_OF_OBJECT:
            if name not in members:
                inherited = getattr(object, name, None)
                setattr(self.cls, name, lacking(name) if inherited is None else inherited)
        for name, asked, follows in FOLLOWING:
            if name not in members and not asked.isdisjoint(members):
                setattr(self.cls, name, follows)
        for name in native - set(members) - instance:
            if not name.startswith("_"):
                setattr(self.cls, name, Lacking(name))
        return left

    def choose_operations(self, names: list[str]) -> None:
        """Leave to the native engine what it does exactly so; all else stays the script's, on the new class."""
        for name in sorted(names, key=lambda name: [*COMPOSED, name].index(name)):
            if not self.is_native(name):
                setattr(self.cls, name, vars(self.offered)[name])
                self.differing.append(name)
        for name in [*self.differing, *self.own]:
            if self.has_formula(name):
                (self.differing if name in self.differing else self.own).remove(name)
                self.formulas.append(name)

    def has_formula(self, name: str) -> bool:
        """Whether what the method computes can be computed in C; if so, it is."""
        from gradwalk import _native

        method = vars(self.offered)[name]
        formula = formula_of(method, self.offered.__name__, self.shape) if isinstance(method, FunctionType) else None
        if formula is None:
            return False
        setattr(self.cls, name, _native.formula_method(formula))
        if difference(self.theirs, self.ours, name, self.bind) is not None:
            setattr(self.cls, name, method)
            return False
        return True

    def is_native(self, name: str) -> bool:
        """Whether the native operator does the same, composed of others or as it is; if so, it is left that way."""
        from gradwalk import _native

        for ways in (self.ways | COMPOSED.get(name, 0), self.ways):
            _native.stand_in_set_ways(self.cls, ways)
            if difference(self.theirs, self.ours, name, self.bind) is None:
                self.ways = ways
                return True
        return False

    def require_native(self, name: str) -> None:
        """Refuse a class whose sums or products are something else: there would be nothing to gain."""
        found = difference(self.theirs, self.ours, name, self.bind, 1) if name in vars(self.offered) else None
        if found is not None:
            self.refuse(name, "does something else", found)

    def refuse(self, name: str, what: str, sample: Any) -> NoReturn:
        words = explained(self.theirs, self.ours, name, self.bind, *sample)
        raise Kept(f"its {name}{self.line(name)} {what}{': ' + words if words else ''}")

    def choose_backward(self, expected: Any) -> None:
        """The native pass where it does the same; else the script's, if that works on the new class."""
        import inspect

        method = vars(self.offered)["backward"]
        self.bind(self.cls)
        natively = passes(self.ours)
        if natively != expected:
            self.cls.backward = method
            found = passes(self.ours)
            if found != expected:
                raise Kept(f"its backward{self.line('backward')} {unlike(expected, natively, found)}")
            self.differing.append("backward")
        elif len(inspect.signature(method).parameters) > 1:
            native = self.cls.backward

            def backward(self: Any, *arguments: Any, **named: Any) -> Any:
                return method(self, *arguments, **named) if arguments or named else native(self)

            self.cls.backward = backward

    def check_differing(self) -> None:
        for name in self.differing:
            found = failing(self.theirs, self.ours, name, self.bind) if name != "backward" else None
            if found is not None:
                self.refuse(name, "does something else on gradwalk's nodes", found)


def lacking(name: str) -> Any:
    """What Python does with an object whose class has no such method."""

    def refuse(self: Any, *arguments: Any) -> Any:
        raise TypeError(LACKING[name].format(type(self).__name__))

    return refuse


class Lacking:
    """An attribute of gradwalk's nodes that the script's have not, unless somebody hangs one of that name on a node."""

    def __init__(self, name: str) -> None:
        self.name, self.hidden = name, hidden_name(name)

    def __get__(self, node: Any, cls: Any = None) -> Any:
        if node is None:
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {self.name!r}")
        found = getattr(node, self.hidden, self)
        if found is self:
            raise self.missing(node)
        return found

    def __set__(self, node: Any, value: Any) -> None:
        setattr(node, self.hidden, value)

    def __delete__(self, node: Any) -> None:
        if not hasattr(node, self.hidden):
            raise self.missing(node)
        delattr(node, self.hidden)

    def missing(self, node: Any) -> AttributeError:
        return AttributeError(f"{type(node).__name__!r} object has no attribute {self.name!r}")


def hidden_name(name: str) -> str:
    """What stands under another name, because the type has something under this one."""
    return f"_{name} of this node"


# ---------------------------------------------------------------- the type


def stand_in_type(offered: Any, shape: Shape, ways: int) -> Any:
    from gradwalk import _native

    cls: Any = _native.stand_in(f"{offered.__module__}.{offered.__name__}", ways)
    cls.__module__, cls.__qualname__, cls.__doc__ = offered.__module__, offered.__qualname__, offered.__doc__
    base: Any = _native.Value
    for name, container in shape.children.items():
        if (name, container) not in (("_prev", set), ("_children", tuple)):
            setattr(cls, name, property(partial(children_as, container)))
    aliases = [("data", shape.data), ("grad", shape.grad), ("_backward", shape.backward), ("label", shape.label),
               ("_local_grads", shape.local_grads)]  # fmt: skip
    for native, name in aliases:
        if name and name != native:
            member = vars(base)[native]
            readonly = native == "_local_grads"
            setattr(cls, name, property(member.__get__, None if readonly else member.__set__))
    if shape.backward and default_of(offered, shape.backward) is None:
        setattr(cls, shape.backward, function_or_none(vars(base)["_backward"]))
    if shape.op:
        setattr(cls, shape.op, property(op_text(offered, shape), cls._set_op))
    for name, value in {**shape.extra, **{name: default_of(offered, name) for name in shape.given}}.items():
        setattr(cls, name, attribute(name, value))
    for name in shape.from_number:
        setattr(cls, name, made_from_number(offered, shape, name))
    cls.__copy__, cls.__deepcopy__, cls.__reduce__ = copied, deepcopied, reduced
    cls._shown_in_vars = partialmethod(shown_in_vars, list(attributes(offered(0.75))), "__slots__" in vars(offered))
    if "_backward" in vars(offered):  # a class that looks at the operation, where others keep a function in each object
        cls._backward = vars(offered)["_backward"]
    if not shape.is_native():
        add_constructor(cls, shape)
    return cls


class Shown(dict[str, Any]):
    """A node's attributes as vars() shows them; what is changed here would be lost."""

    def __setitem__(self, name: str, value: Any) -> None:
        raise TypeError(f"gradwalk's nodes are not changed through __dict__; write node.{name} = {value!r}")

    update = setdefault = pop = popitem = clear = __delitem__ = __setitem__  # type: ignore[assignment]


def shown_in_vars(node: Any, names: list[str], has_slots: bool) -> Shown:
    if has_slots:
        raise AttributeError(f"{type(node).__name__!r} object has no attribute '__dict__'")
    hung = {
        name: value for name, value in getattr(node, "_attributes", {}).items() if not name.endswith(" of this node")
    }
    return Shown({**{name: getattr(node, name) for name in names}, **hung})


def attribute(name: str, default: Any) -> property:
    """An attribute that every object has from the start: one that differs is hung on the node under another name."""
    hidden = hidden_name(name)
    return property(lambda node: getattr(node, hidden, default), lambda node, value: setattr(node, hidden, value))


def made_from_number(offered: Any, shape: Shape, name: str) -> property:
    """An attribute that the script's __init__ makes from the number; of a result it is made when it is read."""
    hidden = hidden_name(name)

    def read(node: Any) -> Any:
        if not hasattr(node, hidden):
            setattr(node, hidden, getattr(offered(getattr(node, shape.data)), name))
        return getattr(node, hidden)

    return property(read, lambda node, value: setattr(node, hidden, value))


def function_or_none(member: Any) -> property:
    """The function that hands gradients on, of a class whose leaves have None there."""
    return property(lambda node: member.__get__(node) if node._children else None, member.__set__)


def default_of(offered: Any, name: str) -> Any:
    return getattr(offered(0.75), name)


def ways_of(offered: Any, shape: Shape) -> int:
    """Where the class has an int and the like, as native/value/stand_in.c numbers these."""

    def is_int(function: Any) -> bool:
        result, _ = quietly(function)
        return type(result) is int

    def grad_after(make: Any) -> Any:
        leaf = offered(1.5)
        make(leaf).backward()
        return getattr(leaf, shape.grad)

    found = [
        is_int(lambda: getattr(offered(1.5), shape.grad)),
        is_int(lambda: grad_after(lambda leaf: leaf)),
        is_int(lambda: grad_after(lambda leaf: leaf + offered(0.5))),
        is_int(lambda: grad_after(lambda leaf: leaf.relu())),
        is_int(lambda: getattr(offered(-1.5).relu(), shape.data)),
        is_int(lambda: getattr(offered(0.0).relu(), shape.data)),
        is_int(lambda: getattr(offered(math.nan).relu(), shape.data)),
        not is_int(lambda: getattr(offered(2), shape.data)),
        "_backward" in vars(offered),
    ]
    late = [(1 << 16, reads_late(offered, shape)), (1 << 17, relu_reads_its_result(offered, shape))]
    return sum(1 << i for i, is_so in enumerate(found) if is_so) + sum(way for way, is_so in late if is_so)


def reads_late(offered: Any, shape: Shape) -> bool:
    """Whether a product hands on gradients by numbers that were changed since it was made."""

    def changed_since() -> Any:
        x, y = offered(1.5), offered(2.0)
        product = x * y
        setattr(x, shape.data, 3.0)
        product.backward()
        return getattr(y, shape.grad)

    return bool(quietly(changed_since)[0] == 3.0)


def relu_reads_its_result(offered: Any, shape: Shape) -> bool:
    def changed_since() -> Any:
        x = offered(1.5)
        out = x.relu()
        setattr(x, shape.data, -1.5)
        out.backward()
        return getattr(x, shape.grad)

    return bool(quietly(changed_since)[0] == 1.0)


def children_as(container: Any, node: Any) -> Any:
    return container(vars(node_base())["_children"].__get__(node))


def node_base() -> Any:
    from gradwalk import _native

    return _native.Value


def power_word(cls: Any, attribute: str, exponent: float) -> Any:
    return getattr(cls(0.5) ** exponent, attribute)


def op_text(offered: Any, shape: Shape) -> Any:
    """How a node shows its operation: in the words of the script's class, where they are others."""
    from gradwalk import _native

    native = vars(_native.Value)["_op"].__get__
    # by the name in the table, which a node made by hand has not, and the sign, which a script may have set
    words: dict[tuple[str, str], Any] = {("", ""): getattr(offered(0.75), shape.op)}

    def made(cls: Any, name: str) -> Any:
        operands = [cls(0.5), cls(0.25)][: 2 if name in ARITHMETIC else 1]
        return getattr(operands[0], name)(*operands[1:])

    for name in ("__add__", "__mul__", "__sub__", "__truediv__", "__neg__", "exp", "log", "tanh", "relu", "sigmoid"):
        if name in vars(offered):
            theirs, _ = quietly(partial(made, offered, name))
            ours, _ = quietly(partial(made, _native.Value, name))
            if not isinstance(theirs, Raised) and not isinstance(ours, Raised):
                words[ours._name, ours._op] = getattr(theirs, shape.op)
    powers = {n: quietly(partial(power_word, offered, shape.op, n))[0] for n in (3, 2.5)}
    spelled = all(text == f"**{n}" for n, text in powers.items())

    def text(node: Any) -> Any:
        if node._name == "pow_number":
            return f"**{node._parameters[0]}" if spelled else powers[3]
        op = native(node)
        return words.get((node._name, op), op)

    return text


def add_constructor(cls: Any, shape: Shape) -> None:
    """A constructor with the script's parameters, for the native one."""
    from gradwalk import _native

    base: Any = _native.Value
    roles = {role: name for name, role in shape.parameters.items() if role != "extra"}
    third = roles.get("local_grads") or roles.get("op")
    parameters = shape.signature.parameters
    defaults = {name: parameter.default for name, parameter in parameters.items()}
    by_place = [name for name, parameter in parameters.items() if parameter.kind is not parameter.KEYWORD_ONLY]
    by_name = [{*parameters} - {*by_place[:count]} for count in range(len(by_place) + 1)]  # of what was given by place
    set_after = {attribute: roles[role] for role, attribute in (("grad", shape.grad), ("backward", shape.backward))
                 if role in roles}  # fmt: skip
    default = {name: defaults[parameter] for name, parameter in shape.given.items()}

    def arguments(given: tuple[Any, ...], named: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        if not given or len(given) > len(by_place) or not named.keys() <= by_name[len(given)]:
            given, named = (), shape.signature.bind(*given, **named).arguments  # or it says what is wrong with them
        taken = {**defaults, **dict(zip(by_place, given, strict=False)), **named}
        native = [taken[roles["data"]], taken[roles["children"]] if "children" in roles else ()]
        native.append(taken[third] if third else "")
        native.append(taken[roles["label"]] if "label" in roles else "")
        native = [native[0], native[1] or (), native[2] or "", native[3] or ""]
        extra = {name: taken[parameter] for name, parameter in shape.given.items()}
        for name, parameter in set_after.items():
            if taken[parameter] is not defaults[parameter]:
                extra[name] = taken[parameter]
        return native, extra

    def fill(node: Any, extra: dict[str, Any]) -> None:
        for name, value in extra.items():
            there = getattr(node, name)  # which makes it from the number, where that is so
            if value is not there and not (name in shape.from_number and value is default[name]):
                setattr(node, name, value)

    def __new__(kind: Any, *given: Any, **named: Any) -> Any:  # noqa: N807
        if kind is not cls:  # a subclass, whose __init__ decides
            return base.__new__(kind)
        native, extra = arguments(given, named)
        node = base.__new__(kind, *native)
        fill(node, extra)
        return node

    def __init__(self: Any, *given: Any, **named: Any) -> None:  # noqa: N807
        if type(self) is not cls:
            native, extra = arguments(given, named)
            base.__init__(self, *native)
            fill(self, extra)

    cls.__new__, cls.__init__ = __new__, __init__


# ---------------------------------------------------------------- copies: what copy and pickle do with any object


def made_again(
    cls: Any, data: Any, children: Any, local_grads: Any, op: str, label: str, grad: Any, attributes: Any
) -> Any:
    node = node_base().__new__(cls, data, children, op, label, local_grads=local_grads)
    node_base().__init__(node, data, children, op, label, local_grads=local_grads)  # of a subclass, whose is not called
    vars(node_base())["grad"].__set__(node, grad)
    for name, value in attributes.items():
        setattr(node, name, value)
    return node


def reduced(node: Any) -> Any:
    base = vars(node_base())
    shown = [base[name].__get__(node) for name in ("data", "_children", "_local_grads", "_op", "label", "grad")]
    return made_again, (type(node), *shown, getattr(node, "_attributes", {}))


def copied(node: Any) -> Any:
    make, arguments = reduced(node)
    return make(*arguments)


def deepcopied(node: Any, memo: dict[int, Any]) -> Any:
    import copy

    for below in node._topological_order():  # no recursion: a graph may be deep
        if id(below) not in memo:
            make, (cls, data, children, *rest, attributes) = reduced(below)
            memo[id(below)] = make(cls, data, tuple(memo[id(child)] for child in children), *rest, {})
            for name, value in attributes.items():
                setattr(memo[id(below)], name, copy.deepcopy(value, memo))
    return memo[id(node)]
