"""Dropout: some values are zeroed while training (section 5.4).

    left = x / (1 - rate) where kept, else 0

The kept values follow from named keys (R25), or from MLX's own generator.
"""

import contextlib

import mlx.core as mx
import mlx.nn as nn

from transformer_contract import dropping
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


class Dropout(nn.Dropout):
    """Zero each value with probability ``rate``. It has no parameters.

    A run of the harness says what is kept. Outside of one it is MLX's own,
    which train() and eval() turn on and off.
    """

    def __init__(self, rate):
        super().__init__(rate)
        self.rate = rate

    def __call__(self, x):
        """Drop values of x, of any shape, in a run or in training mode."""
        mask = dropping.kept(self)
        if mask is None:
            return super().__call__(x)
        # [1] left [*]: x / (1 - rate) where kept, else 0  (§5.4, R25)
        left = mx.where(mask, x / (1 - self.rate), 0)
        return left


@contextlib.contextmanager
def evaluating(module):
    """Drop nothing within a ``with`` block that no run asks for."""
    before = [(below, below.training) for below in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for below, training in before:  # a parent sets those below
            below.train(training)
