"""A test run in a fresh process in which one file has another text."""

import importlib.machinery
import os
import pathlib
import subprocess
import sys

import pytest

from parity_tests.support.places import ROOT


def outcome(file, old, new, *words):
    """(Exit status, output) of pytest with some words, after an edit.

    Args:
        file: below the root; nothing is written into it.
        old: what stands there; its first place is edited.
        new: what it becomes.
    """
    done = subprocess.run(
        [sys.executable, "-m", "parity_tests.support.edits", file, old, new,
         *words], cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)})
    return done.returncode, done.stdout + done.stderr


class Loader(importlib.machinery.SourceFileLoader):
    """Runs a module of which a piece is another."""

    def __init__(self, name, path, old, new):
        super().__init__(name, path)
        self.old, self.new = old, new

    def get_code(self, fullname):
        """The code of the edited text."""
        text = pathlib.Path(self.path).read_text(encoding="utf-8")
        if self.old not in text:
            sys.exit(f"{self.path} has no {self.old!r}")
        return compile(text.replace(self.old, self.new, 1), self.path, "exec")


class Finder:
    """Finds the one module that is edited."""

    def __init__(self, file, old, new):
        self.name = file.removesuffix(".py").replace("/", ".")
        self.path, self.edit = str(ROOT / file), (old, new)

    def find_spec(self, name, path=None, target=None):
        """Its place; of any other module, None."""
        if name != self.name:
            return None
        return importlib.machinery.ModuleSpec(
            name, Loader(name, self.path, *self.edit), origin=self.path)


if __name__ == "__main__":
    sys.meta_path.insert(0, Finder(*sys.argv[1:4]))
    sys.exit(pytest.main(sys.argv[4:]))
