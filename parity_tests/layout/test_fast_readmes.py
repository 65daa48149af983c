"""What each fast form's README says: alike in all, and as long as it says."""

import re

import pytest

from parity_tests.support.places import PORTS, REFERENCE

FOLDERS = [folder / "fast" for folder in (REFERENCE, *PORTS.values())]


def rows(folder):
    """The cells of each trick, and of each candidate to go, a list a row."""
    text = (folder / "README.md").read_text(encoding="utf-8")
    tables = re.findall(r"^\| -.*\n((?:\|.*\n)+)", text, flags=re.M)
    return [[cell.strip() for cell in line.strip("|").split("|")]
            for table in tables for line in table.splitlines()]


def tricks(folder):
    """Of each trick what no framework changes: its name and its formulas."""
    return [(name, before, after, lost)
            for name, before, after, _, _, lost in (
                row for row in rows(folder) if len(row) == 6)]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.parent.name)
def test_tricks_are_alike(folder):
    assert len(tricks(folder)) > 5
    assert tricks(folder) == tricks(FOLDERS[0])


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.parent.name)
def test_files_have_the_lines_that_are_told(folder):
    """A file that is named is there, and a number behind it is its lines'."""
    told = [f"{row[0]} {row[2]}" if len(row) == 4 else row[3]
            for row in rows(folder)]
    for cell in told:
        for name, count in re.findall(r"`(\w+\.py)`(?: (\d+))?", cell):
            lines = (folder / name).read_text(encoding="utf-8").splitlines()
            if count and " in `" not in cell:
                assert len(lines) == int(count), name
