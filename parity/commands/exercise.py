"""The command ``parity exercise``: tasks, and whether an answer is right."""

import pathlib
import sys
from typing import Annotated, Optional

import typer

from transformer_contract.errors import InputError
from transformer_contract.files import FULL
from parity.commands.shell import said


def exercise(
    ctx: typer.Context,
    number: Annotated[Optional[str], typer.Argument(
        metavar="[N.M]", help="Which one; without it, all are listed.",
    )] = None,
    file: Annotated[Optional[pathlib.Path], typer.Argument(
        metavar="[FILE]", help="The answer to check.")] = None,
    seconds: Annotated[float, typer.Option(
        "--seconds", min=1, max=3600,
        help="How long an answer may take.")] = 20,
):
    """An exercise of a lesson: its task, or whether an answer is right.

    With a number alone, print the task and write a file to begin with. With a
    file as well, call its function on several inputs and hold what it returns
    against the reference. Exit status: 0 the answer is right, 1 it is not, or
    raises, or does not end; 2 the file cannot be used.
    """
    from parity.course import answer, judge
    from parity.course.exercise import by_number, exercises
    if number is None:
        for each in exercises().values():
            print(f"{each.number:5} {each.title}")
        return
    task = by_number(number)
    if file is None:
        _begun(task)
        return
    if not file.is_file():
        raise InputError(f"there is no file {str(file)!r}; write one with "
                         f"'parity exercise {number}'.")
    quiet = bool(ctx.find_root().params.get("quiet"))
    status, sentence = answer.verdict(task, file, seconds, not quiet)
    if status == judge.UNUSABLE:
        said(sentence)
    print(sentence, file=sys.stderr if status and quiet else sys.stdout)
    if status:
        raise typer.Exit(status)


def _begun(task):
    """Print a task, and write the file to begin with if there is none."""
    print(f"{task.number}  {task.task}\n")
    path = pathlib.Path(f"exercise_{task.file}")
    try:
        with path.open("x", encoding="utf-8") as out:
            out.write(task.start)
        print(f"Write your answer into {path}, then:")
    except FileExistsError:
        if not path.is_file():
            raise InputError(f"'{path}' is there already and is no file; move "
                             "it, or go to another folder.") from None
        print(f"{path} is there already and was left as it is. To check it:")
    except OSError as error:
        if error.errno in FULL:
            raise
        raise InputError(f"'{path}' cannot be written here "
                         f"({error.strerror}); go to a folder of your own."
                         ) from None
    print(f"  parity exercise {task.number} {path}")
