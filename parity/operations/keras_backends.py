"""How a Keras model is run and seen as operations on each backend.

Each backend is a class with these methods:

- ``run(model, plain, tables, inputs, keywords, exact, edits, keep,
  before)``: a Program of ``model``, with the weights of ``plain``.
- ``rebuilt(make, plain)``: a model made anew in float64, and its tables.

A model runs in a ``keras.StatelessScope``, which belongs to the thread: it
reads what the scope has of its variables, and no variable is written.
"""

import contextlib
import time

import keras
import numpy as np
from keras import ops

from parity.operations.frames import KerasFrames
from parity.operations.program import (
    CONSTANT, INPUT, PARAMETER, Rounding)
from parity.tracing.keras import modules, named_variables
from parity.tracing.recorder import argument_names, mapped


def is_array(value):
    """Whether a value is the backend's tensor, or NumPy's array."""
    return isinstance(value, np.ndarray) or ops.is_tensor(value)


def paths_of(model):
    """{id(layer): path}."""
    return {id(layer): path for path, layer in modules(model)}


def weights_of(model, plain):
    """Yield (path or "", variable of ``model``, variable whose value it has).

    Those of seeds, metrics and the like have no path.
    """
    named, others = named_variables(model)[0], named_variables(plain)[0]
    for path, variable in named.items():
        yield path, variable, others.get(path, variable)
    seen = {id(variable) for variable in named.values()}
    mine, theirs = model.variables, plain.variables
    for variable, other in zip(
            mine, theirs if len(mine) == len(theirs) else mine):
        if id(variable) not in seen:
            yield "", variable, other


def replaced(model, inputs, keywords, visit):
    """The arguments, with ``visit(name, array)`` in the place of arrays."""
    def of(name, leaf):
        return visit(name, leaf) if is_array(leaf) else leaf
    names, _ = argument_names(model.call, inputs, keywords)
    return ([mapped(value, name, of) for name, value in zip(names, inputs)],
            {name: mapped(value, name, of)
             for name, value in keywords.items()})


def named_outputs(output):
    """{name of an output: array}, as a Trace names them."""
    outputs = {}

    def visit(name, leaf):
        if is_array(leaf):
            outputs[name] = leaf
        return leaf
    mapped(output, "output", visit)
    return outputs


@contextlib.contextmanager
def holding(values):
    """A scope in which variables have values: [(variable, value)]."""
    scope = keras.StatelessScope()
    scope.state_mapping.update(
        (id(variable), value) for variable, value in values)
    with scope:
        yield


def attributes(model):
    """Yield (path, layer, name, tensor) of tensors that layers keep beside
    their variables."""
    for path, layer in modules(model):
        for name, value in vars(layer).items():
            if ops.is_tensor(value) and not isinstance(
                    value, keras.KerasTensor):
                yield f"{path}.{name}", layer, name, value


def close(one, other):
    """Whether two tensors are the same but for rounding to float32."""
    one, other = map(ops.convert_to_numpy, (one, other))
    return one.shape == other.shape and np.allclose(
        one.astype(np.float64), other.astype(np.float64), rtol=1e-6,
        atol=1e-6, equal_nan=True)


class OnTensorFlow:
    """Keras on TensorFlow: float64 stands beside the plain run."""

    @staticmethod
    def run(model, plain, tables, inputs, keywords, exact, edits, keep,
            before=None):
        import tensorflow as tf

        from parity.operations.tensorflow import record
        twins = {name: twin for _, name, _, twin in tables or () if name}
        leaves = [table for table in tables or () if not table[1]]
        values = []
        for path, variable, other in weights_of(model, plain):
            values.append((variable, tf.identity(other.value)))
            if path:
                leaves.append((PARAMETER, path, values[-1][1],
                               twins.get(path)))

        def visit(name, leaf):
            leaves.append((INPUT, name, tf.identity(leaf), None))
            return leaves[-1][2]
        args, options = replaced(model, inputs, keywords, visit)

        def function():
            with holding(values):
                return named_outputs(model(*args, **options))
        return record(function, leaves, exact, edits, keep, paths_of(model),
                      before)

    @staticmethod
    def rebuilt(make, plain):
        """The model, and [(kind, name, tensor, its float64)] of tables."""
        from parity.operations.tensorflow import building
        with building() as recording:
            model = make()[0]
        tables = []
        for path, variable in tables_of(model, plain).items():
            known = recording.written.get(id(getattr(
                variable._value, "handle", None)))
            if known is not None and not known.drawn:
                tables.append((PARAMETER, path, variable.value, known.twin))
        theirs = {path: value for path, *_, value in attributes(plain)}
        for path, _, _, tensor in attributes(model):
            known, other = recording.known.get(id(tensor)), theirs.get(path)
            if other is not None and not close(tensor, other):
                tables.append((CONSTANT, "", tensor, other))
            elif known is not None and not known.drawn:
                tables.append((CONSTANT, "", tensor, known.twin))
        return model, tables


