"""Arrays of the framework that a reader learns, for an exercise in it.

In float64 as everywhere in the course, which Keras and JAX have to be told.
"""

import ast
import functools
import pathlib

import numpy as np

from parity import ports, quiet


def of_answer(exercise, path):
    """What an answer computes with: the first framework that its file imports.

    NumPy where there is none, and where a task has no arrays.
    """
    try:
        tree = ast.parse(pathlib.Path(path).read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, SyntaxError):
        return "numpy"
    for node in ast.walk(tree):
        modules = ([one.name for one in node.names]
                   if isinstance(node, ast.Import) else
                   [node.module or ""] if isinstance(node, ast.ImportFrom)
                   else [])
        for name in modules:
            if exercise.of_arrays and (
                    name := name.partition(".")[0]) in ports.usual_ports():
                return name
    return "numpy"


@functools.cache
def to(framework):
    """A function that makes a value, and what is in it, a framework's."""
    match framework:
        case "torch":
            import torch
            torch.set_default_dtype(torch.float64)
            array = torch.asarray
        case "jax":
            import jax
            jax.config.update("jax_enable_x64", True)
            array = jax.numpy.asarray
        case "keras":
            quiet.start_keras()
            import keras
            keras.config.set_floatx("float64")
            array = keras.ops.convert_to_tensor
        case _:
            return lambda value: value
    return functools.partial(through, np.ndarray, array)


@functools.cache
def back(framework):
    """A function that makes a framework's arrays NumPy's, at any depth."""
    match framework:
        case "torch":
            import torch
            return functools.partial(
                through, torch.Tensor, lambda one: _of_torch(
                    one.detach(), torch.bfloat16))
        case "jax":
            import jax
            return functools.partial(through, jax.Array, np.asarray)
        case "keras":
            import keras
            return functools.partial(
                through, type(keras.ops.zeros(1)),
                keras.ops.convert_to_numpy)
    return lambda value: value


def _of_torch(tensor, bfloat16):
    """A tensor as an array; of bfloat16, which NumPy lacks, by its bits."""
    if tensor.dtype != bfloat16:
        return tensor.numpy()
    import ml_dtypes
    import torch
    return tensor.contiguous().view(torch.int16).numpy().view(
        ml_dtypes.bfloat16)


def through(kind, change, value):
    """A value in which everything of a kind is changed."""
    if isinstance(value, kind):
        return change(value)
    if type(value) in (list, tuple):
        return type(value)(through(kind, change, one) for one in value)
    if type(value) is dict:
        return {key: through(kind, change, one) for key, one in value.items()}
    return value
