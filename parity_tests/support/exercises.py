"""Exercises of the course: verdicts on files and on functions."""

import json

from parity.course import answering, judge, record
from parity.course.exercise import SOLUTIONS, exercises


def judged(exercise, told, path=SOLUTIONS / "answer.py"):
    """(status, all that is said) on a record, once it was written and read."""
    found = judge.judged(exercise, path, record.read(json.dumps(told)))
    return found.status, " ".join(filter(None, (found.sentence, found.hint)))


def of_function(exercise, function):
    """The verdict on a function."""
    return judged(exercise, answering.called(function, exercise.inputs()))


def of_file(exercise, path):
    """The verdict on a file, which runs in this process."""
    return judged(exercise, answering.record_of(
        exercise, path, exercise.inputs()), path)


def written(tmp_path, text):
    path = tmp_path / "answer.py"
    path.write_text(text, encoding="utf-8")
    return path


def solution(number):
    """The function of a solution."""
    names = {}
    exercise = exercises()[number]
    exec((SOLUTIONS / exercise.file).read_text("utf-8"), names)
    return names[exercise.function]
