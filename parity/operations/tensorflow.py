"""TensorFlow's eager operations as a Program; see parity.operations.program.

TensorFlow calls a callback of this thread after each eager operation. The
program runs undisturbed in its own dtypes; beside each of its tensors stands
its *twin*: what the tensor would be in float64, or after an edit. An operation
is computed once more for its twins where these differ from the tensors.

A constant's twin is the Python or NumPy number that it was made of. A
``tf.function`` is taken apart into its operations.
"""

import contextlib
import operator
import sys
import time

import numpy as np
from tensorflow.python.framework import errors_impl, op_def_registry

from parity.operations import tensorflow_graph
from parity.operations.program import (
    CONSTANT, MADE, OPERAND, RESULT, Operation, Rounding)
from parity.operations.tensorflow_eager import (
    CONVERT, LONGER, STORED, as_stored, calling, computed, has_values,
    is_random, is_short, longer, of_array, shortened, to_numpy)
from parity.operations.tensorflow_names import (
    IDENTITIES, UNSEEN, NativeCall, translated)
from parity.operations.tensorflow_parts import PARTS, short_decimal
from parity.operations.tensorflow_values import KnownTensor, TensorValues


class TensorFlowRecording(TensorValues):
    """Records a run, and computes its twins.

    Args:
        leaves: [(kind, name, tensor, twin or None)] of inputs and parameters.
        exact, edits, keep: as of ``Runner.run``.
        paths: id(module) -> path.
    """

    # -- the callback ------------------------------------------------------

    def __call__(self, op, inputs, attributes, outputs, op_name=None,
                 graph=None):
        if graph is not None:  # it is made, not done
            return
        op = op.decode() if isinstance(op, bytes) else op
        attributes = dict(zip(attributes[::2], attributes[1::2]))
        if op in ("AssignVariableOp", "ReadVariableOp"):
            self.variable(op, inputs, outputs)
        elif op in UNSEEN or not outputs:
            pass
        elif op in IDENTITIES:
            for place, tensor in enumerate(outputs):
                if has_values(tensor):
                    self.known[id(tensor)] = self.alias(tensor, self.of(
                        inputs[place], self.given(inputs, place)))
        elif op in PARTS:
            self.attributes(attributes)
            made = PARTS[op](*inputs, attributes)
            made = made if isinstance(made, (list, tuple)) else [made]
            self.instead(outputs, made)
        elif not op_def_registry.get(op):
            self.function(op, inputs, outputs)
        else:
            self.operation(op, inputs, attributes, outputs)

    def attributes(self, attributes):
        """Put down that settings are rounded to float32; return their names."""
        names = [name for name, value in attributes.items() if isinstance(
            value, float) and float(np.float32(value)) != value]
        if names and self.exact:
            key = self.frames.here()[0], "float32"
            self.roundings[key] = self.roundings.get(key, 0) + len(names)
        return names

    def variable(self, op, inputs, outputs):
        """A variable is read, or written."""
        handle = inputs[0]
        self.handles.append(handle)
        if op == "AssignVariableOp":
            if has_values(inputs[1]):
                self.written[id(handle)] = self.of(
                    inputs[1], self.given(inputs, 1))
        elif id(handle) in self.written and has_values(outputs[0]):
            self.known[id(outputs[0])] = self.alias(
                outputs[0], self.written[id(handle)])

    def given(self, inputs, place):
        """The Python number that an operation was given as an input."""
        if not self.exact or inputs[place].dtype not in LONGER or (
                id(inputs[place]) in self.known):
            return None
        if id(inputs[place]) in self.originals:
            return self.originals[id(inputs[place])][1]
        for frame in self.frames.stack(2):
            code = frame.f_code
            if code.co_filename.rpartition("/")[2].startswith("gen_"):
                names = code.co_varnames[:code.co_argcount]
                value = frame.f_locals.get(
                    names[place] if place < len(names) else "")
                return value if isinstance(
                    value, (int, float, np.ndarray, np.generic)) else None
        return None

    def operation(self, op, inputs, attributes, outputs):
        """Record one operation and compute its twins."""
        inputs = [tensor for tensor in inputs if hasattr(tensor, "numpy")]
        if not all(map(has_values, inputs)) or not any(
                map(has_values, outputs)):
            self.opaque(op, inputs, attributes, outputs)
            return
        call = NativeCall(op, inputs, attributes, outputs)
        name, used, settings = translated(call)
        operands = [self.of(inputs[place], self.given(inputs, place))
                    for place in used]
        if not call.creates and operands and all(
                known.shape_only for known in operands) and all(
                tensor.dtype.is_integer and tensor.shape.rank < 2
                for tensor in outputs):
            return  # arithmetic of shapes
        number = len(self.program.operations)
        twins = [self.known[id(tensor)].twin if id(tensor) in self.known
                 else tensor for tensor in inputs]
        for slot, place in enumerate(used):
            twins[place] = self.edited(twins[place], (OPERAND, number, slot))
        place, module = self.frames.here()
        self.place = place
        made = self.twins(op, inputs, twins, attributes, outputs)
        drawn = is_random(op) or any(known.drawn for known in operands)
        results = []
        for slot, (tensor, twin) in enumerate(zip(outputs, made)):
            if not has_values(tensor):
                continue
            if self.exact:
                self.rounded(tensor, twin, inputs)
            twin = self.edited(twin, (RESULT, number, slot))
            results.append(self.value(tensor, twin, MADE, "", number))
            self.known[id(tensor)] = KnownTensor(
                tensor, twin, results[-1], drawn)
        self.program.operations.append(Operation(
            number, name, op, tuple(known.number for known in operands),
            settings, tuple(results), place, module))

    def opaque(self, op, inputs, attributes, outputs):
        """An operation on lists of tensors and the like: twins alone."""
        twins = [self.known[id(tensor)].twin if id(tensor) in self.known
                 else self.of(tensor).twin if has_values(tensor) else tensor
                 for tensor in inputs]
        self.place = self.frames.here()[0]
        made = self.twins(op, inputs, twins, attributes, outputs)
        for tensor, twin in zip(outputs, made):
            number = self.value(tensor, twin, CONSTANT) if has_values(
                tensor) else None
            self.known[id(tensor)] = KnownTensor(tensor, twin, number)

    def twins(self, op, inputs, twins, attributes, outputs):
        """What an operation gives for the twins of its inputs."""
        if is_random(op) or op in STORED:
            made = as_stored(op, inputs, twins, attributes, outputs)
        elif all(map(operator.is_, inputs, twins)) and not (
                self.exact and is_short(op, attributes)):
            made = outputs
        elif not self.exact:
            made = computed(op, twins, attributes, len(outputs))
        else:
            made = self.exactly(op, inputs, twins, attributes, len(outputs))
        return list(map(self.widened, made))

    def exactly(self, op, inputs, twins, attributes, count):
        """What an operation gives in float64, as far as it can."""
        for name in self.attributes(attributes):
            self.note(f"{op} keeps its {name} as float32")
        try:
            made = computed(op, twins, longer(op, attributes), count)
        except (errors_impl.OpError, TypeError, ValueError):
            self.note(f"{op} has no form of float64 in TensorFlow, so that it "
                      "rounds")
            return computed(op, shortened(twins, inputs), attributes, count)
        if any(has_values(tensor) and tensor.dtype in LONGER
               for tensor in made):
            self.note(f"{op} gives float32 whatever it is given")
        return made

    def note(self, sentence):
        """Say once where something could not be widened."""
        where = f" ({self.place})" if str(self.place) else ""
        self.notes[f"{sentence}{where}."] = None

    # -- tf.function -------------------------------------------------------

    def function(self, name, inputs, outputs):
        """Run a ``tf.function`` again, operation by operation."""
        graph = tensorflow_graph.graph_of(name, self.frames.stack(2))
        if graph is None:
            self.place = self.frames.here()[0]
            self.note(f"the compiled function {name} cannot be looked into")
            for tensor in filter(has_values, outputs):
                self.of(tensor)
            return
        self.instead(outputs, tensorflow_graph.run(graph, inputs, self))

    def constant(self, array):
        """A constant of a graph, which has it as it is stored.

        It is taken for the short decimal that it was probably written as.
        """
        tensor = of_array(array)
        if same := self.equal(to_numpy(tensor), tensor.dtype):
            return same.tensor
        if self.exact and tensor.dtype in LONGER:
            short = short_decimal(array) if array.ndim == 0 else None
            self.originals[id(tensor)] = tensor, short
            kept = array.astype(np.float64)
            if short is None and np.any(kept != np.round(kept, 3)):
                self.place = self.frames.here()[0]
                self.note("a constant of a compiled function is as it was "
                          "rounded to float32")
        return tensor

    def profile(self, frame, event, made):
        """Learn of what number a constant is made."""
        if event == "return" and frame.f_code is CONVERT and made is not None:
            self.originals[id(made)] = made, frame.f_locals["value"]

    @contextlib.contextmanager
    def recording(self):
        """Record what this thread does."""
        with calling(self), profiled_by(
                self.profile) if self.exact else contextlib.nullcontext():
            yield self

    def finished(self, outputs, seconds):
        """The Program, with the outputs by name."""
        program = self.program
        program.outputs = {name: self.of(tensor).number
                           for name, tensor in outputs.items()}
        program.roundings = [Rounding(place, dtype, count) for (
            place, dtype), count in self.roundings.items()]
        program.notes, program.seconds = list(self.notes), seconds
        return program


