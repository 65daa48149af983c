"""The U-Net in Keras, channels last."""

import math

import keras
from keras import layers, ops

from benchmarks.families.drawing import into_keras

KIND = {"dtype": "float64"}


def norm():
    """A norm of four groups."""
    return layers.GroupNormalization(4, epsilon=1e-6, **KIND)


def conv(width, size, **more):
    """A convolution that keeps the size."""
    return layers.Conv2D(width, size, padding="same", **more, **KIND)


def sines(time, width):
    """Cosines and sines of the time."""
    half = width // 2
    places = ops.arange(half, dtype="float64")
    frequencies = ops.exp(-math.log(10000.0) * places / half)
    angles = ops.cast(time, "float64")[:, None] * frequencies
    return ops.concatenate([ops.cos(angles), ops.sin(angles)], -1)


class Residual(layers.Layer):
    def __init__(self, width):
        super().__init__(**KIND)
        self.norm1, self.norm2 = norm(), norm()
        self.conv1, self.conv2 = conv(width, 3), conv(width, 3)
        self.time = layers.Dense(2 * width, **KIND)
        self.skip = conv(width, 1)

    def call(self, x, time):
        y = self.conv1(ops.silu(self.norm1(x)))
        both = self.time(ops.silu(time))[:, None, None]
        scale, shift = ops.split(both, 2, -1)
        y = self.norm2(y) * (1 + scale) + shift
        return self.skip(x) + self.conv2(ops.silu(y))


class Attention(layers.Layer):
    def __init__(self, width, heads):
        super().__init__(**KIND)
        self.heads = heads
        self.norm = norm()
        self.qkv = layers.Conv1D(3 * width, 1, **KIND)
        self.out = layers.Conv1D(width, 1, **KIND)

    def call(self, x):
        rows, width = x.shape[0], x.shape[-1]
        places = ops.reshape(self.norm(x), (rows, -1, width))
        packed = ops.reshape(
            self.qkv(places), (rows, places.shape[1], 3, self.heads, -1))
        q, k, v = ops.unstack(packed, axis=2)
        scores = ops.einsum("bthk,bshk->bhts", q, k) * q.shape[-1] ** -0.5
        y = ops.einsum("bhts,bshk->bthk", ops.softmax(scores, -1), v)
        return x + ops.reshape(self.out(ops.reshape(y, places.shape)), x.shape)


class UNet(keras.Model):
    def __init__(self, c):
        super().__init__(**KIND)
        self.width = width = c["width"]
        self.time1 = layers.Dense(c["timed"], **KIND)
        self.time2 = layers.Dense(c["timed"], **KIND)
        self.first = conv(width, 3)
        self.down1, self.down2 = Residual(width), Residual(2 * width)
        self.pad = layers.ZeroPadding2D(1, **KIND)
        self.down = layers.Conv2D(width, 3, strides=2, **KIND)
        self.middle = Attention(2 * width, 2)
        self.up2, self.up1 = Residual(width), Residual(width)
        self.larger = layers.UpSampling2D(2, **KIND)
        self.up = conv(width, 3)
        self.norm = norm()
        self.last = conv(3, 3)

    def call(self, x, time):
        time = self.time1(sines(time, self.width))
        time = self.time2(ops.silu(time))
        x = self.first(x)
        one = self.down1(x, time)
        two = self.down2(self.down(self.pad(one)), time)
        x = self.middle(two)
        x = self.up2(ops.concatenate([x, two], -1), time)
        x = self.up(self.larger(x))
        x = self.up1(ops.concatenate([x, one], -1), time)
        return self.last(ops.silu(self.norm(x)))


def build(arrays, config):
    """The model with torch's arrays."""
    model = UNet(config)
    model(ops.zeros((2, 8, 8, 3), "float64"), ops.zeros(2, "int64"))
    return into_keras(model, arrays)
