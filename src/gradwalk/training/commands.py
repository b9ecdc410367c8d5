"""`gradwalk train`, `gradwalk train moons` and `gradwalk sample`: their options, and what bad input comes to.

Only click is imported here; each command imports what it needs itself, so that --help is quick.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click

from gradwalk import engine
from gradwalk.errors import WorkerError
from gradwalk.expression import printable
from gradwalk.files import special_file
from gradwalk.optim import OPTIMISERS, SCHEDULES, takers
from gradwalk.training.options import Decorated, FiniteFloat, SectionCommand, SectionGroup, option

FILE = click.Path(path_type=Path)
LARGEST = 2**63 - 1  # what a checkpoint takes
COUNT, COUNT_OR_NONE = click.IntRange(1, LARGEST), click.IntRange(0, LARGEST)
PROCESSES, POINTS = click.IntRange(1, 1024), click.IntRange(4, 10_000)  # what there is room for
LARGEST_SAMPLE = 1_000_000  # documents; some minutes
POSITIVE = FiniteFloat(min=0.0, min_open=True)
NOT_NEGATIVE = FiniteFloat(min=0.0)
SHARE = FiniteFloat(min=0.0, max=1.0, max_open=True)


def _of(setting: str) -> str:
    """Whose setting it is, at the beginning of what is said about it."""
    return f"{', '.join(takers(setting))}: "


DATA, MODEL, LEARNING, RUN, OUTPUT = "Data", "Model", "Learning", "Run and checkpoints", "Output"
MOONS, SAMPLING = "Moons", "Sampling"


COMPILED = "compiled"


def engine_option(section: str, *more: str) -> Callable[[Decorated], Decorated]:
    explained = "What to run on; native and reference give the same numbers, to the bit."
    if more:
        explained += " compiled, the default, is the native engine with the model compiled: the last bits differ."
    return option(section, "--engine", "engine_name", type=click.Choice((*more, *engine.ENGINES)), help=explained)


# ---------------------------------------------------------------- train


@click.group(cls=SectionGroup, invoke_without_command=True)
@option(DATA, "--data", type=FILE, help="A UTF-8 text file, one document per line.  [default: bundled first names]")
@option(
    DATA,
    "--validation-share",
    type=SHARE,
    default=0.1,
    help="Share of the documents set aside for validation.",
)
@option(MODEL, "--n-embd", type=COUNT, default=16, help="Numbers that stand for one token.")
@option(MODEL, "--n-head", type=COUNT, default=4, help="Attention heads; n-embd must be divisible by it.")
@option(MODEL, "--n-layer", type=COUNT, default=1, help="Blocks of attention and feed-forward.")
@option(MODEL, "--block-size", type=COUNT, default=8, help="Characters of a document that the model sees.")
@option(MODEL, "--activation", default="relu_squared", metavar="NAME", help="Such as relu, gelu, silu, tanh.")
@option(MODEL, "--tied", is_flag=True, help="Use the token embedding as the output layer too.")
@option(LEARNING, "--steps", type=COUNT_OR_NONE, default=500, help="Updates of the parameters, in all.")
@option(LEARNING, "--batch-size", type=COUNT, default=1, help="Documents per step.")
@option(LEARNING, "--lr", type=NOT_NEGATIVE, default=0.01, help="Learning rate.")
@option(
    LEARNING,
    "--schedule",
    type=click.Choice(list(SCHEDULES)),
    default="linear",
    help="How the learning rate falls over the steps.",
)
@option(LEARNING, "--warmup", type=COUNT_OR_NONE, default=0, help="Steps over which the learning rate first rises.")
@option(
    LEARNING,
    "--optimizer",
    type=click.Choice(list(OPTIMISERS)),
    default="adam",
    help="How a gradient becomes an update.",
)
@option(LEARNING, "--beta1", type=SHARE, default=0.9, help=_of("betas") + "memory of the gradients.")
@option(LEARNING, "--beta2", type=SHARE, default=0.95, help=_of("betas") + "memory of their squares.")
@option(LEARNING, "--momentum", type=SHARE, default=0.0, help=_of("momentum") + "memory of the direction.")
@option(LEARNING, "--nesterov", is_flag=True, help=_of("nesterov") + "look ahead along the momentum.")
@option(LEARNING, "--weight-decay", type=NOT_NEGATIVE, default=0.0, help=_of("weight_decay") + "pull towards zero.")
@option(LEARNING, "--clip", type=POSITIVE, help="Scale longer gradients down to this length.")
@option(LEARNING, "--seed", type=int, default=42, help="For initial weights, split and order.")
@option(RUN, "--resume", type=FILE, metavar="CHECKPOINT", help="Go on with a run, exactly as if it had not stopped.")
@option(RUN, "--stop-after", type=COUNT, metavar="STEP", help="Stop there for now, to be resumed later.")
@option(RUN, "--checkpoint", type=FILE, help="Where to save.  [default: a new gradwalk-*.safetensors here]")
@option(RUN, "--checkpoint-every", type=COUNT, default=100, metavar="STEPS", help="Save this often, and at the end.")
@option(RUN, "--overwrite", is_flag=True, help="Replace a checkpoint or metrics file that is there.")
@option(
    RUN, "--eval-every", type=COUNT, metavar="STEPS", help="Measure the validation loss this often.  [default: 100]"
)
@option(RUN, "--eval-documents", type=COUNT, help="On this many of the documents set aside.  [default: 200]")
@option(RUN, "--workers", type=PROCESSES, help="Processes that share the work of a large batch; the bits are the same.")
@option(RUN, "--dask", metavar="ADDRESS", help="Or the workers of a Dask cluster, such as tcp://host:8786.")
@engine_option(RUN, COMPILED)
@option(
    OUTPUT, "--samples", type=click.IntRange(0, LARGEST_SAMPLE), default=20, help="Documents to make up at the end."
)
@option(OUTPUT, "--metrics", type=FILE, help="Write one JSON line per step to this file.")
@option(
    OUTPUT,
    "--plot",
    type=FILE,
    metavar="FILE.svg|png",
    help="Draw the loss curve into this file; .png: gradwalk[draw].",
)
@option(OUTPUT, "--quiet", "-q", is_flag=True, help="Print only the checkpoint's path.")
@option(OUTPUT, "--json", "as_json", is_flag=True, help="Print one JSON object at the end, for programs.")
@click.pass_context
def train(context: click.Context, /, **given: Any) -> None:
    """Train a small GPT on names, character by character, and make up new ones.

    Without options: 500 steps on the bundled first names, which takes seconds. Ctrl-C saves, and says how to go on.

    \b
    Examples:
      gradwalk train
      gradwalk train --data names.txt --steps 5000 --batch-size 8 --metrics run.jsonl --plot loss.svg
      gradwalk train --resume gradwalk-names.safetensors --steps 1000
      gradwalk train moons
    """
    typed = {name for name in given if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE}
    if context.invoked_subcommand is not None:
        if typed:
            raise click.UsageError(f"options of {context.invoked_subcommand} belong after that word", context)
        return
    wanted = given.pop("engine_name")
    if wanted == COMPILED and not can_compile():
        raise click.ClickException("--engine compiled: expected numpy to be installed; pip install numpy")
    switch_engine("native" if wanted == COMPILED else wanted)
    given["compiled"] = wanted == COMPILED or (wanted is None and engine.NAME == "native" and can_compile())
    if wanted is not None:
        typed.add("compiled")
    with one_line_errors():
        context.exit(train_names(given, typed))


def can_compile() -> bool:
    """Whether NumPy, which compiled functions are made with, is here."""
    try:
        import numpy  # noqa: F401
    except ImportError:
        return False
    return True


def train_names(given: dict[str, Any], typed: set[str]) -> int:
    from dataclasses import fields

    from gradwalk.training.loop import Configuration
    from gradwalk.training.report import reporter_for
    from gradwalk.training.session import Plan, run

    names = {field.name for field in fields(Configuration)}
    options = {name: value for name, value in given.items() if name in names}
    if options["n_embd"] % options["n_head"] and not given["resume"]:
        raise ValueError(f"--n-embd {options['n_embd']} is not divisible by --n-head {options['n_head']}")
    check_plot(given["plot"])
    plan = Plan(
        data=given["data"], resume=given["resume"], checkpoint=given["checkpoint"],
        checkpoint_every=given["checkpoint_every"], evaluate_every=given["eval_every"],
        evaluated_documents=given["eval_documents"], stop_after=given["stop_after"], overwrite=given["overwrite"],
        metrics=given["metrics"], plot=given["plot"], samples=given["samples"], workers=given["workers"],
        dask=given["dask"],
    )  # fmt: skip
    return run(plan, options, typed & names, reporter_for(given["quiet"], given["as_json"]), may_open)


def may_open(data_name: str) -> bool:
    """Ask, where somebody can answer: a checkpoint that came from elsewhere may name any file."""
    if not (sys.stdin and sys.stdin.isatty() and sys.stderr and sys.stderr.isatty()):
        return False
    return click.confirm(f"The run's data is {printable(data_name)}. Open that file?", default=True, err=True)


# ---------------------------------------------------------------- train moons


@train.command(cls=SectionCommand)
@option(MOONS, "--steps", type=COUNT, default=100, help="Updates of the parameters.")
@option(MOONS, "--points", type=POINTS, default=100, help="Points, half of them on either moon.")
@option(MOONS, "--noise", type=NOT_NEGATIVE, default=0.1, help="Deviation by which they are moved.")
@option(MOONS, "--seed", type=int, default=1337, help="For points and initial weights.")
@engine_option(MOONS)
@option(
    OUTPUT,
    "--plot",
    type=FILE,
    metavar="FILE.svg|png",
    help="Draw the decision boundary into this file; .png: gradwalk[draw].",
)
@option(OUTPUT, "--quiet", "-q", is_flag=True, help="Print only the accuracy.")
@option(OUTPUT, "--json", "as_json", is_flag=True, help="Print one JSON object, for programs.")
def moons(
    steps: int, points: int, noise: float, seed: int, engine_name: str | None, plot: Path | None, quiet: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """Tell two moons apart: micrograd's demo.

    An MLP 2-16-16-1, a max-margin loss with an L2 penalty of 0.0001, and SGD whose rate falls from 1 to 0.1.

    \b
    Examples:
      gradwalk train moons
      gradwalk train moons --plot moons.svg
    """
    switch_engine(engine_name)
    with one_line_errors():
        check_plot(plot)
        from gradwalk.training.moons_report import train_and_show

        train_and_show(steps, points, noise, seed, plot, quiet, as_json)


# ---------------------------------------------------------------- sample


@click.command(cls=SectionCommand)
@click.argument("checkpoint", type=FILE)
@option(SAMPLING, "-n", "--count", type=click.IntRange(1, LARGEST_SAMPLE), default=20, help="How many.")
@option(
    SAMPLING, "--temperature", type=NOT_NEGATIVE, default=0.5, help="Higher is bolder; 0 always takes the likeliest."
)
@option(SAMPLING, "--top-k", type=COUNT, metavar="K", help="Choose among the K likeliest characters only.")
@option(SAMPLING, "--prompt", default="", metavar="TEXT", help="How each of them begins.")
@option(SAMPLING, "--seed", type=int, default=0, help="The same seed gives the same documents.")
@option(OUTPUT, "--json", "as_json", is_flag=True, help="Print a JSON list, for programs.")
def sample(
    checkpoint: Path, count: int, temperature: float, top_k: int | None, prompt: str, seed: int, as_json: bool
) -> None:
    """Make up documents with a trained model.

    \b
    Examples:
      gradwalk sample gradwalk-names.safetensors
      gradwalk sample gradwalk-names.safetensors -n 5 --prompt ka --temperature 0.8
    """
    with one_line_errors():
        import json
        import random

        from gradwalk.training.checkpoint import CheckpointError, load
        from gradwalk.training.loop import model_of
        from gradwalk.training.sampling import sample as make_up

        try:
            model, tokenizer = model_of(load(checkpoint))
        except CheckpointError as error:
            raise CheckpointError(f"{checkpoint}: {str(error).removeprefix(f'{checkpoint}: ')}") from None
        frozen, rng = model.frozen(), random.Random(seed)
        made = (make_up(frozen, tokenizer, rng, temperature, top_k, prompt) for _ in range(count))
        if as_json:
            print(json.dumps(list(made)))
        else:
            for document in made:
                print(printable(document))


# ---------------------------------------------------------------- what they share


def check_plot(plot: Path | None) -> None:
    """Before the work: whether the picture's form is known, and whether there is a folder for it."""
    if plot is None:
        return
    from gradwalk.show.dot import graphviz
    from gradwalk.show.plot import file_form

    if file_form(plot) == "png":
        graphviz()
    if not plot.parent.is_dir():
        raise ValueError(f"{plot}: there is no folder {plot.parent}")
    if kind := "a folder" if plot.is_dir() else special_file(plot):
        raise ValueError(f"{plot}: {kind}, expected a file")


