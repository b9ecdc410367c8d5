"""Modes belong to a thread and a task, and nothing leaves one stuck."""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import functools
import gc
import itertools
import math
import os
import random
import signal
import threading
import time
from typing import Any

import pytest

import gradwalk
import gradwalk.numpy
from gradwalk import control, functional, modes, scopes
from gradwalk.compiler.rolling import _uncollected
from gradwalk.structure import VALUE_TYPES

BLOCKS: dict[str, Any] = {
    "no_grad": control.no_grad,
    "ieee": control.ieee,
    "scope": lambda: scopes.scope("here"),
    "watched": control.watched,
    "reference": lambda: modes.Change(no_grad=True),
}


OTHERS = {"detect_nonfinite": gradwalk.detect_nonfinite, "everywhere": gradwalk.numpy.everywhere}


def used(block: Any) -> Any:
    def enter_and_leave() -> None:
        with block():
            pass

    return enter_and_leave


double = gradwalk.custom_op(lambda x: x * 2.0, lambda x, out: 2.0, check=False)


def product(xs: Any) -> Any:
    return double(xs[0]) * max(xs) * xs[1]


def chosen(xs: Any, i: int) -> Any:
    return xs[i] * xs[0]


def compile_twice() -> None:
    """The second time, the integer is left open, for which the function is compiled anew."""
    compiled = gradwalk.compile(chosen)
    compiled([1.0, 2.0, 3.0], 1)
    compiled([1.0, 2.0, 3.0], 2)


def recompute() -> None:
    x = gradwalk.Value(1.0)
    gradwalk.checkpoint(lambda x: x * x)(x).backward()


INTERRUPTED: dict[str, Any] = {
    **{name: used(BLOCKS[name]) for name in ("no_grad", "ieee", "scope", "watched")},
    **{name: used(OTHERS[name]) for name in OTHERS},
    "grad": lambda: gradwalk.grad(product)([1.0, 2.0]),
    "hessian": lambda: gradwalk.hessian(product)([1.0, 2.0]),
    "checkpoint": recompute,
    "compile": lambda: gradwalk.compile(product)([1.0, 2.0]),
    "compile with an integer": compile_twice,
}


def process_state() -> Any:
    """What is the whole process's, and is changed while something runs."""
    exchanged = builtins.max, builtins.pow, builtins.__import__, math, chosen.__code__
    watched = [cls.__dict__.get(name) for cls in VALUE_TYPES for name in ("backward", "_gradients")]
    return gc.isenabled(), exchanged, watched, dict(control.differentiated)


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_ends(name: str) -> None:
    """Whether it is left at its end or by an exception; a second one inside it, too."""
    before = modes.current()
    with contextlib.suppress(KeyError), BLOCKS[name]():
        assert modes.current() != before
        with control.changed(no_grad=True, ieee=True):
            pass
        raise KeyError
    assert modes.current() == before


def test_tasks_do_not_see_each_other(engine: Any) -> None:
    """Two asyncio tasks that take turns inside no_grad() and ieee(): what is recorded outside is recorded."""

    async def quiet(seconds: float) -> bool:
        with control.no_grad(), control.ieee(), scopes.scope("task"):
            await asyncio.sleep(seconds)
            return not (engine.Value(0.0).log() * 2.0)._children

    async def recording() -> list[bool]:
        found = []
        for _ in range(5):
            await asyncio.sleep(0.002)
            y = engine.Value(2.0) * 3.0
            found.append(bool(y._children) and scopes.path_of(y) == ())
        return found

    async def both() -> Any:
        return await asyncio.gather(quiet(0.004), recording(), quiet(0.007), quiet(0.001))

    assert asyncio.run(both()) == [True, [True] * 5, True, True]
    x = engine.Value(2.0)
    (x * x).backward()
    assert x.grad == 4.0
    with pytest.raises(gradwalk.DomainError):
        engine.Value(-1.0).log()


def test_threads_have_their_own(engine: Any) -> None:
    """A thread started inside a block starts without it."""
    found = []
    with control.no_grad():
        thread = threading.Thread(target=lambda: found.append(len((engine.Value(2.0) * 3.0)._children)))
        thread.start()
        thread.join()
    assert found == [2]


