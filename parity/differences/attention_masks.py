"""Known differences of attention: what a mask says and does."""

import importlib
import math

import numpy as np

from parity import ports
from parity.differences.asking import Effect, add
from parity.differences.attention_layers import (
    jax_dpa, keras_dpa, keras_mha, keys, linen_dpa, meaning, nnx_dpa,
    torch_mha, torch_sdpa)
from parity.differences.tensors import (
    as_numpy, gap_of, jax_array, normals, onnx_answer, torch_tensor, word)

_MASK = np.array([[[[True, False]]]])


def _torch_mha_polarity():
    import torch
    layer, x = torch_mha(2, 1), torch.zeros(1, 2, 2)
    return meaning(as_numpy(layer(
        x, x, x, key_padding_mask=torch.tensor([[True, False]]))[1]))


def _keras_mha_polarity():
    layer, x = keras_mha(2, 1), np.zeros((1, 2, 2), np.float32)
    return meaning(as_numpy(layer(
        x, x, attention_mask=np.array([[[True, False]] * 2]),
        return_attention_scores=True)[1]))


def _polarity_effect():
    """A causal mask read the wrong way round."""
    q, k, v = normals(3, 1, 6, 1, 8)
    mask = np.tril(np.ones((6, 6), bool))
    truth, other = (torch_sdpa(q, k, v, attn_mask=torch_tensor(m)) for m in (
        mask, ~mask | np.eye(6, dtype=bool)))
    return {"6 positions": gap_of(other, truth)}


add("mask_polarity", "attention",
    "True in a boolean mask lets a key be read everywhere but in torch's "
    "nn.MultiheadAttention and nn.Transformer, where it hides it. A mask read "
    "the wrong way round shows the decoder its future.",
    {"torch nn.MultiheadAttention": ("is hidden", _torch_mha_polarity),
     "torch scaled_dot_product_attention": ("may attend", lambda: meaning(
          torch_sdpa(*keys(2), attn_mask=torch_tensor(_MASK)))),
     "keras MultiHeadAttention": ("may attend", _keras_mha_polarity),
     "keras ops.dot_product_attention": ("may attend", lambda: meaning(
          keras_dpa(*keys(2), mask=_MASK))),
     "jax nn.dot_product_attention": ("may attend", lambda: meaning(
          jax_dpa(*keys(2), mask=jax_array(_MASK)))),
     "flax nnx": ("may attend", lambda: meaning(
          nnx_dpa(*keys(2), mask=jax_array(_MASK)))),
     "flax linen": ("may attend", lambda: meaning(
          linen_dpa(*keys(2), mask=jax_array(_MASK)))),
     "onnx Attention": ("may attend", lambda: meaning(onnx_answer(
          "Attention", dict(zip("qkvm", (*(x.swapaxes(1, 2) for x in keys(2)),
                                         _MASK[0, 0]))))))},
    effect=Effect("a causal mask inverted", _polarity_effect,
                  needs=("torch",)))


def _float_mask(attend):
    """What a mask of 1 and 0 as floats does to uniform scores."""
    weights = attend(np.array([[[[1, 0]]]], np.float32)).reshape(-1)[:2]
    if abs(weights[0] - weights[1]) < 1e-6:
        return "both may attend"
    return word(weights[1] < 1e-6, "1 may attend, 0 is hidden",
                "added to the scores")


def _keras_mha_with(mask, **more):
    layer, x = keras_mha(2, 1), np.zeros((1, 2, 2), np.float32)
    x[0] = np.eye(2)
    return as_numpy(layer(
        0 * x, x, attention_mask=np.repeat(mask[0], 2, axis=1), **more))


add("float_mask", "attention",
    "Zeros and ones as floats are added to the scores by torch, are taken as "
    "booleans by Keras and as truth values by Flax, and refused by JAX.",
    {"torch": ("added to the scores", lambda: _float_mask(lambda m: torch_sdpa(
         *keys(2), attn_mask=torch_tensor(m)))),
     "keras MultiHeadAttention": (
          "1 may attend, 0 is hidden", lambda: _float_mask(_keras_mha_with)),
     "jax nn.dot_product_attention": ("ValueError", lambda: _float_mask(
          lambda m: jax_dpa(*keys(2), mask=jax_array(m)))),
     "flax nnx": ("1 may attend, 0 is hidden", lambda: _float_mask(
          lambda m: nnx_dpa(*keys(2), mask=jax_array(m)))),
     "flax linen": ("1 may attend, 0 is hidden", lambda: _float_mask(
          lambda m: linen_dpa(*keys(2), mask=jax_array(m)))),
     "onnx Attention": (
          "added to the scores", lambda: _float_mask(lambda m: onnx_answer(
          "Attention", dict(zip("qkvm", (*(x.swapaxes(1, 2) for x in keys(2)),
                                         m[0, 0]))))))})


