"""Numbers as texts of a table, and the table in a page."""

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
