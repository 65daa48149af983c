"""What a matrix holds, as data: a cell for each subject and each work."""

import dataclasses
import math

from parity_io.checkpoints.folder import read_json
from parity_io.errors import InputError, is_whole
from transformer_contract.config import PRESETS
from parity.numerics.comparator import DIVERGENCE, MATCH
from parity.numerics.dtypes import BOTH, DTYPES, MIXED, TIERS
from parity.subjects import Subject, of_json

NOT_CHECKED = "not checked"

#: What is compared, and the dtypes in which it has a limit.
WORKS = {
    "forward": (*DTYPES, *TIERS),
    "gradients": (*BOTH, *MIXED),
    "training": ("float64", *MIXED),
    "generation": ("float64",),
}

#: What is known of some cells beside their error.
MORE = "beside", "again", "threads", "alone", "large", "memory"

#: What as_json writes, and the newest that is read.
SCHEMA = 1


@dataclasses.dataclass(frozen=True)
class SubjectCell:
    """What was found of one Subject at one work.

    Attributes:
        subject: a Subject.
        work: a key of WORKS.
        verdict: MATCH, DIVERGENCE or NOT_CHECKED.
        reason: why it was not checked, or what diverged.
        error, limit: of the tensor that is nearest to its limit.
        tensor: its name.
        compared: how many tensors were.
        seconds: CPU time of one run once all is prepared, if it was taken.
        preparing: seconds until the first run had ended.
        cause: of a divergence, if it is known.
        place: where and when it was measured, as a number in Matrix.places.
        beside: the error of the output, or of all gradients or of how weights
            moved, over that of the reference in the same dtype.
        again, threads, alone: how far the output is from itself when asked ten
            times, by two threads, and about a row alone.
        large: CPU time of a pass over many rows.
        memory: the most bytes that such a pass had beside the model's.
    """

    subject: Subject
    work: str
    verdict: str
    reason: str = ""
    error: float | None = None
    limit: float | None = None
    tensor: str = ""
    compared: int = 0
    seconds: float | None = None
    preparing: float | None = None
    cause: str = ""
    place: int = 0
    beside: float | None = None
    again: float | None = None
    threads: float | None = None
    alone: float | None = None
    large: float | None = None
    memory: float | None = None

    @property
    def share(self):
        """The error over its limit; None where nothing was compared."""
        if self.error is None or not self.limit:
            return None
        return self.error / self.limit

    def as_json(self):
        """The cell as plain data; its subject is called "target" there."""
        words = dataclasses.asdict(self)
        return {"target": words.pop("subject"), **words, "share": self.share}

    @classmethod
    def of_json(cls, words):
        """The cell of what as_json returned."""
        names = {field.name for field in dataclasses.fields(cls)}
        return cls(**{name: value for name, value in words.items()
                      if name in names}
                   | {"subject": of_json(words["target"])})


def left_out(subject, work, reason):
    """The SubjectCell of what was not checked."""
    return SubjectCell(subject, work, NOT_CHECKED, reason)


def failed(subject, work, reason):
    """The SubjectCell of a run that ended in an error."""
    return SubjectCell(subject, work, DIVERGENCE, reason)


def cell_of(subject, work, measured):
    """The SubjectCell of what a port measured.

    Args:
        measured: {"differences": {name: Difference}, "seconds", "preparing"},
            and the "cause" of a divergence, if it is known.
    """
    differences = measured["differences"]
    wrong = {name: one for name, one in differences.items()
             if one.verdict == DIVERGENCE}
    # The first step that diverges says more than the one that does most.
    name = next(iter(wrong), None) or max(
        differences, key=lambda name: differences[name].share or 0.0)
    one = differences[name]
    error, limit = (float(value) if value is not None and math.isfinite(value)
                    else None for value in (one.error, one.limit))
    return SubjectCell(
        subject, work, DIVERGENCE if wrong else MATCH,
        ": ".join(filter(None, (name, one.reason))) if wrong else "",
        error, limit, name, len(differences), measured["seconds"],
        measured["preparing"], measured.get("cause", ""),
        **{name: measured[name] for name in MORE if name in measured})


@dataclasses.dataclass
class Matrix:
    """All cells of a run, and where and when it was.

    Attributes:
        preset: the model's.
        cells: SubjectCells, in order.
        places: machine, date and versions, as plain data; the first is here.
    """

    preset: str
    cells: list = dataclasses.field(default_factory=list)
    places: list = dataclasses.field(default_factory=lambda: [{}])

    def add(self, earlier):
        """Put the cells of an earlier run before those of this.

        A cell that was measured again is this run's.
        """
        first = len(self.places)
        self.places += earlier.places
        again = {(cell.subject, cell.work): cell for cell in self.cells}
        moved = [again.pop((cell.subject, cell.work), None)
                 or dataclasses.replace(cell, place=first + cell.place)
                 for cell in earlier.cells]
        self.cells = moved + list(again.values())

    @property
    def checked(self):
        """The cells that were measured."""
        return [cell for cell in self.cells if cell.verdict != NOT_CHECKED]

    @property
    def divergences(self):
        """The cells that diverge."""
        return [cell for cell in self.cells if cell.verdict == DIVERGENCE]

    @property
    def status(self):
        """The exit status: 0 match, 1 divergence, 4 nothing was compared."""
        if not self.checked:
            return 4
        return 1 if self.divergences else 0

    def as_json(self):
        """The matrix as plain data."""
        return {"schema": SCHEMA, "preset": self.preset, "places": self.places,
                "cells": [cell.as_json() for cell in self.cells]}


def read_matrix(path):
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
        matrix = Matrix(words["preset"], [
            judged(SubjectCell.of_json(one), words["places"])
            for one in words["cells"]], words["places"])
        known = schema == SCHEMA and matrix.preset in PRESETS
    except (KeyError, TypeError, AttributeError, ValueError):
        known = False
    if not known:
        raise InputError(f"{str(path)!r} is no matrix; give what parity check "
                         "matrix --json wrote.")
    return matrix


def judged(cell, places):
    """A SubjectCell that was read, its verdict worked out from its numbers.

    Raises:
        KeyError, TypeError, ValueError: it has other types or unknown words.
    """
    if cell.verdict not in (MATCH, DIVERGENCE, NOT_CHECKED) or (
            cell.subject.dtype not in WORKS[cell.work]
            or cell.place not in range(len(places))):
        raise ValueError(cell)
    if cell.verdict == MATCH and cell.error > cell.limit:
        return dataclasses.replace(
            cell, verdict=DIVERGENCE, reason=f"{cell.tensor}: above its limit")
    return cell
