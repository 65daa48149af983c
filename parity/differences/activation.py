"""Known differences of activations."""

import numpy as np

from parity.causes.formulas.activation import gelu as exact_gelu
from parity.causes.formulas.activation import gelu_tanh
from parity.differences.asking import Effect, add, x64
from parity.differences.normalisation import norms
from parity.differences.tensors import (
    as_numpy, gap_of, jax_array, torch_tensor, word)


def _torch_gelu(x):
    import torch
    return as_numpy(torch.nn.functional.gelu(torch_tensor(x)))


def _keras_gelu(x):
    import keras
    return as_numpy(keras.activations.gelu(keras.ops.convert_to_tensor(x)))


def _tf_gelu(x):
    import tensorflow as tf
    return as_numpy(tf.nn.gelu(x))


def _jax_gelu(x):
    import jax
    return as_numpy(jax.nn.gelu(jax_array(x)))


def _nnx_gelu(x):
    from flax import nnx
    return as_numpy(nnx.gelu(jax_array(x)))


def _linen_gelu(x):
    from flax import linen
    return as_numpy(linen.gelu(jax_array(x)))


GELUS = {"torch": _torch_gelu, "keras": _keras_gelu, "tensorflow": _tf_gelu,
         "jax": _jax_gelu, "flax nnx": _nnx_gelu, "flax linen": _linen_gelu}

_GRID = np.linspace(-6, 6, 2401)


def _gelu_form(gelu):
    x = _GRID.astype(np.float32)
    y, x = gelu(x), x.astype(np.float64)
    return word(np.abs(y - exact_gelu(x)).max()
                < np.abs(y - gelu_tanh(x)).max(), "x Φ(x)", "by tanh")


add("gelu_form", "activation",
    "GELU is x Φ(x); JAX and Flax compute an approximation by tanh unless "
    "told not to, and GPT-2 was trained with it.",
    norms(("x Φ(x)", "x Φ(x)", "x Φ(x)", "by tanh", "by tanh", "by tanh"),
          _gelu_form, GELUS),
    effect=Effect("largest distance of the two forms", lambda: {
         "from -6 to 6": float(np.abs(
             exact_gelu(_GRID) - gelu_tanh(_GRID)).max())}))


def _gelu_error(gelu):
    """The largest error of an exact GELU in float64, as a word."""
    error = np.abs(gelu(_GRID) - exact_gelu(_GRID)).max()
    return word(error < 1e-14, "float64", "worse than float64")


def _jax_exact_gelu(x):
    import jax
    with x64(True):
        return as_numpy(jax.nn.gelu(jax_array(x), approximate=False))


add("gelu_in_float64", "activation",
    "Given float64, TensorFlow's GELU still multiplies by a √½ that was "
    "rounded to float32, so that a comparison in float64 finds it.",
    {"torch": ("float64", lambda: _gelu_error(_torch_gelu)),
     "keras": ("worse than float64", lambda: _gelu_error(_keras_gelu)),
     "tensorflow": ("worse than float64", lambda: _gelu_error(_tf_gelu)),
     "jax": ("float64", lambda: _gelu_error(_jax_exact_gelu))},
    effect=Effect("TensorFlow in float64 against x Φ(x)", lambda: {
         "from -6 to 6": gap_of(_tf_gelu(_GRID), exact_gelu(_GRID))},
         hidden=("from -6 to 6",), needs=("tensorflow",)))


def _torch_slope(function):
    import torch
    x = torch.zeros((), requires_grad=True)
    function(x).backward()
    return x.grad.item()


def _tf_slope(function):
    import tensorflow as tf
    x = tf.Variable(0.0)
    with tf.GradientTape() as tape:
        y = function(x)
    return float(tape.gradient(y, x))


def _jax_slope(function):
    import jax
    return float(jax.grad(function)(0.0))


def _torch_slopes(name):
    import torch
    functions = {
        "relu": torch.relu,
        "clamp": lambda x: x.clamp(min=0),
        "maximum": lambda x: torch.maximum(x, torch.zeros(()))}
    return _torch_slope(functions[name])


def _tf_slopes(name):
    import tensorflow as tf
    functions = {"relu": tf.nn.relu,
                 "maximum": lambda x: tf.maximum(x, 0.0),
                 "clip": lambda x: tf.clip_by_value(x, 0.0, 9.0)}
    return _tf_slope(functions[name])


def _keras_slopes(name):
    from keras import ops
    functions = {"relu": ops.relu,
                 "maximum": lambda x: ops.maximum(x, 0.0)}
    return _tf_slope(functions[name])


def _jax_slopes(name):
    import jax
    import jax.numpy as jnp
    functions = {"relu": jax.nn.relu,
                 "maximum": lambda x: jnp.maximum(x, 0.0),
                 "clip": lambda x: jnp.clip(x, 0.0)}
    return _jax_slope(functions[name])


add("slope_at_zero", "activation",
    "A ReLU's gradient at exactly 0 is 0 everywhere, but the same function "
    "written as a maximum or a clamp has 0, ½ or 1 there. Zeros in test data "
    "make gradients part.",
    {"torch relu": (0.0, lambda: _torch_slopes("relu")),
     "torch clamp": (1.0, lambda: _torch_slopes("clamp")),
     "torch maximum": (0.5, lambda: _torch_slopes("maximum")),
     "keras relu": (0.0, lambda: _keras_slopes("relu")),
     "keras maximum": (1.0, lambda: _keras_slopes("maximum")),
     "tensorflow relu": (0.0, lambda: _tf_slopes("relu")),
     "tensorflow maximum": (1.0, lambda: _tf_slopes("maximum")),
     "tensorflow clip_by_value": (1.0, lambda: _tf_slopes("clip")),
     "jax relu": (0.0, lambda: _jax_slopes("relu")),
     "jax maximum": (0.5, lambda: _jax_slopes("maximum")),
     "jax clip": (0.5, lambda: _jax_slopes("clip"))})
