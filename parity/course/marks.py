"""The answers of a class: each file below a folder, and what is said of it."""

import csv
import io
import pathlib
import re

from parity_io.errors import InputError, plural, visible
from parity_io.files import write_whole
from parity import ports
from parity.course import answer, frameworks, judge
from parity.course.exercise import exercises
from parity.render import terminal

#: An answer's file: whose it is may stand before the exercise's number.
FILE = re.compile(
    r"(?:(?P<who>.+?)[_-])??(?:exercise_)?(?P<number>\d+_\d+)\.py")

#: What a status is called.
WORDS = {judge.RIGHT: "right", judge.WRONG: "not right",
         judge.UNUSABLE: "cannot be used"}

HEAD = ("who", "exercise", "verdict", "why", "file")


def of_class(folder, table=None, seconds=answer.SECONDS, framework=None):
    """Check every answer below a folder, print a line each, write a table.

    Args:
        framework: what all compute with; by default what each imports.

    Raises:
        InputError: there is no such folder, or no answer in it.
    """
    folder = pathlib.Path(folder)
    if not folder.is_dir():
        raise InputError(f"there is no folder {str(folder)!r}; name the one "
                         "that has the answers.")
    files = list(answers(folder))
    if not files:
        raise InputError(f"the folder {str(folder)!r} has no answer; their "
                         "names end in an exercise's number, as in "
                         "exercise_3_1.py.")
    rows, right = [], 0
    for who, exercise, path in files:
        status, words = verdict(exercise, path, seconds, framework)
        right += status == judge.RIGHT
        rows.append((who, exercise.number, WORDS[status], words,
                     str(path.relative_to(folder))))
        print(terminal.filled(
            f"{visible(who):16} {exercise.number:5} {WORDS[status]:14} "
            f"{'' if status == judge.RIGHT else words}".rstrip(), indent=23))
    print(f"{right} of {plural(len(rows), 'answer')} right")
    if table:
        out = io.StringIO()
        csv.writer(out).writerows([HEAD, *map(harmless, rows)])
        write_whole(pathlib.Path(table), out.getvalue())


def verdict(exercise, path, seconds, framework):
    """(status, sentence) of one answer, in the framework that it is in."""
    name = framework or frameworks.of_answer(exercise, path)
    if name != "numpy" and (absent := ports.absent(name)):
        return judge.UNUSABLE, f"{absent.reason}, with which it computes."
    return answer.verdict(exercise, path, seconds, False, name)


def answers(folder):
    """Yield (whose, Exercise, path) of each answer below a folder, in order.

    Whose it is says the file's name, or else the folder that it is in.
    """
    for path in sorted(folder.rglob("*.py")):
        found = FILE.fullmatch(path.name)
        number = found["number"].replace("_", ".") if found else ""
        if found and number in exercises():
            yield (found["who"] or path.parent.relative_to(folder).as_posix(),
                   exercises()[number], path)


def harmless(row):
    """A row in which no spreadsheet finds a formula."""
    return [f"'{cell}" if cell.startswith(("=", "+", "-", "@")) else cell
            for cell in row]
