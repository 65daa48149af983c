"""Random numbers by name: Threefry-2x32, which is MLX's own generator too.

Written out, so that MLX's order of counters does not matter.
"""

import math
import zlib

import mlx.core as mx

from impl_mlx.exact import erf_inv

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA


def threefry2x32(key, x0, x1):
    """Encrypt counters, two uint32 words each, with 20 rounds."""
    k = (key[0], key[1], key[0] ^ key[1] ^ PARITY)
    x0, x1 = x0 + k[0], x1 + k[1]
    for block in range(5):
        for turn in ROTATIONS[block % 2]:
            x0 = x0 + x1
            x1 = (x1 << turn) | (x1 >> (32 - turn))
            x1 = x1 ^ x0
        x0 = x0 + k[(block + 1) % 3]
        x1 = x1 + k[(block + 2) % 3] + (block + 1)
    return x0, x1


def key(seed):
    """The key of a whole number: its high and its low 32 bits."""
    return mx.array([(seed >> 32) & 0xFFFFFFFF, seed & 0xFFFFFFFF], mx.uint32)


def fold_in(parent, name):
    """The key of ``name``, a text or a number, under ``parent``."""
    data = zlib.crc32(name.encode()) if isinstance(name, str) else name
    x0, x1 = key(data & 0xFFFFFFFF).reshape(2, 1)
    return mx.concatenate(threefry2x32(parent, x0, x1))


def fold_in_each(parent, names):
    """The keys of several names under ``parent``: [n 2]."""
    x1 = mx.array([zlib.crc32(name.encode()) for name in names], mx.uint32)
    return mx.stack(threefry2x32(parent, mx.zeros_like(x1), x1), axis=-1)


def _words(key, shape):
    """The two words of each place's counter; fewer than 2³² places.

    Of several keys, [n 2], at once: [n *shape].
    """
    counter = mx.arange(math.prod(shape), dtype=mx.uint32)
    x0, x1 = threefry2x32((key[..., :1], key[..., 1:]),
                          mx.zeros_like(counter), counter)
    shape = (*key.shape[:-1], *shape)
    return x0.reshape(shape), x1.reshape(shape)


def bits(key, shape):
    """Random uint32: both words of each place's counter, by exclusive or."""
    x0, x1 = _words(key, shape)
    return x0 ^ x1


def bits64(key, shape):
    """Random uint64: the two words of each place's counter, concatenated."""
    x0, x1 = _words(key, shape)
    return x0.astype(mx.uint64) << 32 | x1.astype(mx.uint64)


def uniform(key, shape, low, high):
    """Uniform float64 in [low, high), of 52 random bits each."""
    unit = (bits64(key, shape) >> 12).astype(mx.float64) * 2.0**-52
    return unit * (high - low) + low


def normal(key, shape):
    """Normal float64 of mean 0 and variance 1: √2 erf⁻¹ of a uniform."""
    unit = uniform(key, shape, math.nextafter(-1.0, 0.0), 1.0)
    return math.sqrt(2) * erf_inv(unit)
