"""The command ``parity lesson``: a lesson, with what its cells print here."""

import pathlib
from typing import Annotated, Optional

import typer

from transformer_contract.errors import InputError
from transformer_contract.files import told, write_whole
from parity.commands.shell import told_plainly


def lesson(
    number: Annotated[Optional[int], typer.Argument(
        metavar="[N]", help="Which one to run; without it, all are listed.",
    )] = None,
    notebook: Annotated[Optional[pathlib.Path], typer.Option(
        "--notebook", metavar="FILE", help="Write the lesson to FILE as a "
        "Jupyter notebook, and do not run it.")] = None,
    pictures: Annotated[Optional[pathlib.Path], typer.Option(
        "--pictures", metavar="FOLDER", help="Write its pictures to FOLDER.",
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
            if notebook or pictures:
                raise InputError("no lesson is named; give its number first, "
                                 "such as 'parity lesson 1'.")
            for each, path in paths.items():
                print(f"{each:2}  {lessons.title(path)}\n    {path}")
            return
        if number not in paths:
            raise InputError(f"there is no lesson {number}; choose one of "
                             f"{', '.join(map(str, paths))}.")
        if notebook and pictures:
            raise InputError("a notebook draws its own pictures when it is "
                             "run; choose --notebook or --pictures.")
        if notebook and notebook.exists():
            raise InputError(f"{str(notebook)!r} is there already, and may "
                             "have work in it; choose another name.")
        if notebook:
            lessons.notebook(paths[number], notebook)
            print(f"written: {notebook}")
            return
        if pictures:
            if pictures.exists() and not pictures.is_dir():
                raise InputError(f"{str(pictures)!r} is no folder; choose "
                                 "another path for the pictures.")
            with told(pictures):
                pictures.mkdir(parents=True, exist_ok=True)
        drawn = 0
        for cell in lessons.run(paths[number]):
            text = cell.text if cell.markdown else cell.output
            if text:
                print(f"{text}\n")
            for picture in cell.pictures:
                drawn += 1
                where = ("--pictures FOLDER keeps it" if not pictures else
                         pictures / f"{paths[number].stem}_{drawn}.png")
                if pictures:
                    write_whole(where, picture.png)
                print(f"[picture: {picture.words}; {where}]\n")
