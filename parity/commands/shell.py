"""What every command does alike: exit statuses, and errors in a sentence."""

import contextlib
import sys

import typer

from contract.errors import InputError

DIVERGED, USAGE, MISSING, NOTHING = 1, 2, 3, 4


@contextlib.contextmanager
def told_plainly():
    """Say an InputError in one sentence on standard error and exit with 2."""
    try:
        yield
    except InputError as error:
        print(f"parity: {error}", file=sys.stderr)
        raise typer.Exit(USAGE) from None
