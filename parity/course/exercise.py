"""What an exercise is: a function that the reader writes.

Its task and the file to begin with are ``lessons/exercises/4_2.py``, one
answer is ``lessons/solutions/4_2.py``. What it is held against stands here, in
a file a part of the course: inputs, what is right for them, and what known
mistakes give for them.
"""

import ast
import dataclasses
import functools
import importlib
import typing

import numpy as np

from parity_io.errors import InputError
from transformer_contract.shipped import LESSONS
from parity import ports

FOLDERS = EXERCISES, SOLUTIONS = LESSONS / "exercises", LESSONS / "solutions"

#: What frameworks call their own derivatives; a gradient by hand has none.
AUTOGRAD = frozenset((
    "autograd", "backward", "grad", "GradientTape", "jacfwd", "jacobian",
    "jacrev", "jvp", "linear_transpose", "linearize", "requires_grad",
    "requires_grad_", "value_and_grad", "vjp"))

#: The files that have exercises, in the order of the lessons.
PARTS = ("tokens", "attention", "layers", "training", "search", "hunt",
         "one_call")


@dataclasses.dataclass(frozen=True)
class Exercise:
    """One exercise.

    Attributes:
        number: lesson and place in it, such as "4.2".
        function: the name of the function that the reader writes.
        inputs: () -> a list of tuples, the arguments of each call. So many and
            so different that no answer written for one of them fits.
        right: arguments -> what is right: an array, a tuple of arrays, or
            words and whole numbers, which have to be equal.
        mistakes: {what goes wrong: arguments -> what it gives}. Where the
            catalogue of causes knows the mistake, it has that name.
        limit: the largest relative error, of float64.
        zeros: whether a 0 of what is right has to be exactly 0.
        without: names that an answer's code may not have, because with them a
            library does what the task asks for.
        names: the words of which each answer is one, where the task gives
            them.
    """

    number: str
    function: str
    inputs: typing.Callable
    right: typing.Callable
    mistakes: dict = dataclasses.field(default_factory=dict)
    limit: float = 1e-12
    zeros: bool = False
    without: frozenset = frozenset()
    names: tuple = ()

    @property
    def lesson(self):
        """The number of its lesson."""
        return int(self.number.partition(".")[0])

    @property
    def file(self):
        """The name of its files."""
        return f"{self.number.replace('.', '_')}.py"

    @property
    def start(self):
        """The text of the file to begin with."""
        return (EXERCISES / self.file).read_text(encoding="utf-8")

    def start_in(self, framework):
        """The same in a framework: its code, where there is code to repair."""
        path = EXERCISES / framework / self.file
        if not path.is_file():
            return self.start
        task, = ast.parse(self.start).body[:1]
        lines = self.start.splitlines(keepends=True)[:task.end_lineno]
        return "".join(lines) + "\n" + path.read_text(encoding="utf-8")

    @functools.cached_property
    def of_arrays(self):
        """Whether arrays go in or come out, so that any framework fits."""
        arguments = self.inputs()[0]
        return any(map(_has_arrays, (*arguments, self.right(*arguments))))

    @property
    def parameters(self):
        """The names of the function's arguments."""
        function, = (node for node in ast.parse(self.start).body if isinstance(
            node, ast.FunctionDef) and node.name == self.function)
        return [each.arg for each in function.args.args]

    @property
    def begun(self):
        """The code of that file, without the task."""
        task, *_ = ast.parse(self.start).body
        return "".join(self.start.splitlines(keepends=True)[
            task.end_lineno:]).strip("\n")

    @property
    def title(self):
        """The first line of what is asked."""
        return self.task.partition("\n")[0].removesuffix(".")

    @property
    def task(self):
        """What is asked: the docstring of that file."""
        return ast.get_docstring(ast.parse(self.start))


def _has_arrays(value):
    """Whether a value is an array or has some; a model works on them."""
    if isinstance(value, (dict, list, tuple)):
        values = value.values() if isinstance(value, dict) else value
        return any(map(_has_arrays, values))
    return isinstance(value, np.ndarray) or callable(value)


@functools.cache
def exercises():
    """{number: Exercise}, in order."""
    return {exercise.number: exercise for part in PARTS
            for exercise in importlib.import_module(
                f"parity.course.{part}").EXERCISES}


def following(exercise):
    """The Exercise after this one, or None."""
    after = list(exercises().values())
    return next(iter(after[after.index(exercise) + 1:]), None)


def solutions(exercise):
    """{framework: the text of a right answer in it}, in the pages' order."""
    paths = {"numpy": SOLUTIONS / exercise.file} | {
        name: SOLUTIONS / name / exercise.file
        for name in ports.usual_ports()}
    return {name: path.read_text(encoding="utf-8")
            for name, path in paths.items() if path.is_file()}


def by_number(number):
    """The Exercise of this number.

    Raises:
        InputError: there is none.
    """
    if number not in exercises():
        raise InputError(f"there is no exercise {number}; choose one of "
                         f"{', '.join(exercises())}.")
    return exercises()[number]
