"""Random numbers by name: Threefry-2x32.

torch cannot add uint32, so int32 holds their bits: sums wrap alike, and a
shift to the right has the sign's copies masked away.
"""

import math
import zlib

import torch

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA


def _signed(word):
    """The whole number whose int32 has the bits of a uint32."""
    return (word & 0xFFFFFFFF ^ 1 << 31) - (1 << 31)


def _unsigned(x):
    """An int32 tensor as the uint32 that it holds, in int64."""
    return x.to(torch.int64) & 0xFFFFFFFF


def threefry2x32(key, x0, x1):
    """Encrypt counters, two uint32 words each, with 20 rounds."""
    k = (key[0], key[1], key[0] ^ key[1] ^ PARITY)
    x0, x1 = x0 + k[0], x1 + k[1]  # new, so that below may work in place
    for block in range(5):
        for turn in ROTATIONS[block % 2]:
            x0 += x1
            low = (x1 >> (32 - turn)) & ((1 << turn) - 1)
            x1 <<= turn
            x1 |= low
            x1 ^= x0
        x0 += k[(block + 1) % 3]
        x1 += k[(block + 2) % 3] + (block + 1)
    return x0, x1


def key(seed):
    """The key of a whole number: its high and its low 32 bits."""
    return torch.tensor([_signed(seed >> 32), _signed(seed)], dtype=torch.int32)


def fold_in(parent, name):
    """The key of ``name``, a text or a number, under ``parent``."""
    data = zlib.crc32(name.encode()) if isinstance(name, str) else name
    x0, x1 = key(data & 0xFFFFFFFF).to(parent.device).reshape(2, 1)
    return torch.cat(threefry2x32(parent, x0, x1))


def fold_in_each(parent, names):
    """The keys of several names under ``parent``: [n 2]."""
    x1 = torch.tensor([_signed(zlib.crc32(name.encode())) for name in names],
                      dtype=torch.int32, device=parent.device)
    return torch.stack(threefry2x32(parent, torch.zeros_like(x1), x1), dim=-1)


def _words(key, shape):
    """The two words of each place's counter; fewer than 2³¹ places.

    Of several keys, [n 2], at once: [n *shape].
    """
    counter = torch.arange(math.prod(shape), dtype=torch.int32,
                           device=key.device)
    x0, x1 = threefry2x32((key[..., :1], key[..., 1:]),
                          torch.zeros_like(counter), counter)
    shape = (*key.shape[:-1], *shape)
    return x0.reshape(shape), x1.reshape(shape)


def bits(key, shape):
    """Random uint32: both words of each place's counter, by exclusive or."""
    x0, x1 = _words(key, shape)
    return (x0 ^ x1).view(torch.uint32)


def bits64(key, shape):
    """Random uint64: the two words of each place's counter, concatenated."""
    x0, x1 = _words(key, shape)
    return (_unsigned(x0) << 32 | _unsigned(x1)).view(torch.uint64)


def uniform(key, shape, low, high):
    """Uniform float64 in [low, high), of 52 random bits each."""
    x0, x1 = _words(key, shape)
    fraction = _unsigned(x0) << 20 | _unsigned(x1) >> 12
    unit = fraction.to(torch.float64) * 2.0**-52
    return unit * (high - low) + low


def normal(key, shape):
    """Normal float64 of mean 0 and variance 1: √2 erf⁻¹ of a uniform."""
    unit = uniform(key, shape, math.nextafter(-1.0, 0.0), 1.0)
    return math.sqrt(2) * torch.special.erfinv(unit)
