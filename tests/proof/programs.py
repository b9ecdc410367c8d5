"""Random Python programs, as people write them: what gradwalk makes of one has to be what Python makes of it.

`Writer` writes one statement after another and knows what is in scope; calls.py has the arguments it is called with.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from calls import Call, calls_of

from gradwalk.ops import OPS

SIGNS = ("<", "<=", ">", ">=", "==", "!=")
_SKIPPED = ("stop_gradient", "pow", "pow_number", "neg", "add", "sub", "mul", "div")  # written as Python writes them
UNARY = [name for name, op in OPS.items() if op.names == ("x",) and name not in _SKIPPED]
HARMLESS = [name for name in UNARY if not OPS[name].checked]
PARAMETRISED = [name for name, op in OPS.items() if op.parameters and name not in _SKIPPED]
BINARY = [name for name, op in OPS.items() if len(op.inputs) == 2 and not op.parameters and name not in _SKIPPED]
REDUCING = ("m.sum", "m.mean", "m.norm", "m.logsumexp", "m.maximum", "m.minimum", "sum", "max", "min")
NORMALISING = ("m.softmax", "m.log_softmax", "m.rmsnorm", "m.layernorm", "sorted")
CONSTANTS = ("0.0", "1.0", "-1.0", "0.5", "2.0", "-0.0", "3", "1", "0", "0.1", "-2.5")


@dataclass
class Scope:
    """The names of each kind that a statement may use."""

    numbers: list[str] = field(default_factory=list)
    integers: list[str] = field(default_factory=list)
    lists: list[str] = field(default_factory=list)
    dicts: list[str] = field(default_factory=list)
    points: list[str] = field(default_factory=list)
    arrays: list[str] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)

    def copy(self) -> Scope:
        return Scope(**{name: list(names) for name, names in vars(self).items()})


class Writer:
    """Writes one program."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.lines: list[str] = []
        self.indent = 1
        self.made = 0
        self.scope = Scope(["a", "b", "w[0]", "w[1]", "h"], ["n", "k"], ["xs", "ys", "w"], ["d"], ["p"], ["arr"])
        self.in_function = False

    def program(self) -> str:
        for _ in range(self.rng.randint(2, 9)):
            self.statement(depth=0)
        used = [name for name in self.scope.numbers if name[0] == "v"]
        used += [f"sum({name})" for name in self.scope.lists if name != "w"] + [
            f"{name}.u" for name in self.scope.points
        ]
        used = self.rng.sample(used, min(len(used), 4))
        returned = " + ".join([self.number(2), *used, "w[1]"])  # a Value in any case
        if self.rng.random() < 0.15:
            returned = self.rng.choice([
                f"[{returned}, {self.number(1)}]",
                f"({returned}, {self.integer()}, {self.number(1)})",
                f"{{'first': {returned}, 'second': {self.pick(self.scope.lists)}}}",
                f"P({returned}, {self.number(1)}, {self.integer()})",
            ])  # fmt: skip
        self.write(f"return {returned}")
        return "def program(a, b, n, k, xs, ys, d, p, arr):\n" + "\n".join(self.lines) + "\n"

    # ---------------------------------------------------------------- writing

    def write(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    def pick(self, names: list[str]) -> str:
        """Rather one that was made late."""
        return names[max(self.rng.randrange(len(names)), self.rng.randrange(len(names)))]

    def new(self, kind: str) -> str:
        self.made += 1
        return f"{kind}{self.made}"

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """Statements below a header; what they make is unknown after it."""
        self.write(header)
        outside, self.scope = self.scope, self.scope.copy()
        self.indent += 1
        try:
            yield
        finally:
            self.indent -= 1
            self.scope = outside

    def body(self, depth: int, count: int = 2) -> None:
        for _ in range(self.rng.randint(1, count)):
            self.statement(depth)

    # ---------------------------------------------------------------- expressions

    def constant(self) -> str:
        return self.rng.choice(CONSTANTS)

    def integer(self) -> str:
        rng, scope = self.rng, self.scope
        one = self.pick(scope.integers)
        return rng.choice([
            one, one, one, str(rng.randint(0, 3)), f"({one} + 1)", f"({one} % 2)", f"({one} // 2)", f"-{one}",
            f"abs({one})", f"len({self.pick(scope.lists)})", f"{self.pick(scope.points)}.k",
            f"({one} * {self.pick(scope.integers)})",
            f"max({one}, {self.pick(scope.integers)})", f"int({one})", f"round({one})", f"divmod({one}, 2)[0]",
            f"(1 if isinstance({one}, int) else 7)", f"(3 & {one})", f"(1 << (3 & {one}))", f"~{one}",
        ])  # fmt: skip

    def number(self, depth: int) -> str:
        """An expression of a number: a Value where there are Values."""
        rng = self.rng
        if depth <= 0:
            return self.simple()
        kinds: list[tuple[float, Callable[[int], str]]] = [
            (3, lambda _: self.simple()),
            (9, lambda depth: f"({self.number(depth - 1)} {rng.choice('+-*')} {self.number(depth - 1)})"),
            (2, lambda depth: f"({self.number(depth - 1)} / (1.5 + abs({self.number(depth - 1)})))"),
            (0.3, lambda depth: f"({self.number(depth - 1)} / {self.simple()})"),
            (2, lambda depth: f"m.{rng.choice(('tanh', 'sin', 'cos', 'sigmoid', 'atan'))}({self.number(depth - 1)})"),
            (3, lambda depth: f"m.{rng.choice(HARMLESS)}({self.number(depth - 1)})"),
            (0.4, lambda depth: f"m.{rng.choice(UNARY)}({self.number(depth - 1)})"),
            (1, lambda depth: f"m.{rng.choice(BINARY)}({self.number(depth - 1)}, {self.number(depth - 1)})"),
            (1, self.parametrised),
            (1, lambda depth: f"{rng.choice(('-', 'abs', '+'))}({self.number(depth - 1)})"),
            (1, lambda depth: f"m.stop_gradient({self.number(depth - 1)})"),
            (1, lambda depth: f"({self.number(depth - 1)}) ** {rng.choice(('2', '3', '2.0', '-1', '0', 'abs(n)'))}"),
            (1, lambda depth: f"abs({self.number(depth - 1)}) ** {rng.choice(('0.5', '1.5', 'm.sin(a)'))}"),
            (1, lambda depth: f"{rng.choice(('max', 'min'))}({self.number(depth - 1)}, {self.number(depth - 1)})"),
            (2, self.conditional),
            (1, lambda depth: f"({self.number(depth - 1)} {rng.choice(('and', 'or'))} {self.number(depth - 1)})"),
            (3, lambda depth: f"{rng.choice(REDUCING)}({self.sequence(depth - 1)})"),
            (1, lambda depth: f"{rng.choice(NORMALISING)}({self.sequence(depth - 1)})[0]"),
            (1, lambda depth: f"m.dot({self.pick(self.scope.lists)}, {self.pick(self.scope.lists)})"),
            (1, self.indexed),
            (1, lambda depth: f"{rng.choice(('cube', 'step', 'cube', 'step', 'strict'))}({self.number(depth - 1)})"),
            (1, lambda depth: f"blend({self.number(depth - 1)}, {self.number(depth - 1)})"),
            (1, lambda depth: f"m.where({self.simple()}, {self.number(depth - 1)}, {self.number(depth - 1)})"),
            (1, self.derivative),
            (1, self.copied),
            (1, self.of_array),
            (1, self.reduced),
            (2, self.call),
            (1, lambda depth: f"({self.integer()} * {self.number(depth - 1)})"),
            (1, lambda depth: f"({self.number(depth - 1)} {rng.choice('+-*')} {self.integer()})"),
        ]  # fmt: skip
        (chosen,) = rng.choices([kind for _, kind in kinds], [weight for weight, _ in kinds])
        return chosen(depth)

    def simple(self) -> str:
        rng, scope = self.rng, self.scope
        kind = rng.random()
        if kind < 0.55:
            return self.pick(scope.numbers)
        if kind < 0.7:
            return self.constant()
        if kind < 0.78:
            return f"{self.pick(scope.lists)}[{rng.choice(('0', '-1'))}]"
        if kind < 0.85:
            return f"{self.pick(scope.dicts)}[{rng.choice('uv')!r}]"
        if kind < 0.92:
            return f"{self.pick(scope.points)}.{rng.choice('uv')}"
        if kind < 0.96:
            return f"{self.pick(scope.arrays)}[{rng.choice(('0', '-1', 'n % 3'))}]"
        return f"float({self.pick(scope.integers)})"

    def conditional(self, depth: int) -> str:
        return f"({self.number(depth - 1)} if {self.condition(depth - 1)} else {self.number(depth - 1)})"

    def parametrised(self, depth: int) -> str:
        name = self.rng.choice(PARAMETRISED)
        op = OPS[name]
        sample: Any = self.rng.choice(op.samples)
        inputs = [self.number(depth - 1) for _ in op.inputs]
        return f"m.{name}({', '.join([*inputs, *map(repr, sample[len(op.inputs) :])])})"

    def sequence(self, depth: int) -> str:
        rng, scope = self.rng, self.scope
        xs = self.pick(scope.lists)
        element = self.new("e")
        kind = rng.random()
        if kind < 0.35:
            return xs
        if kind < 0.5:
            return f"[{', '.join(self.number(depth - 1) for _ in range(rng.randint(1, 3)))}]"
        if kind < 0.6:  # long enough to be summed in another order
            return f"[{xs}[i % len({xs})] * {self.constant()} + {self.simple()} for i in range({rng.randint(9, 24)})]"
        if kind < 0.65:
            return f"list({self.pick(scope.dicts)}.values())"
        if kind < 0.7:
            return f"sorted({xs}, reverse=True)"
        if kind < 0.75:
            return f"{xs}[::-1]"
        inner = self.with_numbers([element], lambda: self.number(max(depth, 1)))
        if kind < 0.8:
            other = self.new("e")
            inner = self.with_numbers([element, other], lambda: self.number(max(depth, 1)))
            return f"[{inner} for {element}, {other} in zip(list({xs}), {self.pick(scope.lists)})]"
        if kind < 0.85:
            return f"list(map(lambda {element}: {inner}, list({xs})))"
        where = f" if {self.with_numbers([element], lambda: self.condition(0))}" if rng.random() < 0.3 else ""
        return f"[{inner} for {element} in list({xs}){where}]"

    def with_numbers(self, names: list[str], make: Callable[[], str]) -> str:
        outside, self.scope = self.scope, self.scope.copy()
        self.scope.numbers += names
        try:
            return make()
        finally:
            self.scope = outside

    def indexed(self, depth: int) -> str:
        rng, xs, integer = self.rng, self.pick(self.scope.lists), self.integer()
        if rng.random() < 0.2:  # a table of plain numbers
            xs = f"[{self.constant()}, {self.constant()}, {self.constant()}]"
        safe = f"{integer} % len({xs})"
        return rng.choice([
            f"{xs}[{safe}]", f"{xs}[{safe}]", f"{xs}[{integer}]", f"m.take({xs}, {safe})",
            f"m.take({xs}, {safe})", f"m.take({xs}, {self.pick(self.scope.integers)})",
            f"m.cross_entropy({xs}, {safe})", f"m.cross_entropy({xs}, {self.pick(self.scope.integers)})",
            f"m.take((x for x in {xs}), {safe})", f"m.cross_entropy((x for x in {xs}), {safe})",
            f"{xs}[{xs}.index({self.simple()})]", f"float({xs}.count({self.simple()}))",
        ])  # fmt: skip

    def derivative(self, depth: int) -> str:
        """A derivative inside the program, of a function that sees what is around it."""
        name, rng = self.new("t"), self.rng
        inner = self.with_numbers([name], lambda: f"{name} * ({self.number(1)})")
        at = f"{self.number(depth - 1)} + w[1]"  # a Value: at a plain number the derivative is a plain number
        slope = rng.choice([
            f"grad(lambda {name}: {inner})({at})",
            f"value_and_grad(lambda {name}: {inner})({at})[{rng.randrange(2)}]",
            f"jvp(lambda {name}: {inner})({at}, 1.0)",
            f"grad(grad(lambda {name}: {inner}))({at})",
        ])  # fmt: skip
        return f"({slope} + 0.0)"  # the sign of a slope of zero is nobody's: one that is a number was added to 0.0

    def copied(self, depth: int) -> str:
        rng, scope = self.rng, self.scope
        return rng.choice([
            f"copy.copy({self.pick(scope.numbers)})", f"copy.deepcopy({self.pick(scope.numbers)})",
            f"copy.deepcopy({self.pick(scope.lists)})[0]", f"copy.copy({self.pick(scope.points)}).u",
            f"copy.deepcopy({self.pick(scope.points)}).v", f"dataclasses.astuple({self.pick(scope.points)})[0]",
            f"dataclasses.asdict({self.pick(scope.points)})['v']",
            f"dataclasses.replace({self.pick(scope.points)}, u={self.simple()}).u",
        ])  # fmt: skip

    def of_array(self, depth: int) -> str:
        rng, arr = self.rng, self.pick(self.scope.arrays)
        return rng.choice([
            f"{arr}.sum()", f"({arr} @ {self.pick(self.scope.arrays)})", f"({arr} * {self.simple()})[1]",
            f"{arr}[::-1][0]", f"({arr} - {arr}.copy()).max()", f"np.where({arr} > {self.simple()}, {arr}, 0.5)[0]",
            f"{arr}[{arr} >= {self.simple()}].sum()", f"np.abs({arr}).min()", f"np.maximum({arr}, {self.simple()})[2]",
            f"np.dot({arr}, {self.pick(self.scope.arrays)})", f"{arr}.reshape(3, 1)[2, 0]",
            f"np.where({arr} == {self.simple()}, 2.0 * {arr}, {arr})[0]", f"{arr}.prod()", f"np.cumsum({arr})[-1]",
        ])  # fmt: skip

    def reduced(self, depth: int) -> str:
        inner = self.with_numbers(["s", "e"], lambda: self.number(1))
        return f"functools.reduce(lambda s, e: s * 0.5 + {inner}, {self.sequence(0)}, {self.simple()})"

    def call(self, depth: int) -> str:
        if not self.scope.functions:
            return self.number(depth - 1)
        return f"{self.pick(self.scope.functions)}({self.number(depth - 1)})"

    def condition(self, depth: int) -> str:
        rng = self.rng
        kind = rng.random()
        left, right = self.number(depth), self.simple()
        if kind < 0.5:
            return f"{left} {rng.choice(SIGNS)} {right}"
        if kind < 0.6:
            return f"{self.integer()} {rng.choice(SIGNS)} {self.integer()}"
        if kind < 0.65:
            return f"{left} {rng.choice(SIGNS)} {right} {rng.choice(SIGNS)} {self.simple()}"
        if kind < 0.72:
            return left
        if kind < 0.77:
            return f"not {left}"
        if kind < 0.82:
            return f"{left} in ({right}, {self.constant()})"
        if kind < 0.86:
            return f"{self.pick(self.scope.lists)} {rng.choice(('==', '<', '!='))} {self.pick(self.scope.lists)}"
        if kind < 0.9:
            return f"{right} in {self.pick(self.scope.lists)}"
        if kind < 0.93:
            return f"{self.integer()} {rng.choice(SIGNS)} {right}"
        joined = rng.choice(("and", "or"))
        return f"{left} {rng.choice(SIGNS)} {right} {joined} {self.simple()} {rng.choice(SIGNS)} {self.simple()}"

    # ---------------------------------------------------------------- statements

    def statement(self, depth: int) -> None:
        kinds: list[tuple[float, Callable[[int], None]]] = [
            (6, self.assign), (3, self.change), (4, self.with_list), (2, self.with_dict), (2, self.with_point),
            (2, self.with_array), (1, self.softmax),
        ]  # fmt: skip
        if depth < 2:
            kinds += [(5, self.branch), (4, self.loop), (2, self.until), (3, self.guarded), (2, self.match)]
        if depth < 2 and not self.in_function:
            kinds += [(3, self.function), (1, self.closures), (1, self.recursion), (1, self.generator)]
        (chosen,) = self.rng.choices([kind for _, kind in kinds], [weight for weight, _ in kinds])
        chosen(depth)

    def assign(self, depth: int) -> None:
        name = self.new("v")
        self.write(f"{name} = {self.number(3)}")
        self.scope.numbers.append(name)

    def own_numbers(self) -> list[str]:
        return [name for name in self.scope.numbers if name[0] == "v" or name in "ab"]

    def change(self, depth: int) -> None:
        if self.in_function:
            return self.assign(depth)
        name = self.rng.choice(self.own_numbers())
        self.write(f"{name} {self.rng.choice(('=', '+=', '-=', '*='))} {self.number(2)}")

    def softmax(self, depth: int) -> None:
        """Written out, of a list or of its beginnings as under a mask, shifted by its largest or by something else."""
        rng, name, xs, made = self.rng, self.new("soft"), self.new("l"), self.new("l")
        shift = rng.choice(["m.stop_gradient(m.maximum(xs))", "m.maximum([m.stop_gradient(x) for x in xs])"] * 3 + [
            "m.maximum(xs)", "max(xs)", "m.stop_gradient(xs[0])", "m.stop_gradient(m.maximum(xs[1:]))"])  # fmt: skip
        of_one = rng.choice(["e / sum(es)"] * 3 + ["e / sum(es) + es[0]", "e / (sum(es) + es[-1])"])
        with self.block(f"def {name}(xs, top):"):
            self.write("es = [m.exp(x - top) for x in xs]")
            self.write(f"return [{of_one} for e in es]")
        self.write(f"{xs} = [*{self.sequence(1)}]")
        rows = f"(lambda xs: {name}(xs, {shift}))"
        masked = f"[sum(p * x for p, x in zip({rows}({xs}[: i + 1]), {xs})) for i in range(len({xs}))]"
        self.write(f"{made} = {rng.choice((f'{rows}({xs})', masked))}")
        self.scope.lists += [xs, made]

    def with_list(self, depth: int) -> None:
        rng, scope = self.rng, self.scope
        kind = rng.random()
        owned = [name for name in scope.lists if name != "w"]
        if kind < 0.35:
            sequence = self.sequence(2)
            name = self.new("l")
            self.write(f"{name} = [*{sequence}, {self.number(1)}]")
            scope.lists.append(name)
        elif kind < 0.45:
            name = self.new("l")
            self.write(f"{name} = {self.pick(scope.lists[:2] + scope.lists[3:])}")  # another name for the same list
            scope.lists.append(name)
        elif kind < 0.55:
            name = self.new("l")
            listed = self.pick(scope.lists)
            self.write(f"{name} = {rng.choice(('list', 'copy.copy', 'copy.deepcopy'))}({listed})")
            scope.lists.append(name)
        elif kind < 0.75:
            name = self.pick(owned)
            self.write(
                f"{name}[{rng.choice(('0', '-1', f'n % len({name})'))}] {rng.choice(('=', '+='))} {self.number(2)}"
            )
        elif kind < 0.85:
            self.write(f"{self.pick(owned)}.append({self.number(2)})")
        elif kind < 0.9:
            name = self.pick(owned)
            self.write(f"{name}[0], {name}[-1] = {name}[-1], {name}[0]")
        else:
            name = self.pick(owned)
            self.write(
                rng.choice(
                    [
                        f"{name}.reverse()",
                        f"{name}.sort()",
                        f"{name} += [{self.number(1)}]",
                        f"{name}.sort(key=lambda e: -e)",
                        f"{name}.insert(0, {self.simple()})",
                        f"{name}.extend({name}[:2])",
                    ]
                )
                if not self.in_function
                else f"{name}.reverse()"
            )

    def with_dict(self, depth: int) -> None:
        rng, scope = self.rng, self.scope
        kind = rng.random()
        if kind < 0.4:
            self.write(
                f"{self.pick(scope.dicts)}[{rng.choice(('u', 'v'))!r}] {rng.choice(('=', '*='))} {self.number(2)}"
            )
        elif kind < 0.6:
            name = self.new("d")
            self.write(f"{name} = {{'u': {self.number(2)}, 'v': {self.simple()}}}")
            scope.dicts.append(name)
        elif kind < 0.8:
            name = self.new("d")
            source = self.pick(scope.dicts)
            self.write(f"{name} = {rng.choice((source, f'dict({source})', f'copy.deepcopy({source})'))}")
            scope.dicts.append(name)
        else:
            name = self.new("v")
            key, entry = self.new("s"), self.new("e")
            start = self.simple()
            self.write(f"{name} = {start}")
            with self.block(f"for {key}, {entry} in {self.pick(scope.dicts)}.items():"):
                self.scope.numbers += [entry, name]
                self.write(f"{name} = {name} + {self.number(2)} * len({key})")
            scope.numbers.append(name)

    def with_point(self, depth: int) -> None:
        rng, scope = self.rng, self.scope
        kind = rng.random()
        if kind < 0.4:
            self.write(f"{self.pick(scope.points)}.{rng.choice('uv')} {rng.choice(('=', '+='))} {self.number(2)}")
        elif kind < 0.5:
            self.write(f"{self.pick(scope.points)}.k = {self.integer()}")
        elif kind < 0.6:
            name = self.new("v")
            self.write(f"{name} = {self.pick(scope.points)}.energy({self.number(1)})")
            scope.numbers.append(name)
        else:
            name = self.new("p")
            source = self.pick(scope.points)
            self.write(
                f"{name} = "
                + rng.choice(
                    [
                        source,
                        f"copy.copy({source})",
                        f"copy.deepcopy({source})",
                        f"P({self.number(1)}, {self.simple()}, {self.integer()})",
                        f"dataclasses.replace({source}, v={self.number(1)})",
                    ]
                )
            )
            scope.points.append(name)

    def with_array(self, depth: int) -> None:
        rng, scope = self.rng, self.scope
        arr = self.pick(scope.arrays)
        if rng.random() < 0.4:
            self.write(f"{arr}[{rng.choice(('0', '-1', 'n % 3', f'{arr} > {self.constant()}'))}] = {self.number(2)}")
            return
        name = self.new("z")
        self.write(f"{name} = " + rng.choice([
            arr, f"{arr}.copy()", f"{arr} * {self.number(1)}", f"{arr} + {self.pick(scope.arrays)}", f"{arr}[::-1]",
            f"{self.simple()} - {arr}", f"np.array([{self.number(1)}, {self.simple()}, {self.simple()}], dtype=object)",
            f"np.where({arr} < {self.simple()}, {arr}, {self.simple()})", f"np.clip({arr}, -0.5, 0.5)", f"{arr} ** 2",
            f"np.sort({arr})", f"np.abs({arr})",
        ]))  # fmt: skip
        scope.arrays.append(name)

    def branch(self, depth: int) -> None:
        name = self.new("v")
        self.write(f"{name} = {self.simple()}")
        self.scope.numbers.append(name)
        with self.block(f"if {self.condition(2)}:"):
            self.body(depth + 1)
            self.write(f"{name} = {self.number(2)}")
        if self.rng.random() < 0.3:
            with self.block(f"elif {self.condition(1)}:"):
                self.write(f"{name} = {self.number(2)}")
        if self.rng.random() < 0.7:
            with self.block("else:"):
                self.body(depth + 1)
                self.write(f"{name} = {self.number(2)}")

    def loop(self, depth: int) -> None:
        rng, scope = self.rng, self.scope
        name, i, element = self.new("v"), self.new("i"), self.new("e")
        self.write(f"{name} = {self.simple()}")
        scope.numbers.append(name)
        kind = rng.random()
        if kind < 0.4:
            header = f"for {i} in range({rng.choice(('n', 'abs(k)', '3', f'len({self.pick(scope.lists)})', 'p.k'))}):"
            made: tuple[list[str], list[str]] = [], [i]
        elif kind < 0.7:
            header, made = f"for {element} in list({self.pick(scope.lists)}):", ([element], [])
        else:
            header = f"for {i}, {element} in enumerate(list({self.pick(scope.lists)})):"
            made = [element], [i]
        with self.block(header):
            self.scope.numbers += made[0]
            self.scope.integers += made[1]
            if rng.random() < 0.25:
                with self.block(f"if {self.condition(1)}:"):
                    self.write(rng.choice(("break", "continue")))
            if rng.random() < 0.5:
                self.body(depth + 1, 1)
            self.write(f"{name} = m.{rng.choice(('tanh', 'sin', 'atan'))}({self.number(2)} + {name})")

    def until(self, depth: int) -> None:
        name, count = self.new("v"), self.new("i")
        self.write(f"{name}, {count} = {self.number(1)}, 0")
        self.scope.numbers.append(name)
        self.scope.integers.append(count)
        sign = self.rng.choice(SIGNS)
        with self.block(f"while {name} {sign} {self.simple()} and {count} < {self.rng.randint(2, 5)}:"):
            self.write(f"{name}, {count} = {self.number(1)} * 0.5 + {name} * 0.5, {count} + 1")

    def guarded(self, depth: int) -> None:
        """An error, caught or not, by what Python raises for it."""
        rng, name = self.rng, self.new("v")
        if rng.random() < 0.1:
            with self.block(f"if {self.condition(1)}:"):
                self.write(f"raise {rng.choice(('ValueError', 'KeyError', 'ArithmeticError'))}('stopped')")
            return
        risky, caught = rng.choice([
            (f"1.0 / {self.number(1)}", "ZeroDivisionError"), (f"m.log({self.number(1)})", "ValueError"),
            (f"m.sqrt({self.number(1)})", "ValueError"), (f"strict({self.number(1)})", "ValueError"),
            (f"{self.pick(self.scope.lists)}[{self.integer()}]", "IndexError"),
            (f"{self.pick(self.scope.lists)}.index({self.simple()}) * 1.0", "ValueError"),
            (f"{{0: a, 1: b}}[{self.integer()}]", "KeyError"), (f"m.exp({self.number(1)} * 1000)", "OverflowError"),
            (f"m.asin({self.number(1)})", "(ValueError, ArithmeticError)"),
        ])  # fmt: skip
        self.write(f"{name} = {self.simple()}")
        with self.block("try:"):
            used = rng.random() < 0.7
            self.write(f"{name if used else '_'} = {risky}")
            if rng.random() < 0.3:
                self.body(depth + 1, 1)
        with self.block(f"except {caught}:"):
            self.write(f"{name} = {self.number(1)}")
        if rng.random() < 0.15:
            with self.block("finally:"):
                self.write(f"{name} = {name} * 2.0")
        self.scope.numbers.append(name)

    def match(self, depth: int) -> None:
        name = self.new("v")
        self.write(f"{name} = {self.simple()}")
        subject = self.rng.choice([self.pick(self.scope.integers), self.simple()])
        with self.block(f"match {subject}:"):
            with self.block(f"case {self.rng.choice(('0', '1', '0.0', '2.0 | 3'))}:"):
                self.write(f"{name} = {self.number(2)}")
            with self.block(self.rng.choice(("case _:", f"case e if e > {self.constant()}:"))):
                self.write(f"{name} = {self.number(2)}")
        self.scope.numbers.append(name)

    def function(self, depth: int) -> None:
        """A function inside, which may change a variable around it."""
        name, argument = self.new("f"), self.new("t")
        changed = self.rng.choice(self.own_numbers()) if self.rng.random() < 0.5 else ""
        with self.block(f"def {name}({argument}):"):
            self.in_function = True
            self.scope.numbers.append(argument)
            if changed:
                self.write(f"nonlocal {changed}")
                self.write(f"{changed} = {self.number(1)}")
            if self.rng.random() < 0.6:
                self.statement(depth + 1)
            self.write(f"return {self.number(2)}")
            self.in_function = False
        self.scope.functions.append(name)

    def closures(self, depth: int) -> None:
        """Functions made in a loop: early and late binding of what it changes."""
        name = self.new("f")
        inner = self.with_numbers(["t"], lambda: self.number(1))
        bound = self.rng.choice(("t, i=i", "t"))
        self.write(f"{name} = lambda t: sum(g(t) for g in [lambda {bound}: {inner} * (i + 1) for i in range(3)])")
        self.scope.functions.append(name)

    def recursion(self, depth: int) -> None:
        name = self.new("f")
        inner = self.with_numbers(["t"], lambda: self.number(1))
        stop = self.with_numbers(["t"], lambda: self.condition(0))
        with self.block(f"def {name}(t, depth=3):"):
            self.write(f"return t if depth == 0 or {stop} else {name}({inner}, depth - 1)")
        self.scope.functions.append(name)

    def generator(self, depth: int) -> None:
        """Numbers one by one, some of which nobody may ask for."""
        name, made, element = self.new("g"), self.new("v"), self.new("e")
        loop = f"for {element} in list({self.pick(self.scope.lists)}):"
        with self.block(f"def {name}(t):"), self.block(loop):
            self.scope.numbers += ["t", element]
            self.write(f"yield {self.number(2)}")
        taken = self.rng.choice(("sum({})", "next({})", "max({})", "list({})[-1]"))
        self.write(f"{made} = {taken.format(f'{name}({self.simple()})')}")
        self.scope.numbers.append(made)


@dataclass
class Program:
    """The text of a function `program`, and the calls it is to be given."""

    source: str
    calls: list[Call]
    seed: int = 0


def program(seed: int) -> Program:
    rng = random.Random(seed)
    return Program(Writer(rng).program(), calls_of(rng), seed)
