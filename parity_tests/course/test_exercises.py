"""Each exercise fails as it begins, passes as solved, and names mistakes."""

import ast
import copy
import re

import numpy as np
import pytest

from parity.causes import catalogue
from parity.course import judge
from parity.course.exercise import EXERCISES, SOLUTIONS, exercises
from parity.reading import lessons
from parity_tests.support.exercises import (
    of_file, of_function, solution)

ALL = list(exercises().values())


def of_all():
    return pytest.mark.parametrize(
        "exercise", ALL, ids=lambda exercise: exercise.number)


@of_all()
def test_fails_as_it_begins_and_passes_as_solved(exercise):
    status, words = of_file(exercise, EXERCISES / exercise.file)
    assert status == judge.WRONG, words
    status, words = of_file(exercise, SOLUTIONS / exercise.file)
    assert status == judge.RIGHT, words


@of_all()
def test_known_mistakes_are_named(exercise):
    """Each gives numbers of its own, and is called by its name."""
    names = {cause.name: cause for cause in catalogue.causes()}
    for name, mistake in exercise.mistakes.items():
        status, words = of_function(exercise, mistake)
        assert status == judge.WRONG and name in words, name
        assert name not in names or names[name].sentence in words


@of_all()
def test_its_files_are_whole(exercise):
    """A docstring of some sentences, and a function of the right name."""
    tree = ast.parse(exercise.start)
    assert len(exercise.task.split()) > 25
    assert exercise.function in {
        node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert len(exercise.inputs()) >= 2
    for folder in EXERCISES, SOLUTIONS:
        for line in (folder / exercise.file).read_text("utf-8").splitlines():
            assert len(line) <= 80


#: How many exercises lessons have that have not three: the thirteenth is about
#: the reader's own code, the last about a single call.
OTHERS = {13: 0, 14: 1}


def test_every_lesson_has_three():
    """But for OTHERS."""
    numbers = [int(path.stem[:2]) for path in lessons.paths()]
    assert numbers == list(range(1, 15))
    for folder in EXERCISES, SOLUTIONS:
        assert {path.name for path in folder.glob("*.py")} == {
            exercise.file for exercise in ALL}
    for lesson in numbers:
        own = [one.number for one in ALL if one.lesson == lesson]
        assert own == [f"{lesson}.{place + 1}"
                       for place in range(OTHERS.get(lesson, 3))]


def test_lessons_count_the_mistakes_that_are_known():
    counts = "no one two three four five six seven eight nine ten".split()
    told = [(number, counts.index(count.lower()))
            for path in lessons.paths()
            for number, count in re.findall(
                r"\*\*(\d+\.\d)\*\* [^.]*\.\s(\w+) [\w ]+ known by name",
                path.read_text("utf-8"))]
    assert len(told) == 6
    for number, count in told:
        assert count == len(exercises()[number].mistakes), number


@of_all()
def test_every_argument_matters(exercise):
    """An answer that has the first value of one of them built in is wrong."""
    right, first = solution(exercise.number), exercise.inputs()[0]
    for place, name in enumerate(exercise.parameters):
        def deaf(*arguments, place=place):
            held = copy.deepcopy(first[place])
            return right(*arguments[:place], held, *arguments[place + 1:])
        assert of_function(exercise, deaf)[0] == judge.WRONG, name


def unlike(number, old, new):
    """A solution with something else in one place."""
    exercise, names = exercises()[number], {}
    text = (SOLUTIONS / exercise.file).read_text("utf-8")
    assert text.count(old) == 1
    exec(text.replace(old, new), names)
    return of_function(exercise, names[exercise.function])


@pytest.mark.parametrize("number, old, new, words", [
    ("12.2", "gap > 1e-12 * np.linalg.norm(ours[name])", "gap > 0",
     "need not be equal"),
    ("12.2", "gap > 1e-12 * np.linalg.norm(ours[name])", "gap > 1e-12",
     "limit is absolute"),
    ("12.2", "gap > 1e-12 * np.linalg.norm(ours[name])",
     "(np.abs(theirs[name] - ours[name]) > 1e-12 * np.abs(ours[name])).any()",
     "is not right"),
    ("12.2", "gap > 1e-12 *", "gap > 1e-6 *", "is not right"),
    ("4.3", "range(len(tokens))", "range(len(tokens) - 2)", "last place"),
    ("4.3", "(changed[place + 1:] + 1) % 20", "9", "is not right"),
    ("11.1", "if tokens[-1] == eos", "if tokens[-1] == 2", "is not right"),
    ("11.1", "[bos]", "[1]", "is not right"),
    ("11.2", 'np.argsort(-candidates, kind="stable")',
     "np.argsort(candidates)[::-1]", "is not right"),
    ("10.1", "labels != pad_id", "labels != 0", "is not right"),
    ("10.2", "labels != pad_id", "labels != 0", "is not right"),
    ("10.3", "labels != pad_id", "labels != 0", "is not right"),
    ("10.3", "* kept[..., None]", "* np.maximum(kept[..., None], 1e-20)",
     "exactly 0"),
    ("7.1", "reshape(b, t, heads, -1)", "reshape(b, t, 2, -1)",
     "is not right"),
    ("9.1", "m = beta1 * m + (1 - beta1) * gradient",
     "m *= beta1; m += (1 - beta1) * gradient", "changes 'm'"),
])
def test_answers_that_miss_the_point(number, old, new, words):
    assert re.search(words, unlike(number, old, new)[1])


@pytest.mark.parametrize("number, answer", [
    ("6.2", lambda x, y: "rms" if np.abs(y.mean(-1)).max() > 1e-6 else
     "layer" if abs(y.std() - 1) < 1e-3 else "std"),
    ("6.2", lambda x, y: "layer" if np.abs(y.mean(-1)).max() < 1e-2 and
     y.std() < 0.8 else solution("6.2")(x, y)),
    ("9.3", lambda gradients, limit: tuple(
        one + 0 * limit / np.sqrt(sum((g * g).sum() for g in gradients))
        for one in solution("9.3")(gradients, limit))),
    ("10.1", lambda x, labels, pad_id: float(-np.log(np.take_along_axis(
        np.exp(x) / np.exp(x).sum(-1, keepdims=True), labels[..., None],
        -1))[labels != pad_id].mean())),
    ("11.1", lambda f, bos, eos, most: [bos] if bos == eos else
     solution("11.1")(f, bos, eos, most)),
    ("12.2", lambda ours, theirs: next((
        name for name in ours if np.linalg.norm(theirs[name] - ours[name])
        > 1e-9 * np.linalg.norm(ours[name])), "")),
    ("12.2", lambda ours, theirs: next((
        name for name in ours if np.abs(theirs[name] - ours[name]).max()
        > 1e-12 * np.abs(ours[name]).max()), "")),
])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_answers_that_fit_the_easy_inputs_alone(number, answer):
    assert of_function(exercises()[number], answer)[0] == judge.WRONG


@pytest.mark.parametrize("constant", range(20))
def test_no_constant_finds_every_leak(constant):
    words = unlike("4.3", "(changed[place + 1:] + 1) % 20", str(constant))[1]
    assert "is not right" in words


@pytest.mark.parametrize("number, dtype, right", [
    ("11.2", np.int32, True), ("11.2", np.uint8, True),
    ("11.2", np.float64, False), ("6.1", np.longdouble, True),
    ("6.1", np.float32, False), ("12.1", np.float64, False)])
def test_the_dtypes_that_a_task_leaves_open(number, dtype, right):
    def answer(*arguments):
        given = solution(number)(*arguments)
        if isinstance(given, tuple):
            return given[0], *(each.astype(dtype) for each in given[1:])
        return given.astype(dtype)
    status, words = of_function(exercises()[number], answer)
    assert (status == judge.RIGHT) == right, words


@pytest.mark.parametrize("hidden", [-50, -1000, -1e6])
def test_a_hidden_weight_is_exactly_zero(hidden):
    def answer(scores, mask):
        e = np.where(mask, scores, hidden)
        e = np.exp(e - e.max(axis=-1, keepdims=True))
        weights = e / e.sum(axis=-1, keepdims=True)
        return weights * mask.any(axis=-1, keepdims=True)
    exercise = exercises()["4.2"]
    wrong = of_function(exercise, answer)[0] == judge.WRONG
    assert wrong == (hidden > -1e6)


@of_all()
def test_arguments_stay_the_caller_s(exercise):
    """A right answer that then writes into an argument is told which."""
    right = solution(exercise.number)

    def writing(*arguments):
        result = copy.deepcopy(right(*arguments))
        for value in arguments:
            if isinstance(value, dict):
                value = next(iter(value.values()))
            if isinstance(value, list):
                value.append("x")
            elif isinstance(value, np.ndarray):
                value[...] = value == 0
        return result
    arrays = any(isinstance(each, (np.ndarray, dict, list))
                 for each in exercise.inputs()[0])
    status, words = of_function(exercise, writing)
    assert (status == judge.WRONG and "changes '" in words) == arrays, words


def test_no_pattern_is_told_where_there_is_none():
    exercise = exercises()["6.1"]
    for factor in 1 + 1e-10, 1 + 1e-8:
        words = of_function(exercise, lambda *a, by=factor: (
            solution("6.1")(*a) * by))[1]
        assert words.endswith("limit 1e-11."), words
    assert "0.5 times" in of_function(
        exercise, lambda *a: solution("6.1")(*a) / 2)[1]
    noise = np.random.default_rng(0)
    words = of_function(exercise, lambda *a: (
        lambda y: y + 1e-4 * noise.standard_normal(y.shape))(
            solution("6.1")(*a)))[1]
    assert "By the numbers" not in words


@pytest.mark.parametrize("number, made, right", [
    ("7.2", lambda *a: np.int64(a[0]) * 0 + solution("7.2")(*a), True),
    ("6.2", lambda *a: np.str_(solution("6.2")(*a)), True),
    ("11.1", lambda *a: [np.int64(i) for i in solution("11.1")(*a)], True),
    ("11.1", lambda *a: [float(i) for i in solution("11.1")(*a)], False),
    ("11.1", lambda *a: tuple(solution("11.1")(*a)), False),
    ("7.2", lambda *a: float(solution("7.2")(*a)), False),
    ("7.2", lambda *a: True, False),
])
def test_scalars_of_numpy_are_what_they_equal(number, made, right):
    status, words = of_function(exercises()[number], made)
    assert (status == judge.RIGHT) == right, words
