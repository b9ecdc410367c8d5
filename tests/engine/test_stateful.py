"""Both engines under everything that can be done to a Value, in any order: same bits, same errors, no crash.

Short in the suite; `make soak SOAK=3600` goes on for as long as one likes, also under the sanitizers.
"""

from __future__ import annotations

import copy
import gc
import os
import pickle
import sys
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

import gradwalk
from gradwalk import composites
from gradwalk.ops import OPS

SOAK_SECONDS = float(os.environ.get("GRADWALK_SOAK", 0))
MOST_NODES = 25
MOST_BELOW = 150  # nodes below one that create_graph is asked of: gradients of gradients grow fast

numbers = st.one_of(st.floats(-3.0, 3.0), st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, 1e-300, 1e300, 700.0]))
places = st.integers(0, 10**6)
rows = st.sampled_from(sorted(name for name, op in OPS.items() if not op.parameters))
contexts = st.sampled_from(["plain", "plain", "no_grad", "ieee", "scope"])
CONTEXTS: dict[str, Callable[[], Any]] = {
    "plain": nullcontext, "no_grad": gradwalk.no_grad, "ieee": gradwalk.ieee, "scope": lambda: gradwalk.scope("inside"),
}  # fmt: skip


class Side:
    """One engine, and its nodes."""

    def __init__(self, name: str) -> None:
        module = gradwalk.engine.load(name)
        self.name, self.Value, self.functions = name, module.Value, SimpleNamespace(**module.FUNCTIONS)
        self.composites = composites.for_engine(name)
        self.Sub = SUBCLASSES[name]
        self.nodes: list[Any] = []

    def at(self, place: int) -> Any:
        return self.nodes[place % len(self.nodes)]


SUBCLASSES = {name: type("Sub", (gradwalk.engine.load(name).Value,), {}) for name in ("reference", "native")}


def bits(number: Any) -> str:
    """A number to the bit; gradients may be Values, and all nans count as one."""
    return float(getattr(number, "data", number)).hex()


def seen(node: Any) -> tuple[Any, ...]:
    return (bits(node.data), bits(node.grad), node.label, node._op, len(node._children), node._constant,
            [bits(local) for local in node._local_grads], type(node.grad).__name__)  # fmt: skip


