"""What a matrix holds, as data: a cell for each target and each work."""

import dataclasses
import math
import sys

from contract.checkpoints.folder import read_json
from contract.errors import InputError, is_whole
from parity.numerics.comparator import DIVERGENCE, MATCH
from parity.numerics.dtypes import BOTH, DTYPES, MIXED, TIERS
from parity.numerics.tolerances import FLOAT64_GRADIENT, FLOAT64_LIMIT
from parity.targets import Target, of_json

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

#: What is said of a place.
PLACE = {"when", "processor", "cores", "platform", "python", "versions"}

#: The largest limit of a work in float64; others follow NumPy's own error, or
#: what steps of training allow.
LARGEST = {("forward", "float64"): FLOAT64_LIMIT,
           ("gradients", "float64"): FLOAT64_GRADIENT}


@dataclasses.dataclass(frozen=True)
class TargetCell:
    """What was found of one Target at one work.

    Attributes:
        target: a Target.
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

    target: Target
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
        """The cell as plain data."""
        return dataclasses.asdict(self) | {"share": self.share}

    @classmethod
    def of_json(cls, words):
        """The cell of what as_json returned."""
        names = {field.name for field in dataclasses.fields(cls)}
        return cls(**{name: value for name, value in words.items()
                      if name in names}
                   | {"target": of_json(words["target"])})


def left_out(target, work, reason):
    """The TargetCell of what was not checked."""
    return TargetCell(target, work, NOT_CHECKED, reason)


def failed(target, work, reason):
    """The TargetCell of a run that ended in an error."""
    return TargetCell(target, work, DIVERGENCE, reason)


def cell_of(target, work, measured):
    """The TargetCell of what a port measured.

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
    return TargetCell(
        target, work, DIVERGENCE if wrong else MATCH,
        ": ".join(filter(None, (name, one.reason))) if wrong else "",
        error, limit, name, len(differences), measured["seconds"],
        measured["preparing"], measured.get("cause", ""),
        **{name: measured[name] for name in MORE if name in measured})


@dataclasses.dataclass
class Matrix:
    """All cells of a run, and where and when it was.

    Attributes:
        preset: the model's.
        cells: TargetCells, in order.
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
        again = {(cell.target, cell.work): cell for cell in self.cells}
        moved = [again.pop((cell.target, cell.work), None)
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

    @classmethod
    def read(cls, path):
        """The Matrix that a file of as_json has.

        Raises:
            InputError: it is none, a newer version's, or says what cannot be.
        """
        words = read_json(path)
        schema = words.get("schema")
        if is_whole(schema) and schema > SCHEMA:
            raise InputError(
                f"{str(path)!r} is of a newer version of parity (schema "
                f"{schema}); install that one.")
        try:
            cells = [TargetCell.of_json(one) for one in words["cells"]]
            found = cls(words["preset"], cells, words["places"])
            whole = schema == SCHEMA and is_sound(found)
        except (KeyError, TypeError, AttributeError):
            whole = False
        if not whole:
            raise InputError(
                f"{str(path)!r} is no matrix; give what parity matrix --json "
                "wrote.")
        found.cells = [judged(cell) for cell in cells]
        return found


def judged(cell):
    """A TargetCell that was read, its verdict worked out from its numbers."""
    if cell.verdict == MATCH and cell.error > cell.limit:
        return dataclasses.replace(
            cell, verdict=DIVERGENCE, reason=f"{cell.tensor}: above its limit")
    return cell


def is_sound(matrix):
    """Whether what a file says of a matrix can be.

    Raises:
        KeyError, TypeError, AttributeError: it cannot.
    """
    return (
        isinstance(matrix.preset, str) and len(matrix.places) > 0
        and all(isinstance(place, dict) and PLACE <= place.keys()
                and isinstance(place["versions"], dict)
                for place in matrix.places)
        and len({(cell.target, cell.work) for cell in matrix.cells})
        == len(matrix.cells)
        and all(is_sound_cell(cell, len(matrix.places))
                for cell in matrix.cells))


def is_sound_cell(cell, places):
    """Whether what a file says of a cell can be, of so many places."""
    target = dataclasses.asdict(cell.target)
    if not (all(isinstance(word, str) for word in (
            *target.values(), cell.reason, cell.tensor, cell.cause))
            and cell.target.dtype in WORKS[cell.work]
            and all(is_whole(number) and number >= 0
                    for number in (cell.compared, cell.place))
            and cell.place < places
            and all(is_amount(number) for number in (
                cell.error, cell.limit, cell.seconds, cell.preparing,
                *(getattr(cell, name) for name in MORE)))
            and (cell.limit is None or cell.limit <= LARGEST.get(
                (cell.work, cell.target.dtype), 1))):
        return False
    if cell.verdict == MATCH:
        return None not in (cell.error, cell.limit) and cell.compared > 0
    return cell.verdict in (DIVERGENCE, NOT_CHECKED) and bool(cell.reason) and (
        cell.verdict == DIVERGENCE or cell.error is None)


def is_amount(value):
    """Whether a value is a number that is finite and not below 0, or None."""
    return value is None or (
        isinstance(value, (int, float)) and not isinstance(value, bool)
        and 0 <= value <= sys.float_info.max)
