"""A batch by threads and by an executor's workers: the same bits with any number, and nothing lost where some die."""

from __future__ import annotations

import os
import pickle
import random
import signal
import struct
import subprocess
import sys
import threading
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

import gradwalk
from gradwalk import engine, workers
from gradwalk.compiler.executors import executor_for
from gradwalk.errors import WorkerError
from gradwalk.optim import Adam

native = pytest.mark.skipif(engine.NAME == "reference", reason="the native executor's")


class Small:
    """A function with leaves, branches, and inputs of several lengths; what it comes to here."""

    def __init__(self, count: int = 500) -> None:
        rng = random.Random(1)
        self.weights = [gradwalk.Value(rng.gauss(0.0, 1.0)) for _ in range(12)]
        self.compiled = gradwalk.compile(self.loss)
        self.inputs = [[rng.gauss(0.0, 1.0) for _ in range(rng.choice([2, 3, 4]))] for _ in range(count)]

    def loss(self, xs):
        hidden = [gradwalk.dot(self.weights[3 * i : 3 * i + len(xs[:3])], xs[:3]).tanh() for i in range(4)]
        total = sum(hidden)
        return (total - xs[-1]) ** 2 if total > -1.5 else total * xs[0]  # some inputs need another program

    def all_ways(self, **way):
        """Values, gradients of the sum and of each, and the weights after two steps of training."""
        for weight in self.weights:
            weight.grad = 0.0
        before = [weight.data for weight in self.weights]
        values = self.compiled.map_backward(self.inputs, **way)
        sums = [weight.grad for weight in self.weights]
        _, rows = self.compiled.map_gradients(self.inputs, self.weights, **way)
        with gradwalk.no_grad():
            numbers = self.compiled.map(self.inputs, **way)
        optimiser = Adam(self.weights, lr=0.1)
        optimiser.zero_grad()
        steps = [self.compiled.map_train_step(optimiser, self.inputs, **way) for _ in range(2)]
        after = [weight.data for weight in self.weights]
        for weight, number in zip(self.weights, before, strict=True):
            weight.data = number
        return values, sums, rows.tolist(), numbers, steps, after


class Elsewhere(Executor):
    """Workers who share nothing but what is pickled; some of them die."""

    def __init__(self, count: int, dying: int = 0) -> None:
        self.num_workers, self.dying = count, dying
        self.memories: list[dict[str, object]] = [{} for _ in range(count)]
        self.sent: list[str] = []
        self.turn, self.rng = 0, random.Random(count)

    def submit(self, function, /, *args, **kwargs):
        future: Future[object] = Future()
        if self.dying:
            self.dying -= 1
            future.set_exception(BrokenExecutor("a worker is gone"))
            return future
        self.turn += 1
        function, args = pickle.loads(pickle.dumps((function, args)))
        one = self.rng.randrange(self.num_workers)  # whoever is free
        self.sent += [f"{one} {key}" for key in args[2]]
        here, workers._here = workers._here, self.memories[one]
        try:
            future.set_result(function(*args))
        except Exception as error:
            future.set_exception(error)
        finally:
            workers._here = here
        return future


def test_any_number_of_workers():
    """Threads, executors, or none: the same bits, also where inputs need several programs."""
    small = Small()
    expected = small.all_ways(threads=1)
    assert len(small.compiled.programs) > 3
    assert small.all_ways() == expected
    assert small.all_ways(threads=7) == expected
    for count in (1, 2, 5):
        assert small.all_ways(executor=Elsewhere(count)) == expected
    with ThreadPoolExecutor(2) as pool:
        assert small.all_ways(executor=pool) == expected


def test_programs_travel_once():
    """To each worker; from then on, it is their digests that do."""
    small, executor = Small(), Elsewhere(2)
    for _ in range(8):
        small.compiled.map_backward(small.inputs, executor=executor)
    first, programs = len(executor.sent), len(small.compiled.programs)
    assert first <= 6 * programs  # what one lacks, another may be handed instead
    assert len(set(executor.sent)) == 2 * programs
    for _ in range(8):
        small.compiled.map_backward(small.inputs, executor=executor)
    assert len(executor.sent) == first


