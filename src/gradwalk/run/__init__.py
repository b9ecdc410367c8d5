"""`gradwalk run`: an unmodified script on gradwalk's nodes, otherwise as `python SCRIPT` would run it.

The interpreter is given over to the script (start.py) before anything of the command line was imported. There, every
class with the shape of micrograd's or microgpt's Value is offered (modules.py) for replacement: shape.py finds out how
it is built, compare.py what it computes, stand_in.py makes the class that takes its place.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

OPTIONS = {"--keep-class": "keep", "--report": "report", "-m": "module"}


def options_of(arguments: Sequence[str]) -> tuple[set[str], str, list[str]] | None:
    """The settings, the script and its arguments; None: not a script, so the command line has something to say."""
    rest = list(arguments)
    settings = set()
    while rest and rest[0] in OPTIONS:
        settings.add(OPTIONS[rest.pop(0)])
    if rest[:1] == ["--"]:
        del rest[0]
    elif rest and rest[0].startswith("-"):
        return None
    return (settings, rest[0], rest[1:]) if rest else None


def run_afresh(settings: set[str], target: str, arguments: Sequence[str]) -> NoReturn:
    """Give this process over to a fresh interpreter that runs the script."""
    options = [option for option, setting in OPTIONS.items() if setting in settings]
    command = [sys.executable, "-m", "gradwalk", "run", *options, "--", target, *arguments]
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # it may have been closed
            stream.flush()
    if os.name == "nt":  # execv there lets the shell go on before the script has ended
        import signal
        import subprocess

        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the script gets it too, and decides
        sys.exit(subprocess.call(command))
    os.execv(sys.executable, command)
