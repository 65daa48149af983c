"""Random numbers by name: Threefry-2x32.

Not every backend of Keras can add uint32, so int32 holds their bits: sums wrap
alike, and a shift to the right has the sign's copies masked away.
"""

import math
import zlib

import keras
import numpy as np
from keras import ops

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA


def _signed(word):
    """The whole number whose int32 has the bits of a uint32."""
    return (word & 0xFFFFFFFF ^ 1 << 31) - (1 << 31)


def _unsigned(x):
    """An int32 tensor as the uint32 that it holds, in int64."""
    return ops.bitwise_and(ops.cast(x, "int64"), np.int64(0xFFFFFFFF))


def _traced(function):
    """A function that TensorFlow traces once for many calls."""
    if keras.backend.backend() != "tensorflow":
        return function
    import tensorflow as tf
    return tf.function(function, autograph=False, reduce_retracing=True)


@_traced  # keras: one call in the place of 150
def threefry2x32(key, x0, x1):
    """Encrypt counters, two uint32 words each, with 20 rounds."""
    k = (key[0], key[1],
         ops.bitwise_xor(ops.bitwise_xor(key[0], key[1]), np.int32(PARITY)))
    x0, x1 = x0 + k[0], x1 + k[1]
    for block in range(5):
        for turn in ROTATIONS[block % 2]:
            x0 = x0 + x1
            low = ops.bitwise_and(ops.right_shift(x1, np.int32(32 - turn)),
                                  np.int32((1 << turn) - 1))
            x1 = ops.bitwise_or(ops.left_shift(x1, np.int32(turn)), low)
            x1 = ops.bitwise_xor(x1, x0)
        x0 = x0 + k[(block + 1) % 3]
        x1 = x1 + k[(block + 2) % 3] + np.int32(block + 1)
    return x0, x1


def key(seed):
    """The key of a whole number: its high and its low 32 bits."""
    return ops.convert_to_tensor(
        np.array([_signed(seed >> 32), _signed(seed)], np.int32))


def fold_in(parent, name):
    """The key of ``name``, a text or a number, under ``parent``."""
    data = zlib.crc32(name.encode()) if isinstance(name, str) else name
    word = (np.int32(_signed(data)) if isinstance(data, int)
            else data)  # keras: a number within a compiled function
    return ops.stack(threefry2x32(
        parent, ops.zeros((), "int32"), ops.convert_to_tensor(word)))


def fold_in_each(parent, names):
    """The keys of several names under ``parent``: [n 2]."""
    x1 = ops.convert_to_tensor(np.array(
        [_signed(zlib.crc32(name.encode())) for name in names], np.int32))
    return ops.stack(threefry2x32(parent, ops.zeros_like(x1), x1), axis=-1)


def _words(key, shape):
    """The two words of each place's counter; fewer than 2³¹ places.

    Of several keys, [n 2], at once: [n *shape].
    """
    counter = ops.arange(math.prod(shape), dtype="int32")
    x0, x1 = threefry2x32((key[..., :1], key[..., 1:]),
                          ops.zeros_like(counter), counter)
    shape = (*key.shape[:-1], *shape)
    return ops.reshape(x0, shape), ops.reshape(x1, shape)


def bits(key, shape):
    """Random uint32: both words of each place's counter, by exclusive or.

    As int32 of the same bits.
    """
    return ops.bitwise_xor(*_words(key, shape))


def bits64(key, shape):
    """Random uint64: the two words of each place's counter, concatenated.

    As int64 of the same bits.
    """
    x0, x1 = _words(key, shape)
    return ops.bitwise_or(
        ops.left_shift(_unsigned(x0), np.int64(32)), _unsigned(x1))


def uniform(key, shape, low, high):
    """Uniform float64 in [low, high), of 52 random bits each."""
    x0, x1 = _words(key, shape)
    fraction = ops.bitwise_or(ops.left_shift(_unsigned(x0), np.int64(20)),
                              ops.right_shift(_unsigned(x1), np.int64(12)))
    unit = ops.cast(fraction, "float64") * np.float64(2.0**-52)
    return unit * np.float64(high - low) + np.float64(low)


def normal(key, shape):
    """Normal float64 of mean 0 and variance 1: √2 erf⁻¹ of a uniform."""
    unit = uniform(key, shape, math.nextafter(-1.0, 0.0), 1.0)
    return np.float64(math.sqrt(2)) * ops.erfinv(unit)
