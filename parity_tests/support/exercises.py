"""Exercises of the course: verdicts on files and on functions.

``python -m parity_tests.support.exercises torch`` judges answers in a framework
in one process, for what a framework is told there stays told.
"""

import json
import pathlib
import sys
import tempfile

import numpy as np

from parity.course import answering, frameworks, judge, record
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


#: An answer that gives for all inputs what it has given for the first.
KEPT = """

def keeping(function, kept=[]):
    return lambda *inputs: kept[0] if kept else kept.append(
        function(*inputs)) or kept[0]


{0} = keeping({0})
"""


def carried(mistake, framework):
    """A mistake in NumPy as a function of a framework's arrays."""
    to, back = frameworks.to(framework), frameworks.back(framework)

    def given(value):
        return (lambda *more: back(value(*more))) if callable(value) else (
            back(value))
    return lambda *arguments: to(frameworks.through(
        np.ndarray, np.ndarray.copy, mistake(*map(given, arguments))))


def verdicts(framework):
    """{number: what is said of the answers in a framework}.

    Each is the (status, sentence) of our answer, of the file to begin with, of
    one that keeps its first answer, and {a mistake's name: the same of it}.
    """
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        def of(exercise, text):
            path = written(pathlib.Path(folder), text)
            return judged(exercise, answering.record_of(
                exercise, path, exercise.inputs(), framework), path)
        for number, exercise in exercises().items():
            if not exercise.of_arrays:
                continue
            text = (SOLUTIONS / framework / exercise.file).read_text("utf-8")
            found[number] = {
                "right": of(exercise, text),
                "begun": of(exercise, exercise.start_in(framework)),
                "kept": of(exercise, text + KEPT.format(exercise.function)),
                "mistakes": {name: judged(exercise, answering.called(
                    carried(mistake, framework), exercise.inputs(),
                    framework)) for name, mistake in
                    exercise.mistakes.items()}}
    return found


if __name__ == "__main__":
    print(json.dumps(verdicts(sys.argv[1])))
