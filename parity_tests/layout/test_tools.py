"""Linters and the type checker find nothing; pyproject.toml says in what."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


PYTHON = sys.executable, "-m"

#: import-linter has no ``-m``.
LINT_IMPORTS = "from importlinter.cli import *; lint_imports_command()"


def said(*command):
    """What a tool says at the project's root, and its exit status."""
    ran = subprocess.run(command, cwd=ROOT,
                         capture_output=True, text=True)
    return ran.stdout + ran.stderr, ran.returncode


def test_ruff():
    words, status = said(*PYTHON, "ruff", "check", "--no-cache",
                         "--output-format", "concise", ".")
    assert status == 0, words


def test_the_walls_hold():
    """Who may import whom: the contracts of import-linter."""
    words, status = said(PYTHON[0], "-c", LINT_IMPORTS, "--no-cache")
    assert status == 0, words


def test_mypy(tmp_path):
    folder = os.environ.get("MYPY_CACHE_DIR", str(tmp_path))
    words, status = said(*PYTHON, "mypy", "--cache-dir", folder)
    assert status == 0, words
