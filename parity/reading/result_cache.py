"""What was made for pages, kept for the next time that they are made.

Beside each result stands of what it was made: the project's files that were
imported or opened meanwhile, each with its hash, and all that is installed. It
is made again if any of them changed. Python alone reads its own: a result is a
pickle in a folder of the virtual environment, as its compiled modules are.
"""

import contextlib
import functools
import hashlib
import importlib.metadata
import os
import pathlib
import pickle
import platform
import sys
import time

from parity_io.errors import InputError
from parity_io.files import write_whole
from transformer_contract.shipped import PACKAGES

#: The folder's name in the virtual environment.
NAME = "parity-read"

#: What asks for results, and makes none: no other package imports it.
ASKING = ("commands", "cli.py", "__main__.py")

#: When this process began to import the project, as time.time() has it.
STARTED = time.time()

#: The files that were opened in this process; its imports open none that
#: counts, for they read what was compiled of them.
_opened: set[str] = set()


def folder():
    """Where results are kept: in a virtual environment; None outside of one.
    """
    if sys.prefix == sys.base_prefix or not os.access(sys.prefix, os.W_OK):
        return None
    return pathlib.Path(sys.prefix, NAME)


@functools.cache
def watch():
    """From now on note which files are opened, as long as this process is."""
    def note(event, arguments):
        if event == "open" and isinstance(arguments[0], str):
            _opened.add(arguments[0])
    sys.addaudithook(note)


@functools.cache
def installed():
    """A hash of Python and of everything that is installed."""
    names = sorted(f"{one.name} {one.version}"
                   for one in importlib.metadata.distributions())
    words = "\n".join([sys.version, platform.platform(), *names])
    return hashlib.sha256(words.encode()).hexdigest()


def hashed(path):
    """The hash of a file as it is, or "" where there is none."""
    try:
        seen = os.stat(path)
        return _hashed(path, seen.st_mtime_ns, seen.st_size)
    except OSError:
        return ""


@functools.cache
def _hashed(path, changed, size):
    """The hash of a file that was changed last then; see ``hashed``."""
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def read_here(start, root=PACKAGES):
    """{path: hash} of the project's files that this process has read.

    What is installed is none of them, for ``installed`` has its versions; nor
    are the commands, which a process has loaded only because one started it.

    Args:
        start: when it opened the first that counts, as time.time() has it.

    Returns:
        None where one was changed after it was read: nobody knows what it was.
    """
    modules = filter(None, (getattr(module, "__file__", None)
                            for module in list(sys.modules.values())))
    root = root.resolve()
    others = [pathlib.Path(sys.prefix).resolve(), *(
        root / "parity" / name for name in ASKING)]
    here = {}
    for name, since in {**dict.fromkeys(_opened, start),
                        **dict.fromkeys(modules, STARTED)}.items():
        path = pathlib.Path(name).resolve()
        if path.is_relative_to(root) and path.suffix != ".pyc" and (
                not any(map(path.is_relative_to, others)) and path.is_file()):
            if path.stat().st_mtime > since:
                return None
            here[str(path)] = hashed(path)
    return here


def file_of(cache, job):
    """The file of a job's result, in this checkout."""
    make, *what = job
    words = f"{PACKAGES} {make.__module__}.{make.__qualname__} {what!r}"
    return cache / f"{hashlib.sha256(words.encode()).hexdigest()[:32]}.pickle"


def compute(cache, *job):
    """What a job makes, here and now, and kept."""
    watch()
    make, *what = job
    start = time.time()
    result = make(*what)
    with contextlib.suppress(OSError, InputError):  # a full disk keeps none
        if files := read_here(start):
            cache.mkdir(exist_ok=True)
            write_whole(file_of(cache, job), pickle.dumps(
                (installed(), files, result)))
    return result


def load(cache, job):
    """(what was kept of a job,), or () where it has to be made."""
    try:
        then, files, result = pickle.loads(file_of(cache, job).read_bytes())
        fresh = then == installed() and all(
            hashed(path) == one for path, one in files.items())
    except Exception:  # none, or of code that is not as it was
        return ()
    return (result,) if fresh else ()
