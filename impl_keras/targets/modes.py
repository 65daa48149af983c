"""The ways to run a model: as it is, compiled, and exported."""

import tempfile

import keras
import numpy as np

from impl_keras.engine import on, to_native, to_numpy
from impl_keras.gradients import value_and_gradients
from impl_keras.loss import cross_entropy
from impl_keras.parameters import leaves


def eager(function, inputs, variables):
    """The function as it is."""
    return function


def graph(function, inputs, variables):
    """A graph of TensorFlow's."""
    import tensorflow as tf
    return tf.function(function)


def xla(function, inputs, variables):
    """A graph that XLA compiles."""
    import tensorflow as tf
    return tf.function(function, jit_compile=True)


def saved_model(function, inputs, variables):
    """A SavedModel written to a folder, and what that holds."""
    import tensorflow as tf
    module = tf.Module()
    module.weights = [variable.value for variable in variables]
    module.call = tf.function(function, input_signature=[
        tf.TensorSpec(value.shape, value.dtype) for value in inputs])
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder)
        loaded = tf.saved_model.load(folder)

    def run(*inputs):
        return loaded.call(*inputs)

    run.loaded = loaded  # keras: it owns the weights
    return run


def jit(function, inputs, variables):
    """The function compiled by JAX; its weights are arguments."""
    import jax

    @jax.jit
    def compiled(values, *inputs):
        with keras.StatelessScope(zip(variables, values)):
            return function(*inputs)

    def run(*inputs):
        return compiled([variable.value for variable in variables], *inputs)

    run.compiled = compiled
    return run


def aot_eager(function, inputs, variables):
    """The function as torch.compile traces it, run without a compiler."""
    import torch
    torch.compiler.reset()
    return torch.compile(function, backend="aot_eager", dynamic=False)


#: Mode -> what makes a function of a function, its inputs and its variables.
MODES = {"eager": eager, **{
    "tensorflow": {"tf.function": graph, "XLA": xla,
                   "SavedModel": saved_model},
    "jax": {"jit": jit}, "torch": {"aot_eager": aot_eager},
}.get(keras.backend.backend(), {})}


def ran(mode, run):
    """Whether a function has run in a mode, by what its framework made of it.
    """
    if mode in ("tf.function", "XLA"):
        import tensorflow as tf
        return (isinstance(run, tf.types.experimental.PolymorphicFunction)
                and run.experimental_get_tracing_count() > 0
                and bool(run._jit_compile) == (mode == "XLA"))
    if mode == "SavedModel":
        return type(getattr(run, "loaded", None)).__name__ == "_UserObject"
    if mode == "jit":
        return hasattr(run, "compiled") and run.compiled._cache_size() > 0
    if mode == "aot_eager":
        from torch._dynamo.utils import counters
        return counters["aot_autograd"]["total"] > 0
    return mode == "eager"


def missing(mode, dtype):
    """What a mode needs and is not here, in words, or ""."""
    return ("torch.compile cannot trace Keras' layers on PyTorch, whose cpu:0 "
            "is to it another device than cpu" if mode == "aot_eager" else "")


def missing_gradients(mode):
    """Why a mode has no gradients, in words, or ""."""
    if mode == "SavedModel":
        return "a SavedModel has its own copies of the weights"
    return ""


def predictor(model, mode, inputs):
    """What computes a Transformer's output, () -> [B T V]; whether it ran so.
    """
    variables = [variable for _, variable, _ in leaves(model)]
    with on(model.home):
        inputs = [to_native(value, model.home) for value in inputs]
        run = MODES[mode](
            lambda *inputs: model(*inputs), inputs, variables)

    def predict():
        with on(model.home):
            return to_numpy(run(*inputs))

    return predict, lambda: ran(mode, run)


def differentiator(model, mode, inputs):
    """What computes a loss, () -> loss and {weight: gradient}; whether it ran.

    Args:
        inputs: source, target, both masks, and labels.
    """
    config = model.config
    weights = list(leaves(model))
    variables = [variable for _, variable, _ in weights]

    def both(*inputs):
        *inputs, labels = inputs
        return value_and_gradients(lambda: cross_entropy(
            model(*inputs), labels, config.pad_id, config.label_smoothing,
            config.smoothing), variables)

    with on(model.home):
        inputs = [to_native(value, model.home) for value in inputs]
        run = MODES[mode](both, inputs, variables)

    def differentiate():
        with on(model.home):
            loss, gradients = run(*inputs)
        return to_numpy(loss), {
            name: np.ascontiguousarray(convert(to_numpy(gradient)))
            for (name, _, convert), gradient in zip(weights, gradients)}

    return differentiate, lambda: ran(mode, run)
