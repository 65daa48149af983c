"""Known differences of initial weights."""

import numpy as np

from parity.differences.asking import add
from parity.differences.attention_layers import nnx_mha
from parity.differences.tensors import as_numpy


def _deviation(value):
    return float(as_numpy(value).std())


def _torch_init(make):
    import torch
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return _deviation(make(torch.nn))


def _keras_init(make):
    import keras
    layer = make(keras.layers)
    layer.build((1, 512))
    return _deviation(layer.weights[0])


def _flax_init(make):
    from flax import nnx
    return _deviation(make(nnx)[...])


add("linear_deviation", "initialisation",
    "The deviation of a new 512 × 512 kernel: torch draws evenly up to "
    "1/√512, Keras by Glorot, Flax by LeCun.",
    {"torch": (0.025522, lambda: _torch_init(
         lambda nn: nn.Linear(512, 512).weight)),
     "keras": (0.044245, lambda: _keras_init(
          lambda layers: layers.Dense(512))),
     "flax": (0.044226, lambda: _flax_init(lambda nnx: nnx.Linear(
          512, 512, rngs=nnx.Rngs(0)).kernel))},
    tolerance=0.02)


def _keras_bias():
    import keras
    layer = keras.layers.Dense(512)
    layer.build((1, 512))
    return _deviation(layer.bias)


add("linear_bias_deviation", "initialisation",
    "The deviation of a new layer's bias: torch draws it, Keras and Flax "
    "begin with 0.",
    {"torch": (0.025951, lambda: _torch_init(
         lambda nn: nn.Linear(512, 4096).bias)),
     "keras": (0.0, _keras_bias),
     "flax": (0.0, lambda: _flax_init(lambda nnx: nnx.Linear(
          512, 512, rngs=nnx.Rngs(0)).bias))},
    tolerance=0.05)


def _keras_query():
    import keras
    layer = keras.layers.MultiHeadAttention(8, 64)
    layer.build((1, 2, 512), (1, 2, 512))
    return _deviation(layer.query_dense.kernel)


add("attention_deviation", "initialisation",
    "The deviation of a new query kernel of width 512 in 8 heads. torch "
    "draws the three kernels as one matrix, whose outputs are three times as "
    "many, so each is smaller than Xavier makes one alone.",
    {"torch": (0.03125, lambda: _torch_init(
         lambda nn: nn.MultiheadAttention(512, 8).in_proj_weight[:512])),
     "torch kdim=511": (0.044194, lambda: _torch_init(
          lambda nn: nn.MultiheadAttention(512, 8, kdim=511).q_proj_weight)),
     "keras": (0.04427, _keras_query),
     "flax": (0.044226, lambda: _flax_init(
          lambda nnx: nnx_mha(512, 8).query.kernel))},
    tolerance=0.02)


add("embedding_deviation", "initialisation",
    "The deviation of a new embedding of width 512: torch's rows have length "
    "√512, Flax's length 1, and Keras draws evenly from -0.05 to 0.05. Only "
    "after a factor of √d do Flax's match torch's.",
    {"torch": (1.0008, lambda: _torch_init(
         lambda nn: nn.Embedding(1000, 512).weight)),
     "keras": (0.02888, lambda: _keras_init(
          lambda layers: layers.Embedding(1000, 512))),
     "flax": (0.044209, lambda: _flax_init(lambda nnx: nnx.Embed(
          1000, 512, rngs=nnx.Rngs(0)).embedding))},
    tolerance=0.02)


def _torch_transformer_init():
    def kernel(nn):
        return nn.Transformer(256, 1, 1, 0, 256).encoder.layers[
            0].linear1.weight
    return _torch_init(kernel)


add("transformer_deviation", "initialisation",
    "nn.Transformer draws all its matrices again by Xavier, which its layers "
    "by themselves do not. Here a 256 × 256 kernel of a feed-forward network.",
    {"torch nn.Transformer": (0.062583, _torch_transformer_init),
     "torch nn.TransformerEncoderLayer": (0.036063, lambda: _torch_init(
          lambda nn: nn.TransformerEncoderLayer(256, 1, 256).linear1.weight))},
    tolerance=0.02)


def _torch_first_number():
    import torch
    return torch.randn(
        1, generator=torch.Generator().manual_seed(0)).item()


def _keras_first_number():
    import keras
    return float(as_numpy(keras.random.normal((1,), seed=0))[0])


def _jax_first_number():
    import jax
    return float(jax.random.normal(jax.random.key(0), (1,))[0])


add("first_random_number", "initialisation",
    "The first normal number of seed 0: a generator each, so that equal seeds "
    "mean nothing across frameworks, and weights and masks have to be handed "
    "over.",
    {"numpy": (0.12573, lambda: float(
         np.random.default_rng(0).standard_normal())),
     "torch": (1.541, _torch_first_number),
     "keras": (-1.697, _keras_first_number),
     "jax": (1.6226, _jax_first_number)})
