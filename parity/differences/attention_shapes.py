"""Known differences of attention: shapes, axes and precision."""

import functools

import numpy as np

from parity.differences.asking import Effect, add
from parity.differences.attention_layers import (
    jax_dpa, keras_mha, keys, linen_dpa, nnx_dpa, nnx_mha, torch_mha,
    torch_sdpa)
from parity.differences.tensors import (
    as_numpy, gap_of, jax_array, normals, torch_tensor, word)


def _torch_weights_shape(**more):
    import torch
    x = torch.zeros(2, 3, 6)
    return tuple(torch.nn.MultiheadAttention(6, 2, batch_first=True)(
        x, x, x, **more)[1].shape)


def _keras_weights_shape():
    x = np.zeros((2, 3, 6), np.float32)
    return tuple(keras_mha(6, 2)(x, x, return_attention_scores=True)[1].shape)


def _flax_weights_shape():
    import jax
    from flax import nnx
    layer, x = nnx_mha(6, 2), jax_array(np.zeros((2, 3, 6), np.float32))
    layer(x, sow_weights=True)
    weights, = jax.tree.leaves(nnx.state(layer, nnx.Intermediate))
    return tuple(weights.shape)


add("attention_weights_shape", "attention",
    "The weights that nn.MultiheadAttention hands back are averaged over its "
    "heads unless it is told not to; others keep the heads. Here 2 pairs, 2 "
    "heads, 3 positions.",
    {"torch": ((2, 3, 3), _torch_weights_shape),
     "torch average_attn_weights=False": (
          (2, 2, 3, 3),
          lambda: _torch_weights_shape(average_attn_weights=False)),
     "keras": ((2, 2, 3, 3), _keras_weights_shape),
     "flax": ((2, 2, 3, 3), _flax_weights_shape)})


def _torch_batch_axis(make, inputs):
    """Which axis is the batch: along it, nothing is mixed."""
    import torch
    layer = make().eval()
    x = torch_tensor(normals(3, 4, 6).astype(np.float32))
    other = x.clone()
    other[0] += 1
    first, second = layer(*[x] * inputs), layer(*[other] * inputs)
    first, second = (y[0] if isinstance(y, tuple) else y
                      for y in (first, second))
    return word(torch.equal(first[1], second[1]), "batch first",
                "position first")


def _torch_attention_axis():
    import torch
    return _torch_batch_axis(
        lambda: torch.nn.MultiheadAttention(6, 2), 3)


def _torch_encoder_axis():
    import torch
    return _torch_batch_axis(
        lambda: torch.nn.TransformerEncoderLayer(6, 2, 8), 1)


def _batch_axis(layer):
    x = normals(3, 4, 6).astype(np.float32)
    other = x.copy()
    other[0] += 1
    first, second = as_numpy(layer(x)), as_numpy(layer(other))
    return word(np.array_equal(first[1], second[1]), "batch first",
                "position first")


def _keras_batch_axis():
    layer = keras_mha(6, 2)
    return _batch_axis(lambda x: layer(x, x))


def _flax_batch_axis():
    layer = nnx_mha(6, 2)
    return _batch_axis(lambda x: layer(jax_array(x)))


add("batch_axis", "attention",
    "torch's attention and Transformer layers take [position, batch, "
    "feature] unless told batch_first=True. Where both sizes agree nothing "
    "fails, and pairs attend to each other.",
    {"torch nn.MultiheadAttention": ("position first", _torch_attention_axis),
     "torch nn.TransformerEncoderLayer": (
          "position first", _torch_encoder_axis),
     "keras MultiHeadAttention": ("batch first", _keras_batch_axis),
     "flax nnx.MultiHeadAttention": ("batch first", _flax_batch_axis)})


def _torch_head_width():
    import torch
    return torch.nn.MultiheadAttention(12, 3).head_dim


def _keras_head_width():
    import keras
    layer = keras.layers.MultiHeadAttention(3, 12)
    layer.build((1, 2, 12), (1, 2, 12))
    return int(layer.query_dense.kernel.shape[-1])


def _flax_head_width():
    return int(nnx_mha(12, 3, qkv_features=12).query.kernel.shape[-1])


add("width_of_a_head", "attention",
    "Told 12 for a width and 3 heads, torch and Flax give each head 4 "
    "features and Keras, whose key_dim is that of one head, 12.",
    {"torch embed_dim": (4, _torch_head_width),
     "keras key_dim": (12, _keras_head_width),
     "flax qkv_features": (4, _flax_head_width)})


def _one_mask(outputs):
    return word(np.array_equal(outputs[0], outputs[1]),
                "one mask for the batch", "a mask for each pair")


def _flax_masks():
    import jax
    q, k, v = (np.repeat(x, 2, axis=0) for x in keys(32))
    return nnx_dpa(q, k, v, dropout_rng=jax.random.key(0), dropout_rate=0.5,
                   deterministic=False)


def _linen_masks():
    import jax
    q, k, v = (np.repeat(x, 2, axis=0) for x in keys(32))
    return linen_dpa(q, k, v, dropout_rng=jax.random.key(0),
                     dropout_rate=0.5, deterministic=False)


