"""Without NumPy all but compiled functions and arrays works; what needs it says so in one sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import gradwalk.engine

START = """
import sys

class NoNumPy:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "numpy":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NoNumPy())
"""

LIBRARY = """
import json, random
import gradwalk
from gradwalk import Value, nn, optim

a = Value(2.0)
f = (a * 3.0).tanh()
f.backward()
assert len(list(gradwalk.walk(f))) == 3 and a.grad > 0.0
cube = lambda x: x**3
assert (gradwalk.grad(cube)(2.0), gradwalk.hessian(cube)(2.0), gradwalk.jvp(cube)(2.0, 1.0)) == (12.0, 12.0, 12.0)
assert gradwalk.gradcheck(cube, 2.0)
random.seed(1)
model, other = nn.MLP(2, [3, 1]), nn.MLP(2, [3, 1])
adam = optim.Adam(model.parameters())
model([1.0, 2.0]).backward()
adam.step()
other.load_state_dict(model.state_dict())
assert [p.data for p in other.parameters()] == [p.data for p in model.parameters()]
again = optim.Adam(other.parameters())
again.load_state_dict(adam.state_dict())
assert {name: list(part) for name, part in again.state_dict().items() if name != "step"} == {
    name: list(part) for name, part in adam.state_dict().items() if name != "step"}
other.load_state_dict(json.loads(json.dumps({name: part.tolist() for name, part in model.state_dict().items()})))
gpt = nn.GPT(4, n_embd=4, n_head=2, block_size=4)
gpt.loss([0, 1, 2, 3]).backward()
for name in ("compile", "vmap", "numpy", "sparse_jacobian"):
    try:
        getattr(gradwalk, name)
    except ImportError as error:
        assert str(error) == f"gradwalk.{name}: expected numpy to be installed; pip install numpy", error
    else:
        raise AssertionError(name)
assert "numpy" not in sys.modules
"""

COMMAND = """
from gradwalk.cli import main
sys.argv = ["gradwalk", *sys.argv[1:]]
main()
"""


def run(program: str, *arguments: str, engine: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "GRADWALK_ENGINE": engine}
    command = [sys.executable, "-W", "error", "-c", START + program, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("engine", gradwalk.engine.ENGINES)
def test_library(engine: str, tmp_path: Path) -> None:
    """Value, walk, derivatives, nn with its states, optim."""
    done = run(LIBRARY, engine=engine, folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_commands(tmp_path: Path) -> None:
    """A run is trained, saved, resumed and sampled from; a formula is traced; moons have a picture."""
    small = ("--n-embd", "4", "--n-head", "2", "--block-size", "4", "--eval-documents", "2", "--samples", "1")
    for arguments in (
        ("trace", "relu(a*b + d)", "a=2", "b=-3", "d=10"),
        ("train", *small, "--steps", "2", "--checkpoint", "run", "--plot", "loss.svg"),
        ("train", "--resume", "run", "--steps", "3", "--eval-documents", "2", "--samples", "1"),
        ("sample", "run", "-n", "2"),
        ("train", "moons", "--steps", "1", "--points", "8"),
        ("doctor",),
    ):
        done = run(COMMAND, *arguments, engine="reference", folder=tmp_path)
        assert (done.returncode, done.stderr) == (0, ""), arguments
    assert (tmp_path / "loss.svg").is_file()


def test_compiled_training_says_what_is_missing(tmp_path: Path) -> None:
    """Native training is not compiled then; whoever asks for it is told in one line."""
    asked = run(COMMAND, "train", "--engine", "compiled", engine="native", folder=tmp_path)
    assert (asked.returncode, asked.stderr) == (
        2, "gradwalk: --engine compiled: expected numpy to be installed; pip install numpy\n",
    )  # fmt: skip
