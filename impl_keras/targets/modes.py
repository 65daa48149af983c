"""The ways to run a model: as it is, compiled, and exported."""

import tempfile

import keras

from transformer_contract import onnx_session
from impl_keras.engine import home, on, ours, to_native, to_numpy
from impl_keras.gradients import value_and_gradients
from impl_keras.loss import cross_entropy
from impl_keras.parameters import leaves
from impl_keras.targets import onnx


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


def onnx_runtime(function, inputs, variables):
    """The function exported to ONNX, and run by ONNX Runtime."""
    import onnxruntime
    session = onnx_session.Session(
        onnxruntime, onnx.written(function, inputs))

    def run(*inputs):
        return session(*map(to_numpy, inputs))

    run.session = session
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


def openvino(function, inputs, variables):
    """The function as a graph of OpenVINO's, run on the processor."""
    import openvino as ov
    from openvino import opset15
    parameters = [opset15.parameter(list(value.shape), value.dtype)
                  for value in map(to_numpy, inputs)]
    output = function(*(
        keras.src.backend.openvino.core.OpenVINOKerasTensor(one.output(0))
        for one in parameters)).output
    compiled = ov.compile_model(
        ov.Model([output], parameters), "CPU", {
            "INFERENCE_PRECISION_HINT": "f32",
            "EXECUTION_MODE_HINT": "ACCURACY"})

    def run(*inputs):
        output = compiled([to_numpy(value) for value in inputs])[0]
        if dtype == "bfloat16":  # NumPy has none: 16 bits of another name
            return output.view(dtype)
        return output

    dtype = variables[0].dtype
    run.compiled = compiled
    return run


#: The modes with a runtime of their own.
ONNX, OPENVINO = "ONNX Runtime", "OpenVINO"

#: Mode -> what makes a function of a function, its inputs and its variables.
MODES = {"eager": eager, **{
    "tensorflow": {"tf.function": graph, "XLA": xla,
                   "SavedModel": saved_model, ONNX: onnx_runtime},
    "jax": {"jit": jit}, "torch": {"aot_eager": aot_eager},
    "openvino": {OPENVINO: openvino},
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
    if mode == ONNX:
        return hasattr(run, "session") and run.session.count > 0
    if mode == OPENVINO:
        return type(getattr(run, "compiled", None)).__name__ == "CompiledModel"
    if mode == "jit":
        return hasattr(run, "compiled") and run.compiled._cache_size() > 0
    if mode == "aot_eager":
        from torch._dynamo.utils import counters
        return counters["aot_autograd"]["total"] > 0
    return mode == "eager"


def missing(mode, dtype):
    """What a mode needs and is not here, in words, or ""."""
    if mode == "aot_eager":
        return ("torch.compile cannot trace Keras' layers on PyTorch, whose "
                "cpu:0 is to it another device than cpu")
    if mode == ONNX:
        if dtype == "bfloat16":
            return "ONNX Runtime has no bfloat16 on processors"
        return (onnx_session.missing(["onnxruntime"])
                or onnx.missing(dtype))
    if keras.backend.backend() == "openvino":
        if mode == "eager":
            return ("OpenVINO runs nothing step by step: for each step it "
                    "compiles all before it")
        if dtype == "float64":
            return "OpenVINO computes float64 in float32"
    return ""


def missing_gradients(mode):
    """Why a mode has no gradients, in words, or ""."""
    if mode in ("SavedModel", ONNX):
        return f"what is exported to {mode} has its own copies of the weights"
    if keras.backend.backend() == "openvino":
        return "OpenVINO has no gradients"
    return ""


def predictor(model, mode, inputs):
    """What computes a Transformer's output, () -> [B T V]; whether it ran so.
    """
    variables = [weight.get() for weight in leaves(model)]
    with on(home(model)):
        inputs = [to_native(value, home(model)) for value in inputs]
        run = MODES[mode](
            lambda *inputs: model(*inputs), inputs, variables)

    def predict():
        with on(home(model)):
            return to_numpy(run(*inputs))

    return predict, lambda: ran(mode, run)


def differentiator(model, mode, inputs):
    """What computes a loss, () -> loss and {weight: gradient}; whether it ran.

    Args:
        inputs: source, target, both masks, and labels.
    """
    config = model.config
    weights = list(leaves(model))
    variables = [weight.get() for weight in weights]

    def both(*inputs):
        *inputs, labels = inputs
        return value_and_gradients(lambda: cross_entropy(
            model(*inputs), labels, config.pad_id, config.label_smoothing,
            config.smoothing), variables)

    with on(home(model)):
        inputs = [to_native(value, home(model)) for value in inputs]
        run = MODES[mode](both, inputs, variables)

    def differentiate():
        with on(home(model)):
            loss, gradients = run(*inputs)
        return to_numpy(loss), {
            weight.name: ours(weight, gradient)
            for weight, gradient in zip(weights, gradients)}

    return differentiate, lambda: ran(mode, run)
