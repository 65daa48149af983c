"""An ONNX graph as operations; see parity.operations.program.

The graph is computed node by node, as ONNX's standard has it, in float64 where
the run is exact. Numbers of a file in float32 stand for the shortest decimal
that rounds to them: an ε of 9.99999974e-06 is 1e-05.
"""

import functools
import pathlib
import time
from typing import Any

import numpy as np

from parity.exported.onnx_operations import OPERATORS, WHOLE
from parity.operations.layouts import distance
from parity.operations.numpy import NumpyRecording
from parity.operations.numpy_array import RecordedArray
from parity.operations.numpy_array import plain as as_plain
from parity.operations.program import INPUT, PARAMETER, Place

#: Half a unit of float32, as a share.
HALF = 2.0 ** -24


class Node:
    """One node while it is computed.

    Attributes:
        kind: the operator's name, such as "Gelu".
        inputs: arrays; None where one is left out.
        outputs: the names of what it makes.
        opset: the version of the operator set.
    """

    def __init__(self, recording, proto, inputs, opset):
        import onnx
        self.recording, self.proto, self.inputs = recording, proto, inputs
        self.kind, self.outputs = proto.op_type, [*proto.output]
        self.opset = opset
        self.attributes = {each.name: onnx.helper.get_attribute_value(each)
                           for each in proto.attribute}

    def number(self, name, default):
        """An attribute that is a number."""
        value = self.attributes.get(name, default)
        return shortest(value) if isinstance(value, float) else value

    def numbers(self, name):
        """An attribute that is several integers, as a tuple; or ()."""
        return tuple(self.attributes.get(name, ()))

    def text(self, name, default):
        """An attribute that is a text."""
        value = self.attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else value

    def recorded(self, name, function, *inputs):
        """Record a function of arrays as one operation."""
        inputs = [self.recording.known(each)
                  for each in inputs or self.inputs]
        return self.recording.record(
            name, self.kind, {}, inputs, lambda arrays: function(*map(
                np.asarray, arrays)), self.recording.declared(inputs, {}))

    def whole(self, name, inputs=None):
        """Record the node as one operation, computed by onnx.reference."""
        inputs = self.inputs if inputs is None else inputs
        known = [self.recording.known(each) for each in inputs
                 if each is not None]
        settings = {key: value.decode() if isinstance(value, bytes) else
                    tuple(value) if isinstance(value, list) else value
                    for key, value in self.attributes.items()
                    if isinstance(value, (int, float, bytes, list))}
        there = [each is not None for each in inputs]
        return self.recording.record(
            name, self.kind, settings, known,
            lambda arrays: reference(self.proto, there, arrays, self.opset),
            self.recording.declared(known, {}))


def reference(proto, there, arrays, opset):
    """What onnx.reference makes of a node: an array, or a list.

    Args:
        proto: the node.
        there: of each input whether it is given.
        arrays: those that are.
    """
    import onnx
    from onnx.reference import ReferenceEvaluator
    names = [f"x{i}" if given else "" for i, given in enumerate(there)]
    node = onnx.NodeProto()
    node.CopyFrom(proto)
    del node.input[:]
    node.input.extend(names)
    given = dict(zip(filter(None, names), map(np.asarray, arrays)))
    graph = onnx.helper.make_graph(
        [node], "one", [onnx.helper.make_tensor_value_info(
            name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype),
            array.shape) for name, array in given.items()],
        [onnx.ValueInfoProto(name=name) for name in proto.output if name])
    model = onnx.helper.make_model(graph, opset_imports=[
        onnx.helper.make_opsetid(proto.domain, 1 if proto.domain else opset),
        *([onnx.helper.make_opsetid("", opset)] if proto.domain else [])])
    made = ReferenceEvaluator(model).run(None, given)
    return made[0] if len(made) == 1 else made


class Nodes:
    """Says which node asked for an operation: the recording's frames."""

    def __init__(self, file):
        self.file, self.place, self.module = file, Place(), ""

    def at(self, number, proto):
        """A node is computed now."""
        facts = {each.key: each.value for each in proto.metadata_props}
        self.place = Place(self.file, number, proto.op_type,
                           source(facts.get("pkg.torch.onnx.stack_trace", "")))
        self.module = module_of(proto, facts)

    def here(self):
        """The Place, and the path of the module."""
        return self.place, self.module


def source(trace):
    """The innermost line of Python that an exporter put down, or None."""
    lines = [line for line in trace.splitlines() if "File " in line]
    if not lines:
        return None
    _, file, rest = lines[-1].split('"', 2)
    digits = "".join(filter(str.isdigit, rest.partition("line ")[2].partition(
        ",")[0]))
    return Place(file, int(digits or 0))


def module_of(proto, facts):
    """The path of the module that a node was exported from, or ""."""
    scopes = facts.get("pkg.torch.onnx.name_scopes", "")
    names = [name.strip(" []'\"") for name in scopes.split(",")]
    if len(names) > 1:
        return names[-2]
    return ".".join(proto.name.strip("/").split("/")[:-1])


def shortest(number):
    """The shortest decimal that is this number in float32."""
    if np.float32(number) != number:
        return number
    return float(str(np.float32(number)))


