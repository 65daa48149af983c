"""Commands, run in this process."""

from typer.testing import CliRunner

from parity.cli import app


def invoke(*words):
    """What ``parity WORDS`` prints and answers."""
    return CliRunner().invoke(app, list(map(str, words)))


def said(*words):
    """A command's exit status, and what it prints."""
    done = invoke(*words)
    return done.exit_code, done.output
