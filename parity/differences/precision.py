"""Known differences of precision and checks."""

import math

import numpy as np

from parity.differences.asking import add, x64
from parity.differences.tensors import (
    dtype_name, in_new_process, jax_array, torch_tensor, word)


def _torch_dtype(value, **more):
    import torch
    return dtype_name(torch.tensor(value, **more))


def _tf_dtype(value, **more):
    import tensorflow as tf
    return dtype_name(tf.constant(value, **more))


def _keras_dtype(value):
    from keras import ops
    return dtype_name(ops.convert_to_tensor(value))


def _jax_dtype(value, **more):
    import jax.numpy as jnp
    return dtype_name(jnp.array(value, **more))


add("dtype_of_a_float", "precision",
    "What a plain 1.0 becomes: float64 in NumPy, float32 elsewhere.",
    {"numpy": ("float64", lambda: dtype_name(np.array(1.0))),
     "torch": ("float32", lambda: _torch_dtype(1.0)),
     "tensorflow": ("float32", lambda: _tf_dtype(1.0)),
     "jax": ("float32", lambda: _jax_dtype(1.0))})


add("dtype_of_an_integer", "precision",
    "What a plain 1 becomes: 64 bits in NumPy and torch, 32 elsewhere.",
    {"numpy": ("int64", lambda: dtype_name(np.array(1))),
     "torch": ("int64", lambda: _torch_dtype(1)),
     "tensorflow": ("int32", lambda: _tf_dtype(1)),
     "keras": ("int32", lambda: _keras_dtype(1)),
     "jax": ("int32", lambda: _jax_dtype(1))})


def _torch_float64():
    import torch
    return _torch_dtype(1.0, dtype=torch.float64)


def _jax_with_x64():
    with x64(True):
        return _jax_dtype(1.0, dtype="float64")


add("float64_asked_for", "precision",
    "What float64 becomes when it is asked for by name. JAX makes it float32 "
    "with a warning until jax_enable_x64 is set, and a proof in float64 is "
    "then none.",
    {"torch": ("float64", _torch_float64),
     "tensorflow": ("float64", lambda: _tf_dtype(1.0, dtype="float64")),
     "jax": ("float32", lambda: _jax_dtype(1.0, dtype="float64")),
     "jax with x64": ("float64", _jax_with_x64)})


_WIDE = np.ones((2, 2))


def _torch_layer_dtype():
    import torch
    return dtype_name(torch.nn.Linear(2, 2)(torch_tensor(_WIDE)))


def _keras_layer_dtype():
    import keras
    return dtype_name(keras.layers.Dense(2)(
        keras.ops.convert_to_tensor(_WIDE)))


def _flax_layer_dtype():
    from flax import nnx
    with x64(True):
        return dtype_name(nnx.Linear(2, 2, rngs=nnx.Rngs(0))(jax_array(_WIDE)))


add("float64_into_a_layer", "precision",
    "Float64 handed to a layer made without a dtype: torch refuses, Keras "
    "rounds it to float32 without a word, Flax widens its float32 weights.",
    {"torch": ("RuntimeError", _torch_layer_dtype),
     "keras": ("float32", _keras_layer_dtype),
     "flax with x64": ("float64", _flax_layer_dtype)})


#: Above half a unit of float16 by less than float32 can hold.
_TWICE = 1 + 2.0**-11 + 2.0**-40


def _rounding(value):
    return word(value == 1, "twice, by way of float32", "once")


def _torch_half():
    import torch
    return _rounding(torch.tensor(_TWICE, dtype=torch.float64).half().item())


def _tf_half():
    import tensorflow as tf
    return _rounding(float(tf.cast(tf.constant(_TWICE, tf.float64),
                                   tf.float16)))


def _jax_half():
    """XLA rounded once on one processor that was asked, twice on another."""
    with x64(True):
        value = float(jax_array(np.float64(_TWICE)).astype("float16"))
    return word(value in (1, 1 + 2.0**-10), "once or twice, by the processor",
                "otherwise")


add("float64_to_float16", "precision",
    "Rounding float64 to float16 by way of float32 rounds twice, and one "
    "number in some ten thousand ends a unit off.",
    {"numpy": ("once", lambda: _rounding(float(np.float16(_TWICE)))),
     "torch": (
          "twice, by way of float32",
          _torch_half), "tensorflow": ("twice, by way of float32", _tf_half),
     "jax": ("once or twice, by the processor", _jax_half)})


_TORCH_SWITCHES = (
    "import torch; print((torch.get_float32_matmul_precision(), "
    "torch.backends.cudnn.allow_tf32))")

_TF_SWITCHES = (
    "import tensorflow as tf; "
    "print((tf.config.experimental.tensor_float_32_execution_enabled(),))")

_JAX_SWITCHES = (
    "import jax; print((jax.config.jax_default_matmul_precision, "
    "jax.config.jax_enable_x64))")


