"""A run's operations in a dump, and run again from there with NumPy alone.

A dump holds ``operations.json`` and ``operations.safetensors`` beside what
modules did: an exact run, each value with its signature, and its array where
the model is small. An array is stored once, by its digest.
"""

import dataclasses
import json
import pathlib

import numpy as np

from parity_io import array_file
from parity_io.errors import InputError, visible
from parity.operations.program import (
    CONSTANT, INPUT, MADE, PARAMETER, Operation, Place, Program, Rounding,
    Value)
from parity.operations.replay import replayed
from parity.operations.signature import Signature
from parity.tracing import folder

OPERATIONS, VALUES = "operations.json", "operations.safetensors"

#: Of a model of more numbers than this no large values are stored.
SMALL = 20_000_000

#: Values of fewer numbers are stored of any model.
LITTLE = 4096


def files_of(runner, numbers):
    """{name: what writes it} of the files that a run's operations are.

    Args:
        runner: a Runner.
        numbers: how many numbers the model's parameters have.

    Raises:
        InputError: the model cannot be seen as operations.
    """
    program = runner.run(exact=True, keep=numbers <= SMALL or (
        lambda value: value.signature.size < LITTLE))
    arrays = {}
    text = json.dumps(_plain(program, arrays), default=str)
    return {
        OPERATIONS: lambda path: path.write_text(text, encoding="utf-8"),
        VALUES: lambda path: array_file.save(path, arrays)}


def _plain(program, arrays):
    """A Program as plain data, its arrays put into ``arrays``."""
    places, values = {}, []

    def number_of(place):
        if place is None or not place.file:
            return None
        if id(place) not in places:
            caller = number_of(place.caller)
            places[id(place)] = len(places), place, caller
        return places[id(place)][0]

    for value in program.values:
        key = ""
        if value.array is not None:
            key = "-".join((value.signature.digest.hex(),
                            value.array.dtype.name,
                            *map(str, value.array.shape)))
            if key not in arrays:
                arrays[key] = np.ascontiguousarray(
                    value.array).reshape(-1).view(np.uint8)
        of = dataclasses.asdict(value.signature)
        values.append([value.kind, value.name, value.shape, value.dtype,
                       value.made_by, key, [of | {
                           "digest": of["digest"].hex()}]])
    operations = [
        [each.name, each.native, each.operands, each.settings, each.results,
         number_of(each.place), each.module] for each in program.operations]
    roundings = [[number_of(each.place), each.dtype, each.count]
                 for each in program.roundings]
    return {
        "framework": program.framework, "values": values,
        "operations": operations, "outputs": program.outputs,
        "roundings": roundings, "notes": program.notes,
        "seconds": program.seconds, "blur": program.blur,
        "places": [[place.file, place.line, place.function, place.module,
                    caller] for _, place, caller in sorted(
                        places.values(), key=lambda each: each[0])]}


@dataclasses.dataclass
class StoredSide:
    """The side of a comparison that a dump with operations is.

    Attributes:
        path: of the dump.
    """

    path: pathlib.Path

    def runner(self):
        """Its Runner.

        Raises:
            InputError: its operations are damaged.
        """
        return StoredRunner(read(self.path))


def side_of(path):
    """The StoredSide of a dump; None if it has no operations."""
    path = pathlib.Path(path)
    return StoredSide(path) if (path / OPERATIONS).is_file() and (
        path / folder.MANIFEST).is_file() else None


class StoredRunner:
    """Runs a stored Program with edits; see ``program.Runner``."""

    model = make = None

    def __init__(self, program):
        self.program, self.framework = program, program.framework
        self.checked = {}

    def run(self, exact=True, edits=None, keep=True):
        """The Program, with what follows from edits computed anew.

        Raises:
            InputError: there is no array of what is asked for, or NumPy gives
                another than the run had.
        """
        if keep is True and any(
                value.array is None for value in self.program.values):
            raise InputError(
                "a dump of a model this large has no values of its own; give "
                "both as SCRIPT.py:FUNCTION.")
        return replayed(self.program, edits, self.checked) if (
            edits) else self.program


def read(path):
    """The Program of a dump.

    Raises:
        InputError: its files are missing, damaged or not consistent.
    """
    files = {name: folder.file_of(path, name) for name in (OPERATIONS, VALUES)}
    try:
        plain = json.loads(files[OPERATIONS].read_text(encoding="utf-8"))
        contents, _ = array_file.load(files[VALUES])
        return _program(plain, contents)
    except (AttributeError, KeyError, IndexError, TypeError, ValueError,
            RecursionError) as error:
        raise InputError(
            f"the operations of the dump {str(path)!r} are not consistent "
            f"({repr(error)[:80]}); make it again.") from None


def _program(plain, contents):
    """A Program of plain data and of arrays."""
    places, arrays = [], {}
    for file, line, function, module, caller in plain["places"]:
        places.append(Place(visible(file), int(line), visible(function),
                            None if caller is None else places[caller],
                            visible(module)))

    def place_of(number):
        return Place() if number is None else places[number]

    def array_of(key):
        if key and key not in arrays:
            _, dtype, *shape = key.split("-")
            if np.dtype(dtype).hasobject:
                raise ValueError(f"an array of {dtype}")
            arrays[key] = contents[key].view(dtype).reshape(
                [*map(int, shape)])
            arrays[key].flags.writeable = False
        return arrays[key] if key else None

    program = Program(
        visible(plain["framework"]), True, notes=[*map(
            visible, plain["notes"])], blur=float(plain["blur"]),
        seconds=float(plain["seconds"]), roundings=[Rounding(
            place_of(place), visible(dtype), int(count))
            for place, dtype, count in plain["roundings"]])
    for kind, name, shape, dtype, made_by, key, (of,) in plain["values"]:
        array, shape = array_of(key), _tuples(shape)
        if kind not in (INPUT, PARAMETER, CONSTANT, MADE) or (
                array is not None and array.shape != shape):
            raise ValueError(f"{kind} {name}")
        program.values.append(Value(
            len(program.values), kind, visible(name), shape, visible(dtype),
            array, Signature(
                int(of["size"]), str(of["kind"]), _numbers(of["moments"]),
                _numbers(of["special"]), bytes.fromhex(of["digest"]),
                bool(of["telling"])), made_by))
    count = len(program.values)
    for name, native, operands, settings, results, place, module in plain[
            "operations"]:
        operation = Operation(
            len(program.operations), visible(name), visible(native),
            _tuples(operands), {visible(key): _tuples(value)
                                for key, value in settings.items()},
            _tuples(results), place_of(place), visible(module))
        for each in (*operation.operands, *operation.results):
            if type(each) is not int or not 0 <= each < count:
                raise ValueError(f"{each} is no value")
        program.operations.append(operation)
    for value in program.values:
        if (value.kind == MADE) != (value.made_by is not None) or (
                value.made_by is not None and value.number not in
                program.operations[value.made_by].results):
            raise ValueError(f"what made value {value.number}")
    program.outputs = {visible(name): program.values[number].number
                       for name, number in plain["outputs"].items()}
    return program


def _tuples(value):
    """Lists as tuples, and texts that may be shown."""
    if isinstance(value, list):
        return tuple(map(_tuples, value))
    return visible(value) if isinstance(value, str) else value


def _numbers(values):
    """A tuple of numbers."""
    return tuple(each if isinstance(each, int) else float(each)
                 for each in values)
