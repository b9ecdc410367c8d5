"""Options with sections: click's help lists all options in one column; here they stand under headings."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

RANGE = re.compile(r"(\[|\[.*); [^;\]]*x[<>][^\]]*(?=\])|(?<=  \[)[^\]]*x[<>][^\]]*(?=\])")
Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class SectionOption(click.Option):
    """An option that knows the heading it stands under."""

    def __init__(self, *arguments: Any, section: str = "Options", **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.section = section

    def get_help_record(self, context: click.Context) -> tuple[str, str] | None:
        record = super().get_help_record(context)
        # click adds a range's limits as `x>=1`: the error message has them, the help is easier to read without
        return None if record is None else (record[0], RANGE.sub(r"\1", record[1]).replace("  []", ""))


def option(section: str, *names: str, **settings: Any) -> Callable[[Decorated], Decorated]:
    """An option under a heading; its default is shown, if it has one."""
    settings.setdefault("show_default", True)
    kind = settings.get("type")
    if kind is int or isinstance(kind, click.IntRange | click.FloatRange):
        settings.setdefault("metavar", "X" if isinstance(kind, click.FloatRange) else "N")
    elif isinstance(kind, click.Path):
        settings.setdefault("metavar", "FILE")
    return click.option(*names, cls=SectionOption, section=section, **settings)


class Sections:
    """For a command: writes the options under their headings, in the order in which the headings first come up."""

    def format_options(self: Any, context: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(context):
            row = parameter.get_help_record(context)
            if row is not None:
                sections.setdefault(getattr(parameter, "section", "Other"), []).append(row)
        for heading, rows in sections.items():
            with formatter.section(heading):
                formatter.write_dl(rows)


class SectionCommand(Sections, click.Command):
    """A command whose help has sections."""


class SectionGroup(Sections, click.Group):
    """A command that also has commands of its own."""

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(context, formatter)
        self.format_commands(context, formatter)


class FiniteFloat(click.FloatRange):
    """A number in a range; `nan` and `inf` are none."""

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        number = super().convert(value, parameter, context)
        if isinstance(number, float) and number - number != 0.0:
            self.fail(f"{value!r} is not a finite number.", parameter, context)
        return number
