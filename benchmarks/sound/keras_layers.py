"""Layers of Keras, written in other ways."""

import functools
import math

import keras
import numpy as np
from keras import layers, ops

from benchmarks.sound.keras_parts import (
    Block, D, F, Mlp, Model, V, functional, gelu, norm)
from benchmarks.sound.pair import sound
from benchmarks.sound.weights import arrays, both, drawn, give, normal, tokens
from benchmarks.sound.weights import twins

IDS, IMAGE = tokens(2, 7), normal(2, 8, 8, 3)
inside = functools.partial(sound, dtype="float32 inside")


class Scaled(layers.Layer):
    """A layer with a scale, and maybe a bias, and a function."""

    def __init__(self, function, bias=True, size=D):
        super().__init__()
        self.gamma = self.add_weight(shape=(size,), name="gamma")
        if bias:
            self.beta = self.add_weight(shape=(size,), name="beta")
        self.function, self.bias = function, bias

    def call(self, x):
        y = self.function(x) * self.gamma
        return y + self.beta if self.bias else y


def root(x):
    """RMS norm without a scale."""
    return x * ops.rsqrt(ops.mean(ops.square(x), -1, keepdims=True) + 1e-6)


@sound
def keras_layer_norm_by_hand():
    """layers.LayerNormalization in a, moments in b."""
    def function(x):
        mean, variance = ops.moments(x, -1, keepdims=True)
        return (x - mean) / ops.sqrt(variance + 1e-5)
    return twins(Model(Block()), Model(Block(
        norms=lambda: Scaled(function))), IDS)


@sound
def keras_rms_by_hand():
    """layers.RMSNormalization in a."""
    return twins(
        Model(Block(norms=lambda: layers.RMSNormalization(epsilon=1e-6))),
        functional(Block(norms=lambda: Scaled(root, False))), IDS)


@inside
def keras_rms_in_float32():
    """RMS norm in float32 in a, as keras_hub's; in float64 in b."""
    def lower(x):
        return ops.cast(root(ops.cast(x, "float32")), x.dtype)
    return twins(Model(Block(norms=lambda: Scaled(lower, False))),
                 Model(Block(norms=lambda: Scaled(root, False))), IDS)


@inside
def keras_softmax_in_float32():
    """softmax in float32 in a, in float64 in b."""
    from benchmarks.sound.keras_attention import Attending, causal

    def attend(q, k, v):
        scores = q @ ops.swapaxes(k, -2, -1) / math.sqrt(q.shape[-1])
        scores = ops.where(causal(q.shape[2]), scores, -math.inf)
        return ops.cast(ops.softmax(ops.cast(scores, "float32")),
                        q.dtype) @ v
    return twins(Model(Block(Attending(attend))), Model(Block()), IDS)


def acting(one, two):
    """Two models whose MLPs have these functions."""
    return twins(Model(Block(mlp=Mlp(one))),
                 functional(Block(mlp=Mlp(two))), IDS)


@inside
def keras_gelu_by_erf():
    """ops.gelu, whose √2 is float32, in a."""
    return acting(gelu, lambda x: x * 0.5 * (1 + ops.erf(x / math.sqrt(2))))


@sound
def keras_silu_by_sigmoid():
    """ops.silu in a, x sigmoid(x) in b."""
    return acting(ops.silu, lambda x: ops.sigmoid(x) * x)


@sound
def keras_activation_layer():
    """An activation by name in Dense in a, a layer in b."""
    class Named(layers.Layer):
        def __init__(self):
            super().__init__()
            self.up = layers.Dense(F, activation="gelu")
            self.down = layers.Dense(D)

        def call(self, x):
            return self.down(self.up(x))
    return twins(Model(Block(mlp=Named())), Model(Block(mlp=keras.Sequential([
        layers.Dense(F), layers.Activation("gelu"), layers.Dense(D)]))), IDS)


def vision(core, pooled=None):
    """A convolution, a core and a pooled head."""
    return keras.Sequential([
        layers.Conv2D(8, 3, padding="same", activation="relu"), core,
        pooled or layers.GlobalAveragePooling2D(), layers.Dense(5)])


class Seeing(layers.Layer):
    """The same, as a layer."""

    def __init__(self, core):
        super().__init__()
        self.stem, self.core = layers.Conv2D(8, 3, padding="same"), core
        self.head = layers.Dense(5)

    def call(self, x):
        x = self.core(ops.relu(self.stem(x)))
        return self.head(ops.mean(x, (1, 2)))