class OnnxRunner:
    """Runs an ONNX model as operations; see ``program.Runner``.

    Args:
        model: an onnx.ModelProto.
        inputs: {name: array} of the graph's inputs.
        file: what the model is called.
    """

    framework = "onnx"

    def __init__(self, model, inputs, file):
        from onnx import inliner, numpy_helper
        self.proto = inliner.inline_local_functions(model) if (
            model.functions) else model
        self.inputs, self.file, self.model = inputs, file, None
        self.make = None
        self.opset = max((each.version for each in self.proto.opset_import
                          if each.domain in ("", "ai.onnx")), default=1)
        self.parameters = {
            each.name: numpy_helper.to_array(each)
            for each in self.proto.graph.initializer}

    def run(self, exact=False, edits=None, keep=True):
        """Run the model once; see ``program.Runner``."""
        began = time.perf_counter()
        recording: Any = NumpyRecording(exact, edits, keep)
        recording.program.framework = "onnx"
        recording.frames = nodes = Nodes(pathlib.PurePath(self.file).name)
        values = {}
        for name, array in self.parameters.items():
            values[name] = recording.leaf(PARAMETER, name, exactly(
                array) if exact else array)
        for name, array in self.inputs.items():
            values[name] = recording.leaf(INPUT, name, array)
        with np.errstate(all="ignore"):
            self.compute(self.proto.graph.node, values, recording, nodes)
        made = {each.name: values[each.name]
                for each in self.proto.graph.output}
        output = [*made.values()][0] if len(made) == 1 else made
        program = recording.finish(output, time.perf_counter() - began)
        if exact and any(array.dtype == np.float32
                         for array in self.parameters.values()):
            program.notes.append("numbers of the file are float32's.")
            program.blur = self.blur
        return program

    @functools.cached_property
    def blur(self):
        """By how much the outputs move, as a share, if each number of the
        file is rounded otherwise: an exporter folds several operations into
        one number, so that it is four times what half a unit moves them."""
        draw, moved = np.random.default_rng(0), {}
        for name, array in self.parameters.items():
            if array.dtype == np.float32 and array.size > 1:
                whole = array == array.astype(np.float16)  # such as a size
                moved[name] = array * (1 + np.where(whole, 0, draw.uniform(
                    -HALF, HALF, array.shape)))
        plain, other = exact_values(self), exact_values(self, moved)
        return 4 * max((distance(other[each.name], plain[each.name])
                        for each in self.proto.graph.output), default=0.0)

    def compute(self, graph, values, recording, nodes):
        """Compute nodes in their order."""
        for number, proto in enumerate(graph, 1):
            nodes.at(number, proto)
            made = self.made(proto, values, recording)
            several = made if isinstance(made, list) else [made]
            for name, array in zip(proto.output, several):
                if name:
                    values[name] = array

    def made(self, proto, values, recording):
        """What one node makes."""
        inputs = [values[name] if name else None for name in proto.input]
        node = Node(recording, proto, inputs, self.opset)
        if proto.op_type == "Constant":
            array = constant(node)
            return recording.known(
                exactly(array) if recording.exact else array)
        if proto.op_type in ("Shape", "Size", "ConstantOfShape"):
            return recording.known(sizes(node))
        own = OPERATORS.get(proto.op_type) if proto.domain in (
            "", "ai.onnx", "com.microsoft") else None
        known = [each for each in inputs if each is not None]
        if known and all(each.number is None or is_size(
                recording, each) for each in known if isinstance(
                    each, RecordedArray)) and own is None:
            arrays = [as_plain(each) for each in known]
            made = reference(proto, [each is not None for each in inputs],
                             arrays, self.opset)
            return [recording.known(each) for each in made] if isinstance(
                made, list) else recording.known(made)
        if own is not None:
            return own(node)
        return node.whole(WHOLE.get(proto.op_type, proto.op_type))


def is_size(recording, array):
    """Whether an array is a constant of integers, such as a shape."""
    from parity.operations.program import CONSTANT
    value = recording.program.values[array.number]
    return value.kind == CONSTANT and array.dtype.kind in "iu"


def constant(node):
    """The array of a Constant."""
    from onnx import numpy_helper
    (name, value), = node.attributes.items()
    if name == "value":
        return numpy_helper.to_array(value)
    return np.array(value, np.float32 if "float" in name else np.int64)


def sizes(node):
    """A Shape, a Size, or a constant of a shape: no number of the data."""
    from onnx import numpy_helper
    x = np.asarray(as_plain(node.inputs[0]))
    if node.kind == "Shape":
        return np.array(x.shape[node.number("start", 0):node.number(
            "end", None)], np.int64)
    if node.kind == "Size":
        return np.array(x.size, np.int64)
    value = node.attributes.get("value")
    fill = np.zeros(1, np.float32) if value is None else (
        numpy_helper.to_array(value))
    return np.full(tuple(int(size) for size in x), fill.reshape(-1)[0])


def exactly(array):
    """A single number of float32 as the decimal that it stands for."""
    if array.dtype == np.float32 and array.size == 1:
        number = shortest(float(array.reshape(-1)[0]))
        return np.full(array.shape, number)
    return array


def exact_values(runner, parameters=()):
    """{name: array} of what each node makes, in float64.

    Args:
        runner: an OnnxRunner.
        parameters: {name: array} of what others are instead.
    """
    recording: Any = NumpyRecording(True, None, False)
    recording.frames = nodes = Nodes(runner.file)
    values = {name: exactly(array) if array.size == 1 else array.astype(
        np.float64) if array.dtype == np.float32 else array
        for name, array in runner.parameters.items()}
    values |= {**dict(parameters), **runner.inputs}
    values = {name: recording.known(array) for name, array in values.items()}
    with np.errstate(all="ignore"):
        runner.compute(runner.proto.graph.node, values, recording, nodes)
    return {name: as_plain(array) for name, array in values.items()
            if hasattr(array, "shape")}
