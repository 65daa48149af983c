"""The one writer: a file is written whole, or not at all.

A program that is killed leaves the old file or the new one, never half of one;
the unfinished file stays beside it as ``*.partial``.
"""

import contextlib
import json
import os
import pathlib
import shutil
import tempfile

from contract.errors import InputError


@contextlib.contextmanager
def new_file(path):
    """A temporary file beside ``path``; after the block it takes that name.

    If the block raises, ``path`` stays as it was.
    """
    path = pathlib.Path(path)
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".partial")
    os.close(handle)
    try:
        yield pathlib.Path(temporary)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(temporary)


@contextlib.contextmanager
def new_folder(path):
    """A temporary folder beside ``path``; after the block it takes that name.

    ``path`` must then not exist, or be an empty folder.
    """
    path = pathlib.Path(path).absolute()
    temporary = pathlib.Path(tempfile.mkdtemp(
        dir=path.parent, prefix=".", suffix=".partial"))
    try:
        yield temporary
        os.chmod(temporary, 0o755)
        os.replace(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_whole(path, content):
    """Write a file whole or not at all; text goes as UTF-8, bytes as they are.

    Raises:
        InputError: the file's folder does not exist or cannot be written to.
    """
    content = content.encode() if isinstance(content, str) else content
    advice = "choose a folder that exists and is writable"
    try:
        with new_file(path) as file:
            advice = "choose another file"
            file.write_bytes(content)
    except OSError as error:
        raise InputError(
            f"{str(path)!r} cannot be written ({error.strerror}); {advice}."
        ) from None


def write_json(path, data):
    """Write JSON whole or not at all."""
    write_whole(path, json.dumps(data, indent=1, allow_nan=False) + "\n")


def check_writable(path):
    """Raise InputError before the work if a report cannot be written."""
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
