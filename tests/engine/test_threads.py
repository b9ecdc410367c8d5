"""Several threads at once, in both engines."""

from __future__ import annotations

import gc
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gradwalk
from gradwalk import structure
from gradwalk.compiler import executors
from gradwalk.engine import gradients_of
from gradwalk.interface import number_of
from gradwalk.optim import SGD, Adam, clip_gradients
from gradwalk.show.program import program_of


@pytest.fixture(autouse=True)
def _eager_switching() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def at_once(count: int, work: Callable[[int], None]) -> None:
    """Run work(0), work(1), … in threads that start together; what one raises comes out."""
    errors: list[BaseException] = []
    barrier = threading.Barrier(count)

    def run(i: int) -> None:
        try:
            barrier.wait()
            work(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_a_graph_of_its_own_in_each_thread(engine: Any) -> None:
    """Building, differentiating and freeing at once gives what each gives alone."""

    def gradient(i: int) -> tuple[float, float]:
        x, y = engine.Value(0.1 * (i + 1)), engine.Value(0.3)
        total = x
        for _ in range(200):
            total = (total * y + x).tanh() + engine.composites.dot([x, total], [y, 0.5])
            total.label = "step"
        total.backward()
        return x.grad, y.grad

    expected = [gradient(i) for i in range(6)]
    results: dict[int, list[tuple[float, float]]] = {}

    def work(i: int) -> None:
        results[i] = [gradient(i) for _ in range(5)]

    at_once(6, work)
    assert results == {i: [expected[i]] * 5 for i in range(6)}


def test_shared_leaves(engine: Any) -> None:
    """Threads that differentiate graphs over the same leaves lose no contribution."""
    xs = [engine.Value(float(i)) for i in range(20)]

    def work(i: int) -> None:
        for _ in range(50):
            total = xs[0] * 1.0
            for x in xs[1:]:
                total = total + x * float(i + 1)
            total.backward()

    at_once(4, work)
    assert [x.grad for x in xs] == [4 * 50.0] + [50.0 * (1 + 2 + 3 + 4)] * 19


def test_shared_interior_nodes(engine: Any) -> None:
    """Threads that differentiate through the same interior nodes do not disturb each other's passes."""
    x = engine.Value(2.0)
    shared = x * 3.0
    for _ in range(50):
        shared = shared + x

    def work(i: int) -> None:
        for _ in range(50):
            (shared * float(i + 1)).backward()

    at_once(4, work)
    assert x.grad == 53.0 * 50.0 * (1 + 2 + 3 + 4)


def test_derivatives_beside_backward(engine: Any) -> None:
    """gradwalk.grad() uses the gradients of shared nodes and gives them back: backward() loses nothing meanwhile."""
    x = engine.Value(2.0)
    shared = x * 3.0
    derivative = gradwalk.grad(lambda t: t * shared + shared.tanh() + t * t * x)
    found: list[float] = []

    def work(i: int) -> None:
        for _ in range(200):
            if i % 2:
                (shared * 2.0).backward()
            else:
                at_a_number = i == 0 and engine.name == gradwalk.engine.NAME
                found.append(derivative(1.0) if at_a_number else derivative(engine.Value(1.0)).data)

    at_once(4, work)
    assert x.grad == 2 * 200 * 6.0
    assert set(found) == {10.0}


def hand_written(engine: Any, x: Any, pause: float) -> Any:
    out = engine.Value(x.data, (x,), "same")

    def _backward() -> None:
        time.sleep(pause)
        gradient = out.grad
        x.grad += gradient
        time.sleep(pause)

    out._backward = _backward
    return out


def test_hand_written_operations_on_shared_interior_nodes(engine: Any) -> None:
    """A hand-written _backward may let another thread run: its pass is still its own."""
    x = engine.Value(2.0)
    shared = x * 3.0

    def work(i: int) -> None:
        for _ in range(5):
            hand_written(engine, shared, 0.0005).backward()

    at_once(4, work)
    assert x.grad == 4 * 5 * 3.0


def test_a_failed_pass_takes_nothing_from_another_thread(engine: Any) -> None:
    """Putting the gradients back after an exception does not put back what another thread added meanwhile."""
    x = engine.Value(2.0)

    def failing_pass() -> None:
        out = hand_written(engine, x, 0.0)

        def _backward() -> None:
            time.sleep(0.002)
            raise KeyError("no")

        out._backward = _backward
        with pytest.raises(KeyError):
            out.backward()

    def work(i: int) -> None:
        for _ in range(10):
            if i == 0:
                failing_pass()
            else:
                (x * 3.0).backward()
                time.sleep(0.001)

    at_once(2, work)
    assert x.grad == 30.0


def test_errors_in_several_threads(engine: Any) -> None:
    """Domain errors in one thread do not reach another."""

    def work(i: int) -> None:
        for k in range(300):
            x = engine.Value(float(k + 1) if i % 2 else -float(k + 1))
            if i % 2:
                assert x.log().data == pytest.approx(x.log().data)
            else:
                with pytest.raises(ValueError, match="log: expected x > 0"):
                    x.log()

    at_once(4, work)


def test_freeing_in_another_thread(engine: Any) -> None:
    """A graph built in one thread may be freed in another."""
    graphs: list[Any] = []
    for _ in range(20):
        x = engine.Value(1.0)
        for _ in range(2000):
            x = x * 1.0001 + 0.1
        graphs.append(x)
    del x

    def work(i: int) -> None:
        for _ in range(5):
            graphs.pop()
            y = engine.Value(1.0)
            for _ in range(500):
                y = y + 1.0
            y.backward()

    at_once(4, work)
    assert not graphs


def test_a_derivative_while_another_thread_imports_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that is half there has no arrays yet; it was asked for their type."""
    monkeypatch.setitem(sys.modules, "numpy", types.ModuleType("numpy"))
    structure.kind_of.cache_clear()
    assert gradwalk.grad(lambda x: x[0] * x[1])([2.0, 3.0]) == [3.0, 2.0]
    assert gradwalk.grad(lambda x: x["a"] * 2.0)({"a": 2.0}) == {"a": 2.0}


# ---------------------------------------------------------------- gradients that are lent out, and given back


class Other:
    """A thread that does its work once, in the middle of somebody else's."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._done = threading.Event()
        self._thread = threading.Thread(target=lambda: (work(), self._done.set()))

    def begin(self) -> None:
        if self._thread.ident is None:
            self._thread.start()
            self._done.wait(0.1)  # it is to wait for us

    def after(self, monkeypatch: pytest.MonkeyPatch, place: Any, name: str) -> None:
        """When that function has returned for the first time."""
        function = getattr(place, name)

        def and_begin(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            self.begin()
            return result

        monkeypatch.setattr(place, name, and_begin)

    def end(self) -> None:
        self._thread.join(20.0)
        assert self._done.is_set()


recomputed = gradwalk.checkpoint(lambda a, b: a * b)


def overflows(x: Any) -> None:
    with gradwalk.detect_nonfinite(), pytest.raises(gradwalk.NonFiniteError):
        ((x * 1e-300) * 1e200 * 1e200 * 1e200).backward()


LENDING: dict[str, Callable[[Any], object]] = {
    "create_graph": lambda x: (x * 0.0).backward(create_graph=True),
    "gradient_report": lambda x: gradwalk.gradient_report(x * 2.0),
    "grad": lambda x: gradients_of(recomputed(type(x)(2.0), x), [x]),  # with a _backward of its own, the long way
    "detect_nonfinite": overflows,
}


@pytest.mark.parametrize("name", LENDING)
def test_backward_while_gradients_are_lent_out(engine: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for what puts gradients back, also where nothing else calls for a lock."""
    x = engine.Value(2.0)
    gc.collect()  # nodes with a _backward of their own
    other = Other(lambda: (x * 3.0).backward())
    other.after(monkeypatch, engine.Value, "backward")
    LENDING[name](x)
    other.end()
    assert number_of(x.grad) == 3.0


@pytest.mark.parametrize("looking", [gradwalk.walk, program_of])
def test_backward_while_a_node_is_looked_at(looking: Any) -> None:
    """What a _backward written by hand does is found on gradients that are lent out."""
    x = gradwalk.Value(2.0)
    out = gradwalk.Value(2.0, (x,), "same")
    other = Other(lambda: (x * 3.0).backward())
    out._backward = other.begin
    list(looking(out))
    other.end()
    assert x.grad == 3.0


def ways(x: Any) -> dict[str, tuple[Callable[[], object], tuple[float, float]]]:
    """What changes the gradient of x in one go, and its number and gradient afterwards if they were 2 and 5."""
    times = gradwalk.compile(lambda a: x * a)
    times(3.0)
    return {
        "backward": (lambda: times.backward(3.0), (2.0, 8.0)),
        "map_backward": (lambda: times.map_backward([1.0, 2.0]), (2.0, 8.0)),
        "of one result": (lambda: times(3.0).backward(), (2.0, 8.0)),
        "of many results": (lambda: sum(times.map([1.0, 2.0])).backward(), (2.0, 8.0)),
        "train_step": (lambda: times.train_step(SGD([x], lr=1.0), 3.0), (-6.0, 0.0)),
        "train_step of Adam": (lambda: times.train_step(Adam([x], lr=1.0, eps=1e-300), 3.0), (1.0, 0.0)),
        "map_train_step": (lambda: times.map_train_step(SGD([x], lr=1.0), [1.0, 2.0]), (-6.0, 0.0)),
        "step": (lambda: SGD([x], lr=1.0).step(), (-3.0, 5.0)),
        "step of Adam": (lambda: Adam([x], lr=1.0, eps=1e-300).step(), (1.0, 5.0)),
        "zero_grad": (lambda: SGD([x], lr=1.0).zero_grad(), (2.0, 0.0)),
        "clip_gradients": (lambda: clip_gradients([x], 1.0), (2.0, 1.0)),
    }


@pytest.mark.parametrize("name", ways(gradwalk.Value(2.0)))
def test_other_changes_while_gradients_are_lent_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever adds to gradients, uses or resets them in one go waits, too."""
    x = gradwalk.Value(2.0)
    work, expected = ways(x)[name]
    x.grad = 5.0
    other = Other(work)
    other.after(monkeypatch, gradwalk.Value, "backward")
    gradwalk.gradient_report(x * -2.0)
    other.end()
    assert (round(x.data, 9), round(x.grad, 5)) == expected


def test_gradients_of_a_program_are_added_in_one_go(reference: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the native engine, another thread may come between reading one and setting it."""
    x = reference.Value(2.0)
    other = Other(lambda: (x * 3.0).backward())
    other.after(monkeypatch, executors, "number_of")
    executors.Interpreted.add_gradients(object.__new__(executors.Interpreted), (x,), np.array([1.0]))
    other.end()
    assert x.grad == 4.0
