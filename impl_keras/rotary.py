"""Rotary positions; the tables stay float64 whatever the model is (R7)."""

import keras
from keras import ops

from contract import checks, rotary
from contract.trace import tap


class NoRotary(keras.layers.Layer):
    """Hands on queries and keys as they are."""

    def __init__(self, config):
        super().__init__()
        self.built = True  # keras: nothing of its own to build

    def call(self, x, start):
        """Return x [B H T K] as it is."""
        return x


class RotaryHalves(keras.layers.Layer):
    """Features i and i + d_k/2 are a pair (R44). It has no parameters."""

    def __init__(self, config):
        super().__init__()
        self.built = True  # keras: nothing of its own to build
        self.cosines, self.sines = rotary.of_config(config)

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
        end = start + x.shape[2]
        checks.length(end, len(self.cosines))
        cosines = ops.convert_to_tensor(self.cosines[start:end], x.dtype)
        sines = ops.convert_to_tensor(self.sines[start:end], x.dtype)
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
        both = ops.stack([first, second], axis=-1)
        return ops.reshape(both, (*first.shape[:-1], -1))


#: By the config's word and what the attention attends to; else there is none.
ROTARIES = {
    (f"rotary_{name}", kind): Rotary
    for name, Rotary in (("halves", RotaryHalves),
                         ("interleaved", RotaryInterleaved))
    for kind in ("bidirectional", "causal")}