add("process_precision", "precision",
    "What a new process allows float32 products on a GPU: torch computes "
    "matrix products in full and convolutions in TF32, TensorFlow all in "
    "TF32, and JAX leaves it to the device.",
    {"torch matmul": ("highest", lambda: in_new_process(_TORCH_SWITCHES)[0]),
     "torch cudnn.allow_tf32": (
          "True", lambda: str(in_new_process(_TORCH_SWITCHES)[1])),
     "tensorflow tensor_float_32": (
          "True", lambda: str(in_new_process(_TF_SWITCHES)[0])),
     "jax default_matmul_precision": (
          "None", lambda: str(in_new_process(_JAX_SWITCHES)[0])),
     "jax enable_x64": (
          "False", lambda: str(in_new_process(_JAX_SWITCHES)[1]))})


def _largest_accepted(accepts):
    """The largest relative error at 1 that a comparison accepts."""
    low, high = 1e-12, 1.0
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if accepts(middle) else (low, middle)
    return low


def _passes(check, *args, **more):
    try:
        return check(*args, **more) is not False
    except (AssertionError, ValueError):
        return False


def _torch_accepts(dtype):
    import torch
    dtype = getattr(torch, dtype)
    return _largest_accepted(lambda error: _passes(
        torch.testing.assert_close, torch.tensor([1 + error], dtype=dtype),
        torch.ones(1, dtype=dtype)))


def _jax_accepts():
    import jax.numpy as jnp
    with x64(True):
        return _largest_accepted(lambda error: bool(jnp.allclose(
            jnp.array([1 + error]), jnp.ones(1))))


def _tf_accepts():
    import tensorflow as tf
    return _largest_accepted(lambda error: not _raises(
        lambda: tf.debugging.assert_near(
            tf.constant([1 + error], tf.float32), tf.ones([1]))))


def _raises(function):
    try:
        function()
    except Exception:
        return True
    return False


add("tolerance_by_default", "precision",
    "The largest relative error at 1 that a comparison lets pass unless "
    "told: five orders lie between the strictest and the laxest.",
    {"numpy allclose": (1.001e-05, lambda: _largest_accepted(
         lambda error: np.allclose([1 + error], [1]))),
     "numpy assert_allclose": (1e-07, lambda: _largest_accepted(
          lambda error: _passes(
              np.testing.assert_allclose, [1 + error], [1]))),
     "torch assert_close float64": (2e-07, lambda: _torch_accepts("float64")),
     "torch assert_close float32": (
          1.1265e-05, lambda: _torch_accepts("float32")),
     "torch assert_close bfloat16": (
          0.019531, lambda: _torch_accepts("bfloat16")),
     "tensorflow assert_near float32": (2.3246e-06, _tf_accepts),
     "jax allclose": (1.001e-05, _jax_accepts)},
    tolerance=0.1)


def _nan_words(passed):
    return word(passed, "equal", "not equal")


def _torch_nan():
    import torch
    nan = torch.tensor([math.nan])
    return _nan_words(_passes(torch.testing.assert_close, nan, nan))


def _jax_nan():
    import jax.numpy as jnp
    nan = jnp.array([jnp.nan])
    return _nan_words(bool(jnp.allclose(nan, nan)))


add("nan_in_comparisons", "precision",
    "Whether NaN equals NaN: only in NumPy's assert_allclose, so that two "
    "broken outputs pass there.",
    {"numpy allclose": ("not equal", lambda: _nan_words(
         np.allclose([np.nan], [np.nan]))),
     "numpy assert_allclose": ("equal", lambda: _nan_words(_passes(
          np.testing.assert_allclose, [np.nan], [np.nan]))),
     "torch assert_close": ("not equal", _torch_nan),
     "jax allclose": ("not equal", _jax_nan)})


def _shape_words(passed):
    return word(passed, "accepted", "refused")


def _torch_shapes():
    import torch
    return _shape_words(_passes(torch.testing.assert_close,
                                torch.ones(3, 1), torch.ones(1, 3)))


def _jax_shapes():
    import jax.numpy as jnp
    return _shape_words(bool(jnp.allclose(jnp.ones((3, 1)),
                                          jnp.ones((1, 3)))))


add("shapes_in_comparisons", "precision",
    "Ones of shape [3 1] against ones of [1 3]: allclose spreads them out "
    "and is content.",
    {"numpy allclose": ("accepted", lambda: _shape_words(
         np.allclose(np.ones((3, 1)), np.ones((1, 3))))),
     "numpy assert_allclose": ("refused", lambda: _shape_words(_passes(
          np.testing.assert_allclose, np.ones((3, 1)), np.ones((1, 3))))),
     "torch assert_close": ("refused", _torch_shapes),
     "jax allclose": ("accepted", _jax_shapes)})
