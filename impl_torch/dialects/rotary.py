"""Rotary positions: queries and keys turned by where they stand.

    (a, b) -> (a cos θ - b sin θ, a sin θ + b cos θ),  θ = pos / base^(2i / d_k)

Each pair of features turns by an angle of its own (Su et al. 2021). The tables
are float64, and rounded to the input's dtype where they are used (R7).
"""

import torch
from torch import nn

from transformer_contract import checks, rotary
from transformer_contract.trace import tap


class RotaryHalves(nn.Module):
    """Features i and i + d_k/2 are a pair (R44). It has no parameters."""

    def __init__(self, config):
        super().__init__()
        # torch: kept, since a compiled pass would not cache NumPy's answer
        self.cosines, self.sines = map(
            torch.from_numpy, rotary.of_config(config))

    def pairs(self, x):
        """The first and the second feature of every pair: [B H T K/2]."""
        return torch.chunk(x, 2, dim=-1)

    def joined(self, first, second):
        """Features from pairs: [B H T K]."""
        return torch.cat([first, second], dim=-1)

    def rotate(self, x, cosines, sines):
        """Turn every pair of x [B H T K]."""
        first, second = self.pairs(x)
        return self.joined(first * cosines - second * sines,
                           first * sines + second * cosines)

    def forward(self, x, start):
        """Turn x [B H T K], whose first position is start."""
        end = start + x.shape[2]
        checks.length(end, len(self.cosines))
        cosines = self.cosines[start:end].to(x)
        sines = self.sines[start:end].to(x)
        # [1] rotated [B H T K]: pairs turned by pos / base^(2i/d_k)  (R44)
        rotated = tap(self, "rotated", self.rotate(x, cosines, sines))
        return rotated


class RotaryInterleaved(RotaryHalves):
    """Features 2i and 2i + 1 are a pair (R44)."""

    def pairs(self, x):
        """The first and the second feature of every pair: [B H T K/2]."""
        return x[..., ::2], x[..., 1::2]

    def joined(self, first, second):
        """Features from pairs: [B H T K]."""
        both = torch.stack([first, second], dim=-1)
        return both.reshape(*first.shape[:-1], -1)


#: By the config's word.
ROTARIES = {"rotary_halves": RotaryHalves,
            "rotary_interleaved": RotaryInterleaved}
