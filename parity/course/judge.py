"""Whether an answer is right: run as a program, in a process of its own.

``python -m parity.course.judge NUMBER FILE VERDICT`` calls the function in
FILE and writes what it found to the file VERDICT. The reader's code runs here,
and whatever it does, it does to this process alone.
"""

import contextlib
import copy
import json
import pathlib
import sys
import types

import numpy as np

from contract.errors import InputError, visible
from parity.causes import catalogue
from parity.causes.hint import Hint
from parity.course.exercise import by_number
from parity.numerics.comparator import DIVERGENCE, compare

#: The most memory that an answer may take, in bytes.
MEMORY = 8 * 2**30

RIGHT, WRONG, UNUSABLE = 0, 1, 2

#: The longest of what is quoted.
LONGEST = 200


def judged(exercise, path):
    """(status, sentence) of the answer in a file."""
    try:
        function = function_of(path, exercise.function)
    except InputError as problem:
        return UNUSABLE, str(problem)
    answers, calls = [], exercise.inputs()
    for place, arguments in enumerate(calls, start=1):
        try:
            answers.append(function(*copy.deepcopy(arguments)))
        except NotImplementedError:
            return WRONG, (f"{exercise.function} is not written yet: replace "
                           "the line that raises NotImplementedError.")
        except (Exception, SystemExit) as error:
            return WRONG, (
                f"{exercise.function} raises {quoted(error)} on inputs "
                f"{place} of {len(calls)}: {shown(arguments)}.")
    truths = [exercise.right(*arguments) for arguments in calls]
    for place, (answer, truth) in enumerate(zip(answers, truths), start=1):
        if problem := difference(answer, truth, exercise.limit):
            known = mistake_of(exercise, calls, answers)
            return WRONG, (
                f"{exercise.number} is not right yet. On inputs {place} of "
                f"{len(calls)}, {shown(calls[place - 1])}: {problem}."
                f"{known or hint(answer, truth, exercise.limit)}")
    return RIGHT, (f"{exercise.number} is right: {len(calls)} inputs, each "
                   "within the limit.")


def function_of(path, name):
    """The function of this name in a file.

    Raises:
        InputError: the file cannot be read or run, or has no such function.
    """
    path = pathlib.Path(path)
    try:
        source = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no UTF-8 text"
        raise InputError(f"{str(path)!r} cannot be read ({reason}).") from None
    module = types.ModuleType("answer")
    module.__file__ = str(path)
    try:
        exec(compile(source, str(path), "exec"), vars(module))
    except (Exception, SystemExit) as error:
        line = getattr(error, "lineno", None)
        where = f", line {line}" if line else ""
        raise InputError(f"{path.name}{where} cannot be run: it raises "
                         f"{quoted(error)}.") from None
    function = getattr(module, name, None)
    if not callable(function):
        own = [each for each, value in vars(module).items()
               if isinstance(value, types.FunctionType)
               and value.__module__ == "answer"]
        raise InputError(
            f"{path.name} defines no function {name!r}"
            + (f", but {', '.join(own)}" if own else "")
            + "; keep the name that the task gives.")
    return function


def quoted(error):
    """An exception's name and first words."""
    words = visible(str(error).partition("\n")[0])[:LONGEST]
    return type(error).__name__ + (f" ({words})" if words else "")


def shown(arguments):
    """The inputs of a call in a few words."""
    return ", ".join(
        f"{value.dtype} {list(value.shape)}" if isinstance(value, np.ndarray)
        else "a function" if callable(value)
        else repr(value) if len(repr(value)) < 40
        else f"a {type(value).__name__} of {len(value)}"
        for value in arguments)


def difference(answer, truth, limit):
    """In what an answer differs from what is right; "" if in nothing."""
    if isinstance(truth, tuple):
        if not isinstance(answer, tuple):
            return (f"{type(answer).__name__} is returned, not a tuple of "
                    f"{len(truth)}")
        if len(answer) != len(truth):
            return f"{len(answer)} values are returned, not {len(truth)}"
        for place, (one, other) in enumerate(zip(answer, truth), start=1):
            if problem := difference(one, other, limit):
                return f"value {place} of {len(truth)}: {problem}"
        return ""
    if not isinstance(truth, (np.ndarray, np.floating, float)):
        equal = type(answer) is type(truth) and answer == truth
        return "" if equal else (
            f"{visible(repr(answer))[:LONGEST]}, not {repr(truth)[:LONGEST]}")
    truth = np.asarray(truth)
    if isinstance(answer, (float, np.generic)):
        answer = np.asarray(answer)
    if isinstance(answer, np.ndarray) and not truth.any():
        if answer.shape == truth.shape and not answer.any():
            return ""  # zeros, which have no relative error
        return "numbers that are not 0, where all should be"
    result = compare(answer, truth, limit)
    if result.verdict != DIVERGENCE:
        return ""
    if result.error is None or result.limit == 0:
        return result.reason
    return f"relative L2 error {result.error:.1e}, limit {limit:.0e}"


def mistake_of(exercise, calls, answers):
    """A sentence on the mistake that gives these very answers, or ""."""
    for name, function in exercise.mistakes.items():
        with np.errstate(all="ignore"):
            gives = [function(*arguments) for arguments in calls]
        if all(_without_number(answer, one)
               or not difference(answer, one, exercise.limit)
               for answer, one in zip(answers, gives)):
            cause = next((each for each in catalogue.causes()
                          if each.name == name), None)
            if cause:
                return f" It is a known mistake, “{name}”: {cause.sentence}"
            return f" A known way to get it: {name}."
    return ""


def _without_number(answer, other):
    """Whether two arrays have NaN everywhere, so that nothing is compared."""
    return all(isinstance(one, np.ndarray) and one.dtype.kind == "f"
               and np.isnan(one).all() for one in (answer, other)
               ) and answer.shape == other.shape


def hint(answer, truth, limit):
    """What two arrays look like beside each other, in a sentence, or ""."""
    arrays = (isinstance(truth, np.ndarray) and truth.dtype.kind == "f"
              and isinstance(answer, np.ndarray) and answer.dtype.kind == "f"
              and answer.size and truth.any()
              and np.isfinite(answer).all() and np.isfinite(truth).all())
    if not arrays:
        return ""
    text = Hint(np.asarray(answer, np.float64), truth, None, limit,
                ("your answer", "what is right")).text()
    return f" By the numbers: {text}." if text else ""


def bounded():
    """Let this process have no more than MEMORY, where a system can say so."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def main(number, path, verdict):
    """Judge, and write {"status", "text"} to the file ``verdict``."""
    bounded()
    status, text = judged(by_number(number), path)
    pathlib.Path(verdict).write_text(json.dumps(
        {"status": status, "text": text}), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