class OnTorch:
    """Keras on torch: tensors of float64 stand for shorter ones."""

    @staticmethod
    def run(model, plain, tables, inputs, keywords, exact, edits, keep,
            before=None):
        import torch
        from torch.utils._python_dispatch import _disable_current_modes
        from torch.utils._pytree import tree_map

        from parity.operations.torch_recording import outputs_of, recording
        from parity.operations.torch_twins import lie
        names, values = [], []
        for path, variable, other in weights_of(model, plain):
            value = tables.get(path)
            value = other.value if value is None else value
            values.append((variable, value.detach().clone()))
            if path:
                names.append((PARAMETER, path, values[-1][1]))

        def visit(name, leaf):
            tensor = ops.convert_to_tensor(leaf).detach().clone()
            names.append((INPUT, name, tensor))
            return tensor
        args, options = replaced(model, inputs, keywords, visit)

        began = time.perf_counter()
        with torch.random.fork_rng(devices=[]), torch.no_grad(), recording(
                names, exact, edits, keep, paths_of(model),
                before) as mode:
            mode.frames = KerasFrames(paths_of(model), OnTorch.run.__code__)
            # keras: it compares dtypes, so all have to be as long at once.
            def twin(tensor):
                made = mode.twins.of(tensor)
                if made is not tensor:
                    mode.names[lie(made)] = mode.names.get(
                        lie(tensor), (CONSTANT, ""))
                return made
            with _disable_current_modes():
                twins = [(variable, twin(value))
                         for variable, value in values]
                args, options = tree_map(twin, (args, options))
            with holding(twins):
                outputs = outputs_of(mode, model(*args, **options))
        program = mode.program
        program.outputs = outputs
        program.roundings = [Rounding(*key, count) for key, count
                             in mode.roundings.items()]
        program.seconds = time.perf_counter() - began
        return program

    @staticmethod
    def rebuilt(make, plain):
        """The model, and {path: float64} of its tables."""
        import torch

        from parity.operations.torch_calls import Unfused
        from parity.operations.torch_built import Exact
        with torch.random.fork_rng(devices=[]), Unfused(True), Exact():
            model = make()[0]
        return model, exact_tables(model, plain)


class OnJax:
    """Keras on JAX: arrays of float64 stand for shorter ones."""

    @staticmethod
    def run(model, plain, tables, inputs, keywords, exact, edits, keep,
            before=None):
        from parity.operations.jax_recording import record

        def function(recording):
            recording.stack = KerasFrames(paths_of(model), OnJax.run.__code__)
            values = []
            for path, variable, other in weights_of(model, plain):
                value = tables.get(path, other.value)
                values.append((variable, recording.leaf(
                    PARAMETER, path, value) if path else value))
            args, options = replaced(
                model, inputs, keywords,
                lambda name, leaf: recording.leaf(INPUT, name, leaf))
            with holding(values):
                return model(*args, **options)
        return record(function, exact, edits, keep, ("keras",),
                      before=before)

    @staticmethod
    def rebuilt(make, plain):
        """The model, and {path: float64} of its tables."""
        from parity.operations.jax_recording import record
        model = record(lambda _: make()[0], exact=True, silent=True)
        return model, exact_tables(model, plain)


def tables_of(model, plain):
    """{path: variable} of those of a model made anew that were computed, as in
    the plain model: no weights, also if they are frozen."""
    others = named_variables(plain)[0]
    weights = {id(variable) for _, layer in modules(model)
               for variable in layer._trainable_variables}
    return {path: variable for path, variable
            in named_variables(model)[0].items()
            if id(variable) not in weights and path in others
            and close(variable.value, others[path].value)}


def exact_tables(model, plain):
    """{path: value} of the variables that are tables.

    Tensors beside variables become the plain model's where they are others.
    """
    tables = {path: variable.value
              for path, variable in tables_of(model, plain).items()}
    theirs = {path: value for path, *_, value in attributes(plain)}
    for path, layer, name, tensor in attributes(model):
        if path in theirs and not close(tensor, theirs[path]):
            vars(layer)[name] = theirs[path]
    return tables


#: By Keras' name of each.
BACKENDS: dict = {"tensorflow": OnTensorFlow, "torch": OnTorch, "jax": OnJax}
