"""Functions that are traced of a model once, and what they took from it."""

import functools

import keras
import numpy as np

from impl_keras.attention import MultiHeadAttention
from impl_keras.parameters import modules


def compiled(model, name, function, *arguments, xla=False):
    """A function of a model and arguments, traced once for a name.

    Args:
        xla: whether XLA compiles it, on TensorFlow.
    """
    kept = model.__dict__.setdefault("_compiled_functions", {})
    if name not in kept:
        kept[name] = functools.partial(function, model, *arguments)
        if keras.backend.backend() == "tensorflow":
            import tensorflow as tf
            kept[name] = tf.function(
                kept[name], autograph=False, jit_compile=xla)
    return kept[name]


def parts(model):
    """Yield (path, layer) of each layer, and of attention's maps."""
    for path, layer in modules(model):
        yield path, layer
        if isinstance(layer, MultiHeadAttention):
            for name in ("query", "key", "value", "output"):
                yield f"{path}.{name}", getattr(layer, f"{name}_dense")
            for name in "_softmax", "_dropout_layer":
                yield f"{path}.{name}", getattr(layer, name)


class Traced:
    """What a function that was traced of a model has taken from it."""

    def __init__(self, model, others=()):
        self.config, self.parts, self.constants = model.config, [*others], []
        for _, layer in parts(model):
            self.parts.append(layer)
            for value in vars(layer).values():
                if isinstance(value, keras.Variable):
                    self.parts.append(value)
                elif isinstance(value, np.ndarray):
                    self.constants.append(value)

    def kept(self):
        """The same, whatever becomes of the constants."""
        self.constants = [value.copy() for value in self.constants]
        return self

    def is_of(self, other):
        """Whether the other has taken the same."""
        return (self.config == other.config
                and [*map(id, self.parts)] == [*map(id, other.parts)]
                and all(map(np.array_equal, self.constants, other.constants)))


def forget_others(model):
    """Forget what was traced of a model when it was another."""
    now, kept = Traced(model), model.__dict__.setdefault(
        "_compiled_functions", {})
    if not ("traced" in kept and now.is_of(kept["traced"])):
        kept.clear()
        kept["traced"] = now.kept()
