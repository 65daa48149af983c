"""The command ``parity teach``: what a class is handed for some lessons."""

import pathlib
from typing import Annotated

import typer


def teach(
    numbers: Annotated[list[int], typer.Argument(
        metavar="N...", help="The lessons.")],
    out: Annotated[pathlib.Path, typer.Option(
        metavar="DIR", help="The folder to make.")] = pathlib.Path("pack"),
):
    """Pack lessons for a class: slides, notebooks, a handout and a key.

    What is in the folder teacher, the slides with their notes and the key, is
    not for the class.
    """
    from parity.course import pack
    for path in pack.write(numbers, out):
        print(path)