def system_error(error: OSError) -> str:
    """The system's words, and what they are about: without a file, it is our own output."""
    where = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes | os.PathLike) else "standard output"
    return f"{where}: {error.strerror or error}"


@contextmanager
def one_line_errors() -> Iterator[None]:
    """What a user can put right becomes one line on stderr and status 2; nothing that is printed fails to encode."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise click.ClickException(system_error(error)) from None
    except (ValueError, ImportError, ArithmeticError, MemoryError, RecursionError, WorkerError) as error:
        kind = "" if isinstance(error, ValueError | ImportError | WorkerError) else f"{type(error).__name__} "
        raise click.ClickException(kind + " ".join(str(error).split())) from None


def switch_engine(name: str | None) -> None:
    """Start over on another engine, if another is asked for: which one it is was settled when gradwalk was imported."""
    if name is None or name == engine.NAME:
        return
    try:
        engine.load(name)
    except ImportError as error:
        raise click.ClickException(f"--engine {name}: not built here ({error}); see gradwalk doctor") from None
    command = [sys.executable, *sys.orig_argv[1:]]
    environment = {**os.environ, "GRADWALK_ENGINE": name}
    sys.stdout.flush()
    if os.name != "nt":
        os.execve(sys.executable, command, environment)
    sys.exit(subprocess.run(command, env=environment, check=False).returncode)
