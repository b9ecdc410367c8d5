"""`rows[i]` with an integer that is left open, in a function as it stands.

Python gives a list the integer itself, which fixes it. Where it keeps changing from call to call, the function is
traced with the code of its own functions compiled anew from their source, `rows[i]` as `item(rows, i)`: for everybody
else, in whichever thread, that is the same, and afterwards they have their old code again.
"""

from __future__ import annotations

import ast
import builtins
import functools
import linecache
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from gradwalk import engine
from gradwalk.compiler.index import is_index
from gradwalk.modes import current
from gradwalk.own_files import is_own
from gradwalk.passes import Shared
from gradwalk.structure import is_value

ITEM = "__gradwalk_item__"  # a builtin, as it is looked up from every module
MOST = 100_000  # entries that subscripts left open may choose from in one trace: each of them is a child


class ClosedError(Exception):
    """The function does something that only the integer itself can answer."""

    def __init__(self) -> None:
        super().__init__("compile: rows[i] of an open i is kept after the trace; inside, keep rows[int(i)]")
        trace = current().trace
        if trace is not None:
            trace.closed = True  # also for a function that catches whatever comes


def item(rows: Any, i: Any) -> Any:
    """`rows[i]`."""
    if is_index(i) and type(rows) in (list, tuple) and i.opens():
        width = _width(rows)
        taken = i.taken_from(rows, len(rows) * width) if width else None
        if taken is not None:
            return taken
    return rows[i]


setattr(builtins, ITEM, item)


def _width(rows: Any) -> int:
    """How many Values each entry is: 1, or the length of each row; 0 where there is something else."""
    if not rows:
        return 0
    if is_value(rows[0]):
        return 1 if all(map(is_value, rows)) else 0
    kind = type(rows[0])
    if kind not in (list, tuple) or any(type(row) is not kind or len(row) != len(rows[0]) for row in rows):
        return 0
    return len(rows[0]) if all(is_value(x) for row in rows for x in row) else 0


def _refuse(*_: Any, **__: Any) -> Any:
    raise ClosedError


class Row(list[Any]):
    """A row of which it is open which one it is: a copy, which is right while nobody changes it or one of the table.

    Whoever changes one of the table does not ask here, and C code changes this one without asking: so whoever reads it
    looks for that, and the trace does at its end.
    """

    def __init__(self, taken: list[Any], rows: Any) -> None:
        super().__init__(taken)
        self._before = [(row, tuple(row)) for row in rows]
        self._taken = tuple(taken)

    def check(self, places: slice = slice(None)) -> None:
        for row, before in ((self, self._taken), *self._before):
            now, then = list.__getitem__(row, places), before[places]
            if len(now) != len(then) or not all(map(operator.is_, now, then)):
                raise ClosedError

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            self.check(place)
        else:
            place = operator.index(place)
            self.check(slice(place, place + 1 or None))  # of a long row read one by one, not all of them every time
        return super().__getitem__(place)

    append = extend = insert = remove = pop = clear = sort = reverse = _refuse
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse


