"""An answer is judged in a process of its own, for a limited time."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

from contract.shipped import PACKAGES
from parity.course.judge import WRONG

#: How long an answer may take, in seconds.
SECONDS = 20


def verdict(exercise, path, seconds=SECONDS):
    """(status, sentence) of the answer in a file; status as in judge.

    What it prints is printed. One that does not end is ended.
    """
    with tempfile.TemporaryDirectory(prefix="parity-exercise-") as folder:
        file = pathlib.Path(folder) / "verdict.json"
        process = subprocess.Popen(
            [sys.executable, "-m", "parity.course.judge", exercise.number,
             str(path), str(file)], stdin=subprocess.DEVNULL,
            start_new_session=True, env=os.environ | {"PYTHONPATH": (
                os.pathsep.join([str(PACKAGES), *filter(
                    None, [os.environ.get("PYTHONPATH")])]))})
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            return WRONG, (f"{exercise.function} did not end within "
                           f"{seconds:g} seconds; look for a loop that has no "
                           "end.")
        finally:
            _end(process)
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
            return int(found["status"]), str(found["text"])
        except (OSError, ValueError, KeyError, TypeError):
            return WRONG, (f"the answer ended its process (status "
                           f"{process.returncode}) before it could be "
                           "judged.")


def _end(process):
    """End a process and what it has started."""
    with contextlib.suppress(OSError, AttributeError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()