def test_a_decorator_may_call_itself(engine: Any) -> None:
    """@no_grad() makes a block for each call, and so does @scope()."""

    @control.no_grad()
    def factorial(x: Any, n: int) -> Any:
        return x * factorial(x, n - 1) if n else x

    @scopes.scope("step")
    def nested(x: Any, n: int) -> Any:
        return nested(x, n - 1) if n else x * 2.0

    assert factorial(engine.Value(2.0), 5)._children == ()
    assert (engine.Value(2.0) * 2.0)._children
    assert scopes.path_of(nested(engine.Value(2.0), 2)) == ("step", "step", "step")


def generates() -> Any:
    yield 1


async def waits() -> None:
    await asyncio.sleep(0.0)


async def generates_in_turns() -> Any:
    yield 1


class Generates:
    def __call__(self) -> Any:
        yield 1


@pytest.mark.parametrize("function", [generates, waits, generates_in_turns, Generates(), functools.partial(generates)])
@pytest.mark.parametrize("name", ["no_grad", "ieee", "scope", *OTHERS])
def test_a_decorator_of_what_runs_later(name: str, function: Any) -> None:
    """It would have left the block before the body begins."""
    block = (BLOCKS | OTHERS)[name]()
    shown = "scope('here')" if name == "scope" else f"{name}()"
    kind = "an async function" if function is waits else "a generator"
    with pytest.raises(TypeError, match=rf"expected a function .* got \w+, {kind}; write `with") as caught:
        block(function)
    text = str(caught.value)
    assert text.startswith(f"@{shown}: ")
    assert text.endswith(f"`with {shown}:` inside of it")


def test_a_generator_closed_elsewhere(engine: Any) -> None:
    """A block that is left in another context than it was entered in changes nothing there."""

    async def numbers() -> Any:
        with control.no_grad():
            yield 1
            yield 2

    async def first() -> Any:
        made = numbers()
        await anext(made)
        return made

    async def both() -> None:
        made = await asyncio.create_task(first())
        with control.ieee():
            await made.aclose()
            assert (engine.Value(0.0) * 2.0)._children
            assert engine.Value(-1.0).log().data != 0.0

    asyncio.run(both())
    assert modes.current() == modes.Modes()


@pytest.mark.parametrize("name", BLOCKS)
def test_the_same_block_is_not_entered_twice(name: str) -> None:
    """One after the other is fine, one inside itself is refused."""
    before, block = modes.current(), BLOCKS[name]()
    for _ in range(2):
        with block, pytest.raises(RuntimeError, match="being used already"), block:
            pass
    assert modes.current() == before


def test_a_block_that_nobody_ends_ends_with_its_object() -> None:
    """As where an exception comes between entering and `with`."""
    block = control.no_grad()
    block.__enter__()
    assert modes.current().no_grad
    del block
    assert not modes.current().no_grad


@pytest.mark.parametrize("kind", ["native", "reference"])
def test_blocks_are_left_in_any_order(kind: str) -> None:
    """As those of generators are: of what is in force, each takes out what it has changed itself."""
    block: Any = control.changed if kind == "native" else modes.Change
    made = {
        "first": block(no_grad=True), "second": block(ieee=True, scope=1), "third": block(no_grad=True),
        "fourth": block(scope=2),
    }  # fmt: skip
    for order in itertools.permutations(made):
        open_ = list(made)
        for name in made:
            made[name].__enter__()
        for name in order:
            made[name].__exit__(None, None, None)
            open_.remove(name)
            now = modes.current()
            assert now.no_grad == bool({"first", "third"}.intersection(open_))
            assert now.ieee == ("second" in open_)
            assert now.scope == (2 if "fourth" in open_ else 1 if "second" in open_ else 0)
        assert modes.current() == modes.Modes()


def test_a_block_that_began_where_another_has_ended_since(engine: Any) -> None:
    """Two generators inside of blocks, the first of which is closed before the second."""

    def inside(block: Any) -> Any:
        with block:
            yield

    first, second = inside(control.no_grad()), inside(control.ieee())
    next(first)
    next(second)
    first.close()
    with scopes.scope("later"):
        second.close()
        assert not modes.current().ieee
    assert modes.current() == modes.Modes()
    x = engine.Value(2.0)
    (x * x).backward()
    assert x.grad == 4.0


