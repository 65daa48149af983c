"""Known differences of how arrays are stored."""

import math

import numpy as np

from parity.differences.asking import Effect, add
from parity.differences.attention_layers import nnx_mha, torch_mha
from parity.differences.tensors import gap_of, normals, torch_tensor


def _torch_kernel():
    import torch
    return tuple(torch.nn.Linear(2, 3).weight.shape)


def _keras_kernel():
    import keras
    layer = keras.layers.Dense(3)
    layer.build((1, 2))
    return tuple(layer.kernel.shape)


def _nnx_kernel():
    from flax import nnx
    return tuple(nnx.Linear(2, 3, rngs=nnx.Rngs(0)).kernel.shape)


def _linen_kernel():
    import jax
    from flax import linen
    return tuple(linen.Dense(3).init(
        jax.random.key(0), np.zeros((1, 2)))["params"]["kernel"].shape)


def _transposed_effect():
    x, kernel = normals(4, 64), normals(64, 64)
    return {"64 × 64": gap_of(x @ kernel.T, x @ kernel)}


add("dense_kernel", "layout",
    "A layer from 2 to 3 features holds 3 × 2 numbers in torch and 2 × 3 in "
    "Keras and Flax. A square one loads transposed without a word.",
    {"torch": ((3, 2), _torch_kernel), "keras": ((2, 3), _keras_kernel),
     "flax nnx": ((2, 3), _nnx_kernel),
     "flax linen": ((2, 3), _linen_kernel)},
    effect=Effect("a square kernel transposed", _transposed_effect))


def _torch_attention_shapes(**more):
    import torch
    layer = torch.nn.MultiheadAttention(6, 2, **more)
    return tuple((name, tuple(p.shape)) for name, p
                 in layer.named_parameters() if "bias" not in name)


def _keras_attention_shapes():
    import keras
    layer = keras.layers.MultiHeadAttention(2, 3)
    layer.build((1, 5, 6), (1, 5, 6))
    return tuple((name, tuple(getattr(layer, f"{name}_dense").kernel.shape))
                 for name in ("query", "output"))


def _flax_attention_shapes():
    layer = nnx_mha(6, 2)
    return tuple((name, tuple(getattr(layer, name).kernel.shape))
                 for name in ("query", "out"))


add("attention_kernels", "layout",
    "Width 6 in 2 heads: torch stacks query, key and value in one matrix, "
    "and parts them only where keys have another width; Keras and Flax keep "
    "the heads as an axis.",
    {"torch": (
          (("in_proj_weight", (18, 6)), ("out_proj.weight", (6, 6))),
          _torch_attention_shapes),
     "torch kdim=5": (
          (("q_proj_weight", (6, 6)), ("k_proj_weight", (6, 5)),
           ("v_proj_weight", (6, 6)), ("out_proj.weight", (6, 6))),
          lambda: _torch_attention_shapes(kdim=5)),
     "keras": (
          (("query", (6, 2, 3)), ("output", (2, 3, 6))),
          _keras_attention_shapes),
     "flax": (
          (("query", (6, 2, 3)), ("out", (2, 3, 6))), _flax_attention_shapes)})


def _torch_bias_shape():
    import torch
    return tuple(torch.nn.MultiheadAttention(6, 2).in_proj_bias.shape)


def _keras_bias_shape():
    import keras
    layer = keras.layers.MultiHeadAttention(2, 3)
    layer.build((1, 5, 6), (1, 5, 6))
    return tuple(layer.query_dense.bias.shape)


add("attention_biases", "layout",
    "The query's bias is a third of one vector in torch, and a row a head in "
    "Keras and Flax.",
    {"torch in_proj_bias": ((18,), _torch_bias_shape),
     "keras": ((2, 3), _keras_bias_shape),
     "flax": ((2, 3), lambda: tuple(nnx_mha(6, 2).query.bias.shape))})


def _torch_head_order():
    """Which query columns touch the first head's weights."""
    import torch
    layer = torch_mha(6, 2)
    x = torch_tensor(normals(1, 4, 6).astype(np.float32))
    before = layer(x, x, x, average_attn_weights=False)[1]
    touched = []
    for column in range(6):
        with torch.no_grad():
            layer.in_proj_weight[column] += 1
        after = layer(x, x, x, average_attn_weights=False)[1]
        with torch.no_grad():
            layer.in_proj_weight[column] -= 1
        if (after - before)[0, 0].abs().max() > 1e-4:
            touched.append(column)
    return tuple(touched)


def _head_effect():
    """Columns dealt out feature by feature against head by head."""
    q, k, v = normals(3, 4, 6)

    def attend(split):
        heads = [split(x) for x in (q, k, v)]
        scores = heads[0] @ heads[1].swapaxes(1, 2) / math.sqrt(3)
        weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
        return weights @ heads[2]

    return {"2 heads of 3": gap_of(
        attend(lambda x: x.reshape(4, 3, 2).transpose(2, 0, 1)),
        attend(lambda x: x.reshape(4, 2, 3).swapaxes(0, 1)))}


add("head_columns", "layout",
    "Which of a query kernel's 6 columns belong to the first of 2 heads: the "
    "first 3. A checkpoint that deals columns out one by one has the same "
    "shape and is another model.",
    {"torch": ((0, 1, 2), _torch_head_order)},
    effect=Effect("dealt out one by one against in a row", _head_effect))


def _names(pairs):
    return tuple(sorted(pairs))


def _torch_norm_names():
    import torch
    return _names(name for name, _
                  in torch.nn.LayerNorm(4).named_parameters())


def _keras_norm_names():
    import keras
    layer = keras.layers.LayerNormalization()
    layer.build((1, 4))
    return _names(v.name for v in layer.weights)


def _flax_norm_names():
    import jax
    from flax import linen
    return _names(linen.LayerNorm().init(
        jax.random.key(0), np.zeros((1, 4)))["params"])


add("norm_parameters", "layout",
    "The same two vectors of a layer norm go by three pairs of names.",
    {"torch": (("bias", "weight"), _torch_norm_names),
     "keras": (("beta", "gamma"), _keras_norm_names),
     "flax": (("bias", "scale"), _flax_norm_names)})
