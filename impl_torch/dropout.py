"""Dropout: some values are zeroed while training (section 5.4).

    left = x / (1 - rate) where kept, else 0

The kept values follow from named keys (R25), or from torch's own generator.
"""

import contextlib

import torch
from torch import nn
from torch.nn import functional as F

from transformer_contract import dropping
from impl_torch import random


def kept(key, shape, rate):
    """Which values stay, bool: those whose bits are not below rate · 2³²."""
    # torch: cannot compare uint32; moved by 2³¹ their order is int32's.
    bits = random.bits(key, shape).view(torch.int32) ^ -2**31
    return bits >= int(rate * 2**32) - 2**31


def native_kept(key, shape, rate):
    """The same from torch's own generator: fast, but not comparable."""
    shape = (*key.shape[:-1], *shape)
    return torch.rand(shape, device=key.device) >= rate


def draw(key, places, rate, native):
    """The values that a run keeps in every place: path -> bool."""
    masks = native_kept if native else kept
    keys = random.fold_in_each(key, places)
    return {name: masks(keys[i], shape, rate)
            for i, (name, shape) in enumerate(places.items())}


class Dropout(nn.Module):
    """Zero each value with probability ``rate``. It has no parameters.

    A run of the harness says what is kept. Outside of one it is torch's own,
    which train() and eval() turn on and off.
    """

    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def forward(self, x):
        """Drop values of x, of any shape, in a run or in training mode."""
        mask = dropping.kept(self)
        if mask is None:
            return F.dropout(x, self.rate, self.training)
        # [1] left [*]: x / (1 - rate) where kept, else 0  (§5.4, R25)
        left = torch.where(mask, x / (1 - self.rate), 0)
        return left


@contextlib.contextmanager
def evaluating(module):
    """Drop nothing within a ``with`` block that no run asks for."""
    training = [below for below in module.modules() if below.training]
    module.eval()
    try:
        yield
    finally:
        for below in training:
            below.training = True
