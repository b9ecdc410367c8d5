"""`python -m gradwalk`: the command line, for where the `gradwalk` command is not on the path."""

from gradwalk.cli import main

main()
