"""Random programs over the table, right or with one derivative bug planted in a node made by hand."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from gradwalk import Value

BUGS = ("sign", "factor", "missing term", "= for +=")

# each is harmless wherever the random program puts it: no poles, no overflow, kinks only on a set of measure 0
UNARY: dict[str, Callable[[Any], Any]] = {
    "sin": lambda a: a.sin(),
    "tanh": lambda a: a.tanh(),
    "softplus": lambda a: a.softplus(),
    "log": lambda a: (a * a + 0.5).log(),
    "sqrt": lambda a: (a * a + 1.0).sqrt(),
    "exp": lambda a: a.tanh().exp(),
    "square": lambda a: a**2 * 0.5,
    "relu": lambda a: a.relu() + 0.1 * a,
    "abs": lambda a: abs(a) * 0.7 + a,
    "erf": lambda a: a.erf(),
    "lgamma": lambda a: (a.tanh() + 2.0).lgamma(),
    "atan": lambda a: a.atan(),
    "cbrt": lambda a: (a * a + 0.3).cbrt(),
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a.tanh() * b,
    "div": lambda a, b: a / (b * b + 1.0),
    "hypot": lambda a, b: (a + 2.0).hypot(b),
    "maximum": lambda a, b: a.maximum(b) + 0.2 * b,
    "atan2": lambda a, b: a.atan2(b * b + 0.5),
}


class Program:
    """A random function of a list of numbers; calling it runs it, with its bug if it has one."""

    def __init__(self, seed: int, bug: str = "") -> None:
        rng = random.Random(seed)
        self.inputs = rng.randint(1, 4)
        self.point = [rng.uniform(-2.0, 2.0) for _ in range(self.inputs)]
        self.steps: list[tuple[str, tuple[int, ...]]] = []
        for i in range(self.inputs, self.inputs + rng.randint(3, 10)):
            operands = (rng.randrange(i), rng.randrange(i))
            name = rng.choice([*UNARY, *BINARY])
            self.steps.append((name, operands[:1] if name in UNARY else operands))
        self.bug, self.factor = bug, rng.choice([0.5, 2.0, 1.1, 0.99, 1.001])
        self.bug_at = rng.randrange(len(self.steps))

    def __call__(self, xs: Any) -> Any:
        nodes = list(xs)
        for i, (name, operands) in enumerate(self.steps):
            given = [nodes[operand] for operand in operands]
            out = UNARY[name](*given) if name in UNARY else BINARY[name](*given)
            nodes.append(self.spoilt(out, given) if self.bug and i == self.bug_at else out)
        # everything that is not used yet takes part in the result
        return sum(nodes[self.inputs :], 0.0) * 0.5 + nodes[-1]

    def spoilt(self, out: Any, given: list[Any]) -> Any:
        """The same number with a wrong derivative: the right local gradients are taken from a graph of its own."""
        leaves = [type(value)(value.data) for value in given]
        name = self.steps[self.bug_at][0]
        (UNARY[name](*leaves) if name in UNARY else BINARY[name](*leaves)).backward()
        local_grads = [leaf.grad for leaf in leaves]
        if self.bug == "sign":
            local_grads[0] = -local_grads[0]
        elif self.bug == "factor":
            local_grads[-1] *= self.factor
        elif self.bug == "missing term":
            local_grads[0] = 0.0
        node = type(given[0])(out.data, given, name, local_grads=local_grads)
        if self.bug == "= for +=":

            def backward() -> None:
                for child, local_grad in zip(given, local_grads, strict=True):
                    child.grad = local_grad * node.grad

            node._backward = backward
        return node


def gradient(program: Program) -> list[float]:
    leaves = [Value(x) for x in program.point]
    program(leaves).backward()
    return [leaf.grad for leaf in leaves]


def is_effective(program: Program) -> bool:
    """Whether the bug changes the gradient at all: in dead code it is none."""
    wrong = gradient(program)
    bug, program.bug = program.bug, ""
    right = gradient(program)
    program.bug = bug
    return any(abs(a - b) > 1e-4 * max(abs(a), abs(b)) for a, b in zip(wrong, right, strict=True))
