"""The ways to run a model: as it is, compiled, and exported."""

import functools

import jax
from flax import nnx

from transformer_contract import onnx_session
from impl_jax.engine import export, to_native, to_numpy
from impl_jax.loss import cross_entropy
from impl_jax.parameters import home
from impl_jax.targets import onnx


def eager(function, inputs):
    """The function as it is."""
    return function


def compiled(function, inputs):
    """The function compiled by XLA."""
    return jax.jit(function)


def exported(function, inputs):
    """The function exported to bytes of StableHLO, and what they hold."""
    program = jax.export.export(jax.jit(function))(*inputs)
    return jax.export.deserialize(program.serialize()).call


def onnx_runtime(function, inputs):
    """The function exported to ONNX, and run by ONNX Runtime."""
    import onnxruntime
    weights, *inputs = inputs
    session = onnx_session.Session(onnxruntime, onnx.written(
        functools.partial(function, weights), inputs, weights[0].dtype))

    def run(weights, *inputs):
        return session(*inputs)

    run.session = session
    return run


#: The mode with a runtime of its own.
ONNX = "ONNX Runtime"

#: Mode -> what makes a function of a function and its inputs.
MODES = {"eager": eager, "jit": compiled, "export": exported,
         ONNX: onnx_runtime}


def ran(mode, run):
    """Whether a function has run in a mode, by what JAX made of it."""
    if mode == "jit":
        return getattr(run, "_cache_size", lambda: 0)() > 0
    if mode == "export":
        return isinstance(getattr(run, "__self__", None), jax.export.Exported)
    if mode == ONNX:
        return hasattr(run, "session") and run.session.count > 0
    return mode == "eager"


def missing(mode, dtype):
    """What a mode needs and is not here, in words, or ""."""
    if mode == ONNX:
        return (onnx_session.missing(["onnxruntime"])
                or onnx.missing(dtype))
    return ""


def missing_gradients(mode):
    """Why a mode has no gradients, in words, or ""."""
    return ("an exported model has its own copies of the weights"
            if mode == ONNX else "")


def predictor(model, mode, inputs):
    """What computes a Transformer's output, () -> [B T V]; whether it ran so.
    """
    graph, state, rest = nnx.split(model, nnx.Param, ...)
    weights, tree = jax.tree.flatten(state)

    def outputs(weights, *inputs):
        return nnx.merge(graph, tree.unflatten(weights), rest)(*inputs)

    inputs = [to_native(value, home(model)) for value in inputs]
    run = MODES[mode](outputs, (weights, *inputs))

    def predict():
        return to_numpy(run(weights, *inputs))

    return predict, lambda: ran(mode, run)


def differentiator(model, mode, inputs):
    """What computes a loss, () -> loss and {weight: gradient}; whether it ran.

    Args:
        inputs: source, target, both masks, and labels.
    """
    graph, state, rest = nnx.split(model, nnx.Param, ...)
    weights, tree = jax.tree.flatten(state)
    config = model.config

    def loss_of(weights, *inputs):
        *inputs, labels = inputs
        output = nnx.merge(graph, tree.unflatten(weights), rest)(*inputs)
        return cross_entropy(output, labels, config.pad_id,
                             config.label_smoothing, config.smoothing)

    inputs = [to_native(value, home(model)) for value in inputs]
    run = MODES[mode](jax.value_and_grad(loss_of), (weights, *inputs))

    def differentiate():
        loss, gradients = run(weights, *inputs)
        return to_numpy(loss), export(
            nnx.merge(graph, tree.unflatten(gradients), rest))

    return differentiate, lambda: ran(mode, run)
