"""The files that come with the project: where they are, and whether sound.

In a checkout they stand beside the packages; a wheel has them in the folder
``parity/shipped``, under the same names.
"""

import hashlib
import pathlib

from parity_io.errors import InputError
from parity_io.files import write_whole

#: The folder that has the packages.
PACKAGES = pathlib.Path(__file__).resolve().parent.parent

INSTALLED = PACKAGES / "parity" / "shipped"

#: The folder that has ``weights``, ``lessons``, ``RULINGS.md`` and vectors.
ROOT = INSTALLED if INSTALLED.is_dir() else PACKAGES

WEIGHTS, LESSONS = ROOT / "weights", ROOT / "lessons"

#: Numbers that other systems computed, and the errors that are achieved.
VECTORS = ROOT / "parity_tests" / "data" / "vectors"
LEDGER = VECTORS.parent / "ledger.tsv"

#: The tokenizer and the sentences of the checks.
DATA = pathlib.Path(__file__).resolve().parent / "data"

SUMS = "SHA256SUMS"


def sums(folder=WEIGHTS):
    """{name of a shipped file: its SHA-256}, as a folder's SHA256SUMS has it.

    Raises:
        InputError: there is no such file, or it is none.
    """
    path = pathlib.Path(folder) / SUMS
    try:
        pairs = [line.split(maxsplit=1)
                 for line in path.read_text("utf-8").splitlines()]
        return {name: digest for digest, name in pairs}
    except (OSError, ValueError):
        raise InputError(
            f"{str(path)!r} cannot be read; take it again from the project."
        ) from None


def digest(path):
    """The SHA-256 of a file, in hexadecimal digits."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def list_sums(folder, paths):
    """Write a folder's SHA256SUMS, of these files in it."""
    write_whole(folder / SUMS, "".join(
        f"{digest(path)}  {path.relative_to(folder)}\n" for path in paths))


def sound(name, folder=WEIGHTS):
    """The path of a shipped file, once it has the hash in SHA256SUMS.

    Raises:
        InputError: it is missing, damaged or not listed.
    """
    path = pathlib.Path(folder) / name
    listed = sums(folder).get(str(name))
    try:
        own = digest(path)
    except OSError as error:
        raise InputError(
            f"the shipped file {str(path)!r} cannot be read "
            f"({error.strerror}); take it again from the project.") from None
    if own != listed:
        raise InputError(
            f"the shipped file {str(path)!r} is damaged: its hash is not the "
            f"one in {SUMS}; take it again from the project.")
    return path
