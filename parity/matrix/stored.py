"""A Matrix from a file of anybody: what it says is held against what can be."""

import dataclasses
import datetime
import sys

from parity_io.checkpoints.folder import read_json
from transformer_contract.config import PRESETS
from parity_io.errors import InputError, is_real, is_whole, visible
from parity import ports
from parity.check.run import DEVICES
from parity.matrix import run
from parity.matrix.cells import (
    MORE, NOT_CHECKED, SCHEMA, Matrix, TargetCell)
from parity.numerics import tolerances
from parity.numerics.comparator import DIVERGENCE, MATCH
from parity.numerics.dtypes import EPS, TIERS
from parity.targets import BACKENDS, mesh_axes, mesh_words

#: The limits of float64, by work.
FLOAT64 = {"forward": tolerances.FLOAT64_LIMIT,
           "gradients": tolerances.FLOAT64_GRADIENT,
           "training": tolerances.LOCKSTEP_LIMIT,
           "generation": tolerances.FLOAT64_LIMIT}

#: The most units of rounding that any other limit has: six layers have 19 in
#: NumPy's own float32, and a gradient's limit is 8 times that and 64 more.
UNITS = 256

#: The type of each thing that is said of a place.
PLACE = {"when": str, "processor": str, "cores": (int, type(None)),
         "platform": str, "python": str, "versions": dict}

#: What a cell that was not checked lacks.
NUMBERS = ("error", "limit", "seconds", "preparing", *MORE)

#: More tensors than any model has, and more seconds than anybody waits.
TENSORS, SECONDS = 10**9, 1e9


def read(path):
    """The Matrix that a file of Matrix.as_json has.

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
        matrix = Matrix(
            words["preset"],
            [TargetCell.of_json(one) for one in words["cells"]],
            words["places"])
        problem = (whole_problem(matrix) if schema == SCHEMA
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
    """A TargetCell that was read, its verdict worked out from its numbers."""
    if cell.verdict == MATCH and cell.error > cell.limit:
        return dataclasses.replace(
            cell, verdict=DIVERGENCE, reason=f"{cell.tensor}: above its limit")
    return cell


def whole_problem(matrix):
    """What of a Matrix cannot be, in words, or "".

    Raises:
        KeyError, TypeError, AttributeError: something is of another type.
    """
    if matrix.preset not in PRESETS:
        return f"there is no preset {str(matrix.preset)[:60]}"
    if not matrix.places or not all(map(is_place, matrix.places)):
        return "it does not say where it was measured"
    seen = set()
    for cell in matrix.cells:
        if problem := cell_problem(cell, len(matrix.places)):
            return problem
        if (cell.target, cell.work) in seen:
            return f"{cell.target} has two cells of {cell.work}"
        seen.add((cell.target, cell.work))
    return ""


def is_place(place):
    """Whether what a file says of a machine can be."""
    try:
        datetime.date.fromisoformat(place["when"])
    except ValueError:
        return False
    cores = place["cores"]
    return all(isinstance(place[name], kind)
               for name, kind in PLACE.items()) and (
        cores is None or is_whole(cores) and cores > 0) and all(
        isinstance(word, str) for item in place["versions"].items()
        for word in item)


def cell_problem(cell, places):
    """What of a TargetCell cannot be, in words, or ""; of so many places."""
    target = dataclasses.asdict(cell.target)
    if not all(isinstance(word, str) for word in (
            *target.values(), cell.work, cell.verdict, cell.reason,
            cell.tensor, cell.cause)):
        raise TypeError
    if problem := target_problem(cell.target):
        return problem
    about = f"{cell.target}, {cell.work[:60]}"
    if (cell.target, cell.work) not in run.works_of(
            [cell.target], run.Wanted(())):
        return f"{about}: there is no such cell"
    if not (is_whole(cell.place) and 0 <= cell.place < places):
        return f"{about}: it has no place"
    problem = number_problem(cell) or verdict_problem(cell)
    return problem and f"{about}: {problem}"


def target_problem(target):
    """What of a Target cannot be, in words, or ""."""
    try:
        if target.mesh and mesh_words(mesh_axes(target.mesh)) != target.mesh:
            raise InputError(target.mesh)
    except InputError:
        return f"{target.mesh[:60]} is no mesh"
    for value, known, what in (
            (target.port, ("numpy", *ports.known_ports()), "port"),
            (target.backend, BACKENDS.get(target.port, ("",)), "backend"),
            (target.form, ports.FORMS, "form"),
            (target.device, DEVICES, "device"),
            (target.mode, run.modes_of(run.Wanted(
                (target.port,), (target.backend,), (target.form,),
                meshes=(target.mesh,))) or ["eager"], "mode")):
        if value not in known:
            return f"{target.port[:60]} has no {what} {value[:60]}" if (
                what != "port") else f"there is no port {value[:60]}"
    return ""


def number_problem(cell):
    """Which number of a TargetCell cannot be, in words, or ""."""
    if not is_whole(cell.compared) or not 0 <= cell.compared < TENSORS:
        return "it compared no such number of tensors"
    for name in NUMBERS:
        value = getattr(cell, name)
        most = {"limit": largest_limit(cell.work, cell.target.dtype),
                "seconds": SECONDS, "preparing": SECONDS, "large": SECONDS,
                }.get(name, sys.float_info.max)
        if value is not None and not (is_real(value) and 0 <= value <= most):
            return f"its {name} cannot be {str(value)[:60]}"
    return ""


def largest_limit(work, dtype):
    """The largest limit that a tensor can have."""
    if dtype == "float64":
        return FLOAT64[work]
    eps = TIERS[dtype].eps if dtype in TIERS else EPS[dtype]
    return min(UNITS * eps, 1.0)


def verdict_problem(cell):
    """What of a TargetCell does not go with its verdict, in words, or ""."""
    numbers = [getattr(cell, name) for name in NUMBERS]
    if cell.verdict == MATCH:
        fits = (None not in (cell.error, cell.limit) and cell.compared
                and cell.tensor and not cell.reason and not cell.cause)
    elif cell.verdict == DIVERGENCE:
        fits = cell.reason and (
            cell.compared or cell.error is None and not cell.tensor)
    elif cell.verdict == NOT_CHECKED:
        fits = cell.reason and not (
            cell.compared or cell.tensor or cell.cause) and numbers == [
            None] * len(numbers)
    else:
        return f"there is no verdict {cell.verdict[:60]}"
    return "" if fits else f"its numbers do not go with {cell.verdict}"
