"""Rotary positions; the tables are NumPy's, in float64 (R7)."""

import mlx.core as mx
import mlx.nn as nn

from contract import checks, rotary
from contract.trace import tap


class NoRotary(nn.Module):
    """Hands on queries and keys as they are."""

    def __init__(self, config):
        super().__init__()

    def __call__(self, x, start):
        """Return x [B H T K] as it is."""
        return x


class RotaryHalves(nn.Module):
    """Features i and i + d_k/2 are a pair (R44). It has no parameters."""

    def __init__(self, config):
        super().__init__()
        # mlx: arrays of its own kept here would be parameters
        self.cosines, self.sines = rotary.of_config(config)

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
        checks.length(end, len(self.cosines))
        cosines = mx.array(self.cosines[start:end], x.dtype)
        sines = mx.array(self.sines[start:end], x.dtype)
        # [1] rotated [B * T K]: pairs turned by pos / base^(2i/d_k)  (R44)
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


#: By the config's word and what the attention attends to; else there is none.
ROTARIES = {
    (f"rotary_{name}", kind): Rotary
    for name, Rotary in (("halves", RotaryHalves),
                         ("interleaved", RotaryInterleaved))
    for kind in ("bidirectional", "causal")}