def _reads(weights):
    """Which of two keys is read, the kept one or the hidden one."""
    visible, hidden = np.asarray(weights, float).reshape(-1)[:2]
    if hidden > 0.5:
        return "the hidden key"
    return word(visible > 0.5, "the kept key", "neither")


def _overtaken(attend, score):
    """Which key is read where the kept one's score is lower by that much."""
    q = np.full((1, 1, 1, 2), -score * math.sqrt(2), np.float32)
    k = np.zeros((1, 2, 1, 2), np.float32)
    k[0, 0, 0, 0] = 1
    v = np.eye(2, dtype=np.float32).reshape(1, 2, 1, 2)
    return _reads(attend(q, k, v))


def _keras_softmax(score, dtype):
    import keras
    return _reads(as_numpy(keras.layers.Softmax(dtype=dtype)(
        np.array([[-score, 0]], dtype), mask=np.array([[True, False]]))))


def _added_constant():
    scores = np.array([-2e9, 0]) + [0, -1e9]
    weights = np.exp(scores - scores.max())
    return _reads(weights / weights.sum())


def _constant_effect():
    """The weight of a key hidden by a constant of -1e4."""
    scores = np.array([0, 9995.0]) + [0, -1e4]
    other = np.array([0, 2e4]) + [0, -1e4]
    return {"score 9995": float(1 / (1 + np.exp(-scores[1]))),
            "score 20000": float(1 / (1 + np.exp(-other[1])))}


add("mask_constant", "attention",
    "A hidden score becomes a number, which a kept one can lie below: here "
    "at -2e9, in float16 at -4e4. Keras' softmax puts -1e9, in float16 -3e4, "
    "and leaves the row without weights; the others put the dtype's lowest "
    "number or -∞. An added constant of -1e4 is too small even for common "
    "scores.",
    {"numpy -1e9 added": ("the hidden key", _added_constant),
     "torch": ("the kept key", lambda: _overtaken(lambda q, k, v: torch_sdpa(
         q, k, v, attn_mask=torch_tensor(_MASK)), 2e9)),
     "keras Softmax float32": (
          "neither", lambda: _keras_softmax(2e9, "float32")),
     "keras Softmax float16": (
          "neither", lambda: _keras_softmax(4e4, "float16")),
     "keras ops.dot_product_attention": ("the kept key", lambda: _overtaken(
          lambda q, k, v: keras_dpa(q, k, v, mask=_MASK), 2e9)),
     "jax nn.dot_product_attention": ("the kept key", lambda: _overtaken(
          lambda q, k, v: jax_dpa(q, k, v, mask=jax_array(_MASK)), 2e9)),
     "flax nnx": ("the kept key", lambda: _overtaken(
          lambda q, k, v: nnx_dpa(q, k, v, mask=jax_array(_MASK)), 2e9))},
    effect=Effect("weight of a key hidden by -1e4", _constant_effect))


def _numpy_inf():
    with np.errstate(invalid="ignore"):
        return float((np.array([1]) == 0)[0] * -np.inf)


def _torch_inf():
    import torch
    return ((torch.tensor([1]) == 0) * -math.inf).item()


def _tf_inf():
    import tensorflow as tf
    return float(tf.cast(tf.constant([1]) == 0, tf.float32)[0] * -math.inf)


def _jax_inf(compiled):
    import jax
    import jax.numpy as jnp

    def product(mask):
        return (mask == 0) * -jnp.inf

    return float((jax.jit(product) if compiled else product)(
        jnp.array([1]))[0])


add("mask_times_infinity", "attention",
    "A mask of 0 and 1 turned into an addend by (mask == 0) · -∞ puts 0 · -∞, "
    "which is NaN, where a key should be kept. In JAX a boolean False times "
    "-∞ is 0.",
    {"numpy": (math.nan, _numpy_inf), "torch": (math.nan, _torch_inf),
     "tensorflow": (math.nan, _tf_inf),
     "jax eager": (0.0, lambda: _jax_inf(False)),
     "jax jit": (0.0, lambda: _jax_inf(True))})


def _small_mask(attend):
    """Whether 0.4 in a mask of floats hides a key."""
    weights = attend(np.array([[[[1, 0.4]]]], np.float32)).reshape(-1)[:2]
    return word(weights[1] > 0.1, "may attend", "is hidden")


def _keras_scores_with(mask):
    layer, x = keras_mha(2, 1), np.zeros((1, 2, 2), np.float32)
    return as_numpy(layer(x, x, attention_mask=np.repeat(mask[0], 2, axis=1),
                    return_attention_scores=True)[1])


def _keras_softmax_with(mask):
    import keras
    return as_numpy(keras.layers.Softmax()(0 * mask, mask=mask))


