"""An answer runs in a process of its own, for a limited time."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile

from transformer_contract.shipped import PACKAGES
from parity.course import judge, record

#: How long an answer may take, in seconds.
SECONDS = 20

#: After how many seconds a person is told that an answer still runs.
SILENT = 5

#: The longest record of an answer, in bytes.
LONGEST = 2**28


#: How long a framework may take to be imported, in seconds.
IMPORT = 60


def verdict(exercise, path, seconds=SECONDS, printed=True, framework="numpy"):
    """(status, sentence) of the answer in a file, with all that is known."""
    found = judged(exercise, path, seconds, printed, framework)
    return found.status, " ".join(filter(None, (found.sentence, found.hint)))


def judged(exercise, path, seconds=SECONDS, printed=True, framework="numpy"):
    """The judge.Verdict on the answer in a file.

    What it prints is printed, unless not wanted. One that does not end is
    ended, and so it is where this process is told to end.

    Args:
        framework: what its arguments are arrays of, by the port's name.
    """
    whole = seconds + (IMPORT if framework != "numpy" else 0)
    endless = judge.Verdict(judge.WRONG, (
        f"{exercise.function} did not end within {seconds:g} seconds; look "
        "for a loop that has no end."))
    with tempfile.TemporaryFile() as channel, _signals_told():
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "parity.course.answering",
             exercise.number, str(path), str(whole), framework,
             str(seconds)],
            stdin=channel,
            stdout=None if printed else subprocess.DEVNULL,
            start_new_session=True, env=_environment())
        try:
            _wait(process, whole, seconds, printed)
        except subprocess.TimeoutExpired:
            return endless
        finally:
            _end(process)
        if process.returncode == -getattr(signal, "SIGALRM", 0) < 0:
            return endless  # it was ended by its own clock
        try:
            if process.returncode:
                raise ValueError(process.returncode)
            channel.seek(0)
            found = record.read(channel.read(LONGEST))
        except ValueError:
            return judge.Verdict(judge.WRONG, (
                f"the answer ended its process (status {process.returncode}) "
                "before it could be judged."))
    return judge.judged(exercise, path, found)


def _wait(process, whole, seconds, printed):
    """Wait for an answer, and say so to a person who does."""
    try:
        process.wait(min(SILENT, whole))
    except subprocess.TimeoutExpired:
        if whole <= SILENT:
            raise
        if printed and sys.stderr.isatty():
            print(f"Your function still runs; it may take {seconds:g} seconds.",
                  file=sys.stderr)
        process.wait(whole - SILENT)


def _environment():
    """The packages on the path, and a thread a product: time is limited."""
    path = [str(PACKAGES), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {
        "PYTHONPATH": os.pathsep.join(path),
        "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@contextlib.contextmanager
def _signals_told():
    """SIGTERM and SIGHUP raise SystemExit, as Ctrl-C raises: all is ended."""
    def ended(number, frame):
        raise SystemExit(128 + number)
    before = {}
    for name in "SIGTERM", "SIGHUP":
        with contextlib.suppress(AttributeError, ValueError):
            number = getattr(signal, name)
            if signal.getsignal(number) == signal.SIG_DFL:
                before[number] = signal.signal(number, ended)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(process):
    """End a process and what it has started."""
    with contextlib.suppress(OSError, AttributeError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()
