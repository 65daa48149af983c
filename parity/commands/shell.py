"""What every command does alike: plain errors, files whole or not at all."""

import contextlib
import json
import os
import pathlib
import sys
import tempfile

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


def write_json(path, data):
    """Write JSON whole or not at all."""
    write_whole(path, json.dumps(data, indent=1, allow_nan=False) + "\n")


def write_whole(path, content):
    """Write a file whole or not at all; text goes as UTF-8, bytes as they are.

    Raises:
        InputError: the file's folder does not exist or cannot be written to.
    """
    path = pathlib.Path(path)
    content = content.encode() if isinstance(content, str) else content
    try:
        handle, temporary = tempfile.mkstemp(
            dir=path.parent, suffix=".partial")
    except OSError as error:
        raise InputError(
            f"{str(path)!r} cannot be written ({error.strerror}); choose a "
            "folder that exists and is writable.") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        os.remove(temporary)
        raise InputError(
            f"{str(path)!r} cannot be written ({error.strerror}); choose "
            "another file.") from None


def check_writable(path):
    """Say before the work, not after it, that a report has nowhere to go."""
    if path is None:
        return
    if path.is_dir() or not path.parent.is_dir():
        raise InputError(
            f"{str(path)!r} cannot be written; give a file in a folder that "
            "exists.")
    if not os.access(path.parent, os.W_OK):
        raise InputError(
            f"the folder {str(path.parent)!r} is not writable; choose "
            "another.")