@pytest.mark.parametrize("name", BLOCKS)
def test_a_task_that_began_inside_is_inside(name: str) -> None:
    """The block that ends around it does not end in the task, which may leave its own in any order."""

    async def task() -> bool:
        within = modes.current()
        await asyncio.sleep(0.002)
        first, second = control.changed(derivatives=7), BLOCKS[name]()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        second.__exit__(None, None, None)
        return modes.current() == within

    async def both() -> bool:
        with BLOCKS[name]():
            begun = asyncio.create_task(task())
            await asyncio.sleep(0.0)
        assert modes.current() == modes.Modes()
        return await begun

    assert asyncio.run(both())


def test_many_blocks_are_left_in_the_order_they_were_entered() -> None:
    blocks = [control.no_grad() for _ in range(300)]
    for block in blocks:
        block.__enter__()
    for block in blocks:
        assert modes.current().no_grad
        block.__exit__(None, None, None)
    assert modes.current() == modes.Modes()


def test_a_block_in_a_cycle_ends_with_it() -> None:
    block = control.no_grad()
    block.me = block
    block.__enter__()
    del block
    gc.collect()
    assert modes.current() == modes.Modes()


@pytest.mark.parametrize("name", ["native", "reference"])
def test_a_block_that_was_not_made_is_not_entered(name: str) -> None:
    """Its __init__ was not called, or what it is to change is no name of a mode."""
    block: Any = control.changed if name == "native" else modes.Change
    with pytest.raises(AttributeError):
        block.__new__(block).__enter__()

    class Key:
        def __hash__(self) -> int:
            return hash("no_grad")

        def __eq__(self, _: object) -> bool:
            made.changes.update(dict.fromkeys(range(100)))
            return False

    made = block()
    made.changes[Key()] = True
    with pytest.raises((TypeError, ValueError)):
        made.__enter__()
    assert modes.current() == modes.Modes()


@pytest.mark.untraced
def test_a_block_in_a_callback_of_the_collector() -> None:
    """It may run while a block is being entered or left, in the middle of Python's own change of the context."""
    busy, kept = False, []

    def collected(*_: Any) -> None:
        nonlocal busy
        if not busy:
            busy = True
            with control.no_grad():
                kept[:] = [b"y" * n for n in range(1, 200) for _ in range(4)]
            kept[:] = [b"x" * n for n in range(1, 200) for _ in range(4)]
            busy = False

    thresholds, draw = gc.get_threshold(), random.Random(1)
    gc.callbacks.append(collected)
    try:
        with scopes.scope("outer"):
            outer = modes.current()
            for _ in range(20_000):
                gc.set_threshold(draw.randrange(1, 40))
                held: list[Any] = [[] for _ in range(draw.randrange(40))]
                with control.ieee():
                    held = [held]
                assert modes.current() is outer
    finally:
        gc.callbacks.remove(collected)
        gc.set_threshold(*thresholds)


def test_a_name_of_a_mode_may_be_made_while_running() -> None:
    with control.changed(**{"".join(("no", "_", "grad")): True}):
        assert modes.current().no_grad
    with pytest.raises((TypeError, ValueError)):
        control.changed(nonsense=True).__enter__()
    assert not modes.current().no_grad


@pytest.mark.untraced
@pytest.mark.skipif(os.name == "nt", reason="no interval timer")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # one came while an object ended
@pytest.mark.parametrize("name", INTERRUPTED)
def test_a_signal_leaves_nothing_stuck(name: str) -> None:
    """An exception from a signal handler, wherever it comes, in a block or in what is built on blocks."""

    class SignalError(Exception):
        pass

    def interrupt(*_: Any) -> None:
        raise SignalError

    work, draw = INTERRUPTED[name], random.Random(name)
    work()
    start = time.perf_counter()
    work()
    longest = 5e-5 + 2.0 * (time.perf_counter() - start)
    times = 400 if name in BLOCKS else 100
    stuck = process_state()
    before, caught = signal.signal(signal.SIGALRM, interrupt), 0
    try:
        for _ in range(times):
            try:
                # again, if Python lost the first
                signal.setitimer(signal.ITIMER_REAL, 1e-5 + draw.random() * longest, 0.1)
                while True:
                    work()
            except SignalError:
                caught += 1
            assert modes.current() == modes.Modes()
            assert process_state() == stuck
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert caught == times


