"""Functions that are traced of a model once."""

import functools

import keras


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
