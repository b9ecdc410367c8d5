"""What programs do on a GPU, beside the same model written by hand in jax: `python benchmarks/gpu.py`.

It needs jax that sees a GPU (pip install 'jax[cuda12]'), and nothing else but this repository: gradwalk need not be
built. With --cpu it runs, small, to be tried out where there is none.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "compiler")]
for needed in ("numpy", "jax"):
    if importlib.util.find_spec(needed) is None:
        sys.exit(f"gpu.py: expected {needed} to be installed; pip install numpy 'jax[cuda12]'")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

warnings.simplefilter("ignore")  # of the reference engine, where gradwalk is not built
import models as small_models  # noqa: E402
from results import Table, duration, figure, parsed_arguments, record, show  # noqa: E402

import gradwalk  # noqa: E402
from gradwalk.optim import Adam  # noqa: E402

jax.config.update("jax_enable_x64", True)
HEADS, WIDTH, PLACES, LETTERS = 4, 16, 8, 27
SIZES = (1, 4, 8, 12, 16, 64, 256, 1024, 4096)


def seconds(function: Callable[[], Any], repeats: int = 10) -> float:
    """The fastest of some runs, after one that compiles."""
    jax.block_until_ready(function())
    best = float("inf")
    for _ in range(repeats):
        began = time.perf_counter()
        jax.block_until_ready(function())
        best = min(best, time.perf_counter() - began)
    return best


def by_hand(weights: dict[str, Any], tokens: Any) -> Any:
    """The GPT of gradwalk.nn in jax.numpy, for one name."""

    def normed(x: Any) -> Any:
        return x * ((x * x).mean(axis=-1, keepdims=True) + 1e-5) ** -0.5

    x = normed(weights["token_embedding.weight"][tokens[:-1]] + weights["position_embedding.weight"])
    block = {name.split(".")[-1]: value for name, value in weights.items() if name.startswith("blocks")}
    h = normed(x)
    query, key, value = ((h @ block[name].T).reshape(PLACES, HEADS, WIDTH // HEADS) for name in ("wq", "wk", "wv"))
    scores = jnp.einsum("ihd,jhd->hij", query, key) / (WIDTH // HEADS) ** 0.5
    scores = jnp.where(jnp.tril(jnp.ones((PLACES, PLACES), bool)), scores, -jnp.inf)
    gathered = jnp.einsum("hij,jhd->ihd", jax.nn.softmax(scores), value).reshape(PLACES, WIDTH)
    x = x + gathered @ block["wo"].T
    x = x + jnp.maximum(normed(x) @ block["up"].T, 0.0) ** 2 @ block["down"].T
    logits = x @ weights["head.weight"].T
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[1:, None], axis=1).mean()


def gpt(seed: int = 1) -> Any:
    model = gradwalk.nn.GPT(seed=seed)
    rng = np.random.default_rng(seed)
    for parameter in model.parameters():
        parameter.data = rng.normal(0.0, 0.05)
    return model


def random_names(count: int) -> Any:
    return np.random.default_rng(0).integers(0, LETTERS, (count, PLACES + 1))


def names_a_second(count: int) -> Table:
    """The gradient of the mean loss over many names: the exported program, and the same model by hand."""
    model = gpt()
    exported = gradwalk.compile(lambda tokens: model.loss(tokens)).to_jax(random_names(1)[0].tolist())
    state, rows = model.state_dict(), random_names(count)

    @jax.jit
    @jax.value_and_grad
    def ours(leaves: Any, rows: Any) -> Any:
        return jax.vmap(exported, in_axes=(None, 0))(leaves, rows)[0].mean()

    @jax.jit
    @jax.value_and_grad
    def theirs(weights: Any, rows: Any) -> Any:
        return jax.vmap(by_hand, in_axes=(None, 0))(weights, rows).mean()

    seen = []
    for kind in (jnp.float32, jnp.float64):
        leaves = jnp.asarray(exported.numbers(), kind)
        numbers, tokens = jnp.asarray(rows, kind), jnp.asarray(rows)
        weights = {name: jnp.asarray(tensor, kind) for name, tensor in state.items()}
        apart = abs(float(ours(leaves, numbers)[0] - theirs(weights, tokens)[0]))
        assert apart < (1e-3 if kind is jnp.float32 else 1e-10), f"the two models differ by {apart}"
        a = seconds(functools.partial(ours, leaves, numbers))
        b = seconds(functools.partial(theirs, weights, tokens))
        seen.append([figure(number) for number in (count / a / 1e6, count / b / 1e6, b / a)])
    said = (f"the exported GPT over {count:,} names, million names a second", "the same by hand", "exported / by hand")
    return [list(row) for row in zip(said, *seen, strict=True)]


def stepping(compiled: Any, model: Any, rows: Any, optimiser: Any) -> Callable[[], Any]:
    """What makes a step of Adam for each of these models, each with weights and a name of its own."""
    many, inputs = compiled.models(rows, model, device="jax"), random_names(len(rows))
    step = many.jitted(compiled.version_for((inputs[0].tolist(),), "models"), optimiser)
    state: list[Any] = [many.weights, *(jnp.zeros_like(many.weights) for _ in optimiser.moments)]
    numbers, settings = jnp.asarray(inputs), jnp.asarray([optimiser.settings(optimiser.lr, 0)] * len(rows))

    def again() -> Any:
        values, _, state[:] = step(list(state), numbers, settings)
        return values

    return again


def models_a_second(count: int) -> list[str]:
    """A step of Adam for each of many GPTs."""
    model = gpt()
    compiled = gradwalk.compile(lambda tokens: model.loss(tokens))
    first = np.array([value.data for value in model.parameters()])
    rows = first + np.random.default_rng(2).normal(0.0, 0.01, (count, len(first)))
    seen = [f"{count:,} GPTs, million steps of a model a second"]
    for kind in ("float32", "float64"):
        jax.config.update("jax_enable_x64", kind == "float64")
        taken = seconds(stepping(compiled, model, rows, Adam(model.parameters())), repeats=5)
        seen.append(figure(count / taken / 1e6))
    jax.config.update("jax_enable_x64", True)
    return seen


def small_batches(sizes: Sequence[int]) -> Table:
    """From how many on a GPU pays: what a gradient, and a step of a model, take of few and of many."""
    model = gpt()
    compiled = gradwalk.compile(lambda tokens: model.loss(tokens))
    exported = compiled.to_jax(random_names(1)[0].tolist())
    leaves, optimiser = jnp.asarray(exported.numbers()), Adam(model.parameters())

    @jax.jit
    @jax.value_and_grad
    def mean(leaves: Any, rows: Any) -> Any:
        return jax.vmap(exported, in_axes=(None, 0))(leaves, rows)[0].mean()

    table = [["how many", "names, each", "models, each"]]
    for count in sizes:
        names = jnp.asarray(random_names(count), jnp.float64)
        step = stepping(compiled, model, np.random.default_rng(2).normal(0.0, 0.05, (count, len(leaves))), optimiser)
        taken = seconds(functools.partial(mean, leaves, names)), seconds(step)
        table.append([f"{count:,}", *(duration(each / count) for each in taken)])
    return table


def compile_times() -> Table:
    """CPU seconds that XLA takes for the value and the gradient of six models, each in a process of its own.

    On a GPU it tries out ways to multiply matrices, which can be left out.
    """
    table = [["XLA compiles", "processor time", "without trying out products"]]
    for name in SIX:
        made = [["--compile", name, *untried] for untried in ([], ["--untried"])]
        runs = [subprocess.run([sys.executable, __file__, *each], capture_output=True, text=True) for each in made]
        table.append([name, *(duration(float(run.stdout)) for run in runs)])
    return table


def compile_time(name: str, untried: bool) -> float:
    function, args, _ = SIX[name]()
    exported = gradwalk.compile(function).to_jax(*args)
    given = jnp.asarray(exported.numbers()), jnp.asarray(exported.arguments(*args))
    jax.block_until_ready(jax.jit(jnp.sin)(given[1]))  # what is made ready for the first program of all
    lowered = jax.jit(jax.value_and_grad(exported, (0, 1), has_aux=True)).lower(*given)
    before = resource.getrusage(resource.RUSAGE_SELF)
    lowered.compile(compiler_options={"xla_gpu_autotune_level": 0} if untried else None)
    after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def gpt_of_one_name() -> Any:
    model = gpt()
    return (lambda tokens: model.loss(tokens)), (random_names(1)[0].tolist(),), []


SIX: dict[str, Callable[[], Any]] = {
    "Rosenbrock": small_models.rosenbrock, "MLP": small_models.multilayer_perceptron,
    "scalar GPT": small_models.scalar_gpt, "nn.GPT": gpt_of_one_name,
    "Black–Scholes": small_models.black_scholes, "n-body": small_models.bodies,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cpu", action="store_true", help="small, on whatever device there is")
    parser.add_argument("--compile", choices=SIX, help="only how long XLA takes for this model")
    parser.add_argument("--untried", action="store_true", help="without trying out ways to multiply matrices")
    arguments = parsed_arguments(parser)
    if arguments.compile:
        print(compile_time(arguments.compile, arguments.untried))
        return
    devices = jax.devices()
    if not arguments.cpu and devices[0].platform != "gpu":
        sys.exit("gpu.py: expected jax to see a GPU; pip install 'jax[cuda12]', or --cpu to try it out")
    names, models = (256, 64) if arguments.cpu else (65_536, 65_536)
    speeds = [["what", "float32", "float64"], *names_a_second(names), models_a_second(models)]
    tables = {
        "speeds": speeds,
        "small": small_batches(SIZES[:2] if arguments.cpu else SIZES),
        "compiling": compile_times(),
    }
    for table in tables.values():
        show(table)
    if arguments.record:
        record("gpu", tables, f"{devices[0].device_kind}, jax {jax.__version__}")


if __name__ == "__main__":
    main()
