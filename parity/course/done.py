"""Which exercises a reader has solved in a folder: a file, a number a line."""

import contextlib
import pathlib

from parity.course.exercise import exercises

#: The file, in the folder in which the answers are.
NAME = "exercises_done.txt"


def read(folder="."):
    """The numbers in a folder's file; none where there is no such file."""
    try:
        text = pathlib.Path(folder, NAME).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return frozenset()
    return frozenset(text.split()) & exercises().keys()


def add(number, folder="."):
    """Write one more number into the file, where the folder may be written to.

    Returns:
        all that it then has.
    """
    known = read(folder)
    if number not in known:
        with contextlib.suppress(OSError), pathlib.Path(folder, NAME).open(
                "a", encoding="utf-8") as file:
            file.write(f"{number}\n")
    return read(folder)
