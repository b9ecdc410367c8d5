"""Real clusters on this machine: Dask, loky and a job of MPI; a worker is killed in the middle of a step.

GRADWALK_KILLS says how often; the bits are those of one process every time.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import gradwalk
from gradwalk import workers
from gradwalk.training import data
from gradwalk.training.checkpoint import load
from gradwalk.training.loop import Configuration, Trainer

KILLS = int(os.environ.get("GRADWALK_KILLS", "1"))


def trained(executor=None, kill=None, steps=4):
    """The weights of a small run whose batches are shared; `kill` is called in the middle of a step."""
    settings = Configuration(steps=steps, batch_size=400, n_embd=8, n_head=2, block_size=5, compiled=True)
    trainer = Trainer(settings, data.read_documents(data.BUNDLED_NAMES)[:600])
    trainer.executor = executor
    for record in trainer.run():
        if record.step == 2 and kill is not None:
            timer = threading.Timer(random.uniform(0.0, 0.02), kill)
            timer.start()
    if kill is not None:
        timer.join()
    return [value.data for value in trainer.model.parameters()], list(trainer.losses), trainer.validation_losses


@pytest.fixture(scope="module")
def alone():
    return trained()


def killing(executor):
    """Ends one of the executor's workers, which is asked who it is before."""
    victim = executor.submit(os.getpid).result()
    return lambda: os.kill(victim, signal.SIGKILL)


def test_processes(alone):
    with workers.processes(2) as pool:
        assert trained(pool) == alone
        for _ in range(KILLS):
            assert trained(pool, killing(workers.Workers(pool).executor)) == alone


def test_loky(alone):
    import loky

    pool = loky.get_reusable_executor(max_workers=2)
    assert trained(pool) == alone
    for _ in range(KILLS):
        assert trained(pool, killing(workers.Workers(pool).executor)) == alone
    workers.Workers(pool).executor.shutdown(kill_workers=True)


def test_dask(alone, tmp_path):
    """A LocalCluster; `gradwalk train --dask` and `gradwalk sweep --dask` reach it by its address."""
    import dask
    from distributed import Client, LocalCluster

    # a LocalCluster gives up a worker that is not there 15 seconds after it was lost, though it was there in between,
    # and was lost again: where one is killed every second, that comes to be
    dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"})
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        pool = client.get_executor(pure=False)
        assert trained(pool) == alone
        for _ in range(KILLS):
            assert trained(pool, killing(pool)) == alone
        common = ("--n-embd", "4", "--n-head", "2", "--block-size", "4", "--steps", "4", "-q")
        by_dask = ("--dask", cluster.scheduler_address)
        for name, more in (("here", ()), ("there", by_dask)):
            command("train", *common, "--batch-size", "300", "--checkpoint", tmp_path / name, *more)
            command("sweep", *common, "--seed", "1..3", "--folder", tmp_path / f"{name}-sweep", *more)
        one, other = load(tmp_path / "here"), load(tmp_path / "there")
        assert one.losses == other.losses
        assert all(np.array_equal(one.model[name], other.model[name]) for name in one.model)
        lines = [
            sorted((tmp_path / f"{name}-sweep" / "runs.jsonl").read_text().splitlines()) for name in ("here", "there")
        ]
        assert lines[0] == lines[1]


def command(*arguments):
    subprocess.run([sys.executable, "-m", "gradwalk", *map(str, arguments)], check=True, timeout=200)


JOB = """
import os, signal, sys, threading
from mpi4py.futures import MPIPoolExecutor
from gradwalk.training import data
from gradwalk.training.checkpoint import load, save
from gradwalk.training.loop import Configuration, Trainer, configuration_of

if __name__ == "__main__":
    path, kill = sys.argv[1], sys.argv[2] == "kill"
    documents = data.read_documents(data.BUNDLED_NAMES)[:600]
    if os.path.exists(path):
        checkpoint = load(path)
        trainer = Trainer.resumed(checkpoint, documents, configuration_of(checkpoint))
    else:
        settings = Configuration(steps=4, batch_size=400, n_embd=8, n_head=2, block_size=5, compiled=True)
        trainer = Trainer(settings, documents)
    with MPIPoolExecutor() as trainer.executor:
        for record in trainer.run():
            save(trainer.checkpoint(), path)
            if record.step == 2 and kill:
                victim = trainer.executor.submit(os.getpid).result()
                threading.Timer(0.003, os.kill, (victim, signal.SIGKILL)).start()
        threading.Event().wait(1.0 if kill else 0.0)
"""


def test_mpi(alone, tmp_path):
    """A job of two workers and the one who hands out; MPI ends all of a job where one dies, and the next goes on."""
    (tmp_path / "job.py").write_text(JOB)
    mpiexec = Path(sys.executable).parent / "mpiexec"

    def job(name, way):
        words = [mpiexec, "-n", "3", sys.executable, "-m", "mpi4py.futures", tmp_path / "job.py", tmp_path / name, way]
        return subprocess.run(words, timeout=120, capture_output=True).returncode

    for number in range(KILLS):
        assert job(f"run-{number}", "kill") != 0
        assert 2 <= load(tmp_path / f"run-{number}").step <= 4
        assert job(f"run-{number}", "go on") == 0
        checkpoint = load(tmp_path / f"run-{number}")
        assert checkpoint.losses == alone[1]
        weights = np.concatenate([np.ravel(tensor) for tensor in checkpoint.model.values()])
        assert sorted(weights.tolist()) == sorted(alone[0])


def test_a_scheduler_that_is_not_there():
    with pytest.raises(ValueError, match=r"dask: expected a scheduler at tcp://127\.0\.0\.1:1"):
        workers.dask("tcp://127.0.0.1:1")


def test_leaves_in_workers_are_their_own():
    """Weights that move between two steps are read anew: what travels once is the program, not the numbers."""
    weight = gradwalk.Value(2.0)
    compiled = gradwalk.compile(lambda x: weight * x)
    with workers.processes(1) as pool:
        assert compiled.map_backward([3.0], executor=pool) == [6.0]
        weight.data = 5.0
        assert compiled.map_backward([3.0], executor=pool) == [15.0]
    assert weight.grad == 6.0