def test_what_a_worker_forgot_is_sent_again(monkeypatch):
    small = Small()
    expected = small.all_ways()
    monkeypatch.setattr(workers, "KEPT", 1)
    assert small.all_ways(executor=Elsewhere(2)) == expected


@native
def test_around_the_ends_of_pieces():
    """A part or piece more or less, more than are kept at once, a single example left: cut alike here and there."""
    model = gradwalk.nn.MLP(3, [48, 32, 1])
    compiled, rng = gradwalk.compile(lambda xs: model(xs) ** 2), np.random.default_rng(0)
    compiled.map_backward([[0.1, 0.2, 0.3]])
    size = executor_for(compiled.program).piece
    for count in (1, 2, size // 4 + 1, size // 2, size - 1, size, size + 1, size + 2, 2 * size + 1, 65 * size + 9):
        inputs, found = rng.normal(0.0, 0.1, (count, 3)).tolist(), []
        for way in ({"threads": 1}, {"threads": 3}, {"executor": Elsewhere(3)}):
            model.zero_grad()
            found.append((compiled.map_backward(inputs, **way), [value.grad for value in model.parameters()]))
        assert found[0] == found[1] == found[2]
        if count <= 2 * size + 1:  # and each example counts, once
            rows = compiled.map_gradients(inputs, model.parameters())[1]
            assert found[0][1] == pytest.approx(rows.sum(axis=0).tolist(), rel=1e-9, abs=1e-12)
            elsewhere = compiled.map_gradients(inputs, model.parameters(), executor=Elsewhere(3))[1]
            assert rows.tolist() == elsewhere.tolist()


@native
def test_what_begins_a_batch_comes_back_as_one():
    """Its sum is begun there; what goes on with it is added here, piece by piece, in the order that is always kept."""
    model, came = gradwalk.nn.MLP(3, [16, 1]), []
    compiled = gradwalk.compile(lambda xs: model(xs) ** 2)
    compiled.map_backward([[0.1, 0.2, 0.3]])
    inputs, leaves = [[0.1, 0.2, 0.3]] * (4 * executor_for(compiled.program).piece), len(model.parameters())
    for count in (1, 2):
        executor = Elsewhere(count)
        executor.submit = lambda *given, submit=executor.submit: came.append(submit(*given)) or came[-1]
        compiled.map_backward(inputs, executor=executor)
        numbers = [made.result()[1].size for made in came if not isinstance(made.result(), workers.Missing)]
        assert sum(numbers) == len(inputs) + {1: 1, 2: 1 + 2}[count] * leaves
        came.clear()


@native
def test_each_worker_has_its_share():
    """What is short fills up what is left beside the long, and sums are in the order of one process."""
    model = gradwalk.nn.MLP(6, [40, 1])
    compiled, given = gradwalk.compile(lambda xs: model([*xs, *xs][:6]) ** 2), []
    compiled.map_backward([[0.1] * 6, [0.1] * 5, [0.1] * 4, [0.1] * 3])
    size, rng = executor_for(compiled.program).piece, np.random.default_rng(0)
    shapes = ((5 * size // 2, 6), (5 * size + 3, 5), (size // 3, 4), (size // 9, 3))
    inputs = [row for shape in shapes for row in rng.normal(0.0, 0.1, shape).tolist()]
    found = []
    for way in ({"threads": 1}, {"executor": Elsewhere(2)}, {"executor": Elsewhere(3)}):
        executor = way.get("executor")
        if executor is not None:
            executor.submit = lambda *sent, submit=executor.submit: given.append(sent[-1][-1]) or submit(*sent)
        model.zero_grad()
        found.append((compiled.map_backward(inputs, **way), [value.grad for value in model.parameters()]))
    assert found[0] == found[1] == found[2]
    of_two = [sum(len(rows) for _, rows, _ in pieces) for pieces in given[:2]]
    assert sum(of_two) == len(inputs)
    assert max(of_two) - min(of_two) < size / 3


@native
def test_leaves_as_an_array():
    """A batch does not need Values: their numbers do; and Values are read again afterwards."""
    small = Small()
    small.compiled.map_backward([[0.1, 0.2, 0.3]])
    executor, leaves = executor_for(small.compiled.program), small.compiled._latest.leaves
    rows, numbers = np.full((40, 3), 0.25), np.array([leaf.data for leaf in leaves])

    def run(given):
        outputs, gradients = np.empty((40, 1)), np.empty(len(leaves))
        assert executor.run_batch(rows, given, outputs, np.ones(1), None, gradients) == []
        return outputs.tolist(), gradients.tolist()

    assert run(numbers) == run(leaves) != run(2.0 * numbers)
    assert run(numbers) == run(leaves)
    for wrong in (numbers[:-1], numbers.astype(np.float32), [1.0], None):
        with pytest.raises((TypeError, ValueError)):
            run(wrong)


def test_workers_die(monkeypatch):
    """A pool that breaks is made anew once; the call ends with the same bits, and later calls use the new pool."""
    small = Small()
    expected = small.all_ways()
    broken, anew = Elsewhere(2, dying=3), Elsewhere(2)
    monkeypatch.setattr(workers, "_like", lambda executor: anew if executor is broken else None)
    assert small.all_ways(executor=broken) == expected
    assert small.all_ways(executor=broken) == expected
    assert broken.dying == 0 or broken.turn == 0


def test_workers_die_again(monkeypatch):
    """One clear error; no weight has moved, and no gradient is left."""
    small = Small()
    small.compiled.map_backward(small.inputs)
    before = [(weight.data, weight.grad) for weight in small.weights]
    monkeypatch.setattr(workers, "_like", lambda executor: Elsewhere(2, dying=99))
    optimiser = Adam(small.weights, lr=0.1)
    with pytest.raises(WorkerError, match="executor: workers died, twice; their work is not done"):
        small.compiled.map_train_step(optimiser, small.inputs, executor=Elsewhere(2, dying=99))
    assert [(weight.data, weight.grad) for weight in small.weights] == before
    assert optimiser.steps == 0
    monkeypatch.undo()
    with pytest.raises(WorkerError, match="and a Elsewhere is not made anew"):
        small.compiled.map(small.inputs, executor=Elsewhere(2, dying=99))


def test_errors_are_those_of_the_function():
    """What the function raises, it raises; what is no executor is named."""
    weight = gradwalk.Value(1.0)
    compiled = gradwalk.compile(lambda x: (weight * x).log())
    with pytest.raises(gradwalk.DomainError, match="log"):
        compiled.map_backward([1.0, 2.0, -1.0], executor=Elsewhere(2))
    with pytest.raises(TypeError, match=r"executor: expected one like concurrent\.futures\.Executor, got a int"):
        compiled.map([1.0], executor=3)


def test_functions_of_ones_own_stay_here():
    """A program that calls Python is not sent anywhere."""
    weight = gradwalk.Value(2.0)
    double = gradwalk.custom_op(lambda x: 2.0 * x, lambda x, out: (2.0,))
    compiled = gradwalk.compile(lambda x: double(weight * x))
    executor = Elsewhere(2)
    assert compiled.map_backward([1.0, 2.0], executor=executor) == [4.0, 8.0]
    assert executor.turn == 0
    assert weight.grad == 6.0


@native
def test_a_process_killed_in_mid_step():
    """Real processes: one is killed while it works, and the bits are the same."""
    small = Small()
    expected = small.all_ways()
    with workers.processes(2) as pool:
        assert small.all_ways(executor=pool) == expected
        victim = pool.submit(os.getpid).result()
        timer = threading.Timer(0.002, os.kill, (victim, signal.SIGKILL))
        timer.start()
        for _ in range(3):
            assert small.all_ways(executor=pool) == expected
        timer.join()
    workers._anew.clear()


def dies_while_it_writes(mark):
    """In a worker, the first time: half of an answer, and the end."""
    if not mark.exists():
        mark.touch()
        frame = sys._getframe()
        while "result_queue" not in frame.f_locals:
            frame = frame.f_back
        os.write(frame.f_locals["result_queue"]._writer.fileno(), struct.pack("!i", 1000) + b"half")
        os.kill(os.getpid(), signal.SIGKILL)
    return "done"


def test_a_process_killed_while_it_writes(tmp_path):
    """Python's pool then reads for ever: another worker might still write the rest."""
    with workers.processes(2) as pool:
        task = workers.Task(dies_while_it_writes, (), (tmp_path / "mark",))
        assert workers.Workers(pool).results([task]) == ["done"]
    workers._anew.clear()


def test_processes_leave_signals_to_their_parent():
    """A terminal sends them to all that run in it; what they mean, one of them says."""
    with workers.processes(1) as pool:
        handlers = [pool.submit(signal.getsignal, number).result() for number in (signal.SIGINT, signal.SIGHUP)]
    assert handlers == [signal.SIG_IGN, signal.SIG_IGN]


PARENT = """
import os, signal
from gradwalk import workers
if __name__ == "__main__":
    pool = workers.processes(1)
    print(pool.submit(os.getpid).result(), flush=True)
    signal.pause()
"""


def test_processes_end_with_their_parent(tmp_path):
    """Also where it was killed, and could tell nobody."""
    (tmp_path / "parent.py").write_text(PARENT)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    parent = subprocess.Popen(
        [sys.executable, str(tmp_path / "parent.py")], stdout=subprocess.PIPE, text=True, env=environment
    )
    worker = int(parent.stdout.readline())
    parent.kill()
    try:
        parent.communicate(timeout=30)  # what they print to is at its end when the last of them is gone
    except subprocess.TimeoutExpired:
        os.kill(worker, signal.SIGKILL)
        raise


HEARD_BY_ALL = """
import os, signal, sys
from gradwalk import workers
if __name__ == "__main__":
    number, heard = int(sys.argv[1]), []
    signal.signal(number, lambda *_: heard.append(1))
    pool = workers.processes(2)
    for pool in (pool, workers._like(pool)):
        os.killpg(0, number)
        assert pool.submit(len, "done").result() == 4
    print(len(heard))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_processes_that_only_start_leave_signals_to_their_parent(tmp_path, number):
    """It comes before they can ignore it themselves; Python's own process beside them says nothing either."""
    (tmp_path / "parent.py").write_text(HEARD_BY_ALL)
    command = [sys.executable, str(tmp_path / "parent.py"), str(int(number))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, start_new_session=True, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == ("2\n", "", 0)


class Deserted(Executor):
    """As Dask's, of a cluster whose workers are gone: what is given to it waits."""

    def __init__(self):
        self._client = SimpleNamespace(ncores=dict)

    def submit(self, function, /, *args, **kwargs):
        return Future()


def test_a_cluster_without_workers(monkeypatch):
    """One clear error, after a while."""
    monkeypatch.setattr(workers, "PATIENCE", 0.01)
    monkeypatch.setattr(workers, "WITHOUT_WORKERS", 3)
    with pytest.raises(WorkerError, match="the cluster has had no workers for some minutes"):
        workers.Workers(Deserted()).results([workers.Task(len, (), ("",))])


def test_a_cluster_that_grows_in_time(monkeypatch):
    """Looks that found nobody are counted anew once somebody was there, or something was done."""
    monkeypatch.setattr(workers, "WITHOUT_WORKERS", 3)
    cluster = Deserted()
    looking = workers.Workers(cluster)
    for found in ({}, {}, {"tcp://one": 1}, {}, {}):
        cluster._client.ncores = lambda found=found: found
        looking._look_after({cluster})
    done = Future()
    done.set_result("")
    cluster.submit = lambda *_: done
    assert looking.results([workers.Task(len, (), ("",))]) == [""]
    looking._look_after({cluster})
    looking._look_after({cluster})
    with pytest.raises(WorkerError, match="the cluster has had no workers for some minutes"):
        looking._look_after({cluster})


class Knowing(Executor):
    """One of whom some things are known."""

    def __init__(self, knows):
        vars(self).update(knows)


@pytest.mark.parametrize(
    ("knows", "count"),
    [
        ({"_client": SimpleNamespace(ncores=lambda: {"a": 4, "b": 4})}, 2),
        ({"_client": SimpleNamespace(ncores=dict)}, 1),
        ({"num_workers": 3, "_max_workers": 7}, 3),
        ({"_max_workers": 7}, 7),
        ({}, os.cpu_count()),
        ({"num_workers": "many"}, os.cpu_count()),
    ],
    ids=["cluster", "empty cluster", "told", "pool", "unknown", "not a number"],
)
def test_how_many_workers_there_are(knows, count):
    """As far as that is known; else as many as this machine has cores."""
    assert workers.Workers(Knowing(knows)).count == count


def test_what_was_used_last_is_kept_longest(monkeypatch):
    """A worker forgets what it has not needed for the longest time; what one piece of work needs, it keeps."""
    monkeypatch.setattr(workers, "KEPT", 2)
    monkeypatch.setattr(workers, "_here", {})

    def done(*keys, sent=()):
        return workers._done_here(lambda *given: given, keys, {key: pickle.dumps(key) for key in sent}, ())

    assert done("a", "b", sent="ab") == ("a", "b")
    assert done("a") == ("a",)
    assert done("c", sent="c") == ("c",)
    assert workers.Missing({"b"}) == done("a", "b", "c")
    assert done("a", "b", "c", sent="b") == ("a", "b", "c")
    assert done("a", "b", "c") == ("a", "b", "c")


def test_a_pool_is_made_anew_as_it_was():
    """As many processes, started in the same way, with the same to do at first; of other kinds nothing is known."""
    with workers.processes(3) as pool, workers._like(pool) as anew:
        kept = ("_max_workers", "_mp_context", "_initializer", "_initargs")
        assert [vars(pool)[name] for name in kept] == [vars(anew)[name] for name in kept]
        assert (type(pool), 3) == (type(anew), anew._max_workers)
    assert workers._like(Elsewhere(2)) is None


class GaveUpError(Exception):
    """As Dask has them."""

    __module__ = "distributed.scheduler"


@pytest.mark.parametrize(
    ("raised", "seen", "words"),
    [
        (GaveUpError("killed 3 times"), WorkerError, "executor: the cluster gave work up: killed 3 times"),
        (KeyError("x"), KeyError, "x"),
    ],
    ids=["cluster", "function"],
)
def test_what_is_not_begun_is_called_off(raised, seen, words):
    """Where a piece of work raises: the others are nobody's any more."""
    futures = [Future(), Future()]
    futures[0].set_exception(raised)
    given = iter(futures)
    executor = Elsewhere(2)
    executor.submit = lambda *_: next(given)
    with pytest.raises(seen, match=words):
        workers.Workers(executor).results([workers.Task(len, (), ("",)) for _ in futures])
    assert futures[1].cancelled()


def test_workers_of_a_cluster(monkeypatch):
    """Of the one that is named, which does not become everybody's; each piece of work is done, alike or not."""
    asked = []

    class Client:
        def __init__(self, address, **settings):
            if address == "nowhere":
                raise OSError("nobody there")
            asked.append((address, settings))

        def get_executor(self, **settings):
            return settings

    monkeypatch.setitem(sys.modules, "distributed", SimpleNamespace(Client=Client))
    assert workers.dask("tcp://host:1") == {"pure": False}
    assert asked == [("tcp://host:1", {"timeout": "10s", "set_as_default": False})]
    with pytest.raises(ValueError, match=r"dask: expected a scheduler at nowhere: nobody there"):
        workers.dask("nowhere")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ValueError, match=r"pip install 'gradwalk\[cluster\]'"):
        workers.dask("tcp://host:1")
