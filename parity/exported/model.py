"""A model that is no module of a framework, and what it computes.

An ExportedModel has inputs and outputs, and where its graph is known a Runner
of its operations. Its Trace has one step: the model's own call.
"""

import dataclasses
from collections.abc import Callable

import numpy as np

from parity_io.errors import InputError
from parity.tracing.trace import MODULE, WHOLE, Step, Trace, is_float


class NotInstalled(Exception):
    """What a model needs and is not here, in words."""


@dataclasses.dataclass
class ExportedModel:
    """A compiled or exported model with its inputs.

    Attributes:
        framework: "onnx", "openvino", "litert", or that of what was compiled.
        kind: what it is, in a word or two.
        inputs: name -> array.
        outputs: name -> array, named as in a Trace.
        versions: name -> version.
        parameters: path -> array.
        runner: returns a Runner of its operations, or raises InputError.
        notes: a sentence each.
        proto: the onnx.ModelProto, of one.
        late: what its runner found, a sentence each.
        inner: (name, array) of each inner output, in order, where these are
            seen and operations are not.
    """

    framework: str
    kind: str
    inputs: dict
    outputs: dict
    versions: dict
    parameters: dict = dataclasses.field(default_factory=dict)
    runner: Callable | None = None
    notes: list = dataclasses.field(default_factory=list)
    proto: object = None
    late: list = dataclasses.field(default_factory=list)
    inner: list = dataclasses.field(default_factory=list)

    def trace(self):
        """The Trace of its one run."""
        whole = Step(WHOLE, WHOLE, self.kind, MODULE, 1, 2, self.inputs,
                     self.outputs)
        arrays = [*self.outputs.values(), *self.parameters.values()]
        dtype = next((each.dtype.name for each in arrays if is_float(each)),
                     "")
        return Trace(self.framework, self.versions, {}, dtype,
                     [whole], self.parameters, [], {}, {}, None,
                     [], self.notes)

    @property
    def side(self):
        """What ``decide`` asks for a Runner."""
        return ExportedSide(self)


@dataclasses.dataclass
class ExportedSide:
    """The side of a comparison that an ExportedModel is."""

    foreign: ExportedModel

    def runner(self):
        """Its Runner; InputError where its graph is not seen."""
        if self.foreign.runner is None:
            what = "inner outputs" if self.foreign.inner else "outputs"
            raise InputError(
                f"of the {self.foreign.kind} the {what} are seen, not the "
                "operations.")
        return self.foreign.runner()


def named(arrays):
    """{name in a Trace: array} of what a model returned by name."""
    if len(arrays) == 1:
        return {"output": np.asarray(*arrays.values())}
    return {f"output.{name}": np.asarray(array)
            for name, array in arrays.items()}


def fitted(asked, inputs, keywords, file):
    """The inputs of a graph, from the arguments of the other model.

    Args:
        asked: [(name, dtype, shape)] of the graph's inputs; a size that is no
            integer is free.
        inputs, keywords: the other model's arguments, as arrays of anything.
        file: what the graph is called.

    Returns:
        {name: array}, of the graph's dtypes.

    Raises:
        InputError: they do not fit.
    """
    given = {name: array_of(value) for name, value in keywords.items()}
    given = {name: value for name, value in given.items()
             if value is not None}
    left = [value for value in map(array_of, inputs) if value is not None]
    found, missing = {}, []
    for name, dtype, shape in asked:
        if name in given:
            array = given.pop(name)
        elif left:
            array = left.pop(0)
        else:
            missing.append(name)
            continue
        if array.ndim != len(shape) or any(
                isinstance(size, int) and size > 0 and size != there
                for size, there in zip(shape, array.shape)):
            raise InputError(
                f"{file} takes {name!r} of shape {_shape(shape)}, and was "
                f"given {_shape(array.shape)}; give inputs of its shapes.")
        if (np.dtype(dtype).kind in "iub") != (array.dtype.kind in "iub"):
            raise InputError(
                f"{file} takes {name!r} in {np.dtype(dtype)}, and was given "
                f"{array.dtype}; give inputs of its dtypes.")
        found[name] = array.astype(dtype)
    if missing and len(missing) == len(given):
        for (name, dtype, _), array in zip(
                [each for each in asked if each[0] in missing],
                given.values()):
            found[name], missing = array.astype(dtype), []
    if missing:
        raise InputError(
            f"{file} takes {len(asked)} inputs, and nothing is given for "
            f"{', '.join(missing)}; let the function return them.")
    return found


def _shape(sizes):
    return "[" + " ".join(str(size or "?") for size in sizes) + "]"


def array_of(value):
    """A value of any framework as NumPy's array; None of what is none."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return None
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    try:
        array = np.asarray(value)
    except Exception:  # such as a cache
        return None
    return None if array.dtype == object else array
