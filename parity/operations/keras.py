"""A Keras layer's or model's run as operations, on TensorFlow.

The layer runs in a ``keras.StatelessScope``, which belongs to the thread: it
reads copies of its variables, and no variable is written. The backend's own
file sees its operations.
"""

import contextlib
import random

import keras
import numpy as np
from keras import ops

from contract.errors import InputError
from parity.operations.program import CONSTANT, INPUT, PARAMETER
from parity.tracing.keras import backend, modules, named_variables, put_back
from parity.tracing.recorder import argument_names, mapped


class Runner:
    """Runs a Keras layer or model; see ``parity.operations.program.Runner``.

    A model that was not built yet is called once to be built.
    """

    framework = "keras"

    def __init__(self, model, inputs, keywords, make=None):
        if not isinstance(model, keras.layers.Layer):
            raise InputError(
                f"a {type(model).__name__} is not a Keras layer; give one.")
        self.model, self.inputs, self.keywords = model, inputs, keywords
        self.make, self.built = make, None
        if not all(layer.built for _, layer in modules(model)):
            with put_back(model):
                model(*inputs, **keywords)

    def run(self, exact=False, edits=None, keep=True):
        """Run the model once; see ``parity.operations.program.Runner``."""
        match backend():
            case "tensorflow":
                return self.on_tensorflow(exact, edits, keep)
        raise InputError(
            f"Keras on {backend()} cannot be seen as operations; set "
            "KERAS_BACKEND=tensorflow.")

    def on_tensorflow(self, exact, edits, keep):
        """Run the model once on TensorFlow."""
        import tensorflow as tf

        from parity.operations.tensorflow import record
        model, tables = self.model, ()
        if exact and self.make is not None:
            if self.built is None:
                self.built = rebuilt(self.make, self.model)
            model, tables = self.built
        leaves = [table for table in tables if not table[1]]
        mapping = []
        twins = {name: twin for _, name, _, twin in tables if name}
        plain = named_variables(self.model)[0]
        for path, variable in named_variables(model)[0].items():
            value = tf.identity(plain.get(path, variable).value)
            leaves.append((PARAMETER, path, value, twins.get(path)))
            mapping.append((variable, value))

        def visit(name, leaf):
            if isinstance(leaf, np.ndarray) or ops.is_tensor(leaf):
                leaf = tf.identity(leaf)
                leaves.append((INPUT, name, leaf, None))
            return leaf
        args, keywords = named_inputs(
            model, self.inputs, self.keywords, visit)
        mapped_ones = {id(variable) for variable, _ in mapping}
        mapping += [(variable, tf.identity(variable.value))
                    for variable in model.variables
                    if id(variable) not in mapped_ones]

        def function():
            with keras.StatelessScope(mapping):
                return named_outputs(model(*args, **keywords))
        paths = {id(layer): path for path, layer in modules(model)}
        with random_states():
            return record(function, leaves, exact, edits, keep, paths)


def named_inputs(model, inputs, keywords, visit):
    """The arguments, with ``visit(name, leaf)`` in place of each leaf."""
    names, _ = argument_names(model.call, inputs, keywords)
    return ([mapped(value, name, visit)
             for name, value in zip(names, inputs)],
            {name: mapped(value, name, visit)
             for name, value in keywords.items()})


def named_outputs(output):
    """{name of an output: tensor}, as a Trace names them."""
    outputs = {}

    def visit(name, leaf):
        if isinstance(leaf, np.ndarray) or ops.is_tensor(leaf):
            outputs[name] = leaf
        return leaf
    mapped(output, "output", visit)
    return outputs


def rebuilt(make, plain):
    """A model that ``make`` builds, and what its tables are in float64.

    Weights are those of ``plain``, and so is each other tensor that was drawn
    or differs from the new one by more than rounding.

    Returns:
        The model, and [(kind, name, tensor, twin)] of its tables.
    """
    from parity.operations.tensorflow import building
    with random_states(), building() as recording:
        model = make()[0]
    tables, others = [], named_variables(plain)[0]
    for path, variable in named_variables(model)[0].items():
        known = recording.written.get(id(getattr(
            variable._value, "handle", None)))
        other = others.get(path)
        if known is None or known.drawn or variable.trainable or (
                other is None or not same(variable.value, other.value)):
            continue
        tables.append((PARAMETER, path, variable.value, known.twin))
    theirs = dict(attributes(plain))
    for path, tensor in attributes(model):
        known, other = recording.known.get(id(tensor)), theirs.get(path)
        if other is not None and not same(tensor, other):
            tables.append((CONSTANT, "", tensor, other))
        elif known is not None and not known.drawn:
            tables.append((CONSTANT, "", tensor, known.twin))
    return model, tables


def attributes(model):
    """Yield (path, tensor) of tensors that are attributes of layers."""
    for path, layer in modules(model):
        for name, value in vars(layer).items():
            if ops.is_tensor(value) and hasattr(value, "numpy"):
                yield f"{path}.{name}", value


def same(one, other):
    """Whether two tensors are the same but for rounding to their dtype."""
    return one.shape == other.shape and one.dtype == other.dtype and (
        np.allclose(ops.convert_to_numpy(one).astype(np.float64),
                    ops.convert_to_numpy(other).astype(np.float64),
                    rtol=1e-6, atol=1e-6, equal_nan=True))


@contextlib.contextmanager
def random_states():
    """Put back afterwards what a seed sets: Python's, NumPy's, TensorFlow's
    and Keras' states."""
    from keras.src.backend.common import global_state
    from tensorflow.python.eager import context
    names = "global_random_seed", "global_seed_generator"
    own = {name: global_state.get_global_attribute(name) for name in names}
    generator = own["global_seed_generator"]
    state = generator and ops.convert_to_numpy(generator.state.value).copy()
    eager = context.context()
    drawing = getattr(eager, "_rng", None)
    seed, drawn = eager._seed, drawing and drawing.getstate()
    python, numpy = random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
        for name, value in own.items():
            global_state.set_global_attribute(name, value)
        if generator and not np.array_equal(
                state, ops.convert_to_numpy(generator.state.value)):
            generator.state.assign(state)
        eager._seed = seed
        if drawn:
            eager._rng.setstate(drawn)
