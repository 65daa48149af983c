"""Which files are a user's own, and what their code raised."""

import functools
import pathlib
import sysconfig
import traceback

from parity import out_of_memory

#: Files below these are no user's.
LIBRARIES = tuple({sysconfig.get_paths()[name] for name in (
    "stdlib", "platstdlib", "purelib", "platlib")})
OURS = f"{pathlib.Path(__file__).resolve().parent.parent}/"


@functools.cache
def is_users(file):
    """Whether a file is neither a library's nor ours."""
    return not file.startswith((
        *LIBRARIES, OURS, "<")) and "site-packages" not in file


def told(error):
    """Where a user's code failed, or "", and what it raised, in words.

    None where the memory was short, or where it is a mistake of ours.
    """
    frames = traceback.extract_tb(error.__traceback__)
    if out_of_memory.message(error) or frames[-1].filename.startswith(OURS):
        return None
    text = " ".join(str(error).split())[:300].rstrip(".")
    return next((f" at {pathlib.Path(each.filename).name}:{each.lineno}"
                 for each in reversed(frames) if is_users(each.filename)),
                ""), f"({type(error).__name__}: {text})"
