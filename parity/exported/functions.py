"""Functions: of JAX alone, and what jax.jit, nnx.jit and tf.function return.

A function is run as it is for its outputs. Its operations are those of the
function that was compiled, seen through its own graph.
"""

import numpy as np

from parity.exported import bound
from parity.exported.model import ExportedModel
from parity.tracing.recorder import mapped


def framework_for(model, inputs=(), keywords=None):
    """The framework of a compiled function, or of one of JAX; "" of anything
    else."""
    name = f"{type(model).__module__}.{type(model).__name__}"
    if name.startswith("jaxlib.") and hasattr(
            model, "lower") or "nnx" in name and "Jit" in name:
        return "jax"
    if name.startswith("tensorflow.") and callable(model) and (
            hasattr(model, "get_concrete_function")
            or hasattr(model, "structured_outputs")):
        return "keras"
    return "jax" if bound.of_jax(model, inputs, keywords) else ""


def opened(model, inputs, keywords):
    """The ExportedModel of such a function; None of anything else."""
    framework = framework_for(model, inputs, keywords)
    if framework == "jax":
        import jax
        made = _of(model, inputs, keywords, "jax", "function" if (
            bound.is_plain(model)) else "jitted function",
            {"jax": jax.__version__}, _jax_runner)
        made.parameters = {
            name: np.asarray(array) for name, array in bound.parameters(
                bound.innermost(model)).items()}
        return made
    if framework == "keras":
        import tensorflow
        return _of(model, inputs, keywords, "keras", "tf.function",
                   {"tensorflow": tensorflow.__version__}, _keras_runner)
    return None


def _of(model, inputs, keywords, framework, kind, versions, runner):
    """The ExportedModel of a function."""
    return ExportedModel(
        framework, kind, arrays(inputs, keywords),
        _arrays({"output": model(*inputs, **keywords)}), versions,
        runner=lambda: runner(model, inputs, keywords))


def arrays(inputs, keywords):
    """{name: array} of the arguments that are arrays."""
    return _arrays({**{f"argument.{i}": value for i, value
                       in enumerate(inputs)}, **keywords})


def _arrays(nests):
    """{name: array} of what is found in {name: anything}, as in a Trace."""
    found = {}

    def visit(name, leaf):
        if hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
            found[name] = np.asarray(
                leaf.detach() if hasattr(leaf, "detach") else leaf)
        return leaf
    for name, value in nests.items():
        mapped(value, name, visit)
    return found


def _jax_runner(model, inputs, keywords):
    """The Runner of a function of JAX."""
    from flax import nnx

    from parity.operations.jax import Runner

    inner = bound.innermost(model)
    arrays = bound.parameters(inner)

    class Function(nnx.Module):
        """The function as a module, and its arrays as parameters."""

        def __init__(self):
            for name, array in arrays.items():
                setattr(self, name, nnx.Param(array))

        def __call__(self, *args, **named):
            function = bound.with_arrays(inner, {
                name: getattr(self, name).get_raw_value()
                for name in arrays}) if arrays else model
            return function(*args, **named)
    return Runner(Function(), inputs, keywords)


def _keras_runner(model, inputs, keywords):
    """The Runner of a tf.function."""
    import keras

    from parity.operations.keras import Runner

    class Function(keras.layers.Layer):
        """The function as a layer."""

        def call(self, *args, **named):
            return model(*args, **named)
    return Runner(Function(dtype="float64"), inputs, keywords)
