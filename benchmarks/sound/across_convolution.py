"""Convolutions, channels first in PyTorch and last in NNX and Keras."""

import jax
import jax.numpy as jnp
import keras
import torch
from flax import nnx
from keras import layers
from torch import nn

from benchmarks.sound import torch_parts as torch_
from benchmarks.sound.nnx_layers import Vision
from benchmarks.sound.nnx_parts import conv, linear, norm
from benchmarks.sound.pair import sound
from benchmarks.sound.weights import (
    arrays, both, call, drawn, give, normal, twins)

fn = nn.functional
FIRST = normal(2, 3, 8, 8)
LAST = FIRST.transpose(0, 2, 3, 1).copy()


def eyes(one, two, channels=8):
    """A model of PyTorch and one of NNX with these cores."""
    return twins(torch_.Vision(one, channels), Vision(two, channels), FIRST,
                 theirs=(LAST,))


def looked(one, two, channels=8):
    """A model of PyTorch and one of Keras with these cores."""
    return twins(torch_.Seeing(one, channels), keras.Sequential([
        layers.Conv2D(8, 3, padding="same", activation="relu"), two,
        layers.GlobalAveragePooling2D(), layers.Dense(5)]), FIRST,
        theirs=(LAST,))


def batch_norm():
    """nnx.BatchNorm with PyTorch's ε."""
    return nnx.BatchNorm(12, epsilon=1e-5, rngs=nnx.Rngs(0))


def torch_conv():
    """Convolution, batch norm and ReLU of PyTorch."""
    return nn.Sequential(nn.Conv2d(8, 12, 3, stride=2, padding=1, bias=False),
                         nn.BatchNorm2d(12), nn.ReLU())


@sound
def convolution_to_nnx():
    """Convolution, batch norm, ReLU; a stride of 2 with padding by hand."""
    return eyes(torch_conv(), nnx.Sequential(
        conv(8, 12, 3, strides=2, padding=((1, 1), (1, 1)), use_bias=False),
        batch_norm(), jax.nn.relu), 12)


@sound
def convolution_to_keras():
    """The same; Keras pads in a layer of its own."""
    return looked(torch_conv(), keras.Sequential([
        layers.ZeroPadding2D(1), layers.Conv2D(12, 3, 2, use_bias=False),
        layers.BatchNormalization(epsilon=1e-5), layers.ReLU()]), 12)


@sound
def convolution_nnx_to_keras():
    """SAME in both."""
    return twins(
        Vision(nnx.Sequential(conv(8, 12, 3, use_bias=False), batch_norm()),
               12),
        keras.Sequential([
            layers.Conv2D(8, 3, padding="same", activation="relu"),
            layers.Conv2D(12, 3, padding="same", use_bias=False),
            layers.BatchNormalization(epsilon=1e-5),
            layers.GlobalAveragePooling2D(), layers.Dense(5)]), LAST)


@sound
def depthwise_to_nnx():
    """groups in PyTorch, feature_group_count in NNX."""
    return eyes(nn.Conv2d(8, 8, 3, padding=1, groups=8),
                conv(8, 8, 3, feature_group_count=8))


@sound
def depthwise_to_keras():
    """groups in PyTorch, DepthwiseConv2D in Keras."""
    a, b = looked(nn.Conv2d(8, 8, 3, padding=1, groups=8),
                  layers.Conv2D(8, 3, padding="same", groups=8))
    model = drawn(keras.Sequential([
        layers.Conv2D(8, 3, padding="same", activation="relu"),
        layers.DepthwiseConv2D(3, padding="same"),
        layers.GlobalAveragePooling2D(), layers.Dense(5)]), LAST)
    kernel, bias = arrays(b[0].layers[1])
    give(model.layers[0], *arrays(b[0].layers[0]))
    give(model.layers[1], kernel.transpose(0, 1, 3, 2), bias)
    give(model.layers[3], *arrays(b[0].layers[3]))
    return a, call(model, LAST)


@sound
def group_norm_to_nnx():
    """GroupNorm over consecutive channels in both."""
    return eyes(nn.GroupNorm(4, 8), nnx.GroupNorm(
        8, 4, epsilon=1e-5, rngs=nnx.Rngs(0)))


