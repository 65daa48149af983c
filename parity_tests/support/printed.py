"""What the commands in a page print, as the page shows it.

A block ``console`` has a command behind each ``$`` and what it prints. All of
a page's are run one after the other in one folder, with the examples' models.
``python -m parity_tests.support.printed`` writes docs/commands.md anew.
"""

import contextlib
import os
import re
import shlex
import shutil
import tempfile
from unittest import mock

from parity_tests.support.commands import invoke
from parity_tests.support.places import ROOT

PAGE = ROOT / "docs" / "commands.md"

BLOCK = re.compile(r"(?<=^```console\n)(.*?)(?=^```$)", re.M | re.S)

#: How many lines are shown of an output's beginning, and of its end; how wide.
FIRST, LAST, WIDE = 6, 2, 80

#: What differs from machine to machine: times, room at an end, roundings.
VARIES = (re.compile(r"\b\d+(\.\d)? (s|seconds)\b"), re.compile(r" +$", re.M),
          re.compile(r"(?<=\d\.\d{6})\d+|\b\d+(\.\d+)?(e-1\d\b|(?=e-0))"))


@contextlib.contextmanager
def folder():
    """A folder in which the commands run: the examples' models are in it."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as made, mock.patch.dict(
            os.environ, COLUMNS="80"):
        for path in (ROOT / "examples").glob("mine_*.py"):
            shutil.copy(path, made)
        os.chdir(made)
        try:
            yield
        finally:
            os.chdir(before)


def shown(command):
    """A command's output, its middle left out where it is long."""
    output = invoke(*shlex.split(command)[1:]).output
    lines = output.replace(f"{ROOT}/", "").rstrip().splitlines()
    lines = [line.rstrip() if len(line.rstrip()) <= WIDE else
             line[:WIDE - 1].rstrip() + "…" for line in lines]
    lines = [line for line in lines if line]
    if len(lines) > FIRST + LAST + 1:
        lines[FIRST:-LAST] = ["…"]
    return "\n".join(lines)


def written(text):
    """A page with what its commands print now."""
    def block(match):
        return "".join(f"$ {command}\n{shown(command)}\n" for command in
                       re.findall(r"^\$ (.+)$", match[0], flags=re.M))
    return BLOCK.sub(block, text)


def plain(text):
    """A page without what varies."""
    for pattern in VARIES:
        text = pattern.sub("", text)
    return text


if __name__ == "__main__":
    with folder():
        made = written(PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(made, encoding="utf-8")