class Function(layers.Layer):
    """A function as a layer."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def call(self, x):
        return self.function(x)


@sound
def keras_convolution_by_patches():
    """Conv2D in a, extracted patches and Dense in b."""
    class Patched(layers.Layer):
        def __init__(self):
            super().__init__()
            self.dense = layers.Dense(12)

        def call(self, x):
            return self.dense(ops.image.extract_patches(
                x, (3, 3), strides=1, padding="same"))
    a = drawn(vision(layers.Conv2D(12, 3, padding="same")), IMAGE)
    b = drawn(Seeing(Patched()), IMAGE)
    kernel, bias = arrays(a.layers[1])
    give(b.core, kernel.reshape(72, 12), bias)
    give(b.stem, *arrays(a.layers[0]))
    give(b.head, *arrays(a.layers[3]))
    return both(a, b, IMAGE)


@sound
def keras_depthwise_or_groups():
    """DepthwiseConv2D in a, Conv2D with groups in b."""
    a = drawn(vision(layers.DepthwiseConv2D(3, padding="same")), IMAGE)
    b = drawn(Seeing(layers.Conv2D(8, 3, padding="same", groups=8)), IMAGE)
    kernel, bias = arrays(a.layers[1])
    give(b.core, kernel.transpose(0, 1, 3, 2), bias)
    give(b.stem, *arrays(a.layers[0]))
    give(b.head, *arrays(a.layers[3]))
    return both(a, b, IMAGE)


@sound
def keras_separable_or_two():
    """SeparableConv2D in a; depthwise and 1 by 1 in b."""
    return twins(
        vision(layers.SeparableConv2D(12, 3, use_bias=False)),
        vision(keras.Sequential([
            layers.DepthwiseConv2D(3, use_bias=False),
            layers.Conv2D(12, 1, use_bias=False)])), IMAGE)


@sound
def keras_width_one_as_dense():
    """A convolution of width 1 in a, Dense in b."""
    a = drawn(vision(layers.Conv2D(12, 1)), IMAGE)
    b = drawn(Seeing(layers.Dense(12)), IMAGE)
    give(b.stem, *arrays(a.layers[0]))
    kernel, bias = arrays(a.layers[1])
    give(b.core, kernel[0, 0], bias)
    give(b.head, *arrays(a.layers[3]))
    return both(a, b, IMAGE)


@sound
def keras_batch_norm_by_hand():
    """layers.BatchNormalization in a, its formula in b."""
    class Frozen(layers.Layer):
        def build(self, shape):
            for name in ("gamma", "beta"):
                setattr(self, name, self.add_weight(shape=(8,), name=name))
            for name in ("moving_mean", "moving_variance"):
                setattr(self, name, self.add_weight(
                    shape=(8,), name=name, trainable=False))

        def call(self, x):
            scale = self.gamma * ops.rsqrt(self.moving_variance + 1e-3)
            return x * scale + (self.beta - self.moving_mean * scale)
    return twins(vision(layers.BatchNormalization()), Seeing(Frozen()),
                 IMAGE)


@sound
def keras_batch_norm_folded():
    """Batch norm in a, in the convolution in b."""
    a = drawn(vision(keras.Sequential([
        layers.Conv2D(12, 3, use_bias=False), layers.BatchNormalization(),
        layers.ReLU()])), IMAGE)
    b = drawn(Seeing(layers.Conv2D(12, 3, activation="relu")), IMAGE)
    (kernel,), (scale, bias, mean, variance) = map(
        arrays, a.layers[1].layers[:2])
    factor = scale / np.sqrt(variance + 1e-3)
    give(b.core, kernel * factor, bias - mean * factor)
    give(b.stem, *arrays(a.layers[0]))
    give(b.head, *arrays(a.layers[3]))
    return both(a, b, IMAGE)


@sound
def keras_group_norm_by_reshape():
    """layers.GroupNormalization in a."""
    def function(x):
        y = ops.reshape(x, (2, 64, 4, 2))
        mean = ops.mean(y, (1, 3), keepdims=True)
        variance = ops.var(y, (1, 3), keepdims=True)
        return ops.reshape((y - mean) / ops.sqrt(variance + 1e-3), x.shape)
    return twins(vision(layers.GroupNormalization(4)),
                 Seeing(Scaled(function, size=8)), IMAGE)


@sound
def keras_pool_by_reshape():
    """AveragePooling2D in a, a mean of blocks in b."""
    return twins(vision(layers.AveragePooling2D(2)), Seeing(Function(
        lambda x: ops.mean(ops.reshape(x, (2, 4, 2, 4, 2, 8)), (2, 4)))),
        IMAGE)


@sound
def keras_upsampling_by_repeat():
    """UpSampling2D in a, two repeats in b."""
    return twins(vision(layers.UpSampling2D(2), layers.GlobalMaxPooling2D()),
                 vision(Function(lambda x: ops.repeat(
                     ops.repeat(x, 2, 1), 2, 2)), Function(
                         lambda x: ops.max(x, (1, 2)))), IMAGE)


@sound
def keras_embedding_by_one_hot():
    """layers.Embedding in a, one-hot rows and Dense in b."""
    class OneHot(layers.Layer):
        def __init__(self):
            super().__init__()
            self.dense = layers.Dense(D, use_bias=False)

        def call(self, ids):
            return self.dense(ops.one_hot(ids, V, dtype="float64"))
    a = drawn(keras.Sequential([layers.Embedding(V, D), norm(),
                                layers.Dense(3)]), IDS)
    b = drawn(keras.Sequential([OneHot(), norm(), layers.Dense(3)]), IDS)
    for one, two in zip(a.layers, b.layers):
        give(two, *arrays(one))
    return both(a, b, IDS)
