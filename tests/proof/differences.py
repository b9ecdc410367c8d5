"""What one way of running a program says otherwise than another, and the smallest program that still shows it."""

from __future__ import annotations

import ast
import math
import re
import struct
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count

from calls import Call
from outcomes import TWICE, Outcome, Ready, arguments_of, leaves, objects, weighted
from programs import Program

from gradwalk import control, engine, higher_order
from gradwalk.operation import never
from gradwalk.ops import OPS

ROUNDING = 1e-12  # what a rolled-up sum may differ by, of its terms
_STEEP = "|".join([r"/", r"\*\*", *(rf"\b{op.name}\b" for op in OPS.values() if op.steep is not never)])
Outcomes = dict[str, dict[str, list[Outcome]]]


@dataclass(frozen=True)
class Difference:
    """Two ways of running one call that disagree."""

    call: int
    way: str
    expected: Outcome
    found: Outcome

    @property
    def kind(self) -> tuple[str, ...]:
        """What has to stay the same while a program is made smaller."""
        said = re.sub(r"[-\d.]+", "#", self.found.message)[:80]
        return self.way, *self.expected.raised[:1], "but", *self.found.raised[:1], said


# ---------------------------------------------------------------- finding


def differences(program: Program, of: Outcomes) -> Iterator[Difference]:
    """Plain and eager to the bit, both engines to the bit, exact to the bit, the rest up to rounding."""
    native, reference = of["native"], of["reference"]
    for call in range(len(program.calls)):
        eager = native["eager"][call]
        if "NoGraphError" in eager.raised:
            continue  # a derivative of a custom operation's derivative: floats need none
        plain = native["plain"][call]
        alike = same(plain.numbers, eager.numbers) or (  # a square is a product here, and what pow() makes of it there
            "** 2" in program.source and _close(plain.numbers, eager.numbers, [0.0] * len(plain.numbers))
        )
        if not _same_raise(plain, eager) or not alike:
            yield Difference(call, "plain against eager", plain, eager)
        if not _same_raise(reference["eager"][call], eager, exactly=True) or not _equal(
            reference["eager"][call], eager
        ):
            yield Difference(call, "reference against native", reference["eager"][call], eager)
    for name, ways in of.items():
        for way, found in ways.items():
            if way in ("plain", "eager", "eager twice"):
                continue
            expected = ways["eager twice" if way.endswith("twice") else "eager"]
            for place, (one, other) in enumerate(zip(expected, found, strict=True)):
                call = place * TWICE if way.endswith("twice") else place
                if not _agrees(program, call, way, one, other):
                    yield Difference(call, f"{way} ({name})", one, other)
    yield from _wrong_derivatives(program, native)


def _agrees(program: Program, call: int, way: str, expected: Outcome, found: Outcome) -> bool:
    if found == Outcome() or found.message.startswith("compile: value_and_grad expected"):
        return True  # left out of the batch; several numbers
    if "numbers" in way and program.calls[call].arguments["ys"] == "xs" and "in several places" in found.message:
        return True  # refused: a derivative by each argument takes them as two lists, and the program changes one
    if "NoGraphError" in found.raised and "twice" in way:
        return True  # a custom operation: the plain function may come by without it, a program for all points may not
    if ".index(" in program.source and "makes a text of a number" in found.message:
        return True  # refused: before Python 3.14 an empty list's error shows the number that was looked for
    if not _same_raise(expected, found):
        return False
    if expected.raised:
        return True
    gradients, own = expected.gradients or (), found.gradients or ()
    if len(own) != len(gradients) and "twice" not in way:  # only the weights', or one list passed twice
        gradients, own = gradients[-2:], own[-2:]
    wanted, got = (*expected.numbers, *gradients), (*found.numbers, *own)
    # NumPy's maximum, clip, product or sum over objects is another graph than that of the array a trace hands out
    if "exact" in way and "twice" not in way and not re.search(r"np\.(maximum|clip|dot)|\.sum\(| @ ", program.source):
        # but for what adds up otherwise: w[0], as h is one node more on the way to it; and all gradients of several
        # results, whose parts come in an order that depends on what is made of them
        bits, own_bits = (*wanted[:-2], wanted[-1]), (*got[:-2], got[-1])
        if len(expected.numbers) > 1:
            bits, own_bits = expected.numbers, found.numbers
        if not same(bits, own_bits):
            return False
    elif re.search(_STEEP, program.source) and len(own) == len(gradients):
        # infinite slopes meet in what is computed once, and cancel there, or make a nan
        got = (*found.numbers, *(x if x != x or y != y else y for x, y in zip(gradients, own, strict=True)))
    if "twice" in way:
        if not all(abs(x) < 1e150 for x in wanted[: len(expected.numbers)]):  # or where a product may overflow
            got = [x if x != x else y for x, y in zip(wanted, got, strict=False)]  # type: ignore[assignment]
        if _close(wanted, got, [0.0] * len(wanted)):
            return True
        scale = max(abs(number) for number in (*wanted, *_sizes(program, call)) if math.isfinite(number))
        return _close(wanted, got, [1e3 * scale] * len(wanted))
    if _close(wanted, got, [0.0] * len(wanted)):
        return True
    sizes = _sizes(program, call)
    return _close(wanted, got, sizes[: len(expected.numbers)] + sizes[len(sizes) - len(gradients) :])


