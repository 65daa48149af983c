"""A run of a model as operations: what was computed, of what, and where.

A framework's file in this folder has a class ``Runner``. Its ``run`` executes
the model once and returns a Program: every operation with its operands, its
settings, its results and the line of source that asked for it. ``run`` can do
three things more:

- **exact**: nothing shorter than float64 is kept inside, whatever the model
  casts to. Where it would have rounded is in ``Program.roundings``.
- **edits**: an operand, a result, or a parameter is another array.
- **keep**: which values are kept as arrays; of the others there is a
  signature alone, so that large models fit.

The names of operations are NumPy's where NumPy has one, in every framework
alike; see ``parity.operations.vocabulary``.
"""

import dataclasses
import pathlib
import typing
from collections.abc import Callable, Mapping

import numpy as np

#: What a value is: the model's input, a parameter or buffer by name, a number
#: or table that stands in the program, or the result of an operation.
INPUT, PARAMETER, CONSTANT, MADE = "input", "parameter", "constant", "made"

#: What an edit replaces; see ``Runner.run``.
OPERAND, RESULT, LEAF = "operand", "result", "leaf"


@dataclasses.dataclass(frozen=True)
class Place:
    """A line of source, of the user's file or a library's.

    Attributes:
        file: its path as Python has it, "" where it is not known.
        line: counted from 1.
        function: in which function.
        caller: the Place at which a user's or library's function called that
            one, or None; it has one of its own, and so on to the first.
        module: the path of the module whose method the function is, or "".
    """

    file: str = ""
    line: int = 0
    function: str = ""
    caller: "Place | None" = dataclasses.field(default=None, compare=False)
    module: str = dataclasses.field(default="", compare=False)

    @property
    def chain(self):
        """This Place and those from which it was called, the innermost
        first; [] of a Place that is not known."""
        here, found = self if self.file else None, []
        while here is not None:
            found.append(here)
            here = here.caller
        return found

    def __str__(self):
        return f"{pathlib.PurePath(self.file).name}:{self.line}" if (
            self.file) else ""


@dataclasses.dataclass(eq=False)
class Value:
    """One array of a run.

    Attributes:
        number: its place in ``Program.values``: the same in each run of one
            Runner, as long as the model takes the same way through its code.
        kind: INPUT, PARAMETER, CONSTANT or MADE.
        name: the input's name or the parameter's path; else "".
        shape: of the array.
        dtype: as the program declares it: "float32" also where an exact run
            has float64.
        array: NumPy's, of float64, int64, bool or complex128, or of its own
            dtype where the run was not exact; None where it was not kept.
        signature: see ``parity.operations.signature``.
        made_by: the number of its Operation; None of a leaf.
    """

    number: int
    kind: str
    name: str
    shape: tuple
    dtype: str
    array: np.ndarray | None = None
    signature: typing.Any = None
    made_by: int | None = None


@dataclasses.dataclass(eq=False)
class Operation:
    """One operation of a run.

    Attributes:
        number: its place in ``Program.operations``.
        name: as in ``parity.operations.vocabulary``.
        native: the framework's own name, such as "aten.add.Tensor".
        operands: numbers of Values: arrays and scalars alike, in the order
            that the vocabulary has. ``x + 1e-6`` has two operands.
        settings: what is no operand, in the vocabulary's words: "axis",
            "shape", "axes", "dtype" and so on, as plain values.
        results: numbers of Values.
        place: the line that asked for it: the innermost one that is not the
            framework's own, where there is one.
        module: the path of the innermost module that it is inside, as a Trace
            names it; "" where that is not known.
        again: arrays of operands -> a list of arrays, what it gives of them;
            None where it cannot be done anew by itself.
    """

    number: int
    name: str
    native: str
    operands: tuple
    settings: dict
    results: tuple
    place: Place = Place()
    module: str = ""
    again: Callable | None = dataclasses.field(default=None, repr=False)


@dataclasses.dataclass(frozen=True)
class Rounding:
    """Where a program would round to something shorter than float64.

    Attributes:
        place: the line that asks for it.
        dtype: to what, such as "float32".
        count: how many values.
    """

    place: Place
    dtype: str
    count: int


@dataclasses.dataclass
class Program:
    """One run of a model, as operations.

    Attributes:
        framework: "torch", "jax", "keras" or "numpy".
        exact: whether nothing shorter than float64 was kept inside.
        values, operations: in the order in which they came.
        outputs: name -> number of a Value, named as in a Trace: "output",
            "output.0", "output.last_hidden_state".
        roundings: every Rounding.
        notes: what could not be seen or widened, a sentence each.
        seconds: how long the run took.
        blur: by how much its outputs may be off, as a share of them, since
            numbers of a file are float32's; 0 where it is not known.
        added: numbers of values that the run did not compute; see
            ``parity.operations.equivalents``.
        equals: {number of a value: numbers of operations, not of the run, by
            which it is made as well}.
        kept: what was found out of it, for who asks next.
    """

    framework: str
    exact: bool
    values: list = dataclasses.field(default_factory=list)
    operations: list = dataclasses.field(default_factory=list)
    outputs: dict = dataclasses.field(default_factory=dict)
    roundings: list = dataclasses.field(default_factory=list)
    notes: list = dataclasses.field(default_factory=list)
    seconds: float = 0.0
    blur: float = 0.0
    added: set = dataclasses.field(default_factory=set)
    equals: dict = dataclasses.field(default_factory=dict)
    kept: dict = dataclasses.field(
        default_factory=dict, init=False, repr=False, compare=False)

    def makers(self, value):
        """Every Operation by which a value is made, the run's first."""
        own = self.maker(value)
        return [*([] if own is None else [own]), *(
            self.operations[each] for each in self.equals.get(value, ()))]

    def maker(self, value):
        """The Operation that made a value; None of a leaf."""
        made_by = self.values[value].made_by
        return None if made_by is None else self.operations[made_by]

    @property
    def users(self):
        """{number of a value: numbers of the operations that read it}."""
        users = {}
        for operation in self.operations:
            for operand in dict.fromkeys(operation.operands):
                users.setdefault(operand, []).append(operation.number)
        return users


class Runner(typing.Protocol):
    """How a model is run as operations: a class of each framework's file.

    It is made of ``(model, inputs, keywords, make=None)``. ``make`` is what
    makes the model anew, ``() -> (model, inputs, keywords)``: an exact run then
    builds it so that tables too are computed in float64, and takes over the
    trained weights of ``model``. Neither model, caller, random state nor any
    class of the framework is changed, in this thread or another.
    """

    framework: str

    def run(self, exact: bool = False,
            edits: Mapping[tuple, np.ndarray] | None = None,
            keep: bool | Callable[[Value], bool] = True) -> Program:
        """Run the model once.

        Args:
            exact: keep nothing shorter than float64.
            edits: (OPERAND, number of an operation, place among its operands)
                -> what it reads instead; (RESULT, number of an operation,
                place among its results) -> what it gives instead; (LEAF, name)
                -> what a parameter or buffer is instead. Arrays have the shape
                of what they replace, or broadcast to it.
            keep: whether a value's array is kept.

        Raises:
            InputError: the model cannot be seen as operations, with the reason
                and what to hand in instead.
        """
