"""`gradwalk run`: an unmodified script on gradwalk's nodes, otherwise as `python SCRIPT` would run it.

A fresh interpreter runs the script (start.py), so that nothing of the command line is in its modules or on its stack.
There, every class with the shape of micrograd's or microgpt's Value is offered (modules.py) for replacement: shape.py
finds out how it is built, compare.py what it computes, stand_in.py makes the class that takes its place.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn


def run(kind: str, target: str, arguments: Sequence[str], keep_class: bool = False, report: bool = False) -> NoReturn:
    """Give this process over to the script; `kind` is "path" or "module"."""
    start = os.path.join(os.path.dirname(__file__), "start.py")
    settings = ",".join([kind, *["keep"] * keep_class, *["report"] * report])
    command = [sys.executable, start, settings, target, *arguments]
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # it may have been closed
            stream.flush()
    if os.name != "nt":
        os.execv(sys.executable, command)
    import signal
    import subprocess

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the script gets it too, and decides
    sys.exit(subprocess.call(command))  # execv on Windows lets the shell go on before the script has ended
