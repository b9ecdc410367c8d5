"""The command line: `gradwalk COMMAND`. Each command imports what it needs itself, so that --help is quick.

A user's mistake is one line on stderr and status 2, never a traceback. What a command does is in its own module.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import click

from gradwalk._version import __version__
from gradwalk.errors import did_you_mean
from gradwalk.expression import printable
from gradwalk.training.commands import sample, system_error, train
from gradwalk.training.sweep_command import sweep


class OneLineErrors(click.Group):
    """A group that reports a mistake in one line, where click would print the usage as well."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:  # not every click knows which one was meant
            raise click.UsageError(
                f"there is no command {args[0]!r}{did_you_mean(args[0], self.commands)}", ctx
            ) from None

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = "gradwalk",
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        occupy_standard_descriptors()
        try:
            status = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
            if sys.stdout is not None:
                sys.stdout.flush()
        except click.UsageError as error:
            command = error.ctx.command_path if error.ctx else "gradwalk"
            message = error.format_message().rstrip(".")
            stop(2, f"{command}: {message}{' See' if message.endswith('?') else '; see'} {command} --help")
        except click.ClickException as error:
            stop(2, f"gradwalk: {error.format_message()}")
        except (click.Abort, KeyboardInterrupt):
            stop(130, "gradwalk: interrupted")
        except BrokenPipeError:  # the reader of our output has gone (`| head`)
            stop(1)
        except OSError as error:
            stop(2, f"gradwalk: {system_error(error)}")
        sys.exit(status if isinstance(status, int) else 0)


def occupy_standard_descriptors() -> None:
    """Where one of the three is closed, the next file that is opened would take its number, and get what is said."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def stop(status: int, line: str | None = None) -> NoReturn:
    """Leave with one line; what could not be written before is not tried again by python, with a complaint."""
    with suppress(OSError, ValueError):
        if line is not None:
            click.echo("\n".join(map(printable, line.split("\n"))), err=True)  # an excerpt with its caret is three
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        except AttributeError:  # it was closed when we started
            pass
    sys.exit(status)


@click.group(cls=OneLineErrors, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gradwalk", message="%(prog)s %(version)s")
@click.pass_context
def main(context: click.Context) -> None:
    """Backpropagation over plain Python numbers.

    \b
    Train a small GPT on names, and make up new ones:
      gradwalk train
    Watch the gradients of an expression move:
      gradwalk trace 'relu(a*b + d)' a=2 b=-3 d=10
    Run a micrograd or microgpt script on gradwalk, as it is:
      gradwalk run script.py
    See which engine is active, and what is installed:
      gradwalk doctor
    """
    if sys.stdout is None and context.invoked_subcommand != "run":  # a script may do as it likes
        raise click.ClickException("standard output is closed; > /dev/null throws it away")
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


main.add_command(train)
main.add_command(sample)
main.add_command(sweep)


class OfExpression(click.Command):
    """An expression may start with a minus, so what looks like an unknown option is an argument.

    Two are not: -h, where there is no value for an h, and a long one that is like an option.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = {arg.partition("=")[0] for arg in args if "=" in arg}
        options = [name for parameter in self.get_params(ctx) for name in parameter.opts if name.startswith("--")]
        for arg in args:
            if arg == "-h" and "h" not in given:
                return super().parse_args(ctx, ["--help"])
            if re.fullmatch("--[a-z]{3,}", arg) and arg not in options and arg[2:] not in given:
                meant = did_you_mean(arg, options)
                if meant:
                    raise click.UsageError(f"there is no option {arg!r}{meant}", ctx)
        return super().parse_args(ctx, args)


OF_EXPRESSION: dict[str, Any] = {
    "cls": OfExpression,
    "context_settings": {"ignore_unknown_options": True, "help_option_names": ["--help"]},
}


