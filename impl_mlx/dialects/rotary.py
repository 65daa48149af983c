"""Rotary positions: queries and keys turned by where they stand.

    (a, b) -> (a cos θ - b sin θ, a sin θ + b cos θ),  θ = pos / base^(2i / d_k)

Each pair of features turns by an angle of its own (Su et al. 2021). The tables
are float64, and rounded to the input's dtype where they are used (R7).
"""

import mlx.core as mx
import mlx.nn as nn

from transformer_contract import checks, rotary
from transformer_contract.trace import tap


class RotaryHalves(nn.Module):
    """Features i and i + d_k/2 are a pair (R44). It has no parameters."""

    def __init__(self, config):
        super().__init__()
        self.config = config

    def pairs(self, x):
        """The first and the second feature of every pair: [B H T K/2]."""
        return mx.split(x, 2, axis=-1)

    def joined(self, first, second):
        """Features from pairs: [B H T K]."""
        return mx.concatenate([first, second], axis=-1)

    def rotate(self, x, cosines, sines):
        """Turn every pair of x [B H T K]."""
        first, second = self.pairs(x)
        return self.joined(first * cosines - second * sines,
                           first * sines + second * cosines)

    def __call__(self, x, start):
        """Turn x [B H T K], whose first position is start."""
        end = start + x.shape[2]
        # mlx: NumPy's, since an array that a module keeps is a parameter
        cosines, sines = rotary.of_config(self.config)
        checks.length(end, len(cosines))
        cosines = mx.array(cosines[start:end], x.dtype)
        sines = mx.array(sines[start:end], x.dtype)
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
        both = mx.stack([first, second], axis=-1)
        return both.reshape(*first.shape[:-1], -1)


#: By the config's word.
ROTARIES = {"rotary_halves": RotaryHalves,
            "rotary_interleaved": RotaryInterleaved}
