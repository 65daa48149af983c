"""A lack of memory, told with the step and the size; and what prevents one.
"""

import ast
import contextlib
import ctypes
import gc
import linecache
import pathlib
import re
import traceback

#: What libraries say where memory is short, and how they say how much was
#: asked for: in bytes, or as a shape.
SHORT = re.compile("out of memory|allocate memory|unable to allocate|"
                   "oom when allocating|resource_exhausted|bad_alloc", re.I)
SIZE = re.compile(r"([\d.]+) ?([KMGTP]iB|bytes)")
SHAPE = re.compile(r"shape ?([\[(][\d, ]+[\])])")

#: The comment above a step.
STEP = re.compile(r"\s*# \[\d+\] (\w+)")


def message(error, models=()):
    """What there was no memory for, and where, as a sentence; "" otherwise.

    Args:
        error: what a library raised, of whatever type.
        models: the names of the folders whose lines are told as the place.
    """
    text = str(error)
    if not isinstance(error, MemoryError) and not SHORT.search(text):
        return ""
    size, shape = SIZE.search(text), SHAPE.search(text)
    asked = ", ".join(filter(None, (
        size and in_words(*size.groups()),
        shape and f"an array of shape {shape[1]}"))) or "this"
    place = where(error, models)
    return (f"there is not enough memory for {asked}"
            f"{' at ' * bool(place)}{place}; choose smaller sizes.")


def in_words(number, unit):
    """A size as text: bytes in GiB."""
    if unit != "bytes":
        return f"{number} {unit}"
    return f"{float(number) / 2**30:.3g} GiB"


def where(error, folders):
    """The innermost step of a model of these folders, in a traceback.

    Where there is none, the innermost line of a model; "" if none is.
    """
    places = []
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        folder = next((part for part in pathlib.Path(frame.filename).parts
                       if part in folders), None)
        if folder is None:
            continue
        file = frame.filename[frame.filename.rindex(folder):]
        place = f"{frame.name} in {file}, line {frame.lineno}"
        if step := step_at(frame.filename, frame.lineno):
            return f"step {step} of {place}"
        places.append(place)
    return places[0] if places else ""


def step_at(file, number):
    """The step that the statement in a line computes, or ""."""
    lines = linecache.getlines(file)
    statements = [node.lineno for node in ast.walk(ast.parse("".join(lines)))
                  if isinstance(node, ast.stmt)
                  and node.lineno <= number <= node.end_lineno]
    above = lines[max(statements) - 2] if statements else ""
    found = STEP.match(above)
    return found[1] if found else ""


def release():
    """Give memory of dropped models back to the system, where that works.

    The C library keeps freed blocks of some megabytes, which is what weights
    are made of, so that three large models in turn would look like three at
    once.
    """
    gc.collect()
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
