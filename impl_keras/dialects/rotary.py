"""Rotary positions: queries and keys turned by where they stand.

    (a, b) -> (a cos θ - b sin θ, a sin θ + b cos θ),  θ = pos / base^(2i / d_k)

The product of a query and a key then depends on how far apart they are (Su et
al. 2021). The tables are float64 whatever the model is (R7).
"""

from keras import ops

from transformer_contract import rotary
from transformer_contract.trace import tap
from impl_keras.positional import check_length, rows
from impl_keras.whole import Layer


class RotaryHalves(Layer):
    """Features i and i + d_k/2 are a pair (R44). It has no parameters."""

    def __init__(self, config):
        super().__init__()
        self.config = config

    def pairs(self, x):
        """The first and the second feature of every pair: [B H T K/2]."""
        return ops.split(x, 2, axis=-1)

    def joined(self, first, second):
        """Features from pairs: [B H T K]."""
        return ops.concatenate([first, second], axis=-1)

    def rotate(self, x, cosines, sines):
        """Turn every pair of x [B H T K]."""
        first, second = self.pairs(x)
        return self.joined(first * cosines - second * sines,
                           first * sines + second * cosines)

    def call(self, x, start):
        """Turn x [B H T K], whose first position is start."""
        cosines, sines = rotary.of_config(self.config)
        check_length(x, 2, start, len(cosines))
        cosines, sines = (
            rows(table, x, 2, start) for table in (cosines, sines))
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
        both = ops.stack([first, second], axis=-1)
        return ops.reshape(both, (*ops.shape(first)[:-1], -1))


#: By the config's word.
ROTARIES = {"rotary_halves": RotaryHalves,
            "rotary_interleaved": RotaryInterleaved}