@sound
def pools_to_keras():
    """Average and greatest of blocks."""
    return looked(nn.Sequential(nn.AvgPool2d(2), nn.MaxPool2d(3, 1)),
                  keras.Sequential([layers.AveragePooling2D(2),
                                    layers.MaxPooling2D(3, 1)]))


@sound
def strided_same_to_torch():
    """Keras' SAME at stride 2 in a; uneven padding in PyTorch in b."""
    a = drawn(keras.Sequential([
        layers.Conv2D(12, 3, 2, padding="same"), layers.ReLU(),
        layers.GlobalAveragePooling2D(), layers.Dense(5)]), LAST)
    b = drawn(nn.Sequential(
        nn.ZeroPad2d((0, 1, 0, 1)), nn.Conv2d(3, 12, 3, 2), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(12, 5)))
    return call(a, LAST), call(b, FIRST)


@sound
def transposed_to_keras():
    """ConvTranspose2d in PyTorch, Conv2DTranspose in Keras."""
    a = drawn(torch_.Seeing(nn.ConvTranspose2d(8, 6, 3, stride=2), 6))
    b = drawn(keras.Sequential([
        layers.Conv2D(8, 3, padding="same", activation="relu"),
        layers.Conv2DTranspose(6, 3, 2), layers.GlobalAveragePooling2D(),
        layers.Dense(5)]), LAST)
    kernel, bias = arrays(a.net[2])
    give(b.layers[0], *arrays(a.net[0]))
    give(b.layers[1], kernel.swapaxes(-1, -2), bias)
    give(b.layers[3], *arrays(a.net[5]))
    return both(a, b, FIRST, theirs=(LAST,))


@sound
def flattened_to_nnx():
    """Flattened channels first in PyTorch; NNX turns them before."""
    class Flat(nnx.Module):
        def __init__(self):
            self.conv, self.fc = conv(3, 4, 3), linear(256, 5)

        def __call__(self, x):
            x = jax.nn.relu(self.conv(x))
            return self.fc(x.transpose(0, 3, 1, 2).reshape(len(x), -1))
    return twins(nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(),
                               nn.Flatten(), nn.Linear(256, 5)), Flat(),
                 FIRST, theirs=(LAST,))


@sound
def flattened_rows_sorted():
    """Flattened channels last in Keras: its kernel's rows are in order."""
    a = drawn(nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(),
                            nn.Flatten(), nn.Linear(256, 5)))
    b = drawn(keras.Sequential([
        layers.Conv2D(4, 3, padding="same", activation="relu"),
        layers.Flatten(), layers.Dense(5)]), LAST)
    kernel, bias = arrays(a[3])
    give(b.layers[0], *arrays(a[0]))
    give(b.layers[2], kernel.reshape(4, 8, 8, 5).transpose(
        1, 2, 0, 3).reshape(256, 5), bias)
    return both(a, b, FIRST, theirs=(LAST,))


@sound(axes=(0, 3, 1, 2))
def image_to_image():
    """The output is an image: channels first in PyTorch, last in NNX."""
    class Image(nnx.Module):
        def __init__(self):
            self.one, self.two = conv(3, 6, 3), conv(6, 4, 3)

        def __call__(self, x):
            return self.two(jnp.tanh(self.one(x)))
    return twins(nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.Tanh(),
                               nn.Conv2d(6, 4, 3, padding=1)), Image(),
                 FIRST, theirs=(LAST,))


