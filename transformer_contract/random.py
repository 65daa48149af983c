"""Random numbers that are the same everywhere: counter-based Threefry-2x32.

Salmon et al. 2011, "Parallel Random Numbers: As Easy as 1, 2, 3". Number i of
a key is a pure function of (key, i), so no state is carried and no framework's
generator is needed. Keys, bits and uniforms equal those of ``jax.random`` with
``jax_threefry_partitionable`` on, to the bit; normals to rounding.
"""

import zlib
from statistics import NormalDist

import numpy as np

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = np.uint32(0x1BD11BDA)

#: Counters handled at once: small enough to stay in a core's cache.
BLOCK = 1 << 15


def threefry2x32(key, x0, x1):
    """Encrypt counters with 20 rounds of Threefry.

    Args:
        key: two uint32.
        x0, x1: uint32 arrays of one shape, the two words of each counter.

    Returns:
        Two uint32 arrays of the same shape.
    """
    k = (np.uint32(key[0]), np.uint32(key[1]))
    k = (*k, k[0] ^ k[1] ^ PARITY)
    x0, x1 = x0 + k[0], x1 + k[1]
    for block in range(5):
        for turn in ROTATIONS[block % 2]:
            x0 += x1
            x1 = (x1 << np.uint32(turn)) | (x1 >> np.uint32(32 - turn))
            x1 ^= x0
        x0 += k[(block + 1) % 3]
        x1 += (int(k[(block + 2) % 3]) + block + 1) & 0xFFFFFFFF
    return x0, x1


def key(seed):
    """The key of a whole number: its high and its low 32 bits."""
    return np.array([(seed >> 32) & 0xFFFFFFFF, seed & 0xFFFFFFFF], np.uint32)


def fold_in(parent, name):
    """The key of ``name`` under ``parent``.

    A number is folded in as ``jax.random.fold_in`` does; a text by its CRC-32.
    """
    data = zlib.crc32(name.encode()) if isinstance(name, str) else name
    x0, x1 = key(data & 0xFFFFFFFF).reshape(2, 1)
    return np.concatenate(threefry2x32(parent, x0, x1))


def fold_in_each(parent, names):
    """The keys of several names under ``parent``: uint32 [n 2]."""
    return np.array([fold_in(parent, name) for name in names],
                    np.uint32).reshape(-1, 2)


def _words(key, size):
    """Yield (start, x0, x1): the two words of counters 0 to ``size`` - 1."""
    for start in range(0, size, BLOCK):
        counter = np.arange(start, min(start + BLOCK, size), dtype=np.uint64)
        yield start, *threefry2x32(
            key, (counter >> np.uint64(32)).astype(np.uint32),
            counter.astype(np.uint32))


def _size_of(shape):
    """How many numbers a shape holds."""
    return int(np.prod(shape, dtype=np.int64))


def bits(key, shape):
    """Random uint32: both words of each place's counter, by exclusive or."""
    out = np.empty(_size_of(shape), np.uint32)
    for start, x0, x1 in _words(key, out.size):
        np.bitwise_xor(x0, x1, out=out[start:start + BLOCK])
    return out.reshape(shape)


def bits64(key, shape):
    """Random uint64: the two words of each place's counter, concatenated."""
    out = np.empty(_size_of(shape), np.uint64)
    for start, x0, x1 in _words(key, out.size):
        out[start:start + BLOCK] = x0.astype(np.uint64) << np.uint64(32) | x1
    return out.reshape(shape)


def uniform(key, shape, low, high):
    """Uniform float64 in [low, high), of 52 random bits each.

    The fraction is exact, so that a library rounds only one product and one
    sum.
    """
    unit = (bits64(key, shape) >> np.uint64(12)) * 2.0**-52
    return unit * (high - low) + low


def normal(key, shape):
    """Normal float64 of mean 0 and variance 1: √2 erf⁻¹ of a uniform.

    The quantile is Wichura's AS241, from the standard library, number by
    number; it is right to rounding, as are the frameworks' erf⁻¹.
    """
    unit = uniform(key, shape, np.nextafter(-1.0, 0.0), 1.0)
    lower = np.vectorize(NormalDist().inv_cdf, otypes="d")(
        (1 - np.abs(unit)) / 2)
    return np.copysign(lower, unit)
