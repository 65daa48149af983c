"""Known differences of embeddings and positions."""

import functools
import math

import numpy as np

from parity import ports
from parity.differences.asking import Effect, add
from parity.differences.tensors import (
    as_numpy, gap_of, jax_array, torch_tensor, word)


def _position_table(width, divisor, count=50):
    """sin and cos of position / 10000^(2i / divisor), side by side."""
    rates = 10000.0 ** (-2 * np.arange(width // 2) / divisor)
    angles = np.arange(count)[:, None] * rates
    return np.stack([np.sin(angles), np.cos(angles)], -1).reshape(count, -1)


def _first_rates(divisor):
    return tuple(float(r) for r in 10000.0 ** (-2 * np.arange(3) / divisor))


add("position_divisor", "embedding",
    "The paper divides 2i by the width d; so does Hugging Face's port of "
    "Marian. Tensor2Tensor, Marian itself, fairseq, OpenNMT-tf, Whisper and "
    "Flax's examples divide i by d/2 - 1, so that the last rate is exactly "
    "1/10000: another table, which no rearranging turns into the first. Here "
    "the first rates of width 8.",
    {"numpy with d": ((1.0, 0.1, 0.01), lambda: _first_rates(8)),
     "numpy with d - 2": (
          (1.0, 0.046416, 0.0021544), lambda: _first_rates(6))},
    effect=Effect("largest distance within 50 positions", lambda: {
         "width 512": float(np.abs(_position_table(512, 512)
                                   - _position_table(512, 510)).max())}))


def _layout_effect():
    table = _position_table(512, 512)
    halves = np.concatenate([table[:, ::2], table[:, 1::2]], -1)
    return {"width 512": gap_of(halves, table)}


def _reference_layout(layout):
    """Whether the second feature at position 1 is a cosine or a sine."""
    from transformer_contract.config import preset
    engine = ports.engine("numpy")
    config = preset("practical").replace(
        d_model=8, n_heads=2, max_length=4, positions=layout)
    model = engine.build("positional_encoding", config, {})
    steps = engine.run(
        model, np.zeros((1, 4, 8)), np.ones((1, 4), int), start=0)
    second = steps["positions"][1, 1]
    return word(abs(second - math.cos(1)) < 1e-6, "sine, cosine, sine, …",
                "sines, then cosines")


add("position_layout", "embedding",
    "Sines and cosines stand in turn in the paper's lessons, and in two "
    "halves in Tensor2Tensor, Marian, fairseq and OpenNMT-tf; OpenNMT-py has "
    "them in turn. It is a permutation of the features, and weights trained "
    "on one are useless on the other.",
    {"reference interleaved": (
         "sine, cosine, sine, …", lambda: _reference_layout("interleaved")),
     "reference halves": (
          "sines, then cosines", lambda: _reference_layout("halves"))},
    effect=Effect("halves against interleaved", _layout_effect))


def _table_error(exp):
    """A position table of 5000 computed in float32 against float64."""
    i = np.arange(0, 512, 2)
    position = np.arange(5000)[:, None]
    truth = np.sin(position * 10000.0 ** (-i / 512))
    if exp:
        rates = np.exp(i.astype(np.float32)
                       * np.float32(-math.log(10000.0) / 512))
    else:
        rates = np.float32(10000) ** (-i.astype(np.float32) / np.float32(512))
    table = np.sin(position.astype(np.float32) * rates)
    return float(np.abs(table - truth).max())


add("position_table_in_float32", "embedding",
    "A table computed in float32 is wrong in the fourth decimal by position "
    "5000, and the two ways to compute the frequencies differ as much. Here "
    "the largest error.",
    {"numpy by exp": (0.00044781, lambda: _table_error(True)),
     "numpy by power": (0.00038655, lambda: _table_error(False))},
    tolerance=0.5,
    effect=Effect("largest error", lambda: {
         "by exp": _table_error(True), "by power": _table_error(False)}))


def _first_and_count(positions):
    wrong = np.flatnonzero(np.asarray(positions, float) != np.arange(5000))
    return int(wrong[0]), len(wrong)


def _torch_positions():
    import torch
    return as_numpy(torch.arange(5000).to(torch.bfloat16))


def _keras_positions():
    from keras import ops
    return as_numpy(ops.cast(ops.cast(ops.arange(5000), "bfloat16"), "float32"))


def _jax_positions():
    import jax.numpy as jnp
    return as_numpy(jnp.arange(5000).astype(jnp.bfloat16).astype(jnp.float32))


add("positions_in_bfloat16", "embedding",
    "bfloat16 holds 8 digits of 2, so positions computed in it are wrong "
    "from 257 on. Here the first wrong one of 5000, and how many are.",
    {"torch": ((257, 4203), lambda: _first_and_count(_torch_positions())),
     "keras": ((257, 4203), lambda: _first_and_count(_keras_positions())),
     "jax": ((257, 4203), lambda: _first_and_count(_jax_positions()))})


def _torch_padding_row():
    import torch
    layer = torch.nn.Embedding(4, 3, padding_idx=0)
    layer(torch.tensor([0, 1])).sum().backward()
    return _padding_words(
        as_numpy(layer.weight)[0], as_numpy(layer.weight.grad)[0])


def _keras_padding_row():
    import keras
    import tensorflow as tf
    layer = keras.layers.Embedding(4, 3, mask_zero=True)
    layer.build(None)
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(layer(np.array([0, 1])))
    grad = tape.gradient(total, layer.embeddings.value)
    return _padding_words(as_numpy(layer.embeddings)[0],
                          as_numpy(tf.convert_to_tensor(grad))[0])


def _padding_words(row, gradient):
    return (word(row.any(), "some row", "zero row"),
            word(gradient.any(), "some gradient", "zero gradient"))


def _flax_padding_row():
    import jax
    from flax import nnx
    layer = nnx.Embed(4, 3, rngs=nnx.Rngs(0))
    gradient = nnx.grad(lambda m: m(jax_array(np.array([0, 1]))).sum())(layer)
    return _padding_words(
        as_numpy(layer.embedding[...])[0],
        as_numpy(jax.tree.leaves(nnx.state(gradient))[0])[0])


add("padding_row", "embedding",
    "torch's padding_idx makes the padding token's embedding zero and keeps "
    "it so; Keras' mask_zero only makes a mask, and Flax has neither.",
    {"torch padding_idx=0": (("zero row", "zero gradient"),
                             _torch_padding_row),
     "keras mask_zero=True": (
          ("some row", "some gradient"), _keras_padding_row),
     "flax": (("some row", "some gradient"), _flax_padding_row)})


def _looked_up(row):
    return word(np.isnan(row).all(), "NaN", word(
        np.array_equal(row, [7, 8]), "the last row", f"{row.tolist()}"))


_ROWS = np.array([[1, 2], [3, 4], [5, 6], [7, 8]], np.float32)


def _numpy_look_up(token):
    return _looked_up(_ROWS[np.array([token])][0])


def _torch_look_up(token):
    import torch
    layer = torch.nn.Embedding.from_pretrained(torch_tensor(_ROWS))
    return _looked_up(as_numpy(layer(torch.tensor([token])))[0])


def _keras_look_up(token):
    import keras
    layer = keras.layers.Embedding(4, 2)
    layer.build(None)
    layer.set_weights([_ROWS])
    return _looked_up(as_numpy(layer(np.array([token])))[0])


def _jax_look_up(token):
    import jax.numpy as jnp
    return _looked_up(as_numpy(
        jnp.take(jax_array(_ROWS), jax_array([token]), axis=0))[0])


def _flax_look_up(token):
    from flax import nnx
    layer = nnx.Embed(4, 2, rngs=nnx.Rngs(0))
    layer.embedding.set_value(jax_array(_ROWS))
    return _looked_up(as_numpy(layer(jax_array([token])))[0])


def _look_ups(token, recorded):
    return {who: (value, functools.partial(ask, token)) for (who, ask), value
            in zip({"numpy": _numpy_look_up, "torch": _torch_look_up,
                    "keras": _keras_look_up, "jax jnp.take": _jax_look_up,
                    "flax nnx.Embed": _flax_look_up}.items(), recorded)}


add("token_beyond_the_table", "embedding",
    "Token 4 of a table of 4: an error in torch and, on a CPU, in "
    "TensorFlow; NaN without a word in JAX and Flax.",
    _look_ups(4, ("IndexError", "IndexError", "InvalidArgumentError", "NaN",
                  "NaN")))


add("negative_token", "embedding",
    "Token -1, as it stands for a label that does not count: an error in "
    "torch, the last row of the table elsewhere.",
    _look_ups(-1, ("the last row", "IndexError", "the last row",
                   "the last row", "the last row")))


def _one_hot_words(row):
    return word(row.any(), f"{row.tolist()}", "zeros")


def _torch_one_hot():
    import torch
    return _one_hot_words(as_numpy(torch.nn.functional.one_hot(
        torch.tensor([4]), 4))[0])


def _keras_one_hot():
    from keras import ops
    return _one_hot_words(as_numpy(ops.one_hot(np.array([4]), 4))[0])


def _jax_one_hot():
    import jax
    return _one_hot_words(as_numpy(jax.nn.one_hot(jax_array([4]), 4))[0])


add("one_hot_beyond", "embedding",
    "Class 4 of 4 as a one-hot row: torch refuses, the others answer zeros, "
    "and a loss on it is then 0.",
    {"torch": (
          "RuntimeError", _torch_one_hot), "keras": ("zeros", _keras_one_hot),
     "jax": ("zeros", _jax_one_hot)})