add("mask_of_four_tenths", "attention",
    "What 0.4 in a mask of floats says: Keras' softmax takes what is above "
    "one half as true, its attention and Flax take any number but 0.",
    {"keras MultiHeadAttention": (
          "may attend", lambda: _small_mask(_keras_mha_with)),
     "keras with scores": (
          "may attend", lambda: _small_mask(_keras_scores_with)),
     "keras Softmax": ("is hidden", lambda: _small_mask(_keras_softmax_with)),
     "flax nnx": ("may attend", lambda: _small_mask(
          lambda m: nnx_dpa(*keys(2), mask=jax_array(m))))})


_LOST = np.zeros((1, 1, 2, 3), bool)

_LOST_V = np.array([[1, 5], [2, -1], [6, 2]], np.float32)


def _lost(attend):
    """What a query without keys is answered: 0, NaN or the mean of V."""
    output = attend()
    output = np.asarray(output, float).reshape(-1, 2)[0]
    if np.isnan(output).all():
        return "NaN"
    if not output.any():
        return "0"
    return word(np.allclose(output, _LOST_V.mean(0), atol=1e-5),
                "mean of V", f"{output.tolist()}")


def _lost_inputs():
    rng = np.random.default_rng(0)
    return (rng.standard_normal((1, 2, 1, 2)).astype(np.float32),
            rng.standard_normal((1, 3, 1, 2)).astype(np.float32),
            _LOST_V.reshape(1, 3, 1, 2))


def _numpy_lost():
    q, k, v = (x[0, :, 0] for x in _lost_inputs())
    with np.errstate(invalid="ignore"):
        scores = np.where(_LOST[0, 0], q @ k.T, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return weights / weights.sum(-1, keepdims=True) @ v


def _reference_lost():
    attention = importlib.import_module(
        ports.engine("numpy").__name__.replace("engine", "attention"))
    q, k, v = (x.swapaxes(1, 2) for x in _lost_inputs())
    return attention.masked_softmax(q @ k.mT, _LOST) @ v


def _torch_lost(weights, quick):
    import torch
    layer = torch_mha(2, 2)
    layer.train(not quick)
    q, k, v = (torch_tensor(x[:, :, 0]) for x in _lost_inputs())
    if quick:  # the fast path is for self-attention, whose values are V
        q = k = v
    with torch.set_grad_enabled(not quick):
        return as_numpy(layer(
            q, k, v, need_weights=weights,
            key_padding_mask=torch.ones(1, 3, dtype=torch.bool))[0])


def _keras_lost(dropout=0.0, **more):
    layer = keras_mha(2, 1, dropout=dropout)
    q, k, v = (x[:, :, 0] for x in _lost_inputs())
    output = layer(q, v, key=k, attention_mask=_LOST[0], **more)
    return as_numpy(output[0] if more else output)


add("query_without_keys", "attention",
    "Of a fully masked row the output is NaN, the mean of all values, or 0, "
    "two of these within torch and within Keras. ONNX and the reference "
    "answer 0.",
    {"numpy with -∞": ("NaN", lambda: _lost(_numpy_lost)),
     "reference": ("0", lambda: _lost(_reference_lost)),
     "torch MHA with weights": ("NaN", lambda: _lost(
          lambda: _torch_lost(True, False))),
     "torch MHA without": ("0", lambda: _lost(
          lambda: _torch_lost(False, False))),
     "torch MHA fast path with weights": ("NaN", lambda: _lost(
          lambda: _torch_lost(True, True))),
     "torch MHA fast path without": ("NaN", lambda: _lost(
          lambda: _torch_lost(False, True))),
     "torch scaled_dot_product_attention": ("0", lambda: _lost(
          lambda: torch_sdpa(*_lost_inputs(), attn_mask=torch_tensor(_LOST)))),
     "keras MHA": ("mean of V", lambda: _lost(_keras_lost)),
     "keras MHA with scores": ("0", lambda: _lost(
          lambda: _keras_lost(return_attention_scores=True))),
     "keras MHA with dropout": ("0", lambda: _lost(
          lambda: _keras_lost(dropout=0.5))),
     "jax nn.dot_product_attention": ("mean of V", lambda: _lost(
          lambda: jax_dpa(*_lost_inputs(), mask=jax_array(_LOST)))),
     "flax nnx": ("mean of V", lambda: _lost(
          lambda: nnx_dpa(*_lost_inputs(), mask=jax_array(_LOST)))),
     "flax linen": ("mean of V", lambda: _lost(
          lambda: linen_dpa(*_lost_inputs(), mask=jax_array(_LOST)))),
     "onnx Attention": ("0", lambda: _lost(lambda: onnx_answer(
          "Attention", dict(zip("qkvm", (
              *(x.swapaxes(1, 2) for x in _lost_inputs()),
              _LOST[0, 0]))))))},
    effect=Effect("Keras' two paths, largest distance", lambda: {
         "a query without keys": float(np.abs(
             _keras_lost() - _keras_lost(return_attention_scores=True)).max())
     }, needs=("keras",)))
