"""Positional encoding: sines and cosines of the position (section 3.5).

    PE[pos, 2i]     = sin(pos / 10000^(2i / d_model))
    PE[pos, 2i + 1] = cos(pos / 10000^(2i / d_model))

The table is computed in float64 and only then rounded to the input's dtype
(R7): an angle of 5000 radians has no sine to speak of in float32.
"""

import functools

import numpy as np

from contract import checks
from reference_numpy.dropout import Dropout


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


class PositionalEncoding:
    """Adds the position table to embeddings. It has no parameters."""

    def __init__(self, config):
        self.max_length = config.max_length
        self.table = TABLES[config.positions](config.max_length, config.d_model)
        self.dropout = Dropout(config.dropout)

    def forward(self, x):
        """Add positions 0, 1, 2, … (R10) to x [B T D]."""
        checks.length(x.shape[1], self.max_length)
        c = {"inputs": (x,)}
        # [1] positions [T D]: sin and cos of pos / 10000^(2i/d)  (§3.5, R6)
        positions = c["positions"] = self.table[:x.shape[1]].astype(x.dtype)
        # [2] positioned [B T D]: x + positions  (§3.5)
        positioned = c["positioned"] = x + positions
        dropped, c["dropout"] = self.dropout.forward(positioned)
        return dropped, c

    def backward(self, ddropped, c):
        """From ddropped [B T D]: dx and g.

        The table is a constant; its gradient is shown because it is a step.
        """
        dpositioned = self.dropout.backward(ddropped, c["dropout"])
        g = {"positioned": dpositioned}
        # [2'] x, positions: positioned = x + positions
        dx = dpositioned
        g["positions"] = dpositioned.sum(axis=0)
        return dx, g
