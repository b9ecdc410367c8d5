"""The command itself: how it is started, and what it says when it cannot start."""

from __future__ import annotations

import os
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

import gradwalk
from gradwalk import cli

WITHOUT_NATIVE = "import sys; sys.modules['gradwalk._native'] = None; "


def command(*arguments, before="import sys; ", **variables):
    source = os.path.dirname(os.path.dirname(gradwalk.__file__))
    program = before + "sys.argv[0] = 'bin/gradwalk'; from gradwalk.cli import main; main()"
    environment = {**os.environ, "PYTHONPATH": source, **variables}
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
        check=False,
    )


def test_command_runs():
    """The installed command is the command line."""
    assert command("--version").stdout == f"gradwalk {gradwalk.__version__}\n"


def test_module_runs():
    """So is `python -m gradwalk`."""
    process = subprocess.run(
        [sys.executable, "-m", "gradwalk", "--version"], capture_output=True, text=True, check=True
    )
    assert process.stdout == f"gradwalk {gradwalk.__version__}\n"


@pytest.mark.parametrize("arguments", [["doctor"], ["--help"], ["run", "s.py"]])
def test_engine_that_does_not_exist(arguments):
    """A misspelt GRADWALK_ENGINE is one line and status 2, whatever the command."""
    process = command(*arguments, GRADWALK_ENGINE="naitve")
    expected = "gradwalk: GRADWALK_ENGINE: expected one of native, reference, got 'naitve'\n"
    assert (process.stdout, process.stderr, process.returncode) == ("", expected, 2)


def test_engine_that_does_not_exist_and_the_module():
    """The same with `python -m gradwalk`; for anybody else's program it is an ImportError."""
    environment = {**os.environ, "GRADWALK_ENGINE": "naitve"}
    for arguments, status, lines in ((["-m", "gradwalk", "doctor"], 2, 1), (["-c", "import gradwalk"], 1, None)):
        process = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment)
        assert process.returncode == status
        assert lines is None or process.stderr.count("\n") == lines


@pytest.mark.parametrize("arguments", [[], *([name] for name in cli.main.commands), ["train", "moons"]], ids=" ".join)
def test_help_in_short(arguments):
    """-h is --help in every command."""
    runner = CliRunner()
    short, long = (runner.invoke(cli.main, [*arguments, option]) for option in ("-h", "--help"))
    assert (short.exit_code, short.output) == (0, long.output)
    assert short.output.startswith("Usage:")


def test_minus_h_is_an_expression_where_h_has_a_value():
    """Not every -h asks for help."""
    assert "h" in CliRunner().invoke(cli.main, ["trace", "-h*2", "h=3"]).output
    assert not CliRunner().invoke(cli.main, ["trace", "-h", "h=3"]).output.startswith("Usage:")


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["tran"], "train"),
        (["doctr"], "doctor"),
        (["train", "mons"], "moons"),
        (["train", "--stpes", "3"], "--steps"),
        (["sample", "--temprature", "1", "x"], "--temperature"),
        (["trace", "a*b", "--wrnog", "assign"], "--wrong"),
        (["trace", "--jsn", "a*b"], "--json"),
        (["play", "--htlm", "x.html"], "--html"),
        (["run", "--reprot", "x.py"], "--report"),
        (["trace", "rleu(a)", "a=1"], "relu"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else "",
)
def test_misspelt(arguments, meant):
    """A command, an option or an operation that does not exist: the one that was meant is named."""
    result = CliRunner().invoke(cli.main, arguments)
    assert result.exit_code == 2
    assert meant in result.output


def test_alone_it_says_what_there_is():
    """Without a command: the help, and no error."""
    result = CliRunner().invoke(cli.main, [])
    assert result.exit_code == 0
    assert result.output == CliRunner().invoke(cli.main, ["--help"]).output != ""


def test_called_by_another_program():
    """Without standalone mode an error is raised, as click has it, and nothing exits."""
    with pytest.raises(click.UsageError, match="there is no command 'docter'; did you mean 'doctor'"):
        cli.main(["docter"], standalone_mode=False)


def test_the_reader_of_the_output_has_gone():
    """`gradwalk … | head` ends quietly."""
    gone = "import sys, gradwalk.doctor as d\ndef show(): raise BrokenPipeError\nd.show = show\n"
    process = command("doctor", before=gone)
    assert (process.returncode, process.stdout, process.stderr) == (1, "", "")


def test_interrupted():
    """Ctrl-C is one line, below the ^C that the terminal shows, and the status that a shell gives it."""
    interrupting = "import signal, sys, gradwalk.doctor as d; d.show = lambda: signal.raise_signal(signal.SIGINT); "
    process = command("doctor", before=interrupting)
    assert (process.returncode, process.stderr) == (130, "\ngradwalk: interrupted\n")


def test_engine_that_was_not_built():
    """GRADWALK_ENGINE=native without the extension is one line and status 2."""
    process = command("doctor", before=WITHOUT_NATIVE, GRADWALK_ENGINE="native")
    assert (process.stdout, process.stderr.count("\n"), process.returncode) == ("", 1, 2)
    assert process.stderr.startswith("gradwalk: ")
    assert "_native" in process.stderr


def test_missing_native_engine_alone_is_no_failure():
    """Without GRADWALK_ENGINE the doctor runs on the reference engine."""
    process = command("doctor", before=WITHOUT_NATIVE, GRADWALK_ENGINE="")
    assert process.returncode == 0
    assert "reference" in process.stdout
