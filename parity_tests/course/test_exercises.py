"""Each exercise fails as it begins, passes as solved, and names mistakes."""

import ast
import re

import pytest

from parity.causes import catalogue
from parity.course import answer, judge
from parity.course.exercise import EXERCISES, SOLUTIONS, exercises
from parity.reading import lessons
from parity_tests.support.commands import invoke

ALL = list(exercises().values())


def of_all():
    return pytest.mark.parametrize(
        "exercise", ALL, ids=lambda exercise: exercise.number)


def written(tmp_path, text):
    path = tmp_path / "answer.py"
    path.write_text(text, encoding="utf-8")
    return path


@of_all()
def test_fails_as_it_begins_and_passes_as_solved(exercise):
    status, words = judge.judged(exercise, EXERCISES / exercise.file)
    assert status == judge.WRONG, words
    status, words = judge.judged(exercise, SOLUTIONS / exercise.file)
    assert status == judge.RIGHT, words


@of_all()
def test_known_mistakes_are_named(exercise, monkeypatch):
    """Each gives numbers of its own, and is called by its name."""
    names = {cause.name: cause for cause in catalogue.causes()}
    for name, mistake in exercise.mistakes.items():
        monkeypatch.setattr(judge, "function_of",
                            lambda path, function, made=mistake: made)
        status, words = judge.judged(exercise, "answer.py")
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


def test_every_lesson_has_three():
    numbers = [int(path.stem[:2]) for path in lessons.paths()]
    assert numbers == list(range(1, 13))
    for folder in EXERCISES, SOLUTIONS:
        assert {path.name for path in folder.glob("*.py")} == {
            exercise.file for exercise in ALL}
    for lesson in numbers:
        own = [one.number for one in ALL if one.lesson == lesson]
        assert own == [f"{lesson}.{place}" for place in (1, 2, 3)]


@pytest.mark.parametrize("text, status, words", [
    ("def causal_mask(length):\n    while True:\n        pass\n", 1,
     "did not end within 1 seconds"),
    ("while True:\n    pass\n", 1, "did not end within 1 seconds"),
    ("import os\nos._exit(0)\n", 1, "ended its process"),
    ("def causal_mask(length):\n    raise ValueError('a\\nb')\n", 1,
     r"raises ValueError \(a\) on inputs 1 of 4"),
    ("def causal_mask(length):\n    raise SystemExit(3)\n", 1,
     "raises SystemExit"),
    ("def causal_mask(a, b):\n    return a\n", 1, "raises TypeError"),
    ("def causal_mask(length):\n    return None\n", 1,
     "not an array but NoneType"),
    ("def causal_mask(length):\n    import numpy\n"
     "    return numpy.ones((length, length), bool)\n", 1,
     r"shape \[1, 1\], not \[1, 1, 1, 1\]"),
    ("def mask(length):\n    return 1\n", 2,
     "no function 'causal_mask', but mask; keep the name"),
    ("causal_mask = 1\n", 2, "no function 'causal_mask'; keep"),
    ("def causal_mask(length)\n", 2, "line 1 cannot be run.*SyntaxError"),
    ("import nowhere_at_all\n", 2, "ModuleNotFoundError"),
    ("", 2, "no function"),
])
def test_bad_answers_are_told_in_a_sentence(tmp_path, text, status, words):
    exercise = exercises()["4.1"]
    slow = answer.SECONDS if "while" not in text else 1
    found, sentence = answer.verdict(exercise, written(tmp_path, text), slow)
    assert found == status
    assert re.search(words, sentence)
    assert "\n" not in sentence and len(sentence) < 600


def test_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    listed = invoke("exercise")
    assert listed.exit_code == 0
    assert len(listed.output.splitlines()) == len(ALL)
    begun = invoke("exercise", "4.1")
    assert begun.exit_code == 0 and "True means" in begun.output
    path = tmp_path / "exercise_4_1.py"
    assert path.read_text("utf-8") == exercises()["4.1"].start
    unwritten = invoke("exercise", "4.1", path)
    assert unwritten.exit_code == 1
    assert "causal_mask is not written yet" in unwritten.output
    path.write_text("import numpy as np\ndef causal_mask(length):\n"
                    "    return np.tri(length, k=1, dtype=bool)[None, None]\n")
    assert "left as it is" in invoke("exercise", "4.1").output
    assert "np.tri" in path.read_text("utf-8")
    wrong = invoke("exercise", "4.1", path)
    assert wrong.exit_code == 1
    assert "“causal mask off by one, to the future”" in wrong.output
    right = invoke("exercise", "4.1", SOLUTIONS / "4_1.py")
    assert right.exit_code == 0 and "4.1 is right" in right.output


@pytest.mark.parametrize("words", [
    ["4.9"], ["four"], ["4.1", "nowhere.py"], ["4.1", "."]])
def test_what_is_not_there_is_told(words):
    done = invoke("exercise", *words)
    assert done.exit_code == 2 and done.output.startswith("parity: ")
