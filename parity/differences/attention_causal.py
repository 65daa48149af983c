"""Known differences of attention: the causal mask."""

import math

import numpy as np

from parity.differences.asking import Effect, add
from parity.differences.attention_layers import (
    jax_dpa, keras_dpa, keras_mha, keys, nnx_dpa, torch_sdpa)
from parity.differences.tensors import (
    as_numpy, gap_of, jax_array, normals, onnx_answer, torch_tensor, word)


def _corner(output):
    """How many of four keys the first of two queries reads."""
    read = int((np.asarray(output, float).reshape(2, 4)[0] > 1e-3).sum())
    return {1: "top left", 3: "bottom right", 4: "nowhere"}.get(
        read, f"{read} keys")


def _keras_corner():
    layer = keras_mha(4, 1)
    zeros, eye = np.zeros((1, 4, 4), np.float32), np.eye(4, dtype=np.float32)
    return as_numpy(
        layer(zeros[:, :2], eye[None], key=zeros, use_causal_mask=True))


def _causal_effect():
    """Two queries of four keys: the diagonal from one corner or the other."""
    q, k, v = normals(3, 1, 4, 1, 8)
    masks = (np.tril(np.ones((2, 4), bool), shift) for shift in (0, 2))
    first, last = (torch_sdpa(q[:, :2], k, v, attn_mask=torch_tensor(m))
                   for m in masks)
    return {"2 queries, 4 keys": gap_of(first, last)}


add("causal_corner", "attention",
    "With two queries and four keys a causal mask can start from the top "
    "left or end at the bottom right. All of these start at the top left, "
    "which is wrong for a cache that holds earlier keys.",
    {"torch": (
          "top left", lambda: _corner(torch_sdpa(*keys(4, 2), is_causal=True))),
     "keras MultiHeadAttention": (
          "top left", lambda: _corner(_keras_corner())),
     "keras ops.dot_product_attention": ("top left", lambda: _corner(
          keras_dpa(*keys(4, 2), is_causal=True))),
     "jax": (
          "top left", lambda: _corner(jax_dpa(*keys(4, 2), is_causal=True))),
     "flax nnx": ("top left", lambda: _corner(
          nnx_dpa(*keys(4, 2), is_causal=True))),
     "onnx Attention": ("top left", lambda: _corner(onnx_answer(
          "Attention", dict(zip("qkv", (
              x.swapaxes(1, 2) for x in keys(4, 2)))), is_causal=1)))},
    effect=Effect("one corner against the other", _causal_effect,
                  needs=("torch",)))


def _keras_causal(dropout=0.0, **more):
    layer = keras_mha(4, 1, dropout=dropout)
    zeros, eye = np.zeros((1, 4, 4), np.float32), np.eye(4, dtype=np.float32)
    result = layer(zeros, eye[None], key=zeros, use_causal_mask=True, **more)
    output = as_numpy(
        result[0] if "return_attention_scores" in more else result)
    return word(output[0, 0, 1:].max() < 1e-3, "hides the future",
                "shows the future")


add("causal_mask_on_every_path", "attention",
    "Keras' attention has a fused path and one written out. In one series of "
    "its releases the causal mask was lost on the latter, whenever dropout "
    "or the scores were asked for.",
    {"keras MHA": ("hides the future", _keras_causal),
     "keras MHA with scores": ("hides the future", lambda: _keras_causal(
          return_attention_scores=True)),
     "keras MHA with dropout": (
          "hides the future", lambda: _keras_causal(dropout=0.5)),
     "keras MHA with a mask": ("hides the future", lambda: _keras_causal(
          attention_mask=np.ones((1, 4, 4), bool)))})


def _torch_causal_mask():
    import torch
    return tuple(torch.nn.Transformer.generate_square_subsequent_mask(
        2)[0].tolist())


def _flax_causal_mask():
    from flax import nnx
    return tuple(as_numpy(
        nnx.make_causal_mask(jax_array(np.ones((1, 2)))))[0, 0, 0])


add("causal_mask_values", "attention",
    "The first row of a causal mask of two as each library makes it: torch's "
    "is to be added to the scores, Flax's is 1 where a key may be read.",
    {"torch": ((0.0, -math.inf), _torch_causal_mask),
     "flax": ((1.0, 0.0), lambda: tuple(map(float, _flax_causal_mask())))})
