"""Every framework's attention, to be asked alike."""

import numpy as np

from parity.differences.tensors import as_numpy, jax_array, torch_tensor, word


def torch_mha(width, heads, dtype=None, **more):
    """nn.MultiheadAttention whose projections change nothing."""
    import torch
    layer = torch.nn.MultiheadAttention(
        width, heads, dtype=dtype, batch_first=True, **more)
    with torch.no_grad():
        layer.in_proj_weight.copy_(torch.eye(width).repeat(3, 1))
        layer.out_proj.weight.copy_(torch.eye(width))
        layer.in_proj_bias.zero_()
        layer.out_proj.bias.zero_()
    return layer


def keras_mha(width, heads, dtype="float32", **more):
    """Keras' MultiHeadAttention whose projections change nothing."""
    import keras
    layer = keras.layers.MultiHeadAttention(
        heads, width // heads, use_bias=False, dtype=dtype, **more)
    layer.build((1, 2, width), (1, 2, width))
    eye = np.eye(width)
    layer.set_weights([*[eye.reshape(width, heads, -1)] * 3,
                      eye.reshape(heads, -1, width)])
    return layer


def torch_sdpa(q, k, v, **more):
    """torch's attention of arrays [batch, position, head, feature]."""
    import torch
    q, k, v = (torch_tensor(x).transpose(1, 2) for x in (q, k, v))
    return as_numpy(torch.nn.functional.scaled_dot_product_attention(
        q, k, v, **more).transpose(1, 2))


def keras_dpa(q, k, v, **more):
    from keras import ops
    return as_numpy(ops.dot_product_attention(
        *map(ops.convert_to_tensor, (q, k, v)), **more))


def jax_dpa(q, k, v, **more):
    import jax
    return as_numpy(jax.nn.dot_product_attention(
        *map(jax_array, (q, k, v)), **more).astype("float32"))


def nnx_dpa(q, k, v, **more):
    from flax import nnx
    return as_numpy(nnx.dot_product_attention(
        *map(jax_array, (q, k, v)), **more).astype("float32"))


def linen_dpa(q, k, v, **more):
    from flax import linen
    return as_numpy(linen.dot_product_attention(
        *map(jax_array, (q, k, v)), **more).astype("float32"))


def keys(count, queries=1):
    """Queries and keys of zeros, values that show which key was read."""
    zeros = np.zeros((1, count, 1, count), np.float32)
    return zeros[:, :queries], zeros, np.eye(count, dtype=np.float32).reshape(
        1, count, 1, count)


def meaning(output):
    """What True said of the first of two keys."""
    return word(output.reshape(-1)[0] > 0.5, "may attend", "is hidden")


def nnx_mha(width, heads, **more):
    from flax import nnx
    return nnx.MultiHeadAttention(
        num_heads=heads, in_features=width, decode=False, rngs=nnx.Rngs(0),
        **more)
