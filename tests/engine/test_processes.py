"""Other processes and interpreters: fork, spawn, subinterpreters, asyncio."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from measures import python

import gradwalk

PREAMBLE = """
import asyncio, gc, multiprocessing, os, sys, threading
import gradwalk
from gradwalk import Value
def slope(number):
    x = Value(number)
    (x * x).tanh().backward()
    return x.grad
"""

PROGRAMS = {
    "fork": """
kept = [Value(0.5) * 2.0 for _ in range(1000)]
right = slope(0.5)
for _ in range(10):
    child = os.fork()
    if child == 0:
        ok = slope(0.5) == right
        del kept[::2]
        gc.collect()
        os._exit(0 if ok and kept[0].data == 1.0 else 1)
    assert os.waitpid(child, 0)[1] == 0
""",
    "fork while another thread differentiates": """
right, stop = slope(0.5), []
def work():
    while not stop:
        slope(0.25)
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
for _ in range(20):
    child = os.fork()
    if child == 0:
        os._exit(0 if slope(0.5) == right else 1)
    assert os.waitpid(child, 0)[1] == 0
stop.append(True)
for thread in threads:
    thread.join()
""",
    "fork while another thread has every lock": """
from gradwalk.passes import _with_locks
step = gradwalk.compile(lambda x: x * x)
right, holding, stop = step.value_and_grad(0.5), threading.Event(), threading.Event()
def hold():
    locks = [each.lock for each in _with_locks]
    for lock in locks:
        lock.acquire()
    holding.set()
    stop.wait()
    for lock in locks:
        lock.release()
thread = threading.Thread(target=hold)
thread.start()
holding.wait()
child = os.fork()
if child == 0:
    ok = step.value_and_grad(0.5) == right and step([0.5, 1][0]).data == 0.25
    with gradwalk.detect_nonfinite(), gradwalk.numpy.everywhere():
        ok = ok and gradwalk.compile(lambda x: x.tanh())(0.5).data == Value(0.5).tanh().data
    os._exit(0 if ok else 1)
stop.set()
assert os.waitpid(child, 0)[1] == 0
thread.join()
""",
    "fork while other threads compile": """
def work():
    while not stop:
        gradwalk.compile(lambda x: x * x).value_and_grad(0.5)
stop = []
gradwalk.compile(lambda x: x * x).value_and_grad(0.5)  # the lock of an import is Python's own, and no fork opens it
sys.setswitchinterval(1e-5)
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
for _ in range(10):
    child = os.fork()
    if child == 0:
        os._exit(0 if gradwalk.compile(lambda x: x * x).value_and_grad(0.5) == (0.25, 1.0) else 1)
    assert os.waitpid(child, 0)[1] == 0
stop.append(True)
for thread in threads:
    thread.join()
""",
    "fork while another thread is in the middle of freeing": """
class Deleted:
    def __init__(self, then):
        self.then = then
    def __del__(self):
        self.then()
def free(then):
    node = Value(0.5) * 2.0
    node.held = Deleted(then)
inside, leave, freed = threading.Event(), threading.Event(), []
thread = threading.Thread(target=free, args=(lambda: (inside.set(), leave.wait()),))
thread.start()
inside.wait()
child = os.fork()
if child == 0:
    for _ in range(2):
        free(lambda: freed.append(True))
    os._exit(0 if freed == [True, True] else 1)
leave.set()
assert os.waitpid(child, 0)[1] == 0
thread.join()
def fork():
    global child
    child = os.fork()
    free(lambda: freed.append(True))
free(fork)  # and while this very thread is
if child == 0:
    os._exit(0 if freed == [True] else 1)
assert os.waitpid(child, 0)[1] == 0 and freed == [True]
""",
    "spawn": """
import operator
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(operator.attrgetter("data"), (Value(0.5),)) == 0.5
""",
    "compiled functions in spawned workers": """
if __name__ == "__main__":
    step = gradwalk.compile(gradwalk.math.tanh)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.map(step.value_and_grad, [0.1, 0.2, 0.3]) == list(map(step.value_and_grad, [0.1, 0.2, 0.3]))
""",
    "modes in asyncio tasks that interleave": """
async def task(number):
    for _ in range(5):
        with gradwalk.no_grad() if number % 2 else gradwalk.ieee():
            await asyncio.sleep(0)
            assert bool((Value(1.0) * 2.0)._children) != bool(number % 2)
            await asyncio.sleep(0.001 * (number % 3))
        with gradwalk.detect_nonfinite():
            await asyncio.sleep(0)
        assert slope(0.5) == right
right = slope(0.5)
async def main():
    await asyncio.gather(*(task(i) for i in range(8)))
asyncio.run(main())
assert slope(0.5) == right
try:
    Value(-1.0).log()
except ValueError:
    pass
else:
    raise AssertionError("ieee() stayed on")
with gradwalk.ieee():
    assert Value(0.0).log().data == float("-inf")
""",
    "asyncio": """
async def task(number):
    with gradwalk.scope(f"task {number}"):
        x = Value(number)
        await asyncio.sleep(0)
        y = (x * x).tanh()
        await asyncio.sleep(0)
        y.backward()
        return x.grad
async def main():
    return await asyncio.gather(*(task(i / 10) for i in range(20)))
assert asyncio.run(main()) == [slope(i / 10) for i in range(20)]
""",
    "a subinterpreter": """
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    import _interpreters as interpreters
inner = interpreters.create()
code = '''
try:
    import gradwalk
    gradwalk.Value(1.0)
except ImportError as error:
    assert "_native" in str(error), error
'''
for _ in range(3):
    interpreters.run_string(inner, code)
interpreters.destroy(inner)
assert slope(0.5) == slope(0.5)
""",
}


def test_every_lock_is_one_that_a_fork_leaves_open() -> None:
    """There are no others than those of passes.py; before Python 3.12, functools.cached_property has one."""
    package = Path(gradwalk.__file__).parent
    locks = re.compile(r"threading\.R?Lock\(|functools\.cached_property$|functools import .*cached_property", re.M)
    found = {path.name for path in package.rglob("*.py") if locks.search(path.read_text("utf-8"))}
    assert found == {"passes.py", "cached_property.py"}


UNTRACED = {"fork while other threads compile"}  # the tracer has a lock, too


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.untraced] * (name in UNTRACED)) for name in PROGRAMS]
)
def test_it_runs_to_its_end(name: str) -> None:
    """The numbers are right, or an ImportError says why there are none."""
    done = python(f"{PREAMBLE}\n{PROGRAMS[name]}\nprint('done')", GRADWALK_ENGINE="native")
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr[-2000:]
