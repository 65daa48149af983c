"""A Matrix that an earlier run wrote, read again."""

import dataclasses
from typing import Any

from parity_io.checkpoints.folder import read_json
from transformer_contract.config import PRESETS
from parity_io.errors import InputError, is_whole, visible
from parity.matrix.cells import (
    NOT_CHECKED, SCHEMA, WORKS, Matrix, SubjectCell)
from parity.numerics.comparator import DIVERGENCE, MATCH
from parity.subjects import Subject

#: The type of each thing that is said of a place.
PLACE = {"when": str, "processor": str, "cores": int | None,
         "platform": str, "python": str, "versions": dict}


def read(path):
    """The Matrix that a file of Matrix.as_json has.

    Raises:
        InputError: it is none, a newer version's, or has unknown words.
    """
    words = read_json(path)
    schema = words.get("schema")
    if is_whole(schema) and schema > SCHEMA:
        raise InputError(
            f"{str(path)!r} is of a newer version of parity (schema "
            f"{schema}); install that one.")
    try:
        matrix = Matrix(
            words["preset"],
            [SubjectCell.of_json(one) for one in words["cells"]],
            words["places"])
        problem = (problem_of(matrix) if schema == SCHEMA
                   else "it has no such schema")
    except (KeyError, TypeError, AttributeError):
        problem = "it lacks what each has"
    if problem:
        raise InputError(
            f"{str(path)!r} is no matrix ({visible(problem)}); give what "
            "parity check matrix --json wrote.")
    matrix.cells = [judged(cell) for cell in matrix.cells]
    return matrix


def judged(cell):
    """A SubjectCell that was read, its verdict worked out from its numbers."""
    if cell.verdict == MATCH and cell.error > cell.limit:
        return dataclasses.replace(
            cell, verdict=DIVERGENCE, reason=f"{cell.tensor}: above its limit")
    return cell


def problem_of(matrix):
    """What of a Matrix is of another type or unknown, in words, or "".

    Raises:
        KeyError, TypeError, AttributeError: something is of another type.
    """
    if matrix.preset not in PRESETS:
        return f"there is no preset {str(matrix.preset)[:60]}"
    if not matrix.places or not all(
            isinstance(place[name], kind) for place in matrix.places
            for name, kind in PLACE.items()):
        return "it does not say where it was measured"
    return next(filter(None, (cell_problem(cell, len(matrix.places))
                              for cell in matrix.cells)), "")


def cell_problem(cell, places):
    """What of a SubjectCell is unknown, in words, or ""; of so many places."""
    for one, kind in ((cell, SubjectCell), (cell.subject, Subject)):
        for field in dataclasses.fields(kind):
            kinds: Any = field.type
            if kinds == float | None:
                kinds |= int
            if not isinstance(getattr(one, field.name), kinds):
                return f"{field.name} is of another type"
    about = f"{cell.subject}, {cell.work[:60]}"
    if cell.subject.dtype not in WORKS.get(cell.work, ()):
        return f"{about}: there is no such cell"
    if not 0 <= cell.place < places:
        return f"{about}: it has no place"
    if cell.verdict not in (MATCH, DIVERGENCE, NOT_CHECKED):
        return f"there is no verdict {cell.verdict[:60]}"
    if cell.verdict == MATCH and None in (cell.error, cell.limit):
        return f"{about}: it matches, but has no error or no limit"
    return ""
