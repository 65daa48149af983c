"""A Keras layer's or model's run as operations, on any of its backends."""

import contextlib
import random
import sys

import keras
import numpy as np
from keras import ops

from parity_io.errors import InputError
from parity.operations.keras_backends import BACKENDS
from parity.tracing.keras import backend, modules, put_back


class Runner:
    """Runs a Keras layer or model; see ``parity.operations.program.Runner``.

    A model that was not built yet is called once to be built.
    """

    framework = "keras"

    def __init__(self, model, inputs, keywords, make=None):
        if not isinstance(model, keras.layers.Layer):
            raise InputError(
                f"a {type(model).__name__} is not a Keras layer; give one.")
        if backend() not in BACKENDS:
            raise InputError(
                f"Keras on {backend()} cannot be seen as operations; set "
                f"KERAS_BACKEND to {', '.join(BACKENDS)}.")
        self.model, self.inputs, self.keywords = model, inputs, keywords
        self.make, self.built, self.before = make, None, {}
        if not all(layer.built for _, layer in modules(model)):
            with put_back(model), random_states():
                model(*inputs, **keywords)

    def run(self, exact=False, edits=None, keep=True):
        """Run the model once; see ``parity.operations.program.Runner``."""
        seen, model, tables = BACKENDS[backend()], self.model, {}
        with random_states():
            if exact and self.make is not None:
                if self.built is None:
                    self.built = seen.rebuilt(self.make, self.model)
                model, tables = self.built
            program = seen.run(model, self.model, tables, self.inputs,
                               self.keywords, exact, edits, keep,
                               self.before.get(exact))
        self.before.setdefault(exact, program)
        program.framework = self.framework
        return program


@contextlib.contextmanager
def random_states():
    """Put back afterwards what a seed sets: Python's, NumPy's, TensorFlow's
    and Keras' states."""
    from keras.src.backend.common import global_state
    names = "global_random_seed", "global_seed_generator"
    own = {name: global_state.get_global_attribute(name) for name in names}
    generator = own["global_seed_generator"]
    state = generator and ops.convert_to_numpy(generator.state.value).copy()
    python, numpy = random.getstate(), np.random.get_state()
    try:
        with eager_seed() if "tensorflow" in sys.modules else (
                contextlib.nullcontext()):
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
        for name, value in own.items():
            global_state.set_global_attribute(name, value)
        if generator and not np.array_equal(
                state, ops.convert_to_numpy(generator.state.value)):
            generator.state.assign(state)


@contextlib.contextmanager
def eager_seed():
    """Put TensorFlow's own seed back afterwards."""
    from tensorflow.python.eager import context
    eager = context.context()
    generator = getattr(eager, "_rng", None)
    seed, state = eager._seed, generator and generator.getstate()
    try:
        yield
    finally:
        eager._seed = seed
        if generator:
            generator.setstate(state)
            eager._rng = generator
