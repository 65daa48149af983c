"""Dropout: some values are zeroed while training (section 5.4).

    left = x / (1 - rate) where kept, else 0

The kept values follow from named keys (R25), or from Keras' own generator.
"""

import keras
import numpy as np
from keras import ops

from transformer_contract import dropping
from impl_keras import random


def kept(key, shape, rate):
    """Which values stay, bool: those whose bits are not below rate · 2³²."""
    # keras: bits are int32 here; moved by 2³¹ their order is uint32's.
    bits = ops.bitwise_xor(random.bits(key, shape), np.int32(-2**31))
    return bits >= np.int32(int(rate * 2**32) - 2**31)


def native_kept(key, shape, rate):
    """The same from Keras' own generator: fast, but not comparable."""
    return keras.random.uniform((*key.shape[:-1], *shape)) >= rate


def draw(key, places, rate, native):
    """The values that a run keeps in every place: path -> bool."""
    masks = native_kept if native else kept
    keys = random.fold_in_each(key, places)
    return {name: masks(keys[i], shape, rate)
            for i, (name, shape) in enumerate(places.items())}


class Dropout(keras.layers.Dropout):
    """Zero each value with probability ``rate``. It has no parameters.

    A run of the harness says what is kept. Outside of one it is Keras' own,
    which ``training`` turns on and off.
    """

    def call(self, x, training=False):
        """Drop values of x, of any shape, in a run or in training mode."""
        mask = dropping.kept(self)
        if mask is None:
            return super().call(x, training)
        # [1] left [*]: x / (1 - rate) where kept, else 0  (§5.4, R25)
        left = ops.where(mask, x / (1 - self.rate), 0)
        return left
