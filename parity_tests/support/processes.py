"""Pythons of their own, with this project on their path."""

import os
import subprocess
import sys

from parity_tests.support.places import ROOT


def python(*words, here=ROOT, timeout=None, **variables):
    """A process that has ended, with what it wrote as text.

    Args:
        words: what Python is given: -c and code, -m and a module, or a file.
        here: the folder in which it runs.
        variables: of its environment, beside those of this process.
    """
    return subprocess.run(
        [sys.executable, *map(str, words)], cwd=here, timeout=timeout,
        capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | variables)


def printed(*words, **more):
    """What a process printed that has ended well."""
    __tracebackhide__ = True
    done = python(*words, **more)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout
