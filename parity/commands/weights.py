"""``parity train weights``: the shipped weight files."""

import pathlib
from typing import Annotated, Optional

import typer

from parity.commands.shell import told_plainly


def weights(
    check_only: Annotated[bool, typer.Option(
        "--check", help="Write nothing; say what differs and exit 1 if "
        "anything does.")] = False,
    out: Annotated[Optional[pathlib.Path], typer.Option(
        metavar="DIR", help="The folder.  [default: the project's weights/]"
    )] = None,
):
    """Make the shipped weight files and their golden outputs again."""
    from parity.check import golden
    with told_plainly():
        folder = out or golden.FOLDER
        if not check_only:
            golden.make(folder)
            print(f"made {folder}")
            return
        problems = list(golden.problems(folder))
        print("\n".join(problems) or f"{folder} is as it should be")
        raise typer.Exit(1 if problems else 0)
