"""Transformers of Keras, against the same in PyTorch and in Flax NNX.

Keras' GELU on TensorFlow takes √2 in float32: with it, float32 is inside.
"""

import functools
import math

import jax
import torch
from flax import nnx
from keras import layers, ops
from torch import nn

from benchmarks.sound import keras_parts as keras_
from benchmarks.sound import nnx_parts as nnx_
from benchmarks.sound import torch_parts as torch_
from benchmarks.sound.keras_attention import Attending, Packed
from benchmarks.sound.keras_layers import Scaled, root
from benchmarks.sound.pair import sound
from benchmarks.sound.torch_packing import Packed as TorchPacked
from benchmarks.sound.torch_precision import Fused, Root
from benchmarks.sound.weights import tokens, twins

D = torch_.D
IDS = tokens(2, 7)
inside = functools.partial(sound, dtype="float32 inside")


def torch_silu(attention=None, **settings):
    """A model of PyTorch with SiLU."""
    return torch_.Model(torch_.Block(
        attention, torch_.Mlp(nn.functional.silu), **settings))


def keras_silu(attention=None, **settings):
    """A model of Keras with SiLU."""
    return keras_.Model(keras_.Block(
        attention, keras_.Mlp(ops.silu), **settings))


@inside
def to_keras_whole():
    """Two blocks of PyTorch, and of Keras."""
    return twins(torch_.Model(torch_.Block(), torch_.Block()),
                 keras_.Model(keras_.Block(), keras_.Block()), IDS)


@inside
def to_keras_functional():
    """PyTorch's names in a, a functional model in b."""
    return twins(torch_.Port(torch_.Block()),
                 keras_.functional(keras_.Block()), IDS)


@sound(dtype="float32")
def to_keras_in_float32():
    """A block in float32."""
    return twins(torch_.Model(torch_.Block()), keras_.Model(keras_.Block()),
                 IDS)


@inside
def nnx_to_keras_whole():
    """Two blocks of NNX, and of Keras."""
    return twins(nnx_.Model(nnx_.Block(), nnx_.Block()),
                 keras_.Model(keras_.Block(), keras_.Block()), IDS)


@sound(dtype="float32")
def nnx_to_keras_in_float32():
    """A block in float32."""
    return twins(nnx_.Model(nnx_.Block()), keras_.Model(keras_.Block()), IDS)


@inside
def keras_to_torch_fused():
    """By hand in Keras in a, PyTorch's fused attention in b."""
    return twins(keras_.Model(keras_.Block()),
                 torch_.Port(torch_.Block(Fused())), IDS)


@inside
def to_keras_library_attention():
    """PyTorch's fused attention in a, Keras' own in b."""
    def attend(q, k, v):
        q, k, v = (ops.transpose(x, (0, 2, 1, 3)) for x in (q, k, v))
        return ops.transpose(ops.dot_product_attention(
            q, k, v, is_causal=True), (0, 2, 1, 3))
    return twins(torch_.Model(torch_.Block(Fused())),
                 keras_.Model(keras_.Block(Attending(attend))), IDS)


@sound
def to_keras_packed():
    """Packed by thirds in both."""
    return twins(torch_silu(TorchPacked("stacked")), keras_silu(Packed()),
                 IDS)


@sound
def to_keras_masked_by_number():
    """-inf in PyTorch, -1e9 added in Keras, queries scaled before."""
    def attend(q, k, v):
        scores = ops.einsum("bhqd,bhkd->bhqk",
                            q / math.sqrt(q.shape[-1]), k)
        scores -= 1e9 * (1 - ops.cast(keras_.causal(q.shape[2]), q.dtype))
        return ops.einsum("bhqk,bhkd->bhqd", ops.softmax(scores), v)
    return twins(torch_silu(), keras_silu(Attending(attend)), IDS)


@sound
def to_keras_rms():
    """nnx.RMSNorm in a, a layer by hand in Keras in b."""
    return twins(
        nnx_.Model(nnx_.Block(mlp=nnx_.Mlp(jax.nn.silu),
                              norms=lambda: nnx.RMSNorm(
                                  D, epsilon=1e-6, rngs=nnx.Rngs(0)))),
        keras_silu(norms=lambda: Scaled(root, False)), IDS)


@inside
def to_keras_rms_in_float32():
    """Llama's norm in float32 in PyTorch, RMSNormalization in Keras."""
    return twins(
        torch_.Model(torch_.Block(norm=lambda _: Root(torch.float32))),
        keras_.Model(keras_.Block(norms=lambda: layers.RMSNormalization(
            epsilon=1e-6))), IDS)


@sound
def to_keras_silu():
    """PyTorch's SiLU in a, x sigmoid(x) in Keras in b."""
    return twins(
        torch_.Model(torch_.Block(mlp=torch_.Mlp(nn.functional.silu))),
        keras_.Model(keras_.Block(mlp=keras_.Mlp(
            lambda x: x * ops.sigmoid(x)))), IDS)


@sound
def nnx_to_keras_relu_residual():
    """NNX's block adds; in Keras each sublayer does."""
    class Residual(layers.Layer):
        def __init__(self, layer):
            super().__init__()
            self.norm, self.layer = keras_.norm(), layer

        def call(self, x):
            return x + self.layer(self.norm(x))
    return twins(
        nnx_.Model(nnx_.Block(mlp=nnx_.Mlp(jax.nn.relu))),
        keras_.Model(Residual(keras_.Attention()),
                     Residual(keras_.Mlp(ops.relu))), IDS)
