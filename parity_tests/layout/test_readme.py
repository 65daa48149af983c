"""The README: short, and what it shows is what a reader gets."""

import re

import pytest

from parity_tests.support.places import ROOT
from parity_tests.support.processes import python

README = (ROOT / "README.md").read_text(encoding="utf-8")

#: What differs from machine to machine: seconds, and roundings.
VARIES = (re.compile(r" +\d+(\.\d)? s$", re.M), re.compile(r"\d\.\d?e-1[5-9]"))


def test_it_is_short():
    assert len(README.splitlines()) <= 120


def test_the_card_is_what_the_command_prints():
    pytest.importorskip("torch", reason="the original is of torch")
    pytest.importorskip("flax", reason="the port is of Flax")
    done = python("-m", "parity", "compare", "mine_torch.py:make",
                  "mine_jax.py:make", here=ROOT / "examples", COLUMNS="80")
    assert done.returncode == 1, done.stderr
    assert plain(done.stdout) in plain(README)


def plain(text):
    """A text without what varies, nor blanks at the ends of lines."""
    for pattern in VARIES:
        text = pattern.sub("…", text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())