@sound
def residual_net_to_nnx():
    """A residual block with a projected skip."""
    class Torch(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(8, 12, 3, padding=1, bias=False)
            self.bn1 = nn.BatchNorm2d(12)
            self.conv2 = nn.Conv2d(12, 12, 3, padding=1, bias=False)
            self.bn2 = nn.BatchNorm2d(12)
            self.downsample = nn.Conv2d(8, 12, 1)

        def forward(self, x):
            y = fn.relu(self.bn1(self.conv1(x)))
            return fn.relu(self.bn2(self.conv2(y)) + self.downsample(x))

    class Last(nnx.Module):
        def __init__(self):
            self.main = nnx.Sequential(
                conv(8, 12, 3, use_bias=False), batch_norm(), jax.nn.relu,
                conv(12, 12, 3, use_bias=False), batch_norm())
            self.skip = linear(8, 12)

        def __call__(self, x):
            return jax.nn.relu(self.skip(x) + self.main(x))
    a = drawn(torch_.Vision(Torch(), 12))
    b = drawn(Vision(Last(), 12))
    for part in ("stem", "head"):
        give(getattr(b, part), *arrays(getattr(a, part)))
    core = a.core
    give(b.core.main, *(each for layer in (
        core.conv1, core.bn1, core.conv2, core.bn2)
        for each in arrays(layer)))
    kernel, bias = arrays(core.downsample)
    give(b.core.skip, kernel[0, 0], bias)
    return both(a, b, FIRST, theirs=(LAST,))


@sound
def speech_to_nnx():
    """Convolutions over time, causal, and a norm: [B C T], [B T C]."""
    class Torch(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv1d(5, 12, 3)
            self.norm, self.fc = nn.LayerNorm(12), nn.Linear(12, 4)

        def forward(self, x):
            x = fn.gelu(self.conv(fn.pad(x, (2, 0)))).transpose(1, 2)
            return self.fc(self.norm(x))

    class Last(nnx.Module):
        def __init__(self):
            self.conv = conv(5, 12, (3,), padding="CAUSAL")
            self.norm, self.fc = norm(12), linear(12, 4)

        def __call__(self, x):
            return self.fc(self.norm(jax.nn.gelu(
                self.conv(x), approximate=False)))
    sounds = normal(2, 5, 9)
    return twins(Torch(), Last(), sounds,
                 theirs=(sounds.transpose(0, 2, 1).copy(),))


@sound
def patches_to_keras():
    """ViT's patches: a convolution in PyTorch, a reshape in Keras."""
    class Torch(nn.Module):
        def __init__(self):
            super().__init__()
            self.proj = nn.Conv2d(3, 12, 4, 4)
            self.norm, self.head = nn.LayerNorm(12), nn.Linear(12, 5)

        def forward(self, x):
            x = self.proj(x).flatten(2).transpose(1, 2)
            return self.head(self.norm(x).mean(1))

    class Last(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = layers.Dense(12)
            self.norm = layers.LayerNormalization(epsilon=1e-5)
            self.head = layers.Dense(5)

        def call(self, x):
            x = keras.ops.reshape(x, (-1, 2, 4, 2, 4, 3))
            x = keras.ops.transpose(x, (0, 1, 3, 2, 4, 5))
            x = self.dense(keras.ops.reshape(x, (-1, 4, 48)))
            return self.head(keras.ops.mean(self.norm(x), 1))
    a, b = drawn(Torch()), drawn(Last(), LAST)
    kernel, bias = arrays(a.proj)
    give(b.dense, kernel.reshape(48, 12), bias)
    give(b.norm, *arrays(a.norm))
    give(b.head, *arrays(a.head))
    return both(a, b, FIRST, theirs=(LAST,))


@sound
def upsampled_to_keras():
    """A small U-Net: nearest, joined channels."""
    class Torch(nn.Module):
        def __init__(self):
            super().__init__()
            self.down = nn.Conv2d(3, 8, 3, padding=1)
            self.inner = nn.Conv2d(8, 8, 3, padding=1)
            self.up = nn.Conv2d(16, 4, 3, padding=1)
            self.head = nn.Linear(4, 3)

        def forward(self, x):
            x = fn.relu(self.down(x))
            y = fn.relu(self.inner(fn.max_pool2d(x, 2)))
            x = torch.cat([x, fn.interpolate(y, scale_factor=2)], 1)
            return self.head(self.up(x).mean((2, 3)))
    image = keras.Input((8, 8, 3), dtype="float64")
    x = layers.Conv2D(8, 3, padding="same", activation="relu")(image)
    y = layers.Conv2D(8, 3, padding="same", activation="relu")(
        layers.MaxPooling2D(2)(x))
    x = layers.Concatenate()([x, layers.UpSampling2D(2)(y)])
    x = layers.Conv2D(4, 3, padding="same")(x)
    b = keras.Model(image, layers.Dense(3)(
        layers.GlobalAveragePooling2D()(x)))
    return twins(Torch(), b, FIRST, theirs=(LAST,))