@main.command(**OF_EXPRESSION)
@click.option("--step", is_flag=True, help="One step at a time, forward and back, with the arrow keys.")
@click.option(
    "--wrong",
    type=click.Choice(["breadth_first", "no_order", "assign", "not_reset"]),
    help="Make this mistake on purpose, and show where it goes wrong.",
)
@click.option("--all", "show_all", is_flag=True, help="Every node and step of a large graph, not only the first.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for programs.")
@click.argument("target", metavar="EXPRESSION|FILE.py:FUNCTION")
@click.argument("values", nargs=-1, metavar="[NAME=NUMBER]...", type=click.UNPROCESSED)
def trace(step: bool, wrong: str | None, show_all: bool, as_json: bool, target: str, values: tuple[str, ...]) -> None:
    """Walk through the backward pass of an expression, or of a function of yours.

    Shows the forward pass, each step of the backward pass with its arithmetic, and the gradients beside finite
    differences. An expression has names, numbers, + - * / **, brackets and the operations of gradwalk; parts get a
    name with NAME = ... and a semicolon.

    \b
    Examples:
      gradwalk trace 'relu(a*b + d)' a=2 b=-3 d=10
      gradwalk trace 'c = a*b; relu(c + d)' a=2 b=-3 d=10 --step
      gradwalk trace 'a*b + a' a=2 b=3 --wrong assign
      gradwalk trace script.py:loss x=0.5
    """
    from gradwalk.show.trace import trace as show_trace

    show_trace(target, values, wrong or "right", step, as_json, show_all)


@main.command(**OF_EXPRESSION)
@click.option("--html", metavar="FILE", help="Write the page there, and do not open it.")
@click.option("--serve", is_flag=True, help="Hand the page out on this machine's loopback address instead.")
@click.argument("expression", required=False)
@click.argument("values", nargs=-1, metavar="[NAME=NUMBER]...", type=click.UNPROCESSED)
def play(html: str | None, serve: bool, expression: str | None, values: tuple[str, ...]) -> None:
    """Play with an expression on a page: see its graph, change its inputs, step through its backward pass.

    The page is one file that needs no network and can be mailed or hosted anywhere. Without EXPRESSION it opens
    with an example. Your own program: gradwalk.play(loss), in Python.

    \b
    Examples:
      gradwalk play
      gradwalk play 'relu(a*b + d)' a=2 b=-3 d=10
      gradwalk play '(a*b + a)**2' --html lesson.html
      gradwalk play --serve                     # on a remote machine
    """
    from gradwalk.show.play import command

    command(expression, values, html, serve)


@main.command(context_settings={"allow_interspersed_args": False})
@click.option("--keep-class", is_flag=True, help="Leave the classes that the script defines for itself.")
@click.option("--report", is_flag=True, help="Say at the end what was replaced, where the time went, what to change.")
@click.option("-m", "module", is_flag=True, help="SCRIPT is a module's name, as with python -m.")
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run(keep_class: bool, report: bool, module: bool, script: str, arguments: tuple[str, ...]) -> None:
    """Run a script, unmodified, on gradwalk's nodes.

    A class in the manner of micrograd's or microgpt's Value, in the script or one of its own modules, is replaced; a
    line on stderr says so. What the class does in its own way stays so, to the last digit; a class for which that
    cannot be is kept, and the line says why. All else is as with `python SCRIPT`: arguments, output, tracebacks, exit
    status. SCRIPT may also be a folder or zip file with a __main__.py, or a notebook.

    \b
    Examples:
      gradwalk run microgpt.py
      gradwalk run train.py --steps 100         # what follows SCRIPT is for the script
      gradwalk run -m package.module
      gradwalk run lecture.ipynb                # its cells in order, without Jupyter
      gradwalk run --report microgpt.py         # and where the time went
      gradwalk run --keep-class microgpt.py     # for comparison: its own class
    """
    from gradwalk.run import run_afresh

    chosen = {"keep": keep_class, "report": report, "module": module}
    run_afresh({setting for setting, wanted in chosen.items() if wanted}, script, arguments)


@main.command()
@click.argument("folder", default="gradwalk-lessons", type=click.Path(file_okay=False, path_type=Path))
def lessons(folder: Path) -> None:
    """Write the lessons as notebooks into FOLDER, and say how to open them.

    A notebook that is there already stays as it is: somebody may have worked in it.

    \b
    Examples:
      gradwalk lessons
      gradwalk lessons ~/course
    """
    from gradwalk.lessons.notebooks import write_notebooks

    write_notebooks(folder.expanduser())


@main.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for programs.")
def doctor(as_json: bool) -> None:
    """Show the engine, the compiler and the packages that gradwalk found.

    \b
    Examples:
      gradwalk doctor
      gradwalk doctor --json
    """
    from gradwalk import doctor

    click.echo(doctor.as_json()) if as_json else doctor.show()