def _torch_masks():
    import torch
    with torch.random.fork_rng():
        return torch_sdpa(*(np.repeat(x, 2, axis=0) for x in keys(32)),
                          dropout_p=0.5)


def _keras_masks():
    layer = keras_mha(32, 1, dropout=0.5, seed=0)
    x = np.zeros((2, 32, 32), np.float32)
    x[:] = np.eye(32)
    return as_numpy(layer(0 * x, x, training=True))


add("attention_dropout_mask", "attention",
    "Flax drops the same attention weights for every pair and head unless "
    "told broadcast_dropout=False; torch and Keras draw each anew.",
    {"torch": ("a mask for each pair", lambda: _one_mask(_torch_masks())),
     "keras": ("a mask for each pair", lambda: _one_mask(_keras_masks())),
     "flax nnx": ("one mask for the batch", lambda: _one_mask(_flax_masks())),
     "flax linen": (
          "one mask for the batch", lambda: _one_mask(_linen_masks()))})


@functools.cache
def _sown(dtype):
    """nnx's attention with its weights kept against without."""
    from flax import nnx
    q, k, v = (jax_array(x).astype(dtype) for x in normals(3, 2, 16, 4, 8))
    return tuple(as_numpy(nnx.dot_product_attention(
        q, k, v, module=module).astype("float32"))
        for module in (nnx.Module(), None))


add("weights_that_are_watched", "attention",
    "Flax computes attention fused, and step by step when its weights are to "
    "be kept. In bfloat16 looking at the weights changes the output.",
    {"flax bfloat16": ("another output", lambda: word(
         np.array_equal(*_sown("bfloat16")), "the same output",
         "another output"))},
    effect=Effect("with weights kept against without", lambda: {
         dtype: gap_of(*_sown(dtype)) for dtype in ("bfloat16", "float32")},
         hidden=("float32",), needs=("flax",)))


def _float16_scores():
    """q · k is 102400, above float16's largest number; over √64 it is not."""
    x = np.full((1, 2, 1, 64), 40, np.float16)
    return x, x, np.ones_like(x)


def _overflows(output):
    return word(np.isfinite(np.asarray(output, float)).all(), "finite",
                "overflows")


def _numpy_float16():
    q, k, v = (x[0, :, 0] for x in _float16_scores())
    with np.errstate(over="ignore", invalid="ignore"):
        scores = q @ k.T / np.float16(8)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return weights / weights.sum(-1, keepdims=True) @ v


def _torch_float16(weights):
    import torch
    layer = torch_mha(64, 1, dtype=torch.float16)
    q, k, v = (torch_tensor(x[:, :, 0]) for x in _float16_scores())
    return as_numpy(layer(q, k, v, need_weights=weights)[0])


def _keras_float16(**more):
    layer = keras_mha(64, 1, dtype="float16")
    q, k, v = (x[:, :, 0] for x in _float16_scores())
    output = layer(q, v, key=k, **more)
    return as_numpy(output[0] if more else output)


add("scale_before_the_product", "attention",
    "Dividing the query by √d_k before the product, or the product after it, "
    "is the same in exact numbers. In float16 the product overflows first, "
    "unless it is summed in float32.",
    {"numpy after": ("overflows", lambda: _overflows(_numpy_float16())),
     "torch scaled_dot_product_attention": ("finite", lambda: _overflows(
          torch_sdpa(*_float16_scores()))),
     "torch MHA with weights": ("finite", lambda: _overflows(
          _torch_float16(True))),
     "keras MHA": ("overflows", lambda: _overflows(_keras_float16())),
     "keras MHA with scores": ("finite", lambda: _overflows(
          _keras_float16(return_attention_scores=True))),
     "jax nn.dot_product_attention": ("finite", lambda: _overflows(
          jax_dpa(*_float16_scores()))),
     "flax nnx": ("finite", lambda: _overflows(nnx_dpa(*_float16_scores()))),
     "flax linen": ("finite", lambda: _overflows(
          linen_dpa(*_float16_scores())))})


def _padded_encoder(quick):
    """What an encoder returns at padded positions."""
    import torch
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layer = torch.nn.TransformerEncoderLayer(8, 2, 8, batch_first=True)
        encoder = torch.nn.TransformerEncoder(layer, 1).train(not quick)
        padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
        with torch.set_grad_enabled(not quick):
            x = torch_tensor(normals(2, 5, 8).astype(np.float32))
            output = as_numpy(encoder(x,
                              src_key_padding_mask=padding))
    return word(output[1, 3:].any(), "numbers", "zeros")


add("padding_on_the_fast_path", "attention",
    "nn.TransformerEncoder packs padded rows when it neither trains nor "
    "differentiates, and padded positions are then 0. A comparison of whole "
    "outputs shows it, one without padding does not.",
    {"torch while training": ("numbers", lambda: _padded_encoder(False)),
     "torch in eval and no_grad": ("zeros", lambda: _padded_encoder(True))})
