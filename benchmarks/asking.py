"""What the benches of the debugger share: what they are asked, and tables."""

import argparse
import pathlib
import re

from benchmarks.texts import replace_between


def parser(about, group):
    """Takes groups of cases, a pattern of their names, and a page.

    Args:
        about: the docstring of the command.
        group: what a bench is divided into, such as TOPIC.
    """
    made = argparse.ArgumentParser(description=about)
    made.add_argument("groups", nargs="*", metavar=group,
                      help="or the beginning of its name")
    made.add_argument("--only", metavar="PATTERN", default="",
                      help="of all cases, those whose names match")
    made.add_argument("--markdown", type=pathlib.Path, metavar="FILE",
                      help="replace the table between its two comments")
    return made


def is_asked(asked, group, name):
    """Whether a case is among those that were asked for."""
    return bool(re.search(asked.only, name)) and (
        not asked.groups or group.startswith(tuple(asked.groups)))


def show(asked, mark, lines):
    """Print the lines of a table, and write it into the page.

    Args:
        mark: the word in the two comments.
    """
    text = "\n".join(lines)
    print(text)
    if asked.markdown:
        replace_between(asked.markdown, mark, text)
