"""``parity lesson``: a lesson, with what its cells print, or an exercise."""

import pathlib
from typing import Annotated, Optional

import typer

from transformer_contract.errors import InputError
from transformer_contract.files import told, write_whole
from parity.commands.exercise import exercise
from parity.commands.shell import told_plainly


def lesson(
    ctx: typer.Context,
    number: Annotated[Optional[str], typer.Argument(
        metavar="[N or N.M]", help="A lesson to run, or an exercise of it; "
        "without it, all are listed.")] = None,
    file: Annotated[Optional[pathlib.Path], typer.Argument(
        metavar="[FILE]", help="The answer to an exercise, to be checked.")
    ] = None,
    notebook: Annotated[Optional[pathlib.Path], typer.Option(
        "--notebook", metavar="FILE", help="Write the lesson to FILE as a "
        "Jupyter notebook, and do not run it.")] = None,
    pictures: Annotated[Optional[pathlib.Path], typer.Option(
        "--pictures", metavar="FOLDER", help="Write its pictures to FOLDER.",
    )] = None,
    seconds: Annotated[float, typer.Option(
        "--seconds", min=1, max=3600,
        help="How long an answer may take.")] = 20,
):
    """Run a lesson, or give an exercise and check an answer to it.

    A lesson is a Python file in cells: its text, and what its code prints on
    this machine. An exercise's number prints the task and writes a file to
    begin with; with a file as well, its function is called on several inputs
    and held against the reference. Exit status then: 0 the answer is right, 1
    it is not, or raises, or does not end; 2 the file cannot be used.
    """
    from parity.reading import lessons
    with told_plainly():
        if number is not None and not number.isdecimal():
            if notebook or pictures:
                raise InputError("an exercise is no notebook and has no "
                                 "pictures; give a lesson's number.")
            return exercise(number, file, seconds,
                            bool(ctx.find_root().params.get("quiet")))
        if file is not None:
            raise InputError("an answer is to an exercise; give its number, "
                             "such as 4.1.")
        paths = {path.name.partition("_")[0].lstrip("0"): path
                 for path in lessons.paths()}
        if number is None:
            if notebook or pictures:
                raise InputError("no lesson is named; give its number first, "
                                 "such as 'parity lesson 1'.")
            return _listed(paths)
        number = number.lstrip("0") or "0"
        if number not in paths:
            raise InputError(f"there is no lesson {number}; choose one of "
                             f"{', '.join(paths)}.")
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


def _listed(paths):
    """Print every lesson, and under it its exercises."""
    from parity.course.exercise import exercises
    from parity.reading import lessons
    for number, path in paths.items():
        print(f"{number:>2}  {lessons.title(path)}\n    {path}")
        for each in exercises().values():
            if each.number.partition(".")[0] == number:
                print(f"    {each.number:5} {each.title}")