@pytest.mark.untraced
def test_out_of_memory_leaves_nothing_stuck() -> None:
    """Every allocation on the way into a block fails once."""
    testcapi = pytest.importorskip("_testcapi")
    with control.no_grad():  # the interpreter itself does not survive a failure when it makes a thread's first context
        pass
    for n in range(1, 60):
        try:
            testcapi.set_nomemory(n, n + 1)
            with control.no_grad():
                pass
        except MemoryError:
            pass
        finally:
            testcapi.remove_mem_hooks()
        assert not modes.current().no_grad


def test_what_is_differentiated_is_forgotten_though_a_signal_comes_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(dict[Any, Any]):
        """A signal handler raises before the first entry is gone."""

        waiting = True

        def pop(self, *args: Any) -> Any:
            if self.waiting:
                self.waiting = False
                raise KeyboardInterrupt
            return super().pop(*args)

    for place, work in ((functional, INTERRUPTED["grad"]), (control, INTERRUPTED["checkpoint"])):
        noted = Interrupted()
        monkeypatch.setattr(place, "differentiated", noted)
        with pytest.raises(KeyboardInterrupt):
            work()
        assert not noted


# ---------------------------------------------------------------- fork


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.parametrize("name", ["by hand", "compiled"])
def test_a_forked_child_finds_locks_open(name: str) -> None:
    """Another thread is inside a pass when the process forks: the child does a pass of its own."""
    inside, leave = threading.Event(), threading.Event()
    x = gradwalk.Value(2.0)

    def waits(x: float) -> float:
        inside.set()
        leave.wait(20.0)
        return x

    slow = gradwalk.custom_op(waits, lambda x, out: 1.0, check=False)
    compiled = gradwalk.compile(lambda x: slow(x) * 2.0)

    def by_hand() -> None:
        out = gradwalk.Value(2.0, (x,), "slow")
        out._backward = lambda: (inside.set(), leave.wait(20.0))[0]
        out.backward()

    def run() -> None:
        by_hand() if name == "by hand" else compiled(x)

    leave.set()
    run()
    leave.clear()
    inside.clear()
    thread = threading.Thread(target=run)
    thread.start()
    assert inside.wait(20.0)
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        leave.set()
        run()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    leave.set()
    thread.join()
    assert status == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_is_in_no_block_of_other_threads() -> None:
    """While one compiles, the built-in functions are others, and nothing is collected: not in the child."""
    state, entered, leave = process_state(), threading.Barrier(4), threading.Event()

    def wait() -> None:
        entered.wait(20.0)
        leave.wait(20.0)

    def traced(x: Any) -> Any:
        wait()
        return max(x, 1.0)

    def uncollected() -> None:
        with _uncollected():
            wait()

    def watched() -> None:
        with gradwalk.detect_nonfinite(), gradwalk.numpy.everywhere():
            wait()

    compiling = functools.partial(gradwalk.compile(traced), 2.0)
    threads = [threading.Thread(target=each) for each in (compiling, uncollected, watched)]
    for thread in threads:
        thread.start()
    entered.wait(20.0)
    changed = process_state()
    child = os.fork()
    if child == 0:
        os._exit(0 if process_state() == state else 1)
    _, status = os.waitpid(child, 0)
    still = process_state()
    leave.set()
    for thread in threads:
        thread.join()
    assert (changed != state, still == changed, process_state() == state, status) == (True, True, True, 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_that_a_block_forks_is_in_it() -> None:
    """The function that is traced goes on in both."""
    plain = max

    def forks(x: Any) -> Any:
        child = os.fork()
        if child == 0:
            os._exit(0 if max is not plain and len(max(x, x)._children) == 2 else 1)
        assert os.waitpid(child, 0)[1] == 0
        return x * x

    assert gradwalk.compile(forks)(3.0).data == 9.0
    assert max is plain
