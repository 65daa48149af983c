"""The command ``parity lesson``: a lesson, with what its cells print here."""

from typing import Annotated, Optional

import typer

from contract.errors import InputError
from parity.commands.shell import told_plainly


def lesson(
    number: Annotated[Optional[int], typer.Argument(
        metavar="[N]", help="Which one to run; without it, all are listed.",
    )] = None,
):
    """Run a lesson: its text, and what its code prints on this machine.

    A lesson is a Python file in cells, to be copied and changed.
    """
    from parity.reading import lessons
    with told_plainly():
        paths = {int(path.name.partition("_")[0]): path
                 for path in lessons.paths()}
        if number is None:
            for each, path in paths.items():
                print(f"{each}  {lessons.title(path)}\n   {path}")
            return
        if number not in paths:
            raise InputError(f"there is no lesson {number}; choose one of "
                             f"{', '.join(map(str, paths))}.")
        for cell in lessons.run(paths[number]):
            text = cell.text if cell.markdown else cell.output
            if text:
                print(f"{text}\n")
