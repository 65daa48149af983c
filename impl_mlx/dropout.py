"""Dropout: some values are zeroed while training (section 5.4).

    y = x / (1 - rate) where kept, else 0

The kept values follow from named keys (R25), or from MLX's own generator.
"""

import mlx.core as mx
import mlx.nn as nn

from contract import dropping
from impl_mlx import random


def kept(key, shape, rate):
    """Which values stay, bool: those whose bits are not below rate · 2³²."""
    return random.bits(key, shape) >= mx.array(int(rate * 2**32), mx.uint32)


def native_kept(key, shape, rate):
    """The same from MLX's own generator: fast, but not comparable."""
    shape = (*key.shape[:-1], *shape)
    return mx.random.uniform(shape=shape, key=key.reshape(-1, 2)[0]) >= rate


def draw(key, places, rate, native):
    """The values that a run keeps in every place: path -> bool."""
    masks = native_kept if native else kept
    keys = random.fold_in_each(key, places)
    return {name: masks(keys[i], shape, rate)
            for i, (name, shape) in enumerate(places.items())}


class Dropout(nn.Module):
    """Zero each value with probability ``rate``. It has no parameters."""

    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def __call__(self, x):
        """Drop values of x, of any shape, while a run is open."""
        mask = dropping.kept(self)
        if mask is None:
            return x
        # [1] left [*]: x / (1 - rate) where kept, else 0  (§5.4, R25)
        left = mx.where(mask, x / (1 - self.rate), 0)
        return left
