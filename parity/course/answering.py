"""An answer at work, in a process of its own.

``python -P -m parity.course.answering NUMBER FILE SECONDS FRAMEWORK OWN`` calls
the function in FILE on the inputs of an exercise, as arrays of a framework, and
writes what it returned, a record, to the file that is its standard input. The
reader's code runs here, and whatever it does, it does to this process alone;
the judge is another one.
"""

import ast
import contextlib
import copy
import json
import math
import os
import pathlib
import re
import signal
import sys
import traceback
import types

import numpy as np

from parity.course import frameworks
from parity.course.exercise import by_number
from parity.course.record import encoded, words_of

#: The most memory that an answer may take, in bytes.
MEMORY = 8 * 2**30

#: How much longer than the judge waits a process may last, in seconds.
GRACE = 2

#: The packages that an answer is not to import; in some, answers stand.
OURS = re.compile(
    r"(transformer_contract|parity|reference_numpy|impl_\w+|lessons|"
    r"benchmarks)\b")


def record_of(exercise, path, calls, framework="numpy"):
    """What the answer in a file does with the arguments of each call.

    Args:
        framework: what the arguments are arrays of.

    Returns:
        {"answers": what was returned, encoded, "stage": where it stopped,
        "words": at what}, and more of the stage; no stage if it did not stop.
    """
    path = pathlib.Path(path)
    try:
        source = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no UTF-8 text"
        return stopped("read", reason)
    module = types.ModuleType("answer")
    module.__file__ = str(path)
    sys.modules["answer"] = module  # dataclasses look their module up
    try:
        exec(compile(source, str(path), "exec"), vars(module))
    except BaseException as error:
        return stopped("run", quoted(error), line=getattr(
            error, "lineno", None) or line_of(error, path))
    function = vars(module).get(exercise.function)
    if not callable(function):
        return stopped("name", ", ".join(
            name for name, value in vars(module).items()
            if isinstance(value, types.FunctionType)
            and value.__module__ == "answer"))
    return called(function, calls, framework, path) | {
        "uses": sorted(exercise.without & names_in(source))}


def names_in(source):
    """What Python code names of libraries: attributes, imports, arguments, and
    texts, which may name a dtype; its own variables and functions are none."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case (ast.Attribute(attr=word) | ast.alias(name=word)
                  | ast.ImportFrom(module=str(word)) | ast.keyword(
                      arg=str(word)) | ast.Constant(value=str(word))):
                found.update(word.split("."))
    return found


def called(function, calls, framework="numpy", path=None):
    """What a function does with the arguments of each call: a record.

    Args:
        path: its file, of which the line is told that raised.
    """
    to, back = frameworks.to(framework), frameworks.back(framework)
    answers, changed = [], None
    for place, arguments in enumerate(calls, start=1):
        given = [undisturbed(each, to, back) if callable(each) else to(each)
                 for each in copy.deepcopy(arguments)]
        before = [json.dumps(encoded(back(each))) for each in given]
        try:
            answers.append(encoded(back(function(*given))))
        except BaseException as error:
            if type(error) is NotImplementedError and not error.args:
                return stopped("unwritten")  # a framework's own has words
            return stopped("call", quoted(error), place=place,
                           line=line_of(error, path))
        if changed is None:
            changed = next((number for number, each in enumerate(given)
                            if json.dumps(encoded(back(each)))
                            != before[number]),
                           None)
    return {"answers": answers, "changed": changed}


def line_of(error, path):
    """The last line of a file that an exception came through, or None."""
    with contextlib.suppress(BaseException):  # it may be any class
        return next((line for frame, line in reversed(list(
            traceback.walk_tb(error.__traceback__)))
            if frame.f_code.co_filename == str(path)), None)


def undisturbed(function, to, back):
    """A function of ours, whatever the answer has NumPy do with errors.

    Args:
        to, back: make arrays of a framework, and NumPy's of them.
    """
    def run(*arguments):
        with np.errstate(all="ignore"):
            return to(function(*map(back, arguments)))
    return run


def stopped(stage, words="", **more):
    """The record of an answer that stopped."""
    return {"answers": [], "stage": stage, "words": words} | more


def quoted(error):
    """An exception's name and first words."""
    words = words_of(error, lambda one: (
        one.msg if type(one) in (SyntaxError, IndentationError, TabError)
        else str(one))).partition("\n")[0]  # its line is told beside it
    return type(error).__name__ + (f" ({words})" if words else "")


def bounded(seconds):
    """Let this process, and what it starts, end even if nobody ends it.

    Where a system can say so, it has MEMORY at most, and so much processor
    time; an alarm ends one that sleeps.
    """
    with contextlib.suppress(AttributeError):
        signal.alarm(math.ceil(seconds) + GRACE)
    with contextlib.suppress(ImportError):
        import resource
        most = math.ceil(seconds) + GRACE
        for kind, limit in ((resource.RLIMIT_AS, MEMORY),
                            (resource.RLIMIT_CPU, most),
                            (resource.RLIMIT_CORE, 0)):
            with contextlib.suppress(ValueError, OSError):
                resource.setrlimit(kind, (limit, limit))


def ours():
    """The modules of the project that are loaded."""
    return [*filter(OURS.match, list(sys.modules))]


def main(number, path, seconds, framework="numpy", own=None):
    """Run an answer, and write its record to what is standard input.

    Args:
        seconds: how long this process may last.
        own: how long the answer may, once its framework is imported.
    """
    channel = os.dup(0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    bounded(float(seconds))
    exercise = by_number(number)
    calls = exercise.inputs()
    frameworks.to(framework)  # its import is no time of the answer's
    if own is not None:
        with contextlib.suppress(AttributeError):
            signal.setitimer(signal.ITIMER_REAL, float(own))
    for name in ours():
        del sys.modules[name]  # one that is there later, the answer imported
    sys.path.append(str(pathlib.Path(path).resolve().parent))
    status = 1
    with contextlib.suppress(BaseException):  # it may have broken Python
        record = record_of(exercise, path, calls, framework)
        record["imports"] = sorted({name.partition(".")[0] for name in ours()})
        for stream in sys.stdout, sys.stderr:
            with contextlib.suppress(BaseException):
                stream.flush()
        with open(channel, "wb") as out:
            out.truncate(0)
            out.write(json.dumps(record).encode())
        status = 0
    os._exit(status)  # whatever threads the answer left


if __name__ == "__main__":
    main(*sys.argv[1:])
