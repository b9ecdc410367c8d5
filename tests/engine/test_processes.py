"""Other processes and interpreters: fork, spawn, subinterpreters, asyncio."""

from __future__ import annotations

import os

import pytest
from measures import python

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
    "spawn": """
import operator
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(operator.attrgetter("data"), (Value(0.5),)) == 0.5
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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("name", PROGRAMS)
def test_it_runs_to_its_end(name: str) -> None:
    """The numbers are right, or an ImportError says why there are none."""
    done = python(f"{PREAMBLE}\n{PROGRAMS[name]}\nprint('done')", GRADWALK_ENGINE="native")
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr[-2000:]
