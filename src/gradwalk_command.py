"""The `gradwalk` command. Outside the package, because importing the package picks the engine, and that may fail."""

import os
import sys


def main() -> None:
    """Run the command line; an engine that GRADWALK_ENGINE asks for in vain is one line and status 2."""
    try:
        from gradwalk import cli
    except ImportError as error:
        if os.environ.get("GRADWALK_ENGINE", "reference") == "reference":
            raise  # not a mistake of the user's
        print(f"gradwalk: {error}", file=sys.stderr)
        sys.exit(2)
    cli.main()