def _read(plain: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(plain)
    def read(row: Row, *args: Any) -> Any:
        row.check()
        return plain(row, *args)

    return read


for _name in ("len", "iter", "reversed", "contains", "add", "mul", "rmul", "eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Row, f"__{_name}__", _read(getattr(list, f"__{_name}__")))
for _name in ("copy", "count", "index"):
    setattr(Row, _name, _read(getattr(list, _name)))


class Taken(engine.Value):
    """A Value of which it is open which one it is: in a set or a dict it would be somebody."""

    __hash__ = _refuse


# ---------------------------------------------------------------- the code


@contextmanager
def opened(function: Callable[..., Any]) -> Iterator[bool]:
    """Inside, the functions that this one consists of leave their subscripts open; False if there are none."""
    functions = _reachable(function)
    with _open(functions):
        yield any(each in _code_before for each in functions)


_code_before: dict[FunctionType, CodeType] = {}  # of those that are open


def _open_all(functions: list[FunctionType]) -> None:
    for function in functions:
        code = _code_before.get(function, function.__code__)
        anew = _compiled_anew(code.co_filename, "".join(linecache.getlines(code.co_filename))).get(code)
        if anew is not None and anew.co_freevars == code.co_freevars:
            _code_before[function] = code
            function.__code__ = anew


def _close_all() -> None:
    for function, code in list(_code_before.items()):
        function.__code__ = code
        del _code_before[function]


_open = Shared(_open_all, _close_all)


@functools.lru_cache(maxsize=256)
def _compiled_anew(path: str, source: str) -> dict[CodeType, CodeType]:
    """The code of each function in a file that has such a subscript, and with what `item` gives."""
    if "[" not in source:
        return {}
    try:
        as_it_is = compile(source, path, "exec", dont_inherit=True)
        anew = compile(ast.fix_missing_locations(_Open().visit(ast.parse(source))), path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):  # no Python, or cells of a notebook with more than that
        return {}
    return {old: new for old, new in _pairs(as_it_is, anew) if old != new}


def _pairs(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    yield old, new
    inside = ([each for each in code.co_consts if isinstance(each, CodeType)] for code in (old, new))
    for pair in zip(*inside, strict=True):
        yield from _pairs(*pair)


class _Open(ast.NodeTransformer):
    """`rows[i]` as `item(rows, i)`; a function that asks which object it has is left as it is."""

    def visit_function(self, node: ast.AST) -> Any:
        return node if any(map(_asks_for_identity, ast.walk(node))) else self.generic_visit(node)

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = visit_function  # noqa: N815

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load) or isinstance(node.slice, ast.Constant | ast.Slice | ast.Tuple):
            return node
        return ast.copy_location(ast.Call(ast.Name(ITEM, ast.Load()), [node.value, node.slice], []), node)


def _asks_for_identity(node: ast.AST) -> bool:
    if isinstance(node, ast.Compare) and any(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
        return not any(isinstance(side, ast.Constant) for side in (node.left, *node.comparators))
    return isinstance(node, ast.Name) and node.id in ("id", "hash")


# ---------------------------------------------------------------- the functions


def _reachable(function: Callable[..., Any]) -> list[FunctionType]:
    """The user's own functions that this one may call, as far as names lead to them."""
    found: list[FunctionType] = []
    waiting: list[Any] = [function]
    seen: set[int] = set()
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, FunctionType):
            waiting.append(getattr(thing, "__wrapped__", None))
            if is_own(thing.__code__.co_filename):
                found.append(thing)
                waiting += _named_in(thing)
        elif isinstance(thing, functools.partial):
            waiting.append(thing.func)
        elif isinstance(thing, MethodType):
            waiting += [thing.__func__, thing.__self__]
        elif isinstance(thing, staticmethod | classmethod):
            waiting.append(thing.__func__)
        elif isinstance(thing, property):
            waiting.append(thing.fget)
        elif isinstance(thing, type):
            if "__dict__" in vars(thing) or "__slots__" in vars(thing):  # written in Python
                waiting += vars(thing).values()
        elif thing is not None:
            waiting.append(type(thing))
    return found


def _named_in(function: FunctionType) -> list[Any]:
    names = {name for code, _ in _pairs(function.__code__, function.__code__) for name in code.co_names}
    things = [function.__globals__[name] for name in names if name in function.__globals__]
    for cell in function.__closure__ or ():
        try:
            things.append(cell.cell_contents)
        except ValueError:  # not yet filled
            continue
    modules = [thing for thing in things if isinstance(thing, ModuleType) and is_own(getattr(thing, "__file__", None))]
    things += [vars(module)[name] for module in modules for name in names if name in vars(module)]
    return [thing for thing in things if not isinstance(thing, ModuleType)]
