"""Rotary positions: queries and keys turned by where they stand.

    (a, b) -> (a cos θ - b sin θ, a sin θ + b cos θ),  θ = pos / base^(2i / d_k)

Each pair of features turns by an angle of its own, so that the product of a
query and a key depends on how far apart they are, not on where they stand (Su
et al. 2021).
"""

import numpy as np

from transformer_contract import checks, rotary


class RotaryHalves:
    """Features i and i + d_k/2 are a pair (R44). It has no parameters."""

    def __init__(self, config):
        self.config = config

    def pairs(self, x):
        """The first and the second feature of every pair: [B H T K/2]."""
        return np.split(x, 2, axis=-1)

    def joined(self, first, second):
        """Features from pairs: [B H T K]."""
        return np.concatenate([first, second], axis=-1)

    def rotate(self, x, cosines, sines):
        """Turn every pair of x [B H T K]."""
        first, second = self.pairs(x)
        return self.joined(first * cosines - second * sines,
                           first * sines + second * cosines)

    def forward(self, x, start):
        """Turn x [B H T K], whose first position is start."""
        end = start + x.shape[2]
        cosines, sines = rotary.of_config(self.config)
        checks.length(end, len(cosines))
        cosines = cosines[start:end].astype(x.dtype)
        sines = sines[start:end].astype(x.dtype)
        c = {"inputs": (cosines, sines)}
        # [1] rotated [B H T K]: pairs turned by pos / base^(2i/d_k)  (R44)
        rotated = c["rotated"] = self.rotate(x, cosines, sines)
        return rotated, c

    def backward(self, drotated, c):
        """From drotated [B H T K]: dx and g."""
        (cosines, sines), g = c["inputs"], {"rotated": drotated}
        # [1'] x: rotated = pairs turned by an angle; turned back
        dx = self.rotate(drotated, cosines, -sines)
        return dx, g


class RotaryInterleaved(RotaryHalves):
    """Features 2i and 2i + 1 are a pair (R44)."""

    def pairs(self, x):
        """The first and the second feature of every pair: [B H T K/2]."""
        return x[..., ::2], x[..., 1::2]

    def joined(self, first, second):
        """Features from pairs: [B H T K]."""
        both = np.stack([first, second], axis=-1)
        return both.reshape(*first.shape[:-1], -1)


#: By the config's word.
ROTARIES = {"rotary_halves": RotaryHalves,
            "rotary_interleaved": RotaryInterleaved}
