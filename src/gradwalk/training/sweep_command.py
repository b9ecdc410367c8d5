"""`gradwalk sweep`: the options of `gradwalk train`, each with several values; `sweep.py` runs them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gradwalk import engine
from gradwalk.training.commands import (
    COMPILED,
    COUNT,
    DATA,
    FILE,
    LEARNING,
    MODEL,
    OUTPUT,
    PROCESSES,
    RUN,
    check_plot,
    engine_option,
    may_open,
    one_line_errors,
    switch_engine,
    train,
)
from gradwalk.training.options import SectionCommand, SectionOption, option

LARGEST_RANGE = 10_000  # whole numbers that A..B may stand for
FOLDER = click.Path(path_type=Path, file_okay=False)


class Several(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # newer clicks' is generic
    """Values with commas between them, of one type; 1..64 are whole numbers, or any number where those are taken."""

    def __init__(self, each: Any) -> None:
        self.each, self.name = each, each.name

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        if isinstance(value, tuple):
            return value
        if not isinstance(value, str):
            return (value,)
        found: list[Any] = []
        for part in value.split(","):
            low, dots, high = part.partition("..")
            if not dots or isinstance(self.each, click.Choice | click.types.StringParamType):
                found.append(self.each.convert(part.strip(), parameter, context))
                continue
            first, last = (self.each.convert(end.strip(), parameter, context) for end in (low, high))
            if not first < last:
                self.fail(f"{part!r} does not go from a number to a larger one.", parameter, context)
            found += self._between(first, last, part, parameter, context)
        return tuple(dict.fromkeys(found))

    def _between(self, first: Any, last: Any, part: str, *where: Any) -> list[Any]:
        if isinstance(first, float):
            from gradwalk.training.sweep import Span

            return [Span(first, last)]
        if last - first >= LARGEST_RANGE:
            self.fail(f"{part!r} are more than {LARGEST_RANGE:,} numbers.", *where)
        return list(range(first, last + 1))


def _varied() -> list[click.Parameter]:
    """Train's options that say what a run computes, with several values each."""
    made: list[click.Parameter] = []
    for given in train.params:
        if not isinstance(given, SectionOption) or given.section not in (DATA, MODEL, LEARNING) or given.name == "data":
            continue
        settings: dict[str, Any] = {"type": Several(given.type), "default": given.default, "metavar": "N,N"}
        if given.is_flag:
            settings = {"type": Several(click.BOOL), "default": False, "is_flag": False, "flag_value": "yes",
                        "metavar": "[yes,no]"}  # fmt: skip
        elif isinstance(given.type, click.Choice):
            settings["metavar"] = ",".join(given.type.choices)
        elif isinstance(given.type, click.FloatRange):
            settings["metavar"] = "X,X"
        elif isinstance(given.type, click.types.StringParamType):
            settings["metavar"] = "NAME,NAME"
        shown = given.default is not None and not given.is_flag
        made.append(SectionOption(given.opts, section=given.section, help=given.help, show_default=shown, **settings))
    return made


@click.command(cls=SectionCommand)
@option(DATA, "--data", type=FILE, help="A UTF-8 text file, one document per line.  [default: bundled first names]")
@option(RUN, "--random", "drawn", type=COUNT, help="So many combinations at random, each with every seed.")
@option(RUN, "--folder", type=FOLDER, metavar="FOLDER", help="A new one for results.  [default: gradwalk-sweep]")
@option(RUN, "--resume", type=FOLDER, metavar="FOLDER", help="Go on with a sweep that was stopped.")
@option(
    RUN, "--eval-every", type=COUNT, metavar="STEPS", help="Measure the validation loss this often.  [default: 100]"
)
@option(RUN, "--eval-documents", type=COUNT, help="On this many of the documents set aside.  [default: 200]")
@option(
    RUN, "--workers", type=PROCESSES, help="Processes.  [default: one per core, where one program does not serve all]"
)
@option(RUN, "--dask", metavar="ADDRESS", help="Work on this Dask cluster, such as tcp://host:8786.")
@engine_option(RUN, COMPILED)
@option(OUTPUT, "--plot", type=FILE, metavar="FILE.svg|png", help="Draw the results into this file.")
@option(OUTPUT, "--quiet", "-q", is_flag=True, help="Print only the best checkpoint's path.")
@option(OUTPUT, "--json", "as_json", is_flag=True, help="Print one JSON object at the end, for programs.")
@click.pass_context
def sweep(context: click.Context, /, **given: Any) -> None:
    """Train many small GPTs side by side, with every combination of options, and keep the best.

    The options of `gradwalk train`, each with one value or several: 0.003,0.01,0.03 or, of whole numbers, 1..64. With
    --random N, combinations are drawn, and 0.001..0.1 is any number between. A run is what `gradwalk train` makes of
    the same options. FOLDER gets best.safetensors and runs.jsonl, a line for each run; Ctrl-C saves.

    \b
    Examples:
      gradwalk sweep --seed 1..64
      gradwalk sweep --lr 0.003,0.01,0.03 --n-layer 1,2 --seed 1..4 --plot sweep.svg
      gradwalk sweep --lr 0.001..0.1 --beta2 0.9,0.95,0.99 --random 20
      gradwalk sweep --resume gradwalk-sweep
    """
    typed = {name for name in given if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE}
    wanted = given["engine_name"]
    switch_engine("native" if wanted == COMPILED else wanted)
    given["compiled"] = (wanted == COMPILED or (wanted is None and engine.NAME == "native"),)
    with one_line_errors():
        context.exit(_sweep(given, typed))


sweep.params[1:1] = _varied()


def _sweep(given: dict[str, Any], typed: set[str]) -> int:
    from dataclasses import fields

    from gradwalk.training.loop import Configuration
    from gradwalk.training.report import reporter_for
    from gradwalk.training.session import PlanError
    from gradwalk.training.sweep import SweepPlan, run_sweep, spelled
    from gradwalk.training.sweep_report import KINDS

    names = [field.name for field in fields(Configuration)]
    if given["resume"]:
        fixed = typed & {*names, "engine_name", "drawn", "folder", "eval_every", "eval_documents"}
        for name in sorted(fixed):
            shown = {"drawn": "random", "engine_name": "engine"}.get(name, name)
            raise PlanError(f"{given['resume']}: {spelled(shown)} cannot change when a sweep is resumed")
    if given["dask"] is not None and given["workers"] is not None:
        raise PlanError("--workers and --dask: expected one of them, got both")
    check_plot(given["plot"])
    options = {name: (None,) if given[name] is None else given[name] for name in names}
    plan = SweepPlan(
        data=given["data"], resume=given["resume"], folder=given["folder"], evaluate_every=given["eval_every"],
        evaluated_documents=given["eval_documents"], drawn=given["drawn"], workers=given["workers"],
        dask=given["dask"], plot=given["plot"],
    )  # fmt: skip
    return run_sweep(plan, options, reporter_for(given["quiet"], given["as_json"], KINDS), may_open)
