"""The `gradwalk` command, and `python -m gradwalk` for where the command is not on the path."""

from __future__ import annotations

import sys
from typing import Any


def main() -> Any:
    """Run the command line; of `gradwalk run SCRIPT` only the script, without what the other commands need."""
    if sys.argv[1:2] == ["run"]:
        from gradwalk.run import options_of

        options = options_of(sys.argv[2:])
        if options is not None:
            from gradwalk.run.start import start

            start(*options)
            return 0
    from gradwalk.cli import main as command_line

    return command_line()


if __name__ == "__main__":
    sys.exit(main())
