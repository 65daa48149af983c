"""Dropout: some values are zeroed while training (section 5.4).

    left = x / (1 - rate) where kept, else 0

Srivastava et al. 2014, in the form that keeps the mean, so that nothing is
scaled when it is off. The kept values follow from a named key (R25): the run's
key, folded with the place's path, such as
``encoder.layers.0.feed_forward.activated_dropout``. They are drawn before a
run, which the contract's ``dropping`` opens; outside a run x is returned
unchanged.
"""

import numpy as np

from transformer_contract import dropping
from reference_numpy import random


def kept(key, shape, rate):
    """Which values stay, bool: those whose bits are not below rate · 2³²."""
    return random.bits(key, shape) >= np.uint32(rate * 2**32)


def native_kept(key, shape, rate):
    """The same from NumPy's own generator: fast, but not comparable."""
    return np.random.default_rng(key).random(shape, np.float32) >= rate


def draw(key, places, rate, native):
    """The values that a run keeps in every place: path -> bool.

    Args:
        key: the run's, uint32 [2].
        places: path -> shape, as the contract's ``dropping.places`` finds them.
        rate: the probability that a value is dropped.
        native: whether NumPy's own generator draws instead.
    """
    masks = native_kept if native else kept
    keys = random.fold_in_each(key, places)
    return {name: masks(keys[i], shape, rate)
            for i, (name, shape) in enumerate(places.items())}


class Dropout:
    """Zero each value with probability ``rate``. It has no parameters."""

    def __init__(self, rate):
        self.rate = rate

    def forward(self, x):
        """Drop values of x, of any shape, while a run is open.

        The cache is what is left and the mask, which is None when off.
        """
        mask = dropping.kept(self)
        if mask is None:
            return x, (x, None)
        # [1] left [*]: x / (1 - rate) where kept, else 0  (§5.4, R25)
        left = np.where(mask, x / (1 - self.rate), 0)
        return left, (left, mask)

    def backward(self, dy, c):
        """From dy: dx. What was dropped has no gradient."""
        _, mask = c
        # [1'] x: left = x / (1 - rate) where kept, else 0
        return dy if mask is None else np.where(mask, dy / (1 - self.rate), 0)
