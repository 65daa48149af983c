"""``parity lesson N.M``: an exercise, and whether an answer is right."""

import pathlib
import sys

import typer

from transformer_contract.errors import InputError
from transformer_contract.files import FULL
from parity.commands.shell import said


def exercise(number, file, seconds, quiet):
    """Print a task and write a file to begin with, or judge an answer.

    A file's function is called on several inputs, and what it returns is held
    against the reference. Exit status: 0 the answer is right, 1 it is not, or
    raises, or does not end; 2 the file cannot be used.

    Args:
        number: the exercise's, such as "4.1".
        file: the answer, or None.
        seconds: how long it may take.
        quiet: whether nothing is shown of what it prints.
    """
    from parity.course import answer, judge
    from parity.course.exercise import by_number
    task = by_number(number)
    if file is None:
        _begun(task)
        return
    if not file.is_file():
        raise InputError(f"there is no file {str(file)!r}; write one with "
                         f"'parity lesson {number}'.")
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
    print(f"  parity lesson {task.number} {path}")
