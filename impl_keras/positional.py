"""Positional encoding; the table is made by NumPy, in float64 (R7).

keras.ops brings float64 down to float32 in places, on JAX and on torch.
"""

import functools

import keras
import numpy as np
from keras import ops

from contract import checks
from contract.trace import tap
from impl_keras.dropout import Dropout


@functools.cache
def angles(max_length, d_model):
    """pos / 10000^(2i / d_model) for every position and pair: [T D/2]."""
    position = np.arange(max_length, dtype=np.float64)
    pair = np.arange(0, d_model, 2, dtype=np.float64)
    return position[:, None] / 10000.0 ** (pair / d_model)


@functools.cache
def interleaved_table(max_length, d_model):
    """Sine on even features, cosine on odd ones (R6): float64 [T D]."""
    angle = angles(max_length, d_model)
    both = np.stack([np.sin(angle), np.cos(angle)], axis=-1)
    return both.reshape(max_length, d_model)


@functools.cache
def halves_table(max_length, d_model):
    """All sines, then all cosines (R6): float64 [T D]."""
    angle = angles(max_length, d_model)
    return np.concatenate([np.sin(angle), np.cos(angle)], axis=-1)


TABLES = {"interleaved": interleaved_table, "halves": halves_table}


class PositionalEncoding(keras.layers.Layer):
    """Adds the position table to embeddings. It has no parameters."""

    def __init__(self, config):
        super().__init__()
        self.built = True  # keras: nothing of its own to build
        self.max_length = config.max_length
        self.table = TABLES[config.positions](config.max_length, config.d_model)
        self.dropout = Dropout(config.dropout)

    def call(self, x):
        """Add positions 0, 1, 2, … (R10) to x [B T D]."""
        checks.length(x.shape[1], self.max_length)
        # [1] positions [T D]: sin and cos of pos / 10000^(2i/d)  (§3.5, R6)
        positions = tap(self, "positions", ops.convert_to_tensor(
            self.table[:x.shape[1]], x.dtype))
        # [2] positioned [B T D]: x + positions  (§3.5)
        positioned = tap(self, "positioned", x + positions)
        return self.dropout(positioned)
