"""Arrays in and out of every framework, for the answers."""

import ast
import functools
import os
import subprocess
import sys

import numpy as np


def as_numpy(value):
    """Any framework's tensor as a float64 array."""
    if hasattr(value, "detach"):
        value = value.detach().double().numpy()
    return np.asarray(value).astype(np.float64)


def normals(*shape):
    """The same standard normal numbers every time."""
    return np.random.default_rng(0).standard_normal(shape)


def gap_of(actual, truth):
    """The relative L2 distance of two arrays."""
    actual, truth = np.asarray(actual, float), np.asarray(truth, float)
    return float(np.linalg.norm(actual - truth) / np.linalg.norm(truth))


def torch_tensor(array):
    import torch
    return torch.from_numpy(np.array(array))


def jax_array(array):
    import jax.numpy as jnp
    return jnp.asarray(array)


def onnx_answer(operator, inputs, **attributes):
    """What ONNX's reference evaluator answers for one operator."""
    from onnx import helper
    from onnx.reference import ReferenceEvaluator
    node = helper.make_node(operator, list(inputs), ["y"], **attributes)
    return ReferenceEvaluator(node).run(None, inputs)[0]


def word(truth, yes, no):
    return yes if truth else no


def dtype_name(value):
    """A dtype's name, whichever framework's."""
    return str(getattr(value.dtype, "name", value.dtype)).removeprefix(
        "torch.")


@functools.cache
def in_new_process(code):
    """The value that code prints in a new process, where nothing is set."""
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True,
        check=True, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"})
    return ast.literal_eval(process.stdout.splitlines()[-1])
