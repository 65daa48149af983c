"""Commands, run in this process."""

from typer.testing import CliRunner

from parity.cli import app


def invoke(*words):
    """What ``parity WORDS`` prints and answers."""
    return CliRunner().invoke(app, list(map(str, words)))
