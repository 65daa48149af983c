"""Keys of impl_keras.random with rounds in a loop, which compiles fast.

Of keys of keys, written out, XLA makes one expression, which repeats parts of
itself again and again: half a minute to compile. Bits are drawn by the rounds
as written out, which run faster.
"""

import zlib

import numpy as np
from keras import ops

from impl_keras.random import PARITY, ROTATIONS


def threefry2x32(key, x0, x1):
    """See impl_keras.random; x0 and x1 are of one shape."""
    k = ops.stack([key[0], key[1], ops.bitwise_xor(
        ops.bitwise_xor(key[0], key[1]), np.int32(PARITY))])
    rotations = ops.convert_to_tensor(np.array(ROTATIONS, np.int32))

    def four_rounds(block, words):
        x0, x1 = words
        for turn in ops.unstack(rotations[block % 2], 4):
            x0 = x0 + x1
            low = ops.bitwise_and(
                ops.right_shift(x1, 32 - turn), ops.left_shift(1, turn) - 1)
            x1 = ops.bitwise_or(ops.left_shift(x1, turn), low)
            x1 = ops.bitwise_xor(x1, x0)
        return x0 + k[(block + 1) % 3], x1 + k[(block + 2) % 3] + block + 1

    return ops.fori_loop(0, 5, four_rounds, (x0 + k[0], x1 + k[1]))


def fold_in(parent, number):
    """The key of a number, an int32 tensor, under ``parent``."""
    return ops.stack(threefry2x32(parent, ops.zeros_like(number), number))


def fold_in_each(parent, names):
    """The keys of several names under ``parent``: [n 2]."""
    x1 = ops.convert_to_tensor(np.array(
        [zlib.crc32(name.encode()) for name in names], np.uint32
    ).view(np.int32))
    return ops.stack(threefry2x32(parent, ops.zeros_like(x1), x1), axis=-1)