def _same_raise(one: Outcome, other: Outcome, exactly: bool = False) -> bool:
    """Python's own error may be one of ours that is a subclass of it."""
    if not one.raised or not other.raised:
        return not one.raised and not other.raised
    return one.raised[0] == other.raised[0] if exactly else one.raised[0] in other.raised


def same(one: Sequence[float], other: Sequence[float]) -> bool:
    """To the bit, whatever a nan's bits are."""
    return len(one) == len(other) and all(
        struct.pack("d", x) == struct.pack("d", y) or (x != x and y != y) for x, y in zip(one, other, strict=True)
    )


def _equal(one: Outcome, other: Outcome) -> bool:
    return same(one.numbers, other.numbers) and same(one.gradients or (), other.gradients or ())


def _close(one: Sequence[float], other: Sequence[float], sizes: Sequence[float]) -> bool:
    """Up to rounding; an infinite slope counts as nan, for what was computed twice is computed once, and had two."""
    return len(one) == len(other) and all(
        x == y or (x != x and (y != y or math.isinf(y))) or abs(x - y) <= ROUNDING * max(abs(x), abs(y), size)
        for x, y, size in zip(one, other, sizes, strict=True)
    )


def _sizes(program: Program, call: int) -> list[float]:
    """For each number and gradient: all that has a part in it, added up without the signs, as its rounding does."""
    ready = Ready(program.source)
    for earlier in program.calls[: call + 1]:
        ready.before(earlier)
    given = arguments_of(program.calls[call], engine.Value, objects)
    inputs = [*dict.fromkeys(leaves(given)), *ready.weights]
    with control.inside(inputs):
        result = ready.function(*given)
    values = list(leaves(result)) if not isinstance(result, engine.Value) else [result]
    root = weighted(result)
    if root is None:  # nothing but plain numbers
        return [0.0] * (len(values) + len(inputs))
    try:
        gradients = higher_order.gradient_values(root)
    except TypeError:  # a custom operation's have no graph
        gradients = {}
    parts = _parts(root)  # what a leaf has here is made of products that may cancel out, as 13 thirteenths and -1 do
    whole = _size(parts)
    of_gradients = {leaf: _size(_parts(gradient)) + parts.get(leaf, 0.0) for leaf, gradient in gradients.items()}
    return [*(whole for _ in values), *(of_gradients.get(leaf, whole) for leaf in inputs)]


def _parts(root: engine.Value) -> dict[engine.Value, float]:
    """The gradient of each node, added up without the signs."""
    parts = dict.fromkeys(engine.topological_order(root), 0.0) | {root: 1.0}
    for node in reversed(list(parts)):
        for child, local_grad in zip(node._children, node._local_grads, strict=True):
            part = abs(local_grad) * parts[node]
            parts[child] += part if part == part else 0.0  # 0 · inf is nothing
    return parts


def _size(parts: dict[engine.Value, float]) -> float:
    sizes = (abs(node.data) * part for node, part in parts.items())
    return sum(size for size in sizes if size < math.inf)  # where it is infinite or nan, so is what is compared


# ---------------------------------------------------------------- another opinion on derivatives


def _wrong_derivatives(program: Program, native: dict[str, list[Outcome]]) -> Iterator[Difference]:
    """The eager gradient against central differences of the float code, where it is smooth."""
    for place in (0, len(program.calls) - 1):
        eager, call = native["eager"][place], program.calls[place]
        if eager.raised or len(eager.numbers) != 1 or re.search("stop_gradient|fmod", program.source):
            continue  # fmod: a saw's teeth may be finer than any difference
        point = list(leaves(arguments_of(call, float, objects)))
        if len(point) + 2 != len(eager.gradients or ()):
            continue  # one list was passed twice
        for entry, x in enumerate(point):
            measured = _measured(_moved(program, call, entry), x)
            gradient = (eager.gradients or ())[entry]
            if measured is None or abs(gradient - measured) <= 1e-3 * max(1.0, abs(measured)):
                continue
            lost = _sizes(program, place)[0] > 1e6  # numbers so large on the way that a difference is lost in them
            if not math.isnan(gradient) and not lost and not _at_a_tie(program, call):  # nan says it is none
                found = Outcome((x, measured), (gradient,), message=f"by number {entry} of the arguments")
                yield Difference(place, "eager against central differences", eager, found)


