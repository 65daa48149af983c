"""Known differences of dropout."""

import numpy as np

from parity.differences.asking import add
from parity.differences.attention_layers import (
    keras_mha, keys, nnx_mha, torch_mha, torch_sdpa)
from parity.differences.tensors import (
    as_numpy, jax_array, normals, torch_tensor, word)


def _dropped(output):
    return word((np.asarray(output) == 0).any(), "drops", "does not drop")


def _torch_layer_drops():
    import torch
    with torch.random.fork_rng():
        return _dropped(as_numpy(torch.nn.Dropout()(torch.ones(99))))


def _torch_function_drops():
    import torch
    with torch.random.fork_rng():
        return _dropped(as_numpy(torch.nn.functional.dropout(torch.ones(99))))


def _keras_layer_drops():
    import keras
    return _dropped(as_numpy(keras.layers.Dropout(0.5, seed=0)(np.ones(99))))


def _nnx_layer_drops():
    from flax import nnx
    return _dropped(as_numpy(nnx.Dropout(0.5, rngs=nnx.Rngs(0))(
        jax_array(np.ones(99)))))


def _linen_layer_drops():
    from flax import linen
    return _dropped(as_numpy(
        linen.Dropout(0.5).apply({}, jax_array(np.ones(99)))))


add("dropout_unless_told", "dropout",
    "A new dropout layer that is told nothing: torch's and nnx's drop, "
    "Keras' does not, linen's refuses. A forgotten eval() makes a comparison "
    "random.",
    {"torch nn.Dropout": ("drops", _torch_layer_drops),
     "torch F.dropout": ("drops", _torch_function_drops),
     "keras": ("does not drop", _keras_layer_drops),
     "flax nnx": ("drops", _nnx_layer_drops),
     "flax linen": ("ValueError", _linen_layer_drops)})


def _sdpa_drops():
    import torch
    with torch.random.fork_rng(), torch.no_grad():
        return _dropped(torch_sdpa(*keys(32), dropout_p=0.5))


def _mha_drops():
    layer = torch_mha(32, 1, dropout=0.5).eval()
    x = torch_tensor(normals(1, 4, 32).astype(np.float32))
    return word(np.array_equal(*(as_numpy(layer(x, x, x)[0]) for _ in "12")),
                "does not drop", "drops")


add("dropout_of_a_function", "dropout",
    "scaled_dot_product_attention has no mode: what it is given as dropout_p "
    "is dropped in evaluation too. The layer above it looks at its mode.",
    {"torch scaled_dot_product_attention": ("drops", _sdpa_drops),
     "torch nn.MultiheadAttention in eval": ("does not drop", _mha_drops)})


def _encoder_layer_places():
    """The dropouts of an encoder layer, by what they stand behind."""
    import torch
    layer = torch.nn.TransformerEncoderLayer(4, 2, 8)
    return (("attention weights", layer.self_attn.dropout),
            ("attention", layer.dropout1.p), ("hidden", layer.dropout.p),
            ("feed-forward", layer.dropout2.p))


def _keras_attention_dropout():
    return float(keras_mha(4, 1).dropout)


add("dropout_by_default", "dropout",
    "nn.TransformerEncoderLayer drops 0.1 in four places unless told "
    "otherwise, the paper in two of them; Keras' and Flax's attention drop "
    "nothing.",
    {"torch nn.TransformerEncoderLayer": (
          (("attention weights", 0.1), ("attention", 0.1),
           ("hidden", 0.1), ("feed-forward", 0.1)),
          _encoder_layer_places),
     "keras MultiHeadAttention": (0.0, _keras_attention_dropout),
     "flax nnx.MultiHeadAttention": (0.0, lambda: float(
          nnx_mha(4, 1).dropout_rate))})