class Engines(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.sides = [Side("reference"), Side("native")]
        for side in self.sides:
            side.nodes = [side.Value(0.5), side.Value(-1.5)]

    def do(self, action: Callable[[Side], Any]) -> None:
        """The action on both sides: the same outcome. Nodes that it returns are kept."""
        outcomes = []
        for side in self.sides:
            try:
                made = action(side)
            except (ValueError, TypeError, ArithmeticError, IndexError, KeyError) as error:
                outcomes.append(f"{type(error).__name__}: {error}")
                continue
            made = made if isinstance(made, list) else [made]
            values = [one for one in made if isinstance(one, side.Value)]
            outcomes.append([bits(one) if isinstance(one, float | side.Value) else one for one in made])
            side.nodes += values
        assert outcomes[0] == outcomes[1]

    @invariant()
    def they_are_equal(self) -> None:
        reference, native = self.sides
        assert len(reference.nodes) == len(native.nodes)
        for one, other in zip(reference.nodes, native.nodes, strict=True):
            assert seen(one) == seen(other)

    # ---------------------------------------------------------------- build

    @rule(number=numbers, label=st.sampled_from(["", "x"]))
    def leaf(self, number: float, label: str) -> None:
        self.do(lambda side: side.Value(number, label=label))

    @rule(number=numbers, a=places)
    def instance_of_a_subclass(self, number: float, a: int) -> None:
        self.do(lambda side: side.Sub(number, (side.at(a),), (0.25,)))

    @rule(name=rows, a=places, b=places, c=places, context=contexts)
    def operation(self, name: str, a: int, b: int, c: int, context: str) -> None:
        def action(side: Side) -> Any:
            with CONTEXTS[context]():
                return getattr(side.functions, name)(*map(side.at, (a, b, c)[: len(OPS[name].inputs)]))

        self.do(action)

    @rule(a=places, number=numbers, sign=st.sampled_from(["+", "-", "*", "/", "**"]), left=st.booleans())
    def with_a_number(self, a: int, number: float, sign: str, left: bool) -> None:
        signs = {"+": lambda x, y: x + y, "-": lambda x, y: x - y, "*": lambda x, y: x * y, "/": lambda x, y: x / y,
                 "**": lambda x, y: x**y}  # fmt: skip
        self.do(lambda side: signs[sign](number, side.at(a)) if left else signs[sign](side.at(a), number))

    @rule(
        name=st.sampled_from(["sum", "mean", "norm", "logsumexp", "softmax", "log_softmax", "rmsnorm", "layernorm"]),
        chosen=st.lists(places, min_size=1, max_size=5),
    )
    def composite(self, name: str, chosen: list[int]) -> None:
        self.do(lambda side: getattr(side.composites, name)([*map(side.at, chosen), 0.5]))

    @rule(left=st.lists(places, min_size=1, max_size=4), a=places, index=st.integers(-1, 4))
    def dot_take_and_cross_entropy(self, left: list[int], a: int, index: int) -> None:
        def chosen(side: Side) -> list[Any]:
            return list(map(side.at, left))

        self.do(lambda side: side.composites.dot(chosen(side), [side.at(a)] * len(left)))
        self.do(lambda side: side.composites.take(chosen(side), index))
        self.do(lambda side: side.composites.cross_entropy(chosen(side), index))

    @rule(a=places, factor=numbers, raises=st.integers(0, 5))
    def hand_written(self, a: int, factor: float, raises: int) -> None:
        def action(side: Side) -> Any:
            x = side.at(a)
            out = side.Value(x.data * factor, (x,), "by hand")

            def push() -> None:
                if raises == 0:
                    raise KeyError("by hand")
                x.grad += factor * out.grad

            out._backward = push
            return out

        self.do(action)

    # ---------------------------------------------------------------- differentiate

    @rule(a=places)
    def backward(self, a: int) -> None:
        self.do(lambda side: side.at(a).backward())

    @rule(a=places)
    def push(self, a: int) -> None:
        self.do(lambda side: side.at(a)._push() if hasattr(side.at(a), "_push") else side.at(a)._backward())

    @rule(a=places)
    def backward_with_graph(self, a: int) -> None:
        if len(self.sides[0].at(a)._topological_order()) <= MOST_BELOW:
            self.do(lambda side: side.at(a).backward(create_graph=True))

    @rule(a=places, b=places)
    def order(self, a: int, b: int) -> None:
        self.do(lambda side: [bits(node) for node in side.at(a)._topological_order()])

    # ---------------------------------------------------------------- change

    @rule(a=places, number=numbers)
    def assign_data(self, a: int, number: float) -> None:
        self.do(lambda side: setattr(side.at(a), "data", number))

    @rule(a=places, number=st.one_of(numbers, st.just("1")))
    def assign_grad(self, a: int, number: float) -> None:
        self.do(lambda side: setattr(side.at(a), "grad", number))

    @rule(a=places, b=places)
    def assign_a_value_as_grad(self, a: int, b: int) -> None:
        self.do(lambda side: setattr(side.at(a), "grad", side.at(b)))

    @rule(a=places, label=st.sampled_from(["", "y", 7]))
    def assign_label(self, a: int, label: Any) -> None:
        self.do(lambda side: setattr(side.at(a), "label", label))

    @rule(a=places, b=places)
    def assign_backward(self, a: int, b: int) -> None:
        """A closure that holds the node it is assigned to, and another."""

        def action(side: Side) -> None:
            node, other = side.at(a), side.at(b)

            def push() -> None:
                other.grad += node.grad

            node._backward = push

        self.do(action)

    @rule(a=places)
    def assign_its_own_backward(self, a: int) -> None:
        self.do(lambda side: setattr(side.at(a), "_backward", side.at(a)._backward))

    @rule(a=places, b=places, number=numbers)
    def init_again(self, a: int, b: int, number: float) -> None:
        def action(side: Side) -> None:
            node, other = side.at(a), side.at(b)
            if isinstance(node, side.Sub) and node not in _below(other):
                node.__init__(number, (other,), (0.5,))

        self.do(action)

    @rule(a=places)
    def attribute_of_a_subclass(self, a: int) -> None:
        def action(side: Side) -> None:
            if isinstance(side.at(a), side.Sub):
                side.at(a).own_graph = side.at(a) * 2.0

        self.do(action)

    @rule(a=places)
    def delete(self, a: int) -> None:
        if len(self.sides[0].nodes) > 2:
            for side in self.sides:
                del side.nodes[a % len(side.nodes)]

    @precondition(lambda self: len(self.sides[0].nodes) > MOST_NODES)
    @rule()
    def delete_many(self) -> None:
        for side in self.sides:
            del side.nodes[1::2]

    @rule()
    def collect(self) -> None:
        gc.collect()

    # ---------------------------------------------------------------- copy, and elsewhere

    @rule(a=places, deep=st.booleans())
    def copies(self, a: int, deep: bool) -> None:
        if self.sides[0].at(a)._hand_written is None and len(self.sides[0].at(a)._topological_order()) <= MOST_BELOW:
            self.do(lambda side: (copy.deepcopy if deep else copy.copy)(side.at(a)))

    @rule(number=numbers, protocol=st.integers(0, pickle.HIGHEST_PROTOCOL))
    def pickles(self, number: float, protocol: int) -> None:
        leaf = gradwalk.Value(number, label="kept")
        assert seen(pickle.loads(pickle.dumps(leaf, protocol))) == seen(leaf)

    @rule(a=places, number=numbers)
    def in_another_thread(self, a: int, number: float) -> None:
        """The next steps of the story happen in a thread of their own."""
        failures: list[BaseException] = []

        def run() -> None:
            try:
                self.do(lambda side: (side.at(a) * number).tanh())
                self.do(lambda side: side.nodes[-1].backward())
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        for failure in failures:
            raise failure

    @rule(number=st.floats(-1.0, 1.0), count=st.integers(2, 4))
    def in_threads_at_once(self, number: float, count: int) -> None:
        """Graphs of their own in several threads, over one leaf that all read."""
        shared, found = gradwalk.Value(number), []

        def run() -> None:
            own = gradwalk.Value(number)
            end = own
            for _ in range(30):
                end = (end * shared + own).tanh()
            end.backward()
            found.append((bits(end), bits(own.grad)))

        before = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        threads = [threading.Thread(target=run) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(before)
        assert len(found) == count
        assert len(set(found)) == 1

    @rule(names=st.lists(rows, min_size=1, max_size=6), inputs=st.lists(numbers, min_size=2, max_size=4))
    def compile_and_replay(self, names: list[str], inputs: list[float]) -> None:
        """A compiled function, call by call, against the function itself."""
        functions = SimpleNamespace(**gradwalk.engine.load(gradwalk.engine.NAME).FUNCTIONS)

        def plain(x: Any, y: Any) -> Any:
            for name in names:
                arguments = (x, y, x)[: len(OPS[name].inputs)]
                x, y = getattr(functions, name)(*arguments), x
            return x + y

        compiled = gradwalk.compile(plain, exact=True)
        for number in inputs:
            outcomes = []
            for function in (plain, compiled):
                x, y = gradwalk.Value(number), gradwalk.Value(0.5)
                try:
                    out = function(x, y)
                    out.backward()
                    outcomes.append([bits(out), bits(x.grad), bits(y.grad)])
                except (ValueError, ArithmeticError) as error:
                    outcomes.append([type(error).__name__])
            assert outcomes[0] == outcomes[1]


def _below(node: Any) -> set[Any]:
    return set(node._topological_order())


def shaken(examples: int, steps: int) -> None:
    chosen = settings(
        max_examples=examples, stateful_step_count=steps, deadline=None, database=None,
        suppress_health_check=list(HealthCheck), derandomize=not SOAK_SECONDS, print_blob=True,
        # to make a failure small takes minutes, which only a soak has; its steps are printed as they are
        phases=list(Phase) if SOAK_SECONDS else [Phase.generate],
    )  # fmt: skip
    run_state_machine_as_test(Engines, settings=chosen)


def test_engines_agree_whatever_is_done() -> None:
    """Same data, gradients, errors, to the bit, after every step; under a sanitizer, no finding either."""
    if not SOAK_SECONDS:
        shaken(examples=15, steps=30)
    until = time.monotonic() + SOAK_SECONDS
    while time.monotonic() < until:
        shaken(examples=100, steps=60)
