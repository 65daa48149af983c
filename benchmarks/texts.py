"""Numbers as texts of a table, and the table in a page."""

import itertools

from rich.padding import Padding
from rich.table import Column

from parity.render.terminal import numbers, plain_table
from parity_io.errors import InputError
from parity_io.files import read_text, write_whole

#: What is said where a model is one of milliseconds.
TINY = "A tiny model, to see that all runs: its times say nothing."


def number(value, form, scale=1):
    """A number as text; empty for none."""
    return "" if value is None else format(value * scale, form)


def milliseconds(seconds):
    """Seconds as milliseconds in three digits or more; empty for none."""
    return "" if seconds is None else format(
        seconds * 1e3, ".3g" if seconds < 0.1 else ".0f")


def of_works(titles, rows):
    """What a terminal of 80 columns shows: the rows of each work under it.

    Args:
        titles: of the numbers; they may break after a space.
        rows: (work, title of an implementation, *texts of numbers) each.
    """
    table = plain_table(
        Column("", overflow="fold"),
        *(numbers(title.replace(" ", "\n")) for title in titles))
    for work, same in itertools.groupby(rows, lambda row: row[0]):
        table.add_row(work, style="bold")
        for _, title, *texts in same:
            table.add_row(Padding(title, (0, 0, 0, 2)), *texts)
    return table


def between(path, mark):
    """What stands before, between and after two comments of a Markdown file.

    Raises:
        InputError: it lacks them.
    """
    begin, end = f"<!-- {mark} -->\n", f"<!-- end {mark} -->\n"
    before, first, rest = read_text(path).partition(begin)
    text, last, after = rest.partition(end)
    if not (first and last):
        raise InputError(
            f"{path} lacks the lines {begin.strip()} and {end.strip()}, "
            "between which the table goes; add them.")
    return before + begin, text, end + after


def replace_between(path, mark, text):
    """Replace what stands between two comments of a Markdown file."""
    before, _, after = between(path, mark)
    write_whole(path, f"{before}{text}\n{after}")
