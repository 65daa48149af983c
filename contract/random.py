"""Random numbers that are the same everywhere: counter-based Threefry-2x32.

Salmon et al. 2011, "Parallel Random Numbers: As Easy as 1, 2, 3". Number i of
a key is a pure function of (key, i), so no state is carried and no framework's
generator is needed. Keys, bits and uniforms equal those of ``jax.random`` with
``jax_threefry_partitionable`` on, to the bit.
"""

import zlib

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


def bits(key, size):
    """``size`` random uint64, number i made from the 64-bit counter i."""
    out = np.empty(size, np.uint64)
    for start in range(0, size, BLOCK):
        counter = np.arange(start, min(start + BLOCK, size), dtype=np.uint64)
        high, low = threefry2x32(
            key, (counter >> np.uint64(32)).astype(np.uint32),
            counter.astype(np.uint32),
        )
        out[start:start + BLOCK] = high.astype(np.uint64) << np.uint64(32) | low
    return out


def uniform(key, shape, low=0.0, high=1.0):
    """Uniform float64 in [low, high), of 52 random bits each.

    The bits fill the fraction of a number in [1, 2), from which 1 is taken, so
    that no rounding is left to any library.
    """
    size = int(np.prod(shape, dtype=np.int64))
    fraction = bits(key, size) >> np.uint64(12)
    one = np.float64(1).view(np.uint64)
    unit = (fraction | one).view(np.float64) - 1.0
    return (unit * (high - low) + low).reshape(shape)