@contextlib.contextmanager
def profiled_by(function):
    """Tell a function of this thread's calls; then the one of before."""
    before = sys.getprofile()
    sys.setprofile(function)
    try:
        yield
    finally:
        sys.setprofile(None)
        if hasattr(before, "enable"):  # a profiler written in C
            before.enable()
        else:
            sys.setprofile(before)


def record(function, leaves, exact=False, edits=None, keep=True, paths=None,
           before=None):
    """Run ``function()`` once as a Program.

    Args:
        function: returns {name of an output: tensor}.
        leaves: [(kind, name, tensor, twin or None)] of inputs and parameters.
        exact, edits, keep: as of ``parity.operations.program.Runner.run``.
        paths: id(module) -> path.
        before: the Program of an earlier run, of which what is the same is
            not computed anew.
    """
    recording = TensorFlowRecording(
        leaves, exact, edits, keep, paths, before)
    for kind, _, tensor, _ in leaves:
        if kind != CONSTANT:
            recording.of(tensor)
    began = time.perf_counter()
    recording.frames.end = record.__code__
    with recording.recording():
        outputs = function()
    return recording.finished(outputs, time.perf_counter() - began)


@contextlib.contextmanager
def building():
    """Record what a model is built of, in float64; nothing is kept but twins.

    Yields the TensorFlowRecording, whose ``known`` has twins of tensors and
    whose ``written`` those of variables, by id of their handle.
    """
    recording = TensorFlowRecording(exact=True, keep=False)
    with recording.recording():
        yield recording
