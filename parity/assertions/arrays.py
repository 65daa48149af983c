"""Arrays of every framework as NumPy's.

A framework is recognised among the loaded modules, so that none is imported
here.
"""

import sys

import ml_dtypes  # teaches NumPy bfloat16
import numpy as np

from parity_io.errors import InputError
from parity.numerics import dtypes


def as_array(value, name="actual"):
    """A framework's array as NumPy's, of the same dtype.

    Returns:
        The array, and the name of the framework that it came from.

    Raises:
        InputError: it cannot be read as an array.
    """
    reader, framework = _reader(value)
    if reader is None:
        raise InputError(
            f"{name} is of {_class(value)}, which is not recognised; give an "
            "array of NumPy, PyTorch, TensorFlow, Keras or JAX.")
    try:
        array = reader(value)
    except Exception as error:  # the framework's own, whatever it is
        words = (str(error).splitlines() or [""])[0][:120]
        raise InputError(
            f"{name} is of {_class(value)} and cannot be read as an array; "
            f"give an array of numbers ({type(error).__name__}: "
            f"{words}).") from error
    if (array.dtype.kind not in "biuf"
            and array.dtype.name not in dtypes.EPS):
        raise InputError(
            f"{name} has dtype {array.dtype.name}, which is not compared; "
            "give floating point, integers or booleans.")
    return array, framework


def _reader(value):
    """How to read a value, and its framework; (None, "") if unknown."""
    if isinstance(value, np.ma.MaskedArray):
        return None, ""
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray, "numpy"
    if type(value) in (bool, int, float):
        return np.asarray, "numpy"
    for module, names, reader, framework in (
            ("torch", ("Tensor",), _of_torch, "torch"),
            ("keras", ("Variable",), _of_keras, "keras"),
            ("tensorflow", ("Tensor", "Variable", "IndexedSlices"),
             _of_tensorflow, "keras"),
            ("jax", ("Array",), np.asarray, "jax"),
            ("flax.nnx", ("Variable",), _of_nnx, "jax")):
        library = sys.modules.get(module)
        classes = tuple(filter(None, (
            getattr(library, word, None) for word in names)))
        if classes and isinstance(value, classes):
            return reader, framework
    return None, ""


def _of_torch(tensor):
    torch = sys.modules["torch"]
    tensor = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def _of_tensorflow(tensor):
    tensorflow = sys.modules["tensorflow"]
    tensor = tensorflow.convert_to_tensor(tensor)
    # As a vector, because a bfloat16 scalar cannot be converted to NumPy.
    flat = tensorflow.reshape(tensor, (-1,)).numpy()
    return flat.reshape(tuple(tensor.shape))


def _of_keras(variable):
    reader, _ = _reader(variable.value)
    return reader(variable.value)


def _of_nnx(variable):
    return np.asarray(variable[...])


def _class(value):
    kind = type(value)
    return f"type {kind.__module__}.{kind.__qualname__}".replace(
        "builtins.", "")
