"""Dropout by named keys; F.dropout where a run asks for native masks."""

import torch
from torch import nn

from contract import dropping
from impl_torch import random


def kept(key, shape, rate):
    """Which values stay, bool: those whose bits are not below rate · 2³²."""
    # torch: cannot compare uint32; moved by 2³¹ their order is int32's.
    bits = random.bits(key, shape).view(torch.int32) ^ -2**31
    return bits >= int(rate * 2**32) - 2**31


def native_kept(key, shape, rate):
    """The same from torch's own generator: quick, and never comparable."""
    generator = torch.Generator(key.device)
    generator.manual_seed(int(key[0]) << 32 | random.unsigned(key[1]).item())
    return torch.rand(shape, generator=generator, device=key.device) >= rate


class Dropout(nn.Module):
    """Zero each value with the chance ``rate``. It has no parameters."""

    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def forward(self, x):
        """Drop values of x, of any shape, while a run is open."""
        place = dropping.place(self)
        if place is None or not self.rate:
            return x
        draw = native_kept if dropping.native() else kept
        mask = draw(random.fold_in(*place), x.shape, self.rate)
        return torch.where(mask, x / (1 - self.rate), 0)