def _at_a_tie(program: Program, call: Call) -> bool:
    """Whether it compares two equal numbers, asks a zero, or is at an edge: a step to either side goes another way.

    Two edges may make something smooth together, as in min(|x|, x) at 0; a derivative is made of each one's own.
    """
    ready, ties = Ready(program.source), list[bool]()
    ready.before(call)

    def told(left: object, right: object, sign: str, outcome: bool) -> None:
        ties.append(float(getattr(left, "data", left)) == float(getattr(right, "data", right)))

    def recorded(node: engine.Value) -> None:
        inputs = [child.data for child in node._children]
        if node._name in OPS:
            ties.append(OPS[node._name].edge(*inputs, *node._parameters) == 0.0)
        elif node._name in ("largest", "smallest"):
            ties.append(inputs.count(node.data) > 1)

    given = arguments_of(call, engine.Value, objects)
    with control.inside([*leaves(given), *ready.weights]), control.changed(on_compare=told, on_record=recorded):
        ready.function(*given)
    return any(ties)


def _moved(program: Program, call: Call, entry: int) -> Callable[[float], float]:
    """The float code, as a function of a step in one of its numbers."""
    ready = Ready(program.source, is_plain=True)
    ready.before(call)

    def value(step: float) -> float:
        places = count()
        given = arguments_of(call, lambda x: x + step if next(places) == entry else x, objects)
        return float(ready.function(*given))

    return value


def _measured(function: Callable[[float], float], x: float) -> float | None:
    """The slope, where it is the same on both sides and in two distances."""
    step = 1e-4 * max(1.0, abs(x))
    try:
        far = (function(step) - function(-step)) / (2.0 * step)
        here, right, left = function(0.0), function(step / 2.0), function(-step / 2.0)
    except Exception:
        return None
    near = (right - left) / step
    bend = abs((right - here) - (here - left)) / (step / 2.0)
    scale = max(1.0, abs(near))
    smooth = abs(far - near) <= 1e-5 * scale and bend <= 3e-4 * scale and abs(here) * 1e-16 / step <= 1e-6 * scale
    return near if smooth else None


# ---------------------------------------------------------------- making it smaller


def smallest(program: Program, fails: Callable[[Program], bool], tries: int = 400) -> Program:
    """The program without the calls, statements and parts of expressions that it fails without, too."""
    left = tries
    changed = True
    while changed:
        changed = False
        for candidate in _smaller(program):
            left -= 1
            if left < 0:
                return program
            if fails(candidate):
                program, changed = candidate, True
                break
    return program


def _smaller(program: Program) -> Iterator[Program]:
    calls = program.calls
    if len(calls) > 2:
        yield replace(program, calls=calls[: len(calls) // 2])
        yield replace(program, calls=calls[len(calls) // 2 :])
    for i in range(len(calls)):
        if len(calls) > 1:
            yield replace(program, calls=calls[:i] + calls[i + 1 :])
    tree = ast.parse(program.source)
    size = sum(1 for _ in ast.walk(tree))
    seen = {program.source}
    for place in range(1, size):
        for variant in range(4):
            source = _without(ast.parse(program.source), place, variant)
            if source is not None and source not in seen and len(source) < len(program.source):
                seen.add(source)
                yield replace(program, source=source)


def _without(tree: ast.Module, place: int, variant: int) -> str | None:
    """The text without one node: gone, or something simple or a part of it in its place."""
    target = list(ast.walk(tree))[place]
    if isinstance(target, ast.stmt):
        return _without_statement(tree, target, variant)
    if not isinstance(target, ast.expr):
        return None
    parts = [part for part in ast.iter_child_nodes(target) if isinstance(part, ast.expr)]
    if variant >= 2:
        if variant - 2 >= len(parts):
            return None
        new: ast.expr = parts[-1 - (variant - 2)]
    elif isinstance(target, ast.Name | ast.Constant):
        return None
    else:
        new = ast.Name("a", ast.Load()) if variant else ast.Constant(1.0)

    class Swapped(ast.NodeTransformer):
        def generic_visit(self, node: ast.AST) -> ast.AST:
            return new if node is target else super().generic_visit(node)

    return _text(Swapped().visit(tree))


def _without_statement(tree: ast.Module, target: ast.stmt, variant: int) -> str | None:
    if variant > 1 or target in tree.body:
        return None
    inside = [*getattr(target, "body", []), *getattr(target, "orelse", [])] if variant else []
    if variant and not inside:
        return None
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            listed = getattr(node, name, None)
            if isinstance(listed, list) and target in listed:
                at = listed.index(target)
                listed[at : at + 1] = inside or ([ast.Pass()] if len(listed) == 1 and name == "body" else [])
    return _text(tree)


def _text(tree: ast.Module) -> str | None:
    try:
        source = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source, "<smaller>", "exec")
    except (SyntaxError, ValueError, TypeError):
        return None
    return source


def shown(program: Program, difference: Difference) -> str:
    """All that is needed to see it again."""
    lines = [f"# seed {program.seed}: {difference.way}, call {difference.call}", program.source]
    lines += [f"# call {i}: {call.arguments} with w[1] = {call.weight!r}" for i, call in enumerate(program.calls)]
    for name, outcome in (("expected", difference.expected), ("found", difference.found)):
        said = (
            f"{outcome.raised[0]}: {outcome.message}"
            if outcome.raised
            else f"{outcome.numbers} {outcome.gradients} {outcome.message}"
        )
        lines.append(f"# {name}: {said}")
    return "\n".join(lines)
